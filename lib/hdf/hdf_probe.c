/*
 * hdf_probe.c - reads a file of unknown origin in a child process first.
 *
 * HDF5 crashes, loops or takes any amount of memory on some damaged files. So a file
 * that has no checksum of ours is walked once by a child, with limits on time and
 * memory; only what the child survived is opened in this process, which takes over the
 * strings of variable length that the child has read. Other failures that HDF5 reports
 * are none of the child's business: this process gets the same.
 *
 * The child is a fork, not a program of its own, so that the library has it too. It
 * holds the lock of the library while it forks, so that no other thread is within HDF5,
 * runs no handler of this process, and leaves with _exit(). Programs with MPI probe
 * their files before they start it: some networks do not like forks.
 */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/signals.h"
#include "hdf/hdf_room.h"

/* Limits for a file of any size, in bytes and seconds of processor time, and what its
   bytes add: far above what intact files need. */
enum { MEMORY = 128 << 20, MEMORY_FACTOR = 16 };
enum { TIME = 2, BYTES_PER_SECOND = 8 << 20, TIME_MOST = 600 };
int rnnd__hdf_patience = 30;

void (*rnnd__hdf_walker)(struct rnnd__hdf *, struct rnnd__hdf_walk *) = rnnd__hdf_walk;

struct limits {
    rlim_t bytes, seconds;
    /* on the clock */
    time_t deadline;
};

struct probe {
    struct limits most;
    struct rnnd__hdf *file;
    /* shared with the child */
    struct rnnd__hdf_walk *walk;
};

static struct limits limits_for(int64_t size)
{
    int64_t seconds = TIME + size / BYTES_PER_SECOND, bytes;
    if (seconds > TIME_MOST)
        seconds = TIME_MOST;
    if (__builtin_mul_overflow(size, (int64_t)MEMORY_FACTOR, &bytes) ||
        bytes > INT64_MAX - MEMORY)
        bytes = INT64_MAX - MEMORY;
    return (struct limits){(rlim_t)(bytes + MEMORY), (rlim_t)seconds,
                           rnnd__hdf_patience * (time_t)seconds};
}

/* ---- the child */

/* What this process has mapped; the child starts with the same. */
static rlim_t mapped(void)
{
    unsigned long long pages = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    if (f && fscanf(f, "%llu", &pages) != 1)
        pages = 0;
    if (f)
        fclose(f);
    return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

static void limit(int which, rlim_t soft, rlim_t hard)
{
    struct rlimit now, want = {soft, hard};
    if (getrlimit(which, &now) != 0)
        return;
    if (now.rlim_max != RLIM_INFINITY && want.rlim_max > now.rlim_max)
        want.rlim_max = now.rlim_max;
    if (want.rlim_cur > want.rlim_max)
        want.rlim_cur = want.rlim_max;
    (void)setrlimit(which, &want);
}

/* No handler, no message of the C library, no core file; ends with its parent. */
static void live_alone(const struct limits *most, pid_t parent)
{
    static const int faults[] = {SIGSEGV, SIGBUS,  SIGFPE, SIGILL,
                                 SIGABRT, SIGXCPU, SIGSYS};
    sigset_t all;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(EXIT_FAILURE);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        signal(faults[i], SIG_DFL);
    sigfillset(&all);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        sigdelset(&all, faults[i]);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    for (int fd = 0; fd <= 2 && null >= 0; fd++)
        dup2(null, fd);
    limit(RLIMIT_CORE, 0, 0);
    limit(RLIMIT_CPU, most->seconds, most->seconds + 1);
    limit(RLIMIT_AS, mapped() + most->bytes, RLIM_INFINITY);
    limit(RLIMIT_FSIZE, most->bytes, most->bytes); /* of strings handed over */
#ifdef M_PERTURB
    mallopt(M_PERTURB, 0xa5); /* what is read before it is written, or freed, shows */
#endif
}

/* Never returns. */
static void be_child(struct probe *p, pid_t parent)
{
    live_alone(&p->most, parent);
    rnnd__hdf_walker(p->file, p->walk);
    _exit(EXIT_SUCCESS);
}

/* ---- this process */

/* How the child ended. */
enum end { WALKED, KILLED, TOO_LONG, STOPPED };

/* Waits for the child, which holds the other end of a pipe while it lives. */
static enum end wait_for(pid_t pid, int alive, time_t seconds, int *how)
{
    enum { SLICE = 50 }; /* ms, until signals are looked at again */
    struct pollfd end = {.fd = alive, .events = POLLIN};
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    time_t deadline = now.tv_sec + seconds;
    enum end ended = WALKED;
    while (poll(&end, 1, SLICE) <= 0 && ended == WALKED) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        ended = rnnd__signals_received() ? STOPPED
                : now.tv_sec >= deadline ? TOO_LONG
                                         : WALKED;
    }
    if (ended != WALKED)
        kill(pid, SIGKILL);
    *how = 0;
    while (waitpid(pid, how, 0) < 0 && errno == EINTR)
        continue;
    return ended == WALKED && WIFSIGNALED(*how) ? KILLED : ended;
}

