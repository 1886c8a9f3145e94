/* jitgemm-bench first-call: the host time of a call for a size that was never seen, on a GPU that is never idle.
 *
 * This is the library's first promise: such a call is enqueued at once, whatever else goes on. So long kernels run on another
 * stream all the time (bench_busy.c), and on request the worker compiles (bench_feed.c). Only the call is timed; what has to
 * be done between calls (waiting for the products, jg_poll) is not. cuBLAS gets the beginning of the same list, afterwards. */
#include "bench_busy.h"
#include "bench_feed.h"
#include "bench_peer.h"
#include "bench_run.h"

#include <stdlib.h>
#include <string.h>

#define CALLS_IN_FLIGHT 64   /* a full launch queue makes a call wait for the GPU */
#define FEED_FIRST 8         /* sizes for the worker before the first call */
#define FEED_LOW 4           /* fewer kernels left to make than this: as many more */
#define SOFTWARE_DIMENSION 128
#define P999_LIMIT_US 50.0
#define MAX_LIMIT_US 500.0
#define POLL_LIMIT_US 1.0

/* Everything one measurement holds. */
typedef struct first_call {
    bench_run *run;
    jg_problem *problems;
    double *us, *picked;      /* of each call; of some of them */
    double *poll_us;          /* of each jg_poll that had nothing to do */
    size_t count, idle_polls;
    bench_matrices matrices;
    CUstream stream;
    bench_busy busy;
    bench_feed feed;
    bench_peer peer;
    size_t polls, swapped, checks, idle_checks;
} first_call;

/* One of the two that are measured. */
typedef struct contestant {
    const char *name;
    size_t count;             /* calls */
    size_t done;
    int is_peer;
} contestant;

/* ---- preparation ---- */

static int draw_problems(first_call *f)
{
    bench_run *run = f->run;
    bench_sizes sizes;
    f->count = (size_t)run->args.sizes;
    f->problems = calloc(f->count, sizeof *f->problems);
    f->us = calloc(f->count, sizeof *f->us);
    f->picked = calloc(f->count, sizeof *f->picked);
    f->poll_us = calloc(f->count, sizeof *f->poll_us);
    if (!f->problems || !f->us || !f->picked || !f->poll_us) return bench_fail(run, "out of memory");
    memset(f->us, 1, f->count * sizeof *f->us); /* pages that are there already take no time later */
    bench_sizes_init(&sizes, (uint64_t)run->args.seed, run->gpu.software ? SOFTWARE_DIMENSION : BENCH_SIZES_MAX_DIMENSION);
    int drawn = 0;
    for (size_t i = 0; i < f->count && drawn == 0; i++) drawn = bench_sizes_draw(&sizes, &f->problems[i]);
    bench_sizes_free(&sizes);
    return drawn == 0 ? BENCH_EXIT_DONE : bench_fail(run, "there are not that many sizes, or memory has run out");
}

/* Large enough for every problem, so that nothing is allocated between calls. */
static int allocate_operands(first_call *f)
{
    int64_t a = 0, b = 0, c = 0;
    for (size_t i = 0; i < f->count; i++) {
        const jg_problem *p = &f->problems[i];
        const int64_t bytes = p->type_a == JG_F16 ? 2 : 4;
        if (p->m * p->k * bytes > a) a = p->m * p->k * bytes;
        if (p->k * p->n * bytes > b) b = p->k * p->n * bytes;
        if (p->m * p->n * bytes > c) c = p->m * p->n * bytes;
    }
    const bench_gpu *gpu = &f->run->gpu;
    jg_status status = bench_gpu_make_stream(gpu, &f->stream);
    if (status == JG_OK) status = bench_matrices_allocate(gpu, (size_t)a, (size_t)b, (size_t)c, &f->matrices);
    return status == JG_OK ? BENCH_EXIT_DONE : bench_fail_status(f->run, "memory for the products");
}

static void free_all(first_call *f)
{
    const bench_gpu *gpu = &f->run->gpu;
    bench_matrices_free(gpu, &f->matrices);
    if (f->stream) gpu->stream_destroy(f->stream);
    free(f->problems);
    free(f->us);
    free(f->picked);
    free(f->poll_us);
}

