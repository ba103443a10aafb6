/*
 * dialect.cuh - the language that kernels are written in, for nvcc and for the emulated
 * GPU.
 *
 * Takes sm_75 to sm_120; under g++ tests/simt/simt.h gives the same words their
 * meaning. What is not here or in CUDA's list below is not used, so that the emulator
 * proves what runs.
 *
 * CUDA's own, as its guide defines them
 *   threadIdx blockIdx blockDim gridDim, blocks one-dimensional; __launch_bounds__
 *   __syncthreads __syncthreads_and _or _count     the block barrier, by all threads
 *   __syncwarp __shfl_sync _up_ _down_ _xor_       every lane of the mask, same mask
 *   __ballot_sync __any_sync __all_sync            the same; there is no __activemask
 *   __ldg                                          what nobody writes during the launch
 *   __ldcg __stcg                                  past L1: for what other blocks use
 *   atomicAdd atomicMax atomicMin atomicExch atomicCAS    on integers; none on floats,
 *                                                  whose order would change the bits
 *   expf tanhf sqrtf rsqrtf fmaf fminf fmaxf fabsf log1pf logf, min max, __expf
 *   __fdividef, __popc __ffs __clz, __float_as_uint __uint_as_float, float2 float4
 *   uint2 uint4 ..., __trap
 *
 * Ours
 *   SHARED_ARRAY(float, tile, [8][32])   shared memory of fixed size, 16-byte aligned
 *   SHARED_DYN(float, s)                 float *s: the launch's dynamic shared memory
 *   group_barrier grid_barrier           between blocks; cooperative launch only
 *   ld_relaxed ld_acquire st_release     flag words between blocks
 *   copy_async<16> copy_commit copy_wait<n>      global to shared, in the background
 *   mma_bf16 mma_tf32                    matrix products of a warp, fp32 sums
 *   bf16 to_bf16 from_bf16 bf16_pair bf16_low bf16_high to_tf32 from_tf32    rounding
 *   UNROLL NO_UNROLL                     before a loop
 *   launch launch_cooperative            kernels with their arguments' types checked
 *
 * Never: <<<>>>, the default stream, volatile, spinning on anything but ld_relaxed,
 * fences, static kernels or kernels in an anonymous namespace, static variables in
 * kernels, half2 or bfloat162 members in structs passed by value, a grid dimension that
 * carries time steps.
 *
 * mma_bf16 and mma_tf32 exist from sm_80 on; on sm_75 they trap and the planner never
 * chooses a kernel with them. copy_async copies at once there.
 */
#ifndef RNND_DIALECT_CUH
#define RNND_DIALECT_CUH

#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <stddef.h>
#include <stdint.h>

/* Faults to be planted by test builds, one at a time: true where RNND_FAULT is n, else
   a constant false that leaves no code. `what` says what is wrong then;
   tests/simt/faults.sh finds the numbers and the words here, and wants each fault found
   by a test. */
#ifndef RNND_FAULT
#define RNND_FAULT 0
#endif
#define PLANTED(n, what) (RNND_FAULT == (n))

typedef __nv_bfloat16 bf16;

#ifdef __CUDACC__

/* ---- shared memory */

#define SHARED_ARRAY(T, name, dims) __shared__ __align__(16) T name dims

#define SHARED_DYN(T, name)                                               \
    extern __shared__ __align__(16) unsigned char rnnd__shared_dynamic[]; \
    T *name = reinterpret_cast<T *>(rnnd__shared_dynamic)

#define UNROLL    _Pragma("unroll")
#define NO_UNROLL _Pragma("unroll 1")

/* ---- flags between blocks */

__device__ __forceinline__ uint32_t ld_acquire(const uint32_t *p)
{
    uint32_t v;
    asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}

/* Without an order of what else is read or written: to poll. Unlike an acquire it
   leaves L1 as it is. */
