/* jg_plan: a problem's kernel, chosen and pinned once, launched many times, and described in words. */
#include "context.h"
#include "hot.h"
#include "cpu.h"
#include "status.h"
#include "text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct jg_plan {
    jg_context *context;
    problem problem;
    unsigned need_a, need_b, need_c; /* bytes that the operands must be aligned to */
    lru_entry *entry;       /* of the problem; null: a candidate, the cpu device, or nothing to compute */
    binding *candidate;     /* what is launched whatever the problem has come down to; else null */
    jg_source source;
};

/* What a plan launches now; null: no kernel. */
static const binding *current_binding(const jg_plan *pl)
{
    return pl->candidate ? pl->candidate : pl->entry ? dispatch_current(lru_value(pl->entry)) : NULL;
}

/* Where the width is a launch argument, or a gather's, it is the one that the access allows. */
static unsigned needed_width(int is_fallback, uint8_t vec, uint8_t access)
{
    return is_fallback || vec == SPEC_ARGUMENT || vec <= SPEC_GATHER_WIDE ? access : vec;
}

/* What the kernel counts on, which can be less than what was promised. Another may take a fallback's place. */
static void set_needs(jg_plan *pl)
{
    const unsigned out = (unsigned)type_bytes((jg_type)pl->problem.type_c);
    pl->need_a = (unsigned)type_bytes((jg_type)pl->problem.type_a);
    pl->need_b = (unsigned)type_bytes((jg_type)pl->problem.type_b);
    pl->need_c = out;
    const binding *b = current_binding(pl);
    if (!b) return;
    const int is_fallback = pl->entry && ((const dispatch *)lru_value(pl->entry))->is_fallback;
    const plan *chosen = &b->plan;
    const kernel_spec *s = &chosen->spec;
    if (s->family != FAMILY_SIMT || s->type_a == JG_F32) {
        pl->need_a = needed_width(is_fallback, s->vec_a, chosen->access.a);
        pl->need_b = needed_width(is_fallback, s->vec_b, chosen->access.b);
    }
    if (chosen->access.c) pl->need_c = 4 * out;
}

/* Whether anything is launched for a problem. */
static int has_kernel(const jg_context *c, const problem *p)
{
    return !context_is_cpu(c) && !problem_is_empty(p);
}

/* A plan without a kernel as yet. */
static jg_plan *make_plan(jg_context *c, const problem *p)
{
    jg_plan *made = calloc(1, sizeof *made);
    if (!made) {
        status_set(JG_ERR_NO_MEMORY, "out of memory making a plan");
        return NULL;
    }
    made->context = c;
    made->problem = *p;
    made->source = JG_SOURCE_CPU;
    return made;
}

static void hand_out(jg_plan *made, jg_plan **out)
{
    set_needs(made);
    atomic_fetch_add(&made->context->plans, 1);
    *out = made;
}

jg_status jg_plan_create(jg_context *c, const jg_problem *in, jg_plan **out)
{
    if (!c || !in || !out) return status_set(JG_ERR_NULL, "jg_plan_create: %s is null", !c ? "context" : !in ? "problem" : "plan");
    *out = NULL;
    problem p;
    RETURN_IF_ERROR(problem_canonicalise(in, &p));
    jg_plan *made = make_plan(c, &p);
    if (!made) return JG_ERR_NO_MEMORY;
    if (has_kernel(c, &p)) {
        const problem_key key = problem_key_of(&p, problem_promised_access(&p));
        jg_status status = gemm_find(c, in, &key, NULL, &made->entry, &made->source);
        if (status != JG_OK) {
            free(made);
            return status;
        }
    }
    hand_out(made, out);
    return JG_OK;
}

/* --- candidates --- */

/* One walk through the legal candidates: of the problem's numeric class, or of the other ones. */
typedef struct walk {
    int slices;              /* of the class; 0: any */
    int of_class;
    size_t count, wanted;    /* legal ones so far; number of the one to keep */
    plan found;
    int has_found;
} walk;

