/*
 * rnn_persistent.cu - the persistent path on the host: whether a layer takes it, with
 * which blocks, and its launches.
 */
#include "rnn_persistent.cuh"

#include <stdio.h>
#include <string.h>

/* ---- whether it can */

typedef void persistent_kernel(rnnd__both_directions<rnnd__persistent>);

template <bool bf16> static persistent_kernel *kernel_of(enum rnnd_cell cell, bool back)
{
    switch (cell) {
    case RNND_LSTM:
        return back ? persistent_backward<RNND_LSTM, bf16>
                    : persistent_forward<RNND_LSTM, bf16>;
    case RNND_GRU:
        return back ? persistent_backward<RNND_GRU, bf16>
                    : persistent_forward<RNND_GRU, bf16>;
    case RNND_RNN_RELU:
        return back ? persistent_backward<RNND_RNN_RELU, bf16>
                    : persistent_forward<RNND_RNN_RELU, bf16>;
    default:
        return back ? persistent_backward<RNND_RNN_TANH, bf16>
                    : persistent_forward<RNND_RNN_TANH, bf16>;
    }
}

static persistent_kernel *kernel_for(const struct rnnd__cuda *cuda, enum rnnd_cell cell,
                                     bool back)
{
    return cuda->precision == RNND_BF16 ? kernel_of<true>(cell, back)
                                        : kernel_of<false>(cell, back);
}

static int words_of(enum rnnd_precision precision, int64_t H)
{
    int64_t padded = rnnd__ratio_up(H, UNITS) * UNITS;
    return (int)(precision == RNND_BF16 ? padded / 2 : padded);
}

static size_t shared_bytes(int G, int words)
{
    size_t weights = (size_t)G * (size_t)(words / 8) * FRAGMENT;
    size_t stage = ROWS * (size_t)(words + 4), parts = (size_t)WARPS * G * FRAGMENT;
    return (weights + stage + parts) * sizeof(uint32_t);
}

/* Blocks of a kernel that the device runs at once; 0 where it runs none. */
static int64_t blocks_at_once(const struct rnnd__cuda *cuda, persistent_kernel *kernel,
                              size_t shared)
{
    int blocks = 0;
    if (cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             (int)shared) != cudaSuccess ||
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, (const void *)kernel,
                                                      THREADS, shared) != cudaSuccess) {
        (void)cudaGetLastError();
        return 0;
    }
    /* One each: it has the memory to itself. */
    return blocks > 0 ? cuda->multiprocessors : 0;
}

/* Of a pass. Beside the backward pass sums over ranks may hold processors, and blocks
   that wait for each other need theirs; before it, the sums of the last update are
   done. */
static int blocks_for(const struct rnnd__cuda *cuda, enum rnnd_cell cell, bool back,
                      size_t shared)
{
    int64_t blocks = blocks_at_once(cuda, kernel_for(cuda, cell, back), shared);
    bool beside = cuda->base.nccl && back &&
                  !PLANTED(21, "blocks take the multiprocessors of sums under way");
    int64_t reserve = beside ? RNND__NCCL_CHANNELS : 0;
    return (int)rnnd__most(0, blocks - reserve);
}

/* Two directions share the processors where each gets a group: a launch then waits at
   half as many barriers as one direction after the other. */
static void plan_groups(rnnd__persistent_plan *plan, int blocks, int64_t tiles,
                        int directions)
{
    plan->directions = directions * plan->members <= blocks ? directions : 1;
    plan->groups = (int)rnnd__least(blocks / (plan->members * plan->directions),
                                    rnnd__most(1, tiles));
}

/* With gates apart a block reads less of the gate gradients in a step, and waits at one
   more barrier: about 1.2 us, in which a multiprocessor reads these bytes (64 a clock;
   both are others' figures, not measured here). It must not cost a group, as squads
   must be full. RNND_CUDA_GATES=apart or together is for tests and measurements. */
