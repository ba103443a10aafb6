/*
 * test_kaldi.c - the reader of Kaldi's archives: matrices of every kind against what is
 * known of them, lists, labels, and files that are damaged or claim too much.
 */
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "formats/text.h"
#include "reading.h"

static int read_path(const char *path)
{
    const struct rnnd__format *format;
    char *inputs[] = {(char *)path};
    forget();
    must(rnnd__format_find("kaldi", &format));
    return rnnd__format_read(format, &opt, inputs, 1, &got);
}

static int read_bytes(const char *bytes, size_t size)
{
    make_file("f.ark", bytes, size);
    char *path = strdup(in_folder("f.ark"));
    int status = read_path(path);
    free(path);
    return status;
}

/* The last message, with files of the folder by their names only. */
static const char *said(void)
{
    static char text[1024];
    const char *from = rnnd_status_detail();
    size_t n = strlen(test_folder), to = 0;
    while (*from && to < sizeof text - 1)
        if (strncmp(from, test_folder, n) == 0 && from[n] == '/')
            from += n + 1;
        else
            text[to++] = *from++;
    text[to] = 0;
    return text;
}

/* Bytes with NULs in them, from a string literal. */
#define READ(literal) read_bytes(literal, sizeof(literal) - 1)
#define REFUSED(literal, why)                 \
    do {                                      \
        must_fail(RNND_EDATA, READ(literal)); \
        ck_assert_str_eq(said(), (why));      \
    } while (0)

static const char *golden(const char *name, char path[512])
{
    const char *srcdir = getenv("srcdir");
    snprintf(path, 512, "%s/tests/golden/kaldi/%s", srcdir ? srcdir : ".", name);
    return path;
}

static float value(int64_t i)
{
    ck_assert_int_lt(i, got.features.count);
    return ((const float *)got.features.at)[i];
}

/* ---- what is read */

START_TEST(text_matrices)
{
    must(READ("u1  [\n  1 2 3 \n  4.5 -5 6e1 ]\nu2 [ ]\nu3\t[ 7 8 9\n\n]"));
    ck_assert_int_eq(got.inputs, 3);
    ck_assert_mem_eq(got.offsets.at, ((int64_t[]){0, 2, 2, 3}), 32);
    ck_assert_int_eq(got.features.count, 9);
    ck_assert(value(0) == 1 && value(3) == 4.5F && value(4) == -5 && value(5) == 60);
    ck_assert(value(6) == 7 && value(8) == 9);
    ck_assert_str_eq(rnnd__list_text(&got.names, 2), "u3");
    ck_assert_int_eq(got.task, RNND_NO_TASK);
}
END_TEST

START_TEST(binary_matrices)
{
    must(READ("a \0B"
              "FM \4\2\0\0\0\4\1\0\0\0\0\0\200\77\0\0\0\300"
              "b \0B"
              "DM \4\1\0\0\0\4\1\0\0\0\0\0\0\0\0\0\4\100"
              "c \0B"
              "CM2 \0\0\200\277\0\377\177\107\2\0\0\0\1\0\0\0\0\0\3\2"
              "d \0B"
              "CM3 \0\0\0\0\0\0\177\103\3\0\0\0\1\0\0\0\0\7\377"));
    ck_assert_mem_eq(got.offsets.at, ((int64_t[]){0, 2, 3, 5, 8}), 40);
    ck_assert(value(0) == 1 && value(1) == -2 && value(2) == 2.5F);
    /* smallest -1, range 65535: elements are 0 and 0x203 */
    ck_assert(value(3) == -1 && fabsf(value(4) - 514) < 1e-3F);
    ck_assert(value(5) == 0 && value(6) == 7 && value(7) == 255);
}
END_TEST

