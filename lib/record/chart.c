/*
 * chart.c - draws curves as SVG: finds the ranges, draws a grid at round numbers and
 * the curves.
 */
#include "record/chart.h"

#include <math.h>
#include <stdlib.h>

#include "base/list.h"
#include "base/status.h"

struct point {
    double x, y;
};

struct rnnd__chart {
    const char *title, *axis;
    /* list of struct rnnd__list, each of struct point */
    struct rnnd__list curve;
};

enum { WIDTH = 460, HEIGHT = 260, LEFT = 70, RIGHT = 28, TOP = 8, BOTTOM = 34 };
enum { LINES = 5, POINTS = 600 }; /* grid lines (about); points of a curve (at most) */

const char *rnnd__chart_colour(int i)
{
    static const char *const colour[] = {"#3572b0", "#d1602c", "#2f9156", "#a64ca6",
                                         "#b0902a", "#c23b55", "#3aa3a8", "#7a6a5a"};
    return colour[i % (int)(sizeof colour / sizeof *colour)];
}

int rnnd__chart_new(const char *title, const char *axis, struct rnnd__chart **out)
{
    struct rnnd__chart *chart = NULL;
    RNND_TRY(RNND_NEW(&chart, 1, "a chart"));
    *chart = (struct rnnd__chart){title, axis, {.size = sizeof(struct rnnd__list)}};
    *out = chart;
    return 0;
}

static struct rnnd__list *curve_of(const struct rnnd__chart *chart, int64_t i)
{
    return (struct rnnd__list *)chart->curve.at + i;
}

int rnnd__chart_add(struct rnnd__chart *chart, int curve, double x, double y)
{
    while (chart->curve.count <= curve) {
        struct rnnd__list points = {.size = sizeof(struct point)};
        RNND_TRY(rnnd__list_add(&chart->curve, &points, 1));
    }
    struct point point = {x, y};
    return rnnd__list_add(curve_of(chart, curve), &point, 1);
}

void rnnd__chart_free(struct rnnd__chart *chart)
{
    for (int64_t i = 0; i < chart->curve.count; i++)
        rnnd__list_clear(curve_of(chart, i));
    rnnd__list_clear(&chart->curve);
    free(chart);
}

/* ---- ranges */

struct range {
    /* low and high are grid lines */
    double low, high, step;
};

static void widen(struct range *r, double value)
{
    if (!(value >= r->low)) /* also the first */
        r->low = value;
    if (!(value <= r->high))
        r->high = value;
}

/* Sets the step to 1, 2 or 5 times a power of ten, for about LINES lines, and extends
   the range to multiples of it. */
static void round_out(struct range *r)
{
    if (r->high - r->low < 1e-9 * fmax(fabs(r->low), fabs(r->high)) ||
        r->high == r->low) {
        double margin = r->high != 0 ? 0.1 * fabs(r->high) : 1;
        r->low -= margin;
        r->high += margin;
    }
    double rough = (r->high - r->low) / LINES, power = pow(10, floor(log10(rough)));
    r->step = power * (rough > 5 * power   ? 10
                       : rough > 2 * power ? 5
                       : rough > power     ? 2
                                           : 1);
    r->low = floor(r->low / r->step * (1 + 1e-12)) * r->step;
    r->high = ceil(r->high / r->step * (1 - 1e-12)) * r->step;
}

/* Ranges of all finite points; false where there are none. */
static bool ranges(const struct rnnd__chart *chart, struct range *x, struct range *y)
{
    *x = *y = (struct range){NAN, NAN, 0};
    for (int64_t i = 0; i < chart->curve.count; i++) {
        const struct rnnd__list *curve = curve_of(chart, i);
        const struct point *p = curve->at;
        for (int64_t j = 0; j < curve->count; j++)
            if (isfinite(p[j].x) && isfinite(p[j].y)) {
                widen(x, p[j].x);
                widen(y, p[j].y);
            }
    }
    if (isnan(x->low))
        return false;
    round_out(x);
    round_out(y);
    return true;
}

bool rnnd__chart_is_flat(const struct rnnd__chart *chart)
{
    struct range y = {NAN, NAN, 0};
    for (int64_t i = 0; i < chart->curve.count; i++) {
        const struct rnnd__list *curve = curve_of(chart, i);
        const struct point *p = curve->at;
        for (int64_t j = 0; j < curve->count; j++)
            if (isfinite(p[j].x) && isfinite(p[j].y))
                widen(&y, p[j].y);
    }
    return !(y.low < y.high);
}

bool rnnd__chart_has(const struct rnnd__chart *chart, int i)
{
    if (i >= chart->curve.count)
        return false;
    const struct rnnd__list *curve = curve_of(chart, i);
    const struct point *p = curve->at;
    for (int64_t j = 0; j < curve->count; j++)
        if (isfinite(p[j].x) && isfinite(p[j].y))
            return true;
    return false;
}

