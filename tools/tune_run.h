/* jitgemm-prewarm --tune: the command line in, measured plans in the cache file out. */
#ifndef JG_TOOLS_TUNE_RUN_H
#define JG_TOOLS_TUNE_RUN_H

#include "prewarm_args.h"

/* Does all of it, reports, and returns the exit status; standard output is still to be closed. started_ms: when the program began,
 * by progress_now_ms. To be called before there are threads, and once. */
int tune_run(const prewarm_args *args, double started_ms);

#endif
