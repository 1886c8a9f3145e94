/* Rows of products on standard output: see bench_rows.h. */
#include "bench_rows.h"

#include "bench_json.h"
#include "bench_misalign.h"
#include "bench_result.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define NAME_WIDTH 30
#define SURE 0.01 /* above it a difference may be chance, and is marked */

static const char *const columns[] = {"jitgemm", "generic", "cublas", "lt first", "lt best", "grouped"};
enum { COLUMNS = sizeof columns / sizeof *columns };

static const cJSON *contestant_of(const cJSON *row, const char *name)
{
    const cJSON *one;
    cJSON_ArrayForEach(one, cJSON_GetObjectItem(row, "contestants"))
        if (strcmp(json_text(one, "name"), name) == 0) return one;
    return NULL;
}

static double us_of(const cJSON *row, const char *name, const char *figure)
{
    return json_number(cJSON_GetObjectItem(contestant_of(row, name), "us"), figure);
}

double bench_row_us(const cJSON *row)
{
    return us_of(row, columns[0], "p50");
}

/* Why a contestant gave no time; "" if it gave one. Of what a peer does not do at all, the cells say that there is none. */
static const char *refusal_of(const cJSON *one, const char **cell)
{
    const char *why = json_text(one, "refused");
    *cell = strncmp(why, BENCH_NO_PEER, strlen(BENCH_NO_PEER)) == 0 ? BENCH_NO_PEER : "refused";
    return why;
}

/* ---- the table ---- */

/* Of the column of sizes in a group that begins with this row: others are hardly longer, but for the leading dimensions of
 * layouts. */
static int width_of(const cJSON *row)
{
    const int more = *json_text(row, "layout") ? (int)strlen(":lda=1024:ldb=1024:ldc=1024") + 9 : 3;
    const int length = (int)strnlen(json_text(row, "problem"), 256) + more;
    return length > NAME_WIDTH ? length : NAME_WIDTH;
}

static void print_heading(bench_rows *rows, const bench_report *r, const cJSON *row)
{
    const char *suite = json_text(row, "suite"), *list = json_text(row, "list");
    printf("\n%s%s%s, %s, operands %s\n", suite, strcmp(suite, list) ? ": " : "", strcmp(suite, list) ? list : "",
           json_text(row, "type"), json_text(row, "data"));
    rows->has_cost = *json_text(row, "layout") != 0;
    rows->width = width_of(row);
    if (r->environment.software) {
        printf("  %-*s%14s%12s%12s%11s%10s%7s  %s\n", rows->width, "size", "instructions", "load sect.", "store sect.",
               "conflicts", "barriers", "check", "plan");
        return;
    }
    printf("  %-*s%10s%8s", rows->width, "size, us", columns[0], "spread");
    rows->shown = 0;
    for (int i = 1; i < COLUMNS; i++) {
        if (!contestant_of(row, columns[i])) continue;
        rows->shown |= 1u << i;
        printf("%10s", columns[i]);
    }
    printf("%8s", "ratio");
    if (rows->has_cost) printf("%8s", "cost");
    printf("%10s%7s  %s\n", "roofline", "check", "plan");
}

static void print_us(const cJSON *row, const char *name)
{
    const cJSON *one = contestant_of(row, name);
    const double us = us_of(row, name, "p50");
    const char *cell;
    if (isnan(us)) printf("%10s", *refusal_of(one, &cell) ? cell : "-");
    else printf("%10.2f", us);
}

static void print_times(const bench_rows *rows, const cJSON *row)
{
    char text[32];
    const double p50 = us_of(row, columns[0], "p50"), spread = us_of(row, columns[0], "p75") - us_of(row, columns[0], "p25");
    print_us(row, columns[0]);
    if (isnan(p50)) printf("%8s", "");
    else printf("%7.1f%%", 100 * spread / p50);
    for (int i = 1; i < COLUMNS; i++)
        if (rows->shown & 1u << i) print_us(row, columns[i]);
    const double ratio = json_number(row, "ratio"), roofline = json_number(row, "roofline_percent");
    snprintf(text, sizeof text, "%.2f%s", ratio, json_number(row, "ratio_p") < SURE ? " " : "~");
    printf("%8s", isnan(ratio) ? "-" : text);
    snprintf(text, sizeof text, "%.2f", json_number(row, "cost"));
    if (rows->has_cost) printf("%8s", isnan(json_number(row, "cost")) ? "-" : text);
    snprintf(text, sizeof text, "%.1f%% %.1s", roofline, json_text(row, "bound"));
    printf("%10s", isnan(roofline) ? "-" : text);
}

