/*
 * npz_write.c - parameters as NumPy arrays in a ZIP file, which numpy.load() reads.
 *
 * The texts that describe the model are arrays of one string of bytes. Members are not
 * compressed and have no time, so that the same model gives the same bytes.
 */
#include "exchange/export.h"

#ifdef HAVE_LIBZIP
#include <endian.h>
#include <stdlib.h>
#include <string.h>
#include <zip.h>

#include "base/file.h"
#include "base/status.h"
#include "checkpoint/statedict.h"

struct npz {
    const char *path;
    /* owns its members */
    zip_t *zip;
};

static int fail_zip(const struct npz *z, const char *text)
{
    return rnnd__fail(RNND_EFILE, "%s: %s", z->path, text);
}

/* Adds NAME.npy, of size bytes after a header; data is copied. */
static int add_array(struct npz *z, const char *name, const char *type,
                     const char *shape, const void *data, size_t size)
{
    enum { MAGIC = 10, ALIGN = 64, MIDNIGHT = 0, YEAR_1980 = 33 };
    char header[256], member[96];
    int text = snprintf(header, sizeof header,
                        "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }",
                        type, shape);
    size_t length = ((size_t)text + 1 + MAGIC + ALIGN - 1) / ALIGN * ALIGN - MAGIC;
    unsigned char *bytes = malloc(MAGIC + length + size);
    if (!bytes)
        return rnnd__fail_memory(size, name);
    memcpy(bytes, "\x93NUMPY\1\0", 8);
    bytes[8] = (unsigned char)(length & 255);
    bytes[9] = (unsigned char)(length >> 8);
    memset(bytes + MAGIC, ' ', length);
    memcpy(bytes + MAGIC, header, (size_t)text);
    bytes[MAGIC + length - 1] = '\n';
    memcpy(bytes + MAGIC + length, data, size);
    zip_source_t *source = zip_source_buffer(z->zip, bytes, MAGIC + length + size, 1);
    if (!source) {
        free(bytes);
        return fail_zip(z, zip_strerror(z->zip));
    }
    snprintf(member, sizeof member, "%s.npy", name);
    zip_int64_t at = zip_file_add(z->zip, member, source, ZIP_FL_ENC_UTF_8);
    if (at < 0) {
        zip_source_free(source);
        return fail_zip(z, zip_strerror(z->zip));
    }
    zip_uint64_t i = (zip_uint64_t)at;
    if (zip_set_file_compression(z->zip, i, ZIP_CM_STORE, 0) != 0 ||
        zip_file_set_dostime(z->zip, i, MIDNIGHT, YEAR_1980, 0) != 0)
        return fail_zip(z, zip_strerror(z->zip));
    return 0;
}

static int put_text(void *npz, const char *key, const char *text)
{
    char type[32];
    snprintf(type, sizeof type, "|S%zu", strlen(text));
    return add_array(npz, key, type, "", text, strlen(text));
}

static int add_parameters(struct npz *z, struct rnnd_model *model)
{
    const char *name;
    int64_t rows, cols;
    uint32_t *word = NULL;
    int status = 0;
    for (int i = 0; rnnd_model_parameter(model, i, &name, &rows, &cols); i++) {
        size_t count = (size_t)(rows * (cols ? cols : 1));
        char shape[64];
        snprintf(shape, sizeof shape, cols ? "%lld, %lld" : "%lld,", (long long)rows,
                 (long long)cols);
        RNND_TRY_GOTO(RNND_GROW(&word, count, name));
        RNND_TRY_GOTO(rnnd_model_get(model, name, (float *)word));
        for (size_t k = 0; k < count; k++)
            word[k] = htole32(word[k]);
        RNND_TRY_GOTO(add_array(z, name, "<f4", shape, word, count * sizeof *word));
    }
done:
    free(word);
    return status;
}

static const struct rnnd__kind kind = {
    "an .npz file of rnn_dist", {"PK\3\4"}, RNND_KEY_TASK};

/* Writes what the archive has become in memory. */
static int write_out(zip_source_t *archive, const char *path)
{
    enum { BLOCK = 1 << 16 };
    struct rnnd__file file = {.stream = NULL};
    char *block = NULL;
    int status = 0;
    bool open = zip_source_open(archive) == 0;
    if (!open)
        return rnnd__fail(RNND_EFILE, "%s: the archive cannot be read back", path);
    RNND_TRY_GOTO(RNND_NEW(&block, BLOCK, "a block of a file"));
    RNND_TRY_GOTO(rnnd__file_create(path, &kind, &file));
    zip_int64_t n;
    while ((n = zip_source_read(archive, block, BLOCK)) > 0)
        if (fwrite(block, 1, (size_t)n, file.stream) != (size_t)n)
            RNND_TRY_GOTO(rnnd__file_fail("write", path));
    if (n < 0)
        RNND_TRY_GOTO(
            rnnd__fail(RNND_EFILE, "%s: the archive cannot be read back", path));
    RNND_TRY_GOTO(rnnd__file_commit(&file));
done:
    rnnd__file_drop(&file);
    zip_source_close(archive);
    free(block);
    return status;
}

int rnnd__npz_write(const char *path, struct rnnd_model *model,
                    const struct rnnd_options *opt)
{
    struct npz z = {path, NULL};
    zip_source_t *archive = zip_source_buffer_create(NULL, 0, 0, NULL);
    int status = 0;
    if (!archive)
        return rnnd__fail_memory(0, "an archive");
    z.zip = zip_open_from_source(archive, ZIP_TRUNCATE, NULL);
    if (!z.zip) {
        zip_source_free(archive);
        return rnnd__fail_memory(0, "an archive");
    }
    zip_source_keep(archive);
    RNND_TRY_GOTO(rnnd__statedict_describe(model, opt, put_text, &z));
    RNND_TRY_GOTO(add_parameters(&z, model));
    if (zip_close(z.zip) != 0)
        RNND_TRY_GOTO(fail_zip(&z, zip_strerror(z.zip)));
    z.zip = NULL;
    RNND_TRY_GOTO(write_out(archive, path));
done:
    if (z.zip)
        zip_discard(z.zip);
    zip_source_free(archive);
    return status;
}

#else

#include "base/status.h"

int rnnd__npz_write(const char *path, struct rnnd_model *model,
                    const struct rnnd_options *opt)
{
    (void)model, (void)opt;
    return rnnd__export_check(path);
}

#endif
