/* src/problem_key.c: what tells two problems apart in the memory map and what does not, and the way back to a text. */
#include "problem_key.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static problem_key key_of(jg_problem in)
{
    problem p;
    assert_int_equal(problem_canonicalise(&in, &p), JG_OK);
    return problem_key_of(&p, problem_promised_access(&p));
}

static int same(jg_problem x, jg_problem y)
{
    const problem_key a = key_of(x), b = key_of(y);
    return memcmp(&a, &b, sizeof a) == 0;
}

#define P(...) (jg_problem){.m = 24, .n = 16, .k = 40, __VA_ARGS__}
#define ODD(...) (jg_problem){.m = 24, .n = 17, .k = 41, __VA_ARGS__}

static void what_is_in_a_key(void **state)
{
    (void)state;
    assert_true(same(P(.type_a = JG_F16), P(.type_a = JG_F16)));
    assert_false(same(P(), ODD()));
    assert_false(same(P(), P(.type_a = JG_F16)));
    assert_false(same(P(), P(.form = JG_FORM_SPECIALISED)));
    assert_false(same(P(), P(.lda = 48)));
    assert_false(same(P(), P(.dynamic = JG_DYNAMIC_M)));
    assert_false(same(P(.dynamic = JG_DYNAMIC_N), P(.dynamic = JG_DYNAMIC_M)));
    assert_false(same(P(.align_bytes = 4), P()));
    assert_false(same(P(.type_a = JG_S8), P(.type_a = JG_S8, .type_b = JG_U8)));
    assert_false(same(P(.math = JG_MATH_STRICT), P()));
    assert_false(same(P(.math = JG_MATH_FLUSH), P()));
    assert_false(same(P(.epilogue = JG_EPILOGUE_BIAS_M), P(.epilogue = JG_EPILOGUE_BIAS_N)));
    assert_false(same(P(.activation = JG_ACTIVATION_RELU), P()));
    assert_false(same(P(.epilogue = JG_EPILOGUE_RESIDUAL), P(.epilogue = JG_EPILOGUE_RESIDUAL, .ld_residual = 20)));
    assert_false(same(P(.epilogue = JG_EPILOGUE_BIAS_N, .type_bias = JG_F16), P(.epilogue = JG_EPILOGUE_BIAS_N)));
    assert_false(same(P(.type_a = JG_F16, .type_b = JG_S4, .group_k = 32), P(.type_a = JG_F16, .type_b = JG_S4)));
}

static void what_is_not(void **state)
{
    (void)state;
    /* The same product, read as columns; dynamic dimensions go along. */
    const jg_problem columns = {.m = 16, .n = 24, .k = 40, .order = JG_COL_MAJOR};
    assert_true(same(P(), columns));
    jg_problem moving = columns;
    moving.dynamic = JG_DYNAMIC_N;
    assert_true(same(P(.dynamic = JG_DYNAMIC_M), moving));
    assert_false(same(P(.dynamic = JG_DYNAMIC_N), moving));
    const jg_problem biased = {.m = 16, .n = 24, .k = 40, .order = JG_COL_MAJOR, .epilogue = JG_EPILOGUE_BIAS_N};
    assert_true(same(P(.epilogue = JG_EPILOGUE_BIAS_M), biased));
    /* What nothing is fused in of. */
    assert_true(same(P(.type_bias = JG_F16, .ld_residual = 99, .stride_residual = 3), P()));
    /* A promise that changes no access. */
    assert_true(same(P(), P(.align_bytes = 4096)));
    assert_true(same(ODD(), ODD(.align_bytes = 4)));
    /* The policy of a call, and what a generic kernel takes no notice of. */
    assert_true(same(P(), P(.compile = JG_COMPILE_WAIT)));
    /* They have a say in the order of sums, whatever the form. */
    assert_false(same(P(.form = JG_FORM_GENERIC), P(.form = JG_FORM_GENERIC, .dynamic = JG_DYNAMIC_K)));
}

