/*
 * checkpoint.h - all that decides the next update, to HDF5 and back.
 *
 * Knows parameters by name, optimizer moments as flat arrays over the parameter arena,
 * and the trainer's position as the struct below; knows no training loop.
 */
#ifndef RNND_CHECKPOINT_H
#define RNND_CHECKPOINT_H

#include "checkpoint/train_state.h"
#include "rnn_dist.h"

/* Writes PATH whole, atomically: parameters, moments, state, options as text. */
RNND_CHECKED int rnnd__checkpoint_save(const char *path, struct rnnd_model *model,
                                       struct rnnd_optim *optim,
                                       const struct rnnd_options *opt,
                                       const struct rnnd__train_state *state);
/* Options of a checkpoint as text, malloc'ed, and its info; EFILE where it is damaged.
   A file of another tool may lack them: they are 0, 0 and "" then. */
RNND_CHECKED int rnnd__checkpoint_read_info(const char *path,
                                            struct rnnd_checkpoint_info *out);
/* Parameters, moments and state into a model of the same shape; EFILE where the file
   holds no training state. Moments that the file does not have (another optimizer)
   start at zero. */
RNND_CHECKED int rnnd__checkpoint_load(const char *path, struct rnnd_model *model,
                                       struct rnnd_optim *optim,
                                       struct rnnd__train_state *state);
/* Parameters only, from a checkpoint (EFILE if damaged) or a safetensors file, by name;
   a name or shape that does not fit is EUSAGE with both. */
RNND_CHECKED int rnnd__checkpoint_init(const char *path, struct rnnd_model *model);

/* The newest checkpoint of a run folder that is intact, NULL if none; damaged ones are
   named in the log, one that cannot be opened is EFILE. *path is malloc'ed, taken. */
RNND_CHECKED int rnnd__checkpoint_newest(const char *run_dir, char **path);
/* Reads all of it; EFILE with file and object where it is damaged. */
RNND_CHECKED int rnnd__checkpoint_verify(const char *path);
/* Whether that finds nothing; a damaged file is named in the log. EFILE where nobody
   can tell, as the file cannot be opened: to pass over it would lose what it holds. */
RNND_CHECKED int rnnd__checkpoint_is_intact(const char *path, bool *out);
/* run_dir/ckpt-UUUUUUUUUU.h5, malloc'ed, taken. */
RNND_CHECKED int rnnd__checkpoint_path(const char *run_dir, int64_t update,
                                       char **path);
/* Removes all but the newest `keep` (0 keeps all) and temporary files whose writers
   ended. To be called after a save: what is numbered above the file written last does
   not count. */
RNND_CHECKED int rnnd__checkpoint_prune(const char *run_dir, int64_t keep);

/* ---- the parts (checkpoint*.c) */

struct rnnd__hdf;

/* An open file that is a checkpoint of a version known here; EFILE where it is not. */
RNND_CHECKED int rnnd__checkpoint_open(const char *path, struct rnnd__hdf **out);
/* /state. width: floats of a carried row in this model. */
RNND_CHECKED int rnnd__checkpoint_save_state(struct rnnd__hdf *file,
                                             const struct rnnd__train_state *state);
RNND_CHECKED int rnnd__checkpoint_load_state(struct rnnd__hdf *file, int64_t width,
                                             struct rnnd__train_state *state);

#endif
