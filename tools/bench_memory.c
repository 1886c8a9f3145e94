/* jitgemm-bench memory: how much memory a process has that compiles kernels, on a thread of its own and in a helper.
 *
 * Each way is a process of its own, this program again (bench_memory_child.c), which looks at itself and writes what it saw as
 * one object; here these become a line of the table each, and what is between them. It is the host that is measured: the
 * numbers hold without a GPU too. */
#include "bench_child.h"
#include "bench_json.h"
#include "bench_memory_child.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define GROWTH_LIMIT_MIB 20.0 /* of the process whose kernels a helper compiles: loading them is part of it. NVRTC alone takes 75 to 110 */
#define MODE_WIDTH 10
#define COLUMN_WIDTH 14

static const char *const modes[] = {MEMORY_THREAD, MEMORY_HELPER};
enum { MODES = sizeof modes / sizeof *modes };

/* ---- one process ---- */

static const char *text_or_none(const char *text)
{
    return text ? text : MEMORY_NONE;
}

/* *out: the object that it wrote, the caller's. */
static int run_mode(bench_run *run, const char *mode, cJSON **out)
{
    char compiles[24], *text;
    int how;
    snprintf(compiles, sizeof compiles, "%ld", run->args.compiles);
    const char *const arguments[] = {"jitgemm-bench", MEMORY_COMMAND, mode, text_or_none(run->args.driver_path),
                                     text_or_none(run->args.nvrtc_path), text_or_none(run->args.helper_path), compiles, NULL};
    const int status = bench_child_run(run, NULL, (char *const *)(uintptr_t)arguments, &text, &how); /* they are not written to */
    if (status != BENCH_EXIT_DONE) return status;
    if (WIFSIGNALED(how)) bench_fail(run, "the process for \"%s\" was ended by signal %d", mode, WTERMSIG(how));
    const int good = WIFEXITED(how) && WEXITSTATUS(how) == 0;
    *out = good ? cJSON_Parse(text) : NULL;
    free(text);
    if (good && !*out) return bench_fail(run, "the process for \"%s\" gave no report", mode);
    return good ? BENCH_EXIT_DONE : BENCH_EXIT_FAILED; /* it has said why */
}

/* ---- what was seen ---- */

static double mib(const cJSON *object, const char *name)
{
    return json_number(object, name) / 1024;
}

/* At a moment, in MiB. All pages: how many others share them changes with what else runs on the machine. */
static double resident(const cJSON *mode, int moment)
{
    return mib(cJSON_GetArrayItem(json_member(mode, "moments"), moment), "rss_kib");
}

static int is_measured(const cJSON *mode)
{
    return mode && !*json_text(mode, "refused");
}

/* ---- table, CSV ---- */

static void print_heading(const bench_report *r, long compiles)
{
    char all[32];
    snprintf(all, sizeof all, "%ld compiles", compiles);
    const char *const columns[] = {"before jg_open", "jg_open", "1 compile", all, "jg_close", "peak", "helper's peak"};
    if (r->format != BENCH_TABLE) return;
    printf("\nresident memory of a process after each step, MiB\n  %-*s", MODE_WIDTH, "compiles");
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) printf("%*s", COLUMN_WIDTH + 2 * (i == 0), columns[i]);
    putchar('\n');
}

static void print_mib(double value, int width)
{
    if (isnan(value)) printf("%*s", width, "-");
    else printf("%*.1f", width, value);
}

static void print_line(const cJSON *mode)
{
    const char *name = json_text(mode, "mode");
    printf("  %-*s", MODE_WIDTH, name);
    if (!is_measured(mode)) {
        printf("  SKIP %s\n", json_text(mode, "refused"));
        return;
    }
    for (int i = 0; i < MEMORY_MOMENTS; i++) print_mib(resident(mode, i), COLUMN_WIDTH + 2 * (i == 0));
    print_mib(mib(mode, "peak_kib"), COLUMN_WIDTH);
    print_mib(strcmp(name, MEMORY_HELPER) == 0 ? mib(mode, "helper_peak_kib") : NAN, COLUMN_WIDTH);
    putchar('\n');
}

static void print_csv_line(const char *name, const char *when, const cJSON *item)
{
    static const char *const columns[] = {"pss_kib", "rss_kib", "peak_kib"};
    printf("%s,%s", name, when);
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
        const double kib = json_number(item, columns[i]);
        putchar(',');
        if (!isnan(kib)) printf("%.0f", kib);
    }
    fputs(",\n", stdout);
}

