# tests/local.mk - Check programs (one per room), scripts on the program, and tests of the
# repository itself. Every test runs under tests/wrapper.sh; exit 77 means skipped.
TEST_EXTENSIONS = .sh
LOG_COMPILER = $(SHELL) $(srcdir)/tests/wrapper.sh
SH_LOG_COMPILER = $(SHELL) $(srcdir)/tests/wrapper.sh $(SHELL)
AM_TESTS_ENVIRONMENT = \
	PACKAGE_VERSION='$(PACKAGE_VERSION)'; export PACKAGE_VERSION; \
	MANDOC='$(MANDOC)'; export MANDOC;

unit_tests = \
	tests/test_batch \
	tests/test_comm \
	tests/test_dataset \
	tests/test_golden \
	tests/test_hdf \
	tests/test_kernels \
	tests/test_metrics \
	tests/test_optim \
	tests/test_options \
	tests/test_plan \
	tests/test_random \
	tests/test_share

tests_test_kernels_SOURCES = \
	tests/kernels_ref.c \
	tests/kernels_ref.h \
	tests/kernels_rnn.c \
	tests/kernels_rnn.h \
	tests/test_kernels.c

# On several ranks: unit tests again, and programs that misbehave.
mpi_tests = \
	tests/mpi/comm.sh \
	tests/mpi/faults.sh \
	tests/mpi/golden.sh
mpi_programs = tests/mpi/peer
tests_mpi_peer_LDADD = $(RNND_LIBS)

# The program as its users meet it.
cli_tests = \
	tests/cli/help.sh \
	tests/cli/options.sh \
	tests/cli/ranks.sh

repository_tests = \
	tests/check_layers.sh \
	tests/check_man.sh \
	tests/check_options.sh \
	tests/check_version.sh

# The longest first, so that none is left to run alone.
if HAVE_CHECK
check_PROGRAMS += $(unit_tests) $(mpi_programs)
TESTS += $(mpi_tests) $(unit_tests)
else
TESTS += tests/unit_missing.sh
endif
TESTS += $(cli_tests) $(repository_tests)

# Leak checks need the names of libraries that Open MPI would unload.
EXTRA_LIBRARIES += libkeep_loaded.a
libkeep_loaded_a_SOURCES = tests/keep_loaded.c
if SANITIZE
KEEP_LOADED = $(libkeep_loaded_a_OBJECTS)
AM_LDFLAGS += -Wl,--export-dynamic-symbol=dlclose
endif

dist_check_SCRIPTS += $(mpi_tests) $(cli_tests) $(repository_tests)
EXTRA_DIST += \
	tests/golden/golden.h5 \
	tests/golden/h5py/group_inputs.h5 \
	tests/golden/h5py/null_targets.h5 \
	tests/golden/h5py/odd.h5 \
	tests/golden/h5py/plain.h5 \
	tests/golden/h5py/scalar_offsets.h5 \
	tests/golden/h5py/task_number.h5 \
	tests/golden/h5py/text_inputs.h5 \
	tests/golden/h5py/tokens.h5 \
	tests/golden/make_golden.py \
	tests/golden/make_h5py_files.py \
	tests/lsan.supp \
	tests/mpi_env.sh \
	tests/run.sh \
	tests/unit_missing.sh \
	tests/wrapper.sh