static void a_key_is_written_as_its_problem(void **state)
{
    (void)state;
    static const struct {
        jg_problem problem;
        const char *text;
    } rows[] = {
        {{.m = 24, .n = 16, .k = 40, .type_a = JG_F16}, "24x16x40:f16"},
        {{.m = 24, .n = 16, .k = 40, .dynamic = JG_DYNAMIC_M | JG_DYNAMIC_BATCH}, "24x16x40:dyn=mb"},
        {{.m = 16, .n = 24, .k = 40, .order = JG_COL_MAJOR, .dynamic = JG_DYNAMIC_N}, "24x16x40:dyn=m"},
        {{.m = 2, .n = 3, .k = 5, .batch = 4, .stride_b = 15, .stride_c = 6, .op_b = JG_T}, "2x3x5x4:nt:sa=0"},
        {{.m = 24, .n = 16, .k = 40, .type_a = JG_F16, .align_bytes = 2}, "24x16x40:f16:align=2"},
        {{.m = 24, .n = 16, .k = 40, .type_a = JG_F16, .align_bytes = 8}, "24x16x40:f16:align=8"},
        {{.m = 24, .n = 16, .k = 40, .align_bytes = 8}, "24x16x40:align=4"}, /* 8 promises no more */
        {{.m = 24, .n = 16, .k = 40, .type_a = JG_F16, .type_c = JG_F32, .align_bytes = 4}, "24x16x40:f16-f32:align=4"},
        {{.m = 3, .n = 5, .k = 7, .type_a = JG_F16, .align_bytes = 2}, "3x5x7:f16"}, /* no promise makes that wider */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[JG_PROBLEM_TEXT_BYTES];
        const problem_key key = key_of(rows[i].problem);
        problem_key_format(&key, text, sizeof text);
        assert_string_equal(text, rows[i].text);
    }
    char text[JG_PROBLEM_TEXT_BYTES];
    jg_problem read = {0};
    problem_key mixed = key_of((jg_problem){.m = 24, .n = 16, .k = 40, .type_a = JG_F16});
    mixed.access.b = 4; /* B's pointer alone */
    problem_key_format(&mixed, text, sizeof text);
    assert_int_equal(jg_problem_parse(text, &read), JG_OK);
    const problem_key again = key_of(read);
    assert_int_equal(again.access.b, 4);
    assert_true(again.access.a <= mixed.access.a && again.access.c <= mixed.access.c);
    mixed = key_of((jg_problem){.m = 24, .n = 16, .k = 40, .type_a = JG_F16});
    mixed.access.c = 0; /* C's alone */
    problem_key_format(&mixed, text, sizeof text);
    assert_string_equal(text, "24x16x40:f16:align=4");
    mixed = key_of((jg_problem){.m = 24, .n = 16, .k = 41, .type_a = JG_F16, .ldb = 17}); /* A and B promise nothing */
    mixed.access.c = 0;
    problem_key_format(&mixed, text, sizeof text);
    assert_string_equal(text, "24x16x41:f16:ldb=17:align=2"); /* the weakest that says it all */
    problem_key broken;
    memset(&broken, 0xff, sizeof broken);
    problem_key_format(&broken, text, sizeof text);
    assert_string_equal(text, "?");
}