/* Quantiles 0, 64, 192 and 255 of 65535, so that elements are their bytes. */
START_TEST(matrices_by_quantiles)
{
    must(READ("c \0B"
              "CM \0\0\0\0\0\377\177\107\3\0\0\0\2\0\0\0"
              "\0\0\100\0\300\0\377\0"
              "\0\0\2\0\4\0\103\0"
              "\1\200\376"
              "\40\300\377"));
    ck_assert_mem_eq(got.offsets.at, ((int64_t[]){0, 3}), 16);
    ck_assert_int_eq(got.inputs, 2);
    static const float want[] = {1, 1, 128, 4, 254, 67};
    for (int i = 0; i < 6; i++)
        ck_assert(fabsf(value(i) - want[i]) < 1e-3F);
}
END_TEST

/* The archive that make_kaldi.py wrote in binary, against its own text of it. */
START_TEST(golden_archives)
{
    char path[512], text[512];
    set("labels-from", golden("text", text));
    must(read_path(golden("same.ark", path)));
    struct rnnd__contents want = got;
    must(rnnd__contents_init(&got));
    must(read_path(golden("feats.ark", path)));
    ck_assert_int_eq(got.inputs, 5);
    ck_assert_int_eq(got.offsets.count, 8);
    ck_assert_mem_eq(got.offsets.at, want.offsets.at, 64);
    ck_assert_int_eq(got.features.count, 66 * 5);
    ck_assert_int_eq(want.features.count, 66 * 5);
    for (int64_t i = 0; i < 66 * 5; i++) {
        float w = ((const float *)want.features.at)[i];
        ck_assert(fabsf(value(i) - w) <= 1e-5F * fmaxf(1, fabsf(w)));
    }
    ck_assert_int_eq(got.task, RNND_CTC);
    ck_assert_int_eq(got.classes, 3);
    ck_assert_str_eq(rnnd__list_text(&got.class, 0), "a");
    ck_assert_mem_eq(got.string_offsets.at, ((int64_t[]){0, 2, 3, 7, 8, 8, 8, 9}), 64);
    ck_assert_mem_eq(got.labels.at, ((int32_t[]){1, 0, 2, 0, 1, 2, 2, 0, 2}), 36);
    rnnd__contents_clear(&want);
}
END_TEST

/* ---- lists */

static void make_list(const char *format, const char *file)
{
    char line[1024];
    snprintf(line, sizeof line, format, file, file, file);
    make_file("l.scp", line, strlen(line));
}

static void list_refused(const char *format, const char *file, const char *why)
{
    char *path = strdup(in_folder("l.scp"));
    make_list(format, file);
    must_fail(RNND_EDATA, read_path(path));
    ck_assert_str_eq(said(), why);
    free(path);
}

START_TEST(lists)
{
    static const char ark[] = "x [ 1 2\n 3 4\n 5 6 ]\ny [ 7 8 ]\n";
    make_file("f.ark", ark, sizeof ark - 1);
    make_file("one.mat", " [ 9 9 ]\n", 9);
    char *file = strdup(in_folder("f.ark")), *path = strdup(in_folder("l.scp"));
    make_list("v %s:22\n\nu %s:2\r\nw %s:2[1:2]\n", file);
    must(read_path(path));
    ck_assert_mem_eq(got.offsets.at, ((int64_t[]){0, 1, 4, 6}), 32);
    ck_assert(value(0) == 7 && value(2) == 1 && value(8) == 3 && value(11) == 6);
    ck_assert_str_eq(rnnd__list_text(&got.names, 0), "v");
    make_list("z %s\n", in_folder("one.mat"));
    must(read_path(path));
    ck_assert(value(0) == 9 && got.inputs == 2);
    list_refused("u %s:2[1:3]\n", file,
                 "l.scp:1: f.ark: utterance \"u\": rows 1 to 3 of a matrix of 3 rows");
    list_refused("u %s:2[2:1]\n", file,
                 "l.scp:1: in brackets, rows are expected, as in [0:99]");
    list_refused("u %s:2[0:1,0:0]\n", file,
                 "l.scp:1: in brackets, rows are expected, as in [0:99]");
    list_refused("u %s:3000\n", file,
                 "l.scp:1: f.ark: has 30 bytes, so none begins at byte 3000");
    list_refused("u cat %s |\n", file,
                 "l.scp:1: \"cat f.ark |\" is a command, which is not run; write its "
                 "output to an archive");
    list_refused("\nu\n%.0s", file,
                 "l.scp:2: an utterance and its place are expected, as in utt1 "
                 "feats.ark:5");
    list_refused("u %s:3\n", file,
                 "l.scp:1: f.ark: byte 3: no matrix begins here: [ or a binary one is "
                 "expected");
    list_refused("u %s:2\nu %s:22\n", file,
                 "l.scp:2: f.ark: byte 22: a second matrix of utterance \"u\"");
    make_list("u %s.not\n", file);
    must_fail(RNND_EFILE, read_path(path));
    free(file);
    free(path);
}
END_TEST

