/*
 * warp.cc - what the 32 lanes of a warp do together: shuffles, votes, matrix products.
 *
 * Takes what each lane brings, waits until all lanes of the mask have come, and gives
 * each its result. Rules as in NVIDIA's PTX ISA (shfl.sync, vote.sync, mma.sync and its
 * fragments); a wrong mask is an error.
 */
#include <cstdio>

#include "core.h"

namespace simt
{

namespace
{

const char *name_of(Lanes op)
{
    static const char *const names[] = {
        "__shfl_sync",   "__shfl_up_sync", "__shfl_down_sync", "__shfl_xor_sync",
        "__ballot_sync", "__any_sync",     "__all_sync",       "__syncwarp",
        "mma_bf16",      "mma_tf32"};
    return names[(int)op];
}

bool agree(const Lane &a, const Lane &b)
{
    return a.op == b.op && a.mask == b.mask && a.bytes == b.bytes &&
           a.width == b.width && a.at.line == b.at.line &&
           (a.at.file == b.at.file || strcmp(a.at.file, b.at.file) == 0);
}

void check_mask(const Thread *t, const Lane &lane)
{
    const Warp *w = t->warp;
    if (!(lane.mask >> t->lane & 1))
        error("%s with mask %08x, in which lane %d is not", name_of(lane.op), lane.mask,
              t->lane);
    if (lane.mask & ~w->live)
        error("%s with mask %08x, of which lanes %08x have ended or never were",
              name_of(lane.op), lane.mask, lane.mask & ~w->live);
}

/* The first of the lanes that have come to the same collective: it counts them. One
   that waits elsewhere for this thread never comes; one that waits for others may. */
Thread *find_leader(Thread *t, const Lane &lane)
{
    const Warp *w = t->warp;
    for (unsigned left = lane.mask & w->arrived; left; left &= left - 1) {
        Thread *other = w->lane[__builtin_ctz(left)];
        if (agree(lane, *other->call))
            return other->leader;
        if (other->call->mask >> t->lane & 1)
            error("%s with mask %08x, but lane %d came with %s and mask %08x at %s:%d",
                  name_of(lane.op), lane.mask, other->lane, name_of(other->call->op),
                  other->call->mask, other->at.file, other->at.line);
    }
    t->here = 0;
    return t;
}

/* ---- shuffles and votes */

/* The lane that lane i reads, by the formula of shfl.sync; c is what CUDA's width
   means. */
int shuffle_source(const Lane &call, int i)
{
    int segment = 32 - call.width; /* bits of the lane that tell its segment */
    int clamp = call.op == Lanes::shfl_up ? 0 : 31;
    int highest = (i & segment) | (clamp & ~segment);
    int b = call.operand & 31, j = i;
    bool valid = false;
    switch (call.op) {
    case Lanes::shfl_up:
        j = i - b;
        valid = j >= highest;
        break;
    case Lanes::shfl_down:
        j = i + b;
        valid = j <= highest;
        break;
    case Lanes::shfl_xor:
        j = i ^ b;
        valid = j <= highest;
        break;
    default:
        j = (i & segment) | (b & ~segment);
        valid = j <= highest;
    }
    return valid ? j : i;
}

/* All results before any is given out: an output may be another's input. A lane outside
   the mask gives NaN. */
void shuffle(const Warp *w, unsigned mask)
{
    char value[32][8];
    for (int i = 0; i < 32; i++) {
        if (!(mask >> i & 1))
            continue;
        const Lane &call = *w->lane[i]->call;
        int from = shuffle_source(call, i);
        if (mask >> from & 1)
            memcpy(value[i], w->lane[from]->call->in, call.bytes);
        else
            memset(value[i], 0xff, call.bytes);
    }
    for (int i = 0; i < 32; i++)
        if (mask >> i & 1)
            memcpy(w->lane[i]->call->out, value[i], w->lane[i]->call->bytes);
}

void count_votes(const Warp *w, unsigned mask)
{
    unsigned ballot = 0;
    for (int i = 0; i < 32; i++)
        if (mask >> i & 1 && *static_cast<const unsigned *>(w->lane[i]->call->in))
            ballot |= 1u << i;
    for (int i = 0; i < 32; i++) {
        if (!(mask >> i & 1))
            continue;
        const Lane &call = *w->lane[i]->call;
        *static_cast<unsigned *>(call.out) = call.op == Lanes::ballot ? ballot
                                             : call.op == Lanes::any  ? ballot != 0
                                                                      : ballot == mask;
    }
}

/* ---- matrix products */

struct Product {
    float a[16][16], b[16][8], c[16][8];
    int k;
};

/* groupID and threadID_in_group of the PTX ISA's fragment formulas. */
int group(int lane)
{
    return lane >> 2;
}

int member(int lane)
{
    return lane & 3;
}

float half_of(uint32_t pair, int high)
{
    return __uint_as_float(high ? pair & 0xffff0000u : pair << 16);
}

/* mma.m16n8k16, .bf16: each register of A and B holds two neighbours along k. */
void gather_bf16(Product *p, int lane, const Fragment &f)
{
    int g = group(lane), q = member(lane);
    p->k = 16;
    for (int i = 0; i < 8; i++)
        p->a[g + (i / 2 % 2 ? 8 : 0)][2 * q + i % 2 + (i < 4 ? 0 : 8)] =
            half_of(f.a[i / 2], i % 2);
    for (int i = 0; i < 4; i++)
        p->b[2 * q + i % 2 + (i < 2 ? 0 : 8)][g] = half_of(f.b[i / 2], i % 2);
}

/* mma.m16n8k8, .tf32: one element a register. */
void gather_tf32(Product *p, int lane, const Fragment &f)
{
    int g = group(lane), q = member(lane);
    p->k = 8;
    for (int i = 0; i < 4; i++) {
        if (f.a[i] & 0x1fff || f.b[i / 2] & 0x1fff)
            error("mma_tf32: lane %d brings a value that to_tf32 did not round", lane);
        p->a[g + (i % 2 ? 8 : 0)][q + (i < 2 ? 0 : 4)] = __uint_as_float(f.a[i]);
    }
    for (int i = 0; i < 2; i++)
        p->b[q + 4 * i][g] = __uint_as_float(f.b[i]);
}

/* Products are exact in double; a GPU's order of summing is not documented. */
float element(const Product &p, int row, int column)
{
    double sum = p.c[row][column];
    for (int k = 0; k < p.k; k++)
        sum += (double)p.a[row][k] * p.b[k][column];
    return (float)sum;
}

void multiply(const Warp *w, Lanes op)
{
    static Product p;
    for (int lane = 0; lane < 32; lane++) {
        const Fragment &f = *static_cast<const Fragment *>(w->lane[lane]->call->in);
        if (op == Lanes::bf16)
            gather_bf16(&p, lane, f);
        else
            gather_tf32(&p, lane, f);
        for (int i = 0; i < 4; i++)
            p.c[group(lane) + (i < 2 ? 0 : 8)][2 * member(lane) + i % 2] = f.c[i];
    }
    for (int lane = 0; lane < 32; lane++) {
        const Fragment &f = *static_cast<const Fragment *>(w->lane[lane]->call->in);
        for (int i = 0; i < 4; i++)
            f.d[i] =
                element(p, group(lane) + (i < 2 ? 0 : 8), 2 * member(lane) + i % 2);
    }
}

void perform(const Warp *w, const Lane &call)
{
    switch (call.op) {
    case Lanes::shfl:
    case Lanes::shfl_up:
    case Lanes::shfl_down:
    case Lanes::shfl_xor:
        shuffle(w, call.mask);
        break;
    case Lanes::ballot:
    case Lanes::any:
    case Lanes::all:
        count_votes(w, call.mask);
        break;
    case Lanes::sync:
        break;
    case Lanes::bf16:
    case Lanes::tf32:
        multiply(w, call.op);
    }
}

} // namespace

/* Of these only __syncwarp orders memory. */
void meet_lanes(const Lane &call)
{
    Thread *t = self();
    Warp *w = t->warp;
    t->at = call.at;
    if (call.width < 1 || call.width > 32 || call.width & (call.width - 1))
        error("%s with width %d, which is no power of two up to 32", name_of(call.op),
              call.width);
    if ((call.op == Lanes::bf16 || call.op == Lanes::tf32) && settings().arch < 80)
        error("%s on sm_%d: it exists from sm_80 on", name_of(call.op),
              settings().arch);
    check_mask(t, call);
    char *token = &w->token[w->round & 1];
    if (call.op == Lanes::sync)
        release(token);
    Thread *leader = find_leader(t, call);
    t->call = &call;
    t->leader = leader;
    leader->here |= 1u << t->lane;
    w->arrived |= 1u << t->lane;
    if (leader->here != call.mask) {
        wait(name_of(call.op));
    } else {
        {
            Unseen unseen;
            perform(w, call);
        }
        w->arrived &= ~call.mask;
        w->round += call.op == Lanes::sync;
        for (unsigned left = call.mask & ~(1u << t->lane); left; left &= left - 1)
            wake(w->lane[__builtin_ctz(left)]);
        poll();
    }
    t->call = nullptr;
    if (call.op == Lanes::sync)
        acquire(token);
}

} // namespace simt
