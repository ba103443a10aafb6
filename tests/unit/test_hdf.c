/*
 * test_hdf.c - HDF5 files: round trips, conversions, messages, atomic writing, and
 * whether damage at any byte of a file is noticed.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>

#include "hdf/hdf.h"
#include "testing.h"

enum { CHECKSUM = 32, FLOATS = 300, LABELS = 40 };

static struct rnnd__hdf *created(const char *name)
{
    struct rnnd__hdf *file;
    must(rnnd__hdf_create(in_folder(name), &file));
    return file;
}

static struct rnnd__hdf *opened(const char *name)
{
    struct rnnd__hdf *file;
    must(rnnd__hdf_open(in_folder(name), &file));
    return file;
}

/* ---- round trips */

START_TEST(arrays_come_back)
{
    int64_t dim[4] = {2, 3};
    float f[6] = {0, -1.5f, INFINITY, -0.0f, 1e-42f, 3};
    double d = 0.1;
    int32_t i[2] = {INT32_MIN, INT32_MAX};
    int64_t l[2] = {INT64_MIN, INT64_MAX};
    uint8_t u[2] = {0, 255};
    int64_t two = 2, none = 0;
    struct rnnd__hdf *file = created("a.h5");
    for (int sum = 0; sum < 2; sum++) {
        const char *group = sum ? "checked/deep" : "plain";
        char name[64];
#define WRITE(what, type, rank, dims, data)            \
    snprintf(name, sizeof name, "%s/%s", group, what); \
    must(rnnd__hdf_write(file, name, type, rank, dims, sum, data))
        WRITE("f", RNND_F32, 2, dim, f);
        WRITE("d", RNND_F64, 0, NULL, &d);
        WRITE("i", RNND_I32, 1, &two, i);
        WRITE("l", RNND_I64, 1, &two, l);
        WRITE("u", RNND_U8, 1, &two, u);
        WRITE("none", RNND_F32, 1, &none, f);
    }
    must(rnnd__hdf_commit(file));

    file = opened("a.h5");
    for (int sum = 0; sum < 2; sum++) {
        const char *group = sum ? "checked/deep" : "/plain";
        char name[64];
        float f2[6];
        double d2;
        int32_t i2[2];
        int64_t l2[2];
        uint8_t u2[2];
        bool has;
#define READ(what, count, type, out)                       \
    snprintf(name, sizeof name, "%s/%s", group, what);     \
    must(rnnd__hdf_read(file, name, 0, count, type, out)); \
    must(rnnd__hdf_has_checksum(file, name, &has));        \
    ck_assert_int_eq(has, sum || !(count))
        READ("f", 2, RNND_F32, f2);
        READ("d", 1, RNND_F64, &d2);
        READ("i", 2, RNND_I32, i2);
        READ("l", 2, RNND_I64, l2);
        READ("u", 2, RNND_U8, u2);
        READ("none", 0, RNND_F32, NULL);
        ck_assert_mem_eq(f, f2, sizeof f);
        ck_assert_mem_eq(&d, &d2, sizeof d);
        ck_assert_mem_eq(i, i2, sizeof i);
        ck_assert_mem_eq(l, l2, sizeof l);
        ck_assert_mem_eq(u, u2, sizeof u);
    }
    struct rnnd__hdf_shape shape;
    must(rnnd__hdf_shape(file, "plain/f", &shape));
    ck_assert_int_eq(shape.kind, RNND_HDF_FLOAT);
    ck_assert_int_eq(shape.rank, 2);
    ck_assert_int_eq(shape.dim[0], 2);
    ck_assert_int_eq(shape.dim[1], 3);
    must(rnnd__hdf_shape(file, "plain/d", &shape));
    ck_assert_int_eq(shape.rank, 0);
    must(rnnd__hdf_shape(file, "plain/u", &shape));
    ck_assert_int_eq(shape.kind, RNND_HDF_INT);
    rnnd__hdf_close(file);
}
END_TEST

