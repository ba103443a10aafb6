/*
 * result.c - writes the result of an evaluation.
 */
#include "record/result.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/plain.h"
#include "base/status.h"
#include "options/options.h"

/* A larger confusion matrix is not shown as text. */
enum { SHOWN_CLASSES = 20 };

/* ---- JSON */

json_t *rnnd__json_number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *rnnd__json_text(const char *value)
{
    json_t *string = json_string(value);
    char *ascii = string ? NULL : strdup(value);
    if (!ascii)
        return string;
    for (char *c = ascii; *c; c++)
        if ((unsigned char)*c >= 0x80)
            *c = '?';
    string = json_string(ascii);
    free(ascii);
    return string;
}

/* A class or answer; without a name it is called by its number. */
static json_t *class_object(const struct rnnd_class_figures *c, int64_t k)
{
    json_t *name = c->name ? rnnd__json_text(c->name) : json_integer(k);
    json_t *object = json_pack(
        "{s:o, s:I, s:I, s:I, s:o, s:o, s:o}", "class", name, "support",
        (json_int_t)c->support, "predicted", (json_int_t)c->predicted, "correct",
        (json_int_t)c->correct, "precision", rnnd__json_number(c->precision), "recall",
        rnnd__json_number(c->recall), "f1", rnnd__json_number(c->f1));
    return object;
}

static json_t *answer_object(const struct rnnd_class_figures *c, int64_t k)
{
    json_t *object = class_object(c, k);
    if (json_object_set_new(object, "auroc", rnnd__json_number(c->auroc)) |
        json_object_set_new(object, "average_precision",
                            rnnd__json_number(c->average_precision))) {
        json_decref(object);
        return NULL;
    }
    return object;
}

static json_t *matrix(const int64_t *cell, int64_t n)
{
    json_t *rows = json_array();
    for (int64_t i = 0; i < n; i++) {
        json_t *row = json_array();
        int fault = 0;
        for (int64_t j = 0; j < n; j++)
            fault |= json_array_append_new(row, json_integer(cell[i * n + j]));
        if (json_array_append_new(rows, row) | fault) {
            json_decref(rows);
            return NULL;
        }
    }
    return rows;
}

static int add_table(json_t *record, const struct rnnd_class_table *table)
{
    json_t *rows = json_array();
    int fault = json_object_set_new(record, "classes", rows);
    for (int64_t k = 0; k < table->classes && !fault; k++)
        fault = json_array_append_new(rows, table->confusion
                                                ? class_object(&table->row[k], k)
                                                : answer_object(&table->row[k], k));
    if (table->confusion && !fault)
        fault = json_object_set_new(record, "confusion",
                                    matrix(table->confusion, table->classes));
    return fault;
}

int rnnd__result_add(json_t *record, const struct rnnd_metrics *result, int64_t classes)
{
    int fault = json_object_set_new(record, "loss", rnnd__json_number(result->loss)) |
                json_object_set_new(record, "targets", json_integer(result->targets));
    for (int i = 0; i < result->figures; i++)
        fault |= json_object_set_new(record, result->figure[i].name,
                                     rnnd__json_number(result->figure[i].value));
    if (!fault && result->table && result->table->classes <= classes)
        fault = add_table(record, result->table);
    return fault ? rnnd__fail_memory(0, "a metrics record") : 0;
}

static int json_text(const struct rnnd_metrics *result, char **out)
{
    json_t *object = json_object();
    int status = rnnd__result_add(object, result, INT64_MAX);
    char *line = status == 0 ? json_dumps(object, RNND_JSON_STYLE) : NULL;
    json_decref(object);
    RNND_TRY(status);
    int n = line ? asprintf(out, "%s\n", line) : -1;
    free(line);
    return n < 0 ? rnnd__fail_memory(0, "a result") : 0;
}

/* ---- text */

static void put_line(FILE *out, const char *name, double value)
{
    char text[32];
    rnnd__real_text(value, text);
    fprintf(out, "%s %s\n", name, text);
}

/* The name of class k, or its number in number[24]. */
static const char *name_of(const struct rnnd_class_table *t, int64_t k, char *number)
{
    if (t->row[k].name)
        return t->row[k].name;
    snprintf(number, 24, "%" PRId64, k);
    return number;
}

/* A name, padded to a width. */
static void put_name(FILE *out, const char *name, int width)
{
    int columns = rnnd__plain_put(out, name);
    fprintf(out, "%*s", width - columns, "");
}

static int widest_name(const struct rnnd_class_table *t)
{
    int widest = (int)strlen("class");
    for (int64_t k = 0; k < t->classes; k++) {
        char number[24];
        int width = rnnd__plain_put(NULL, name_of(t, k, number));
        widest = width > widest ? width : widest;
    }
    return widest;
}

static void put_share(FILE *out, double value)
{
    if (isnan(value))
        fprintf(out, "  %9s", "-");
    else
        fprintf(out, "  %9.4f", value);
}

static void put_rows(FILE *out, const struct rnnd_class_table *t, int width)
{
    putc('\n', out);
    put_name(out, "class", width);
    fprintf(out, "  %9s  %9s  %9s  %9s", "support", "precision", "recall", "f1");
    fputs(t->confusion ? "\n" : "      auroc  average_precision\n", out);
    for (int64_t k = 0; k < t->classes; k++) {
        const struct rnnd_class_figures *c = &t->row[k];
        char number[24];
        put_name(out, name_of(t, k, number), width);
        fprintf(out, "  %9" PRId64, c->support);
        put_share(out, c->precision);
        put_share(out, c->recall);
        put_share(out, c->f1);
        if (!t->confusion) {
            put_share(out, c->auroc);
            put_share(out, c->average_precision);
        }
        putc('\n', out);
    }
}

static void put_matrix(FILE *out, const struct rnnd_class_table *t, int width)
{
    int64_t n = t->classes;
    fputs("\nconfusion: a row per class, a column per predicted class, in this order\n",
          out);
    for (int64_t i = 0; i < n; i++) {
        char number[24];
        put_name(out, name_of(t, i, number), width);
        for (int64_t j = 0; j < n; j++)
            fprintf(out, "  %6" PRId64, t->confusion[i * n + j]);
        putc('\n', out);
    }
}

int rnnd__result_text(const struct rnnd_metrics *result, bool json, char **text)
{
    const struct rnnd_class_table *table = result->table;
    char *lines = NULL;
    size_t size;
    if (json)
        return json_text(result, text);
    FILE *out = open_memstream(&lines, &size);
    if (!out)
        return rnnd__fail_memory(0, "a result");
    put_line(out, "loss", result->loss);
    fprintf(out, "targets %" PRId64 "\n", result->targets);
    for (int i = 0; i < result->figures; i++)
        put_line(out, result->figure[i].name, result->figure[i].value);
    if (table)
        put_rows(out, table, widest_name(table));
    if (table && table->confusion && table->classes <= SHOWN_CLASSES)
        put_matrix(out, table, widest_name(table));
    bool lost = ferror(out);
    if (fclose(out) != 0 || lost) {
        free(lines);
        return rnnd__fail_memory(0, "a result");
    }
    *text = lines;
    return 0;
}
