/* jitgemm-bench plans common16, ...: every kernel that the planner chooses among, measured, for each product of the suites.
 *
 * The flow is: sizes of the suites -> a context of the library -> all candidates compiled, several at a time, through the cache
 * file -> warm up -> product by product (bench_race.c), row by row (bench_plan_rows.c). */
#include "bench_plan_rows.h"
#include "bench_products.h"
#include "bench_race.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SOFTWARE_FLOPS 1e7             /* the software GPU runs every candidate */
#define CACHE_BYTES ((uint64_t)4 << 30) /* thousands of kernels; the library's own cap would drop those that are to be measured */
enum { JOBS_MAX = 64 };

typedef struct plans {
    bench_run *run;
    products s;
    bench_plan_rows rows;
    bench_race_faults faults;
    size_t measured;             /* candidates */
} plans;

/* ---- compiling ---- */

typedef struct work {
    plans *p;
    size_t *ends;                /* candidates of products up to this one, itself included */
    pthread_mutex_t lock;        /* guards all below */
    size_t next, done, total;
    int status;                  /* an exit status */
} work;

static int count_all(work *w)
{
    const products *s = &w->p->s;
    bench_run *run = w->p->run;
    for (size_t i = 0; i < s->count; i++) {
        size_t count, all;
        const jg_status status = jg_plan_count_candidates(run->context, &s->list[i].problem, &count, &all);
        if (status != JG_OK) return bench_fail_status(run, s->list[i].text);
        w->total += run->args.all_classes ? all : count;
        w->ends[i] = w->total;
    }
    return BENCH_EXIT_DONE;
}

/* Makes and forgets one: it stays loaded. What cannot be made is told in its row. Returns 0 if no other can be made either. */
static int make_one(work *w, size_t number)
{
    bench_run *run = w->p->run;
    const bench_product *list = w->p->s.list;
    jg_plan *plan;
    size_t i = 0;
    while (w->ends[i] <= number) i++;
    const jg_status status = jg_plan_create_candidate(run->context, &list[i].problem, number - (i ? w->ends[i - 1] : 0), &plan);
    jg_plan_destroy(plan);
    return status != JG_ERR_NO_NVRTC && status != JG_ERR_NO_MEMORY && !jg_status_is_fatal(status);
}

