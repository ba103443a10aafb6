/*
 * simd_outer.h - sums of outer products: the gradients of weights, C += A^T B.
 *
 * Part of simd.c. Takes at most OUTER_ROWS rows of A and B at a time, given row by row for B,
 * so that shifted rows need no copy. Both are packed: A in blocks of OUTER_BLOCK columns
 * [k][OUTER_BLOCK], B in the panels of simd_product.h, one at a time; a panel stays in the
 * first-level cache while all blocks pass.
 */

/* The blocks of a group share one packed panel of B. */
enum { OUTER_BLOCK = 6, OUTER_GROUP = 64 };
/* Floats of a packed block; copying whole vectors writes past its end. */
enum { OUTER_STRIDE = RNND__OUTER_ROWS * OUTER_BLOCK + 16 };

_Static_assert(OUTER_GROUP * OUTER_STRIDE + RNND__OUTER_ROWS * TILE_VECTORS * 16 <=
                   RNND__OUTER_WORK,
               "the work space holds a group and a panel");

/* c (+)= a b, for `rows` rows of c. */
INLINE void outer(vf *sum, const float *a, int64_t K, const float *b, int rows, int nv)
{
    vf acc[OUTER_BLOCK][TILE_VECTORS];
    UNROLL
    for (int r = 0; r < rows; r++) {
        UNROLL
        for (int v = 0; v < nv; v++)
            acc[r][v] = vset(0);
    }
    for (int64_t k = 0; k < K; k++) {
        vf w[TILE_VECTORS];
        UNROLL
        for (int v = 0; v < nv; v++)
            w[v] = *(const vf *)(b + (k * nv + v) * VL);
        UNROLL
        for (int r = 0; r < rows; r++) {
            vf x = vset(a[k * OUTER_BLOCK + r]);
            UNROLL
            for (int v = 0; v < nv; v++)
                acc[r][v] += x * w[v];
        }
    }
    UNROLL
    for (int r = 0; r < rows; r++) {
        UNROLL
        for (int v = 0; v < nv; v++)
            sum[r * nv + v] = acc[r][v];
    }
}

typedef void outer_of(vf *sum, const float *a, int64_t K, const float *b);

#define OUTER(rows, nv)                                                               \
    static void outer_##rows##_##nv(vf *sum, const float *a, int64_t K, const float *b) \
    {                                                                                 \
        outer(sum, a, K, b, rows, nv);                                                \
    }
#define OUTERS(rows) OUTER(rows, 1) OUTER(rows, 2) OUTER(rows, 3) OUTER(rows, 4)
#define OUTERS_OF(rows) {outer_##rows##_1, outer_##rows##_2, outer_##rows##_3, outer_##rows##_4}

#if defined(__AVX512F__) || defined(__aarch64__)
enum { OUTER_TILE = 6 };
#else
enum { OUTER_TILE = 3 };           /* half a block: fewer registers */
#endif

OUTERS(1)
OUTERS(2)
OUTERS(3)
OUTERS(4)
OUTERS(5)
OUTERS(6)

static outer_of *const outers[OUTER_BLOCK][TILE_VECTORS] = {
    OUTERS_OF(1), OUTERS_OF(2), OUTERS_OF(3), OUTERS_OF(4), OUTERS_OF(5), OUTERS_OF(6),
};

/* m columns from a on, in blocks. Whole vectors are copied, of which the next row of the
   block overwrites the surplus. */
static void outer_pack_a(float *out, const float *a, int64_t lda, int64_t K, int64_t m)
{
    for (int64_t k = 0; k < K; k++)
        for (int64_t i = 0; i < m; i += OUTER_BLOCK) {
            float *p = out + i / OUTER_BLOCK * OUTER_STRIDE + k * OUTER_BLOCK;
            const float *from = a + k * lda + i;
            for (int64_t j = 0; j < OUTER_BLOCK && i + j < m; j += VL)
                vstore(p + j, vget(from + j, m - i - j < VL ? (int)(m - i - j) : VL));
        }
}

/* Vectors from[0] .. from[1]-1 of the rows of b. */
static void outer_pack_b(float *out, const struct rnnd_outer *o, const int64_t from[2])
{
    int64_t nv = from[1] - from[0];
    for (int64_t k = 0; k < o->k; k++)
        for (int64_t v = 0; v < nv; v++) {
            int64_t j = (from[0] + v) * VL;
            vf x = o->b[k] ? vget(o->b[k] + j, lanes_of(o->n, from[0] + v)) : vset(0);
            vstore(out + (k * nv + v) * VL, x);
        }
}

static void outer_add(const struct rnnd_outer *o, const vf *sum, int64_t row, int rows,
                      const int64_t from[2])
{
    int nv = (int)(from[1] - from[0]);
    for (int r = 0; r < rows; r++) {
        float *c = o->c + (row + r) * o->ldc + from[0] * VL;
        for (int v = 0; v < nv; v++) {
            int m = lanes_of(o->n, from[0] + v);
            vput(c + v * VL, vget(c + v * VL, m) + sum[r * nv + v], m);
        }
    }
}

/* Asks for the lines of C early: they come while the sums are made. */
static void outer_prefetch(const struct rnnd_outer *o, int64_t row, int rows, int64_t column)
{
    for (int r = 0; r < rows; r++)
        for (int64_t j = 0; j < TILE_VECTORS * VL; j += 16)
            __builtin_prefetch(o->c + (row + r) * o->ldc + column + j, 1);
}

/* Rows first .. first+m-1 of C, at most a group of blocks. */
static void outer_group(const struct rnnd_outer *o, int64_t first, int64_t m)
{
    float *a = o->work, *b = a + OUTER_GROUP * OUTER_STRIDE;
    int64_t panels = blocks_of(vectors_of(o->n), TILE_VECTORS);
    outer_pack_a(a, o->a + first, o->lda, o->k, m);
    for (int64_t panel = 0; panel < panels; panel++) {
        int64_t from[2];
        panel_vectors(o->n, panel, from);
        outer_pack_b(b, o, from);
        for (int64_t i = 0; i < m; i += OUTER_TILE) {
            vf sum[OUTER_BLOCK * TILE_VECTORS];
            int rows = m - i < OUTER_TILE ? (int)(m - i) : OUTER_TILE;
            const float *block = a + i / OUTER_BLOCK * OUTER_STRIDE + i % OUTER_BLOCK;
            outer_prefetch(o, first + i, rows, from[0] * VL);
            outers[rows - 1][from[1] - from[0] - 1](sum, block, o->k, b);
            outer_add(o, sum, first + i, rows, from);
        }
    }
}

static void outer_products(const struct rnnd_outer *o)
{
    enum { GROUP = OUTER_GROUP * OUTER_BLOCK };
    for (int64_t i = 0; i < o->m; i += GROUP)
        outer_group(o, i, o->m - i < GROUP ? o->m - i : GROUP);
}
