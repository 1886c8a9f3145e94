/* jitgemm-swgpu: problems in; what their kernels do on the software GPU, and what its checks find, out.
 *
 * It exists so that a kernel can be judged where there is no GPU: by its instructions, its memory traffic, its bank
 * conflicts, and its mistakes. The flow is: command line (counters_args.c) -> one context -> for each problem a plan,
 * operands (counters_operands.c), one launch, its counters -> report (counters_report.c).
 * See jitgemm-swgpu.1 for how it behaves. */
#include "counters_args.h"
#include "counters_operands.h"
#include "counters_report.h"
#include "jitgemm.h"
#include "progress.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ERROR_BYTES 2048
#define RUNS_MIN 5      /* timed runs of a product */
#define RUNS_MAX 1000
#define RUNS_MS 1000.0  /* more than RUNS_MIN only while this lasts */

/* Everything one run of the tool holds. `output` protects what is written: see wait_for_stop. */
typedef struct swgpu_run {
    counters_args args;
    counters_report report;
    progress progress;
    pthread_mutex_t output;
    jg_context *context;
    size_t done;
    FILE *findings; /* what the software GPU reports, from where it was last read; null: it goes elsewhere */
} swgpu_run;

static int print_error(const char *what)
{
    fprintf(stderr, "jitgemm-swgpu: %s\n", what);
    return COUNTERS_EXIT_FAILED;
}

/* Checks that standard output took everything. Returns the exit status: `status`, or failed if that is done. */
static int finish_output(const counters_report *r, int status)
{
    int lost = r->write_error || ferror(stdout);
    errno = 0;
    lost |= fclose(stdout) != 0;
    if (!lost) return status;
    fprintf(stderr, "jitgemm-swgpu: standard output: %s\n", strerror(r->write_error ? r->write_error : errno ? errno : EIO));
    return status == COUNTERS_EXIT_DONE ? COUNTERS_EXIT_FAILED : status;
}

/* ---- interrupts ---- */

/* A launch cannot be stopped half-way and may take minutes, so this thread ends the process in the middle of it, when
 * nothing is being written. A second signal ends it even then. */
static void *wait_for_stop(void *user)
{
    swgpu_run *run = user;
    sigset_t stops;
    int number;
    sigemptyset(&stops);
    sigaddset(&stops, SIGINT);
    sigaddset(&stops, SIGTERM);
    if (sigwait(&stops, &number) != 0) return NULL;
    pthread_sigmask(SIG_UNBLOCK, &stops, NULL);
    pthread_mutex_lock(&run->output);
    progress_end(&run->progress);
    run->report.interrupted = 1;
    counters_report_end(&run->report);
    fprintf(stderr, "jitgemm-swgpu: interrupted: %zu of %zu products are left\n", run->args.sizes.count - run->done,
            run->args.sizes.count);
    _exit(finish_output(&run->report, COUNTERS_EXIT_INTERRUPTED));
}

/* All threads that are started later inherit the mask, so that only this one is interrupted. */
static int catch_stop_signals(swgpu_run *run)
{
    pthread_t thread;
    sigset_t stops;
    sigemptyset(&stops);
    sigaddset(&stops, SIGINT);
    sigaddset(&stops, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &stops, NULL);
    signal(SIGINT, SIG_DFL); /* a shell may have started this with SIGINT ignored */
    if (pthread_create(&thread, NULL, wait_for_stop, run) != 0) return print_error("no thread can be started");
    pthread_detach(thread);
    return COUNTERS_EXIT_DONE;
}

/* ---- what the checks found ---- */

/* Lets the software GPU write its findings where they can be read, unless the user wants them elsewhere. */
static void open_findings(swgpu_run *run)
{
    const char *given = getenv("JITGEMM_SWGPU_REPORT");
    char path[64];
    int file = given && *given ? -1 : memfd_create("findings", MFD_CLOEXEC);
    if (file < 0) return;
    run->findings = fdopen(file, "r");
    if (!run->findings) return;
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    setenv("JITGEMM_SWGPU_REPORT", path, 1);
}

/* size: null if it belongs to no product. */
static void add_finding(swgpu_run *run, const char *size, const char *text)
{
    progress_message(&run->progress, "%s: FOUND: %s", size ? size : "jitgemm-swgpu", text);
    counters_report_add_failure(&run->report, size, 1, text);
}

