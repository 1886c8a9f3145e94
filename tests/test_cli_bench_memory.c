/* jitgemm-bench memory, from outside: settings in; what each process says of itself out. What NVRTC takes is known to be tens of
 * MiB, so it shows in whose memory it is. Nothing is timed. Tests that compile are skipped without NVRTC. */
#include "cli_swgpu_fixture.h"

#include <cjson/cJSON.h>
#include <signal.h>

#define NVRTC_LEAST_KIB (30 * 1024.0) /* its library's constants and a first compile; 75 to 110 MiB are usual */

static cJSON *root;     /* of the last run */
static int has_helper;  /* the built one is there */

#define assert_run(expected, ...)                                                                          \
    do {                                                                                                   \
        const int run_status = run(__VA_ARGS__);                                                           \
        if (run_status != (expected)) fail_msg("status %d, not %d\n%s%s", run_status, expected, out, err); \
    } while (0)

static void assert_memory(const char *arguments)
{
    cJSON_Delete(root);
    root = NULL;
    assert_run(0, "\"$B\" memory --driver cpu --json %s", arguments);
    root = cJSON_Parse(out);
    if (!root) fail_msg("no JSON: %s", out);
}

static const cJSON *get(const cJSON *object, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    if (!item) fail_msg("no \"%s\" in:\n%s", name, out);
    return item;
}

/* The object of a mode; they are in this order. */
static const cJSON *mode_at(int index, const char *name)
{
    const cJSON *mode = cJSON_GetArrayItem(get(root, "memory"), index);
    assert_string_equal(cJSON_GetStringValue(get(mode, "mode")), name);
    assert_string_equal(cJSON_GetStringValue(get(mode, "command")), "memory");
    return mode;
}

/* Resident at a moment, of all pages. */
static double rss(const cJSON *mode, const char *when)
{
    const cJSON *item;
    cJSON_ArrayForEach(item, get(mode, "moments"))
        if (strcmp(cJSON_GetStringValue(get(item, "when")), when) == 0) return get(item, "rss_kib")->valuedouble;
    fail_msg("no moment %s", when);
    return 0;
}

static double growth(const cJSON *mode)
{
    return rss(mode, "after all compiles") - rss(mode, "after jg_open");
}

/* ---- tests ---- */

static void thread_mode(void **state)
{
    (void)state;
    need_nvrtc();
    assert_memory("--compiles 2");
    const cJSON *mode = mode_at(0, "thread"), *item;
    assert_int_equal(cJSON_GetArraySize(get(mode, "moments")), 5);
    cJSON_ArrayForEach(item, get(mode, "moments"))
    {
        const double shared = get(item, "pss_kib")->valuedouble; /* a part of what is resident */
        assert_true(shared > 100 && shared <= get(item, "rss_kib")->valuedouble);
        assert_true(get(item, "rss_kib")->valuedouble <= get(item, "peak_kib")->valuedouble);
        assert_true(get(item, "peak_kib")->valuedouble <= get(mode, "peak_kib")->valuedouble);
    }
    assert_true(rss(mode, "after the first compile") - rss(mode, "after jg_open") > NVRTC_LEAST_KIB);
    assert_true(growth(mode) > NVRTC_LEAST_KIB);
    assert_true(rss(mode, "before jg_open") < NVRTC_LEAST_KIB);
    assert_true(get(mode, "helper_peak_kib")->valuedouble == 0); /* it started none */
    assert_int_equal(cJSON_GetArraySize(get(mode, "compile_ms")), 2);
    cJSON_ArrayForEach(item, get(mode, "compile_ms")) assert_true(item->valuedouble > 1);
}

/* Of the run before. */
static void helper_mode(void **state)
{
    (void)state;
    need_nvrtc();
    if (!has_helper) {
        print_message("SKIP the helper is not built\n");
        skip();
    }
    const cJSON *mode = mode_at(1, "helper"), *target = cJSON_GetArrayItem(get(root, "targets"), 0);
    assert_true(growth(mode) < NVRTC_LEAST_KIB);
    assert_true(get(mode, "peak_kib")->valuedouble < NVRTC_LEAST_KIB + rss(mode, "after jg_open"));
    assert_true(get(mode, "helper_peak_kib")->valuedouble > NVRTC_LEAST_KIB);
    assert_int_equal(cJSON_GetArraySize(get(mode, "compile_ms")), 2);
    assert_string_equal(cJSON_GetStringValue(get(target, "name")), "growth of the process by a helper's compiles");
    assert_string_equal(cJSON_GetStringValue(get(target, "unit")), "MiB");
    assert_true(get(target, "limit")->valuedouble == 20);
    char *notes = cJSON_PrintUnformatted(get(root, "notes"));
    assert_has(notes, "The helper keeps ");
    cJSON_free(notes);
    assert_has(out, "helper: a further compile");
}

