# tests/local.mk - Check programs (one per room), scripts on the program, and tests of the
# repository itself. Every test runs under tests/wrapper.sh; exit 77 means skipped.
TEST_EXTENSIONS = .sh
LOG_COMPILER = $(SHELL) $(srcdir)/tests/wrapper.sh
SH_LOG_COMPILER = $(SHELL) $(srcdir)/tests/wrapper.sh $(SHELL)
AM_TESTS_ENVIRONMENT = \
	PACKAGE_VERSION='$(PACKAGE_VERSION)'; export PACKAGE_VERSION; \
	MANDOC='$(MANDOC)'; export MANDOC;

unit_tests = \
	tests/cases/test_semantics \
	tests/kernels/test_kernels \
	tests/unit/test_batch \
	tests/unit/test_checkpoint \
	tests/unit/test_comm \
	tests/unit/test_ctc \
	tests/unit/test_dataset \
	tests/unit/test_decode \
	tests/unit/test_export \
	tests/unit/test_figures \
	tests/unit/test_formats \
	tests/unit/test_golden \
	tests/unit/test_hdf \
	tests/unit/test_kaldi \
	tests/unit/test_metrics \
	tests/unit/test_optim \
	tests/unit/test_options \
	tests/unit/test_output \
	tests/unit/test_plan \
	tests/unit/test_predict \
	tests/unit/test_probe \
	tests/unit/test_progress \
	tests/unit/test_random \
	tests/unit/test_run_dir \
	tests/unit/test_shard \
	tests/unit/test_signals \
	tests/unit/test_statedict \
	tests/unit/test_tensorboard \
	tests/unit/test_timeline \
	tests/unit/test_trainer \
	tests/unit/test_writer

tests_cases_test_semantics_SOURCES = \
	tests/cases/data.c \
	tests/cases/data.h \
	tests/cases/test_semantics.c
tests_unit_test_predict_SOURCES = \
	tests/cases/data.c \
	tests/cases/data.h \
	tests/unit/test_predict.c
tests_unit_test_trainer_SOURCES = \
	tests/cases/data.c \
	tests/cases/data.h \
	tests/unit/test_trainer.c
tests_unit_test_writer_SOURCES = \
	tests/cases/data.c \
	tests/cases/data.h \
	tests/unit/checkpoint_model.h \
	tests/unit/test_writer.c \
	tests/unit/testing.h
tests_unit_test_checkpoint_SOURCES = \
	tests/unit/checkpoint_model.h \
	tests/unit/test_checkpoint.c \
	tests/unit/testing.h
tests_unit_test_statedict_SOURCES = \
	tests/unit/checkpoint_model.h \
	tests/unit/test_statedict.c \
	tests/unit/testing.h
tests_unit_test_export_SOURCES = \
	tests/unit/checkpoint_model.h \
	tests/unit/test_export.c \
	tests/unit/testing.h
tests_unit_test_figures_SOURCES = tests/unit/test_figures.c tests/unit/testing.h
tests_unit_test_tensorboard_SOURCES = tests/unit/test_tensorboard.c tests/unit/testing.h
tests_unit_test_output_SOURCES = tests/unit/test_output.c tests/unit/testing.h
tests_unit_test_probe_SOURCES = tests/unit/test_probe.c tests/unit/testing.h
tests_unit_test_ctc_SOURCES = tests/unit/test_ctc.c tests/unit/testing.h
tests_unit_test_dataset_SOURCES = tests/unit/test_dataset.c tests/unit/testing.h
tests_unit_test_decode_SOURCES = tests/unit/test_decode.c tests/unit/testing.h
tests_unit_test_kaldi_SOURCES = \
	tests/unit/reading.h \
	tests/unit/test_kaldi.c \
	tests/unit/testing.h
tests_kernels_test_kernels_SOURCES = \
	tests/kernels/kernels_bf16.c \
	tests/kernels/kernels_bf16.h \
	tests/kernels/kernels_ctc.c \
	tests/kernels/kernels_ctc.h \
	tests/kernels/kernels_ref.c \
	tests/kernels/kernels_ref.h \
	tests/kernels/kernels_rnn.c \
	tests/kernels/kernels_rnn.h \
	tests/kernels/test_kernels.c

# What scripts run beside rnn_dist: a cable between hosts; a rank that misbehaves; data,
# parameters, comparisons.
test_programs = tests/cases/tool tests/mpi/link tests/mpi/peer
tests_cases_tool_SOURCES = tests/cases/data.c tests/cases/data.h tests/cases/tool.c
tests_cases_tool_LDADD = $(RNND_LIBS)
tests_mpi_peer_LDADD = $(RNND_LIBS)
check_PROGRAMS += $(test_programs)

# Measured by hand: make tests/bench/bench_kernels, and scripts of tests/bench.
EXTRA_PROGRAMS += tests/bench/bench_ctc tests/bench/bench_kernels tests/bench/costs tests/bench/scaling
tests_bench_bench_ctc_LDADD = $(RNND_LIBS)
tests_bench_bench_kernels_LDADD = $(RNND_LIBS)
tests_bench_costs_LDADD = $(RNND_LIBS)
tests_bench_scaling_LDADD = $(RNND_LIBS)
CLEANFILES += $(EXTRA_PROGRAMS)

