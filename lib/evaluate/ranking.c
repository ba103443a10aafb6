/*
 * ranking.c - area under the ROC curve, and average precision.
 *
 * Scores of each answer are sorted as integers of the same order, and the two lists are
 * walked together from the highest score down. Equal scores are one threshold.
 */
#include "evaluate/ranking.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

/* The scores of one answer, as keys. */
struct list {
    uint32_t *key;
    int64_t count;
};

/* An integer that orders as the number does; -0 is 0. */
static uint32_t key_of(float score)
{
    uint32_t bits;
    score += 0.0f;
    memcpy(&bits, &score, sizeof bits);
    return bits >> 31 ? ~bits : bits | 0x80000000u;
}

/* Sorts by falling key, a byte at a time; spare has the same room. */
static void sort(struct list *l, uint32_t *spare)
{
    uint32_t *from = l->key, *to = spare;
    for (int shift = 0; shift < 32; shift += 8) {
        int64_t place[257] = {0};
        for (int64_t i = 0; i < l->count; i++)
            place[256 - (from[i] >> shift & 255)]++;
        for (int b = 1; b <= 256; b++)
            place[b] += place[b - 1];
        for (int64_t i = 0; i < l->count; i++)
            to[place[255 - (from[i] >> shift & 255)]++] = from[i];
        uint32_t *swap = from;
        from = to;
        to = swap;
    }
}

/* Moves *at past the keys that are equal to `key`, and returns how many there are. */
static int64_t take(const struct list *l, int64_t *at, uint32_t key)
{
    int64_t first = *at;
    while (*at < l->count && l->key[*at] == key)
        ++*at;
    return *at - first;
}

/* Both lists are sorted. */
static struct rnnd__ranking walk(const struct list *yes, const struct list *no)
{
    int64_t y = 0, n = 0;
    /* twice the pairs of which the yes has the higher score, a tie being half */
    double wins = 0, precision = 0;
    while (y < yes->count || n < no->count) {
        uint32_t key = y < yes->count ? yes->key[y] : 0;
        if (n < no->count && no->key[n] > key)
            key = no->key[n];
        int64_t more_yes = take(yes, &y, key), more_no = take(no, &n, key);
        wins += (double)more_yes * (double)(2 * (no->count - n) + more_no);
        precision += (double)more_yes * ((double)y / (double)(y + n));
    }
    return (struct rnnd__ranking){
        .auroc = yes->count && no->count
                     ? wins / 2 / ((double)yes->count * (double)no->count)
                     : NAN,
        .average_precision = yes->count ? precision / (double)yes->count : NAN};
}

int rnnd__ranking_of(const float *score, const unsigned char *answer, int64_t count,
                     int64_t stride, struct rnnd__ranking *out)
{
    struct list list[2] = {{NULL, 0}, {NULL, 0}};
    uint32_t *keys = NULL;
    bool numbers = true;
    RNND_TRY(RNND_NEW(&keys, 2 * count, "a ranking"));
    for (int64_t i = 0; i < count; i++)
        list[1].count += answer[i * stride] != 0;
    list[0].key = keys;
    list[1].key = keys + (count - list[1].count);
    list[1].count = 0;
    for (int64_t i = 0; i < count; i++) {
        struct list *l = &list[answer[i * stride] != 0];
        numbers = numbers && !isnan(score[i * stride]);
        l->key[l->count++] = key_of(score[i * stride]);
    }
    for (int a = 0; a < 2; a++)
        sort(&list[a], keys + count);
    *out = numbers ? walk(&list[1], &list[0]) : (struct rnnd__ranking){NAN, NAN};
    free(keys);
    return 0;
}
