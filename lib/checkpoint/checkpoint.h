/*
 * checkpoint.h - saves and loads everything that decides the next update, as HDF5
 * (rnn_dist-checkpoint(5)).
 *
 * Knows parameters by name, optimizer moments as flat arrays over the parameter arena,
 * and the position of a run as struct rnnd__train_state.
 */
#ifndef RNND_CHECKPOINT_H
#define RNND_CHECKPOINT_H

#include "base/names.h"
#include "checkpoint/train_state.h"
#include "rnn_dist.h"

/* Writes a file atomically: parameters, options as text and, unless state is NULL, the
   optimizer and the state. EFILE where it cannot be written. */
RNND_CHECKED int rnnd__checkpoint_save(const char *path, struct rnnd_model *model,
                                       struct rnnd_optim *optim,
                                       const struct rnnd_options *opt,
                                       const struct rnnd__train_state *state);

/* ---- saving while the run goes on */

/* A copy, in host memory, of all of a run that changes from update to update. */
struct rnnd__snapshot;

/* optim NULL: of the parameters alone. All three are borrowed, and so are the names,
   normalization and options that a file contains: they do not change during a run. */
RNND_CHECKED int rnnd__snapshot_new(struct rnnd_model *model, struct rnnd_optim *optim,
                                    const struct rnnd_options *opt,
                                    struct rnnd__snapshot **out);
void rnnd__snapshot_free(struct rnnd__snapshot *s);
/* Copies parameters, moments and state; NULL: no state. The carried states are borrowed
   until the snapshot is taken again. */
RNND_CHECKED int rnnd__snapshot_take(struct rnnd__snapshot *s,
                                     const struct rnnd__train_state *state);
/* Writes it as rnnd__checkpoint_save() does. From any thread: touches neither the
   device nor what an update changes. */
RNND_CHECKED int rnnd__snapshot_write(const struct rnnd__snapshot *s, const char *path);

/* ---- reading */

/* Position and options of a checkpoint; EFILE where it is damaged. What a file of
   another tool lacks is 0 or "". out->config is malloc'ed and freed by the caller. */
RNND_CHECKED int rnnd__checkpoint_read_info(const char *path,
                                            struct rnnd_checkpoint_info *out);
/* The names in a checkpoint, HDF5 or safetensors, and the task of its model,
   RNND_NO_TASK where it says none. Clear *out after success. EFILE, EDATA, EUSAGE as
   rnnd__checkpoint_init(). */
RNND_CHECKED int rnnd__checkpoint_read_names(const char *path, struct rnnd__names *out,
                                             enum rnnd_task *task);
/* Loads parameters, moments and state into a model of the same shape. Moments that the
   file lacks, because the run had another optimizer, become zero. EFILE where the file
   is damaged or has no state, EUSAGE where the model is another. */
RNND_CHECKED int rnnd__checkpoint_load(const char *path, struct rnnd_model *model,
                                       struct rnnd_optim *optim,
                                       struct rnnd__train_state *state);
/* Loads parameters alone, by name, from a checkpoint, HDF5 or safetensors. EUSAGE where
   a name or shape does not fit the model, EFILE or EDATA where the file is damaged. */
RNND_CHECKED int rnnd__checkpoint_init(const char *path, struct rnnd_model *model);

/* The newest intact checkpoint of a run directory, NULL if there is none. Damaged ones
   are skipped with a warning; one that cannot be opened is EFILE. *path is malloc'ed
   and freed by the caller. */
RNND_CHECKED int rnnd__checkpoint_newest(const char *run_dir, char **path);
/* Whether a run directory has checkpoints, intact or not; EFILE where it cannot be
   read. */
RNND_CHECKED int rnnd__checkpoint_any(const char *run_dir, bool *out);
/* The newest intact checkpoints of a run directory, at most so many, the newest first:
   path [most] receives *count paths, malloc'ed and freed by the caller. */
RNND_CHECKED int rnnd__checkpoint_last(const char *run_dir, int64_t most, char **path,
                                       int64_t *count);
/* A model whose parameters are the means of those of the newest `count` intact
   checkpoints of a run directory; info: of the newest. EUSAGE where run_dir is none,
   EFILE where it has fewer. */
RNND_CHECKED int rnnd__checkpoint_average(const char *run_dir, int64_t count,
                                          struct rnnd_backend *be,
                                          struct rnnd_model **out,
                                          struct rnnd_checkpoint_info *info);
/* Reads all of a file; EFILE, with file and object, where it is damaged. of_run: a file
   of a run directory, which always ends with a checksum. */
RNND_CHECKED int rnnd__checkpoint_verify(const char *path, bool of_run);
/* Whether a file of a run exists and is undamaged; a warning names the damage. EFILE
   where it cannot be opened: it may be intact, and must not be skipped. */
RNND_CHECKED int rnnd__checkpoint_is_intact(const char *path, bool *out);
/* The update in ckpt-UUUUUUUUUU.h5, of 10 to 18 digits; false for other names. */
bool rnnd__checkpoint_name(const char *name, int64_t *update);
/* run_dir/ckpt-UUUUUUUUUU.h5; malloc'ed and freed by the caller. */
RNND_CHECKED int rnnd__checkpoint_path(const char *run_dir, int64_t update,
                                       char **path);
/* Removes all checkpoints but the newest `keep` (0: keeps all), and temporary files of
   processes that have ended. written: the update whose checkpoint was just saved; those
   with a higher number are neither counted nor removed. */
RNND_CHECKED int rnnd__checkpoint_prune(const char *run_dir, int64_t keep,
                                        int64_t written);

/* ---- shared by the files of the room */

/* Whether there is no such file: a training that goes on may have removed it. */
bool rnnd__checkpoint_has_gone(const char *path);

struct rnnd__hdf;

/* Opens a file that is a checkpoint of a supported version; EFILE where it is not, and
   with of_run where it does not end with a checksum. */
RNND_CHECKED int rnnd__checkpoint_open(const char *path, bool of_run,
                                       struct rnnd__hdf **out);
/* Writes and reads /state. width: floats per row of carried states in this model. */
RNND_CHECKED int rnnd__checkpoint_save_state(struct rnnd__hdf *file,
                                             const struct rnnd__train_state *state);
RNND_CHECKED int rnnd__checkpoint_load_state(struct rnnd__hdf *file, int64_t width,
                                             struct rnnd__train_state *state);

#endif
