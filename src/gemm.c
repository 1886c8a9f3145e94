/* The way of a call: validate, make the key, look it up, launch; on a miss choose among what is loaded, launch that, and tell
 * the worker. Only a call that may wait compiles or loads. */
#include "clock.h"
#include "context.h"
#include "cpu.h"
#include "hot.h"
#include "status.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* --- launching --- */

/* The counters of this thread. */
HOT static launch_counts *counts_of_thread(jg_context *c)
{
    static atomic_uint next;
    static _Thread_local unsigned slot;
    if (!slot) slot = 1 + atomic_fetch_add_explicit(&next, 1, memory_order_relaxed) % CONTEXT_COUNT_SLOTS;
    return &c->launches[slot - 1];
}

/* Whether the stream is being captured into a graph. The legacy default stream cannot be. The device must be entered. */
HOT int gemm_is_captured(const jg_context *c, void *stream)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    if (!stream) return 0;
    return c->device.driver->stream_capturing(stream, &status) == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE;
}

static int enter_and_ask_captured(const jg_context *c, void *stream)
{
    device_scope scope;
    if (!stream || context_is_cpu(c) || device_enter(&c->device, &scope) != JG_OK) return 0;
    const int captured = gemm_is_captured(c, stream);
    device_leave(&c->device, &scope);
    return captured;
}

/* The worker did not take a sighting or a demand: said once for each reason. */
static void note_dropped(jg_context *c, const problem_key *key, const kernel_spec *spec)
{
    worker_stats stats;
    worker_get_stats(c->worker, &stats);
    context_trace(c, JG_EVENT_DROP, key, spec, 0);
    if (stats.start_error && !atomic_exchange(&c->said_start_error, 1))
        context_log(c, JG_LOG_WARNING, "cannot start the worker thread: %s; generic kernels go on serving (said once)",
                    strerror(stats.start_error));
    else if (!stats.start_error && !atomic_exchange(&c->said_dropped, 1))
        context_log(c, JG_LOG_WARNING, "the worker's queue is full; generic kernels go on serving (said once)");
}

int gemm_demand(jg_context *c, const problem_key *key, const kernel_spec *spec, met *wanted, int generic_set)
{
    if (worker_demand(c->worker, spec, wanted, generic_set) == JG_OK) return 1;
    note_dropped(c, key, spec);
    return 0;
}

void gemm_count_generic(jg_context *c)
{
    atomic_fetch_add_explicit(&counts_of_thread(c)->generic, 1, memory_order_relaxed);
}

HOT static void count_launch(jg_context *c, const problem_key *key, const binding *b, recent *mine)
{
    const int is_generic = b->is_generic;
    if (mine) {
        recent_count(mine, is_generic);
    } else {
        launch_counts *counts = counts_of_thread(c);
        atomic_fetch_add_explicit(is_generic ? &counts->generic : &counts->own, 1, memory_order_relaxed);
    }
    if (c->options.trace) context_trace(c, is_generic ? JG_EVENT_GENERIC : JG_EVENT_HIT, key, &b->plan.spec, 0);
}

HOT static inline jg_status launch(jg_context *c, const problem *p, const binding *b, const operands *o, void *stream)
{
    launch_args args = b->args;
    launch_fill(p, o, &args);
    device_scope scope;
    RETURN_IF_ERROR(device_enter(&c->device, &scope));
    /* A graph needs its kernels for as long as it lives, which nobody tells us. */
    jg_status status = JG_OK;
    if (!atomic_load_explicit(&b->kernel->kept, memory_order_relaxed) && gemm_is_captured(c, stream))
        status = kernels_keep(c, b->entry, &c->captured);
    if (status == JG_OK) status = launch_kernel(&c->device, b->kernel, p, &b->plan, &args, stream);
    device_leave(&c->device, &scope);
    return status;
}

