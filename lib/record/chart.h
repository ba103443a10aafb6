/*
 * chart.h - curves over a common axis, as SVG inside an HTML page.
 */
#ifndef RNND_CHART_H
#define RNND_CHART_H

#include "rnn_dist.h"

struct rnnd__chart;

/* title and axis are kept by reference. */
RNND_CHECKED int rnnd__chart_new(const char *title, const char *axis,
                                 struct rnnd__chart **out);
/* A point of curve 2 i, or of its thin companion 2 i + 1, both in the colour of i. A y
   that is not finite makes a gap. */
RNND_CHECKED int rnnd__chart_add(struct rnnd__chart *chart, int curve, double x,
                                 double y);
/* A <figure>; nothing where there is no point. Long curves are thinned out: then a
   point is the mean of some. */
void rnnd__chart_put(const struct rnnd__chart *chart, FILE *out);
void rnnd__chart_free(struct rnnd__chart *chart);

/* As CSS has it. */
const char *rnnd__chart_colour(int i);

#endif
