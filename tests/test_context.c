/* src/context.c: opening and closing, which cache file is used and what an unusable one costs, the log, the counters, and
 * that the host process is left as it was. */
#include "gemm_fixture.h"

#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

extern char **environ;

/* A context on the cpu device: only its cache matters here. */
static jg_options cpu_options(const char *cache)
{
    return (jg_options){.device = JG_DEVICE_CPU, .cache_path = cache, .log = fixture_log, .log_user = &fx, .log_level = JG_LOG_WARNING};
}

static jg_status multiply(jg_context *c)
{
    const jg_problem p = square(8, JG_F32);
    return fixture_gemm(c, &p, 1, 0);
}

/* --- opening --- */

static void bad_options_open_nothing(void **state)
{
    (void)state;
    jg_options options = fixture_options();
    jg_context *c = (jg_context *)&options;
    assert_status(jg_open(&options, NULL), JG_ERR_NULL);
    options.reserved = 1;
    assert_status(jg_open(&options, &c), JG_ERR_VALUE);
    assert_null(c);
    options = fixture_options();
    options.compile = (jg_compile)7;
    assert_status(jg_open(&options, &c), JG_ERR_VALUE);
    assert_says(jg_last_error(), "options.compile is 7");
    options = fixture_options();
    options.arch = 90;
    assert_status(jg_open(&options, &c), JG_ERR_ARCH);
    assert_null(c);
    options = fixture_options();
    options.driver_path = "/nonexistent/libcuda.so";
    assert_status(jg_open(&options, &c), JG_ERR_NO_DRIVER);
    assert_null(c);
    assert_false(scratch_exists(fx.cache)); /* no trace */
}

static void without_a_driver_auto_is_the_cpu(void **state)
{
    (void)state;
    jg_options options = fixture_options();
    options.device = JG_DEVICE_AUTO;
    options.driver_path = "/nonexistent/libcuda.so";
    jg_context *c = fixture_open_with(options);
    assert_true(context_is_cpu(c));
    assert_status(multiply(c), JG_OK);
    assert_status(jg_poll(c, NULL, NULL), JG_OK);
    assert_status(jg_close(c), JG_OK);
    setenv("JITGEMM_DRIVER", "cpu", 1);
    assert_status(jg_open(NULL, &c), JG_OK); /* no options at all */
    assert_true(context_is_cpu(c));
    assert_status(jg_close(c), JG_OK);
    unsetenv("JITGEMM_DRIVER");
    assert_int_equal(fx.fake->all_calls(), 0);
}

static void option_strings_are_copied(void **state)
{
    (void)state;
    const jg_problem p = square(8, JG_F32);
    char cache[sizeof fx.cache], nvrtc_path[] = "/nonexistent/libnvrtc.so";
    memcpy(cache, fx.cache, sizeof cache);
    jg_options options = fixture_options();
    options.cache_path = cache;
    options.nvrtc_path = nvrtc_path;
    jg_context *c = fixture_open_with(options);
    memset(cache, 'x', sizeof cache - 1);
    memset(nvrtc_path, 'x', sizeof nvrtc_path - 1);
    assert_status(fixture_gemm(c, &p, 1, 0), JG_ERR_NO_NVRTC);
    assert_says(jg_last_error(), "/nonexistent/libnvrtc.so");
    assert_string_equal(fixture_stats(c).path, fx.cache);
    assert_status(jg_close(c), JG_OK);
}

static void a_bound_context_is_not_ours_to_release(void **state)
{
    (void)state;
    jg_context *own = fixture_open();
    assert_int_equal(fx.fake->primary_references(), 1);
    CUcontext mine = fx.fake->make_context();
    fx.fake->push(mine);
    const jg_problem p = square(8, JG_F32);
    fixture_plant(&p, JG_FORM_AUTO);
    jg_context *bound = fixture_open();
    assert_ptr_equal(bound->device.context, mine);
    fx.fake->pop();
    assert_status(fixture_gemm(bound, &p, 1, 0), JG_OK); /* also where it is not current */
    assert_status(fixture_gemm(own, &p, 1, 0), JG_OK);
    assert_int_equal(fx.fake->modules(), 2); /* each has its own */
    assert_int_equal(fx.fake->depth(), 0);
    assert_status(jg_close(own), JG_OK);
    assert_int_equal(fx.fake->primary_references(), 0);
    assert_int_equal(fx.fake->modules(), 1);
    assert_status(jg_close(bound), JG_OK);
    assert_int_equal(fx.fake->calls("cuDevicePrimaryCtxRelease_v2"), 1);
}

