/* jitgemm-bench dispatch: what a call for a size that is known adds to cuLaunchKernel.
 *
 * Three kinds of launch are timed in batches, in turn: the driver alone with a kernel that does nothing, of the same shape and
 * with as many bytes of arguments; jg_gemm; jg_plan_run. After each batch the stream is waited for, so that the launch queue
 * never fills and the GPU's own time does not count. What is told is the difference within a round. With --problems the same
 * is done again when many other problems are remembered, and jg_gemm is also called for a different one of them each time. */
#include "bench_run.h"
#include "bench_same.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define BATCH 256            /* launches of all threads together between two waits */
#define BATCH_LEAST 16
#define BATCH_SOFTWARE 4
#define WARM_ROUNDS 2
#define ADDED_LIMIT_NS 150.0
#define SCALE_LIMIT 2.0
#define FILL_IN_FLIGHT 256

enum { DRIVER, GEMM, PLAN, MANY, KINDS }; /* MANY: jg_gemm, another problem each time */

/* Everything the measurement holds; written before the threads start. */
typedef struct dispatch_run {
    bench_run *run;
    size_t threads, rounds, batch, many; /* many: other problems */
    bench_shape shape;                   /* of the problem's kernel */
    bench_same same;                     /* that kernel itself, where the driver gives it away */
    pthread_barrier_t barrier;
    atomic_int gate;                     /* 0: wait, 1: go, -1: go home, for threads that have just started */
    atomic_int failed;                   /* a thread gave up; all end after the round */
} dispatch_run;

/* One thread with its own stream, memory and plan. */
typedef struct lane {
    dispatch_run *all;
    size_t number;
    CUstream stream;
    bench_matrices matrices;
    jg_operands data;
    jg_plan *plan;
    double *ns[KINDS];       /* of one launch, by round */
    size_t rounds;           /* done */
    jg_problem *next;        /* the batch's other problems */
    uint64_t random;
    pthread_t thread;
    jg_status status;
    char error[512];
} lane;

/* ---- other problems ---- */

/* The i-th of `many`: small, so that its launch is quick, and of the generic form, so that the worker has nothing to do. */
static jg_problem other_problem(size_t i, size_t many)
{
    const size_t side = (size_t)ceil(cbrt((double)many));
    return (jg_problem){.m = (int64_t)(i % side) + 1, .n = (int64_t)(i / side % side) + 1, .k = (int64_t)(i / side / side) + 1,
                        .type_a = JG_F32, .form = JG_FORM_GENERIC};
}

/* Bytes that each matrix of any problem here needs. */
static size_t matrix_bytes(const jg_problem *p, size_t many)
{
    const int64_t dimensions[] = {p->m, p->n, p->k, p->lda, p->ldb, p->ldc, p->ld_residual};
    const int64_t items = p->batch ? p->batch : 1, strides[] = {p->stride_a, p->stride_b, p->stride_c, p->stride_residual};
    int64_t largest = (int64_t)ceil(cbrt((double)many)), stride = 0;
    for (size_t i = 0; i < sizeof dimensions / sizeof *dimensions; i++)
        if (dimensions[i] > largest) largest = dimensions[i];
    for (size_t i = 0; i < sizeof strides / sizeof *strides; i++)
        if (strides[i] > stride) stride = strides[i];
    return (size_t)(largest * largest + (items - 1) * stride) * 4;
}

static int remember_others(dispatch_run *d, const lane *l)
{
    bench_run *run = d->run;
    for (size_t i = 0; i < d->many && !bench_stop_requested(); i++) {
        const jg_problem p = other_problem(i, d->many);
        if (jg_gemm(run->context, &p, &l->data) != JG_OK) return bench_fail_status(run, "one of the other problems");
        if (i % FILL_IN_FLIGHT != 0 && i + 1 != d->many) continue;
        if (bench_gpu_wait(&run->gpu, l->stream) != JG_OK) return bench_fail_status(run, "one of the other problems");
        bench_show_progress(run, "other problems", i + 1, d->many);
    }
    progress_end(&run->progress);
    return BENCH_EXIT_DONE;
}

/* ---- batches ---- */