static void plan_gates(rnnd__persistent_plan *plan, const struct rnnd__cuda *cuda,
                       int blocks, int64_t tiles, int G, int words)
{
    const int64_t worth = 128 << 10;
    bool must = cuda->gates && strcmp(cuda->gates, "apart") == 0;
    int64_t tile_bytes = (int64_t)ROWS * (G - 1) * words * (int64_t)sizeof(uint32_t);
    rnnd__persistent_plan apart = *plan;
    apart.apart = true;
    apart.members = (int)rnnd__ratio_up(plan->members, G) * G;
    plan_groups(&apart, blocks, tiles, plan->directions);
    bool same = apart.groups == plan->groups && apart.directions == plan->directions;
    bool pays = same && !cuda->gates &&
                rnnd__ratio_up(tiles, plan->groups) * tile_bytes > worth;
    if (G > 1 && apart.groups > 0 && (must || pays))
        *plan = apart;
}

rnnd__persistent_plan rnnd__persistent_plan_for(const struct rnnd__cuda *cuda,
                                                enum rnnd_cell cell, int64_t H,
                                                int64_t N, int directions, bool back)
{
    rnnd__persistent_plan plan = {(int)rnnd__ratio_up(H, UNITS), 0, 1, false, ""};
    int64_t tiles = rnnd__ratio_up(N, ROWS);
    int G = rnnd__cell_gates(cell), words = words_of(cuda->precision, H);
    size_t shared = shared_bytes(G, words);
    if (cuda->arch < 80 || cuda->precision == RNND_FP32) {
        snprintf(plan.why, sizeof plan.why,
                 "the persistent path is for bf16 and tf32 on "
                 "sm_80 or later");
    } else if (shared > cuda->shared) {
        snprintf(plan.why, sizeof plan.why,
                 "16 of %lld units need %zu KiB of shared memory, "
                 "a block has %zu",
                 (long long)H, shared >> 10, cuda->shared >> 10);
    } else {
        int blocks = blocks_for(cuda, cell, back, shared);
        plan_groups(&plan, blocks, tiles, directions);
        if (plan.groups > 0 && back)
            plan_gates(&plan, cuda, blocks, tiles, G, words);
        if (plan.groups == 0)
            snprintf(plan.why, sizeof plan.why,
                     "%lld units need %d blocks at once, there "
                     "are %d",
                     (long long)H, plan.members, blocks);
    }
    return plan;
}

size_t rnnd__persistent_scratch(enum rnnd_cell cell, int64_t H, int64_t N)
{
    int64_t rows = rnnd__ratio_up(N, ROWS) * ROWS;
    int64_t words = words_of(RNND_TF32, H);
    return (size_t)(2 * rows * rnnd__cell_gates(cell) * words + 2 * RNND__MOST_BLOCKS) *
           sizeof(uint32_t);
}

/* ---- launching */

static rnnd__persistent_direction direction_of(const struct rnnd__rnn *r)
{
    rnnd__rnn_scratch x = rnnd__scratch_of(r);
    return {r->reverse,
            rnnd__floats(r->w_hh),
            rnnd__floats(r->b_ih),
            rnnd__floats(r->b_hh),
            rnnd__floats(r->h0),
            rnnd__floats(r->c0),
            rnnd__floats(r->dy),
            rnnd__floats(r->gates),
            rnnd__floats(r->y),
            rnnd__floats(r->keep),
            x.h,
            x.c,
            x.persistent + 2 * RNND__MOST_BLOCKS,
            x.product,
            x.persistent};
}

static rnnd__persistent persistent_of(struct rnnd__cuda *cuda,
                                      const struct rnnd__rnn *r,
                                      const rnnd__persistent_plan &plan, bool back)
{
    const struct rnnd__packed *b = r->batch;
    int words = words_of(cuda->precision, r->H);
    int64_t rows = rnnd__ratio_up(b->N, ROWS) * ROWS;
    return {plan.apart,
            plan.members,
            plan.groups,
            words,
            words / 8,
            b->N,
            b->T,
            r->H,
            r->ldy,
            rnnd__longs(b->d_off),
            rnnd__ints(b->d_n),
            rows * (back ? rnnd__cell_gates(r->cell) : 1) * words,
            cuda->lost,
            direction_of(r)};
}

