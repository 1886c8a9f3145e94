/* The planner: how wide each type of operand may be accessed, and whether an operand is copied or goes through registers. */
#include "plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static problem canonical(jg_problem in)
{
    problem p;
    if (problem_canonicalise(&in, &p) != JG_OK) fail_msg("%s", jg_last_error());
    return p;
}

static problem make(int64_t m, int64_t n, int64_t k, jg_type type)
{
    return canonical((jg_problem){.m = m, .n = n, .k = k, .type_a = type});
}

static limits of(int number)
{
    limits l;
    assert_int_equal(limits_of_arch(number, 0, &l), JG_OK);
    return l;
}

static void widths_of_common_types(void **state)
{
    (void)state;
    problem p = make(64, 64, 64, JG_F16);
    access_widths w = plan_access(&p, 16, 16, 16);
    assert_int_equal(w.a, 16);
    assert_int_equal(w.b, 16);
    assert_int_equal(w.c, 1);
    w = plan_access(&p, 2, 4, 4); /* four f16 need 8 bytes */
    assert_int_equal(w.a, 2);
    assert_int_equal(w.b, 4);
    assert_int_equal(w.c, 0);
    p = make(64, 63, 65, JG_F16); /* odd rows */
    w = plan_access(&p, 16, 16, 16);
    assert_int_equal(w.a, 2);
    assert_int_equal(w.b, 2);
    assert_int_equal(w.c, 0);
    p = make(1, 64, 65, JG_F16); /* with one row its length does not matter */
    assert_int_equal(plan_access(&p, 16, 16, 16).a, 16);
    p = make(64, 64, 66, JG_F32);
    assert_int_equal(plan_access(&p, 16, 16, 16).a, 4); /* f32 kernels have no 8-byte loads */
    p = make(64, 64, 64, JG_F16);
    p.batch = 2;
    p.stride_a = 64 * 64 + 4;
    p.stride_c = 64 * 64;
    w = plan_access(&p, 16, 16, 16);
    assert_int_equal(w.a, 8);
    assert_int_equal(w.b, 16);
}


/* --- widths never promise too much --- */

/* Pairs as the public header lists them; in either order where they differ. */
static const jg_type pairs[][2] = {
    {JG_F32, JG_F32}, {JG_F16, JG_F16},   {JG_BF16, JG_BF16}, {JG_S8, JG_S8},     {JG_U8, JG_S8},
    {JG_S8, JG_U8},   {JG_U8, JG_U8},     {JG_S4, JG_S4},     {JG_F16, JG_S8},    {JG_S8, JG_F16},
    {JG_BF16, JG_S8}, {JG_S8, JG_BF16},   {JG_F16, JG_S4},    {JG_S4, JG_F16},    {JG_BF16, JG_S4},
    {JG_S4, JG_BF16}, {JG_E4M3, JG_E4M3}, {JG_E4M3, JG_E5M2}, {JG_E5M2, JG_E4M3}, {JG_E5M2, JG_E5M2},
};
#define PAIRS (sizeof pairs / sizeof pairs[0])

/* Whether every row of every item begins at a multiple of so many bytes, looked at one by one. */
static int rows_begin_at(unsigned bytes, unsigned align, unsigned bits, int64_t rows, int64_t ld, int64_t items, int64_t stride)
{
    if (align % bytes) return 0;
    for (int64_t item = 0; item < items; item++)
        for (int64_t row = 0; row < rows; row++)
            if ((item * stride + row * ld) * bits % (8 * bytes)) return 0;
    return 1;
}

/* What an operand's width may be: at most what its rows allow; and it is 16, or as wide as one of its elements, or, where a
 * kernel copies the operand, 8 or 4. */
static void check_width(unsigned w, unsigned align, jg_type type, int64_t rows, int64_t ld, int64_t items, int64_t stride)
{
    const unsigned bits = type_bits(type), element = (unsigned)type_bytes(type);
    if (w != 16 && w != 8 && w != 4 && w != element) fail_msg("%u bytes of %s", w, type_name(type));
    if (!rows_begin_at(w, align, bits, rows, ld, items, stride))
        fail_msg("%u bytes of %s aligned to %u, %lld rows of %lld, %lld items of %lld", w, type_name(type), align,
                 (long long)rows, (long long)ld, (long long)items, (long long)stride);
    if (w != 16 && rows_begin_at(16, align, bits, rows, ld, items, stride))
        fail_msg("%u bytes of %s, not 16", w, type_name(type));
}

static uint64_t random_state = 12345;
static unsigned pick(unsigned count)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(random_state >> 33) % count;
}

