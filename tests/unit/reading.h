/*
 * reading.h - what the Check programs of pack's readers share: options, and what a
 * reader makes of its input with them.
 */
#ifndef RNND_READING_H
#define RNND_READING_H

#include "formats/formats.h"
#include "options/options.h"
#include "testing.h"

static struct rnnd_options opt;
static struct rnnd__contents got;

static inline void set_up(void)
{
    make_folder();
    must(rnnd_options_init(&opt));
    must(rnnd__contents_init(&got));
}

static inline void tear_down(void)
{
    rnnd__contents_clear(&got);
    rnnd_options_clear(&opt);
    remove_folder();
}

/* Forgets what was read. */
static inline void forget(void)
{
    rnnd__contents_clear(&got);
    must(rnnd__contents_init(&got));
}

static inline void set(const char *name, const char *value)
{
    must(rnnd__options_set(&opt, name, value, RNND_FROM_COMMAND_LINE));
}

#endif
