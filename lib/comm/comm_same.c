/*
 * comm_same.c - whether all ranks were started alike: compares lines of text over
 * ranks.
 *
 * What is compared is the caller's business. Digests are exchanged first, in records of
 * a fixed size; the text of rank 0 follows only where they differ.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/status.h"
#include "comm/comm.h"

/* What a rank says of its text. */
struct digest {
    uint64_t hash;
    /* bytes with the final 0 */
    int64_t size;
};

/* A line of a text: what is compared, and the note behind the tab, if any. */
struct line {
    const char *text, *note;
    int length, note_length;
};

/* The line at `text`, without its end; empty at the end of the text. */
static struct line line_at(const char *text)
{
    int whole = (int)strcspn(text, "\n"), length = (int)strcspn(text, "\t\n");
    bool noted = length < whole;
    return (struct line){text, text + length + noted, length,
                         noted ? whole - length - 1 : 0};
}

static const char *next_line(const char *text)
{
    text += strcspn(text, "\n");
    return text + (*text == '\n');
}

static struct digest digest_of(const char *text)
{
    struct rnnd__hash hash;
    struct digest d = {0, (int64_t)strlen(text) + 1};
    rnnd__hash_start(&hash);
    for (; *text; text = next_line(text)) {
        struct line line = line_at(text);
        rnnd__hash_add(&hash, line.text, (size_t)line.length);
        rnnd__hash_add(&hash, "\n", 1);
    }
    d.hash = rnnd__hash_end(&hash);
    return d;
}

/* "--seed 2", "--data of fingerprint 1f (a.h5)". */
static void describe(const char *text, char *out, size_t size)
{
    struct line line = line_at(text);
    int at = snprintf(out, size, "%.*s", line.length, line.text);
    if (line.note_length && at < (int)size)
        snprintf(out + at, size - (size_t)at, " (%.*s)", line.note_length, line.note);
    if (!*text)
        snprintf(out, size, "nothing");
}

static int name_difference(const struct rnnd_comm *comm, enum rnnd_status code,
                           const char *own, const char *first)
{
    char mine[600], theirs[600];
    for (; *own || *first; own = next_line(own), first = next_line(first)) {
        struct line a = line_at(own), b = line_at(first);
        if (a.length != b.length || memcmp(a.text, b.text, (size_t)a.length) != 0)
            break;
    }
    describe(own, mine, sizeof mine);
    describe(first, theirs, sizeof theirs);
    return rnnd__fail(code, "rank %d on %s has %s, but rank 0 on %s has %s", comm->rank,
                      rnnd__comm_host(comm, comm->rank), mine, rnnd__comm_host(comm, 0),
                      theirs);
}

/* Sends rank 0's text to all, and fails on those that have another. */
static int find_difference(struct rnnd_comm *comm, enum rnnd_status code,
                           const char *text, const struct digest *all)
{
    const struct digest *own = &all[comm->rank];
    char *first = NULL;
    int status = RNND_NEW(&first, all[0].size, "what ranks compare");
    RNND_TRY_GOTO(rnnd_comm_agree(comm, status));
    if (comm->rank == 0)
        memcpy(first, text, (size_t)all[0].size);
    RNND_TRY_GOTO(rnnd_comm_broadcast(comm, first, (size_t)all[0].size));
    first[all[0].size - 1] = '\0';
    if (own->hash != all[0].hash)
        status = name_difference(comm, code, text, first);
    status = rnnd_comm_agree(comm, status);
done:
    free(first);
    return status;
}

int rnnd__comm_same(struct rnnd_comm *comm, enum rnnd_status code, const char *text)
{
    struct digest own = digest_of(text), *all = NULL;
    int equal = 0;
    if (comm->size == 1)
        return 0;
    int status = RNND_NEW(&all, comm->size, "what ranks compare");
    RNND_TRY_GOTO(rnnd_comm_agree(comm, status));
    RNND_TRY_GOTO(rnnd__comm_allgather(comm, &own, sizeof own, all));
    for (int r = 0; r < comm->size; r++)
        equal += all[r].hash == all[0].hash;
    if (equal < comm->size)
        status = find_difference(comm, code, text, all);
done:
    free(all);
    return status;
}

int rnnd__comm_same_file(struct rnnd_comm *comm, const char *what, uint64_t fingerprint,
                         const char *path)
{
    char line[512];
    snprintf(line, sizeof line, "%s with fingerprint %016" PRIx64 "\t%s", what,
             fingerprint, path);
    return rnnd__comm_same(comm, RNND_EDATA, line);
}

int rnnd__comm_same_data(struct rnnd_comm *comm, const char *what,
                         const struct rnnd_dataset_info *info)
{
    char line[512];
    RNND_TRY(rnnd__comm_same_file(comm, what, info->fingerprint, info->path));
    snprintf(line, sizeof line, "%s with names of fingerprint %016" PRIx64 "\t%s", what,
             info->names_fingerprint, info->path);
    return rnnd__comm_same(comm, RNND_EDATA, line);
}
