/* How far the planner's model is from the plans that were measured to be the fastest: what the parts of jitgemm-bench planner share.
 * Recorded plans of a cache file (bench_planner.c) in; a table or CSV (bench_planner_rows.c) or JSON (bench_planner_json.c) out. */
#ifndef JG_TOOLS_BENCH_PLANNER_H
#define JG_TOOLS_BENCH_PLANNER_H

#include "bench_label.h"
#include "bench_products.h"

#define PLANNER_WORST 10 /* so many are shown of a suite */

/* As jg_cache_plan and jg_measured; texts are the record's own, "" where unknown. */
typedef struct planner_record {
    char *problem, *place, *kernel, *planned, *runner_up, *reason, *device;
    double us, planned_us, runner_up_us;
    uint32_t measured, all;
    int is_listed;            /* it is of one of the problems asked for */
} planner_record;

/* One problem; record: null where there is none. */
typedef struct planner_row {
    const char *problem;
    const planner_record *record;
} planner_row;

/* What rows come to. */
typedef struct planner_sum {
    size_t problems, recorded;
    size_t known, right;      /* of those recorded: time of the model's choice known; it is the fastest */
    double logarithms;        /* of the losses known */
    const planner_record *slowest; /* with the greatest loss; null: none is known */
} planner_sum;

/* The problems of one list and type. */
typedef struct planner_group {
    const char *suite, *list;
    char type[BENCH_LABEL_BYTES];
    planner_row *rows;        /* sum.problems of them; the group's own */
    planner_sum sum;
} planner_group;

/* All of one place. Groups of one suite are neighbours. */
typedef struct planner_block {
    const char *place, *device; /* device: of the first record */
    size_t records;
    int software;             /* numbers of instructions take the place of times */
    planner_group *groups;
    size_t count;
    planner_sum sum;
} planner_block;

/* Time of the model's choice over that of the recorded plan; NaN if unknown. */
double planner_loss(const planner_record *r);

/* Whether the model's choice is the fastest. */
int planner_is_right(const planner_record *r);

/* Geometric mean of the losses; NaN if none is known. */
double planner_mean(const planner_sum *sum);

void planner_add(planner_sum *to, const planner_sum *what);

/* The sum of the groups of one suite, from number `first` on. *end: the first group that is none of it. */
planner_sum planner_suite(const planner_block *b, size_t first, size_t *end);

/* The records of these groups with the greatest losses above 1, the greatest first; each once. Returns how many. */
size_t planner_worst(const planner_block *b, size_t first, size_t end, const planner_record *worst[PLANNER_WORST]);

/* Writes a block as a part of the table, or as lines of CSV under one heading. path: the cache file. */
void planner_print_table(const planner_block *b, const char *path, int is_first);
void planner_print_csv(const planner_block *b, int is_first);

/* Writes all as a document, see bench_result.h. Returns 0, or -1 if memory ran out. */
int planner_print_json(const planner_block *blocks, size_t count, const char *path);

#endif
