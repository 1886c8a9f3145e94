/* jitgemm-bench --save and --against: see bench_drift.h.
 *
 * The flow is: the old baseline (bench_baseline.c) -> the processes, one after another (bench_child.c) -> what they printed,
 * merged (bench_baseline.c) -> judged (bench_compare.c) -> printed here -> saved. */
#include "bench_drift.h"

#include "bench_json.h"
#include "bench_baseline.h"
#include "bench_child.h"
#include "bench_compare.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define NAME_WIDTH 44
#define LISTED_NAMES 10 /* of measures that are missing or new; a table is to be read */

typedef struct drift_work {
    bench_run *run;
    const bench_drift_options *options;
    cJSON *base, *now; /* base: null without --against */
} drift_work;

/* ---- before ---- */

/* Compares with what is known of the GPU before a process has told of its environment. */
static int check_gpu(const drift_work *w)
{
    const bench_gpu *gpu = &w->run->gpu;
    char why[1024] = "";
    cJSON *now = cJSON_CreateObject();
    const int made = now && cJSON_AddStringToObject(now, "device", gpu->name) &&
                     cJSON_AddNumberToObject(now, "arch", gpu->arch) && cJSON_AddBoolToObject(now, "software", gpu->software);
    const int same = made && bench_compare_device(json_member(w->base, "environment"), now, 1, why, sizeof why) == 0;
    cJSON_Delete(now);
    if (!made) return bench_fail(w->run, "out of memory");
    return same ? BENCH_EXIT_DONE : bench_fail(w->run, "%s %s", w->options->against_path, why);
}

/* All that can be wrong before anything is measured. */
static int prepare(drift_work *w)
{
    char why[1024];
    const bench_drift_options *o = w->options;
    w->now = bench_baseline_create();
    if (!w->now) return bench_fail(w->run, "out of memory");
    if (o->against_path) {
        w->base = bench_baseline_read(o->against_path, why, sizeof why);
        if (!w->base) return bench_fail(w->run, "%s", why);
        if (check_gpu(w) != BENCH_EXIT_DONE) return BENCH_EXIT_FAILED;
    }
    if (o->save_path && bench_baseline_check_path(o->save_path, why, sizeof why) != 0) return bench_fail(w->run, "%s", why);
    return BENCH_EXIT_DONE;
}

/* ---- the processes ---- */

/* The command line, to be tried by hand. */
static void write_command(char *const *argv, char *text, size_t size)
{
    size_t length = 0;
    text[0] = 0;
    for (; *argv && length < size; argv++) {
        const int written = snprintf(text + length, size - length, "%s%s", length ? " " : "", *argv);
        length += written > 0 ? (size_t)written : 0;
    }
}

/* Tells that run `i` failed, and how to find out why. */
static int fail_run(const drift_work *w, size_t i, const char *how)
{
    char command[1024];
    write_command(w->options->child_argv, command, sizeof command);
    return bench_fail(w->run, "run %zu of %zu %s. To see it alone: %s", i + 1, w->options->runs, how, command);
}

/* What the first run says of where and what it measured must fit the baseline; more runs would not make it fit. */
static int check_first(const drift_work *w)
{
    char why[1024];
    const char *path = w->options->against_path;
    if (bench_compare_device(json_member(w->base, "environment"), json_member(w->now, "environment"), 0, why, sizeof why) != 0)
        return bench_fail(w->run, "%s %s", path, why);
    if (!bench_compare_common(w->base, w->now))
        return bench_fail(w->run, "%s holds nothing that is measured now; was it made by another command, or of other sizes?",
                          path);
    return BENCH_EXIT_DONE;
}

static int run_one(drift_work *w, size_t i)
{
    char *output, why[512], how[640];
    int ended;
    const int status = bench_child_run(w->run, w->options->child_program, w->options->child_argv, &output, &ended);
    if (status != BENCH_EXIT_DONE) return status;
    if (ended == 0 && bench_baseline_add(w->now, output, why, sizeof why) == 0) {
        free(output);
        return i == 0 && w->base ? check_first(w) : BENCH_EXIT_DONE;
    }
    if (WIFSIGNALED(ended)) snprintf(how, sizeof how, "was ended by signal %d (%s)", WTERMSIG(ended), strsignal(WTERMSIG(ended)));
    else if (ended != 0) snprintf(how, sizeof how, "ended with status %d", WEXITSTATUS(ended));
    else snprintf(how, sizeof how, "printed no result: it %s", why);
    free(output);
    return fail_run(w, i, how);
}

