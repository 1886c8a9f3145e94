/* Compares two baselines: see bench_compare.h. */
#include "bench_compare.h"

#include "bench_json.h"
#include "bench_baseline.h"
#include "bench_significance.h"
#include "bench_stats.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_BYTES 256

/* A measure that both have. */
typedef struct pair {
    const cJSON *base, *now;
    double base_median, now_median, p;
} pair;

/* ---- environments ---- */

/* A value as a person would write it. */
static const char *write_value(const cJSON *value, char text[TEXT_BYTES])
{
    if (cJSON_IsString(value)) snprintf(text, TEXT_BYTES, "%s", value->valuestring);
    else if (cJSON_IsNumber(value)) snprintf(text, TEXT_BYTES, "%.10g", value->valuedouble);
    else if (cJSON_IsBool(value)) snprintf(text, TEXT_BYTES, "%s", cJSON_IsTrue(value) ? "yes" : "no");
    else snprintf(text, TEXT_BYTES, "%s", "unknown");
    return text;
}

int bench_compare_device(const cJSON *base, const cJSON *now, int early, char *why, size_t size)
{
    static const char *const members[] = {"device", "arch", "software", "sms"};
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        char was[TEXT_BYTES], is[TEXT_BYTES];
        if (early && !json_member(now, members[i])) continue;
        if (strcmp(write_value(json_member(base, members[i]), was), write_value(json_member(now, members[i]), is)) == 0) continue;
        snprintf(why, size, "is of another device: %s was \"%s\" and is \"%s\" here", members[i], was, is);
        return -1;
    }
    return 0;
}