static jg_status launch_batch(lane *l, int kind, double *ns)
{
    dispatch_run *d = l->all;
    bench_run *run = d->run;
    char argument[BENCH_ARGUMENT_BYTES] = {0};
    jg_status status = JG_OK;
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; kind == MANY && i < d->batch; i++) {
        l->random = l->random * 6364136223846793005u + 1442695040888963407u;
        l->next[i] = other_problem((size_t)((l->random >> 33) % d->many), d->many);
    }
    const int64_t before_ns = bench_now_ns();
    switch (kind) {
    case DRIVER:
        for (size_t i = 0; d->same.function && i < d->batch && result == CUDA_SUCCESS; i++)
            result = bench_same_launch(&run->gpu, &d->same, l->stream);
        for (size_t i = 0; !d->same.function && i < d->batch && result == CUDA_SUCCESS; i++)
            result = bench_gpu_launch_tiny(&run->gpu, &d->shape, l->stream, argument);
        break;
    case GEMM:
        for (size_t i = 0; i < d->batch && status == JG_OK; i++) status = jg_gemm(run->context, &run->args.problem, &l->data);
        break;
    case PLAN:
        for (size_t i = 0; i < d->batch && status == JG_OK; i++) status = jg_plan_run(l->plan, &l->data);
        break;
    case MANY:
        for (size_t i = 0; i < d->batch && status == JG_OK; i++) status = jg_gemm(run->context, &l->next[i], &l->data);
        break;
    }
    *ns = (double)(bench_now_ns() - before_ns) / (double)d->batch;
    if (result != CUDA_SUCCESS) return driver_error(run->gpu.driver, result, JG_ERR_LAUNCH, "cuLaunchKernel");
    return status == JG_OK ? bench_gpu_wait(&run->gpu, l->stream) : status;
}

/* One batch of each kind, all threads the same kind at once; who begins changes, so that none profits. */
static void run_round(lane *l, size_t round, int kinds)
{
    for (int i = 0; i < kinds; i++) {
        const int kind = (int)((round + (size_t)i) % (size_t)kinds);
        double ns = 0;
        pthread_barrier_wait(&l->all->barrier);
        if (l->status == JG_OK) l->status = launch_batch(l, kind, &ns);
        if (round >= WARM_ROUNDS) l->ns[kind][round - WARM_ROUNDS] = ns;
    }
}

/* All threads leave after the same round: what ends them is decided by the first one, between two barriers. */
static void run_rounds(lane *l)
{
    dispatch_run *d = l->all;
    const int kinds = d->many ? KINDS : MANY;
    for (size_t round = 0; round < d->rounds + WARM_ROUNDS; round++) {
        pthread_barrier_wait(&d->barrier);
        if (l->number == 0 && bench_stop_requested()) atomic_store(&d->failed, 1);
        pthread_barrier_wait(&d->barrier);
        if (atomic_load(&d->failed)) break;
        run_round(l, round, kinds);
        if (l->status != JG_OK) atomic_store(&d->failed, 1); /* seen by all after the next barrier */
        else if (round >= WARM_ROUNDS) l->rounds++;
        if (l->number == 0) bench_show_progress(d->run, "launching", round + 1, d->rounds + WARM_ROUNDS);
    }
}

static void *lane_main(void *user)
{
    lane *l = user;
    while (atomic_load(&l->all->gate) == 0) nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    if (atomic_load(&l->all->gate) < 0) return NULL;
    const jg_status entered = bench_gpu_enter(&l->all->run->gpu);
    l->status = entered;
    run_rounds(l); /* also after an error: the others wait at the barrier */
    if (l->status != JG_OK) snprintf(l->error, sizeof l->error, "%s", jg_last_error());
    if (entered == JG_OK) bench_gpu_leave(&l->all->run->gpu);
    return NULL;
}

/* Runs all rounds on all threads. */
static int measure(dispatch_run *d, lane *lanes)
{
    bench_run *run = d->run;
    size_t started = 0;
    int status = BENCH_EXIT_DONE;
    if (pthread_barrier_init(&d->barrier, NULL, (unsigned)d->threads) != 0) return bench_fail(run, "out of memory");
    atomic_store(&d->gate, 0);
    atomic_store(&d->failed, 0);
    for (size_t i = 0; i < d->threads; i++) lanes[i].rounds = 0;
    while (started < d->threads && pthread_create(&lanes[started].thread, NULL, lane_main, &lanes[started]) == 0) started++;
    atomic_store(&d->gate, started == d->threads ? 1 : -1); /* fewer would wait at the barrier for ever */
    for (size_t i = 0; i < started; i++) pthread_join(lanes[i].thread, NULL);
    pthread_barrier_destroy(&d->barrier);
    progress_end(&run->progress);
    if (started < d->threads) return bench_fail(run, "only %zu threads of %zu could be started", started, d->threads);
    for (size_t i = 0; i < d->threads && status == BENCH_EXIT_DONE; i++)
        if (lanes[i].status != JG_OK) status = bench_fail(run, "%s", lanes[i].error);
    return status;
}

