/* Keeps and writes what a prewarm did: see prewarm_report.h. */
#include "prewarm_report.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

report_row *report_add(report *r, const char *outcome, const char *problem, const char *kernel, const char *error,
                       double ms)
{
    if (r->count == r->capacity) {
        size_t capacity = 2 * r->capacity + 64;
        report_row *rows = realloc(r->rows, capacity * sizeof *rows);
        if (!rows) return NULL;
        r->rows = rows;
        r->capacity = capacity;
    }
    report_row row = {.problem = strdup(problem), .kernel = strdup(kernel), .error = strdup(error),
                      .outcome = outcome, .ms = ms};
    if (!row.problem || !row.kernel || !row.error) {
        free(row.problem), free(row.kernel), free(row.error);
        return NULL;
    }
    r->rows[r->count] = row;
    return &r->rows[r->count++];
}

/* Compiler logs have many lines; they are indented so that they cannot be mistaken for messages of ours. */
static void print_indented(const char *text, FILE *stream)
{
    while (*text) {
        int length = (int)strcspn(text, "\n");
        fprintf(stream, "    %.*s\n", length, text);
        text += length;
        text += *text == '\n';
    }
}

void report_failures(const report *r, size_t first, FILE *stream)
{
    const char *reason = NULL;
    for (size_t i = first; i < r->count; i++) {
        const report_row *row = &r->rows[i];
        if (strcmp(row->outcome, "failed") != 0) continue;
        int repeats = reason && strcmp(reason, row->error) == 0;
        reason = row->error;
        fprintf(stream, "jitgemm-prewarm: failed: %s  %s%s\n", row->problem, row->kernel,
                repeats ? ": for the same reason" : "");
        if (!repeats) print_indented(reason, stream);
    }
}

void report_target(const char *kernel, char *target, size_t size)
{
    int arch;
    *target = 0;
    if (sscanf(kernel, "jg_sm%d_", &arch) == 1) snprintf(target, size, "sm_%d", arch);
}

static cJSON *row_to_json(const report_row *row)
{
    char target[32];
    cJSON *object = cJSON_CreateObject();
    report_target(row->kernel, target, sizeof target);
    cJSON_AddStringToObject(object, "problem", row->problem);
    cJSON_AddStringToObject(object, "kernel", row->kernel);
    cJSON_AddStringToObject(object, "target", target);
    cJSON_AddStringToObject(object, "outcome", row->outcome);
    cJSON_AddNumberToObject(object, "ms", row->ms);
    if (*row->error) cJSON_AddStringToObject(object, "error", row->error);
    return object;
}

int report_json(const report *r, FILE *stream)
{
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "version", jg_version());
    cJSON_AddStringToObject(root, "cache", r->cache_path);
    if (*r->factory_path) cJSON_AddStringToObject(root, "factory", r->factory_path);
    cJSON *rows = cJSON_AddArrayToObject(root, "kernels");
    for (size_t i = 0; i < r->count; i++) cJSON_AddItemToArray(rows, row_to_json(&r->rows[i]));
    cJSON_AddNumberToObject(root, "compiled", (double)r->compiled);
    cJSON_AddNumberToObject(root, "cached", (double)r->cached);
    cJSON_AddNumberToObject(root, "failed", (double)r->failed);
    if (r->generic_set) cJSON_AddStringToObject(root, "generic_set", r->generic_set);
    if (r->takes_misses) cJSON_AddNumberToObject(root, "misses", (double)r->misses);
    if (r->seals) cJSON_AddBoolToObject(root, "sealed", r->sealed);
    if (r->repaired) cJSON_AddBoolToObject(root, "repaired", 1);
    cJSON_AddNumberToObject(root, "elapsed_ms", r->elapsed_ms);
    if (r->budget_ms > 0) cJSON_AddNumberToObject(root, "budget_ms", r->budget_ms);
    cJSON_AddNumberToObject(root, "left", (double)r->left);
    if (r->archs_left) cJSON_AddNumberToObject(root, "archs_left", (double)r->archs_left);
    cJSON_AddBoolToObject(root, "interrupted", r->interrupted);
    char *text = cJSON_Print(root);
    cJSON_Delete(root);
    if (!text) return -1;
    fprintf(stream, "%s\n", text);
    cJSON_free(text);
    return 0;
}

void report_last_line(const report *r, FILE *stream)
{
    fprintf(stream, "compiled %zu, cached %zu, failed %zu\n", r->compiled, r->cached, r->failed);
}

void report_free(report *r)
{
    for (size_t i = 0; i < r->count; i++) {
        free(r->rows[i].problem);
        free(r->rows[i].kernel);
        free(r->rows[i].error);
    }
    free(r->rows);
    *r = (report){0};
}
