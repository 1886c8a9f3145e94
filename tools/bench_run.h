/* What every command of jitgemm-bench works with: its settings, its report, the GPU, a context of the library, a cache file. */
#ifndef JG_TOOLS_BENCH_RUN_H
#define JG_TOOLS_BENCH_RUN_H

#include "bench_args.h"
#include "bench_gpu.h"
#include "bench_report.h"
#include "progress.h"

#include <limits.h>

typedef struct bench_run {
    bench_args args;
    bench_report report;
    progress progress;
    bench_gpu gpu;
    jg_context *context;
    char cache_path[PATH_MAX];
    char scratch[64];         /* folder of a temporary cache file; "" if there is none */
    char part[128];           /* what was said of the part of the GPU that is used */
} bench_run;

/* The commands; each returns an exit status and has then told why it failed. */
int bench_first_call(bench_run *run);
int bench_neighbour(bench_run *run); /* first-call --neighbour */
int bench_dispatch(bench_run *run);
int bench_cold_start(bench_run *run);
int bench_products(bench_run *run);
int bench_products_check(bench_run *run); /* before all commands: its options and lists, as far as the GPU need not be asked */
int bench_plans(bench_run *run);
int bench_compile(bench_run *run);
int bench_planner(bench_run *run);   /* needs no GPU */
int bench_memory(bench_run *run);

/* Lets SIGINT and SIGTERM ask for an end; a second one ends the process at once. To be called before there are threads: they
 * must inherit that these signals are blocked. Returns 0, or -1 if no thread can be started. */
int bench_catch_stop_signals(void);
int bench_stop_requested(void);

/* Tells of an error on standard error and returns BENCH_EXIT_FAILED. */
int bench_fail(bench_run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same with jg_last_error's text behind "WHAT: ". */
int bench_fail_status(bench_run *run, const char *what);

/* Makes the CUDA context, on the multiprocessors that --sms asks for. Where the driver has no green contexts that is told on
 * standard error: plans are then made for so many, but all of the GPU is used. */
int bench_start_gpu(bench_run *run);

/* Whether this GPU can do what --sms and --as-arch ask for; needs no context. */
int bench_check_gpu(bench_run *run);

/* The architecture to plan for: --as-arch, with --sms an Orin's if the GPU is younger; 0: the GPU's own. */
int bench_planned_arch(const bench_run *run);

/* How many multiprocessors to plan for; 0: all. */
int bench_planned_sms(const bench_run *run);

/* Finds the cache file's path; makes a temporary one if none was given. */
int bench_prepare_cache(bench_run *run);

/* Makes sure that the generic kernels of f32 and f16, and the own kernel of `also` (may be null), are in the cache file, if it is
 * a temporary one or --fill was given. Needs the GPU. */
int bench_fill_cache(bench_run *run, const jg_problem *also);

/* Opens run->context as a pipeline would: with the defaults, but for the paths, the worker, and that sizes which earlier runs
 * met are not loaded. *ms: how long it took. */
int bench_open_library(bench_run *run, const jg_worker_options *worker, double *ms);
void bench_close_library(bench_run *run);

/* Counters of run->context since jg_open; all 0 if they cannot be had. */
jg_stats bench_stats_now(bench_run *run);

/* Begins the report with what is known of the machine, the GPU and the cache file. */
void bench_begin_report(bench_run *run);

/* A jg_log_fn that tells of the library's warnings and errors on standard error; user is the bench_run. */
void bench_on_log(void *user, jg_log_level level, const char *text);

/* Shows on a terminal how far a phase is. */
void bench_show_progress(bench_run *run, const char *phase, size_t done, size_t total);

/* Removes a temporary cache file, closes what is open. */
void bench_clean_up(bench_run *run);

#endif
