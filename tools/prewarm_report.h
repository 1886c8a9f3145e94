/* What a prewarm did: steps of the progress callback in; counts, a list of failures and JSON out. */
#ifndef JG_TOOLS_PREWARM_REPORT_H
#define JG_TOOLS_PREWARM_REPORT_H

#include <stdio.h>

#include "jitgemm.h"

/* One kernel. Texts are the row's own; outcome is "compiled", "cached", "failed" or, in a dry run, "planned". */
typedef struct report_row {
    char *problem, *kernel, *error;
    const char *outcome;
    double ms;
} report_row;

/* Zero-initialise; free with report_free. */
typedef struct report {
    report_row *rows;
    size_t count, capacity;
    size_t compiled, cached, failed;
    int interrupted;
    double budget_ms;        /* 0: none */
    size_t left;             /* kernels not made, of the architectures begun: the time was over, or it was interrupted */
    size_t archs_left;       /* architectures not begun, for the same reasons */
    const char *generic_set; /* what to say about it; null: nothing */
    int takes_misses, seals; /* whether these were asked for */
    size_t misses;           /* found, of all architectures */
    int sealed;
    int repaired;            /* the cache file was damaged and is made anew */
    double elapsed_ms;
    char cache_path[512], factory_path[512];
} report;

/* Adds a row with copies of the texts. Returns it, or null if memory ran out. */
report_row *report_add(report *r, const char *outcome, const char *problem, const char *kernel, const char *error,
                       double ms);

/* Lists the failed rows from `first` on, each with its reason; a reason that repeats is written once. */
void report_failures(const report *r, size_t first, FILE *stream);

/* Writes everything as one JSON object. Returns 0, or -1 if memory ran out. */
int report_json(const report *r, FILE *stream);

/* "compiled N, cached N, failed N", the line that scripts read. */
void report_last_line(const report *r, FILE *stream);

/* "sm_87" from "jg_sm87_..."; "" if the kernel has no name. */
void report_target(const char *kernel, char *target, size_t size);

void report_free(report *r);

#endif
