/* jitgemm-bench --save and --against: the same measurement in several processes, merged into a baseline, or compared with one.
 *
 * Samples of one process are not independent of each other: where its memory lies and how the clocks went is one for all of them.
 * So a process counts as one sample of each measure, its median, and at least ten processes are run. */
#ifndef JG_TOOLS_BENCH_DRIFT_H
#define JG_TOOLS_BENCH_DRIFT_H

#include "bench_run.h"

#define BENCH_DRIFT_LEAST_RUNS 10

/* child_argv: what each process is started with (from argv[0], null-ended); it prints a result as JSON (bench_result.h).
 * child_program: its path; null: this program. save_path and against_path may be null, but not both; they may be the same. */
typedef struct bench_drift_options {
    const char *save_path, *against_path;
    const char *child_program;
    char *const *child_argv;
    size_t runs;
    double percent;  /* a smaller change is no slow-down, however certain */
} bench_drift_options;

/* Does all of it: reads the baseline, so that a bad one is told before anything is measured; runs the processes; compares; prints
 * by run->args.format (as JSON nothing: *drift is for the caller to print); saves, whatever the comparison said. If it fails or
 * is interrupted, nothing is saved; if interrupted, two or more finished processes are still compared.
 *
 * Of run it uses args.format, progress, report.write_error, and of gpu name, arch and software.
 * *drift: the "drift" object of bench_result.h, the caller's; null if there is none.
 * Returns an exit status: BENCH_EXIT_DONE, _FAILED (with a message), _SLOWER (a significant slow-down), _INTERRUPTED. */
int bench_drift(bench_run *run, const bench_drift_options *options, cJSON **drift);

#endif
