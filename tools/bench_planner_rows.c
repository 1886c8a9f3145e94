/* Blocks of jitgemm-bench planner as a table and as CSV: see bench_planner.h. */
#include "bench_planner.h"

#include "kernel_tile.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { NAME_WIDTH = 34, TILE_WIDTH = 28 };

static void print_figures(const planner_sum *sum)
{
    char text[32];
    snprintf(text, sizeof text, "%zu of %zu", sum->recorded, sum->problems);
    printf("%12s", text);
    snprintf(text, sizeof text, "%zu (%.0f %%)", sum->right, sum->known ? 100.0 * (double)sum->right / (double)sum->known : 0);
    printf("%14s", sum->known ? text : "-");
    if (!sum->known) {
        printf("%9s%8s\n", "-", "-");
        return;
    }
    printf("%9.3f%8.2f  %s\n", planner_mean(sum), planner_loss(sum->slowest), sum->slowest->problem);
}

static void print_name(const char *suite, const char *list, const char *type)
{
    char name[768];
    snprintf(name, sizeof name, "%.100s%s%.100s%s%.500s", suite, strcmp(suite, list) ? ": " : "", strcmp(suite, list) ? list : "",
             *type ? ", " : "", type);
    printf("  %-*s", NAME_WIDTH, name);
}

/* The groups of a suite of which something is recorded, and their sum. */
static void print_suite(const planner_block *b, size_t first, size_t end, const planner_sum *sum)
{
    size_t lines = 0;
    for (size_t g = first; g < end; g++) {
        if (!b->groups[g].sum.recorded) continue;
        print_name(b->groups[g].suite, b->groups[g].list, b->groups[g].type);
        print_figures(&b->groups[g].sum);
        lines++;
    }
    if (lines < 2) return;
    print_name(b->groups[first].suite, b->groups[first].suite, "all of these");
    print_figures(sum);
}

static void print_one(const planner_block *b, const planner_record *r)
{
    const int decimals = b->software ? 0 : 2;
    char best[64], chosen[64];
    kernel_tile(r->kernel, best, sizeof best);
    kernel_tile(r->planned, chosen, sizeof chosen);
    printf("  %-*s%8.2f%12.*f  %-*s%12.*f  %s\n", NAME_WIDTH, r->problem, planner_loss(r), decimals, r->us, TILE_WIDTH, best, decimals,
           r->planned_us, chosen);
    if (*r->reason) printf("      %s\n", r->reason);
    if (*r->runner_up && r->runner_up_us > 0) {
        kernel_tile(r->runner_up, best, sizeof best);
        printf("      second: %s, %.*f\n", best, decimals, r->runner_up_us);
    }
}

static void print_worst(const planner_block *b, size_t first, size_t end)
{
    const planner_record *worst[PLANNER_WORST];
    const size_t count = planner_worst(b, first, end, worst);
    char heading[160];
    if (!count) return;
    snprintf(heading, sizeof heading, "%.100s, worst", b->groups[first].suite);
    printf("\n  %-*s%8s%12s  %-*s%12s  %s\n", NAME_WIDTH, heading, "loss", b->software ? "instr." : "us", TILE_WIDTH, "recorded",
           b->software ? "instr." : "us", "the model's choice");
    for (size_t i = 0; i < count; i++) print_one(b, worst[i]);
}

/* What nothing is recorded of, whole suites by their names alone; and how to change that. */
static void print_left(const planner_block *b)
{
    const char *before = "\nNothing recorded: ";
    for (size_t first = 0, end; first < b->count; first = end) {
        const planner_sum sum = planner_suite(b, first, &end);
        if (!sum.recorded) printf("%s%s", before, b->groups[first].suite), before = ", ";
        for (size_t g = first; g < end && sum.recorded; g++)
            if (!b->groups[g].sum.recorded) printf("%s%s %s", before, b->groups[g].list, b->groups[g].type), before = ", ";
    }
    if (b->sum.recorded == b->sum.problems) return;
    printf("\n%zu of %zu sizes have no recorded plan; jitgemm-prewarm --tune records them, e.g. with --suite or --list, on the device.\n",
           b->sum.problems - b->sum.recorded, b->sum.problems);
}

void planner_print_table(const planner_block *b, const char *path, int is_first)
{
    size_t end;
    if (is_first) printf("jitgemm %s, planner: %s\n", jg_version(), path);
    printf("\n%s%s%s: recorded plans: %zu\n", b->place, *b->device ? ", " : "", b->device, b->records);
    printf("loss: %s of the model's choice / of the recorded plan\n\n", b->software ? "instructions" : "time");
    printf("  %-*s%12s%14s%9s%8s\n", NAME_WIDTH, "suite", "recorded", "model right", "geomean", "worst");
    for (size_t first = 0; first < b->count; first = end) {
        const planner_sum sum = planner_suite(b, first, &end);
        if (sum.recorded) print_suite(b, first, end, &sum);
    }
    print_name("all", "all", "");
    print_figures(&b->sum);
    for (size_t first = 0; first < b->count; first = end) {
        planner_suite(b, first, &end);
        print_worst(b, first, end);
    }
    print_left(b);
}

/* ---- CSV ---- */

static void print_number(double value)
{
    if (isnan(value) || !(value > 0)) putchar(',');
    else printf(",%.9g", value);
}

void planner_print_csv(const planner_block *b, int is_first)
{
    if (is_first)
        puts("place,device,suite,list,type,problem,kernel,planned,runner_up,reason,us,planned_us,runner_up_us,loss,right,measured,all");
    for (size_t g = 0; g < b->count; g++)
        for (size_t i = 0; i < b->groups[g].sum.problems; i++) {
            const planner_group *group = &b->groups[g];
            const planner_record *r = group->rows[i].record;
            if (!r) continue;
            const char *const texts[] = {r->place, r->device, group->suite, group->list, group->type, group->rows[i].problem,
                                         r->kernel, r->planned, r->runner_up, r->reason};
            for (size_t t = 0; t < sizeof texts / sizeof *texts; t++) {
                if (t) putchar(',');
                bench_report_csv_text(texts[t]);
            }
            print_number(r->us);
            print_number(r->planned_us);
            print_number(r->runner_up_us);
            print_number(planner_loss(r));
            printf(",%d,%u,%u\n", planner_is_right(r), r->measured, r->all);
        }
}
