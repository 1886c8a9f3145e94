/* What is to be tuned: sizes of the command line and of the cache file's misses in; each problem once, with what became of it, out. */
#ifndef JG_TOOLS_TUNE_LIST_H
#define JG_TOOLS_TUNE_LIST_H

#include "bench_contest.h"
#include "prewarm_args.h"
#include "tune_rank.h"

/* LEFT: there was no time. KEPT: what the planner's model chooses is the fastest. KNOWN: an earlier run has tuned it. EMPTY: there is
 * nothing to compute. TOO_LARGE: for the software GPU. */
typedef enum tune_outcome {
    TUNE_LEFT, TUNE_TUNED, TUNE_KEPT, TUNE_KNOWN, TUNE_FAILED, TUNE_EMPTY, TUNE_TOO_LARGE
} tune_outcome;
const char *tune_outcome_name(tune_outcome outcome); /* "left", "tuned" ... */

/* Kernel names and times of what was measured; us = 0: nothing was. On the software GPU times are numbers of instructions. */
typedef struct tune_found {
    char kernel[192], planned[192], runner_up[192];
    char reason[256];
    double us, planned_us, runner_up_us; /* 0: unknown */
    size_t measured, all;                /* candidates */
} tune_found;

typedef struct tune_problem {
    bench_product product;     /* its text is the problem's own */
    char *key;                 /* what its plan is recorded under: see tune_key_format */
    tune_rank rank;            /* what is measured, and in which order */
    size_t tried;              /* the first so many of them have been measured, by this run or an earlier one */
    size_t best;               /* the fastest of them, as jg_plan_create_candidate numbers them; with tried = 0 none */
    tune_outcome outcome;
    int is_wrong;              /* a plan gave a wrong result; it was passed over */
    tune_found found;
    int64_t created;           /* when an earlier run recorded what was found, in seconds since 1970; 0: none did */
    char error[512];           /* why it failed, or what was passed over; "" if neither */
} tune_problem;

/* Zero-initialise; free with tune_list_free. */
typedef struct tune_list {
    tune_problem *problems;
    size_t count, capacity;
    size_t *rows;              /* a problem's number for each size that was asked for; equal ones share it */
    size_t row_count;
    prewarm_group *groups;     /* where these are from; `end` counts rows */
    size_t group_count;
    char error[1024];          /* of the last call that failed */
} tune_list;

/* Takes the sizes of the command line, those of a group type by type. l2_bytes: the GPU's, for lists whose claim is the memory; 0:
 * operands stay where they are. Returns 0, or -1 with list->error set. */
int tune_list_add_sizes(tune_list *list, const prewarm_args *args, int l2_bytes);

/* Takes problem texts, such as those of the misses. One that this library cannot read is passed over, and counted in *passed.
 * Returns as above. */
int tune_list_add_texts(tune_list *list, const char *group, char *const *texts, size_t count, size_t *passed);

void tune_list_free(tune_list *list);

/* The text that recorded plans of a problem have: others that come to the same product, such as one stored the other way round, share
 * it. JG_PROBLEM_TEXT_BYTES are enough; "" for a bad problem. */
void tune_key_format(const jg_problem *in, char *text, size_t size);

/* How many times as fast as the model's choice what was found is; 0: unknown. */
double tune_gain(const tune_found *found);

/* Whether a problem has a recorded plan, from this run or an earlier one. */
int tune_is_recorded(const tune_problem *problem);

#endif
