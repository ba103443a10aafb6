# lib/local.mk - the library: every room, and the kernels of kernels/local.mk.
lib_LIBRARIES += librnn_dist.a
include_HEADERS += lib/rnn_dist.h lib/rnn_dist_enums.h

librnn_dist_a_LIBADD =
librnn_dist_a_SOURCES = \
	lib/log.c \
	lib/log.h \
	lib/options.h \
	lib/random.h \
	lib/status.c \
	lib/status.h
