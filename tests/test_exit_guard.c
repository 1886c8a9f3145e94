/* src/exit_guard.c, and what jg_close does with a compile under way: a process that leaves while NVRTC runs ends cleanly.
 *
 * Each case is a process of its own (this program, called with the case's name), judged by its exit status; the time limit is
 * only there against hanging. */
#include "exit_guard.h"

#include "background_fixture.h"
#include "compile.h"

#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LIMIT_MS = 10000, RUNS = 20, STEP_MS = 23, THREADS = 8, RACES = 60 };

static void pause_ms(int ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000L}, NULL);
}

/* --- in the child --- */

/* Background mode without a cache: the worker starts with the 17 kernels of the generic set. */
static jg_context *open_compiling(const char *nvrtc_path)
{
    jg_context *c;
    fake_open();
    const jg_options options = {.device = JG_DEVICE_CUDA, .cache_path = "", .factory_path = "", .driver_path = fake_path(),
                                .nvrtc_path = nvrtc_path, .worker = {.nice = JG_NICE_INHERIT, .threads = 2}};
    if (jg_open(&options, &c) != JG_OK) _exit(90);
    return c;
}

static fake_nvrtc *hold_compiles(int is_deaf)
{
    fake_nvrtc *fake = fake_nvrtc_open();
    atomic_store(&fake->accepts, 1);
    atomic_store(&fake->holds, 1);
    atomic_store(&fake->is_deaf, is_deaf);
    return fake;
}

/* Nobody joins it. */
static int start_thread(void *(*body)(void *), void *argument)
{
    pthread_t thread;
    return pthread_create(&thread, NULL, body, argument) || pthread_detach(thread);
}

static void wait_until_running(fake_nvrtc *fake)
{
    while (!atomic_load(&fake->running)) pause_ms(1);
}

/* The real NVRTC, wherever it stands after so many milliseconds: not there yet, being opened, compiling. */
static int exit_after(int ms)
{
    open_compiling(NULL);
    pause_ms(ms);
    return 0;
}

static int close_and_exit_after(int ms)
{
    jg_context *c = open_compiling(NULL);
    pause_ms(ms);
    return jg_close(c) != JG_OK;
}

static void *call_waiting(void *argument)
{
    float a[64] = {0}, b[64] = {0}, out[64];
    const jg_problem p = {.m = 8, .n = 8, .k = 8, .compile = JG_COMPILE_WAIT};
    for (int i = 0; i < 50; i++) jg_gemm(argument, &p, &(jg_operands){.a = a, .b = b, .c = out});
    return NULL;
}

/* Also where a call of another thread waits for the compiler. */
static int exit_under_a_call(int ms)
{
    if (start_thread(call_waiting, open_compiling(NULL))) return 1;
    pause_ms(ms);
    return 0;
}

/* A handler that was registered before the guard was armed runs after it: it sees what the guard has waited for. */
static fake_nvrtc *watched;

static void check_that_none_runs(void)
{
    if (atomic_load(&watched->running)) _exit(70);
    if (!exit_guard_is_leaving() || exit_guard_enter()) _exit(71); /* and nothing may begin */
}

/* NVRTC is asked to stop, and does. */
static int exit_stops_compiles(int unused)
{
    (void)unused;
    atexit(check_that_none_runs);
    watched = hold_compiles(0);
    open_compiling(fake_nvrtc_path());
    wait_until_running(watched);
    return 0;
}

static void *let_go(void *unused)
{
    pause_ms(100);
    atomic_store(&watched->holds, 0);
    return unused;
}

/* One that cannot be stopped is waited for. */
static int exit_waits_for_compiles(int unused)
{
    (void)unused;
    atexit(check_that_none_runs);
    watched = hold_compiles(1);
    open_compiling(fake_nvrtc_path());
    wait_until_running(watched);
    return start_thread(let_go, NULL);
}

/* jg_close abandons what it cannot stop; the compile ends by itself, later, and exit() waits for it. */
static int close_leaves_compiles_behind(int unused)
{
    (void)unused;
    struct timespec before, after;
    atexit(check_that_none_runs);
    watched = hold_compiles(1);
    jg_context *c = open_compiling(fake_nvrtc_path());
    wait_until_running(watched);
    clock_gettime(CLOCK_MONOTONIC, &before);
    if (jg_close(c) != JG_OK) return 1;
    clock_gettime(CLOCK_MONOTONIC, &after);
    if (!atomic_load(&watched->running)) return 2;
    fprintf(stderr, "# jg_close with a compile under way: %.0f ms\n",
            (double)(after.tv_sec - before.tv_sec) * 1e3 + (double)(after.tv_nsec - before.tv_nsec) * 1e-6);
    return start_thread(let_go, NULL);
}

/* In a child of fork() there is no compile, whatever its parent is doing; it may begin one of its own. */
static int a_forked_child_does_not_wait(int unused)
{
    int status;
    (void)unused;
    watched = hold_compiles(1);
    open_compiling(fake_nvrtc_path());
    wait_until_running(watched);
    for (int compiles = 0; compiles < 2; compiles++) {
        const pid_t child = fork();
        if (child == 0) {
            if (compiles && !exit_guard_enter()) _exit(3);
            if (compiles) exit_guard_leave();
            alarm(5); /* well below what the guard would wait */
            exit(0);
        }
        if (waitpid(child, &status, 0) != child || status != 0) return 4 + compiles;
    }
    atomic_store(&watched->holds, 0);
    return 0;
}

/* Threads that begin the first compiles of a process at the same time: the last one out is waited for all the same. */
static pthread_barrier_t barrier;
static atomic_int inside, left;

