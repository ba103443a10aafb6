/*
 * stop.c - the mark that a signal leaves for the loop to find.
 *
 * Launchers send the same signal several times, and different ones one after the other, so
 * nothing is counted. System calls go on (SA_RESTART): a save under way is not disturbed.
 * Knows no ranks: who was signalled is agreed on elsewhere.
 */
#include "stop.h"

#include <signal.h>
#include <string.h>

static volatile sig_atomic_t requested;

/* oneDNN's products put their stack into a buffer on the heap: a handler that ran on it would
   write over whatever lies below. So ours has a stack to itself (SA_ONSTACK). The threads of
   the back end take no signals at all. */
static void give_stack(void)
{
    static char stack[1 << 16] __attribute__((aligned(64)));
    stack_t own = {.ss_sp = stack, .ss_size = sizeof stack}, there;
    if (sigaltstack(NULL, &there) == 0 && there.ss_flags & SS_DISABLE)
        sigaltstack(&own, NULL);
}

static void mark(int signal)
{
    requested = signal;
}

void rnnd_stop_install(void)
{
    static const int signals[] = {SIGUSR1, SIGUSR2, SIGTERM, SIGINT};
    struct sigaction action;
    give_stack();
    memset(&action, 0, sizeof action);
    action.sa_handler = mark;
    action.sa_flags = SA_RESTART | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        sigaction(signals[i], &action, NULL);
}

int rnnd_stop_requested(void)
{
    return requested;
}
