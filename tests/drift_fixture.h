/* jitgemm-bench --save and --against with made-up results: a shell script stands in for the measuring process. */
#ifndef JG_TESTS_DRIFT_FIXTURE_H
#define JG_TESTS_DRIFT_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "scratch.h"
#include "tools/bench_baseline.h"
#include "tools/bench_drift.h"

#define MEASURES 20

static char folder[4096], out[65536], errors[65536];
static const char *base_path, *new_path, *script_path;

/* ---- made-up results ---- */

/* How a result differs from the usual one. */
typedef struct making {
    double slower;          /* part by which measure 3 is slower */
    unsigned seed;
    const char *driver, *device, *suite;
    int extra_clock_mhz;
    int sms;
} making;

static const making usual = {.driver = "580.1", .device = "Chip", .suite = "common16", .sms = 16};

static uint64_t random_state;

static double uniform(void)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return ((double)(random_state >> 11) + 0.5) * 0x1p-53;
}

/* The result of run `run`, in the file that the script prints: MEASURES rows, each with noise of up to 2 %. */
static void make_result(const making *m, int run)
{
    char name[32];
    snprintf(name, sizeof name, "run%d.json", run);
    FILE *f = fopen(scratch_path(folder, name), "w");
    assert_non_null(f);
    fprintf(f, "{\"format\": \"jitgemm-bench result\", \"format_version\": 1, \"version\": \"0.1.0\", \"commands\": [\"%s\"],"
               " \"started\": \"2026-01-31T12:00:00Z\", \"environment\": {\"device\": \"%s\", \"arch\": 90, \"software\": false,"
               " \"sms\": %d, \"driver_release\": \"%s\", \"clock_sm_max_mhz\": %d, \"temperature_c\": %g}, \"rows\": [",
            m->suite, m->device, m->sms, m->driver, 1980 + m->extra_clock_mhz, 40 + 4 * uniform());
    for (int i = 0; i < MEASURES; i++)
        fprintf(f, "%s{\"suite\": \"%s\", \"list\": \"%s\", \"problem\": \"%d:f16\", \"data\": \"resident\","
                   " \"contestants\": [{\"name\": \"jitgemm\", \"us\": {\"p50\": %.6f}}]}",
                i ? "," : "", m->suite, m->suite, i, (i + 1) * (1 + 0.02 * uniform()) * (i == 3 ? 1 + m->slower : 1));
    fputs("]}", f);
    assert_int_equal(fclose(f), 0);
}

static void make_results(const making *m, int runs)
{
    random_state = m->seed;
    for (int i = 0; i < runs; i++) make_result(m, i);
}

/* ---- runs ---- */

/* What the processes do: print their result in turn, unless `also`, before that, does something else. $N: 0, 1, ... */
static void write_script(const char *also)
{
    FILE *f = fopen(script_path, "w");
    assert_non_null(f);
    fprintf(f, "cd '%s' || exit 9\nN=$(cat count)\necho $((N + 1)) > count\n%s\ncat run$N.json\n", folder, also);
    assert_int_equal(fclose(f), 0);
    scratch_write(scratch_path(folder, "count"), "0\n", 2);
}

/* Takes a stream into a file; returns what gives it back, which no process shall hold. */
static int redirect(FILE *stream, const char *name)
{
    fflush(stream);
    const int saved = fcntl(fileno(stream), F_DUPFD_CLOEXEC, 0);
    const int file = open(scratch_path(folder, name), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(saved >= 0 && file >= 0);
    dup2(file, fileno(stream));
    close(file);
    return saved;
}

static void take_back(FILE *stream, int saved, const char *name, char text[65536])
{
    size_t bytes;
    fflush(stream);
    dup2(saved, fileno(stream));
    close(saved);
    unsigned char *found = scratch_read(scratch_path(folder, name), &bytes);
    assert_true(found && bytes < 65536);
    memcpy(text, found, bytes + 1);
    free(found);
}

typedef struct asked {
    const char *save, *against;
    bench_format format;
    size_t runs;
    const char *program; /* null: the shell */
    bench_gpu gpu;
} asked;

/* Without taking the outputs. */
static int drift_bare(const asked *a, cJSON **drift)
{
    static bench_run run;
    char shell[] = "/bin/sh", path[4096];
    char *arguments[] = {shell, path, NULL};
    snprintf(path, sizeof path, "%s", script_path);
    run = (bench_run){.args.format = a->format, .gpu = {.arch = 90, .name = "Chip"}};
    if (*a->gpu.name) run.gpu = a->gpu;
    progress_begin(&run.progress, stderr, PROGRESS_NONE, "");
    const bench_drift_options options = {.save_path = a->save, .against_path = a->against, .percent = 3,
                                         .child_program = a->program ? a->program : shell, .child_argv = arguments,
                                         .runs = a->runs ? a->runs : 10};
    return bench_drift(&run, &options, drift);
}

static int drift_of(const asked *a, cJSON **drift)
{
    const int saved_out = redirect(stdout, "out"), saved_errors = redirect(stderr, "errors");
    const int status = drift_bare(a, drift);
    take_back(stderr, saved_errors, "errors", errors);
    take_back(stdout, saved_out, "out", out);
    return status;
}

static void assert_drift(const asked *a, int status)
{
    cJSON *drift;
    const int found = drift_of(a, &drift);
    cJSON_Delete(drift);
    if (found != status) fail_msg("status %d, not %d; it said:\n%s%s", found, status, errors, out);
}

static void assert_has(const char *text, const char *part)
{
    if (!strstr(text, part)) fail_msg("\"%s\" is not in:\n%s", part, text);
}

/* How many processes were started since write_script. */
static int started(void)
{
    size_t bytes;
    unsigned char *text = scratch_read(scratch_path(folder, "count"), &bytes);
    assert_non_null(text);
    const int count = atoi((char *)text);
    free(text);
    return count;
}

/* Makes a baseline of ten runs at base_path. */
static void make_base(const making *m)
{
    make_results(m, 10);
    write_script("");
    assert_drift(&(asked){.save = base_path}, BENCH_EXIT_DONE);
    assert_int_equal(started(), 10);
}

static void assert_content(const char *path, const char *text)
{
    size_t bytes;
    unsigned char *found = scratch_read(path, &bytes);
    assert_non_null(found);
    assert_string_equal((char *)found, text);
    free(found);
}

static int setup(void **state)
{
    (void)state;
    static char paths[3][4200];
    static const char *const names[] = {"base.json", "new.json", "script"};
    scratch_make(folder);
    for (int i = 0; i < 3; i++) snprintf(paths[i], sizeof paths[i], "%s/%s", folder, names[i]);
    base_path = paths[0];
    new_path = paths[1];
    script_path = paths[2];
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    scratch_remove(folder);
    return 0;
}

#endif
