/* Reads recorded plans: see prewarm_recorded.h. */
#include "prewarm_recorded.h"

#include "tune_list.h"

#include <stdlib.h>
#include <string.h>

static int take(void *user, const jg_cache_plan *plan)
{
    prewarm_recorded *r = user;
    if (strcmp(plan->place, r->place) != 0) return 0;
    if (r->count == r->capacity) {
        const size_t capacity = 2 * r->capacity + 64;
        prewarm_choice *grown = realloc(r->list, capacity * sizeof *grown);
        if (!grown) return 1;
        r->list = grown;
        r->capacity = capacity;
    }
    const prewarm_choice one = {strdup(plan->problem), strdup(plan->kernel)};
    r->list[r->count++] = one;
    if (one.problem && one.kernel) return 0;
    free(one.problem);
    free(one.kernel);
    r->count--;
    return 1;
}

void prewarm_recorded_read(prewarm_recorded *recorded, const char *path, const char *place)
{
    jg_cache *cache;
    recorded->place = place;
    if (!*place || jg_cache_open(path, 0, &cache) != JG_OK) return;
    jg_cache_plans(cache, take, recorded);
    jg_cache_close(cache);
}

const char *prewarm_recorded_find(const prewarm_recorded *recorded, const jg_problem *in)
{
    char key[JG_PROBLEM_TEXT_BYTES];
    tune_key_format(in, key, sizeof key);
    for (size_t i = 0; i < recorded->count; i++)
        if (strcmp(recorded->list[i].problem, key) == 0) return recorded->list[i].kernel;
    return NULL;
}

void prewarm_recorded_free(prewarm_recorded *recorded)
{
    for (size_t i = 0; i < recorded->count; i++) {
        free(recorded->list[i].problem);
        free(recorded->list[i].kernel);
    }
    free(recorded->list);
    *recorded = (prewarm_recorded){0};
}
