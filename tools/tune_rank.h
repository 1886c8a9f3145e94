/* Which plans of a problem are worth measuring: a problem in, numbers of candidates out. */
#ifndef JG_TOOLS_TUNE_RANK_H
#define JG_TOOLS_TUNE_RANK_H

#include "jitgemm.h"

#include <stddef.h>

/* Candidates that the planner's model takes for so many times slower than its best are not measured: it errs by 2 to 3 % on average
 * and by up to 1.3 times with single kernels. */
#define TUNE_HOPELESS 1.6

/* Zero-initialise; free with tune_rank_free. */
typedef struct tune_rank {
    size_t *indices;         /* as jg_plan_create_candidate numbers them: the model's choice, then by the model's estimate */
    size_t count;            /* 0: there is nothing to compute */
    size_t all;              /* there are so many, of which those may have been chosen */
} tune_rank;

/* all_classes: also those that sum in another order. most: at most so many, without hopeless ones; 0: all, these too. Compiles
 * nothing. Errors: NO_MEMORY, those of jg_plan_describe_candidate. */
jg_status tune_rank_make(jg_context *context, const jg_problem *problem, int all_classes, size_t most, tune_rank *out);
void tune_rank_free(tune_rank *rank);

#endif
