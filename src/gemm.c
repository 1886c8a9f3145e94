/* The way of a call: validate, make the key, look it up, launch; on a miss plan, obtain the kernel, remember it. */
#include "context.h"
#include "cpu.h"
#include "status.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The caller's operands in canonical order. */
typedef struct operands {
    const void *a, *b;
    void *c;
    float alpha, beta;
    const char *name_a, *name_b; /* what the caller calls them */
} operands;

static operands canonical_operands(const problem *p, const jg_operands *in)
{
    operands o = {in->a, in->b, in->c, in->alpha ? *in->alpha : 1.0f, in->beta ? *in->beta : 0.0f, "a", "b"};
    if (p->swapped) {
        o.a = in->b;
        o.b = in->a;
        o.name_a = "b";
        o.name_b = "a";
    }
    if (p->k == 0) o.alpha = 0.0f; /* an empty sum is 0 even if alpha is infinite */
    return o;
}

/* The largest power of two, up to 16, that divides an address. Null counts as aligned: it is not read. */
static unsigned alignment(const void *pointer)
{
    uintptr_t bits = (uintptr_t)pointer | 16;
    return (unsigned)(bits & -bits);
}

static jg_status check_pointer(const char *name, const void *pointer, unsigned needed, int is_used)
{
    if (!is_used) return JG_OK;
    if (!pointer) return status_set(JG_ERR_NULL, "operands.%s is null", name);
    if (alignment(pointer) < needed)
        return status_set(JG_ERR_MISALIGNED, "operands.%s is %p, which is not a multiple of %u bytes", name, pointer, needed);
    return JG_OK;
}

static int reads_ab(const operands *o)
{
    return o->alpha != 0.0f;
}

static jg_status check_operands(const operands *o, unsigned need_a, unsigned need_b, unsigned need_c)
{
    RETURN_IF_ERROR(check_pointer(o->name_a, o->a, need_a, reads_ab(o)));
    RETURN_IF_ERROR(check_pointer(o->name_b, o->b, need_b, reads_ab(o)));
    return check_pointer("c", o->c, need_c, 1);
}

/* The device part of a call whose kernel is known. */
static jg_status run(const jg_context *c, const dispatch *d, const operands *o, void *stream)
{
    launch_args args = d->args;
    args.a = o->a;
    args.b = o->b;
    args.c = o->c;
    args.alpha = o->alpha;
    args.beta = o->beta;
    device_scope scope;
    RETURN_IF_ERROR(device_enter(&c->device, &scope));
    jg_status status = launch_kernel(&c->device, d->kernel, &d->plan, &args, stream);
    device_leave(&c->device, &scope);
    return status;
}

problem_key gemm_key(const problem *p, access_widths access)
{
    problem_key key;
    memset(&key, 0, sizeof key);
    key.problem = *p;
    key.problem.swapped = 0;      /* one kernel serves both orders */
    key.problem.align_bytes = 0;  /* what matters of it is in access */
    key.access = access;
    return key;
}

static void format_label(const problem *p, char *text, size_t size)
{
    const jg_problem public = {
        .m = p->m, .n = p->n, .k = p->k, .batch = p->batch,
        .type_a = (jg_type)p->type_a, .type_b = (jg_type)p->type_b, .type_c = (jg_type)p->type_c,
        .op_a = (jg_op)p->op_a, .op_b = (jg_op)p->op_b, .form = (jg_form)p->form,
        .lda = p->lda, .ldb = p->ldb, .ldc = p->ldc,
        .stride_a = p->stride_a, .stride_b = p->stride_b, .stride_c = p->stride_c,
    };
    if (jg_problem_format(&public, text, size, NULL) != JG_OK) snprintf(text, size, "?");
}

/* Plans one form of kernel and brings it. */
static jg_status obtain_form(jg_context *c, const problem_key *key, jg_form form, compile_how how, plan *chosen,
                             lru_entry **kernel_entry, jg_source *source)
{
    char label[256];
    RETURN_IF_ERROR(plan_choose(&key->problem, key->access, form, &c->device.limits, chosen));
    format_label(&key->problem, label, sizeof label);
    return kernels_obtain(c, &chosen->spec, label, how, kernel_entry, source);
}

jg_form gemm_planned_form(const problem *p)
{
    if (p->form != JG_FORM_AUTO) return (jg_form)p->form;
    return p->k == 0 ? JG_FORM_GENERIC : JG_FORM_SPECIALISED;
}

/* A specialised kernel is worth having for every size, but not at any price: with k = 0 there is nothing to specialise, and
 * where it cannot be made a generic one that is cached serves. */
static jg_status obtain_kernel(jg_context *c, const problem_key *key, compile_how how, plan *chosen, lru_entry **kernel_entry,
                               jg_source *source)
{
    const jg_form first = gemm_planned_form(&key->problem);
    jg_status status = obtain_form(c, key, first, how, chosen, kernel_entry, source);
    if (status != JG_ERR_NOT_READY && status != JG_ERR_NO_NVRTC) return status;
    if (key->problem.form != JG_FORM_AUTO || first == JG_FORM_GENERIC) return status;
    char text[2048];
    snprintf(text, sizeof text, "%s", jg_last_error());
    jg_status fallback = obtain_form(c, key, JG_FORM_GENERIC, COMPILE_NOT, chosen, kernel_entry, source);
    if (fallback != JG_ERR_NOT_READY) return fallback;
    return status_set(status, "%s", text);
}

