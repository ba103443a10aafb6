# bin/local.mk - the program: one file per command, and its completion for bash.
bin_PROGRAMS += bin/rnn_dist
bin_rnn_dist_SOURCES = \
	bin/backend.c \
	bin/bin.h \
	bin/cmd_bench.c \
	bin/cmd_eval.c \
	bin/cmd_export.c \
	bin/cmd_help.c \
	bin/cmd_import.c \
	bin/cmd_info.c \
	bin/cmd_inspect.c \
	bin/cmd_pack.c \
	bin/cmd_predict.c \
	bin/cmd_report.c \
	bin/cmd_sample.c \
	bin/cmd_train.c \
	bin/cmd_verify.c \
	bin/outputs.c \
	bin/probe.c \
	bin/rnn_dist.c \
	bin/scorer.c
bin_rnn_dist_LDADD = $(RNND_LIBS)

completiondir = $(datadir)/bash-completion/completions
completion_DATA = bin/completion/rnn_dist
CLEANFILES += bin/completion/rnn_dist

bin/completion/rnn_dist: bin/rnn_dist$(EXEEXT)
	$(AM_V_GEN)$(MKDIR_P) $(@D) && \
	    bin/rnn_dist$(EXEEXT) help --completion >$@.tmp && mv $@.tmp $@
