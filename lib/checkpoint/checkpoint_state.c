/*
 * checkpoint_state.c - the train state, as /state/... of a checkpoint.
 *
 * One dataset per number, so that other tools can read them by name and each has a
 * checksum; carried hidden states as arrays. Knows the meaning of none of them.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "checkpoint/checkpoint.h"
#include "hdf/hdf.h"

void rnnd__carry_clear(struct rnnd__carry *carry)
{
    free(carry->id);
    free(carry->h);
    free(carry->c);
    memset(carry, 0, sizeof *carry);
}

/* ---- numbers */

/* Each is an array /state/NAME of one element. */
static const struct number {
    const char *name;
    size_t offset;
    enum rnnd__hdf_type type;
    /* files of version 0.1 may lack it: then it is 0 */
    bool later;
} numbers[] = {
#define NUMBER(text, field, kind)                                          \
    {                                                                      \
        .name = text, .offset = offsetof(struct rnnd__train_state, field), \
        .type = kind                                                       \
    }
#define INTEGER(field) NUMBER(#field, field, RNND_I64)
#define REAL(field)    NUMBER(#field, field, RNND_F64)
    INTEGER(update),
    INTEGER(applied),
    INTEGER(epoch),
    INTEGER(entry),
    NUMBER("group", entry_updates, RNND_I64),
    INTEGER(validated),
    INTEGER(patience_count),
    INTEGER(plateau_count),
    INTEGER(log_updates),
    INTEGER(fingerprint),
    {.name = "valid_fingerprint",
     .offset = offsetof(struct rnnd__train_state, valid_fingerprint),
     .type = RNND_I64,
     .later = true},
    NUMBER("best_loss", best_cost, RNND_F64),
    NUMBER("patience_loss", patience_cost, RNND_F64),
    REAL(plateau_loss),
    REAL(plateau_factor),
    REAL(log_loss),
    REAL(log_targets),
    {.name = "log_weight",
     .offset = offsetof(struct rnnd__train_state, log_weight),
     .type = RNND_F64,
     .later = true},
    REAL(log_steps),
    REAL(log_seconds),
    REAL(log_wait),
    REAL(log_straggler),
    REAL(last_lr),
    REAL(last_norm),
#undef NUMBER
#undef INTEGER
#undef REAL
};
enum { NUMBERS = sizeof numbers / sizeof *numbers };

static int save_numbers(struct rnnd__hdf *file, const struct rnnd__train_state *state)
{
    const int64_t one = 1;
    for (int i = 0; i < NUMBERS; i++) {
        char object[64];
        snprintf(object, sizeof object, "/state/%s", numbers[i].name);
        RNND_TRY(rnnd__hdf_write(file, object, numbers[i].type, 1, &one, true,
                                 (const char *)state + numbers[i].offset));
    }
    /* Always 0, and not read here; but version 0.1 refuses a checkpoint without it. */
    const double seconds = 0;
    RNND_TRY(
        rnnd__hdf_write(file, "/state/seconds", RNND_F64, 1, &one, true, &seconds));
    const char *launch = state->launch, *records = state->records;
    RNND_TRY(rnnd__hdf_write_strings(file, "/state/launch", &launch, 1));
    return records ? rnnd__hdf_write_strings(file, "/state/records", &records, 1) : 0;
}

/* What could not be written to metrics.jsonl; most files have none. */
static int load_records(struct rnnd__hdf *file, struct rnnd__train_state *state)
{
    char **text = NULL;
    int64_t count;
    if (!rnnd__hdf_has(file, "/state/records"))
        return 0;
    RNND_TRY(rnnd__hdf_read_strings(file, "/state/records", &text, &count));
    char *copy = count ? strdup(text[0]) : NULL;
    free(text);
    if (count && !copy)
        return rnnd__fail_memory(0, "records");
    state->records = copy;
    return 0;
}