jg_status gemm_resolve(jg_context *c, const problem_key *key, compile_how how, lru_entry **entry, jg_source *source)
{
    plan chosen;
    lru_entry *kernel_entry;
    RETURN_IF_ERROR(obtain_kernel(c, key, how, &chosen, &kernel_entry, source));
    dispatch *d = calloc(1, sizeof *d);
    int existed = 0;
    *entry = NULL;
    if (d) {
        d->kernel_entry = kernel_entry;
        d->kernel = lru_value(kernel_entry);
        d->plan = chosen;
        launch_prepare(&key->problem, &chosen, &d->args);
        *entry = lru_insert(c->problems, key, sizeof *key, d, sizeof *d, &existed);
    }
    if (!*entry || existed) {
        free(d);
        lru_release(kernel_entry);
    }
    if (!*entry) return status_set(JG_ERR_NO_MEMORY, "out of memory remembering a problem");
    /* COMPILE_NOT is for callers who must not wait, so nothing is unloaded for them either. */
    size_t unloaded;
    jg_status status = how == COMPILE_NOT ? JG_OK : kernels_trim(c, &unloaded);
    if (status != JG_OK) lru_release(*entry);
    return status;
}

static compile_how how_of(const jg_context *c)
{
    return c->options.compile == JG_COMPILE_NEVER ? COMPILE_NOT : COMPILE_ON_A_THREAD;
}

jg_status jg_gemm(jg_context *c, const jg_problem *in, const jg_operands *data)
{
    if (!c || !in || !data) return status_set(JG_ERR_NULL, "jg_gemm: %s is null", !c ? "context" : !in ? "problem" : "operands");
    problem p;
    RETURN_IF_ERROR(problem_canonicalise(in, &p));
    if (problem_is_empty(&p)) return JG_OK;
    const operands o = canonical_operands(&p, data);
    const unsigned in_bytes = (unsigned)type_bytes((jg_type)p.type_a), out_bytes = (unsigned)type_bytes((jg_type)p.type_c);
    RETURN_IF_ERROR(check_operands(&o, in_bytes, in_bytes, out_bytes));
    if (context_is_cpu(c)) return cpu_gemm(&p, o.a, o.b, o.c, o.alpha, o.beta);

    const int reads = reads_ab(&o);
    const problem_key key = gemm_key(&p, plan_access(&p, reads ? alignment(o.a) : 16, reads ? alignment(o.b) : 16, alignment(o.c)));
    lru_entry *entry = lru_acquire(c->problems, &key, sizeof key);
    if (!entry) {
        jg_source source;
        RETURN_IF_ERROR(gemm_resolve(c, &key, how_of(c), &entry, &source));
    }
    jg_status status = run(c, lru_value(entry), &o, data->stream);
    lru_release(entry);
    return status;
}

struct jg_plan {
    jg_context *context;
    problem problem;
    access_widths access;
    lru_entry *entry;       /* null: cpu device, or nothing to compute */
    jg_source source;
};

access_widths gemm_promised_access(const problem *p)
{
    return plan_access(p, p->align_bytes, p->align_bytes, p->align_bytes);
}

jg_status jg_plan_create(jg_context *c, const jg_problem *in, jg_plan **out)
{
    if (!c || !in || !out) return status_set(JG_ERR_NULL, "jg_plan_create: %s is null", !c ? "context" : !in ? "problem" : "plan");
    *out = NULL;
    problem p;
    RETURN_IF_ERROR(problem_canonicalise(in, &p));
    jg_plan *made = calloc(1, sizeof *made);
    if (!made) return status_set(JG_ERR_NO_MEMORY, "out of memory making a plan");
    made->context = c;
    made->problem = p;
    made->access = gemm_promised_access(&p);
    made->source = JG_SOURCE_CPU;
    if (!context_is_cpu(c) && !problem_is_empty(&p)) {
        const problem_key key = gemm_key(&p, made->access);
        made->source = JG_SOURCE_MEMORY;
        made->entry = lru_acquire(c->problems, &key, sizeof key);
        jg_status status = made->entry ? JG_OK : gemm_resolve(c, &key, how_of(c), &made->entry, &made->source);
        if (status != JG_OK) {
            free(made);
            return status;
        }
    }
    atomic_fetch_add(&c->plans, 1);
    *out = made;
    return JG_OK;
}

