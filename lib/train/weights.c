/*
 * weights.c - the weights of classes in the training loss.
 *
 * Takes what --class-weight says, gives a number per class of the model. A file is read
 * by the names of the classes, so that their order does not matter.
 */
#include "train/weights.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/status.h"
#include "data/dataset_names.h"

/* Bytes of a list of classes in a message. */
enum { LINE = 320 };

bool rnnd__weights_balance(const char *text)
{
    return strcmp(text, "balanced") == 0;
}

/* ---- numbers */

/* A weight up to `end`; false where the text is none. */
static bool read_weight(const char *text, const char *end, float *out)
{
    char *stop;
    double value = strtod(text, &stop);
    if (stop == text || stop != end || !(value >= 0))
        return false;
    *out = (float)value;
    return isfinite(*out);
}

static const char *end_of_part(const char *text)
{
    return text + strcspn(text, ",");
}

bool rnnd__weights_is_list(const char *text)
{
    for (const char *part = text;; part = end_of_part(part) + 1) {
        char *stop;
        (void)strtod(part, &stop);
        if (stop == part || stop != end_of_part(part))
            return false;
        if (!*stop)
            return true;
    }
}

static int read_list(const char *text, int64_t classes, float *weight)
{
    int64_t count = 1;
    for (const char *c = text; *c; c++)
        count += *c == ',';
    if (count != classes)
        return rnnd__fail(RNND_EUSAGE,
                          "--class-weight %.80s: %lld weights, but the data have %lld "
                          "classes",
                          text, (long long)count, (long long)classes);
    for (int64_t k = 0; k < classes; k++) {
        const char *end = end_of_part(text);
        if (!read_weight(text, end, &weight[k]))
            return rnnd__fail(RNND_EUSAGE,
                              "--class-weight: \"%.*s\" is not a weight: it must be a "
                              "finite number, at least 0",
                              end - text < 40 ? (int)(end - text) : 40, text);
        text = end + 1;
    }
    return 0;
}

/* ---- a file: one line "name weight" for each class */

/* What is read, and where. */
struct reading {
    const char *path;
    int line;
    const struct rnnd__names *names;
    int64_t classes;
    /* [classes], NaN = not yet read */
    float *weight;
};

static bool has_names(const struct reading *r)
{
    int64_t count;
    (void)rnnd__names_texts(r->names, RNND_AXIS_CLASS, &count);
    return count > 0;
}

/* The class of this name; without names, of this number; -1 = none. */
static int64_t find_class(const struct reading *r, const char *name)
{
    if (has_names(r))
        return rnnd__names_find(r->names, RNND_AXIS_CLASS, name);
    size_t digits = strspn(name, "0123456789");
    long long k = digits < 18 ? strtoll(name, NULL, 10) : -1;
    return digits > 0 && !name[digits] && k < r->classes ? k : -1;
}

