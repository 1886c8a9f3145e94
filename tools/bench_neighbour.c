/* jitgemm-bench first-call --neighbour: what the worker's compiling does to another thread's launches.
 *
 * A thread launches a tiny kernel on a stream of its own every 200 us and times each launch, while the worker is idle and
 * while it compiles, in turn, so that what else changes on the machine changes both. Nothing is loaded in between. */
#include "bench_busy.h"
#include "bench_feed.h"
#include "bench_run.h"

#include <stdlib.h>
#include <string.h>

#define ROUNDS 4                /* of an idle and a compiling phase */
#define WARM_LAUNCHES 20        /* before the timed ones of a phase */
#define PAUSE_NS 200000
#define LOOK_NS 20000000        /* how often the worker is looked at, in both kinds of phase */
#define COMPILE_MS_GUESS 40.0
#define RATIO_LIMIT 1.10

/* A phase: the thread fills in us, count and status. */
typedef struct launcher {
    const bench_gpu *gpu;
    CUstream stream;
    double *us;
    size_t wanted, count;
    atomic_int stop, done;
    jg_status status;
    char error[512];
} launcher;

/* Everything the measurement holds. us[1] is of the compiling phases. */
typedef struct neighbour {
    bench_run *run;
    CUstream stream, own_stream; /* of the calls that feed the worker; of the launches */
    bench_busy busy;
    bench_feed feed;
    double *us[2];
    size_t count[2];
} neighbour;

static void sleep_ns(long ns)
{
    nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
}

/* ---- the thread that launches ---- */

static jg_status launch_all(launcher *l)
{
    const bench_shape shape = {1, 1, 32, 0};
    char argument[BENCH_ARGUMENT_BYTES] = {0};
    for (size_t i = 0; l->count < l->wanted && !atomic_load(&l->stop); i++) {
        const int64_t before_ns = bench_now_ns();
        const CUresult result = bench_gpu_launch_tiny(l->gpu, &shape, l->stream, argument);
        const int64_t after_ns = bench_now_ns();
        if (result != CUDA_SUCCESS) return driver_error(l->gpu->driver, result, JG_ERR_LAUNCH, "the neighbour's launch");
        if (i >= WARM_LAUNCHES) l->us[l->count++] = (double)(after_ns - before_ns) * 1e-3;
        sleep_ns(PAUSE_NS);
    }
    return bench_gpu_wait(l->gpu, l->stream);
}

static void *launcher_main(void *user)
{
    launcher *l = user;
    l->status = bench_gpu_enter(l->gpu);
    if (l->status == JG_OK) {
        l->status = launch_all(l);
        bench_gpu_leave(l->gpu);
    }
    if (l->status != JG_OK) snprintf(l->error, sizeof l->error, "%s", jg_last_error());
    atomic_store(&l->done, 1);
    return NULL;
}

/* ---- a phase ---- */

/* As many kernels as the worker makes in the phase, and a few more; what is over costs only time. */
static int feed_for_phase(neighbour *n, size_t launches)
{
    const jg_stats now = bench_stats_now(n->run);
    const double compile_ms = now.compiles ? now.compile_ms / (double)now.compiles : COMPILE_MS_GUESS;
    const double phase_ms = (double)(launches + WARM_LAUNCHES) * PAUSE_NS * 1.4e-6;
    const int status = bench_feed_give(&n->feed, 3 + (size_t)(phase_ms / compile_ms));
    return status == BENCH_EXIT_DONE ? bench_feed_wait_for_work(&n->feed) : status;
}

static int run_phase(neighbour *n, int compiling, size_t launches)
{
    bench_run *run = n->run;
    launcher l = {.gpu = &run->gpu, .stream = n->own_stream, .us = n->us[compiling] + n->count[compiling], .wanted = launches};
    pthread_t thread;
    if (compiling) {
        const int status = feed_for_phase(n, launches);
        if (status != BENCH_EXIT_DONE) return status;
    } else if (jg_wait_idle(run->context, 120e3) != JG_OK) {
        return bench_fail_status(run, "jg_wait_idle");
    }
    if (pthread_create(&thread, NULL, launcher_main, &l) != 0) return bench_fail(run, "no thread can be started");
    while (!atomic_load(&l.done)) {
        sleep_ns(LOOK_NS);
        const int ran_dry = bench_stats_now(run).queued == 0;
        /* Launches beside an idle worker are not what is measured; on the software GPU nothing is. */
        if (bench_stop_requested() || (compiling && ran_dry && !run->gpu.software)) atomic_store(&l.stop, 1);
    }
    pthread_join(thread, NULL);
    n->count[compiling] += l.count;
    return l.status == JG_OK ? BENCH_EXIT_DONE : bench_fail(run, "%s", l.error);
}

