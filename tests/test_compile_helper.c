/* Compiling in a helper as a program sees it: on the fake driver, with a fake helper beside the fake NVRTC of this process. Which of the
 * two compiles, what is tried again, what a lost helper leaves behind, and that calls go on. */
#include "background_fixture.h"
#include "helper_fixture.h"

#include <sys/resource.h>

/* A context in this mode, whose helpers do what the words say. */
static jg_options helper_options(jg_helper mode, const char *words)
{
    jg_options options = background_options();
    options.compile = JG_COMPILE_WAIT;
    options.helper = mode;
    options.helper_path = fake_helper_path();
    options.log_level = JG_LOG_WARNING;
    fake_helper_does(fx.folder, words);
    return options;
}

static jg_context *open_helped(jg_helper mode, const char *words)
{
    return fixture_open_with(helper_options(mode, words));
}

static jg_status multiply(jg_context *c, int64_t size)
{
    const jg_problem p = square(size, JG_F32);
    return fixture_gemm(c, &p, 1, 0);
}

static void close_and_check(jg_context *c)
{
    assert_status(jg_close(c), JG_OK);
    assert_no_children();
}

/* Of this process's NVRTC and of the helper, which compiled so many times. */
static void assert_compiles(int here, int there)
{
    assert_int_equal(atomic_load(&nvrtc_double->compiles), here);
    assert_int_equal(fake_helper_starts(), there);
}

/* --- which one compiles --- */

static void the_mode_decides(void **state)
{
    (void)state;
    static const struct { jg_helper mode; int here, there; } rows[] = {
        {JG_HELPER_AUTO, 0, 1}, {JG_HELPER_THREAD, 1, 0}, {JG_HELPER_PROCESS, 0, 1}};
    for (int i = 0; i < 3; i++) {
        atomic_store(&nvrtc_double->accepts, 1);
        atomic_store(&nvrtc_double->compiles, 0);
        jg_options options = helper_options(rows[i].mode, "ok");
        options.cache_path = "";
        jg_context *c = fixture_open_with(options);
        assert_status(multiply(c, 16), JG_OK);
        assert_status(multiply(c, 16), JG_OK);
        assert_compiles(rows[i].here, rows[i].there);
        const jg_stats stats = fixture_stats(c);
        assert_int_equal(stats.compiles, 1);
        assert_int_equal(stats.helpers_lost, 0);
        assert_true(stats.compile_ms > 0);
        assert_int_equal(fx.logs[JG_LOG_WARNING], 0);
        close_and_check(c);
    }
}

static void the_environment_names_one(void **state)
{
    (void)state;
    static const struct { const char *variable, *option; int there; } rows[] = {
        {"", NULL, 0}, {"fake", NULL, 1}, {"fake", "", 0}, {"", "fake", 1}};
    const char *before = getenv("JITGEMM_HELPER");
    char *kept = before ? strdup(before) : NULL;
    for (int i = 0; i < 4; i++) {
        atomic_store(&nvrtc_double->accepts, 1);
        jg_options options = helper_options(JG_HELPER_AUTO, "ok");
        options.cache_path = "";
        options.helper_path = rows[i].option && *rows[i].option ? fake_helper_path() : rows[i].option;
        setenv("JITGEMM_HELPER", *rows[i].variable ? fake_helper_path() : "", 1);
        jg_context *c = fixture_open_with(options);
        assert_status(multiply(c, 16), JG_OK);
        assert_int_equal(fake_helper_starts(), rows[i].there);
        assert_int_equal(fx.logs[JG_LOG_WARNING], 0); /* none is no fault */
        close_and_check(c);
    }
    if (kept) setenv("JITGEMM_HELPER", kept, 1);
    else unsetenv("JITGEMM_HELPER");
    free(kept);
}

/* --- lost ones --- */

