/* src/plan_gain.c: the estimate is within reason, and what constants save, access and tiles show in it. */
#include "plan.h"
#include "problem_key.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static limits of(int number)
{
    limits l;
    assert_int_equal(limits_of_arch(number, 0, &l), JG_OK);
    return l;
}

static jg_problem square(int64_t size, jg_type type)
{
    return (jg_problem){.m = size, .n = size, .k = size, .type_a = type};
}

static void plan_both(jg_problem in, const limits *l, plan *generic, plan *own)
{
    problem p;
    assert_int_equal(problem_canonicalise(&in, &p), JG_OK);
    const access_widths access = problem_promised_access(&p);
    assert_int_equal(plan_choose(&p, access, JG_FORM_GENERIC, l, generic), JG_OK);
    assert_int_equal(plan_choose(&p, access, JG_FORM_SPECIALISED, l, own), JG_OK);
}

static double gain_of(jg_problem in, const limits *l)
{
    plan generic, own;
    plan_both(in, l, &generic, &own);
    return plan_gain(&generic, &own);
}

static void an_estimate_is_within_reason(void **state)
{
    (void)state;
    static const int64_t sizes[] = {1, 7, 16, 17, 64, 65, 128, 512, 1000, 1021, 4096, 20000};
    enum { SIZES = sizeof sizes / sizeof sizes[0] };
    for (size_t a = 0; arch_at(a); a++) {
        const limits l = of(arch_at(a)->number);
        for (int i = 0; i < SIZES * SIZES * SIZES; i++)
            for (int variant = 0; variant < 12; variant++) {
                const jg_problem p = {.m = sizes[i % SIZES], .n = sizes[i / SIZES % SIZES], .k = sizes[i / SIZES / SIZES],
                                      .type_a = variant % 3 + 1, .op_b = variant / 3 % 2,
                                      .dynamic = variant / 6 ? (uint32_t)i % 16 : 0};
                const double gain = gain_of(p, &l);
                if (!(gain >= 0.9 && gain < 4))
                    fail_msg("%.3f for %dx%dx%d on sm_%d", gain, (int)p.m, (int)p.n, (int)p.k, l.arch->number);
            }
    }
}

/* Constants save less of a large product than of a small one, but always something. */
static void a_large_product_gains_less(void **state)
{
    (void)state;
    for (size_t a = 0; arch_at(a); a++)
        for (int type = JG_F32; type <= JG_BF16; type++) {
            const limits l = of(arch_at(a)->number);
            const double small = gain_of(square(64, (jg_type)type), &l);
            assert_true(small > 1.1);
            for (int64_t size = 2048; size <= 16384; size *= 2) {
                const double gain = gain_of(square(size, (jg_type)type), &l);
                if (gain > small - 0.01 || gain < 1.05)
                    fail_msg("sm_%d %s: %.3f for %d, %.3f for 64", l.arch->number, type_name(type), gain, (int)size, small);
            }
        }
}

/* Word by word a generic kernel is slow at any size, and slower still than one that copies. */
static void what_is_not_aligned_always_pays(void **state)
{
    (void)state;
    const limits orin = of(87);
    for (int64_t size = 127; size < 9000; size = size * 2 + 1) {
        jg_problem half = square(size, JG_F16);
        const double both = gain_of(half, &orin);
        half.lda = size + 3; /* a multiple of two elements */
        const double one = gain_of(half, &orin);
        half.ldb = size + 3;
        const double none = gain_of(half, &orin);
        assert_true(both > 1.15 && one > both + 0.05 && none > one + 0.05);
    }
    /* Where all kernels do, or none, it makes no difference. */
    const limits turing = of(75);
    assert_true(gain_of(square(4095, JG_F16), &turing) < 1.1);
    assert_true(gain_of(square(4095, JG_F32), &orin) < 1.1);
}

/* What is left to the launch saves nothing; of m it never did. */
static void dynamic_dimensions_take_from_the_gain(void **state)
{
    (void)state;
    const limits h200 = of(90);
    jg_problem p = {.m = 512, .n = 512, .k = 512, .type_a = JG_F16};
    const double constant = gain_of(p, &h200);
    double gains[DYNAMIC_ALL + 1];
    for (p.dynamic = 0; p.dynamic <= DYNAMIC_ALL; p.dynamic++) gains[p.dynamic] = gain_of(p, &h200);
    assert_true(constant > 1.1 && gains[JG_DYNAMIC_M] == constant);
    assert_true(gains[JG_DYNAMIC_K] < constant && gains[JG_DYNAMIC_K] > PLAN_GAIN_WORTHWHILE);
    assert_true(gains[JG_DYNAMIC_M | JG_DYNAMIC_N | JG_DYNAMIC_K] < gains[JG_DYNAMIC_K]);
    assert_true(gains[JG_DYNAMIC_BATCH] < constant);
    assert_true(gains[DYNAMIC_ALL] < PLAN_GAIN_WORTHWHILE);
    p = (jg_problem){.m = 511, .n = 511, .k = 511, .type_a = JG_F16, .dynamic = DYNAMIC_ALL};
    assert_true(gain_of(p, &h200) > 1.15);
}

/* A better tile counts, if for little, and by the sizes themselves: what dynamic ones are priced as does not. */
static void a_better_tile_counts(void **state)
{
    (void)state;
    const limits orin = of(87);
    plan generic, own;
    plan_both(square(64, JG_F16), &orin, &generic, &own);
    const double before = plan_gain(&generic, &own);
    own.cost *= 7;
    assert_true(plan_gain(&generic, &own) == before);
    generic.clocks *= 2;
    const double after = plan_gain(&generic, &own);
    assert_true(after > before * 1.02 && after < before * 1.2);
}

static void without_an_own_kernel_there_is_no_gain(void **state)
{
    (void)state;
    const limits orin = of(87);
    plan generic, own;
    for (int64_t size = 64; size <= 65; size++) {
        plan_both(square(size, JG_F16), &orin, &generic, &own);
        assert_true(plan_gain(&generic, &generic) == 1);
        assert_true(plan_gain(&generic, &own) > 1);
    }
    assert_true(gain_of((jg_problem){.m = 64, .n = 64}, &orin) == 1); /* k = 0 */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_estimate_is_within_reason),
        cmocka_unit_test(a_large_product_gains_less),
        cmocka_unit_test(what_is_not_aligned_always_pays),
        cmocka_unit_test(dynamic_dimensions_take_from_the_gain),
        cmocka_unit_test(a_better_tile_counts),
        cmocka_unit_test(without_an_own_kernel_there_is_no_gain),
    };
    return cmocka_run_group_tests_name("plan_gain", tests, NULL, NULL);
}