static void *make_next(void *argument)
{
    work *w = argument;
    pthread_mutex_lock(&w->lock);
    while (w->next < w->total && w->status == BENCH_EXIT_DONE && !bench_stop_requested()) {
        const size_t number = w->next++;
        pthread_mutex_unlock(&w->lock);
        const int can_go_on = make_one(w, number);
        pthread_mutex_lock(&w->lock);
        if (!can_go_on && w->status == BENCH_EXIT_DONE) w->status = bench_fail_status(w->p->run, "making the kernels"); /* once */
        bench_show_progress(w->p->run, "compiling", ++w->done, w->total);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

static size_t job_count(const bench_run *run)
{
    cpu_set_t allowed;
    size_t jobs = (size_t)run->args.jobs;
    if (jobs == 0) jobs = sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? (size_t)CPU_COUNT(&allowed) : 1;
    return jobs < JOBS_MAX ? jobs : JOBS_MAX;
}

/* Compiles and loads every candidate before anything is timed. */
static int compile_all(plans *p)
{
    pthread_t threads[JOBS_MAX];
    size_t started = 0;
    work w = {.p = p, .lock = PTHREAD_MUTEX_INITIALIZER};
    w.ends = calloc(p->s.count, sizeof *w.ends);
    if (!w.ends) return bench_fail(p->run, "out of memory");
    w.status = count_all(&w);
    const size_t jobs = w.status == BENCH_EXIT_DONE ? job_count(p->run) : 0;
    while (started < jobs && pthread_create(&threads[started], NULL, make_next, &w) == 0) started++;
    if (jobs && !started) make_next(&w);
    for (size_t i = 0; i < started; i++) pthread_join(threads[i], NULL);
    progress_end(&p->run->progress);
    free(w.ends);
    return w.status == BENCH_EXIT_DONE && bench_stop_requested() ? BENCH_EXIT_INTERRUPTED : w.status;
}

/* ---- measuring ---- */

static void begin_report(plans *p)
{
    bench_run *run = p->run;
    bench_report *r = &run->report;
    char text[256];
    bench_begin_report(run);
    bench_report_note(r, run->args.all_classes ? "All legal kernels of each product, of every numeric class."
                                               : "All legal kernels of each product that give the same bits.");
    if (run->gpu.software) {
        bench_report_note(r, "Counters of the software GPU instead of times.");
    } else {
        snprintf(text, sizeof text, "Times of the planner's choice, and of what is within 10 %% of the best, are medians of %ld "
                 "samples in turns, each a graph's replay of about %ld us; of the others, of a short look.", run->args.rounds,
                 run->args.sample_us);
        bench_report_note(r, text);
        bench_report_note(r, "gap: time of the planner's choice / time of the best.");
    }
    if (!p->s.left_out) return;
    snprintf(text, sizeof text, "Left out, too large for the software GPU: %zu sizes.", p->s.left_out);
    bench_report_note(r, text);
}

static int warm_up(plans *p)
{
    bench_run *run = p->run;
    bench_arena *a = &p->s.arena;
    if (run->gpu.software) return BENCH_EXIT_DONE;
    bench_show_progress(run, "warming up", 0, 1);
    const jg_status status = bench_ceilings_measure(&run->gpu, a->clock.stream, &a->ceilings);
    bench_show_progress(run, "warming up", 1, 1);
    if (status != JG_OK) return bench_fail_status(run, "warming up");
    bench_report_fact_number(&run->report, "clocks_settled_s", a->ceilings.warm_up_s);
    if (!a->ceilings.settled)
        bench_report_note(&run->report, "The GPU's clocks had not settled when measuring began: times may drift.");
    return BENCH_EXIT_DONE;
}

static int measure_row(plans *p, const bench_product *product)
{
    bench_run *run = p->run;
    cJSON *row;
    const jg_status status = bench_race(&p->s.arena, product, run->args.all_classes, &row, &p->faults);
    if (status != JG_OK) return bench_fail_status(run, product->text);
    progress_end(&run->progress);
    p->measured += (size_t)cJSON_GetArraySize(cJSON_GetObjectItem(row, "candidates"));
    bench_plan_rows_add(&p->rows, &run->report, row);
    return BENCH_EXIT_DONE;
}

static int measure_rows(plans *p)
{
    bench_run *run = p->run;
    const products *s = &p->s;
    int first = 0, status = BENCH_EXIT_DONE;
    for (size_t i = 0; i < s->count && status == BENCH_EXIT_DONE && !bench_stop_requested(); i++) {
        if (run->report.write_error || p->rows.write_error) break;
        bench_show_progress(run, s->list[i].text, i, s->count);
        status = measure_row(p, &s->list[i]);
        const int is_last = i + 1 == s->count || bench_stop_requested() ||
                            !bench_products_same_group(&s->list[i], &s->list[i + 1]);
        if (status == BENCH_EXIT_DONE && is_last) {
            bench_plan_rows_sum_up(&run->report, first);
            first = cJSON_GetArraySize(run->report.plans);
        }
    }
    progress_end(&run->progress);
    if (status == BENCH_EXIT_DONE && p->faults.wrong + p->faults.refused)
        return bench_fail(run, "of %zu kernels %zu gave wrong results and %zu were refused", p->measured, p->faults.wrong,
                          p->faults.refused);
    return status;
}

/* ---- the file of candidates ---- */

/* Before minutes of measuring: a path that cannot be written is told at once. */
static int open_file(plans *p)
{
    const char *path = p->run->args.csv_path;
    if (path && !(p->rows.file = fopen(path, "w"))) return bench_fail(p->run, "--write-csv: %s: %s", path, strerror(errno));
    return BENCH_EXIT_DONE;
}

static int close_file(plans *p, int status)
{
    int error = p->rows.write_error;
    if (!p->rows.file) return status;
    if (fclose(p->rows.file) != 0 && !error) error = errno;
    if (!error || status == BENCH_EXIT_FAILED) return status;
    return bench_fail(p->run, "--write-csv: %s: %s", p->run->args.csv_path, strerror(error));
}

/* ---- all together ---- */

static int prepare(plans *p)
{
    bench_run *run = p->run;
    int status = bench_products_collect(&p->s);
    if (status == BENCH_EXIT_DONE) status = open_file(p);
    if (status == BENCH_EXIT_DONE) status = bench_start_gpu(run);
    if (status == BENCH_EXIT_DONE) status = bench_prepare_cache(run);
    if (status == BENCH_EXIT_DONE) status = bench_products_open_library(&p->s);
    if (status == BENCH_EXIT_DONE) status = compile_all(p);
    if (status != BENCH_EXIT_DONE) return status;
    begin_report(p);
    return bench_products_allocate(&p->s);
}

int bench_plans(bench_run *run)
{
    plans p = {.run = run, .s = {.run = run, .software_flops = SOFTWARE_FLOPS, .cache_max_bytes = CACHE_BYTES}};
    const int no_peer = run->args.no_peer;
    bench_machine_open(&p.s.machine, run->gpu.pci_bus_id);
    run->args.no_peer = 1; /* whose ceilings would need memory */
    int status = prepare(&p);
    if (status == BENCH_EXIT_DONE) status = warm_up(&p);
    if (status == BENCH_EXIT_DONE) {
        bench_products_conditions(&p.s, "");
        status = measure_rows(&p);
        bench_products_conditions(&p.s, "_end");
    }
    status = close_file(&p, status);
    bench_products_close(&p.s);
    bench_close_library(run);
    run->args.no_peer = no_peer;
    return status;
}
