/*
 * comm_watch.c - ends a process that MPI keeps for ever: when it starts, because a rank
 * has stopped, has ended or is another program; or when it ends.
 *
 * The calling thread is inside MPI, so a thread of its own waits beside it. Before MPI
 * has started, ranks can only be found as processes: those of this host whose
 * environment names the same job.
 */
#include "comm/comm_watch.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"

struct rnnd__watch {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool over;
    double timeout;
    const char *what;
};

/* ---- the ranks of this host */

enum { ENVIRONMENT = 1 << 17, LISTED = 8 };

/* What is known about one process. */
struct process {
    int pid, rank;
    char state;
    char program[64];
};

/* Reads up to size-1 bytes and adds a 0; the number read, 0 on failure. */
static size_t read_some(const char *path, char *out, size_t size)
{
    size_t have = 0;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    for (ssize_t n = 1; file >= 0 && n > 0 && have < size - 1; have += (size_t)n) {
        n = read(file, out + have, size - 1 - have);
        n = n < 0 ? 0 : n;
    }
    if (file >= 0)
        close(file);
    out[have] = '\0';
    return have;
}

/* The value of a variable in an environment as /proc shows it; NULL = none. */
static const char *value_in(const char *environment, size_t size, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = environment; at < environment + size; at += strlen(at) + 1)
        if (strncmp(at, name, length) == 0 && at[length] == '=')
            return at + length + 1;
    return NULL;
}

/* Whether the process is of this job; fills it in. Processes of other users cannot be
   read; those that have ended have no environment. */
static bool look_at(int pid, char *room, struct process *out)
{
    char path[64];
    const char *job = getenv("PMIX_NAMESPACE");
    snprintf(path, sizeof path, "/proc/%d/environ", pid);
    size_t size = read_some(path, room, ENVIRONMENT);
    const char *same = value_in(room, size, "PMIX_NAMESPACE"),
               *rank = value_in(room, size, "PMIX_RANK");
    if (!job || !same || !rank || strcmp(job, same) != 0)
        return false;
    *out = (struct process){.pid = pid, .rank = atoi(rank)};
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    (void)read_some(path, room, 4096);
    const char *name = strchr(room, '('), *end = strrchr(room, ')');
    if (!name || !end || !end[1])
        return false;
    snprintf(out->program, sizeof out->program, "%.*s", (int)(end - name - 1),
             name + 1);
    out->state = end[2];
    return true;
}

/* An empty text, or what there is to say about the other ranks of this host. */
struct findings {
    char text[800];
    int count;
};

static void add(struct findings *f, const char *format, int rank, const char *program,
                int pid)
{
    size_t used = strlen(f->text);
    if (f->count++ >= LISTED || used + 100 > sizeof f->text)
        return;
    used +=
        (size_t)snprintf(f->text + used, sizeof f->text - used, "%s", used ? ", " : "");
    snprintf(f->text + used, sizeof f->text - used, format, rank, program, pid);
}

static int number(const char *name)
{
    const char *value = getenv(name);
    return value ? atoi(value) : 0;
}

/* Adds each process of the job that is stopped or is another program than this one, and
   marks in seen [ranks] which ranks have a process. */
static void look_around(struct findings *f, bool *seen, int ranks)
{
    char *room = malloc(ENVIRONMENT);
    struct process self, other;
    DIR *proc = opendir("/proc");
    bool known = room && look_at(getpid(), room, &self);
    for (struct dirent *e; proc && known && (e = readdir(proc));) {
        int pid = atoi(e->d_name);
        if (pid <= 0 || !look_at(pid, room, &other))
            continue;
        if (other.rank >= 0 && other.rank < ranks)
            seen[other.rank] = true;
        if (other.state == 'T' || other.state == 't')
            add(f, "rank %d has stopped (%s, process %d)", other.rank, other.program,
                pid);
        else if (other.rank != self.rank && strcmp(other.program, self.program) != 0)
            add(f, "rank %d runs %s (process %d)", other.rank, other.program, pid);
    }
    if (proc)
        closedir(proc);
    if (!known) /* nothing can be said about any */
        memset(seen, true, (size_t)ranks * sizeof *seen);
    free(room);
}

/* Where all ranks are on this host, those without a process have ended. */
static void find_missing(struct findings *f)
{
    int ranks = number("OMPI_COMM_WORLD_SIZE");
    bool alone = ranks > 0 && number("OMPI_COMM_WORLD_LOCAL_SIZE") == ranks;
    bool *seen = calloc((size_t)(alone ? ranks : 1), sizeof *seen);
    if (!seen)
        return;
    look_around(f, seen, alone ? ranks : 0);
    for (int r = 0; alone && r < ranks; r++)
        if (!seen[r])
            add(f, "rank %d has ended or was not started", r, "", 0);
    free(seen);
    if (f->count > LISTED) {
        size_t used = strlen(f->text);
        snprintf(f->text + used, sizeof f->text - used, ", and %d more",
                 f->count - LISTED);
    }
}

/* ---- the watch */

static void give_up(const struct rnnd__watch *watch)
{
    char host[65] = "?";
    struct findings found = {"", 0};
    find_missing(&found);
    (void)gethostname(host, sizeof host - 1);
    const char *rank = getenv("PMIX_RANK");
    if (!rank)
        rank = getenv("OMPI_COMM_WORLD_RANK");
    rnnd__log_error("rank %s on %s: %s in %g s (--comm-timeout): %s", rank ? rank : "?",
                    host, watch->what, watch->timeout,
                    found.count ? found.text
                                : "another rank has not started, has ended or hangs; "
                                  "on this host all wait");
    fflush(NULL);
    _exit(-RNND_ECOMM);
}

/* As in comm.c, a step counts for a second at most: while this process was stopped, no
   other was late. */
static void *stand_by(void *context)
{
    struct rnnd__watch *watch = context;
    double waited = 0, last = rnnd__clock();
    pthread_mutex_lock(&watch->lock);
    while (!watch->over && waited <= watch->timeout) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += 100000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&watch->changed, &watch->lock, &until);
        double now = rnnd__clock();
        waited += now - last < 1 ? now - last : 1;
        last = now;
    }
    bool over = watch->over;
    pthread_mutex_unlock(&watch->lock);
    if (!over)
        give_up(watch);
    return NULL;
}

int rnnd__watch_begin(double timeout, const char *what, struct rnnd__watch **out)
{
    struct rnnd__watch *watch;
    pthread_condattr_t monotonic;
    sigset_t all, old;
    RNND_TRY(RNND_NEW(&watch, 1, "a deadline"));
    watch->timeout = timeout;
    watch->what = what;
    pthread_mutex_init(&watch->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&watch->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    sigfillset(&all); /* signals are for the other threads */
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int failed = pthread_create(&watch->thread, NULL, stand_by, watch);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (failed) {
        free(watch);
        return rnnd__fail(RNND_EDEVICE, "cannot start a thread: %s", strerror(failed));
    }
    *out = watch;
    return 0;
}

void rnnd__watch_end(struct rnnd__watch *watch)
{
    pthread_mutex_lock(&watch->lock);
    watch->over = true;
    pthread_cond_signal(&watch->changed);
    pthread_mutex_unlock(&watch->lock);
    pthread_join(watch->thread, NULL);
    pthread_cond_destroy(&watch->changed);
    pthread_mutex_destroy(&watch->lock);
    free(watch);
}