/* --- the cache file --- */

static void the_cache_file_is_found_by_the_environment(void **state)
{
    (void)state;
    const struct {
        const char *cache, *xdg, *home, *file;
    } rows[] = {
        {"c/k.db", "x", "h", "c/k.db"},
        {NULL, "x", "h", "x/jitgemm/kernels.db"},
        {NULL, NULL, "h", "h/.cache/jitgemm/kernels.db"},
        {NULL, NULL, NULL, NULL},
    };
    static const char *const names[] = {"JITGEMM_CACHE", "XDG_CACHE_HOME", "HOME"};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *const values[] = {rows[i].cache, rows[i].xdg, rows[i].home};
        for (int j = 0; j < 3; j++) {
            if (values[j]) setenv(names[j], scratch_path(fx.folder, values[j]), 1);
            else unsetenv(names[j]);
        }
        fx.logs[JG_LOG_WARNING] = 0;
        jg_context *c = fixture_open_with(cpu_options(NULL));
        jg_stats s = fixture_stats(c);
        assert_string_equal(s.path, rows[i].file ? scratch_path(fx.folder, rows[i].file) : "");
        if (rows[i].file) assert_int_equal(scratch_mode(s.path), 0600);
        assert_int_equal(fx.logs[JG_LOG_WARNING], rows[i].file ? 0 : 1); /* no home: said once */
        if (!rows[i].file) assert_says(fx.log, "memory only");
        assert_status(multiply(c), JG_OK);
        assert_status(jg_close(c), JG_OK);
    }
    setenv("JITGEMM_CACHE", "", 1);
    jg_context *c = fixture_open_with(cpu_options(NULL));
    assert_string_equal(fixture_stats(c).path, "");
    assert_int_equal(fx.logs[JG_LOG_WARNING], 1); /* asked for, so nothing is said */
    assert_status(jg_close(c), JG_OK);
    setenv("HOME", fx.folder, 1);
}