/* Many chunks, written and read by rows that do not fall together with them. */
START_TEST(slices)
{
    enum { ROWS = 700001, WIDTH = 3, STEP = 99991 };
    int64_t dim[2] = {ROWS, WIDTH};
    int32_t *all = malloc(sizeof *all * ROWS * WIDTH),
            *part = malloc(sizeof *all * STEP * WIDTH);
    for (int i = 0; i < ROWS * WIDTH; i++)
        all[i] = i * 7 - 1000;
    for (int sum = 0; sum < 2; sum++) {
        struct rnnd__hdf *file = created("s.h5");
        must(rnnd__hdf_write(file, "x", RNND_I32, 2, dim, sum, NULL));
        for (int64_t at = 0; at < ROWS; at += STEP) {
            int64_t n = ROWS - at < STEP ? ROWS - at : STEP;
            if (at != STEP) /* left out: reads as zero */
                must(
                    rnnd__hdf_write_rows(file, "x", at, n, RNND_I32, all + at * WIDTH));
        }
        must(rnnd__hdf_commit(file));
        file = opened("s.h5");
        bool has;
        must(rnnd__hdf_has_checksum(file, "x", &has));
        ck_assert_int_eq(has, sum);
        for (int64_t at = 17; at + 1000 < ROWS; at += 64123) {
            must(rnnd__hdf_read(file, "x", at, 1000, RNND_I32, part));
            for (int64_t i = 0; i < 1000 * WIDTH; i++) {
                int64_t k = at * WIDTH + i, row = k / WIDTH;
                ck_assert_int_eq(part[i], row / STEP == 1 ? 0 : all[k]);
            }
        }
        must_fail(RNND_EDATA, rnnd__hdf_read(file, "x", ROWS - 1, 2, RNND_I32, part));
        ck_assert_str_eq(rest_of_detail(),
                         "s.h5: /x: rows 700000 to 700001 requested, it has 700001");
        rnnd__hdf_close(file);
    }
    free(all);
    free(part);
}
END_TEST

/* Bytes at the place of a row are those of the row. */
START_TEST(places)
{
    int64_t dim[2] = {5, 3}, offset = 0, size = 0;
    int32_t x[5][3], row[3];
    for (int i = 0; i < 15; i++)
        x[i / 3][i % 3] = 1000 + i;
    struct rnnd__hdf *file = created("p.h5");
    must(rnnd__hdf_write(file, "whole", RNND_I32, 2, dim, false, x));
    must(rnnd__hdf_write(file, "chunks", RNND_I32, 2, dim, true, x));
    must(rnnd__hdf_commit(file));
    file = opened("p.h5");
    ck_assert(rnnd__hdf_place(file, "/whole", &offset, &size));
    ck_assert_int_eq(size, sizeof row);
    FILE *bytes = fopen(in_folder("p.h5"), "rb");
    ck_assert_ptr_nonnull(bytes);
    for (int i = 0; i < 5; i++) {
        ck_assert_int_eq(fseek(bytes, (long)(offset + i * size), SEEK_SET), 0);
        ck_assert_int_eq(fread(row, sizeof row, 1, bytes), 1);
        ck_assert_mem_eq(row, x[i], sizeof row);
    }
    fclose(bytes);
    rnnd__hdf_prefetch(file, offset, 5 * size);
    rnnd__hdf_prefetch(file, 1 << 30, 1 << 30); /* beyond its end */
    ck_assert(!rnnd__hdf_place(file, "/chunks", &offset, &size));
    ck_assert(!rnnd__hdf_place(file, "/nothing", &offset, &size));
    must(rnnd__hdf_read(file, "/whole", 4, 1, RNND_I32, row));
    ck_assert_mem_eq(row, x[4], sizeof row);
    rnnd__hdf_close(file);
}
END_TEST

START_TEST(texts_come_back)
{
    const char *text[] = {"", "ä€𝄞", " trailing blank ", "x"};
    char *wild[50];
    struct rnnd__hdf *file = created("t.h5");
    for (int i = 0; i < 50; i++)
        wild[i] = strdup(i == 25 ? text[1] : "");
    wild[49] = realloc(wild[49], 100001);
    memset(wild[49], 'y', 100000);
    wild[49][100000] = 0;
    must(rnnd__hdf_write_strings(file, "/classes", text, 4));
    must(rnnd__hdf_write_strings(file, "/none", text, 0));
    must(rnnd__hdf_write_strings(file, "/wild", (const char *const *)wild, 50));
    must(rnnd__hdf_set_string(file, "task", "tag"));
    must(rnnd__hdf_set_string(file, "empty", ""));
    must(rnnd__hdf_set_string(file, "long", wild[49]));
    must(rnnd__hdf_set_string(file, "task", "classify"));
    must(rnnd__hdf_commit(file));

    file = opened("t.h5");
    char **back, *s;
    int64_t n;
    must(rnnd__hdf_read_strings(file, "classes", &back, &n));
    ck_assert_int_eq(n, 4);
    for (int i = 0; i < 4; i++)
        ck_assert_str_eq(back[i], text[i]);
    free(back);
    must(rnnd__hdf_read_strings(file, "none", &back, &n));
    ck_assert_int_eq(n, 0);
    free(back);
    must(rnnd__hdf_read_strings(file, "wild", &back, &n));
    ck_assert_int_eq(n, 50);
    for (int i = 0; i < 50; i++)
        ck_assert_str_eq(back[i], wild[i]);
    free(back);
    must(rnnd__hdf_get_string(file, "task", &s));
    ck_assert_str_eq(s, "classify");
    free(s);
    must(rnnd__hdf_get_string(file, "long", &s));
    ck_assert_str_eq(s, wild[49]);
    free(s);
    must(rnnd__hdf_get_string(file, "empty", &s));
    ck_assert_str_eq(s, "");
    free(s);
    must_fail(RNND_EDATA, rnnd__hdf_read(file, "classes", 0, 1, RNND_F32, NULL));
    ck_assert_str_eq(rest_of_detail(), "t.h5: /classes: strings; expected numbers");
    rnnd__hdf_close(file);
    for (int i = 0; i < 50; i++)
        free(wild[i]);
}
END_TEST

