/* What jg_open loads: the generic set, the kernels of sizes that earlier runs met, and what prewarming asks for.
 *
 * In: the files and the options. Out: kernels loaded and problems remembered; for what the files lack, demands to the worker.
 * Nothing is compiled here. */
#include "context.h"
#include "misses.h"
#include "status.h"

#include <string.h>

/* Sizes that earlier runs met: how many kernels are loaded without being asked for. */
#define MAX_MET 256

/* --- the generic set --- */

typedef struct generic_load {
    jg_context *context;
    jg_status status;            /* the first failure that ends it */
    size_t wanted, missing;
    kernel_spec first_missing;
} generic_load;

/* A kernel that the files lack, or that the driver refuses, is the worker's; a sealed context has none to ask. */
static void load_generic(void *user, const kernel_spec *spec)
{
    generic_load *load = user;
    jg_context *c = load->context;
    lru_entry *entry;
    jg_source source;
    if (load->status != JG_OK) return;
    load->wanted++;
    jg_status status = kernels_obtain(c, spec, "generic", EFFORT_DISK, &entry, &source);
    if (status == JG_OK) {
        load->status = kernels_keep(c, entry, &c->generic_resident);
        lru_release(entry);
    } else if (status == JG_ERR_NOT_READY || status == JG_ERR_LOAD) {
        if (status == JG_ERR_LOAD) context_log(c, JG_LOG_WARNING, "%s", jg_last_error());
        if (!load->missing++) load->first_missing = *spec;
        if (c->options.compile != JG_COMPILE_NEVER) gemm_demand(c, NULL, spec, NULL, 1);
    } else {
        load->status = status;
    }
}

static void load_class(void *user, const plan_class *what)
{
    generic_load *load = user;
    plan_generic_set(what, &load->context->device.limits, load_generic, load);
}

typedef struct namesake {
    const char *name;
    int found;
} namesake;

static int is_namesake(void *user, const store_record *record)
{
    namesake *n = user;
    return n->found = strcmp(record->name, n->name) == 0;
}

/* Whether a file has a kernel of this name: its key is another then, so it was made from other templates. */
static int has_namesake(store *s, const char *name)
{
    namesake n = {name, 0};
    return s && store_list(s, is_namesake, &n) == STORE_OK && n.found;
}

static jg_status refuse_sealed(jg_context *c, const generic_load *load)
{
    char name[KERNEL_NAME_BYTES];
    kernel_format_name(&load->first_missing, name);
    const int other = has_namesake(c->images->store, name) || has_namesake(c->images->factory, name);
    return status_set(JG_ERR_NOT_READY, "sealed (JG_COMPILE_NEVER), and %zu of the %zu generic kernels of options.resident are not in "
                      "cache %s%s%s, such as %s%s; fill it with jitgemm-prewarm --generic", load->missing, load->wanted,
                      c->images->path[0] ? c->images->path : "(none)", c->images->factory_path[0] ? " or factory file " : "",
                      c->images->factory_path, name, other ? " (there is one made from another version's templates)" : "");
}

static jg_status load_generic_sets(jg_context *c)
{
    generic_load load = {.context = c};
    plan_each_resident(c->options.resident, load_class, &load);
    if (load.status == JG_OK && load.missing && c->options.compile == JG_COMPILE_NEVER) return refuse_sealed(c, &load);
    return load.status;
}

/* --- kernels of given problems --- */

/* Loads a problem's own kernel if the files have it; else demands it, if told to. A failure costs only the kernel, unless the
 * device is gone. */
static jg_status prepare(jg_context *c, const problem_key *key, int demand)
{
    plan own;
    char label[JG_PROBLEM_TEXT_BYTES];
    lru_entry *kernel, *entry;
    jg_source source;
    int swapped;
    RETURN_IF_ERROR(tuned_choose(c->tuned, key, gemm_planned_form(&key->problem), &c->device.limits, &own));
    problem_key_format(key, label, sizeof label);
    jg_status status = kernels_obtain(c, &own.spec, label, EFFORT_DISK, &kernel, &source);
    if (status == JG_OK) {
        entry = dispatch_put(c, key, &own, kernel, NULL, &swapped);
        if (!entry) return status_set(JG_ERR_NO_MEMORY, "out of memory remembering a problem");
        lru_release(entry);
    } else if (status == JG_ERR_NOT_READY && demand) {
        met *m = met_create(key, &own.spec, 1);
        if (!m) return status_set(JG_ERR_NO_MEMORY, "out of memory asking for a kernel");
        gemm_demand(c, key, &own.spec, m, 0);
        met_drop(m);
    } else if (status == JG_ERR_LOAD) {
        context_log(c, JG_LOG_WARNING, "%s", jg_last_error());
        status = JG_OK;
    }
    return status == JG_ERR_NOT_READY ? JG_OK : status;
}

static jg_status prepare_problem(jg_context *c, const jg_problem *in)
{
    problem p;
    RETURN_IF_ERROR(problem_canonicalise(in, &p));
    if (problem_is_empty(&p)) return JG_OK;
    const problem_key key = problem_key_of(&p, problem_promised_access(&p));
    return prepare(c, &key, c->options.compile != JG_COMPILE_NEVER);
}

