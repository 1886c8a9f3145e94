/* Tuning as a JSON object: see tune_report.h. */
#include "tune_groups.h"
#include "tune_report.h"

#include <cjson/cJSON.h>

/* What is unknown is left out. Each returns 0 if memory ran out. */
static int add_text(cJSON *object, const char *name, const char *text)
{
    return !text[0] || cJSON_AddStringToObject(object, name, text);
}

static int add_number(cJSON *object, const char *name, double number)
{
    return number <= 0 || cJSON_AddNumberToObject(object, name, number);
}

/* A problem as it stands in one group. */
static int add_row(cJSON *rows, const char *list, const tune_problem *p)
{
    const tune_found *f = &p->found;
    cJSON *row = cJSON_CreateObject();
    if (!row || !cJSON_AddItemToArray(rows, row)) {
        cJSON_Delete(row);
        return 0;
    }
    return add_text(row, "list", list) && add_text(row, "problem", p->product.text) &&
           add_text(row, "outcome", tune_outcome_name(p->outcome)) && add_text(row, "kernel", f->kernel) &&
           add_number(row, "us", f->us) && add_text(row, "planned", f->planned) && add_number(row, "planned_us", f->planned_us) &&
           add_number(row, "gain", tune_gain(f)) && add_text(row, "runner_up", f->runner_up) &&
           add_number(row, "runner_up_us", f->runner_up_us) && add_text(row, "reason", f->reason) &&
           cJSON_AddNumberToObject(row, "measured", (double)f->measured) &&
           cJSON_AddNumberToObject(row, "to_measure", (double)p->rank.count) &&
           cJSON_AddNumberToObject(row, "candidates", (double)p->rank.all) && add_number(row, "created", (double)p->created) &&
           (!p->is_wrong || cJSON_AddTrueToObject(row, "wrong")) && add_text(row, "error", p->error);
}

static int add_rows(cJSON *root, const tune_list *list)
{
    size_t row = 0;
    cJSON *rows = cJSON_AddArrayToObject(root, "rows");
    for (size_t g = 0; g < list->group_count && rows; g++)
        for (; row < list->groups[g].end; row++)
            if (!add_row(rows, list->groups[g].name, &list->problems[list->rows[row]])) return 0;
    return rows != NULL;
}

static int add_groups(cJSON *root, const tune_list *list)
{
    tune_group g;
    cJSON *groups = cJSON_AddArrayToObject(root, "groups");
    if (!groups) return 0;
    for (tune_group_begin(list, &g); tune_group_next(&g);) {
        cJSON *one = cJSON_CreateObject();
        if (!one || !cJSON_AddItemToArray(groups, one)) {
            cJSON_Delete(one);
            return 0;
        }
        const int ok = add_text(one, "list", g.name) && add_text(one, "type", g.type) &&
                       cJSON_AddNumberToObject(one, "sizes", (double)g.sizes) &&
                       cJSON_AddNumberToObject(one, "tuned", (double)g.recorded) &&
                       cJSON_AddNumberToObject(one, "faster", (double)g.faster) && add_number(one, "gain", g.mean) &&
                       (!g.best || (add_number(one, "best_gain", tune_gain(&g.best->found)) &&
                                    add_text(one, "best_problem", g.best->product.text)));
        if (!ok) return 0;
    }
    return 1;
}

static int add_counts(cJSON *root, const tune_list *list)
{
    const tune_counts c = tune_count(list);
    const struct { const char *name; size_t count; } rows[] = {{"tuned", c.tuned}, {"kept", c.kept}, {"failed", c.failed},
        {"left", c.left}, {"known", c.known}, {"empty", c.empty}, {"too_large", c.too_large}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!cJSON_AddNumberToObject(root, rows[i].name, (double)rows[i].count)) return 0;
    return add_number(root, "gain", tune_mean_gain(list));
}

static int add_facts(cJSON *root, const tune_facts *f)
{
    return add_text(root, "version", jg_version()) && add_text(root, "cache", f->cache) && add_text(root, "place", f->place) &&
           add_text(root, "device", f->device) && add_number(root, "sm_mhz", f->sm_mhz) &&
           add_text(root, "power_mode", f->power_mode) && add_text(root, "unit", f->software ? "instructions" : "us") &&
           cJSON_AddBoolToObject(root, "dry_run", f->dry_run) && add_number(root, "budget_ms", f->budget_ms) &&
           cJSON_AddNumberToObject(root, "elapsed_ms", f->elapsed_ms) &&
           cJSON_AddNumberToObject(root, "compiled", (double)f->compiled) &&
           cJSON_AddBoolToObject(root, "out_of_time", f->out_of_time) && cJSON_AddBoolToObject(root, "interrupted", f->interrupted);
}

int tune_report_json(const tune_list *list, const tune_facts *facts, FILE *stream)
{
    cJSON *root = cJSON_CreateObject();
    const int ok = root && add_facts(root, facts) && add_rows(root, list) && add_groups(root, list) && add_counts(root, list);
    char *text = ok ? cJSON_Print(root) : NULL;
    cJSON_Delete(root);
    if (!text) return -1;
    fprintf(stream, "%s\n", text);
    cJSON_free(text);
    return 0;
}
