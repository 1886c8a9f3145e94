/* src/options.c: defaults, refusals, and what each environment variable decides. */
#include "options.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void defaults_are_filled_in(void **state)
{
    (void)state;
    jg_options out;
    for (int i = 0; i < 2; i++) {
        memset(&out, 0xff, sizeof out);
        assert_int_equal(options_resolve(i ? &(jg_options){0} : NULL, &out), JG_OK);
        assert_int_equal(out.device, JG_DEVICE_AUTO);
        assert_int_equal(out.compile, JG_COMPILE_BACKGROUND);
        assert_int_equal(out.resident, JG_RESIDENT_F32 | JG_RESIDENT_F16);
        assert_int_equal(out.prewarm, 0);
        assert_true(out.deadline_ms == 0);
        assert_int_equal(out.worker.threads, 1);
        assert_int_equal(out.worker.nice, 0);
        assert_int_equal(out.worker.queue, 256);
        assert_int_equal(out.worker.per_minute, 60);
        assert_int_equal(out.arch, 0);
        assert_int_equal(out.sm_count, 0);
        assert_null(out.cache_path);
        assert_int_equal(out.cache_max_bytes, UINT64_C(256) << 20);
        assert_int_equal(out.memory_max_kernels, 1024);
        assert_int_equal(out.memory_max_bytes, UINT64_C(256) << 20);
        assert_null(out.log);
        assert_int_equal(out.log_level, JG_LOG_WARNING);
        assert_int_equal(out.helper, JG_HELPER_AUTO);
        assert_null(out.helper_path);
        assert_true(out.helper_timeout_ms == 60e3);
    }
}

/* A context whose calls make their own kernels needs no generic set; a sealed one needs it most. */
static void the_generic_set_follows_the_policy(void **state)
{
    (void)state;
    jg_options out;
    assert_int_equal(options_resolve(&(jg_options){.compile = JG_COMPILE_WAIT}, &out), JG_OK);
    assert_int_equal(out.resident, JG_RESIDENT_NONE);
    assert_int_equal(options_resolve(&(jg_options){.compile = JG_COMPILE_NEVER}, &out), JG_OK);
    assert_int_equal(out.resident, JG_RESIDENT_F32 | JG_RESIDENT_F16);
}

/* Every flag by itself, and all. */
static void every_resident_class_is_taken(void **state)
{
    (void)state;
    static const uint32_t flags[] = {JG_RESIDENT_F32, JG_RESIDENT_F16,  JG_RESIDENT_BF16, JG_RESIDENT_S8,     JG_RESIDENT_U8,
                                     JG_RESIDENT_S4,  JG_RESIDENT_E4M3, JG_RESIDENT_TF32, JG_RESIDENT_3XTF32, JG_RESIDENT_GROUPED, JG_RESIDENT_NONE};
    uint32_t all = 0;
    jg_options out;
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        assert_int_equal(options_resolve(&(jg_options){.resident = flags[i]}, &out), JG_OK);
        assert_int_equal(out.resident, flags[i]);
        if (flags[i] != JG_RESIDENT_NONE) all |= flags[i];
    }
    assert_int_equal(all, 0x7017e);
    assert_int_equal(options_resolve(&(jg_options){.resident = all}, &out), JG_OK);
    assert_int_equal(out.resident, all);
    /* No other bit. */
    for (int bit = 0; bit < 31; bit++)
        assert_int_equal(options_resolve(&(jg_options){.resident = 1u << bit}, &out), all >> bit & 1 ? JG_OK : JG_ERR_VALUE);
}

