/*
 * report_classes.c - writes the table of classes and the confusion matrix of a report.
 */
#include "record/report_classes.h"

#include <inttypes.h>
#include <jansson.h>

void rnnd__report_text(FILE *out, const char *text)
{
    for (; *text; text++)
        switch (*text) {
        case '&':
            fputs("&amp;", out);
            break;
        case '<':
            fputs("&lt;", out);
            break;
        case '>':
            fputs("&gt;", out);
            break;
        case '"':
            fputs("&quot;", out);
            break;
        default:
            putc(*text, out);
        }
}

static void put_name(FILE *out, const json_t *class)
{
    const json_t *name = json_object_get(class, "class");
    if (json_is_string(name))
        rnnd__report_text(out, json_string_value(name));
    else
        fprintf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(name));
}

static void put_classes(FILE *out, const json_t *classes)
{
    static const char *const shares[] = {"precision", "recall", "f1", "auroc",
                                         "average_precision"};
    /* the last two are of answers alone */
    const json_t *first = json_array_get(classes, 0);
    int columns = json_object_get(first, "auroc") ? 5 : 3;
    fputs("<table>\n<tr><th>class</th><th>support</th>", out);
    for (int i = 0; i < columns; i++)
        fprintf(out, "<th>%s</th>", shares[i]);
    fputs("</tr>\n", out);
    for (size_t k = 0; k < json_array_size(classes); k++) {
        const json_t *class = json_array_get(classes, k);
        fputs("<tr><td>", out);
        put_name(out, class);
        fprintf(out, "</td><td class=n>%" JSON_INTEGER_FORMAT "</td>",
                json_integer_value(json_object_get(class, "support")));
        for (int i = 0; i < columns; i++) {
            const json_t *share = json_object_get(class, shares[i]);
            if (json_is_number(share))
                fprintf(out, "<td class=n>%.4f</td>", json_number_value(share));
            else
                fputs("<td class=n>–</td>", out);
        }
        fputs("</tr>\n", out);
    }
    fputs("</table>\n", out);
}

static json_int_t sum_of(const json_t *row)
{
    json_int_t sum = 0;
    for (size_t j = 0; j < json_array_size(row); j++)
        sum += json_integer_value(json_array_get(row, j));
    return sum;
}

/* A row of the matrix; the shade of a cell is its share of the row. */
static void put_row(FILE *out, const json_t *class, const json_t *row)
{
    json_int_t sum = sum_of(row);
    fputs("<tr><td>", out);
    put_name(out, class);
    fputs("</td>", out);
    for (size_t j = 0; j < json_array_size(row); j++) {
        json_int_t n = json_integer_value(json_array_get(row, j));
        double share = sum > 0 ? (double)n / (double)sum : 0;
        fprintf(out,
                "<td class=n style=\"background:rgba(64,128,224,%.2f)\">"
                "%" JSON_INTEGER_FORMAT "</td>",
                0.8 * share, n);
    }
    fputs("</tr>\n", out);
}

static void put_matrix(FILE *out, const json_t *classes, const json_t *matrix)
{
    fputs("<table>\n<tr><th>class \\ predicted</th>", out);
    for (size_t k = 0; k < json_array_size(classes); k++) {
        fputs("<th class=n>", out);
        put_name(out, json_array_get(classes, k));
        fputs("</th>", out);
    }
    fputs("</tr>\n", out);
    for (size_t k = 0; k < json_array_size(matrix); k++)
        put_row(out, json_array_get(classes, k), json_array_get(matrix, k));
    fputs("</table>\n", out);
}

void rnnd__report_classes(FILE *out, const char *run, const json_t *record)
{
    const json_t *classes = json_object_get(record, "classes");
    const json_t *matrix = json_object_get(record, "confusion");
    if (json_array_size(classes) == 0)
        return;
    fputs("<h2>Classes: ", out);
    rnnd__report_text(out, run);
    fprintf(out, ", update %" JSON_INTEGER_FORMAT "</h2>\n",
            json_integer_value(json_object_get(record, "update")));
    fputs("<div style=\"overflow-x:auto\">\n", out);
    put_classes(out, classes);
    if (json_is_array(matrix))
        put_matrix(out, classes, matrix);
    fputs("</div>\n", out);
}
