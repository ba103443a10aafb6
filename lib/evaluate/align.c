/*
 * align.c - the most probable path of a given string (Viterbi).
 *
 * A path is at one of 2 L + 1 places at each step: the labels, and the blanks around
 * and between them. It stays there, goes on to the next place or, between labels that
 * differ, past the blank. How it came to each place is kept in two bits.
 */
#include "evaluate/align.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "evaluate/decode.h"

struct rnnd__aligner {
    int64_t outputs;
    /* [places] of the best path to each */
    double *best;
    int64_t best_room;
    /* [T, (places + 3) / 4] places that a path advanced, four to a byte */
    uint8_t *move;
    int64_t move_room;
    int32_t *place;
    int64_t place_room;
};

int rnnd__aligner_new(int64_t outputs, struct rnnd__aligner **out)
{
    RNND_TRY(RNND_NEW(out, 1, "alignments"));
    (*out)->outputs = outputs;
    return 0;
}

void rnnd__aligner_free(struct rnnd__aligner *a)
{
    if (!a)
        return;
    free(a->best);
    free(a->move);
    free(a->place);
    free(a);
}

static int reserve(struct rnnd__aligner *a, int64_t T, int64_t places, int64_t moves)
{
    if (places > a->best_room) {
        RNND_TRY(RNND_GROW(&a->best, places, "alignments"));
        a->best_room = places;
    }
    if (moves > a->move_room) {
        RNND_TRY(RNND_GROW(&a->move, moves, "alignments"));
        a->move_room = moves;
    }
    if (T >= a->place_room) {
        RNND_TRY(RNND_GROW(&a->place, T + 1, "alignments"));
        a->place_room = T + 1;
    }
    return 0;
}

/* Before the first step a path is in front of the first blank, from where it goes to
   that or to the first label: place 0, which has no score yet. */
static void begin(double *best, int64_t places)
{
    best[0] = 0;
    for (int64_t s = 1; s < places; s++)
        best[s] = -INFINITY;
}

/* A step: of the best paths to each place, and how far they advanced. The first step
   may only stay at the first blank or advance by one. */
static void take_step(double *best, const float *x, const int32_t *label,
                      int64_t places, uint8_t *move)
{
    for (int64_t s = places - 1; s >= 0; s--) {
        bool is_label = s % 2;
        int from = 0;
        double most = best[s];
        if (s > 0 && best[s - 1] > most) {
            most = best[s - 1];
            from = 1;
        }
        if (is_label && s > 1 && label[s / 2] != label[s / 2 - 1] &&
            best[s - 2] > most) {
            most = best[s - 2];
            from = 2;
        }
        best[s] = most + (double)x[is_label ? label[s / 2] + 1 : 0];
        move[s / 4] |= (uint8_t)(from << (s % 4 * 2));
    }
}

int rnnd__align(struct rnnd__aligner *a, const float *const *row, int64_t T,
                const int32_t *label, int64_t count, struct rnnd__alignment *out)
{
    int64_t places = 2 * count + 1, stride = (places + 3) / 4;
    double total = 0;
    RNND_TRY(reserve(a, T, places, T * stride));
    if (T > 0)
        memset(a->move, 0, (size_t)(T * stride));
    begin(a->best, places);
    for (int64_t t = 0; t < T; t++) {
        take_step(a->best, row[t], label, places, a->move + t * stride);
        total += rnnd__decode_total(row[t], a->outputs);
    }
    int64_t s = places - 1;
    if (s > 0 && a->best[s - 1] > a->best[s])
        s--;
    *out = (struct rnnd__alignment){NULL, NAN};
    if (!(a->best[s] > -INFINITY))
        return 0;
    out->log_p = a->best[s] - total;
    out->place = a->place;
    for (int64_t t = T - 1; t >= 0; t--) {
        a->place[t] = s % 2 ? (int32_t)(s / 2) : -1;
        s -= a->move[t * stride + s / 4] >> (s % 4 * 2) & 3;
    }
    return 0;
}