__device__ __forceinline__ uint32_t ld_relaxed(const uint32_t *p)
{
    uint32_t v;
    asm volatile("ld.relaxed.gpu.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}

/* What this thread wrote, or knows by a barrier to be written, is seen by whoever
   acquires. */
__device__ __forceinline__ void st_release(uint32_t *p, uint32_t v)
{
    asm volatile("st.release.gpu.u32 [%0], %1;" : : "l"(p), "r"(v) : "memory");
}

/* The emulator checks here that the launch is cooperative. */
__device__ __forceinline__ void assert_cooperative()
{
}

/* ---- asynchronous copies */

/* Copies `bytes` (4, 8 or 16, both ends aligned to them) from global to shared memory,
   the first `valid` of them; the rest becomes zero and is not read. Only 16 goes past
   L1: what other blocks wrote during this launch is fetched by 16. */
template <int bytes>
__device__ __forceinline__ void copy_async(void *shared, const void *global,
                                           int valid = bytes)
{
    static_assert(bytes == 4 || bytes == 8 || bytes == 16, "4, 8 or 16 bytes");
#if __CUDA_ARCH__ >= 800
    uint32_t to = (uint32_t)__cvta_generic_to_shared(shared);
    size_t from = __cvta_generic_to_global(global);
    if (bytes == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                     :
                     : "r"(to), "l"(from), "r"(valid)
                     : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;"
                     :
                     : "r"(to), "l"(from), "n"(bytes), "r"(valid)
                     : "memory");
#else
    for (int i = 0; i < bytes; i++)
        ((char *)shared)[i] = i < valid ? ((const char *)global)[i] : 0;
#endif
}

/* Ends a group of this thread's copies. */
__device__ __forceinline__ void copy_commit()
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" : : : "memory");
#endif
}

/* Waits until at most `pending` of this thread's latest groups are on their way. Others
   see the data after a barrier. */
template <int pending> __device__ __forceinline__ void copy_wait()
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" : : "n"(pending) : "memory");
#endif
}

/* ---- matrix products of a warp */

/* D = A B + C by all 32 lanes; A [16,16], B [16,8], C and D [16,8]. Lane 4 g + q holds
     a[0] A[g][2q..2q+1]    a[1] A[g+8][2q..]   a[2] A[g][2q+8..]   a[3] A[g+8][2q+8..]
     b[0] B[2q..2q+1][g]    b[1] B[2q+8..][g]
     c[0..1] C[g][2q..2q+1]    c[2..3] C[g+8][2q..2q+1]
   a pair's first element in the low half. d may be c. */
__device__ __forceinline__ void mma_bf16(float (&d)[4], const uint32_t (&a)[4],
                                         const uint32_t (&b)[2], const float (&c)[4])
{
#if __CUDA_ARCH__ >= 800
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"
                 : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]),
                   "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));
#else
    __trap();
#endif
}

/* The same with A [16,8], B [8,8] of values rounded by to_tf32. Lane 4 g + q holds
     a[0] A[g][q]    a[1] A[g+8][q]    a[2] A[g][q+4]    a[3] A[g+8][q+4]
     b[0] B[q][g]    b[1] B[q+4][g]    c and d as above */
__device__ __forceinline__ void mma_tf32(float (&d)[4], const uint32_t (&a)[4],
                                         const uint32_t (&b)[2], const float (&c)[4])
{
#if __CUDA_ARCH__ >= 800
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"
                 : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]),
                   "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));
#else
    __trap();
#endif
}

#else /* g++: the emulated GPU */
#include "simt.h"
#endif

/* ---- barriers between blocks: the same code on both */

/* Polls before a block that does not come is given up: some 10 s on a GPU. */
#ifndef RNND_SPIN_LIMIT
#define RNND_SPIN_LIMIT (1u << 24)
#endif

/* A barrier of blocks 0 .. members-1: what their threads wrote before it is seen by
   all of them after it, by loads that go past L1. flags [members] in global memory,
   older than epoch (zero) before the launch; epoch grows by 1 with each barrier, the
   same in all members. All threads of the block call it. False in all of them if a
   member did not come: the kernel says so in device memory and ends. */
