/* jitgemm-bench compile: what NVRTC needs for our kernels.
 *
 * The specialised kernels of the common sizes one at a time on one thread, then the same again with several at once, then the
 * generic kernels that make every size run. Each time in a context that keeps nothing, and NVRTC's own cache is off, so every
 * compile is a whole one; in this process, as `memory` compares that with a helper. It is the host that is timed: the numbers
 * hold without a GPU too. */
#include "bench_run.h"
#include "bench_suites.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MEDIAN_LIMIT_MS 150.0
#define GENERIC_LIMIT_MS 1000.0
#define GENERIC_THREADS 16     /* that limit is for so many */

typedef struct compiles {
    bench_run *run;
    const char *phase;
    double ms[4096];
    size_t count;
    int list;                  /* also as lines of their own */
    double median_ms, generic_ms; /* for the targets; 0: not measured */
} compiles;

static void add_line(compiles *c, const jg_progress *step)
{
    bench_report *r = &c->run->report;
    cJSON *object = cJSON_CreateObject();
    const int ok = object && cJSON_AddStringToObject(object, "problem", step->problem) &&
                   cJSON_AddStringToObject(object, "kernel", step->kernel) && cJSON_AddNumberToObject(object, "ms", step->ms);
    if (!ok) {
        cJSON_Delete(object);
        object = NULL;
    }
    bench_report_add(r, &r->compiles, object);
}

static int on_compiled(void *user, const jg_progress *step)
{
    compiles *c = user;
    bench_show_progress(c->run, c->phase, step->done, step->total);
    if (step->outcome == JG_COMPILED && c->count < sizeof c->ms / sizeof *c->ms) {
        c->ms[c->count++] = step->ms;
        if (c->list) add_line(c, step);
    }
    return bench_stop_requested();
}

/* Compiles in a fresh context. problems may be null: the generic kernels of `types`. *wall_ms: all of them together. */
static int compile(compiles *c, const sizelist *problems, uint32_t types, uint32_t jobs, double *wall_ms)
{
    bench_run *run = c->run;
    const int arch = bench_planned_arch(run), sms = bench_planned_sms(run);
    const jg_options options = {.device = JG_DEVICE_CPU, .arch = arch ? arch : run->gpu.arch,
                                .sm_count = sms ? sms : run->gpu.sm_count, .compile = JG_COMPILE_WAIT,
                                .resident = JG_RESIDENT_NONE, .cache_path = "", .factory_path = "",
                                .helper = JG_HELPER_THREAD, .nvrtc_path = run->args.nvrtc_path};
    const jg_prewarm_options how = {.jobs = jobs, .generic_set = types != 0, .types = types, .progress = on_compiled, .user = c};
    jg_prewarm_result result = {0};
    jg_context *context;
    c->count = 0;
    if (jg_open(&options, &context) != JG_OK) return bench_fail_status(run, "jg_open");
    const int64_t before_ns = bench_now_ns();
    const jg_status status =
        jg_prewarm(context, problems ? problems->items : NULL, problems ? problems->count : 0, &how, &result);
    *wall_ms = (double)(bench_now_ns() - before_ns) * 1e-6;
    progress_end(&run->progress);
    int outcome = BENCH_EXIT_DONE;
    if (status == JG_ERR_CANCELLED) outcome = BENCH_EXIT_INTERRUPTED;
    else if (status != JG_OK) outcome = bench_fail_status(run, c->phase);
    jg_close(context);
    return outcome;
}

static int read_sizes(bench_run *run, sizelist *out)
{
    for (size_t i = 0; bench_list_at(i); i++)
        if (strcmp(bench_list_at(i)->name, "common16") == 0 &&
            bench_list_problems(bench_list_at(i), run->args.types, run->args.type_count, out) == 0)
            return BENCH_EXIT_DONE;
    return bench_fail(run, "common16: %s", out->error);
}

/* NVRTC's first compile in a process loads libraries and takes longer; it is told apart. */
static int compile_first(compiles *c, const sizelist *all)
{
    double wall_ms;
    const sizelist one = {.items = all->items, .count = 1};
    const int status = compile(c, &one, 0, 1, &wall_ms);
    if (status == BENCH_EXIT_DONE) bench_report_series(&c->run->report, "first in the process, with loading NVRTC", &wall_ms, 1);
    return status;
}

static int compile_one_by_one(compiles *c, const sizelist *all)
{
    double wall_ms;
    c->list = 1;
    const int status = compile(c, all, 0, 1, &wall_ms);
    c->list = 0;
    c->median_ms = bench_report_series(&c->run->report, "a specialised kernel, one at a time", c->ms, c->count).p50;
    return status;
}

static int compile_at_once(compiles *c, const sizelist *all, uint32_t jobs)
{
    bench_report *r = &c->run->report;
    char name[96];
    double wall_ms;
    int status = compile(c, all, 0, jobs, &wall_ms);
    snprintf(name, sizeof name, "all %zu of them, %u at once", c->count, jobs);
    if (status == BENCH_EXIT_DONE) bench_report_series(r, name, &wall_ms, 1);
    if (status == BENCH_EXIT_DONE) status = compile(c, NULL, JG_RESIDENT_F32 | JG_RESIDENT_F16, jobs, &wall_ms);
    if (status != BENCH_EXIT_DONE) return status;
    snprintf(name, sizeof name, "%zu generic kernels, f32 and f16, %u at once", c->count, jobs);
    bench_report_series(r, name, &wall_ms, 1);
    if (jobs >= GENERIC_THREADS) c->generic_ms = wall_ms;
    return status;
}

/* After the last series, as in every command's table. */
static void add_targets(const compiles *c)
{
    bench_report *r = &c->run->report;
    if (c->median_ms > 0) bench_report_target(r, "a specialised kernel, median", c->median_ms, "ms", MEDIAN_LIMIT_MS);
    if (c->generic_ms > 0) bench_report_target(r, "the generic kernels of f32 and f16", c->generic_ms, "ms", GENERIC_LIMIT_MS);
}

int bench_compile(bench_run *run)
{
    static compiles c; /* large for a stack */
    sizelist all = {0};
    c = (compiles){.run = run, .phase = "compiling"};
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    const long usual = processors > 16 ? 16 : processors > 0 ? processors : 1;
    const uint32_t jobs = (uint32_t)(run->args.jobs ? run->args.jobs : usual);
    int status = read_sizes(run, &all);
    bench_begin_report(run);
    run->report.host_times = 1;
    if (run->gpu.software) bench_report_note(&run->report, "Compile times are the host's own: they hold without a GPU.");
    bench_report_part(&run->report, "compile time, NVRTC's own cache off", "ms", BENCH_SPREAD);
    if (status == BENCH_EXIT_DONE) status = compile_first(&c, &all);
    if (status == BENCH_EXIT_DONE) status = compile_one_by_one(&c, &all);
    if (status == BENCH_EXIT_DONE) status = compile_at_once(&c, &all, jobs);
    add_targets(&c);
    run->report.host_times = 0;
    sizelist_free(&all);
    return status;
}
