/* Operands in canonical order, their defaults, and the checks on them. */
#include "operands.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static char room[64] __attribute__((aligned(64)));

static void test_defaults_and_order(void **state)
{
    (void)state;
    problem p = {.k = 4};
    const float alpha = 2, beta = 3;
    operands o = operands_canonicalise(&p, &(jg_operands){.a = room, .b = room + 16, .c = room + 32});
    assert_ptr_equal(o.a, room);
    assert_ptr_equal(o.b, room + 16);
    assert_ptr_equal(o.c, room + 32);
    assert_true(o.alpha == 1 && o.beta == 0);
    p.swapped = 1;
    o = operands_canonicalise(&p, &(jg_operands){.a = room, .b = room + 16, .alpha = &alpha, .beta = &beta});
    assert_ptr_equal(o.a, room + 16);
    assert_ptr_equal(o.b, room);
    assert_string_equal(o.name_a, "b");
    assert_true(o.alpha == 2 && o.beta == 3);
}

static void test_empty_sum_has_no_alpha(void **state)
{
    (void)state;
    const problem p = {.k = 0};
    const float alpha = INFINITY;
    const operands o = operands_canonicalise(&p, &(jg_operands){.alpha = &alpha});
    assert_true(o.alpha == 0);
    assert_false(operands_read_ab(&o));
}

static void test_alignment(void **state)
{
    (void)state;
    assert_int_equal(operands_alignment(NULL), 16);
    assert_int_equal(operands_alignment(room), 16);
    for (unsigned i = 1; i < 16; i *= 2) assert_int_equal(operands_alignment(room + i), i);
    assert_int_equal(operands_alignment(room + 6), 2);
}

static void test_checks_name_the_member(void **state)
{
    (void)state;
    const operands o = {.a = room + 2, .b = room, .c = room + 4, .alpha = 1, .name_a = "b", .name_b = "a"};
    assert_int_equal(operands_check(&o, 2, 16, 4), JG_OK);
    assert_int_equal(operands_check(&o, 4, 16, 4), JG_ERR_MISALIGNED);
    assert_non_null(strstr(jg_last_error(), "operands.b"));
    assert_int_equal(operands_check(&o, 2, 16, 8), JG_ERR_MISALIGNED);
    assert_non_null(strstr(jg_last_error(), "operands.c"));
    operands missing = o;
    missing.b = NULL;
    assert_int_equal(operands_check(&missing, 2, 16, 4), JG_ERR_NULL);
    assert_non_null(strstr(jg_last_error(), "operands.a"));
    missing.alpha = 0; /* nothing is read */
    assert_int_equal(operands_check(&missing, 16, 16, 4), JG_OK);
    missing.c = NULL;
    assert_int_equal(operands_check(&missing, 2, 16, 4), JG_ERR_NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults_and_order),
        cmocka_unit_test(test_empty_sum_has_no_alpha),
        cmocka_unit_test(test_alignment),
        cmocka_unit_test(test_checks_name_the_member),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
