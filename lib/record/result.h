/*
 * result.h - the result of an evaluation as text and as JSON, and the values of JSON
 * records.
 *
 * Numbers that are not finite become null. Knows no file.
 */
#ifndef RNND_RESULT_H
#define RNND_RESULT_H

#include <jansson.h>

#include "rnn_dist.h"

enum { RNND_JSON_STYLE = JSON_REAL_PRECISION(17) };

/* Classes that a record of metrics.jsonl describes one by one, at most. */
enum { RNND_RECORD_CLASSES = 50 };

/* Each returns NULL without memory. In text that is not UTF-8, which JSON requires,
   other bytes become '?'. */
json_t *rnnd__json_number(double value);
json_t *rnnd__json_text(const char *value);

/* Adds the members of a result to an object, which may be NULL for lack of memory; its
   table of classes only where they are at most `classes`. */
RNND_CHECKED int rnnd__result_add(json_t *record, const struct rnnd_metrics *result,
                                  int64_t classes);
/* "name value" lines for loss, targets and figures, followed by the table of classes
   and the confusion matrix; or one JSON object. malloc'ed and freed by the caller. */
RNND_CHECKED int rnnd__result_text(const struct rnnd_metrics *result, bool json,
                                   char **text);

#endif
