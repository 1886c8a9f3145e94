/* What jitgemm-swgpu writes on standard output: counted products in; a table, CSV or JSON out. */
#ifndef JG_TOOLS_COUNTERS_REPORT_H
#define JG_TOOLS_COUNTERS_REPORT_H

#include "counters_args.h"

#include <cjson/cJSON.h>

/* One product that ran. */
typedef struct counters_row {
    const char *size;       /* problem text */
    const char *kernel;     /* "": there was nothing to compute */
    uint64_t multiply_adds; /* of the whole product */
    jg_counters counters;   /* without instructions for a product that has a kernel: counting is off */
    int runs;               /* that were timed; 0: none */
    double ms;              /* their median */
} counters_row;

/* Zero-initialise but for format and time. */
typedef struct counters_report {
    counters_format format;
    int time;
    size_t counted, found, failed; /* products; found has also what belongs to none */
    int interrupted;
    cJSON *rows;
    int out_of_memory;
    int write_error; /* errno of the first write that failed */
} counters_report;

/* Before the first product. */
void counters_report_begin(counters_report *r);

/* Adds a product that ran: prints it at once, but for JSON. */
void counters_report_add(counters_report *r, const counters_row *row);

/* Adds a product that did not run to its end, or, with size null, what was found after all of them. Only JSON says so
 * here; standard error says it always. */
void counters_report_add_failure(counters_report *r, const char *size, int was_found, const char *text);

/* After the last product; frees what the report holds. Returns 0, or -1 if memory ran out. */
int counters_report_end(counters_report *r);

#endif
