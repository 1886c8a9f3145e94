/* Candidates on standard output and in a file: see bench_plan_rows.h. */
#include "bench_plan_rows.h"

#include "bench_json.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define NAME_WIDTH 30
#define PLAN_WIDTH 32

/* The numbers of a candidate, as columns of CSV. */
static const char *const numbers[] = {"tile_m",     "tile_n", "tile_k",       "warp_m",    "warp_n",        "stages",
                                      "slices",     "threads", "grid_x",      "grid_y",    "shared_bytes",  "registers",
                                      "blocks_per_sm", "waves", "estimate_clocks", "us",   "samples",       "instructions"};

static const cJSON *candidate_of(const cJSON *row, const char *which)
{
    const double number = json_number(row, which);
    return isnan(number) ? NULL : cJSON_GetArrayItem(cJSON_GetObjectItem(row, "candidates"), (int)number);
}

static int count_candidates(const cJSON *row)
{
    return cJSON_GetArraySize(cJSON_GetObjectItem(row, "candidates"));
}

/* ---- CSV ---- */

static void print_text(FILE *to, const char *text)
{
    if (!strpbrk(text, ",\"\n")) {
        fputs(text, to);
        return;
    }
    putc('"', to);
    for (; *text; text++) {
        if (*text == '"') putc('"', to);
        putc(*text, to);
    }
    putc('"', to);
}

static void print_csv_heading(FILE *to)
{
    fputs("suite,list,problem,m,n,k,batch,type,data,candidate,of_class,chosen,best,kernel,family", to);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) fprintf(to, ",%s", numbers[i]);
    fputs(",check,wrong,refused\n", to);
}

static void print_csv_number(FILE *to, double value)
{
    if (isnan(value)) putc(',', to);
    else fprintf(to, ",%.9g", value);
}

static void print_csv_candidate(FILE *to, const cJSON *row, const cJSON *one, int index)
{
    static const char *const texts[] = {"suite", "list", "problem"}, *const sizes[] = {"m", "n", "k", "batch"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (i) putc(',', to);
        print_text(to, json_text(row, texts[i]));
    }
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) print_csv_number(to, json_number(row, sizes[i]));
    fprintf(to, ",%s,%s,%d,%d,%d,%d,%s,%s", json_text(row, "type"), json_text(row, "data"), index, json_true(one, "of_class"),
            json_number(row, "chosen") == index, json_number(row, "best") == index, json_text(one, "kernel"),
            json_text(one, "family"));
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) print_csv_number(to, json_number(one, numbers[i]));
    print_csv_number(to, json_number(one, "check"));
    fprintf(to, ",%d,", json_true(one, "wrong"));
    print_text(to, json_text(one, "refused"));
    putc('\n', to);
}

static void print_csv(FILE *to, const cJSON *row)
{
    int index = 0;
    const cJSON *one;
    cJSON_ArrayForEach(one, cJSON_GetObjectItem(row, "candidates")) print_csv_candidate(to, row, one, index++);
}

/* ---- the table ---- */

static void print_heading(const bench_report *r, const cJSON *row)
{
    const char *suite = json_text(row, "suite"), *list = json_text(row, "list");
    printf("\n%s%s%s, %s, operands %s\n", suite, strcmp(suite, list) ? ": " : "", strcmp(suite, list) ? list : "",
           json_text(row, "type"), json_text(row, "data"));
    printf("  %-*s%7s  ", NAME_WIDTH, r->environment.software ? "size" : "size, us", "plans");
    if (r->environment.software) printf("%14s  %s\n", "instructions", "chosen");
    else printf("%-*s%10s  %-*s%10s%8s\n", PLAN_WIDTH, "chosen", "time", PLAN_WIDTH, "best", "time", "gap");
}

/* "mma 128x64x32 w64x32 s3 x2". */
static void format_plan(const cJSON *one, char text[64])
{
    const int slices = (int)json_number(one, "slices");
    *text = 0;
    if (!one || isnan(json_number(one, "tile_m"))) return;
    const int length = snprintf(text, 64, "%s %.0fx%.0fx%.0f w%.0fx%.0f s%.0f", json_text(one, "family"),
                                json_number(one, "tile_m"), json_number(one, "tile_n"), json_number(one, "tile_k"),
                                json_number(one, "warp_m"), json_number(one, "warp_n"), json_number(one, "stages"));
    if (slices > 1 && length < 64) snprintf(text + length, (size_t)(64 - length), " x%d", slices);
}

