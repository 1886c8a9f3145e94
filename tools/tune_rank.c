/* Orders a problem's candidates by the planner's model: see tune_rank.h. */
#include "tune_rank.h"

#include "status.h"

#include <stdlib.h>

typedef struct item {
    size_t index;
    double clocks;
    int is_planned;
} item;

/* The model's choice first; of two that it takes for equal, the one that the planner names first. */
static int compare(const void *x, const void *y)
{
    const item *a = x, *b = y;
    if (a->is_planned != b->is_planned) return b->is_planned - a->is_planned;
    if (a->clocks != b->clocks) return a->clocks < b->clocks ? -1 : 1;
    return (a->index > b->index) - (a->index < b->index);
}

static jg_status describe_all(jg_context *context, const jg_problem *problem, item *items, size_t count, double *least)
{
    *least = 0;
    for (size_t i = 0; i < count; i++) {
        jg_plan_details d;
        RETURN_IF_ERROR(jg_plan_describe_candidate(context, problem, i, &d));
        items[i] = (item){i, d.estimate_clocks, d.is_planned != 0};
        if (i == 0 || d.estimate_clocks < *least) *least = d.estimate_clocks;
    }
    return JG_OK;
}

static jg_status take_best(const item *items, size_t count, double least, size_t most, tune_rank *out)
{
    out->all = count;
    out->indices = malloc(count * sizeof *out->indices);
    if (!out->indices) return status_set(JG_ERR_NO_MEMORY, "out of memory for candidates");
    for (size_t i = 0; i < count && (most == 0 || out->count < most); i++)
        if (most == 0 || items[i].is_planned || items[i].clocks <= TUNE_HOPELESS * least) out->indices[out->count++] = items[i].index;
    return JG_OK;
}

jg_status tune_rank_make(jg_context *context, const jg_problem *problem, int all_classes, size_t most, tune_rank *out)
{
    size_t of_class, all;
    double least;
    *out = (tune_rank){0};
    RETURN_IF_ERROR(jg_plan_count_candidates(context, problem, &of_class, &all));
    const size_t count = all_classes ? all : of_class;
    item *items = calloc(count ? count : 1, sizeof *items);
    if (!items) return status_set(JG_ERR_NO_MEMORY, "out of memory for candidates");
    jg_status status = describe_all(context, problem, items, count, &least);
    if (status == JG_OK && least > 0) { /* 0: nothing to compute, or no device */
        qsort(items, count, sizeof *items, compare);
        status = take_best(items, count, least, most, out);
    }
    free(items);
    return status;
}

void tune_rank_free(tune_rank *rank)
{
    free(rank->indices);
    *rank = (tune_rank){0};
}
