# tests/local.mk - Check programs (one per room), scripts on the program, and tests of the
# repository itself. Every test runs under tests/wrapper.sh; exit 77 means skipped.
TEST_EXTENSIONS = .sh
LOG_COMPILER = $(SHELL) $(srcdir)/tests/wrapper.sh
SH_LOG_COMPILER = $(SHELL) $(srcdir)/tests/wrapper.sh $(SHELL)
AM_TESTS_ENVIRONMENT = \
	PACKAGE_VERSION='$(PACKAGE_VERSION)'; export PACKAGE_VERSION; \
	MANDOC='$(MANDOC)'; export MANDOC;

unit_tests = \
	tests/test_comm \
	tests/test_golden

# On several ranks: unit tests again, and programs that misbehave.
mpi_tests = \
	tests/mpi/comm.sh \
	tests/mpi/faults.sh \
	tests/mpi/golden.sh
mpi_programs = tests/mpi/peer
tests_mpi_peer_LDADD = $(RNND_LIBS)

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
TESTS += $(repository_tests)

dist_check_SCRIPTS += $(mpi_tests) $(repository_tests)
EXTRA_DIST += \
	tests/golden/golden.h5 \
	tests/golden/make_golden.py \
	tests/lsan.supp \
	tests/mpi_env.sh \
	tests/run.sh \
	tests/unit_missing.sh \
	tests/wrapper.sh