static int load_numbers(struct rnnd__hdf *file, struct rnnd__train_state *state)
{
    for (int i = 0; i < NUMBERS; i++) {
        char object[64];
        snprintf(object, sizeof object, "/state/%s", numbers[i].name);
        if (numbers[i].later && !rnnd__hdf_has(file, object))
            continue;
        RNND_TRY(rnnd__hdf_read(file, object, 0, 1, numbers[i].type,
                                (char *)state + numbers[i].offset));
    }
    if (!rnnd__hdf_has(file, "/state/log_weight")) /* there were no weights but 1 */
        state->log_weight = state->log_targets;
    char **launch = NULL;
    int64_t count;
    RNND_TRY(rnnd__hdf_read_strings(file, "/state/launch", &launch, &count));
    snprintf(state->launch, sizeof state->launch, "%s", count ? launch[0] : "");
    free(launch);
    return load_records(file, state);
}

/* ---- carried states */

static int save_carry(struct rnnd__hdf *file, const struct rnnd__carry *carry)
{
    int64_t dim[] = {carry->count, carry->width};
    if (carry->count == 0)
        return 0;
    RNND_TRY(
        rnnd__hdf_write(file, "/state/carry/id", RNND_I64, 1, dim, true, carry->id));
    RNND_TRY(rnnd__hdf_write(file, "/state/carry/h", RNND_F32, 2, dim, true, carry->h));
    if (!carry->c)
        return 0;
    return rnnd__hdf_write(file, "/state/carry/c", RNND_F32, 2, dim, true, carry->c);
}

/* An array [count, width], one row per id. */
static int load_rows(struct rnnd__hdf *file, const char *object,
                     const struct rnnd__carry *carry, float **out)
{
    struct rnnd__hdf_shape shape;
    RNND_TRY(rnnd__hdf_shape(file, object, &shape));
    if (shape.rank != 2 || shape.dim[0] != carry->count || shape.dim[1] != carry->width)
        return rnnd__fail(RNND_EFILE, "%s: %s: expected shape [%lld, %lld]",
                          rnnd__hdf_path(file), object, (long long)carry->count,
                          (long long)carry->width);
    RNND_TRY(RNND_NEW(out, carry->count * carry->width, object));
    return rnnd__hdf_read(file, object, 0, carry->count, RNND_F32, *out);
}

static int load_carry(struct rnnd__hdf *file, int64_t width, struct rnnd__carry *carry)
{
    struct rnnd__hdf_shape shape;
    rnnd__carry_clear(carry);
    if (!rnnd__hdf_has(file, "/state/carry/id"))
        return 0;
    RNND_TRY(rnnd__hdf_shape(file, "/state/carry/id", &shape));
    carry->count = shape.rank == 1 ? shape.dim[0] : 1;
    carry->width = width;
    RNND_TRY(RNND_NEW(&carry->id, carry->count, "carried states"));
    RNND_TRY(
        rnnd__hdf_read(file, "/state/carry/id", 0, carry->count, RNND_I64, carry->id));
    RNND_TRY(load_rows(file, "/state/carry/h", carry, &carry->h));
    if (!rnnd__hdf_has(file, "/state/carry/c"))
        return 0;
    return load_rows(file, "/state/carry/c", carry, &carry->c);
}

/* ---- both */

int rnnd__checkpoint_save_state(struct rnnd__hdf *file,
                                const struct rnnd__train_state *state)
{
    RNND_TRY(save_numbers(file, state));
    return save_carry(file, &state->carry);
}

int rnnd__checkpoint_load_state(struct rnnd__hdf *file, int64_t width,
                                struct rnnd__train_state *state)
{
    struct rnnd__train_state read = {.update = 0};
    if (!rnnd__hdf_has(file, "/state"))
        return rnnd__fail(RNND_EFILE,
                          "%s: has no /state: a run can start from it (--init), but "
                          "not resume",
                          rnnd__hdf_path(file));
    int status = load_numbers(file, &read);
    if (status == 0)
        status = load_carry(file, width, &read.carry);
    if (status < 0) {
        rnnd__carry_clear(&read.carry);
        free(read.records);
        return status;
    }
    rnnd__carry_clear(&state->carry);
    free(state->records);
    *state = read;
    return 0;
}