/* Writes what was found since the last call, one line a finding. Returns how many there are. */
static size_t write_findings(swgpu_run *run, const char *size)
{
    char line[2048];
    size_t count = 0;
    if (!run->findings) return 0;
    clearerr(run->findings); /* the end may have moved */
    while (fgets(line, sizeof line, run->findings)) {
        line[strcspn(line, "\n")] = 0;
        add_finding(run, size, line);
        count++;
    }
    return count;
}

/* ---- the context ---- */

static void on_log(void *user, jg_log_level level, const char *text)
{
    swgpu_run *run = user;
    progress_message(&run->progress, "jitgemm-swgpu: %s: %s", level == JG_LOG_ERROR ? "error" : "warning", text);
}

static int open_context(swgpu_run *run)
{
    const jg_options options = {.device = JG_DEVICE_CUDA, .compile = JG_COMPILE_WAIT, .driver_path = "swgpu",
                                .cache_path = run->args.cache_path, .log = on_log, .log_user = run};
    if (jg_open(&options, &run->context) == JG_OK) return COUNTERS_EXIT_DONE;
    run->context = NULL;
    if (counters_args_blame(&run->args, jg_last_error())) return COUNTERS_EXIT_USAGE;
    return print_error(jg_last_error());
}

/* What leaked is found when the context ends. */
static int close_context(swgpu_run *run)
{
    int status = COUNTERS_EXIT_DONE;
    if (!run->context) return status;
    if (jg_close(run->context) != JG_OK) status = print_error(jg_last_error());
    run->context = NULL;
    return write_findings(run, NULL) ? COUNTERS_EXIT_FAILED : status;
}

/* ---- one product ---- */

