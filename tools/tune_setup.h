/* What a run of tuning works with, from the command line to the first measurement. */
#ifndef JG_TOOLS_TUNE_SETUP_H
#define JG_TOOLS_TUNE_SETUP_H

#include "progress.h"
#include "tune_measure.h"
#include "tune_steps.h"

enum { TUNE_EXIT_DONE = 0, TUNE_EXIT_FAILED = 1, TUNE_EXIT_INTERRUPTED = 130 };

typedef struct tune_state {
    const prewarm_args *args;
    progress progress;
    double started_ms, deadline_ms; /* by progress_now_ms; deadline_ms = 0: none */
    tune_list list;
    tune_steps steps;
    tune_measure measure;
    tune_compile compile;
    jg_context *scratch;     /* of what is only measured; its cache file is temporary */
    jg_stats stats;          /* of the context that winners are recorded in */
    size_t known;            /* recorded plans of this place, of whichever problem */
    int out_of_time, interrupted; /* before all was done */
    int device_is_lost;
} tune_state;

/* Tells of an error on standard error and returns TUNE_EXIT_FAILED. */
int tune_fail(tune_state *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Finds out what there is to do: the device, the context of the cache file, the problems and what is known of them. In a dry run the
 * cache file is only read. Returns an exit status, having told why. */
int tune_prepare(tune_state *t);

/* Makes what measuring needs: steps, a context with a scratch file, memory, and compile threads, which then run. As above. */
int tune_begin(tune_state *t);

/* Gives everything back, and removes the scratch file. Returns `status`, or failed if closing does. */
int tune_end(tune_state *t, int status);

#endif