# Damaged input for every reader: make check-fuzz FUZZ_SECONDS=5, for each.
EXTRA_PROGRAMS += tests/fuzz/fuzz
tests_fuzz_fuzz_SOURCES = tests/fuzz/driver.c tests/fuzz/fuzz.h tests/fuzz/targets.c
tests_fuzz_fuzz_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests/fuzz
tests_fuzz_fuzz_LDADD = $(RNND_LIBS)
FUZZ_SECONDS = 5
check-fuzz: tests/fuzz/fuzz$(EXEEXT)
	srcdir=$(srcdir) RNND_TEST_TIMEOUT=86400 FUZZ_SECONDS=$(FUZZ_SECONDS) \
	    $(SHELL) $(srcdir)/tests/wrapper.sh $(SHELL) \
	    $(srcdir)/tests/fuzz/fuzz.sh
.PHONY: check-fuzz

# A table of all that may befall a run and was tried: make check-reliability. LONG=1 takes the
# full counts. RELIABILITY_TESTS: only these.
reliability_scripts = tests/mpi/soak.sh
RELIABILITY_TESTS =
check-reliability: $(bin_PROGRAMS) $(check_PROGRAMS) tests/fuzz/fuzz$(EXEEXT)
	srcdir=$(srcdir) $(SHELL) $(srcdir)/tests/reliability.sh $(RELIABILITY_TESTS)
.PHONY: check-reliability

# Unit tests on several ranks.
unit_scripts = \
	tests/mpi/comm.sh \
	tests/mpi/golden.sh

# The whole program, and the launchers.
program_tests = \
	tests/accuracy/japanese_vowels.sh \
	tests/accuracy/joined_vowels.sh \
	tests/accuracy/music.sh \
	tests/accuracy/shakespeare.sh \
	tests/cases/checkpoint.sh \
	tests/cases/damage.sh \
	tests/cases/ends.sh \
	tests/cases/failure.sh \
	tests/cases/files.sh \
	tests/cases/gradient.sh \
	tests/cases/labels.sh \
	tests/cases/names.sh \
	tests/cases/weights.sh \
	tests/cases/lanes.sh \
	tests/cases/memory.sh \
	tests/cases/missing.sh \
	tests/cases/order.sh \
	tests/cases/outputs.sh \
	tests/cases/packing.sh \
	tests/cases/precision.sh \
	tests/cases/progress.sh \
	tests/cases/resume.sh \
	tests/cases/signals.sh \
	tests/cases/threads.sh \
	tests/cases/uneven.sh \
	tests/cli/archives.sh \
	tests/cli/baddata.sh \
	tests/cli/convert.sh \
	tests/cli/ctc.sh \
	tests/cli/examples.sh \
	tests/cli/figures.sh \
	tests/cli/folders.sh \
	tests/cli/help.sh \
	tests/cli/language.sh \
	tests/cli/onnx.sh \
	tests/cli/options.sh \
	tests/cli/pack.sh \
	tests/cli/python.sh \
	tests/cli/ranks.sh \
	tests/cli/readme.sh \
	tests/cli/report.sh \
	tests/cli/results.sh \
	tests/cli/stream.sh \
	tests/mpi/faults.sh \
	tests/mpi/hosts.sh \
	tests/mpi/ranks.sh \
	tests/mpi/unequal.sh \
	tests/oracle/compare.sh \
	tests/oracle/strings.sh \
	tests/slurm/launch.sh \
	tests/slurm/requeue.sh

repository_tests = \
	tests/repository/check_figures.sh \
	tests/repository/check_man.sh \
	tests/repository/check_options.sh \
	tests/repository/check_packages.sh \
	tests/repository/check_ptxas.sh \
	tests/repository/check_rooms.sh \
	tests/repository/check_size.sh \
	tests/repository/check_library.sh \
	tests/repository/check_version.sh \
	tests/repository/format.sh

# The long ones first, so that none is left to run alone.
TESTS += $(program_tests)
if HAVE_CHECK
check_PROGRAMS += $(unit_tests)
TESTS += $(unit_scripts) $(unit_tests)
else
TESTS += tests/unit/unit_missing.sh
endif
include tests/simt/local.mk
TESTS += $(repository_tests)

# Leak checks need the names of libraries that Open MPI would unload.
EXTRA_LIBRARIES += libkeep_loaded.a
libkeep_loaded_a_SOURCES = tests/keep_loaded.c
if SANITIZE
KEEP_LOADED = $(libkeep_loaded_a_OBJECTS)
AM_LDFLAGS += -Wl,--export-dynamic-symbol=dlclose
endif

