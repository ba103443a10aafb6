/*
 * dropout.cu - dropout by masks that depend on sequence and step, not on the batch.
 */
#include "base/random.h"
#include "cuda_backend.cuh"

struct rnnd__drop {
    uint64_t key;
    uint32_t threshold;
    float scale;
    bool by_sequence, timeless;
    int64_t rows, cols, T, first;
    const int64_t *off, *id;
};

/* A thread for four columns: what one draw is enough for. */
__global__ void __launch_bounds__(RNND__BLOCK)
    drop_units(float *out, const float *in, rnnd__drop d)
{
    int64_t quads = (d.cols + 3) / 4;
    for (int64_t i = thread_index(); i < d.rows * quads; i += thread_count()) {
        rnnd__place p = place_of(i, quads);
        int64_t t = d.by_sequence ? 0 : step_of_row(d.off, d.T, p.row);
        int64_t j = d.by_sequence ? p.row : p.row - __ldg(d.off + t);
        if (PLANTED(15, "masks by the place in the batch, not by the sequence"))
            j = p.row % 2;
        rnnd__random r = rnnd__dropout_words(d.key, __ldg(d.id + j),
                                             d.timeless ? 0 : d.first + t, 4 * p.col);
        int64_t at = p.row * d.cols + 4 * p.col, left = d.cols - 4 * p.col;
        UNROLL
        for (int k = 0; k < 4; k++)
            if (k < left)
                out[at + k] = r.word[k] < d.threshold ? 0.0f : in[at + k] * d.scale;
    }
}

void rnnd__cuda_dropout(struct rnnd_backend *be, const struct rnnd__dropout *s,
                        struct rnnd__buf out, struct rnnd__buf in)
{
    struct rnnd__cuda *cuda = rnnd__cuda_of(be);
    const struct rnnd__packed *b = s->batch;
    rnnd__drop d = {s->key,
                    rnnd__dropout_threshold(s->p),
                    (float)(1.0 / (1.0 - s->p)),
                    s->by_sequence,
                    s->by_sequence || s->kind == RNND_DROPOUT_SEQUENCE,
                    s->by_sequence ? b->N : b->R,
                    s->cols,
                    b->T,
                    b->first,
                    rnnd__longs(b->d_off),
                    rnnd__longs(b->d_id)};
    int64_t threads = d.rows * rnnd__ratio_up(d.cols, 4);
    if (threads > 0 && rnnd__cuda_sound(cuda))
        rnnd__cuda_ok(cuda,
                      launch(drop_units, rnnd__blocks(threads), dim3(RNND__BLOCK), 0,
                             cuda->stream, rnnd__floats(out), rnnd__floats(in), d),
                      "dropout");
}
