/* Lines and the table of tuning: see tune_report.h; JSON is in tune_json.c. */
#include "tune_groups.h"
#include "tune_report.h"

#include <math.h>
#include <string.h>
#include <time.h>

tune_counts tune_count(const tune_list *list)
{
    tune_counts c = {0};
    size_t *const counts[] = {[TUNE_LEFT] = &c.left, [TUNE_TUNED] = &c.tuned, [TUNE_KEPT] = &c.kept, [TUNE_KNOWN] = &c.known,
                              [TUNE_FAILED] = &c.failed, [TUNE_EMPTY] = &c.empty, [TUNE_TOO_LARGE] = &c.too_large};
    for (size_t i = 0; i < list->count; i++) ++*counts[list->problems[i].outcome];
    return c;
}

double tune_mean_gain(const tune_list *list)
{
    double sum = 0;
    size_t count = 0;
    for (size_t i = 0; i < list->count; i++) {
        const double gain = tune_is_recorded(&list->problems[i]) ? tune_gain(&list->problems[i].found) : 0;
        if (gain <= 0) continue;
        sum += log(gain);
        count++;
    }
    return count ? exp(sum / (double)count) : 0;
}

/* ---- lines ---- */

/* "4.31 us" or "12345 instructions". */
static void format_cost(double cost, int software, char *text, size_t size)
{
    if (software) snprintf(text, size, "%.0f instructions", cost);
    else snprintf(text, size, "%.2f us", cost);
}

/* "5 min" of a number of seconds. */
static void format_age(double seconds, char *text, size_t size)
{
    static const struct { double seconds; const char *name; } units[] = {{86400, "days"}, {3600, "hours"}, {60, "min"}, {1, "s"}};
    size_t i = 0;
    if (seconds < 0) seconds = 0;
    while (i < 3 && seconds < 2 * units[i].seconds) i++;
    snprintf(text, size, "%.0f %s", floor(seconds / units[i].seconds), units[i].name);
}

void tune_report_line(const tune_problem *p, int software, char *text, size_t size)
{
    char cost[64], age[32];
    const tune_found *f = &p->found;
    const char *name = tune_outcome_name(p->outcome);
    format_cost(f->us, software, cost, sizeof cost);
    switch (p->outcome) {
    case TUNE_TUNED: case TUNE_KEPT:
        snprintf(text, size, "%-6s %.3fx  %s  %s  %s%s%s%s", name, tune_gain(f), cost, p->product.text, f->kernel,
                 f->reason[0] ? "  (" : "", f->reason, f->reason[0] ? ")" : "");
        break;
    case TUNE_KNOWN:
        format_age(difftime(time(NULL), (time_t)p->created), age, sizeof age);
        snprintf(text, size, "%-6s %.3fx  %s  %s  %s  (tuned %s ago, --retune measures again)", name, tune_gain(f), cost,
                 p->product.text, f->kernel, age);
        break;
    case TUNE_FAILED: snprintf(text, size, "%-6s %s: %s", name, p->product.text, p->error); break;
    case TUNE_LEFT:
        snprintf(text, size, "%-6s %s  %zu of %zu plans%s", name, p->product.text, p->rank.count - p->tried, p->rank.all,
                 p->tried ? ", the rest of those worth a look" : "");
        break;
    default: snprintf(text, size, "%-6s %s", name, p->product.text);
    }
}

/* ---- the table ---- */

static void print_group(const tune_group *g, FILE *stream)
{
    char best[64 + JG_PROBLEM_TEXT_BYTES] = "-", mean[32] = "-";
    if (g->mean > 0) snprintf(mean, sizeof mean, "%.3fx", g->mean);
    if (g->best && tune_gain(&g->best->found) > 1)
        snprintf(best, sizeof best, "%.3fx of %s", tune_gain(&g->best->found), g->best->product.text);
    fprintf(stream, "%-14s %-12s %6zu %6zu %7zu %8s  %s\n", g->name, g->type, g->sizes, g->recorded, g->faster, mean, best);
}

void tune_report_table(const tune_list *list, const tune_facts *facts, FILE *stream)
{
    tune_group g;
    const tune_counts c = tune_count(list);
    fprintf(stream, "%s (%s)", facts->device, facts->place);
    if (facts->sm_mhz > 0) fprintf(stream, ", %.0f MHz", facts->sm_mhz);
    fprintf(stream, "%s%s: plans in %s\n", *facts->power_mode ? ", " : "", facts->power_mode, facts->cache);
    if (facts->software) fputs("Counted instructions take the place of times: the software GPU has none.\n", stream);
    fprintf(stream, "%-14s %-12s %6s %6s %7s %8s  %s\n", "list", "type", "sizes", "tuned", "faster", "gain", "best");
    for (tune_group_begin(list, &g); tune_group_next(&g);) print_group(&g, stream);
    if (c.known) fprintf(stream, "already tuned: %zu; --retune measures again\n", c.known);
    if (c.too_large) fprintf(stream, "left out, too large for the software GPU: %zu\n", c.too_large);
    if (c.empty) fprintf(stream, "nothing to compute: %zu\n", c.empty);
}

void tune_report_last_line(const tune_list *list, FILE *stream)
{
    const tune_counts c = tune_count(list);
    fprintf(stream, "tuned %zu, kept %zu, failed %zu, left %zu\n", c.tuned, c.kept, c.failed, c.left);
}
