/*
 * status.c - the text of the last failure, one a thread, and checked allocation.
 */
#include "base/status.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local char detail[2048];

const char *rnnd_status_detail(void)
{
    return detail;
}

const char *rnnd_version(void)
{
    return PACKAGE_VERSION;
}

int rnnd__fail_text(enum rnnd_status status, const char *format, ...)
{
    char text[sizeof detail]; /* an argument may be the present detail */
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    memcpy(detail, text, sizeof detail);
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
                detail);
    return status;
}

/* p is the address of a pointer of any type: its bytes are copied, not cast. */
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