/* The child's end in words. */
static int judge(const struct probe *p, enum end end, int how)
{
    const struct rnnd__hdf_walk *walk = p->walk;
    const char *path = p->file->path;
    int by = end == KILLED ? WTERMSIG(how) : 0;
    if (end == STOPPED)
        return rnnd__signals_check(path);
    if (end == TOO_LONG)
        return rnnd__fail(RNND_EFILE, "%s: HDF5 did not finish %s within %lld s", path,
                          walk->doing, (long long)p->most.deadline);
    if (by == SIGKILL)
        return rnnd__fail(RNND_EDEVICE,
                          "%s: the process that reads it first was killed while %s, "
                          "perhaps for lack of memory",
                          path, walk->doing);
    if (by == SIGXCPU)
        return rnnd__fail(
            RNND_EDATA,
            "%s: damaged: HDF5 computed for %llu s and did not finish %s; "
            "write the file anew",
            path, (unsigned long long)p->most.seconds, walk->doing);
    if (walk->lacks_memory)
        return rnnd__fail(RNND_EDATA,
                          "%s: damaged, or its chunks are too large: HDF5 takes more "
                          "than %llu MiB of memory while %s; write the file anew",
                          path, (unsigned long long)p->most.bytes >> 20, walk->doing);
    if (!walk->done)
        return rnnd__fail(RNND_EDATA,
                          "%s: damaged: HDF5 crashes while %s (%s); write the file "
                          "anew",
                          path, walk->doing, by ? strsignal(by) : "it exits");
    return *walk->fault ? rnnd__fail(RNND_EDATA, "%s", walk->fault) : 0;
}

static int start_child(struct probe *p, int alive[2], pid_t *pid)
{
    pid_t parent = getpid();
    {
        GUARD;
        *pid = fork();
    }
    if (*pid == 0)
        be_child(p, parent);
    close(alive[1]);
    if (*pid < 0)
        return rnnd__fail(RNND_EDEVICE,
                          "%s: no process can be started to read it first: %s",
                          p->file->path, strerror(errno));
    return 0;
}

static int try_in_child(struct probe *p)
{
    int alive[2], how;
    pid_t pid;
    if (pipe2(alive, O_CLOEXEC) != 0)
        return rnnd__fail(RNND_EDEVICE, "%s: cannot be read first: %s", p->file->path,
                          strerror(errno));
    int status = start_child(p, alive, &pid);
    if (status == 0) {
        enum end end = wait_for(pid, alive[0], p->most.deadline, &how);
        status = judge(p, end, how);
    }
    close(alive[0]);
    return status;
}

