/* jg_open and jg_close: puts the device, the compiler and the caches together, and takes them apart; logging; counters. */
#include "context.h"

#include "bring.h"
#include "exit_guard.h"
#include "options.h"
#include "status.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void context_log(jg_context *c, jg_log_level level, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    journal_log_list(&c->images->journal, level, format, args);
    va_end(args);
}

void context_trace(jg_context *c, jg_event event, const problem_key *key, const kernel_spec *spec, double ms)
{
    if (!c->options.trace) return;
    char text[JG_PROBLEM_TEXT_BYTES] = "", name[KERNEL_NAME_BYTES] = "";
    if (key) problem_key_format(key, text, sizeof text);
    if (spec) kernel_format_name(spec, name);
    c->options.trace(c->options.trace_user, &(jg_trace){event, text, name, ms});
}

/* --- opening --- */

/* The worker holds the images by itself, since it may outlive the context. */
static jg_status make_worker(jg_context *c)
{
    worker_hooks hooks;
    RETURN_IF_ERROR(bring_hooks(c->images, c->device.limits.arch->number, &hooks));
    c->worker = worker_create(&c->options.worker, c->options.compile != JG_COMPILE_NEVER, c->images->store != NULL, &hooks);
    if (c->worker) return JG_OK;
    hooks.release(hooks.user);
    return status_set(JG_ERR_NO_MEMORY, "out of memory opening a context");
}

static jg_status open_parts(jg_context *c)
{
    RETURN_IF_ERROR(device_open(&c->options, options_driver_path(c->options.driver_path), &c->device));
    c->images = images_open(&c->options, options_line_info() || context_is_software(c));
    c->tuned = tuned_create();
    c->problems = lru_create(CONTEXT_MAX_PROBLEMS, 0, CONTEXT_PROBLEM_PARTS);
    c->kernels = lru_create(c->options.memory_max_kernels, c->options.memory_max_bytes, 1);
    if (!c->images || !c->tuned || !c->problems || !c->kernels) return status_set(JG_ERR_NO_MEMORY, "out of memory opening a context");
    context_log(c, JG_LOG_INFO, "jitgemm %s on %s (sm_%d, %d SMs), cache %s", jg_version(),
                context_is_cpu(c) ? "the cpu" : context_is_software(c) ? "the software GPU" : "CUDA", c->device.limits.arch->number,
                c->device.limits.sm_count, c->images->path[0] ? c->images->path : "in memory only");
    if (context_is_cpu(c)) return JG_OK;
    if (c->options.plans != JG_PLANS_MODEL) tuned_read(c->tuned, c->images, c->device.place);
    if (tuned_count(c->tuned)) context_log(c, JG_LOG_INFO, "%zu recorded plans for %s", tuned_count(c->tuned), c->device.place);
    c->recent = recent_create();
    if (!c->recent) return status_set(JG_ERR_NO_MEMORY, "out of memory opening a context");
    RETURN_IF_ERROR(make_worker(c));
    return startup_load(c, &c->options);
}

static void free_context(jg_context *c)
{
    if (c->images) images_cancel(c->images);
    worker_stop(c->worker);
    recent_destroy(c->recent);
    dispatch_destroy(c);
    if (c->images) journal_close(&c->images->journal);
    images_drop(c->images);
    tuned_destroy(c->tuned);
    device_close(&c->device);
    pthread_mutex_destroy(&c->making_lock);
    pthread_cond_destroy(&c->made);
    pthread_mutex_destroy(&c->keep_lock);
    free(c);
}

jg_status jg_open(const jg_options *options, jg_context **out)
{
    if (!out) return status_set(JG_ERR_NULL, "jg_open: context is null");
    *out = NULL;
    status_text before;
    status_save(&before);
    exit_guard_watch_thread();
    jg_context *c = aligned_alloc(_Alignof(jg_context), sizeof *c);
    if (!c) return status_set(JG_ERR_NO_MEMORY, "out of memory opening a context");
    memset(c, 0, sizeof *c);
    jg_status status = options_resolve(options, &c->options);
    if (status != JG_OK) {
        free(c);
        return status;
    }
    pthread_mutex_init(&c->making_lock, NULL);
    pthread_cond_init(&c->made, NULL);
    pthread_mutex_init(&c->keep_lock, NULL);
    status = open_parts(c);
    if (status != JG_OK) {
        status_text failure;
        status_save(&failure);
        free_context(c);
        status_restore(&failure);
        return status;
    }
    jg_options *o = &c->options; /* forgets what is the caller's */
    o->cache_path = o->factory_path = o->nvrtc_path = o->driver_path = o->helper_path = NULL;
    o->prewarm_problems = NULL;
    status_restore(&before); /* what the files lacked, and was no failure, is not to be spoken of */
    *out = c;
    return JG_OK;
}

jg_status jg_close(jg_context *c)
{
    if (!c) return JG_OK;
    int plans = atomic_load(&c->plans);
    if (plans) return status_set(JG_ERR_BUSY, "jg_close: %d plan%s not destroyed yet", plans, plans == 1 ? " is" : "s are");
    free_context(c);
    return JG_OK;
}

jg_status jg_cache_stats(jg_context *c, jg_stats *out)
{
    if (!c || !out) return status_set(JG_ERR_NULL, "jg_cache_stats: %s is null", !c ? "context" : "stats");
    memset(out, 0, sizeof *out);
    lru_stats problems, kernels;
    lru_get_stats(c->problems, &problems);
    lru_get_stats(c->kernels, &kernels);
    out->problems = problems.entries;
    recent_sum(c->recent, &out->launches_own, &out->launches_generic);
    out->memory_hits = problems.hits;
    out->memory_misses = problems.misses;
    out->kernels = kernels.entries;
    out->kernel_bytes = kernels.bytes;
    out->evictions = kernels.evictions;
    images *files = c->images;
    out->disk_hits = atomic_load(&files->disk_hits);
    out->disk_misses = atomic_load(&files->disk_misses);
    out->disk_faults = atomic_load(&files->disk_faults);
    out->compiles = atomic_load(&files->compiles);
    out->compile_failures = atomic_load(&files->compile_failures);
    out->compile_ms = (double)atomic_load(&files->compile_us) * 1e-3;
    out->helpers_lost = compiler_helpers_lost(files->compiler);
    for (int i = 0; i < CONTEXT_COUNT_SLOTS; i++) {
        out->launches_own += atomic_load(&c->launches[i].own);
        out->launches_generic += atomic_load(&c->launches[i].generic);
    }
    out->waits = atomic_load(&c->waits);
    out->swaps = atomic_load(&c->swaps);
    out->captured = atomic_load(&c->captured);
    out->resident = atomic_load(&c->generic_resident);
    out->tuned = tuned_count(c->tuned);
    snprintf(out->place, sizeof out->place, "%s", c->device.place);
    worker_stats work = {0};
    if (c->worker) worker_get_stats(c->worker, &work);
    out->queued = work.queued;
    out->ready = work.ready;
    out->dropped = work.dropped;
    store_totals totals;
    if (files->store && store_get_totals(files->store, &totals) == STORE_OK) {
        out->disk_entries = totals.entries;
        out->disk_bytes = totals.bytes;
    }
    snprintf(out->path, sizeof out->path, "%s", files->path);
    snprintf(out->factory, sizeof out->factory, "%s", files->factory_path);
    return JG_OK;
}
