/* What the commands of jitgemm-bench share: see bench_run.h. */
#include "bench_run.h"

#include "bench_machine.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ORIN_ARCH 87

/* ---- interrupts ---- */

static atomic_int stop_requested;

/* Waits for signals that all threads block. A handler would not do: NVRTC puts one of its own in its place while it first
 * compiles, which ends the process with status 0. Nor is a thread that is measured disturbed this way. */
static void *wait_for_stop(void *user)
{
    int number;
    while (sigwait(user, &number) == 0)
        if (atomic_exchange(&stop_requested, 1)) _exit(BENCH_EXIT_INTERRUPTED);
    return NULL;
}

int bench_catch_stop_signals(void)
{
    static sigset_t stops;
    pthread_t thread;
    sigemptyset(&stops);
    sigaddset(&stops, SIGINT);
    sigaddset(&stops, SIGTERM);
    signal(SIGINT, SIG_DFL); /* a shell may have started this with SIGINT ignored */
    pthread_sigmask(SIG_BLOCK, &stops, NULL);
    if (pthread_create(&thread, NULL, wait_for_stop, &stops) != 0) return -1;
    pthread_detach(thread);
    return 0;
}

int bench_stop_requested(void)
{
    return atomic_load(&stop_requested);
}

/* ---- errors, messages, progress ---- */

