/*
 * log.c - messages, each written by one call so that lines of ranks do not interleave.
 */
#include "base/log.h"

#include <stdarg.h>
#include <string.h>

#include "base/plain.h"

static int own_rank, world = 1;
static bool mute;
static void (*clear_line)(void);

void rnnd__log_rank(int rank, int size)
{
    own_rank = rank;
    world = size;
}

void rnnd__log_before(void (*clear)(void))
{
    clear_line = clear;
}

void rnnd__log_mute(bool muted)
{
    mute = muted;
}

/* Messages quote names and texts from files, which must not send control characters to
   a terminal or look like a separate message. */
static void mask_controls(char *text)
{
    for (; *text; text++)
        for (int bytes = rnnd__plain_control(text); bytes > 0; bytes--)
            text[bytes - 1] = '?';
}

static void print(const char *kind, const char *format, va_list args)
{
    char line[4096], who[32] = "";
    if (world > 1)
        snprintf(who, sizeof who, "rank %d: ", own_rank);
    int n = snprintf(line, sizeof line, "rnn_dist: %s%s", who, kind);
    vsnprintf(line + n, sizeof line - 1 - (size_t)n, format, args);
    mask_controls(line);
    strcat(line, "\n");
    if (clear_line)
        clear_line();
    fputs(line, stderr);
}

void rnnd__log_info(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (own_rank == 0 && !mute)
        print("", format, args);
    va_end(args);
}

void rnnd__log_warn(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (own_rank == 0 && !mute)
        print("warning: ", format, args);
    va_end(args);
}

void rnnd__log_error(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print("", format, args);
    va_end(args);
}
