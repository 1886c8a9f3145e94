/* The command line of jitgemm-cache: argv in, one command with its arguments out. */
#ifndef JG_TOOLS_CACHE_ARGS_H
#define JG_TOOLS_CACHE_ARGS_H

#include "jitgemm.h"

enum { CACHE_EXIT_DONE = 0, CACHE_EXIT_FAILED = 1, CACHE_EXIT_USAGE = 2 };

typedef struct cache_args cache_args;

/* Runs a command on an open cache and returns the exit status; it has told what went wrong. */
typedef int (*cache_command_fn)(const cache_args *args, jg_cache *cache);

/* Texts point into argv. */
struct cache_args {
    cache_command_fn run;
    int writable;           /* whether the command changes the file */
    const char *cache_path; /* null: the default */
    const char *key;        /* of show and extract */
    jg_part part;           /* of extract */
    const char *file;       /* of extract; "-" is standard output */
    int json, yes, force;
    int clear;              /* of misses and plans: forget them */
    int sizes;              /* of misses: as a list of sizes */
};

/* Fills in *args. Returns -1 to go on, else the status to exit with: 0 after --help or --version, CACHE_EXIT_USAGE after a
 * message on standard error. */
int cache_args_parse(int argc, char **argv, cache_args *args);

#endif
