/* The command line of jitgemm-bench: argv in, commands and their settings out. */
#ifndef JG_TOOLS_BENCH_ARGS_H
#define JG_TOOLS_BENCH_ARGS_H

#include "jitgemm.h"

#include <sched.h>

enum {
    BENCH_EXIT_DONE = 0, BENCH_EXIT_FAILED = 1, BENCH_EXIT_USAGE = 2, BENCH_EXIT_MISSED = 3, BENCH_EXIT_SLOWER = 3,
    BENCH_EXIT_INTERRUPTED = 130
};

typedef enum bench_format { BENCH_TABLE, BENCH_JSON, BENCH_CSV } bench_format;

/* A further command is a name here, a row in bench_args.c's tables and one in jitgemm-bench.c. BENCH_PRODUCTS is every suite and
 * list of sizes, or, with BENCH_PLANS in its place, all plans of each, or, with BENCH_PLANNER, what was recorded of them: that one
 * stands alone and needs no GPU. */
typedef enum bench_command {
    BENCH_FIRST_CALL, BENCH_DISPATCH, BENCH_COLD_START, BENCH_PRODUCTS, BENCH_PLANS, BENCH_COMPILE, BENCH_MEMORY,
    BENCH_PLANNER,
    BENCH_COMMANDS
} bench_command;

enum { BENCH_WORDS_MAX = 64, BENCH_TYPES_MAX = 16, BENCH_PASSED_MAX = 256 };

/* Words of the command line that may be given several times. */
typedef struct bench_words {
    const char *words[BENCH_WORDS_MAX];
    size_t count;
} bench_words;

typedef enum bench_data { BENCH_DATA_BY_SUITE, BENCH_DATA_RESIDENT, BENCH_DATA_ROTATED } bench_data;

/* Texts point into argv; null: not given. Numbers that were not given are -1 until bench_args_resolve. */
typedef struct bench_args {
    bench_command commands[BENCH_COMMANDS];                /* in the order given, each once */
    size_t command_count;
    long sizes, peer_sizes, seed, busy_ms, poll, launches; /* first-call */
    int compiling, neighbour;
    long threads, problems, batches;                       /* dispatch */
    jg_problem problem;
    long runs;                                             /* cold-start */
    long compiles;                                         /* memory */
    const char *helper_path;
    bench_words suites, lists, single;                     /* products: names, files, problem texts */
    char title[256];                                       /* of all of these */
    char titles[384];                                      /* of all commands */
    jg_problem types[BENCH_TYPES_MAX];                     /* defaults of products and of compile */
    size_t type_count;
    bench_data data;
    long rounds, sample_us, sms, as_arch;
    int generic, record;
    jg_plans plans;                                        /* products */
    int all_classes;                                       /* plans */
    const char *csv_path;
    bench_words places;                                    /* planner: parts of their names; none: all */
    long jobs;                                             /* compile, plans */
    int fill, no_peer, check;
    const char *cache_path, *nvrtc_path, *driver_path, *cublas_path, *cublaslt_path;
    cpu_set_t cpus;
    int pinned;                                            /* cpus was given */
    bench_format format;
    const char *html_path;
    const char *save_path, *against_path;                  /* drift */
    long processes, percent;
    struct { const char *words[BENCH_PASSED_MAX]; size_t count; } passed; /* what is not the parent's alone */
} bench_args;

/* Fills in *args. Returns -1 to go on, else the status to exit with: 0 after --help or --version, 2 after a message on
 * standard error. */
int bench_args_parse(int argc, char **argv, bench_args *args);

/* Fills in what was not given; small numbers for the software GPU, which computes every launch on the host. */
void bench_args_resolve(bench_args *args, int software);

/* The command line of one of the processes that --save and --against start: the given one with `cache` as its cache file, without
 * peers, and with JSON as output. Null-ended; free with free(). Null if memory ran out. */
const char **bench_args_for_process(const bench_args *args, const char *program, const char *cache);

/* What a command is called in a report: its name, or those of the suites. Valid as long as args. */
const char *bench_args_title(const bench_args *args, bench_command command);

#endif
