/*
 * rnn_persistent.cuh - the time loop in one launch, on the device: blocks that stay on
 * their processors hold all recurrent weights in shared memory, and multiply by tensor
 * cores in bf16 or tf32.
 *
 * Blocks form groups. A group holds the weights once, 16 units a block, and owns every
 * so-many tiles of 8 rows; groups never wait for each other. Within a group each step
 * ends with one barrier: what the next product reads (states forward, gate gradients
 * backward) is in one of two buffers in turn, so that nobody writes what others still
 * read. In the backward pass the gates may be split up: a block then takes one gate for
 * the units of as many blocks as there are gates, its squad, and reads its part of the
 * gate gradients only; a second barrier, of the squad, comes before the sum over the
 * gates. Both directions of a layer go in one launch, with groups of their own, where
 * there is room. Units are on the side of the product that counts 16, rows on the side
 * that counts 8: a batch that shrinks costs less. Sums are in fp32 and in one order;
 * masters, cell states and gradients stay fp32.
 */
#ifndef RNND_RNN_PERSISTENT_CUH
#define RNND_RNN_PERSISTENT_CUH

#include "rnn.cuh"
#include "rnn_cells.cuh"

enum { UNITS = 16, ROWS = 8, THREADS = 256, WARPS = THREADS / 32, FRAGMENT = 128 };

struct rnnd__persistent_direction {
    bool reverse;
    const float *w_hh, *b_ih, *b_hh, *h0, *c0, *dy;
    float *gates, *y, *keep, *h, *c;
    /* two buffers */
    uint32_t *exchange;
    /* [N,G*H] with gates apart: what each gives to a state */
    float *gate_dh;
    /* of groups, then of squads */
    uint32_t *flags;
};

/* Sizes in words of 32 bits: two bf16 or one tf32. */
struct rnnd__persistent {
    /* backward, gates are split up */
    bool apart;
    /* blocks of a group, groups of a direction */
    int members, groups;
    /* of a row of H, padded; products of 8 words in it */
    int words, ksteps;
    int64_t N, T, H, ldy;
    const int64_t *off;
    const int32_t *n;
    /* words of one of the exchange */
    int64_t buffer;
    uint32_t *lost;
    rnnd__persistent_direction d;
};

/* ---- products */

template <bool bf16>
__device__ __forceinline__ void multiply(float (&d)[4], const uint4 &a,
                                         const uint32_t (&b)[2])
{
    uint32_t left[4] = {a.x, a.y, a.z, a.w};
    if (bf16)
        mma_bf16(d, left, b, d);
    else
        mma_tf32(d, left, b, d);
}

/* Word w of a row of floats, `next` apart; zero beyond H. */
template <bool bf16>
__device__ __forceinline__ uint32_t word_of(const float *row, int64_t next, int64_t w,
                                            int64_t H)
{
    if (!bf16)
        return w < H ? to_tf32(__ldg(row + w * next)) : 0;
    float low = 2 * w < H ? __ldg(row + 2 * w * next) : 0;
    float high = 2 * w + 1 < H ? __ldg(row + (2 * w + 1) * next) : 0;
    return bf16_pair(low, high);
}

/* This block's weights as the lanes of a warp take them: for each tile of 16 and each
   step along k four words a lane. Forward a tile is a gate's 16 units, k their inputs;
   backward there is one tile, the 16 units, and k goes through the gates, or with gates
   apart a tile for each 16 units of the squad, and k goes through one gate. */
template <bool bf16, bool back>
__device__ __forceinline__ void load_weights(uint4 *w, const rnnd__persistent &p, int G,
                                             int member)
{
    for (int i = (int)threadIdx.x; i < G * p.ksteps * 32; i += THREADS) {
        int lane = i % 32, k = i / 32 % p.ksteps, tile = i / 32 / p.ksteps;
        bool apart = back && p.apart;
        int gate = apart ? member % G : tile;
        int64_t unit =
            (int64_t)(apart ? member / G * G + tile : member) * UNITS + lane / 4;
        uint32_t word[4];
        UNROLL
        for (int e = 0; e < 4; e++) {
            int64_t m = unit + 8 * (e % 2), at = 8 * k + lane % 4 + 4 * (e / 2);
            if (PLANTED(8, "a lane holds another's part of a matrix"))
                m = unit + 8 * (e / 2), at = 8 * k + lane % 4 + 4 * (e % 2);
            const float *row =
                p.d.w_hh + (back ? gate * p.H * p.H + m : (gate * p.H + m) * p.H);
            word[e] = m < p.H ? word_of<bf16>(row, back ? p.H : 1, at, p.H) : 0;
        }
        w[i] = {word[0], word[1], word[2], word[3]};
    }
}

