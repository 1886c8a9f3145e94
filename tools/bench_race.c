/* Measures candidates of one product: see bench_race.h. The flow is: ask the planner -> plan by plan: make, check, time
 * shortly -> time the best ones again, in turns. */
#include "bench_race.h"

#include "bench_significance.h"
#include "bench_stats.h"
#include "status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHORT_CALLS = 16, SHORT_REPLAYS = 2, MOST_CLASSES = 16, LOOK_ROUNDS = 5, STEADY_REPLAYS = 3 };
#define SHORT_US 100.0       /* a graph of the first, short pass */
#define START_US 50.0        /* the start of a graph counts in the time of a call that is shorter */
#define HOPELESS 2.0         /* so many times slower than the fastest is not looked at again */
#define CLOSE 1.1            /* what is timed again: so many times the fastest */
#define LONGEST_US 1e6       /* all rounds of a product together */
#define STEADY 1.02          /* successive times of the same work that differ by less, STEADY_REPLAYS of them, are steady */
#define STEADY_US 20e3       /* is not waited for longer */

/* The first result of a numeric class. */
typedef struct class_result {
    const char *name;
    void *c;
} class_result;

typedef struct race {
    bench_arena *arena;
    const bench_product *product;
    const bench_race_options *how;
    bench_runner *all;
    size_t count, chosen;
    class_result classes[MOST_CLASSES];
    size_t class_count;
    double fastest_us;       /* of the short pass and right results; 0: none yet */
} race;

/* Whether a failure ends the run: what a context does not recover from, or memory. */
static int is_final(jg_status status)
{
    return status == JG_ERR_NO_MEMORY || status == JG_ERR_NO_NVRTC || jg_status_is_fatal(status);
}

/* Passes on what ends the run; keeps the rest with the candidate. */
static jg_status settle(bench_runner *one, jg_status status)
{
    if (status == JG_OK || is_final(status)) return status;
    snprintf(one->refused, sizeof one->refused, "%s", jg_last_error());
    return JG_OK;
}

int bench_runner_is_ready(const bench_runner *one)
{
    return one->plan && !one->refused[0];
}

int bench_runner_is_right(const bench_runner *one)
{
    return bench_runner_is_ready(one) && !one->is_wrong;
}

/* ---- the candidates ---- */

static jg_status find_chosen(race *t)
{
    for (size_t i = 0; i < t->count; i++) {
        t->chosen = i;
        if (t->all[i].details.is_planned) return JG_OK;
    }
    return status_set(JG_ERR_INTERNAL, "none of the candidates of %s is the planner's choice", t->product->text);
}

/* Which ones: those asked for, else all. */
static jg_status number_candidates(race *t)
{
    size_t of_class, all;
    RETURN_IF_ERROR(jg_plan_count_candidates(t->arena->context, &t->product->problem, &of_class, &all));
    t->count = t->how->indices ? t->how->count : t->how->all_classes ? all : of_class;
    t->all = calloc(t->count ? t->count : 1, sizeof *t->all);
    if (!t->all) return status_set(JG_ERR_NO_MEMORY, "out of memory for plans");
    for (size_t i = 0; i < t->count; i++) {
        t->all[i].index = t->how->indices ? t->how->indices[i] : i;
        t->all[i].of_class = t->all[i].index < of_class;
        t->all[i].check = -1;
    }
    return JG_OK;
}

static jg_status make_candidates(race *t)
{
    RETURN_IF_ERROR(number_candidates(t));
    for (size_t i = 0; i < t->count; i++) {
        bench_runner *one = &t->all[i];
        const jg_problem *in = &t->product->problem;
        RETURN_IF_ERROR(jg_plan_describe_candidate(t->arena->context, in, one->index, &one->details));
        RETURN_IF_ERROR(settle(one, jg_plan_create_candidate(t->arena->context, in, one->index, &one->plan)));
        if (one->plan) jg_plan_info(one->plan, &one->details);
    }
    return find_chosen(t);
}

/* ---- results ---- */

typedef struct one_call {
    race *race;
    const bench_runner *who;
} one_call;

static jg_status enqueue(void *user, unsigned index)
{
    const one_call *call = user;
    bench_arena *a = call->race->arena;
    const jg_operands data = bench_pool_operands(&a->pool, &call->race->product->layout, index, a->clock.stream);
    return jg_plan_run(call->who->plan, &data);
}

/* The first of a class becomes its result, *c, which is taken then. */
static void judge(race *t, bench_runner *one, void **c)
{
    const bench_layout *l = &t->product->layout;
    const bench_pool *pool = &t->arena->pool;
    for (size_t i = 0; i < t->class_count; i++)
        if (strcmp(t->classes[i].name, one->details.numeric_class) == 0) {
            one->is_wrong = memcmp(t->classes[i].c, *c, l->c_bytes - l->c_offset) != 0;
            return;
        }
    one->check = bench_pool_check(pool, l, *c);
    const double difference = t->class_count > 0 ? bench_pool_compare(pool, l, *c, t->classes[0].c, &one->check) : 0;
    one->is_wrong = !(one->check <= 1 && difference <= 1);
    if (one->is_wrong || t->class_count == MOST_CLASSES) return;
    t->classes[t->class_count++] = (class_result){one->details.numeric_class, *c};
    *c = NULL;
}