dist_check_SCRIPTS += $(program_tests) $(reliability_scripts) $(repository_tests) $(unit_scripts)
noinst_HEADERS += tests/suite.h
EXTRA_DIST += \
	tests/bench/bench_kernels.py \
	tests/bench/buckets.sh \
	tests/bench/compare.sh \
	tests/bench/ctc.py \
	tests/bench/lib.sh \
	tests/bench/memory.sh \
	tests/bench/peers.py \
	tests/bench/ranks.sh \
	tests/bench/scaling.sh \
	tests/bench/shapes \
	tests/cases/README \
	tests/cases/checkpoint.py \
	tests/cases/lib.sh \
	tests/cli/archives.py \
	tests/cli/convert.py \
	tests/cli/run_onnx.py \
	tests/device/bench.c \
	tests/device/check.c \
	tests/device/check.h \
	tests/device/device-check.sh \
	tests/device/peers.py \
	tests/fuzz/corpus/config/run.ini \
	tests/fuzz/corpus/csv-steps/plain.csv \
	tests/fuzz/corpus/csv-steps/tabs.csv \
	tests/fuzz/corpus/csv/plain.csv \
	tests/fuzz/corpus/csv/semicolons.csv \
	tests/fuzz/corpus/csv/separators.csv \
	tests/fuzz/corpus/hdf5/checkpoint.h5 \
	tests/fuzz/corpus/hdf5/new.h5 \
	tests/fuzz/corpus/hdf5/odd.h5 \
	tests/fuzz/corpus/hdf5/plain.h5 \
	tests/fuzz/corpus/hdf5/tokens.h5 \
	tests/fuzz/corpus/kaldi-list/plain.scp \
	tests/fuzz/corpus/kaldi/binary.ark \
	tests/fuzz/corpus/kaldi/text.ark \
	tests/fuzz/corpus/metrics/run.jsonl \
	tests/fuzz/corpus/music/plain.json \
	tests/fuzz/corpus/npz/compressed.npz \
	tests/fuzz/corpus/npz/ragged.npz \
	tests/fuzz/corpus/options/pack.txt \
	tests/fuzz/corpus/options/train.txt \
	tests/fuzz/corpus/safetensors/lstm.safetensors \
	tests/fuzz/corpus/symbols/units.txt \
	tests/fuzz/corpus/text-chars/plain.txt \
	tests/fuzz/corpus/text-chars/plain.txt.gz \
	tests/fuzz/corpus/text-words/plain.txt \
	tests/fuzz/corpus/ts/plain.ts \
	tests/fuzz/fuzz.sh \
	tests/golden/ctc.h5 \
	tests/golden/damaged/checkpoint.h5 \
	tests/golden/damaged/crash.h5 \
	tests/golden/damaged/loop.h5 \
	tests/golden/damaged/memory.h5 \
	tests/golden/figures.h5 \
	tests/golden/golden.h5 \
	tests/golden/layers.h5 \
	tests/golden/h5py/claim_chunk.h5 \
	tests/golden/h5py/claim_names.h5 \
	tests/golden/h5py/claim_rows.h5 \
	tests/golden/h5py/claim_sequences.h5 \
	tests/golden/h5py/claim_width.h5 \
	tests/golden/h5py/external.h5 \
	tests/golden/h5py/external_link.h5 \
	tests/golden/h5py/group_inputs.h5 \
	tests/golden/h5py/half_class.h5 \
	tests/golden/h5py/latin.h5 \
	tests/golden/h5py/null_targets.h5 \
	tests/golden/h5py/odd.h5 \
	tests/golden/h5py/plain.h5 \
	tests/golden/h5py/scalar_offsets.h5 \
	tests/golden/h5py/shared_names.h5 \
	tests/golden/h5py/soft_external.h5 \
	tests/golden/h5py/task_number.h5 \
	tests/golden/h5py/text_inputs.h5 \
	tests/golden/h5py/tokens.h5 \
	tests/golden/h5py/virtual.h5 \
	tests/golden/kaldi/feats.ark \
	tests/golden/kaldi/feats.scp \
	tests/golden/kaldi/same.ark \
	tests/golden/kaldi/text \
	tests/golden/sparse.h5 \
	tests/golden/weights.h5 \
	tests/golden/make_ctc.py \
	tests/golden/make_figures.py \
	tests/golden/make_golden.py \
	tests/golden/make_h5py_files.py \
	tests/golden/make_kaldi.py \
	tests/lsan.supp \
	tests/mpi_env.sh \
	tests/oracle/compare.py \
	tests/oracle/harness.py \
	tests/oracle/joined_vowels.py \
	tests/oracle/reference.py \
	tests/oracle/strings.py \
	tests/reliability.sh \
	tests/repository/same_bits.py \
	tests/repository/same_bits.sh \
	tests/run.sh \
	tests/slurm/down.sh \
	tests/slurm/lib.sh \
	tests/slurm/up.sh \
	tests/tally.sh \
	tests/tsan.supp \
	tests/unit/unit_missing.sh \
	tests/valgrind.sh \
	tests/valgrind.supp \
	tests/wrapper.sh
