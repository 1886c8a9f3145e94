/* Appending to a text of fixed size. */
#include "text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void test_appends_and_counts(void **state)
{
    (void)state;
    char text[16] = "";
    size_t length = 0;
    text_append(text, sizeof text, &length, "%d", 12);
    text_append(text, sizeof text, &length, "-%s", "ab");
    assert_string_equal(text, "12-ab");
    assert_int_equal(length, 5);
}

static void test_cuts_and_still_counts(void **state)
{
    (void)state;
    char text[8] = "xxxxxxx";
    size_t length = 0;
    for (int i = 0; i < 5; i++) text_append(text, 6, &length, "abc");
    assert_memory_equal(text, "abcab\0x", 7); /* nothing past the size */
    assert_int_equal(length, 15);
}

static void test_no_buffer_only_counts(void **state)
{
    (void)state;
    size_t length = 0;
    text_append(NULL, 0, &length, "%s", "seven77");
    assert_int_equal(length, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_appends_and_counts),
        cmocka_unit_test(test_cuts_and_still_counts),
        cmocka_unit_test(test_no_buffer_only_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