/* No helper where one was looked for: the other row alone. One that was named is an error. */
static void no_helper(void **state)
{
    (void)state;
    need_nvrtc();
    setenv("JITGEMM_HELPER", "/no/such/helper", 1);
    assert_memory("--compiles 1");
    assert_string_equal(err, "");
    assert_true(growth(mode_at(0, "thread")) > NVRTC_LEAST_KIB);
    assert_non_null(cJSON_GetStringValue(get(mode_at(1, "helper"), "refused")));
    assert_int_equal(cJSON_GetArraySize(get(root, "targets")), 0);
    assert_null(strstr(out, "The helper keeps"));
    assert_run(0, "\"$B\" memory --driver cpu --compiles 1");
    unsetenv("JITGEMM_HELPER");
    assert_has(out, "jitgemm " JG_VERSION_STRING ", memory\nno GPU, sm_87, processors: ");
    assert_has(out, "\n  helper      SKIP ");
    assert_has(out, "\n  thread     ");
    assert_run(1, "\"$B\" memory --driver cpu --compiles 1 --csv --helper /no/such/helper");
    assert_has(err, "jitgemm-bench: --helper: ");
    assert_has(out, "\nmemory,when,pss_kib,rss_kib,peak_kib,refused\nthread,before jg_open,");
    assert_has(out, "\nthread,after jg_close,");
    assert_has(out, "\nhelper,,,,,");
}

static void bad_nvrtc(void **state)
{
    (void)state;
    assert_run(1, "\"$B\" memory --driver cpu --nvrtc /no/such/nvrtc.so");
    assert_has(err, "jitgemm-bench: compiling: ");
    assert_has(err, "/no/such/nvrtc.so");
}

/* The cpu device is for memory alone. */
static void other_commands_need_a_gpu(void **state)
{
    (void)state;
    static const char *const commands[] = {"compile", "memory compile"};
    for (size_t i = 0; i < 2; i++) {
        assert_run(1, "\"$B\" %s --driver cpu", commands[i]);
        assert_has(err, "the cpu device launches nothing");
        assert_string_equal(out, "");
    }
}

static void interrupt(void **state)
{
    (void)state;
    need_nvrtc();
    const pid_t pid = start("exec \"$B\" memory --driver cpu --compiles 1000 --json");
    pause_ms(500);
    kill(pid, SIGINT);
    assert_int_equal(finish(pid), 130);
    assert_has(err, "jitgemm-bench: interrupted; the results are of what was finished\n");
    assert_has(out, "\"interrupted\":\ttrue");
    /* Nothing is left behind. The brackets keep the pattern from finding itself. */
    assert_run(1, "for p in /proc/[0-9]*/cmdline; do tr '\\0' ' ' <$p; echo; done 2>/dev/null | grep '[m]emory-child.* 1000 '");
}

/* ---- group setup and teardown ---- */

static int make_memory_home(void **state)
{
    char tool[2048], helper[PATH_MAX];
    const char *build = getenv("JG_TEST_BUILD_DIR");
    if (make_home(state) != 0) return -1;
    snprintf(tool, sizeof tool, "%s", getenv("T"));
    char *slash = strrchr(tool, '/');
    snprintf(slash, sizeof tool - (size_t)(slash - tool), "/jitgemm-bench");
    setenv("B", tool, 1);
    unsetenv("JITGEMM_HELPER");
    snprintf(helper, sizeof helper, "%s/libexec/jitgemm/jitgemm-compile", build ? build : "build");
    has_helper = access(helper, X_OK) == 0;
    return access(tool, X_OK);
}

static int remove_memory_home(void **state)
{
    cJSON_Delete(root);
    return remove_home(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(thread_mode), cmocka_unit_test(helper_mode),               cmocka_unit_test(no_helper),
        cmocka_unit_test(bad_nvrtc),   cmocka_unit_test(other_commands_need_a_gpu), cmocka_unit_test(interrupt),
    };
    return cmocka_run_group_tests(tests, make_memory_home, remove_memory_home);
}
