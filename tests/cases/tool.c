/*
 * tool.c - data sets, parameters and comparisons for the shell tests of this folder.
 *
 *   tool data OUT task=T lengths=N,N,... [features=I | vocab=V] [outputs=O] [seed=S]
 *             [targets=X,X,...] [inputs=X,X,...] [classes=A|B|...]
 *   a data set; what is not given is random, and without names
 *   tool plan DATA UPDATES [OPTION=VALUE...]
 *   the plan of a training with these options: number and epoch of each update, and its
 *   sequences
 *   tool params OUT NAME=ROWSxCOLS:X ...
 *   a checkpoint of constant parameters
 *   tool show FILE OBJECT
 *   values of an array, one a line
 *   tool diff BOUND FILE FILE [GROUP]
 *   1 if arrays below GROUP (/model) differ by more than BOUND of their largest value
 *   tool peak FILE COMMAND...
 *   runs it and leaves with its status; into FILE the most memory that it used, kB
 *
 * Exit 2: called wrongly, or a file that is not as it should be.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "data.h"
#include "hdf/hdf.h"
#include "options/options.h"

#define MUST(expr) must((expr), #expr)

static void must(int status, const char *what)
{
    if (status == 0)
        return;
    fprintf(stderr, "tool: %s: %s\n", what, rnnd_status_detail());
    exit(2);
}

static void die(const char *what)
{
    fprintf(stderr, "tool: %s\n", what);
    exit(2);
}

static void *zeroed(int64_t count, size_t size)
{
    void *p = calloc((size_t)count + 1, size);
    if (!p)
        die("out of memory");
    return p;
}

/* The value of key=value among the arguments; NULL without. */
static const char *argument(char **argv, const char *key)
{
    size_t n = strlen(key);
    for (; *argv; argv++)
        if (strncmp(*argv, key, n) == 0 && (*argv)[n] == '=')
            return *argv + n + 1;
    return NULL;
}

static int64_t integer(char **argv, const char *key, int64_t otherwise)
{
    const char *text = argument(argv, key);
    return text ? strtoll(text, NULL, 10) : otherwise;
}

/* "1,2,nan" as numbers; *count is how many. */
static double *numbers(const char *text, int64_t *count)
{
    double *out = zeroed((int64_t)strlen(text), sizeof *out);
    *count = 0;
    while (*text) {
        char *end;
        out[(*count)++] = strtod(text, &end);
        if (end == text || (*end && *end != ','))
            die("not a list of numbers");
        text = *end ? end + 1 : end;
    }
    return out;
}

/* ---- data */

/* The numbers of key=, checked to be as many as `count`; NULL without. */
static double *given(char **argv, const char *key, int64_t count)
{
    const char *text = argument(argv, key);
    if (!text)
        return NULL;
    int64_t n;
    double *out = numbers(text, &n);
    if (n != count)
        die("wrong number of values");
    return out;
}

/* The names of classes=, with | between them; NULL without. */
static const char **names(char **argv, int64_t count)
{
    char *text = (char *)argument(argv, "classes");
    if (!text)
        return NULL;
    const char **out = zeroed(count, sizeof *out);
    for (int64_t i = 0; i < count; i++)
        if (!(out[i] = strsep(&text, "|")))
            die("too few names");
    return out;
}

static int make_data(char **argv)
{
    const char *path = *argv++, *lengths = argument(argv, "lengths");
    struct case_data d = {.task = argument(argv, "task")};
    if (!d.task || !lengths)
        die("data needs task= and lengths=");
    d.vocab = integer(argv, "vocab", 0);
    d.features = d.vocab ? 0 : integer(argv, "features", 3);
    d.outputs = integer(argv, "outputs", 4);
    d.seed = (uint64_t)integer(argv, "seed", 1);
    double *length = numbers(lengths, &d.sequences);
    d.length = length;
    double *inputs = given(argv, "inputs", case_data_inputs(&d));
    double *targets = given(argv, "targets", case_data_targets(&d));
    d.inputs = inputs;
    d.targets = targets;
    const char **classes = names(argv, d.outputs);
    d.classes = classes;
    MUST(case_data_write(path, &d));
    free(classes);
    free(targets);
    free(inputs);
    free(length);
    return 0;
}

/* ---- plan */

static void print_entry(const struct rnnd_plan *plan, int64_t entry)
{
    const int32_t *id;
    int64_t count;
    rnnd_plan_entry(plan, entry, &id, &count);
    for (int64_t i = 0; i < count; i++)
        printf(" %d", (int)id[i]);
    printf("\n");
}

static int show_plan(char **argv)
{
    struct rnnd_options opt;
    struct rnnd_dataset *data;
    struct rnnd_plan *plan;
    char *path = *argv++, *value;
    int64_t updates = strtoll(*argv++, NULL, 10), update = 0;
    MUST(rnnd_options_init(&opt));
    for (; *argv; argv++) {
        if (!(value = strchr(*argv, '=')))
            die("options are OPTION=VALUE");
        *value++ = 0;
        MUST(rnnd__options_set(&opt, *argv, value, RNND_FROM_COMMAND_LINE));
    }
    const struct rnnd_plan_options how = rnnd_plan_options_of(&opt);
    MUST(rnnd_dataset_open(path, &data));
    MUST(rnnd_plan_new(rnnd_dataset_offsets(data), rnnd_dataset_info(data)->sequences,
                       &how, &plan));
    for (int64_t epoch = 0; update < updates; epoch++) {
        rnnd_plan_epoch(plan, epoch);
        if (rnnd_plan_entries(plan) == 0)
            die("an epoch without updates");
        for (int64_t k = 0; k < rnnd_plan_entries(plan) && update < updates; k++) {
            printf("%lld %lld", (long long)++update, (long long)epoch + 1);
            print_entry(plan, k);
        }
    }
    rnnd_plan_free(plan);
    rnnd_dataset_close(data);
    rnnd_options_clear(&opt);
    return 0;
}

