/* Looks up recorded plans: see tune_known.h. */
#include "tune_known.h"

#include <stdio.h>
#include <string.h>

typedef struct search {
    tune_list *list;
    jg_context *context;
    const char *place;
    size_t total;
} search;

static void take(tune_problem *p, const jg_cache_plan *recorded)
{
    const jg_measured *m = &recorded->measured;
    tune_found *f = &p->found;
    p->created = recorded->created;
    f->us = m->us;
    f->planned_us = m->planned_us;
    f->runner_up_us = m->runner_up_us;
    f->measured = m->measured;
    f->all = m->all;
    snprintf(f->kernel, sizeof f->kernel, "%s", recorded->kernel);
    snprintf(f->planned, sizeof f->planned, "%s", m->planned ? m->planned : "");
    snprintf(f->runner_up, sizeof f->runner_up, "%s", m->runner_up ? m->runner_up : "");
    snprintf(f->reason, sizeof f->reason, "%s", m->reason ? m->reason : "");
}

/* The place in the rank of the candidate that is called so; the number of all if there is none. */
static size_t find_kernel(jg_context *context, const tune_problem *p, const char *kernel)
{
    jg_plan_details d;
    for (size_t i = 0; i < p->rank.count; i++)
        if (jg_plan_describe_candidate(context, &p->product.problem, p->rank.indices[i], &d) == JG_OK &&
            strcmp(d.kernel, kernel) == 0) return i;
    return p->rank.count;
}

/* Where an earlier run left off, if the model's choice is the one of that time, and the best is one of those that were measured. */
static void resume(jg_context *context, tune_problem *p)
{
    const tune_found *f = &p->found;
    const size_t best = find_kernel(context, p, f->kernel);
    if (f->all != p->rank.all || best >= f->measured || find_kernel(context, p, f->planned) != 0) return;
    p->tried = f->measured;
    p->best = p->rank.indices[best];
}

static int look_at(void *user, const jg_cache_plan *recorded)
{
    search *s = user;
    if (strcmp(recorded->place, s->place) != 0) return 0;
    s->total++;
    for (size_t i = 0; i < s->list->count; i++) {
        tune_problem *p = &s->list->problems[i];
        if (strcmp(p->key, recorded->problem) != 0) continue;
        if (p->outcome != TUNE_LEFT || p->created > 0) break;
        take(p, recorded);
        if (p->found.measured >= p->rank.count && p->found.all >= p->rank.all) p->outcome = TUNE_KNOWN;
        else resume(s->context, p);
        break;
    }
    return 0;
}

const char *tune_known_read(tune_list *list, jg_context *context, const char *path, const char *place, size_t *total)
{
    search s = {.list = list, .context = context, .place = place};
    jg_cache *cache;
    *total = 0;
    if (jg_cache_open(path, 0, &cache) != JG_OK) return jg_last_error();
    const jg_status status = jg_cache_plans(cache, look_at, &s);
    jg_cache_close(cache);
    *total = s.total;
    return status == JG_OK ? NULL : jg_last_error();
}
