/*
 * outputs.c - a command must not overwrite its inputs, even where their kind is that of
 * its output (base/output.h guards all other files).
 */
#include <sys/stat.h>

#include "base/status.h"
#include "bin.h"

int bin_refuse_same(const char *output, const char *input)
{
    struct stat a, b;
    if (!output || !input || stat(output, &a) != 0 || stat(input, &b) != 0)
        return 0;
    if (a.st_dev != b.st_dev || a.st_ino != b.st_ino || !S_ISREG(a.st_mode))
        return 0;
    return rnnd__fail(RNND_EUSAGE,
                      "%s is an input and would be overwritten; choose another output",
                      input);
}
