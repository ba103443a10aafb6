/*
 * simd_ctc.h - the forward and backward pass over the lattice of one label string, for
 * connectionist temporal classification (Graves et al. 2006).
 *
 * Part of simd.c. A string of L labels has L+1 blanks around and between them. A
 * probability is a pair of doubles, m 2^e with 1 <= m < 2 and a whole number e, so that
 * it has the range of a logarithm, the accuracy of a double, and a sum without exp and
 * log. Labels and blanks are in separate arrays: all their neighbours are then at i-1,
 * i or i+1, and vectors need no shuffles.
 */

enum { DL = VL / 2 }; /* doubles in a vector */

typedef double vd __attribute__((vector_size(4 * VL)));
typedef int64_t vl __attribute__((vector_size(4 * VL)));
typedef uint64_t vul __attribute__((vector_size(4 * VL)));
typedef double vd_any __attribute__((vector_size(4 * VL), aligned(8), may_alias));

/* ---- vectors of doubles */

INLINE vd dset(double x)
{
    return x - (vd){0};
}

INLINE vd dload(const double *p)
{
    return *(const vd_any *)p;
}

INLINE void dstore(double *p, vd x)
{
    *(vd_any *)p = x;
}

INLINE vd dselect(vl mask, vd yes, vd no)
{
    return (vd)(((vl)yes & mask) | ((vl)no & ~mask));
}

INLINE vd dlarger(vd a, vd b)
{
#if defined(__AVX512F__)
    return _mm512_max_pd(a, b);
#elif defined(__AVX2__)
    return _mm256_max_pd(a, b);
#elif defined(__x86_64__)
    return _mm_max_pd(a, b);
#else
    return dselect(a > b, a, b);
#endif
}

INLINE double dsum(vd x)
{
    double s = 0;
    for (int i = 0; i < DL; i++)
        s += x[i];
    return s;
}

/* 2^n for whole numbers of at most 1000; from 2^-1000 down, the same. */
INLINE vd dpower(vd n)
{
    /* adding it leaves n + 1023 in the low bits */
    const double magic = 0x1.8p52 + 1023;
    return (vd)((vl)(dlarger(n, dset(-1000)) + magic) << 52);
}

/* ---- numbers m 2^e */

struct wide {
    vd m, e;
};

/* The exponent of zero, far below all others. */
static const double wide_none = -1e300;

INLINE struct wide wide_load(const double *m, const double *e)
{
    return (struct wide){dload(m), dload(e)};
}

/* s 2^e for s = 0 or s >= 2^-1000. */
INLINE struct wide wide_make(vd s, vd e)
{
    const double bias = 0x1p52 + 1023;
    vl zero = s == 0;
    vd high = (vd)(vl)((vul)s >> 52 | 0x4330000000000000u) - bias;
    vd m = (vd)(((vl)s & 0xfffffffffffff) | 0x3ff0000000000000);
    return (struct wide){dselect(zero, dset(0), m),
                         dselect(zero, dset(wide_none), e + high)};
}

INLINE struct wide wide_times(struct wide a, struct wide b)
{
    return wide_make(a.m * b.m, a.e + b.e);
}

/* (a + b) p, and (a + b + c) p */
INLINE struct wide wide_sum2(struct wide a, struct wide b, struct wide p)
{
    vd top = dlarger(a.e, b.e);
    vd s = a.m * dpower(a.e - top) + b.m * dpower(b.e - top);
    return wide_make(s * p.m, top + p.e);
}

INLINE struct wide wide_sum3(struct wide a, struct wide b, struct wide c, struct wide p)
{
    vd top = dlarger(dlarger(a.e, b.e), c.e);
    vd s = a.m * dpower(a.e - top) + b.m * dpower(b.e - top) + c.m * dpower(c.e - top);
    return wide_make(s * p.m, top + p.e);
}

/* a where the mask is set, else zero. */
INLINE struct wide wide_where(vl mask, struct wide a)
{
    return (struct wide){(vd)((vl)a.m & mask), dselect(mask, a.e, dset(wide_none))};
}

/* e^y: by the whole powers of 2, and the Taylor series of what is left, at most
   ln(2)/2; accurate to 1e-14. */
INLINE struct wide wide_exp(vd y)
{
    const double magic = 0x1.8p52, ln2_high = 0x1.62e42feep-1,
                 ln2_low = 0x1.a39ef35793c76p-33;
    vd scaled = y * 0x1.71547652b82fep0, n = scaled + magic - magic;
    vl huge = scaled < -0x1p51; /* whole without its last bit */
    n = dselect(huge, (vd)((vl)scaled & ~1), n);
    vd r = y - n * ln2_high - n * ln2_low;
    r = dselect(huge, dset(0), r);
    vd q = r * (1 / 39916800.) + 1 / 3628800.;
    q = q * r + 1 / 362880.;
    q = q * r + 1 / 40320.;
    q = q * r + 1 / 5040.;
    q = q * r + 1 / 720.;
    q = q * r + 1 / 120.;
    q = q * r + 1 / 24.;
    q = q * r + 1 / 6.;
    q = q * r + 0.5;
    return (struct wide){r * r * q + r + 1, n};
}

