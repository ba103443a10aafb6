/*
 * random.h - Philox 4x32-10 and the keys of all random streams.
 *
 * A counter-based generator: a (key, counter) pair gives the same four words on every
 * host and device, so masks and initial values do not depend on ranks, order or
 * packing. Source: Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3" (SC11).
 */
#ifndef RNND_RANDOM_H
#define RNND_RANDOM_H

#include <stdint.h>

#ifdef __CUDACC__
#define RNND_HD __host__ __device__
#else
#define RNND_HD
#endif

/* What a stream is for; streams of different purposes are independent. */
enum rnnd__purpose {
    /* `update` is the key of the parameter's name */
    RNND_FOR_INIT = 1,
    /* `update` is the epoch */
    RNND_FOR_SHUFFLE,
    /* `update` is the epoch */
    RNND_FOR_BATCHES,
    /* `layer` is the position in the stack */
    RNND_FOR_DROPOUT,
    RNND_FOR_SAMPLE,
    RNND_FOR_SPLIT
};

struct rnnd__random {
    uint32_t word[4];
};

RNND_HD static inline struct rnnd__random rnnd__philox(uint64_t key, uint32_t c0,
                                                       uint32_t c1, uint32_t c2,
                                                       uint32_t c3)
{
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)p1;
        c3 = (uint32_t)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    struct rnnd__random r = {{c0, c1, c2, c3}};
    return r;
}

/* The key of a stream: a Philox draw from (seed; purpose, layer, update). */
RNND_HD static inline uint64_t rnnd__random_key(uint64_t seed,
                                                enum rnnd__purpose purpose, int layer,
                                                uint64_t update)
{
    struct rnnd__random r =
        rnnd__philox(seed, (uint32_t)update, (uint32_t)(update >> 32), (uint32_t)layer,
                     (uint32_t)purpose);
    return ((uint64_t)r.word[1] << 32) | r.word[0];
}

/* Uniform in [0,1): 24 bits, exact in float. */
RNND_HD static inline float rnnd__uniform(uint32_t word)
{
    return (float)(word >> 8) * 0x1p-24f;
}

/* The dropout mask of units `unit` to `unit` + 3 (`unit` is a multiple of 4) at step
   `step` of sequence `id`: a unit is dropped where its word is below
   rnnd__dropout_threshold(p). */
RNND_HD static inline struct rnnd__random rnnd__dropout_words(uint64_t key, int64_t id,
                                                              int64_t step,
                                                              int64_t unit)
{
    return rnnd__philox(key, (uint32_t)(unit / 4), (uint32_t)step, (uint32_t)id,
                        (uint32_t)(id >> 32) ^ ((uint32_t)(step >> 32) << 16));
}

RNND_HD static inline uint32_t rnnd__dropout_threshold(double p)
{
    return (uint32_t)(p * 4294967296.0);
}

#endif
