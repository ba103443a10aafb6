# lib/local.mk - the library: every room, and the kernels of kernels/local.mk.
lib_LIBRARIES += librnn_dist.a
include_HEADERS += lib/rnn_dist.h lib/rnn_dist_enums.h

# automake does not see that these are objects to build first.
librnn_dist_a_LIBADD =
librnn_dist_a_DEPENDENCIES = $(librnn_dist_a_LIBADD)
librnn_dist_a_SOURCES = \
	lib/batch.c \
	lib/batch.h \
	lib/checkpoint.h \
	lib/clock.h \
	lib/comm.c \
	lib/comm.h \
	lib/comm_mpi.c \
	lib/dataset.c \
	lib/dataset.h \
	lib/dataset_check.c \
	lib/device.c \
	lib/device.h \
	lib/evaluate.c \
	lib/group.c \
	lib/group.h \
	lib/hash.h \
	lib/hdf.c \
	lib/hdf.h \
	lib/hdf_read.c \
	lib/hdf_room.h \
	lib/hdf_seal.c \
	lib/hdf_write.c \
	lib/head.c \
	lib/layer.h \
	lib/log.c \
	lib/log.h \
	lib/metrics.c \
	lib/metrics.h \
	lib/model.c \
	lib/model.h \
	lib/optim.c \
	lib/optim.h \
	lib/options.c \
	lib/options.def \
	lib/options.h \
	lib/options_check.c \
	lib/options_config.c \
	lib/options_help.c \
	lib/options_parse.c \
	lib/options_table.h \
	lib/options_text.c \
	lib/params.c \
	lib/params.h \
	lib/passes.c \
	lib/plan.c \
	lib/predict.c \
	lib/predict_out.c \
	lib/predict_out.h \
	lib/progress.c \
	lib/progress.h \
	lib/random.h \
	lib/recurrent.c \
	lib/reducer.c \
	lib/run_dir.c \
	lib/run_dir.h \
	lib/sample.c \
	lib/sample.h \
	lib/share.c \
	lib/share.h \
	lib/spec.c \
	lib/state.c \
	lib/status.c \
	lib/status.h \
	lib/stop.c \
	lib/stop.h \
	lib/trainer.c \
	lib/trainer.h \
	lib/trainer_open.c \
	lib/trainer_report.c \
	lib/trainer_save.c \
	lib/verify.c \
	lib/verify.h \
	lib/walk.c \
	lib/walk.h
