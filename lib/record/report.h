/*
 * report.h - one page about one or several runs, from their metrics.jsonl.
 */
#ifndef RNND_REPORT_H
#define RNND_REPORT_H

#include "rnn_dist.h"

/* Writes an HTML page that needs nothing beside it: results, curves and options of the
   runs in these folders, in this order. The page appears whole or not at all. EFILE
   where a folder holds no record of a run, EDATA where it is none of ours. */
RNND_CHECKED int rnnd__report(const char *const *run, int count, const char *out);

#endif