HOT jg_status gemm_launch(jg_context *c, const lru_entry *entry, const operands *o, void *stream, recent *mine)
{
    const dispatch *d = lru_value(entry);
    const binding *b = dispatch_current(d);
    const problem_key *key = lru_key(entry);
    RETURN_IF_ERROR(launch(c, &key->problem, b, o, stream));
    count_launch(c, key, b, mine);
    if (d->met && b == &d->first && worker_sight(c->worker, d->met)) note_dropped(c, &d->met->key, &d->met->spec);
    return JG_OK;
}

jg_status gemm_launch_bound(jg_context *c, const problem_key *key, const binding *b, const operands *o, void *stream)
{
    RETURN_IF_ERROR(launch(c, &key->problem, b, o, stream));
    count_launch(c, key, b, NULL);
    return JG_OK;
}

/* --- a miss --- */

jg_form gemm_planned_form(const problem *p)
{
    if (p->form != JG_FORM_AUTO) return (jg_form)p->form;
    return p->k == 0 ? JG_FORM_GENERIC : JG_FORM_SPECIALISED;
}

jg_compile gemm_policy(const jg_context *c, const jg_problem *in, void *stream)
{
    jg_compile policy = c->options.compile;
    if (policy != JG_COMPILE_NEVER && in->compile != JG_COMPILE_DEFAULT) policy = in->compile;
    return policy != JG_COMPILE_NEVER && enter_and_ask_captured(c, stream) ? JG_COMPILE_NEVER : policy;
}

/* What a miss has come to so far. */
typedef struct choice {
    plan own, generic;        /* own: of the form that is planned first */
    int has_generic;          /* it is another kernel, and may serve */
    const plan *chosen;       /* one of the two */
    lru_entry *kernel;        /* of chosen, pinned; null: none yet */
    met *wanted;              /* to count launches for the worker */
} choice;

static jg_status make_plans(jg_context *c, const problem_key *key, choice *ch)
{
    const problem *p = &key->problem;
    const limits *l = &c->device.limits;
    const jg_form first = gemm_planned_form(p);
    if (first == JG_FORM_GENERIC || p->form != JG_FORM_AUTO) return tuned_choose(c->tuned, key, first, l, &ch->own);
    return tuned_choose_both(c->tuned, key, l, &ch->own, &ch->generic, &ch->has_generic);
}

/* Whether the worker should make the problem's own kernel, by the estimate of its gain; one that was measured is meant to be used. */
static int pays(jg_context *c, const problem_key *key, const choice *ch)
{
    return plan_gain(&ch->generic, &ch->own) >= PLAN_GAIN_WORTHWHILE || tuned_is(c->tuned, key, &ch->own.spec);
}

/* Takes what is loaded: its own kernel, else a generic one. Touches neither device nor files. */
static void choose_loaded(jg_context *c, const problem_key *key, choice *ch)
{
    ch->chosen = &ch->own;
    if ((ch->kernel = kernels_find(c, &ch->own.spec)) || !ch->has_generic) return;
    if (!(ch->kernel = kernels_find(c, &ch->generic.spec))) return;
    ch->chosen = &ch->generic;
    ch->wanted = met_create(key, &ch->own.spec, pays(c, key, ch));
}

static int may_fall_back(jg_status status)
{
    return status == JG_ERR_NOT_READY || status == JG_ERR_NO_NVRTC || status == JG_ERR_HELPER || status == JG_ERR_LOAD;
}

/* Brings its own kernel at the price of waiting; where that cannot be made, a generic one from the files serves. */
static jg_status choose_waiting(jg_context *c, const problem_key *key, choice *ch, jg_source *source)
{
    char label[JG_PROBLEM_TEXT_BYTES];
    status_text before, failure;
    problem_key_format(key, label, sizeof label);
    status_save(&before);
    ch->chosen = &ch->own;
    jg_status status = kernels_obtain(c, &ch->own.spec, label, EFFORT_COMPILE, &ch->kernel, source);
    if (!may_fall_back(status) || !ch->has_generic) return status;
    status_save(&failure);
    ch->chosen = &ch->generic;
    if (kernels_obtain(c, &ch->generic.spec, label, EFFORT_DISK, &ch->kernel, source) == JG_OK) {
        status_restore(&before);
        context_trace(c, JG_EVENT_FAIL, key, &ch->own.spec, 0);
        return JG_OK;
    }
    status_restore(&failure);
    return status;
}