/* ---- labels */

static void make_labels(const char *text)
{
    make_file("text", text, strlen(text));
    set("labels-from", in_folder("text"));
}

START_TEST(labels)
{
    static const char ark[] = "x [ 1 ]\ny [ 2 ]\n";
    make_labels("y 10 9\nz 1\nx\n");
    must(READ("x [ 1 ]\ny [ 2 ]\n"));
    /* numbers are ordered as such; also the class of a line that is not used */
    ck_assert_int_eq(got.classes, 3);
    ck_assert_mem_eq(got.labels.at, ((int32_t[]){2, 1}), 8);
    ck_assert_mem_eq(got.string_offsets.at, ((int64_t[]){0, 0, 2}), 24);
    make_labels("y 10 9\n");
    must_fail(RNND_EDATA, read_bytes(ark, sizeof ark - 1));
    ck_assert_str_eq(said(), "text: has no line for utterance \"x\", the "
                             "first of 1 without one (2 in all)");
    make_labels("y 1\n\ny 2\n");
    must_fail(RNND_EDATA, read_bytes(ark, sizeof ark - 1));
    ck_assert_str_eq(said(), "text:3: a second line of utterance \"y\"");
    make_labels("y\nx\n");
    must_fail(RNND_EDATA, read_bytes(ark, sizeof ark - 1));
    ck_assert_str_eq(said(), "text: contains no labels");
}
END_TEST

static void table_refused(const char *table, const char *why)
{
    make_file("units.txt", table, strlen(table));
    must_fail(RNND_EDATA, READ("x [ 1 ]\ny [ 2 ]\n"));
    ck_assert_str_eq(said(), why);
}

/* Classes in the order of a table, whose numbers may begin with 1 and have gaps. */
START_TEST(tables_of_names)
{
    static const char units[] = "b 7\n  a\t1 \n\nc 2";
    make_labels("y b a b\nx\n");
    make_file("units.txt", units, sizeof units - 1);
    set("classes-from", in_folder("units.txt"));
    must(READ("x [ 1 ]\ny [ 2 ]\n"));
    ck_assert_int_eq(got.classes, 3);
    ck_assert_str_eq(rnnd__list_text(&got.class, 2), "b");
    ck_assert_mem_eq(got.labels.at, ((int32_t[]){2, 0, 2}), 12);
    table_refused("a 1\nc 2\n", "text:1: \"b\" is not a class of the data set given "
                                "by --classes-from");
    table_refused("a 1\nb 1\n", "units.txt:2: number 1 is also that of line 1");
    table_refused("a 1\na 2\n", "units.txt:2: \"a\" is also the name on line 1");
    table_refused("a 1\nb\n", "units.txt:2: neither a data file nor a table of names: "
                              "a name and its number are expected");
    table_refused("a -1\n", "units.txt:1: neither a data file nor a table of names: a "
                            "name and its number are expected");
    table_refused("a 1 2\n", "units.txt:1: neither a data file nor a table of names: a "
                             "name and its number are expected");
}
END_TEST

/* ---- what is refused */

