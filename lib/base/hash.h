/*
 * hash.h - a 64-bit hash of a stream of bytes, for fingerprints of data and checksums
 * of files.
 *
 * The value does not depend on how the bytes are split into calls. Each step is
 * one-to-one in both state and input word, so a change within one word is always
 * detected. Not cryptographic.
 */
#ifndef RNND_HASH_H
#define RNND_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct rnnd__hash {
    uint64_t lane[4];
    uint64_t bytes;
    /* the block being filled */
    unsigned char part[32];
};

static const uint64_t rnnd__hash_factor = UINT64_C(0x9e3779b97f4a7c15);

static inline void rnnd__hash_start(struct rnnd__hash *hash)
{
    memset(hash, 0, sizeof *hash);
    for (unsigned i = 0; i < 4; i++)
        hash->lane[i] = i + 1;
}

static inline uint64_t rnnd__hash_step(uint64_t state, uint64_t word)
{
    state = (state ^ word) * rnnd__hash_factor;
    return state << 29 | state >> 35;
}

static inline void rnnd__hash_block(struct rnnd__hash *hash, const unsigned char *block)
{
    uint64_t word[4];
    memcpy(word, block, sizeof word);
    for (int i = 0; i < 4; i++)
        hash->lane[i] = rnnd__hash_step(hash->lane[i], word[i]);
}

static inline void rnnd__hash_add(struct rnnd__hash *hash, const void *data,
                                  size_t bytes)
{
    const unsigned char *from = data;
    size_t have = hash->bytes % sizeof hash->part, room = sizeof hash->part - have;
    hash->bytes += bytes;
    if (have && bytes >= room) {
        memcpy(hash->part + have, from, room);
        rnnd__hash_block(hash, hash->part);
        from += room;
        bytes -= room;
        have = 0;
    }
    if (have == 0)
        for (; bytes >= sizeof hash->part; bytes -= sizeof hash->part) {
            rnnd__hash_block(hash, from);
            from += sizeof hash->part;
        }
    if (bytes)
        memcpy(hash->part + have, from, bytes);
}

static inline uint64_t rnnd__hash_end(struct rnnd__hash *hash)
{
    size_t have = hash->bytes % sizeof hash->part;
    uint64_t sum = hash->bytes;
    if (have) {
        memset(hash->part + have, 0, sizeof hash->part - have);
        rnnd__hash_block(hash, hash->part);
    }
    for (int i = 0; i < 4; i++)
        sum = rnnd__hash_step(sum, hash->lane[i]);
    return sum ^ sum >> 32;
}

#endif
