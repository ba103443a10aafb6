/*
 * cmd_pack.c - `rnn_dist pack KIND IN... OUT.h5`: makes a data file from files of other
 * programs and prints a summary of it.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/plain.h"
#include "base/status.h"
#include "bin.h"
#include "formats/formats.h"

/* ---- checks */

/* Fails for options that the kind does not take. */
static int check_options(const struct rnnd__format *format,
                         const struct rnnd_options *opt)
{
    const char *other = rnnd__options_other(opt, RNND_CMD_PACK, format->options);
    if (other)
        return rnnd__fail(RNND_EUSAGE, "--%s is not an option of pack %s", other,
                          format->name);
    if (rnnd__options_given(opt, "vocab-size") && opt->vocab_from)
        return rnnd__fail(RNND_EUSAGE, "--vocab-size cannot be used with --vocab-from");
    return 0;
}

static int check_output(const char *output, const struct rnnd_options *opt,
                        char **inputs, int count)
{
    for (int i = 0; i < count; i++)
        RNND_TRY(bin_refuse_same(output, inputs[i]));
    RNND_TRY(bin_refuse_same(output, opt->labels));
    RNND_TRY(bin_refuse_same(output, opt->labels_from));
    RNND_TRY(bin_refuse_same(output, opt->classes_from));
    RNND_TRY(bin_refuse_same(output, opt->vocab_from));
    return rnnd__contents_check(output);
}

/* "d.h5" becomes "d-valid.h5"; malloc'ed. */
static int valid_path(const char *path, char **out)
{
    const char *name = basename(path);
    const char *dot = strrchr(name, '.');
    size_t stem = dot && dot > name ? (size_t)(dot - path) : strlen(path);
    char *valid;
    if (asprintf(&valid, "%.*s-valid%s", (int)stem, path, path + stem) < 0)
        return rnnd__fail_memory(stem, "a file name");
    *out = valid;
    return 0;
}

/* ---- summary */

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

enum { BINS = 10, BAR = 40 };

/* Counts lengths in at most BINS ranges of equal width. length is sorted. */
static void print_histogram(const int64_t *length, int64_t n)
{
    int64_t low = length[0], width = (length[n - 1] - low) / BINS + 1, most = 0;
    int64_t count[BINS] = {0};
    for (int64_t i = 0; i < n; i++) {
        int64_t *bin = &count[(length[i] - low) / width];
        most = ++*bin > most ? *bin : most;
    }
    for (int b = 0; low + b * width <= length[n - 1]; b++) {
        int bar = (int)((count[b] * BAR + most - 1) / most);
        int64_t from = low + b * width, to = from + width - 1;
        printf("  %8lld to %-8lld %8lld %.*s\n", (long long)from,
               (long long)(to < length[n - 1] ? to : length[n - 1]),
               (long long)count[b], bar, "########################################");
    }
}

static int print_lengths(const struct rnnd__contents *c)
{
    int64_t n = rnnd__contents_sequences(c), *length;
    const int64_t *at = c->offsets.at;
    RNND_TRY(RNND_NEW(&length, n, "lengths"));
    for (int64_t i = 0; i < n; i++)
        length[i] = at[i + 1] - at[i];
    qsort(length, (size_t)n, sizeof *length, by_size);
    printf("lengths %lld to %lld, median %g, mean %.1f\n", (long long)length[0],
           (long long)length[n - 1], (double)(length[(n - 1) / 2] + length[n / 2]) / 2,
           (double)at[n] / (double)n);
    print_histogram(length, n);
    int64_t empty = 0;
    while (empty < n && length[empty] == 0)
        empty++;
    if (empty)
        rnnd__log_warn("%lld of %lld sequences are empty", (long long)empty,
                       (long long)n);
    free(length);
    return 0;
}

static const char *class_text(const struct rnnd__contents *c, int64_t i)
{
    return i < c->class.count ? ((char **)c->class.at)[i] : "";
}

static int print_classes(const struct rnnd__contents *c)
{
    enum { SHOWN = 30, NAME = 24 };
    int64_t *count, unused = 0, ignored = 0;
    const int32_t *label = c->labels.at;
    if (!c->classes)
        return 0;
    RNND_TRY(RNND_NEW(&count, c->classes, "classes"));
    for (int64_t i = 0; i < c->labels.count; i++) {
        if (label[i] < 0)
            ignored++;
        else
            count[label[i]]++;
    }
    printf("%lld classes\n", (long long)c->classes);
    for (int64_t i = 0; i < c->classes; i++) {
        unused += count[i] == 0;
        if (i >= SHOWN)
            continue;
        printf("  %4lld ", (long long)i);
        int width = rnnd__plain_put(stdout, class_text(c, i));
        printf("%*s %8lld\n", width < NAME ? NAME - width : 0, "", (long long)count[i]);
    }
    if (c->classes > SHOWN)
        printf("  and %lld more\n", (long long)(c->classes - SHOWN));
    if (unused)
        rnnd__log_warn("%lld of %lld classes have no examples", (long long)unused,
                       (long long)c->classes);
    if (ignored)
        rnnd__log_warn("%lld of %lld labels are missing and are ignored",
                       (long long)ignored, (long long)c->labels.count);
    free(count);
    return 0;
}