static void what_is_given_is_kept(void **state)
{
    (void)state;
    const jg_options in = {.device = JG_DEVICE_CPU, .compile = JG_COMPILE_NEVER, .arch = 90, .sm_count = 3, .cache_path = "p",
                           .cache_max_bytes = 1, .memory_max_kernels = 2, .memory_max_bytes = 3, .nvrtc_path = "n",
                           .driver_path = "d", .factory_path = "f", .resident = JG_RESIDENT_BF16, .prewarm = JG_PREWARM_COMMON,
                           .deadline_ms = 0.5, .worker = {2, 19, 3, 4, 5}, .log_level = JG_LOG_DEBUG,
                           .helper = JG_HELPER_PROCESS, .helper_path = "h", .helper_timeout_ms = 0.25};
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
        {"options.compile is 4", {.compile = (jg_compile)4}},
        {"options.resident is 0x1;", {.resident = 1}},
        {"options.resident is 0x80;", {.resident = 1u << JG_S32}},  /* no kernels of these alone: s32 is a result */
        {"options.resident is 0x200;", {.resident = 1u << JG_E5M2}}, /* its kernels are made when they are met */
        {"options.resident is 0x80002;", {.resident = 1u << 19 | JG_RESIDENT_F32}},
        {"options.resident is 0x80000110", {.resident = JG_RESIDENT_NONE | JG_RESIDENT_S8 | JG_RESIDENT_E4M3}},
        {"options.resident is 0x80010000", {.resident = JG_RESIDENT_NONE | JG_RESIDENT_TF32}},
        {"options.resident is 0x80000002", {.resident = JG_RESIDENT_NONE | JG_RESIDENT_F32}},
        {"options.prewarm is 0x8", {.prewarm = 8}},
        {"prewarm_problems is null", {.prewarm_count = 1}},
        {"options.deadline_ms is -1", {.deadline_ms = -1}},
        {"options.worker.threads is 17", {.worker.threads = 17}},
        {"options.worker.nice is 20", {.worker.nice = 20}},
        {"options.worker.nice is -2", {.worker.nice = -2}},
        {"options.log_level is 5", {.log_level = (jg_log_level)5}},
        {"options.arch is negative", {.arch = -1}},
        {"options.sm_count is negative", {.sm_count = -1}},
        {"options.helper is 3", {.helper = (jg_helper)3}},
        {"options.helper is -1", {.helper = (jg_helper)-1}},
        {"options.helper_timeout_ms is -1", {.helper_timeout_ms = -1}},
        {"options.helper_timeout_ms is nan", {.helper_timeout_ms = NAN}},
        {"options.reserved is not 0", {.reserved = 1}},
    };
    jg_options out;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(options_resolve(&rows[i].options, &out), JG_ERR_VALUE);
        if (!strstr(jg_last_error(), rows[i].what)) fail_msg("\"%s\" does not say \"%s\"", jg_last_error(), rows[i].what);
    }
}

/* The factory file: what is named goes first, also "" for none; nothing is made up that is not there. */
static void the_factory_file_is_named_or_found(void **state)
{
    (void)state;
    char path[64];
    setenv("JITGEMM_FACTORY", "/e/f.db", 1);
    assert_int_equal(options_factory_path("/g/f.db", path, sizeof path), 1);
    assert_string_equal(path, "/g/f.db");
    assert_int_equal(options_factory_path(NULL, path, sizeof path), 1);
    assert_string_equal(path, "/e/f.db");
    assert_int_equal(options_factory_path("", path, sizeof path), 1);
    assert_string_equal(path, "");
    setenv("JITGEMM_FACTORY", "", 1);
    assert_int_equal(options_factory_path(NULL, path, sizeof path), 1);
    assert_string_equal(path, "");
}

/* The compile helper: the same; the one of this build lies beside the folder of this program, as it does where it is installed. */
static void the_helper_is_named_or_found(void **state)
{
    (void)state;
    char path[4096];
    const char *before = getenv("JITGEMM_HELPER");
    char *kept = before ? strdup(before) : NULL;
    setenv("JITGEMM_HELPER", "/e/helper", 1);
    assert_int_equal(options_helper_path("/g/helper", path, sizeof path), 1);
    assert_string_equal(path, "/g/helper");
    assert_int_equal(options_helper_path(NULL, path, sizeof path), 1);
    assert_string_equal(path, "/e/helper");
    assert_int_equal(options_helper_path("", path, sizeof path), 1);
    assert_string_equal(path, "");
    setenv("JITGEMM_HELPER", "", 1);
    assert_int_equal(options_helper_path(NULL, path, sizeof path), 1);
    assert_string_equal(path, "");
    unsetenv("JITGEMM_HELPER");
    assert_int_equal(options_helper_path(NULL, path, sizeof path), 0);
    assert_non_null(strstr(path, "/tests/../libexec/jitgemm/jitgemm-compile"));
    assert_int_equal(access(path, X_OK), 0);
    if (kept) setenv("JITGEMM_HELPER", kept, 1);
    free(kept);
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
        cmocka_unit_test(every_resident_class_is_taken),
        cmocka_unit_test(the_generic_set_follows_the_policy), cmocka_unit_test(the_factory_file_is_named_or_found),
        cmocka_unit_test(the_helper_is_named_or_found),
        cmocka_unit_test(the_cache_path_follows_its_order), cmocka_unit_test(a_cache_path_must_fit),
        cmocka_unit_test(libraries_come_from_options_then_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