START_TEST(attributes)
{
    struct rnnd__hdf *file = created("at.h5");
    int64_t i;
    char *s = NULL;
    must(rnnd__hdf_set_int(file, "version", INT64_MIN));
    must(rnnd__hdf_set_int(file, "two", 1));
    must(rnnd__hdf_set_int(file, "two", 2));
    must(rnnd__hdf_set_string(file, "text", "x"));
    must(rnnd__hdf_commit(file));
    file = opened("at.h5");
    ck_assert(rnnd__hdf_has_attribute(file, "version"));
    ck_assert(!rnnd__hdf_has_attribute(file, "Version"));
    must(rnnd__hdf_get_int(file, "version", &i));
    ck_assert(i == INT64_MIN);
    must(rnnd__hdf_get_int(file, "two", &i));
    ck_assert_int_eq(i, 2);
    must_fail(RNND_EDATA, rnnd__hdf_get_int(file, "text", &i));
    ck_assert_str_eq(rest_of_detail(), "at.h5: attribute text: expected a number");
    must_fail(RNND_EDATA, rnnd__hdf_get_string(file, "two", &s));
    ck_assert_str_eq(rest_of_detail(), "at.h5: attribute two: expected a string");
    must_fail(RNND_EDATA, rnnd__hdf_get_string(file, "none", &s));
    ck_assert_str_eq(rest_of_detail(), "at.h5: attribute none: missing");
    ck_assert_int_eq(i, 2);
    ck_assert_ptr_null(s);
    rnnd__hdf_close(file);
}
END_TEST

/* ---- conversions */

START_TEST(values_that_do_not_fit)
{
    int64_t dim[3] = {70000, 1, 2}, four = 4;
    int64_t *l = calloc(140000, sizeof *l);
    double d[4] = {1, -2, 2.5, NAN}, huge[4] = {1, 1e39, 0, 0},
           big[4] = {0, 0, 0x1p63, 0};
    struct rnnd__hdf *file = created("c.h5");
    for (int i = 0; i < 140000; i++)
        l[i] = i - 70000;
    must(rnnd__hdf_write(file, "small", RNND_I64, 3, dim, false, l));
    l[139999] = 1LL << 31;
    must(rnnd__hdf_write(file, "large", RNND_I64, 3, dim, false, l));
    must(rnnd__hdf_write(file, "d", RNND_F64, 1, &four, false, d));
    must(rnnd__hdf_write(file, "huge", RNND_F64, 1, &four, false, huge));
    must(rnnd__hdf_write(file, "big", RNND_F64, 1, &four, false, big));
    must(rnnd__hdf_commit(file));
    file = opened("c.h5");
    int32_t *i = malloc(140000 * sizeof *i);
    float f[4];
    uint8_t u[4];
    must(rnnd__hdf_read(file, "small", 0, 70000, RNND_I32, i));
    for (int k = 0; k < 140000; k++)
        ck_assert_int_eq(i[k], k - 70000);
    must_fail(RNND_EDATA, rnnd__hdf_read(file, "large", 5, 69995, RNND_I32, i));
    ck_assert_str_eq(
        rest_of_detail(),
        "c.h5: /large[69999, 0, 1] = 2147483648: does not fit a 32-bit integer");
    must_fail(RNND_EDATA, rnnd__hdf_read(file, "small", 0, 1, RNND_U8, u));
    ck_assert_str_eq(
        rest_of_detail(),
        "c.h5: /small[0, 0, 0] = -70000: does not fit an unsigned 8-bit integer");
    must(rnnd__hdf_read(file, "d", 0, 2, RNND_I64, l));
    ck_assert_int_eq(l[1], -2);
    must_fail(RNND_EDATA, rnnd__hdf_read(file, "d", 0, 3, RNND_I32, i));
    ck_assert_str_eq(rest_of_detail(), "c.h5: /d[2] = 2.5: not an integer");
    must_fail(RNND_EDATA, rnnd__hdf_read(file, "d", 3, 1, RNND_I64, l));
    ck_assert_str_eq(rest_of_detail(), "c.h5: /d[3] = nan: not an integer");
    must_fail(RNND_EDATA, rnnd__hdf_read(file, "big", 0, 4, RNND_I64, l));
    ck_assert_str_eq(rest_of_detail(),
                     "c.h5: /big[2] = 9.22337204e+18: does not fit a 64-bit integer");
    must(rnnd__hdf_read(file, "d", 0, 4, RNND_F32, f));
    ck_assert(f[2] == 2.5f && isnan(f[3]));
    must_fail(RNND_EDATA, rnnd__hdf_read(file, "huge", 0, 4, RNND_F32, f));
    ck_assert_str_eq(rest_of_detail(),
                     "c.h5: /huge[1] = 1e+39: too large for a 32-bit float");
    rnnd__hdf_close(file);
    free(i);
    free(l);
}
END_TEST

