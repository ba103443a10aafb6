/*
 * failure.h - the first of several failures, kept with its message, which later calls
 * would overwrite.
 */
#ifndef RNND_FAILURE_H
#define RNND_FAILURE_H

#include "base/status.h"

struct rnnd__failure {
    /* 0: nothing has failed */
    int status;
    char message[1024];
};

/* Keeps a failure and the current rnnd_status_detail(), unless one is kept already. */
static inline void rnnd__failure_keep(struct rnnd__failure *first, int status)
{
    if (status >= 0 || first->status < 0)
        return;
    first->status = status;
    snprintf(first->message, sizeof first->message, "%s", rnnd_status_detail());
}

/* Fails as the first one did; 0 if nothing has failed. */
RNND_CHECKED static inline int rnnd__failure_again(const struct rnnd__failure *first)
{
    return first->status < 0
               ? rnnd__fail((enum rnnd_status)first->status, "%s", first->message)
               : 0;
}

#endif