/* Reads a file of this size in a child process. */
static int try_file(const char *path, int64_t size, struct rnnd__hdf_texts **texts)
{
    struct probe p = {.most = limits_for(size)};
    RNND_TRY(rnnd__hdf_handle(path, &p.file));
    p.file->size = size;
    p.walk = mmap(NULL, sizeof *p.walk, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int status = 0, fd = memfd_create("rnn_dist", MFD_CLOEXEC);
    if (p.walk == MAP_FAILED || fd < 0) {
        status = rnnd__fail_memory(sizeof *p.walk, "reading a file first");
    } else {
        p.walk->texts = fd;
        status = try_in_child(&p);
        p.walk->texts = fd; /* the child may have changed it */
        if (status == 0)
            status = rnnd__hdf_take_over(path, p.walk, texts);
    }
    if (p.walk != MAP_FAILED)
        munmap(p.walk, sizeof *p.walk);
    if (fd >= 0)
        close(fd);
    rnnd__hdf_close(p.file);
    return status;
}

/* ---- verdicts, kept while a file is the same */

struct verdict {
    dev_t device;
    ino_t file;
    off_t size;
    struct timespec written, changed;
    struct rnnd__failure failure;
    struct rnnd__hdf_texts *texts;
    struct verdict *next;
};

static pthread_mutex_t verdicts_lock = PTHREAD_MUTEX_INITIALIZER;
static struct verdict *verdicts;

static bool same_time(struct timespec a, struct timespec b)
{
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

static bool is_of(const struct verdict *v, const struct stat *info)
{
    return v->device == info->st_dev && v->file == info->st_ino &&
           v->size == info->st_size && same_time(v->written, info->st_mtim) &&
           same_time(v->changed, info->st_ctim);
}

/* Whether there is one; *status is then that of the failure, or 0. */
static bool recall(const struct stat *info, int *status,
                   const struct rnnd__hdf_texts **texts)
{
    pthread_mutex_lock(&verdicts_lock);
    const struct verdict *v = verdicts;
    while (v && !is_of(v, info))
        v = v->next;
    if (v) {
        *status = rnnd__failure_restore(&v->failure);
        *texts = v->texts;
    }
    pthread_mutex_unlock(&verdicts_lock);
    return v != NULL;
}

/* Keeps the failure that came last, or texts. */
static int remember(const struct stat *info, int status, struct rnnd__hdf_texts *texts)
{
    struct rnnd__failure failure;
    struct verdict *v;
    rnnd__failure_save(&failure, status);
    int made = RNND_NEW(&v, 1, "a verdict");
    if (made < 0) {
        free(texts);
        return made;
    }
    v->device = info->st_dev;
    v->file = info->st_ino;
    v->size = info->st_size;
    v->written = info->st_mtim;
    v->changed = info->st_ctim;
    v->failure = failure;
    v->texts = texts;
    pthread_mutex_lock(&verdicts_lock);
    v->next = verdicts;
    verdicts = v;
    pthread_mutex_unlock(&verdicts_lock);
    return status;
}

int rnnd__hdf_probe_file(int fd, const char *path, const struct rnnd__hdf_texts **texts)
{
    struct rnnd__hdf_texts *found = NULL;
    struct stat info;
    int status;
    if (fstat(fd, &info) != 0)
        return rnnd__fail(RNND_EFILE, "%s: %s", path, strerror(errno));
    if (recall(&info, &status, texts))
        return status;
    status = try_file(path, info.st_size, &found);
    if (status < 0 && status != RNND_EDATA)
        return status;
    status = remember(&info, status, found);
    *texts = found;
    return status;
}

/* Whether a file is to be probed: one of HDF5 that does not end with our checksum. */
static bool is_candidate(const char *path, int *fd, struct stat *info)
{
    *fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    return *fd >= 0 && fstat(*fd, info) == 0 && S_ISREG(info->st_mode) &&
           rnnd__hdf_lacks_checksum(*fd, info->st_size);
}

int rnnd__hdf_probe(const char *path)
{
    const struct rnnd__hdf_texts *texts;
    struct stat info;
    int fd;
    int status =
        is_candidate(path, &fd, &info) ? rnnd__hdf_probe_file(fd, path, &texts) : 0;
    if (fd >= 0)
        close(fd);
    return status;
}
