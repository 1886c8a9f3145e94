/* One process that measures for jitgemm-bench: a command line in; what it wrote on standard output, and how it ended, out.
 *
 * It is a process group of its own, so that Ctrl-C reaches it once, through us, and it can clean up; it ends with us, however we
 * end. What it writes on standard error is passed on line by line, above a progress bar. */
#ifndef JG_TOOLS_BENCH_CHILD_H
#define JG_TOOLS_BENCH_CHILD_H

#include "bench_run.h"

/* program: a path; null: this program. output: the caller's, ended by 0; set if the result is BENCH_EXIT_DONE. wait_status: as
 * waitpid gives it. Returns BENCH_EXIT_DONE if the process ended by itself, well or not; BENCH_EXIT_FAILED, with a message, if
 * it could not be run; BENCH_EXIT_INTERRUPTED if we were asked to end, and with us the process has. */
int bench_child_run(bench_run *run, const char *program, char *const *argv, char **output, int *wait_status);

#endif
