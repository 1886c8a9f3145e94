/* jitgemm-bench common16, poison, ..., --list: suites of products, each measured against the peers.
 *
 * The flow is: sizes of the suites -> one pool of memory for all -> a context of the library, every kernel compiled or loaded ->
 * peers -> ceilings of the GPU -> row by row (bench_contest.c), group by group. */
#include "bench_products.h"

#include "bench_label.h"
#include "bench_misalign.h"
#include "status.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WORKSPACE_BYTES ((size_t)64 << 20) /* as much as cuBLAS' own advice for a Hopper, and more than for others */

/* ---- the GPU and the library ---- */

/* A grouped call of the suite tiny makes its kernel when it is checked, before anything is timed: no fault of anybody's. */
static void on_log(void *user, jg_log_level level, const char *text)
{
    if (strncmp(text, "grouped waited", strlen("grouped waited")) != 0) bench_on_log(user, level, text);
}

int bench_products_open_library(products *s)
{
    bench_run *run = s->run;
    const jg_options options = {
        .device = JG_DEVICE_CUDA, .compile = JG_COMPILE_WAIT, .resident = JG_RESIDENT_NONE, .prewarm = JG_PREWARM_NO_MET,
        .arch = bench_planned_arch(run), .sm_count = bench_planned_sms(run),
        .memory_max_kernels = 1 << 16, .memory_max_bytes = (uint64_t)4 << 30, .cache_max_bytes = s->cache_max_bytes,
        .cache_path = run->cache_path, .plans = run->args.plans,
        .nvrtc_path = run->args.nvrtc_path, .driver_path = run->args.driver_path, .log = on_log, .log_user = run};
    if (jg_open(&options, &run->context) == JG_OK) return BENCH_EXIT_DONE;
    run->context = NULL;
    return bench_fail_status(run, run->args.as_arch > 0 ? "--as-arch" : "jg_open");
}

static int on_compile(void *user, const jg_progress *step)
{
    bench_show_progress(user, "compiling", step->done, step->total);
    return bench_stop_requested();
}

/* Compiles and loads every kernel before anything is timed. One that cannot be made is told in its row. */
static int prewarm(products *s)
{
    bench_run *run = s->run;
    const size_t forms = run->args.generic ? 2 : 1;
    jg_problem *problems = calloc(s->count * forms, sizeof *problems);
    if (!problems) return bench_fail(run, "out of memory");
    for (size_t i = 0; i < s->count; i++) {
        problems[i] = s->list[i].problem;
        if (forms == 1) continue;
        problems[s->count + i] = s->list[i].problem;
        problems[s->count + i].form = JG_FORM_GENERIC;
    }
    const jg_prewarm_options how = {.progress = on_compile, .user = run};
    const jg_status status = jg_prewarm(run->context, problems, s->count * forms, &how, NULL);
    progress_end(&run->progress);
    free(problems);
    if (status == JG_ERR_CANCELLED) return BENCH_EXIT_INTERRUPTED;
    if (status == JG_ERR_NO_NVRTC || status == JG_ERR_NO_MEMORY || jg_status_is_fatal(status))
        return bench_fail_status(run, "making the kernels");
    return BENCH_EXIT_DONE;
}

/* ---- peers, memory ---- */

static void peer_is_missing(products *s, const char *what)
{
    char text[1200];
    snprintf(text, sizeof text, "%s: %s", what, jg_last_error());
    bench_report_note(&s->run->report, text);
}

