/*
 * core.h - what the files of the emulator share. Kernels and tests do not see it.
 *
 *   report.cc   settings from the environment, random numbers, errors
 *   fiber.cc    stacks and the switch between them
 *   sched.cc    a launch: blocks, threads, who runs next, block barrier, shared memory
 *   warp.cc     shuffles, votes and matrix products of 32 lanes
 *   copy.cc     asynchronous copies of a thread
 *   memory.cc   device and pinned memory, and who may touch it
 *   device.cc   what the emulated devices are; limits of a launch
 *   queue.cc    streams as queues, and when their work runs (queue.h)
 *   stream.cc   calls on streams, events and copies
 *   graph.cc    capture and graphs (node.cc: their nodes one by one)
 *   blas.cc     cuBLAS over the CPU's matrix library
 *   nccl.cc     NCCL over MPI
 *
 * A fault of the program ends the process with status 86 and a line "simt: error: …"
 * that says what and where; what can happen to a program on a GPU (no memory, a launch
 * too large) is returned as CUDA's error.
 */
#ifndef SIMT_CORE_H
#define SIMT_CORE_H

#include <deque>
#include <memory>
#include <vector>

#include "sanitize.h"
#include "simt.h"

namespace simt
{

/* ---- report.cc */

struct Settings {
    /* RNND_SIMT_ARCH: 75 .. 120 (90) */
    int arch;
    /* RNND_SIMT_DEVICES (2) */
    int devices;
    /* RNND_SIMT_SMS: of a device, 0 = as the architecture has */
    int multiprocessors;
    /* RNND_SIMT_SEED=inorder */
    bool inorder;
    /* RNND_SIMT_SEED (1) */
    uint64_t seed;
    /* RNND_SIMT_MEMORY: MiB of each device (8192) */
    size_t memory;
    /* RNND_SIMT_DIGEST=1: tells at the end what the host got */
    bool digest;
    /* RNND_SIMT_STACK: KiB of each thread */
    size_t stack;
    /* RNND_SIMT_CAPTURES: 0 = every capture fails (1) */
    bool captures;
    /* RNND_SIMT_REFUSES: cooperative launches from this one on fail (0 = none) */
    long refuses;
    /* RNND_SIMT_NCCL: 0 = there is no libnccl (1) */
    bool nccl;
    /* RNND_SIMT_DIES=RANK:CALL:N: this rank is killed as it enters the call for the
       N-th time; N 0: never */
    char dies_in[64];
    long dies_at;
};
const Settings &settings();

/* Of the seed; below(n) is 0 .. n-1. In-order runs draw none. */
uint64_t random_bits();
size_t below(size_t n);

[[noreturn]] void error(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Keeps a result for cudaGetLastError. */
cudaError_t result(cudaError_t status);

/* ---- fiber.cc */

struct Fiber;
Fiber *fiber_host();
/* Its first switch enters `entry`, which never returns. */
Fiber *fiber_new(void (*entry)());
/* Ended and not running: may be given out again, its entry continuing after its
   switch. */
void fiber_keep(Fiber *fiber);
void fiber_switch(Fiber *from, Fiber *to);
/* A switch to it will come: at once, or later. */
void fiber_expect(const Fiber *fiber, bool at_once);
/* Where a fault at p would mean that a fiber's stack is full. */
bool fiber_guard(const void *p);

/* ---- sched.cc */

struct Block;
struct Warp;

struct Copy {
    void *shared;
    const void *global;
    int bytes, valid, group;
    bool landed;
};

/* A context of TSan that a CUDA thread has left, with its stack: a stack that another
   context used again would look like a race. */
struct Worker {
    void *context;
    /* NULL: has none yet */
    Fiber *fiber;
};

struct Thread {
    uint3 index;
    Block *block;
    Warp *warp;
    int lane;
    Fiber *fiber;
    /* of TSan */
    void *context;
    /* of warp.cc: what it brings while it waits for others */
    const Lane *call;
    /* and who came first and counts them, in here */
    Thread *leader;
    unsigned here;
    /* for what; NULL while it can run */
    const char *waits;
    /* where it last met others */
    Site at;
    std::vector<Copy> copies;
    /* of copies, open */
    int group;
    enum { tokens = 8 };
    /* of TSan: who makes its copies */
    Worker copier;
    char token, group_token[tokens];
};

struct Warp {
    /* lanes */
    unsigned live, arrived;
    Thread *lane[32];
    unsigned round;
    char token[2];
};

/* Those of a stream: what they did is ordered before what the stream does later, and
   before nothing else. Those of a stream that is gone, whose work the host has waited
   for, serve others: there are at most some 8000. */
struct Workers {
    std::vector<Worker> spare;
    ~Workers();
};

struct Launch {
    Kernel kernel;
    const char *name;
    Site launched;
    dim3 grid, block;
    size_t shared;
    bool cooperative;
    std::shared_ptr<Workers> workers;
};

/* The CUDA thread that runs, NULL on the host. */
Thread *self();
/* Runs all of it, on the stream's context. */
void run(const Launch &launch);
/* One for another who takes part in the launch, or in what the stream does. */
Worker take_worker();
Worker take_worker(Workers *from);
/* The running thread waits until wake(). */
void wait(const char *what);
void wake(Thread *thread);
/* Adds where the running thread is, for reports. */
void describe_thread(char *text, size_t size);
bool owns_shared(const Block *block, const void *p, size_t bytes);
/* Static shared memory that a kernel was seen to use. */
size_t static_shared(const void *function);

/* ---- copy.cc */

/* A thread ends: what it did not wait for arrives. */
void copy_abandon(Thread *t);

/* ---- memory.cc */

/* Lets work on this device touch its memory; -1: nobody. */
void open_memory(int device);
int working_device();
/* Ends the process unless p [bytes] is within one live allocation of the device. */
void check_device(const void *p, size_t bytes, int device, const char *what);
bool is_device(const void *p);
bool is_pinned(const void *p, size_t bytes);

/* ---- device.cc */

int current_device();
/* Whether a device of this kind would take the launch. */
cudaError_t check_launch(const Launch &launch);

/* ---- nccl.cc */

/* Multiprocessors of the device that collectives under way may hold, at worst: no two
   free ones are neighbours, as a cluster of blocks needs them. */
int held_by_collectives(int device);

/* ---- queue.cc */

/* Work of a stream: called until it returns true. */
typedef std::function<bool()> Work;
/* Behind what the stream holds, or into the graph being captured. */
void enqueue(cudaStream_t stream, const char *what, Work work);
/* Waits for all work of the device. */
void finish_all(int device);
bool is_capturing(cudaStream_t stream);
int stream_device(cudaStream_t stream);
/* First line of every entry point: not from queued work, not from a second thread. */
void enter(const char *function);
/* Ends the process if the stream is none, or of another device than the current one. */
void check_stream(cudaStream_t stream, const char *what);
void check_no_capture(const char *what);

} // namespace simt

#endif
