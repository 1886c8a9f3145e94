/* The command line of jitgemm-bench: argv in, one command and its settings out. */
#ifndef JG_TOOLS_BENCH_ARGS_H
#define JG_TOOLS_BENCH_ARGS_H

#include "jitgemm.h"

#include <sched.h>

enum { BENCH_EXIT_DONE = 0, BENCH_EXIT_FAILED = 1, BENCH_EXIT_USAGE = 2, BENCH_EXIT_MISSED = 3, BENCH_EXIT_SLOWER = 3, BENCH_EXIT_INTERRUPTED = 130 };

typedef enum bench_format { BENCH_TABLE, BENCH_JSON, BENCH_CSV } bench_format;

/* A further command is a name here, a row in bench_args.c's tables and one in jitgemm-bench.c. */
typedef enum bench_command { BENCH_FIRST_CALL, BENCH_DISPATCH, BENCH_COLD_START, BENCH_COMMANDS } bench_command;

/* Texts point into argv; null: not given. Numbers that were not given are -1 until bench_args_resolve. */
typedef struct bench_args {
    bench_command command;
    long sizes, peer_sizes, seed, busy_ms, poll, launches; /* first-call */
    int compiling, neighbour;
    long threads, problems, batches;                       /* dispatch */
    jg_problem problem;
    long runs;                                             /* cold-start */
    int fill, no_peer, check;
    const char *cache_path, *nvrtc_path, *driver_path, *cublas_path;
    cpu_set_t cpus;
    int pinned;                                            /* cpus was given */
    bench_format format;
} bench_args;

/* Fills in *args. Returns -1 to go on, else the status to exit with: 0 after --help or --version, 2 after a message on
 * standard error. */
int bench_args_parse(int argc, char **argv, bench_args *args);

/* Fills in what was not given; small numbers for the software GPU, which computes every launch on the host. */
void bench_args_resolve(bench_args *args, int software);

const char *bench_command_name(bench_command command);

#endif
