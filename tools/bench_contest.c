/* Measures one product against the peers: see bench_contest.h. The flow is: plan -> check our result -> ask the peers, compare
 * with the first that answers -> record each contestant into a graph -> replay them in turns -> one row. */
#include "bench_contest.h"

#include "bench_label.h"
#include "bench_significance.h"
#include "bench_stats.h"
#include "bench_suites.h"
#include "status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OURS, GENERIC, CUBLAS, LT_FIRST, LT_BEST, GROUPED, CONTESTANTS };
static const char *const names[CONTESTANTS] = {"jitgemm", "generic", "cublas", "lt first", "lt best", "grouped"};

enum { TRIALS = 3, SHORT_CALLS = 16, LEAST_ROUNDS = 5 };
#define TRIAL_US 100.0       /* length of a sample by which cuBLASLt's choices are compared */
#define HOPELESS 1.5         /* a choice that is so many times slower than another at first sight is not looked at again */
#define SHORT_US 50.0        /* the start of a graph counts in the time of a call that is shorter */
#define LONGEST_US 3e6       /* all rounds of a product together */

typedef struct contestant {
    int takes_part;          /* it may still have refused */
    int refused;
    char why[256];
    const jg_plan *plan;     /* of ours */
    int choice;              /* of cuBLASLt's */
    bench_replay replay;
    double *us;              /* samples */
    size_t count;
    bench_summary summary;
} contestant;

typedef struct contest {
    bench_arena *arena;
    const bench_product *product;
    contestant all[CONTESTANTS];
    jg_plan *own, *generic;
    jg_group_item *items;    /* of GROUPED, with sizes and leading dimensions; null where it takes no part */
    int grouped_is_wrong;
    void *ours;              /* our result; null: there is none */
    double reference, peer;  /* errors over what is allowed; -1: not checked */
    double round_us;         /* of all contestants together */
} contest;

/* ---- calls ---- */

typedef struct one_call {
    contest *contest;
    int which;
} one_call;

/* The items of the batch as products of a grouped call, which is launched for every 60 of them. */
static jg_status enqueue_grouped(contest *t, const jg_operands *data)
{
    const problem *p = &t->product->layout.problem;
    const jg_problem *asked = &t->product->problem;
    const jg_problem common = {.type_a = asked->type_a, .type_b = asked->type_b, .type_c = asked->type_c, .op_a = asked->op_a,
                               .op_b = asked->op_b, .order = asked->order, .math = asked->math};
    const jg_operands shared = {.alpha = data->alpha, .stream = data->stream};
    for (int64_t i = 0; i < p->batch; i++) {
        t->items[i].a = (const char *)data->a + jg_type_bytes((jg_type)p->type_a, i * p->stride_a);
        t->items[i].b = (const char *)data->b + jg_type_bytes((jg_type)p->type_b, i * p->stride_b);
        t->items[i].c = (char *)data->c + jg_type_bytes((jg_type)p->type_c, i * p->stride_c);
    }
    return jg_gemm_grouped(t->arena->context, &common, &shared, t->items, (size_t)p->batch);
}

static jg_status enqueue(void *user, unsigned index)
{
    const one_call *call = user;
    bench_arena *a = call->contest->arena;
    const contestant *who = &call->contest->all[call->which];
    const jg_operands data = bench_pool_operands(&a->pool, &call->contest->product->layout, index, a->clock.stream);
    switch (call->which) {
    case CUBLAS: return bench_peer_gemm(&a->peer, &call->contest->product->problem, &data);
    case LT_FIRST: case LT_BEST: return bench_lt_gemm(&a->lt, who->choice, &data);
    case GROUPED: return enqueue_grouped(call->contest, &data);
    default: return jg_plan_run(who->plan, &data);
    }
}

static void refuse(contestant *who)
{
    who->refused = 1;
    snprintf(who->why, sizeof who->why, "%s", jg_last_error());
}

