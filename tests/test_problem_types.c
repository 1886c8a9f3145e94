/* src/problem_types.c: which types go together, in either order and with every C, what the defaults are, what a refusal calls the
 * nearest that works, and how two elements in a byte change the rules of the layout. */
#include "problem.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])
#define FOR_EACH_TYPE(t) for (jg_type t = JG_F32; t <= JG_E5M2; t++)

/* The public header's list, written out: the pairs and what C is by default. */
static const struct {
    jg_type a, b, c;
} combinations[] = {
    {JG_F32, JG_F32, JG_F32},    {JG_F16, JG_F16, JG_F16},    {JG_BF16, JG_BF16, JG_BF16}, {JG_S8, JG_S8, JG_S32},
    {JG_S8, JG_U8, JG_S32},      {JG_U8, JG_S8, JG_S32},      {JG_U8, JG_U8, JG_S32},      {JG_S4, JG_S4, JG_S32},
    {JG_F16, JG_S8, JG_F16},     {JG_S8, JG_F16, JG_F16},     {JG_F16, JG_S4, JG_F16},     {JG_S4, JG_F16, JG_F16},
    {JG_BF16, JG_S8, JG_BF16},   {JG_S8, JG_BF16, JG_BF16},   {JG_BF16, JG_S4, JG_BF16},   {JG_S4, JG_BF16, JG_BF16},
    {JG_E4M3, JG_E4M3, JG_F32},  {JG_E4M3, JG_E5M2, JG_F32},  {JG_E5M2, JG_E4M3, JG_F32},  {JG_E5M2, JG_E5M2, JG_F32},
};

/* -1: not supported. */
static int find(jg_type a, jg_type b)
{
    for (size_t i = 0; i < COUNT(combinations); i++)
        if (combinations[i].a == a && combinations[i].b == b) return (int)i;
    return -1;
}

static int is_integer(jg_type t)
{
    return t == JG_S8 || t == JG_U8 || t == JG_S4 || t == JG_S32;
}

static int is_right(jg_type a, jg_type b, jg_type c)
{
    return find(a, b) >= 0 && c != JG_S4 && (c != JG_S32 || (is_integer(a) && is_integer(b)));
}

static problem canonical(jg_problem in)
{
    problem out;
    memset(&out, 0xee, sizeof out);
    if (problem_canonicalise(&in, &out) != JG_OK) fail_msg("%s", jg_last_error());
    return out;
}

static void assert_refused(jg_problem in, jg_status status, const char *named)
{
    problem out, untouched;
    memset(&untouched, 0xee, sizeof untouched);
    out = untouched;
    const jg_status got = problem_canonicalise(&in, &out);
    if (got != status || !strstr(jg_last_error(), named))
        fail_msg("\"%s\": %s, %s", named, jg_status_name(got), got ? jg_last_error() : "");
    assert_memory_equal(&out, &untouched, sizeof out);
}

static void every_pair_in_either_order_and_with_every_result(void **state)
{
    (void)state;
    int supported = 0;
    FOR_EACH_TYPE(a) FOR_EACH_TYPE(b) FOR_EACH_TYPE(c)
        for (int order = JG_ROW_MAJOR; order <= JG_COL_MAJOR; order++) {
            const jg_problem in = {.m = 2, .n = 2, .k = 2, .type_a = a, .type_b = b, .type_c = c, .order = (jg_order)order};
            if (!is_right(a, b, c)) {
                char asked[64];
                snprintf(asked, sizeof asked, "type_a x type_b -> type_c = %s x %s -> %s; nearest", type_name(a), type_name(b),
                         type_name(c));
                assert_refused(in, JG_ERR_TYPE, asked); /* the caller's A first, whatever the order */
                continue;
            }
            const problem p = canonical(in);
            supported++;
            assert_int_equal(p.type_a, order == JG_ROW_MAJOR ? a : b);
            assert_int_equal(p.type_b, order == JG_ROW_MAJOR ? b : a);
            assert_int_equal(p.type_c, c);
        }
    /* 20 pairs and nine types but s4, s32 only with the five pairs of integers. */
    assert_int_equal(supported, 2 * (20 * 7 + 5));
}

