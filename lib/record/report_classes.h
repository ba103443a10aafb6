/*
 * report_classes.h - the part of a report that tells classes apart: their figures, and
 * the confusion matrix as a picture.
 */
#ifndef RNND_REPORT_CLASSES_H
#define RNND_REPORT_CLASSES_H

#include <stdio.h>

struct json_t;

/* Writes the classes of a valid record of the run of this name, where it has any;
   record NULL: nothing. */
void rnnd__report_classes(FILE *out, const char *run, const struct json_t *record);

/* Text in which HTML reads no mark-up. */
void rnnd__report_text(FILE *out, const char *text);

#endif