/* ---- what cannot be opened */

static void one_array(const char *name)
{
    struct rnnd__hdf *file = created(name);
    int64_t n = 1000;
    must(rnnd__hdf_write(file, "g/x", RNND_F64, 1, &n, false, NULL));
    must(rnnd__hdf_commit(file));
}

static void refused_as(int status, const char *name, const char *why)
{
    struct rnnd__hdf *file = NULL;
    must_fail(status, rnnd__hdf_open(in_folder(name), &file));
    ck_assert_ptr_null(file);
    ck_assert_str_eq(rest_of_detail(), why);
}

static void refused(const char *name, const char *why)
{
    refused_as(RNND_EFILE, name, why);
}

START_TEST(unreadable_files)
{
    struct stat info;
    char want[100];
    refused("missing.h5", "missing.h5: No such file or directory");
    refused(".", ".: is a folder, not an HDF5 file");
    make_file("text.h5", "Lorem ipsum\n", 12);
    refused_as(RNND_EDATA, "text.h5", "text.h5: not an HDF5 file");
    make_file("empty.h5", "", 0);
    refused_as(RNND_EDATA, "empty.h5", "empty.h5: is empty, not an HDF5 file");
    ck_assert_int_eq(mkfifo(in_folder("pipe"), 0600), 0);
    refused("pipe", "pipe: not a regular file");
    one_array("cut.h5");
    ck_assert_int_eq(stat(in_folder("cut.h5"), &info), 0);
    long long whole = info.st_size - CHECKSUM;
    for (off_t n = info.st_size - 1; n > whole; n -= 3) {
        ck_assert_int_eq(truncate(in_folder("cut.h5"), n), 0);
        refused("cut.h5", "cut.h5: damaged: truncated within its checksum");
    }
    ck_assert_int_eq(truncate(in_folder("cut.h5"), whole), 0);
    rnnd__hdf_close(opened("cut.h5")); /* nothing of HDF5 is lost */
    ck_assert_int_eq(truncate(in_folder("cut.h5"), whole - 1), 0);
    snprintf(want, sizeof want, "cut.h5: truncated: %lld of %lld bytes", whole - 1,
             whole);
    refused("cut.h5", want);
    for (off_t n = whole - 2; n > 0; n -= 97) {
        struct rnnd__hdf *file;
        ck_assert_int_eq(truncate(in_folder("cut.h5"), n), 0);
        must_fail(RNND_EFILE, rnnd__hdf_open(in_folder("cut.h5"), &file));
    }
}
END_TEST

START_TEST(objects_that_are_not_there)
{
    one_array("o.h5");
    struct rnnd__hdf *file = opened("o.h5");
    struct rnnd__hdf_shape shape;
    ck_assert(rnnd__hdf_has(file, "g"));
    ck_assert(rnnd__hdf_has(file, "/g/x"));
    ck_assert(!rnnd__hdf_has(file, "/g/y"));
    ck_assert(!rnnd__hdf_has(file, "h/x"));
    must_fail(RNND_EDATA, rnnd__hdf_shape(file, "h/x", &shape));
    ck_assert_str_eq(rest_of_detail(), "o.h5: /h/x: missing");
    must_fail(RNND_EDATA, rnnd__hdf_shape(file, "/g", &shape));
    ck_assert_str_eq(rest_of_detail(), "o.h5: /g: not an array");
    rnnd__hdf_close(file);
}
END_TEST

static int note(void *context, const char *object)
{
    strcat(strcat(context, object), " ");
    return strstr(object, "stop") ? RNND_FAULT : 0;
}

START_TEST(each_visits_in_name_order)
{
    char seen[200] = "";
    const char *name[] = {"model/b", "z", "model/a.weight", "a", "model/deep/c"};
    struct rnnd__hdf *file = created("e.h5");
    for (int i = 0; i < 5; i++)
        must(rnnd__hdf_write(file, name[i], RNND_F32, 0, NULL, true, &(float){0}));
    must(rnnd__hdf_commit(file));
    file = opened("e.h5");
    must(rnnd__hdf_each(file, "/", note, seen));
    ck_assert_str_eq(seen, "/a /model/a.weight /model/b /model/deep/c /z ");
    seen[0] = 0;
    must(rnnd__hdf_each(file, "/model", note, seen));
    ck_assert_str_eq(seen, "/model/a.weight /model/b /model/deep/c ");
    must_fail(RNND_EFILE, rnnd__hdf_each(file, "/none", note, seen));
    rnnd__hdf_close(file);

    file = created("e.h5");
    must(rnnd__hdf_write(file, "a", RNND_F32, 0, NULL, true, &(float){0}));
    must(rnnd__hdf_write(file, "stop", RNND_F32, 0, NULL, true, &(float){0}));
    must(rnnd__hdf_write(file, "z", RNND_F32, 0, NULL, true, &(float){0}));
    must(rnnd__hdf_commit(file));
    file = opened("e.h5");
    seen[0] = 0;
    ck_assert_int_eq(rnnd__hdf_each(file, "/", note, seen), RNND_FAULT);
    ck_assert_str_eq(seen, "/a /stop ");
    rnnd__hdf_close(file);
}
END_TEST

