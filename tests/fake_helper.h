/* A compile helper for tests: tests/fake_helper.c builds into a program that does not compile but does what FAKE_HELPER says.
 *
 * FAKE_HELPER is a list of words, "crash,ok": the first process does the first one, the next the second, and all later ones the last.
 * They count in the file that FAKE_HELPER_STARTS names, a byte each. The environment is copied when a helper or a context is made. */
#ifndef JG_TESTS_FAKE_HELPER_H
#define JG_TESTS_FAKE_HELPER_H

#include "scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline const char *fake_helper_build(void)
{
    const char *build = getenv("JG_TEST_BUILD_DIR");
    return build && *build ? build : "build";
}

/* The file that the Makefile builds. */
static inline const char *fake_helper_path(void)
{
    static char path[1024];
    snprintf(path, sizeof path, "%s/tests/fake_helper", fake_helper_build());
    return path;
}

/* The true one of this build. */
static inline const char *true_helper_path(void)
{
    static char path[1024];
    snprintf(path, sizeof path, "%s/libexec/jitgemm/jitgemm-compile", fake_helper_build());
    return path;
}

/* What those that are made from now on do; the count begins anew, in a file of this folder. */
static inline void fake_helper_does(const char *folder, const char *words)
{
    const char *starts = scratch_path(folder, "starts");
    scratch_write(starts, "", 0);
    setenv("FAKE_HELPER_STARTS", starts, 1);
    setenv("FAKE_HELPER", words, 1);
}

/* Processes that have been started since. */
static inline int fake_helper_starts(void)
{
    size_t bytes = 0;
    free(scratch_read(getenv("FAKE_HELPER_STARTS"), &bytes));
    return (int)bytes;
}

#endif