static int run_all(drift_work *w)
{
    const size_t runs = w->options->runs;
    int status = BENCH_EXIT_DONE;
    for (size_t i = 0; i < runs && status == BENCH_EXIT_DONE; i++) {
        bench_show_progress(w->run, "process runs", i, runs);
        status = bench_stop_requested() ? BENCH_EXIT_INTERRUPTED : run_one(w, i);
    }
    progress_end(&w->run->progress);
    if (status == BENCH_EXIT_DONE && cJSON_GetArraySize(json_member(w->now, "measures")) == 0)
        status = bench_fail(w->run, "the runs measured nothing that can be compared");
    return status;
}

/* ---- table ---- */

static int decimals(const char *unit)
{
    return strcmp(unit, "ns") == 0 ? 1 : strcmp(unit, "us") == 0 ? 2 : strcmp(unit, "ms") == 0 ? 3 : 0;
}

static void print_row(const cJSON *row)
{
    const char *unit = json_text(row, "unit");
    char p[32];
    if (json_number(row, "p_adjusted") < 1e-4) snprintf(p, sizeof p, "< 0.0001");
    else snprintf(p, sizeof p, "%.4f", json_number(row, "p_adjusted"));
    printf("  %-*s%12.*f%12.*f %-4s%+9.1f %%%10s  %s\n", NAME_WIDTH, json_text(row, "name"), decimals(unit),
           json_number(row, "base"), decimals(unit), json_number(row, "now"), unit, json_number(row, "change_percent"), p,
           json_text(row, "verdict"));
}

/* Names one a line, the first ones. */
static void print_names(const char *title, const cJSON *names)
{
    const cJSON *each;
    const int count = cJSON_GetArraySize(names);
    int shown = 0;
    if (count) printf("\n%s\n", title);
    cJSON_ArrayForEach(each, names)
    {
        if (shown++ < LISTED_NAMES) printf("  %s\n", cJSON_GetStringValue(each));
        else break;
    }
    if (count > LISTED_NAMES) printf("  and %d more\n", count - LISTED_NAMES);
}

static void print_table(const cJSON *drift)
{
    const cJSON *each, *changed = json_member(drift, "changed"), *rows = json_member(drift, "rows");
    const int slower = (int)json_number(drift, "slower"), faster = (int)json_number(drift, "faster");
    const int all = cJSON_GetArraySize(rows);
    printf("drift of %.0f runs against %s (%.0f runs%s%s)\n", json_number(drift, "runs"), json_text(drift, "base"),
           json_number(drift, "base_runs"), *json_text(drift, "base_started") ? ", " : "", json_text(drift, "base_started"));
    if (cJSON_GetArraySize(changed)) printf("\nchanged since then\n");
    cJSON_ArrayForEach(each, changed)
        printf("  %s: %s, now %s\n", json_text(each, "what"), json_text(each, "base"), json_text(each, "now"));
    if (slower + faster) printf("\n%-*s%12s%12s%16s%10s\n", NAME_WIDTH + 2, "medians that differ", "base", "now", "change", "p");
    cJSON_ArrayForEach(each, rows)
        if (strcmp(json_text(each, "verdict"), "same") != 0) print_row(each);
    print_names("not measured now", json_member(drift, "missing"));
    print_names("not in the baseline", json_member(drift, "new"));
    printf("\n%d measure%s: %d slower, %d faster, %d the same within %g %% or by chance\n", all, all == 1 ? "" : "s", slower,
           faster, all - slower - faster, json_number(drift, "percent"));
    if (cJSON_IsTrue(json_member(drift, "interrupted"))) printf("Interrupted: only the finished runs were compared.\n");
}

/* ---- CSV ---- */

/* A row that begins with two texts; `rest` are the other columns. */
static void print_csv_names(const char *kind, const cJSON *names, const char *rest)
{
    const cJSON *each;
    cJSON_ArrayForEach(each, names)
    {
        printf("%s,", kind);
        bench_report_csv_text(cJSON_GetStringValue(each));
        puts(rest);
    }
}

