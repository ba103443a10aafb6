/*
 * testing.h - what the Check programs of files and data share: statuses as assertions,
 * and a folder that lasts for one test.
 */
#ifndef RNND_TESTING_H
#define RNND_TESTING_H

#include <dirent.h>
#include <ftw.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../suite.h"
#include "base/status.h"

#define must(expr)                                                       \
    do {                                                                 \
        int must_status = (expr);                                        \
        ck_assert_msg(must_status == 0, "%s: %d %s", #expr, must_status, \
                      rnnd_status_detail());                             \
    } while (0)

#define must_fail(want, expr)                                                 \
    do {                                                                      \
        int must_status = (expr);                                             \
        ck_assert_msg(must_status == (want), "%s: %d %s", #expr, must_status, \
                      rnnd_status_detail());                                  \
    } while (0)

static char test_folder[256];

static inline void make_folder(void)
{
    const char *base = getenv("TMPDIR");
    snprintf(test_folder, sizeof test_folder, "%s/rnnd-test-XXXXXX",
             base ? base : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(test_folder));
}

static inline int remove_one(const char *path, const struct stat *info, int kind,
                             struct FTW *walk)
{
    (void)info, (void)kind, (void)walk;
    return remove(path);
}

static inline void remove_folder(void)
{
    nftw(test_folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* A path in the folder; eight of them last at a time. */
static inline const char *in_folder(const char *name)
{
    static char path[8][1024];
    static int next;
    next = (next + 1) % 8;
    snprintf(path[next], sizeof path[next], "%s/%s", test_folder, name);
    return path[next];
}

/* Writes a file of the folder; its path, as long as that of in_folder() lasts. */
static inline const char *make_file(const char *name, const void *bytes, size_t n)
{
    const char *path = in_folder(name);
    FILE *file = fopen(path, "wb");
    ck_assert(file && fwrite(bytes, 1, n, file) == n && fclose(file) == 0);
    return path;
}

/* The text of a file in the folder, until the next call. */
static inline const char *content(const char *name)
{
    static char text[1 << 16];
    FILE *file = fopen(in_folder(name), "r");
    ck_assert_ptr_nonnull(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

/* The status text after the folder's name. */
static inline const char *rest_of_detail(void)
{
    const char *detail = rnnd_status_detail();
    size_t n = strlen(test_folder);
    return strncmp(detail, test_folder, n) == 0 && detail[n] == '/' ? detail + n + 1
                                                                    : detail;
}

/* Files of the folder whose names begin so. */
static inline int count_files(const char *prefix)
{
    int n = 0;
    DIR *folder = opendir(test_folder);
    for (struct dirent *e; (e = readdir(folder));)
        n += strncmp(e->d_name, prefix, strlen(prefix)) == 0;
    closedir(folder);
    return n;
}

static inline void limit_file_size(rlim_t bytes)
{
    struct rlimit limit = {bytes, bytes};
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &limit);
}

/* Changes the last of the bytes that a file holds in that order. */
static inline void flip_where(const char *name, const void *bytes, size_t n)
{
    static char all[1 << 20];
    FILE *file = fopen(in_folder(name), "r+b");
    size_t size = fread(all, 1, sizeof all, file);
    char *at = memmem(all, size, bytes, n);
    ck_assert_ptr_nonnull(at);
    at[n - 1] ^= 1;
    rewind(file);
    ck_assert(fwrite(all, 1, size, file) == size && fclose(file) == 0);
}

#endif
