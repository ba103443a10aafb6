/*
 * report.cc - settings from the environment, random numbers, errors.
 *
 * Takes RNND_SIMT_* once; a value that is none of those offered is an error. Knows
 * nothing of what it reports on.
 */
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <unistd.h>

#include "core.h"

namespace simt
{

namespace
{

long number(const char *name, long preset, long low, long high)
{
    const char *text = getenv(name);
    if (!text || !*text)
        return preset;
    char *end;
    long value = strtol(text, &end, 10);
    if (*end || value < low || value > high)
        error("%s=%s: a number of %ld to %ld was expected", name, text, low, high);
    return value;
}

/* Of this process: the launcher says which rank it is. */
void read_death(Settings *s)
{
    const char *text = getenv("RNND_SIMT_DIES"), *rank = getenv("OMPI_COMM_WORLD_RANK");
    int who, used = 0;
    if (!text || !*text)
        return;
    if (sscanf(text, "%d:%63[A-Za-z]:%ld%n", &who, s->dies_in, &s->dies_at, &used) !=
            3 ||
        text[used])
        error("RNND_SIMT_DIES=%s: RANK:CALL:NUMBER was expected", text);
    if (who != (rank ? atoi(rank) : 0))
        s->dies_at = 0;
}

Settings read_settings()
{
#if defined(__SANITIZE_ADDRESS__) || defined(SIMT_TSAN)
    const long stack = 256;
#else
    const long stack = 64;
#endif
    Settings s = {};
    const char *seed = getenv("RNND_SIMT_SEED");
    s.inorder = seed && strcmp(seed, "inorder") == 0;
    s.seed = s.inorder ? 0 : (uint64_t)number("RNND_SIMT_SEED", 1, 0, INT32_MAX);
    s.arch = (int)number("RNND_SIMT_ARCH", 90, 75, 120);
    s.devices = (int)number("RNND_SIMT_DEVICES", 2, 0, 16);
    s.multiprocessors = (int)number("RNND_SIMT_SMS", 0, 0, 1024);
    s.memory = (size_t)number("RNND_SIMT_MEMORY", 8192, 0, 60000) << 20;
    s.stack = (size_t)number("RNND_SIMT_STACK", stack, 16, 8192) << 10;
    s.digest = number("RNND_SIMT_DIGEST", 0, 0, 1) == 1;
    s.captures = number("RNND_SIMT_CAPTURES", 1, 0, 1) == 1;
    s.refuses = number("RNND_SIMT_REFUSES", 0, 0, INT32_MAX);
    s.nccl = number("RNND_SIMT_NCCL", 1, 0, 1) == 1;
    read_death(&s);
    return s;
}

} // namespace

const Settings &settings()
{
    static const Settings s = read_settings();
    return s;
}

/* SplitMix64 (Steele, Lea and Flood 2014). */
uint64_t random_bits()
{
    static uint64_t state = settings().seed * 0x9E3779B97F4A7C15u;
    uint64_t z = state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

size_t below(size_t n)
{
    return settings().inorder ? 0 : (size_t)(((random_bits() >> 32) * n) >> 32);
}

/* Ends at once: destructors would run on the stack of a CUDA thread. */
[[noreturn]] static void end(const char *text, const char *where)
{
    fflush(nullptr);
    fprintf(stderr, "simt: error: %s%s\n", text, where);
    fflush(stderr);
    Unseen::end_all();
    _exit(86);
}

void error(const char *format, ...)
{
    char text[512], where[512] = "";
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    if (self())
        describe_thread(where, sizeof where);
    end(text, where);
}

void kernel_error(Site at, const char *text)
{
    if (self())
        self()->at = at;
    error("%s", text);
}

} // namespace simt
