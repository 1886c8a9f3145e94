/* Reads the misses of a cache file: see prewarm_misses.h. */
#include "prewarm_misses.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jitgemm.h"

static int add_problem(void *user, const jg_cache_miss *miss)
{
    prewarm_misses *misses = user;
    if (strcmp(miss->target, misses->target) != 0) return 0;
    if (misses->count == misses->capacity) {
        size_t capacity = 2 * misses->capacity + 64;
        char **problems = realloc(misses->problems, capacity * sizeof *problems);
        if (!problems) return misses->out_of_memory = 1;
        misses->problems = problems;
        misses->capacity = capacity;
    }
    char *problem = strdup(miss->problem);
    if (!problem) return misses->out_of_memory = 1;
    for (char *at = problem; *at; at++) /* a cache file must not be able to command a terminal */
        if ((unsigned char)*at < 0x20 || *at == 0x7f) *at = '?';
    misses->problems[misses->count++] = problem;
    return 0;
}

const char *prewarm_misses_read(prewarm_misses *misses, const char *path, const char *target)
{
    jg_cache *cache;
    if (jg_cache_open(path, 0, &cache) != JG_OK) return jg_last_error();
    misses->target = target;
    snprintf(misses->path, sizeof misses->path, "%s", jg_cache_path(cache));
    jg_status status = jg_cache_misses(cache, add_problem, misses);
    jg_cache_close(cache);
    const char *error = misses->out_of_memory ? "out of memory" : status != JG_OK ? jg_last_error() : NULL;
    if (error) prewarm_misses_free(misses);
    return error;
}

void prewarm_misses_free(prewarm_misses *misses)
{
    for (size_t i = 0; i < misses->count; i++) free(misses->problems[i]);
    free(misses->problems);
    *misses = (prewarm_misses){0};
}