__device__ __forceinline__ bool group_barrier(uint32_t *flags, int members, int member,
                                              uint32_t epoch)
{
    int lost = 0;
    assert_cooperative();
    __syncthreads();
    if (threadIdx.x == 0)
        st_release(flags + member, epoch);
    NO_UNROLL
    for (int i = (int)threadIdx.x; i < members; i += (int)blockDim.x) {
        uint32_t polls = 0;
        NO_UNROLL
        while (!lost && (int32_t)(ld_relaxed(flags + i) - epoch) < 0)
            lost = ++polls == RNND_SPIN_LIMIT;
        /* the same value or a later one of that block, each a release */
        (void)ld_acquire(flags + i);
    }
    return !__syncthreads_or(lost);
}

/* All blocks of the launch; flags [blocks]. */
__device__ __forceinline__ bool grid_barrier(uint32_t *flags, uint32_t epoch)
{
    int member = (int)(blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z));
    return group_barrier(flags, (int)(gridDim.x * gridDim.y * gridDim.z), member,
                         epoch);
}

/* ---- rounding */

/* To nearest, ties to even. */
__host__ __device__ __forceinline__ bf16 to_bf16(float x)
{
    return __float2bfloat16_rn(x);
}

__host__ __device__ __forceinline__ float from_bf16(bf16 x)
{
    return __bfloat162float(x);
}

/* Two of them in a register as mma_bf16 wants them. */
__device__ __forceinline__ uint32_t bf16_pair(float low, float high)
{
    return (uint32_t)__bfloat16_as_ushort(to_bf16(low)) |
           (uint32_t)__bfloat16_as_ushort(to_bf16(high)) << 16;
}

__device__ __forceinline__ float bf16_low(uint32_t pair)
{
    return __uint_as_float(pair << 16);
}

__device__ __forceinline__ float bf16_high(uint32_t pair)
{
    return __uint_as_float(pair & 0xffff0000u);
}

/* To nearest, ties away from zero: 10 bits of fraction; the low 13 bits are zero. */
__device__ __forceinline__ uint32_t to_tf32(float x)
{
#if defined(__CUDACC__) && __CUDA_ARCH__ >= 800
    uint32_t bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
    return bits & 0xffffe000u;
#else
    uint32_t bits = __float_as_uint(x);
    if ((bits & 0x7f800000u) == 0x7f800000u)
        return bits & 0x007fffffu ? 0x7fffe000u : bits;
    return (bits + 0x1000u) & 0xffffe000u;
#endif
}

__device__ __forceinline__ float from_tf32(uint32_t x)
{
    return __uint_as_float(x);
}

/* ---- launching */

template <class T> struct rnnd__as_declared {
    typedef T type;
};

/* kernel<<<grid, block, shared, stream>>>(args...), with the arguments converted to
   what the kernel takes. The arguments are copied before it returns. */
template <class... P>
inline cudaError_t launch(void (*kernel)(P...), dim3 grid, dim3 block, size_t shared,
                          cudaStream_t stream,
                          typename rnnd__as_declared<P>::type... args)
{
    void *list[] = {static_cast<void *>(&args)..., nullptr};
    return cudaLaunchKernel(kernel, grid, block, list, shared, stream);
}

/* The same with all blocks on the device at once, or
   cudaErrorCooperativeLaunchTooLarge. */
template <class... P>
inline cudaError_t launch_cooperative(void (*kernel)(P...), dim3 grid, dim3 block,
                                      size_t shared, cudaStream_t stream,
                                      typename rnnd__as_declared<P>::type... args)
{
    void *list[] = {static_cast<void *>(&args)..., nullptr};
    return cudaLaunchCooperativeKernel(kernel, grid, block, list, shared, stream);
}

#ifndef __CUDACC__
/* The emulator's reports name the kernel and its launch. A macro does not expand in
   itself. */
#define launch(kernel, ...) (simt::name_launch(#kernel), launch(kernel, __VA_ARGS__))
#define launch_cooperative(kernel, ...) \
    (simt::name_launch(#kernel), launch_cooperative(kernel, __VA_ARGS__))
#endif

#endif