jg_status jg_plan_run(const jg_plan *pl, const jg_operands *data)
{
    if (!pl || !data) return status_set(JG_ERR_NULL, "jg_plan_run: %s is null", !pl ? "plan" : "operands");
    const problem *p = &pl->problem;
    if (problem_is_empty(p)) return JG_OK;
    const operands o = canonical_operands(p, data);
    const unsigned out_bytes = (unsigned)type_bytes((jg_type)p->type_c);
    RETURN_IF_ERROR(check_operands(&o, pl->access.a, pl->access.b, pl->access.c ? 4 * out_bytes : out_bytes));
    if (!pl->entry) return cpu_gemm(p, o.a, o.b, o.c, o.alpha, o.beta);
    return run(pl->context, lru_value(pl->entry), &o, data->stream);
}

void jg_plan_destroy(jg_plan *pl)
{
    if (!pl) return;
    if (pl->entry) lru_release(pl->entry);
    atomic_fetch_sub(&pl->context->plans, 1);
    free(pl);
}

static void describe_kernel(const dispatch *d, const limits *l, jg_plan_details *out)
{
    const plan *c = &d->plan;
    const tile *t = &c->spec.tile;
    int by_shared;
    kernel_format_name(&c->spec, out->kernel);
    snprintf(out->family, sizeof out->family, "%s", family_name(c->spec.family));
    snprintf(out->numeric_class, sizeof out->numeric_class, "%s", family_numeric_class(c->spec.family));
    out->form = (jg_form)c->spec.form;
    out->arch = c->spec.arch;
    out->tile_m = t->m;
    out->tile_n = t->n;
    out->tile_k = t->k;
    out->warp_m = t->warp_m;
    out->warp_n = t->warp_n;
    out->stages = t->stages;
    out->threads = c->threads;
    out->grid_x = c->grid_x;
    out->grid_y = c->grid_y;
    out->shared_bytes = c->shared_bytes;
    out->registers = d->kernel->registers ? d->kernel->registers : c->registers;
    out->blocks_per_sm = plan_occupancy(l, c->threads, out->registers, c->shared_bytes, &by_shared);
    out->waves = out->blocks_per_sm ? (double)c->grid_x * d->args.batch / ((double)out->blocks_per_sm * l->sm_count) : 0;
    out->compile_ms = d->kernel->compile_ms;
}

jg_status jg_plan_info(const jg_plan *pl, jg_plan_details *out)
{
    if (!pl || !out) return status_set(JG_ERR_NULL, "jg_plan_info: %s is null", !pl ? "plan" : "details");
    memset(out, 0, sizeof *out);
    out->source = pl->source;
    if (pl->entry) {
        describe_kernel(lru_value(pl->entry), &pl->context->device.limits, out);
    } else {
        snprintf(out->kernel, sizeof out->kernel, "cpu");
        snprintf(out->family, sizeof out->family, "cpu");
        snprintf(out->numeric_class, sizeof out->numeric_class, "%s", family_numeric_class(FAMILY_SIMT));
    }
    return JG_OK;
}

typedef struct listing {
    char *text;
    size_t size, length;
} listing;

static void list_line(listing *l, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void list_line(listing *l, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(l->length < l->size ? l->text + l->length : NULL, l->length < l->size ? l->size - l->length : 0, format, args);
    va_end(args);
    if (n > 0) l->length += (size_t)n;
}

typedef struct explanation {
    listing out;
    const plan *best;
} explanation;

static void list_candidate(void *user, const plan *c, const char *reason)
{
    explanation *e = user;
    char name[KERNEL_NAME_BYTES];
    if (memcmp(&c->spec, &e->best->spec, sizeof c->spec) == 0) return;
    kernel_format_name(&c->spec, name);
    if (reason[0]) list_line(&e->out, "rejected  %s: %s\n", name, reason);
    else list_line(&e->out, "slower    %s: %.2fx the chosen one's estimate, %.2f waves\n", name, c->cost / e->best->cost, c->waves);
}

jg_status jg_plan_explain(jg_context *c, const jg_problem *in, char *text, size_t size, size_t *length)
{
    if (!c || !in || (!text && size)) return status_set(JG_ERR_NULL, "jg_plan_explain: %s is null", !c ? "context" : !in ? "problem" : "text");
    problem p;
    RETURN_IF_ERROR(problem_canonicalise(in, &p));
    explanation e = {.out = {text, size, 0}};
    if (problem_is_empty(&p)) {
        list_line(&e.out, "nothing to compute\n");
    } else {
        plan best;
        const jg_form form = gemm_planned_form(&p);
        const access_widths access = gemm_promised_access(&p);
        RETURN_IF_ERROR(plan_choose(&p, access, form, &c->device.limits, &best));
        char name[KERNEL_NAME_BYTES];
        kernel_format_name(&best.spec, name);
        list_line(&e.out, "chosen    %s: %lldx%lld blocks of %d threads, %d bytes shared, about %d registers, %d blocks an SM, %.2f waves\n",
                  name, (long long)best.grid_x, (long long)best.grid_y, best.threads, best.shared_bytes, best.registers,
                  best.blocks_per_sm, best.waves);
        e.best = &best;
        plan_each(&p, access, form, &c->device.limits, list_candidate, &e);
    }
    if (length) *length = e.out.length;
    return JG_OK;
}
