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
    struct rnnd__decoder *decoder;
    /* [room] of edit distances */
    int64_t *work, room;
};

int rnnd__transcriber_new(const struct rnnd_options *opt,
                          const struct rnnd_model_spec *spec,
                          const struct rnnd_dataset *data,
                          struct rnnd__transcriber **out)
{
    struct rnnd__decoder *decoder;
    struct rnnd__transcriber *t;
    *out = NULL;
    RNND_TRY(rnnd__decoder_new(opt, spec, &decoder));
    if (!decoder)
        return 0;
    int status = RNND_NEW(&t, 1, "strings");
    if (status < 0) {
        rnnd__decoder_free(decoder);
        return status;
    }
    t->data = data;
    t->outputs = spec->outputs;
    t->decoder = decoder;
    *out = t;
    return 0;
}

void rnnd__transcriber_free(struct rnnd__transcriber *t)
{
    if (!t)
        return;
    rnnd__decoder_free(t->decoder);
    free(t->work);
    free(t);
}

/* Sequence j of a batch. A string that fits has no more labels than steps. */
static int add_one(struct rnnd__transcriber *t, const struct rnnd_batch *batch,
                   int64_t j, const float *score, struct rnnd__figures *f)
{
    const struct rnnd__packed *p = &batch->packed;
    int64_t labels, count, T = p->len[j];
    const int32_t *target = rnnd__string_of(t->data, batch->sequence[j], &labels);
    const int32_t *label;
    const float **row;
    if (rnnd__string_kind(t->data, batch->sequence[j]) == RNND__STRING_UNREACHABLE)
        return 0;
    RNND_TRY(rnnd__decoder_rows(t->decoder, T, &row));
    for (int64_t s = 0; s < T; s++)
        row[s] = score + (p->off[s] + j) * t->outputs;
    RNND_TRY(rnnd__decoder_string(t->decoder, T, &label, &count));
    rnnd__figures_add_string(
        f, rnnd__decode_distance(label, count, target, labels, t->work), labels);
    return 0;
}

int rnnd__transcriber_add(struct rnnd__transcriber *t, const struct rnnd_batch *batch,
                          const float *score, struct rnnd__figures *f)
{
    if (batch->packed.T >= t->room) {
        RNND_TRY(RNND_GROW(&t->work, batch->packed.T + 1, "strings"));
        t->room = batch->packed.T + 1;
    }
    for (int64_t j = 0; j < batch->packed.N; j++)
        RNND_TRY(add_one(t, batch, j, score, f));
    return 0;
}