static void defaults_of_the_types(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(combinations); i++) {
        const jg_type a = combinations[i].a, b = combinations[i].b, c = combinations[i].c;
        problem p = canonical((jg_problem){.m = 1, .n = 1, .k = 1, .type_a = a, .type_b = b});
        assert_true(p.type_a == a && p.type_b == b && p.type_c == c);
        assert_int_equal(type_default_result(a, b), c);
        p = canonical((jg_problem){.m = 1, .n = 1, .k = 1, .type_a = a, .type_b = b, .order = JG_COL_MAJOR});
        assert_true(p.type_a == b && p.type_b == a && p.type_c == c);
        if (a != b) continue;
        p = canonical((jg_problem){.m = 1, .n = 1, .k = 1, .type_a = a});
        assert_true(p.type_b == a && p.type_c == c);
    }
    const problem p = canonical((jg_problem){.m = 1, .n = 1, .k = 1, .type_b = JG_F32});
    assert_true(p.type_a == JG_F32 && p.type_c == JG_F32);
    assert_refused((jg_problem){.m = 1, .n = 1, .k = 1, .type_b = JG_F16}, JG_ERR_TYPE, "f32 x f16 -> f32; nearest");
}

static void what_a_refusal_names_works(void **state)
{
    (void)state;
    int refused = 0;
    FOR_EACH_TYPE(a) FOR_EACH_TYPE(b)
        for (jg_type c = JG_DEFAULT_TYPE; c <= JG_E5M2; c++) {
            const jg_problem in = {.m = 1, .n = 1, .k = 1, .type_a = a, .type_b = b, .type_c = c};
            problem p;
            char x[8], y[8], z[8];
            if (problem_canonicalise(&in, &p) == JG_OK) continue;
            refused++;
            const char *named = strstr(jg_last_error(), "nearest that works: ");
            assert_non_null(named);
            assert_int_equal(sscanf(named, "nearest that works: %7s x %7s -> %7s", x, y, z), 3);
            jg_type near[3] = {0};
            FOR_EACH_TYPE(t) {
                if (!strcmp(x, type_name(t))) near[0] = t;
                if (!strcmp(y, type_name(t))) near[1] = t;
                if (!strcmp(z, type_name(t))) near[2] = t;
            }
            assert_true(is_right(near[0], near[1], near[2]));
            /* No other combination has more of the types that were asked for; C is kept where it was given and fits. */
            int most = 0;
            for (size_t i = 0; i < COUNT(combinations); i++) {
                const int kept = (combinations[i].a == a) + (combinations[i].b == b);
                if (kept > most) most = kept;
            }
            assert_int_equal((near[0] == a) + (near[1] == b), most);
            const int keeps_c = c && is_right(near[0], near[1], c);
            assert_int_equal(near[2], keeps_c ? c : combinations[find(near[0], near[1])].c);
        }
    assert_true(refused > 500);
}

static void the_nearest_combination_is_a_likely_one(void **state)
{
    (void)state;
    static const struct {
        jg_type a, b, c;
        const char *text;
    } rows[] = {
        {JG_F16, JG_BF16, JG_F32, "f16 x bf16 -> f32; nearest that works: f16 x f16 -> f32"},
        {JG_F32, JG_BF16, JG_BF16, "f32 x bf16 -> bf16; nearest that works: f32 x f32 -> bf16"},
        {JG_F32, JG_S8, 0, "f32 x s8 -> f32; nearest that works: f16 x s8 -> f16"}, /* weights stay weights */
        {JG_S4, JG_F32, JG_F32, "s4 x f32 -> f32; nearest that works: s4 x f16 -> f32"},
        {JG_F16, JG_U8, 0, "f16 x u8 -> f16; nearest that works: f16 x s8 -> f16"},
        {JG_U8, JG_BF16, 0, "u8 x bf16 -> bf16; nearest that works: s8 x bf16 -> bf16"},
        {JG_S4, JG_S8, 0, "s4 x s8 -> s32; nearest that works: s8 x s8 -> s32"},
        {JG_U8, JG_S4, JG_F32, "u8 x s4 -> f32; nearest that works: u8 x s8 -> f32"},
        {JG_E4M3, JG_F16, 0, "e4m3 x f16 -> f16; nearest that works: f16 x f16 -> f16"},
        {JG_S32, JG_S32, 0, "s32 x s32 -> s32; nearest that works: s8 x s8 -> s32"},
        {JG_S32, JG_F16, 0, "s32 x f16 -> f16; nearest that works: s8 x f16 -> f16"},
        {JG_F32, JG_F32, JG_S32, "f32 x f32 -> s32; nearest that works: f32 x f32 -> f32"},
        {JG_F16, JG_S8, JG_S32, "f16 x s8 -> s32; nearest that works: f16 x s8 -> f16"},
        {JG_E5M2, JG_E5M2, JG_S32, "e5m2 x e5m2 -> s32; nearest that works: e5m2 x e5m2 -> f32"},
        {JG_S4, JG_S4, JG_S4, "s4 x s4 -> s4; nearest that works: s4 x s4 -> s32"},
        {JG_BF16, JG_S4, JG_S4, "bf16 x s4 -> s4; nearest that works: bf16 x s4 -> bf16"},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_refused((jg_problem){.m = 1, .n = 1, .k = 1, .type_a = rows[i].a, .type_b = rows[i].b, .type_c = rows[i].c},
                       JG_ERR_TYPE, rows[i].text);
}

static void type_table(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        unsigned bits, bytes;
    } rows[] = {{"?", 0, 0},    {"f32", 32, 4}, {"f16", 16, 2}, {"bf16", 16, 2}, {"s8", 8, 1},  {"u8", 8, 1},
                {"s4", 4, 1},   {"s32", 32, 4}, {"e4m3", 8, 1}, {"e5m2", 8, 1},  {"?", 0, 0}};
    for (int t = 0; t < (int)COUNT(rows); t++) {
        assert_string_equal(type_name((jg_type)t), rows[t].name);
        assert_int_equal(type_bits((jg_type)t), rows[t].bits);
        assert_int_equal(type_bytes((jg_type)t), rows[t].bytes);
        assert_int_equal(type_is_integer((jg_type)t), is_integer((jg_type)t));
        for (int64_t elements = 0; elements < 9; elements++)
            assert_int_equal(type_row_bytes((jg_type)t, elements), (elements * rows[t].bits + 7) / 8);
    }
    assert_int_equal(type_bits((jg_type)-1), 0);
    assert_false(type_is_integer((jg_type)99));
    assert_string_equal(type_name((jg_type)-1), "?");
}

