/* jg_prewarm: from a list of problems to kernels in the caches, several compiles at a time.
 *
 * The list comes down to a set of distinct kernels first, so that the total is known and equal kernels are made once;
 * then each of a few threads takes the next one until none is left or the caller says stop. */
#include "context.h"
#include "hash.h"
#include "misses.h"
#include "status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_JOBS 16

/* One kernel to make. */
typedef struct item {
    kernel_key key;
    plan plan;                /* only its spec for the generic set */
    problem_key problem;      /* what to remember it for; unused for the generic set */
    int generic_set;
    jg_status status;         /* of planning, then of making */
    char label[JG_PROBLEM_TEXT_BYTES];
    char error[1024];
    UT_hash_handle hh;
} item;

typedef struct work {
    jg_context *context;
    effort how;
    item **items;
    size_t count, capacity;
    item *by_key;             /* hash of the items that have a kernel */
    pthread_mutex_t lock;     /* guards all below */
    size_t next, done;
    int stop;
    jg_progress_fn progress;
    void *user;
    jg_prewarm_result result;
    const item *first_failure;
} work;

static jg_status add_item(work *w, const item *from)
{
    item *same = NULL;
    if (from->status == JG_OK) HASH_FIND(hh, w->by_key, &from->key, sizeof from->key, same);
    if (same) return JG_OK;
    if (w->count == w->capacity) {
        size_t capacity = w->capacity ? 2 * w->capacity : 64;
        item **bigger = realloc(w->items, capacity * sizeof *bigger);
        if (!bigger) return status_set(JG_ERR_NO_MEMORY, "out of memory listing kernels");
        w->items = bigger;
        w->capacity = capacity;
    }
    item *copy = malloc(sizeof *copy);
    if (!copy) return status_set(JG_ERR_NO_MEMORY, "out of memory listing kernels");
    *copy = *from;
    w->items[w->count++] = copy;
    if (copy->status != JG_OK) return JG_OK;
    HASH_ADD(hh, w->by_key, key, sizeof copy->key, copy);
    return copy->hh.tbl ? JG_OK : status_set(JG_ERR_NO_MEMORY, "out of memory listing kernels");
}

/* Plans one problem. One that cannot be planned becomes an item that has failed already. */
static jg_status add_problem(work *w, const jg_problem *in)
{
    item it;
    memset(&it, 0, sizeof it);
    problem p;
    it.status = problem_canonicalise(in, &p);
    if (it.status == JG_OK && problem_is_empty(&p)) return JG_OK;
    if (it.status == JG_OK) {
        it.problem = problem_key_of(&p, problem_promised_access(&p));
        it.status = tuned_choose(w->context->tuned, &it.problem, gemm_planned_form(&p), &w->context->device.limits, &it.plan);
    }
    if (it.status != JG_OK) {
        snprintf(it.error, sizeof it.error, "%s", jg_last_error());
        snprintf(it.label, sizeof it.label, "%lldx%lldx%lld", (long long)in->m, (long long)in->n, (long long)in->k);
    } else {
        kernel_encode_key(&it.plan.spec, &it.key);
    }
    if (jg_problem_format(in, it.label, sizeof it.label, NULL) != JG_OK && it.status == JG_OK)
        snprintf(it.label, sizeof it.label, "?");
    return add_item(w, &it);
}

typedef struct generic_visit {
    work *work;
    jg_status status;
} generic_visit;

static void add_generic(void *user, const kernel_spec *spec)
{
    generic_visit *v = user;
    item it;
    memset(&it, 0, sizeof it);
    it.plan.spec = *spec;
    it.generic_set = 1;
    snprintf(it.label, sizeof it.label, "generic");
    kernel_encode_key(spec, &it.key);
    if (v->status == JG_OK) v->status = add_item(v->work, &it);
}

static void add_class(void *user, const plan_class *what)
{
    generic_visit *v = user;
    plan_generic_set(what, &v->work->context->device.limits, add_generic, v);
}

/* The generic kernels of the types asked for and, if told to, of every input type that the list uses. */
static jg_status add_generic_sets(work *w, const jg_prewarm_options *options)
{
    generic_visit v = {w, JG_OK};
    const size_t count = w->count; /* the list grows */
    for (size_t i = 0; i < count && options->generic_set; i++) {
        if (w->items[i]->status != JG_OK) continue;
        const kernel_spec *s = &w->items[i]->plan.spec;
        plan_class what = {s->type_a, s->type_b, s->math, 0};
        add_class(&v, &what);
        what.grouped = 1;
        if (options->types & JG_RESIDENT_GROUPED) add_class(&v, &what);
    }
    plan_each_resident(options->types, add_class, &v);
    return v.status;
}

