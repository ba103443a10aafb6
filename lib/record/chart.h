/*
 * chart.h - curves over a common axis, as SVG inside an HTML page.
 */
#ifndef RNND_CHART_H
#define RNND_CHART_H

#include "rnn_dist.h"

struct rnnd__chart;

/* title and axis are borrowed. Freed by rnnd__chart_free. */
RNND_CHECKED int rnnd__chart_new(const char *title, const char *axis,
                                 struct rnnd__chart **out);
/* Whether no two points differ in y, so that there is no curve to see. */
bool rnnd__chart_is_flat(const struct rnnd__chart *chart);
/* Whether curve i has a point. */
bool rnnd__chart_has(const struct rnnd__chart *chart, int i);
/* Appends a point to curve 2 i, or to the thin curve 2 i + 1, both in the colour of
   i. A y that is not finite makes a gap. EDEVICE where there is no memory. */
RNND_CHECKED int rnnd__chart_add(struct rnnd__chart *chart, int curve, double x,
                                 double y);
/* Writes an <svg> as wide as what holds it, or nothing where there are no points. Of a
   long curve, several points are drawn as their mean, and a point without neighbours is
   a dot. Write errors are left to the stream. */
void rnnd__chart_put(const struct rnnd__chart *chart, FILE *out);
void rnnd__chart_free(struct rnnd__chart *chart);

/* The colour of curve i, in CSS notation. */
const char *rnnd__chart_colour(int i);

#endif