/* Eight rows of what other blocks wrote, to shared memory: past L1, since this block
   may have read the same addresses two steps ago. Rows are 16 bytes longer there: no
   bank conflicts. */
__device__ __forceinline__ void stage_rows(uint32_t *stage, const uint32_t *from,
                                           int64_t row_words, int words)
{
    int chunks = words / 4;
    for (int i = (int)threadIdx.x; i < ROWS * chunks; i += THREADS)
        copy_async<16>(stage + i / chunks * (words + 4) + i % chunks * 4,
                       from + i / chunks * row_words + i % chunks * 4);
    copy_commit();
    copy_wait<0>();
    __syncthreads();
}

/* A warp takes every eighth step along k. */
template <bool bf16, int tiles>
__device__ __forceinline__ void multiply_staged(float (&sum)[tiles][4], const uint4 *w,
                                                const uint32_t *stage,
                                                const rnnd__persistent &p)
{
    int lane = (int)threadIdx.x % 32;
    const uint32_t *row = stage + lane / 4 * (p.words + 4) + lane % 4;
    for (int k = (int)threadIdx.x / 32; k < p.ksteps; k += WARPS) {
        uint32_t right[2] = {row[8 * k], row[8 * k + 4]};
        UNROLL
        for (int m = 0; m < tiles; m++)
            multiply<bf16>(sum[m], w[(m * p.ksteps + k) * 32 + lane], right);
    }
}

/* Each warp's part of the sums, where all can add them up: [16 units][8 rows] a
   tile. */
template <int tiles>
__device__ __forceinline__ void put_parts(float *part, const float (&sum)[tiles][4])
{
    int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    UNROLL
    for (int m = 0; m < tiles; m++) {
        float *to =
            part + (warp * tiles + m) * FRAGMENT + lane / 4 * ROWS + lane % 4 * 2;
        to[0] = sum[m][0];
        to[1] = sum[m][1];
        to[8 * ROWS] = sum[m][2];
        to[8 * ROWS + 1] = sum[m][3];
    }
    __syncthreads();
}

template <int tiles>
__device__ __forceinline__ float add_parts(const float *part, int m, int unit, int row)
{
    float sum = 0;
    UNROLL
    for (int warp = 0; warp < WARPS; warp++)
        sum += part[(warp * tiles + m) * FRAGMENT + unit * ROWS + row];
    return sum;
}

template <bool bf16>
__device__ __forceinline__ void put_value(uint32_t *row, int64_t k, float value)
{
    if (bf16)
        __stcg(reinterpret_cast<unsigned short *>(row) + k,
               __bfloat16_as_ushort(to_bf16(value)));
    else
        __stcg(row + k, to_tf32(value));
}

/* Shared memory, in words. */
struct rnnd__persistent_memory {
    uint4 *w;
    uint32_t *stage;
    float *part;
};

__device__ __forceinline__ rnnd__persistent_memory memory_of(uint32_t *words, int G,
                                                             const rnnd__persistent &p)
{
    uint32_t *stage = words + (int64_t)G * p.ksteps * FRAGMENT;
    return {reinterpret_cast<uint4 *>(words), stage,
            reinterpret_cast<float *>(stage + ROWS * (p.words + 4))};
}

/* Who this thread answers for in a tile: the first half of the threads have a unit
   each. */
struct rnnd__owner {
    bool busy;
    /* in the block's units, in the tile */
    int unit, row;
    /* in the layer */
    int64_t k;
};

__device__ __forceinline__ rnnd__owner owner_of(const rnnd__persistent &p, int member)
{
    int unit = (int)threadIdx.x % UNITS, row = (int)threadIdx.x / UNITS;
    int64_t k = (int64_t)member * UNITS + unit;
    return {row < ROWS && k < p.H, unit, row, k};
}