static int prepare(first_call *f)
{
    bench_run *run = f->run;
    double open_ms;
    const jg_worker_options worker = run->args.compiling ? bench_feed_worker(run) : (jg_worker_options){0};
    int status = bench_start_gpu(run);
    if (status == BENCH_EXIT_DONE) status = draw_problems(f);
    if (status == BENCH_EXIT_DONE) status = bench_prepare_cache(run);
    if (status == BENCH_EXIT_DONE) status = bench_fill_cache(run, NULL);
    if (status == BENCH_EXIT_DONE) status = allocate_operands(f);
    if (status == BENCH_EXIT_DONE) status = bench_open_library(run, &worker, &open_ms);
    if (status != BENCH_EXIT_DONE) return status;
    bench_begin_report(run);
    bench_report_part(&run->report, "opening", "ms", BENCH_STEPS);
    bench_report_series(&run->report, "jg_open", &open_ms, 1);
    bench_report_part(&run->report, "host time from call to return", "us", BENCH_TAIL);
    return BENCH_EXIT_DONE;
}

/* ---- the calls ---- */

/* Gives the worker more if it is about to run out. */
static int feed_worker(first_call *f)
{
    if (!f->run->args.compiling) return BENCH_EXIT_DONE;
    const jg_stats now = bench_stats_now(f->run);
    f->checks++;
    f->idle_checks += now.queued == 0;
    return now.queued < FEED_LOW ? bench_feed_give(&f->feed, FEED_LOW) : BENCH_EXIT_DONE;
}

static int poll_library(first_call *f)
{
    jg_poll_result result = {0};
    const int64_t before_ns = bench_now_ns();
    const jg_status status = jg_poll(f->run->context, NULL, &result);
    const double us = (double)(bench_now_ns() - before_ns) * 1e-3;
    if (result.loaded + result.unloaded + result.left == 0) f->poll_us[f->idle_polls++] = us;
    f->polls++;
    f->swapped += result.swapped;
    return status == JG_OK ? BENCH_EXIT_DONE : bench_fail_status(f->run, "jg_poll");
}

/* What comes between calls and is not timed. */
static int between_calls(first_call *f, const contestant *who)
{
    const size_t poll = who->is_peer ? 0 : (size_t)f->run->args.poll;
    int status = BENCH_EXIT_DONE;
    if (who->done % CALLS_IN_FLIGHT == 0) {
        if (bench_gpu_wait(&f->run->gpu, f->stream) != JG_OK) return bench_fail_status(f->run, who->name);
        if (!who->is_peer) status = feed_worker(f);
        bench_show_progress(f->run, who->name, who->done, who->count);
    }
    if (status == BENCH_EXIT_DONE && poll && who->done % poll == 0) status = poll_library(f);
    return status;
}

static int call_all(first_call *f, contestant *who)
{
    const jg_operands data = bench_matrices_data(&f->matrices, f->stream);
    jg_context *context = f->run->context;
    int status = BENCH_EXIT_DONE;
    while (who->done < who->count && status == BENCH_EXIT_DONE && !bench_stop_requested()) {
        const jg_problem *p = &f->problems[who->done];
        const int64_t before_ns = bench_now_ns();
        const jg_status called = who->is_peer ? bench_peer_gemm(&f->peer, p, &data) : jg_gemm(context, p, &data);
        f->us[who->done++] = (double)(bench_now_ns() - before_ns) * 1e-3;
        if (called != JG_OK) {
            char size[JG_PROBLEM_TEXT_BYTES] = "";
            jg_problem_format(p, size, sizeof size, NULL);
            status = bench_fail_status(f->run, size);
        } else {
            status = between_calls(f, who);
        }
    }
    progress_end(&f->run->progress);
    if (status != BENCH_EXIT_DONE || bench_gpu_wait(&f->run->gpu, f->stream) == JG_OK) return status;
    return bench_fail_status(f->run, who->name);
}

/* ---- results ---- */