/* A random problem with rows of all kinds; those of s4 are even. */
static jg_problem random_problem(jg_type a, jg_type b)
{
    static const int64_t sizes[] = {1, 2, 3, 8, 16, 31, 32, 40};
    const int integers = type_is_integer(a) && type_is_integer(b);
    static const jg_type results[] = {JG_F32, JG_F16, JG_BF16, JG_S8, JG_U8, JG_E4M3, JG_E5M2, JG_S32};
    jg_problem p = {.m = sizes[pick(8)],
                    .n = sizes[pick(8)],
                    .k = sizes[pick(8)],
                    .type_a = a,
                    .type_b = b,
                    .type_c = results[pick(integers ? 8 : 7)],
                    .op_a = pick(2),
                    .op_b = pick(2),
                    .order = pick(2),
                    .batch = 1 + pick(3)};
    p.lda = 48 + pick(17), p.ldb = 48 + pick(17), p.ldc = 48 + pick(17);
    p.stride_a = pick(3) ? 4000 + pick(65) : 0, p.stride_b = pick(3) ? 4000 + pick(65) : 0, p.stride_c = 4000 + pick(65);
    if (a == JG_S4) p.lda &= ~1, p.stride_a &= ~1;
    if (b == JG_S4) p.ldb &= ~1, p.stride_b &= ~1;
    return p;
}

/* Several elements at a time are gathered along k, 16 bytes or less of them. What is turned is read 4 bytes at a time. */
static void check_spec_width(uint8_t vec, uint8_t access, int k_contiguous, int turned)
{
    if (vec == SPEC_GATHER_WIDE) assert_true(access == 16 && k_contiguous);
    else if (vec == SPEC_REALIGN) assert_true(access < 4);
    else if (vec != SPEC_GATHER && turned) assert_true(vec == 4 && access >= 4);
    else if (vec != SPEC_GATHER) assert_int_equal(vec, access);
}

static void no_width_promises_more_than_the_addresses_give(void **state)
{
    (void)state;
    for (size_t i = 0; i < PAIRS; i++)
        for (int turn = 0; turn < 3000; turn++) {
            const problem p = canonical(random_problem(pairs[i][0], pairs[i][1]));
            const jg_type type_a = (jg_type)p.type_a, type_b = (jg_type)p.type_b, type_c = (jg_type)p.type_c;
            const unsigned align_a = (unsigned)type_bytes(type_a) << pick(5), align_b = (unsigned)type_bytes(type_b) << pick(5);
            const unsigned align_c = (unsigned)type_bytes(type_c) << pick(5), quad = 4 * (unsigned)type_bytes(type_c);
            const access_widths w = plan_access(&p, align_a, align_b, align_c);
            check_width(w.a, align_a, type_a, p.op_a == JG_T ? p.k : p.m, p.lda, p.batch, p.stride_a);
            check_width(w.b, align_b, type_b, p.op_b == JG_T ? p.n : p.k, p.ldb, p.batch, p.stride_b);
            assert_int_equal(w.c, rows_begin_at(quad, align_c, type_bits(type_c), p.m, p.ldc, p.batch, p.stride_c));
            /* A spec is no wider than the access. */
            const limits l = of(87);
            plan chosen;
            assert_int_equal(plan_choose(&p, w, JG_FORM_SPECIALISED, &l, &chosen), JG_OK);
            const int bytes = problem_multiply_type(&p) == JG_S8;
            check_spec_width(chosen.spec.vec_a, w.a, p.op_a == JG_N, bytes && p.op_a == JG_T);
            check_spec_width(chosen.spec.vec_b, w.b, p.op_b == JG_T, bytes && p.op_b == JG_N);
            assert_int_equal(chosen.spec.vec_c, w.c);
        }
}

/* Widths that make no difference are told as one, or a problem would have as many kernels as alignments. */
static void widths_that_make_no_difference_are_one(void **state)
{
    (void)state;
    for (size_t i = 0; i < PAIRS; i++)
        for (unsigned ops = 0; ops < 4; ops++)
            for (unsigned math = 0; math <= JG_MATH_SANITIZE; math += JG_MATH_SANITIZE) {
                const jg_type a = pairs[i][0], b = pairs[i][1];
                const problem p = canonical((jg_problem){.m = 64,
                                                         .n = 64,
                                                         .k = 64,
                                                         .type_a = a,
                                                         .type_b = b,
                                                         .op_a = (jg_op)(ops & 1),
                                                         .op_b = (jg_op)(ops >> 1),
                                                         .math = math});
                unsigned met_a = 0, met_b = 0;
                for (unsigned align = 4; align <= 16; align *= 2) {
                    const access_widths w = plan_access(&p, align, align, 16);
                    met_a |= w.a, met_b |= w.b;
                }
                const int bytes = !math && type_is_integer(a) && type_is_integer(b) && a != JG_S4;
                const int bytes_b = bytes && b != JG_S4;
                const int copies_a = (!math && (a == JG_F16 || a == JG_BF16)) || (bytes && !(ops & 1));
                const int copies_b = (!math && (b == JG_F16 || b == JG_BF16)) || (bytes_b && ops >> 1);
                assert_int_equal(met_a, copies_a ? 16 | 8 | 4 : bytes ? 16 | 4 : 16 | type_bytes(a));
                assert_int_equal(met_b, copies_b ? 16 | 8 | 4 : bytes_b ? 16 | 4 : 16 | type_bytes(b));
            }
}