static void a_lost_helper_is_tried_again_once(void **state)
{
    (void)state;
    static const char *const words[] = {"crash,ok", "early,ok", "junk,ok", "hang,ok"};
    for (int i = 0; i < 4; i++) {
        jg_options options = helper_options(JG_HELPER_AUTO, words[i]);
        options.helper_timeout_ms = i == 3 ? 300 : 0;
        options.cache_path = "";
        fx.logs[JG_LOG_WARNING] = 0;
        jg_context *c = fixture_open_with(options);
        assert_status(multiply(c, 16), JG_OK);
        assert_compiles(0, 2);
        const jg_stats stats = fixture_stats(c);
        assert_int_equal(stats.helpers_lost, 1);
        assert_int_equal(stats.compile_failures, 0);
        assert_int_equal(fx.logs[JG_LOG_WARNING], 1);
        assert_says(fx.log, "it is tried once more");
        if (i == 0) assert_says(fx.log, "was killed by signal 6");
        if (i == 3) assert_says(fx.log, "no answer in 0.3 s");
        close_and_check(c);
    }
}

/* Twice: the kernel is marked, for calls but not for jg_prewarm; this process's own NVRTC never sees what crashed the helper's. */
static void a_kernel_lost_twice_is_marked(void **state)
{
    (void)state;
    const jg_problem p = square(16, JG_F32);
    for (jg_helper mode = JG_HELPER_AUTO; mode <= JG_HELPER_PROCESS; mode += 2) {
        atomic_store(&nvrtc_double->accepts, 1);
        fx.logs[JG_LOG_WARNING] = 0;
        jg_options options = helper_options(mode, "crash,exits,crash,cut,ok");
        options.cache_path = "";
        jg_context *c = fixture_open_with(options);
        for (int i = 0; i < 3; i++) {
            assert_status(multiply(c, 16), JG_ERR_HELPER);
            assert_says(jg_last_error(), "exit status 3, at the second try too");
            assert_says(jg_last_error(), fixture_name(&p, JG_FORM_AUTO));
            assert_compiles(0, 2);
        }
        assert_int_equal(fx.logs[JG_LOG_WARNING], 2);
        assert_int_equal(fixture_stats(c).compile_failures, 1);
        assert_status(jg_prewarm(c, &p, 1, NULL, NULL), JG_ERR_HELPER);
        assert_compiles(0, 4);
        assert_status(multiply(c, 16), JG_ERR_HELPER);
        assert_compiles(0, 4);
        assert_status(jg_prewarm(c, &p, 1, NULL, NULL), JG_OK);
        assert_compiles(0, 5);
        assert_status(multiply(c, 16), JG_OK);
        assert_int_equal(fixture_stats(c).helpers_lost, 4);
        close_and_check(c);
    }
}

/* A call that would wait goes on with a generic kernel from the files. */
static void waiting_calls_fall_back(void **state)
{
    (void)state;
    plant_generic(fx.cache, JG_RESIDENT_F32);
    jg_context *c = open_helped(JG_HELPER_PROCESS, "crash");
    const jg_problem p = square(128, JG_F32);
    for (int i = 0; i < 3; i++) {
        assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
        assert_true(ran_on(&p, JG_FORM_GENERIC));
    }
    assert_compiles(0, 2);
    assert_int_equal(events_of(JG_EVENT_FAIL), 1);
    close_and_check(c);
}

/* In the background nobody notices but the log, and the worker does not try again. */
static void the_background_gives_a_kernel_up(void **state)
{
    (void)state;
    plant_generic(fx.cache, COMMON_TYPES);
    jg_options options = helper_options(JG_HELPER_AUTO, "crash,crash,ok");
    options.compile = JG_COMPILE_BACKGROUND;
    jg_context *c = fixture_open_with(options);
    const jg_problem lost = square(128, JG_F32), other = square(192, JG_F32);
    for (int i = 0; i < 4; i++) {
        assert_status(fixture_gemm(c, &lost, 1, 0), JG_OK);
        settle(c);
        poll_once(c);
    }
    assert_true(ran_on(&lost, JG_FORM_GENERIC));
    assert_compiles(0, 2);
    assert_int_equal(events_of(JG_EVENT_FAIL), 1);
    assert_says(fx.log, "generic kernels go on serving");
    for (int i = 0; i < 3; i++) {
        assert_status(fixture_gemm(c, &other, 1, 0), JG_OK);
        settle(c);
        poll_once(c);
    }
    assert_true(ran_on(&other, JG_FORM_SPECIALISED));
    assert_compiles(0, 3);
    assert_int_equal(fixture_stats(c).helpers_lost, 2);
    close_and_check(c);
}