static double place_x(const struct range *x, double value)
{
    return LEFT + (WIDTH - LEFT - RIGHT) * (value - x->low) / (x->high - x->low);
}

static double place_y(const struct range *y, double value)
{
    return HEIGHT - BOTTOM -
           (HEIGHT - TOP - BOTTOM) * (value - y->low) / (y->high - y->low);
}

/* ---- drawing */

static int lines_of(const struct range *r)
{
    return (int)lround((r->high - r->low) / r->step);
}

/* Exactly 0 where rounding errors leave a tiny number. */
static double grid_value(const struct range *r, int i)
{
    double value = r->low + i * r->step;
    return fabs(value) < 1e-9 * r->step ? 0 : value;
}

static void put_grid(const struct range *x, const struct range *y, FILE *out)
{
    for (int i = 0; i <= lines_of(y); i++) {
        double at = place_y(y, grid_value(y, i));
        fprintf(out,
                "<path class=grid d=\"M%d %.1fH%d\"/>"
                "<text x=%d y=%.1f text-anchor=end>%.7g</text>\n",
                LEFT, at, WIDTH - RIGHT, LEFT - 6, at + 4, grid_value(y, i));
    }
    for (int i = 0; i <= lines_of(x); i++) {
        double at = place_x(x, grid_value(x, i));
        fprintf(out,
                "<path class=grid d=\"M%.1f %dV%d\"/>"
                "<text x=%.1f y=%d text-anchor=middle>%.7g</text>\n",
                at, TOP, HEIGHT - BOTTOM, at, HEIGHT - BOTTOM + 15, grid_value(x, i));
    }
}

/* The mean of count points; not finite if any of them is not. */
static struct point mean(const struct point *p, int64_t count)
{
    struct point sum = {0, 0};
    for (int64_t i = 0; i < count; i++) {
        sum.x += p[i].x / (double)count;
        sum.y += p[i].y / (double)count;
    }
    return sum;
}

/* Point i of those that are drawn, of which each is the mean of several; not finite
   beyond the ends. */
static struct point drawn(const struct rnnd__list *curve, int64_t i)
{
    int64_t each = (curve->count + POINTS - 1) / POINTS, at = i * each;
    const struct point *p = curve->at;
    if (i < 0 || at >= curve->count)
        return (struct point){NAN, NAN};
    return mean(p + at, curve->count - at < each ? curve->count - at : each);
}

static bool is_there(struct point p)
{
    return isfinite(p.x) && isfinite(p.y);
}

/* The points between two gaps, which a line does not show. */
static void put_dots(const struct rnnd__list *curve, int number, const struct range *x,
                     const struct range *y, FILE *out)
{
    for (int64_t i = 0; i < curve->count && i < POINTS; i++) {
        struct point at = drawn(curve, i);
        if (is_there(at) && !is_there(drawn(curve, i - 1)) &&
            !is_there(drawn(curve, i + 1)))
            fprintf(out, "<circle r=3 cx=%.1f cy=%.1f fill=\"%s\"%s/>\n",
                    place_x(x, at.x), place_y(y, at.y), rnnd__chart_colour(number / 2),
                    number % 2 ? " class=thin" : "");
    }
}

static void put_curve(const struct rnnd__list *curve, int number, const struct range *x,
                      const struct range *y, FILE *out)
{
    bool pen = false;
    if (curve->count == 0)
        return;
    fprintf(out, "<path class=\"curve%s\" stroke=\"%s\" stroke-linecap=round d=\"",
            number % 2 ? " thin" : "", rnnd__chart_colour(number / 2));
    for (int64_t i = 0; i < curve->count && i < POINTS; i++) {
        struct point at = drawn(curve, i);
        bool there = is_there(at);
        if (there)
            fprintf(out, "%s%.1f %.1f", pen ? "L" : "M", place_x(x, at.x),
                    place_y(y, at.y));
        pen = there;
    }
    fputs("\"/>\n", out);
    put_dots(curve, number, x, y, out);
}

void rnnd__chart_put(const struct rnnd__chart *chart, FILE *out)
{
    struct range x, y;
    if (!ranges(chart, &x, &y))
        return;
    fprintf(out, "<svg viewBox=\"0 0 %d %d\" role=img aria-label=\"%s\">\n", WIDTH,
            HEIGHT, chart->title);
    put_grid(&x, &y, out);
    fprintf(out, "<text x=%d y=%d text-anchor=end>%s</text>\n", WIDTH - RIGHT,
            HEIGHT - 4, chart->axis);
    for (int64_t i = chart->curve.count; i-- > 0;) /* thin curves below the others */
        put_curve(curve_of(chart, i), (int)i, &x, &y, out);
    fputs("</svg>\n", out);
}
