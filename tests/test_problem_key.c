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
    /* A promise that changes no access. */
    assert_true(same(P(), P(.align_bytes = 4096)));
    assert_true(same(ODD(), ODD(.align_bytes = 4)));
    /* The policy of a call, and what a generic kernel takes no notice of. */
    assert_true(same(P(), P(.compile = JG_COMPILE_WAIT)));
    assert_true(same(P(.form = JG_FORM_GENERIC), P(.form = JG_FORM_GENERIC, .dynamic = JG_DYNAMIC_K)));
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
    problem_key broken;
    memset(&broken, 0xff, sizeof broken);
    problem_key_format(&broken, text, sizeof text);
    assert_string_equal(text, "?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_in_a_key),
        cmocka_unit_test(what_is_not),
        cmocka_unit_test(a_key_is_written_as_its_problem),
    };
    return cmocka_run_group_tests_name("problem_key", tests, NULL, NULL);
}
