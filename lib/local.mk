# lib/local.mk - the library: every room, and the kernels of kernels/local.mk.
lib_LIBRARIES += librnn_dist.a
include_HEADERS += lib/rnn_dist.h lib/rnn_dist_enums.h

librnn_dist_a_LIBADD =
librnn_dist_a_SOURCES = \
	lib/batch.c \
	lib/batch.h \
	lib/checkpoint.h \
	lib/comm.c \
	lib/comm.h \
	lib/device.c \
	lib/device.h \
	lib/hdf.c \
	lib/hdf.h \
	lib/head.c \
	lib/layer.h \
	lib/log.c \
	lib/log.h \
	lib/model.c \
	lib/model.h \
	lib/options.h \
	lib/params.c \
	lib/params.h \
	lib/plan.c \
	lib/random.h \
	lib/recurrent.c \
	lib/status.c \
	lib/status.h
