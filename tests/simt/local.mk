# tests/simt/local.mk - the emulated GPU: a plug-in, and programs that test the emulator.
#
# The emulator is .cc; kernels and what launches them are .cu, here and in kernels/cuda/. Each
# is compiled by g++ in up to three ways, told by the suffix:
#   .po  plain       .ao  ASan and UBSan       .to  TSan, which instruments the .cu only
# Make targets: simt (the plug-in), check-simt (all that is tested, in all three ways).
simt_core = \
	tests/simt/blas.cc \
	tests/simt/copy.cc \
	tests/simt/device.cc \
	tests/simt/fiber.cc \
	tests/simt/graph.cc \
	tests/simt/memory.cc \
	tests/simt/nccl.cc \
	tests/simt/queue.cc \
	tests/simt/report.cc \
	tests/simt/sched.cc \
	tests/simt/stream.cc \
	tests/simt/warp.cc
simt_headers = \
	tests/simt/core.h \
	tests/simt/queue.h \
	tests/simt/sanitize.h \
	tests/simt/simt.h \
	tests/simt/testing.h
# Run alone, and by nccl.sh on several ranks.
simt_tests = \
	tests/simt/test_blas.cu \
	tests/simt/test_block.cu \
	tests/simt/test_device.cu \
	tests/simt/test_memory.cu \
	tests/simt/test_stream.cu \
	tests/simt/test_warp.cu
simt_ranks = tests/simt/test_nccl.cu
simt_races = tests/simt/test_races.cu

EXTRA_DIST += $(simt_core) $(simt_headers) $(simt_tests) $(simt_ranks) $(simt_races) \
	tests/simt/each.sh tests/simt/missing.sh tests/simt/testing.cc
dist_check_SCRIPTS += tests/simt/asan.sh tests/simt/nccl.sh tests/simt/tsan.sh

TEST_EXTENSIONS += .plain .asan
PLAIN_LOG_COMPILER = $(LOG_COMPILER)
ASAN_LOG_COMPILER = $(LOG_COMPILER)
SUFFIXES += .cc .cu .po .ao .to .plain .asan .tsan