static void print_counters(const cJSON *row)
{
    const cJSON *c = cJSON_GetObjectItem(row, "counters");
    if (!c) {
        printf("%14s%12s%12s%11s%10s", "refused", "-", "-", "-", "-");
        return;
    }
    printf("%14.0f%12.0f%12.0f%11.0f%10.0f", json_number(c, "instructions"), json_number(c, "global_load_sectors"),
           json_number(c, "global_store_sectors"),
           json_number(c, "shared_load_conflicts") + json_number(c, "shared_store_conflicts"),
           json_number(c, "barriers"));
}

/* Whether `text`, which is lines, has this one. */
static int has_line(const char *text, const char *line)
{
    const size_t length = strlen(line);
    for (const char *at = text; (at = strstr(at, line)); at++)
        if ((at == text || at[-1] == '\n') && at[length] == '\n') return 1;
    return 0;
}

/* Each reason once a group. */
static void print_refusals(bench_rows *rows, const cJSON *row)
{
    const cJSON *one;
    cJSON_ArrayForEach(one, cJSON_GetObjectItem(row, "contestants"))
    {
        char line[320];
        const char *cell, *why = refusal_of(one, &cell);
        if (!*why) continue;
        snprintf(line, sizeof line, "%s: %.250s", json_text(one, "name"), why);
        line[strcspn(line, "\n")] = 0;
        if (has_line(rows->refused, line)) continue;
        const size_t length = strlen(rows->refused);
        snprintf(rows->refused + length, sizeof rows->refused - length, "%s\n", line);
        printf("    %s%s\n", strcmp(cell, BENCH_NO_PEER) == 0 ? "" : "refused by ", line);
    }
}

static void print_line(bench_rows *rows, const bench_report *r, const cJSON *row)
{
    const cJSON *errors = cJSON_GetObjectItem(row, "check");
    const double check = json_number(errors, "reference"), peer = json_number(errors, "peer");
    printf("  %-*s", rows->width, json_text(row, "problem"));
    if (r->environment.software) print_counters(row);
    else print_times(rows, row);
    if (isnan(check)) printf("%7s", "-");
    else printf("%7.2f", check);
    printf("  %s%s", json_text(row, "plan"), json_true(row, "tuned") ? " tuned" : "");
    if (check > 1) printf("  WRONG RESULT");
    else if (peer > 1) printf("  (the peer is off by %.0fx)", peer);
    putchar('\n');
    print_refusals(rows, row);
}

/* ---- CSV ---- */

static void print_csv_number(double value)
{
    if (isnan(value)) putchar(',');
    else printf(",%.6g", value);
}

static const char *const counter_names[] = {"instructions",          "global_load_sectors",    "global_store_sectors",
                                            "shared_load_conflicts", "shared_store_conflicts", "barriers"};

static void print_csv_heading(const bench_report *r)
{
    fputs("\nsuite,list,problem,m,n,k,batch,type,data,kernel", stdout);
    if (r->environment.software)
        for (size_t i = 0; i < sizeof counter_names / sizeof *counter_names; i++) printf(",%s", counter_names[i]);
    else
        fputs(",jitgemm_us,jitgemm_p25_us,jitgemm_p75_us,generic_us,cublas_us,lt_first_us,lt_best_us,grouped_us,peer,ratio,ratio_p,"
              "cost,roofline_percent,bound", stdout);
    fputs(",check_reference,check_peer\n", stdout);
}

static void print_csv_line(const bench_report *r, const cJSON *row)
{
    printf("%s,", json_text(row, "suite"));
    bench_report_csv_text(json_text(row, "list")); /* it may be the name of a file */
    printf(",%s", json_text(row, "problem"));
    static const char *const sizes[] = {"m", "n", "k", "batch"};
    for (int i = 0; i < 4; i++) printf(",%.0f", json_number(row, sizes[i]));
    printf(",%s,%s,%s", json_text(row, "type"), json_text(row, "data"), json_text(row, "kernel"));
    if (r->environment.software) {
        const cJSON *c = cJSON_GetObjectItem(row, "counters");
        for (size_t i = 0; i < sizeof counter_names / sizeof *counter_names; i++)
            print_csv_number(json_number(c, counter_names[i]));
    } else {
        print_csv_number(us_of(row, columns[0], "p50"));
        print_csv_number(us_of(row, columns[0], "p25"));
        print_csv_number(us_of(row, columns[0], "p75"));
        for (int i = 1; i < COLUMNS; i++) {
            const char *cell;
            if (*refusal_of(contestant_of(row, columns[i]), &cell)) printf(",%s", cell);
            else print_csv_number(us_of(row, columns[i], "p50"));
        }
        printf(",%s", json_text(row, "peer"));
        print_csv_number(json_number(row, "ratio"));
        print_csv_number(json_number(row, "ratio_p"));
        print_csv_number(json_number(row, "cost"));
        print_csv_number(json_number(row, "roofline_percent"));
        printf(",%s", json_text(row, "bound"));
    }
    const cJSON *check = cJSON_GetObjectItem(row, "check");
    print_csv_number(json_number(check, "reference"));
    print_csv_number(json_number(check, "peer"));
    putchar('\n');
}

