/*
 * test_warp.cu - shuffles, votes, fragments and rounding against NVIDIA's documents.
 *
 * The oracles are written from the PTX ISA's text (shfl.sync, vote.sync, the fragment
 * formulas of mma.m16n8k16 and mma.m16n8k8, cvt) and from the CUDA programming guide's
 * on warp functions, not from the emulator.
 */
#include "testing.h"

#include <cmath>
#include <cstring>

/* ---- shuffles */

__global__ void shuffles(int *out, int kind, int operand, int width)
{
    int t = (int)threadIdx.x, v = 100 + t;
    out[t] = kind == 0   ? __shfl_sync(0xffffffffu, v, operand, width)
             : kind == 1 ? __shfl_up_sync(0xffffffffu, v, (unsigned)operand, width)
             : kind == 2 ? __shfl_down_sync(0xffffffffu, v, (unsigned)operand, width)
                         : __shfl_xor_sync(0xffffffffu, v, operand, width);
}

/* The programming guide: a source lane outside 0 .. width-1 is taken modulo width; _up
   and _down do not wrap around within the segment, lanes that would read beyond it keep
   their value; _xor reads lanes of earlier segments but keeps its own value rather than
   read a later one. */
static int shuffled(int kind, int operand, int width, int lane)
{
    int begin = lane / width * width, within = lane - begin;
    switch (kind) {
    case 0:
        return 100 + begin + operand % width;
    case 1:
        return 100 + (within >= operand ? lane - operand : lane);
    case 2:
        return 100 + (within + operand < width ? lane + operand : lane);
    default:
        return 100 + ((lane ^ operand) < begin + width ? lane ^ operand : lane);
    }
}

static void shuffle_rules()
{
    Stream s;
    Device<int> out(32);
    for (int kind = 0; kind < 4; kind++)
        for (int width = 1; width <= 32; width *= 2)
            for (int operand = 0; operand < 32; operand += 1 + operand / 3) {
                EXPECT_CUDA(launch(shuffles, 1, 32, 0, s, out.p, kind, operand, width));
                std::vector<int> v = out.get(s);
                for (int lane = 0; lane < 32; lane++)
                    EXPECT(v[lane] == shuffled(kind, operand, width, lane));
            }
}

static void wrong_width()
{
    Stream s;
    Device<int> out(32);
    EXPECT_CUDA(launch(shuffles, 1, 32, 0, s, out.p, 0, 1, 12));
    EXPECT_CUDA(cudaStreamSynchronize(s));
}

/* Half a warp each, in different order, with doubles and 64-bit integers. */
__global__ void halves(double *out)
{
    int t = (int)threadIdx.x;
    unsigned mask = t < 16 ? 0x0000ffffu : 0xffff0000u;
    long long big = 1ll << (t + 20);
    double d =
        t < 16 ? __shfl_xor_sync(mask, 0.5 + t, 1) : __shfl_sync(mask, 0.25 + t, 20);
    out[t] = d + (double)__shfl_down_sync(mask, big, 1, 16);
}

static void half_warps()
{
    Stream s;
    Device<double> out(32);
    EXPECT_CUDA(launch(halves, 1, 32, 0, s, out.p));
    std::vector<double> v = out.get(s);
    for (int t = 0; t < 32; t++) {
        double d = t < 16 ? 0.5 + (t ^ 1) : 20.25;
        EXPECT(v[t] == d + ldexp(1, 20 + (t % 16 < 15 ? t + 1 : t)));
    }
}

/* The shorter last warp: its mask has the lanes that are. */
__global__ void short_warp(int *out, unsigned mask)
{
    int sum = 1;
    for (int d = 4; d > 0; d /= 2)
        sum += __shfl_down_sync(mask, sum, (unsigned)d, 8);
    out[threadIdx.x] = sum;
}

static void lanes_that_are_not()
{
    Stream s;
    Device<int> out(8);
    EXPECT_CUDA(launch(short_warp, 1, 8, 0, s, out.p, 0xffffffffu));
    EXPECT_CUDA(cudaStreamSynchronize(s));
}