/* ---- lanes ---- */

/* What may be fused in is zeros too: A is as large as any of it. */
static void add_fused(jg_operands *data)
{
    data->scale = data->scale_m = data->scale_n = data->a;
    data->bias_m = data->bias_n = data->residual = data->group_scales = data->a;
    data->group_zeros = data->a;
}

static int open_lane(dispatch_run *d, lane *l, size_t number)
{
    bench_run *run = d->run;
    const bench_gpu *gpu = &run->gpu;
    const size_t bytes = matrix_bytes(&run->args.problem, d->many);
    l->all = d;
    l->number = number;
    l->random = number + 1;
    l->next = calloc(d->batch, sizeof *l->next);
    int ok = l->next != NULL;
    for (int kind = 0; kind < KINDS; kind++) ok = ok && (l->ns[kind] = calloc(d->rounds, sizeof *l->ns[kind])) != NULL;
    if (!ok) return bench_fail(run, "out of memory");
    jg_status status = bench_gpu_make_stream(gpu, &l->stream);
    if (status == JG_OK) status = bench_matrices_allocate(gpu, bytes, bytes, bytes, &l->matrices);
    l->data = bench_matrices_data(&l->matrices, l->stream);
    add_fused(&l->data);
    if (status == JG_OK) status = jg_plan_create(run->context, &run->args.problem, &l->plan);
    return status == JG_OK ? BENCH_EXIT_DONE : bench_fail_status(run, "a stream, memory and a plan");
}

static void close_lane(lane *l)
{
    const bench_gpu *gpu = &l->all->run->gpu;
    jg_plan_destroy(l->plan);
    bench_matrices_free(gpu, &l->matrices);
    if (l->stream) gpu->stream_destroy(l->stream);
    for (int kind = 0; kind < KINDS; kind++) free(l->ns[kind]);
    free(l->next);
}

/* ---- results ---- */

/* Collects one kind of all threads, less another kind of the same round if minus >= 0. */
static bench_summary report_kind(dispatch_run *d, const lane *lanes, const char *what, int kind, int minus, double *samples)
{
    char name[128];
    size_t n = 0;
    for (size_t i = 0; i < d->threads; i++)
        for (size_t round = 0; round < lanes[i].rounds; round++)
            samples[n++] = lanes[i].ns[kind][round] - (minus >= 0 ? lanes[i].ns[minus][round] : 0);
    if (d->many) snprintf(name, sizeof name, "%s, among %zu", what, d->many);
    else snprintf(name, sizeof name, "%s", what);
    return bench_report_series(&d->run->report, name, samples, n);
}

/* The medians of a measurement. */
typedef struct medians {
    double gemm, many, added;
    size_t n;
} medians;

static int report_measurement(dispatch_run *d, const lane *lanes, const char *title, medians *out)
{
    double *samples = calloc(d->threads * d->rounds, sizeof *samples);
    if (!samples) return bench_fail(d->run, "out of memory");
    bench_report_part(&d->run->report, title, "ns", BENCH_SPREAD);
    report_kind(d, lanes, "cuLaunchKernel alone", DRIVER, -1, samples);
    const bench_summary gemm = report_kind(d, lanes, "jg_gemm", GEMM, -1, samples);
    report_kind(d, lanes, "jg_plan_run", PLAN, -1, samples);
    out->n = gemm.n;
    out->gemm = gemm.p50;
    out->added = report_kind(d, lanes, "jg_gemm adds", GEMM, DRIVER, samples).p50;
    report_kind(d, lanes, "jg_plan_run adds", PLAN, DRIVER, samples);
    if (d->many) {
        out->many = report_kind(d, lanes, "jg_gemm, another each time", MANY, -1, samples).p50;
        report_kind(d, lanes, "jg_gemm, another each time, adds", MANY, DRIVER, samples);
    }
    free(samples);
    return BENCH_EXIT_DONE;
}

static void report_counts(dispatch_run *d, const jg_stats *before)
{
    const jg_stats after = bench_stats_now(d->run);
    bench_report *r = &d->run->report;
    bench_report_count(r, "problems remembered", after.problems);
    bench_report_count(r, "launches on generic kernels", after.launches_generic - before->launches_generic);
    bench_report_count(r, "launches on own kernels", after.launches_own - before->launches_own);
    bench_report_count(r, "calls that waited", after.waits);
    bench_report_count(r, "compiles meanwhile", after.compiles - before->compiles);
}

/* ---- all of it ---- */