/* ---- parameters */

/* NAME=ROWSxCOLS:X, or NAME=ROWS:X for a vector. */
static void write_constant(struct rnnd__hdf *file, const char *text)
{
    char name[64], object[96];
    long long rows, cols = 0;
    double x;
    if (sscanf(text, "%63[^=]=%lldx%lld:%lf", name, &rows, &cols, &x) != 4) {
        cols = 0;
        if (sscanf(text, "%63[^=]=%lld:%lf", name, &rows, &x) != 3)
            die("parameters are NAME=ROWSxCOLS:X");
    }
    int64_t dim[2] = {rows, cols}, count = rows * (cols ? cols : 1);
    float *value = zeroed(count, sizeof *value);
    for (int64_t i = 0; i < count; i++)
        value[i] = (float)x;
    snprintf(object, sizeof object, "model/%s", name);
    MUST(rnnd__hdf_write(file, object, RNND_F32, cols ? 2 : 1, dim, false, value));
    free(value);
}

static int make_params(char **argv)
{
    struct rnnd__hdf *file;
    MUST(rnnd__hdf_create(*argv++, &file));
    MUST(rnnd__hdf_set_string(file, "format", "rnn_dist-checkpoint"));
    MUST(rnnd__hdf_set_int(file, "version", 1));
    MUST(rnnd__hdf_set_int(file, "update", 0));
    MUST(rnnd__hdf_set_int(file, "epoch", 0));
    MUST(rnnd__hdf_set_string(file, "config", ""));
    for (; *argv; argv++)
        write_constant(file, *argv);
    MUST(rnnd__hdf_commit(file));
    return 0;
}

/* ---- reading */

static double *read_array(struct rnnd__hdf *file, const char *object, int64_t *count)
{
    struct rnnd__hdf_shape shape;
    MUST(rnnd__hdf_shape(file, object, &shape));
    *count = 1;
    for (int i = 0; i < shape.rank; i++)
        *count *= shape.dim[i];
    double *out = zeroed(*count, sizeof *out);
    if (*count > 0)
        MUST(rnnd__hdf_read(file, object, 0, shape.dim[0], RNND_F64, out));
    return out;
}

static int show(char **argv)
{
    struct rnnd__hdf *file;
    int64_t count;
    MUST(rnnd__hdf_open(argv[0], &file));
    double *value = read_array(file, argv[1], &count);
    for (int64_t i = 0; i < count; i++)
        printf("%.9g\n", value[i]);
    free(value);
    rnnd__hdf_close(file);
    return 0;
}

struct comparison {
    struct rnnd__hdf *a, *b;
    double worst;
    int arrays;
};

static int compare_array(void *context, const char *object)
{
    struct comparison *c = context;
    struct rnnd__hdf_shape shape;
    int64_t n, m;
    MUST(rnnd__hdf_shape(c->a, object, &shape));
    if (shape.kind != RNND_HDF_INT && shape.kind != RNND_HDF_FLOAT)
        return 0;
    double *a = read_array(c->a, object, &n), *b = read_array(c->b, object, &m);
    double error = n == m ? 0 : INFINITY, most = 0;
    for (int64_t i = 0; i < n && n == m; i++) {
        double d = fabs(a[i] - b[i]);
        if (!(d <= error))
            error =
                isnan(d) && !(isnan(a[i]) && isnan(b[i])) ? INFINITY : fmax(d, error);
        most = fmax(most, fabs(b[i]));
    }
    error = error > 0 ? error / most : 0;
    if (error > c->worst) {
        printf("%s differs by %.3g\n", object, error);
        c->worst = error;
    }
    c->arrays++;
    free(a);
    free(b);
    return 0;
}

static int diff(char **argv)
{
    struct comparison c = {0};
    double bound = strtod(argv[0], NULL);
    MUST(rnnd__hdf_open(argv[1], &c.a));
    MUST(rnnd__hdf_open(argv[2], &c.b));
    MUST(rnnd__hdf_each(c.a, argv[3] ? argv[3] : "/model", compare_array, &c));
    rnnd__hdf_close(c.a);
    rnnd__hdf_close(c.b);
    if (c.arrays == 0)
        die("nothing to compare");
    return c.worst > bound;
}

/* ---- memory */

static int peak(char **argv)
{
    struct rusage usage;
    int status = 0;
    pid_t child = fork();
    if (child < 0)
        die("fork failed");
    if (child == 0) {
        execvp(argv[1], argv + 1);
        _exit(127);
    }
    if (wait4(child, &status, 0, &usage) != child)
        die("wait failed");
    FILE *file = fopen(argv[0], "w");
    if (!file || fprintf(file, "%ld\n", usage.ru_maxrss) < 0 || fclose(file) != 0)
        die("cannot write the peak");
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char **argv)
{
    const char *command = argc > 1 ? argv[1] : "";
    if (strcmp(command, "data") == 0 && argc > 3)
        return make_data(argv + 2);
    if (strcmp(command, "plan") == 0 && argc > 3)
        return show_plan(argv + 2);
    if (strcmp(command, "params") == 0 && argc > 3)
        return make_params(argv + 2);
    if (strcmp(command, "show") == 0 && argc == 4)
        return show(argv + 2);
    if (strcmp(command, "diff") == 0 && argc >= 5)
        return diff(argv + 2);
    if (strcmp(command, "peak") == 0 && argc >= 4)
        return peak(argv + 2);
    die("usage: tool data|plan|params|show|diff|peak ... (see tests/cases/tool.c)");
    return 2;
}