/* What is fused in is told by the text under the names of the row-major problem. */
static void what_is_fused_in_is_written(void **state)
{
    (void)state;
    static const struct {
        jg_problem problem;
        const char *text;
    } rows[] = {
        {{.m = 24, .n = 16, .k = 40, .type_a = JG_S8}, "24x16x40:s8"},
        {{.m = 24, .n = 16, .k = 40, .type_a = JG_S8, .align_bytes = 1}, "24x16x40:s8:align=1"},
        {{.m = 16, .n = 24, .k = 40, .order = JG_COL_MAJOR, .type_a = JG_U8, .type_b = JG_S8, .epilogue = JG_EPILOGUE_SCALE_M},
         "24x16x40:s8.u8:scale_n"},
        {{.m = 16, .n = 24, .k = 64, .order = JG_COL_MAJOR, .type_a = JG_F16, .type_b = JG_S4, .group_k = 32, .zero_points = 1,
          .math = JG_MATH_STRICT | JG_MATH_FLUSH, .epilogue = JG_EPILOGUE_BIAS_N | JG_EPILOGUE_RESIDUAL, .type_bias = JG_F16,
          .ld_residual = 20, .activation = JG_ACTIVATION_GELU_ERF},
         "24x16x64:s4.f16:strict:flush:group=32:zeros:bias_m:residual:gelu_erf:bias=f16:ldr=20"},
        {{.m = 2, .n = 3, .k = 5, .batch = 4, .stride_a = 10, .stride_b = 15, .stride_c = 6, .stride_residual = 9,
          .epilogue = JG_EPILOGUE_RESIDUAL_AFTER | JG_EPILOGUE_REQUANTIZE | JG_EPILOGUE_SCALE},
         "2x3x5x4:scale:residual_after:requantize:sr=9"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[JG_PROBLEM_TEXT_BYTES];
        const problem_key key = key_of(rows[i].problem);
        problem_key_format(&key, text, sizeof text);
        assert_string_equal(text, rows[i].text);
        jg_problem read = {0};
        assert_int_equal(jg_problem_parse(text, &read), JG_OK);
        const problem_key again = key_of(read);
        assert_memory_equal(&again, &key, sizeof key);
    }
}

static unsigned larger(unsigned x, size_t y)
{
    return x > y ? x : (unsigned)y;
}

/* Whatever the elements are, and however the pointers lie, of which each is aligned to its own: what is read back is the same
 * problem, with accesses that are no wider. Where one promise can say it all, nothing is lost. */
static void a_text_never_widens_an_access(void **state)
{
    (void)state;
    static const jg_type pairs[][2] = {{JG_F32, JG_F32}, {JG_F16, JG_F16}, {JG_BF16, JG_S8}, {JG_S8, JG_F16}, {JG_F16, JG_S4},
                                       {JG_S4, JG_BF16}, {JG_S8, JG_U8}, {JG_S4, JG_S4}, {JG_E4M3, JG_E5M2}};
    static const int64_t lds[] = {40, 42, 44, 48, 64};
    int narrowed = 0, kept = 0;
    for (size_t t = 0; t < sizeof pairs / sizeof pairs[0]; t++)
        for (jg_type c = JG_F32; c <= JG_E5M2; c++)
            for (size_t l = 0; l < 25; l++)
                for (unsigned bits = 0; bits < 125; bits++) {
                    const jg_problem in = {.m = 24, .n = 16, .k = 40, .type_a = pairs[t][0], .type_b = pairs[t][1], .type_c = c,
                                           .lda = lds[l % 5], .ldb = 16, .ldc = lds[l / 5]};
                    problem p;
                    if (problem_canonicalise(&in, &p) != JG_OK) continue;
                    const unsigned a = larger(1u << bits % 5, type_bytes(pairs[t][0]));
                    const unsigned b = larger(1u << bits / 5 % 5, type_bytes(pairs[t][1]));
                    const unsigned out = larger(1u << bits / 25, type_bytes(c));
                    const problem_key key = problem_key_of(&p, plan_access(&p, a, b, out));
                    char text[JG_PROBLEM_TEXT_BYTES];
                    jg_problem read = {0};
                    problem_key_format(&key, text, sizeof text);
                    if (jg_problem_parse(text, &read)) fail_msg("%s", jg_last_error());
                    const problem_key again = key_of(read);
                    assert_memory_equal(&again.problem, &key.problem, sizeof key.problem);
                    if (again.access.a > key.access.a || again.access.b > key.access.b || again.access.c > key.access.c)
                        fail_msg("%s, of %u, %u and %u: %d %d %d instead of %d %d %d", text, a, b, out, again.access.a,
                                 again.access.b, again.access.c, key.access.a, key.access.b, key.access.c);
                    const int same_access = memcmp(&again.access, &key.access, sizeof key.access) == 0;
                    if (a == b && b == out) assert_true(same_access);
                    kept += same_access;
                    narrowed += !same_access;
                }
    assert_true(kept > 10000 && narrowed > 10000);
}

/* A promise below an operand's element says nothing of that operand. */
static void a_promise_is_no_less_than_each_element(void **state)
{
    (void)state;
    problem p;
    const jg_problem mixed = {.m = 24, .n = 16, .k = 40, .type_a = JG_F16, .type_b = JG_S8, .type_c = JG_F32, .align_bytes = 1};
    assert_int_equal(problem_canonicalise(&mixed, &p), JG_OK);
    assert_int_equal(p.align_bytes, 1);
    const access_widths promised = problem_promised_access(&p), natural = plan_access(&p, 2, 1, 4);
    assert_memory_equal(&promised, &natural, sizeof natural);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_in_a_key),
        cmocka_unit_test(what_is_not),
        cmocka_unit_test(a_key_is_written_as_its_problem),
        cmocka_unit_test(what_is_fused_in_is_written),
        cmocka_unit_test(a_text_never_widens_an_access),
        cmocka_unit_test(a_promise_is_no_less_than_each_element),
    };
    return cmocka_run_group_tests_name("problem_key", tests, NULL, NULL);
}
