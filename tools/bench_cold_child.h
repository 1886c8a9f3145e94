/* One process of jitgemm-bench cold-start: what it is told on its command line, and what it tells on its standard output. */
#ifndef JG_TOOLS_BENCH_COLD_CHILD_H
#define JG_TOOLS_BENCH_COLD_CHILD_H

#include "jitgemm.h"

/* Arguments: COLD_COMMAND KIND DRIVER CACHE NVRTC CUBLAS, COLD_NONE for a path that was not given. */
#define COLD_COMMAND "cold-start-child"
#define COLD_NONE "-"
#define COLD_LIBRARY "jitgemm"
#define COLD_PEER "cublas"

/* The product of each process: square, f16. */
#define COLD_SIZE 256

/* Times are nanoseconds of CLOCK_MONOTONIC: main reached, CUDA context there, library open, first result there. */
typedef struct cold_report {
    int64_t main_ns, context_ns, open_ns, result_ns;
    uint64_t disk_entries, resident, kernels, launches_generic, launches_own, waits, peer_version;
} cold_report;

/* A report as a line of text, and back: returns 0, or -1 if the text is no report. `text` has room for COLD_TEXT_BYTES. */
enum { COLD_TEXT_BYTES = 512 };
void cold_report_format(const cold_report *report, char *text);
int cold_report_parse(const char *text, cold_report *report);

/* The process' main function. Returns its exit status: 0, or 1 after a message on standard error. */
int cold_child_main(int argc, char **argv, int64_t main_ns);

#endif