static void make_foreign(const char *file)
{
    sqlite3 *db;
    assert_int_equal(sqlite3_open(file, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "CREATE TABLE diary(day TEXT); INSERT INTO diary VALUES('mine')", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    chmod(file, 0600);
}

/* One warning that names the file, and everything else works. */
static void an_unusable_cache_costs_one_warning(void **state)
{
    (void)state;
    const char *garbage = scratch_path(fx.folder, "garbage.db"), *foreign = scratch_path(fx.folder, "foreign.db");
    const char *folder = scratch_path(fx.folder, "folder.db"), *link = scratch_path(fx.folder, "link.db");
    char text[3000];
    memset(text, '?', sizeof text);
    scratch_write(garbage, text, sizeof text);
    chmod(garbage, 0600);
    make_foreign(foreign);
    assert_int_equal(mkdir(folder, 0700), 0);
    assert_int_equal(symlink(garbage, link), 0);
    char too_long[600];
    memset(too_long, 'x', sizeof too_long - 1);
    too_long[0] = '/';
    too_long[sizeof too_long - 1] = 0;
    const char *const files[] = {garbage, foreign, folder, link, "/proc/jitgemm/kernels.db", too_long};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        size_t before = 0, after = 0;
        unsigned char *was = scratch_read(files[i], &before);
        fx.logs[JG_LOG_WARNING] = 0;
        jg_context *c = fixture_open_with(cpu_options(files[i]));
        if (fx.logs[JG_LOG_WARNING] != 1) fail_msg("%s: %d warnings", files[i], fx.logs[JG_LOG_WARNING]);
        assert_says(fx.log, i == 4 ? "/proc/jitgemm" : i == 5 ? "longer than" : files[i]); /* there the folder is what is wrong */
        assert_says(fx.log, "memory only");
        assert_string_equal(fixture_stats(c).path, "");
        assert_status(multiply(c), JG_OK);
        assert_status(multiply(c), JG_OK);
        assert_int_equal(fx.logs[JG_LOG_WARNING], 1);
        assert_status(jg_close(c), JG_OK);
        unsigned char *is = scratch_read(files[i], &after);
        assert_int_equal(before, after);
        if (was && is) assert_memory_equal(was, is, before); /* left as it was */
        free(was);
        free(is);
    }
}

/* In a process that cannot write the file: exit status 0 if the kernel in it serves. */
static int use_read_only(void *user)
{
    const jg_problem p = square(8, JG_F32);
    jg_options options = fixture_options();
    jg_context *c;
    float a[64] = {0}, b[64] = {0}, out[64];
    (void)user;
    options.nvrtc_path = "/nonexistent/libnvrtc.so";
    if (jg_open(&options, &c) != JG_OK) return 1;
    if (jg_gemm(c, &p, &(jg_operands){.a = a, .b = b, .c = out}) != JG_OK) return 2;
    if (fx.logs[JG_LOG_WARNING] > 1) return 3;
    return jg_close(c) == JG_OK ? 0 : 4;
}

static void a_read_only_file_still_serves(void **state)
{
    (void)state;
    const jg_problem p = square(8, JG_F32);
    fixture_plant(&p, JG_FORM_AUTO);
    chmod(fx.cache, 0444);
    chmod(fx.folder, 0555);
    assert_int_equal(scratch_child(use_read_only, NULL, geteuid() == 0 ? 65534 : 0), 0);
    chmod(fx.folder, 0700);
}

static void a_locked_file_costs_a_warning_not_a_call(void **state)
{
    (void)state;
    NEEDS_NVRTC();
    jg_options options = fixture_options();
    jg_context *c = fixture_open_with(options);
    sqlite3 *db;
    assert_int_equal(sqlite3_open(fx.cache, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    assert_status(multiply(c), JG_OK);
    assert_status(multiply(c), JG_OK);
    jg_stats s = fixture_stats(c);
    assert_int_equal(s.compiles, 1);
    assert_int_equal(s.disk_faults, 1);
    assert_int_equal(s.disk_entries, 0);
    assert_int_equal(fx.logs[JG_LOG_WARNING], 1);
    sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    sqlite3_close(db);
    assert_status(jg_close(c), JG_OK);
}

/* --- log and counters --- */

static void the_log_level_is_kept_to(void **state)
{
    (void)state;
    const jg_problem p = square(8, JG_F32);
    fixture_plant(&p, JG_FORM_AUTO);
    for (int level = JG_LOG_ERROR; level <= JG_LOG_DEBUG; level++) {
        memset(fx.logs, 0, sizeof fx.logs);
        jg_options options = fixture_options();
        options.log_level = (jg_log_level)level;
        jg_context *c = fixture_open_with(options);
        if (level == JG_LOG_INFO) {
            assert_says(fx.log, "jitgemm " JG_VERSION_STRING);
            assert_says(fx.log, "sm_87, 16 SMs");
            assert_says(fx.log, fx.cache);
        }
        assert_status(multiply(c), JG_OK);
        assert_status(jg_close(c), JG_OK);
        assert_int_equal(fx.logs[JG_LOG_ERROR] + fx.logs[JG_LOG_WARNING], 0);
        assert_int_equal(fx.logs[JG_LOG_INFO], level >= JG_LOG_INFO);
        assert_int_equal(fx.logs[JG_LOG_DEBUG], level >= JG_LOG_DEBUG);
    }
    fx.logs[JG_LOG_WARNING] = 0;
    jg_options quiet = cpu_options("/proc/jitgemm/kernels.db");
    quiet.log_level = JG_LOG_ERROR;
    jg_context *c = fixture_open_with(quiet);
    assert_int_equal(fx.logs[JG_LOG_WARNING], 0);
    assert_status(jg_close(c), JG_OK);
    quiet.log = NULL;
    quiet.log_level = JG_LOG_DEBUG;
    c = fixture_open_with(quiet); /* no hook, no crash */
    assert_status(jg_close(c), JG_OK);
}

static void counters_start_at_zero_and_count(void **state)
{
    (void)state;
    const jg_problem p = square(8, JG_F32), missing = square(9, JG_F32);
    fixture_plant(&p, JG_FORM_AUTO);
    jg_context *c = fixture_open_without_nvrtc();
    jg_stats s, expected = {.disk_entries = 1, .place = "sm_87 16sm unknown"};
    memset(&s, 0xff, sizeof s);
    assert_status(jg_cache_stats(c, &s), JG_OK);
    expected.disk_bytes = s.disk_bytes;
    memcpy(expected.path, s.path, sizeof expected.path);
    assert_string_equal(s.path, fx.cache);
    assert_int_equal(s.path[sizeof s.path - 1], 0);
    assert_true(s.disk_bytes > 100);
    assert_memory_equal(&s, &expected, sizeof s);
    assert_status(fixture_gemm(c, &missing, 1, 0), JG_ERR_NO_NVRTC);
    for (int i = 0; i < 3; i++) assert_status(multiply(c), JG_OK);
    s = fixture_stats(c);
    assert_int_equal(s.problems, 1);
    assert_int_equal(s.kernels, 1);
    assert_true(s.kernel_bytes > 64);
    assert_int_equal(s.memory_misses, 2);
    assert_int_equal(s.memory_hits, 2);
    assert_int_equal(s.disk_hits, 1);
    assert_int_equal(s.disk_misses, 2); /* the specialised and the generic one */
    assert_int_equal(s.compile_failures, 1);
    assert_int_equal(s.compiles, 0);
    assert_status(jg_cache_stats(NULL, &s), JG_ERR_NULL);
    assert_status(jg_cache_stats(c, NULL), JG_ERR_NULL);
    assert_status(jg_close(c), JG_OK);
}

/* --- a good guest --- */

static pthread_t main_thread;
static atomic_int ticks, strays;

static void on_alarm(int number)
{
    (void)number;
    atomic_fetch_add(&ticks, 1);
    if (!pthread_equal(pthread_self(), main_thread)) atomic_fetch_add(&strays, 1);
}

/* A compile leaves locale, environment and signal mask alone, and its threads take none of the host's signals. */
static void a_compile_leaves_the_process_as_it_was(void **state)
{
    (void)state;
    NEEDS_NVRTC();
    static const char *const locales[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "C.UTF-8"};
    char locale[256], decimal[8];
    sigset_t mask, after;
    size_t variables = 0;
    char *copy[512];
    for (size_t i = 0; i < 3 && !setlocale(LC_ALL, locales[i]); i++) continue;
    snprintf(locale, sizeof locale, "%s", setlocale(LC_ALL, NULL));
    snprintf(decimal, sizeof decimal, "%s", localeconv()->decimal_point);
    for (; environ[variables] && variables < 511; variables++) copy[variables] = strdup(environ[variables]);
    /* Blocked here, so a thread that does not block it would get it. */
    sigemptyset(&mask);
    sigaddset(&mask, SIGALRM);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    main_thread = pthread_self();
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART}, before;
    sigaction(SIGALRM, &action, &before);
    setitimer(ITIMER_REAL, &(struct itimerval){{0, 3000}, {0, 3000}}, NULL);

    jg_context *c = fixture_open();
    assert_status(multiply(c), JG_OK);
    setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 0}}, NULL);
    assert_int_equal(fixture_stats(c).compiles, 1);
    assert_int_equal(atomic_load(&ticks), 0);

    pthread_sigmask(SIG_SETMASK, NULL, &after);
    for (int number = 1; number < 32; number++) assert_int_equal(sigismember(&after, number), sigismember(&mask, number));
    sigemptyset(&mask);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    assert_int_equal(atomic_load(&ticks), 1); /* it was pending all the time */
    assert_int_equal(atomic_load(&strays), 0);
    sigaction(SIGALRM, &before, NULL);
    assert_string_equal(setlocale(LC_ALL, NULL), locale);
    assert_string_equal(localeconv()->decimal_point, decimal);
    for (size_t i = 0; i < variables; i++) {
        assert_string_equal(environ[i], copy[i]);
        free(copy[i]);
    }
    assert_null(environ[variables]);
    setlocale(LC_ALL, "C");
    assert_status(jg_close(c), JG_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        /* First, so that it sees the first compile of the process. */
        FIXTURE_TEST(a_compile_leaves_the_process_as_it_was),
        FIXTURE_TEST(bad_options_open_nothing), FIXTURE_TEST(without_a_driver_auto_is_the_cpu),
        FIXTURE_TEST(option_strings_are_copied), FIXTURE_TEST(a_bound_context_is_not_ours_to_release),
        FIXTURE_TEST(the_cache_file_is_found_by_the_environment), FIXTURE_TEST(an_unusable_cache_costs_one_warning),
        FIXTURE_TEST(a_read_only_file_still_serves), FIXTURE_TEST(a_locked_file_costs_a_warning_not_a_call),
        FIXTURE_TEST(the_log_level_is_kept_to), FIXTURE_TEST(counters_start_at_zero_and_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