/* ---- writing whole or not at all */

START_TEST(commit_is_atomic)
{
    one_array("old.h5");
    struct rnnd__hdf *reader = opened("old.h5"), *file = created("old.h5");
    must(rnnd__hdf_write(file, "new", RNND_F64, 0, NULL, true, &(double){1}));
    ck_assert(rnnd__hdf_has(reader, "g/x"));
    ck_assert_int_eq(count_files("old.h5.tmp-"), 1);
    must(rnnd__hdf_commit(file));
    ck_assert_int_eq(count_files("old.h5.tmp-"), 0);
    double x[1000];
    must(rnnd__hdf_read(reader, "g/x", 0, 1000, RNND_F64, x)); /* still the old file */
    rnnd__hdf_close(reader);
    reader = opened("old.h5");
    ck_assert(rnnd__hdf_has(reader, "new") && !rnnd__hdf_has(reader, "g"));
    rnnd__hdf_close(reader);

    file = created("old.h5"); /* dropped */
    must(rnnd__hdf_write(file, "newer", RNND_F64, 0, NULL, true, &(double){1}));
    rnnd__hdf_close(file);
    ck_assert_int_eq(count_files("old.h5"), 1);
    reader = opened("old.h5");
    ck_assert(rnnd__hdf_has(reader, "new"));
    rnnd__hdf_close(reader);

    file = created("old.h5"); /* failed on the way */
    must(rnnd__hdf_write(file, "a", RNND_F64, 0, NULL, true, &(double){1}));
    must_fail(RNND_EFILE,
              rnnd__hdf_write(file, "a", RNND_F64, 0, NULL, true, &(double){1}));
    must_fail(RNND_EFILE, rnnd__hdf_commit(file));
    ck_assert_str_eq(rest_of_detail(), "old.h5: not written: an earlier write failed");
    ck_assert_int_eq(count_files("old.h5"), 1);
}
END_TEST

START_TEST(unwritable_paths)
{
    struct rnnd__hdf *file = NULL;
    must_fail(RNND_EFILE, rnnd__hdf_create(in_folder("no/such/f.h5"), &file));
    ck_assert_str_eq(rest_of_detail(),
                     "no/such/f.h5: cannot be written: No such file or directory");
    must_fail(RNND_EFILE, rnnd__hdf_create(in_folder("."), &file));
    ck_assert_str_eq(rest_of_detail(), ".: cannot be written: is a folder");
    ck_assert_int_eq(mkfifo(in_folder("pipe.h5"), 0666), 0);
    must_fail(RNND_EFILE, rnnd__hdf_create(in_folder("pipe.h5"), &file));
    ck_assert_str_eq(rest_of_detail(),
                     "pipe.h5: cannot be written: is not a regular file");
    ck_assert_ptr_null(file);
}
END_TEST

/* A link stays one, and what it leads to is replaced. */
START_TEST(through_a_link)
{
    struct stat info;
    one_array("real.h5");
    ck_assert_int_eq(symlink("real.h5", in_folder("link.h5")), 0);
    one_array("link.h5");
    ck_assert_int_eq(lstat(in_folder("link.h5"), &info), 0);
    ck_assert(S_ISLNK(info.st_mode));
    ck_assert_int_eq(count_files("real.h5"), 1);
}
END_TEST

/* A file size limit in place of a full disk. */
START_TEST(full_disk)
{
    fflush(NULL);
    one_array("full.h5");
    pid_t child = fork();
    if (child == 0) {
        struct rnnd__hdf *file;
        int64_t n = 1 << 20;
        double *x = calloc((size_t)n, sizeof *x);
        limit_file_size(1 << 20);
        int status = rnnd__hdf_create(in_folder("full.h5"), &file);
        int wrote =
            status < 0 ? 0 : rnnd__hdf_write(file, "x", RNND_F64, 1, &n, true, x);
        bool named =
            strstr(rnnd_status_detail(), "/x: cannot be written: File too large");
        int done = status < 0 ? 0 : rnnd__hdf_commit(file);
        free(x);
        _exit(status == 0 && done == RNND_EFILE && (wrote == 0 || named) ? 0 : 1);
    }
    int status;
    waitpid(child, &status, 0);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(count_files("full.h5"), 1);
    rnnd__hdf_close(opened("full.h5"));
}
END_TEST