static void lanes_that_are()
{
    Stream s;
    Device<int> out(8);
    EXPECT_CUDA(launch(short_warp, 1, 8, 0, s, out.p, 0x000000ffu));
    EXPECT(out.get(s)[0] == 8);
}

/* ---- votes */

__global__ void ballots(unsigned *out, unsigned set)
{
    int t = (int)threadIdx.x;
    unsigned mask = t < 8 ? 0x000000ffu : 0xffffff00u;
    int mine = (int)(set >> t & 1);
    unsigned ballot = __ballot_sync(mask, mine ? -5 : 0);
    out[4 * t] = ballot;
    out[4 * t + 1] = (unsigned)__any_sync(mask, mine);
    out[4 * t + 2] = (unsigned)__all_sync(mask, mine);
    out[4 * t + 3] = __ballot_sync(0xffffffffu, mine);
}

/* Bit n is set for lane n if its predicate is true and it is in the mask. */
static void vote_rules()
{
    Stream s;
    Device<unsigned> out(128);
    for (unsigned set : {0u, 1u, 0xffu, 0x100u, 0xdeadbeefu, 0xffffff00u, ~0u}) {
        EXPECT_CUDA(launch(ballots, 1, 32, 0, s, out.p, set));
        std::vector<unsigned> v = out.get(s);
        for (unsigned t = 0; t < 32; t++) {
            unsigned mask = t < 8 ? 0x000000ffu : 0xffffff00u;
            EXPECT(v[4 * t] == (set & mask));
            EXPECT(v[4 * t + 1] == ((set & mask) != 0));
            EXPECT(v[4 * t + 2] == ((set & mask) == mask));
            EXPECT(v[4 * t + 3] == set);
        }
    }
}

/* ---- fragments */

/* Places of the elements a0 .. a7 and so on, typed from the PTX ISA, "Matrix Fragments
   for mma.m16n8k16" (.bf16) and "mma.m16n8k8" (.tf32). */
static int group_id(int lane)
{
    return lane >> 2;
}

static int thread_id_in_group(int lane)
{
    return lane % 4;
}

static void place_a_bf16(int lane, int i, int *row, int *column)
{
    *row = (0 <= i && i < 2) || (4 <= i && i < 6) ? group_id(lane) : group_id(lane) + 8;
    *column = thread_id_in_group(lane) * 2 + (i & 0x1) + (i < 4 ? 0 : 8);
}

static void place_b_bf16(int lane, int i, int *row, int *column)
{
    *row = thread_id_in_group(lane) * 2 + (i & 0x1) + (i < 2 ? 0 : 8);
    *column = group_id(lane);
}

static void place_a_tf32(int lane, int i, int *row, int *column)
{
    *row = i == 0 || i == 2 ? group_id(lane) : group_id(lane) + 8;
    *column =
        i == 0 || i == 1 ? thread_id_in_group(lane) : thread_id_in_group(lane) + 4;
}

static void place_b_tf32(int lane, int i, int *row, int *column)
{
    *row = i == 0 ? thread_id_in_group(lane) : thread_id_in_group(lane) + 4;
    *column = group_id(lane);
}

static void place_c(int lane, int i, int *row, int *column)
{
    *row = i < 2 ? group_id(lane) : group_id(lane) + 8;
    *column = thread_id_in_group(lane) * 2 + (i & 0x1);
}

/* Registers of all lanes in, D out: two warps at a time. */
__global__ void product(float *d, const uint32_t *a, const uint32_t *b, const float *c,
                        int tf32)
{
    int t = (int)threadIdx.x;
    uint32_t ra[4], rb[2];
    float rc[4];
    for (int i = 0; i < 4; i++) {
        ra[i] = a[4 * t + i];
        rc[i] = c[4 * t + i];
    }
    for (int i = 0; i < 2; i++)
        rb[i] = b[2 * t + i];
    if (tf32)
        mma_tf32(rc, ra, rb, rc);
    else
        mma_bf16(rc, ra, rb, rc);
    for (int i = 0; i < 4; i++)
        d[4 * t + i] = rc[i];
}