/* Not ready, and not waited for: the worker makes it. */
static jg_status leave_to_worker(jg_context *c, const problem_key *key, const kernel_spec *spec, double expected)
{
    char name[KERNEL_NAME_BYTES];
    const int is_generic = spec->form == JG_FORM_GENERIC;
    met *m = is_generic ? NULL : met_create(key, spec, 1);
    kernel_format_name(spec, name);
    const char *then = gemm_demand(c, key, spec, m, is_generic) ? "makes" : "could not be asked to make";
    met_drop(m);
    if (is_generic)
        return status_set(JG_ERR_NOT_READY, "%s is not loaded; making it takes about %.0f ms, more than deadline_ms = %g allows; the "
                          "worker %s it for a later jg_poll", name, expected, c->options.deadline_ms, then);
    return status_set(JG_ERR_NOT_READY, "%s is not loaded, and JG_COMPILE_BACKGROUND does not wait for it; the worker %s it for a "
                      "later jg_poll", name, then);
}

static void say_waited(jg_context *c, const char *label, const kernel_spec *spec, jg_source source, double ms)
{
    char name[KERNEL_NAME_BYTES];
    if (source == JG_SOURCE_MEMORY || atomic_exchange(&c->said_wait, 1)) return;
    kernel_format_name(spec, name);
    if (source == JG_SOURCE_DISK)
        context_log(c, JG_LOG_WARNING, "%s waited %.0f ms for the generic kernel %s to be loaded; name its type in options.resident (said "
                    "once)", label, ms, name);
    else
        context_log(c, JG_LOG_WARNING, "%s waited %.0f ms for the generic kernel %s, which no cache or factory file had; prewarm the "
                    "generic set (said once)", label, ms, name);
}

jg_status gemm_obtain_generic(jg_context *c, const problem_key *key, const kernel_spec *spec, const char *label, lru_entry **kernel,
                              jg_source *source)
{
    const double deadline = c->options.deadline_ms, expected = images_expected_ms(c->images), start = clock_now_ms();
    if (deadline > 0 && expected > deadline) return leave_to_worker(c, key, spec, expected);
    RETURN_IF_ERROR(kernels_obtain(c, spec, label, EFFORT_COMPILE, kernel, source));
    RETURN_IF_ERROR(kernels_keep(c, *kernel, &c->generic_resident));
    say_waited(c, label, spec, *source, clock_now_ms() - start);
    return JG_OK;
}

/* Background mode found neither the size's own kernel nor a generic one: the one case in which it waits. */
static jg_status choose_first_generic(jg_context *c, const problem_key *key, choice *ch, jg_source *source)
{
    char label[JG_PROBLEM_TEXT_BYTES];
    const plan *wanted = ch->has_generic ? &ch->generic : &ch->own;
    if (wanted->spec.form != JG_FORM_GENERIC) return leave_to_worker(c, key, &wanted->spec, images_expected_ms(c->images));
    problem_key_format(key, label, sizeof label);
    ch->chosen = wanted;
    RETURN_IF_ERROR(gemm_obtain_generic(c, key, &wanted->spec, label, &ch->kernel, source));
    if (ch->has_generic) ch->wanted = met_create(key, &ch->own.spec, pays(c, key, ch));
    return JG_OK;
}