static void what_is_multiplied_and_which_are_weights(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(combinations); i++) {
        const jg_type a = combinations[i].a, b = combinations[i].b;
        const problem p = canonical((jg_problem){.m = 1, .n = 1, .k = 1, .type_a = a, .type_b = b});
        const int half_a = a == JG_F16 || a == JG_BF16, half_b = b == JG_F16 || b == JG_BF16;
        assert_int_equal(problem_is_weights(&p, 0), is_integer(a) && half_b);
        assert_int_equal(problem_is_weights(&p, 1), is_integer(b) && half_a);
        const jg_type expected = half_a ? a : half_b ? b : a == JG_F32 ? JG_F32 : is_integer(a) ? JG_S8 : JG_F16;
        assert_int_equal(problem_multiply_type(&p), expected);
    }
}

/* --- two elements in a byte --- */

#define S4(...) {.m = 6, .n = 4, .k = 8, .type_a = JG_S4, __VA_ARGS__}
#define HALF_S4(...) {.m = 6, .n = 4, .k = 8, .type_a = JG_F16, .type_b = JG_S4, __VA_ARGS__}
#define S4_HALF(...) {.m = 6, .n = 4, .k = 8, .type_a = JG_S4, .type_b = JG_F16, __VA_ARGS__}

static void rows_of_s4_are_even_by_default(void **state)
{
    (void)state;
    for (int order = JG_ROW_MAJOR; order <= JG_COL_MAJOR; order++)
        for (int ops = 0; ops < 4; ops++)
            for (int64_t m = 0; m < 4; m++)
                for (int64_t n = 0; n < 4; n++)
                    for (int64_t k = 0; k < 4; k++) {
                        jg_problem in = S4(.order = (jg_order)order, .op_a = (jg_op)(ops & 1), .op_b = (jg_op)(ops >> 1));
                        in.m = m;
                        in.n = n;
                        in.k = k;
                        const problem p = canonical(in);
                        const int64_t a = p.op_a == JG_T ? p.m : p.k, b = p.op_b == JG_T ? p.k : p.n, c = p.n;
                        assert_int_equal(p.lda, a < 2 ? 2 : a + a % 2);
                        assert_int_equal(p.ldb, b < 2 ? 2 : b + b % 2);
                        assert_int_equal(p.ldc, c < 1 ? 1 : c); /* s32 is of whole bytes */
                    }
    jg_problem mixed = HALF_S4();
    mixed.k = mixed.n = 5;
    problem p = canonical(mixed);
    assert_true(p.lda == 5 && p.ldb == 6);
    mixed.type_c = JG_S8;
    p = canonical(mixed);
    assert_int_equal(p.ldc, 5);
}

