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

/* How far it was measured before a pass. */
static size_t begin_of(const tune_problem *p, size_t first, size_t pass)
{
    const size_t before = pass ? limit_of(p, first, pass - 1) : 0;
    return before > p->tried ? before : p->tried;
}

static int is_in(const tune_problem *p, size_t first, size_t pass)
{
    return p->outcome == TUNE_LEFT && limit_of(p, first, pass) > begin_of(p, first, pass);
}

/* Whether there is a pass as late as this one for some problem. */
static int is_last(const tune_list *list, size_t first, size_t pass)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->problems[i].outcome == TUNE_LEFT && limit_of(&list->problems[i], first, pass) < list->problems[i].rank.count) return 0;
    return 1;
}

static void add_job(tune_steps *s, const tune_problem *p, size_t index)
{
    s->jobs[s->job_count++] = (tune_job){.problem = &p->product.problem, .index = index, .step = s->count};
}

/* What an earlier run measured has to be made again as far as it takes part: the model's choice, and the best. */
static void add_step(tune_steps *s, tune_problem *p, size_t first, size_t pass)
{
    const size_t begin = begin_of(p, first, pass), limit = limit_of(p, first, pass), planned = p->rank.indices[0];
    if (p->tried > 0 && begin == p->tried) add_job(s, p, planned);
    if (p->tried > 0 && begin == p->tried && p->best != planned) add_job(s, p, p->best);
    for (size_t i = begin; i < limit; i++) add_job(s, p, p->rank.indices[i]);
    s->steps[s->count++] = (tune_step){p, limit, pass};
    s->passes = pass + 1;
}

int tune_steps_make(tune_list *list, size_t first, tune_steps *out)
{
    size_t jobs = 0;
    *out = (tune_steps){0};
    for (size_t i = 0; i < list->count; i++)
        if (list->problems[i].outcome == TUNE_LEFT) jobs += list->problems[i].rank.count + 2;
    out->steps = malloc((jobs ? jobs : 1) * sizeof *out->steps); /* none is without a job */
    out->jobs = malloc((jobs ? jobs : 1) * sizeof *out->jobs);
    if (!out->steps || !out->jobs) {
        tune_steps_free(out);
        return -1;
    }
    for (size_t pass = 0, done = 0; !done; pass++) {
        done = is_last(list, first, pass);
        for (size_t i = 0; i < list->count; i++)
            if (is_in(&list->problems[i], first, pass)) add_step(out, &list->problems[i], first, pass);
    }
    return 0;
}

void tune_steps_free(tune_steps *steps)
{
    free(steps->steps);
    free(steps->jobs);
    *steps = (tune_steps){0};
}