/* Rows with a NaN are ignored as targets. */
static void warn_of_gaps(const struct rnnd__contents *c)
{
    const float *value = c->values.at;
    int64_t rows = c->outputs ? c->values.count / c->outputs : 0, gaps = 0;
    for (int64_t r = 0; r < rows; r++) {
        bool gap = false;
        for (int64_t o = 0; o < c->outputs; o++)
            gap |= isnan(value[r * c->outputs + o]);
        gaps += gap;
    }
    if (gaps)
        rnnd__log_warn(
            "%lld of %lld rows of targets have a missing value and are ignored",
            (long long)gaps, (long long)rows);
}

/* The names of the features: all, or the first ones. */
static void print_features(const struct rnnd__contents *c)
{
    enum { SHOWN = 12 };
    char *const *name = c->feature.at;
    int64_t n = c->feature.count;
    for (int64_t i = 0; i < n && i < SHOWN; i++) {
        fputs(i ? ", " : "features: ", stdout);
        rnnd__plain_put(stdout, name[i]);
    }
    if (n > SHOWN)
        printf(" and %lld more", (long long)(n - SHOWN));
    if (n)
        printf("\n");
}

/* The lengths of label strings. */
static void print_strings(const struct rnnd__contents *c)
{
    const int64_t *at = c->string_offsets.at;
    int64_t n = c->string_offsets.count - 1, low = INT64_MAX, high = 0;
    if (n < 1)
        return;
    for (int64_t i = 0; i < n; i++) {
        int64_t labels = at[i + 1] - at[i];
        low = labels < low ? labels : low;
        high = labels > high ? labels : high;
    }
    printf("%lld labels, %lld to %lld per sequence, mean %.1f\n", (long long)at[n],
           (long long)low, (long long)high, (double)at[n] / (double)n);
}

static int print_summary(const char *path, const struct rnnd__contents *c)
{
    rnnd__plain_put(stdout, path);
    printf(": %lld sequences, %lld %s", (long long)rnnd__contents_sequences(c),
           (long long)rnnd__contents_steps(c), c->vocab ? "tokens" : "steps");
    if (c->vocab)
        printf(", vocabulary %lld", (long long)c->vocab);
    else
        printf(" of %lld features", (long long)c->inputs);
    printf(", task %s", rnnd_task_name(c->task));
    if (c->outputs)
        printf(" of %lld values", (long long)c->outputs);
    printf("\n");
    print_features(c);
    warn_of_gaps(c);
    RNND_TRY(print_lengths(c));
    print_strings(c);
    return print_classes(c);
}

/* ---- the command */

static int write_all(struct rnnd__contents *all, const struct rnnd_options *opt,
                     const char *output, const char *valid)
{
    struct rnnd__contents rest;
    const struct rnnd__contents *contents[] = {all, &rest};
    const char *paths[] = {output, valid};
    int count = valid ? 2 : 1, status;
    RNND_TRY(rnnd__contents_init(&rest));
    if (valid)
        RNND_TRY_GOTO(
            rnnd__contents_split(all, opt->split, (uint64_t)opt->seed, &rest));
    RNND_TRY_GOTO(rnnd__contents_write(contents, paths, count));
    for (int i = 0; i < count; i++)
        RNND_TRY_GOTO(print_summary(paths[i], contents[i]));
done:
    rnnd__contents_clear(&rest);
    return status;
}

static int pack(const struct rnnd_options *opt, const struct rnnd__format *format,
                char **inputs, int count, const char *output)
{
    struct rnnd__contents all;
    char *valid = NULL;
    int status;
    RNND_TRY(rnnd__contents_init(&all));
    RNND_TRY_GOTO(check_output(output, opt, inputs, count));
    if (opt->split > 0) {
        RNND_TRY_GOTO(valid_path(output, &valid));
        RNND_TRY_GOTO(check_output(valid, opt, inputs, count));
    }
    RNND_TRY_GOTO(rnnd__format_read(format, opt, inputs, count, &all));
    RNND_TRY_GOTO(write_all(&all, opt, output, valid));
done:
    free(valid);
    rnnd__contents_clear(&all);
    return status;
}

int cmd_pack(struct rnnd_options *opt, struct rnnd_comm *comm, int argc, char **argv)
{
    const struct rnnd__format *format;
    RNND_TRY(rnnd__format_find(argv[0], &format));
    RNND_TRY(check_options(format, opt));
    if (rnnd_comm_rank(comm) != 0)
        return 0;
    return pack(opt, format, argv + 1, argc - 2, argv[argc - 1]);
}
