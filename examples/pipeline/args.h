/* The command line of the video pipeline. */
#ifndef PIPELINE_ARGS_H
#define PIPELINE_ARGS_H

#include <stdint.h>

#include "timing.h"

/* What a run is of; bits of arguments.policies. */
enum { POLICY_BACKGROUND = 1, POLICY_WAIT = 2, POLICY_NEVER = 4, POLICY_CUBLAS = 8 };

typedef struct arguments {
    const char *input;              /* null: the pattern */
    int raw_width, raw_height;      /* 0: the input is Y4M */
    int pattern_width, pattern_height;
    struct { int width, height; } sizes[SIZES_MAX];
    int size_count;                 /* 0: the default list */
    double every_seconds;           /* between changes of resolution */
    int64_t every_frames;           /* the same, if not 0 */
    int64_t frames;                 /* 0: each size once */
    int rate_n, rate_d;             /* 0: the clip's */
    int is_paced, loops, is_fresh, checks, is_quiet;
    unsigned policies;
    int sms;
    const char *cache_dir, *csv, *json, *plot, *cublas;
} arguments;

/* Reads the command line. Returns -1 if the program is to go on, else its exit status: 0 after --help, 2 after saying what is wrong. */
int arguments_read(arguments *a, int argc, char **argv);

#endif
