/* Rows of measured products as lines of a table or of CSV: objects as "rows" and "summaries" of bench_result.h have them in, text
 * on standard output out. */
#ifndef JG_TOOLS_BENCH_ROWS_H
#define JG_TOOLS_BENCH_ROWS_H

#include "bench_report.h"

/* What the lines before were of; zero-initialise. */
typedef struct bench_rows {
    char group[768];    /* suite, type and data */
    unsigned shown;     /* bits of the columns under this group's heading: the contestants of its first row */
    int has_cost;       /* the group is of the suite of misaligned layouts */
    int width;          /* of the column of sizes */
    char refused[4096]; /* reasons already said in this group, a line each */
} bench_rows;

/* Takes a row into the report and writes its line, under a heading where a new group begins. */
void bench_rows_add(bench_rows *rows, bench_report *r, cJSON *row);

/* The median of our kernel, in us; NaN if there is none. */
double bench_row_us(const cJSON *row);

/* Sums up the group of the rows from number `first` of the report on: geometric mean, worst and best ratio, of right results.
 * Nothing where no row has a ratio. */
void bench_rows_sum_up(bench_report *r, int first);

#endif