static void print_plan(const cJSON *one)
{
    char text[64];
    const double us = json_number(one, "us");
    format_plan(one, text);
    printf("%-*s", PLAN_WIDTH, *text ? text : "-");
    if (isnan(us)) printf("%10s", "-");
    else printf("%10.2f", us);
}

/* What went wrong, a line each. */
static void print_faults(const cJSON *row)
{
    const cJSON *one;
    cJSON_ArrayForEach(one, cJSON_GetObjectItem(row, "candidates"))
    {
        const char *why = json_text(one, "refused"), *kernel = json_text(one, "kernel");
        if (json_true(one, "wrong")) printf("    WRONG RESULT of %s\n", kernel);
        if (*why) printf("    refused: %s%s%.*s\n", kernel, *kernel ? ": " : "", (int)strcspn(why, "\n"), why);
    }
}

static void print_line(const bench_report *r, const cJSON *row)
{
    char text[64];
    const cJSON *chosen = candidate_of(row, "chosen");
    printf("  %-*s%7d  ", NAME_WIDTH, json_text(row, "problem"), count_candidates(row));
    if (r->environment.software) {
        const double instructions = json_number(chosen, "instructions");
        format_plan(chosen, text);
        if (isnan(instructions)) printf("%14s", "-");
        else printf("%14.0f", instructions);
        printf("  %s\n", text);
    } else {
        const double gap = json_number(row, "gap");
        const cJSON *best = candidate_of(row, "best");
        print_plan(chosen);
        printf("  ");
        print_plan(best);
        snprintf(text, sizeof text, "%.2f", gap);
        printf("%8s%s\n", isnan(gap) ? "-" : text, !best || json_true(best, "of_class") ? "" : "  of another class");
    }
    print_faults(row);
}

/* ---- rows and groups ---- */

void bench_plan_rows_add(bench_plan_rows *rows, bench_report *r, cJSON *row)
{
    char group[sizeof rows->group];
    bench_report_add(r, &r->plans, row);
    if (!row || r->out_of_memory) return;
    snprintf(group, sizeof group, "%.60s %.60s %.500s %.30s", json_text(row, "suite"), json_text(row, "list"),
             json_text(row, "type"), json_text(row, "data"));
    if (strcmp(group, rows->group) != 0 && r->format == BENCH_TABLE) print_heading(r, row);
    memcpy(rows->group, group, sizeof group);
    if (r->format == BENCH_TABLE) print_line(r, row);
    if (r->format == BENCH_CSV) {
        if (!r->has_rows_above) {
            putchar('\n');
            print_csv_heading(stdout);
        }
        r->has_rows_above = 1;
        print_csv(stdout, row);
    }
    if (rows->file) {
        if (!rows->has_heading) print_csv_heading(rows->file);
        rows->has_heading = 1;
        print_csv(rows->file, row);
        if (fflush(rows->file) != 0 && !rows->write_error) rows->write_error = errno;
    }
    bench_report_break(r);
}

void bench_plan_rows_sum_up(bench_report *r, int first)
{
    const cJSON *worst = NULL;
    double sum = 0;
    int count = 0;
    for (int i = first; i < cJSON_GetArraySize(r->plans); i++) {
        const cJSON *row = cJSON_GetArrayItem(r->plans, i);
        const double gap = json_number(row, "gap");
        if (isnan(gap)) continue;
        sum += log(gap);
        count++;
        if (!worst || gap > json_number(worst, "gap")) worst = row;
    }
    if (count == 0) return;
    const double mean = exp(sum / count), high = json_number(worst, "gap");
    cJSON *summary = cJSON_CreateObject();
    const int ok = summary && cJSON_AddStringToObject(summary, "suite", json_text(worst, "suite")) &&
                   cJSON_AddStringToObject(summary, "list", json_text(worst, "list")) &&
                   cJSON_AddStringToObject(summary, "type", json_text(worst, "type")) &&
                   cJSON_AddNumberToObject(summary, "rows", count) && cJSON_AddNumberToObject(summary, "geomean", mean) &&
                   cJSON_AddNumberToObject(summary, "worst", high);
    if (r->format == BENCH_TABLE)
        printf("  chosen / best, geometric mean of %d: %.3f; worst %.2f (%s)\n", count, mean, high, json_text(worst, "problem"));
    if (!ok) {
        cJSON_Delete(summary);
        summary = NULL;
    }
    bench_report_add(r, &r->gaps, summary);
    bench_report_break(r);
}
