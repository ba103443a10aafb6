/*
 * driver.c - fuzz TARGET SECONDS SEED FILE...: changes the files at random and gives
 * them to the target, in a process of its own. An input that makes it crash, hang or
 * take too much memory is kept as found-TARGET, and the exit status is 1.
 *
 * fuzz TARGET 0 0 FILE...: gives the files as they are.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "fuzz.h"

/* Largest input; seconds for one; growth of memory over all, kB. */
enum { MOST = 1 << 20, PATIENCE = 60, MEMORY = 512 << 10 };

/* The worker's present input, which outlives it. */
struct shared {
    uint64_t inputs;
    size_t size;
    uint8_t data[MOST];
};

struct seeds {
    int count;
    size_t size[256];
    uint8_t *data[256];
};

static uint64_t state;

static size_t below(size_t n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return n ? (size_t)((state >> 11) % n) : 0;
}

/* ---- changes */

static const uint64_t odd_numbers[] = {0,          1,          0x7f,       0x80,
                                       0xff,       0x7fff,     0xffff,     INT32_MAX,
                                       UINT32_MAX, 1ULL << 31, 1ULL << 32, 1ULL << 40,
                                       1ULL << 62, INT64_MAX,  UINT64_MAX};
static const char *const odd_texts[] = {"\n",
                                        "\r\n",
                                        ",",
                                        ";",
                                        "\t",
                                        "\"",
                                        "\\",
                                        "{",
                                        "}",
                                        "[",
                                        "]",
                                        ":",
                                        "=",
                                        "-",
                                        "--",
                                        "nan",
                                        "inf",
                                        "-1",
                                        "1e999",
                                        "0x",
                                        "@data",
                                        "true",
                                        "null",
                                        "\xef\xbb\xbf",
                                        "\xff",
                                        "\xf0\x9f\x98\x80",
                                        "99999999999999999999",
                                        "\\u0000",
                                        "%s%n",
                                        "<unk>"};
#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Puts n bytes in place of `gone` at `at`. */
static void replace(struct shared *s, size_t at, size_t gone, const void *bytes,
                    size_t n)
{
    if (gone > s->size - at)
        gone = s->size - at;
    if (s->size - gone + n > MOST)
        return;
    memmove(s->data + at + n, s->data + at + gone, s->size - at - gone);
    memmove(s->data + at, bytes, n);
    s->size += n - gone;
}

static void change(struct shared *s, const struct seeds *seeds)
{
    uint8_t part[4096];
    size_t at = below(below(2) ? s->size : s->size / 8 + 1), n = 1 + below(8);
    uint64_t number = odd_numbers[below(COUNT(odd_numbers))];
    const char *text = odd_texts[below(COUNT(odd_texts))];
    int other = (int)below((size_t)seeds->count);
    if (at >= s->size)
        at = 0;
    switch (below(8)) {
    case 0:
        if (s->size)
            s->data[at] ^= (uint8_t)(1 << below(8));
        break;
    case 1:
        part[0] = (uint8_t)below(256);
        replace(s, at, 1, part, 1);
        break;
    case 2:
        replace(s, at, n, &number, n);
        break;
    case 3:
        replace(s, at, below(2) ? strlen(text) : 0, text, strlen(text));
        break;
    case 4: /* removes */
        replace(s, at, below(2) ? n : below(s->size), part, 0);
        break;
    case 5: /* repeats */
        n = 1 + below(below(2) ? 64 : sizeof part);
        if (n > s->size - at)
            n = s->size - at;
        memcpy(part, s->data + at, n);
        replace(s, below(s->size + 1), 0, part, n);
        break;
    case 6: /* takes from another */
        n = seeds->size[other] < sizeof part ? seeds->size[other] : sizeof part;
        n = below(n + 1);
        memcpy(part, seeds->data[other] + below(seeds->size[other] - n + 1), n);
        replace(s, at, below(2) ? n : 0, part, n);
        break;
    default:
        memset(part, below(2) ? 0 : (int)below(256), sizeof part);
        replace(s, at, n, part, n);
    }
}

static void make_input(struct shared *s, const struct seeds *seeds)
{
    int which = (int)below((size_t)seeds->count);
    s->size = seeds->size[which];
    memcpy(s->data, seeds->data[which], s->size);
    for (size_t n = 1 + below(below(3) ? 3 : 16); n; n--)
        change(s, seeds);
}

/* ---- the worker */

static long resident(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

static void work(const struct fuzz_target *target, struct shared *s,
                 const struct seeds *seeds, time_t seconds)
{
    time_t end = time(NULL) + seconds;
    long before = resident();
    int given = 0;
    rnnd__log_mute(true);
    while (seconds ? time(NULL) < end : given < seeds->count) {
        if (seconds) {
            make_input(s, seeds);
        } else {
            s->size = seeds->size[given];
            memcpy(s->data, seeds->data[given], s->size);
        }
        given++;
        alarm(PATIENCE);
        fuzz_one(target, s->data, s->size);
        alarm(0);
        if (resident() - before > MEMORY) {
            fprintf(stderr, "fuzz: %ld MB of memory\n", resident() >> 10);
            abort();
        }
        s->inputs++;
    }
    fuzz_end();
    exit(0);
}

static void keep(const char *target, const struct shared *s)
{
    char name[100];
    snprintf(name, sizeof name, "found-%s", target);
    FILE *f = fopen(name, "w");
    if (!f || fwrite(s->data, 1, s->size, f) != s->size || fclose(f) != 0)
        perror(name);
    else
        fprintf(stderr, "fuzz: the input is in %s\n", name);
}

static void load(struct seeds *seeds, int count, char **path)
{
    for (int i = 0; i < count && i < (int)COUNT(seeds->data); i++) {
        FILE *f = fopen(path[i], "r");
        uint8_t *data = malloc(MOST);
        if (!f || !data) {
            perror(path[i]);
            exit(2);
        }
        seeds->size[seeds->count] = fread(data, 1, MOST / 2, f);
        seeds->data[seeds->count++] = data;
        fclose(f);
    }
}

int main(int argc, char **argv)
{
    static struct seeds seeds;
    int how;
    if (argc < 5) {
        fprintf(stderr, "usage: fuzz TARGET SECONDS SEED FILE...\n");
        return 2;
    }
    const struct fuzz_target *target = fuzz_find(argv[1]);
    state = strtoull(argv[3], NULL, 10) * 0x9e3779b97f4a7c15ULL + 1;
    load(&seeds, argc - 4, argv + 4);
    struct shared *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t worker = s == MAP_FAILED ? -1 : fork();
    if (worker == 0)
        work(target, s, &seeds, atoi(argv[2]));
    if (worker < 0 || waitpid(worker, &how, 0) != worker) {
        perror("fuzz");
        return 2;
    }
    printf("%-12s %llu inputs", target->name, (unsigned long long)s->inputs);
    if (how == 0) {
        printf(", all borne\n");
        return 0;
    }
    if (WIFSIGNALED(how))
        printf("; the next ended by signal %d (%s)\n", WTERMSIG(how),
               WTERMSIG(how) == SIGALRM ? "hang" : strsignal(WTERMSIG(how)));
    else
        printf("; the next ended with status %d\n", WEXITSTATUS(how));
    fflush(stdout);
    keep(target->name, s);
    return 1;
}
