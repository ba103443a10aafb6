/*
 * status.h - failures with a message, and checked allocation.
 *
 * rnnd__fail() keeps one message per thread for rnnd_status_detail(). RNND_TRY returns
 * a failure to the caller; with RNND_TRACE=1 in the environment each return is printed.
 */
#ifndef RNND_STATUS_H
#define RNND_STATUS_H

#include "rnn_dist.h"

/* Sets the message and returns status. */
#define rnnd__fail(...) rnnd__below_zero(rnnd__fail_text(__VA_ARGS__))

/* EDEVICE: "out of memory: N bytes for WHAT". */
#define rnnd__fail_memory(bytes, what) \
    rnnd__below_zero(rnnd__fail_no_memory(bytes, what))

/* The failure of another rank: "rank N failed". */
#define rnnd__fail_elsewhere(status, rank) \
    rnnd__below_zero(rnnd__fail_rank(status, rank))

/* A failure, saved while other calls may fail; all zero = none. */
struct rnnd__failure {
    int status;
    /* another rank knows the cause */
    bool elsewhere;
    char text[2048];
};

/* The last failure, which had this status. */
void rnnd__failure_save(struct rnnd__failure *out, int status);
/* Makes it the last failure again; returns its status, 0 = there was none. */
RNND_CHECKED int rnnd__failure_restore(const struct rnnd__failure *failure);
/* Saves the first of several failures: nothing where status is none, or one is
   saved. */
void rnnd__failure_keep(struct rnnd__failure *first, int status);

int rnnd__fail_text(enum rnnd_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
int rnnd__fail_rank(enum rnnd_status status, int rank);
int rnnd__fail_no_memory(size_t bytes, const char *what);

/* Shows the compiler that a failure is negative; otherwise it warns that results, which
   are set only on success, may be used uninitialized. */
RNND_CHECKED static inline int rnnd__below_zero(int status)
{
    return status < 0 ? status : RNND_FAULT;
}

/* Prints where a failure is returned, if asked for; returns status. */
int rnnd__status_hop(int status, const char *file, int line);

/* Returns from the calling function if expr is a failure. */
#define RNND_TRY(expr)                                              \
    do {                                                            \
        int rnnd__s = (expr);                                       \
        if (rnnd__s < 0) {                                          \
            rnnd__status_hop(rnnd__s, __FILE__, __LINE__);          \
            return rnnd__s; /* so that compilers see it negative */ \
        }                                                           \
    } while (0)

/* For functions that must clean up: keeps the failure in `status` and jumps to
   `done:`. */
#define RNND_TRY_GOTO(expr)                               \
    do {                                                  \
        status = (expr);                                  \
        if (status < 0) {                                 \
            rnnd__status_hop(status, __FILE__, __LINE__); \
            goto done;                                    \
        }                                                 \
    } while (0)

/* *p = count elements of its type, malloc'ed and zeroed; p is the address of a pointer.
   EDEVICE without memory; count 0 gives a valid pointer. */
#define RNND_NEW(p, count, what) rnnd__new((size_t)(count), sizeof **(p), what, p)
/* Grows *p to count elements and keeps its contents. */
#define RNND_GROW(p, count, what) rnnd__grow((size_t)(count), sizeof **(p), what, p)

/* As above, for elements of `size` bytes. */
RNND_CHECKED int rnnd__new(size_t count, size_t size, const char *what, void *p);
RNND_CHECKED int rnnd__grow(size_t count, size_t size, const char *what, void *p);

#endif
