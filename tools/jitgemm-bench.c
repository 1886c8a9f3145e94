/* jitgemm-bench: what the library promises in; what it does, beside its targets, cuBLAS and cuBLASLt, out.
 *
 * The flow is: command line (bench_args.c) -> the GPU (bench_gpu.c) -> one command after another, which measure and report as
 * they go (bench_products.c for suites, bench_plans.c for all of their plans, bench_compile.c, bench_memory.c, bench_first_call.c,
 * bench_neighbour.c, bench_dispatch.c, bench_cold_start.c) -> report (bench_report.c, bench_rows.c) -> page (bench_html.c). With --save or --against this program
 * starts itself several times instead (bench_drift.c). See jitgemm-bench.1 for how it behaves. */
#include "bench_baseline.h"
#include "bench_cold_child.h"
#include "bench_drift.h"
#include "bench_html.h"
#include "bench_memory_child.h"
#include "bench_run.h"
#include "options.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int (*const commands[BENCH_COMMANDS])(bench_run *run) = {
    [BENCH_FIRST_CALL] = bench_first_call, [BENCH_DISPATCH] = bench_dispatch, [BENCH_COLD_START] = bench_cold_start,
    [BENCH_PRODUCTS] = bench_products, [BENCH_PLANS] = bench_plans, [BENCH_COMPILE] = bench_compile,
    [BENCH_MEMORY] = bench_memory};

/* Checks that standard output took everything. Returns the exit status: `status`, or failed if that is good. */
static int finish_output(const bench_report *r, int status)
{
    const int lost = r->write_error || ferror(stdout);
    errno = 0;
    if (fclose(stdout) == 0 && !lost) return status;
    fprintf(stderr, "jitgemm-bench: standard output: %s\n", strerror(r->write_error ? r->write_error : errno ? errno : EIO));
    return status == BENCH_EXIT_DONE || status == BENCH_EXIT_MISSED ? BENCH_EXIT_FAILED : status;
}

static void begin_progress(bench_run *run)
{
    const char *terminal = getenv("TERM");
    const int can_erase = terminal && *terminal && strcmp(terminal, "dumb") != 0 && isatty(STDERR_FILENO);
    progress_begin(&run->progress, stderr, can_erase ? PROGRESS_BAR : PROGRESS_NONE, "");
}

/* Threads that are started later, also the library's and the driver's, stay on the same processors. */
static int pin(bench_run *run)
{
    if (!run->args.pinned || sched_setaffinity(0, sizeof run->args.cpus, &run->args.cpus) == 0) return BENCH_EXIT_DONE;
    bench_fail(run, "--cpus: %s", errno == EINVAL ? "none of these processors is there, or allowed" : strerror(errno));
    return BENCH_EXIT_USAGE;
}

/* Memory can be looked at on the cpu device too, where nothing else is. */
static int needs_no_gpu(const bench_args *args)
{
    return args->command_count == 1 && args->commands[0] == BENCH_MEMORY && strcmp(options_driver_path(args->driver_path), "cpu") == 0;
}

static int open_gpu(bench_run *run)
{
    if (needs_no_gpu(&run->args)) {
        run->gpu = (bench_gpu){.name = "no GPU", .arch = OPTIONS_CPU_ARCH};
        return BENCH_EXIT_DONE;
    }
    if (bench_gpu_open(run->args.driver_path, &run->gpu) == JG_OK) return BENCH_EXIT_DONE;
    progress_message(&run->progress, "jitgemm-bench: %s", jg_last_error());
    return BENCH_EXIT_FAILED;
}

/* Writes what was measured, also when that was cut short. `drift` may be null; it is taken. */
static int write_results(bench_run *run, cJSON *drift, int status)
{
    char why[1200];
    cJSON *document = bench_report_take(&run->report);
    if (drift && !document) document = cJSON_CreateObject();
    if (drift && (!document || !cJSON_AddItemToObject(document, "drift", drift))) {
        cJSON_Delete(drift);
        status = bench_fail(run, "out of memory");
    }
    if (run->report.began && !document) status = bench_fail(run, "out of memory");
    if (document && bench_report_print(&run->report, document) != 0) status = bench_fail(run, "out of memory");
    if (document && run->args.html_path && bench_html_write(run->args.html_path, document, why, sizeof why) != 0)
        status = bench_fail(run, "--html: %s", why);
    cJSON_Delete(document);
    return status;
}

