/* The rows of the breadth tests, without a device: the library takes every one of them, and the oracle accepts what a plain loop
 * in float makes of them. */
#include "breadth.h"
#include "problem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static pairwise made;

static int make_rows(void **state)
{
    (void)state;
    made = breadth_make(&(breadth_limits){0});
    return 0;
}

static int free_rows(void **state)
{
    (void)state;
    pairwise_free(&made);
    return 0;
}

/* Few enough to run, and a part of them is worth more than its part. */
static void rows_are_few(void **state)
{
    (void)state;
    print_message("# %zu rows have all %zu pairs; %zu pairs are in none\n", made.count, made.pairs, made.impossible);
    assert_in_range(made.count, 400, 900);
    const size_t third = pairwise_covered(&made, made.count / 3);
    print_message("# the first third of the rows has %zu pairs\n", third);
    assert_true(third * 10 > made.pairs * 6);
}

static void every_problem_is_legal(void **state)
{
    (void)state;
    for (size_t i = 0; i < made.count; i++) {
        const breadth_row row = breadth_get(&made, i);
        problem p;
        if (problem_canonicalise(&row.problem, &p) != JG_OK) fail_msg("row %zu: %s", i, jg_last_error());
    }
    for (int pair = 0; pair < BREADTH_PAIRS; pair++)
        for (jg_type type_c = JG_F32; type_c <= JG_E5M2; type_c++) {
            const breadth_row row = breadth_ones(pair, type_c);
            problem p;
            assert_int_equal(problem_canonicalise(&row.problem, &p) == JG_OK, breadth_has_c(pair, type_c));
        }
}

/* What a limit leaves out is in no row. */
static void limits_hold(void **state)
{
    (void)state;
    pairwise few = breadth_make(&(breadth_limits){.types = "f16.s8,f32.f32", .types_c = "f32,e5m2", .plain = 1});
    int seen[2] = {0}, seen_c[2] = {0};
    for (size_t i = 0; i < few.count; i++) {
        const breadth_row row = breadth_get(&few, i);
        const jg_problem *p = &row.problem;
        assert_true(p->epilogue == 0 && p->activation == 0 && p->math == 0 && p->group_k == 0);
        assert_true(p->type_a == JG_F32 || (p->type_a == JG_F16 && p->type_b == JG_S8));
        assert_true(p->type_c == JG_F32 || p->type_c == JG_E5M2);
        seen[p->type_a == JG_F32] = seen_c[p->type_c == JG_F32] = 1;
    }
    assert_true(seen[0] && seen[1] && seen_c[0] && seen_c[1]);
    pairwise_free(&few);
}

/* The oracle accepts a device that does as STRICT promises in every mode, to the last bit where it is asked to. */
static void a_float_loop_is_accepted(void **state)
{
    (void)state;
    for (size_t i = 0; i < made.count; i++) {
        const breadth_row row = breadth_get(&made, i);
        reference ref;
        reference_make(&ref, &row.problem, row.fill, row.misalign, row.seed);
        reference_strict_run(&ref, row.alpha, row.beta);
        const reference_result r = reference_check(&ref, row.alpha, row.beta);
        if (r.failures || r.stray || (row.exact && r.inexact) || (row.problem.m && !r.checked))
            fail_msg("row %zu: %lld failures (worst %g), %lld inexact: got %.9g, expected %.9g", i, (long long)r.failures,
                     r.worst, (long long)r.inexact, r.got, r.expected);
        reference_free(&ref);
    }
}

/* So many ones as k, in every type of C. */
static void ones_give_k(void **state)
{
    (void)state;
    for (int pair = 0; pair < BREADTH_PAIRS; pair++)
        for (jg_type type_c = JG_F32; type_c <= JG_E5M2; type_c++) {
            if (!breadth_has_c(pair, type_c)) continue;
            const breadth_row row = breadth_ones(pair, type_c);
            reference ref;
            reference_make(&ref, &row.problem, row.fill, 0, 0);
            reference_strict_run(&ref, row.alpha, row.beta);
            assert_int_equal(reference_check(&ref, row.alpha, row.beta).inexact, 0);
            assert_true(reference_get(&ref.c, 0, 3, 5) ==
                        reference_decode(type_c, reference_encode(type_c, (double)row.problem.k)));
            reference_free(&ref);
        }
}

