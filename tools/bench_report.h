/* What jitgemm-bench writes on standard output: series, counts and targets in; a table, CSV or JSON out.
 *
 * The shapes are few so that every command, and what compares runs, can do with them: a series is a summary of samples of one
 * unit, a count is an integer, a target is a value with the bound that it should keep. */
#ifndef JG_TOOLS_BENCH_REPORT_H
#define JG_TOOLS_BENCH_REPORT_H

#include "bench_args.h"
#include "bench_stats.h"

#include <cjson/cJSON.h>

/* Where it was measured. */
typedef struct bench_environment {
    char device[128];
    int arch;                 /* 90 for sm_90 */
    int driver_version;       /* 13000 for CUDA 13.0 */
    char compiler[64];        /* of the kernels in the cache file, e.g. "NVRTC 13.0"; "" if unknown */
    int processors, allowed;  /* of the host, and those of them that this process may use */
    int software;             /* the software GPU: there are no times */
} bench_environment;

/* Which of a summary's figures the table shows; CSV and JSON have them all. */
typedef enum bench_columns { BENCH_TAIL, BENCH_SPREAD, BENCH_STEPS } bench_columns;

/* Zero-initialise but for format and command. */
typedef struct bench_report {
    bench_format format;
    bench_command command;
    bench_environment environment;
    size_t missed;            /* targets */
    int interrupted;
    const char *unit;
    bench_columns columns;
    int began, shown;         /* the table: what stands above the next line, see bench_report.c */
    cJSON *series, *counts, *targets, *notes;
    int out_of_memory;
    int write_error;          /* errno of the first write that failed */
} bench_report;

/* Before all else; what comes before it is lost. */
void bench_report_begin(bench_report *r, const bench_environment *environment);

/* A new part of the table: what the next series are, of which unit ("us", "ns", "ms"; it must live as long as the report). */
void bench_report_part(bench_report *r, const char *title, const char *unit, bench_columns columns);

/* Sums up samples, which it sorts. An empty series is left out. On the software GPU only their number is shown. */
bench_summary bench_report_series(bench_report *r, const char *name, double *samples, size_t n);

void bench_report_count(bench_report *r, const char *name, uint64_t value);

/* Whether value is at most limit. On the software GPU there are no targets. */
void bench_report_target(bench_report *r, const char *name, double value, const char *unit, double limit);

/* A sentence about what the numbers mean. */
void bench_report_note(bench_report *r, const char *text);

/* After all else; frees what the report holds. Returns 0, or -1 if memory ran out. */
int bench_report_end(bench_report *r);

#endif