static int run_phases(neighbour *n)
{
    const size_t launches = (size_t)n->run->args.launches / ROUNDS;
    int status = BENCH_EXIT_DONE;
    for (int i = 0; i < 2 * ROUNDS && status == BENCH_EXIT_DONE && !bench_stop_requested(); i++) {
        status = run_phase(n, i % 2, launches);
        bench_show_progress(n->run, i % 2 ? "worker compiling" : "worker idle", (size_t)i + 1, 2 * ROUNDS);
    }
    progress_end(&n->run->progress);
    return status;
}

/* ---- all of it ---- */

static int prepare(neighbour *n)
{
    bench_run *run = n->run;
    const jg_worker_options worker = bench_feed_worker(run);
    double open_ms;
    for (int i = 0; i < 2; i++) {
        n->us[i] = calloc((size_t)run->args.launches, sizeof *n->us[i]);
        if (!n->us[i]) return bench_fail(run, "out of memory");
        memset(n->us[i], 1, (size_t)run->args.launches * sizeof *n->us[i]); /* pages that are there already take no time later */
    }
    if (bench_start_gpu(run) != BENCH_EXIT_DONE) return BENCH_EXIT_FAILED;
    if (bench_gpu_make_stream(&run->gpu, &n->stream) != JG_OK || bench_gpu_make_stream(&run->gpu, &n->own_stream) != JG_OK)
        return bench_fail_status(run, "two streams");
    int status = bench_prepare_cache(run);
    if (status == BENCH_EXIT_DONE) status = bench_fill_cache(run, NULL);
    if (status == BENCH_EXIT_DONE) status = bench_open_library(run, &worker, &open_ms);
    if (status == BENCH_EXIT_DONE) status = bench_feed_open(&n->feed, run, n->stream);
    return status;
}

static int report(neighbour *n, const jg_stats *after)
{
    bench_report *r = &n->run->report;
    bench_report_part(r, "host time of another thread's cuLaunchKernel", "us", BENCH_TAIL);
    const bench_summary idle = bench_report_series(r, "worker idle", n->us[0], n->count[0]);
    const bench_summary compiling = bench_report_series(r, "worker compiling", n->us[1], n->count[1]);
    bench_report_count(r, "kernels compiled", after->compiles);
    bench_report_count(r, "calls that waited", after->waits);
    if (n->run->args.busy_ms > 0) bench_report_count(r, "kernels on the busy stream", atomic_load(&n->busy.kernels));
    if (idle.n > 0 && compiling.n > 0)
        bench_report_target(r, "p99 while compiling, over p99 while idle", compiling.p99 / idle.p99, "x", RATIO_LIMIT);
    if (after->waits)
        return bench_fail(n->run, "calls that waited for their kernel: %llu; see --fill", (unsigned long long)after->waits);
    if (bench_stop_requested() || after->compiles > 0) return BENCH_EXIT_DONE;
    return bench_fail(n->run, "the worker compiled nothing");
}

int bench_neighbour(bench_run *run)
{
    neighbour n = {.run = run};
    int status = prepare(&n);
    if (status == BENCH_EXIT_DONE) {
        bench_begin_report(run);
        if (bench_busy_start(&n.busy, &run->gpu, run->args.busy_ms) != JG_OK)
            status = bench_fail_status(run, "keeping the GPU busy");
    }
    if (status == BENCH_EXIT_DONE) {
        status = run_phases(&n);
        const jg_stats after = bench_stats_now(run);
        const int reported = report(&n, &after);
        if (status == BENCH_EXIT_DONE) status = reported;
    }
    if (bench_busy_stop(&n.busy) != JG_OK) status = bench_fail_status(run, "keeping the GPU busy");
    if (n.feed.run) bench_feed_close(&n.feed);
    if (status == BENCH_EXIT_DONE && !bench_stop_requested()) jg_wait_idle(run->context, 30e3); /* the rest of the last phase */
    bench_close_library(run);
    if (n.stream) run->gpu.stream_destroy(n.stream);
    if (n.own_stream) run->gpu.stream_destroy(n.own_stream);
    for (int i = 0; i < 2; i++) free(n.us[i]);
    return status;
}
