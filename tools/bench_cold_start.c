/* jitgemm-bench cold-start: from the start of a process to its first result, with a warm cache file.
 *
 * Each run is a process of its own, this program again (bench_cold_child.c), which tells when it took its steps, on the clock
 * that all processes share; here that becomes durations. cuBLAS' processes alternate with the library's. What creating the
 * CUDA context takes is nobody's fault and is told apart. */
#include "bench_cold_child.h"
#include "bench_peer.h"
#include "bench_run.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define OVER_LIMIT_MS 10.0

extern char **environ;

/* What is told of a run, in ms. */
enum { STEP_MAIN, STEP_CONTEXT, STEP_OPEN, STEP_RESULT, STEP_ALL, STEP_OVER, STEPS }; /* STEP_OVER is the last */

/* Processes of one kind. */
typedef struct contestant {
    const char *kind, *title, *names[STEPS]; /* kind: COLD_LIBRARY or COLD_PEER */
    double *ms[STEPS];
    size_t count;
    cold_report last;
} contestant;

/* ---- one process ---- */

static const char *text_or_none(const char *text)
{
    return text ? text : COLD_NONE;
}

static int spawn_child(const bench_run *run, const char *kind, int output, pid_t *pid, int64_t *start_ns)
{
    const char *const arguments[] = {"jitgemm-bench", COLD_COMMAND, kind, text_or_none(run->args.driver_path), run->cache_path,
                                     text_or_none(run->args.nvrtc_path), text_or_none(run->args.cublas_path), NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    sigemptyset(&none); /* we block SIGINT, and a process shall end with it */
    int error = posix_spawn_file_actions_init(&actions);
    if (error) return error;
    error = posix_spawnattr_init(&attributes);
    if (!error) {
        error = posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
        if (!error) error = posix_spawnattr_setsigmask(&attributes, &none);
        if (!error) error = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
        char *const *writable = (char *const *)(uintptr_t)arguments; /* it is not written to */
        *start_ns = bench_now_ns();
        if (!error) error = posix_spawn(pid, "/proc/self/exe", &actions, &attributes, writable, environ);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

/* Reads what a process writes until it ends. */
static void read_all(int file, char *text, size_t size)
{
    size_t length = 0;
    while (length + 1 < size) {
        const ssize_t got = read(file, text + length, size - 1 - length);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        length += (size_t)got;
    }
    text[length] = 0;
}

static int wait_for(pid_t pid)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR) return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Runs one process. A failed one has said why itself; one that was interrupted has not failed. */
static int run_child(bench_run *run, const char *kind, cold_report *report, int64_t *start_ns)
{
    char text[COLD_TEXT_BYTES];
    int pipe_ends[2];
    pid_t pid;
    if (pipe2(pipe_ends, O_CLOEXEC) != 0) return bench_fail(run, "a pipe: %s", strerror(errno));
    const int error = spawn_child(run, kind, pipe_ends[1], &pid, start_ns);
    close(pipe_ends[1]);
    if (!error) read_all(pipe_ends[0], text, sizeof text);
    close(pipe_ends[0]);
    if (error) return bench_fail(run, "a process cannot be started: %s", strerror(error));
    const int status = wait_for(pid);
    if (bench_stop_requested()) return BENCH_EXIT_INTERRUPTED;
    if (status != 0) return bench_fail(run, "the process for %s ended with status %d", kind, status);
    return cold_report_parse(text, report) == 0 ? BENCH_EXIT_DONE : bench_fail(run, "the process for %s gave no report", kind);
}

/* ---- runs ---- */

static void add_run(contestant *who, const cold_report *r, int64_t start_ns)
{
    const int64_t ns[STEPS] = {
        [STEP_MAIN] = r->main_ns - start_ns,
        [STEP_CONTEXT] = r->context_ns - r->main_ns,
        [STEP_OPEN] = r->open_ns - r->context_ns,
        [STEP_RESULT] = r->result_ns - r->open_ns,
        [STEP_ALL] = r->result_ns - start_ns,
        [STEP_OVER] = r->result_ns - start_ns - (r->context_ns - r->main_ns),
    };
    for (int step = 0; step < STEPS; step++) who->ms[step][who->count] = (double)ns[step] * 1e-6;
    who->count++;
    who->last = *r;
}

/* Each contestant in turn. The first process of each does not count: it brings the libraries from the disk into memory. */
static int run_all(bench_run *run, contestant *all, size_t contestants)
{
    const size_t total = ((size_t)run->args.runs + 1) * contestants;
    int status = BENCH_EXIT_DONE;
    for (size_t i = 0; i < total && status == BENCH_EXIT_DONE && !bench_stop_requested(); i++) {
        contestant *who = &all[i % contestants];
        cold_report report;
        int64_t start_ns = 0;
        status = run_child(run, who->kind, &report, &start_ns);
        if (status != BENCH_EXIT_DONE) break;
        if (i >= contestants) add_run(who, &report, start_ns);
        if (strcmp(who->kind, COLD_LIBRARY) == 0 && report.waits)
            status = bench_fail(run, "the first product waited for its kernel: %s lacks generic kernels", run->cache_path);
        bench_show_progress(run, "processes", i + 1, total);
    }
    progress_end(&run->progress);
    return status;
}

/* ---- results ---- */

/* Returns the summary of what comes on top of the context. */
static bench_summary report_contestant(bench_run *run, contestant *who)
{
    bench_summary s = {0};
    if (who->count == 0) return s;
    bench_report_part(&run->report, who->title, "ms", BENCH_STEPS);
    for (int step = 0; step < STEPS; step++) {
        char name[128];
        snprintf(name, sizeof name, "%s: %s", who->kind, who->names[step]);
        s = bench_report_series(&run->report, name, who->ms[step], who->count);
    }
    return s;
}

static void report_counts(bench_run *run, const contestant *library, const contestant *peer)
{
    const cold_report *last = &library->last;
    const struct { const char *name; uint64_t value; } rows[] = {
        {"kernels in the cache file", last->disk_entries},
        {"kernels loaded", last->kernels},
        {"of them generic ones that stay loaded", last->resident},
        {"first products on an own kernel", last->launches_own},
        {"first products on a generic kernel", last->launches_generic},
        {"first products that waited", last->waits},
    };
    if (library->count == 0) return;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) bench_report_count(&run->report, rows[i].name, rows[i].value);
    if (peer->count) bench_report_fact_number(&run->report, "cublas", (double)peer->last.peer_version);
}

/* ---- all of it ---- */

/* Whether there is a cuBLAS; only its processes use it. */
static int find_peer(bench_run *run, int *found)
{
    bench_peer peer;
    *found = 0;
    if (run->args.no_peer || run->gpu.software) return BENCH_EXIT_DONE;
    if (bench_peer_open(run->args.cublas_path, &peer) == JG_OK) {
        *found = 1;
        return BENCH_EXIT_DONE;
    }
    if (run->args.cublas_path) return bench_fail_status(run, "--cublas");
    bench_report_note(&run->report, jg_last_error());
    return BENCH_EXIT_DONE;
}

static int measure(bench_run *run, contestant all[2])
{
    int has_peer;
    int status = find_peer(run, &has_peer);
    for (int i = 0; i < 2 && status == BENCH_EXIT_DONE; i++)
        for (int step = 0; step < STEPS && status == BENCH_EXIT_DONE; step++)
            if (!(all[i].ms[step] = calloc((size_t)run->args.runs, sizeof(double)))) status = bench_fail(run, "out of memory");
    if (status != BENCH_EXIT_DONE) return status;
    status = run_all(run, all, has_peer ? 2 : 1);
    const bench_summary over = report_contestant(run, &all[0]);
    report_contestant(run, &all[1]);
    report_counts(run, &all[0], &all[1]);
    if (over.n) bench_report_target(&run->report, "first result over context creation, median", over.p50, "ms", OVER_LIMIT_MS);
    return status;
}

int bench_cold_start(bench_run *run)
{
    static const jg_problem product = {.m = COLD_SIZE, .n = COLD_SIZE, .k = COLD_SIZE, .type_a = JG_F16};
#define NAMES(open)                                                                                                    \
    {"process start to main", "CUDA context", open, "first product", "process start to first result", "over context creation"}
    contestant all[2] = {{.kind = COLD_LIBRARY, .title = "cold start with jitgemm", .names = NAMES("jg_open")},
                         {.kind = COLD_PEER, .title = "cold start with cuBLAS", .names = NAMES("library and handle")}};
#undef NAMES
    int status = bench_prepare_cache(run);
    run->args.fill = 1; /* what is measured is a warm cache */
    if (status == BENCH_EXIT_DONE) status = bench_fill_cache(run, &product);
    if (status == BENCH_EXIT_DONE) {
        bench_begin_report(run);
        status = measure(run, all);
    }
    for (int i = 0; i < 2; i++)
        for (int step = 0; step < STEPS; step++) free(all[i].ms[step]);
    return status;
}
