/* jitgemm-cache plans: which plans were measured to be the fastest, where, and what that gained; a table or JSON out, or an empty list.
 *
 * The problem is the last column and never shortened: it is to be given to jitgemm-prewarm as it stands. */
#include "cache_commands.h"
#include "cache_format.h"
#include "kernel_tile.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* How many times as fast as what the model would choose; 0: not known. */
static double gain_of(const jg_measured *m)
{
    return m->us > 0 && m->planned_us > 0 ? m->planned_us / m->us : 0;
}

static int count_one(void *user, const jg_cache_plan *plan)
{
    (void)plan;
    ++*(size_t *)user;
    return 0;
}

size_t cache_count_plans(jg_cache *cache)
{
    size_t count = 0;
    return jg_cache_plans(cache, count_one, &count) == JG_OK ? count : 0;
}

/* ---- the table -------------------------------------------------------------------------------------------------- */

typedef struct sum {
    char heading[384];      /* of the rows that come now */
    size_t plans, gains;
    double logarithms;      /* of the gains */
} sum;

typedef struct cell {
    char text[64];
} cell;

static cell tile_of(const char *kernel)
{
    cell out;
    kernel_tile(kernel, out.text, sizeof out.text);
    return out;
}

static cell number(const char *format, double value)
{
    cell out = {"-"};
    if (value > 0) snprintf(out.text, sizeof out.text, format, value);
    return out;
}

/* Rows of one place come together; those of one device of it mostly do. On the software GPU instructions take the place of times. */
static void put_heading(sum *s, const jg_cache_plan *plan)
{
    char heading[sizeof s->heading];
    const size_t length = strlen(plan->place);
    const int is_software = length >= 8 && strcmp(plan->place + length - 8, "software") == 0;
    snprintf(heading, sizeof heading, "%s%s%s", plan->place, *plan->measured.device ? ": " : "", plan->measured.device);
    if (strcmp(heading, s->heading) == 0) return;
    memcpy(s->heading, heading, sizeof heading);
    if (s->plans) putchar('\n');
    cache_put_text(heading);
    printf("\n%12s  %6s  %6s  %9s  %-6s  %8s  %-10s  %-16s  %-28s  %s\n", is_software ? "INSTRUCTIONS" : "US", "GAIN", "SECOND", "MEASURED",
           "CACHED", "CLOCK", "POWER", "WHEN", "TILE", "PROBLEM");
}

/* Fills a column of text that may hold anything. */
static void put_column(const char *text, int width)
{
    const int length = (int)strlen(text);
    cache_put_text(*text ? text : "-");
    printf("%*s  ", width > (length ? length : 1) ? width - (length ? length : 1) : 0, "");
}

static int print_row(void *user, const jg_cache_plan *plan)
{
    sum *s = user;
    const jg_measured *m = &plan->measured;
    const double gain = gain_of(m);
    char measured[32] = "-";
    if (m->measured) snprintf(measured, sizeof measured, m->all ? "%u of %u" : "%u", m->measured, m->all);
    put_heading(s, plan);
    printf("%12s  %6s  %6s  %9s  %-6s  %8s  ", number("%.2f", m->us).text, number("%.2fx", gain).text,
           number("%.2fx", m->us > 0 ? m->runner_up_us / m->us : 0).text, measured, plan->cached ? "yes" : "no",
           number("%.0f MHz", m->sm_mhz).text);
    put_column(m->power_mode, 10);
    printf("%-16s  ", cache_format_time(plan->created, 0).text);
    put_column(tile_of(plan->kernel).text, 28);
    cache_put_text(plan->problem);
    putchar('\n');
    s->plans++;
    if (gain > 0) s->gains++, s->logarithms += log(gain);
    return 0;
}

static int list_as_table(jg_cache *cache)
{
    sum s = {.plans = 0};
    if (jg_cache_plans(cache, print_row, &s) != JG_OK) return cache_fail("%s", jg_last_error());
    if (s.plans == 0) {
        fputs("no recorded plans in ", stdout);
        cache_put_text(jg_cache_path(cache));
        puts("; jitgemm-prewarm --tune makes them");
        return CACHE_EXIT_DONE;
    }
    printf("%zu plan%s", s.plans, s.plans == 1 ? "" : "s");
    if (s.gains) printf(", %.2fx as fast as what the planner's model chooses (geometric mean)", exp(s.logarithms / (double)s.gains));
    putchar('\n');
    return CACHE_EXIT_DONE;
}

/* ---- JSON ------------------------------------------------------------------------------------------------------- */

typedef struct json_list {
    cJSON *array;
    int ok;
} json_list;

/* What is not known is null. */
static void add_known(cJSON *object, const char *name, double value, int *ok)
{
    if (value > 0) cache_json_number(object, name, value, ok);
    else if (!cJSON_AddNullToObject(object, name)) *ok = 0;
}

static int add_to_json(void *user, const jg_cache_plan *plan)
{
    json_list *list = user;
    const jg_measured *m = &plan->measured;
    const struct {
        const char *name, *text;
    } texts[] = {{"problem", plan->problem}, {"place", plan->place}, {"kernel", plan->kernel}, {"planned", m->planned},
                 {"runner_up", m->runner_up}, {"reason", m->reason}, {"device", m->device}, {"power_mode", m->power_mode}};
    const struct {
        const char *name;
        double value;
    } numbers[] = {{"us", m->us}, {"planned_us", m->planned_us}, {"runner_up_us", m->runner_up_us}, {"gain", gain_of(m)},
                   {"measured", m->measured}, {"all", m->all}, {"sm_mhz", m->sm_mhz}};
    cJSON *object = cJSON_CreateObject();
    cJSON_AddItemToArray(list->array, object);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) cache_json_text(object, texts[i].name, texts[i].text, &list->ok);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) add_known(object, numbers[i].name, numbers[i].value, &list->ok);
    cache_json_number(object, "created", (double)plan->created, &list->ok);
    if (!cJSON_AddBoolToObject(object, "cached", plan->cached)) list->ok = 0;
    return !list->ok;
}

static int list_as_json(jg_cache *cache)
{
    cJSON *object = cJSON_CreateObject();
    json_list list = {NULL, 1};
    cache_json_text(object, "path", jg_cache_path(cache), &list.ok);
    list.array = cJSON_AddArrayToObject(object, "plans");
    if (list.array && jg_cache_plans(cache, add_to_json, &list) != JG_OK) {
        cJSON_Delete(object);
        return cache_fail("%s", jg_last_error());
    }
    return cache_json_print(object, list.ok && list.array);
}

/* ---- --clear ---------------------------------------------------------------------------------------------------- */

static int forget(const cache_args *args, jg_cache *cache)
{
    size_t removed;
    if (jg_cache_clear_plans(cache, &removed) != JG_OK) return cache_fail("%s", jg_last_error());
    return cache_tell_removed(cache, args->json, removed, "forgotten");
}

int cache_plans(const cache_args *args, jg_cache *cache)
{
    if (args->clear) return forget(args, cache);
    return args->json ? list_as_json(cache) : list_as_table(cache);
}
