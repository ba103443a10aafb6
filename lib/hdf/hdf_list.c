/*
 * hdf_list.c - visits all arrays of a file or group, in name order.
 */
#include "hdf/hdf_room.h"

#include <stdlib.h>
#include <string.h>

struct listing {
    const char *group;
    char **name;
    size_t count;
    int status;
};

static herr_t list_link(hid_t group, const char *name, const H5L_info_t *info,
                        void *context)
{
    struct listing *list = context;
    if (info->type != H5L_TYPE_HARD)
        return 0;
    HELD id = H5Oopen(group, name, H5P_DEFAULT);
    if (id < 0)
        return -1;
    if (H5Iget_type(id) != H5I_DATASET)
        return 0;
    list->status = RNND_GROW(&list->name, list->count + 1, "object names");
    if (list->status < 0)
        return 1;
    const char *between = list->group[strlen(list->group) - 1] == '/' ? "" : "/";
    if (asprintf(&list->name[list->count], "%s%s%s", list->group, between, name) < 0) {
        list->status = rnnd__fail_memory(strlen(name), "object names");
        return 1;
    }
    list->count++;
    return 0;
}

static int list_arrays(struct rnnd__hdf *file, struct listing *list)
{
    GUARD;
    if (H5Lvisit_by_name(file->id, list->group, H5_INDEX_NAME, H5_ITER_INC, list_link,
                         list, H5P_DEFAULT) < 0)
        return rnnd__hdf_fail_object(file, list->group, "cannot be listed");
    return list->status;
}

int rnnd__hdf_each(struct rnnd__hdf *file, const char *group,
                   int (*visit)(void *context, const char *object), void *context)
{
    struct listing list = {.group = group};
    int status = list_arrays(file, &list);
    for (size_t i = 0; i < list.count; i++) {
        if (status == 0)
            status = visit(context, list.name[i]);
        free(list.name[i]);
    }
    free(list.name);
    return status;
}