/* The calls of one type (JG_DEFAULT_TYPE: all), from number `first` on. */
static bench_summary report_type(first_call *f, const contestant *who, const char *name, jg_type type, size_t first)
{
    size_t n = 0;
    for (size_t i = first; i < who->done; i++)
        if (type == JG_DEFAULT_TYPE || f->problems[i].type_a == type) f->picked[n++] = f->us[i];
    return bench_report_series(&f->run->report, name, f->picked, n);
}

static bench_summary report_calls(first_call *f, const contestant *who)
{
    char name[128];
    snprintf(name, sizeof name, "%s, very first call", who->name);
    f->picked[0] = f->us[0];
    bench_report_series(&f->run->report, name, f->picked, who->done > 0);
    /* What the peer does once in a process is told apart; the library's own goes with the rest. */
    const bench_summary all = report_type(f, who, who->name, JG_DEFAULT_TYPE, (size_t)who->is_peer);
    snprintf(name, sizeof name, "%s f16", who->name);
    report_type(f, who, name, JG_F16, (size_t)who->is_peer);
    snprintf(name, sizeof name, "%s f32", who->name);
    report_type(f, who, name, JG_F32, (size_t)who->is_peer);
    return all;
}

static void note_slowest(first_call *f, const contestant *who)
{
    char text[JG_PROBLEM_TEXT_BYTES + 128], size[JG_PROBLEM_TEXT_BYTES] = "";
    size_t slowest = 0;
    if (who->done == 0 || f->run->gpu.software) return;
    for (size_t i = 1; i < who->done; i++)
        if (f->us[i] > f->us[slowest]) slowest = i;
    jg_problem_format(&f->problems[slowest], size, sizeof size, NULL);
    snprintf(text, sizeof text, "The slowest call of %s was number %zu, for %s.", who->name, slowest + 1, size);
    bench_report_note(&f->run->report, text);
}

static void report_counts(first_call *f, const jg_stats *before, const jg_stats *after)
{
    bench_report *r = &f->run->report;
    const struct { const char *name; uint64_t value; int wanted; } rows[] = {
        {"generic kernels loaded by jg_open", before->resident, 1},
        {"launches on generic kernels", after->launches_generic - before->launches_generic, 1},
        {"launches on own kernels", after->launches_own - before->launches_own, 1},
        {"calls that waited", after->waits - before->waits, 1},
        {"calls of jg_poll", f->polls, 1},
        {"problems swapped", f->swapped, 1},
        {"compiles during the calls", after->compiles - before->compiles, 1},
        {"sizes fed to the worker", f->feed.given, f->run->args.compiling},
        {"looks at the worker", f->checks, f->run->args.compiling},
        {"looks that found it idle", f->idle_checks, f->run->args.compiling},
        {"kernels on the busy stream", atomic_load(&f->busy.kernels), f->run->args.busy_ms > 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].wanted) bench_report_count(r, rows[i].name, rows[i].value);
}

/* What the worker made meanwhile is put in place at the end, to see that it can be. */
static int finish_compiling(first_call *f, uint64_t compiles)
{
    bench_run *run = f->run;
    const jg_poll_limits all = {.max_kernels = UINT32_MAX, .max_ms = 1e9};
    jg_poll_result result = {0};
    if (!run->args.compiling || bench_stop_requested()) return BENCH_EXIT_DONE;
    if (jg_wait_idle(run->context, 120e3) != JG_OK) return bench_fail_status(run, "jg_wait_idle");
    if (jg_poll(run->context, &all, &result) != JG_OK) return bench_fail_status(run, "jg_poll");
    bench_report_count(&run->report, "problems swapped afterwards", result.swapped);
    if (bench_stats_now(run).compiles == 0) return bench_fail(run, "the worker compiled nothing");
    if (compiles > 0 || run->gpu.software) return BENCH_EXIT_DONE;
    return bench_fail(run, "the worker compiled nothing during the calls; give more --sizes");
}

/* ---- the two contestants ---- */

