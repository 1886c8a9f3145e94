/* Common ground of the tests of recorded plans on the fake driver: an Orin whose candidates are planted, so that nothing is compiled. */
#ifndef JG_TESTS_TUNED_FIXTURE_H
#define JG_TESTS_TUNED_FIXTURE_H

#include "gemm_fixture.h"

#define TUNED_PLACE "sm_87 16sm unknown" /* of the fake driver, which tells nothing of memory */

typedef struct spec_list {
    kernel_spec specs[128];
    size_t count;
} spec_list;

static inline void tuned_note(void *user, const plan *candidate, const char *reason)
{
    spec_list *list = user;
    if (reason[0]) return;
    assert_true(list->count < 128);
    list->specs[list->count++] = candidate->spec;
}

/* Puts all kernels of a problem, of one form (AUTO: the one planned first), into a cache file. */
static inline void tuned_plant(const char *file, const jg_problem *in, jg_form form)
{
    problem p;
    limits l;
    static spec_list list;
    list.count = 0;
    assert_status(problem_canonicalise(in, &p), JG_OK);
    assert_status(limits_of_arch(87, 16, &l), JG_OK);
    plan_each(&p, problem_promised_access(&p), form ? form : gemm_planned_form(&p), &l, tuned_note, &list);
    fixture_plant_specs(file, list.specs, list.count);
}

static inline jg_plan_details tuned_describe(jg_context *c, const jg_problem *p, size_t index)
{
    jg_plan_details d;
    assert_status(jg_plan_describe_candidate(c, p, index, &d), JG_OK);
    return d;
}

/* The first candidate of the problem's class that the model does not choose. */
static inline size_t tuned_other(jg_context *c, const jg_problem *p)
{
    size_t count, index = 0;
    assert_status(jg_plan_count_candidates(c, p, &count, NULL), JG_OK);
    while (index < count && tuned_describe(c, p, index).is_planned) index++;
    assert_true(index < count);
    return index;
}

static inline jg_status tuned_record_as(jg_context *c, jg_context *from, const jg_problem *p, size_t index, const jg_measured *m)
{
    jg_plan *made;
    assert_status(jg_plan_create_candidate(from, p, index, &made), JG_OK);
    const jg_status status = jg_record_plan(c, made, m);
    jg_plan_destroy(made);
    return status;
}

/* Records a candidate as measured. */
static inline jg_status tuned_record(jg_context *c, const jg_problem *p, size_t index)
{
    return tuned_record_as(c, c, p, index, &(jg_measured){.us = 10, .planned_us = 12.5});
}

/* What a fresh plan of a problem gets. */
static inline jg_plan_details tuned_chosen(jg_context *c, const jg_problem *p)
{
    jg_plan *made;
    jg_plan_details d;
    assert_status(jg_plan_create(c, p, &made), JG_OK);
    assert_status(jg_plan_info(made, &d), JG_OK);
    jg_plan_destroy(made);
    return d;
}

#endif
