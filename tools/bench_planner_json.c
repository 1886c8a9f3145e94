/* Blocks of jitgemm-bench planner as one JSON document: see bench_planner.h, and bench_result.h for what is in it. */
#include "bench_planner.h"

#include "bench_result.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static int add_text(cJSON *object, const char *name, const char *text)
{
    return !*text || cJSON_AddStringToObject(object, name, text) != NULL;
}

static int add_number(cJSON *object, const char *name, double value)
{
    return isnan(value) || cJSON_AddNumberToObject(object, name, value) != NULL;
}

static double known(double value)
{
    return value > 0 ? value : NAN;
}

static int add_sum(cJSON *object, const planner_sum *sum)
{
    return add_number(object, "problems", (double)sum->problems) && add_number(object, "recorded", (double)sum->recorded) &&
           add_number(object, "known", (double)sum->known) && add_number(object, "right", (double)sum->right) &&
           add_number(object, "geomean", planner_mean(sum)) &&
           (!sum->slowest || (add_number(object, "worst", planner_loss(sum->slowest)) &&
                              add_text(object, "worst_problem", sum->slowest->problem)));
}

/* An object for the end of an array; null if memory ran out. */
static cJSON *append(cJSON *array)
{
    cJSON *object = array ? cJSON_CreateObject() : NULL;
    if (object && cJSON_AddItemToArray(array, object)) return object;
    cJSON_Delete(object);
    return NULL;
}

static int add_groups(cJSON *to, const planner_block *b)
{
    cJSON *array = cJSON_AddArrayToObject(to, "groups");
    int ok = array != NULL;
    for (size_t g = 0; g < b->count && ok; g++) {
        const planner_group *group = &b->groups[g];
        cJSON *one = append(array);
        ok = one && add_text(one, "suite", group->suite) && add_text(one, "list", group->list) && add_text(one, "type", group->type) &&
             add_sum(one, &group->sum);
    }
    return ok;
}

static int add_record(cJSON *to, const planner_record *r)
{
    return to && add_text(to, "problem", r->problem) && add_text(to, "kernel", r->kernel) && add_text(to, "planned", r->planned) &&
           add_text(to, "runner_up", r->runner_up) && add_text(to, "reason", r->reason) && add_number(to, "us", known(r->us)) &&
           add_number(to, "planned_us", known(r->planned_us)) && add_number(to, "runner_up_us", known(r->runner_up_us)) &&
           add_number(to, "loss", planner_loss(r)) && add_number(to, "measured", r->measured) && add_number(to, "all", r->all);
}

static int add_suites(cJSON *to, const planner_block *b)
{
    cJSON *array = cJSON_AddArrayToObject(to, "suites");
    int ok = array != NULL;
    for (size_t first = 0, end; first < b->count && ok; first = end) {
        const planner_record *worst[PLANNER_WORST];
        const planner_sum sum = planner_suite(b, first, &end);
        const size_t count = planner_worst(b, first, end, worst);
        cJSON *one = append(array), *rows = NULL;
        ok = one && add_text(one, "suite", b->groups[first].suite) && add_sum(one, &sum) && (rows = cJSON_AddArrayToObject(one, "slowest"));
        for (size_t i = 0; i < count && ok; i++) ok = add_record(append(rows), worst[i]);
    }
    return ok;
}

static int add_block(cJSON *one, const planner_block *b)
{
    return one && add_text(one, "place", b->place) && add_text(one, "device", b->device) &&
           cJSON_AddBoolToObject(one, "software", b->software) && add_number(one, "records", (double)b->records) &&
           add_sum(one, &b->sum) && add_suites(one, b) && add_groups(one, b);
}

int planner_print_json(const planner_block *blocks, size_t count, const char *path)
{
    cJSON *root = cJSON_CreateObject(), *array = NULL;
    int ok = root && add_text(root, "format", BENCH_PLANNER_FORMAT) && add_number(root, "format_version", BENCH_RESULT_FORMAT_VERSION) &&
             add_text(root, "version", jg_version()) && add_text(root, "cache", path) &&
             (array = cJSON_AddArrayToObject(root, "places"));
    for (size_t i = 0; i < count && ok; i++) ok = add_block(append(array), &blocks[i]);
    char *text = ok ? cJSON_Print(root) : NULL;
    cJSON_Delete(root);
    if (!text) return -1;
    puts(text);
    cJSON_free(text);
    return 0;
}
