/* What the tests of jitgemm-cache and jitgemm-prewarm together share: they run the built tools (folder: $JG_TEST_BIN_DIR) as
 * $C and $P in a scratch folder, which is their home too, with nothing of the user's own caches and settings. */
#ifndef JG_TESTS_CLI_TOOLS_FIXTURE_H
#define JG_TESTS_CLI_TOOLS_FIXTURE_H

#include "scratch_fixture.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define TOOLS_TEXT_MAX 65536

static char out[TOOLS_TEXT_MAX], err[TOOLS_TEXT_MAX]; /* what the last run wrote */
static const char *no_nvrtc;                          /* why nothing can be compiled, or null */

static inline void read_text(const char *name, char *text)
{
    FILE *file = fopen(scratch_path(folder, name), "rb");
    size_t length = file ? fread(text, 1, TOOLS_TEXT_MAX - 1, file) : 0;
    text[length] = 0;
    if (file) fclose(file);
}

/* Starts a shell line in the scratch folder. */
static inline pid_t start(const char *line)
{
    static const char *const variables[] = {"JITGEMM_CACHE", "JITGEMM_DRIVER", "JITGEMM_LINE_INFO", "XDG_CACHE_HOME", "MAKEFLAGS",
                                            "MAKELEVEL", "MFLAGS"};
    scratch_write(scratch_path(folder, "out"), "", 0); /* nobody shall read what an earlier run wrote */
    scratch_write(scratch_path(folder, "err"), "", 0);
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid > 0) return pid;
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) unsetenv(variables[i]);
    setenv("HOME", folder, 1);
    setenv("JITGEMM_FACTORY", "", 1);
    setenv("TZ", "UTC", 1);
    if (chdir(folder) != 0 || !freopen("out", "w", stdout) || !freopen("err", "w", stderr)) _exit(126);
    if (!freopen("/dev/null", "r", stdin)) _exit(126);
    execl("/bin/sh", "sh", "-c", line, (char *)NULL);
    _exit(127);
}

static inline int finish(pid_t pid)
{
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    read_text("out", out);
    read_text("err", err);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

__attribute__((format(printf, 1, 2)))
static inline int run(const char *format, ...)
{
    char line[4096];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    return finish(start(line));
}

/* run, and the whole output of both streams where the status is another than expected. */
#define assert_run(expected, ...)                                                                       \
    do {                                                                                                \
        int run_status = run(__VA_ARGS__);                                                              \
        if (run_status != (expected)) fail_msg("status %d, not %d\n%s%s", run_status, expected, out, err); \
    } while (0)

static inline void assert_has(const char *text, const char *part)
{
    if (!strstr(text, part)) fail_msg("\"%s\" is not in:\n%s", part, text);
}

static inline void assert_has_not(const char *text, const char *part)
{
    if (strstr(text, part)) fail_msg("\"%s\" is in:\n%s", part, text);
}

static inline void assert_begins(const char *text, const char *beginning)
{
    if (strncmp(text, beginning, strlen(beginning)) != 0) fail_msg("not the beginning, \"%s\", of:\n%s", beginning, text);
}

static inline void need_nvrtc(void)
{
    if (!no_nvrtc) return;
    print_message("SKIP %s\n", no_nvrtc);
    skip();
}

/* Sets $C, $P and the absolute path of $JG_TEST_BUILD_DIR. Returns 0, or says why the tests are skipped. */
static inline int find_tools(void)
{
    static char reason[512];
    char bin[PATH_MAX], build[PATH_MAX], tool[PATH_MAX + 32];
    const char *given_bin = getenv("JG_TEST_BIN_DIR"), *given_build = getenv("JG_TEST_BUILD_DIR");
    if (!realpath(given_bin ? given_bin : "build/bin", bin) || !realpath(given_build ? given_build : "build", build)) {
        print_message("SKIP the tools are not built\n");
        return -1;
    }
    snprintf(tool, sizeof tool, "%s/jitgemm-cache", bin);
    setenv("C", tool, 1);
    snprintf(tool, sizeof tool, "%s/jitgemm-prewarm", bin);
    setenv("P", tool, 1);
    setenv("B", build, 1);
    scratch_make(folder);
    if (run("\"$P\" --arch 87 --cache probe.db --quiet 64:f16") != 0 && strstr(err, "JG_ERR_NO_NVRTC")) {
        snprintf(reason, sizeof reason, "no NVRTC: %.400s", err);
        no_nvrtc = reason;
    }
    scratch_remove(folder);
    return 0;
}

#endif
