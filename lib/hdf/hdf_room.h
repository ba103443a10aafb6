/*
 * hdf_room.h - shared by the files of lib/hdf/, and the only file that includes
 * <hdf5.h>.
 *
 * Every public function that calls the library begins with GUARD. HELD ids and OWNED
 * memory are released at the end of their scope.
 */
#ifndef RNND_HDF_ROOM_H
#define RNND_HDF_ROOM_H

#include <hdf5.h>
#include <sys/types.h>

#include "base/status.h"
#include "hdf/hdf.h"

enum { RNND_HDF_MAX_RANK = 4 };

struct rnnd__hdf {
    hid_t id;
    /* as given, for messages */
    char *path;
    /* bytes of the file that is read; 0 when writing */
    int64_t size;
    /* NULL when reading */
    struct rnnd__output *output;
    /* the file that was opened ends with a checksum */
    bool has_checksum;
    /* strings of variable length of a file without; else NULL */
    const struct rnnd__hdf_texts *texts;
    /* a write failed: commit must fail too */
    bool failed;
    /* memory was lacking: what was not found may be there */
    bool starved;
};

/* ---- one caller at a time, no error printing, release at end of scope */

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

/* The id, which its HELD variable no longer releases. */
static inline hid_t rnnd__hdf_take(hid_t *held)
{
    hid_t taken = *held;
    *held = -1;
    return taken;
}

/* ---- messages */

/* "/name" for both "/name" and "name", as arguments of "%s%s" */
#define AT(object) ((object)[0] == '/' ? "" : "/"), (object)