/* A peer that is not there is noted; one that was named and is not there is an error. */
static int open_peers(products *s)
{
    bench_run *run = s->run;
    bench_arena *a = &s->arena;
    if (run->args.no_peer || run->gpu.software) return BENCH_EXIT_DONE;
    const CUresult result = run->gpu.driver->memory_allocate(&s->workspace, WORKSPACE_BYTES);
    if (bench_gpu_failed(&run->gpu, result, "cuMemAlloc") != JG_OK) return bench_fail_status(run, "a workspace for cuBLAS");
    jg_status status = bench_peer_open(run->args.cublas_path, &a->peer);
    if (status == JG_OK) status = bench_peer_create(&a->peer, a->clock.stream);
    if (status == JG_OK) status = bench_peer_workspace(&a->peer, s->workspace, WORKSPACE_BYTES);
    if (status == JG_OK && run->gpu.narrow_sms) status = bench_peer_sm_target(&a->peer, run->gpu.narrow_sms);
    a->has_peer = status == JG_OK;
    if (!a->has_peer) peer_is_missing(s, "cuBLAS");
    if (!a->has_peer && run->args.cublas_path) return bench_fail_status(run, "--cublas");
    if (a->has_peer) bench_report_fact_number(&run->report, "cublas", a->peer.version);
    status = bench_lt_open(run->args.cublaslt_path, &a->lt);
    if (status == JG_OK) status = bench_lt_create(&a->lt, s->workspace, WORKSPACE_BYTES, run->gpu.narrow_sms);
    a->has_lt = status == JG_OK;
    if (!a->has_lt) peer_is_missing(s, "cuBLASLt");
    if (!a->has_lt && run->args.cublaslt_path) return bench_fail_status(run, "--cublaslt");
    if (a->has_lt) bench_report_fact_number(&run->report, "cublaslt", (double)a->lt.version);
    return BENCH_EXIT_DONE;
}

/* The sizes that cuBLASLt keeps a GPU busiest with, in each type: a ceiling beside the measured instructions. The first three are
 * always measured. */
static const char *const ceiling_sizes[] = {"4096:f16", "4096:bf16", "2048:f32", "4096:s8:nt", "4096:tf32", "4096:f16:f16acc",
                                            "4096:e4m3:nt"};
enum { CEILING_SIZES = sizeof ceiling_sizes / sizeof *ceiling_sizes, CEILINGS_ALWAYS = 3 };

/* Whether some product is held against such a ceiling. */
static int is_wanted(const products *s, const char *ceiling)
{
    for (size_t i = 0; i < s->count; i++)
        if (strcmp(bench_label_ceiling(&s->list[i].problem), ceiling) == 0) return 1;
    return 0;
}

static int make_ceiling_product(const products *s, int i, bench_product *out)
{
    *out = (bench_product){.suite = "ceiling", .list = "ceiling", .text = ceiling_sizes[i]};
    return jg_problem_parse(ceiling_sizes[i], &out->problem) == JG_OK &&
           (i < CEILINGS_ALWAYS || is_wanted(s, bench_label_ceiling(&out->problem))) &&
           bench_layout_make(&out->problem, 0, 1, &out->layout) == JG_OK;
}

int bench_products_allocate(products *s)
{
    bench_run *run = s->run;
    bench_arena *a = &s->arena;
    size_t in = 0, out = 0, extra = 0, most = 0, largest = 0;
    for (size_t i = 0; i < s->count; i++) {
        const bench_layout *l = &s->list[i].layout;
        const size_t needs_in = bench_layout_in_bytes(l), needs_out = bench_layout_out_bytes(l);
        const size_t needs_extra = bench_layout_extra_bytes(l);
        if (needs_in + needs_out + needs_extra > most) {
            most = needs_in + needs_out + needs_extra;
            largest = i;
        }
        if (needs_extra > extra) extra = needs_extra;
        if (needs_in > in) in = needs_in;
        if (needs_out > out) out = needs_out;
    }
    for (int i = 0; i < CEILING_SIZES && !run->gpu.software && !run->args.no_peer; i++) {
        bench_product p;
        if (!make_ceiling_product(s, i, &p)) continue;
        if (bench_layout_in_bytes(&p.layout) > in) in = bench_layout_in_bytes(&p.layout);
        if (bench_layout_out_bytes(&p.layout) > out) out = bench_layout_out_bytes(&p.layout);
    }
    a->gpu = &run->gpu;
    a->context = run->context;
    a->rounds = (size_t)run->args.rounds;
    a->sample_us = (double)run->args.sample_us;
    if (bench_clock_open(&run->gpu, &a->clock) != JG_OK) return bench_fail_status(run, "a stream");
    if (bench_pool_open(&run->gpu, in, out, extra, &a->pool) == JG_OK) return BENCH_EXIT_DONE;
    return bench_fail(run, "%.0f MiB for operands, of %s above all: %s", (double)(in + out + extra) / 1048576,
                      s->list[largest].text, jg_last_error());
}

/* ---- ceilings ---- */