int bench_fail(bench_run *run, const char *format, ...)
{
    char text[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    progress_message(&run->progress, "jitgemm-bench: %s", text);
    return BENCH_EXIT_FAILED;
}

int bench_fail_status(bench_run *run, const char *what)
{
    return bench_fail(run, "%s: %s", what, jg_last_error());
}

void bench_show_progress(bench_run *run, const char *phase, size_t done, size_t total)
{
    progress_step(&run->progress, &(jg_progress){.done = done, .total = total, .problem = phase, .kernel = ""});
    if (done == total) progress_end(&run->progress);
}

void bench_on_log(void *user, jg_log_level level, const char *text)
{
    bench_run *run = user;
    progress_message(&run->progress, "jitgemm-bench: %s: %s", level == JG_LOG_ERROR ? "error" : "warning", text);
}

/* ---- the GPU ---- */

int bench_check_gpu(bench_run *run)
{
    if (run->args.sms > run->gpu.sm_count)
        return bench_fail(run, "--sms %ld: this GPU has %d multiprocessors", run->args.sms, run->gpu.sm_count);
    if (run->args.as_arch <= run->gpu.arch) return BENCH_EXIT_DONE;
    return bench_fail(run, "--as-arch %ld: this GPU is sm_%d, which runs kernels of its own and of older architectures only",
                      run->args.as_arch, run->gpu.arch);
}

int bench_start_gpu(bench_run *run)
{
    const int sms = (int)run->args.sms;
    if (bench_check_gpu(run) != BENCH_EXIT_DONE) return BENCH_EXIT_FAILED;
    if (sms && bench_gpu_start_narrow(&run->gpu, sms) == JG_OK) return BENCH_EXIT_DONE;
    if (sms)
        progress_message(&run->progress, "jitgemm-bench: Planned for %d multiprocessors, but run on all %d: %s", sms,
                         run->gpu.sm_count, jg_last_error());
    return bench_gpu_start(&run->gpu) == JG_OK ? BENCH_EXIT_DONE : bench_fail_status(run, "the CUDA context");
}

int bench_planned_arch(const bench_run *run)
{
    if (run->args.as_arch >= 0) return (int)run->args.as_arch;
    return run->args.sms && run->gpu.arch > ORIN_ARCH ? ORIN_ARCH : 0;
}

int bench_planned_sms(const bench_run *run)
{
    return run->gpu.narrow_sms ? run->gpu.narrow_sms : (int)run->args.sms;
}

/* ---- the cache file ---- */

int bench_prepare_cache(bench_run *run)
{
    if (run->args.cache_path) {
        snprintf(run->cache_path, sizeof run->cache_path, "%s", run->args.cache_path);
        return BENCH_EXIT_DONE;
    }
    const char *folder = getenv("TMPDIR");
    if (!folder || !*folder) folder = "/tmp";
    const int length = snprintf(run->scratch, sizeof run->scratch, "%s/jitgemm-bench-XXXXXX", folder);
    errno = ENAMETOOLONG;
    if ((size_t)length >= sizeof run->scratch || !mkdtemp(run->scratch)) {
        run->scratch[0] = 0;
        return bench_fail(run, "no temporary cache file can be made in %s: %s; give one with --cache", folder, strerror(errno));
    }
    snprintf(run->cache_path, sizeof run->cache_path, "%s/kernels.db", run->scratch);
    return BENCH_EXIT_DONE;
}

/* The database may have files beside it. */
static void remove_scratch(const char *folder)
{
    DIR *list = opendir(folder);
    for (struct dirent *entry; list && (entry = readdir(list));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) unlinkat(dirfd(list), entry->d_name, 0);
    if (list) closedir(list);
    rmdir(folder);
}

static int on_fill_progress(void *user, const jg_progress *step)
{
    bench_run *run = user;
    bench_show_progress(run, "filling the cache", step->done, step->total);
    return bench_stop_requested();
}

int bench_fill_cache(bench_run *run, const jg_problem *also)
{
    if (!run->args.fill && !run->scratch[0]) return BENCH_EXIT_DONE;
    const jg_options options = {.device = JG_DEVICE_CUDA, .compile = JG_COMPILE_WAIT, .resident = JG_RESIDENT_NONE,
                                .prewarm = JG_PREWARM_NO_MET, .cache_path = run->cache_path, .nvrtc_path = run->args.nvrtc_path,
                                .driver_path = run->args.driver_path, .arch = bench_planned_arch(run),
                                .sm_count = bench_planned_sms(run), .log = bench_on_log, .log_user = run};
    const jg_prewarm_options how = {.generic_set = 1, .types = JG_RESIDENT_F32 | JG_RESIDENT_F16, .progress = on_fill_progress,
                                    .user = run};
    jg_context *context;
    if (jg_open(&options, &context) != JG_OK) return bench_fail_status(run, "opening a context to fill the cache");
    jg_status status = jg_prewarm(context, also, also ? 1 : 0, &how, NULL);
    progress_end(&run->progress);
    int result = BENCH_EXIT_DONE;
    if (status == JG_ERR_CANCELLED) result = BENCH_EXIT_INTERRUPTED;
    else if (status != JG_OK) result = bench_fail_status(run, "filling the cache");
    if (jg_close(context) != JG_OK && result == BENCH_EXIT_DONE) result = bench_fail_status(run, "closing a context");
    return result;
}

/* ---- the library ---- */

int bench_open_library(bench_run *run, const jg_worker_options *worker, double *ms)
{
    jg_options options = {.device = JG_DEVICE_CUDA, .compile = JG_COMPILE_BACKGROUND, .prewarm = JG_PREWARM_NO_MET,
                          .cache_path = run->cache_path, .nvrtc_path = run->args.nvrtc_path, .driver_path = run->args.driver_path,
                          .arch = bench_planned_arch(run), .sm_count = bench_planned_sms(run), .log = bench_on_log,
                          .log_user = run};
    if (worker) options.worker = *worker;
    const int64_t before_ns = bench_now_ns();
    if (jg_open(&options, &run->context) != JG_OK) {
        run->context = NULL;
        return bench_fail_status(run, "jg_open");
    }
    *ms = (double)(bench_now_ns() - before_ns) * 1e-6;
    return BENCH_EXIT_DONE;
}

void bench_close_library(bench_run *run)
{
    if (run->context && jg_close(run->context) != JG_OK) bench_fail_status(run, "jg_close");
    run->context = NULL;
}

jg_stats bench_stats_now(bench_run *run)
{
    jg_stats stats = {0};
    if (run->context) jg_cache_stats(run->context, &stats);
    return stats;
}

/* ---- the report's heading ---- */

/* The first words of a kernel's provenance, "NVRTC 13.0 ...". */
static int take_compiler(void *user, const jg_cache_entry *entry)
{
    char *text = user;
    const char *end = strchr(entry->provenance, ' ');
    if (end) end = strchr(end + 1, ' ');
    const size_t length = end ? (size_t)(end - entry->provenance) : strlen(entry->provenance);
    snprintf(text, sizeof ((bench_environment *)0)->compiler, "%.*s", (int)length, entry->provenance);
    return 1;
}

static void find_compiler(const char *path, char *text)
{
    jg_cache *cache;
    if (*text || !*path || access(path, R_OK) != 0 || jg_cache_open(path, 0, &cache) != JG_OK) return;
    jg_cache_list(cache, take_compiler, text);
    jg_cache_close(cache);
}

/* What else decides times. */
static void add_machine(bench_run *run)
{
    bench_machine machine = {0};
    cJSON *facts = cJSON_CreateObject();
    const cJSON *fact;
    bench_machine_open(&machine, run->gpu.pci_bus_id);
    if (!facts || bench_machine_describe(&machine, facts) != 0) run->report.out_of_memory = 1;
    bench_machine_close(&machine);
    cJSON_ArrayForEach(fact, facts)
    {
        if (cJSON_IsString(fact)) bench_report_fact(&run->report, fact->string, fact->valuestring);
        else if (cJSON_IsBool(fact)) bench_report_fact_flag(&run->report, fact->string, cJSON_IsTrue(fact));
        else bench_report_fact_number(&run->report, fact->string, fact->valuedouble);
    }
    cJSON_Delete(facts);
}

/* On what part of the GPU, and for what chip. */
static void add_part(bench_run *run)
{
    bench_report *r = &run->report;
    const int arch = bench_planned_arch(run) ? bench_planned_arch(run) : run->gpu.arch;
    const char *how = run->gpu.narrow_sms ? "Run in a green context of" : run->args.sms == 0 ? "Run on"
                      : run->gpu.context ? "No green context here: planned for" : "Planned for";
    char text[sizeof run->part];
    if (run->args.sms == 0 && arch == run->gpu.arch) return;
    bench_report_fact_number(r, "as_arch", arch);
    if (run->args.sms) bench_report_fact_number(r, "sms", (double)run->args.sms);
    snprintf(text, sizeof text, "%s %d of %d multiprocessors; planned as for sm_%d.", how,
             run->args.sms ? bench_planned_sms(run) : run->gpu.sm_count, run->gpu.sm_count, arch);
    if (strcmp(text, run->part) != 0) bench_report_note(r, text);
    memcpy(run->part, text, sizeof text);
}

void bench_begin_report(bench_run *run)
{
    cpu_set_t allowed;
    bench_environment e = {.arch = run->gpu.arch, .driver_version = run->gpu.driver ? run->gpu.driver->version : 0,
                           .software = run->gpu.software, .processors = (int)sysconf(_SC_NPROCESSORS_ONLN)};
    snprintf(e.device, sizeof e.device, "%s", run->gpu.name);
    e.allowed = sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed) : e.processors;
    find_compiler(run->cache_path, e.compiler);
    find_compiler(bench_stats_now(run).factory, e.compiler);
    if (!run->report.began) {
        bench_report_begin(&run->report, &e);
        bench_report_fact_number(&run->report, "sm_count", run->gpu.sm_count);
        add_machine(run);
    }
    add_part(run);
}

void bench_clean_up(bench_run *run)
{
    bench_close_library(run);
    bench_gpu_close(&run->gpu);
    if (run->scratch[0]) remove_scratch(run->scratch);
    run->scratch[0] = run->cache_path[0] = 0;
    progress_end(&run->progress);
}
