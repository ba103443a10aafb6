/*
 * batch_sort.c - sorts the rows of a batch of tokens by token.
 */
#include <stdlib.h>
#include <string.h>

#include "data/batch.h"

/* Sorts by counting, in R + V steps; returns the number of distinct tokens. */
static int64_t sort_by_counts(struct rnnd_batch *b)
{
    int64_t R = b->packed.R, V = b->info->vocab, distinct = 0, at = 0;
    int32_t *next =
        b->count_of; /* first counts, then the place of a token's next row */
    memset(next, 0, (size_t)(V + 1) * sizeof *next);
    for (int64_t r = 0; r < R; r++)
        next[b->host_tokens[r]]++;
    for (int64_t v = 0; v < V; v++) {
        int32_t rows = next[v];
        next[v] = (int32_t)at;
        if (rows == 0)
            continue;
        b->segment[distinct] = (int32_t)at;
        b->token[distinct++] = (int32_t)v;
        at += rows;
    }
    b->segment[distinct] = (int32_t)at;
    for (int64_t r = 0; r < R; r++)
        b->rows[next[b->host_tokens[r]]++] = (int32_t)r;
    return distinct;
}

static int by_token_and_row(const void *a, const void *b, void *tokens)
{
    int32_t row = *(const int32_t *)a, other = *(const int32_t *)b;
    int32_t x = ((const int32_t *)tokens)[row], y = ((const int32_t *)tokens)[other];
    return x != y ? (x > y) - (x < y) : (row > other) - (row < other);
}

/* The same by comparing rows: for a few rows of a large vocabulary. */
static int64_t sort_by_comparison(struct rnnd_batch *b)
{
    int64_t R = b->packed.R, distinct = 0;
    for (int64_t r = 0; r < R; r++)
        b->rows[r] = (int32_t)r;
    qsort_r(b->rows, (size_t)R, sizeof *b->rows, by_token_and_row, b->host_tokens);
    for (int64_t i = 0; i < R; i++) {
        int32_t token = b->host_tokens[b->rows[i]];
        if (distinct > 0 && b->token[distinct - 1] == token)
            continue;
        b->segment[distinct] = (int32_t)i;
        b->token[distinct++] = token;
    }
    b->segment[distinct] = (int32_t)R;
    return distinct;
}

int rnnd__batch_sort_tokens(struct rnnd_batch *b)
{
    enum { COMPARISON = 64 }; /* counts of tokens that the work on a row is worth */
    const struct rnnd__backend_ops *op = b->be->ops;
    int64_t R = b->packed.R;
    bool few = R < b->info->vocab / COMPARISON;
    b->segments.count = few ? sort_by_comparison(b) : sort_by_counts(b);
    size_t segments = (size_t)b->segments.count;
    op->upload(b->be, b->segments.rows, b->rows, (size_t)R * sizeof *b->rows);
    op->upload(b->be, b->segments.segment, b->segment,
               (segments + 1) * sizeof *b->segment);
    op->upload(b->be, b->segments.token, b->token, segments * sizeof *b->token);
    return 0;
}
