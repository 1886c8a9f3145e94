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
        if (c->options.compile == JG_COMPILE_BACKGROUND) worker_demand(c->worker, spec, NULL, 1);
    } else {
        load->status = status;
    }
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
    for (int type = JG_F32; type <= JG_BF16; type++)
        if (c->options.resident & 1u << type) plan_generic_set((jg_type)type, &c->device.limits, load_generic, &load);
    if (load.status == JG_OK && load.missing && c->options.compile == JG_COMPILE_NEVER) return refuse_sealed(c, &load);
    return load.status;
}

/* --- kernels of given problems --- */

/* Loads a problem's own kernel if the files have it; else demands it, if told to. A failure costs only the kernel, unless the
 * device is gone. */
static jg_status prepare(jg_context *c, const problem_key *key, int demand, int *loaded)
{
    plan own;
    char label[256];
    lru_entry *kernel, *entry;
    jg_source source;
    int swapped;
    *loaded = 0;
    RETURN_IF_ERROR(plan_choose(&key->problem, key->access, gemm_planned_form(&key->problem), &c->device.limits, &own));
    problem_key_format(key, label, sizeof label);
    jg_status status = kernels_obtain(c, &own.spec, label, EFFORT_DISK, &kernel, &source);
    if (status == JG_OK) {
        *loaded = 1;
        entry = dispatch_put(c, key, &own, kernel, NULL, &swapped);
        if (!entry) return status_set(JG_ERR_NO_MEMORY, "out of memory remembering a problem");
        lru_release(entry);
    } else if (status == JG_ERR_NOT_READY && demand) {
        met *m = met_create(key, &own.spec, 1);
        status = m ? worker_demand(c->worker, &own.spec, m, 0) : status_set(JG_ERR_NO_MEMORY, "out of memory asking for a kernel");
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
    int loaded;
    RETURN_IF_ERROR(problem_canonicalise(in, &p));
    if (problem_is_empty(&p)) return JG_OK;
    const problem_key key = problem_key_of(&p, problem_promised_access(&p));
    return prepare(c, &key, c->options.compile != JG_COMPILE_NEVER, &loaded);
}

static jg_status prepare_common(jg_context *c)
{
    for (int type = JG_F32; type <= JG_BF16; type++) {
        if (!(c->options.resident & 1u << type)) continue;
        for (int64_t size = 64; size <= 1024; size += 64)
            RETURN_IF_ERROR(prepare_problem(c, &(jg_problem){.m = size, .n = size, .k = size, .type_a = (jg_type)type}));
    }
    return JG_OK;
}

/* What earlier runs met, most counted first. One that cannot be planned any more is passed over. */
static jg_status prepare_met(jg_context *c)
{
    const int demand = (c->options.prewarm & JG_PREWARM_MISSES) && c->options.compile != JG_COMPILE_NEVER;
    miss_list list;
    size_t loaded = 0;
    jg_status status = JG_OK;
    if (misses_read(c->images, c->device.limits.arch->number, &list) != JG_OK) return status_set(JG_ERR_NO_MEMORY, "out of memory");
    for (size_t i = 0; i < list.count && status == JG_OK; i++) {
        const miss *m = &list.misses[i];
        int now = 0;
        if (m->cached && loaded == MAX_MET) continue;
        if (m->cached || (demand && (m->gain == 0 || m->gain >= PLAN_GAIN_WORTHWHILE))) status = prepare(c, &m->key, demand, &now);
        if (status == JG_ERR_UNSUPPORTED) status = JG_OK;
        loaded += (size_t)now;
    }
    misses_free(&list);
    return status;
}

jg_status startup_load(jg_context *c, const jg_options *options)
{
    size_t unloaded;
    RETURN_IF_ERROR(load_generic_sets(c));
    for (size_t i = 0; i < options->prewarm_count; i++) {
        jg_status status = prepare_problem(c, &options->prewarm_problems[i]);
        if (status != JG_OK) return status_prefix(status, "options.prewarm_problems[%zu]: ", i);
    }
    if (c->options.prewarm & JG_PREWARM_COMMON) RETURN_IF_ERROR(prepare_common(c));
    if (!(c->options.prewarm & JG_PREWARM_NO_MET) && c->options.compile != JG_COMPILE_WAIT) RETURN_IF_ERROR(prepare_met(c));
    return dispatch_trim_kernels(c, SIZE_MAX, &unloaded);
}