static void what_nvrtc_refuses_is_not_tried_again(void **state)
{
    (void)state;
    jg_context *c = open_helped(JG_HELPER_AUTO, "refuse");
    assert_status(multiply(c, 16), JG_ERR_COMPILE);
    assert_says(jg_last_error(), "fake refusal");
    assert_status(multiply(c, 16), JG_ERR_COMPILE);
    assert_compiles(0, 1);
    assert_int_equal(fixture_stats(c).helpers_lost, 0);
    close_and_check(c);
}

/* --- none to be had --- */

typedef struct useless {
    const char *path, *word, *why;
} useless;

static const useless all_useless[] = {
    {"/nonexistent/jitgemm-compile", "ok", "/nonexistent/jitgemm-compile cannot be started: No such file"},
    {"/bin/false", "ok", "ends at once, with exit status 1"},
    {NULL, "stranger", "is no jitgemm-compile"},
    {NULL, "other", "another version"},
};

static void without_a_helper_auto_takes_the_thread(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        atomic_store(&nvrtc_double->accepts, 1);
        atomic_store(&nvrtc_double->compiles, 0);
        fx.logs[JG_LOG_WARNING] = 0;
        jg_options options = helper_options(JG_HELPER_AUTO, all_useless[i].word);
        options.cache_path = "";
        if (all_useless[i].path) options.helper_path = all_useless[i].path;
        jg_context *c = fixture_open_with(options);
        for (int64_t size = 16; size < 19; size++) assert_status(multiply(c, size), JG_OK);
        assert_compiles(3, !all_useless[i].path);
        assert_int_equal(fx.logs[JG_LOG_WARNING], 1); /* said once */
        assert_says(fx.log, all_useless[i].why);
        assert_says(fx.log, "threads of its own from now on");
        assert_int_equal(fixture_stats(c).helpers_lost, 0);
        close_and_check(c);
    }
}

/* The context opens, and what is cached runs. */
static void without_a_helper_process_compiles_nothing(void **state)
{
    (void)state;
    const jg_problem kept = square(64, JG_F32);
    fixture_plant(&kept, JG_FORM_AUTO);
    for (int i = 0; i < 5; i++) {
        atomic_store(&nvrtc_double->accepts, 1);
        const useless none = {"", "ok", "is not installed"}, *u = i < 4 ? &all_useless[i] : &none;
        jg_options options = helper_options(JG_HELPER_PROCESS, u->word);
        if (u->path) options.helper_path = u->path;
        jg_context *c = fixture_open_with(options);
        assert_status(fixture_gemm(c, &kept, 1, 0), JG_OK);
        for (int again = 0; again < 2; again++) {
            assert_status(multiply(c, 16), JG_ERR_HELPER);
            assert_says(jg_last_error(), u->why);
            assert_says(jg_last_error(), "JITGEMM_HELPER");
        }
        assert_compiles(0, !u->path);
        close_and_check(c);
    }
}

/* An NVRTC that only this process finds is one that AUTO may use; what PROCESS was asked for it keeps to. */
static void an_nvrtc_that_only_the_host_finds(void **state)
{
    (void)state;
    atomic_store(&nvrtc_double->accepts, 1);
    jg_context *c = open_helped(JG_HELPER_PROCESS, "no_nvrtc");
    assert_status(multiply(c, 16), JG_ERR_NO_NVRTC);
    assert_compiles(0, 1);
    close_and_check(c);
    c = open_helped(JG_HELPER_AUTO, "no_nvrtc");
    for (int64_t size = 16; size < 18; size++) assert_status(multiply(c, size), JG_OK);
    assert_compiles(2, 1);
    assert_int_equal(fx.logs[JG_LOG_WARNING], 1);
    assert_says(fx.log, "finds no NVRTC, but this process does");
    close_and_check(c);
    jg_options options = helper_options(JG_HELPER_AUTO, "no_nvrtc");
    options.nvrtc_path = "/nonexistent/libnvrtc.so";
    c = fixture_open_with(options);
    for (int64_t size = 26; size < 28; size++) assert_status(multiply(c, size), JG_ERR_NO_NVRTC);
    assert_says(jg_last_error(), "fake: no NVRTC");
    assert_compiles(2, 2); /* the helper stays: NVRTC may be installed yet */
    assert_int_equal(fx.logs[JG_LOG_WARNING], 1);
    close_and_check(c);
}

