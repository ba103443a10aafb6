/*
 * simd_product.h - the product inside a time step: a few rows times weights packed in
 * panels.
 *
 * Part of simd.c. The weights of a layer are packed once a pass; a panel holds the nv
 * <= 4 vectors of columns that one tile computes, [K][nv][VL], so the inner loop reads
 * it sequentially. A tile keeps rows x nv sums in registers and stores them for the
 * cell, which finds them in the first-level cache.
 *
 * With factors in bf16 the same loops run over pairs (bf16.h), half as many: K counts
 * elements of 32 bits.
 */

enum { TILE_VECTORS = 4, TILE_ROWS = 8 };

/* Rows of a tile, by its vectors: as many sums as fit into the registers. */
#if defined(__AVX512F__) || defined(__aarch64__)
static const int tile_rows[TILE_VECTORS + 1] = {0, 6, 6, 8, 6};
#else
static const int tile_rows[TILE_VECTORS + 1] = {0, 6, 6, 4, 3};
#endif

/* Columns v .. v+nv-1 (vectors) of the result, for rows first .. first+rows-1. */
struct tile {
    int64_t first;
    int rows, nv;
    /* [rows][nv] */
    vf sum[TILE_ROWS * TILE_VECTORS];
};

/* ---- the inner loop */

/* Two pieces of memory that are needed soon, prefetched bit by bit while a tile is
   summed. The hardware prefetcher does not predict them. */
struct prefetch {
    const char *p[2];
    /* bytes for each k */
    int64_t step[2];
};

static struct prefetch no_prefetch(const float *any)
{
    return (struct prefetch){{(const char *)any, (const char *)any}, {0, 0}};
}

/* The i'th of count tiles of depth K prefetches its part of `floats` floats at p. */
static void prefetch_part(struct prefetch *x, int which, const float *p, int64_t floats,
                          int64_t i, int64_t count, int64_t K)
{
    int64_t bytes = floats * (int64_t)sizeof *p;
    x->p[which] = (const char *)p + bytes * i / count;
    x->step[which] = (bytes / count + K - 1) / K;
}

/* A product of rows [rows,K] and a panel [K,nv]. */
struct factors {
    /* element (r, k) is a[r*by_row + k*by_k] */
    const float *a;
    int64_t by_row, by_k;
    const float *b;
    int64_t K;
    bool bf16;
};

/* sum (+)= that product; rows, nv and f.bf16 are constants where inlined. */
INLINE void product(vf *sum, bool more, struct factors f, const struct prefetch *x,
                    int rows, int nv)
{
    const char *p0 = x->p[0], *p1 = x->p[1];
    int64_t s0 = x->step[0], s1 = x->step[1];
    vf acc[TILE_ROWS][TILE_VECTORS];
    UNROLL
    for (int r = 0; r < rows; r++) {
        UNROLL
        for (int v = 0; v < nv; v++)
            acc[r][v] = more ? sum[r * nv + v] : vset(0);
    }
    for (int64_t k = 0; k < f.K; k++) {
        vf w[TILE_VECTORS];
        __builtin_prefetch(p0, 0, 2);
        __builtin_prefetch(p1, 0, 2);
        p0 += s0;
        p1 += s1;
        UNROLL
        for (int v = 0; v < nv; v++)
            w[v] = *(const vf *)(f.b + (k * nv + v) * VL);
        UNROLL
        for (int r = 0; r < rows; r++) {
            const float *a = f.a + r * f.by_row + k * f.by_k;
            vf y = f.bf16 ? vset_pair(a) : vset(*a);
            UNROLL
            for (int v = 0; v < nv; v++)
                acc[r][v] = f.bf16 ? vdot(acc[r][v], y, w[v]) : acc[r][v] + y * w[v];
        }
    }
    UNROLL
    for (int r = 0; r < rows; r++) {
        UNROLL
        for (int v = 0; v < nv; v++)
            sum[r * nv + v] = acc[r][v];
    }
}

/* One function for each shape, with as few structs on the stack as possible: reading
   them back costs as much as a few steps of the sum. lda is the stride of rows. */
typedef void product_of(vf *sum, bool more, const float *a, int64_t lda, int64_t K,
                        const float *b, const struct prefetch *x);

#define SHAPE(name, bf16, rows, nv, by_row, by_k)                                     \
    static void name##_##rows##_##nv(vf *sum, bool more, const float *a, int64_t lda, \
                                     int64_t K, const float *b,                       \
                                     const struct prefetch *x)                        \
    {                                                                                 \
        (void)lda;                                                                    \
        product(sum, more, (struct factors){a, by_row, by_k, b, K, bf16}, x, rows,    \
                nv);                                                                  \
    }
#define SHAPES(name, bf16, rows, by_row, by_k) \
    SHAPE(name, bf16, rows, 1, by_row, by_k)   \
    SHAPE(name, bf16, rows, 2, by_row, by_k)   \
    SHAPE(name, bf16, rows, 3, by_row, by_k)   \
    SHAPE(name, bf16, rows, 4, by_row, by_k)
#define ALL_SHAPES(name, bf16, by_row, by_k) \
    SHAPES(name, bf16, 1, by_row, by_k)      \
    SHAPES(name, bf16, 2, by_row, by_k)      \
    SHAPES(name, bf16, 3, by_row, by_k)      \
    SHAPES(name, bf16, 4, by_row, by_k)      \
    SHAPES(name, bf16, 5, by_row, by_k)      \
    SHAPES(name, bf16, 6, by_row, by_k)
#define SHAPES_OF(name, rows)                                                      \
    {                                                                              \
        name##_##rows##_1, name##_##rows##_2, name##_##rows##_3, name##_##rows##_4 \
    }
