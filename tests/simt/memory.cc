/*
 * memory.cc - the memory of the emulated devices, and who may touch it.
 *
 * Each device has a range of addresses of its own. Nobody can read or write there but
 * work of that device while it runs: any other access faults and is reported, and so is
 * one past the end of an allocation or to what was freed. New memory is all ones:
 * floats are NaN.
 */
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "core.h"

namespace simt
{

namespace
{

struct Allocation {
    char *p;
    size_t bytes;
    int device;
    /* of its pages; a page that nobody may touch follows them */
    char *first;
    size_t room;
};

const size_t reserve = (size_t)256 << 30; /* addresses of a device, each used once */
const size_t page = 4096, alignment = 256;

struct Arena {
    char *base, *top;
    size_t used;
};

std::vector<Arena> arenas;
std::map<const char *, Allocation> living, freed, pinned; /* by p */
int working = -1;
struct sigaction previous;

Arena &arena_of(int device)
{
    while ((int)arenas.size() <= device) {
        void *p = mmap(nullptr, reserve, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED)
            error("no addresses for the memory of device %d", device);
        arenas.push_back({static_cast<char *>(p), static_cast<char *>(p), 0});
    }
    return arenas[device];
}

/* The last allocation that begins at or below p. */
const Allocation *below_or_at(const std::map<const char *, Allocation> &map,
                              const void *p)
{
    auto next = map.upper_bound(static_cast<const char *>(p));
    return next == map.begin() ? nullptr : &std::prev(next)->second;
}

int device_of(const void *p)
{
    for (size_t i = 0; i < arenas.size(); i++)
        if (p >= arenas[i].base && p < arenas[i].base + reserve)
            return (int)i;
    return -1;
}

/* Says what is at p, or was. */
void describe(const void *p, char *text, size_t size)
{
    const char *q = static_cast<const char *>(p);
    const Allocation *a = below_or_at(living, p), *f = below_or_at(freed, p);
    int device = device_of(p);
    if (device < 0 && is_pinned(p, 1))
        snprintf(text, size, "pinned memory of the host");
    else if (device < 0)
        snprintf(text, size, "no device memory");
    else if (f && q < f->first + f->room && (!a || a->p < f->p))
        snprintf(text, size, "freed memory of device %d", device);
    else if (a && a->device == device && q < a->p + a->bytes)
        snprintf(text, size, "byte %td of an allocation of %zu on device %d", q - a->p,
                 a->bytes, device);
    else if (a && a->device == device)
        snprintf(text, size,
                 "%td bytes past the end of an allocation of %zu on device %d",
                 q - (a->p + a->bytes), a->bytes, device);
    else
        snprintf(text, size, "no allocation, memory of device %d", device);
}

bool is_write(const void *context)
{
#ifdef __x86_64__
    const int error_code = 19; /* REG_ERR */
    return static_cast<const ucontext_t *>(context)->uc_mcontext.gregs[error_code] & 2;
#else
    (void)context;
    return false;
#endif
}

#if defined(__SANITIZE_ADDRESS__) || defined(SIMT_TSAN)
const bool sanitized = true; /* a sanitizer knows better where it was */
#else
const bool sanitized = false;
#endif

void on_fault(int signal, siginfo_t *info, void *context)
{
    char what[160];
    if (fiber_guard(info->si_addr))
        error("the stack of a CUDA thread is full (RNND_SIMT_STACK)");
    bool ours = device_of(info->si_addr) >= 0 || (self() && !sanitized);
    if (!ours) { /* as if it had never come here */
        sigaction(signal, &previous, nullptr);
        return;
    }
    describe(info->si_addr, what, sizeof what);
    error("%s %s %p: %s",
          self()         ? "a kernel"
          : working >= 0 ? "queued work"
                         : "the host",
          is_write(context) ? "writes" : "reads", info->si_addr, what);
}

void watch_faults()
{
    static char stack[64 << 10];
    static bool watching;
    stack_t alternate = {};
    struct sigaction action = {};
    if (watching)
        return;
    watching = true;
    alternate.ss_sp = stack;
    alternate.ss_size = sizeof stack;
    sigaltstack(&alternate, nullptr);
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(SIGSEGV, &action, &previous);
}

/* A file of ones. Mapped as often as it takes, it fills memory that costs nothing until
   it is written. */
const size_t ones_size = 4 << 20;

int ones()
{
    static int file = -1;
    if (file >= 0)
        return file;
    std::vector<char> page_of_ones(page, (char)0xff);
    file = memfd_create("simt", MFD_CLOEXEC);
    for (size_t at = 0; at < ones_size; at += page)
        if (pwrite(file, page_of_ones.data(), page, (off_t)at) != (ssize_t)page)
            error("no memory for new device memory");
    return file;
}

void fill_with_ones(const Allocation &a)
{
    for (size_t at = 0; at < a.room; at += ones_size)
        if (mmap(a.first + at, std::min(ones_size, a.room - at), PROT_NONE,
                 MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, ones(), 0) == MAP_FAILED)
            error("no memory for %zu bytes of device %d (vm.max_map_count)", a.bytes,
                  a.device);
}

void set_access(const Allocation &a, bool open)
{
    if (mprotect(a.first, a.room, open ? PROT_READ | PROT_WRITE : PROT_NONE) != 0)
        error("mprotect: too many allocations (vm.max_map_count)");
}

/* The end is as close to the next page as alignment allows. */
Allocation carve(int device, size_t bytes)
{
    Arena &arena = arena_of(device);
    size_t rounded = (bytes + alignment - 1) / alignment * alignment;
    size_t room = (rounded + page - 1) / page * page;
    if (arena.top + room + page > arena.base + reserve)
        error("device %d was asked for %zu GiB in all its allocations", device,
              reserve >> 30);
    Allocation a = {arena.top + room - rounded, bytes, device, arena.top, room};
    arena.top += room + page;
    arena.used += bytes;
    return a;
}

/* The bytes between an allocation and its pages' ends are as they were filled. */
void check_end(const Allocation &a, const char *from, const char *to, const char *where)
{
    for (const char *p = from; p < to; p++)
        if ((unsigned char)*p != 0xff)
            error("device memory was written %td bytes %s an allocation of %zu",
                  p < a.p ? a.p - p : p - (a.p + a.bytes) + 1, where, a.bytes);
}

void remove(Allocation a)
{
    set_access(a, true);
    unpoison(a.first, a.room);
    check_end(a, a.first, a.p, "before");
    check_end(a, a.p + a.bytes, a.first + a.room, "past");
    if (mmap(a.first, a.room, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1,
             0) == MAP_FAILED)
        error("munmap: %zu bytes of device %d", a.bytes, a.device);
    poison(a.first, a.room);
    arenas[a.device].used -= a.bytes;
    living.erase(a.p);
    freed[a.p] = a;
}

/* Reports what the program forgot to free, so that a test can require none. */
struct AtEnd {
    ~AtEnd()
    {
        for (const auto &a : living)
            fprintf(stderr, "simt: %zu bytes of device %d were not freed\n",
                    a.second.bytes, a.second.device);
        for (const auto &a : pinned)
            fprintf(stderr, "simt: %zu bytes of pinned memory were not freed\n",
                    a.second.bytes);
    }
} at_end;

} // namespace

void open_memory(int device)
{
    if (device == working)
        return;
    for (const auto &a : living)
        if (a.second.device == device || a.second.device == working)
            set_access(a.second, a.second.device == device);
    working = device;
}

int working_device()
{
    return working;
}

bool is_device(const void *p)
{
    const Allocation *a = below_or_at(living, p);
    return a && p <= a->p + a->bytes;
}

bool is_pinned(const void *p, size_t bytes)
{
    const Allocation *a = below_or_at(pinned, p);
    return a && static_cast<const char *>(p) + bytes <= a->p + a->bytes;
}

void check_device(const void *p, size_t bytes, int device, const char *what)
{
    char found[160];
    const Allocation *a = below_or_at(living, p);
    const char *first = static_cast<const char *>(p);
    if (bytes == 0 || (a && a->device == device && first + bytes <= a->p + a->bytes))
        return;
    bool begins = a && a->device == device && first < a->p + a->bytes;
    describe(begins ? a->p + a->bytes : p, found, sizeof found);
    error("%s: %zu bytes at %p on device %d: %s", what, bytes, p, device, found);
}

void check_argument(const void *p, int index)
{
    char found[160];
    if (!p || is_device(p) || is_pinned(p, 1))
        return;
    describe(p, found, sizeof found);
    error("argument %d of a kernel is %p: %s", index + 1, p, found);
}

} // namespace simt