static void note_kernel(dispatch_run *d, const jg_plan_details *details)
{
    const char *alone = d->same.function ? "the same kernel with the same arguments"
                                         : "a kernel of the same shape that does nothing";
    char problem[JG_PROBLEM_TEXT_BYTES] = "", text[1024];
    jg_problem_format(&d->run->args.problem, problem, sizeof problem, NULL);
    snprintf(text, sizeof text,
             "The problem is %s, on %s. cuLaunchKernel alone launches %s. Threads: %zu; launches in a batch: %zu.", problem,
             details->kernel, alone, d->threads, d->batch);
    bench_report_note(&d->run->report, text);
}

static int measure_few(dispatch_run *d, lane *lanes, medians *few)
{
    const size_t many = d->many;
    d->many = 0;
    int status = measure(d, lanes);
    const int reported = report_measurement(d, lanes, "host time of a launch, one problem", few);
    d->many = many;
    return status == BENCH_EXIT_DONE ? reported : status;
}

static int measure_many(dispatch_run *d, lane *lanes, medians *many)
{
    char title[96];
    if (!d->many || bench_stop_requested()) return BENCH_EXIT_DONE;
    int status = remember_others(d, &lanes[0]);
    if (status == BENCH_EXIT_DONE && !bench_stop_requested()) status = measure(d, lanes);
    snprintf(title, sizeof title, "the same among %zu other problems", d->many);
    const int reported = report_measurement(d, lanes, title, many);
    return status == BENCH_EXIT_DONE ? reported : status;
}

static int measure_all(dispatch_run *d, lane *lanes)
{
    bench_run *run = d->run;
    medians few = {0}, many = {0};
    int status = BENCH_EXIT_DONE;
    jg_plan_details details;
    for (size_t i = 0; i < d->threads && status == BENCH_EXIT_DONE; i++) status = open_lane(d, &lanes[i], i);
    if (status != BENCH_EXIT_DONE) return status;
    jg_plan_info(lanes[0].plan, &details);
    d->shape = (bench_shape){(unsigned)details.grid_x, (unsigned)details.grid_y, (unsigned)details.threads,
                             (unsigned)details.shared_bytes};
    if (bench_gpu_allow_shape(&run->gpu, &d->shape) != JG_OK) return bench_fail_status(run, "the benchmark's own kernel");
    status = bench_same_open(run, &run->args.problem, &lanes[0].data, &d->same);
    if (status != BENCH_EXIT_DONE) return status;

    const jg_stats before = bench_stats_now(run);
    status = measure_few(d, lanes, &few);
    if (status == BENCH_EXIT_DONE) status = measure_many(d, lanes, &many);
    report_counts(d, &before);
    bench_report *r = &run->report;
    if (few.n) bench_report_target(r, "jg_gemm adds to cuLaunchKernel, median", few.added, "ns", ADDED_LIMIT_NS);
    if (many.n) bench_report_target(r, "jg_gemm, among many problems over one", many.many / few.gemm, "x", SCALE_LIMIT);
    note_kernel(d, &details);
    return status;
}

int bench_dispatch(bench_run *run)
{
    const size_t threads = (size_t)run->args.threads, share = BATCH / threads, batch = share < BATCH_LEAST ? BATCH_LEAST : share;
    dispatch_run d = {.run = run, .threads = threads, .rounds = (size_t)run->args.batches, .many = (size_t)run->args.problems,
                      .batch = run->gpu.software ? BATCH_SOFTWARE : batch};
    double open_ms;
    lane *lanes = calloc(threads, sizeof *lanes);
    if (!lanes) return bench_fail(run, "out of memory");
    for (size_t i = 0; i < threads; i++) lanes[i].all = &d;
    int status = bench_start_gpu(run);
    if (status == BENCH_EXIT_DONE) status = bench_prepare_cache(run);
    if (status == BENCH_EXIT_DONE) status = bench_fill_cache(run, &run->args.problem);
    if (status == BENCH_EXIT_DONE) status = bench_open_library(run, NULL, &open_ms);
    if (status == BENCH_EXIT_DONE && jg_prewarm(run->context, &run->args.problem, 1, NULL, NULL) != JG_OK)
        status = bench_fail_status(run, "the problem's own kernel");
    if (status == BENCH_EXIT_DONE) {
        bench_begin_report(run);
        status = measure_all(&d, lanes);
    }
    for (size_t i = 0; i < threads; i++) close_lane(&lanes[i]);
    bench_same_close(&d.same);
    bench_close_library(run);
    free(lanes);
    return status;
}
