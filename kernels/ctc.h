/*
 * ctc.h - the layout of the lattice of a label string, for both back ends: how it is
 * cut into blocks, and the room that takes.
 *
 * A row of the lattice has a number of each label, and of each of the blanks around and
 * between them, as mantissas and exponents: four arrays. A small lattice is kept
 * whole. Of a large one the rows of a block of steps are, and the first row of every
 * block, from which the backward pass computes the others again: blocks of the square
 * root of the steps need the least room.
 */
#ifndef RNND_CTC_H
#define RNND_CTC_H

#include <stdbool.h>
#include <stdint.h>

#if defined(__CUDACC__)
#define RNND_CTC_HD __host__ __device__
#else
#define RNND_CTC_HD
#endif

/* Doubles of a lattice that is kept whole. */
#define RNND__CTC_KEPT ((int64_t)1 << 18)

/* Elements of an array of a row: L+1, and room for a vector on either side. */
RNND_CTC_HD static inline int64_t rnnd__ctc_stride(int64_t labels)
{
    return (labels + 1 + 15) / 16 * 16 + 16;
}

/* Doubles of a row. */
RNND_CTC_HD static inline int64_t rnnd__ctc_row(int64_t labels)
{
    return 4 * rnnd__ctc_stride(labels);
}

/* The least number whose square is at least n. */
RNND_CTC_HD static inline int64_t rnnd__ctc_root(int64_t n)
{
    int64_t root = 1;
    while (root * root < n)
        root++;
    return root;
}

/* Steps of a block. */
RNND_CTC_HD static inline int64_t rnnd__ctc_block(int64_t T, int64_t labels)
{
    bool whole = T * rnnd__ctc_row(labels) <= RNND__CTC_KEPT;
    return !whole ? rnnd__ctc_root(T) : T > 0 ? T : 1;
}

/* Doubles for any string of at most so many steps and labels: the lattice, four rows
   more, and two numbers a step. */
RNND_CTC_HD static inline int64_t rnnd__ctc_work(int64_t T, int64_t labels)
{
    int64_t row = rnnd__ctc_row(labels), blocks = 2 * rnnd__ctc_root(T) * row;
    int64_t whole = T * row < RNND__CTC_KEPT ? T * row : RNND__CTC_KEPT;
    return (whole > blocks ? whole : blocks) + 4 * row + 2 * T;
}

#endif