static void print_csv(bench_report *r, const cJSON *mode)
{
    const cJSON *item;
    const char *name = json_text(mode, "mode");
    if (!r->has_rows_above) fputs("\nmemory,when,pss_kib,rss_kib,peak_kib,refused\n", stdout);
    r->has_rows_above = 1;
    if (!is_measured(mode)) {
        printf("%s,,,,,", name);
        bench_report_csv_text(json_text(mode, "refused"));
        putchar('\n');
        return;
    }
    cJSON_ArrayForEach(item, json_member(mode, "moments")) print_csv_line(name, json_text(item, "when"), item);
    if (strcmp(name, MEMORY_HELPER) == 0) printf("%s,the helper itself,,,%.0f,\n", name, json_number(mode, "helper_peak_kib"));
}

/* Takes a mode's object into the report. Returns an exit status. */
static int add_mode(bench_run *run, cJSON *mode)
{
    bench_report *r = &run->report;
    if (r->format == BENCH_TABLE) print_line(mode);
    if (r->format == BENCH_CSV) print_csv(r, mode);
    if (!cJSON_AddStringToObject(mode, "command", r->command)) r->out_of_memory = 1;
    bench_report_add(r, &r->memory, mode);
    bench_report_break(r);
    return r->out_of_memory ? bench_fail(run, "out of memory") : BENCH_EXIT_DONE; /* the object may be gone then */
}

/* ---- what follows ---- */

/* A series of how long compiles took after the first one; returns their median, NaN if there was one only. */
static double add_times(bench_run *run, const cJSON *mode)
{
    const cJSON *times = json_member(mode, "compile_ms");
    const size_t count = (size_t)cJSON_GetArraySize(times);
    double *ms = calloc(count + 1, sizeof *ms), median = NAN;
    char name[64];
    for (size_t i = 0; ms && i < count; i++) ms[i] = json_value(cJSON_GetArrayItem(times, (int)i));
    if (!ms) run->report.out_of_memory = 1;
    snprintf(name, sizeof name, "%s: first compile", json_text(mode, "mode"));
    if (ms && count > 0) bench_report_series(&run->report, name, ms, 1);
    snprintf(name, sizeof name, "%s: a further compile", json_text(mode, "mode"));
    if (ms && count > 1) median = bench_report_series(&run->report, name, ms + 1, count - 1).p50;
    free(ms);
    return median;
}

static void compare(bench_run *run, const cJSON *thread, const cJSON *helper)
{
    char text[256];
    const double on_thread = resident(thread, MEMORY_ALL), in_helper = resident(helper, MEMORY_ALL);
    const double growth = in_helper - resident(helper, MEMORY_OPEN), kept = on_thread - in_helper;
    bench_report_part(&run->report, "compile time, from call to return", "ms", BENCH_SPREAD);
    const double thread_ms = add_times(run, thread), helper_ms = is_measured(helper) ? add_times(run, helper) : NAN;
    if (!isnan(growth))
        bench_report_target(&run->report, "growth of the process by a helper's compiles", growth, "MiB", GROWTH_LIMIT_MIB);
    if (!isnan(kept) && kept > 0)
        snprintf(text, sizeof text, "The helper keeps %.0f MiB out of the process, and takes %.0f MiB itself while it is there.", kept,
                 mib(helper, "helper_peak_kib"));
    else if (!isnan(kept)) snprintf(text, sizeof text, "The helper keeps nothing out of the process.");
    if (!isnan(kept)) bench_report_note(&run->report, text);
    if (!isnan(helper_ms) && !isnan(thread_ms)) {
        snprintf(text, sizeof text, "A compile takes %.0f ms in it, %.0f ms on a thread (medians, without the first).", helper_ms,
                 thread_ms);
        bench_report_note(&run->report, text);
    }
    bench_report_note(&run->report, "Pages that other processes have too count in full; CSV and JSON also have a process' share (Pss).");
}

int bench_memory(bench_run *run)
{
    cJSON *of[MODES] = {NULL};
    int status = BENCH_EXIT_DONE;
    bench_begin_report(run);
    run->report.host_times = 1;
    if (run->gpu.software) bench_report_note(&run->report, "Memory and compile times are the host's own: they hold without a GPU.");
    print_heading(&run->report, run->args.compiles);
    for (int i = 0; i < MODES && status == BENCH_EXIT_DONE; i++) {
        bench_show_progress(run, modes[i], (size_t)i, MODES);
        status = run_mode(run, modes[i], &of[i]);
        progress_end(&run->progress);
        if (status == BENCH_EXIT_DONE) status = add_mode(run, of[i]);
    }
    if (status == BENCH_EXIT_DONE) compare(run, of[0], of[1]);
    run->report.host_times = 0;
    if (status == BENCH_EXIT_DONE && run->args.helper_path && !is_measured(of[1]))
        return bench_fail(run, "--helper: %s", json_text(of[1], "refused"));
    return status;
}
