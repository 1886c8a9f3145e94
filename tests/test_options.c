/* src/options.c: defaults, refusals, and what each environment variable decides. */
#include "options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void defaults_are_filled_in(void **state)
{
    (void)state;
    jg_options out;
    for (int i = 0; i < 2; i++) {
        memset(&out, 0xff, sizeof out);
        assert_int_equal(options_resolve(i ? &(jg_options){0} : NULL, &out), JG_OK);
        assert_int_equal(out.device, JG_DEVICE_AUTO);
        assert_int_equal(out.compile, JG_COMPILE_WAIT);
        assert_int_equal(out.arch, 0);
        assert_int_equal(out.sm_count, 0);
        assert_null(out.cache_path);
        assert_int_equal(out.cache_max_bytes, UINT64_C(256) << 20);
        assert_int_equal(out.memory_max_kernels, 1024);
        assert_int_equal(out.memory_max_bytes, UINT64_C(256) << 20);
        assert_null(out.log);
        assert_int_equal(out.log_level, JG_LOG_WARNING);
    }
}

static void what_is_given_is_kept(void **state)
{
    (void)state;
    const jg_options in = {.device = JG_DEVICE_CPU, .compile = JG_COMPILE_NEVER, .arch = 90, .sm_count = 3, .cache_path = "p",
                           .cache_max_bytes = 1, .memory_max_kernels = 2, .memory_max_bytes = 3, .nvrtc_path = "n",
                           .driver_path = "d", .log_level = JG_LOG_DEBUG};
    jg_options out;
    assert_int_equal(options_resolve(&in, &out), JG_OK);
    assert_memory_equal(&in, &out, sizeof in);
}

static void bad_values_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        jg_options options;
    } rows[] = {
        {"options.device is 3", {.device = (jg_device)3}},
        {"options.device is -1", {.device = (jg_device)-1}},
        {"options.compile is 3", {.compile = (jg_compile)3}},
        {"options.log_level is 5", {.log_level = (jg_log_level)5}},
        {"options.arch is negative", {.arch = -1}},
        {"options.sm_count is negative", {.sm_count = -1}},
        {"options.reserved is not 0", {.reserved = 1}},
    };
    jg_options out;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(options_resolve(&rows[i].options, &out), JG_ERR_VALUE);
        if (!strstr(jg_last_error(), rows[i].what)) fail_msg("\"%s\" does not say \"%s\"", jg_last_error(), rows[i].what);
    }
}

/* Null: unset. */
static void set(const char *name, const char *value)
{
    if (value) setenv(name, value, 1);
    else unsetenv(name);
}

static void the_cache_path_follows_its_order(void **state)
{
    (void)state;
    static const struct {
        const char *given, *cache, *xdg, *home, *path;
        int no_home;
    } rows[] = {
        {"/g/x.db", "/c/y.db", "/x", "/h", "/g/x.db", 0},
        {"", "/c/y.db", "/x", "/h", "", 0},
        {NULL, "/c/y.db", "/x", "/h", "/c/y.db", 0},
        {NULL, "", "/x", "/h", "", 0},
        {NULL, NULL, "/x", "/h", "/x/jitgemm/kernels.db", 0},
        {NULL, NULL, "", "/h", "/h/.cache/jitgemm/kernels.db", 0},
        {NULL, NULL, "relative", "/h", "/h/.cache/jitgemm/kernels.db", 0}, /* as the XDG specification wants */
        {NULL, NULL, NULL, "/h", "/h/.cache/jitgemm/kernels.db", 0},
        {NULL, NULL, NULL, NULL, "", 1},
        {NULL, NULL, "", "", "", 1},
        {NULL, NULL, "/x", NULL, "/x/jitgemm/kernels.db", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char path[100];
        int no_home = 9;
        set("JITGEMM_CACHE", rows[i].cache);
        set("XDG_CACHE_HOME", rows[i].xdg);
        set("HOME", rows[i].home);
        assert_int_equal(options_cache_path(rows[i].given, path, sizeof path, &no_home), JG_OK);
        assert_string_equal(path, rows[i].path);
        assert_int_equal(no_home, rows[i].no_home);
    }
}

static void a_cache_path_must_fit(void **state)
{
    (void)state;
    char path[8];
    int no_home;
    assert_int_equal(options_cache_path("1234567", path, sizeof path, &no_home), JG_OK);
    assert_string_equal(path, "1234567");
    assert_int_equal(options_cache_path("12345678", path, sizeof path, &no_home), JG_ERR_FILE);
    assert_non_null(strstr(jg_last_error(), "7 bytes"));
}

static void libraries_come_from_options_then_environment(void **state)
{
    (void)state;
    set("JITGEMM_NVRTC", NULL);
    set("JITGEMM_DRIVER", NULL);
    assert_null(options_nvrtc_path(NULL));
    assert_null(options_nvrtc_path(""));
    assert_string_equal(options_nvrtc_path("given"), "given");
    assert_string_equal(options_driver_path(NULL), "libcuda.so.1");
    assert_string_equal(options_driver_path(""), "libcuda.so.1");
    assert_string_equal(options_driver_path("given"), "given");
    set("JITGEMM_LINE_INFO", NULL);
    assert_int_equal(options_line_info(), 0);
    set("JITGEMM_LINE_INFO", "0");
    assert_int_equal(options_line_info(), 0);
    set("JITGEMM_LINE_INFO", "1");
    assert_int_equal(options_line_info(), 1);
    set("JITGEMM_LINE_INFO", NULL);
    set("JITGEMM_NVRTC", "/n");
    set("JITGEMM_DRIVER", "cpu");
    assert_string_equal(options_nvrtc_path(NULL), "/n");
    assert_string_equal(options_nvrtc_path("given"), "given");
    assert_string_equal(options_driver_path(NULL), "cpu");
    assert_string_equal(options_driver_path("given"), "given");
    set("JITGEMM_NVRTC", "");
    set("JITGEMM_DRIVER", "");
    assert_null(options_nvrtc_path(NULL));
    assert_string_equal(options_driver_path(NULL), "libcuda.so.1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_filled_in), cmocka_unit_test(what_is_given_is_kept), cmocka_unit_test(bad_values_are_named),
        cmocka_unit_test(the_cache_path_follows_its_order), cmocka_unit_test(a_cache_path_must_fit),
        cmocka_unit_test(libraries_come_from_options_then_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