static void step(void *user, const plan *c, const char *reason)
{
    walk *w = user;
    const int is_of_class = w->slices == 0 || c->spec.tile.slices == w->slices;
    if (reason[0] || is_of_class != w->of_class) return;
    if (w->count++ != w->wanted) return;
    w->found = *c;
    w->has_found = 1;
}

/* Numbers the candidates, those of the problem's class first. found (may be null) gets number `wanted` and is left alone past the
 * end. Error: UNSUPPORTED, where there is none. */
static jg_status number_candidates(const problem_key *key, const limits *l, size_t wanted, plan *found, size_t *count,
                                   size_t *all)
{
    const problem *p = &key->problem;
    const jg_form form = gemm_planned_form(p);
    const int slices = plan_slices(p, l);
    walk own = {.slices = slices, .of_class = 1, .wanted = wanted};
    plan none;
    plan_each_quickly(p, key->access, form, l, step, &own);
    walk others = {.slices = slices, .of_class = 0, .wanted = wanted - own.count};
    plan_each_quickly(p, key->access, form, l, step, &others);
    *count = own.count;
    *all = own.count + others.count;
    if (*all == 0) return plan_choose(p, key->access, form, l, &none);
    if (found && own.has_found) *found = own.found;
    else if (found && wanted >= own.count && others.has_found) *found = others.found;
    return JG_OK;
}

jg_status jg_plan_count_candidates(jg_context *c, const jg_problem *in, size_t *count, size_t *all)
{
    if (!c || !in || !count)
        return status_set(JG_ERR_NULL, "jg_plan_count_candidates: %s is null", !c ? "context" : !in ? "problem" : "count");
    problem p;
    size_t of_class = 1, of_all = 1;
    RETURN_IF_ERROR(problem_canonicalise(in, &p));
    if (has_kernel(c, &p)) {
        const problem_key key = problem_key_of(&p, problem_promised_access(&p));
        RETURN_IF_ERROR(number_candidates(&key, &c->device.limits, 0, NULL, &of_class, &of_all));
    }
    *count = of_class;
    if (all) *all = of_all;
    return JG_OK;
}

/* One candidate of a problem. *chosen is left alone where nothing is launched. */
static jg_status find_candidate(const jg_context *c, const jg_problem *in, size_t index, problem *p, problem_key *key, plan *chosen)
{
    size_t count = 1, all = 1;
    RETURN_IF_ERROR(problem_canonicalise(in, p));
    *key = problem_key_of(p, problem_promised_access(p));
    if (has_kernel(c, p)) RETURN_IF_ERROR(number_candidates(key, &c->device.limits, index, chosen, &count, &all));
    if (index < all) return JG_OK;
    return status_set(JG_ERR_VALUE, "candidate %zu; the problem has %zu, numbered from 0", index, all);
}

/* Brings the kernel and binds it to the plan. */
static jg_status bind_candidate(jg_plan *made, const problem_key *key, const plan *chosen)
{
    jg_context *c = made->context;
    char label[JG_PROBLEM_TEXT_BYTES];
    lru_entry *kernel;
    size_t unloaded;
    made->candidate = calloc(1, sizeof *made->candidate);
    if (!made->candidate) return status_set(JG_ERR_NO_MEMORY, "out of memory making a plan");
    problem_key_format(key, label, sizeof label);
    const effort how = c->options.compile == JG_COMPILE_NEVER ? EFFORT_DISK : EFFORT_COMPILE;
    RETURN_IF_ERROR(kernels_obtain(c, &chosen->spec, label, how, &kernel, &made->source));
    dispatch_bind(made->candidate, key, chosen, kernel);
    return dispatch_trim_kernels(c, SIZE_MAX, &unloaded);
}

/* Of one that never was handed out too. */
static void drop_plan(jg_plan *pl)
{
    if (pl->entry) lru_release(pl->entry);
    if (pl->candidate && pl->candidate->entry) lru_release(pl->candidate->entry);
    free(pl->candidate);
    free(pl);
}