/* ---- the string and its scores */

struct lattice {
    const struct rnnd__ctc_path *path;
    /* of arrays over the labels: of their elements those that count, in whole vectors;
       and from one array to the next */
    int64_t width, stride, row, block;
    /* [T] largest score of each step, and sum of the exps of all less that */
    double *top, *sum;
    /* [block] rows of a block, [blocks] the first rows of all */
    double *rows, *first;
    /* rows: probabilities of the rest of a path; of the outputs of a step, labels only,
       in the same layout; posteriors of the labels and masks, an array each */
    double *beta, *now, *posterior, *apart;
    /* of the blank, at the step of `now` */
    struct wide blank;
};

/* The arrays of a row; elements -1 to width may be read. */
INLINE double *label_m(const struct lattice *c, double *row)
{
    (void)c;
    return row + 8;
}

INLINE double *label_e(const struct lattice *c, double *row)
{
    return row + c->stride + 8;
}

INLINE double *blank_m(const struct lattice *c, double *row)
{
    return row + 2 * c->stride + 8;
}

INLINE double *blank_e(const struct lattice *c, double *row)
{
    return row + 3 * c->stride + 8;
}

static float *scores_at(const struct lattice *c, int64_t t)
{
    const struct rnnd__ctc_path *p = c->path;
    return p->scores + (p->off[t] + p->place) * p->cols;
}

/* The sum of e^(x - max); NaN where a score is not finite. The ones of the largest are
   counted apart, which would round the others: a softmax near 1 differs from 1 by
   these. */
static double row_sum_exp(const float *x, int64_t n, float max)
{
    enum { BLOCK = 16 * VL };
    double total = 0;
    for (int64_t j = 0; j < n;) {
        int64_t end = n - j > BLOCK ? j + BLOCK : n;
        vf s = vset(0), ones = vset(0);
        for (; j + VL <= end; j += VL) {
            vf v = vload(x + j), nan = v * 0.0f;
            s += vselect(v == max, nan, vexp(v - max) + nan);
            ones += vselect(v == max, nan + 1, nan);
        }
        total += (double)vsum(s) + (double)vsum(ones);
        if (j < end) {
            int m = (int)(end - j);
            vf part = vget(x + j, m);
            vf e = vexp(part - max) + part * 0.0f;
            for (int i = 0; i < m; i++)
                total += (double)e[i];
            j = end;
        }
    }
    return total;
}

/* Finds the largest scores and the sums, and returns the sum of the logs of those; NaN
   where a score is not finite. */
static double measure(const struct lattice *c)
{
    double total = 0;
    for (int64_t t = 0; t < c->path->T; t++) {
        const float *x = scores_at(c, t);
        float max = row_max(x, c->path->cols);
        c->top[t] = (double)max;
        c->sum[t] = row_sum_exp(x, c->path->cols, max);
        total += log(c->sum[t]);
    }
    return total;
}

/* The probabilities of the labels and of the blank at a step, all times the sum. */
static void take_step(struct lattice *c, int64_t t)
{
    const int32_t *label = c->path->label;
    const float *x = scores_at(c, t);
    int64_t L = c->path->labels;
    double *m = label_m(c, c->now), *e = label_e(c, c->now);
    double top = c->top[t];
    for (int64_t i = 0; i < L; i++)
        m[i] = (double)x[label[i]] - top;
    m[L] = (double)x[0] - top;
    for (int64_t i = 0; i < c->width; i += DL) {
        struct wide p = wide_exp(dload(m + i));
        dstore(m + i, p.m);
        dstore(e + i, p.e);
    }
    c->blank = (struct wide){dset(m[L]), dset(e[L])};
    for (int64_t i = L; i < c->width; i++) {
        m[i] = 0;
        e[i] = wide_none;
    }
}

/* Label i may follow label i-1 without a blank where they differ. */
static void find_apart(struct lattice *c)
{
    const int32_t *label = c->path->label;
    int64_t *mask = (int64_t *)c->apart;
    for (int64_t i = 0; i <= c->width; i++)
        mask[i] = i > 0 && i < c->path->labels && label[i] != label[i - 1] ? -1 : 0;
}

INLINE vl apart_at(const struct lattice *c, int64_t i)
{
    return (vl)dload(c->apart + i);
}