static jg_status refuse_unloaded(const choice *ch)
{
    char name[KERNEL_NAME_BYTES];
    kernel_format_name(&ch->own.spec, name);
    return status_set(JG_ERR_NOT_READY, "neither %s nor a generic kernel in its place is loaded, and this call may neither compile nor "
                      "load (JG_COMPILE_NEVER, or its stream is being captured); prewarm it", name);
}

/* Chooses and obtains. */
static jg_status choose(jg_context *c, const problem_key *key, jg_compile policy, choice *ch, jg_source *source)
{
    const double start = clock_now_ms();
    *source = JG_SOURCE_MEMORY;
    RETURN_IF_ERROR(make_plans(c, key, ch));
    if (policy == JG_COMPILE_WAIT) {
        RETURN_IF_ERROR(choose_waiting(c, key, ch, source));
    } else {
        choose_loaded(c, key, ch);
        if (!ch->kernel && policy == JG_COMPILE_NEVER) return refuse_unloaded(ch);
        if (!ch->kernel) RETURN_IF_ERROR(choose_first_generic(c, key, ch, source));
    }
    if (*source != JG_SOURCE_MEMORY) {
        atomic_fetch_add(&c->waits, 1);
        context_trace(c, JG_EVENT_WAIT, key, &ch->chosen->spec, clock_now_ms() - start);
    }
    return JG_OK;
}

jg_status gemm_resolve(jg_context *c, const problem_key *key, jg_compile policy, lru_entry **entry, jg_source *source)
{
    choice ch = {.kernel = NULL};
    int swapped;
    size_t unloaded;
    jg_status status = choose(c, key, policy, &ch, source);
    if (status != JG_OK) {
        if (ch.kernel) lru_release(ch.kernel);
        met_drop(ch.wanted);
        return status;
    }
    *entry = dispatch_put(c, key, ch.chosen, ch.kernel, ch.wanted, &swapped);
    if (!*entry) return status_set(JG_ERR_NO_MEMORY, "out of memory remembering a problem");
    if (policy == JG_COMPILE_WAIT) atomic_store(&((dispatch *)lru_value(*entry))->tried, 1);
    dispatch_trim(c);
    if (policy != JG_COMPILE_WAIT) return JG_OK;
    status = dispatch_trim_kernels(c, SIZE_MAX, &unloaded);
    if (status != JG_OK) lru_release(*entry);
    return status;
}

/* A call that may wait does not put up with a fallback that an earlier call, which might not, has left; it tries once. Where that
 * fails the fallback goes on serving, unless the device is gone. */
static jg_status improve(jg_context *c, const jg_problem *in, const problem_key *key, void *stream, dispatch *d, jg_source *source)
{
    const jg_compile policy = c->options.compile == JG_COMPILE_NEVER || in->compile == JG_COMPILE_DEFAULT ? c->options.compile : in->compile;
    if (!dispatch_is_provisional(d) || policy != JG_COMPILE_WAIT || atomic_load_explicit(&d->tried, memory_order_relaxed) ||
        enter_and_ask_captured(c, stream))
        return JG_OK;
    lru_entry *entry;
    status_text before;
    if (atomic_exchange(&d->tried, 1)) return JG_OK;
    status_save(&before);
    jg_status status = gemm_resolve(c, key, policy, &entry, source);
    if (status == JG_OK) {
        lru_release(entry);
    } else if (!jg_status_is_fatal(status)) {
        char label[JG_PROBLEM_TEXT_BYTES];
        problem_key_format(key, label, sizeof label);
        context_log(c, JG_LOG_WARNING, "%s: %s; a generic kernel goes on serving", label, jg_last_error());
        context_trace(c, JG_EVENT_FAIL, key, NULL, 0);
        status_restore(&before);
        *source = JG_SOURCE_MEMORY;
        status = JG_OK;
    }
    return status;
}