/* --- copy or gather --- */

/* SPEC_GATHER, SPEC_REALIGN, or the bytes of a copy. */
static void expect_loads(jg_problem in, unsigned align, int a, int b)
{
    const limits orin = of(87);
    const problem p = canonical(in);
    plan chosen;
    assert_int_equal(plan_choose(&p, plan_access(&p, align, align, align), JG_FORM_SPECIALISED, &orin, &chosen), JG_OK);
    if (chosen.spec.family != FAMILY_MMA || chosen.spec.vec_a != a || chosen.spec.vec_b != b)
        fail_msg("%s x %s, ops %d %d, math %x, aligned to %u: %d and %d bytes", type_name((jg_type)p.type_a),
                 type_name((jg_type)p.type_b), p.op_a, p.op_b, p.math, align, chosen.spec.vec_a, chosen.spec.vec_b);
}

static void operands_are_copied_where_nothing_converts_them(void **state)
{
    (void)state;
    const int gather = SPEC_GATHER, realign = SPEC_REALIGN;
    const jg_problem base = {.m = 64, .n = 64, .k = 64};
    static const jg_type halves[] = {JG_F16, JG_BF16};
    jg_problem p = base;
    for (int op = 0; op < 4; op++) {
        p.op_a = (jg_op)(op & 1), p.op_b = (jg_op)(op >> 1);
        const int a_lies_along_k = p.op_a == JG_N, b_lies_along_k = p.op_b == JG_T;
        /* Of aligned rows along k several elements are gathered at a time. */
        const int wide_a = a_lies_along_k ? SPEC_GATHER_WIDE : gather, wide_b = b_lies_along_k ? SPEC_GATHER_WIDE : gather;
        for (int y = 0; y < 2; y++) {
            p.math = 0;
            p.type_a = p.type_b = halves[y];
            expect_loads(p, 16, 16, 16);
            expect_loads(p, 8, 8, 8);
            expect_loads(p, 4, 4, 4);
            expect_loads(p, 2, realign, realign);
            /* What cleans elements reads them. */
            p.math = JG_MATH_FLUSH;
            expect_loads(p, 16, wide_a, wide_b);
            p.math = JG_MATH_SANITIZE;
            expect_loads(p, 16, wide_a, wide_b);
            p.math = 0;
            /* Weights are widened; what they are multiplied with need not be. */
            p.type_b = JG_S8;
            expect_loads(p, 16, 16, wide_b);
            p.type_a = JG_S4, p.type_b = halves[y];
            expect_loads(p, 16, wide_a, 16);
            expect_loads(p, 4, gather, 4);
            expect_loads(p, 2, gather, realign);
        }
        p.type_a = p.type_b = JG_F16;
        p.math = JG_MATH_F16;
        expect_loads(p, 16, 16, 16);
        p.math = 0;
        /* 8-bit integers are turned on their way, in words, or copied along k. */
        p.type_a = JG_U8, p.type_b = JG_S8;
        expect_loads(p, 16, a_lies_along_k ? 16 : 4, b_lies_along_k ? 16 : 4);
        expect_loads(p, 8, a_lies_along_k ? 8 : 4, b_lies_along_k ? 8 : 4);
        expect_loads(p, 4, 4, 4);
        expect_loads(p, 2, realign, realign);
        expect_loads(p, 1, realign, realign);
        p.type_a = p.type_b = JG_S4;
        expect_loads(p, 16, wide_a, wide_b);
        p.type_a = JG_E4M3, p.type_b = JG_E5M2;
        expect_loads(p, 16, wide_a, wide_b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(widths_of_common_types),
        cmocka_unit_test(no_width_promises_more_than_the_addresses_give),
        cmocka_unit_test(widths_that_make_no_difference_are_one),
        cmocka_unit_test(operands_are_copied_where_nothing_converts_them),
    };
    return cmocka_run_group_tests_name("plan_access", tests, NULL, NULL);
}
