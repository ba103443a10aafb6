# man/local.mk - manual pages; version and date come from configure.ac.
rnnd_manuals = \
	man/librnn_dist.3 \
	man/rnn_dist-bench.1 \
	man/rnn_dist-checkpoint.5 \
	man/rnn_dist-data.5 \
	man/rnn_dist-eval.1 \
	man/rnn_dist-export.1 \
	man/rnn_dist-help.1 \
	man/rnn_dist-import.1 \
	man/rnn_dist-info.1 \
	man/rnn_dist-inspect.1 \
	man/rnn_dist-pack.1 \
	man/rnn_dist-predict.1 \
	man/rnn_dist-report.1 \
	man/rnn_dist-sample.1 \
	man/rnn_dist-slurm.7 \
	man/rnn_dist-train.1 \
	man/rnn_dist-verify.1 \
	man/rnn_dist.1

man_MANS += $(rnnd_manuals)
CLEANFILES += $(rnnd_manuals)
EXTRA_DIST += $(rnnd_manuals:=.in)

SUFFIXES = .in
.in:
	$(AM_V_GEN)$(MKDIR_P) $(@D) && sed -e 's/[@]VERSION[@]/$(PACKAGE_VERSION)/' \
	    -e 's/[@]DATE[@]/$(RELEASE_DATE)/' $< >$@.tmp && mv $@.tmp $@