/* The barrier of so many neighbours, which have a flag each from `flags` on; false, and
   known to the host, if a block did not come. */
__device__ __forceinline__ bool meet(const rnnd__persistent &p, uint32_t *flags,
                                     int members, int member, uint32_t epoch)
{
    bool all = group_barrier(flags, members, member, epoch);
    if (!all && threadIdx.x == 0)
        atomicExch(p.lost, 1u);
    return all;
}

/* All blocks of a group. */
__device__ __forceinline__ bool meet_group(const rnnd__persistent &p, int group,
                                           int member, uint32_t epoch)
{
    if (PLANTED(2, "a block does not wait for the others of its group")) {
        __syncthreads();
        return epoch > 0;
    }
    return meet(p, p.d.flags + (int64_t)group * p.members, p.members, member, epoch);
}

/* Its G blocks that have the same units. */
__device__ __forceinline__ bool meet_squad(const rnnd__persistent &p, int G, int group,
                                           int member, uint32_t epoch)
{
    if (PLANTED(19, "a sum over gates does not wait for the other gates' blocks")) {
        __syncthreads();
        return epoch > 0;
    }
    int64_t first = (int64_t)group * p.members + member / G * G;
    return meet(p, p.d.flags + RNND__MOST_BLOCKS + first, G, member % G, epoch);
}

/* ---- forward */

__device__ __forceinline__ rnnd__cell_forward step_of(const rnnd__persistent &p, int G,
                                                      int64_t t, int64_t rows)
{
    int64_t row = __ldg(p.off + t), gate = row * G * p.H;
    if (PLANTED(18, "an index is cut to 32 bits"))
        gate = (int32_t)gate;
    return {rows,
            p.H,
            p.ldy,
            p.d.gates + gate,
            p.d.y + row * p.ldy,
            p.d.keep ? p.d.keep + row * p.H : nullptr,
            p.d.h,
            p.d.c,
            nullptr,
            p.d.b_ih,
            p.d.b_hh};
}

template <enum rnnd_cell cell, bool bf16>
__device__ __forceinline__ void forward_tile(const rnnd__persistent &p,
                                             const rnnd__persistent_memory &m,
                                             const rnnd__cell_forward &s, int64_t tile,
                                             int member, uint32_t epoch)
{
    const int G = cell_gates(cell);
    const uint32_t *from = p.d.exchange + epoch % 2 * p.buffer;
    uint32_t *to = p.d.exchange + (epoch + 1) % 2 * p.buffer;
    if (PLANTED(14, "states are written where others still read the last ones"))
        to = p.d.exchange + epoch % 2 * p.buffer;
    rnnd__owner o = owner_of(p, member);
    int64_t row = tile * ROWS + o.row;
    rnnd__unit_inputs in = {};
    float sum[G][4] = {};
    if (o.busy && row < s.rows)
        in = unit_inputs<cell>(s, row, o.k);
    stage_rows(m.stage, from + tile * ROWS * p.words, p.words, p.words);
    multiply_staged<bf16>(sum, m.w, m.stage, p);
    put_parts(m.part, sum);
    if (!o.busy || row >= s.rows)
        return;
    float product[4];
    UNROLL
    for (int g = 0; g < G; g++)
        product[g] = add_parts<G>(m.part, g, o.unit, o.row);
    float h = unit_forward<cell>(s, row, o.k, in, product);
    put_value<bf16>(to + row * p.words, o.k, h);
}

template <enum rnnd_cell cell, bool bf16>
__global__ void __launch_bounds__(THREADS, 1)
    persistent_forward(rnnd__both_directions<rnnd__persistent> both)
{
    SHARED_DYN(uint32_t, words);
    const int G = cell_gates(cell);
    const rnnd__persistent p = own_direction(both);
    rnnd__persistent_memory m = memory_of(words, G, p);
    int member = (int)blockIdx.x % p.members, group = (int)blockIdx.x / p.members;
    uint32_t epoch = 0;
    load_weights<bf16, false>(m.w, p, G, member);
    __syncthreads();
    for (int64_t i = 0; i < p.T; i++) {
        int64_t t = nth_step(p.d.reverse, i, p.T), rows = __ldg(p.n + t);
        /* No row of this group is alive: not yet, or no longer. */
        if (rows <= (int64_t)group * ROWS)
            continue;
        rnnd__cell_forward s = step_of(p, G, t, rows);
        for (int64_t tile = group; tile * ROWS < rows; tile += p.groups)
            forward_tile<cell, bf16>(p, m, s, tile, member, epoch);
        if (!meet_group(p, group, member, ++epoch))
            return;
    }
}

