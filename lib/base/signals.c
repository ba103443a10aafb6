/*
 * signals.c - the mark that a signal leaves for the loop to find.
 *
 * The threads that compute block these signals and look for them: code that oneDNN
 * generates keeps data below the stack pointer, where the frame of a signal handler
 * would overwrite them (its heap was corrupted in most of the runs that were
 * signalled). Threads that were there before, such as MPI's, may still be chosen by the
 * kernel; for them there is a handler. Launchers send the same signal several times, so
 * nothing is counted. Knows no ranks: who was signalled is agreed on elsewhere.
 */
#include "base/signals.h"

#include <signal.h>
#include <string.h>
#include <time.h>

static volatile sig_atomic_t requested;

static void mark(int signal)
{
    requested = signal;
}

static void fill(sigset_t *set)
{
    static const int signals[] = {SIGUSR1, SIGUSR2, SIGTERM, SIGINT};
    sigemptyset(set);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        sigaddset(set, signals[i]);
}

void rnnd__signals_install(void)
{
    sigset_t set;
    struct sigaction action;
    fill(&set);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    memset(&action, 0, sizeof action);
    action.sa_handler = mark;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    for (int signal = 1; signal < NSIG; signal++)
        if (sigismember(&set, signal) == 1)
            sigaction(signal, &action, NULL);
}

int rnnd__signals_received(void)
{
    static const struct timespec at_once = {0, 0};
    sigset_t set;
    int signal;
    fill(&set);
    while ((signal = sigtimedwait(&set, NULL, &at_once)) > 0)
        requested = signal;
    return requested;
}
