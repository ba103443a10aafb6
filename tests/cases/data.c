/*
 * data.c - data sets that tests make up, written as a user of HDF5 would write them.
 */
#include "data.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "base/status.h"
#include "hdf/hdf.h"

static bool is(const struct case_data *d, const char *task)
{
    return strcmp(d->task, task) == 0;
}

static bool has_classes(const struct case_data *d)
{
    return is(d, "classify") || is(d, "tag");
}

static int64_t steps_of(const struct case_data *d)
{
    double steps = 0;
    for (int64_t i = 0; i < d->sequences; i++)
        steps += d->length[i];
    return (int64_t)steps;
}

int64_t case_data_inputs(const struct case_data *d)
{
    return steps_of(d) * (d->vocab ? 1 : d->features);
}

static int64_t target_rows(const struct case_data *d)
{
    return is(d, "classify") || is(d, "regress") ? d->sequences : steps_of(d);
}

int64_t case_data_targets(const struct case_data *d)
{
    if (is(d, "lm") || is(d, "none"))
        return 0;
    return target_rows(d) * (has_classes(d) ? 1 : d->outputs);
}

/* The given values, or drawn ones: integers below `below`, else -1..1. Taken by the
 * caller. */
static int values(const struct case_data *d, const double *given, uint32_t stream,
                  int64_t count, int64_t below, double **out)
{
    double *v;
    RNND_TRY(RNND_NEW(&v, count, "values"));
    for (int64_t i = 0; i < count; i++) {
        struct rnnd__random r = rnnd__philox(d->seed, (uint32_t)i, 0, stream, 0);
        double u = (double)rnnd__uniform(r.word[0]);
        v[i] = given ? given[i] : below ? floor(u * (double)below) : 2 * u - 1;
    }
    *out = v;
    return 0;
}

static int write_integers(struct rnnd__hdf *file, const char *object,
                          const double *value, int64_t count)
{
    int64_t *whole;
    RNND_TRY(RNND_NEW(&whole, count, "integers"));
    for (int64_t i = 0; i < count; i++)
        whole[i] = (int64_t)value[i];
    int status = rnnd__hdf_write(file, object, RNND_I64, 1, &count, false, whole);
    free(whole);
    return status;
}

static int write_inputs(struct rnnd__hdf *file, const struct case_data *d)
{
    int64_t dim[2] = {steps_of(d), d->features}, count = case_data_inputs(d);
    double *value;
    RNND_TRY(values(d, d->inputs, 1, count, d->vocab, &value));
    int status = d->vocab ? rnnd__hdf_set_int(file, "vocab_size", d->vocab) : 0;
    if (status == 0)
        status = d->vocab
                     ? write_integers(file, "inputs", value, count)
                     : rnnd__hdf_write(file, "inputs", RNND_F64, 2, dim, false, value);
    free(value);
    return status;
}

static int write_targets(struct rnnd__hdf *file, const struct case_data *d)
{
    int64_t dim[2] = {target_rows(d), d->outputs}, count = case_data_targets(d);
    int64_t below = has_classes(d) ? d->outputs : is(d, "multilabel") ? 2 : 0;
    double *value;
    RNND_TRY(values(d, d->targets, 2, count, below, &value));
    int status =
        has_classes(d) ? rnnd__hdf_set_int(file, "num_classes", d->outputs) : 0;
    if (status == 0)
        status = has_classes(d)
                     ? write_integers(file, "targets", value, count)
                     : rnnd__hdf_write(file, "targets", RNND_F64, 2, dim, false, value);
    free(value);
    return status;
}

static int write_all(struct rnnd__hdf *file, const struct case_data *d)
{
    int64_t *offset, dim = d->sequences + 1;
    RNND_TRY(rnnd__hdf_set_string(file, "format", "rnn_dist-data"));
    RNND_TRY(rnnd__hdf_set_int(file, "version", 1));
    RNND_TRY(rnnd__hdf_set_string(file, "task", d->task));
    RNND_TRY(RNND_NEW(&offset, dim, "offsets"));
    for (int64_t i = 0; i < d->sequences; i++)
        offset[i + 1] = offset[i] + (int64_t)d->length[i];
    int status = rnnd__hdf_write(file, "offsets", RNND_I64, 1, &dim, false, offset);
    free(offset);
    RNND_TRY(status);
    RNND_TRY(write_inputs(file, d));
    if (d->classes)
        RNND_TRY(rnnd__hdf_write_strings(file, "classes", d->classes, d->outputs));
    return is(d, "lm") || is(d, "none") ? 0 : write_targets(file, d);
}

int case_data_write(const char *path, const struct case_data *d)
{
    struct rnnd__hdf *file;
    RNND_TRY(rnnd__hdf_create(path, &file));
    int status = write_all(file, d);
    if (status == 0)
        return rnnd__hdf_commit(file);
    rnnd__hdf_close(file);
    return status;
}
