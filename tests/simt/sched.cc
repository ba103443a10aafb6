/*
 * sched.cc - one launch: its blocks and threads, who runs next, the block barrier,
 * shared memory.
 *
 * Takes a launch, runs every CUDA thread as a fiber on the one thread of the host, and
 * gives back when all have ended. A thread runs until it must wait or steps aside; who
 * follows is drawn at random, or the one that waited longest (in order). A cooperative
 * launch has all its blocks at once, any other a few at a time, in any order.
 */
#include <cstdio>
#include <cstdlib>
#include <map>

#include "core.h"

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace simt
{

namespace
{

/* A barrier of all threads of a block. Tokens and results alternate, since a thread
   can come to the next barrier before another has left this one, but not to the one
   after. */
struct Barrier {
    int arrived, sum;
    unsigned round;
    Site at;
    int result[2];
    char token[2];
    std::vector<Thread *> waiting;
};

struct Shared {
    /* of the array in the source; NULL: dynamic */
    const void *key;
    char *p;
    size_t bytes;
    const char *name;
};

#ifdef __SANITIZE_ADDRESS__
const size_t margin = 0; /* AddressSanitizer has its own */
#else
const size_t margin = 512; /* bytes on both sides that stay as they were filled */
#endif

#ifdef SIMT_TSAN
/* A CUDA thread gets a stack and a context that no other thread uses, made by the host:
   one that inherited another's clock would hide races. So blocks come in waves that the
   host starts: small ones, since a context takes a megabyte. */
const bool waves = true;
const size_t wave_threads = 256, together_threads = 4096;
#else
const bool waves = false;
const size_t wave_threads = SIZE_MAX, together_threads = SIZE_MAX;
#endif

} // namespace

struct Block {
    uint3 index;
    int alive;
    Barrier barrier;
    std::vector<Thread> thread;
    std::vector<Warp> warp;
    std::vector<Shared> shared;
};

namespace
{

/* The launch that runs. */
const Launch *launch;
Thread *running;
std::deque<Thread *> ready;
std::vector<Block *> blocks;
std::vector<size_t> todo; /* blocks that have not begun, the next one last */
size_t unfinished;        /* threads of blocks that have begun */
char start_token, end_token;

/* TSan: what ended threads leave, for the next launches once the wave is over. */
std::vector<Worker> ended;
/* Not destroyed: streams may end after it would be. */
std::vector<Worker> &idle = *new std::vector<Worker>;
void *host_context;

std::map<const void *, size_t> static_bytes;

size_t block_threads()
{
    return (size_t)launch->block.x * launch->block.y * launch->block.z;
}

/* ---- blocks begin and end */

void begin_block(size_t number)
{
    Unseen unseen;
    const dim3 grid = launch->grid, block = launch->block;
    size_t n = block_threads();
    Block *b = new Block();
    b->index = {(unsigned)(number % grid.x), (unsigned)(number / grid.x % grid.y),
                (unsigned)(number / grid.x / grid.y)};
    b->alive = (int)n;
    b->thread.resize(n);
    b->warp.resize((n + 31) / 32);
    for (size_t i = 0; i < n; i++) {
        Thread &t = b->thread[i];
        t.index = {(unsigned)(i % block.x), (unsigned)(i / block.x % block.y),
                   (unsigned)(i / block.x / block.y)};
        t.block = b;
        t.warp = &b->warp[i / 32];
        t.lane = (int)(i % 32);
        t.at = launch->launched;
        Worker worker = take_worker();
        t.context = worker.context;
        t.fiber = worker.fiber;
        t.warp->lane[t.lane] = &t;
        t.warp->live |= 1u << t.lane;
        ready.push_back(&t);
    }
    unfinished += n;
    blocks.push_back(b);
}

void begin_next_block()
{
    size_t number = todo.back();
    todo.pop_back();
    begin_block(number);
}

bool filled(const char *p, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if ((unsigned char)p[i] != 0xff)
            return false;
    return true;
}

void end_block(Block *b)
{
    Unseen unseen;
    for (const Shared &s : b->shared) {
        if (!filled(s.p - margin, margin) || !filled(s.p + s.bytes, margin))
            error("shared memory written outside %s [%zu bytes]", s.name, s.bytes);
        free(s.p - margin);
    }
    blocks.erase(std::find(blocks.begin(), blocks.end(), b));
    delete b;
    if (!waves && !todo.empty())
        begin_next_block();
}

/* ---- who runs next */

/* In a random run half of the draws are from all, the rest from both ends, so that some
   threads run far ahead of others. */
Thread *draw_ready()
{
    if (!settings().inorder) {
        uint64_t draw = random_bits();
        size_t n = ready.size(), i = 0;
        if ((draw & 3) == 0)
            i = n - 1;
        else if ((draw & 3) != 1)
            i = (size_t)(((draw >> 32) * n) >> 32);
        std::swap(ready[i], ready.front());
    }
    Thread *next = ready.front();
    ready.pop_front();
    return next;
}

/* Threads are drawn a few switches ahead: a switch is waiting for memory more than
   anything else, so what they will need is asked for in time. */
struct Ahead {
    Thread *thread[4];
    unsigned first, count;
    Thread *&at(unsigned i)
    {
        return thread[(first + i) % 4];
    }
} ahead;

Thread *take_ready()
{
    Unseen unseen;
    while (ahead.count < 3 && !ready.empty()) {
        Thread *t = ahead.at(ahead.count++) = draw_ready();
        __builtin_prefetch(t);
        __builtin_prefetch(&t->fiber);
    }
    if (ahead.count == 0)
        return nullptr;
    Thread *next = ahead.at(0);
    ahead.first++;
    ahead.count--;
    for (unsigned i = 0; i < ahead.count; i++)
        if (ahead.at(i)->fiber)
            fiber_expect(ahead.at(i)->fiber, i == 0);
    return next;
}

[[noreturn]] void report_deadlock()
{
    int shown = 0;
    fprintf(stderr, "simt: %s: no thread can run, %zu wait\n", launch->name,
            unfinished);
    for (const Block *b : blocks)
        for (const Thread &t : b->thread)
            if (t.waits && shown++ < 8)
                fprintf(stderr,
                        "simt:   block %u, thread %u: %s (mask %08x) at %s:%d\n",
                        b->index.x, t.index.x, t.waits, t.call ? t.call->mask : 0,
                        t.at.file, t.at.line);
    error("deadlock in %s", launch->name);
}

void thread_main();

void activate(Thread *t)
{
    running = t;
    threadIdx = t->index;
    blockIdx = t->block->index;
    if (!t->fiber)
        t->fiber = fiber_new(thread_main);
    context_switch(t->context);
}

/* The running thread waits or lets others go first. */
void give_way()
{
    Thread *from = running, *next = take_ready();
    if (!next)
        report_deadlock();
    if (next == from)
        return;
    activate(next);
    fiber_switch(from->fiber, next->fiber);
}

/* The running thread has ended: its fiber continues as another thread that has not
   begun, or is kept for one. */
void leave()
{
    Thread *from = running;
    Fiber *fiber = from->fiber;
    if (waves) {
        Unseen unseen;
        ended.push_back({from->context, fiber});
        if (from->copier.context)
            ended.push_back(from->copier);
    }
    if (from->block->alive == 0) {
        end_block(from->block); /* and with it the thread */
        running = nullptr;
    }
    Thread *next = take_ready();
    if (!next) {
        if (unfinished > 0)
            report_deadlock();
        if (!waves)
            fiber_keep(fiber);
        running = nullptr;
        context_switch(host_context);
        fiber_switch(fiber, fiber_host());
    } else if (!waves && !next->fiber) {
        next->fiber = fiber;
        activate(next);
    } else {
        if (!waves)
            fiber_keep(fiber);
        activate(next);
        fiber_switch(fiber, next->fiber);
    }
}

/* ---- a thread's life */

/* Nobody may wait for a thread that has ended. */
void end_thread(Thread *t)
{
    const Barrier &barrier = t->block->barrier;
    t->warp->live &= ~(1u << t->lane);
    t->block->alive--;
    unfinished--;
    if (barrier.arrived > 0)
        error("a thread ends while others of its block wait at the barrier of %s:%d",
              barrier.at.file, barrier.at.line);
    for (int i = 0; i < 32; i++) {
        const Thread *other = t->warp->lane[i];
        if (t->warp->arrived >> i & 1 && other->call->mask >> t->lane & 1)
            error("a thread ends while lane %d of its warp waits for it at %s:%d", i,
                  other->at.file, other->at.line);
    }
}

void thread_main()
{
    for (;;) {
        acquire(&start_token);
        launch->kernel.body();
        copy_abandon(running);
        release(&end_token);
        end_thread(running);
        leave();
    }
}

void start_wave()
{
    size_t most = launch->cooperative || waves ? todo.size()
                  : settings().inorder         ? 1
                                               : 1 + below(3);
    size_t threads = launch->cooperative ? together_threads : wave_threads;
    while (most-- > 0 && !todo.empty() &&
           (blocks.empty() || unfinished + block_threads() <= threads))
        begin_next_block();
    if (launch->cooperative && !todo.empty())
        error(
            "a cooperative launch of %zu threads is more than can be checked: make it "
            "smaller (RNND_SIMT_SMS)",
            (todo.size() + blocks.size()) * block_threads());
}

void end_wave()
{
    Unseen unseen;
    std::vector<Worker> &spare = launch->workers->spare;
    spare.insert(spare.end(), ended.begin(), ended.end());
    ended.clear();
}

void order_blocks()
{
    size_t n = (size_t)launch->grid.x * launch->grid.y * launch->grid.z;
    todo.resize(n);
    for (size_t i = 0; i < n; i++)
        todo[i] = n - 1 - i;
    if (!settings().inorder)
        for (size_t i = n; i > 1; i--)
            std::swap(todo[i - 1], todo[below(i)]);
}

} // namespace

Thread *self()
{
    return running;
}

void run(const Launch &what)
{
    launch = &what;
    gridDim = what.grid;
    blockDim = what.block;
    release(&start_token);
    host_context = context_current();
    {
        Unseen unseen;
        order_blocks();
    }
    while (!todo.empty()) {
        {
            Unseen unseen;
            start_wave();
        }
        activate(take_ready());
        fiber_switch(fiber_host(), running->fiber);
        end_wave();
    }
    acquire(&end_token);
    launch = nullptr;
}

Workers::~Workers()
{
    Unseen unseen;
    idle.insert(idle.end(), spare.begin(), spare.end());
}

Worker take_worker(Workers *owner)
{
    Unseen unseen;
    std::vector<Worker> &from = owner->spare.empty() ? idle : owner->spare;
    if (from.empty())
        return {context_new(), nullptr};
    Worker worker = from.back();
    from.pop_back();
    return worker;
}

Worker take_worker()
{
    return take_worker(launch->workers.get());
}

/* ---- waiting */

void wait(const char *what)
{
    running->waits = what;
    give_way();
}

void wake(Thread *thread)
{
    Unseen unseen;
    thread->waits = nullptr;
    ready.push_back(thread);
}

void poll()
{
    wake(running);
    give_way();
}

void step_aside()
{
    if (!settings().inorder && (random_bits() & 3) == 0)
        poll();
}

int block_barrier(Meet kind, int value, Site at)
{
    Thread *t = running;
    Block *block = t->block;
    Barrier &b = block->barrier;
    t->at = at;
    if (block->alive != (int)block->thread.size())
        error("a block barrier after %d threads of the block have ended",
              (int)block->thread.size() - block->alive);
    if (b.arrived == 0) {
        b.at = at;
        b.sum = 0;
    } else if (b.at.line != at.line ||
               (b.at.file != at.file && strcmp(b.at.file, at.file) != 0)) {
        error("divergent block barrier: others wait at %s:%d", b.at.file, b.at.line);
    }
    unsigned turn = b.round & 1;
    release(&b.token[turn]);
    b.sum += value;
    if (++b.arrived == block->alive) {
        b.arrived = 0;
        b.round++;
        b.result[turn] = b.sum;
        for (Thread *other : b.waiting)
            wake(other);
        b.waiting.clear();
        poll();
    } else {
        {
            Unseen unseen;
            b.waiting.push_back(t);
        }
        wait("block barrier");
    }
    acquire(&b.token[turn]);
    int sum = b.result[turn];
    return kind == Meet::count ? sum
           : kind == Meet::all ? sum == (int)block->thread.size()
                               : sum != 0;
}

void check_cooperative(Site at)
{
    if (!launch->cooperative)
        kernel_error(at,
                     "a barrier between blocks in a launch that is not cooperative");
}

/* ---- shared memory */

static void *new_shared(const void *key, size_t bytes, const char *name)
{
    Unseen unseen;
    size_t room = (bytes + 15) / 16 * 16;
    char *p =
        static_cast<char *>(aligned_alloc(16, room + 2 * margin + (room == 0) * 16));
    if (!p)
        error("no memory for shared memory");
    memset(p, 0xff, room + 2 * margin);
    running->block->shared.push_back({key, p + margin, bytes, name});
    poison(p + margin + bytes, room - bytes);
    return p + margin;
}

void *shared_array(const void *key, size_t bytes, const char *name, Site at)
{
    size_t total = bytes;
    for (const Shared &s : running->block->shared) {
        if (s.key == key)
            return s.p;
        total += s.key ? s.bytes : 0;
    }
    if (total > 48 << 10)
        kernel_error(at, "more than 48 KiB of SHARED_ARRAY");
    Unseen unseen;
    size_t &known = static_bytes[launch->kernel.function];
    known = std::max(known, total);
    return new_shared(key, bytes, name);
}

void *shared_dynamic(Site at)
{
    for (const Shared &s : running->block->shared)
        if (!s.key)
            return s.p;
    if (launch->shared == 0)
        kernel_error(at, "SHARED_DYN in a launch without dynamic shared memory");
    return new_shared(nullptr, launch->shared, "dynamic shared memory");
}

bool owns_shared(const Block *block, const void *p, size_t bytes)
{
    const char *first = static_cast<const char *>(p);
    for (const Shared &s : block->shared)
        if (first >= s.p && first + bytes <= s.p + s.bytes)
            return true;
    return false;
}

size_t static_shared(const void *function)
{
    auto known = static_bytes.find(function);
    return known == static_bytes.end() ? 0 : known->second;
}

void describe_thread(char *text, size_t size)
{
    const Thread *t = running;
    snprintf(text, size,
             "\nsimt:   in %s (launched at %s:%d), block (%u,%u,%u), thread %u, "
             "at %s:%d",
             launch->name, launch->launched.file, launch->launched.line,
             t->block->index.x, t->block->index.y, t->block->index.z, t->index.x,
             t->at.file, t->at.line);
}

} // namespace simt
