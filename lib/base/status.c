/*
 * status.c - the last failure of each thread, and checked allocation.
 */
#include "base/status.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local struct rnnd__failure last;

const char *rnnd_status_detail(void)
{
    return last.text;
}

void rnnd__failure_save(struct rnnd__failure *out, int status)
{
    *out = last;
    out->status = status;
    out->elsewhere = last.elsewhere && last.status == status;
}

int rnnd__failure_restore(const struct rnnd__failure *failure)
{
    if (failure->status < 0)
        last = *failure;
    return failure->status;
}

void rnnd__failure_keep(struct rnnd__failure *first, int status)
{
    if (status < 0 && first->status == 0)
        rnnd__failure_save(first, status);
}

const char *rnnd_version(void)
{
    return PACKAGE_VERSION;
}

int rnnd__fail_text(enum rnnd_status status, const char *format, ...)
{
    char text[sizeof last.text]; /* an argument may be the present message */
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    last.status = status;
    last.elsewhere = false;
    memcpy(last.text, text, sizeof text);
    return status;
}

int rnnd__fail_rank(enum rnnd_status status, int rank)
{
    rnnd__fail_text(status, "rank %d failed", rank);
    last.elsewhere = true;
    return status;
}

int rnnd__fail_no_memory(size_t bytes, const char *what)
{
    return rnnd__fail_text(RNND_EDEVICE, "out of memory: %zu bytes for %s", bytes,
                           what);
}

int rnnd__status_hop(int status, const char *file, int line)
{
    if (getenv("RNND_TRACE"))
        fprintf(stderr, "rnn_dist: status %d at %s:%d: %s\n", status, file, line,
                last.text);
    return status;
}

/* p is the address of a pointer of any type, so its bytes are copied rather than
   assigned. */
int rnnd__new(size_t count, size_t size, const char *what, void *p)
{
    void *memory = calloc(count ? count : 1, size);
    if (!memory)
        return rnnd__fail_memory(count * size, what);
    memcpy(p, &memory, sizeof memory);
    return 0;
}

int rnnd__grow(size_t count, size_t size, const char *what, void *p)
{
    size_t bytes = (count ? count : 1) * size;
    void *memory;
    memcpy(&memory, p, sizeof memory);
    memory = count > SIZE_MAX / size ? NULL : realloc(memory, bytes);
    if (!memory)
        return rnnd__fail_memory(bytes, what);
    memcpy(p, &memory, sizeof memory);
    return 0;
}