/* The GPU, and what can be told to be wrong before minutes of measuring. */
static int begin(bench_run *run)
{
    char why[1024];
    int status = open_gpu(run);
    if (status != BENCH_EXIT_DONE) return status;
    bench_args_resolve(&run->args, run->gpu.software);
    status = bench_check_gpu(run);
    for (size_t i = 0; i < run->args.command_count && status == BENCH_EXIT_DONE; i++)
        if (run->args.commands[i] == BENCH_PRODUCTS || run->args.commands[i] == BENCH_PLANS) status = bench_products_check(run);
    if (status == BENCH_EXIT_DONE && run->args.html_path && bench_baseline_check_path(run->args.html_path, why, sizeof why) != 0)
        status = bench_fail(run, "--html: %s", why);
    if (status != BENCH_EXIT_DONE) bench_clean_up(run);
    return status;
}

static int run_commands(bench_run *run)
{
    int status = begin(run);
    if (status != BENCH_EXIT_DONE) return status;
    for (size_t i = 0; i < run->args.command_count && status == BENCH_EXIT_DONE && !bench_stop_requested(); i++) {
        if (run->report.write_error) break; /* nobody reads it */
        if (i > 0) status = open_gpu(run);
        bench_report_command(&run->report, bench_args_title(&run->args, run->args.commands[i]));
        if (status == BENCH_EXIT_DONE) status = commands[run->args.commands[i]](run);
        bench_clean_up(run);
    }
    if (bench_stop_requested() && status == BENCH_EXIT_DONE) status = BENCH_EXIT_INTERRUPTED;
    run->report.interrupted = status == BENCH_EXIT_INTERRUPTED;
    if (run->report.interrupted) {
        fputs("jitgemm-bench: interrupted; the results are of what was finished\n", stderr);
        if (run->report.began && run->report.format != BENCH_JSON)
            bench_report_note(&run->report, "Interrupted: the results are of what was finished.");
    }
    status = write_results(run, NULL, status);
    return status == BENCH_EXIT_DONE && run->args.check && run->report.missed ? BENCH_EXIT_MISSED : status;
}

/* --save, --against: this program again and again, with one cache file for all. */
static int run_processes(bench_run *run, const char *program)
{
    cJSON *drift = NULL;
    int status = begin(run);
    if (status != BENCH_EXIT_DONE) return status;
    status = bench_prepare_cache(run);
    for (size_t i = 0; i < run->args.command_count; i++)
        bench_report_command(&run->report, bench_args_title(&run->args, run->args.commands[i]));
    run->report.command = run->args.titles; /* one heading for all */
    if (run->report.format != BENCH_CSV) bench_begin_report(run); /* CSV has the drift's own lines only */
    const char **argv = bench_args_for_process(&run->args, program, run->cache_path);
    if (!argv) status = bench_fail(run, "out of memory");
    if (status == BENCH_EXIT_DONE) {
        const bench_drift_options options = {.save_path = run->args.save_path, .against_path = run->args.against_path,
                                             .child_argv = (char *const *)argv, .runs = (size_t)run->args.processes,
                                             .percent = (double)run->args.percent};
        status = bench_drift(run, &options, &drift);
    }
    free(argv);
    bench_clean_up(run);
    return write_results(run, drift, status);
}

int main(int argc, char **argv)
{
    static bench_run run;
    const int64_t main_ns = bench_now_ns();
    if (argc > 1 && strcmp(argv[1], COLD_COMMAND) == 0) return cold_child_main(argc, argv, main_ns);
    if (argc > 1 && strcmp(argv[1], MEMORY_COMMAND) == 0) return memory_child_main(argc, argv);
    int status = bench_args_parse(argc, argv, &run.args);
    if (status >= 0) return status == BENCH_EXIT_DONE ? finish_output(&run.report, status) : status;
    run.report = (bench_report){.format = run.args.format};
    begin_progress(&run);
    signal(SIGPIPE, SIG_IGN); /* a reader that is gone is an error of writing, after which there is still something to clean up */
    if (run.args.commands[0] == BENCH_PLANNER) return finish_output(&run.report, bench_planner(&run));
    status = pin(&run);
    if (status == BENCH_EXIT_DONE && bench_catch_stop_signals() != 0) status = bench_fail(&run, "no thread can be started");
    if (status == BENCH_EXIT_DONE)
        status = run.args.save_path || run.args.against_path ? run_processes(&run, argv[0]) : run_commands(&run);
    if (status == BENCH_EXIT_USAGE) return status;
    status = finish_output(&run.report, status);
    /* What ended early may have left a compile under way, beside which exit handlers, NVRTC's among them, should not run. */
    if (status == BENCH_EXIT_FAILED || status == BENCH_EXIT_INTERRUPTED) _exit(status);
    return status;
}
