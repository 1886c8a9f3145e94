/* src/plan.c: plans found again, by their tile, by their spec, or in so many slices as the planner takes anyway. */
#include "plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void check_same(const plan *a, const plan *b)
{
    kernel_key of_a, of_b;
    kernel_encode_key(&a->spec, &of_a);
    kernel_encode_key(&b->spec, &of_b);
    assert_memory_equal(&of_a, &of_b, sizeof of_a);
    assert_memory_equal(&a->access, &b->access, sizeof a->access);
    assert_true(a->grid_x == b->grid_x && a->grid_y == b->grid_y && a->threads == b->threads && a->shared_bytes == b->shared_bytes);
    assert_true(a->blocks_per_sm == b->blocks_per_sm && a->steps == b->steps && a->waves == b->waves && a->cost == b->cost &&
                a->clocks == b->clocks);
}

typedef struct search {
    const problem *p;
    const limits *l;
    jg_form form;
    size_t legal, rejected, quick_legal, quick_rejected;
} search;

/* By its tile and by its spec each candidate is found as it was shown, a rejected one by its spec alone. */
static void find_again(void *user, const plan *c, const char *reason)
{
    search *s = user;
    plan found;
    assert_int_equal(plan_with_tile(s->p, c->access, s->form, s->l, &c->spec.tile, &found), reason[0] == 0);
    check_same(&found, c);
    plan_of_spec(s->p, c->access, s->l, &c->spec, &found);
    check_same(&found, c);
    *(reason[0] ? &s->rejected : &s->legal) += 1;
}

static void count_quickly(void *user, const plan *c, const char *reason)
{
    search *s = user;
    (void)c;
    assert_true(strlen(reason) <= 1);
    *(reason[0] ? &s->quick_rejected : &s->quick_legal) += 1;
}

static void test_plans_are_found_by_tile_and_spec(void **state)
{
    (void)state;
    static const jg_type types[] = {JG_F32, JG_F16, JG_S8};
    size_t rejected = 0;
    limits l;
    assert_int_equal(limits_of_arch(87, 0, &l), JG_OK);
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        for (int form = JG_FORM_GENERIC; form <= JG_FORM_SPECIALISED; form++) {
            const jg_problem in = {.m = 200, .n = 96, .k = 320, .type_a = types[i], .dynamic = i == 1 ? JG_DYNAMIC_M : 0};
            problem p;
            assert_int_equal(problem_canonicalise(&in, &p), JG_OK);
            const access_widths access = plan_access(&p, 16, 16, 16);
            search s = {.p = &p, .l = &l, .form = (jg_form)form};
            plan chosen, again;
            plan_each(&p, access, s.form, &l, find_again, &s);
            plan_each_quickly(&p, access, s.form, &l, count_quickly, &s);
            assert_true(s.legal > 1 && s.quick_legal == s.legal && s.quick_rejected == s.rejected);
            rejected += s.rejected;
            assert_int_equal(plan_choose(&p, access, s.form, &l, &chosen), JG_OK);
            assert_int_equal(plan_choose_sliced(&p, access, s.form, &l, plan_slices(&p, &l), &again), JG_OK);
            check_same(&again, &chosen);
            tile none = chosen.spec.tile;
            none.stages += 20;
            assert_int_equal(plan_with_tile(&p, access, s.form, &l, &none, &again), 0);
            assert_int_equal(plan_choose_sliced(&p, access, s.form, &l, 3, &again), JG_ERR_UNSUPPORTED);
        }
    assert_true(rejected > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_plans_are_found_by_tile_and_spec)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