static void add_ceilings(products *s)
{
    bench_report *r = &s->run->report;
    const bench_ceilings *c = &s->arena.ceilings;
    if (r->format == BENCH_TABLE) puts("\nceilings of this GPU");
    for (size_t i = 0; i < c->count; i++) {
        const bench_ceiling *one = &c->list[i];
        cJSON *object = cJSON_CreateObject();
        const int ok = object && cJSON_AddStringToObject(object, "name", one->name) &&
                       cJSON_AddStringToObject(object, "unit", one->unit) &&
                       cJSON_AddNumberToObject(object, "value", one->value) && cJSON_AddStringToObject(object, "how", one->how);
        if (!ok) {
            cJSON_Delete(object);
            object = NULL;
        }
        bench_report_add(r, &r->ceilings, object);
        if (r->format == BENCH_TABLE) printf("  %-10s%10.1f %-9s %s\n", one->name, one->value, one->unit, one->how);
    }
    if (r->format == BENCH_TABLE)
        printf("  clocks %s after %.1f s\n", c->settled ? "settled" : "had not settled", c->warm_up_s);
    bench_report_break(r);
}

static int measure_ceilings(products *s)
{
    bench_run *run = s->run;
    if (run->gpu.software) return BENCH_EXIT_DONE;
    bench_show_progress(run, "warming up", 0, 1);
    if (bench_ceilings_measure(&run->gpu, s->arena.clock.stream, &s->arena.ceilings) != JG_OK)
        return bench_fail_status(run, "ceilings");
    bench_show_progress(run, "warming up", 1, 1);
    for (int i = 0; i < CEILING_SIZES; i++) {
        bench_product p;
        if (make_ceiling_product(s, i, &p) && bench_contest_ceiling(&s->arena, &p) == JG_ERR_DEVICE_LOST)
            return bench_fail_status(run, p.text);
    }
    add_ceilings(s);
    bench_report_fact_number(&run->report, "clocks_settled_s", s->arena.ceilings.warm_up_s);
    if (!s->arena.ceilings.settled)
        bench_report_note(&run->report, "The GPU's clocks had not settled when measuring began: times may drift.");
    return BENCH_EXIT_DONE;
}

/* ---- the report ---- */

void bench_products_conditions(products *s, const char *when)
{
    bench_report *r = &s->run->report;
    const bench_conditions now = bench_machine_conditions(&s->machine);
    const struct { const char *what, *unit; double value; } rows[] = {{"clock_sm", "mhz", now.sm_mhz},
        {"clock_memory", "mhz", now.memory_mhz}, {"temperature", "c", now.temperature_c}, {"power", "w", now.power_w}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s%s_%s", rows[i].what, when, rows[i].unit);
        if (rows[i].value >= 0) bench_report_fact_number(r, name, rows[i].value);
    }
    if (r->format == BENCH_TABLE && now.sm_mhz >= 0)
        printf("%s: %.0f MHz, memory %.0f MHz, %.0f C, %.0f W\n", *when ? "after" : "before", now.sm_mhz, now.memory_mhz,
               now.temperature_c, now.power_w);
}

/* Which plans are measured: recorded ones, or the planner's own. */
static void add_plans(bench_run *run)
{
    char text[256];
    const jg_stats stats = bench_stats_now(run);
    const int model = run->args.plans == JG_PLANS_MODEL;
    bench_report_fact(&run->report, "plans", model ? "model" : "auto");
    bench_report_fact_number(&run->report, "recorded_plans", (double)stats.tuned);
    if (model) snprintf(text, sizeof text, "Plans are those of the planner's model alone.");
    else snprintf(text, sizeof text, "Recorded plans for %s: %llu; else those of the planner's model.", stats.place,
                  (unsigned long long)stats.tuned);
    if (model || stats.tuned) bench_report_note(&run->report, text);
}

static void begin_report(products *s)
{
    bench_run *run = s->run;
    bench_report *r = &run->report;
    char text[256];
    bench_begin_report(run);
    add_plans(run);
    if (run->gpu.software) {
        bench_report_note(r, "Counters of the software GPU instead of times.");
        bench_report_note(r, "load and store sect.: sectors of 32 bytes of global memory. "
                             "conflicts: cycles lost to bank conflicts.");
    } else {
        snprintf(text, sizeof text, "Medians of %ld samples in turns, each a graph's replay of about %ld us between two events.",
                 run->args.rounds, run->args.sample_us);
        bench_report_note(r, text);
        bench_report_note(r, "spread: (p75 - p25) / median. ratio: time of the best peer / ours; ~: may be chance (p >= 0.01).");
        bench_report_note(r, "roofline: part of what c(ompute), m(emory) or the l(2) cache allows.");
    }
    bench_report_note(r, "check: our largest error / what is allowed. The reference is computed in double.");
    if (s->left_out) {
        snprintf(text, sizeof text, "Left out, too large for the software GPU: %zu sizes.", s->left_out);
        bench_report_note(r, text);
    }
}

