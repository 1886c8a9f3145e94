/* jitgemm-prewarm: a list of problems in, a filled cache file out.
 *
 * It exists so that a pipeline never waits for a compiler: run it at boot, or on a build host without a GPU,
 * and ship the cache. The flow is: command line -> one context per architecture -> jg_prewarm with progress
 * -> a look into the cache file, whether everything really is in it -> the seal, if asked for -> report.
 * With --tune plans are measured too, and everything is done by tune_run.c.
 * See jitgemm-prewarm.1 for how it behaves, prewarm_args.c for the command line, prewarm_report.c for output. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jitgemm.h"
#include "kept_kernels.h"
#include "prewarm_args.h"
#include "prewarm_misses.h"
#include "prewarm_recorded.h"
#include "prewarm_repair.h"
#include "prewarm_report.h"
#include "progress.h"
#include "tune_run.h"

#define HURRIED_HELPER_MS 15e3 /* within a time budget, a compile helper that takes longer counts as hung */

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_INTERRUPTED = 130 };

/* Everything one run of the tool holds. */
typedef struct prewarm_run {
    prewarm_args args;
    report report;
    progress progress;
    double started_ms;
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

/* Whether the time of --budget is over. */
static int is_late(const prewarm_run *run)
{
    return run->args.budget_ms > 0 && progress_now_ms() - run->started_ms >= run->args.budget_ms;
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
    return run->out_of_memory || ((stop_requested || is_late(run)) && step->done < step->total);
}

/* ---- one architecture ---- */

static int print_error(const char *what)
{
    fprintf(stderr, "jitgemm-prewarm: %s\n", what);
    return EXIT_FAILED;
}

/* Opens a context for an architecture, or for this machine's GPU if arch is 0. Without a GPU it says for
 * what it compiles instead, because a cache for another chip than expected is found out too late.
 * A file for other machines, or to be a factory file, must not lean on the factory file of this one. The context is for
 * jg_prewarm alone, so it loads nothing by itself. */
static jg_status open_context(prewarm_run *run, int arch, const char *cache_path, jg_context **context)
{
    const prewarm_args *args = &run->args;
    jg_options options = {
        .device = arch ? JG_DEVICE_CPU : JG_DEVICE_CUDA, .arch = arch, .sm_count = args->sm_count,
        .compile = JG_COMPILE_WAIT, .resident = JG_RESIDENT_NONE, .prewarm = JG_PREWARM_NO_MET,
        .cache_path = cache_path, .factory_path = arch || args->seal ? "" : NULL, .nvrtc_path = args->nvrtc_path,
        .helper_timeout_ms = args->budget_ms > 0 ? HURRIED_HELPER_MS : 0,
        .log = on_log, .log_user = run, .log_level = args->verbose ? JG_LOG_INFO : JG_LOG_WARNING};
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
    memcpy(run->report.factory_path, stats.factory, sizeof stats.factory);
    return EXIT_DONE;
}

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

/* The target that the planner compiles for, which the library tells only in kernel names: on a GPU newer than its tables
 * it is not the device's own. Returns 0 with jg_last_error set on failure. */
static int find_target(jg_context *context, char *target, size_t size)
{
    char kernel[192];
    char *explanation = explain(context, &(jg_problem){.m = 1, .n = 1, .k = 1});
    if (!explanation) return 0;
    chosen_kernel(explanation, kernel, sizeof kernel);
    report_target(kernel, target, size);
    free(explanation);
    return 1;
}

/* Reads the misses that a context will take from a cache file. Where there are none it says so: nothing else would show
 * that the right file was looked into. */
static void find_misses(prewarm_run *run, jg_context *context, const char *path, prewarm_misses *misses)
{
    char target[16] = "";
    const char *error = NULL;
    if (!find_target(context, target, sizeof target)) error = jg_last_error();
    if (!error) error = prewarm_misses_read(misses, path, target);
    run->report.misses += misses->count;
    if (misses->count || run->args.quiet) return;
    if (error) progress_message(&run->progress, "jitgemm-prewarm: no misses for %s: %s", target, error);
    else progress_message(&run->progress, "jitgemm-prewarm: no misses for %s in %s", target, misses->path);
}

/* A prewarm that was stopped: by a signal, or as its time is over, which was asked for and so is no failure. */
static int report_stop(prewarm_run *run)
{
    const size_t left = run->total - run->done;
    run->report.left += left;
    run->report.interrupted = stop_requested != 0;
    if (!stop_requested) {
        if (!run->args.quiet)
            fprintf(stderr, "jitgemm-prewarm: time is over; %zu kernel%s left for the next run\n", left, left == 1 ? " is" : "s are");
        return EXIT_DONE;
    }
    fprintf(stderr, "jitgemm-prewarm: interrupted: %zu of %zu kernels are left; run again to go on\n", left, run->total);
    return EXIT_INTERRUPTED;
}

/* Compiles all sizes in an open context and reports on them. */
static int prewarm_sizes(prewarm_run *run, jg_context *context)
{
    const prewarm_args *args = &run->args;
    jg_prewarm_options options = {.jobs = args->jobs, .generic_set = (uint32_t)args->generic, .types = args->generic_types,
                                  .from_misses = (uint32_t)args->from_misses, .progress = on_progress, .user = run};
    size_t failed_before = run->report.failed, first = run->report.count;
    prewarm_misses misses = {0};
    run->done = run->total = 0;
    if (args->from_misses) find_misses(run, context, run->report.cache_path, &misses);
    prewarm_misses_free(&misses);
    jg_status status = jg_prewarm(context, args->sizes.items, args->sizes.count, &options, NULL);
    run->report.elapsed_ms += progress_end(&run->progress);
    report_failures(&run->report, first, stderr);

    if (run->out_of_memory) return print_error("out of memory");
    if (status == JG_ERR_CANCELLED) {
        int stopped = report_stop(run);
        return stopped == EXIT_DONE && run->report.failed > failed_before ? EXIT_FAILED : stopped;
    }
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
    jg_context *context;
    if (arch) snprintf(label, sizeof label, "sm_%d", arch);
    begin_progress(run, label);
    if (open_context(run, arch, run->args.cache_path, &context) != JG_OK) return print_error(jg_last_error());
    int status = find_cache_path(run, context);
    if (status == EXIT_DONE) status = prewarm_sizes(run, context);
    if (jg_close(context) != JG_OK) status = print_error(jg_last_error());
    return status;
}

/* ---- dry run ---- */

/* What the files hold that a real run would go by. */
typedef struct held {
    kept_kernels kept;
    prewarm_recorded recorded;
    jg_stats stats;
} held;

/* An empty problem gets no line, as it gets no kernel in a real run. A recorded plan goes before the model's choice. */
static int plan_size(prewarm_run *run, jg_context *context, const held *files, const jg_problem *problem)
{
    char text[JG_PROBLEM_TEXT_BYTES], kernel[192] = "";
    jg_problem_format(problem, text, sizeof text, NULL);
    char *explanation = explain(context, problem);
    const char *outcome = "failed", *error = explanation ? "" : jg_last_error();
    if (explanation) {
        const char *tuned = prewarm_recorded_find(&files->recorded, problem);
        chosen_kernel(explanation, kernel, sizeof kernel);
        if (tuned && *kernel) snprintf(kernel, sizeof kernel, "%s", tuned);
        outcome = kept_kernels_has(&files->kept, kernel) ? "cached" : "planned";
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

/* The same for the misses of the cache file. The library passes over one that is another version's, and so does this. */
static int plan_misses(prewarm_run *run, jg_context *context, const held *files)
{
    prewarm_misses misses = {0};
    int status = EXIT_DONE;
    find_misses(run, context, run->args.cache_path, &misses);
    for (size_t i = 0; i < misses.count && status == EXIT_DONE; i++) {
        jg_problem problem = {0};
        if (jg_problem_parse(misses.problems[i], &problem) == JG_OK) status = plan_size(run, context, files, &problem);
        else progress_message(&run->progress, "jitgemm-prewarm: warning: a miss is passed over: %s", jg_last_error());
    }
    prewarm_misses_free(&misses);
    return status;
}

/* What is in the cache file, and in the factory file if the context has one. */
static void read_held(prewarm_run *run, jg_context *context, held *files)
{
    jg_stats *stats = &files->stats;
    kept_kernels_read(&files->kept, run->args.cache_path);
    if (jg_cache_stats(context, stats) != JG_OK) return;
    prewarm_recorded_read(&files->recorded, run->args.cache_path, stats->place);
    if (!*stats->factory) return;
    kept_kernels_read(&files->kept, stats->factory);
    prewarm_recorded_read(&files->recorded, stats->factory, stats->place);
}

/* Says what a run for one architecture would make. Opens the cache only to read; one that is not there, or cannot be
 * read, holds nothing. */
static int plan_arch(prewarm_run *run, int arch)
{
    jg_context *context;
    held files = {0};
    size_t first = run->report.count, failed_before = run->report.failed;
    int status = EXIT_DONE;
    begin_progress(run, "");
    if (open_context(run, arch, "", &context) != JG_OK) return print_error(jg_last_error());
    read_held(run, context, &files);
    for (size_t i = 0; i < run->args.sizes.count && status == EXIT_DONE; i++)
        status = plan_size(run, context, &files, &run->args.sizes.items[i]);
    if (run->args.from_misses && status == EXIT_DONE) status = plan_misses(run, context, &files);
    kept_kernels_free(&files.kept);
    prewarm_recorded_free(&files.recorded);
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

/* A prewarm whose kernels did not reach the disk has failed, whatever the compiler said. It is looked into at the end, since
 * the kernels of one architecture may have driven out those of another. */
static int check_kept(prewarm_run *run)
{
    report *r = &run->report;
    size_t lost = 0;
    kept_kernels kept = {0};
    const char *error = kept_kernels_read(&kept, r->cache_path);
    if (error) return print_error(error);
    if (*r->factory_path) kept_kernels_read(&kept, r->factory_path);
    for (size_t i = 0; i < r->count; i++) {
        if (strcmp(r->rows[i].outcome, "failed") == 0) continue;
        lost += !kept_kernels_has(&kept, r->rows[i].kernel);
    }
    kept_kernels_free(&kept);
    if (lost == 0) return EXIT_DONE;
    fprintf(stderr, "jitgemm-prewarm: %s: kernels missing from the file: %zu; it is full or cannot be written\n",
            r->cache_path, lost);
    return EXIT_FAILED;
}

static int seal(prewarm_run *run)
{
    jg_cache *cache;
    const char *path = run->report.cache_path;
    if (jg_cache_open(path, 1, &cache) != JG_OK) return print_error(jg_last_error());
    run->report.sealed = jg_cache_seal(cache) == JG_OK;
    int status = run->report.sealed ? EXIT_DONE : print_error(jg_last_error());
    jg_cache_close(cache);
    if (run->report.sealed && !run->args.quiet) fprintf(run->args.json ? stderr : stdout, "sealed %s\n", path);
    return status;
}

/* Whether everything is in the file, and its seal. A file that lacks something gets none, so that it is not shipped, and a run that
 * was to seal it has failed. */
static int finish_file(prewarm_run *run, int status)
{
    if (!*run->report.cache_path) return status;
    if (check_kept(run) != EXIT_DONE && status == EXIT_DONE) status = EXIT_FAILED;
    if (!run->args.seal) return status;
    if (status == EXIT_DONE && !run->report.left && !run->report.archs_left) return seal(run);
    fprintf(stderr, "jitgemm-prewarm: %s is not sealed, for not everything is in it\n", run->report.cache_path);
    return status == EXIT_DONE ? EXIT_FAILED : status;
}

/* Says that `count` architectures are left. */
static int report_archs_left(prewarm_run *run, size_t count)
{
    run->report.archs_left = count;
    run->report.interrupted = stop_requested != 0;
    if (stop_requested || !run->args.quiet)
        fprintf(stderr, "jitgemm-prewarm: %s: architectures not begun: %zu; run again to go on\n",
                stop_requested ? "interrupted" : "time is over", count);
    return stop_requested ? EXIT_INTERRUPTED : EXIT_DONE;
}

static void repair(prewarm_run *run)
{
    const char *error = prewarm_repair(run->args.cache_path, &run->report.repaired);
    if (error) fprintf(stderr, "jitgemm-prewarm: the cache file is damaged and cannot be made anew: %s\n", error);
    if (run->report.repaired)
        fprintf(stderr, "jitgemm-prewarm: the cache file was damaged and is made anew; what it held, misses too, is lost\n");
}

/* Goes on to the next architecture after a failure, but not after an interrupt, nor when the time is over. */
static int run_all(prewarm_run *run)
{
    static const int own_device[] = {0};
    const prewarm_args *args = &run->args;
    const int *archs = args->arch_count ? args->archs : own_device;
    size_t count = args->arch_count ? args->arch_count : 1;
    int status = EXIT_DONE;
    run->report.takes_misses = args->from_misses;
    run->report.budget_ms = args->budget_ms;
    if (args->repair && !args->dry_run) repair(run);
    run->report.seals = args->seal && !args->dry_run;
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && (stop_requested || (is_late(run) && !args->dry_run))) {
            int stopped = report_archs_left(run, count - i);
            if (stopped != EXIT_DONE) status = stopped;
            break;
        }
        int arch_status = args->dry_run ? plan_arch(run, archs[i]) : prewarm_arch(run, archs[i]);
        if (arch_status != EXIT_DONE) status = arch_status;
    }
    if (args->dry_run && args->generic) note_generic_set(run);
    return args->dry_run ? status : finish_file(run, status);
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
    run.started_ms = progress_now_ms();
    int status = prewarm_args_parse(argc, argv, &run.args);
    if (status >= 0) return status == EXIT_DONE ? finish_output(status) : status;
    if (run.args.tune) {
        status = finish_output(tune_run(&run.args, run.started_ms));
        prewarm_args_free(&run.args);
        return status;
    }
    catch_stop_signals();
    status = write_result(&run, run_all(&run));
    report_free(&run.report);
    prewarm_args_free(&run.args);
    return status;
}
