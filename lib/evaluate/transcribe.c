/*
 * transcribe.c - decodes the sequences of a batch, and compares them with their
 * targets.
 */
#include "evaluate/transcribe.h"

#include <stdlib.h>

#include "base/status.h"
#include "data/batch.h"
#include "data/strings.h"
#include "evaluate/decode.h"

struct rnnd__transcriber {
    const struct rnnd_dataset *data;
    int64_t outputs;
    /* of one sequence: [room] its scores and its string; [room+1] */
    const float **row;
    int32_t *label;
    int64_t *work;
    /* steps */
    int64_t room;
};

int rnnd__transcriber_new(const struct rnnd_dataset *data,
                          struct rnnd__transcriber **out)
{
    struct rnnd__transcriber *t;
    RNND_TRY(RNND_NEW(&t, 1, "strings"));
    t->data = data;
    t->outputs = rnnd_dataset_info(data)->outputs;
    *out = t;
    return 0;
}

void rnnd__transcriber_free(struct rnnd__transcriber *t)
{
    if (!t)
        return;
    free(t->row);
    free(t->label);
    free(t->work);
    free(t);
}

/* A target has at most as many labels as its sequence has steps. */
static int reserve(struct rnnd__transcriber *t, int64_t steps)
{
    if (steps <= t->room && t->row)
        return 0;
    RNND_TRY(RNND_GROW(&t->row, steps, "strings"));
    RNND_TRY(RNND_GROW(&t->label, steps, "strings"));
    RNND_TRY(RNND_GROW(&t->work, steps + 1, "strings"));
    t->room = steps;
    return 0;
}

int rnnd__transcriber_add(struct rnnd__transcriber *t, const struct rnnd_batch *batch,
                          const float *score, struct rnnd__figures *f)
{
    const struct rnnd__packed *p = &batch->packed;
    RNND_TRY(reserve(t, p->T));
    for (int64_t j = 0; j < p->N; j++) {
        int64_t labels, T = p->len[j];
        const int32_t *target = rnnd__string_of(t->data, batch->sequence[j], &labels);
        if (rnnd__string_kind(t->data, batch->sequence[j]) == RNND__STRING_UNREACHABLE)
            continue;
        for (int64_t s = 0; s < T; s++)
            t->row[s] = score + (p->off[s] + j) * t->outputs;
        int64_t found = rnnd__decode_best(t->row, T, t->outputs, t->label);
        rnnd__figures_add_string(
            f, rnnd__decode_distance(t->label, found, target, labels, t->work), labels);
    }
    return 0;
}
