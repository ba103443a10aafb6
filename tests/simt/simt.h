/*
 * simt.h - what a kernel sees of the emulated GPU: the words of
 * kernels/cuda/dialect.cuh and of CUDA, for a .cu that g++ compiles.
 *
 * Takes the kernel's calls, gives them to the scheduler (sched.cc), the warps (warp.cc)
 * and the copies (copy.cc). Each word that can wait carries its line, for
 * reports. Included by dialect.cuh, after CUDA's headers; nothing else of a kernel
 * includes it.
 */
#ifndef SIMT_H
#define SIMT_H

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <dlfcn.h>
#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>

#include <cuda_bf16.h>
#include <cuda_runtime.h>

namespace simt
{

/* The place of a word in the kernel. As a default argument it is the caller's place. */
struct Site {
    const char *file;
    int line;
    constexpr Site(const char *at = __builtin_FILE(), int number = __builtin_LINE())
        : file(at), line(number)
    {
    }
};

/* ---- sched.cc */

enum class Meet { plain, any, all, count };
/* The block barrier; returns the vote over value. */
int block_barrier(Meet kind, int value, Site at);
/* Lets others run; poll() always, step_aside() by chance. */
void poll();
void step_aside();
/* Shared memory of the block: filled with NaN, its own for each block. */
void *shared_array(const void *key, size_t bytes, const char *name, Site at);
void *shared_dynamic(Site at);
void check_cooperative(Site at);
/* Reports and ends the process. */
[[noreturn]] void kernel_error(Site at, const char *text);

/* ---- warp.cc */

enum class Lanes {
    shfl,
    shfl_up,
    shfl_down,
    shfl_xor,
    ballot,
    any,
    all,
    sync,
    bf16,
    tf32
};
/* What one lane brings to a collective of its warp. */
struct Lane {
    Lanes op;
    unsigned mask;
    Site at;
    const void *in;
    void *out;
    size_t bytes;
    int operand, width;
};
void meet_lanes(const Lane &lane);

struct Fragment {
    float *d;
    const uint32_t *a, *b;
    const float *c;
};

/* ---- copy.cc */

void copy_begin(void *shared, const void *global, int bytes, int valid, Site at);
void copy_group();
void copy_finish(int pending);

/* ---- queue.cc */

typedef std::function<void()> Body;
/* Makes one of a kernel and its arguments, which are copied. */
typedef Body Binder(const void *function, void **args);
struct Kernel {
    const void *function;
    /* what one thread runs, its arguments inside */
    Body body;
    /* for other arguments: graphs are given new ones */
    Binder *bind;
};
cudaError_t launch_kernel(Kernel kernel, dim3 grid, dim3 block, size_t shared,
                          cudaStream_t stream, bool cooperative);
/* Names the next launch for reports. */
void name_launch(const char *kernel, Site at = Site());
/* Pointers given to a kernel are the device's or pinned. */
void check_argument(const void *pointer, int index);

template <class T>
inline T shfl(Lanes op, unsigned mask, T value, int operand, int width, Site at)
{
    static_assert(std::is_arithmetic<T>::value && (sizeof(T) == 4 || sizeof(T) == 8),
                  "shuffles take int, unsigned, float, double and 64-bit integers");
    T result;
    meet_lanes({op, mask, at, &value, &result, sizeof value, operand, width});
    return result;
}

inline unsigned vote(Lanes op, unsigned mask, int predicate, Site at)
{
    unsigned value = predicate != 0, result;
    meet_lanes({op, mask, at, &value, &result, sizeof value, 0, 32});
    return result;
}

template <class T> inline const T *aligned(const T *p, Site at)
{
    if (reinterpret_cast<uintptr_t>(p) % sizeof(T) != 0)
        kernel_error(at, "misaligned access");
    return p;
}

template <class T> inline void check_each(const T &, int)
{
}

template <class T> inline void check_each(T *pointer, int index)
{
    check_argument(reinterpret_cast<const void *>(pointer), index);
}

/* The arguments are copied now, as CUDA does. */
template <class... P, size_t... I>
inline Body bind_each(void (*kernel)(P...), void **args, std::index_sequence<I...>)
{
    std::tuple<P...> values(*static_cast<P *>(args[I])...);
    (check_each(std::get<I>(values), (int)I), ...);
    return [kernel, values] { std::apply(kernel, values); };
}

template <class... P> inline Body bind(const void *function, void **args)
{
    return bind_each(reinterpret_cast<void (*)(P...)>(const_cast<void *>(function)),
                     args, std::index_sequence_for<P...>());
}

template <class... P> inline Kernel bound(void (*kernel)(P...), void **args)
{
    const void *function = reinterpret_cast<const void *>(kernel);
    return {function, bind<P...>(function, args), bind<P...>};
}

} // namespace simt