/* No block has come yet, and the buffers hold what is read before anybody writes:
   forward the initial states; backward numbers, since what pads a row is multiplied by
   weights of zero. */
static void begin_exchange(struct rnnd_backend *be, const rnnd__persistent &p,
                           bool back)
{
    struct rnnd__cuda *cuda = rnnd__cuda_of(be);
    rnnd__cuda_zero(be, {(char *)p.d.flags}, 2 * RNND__MOST_BLOCKS * sizeof(uint32_t));
    if (back)
        rnnd__cuda_zero(be, {(char *)p.d.exchange},
                        (size_t)(2 * p.buffer) * sizeof(uint32_t));
    else if (rnnd__cuda_sound(cuda))
        rnnd__cuda_ok(cuda,
                      launch(cuda->precision == RNND_BF16 ? exchange_states<true>
                                                          : exchange_states<false>,
                             rnnd__blocks(p.buffer), dim3(RNND__BLOCK), 0, cuda->stream,
                             p),
                      "states");
}

/* CUDA told that there was room, but MPS or another process may have taken of it. What
   is wrong with the device itself fails on the next path, too. */
static bool keep_refusal(struct rnnd__cuda *cuda, cudaError_t status)
{
    if (status == cudaSuccess)
        return true;
    (void)cudaGetLastError();
    cuda->refused = true;
    snprintf(cuda->base.warning, sizeof cuda->base.warning,
             "cuda %d: blocks that wait for each other cannot be launched (%s): "
             "recurrent layers run step by step from now on",
             cuda->device, cudaGetErrorString(status));
    return false;
}

/* As many directions as the plan has in a launch, from r on; false: refused. */
static bool launch_persistent(struct rnnd_backend *be, const struct rnnd__rnn *r,
                              const rnnd__persistent_plan &plan, bool back)
{
    struct rnnd__cuda *cuda = rnnd__cuda_of(be);
    rnnd__both_directions<rnnd__persistent> both = {persistent_of(cuda, r, plan, back),
                                                    {}};
    begin_exchange(be, both.loop, back);
    if (plan.directions == 2) {
        rnnd__persistent p = persistent_of(cuda, r->other, plan, back);
        begin_exchange(be, p, back);
        both.other = p.d;
    }
    if (!rnnd__cuda_sound(cuda))
        return true;
    dim3 grid((unsigned)(plan.members * plan.groups), (unsigned)plan.directions);
    size_t shared = shared_bytes(rnnd__cell_gates(r->cell), both.loop.words);
    cuda->watches = true;
    return keep_refusal(cuda,
                        launch_cooperative(kernel_for(cuda, r->cell, back), grid,
                                           dim3(THREADS), shared, cuda->stream, both));
}

static const struct rnnd__rnn *persistent_loop(struct rnnd_backend *be,
                                               const struct rnnd__rnn *r,
                                               const rnnd__persistent_plan &plan,
                                               bool back)
{
    if (r->batch->T == 0)
        return NULL;
    if (!launch_persistent(be, r, plan, back))
        return r;
    if (r->other && plan.directions == 1 &&
        !launch_persistent(be, r->other, plan, back))
        return r->other;
    return NULL;
}

const struct rnnd__rnn *rnnd__persistent_forward(struct rnnd_backend *be,
                                                 const struct rnnd__rnn *r,
                                                 const rnnd__persistent_plan &plan)
{
    return persistent_loop(be, r, plan, false);
}

const struct rnnd__rnn *rnnd__persistent_backward(struct rnnd_backend *be,
                                                  const struct rnnd__rnn *r,
                                                  const rnnd__persistent_plan &plan)
{
    return persistent_loop(be, r, plan, true);
}
