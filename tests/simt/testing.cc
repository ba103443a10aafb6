/*
 * testing.cc - runs scenarios in processes of their own.
 */
#include "testing.h"

#include <cstring>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

/* Random schedules of a scenario that names no number. TSan needs few, since it finds a
   race in any order. */
#ifdef SIMT_TSAN
static const int few = 2;
static const bool tsan = true;
#else
static const int few = 5;
static const bool tsan = false;
#endif

/* Starts this program with the scenario's name; what it prints comes back in output. */
static int run_apart(const char *program, const Scenario &s, const char *seed,
                     std::string *output)
{
    int ends[2], status;
    char buffer[4096];
    if (pipe(ends) != 0)
        return -1;
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], 1);
        dup2(ends[1], 2);
        close(ends[0]);
        setenv("RNND_SIMT_SEED", seed, 1);
        setenv("TSAN_OPTIONS", "atexit_sleep_ms=0", 0);
        if (s.variable)
            putenv(const_cast<char *>(s.variable));
        execl("/proc/self/exe", program, s.name, (char *)nullptr);
        _exit(127);
    }
    close(ends[1]);
    for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0;)
        output->append(buffer, (size_t)n);
    close(ends[0]);
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static bool good(const char *program, const Scenario &s, const char *seed)
{
    std::string output;
    int status = run_apart(program, s, seed, &output);
    bool printed = !s.text || output.find(s.text) != std::string::npos;
    bool clean = s.status != 0 || output.find("simt:") == std::string::npos;
    if (status == s.status && printed && clean)
        return true;
    printf("not ok %s, seed %s: exit status %d, expected %d%s%s\n%s", s.name, seed,
           status, s.status, printed ? "" : "; not printed: ", printed ? "" : s.text,
           output.c_str());
    return false;
}

static bool run_scenario(const char *program, const Scenario &s)
{
    int failed = 0, runs = s.seeds == 0 || tsan ? few : s.seeds;
    if (tsan && s.status == 1) /* a wrong result: TSan would tell why (test_races) */
        return true;
    if (!s.seeds)
        failed += !good(program, s, "inorder");
    for (int seed = 1; seed <= runs; seed++)
        failed += !good(program, s, std::to_string(seed).c_str());
    if (!failed)
        printf("ok %s\n", s.name);
    fflush(stdout);
    return !failed;
}

int run_here(const char *name, const Scenario *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(list[i].name, name) == 0)
            return list[i].run(), 0;
    fprintf(stderr, "no scenario %s\n", name);
    return 2;
}

int run_scenarios(int argc, char **argv, const Scenario *list, size_t count)
{
    size_t failed = 0;
    if (argc > 1)
        return run_here(argv[1], list, count);
    for (size_t i = 0; i < count; i++)
        failed += !run_scenario(argv[0], list[i]);
    printf("%zu scenarios, %zu failed\n", count, failed);
    return failed > 0;
}

float some(size_t i)
{
    uint32_t x = (uint32_t)i * 2654435761u;
    x ^= x >> 15;
    x *= 2246822519u;
    x ^= x >> 13;
    return (float)(x & 0xffff) / 65536.0f - 0.5f;
}

std::vector<float> some_floats(size_t n, size_t from)
{
    std::vector<float> v(n);
    for (size_t i = 0; i < n; i++)
        v[i] = some(from + i);
    return v;
}
