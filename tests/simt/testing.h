/*
 * testing.h - scenarios: each runs in a process of its own, under several schedules.
 *
 * A scenario that shows what the emulator refuses ends its process, so the test program
 * starts itself anew with the scenario's name and looks at the exit status and at what
 * was printed.
 */
#ifndef SIMT_TESTING_H
#define SIMT_TESTING_H

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "cuda/dialect.cuh"

struct Scenario {
    const char *name;
    void (*run)();
    /* 0: good, 1: EXPECT fails, 86: the emulator reports */
    int status;
    /* that must be in what it prints; NULL: none */
    const char *text;
    /* NAME=value in its environment; NULL: none */
    const char *variable;
    /* 0: in order and a few; n: seeds 1 .. n */
    int seeds;
};

/* main(): all scenarios, or the one named by the first argument. */
int run_scenarios(int argc, char **argv, const Scenario *list, size_t count);
/* The first of several programs in one: mpirun has them (test_nccl). */
int run_here(const char *name, const Scenario *list, size_t count);

/* Ends the scenario with status 1. */
#define EXPECT(condition)                                                             \
    do {                                                                              \
        if (!(condition)) {                                                           \
            fprintf(stderr, "%s:%d: expected: %s\n", __FILE__, __LINE__, #condition); \
            exit(1);                                                                  \
        }                                                                             \
    } while (0)

#define EXPECT_CUDA(call) EXPECT((call) == cudaSuccess)

/* Memory of the device that is freed with it. */
template <class T> struct Device {
    T *p = nullptr;
    size_t n;
    explicit Device(size_t count) : n(count)
    {
        EXPECT_CUDA(cudaMalloc(reinterpret_cast<void **>(&p), n * sizeof(T)));
    }
    Device(const Device &) = delete;
    ~Device()
    {
        cudaFree(p);
    }
    /* Both wait. */
    void put(const std::vector<T> &from, cudaStream_t s)
    {
        EXPECT_CUDA(
            cudaMemcpyAsync(p, from.data(), n * sizeof(T), cudaMemcpyHostToDevice, s));
        EXPECT_CUDA(cudaStreamSynchronize(s));
    }
    std::vector<T> get(cudaStream_t s) const
    {
        std::vector<T> to(n);
        EXPECT_CUDA(
            cudaMemcpyAsync(to.data(), p, n * sizeof(T), cudaMemcpyDeviceToHost, s));
        EXPECT_CUDA(cudaStreamSynchronize(s));
        return to;
    }
};

struct Stream {
    cudaStream_t s;
    Stream()
    {
        EXPECT_CUDA(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    }
    Stream(const Stream &) = delete;
    ~Stream()
    {
        cudaStreamDestroy(s);
    }
    operator cudaStream_t() const
    {
        return s;
    }
};

/* Pinned memory that is freed with it. */
struct Pinned {
    float *p;
    explicit Pinned(size_t n)
    {
        EXPECT_CUDA(cudaMallocHost(reinterpret_cast<void **>(&p), n * sizeof *p));
    }
    Pinned(const Pinned &) = delete;
    ~Pinned()
    {
        cudaFreeHost(p);
    }
};

struct Event {
    cudaEvent_t e;
    Event()
    {
        EXPECT_CUDA(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
    }
    Event(const Event &) = delete;
    ~Event()
    {
        cudaEventDestroy(e);
    }
};

/* Some float in -0.5 .. 0.5, the same for the same i. */
float some(size_t i);
std::vector<float> some_floats(size_t n, size_t from);

#endif
