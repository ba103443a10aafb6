/*
 * report.h - an HTML page about one or several runs, from their metrics.jsonl.
 */
#ifndef RNND_REPORT_H
#define RNND_REPORT_H

#include "rnn_dist.h"

/* Writes a self-contained HTML page with results, curves and options of the runs in
   these folders, the one with the best validation first. Atomic. EFILE where a folder
   has no metrics.jsonl or out cannot be written, EDATA where the file is not the record
   of a run. */
RNND_CHECKED int rnnd__report(const char *const *run, int count, const char *out);

#endif