/* What the cache file remembers as missed, with the accesses that it was met with, but for what a measurement speaks against. */
static jg_status add_misses(work *w)
{
    jg_context *c = w->context;
    miss_list list;
    jg_status status = misses_read(c->images, c->device.limits.arch->number, &list);
    for (size_t i = 0; i < list.count && status == JG_OK; i++) {
        const double gain = list.misses[i].gain;
        if (gain > 0 && gain < PLAN_GAIN_WORTHWHILE) continue; /* measured: it is not worth its own kernel */
        item it;
        memset(&it, 0, sizeof it);
        it.problem = list.misses[i].key;
        problem_key_format(&it.problem, it.label, sizeof it.label);
        it.status = tuned_choose(c->tuned, &it.problem, gemm_planned_form(&it.problem.problem), &c->device.limits, &it.plan);
        if (it.status != JG_OK) snprintf(it.error, sizeof it.error, "%s", jg_last_error());
        else kernel_encode_key(&it.plan.spec, &it.key);
        status = add_item(w, &it);
    }
    misses_free(&list);
    return status;
}

/* Generic kernels first, for they serve every size: a run that is stopped in the middle has made the most of its time. The rest stays
 * in the order asked for. */
static jg_status generic_first(work *w)
{
    item **sorted = w->count ? malloc(w->count * sizeof *sorted) : NULL;
    size_t count = 0;
    if (w->count && !sorted) return status_set(JG_ERR_NO_MEMORY, "out of memory listing kernels");
    for (int generic = 1; generic >= 0; generic--)
        for (size_t i = 0; i < w->count; i++)
            if ((w->items[i]->plan.spec.form == JG_FORM_GENERIC) == generic) sorted[count++] = w->items[i];
    free(w->items);
    w->items = sorted;
    w->capacity = w->count;
    return JG_OK;
}

/* The 16 common sizes in both common types. */
static jg_status add_common(work *w)
{
    static const jg_type types[] = {JG_F16, JG_F32};
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++)
        for (int64_t size = 64; size <= 1024; size += 64)
            RETURN_IF_ERROR(add_problem(w, &(jg_problem){.m = size, .n = size, .k = size, .type_a = types[t]}));
    return JG_OK;
}

/* Both take over the pin on the kernel. */
static jg_status keep_generic(jg_context *c, lru_entry *kernel)
{
    jg_status status = kernels_keep(c, kernel, &c->generic_resident);
    lru_release(kernel);
    return status;
}

static jg_status remember(jg_context *c, const item *it, lru_entry *kernel)
{
    int swapped;
    size_t unloaded;
    lru_entry *entry = dispatch_put(c, &it->problem, &it->plan, kernel, NULL, &swapped);
    if (!entry) return status_set(JG_ERR_NO_MEMORY, "out of memory remembering a problem");
    lru_release(entry);
    return dispatch_trim_kernels(c, SIZE_MAX, &unloaded);
}

/* Makes one kernel: its image in the cache file and, on a CUDA device, the kernel loaded and its problem remembered. */
static void make(work *w, item *it, jg_source *source, double *ms)
{
    jg_context *c = w->context;
    *ms = 0;
    if (context_is_cpu(c)) {
        image img;
        it->status = images_get(c->images, &it->plan.spec, it->label, w->how, &img, source);
        if (it->status == JG_OK) {
            *ms = img.compile_ms;
            image_free(&img);
        }
    } else {
        lru_entry *kernel;
        it->status = kernels_obtain(c, &it->plan.spec, it->label, w->how, &kernel, source);
        if (it->status == JG_OK) {
            *ms = ((const loaded_kernel *)lru_value(kernel))->compile_ms;
            it->status = it->generic_set ? keep_generic(c, kernel) : remember(c, it, kernel);
        }
    }
    if (it->status != JG_OK) snprintf(it->error, sizeof it->error, "%s", jg_last_error());
}