/* Whether a failure ends the run: what a context does not recover from, or memory. */
static int is_final(jg_status status)
{
    return status == JG_ERR_NO_MEMORY || jg_status_is_fatal(status);
}

/* One call at once, outside of any graph, into a C that was poisoned. *c: the result, free() it; null if it was refused. */
static jg_status call_once(contest *t, int which, void **c)
{
    bench_arena *a = t->arena;
    one_call call = {t, which};
    *c = NULL;
    RETURN_IF_ERROR(bench_pool_poison(&a->pool, &t->product->layout));
    RETURN_IF_ERROR(bench_gpu_wait(a->gpu, NULL)); /* the stream below does not wait for the default one */
    jg_status status = enqueue(&call, 0);
    if (status == JG_OK) status = bench_gpu_wait(a->gpu, a->clock.stream);
    if (status != JG_OK) {
        if (is_final(status)) return status;
        refuse(&t->all[which]);
        return JG_OK;
    }
    *c = bench_pool_take_c(&a->pool, &t->product->layout);
    return *c ? JG_OK : JG_ERR_NO_MEMORY;
}

/* ---- who takes part ---- */

static jg_status make_plan(contest *t, int which, jg_form form, jg_plan **plan)
{
    jg_problem p = t->product->problem;
    contestant *who = &t->all[which];
    if (form != JG_FORM_AUTO) p.form = form;
    who->takes_part = 1;
    const jg_status status = jg_plan_create(t->arena->context, &p, plan);
    if (status == JG_OK) who->plan = *plan;
    else if (is_final(status) || status == JG_ERR_NO_NVRTC) return status;
    else refuse(who);
    return JG_OK;
}

static jg_status enter_ours(contest *t)
{
    RETURN_IF_ERROR(make_plan(t, OURS, JG_FORM_AUTO, &t->own));
    if (t->arena->generic && t->product->problem.form != JG_FORM_GENERIC)
        RETURN_IF_ERROR(make_plan(t, GENERIC, JG_FORM_GENERIC, &t->generic));
    return JG_OK;
}

/* A batch of small products as a grouped call, beside the strided one. */
static jg_status enter_grouped(contest *t)
{
    const problem *p = &t->product->layout.problem;
    if (strcmp(t->product->suite, BENCH_TINY) != 0 || p->swapped || problem_is_fused(p)) return JG_OK;
    t->items = calloc((size_t)p->batch, sizeof *t->items);
    if (!t->items) return status_set(JG_ERR_NO_MEMORY, "out of memory for a grouped call");
    for (int64_t i = 0; i < p->batch; i++)
        t->items[i] = (jg_group_item){.m = p->m, .n = p->n, .k = p->k, .lda = p->lda, .ldb = p->ldb, .ldc = p->ldc};
    t->all[GROUPED].takes_part = 1;
    return JG_OK;
}

static void enter_peers(contest *t)
{
    bench_arena *a = t->arena;
    t->all[CUBLAS].takes_part = a->has_peer;
    t->all[LT_FIRST].takes_part = t->all[LT_BEST].takes_part = a->has_lt;
    if (!a->has_lt || bench_lt_prepare(&a->lt, &t->product->problem) == JG_OK) return;
    refuse(&t->all[LT_FIRST]);
    refuse(&t->all[LT_BEST]);
}

static int is_ready(const contestant *who)
{
    return who->takes_part && !who->refused;
}

/* A grouped call must have the bits of the strided one. */
static jg_status check_grouped(contest *t)
{
    const bench_layout *l = &t->product->layout;
    contestant *who = &t->all[GROUPED];
    void *c;
    if (!is_ready(who)) return JG_OK;
    RETURN_IF_ERROR(call_once(t, GROUPED, &c));
    if (t->ours && c && memcmp(t->ours, c, l->c_bytes - l->c_offset) != 0) {
        who->refused = 1;
        snprintf(who->why, sizeof who->why, "its result has other bits than ours");
        t->grouped_is_wrong = 1;
    }
    free(c);
    return JG_OK;
}

