/*
 * backend.h - the table of operations that a device offers, the contract of both sides.
 *
 * Takes device memory and sizes, gives results in device memory. Knows no layer, no
 * model and no file. lib/ calls it; kernels/cpu/ and kernels/cuda/ implement it, file
 * by file.
 *
 * Glossary
 *   N      sequences in a packed batch, sorted by falling length
 *   T      steps of the longest of them
 *   R      packed rows: all steps of all sequences, R = off[T]
 *   n[t]   rows at step t, never growing with t: rows off[t] .. off[t]+n[t]-1
 *   I      input features, E embedding width, H hidden units, O outputs of the head
 *   V      classes or vocabulary, G gates (LSTM 4: i f g o; GRU 3: r z n; RNN 1)
 *   D      directions (1 or 2)
 *   ld     row stride of a matrix in elements
 *
 * Every matrix is row-major. An element has 4 bytes (float or int32_t) unless stated.
 * Outputs come before inputs. Three words have a fixed meaning in the comments:
 *   accumulates  the result is added to what is there
 *   scratch      contents before and after mean nothing
 *   aliases      may be the same memory as the named argument
 *
 * All work runs in order on one stream. Only download, sync and sum wait; nothing but
 * alloc allocates. Operations return nothing: the first failure is kept in the back end
 * (status and error text), makes later work void, and is returned by the next download
 * or sync.
 */
#ifndef RNND_BACKEND_H
#define RNND_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rnn_dist_enums.h"

