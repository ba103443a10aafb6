/*
 * simd_gemm.h - the products of whole matrices with factors in bf16.
 *
 * Part of simd.c. Rows of A and panels of B are rounded and packed block by block, into
 * what the second-level cache holds; the inner loop is that of simd_product.h. Elements
 * are pairs of factors (bf16.h).
 */

/* A block of A has so many elements and a panel of B so many, and a row at most
   GEMM_DEPTH; rows begin on different cache lines. */
enum {
    GEMM_DEPTH = 256,
    GEMM_PANEL = GEMM_DEPTH * TILE_VECTORS * VL,
    GEMM_BLOCK = RNND__OUTER_WORK - GEMM_PANEL
};

static int64_t gemm_stride(int64_t K)
{
    return (depth_of(true, K) + 31) / 16 * 16;
}

/* Rows i .. i+rows-1 of op(A) and C, and factors k .. k+K-1 of both sides. */
struct gemm_block {
    const struct rnnd__matmul *s;
    int64_t i, rows, k, K;
    /* of the packed rows */
    int64_t stride;
    float *C;
};

static void gemm_pack_rows(float *out, const struct gemm_block *b, const float *A)
{
    const struct rnnd__matmul *s = b->s;
    for (int64_t r = 0; r < b->rows; r++, out += b->stride) {
        float row[2 * GEMM_DEPTH];
        const float *in = A + (b->i + r) * s->lda + b->k;
        if (s->ta) {
            for (int64_t k = 0; k < b->K; k++)
                row[k] = A[(b->k + k) * s->lda + b->i + r];
            in = row;
        }
        round_row(out, in, b->K);
    }
}

/* Vectors from[0] .. from[1]-1 of columns. */
static void gemm_pack_panel(float *out, const struct gemm_block *b, const float *B,
                            const int64_t from[2])
{
    const struct rnnd__matmul *s = b->s;
    int64_t stride = (from[1] - from[0]) * VL;
    for (int64_t v = from[0]; v < from[1]; v++, out += VL) {
        int m = lanes_of(s->n, v);
        const float *in = B + (s->tb ? v * VL * s->ldb + b->k : b->k * s->ldb + v * VL);
        if (s->tb)
            pack_columns(out, stride, in, s->ldb, m, b->K);
        for (int64_t k = 0; k < b->K && !s->tb; k += 2, in += 2 * s->ldb)
            vstore(out + k / 2 * stride,
                   vpair_rows(in, k + 1 < b->K ? in + s->ldb : NULL, m));
    }
}

/* Puts the sums of a tile into C, or adds them, where they are not the first. */
static void gemm_store(const struct gemm_block *b, const struct tile *t, int64_t v)
{
    const struct rnnd__matmul *s = b->s;
    float beta = b->k == 0 ? s->beta : 1;
    for (int r = 0; r < t->rows; r++)
        for (int i = 0; i < t->nv; i++) {
            float *c = b->C + (b->i + t->first + r) * s->ldc + (v + i) * VL;
            int m = lanes_of(s->n, v + i);
            vf sum = t->sum[r * t->nv + i] * s->alpha;
            vput(c, beta == 0 ? sum : vget(c, m) * beta + sum, m);
        }
}

static void gemm_panel(const struct gemm_block *b, const float *rows,
                       const float *panel, const int64_t from[2])
{
    int nv = (int)(from[1] - from[0]);
    int64_t tiles = blocks_of(b->rows, tile_rows[nv]);
    struct tile_factor a = {rows, b->stride, true};
    struct prefetch x = no_prefetch(panel);
    for (int64_t i = 0; i < tiles; i++) {
        struct tile t;
        tile_place(&t, b->rows, i, tiles, nv);
        tile_product(&t, false, &a, depth_of(true, b->K), panel, &x);
        gemm_store(b, &t, from[0]);
    }
}

/* Also where k is 0: C = beta C. */
static void gemm_bf16(const struct rnnd__matmul *s, float *C, const float *A,
                      const float *B, float *work)
{
    float *panel = work, *rows = work + GEMM_PANEL;
    int64_t most = s->k < 1 ? 1 : s->k < 2 * GEMM_DEPTH ? s->k : 2 * GEMM_DEPTH;
    int64_t stride = gemm_stride(most);
    int64_t blocks = blocks_of(s->m, GEMM_BLOCK / stride);
    int64_t panels = blocks_of(vectors_of(s->n), TILE_VECTORS);
    for (int64_t i = 0; i < blocks; i++)
        for (int64_t k = 0; k == 0 || k < s->k; k += most) {
            struct gemm_block b = {
                .s = s, .i = block_at(s->m, i, blocks), .k = k, .stride = stride};
            b.rows = block_at(s->m, i + 1, blocks) - b.i;
            b.K = s->k - k < most ? s->k - k : most;
            b.C = C;
            gemm_pack_rows(rows, &b, A);
            for (int64_t p = 0; p < panels; p++) {
                int64_t from[2];
                panel_vectors(s->n, p, from);
                gemm_pack_panel(panel, &b, B, from);
                gemm_panel(&b, rows, panel, from);
            }
        }
}