/* Our result against the reference, and against the first peer that gives one. */
static jg_status check_results(contest *t)
{
    const bench_layout *l = &t->product->layout;
    const void *ours = t->ours;
    void *theirs = NULL;
    if (ours) t->reference = bench_pool_check(&t->arena->pool, l, ours);
    jg_status status = check_grouped(t);
    for (int i = CUBLAS; i <= LT_FIRST && status == JG_OK; i++) {
        if (!is_ready(&t->all[i])) continue;
        status = call_once(t, i, &theirs);
        if (ours && theirs && t->peer < 0) t->peer = bench_pool_compare(&t->arena->pool, l, ours, theirs, &t->reference);
        free(theirs);
        theirs = NULL;
    }
    if (t->all[LT_FIRST].refused) {
        t->all[LT_BEST].refused = 1;
        memcpy(t->all[LT_BEST].why, t->all[LT_FIRST].why, sizeof t->all[LT_BEST].why);
    }
    return status;
}

/* ---- times ---- */

/* Records a graph of so many calls in place of another one, and times it. */
static jg_status record_calls(contest *t, int which, unsigned calls, bench_replay *replay, double *us)
{
    const bench_clock *clock = &t->arena->clock;
    one_call call = {t, which};
    bench_replay_free(clock, replay);
    RETURN_IF_ERROR(bench_replay_record(clock, calls, enqueue, &call, replay));
    RETURN_IF_ERROR(bench_replay_time(clock, replay, us)); /* the first replay is slow */
    return bench_replay_time(clock, replay, us);
}

/* Records a graph that takes about sample_us. least: calls that it has at least. *us: of a call, roughly. How long a call takes
 * is found with one, and, where that is mostly the graph's own start, with a few. */
static jg_status record(contest *t, int which, double sample_us, unsigned least, bench_replay *replay, double *us)
{
    RETURN_IF_ERROR(record_calls(t, which, 1, replay, us));
    if (*us < SHORT_US) RETURN_IF_ERROR(record_calls(t, which, SHORT_CALLS, replay, us));
    const unsigned calls = bench_replay_calls(*us, sample_us, least);
    return calls == replay->calls ? JG_OK : record_calls(t, which, calls, replay, us);
}

/* Times all of cuBLASLt's choices and keeps the fastest. One that fails is passed over. */
static jg_status pick_choice(contest *t)
{
    contestant *best = &t->all[LT_BEST];
    const bench_clock *clock = &t->arena->clock;
    double least_us = 0;
    int fastest = 0;
    for (int i = 0; i < t->arena->lt.count; i++) {
        double us = 0, sample;
        best->choice = i;
        jg_status status = record(t, LT_BEST, TRIAL_US, 1, &best->replay, &us);
        const int hopeless = least_us > 0 && us > HOPELESS * least_us;
        for (int s = 0; s < TRIALS && status == JG_OK && !hopeless; s++) {
            status = bench_replay_time(clock, &best->replay, &sample);
            if (sample < us) us = sample;
        }
        bench_replay_free(clock, &best->replay);
        if (is_final(status)) return status;
        if (status == JG_OK && (least_us == 0 || us < least_us)) {
            least_us = us;
            fastest = i;
        }
    }
    best->choice = fastest;
    return JG_OK;
}

static jg_status record_all(contest *t)
{
    const bench_arena *a = t->arena;
    double us;
    if (is_ready(&t->all[LT_BEST])) RETURN_IF_ERROR(pick_choice(t));
    for (int i = 0; i < CONTESTANTS; i++) {
        contestant *who = &t->all[i];
        if (!is_ready(who)) continue;
        who->us = calloc(a->rounds, sizeof *who->us);
        if (!who->us) return status_set(JG_ERR_NO_MEMORY, "out of memory for samples");
        const jg_status status = record(t, i, a->sample_us, t->product->layout.sets, &who->replay, &us);
        t->round_us += us * who->replay.calls;
        if (is_final(status)) return status;
        if (status != JG_OK) refuse(who);
    }
    return JG_OK;
}

