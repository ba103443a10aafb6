/*
 * kernels_bf16.c - products of the CPU with factors in bf16, bit for bit against the
 * definition of vdpbf16ps, a factor at a time. The processor's instruction and what
 * replaces it are held to the same bits.
 */
#include "kernels_bf16.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../suite.h"
#include "base/random.h"
#include "kernels_ref.h"

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static float of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* ---- the definition */

static float flushed(float x)
{
    return fabsf(x) < 0x1p-126f ? copysignf(0, x) : x;
}

/* To bf16, to nearest, ties to even; denormals are zero. */
static float factor(float x)
{
    if (isnan(x))
        return x;
    uint32_t bits = bits_of(flushed(x)), low = bits & 0xffff, up = bits & 0xffff0000;
    bool odd = up & 0x10000;
    return of_bits(up + (low > 0x8000 || (low == 0x8000 && odd) ? 0x10000 : 0));
}

/* The pair's second product comes first; each is fused with its addition. */
static float dot(float sum, const float a[2], const float b[2])
{
    sum = flushed(fmaf(factor(a[1]), factor(b[1]), flushed(sum)));
    return flushed(fmaf(factor(a[0]), factor(b[0]), sum));
}

/* Whether a processor may flush what the definition keeps: rounded to the smallest
   normal number from below. */
static bool on_the_edge(float x)
{
    return fabsf(x) == 0x1p-126f;
}

/* ---- numbers of all kinds */

enum kind { MODERATE, TINY, LARGE, ANY, KINDS };

static float number(enum kind kind, uint32_t word, uint32_t second)
{
    static const uint32_t least[] = {120, 0, 170}, count[] = {16, 70, 85};
    if (kind == ANY)
        return of_bits(word);
    return of_bits((word & 0x807fffff) | (least[kind] + second % count[kind]) << 23);
}

/* Near ties: some with the lower half at, just below or just above the middle. */
static float *random_bits(enum kind kind, uint64_t seed, int64_t count)
{
    static const uint32_t middle[] = {0x7fff, 0x8000, 0x8001};
    float *x = malloc(sizeof *x * (size_t)count);
    for (int64_t i = 0; i < count; i++) {
        struct rnnd__random r = rnnd__philox(seed, (uint32_t)i, 0, 0, 78);
        if (r.word[2] % 4 < 3)
            r.word[0] = (r.word[0] & 0xffff0000) | middle[r.word[2] % 4];
        x[i] = number(kind, r.word[0], r.word[1]);
    }
    return x;
}

/* ---- the tests */

enum { M = 13, N = 75, K = 10 };

static void check_bits(struct rig *rig, enum kind kind, uint64_t seed)
{
    struct rnnd__matmul s = {
        .m = M, .n = N, .k = K, .alpha = 1, .lda = K, .ldb = N, .ldc = N};
    float *a = random_bits(kind, 2 * seed, M * K);
    float *b = random_bits(kind, 2 * seed + 1, K * N);
    struct rnnd__buf A = rig_put(rig, a, sizeof *a * M * K);
    struct rnnd__buf B = rig_put(rig, b, sizeof *b * K * N), C = rig_nan(rig, M * N);
    rig->op->matmul(rig->be, &s, C, A, B);
    float *c = rig_get(rig, C, M * N);
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            float sum = 0;
            bool edge = false;
            for (int k = 0; k < K; k += 2) {
                const float pair[2] = {b[k * N + j], b[(k + 1) * N + j]};
                sum = dot(sum, a + i * K + k, pair);
                edge = edge || on_the_edge(sum);
            }
            float got = c[i * N + j];
            ck_assert_msg(edge || bits_of(got) == bits_of(sum) ||
                              (isnan(got) && isnan(sum)),
                          "kind %d, seed %llu, [%d,%d]: %a, not %a", (int)kind,
                          (unsigned long long)seed, i, j, (double)got, (double)sum);
        }
    free(a);
    free(b);
    free(c);
    rig_clear(rig);
}

START_TEST(products_have_the_bits_of_the_instruction)
{
    const struct kernels_target *t = &kernels_targets[_i];
    struct rig rig;
    if (t->threads == 0 || t->precision != RNND_BF16 || !rig_open(&rig, _i))
        return;
    for (int kind = 0; kind < KINDS; kind++)
        for (uint64_t seed = 0; seed < 20; seed++)
            check_bits(&rig, (enum kind)kind, seed);
    rig_close(&rig);
}
END_TEST

/* Pairs of rows of an odd number
   of them, and rows that are zero. Whole numbers up to 256 are exact in bf16 and their
   sums in float. */
START_TEST(whole_numbers_are_exact)
{
    enum { ROWS = 531, WIDE = 70, HIGH = 50 };
    const struct kernels_target *t = &kernels_targets[_i];
    struct rig rig;
    if (t->threads == 0 || t->precision != RNND_BF16 || !rig_open(&rig, _i))
        return;
    struct rnnd__matmul s = {.ta = true,
                             .m = WIDE,
                             .n = HIGH,
                             .k = ROWS,
                             .alpha = 1,
                             .beta = 1,
                             .lda = WIDE,
                             .ldb = HIGH,
                             .ldc = HIGH};
    static float a[ROWS * WIDE], b[ROWS * HIGH], c[WIDE * HIGH];
    for (int i = 0; i < ROWS * WIDE; i++)
        a[i] = (float)(i * 7 % 33 - 16);
    for (int i = 0; i < ROWS * HIGH; i++)
        b[i] = (float)(i * 11 % 65 - 32);
    for (int i = 0; i < WIDE * HIGH; i++)
        c[i] = (float)i;
    struct rnnd__buf C = rig_put(&rig, c, sizeof c);
    rig.op->matmul(rig.be, &s, C, rig_put(&rig, a, sizeof a),
                   rig_put(&rig, b, sizeof b));
    float *out = rig_get(&rig, C, WIDE * HIGH);
    for (int i = 0; i < WIDE; i++)
        for (int j = 0; j < HIGH; j++) {
            float sum = c[i * HIGH + j];
            for (int k = 0; k < ROWS; k++)
                sum += a[k * WIDE + i] * b[k * HIGH + j];
            ck_assert(out[i * HIGH + j] == sum);
        }
    free(out);
    rig_close(&rig);
}
END_TEST

TCase *kernels_bf16_tests(void)
{
    TCase *t = tcase_create("bf16");
    int n = kernels_targets_count;
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, products_have_the_bits_of_the_instruction, 0, n);
    tcase_add_loop_test(t, whole_numbers_are_exact, 0, n);
    return t;
}