using namespace simt;

/* ---- entry points */

extern "C" {

cudaError_t cudaMalloc(void **p, size_t bytes)
{
    enter("cudaMalloc");
    check_no_capture("cudaMalloc");
    int device = current_device();
    watch_faults();
    *p = nullptr;
    if (bytes == 0)
        return result(cudaSuccess);
    if (bytes > settings().memory - arena_of(device).used)
        return result(cudaErrorMemoryAllocation);
    Allocation a = carve(device, bytes);
    fill_with_ones(a);
    poison(a.first, (size_t)(a.p - a.first));
    poison(a.p + a.bytes, (size_t)(a.first + a.room + page - (a.p + a.bytes)));
    living[a.p] = a;
    *p = a.p;
    return result(cudaSuccess);
}

/* As CUDA's, it waits for all work of the device. */
cudaError_t cudaFree(void *p)
{
    enter("cudaFree");
    check_no_capture("cudaFree");
    if (!p)
        return result(cudaSuccess);
    auto found = living.find(static_cast<char *>(p));
    if (found == living.end()) {
        char what[160];
        describe(p, what, sizeof what);
        error("cudaFree of %p: %s", p, what);
    }
    finish_all(found->second.device);
    remove(found->second);
    return result(cudaSuccess);
}

cudaError_t cudaMemGetInfo(size_t *available, size_t *total)
{
    enter("cudaMemGetInfo");
    *total = settings().memory;
    *available = *total - arena_of(current_device()).used;
    return result(cudaSuccess);
}

cudaError_t cudaHostAlloc(void **p, size_t bytes, unsigned flags)
{
    enter("cudaHostAlloc");
    check_no_capture("cudaHostAlloc");
    char *q = static_cast<char *>(malloc(bytes ? bytes : 1));
    (void)flags;
    if (!q)
        return result(cudaErrorMemoryAllocation);
    memset(q, 0xff, bytes);
    pinned[q] = {q, bytes, -1, q, bytes};
    *p = q;
    return result(cudaSuccess);
}

cudaError_t cudaMallocHost(void **p, size_t bytes)
{
    return cudaHostAlloc(p, bytes, cudaHostAllocDefault);
}

cudaError_t cudaFreeHost(void *p)
{
    enter("cudaFreeHost");
    check_no_capture("cudaFreeHost");
    if (!p)
        return result(cudaSuccess);
    if (!pinned.count(static_cast<char *>(p)))
        error("cudaFreeHost of %p, which is no pinned memory", p);
    for (int device = 0; device < settings().devices; device++)
        finish_all(device);
    pinned.erase(static_cast<char *>(p));
    free(p);
    return result(cudaSuccess);
}

/* Both share one stream with all other threads and wait for it: not in the dialect. */
cudaError_t cudaMemcpy(void *, const void *, size_t, cudaMemcpyKind)
{
    error("cudaMemcpy uses the default stream: cudaMemcpyAsync was expected");
}

cudaError_t cudaMemset(void *, int, size_t)
{
    error("cudaMemset uses the default stream: cudaMemsetAsync was expected");
}

} // extern "C"