static jg_status check(race *t, bench_runner *one)
{
    bench_arena *a = t->arena;
    one_call call = {t, one};
    RETURN_IF_ERROR(bench_pool_poison(&a->pool, &t->product->layout));
    RETURN_IF_ERROR(bench_gpu_wait(a->gpu, NULL)); /* the stream below does not wait for the default one */
    jg_status status = enqueue(&call, 0);
    if (status == JG_OK) status = bench_gpu_wait(a->gpu, a->clock.stream);
    if (status == JG_OK && a->gpu->software) status = jg_launch_counters(a->context, &one->counters);
    if (status != JG_OK) return settle(one, status);
    void *c = bench_pool_take_c(&a->pool, &t->product->layout);
    if (!c) return JG_ERR_NO_MEMORY;
    judge(t, one, &c);
    free(c);
    return JG_OK;
}

/* ---- times ---- */

/* Records a graph of so many calls in place of another one, and replays it once, since that is slow. *us: of a call then. */
static jg_status record(race *t, bench_runner *one, unsigned calls, double *us)
{
    const bench_clock *clock = &t->arena->clock;
    one_call call = {t, one};
    bench_replay_free(clock, &one->replay);
    RETURN_IF_ERROR(bench_replay_record(clock, calls, enqueue, &call, &one->replay));
    return bench_replay_time(clock, &one->replay, us);
}

static jg_status replay_shortly(race *t, bench_runner *one)
{
    double us;
    one->us = 0;
    for (int i = 0; i < SHORT_REPLAYS; i++) {
        RETURN_IF_ERROR(bench_replay_time(&t->arena->clock, &one->replay, &us));
        if (i == 0 || us < one->us) one->us = us;
        if (t->fastest_us > 0 && us > HOPELESS * t->fastest_us) break;
    }
    return JG_OK;
}

/* How long a call takes, roughly, where nothing is known: found with one, and, where that is mostly the graph's start, with
 * a few. */
static jg_status time_first(race *t, bench_runner *one)
{
    double us;
    RETURN_IF_ERROR(record(t, one, 1, &us));
    RETURN_IF_ERROR(replay_shortly(t, one));
    if (one->us >= START_US) return JG_OK;
    RETURN_IF_ERROR(record(t, one, SHORT_CALLS, &us));
    return replay_shortly(t, one);
}

/* A graph has as many calls as take SHORT_US by the fastest so far. So a slow kernel's takes longer, but none is recorded twice,
 * save the first. */
static jg_status time_shortly(race *t, bench_runner *one)
{
    double us;
    if (t->fastest_us == 0) RETURN_IF_ERROR(time_first(t, one));
    const double guess = t->fastest_us > 0 ? t->fastest_us : one->us;
    RETURN_IF_ERROR(record(t, one, bench_replay_calls(guess, SHORT_US, t->product->layout.sets), &us));
    RETURN_IF_ERROR(replay_shortly(t, one));
    one->samples = 1;
    if (!one->is_wrong && (t->fastest_us == 0 || one->us < t->fastest_us)) t->fastest_us = one->us;
    return JG_OK;
}

/* Checks and times one; its graph is not kept. A wrong one is timed too: what it takes may still tell something. */
static jg_status run_one(race *t, bench_runner *one)
{
    if (bench_runner_is_ready(one)) RETURN_IF_ERROR(check(t, one));
    if (bench_runner_is_ready(one) && !t->arena->gpu->software) RETURN_IF_ERROR(settle(one, time_shortly(t, one)));
    bench_replay_free(&t->arena->clock, &one->replay);
    return JG_OK;
}

/* Records longer graphs of those worth it. *round_us: of all of them together. */
static jg_status record_best(race *t, double *round_us)
{
    const bench_arena *a = t->arena;
    double us;
    *round_us = 0;
    for (size_t i = 0; i < t->count; i++) {
        bench_runner *one = &t->all[i];
        if (!bench_runner_is_ready(one) || (i != t->chosen && (one->is_wrong || one->us > CLOSE * t->fastest_us))) continue;
        one->rounds = calloc(a->rounds, sizeof *one->rounds);
        if (!one->rounds) return status_set(JG_ERR_NO_MEMORY, "out of memory for samples");
        const unsigned calls = bench_replay_calls(one->us, a->sample_us, t->product->layout.sets);
        RETURN_IF_ERROR(settle(one, record(t, one, calls, &us)));
        if (bench_runner_is_ready(one)) *round_us += one->us * calls;
    }
    return JG_OK;
}

