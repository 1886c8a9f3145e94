/* Products with all their candidates as lines of a table or of CSV: objects as "plans" and "gaps" of bench_result.h have them in,
 * text out. */
#ifndef JG_TOOLS_BENCH_PLAN_ROWS_H
#define JG_TOOLS_BENCH_PLAN_ROWS_H

#include "bench_report.h"

#include <stdio.h>

/* What the lines before were of; zero-initialise but for the file. */
typedef struct bench_plan_rows {
    FILE *file;             /* also gets the lines of CSV, whatever the report's format; null: none */
    char group[768];        /* suite, type and data */
    int has_heading;        /* the file's */
    int write_error;        /* errno of the file's first write that failed */
} bench_plan_rows;

/* Takes a row into the report and writes its line, under a heading where a new group begins; a line for each candidate in CSV. */
void bench_plan_rows_add(bench_plan_rows *rows, bench_report *r, cJSON *row);

/* Sums up the group of the rows from number `first` of the report on: geometric mean and worst of the gaps. Nothing where there is
 * none. */
void bench_plan_rows_sum_up(bench_report *r, int first);

#endif