/* Small integers: every order of summing gives the same. */
static float entry(int row, int column, int salt)
{
    return (float)((row * 31 + column * 17 + salt * 7) % 23 - 11);
}

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static void run_fragments(int tf32)
{
    const int k = tf32 ? 8 : 16, lanes = 64;
    Stream s;
    Device<uint32_t> a(4 * lanes), b(2 * lanes);
    Device<float> c(4 * lanes), d(4 * lanes);
    std::vector<uint32_t> ha(4 * lanes), hb(2 * lanes);
    std::vector<float> hc(4 * lanes);
    int row, column;
    for (int l = 0; l < lanes; l++) {
        for (int i = 0; i < (tf32 ? 4 : 8); i++) {
            (tf32 ? place_a_tf32 : place_a_bf16)(l % 32, i, &row, &column);
            uint32_t bits = bits_of(entry(row, column, l / 32));
            if (tf32)
                ha[4 * l + i] = bits;
            else /* the element with the lower index in the lower half */
                ha[4 * l + i / 2] |= i % 2 ? bits : bits >> 16;
        }
        for (int i = 0; i < (tf32 ? 2 : 4); i++) {
            (tf32 ? place_b_tf32 : place_b_bf16)(l % 32, i, &row, &column);
            uint32_t bits = bits_of(entry(row, column, 2 + l / 32));
            if (tf32)
                hb[2 * l + i] = bits;
            else
                hb[2 * l + i / 2] |= i % 2 ? bits : bits >> 16;
        }
        for (int i = 0; i < 4; i++) {
            place_c(l % 32, i, &row, &column);
            hc[4 * l + i] = entry(row, column, 4);
        }
    }
    a.put(ha, s);
    b.put(hb, s);
    c.put(hc, s);
    EXPECT_CUDA(launch(product, 1, lanes, 0, s, d.p, a.p, b.p, c.p, tf32));
    std::vector<float> hd = d.get(s);
    for (int l = 0; l < lanes; l++)
        for (int i = 0; i < 4; i++) {
            place_c(l % 32, i, &row, &column);
            float sum = entry(row, column, 4);
            for (int j = 0; j < k; j++)
                sum += entry(row, j, l / 32) * entry(j, column, 2 + l / 32);
            EXPECT(hd[4 * l + i] == sum);
        }
}

static void fragments_bf16()
{
    run_fragments(0);
}

static void fragments_tf32()
{
    run_fragments(1);
}

__global__ void unrounded(float *out)
{
    uint32_t a[4] = {__float_as_uint(0.1f), 0, 0, 0}, b[2] = {0, 0};
    float c[4] = {0, 0, 0, 0};
    mma_tf32(c, a, b, c);
    out[threadIdx.x] = c[0];
}

static void tf32_without_rounding()
{
    Stream s;
    Device<float> out(32);
    EXPECT_CUDA(launch(unrounded, 1, 32, 0, s, out.p));
    EXPECT_CUDA(cudaStreamSynchronize(s));
}

/* ---- rounding */

struct Rounded {
    uint32_t in, bf16, tf32;
};

/* bfloat16 keeps 7 bits of fraction, ties to even; tf32 10, ties away from zero. */
static const Rounded roundings[] = {
    {0x3f800000, 0x3f80, 0x3f800000}, /* 1 */
    {0x3f808000, 0x3f80, 0x3f808000}, /* bf16: tie, even is below */
    {0x3f818000, 0x3f82, 0x3f818000}, /* tie, even is above */
    {0x3f808001, 0x3f81, 0x3f808000}, /* a little more than a tie */
    {0x3f801000, 0x3f80, 0x3f802000}, /* tf32: tie, away from zero */
    {0xbf801000, 0xbf80, 0xbf802000}, /* and below zero */
    {0x3f803000, 0x3f80, 0x3f804000}, /* tie above an odd one */
    {0x3f800fff, 0x3f80, 0x3f800000},
    {0x7f7fffff, 0x7f80, 0x7f800000}, /* the largest float: infinity in both */
    {0x7f800000, 0x7f80, 0x7f800000}, /* infinity */
    {0xff800000, 0xff80, 0xff800000},
    {0x00000001, 0x0000, 0x00000000}, /* the smallest denormal */
    {0x00012345, 0x0001, 0x00012000},
    {0x80000000, 0x8000, 0x80000000}, /* -0 */
};

