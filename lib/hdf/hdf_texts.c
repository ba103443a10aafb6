/*
 * hdf_texts.c - strings, from the child that read them to its parent: records in a file
 * in memory, each with a name, the number of strings and their bytes.
 *
 * The parent believes nothing that a record says.
 */
#include "hdf/hdf_room.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Followed by the name and the strings, each with a NUL. */
struct record {
    uint64_t count, bytes;
};

/* Before the name of strings that cannot be read; the record has the reason. */
#define FAILED "!"
enum { WHY = 600 };

struct rnnd__hdf_texts {
    size_t size;
    char at[];
};

/* ---- the child */

static bool put(struct rnnd__hdf_walk *walk, const void *data, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t n = write(walk->texts, (const char *)data + done, size - done);
        if (n <= 0)
            return false;
        done += (size_t)n;
    }
    walk->bytes += size;
    return true;
}

void rnnd__hdf_hand_over(struct rnnd__hdf_walk *walk, const char *name,
                         char *const *text, int64_t count)
{
    struct record r = {(uint64_t)count, strlen(name) + 1};
    for (int64_t i = 0; i < count; i++)
        r.bytes += strlen(text[i]) + 1;
    bool whole = put(walk, &r, sizeof r) && put(walk, name, strlen(name) + 1);
    for (int64_t i = 0; i < count && whole; i++)
        whole = put(walk, text[i], strlen(text[i]) + 1);
    if (!whole)
        walk->lacks_memory = true;
}

void rnnd__hdf_hand_over_failure(struct rnnd__hdf_walk *walk, const char *name)
{
    char why[WHY], *text = why;
    OWNED char *failed = NULL;
    snprintf(why, sizeof why, "%s", rnnd_status_detail());
    if (asprintf(&failed, FAILED "%s", name) < 0)
        walk->lacks_memory = true;
    else
        rnnd__hdf_hand_over(walk, failed, &text, 1);
}

/* ---- the parent */

/* Record at `at`, which then is that of the next; NULL past the last. */
static const char *next(const struct rnnd__hdf_texts *texts, size_t *at,
                        struct record *r)
{
    if (texts->size - *at < sizeof *r)
        return NULL;
    memcpy(r, texts->at + *at, sizeof *r);
    const char *body = texts->at + *at + sizeof *r;
    if (r->bytes == 0 || r->bytes > texts->size - *at - sizeof *r ||
        body[r->bytes - 1] != 0)
        return NULL;
    *at += sizeof *r + r->bytes;
    return body;
}

int rnnd__hdf_take_over(const char *path, const struct rnnd__hdf_walk *walk,
                        struct rnnd__hdf_texts **out)
{
    struct rnnd__hdf_texts *texts;
    struct record r;
    off_t end = lseek(walk->texts, 0, SEEK_END);
    size_t size = end > 0 ? (size_t)end : 0, at = 0;
    RNND_TRY(rnnd__new(1, sizeof *texts + size, "strings", &texts));
    texts->size = size;
    if (pread(walk->texts, texts->at, size, 0) != (ssize_t)size)
        texts->size = 0;
    while (next(texts, &at, &r))
        continue;
    if (at != size) {
        free(texts);
        return rnnd__fail(RNND_EDATA, "%s: damaged: its strings cannot be read", path);
    }
    *out = texts;
    return 0;
}

/* The strings of a record; false where there are not so many. */
static bool take_strings(const char *body, const struct record *r, int64_t count,
                         const char **text)
{
    const char *c = body + strlen(body) + 1, *end = body + r->bytes;
    int64_t i = 0;
    for (; i < count && c < end; c += strlen(c) + 1)
        text[i++] = c;
    return i == count && c == end;
}

static bool find(const struct rnnd__hdf_texts *texts, const char *name, int64_t count,
                 const char **text)
{
    struct record r;
    size_t at = 0;
    const char *body;
    while ((body = next(texts, &at, &r)))
        if (strcmp(body, name) == 0 && r.count == (uint64_t)count)
            return take_strings(body, &r, count, text);
    return false;
}

int rnnd__hdf_recall(const struct rnnd__hdf *file, const char *name, int64_t count,
                     const char **text)
{
    const char *why;
    OWNED char *failed = NULL;
    if (count == 0 || find(file->texts, name, count, text))
        return 0;
    if (asprintf(&failed, FAILED "%s", name) < 0)
        return rnnd__fail_memory(strlen(name), "a name");
    if (find(file->texts, failed, 1, &why))
        return rnnd__fail(RNND_EDATA, "%s", why);
    return rnnd__fail(RNND_EDATA, "%s: %s: strings in a group behind a link; copy them",
                      file->path, name);
}