START_TEST(false_claims)
{
    REFUSED("u \0B"
            "FM \4\377\377\377\177\4\377\377\377\177\0\0\0\0",
            "f.ark: byte 17: a matrix of 2147483647 rows and 2147483647 columns, for "
            "which the file is too short: 4 bytes are left");
    REFUSED("u \0B"
            "FM \4\377\377\377\177\4\0\0\0\0",
            "f.ark: byte 17: a matrix of 2147483647 rows without columns");
    REFUSED("u \0B"
            "DM \4\377\377\377\377\4\1\0\0\0",
            "f.ark: byte 17: a matrix of -1 rows and 1 columns");
    REFUSED("u \0B"
            "CM \0\0\0\0\0\0\0\0\1\0\0\0\377\377\377\177\0",
            "f.ark: byte 23: a matrix of 1 rows and 2147483647 columns, for which the "
            "file is too short: 1 bytes are left");
    REFUSED("u \0B"
            "FM \10",
            "f.ark: byte 7: the file ends within the size of a matrix");
    REFUSED("u \0B"
            "FM \10\0\0\0\0",
            "f.ark: byte 7: the size of a matrix is expected: a byte 4, not 8");
    REFUSED("u \0B"
            "FV \4\1\0\0\0",
            "f.ark: byte 4: \"FV\" is no matrix of features: FM, DM, CM, CM2 or CM3 is "
            "expected");
    REFUSED("u \0FM ", "f.ark: byte 2: no matrix begins here");
}
END_TEST

START_TEST(bad_archives)
{
    REFUSED("", "f.ark: contains no sequences");
    REFUSED("u [ ]\n", "f.ark: all matrices are empty");
    REFUSED("u [ 1 2\n 3 ]\n",
            "f.ark: byte 12: row 1 of the matrix has 1 values, the ones before 2");
    REFUSED("u [ 1 x ]\n", "f.ark: byte 6: \"x\" is not a number");
    REFUSED("u [ 1 1e99 ]\n", "f.ark: byte 6: \"1e99\" is not a finite 32-bit number");
    REFUSED("u [ 1 [ ]\n", "f.ark: byte 7: a matrix within a matrix");
    REFUSED("u [ 1 2", "f.ark: byte 7: the file ends within a matrix");
    REFUSED("u [ 1 ]\nv [ 1 2 ]\n", "f.ark: byte 10: the matrix of utterance \"v\" has "
                                    "2 columns, the first one 1");
    REFUSED("u [ 1 ]\nu [ 1 ]\n", "f.ark: byte 10: a second matrix of utterance \"u\"");
    REFUSED("u [ 1 ]\nv\n", "f.ark: byte 8: no utterance begins here: its name, a "
                            "blank and a matrix are expected");
    REFUSED("\37\213\10\0", "f.ark: byte 0: no utterance begins here: its name, a "
                            "blank and a matrix are expected");
    REFUSED("u \0B"
            "FM \4\1\0\0\0\4\1\0\0\0\0\0\200\177",
            "f.ark: utterance \"u\": row 0, column 0 is not a finite 32-bit float");
    must_fail(RNND_EDATA, READ("u [ nan ]\n"));
    ck_assert_ptr_nonnull(strstr(said(), "utterance \"u\": row 0, column 0"));
    set("missing", "zero");
    must(READ("u [ 1\n nan ]\n"));
    ck_assert(value(1) == 0);
}
END_TEST

/* A file that was cut is refused, unless it ends with a whole matrix. */
START_TEST(every_prefix)
{
    static const size_t ends[] = {102, 244, 512, 632, 707, 738, 781};
    char path[512], *bytes;
    size_t size, whole = 0;
    must(rnnd__file_read(golden("feats.ark", path), &bytes, &size));
    for (size_t n = 1; n <= size; n++) {
        int status = read_bytes(bytes, n);
        bool is_end = false;
        for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
            is_end |= n == ends[i];
        ck_assert_int_eq(status, is_end ? 0 : RNND_EDATA);
        whole += is_end;
    }
    ck_assert_int_eq((int)whole, 7);
    free(bytes);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("kaldi");
    TCase *t = tcase_create("kaldi");
    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_test(t, text_matrices);
    tcase_add_test(t, binary_matrices);
    tcase_add_test(t, matrices_by_quantiles);
    tcase_add_test(t, golden_archives);
    tcase_add_test(t, lists);
    tcase_add_test(t, labels);
    tcase_add_test(t, tables_of_names);
    tcase_add_test(t, false_claims);
    tcase_add_test(t, bad_archives);
    tcase_add_test(t, every_prefix);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
