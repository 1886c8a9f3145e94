/* The way of a call: validate, make the key, look it up, launch; on a miss plan, obtain the kernel, remember it. */
#include "context.h"
#include "cpu.h"
#include "status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The device part of a call whose kernel is known. */
jg_status gemm_launch(const jg_context *c, const dispatch *d, const operands *o, void *stream)
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

/* Plans one form of kernel and brings it. */
static jg_status obtain_form(jg_context *c, const problem_key *key, jg_form form, effort how, plan *chosen,
                             lru_entry **kernel_entry, jg_source *source)
{
    char label[256];
    RETURN_IF_ERROR(plan_choose(&key->problem, key->access, form, &c->device.limits, chosen));
    problem_key_format(key, label, sizeof label);
    return kernels_obtain(c, &chosen->spec, label, how, kernel_entry, source);
}

jg_form gemm_planned_form(const problem *p)
{
    if (p->form != JG_FORM_AUTO) return (jg_form)p->form;
    return p->k == 0 ? JG_FORM_GENERIC : JG_FORM_SPECIALISED;
}

static int may_fall_back(jg_status status)
{
    return status == JG_ERR_NOT_READY || status == JG_ERR_NO_NVRTC || status == JG_ERR_LOAD;
}

/* A specialised kernel is worth having for every size, but not at any price: with k = 0 there is nothing to specialise, and
 * where it cannot be made a generic one that is cached serves. */
static jg_status obtain_kernel(jg_context *c, const problem_key *key, effort how, plan *chosen, lru_entry **kernel_entry,
                               jg_source *source)
{
    const jg_form first = gemm_planned_form(&key->problem);
    status_text before, failure;
    status_save(&before);
    jg_status status = obtain_form(c, key, first, how, chosen, kernel_entry, source);
    if (!may_fall_back(status) || key->problem.form != JG_FORM_AUTO || first == JG_FORM_GENERIC) return status;
    status_save(&failure);
    const effort less = how == EFFORT_MEMORY ? EFFORT_MEMORY : EFFORT_DISK;
    if (obtain_form(c, key, JG_FORM_GENERIC, less, chosen, kernel_entry, source) == JG_OK) {
        status_restore(&before);
        return JG_OK;
    }
    status_restore(&failure);
    return status;
}

/* Puts a dispatch in the map. One that is there already stays, unless it was a fallback and this is none; where that is in use
 * just now (a plan holds it), it stays too: the bits are the same. */
static lru_entry *remember(jg_context *c, const problem_key *key, dispatch *d, int *existed)
{
    lru_entry *entry = lru_insert(c->problems, key, sizeof *key, d, sizeof *d, existed);
    if (!entry || !*existed || d->is_fallback || !((const dispatch *)lru_value(entry))->is_fallback) return entry;
    lru_release(entry);
    lru_remove(c->problems, key, sizeof *key, kernels_drop_dispatch, c);
    return lru_insert(c->problems, key, sizeof *key, d, sizeof *d, existed);
}

jg_status gemm_resolve(jg_context *c, const problem_key *key, effort how, lru_entry **entry, jg_source *source)
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
        d->is_fallback = chosen.spec.form != gemm_planned_form(&key->problem);
        launch_prepare(&key->problem, &chosen, &d->args);
        *entry = remember(c, key, d, &existed);
    }
    if (!*entry || existed) {
        free(d);
        lru_release(kernel_entry);
    }
    if (!*entry) return status_set(JG_ERR_NO_MEMORY, "out of memory remembering a problem");
    size_t unloaded;
    jg_status status = JG_OK;
    if (how == EFFORT_MEMORY) kernels_trim_problems(c);
    else status = kernels_trim(c, &unloaded);
    if (status != JG_OK) lru_release(*entry);
    return status;
}

effort gemm_effort(const jg_context *c)
{
    return c->options.compile == JG_COMPILE_NEVER ? EFFORT_MEMORY : EFFORT_COMPILE;
}

jg_status jg_gemm(jg_context *c, const jg_problem *in, const jg_operands *data)
{
    if (!c || !in || !data) return status_set(JG_ERR_NULL, "jg_gemm: %s is null", !c ? "context" : !in ? "problem" : "operands");
    problem p;
    RETURN_IF_ERROR(problem_canonicalise(in, &p));
    if (problem_is_empty(&p)) return JG_OK;
    const operands o = operands_canonicalise(&p, data);
    const unsigned in_bytes = (unsigned)type_bytes((jg_type)p.type_a), out_bytes = (unsigned)type_bytes((jg_type)p.type_c);
    RETURN_IF_ERROR(operands_check(&o, in_bytes, in_bytes, out_bytes));
    if (context_is_cpu(c)) return cpu_gemm(&p, o.a, o.b, o.c, o.alpha, o.beta);

    const int reads = operands_read_ab(&o);
    const unsigned align_a = reads ? operands_alignment(o.a) : 16, align_b = reads ? operands_alignment(o.b) : 16;
    const problem_key key = problem_key_of(&p, plan_access(&p, align_a, align_b, operands_alignment(o.c)));
    lru_entry *entry = lru_acquire(c->problems, &key, sizeof key);
    if (!entry) {
        jg_source source;
        RETURN_IF_ERROR(gemm_resolve(c, &key, gemm_effort(c), &entry, &source));
    }
    jg_status status = gemm_launch(c, lru_value(entry), &o, data->stream);
    lru_release(entry);
    return status;
}
