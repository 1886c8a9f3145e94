/* The command line of jitgemm-swgpu: argv in, problems and settings out. */
#ifndef JG_TOOLS_COUNTERS_ARGS_H
#define JG_TOOLS_COUNTERS_ARGS_H

#include "jitgemm.h"
#include "sizelist.h"

enum { COUNTERS_EXIT_DONE = 0, COUNTERS_EXIT_FAILED = 1, COUNTERS_EXIT_USAGE = 2, COUNTERS_EXIT_INTERRUPTED = 130 };

typedef enum counters_format { COUNTERS_TABLE, COUNTERS_JSON, COUNTERS_CSV } counters_format;

/* Options that are variables of the software GPU. It judges their values itself, when a context is opened. */
typedef enum counters_setting {
    COUNTERS_DEVICE, COUNTERS_CHECKS, COUNTERS_BLOCKS, COUNTERS_THREADS, COUNTERS_SETTINGS
} counters_setting;

/* Texts point into argv; null: not given. */
typedef struct counters_args {
    sizelist sizes;
    const char *settings[COUNTERS_SETTINGS];
    const char *cache_path;
    counters_format format;
    int time;
} counters_args;

/* Fills in *args. Returns -1 to go on, else the status to exit with: 0 after --help or --version, 2 after a message on
 * standard error. */
int counters_args_parse(int argc, char **argv, counters_args *args);

/* Puts the given settings into the environment. Call it before there are threads. */
void counters_args_export(const counters_args *args);

/* What a setting is: the option's, else the environment's, else the default; good for a heading. */
const char *counters_args_setting(counters_setting setting);

/* If an error of jg_open is about a setting, says so on standard error and returns nonzero. */
int counters_args_blame(const counters_args *args, const char *error);

void counters_args_free(counters_args *args);

#endif
