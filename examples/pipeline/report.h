/* What the runs have come to, as files: CSV and JSON for programs, a picture for people (plot.h). */
#ifndef PIPELINE_REPORT_H
#define PIPELINE_REPORT_H

#include <stdio.h>

#include "args.h"
#include "timing.h"

/* What the documents say beside their runs. */
typedef struct run_setting {
    const char *input, *device;
    double fps;
    int is_paced, width, height;
} run_setting;

/* One line a frame of every run, under a line of titles. */
void runs_write_csv(FILE *out, const run_record *runs, int count);

void runs_write_json(FILE *out, const run_setting *setting, const run_record *runs, int count);

/* Tries whether these can be written, before the runs. One that cannot ends the program. */
void runs_try_files(const arguments *args);

/* Writes the files that the command line asks for. One that cannot be written ends the program. */
void runs_write_files(const arguments *args, const run_setting *setting, const run_record *runs, int count);

#endif