/* ---- launching */

/* More specialised than the templates of cuda_runtime.h, which erase the arguments'
   types. */
template <class... P>
inline cudaError_t cudaLaunchKernel(void (*kernel)(P...), dim3 grid, dim3 block,
                                    void **args, size_t shared, cudaStream_t stream)
{
    return simt::launch_kernel(simt::bound(kernel, args), grid, block, shared, stream,
                               false);
}

template <class... P>
inline cudaError_t cudaLaunchCooperativeKernel(void (*kernel)(P...), dim3 grid,
                                               dim3 block, void **args, size_t shared,
                                               cudaStream_t stream)
{
    return simt::launch_kernel(simt::bound(kernel, args), grid, block, shared, stream,
                               true);
}

/* As nvcc has them, for kernels by name. */
template <class... P>
inline cudaError_t cudaFuncSetAttribute(void (*kernel)(P...), cudaFuncAttribute which,
                                        int value)
{
    return cudaFuncSetAttribute(reinterpret_cast<const void *>(kernel), which, value);
}

template <class... P>
inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *out, void (*kernel)(P...))
{
    return cudaFuncGetAttributes(out, reinterpret_cast<const void *>(kernel));
}

/* ---- nccl.cc: a libnccl to load, among those of the system */

namespace simt
{
void *library_open(const char *name, int flags);
void *library_symbol(void *library, const char *name);
char *library_error();
} // namespace simt
#define dlopen(name, flags)  simt::library_open(name, flags)
#define dlsym(library, name) simt::library_symbol(library, name)
#define dlerror()            simt::library_error()

/* ---- where a thread is */

/* Those of the thread that runs: the scheduler sets them. */
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
#undef __launch_bounds__
#define __launch_bounds__(...)
#define UNROLL
#define NO_UNROLL
#define RNND_SPIN_LIMIT \
    (1u << 20) /* polls are far fewer where every poll lets others run */

/* ---- shared memory */

#define SHARED_ARRAY(T, name, dims)                      \
    static char name##_key;                              \
    typedef T name##_shared dims;                        \
    name##_shared &name = *static_cast<name##_shared *>( \
        simt::shared_array(&name##_key, sizeof(name##_shared), #name, simt::Site()))

#define SHARED_DYN(T, name) \
    T *name = static_cast<T *>(simt::shared_dynamic(simt::Site()))

/* ---- barriers, shuffles, votes */

inline void __syncthreads(simt::Site at = simt::Site())
{
    simt::block_barrier(simt::Meet::plain, 0, at);
}

inline int __syncthreads_or(int predicate, simt::Site at = simt::Site())
{
    return simt::block_barrier(simt::Meet::any, predicate != 0, at);
}

inline int __syncthreads_and(int predicate, simt::Site at = simt::Site())
{
    return simt::block_barrier(simt::Meet::all, predicate != 0, at);
}

inline int __syncthreads_count(int predicate, simt::Site at = simt::Site())
{
    return simt::block_barrier(simt::Meet::count, predicate != 0, at);
}

inline void __syncwarp(unsigned mask = 0xffffffffu, simt::Site at = simt::Site())
{
    simt::vote(simt::Lanes::sync, mask, 0, at);
}

template <class T>
inline T __shfl_sync(unsigned mask, T value, int lane, int width = 32,
                     simt::Site at = simt::Site())
{
    return simt::shfl(simt::Lanes::shfl, mask, value, lane, width, at);
}

template <class T>
inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32,
                        simt::Site at = simt::Site())
{
    return simt::shfl(simt::Lanes::shfl_up, mask, value, (int)delta, width, at);
}

template <class T>
inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32,
                          simt::Site at = simt::Site())
{
    return simt::shfl(simt::Lanes::shfl_down, mask, value, (int)delta, width, at);
}

template <class T>
inline T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32,
                         simt::Site at = simt::Site())
{
    return simt::shfl(simt::Lanes::shfl_xor, mask, value, bits, width, at);
}

inline unsigned __ballot_sync(unsigned mask, int predicate,
                              simt::Site at = simt::Site())
{
    return simt::vote(simt::Lanes::ballot, mask, predicate, at);
}

inline int __any_sync(unsigned mask, int predicate, simt::Site at = simt::Site())
{
    return (int)simt::vote(simt::Lanes::any, mask, predicate, at);
}

inline int __all_sync(unsigned mask, int predicate, simt::Site at = simt::Site())
{
    return (int)simt::vote(simt::Lanes::all, mask, predicate, at);
}

