/*
 * safetensors_write.c - the parameters of a model as a file of that format
 * (safetensors.c tells what it is).
 *
 * The same model gives the same bytes. Its metadata hold task, options and classes, so
 * that a model can be made of the file again.
 */
#include <endian.h>
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/status.h"
#include "checkpoint/statedict.h"

static void put_text(json_t *object, const char *key, const char *text)
{
    json_object_set_new(object, key, json_string(text));
}

static int put_metadata(json_t *header, const struct rnnd_model *model,
                        const struct rnnd_options *opt)
{
    char *config = NULL, *classes = NULL;
    int status = 0;
    RNND_TRY(rnnd__statedict_config(model, opt, &config));
    RNND_TRY_GOTO(rnnd__statedict_classes_text(model, &classes));
    json_t *meta = json_object();
    put_text(meta, "format", "pt"); /* what loaders of PyTorch files look for */
    put_text(meta, RNND_TOLD_TASK, rnnd_task_name(rnnd_model_spec(model)->task));
    put_text(meta, RNND_TOLD_CONFIG, config);
    if (classes)
        put_text(meta, RNND_TOLD_CLASSES, classes);
    if (json_object_set_new(header, "__metadata__", meta) != 0)
        status = rnnd__fail_memory(0, "header of safetensors");
done:
    free(config);
    free(classes);
    return status;
}

/* The header, padded with blanks so that the elements are aligned; malloc'ed, taken. */
static int make_header(const struct rnnd_model *model, const struct rnnd_options *opt,
                       char **out)
{
    json_t *header = json_object();
    const char *name;
    int64_t rows, cols, at = 0;
    char *text = NULL;
    int status = 0;
    RNND_TRY_GOTO(put_metadata(header, model, opt));
    for (int i = 0; rnnd_model_parameter(model, i, &name, &rows, &cols); i++) {
        int64_t end = at + 4 * rows * (cols ? cols : 1);
        json_t *shape = cols ? json_pack("[I,I]", (json_int_t)rows, (json_int_t)cols)
                             : json_pack("[I]", (json_int_t)rows);
        json_t *entry = json_pack("{s:s,s:o,s:[I,I]}", "dtype", "F32", "shape", shape,
                                  "data_offsets", (json_int_t)at, (json_int_t)end);
        if (!entry || json_object_set_new(header, name, entry) != 0)
            RNND_TRY_GOTO(rnnd__fail_memory(0, "header of safetensors"));
        at = end;
    }
    text = json_dumps(header, JSON_COMPACT);
    if (!text || asprintf(out, "%s%*s", text, (int)(-strlen(text) & 7), "") < 0)
        RNND_TRY_GOTO(rnnd__fail_memory(0, "header of safetensors"));
done:
    free(text);
    json_decref(header);
    return status;
}

static int fail_system(const char *path, const char *what)
{
    return rnnd__fail(RNND_EFILE, "%s: %s: %s", path, what, strerror(errno));
}

static int write_tensors(FILE *f, struct rnnd_model *model, const char *path)
{
    const char *name;
    int64_t rows, cols;
    uint32_t *word = NULL;
    int status = 0;
    for (int i = 0; rnnd_model_parameter(model, i, &name, &rows, &cols); i++) {
        size_t count = (size_t)(rows * (cols ? cols : 1));
        RNND_TRY_GOTO(RNND_GROW(&word, count, name));
        RNND_TRY_GOTO(rnnd_model_get(model, name, (float *)word));
        for (size_t k = 0; k < count; k++)
            word[k] = htole32(word[k]);
        if (fwrite(word, sizeof *word, count, f) != count)
            RNND_TRY_GOTO(fail_system(path, "cannot be written"));
    }
done:
    free(word);
    return status;
}

static int write_file(FILE *f, struct rnnd_model *model, const char *header,
                      const char *path)
{
    uint64_t length = htole64(strlen(header));
    if (fwrite(&length, sizeof length, 1, f) != 1 || fputs(header, f) < 0)
        return fail_system(path, "cannot be written");
    return write_tensors(f, model, path);
}

int rnnd__safetensors_write(const char *path, struct rnnd_model *model,
                            const struct rnnd_options *opt)
{
    char *header;
    struct rnnd__file file = {.stream = NULL};
    RNND_TRY(make_header(model, opt, &header));
    int status = rnnd__file_create(path, &file);
    if (status == 0)
        status = write_file(file.stream, model, header, path);
    if (status == 0)
        status = rnnd__file_commit(&file);
    rnnd__file_drop(&file);
    free(header);
    return status;
}