/* ---- damage */

/* whole: with the checksum over the whole file, and with strings in HDF5's heap, which
   nothing else protects. */
static void write_checked(bool whole)
{
    struct rnnd__hdf *file = created("d.h5");
    int64_t dim[2] = {30, 10}, n = LABELS, row[2] = {4, 2};
    float f[FLOATS];
    int64_t l[LABELS];
    const char *text[] = {"one", "two", "three"};
    for (int i = 0; i < FLOATS; i++)
        f[i] = (float)i / 7;
    for (int i = 0; i < LABELS; i++)
        l[i] = i * i;
    if (whole) {
        must(rnnd__hdf_set_string(file, "format", "rnn_dist-checkpoint"));
        must(rnnd__hdf_set_string(file, "config", "lr = 0.001\nhidden = 100\n"));
    }
    must(rnnd__hdf_set_int(file, "version", 1));
    must(rnnd__hdf_write(file, "model/rnn.weight", RNND_F32, 2, dim, true, f));
    must(rnnd__hdf_write(file, "model/head.bias", RNND_F32, 1, &dim[1], true, f));
    must(rnnd__hdf_write(file, "state/ids", RNND_I64, 1, &n, true, l));
    must(rnnd__hdf_write(file, "state/step", RNND_I64, 0, NULL, true, &l[3]));
    must(rnnd__hdf_write(file, "state/rows", RNND_I64, 2, row, true, NULL));
    must(rnnd__hdf_write_rows(file, "state/rows", 1, 2, RNND_I64, l));
    must(rnnd__hdf_write_strings(file, "classes", text, 3));
    must(rnnd__hdf_commit(file));
    if (!whole) {
        struct stat info;
        ck_assert_int_eq(stat(in_folder("d.h5"), &info), 0);
        ck_assert_int_eq(truncate(in_folder("d.h5"), info.st_size - CHECKSUM), 0);
    }
}

/* Everything the file holds as one text; negative where the reader noticed damage. */
static int read_all(bool texts, char *out, size_t size)
{
    struct rnnd__hdf *file;
    char *format = NULL, *config = NULL, **class = NULL;
    int64_t version, l[LABELS], step, row[8], classes;
    float f[FLOATS], bias[10];
    RNND_TRY(rnnd__hdf_open(in_folder("d.h5"), &file));
    int status;
    if (texts) {
        RNND_TRY_GOTO(rnnd__hdf_get_string(file, "format", &format));
        RNND_TRY_GOTO(rnnd__hdf_get_string(file, "config", &config));
    }
    RNND_TRY_GOTO(rnnd__hdf_get_int(file, "version", &version));
    RNND_TRY_GOTO(rnnd__hdf_read(file, "model/rnn.weight", 0, 30, RNND_F32, f));
    RNND_TRY_GOTO(rnnd__hdf_read(file, "model/head.bias", 0, 10, RNND_F32, bias));
    RNND_TRY_GOTO(rnnd__hdf_read(file, "state/ids", 0, LABELS, RNND_I64, l));
    RNND_TRY_GOTO(rnnd__hdf_read(file, "state/step", 0, 1, RNND_I64, &step));
    RNND_TRY_GOTO(rnnd__hdf_read(file, "state/rows", 0, 4, RNND_I64, row));
    RNND_TRY_GOTO(rnnd__hdf_read_strings(file, "classes", &class, &classes));
    int n = snprintf(out, size, "%s %s %lld %lld", format ? format : "",
                     config ? config : "", (long long)version, (long long)step);
    for (int64_t i = 0; i < classes; i++)
        n += snprintf(out + n, size - (size_t)n, " %s", class[i]);
    for (int i = 0; i < FLOATS; i++)
        n += snprintf(out + n, size - (size_t)n, " %a", (double)f[i]);
    for (int i = 0; i < 10; i++)
        n += snprintf(out + n, size - (size_t)n, " %a", (double)bias[i]);
    for (int i = 0; i < LABELS; i++)
        n += snprintf(out + n, size - (size_t)n, " %lld", (long long)l[i]);
    for (int i = 0; i < 8; i++)
        n += snprintf(out + n, size - (size_t)n, " %lld", (long long)row[i]);
done:
    free(class);
    free(config);
    free(format);
    rnnd__hdf_close(file);
    return status;
}

