/*
 * fuzz.h - the readers that are given damaged input, each as one function of bytes.
 */
#ifndef RNND_FUZZ_H
#define RNND_FUZZ_H

#include <stddef.h>
#include <stdint.h>

struct fuzz_target {
    const char *name;
    /* the file that holds the input; NULL = it is given as text */
    const char *file;
    void (*read)(const char *path, const char *text, size_t size);
};

/* Ended by an entry without a name. */
extern const struct fuzz_target fuzz_targets[];

/* The target of this name; exits if there is none. */
const struct fuzz_target *fuzz_find(const char *name);
/* Gives the input to the target, in a folder of this process that it makes. */
void fuzz_one(const struct fuzz_target *target, const uint8_t *data, size_t size);
/* Removes that folder. */
void fuzz_end(void);

#endif
