/* jitgemm-bench: what the library promises in; what it does, beside its targets and beside cuBLAS, out.
 *
 * The flow is: command line (bench_args.c) -> the GPU (bench_gpu.c) -> one command, which measures and reports as it goes
 * (bench_first_call.c, bench_neighbour.c, bench_dispatch.c, bench_cold_start.c) -> report (bench_report.c).
 * See jitgemm-bench.1 for how it behaves. */
#include "bench_cold_child.h"
#include "bench_run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int (*const commands[BENCH_COMMANDS])(bench_run *run) = {
    [BENCH_FIRST_CALL] = bench_first_call, [BENCH_DISPATCH] = bench_dispatch, [BENCH_COLD_START] = bench_cold_start};

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

static int run_command(bench_run *run)
{
    if (bench_gpu_open(run->args.driver_path, &run->gpu) != JG_OK) {
        progress_message(&run->progress, "jitgemm-bench: %s", jg_last_error());
        return BENCH_EXIT_FAILED;
    }
    bench_args_resolve(&run->args, run->gpu.software);
    int status = commands[run->args.command](run);
    if (bench_stop_requested() && status == BENCH_EXIT_DONE) status = BENCH_EXIT_INTERRUPTED;
    bench_clean_up(run);
    run->report.interrupted = status == BENCH_EXIT_INTERRUPTED;
    if (run->report.interrupted) fputs("jitgemm-bench: interrupted; the results are of what was finished\n", stderr);
    if (bench_report_end(&run->report) != 0) status = bench_fail(run, "out of memory");
    return status == BENCH_EXIT_DONE && run->args.check && run->report.missed ? BENCH_EXIT_MISSED : status;
}

int main(int argc, char **argv)
{
    static bench_run run;
    const int64_t main_ns = bench_now_ns();
    if (argc > 1 && strcmp(argv[1], COLD_COMMAND) == 0) return cold_child_main(argc, argv, main_ns);
    int status = bench_args_parse(argc, argv, &run.args);
    if (status >= 0) return status == BENCH_EXIT_DONE ? finish_output(&run.report, status) : status;
    run.report = (bench_report){.format = run.args.format, .command = run.args.command};
    begin_progress(&run);
    status = pin(&run);
    if (status == BENCH_EXIT_DONE && bench_catch_stop_signals() != 0) status = bench_fail(&run, "no thread can be started");
    if (status == BENCH_EXIT_DONE) status = run_command(&run);
    if (status == BENCH_EXIT_USAGE) return status;
    status = finish_output(&run.report, status);
    /* What ended early may have left a compile under way, beside which exit handlers, NVRTC's among them, should not run. */
    if (status == BENCH_EXIT_FAILED || status == BENCH_EXIT_INTERRUPTED) _exit(status);
    return status;
}