/* A wrong bit in any byte is noticed, or changes nothing that is read. */
static void flip_all(bool whole)
{
    static char want[16384], got[16384];
    unsigned char byte, bad;
    struct stat info;
    int64_t noticed = 0, harmless = 0, unseen = 0;
    write_checked(whole);
    must(read_all(whole, want, sizeof want));
    int fd = open(in_folder("d.h5"), O_RDWR);
    ck_assert_int_eq(fstat(fd, &info), 0);
    for (off_t at = 0; at < info.st_size; at += getenv("LONG") ? 1 : 3) {
        ck_assert_int_eq(pread(fd, &byte, 1, at), 1);
        bad = byte ^ (unsigned char)(1 << at % 8);
        ck_assert_int_eq(pwrite(fd, &bad, 1, at), 1);
        if (read_all(whole, got, sizeof got) < 0)
            noticed++;
        else if (strcmp(want, got) == 0)
            harmless++;
        else
            unseen++;
        ck_assert_int_eq(pwrite(fd, &byte, 1, at), 1);
    }
    close(fd);
    printf("%s, %lld bytes: %lld flips noticed, %lld without effect\n",
           whole ? "with checksum" : "without checksum", (long long)info.st_size,
           (long long)noticed, (long long)harmless);
    print_tried(whole ? "flipped bits of files with a checksum"
                      : "flipped bits of files without a checksum",
                noticed + harmless + unseen, unseen);
    ck_assert_int_eq(unseen, 0);
    ck_assert_int_gt(noticed, harmless);
    if (whole)
        ck_assert_int_eq(harmless, 0);
}

/* A file system reserved the space, and the last part was never written: the checksum
   is gone too. */
START_TEST(an_end_of_zeros_is_damage)
{
    struct rnnd__hdf *file = NULL;
    struct stat info;
    static const char behind[] = " HDF5 data, at ";
    for (int part = 0; part < 40; part++) {
        write_checked(true);
        ck_assert_int_eq(stat(in_folder("d.h5"), &info), 0);
        off_t left = info.st_size - CHECKSUM - part * 100;
        ck_assert_int_eq(truncate(in_folder("d.h5"), left), 0);
        ck_assert_int_eq(truncate(in_folder("d.h5"), info.st_size), 0);
        must_fail(RNND_EFILE, rnnd__hdf_open(in_folder("d.h5"), &file));
        ck_assert_ptr_nonnull(strstr(rest_of_detail(), behind));
    }
    write_checked(true);
    ck_assert_int_eq(truncate(in_folder("d.h5"), info.st_size + 4096), 0);
    must_fail(RNND_EFILE, rnnd__hdf_open(in_folder("d.h5"), &file));
    ck_assert_ptr_nonnull(strstr(rest_of_detail(), behind));
    write_checked(false);
    must_fail(RNND_EFILE, rnnd__hdf_open_own(in_folder("d.h5"), &file));
    ck_assert_ptr_nonnull(strstr(rest_of_detail(), "has no checksum"));
    must(rnnd__hdf_open(in_folder("d.h5"), &file));
    rnnd__hdf_close(file);
}
END_TEST

START_TEST(flips_in_a_whole_file)
{
    flip_all(true);
}
END_TEST

START_TEST(flips_without_whole_file_checksum)
{
    flip_all(false);
}
END_TEST

/* The same contents are the same bytes, whenever they are written. */
START_TEST(no_time_in_the_file)
{
    char old[16384], new[16384];
    write_checked(true);
    FILE *file = fopen(in_folder("d.h5"), "rb");
    size_t n = fread(old, 1, sizeof old, file);
    fclose(file);
    sleep(1);
    write_checked(true);
    file = fopen(in_folder("d.h5"), "rb");
    ck_assert_uint_eq(fread(new, 1, sizeof new, file), n);
    fclose(file);
    ck_assert_mem_eq(old, new, n);
}
END_TEST

START_TEST(damage_is_named)
{
    static char text[16384];
    write_checked(true);
    flip_where("d.h5", &(float){50.0f / 7}, sizeof(float));
    must_fail(RNND_EFILE, read_all(true, text, sizeof text));
    ck_assert_str_eq(rest_of_detail(), "d.h5: damaged: checksum mismatch");
    write_checked(false);
    flip_where("d.h5", &(float){50.0f / 7}, sizeof(float));
    must_fail(RNND_EFILE, read_all(false, text, sizeof text));
    ck_assert_str_eq(rest_of_detail(), "d.h5: /model/rnn.weight: cannot be read: "
                                       "data error detected by Fletcher32 checksum");
}
END_TEST

/* ---- lack of memory */

#if defined __GLIBC__ && !defined __SANITIZE_ADDRESS__

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);

/* The allocation that fails, counted down; 0 = none. */
static long countdown;

static bool fails(void)
{
    if (countdown == 0 || --countdown > 0)
        return false;
    errno = ENOMEM;
    return true;
}

void *malloc(size_t size)
{
    return fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    return fails() ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
    return fails() ? NULL : __libc_realloc(old, size);
}

enum { RIGHT, WRONG_VALUES, WRONG_STATUS, STARVED, NOT_REACHED, RESULTS };

