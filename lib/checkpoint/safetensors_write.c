/*
 * safetensors_write.c - writes the parameters of a model as a safetensors file
 * (safetensors.c describes the format).
 *
 * The same model gives the same bytes. Metadata hold task, options and classes, so that
 * the model can be made again from the file.
 */
#include <endian.h>
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/status.h"
#include "checkpoint/statedict.h"

/* Leaves out a text that is not UTF-8, which JSON cannot represent. */
static int put_text(void *object, const char *key, const char *text)
{
    json_object_set_new(object, key, json_string(text));
    return 0;
}

static int put_metadata(json_t *header, const struct rnnd_model *model,
                        const struct rnnd_options *opt)
{
    json_t *meta = json_object();
    int status = put_text(meta, "format", "pt"); /* what loaders of PyTorch look for */
    if (status == 0)
        status = rnnd__statedict_describe(model, opt, put_text, meta);
    if (json_object_set_new(header, "__metadata__", meta) != 0 && status == 0)
        status = rnnd__fail_memory(0, "metadata");
    return status;
}

/* The header, padded with blanks to align the elements; malloc'ed. */
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
        int64_t end = at + (int64_t)sizeof(float) * rows * (cols ? cols : 1);
        json_t *shape = cols ? json_pack("[I,I]", (json_int_t)rows, (json_int_t)cols)
                             : json_pack("[I]", (json_int_t)rows);
        json_t *entry = json_pack("{s:s,s:o,s:[I,I]}", "dtype", "F32", "shape", shape,
                                  "data_offsets", (json_int_t)at, (json_int_t)end);
        if (!entry || json_object_set_new(header, name, entry) != 0)
            RNND_TRY_GOTO(rnnd__fail_memory(0, "the header of a safetensors file"));
        at = end;
    }
    text = json_dumps(header, JSON_COMPACT);
    if (!text || asprintf(out, "%s%*s", text, (int)(-strlen(text) & 7), "") < 0)
        RNND_TRY_GOTO(rnnd__fail_memory(0, "the header of a safetensors file"));
done:
    free(text);
    json_decref(header);
    return status;
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
            RNND_TRY_GOTO(rnnd__file_fail("write", path));
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
        return rnnd__file_fail("write", path);
    return write_tensors(f, model, path);
}

static const struct rnnd__kind kind = {
    "a safetensors file of rnn_dist", {NULL}, RNND_KEY_TASK};

int rnnd__safetensors_write(const char *path, struct rnnd_model *model,
                            const struct rnnd_options *opt)
{
    char *header;
    struct rnnd__file file = {.stream = NULL};
    RNND_TRY(make_header(model, opt, &header));
    int status = rnnd__file_create(path, &kind, &file);
    if (status == 0)
        status = write_file(file.stream, model, header, path);
    if (status == 0)
        status = rnnd__file_commit(&file);
    rnnd__file_drop(&file);
    free(header);
    return status;
}
