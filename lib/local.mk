# lib/local.mk - the library: every room, and the kernels of kernels/local.mk.
lib_LIBRARIES += librnn_dist.a
include_HEADERS += lib/rnn_dist.h lib/rnn_dist_data.h lib/rnn_dist_enums.h \
	lib/rnn_dist_options.h

# automake does not see that these are objects to build first.
librnn_dist_a_LIBADD =
librnn_dist_a_DEPENDENCIES = $(librnn_dist_a_LIBADD)
librnn_dist_a_SOURCES = \
	lib/base/clock.h \
	lib/base/file.c \
	lib/base/file.h \
	lib/base/hash.h \
	lib/base/list.c \
	lib/base/list.h \
	lib/base/log.c \
	lib/base/log.h \
	lib/base/names.c \
	lib/base/names.h \
	lib/base/random.h \
	lib/base/signals.c \
	lib/base/signals.h \
	lib/base/status.c \
	lib/base/status.h \
	lib/base/task.c \
	lib/base/task.h \
	lib/base/timeline.c \
	lib/base/timeline.h \
	lib/checkpoint/average.c \
	lib/checkpoint/checkpoint.c \
	lib/checkpoint/checkpoint.h \
	lib/checkpoint/checkpoint_dir.c \
	lib/checkpoint/checkpoint_state.c \
	lib/checkpoint/run_dir.c \
	lib/checkpoint/run_dir.h \
	lib/checkpoint/safetensors.c \
	lib/checkpoint/safetensors_write.c \
	lib/checkpoint/statedict.c \
	lib/checkpoint/statedict.h \
	lib/checkpoint/statedict_axes.c \
	lib/checkpoint/statedict_hdf.c \
	lib/checkpoint/statedict_names.c \
	lib/checkpoint/statedict_parts.c \
	lib/checkpoint/statedict_spec.c \
	lib/checkpoint/train_state.h \
	lib/comm/comm.c \
	lib/comm/comm.h \
	lib/comm/comm_mpi.c \
	lib/comm/comm_mpi.h \
	lib/comm/comm_mpi_ask.c \
	lib/comm/comm_mpi_sum.c \
	lib/comm/comm_nccl.c \
	lib/comm/comm_same.c \
	lib/comm/comm_watch.c \
	lib/comm/comm_watch.h \
	lib/commands/bench.c \
	lib/commands/bench.h \
	lib/commands/bench_probe.c \
	lib/commands/bench_probe.h \
	lib/commands/inspect.c \
	lib/commands/inspect.h \
	lib/commands/sample.c \
	lib/commands/sample.h \
	lib/commands/verify.c \
	lib/commands/verify.h \
	lib/data/batch.c \
	lib/data/batch.h \
	lib/data/dataset.c \
	lib/data/dataset.h \
	lib/data/dataset_check.c \
	lib/data/dataset_names.c \
	lib/data/dataset_names.h \
	lib/data/plan.c \
	lib/data/plan.h \
	lib/data/prefetch.c \
	lib/data/prefetch.h \
	lib/data/shard.c \
	lib/data/shard.h \
	lib/device/device.c \
	lib/device/device.h \
	lib/device/device_cuda.c \
	lib/device/device_cuda.h \
	lib/evaluate/evaluate.c \
	lib/evaluate/predict.c \
	lib/evaluate/predict_out.c \
	lib/evaluate/predict_out.h \
	lib/evaluate/sweep.c \
	lib/evaluate/sweep.h \
	lib/exchange/export.c \
	lib/exchange/export.h \
	lib/exchange/npz_write.c \
	lib/exchange/onnx.c \
	lib/exchange/onnx.h \
	lib/exchange/onnx_graph.c \
	lib/formats/chars.c \
	lib/formats/contents.c \
	lib/formats/csv.c \
	lib/formats/csv.h \
	lib/formats/csv_columns.c \
	lib/formats/csv_rows.c \
	lib/formats/csv_steps.c \
	lib/formats/csv_table.h \
	lib/formats/formats.h \
	lib/formats/missing.c \
	lib/formats/music.c \
	lib/formats/npy.c \
	lib/formats/npy.h \
	lib/formats/npz.c \
	lib/formats/text.c \
	lib/formats/text.h \
	lib/formats/tokens.c \
	lib/formats/tokens.h \
	lib/formats/ts.c \
	lib/formats/words.c \
	lib/hdf/hdf.c \
	lib/hdf/hdf.h \
	lib/hdf/hdf_checksum.c \
	lib/hdf/hdf_claims.c \
	lib/hdf/hdf_list.c \
	lib/hdf/hdf_read.c \
	lib/hdf/hdf_room.h \
	lib/hdf/hdf_write.c \
	lib/model/fold.c \
	lib/model/head.c \
	lib/model/layer.h \
	lib/model/loss_sums.c \
	lib/model/model.c \
	lib/model/model.h \
	lib/model/names.c \
	lib/model/params.c \
	lib/model/params.h \
	lib/model/passes.c \
	lib/model/recurrent.c \
	lib/model/spec.c \
	lib/model/state.c \
	lib/optim/optim.c \
	lib/optim/optim.h \
	lib/options/options.c \
	lib/options/options.def \
	lib/options/options.h \
	lib/options/options_check.c \
	lib/options/options_config.c \
	lib/options/options_help.c \
	lib/options/options_parse.c \
	lib/options/options_table.h \
	lib/options/options_text.c \
	lib/record/chart.c \
	lib/record/chart.h \
	lib/record/metrics.c \
	lib/record/metrics.h \
	lib/record/progress.c \
	lib/record/progress.h \
	lib/record/report.c \
	lib/record/report.h \
	lib/record/tensorboard.c \
	lib/record/tensorboard.h \
	lib/record/trace.c \
	lib/record/trace.h \
	lib/train/carried.c \
	lib/train/carried.h \
	lib/train/gradient.c \
	lib/train/gradient.h \
	lib/train/reducer.c \
	lib/train/setup.c \
	lib/train/setup.h \
	lib/train/step.c \
	lib/train/step.h \
	lib/train/trainer.c \
	lib/train/trainer.h \
	lib/train/trainer_open.c \
	lib/train/trainer_report.c \
	lib/train/trainer_save.c

# The messages of ONNX, of its published schema.
if HAVE_ONNX
nodist_librnn_dist_a_SOURCES = lib/exchange/onnx.pb-c.c lib/exchange/onnx.pb-c.h
BUILT_SOURCES += lib/exchange/onnx.pb-c.h
CLEANFILES += $(nodist_librnn_dist_a_SOURCES)
lib/exchange/onnx_graph.$(OBJEXT): lib/exchange/onnx.pb-c.h
tests/unit/test_export.$(OBJEXT): lib/exchange/onnx.pb-c.h
lib/exchange/onnx.pb-c.h: lib/exchange/onnx.pb-c.c
lib/exchange/onnx.pb-c.c: $(ONNX_PROTO)
	$(AM_V_GEN)$(MKDIR_P) $(@D)/schema && cp $(ONNX_PROTO) $(@D)/schema/onnx.proto && \
	    $(PROTOC_C) --proto_path=$(@D)/schema --c_out=$(@D) onnx.proto && \
	    rm -r $(@D)/schema
endif
