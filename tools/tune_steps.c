/* Passes over all problems: see tune_steps.h. */
#include "tune_steps.h"

#include <stdlib.h>

/* How far a problem's rank is measured after a pass. */
static size_t limit_of(const tune_problem *p, size_t first, size_t pass)
{
    size_t limit = first;
    if (first == 0) return p->rank.count;
    for (size_t i = 0; i < pass && limit < p->rank.count; i++) limit *= 2;
    return limit < p->rank.count ? limit : p->rank.count;
}

static int is_in(const tune_problem *p, size_t first, size_t pass)
{
    if (p->outcome != TUNE_LEFT || p->rank.count == 0) return 0;
    return pass == 0 || limit_of(p, first, pass) > limit_of(p, first, pass - 1);
}

static void add_step(tune_steps *s, tune_problem *p, size_t first, size_t pass)
{
    const size_t from = pass ? limit_of(p, first, pass - 1) : 0, limit = limit_of(p, first, pass);
    for (size_t i = from; i < limit; i++)
        s->jobs[s->job_count++] = (tune_job){.problem = &p->product.problem, .index = p->rank.indices[i], .step = s->count};
    s->steps[s->count++] = (tune_step){p, limit, pass};
    s->passes = pass + 1;
}

int tune_steps_make(tune_list *list, size_t first, tune_steps *out)
{
    size_t steps = 0, jobs = 0;
    *out = (tune_steps){0};
    for (size_t i = 0; i < list->count; i++) {
        const tune_problem *p = &list->problems[i];
        for (size_t pass = 0; is_in(p, first, pass); pass++) steps++;
        if (p->outcome == TUNE_LEFT) jobs += p->rank.count;
    }
    out->steps = malloc((steps ? steps : 1) * sizeof *out->steps);
    out->jobs = malloc((jobs ? jobs : 1) * sizeof *out->jobs);
    if (!out->steps || !out->jobs) {
        tune_steps_free(out);
        return -1;
    }
    for (size_t pass = 0; out->count < steps; pass++)
        for (size_t i = 0; i < list->count; i++)
            if (is_in(&list->problems[i], first, pass)) add_step(out, &list->problems[i], first, pass);
    return 0;
}

void tune_steps_free(tune_steps *steps)
{
    free(steps->steps);
    free(steps->jobs);
    *steps = (tune_steps){0};
}