static int is_timed(const bench_runner *one)
{
    return bench_runner_is_ready(one) && one->replay.graph && !one->is_beaten;
}

/* The one with the least median so far; the number of all if there is none. */
static size_t find_leader(race *t)
{
    size_t leader = t->count;
    for (size_t i = 0; i < t->count; i++) {
        bench_runner *one = &t->all[i];
        if (!is_timed(one)) continue;
        one->us = bench_summarise(one->rounds, one->samples).p50;
        if (!one->is_wrong && (leader == t->count || one->us < t->all[leader].us)) leader = i;
    }
    return leader;
}

/* Takes out whoever is slower than the leader by more than chance. Returns how many are left. */
static size_t drop_beaten(race *t)
{
    size_t left = 0;
    const size_t leader = find_leader(t);
    for (size_t i = 0; i < t->count && leader < t->count; i++) {
        bench_runner *one = &t->all[i];
        const bench_runner *first = &t->all[leader];
        if (!is_timed(one)) continue;
        if (i != leader) {
            const double p = bench_mann_whitney(one->rounds, one->samples, first->rounds, first->samples);
            one->is_beaten = p >= 0 && p < BENCH_RACE_CHANCE;
        }
        left += !one->is_beaten;
    }
    return left;
}

/* The GPU may have idled, and lowered its clocks: the planner's choice runs until it takes as long as before. */
static jg_status wait_until_steady(race *t)
{
    double last = 0, us, together = 0;
    const bench_runner *one = &t->all[t->chosen];
    for (int equal = 0; is_timed(one) && equal < STEADY_REPLAYS && together < STEADY_US; last = us) {
        RETURN_IF_ERROR(bench_replay_time(&t->arena->clock, &one->replay, &us));
        together += us * one->replay.calls;
        equal = us < STEADY * last && last < STEADY * us ? equal + 1 : 0;
    }
    return JG_OK;
}

/* Every round gives each one sample, and another one begins: whoever comes after a hot kernel is slower. */
static jg_status time_best(race *t)
{
    double round_us;
    size_t rounds = t->arena->rounds;
    RETURN_IF_ERROR(record_best(t, &round_us));
    while (rounds > 3 && (double)rounds * round_us > LONGEST_US) rounds--;
    for (size_t i = 0; i < t->count; i++)
        if (is_timed(&t->all[i])) t->all[i].samples = 0; /* the short pass does not count any more */
    if (t->how->ends_early) RETURN_IF_ERROR(wait_until_steady(t));
    for (size_t round = 0; round < rounds; round++) {
        for (size_t i = 0; i < t->count; i++) {
            bench_runner *one = &t->all[(round + i) % t->count];
            if (!is_timed(one)) continue;
            RETURN_IF_ERROR(bench_replay_time(&t->arena->clock, &one->replay, &one->rounds[one->samples]));
            one->samples++;
        }
        const int looks = t->how->ends_early && (round + 1) % LOOK_ROUNDS == 0 && round + 1 < rounds;
        if (looks && drop_beaten(t) <= 1) break;
    }
    find_leader(t);
    return JG_OK;
}

/* ---- all together ---- */

/* The fastest with a right result; the number of all if there is none. */
static size_t find_best(const race *t)
{
    size_t best = t->count;
    for (size_t i = 0; i < t->count; i++) {
        const bench_runner *one = &t->all[i];
        if (bench_runner_is_right(one) && one->us > 0 && (best == t->count || one->us < t->all[best].us)) best = i;
    }
    return best;
}

static jg_status run_all(race *t)
{
    RETURN_IF_ERROR(bench_pool_fill(&t->arena->pool, &t->product->layout));
    RETURN_IF_ERROR(make_candidates(t));
    RETURN_IF_ERROR(run_one(t, &t->all[t->chosen])); /* it is hardly the slowest, which would make all graphs short */
    for (size_t i = 0; i < t->count; i++)
        if (i != t->chosen) RETURN_IF_ERROR(run_one(t, &t->all[i]));
    return !t->arena->gpu->software && t->fastest_us > 0 ? time_best(t) : JG_OK;
}

jg_status bench_race_run(bench_arena *arena, const bench_product *product, const bench_race_options *how, bench_race_result *result)
{
    race t = {.arena = arena, .product = product, .how = how};
    const jg_status status = run_all(&t);
    for (size_t i = 0; i < t.count && t.all; i++) bench_replay_free(&arena->clock, &t.all[i].replay);
    for (size_t i = 0; i < t.class_count; i++) free(t.classes[i].c);
    *result = (bench_race_result){.all = t.all, .count = t.all ? t.count : 0, .planned = t.chosen, .best = find_best(&t)};
    if (status != JG_OK) bench_race_free(result);
    return status;
}

void bench_race_free(bench_race_result *result)
{
    for (size_t i = 0; i < result->count; i++) {
        jg_plan_destroy(result->all[i].plan);
        free(result->all[i].rounds);
    }
    free(result->all);
    *result = (bench_race_result){0};
}
