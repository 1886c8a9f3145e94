/* jitgemm-cache misses: what programs had no kernel of its own for; a table, JSON or a list of sizes out, or an empty list.
 *
 * It answers the operator's question which sizes are worth prewarming, so the problem is the last column and never
 * shortened: it is to be given to jitgemm-prewarm as it stands. */
#include "cache_commands.h"
#include "cache_format.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- the table -------------------------------------------------------------------------------------------------- */

typedef struct sum {
    uint64_t misses, launches;
} sum;

static int print_row(void *user, const jg_cache_miss *miss)
{
    sum *s = user;
    if (s->misses == 0)
        printf("%10s  %-16s  %-7s  %-6s  %7s  %s\n", "COUNT", "LAST USED", "TARGET", "CACHED", "GAIN", "PROBLEM");
    printf("%10" PRIu64 "  %-16s  ", miss->count, cache_format_time(miss->used, 0).text);
    cache_put_text(miss->target);
    printf("%*s  %-6s  %7s  ", 7 - (int)strnlen(miss->target, 7), "", miss->cached ? "yes" : "no",
           cache_format_gain(miss->gain).text);
    cache_put_text(miss->problem);
    putchar('\n');
    s->misses++;
    s->launches += miss->count;
    return 0;
}

static int list_as_table(jg_cache *cache)
{
    sum s = {0, 0};
    if (jg_cache_misses(cache, print_row, &s) != JG_OK) return cache_fail("%s", jg_last_error());
    if (s.misses == 0) {
        fputs("no misses in ", stdout);
        cache_put_text(jg_cache_path(cache));
        putchar('\n');
        return CACHE_EXIT_DONE;
    }
    printf("%" PRIu64 " miss%s, %" PRIu64 " launch%s\n", s.misses, s.misses == 1 ? "" : "es", s.launches,
           s.launches == 1 ? "" : "es");
    return CACHE_EXIT_DONE;
}

/* ---- a list of sizes -------------------------------------------------------------------------------------------- */

/* A problem that was met on several targets stands there once for each; who reads the list makes one kernel of them. One that this
 * version cannot read must not spoil the list. */
static int print_size(void *user, const jg_cache_miss *miss)
{
    (void)user;
    jg_problem problem = {0};
    if (jg_problem_parse(miss->problem, &problem) != JG_OK) fputs("# not understood: ", stdout);
    cache_put_text(miss->problem);
    putchar('\n');
    return 0;
}

static int list_as_sizes(jg_cache *cache)
{
    fputs("# What ran on generic kernels, most counted first, from ", stdout);
    cache_put_text(jg_cache_path(cache));
    putchar('\n');
    return jg_cache_misses(cache, print_size, NULL) == JG_OK ? CACHE_EXIT_DONE : cache_fail("%s", jg_last_error());
}

/* ---- JSON ------------------------------------------------------------------------------------------------------- */

typedef struct json_list {
    cJSON *array;
    int ok;
} json_list;

/* A gain that was not measured is null, not a 0 that could be taken for a bad one. */
static int add_to_json(void *user, const jg_cache_miss *miss)
{
    json_list *list = user;
    cJSON *object = cJSON_CreateObject();
    cJSON_AddItemToArray(list->array, object);
    cache_json_text(object, "problem", miss->problem, &list->ok);
    cache_json_text(object, "target", miss->target, &list->ok);
    cache_json_number(object, "count", (double)miss->count, &list->ok);
    cache_json_number(object, "used", (double)miss->used, &list->ok);
    if (miss->gain > 0) cache_json_number(object, "gain", miss->gain, &list->ok);
    else if (!cJSON_AddNullToObject(object, "gain")) list->ok = 0;
    if (!cJSON_AddBoolToObject(object, "cached", miss->cached)) list->ok = 0;
    return !list->ok;
}

static int list_as_json(jg_cache *cache)
{
    cJSON *object = cJSON_CreateObject();
    json_list list = {NULL, 1};
    cache_json_text(object, "path", jg_cache_path(cache), &list.ok);
    list.array = cJSON_AddArrayToObject(object, "misses");
    if (list.array && jg_cache_misses(cache, add_to_json, &list) != JG_OK) {
        cJSON_Delete(object);
        return cache_fail("%s", jg_last_error());
    }
    return cache_json_print(object, list.ok && list.array);
}

/* ---- --clear ---------------------------------------------------------------------------------------------------- */

static int forget(const cache_args *args, jg_cache *cache)
{
    size_t removed;
    if (jg_cache_clear_misses(cache, &removed) != JG_OK) return cache_fail("%s", jg_last_error());
    return cache_tell_removed(cache, args->json, removed, "forgotten");
}

int cache_misses(const cache_args *args, jg_cache *cache)
{
    if (args->clear) return forget(args, cache);
    if (args->sizes) return list_as_sizes(cache);
    return args->json ? list_as_json(cache) : list_as_table(cache);
}