static int refuse_class(const struct reading *r, const char *name)
{
    char known[RNND__NAMES_LIST];
    if (has_names(r))
        rnnd__names_list(r->names, RNND_AXIS_CLASS, known);
    else
        snprintf(known, sizeof known, "0 to %lld", (long long)r->classes - 1);
    return rnnd__fail(RNND_EUSAGE,
                      "%s:%d: there is no class \"%.80s\"; the training data have %s",
                      r->path, r->line, name, known);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* Cuts blanks off the end of n characters. */
static size_t trimmed(const char *text, size_t n)
{
    while (n > 0 && is_blank(text[n - 1]))
        n--;
    return n;
}

/* The class that the first n characters of a line name. Blanks behind them belong to
   the name where a tab follows and a class is called so. Cuts the line there. */
static int64_t find_named(const struct reading *r, char *line, size_t n)
{
    char *tab = strrchr(line, '\t');
    int64_t k = -1;
    if (tab && tab > line && (size_t)(tab - line) >= n) {
        *tab = '\0';
        k = find_class(r, line);
    }
    line[n] = '\0';
    return k >= 0 ? k : find_class(r, line);
}

/* A name may hold blanks: the weight is the last word. */
static int read_line(struct reading *r, char *line)
{
    size_t n = trimmed(line, strlen(line)), word = n;
    if (n == 0)
        return 0;
    while (word > 0 && !is_blank(line[word - 1]))
        word--;
    float weight;
    line[n] = '\0';
    size_t name = trimmed(line, word);
    if (name == 0 || !read_weight(line + word, line + n, &weight))
        return rnnd__fail(RNND_EUSAGE,
                          "%s:%d: \"%.80s\" is not a class and its weight, a finite "
                          "number of at least 0",
                          r->path, r->line, line);
    int64_t k = find_named(r, line, name);
    if (k < 0)
        return refuse_class(r, line);
    if (!isnan(r->weight[k]))
        return rnnd__fail(RNND_EUSAGE, "%s:%d: class \"%.80s\" already has a weight",
                          r->path, r->line, line);
    r->weight[k] = weight;
    return 0;
}

static int read_lines(struct reading *r, char *text)
{
    text += strncmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0; /* byte order mark */
    for (char *end; text; text = end) {
        end = strchr(text, '\n');
        if (end)
            *end++ = '\0';
        r->line++;
        RNND_TRY(read_line(r, text));
    }
    for (int64_t k = 0; k < r->classes; k++) {
        const char *name = rnnd__names_text(r->names, RNND_AXIS_CLASS, k);
        if (isnan(r->weight[k]))
            return rnnd__fail(
                RNND_EUSAGE,
                "%s: no weight for class %lld%s%.80s%s: every class needs "
                "one",
                r->path, (long long)k, name ? ", \"" : "", name ? name : "",
                name ? "\"" : "");
    }
    return 0;
}

static int read_file(const char *path, const struct rnnd_dataset *data, int64_t classes,
                     float *weight)
{
    struct reading r = {.path = path,
                        .names = rnnd__dataset_names(data),
                        .classes = classes,
                        .weight = weight};
    char *text;
    size_t size;
    for (int64_t k = 0; k < classes; k++)
        weight[k] = NAN;
    int status = rnnd__file_read(path, &text, &size);
    if (status < 0)
        return rnnd__fail(status,
                          "--class-weight: %s; it must be \"balanced\", a list such as "
                          "1,2.5, or a file",
                          rnnd_status_detail());
    status = strlen(text) == size
                 ? read_lines(&r, text)
                 : rnnd__fail(RNND_EUSAGE, "%s: is not a text file", path);
    free(text);
    return status;
}

/* ---- balanced */

/* Adds up targets [rows] by class, or the yes and no of each output. */
static void count_targets(const struct rnnd_dataset_info *info, const void *target,
                          int64_t rows, double *yes, double *no)
{
    const int32_t *label = target;
    const float *answer = target;
    int64_t O = info->outputs;
    if (info->task != RNND_MULTILABEL) {
        for (int64_t r = 0; r < rows; r++)
            if (label[r] >= 0)
                yes[label[r]] += 1;
        return;
    }
    for (int64_t r = 0; r < rows; r++, answer += O) {
        bool missing = false;
        for (int64_t k = 0; k < O; k++)
            missing = missing || isnan(answer[k]);
        for (int64_t k = 0; k < O && !missing; k++) {
            yes[k] += (double)answer[k];
            no[k] += 1 - (double)answer[k];
        }
    }
}

static int count_all(struct rnnd_dataset *data, double *yes, double *no)
{
    const struct rnnd_dataset_info *info = rnnd_dataset_info(data);
    int64_t rows = rnnd_task_is_stepwise(info->task) ? info->steps : info->sequences;
    int64_t width = info->task == RNND_MULTILABEL ? info->outputs : 1;
    int64_t most = (1 << 18) / width + 1;
    float *block; /* a label has the size of a float */
    RNND_TRY(RNND_NEW(&block, (rows < most ? rows : most) * width, "targets"));
    int status = 0;
    for (int64_t at = 0, n; at < rows && status == 0; at += n) {
        n = rows - at < most ? rows - at : most;
        status = rnnd_dataset_targets(data, at, n, block);
        if (status == 0)
            count_targets(info, block, n, yes, no);
    }
    free(block);
    return status;
}

/* Classes: all targets / (classes that occur * targets of the class), as scikit-learn
   has it. Answers: no / yes. 1 where there is nothing to balance. */
static int balance(struct rnnd_dataset *data, float *weight)
{
    const struct rnnd_dataset_info *info = rnnd_dataset_info(data);
    int64_t O = info->outputs;
    double *yes, total = 0, occur = 0;
    RNND_TRY(RNND_NEW(&yes, 2 * O, "class counts"));
    double *no = yes + O;
    int status = count_all(data, yes, no);
    for (int64_t k = 0; k < O; k++) {
        total += yes[k];
        occur += yes[k] > 0;
    }
    for (int64_t k = 0; k < O; k++) {
        weight[k] = 1;
        if (info->task == RNND_MULTILABEL && yes[k] > 0 && no[k] > 0)
            weight[k] = (float)(no[k] / yes[k]);
        else if (info->task != RNND_MULTILABEL && yes[k] > 0)
            weight[k] = (float)(total / (occur * yes[k]));
    }
    free(yes);
    return status;
}

/* ---- all three */

int rnnd__weights_read(const char *text, struct rnnd_dataset *data, float **out)
{
    const struct rnnd_dataset_info *info = rnnd_dataset_info(data);
    float *weight, sum = 0;
    int status;
    RNND_TRY(RNND_NEW(&weight, info->outputs, "class weights"));
    if (rnnd__weights_balance(text))
        status = balance(data, weight);
    else if (rnnd__weights_is_list(text))
        status = read_list(text, info->outputs, weight);
    else
        status = read_file(text, data, info->outputs, weight);
    for (int64_t k = 0; k < info->outputs; k++)
        sum += weight[k];
    if (status == 0 && sum == 0)
        status =
            rnnd__fail(RNND_EUSAGE, "--class-weight %.80s: all weights are 0", text);
    if (status < 0) {
        free(weight);
        return status;
    }
    *out = weight;
    return 0;
}

/* The shortest of the texts that read as the same float. */
static void write_weight(FILE *out, float weight)
{
    char text[32];
    for (int digits = 6; digits <= 9; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, (double)weight);
        if (strtof(text, NULL) == weight)
            break;
    }
    fputs(text, out);
}