static void clear_row(const struct lattice *c, double *row)
{
    for (int64_t i = 0; i < c->stride; i++) {
        row[i] = row[2 * c->stride + i] = 0;
        row[c->stride + i] = row[3 * c->stride + i] = wide_none;
    }
}

/* ---- forward */

/* The first step: the first blank or the first label. */
static void forward_first(struct lattice *c, double *row)
{
    clear_row(c, row);
    take_step(c, 0);
    blank_m(c, row)[0] = c->blank.m[0];
    blank_e(c, row)[0] = c->blank.e[0];
    label_m(c, row)[0] = label_m(c, c->now)[0];
    label_e(c, row)[0] = label_e(c, c->now)[0];
}

/* `to` from the step before. There is no label before the first. */
static void forward_step(struct lattice *c, double *to, double *from, int64_t t)
{
    const double *lm = label_m(c, from), *le = label_e(c, from);
    const double *bm = blank_m(c, from), *be = blank_e(c, from);
    const double *pm = label_m(c, c->now), *pe = label_e(c, c->now);
    double *tlm = label_m(c, to), *tle = label_e(c, to);
    double *tbm = blank_m(c, to), *tbe = blank_e(c, to);
    take_step(c, t);
    tlm[-1] = 0;
    tle[-1] = wide_none;
    struct wide blank = c->blank;
    for (int64_t i = 0; i < c->width; i += DL) {
        struct wide label = wide_load(lm + i, le + i);
        struct wide before = wide_load(lm + i - 1, le + i - 1);
        struct wide gap = wide_load(bm + i, be + i);
        struct wide b = wide_sum2(gap, before, blank);
        struct wide l = wide_sum3(label, gap, wide_where(apart_at(c, i), before),
                                  wide_load(pm + i, pe + i));
        dstore(tbm + i, b.m);
        dstore(tbe + i, b.e);
        dstore(tlm + i, l.m);
        dstore(tle + i, l.e);
    }
}

/* Rows of the block that begins at step t, of which the first is there. */
static void forward_block(struct lattice *c, int64_t t)
{
    int64_t n = c->path->T - t < c->block ? c->path->T - t : c->block;
    for (int64_t i = 1; i < n; i++)
        forward_step(c, c->rows + i * c->row, c->rows + (i - 1) * c->row, t + i);
}

/* All blocks; the rows of the last one stay. Returns the last row. */
static double *forward_all(struct lattice *c)
{
    int64_t T = c->path->T, last = (T - 1) % c->block;
    size_t bytes = (size_t)c->row * sizeof(double);
    forward_first(c, c->rows);
    for (int64_t t = 0; t < T; t += c->block) {
        double *first = c->first + t / c->block * c->row;
        if (t > 0) {
            forward_step(c, first, c->rows + (c->block - 1) * c->row, t);
            memcpy(c->rows, first, bytes);
        } else if (c->block < T) {
            memcpy(first, c->rows, bytes);
        }
        forward_block(c, t);
    }
    return c->rows + last * c->row;
}

/* The probability of all paths, in every lane, and the negative log of it. */
static struct wide total(const struct lattice *c, double *last, double *loss)
{
    int64_t L = c->path->labels;
    struct wide one = {dset(1), dset(0)};
    struct wide blank = {dset(blank_m(c, last)[L]), dset(blank_e(c, last)[L])};
    struct wide label = {dset(label_m(c, last)[L - 1]), dset(label_e(c, last)[L - 1])};
    struct wide all = wide_sum2(blank, label, one);
    *loss = all.m[0] > 0 ? -(log(all.m[0]) + all.e[0] * 0.69314718055994530942)
                         : (double)INFINITY;
    return all;
}

/* ---- backward */

/* At the last step a path ends with the last label or the blank behind it. */
static void backward_first(struct lattice *c)
{
    int64_t L = c->path->labels;
    clear_row(c, c->beta);
    blank_m(c, c->beta)[L] = 1;
    blank_e(c, c->beta)[L] = 0;
    if (L > 0) {
        label_m(c, c->beta)[L - 1] = 1;
        label_e(c, c->beta)[L - 1] = 0;
    }
}

/* Of the row alpha of the forward pass: the posteriors of the labels, and the sum of
   those of the blanks; beta is multiplied by the probabilities of the step. */