/* EDATA about an object, or an attribute, of a file. */
#define FAIL_OBJECT(file, object, format, ...) \
    rnnd__fail(RNND_EDATA, "%s: %s%s: " format, (file)->path, AT(object), ##__VA_ARGS__)
#define FAIL_ATTRIBUTE(file, name, format, ...)                             \
    rnnd__fail(RNND_EDATA, "%s: attribute %s: " format, (file)->path, name, \
               ##__VA_ARGS__)

/* Whether memory was lacking since the file was opened. To be called right after the
   call that failed. */
bool rnnd__hdf_lacks_memory(struct rnnd__hdf *file);
/* EFILE, or EDEVICE where it lacks memory, with the reason that the library gives. To
   be called before any other call of the library, which would clear it. */
RNND_CHECKED int rnnd__hdf_fail(struct rnnd__hdf *file, const char *problem);
RNND_CHECKED int rnnd__hdf_fail_object(struct rnnd__hdf *file, const char *object,
                                       const char *problem);
RNND_CHECKED int rnnd__hdf_fail_attribute(struct rnnd__hdf *file, const char *name,
                                          const char *problem);
/* The values of an array cannot be read: EDATA where the library lacks a filter. */
RNND_CHECKED int rnnd__hdf_fail_values(struct rnnd__hdf *file, const char *object,
                                       hid_t array);

/* ---- files and arrays */

/* A handle with its path and nothing open. */
RNND_CHECKED int rnnd__hdf_handle(const char *path, struct rnnd__hdf **out);
/* Access properties for reading and for writing; -1 on failure. */
hid_t rnnd__hdf_access(void);
/* Opens a handle's path; nothing is checked before. */
RNND_CHECKED int rnnd__hdf_open_id(struct rnnd__hdf *file);
enum rnnd__hdf_kind rnnd__hdf_kind_of(hid_t type);
/* Filter i of an array's creation properties; name [size] may be NULL. */
H5Z_filter_t rnnd__hdf_filter_of(hid_t made, int i, char *name, size_t size);

/* An open array. */
struct rnnd__hdf_array {
    hid_t id, type, space;
    struct rnnd__hdf_shape shape;
    /* elements per row */
    int64_t width;
};

void rnnd__hdf_drop_array(struct rnnd__hdf_array *array);
#define HELD_ARRAY __attribute__((cleanup(rnnd__hdf_drop_array))) struct rnnd__hdf_array
#define NO_ARRAY                          \
    {                                     \
        .id = -1, .type = -1, .space = -1 \
    }

/* EDATA where there is no such array or it has too many dimensions. */
RNND_CHECKED int rnnd__hdf_array_of(struct rnnd__hdf *file, const char *object,
                                    struct rnnd__hdf_array *out);
/* Selects rows in array->space; returns a dataspace in memory of as many elements,
   which the caller releases, or -1 on failure. */
hid_t rnnd__hdf_select_rows(const struct rnnd__hdf_array *array, int64_t first,
                            int64_t count);
/* The library's type for elements in memory. */
hid_t rnnd__hdf_memory_type(enum rnnd__hdf_type type);

/* ---- links (hdf_list.c) */

/* The paths of a group's members, and of those of groups in it, in name order. */
struct rnnd__hdf_links {
    /* soft links as well as hard ones */
    bool soft;
    char **name;
    size_t count;
};

void rnnd__hdf_drop_links(struct rnnd__hdf_links *links);
#define HELD_LINKS __attribute__((cleanup(rnnd__hdf_drop_links))) struct rnnd__hdf_links
/* Adds to links also where it fails. */
RNND_CHECKED int rnnd__hdf_list_links(struct rnnd__hdf *file, const char *group,
                                      struct rnnd__hdf_links *links);

/* ---- what is refused in files of others (hdf_claims.c) */

/* EDATA where the values of an array are not in the file itself. To be called before
   the library measures the array. */
RNND_CHECKED int rnnd__hdf_check_storage(struct rnnd__hdf *file, const char *object,
                                         hid_t array);
/* EDATA where the array claims more than a file of this size can hold. */
RNND_CHECKED int rnnd__hdf_check_claim(struct rnnd__hdf *file, const char *object,
                                       const struct rnnd__hdf_array *array);
/* The most bytes that anything in the file can take in memory, without compression. */
int64_t rnnd__hdf_most_bytes(const struct rnnd__hdf *file);
/* Access properties that do not follow external links; -1 on failure. */
hid_t rnnd__hdf_link_access(void);

/* Whether all links of a path exist. EDATA for one that leads out of the file; EFILE or
   EDEVICE where it cannot be determined. */
RNND_CHECKED int rnnd__hdf_is_there(struct rnnd__hdf *file, const char *object,
                                    bool *out);

/* ---- reading a file in a child process first (hdf_probe.c, hdf_walk.c) */

/* Strings that the child has read (hdf_texts.c). */
struct rnnd__hdf_texts;

/* What both processes see. */
struct rnnd__hdf_walk {
    /* "reading /inputs" */
    char doing[320];
    /* why objects cannot be listed; "" = they can */
    char fault[512];
    bool lacks_memory;
    /* the walk came to its end */
    bool done;
    /* file for strings that are handed over, and bytes in it */
    int texts;
    uint64_t bytes;
};

/* Walks through a file and closes it. */
void rnnd__hdf_walk(struct rnnd__hdf *file, struct rnnd__hdf_walk *walk);
/* What the child does, and how many times its processor time it may take on the clock,
   since file systems can be slow; tests change them. */
extern void (*rnnd__hdf_walker)(struct rnnd__hdf *file, struct rnnd__hdf_walk *walk);
extern int rnnd__hdf_patience;
/* rnnd__hdf_probe() for a file without a checksum, open for reading as well. *texts
   lasts as long as the process. */
RNND_CHECKED int rnnd__hdf_probe_file(int fd, const char *path,
                                      const struct rnnd__hdf_texts **texts);

/* Names of strings are paths of arrays, or this before the name of an attribute. */
#define RNND_HDF_ATTRIBUTE "attribute "

/* In the child: gives the strings of an array or attribute to the parent, or the last
   failure as the reason why they cannot be read. Without room, memory is lacking. */
void rnnd__hdf_hand_over(struct rnnd__hdf_walk *walk, const char *name,
                         char *const *text, int64_t count);
void rnnd__hdf_hand_over_failure(struct rnnd__hdf_walk *walk, const char *name);
/* In the parent: all of them; freed with free(). EDATA unless they are well formed. */
RNND_CHECKED int rnnd__hdf_take_over(const char *path,
                                     const struct rnnd__hdf_walk *walk,
                                     struct rnnd__hdf_texts **out);
/* `count` strings of an array or attribute; each is borrowed. EDATA where the child
   could not read them, or had no such name. */
RNND_CHECKED int rnnd__hdf_recall(const struct rnnd__hdf *file, const char *name,
                                  int64_t count, const char **text);

/* ---- checksum over the whole file (hdf_checksum.c) */

/* Appends it to a file that is open for reading and writing. */
RNND_CHECKED int rnnd__hdf_write_checksum(int fd, const char *path);
/* EFILE where there is one and it does not match. *found: whether there is one. */
RNND_CHECKED int rnnd__hdf_verify_checksum(int fd, const char *path, off_t size,
                                           bool *found);
/* Whether this is a file of HDF5, and no checksum at its end. */
bool rnnd__hdf_lacks_checksum(int fd, off_t size);
/* EFILE where a file without a checksum is shorter or longer than HDF5's part. */
RNND_CHECKED int rnnd__hdf_check_end(int fd, const char *path, off_t size);

#endif