static int start_feeding(first_call *f)
{
    if (!f->run->args.compiling) return BENCH_EXIT_DONE;
    int status = bench_feed_open(&f->feed, f->run, f->stream);
    if (status == BENCH_EXIT_DONE) status = bench_feed_give(&f->feed, FEED_FIRST);
    return status == BENCH_EXIT_DONE ? bench_feed_wait_for_work(&f->feed) : status;
}

static int measure_library(first_call *f)
{
    bench_run *run = f->run;
    contestant who = {.name = run->args.compiling ? "jitgemm, compiling" : "jitgemm", .count = f->count};
    int status = start_feeding(f);
    if (status != BENCH_EXIT_DONE) return status;
    if (bench_busy_start(&f->busy, &run->gpu, run->args.busy_ms) != JG_OK) return bench_fail_status(run, "keeping the GPU busy");
    const jg_stats before = bench_stats_now(run);
    status = call_all(f, &who);
    const jg_stats after = bench_stats_now(run);
    if (bench_busy_stop(&f->busy) != JG_OK) status = bench_fail_status(run, "keeping the GPU busy");

    const bench_summary all = report_calls(f, &who);
    const bench_summary polls = bench_report_series(&run->report, "jg_poll with nothing to do", f->poll_us, f->idle_polls);
    report_counts(f, &before, &after);
    if (status == BENCH_EXIT_DONE) status = finish_compiling(f, after.compiles - before.compiles);
    if (who.done > 0) {
        bench_report_target(&run->report, "p99.9 of a call for an unseen size", all.p999, "us", P999_LIMIT_US);
        bench_report_target(&run->report, "max of a call for an unseen size", all.max, "us", MAX_LIMIT_US);
    }
    if (polls.n > 0) bench_report_target(&run->report, "jg_poll with nothing to do, median", polls.p50, "us", POLL_LIMIT_US);
    note_slowest(f, &who);
    if (after.waits > before.waits)
        status = bench_fail(run, "calls that waited for their kernel: %llu; does the cache file lack generic kernels? See --fill",
                            (unsigned long long)(after.waits - before.waits));
    return status;
}

static int measure_peer(first_call *f)
{
    bench_run *run = f->run;
    const size_t wanted = (size_t)run->args.peer_sizes;
    contestant who = {.name = "cuBLAS", .is_peer = 1, .count = wanted < f->count ? wanted : f->count};
    if (run->args.no_peer || run->gpu.software || bench_stop_requested()) return BENCH_EXIT_DONE;
    if (bench_peer_open(run->args.cublas_path, &f->peer) != JG_OK) {
        bench_report_note(&run->report, jg_last_error());
        return run->args.cublas_path ? bench_fail_status(run, "--cublas") : BENCH_EXIT_DONE;
    }
    if (bench_peer_create(&f->peer, f->stream) != JG_OK) return bench_fail_status(run, "cuBLAS");
    if (run->gpu.narrow_sms && bench_peer_sm_target(&f->peer, run->gpu.narrow_sms) != JG_OK)
        return bench_fail_status(run, "cuBLAS");
    if (bench_busy_start(&f->busy, &run->gpu, run->args.busy_ms) != JG_OK) return bench_fail_status(run, "keeping the GPU busy");
    int status = call_all(f, &who);
    if (bench_busy_stop(&f->busy) != JG_OK) status = bench_fail_status(run, "keeping the GPU busy");
    bench_report_part(&run->report, "the same with cuBLAS", "us", BENCH_TAIL);
    report_calls(f, &who);
    bench_report_fact_number(&run->report, "cublas", f->peer.version);
    return status;
}

int bench_first_call(bench_run *run)
{
    if (run->args.neighbour) return bench_neighbour(run);
    first_call f = {.run = run};
    int status = prepare(&f);
    if (status == BENCH_EXIT_DONE) status = measure_library(&f);
    if (f.feed.run) bench_feed_close(&f.feed);
    bench_close_library(run);
    if (status == BENCH_EXIT_DONE) status = measure_peer(&f);
    bench_busy_stop(&f.busy);
    bench_peer_close(&f.peer);
    free_all(&f);
    return status;
}
