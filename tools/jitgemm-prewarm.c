/* jitgemm-prewarm: a list of problems in, a filled cache file out.
 *
 * It exists so that a pipeline never waits for a compiler: run it at boot, or on a build host without a GPU,
 * and ship the cache. The flow is: command line -> one context per architecture -> jg_prewarm with progress
 * -> a look into the cache file, whether everything really is in it -> report.
 * See jitgemm-prewarm.1 for how it behaves, prewarm_args.c for the command line, prewarm_report.c for output. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jitgemm.h"
#include "kept_kernels.h"
#include "prewarm_args.h"
#include "prewarm_report.h"
#include "progress.h"

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_INTERRUPTED = 130 };

/* Everything one run of the tool holds. */
typedef struct prewarm_run {
    prewarm_args args;
    report report;
    progress progress;
    size_t done, total;   /* of the architecture at work */
    int stop_was_told;
    int out_of_memory;
} prewarm_run;

/* ---- interrupts: the first one stops after the running compiles, the second one at once ---- */

static volatile sig_atomic_t stop_requested;

static void on_stop_signal(int number)
{
    (void)number;
    if (stop_requested) _exit(EXIT_INTERRUPTED);
    stop_requested = 1;
}

static void catch_stop_signals(void)
{
    struct sigaction action = {.sa_handler = on_stop_signal, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

/* ---- callbacks from the library ---- */

static void on_log(void *user, jg_log_level level, const char *text)
{
    static const char *const names[] = {[JG_LOG_ERROR] = "error", [JG_LOG_WARNING] = "warning", [JG_LOG_INFO] = "info",
                                        [JG_LOG_DEBUG] = "debug"};
    prewarm_run *run = user;
    progress_message(&run->progress, "jitgemm-prewarm: %s: %s", names[level], text);
}

static int on_progress(void *user, const jg_progress *step)
{
    prewarm_run *run = user;
    run->done = step->done;
    run->total = step->total;
    run->report.compiled += step->outcome == JG_COMPILED;
    run->report.cached += step->outcome == JG_CACHED;
    run->report.failed += step->outcome == JG_FAILED;
    if (!report_add(&run->report, progress_outcome_name(step->outcome), step->problem, step->kernel, step->error,
                    step->ms))
        run->out_of_memory = 1;
    progress_step(&run->progress, step);
    if (stop_requested && !run->stop_was_told && step->done < step->total) {
        run->stop_was_told = 1;
        progress_message(&run->progress, "jitgemm-prewarm: stopping after the kernels at work; "
                                         "interrupt again to exit at once");
    }
    return run->out_of_memory || (stop_requested && step->done < step->total);
}

/* ---- one architecture ---- */

static int print_error(const char *what)
{
    fprintf(stderr, "jitgemm-prewarm: %s\n", what);
    return EXIT_FAILED;
}

/* Opens a context for an architecture, or for this machine's GPU if arch is 0. Without a GPU it says for
 * what it compiles instead, because a cache for another chip than expected is found out too late. */
static jg_status open_context(prewarm_run *run, int arch, const char *cache_path, jg_context **context)
{
    const prewarm_args *args = &run->args;
    jg_options options = {
        .compile = JG_COMPILE_WAIT,
        .device = arch ? JG_DEVICE_CPU : JG_DEVICE_CUDA, .arch = arch, .sm_count = args->sm_count,
        .cache_path = cache_path, .nvrtc_path = args->nvrtc_path, .log = on_log, .log_user = run,
        .log_level = args->verbose ? JG_LOG_INFO : JG_LOG_WARNING};
    jg_status status = jg_open(&options, context);
    if (status == JG_ERR_NO_DRIVER || status == JG_ERR_NO_DEVICE) {
        if (!args->quiet)
            progress_message(&run->progress, "jitgemm-prewarm: no GPU here: compiling for sm_87; --arch names another");
        options.device = JG_DEVICE_CPU;
        status = jg_open(&options, context);
    }
    return status;
}

static int find_cache_path(prewarm_run *run, jg_context *context)
{
    jg_stats stats;
    if (jg_cache_stats(context, &stats) != JG_OK) return print_error(jg_last_error());
    if (!*stats.path) return print_error("there is no cache file to fill; give a usable one with --cache FILE");
    memcpy(run->report.cache_path, stats.path, sizeof stats.path);
    return EXIT_DONE;
}

/* A prewarm whose kernels did not reach the disk has failed, whatever the compiler said. Looks for the rows
 * from `first` on in the cache file. */
static int check_kept(prewarm_run *run, size_t first)
{
    report *r = &run->report;
    size_t lost = 0;
    kept_kernels kept = {0};
    const char *error = kept_kernels_read(&kept, r->cache_path);
    if (error) return print_error(error);
    for (size_t i = first; i < r->count; i++) {
        if (strcmp(r->rows[i].outcome, "failed") == 0) continue;
        lost += !kept_kernels_has(&kept, r->rows[i].kernel);
    }
    kept_kernels_free(&kept);
    if (lost == 0) return EXIT_DONE;
    fprintf(stderr, "jitgemm-prewarm: %s: kernels missing from the file: %zu; it is full or cannot be written\n",
            r->cache_path, lost);
    return EXIT_FAILED;
}

static int report_interrupt(prewarm_run *run)
{
    run->report.interrupted = 1;
    fprintf(stderr, "jitgemm-prewarm: interrupted: %zu of %zu kernels are left; run again to go on\n",
            run->total - run->done, run->total);
    return EXIT_INTERRUPTED;
}

/* Compiles all sizes in an open context and reports on them. */
static int prewarm_sizes(prewarm_run *run, jg_context *context)
{
    const prewarm_args *args = &run->args;
    jg_prewarm_options options = {.jobs = args->jobs, .generic_set = (uint32_t)args->generic,
                                  .progress = on_progress, .user = run};
    size_t failed_before = run->report.failed, first = run->report.count;
    run->done = run->total = 0;
    jg_status status = jg_prewarm(context, args->sizes.items, args->sizes.count, &options, NULL);
    run->report.elapsed_ms += progress_end(&run->progress);
    report_failures(&run->report, first, stderr);

    if (run->out_of_memory) return print_error("out of memory");
    if (status == JG_ERR_CANCELLED) return report_interrupt(run);
    if (status == JG_OK) return EXIT_DONE;
    if (run->report.failed == failed_before) return print_error(jg_last_error()); /* failed as a whole */
    fprintf(stderr, "jitgemm-prewarm: kernels that failed: %zu, the first with %s\n",
            run->report.failed - failed_before, jg_status_name(status));
    return EXIT_FAILED;
}

static void begin_progress(prewarm_run *run, const char *label)
{
    const prewarm_args *args = &run->args;
    progress_mode mode = args->quiet ? PROGRESS_NONE : args->verbose ? PROGRESS_LINES : PROGRESS_AUTO;
    progress_begin(&run->progress, args->json ? stderr : stdout, mode, label);
}

static int prewarm_arch(prewarm_run *run, int arch)
{
    char label[32] = "";
    size_t first = run->report.count;
    jg_context *context;
    if (arch) snprintf(label, sizeof label, "sm_%d", arch);
    begin_progress(run, label);
    if (open_context(run, arch, run->args.cache_path, &context) != JG_OK) return print_error(jg_last_error());
    int usable = find_cache_path(run, context) == EXIT_DONE;
    int status = usable ? prewarm_sizes(run, context) : EXIT_FAILED;
    if (jg_close(context) != JG_OK) status = print_error(jg_last_error());
    if (usable && check_kept(run, first) != EXIT_DONE && status == EXIT_DONE) status = EXIT_FAILED;
    return status;
}

/* ---- dry run ---- */

/* The text of jg_plan_explain; the caller's to free. Null on error, with jg_last_error set. */
static char *explain(jg_context *context, const jg_problem *problem)
{
    size_t length = 0;
    if (jg_plan_explain(context, problem, NULL, 0, &length) != JG_OK) return NULL;
    char *text = malloc(length + 1);
    if (text && jg_plan_explain(context, problem, text, length + 1, NULL) != JG_OK) {
        free(text);
        return NULL;
    }
    return text;
}

/* The kernel that an explanation chose: the first word that is a kernel name; "" if there is nothing to compute. */
static void chosen_kernel(const char *explanation, char *kernel, size_t size)
{
    const char *name = strstr(explanation, "jg_sm");
    int length = name ? (int)strcspn(name, " \t\n,:;") : 0;
    snprintf(kernel, size, "%.*s", length, name ? name : "");
}

/* An empty problem gets no line, as it gets no kernel in a real run. */
static int plan_size(prewarm_run *run, jg_context *context, const kept_kernels *kept, const jg_problem *problem)
{
    char text[256], kernel[192] = "";
    jg_problem_format(problem, text, sizeof text, NULL);
    char *explanation = explain(context, problem);
    const char *outcome = "failed", *error = explanation ? "" : jg_last_error();
    if (explanation) {
        chosen_kernel(explanation, kernel, sizeof kernel);
        outcome = kept_kernels_has(kept, kernel) ? "cached" : "planned";
    }
    if (explanation && !*kernel) {
        free(explanation);
        return EXIT_DONE;
    }
    run->report.failed += !explanation;
    FILE *stream = run->args.json ? stderr : stdout;
    if (!run->args.quiet) fprintf(stream, "%-8s %s  %s\n", outcome, text, kernel);
    if (run->args.verbose && explanation) fprintf(stream, "%s\n", explanation);
    int added = report_add(&run->report, outcome, text, kernel, error, 0) != NULL;
    free(explanation);
    return added ? EXIT_DONE : print_error("out of memory");
}

/* Says what a run for one architecture would make. Opens the cache only to read; one that is not there, or cannot be
 * read, holds nothing. */
static int plan_arch(prewarm_run *run, int arch)
{
    jg_context *context;
    kept_kernels kept = {0};
    size_t first = run->report.count, failed_before = run->report.failed;
    int status = EXIT_DONE;
    begin_progress(run, "");
    if (open_context(run, arch, "", &context) != JG_OK) return print_error(jg_last_error());
    kept_kernels_read(&kept, run->args.cache_path);
    for (size_t i = 0; i < run->args.sizes.count && status == EXIT_DONE; i++)
        status = plan_size(run, context, &kept, &run->args.sizes.items[i]);
    kept_kernels_free(&kept);
    jg_close(context);
    report_failures(&run->report, first, stderr);
    run->report.elapsed_ms += progress_end(&run->progress);
    return run->report.failed > failed_before ? EXIT_FAILED : status;
}

/* No call of the library lists the generic set without making it, so a dry run can only say that it is left out. */
static void note_generic_set(prewarm_run *run)
{
    run->report.generic_set = "not listed by --dry-run";
    if (!run->args.quiet) fprintf(run->args.json ? stderr : stdout, "generic set: %s\n", run->report.generic_set);
}

/* ---- the run ---- */

/* Goes on to the next architecture after a failure, but not after an interrupt. */
static int run_all(prewarm_run *run)
{
    static const int own_device[] = {0};
    const prewarm_args *args = &run->args;
    const int *archs = args->arch_count ? args->archs : own_device;
    size_t count = args->arch_count ? args->arch_count : 1;
    int status = EXIT_DONE;
    for (size_t i = 0; i < count && status != EXIT_INTERRUPTED; i++) {
        if (stop_requested && i > 0) {
            fprintf(stderr, "jitgemm-prewarm: interrupted: %zu architectures are left; run again to go on\n",
                    count - i);
            run->report.interrupted = 1;
            return EXIT_INTERRUPTED;
        }
        int arch_status = args->dry_run ? plan_arch(run, archs[i]) : prewarm_arch(run, archs[i]);
        if (arch_status != EXIT_DONE) status = arch_status;
    }
    if (args->dry_run && args->generic) note_generic_set(run);
    return status;
}

/* Checks that standard output took everything. Returns the exit status: `status`, or failed if that is done. */
static int finish_output(int status)
{
    errno = 0;
    int lost = ferror(stdout);
    lost |= fclose(stdout) != 0;
    if (!lost) return status;
    fprintf(stderr, "jitgemm-prewarm: standard output: %s\n", strerror(errno ? errno : EIO));
    return status == EXIT_DONE ? EXIT_FAILED : status;
}

/* The last line is always written; with --json standard output belongs to the object alone. */
static int write_result(const prewarm_run *run, int status)
{
    if (run->args.json && report_json(&run->report, stdout) != 0) status = print_error("out of memory");
    report_last_line(&run->report, run->args.json ? stderr : stdout);
    return finish_output(status);
}

int main(int argc, char **argv)
{
    static prewarm_run run;
    int status = prewarm_args_parse(argc, argv, &run.args);
    if (status >= 0) return status == EXIT_DONE ? finish_output(status) : status;
    catch_stop_signals();
    status = write_result(&run, run_all(&run));
    report_free(&run.report);
    prewarm_args_free(&run.args);
    return status;
}
