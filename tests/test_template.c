/* The embedded templates and their digest. */
#include "kernel.h"
#include "template.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void test_digest_sees_code_and_not_comments(void **state)
{
    (void)state;
    const uint64_t plain = template_digest_text("int a;\nint b;\n");
    assert_true(plain == template_digest_text("// what\nint a;\n\n\nint b;  \n"));
    assert_true(plain == template_digest_text("int a;/* one\ntwo */\nint b; // end"
                                              "\n"));
    assert_true(plain != template_digest_text("int a;\nint c;\n"));
    assert_true(plain != template_digest_text("int a; int b;\n")); /* a line end can matter to the preprocessor */
    assert_true(template_digest_text("a / b") != template_digest_text("a "));
    assert_true(template_digest_text("a /* never closed") == template_digest_text("a "));
}

static void test_families_differ(void **state)
{
    (void)state;
    for (int family = FAMILY_SIMT; family <= LAST_FAMILY; family++) {
        assert_true(template_digest(family) == template_digest_text(template_source(family)));
        for (int other = FAMILY_SIMT; other < family; other++) assert_true(template_digest(family) != template_digest(other));
    }
}

static void test_templates_are_whole_and_stand_alone(void **state)
{
    (void)state;
    for (int family = FAMILY_SIMT; family <= LAST_FAMILY; family++) {
        const char *text = template_source(family);
        assert_non_null(strstr(text, "struct jg_args"));
        assert_non_null(strstr(text, "JG_KERNEL(const jg_args args)"));
        assert_null(strstr(text, "\n#include"));
        assert_int_equal(text[strlen(text) - 1], '\n');
    }
}

/* Every part is there once, in an order in which each finds what it uses. */
static void test_parts_are_in_order(void **state)
{
    (void)state;
    static const char *const shared[] = {"common.cuh", "numbers.cuh", "elements.cuh", "epilogue.cuh"};
    static const char *const own[][4] = {
        [FAMILY_SIMT] = {"quads.cuh", "simt.cu", "entry.cuh"}, [FAMILY_MMA] = {"fragments.cuh", "realign.cuh", "mma.cu", "entry.cuh"},
        [FAMILY_TF32] = {"fragments.cuh", "tf32.cu", "entry.cuh"}};
    for (int family = FAMILY_SIMT; family <= LAST_FAMILY; family++) {
        const char *at = template_source(family);
        for (int i = 0; i < 8; i++) {
            const char *name = i < 4 ? shared[i] : own[family][i - 4];
            char line[80];
            if (!name) break;
            snprintf(line, sizeof line, "#line 1 \"/jitgemm/templates/%s\"\n", name);
            const char *found = strstr(at, line);
            assert_non_null(found);
            if (i == 0) assert_ptr_equal(found, at);
            assert_null(strstr(found + 1, line));
            at = found + 1;
        }
        assert_null(strstr(at, "#line 1 "));
    }
}

/* What nvcc's host pass meets first: names of the system's own headers. */
static void test_no_name_is_the_systems(void **state)
{
    (void)state;
    static const char *const taken[] = {" quad_t", " register_t", " u_char", " uint;", " ulong;", " ushort;"};
    for (int family = FAMILY_SIMT; family <= LAST_FAMILY; family++)
        for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++) assert_null(strstr(template_source(family), taken[i]));
}

/* Every size is looked at by itself: a kernel may have any of them as a constant. */
static void test_every_size_has_its_own_condition(void **state)
{
    (void)state;
    static const char *const sizes[] = {"JG_M", "JG_N", "JG_K", "JG_LDA", "JG_LDB", "JG_LDC"};
    const char *text = template_source(FAMILY_TF32);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        char line[32];
        snprintf(line, sizeof line, "\n#ifdef %s\n", sizes[i]);
        assert_non_null(strstr(text, line));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_digest_sees_code_and_not_comments),
        cmocka_unit_test(test_families_differ),
        cmocka_unit_test(test_templates_are_whole_and_stand_alone),
        cmocka_unit_test(test_parts_are_in_order),
        cmocka_unit_test(test_no_name_is_the_systems),
        cmocka_unit_test(test_every_size_has_its_own_condition),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