/* ---- rows and groups ---- */

void bench_rows_add(bench_rows *rows, bench_report *r, cJSON *row)
{
    char group[sizeof rows->group];
    bench_report_add(r, &r->rows, row);
    if (!row || r->out_of_memory) return;
    snprintf(group, sizeof group, "%.60s %.60s %.500s %.30s", json_text(row, "suite"), json_text(row, "list"),
             json_text(row, "type"), json_text(row, "data"));
    if (strcmp(group, rows->group) != 0 && r->format == BENCH_TABLE) {
        print_heading(rows, r, row);
        rows->refused[0] = 0;
    }
    memcpy(rows->group, group, sizeof group);
    if (!r->has_rows_above && r->format == BENCH_CSV) print_csv_heading(r);
    r->has_rows_above = r->format == BENCH_CSV;
    if (r->format == BENCH_TABLE) print_line(rows, r, row);
    if (r->format == BENCH_CSV) print_csv_line(r, row);
    bench_report_break(r);
}

/* How fast a kernel is that gives wrong results means nothing. */
static int is_wrong(const cJSON *row)
{
    return json_number(cJSON_GetObjectItem(row, "check"), "reference") > 1;
}

/* What each layout costs on average, of right results. */
static void sum_up_costs(const bench_report *r, int first)
{
    const char *before = "  time / time of the aligned layout, geometric means: ";
    for (int layout = BENCH_ALIGNED + 1; layout < BENCH_MISALIGNS; layout++) {
        double sum = 0;
        int count = 0;
        for (int i = first; i < cJSON_GetArraySize(r->rows); i++) {
            const cJSON *row = cJSON_GetArrayItem(r->rows, i);
            const double cost = json_number(row, "cost");
            const char *name = bench_misalign_name((bench_misalign)layout);
            if (strcmp(json_text(row, "layout"), name) != 0 || isnan(cost) || is_wrong(row)) continue;
            sum += log(cost);
            count++;
        }
        if (count == 0) continue;
        printf("%s%s %.2f", before, bench_misalign_name((bench_misalign)layout), exp(sum / count));
        before = ", ";
    }
    if (*before == ',') putchar('\n');
}

void bench_rows_sum_up(bench_report *r, int first)
{
    const cJSON *worst = NULL, *best = NULL, *last = NULL;
    double sum = 0;
    int count = 0;
    if (r->format == BENCH_TABLE) sum_up_costs(r, first);
    for (int i = first; i < cJSON_GetArraySize(r->rows); i++) {
        const cJSON *row = cJSON_GetArrayItem(r->rows, i);
        const double ratio = json_number(row, "ratio");
        if (isnan(ratio) || ratio <= 0 || is_wrong(row)) continue;
        sum += log(ratio);
        count++;
        if (!worst || ratio < json_number(worst, "ratio")) worst = row;
        if (!best || ratio > json_number(best, "ratio")) best = row;
        last = row;
    }
    if (count == 0) return;
    const double mean = exp(sum / count), low = json_number(worst, "ratio"), high = json_number(best, "ratio");
    cJSON *summary = cJSON_CreateObject();
    const int ok = summary && cJSON_AddStringToObject(summary, "suite", json_text(last, "suite")) &&
                   cJSON_AddStringToObject(summary, "list", json_text(last, "list")) &&
                   cJSON_AddStringToObject(summary, "type", json_text(last, "type")) &&
                   cJSON_AddNumberToObject(summary, "rows", count) && cJSON_AddNumberToObject(summary, "geomean", mean) &&
                   cJSON_AddNumberToObject(summary, "worst", low) && cJSON_AddNumberToObject(summary, "best", high);
    if (r->format == BENCH_TABLE)
        printf("  best peer / ours, geometric mean of %d: %.2f; worst %.2f (%s), best %.2f (%s)\n", count, mean, low,
               json_text(worst, "problem"), high, json_text(best, "problem"));
    if (!ok) {
        cJSON_Delete(summary);
        summary = NULL;
    }
    bench_report_add(r, &r->summaries, summary);
    bench_report_break(r);
}
