/*
 * touched.c - the rows of the embedding that the gradient of an update reaches.
 */
#include "model/touched.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"

int rnnd__touched_reserve(struct rnnd__touched *t, int64_t rows)
{
    if (rows <= t->room)
        return 0;
    int64_t room = rows > 2 * t->room ? rows : 2 * t->room;
    RNND_TRY(RNND_GROW(&t->row, room, "rows of the embedding"));
    t->room = room;
    return 0;
}

/* Micro-batches of an update share many rows: duplicates go before the list grows. */
int rnnd__touched_add(struct rnnd__touched *t, const int32_t *row, int64_t count)
{
    if (count == 0)
        return 0;
    if (t->count + count > t->room)
        rnnd__touched_settle(t);
    RNND_TRY(rnnd__touched_reserve(t, t->count + count));
    memcpy(t->row + t->count, row, (size_t)count * sizeof *row);
    t->count += count;
    t->settled = false;
    return 0;
}

static int ascending(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* The rows of one batch come sorted. */
static bool is_sorted(const struct rnnd__touched *t)
{
    for (int64_t i = 1; i < t->count; i++)
        if (t->row[i] < t->row[i - 1])
            return false;
    return true;
}

void rnnd__touched_settle(struct rnnd__touched *t)
{
    int64_t kept = 0;
    if (t->settled || t->count == 0)
        return;
    if (!is_sorted(t))
        qsort(t->row, (size_t)t->count, sizeof *t->row, ascending);
    for (int64_t i = 0; i < t->count; i++)
        if (kept == 0 || t->row[i] != t->row[kept - 1])
            t->row[kept++] = t->row[i];
    t->count = kept;
    t->settled = true;
}

void rnnd__touched_forget(struct rnnd__touched *t)
{
    t->count = 0;
    t->settled = false;
}

void rnnd__touched_clear(struct rnnd__touched *t)
{
    free(t->row);
    memset(t, 0, sizeof *t);
}
