/* What jitgemm-bench writes: series, counts, targets and rows of products in; a table, CSV or JSON on standard output, and a
 * document (bench_result.h) out.
 *
 * The shapes are few so that every command, and what compares runs, can do with them: a series is a summary of samples of one
 * unit, a count is an integer, a target is a value with the bound that it should keep, a row is a product (bench_contest.h). */
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

/* Zero-initialise but for format. */
typedef struct bench_report {
    bench_format format;
    const char *command;      /* the one at work, see bench_report_command */
    bench_environment environment;
    int host_times;           /* the series are times of the host alone: they hold on the software GPU too */
    size_t missed;            /* targets */
    int interrupted;
    const char *unit;
    bench_columns columns;
    int began, shown;         /* the table: what stands above the next line, see bench_report.c */
    int has_rows_above;       /* CSV: the line above is of the rows' own table (bench_rows.c) */
    char started[32];
    cJSON *facts;             /* "environment" */
    /* Arrays; null: empty. */
    cJSON *commands, *ceilings, *rows, *summaries, *plans, *gaps, *compiles, *memory, *series, *counts, *targets, *notes;
    int out_of_memory;
    int write_error;          /* errno of the first write that failed */
} bench_report;

/* Says which command what follows belongs to; the first before all else. The name must live as long as the report. */
void bench_report_command(bench_report *r, const char *name);

/* Before all else but that. A second call, by a further command of the same run, is ignored. */
void bench_report_begin(bench_report *r, const bench_environment *environment);

/* A further fact of the environment, under its JSON name. */
void bench_report_fact(bench_report *r, const char *name, const char *text);
void bench_report_fact_number(bench_report *r, const char *name, double value);
void bench_report_fact_flag(bench_report *r, const char *name, int value);

/* A new part of the table: what the next series are, of which unit ("us", "ns", "ms"; it must live as long as the report). */
void bench_report_part(bench_report *r, const char *title, const char *unit, bench_columns columns);

/* Sums up samples, which it sorts. An empty series is left out. On the software GPU only their number is shown. */
bench_summary bench_report_series(bench_report *r, const char *name, double *samples, size_t n);

void bench_report_count(bench_report *r, const char *name, uint64_t value);

/* Whether value is at most limit. On the software GPU there are no targets. */
void bench_report_target(bench_report *r, const char *name, double value, const char *unit, double limit);

/* A sentence about what the numbers mean. */
void bench_report_note(bench_report *r, const char *text);

/* Writes a field of CSV, in quotes where that is needed. */
void bench_report_csv_text(const char *text);

/* An object for one of the document's arrays, `r->rows` and the like, which takes it. Null (memory ran out) is allowed. */
void bench_report_add(bench_report *r, cJSON **array, cJSON *object);

/* To be called before and after something else than the report writes to standard output: the table ends here. */
void bench_report_break(bench_report *r);

/* After all else: the whole as one document, the caller's; the report is empty then. Null if memory ran out, or nothing began. */
cJSON *bench_report_take(bench_report *r);

/* Writes the document to standard output, if the format is JSON. Returns 0, or -1 if memory ran out. */
int bench_report_print(bench_report *r, const cJSON *document);

#endif
