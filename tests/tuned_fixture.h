/* Common ground of the tests of recorded plans: an Orin on the fake driver, whose candidates are planted or made by the fake NVRTC. */
#ifndef JG_TESTS_TUNED_FIXTURE_H
#define JG_TESTS_TUNED_FIXTURE_H

#include "background_fixture.h"

#define TUNED_PLACE "sm_87 16sm unknown" /* of the fake driver, which tells nothing of memory */

static inline void tuned_note(void *user, const plan *candidate, const char *reason)
{
    if (!reason[0]) add_spec(user, &candidate->spec);
}

/* Puts all kernels of a problem of one form (AUTO: the one planned first) into a cache file. */
static inline void tuned_plant(const char *file, const jg_problem *in, jg_form form)
{
    problem p;
    limits l;
    spec_list list = {.count = 0};
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

/* The first candidate of another class. */
static inline size_t tuned_foreign(jg_context *c, const jg_problem *p)
{
    size_t count, all;
    assert_status(jg_plan_count_candidates(c, p, &count, &all), JG_OK);
    assert_true(count < all);
    return count;
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

/* What a plan of a problem gets. */
static inline jg_plan_details tuned_chosen(jg_context *c, const jg_problem *p)
{
    jg_plan *made;
    jg_plan_details d;
    assert_status(jg_plan_create(c, p, &made), JG_OK);
    assert_status(jg_plan_info(made, &d), JG_OK);
    jg_plan_destroy(made);
    return d;
}

/* A context whose fake NVRTC makes whatever is asked for, and which waits for it. */
static inline jg_context *tuned_open(void)
{
    jg_options options = background_options();
    options.compile = JG_COMPILE_WAIT;
    options.resident = JG_RESIDENT_NONE;
    atomic_store(&nvrtc_double->accepts, 1);
    return fixture_open_with(options);
}

/* Whether two kernels are one but for their sizes: the parts of their names from the tile to the operands' widths agree. */
static inline int tuned_same_tile(const jg_plan_details *a, const jg_plan_details *b)
{
    return a->tile_m == b->tile_m && a->tile_n == b->tile_n && a->tile_k == b->tile_k && a->warp_m == b->warp_m && a->warp_n == b->warp_n &&
           a->stages == b->stages && a->slices == b->slices;
}

#endif