jg_status jg_plan_create_candidate(jg_context *c, const jg_problem *in, size_t index, jg_plan **out)
{
    if (!c || !in || !out)
        return status_set(JG_ERR_NULL, "jg_plan_create_candidate: %s is null", !c ? "context" : !in ? "problem" : "plan");
    *out = NULL;
    problem_key key;
    plan chosen;
    problem p;
    RETURN_IF_ERROR(find_candidate(c, in, index, &p, &key, &chosen));
    jg_plan *made = make_plan(c, &p);
    if (!made) return JG_ERR_NO_MEMORY;
    const jg_status status = has_kernel(c, &p) ? bind_candidate(made, &key, &chosen) : JG_OK;
    if (status == JG_OK) hand_out(made, out);
    else drop_plan(made);
    return status;
}

jg_status jg_plan_compile_candidate(jg_context *c, const jg_problem *in, size_t index)
{
    if (!c || !in) return status_set(JG_ERR_NULL, "jg_plan_compile_candidate: %s is null", !c ? "context" : "problem");
    problem_key key;
    plan chosen;
    problem p;
    kernel_key kernel;
    image img;
    jg_source source;
    char label[JG_PROBLEM_TEXT_BYTES];
    RETURN_IF_ERROR(find_candidate(c, in, index, &p, &key, &chosen));
    if (!has_kernel(c, &p) || !c->images->store) return JG_OK;
    kernel_encode_key(&chosen.spec, &kernel);
    if (images_have(c->images, &kernel)) return JG_OK;
    problem_key_format(&key, label, sizeof label);
    const effort how = c->options.compile == JG_COMPILE_NEVER ? EFFORT_DISK : EFFORT_COMPILE;
    RETURN_IF_ERROR(images_get(c->images, &chosen.spec, label, how, &img, &source));
    image_free(&img);
    return JG_OK;
}

const binding *plan_candidate(const jg_plan *pl, jg_context **c, problem *p)
{
    *c = pl->context;
    *p = pl->problem;
    return pl->candidate;
}

/* --- what is done with plans --- */

HOT jg_status jg_plan_run(const jg_plan *pl, const jg_operands *data)
{
    if (!pl || !data) return status_set(JG_ERR_NULL, "jg_plan_run: %s is null", !pl ? "plan" : "operands");
    const problem *p = &pl->problem;
    if (problem_is_empty(p)) return JG_OK;
    const operands o = operands_canonicalise(p, data);
    RETURN_IF_ERROR(operands_check(p, &o, pl->need_a, pl->need_b, pl->need_c));
    if (pl->entry) return gemm_launch(pl->context, pl->entry, &o, data->stream, NULL);
    if (!pl->candidate) return cpu_gemm(p, &o);
    const problem_key key = problem_key_of(p, pl->candidate->plan.access);
    return gemm_launch_bound(pl->context, &key, pl->candidate, &o, data->stream);
}

void jg_plan_destroy(jg_plan *pl)
{
    if (!pl) return;
    atomic_fetch_sub(&pl->context->plans, 1);
    drop_plan(pl);
}

/* With what changes numbers beside the order of additions. */
static void describe_numerics(int family, jg_type multiply, unsigned math, int slices, jg_plan_details *out)
{
    family_numeric_class(family, multiply == JG_S8, math, slices, out->numeric_class, sizeof out->numeric_class);
    size_t n = strlen(out->numeric_class);
    text_append(out->numeric_class, sizeof out->numeric_class, &n, "%s%s", math & JG_MATH_FLUSH ? " flush" : "",
                math & JG_MATH_SANITIZE ? " sanitize" : "");
}