static rlim_t limit_files(rlim_t most)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    const rlim_t before = limit.rlim_cur;
    limit.rlim_cur = most;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    return before;
}

/* No descriptor left: passes. Until then AUTO takes the thread, and PROCESS fails without marking the kernel. */
static void exhausted_descriptors(void **state)
{
    (void)state;
    jg_options options = helper_options(JG_HELPER_THREAD, "ok");
    options.cache_path = "";
    atomic_store(&nvrtc_double->accepts, 1);
    jg_context *c = fixture_open_with(options);
    assert_status(multiply(c, 16), JG_OK); /* so that NVRTC is open */
    close_and_check(c);
    for (jg_helper mode = JG_HELPER_AUTO; mode <= JG_HELPER_PROCESS; mode += 2) {
        atomic_store(&nvrtc_double->compiles, 0);
        options = helper_options(mode, "ok");
        options.cache_path = "";
        c = fixture_open_with(options);
        const rlim_t before = limit_files(0);
        const jg_status first = multiply(c, 17), second = multiply(c, 18);
        limit_files(before);
        assert_status(first, mode == JG_HELPER_AUTO ? JG_OK : JG_ERR_NO_MEMORY);
        assert_status(second, first);
        if (mode == JG_HELPER_PROCESS) assert_says(jg_last_error(), "Too many open files");
        if (mode == JG_HELPER_AUTO) assert_says(fx.log, "(said once)");
        assert_int_equal(fx.logs[JG_LOG_WARNING], 1);
        assert_compiles(mode == JG_HELPER_AUTO ? 2 : 0, 0);
        assert_status(multiply(c, 19), JG_OK);
        assert_int_equal(fake_helper_starts(), 1);
        if (mode == JG_HELPER_PROCESS) assert_status(multiply(c, 17), JG_OK);
        close_and_check(c);
    }
}

/* --- closing --- */

static void closing_leaves_no_helper(void **state)
{
    (void)state;
    static const char *const words[] = {"late", "hang"};
    for (int i = 0; i < 2; i++) {
        plant_generic(fx.cache, COMMON_TYPES);
        jg_options options = helper_options(JG_HELPER_AUTO, words[i]);
        options.compile = JG_COMPILE_BACKGROUND;
        jg_context *c = fixture_open_with(options);
        const jg_problem p = square(128, JG_F32);
        for (int calls = 0; calls < 2; calls++) assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
        for (int waited = 0; fake_helper_starts() == 0; waited++) {
            assert_true(waited < 10000);
            nap_ms(1);
        }
        int pid = 0;
        assert_int_equal(count_children(&pid), 1);
        const double begun = clock_now_ms();
        assert_status(jg_close(c), JG_OK);
        const double ms = clock_now_ms() - begun;
        print_message("# jg_close with a helper that is hung: %.1f ms\n", ms);
        assert_true(ms < 5000); /* far below the 60 s of its time limit */
        assert_true(is_gone_within(pid, 2000));
    }
    for (int waited = 0; count_children(NULL) > 0 && waited < 2000; waited++) nap_ms(1); /* a worker that was left behind ends it */
    assert_no_children();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BACKGROUND_TEST(the_mode_decides),
        BACKGROUND_TEST(the_environment_names_one),
        BACKGROUND_TEST(a_lost_helper_is_tried_again_once),
        BACKGROUND_TEST(a_kernel_lost_twice_is_marked),
        BACKGROUND_TEST(waiting_calls_fall_back),
        BACKGROUND_TEST(the_background_gives_a_kernel_up),
        BACKGROUND_TEST(what_nvrtc_refuses_is_not_tried_again),
        BACKGROUND_TEST(without_a_helper_auto_takes_the_thread),
        BACKGROUND_TEST(without_a_helper_process_compiles_nothing),
        BACKGROUND_TEST(an_nvrtc_that_only_the_host_finds),
        BACKGROUND_TEST(exhausted_descriptors),
        BACKGROUND_TEST(closing_leaves_no_helper),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