__global__ void round_all(uint32_t *out, const float *in)
{
    int t = (int)threadIdx.x;
    out[3 * t] = bf16_pair(in[t], 2.0f);
    out[3 * t + 1] = to_tf32(in[t]);
    out[3 * t + 2] = __float_as_uint(bf16_low(out[3 * t]) + bf16_high(out[3 * t]));
}

static void rounding()
{
    const size_t n = sizeof roundings / sizeof *roundings;
    Stream s;
    Device<float> in(n + 1);
    Device<uint32_t> out(3 * (n + 1));
    std::vector<float> x(n + 1, NAN);
    for (size_t i = 0; i < n; i++)
        memcpy(&x[i], &roundings[i].in, 4);
    in.put(x, s);
    EXPECT_CUDA(launch(round_all, 1, n + 1, 0, s, out.p, in.p));
    std::vector<uint32_t> v = out.get(s);
    for (size_t i = 0; i < n; i++) {
        float low;
        uint32_t bits = roundings[i].bf16 << 16;
        memcpy(&low, &bits, 4);
        EXPECT(v[3 * i] == (roundings[i].bf16 | 0x40000000u));
        EXPECT(v[3 * i + 1] == roundings[i].tf32);
        EXPECT(v[3 * i + 2] == bits_of(low + 2.0f));
    }
    EXPECT((v[3 * n] & 0x7fff) > 0x7f80); /* NaN stays NaN */
    EXPECT((v[3 * n + 1] & 0x7fffffff) > 0x7f800000);
}

/* Every float between two neighbours of the coarser kind goes to the nearer one. */
static void rounding_is_to_nearest()
{
    const size_t n = 1024;
    Stream s;
    Device<float> in(n);
    Device<uint32_t> out(3 * n);
    std::vector<float> x = some_floats(n, 77);
    in.put(x, s);
    EXPECT_CUDA(launch(round_all, 1, n, 0, s, out.p, in.p));
    std::vector<uint32_t> v = out.get(s);
    for (size_t i = 0; i < n; i++) {
        float b, t;
        uint32_t bits = v[3 * i] << 16;
        memcpy(&b, &bits, 4);
        memcpy(&t, &v[3 * i + 1], 4);
        EXPECT(fabsf(b - x[i]) <= ldexpf(fabsf(x[i]), -8));
        EXPECT(fabsf(t - x[i]) <= ldexpf(fabsf(x[i]), -11));
        EXPECT((v[3 * i + 1] & 0x1fff) == 0);
    }
}

static const Scenario scenarios[] = {
    {"shuffle_rules", shuffle_rules, 0, nullptr, nullptr, 2},
    {"wrong_width", wrong_width, 86, "no power of two", nullptr, 1},
    {"half_warps", half_warps, 0, nullptr, nullptr, 0},
    {"lanes_that_are", lanes_that_are, 0, nullptr, nullptr, 0},
    {"lanes_that_are_not", lanes_that_are_not, 86, "have ended or never were", nullptr,
     0},
    {"vote_rules", vote_rules, 0, nullptr, nullptr, 0},
    {"fragments_bf16", fragments_bf16, 0, nullptr, nullptr, 0},
    {"fragments_tf32", fragments_tf32, 0, nullptr, nullptr, 0},
    {"mma_on_sm_75", fragments_bf16, 86, "it exists from sm_80 on", "RNND_SIMT_ARCH=75",
     1},
    {"tf32_without_rounding", tf32_without_rounding, 86, "did not round", nullptr, 1},
    {"rounding", rounding, 0, nullptr, nullptr, 1},
    {"rounding_is_to_nearest", rounding_is_to_nearest, 0, nullptr, nullptr, 1},
};

int main(int argc, char **argv)
{
    return run_scenarios(argc, argv, scenarios, sizeof scenarios / sizeof *scenarios);
}