static int compare_times(const void *x, const void *y)
{
    const double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

static jg_status launch(swgpu_run *run, const jg_plan *plan, const jg_operands *data)
{
    jg_status status = jg_plan_run(plan, data);
    return status == JG_OK ? jg_synchronize(run->context, NULL) : status;
}

static jg_status time_product(swgpu_run *run, const jg_plan *plan, const jg_operands *data, counters_row *row)
{
    double times[RUNS_MAX], started_ms = progress_now_ms(), now_ms = started_ms;
    int runs = 0;
    while (runs < RUNS_MIN || (runs < RUNS_MAX && now_ms - started_ms < RUNS_MS)) {
        const double before_ms = now_ms;
        jg_status status = launch(run, plan, data);
        if (status != JG_OK) return status;
        now_ms = progress_now_ms();
        times[runs++] = now_ms - before_ms;
    }
    qsort(times, (size_t)runs, sizeof *times, compare_times);
    row->ms = runs % 2 ? times[runs / 2] : (times[runs / 2 - 1] + times[runs / 2]) / 2;
    row->runs = runs;
    return JG_OK;
}

static int is_empty(const jg_problem *p)
{
    return p->m == 0 || p->n == 0 || (p->batch == 0 && (p->stride_a || p->stride_b || p->stride_c));
}

/* Runs a plan on data of its own. On failure `error` is why; freeing may fail too, and says less. */
static jg_status count_plan(swgpu_run *run, const jg_problem *problem, const jg_plan *plan, counters_row *row,
                            char error[ERROR_BYTES])
{
    counters_operands operands = {0};
    jg_status status = counters_operands_make(run->context, problem, &operands);
    if (status == JG_OK) status = launch(run, plan, &operands.data);
    if (status == JG_OK) status = jg_launch_counters(run->context, &row->counters);
    if (status == JG_OK && run->args.time) status = time_product(run, plan, &operands.data, row);
    if (status != JG_OK) snprintf(error, ERROR_BYTES, "%s", jg_last_error());
    jg_status freed = counters_operands_free(run->context, &operands);
    if (status != JG_OK || freed == JG_OK) return status;
    snprintf(error, ERROR_BYTES, "%s", jg_last_error());
    return freed;
}

/* Plans and runs one product. */
static jg_status count_product(swgpu_run *run, const jg_problem *problem, counters_row *row, jg_plan_details *details,
                               char error[ERROR_BYTES])
{
    jg_plan *plan;
    jg_status status = jg_plan_create(run->context, problem, &plan);
    if (status != JG_OK) {
        snprintf(error, ERROR_BYTES, "%s", jg_last_error());
        return status;
    }
    jg_plan_info(plan, details);
    if (!is_empty(problem)) {
        row->kernel = details->kernel;
        /* Fits: no matrix has more than 2^40 elements, and the product of three is its square. */
        row->multiply_adds = (uint64_t)(problem->m * problem->n * problem->k * (problem->batch ? problem->batch : 1));
        status = count_plan(run, problem, plan, row, error);
    }
    jg_plan_destroy(plan);
    return status;
}

/* Writes what came of a product. Returns nonzero if it ran and nothing was found. */
static int write_product(swgpu_run *run, const counters_row *row, jg_status status, const char *error)
{
    size_t findings = write_findings(run, row->size);
    if (status == JG_OK) {
        counters_report_add(&run->report, row);
    } else if (findings == 0 && status == JG_ERR_DEVICE_LOST) {
        add_finding(run, row->size, error);
    } else if (findings == 0) {
        progress_message(&run->progress, "jitgemm-swgpu: %s: %s", row->size, error);
        counters_report_add_failure(&run->report, row->size, 0, error);
    }
    return status == JG_OK && findings == 0;
}

static int run_product(swgpu_run *run, const jg_problem *problem)
{
    char size[JG_PROBLEM_TEXT_BYTES], error[ERROR_BYTES] = "";
    jg_plan_details details;
    counters_row row = {.size = size, .kernel = ""};
    jg_problem_format(problem, size, sizeof size, NULL);
    progress_step(&run->progress,
                  &(jg_progress){.done = run->done, .total = run->args.sizes.count, .problem = size, .kernel = ""});

    jg_status status = count_product(run, problem, &row, &details, error);

    pthread_mutex_lock(&run->output);
    progress_end(&run->progress);
    int good = write_product(run, &row, status, error);
    run->done++;
    pthread_mutex_unlock(&run->output);
    if (!jg_status_is_fatal(status)) return good ? COUNTERS_EXIT_DONE : COUNTERS_EXIT_FAILED;
    close_context(run);
    open_context(run);
    return COUNTERS_EXIT_FAILED;
}

/* ---- the run ---- */

static void begin_progress(swgpu_run *run)
{
    const char *terminal = getenv("TERM");
    int can_erase = terminal && *terminal && strcmp(terminal, "dumb") != 0 && isatty(STDERR_FILENO);
    progress_begin(&run->progress, stderr, can_erase && run->args.sizes.count > 1 ? PROGRESS_BAR : PROGRESS_NONE, "");
}

/* Goes on to the next product after a failure, as long as there is a context. */
static int run_all(swgpu_run *run)
{
    int status = open_context(run);
    if (status != COUNTERS_EXIT_DONE) return status;
    counters_report_begin(&run->report);
    for (size_t i = 0; i < run->args.sizes.count && run->context; i++)
        if (run_product(run, &run->args.sizes.items[i]) != COUNTERS_EXIT_DONE) status = COUNTERS_EXIT_FAILED;
    pthread_mutex_lock(&run->output); /* and keeps it: from here on the process ends by itself */
    if (close_context(run) != COUNTERS_EXIT_DONE) status = COUNTERS_EXIT_FAILED;
    progress_end(&run->progress);
    if (counters_report_end(&run->report) != 0) status = print_error("out of memory");
    return status;
}

int main(int argc, char **argv)
{
    static swgpu_run run = {.output = PTHREAD_MUTEX_INITIALIZER};
    int status = counters_args_parse(argc, argv, &run.args);
    if (status >= 0) return status == COUNTERS_EXIT_DONE ? finish_output(&run.report, status) : status;
    run.report = (counters_report){.format = run.args.format, .time = run.args.time};
    counters_args_export(&run.args);
    open_findings(&run);
    begin_progress(&run);
    if (catch_stop_signals(&run) != COUNTERS_EXIT_DONE) return COUNTERS_EXIT_FAILED;
    status = run_all(&run);
    status = status == COUNTERS_EXIT_USAGE ? status : finish_output(&run.report, status);
    counters_args_free(&run.args);
    return status;
}
