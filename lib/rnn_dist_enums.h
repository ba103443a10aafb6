/*
 * rnn_dist_enums.h - the named choices that options, files and kernels share.
 *
 * The order within each enum is the order of the words in lib/options/options.def.
 */
#ifndef RNN_DIST_ENUMS_H
#define RNN_DIST_ENUMS_H

enum rnnd_task {
    /* one class per sequence */
    RNND_CLASSIFY,
    /* one class per step */
    RNND_TAG,
    /* O values per sequence */
    RNND_REGRESS,
    /* O values per step */
    RNND_REGRESS_STEPS,
    /* O yes/no answers per step */
    RNND_MULTILABEL,
    /* the next token */
    RNND_LM,
    /* a string of labels per sequence, wherever they are in it */
    RNND_CTC,
    /* unlabelled data */
    RNND_NO_TASK
};
/* what stands for a feature without a value; none: there is a value everywhere */
enum rnnd_missing {
    RNND_MISSING_NONE,
    RNND_MISSING_ZERO,
    RNND_MISSING_LAST,
    RNND_MISSING_INDICATOR,
    RNND_MISSING_MEAN
};
enum rnnd_cell { RNND_RNN_TANH, RNND_RNN_RELU, RNND_LSTM, RNND_GRU };
enum rnnd_pool { RNND_POOL_LAST, RNND_POOL_MEAN, RNND_POOL_MAX };
enum rnnd_dropout_kind { RNND_DROPOUT_ELEMENT, RNND_DROPOUT_SEQUENCE };
enum rnnd_shuffle { RNND_SHUFFLE_EPOCH, RNND_SHUFFLE_NONE };
enum rnnd_stream { RNND_STREAM_AUTO, RNND_STREAM_YES, RNND_STREAM_NO };
enum rnnd_on_unreachable { RNND_UNREACHABLE_SKIP, RNND_UNREACHABLE_STOP };
enum rnnd_optimizer { RNND_SGD, RNND_ADAM, RNND_ADAMW };
enum rnnd_schedule { RNND_CONSTANT_LR, RNND_STEP_LR, RNND_PLATEAU_LR, RNND_COSINE_LR };
/* What a validation is judged by. */
enum rnnd_best_by {
    RNND_BY_LOSS,
    RNND_BY_ACCURACY,
    RNND_BY_BALANCED_ACCURACY,
    RNND_BY_MACRO_F1,
    RNND_BY_AUROC,
    RNND_BY_AVERAGE_PRECISION,
    RNND_BY_RMSE,
    RNND_BY_MAE,
    RNND_BY_R2,
    RNND_BY_LABEL_ERROR_RATE
};
enum rnnd_on_nonfinite { RNND_NONFINITE_STOP, RNND_NONFINITE_SKIP };
enum rnnd_device { RNND_DEVICE_AUTO, RNND_DEVICE_CPU, RNND_DEVICE_CUDA };
enum rnnd_comm_kind { RNND_COMM_AUTO, RNND_COMM_NCCL, RNND_COMM_MPI };
enum rnnd_precision { RNND_PRECISION_AUTO, RNND_FP32, RNND_TF32, RNND_BF16 };
enum rnnd_rnn_path {
    RNND_PATH_AUTO,
    RNND_PATH_STEPWISE,
    RNND_PATH_SMALL,
    RNND_PATH_PERSISTENT
};
enum rnnd_progress {
    RNND_PROGRESS_AUTO,
    RNND_PROGRESS_BAR,
    RNND_PROGRESS_LINES,
    RNND_PROGRESS_NONE
};

/* What a run ended at; no option. */
enum rnnd_end { RNND_END_EPOCHS, RNND_END_UPDATES, RNND_END_PATIENCE };

#endif
