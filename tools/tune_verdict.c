/* Judges a race: see tune_verdict.h. */
#include "tune_verdict.h"

#include "bench_significance.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* What is compared; 0: nothing is known. */
static double cost_of(const bench_runner *one, int software)
{
    if (!bench_runner_is_right(one)) return 0;
    return software ? (double)one->counters.instructions : one->us;
}

/* The fastest right one but for `other`; the number of all if there is none. */
static size_t find_fastest(const bench_race_result *race, int software, size_t other)
{
    size_t best = race->count;
    for (size_t i = 0; i < race->count; i++) {
        const double cost = cost_of(&race->all[i], software);
        if (i == other || cost <= 0) continue;
        if (best == race->count || cost < cost_of(&race->all[best], software)) best = i;
    }
    return best;
}

/* Whether one is faster than the model's choice by enough, and by more than chance. */
static int is_better(const bench_runner *one, const bench_runner *planned, int software)
{
    if (cost_of(planned, software) < TUNE_LEAST_GAIN * cost_of(one, software)) return 0;
    if (software) return 1;
    if (!one->rounds || !planned->rounds) return 0;
    const double p = bench_mann_whitney(one->rounds, one->samples, planned->rounds, planned->samples);
    return p >= 0 && p < BENCH_RACE_CHANCE;
}

/* ---- the reason ---- */

typedef struct writer {
    char *text;
    size_t size, length;
    int is_first;
} writer;

/* Adds to the list of differences; what does not fit is left out. */
__attribute__((format(printf, 2, 3)))
static void add(writer *w, const char *format, ...)
{
    va_list arguments;
    if (w->length + 1 >= w->size) return;
    if (!w->is_first) w->length += (size_t)snprintf(w->text + w->length, w->size - w->length, ", ");
    w->is_first = 0;
    if (w->length >= w->size) return;
    va_start(arguments, format);
    w->length += (size_t)vsnprintf(w->text + w->length, w->size - w->length, format, arguments);
    va_end(arguments);
}

static void add_number(writer *w, const char *one, const char *more, int now, int before)
{
    if (now != before) add(w, "%d %s (was %d)", now, now == 1 ? one : more, before);
}

void tune_explain(const jg_plan_details *planned, const jg_plan_details *winner, char *text, size_t size)
{
    writer w = {.text = text, .size = size, .is_first = 1};
    const jg_plan_details *p = planned, *n = winner;
    *text = 0;
    if (strcmp(n->family, p->family) != 0) add(&w, "%s (was %s)", n->family, p->family);
    if (n->tile_m != p->tile_m || n->tile_n != p->tile_n) add(&w, "tile %dx%d (was %dx%d)", n->tile_m, n->tile_n, p->tile_m, p->tile_n);
    if (n->tile_k != p->tile_k) add(&w, "k step %d (was %d)", n->tile_k, p->tile_k);
    if (n->warp_m != p->warp_m || n->warp_n != p->warp_n)
        add(&w, "%s %dx%d (was %dx%d)", strcmp(n->family, "simt") == 0 ? "thread" : "warp", n->warp_m, n->warp_n, p->warp_m, p->warp_n);
    add_number(&w, "stage", "stages", n->stages, p->stages);
    add_number(&w, "slice", "slices", n->slices, p->slices);
    add_number(&w, "block an SM", "blocks an SM", n->blocks_per_sm, p->blocks_per_sm);
    if (fabs(n->waves - p->waves) > 0.005) add(&w, "%.2f waves (was %.2f)", n->waves, p->waves);
    if (n->estimate_clocks <= 0 || p->estimate_clocks <= 0 || w.length + 1 >= size) return;
    const double slower = n->estimate_clocks / p->estimate_clocks;
    snprintf(text + w.length, size - w.length, "%sthe model took it for %.2fx %s", w.is_first ? "" : "; ",
             slower >= 1 ? slower : 1 / slower, slower >= 1 ? "slower" : "faster");
}

/* ---- the verdict ---- */

size_t tune_judge(const bench_race_result *race, int software, tune_found *found)
{
    const bench_runner *planned = &race->all[race->planned];
    size_t winner = find_fastest(race, software, race->count);
    if (winner == race->count) return winner;
    if (cost_of(planned, software) > 0 && winner != race->planned && !is_better(&race->all[winner], planned, software))
        winner = race->planned;
    const size_t second = find_fastest(race, software, winner);
    const bench_runner *first = &race->all[winner];
    found->us = cost_of(first, software);
    found->planned_us = cost_of(planned, software);
    found->runner_up_us = second < race->count ? cost_of(&race->all[second], software) : 0;
    memcpy(found->kernel, first->details.kernel, sizeof found->kernel);
    memcpy(found->planned, planned->details.kernel, sizeof found->planned);
    found->runner_up[0] = found->reason[0] = 0;
    if (second < race->count) memcpy(found->runner_up, race->all[second].details.kernel, sizeof found->runner_up);
    if (winner != race->planned) tune_explain(&planned->details, &first->details, found->reason, sizeof found->reason);
    return winner;
}