/* Counts and tells; called with the lock held, so the callback never runs concurrently with itself. */
static void report(work *w, const item *it, jg_source source, double ms)
{
    char name[KERNEL_NAME_BYTES] = "";
    if (it->plan.spec.family) kernel_format_name(&it->plan.spec, name);
    jg_outcome outcome = it->status != JG_OK ? JG_FAILED : source == JG_SOURCE_COMPILED ? JG_COMPILED : JG_CACHED;
    size_t *const counts[] = {[JG_COMPILED] = &w->result.compiled, [JG_CACHED] = &w->result.cached, [JG_FAILED] = &w->result.failed};
    ++*counts[outcome];
    if (outcome == JG_FAILED && !w->first_failure) w->first_failure = it;
    w->done++;
    const jg_progress progress = {w->done, w->count, it->label, name, outcome, outcome == JG_COMPILED ? ms : 0, it->error};
    if (w->progress && w->progress(w->user, &progress)) w->stop = 1;
}

static void *make_items(void *argument)
{
    work *w = argument;
    pthread_mutex_lock(&w->lock);
    while (!w->stop && w->next < w->count) {
        item *it = w->items[w->next++];
        jg_source source = JG_SOURCE_COMPILED;
        double ms = 0;
        if (it->status == JG_OK) {
            pthread_mutex_unlock(&w->lock);
            make(w, it, &source, &ms);
            pthread_mutex_lock(&w->lock);
        }
        report(w, it, source, ms);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

static size_t job_count(uint32_t asked, size_t items)
{
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    size_t jobs = asked ? asked : online > 0 ? (size_t)online : 1;
    if (jobs > MAX_JOBS) jobs = MAX_JOBS;
    return jobs < items ? jobs : items;
}

/* Runs the workers. One thread that starts is enough; the rest only make it faster. */
static jg_status run_workers(work *w, uint32_t jobs)
{
    pthread_t threads[MAX_JOBS];
    size_t started = 0, wanted = job_count(jobs, w->count);
    int error = 0;
    while (started < wanted && !(error = compile_spawn(&threads[started], make_items, w))) started++;
    for (size_t i = 0; i < started; i++) pthread_join(threads[i], NULL);
    if (wanted && !started) return status_set(JG_ERR_NO_MEMORY, "cannot start a compile thread: %s", strerror(error));
    return JG_OK;
}

static jg_status outcome_of(const work *w)
{
    if (w->stop) return status_set(JG_ERR_CANCELLED, "stopped by the progress callback; %zu of %zu kernels are done", w->done, w->count);
    if (w->first_failure) return status_set(w->first_failure->status, "%s: %s", w->first_failure->label, w->first_failure->error);
    return JG_OK;
}

static jg_status check_options(const jg_prewarm_options *o)
{
    if (!(o->types & ~PLAN_RESIDENT_ALL)) return JG_OK;
    return status_set(JG_ERR_VALUE, "jg_prewarm: types is 0x%x; it must be made of JG_RESIDENT_ flags of types", o->types);
}

jg_status jg_prewarm(jg_context *c, const jg_problem *problems, size_t count, const jg_prewarm_options *options, jg_prewarm_result *result)
{
    if (result) memset(result, 0, sizeof *result);
    if (!c || (!problems && count)) return status_set(JG_ERR_NULL, "jg_prewarm: %s is null", !c ? "context" : "problems");
    const jg_prewarm_options defaults = {0};
    if (!options) options = &defaults;
    work w = {.context = c, .progress = options->progress, .user = options->user,
              .how = c->options.compile == JG_COMPILE_NEVER ? EFFORT_DISK : EFFORT_COMPILE_HERE};
    pthread_mutex_init(&w.lock, NULL);
    jg_status status = check_options(options);
    if (status == JG_OK && !count && !options->from_misses && !options->types) status = add_common(&w);
    for (size_t i = 0; i < count && status == JG_OK; i++) status = add_problem(&w, &problems[i]);
    if (status == JG_OK && options->from_misses) status = add_misses(&w);
    if (status == JG_OK) status = add_generic_sets(&w, options);
    if (status == JG_OK) status = generic_first(&w);
    if (status == JG_OK) status = run_workers(&w, options->jobs);
    if (status == JG_OK) status = outcome_of(&w);
    if (result) *result = w.result;
    HASH_CLEAR(hh, w.by_key);
    for (size_t i = 0; i < w.count; i++) free(w.items[i]);
    free(w.items);
    pthread_mutex_destroy(&w.lock);
    return status;
}
