/* Asserts on what the library's calls and those of jitgemm-bench's parts return, for tests that show its text when one fails. */
#ifndef JG_TESTS_STATUS_ASSERTS_H
#define JG_TESTS_STATUS_ASSERTS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "jitgemm.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static inline void assert_ok(jg_status status)
{
    if (status != JG_OK) fail_msg("%s: %s", jg_status_name(status), jg_last_error());
}

#define assert_fails(call, status, text)                                                               \
    do {                                                                                               \
        assert_string_equal(jg_status_name(call), jg_status_name(status));                             \
        if (!strstr(jg_last_error(), text)) fail_msg("\"%s\" lacks \"%s\"", jg_last_error(), text);    \
    } while (0)

#endif
