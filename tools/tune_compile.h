/* Candidates compiled ahead of what measures them: jobs in the order in which they are wanted in, kernels in the context's cache
 * file out. Its threads touch no device. */
#ifndef JG_TOOLS_TUNE_COMPILE_H
#define JG_TOOLS_TUNE_COMPILE_H

#include "jitgemm.h"

#include <pthread.h>

enum { TUNE_JOBS_MAX = 64 };

/* Candidate `index` of a problem. step: which of the measurements wants it; steps count from 0 and never fall from a job to the
 * next. */
typedef struct tune_job {
    const jg_problem *problem;
    size_t index, step;
} tune_job;

/* Treat as opaque but for what is said below; zero-initialise. */
typedef struct tune_compile {
    jg_context *context;
    const tune_job *jobs;
    size_t count, next;      /* next: the first that no thread has taken */
    size_t *left;            /* jobs of each step that are not finished */
    size_t compiled;         /* jobs finished, none of them abandoned; valid after tune_compile_stop */
    double deadline_ms;      /* by progress_now_ms: no compile is begun that would hardly end before; 0: none */
    double typical_ms;       /* what one took so far */
    int stops;
    jg_status status;        /* of what makes all others futile too, such as NO_NVRTC */
    char error[1024];        /* its text */
    pthread_t threads[TUNE_JOBS_MAX];
    size_t thread_count;
    pthread_mutex_t lock;
    pthread_cond_t progressed;
} tune_compile;

/* Starts. The jobs, steps of them in all, must stay as they are until tune_compile_stop. A job that fails is finished too: what
 * measures it finds out why. Errors: NO_MEMORY. */
jg_status tune_compile_start(tune_compile *c, jg_context *context, const tune_job *jobs, size_t count, size_t steps, size_t threads,
                             double deadline_ms);

/* Waits until a step's jobs are finished, for at most wait_ms. Returns 1 if they are, 0 if not, -1 if they never will be:
 * c->status and c->error have why. */
int tune_compile_wait(tune_compile *c, size_t step, double wait_ms);

/* Begins no further job, and abandons those at work: from now on the context compiles nothing. What was never started is allowed, and
 * twice. */
void tune_compile_stop(tune_compile *c);

#endif