/* Every round gives each contestant one sample, and another one begins: whoever comes after a hot kernel is slower. A product
 * that takes long gets fewer. */
static jg_status run_rounds(contest *t)
{
    size_t rounds = t->arena->rounds;
    while (rounds > LEAST_ROUNDS && (double)rounds * t->round_us > LONGEST_US) rounds--;
    for (size_t round = 0; round < rounds; round++)
        for (size_t i = 0; i < CONTESTANTS; i++) {
            contestant *who = &t->all[(round + i) % CONTESTANTS];
            if (!is_ready(who)) continue;
            RETURN_IF_ERROR(bench_replay_time(&t->arena->clock, &who->replay, &who->us[who->count]));
            who->count++;
        }
    return JG_OK;
}

static void sum_up(contest *t)
{
    for (int i = 0; i < CONTESTANTS; i++)
        if (is_ready(&t->all[i])) t->all[i].summary = bench_summarise(t->all[i].us, t->all[i].count);
}

static jg_status measure(contest *t)
{
    RETURN_IF_ERROR(record_all(t));
    RETURN_IF_ERROR(run_rounds(t));
    sum_up(t);
    return JG_OK;
}

/* ---- the row ---- */

static int add_summary(cJSON *to, const bench_summary *s)
{
    cJSON *us = cJSON_AddObjectToObject(to, "us");
    return us && cJSON_AddNumberToObject(us, "n", (double)s->n) && cJSON_AddNumberToObject(us, "min", s->min) &&
           cJSON_AddNumberToObject(us, "p25", s->p25) && cJSON_AddNumberToObject(us, "p50", s->p50) &&
           cJSON_AddNumberToObject(us, "p75", s->p75) && cJSON_AddNumberToObject(us, "max", s->max);
}

static int add_contestants(cJSON *row, const contest *t)
{
    cJSON *array = cJSON_AddArrayToObject(row, "contestants");
    int ok = array != NULL;
    for (int i = 0; i < CONTESTANTS && ok; i++) {
        const contestant *who = &t->all[i];
        if (!who->takes_part) continue;
        cJSON *one = cJSON_CreateObject();
        ok = one && cJSON_AddItemToArray(array, one) && cJSON_AddStringToObject(one, "name", names[i]);
        if (ok && who->refused) ok = cJSON_AddStringToObject(one, "refused", who->why) != NULL;
        else if (ok && who->count > 0) ok = add_summary(one, &who->summary);
    }
    return ok;
}

static int best_peer(const contest *t)
{
    int best = -1;
    for (int i = CUBLAS; i <= LT_BEST; i++)
        if (is_ready(&t->all[i]) && t->all[i].count > 0 && (best < 0 || t->all[i].summary.p50 < t->all[best].summary.p50))
            best = i;
    return best;
}

static int add_ratio(cJSON *row, const contest *t)
{
    const int best = best_peer(t);
    const contestant *ours = &t->all[OURS], *peer = &t->all[best < 0 ? OURS : best];
    if (best < 0 || !is_ready(ours) || ours->count == 0 || ours->summary.p50 <= 0) return 1;
    const double p = bench_mann_whitney(ours->us, ours->count, peer->us, peer->count);
    return cJSON_AddStringToObject(row, "peer", names[best]) &&
           cJSON_AddNumberToObject(row, "ratio", peer->summary.p50 / ours->summary.p50) &&
           cJSON_AddNumberToObject(row, "ratio_p", p);
}

