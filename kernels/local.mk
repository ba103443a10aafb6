# kernels/local.mk - the back ends. Objects of the CPU's go into librnn_dist.a.
#
# kernels/cpu/simd.c is compiled once for each instruction set; which one runs is chosen at run
# time. Each has its own library here, so that its flags touch nothing else.
EXTRA_LIBRARIES += libkernels.a libsimd_baseline.a
librnn_dist_a_LIBADD += $(libkernels_a_OBJECTS) $(libsimd_baseline_a_OBJECTS)

libkernels_a_CFLAGS = $(AM_CFLAGS) $(KERNEL_CFLAGS)
libkernels_a_SOURCES = \
	kernels/backend.h \
	kernels/cell.h \
	kernels/ctc.h \
	kernels/cpu/backend.c \
	kernels/cpu/cpu.h \
	kernels/cpu/ctc.c \
	kernels/cpu/dropout.c \
	kernels/cpu/embed.c \
	kernels/cpu/gemm.c \
	kernels/cpu/loss.c \
	kernels/cpu/matrix.c \
	kernels/cpu/pool.c \
	kernels/cpu/rnn.c \
	kernels/cpu/threads.c \
	kernels/cpu/vector.c

simd_sources = \
	kernels/cpu/bf16.h \
	kernels/cpu/simd.c \
	kernels/cpu/simd.h \
	kernels/cpu/simd_cell.h \
	kernels/cpu/simd_ctc.h \
	kernels/cpu/simd_gemm.h \
	kernels/cpu/simd_loss.h \
	kernels/cpu/simd_outer.h \
	kernels/cpu/simd_product.h \
	kernels/cpu/simd_vector.h \
	kernels/cpu/vec.h

libsimd_baseline_a_SOURCES = $(simd_sources)
libsimd_baseline_a_CPPFLAGS = $(AM_CPPFLAGS) -DRNND_ISA=baseline
libsimd_baseline_a_CFLAGS = $(AM_CFLAGS) $(KERNEL_CFLAGS)

if HAVE_X86
EXTRA_LIBRARIES += libsimd_avx2.a libsimd_avx512.a libsimd_avx512bf16.a
librnn_dist_a_LIBADD += $(libsimd_avx2_a_OBJECTS) $(libsimd_avx512_a_OBJECTS) \
	$(libsimd_avx512bf16_a_OBJECTS)

libsimd_avx2_a_SOURCES = $(simd_sources)
libsimd_avx2_a_CPPFLAGS = $(AM_CPPFLAGS) -DRNND_ISA=avx2
libsimd_avx2_a_CFLAGS = $(AM_CFLAGS) $(KERNEL_CFLAGS) -mavx2 -mfma

libsimd_avx512_a_SOURCES = $(simd_sources)
libsimd_avx512_a_CPPFLAGS = $(AM_CPPFLAGS) -DRNND_ISA=avx512
libsimd_avx512_a_CFLAGS = $(AM_CFLAGS) $(KERNEL_CFLAGS) -mavx512f -mavx512vl -mavx512dq \
	-mavx512bw -mfma

libsimd_avx512bf16_a_SOURCES = $(simd_sources)
libsimd_avx512bf16_a_CPPFLAGS = $(AM_CPPFLAGS) -DRNND_ISA=avx512bf16
libsimd_avx512bf16_a_CFLAGS = $(libsimd_avx512_a_CFLAGS) -mavx512bf16
endif

include kernels/cuda/local.mk
