/* jitgemm-prewarm --tune: see tune_run.h. The flow is: what there is to do (tune_setup.c) -> step by step (tune_steps.c), while threads
 * compile ahead (tune_compile.c): race, check, judge, record (tune_measure.c) -> report. */
#include "tune_run.h"

#include "tune_report.h"
#include "tune_scratch.h"
#include "tune_setup.h"

#include <stdlib.h>
#include <string.h>

#define TICK_MS 100.0 /* how often the time, signals and the screen are looked after while a compile is waited for */

/* ---- telling ---- */

static void on_stop(void *user)
{
    tune_state *t = user;
    progress_message(&t->progress, "jitgemm-prewarm: stopping after the measurement at work; interrupt again to exit at once");
}

/* On a terminal: how far, how long, what, and what came of it so far. */
static void show(tune_state *t, size_t done, const tune_problem *last)
{
    char gone[32], left[32], result[160] = "", line[1024];
    const tune_step *step = &t->steps.steps[done];
    const double elapsed_ms = progress_now_ms() - t->started_ms;
    const double to_budget_ms = t->deadline_ms > 0 ? t->started_ms + t->args->budget_ms - progress_now_ms() : -1;
    double left_ms = done ? elapsed_ms * (double)(t->steps.count - done) / (double)done : to_budget_ms;
    if (to_budget_ms >= 0 && left_ms > to_budget_ms) left_ms = to_budget_ms;
    progress_format_time(gone, sizeof gone, elapsed_ms);
    if (left_ms >= 0) progress_format_time(left, sizeof left, left_ms);
    else snprintf(left, sizeof left, "?");
    if (last && tune_is_recorded(last))
        snprintf(result, sizeof result, "last %.*f %s %.3fx, all %.3fx", t->measure.gpu.software ? 0 : 2, last->found.us,
                 t->measure.gpu.software ? "instr" : "us", tune_gain(&last->found), tune_mean_gain(&t->list));
    snprintf(line, sizeof line, "pass %zu/%zu  %zu/%zu  %s gone, %s left  %s  %s", step->pass + 1, t->steps.passes, done,
             t->steps.count, gone, left, step->problem->product.text, result);
    progress_draw(&t->progress, line);
}

/* Elsewhere, and for what failed: a line a measurement. */
static void tell(tune_state *t, size_t done)
{
    char text[1024], line[1200];
    const tune_step *step = &t->steps.steps[done - 1];
    const tune_problem *p = step->problem;
    tune_report_line(p, t->measure.gpu.software, text, sizeof text);
    if (t->steps.passes > 1)
        snprintf(line, sizeof line, "[pass %zu  %zu/%zu] %s", step->pass + 1, done, t->steps.count, text);
    else snprintf(line, sizeof line, "[%zu/%zu] %s", done, t->steps.count, text);
    if (t->progress.mode == PROGRESS_LINES) progress_line(&t->progress, line);
    if (p->error[0]) tune_fail(t, "%s: %s", p->product.text, p->error);
}

/* ---- measuring ---- */

/* Whether there is no time for another measurement, which takes about typical_ms. */
static int is_late(const tune_state *t, double typical_ms)
{
    return t->deadline_ms > 0 && progress_now_ms() + typical_ms >= t->deadline_ms;
}

/* Waits for the kernels of a step. Returns an exit status; with a stop or without time left it is DONE, as is_over tells. */
static int wait_for_kernels(tune_state *t, size_t step, const tune_problem *last, double typical_ms, int *is_over)
{
    for (;;) {
        show(t, step, last);
        const int ready = tune_compile_wait(&t->compile, step, TICK_MS);
        t->interrupted = tune_stop_requested();
        t->out_of_time = !t->interrupted && is_late(t, typical_ms);
        *is_over = t->interrupted || t->out_of_time;
        if (ready < 0) return tune_fail(t, "%s", t->compile.error);
        if (ready || *is_over) return TUNE_EXIT_DONE;
    }
}

static int measure_all(tune_state *t)
{
    const tune_problem *last = NULL;
    double typical_ms = 0;
    for (size_t i = 0; i < t->steps.count; i++) {
        tune_step *step = &t->steps.steps[i];
        int is_over;
        const int status = wait_for_kernels(t, i, last, typical_ms, &is_over);
        if (status != TUNE_EXIT_DONE) return status;
        if (is_over) return TUNE_EXIT_DONE;
        const double began_ms = progress_now_ms();
        step->problem->error[0] = 0;
        const jg_status measured = tune_measure_problem(&t->measure, step->problem, step->limit);
        t->device_is_lost = jg_status_is_fatal(measured);
        if (measured != JG_OK) return tune_fail(t, "%s: %s", step->problem->product.text, jg_last_error());
        const double took_ms = progress_now_ms() - began_ms;
        typical_ms = typical_ms > 0 ? 0.8 * typical_ms + 0.2 * took_ms : took_ms;
        tell(t, i + 1);
        last = step->problem;
    }
    return TUNE_EXIT_DONE;
}

