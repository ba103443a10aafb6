/*
 * range.c - what 32-bit floats leave of the values of a column: of 1e8 plus noise, a
 * constant.
 */
#include "base/range.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/log.h"

const struct rnnd__range rnnd__range_none = {INFINITY, -INFINITY, true, 0};

void rnnd__range_add(struct rnnd__range *range, double value)
{
    if (!isfinite(value))
        return;
    range->low = fmin(range->low, value);
    range->high = fmax(range->high, value);
    range->integers = range->integers && value == floor(value);
    if (range->rounded == 0 && (double)(float)value != value)
        range->rounded = value;
}

/* From one 32-bit float to the next, at the larger end. */
static double step_of(const struct rnnd__range *range)
{
    float most = (float)fmax(fabs(range->low), fabs(range->high));
    return (double)nextafterf(most, INFINITY) - (double)most;
}

static bool is_narrow(const struct rnnd__range *range)
{
    enum { FEW = 256 };
    return range->low <= range->high && range->high - range->low < FEW * step_of(range);
}

void rnnd__range_warn(const struct rnnd__range *range, const char *format, ...)
{
    char whose[1200];
    va_list args;
    if (range->integers || !(range->low < range->high) || !is_narrow(range))
        return;
    va_start(args, format);
    vsnprintf(whose, sizeof whose, format, args);
    va_end(args);
    rnnd__log_warn("%s: 32-bit floats tell its values, from %.17g to %.17g, apart in "
                   "steps of %.2g only; subtract an offset from them",
                   whose, range->low, range->high, step_of(range));
}

void rnnd__range_warn_rounded(const char *which, float value)
{
    rnnd__log_warn(
        "%s is rounded to %.0f; integers beyond 2^24 may not fit into 32-bit "
        "floats",
        which, (double)value);
}