/* Mistakes of a device: what it takes the problem for. Each returns 0 where it would be none. */
static int drop(reference *x, uint32_t flag)
{
    const int had = (x->problem.epilogue & flag) != 0;
    x->problem.epilogue &= ~flag;
    return had;
}

static int no_scale_m(reference *x) { return drop(x, JG_EPILOGUE_SCALE_M); }
static int no_bias_n(reference *x) { return drop(x, JG_EPILOGUE_BIAS_N); }
static int no_residual(reference *x) { return drop(x, JG_EPILOGUE_RESIDUAL); }
static int no_requantize(reference *x) { return drop(x, JG_EPILOGUE_REQUANTIZE); }

static int residual_after(reference *x)
{
    return x->problem.activation && drop(x, JG_EPILOGUE_RESIDUAL) && (x->problem.epilogue |= JG_EPILOGUE_RESIDUAL_AFTER);
}

static int no_activation(reference *x)
{
    const int had = x->problem.activation != JG_ACTIVATION_NONE;
    x->problem.activation = JG_ACTIVATION_NONE;
    return had;
}

static int no_zero_points(reference *x)
{
    const int had = x->problem.zero_points != 0 && x->k > 0;
    x->problem.zero_points = 0;
    return had;
}

static int other_group(reference *x)
{
    const int had = x->problem.group_k != 0 && x->k > 0;
    if (x->group_scales.rows > 1) x->problem.group_k *= 2;
    return had && x->group_scales.rows > 1;
}

static int no_sanitize(reference *x)
{
    const int had = x->problem.math & JG_MATH_SANITIZE && x->a.type == JG_F16 && x->b.type == JG_F16 && x->k > 1;
    x->problem.math &= ~JG_MATH_SANITIZE;
    return had;
}

static int unsigned_as_signed(reference *x)
{
    const int had = x->a.type == JG_U8 && x->k > 1;
    if (had) x->a.type = JG_S8;
    return had;
}

static int other_float(reference *x)
{
    const int had = x->b.type == JG_E5M2 && x->k > 1;
    if (had) x->b.type = JG_E4M3;
    return had;
}

/* The leading dimension is taken to be one element less. */
static int shorter_rows(reference *x)
{
    const int had = x->m > 2 && x->k > 2;
    if (x->a.row_step > x->a.col_step)
        x->a.row_step -= x->a.col_step;
    else
        x->a.col_step -= x->a.row_step;
    return had;
}

/* Each mistake is noticed in most of the rows that have what it is about; not in all, as a relu may hide it, and 0 times alpha.
 * */
static void mistakes_are_noticed(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int (*make)(reference *x);
    } mistakes[] = {
        {"no scale_m", no_scale_m}, {"no bias_n", no_bias_n}, {"no residual", no_residual}, {"no requantize", no_requantize},
        {"residual after", residual_after}, {"no activation", no_activation}, {"no zero points", no_zero_points},
        {"other group", other_group}, {"no sanitize", no_sanitize}, {"u8 as s8", unsigned_as_signed},
        {"e5m2 as e4m3", other_float}, {"shorter rows", shorter_rows},
    };
    for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++) {
        int made_in = 0, noticed = 0;
        for (size_t r = 0; r < made.count; r++) {
            const breadth_row row = breadth_get(&made, r);
            reference ref;
            if (row.alpha == 0 || row.fill != REFERENCE_UNIFORM) continue;
            reference_make(&ref, &row.problem, row.fill, row.misalign, row.seed);
            reference wrong = ref;
            if (mistakes[i].make(&wrong)) {
                made_in++;
                reference_strict_run(&wrong, row.alpha, row.beta);
                noticed += reference_check(&ref, row.alpha, row.beta).failures > 0;
            }
            reference_free(&ref);
        }
        print_message("# %s: noticed in %d rows of %d\n", mistakes[i].name, noticed, made_in);
        assert_true(made_in > 0 && noticed * 4 >= made_in * 3);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_few),
        cmocka_unit_test(every_problem_is_legal),
        cmocka_unit_test(limits_hold),
        cmocka_unit_test(a_float_loop_is_accepted),
        cmocka_unit_test(ones_give_k),
        cmocka_unit_test(mistakes_are_noticed),
    };
    return cmocka_run_group_tests_name("breadth", tests, make_rows, free_rows);
}