static int add_roofline(cJSON *row, const contest *t)
{
    const bench_arena *a = t->arena;
    const bench_layout *l = &t->product->layout;
    const bench_summary *s = &t->all[OURS].summary;
    const size_t set = bench_layout_set_bytes(l);
    const int in_l2 = !t->product->rotated && a->gpu->l2_bytes > 0 && set <= (size_t)a->gpu->l2_bytes / 2;
    const char *bound;
    /* Three products for each of f32. */
    const double flops = bench_layout_flops(l) * (problem_math_mode(&l->problem) == JG_MATH_F32_3XTF32 ? 3 : 1);
    const double floor_us = bench_ceilings_floor_us(&a->ceilings, bench_label_ceiling(&t->product->problem), flops,
                                                    bench_layout_bytes(l), in_l2, &bound);
    if (s->n == 0 || s->p50 <= 0 || floor_us <= 0) return 1;
    return cJSON_AddNumberToObject(row, "roofline_percent", 100 * floor_us / s->p50) &&
           cJSON_AddStringToObject(row, "bound", bound);
}

static int add_check(cJSON *row, const contest *t)
{
    cJSON *check = cJSON_AddObjectToObject(row, "check");
    int ok = check != NULL;
    /* JSON has no infinity. */
    if (t->reference >= 0) ok = ok && cJSON_AddNumberToObject(check, "reference", t->reference < 1e9 ? t->reference : 1e9);
    if (t->peer >= 0) ok = ok && cJSON_AddNumberToObject(check, "peer", t->peer < 1e9 ? t->peer : 1e9);
    return ok;
}

static int add_counters(cJSON *row, const jg_counters *c)
{
    const struct { const char *name; uint64_t value; } rows[] = {
        {"instructions", c->instructions}, {"fma", c->fma}, {"mma", c->mma}, {"global_load_requests", c->global_load_requests},
        {"global_load_sectors", c->global_load_sectors}, {"global_store_sectors", c->global_store_sectors},
        {"shared_load_cycles", c->shared_load_cycles}, {"shared_load_conflicts", c->shared_load_conflicts},
        {"shared_store_conflicts", c->shared_store_conflicts}, {"barriers", c->barriers},
        {"blocks", c->blocks}, {"blocks_run", c->blocks_run}};
    cJSON *object = cJSON_AddObjectToObject(row, "counters");
    for (size_t i = 0; i < sizeof rows / sizeof *rows && object; i++)
        if (!cJSON_AddNumberToObject(object, rows[i].name, (double)rows[i].value)) return 0;
    return object != NULL;
}

int bench_product_describe(cJSON *row, const bench_product *product, const jg_plan_details *plan)
{
    const problem *p = &product->layout.problem;
    const jg_problem *asked = &product->problem;
    char type[BENCH_LABEL_BYTES], tile[64] = "", slices[16] = "";
    if (plan->slices > 1) snprintf(slices, sizeof slices, " x%d", plan->slices);
    if (plan->kernel[0])
        snprintf(tile, sizeof tile, "%s %dx%dx%d w%dx%d s%d%s", plan->family, plan->tile_m, plan->tile_n, plan->tile_k,
                 plan->warp_m, plan->warp_n, plan->stages, slices);
    bench_label_make(asked, type);
    return cJSON_AddStringToObject(row, "suite", product->suite) && cJSON_AddStringToObject(row, "list", product->list) &&
           cJSON_AddStringToObject(row, "problem", product->text) && cJSON_AddNumberToObject(row, "m", (double)asked->m) &&
           cJSON_AddNumberToObject(row, "n", (double)asked->n) && cJSON_AddNumberToObject(row, "k", (double)asked->k) &&
           cJSON_AddNumberToObject(row, "batch", (double)p->batch) && cJSON_AddStringToObject(row, "type", type) &&
           cJSON_AddStringToObject(row, "ceiling", bench_label_ceiling(asked)) &&
           cJSON_AddStringToObject(row, "data", product->rotated ? "rotated" : "resident") &&
           cJSON_AddStringToObject(row, "kernel", plan->kernel) && cJSON_AddStringToObject(row, "plan", tile) &&
           cJSON_AddNumberToObject(row, "flops", bench_layout_flops(&product->layout)) &&
           cJSON_AddNumberToObject(row, "bytes", bench_layout_bytes(&product->layout));
}