int rnnd__weights_list(const float *weight, int64_t count, char **text)
{
    char *all = NULL;
    size_t size;
    FILE *out = open_memstream(&all, &size);
    if (!out)
        return rnnd__fail_memory(0, "class weights as text");
    for (int64_t k = 0; k < count; k++) {
        if (k > 0)
            putc(',', out);
        write_weight(out, weight[k]);
    }
    bool whole = !ferror(out);
    if (fclose(out) != 0 || !whole) {
        free(all);
        return rnnd__fail_memory(size, "class weights as text");
    }
    *text = all;
    return 0;
}

void rnnd__weights_log(const float *weight, const struct rnnd_dataset *data)
{
    char line[LINE], part[LINE];
    int64_t O = rnnd_dataset_info(data)->outputs;
    int n = 0;
    for (int64_t k = 0; k < O; k++) {
        const char *name = rnnd_dataset_class(data, k);
        int need =
            name ? snprintf(part, sizeof part, "%.40s %g", name, (double)weight[k])
                 : snprintf(part, sizeof part, "%lld %g", (long long)k,
                            (double)weight[k]);
        if (n + need + 32 > LINE) {
            snprintf(line + n, sizeof line - (size_t)n, ", ... (%lld)", (long long)O);
            break;
        }
        n += snprintf(line + n, sizeof line - (size_t)n, "%s%s", k ? ", " : "", part);
    }
    rnnd__log_info("class weights: %s", line);
}
