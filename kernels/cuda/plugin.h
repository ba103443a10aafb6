/*
 * plugin.h - what rnn_dist_cuda.so offers: the one symbol that lib/device/device_cuda.c
 * looks up.
 *
 * Takes and gives plain C, no type of CUDA, so that the program is built without a
 * toolkit. The plug-in imports nothing of the program. The emulated plug-in
 * (tests/simt/) is the same.
 *
 * As in backend.h: 0 or a negative status, with text in error[256]; results untouched
 * then.
 */
#ifndef RNND_PLUGIN_H
#define RNND_PLUGIN_H

#include "backend.h"

/* Grows with every change of this file or of backend.h. */
enum { RNND_CUDA_PLUGIN_ABI = 6 };

#define RNND_CUDA_PLUGIN_SYMBOL "rnnd__cuda_plugin"

enum { RNND_NCCL_ID_BYTES = 128 };

/* The tag of spans in which NCCL summed. */
#define RNND_TIMES_SUM UINT64_MAX

struct rnnd__cuda_device {
    char name[256];
    /* The same in all processes that see this device, and only then. */
    char identity[64];
    /* 10 * major + minor */
    int arch;
    int multiprocessors;
    /* bytes */
    int64_t memory;
};

/* An NCCL communicator with a stream of its own. */
struct rnnd__nccl;

struct rnnd__cuda_plugin {
    /* RNND_CUDA_PLUGIN_ABI; first for ever */
    int abi;
    /* sizeof(struct rnnd__backend_ops) */
    size_t ops_size;

    /* At least 1, else a failure that says why there is none. */
    int (*device_count)(int *count, char *error);
    int (*device_info)(int device, struct rnnd__cuda_device *out, char *error);
    int (*open)(const struct rnnd__backend_config *config, struct rnnd_backend **out,
                char *error);

    /* When work ran, by the device's clock, in seconds since times_start, which waits
       for the device; nothing else of it does, but a take that is told to.

       mark: after what the back end's stream was given so far; -1: none. span: of the
       work between two marks, which it takes back. take: the oldest span that was not
       taken yet. 1: it is past, at[] is its begin and its end. 0: there is none. */
    int (*times_start)(struct rnnd_backend *be, char *error);
    int (*times_mark)(struct rnnd_backend *be);
    void (*times_span)(struct rnnd_backend *be, int begin, int end, uint64_t tag);
    int (*times_take)(struct rnnd_backend *be, bool wait, uint64_t *tag, double at[2]);

    /* Nothing of NCCL waits for other ranks, so that the caller can keep a deadline.

       open: what this rank can do alone. One rank draws the id [RNND_NCCL_ID_BYTES] and
       hands it to all; they join together. */
    int (*nccl_open)(struct rnnd_backend *be, struct rnnd__nccl **out, char *error);
    int (*nccl_id)(void *id, char *error);
    int (*nccl_join)(struct rnnd__nccl *, const void *id, int rank, int size,
                     char *error);
    /* 1: join, the latest sum_begin or leave is through, and the next one of them may
       be called. 0: not yet. */
    int (*nccl_poll)(struct rnnd__nccl *, char *error);
    /* Starts the sum over all ranks of buf [count] floats, in place, after what the
       back end's stream was given so far; same order and counts on all ranks. */
    int (*nccl_sum_begin)(struct rnnd__nccl *, struct rnnd__buf buf, int64_t count,
                          char *error);
    /* 1: all sums are done, and the back end's stream sees them. 0: not yet. */
    int (*nccl_sum_poll)(struct rnnd__nccl *, char *error);
    /* All ranks, before close, with no sums begun. */
    int (*nccl_leave)(struct rnnd__nccl *, char *error);
    /* Instead of leave, where a peer is lost: ends the sums that wait for it. Until
       then whatever waits for the device may wait for the peer. */
    void (*nccl_abort)(struct rnnd__nccl *);
    void (*nccl_close)(struct rnnd__nccl *);
};

#endif
