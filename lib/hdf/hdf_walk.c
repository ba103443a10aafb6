/*
 * hdf_walk.c - uses all of a file's structures as a reader of the file may, and keeps
 * nothing: in a child process, which HDF5 may crash (hdf_probe.c).
 *
 * All links, object headers, attributes of the root group, chunk indexes, strings and
 * types are read. Strings of variable length are handed over to the parent: HDF5
 * follows references to them without a check, and what comes of a wrong one depends on
 * what else is in memory, so that no second reading is safe. Of numbers that are stored
 * as they are, or behind HDF5's own simple filters, a sample is enough: no byte of them
 * decides what HDF5 does. Failures that HDF5 reports are left to whoever reads the file
 * next.
 */
#include "hdf/hdf_room.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Elements read at a time, and how many such blocks of an array are a sample. */
enum { BLOCK = 1 << 16, SAMPLE = 16 };

static void begin(struct rnnd__hdf_walk *walk, const char *verb, const char *object)
{
    errno = 0;
    if (walk->lacks_memory) /* that is where */
        return;
    snprintf(walk->doing, sizeof walk->doing, "%s%s", verb, object);
}

/* Takes note of a failure. Only one for lack of memory matters, which HDF5 does not
   always call so. */
static void note(struct rnnd__hdf_walk *walk, int status)
{
    if (status == RNND_EDEVICE || (status < 0 && errno == ENOMEM))
        walk->lacks_memory = true;
}

/* The same for what cannot be listed: it may still be opened by name, unread here. */
static void take(struct rnnd__hdf_walk *walk, int status)
{
    note(walk, status);
    if (status < 0 && !*walk->fault)
        snprintf(walk->fault, sizeof walk->fault, "%s", rnnd_status_detail());
}

/* ---- arrays */

/* Whether the filters of an array are ones that any content passes safely. */
static bool is_plain(hid_t made)
{
    int filters = H5Pget_nfilters(made);
    for (int i = 0; i < filters; i++) {
        H5Z_filter_t id = rnnd__hdf_filter_of(made, i, NULL, 0);
        if (id != H5Z_FILTER_DEFLATE && id != H5Z_FILTER_SHUFFLE &&
            id != H5Z_FILTER_FLETCHER32)
            return false;
    }
    return filters >= 0;
}

/* Reads the index of all chunks. *sample: whether some rows are enough. */
static int walk_index(struct rnnd__hdf *file, const char *object, bool *sample)
{
    GUARD;
    HELD_ARRAY a = NO_ARRAY;
    RNND_TRY(rnnd__hdf_array_of(file, object, &a));
    HELD made = H5Dget_create_plist(a.id);
    bool plain = made >= 0 && is_plain(made);
#if H5_VERSION_GE(1, 10, 5)
    hsize_t chunks;
    if (plain && H5Pget_layout(made) == H5D_CHUNKED)
        plain = H5Dget_num_chunks(a.id, a.space, &chunks) >= 0;
#else
    plain = plain && H5Pget_layout(made) != H5D_CHUNKED;
#endif
    *sample = plain;
    return 0;
}

/* The place of block i of so many, of which `rows` each, the last at the end. */
static int64_t block_at(int64_t i, int64_t blocks, int64_t rows, int64_t all)
{
    int64_t last = all - rows;
    return blocks > 1 ? (int64_t)((double)i / (double)(blocks - 1) * (double)last) : 0;
}

/* The first rows are read as any type that a reader may ask for. */
static int walk_rows(struct rnnd__hdf *file, const char *object,
                     const struct rnnd__hdf_shape *shape, bool sample,
                     struct rnnd__hdf_walk *walk)
{
    static const enum rnnd__hdf_type types[] = {RNND_F64, RNND_F32, RNND_I64, RNND_I32};
    OWNED void *values = NULL;
    int64_t width = 1, all = shape->rank ? shape->dim[0] : 1;
    for (int d = 1; d < shape->rank; d++)
        width *= shape->dim[d];
    if (!width || !all)
        return 0;
    int64_t rows = BLOCK / width + 1, blocks;
    rows = rows < all ? rows : all;
    blocks = (all + rows - 1) / rows;
    if (sample && blocks > SAMPLE)
        blocks = SAMPLE;
    RNND_TRY(rnnd__new((size_t)(rows * width), sizeof(double), object, &values));
    for (int64_t i = 0; i < blocks; i++) {
        int64_t at = sample ? block_at(i, blocks, rows, all) : i * rows;
        int64_t count = rows < all - at ? rows : all - at;
        for (size_t t = 0; t < (i ? 1 : sizeof types / sizeof *types); t++)
            note(walk, rnnd__hdf_read(file, object, at, count, types[t], values));
    }
    return 0;
}

