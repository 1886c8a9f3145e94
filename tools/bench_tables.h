/* The tables of the page: every row that was measured, series, counts, targets, the comparison with a baseline. */
#ifndef JG_TOOLS_BENCH_TABLES_H
#define JG_TOOLS_BENCH_TABLES_H

#include "bench_page.h"

/* All rows, a folded table for each group; counters where there are no times. */
void bench_write_rows(bench_page *page, const cJSON *result);

/* The series of the command and unit of this one. */
void bench_write_series(bench_page *page, const cJSON *first);

void bench_write_counts(bench_page *page, const cJSON *result);
void bench_write_targets(bench_page *page, const cJSON *result);
void bench_write_drift(bench_page *page, const cJSON *drift);

/* The series after this one of the same command and unit, which share a table and a picture; null after the last. */
const cJSON *bench_series_next(const cJSON *series);

/* The largest error of our result of a row / what is allowed; NaN if it was not checked. */
double bench_row_error(const cJSON *row);

#endif
