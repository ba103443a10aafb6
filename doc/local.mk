# doc/local.mk - figures of performance; the pictures of README, and what draws them.
EXTRA_DIST += \
	doc/flow.svg \
	doc/make_figures.sh \
	doc/performance.md \
	doc/speed.csv \
	doc/speed.svg
