/*
 * threads.c - runs the parts of an operation on the threads of the back end.
 *
 * The only file that knows OpenMP and the processor's floating-point modes. Every
 * thread flushes denormals while it works (they cost a factor of 1.3 to 18 on long
 * sequences) and restores its own mode afterwards, as does the caller.
 */
#include <signal.h>

#include "cpu.h"

#ifdef _OPENMP
#include <omp.h>
#endif
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif
#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* ---- denormals */

#if defined(__x86_64__)
static uint64_t flush_denormals(void)
{
    unsigned was = _mm_getcsr();
    _mm_setcsr(was | 0x8040); /* flush to zero, denormals are zero */
    return was;
}

static void restore_mode(uint64_t was)
{
    _mm_setcsr((unsigned)was);
}
#elif defined(__aarch64__)
static uint64_t flush_denormals(void)
{
    uint64_t was;
    __asm__ volatile("mrs %0, fpcr" : "=r"(was));
    __asm__ volatile("msr fpcr, %0" : : "r"(was | 1u << 24));
    return was;
}

static void restore_mode(uint64_t was)
{
    __asm__ volatile("msr fpcr, %0" : : "r"(was));
}
#else
static uint64_t flush_denormals(void)
{
    return 0;
}

static void restore_mode(uint64_t was)
{
    (void)was;
}
#endif

/* ---- sharing */

#ifdef _OPENMP
/* Signals are the caller's: it knows what its handlers need. Those that a thread raises
   itself stay with it. */
static void leave_signals_to_caller(void)
{
    static _Thread_local bool done;
    static const int own[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT};
    sigset_t all;
    if (done || omp_get_thread_num() == 0)
        return;
    sigfillset(&all);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        sigdelset(&all, own[i]);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    done = true;
}
#endif

/* ThreadSanitizer does not see how OpenMP's threads wait for each other. It is told
   that a call comes before all its parts, and they before its return; the parts
   themselves stay unordered. */
#ifdef __SANITIZE_THREAD__
#define NOT_SANITIZED __attribute__((no_sanitize("thread")))
#define GIVE(event)   __tsan_release(&event)
#define TAKE(event)   __tsan_acquire(&event)
static char begun, ended; /* only their addresses count */
#else
#define NOT_SANITIZED
#define GIVE(event) ((void)0)
#define TAKE(event) ((void)0)
#endif

/* One part on this thread. A matrix library asks OpenMP how many threads it may take:
   one. */
static void run_part(const struct rnnd__cpu *cpu, int part, int parts,
                     rnnd__cpu_work *work, const void *arg)
{
    TAKE(begun);
    uint64_t mode = flush_denormals();
#ifdef _OPENMP
    leave_signals_to_caller();
    int threads = omp_get_max_threads();
    omp_set_num_threads(1);
#endif
    work(cpu, arg, part, parts);
#ifdef _OPENMP
    omp_set_num_threads(threads);
#endif
    restore_mode(mode);
    GIVE(ended);
}

NOT_SANITIZED void rnnd__cpu_parallel(const struct rnnd__cpu *cpu, int parts,
                                      rnnd__cpu_work *work, const void *arg)
{
    if (parts <= 1) {
        run_part(cpu, 0, 1, work, arg);
        return;
    }
#ifdef _OPENMP
    GIVE(begun);
    /* A team may come out smaller than asked for; static scheduling still runs every
       part. */
#pragma omp parallel for schedule(static, 1) num_threads(parts)
#endif
    for (int part = 0; part < parts; part++)
        run_part(cpu, part, parts, work, arg);
    TAKE(ended);
}

int rnnd__cpu_parts(const struct rnnd__cpu *cpu, int64_t elements)
{
    const int64_t grain =
        1 << 14; /* below this a thread's start costs more than it saves */
    int64_t parts = 1 + elements / grain;
    return parts < cpu->threads ? (int)parts : cpu->threads;
}

void rnnd__cpu_range(int64_t n, int part, int parts, int64_t range[2])
{
    int64_t units = (n + 15) / 16;
    for (int i = 0; i < 2; i++) {
        int64_t at = units * (part + i) / parts * 16;
        range[i] = at < n ? at : n;
    }
}
