# tests/simt/local.mk - the emulated GPU: a plug-in, and programs that test the emulator.
#
# The emulator is .cc; kernels and what launches them are .cu, here and in kernels/cuda/. Each
# is compiled by g++ in up to three ways, which the suffix names:
#   .po  plain       .ao  ASan and UBSan       .to  TSan, which instruments the .cu only
# Make targets: simt, simt-asan, simt-tsan (the plug-in), check-simt (all that is tested, in
# all three ways), check-faults (faults planted in the kernels must be found).
simt_core = \
	tests/simt/blas.cc \
	tests/simt/copy.cc \
	tests/simt/device.cc \
	tests/simt/fiber.cc \
	tests/simt/graph.cc \
	tests/simt/memory.cc \
	tests/simt/nccl.cc \
	tests/simt/node.cc \
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
	tests/simt/test_graph.cu \
	tests/simt/test_index.cu \
	tests/simt/test_memory.cu \
	tests/simt/test_stream.cu \
	tests/simt/test_warp.cu
simt_ranks = tests/simt/test_nccl.cu
simt_races = tests/simt/test_races.cu

EXTRA_DIST += $(simt_core) $(simt_headers) $(simt_tests) $(simt_ranks) $(simt_races) \
	tests/simt/each.sh tests/simt/faults.sh tests/simt/missing.sh tests/simt/suite.sh \
	tests/simt/testing.cc tests/simt/with.sh
dist_check_SCRIPTS += tests/simt/asan.sh tests/simt/check_faults.sh \
	tests/simt/kernels.sh tests/simt/nccl.sh tests/simt/peers.sh \
	tests/simt/program.sh tests/simt/times.sh tests/simt/tsan.sh
TESTS += tests/simt/check_faults.sh

TEST_EXTENSIONS += .plain .asan
PLAIN_LOG_COMPILER = $(LOG_COMPILER)
ASAN_LOG_COMPILER = $(LOG_COMPILER)
SUFFIXES += .cc .cu .po .ao .to .plain .asan .tsan

simt_plain_tests = $(simt_tests:.cu=.plain)
simt_asan_tests = $(simt_tests:.cu=.asan)
simt_tsan_tests = $(simt_tests:.cu=.tsan) $(simt_races:.cu=.tsan)
CLEANFILES += tests/simt/*.po tests/simt/*.ao tests/simt/*.to tests/simt/*.plain \
	tests/simt/*.asan tests/simt/*.tsan tests/simt/*.a tests/simt/*.so \
	$(cuda_sources:.cu=.po) $(cuda_sources:.cu=.ao) $(cuda_sources:.cu=.to) \
	tests/simt/fault/*/*

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

# The plug-in: kernels/cuda/ around the emulator instead of CUDA, cuBLAS and NCCL. That of a
# program with sanitizers has them too; the others are for programs without (with.sh).
simt_plugin = tests/simt/rnn_dist_cuda_simt.so
simt_shared = $(simt_link) -shared -Wl,--no-undefined \
	-Wl,--version-script=$(srcdir)/kernels/cuda/plugin.map
simt_po = $(cuda_sources:.cu=.po) $(simt_core:.cc=.po)
simt_ao = $(cuda_sources:.cu=.ao) $(simt_core:.cc=.ao)
simt_to = $(cuda_sources:.cu=.to) $(simt_core:.cc=.to)
if SANITIZE
$(simt_plugin): $(simt_ao)
	$(AM_V_GEN)$(simt_shared) $(simt_asan) -o $@ $(simt_ao) $(simt_libs)
else
$(simt_plugin): $(simt_po)
	$(AM_V_GEN)$(simt_shared) -o $@ $(simt_po) $(simt_libs)
endif
tests/simt/rnn_dist_cuda_simt_asan.so: $(simt_ao)
	$(AM_V_GEN)$(simt_shared) $(simt_asan) -o $@ $(simt_ao) $(simt_libs)
tests/simt/rnn_dist_cuda_simt_tsan.so: $(simt_to)
	$(AM_V_GEN)$(simt_shared) -fsanitize=thread -o $@ $(simt_to) $(simt_libs)
simt: $(simt_plugin)
simt-asan: tests/simt/rnn_dist_cuda_simt_asan.so
simt-tsan: tests/simt/rnn_dist_cuda_simt_tsan.so

# The plug-in with fault FAULT, which the sources FAULTY hold: for tests/simt/faults.sh.
simt-fault:
	@to=tests/simt/fault/$(FAULT); $(MKDIR_P) $$to; rm -f $$to/*; \
	objects="$(simt_po)"; \
	for source in $(FAULTY); do \
	    name=`basename $$source .cu`; \
	    $(simt_compile) -DRNND_FAULT=$(FAULT) -x c++ -c -o $$to/$$name.po \
	        $$source || exit 1; \
	    objects=`echo " $$objects " | \
	        sed "s, kernels/cuda/$$name.po , $$to/$$name.po ,"`; \
	done; \
	$(simt_shared) -o $$to/plugin.so $$objects $(simt_libs)

check-faults: $(simt_plugin) tests/kernels/test_kernels bin/rnn_dist
	@srcdir='$(abs_srcdir)' MAKEFLAGS= RNND_TEST_TIMEOUT=7200 \
	    $(SHELL) $(srcdir)/tests/wrapper.sh $(SHELL) $(srcdir)/tests/simt/faults.sh \
	    '$(MAKE) simt-fault FAULT=$$FAULT FAULTY="$$FAULTY"' \
	    'RNND_CUDA_PLUGIN=tests/simt/fault/$$FAULT/plugin.so \
	        $(SHELL) $(srcdir)/tests/simt/suite.sh' \
	    `for f in $(cuda_sources) $(cuda_headers); do echo $(srcdir)/$$f; done`

# The short form is part of `make check`. Kernels and program on the sanitized plug-in take
# many minutes: make check TESTS=tests/simt/kernels.sh in such a build.
if SANITIZE
simt_check = $(simt_asan_tests)
simt_program =
else
simt_check = $(simt_plain_tests)
simt_program = tests/simt/kernels.sh tests/simt/peers.sh tests/simt/program.sh \
	tests/simt/times.sh
endif
check_SCRIPTS += $(simt_check) $(simt_ranks:.cu=.plain) $(simt_plugin)
TESTS += $(simt_check) $(simt_program) tests/simt/nccl.sh

# Programs of one name have one log: the sanitized ones are started by a script each. The
# longest first, for make -j.
simt_long_tests = $(simt_program) tests/simt/tsan.sh tests/simt/asan.sh \
	$(simt_plain_tests) tests/simt/nccl.sh
check-simt: $(simt_plain_tests) $(simt_asan_tests) $(simt_tsan_tests) \
	$(simt_ranks:.cu=.plain) $(simt_plugin) tests/simt/rnn_dist_cuda_simt_asan.so \
	tests/simt/rnn_dist_cuda_simt_tsan.so
	$(MAKE) $(AM_MAKEFLAGS) check-TESTS TESTS='$(simt_long_tests)' LONG=1 \
	    RNND_TEST_TIMEOUT=$${RNND_TEST_TIMEOUT:-7200}
else
TESTS += tests/simt/missing.sh
simt simt-asan simt-tsan check-simt check-faults:
	@$(SHELL) $(srcdir)/tests/simt/missing.sh >&2
endif
.PHONY: simt simt-asan simt-tsan simt-fault check-simt check-faults