#define ALL_SHAPES_OF(name)                                                         \
    SHAPES_OF(name, 1), SHAPES_OF(name, 2), SHAPES_OF(name, 3), SHAPES_OF(name, 4), \
        SHAPES_OF(name, 5), SHAPES_OF(name, 6)

ALL_SHAPES(product, false, lda, 1)
SHAPE(product, false, 7, 3, lda, 1)
SHAPE(product, false, 8, 3, lda, 1)
ALL_SHAPES(dots, true, lda, 1)
SHAPE(dots, true, 7, 3, lda, 1)
SHAPE(dots, true, 8, 3, lda, 1)

/* By bf16, rows and vectors. */
static product_of *const products[2][TILE_ROWS][TILE_VECTORS] = {
    {ALL_SHAPES_OF(product),
     {NULL, NULL, product_7_3, NULL},
     {NULL, NULL, product_8_3, NULL}},
    {ALL_SHAPES_OF(dots), {NULL, NULL, dots_7_3, NULL}, {NULL, NULL, dots_8_3, NULL}},
};

/* The rows of a tile's first factor. */
struct tile_factor {
    const float *p;
    int64_t ld;
    bool bf16;
};

static void tile_product(struct tile *t, bool more, const struct tile_factor *a,
                         int64_t K, const float *b, const struct prefetch *x)
{
    products[a->bf16][t->rows - 1][t->nv - 1](t->sum, more, a->p + t->first * a->ld,
                                              a->ld, K, b, x);
}

static void tile_zero(struct tile *t)
{
    for (int i = 0; i < t->rows * t->nv; i++)
        t->sum[i] = vset(0);
}

/* ---- dividing work into tiles */

/* Block i of `blocks` about equal ones of n. */
INLINE int64_t block_at(int64_t n, int64_t i, int64_t blocks)
{
    return n * i / blocks;
}

INLINE int64_t blocks_of(int64_t n, int64_t most)
{
    return (n + most - 1) / most;
}

/* Tile i of `tiles` about equal ones. */
INLINE void tile_place(struct tile *t, int64_t rows, int64_t i, int64_t tiles, int nv)
{
    t->first = block_at(rows, i, tiles);
    t->rows = (int)(block_at(rows, i + 1, tiles) - t->first);
    t->nv = nv;
}

/* ---- packing */

static int64_t vectors_of(int64_t n)
{
    return (n + VL - 1) / VL;
}

/* Sets from[0] .. from[1]-1 to the vectors of units in a panel of the backward product,
   or of an RNN cell's forward product. Panels are about equal. */
static void panel_vectors(int64_t H, int64_t panel, int64_t from[2])
{
    int64_t vectors = vectors_of(H), panels = blocks_of(vectors, TILE_VECTORS);
    from[0] = block_at(vectors, panel, panels);
    from[1] = block_at(vectors, panel + 1, panels);
}

/* The same for the forward product. With several gates, a panel is one vector of
   units. */
static void units_forward(enum rnnd_cell cell, int64_t H, int64_t panel,
                          int64_t from[2])
{
    from[0] = panel;
    from[1] = panel + 1;
    if (rnnd__cell_gates(cell) == 1)
        panel_vectors(H, panel, from);
}

static int64_t panels_forward(enum rnnd_cell cell, int64_t H)
{
    int64_t vectors = vectors_of(H);
    return rnnd__cell_gates(cell) > 1 ? vectors : blocks_of(vectors, TILE_VECTORS);
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

/* How many vectors the columns of that panel take. */
static int vectors_forward(enum rnnd_cell cell, int64_t H, const int64_t from[2])
{
    int64_t units = from[1] * VL < H ? from[1] * VL : H;
    return (int)vectors_of((units - from[0] * VL) * rnnd__cell_gates(cell));
}

/* Columns are rows of W_hh: the G gates of a vector of units, or, with one gate,
   vectors of units. The gates of a partial vector are packed without gaps; the rest
   of their last vector is never used. */
static void pack_forward(const struct rnnd__packing *s, int64_t panel, float *out,
                         const float *w)
{
    int G = rnnd__cell_gates(s->cell);
    int64_t from[2], H = s->H;
    units_forward(s->cell, H, panel, from);
    int nv = vectors_forward(s->cell, H, from);
    float *p = out + from[0] * VL * G * depth_of(s->bf16, H);
    for (int64_t u = from[0]; u < from[1]; u++)
        for (int g = 0, m = lanes_of(H, u); g < G; g++, p += m) {
            const float *rows = w + (g * H + u * VL) * H;
            if (s->bf16)
                pack_columns(p, nv * VL, rows, H, m, H);
            for (int64_t k = 0; k < H && !s->bf16; k++)
                vput(p + k * nv * VL, vgather(rows + k, H, m), m);
        }
}

/* Columns are columns of W_hh. */
static void pack_backward(const struct rnnd__packing *s, int64_t panel, float *out,
                          const float *w)
{
    int64_t from[2], H = s->H, rows = rnnd__cell_gates(s->cell) * H;
    int64_t K = depth_of(s->bf16, rows);
    panel_vectors(H, panel, from);
    int64_t nv = from[1] - from[0];
    float *p = out + from[0] * VL * K;
    for (int64_t u = from[0]; u < from[1]; u++, p += VL) {
        int m = lanes_of(H, u);
        for (int64_t k = 0; k < K; k++) {
            const float *row = w + k * H + u * VL, *low = row + k * H;
            const float *high = 2 * k + 1 < rows ? low + H : NULL;
            vstore(p + k * nv * VL, s->bf16 ? vpair_rows(low, high, m) : vget(row, m));
        }
    }
}
