# examples/local.mk - the quick start, its data, and programs on the public header.
check_PROGRAMS += examples/own_loop examples/stream
examples_own_loop_LDADD = $(RNND_LIBS)
examples_stream_LDADD = $(RNND_LIBS)

EXTRA_DIST += \
	examples/gru_lm/run.sh \
	examples/japanese_vowels/JapaneseVowels_TEST.ts \
	examples/japanese_vowels/JapaneseVowels_TRAIN.ts \
	examples/japanese_vowels/README.md \
	examples/joined_vowels/join.awk \
	examples/joined_vowels/run.sh \
	examples/packed_outputs/run.sh \
	examples/quickstart.sh \
	examples/slurm/array.sh \
	examples/slurm/mpirun.sh \
	examples/slurm/srun.sh \
	examples/sweep/parallel.sh
