/*
 * formats.h - reads files of other programs into memory and writes them as a data file.
 *
 * A reader takes paths and options and fills in contents; it knows nothing of HDF5.
 * Messages name file, line and column.
 */
#ifndef RNND_FORMATS_H
#define RNND_FORMATS_H

#include "base/list.h"
#include "rnn_dist.h"

/* A data set in memory. The comment of a list gives its element type; strings are
   owned. */
struct rnnd__contents {
    enum rnnd_task task;
    /* I, 0 for tokens */
    int64_t inputs;
    /* V, 0 for features */
    int64_t vocab;
    /* C for classify, tag and ctc */
    int64_t classes;
    /* O, the columns of values, else 0 */
    int64_t outputs;
    /* int64_t [N+1] */
    struct rnnd__list offsets;
    /* float [S,I]; a reader leaves NaN where a value is missing */
    struct rnnd__list features;
    /* how many are missing, and where the first is; they stay NaN in the file */
    int64_t gaps;
    char *first_gap;
    bool keeps_gaps;
    /* a warning of an integer that was rounded has been given */
    bool rounded;
    /* int32_t [S] */
    struct rnnd__list tokens;
    /* int32_t [N] or [S]; ctc: the strings of all sequences */
    struct rnnd__list labels;
    /* int64_t [N+1], ctc only: where each string begins among the labels */
    struct rnnd__list string_offsets;
    /* float [N,O] or [S,O] */
    struct rnnd__list values;
    /* char * */
    struct rnnd__list names, class, token;
    /* char *, names of the input columns; empty if they have none */
    struct rnnd__list feature;
};

RNND_CHECKED int rnnd__contents_init(struct rnnd__contents *contents);
void rnnd__contents_clear(struct rnnd__contents *contents);
int64_t rnnd__contents_sequences(const struct rnnd__contents *contents);
int64_t rnnd__contents_steps(const struct rnnd__contents *contents);
/* Counts a feature that is missing, stored as NaN; the format says where, as in
   "d.csv:3: column x". */
RNND_CHECKED int rnnd__contents_gap(struct rnnd__contents *contents, const char *format,
                                    ...) __attribute__((format(printf, 2, 3)));
/* Warns of the first feature that is an integer which a 32-bit float cannot hold; the
   format says where, and which. */
void rnnd__contents_rounded(struct rnnd__contents *contents, float value,
                            const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Fills the features that are missing, or marks the data set where the policy is mean.
   EDATA: there are some, and the policy is none. */
RNND_CHECKED int rnnd__contents_fill(struct rnnd__contents *contents,
                                     enum rnnd_missing policy);
/* Ends the current sequence after the steps added so far. */
RNND_CHECKED int rnnd__contents_end_sequence(struct rnnd__contents *contents);
/* Ends the string of a sequence after the labels added so far. */
RNND_CHECKED int rnnd__contents_end_string(struct rnnd__contents *contents);

/* Whether a text is UTF-8. */
bool rnnd__text_is_utf8(const char *text);

/* One kind of input. */
struct rnnd__format {
    const char *name;
    /* NULL-terminated names of the options it takes */
    const char *const *options;
    int (*read)(const struct rnnd_options *opt, char *const *inputs, int count,
                struct rnnd__contents *out);
};

/* The name of format i = 0, 1, ...; NULL past the last. */
const char *rnnd__format_name(int i);
/* The format of this name; EUSAGE suggests a similar name. */
RNND_CHECKED int rnnd__format_find(const char *name, const struct rnnd__format **out);
/* Reads all inputs, in order, into empty contents. EDATA names file, line and
   column. */
RNND_CHECKED int rnnd__format_read(const struct rnnd__format *format,
                                   const struct rnnd_options *opt, char *const *inputs,
                                   int count, struct rnnd__contents *out);

/* Moves round(fraction * N) sequences, but at least one and not all, to `rest`. The
   seed selects them; both parts keep the order. EDATA with fewer than two sequences. */
RNND_CHECKED int rnnd__contents_split(struct rnnd__contents *contents, double fraction,
                                      uint64_t seed, struct rnnd__contents *rest);
/* Whether a data file can be written to path: EUSAGE where it would replace a file of
   another kind, EFILE where it cannot be created. */
RNND_CHECKED int rnnd__contents_check(const char *path);
/* Writes contents[i] to paths[i]: all files or, unless a rename fails, none. Fails as
   rnnd__contents_check(). */
RNND_CHECKED int rnnd__contents_write(const struct rnnd__contents *const *contents,
                                      const char *const *paths, int count);

#endif
