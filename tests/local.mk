# tests/local.mk - Check programs (one per room), scripts on the program, and tests of the
# repository itself. Every test runs under tests/wrapper.sh; exit 77 means skipped.
TEST_EXTENSIONS = .sh
LOG_COMPILER = $(SHELL) $(srcdir)/tests/wrapper.sh
SH_LOG_COMPILER = $(SHELL) $(srcdir)/tests/wrapper.sh $(SHELL)
AM_TESTS_ENVIRONMENT = \
	PACKAGE_VERSION='$(PACKAGE_VERSION)'; export PACKAGE_VERSION; \
	MANDOC='$(MANDOC)'; export MANDOC;

unit_tests =

if HAVE_CHECK
check_PROGRAMS += $(unit_tests)
TESTS += $(unit_tests)
else
TESTS += tests/unit_missing.sh
endif

dist_check_SCRIPTS += \
	tests/check_layers.sh \
	tests/check_man.sh \
	tests/check_version.sh
TESTS += $(dist_check_SCRIPTS)

EXTRA_DIST += \
	tests/lsan.supp \
	tests/mpi_env.sh \
	tests/run.sh \
	tests/unit_missing.sh \
	tests/wrapper.sh