static int ends_with(const char *text, const char *end)
{
    const size_t length = strlen(text), end_length = strlen(end);
    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

/* Whether a member of the environment differs by more than it does from minute to minute. */
static int differs(const char *name, const cJSON *base, const cJSON *now)
{
    char was[TEXT_BYTES], is[TEXT_BYTES];
    if (cJSON_IsNumber(base) && cJSON_IsNumber(now)) {
        const double apart = fabs(now->valuedouble - base->valuedouble);
        if (strcmp(name, "power_w") == 0 || strcmp(name, "power_end_w") == 0) return 0; /* what it happened to draw */
        if (strcmp(name, "clocks_settled_s") == 0) return 0;
        if (ends_with(name, "_mhz")) return apart > 0.05 * fabs(base->valuedouble);
        if (ends_with(name, "_c")) return apart > 10;
    }
    return strcmp(write_value(base, was), write_value(now, is)) != 0;
}

/* Adds {what, base, now} if it differs. Returns 0 if memory ran out. */
static int add_changed(cJSON *changed, const char *name, const cJSON *base, const cJSON *now)
{
    char was[TEXT_BYTES], is[TEXT_BYTES];
    if (!differs(name, base, now)) return 1;
    cJSON *object = cJSON_CreateObject();
    if (object && cJSON_AddStringToObject(object, "what", name) &&
        cJSON_AddStringToObject(object, "base", write_value(base, was)) &&
        cJSON_AddStringToObject(object, "now", write_value(now, is)) && cJSON_AddItemToArray(changed, object))
        return 1;
    cJSON_Delete(object);
    return 0;
}

static int add_all_changed(cJSON *drift, const cJSON *base, const cJSON *now)
{
    const cJSON *was = json_member(base, "environment"), *is = json_member(now, "environment"), *each;
    cJSON *changed = cJSON_AddArrayToObject(drift, "changed");
    int ok = changed && add_changed(changed, "version", json_member(base, "version"), json_member(now, "version"));
    cJSON_ArrayForEach(each, was) ok = ok && add_changed(changed, each->string, each, json_member(is, each->string));
    cJSON_ArrayForEach(each, is) ok = ok && (json_member(was, each->string) || add_changed(changed, each->string, NULL, each));
    return ok;
}

/* ---- measures ---- */

static const cJSON *find_measure(const cJSON *baseline, const cJSON *like)
{
    const cJSON *each;
    cJSON_ArrayForEach(each, json_member(baseline, "measures"))
        if (strcmp(json_text(each, "name"), json_text(like, "name")) == 0 &&
            strcmp(json_text(each, "unit"), json_text(like, "unit")) == 0)
            return each;
    return NULL;
}

int bench_compare_common(const cJSON *base, const cJSON *now)
{
    const cJSON *each;
    cJSON_ArrayForEach(each, json_member(now, "measures"))
        if (find_measure(base, each)) return 1;
    return 0;
}

/* The values of a measure, the caller's; at least one. */
static double *copy_values(const cJSON *measure, size_t *count)
{
    const cJSON *values = json_member(measure, "values"), *each;
    double *copy = malloc(((size_t)cJSON_GetArraySize(values) + 1) * sizeof *copy);
    *count = 0;
    if (!copy) return NULL;
    cJSON_ArrayForEach(each, values) copy[(*count)++] = each->valuedouble;
    return copy;
}

/* Returns 0 if memory ran out. */
static int judge(pair *each)
{
    size_t base_count, now_count;
    double *base = copy_values(each->base, &base_count), *now = copy_values(each->now, &now_count);
    const int ok = base && now;
    if (ok) {
        each->p = bench_mann_whitney(base, base_count, now, now_count);
        each->base_median = bench_summarise(base, base_count).p50;
        each->now_median = bench_summarise(now, now_count).p50;
    }
    free(base);
    free(now);
    return ok && each->p >= 0;
}

/* All pairs, the caller's, judged one by one; null if memory ran out. */
static pair *judge_all(const cJSON *base, const cJSON *now, size_t *count)
{
    pair *pairs = malloc(((size_t)cJSON_GetArraySize(json_member(base, "measures")) + 1) * sizeof *pairs);
    const cJSON *each;
    *count = 0;
    cJSON_ArrayForEach(each, json_member(base, "measures"))
    {
        const cJSON *other = pairs ? find_measure(now, each) : NULL;
        if (!other) continue;
        pairs[*count] = (pair){.base = each, .now = other};
        if (judge(&pairs[(*count)++])) continue;
        free(pairs);
        return NULL;
    }
    return pairs;
}

static const char *verdict_of(const pair *each, double adjusted, double percent)
{
    const double part = percent / 100;
    if (!(adjusted < BENCH_COMPARE_P)) return "same";
    if (each->now_median > each->base_median * (1 + part)) return "slower";
    if (each->now_median < each->base_median * (1 - part)) return "faster";
    return "same";
}

static int add_row(cJSON *rows, const pair *each, double adjusted, const char *verdict)
{
    const double change = 100 * (each->now_median / each->base_median - 1);
    cJSON *row = cJSON_CreateObject();
    if (row && cJSON_AddStringToObject(row, "name", json_text(each->base, "name")) &&
        cJSON_AddStringToObject(row, "unit", json_text(each->base, "unit")) &&
        cJSON_AddNumberToObject(row, "base", each->base_median) && cJSON_AddNumberToObject(row, "now", each->now_median) &&
        cJSON_AddNumberToObject(row, "change_percent", change) && cJSON_AddNumberToObject(row, "p", each->p) &&
        cJSON_AddNumberToObject(row, "p_adjusted", adjusted) && cJSON_AddStringToObject(row, "verdict", verdict) &&
        cJSON_AddItemToArray(rows, row))
        return 1;
    cJSON_Delete(row);
    return 0;
}

/* Adds "rows", "slower" and "faster". */
static int add_rows(cJSON *drift, const pair *pairs, size_t count, double percent)
{
    cJSON *rows = cJSON_AddArrayToObject(drift, "rows");
    double *adjusted = malloc((count + 1) * sizeof *adjusted);
    int slower = 0, faster = 0;
    int ok = rows && adjusted;
    for (size_t i = 0; i < count && ok; i++) adjusted[i] = pairs[i].p;
    ok = ok && bench_benjamini_hochberg(adjusted, count) == 0;
    for (size_t i = 0; i < count && ok; i++) {
        const char *verdict = verdict_of(&pairs[i], adjusted[i], percent);
        slower += strcmp(verdict, "slower") == 0;
        faster += strcmp(verdict, "faster") == 0;
        ok = add_row(rows, &pairs[i], adjusted[i], verdict);
    }
    free(adjusted);
    return ok && cJSON_AddNumberToObject(drift, "slower", slower) && cJSON_AddNumberToObject(drift, "faster", faster);
}

/* The names of the measures of `of` that `other` lacks. */
static int add_names(cJSON *drift, const char *array, const cJSON *of, const cJSON *other)
{
    cJSON *names = cJSON_AddArrayToObject(drift, array);
    const cJSON *each;
    if (!names) return 0;
    cJSON_ArrayForEach(each, json_member(of, "measures"))
    {
        cJSON *name = find_measure(other, each) ? NULL : cJSON_CreateString(json_text(each, "name"));
        if (name && !cJSON_AddItemToArray(names, name)) {
            cJSON_Delete(name);
            return 0;
        }
    }
    return 1;
}

static int add_heading(cJSON *drift, const cJSON *base, const cJSON *now, const char *base_path, double percent)
{
    return cJSON_AddStringToObject(drift, "base", base_path) &&
           cJSON_AddStringToObject(drift, "base_started", json_text(base, "started")) &&
           cJSON_AddNumberToObject(drift, "base_runs", (double)bench_baseline_runs(base)) &&
           cJSON_AddNumberToObject(drift, "runs", (double)bench_baseline_runs(now)) &&
           cJSON_AddNumberToObject(drift, "percent", percent) && cJSON_AddNumberToObject(drift, "p", BENCH_COMPARE_P);
}

cJSON *bench_compare(const cJSON *base, const cJSON *now, const char *base_path, double percent)
{
    size_t count;
    cJSON *drift = cJSON_CreateObject();
    pair *pairs = judge_all(base, now, &count);
    const int ok = drift && pairs && add_heading(drift, base, now, base_path, percent) && add_all_changed(drift, base, now) &&
                   add_rows(drift, pairs, count, percent) && add_names(drift, "missing", base, now) &&
                   add_names(drift, "new", now, base);
    free(pairs);
    if (ok) return drift;
    cJSON_Delete(drift);
    return NULL;
}

/* One measure can at best be one of the two outermost of all ways to choose, and then is multiplied by the number of measures. */
double bench_compare_least_p(size_t base_runs, size_t now_runs, size_t measures)
{
    const double base = (double)base_runs, now = (double)now_runs;
    const double p = 2 * exp(lgamma(base + 1) + lgamma(now + 1) - lgamma(base + now + 1)) * (double)measures;
    return p < 1 ? p : 1;
}