/* What a reader of a data set or checkpoint does. */
static int read_some(void)
{
    struct rnnd__hdf *file = NULL;
    float x[FLOATS] = {0};
    char *text = NULL, **names = NULL;
    int64_t count = 0;
    bool has = false, attribute = false, absent = true;
    int status = rnnd__hdf_open(in_folder("d.h5"), &file);
    if (status == 0) {
        attribute = rnnd__hdf_has_attribute(file, "note");
        status = rnnd__hdf_get_string(file, "note", &text);
    }
    if (status == 0) {
        has = rnnd__hdf_has(file, "/model/rnn.weight");
        status = rnnd__hdf_read(file, "/model/rnn.weight", 0, 30, RNND_F32, x);
    }
    if (status == 0) {
        absent = !rnnd__hdf_has(file, "/none");
        status = absent ? 0 : rnnd__hdf_read(file, "/none", 0, 1, RNND_F32, x);
    }
    if (status == 0)
        status = rnnd__hdf_read_strings(file, "/names", &names, &count);
    bool reached = countdown == 0;
    countdown = 0;
    bool right = has && attribute && absent && count == 2 && x[50] == 50.0f / 7;
    rnnd__hdf_close(file);
    free(text);
    free(names);
    return !reached                 ? NOT_REACHED
           : status == 0            ? (right ? RIGHT : WRONG_VALUES)
           : status == RNND_EDEVICE ? STARVED
                                    : WRONG_STATUS;
}

/* Whatever allocation fails, a look-up neither takes for missing or damaged what is
   there, nor goes on with what it did not read. The library itself may crash, or exit
   with -1. */
START_TEST(lack_of_memory_is_no_damage)
{
    enum { MOST = 5000 };
    int64_t dim[2] = {30, 10};
    float x[FLOATS];
    int seen[RESULTS] = {0}, crashes = 0;
    for (int k = 0; k < FLOATS; k++)
        x[k] = (float)k / 7;
    struct rnnd__hdf *file = created("d.h5");
    must(rnnd__hdf_set_string(file, "note", "text"));
    must(rnnd__hdf_write(file, "/model/rnn.weight", RNND_F32, 2, dim, true, x));
    must(rnnd__hdf_write_strings(file, "/names", (const char *[]){"a", "b"}, 2));
    must(rnnd__hdf_commit(file));
    fflush(NULL);
    for (long n = 1; n < MOST && !seen[NOT_REACHED]; n++) {
        int end;
        pid_t child = fork();
        if (child == 0) {
            countdown = n;
            int result = read_some();
            if (result == WRONG_STATUS)
                fprintf(stderr, "allocation %ld: %s\n", n, rnnd_status_detail());
            _exit(result);
        }
        ck_assert_int_eq(waitpid(child, &end, 0), child);
        int result = WIFEXITED(end) ? WEXITSTATUS(end) : UINT8_MAX;
        if (result == UINT8_MAX) {
            crashes++;
            continue;
        }
        ck_assert_int_lt(result, RESULTS);
        seen[result]++;
    }
    printf("lack of memory: %d reported, %d without effect, %d ends of HDF5\n",
           seen[STARVED], seen[RIGHT], crashes);
    print_tried("allocations that fail",
                seen[STARVED] + seen[RIGHT] + crashes + seen[WRONG_VALUES] +
                    seen[WRONG_STATUS],
                seen[WRONG_VALUES]);
    ck_assert_int_eq(seen[WRONG_VALUES] + seen[WRONG_STATUS], 0);
    ck_assert_int_eq(seen[NOT_REACHED], 1);
    ck_assert_int_gt(seen[STARVED], 100);
}
END_TEST

#endif

int main(void)
{
    Suite *s = suite_create("hdf");
    TCase *t = tcase_create("hdf");
    tcase_set_timeout(t, 300);
    tcase_add_checked_fixture(t, make_folder, remove_folder);
    tcase_add_test(t, arrays_come_back);
    tcase_add_test(t, slices);
    tcase_add_test(t, places);
    tcase_add_test(t, texts_come_back);
    tcase_add_test(t, attributes);
    tcase_add_test(t, values_that_do_not_fit);
    tcase_add_test(t, unreadable_files);
    tcase_add_test(t, objects_that_are_not_there);
    tcase_add_test(t, each_visits_in_name_order);
    tcase_add_test(t, commit_is_atomic);
    tcase_add_test(t, unwritable_paths);
    tcase_add_test(t, through_a_link);
    tcase_add_test(t, full_disk);
    tcase_add_test(t, an_end_of_zeros_is_damage);
    tcase_add_test(t, flips_in_a_whole_file);
    tcase_add_test(t, flips_without_whole_file_checksum);
    tcase_add_test(t, no_time_in_the_file);
    tcase_add_test(t, damage_is_named);
#if defined __GLIBC__ && !defined __SANITIZE_ADDRESS__
    tcase_add_test(t, lack_of_memory_is_no_damage);
#endif
    suite_add_tcase(s, t);
    return run_suite(s);
}
