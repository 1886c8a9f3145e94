/* src/status.c: names and numbers of statuses, and the text of the last error. */
#include "jitgemm.h"
#include "status.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* The numbers are part of the ABI: this table must only ever grow. */
static const struct {
    int number;
    const char *name;
} pinned[] = {
    {0, "JG_OK"}, {1, "JG_ERR_NULL"}, {2, "JG_ERR_SIZE"}, {3, "JG_ERR_OVERFLOW"}, {4, "JG_ERR_LEADING_DIMENSION"},
    {5, "JG_ERR_MISALIGNED"}, {6, "JG_ERR_TYPE"}, {7, "JG_ERR_VALUE"}, {8, "JG_ERR_ARCH"}, {9, "JG_ERR_PARSE"},
    {10, "JG_ERR_FILE"}, {11, "JG_ERR_NOT_FOUND"}, {12, "JG_ERR_NOT_READY"}, {13, "JG_ERR_UNSUPPORTED"},
    {14, "JG_ERR_NO_DRIVER"}, {15, "JG_ERR_NO_DEVICE"}, {16, "JG_ERR_NO_NVRTC"}, {17, "JG_ERR_COMPILE"}, {18, "JG_ERR_LOAD"},
    {19, "JG_ERR_LAUNCH"}, {20, "JG_ERR_NO_MEMORY"}, {21, "JG_ERR_CACHE"}, {22, "JG_ERR_CANCELLED"}, {23, "JG_ERR_BUSY"},
    {24, "JG_ERR_DEVICE"}, {25, "JG_ERR_HELPER"}, {100, "JG_ERR_DEVICE_LOST"}, {101, "JG_ERR_INTERNAL"},
};

static void names_and_numbers_are_pinned(void **state)
{
    (void)state;
    size_t row = 0;
    for (int number = -2; number < 300; number++) {
        if (row < sizeof pinned / sizeof pinned[0] && pinned[row].number == number)
            assert_string_equal(jg_status_name((jg_status)number), pinned[row++].name);
        else
            assert_string_equal(jg_status_name((jg_status)number), "JG_ERR_?");
    }
    assert_int_equal(row, sizeof pinned / sizeof pinned[0]);
    assert_int_equal(JG_ERR_DEVICE, 24);
    assert_int_equal(JG_ERR_DEVICE_LOST, 100);
}

static void fatal_begins_at_100(void **state)
{
    (void)state;
    assert_false(jg_status_is_fatal(JG_OK));
    assert_false(jg_status_is_fatal((jg_status)99));
    assert_true(jg_status_is_fatal(JG_ERR_DEVICE_LOST));
    assert_true(jg_status_is_fatal(JG_ERR_INTERNAL));
}

static void *look_at_text(void *text)
{
    snprintf(text, 64, "%s", jg_last_error());
    status_set(JG_ERR_SIZE, "another thread's");
    return NULL;
}

static void the_text_is_the_threads_own(void **state)
{
    (void)state;
    pthread_t thread;
    char seen[64] = "unset";
    assert_int_equal(status_set(JG_ERR_VALUE, "%s %d", "answer", 42), JG_ERR_VALUE);
    assert_string_equal(jg_last_error(), "answer 42");
    assert_int_equal(pthread_create(&thread, NULL, look_at_text, seen), 0);
    pthread_join(thread, NULL);
    assert_string_equal(seen, ""); /* none failed there before */
    assert_string_equal(jg_last_error(), "answer 42");
}

static void a_text_may_be_made_of_the_last_one(void **state)
{
    (void)state;
    status_set(JG_ERR_VALUE, "inner");
    assert_int_equal(status_set(JG_ERR_SIZE, "outer: %s", jg_last_error()), JG_ERR_SIZE);
    assert_string_equal(jg_last_error(), "outer: inner");
    assert_int_equal(status_prefix(JG_ERR_NULL, "%s: ", "before"), JG_ERR_NULL);
    assert_string_equal(jg_last_error(), "before: outer: inner");
}

static void long_texts_are_cut(void **state)
{
    (void)state;
    char text[8000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    status_set(JG_ERR_COMPILE, "%s", text);
    size_t length = strlen(jg_last_error());
    assert_true(length >= 1000 && length < sizeof text - 1);
    status_prefix(JG_ERR_COMPILE, "start ");
    assert_memory_equal(jg_last_error(), "start xxx", 9);
    assert_int_equal(strlen(jg_last_error()), length);
    status_prefix(JG_ERR_COMPILE, "%s", text);
    assert_int_equal(strlen(jg_last_error()), length);
}

static jg_status passes_on(jg_status status)
{
    RETURN_IF_ERROR(status);
    return JG_ERR_INTERNAL;
}

static void errors_are_passed_on(void **state)
{
    (void)state;
    assert_int_equal(passes_on(JG_ERR_BUSY), JG_ERR_BUSY);
    assert_int_equal(passes_on(JG_OK), JG_ERR_INTERNAL);
}

static void the_version_agrees_with_its_parts(void **state)
{
    (void)state;
    char text[32];
    snprintf(text, sizeof text, "%d.%d.%d", JG_VERSION_MAJOR, JG_VERSION_MINOR, JG_VERSION_PATCH);
    assert_string_equal(jg_version(), text);
    assert_string_equal(JG_VERSION_STRING, text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_numbers_are_pinned), cmocka_unit_test(fatal_begins_at_100),
        cmocka_unit_test(the_text_is_the_threads_own),  cmocka_unit_test(a_text_may_be_made_of_the_last_one),
        cmocka_unit_test(long_texts_are_cut),           cmocka_unit_test(errors_are_passed_on),
        cmocka_unit_test(the_version_agrees_with_its_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
