/* Catches what the program under test writes to standard output, for the tests of reports.
 *
 *     catch_output();  ... what writes ...  take_output();     then `out` has it */
#ifndef JG_TESTS_OUTPUT_FIXTURE_H
#define JG_TESTS_OUTPUT_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "scratch_fixture.h"

static char out[65536];
static int saved_stdout;

/* Standard output goes to a file until take_output. */
static inline void catch_output(void)
{
    fflush(stdout);
    saved_stdout = dup(STDOUT_FILENO);
    assert_non_null(freopen(scratch_path(folder, "out"), "w", stdout));
}

static inline void give_stdout_back(void)
{
    fflush(stdout);
    dup2(saved_stdout, STDOUT_FILENO);
    close(saved_stdout);
}

static inline void take_output(void)
{
    size_t bytes;
    give_stdout_back();
    unsigned char *text = scratch_read(scratch_path(folder, "out"), &bytes);
    assert_non_null(text);
    assert_true(bytes < sizeof out);
    memcpy(out, text, bytes + 1);
    free(text);
}

static inline void assert_has(const char *part)
{
    if (!strstr(out, part)) fail_msg("\"%s\" is not in:\n%s", part, out);
}

static inline void assert_has_not(const char *part)
{
    if (strstr(out, part)) fail_msg("\"%s\" is in:\n%s", part, out);
}

static inline int count_of(const char *part)
{
    int count = 0;
    for (const char *at = out; (at = strstr(at, part)); at++) count++;
    return count;
}

/* Commas of a CSV line that are not in quotes, one fewer than fields. */
static inline int commas_of(const char *line)
{
    int commas = 0, quoted = 0;
    for (const char *at = line; *at && *at != '\n'; at++) {
        quoted ^= *at == '"';
        commas += *at == ',' && !quoted;
    }
    return commas;
}

#endif
