/*
 * hdf_room.h - what the files of the HDF5 room (lib/hdf*.c) share.
 *
 * The only file that includes <hdf5.h>, and those are the only ones that include it.
 * GUARD stands first in every public function; HELD ids and OWNED memory go by
 * themselves.
 */
#ifndef RNND_HDF_ROOM_H
#define RNND_HDF_ROOM_H

#include "base/status.h"
#include "hdf/hdf.h"

#include <hdf5.h>
#include <sys/types.h>

enum { RNND_HDF_MAX_RANK = 4 };

struct rnnd__hdf {
    hid_t id;
    /* as given, for messages */
    char *path;
    /* what it will be called, links followed; NULL when reading */
    char *target;
    /* what is written until commit; NULL when reading */
    char *temp;
    /* what is read has a checksum over all of it */
    bool sealed;
    /* a write failed: the file must not get its name */
    bool failed;
};

/* ---- the library: one caller at a time, silent; ids and memory that go by
   themselves */

struct rnnd__hdf_guard {
    H5E_auto2_t print;
    void *data;
};

struct rnnd__hdf_guard rnnd__hdf_enter(void);
void rnnd__hdf_leave(struct rnnd__hdf_guard *guard);
void rnnd__hdf_drop_id(hid_t *id);
void rnnd__hdf_drop_memory(void *pointer);

#define GUARD                                                                        \
    struct rnnd__hdf_guard guard __attribute__((cleanup(rnnd__hdf_leave), unused)) = \
        rnnd__hdf_enter()
#define HELD  __attribute__((cleanup(rnnd__hdf_drop_id))) hid_t
#define OWNED __attribute__((cleanup(rnnd__hdf_drop_memory)))

/* ---- messages: to be made before any other call of the library, which forgets its
   reasons */

/* "/name" for both "/name" and "name", as arguments of "%s%s" */
#define AT(object) ((object)[0] == '/' ? "" : "/"), (object)

RNND_CHECKED int rnnd__hdf_fail(const struct rnnd__hdf *file, const char *doing);
RNND_CHECKED int rnnd__hdf_fail_object(const struct rnnd__hdf *file, const char *object,
                                       const char *doing);
/* Values of an array that cannot be read: EDATA where it is a filter that is
   missing. */
RNND_CHECKED int rnnd__hdf_fail_values(const struct rnnd__hdf *file, const char *object,
                                       hid_t array);
RNND_CHECKED int rnnd__hdf_fail_attribute(const struct rnnd__hdf *file,
                                          const char *name, const char *doing);

/* ---- files and objects */

RNND_CHECKED int rnnd__hdf_handle(const char *path, struct rnnd__hdf **out);
/* Properties of opening a file, for reading and for writing; -1 on failure. */
hid_t rnnd__hdf_access(void);
enum rnnd__hdf_kind rnnd__hdf_kind_of(hid_t type);
/* An array that is open, and what it is. */
struct rnnd__hdf_array {
    hid_t id, type, space;
    struct rnnd__hdf_shape shape;
    /* elements a row */
    int64_t width;
};

void rnnd__hdf_drop_array(struct rnnd__hdf_array *array);
#define HELD_ARRAY __attribute__((cleanup(rnnd__hdf_drop_array))) struct rnnd__hdf_array
#define NO_ARRAY                          \
    {                                     \
        .id = -1, .type = -1, .space = -1 \
    }

/* EDATA where there is none, or of too many dimensions. */
RNND_CHECKED int rnnd__hdf_array_of(struct rnnd__hdf *file, const char *object,
                                    struct rnnd__hdf_array *out);
hid_t rnnd__hdf_memory_type(enum rnnd__hdf_type type);

/* ---- seals */

/* Appends a checksum over all of the file, open for reading and writing. */
RNND_CHECKED int rnnd__hdf_write_checksum(int fd, const char *path);
/* EFILE where there is one that does not hold; *sealed: whether there is one. */
RNND_CHECKED int rnnd__hdf_verify_checksum(int fd, const char *path, off_t size,
                                           bool *sealed);
/* Whether what stands at `end`, where HDF5 ends, is a piece of a seal. */
bool rnnd__hdf_broken_checksum(int fd, off_t end);

#endif