typedef struct common {
    jg_context *context;
    jg_status status;
} common;

/* Of a class that the architecture cannot do there is nothing to prepare. */
static void prepare_class(void *user, const plan_class *what)
{
    common *w = user;
    for (int64_t size = 64; size <= 1024 && w->status == JG_OK; size += 64) {
        const jg_problem p = {.m = size, .n = size, .k = size, .type_a = (jg_type)what->type_a, .type_b = (jg_type)what->type_b, .math = what->math};
        w->status = prepare_problem(w->context, &p);
        if (w->status == JG_ERR_UNSUPPORTED) w->status = JG_OK;
    }
}

static jg_status prepare_common(jg_context *c)
{
    common w = {c, JG_OK};
    plan_each_resident(c->options.resident, prepare_class, &w);
    return w.status;
}

/* One that cannot be planned any more is passed over. */
static jg_status prepare_miss(jg_context *c, const miss *m, int demand)
{
    jg_status status = prepare(c, &m->key, demand);
    return status == JG_ERR_UNSUPPORTED ? JG_OK : status;
}

/* A plan that was recorded after a size was met has another kernel than the list says. */
static void look_for_recorded(jg_context *c, miss_list *list)
{
    plan own;
    kernel_key kernel;
    tuned_plan found;
    for (size_t i = 0; i < list->count; i++) {
        miss *m = &list->misses[i];
        const jg_form form = gemm_planned_form(&m->key.problem);
        if (!tuned_find(c->tuned, &m->key, form, &found)) continue;
        if (tuned_choose(c->tuned, &m->key, form, &c->device.limits, &own) != JG_OK) continue;
        kernel_encode_key(&own.spec, &kernel);
        m->cached = images_have(c->images, &kernel);
    }
}

/* How many kernels of met sizes to load: no more than would stay. */
static size_t room_for_met(jg_context *c)
{
    lru_stats kernels;
    lru_get_stats(c->kernels, &kernels);
    const size_t most = c->options.memory_max_kernels, room = most > kernels.entries ? most - kernels.entries : 0;
    return room < MAX_MET ? room : MAX_MET;
}

/* The most counted that have a kernel are loaded, the most counted of them last, so that it is the last to be evicted. */
static jg_status load_met(jg_context *c, const miss_list *list, int demand)
{
    const size_t room = room_for_met(c);
    size_t end = 0;
    for (size_t chosen = 0; end < list->count && chosen < room; end++) chosen += list->misses[end].cached != 0;
    while (end-- > 0)
        if (list->misses[end].cached) RETURN_IF_ERROR(prepare_miss(c, &list->misses[end], demand));
    return JG_OK;
}

/* Those that have none are demanded, the most counted first, unless they are known not to pay. */
static jg_status demand_met(jg_context *c, const miss_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        const miss *m = &list->misses[i];
        if (!m->cached && (m->gain == 0 || m->gain >= PLAN_GAIN_WORTHWHILE)) RETURN_IF_ERROR(prepare_miss(c, m, 1));
    }
    return JG_OK;
}

/* What earlier runs met. */
static jg_status prepare_met(jg_context *c)
{
    const int load = !(c->options.prewarm & JG_PREWARM_NO_MET) && c->options.compile != JG_COMPILE_WAIT;
    const int demand = (c->options.prewarm & JG_PREWARM_MISSES) && c->options.compile != JG_COMPILE_NEVER;
    miss_list list;
    if (!load && !demand) return JG_OK;
    if (misses_read(c->images, c->device.limits.arch->number, &list) != JG_OK) return status_set(JG_ERR_NO_MEMORY, "out of memory");
    look_for_recorded(c, &list);
    jg_status status = load ? load_met(c, &list, demand) : JG_OK;
    if (status == JG_OK && demand) status = demand_met(c, &list);
    misses_free(&list);
    return status;
}

/* The generic kernels of a problem whose types and math have no JG_RESIDENT_ flag, so that its other sizes need not wait
 * either. A sealed context does without what the files lack: the problems' own kernels may be all it needs. */
static jg_status load_unflagged_set(jg_context *c, const jg_problem *in)
{
    problem p;
    if (c->options.compile == JG_COMPILE_WAIT || c->options.resident == JG_RESIDENT_NONE) return JG_OK;
    RETURN_IF_ERROR(problem_canonicalise(in, &p));
    const plan_class what = plan_class_of(&p);
    generic_load load = {.context = c};
    if (!plan_class_has_flag(&what)) load_class(&load, &what);
    return load.status;
}

jg_status startup_load(jg_context *c, const jg_options *options)
{
    size_t unloaded;
    RETURN_IF_ERROR(load_generic_sets(c));
    for (size_t i = 0; i < options->prewarm_count; i++) {
        jg_status status = load_unflagged_set(c, &options->prewarm_problems[i]);
        if (status == JG_OK) status = prepare_problem(c, &options->prewarm_problems[i]);
        if (status != JG_OK) return status_prefix(status, "options.prewarm_problems[%zu]: ", i);
    }
    if (c->options.prewarm & JG_PREWARM_COMMON) RETURN_IF_ERROR(prepare_common(c));
    RETURN_IF_ERROR(prepare_met(c));
    return dispatch_trim_kernels(c, SIZE_MAX, &unloaded);
}