/* Both buffers begin with the initial states: rows that start later (reverse) find
   them. */
template <bool bf16>
__global__ void __launch_bounds__(RNND__BLOCK) exchange_states(rnnd__persistent p)
{
    for (int64_t i = thread_index(); i < p.buffer; i += thread_count()) {
        rnnd__place at = place_of(i, p.words);
        bool some = p.d.h0 && at.row < p.N;
        p.d.exchange[i] = p.d.exchange[p.buffer + i] =
            some ? word_of<bf16>(p.d.h0 + at.row * p.H, 1, at.col, p.H) : 0;
    }
}

/* ---- backward */

__device__ __forceinline__ rnnd__cell_backward step_back_of(const rnnd__persistent &p,
                                                            int G, int64_t t,
                                                            int64_t rows)
{
    int64_t row = __ldg(p.off + t), from = step_before(p.d.reverse, t);
    bool first = from < 0 || from >= p.T;
    int64_t old = first ? 0 : p.d.reverse ? __ldg(p.n + from) : rows;
    int64_t before = first ? 0 : __ldg(p.off + from), gate = row * G * p.H;
    if (PLANTED(22, "an index of the backward pass is cut to 32 bits"))
        gate = (int32_t)gate;
    return {rows,
            p.H,
            p.ldy,
            old,
            p.d.gates + gate,
            p.d.keep ? p.d.keep + row * p.H : nullptr,
            p.d.y + row * p.ldy,
            p.d.dy ? p.d.dy + row * p.ldy : nullptr,
            p.d.h,
            p.d.c,
            nullptr,
            p.d.y + before * p.ldy,
            p.d.keep ? p.d.keep + before * p.H : nullptr,
            p.d.h0,
            p.d.c0};
}

/* The gate gradients of a tile, to memory and to the other blocks. */
template <enum rnnd_cell cell, bool bf16>
__device__ __forceinline__ void backward_cells(const rnnd__persistent &p,
                                               const rnnd__cell_backward &s,
                                               int64_t tile, int member, uint32_t epoch)
{
    const int G = cell_gates(cell);
    rnnd__owner o = owner_of(p, member);
    int64_t row = tile * ROWS + o.row;
    if (!o.busy || row >= s.rows)
        return;
    float d[4];
    uint32_t *to = p.d.exchange + epoch % 2 * p.buffer + row * G * p.words;
    unit_backward<cell>(s, row, o.k, d);
    UNROLL
    for (int g = 0; g < G; g++)
        put_value<bf16>(to + g * p.words, o.k, d[g]);
}

/* What they make of the states before, for this block's units. */
template <enum rnnd_cell cell, bool bf16>
__device__ __forceinline__ void backward_product(const rnnd__persistent &p,
                                                 const rnnd__persistent_memory &m,
                                                 const rnnd__cell_backward &s,
                                                 int64_t tile, int member,
                                                 uint32_t epoch)
{
    const int G = cell_gates(cell);
    const uint32_t *from =
        p.d.exchange + epoch % 2 * p.buffer + tile * ROWS * G * p.words;
    rnnd__owner o = owner_of(p, member);
    int64_t row = tile * ROWS + o.row;
    float sum[1][4] = {};
    for (int g = 0; g < G; g++) {
        stage_rows(m.stage, from + g * p.words, (int64_t)G * p.words, p.words);
        multiply_staged<bf16>(sum, m.w + g * p.ksteps * 32, m.stage, p);
        __syncthreads(); /* before the next gate takes the stage */
    }
    put_parts(m.part, sum);
    if (o.busy && row < s.rows)
        s.dh[row * p.H + o.k] += add_parts<1>(m.part, 0, o.unit, o.row);
}

/* Gates apart: what this block's gate gives to the states before, for the squad's
   units. */
