/*
 * formats.h - files of other programs, read into what a data file holds, and written as
 * one.
 *
 * A reader takes paths and options and gives contents; it knows nothing of HDF5.
 * Messages name file, line and column.
 */
#ifndef RNND_FORMATS_H
#define RNND_FORMATS_H

#include "base/list.h"
#include "rnn_dist.h"

/* A data set in memory. A list of type T holds elements of T; texts are owned. */
struct rnnd__contents {
    enum rnnd_task task;
    /* I, 0 for tokens */
    int64_t inputs;
    /* V, 0 for features */
    int64_t vocab;
    /* of classify and tag */
    int64_t classes;
    /* O columns of values, else 0 */
    int64_t outputs;
    /* int64_t [N+1] */
    struct rnnd__list offsets;
    /* float [S,I] */
    struct rnnd__list features;
    /* int32_t [S] */
    struct rnnd__list tokens;
    /* int32_t [N] or [S] */
    struct rnnd__list labels;
    /* float [N,O] or [S,O] */
    struct rnnd__list values;
    /* char * */
    struct rnnd__list names, class, token;
};

RNND_CHECKED int rnnd__contents_init(struct rnnd__contents *contents);
void rnnd__contents_clear(struct rnnd__contents *contents);
int64_t rnnd__contents_sequences(const struct rnnd__contents *contents);
int64_t rnnd__contents_steps(const struct rnnd__contents *contents);
/* Ends a sequence after the steps that are there. */
RNND_CHECKED int rnnd__contents_end_sequence(struct rnnd__contents *contents);

/* One kind of input. */
struct rnnd__format {
    const char *name;
    /* names of the options it takes, besides --split and --seed, with a blank around
       each */
    const char *options;
    int (*read)(const struct rnnd_options *opt, char *const *inputs, int count,
                struct rnnd__contents *out);
};

/* By the word on the command line; EUSAGE names the one that was meant. */
RNND_CHECKED int rnnd__format_find(const char *name, const struct rnnd__format **out);
/* Reads inputs one after the other into empty contents. EDATA names file, line and
   column. */
RNND_CHECKED int rnnd__format_read(const struct rnnd__format *format,
                                   const struct rnnd_options *opt, char *const *inputs,
                                   int count, struct rnnd__contents *out);

/* Moves round(share N) sequences, drawn by seed and at least one, to `rest`; both
   keep the order. EDATA with fewer than two sequences. */
RNND_CHECKED int rnnd__contents_split(struct rnnd__contents *contents, double share,
                                      uint64_t seed, struct rnnd__contents *rest);
/* Writes paths[i] from contents[i], all of them or (but for a failure in renaming)
   none. */
RNND_CHECKED int rnnd__contents_write(const struct rnnd__contents *const *contents,
                                      const char *const *paths, int count);

#endif