/* ---- memory */

template <class T> inline T __ldg(const T *p, simt::Site at = simt::Site())
{
    return *simt::aligned(p, at);
}

template <class T> inline T __ldcg(const T *p, simt::Site at = simt::Site())
{
    return *simt::aligned(p, at);
}

template <class T> inline void __stcg(T *p, T value, simt::Site at = simt::Site())
{
    simt::aligned(p, at);
    *p = value;
}

inline uint32_t ld_relaxed(const uint32_t *p)
{
    simt::poll();
    return __atomic_load_n(p, __ATOMIC_RELAXED);
}

inline uint32_t ld_acquire(const uint32_t *p)
{
    simt::poll();
    return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

inline void st_release(uint32_t *p, uint32_t value)
{
    simt::step_aside();
    __atomic_store_n(p, value, __ATOMIC_RELEASE);
}

inline void assert_cooperative(simt::Site at = simt::Site())
{
    simt::check_cooperative(at);
}

template <class T>
using simt_integer = std::enable_if_t<std::is_integral<T>::value && sizeof(T) >= 4, T>;

template <class T> inline simt_integer<T> atomicAdd(T *p, T value)
{
    simt::step_aside();
    return __atomic_fetch_add(p, value, __ATOMIC_RELAXED);
}

template <class T> inline simt_integer<T> atomicExch(T *p, T value)
{
    simt::step_aside();
    return __atomic_exchange_n(p, value, __ATOMIC_RELAXED);
}

template <class T> inline simt_integer<T> atomicCAS(T *p, T expected, T value)
{
    simt::step_aside();
    __atomic_compare_exchange_n(p, &expected, value, false, __ATOMIC_RELAXED,
                                __ATOMIC_RELAXED);
    return expected;
}

template <class T> inline simt_integer<T> atomicMax(T *p, T value)
{
    T old = __atomic_load_n(p, __ATOMIC_RELAXED);
    while (old < value && atomicCAS(p, old, value) != old)
        old = __atomic_load_n(p, __ATOMIC_RELAXED);
    return old;
}

template <class T> inline simt_integer<T> atomicMin(T *p, T value)
{
    T old = __atomic_load_n(p, __ATOMIC_RELAXED);
    while (old > value && atomicCAS(p, old, value) != old)
        old = __atomic_load_n(p, __ATOMIC_RELAXED);
    return old;
}

/* Compile, so that a test can show that they are refused. */
template <class T>
inline std::enable_if_t<std::is_floating_point<T>::value, T> atomicAdd(
    T *, T, simt::Site at = simt::Site())
{
    simt::kernel_error(
        at, "atomicAdd on floating point: the sum's bits would depend on the "
            "schedule");
}

/* ---- asynchronous copies */

template <int bytes>
inline void copy_async(void *shared, const void *global, int valid = bytes,
                       simt::Site at = simt::Site())
{
    static_assert(bytes == 4 || bytes == 8 || bytes == 16, "4, 8 or 16 bytes");
    simt::copy_begin(shared, global, bytes, valid, at);
}

inline void copy_commit()
{
    simt::copy_group();
}

template <int pending> inline void copy_wait()
{
    simt::copy_finish(pending);
}

/* ---- matrix products */

inline void mma_bf16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                     const float (&c)[4], simt::Site at = simt::Site())
{
    simt::Fragment fragment = {d, a, b, c};
    simt::meet_lanes({simt::Lanes::bf16, ~0u, at, &fragment, d, 0, 0, 32});
}

inline void mma_tf32(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                     const float (&c)[4], simt::Site at = simt::Site())
{
    simt::Fragment fragment = {d, a, b, c};
    simt::meet_lanes({simt::Lanes::tf32, ~0u, at, &fragment, d, 0, 0, 32});
}

/* ---- arithmetic that the toolkit's headers leave to the device */

using std::max;
using std::min;

inline uint32_t __float_as_uint(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

inline float __uint_as_float(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

inline int __popc(unsigned x)
{
    return __builtin_popcount(x);
}

inline int __ffs(int x)
{
    return __builtin_ffs(x);
}

inline int __clz(int x)
{
    return x ? __builtin_clz((unsigned)x) : 32;
}

inline float rsqrtf(float x)
{
    return 1.0f / sqrtf(x);
}

inline float __expf(float x)
{
    return expf(x);
}

inline float __fdividef(float a, float b)
{
    return a / b;
}

[[noreturn]] inline void __trap(simt::Site at = simt::Site())
{
    simt::kernel_error(at, "__trap()");
}

#endif
