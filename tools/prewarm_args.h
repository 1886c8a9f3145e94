/* The command line of jitgemm-prewarm: argv in, problems and settings out. */
#ifndef JG_TOOLS_PREWARM_ARGS_H
#define JG_TOOLS_PREWARM_ARGS_H

#include "jitgemm.h"
#include "sizelist.h"

#define PREWARM_ARCHS_MAX 16

/* Where sizes are from: those up to number `end` that are in no group before. */
typedef struct prewarm_group {
    const char *name;             /* of a suite's list, of a file without its folder, or "sizes" */
    int memory;                   /* of a list whose claim is memory bandwidth: see bench_list */
    size_t end;
} prewarm_group;

/* Zero everywhere means "the library's default". Texts point into argv. */
typedef struct prewarm_args {
    sizelist sizes;
    prewarm_group *groups;        /* the args' own */
    size_t group_count;
    int archs[PREWARM_ARCHS_MAX]; /* arch_count = 0: this machine's own device */
    size_t arch_count;
    int sm_count;
    uint32_t jobs;
    double budget_ms;             /* no kernel is begun later than this after the start; 0: all are made */
    int tune, exhaustive, allow_new_bits, retune;
    size_t candidates;            /* 0: not given */
    const char *cache_path, *nvrtc_path;
    uint32_t generic_types;       /* JG_RESIDENT_ flags: generic kernels to make whatever the sizes use */
    int generic, from_misses, seal, repair, json, dry_run, quiet, verbose;
} prewarm_args;

enum { EXIT_USAGE = 2 };

/* Fills in *args. Returns -1 to go on, else the status to exit with: 0 after --help or --version, EXIT_USAGE
 * after a message on standard error. */
int prewarm_args_parse(int argc, char **argv, prewarm_args *args);

void prewarm_args_free(prewarm_args *args);

#endif
