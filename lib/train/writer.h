/*
 * writer.h - writes the checkpoints of a run while the run goes on.
 *
 * The state is copied in memory, and a thread writes the copy. There is one copy, so
 * one save at a time is on its way, and none overtakes the one before. Used on rank 0
 * only, and by one thread; knows no ranks and no records.
 */
#ifndef RNND_WRITER_H
#define RNND_WRITER_H

#include "checkpoint/run_dir.h"
#include "checkpoint/train_state.h"
#include "rnn_dist.h"

struct rnnd__writer;

/* The files of a save: best.h5; the checkpoint of this update, after which old ones are
   removed. */
enum { RNND_WRITE_BEST = 1, RNND_WRITE_NEWEST = 2 };

/* Takes memory for the copy. The arguments are borrowed. */
RNND_CHECKED int rnnd__writer_new(const struct rnnd_options *opt,
                                  const struct rnnd__run_dir *dir,
                                  struct rnnd_model *model, struct rnnd_optim *optim,
                                  struct rnnd__writer **out);
/* Waits for the save on its way; accepts NULL. */
void rnnd__writer_free(struct rnnd__writer *w);

/* Copies the state and begins to write the files of a set; none may be on their way.
   The carried states and the records of the state are borrowed until then. */
RNND_CHECKED int rnnd__writer_start(struct rnnd__writer *w, unsigned files,
                                    const struct rnnd__train_state *state);

/* Where a save is; after the last two, rnnd__writer_wait() does not wait. */
enum rnnd__writing {
    RNND_WRITING_NOTHING,
    RNND_WRITING,
    RNND_WRITTEN,
    RNND_NOT_WRITTEN
};
enum rnnd__writing rnnd__writer_state(struct rnnd__writer *w);

/* Waits for the save on its way, if there is one. Fails, once, with its failure.
   *update, even then: of the checkpoint that is now durable, -1 = none. */
RNND_CHECKED int rnnd__writer_wait(struct rnnd__writer *w, int64_t *update);

#endif
