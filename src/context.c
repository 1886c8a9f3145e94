/* jg_open and jg_close: puts the device, the compiler and the caches together, and takes them apart; logging; counters. */
#include "context.h"

#include "options.h"
#include "status.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void context_log(jg_context *c, jg_log_level level, const char *format, ...)
{
    if (!c->options.log || level > c->options.log_level) return;
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    pthread_mutex_lock(&c->log_lock);
    c->options.log(c->options.log_user, level, text);
    pthread_mutex_unlock(&c->log_lock);
}

/* A cache that cannot be used is said once and costs compiles, not the context. */
static void open_cache(jg_context *c, const jg_options *options)
{
    int no_home = 0;
    char error[1024] = "no HOME and no JITGEMM_CACHE";
    if (options_cache_path(options->cache_path, c->cache_path, sizeof c->cache_path, &no_home) != JG_OK) {
        snprintf(error, sizeof error, "%s", jg_last_error());
    } else if (!no_home) {
        if (!c->cache_path[0]) return; /* asked for */
        if (store_open(c->cache_path, 0, options->cache_max_bytes, &c->store, error, sizeof error) == STORE_OK) return;
    }
    context_log(c, JG_LOG_WARNING, "%s; kernels are kept in memory only", error);
    c->cache_path[0] = 0;
}

static jg_status open_parts(jg_context *c)
{
    RETURN_IF_ERROR(device_open(&c->options, options_driver_path(c->options.driver_path), &c->device));
    c->compiler = compiler_create(options_nvrtc_path(c->options.nvrtc_path), options_line_info() || context_is_software(c));
    c->problems = lru_create(CONTEXT_MAX_PROBLEMS, 0, 1);
    c->kernels = lru_create(c->options.memory_max_kernels, c->options.memory_max_bytes, 1);
    if (!c->compiler || !c->problems || !c->kernels) return status_set(JG_ERR_NO_MEMORY, "out of memory opening a context");
    open_cache(c, &c->options);
    return JG_OK;
}

static void free_context(jg_context *c)
{
    kernels_destroy(c);
    store_close(c->store);
    compiler_destroy(c->compiler);
    device_close(&c->device);
    pthread_mutex_destroy(&c->making_lock);
    pthread_cond_destroy(&c->made);
    pthread_mutex_destroy(&c->log_lock);
    free(c);
}

jg_status jg_open(const jg_options *options, jg_context **out)
{
    if (!out) return status_set(JG_ERR_NULL, "jg_open: context is null");
    *out = NULL;
    jg_context *c = calloc(1, sizeof *c);
    if (!c) return status_set(JG_ERR_NO_MEMORY, "out of memory opening a context");
    jg_status status = options_resolve(options, &c->options);
    if (status != JG_OK) {
        free(c);
        return status;
    }
    pthread_mutex_init(&c->making_lock, NULL);
    pthread_cond_init(&c->made, NULL);
    pthread_mutex_init(&c->log_lock, NULL);
    status = open_parts(c);
    if (status != JG_OK) {
        free_context(c);
        return status;
    }
    c->options.cache_path = c->options.nvrtc_path = c->options.driver_path = NULL; /* the caller's */
    context_log(c, JG_LOG_INFO, "jitgemm %s on %s (sm_%d, %d SMs), cache %s", jg_version(), context_is_cpu(c) ? "the cpu" : context_is_software(c) ? "the software GPU" : "CUDA",
                c->device.limits.arch->number, c->device.limits.sm_count, c->cache_path[0] ? c->cache_path : "in memory only");
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

jg_status jg_poll(jg_context *c, const jg_poll_limits *bounds, jg_poll_result *result)
{
    if (!c) return status_set(JG_ERR_NULL, "jg_poll: context is null");
    (void)bounds;
    size_t count;
    jg_status status = kernels_trim(c, &count);
    if (result) *result = (jg_poll_result){.unloaded = count};
    return status;
}

jg_status jg_cache_stats(jg_context *c, jg_stats *out)
{
    if (!c || !out) return status_set(JG_ERR_NULL, "jg_cache_stats: %s is null", !c ? "context" : "stats");
    memset(out, 0, sizeof *out);
    lru_stats problems, kernels;
    lru_get_stats(c->problems, &problems);
    lru_get_stats(c->kernels, &kernels);
    out->problems = problems.entries;
    out->memory_hits = problems.hits;
    out->memory_misses = problems.misses;
    out->kernels = kernels.entries;
    out->kernel_bytes = kernels.bytes;
    out->evictions = kernels.evictions;
    out->disk_hits = atomic_load(&c->disk_hits);
    out->disk_misses = atomic_load(&c->disk_misses);
    out->disk_faults = atomic_load(&c->disk_faults);
    out->compiles = atomic_load(&c->compiles);
    out->compile_failures = atomic_load(&c->compile_failures);
    out->compile_ms = (double)atomic_load(&c->compile_us) * 1e-3;
    store_totals totals;
    if (c->store && store_get_totals(c->store, &totals) == STORE_OK) {
        out->disk_entries = totals.entries;
        out->disk_bytes = totals.bytes;
    }
    snprintf(out->path, sizeof out->path, "%s", c->cache_path);
    return JG_OK;
}
