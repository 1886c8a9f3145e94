/* In which order problems are measured, and what is compiled for it: a list in, steps and compile jobs out. */
#ifndef JG_TOOLS_TUNE_STEPS_H
#define JG_TOOLS_TUNE_STEPS_H

#include "tune_compile.h"
#include "tune_list.h"

/* One measurement: the candidates of a problem's rank up to number `limit` that have not been measured, beside the model's choice and
 * the best so far. */
typedef struct tune_step {
    tune_problem *problem;
    size_t limit, pass;      /* passes count from 0 */
} tune_step;

/* Zero-initialise; free with tune_steps_free. */
typedef struct tune_steps {
    tune_step *steps;
    size_t count, passes;
    tune_job *jobs;          /* those of a step beside each other, in the steps' order */
    size_t job_count;
} tune_steps;

/* Steps for the problems whose outcome is LEFT. first: candidates of each problem in the first pass over all of them; every pass goes
 * twice as far as the one before, so that every problem gets something before any gets all. 0: all in one pass. The list must stay
 * as it is while they are used. Returns 0, or -1 if memory ran out. */
int tune_steps_make(tune_list *list, size_t first, tune_steps *out);
void tune_steps_free(tune_steps *steps);

#endif