static void print_csv(const cJSON *drift)
{
    const cJSON *each;
    puts("kind,name,unit,base,now,change_percent,p,p_adjusted,verdict");
    cJSON_ArrayForEach(each, json_member(drift, "changed"))
    {
        fputs("changed,", stdout);
        bench_report_csv_text(json_text(each, "what"));
        fputs(",,", stdout);
        bench_report_csv_text(json_text(each, "base"));
        putchar(',');
        bench_report_csv_text(json_text(each, "now"));
        puts(",,,,");
    }
    cJSON_ArrayForEach(each, json_member(drift, "rows"))
    {
        const int digits = decimals(json_text(each, "unit")) ? decimals(json_text(each, "unit")) + 1 : 0;
        fputs("measure,", stdout);
        bench_report_csv_text(json_text(each, "name"));
        printf(",%s,%.*f,%.*f,%.2f,%.3g,%.3g,%s\n", json_text(each, "unit"), digits, json_number(each, "base"), digits,
               json_number(each, "now"), json_number(each, "change_percent"), json_number(each, "p"),
               json_number(each, "p_adjusted"), json_text(each, "verdict"));
    }
    print_csv_names("missing", json_member(drift, "missing"), ",,,,,,,");
    print_csv_names("new", json_member(drift, "new"), ",,,,,,,");
    if (cJSON_IsTrue(json_member(drift, "interrupted"))) puts("note,Interrupted: only the finished runs were compared.,,,,,,,");
}

/* ---- after ---- */

/* A comparison that cannot find anything must not pass as one that found nothing. */
static void warn_of_few_runs(const drift_work *w, const cJSON *drift)
{
    const size_t base_runs = bench_baseline_runs(w->base), runs = bench_baseline_runs(w->now);
    const size_t measures = (size_t)cJSON_GetArraySize(json_member(drift, "rows"));
    if (bench_compare_least_p(base_runs, runs, measures) < BENCH_COMPARE_P) return;
    progress_message(&w->run->progress,
                     "jitgemm-bench: warning: with %zu runs against %zu a change of one measure out of %zu cannot be told from "
                     "chance; more runs are needed",
                     runs, base_runs, measures);
}

static int compare(drift_work *w, int interrupted, cJSON **drift)
{
    bench_run *run = w->run;
    cJSON *found = bench_compare(w->base, w->now, w->options->against_path, w->options->percent);
    if (!found || !cJSON_AddBoolToObject(found, "interrupted", interrupted)) {
        cJSON_Delete(found);
        return bench_fail(run, "out of memory");
    }
    *drift = found;
    warn_of_few_runs(w, found);
    if (run->args.format == BENCH_TABLE) print_table(found);
    if (run->args.format == BENCH_CSV) print_csv(found);
    if (fflush(stdout) != 0 && !run->report.write_error) run->report.write_error = errno;
    if (interrupted) return BENCH_EXIT_INTERRUPTED;
    return json_number(found, "slower") > 0 ? BENCH_EXIT_SLOWER : BENCH_EXIT_DONE;
}

static int save(const drift_work *w, int status)
{
    char why[1024];
    const char *path = w->options->save_path;
    if (status != BENCH_EXIT_DONE && status != BENCH_EXIT_SLOWER) {
        progress_message(&w->run->progress, "jitgemm-bench: %zu of %zu runs were finished; %s was not written",
                         bench_baseline_runs(w->now), w->options->runs, path);
        return status;
    }
    if (bench_baseline_write(path, w->now, why, sizeof why) != 0) return bench_fail(w->run, "%s", why);
    if (w->run->args.format == BENCH_TABLE)
        printf("%s: measures: %d, runs: %zu\n", path, cJSON_GetArraySize(json_member(w->now, "measures")),
               bench_baseline_runs(w->now));
    return status;
}

int bench_drift(bench_run *run, const bench_drift_options *options, cJSON **drift)
{
    drift_work w = {.run = run, .options = options};
    *drift = NULL;
    int status = prepare(&w);
    if (status == BENCH_EXIT_DONE) {
        status = run_all(&w);
        const int interrupted = status == BENCH_EXIT_INTERRUPTED;
        if (w.base && (status == BENCH_EXIT_DONE || (interrupted && bench_baseline_runs(w.now) >= 2)))
            status = compare(&w, interrupted, drift);
        if (options->save_path) status = save(&w, status);
    }
    cJSON_Delete(w.base);
    cJSON_Delete(w.now);
    return status;
}