jg_status gemm_find(jg_context *c, const jg_problem *in, const problem_key *key, void *stream, lru_entry **entry, jg_source *source)
{
    *source = JG_SOURCE_MEMORY;
    *entry = lru_acquire(c->problems, key, sizeof *key);
    if (!*entry) return gemm_resolve(c, key, gemm_policy(c, in, stream), entry, source);
    jg_status status = improve(c, in, key, stream, lru_value(*entry), source);
    if (status != JG_OK) lru_release(*entry);
    return status;
}

/* --- the call --- */

static problem_key key_of(const problem *p, uint32_t alignment)
{
    return problem_key_of(p, plan_access(p, alignment >> 16, alignment >> 8 & 0xff, alignment & 0xff));
}

HOT static uint32_t alignment_of(const operands *o)
{
    const int reads = operands_read_ab(o);
    return recent_alignment(reads ? operands_alignment(o->a) : 16, reads ? operands_alignment(o->b) : 16, operands_alignment(o->c));
}

HOT static jg_status check_operands(const problem *p, const operands *o)
{
    return operands_check(p, o, (unsigned)type_bytes((jg_type)p->type_a), (unsigned)type_bytes((jg_type)p->type_b),
                          (unsigned)type_bytes((jg_type)p->type_c));
}

/* A call like one that this thread made not long ago. *done is 0 if it is not quite that. */
HOT static jg_status call_again(jg_context *c, recent *mine, const recent_call *known, const jg_problem *in, const jg_operands *data,
                            int *done)
{
    *done = 1;
    const operands o = operands_canonicalise(&known->problem, data);
    RETURN_IF_ERROR(check_operands(&known->problem, &o));
    if (alignment_of(&o) != known->alignment) {
        *done = 0;
        return JG_OK;
    }
    const dispatch *d = lru_value(known->entry);
    if (dispatch_is_provisional(d)) {
        const problem_key key = key_of(&known->problem, known->alignment);
        jg_source source;
        RETURN_IF_ERROR(improve(c, in, &key, data->stream, lru_value(known->entry), &source));
    }
    lru_touch(c->problems, known->entry);
    return gemm_launch(c, known->entry, &o, data->stream, mine);
}

static void remember_call(jg_context *c, const jg_problem *in, const problem *p, uint32_t alignment, lru_entry *entry)
{
    recent *mine = recent_enter(c->recent);
    if (!mine) return;
    recent_keep(recent_place(mine, in), in, p, alignment, entry);
    recent_leave(mine);
}

/* Any call. The thread's slot is not taken, so that evicting, should it come to that, can make it forget. */
static jg_status call_afresh(jg_context *c, const jg_problem *in, const jg_operands *data)
{
    problem p;
    RETURN_IF_ERROR(problem_canonicalise(in, &p));
    if (problem_is_empty(&p)) return JG_OK;
    const operands o = operands_canonicalise(&p, data);
    RETURN_IF_ERROR(check_operands(&p, &o));
    if (context_is_cpu(c)) return cpu_gemm(&p, &o);

    const uint32_t alignment = alignment_of(&o);
    const problem_key key = key_of(&p, alignment);
    lru_entry *entry;
    jg_source source;
    RETURN_IF_ERROR(gemm_find(c, in, &key, data->stream, &entry, &source));
    remember_call(c, in, &p, alignment, entry);
    jg_status status = gemm_launch(c, entry, &o, data->stream, NULL);
    lru_release(entry);
    return status;
}

HOT jg_status jg_gemm(jg_context *c, const jg_problem *in, const jg_operands *data)
{
    if (!c || !in || !data) return status_set(JG_ERR_NULL, "jg_gemm: %s is null", !c ? "context" : !in ? "problem" : "operands");
    recent *mine = c->recent ? recent_enter(c->recent) : NULL;
    int done = 0;
    jg_status status = JG_OK;
    if (mine) {
        const recent_call *known = recent_place(mine, in);
        if (recent_is(known, in)) status = call_again(c, mine, known, in, data, &done);
        recent_leave(mine);
    }
    return done ? status : call_afresh(c, in, data);
}
