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
struct rnnd_contents {
    enum rnnd_task task;
    int64_t inputs;                       /* I, 0 for tokens */
    int64_t vocab;                        /* V, 0 for features */
    int64_t classes;                      /* of classify and tag */
    int64_t outputs;                      /* O columns of values, else 0 */
    struct rnnd_list offsets;             /* int64_t [N+1] */
    struct rnnd_list features;            /* float [S,I] */
    struct rnnd_list tokens;              /* int32_t [S] */
    struct rnnd_list labels;              /* int32_t [N] or [S] */
    struct rnnd_list values;              /* float [N,O] or [S,O] */
    struct rnnd_list names, class, token; /* char * */
};

RNND_CHECKED int rnnd_contents_init(struct rnnd_contents *contents);
void rnnd_contents_clear(struct rnnd_contents *contents);
int64_t rnnd_contents_sequences(const struct rnnd_contents *contents);
int64_t rnnd_contents_steps(const struct rnnd_contents *contents);
/* Ends a sequence after the steps that are there. */
RNND_CHECKED int rnnd_contents_end_sequence(struct rnnd_contents *contents);

/* One kind of input. */
struct rnnd_format {
    const char *name;
    const char *options; /* names of the options it takes, besides --split and
                                      --seed, with a blank around each */
    int (*read)(const struct rnnd_options *opt, char *const *inputs, int count,
                struct rnnd_contents *out);
};

/* By the word on the command line; EUSAGE names the one that was meant. */
RNND_CHECKED int rnnd_format_find(const char *name, const struct rnnd_format **out);
/* Reads inputs one after the other into empty contents. EDATA names file, line and
   column. */
RNND_CHECKED int rnnd_format_read(const struct rnnd_format *format,
                                  const struct rnnd_options *opt, char *const *inputs,
                                  int count, struct rnnd_contents *out);

/* Moves round(share N) sequences, drawn by seed and at least one, to `rest`; both
   keep the order. EDATA with fewer than two sequences. */
RNND_CHECKED int rnnd_contents_split(struct rnnd_contents *contents, double share,
                                     uint64_t seed, struct rnnd_contents *rest);
/* Writes paths[i] from contents[i], all of them or (but for a failure in renaming)
   none. */
RNND_CHECKED int rnnd_contents_write(const struct rnnd_contents *const *contents,
                                     const char *const *paths, int count);

#endif
