/*
 * simd_outer.h - sums of outer products: the gradients of weights, C += A^T B.
 *
 * Part of simd.c. Rows are taken OUTER_ROWS at a time, twice as many in bf16, where
 * two neighbouring rows make pairs. The columns of one side are
 * packed in blocks of OUTER_BLOCK [k][OUTER_BLOCK], which the inner loop broadcasts;
 * those of the other in panels of vectors as in simd_product.h, one at a time. A panel
 * stays in the first-level cache while it is multiplied with all blocks. B is the side
 * of the vectors, unless it is narrow and its last vector would be half empty: then A
 * is, and C is first computed transposed.
 */

/* So many blocks use one packed panel. */
enum { OUTER_ROWS = 128, OUTER_BLOCK = 6, OUTER_BLOCKS = 64 };
/* Floats of a packed block; copying whole vectors writes past its end. */
enum {
    OUTER_STRIDE = OUTER_ROWS * OUTER_BLOCK + 16,
    OUTER_PANEL = OUTER_ROWS * TILE_VECTORS * VL
};
/* Largest C that is computed transposed: rows and columns. */
enum { OUTER_NARROW = 64, OUTER_WIDTH = 512 };

_Static_assert((int)OUTER_BLOCKS *OUTER_STRIDE + OUTER_PANEL <= RNND__OUTER_WORK,
               "the work space holds so many blocks and a panel");
_Static_assert(OUTER_PANEL + (OUTER_NARROW / OUTER_BLOCK + 1) * OUTER_STRIDE +
                       OUTER_NARROW * OUTER_WIDTH <=
                   RNND__OUTER_WORK,
               "the work space holds a panel, a few blocks and a transposed C");

/* Columns of A or of B: of row k of `count`, p + k ld or rows[k], from column first on.
   In bf16 an element of 32 bits has two rows. */
struct side {
    const float *p;
    int64_t ld;
    const float *const *rows;
    int64_t count;
    bool bf16;
    int64_t first, cols;
};

INLINE const float *side_row(const struct side *s, int64_t k)
{
    const float *row = s->rows ? s->rows[k] : s->p + k * s->ld;
    return row ? row + s->first : NULL;
}

/* Where the rows of element k are, NULL = zeros. */
struct element {
    const float *row, *second;
    bool bf16;
};

INLINE struct element side_element(const struct side *s, int64_t k)
{
    if (!s->bf16)
        return (struct element){side_row(s, k), NULL, false};
    const float *second = 2 * k + 1 < s->count ? side_row(s, 2 * k + 1) : NULL;
    return (struct element){side_row(s, 2 * k), second, true};
}

/* m lanes of it, from column j on. */
INLINE vf element_at(const struct element *e, int64_t j, int m)
{
    if (e->bf16)
        return vpair_rows(e->row ? e->row + j : NULL, e->second ? e->second + j : NULL,
                          m);
    return e->row ? vget(e->row + j, m) : vset(0);
}

/* ---- the inner loop */

ALL_SHAPES(outer, false, 1, OUTER_BLOCK)
ALL_SHAPES(outer_dots, true, 1, OUTER_BLOCK)

static product_of *const outers[2][OUTER_BLOCK][TILE_VECTORS] = {
    {ALL_SHAPES_OF(outer)},
    {ALL_SHAPES_OF(outer_dots)},
};

#if defined(__AVX512F__) || defined(__aarch64__)
enum { OUTER_TILE = OUTER_BLOCK };
#else
enum { OUTER_TILE = OUTER_BLOCK / 2 }; /* fewer registers */
#endif

/* ---- packing */

/* Elements k .. k+K-1 in blocks. Copies whole vectors; the next row of the block
   overwrites the excess. */
static void outer_pack_blocks(float *out, const struct side *s, int64_t k, int64_t K)
{
    for (int64_t i = 0; i < K; i++, out += OUTER_BLOCK) {
        struct element e = side_element(s, k + i);
        for (int64_t c = 0; c < s->cols; c += OUTER_BLOCK) {
            float *block = out + c / OUTER_BLOCK * OUTER_STRIDE;
            for (int64_t j = 0; j < OUTER_BLOCK && c + j < s->cols; j += VL) {
                int m = s->cols - c - j < VL ? (int)(s->cols - c - j) : VL;
                vstore(block + j, element_at(&e, c + j, m));
            }
        }
    }
}

/* nv vectors of elements k .. k+K-1 from vector v on; the last has m elements. */
INLINE void outer_pack_vectors(float *out, const struct side *s, int64_t k, int64_t K,
                               int64_t v, int nv, int m)
{
    for (int64_t i = 0; i < K; i++, out += nv * VL) {
        struct element e = side_element(s, k + i);
        UNROLL
        for (int j = 0; j < nv; j++)
            vstore(out + j * VL, element_at(&e, (v + j) * VL, j < nv - 1 ? VL : m));
    }
}

/* Vectors from[0] .. from[1]-1. */
static void outer_pack_panel(float *out, const struct side *s, int64_t k, int64_t K,
                             const int64_t from[2])
{
    int64_t v = from[0];
    int m = lanes_of(s->cols, from[1] - 1);
    switch (from[1] - v) {
    case 1:
        outer_pack_vectors(out, s, k, K, v, 1, m);
        break;
    case 2:
        outer_pack_vectors(out, s, k, K, v, 2, m);
        break;
    case 3:
        outer_pack_vectors(out, s, k, K, v, 3, m);
        break;
    case 4:
        outer_pack_vectors(out, s, k, K, v, 4, m);
        break;
    }
}

