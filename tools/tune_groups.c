/* Goes through groups and types: see tune_groups.h. */
#include "tune_groups.h"

#include <math.h>
#include <string.h>

static const tune_problem *at_row(const tune_group *g, size_t row)
{
    return &g->list->problems[g->list->rows[row]];
}

static size_t first_row(const tune_group *g)
{
    return g->number ? g->list->groups[g->number - 1].end : 0;
}

static void label_of(const tune_group *g, size_t row, char label[BENCH_LABEL_BYTES])
{
    bench_label_make(&at_row(g, row)->product.problem, label);
}

/* Whether a row is the first of its type in its group. */
static int is_new(const tune_group *g, size_t row)
{
    char label[BENCH_LABEL_BYTES], other[BENCH_LABEL_BYTES];
    label_of(g, row, label);
    for (size_t i = first_row(g); i < row; i++) {
        label_of(g, i, other);
        if (strcmp(label, other) == 0) return 0;
    }
    return 1;
}

static void sum_up(tune_group *g)
{
    char label[BENCH_LABEL_BYTES];
    double sum = 0;
    size_t known = 0;
    g->sizes = g->recorded = g->faster = 0;
    g->best = NULL;
    for (size_t i = first_row(g); i < g->list->groups[g->number].end; i++) {
        const tune_problem *p = at_row(g, i);
        const double gain = tune_is_recorded(p) ? tune_gain(&p->found) : 0;
        label_of(g, i, label);
        if (strcmp(label, g->type) != 0) continue;
        g->sizes++;
        g->recorded += tune_is_recorded(p) != 0;
        g->faster += gain > 1;
        if (gain <= 0) continue;
        sum += log(gain);
        known++;
        if (!g->best || gain > tune_gain(&g->best->found)) g->best = p;
    }
    g->mean = known ? exp(sum / (double)known) : 0;
}

void tune_group_begin(const tune_list *list, tune_group *group)
{
    *group = (tune_group){.list = list};
}

int tune_group_next(tune_group *g)
{
    for (; g->number < g->list->group_count; g->number++) {
        while (g->row < g->list->groups[g->number].end && !is_new(g, g->row)) g->row++;
        if (g->row == g->list->groups[g->number].end) continue;
        g->name = g->list->groups[g->number].name;
        label_of(g, g->row++, g->type);
        sum_up(g);
        return 1;
    }
    return 0;
}
