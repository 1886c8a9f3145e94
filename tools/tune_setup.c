/* Prepares and ends a run of tuning: see tune_setup.h. */
#include "tune_setup.h"

#include "prewarm_misses.h"
#include "prewarm_repair.h"
#include "tune_known.h"
#include "tune_scratch.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { CANDIDATES = 6, FIRST_CANDIDATES = 3 }; /* of a problem: by default; with a budget, before any problem gets more */
#define SOFTWARE_FLOPS 1e7                     /* the software GPU runs every candidate */
#define SCRATCH_BYTES ((uint64_t)16 << 30)     /* the library's own cap would drop kernels that are to be measured */
#define SCRATCH_KERNELS 256                    /* loaded ones; each is used for one race, or a few */

int tune_fail(tune_state *t, const char *format, ...)
{
    char text[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    progress_message(&t->progress, "jitgemm-prewarm: %s", text);
    return TUNE_EXIT_FAILED;
}

static void on_log(void *user, jg_log_level level, const char *text)
{
    static const char *const names[] = {[JG_LOG_ERROR] = "error", [JG_LOG_WARNING] = "warning", [JG_LOG_INFO] = "info",
                                        [JG_LOG_DEBUG] = "debug"};
    tune_state *t = user;
    progress_message(&t->progress, "jitgemm-prewarm: %s: %s", names[level], text);
}

/* ---- the device and the cache file ---- */

/* With --sms on a part of it, but the software GPU, where there is nothing to time. */
static int open_gpu(tune_state *t)
{
    bench_gpu *gpu = &t->measure.gpu;
    const int sms = t->args->sm_count;
    jg_status status = bench_gpu_open(NULL, gpu);
    if (status == JG_OK && sms > gpu->sm_count) return tune_fail(t, "--sms %d: this GPU has %d multiprocessors", sms, gpu->sm_count);
    if (status == JG_OK && t->args->dry_run) status = bench_gpu_retain(gpu);
    else if (status == JG_OK) status = sms && !gpu->software ? bench_gpu_start_narrow(gpu, sms) : bench_gpu_start(gpu);
    return status == JG_OK ? TUNE_EXIT_DONE : tune_fail(t, "the device: %s", jg_last_error());
}

/* The model's choices are what tuning begins with, so it looks at no recorded plan. */
static jg_options make_options(tune_state *t, const char *cache_path)
{
    const int sms = t->measure.gpu.narrow_sms ? t->measure.gpu.narrow_sms : t->args->sm_count;
    return (jg_options){.device = JG_DEVICE_CUDA, .compile = JG_COMPILE_WAIT, .plans = JG_PLANS_MODEL, .resident = JG_RESIDENT_NONE,
                        .sm_count = sms, .prewarm = JG_PREWARM_NO_MET, .cache_path = cache_path, .nvrtc_path = t->args->nvrtc_path, .log = on_log,
                        .log_user = t, .log_level = t->args->verbose ? JG_LOG_INFO : JG_LOG_WARNING};
}

/* A file that cannot be written is told of before minutes of measuring. */
static int check_file(tune_state *t)
{
    jg_cache *cache;
    if (!*t->stats.path) return tune_fail(t, "there is no cache file to record plans in; give a usable one with --cache FILE");
    if (jg_cache_open(t->stats.path, 1, &cache) != JG_OK) return tune_fail(t, "no plan can be recorded: %s", jg_last_error());
    jg_cache_close(cache);
    return TUNE_EXIT_DONE;
}

static void repair(tune_state *t)
{
    int repaired;
    const char *error = prewarm_repair(t->args->cache_path, &repaired);
    if (error) tune_fail(t, "the cache file is damaged and cannot be made anew: %s", error);
    if (repaired) tune_fail(t, "the cache file was damaged and is made anew; what it held, misses too, is lost");
}

static int open_kept(tune_state *t)
{
    const char *path = getenv("JITGEMM_DRIVER");
    if (path && strcmp(path, "cpu") == 0)
        return tune_fail(t, "--tune measures on the device, and JITGEMM_DRIVER=cpu says to use none; swgpu counts instructions");
    if (t->args->repair && !t->args->dry_run) repair(t);
    const jg_options options = make_options(t, t->args->dry_run ? "" : t->args->cache_path);
    const jg_status status = jg_open(&options, &t->measure.kept);
    if (status == JG_ERR_NO_DRIVER || status == JG_ERR_NO_DEVICE)
        return tune_fail(t, "--tune measures on the device, and there is none: %s (JITGEMM_DRIVER=swgpu counts instructions "
                         "instead)", jg_last_error());
    if (status != JG_OK || jg_cache_stats(t->measure.kept, &t->stats) != JG_OK)
        return tune_fail(t, "%s", jg_last_error());
    return t->args->dry_run ? TUNE_EXIT_DONE : check_file(t);
}

/* ---- the problems ---- */

/* Most counted first. Where there are none it says so: nothing else would show that the right file was looked into. */
static int add_misses(tune_state *t)
{
    prewarm_misses misses = {0};
    char target[16];
    size_t passed = 0;
    snprintf(target, sizeof target, "%.*s", (int)strcspn(t->stats.place, " "), t->stats.place);
    const char *error = prewarm_misses_read(&misses, t->args->cache_path, target);
    const int failed = !error && tune_list_add_texts(&t->list, "misses", misses.problems, misses.count, &passed) != 0;
    if (error && !t->args->quiet) progress_message(&t->progress, "jitgemm-prewarm: no misses for %s: %s", target, error);
    else if (misses.count == 0 && !t->args->quiet)
        progress_message(&t->progress, "jitgemm-prewarm: no misses for %s in %s", target, misses.path);
    if (passed) progress_message(&t->progress, "jitgemm-prewarm: warning: misses of another version, passed over: %zu", passed);
    prewarm_misses_free(&misses);
    return failed ? tune_fail(t, "%s", t->list.error) : TUNE_EXIT_DONE;
}

/* Which candidates of each are measured. What cannot be planned has failed. */
static int rank_all(tune_state *t)
{
    const prewarm_args *args = t->args;
    const size_t most = args->exhaustive ? 0 : args->candidates ? args->candidates : CANDIDATES;
    for (size_t i = 0; i < t->list.count; i++) {
        tune_problem *p = &t->list.problems[i];
        if (p->outcome != TUNE_LEFT) continue;
        const jg_status status = tune_rank_make(t->measure.kept, &p->product.problem, args->allow_new_bits, most, &p->rank);
        if (status == JG_ERR_NO_MEMORY || jg_status_is_fatal(status)) return tune_fail(t, "%s", jg_last_error());
        if (status != JG_OK) {
            p->outcome = TUNE_FAILED;
            snprintf(p->error, sizeof p->error, "%s", jg_last_error());
        } else if (p->rank.count == 0) p->outcome = TUNE_EMPTY;
        else if (t->measure.gpu.software && bench_layout_flops(&p->product.layout) > SOFTWARE_FLOPS) p->outcome = TUNE_TOO_LARGE;
    }
    return TUNE_EXIT_DONE;
}

/* What earlier runs have tuned; a file that is not there yet, or cannot be read, has nothing. */
static void find_known(tune_state *t)
{
    size_t shipped = 0;
    if (t->args->retune) return;
    tune_known_read(&t->list, t->measure.kept, t->args->dry_run ? t->args->cache_path : t->stats.path, t->stats.place, &t->known);
    if (*t->stats.factory) tune_known_read(&t->list, t->measure.kept, t->stats.factory, t->stats.place, &shipped);
    t->known += shipped;
}

int tune_prepare(tune_state *t)
{
    /* A part of the GPU is a CUDA context of its own, which the library has to find. */
    int status = t->args->sm_count ? open_gpu(t) : open_kept(t);
    if (status == TUNE_EXIT_DONE) status = t->args->sm_count ? open_kept(t) : open_gpu(t);
    if (status != TUNE_EXIT_DONE) return status;
    if (tune_list_add_sizes(&t->list, t->args, t->measure.gpu.software ? 0 : t->measure.gpu.l2_bytes) != 0)
        return tune_fail(t, "%s", t->list.error);
    if (t->args->from_misses) status = add_misses(t);
    if (status == TUNE_EXIT_DONE) status = rank_all(t);
    if (status == TUNE_EXIT_DONE) find_known(t);
    const int in_passes = t->args->budget_ms > 0;
    if (status == TUNE_EXIT_DONE && tune_steps_make(&t->list, in_passes ? FIRST_CANDIDATES : 0, &t->steps) != 0)
        return tune_fail(t, "out of memory");
    return status;
}

/* ---- what measuring needs ---- */

static int open_scratch(tune_state *t)
{
    char path[PATH_MAX + 16];
    const char *folder = tune_scratch_make();
    if (!folder) return tune_fail(t, "no temporary file can be made: %s; set TMPDIR to a folder with room", strerror(errno));
    snprintf(path, sizeof path, "%s/kernels.db", folder);
    jg_options options = make_options(t, path);
    options.factory_path = "";
    options.cache_max_bytes = SCRATCH_BYTES;
    options.memory_max_kernels = SCRATCH_KERNELS;
    if (jg_open(&options, &t->scratch) != JG_OK) return tune_fail(t, "%s", jg_last_error());
    t->measure.arena.context = t->scratch;
    t->measure.allow_new_bits = t->args->allow_new_bits;
    return TUNE_EXIT_DONE;
}

static int allocate(tune_state *t)
{
    const char *largest;
    if (tune_measure_open(&t->measure, &t->list, &largest) == JG_OK) return TUNE_EXIT_DONE;
    return largest ? tune_fail(t, "operands, of %s above all: %s", largest, jg_last_error()) : tune_fail(t, "%s", jg_last_error());
}

/* One a processor; one of several is left to what measures. */
static size_t thread_count(const tune_state *t)
{
    cpu_set_t allowed;
    if (t->args->jobs) return t->args->jobs;
    const int processors = sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed) : 1;
    return processors > 2 ? (size_t)processors - 1 : (size_t)processors;
}

int tune_begin(tune_state *t)
{
    int status = open_scratch(t);
    if (status == TUNE_EXIT_DONE) status = allocate(t);
    if (status != TUNE_EXIT_DONE) return status;
    if (tune_compile_start(&t->compile, t->scratch, t->steps.jobs, t->steps.job_count, t->steps.count, thread_count(t),
                           t->deadline_ms) != JG_OK)
        return tune_fail(t, "%s", jg_last_error());
    return TUNE_EXIT_DONE;
}

/* A context on a device that is lost cannot be closed cleanly, and that has been told. */
int tune_end(tune_state *t, int status)
{
    tune_compile_stop(&t->compile);
    tune_measure_close(&t->measure);
    if (jg_close(t->scratch) != JG_OK && !t->device_is_lost) status = tune_fail(t, "%s", jg_last_error());
    if (jg_close(t->measure.kept) != JG_OK && !t->device_is_lost) status = tune_fail(t, "%s", jg_last_error());
    bench_gpu_close(&t->measure.gpu);
    tune_scratch_remove();
    tune_steps_free(&t->steps);
    tune_list_free(&t->list);
    return status;
}
