/*
 * hdf_checksum.c - a checksum over a whole file, after the end of what HDF5 calls the
 * file.
 *
 * HDF5 protects neither its heap of strings nor arrays without a filter, and some
 * versions loop forever on a damaged heap. So this checksum is verified before HDF5
 * sees the file. A program that modifies the file through HDF5 truncates it to HDF5's
 * part; the file is then accepted without a checksum. Layout: a 16-byte name, 8 bytes
 * with the length of what comes before, 8 bytes with its hash; little-endian.
 *
 * Other bytes after that end are damage: what a file system filled with zeros, for
 * example, where the last part of a file was never written.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/signals.h"
#include "hdf/hdf_room.h"

static const char checksum_name[16] = {"rnn_dist-seal-1\n"};

struct checksum {
    char name[16];
    uint64_t length, hash;
};

/* Hash of the first `length` bytes. A signal stops it only where a file is read. */
static int hash_file(int fd, const char *path, bool reading, uint64_t length,
                     uint64_t *out)
{
    enum { BLOCK = 1 << 20 };
    struct rnnd__hash hash;
    OWNED void *block = NULL;
    RNND_TRY(rnnd__new(BLOCK, 1, "a read buffer", &block));
    rnnd__hash_start(&hash);
    while (hash.bytes < length) {
        if (reading && hash.bytes > 0)
            RNND_TRY(rnnd__signals_check(path));
        uint64_t left = length - hash.bytes;
        ssize_t n = pread(fd, block, left < BLOCK ? left : BLOCK, (off_t)hash.bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return rnnd__fail(RNND_EFILE, "%s: cannot be read: %s", path,
                              n < 0 ? strerror(errno) : "truncated while being read");
        rnnd__hash_add(&hash, block, (size_t)n);
    }
    *out = rnnd__hash_end(&hash);
    return 0;
}

int rnnd__hdf_write_checksum(int fd, const char *path)
{
    struct checksum sum;
    uint64_t hash;
    off_t end = lseek(fd, 0, SEEK_END);
    if (end < 0)
        return rnnd__fail(RNND_EFILE, "%s: cannot be written: %s", path,
                          strerror(errno));
    RNND_TRY(hash_file(fd, path, false, (uint64_t)end, &hash));
    memcpy(sum.name, checksum_name, sizeof sum.name);
    sum.length = htole64((uint64_t)end);
    sum.hash = htole64(hash);
    errno = ENOSPC; /* what a short write means */
    if (write(fd, &sum, sizeof sum) != sizeof sum)
        return rnnd__fail(RNND_EFILE, "%s: cannot be written: %s", path,
                          strerror(errno));
    return 0;
}

/* Whether there is one at the end. */
static bool read_checksum(int fd, off_t size, struct checksum *sum)
{
    off_t at = size - (off_t)sizeof *sum;
    return at >= 0 && pread(fd, sum, sizeof *sum, at) == sizeof *sum &&
           memcmp(sum->name, checksum_name, sizeof sum->name) == 0;
}

int rnnd__hdf_verify_checksum(int fd, const char *path, off_t size, bool *found)
{
    struct checksum sum;
    uint64_t hash, length = (uint64_t)size - sizeof sum;
    *found = read_checksum(fd, size, &sum);
    if (!*found)
        return 0;
    if (le64toh(sum.length) != length)
        return rnnd__fail(
            RNND_EFILE, "%s: damaged: its checksum covers %llu bytes, it has %llu",
            path, (unsigned long long)le64toh(sum.length), (unsigned long long)length);
    RNND_TRY(hash_file(fd, path, true, length, &hash));
    if (hash != le64toh(sum.hash))
        return rnnd__fail(RNND_EFILE, "%s: damaged: checksum mismatch", path);
    return 0;
}

/* ---- files without a checksum */

/* A little-endian number of a few bytes. */
static uint64_t number(const unsigned char *at, unsigned bytes)
{
    uint64_t value = 0;
    while (bytes--)
        value = value << 8 | at[bytes];
    return value;
}

enum { SUPERBLOCK = 96 }; /* bytes up to the end's address, and more */

/* The superblock, which is at 0, 512, 1024, 2048 and so on. False if there is none. */
static bool find_superblock(int fd, off_t size, unsigned char block[SUPERBLOCK])
{
    static const unsigned char signature[8] = "\211HDF\r\n\032\n";
    for (off_t at = 0; at < size; at = at ? 2 * at : 512) {
        memset(block, 0, SUPERBLOCK);
        if (pread(fd, block, SUPERBLOCK, at) >= (ssize_t)sizeof signature &&
            memcmp(block, signature, sizeof signature) == 0)
            return true;
    }
    return false;
}

/* Where HDF5's part of the file ends, as its superblock says; false if it does not. */
static bool find_end(int fd, off_t size, uint64_t *end)
{
    unsigned char block[SUPERBLOCK];
    if (!find_superblock(fd, size, block))
        return false;
    unsigned version = block[8], bytes = version < 2 ? block[13] : block[9];
    /* the address comes third, after two of the same size */
    unsigned first = version == 0 ? 24 : version == 1 ? 28 : 12;
    if (version > 3 || (bytes != 2 && bytes != 4 && bytes != 8))
        return false;
    *end = number(block + first + 2 * bytes, bytes);
    return true;
}

bool rnnd__hdf_lacks_checksum(int fd, off_t size)
{
    struct checksum sum;
    unsigned char block[SUPERBLOCK];
    return !read_checksum(fd, size, &sum) && find_superblock(fd, size, block);
}

int rnnd__hdf_check_end(int fd, const char *path, off_t size)
{
    uint64_t end;
    char name[sizeof checksum_name];
    if (!find_end(fd, size, &end) || end == (uint64_t)size)
        return 0;
    if (end > (uint64_t)size)
        return rnnd__fail(RNND_EFILE, "%s: truncated: %lld of %llu bytes", path,
                          (long long)size, (unsigned long long)end);
    ssize_t n = pread(fd, name, sizeof name, (off_t)end);
    if (n > 0 && size - (off_t)end < (off_t)sizeof(struct checksum) &&
        memcmp(name, checksum_name, (size_t)n) == 0)
        return rnnd__fail(RNND_EFILE, "%s: damaged: truncated within its checksum",
                          path);
    return rnnd__fail(RNND_EFILE,
                      "%s: damaged: the %llu bytes after the end of its HDF5 data, at "
                      "%llu, are not a checksum",
                      path, (unsigned long long)((uint64_t)size - end),
                      (unsigned long long)end);
}
