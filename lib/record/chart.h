/*
 * chart.h - curves over a common axis, as SVG inside an HTML page.
 */
#ifndef RNND_CHART_H
#define RNND_CHART_H

#include "rnn_dist.h"

struct rnnd_chart;

/* title and axis are kept by reference. */
RNND_CHECKED int rnnd_chart_new(const char *title, const char *axis,
                                struct rnnd_chart **out);
/* A point of curve 2 i, or of its thin companion 2 i + 1, both in the colour of i. A y
   that is not finite makes a gap. */
RNND_CHECKED int rnnd_chart_add(struct rnnd_chart *chart, int curve, double x,
                                double y);
/* A <figure>; nothing where there is no point. Long curves are thinned out: then a
   point is the mean of some. */
void rnnd_chart_put(const struct rnnd_chart *chart, FILE *out);
void rnnd_chart_free(struct rnnd_chart *chart);

/* As CSS has it. */
const char *rnnd_chart_colour(int i);

#endif
