/*
 * test_tensorboard.c - event files, byte for byte as TensorFlow's documents describe
 * them.
 */
#include <dirent.h>
#include <math.h>

#include "record/tensorboard.h"
#include "testing.h"

static unsigned char file[1 << 16];
static size_t size;

/* The one event file of the folder. */
static void read_file(void)
{
    char path[600];
    DIR *dir = opendir(in_folder("tensorboard"));
    int files = 0;
    ck_assert_ptr_nonnull(dir);
    for (struct dirent *e; (e = readdir(dir));) {
        if (strncmp(e->d_name, "events.out.tfevents.", 20))
            continue;
        snprintf(path, sizeof path, "%s/%s", in_folder("tensorboard"), e->d_name);
        files++;
    }
    closedir(dir);
    ck_assert_int_eq(files, 1);
    FILE *f = fopen(path, "rb");
    ck_assert_ptr_nonnull(f);
    size = fread(file, 1, sizeof file, f);
    fclose(f);
}

static uint64_t number(const unsigned char *p, int bytes)
{
    uint64_t value = 0;
    for (int i = bytes; i-- > 0;)
        value = value << 8 | p[i];
    return value;
}

/* The n'th record's message. Their lengths lead from one to the next, to the file's
   end. */
static const unsigned char *record(int n, size_t *length)
{
    size_t at = 0;
    for (int i = 0;; i++) {
        ck_assert_uint_lt(at, size);
        *length = number(file + at, 8);
        ck_assert_uint_le(at + *length + 16, size);
        if (i == n)
            return file + at + 12;
        at += *length + 16;
    }
}

static int records(void)
{
    int n = 0;
    for (size_t at = 0; at < size; at += number(file + at, 8) + 16)
        n++;
    return n;
}

static void set_up(void)
{
    make_folder();
}

/* The first twelve bytes are those of every file that TensorFlow writes; the last four
   of them are a checksum. */
START_TEST(begins_as_tensorflow_does)
{
    static const unsigned char head[] = {0x18, 0, 0,    0,    0,    0,
                                         0,    0, 0xa3, 0x7f, 0x4b, 0x22};
    struct rnnd__tensorboard *board;
    must(rnnd__tensorboard_open(test_folder, 0, &board));
    rnnd__tensorboard_close(board);
    read_file();
    ck_assert_mem_eq(file, head, sizeof head);
    size_t length;
    const unsigned char *m = record(0, &length);
    ck_assert_uint_eq(m[0], 1 << 3 | 1); /* wall_time */
    ck_assert_mem_eq(m + 9,
                     "\x1a\x0d"
                     "brain.Event:2",
                     15);
}
END_TEST

START_TEST(points_are_summaries)
{
    /* step 300; summary { value { tag "a" simple_value 1.5 } value { "loss" NaN } } */
    static const unsigned char want[] = {0x10, 0xac, 0x02, 0x2a, 0x17, 0x0a, 0x08,
                                         0x0a, 0x01, 'a',  0x15, 0,    0,    0xc0,
                                         0x3f, 0x0a, 0x0b, 0x0a, 0x04, 'l',  'o',
                                         's',  's',  0x15, 0x00, 0x00, 0xc0, 0x7f};
    struct rnnd__tensorboard *board;
    const struct rnnd__scalar point[] = {{"a", 1.5}, {"loss", NAN}};
    must(rnnd__tensorboard_open(test_folder, 0, &board));
    must(rnnd__tensorboard_add(board, 300, point, 2));
    rnnd__tensorboard_close(board);
    read_file();
    ck_assert_int_eq(records(), 3);
    size_t length;
    const unsigned char *m = record(2, &length);
    ck_assert_uint_eq(length, 9 + sizeof want);
    ck_assert_mem_eq(m + 9, want, sizeof want);
}
END_TEST

/* A viewer forgets what an earlier start wrote from this step on. */
START_TEST(a_start_says_where_it_goes_on)
{
    static const unsigned char want[] = {0x10, 0x08, 0x3a, 0x02, 0x08, 0x01};
    struct rnnd__tensorboard *board;
    must(rnnd__tensorboard_open(test_folder, 7, &board));
    rnnd__tensorboard_close(board);
    read_file();
    size_t length;
    const unsigned char *m = record(1, &length);
    ck_assert_uint_eq(length, 9 + sizeof want);
    ck_assert_mem_eq(m + 9, want, sizeof want);
}
END_TEST

START_TEST(the_longest_tags_fit)
{
    char tag[RNND_TAG_BYTES + 1];
    struct rnnd__scalar point[RNND_SCALARS];
    struct rnnd__tensorboard *board;
    memset(tag, 'x', RNND_TAG_BYTES);
    tag[RNND_TAG_BYTES] = '\0';
    for (int i = 0; i < RNND_SCALARS; i++)
        point[i] = (struct rnnd__scalar){tag, i};
    must(rnnd__tensorboard_open(test_folder, 0, &board));
    must(rnnd__tensorboard_add(board, INT64_MAX, point, RNND_SCALARS));
    rnnd__tensorboard_close(board);
    read_file();
    ck_assert_int_eq(records(), 3);
}
END_TEST

START_TEST(a_folder_that_cannot_be_made)
{
    struct rnnd__tensorboard *board;
    char path[600];
    snprintf(path, sizeof path, "%s/none", test_folder);
    must_fail(RNND_EFILE, rnnd__tensorboard_open(path, 0, &board));
    ck_assert_ptr_nonnull(strstr(rnnd_status_detail(), "none/tensorboard"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tensorboard");
    TCase *t = tcase_create("event files");
    tcase_add_checked_fixture(t, set_up, remove_folder);
    tcase_add_test(t, begins_as_tensorflow_does);
    tcase_add_test(t, points_are_summaries);
    tcase_add_test(t, a_start_says_where_it_goes_on);
    tcase_add_test(t, the_longest_tags_fit);
    tcase_add_test(t, a_folder_that_cannot_be_made);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