template <enum rnnd_cell cell, bool bf16>
__device__ __forceinline__ void gate_product(const rnnd__persistent &p,
                                             const rnnd__persistent_memory &m,
                                             const rnnd__cell_backward &s, int64_t tile,
                                             int member, uint32_t epoch)
{
    const int G = cell_gates(cell);
    const uint32_t *from =
        p.d.exchange + epoch % 2 * p.buffer + (tile * ROWS * G + member % G) * p.words;
    float sum[G][4] = {};
    stage_rows(m.stage, from, (int64_t)G * p.words, p.words);
    multiply_staged<bf16>(sum, m.w, m.stage, p);
    put_parts(m.part, sum);
    for (int i = (int)threadIdx.x; i < G * FRAGMENT; i += THREADS) {
        int part = i / FRAGMENT, unit = i % UNITS, in_tile = i / UNITS % ROWS;
        int64_t k = (int64_t)(member / G * G + part) * UNITS + unit;
        int64_t row = tile * ROWS + in_tile;
        if (row < s.rows && k < p.H)
            __stcg(p.d.gate_dh + (row * G + member % G) * p.H + k,
                   add_parts<G>(m.part, part, unit, in_tile));
    }
}

/* And their sum, for this block's units, in the order of gates. */
template <enum rnnd_cell cell>
__device__ __forceinline__ void add_gates(const rnnd__persistent &p,
                                          const rnnd__cell_backward &s, int64_t tile,
                                          int member)
{
    const int G = cell_gates(cell);
    rnnd__owner o = owner_of(p, member);
    int64_t row = tile * ROWS + o.row;
    if (!o.busy || row >= s.rows)
        return;
    const float *gate_dh = p.d.gate_dh + row * G * p.H + o.k;
    float sum = 0;
    UNROLL
    for (int g = 0; g < G; g++)
        sum += __ldcg(gate_dh + g * p.H);
    s.dh[row * p.H + o.k] += sum;
}

/* From the gate gradients, which all blocks of the group have given, to the states
   before; false if a block did not come. */
template <enum rnnd_cell cell, bool bf16>
__device__ __forceinline__ bool states_before(const rnnd__persistent &p,
                                              const rnnd__persistent_memory &m,
                                              const rnnd__cell_backward &s, int group,
                                              int member, uint32_t epoch)
{
    if (!p.apart) {
        for (int64_t tile = group; tile * ROWS < s.rows; tile += p.groups)
            backward_product<cell, bf16>(p, m, s, tile, member, epoch);
        return true;
    }
    for (int64_t tile = group; tile * ROWS < s.rows; tile += p.groups)
        gate_product<cell, bf16>(p, m, s, tile, member, epoch);
    if (!meet_squad(p, cell_gates(cell), group, member, epoch + 1))
        return false;
    for (int64_t tile = group; tile * ROWS < s.rows; tile += p.groups)
        add_gates<cell>(p, s, tile, member);
    return true;
}

template <enum rnnd_cell cell, bool bf16>
__global__ void __launch_bounds__(THREADS, 1)
    persistent_backward(rnnd__both_directions<rnnd__persistent> both)
{
    SHARED_DYN(uint32_t, words);
    const int G = cell_gates(cell);
    const rnnd__persistent p = own_direction(both);
    rnnd__persistent_memory m = memory_of(words, G, p);
    int member = (int)blockIdx.x % p.members, group = (int)blockIdx.x / p.members;
    uint32_t epoch = 0;
    load_weights<bf16, true>(m.w, p, G, member);
    __syncthreads();
    for (int64_t i = 0; i < p.T; i++) {
        int64_t t = nth_step(!p.d.reverse, i, p.T), rows = __ldg(p.n + t);
        if (rows <= (int64_t)group * ROWS)
            continue;
        rnnd__cell_backward s = step_back_of(p, G, t, rows);
        for (int64_t tile = group; tile * ROWS < rows; tile += p.groups)
            backward_cells<cell, bf16>(p, s, tile, member, epoch);
        if (!meet_group(p, group, member, epoch + 1) ||
            !states_before<cell, bf16>(p, m, s, group, member, epoch))
            return;
        epoch++;
    }
}

#endif
