/* What tuning did, for people and for programs: problems with their outcomes in; lines, a table, or JSON out. */
#ifndef JG_TOOLS_TUNE_REPORT_H
#define JG_TOOLS_TUNE_REPORT_H

#include "tune_list.h"

#include <stdio.h>

/* What is said of the run as a whole. Texts are the caller's. */
typedef struct tune_facts {
    const char *cache, *place, *device, *power_mode;
    double sm_mhz;           /* 0: unknown */
    double elapsed_ms, budget_ms; /* budget_ms = 0: none */
    size_t compiled;
    int software;            /* numbers of instructions take the place of times */
    int dry_run, interrupted, out_of_time;
} tune_facts;

typedef struct tune_counts {
    size_t tuned, kept, known, failed, left, empty, too_large;
} tune_counts;
tune_counts tune_count(const tune_list *list);

/* The geometric mean of the gains of the problems with a recorded plan; 0: there is none. */
double tune_mean_gain(const tune_list *list);

/* A line for one problem, without its end: outcome, gain, time and plan, or why it failed. */
void tune_report_line(const tune_problem *problem, int software, char *text, size_t size);

/* A table of the groups, each type by itself: how many sizes there are, how many have a recorded plan, of how many that is faster than
 * the model's choice, the geometric mean of the gains, and the best. */
void tune_report_table(const tune_list *list, const tune_facts *facts, FILE *stream);

/* "tuned N, kept N, failed N, left N", the line that scripts read. */
void tune_report_last_line(const tune_list *list, FILE *stream);

/* Everything as one JSON object. Returns 0, or -1 if memory ran out. */
int tune_report_json(const tune_list *list, const tune_facts *facts, FILE *stream);

#endif