#ifdef __cplusplus
extern "C" {
#endif

struct rnnd_backend;

/* Device memory. Only kernels/ looks at .dev; elsewhere rnnd__at() moves within it. */
struct rnnd__buf {
    char *dev;
};

static inline struct rnnd__buf rnnd__at(struct rnnd__buf buf, int64_t elements)
{
    buf.dev += 4 * elements;
    return buf;
}

static inline bool rnnd__buf_is_null(struct rnnd__buf buf)
{
    return buf.dev == NULL;
}

static inline int rnnd__cell_gates(enum rnnd_cell cell)
{
    return cell == RNND_LSTM ? 4 : cell == RNND_GRU ? 3 : 1;
}

/* The shape of a packed batch, on the host and on the device. Borrowed. */
struct rnnd__packed {
    int64_t N, T, R;
    /* host [T] */
    const int32_t *n;
    /* host [T+1] */
    const int64_t *off;
    /* host [N], falling; zeros at the end */
    const int32_t *len;
    /* host [N], what dropout masks are keyed by */
    const int64_t *id;
    /* position of step 0 within its sequence or stream */
    int64_t first;
    /* the same on the device; off, id 8 bytes */
    struct rnnd__buf d_n, d_off, d_len, d_id;
};

/* C = alpha op(A) op(B) + beta C, op(A) [m,k], op(B) [k,n], C [m,n] */
struct rnnd__matmul {
    bool ta, tb;
    int64_t m, n, k;
    float alpha, beta;
    int64_t lda, ldb, ldc;
};

/* One recurrent layer in one direction over a packed batch: the whole time loop. */
struct rnnd__rnn {
    enum rnnd_cell cell;
    /* runs from each sequence's last step to its first */
    bool reverse;
    int64_t H;
    const struct rnnd__packed *batch;
    /* [G*H, H] */
    struct rnnd__buf w_hh;
    /* [G*H] */
    struct rnnd__buf b_ih;
    /* [G*H] */
    struct rnnd__buf b_hh;
    /* [N,H], NULL = zero; row j belongs to sequence j */
    struct rnnd__buf h0, c0;
    /* [R,G*H] forward in: x W_ih^T, no bias. Forward out: what the backward pass keeps.
       Backward out: gradient of x W_ih^T */
    struct rnnd__buf gates;
    /* [R,ldy] hidden states, out */
    struct rnnd__buf y;
    int64_t ldy;
    /* [R,H], unused by RNN cells. Forward out: LSTM: cell states, GRU: W_hn h + b_hn.
       Backward out: GRU: the gradient of that; LSTM: anything */
    struct rnnd__buf keep;
    /* [N,H] final states, out, NULL = not wanted. A sequence without steps gets its
       initial state. Never aliases h0, c0 */
    struct rnnd__buf hn, cn;
    /* backward only */

    /* [R,ldy] */
    struct rnnd__buf dy;
    /* [N,H] gradient of the final states, NULL = zero */
    struct rnnd__buf dhn, dcn;
    /* [N,H] gradient of the initial states, out, NULL = not wanted */
    struct rnnd__buf dh0, dc0;
    /* accumulate; of the biases NULL, both or neither = not wanted */
    struct rnnd__buf dw_hh, db_ih, db_hh;
    /* rnn_scratch() bytes */
    struct rnnd__buf scratch;
    /* The other direction of the layer, NULL = none: the same call runs it too, perhaps
       at once. Same cell, H and batch; a scratch of its own. */
    const struct rnnd__rnn *other;
};

/* The rows of one-hot scatter sorted by token: rows[segment[s] .. segment[s+1]-1] carry
   token[s]; stable, so that the sum of a token's gradient has one order. */
struct rnnd__segments {
    /* distinct tokens */
    int64_t count;
    /* [R] */
    struct rnnd__buf rows;
    /* [count+1] */
    struct rnnd__buf segment;
    /* [count] */
    struct rnnd__buf token;
};

/* The label strings of a packed batch, for connectionist temporal classification. */
struct rnnd__strings {
    /* labels of the longest */
    int64_t longest;
    /* the labels of all, each an output from 1 on; output 0 is the blank */
    struct rnnd__buf label;
    /* [N] where the string of each sequence begins, and its labels; -1: the sequence is
       no target */
    struct rnnd__buf first, count;
};

struct rnnd__ctc {
    const struct rnnd__packed *batch;
    const struct rnnd__strings *strings;
    int64_t cols;
    /* replace the scores by their gradient; else what becomes of them means nothing */
    bool gradient;
    /* ctc_scratch() bytes, on a boundary of 8 */
    struct rnnd__buf scratch;
};

struct rnnd__pooling {
    enum rnnd_pool pool;
    /* columns: D*H; of D = 2 the second half is reverse */
    int64_t D, H;
    const struct rnnd__packed *batch;
};

struct rnnd__dropout {
    /* probability of zero; kept values are scaled 1/(1-p) */
    double p;
    enum rnnd_dropout_kind kind;
    /* rnnd__random_key() of seed, purpose, layer and update */
    uint64_t key;
    /* by_sequence: rows are sequences, else packed rows */
    const struct rnnd__packed *batch;
    bool by_sequence;
    int64_t cols;
};

/* One update of n parameters; g is the gradient sum, gscale makes it the (clipped)
   mean. The scalars are double, as in torch: 1 - beta2 rounded from float would be off
   by 5e-5. */
struct rnnd__sgd {
    int64_t n;
    double lr, momentum, decay, gscale;
    /* torch: the first momentum buffer is the gradient itself */
    bool first;
};

struct rnnd__adam {
    int64_t n;
    double lr, beta1, beta2, eps, decay, gscale;
    /* AdamW */
    bool decoupled;
    /* from 1: bias corrections */
    int64_t step;
};

/* Sums of a loss over targets, on the device: double[4]. */
struct rnnd__sums {
    /* sum over targets */
    double loss;
    /* how many */
    double targets;
    /* of classified ones; 0 for other losses */
    double correct;
    /* what divides the loss and the gradient: the weights of the targets' classes, 1
       where there are no weights */
    double weight;
};

/* A loss of rows of scores, which become their gradient of the loss *sum*. */
struct rnnd__loss {
    int64_t rows, cols;
    /* [rows,cols] */
    struct rnnd__buf scores;
    /* struct rnnd__sums, accumulates */
    struct rnnd__buf sums;
    /* softmax_ce: int32 [rows], -1 = no target; else float [rows,cols], a row with a
       NaN is no target */
    struct rnnd__buf target;
    /* [cols] float, NULL = 1; softmax_ce: of each class, bce: of each yes */
    struct rnnd__buf weight;
    /* softmax_ce: the share of the loss that is spread over all classes alike, as
       label_smoothing of torch; and the sum of all weights, `cols` where they are 1 */
    double smoothing, weights;
};

struct rnnd__backend_ops {
    const char *name;
    /* "cpu, 2 threads, …": valid as long as the back end */
    const char *(*describe)(const struct rnnd_backend *);
    void (*close)(struct rnnd_backend *);

    /* memory; upload may return before src is read only if src is pinned by
       alloc_host */
    int (*alloc)(struct rnnd_backend *, struct rnnd__buf *out, size_t bytes);
    void (*free)(struct rnnd_backend *, struct rnnd__buf);
    void (*upload)(struct rnnd_backend *, struct rnnd__buf dst, const void *src,
                   size_t bytes);
    int (*download)(struct rnnd_backend *, void *dst, struct rnnd__buf src,
                    size_t bytes);
    void (*copy)(struct rnnd_backend *, struct rnnd__buf dst, struct rnnd__buf src,
                 size_t bytes);
    void (*zero)(struct rnnd_backend *, struct rnnd__buf dst, size_t bytes);
    int (*sync)(struct rnnd_backend *);
    /* The memory itself where the host can reach it (CPU), else NULL. */
    void *(*host)(struct rnnd_backend *, struct rnnd__buf);

    /* matrix */
    void (*matmul)(struct rnnd_backend *, const struct rnnd__matmul *,
                   struct rnnd__buf C, struct rnnd__buf A, struct rnnd__buf B);
    /* y[r,:] += bias */
    void (*add_bias)(struct rnnd_backend *, int64_t rows, int64_t cols,
                     struct rnnd__buf y, struct rnnd__buf bias);
    /* out[c] += sum over rows of x[r,c]; accumulates */
    void (*col_sum)(struct rnnd_backend *, int64_t rows, int64_t cols,
                    struct rnnd__buf out, struct rnnd__buf x);

    /* recurrent layers; the scratch serves forward and backward */
    size_t (*rnn_scratch)(struct rnnd_backend *, enum rnnd_cell, int64_t H, int64_t N,
                          int64_t R);
    void (*rnn_forward)(struct rnnd_backend *, const struct rnnd__rnn *);
    void (*rnn_backward)(struct rnnd_backend *, const struct rnnd__rnn *);
    /* text[160]: by which kernels a loop over N sequences runs, and why not by
       others. */
    void (*rnn_explain)(struct rnnd_backend *, enum rnnd_cell, int64_t H, int64_t N,
                        char *text);

    /* Embedding: out[r,:] = table[token[r],:] */
    void (*embed_gather)(struct rnnd_backend *, int64_t R, int64_t E,
                         struct rnnd__buf out, struct rnnd__buf table,
                         struct rnnd__buf token);
    /* dtable[token,:] += sum of dx over the token's rows; accumulates, in fixed
       order */
    void (*embed_scatter_add)(struct rnnd_backend *, int64_t E, struct rnnd__buf dtable,
                              struct rnnd__buf dx, const struct rnnd__segments *);
    /* out [N,D*H] from y [R,D*H]; argmax [N,D*H] int32 step of the maximum (max only).
       A sequence without steps pools to 0; a tie of max goes to the earliest step. */
    void (*pool)(struct rnnd_backend *, const struct rnnd__pooling *,
                 struct rnnd__buf out, struct rnnd__buf argmax, struct rnnd__buf y);
    /* dy [R,D*H] (all of it is written) from dout [N,D*H] */
    void (*pool_backward)(struct rnnd_backend *, const struct rnnd__pooling *,
                          struct rnnd__buf dy, struct rnnd__buf dout,
                          struct rnnd__buf argmax);
    /* out = mask * in / (1-p); out aliases in. Its own backward. */
    void (*dropout)(struct rnnd_backend *, const struct rnnd__dropout *,
                    struct rnnd__buf out, struct rnnd__buf in);
    /* A row that is no target gets gradient 0. softmax_ce: as CrossEntropyLoss of
       torch. mse: mean over cols. bce: on logits, sum over cols. */
    void (*softmax_ce)(struct rnnd_backend *, const struct rnnd__loss *);
    void (*mse)(struct rnnd_backend *, const struct rnnd__loss *);
    void (*bce)(struct rnnd_backend *, const struct rnnd__loss *);
    /* Connectionist temporal classification: the loss of a sequence is the negative log
       of the sum, over all paths of outputs that spell its string, of their
       probabilities, divided by the labels of the string, at least 1. A path spells
       what is left of it when repeats are merged and then blanks removed. scores
       [R,cols] and sums as for the other losses, each string of weight 1; a string that
       does not fit has an infinite loss. The scratch serves any batch of at most N
       sequences, T steps and strings of `longest`. */
    size_t (*ctc_scratch)(struct rnnd_backend *, int64_t N, int64_t T, int64_t longest);
    void (*ctc)(struct rnnd_backend *, const struct rnnd__ctc *,
                struct rnnd__buf scores, struct rnnd__buf sums);

    /* vectors */
    /* *result = sum of x[i]^2 in double, in fixed order; waits */
    int (*sum_sq)(struct rnnd_backend *, int64_t n, double *result, struct rnnd__buf x);
    /* From the gradient sums g, which stay. momentum: [n], NULL without momentum. */
    void (*sgd)(struct rnnd_backend *, const struct rnnd__sgd *, struct rnnd__buf w,
                struct rnnd__buf g, struct rnnd__buf momentum);
    void (*adam)(struct rnnd_backend *, const struct rnnd__adam *, struct rnnd__buf w,
                 struct rnnd__buf g, struct rnnd__buf m, struct rnnd__buf v);
};

/* Head of every back end's own struct. */
struct rnnd_backend {
    const struct rnnd__backend_ops *ops;
    /* first failure since the last sync, 0 = none */
    int status;
    /* and its text */
    char error[256];
    /* what the user should know of a way that failed where another was taken; empty:
       nothing. Whoever tells it empties it */
    char warning[256];
    /* whose device it is, NULL = a CPU; set by who opened it */
    const struct rnnd__cuda_plugin *cuda;
    /* whose NCCL sums gradients over ranks, NULL = the communicator does; set by who
       opened it */
    const struct rnnd__cuda_plugin *nccl;
};

/* What opening a back end needs to know. */
struct rnnd__backend_config {
    /* CPU: OpenMP threads, at least 1 */
    int threads;
    /* CUDA: device index */
    int device;
    /* enum rnnd_precision, resolved: never auto */
    int precision;
    /* enum rnnd_rnn_path */
    int rnn_path;
};

/* Whether the CPU computes in this precision (enum rnnd_precision, not auto): 0, or a
   negative status with text in error[256]. */
int rnnd__cpu_check(int precision, char *error);
/* Opens the CPU; 0, or a negative status with text in error[256]. */
int rnnd__cpu_open(const struct rnnd__backend_config *config, struct rnnd_backend **out,
                   char *error);

#ifdef __cplusplus
}
#endif
#endif
