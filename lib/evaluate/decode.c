/*
 * decode.c - strings of labels from scores, and their edit distance.
 */
#include "evaluate/decode.h"

#include <math.h>

int64_t rnnd__decode_step(const float *score, int64_t outputs)
{
    int64_t best = -1;
    for (int64_t k = 0; k < outputs; k++)
        if (best < 0 ? !isnan(score[k]) : score[k] > score[best])
            best = k;
    return best;
}

int64_t rnnd__decode_best(const float *const *row, int64_t T, int64_t outputs,
                          int32_t *label)
{
    int64_t count = 0, before = 0;
    for (int64_t t = 0; t < T; t++) {
        int64_t k = rnnd__decode_step(row[t], outputs);
        if (k > 0 && k != before)
            label[count++] = (int32_t)k - 1;
        before = k;
    }
    return count;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int64_t rnnd__decode_distance(const int32_t *a, int64_t m, const int32_t *b, int64_t n,
                              int64_t *work)
{
    for (int64_t j = 0; j <= n; j++)
        work[j] = j;
    for (int64_t i = 0; i < m; i++) {
        int64_t corner = work[0]; /* of the row before */
        work[0] = i + 1;
        for (int64_t j = 0; j < n; j++) {
            int64_t replaced = corner + (a[i] != b[j]);
            corner = work[j + 1];
            work[j + 1] = least(replaced, 1 + least(corner, work[j]));
        }
    }
    return work[n];
}
