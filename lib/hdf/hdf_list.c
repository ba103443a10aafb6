/*
 * hdf_list.c - visits all arrays of a file or group, in name order, and reads them.
 */
#include "hdf/hdf_room.h"

#include <stdlib.h>
#include <string.h>

#include "base/signals.h"

struct listing {
    const char *group;
    struct rnnd__hdf_links *links;
    int status;
};

static herr_t list_link(hid_t group, const char *name, const H5L_info_t *info,
                        void *context)
{
    struct listing *list = context;
    struct rnnd__hdf_links *links = list->links;
    (void)group;
    if (info->type != H5L_TYPE_HARD && !(links->soft && info->type == H5L_TYPE_SOFT))
        return 0;
    list->status = RNND_GROW(&links->name, links->count + 1, "object names");
    if (list->status < 0)
        return 1;
    const char *between = list->group[strlen(list->group) - 1] == '/' ? "" : "/";
    if (asprintf(&links->name[links->count], "%s%s%s", list->group, between, name) <
        0) {
        list->status = rnnd__fail_memory(strlen(name), "object names");
        return 1;
    }
    links->count++;
    return 0;
}

int rnnd__hdf_list_links(struct rnnd__hdf *file, const char *group,
                         struct rnnd__hdf_links *links)
{
    GUARD;
    struct listing list = {group, links, 0};
    if (H5Lvisit_by_name(file->id, group, H5_INDEX_NAME, H5_ITER_INC, list_link, &list,
                         H5P_DEFAULT) < 0)
        return rnnd__hdf_fail_object(file, group, "cannot be listed");
    return list.status;
}

void rnnd__hdf_drop_links(struct rnnd__hdf_links *links)
{
    for (size_t i = 0; i < links->count; i++)
        free(links->name[i]);
    free(links->name);
}

static int is_array(struct rnnd__hdf *file, const char *object, bool *out)
{
    GUARD;
    HELD id = H5Oopen(file->id, object, H5P_DEFAULT);
    if (id < 0)
        return rnnd__hdf_fail_object(file, object, "cannot be opened");
    *out = H5Iget_type(id) == H5I_DATASET;
    return 0;
}

int rnnd__hdf_each(struct rnnd__hdf *file, const char *group,
                   int (*visit)(void *context, const char *object), void *context)
{
    HELD_LINKS links = {.count = 0};
    RNND_TRY(rnnd__hdf_list_links(file, group, &links));
    for (size_t i = 0; i < links.count; i++) {
        bool array = false;
        RNND_TRY(is_array(file, links.name[i], &array));
        if (array)
            RNND_TRY(visit(context, links.name[i]));
    }
    return 0;
}

/* ---- reading everything */

static int read_strings(struct rnnd__hdf *f, const char *object)
{
    char **text = NULL;
    int64_t count;
    RNND_TRY(rnnd__hdf_read_strings(f, object, &text, &count));
    free(text);
    return 0;
}

static int read_array(void *context, const char *object)
{
    struct rnnd__hdf *f = context;
    struct rnnd__hdf_shape shape;
    void *values = NULL; /* of a block of rows */
    int status = 0;
    RNND_TRY(rnnd__hdf_shape(f, object, &shape));
    if (shape.kind == RNND_HDF_STRING && shape.rank == 1)
        return read_strings(f, object);
    if (shape.kind != RNND_HDF_INT && shape.kind != RNND_HDF_FLOAT)
        return 0;
    enum rnnd__hdf_type type = shape.kind == RNND_HDF_INT ? RNND_I64 : RNND_F64;
    int64_t width = 1, rows = shape.rank ? shape.dim[0] : 1;
    for (int d = 1; d < shape.rank; d++)
        width *= shape.dim[d];
    int64_t block = width ? ((int64_t)1 << 20) / width + 1 : 1;
    if (block > rows)
        block = rows;
    RNND_TRY(
        rnnd__new((size_t)(block * width), rnnd__hdf_size_of(type), object, &values));
    for (int64_t at = 0; status == 0 && at < rows; at += block) {
        status = at > 0 ? rnnd__signals_check(f->path) : 0;
        if (status == 0)
            status = rnnd__hdf_read(
                f, object, at, block < rows - at ? block : rows - at, type, values);
    }
    free(values);
    return status;
}

int rnnd__hdf_read_all(struct rnnd__hdf *file)
{
    return rnnd__hdf_each(file, "/", read_array, file);
}
