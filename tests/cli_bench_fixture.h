/* What the tests of jitgemm-bench share: the built tool as $B, on the software GPU, in the temporary home of cli_swgpu_fixture.h
 * with a cache file that has all generic kernels in it, filled.db; and what the tool printed, as JSON. */
#ifndef JG_TESTS_CLI_BENCH_FIXTURE_H
#define JG_TESTS_CLI_BENCH_FIXTURE_H

#include "cli_swgpu_fixture.h"

#include <cjson/cJSON.h>
#include <signal.h>

static cJSON *root; /* of the last bench() */

/* Runs a command on the software GPU with filled.db, and reads its JSON. */
__attribute__((format(printf, 1, 2)))
static inline int bench(const char *format, ...)
{
    char arguments[512];
    va_list list;
    va_start(list, format);
    vsnprintf(arguments, sizeof arguments, format, list);
    va_end(list);
    cJSON_Delete(root);
    root = NULL;
    const int status = run("\"$B\" %s --driver swgpu --cache filled.db --json", arguments);
    root = cJSON_Parse(out);
    return status;
}

static inline const cJSON *get(const cJSON *object, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(object, name);
}

static inline const char *get_text(const cJSON *object, const char *name)
{
    const char *text = cJSON_GetStringValue(get(object, name));
    if (!text) fail_msg("no text \"%s\" in:\n%s\n%s", name, out, err);
    return text;
}

static inline double get_number(const cJSON *object, const char *name)
{
    if (!cJSON_IsNumber(get(object, name))) fail_msg("no number \"%s\" in:\n%s\n%s", name, out, err);
    return get(object, name)->valuedouble;
}

/* run, and what it wrote where the status is another than expected. */
#define assert_run(expected, ...)                                                                          \
    do {                                                                                                   \
        const int run_status = run(__VA_ARGS__);                                                           \
        if (run_status != (expected)) fail_msg("status %d, not %d\n%s%s", run_status, expected, out, err); \
    } while (0)

#define assert_bench(expected, ...)                                                                        \
    do {                                                                                                   \
        const int run_status = bench(__VA_ARGS__);                                                         \
        if (run_status != (expected)) fail_msg("status %d, not %d\n%s%s", run_status, expected, out, err); \
    } while (0)

/* ---- group setup and teardown ---- */

static inline int make_bench_home(void **state)
{
    if (make_home(state) != 0) return -1;
    char tool[2048];
    snprintf(tool, sizeof tool, "%s", getenv("T"));
    char *slash = strrchr(tool, '/');
    snprintf(slash, sizeof tool - (size_t)(slash - tool), "/jitgemm-bench");
    setenv("B", tool, 1);
    unsetenv("TMPDIR");
    if (access(tool, X_OK) != 0) return -1;
    if (!no_nvrtc && run("\"$B\" dispatch --driver swgpu --cache filled.db --fill --problem 16:f16") != 0) fail_msg("%s", err);
    return 0;
}

static inline int remove_bench_home(void **state)
{
    cJSON_Delete(root);
    return remove_home(state);
}

#endif