/* kernel: null where it is not loaded. */
static void describe_kernel(const plan *c, const loaded_kernel *kernel, int64_t batch, const limits *l, jg_plan_details *out)
{
    const tile *t = &c->spec.tile;
    int by_shared;
    kernel_format_name(&c->spec, out->kernel);
    snprintf(out->family, sizeof out->family, "%s", family_name(c->spec.family));
    describe_numerics(c->spec.family, kernel_multiply_type(&c->spec), c->spec.math, t->slices, out);
    out->form = (jg_form)c->spec.form;
    out->arch = c->spec.arch;
    out->tile_m = t->m;
    out->tile_n = t->n;
    out->tile_k = t->k;
    out->warp_m = t->warp_m;
    out->warp_n = t->warp_n;
    out->stages = t->stages;
    out->slices = t->slices;
    out->threads = c->threads;
    out->grid_x = c->grid_x;
    out->grid_y = c->grid_y;
    out->shared_bytes = c->shared_bytes;
    out->registers = kernel && kernel->registers ? kernel->registers : c->registers;
    out->blocks_per_sm = plan_occupancy(l, c->threads, out->registers, c->shared_bytes, &by_shared);
    out->waves = out->blocks_per_sm ? (double)c->grid_x * (double)batch / ((double)out->blocks_per_sm * l->sm_count) : 0;
    out->compile_ms = kernel ? kernel->compile_ms : 0;
    out->estimate_clocks = c->clocks;
}

/* Whether the model chooses this kernel of its form, and whether measurements did. */
static void describe_choice(const jg_context *c, const problem_key *key, const kernel_spec *spec, jg_plan_details *out)
{
    plan planned;
    status_text before;
    status_save(&before);
    if (plan_choose(&key->problem, key->access, (jg_form)spec->form, &c->device.limits, &planned) == JG_OK)
        out->is_planned = memcmp(&planned.spec.tile, &spec->tile, sizeof spec->tile) == 0;
    else
        status_restore(&before);
    out->is_tuned = tuned_is(c->tuned, key, spec);
}

static void describe_cpu(const problem *p, jg_plan_details *out)
{
    snprintf(out->kernel, sizeof out->kernel, "cpu");
    snprintf(out->family, sizeof out->family, "cpu");
    describe_numerics(FAMILY_SIMT, problem_multiply_type(p), p->math, 1, out);
}

static void describe(const jg_context *c, const problem *p, const plan *chosen, const loaded_kernel *kernel, jg_plan_details *out)
{
    const problem_key key = problem_key_of(p, chosen->access);
    describe_kernel(chosen, kernel, p->batch, &c->device.limits, out);
    describe_choice(c, &key, &chosen->spec, out);
}

jg_status jg_plan_info(const jg_plan *pl, jg_plan_details *out)
{
    if (!pl || !out) return status_set(JG_ERR_NULL, "jg_plan_info: %s is null", !pl ? "plan" : "details");
    memset(out, 0, sizeof *out);
    out->source = pl->source;
    const binding *b = current_binding(pl);
    if (b) describe(pl->context, &pl->problem, &b->plan, b->kernel, out);
    else describe_cpu(&pl->problem, out);
    return JG_OK;
}

jg_status jg_plan_describe_candidate(jg_context *c, const jg_problem *in, size_t index, jg_plan_details *out)
{
    if (!c || !in || !out)
        return status_set(JG_ERR_NULL, "jg_plan_describe_candidate: %s is null", !c ? "context" : !in ? "problem" : "details");
    problem_key key;
    plan chosen;
    problem p;
    memset(out, 0, sizeof *out);
    RETURN_IF_ERROR(find_candidate(c, in, index, &p, &key, &chosen));
    if (has_kernel(c, &p)) describe(c, &p, &chosen, NULL, out);
    else describe_cpu(&p, out);
    return JG_OK;
}

typedef struct explanation {
    char *text;
    size_t size, length;
    const plan *best;
    int slices; /* of the numeric class; 0: any */
} explanation;