static jg_status make_row(const contest *t, const jg_counters *counters, cJSON **row)
{
    jg_plan_details plan = {.kernel = ""};
    if (t->own) jg_plan_info(t->own, &plan);
    *row = cJSON_CreateObject();
    const int ok = *row && bench_product_describe(*row, t->product, &plan) && add_contestants(*row, t) && add_ratio(*row, t) &&
                   add_roofline(*row, t) && add_check(*row, t) && (!counters || add_counters(*row, counters)) &&
                   (!plan.is_tuned || cJSON_AddTrueToObject(*row, "tuned"));
    if (ok) return JG_OK;
    cJSON_Delete(*row);
    *row = NULL;
    return status_set(JG_ERR_NO_MEMORY, "out of memory for results");
}

/* ---- all together ---- */

static void finish(contest *t)
{
    for (int i = 0; i < CONTESTANTS; i++) {
        bench_replay_free(&t->arena->clock, &t->all[i].replay);
        free(t->all[i].us);
    }
    jg_plan_destroy(t->own);
    jg_plan_destroy(t->generic);
    free(t->items);
    free(t->ours);
}

static jg_status compete(contest *t, cJSON **row)
{
    jg_counters counters;
    const int software = t->arena->gpu->software;
    RETURN_IF_ERROR(bench_pool_fill(&t->arena->pool, &t->product->layout));
    RETURN_IF_ERROR(enter_ours(t));
    RETURN_IF_ERROR(enter_grouped(t));
    if (!software) enter_peers(t);
    if (is_ready(&t->all[OURS])) RETURN_IF_ERROR(call_once(t, OURS, &t->ours));
    if (software && is_ready(&t->all[OURS])) RETURN_IF_ERROR(jg_launch_counters(t->arena->context, &counters));
    RETURN_IF_ERROR(check_results(t));
    if (!software) RETURN_IF_ERROR(measure(t));
    return make_row(t, software && is_ready(&t->all[OURS]) ? &counters : NULL, row);
}

jg_status bench_contest(bench_arena *arena, const bench_product *product, cJSON **row, double *gain, int *wrong)
{
    contest t = {.arena = arena, .product = product, .reference = -1, .peer = -1};
    *row = NULL;
    *gain = 0;
    const jg_status status = compete(&t, row);
    const contestant *own = &t.all[OURS], *generic = &t.all[GENERIC];
    *wrong = t.reference > 1 || t.grouped_is_wrong;
    if (!*wrong && own->count > 0 && generic->count > 0 && own->summary.p50 > 0)
        *gain = generic->summary.p50 / own->summary.p50;
    finish(&t);
    return status;
}

jg_status bench_contest_ceiling(bench_arena *arena, const bench_product *product)
{
    contest t = {.arena = arena, .product = product, .reference = -1, .peer = -1};
    char how[64];
    jg_status status = bench_pool_fill(&arena->pool, &product->layout);
    enter_peers(&t);
    t.all[CUBLAS].takes_part = t.all[LT_BEST].takes_part = 0;
    if (status == JG_OK && is_ready(&t.all[LT_FIRST])) status = measure(&t);
    const bench_summary *s = &t.all[LT_FIRST].summary;
    snprintf(how, sizeof how, "cuBLASLt, %s", product->text);
    if (status == JG_OK && s->n > 0 && s->min > 0)
        bench_ceilings_add(&arena->ceilings, bench_label_ceiling(&product->problem), "TFLOP/s",
                           bench_layout_flops(&product->layout) / s->min * 1e-6, how);
    finish(&t);
    return status;
}