/* ---- rows ---- */

/* Of the suite of misaligned layouts: which one this is, and how many times as long as the aligned one it takes. */
static void add_cost(products *s, const bench_product *p, cJSON *row)
{
    if (strcmp(p->suite, BENCH_MISALIGN) != 0) return;
    const double cost = bench_misalign_cost(&s->aligned, &p->problem, bench_row_us(row));
    const char *layout = bench_misalign_name(bench_misalign_of(&p->problem));
    if (!cJSON_AddStringToObject(row, "layout", layout) || (!isnan(cost) && !cJSON_AddNumberToObject(row, "cost", cost)))
        s->run->report.out_of_memory = 1;
}

static int measure_row(products *s, size_t i)
{
    bench_run *run = s->run;
    const bench_product *p = &s->list[i];
    cJSON *row;
    double gain;
    int wrong = 0;
    const jg_status status = bench_contest(&s->arena, p, &row, &gain, &wrong);
    if (status != JG_OK) {
        cJSON_Delete(row);
        return bench_fail_status(run, p->text);
    }
    progress_end(&run->progress);
    add_cost(s, p, row);
    bench_rows_add(&s->rows, &run->report, row);
    s->wrong += (size_t)wrong;
    if (run->args.record && gain > 0 && jg_record_gain(run->context, &p->problem, gain) != JG_OK)
        return bench_fail_status(run, "--record");
    return BENCH_EXIT_DONE;
}

static int measure_rows(products *s)
{
    bench_run *run = s->run;
    int first = 0, status = BENCH_EXIT_DONE;
    for (size_t i = 0; i < s->count && status == BENCH_EXIT_DONE && !bench_stop_requested() && !run->report.write_error; i++) {
        bench_show_progress(run, s->list[i].text, i, s->count);
        status = measure_row(s, i);
        const int is_last = i + 1 == s->count || bench_stop_requested() ||
                            !bench_products_same_group(&s->list[i], &s->list[i + 1]);
        if (status == BENCH_EXIT_DONE && is_last) {
            bench_rows_sum_up(&run->report, first);
            first = cJSON_GetArraySize(run->report.rows);
        }
    }
    progress_end(&run->progress);
    if (status == BENCH_EXIT_DONE && s->wrong)
        return bench_fail(run, "%zu of %zu results are wrong, see check", s->wrong, s->count);
    return status;
}

void bench_products_close(products *s)
{
    bench_arena *a = &s->arena;
    bench_lt_close(&a->lt);
    bench_peer_close(&a->peer);
    bench_pool_close(&a->pool);
    bench_clock_close(&a->clock);
    if (s->workspace) s->run->gpu.driver->memory_free(s->workspace);
    bench_products_forget(s);
    bench_machine_close(&s->machine);
}

static int prepare(products *s)
{
    bench_run *run = s->run;
    int status = bench_products_collect(s);
    if (status == BENCH_EXIT_DONE) status = bench_start_gpu(run);
    if (status == BENCH_EXIT_DONE) status = bench_prepare_cache(run);
    if (status == BENCH_EXIT_DONE) status = bench_products_open_library(s);
    if (status == BENCH_EXIT_DONE) status = prewarm(s);
    if (status != BENCH_EXIT_DONE) return status;
    begin_report(s);
    s->arena.generic = run->args.generic;
    status = bench_products_allocate(s);
    if (status == BENCH_EXIT_DONE) status = open_peers(s);
    return status;
}

int bench_products(bench_run *run)
{
    products s = {.run = run};
    bench_machine_open(&s.machine, run->gpu.pci_bus_id);
    int status = prepare(&s);
    if (status == BENCH_EXIT_DONE) status = measure_ceilings(&s);
    if (status == BENCH_EXIT_DONE) {
        bench_products_conditions(&s, "");
        status = measure_rows(&s);
        bench_products_conditions(&s, "_end");
    }
    bench_products_close(&s);
    bench_close_library(run);
    return status;
}