static double meet(struct lattice *c, double *alpha, struct wide all)
{
    double *lm = label_m(c, c->beta), *le = label_e(c, c->beta);
    double *bm = blank_m(c, c->beta), *be = blank_e(c, c->beta);
    const double *alm = label_m(c, alpha), *ale = label_e(c, alpha);
    const double *abm = blank_m(c, alpha), *abe = blank_e(c, alpha);
    const double *pm = label_m(c, c->now), *pe = label_e(c, c->now);
    vd share = 1 / all.m, blanks = dset(0);
    struct wide blank = c->blank;
    for (int64_t i = 0; i < c->width; i += DL) {
        struct wide l = wide_load(lm + i, le + i), b = wide_load(bm + i, be + i);
        dstore(c->posterior + i,
               dload(alm + i) * l.m * share * dpower(dload(ale + i) + l.e - all.e));
        blanks += dload(abm + i) * b.m * share * dpower(dload(abe + i) + b.e - all.e);
        l = wide_times(l, wide_load(pm + i, pe + i));
        b = wide_times(b, blank);
        dstore(lm + i, l.m);
        dstore(le + i, l.e);
        dstore(bm + i, b.m);
        dstore(be + i, b.e);
    }
    return dsum(blanks);
}

/* beta of the step before, in place. */
static void backward_step(struct lattice *c)
{
    double *lm = label_m(c, c->beta), *le = label_e(c, c->beta);
    double *bm = blank_m(c, c->beta), *be = blank_e(c, c->beta);
    struct wide one = {dset(1), dset(0)};
    for (int64_t i = 0; i < c->width; i += DL) {
        struct wide label = wide_load(lm + i, le + i), gap = wide_load(bm + i, be + i);
        struct wide after = wide_load(lm + i + 1, le + i + 1);
        struct wide b = wide_sum2(gap, label, one);
        struct wide l = wide_sum3(label, wide_load(bm + i + 1, be + i + 1),
                                  wide_where(apart_at(c, i + 1), after), one);
        dstore(bm + i, b.m);
        dstore(be + i, b.e);
        dstore(lm + i, l.m);
        dstore(le + i, l.e);
    }
}

/* The gradient of the scores of a step: softmax less posteriors, over the labels. Where
   the model is sure, both are near 1: only their difference is rounded to a float. */
static void put_gradient(const struct lattice *c, int64_t t, double blanks)
{
    const struct rnnd__ctc_path *p = c->path;
    double scale = 1. / (double)(p->labels > 0 ? p->labels : 1);
    float *x = scores_at(c, t);
    row_exp(x, p->cols, (float)c->top[t]);
    for (int64_t i = 0; i < p->labels; i++) {
        float *own = x + p->label[i];
        *own = (float)((double)*own - c->sum[t] * c->posterior[i]);
    }
    x[0] = (float)((double)x[0] - c->sum[t] * blanks);
    row_scale(x, p->cols, (float)(scale / c->sum[t]));
}

static void backward_all(struct lattice *c, struct wide all)
{
    int64_t T = c->path->T, start = (T - 1) / c->block * c->block;
    backward_first(c);
    for (int64_t t = T - 1; t >= 0; t--) {
        if (t < start) {
            start -= c->block;
            memcpy(c->rows, c->first + start / c->block * c->row,
                   (size_t)c->row * sizeof(double));
            forward_block(c, start);
        }
        take_step(c, t);
        double blanks = meet(c, c->rows + (t - start) * c->row, all);
        backward_step(c);
        put_gradient(c, t, blanks);
    }
}

/* ---- both */

static void fill_nan(const struct lattice *c)
{
    for (int64_t t = 0; t < c->path->T; t++)
        for (int64_t k = 0; k < c->path->cols; k++)
            scores_at(c, t)[k] = NAN;
}

static struct lattice new_lattice(const struct rnnd__ctc_path *p)
{
    int64_t row = rnnd__ctc_row(p->labels), block = rnnd__ctc_block(p->T, p->labels);
    double *at = p->work;
    struct lattice c = {.path = p,
                        .width = rnnd__simd_padded(p->labels + 1),
                        .stride = rnnd__ctc_stride(p->labels),
                        .row = row,
                        .block = block};
    c.beta = at;
    c.now = at + row;
    c.posterior = at + 2 * row;
    c.apart = at + 3 * row;
    c.top = at + 4 * row;
    c.sum = c.top + p->T;
    c.rows = c.sum + p->T;
    c.first = c.rows + block * row;
    return c;
}

static double ctc(const struct rnnd__ctc_path *p)
{
    struct lattice c = new_lattice(p);
    if (p->T == 0)
        return p->labels == 0 ? 0 : (double)INFINITY;
    double loss, sums = measure(&c);
    if (isnan(sums)) {
        fill_nan(&c);
        return sums;
    }
    clear_row(&c, c.now);
    find_apart(&c);
    struct wide all = total(&c, forward_all(&c), &loss);
    if (isinf(loss))
        fill_nan(&c);
    else if (p->gradient)
        backward_all(&c, all);
    return loss + sums;
}
