/*
 * status.h - failing with a text, inside the library.
 *
 * rnnd__fail() keeps one message a thread for rnnd_status_detail(); RNND_TRY hands a
 * failure up and notes the hop, which RNND_TRACE=1 in the environment prints.
 */
#ifndef RNND_STATUS_H
#define RNND_STATUS_H

#include "rnn_dist.h"

/* Sets the detail text and returns status. */
#define rnnd__fail(...) rnnd__below_zero(rnnd__fail_text(__VA_ARGS__))

/* EDEVICE: "out of memory: N bytes for WHAT". */
#define rnnd__fail_memory(bytes, what) \
    rnnd__below_zero(rnnd__fail_no_memory(bytes, what))

int rnnd__fail_text(enum rnnd_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
int rnnd__fail_no_memory(size_t bytes, const char *what);

/* Tells the compiler that a failure is negative: else it warns that what a function
   sets only where it succeeds may be used unset. */
RNND_CHECKED static inline int rnnd__below_zero(int status)
{
    return status < 0 ? status : RNND_FAULT;
}

/* One hop of a failure on its way up; returns status. */
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

/* The same where something is held: keeps the failure in `status` and goes to
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
   EDEVICE where there is no memory; count 0 gives a valid pointer. */
#define RNND_NEW(p, count, what) rnnd__new((size_t)(count), sizeof **(p), what, p)
/* Grows *p to count elements, keeping what is there. */
#define RNND_GROW(p, count, what) rnnd__grow((size_t)(count), sizeof **(p), what, p)

/* The same for elements of `size` bytes. */
RNND_CHECKED int rnnd__new(size_t count, size_t size, const char *what, void *p);
RNND_CHECKED int rnnd__grow(size_t count, size_t size, const char *what, void *p);

#endif
