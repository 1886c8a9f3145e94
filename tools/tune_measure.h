/* Measures plans on the device and records the winner: a problem in, what was found out. */
#ifndef JG_TOOLS_TUNE_MEASURE_H
#define JG_TOOLS_TUNE_MEASURE_H

#include "bench_machine.h"
#include "bench_race.h"
#include "tune_list.h"

/* Zero-initialise; close with tune_measure_close. */
typedef struct tune_measure {
    bench_gpu gpu;
    bench_machine machine;
    bench_arena arena;       /* its context makes and runs what is measured */
    jg_context *kept;        /* into whose cache file winners are recorded */
    int allow_new_bits;
    char power_mode[64];     /* nvpmodel's name, else the power limit; "" if unknown */
    double sm_mhz;           /* of the last measurement; 0: unknown */
} tune_measure;

/* Makes a stream and memory for the problems whose outcome is LEFT, once gpu, kept and arena.context are there. On failure *largest
 * (may be null) is the text of the problem that needs most, or null if that is not why. Errors: DEVICE, NO_MEMORY. */
jg_status tune_measure_open(tune_measure *m, const tune_list *list, const char **largest);

/* Races candidates of a problem, those of its rank up to `limit` that were not measured yet, against the model's choice and the best
 * so far, and records the winner. Sets what is known of the problem. What concerns it alone is told with it (FAILED, is_wrong); what
 * ends the run is returned: DEVICE_LOST, NO_MEMORY, NO_NVRTC, INTERNAL. */
jg_status tune_measure_problem(tune_measure *m, tune_problem *p, size_t limit);

/* Gives back all but the contexts, which must be closed before the GPU is. */
void tune_measure_close(tune_measure *m);

#endif