simt_plain_tests = $(simt_tests:.cu=.plain)
simt_asan_tests = $(simt_tests:.cu=.asan)
simt_tsan_tests = $(simt_tests:.cu=.tsan) $(simt_races:.cu=.tsan)
CLEANFILES += tests/simt/*.po tests/simt/*.ao tests/simt/*.to tests/simt/*.plain \
	tests/simt/*.asan tests/simt/*.tsan tests/simt/*.a tests/simt/*.so \
	$(cuda_sources:.cu=.po) $(cuda_sources:.cu=.ao) $(cuda_sources:.cu=.to)

if HAVE_SIMT
simt_compile = $(CXX) -std=c++17 -Wall -Wextra $(WERROR) $(DEFS) $(DEFAULT_INCLUDES) \
	-include config.h -I$(top_srcdir)/tests/simt -I$(top_srcdir)/kernels \
	-I$(top_srcdir)/lib $(MPI_CFLAGS) $(GEMM_CFLAGS) $(CUDA_CFLAGS) $(CPPFLAGS) \
	$(CXXFLAGS) -fPIC
simt_asan = -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all \
	-fno-omit-frame-pointer
simt_tsan = -O1 -g -DSIMT_TSAN
simt_link = $(CXX) $(CXXFLAGS) $(LDFLAGS)
simt_libs = $(GEMM_LIBS) $(MPI_LIBS) -ldl

.cc.po:
	@$(MKDIR_P) $(@D)
	$(AM_V_GEN)$(simt_compile) -x c++ -c -o $@ $<
.cu.po:
	@$(MKDIR_P) $(@D)
	$(AM_V_GEN)$(simt_compile) -x c++ -c -o $@ $<
.cc.ao:
	@$(MKDIR_P) $(@D)
	$(AM_V_GEN)$(simt_compile) $(simt_asan) -x c++ -c -o $@ $<
.cu.ao:
	@$(MKDIR_P) $(@D)
	$(AM_V_GEN)$(simt_compile) $(simt_asan) -x c++ -c -o $@ $<
.cc.to:
	@$(MKDIR_P) $(@D)
	$(AM_V_GEN)$(simt_compile) $(simt_tsan) -x c++ -c -o $@ $<
.cu.to:
	@$(MKDIR_P) $(@D)
	$(AM_V_GEN)$(simt_compile) $(simt_tsan) -fsanitize=thread -x c++ -c -o $@ $<

tests/simt/libplain.a: $(simt_core:.cc=.po) tests/simt/testing.po
	$(AM_V_AR)rm -f $@; $(AR) cr $@ $(simt_core:.cc=.po) tests/simt/testing.po
tests/simt/libasan.a: $(simt_core:.cc=.ao) tests/simt/testing.ao
	$(AM_V_AR)rm -f $@; $(AR) cr $@ $(simt_core:.cc=.ao) tests/simt/testing.ao
tests/simt/libtsan.a: $(simt_core:.cc=.to) tests/simt/testing.to
	$(AM_V_AR)rm -f $@; $(AR) cr $@ $(simt_core:.cc=.to) tests/simt/testing.to

.po.plain:
	$(AM_V_GEN)$(simt_link) -o $@ $< tests/simt/libplain.a $(simt_libs)
.ao.asan:
	$(AM_V_GEN)$(simt_link) $(simt_asan) -o $@ $< tests/simt/libasan.a $(simt_libs)
.to.tsan:
	$(AM_V_GEN)$(simt_link) -fsanitize=thread -o $@ $< tests/simt/libtsan.a $(simt_libs)

$(simt_plain_tests) $(simt_ranks:.cu=.plain): tests/simt/libplain.a
$(simt_asan_tests) $(simt_ranks:.cu=.asan): tests/simt/libasan.a
$(simt_tsan_tests) $(simt_ranks:.cu=.tsan): tests/simt/libtsan.a

$(simt_core:.cc=.po) $(simt_core:.cc=.ao) $(simt_core:.cc=.to) \
$(simt_tests:.cu=.po) $(simt_tests:.cu=.ao) $(simt_tests:.cu=.to) \
$(simt_ranks:.cu=.po) $(simt_ranks:.cu=.ao) $(simt_ranks:.cu=.to) \
$(simt_races:.cu=.to) tests/simt/testing.po tests/simt/testing.ao tests/simt/testing.to \
$(cuda_sources:.cu=.po) $(cuda_sources:.cu=.ao) $(cuda_sources:.cu=.to): \
	$(simt_headers) $(cuda_depends)

# The plug-in: kernels/cuda/ around the emulator instead of CUDA, cuBLAS and NCCL.
simt_shared = -shared -Wl,--no-undefined \
	-Wl,--version-script=$(srcdir)/kernels/cuda/plugin.map
simt_plugin = tests/simt/rnn_dist_cuda_simt.so
if SANITIZE
$(simt_plugin): $(cuda_sources:.cu=.ao) $(simt_core:.cc=.ao)
	$(AM_V_GEN)$(simt_link) $(simt_asan) $(simt_shared) -o $@ $(cuda_sources:.cu=.ao) \
	    $(simt_core:.cc=.ao) $(simt_libs)
else
$(simt_plugin): $(cuda_sources:.cu=.po) $(simt_core:.cc=.po)
	$(AM_V_GEN)$(simt_link) $(simt_shared) -o $@ $(cuda_sources:.cu=.po) \
	    $(simt_core:.cc=.po) $(simt_libs)
endif
simt: $(simt_plugin)

# The short form is part of `make check`.
if SANITIZE
simt_check = $(simt_asan_tests)
else
simt_check = $(simt_plain_tests)
endif
check_SCRIPTS += $(simt_check) $(simt_ranks:.cu=.plain)
TESTS += $(simt_check) tests/simt/nccl.sh

# Programs of one name have one log: the sanitized ones are started by a script each.
simt_long_tests = $(simt_plain_tests) tests/simt/asan.sh tests/simt/tsan.sh \
	tests/simt/nccl.sh
check-simt: $(simt_plain_tests) $(simt_asan_tests) $(simt_tsan_tests) \
	$(simt_ranks:.cu=.plain)
	$(MAKE) $(AM_MAKEFLAGS) check-TESTS TESTS='$(simt_long_tests)'
else
TESTS += tests/simt/missing.sh
simt check-simt:
	@$(SHELL) $(srcdir)/tests/simt/missing.sh >&2
endif
.PHONY: simt check-simt
