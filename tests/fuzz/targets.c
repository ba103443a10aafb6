/*
 * targets.c - one target per reader. A reader may refuse anything; it may not crash,
 * hang or take more memory than its input explains.
 */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/status.h"
#include "checkpoint/statedict.h"
#include "commands/inspect.h"
#include "formats/formats.h"
#include "formats/symbols.h"
#include "options/options.h"
#include "record/metrics.h"
#include "record/report.h"

/* ---- pack */

enum { WORDS = 8 };

static void pack(const char *kind, const char *const *words, const char *path)
{
    const struct rnnd__format *format;
    struct rnnd__contents contents;
    struct rnnd_options opt;
    char *args[WORDS], *inputs[] = {(char *)path};
    int count = 0, operands;
    for (; words[count]; count++)
        args[count] = (char *)words[count];
    if (rnnd_options_init(&opt) < 0 || rnnd__contents_init(&contents) < 0)
        abort();
    if (rnnd__options_parse(&opt, RNND_CMD_PACK, count, args, &operands) < 0 ||
        rnnd__format_find(kind, &format) < 0) {
        fprintf(stderr, "%s: %s\n", kind, rnnd_status_detail());
        abort();
    }
    (void)!rnnd__format_read(format, &opt, inputs, 1, &contents);
    rnnd__contents_clear(&contents);
    rnnd_options_clear(&opt);
}

#define PACK(function, kind, ...)                                         \
    static void function(const char *path, const char *text, size_t size) \
    {                                                                     \
        static const char *const words[WORDS] = {__VA_ARGS__ NULL};       \
        (void)text, (void)size;                                           \
        pack(kind, words, path);                                          \
    }
PACK(read_ts, "ts", )
PACK(read_csv, "csv", "--sequence", "s", "--label", "lab", )
PACK(read_csv_steps, "csv", "--step-target", "y", "--missing", "zero", )
PACK(read_npz, "npz", )
PACK(read_words, "text-words", )
PACK(read_chars, "text-chars", )
PACK(read_music, "music-json", "--part", "train", )
PACK(read_kaldi, "kaldi", )

static void read_symbols(const char *path, const char *text, size_t size)
{
    struct rnnd__list names = {.size = sizeof(char *)};
    (void)text, (void)size;
    if (rnnd__symbols_in(path))
        (void)!rnnd__symbols_read(path, &names);
    rnnd__list_clear_texts(&names);
}

/* ---- models, and files of HDF5 */

static void read_arrays(const char *path, const char *text, size_t size)
{
    struct rnnd__statedict sd;
    struct rnnd_model_spec spec;
    struct rnnd_options opt;
    (void)text, (void)size;
    if (rnnd_options_init(&opt) < 0)
        abort();
    if (rnnd__statedict_open(path, &sd) == 0) {
        (void)!rnnd__statedict_spec(&sd, &opt, &spec);
        rnnd__statedict_close(&sd);
    }
    rnnd_options_clear(&opt);
}

static void inspect(const char *path, const char *text, size_t size)
{
    char *facts = NULL;
    int verdict;
    (void)text, (void)size;
    if (rnnd__inspect(path, true, &facts, &verdict) == 0)
        free(facts);
}

/* ---- text */

static void read_config(const char *path, const char *text, size_t size)
{
    struct rnnd_options opt;
    (void)path, (void)size;
    if (rnnd_options_init(&opt) < 0)
        abort();
    (void)!rnnd__options_read_text(&opt, text, "fuzz", RNND_FROM_FILE);
    rnnd_options_clear(&opt);
}

/* A line is an argument; the first is the command's number. */
static void read_options(const char *path, const char *text, size_t size)
{
    enum { MOST = 64 };
    char *line[MOST + 1], *copy = strdup(text), *rest = copy;
    struct rnnd_options opt;
    int count = 0, operands;
    (void)path, (void)size;
    if (!copy || rnnd_options_init(&opt) < 0)
        abort();
    while (count < MOST && (line[count] = strsep(&rest, "\n")))
        count++;
    line[count] = NULL;
    unsigned command = count ? (unsigned)line[0][0] % 8 : 0;
    bool reads_file = strstr(text, "-con") != NULL; /* --config, which reads a path */
    if (count && !reads_file)
        (void)!rnnd__options_parse(&opt, (enum rnnd__command)(1U << command), count,
                                   line, &operands);
    rnnd_options_clear(&opt);
    free(copy);
}

/* path: metrics.jsonl, whose folder is that of a run */
static void read_metrics(const char *path, const char *text, size_t size)
{
    struct rnnd__outcome outcome;
    char *json = NULL, *folder = strdup(path);
    (void)text, (void)size;
    if (!folder)
        abort();
    *strrchr(folder, '/') = 0;
    (void)!rnnd__metrics_outcome(folder, &outcome);
    if (rnnd__metrics_result(folder, &json) == 0)
        free(json);
    (void)!rnnd__report((const char *const[]){folder}, 1, "/dev/null");
    free(folder);
}

const struct fuzz_target fuzz_targets[] = {
    {"ts", "in.ts", read_ts},
    {"csv", "in.csv", read_csv},
    {"csv-steps", "in.csv", read_csv_steps},
    {"npz", "in.npz", read_npz},
    {"text-words", "in.txt", read_words},
    {"text-chars", "in.txt", read_chars},
    {"music", "in.json", read_music},
    {"kaldi", "in.ark", read_kaldi},
    {"kaldi-list", "in.scp", read_kaldi},
    {"symbols", "in.txt", read_symbols},
    {"safetensors", "in.safetensors", read_arrays},
    {"hdf5", "in.h5", inspect},
    {"config", NULL, read_config},
    {"options", NULL, read_options},
    {"metrics", "metrics.jsonl", read_metrics},
    {.name = NULL}};

/* ---- one input */

static char folder[256], input[300];

const struct fuzz_target *fuzz_find(const char *name)
{
    for (const struct fuzz_target *t = fuzz_targets; t->name; t++)
        if (strcmp(t->name, name) == 0)
            return t;
    fprintf(stderr, "fuzz: no target %s\n", name);
    exit(2);
}

/* The file is a new one each time, so that no verdict on the last one counts. */
static void write_input(const struct fuzz_target *target, const uint8_t *data,
                        size_t size)
{
    const char *base = getenv("TMPDIR");
    if (!*folder) {
        snprintf(folder, sizeof folder, "%s/rnnd-fuzz-XXXXXX", base ? base : "/tmp");
        if (!mkdtemp(folder))
            abort();
        snprintf(input, sizeof input, "%s/%s", folder, target->file);
    }
    unlink(input);
    FILE *f = fopen(input, "w");
    if (!f || fwrite(data, 1, size, f) != size || fclose(f) != 0)
        abort();
}

void fuzz_one(const struct fuzz_target *target, const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    if (!text)
        abort();
    memcpy(text, data, size);
    text[size] = 0;
    if (target->file)
        write_input(target, data, size);
    target->read(input, text, size);
    free(text);
}

void fuzz_end(void)
{
    if (!*folder)
        return;
    unlink(input);
    rmdir(folder);
}