static void list_candidate(void *user, const plan *c, const char *reason)
{
    explanation *e = user;
    if (e->slices && c->spec.tile.slices != e->slices) return;
    char name[KERNEL_NAME_BYTES], best[KERNEL_NAME_BYTES];
    kernel_format_name(&c->spec, name);
    kernel_format_name(&e->best->spec, best);
    if (strcmp(name, best) == 0) return;
    if (reason[0]) text_append(e->text, e->size, &e->length, "rejected  %s: %s\n", name, reason);
    else /* a measured one need not have the best estimate */
        text_append(e->text, e->size, &e->length, "%s    %s: %.2fx the chosen one's estimate, %.2f waves\n",
                    c->cost < e->best->cost ? "other " : "slower", name, c->cost / e->best->cost, c->waves);
}

/* That the choice was measured, and when, where it was. */
static void explain_tuned(explanation *e, jg_context *c, const problem_key *key)
{
    tuned_plan found;
    char date[32] = "an unknown day";
    struct tm day;
    const time_t created = (time_t)(tuned_find(c->tuned, key, (jg_form)e->best->spec.form, &found) ? found.created : 0);
    if (!tuned_is(c->tuned, key, &e->best->spec)) return;
    if (created > 0 && gmtime_r(&created, &day)) strftime(date, sizeof date, "%Y-%m-%d", &day);
    text_append(e->text, e->size, &e->length, "tuned     the fastest measured on %s, %s: %.2f %s", date, c->device.place, found.us,
                context_is_software(c) ? "instructions" : "us");
    if (found.planned_us > 0)
        text_append(e->text, e->size, &e->length, ", %.2fx as fast as what the planner's model chooses", found.planned_us / found.us);
    text_append(e->text, e->size, &e->length, "\n");
}

/* Whether a kernel of the problem's own is worth having, where that is what was planned. */
static void explain_gain(explanation *e, jg_context *c, const problem_key *key)
{
    plan generic;
    char name[KERNEL_NAME_BYTES];
    status_text before;
    if (e->best->spec.form == JG_FORM_GENERIC) return;
    status_save(&before);
    if (tuned_choose(c->tuned, key, JG_FORM_GENERIC, &c->device.limits, &generic) != JG_OK) {
        status_restore(&before);
        return;
    }
    const double gain = plan_gain(&generic, e->best);
    const int pays = gain >= PLAN_GAIN_WORTHWHILE || tuned_is(c->tuned, key, &e->best->spec); /* as gemm.c has it */
    kernel_format_name(&generic.spec, name);
    text_append(e->text, e->size, &e->length, "gain      %.2fx estimated over the generic kernel %s: %sworth its own kernel\n", gain,
                name, pays ? "" : "not ");
}

jg_status jg_plan_explain(jg_context *c, const jg_problem *in, char *text, size_t size, size_t *length)
{
    if (!c || !in || (!text && size)) return status_set(JG_ERR_NULL, "jg_plan_explain: %s is null", !c ? "context" : !in ? "problem" : "text");
    problem p;
    RETURN_IF_ERROR(problem_canonicalise(in, &p));
    explanation e = {.text = text, .size = size};
    if (problem_is_empty(&p)) {
        text_append(text, size, &e.length, "nothing to compute\n");
    } else {
        plan best;
        const jg_form form = gemm_planned_form(&p);
        const problem_key key = problem_key_of(&p, problem_promised_access(&p));
        RETURN_IF_ERROR(tuned_choose(c->tuned, &key, form, &c->device.limits, &best));
        char name[KERNEL_NAME_BYTES];
        kernel_format_name(&best.spec, name);
        text_append(text, size, &e.length,
                    "chosen    %s: %lldx%lld blocks of %d threads, %d bytes shared, about %d registers, %d blocks an SM, %.2f waves\n",
                    name, (long long)best.grid_x, (long long)best.grid_y, best.threads, best.shared_bytes, best.registers,
                    best.blocks_per_sm, best.waves);
        e.best = &best;
        e.slices = tuned_slices(c->tuned, &key, &c->device.limits);
        explain_tuned(&e, c, &key);
        plan_each(&p, key.access, form, &c->device.limits, list_candidate, &e);
        explain_gain(&e, c, &key);
    }
    if (length) *length = e.length;
    return JG_OK;
}
