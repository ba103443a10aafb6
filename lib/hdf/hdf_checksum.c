/*
 * hdf_checksum.c - a checksum over a whole file, behind the end of what HDF5 calls the
 * file.
 *
 * HDF5 guards neither its heap of texts nor arrays without a filter, and some versions
 * loop for ever over a damaged heap: the seal is looked at before HDF5 sees the file. A
 * program that changes the file through HDF5 cuts the seal off with it, and such a file
 * is accepted again. Seal: 16 bytes of name, 8 of the length of what is sealed, 8 of
 * its hash.
 */
#include "base/hash.h"
#include "hdf/hdf_room.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static const char checksum_name[16] = {"rnn_dist-seal-1\n"};

struct seal {
    char name[16];
    /* little-endian */
    uint64_t length, hash;
};

/* Hash of the first `length` bytes. */
static int hash_file(int fd, const char *path, uint64_t length, uint64_t *out)
{
    enum { BLOCK = 1 << 20 };
    struct rnnd__hash hash;
    OWNED void *block = NULL;
    RNND_TRY(rnnd__new(1, BLOCK, "reading", &block));
    rnnd__hash_start(&hash);
    while (hash.bytes < length) {
        uint64_t left = length - hash.bytes;
        ssize_t n = pread(fd, block, left < BLOCK ? left : BLOCK, (off_t)hash.bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return rnnd__fail(RNND_EFILE, "%s: cannot be read: %s", path,
                              n < 0 ? strerror(errno) : "it became shorter");
        rnnd__hash_add(&hash, block, (size_t)n);
    }
    *out = rnnd__hash_end(&hash);
    return 0;
}

int rnnd__hdf_write_checksum(int fd, const char *path)
{
    struct seal seal;
    uint64_t hash;
    off_t end = lseek(fd, 0, SEEK_END);
    if (end < 0)
        return rnnd__fail(RNND_EFILE, "%s: cannot be written: %s", path,
                          strerror(errno));
    RNND_TRY(hash_file(fd, path, (uint64_t)end, &hash));
    memcpy(seal.name, checksum_name, sizeof seal.name);
    seal.length = htole64((uint64_t)end);
    seal.hash = htole64(hash);
    errno = ENOSPC; /* what a short write means */
    if (write(fd, &seal, sizeof seal) != sizeof seal)
        return rnnd__fail(RNND_EFILE, "%s: cannot be written: %s", path,
                          strerror(errno));
    return 0;
}

int rnnd__hdf_verify_checksum(int fd, const char *path, off_t size, bool *sealed)
{
    struct seal seal;
    uint64_t hash, length = (uint64_t)size - sizeof seal;
    bool found = size >= (off_t)sizeof seal &&
                 pread(fd, &seal, sizeof seal, (off_t)length) == sizeof seal &&
                 memcmp(seal.name, checksum_name, sizeof seal.name) == 0;
    if (!found) {
        *sealed = false;
        return 0;
    }
    if (le64toh(seal.length) != length)
        return rnnd__fail(
            RNND_EFILE, "%s: damaged: %llu bytes were sealed, it has %llu", path,
            (unsigned long long)le64toh(seal.length), (unsigned long long)length);
    RNND_TRY(hash_file(fd, path, length, &hash));
    if (hash != le64toh(seal.hash))
        return rnnd__fail(
            RNND_EFILE, "%s: damaged: the checksum over the file does not hold", path);
    *sealed = true;
    return 0;
}

bool rnnd__hdf_broken_checksum(int fd, off_t end)
{
    char name[sizeof checksum_name];
    ssize_t n = pread(fd, name, sizeof name, end);
    return n > 0 && memcmp(name, checksum_name, (size_t)n) == 0;
}