static void check_that_all_left(void)
{
    if (atomic_load(&inside)) _exit(72);
}

static void *be_inside(void *is_last)
{
    pthread_barrier_wait(&barrier);
    if (!exit_guard_enter()) _exit(73);
    atomic_fetch_add(&inside, 1);
    pthread_barrier_wait(&barrier);
    if (is_last) pause_ms(20);
    atomic_fetch_sub(&inside, 1);
    exit_guard_leave();
    atomic_fetch_add(&left, 1);
    return NULL;
}

static int use_nothing(void *unused)
{
    (void)unused;
    return 1;
}

static int the_first_to_enter_are_all_counted(int unused)
{
    (void)unused;
    atexit(check_that_all_left);
    exit_guard_first_use(use_nothing, NULL);
    pthread_barrier_init(&barrier, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++)
        if (start_thread(be_inside, i ? NULL : (void *)&barrier)) return 1;
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    while (atomic_load(&left) < THREADS - 1) pause_ms(1);
    return 0;
}

/* While NVRTC registers its destructors no handler may run at all, not even one that was registered later. */
static atomic_int began, ended;

static int take_a_while(void *unused)
{
    (void)unused;
    atomic_store(&began, 1);
    pause_ms(100);
    atomic_store(&ended, 1);
    return 1;
}

static void *use_first(void *unused)
{
    exit_guard_first_use(take_a_while, NULL);
    return unused;
}

static void check_that_it_ended(void)
{
    if (!atomic_load(&ended)) _exit(74);
}

static int exit_waits_for_a_first_use(int unused)
{
    jg_context *c;
    (void)unused;
    const jg_options options = {.device = JG_DEVICE_CPU, .cache_path = ""};
    if (jg_open(&options, &c) != JG_OK || jg_close(c) != JG_OK) return 1;
    if (start_thread(use_first, NULL)) return 2;
    while (!atomic_load(&began)) pause_ms(1);
    return atexit(check_that_it_ended);
}

static const struct {
    const char *name;
    int (*body)(int ms);
} cases[] = {
    {"exit", exit_after}, {"close", close_and_exit_after}, {"call", exit_under_a_call},
    {"stop", exit_stops_compiles}, {"wait", exit_waits_for_compiles}, {"leave", close_leaves_compiles_behind},
    {"fork", a_forked_child_does_not_wait}, {"count", the_first_to_enter_are_all_counted},
    {"first", exit_waits_for_a_first_use},
};

static int run_case(const char *name, int ms)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (strcmp(cases[i].name, name) == 0) return cases[i].body(ms); /* main returns: that is exit() */
    return 91;
}

/* --- in the test --- */

/* Runs a case; kills it if it hangs. */
static void assert_case(const char *name, int ms)
{
    char number[16];
    int status = -1, waited = 0;
    snprintf(number, sizeof number, "%d", ms);
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        setenv("ASAN_OPTIONS", "detect_leaks=0", 1); /* it leaves in the middle of work */
        execl("/proc/self/exe", "test_exit_guard", "case", name, number, (char *)NULL);
        _exit(92);
    }
    while (waitpid(child, &status, WNOHANG) == 0) {
        if (waited++ == LIMIT_MS) {
            kill(child, SIGKILL);
            waitpid(child, &status, 0);
            FIXTURE_FAIL("%s %d: hangs", name, ms);
        }
        pause_ms(1);
    }
    if (status != 0)
        FIXTURE_FAIL("%s %d: %s %d", name, ms, WIFEXITED(status) ? "exit status" : "signal", WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
}

static void exit_is_clean_at_any_moment(void **state)
{
    (void)state;
    NEEDS_NVRTC();
    for (int i = 0; i < RUNS; i++) assert_case("exit", i * STEP_MS);
}

static void close_and_exit_are_clean_at_any_moment(void **state)
{
    (void)state;
    NEEDS_NVRTC();
    for (int i = 0; i < RUNS; i++) assert_case("close", i * STEP_MS);
}

static void exit_is_clean_under_a_call(void **state)
{
    (void)state;
    NEEDS_NVRTC();
    for (int i = 0; i < RUNS; i += 4) assert_case("call", i * STEP_MS);
}

static void exit_stops_what_it_can(void **state)
{
    (void)state;
    assert_case("stop", 0);
}

static void exit_waits_for_what_it_cannot_stop(void **state)
{
    (void)state;
    assert_case("wait", 0);
}

static void exit_waits_until_nvrtc_is_there(void **state)
{
    (void)state;
    assert_case("first", 0);
}

static void close_does_not_wait_for_compiles(void **state)
{
    (void)state;
    assert_case("leave", 0);
}

static void children_of_fork_are_free(void **state)
{
    (void)state;
    assert_case("fork", 0);
}

static void all_are_counted(void **state)
{
    (void)state;
    for (int i = 0; i < RACES; i++) assert_case("count", 0);
}

int main(int count, char **arguments)
{
    setenv("JITGEMM_HELPER", "", 1); /* what ends is the process that NVRTC is in */
    if (count == 4 && strcmp(arguments[1], "case") == 0) return run_case(arguments[2], atoi(arguments[3]));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exit_is_clean_at_any_moment),
        cmocka_unit_test(close_and_exit_are_clean_at_any_moment),
        cmocka_unit_test(exit_is_clean_under_a_call),
        cmocka_unit_test(exit_stops_what_it_can),
        cmocka_unit_test(exit_waits_for_what_it_cannot_stop),
        cmocka_unit_test(exit_waits_until_nvrtc_is_there),
        cmocka_unit_test(close_does_not_wait_for_compiles),
        cmocka_unit_test(children_of_fork_are_free),
        cmocka_unit_test(all_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