static int measure(tune_state *t)
{
    if (t->steps.count == 0) return TUNE_EXIT_DONE;
    int status = tune_begin(t);
    if (status == TUNE_EXIT_DONE) status = measure_all(t);
    tune_compile_stop(&t->compile);
    return status;
}

/* ---- the report ---- */

/* Problems that are settled without being measured. */
static void tell_settled(tune_state *t)
{
    char line[1024];
    for (size_t i = 0; i < t->list.count; i++) {
        const tune_problem *p = &t->list.problems[i];
        if (p->outcome == TUNE_TOO_LARGE || (p->outcome == TUNE_LEFT && !t->args->dry_run)) continue;
        tune_report_line(p, t->measure.gpu.software, line, sizeof line);
        if (p->outcome == TUNE_FAILED) tune_fail(t, "%s: %s", p->product.text, p->error);
        else if (t->progress.mode == PROGRESS_LINES || t->args->dry_run) progress_line(&t->progress, line);
    }
    if (!t->args->dry_run || t->args->quiet) return;
    snprintf(line, sizeof line, "%zu plans would be compiled and measured; plans recorded for %s: %zu", t->steps.job_count,
             t->stats.place, t->known);
    progress_line(&t->progress, line);
}

static int report(tune_state *t, int status)
{
    const tune_facts facts = {
        .cache = t->args->dry_run ? t->args->cache_path ? t->args->cache_path : "" : t->stats.path, .place = t->stats.place,
        .device = t->measure.gpu.name, .power_mode = t->measure.power_mode, .sm_mhz = t->measure.sm_mhz,
        .elapsed_ms = progress_now_ms() - t->started_ms, .budget_ms = t->args->budget_ms, .compiled = t->compile.compiled,
        .software = t->measure.gpu.software, .dry_run = t->args->dry_run, .interrupted = t->interrupted,
        .out_of_time = t->out_of_time};
    const tune_counts counts = tune_count(&t->list);
    FILE *stream = t->args->json ? stderr : stdout;
    progress_end(&t->progress);
    if (status == TUNE_EXIT_DONE && t->out_of_time && !t->args->quiet)
        progress_message(&t->progress, "jitgemm-prewarm: the budget is used up; run again to go on");
    if (status == TUNE_EXIT_DONE && facts.interrupted)
        progress_message(&t->progress, "jitgemm-prewarm: interrupted: %zu sizes are left; run again to go on", counts.left);
    if (t->list.row_count && !t->args->quiet && !t->args->dry_run) tune_report_table(&t->list, &facts, stream);
    if (t->args->json && tune_report_json(&t->list, &facts, stdout) != 0) status = tune_fail(t, "out of memory");
    tune_report_last_line(&t->list, stream);
    return status;
}

/* A wrong result is a failure, though another plan took its place. */
static int judge(const tune_state *t, int status)
{
    int is_wrong = 0;
    for (size_t i = 0; i < t->list.count; i++)
        is_wrong |= t->list.problems[i].is_wrong || t->list.problems[i].outcome == TUNE_FAILED;
    if (status == TUNE_EXIT_DONE && is_wrong) status = TUNE_EXIT_FAILED;
    return status == TUNE_EXIT_DONE && t->interrupted ? TUNE_EXIT_INTERRUPTED : status;
}

int tune_run(const prewarm_args *args, double started_ms)
{
    static tune_state t;
    t.args = args;
    t.started_ms = started_ms;
    if (args->budget_ms > 0) t.deadline_ms = started_ms + args->budget_ms;
    const progress_mode mode = args->quiet ? PROGRESS_NONE : args->verbose ? PROGRESS_LINES : PROGRESS_AUTO;
    progress_begin(&t.progress, args->json ? stderr : stdout, mode, "");
    if (tune_catch_stop_signals(on_stop, &t) != 0) return tune_fail(&t, "no thread can be started");
    int status = tune_prepare(&t);
    if (status == TUNE_EXIT_DONE) {
        tell_settled(&t);
        if (!args->dry_run) status = measure(&t);
    }
    status = judge(&t, report(&t, status));
    return tune_end(&t, status);
}