static int walk_array(struct rnnd__hdf *file, const char *object,
                      struct rnnd__hdf_walk *walk)
{
    struct rnnd__hdf_shape shape;
    char **text = NULL;
    int64_t count;
    bool sample;
    RNND_TRY(rnnd__hdf_shape(file, object, &shape));
    if (shape.kind == RNND_HDF_STRING) {
        int status = rnnd__hdf_read_strings(file, object, &text, &count);
        note(walk, status);
        if (status == 0)
            rnnd__hdf_hand_over(walk, object, text, count);
        else
            rnnd__hdf_hand_over_failure(walk, object);
        free(text);
        return 0;
    }
    RNND_TRY(walk_index(file, object, &sample));
    if (shape.kind == RNND_HDF_OTHER)
        return 0;
    return walk_rows(file, object, &shape, sample, walk);
}

/* Groups and the like are refused, which does no harm. */
static int walk_objects(struct rnnd__hdf *file, struct rnnd__hdf_walk *walk)
{
    HELD_LINKS links = {.soft = true};
    begin(walk, "listing its objects", "");
    RNND_TRY(rnnd__hdf_list_links(file, "/", &links));
    for (size_t i = 0; i < links.count; i++) {
        begin(walk, "reading ", links.name[i]);
        note(walk, walk_array(file, links.name[i], walk));
    }
    return 0;
}

/* ---- attributes of the root group */

static herr_t add_attribute(hid_t group, const char *name, const H5A_info_t *info,
                            void *context)
{
    struct rnnd__hdf_links *names = context;
    (void)group, (void)info;
    if (RNND_GROW(&names->name, names->count + 1, "names") < 0)
        return -1;
    names->name[names->count] = strdup(name);
    return names->name[names->count++] ? 0 : -1;
}

static int list_attributes(struct rnnd__hdf *file, struct rnnd__hdf_links *names)
{
    GUARD;
    if (H5Aiterate2(file->id, H5_INDEX_NAME, H5_ITER_NATIVE, NULL, add_attribute,
                    names) < 0)
        return rnnd__hdf_fail(file, "its attributes cannot be listed");
    return 0;
}

static int walk_attribute(struct rnnd__hdf *file, const char *name,
                          struct rnnd__hdf_walk *walk)
{
    OWNED char *key = NULL, *text = NULL;
    int64_t number;
    if (asprintf(&key, RNND_HDF_ATTRIBUTE "%s", name) < 0)
        return rnnd__fail_memory(strlen(name), "a name");
    begin(walk, "reading ", key);
    note(walk, rnnd__hdf_get_int(file, name, &number));
    int status = rnnd__hdf_get_string(file, name, &text);
    if (status == 0)
        rnnd__hdf_hand_over(walk, key, &text, 1);
    else
        rnnd__hdf_hand_over_failure(walk, key);
    return status;
}

static int walk_attributes(struct rnnd__hdf *file, struct rnnd__hdf_walk *walk)
{
    HELD_LINKS names = {.count = 0};
    begin(walk, "listing its attributes", "");
    RNND_TRY(list_attributes(file, &names));
    for (size_t i = 0; i < names.count; i++)
        note(walk, walk_attribute(file, names.name[i], walk));
    return 0;
}

/* ---- the file */

void rnnd__hdf_walk(struct rnnd__hdf *file, struct rnnd__hdf_walk *walk)
{
    begin(walk, "opening it", "");
    int status = rnnd__hdf_open_id(file);
    note(walk, status);
    if (status == 0) {
        take(walk, walk_attributes(file, walk));
        take(walk, walk_objects(file, walk));
    }
    begin(walk, "closing it", "");
    rnnd__hdf_close(file);
    walk->done = true;
}
