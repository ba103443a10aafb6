# kernels/cuda/local.mk - the plug-in for CUDA devices, rnn_dist_cuda.so.
#
# All its sources are .cu: nvcc compiles them here, tests/simt/ compiles the same by g++ for
# the emulated GPU. No libtool and no -rdc. Make targets: cuda, cuda-ptx.
cuda_sources = \
	kernels/cuda/backend.cu \
	kernels/cuda/comm_nccl.cu \
	kernels/cuda/ctc.cu \
	kernels/cuda/dropout.cu \
	kernels/cuda/embed.cu \
	kernels/cuda/graph.cu \
	kernels/cuda/loss.cu \
	kernels/cuda/matrix.cu \
	kernels/cuda/pool.cu \
	kernels/cuda/rnn.cu \
	kernels/cuda/rnn_persistent.cu \
	kernels/cuda/rnn_plan.cu \
	kernels/cuda/rnn_small.cu \
	kernels/cuda/times.cu \
	kernels/cuda/vector.cu

cuda_headers = \
	kernels/cuda/comm_nccl.h \
	kernels/cuda/cuda_backend.cuh \
	kernels/cuda/dialect.cuh \
	kernels/cuda/plugin.h \
	kernels/cuda/rnn.cuh \
	kernels/cuda/rnn_cells.cuh \
	kernels/cuda/rnn_persistent.cuh
# What they depend on besides.
cuda_depends = $(cuda_headers) kernels/backend.h kernels/cell.h kernels/ctc.h lib/base/random.h \
	lib/rnn_dist_enums.h

cuda_objects = $(cuda_sources:.cu=.o)
cuda_plugin = kernels/cuda/rnn_dist_cuda.so
EXTRA_DIST += $(cuda_sources) $(cuda_headers) build-aux/ptxas_table.sh \
	kernels/cuda/plugin.map
CLEANFILES += $(cuda_plugin) $(cuda_objects) $(cuda_objects:.o=.ptxas)

# Kernels whose names hold one of these words may not spill. small_backward<128> keeps up to
# nine words that its loop over rows does not read.
cuda_no_spills = persistent small_forward small_backward<96> small_backward<112>

nvcc_compile = $(NVCC) -std=c++17 -O3 -I$(top_srcdir)/lib -I$(top_srcdir)/kernels \
	-Xcompiler -fPIC,-fvisibility=hidden,-Wall,-Wextra $(NVCCFLAGS)

if HAVE_NVCC
# ptxas tells registers, shared memory and spills: kept for the table. The rest is for people.
.cu.o:
	@$(MKDIR_P) $(@D)
	$(AM_V_GEN)$(nvcc_compile) -lineinfo $(NVCC_ARCH) -Xptxas -v -c -o $@ $< 2>$(@:.o=.ptxas) || \
	    { cat $(@:.o=.ptxas) >&2; rm -f $@; exit 1; }
	@grep -v -e '^ptxas info' -e '^ *[0-9]* bytes stack frame' $(@:.o=.ptxas) >&2 || :

$(cuda_objects): $(cuda_depends)

$(cuda_plugin): $(cuda_objects) kernels/cuda/plugin.map
	$(AM_V_GEN)$(CXX) -shared $(LDFLAGS) -o $@ $(cuda_objects) -Wl,--no-undefined \
	    -Wl,--version-script=$(srcdir)/kernels/cuda/plugin.map $(CUDA_LIBS)

# The plug-in for all architectures, and what ptxas made of it.
cuda: $(cuda_plugin)
	@$(SHELL) $(srcdir)/build-aux/ptxas_table.sh '$(cuda_no_spills)' \
	    $(cuda_objects:.o=.ptxas)

# PTX of every source, for tools that read it.
cuda-ptx:
	@$(MKDIR_P) kernels/cuda/ptx
	@for source in $(cuda_sources); do \
	    for arch in 80 90; do \
	        ptx=kernels/cuda/ptx/`basename $$source .cu`.sm_$$arch.ptx; \
	        echo "  PTX      $$ptx"; \
	        $(nvcc_compile) -arch=sm_$$arch -ptx -o $$ptx $(srcdir)/$$source || exit 1; \
	    done; \
	done
else
cuda cuda-ptx:
	@echo "$@: configure did not find nvcc, CUDA's headers and libraries" >&2; exit 1
endif
.PHONY: cuda cuda-ptx

if CUDA_IN_ALL
all-local: $(cuda_plugin)
endif

# Also where it was built by `make cuda`.
install-data-local:
	@if test -f $(cuda_plugin); then \
	    $(MKDIR_P) "$(DESTDIR)$(pkglibdir)" && \
	    echo " $(INSTALL_DATA) $(cuda_plugin) '$(DESTDIR)$(pkglibdir)'" && \
	    $(INSTALL_DATA) $(cuda_plugin) "$(DESTDIR)$(pkglibdir)"; \
	fi
uninstall-local:
	rm -f "$(DESTDIR)$(pkglibdir)/rnn_dist_cuda.so"
clean-local:
	rm -rf kernels/cuda/ptx