static void odd_rows_and_items_of_s4_are_refused(void **state)
{
    (void)state;
    static const struct {
        jg_problem problem;
        jg_status status;
        const char *named;
    } rows[] = {
        {S4(.lda = 9), JG_ERR_LEADING_DIMENSION,
         "lda = 9 is odd, and A is of s4, two elements in a byte; use an even number, e.g. 10"},
        {S4(.ldb = 5), JG_ERR_LEADING_DIMENSION, "ldb = 5 is odd, and B"},
        {S4(.lda = 9, .order = JG_COL_MAJOR), JG_ERR_LEADING_DIMENSION, "lda = 9 is odd, and A"},
        {S4(.ldb = 9, .order = JG_COL_MAJOR), JG_ERR_LEADING_DIMENSION, "ldb = 9 is odd, and B"},
        {HALF_S4(.ldb = 5), JG_ERR_LEADING_DIMENSION, "ldb = 5 is odd, and B"},
        {S4_HALF(.lda = 11), JG_ERR_LEADING_DIMENSION, "lda = 11 is odd, and A"},
        {S4_HALF(.lda = 11, .order = JG_COL_MAJOR), JG_ERR_LEADING_DIMENSION, "lda = 11 is odd, and A"},
        {S4(.lda = 7), JG_ERR_LEADING_DIMENSION, "lda = 7 is too small; a row of A as stored has 8"}, /* that first */
        {S4(.lda = INT64_MAX), JG_ERR_LEADING_DIMENSION, "e.g. 9223372036854775806"},
        {S4(.batch = 2, .stride_a = 49, .stride_c = 24), JG_ERR_SIZE, "stride_a = 49 is odd, and A is of s4"},
        {S4(.batch = 2, .stride_b = 1, .stride_c = 24), JG_ERR_SIZE, "stride_b = 1 is odd, and B is of s4"},
        {S4(.batch = 2, .stride_b = 1, .stride_c = 24, .order = JG_COL_MAJOR), JG_ERR_SIZE, "stride_b = 1 is odd, and B"},
        {S4(.batch = 2, .stride_a = INT64_MAX, .stride_c = 24), JG_ERR_SIZE, "e.g. 9223372036854775806"},
        /* The largest offsets are told in elements, of which there are two in a byte. */
        {S4(.lda = INT64_MAX - 1), JG_ERR_OVERFLOW, "A ends"},
        {S4(.batch = 3, .stride_a = INT64_C(1) << 62, .stride_c = 24), JG_ERR_OVERFLOW, "stride_a = 4611686018427387904"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) assert_refused(rows[i].problem, rows[i].status, rows[i].named);
    /* A single row has no second one, but the rule is a rule. */
    assert_refused((jg_problem){.m = 1, .n = 4, .k = 5, .type_a = JG_S4, .lda = 5}, JG_ERR_LEADING_DIMENSION, "lda = 5");
}

static void even_rows_and_strides_that_do_not_count_are_taken(void **state)
{
    (void)state;
    problem p = canonical((jg_problem)S4(.lda = 10, .ldb = 4, .ldc = 5));
    assert_true(p.lda == 10 && p.ldb == 4 && p.ldc == 5);
    p = canonical((jg_problem)S4(.batch = 2, .stride_a = 48, .stride_b = 0, .stride_c = 25));
    assert_true(p.stride_a == 48 && p.stride_b == 0 && p.stride_c == 25);
    canonical((jg_problem)S4(.batch = 1, .stride_a = 49));
    canonical((jg_problem)HALF_S4(.lda = 9));
    canonical((jg_problem)HALF_S4(.batch = 2, .stride_a = 49, .stride_c = 25));
    canonical((jg_problem){.m = 3, .n = 3, .k = 3, .type_a = JG_S8, .lda = 3, .ldb = 5});
    p = canonical((jg_problem){.m = 1, .n = 2, .k = 2, .type_a = JG_S4, .lda = INT64_MAX - 1});
    assert_int_equal(p.lda, INT64_MAX - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pair_in_either_order_and_with_every_result),
        cmocka_unit_test(defaults_of_the_types),
        cmocka_unit_test(what_a_refusal_names_works),
        cmocka_unit_test(the_nearest_combination_is_a_likely_one),
        cmocka_unit_test(type_table),
        cmocka_unit_test(what_is_multiplied_and_which_are_weights),
        cmocka_unit_test(rows_of_s4_are_even_by_default),
        cmocka_unit_test(odd_rows_and_items_of_s4_are_refused),
        cmocka_unit_test(even_rows_and_strides_that_do_not_count_are_taken),
    };
    return cmocka_run_group_tests_name("problem_types", tests, NULL, NULL);
}
