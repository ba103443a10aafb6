/*
 * simd_product.h - the product inside a time step: a few rows times weights packed in panels.
 *
 * Part of simd.c. The weights of a layer are packed once a pass; a panel holds the nv <= 4
 * vectors of columns that one tile computes, [K][nv][VL], so the inner loop reads it from
 * front to back. A tile keeps rows x nv sums in registers and leaves them in memory for the
 * cell, which finds them in the first-level cache.
 */

enum { TILE_VECTORS = 4, TILE_ROWS = 8 };

/* Rows of a tile by its vectors: as many sums as the registers hold. */
#if defined(__AVX512F__) || defined(__aarch64__)
static const int tile_rows[TILE_VECTORS + 1] = {0, 6, 6, 8, 6};
#else
static const int tile_rows[TILE_VECTORS + 1] = {0, 6, 6, 4, 3};
#endif

/* Columns v .. v+nv-1 (vectors) of the result, for rows first .. first+rows-1. */
struct tile {
    int64_t first;
    int rows, nv;
    vf sum[TILE_ROWS * TILE_VECTORS]; /* [rows][nv] */
};

/* ---- the inner loop ----------------------------------------------------------------- */

#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 8")
#endif

/* sum (+)= a [rows,K] times the panel b [K,nv]; rows and nv are constants where inlined. */
INLINE void product(vf *sum, bool more, const float *a, int64_t lda, int64_t K, const float *b,
                    int rows, int nv)
{
    vf acc[TILE_ROWS][TILE_VECTORS];
    UNROLL
    for (int r = 0; r < rows; r++) {
        UNROLL
        for (int v = 0; v < nv; v++)
            acc[r][v] = more ? sum[r * nv + v] : vset(0);
    }
    for (int64_t k = 0; k < K; k++) {
        vf w[TILE_VECTORS];
        UNROLL
        for (int v = 0; v < nv; v++)
            w[v] = *(const vf *)(b + (k * nv + v) * VL);
        UNROLL
        for (int r = 0; r < rows; r++) {
            vf x = vset(a[r * lda + k]);
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

typedef void product_of(vf *sum, bool more, const float *a, int64_t lda, int64_t K,
                        const float *b);

#define PRODUCT(rows, nv)                                                              \
    static void product_##rows##_##nv(vf *sum, bool more, const float *a, int64_t lda, \
                                      int64_t K, const float *b)                       \
    {                                                                                  \
        product(sum, more, a, lda, K, b, rows, nv);                                    \
    }
#define PRODUCTS(rows) PRODUCT(rows, 1) PRODUCT(rows, 2) PRODUCT(rows, 3) PRODUCT(rows, 4)

PRODUCTS(1)
PRODUCTS(2)
PRODUCTS(3)
PRODUCTS(4)
PRODUCTS(5)
PRODUCTS(6)
PRODUCT(7, 3)
PRODUCT(8, 3)

#define BY_VECTORS(rows) \
    {product_##rows##_1, product_##rows##_2, product_##rows##_3, product_##rows##_4}

static product_of *const products[TILE_ROWS][TILE_VECTORS] = {
    BY_VECTORS(1), BY_VECTORS(2), BY_VECTORS(3), BY_VECTORS(4), BY_VECTORS(5), BY_VECTORS(6),
    {NULL, NULL, product_7_3, NULL}, {NULL, NULL, product_8_3, NULL},
};

static void tile_product(struct tile *t, bool more, const float *a, int64_t lda, int64_t K,
                         const float *b)
{
    products[t->rows - 1][t->nv - 1](t->sum, more, a + t->first * lda, lda, K, b);
}

static void tile_zero(struct tile *t)
{
    for (int i = 0; i < t->rows * t->nv; i++)
        t->sum[i] = vset(0);
}

/* ---- dividing work into tiles ------------------------------------------------------- */

/* Block i of `blocks` about equal ones of n. */
INLINE int64_t block_at(int64_t n, int64_t i, int64_t blocks)
{
    return n * i / blocks;
}

INLINE int64_t blocks_of(int64_t n, int64_t most)
{
    return (n + most - 1) / most;
}

/* ---- packing ------------------------------------------------------------------------ */

static int64_t vectors_of(int64_t n)
{
    return (n + VL - 1) / VL;
}

/* Unit vectors of a panel of the backward product, or of an RNN cell's forward one: vectors
   from[0] .. from[1]-1 of the panel'th of about equal panels. */
static void panel_vectors(int64_t H, int64_t panel, int64_t from[2])
{
    int64_t vectors = vectors_of(H), panels = blocks_of(vectors, TILE_VECTORS);
    from[0] = block_at(vectors, panel, panels);
    from[1] = block_at(vectors, panel + 1, panels);
}

static int64_t panels_forward(enum rnnd_cell cell, int64_t H)
{
    int64_t vectors = vectors_of(H);
    return rnnd_cell_gates(cell) > 1 ? vectors : blocks_of(vectors, TILE_VECTORS);
}

static int64_t panels_backward(enum rnnd_cell cell, int64_t H)
{
    (void)cell;
    return blocks_of(vectors_of(H), TILE_VECTORS);
}

static int lanes_of(int64_t H, int64_t vector)
{
    return H - vector * VL < VL ? (int)(H - vector * VL) : VL;
}

/* Columns are rows of W_hh: the G gates of a vector of units, or vectors of units. */
static void pack_forward(enum rnnd_cell cell, int64_t H, int64_t panel, float *out,
                         const float *w)
{
    int G = rnnd_cell_gates(cell);
    int64_t from[2] = {panel, panel + 1};
    if (G == 1)
        panel_vectors(H, panel, from);
    int64_t nv = G * (from[1] - from[0]);
    float *p = out + from[0] * VL * G * H;
    for (int64_t u = from[0]; u < from[1]; u++)
        for (int g = 0; g < G; g++, p += VL)
            for (int64_t k = 0; k < H; k++)
                vstore(p + k * nv * VL, vgather(w + (g * H + u * VL) * H + k, H,
                                                lanes_of(H, u)));
}

/* Columns are columns of W_hh. */
static void pack_backward(enum rnnd_cell cell, int64_t H, int64_t panel, float *out,
                          const float *w)
{
    int64_t from[2], K = rnnd_cell_gates(cell) * H;
    panel_vectors(H, panel, from);
    int64_t nv = from[1] - from[0];
    float *p = out + from[0] * VL * K;
    for (int64_t u = from[0]; u < from[1]; u++, p += VL)
        for (int64_t k = 0; k < K; k++)
            vstore(p + k * nv * VL, vget(w + k * H + u * VL, lanes_of(H, u)));
}