/* ---- C += A^T B */

/* A tile of C. */
struct outer_tile {
    float *c;
    /* from its first vector on */
    int64_t ldc, cols;
    int rows, nv;
};

/* Prefetches the cache lines of C, while the sums are computed. */
static void outer_prefetch(const struct outer_tile *t)
{
    for (int r = 0; r < t->rows; r++)
        for (int64_t j = 0; j < t->nv * VL; j += 16)
            __builtin_prefetch(t->c + r * t->ldc + j, 1);
}

static void outer_add(const struct outer_tile *t, const vf *sum)
{
    for (int r = 0; r < t->rows; r++)
        for (int v = 0; v < t->nv; v++) {
            float *c = t->c + r * t->ldc + v * VL;
            int m = lanes_of(t->cols, v);
            vput(c, vget(c, m) + sum[r * t->nv + v], m);
        }
}

/* Elements k .. k+K-1 of both sides, and what is read after them. */
struct outer_rows {
    int64_t k, K;
    const float *prefetch;
    int64_t prefetch_floats;
};

static struct outer_rows outer_rows_at(int64_t k, int64_t all)
{
    return (struct outer_rows){k, all - k < OUTER_ROWS ? all - k : OUTER_ROWS, NULL, 0};
}

/* Adds their products to c, whose rows are the columns of `blocks`. */
static void outer_sums(float *c, int64_t ldc, const struct side *blocks,
                       const struct side *panels, const struct outer_rows *o,
                       float *work)
{
    float *panel = work, *packed = work + OUTER_PANEL;
    int64_t count = blocks_of(vectors_of(panels->cols), TILE_VECTORS);
    int64_t tiles = blocks_of(blocks->cols, OUTER_TILE);
    outer_pack_blocks(packed, blocks, o->k, o->K);
    for (int64_t p = 0; p < count; p++) {
        int64_t from[2];
        panel_vectors(panels->cols, p, from);
        outer_pack_panel(panel, panels, o->k, o->K, from);
        for (int64_t i = 0; i < tiles; i++) {
            vf sum[OUTER_BLOCK * TILE_VECTORS];
            int64_t row = i * OUTER_TILE, left = blocks->cols - row;
            struct outer_tile t = {
                c + row * ldc + from[0] * VL, ldc, panels->cols - from[0] * VL,
                left < OUTER_TILE ? (int)left : OUTER_TILE, (int)(from[1] - from[0])};
            const float *a =
                packed + row / OUTER_BLOCK * OUTER_STRIDE + row % OUTER_BLOCK;
            struct prefetch x = no_prefetch(panel);
            if (o->prefetch)
                prefetch_part(&x, 0, o->prefetch, o->prefetch_floats, p * tiles + i,
                              count * tiles, o->K);
            outer_prefetch(&t);
            outers[panels->bf16][t.rows - 1][t.nv - 1](sum, false, a, 1, o->K, panel,
                                                       &x);
            outer_add(&t, sum);
        }
    }
}

static void outer_direct(const struct rnnd__outer *o, struct side a,
                         const struct side *b)
{
    enum { AT_ONCE = OUTER_BLOCKS * OUTER_BLOCK };
    int64_t all = depth_of(o->bf16, o->k), each = o->bf16 ? 2 : 1;
    for (int64_t k = 0; k < all; k += OUTER_ROWS) {
        struct outer_rows rows = outer_rows_at(k, all);
        /* the next rows of A */
        int64_t next = outer_rows_at(k + rows.K, all).K * each * o->lda;
        for (a.first = 0; a.first < o->m; a.first += AT_ONCE) {
            a.cols = o->m - a.first < AT_ONCE ? o->m - a.first : AT_ONCE;
            rows.prefetch = a.p + (k + rows.K) * each * a.ld + next * a.first / o->m;
            rows.prefetch_floats = next * a.cols / o->m;
            outer_sums(o->c + a.first * o->ldc, o->ldc, &a, b, &rows, o->work);
        }
    }
}

static void outer_transposed(const struct rnnd__outer *o, struct side a,
                             const struct side *b)
{
    float *t = o->work, *work = t + OUTER_NARROW * OUTER_WIDTH;
    for (a.first = 0; a.first < o->m; a.first += OUTER_WIDTH) {
        a.cols = o->m - a.first < OUTER_WIDTH ? o->m - a.first : OUTER_WIDTH;
        memset(t, 0, sizeof(float) * (size_t)(o->n * OUTER_WIDTH));
        for (int64_t k = 0; k < depth_of(o->bf16, o->k); k += OUTER_ROWS) {
            struct outer_rows rows = outer_rows_at(k, depth_of(o->bf16, o->k));
            outer_sums(t, OUTER_WIDTH, b, &a, &rows, work);
        }
        for (int64_t i = 0; i < a.cols; i++)
            for (int64_t j = 0; j < o->n; j++)
                o->c[(a.first + i) * o->ldc + j] += t[j * OUTER_WIDTH + i];
    }
}

static void outer_products(const struct rnnd__outer *o)
{
    struct side a = {o->a, o->lda, NULL, o->k, o->bf16, 0, o->m};
    struct side b = {o->b, o->ldb, o->rows, o->k, o->bf16, 0, o->n};
    bool wasteful = 8 * (vectors_of(o->n) * VL - o->n) > o->n;
    if (o->n <= OUTER_NARROW && wasteful && o->m > o->n)
        outer_transposed(o, a, &b);
    else
        outer_direct(o, a, &b);
}
