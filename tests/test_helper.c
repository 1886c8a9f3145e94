/* src/helper.c with a fake helper: what each way to fail is taken for, that it is told, and that nothing is left behind. */
#include "helper.h"

#include "helper_fixture.h"
#include "helper_process.h"
#include "scratch_fixture.h"
#include "status.h"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>

/* One compile. */
typedef struct attempt {
    helper_outcome outcome;
    jg_status status;
    image img;
    char why[512], error[512];
    double ms;
} attempt;

static atomic_int cancelled;

static attempt compile_with(const helper *h, const char *name)
{
    const helper_job job = {NULL, name, "source", 87, 0};
    attempt a = {.status = JG_ERR_INTERNAL};
    const double begun = clock_now_ms();
    a.outcome = helper_compile(h, &job, &cancelled, &a.status, &a.img, a.why, sizeof a.why);
    a.ms = clock_now_ms() - begun;
    snprintf(a.error, sizeof a.error, "%s", jg_last_error());
    return a;
}

/* One compile by a program, with what FAKE_HELPER says. */
static attempt compile_by(const char *path, const char *words, double timeout_ms)
{
    fake_helper_does(folder, words);
    helper *h = helper_create(path, timeout_ms);
    assert_non_null(h);
    const attempt a = compile_with(h, "kernel");
    assert_int_equal(a.outcome == HELPER_ANSWERED && a.status == JG_OK, a.img.ptx != NULL);
    helper_destroy(h);
    assert_no_children();
    return a;
}

static attempt compile(const char *words)
{
    return compile_by(fake_helper_path(), words, 30e3);
}

/* --- what comes back --- */

static void an_image_comes_back_whole(void **state)
{
    (void)state;
    attempt a = compile("ok");
    assert_int_equal(a.outcome, HELPER_ANSWERED);
    assert_int_equal(a.status, JG_OK);
    assert_says(a.img.ptx, ".entry kernel()");
    assert_int_equal(strlen(a.img.ptx), a.img.ptx_bytes);
    assert_int_equal(a.img.cubin_bytes, 64 + 1 + sizeof "kernel");
    assert_string_equal((const char *)a.img.cubin + 65, "kernel");
    assert_string_equal(a.img.provenance, "fake");
    assert_true(a.img.compile_ms > 0 && a.img.compile_ms <= a.ms);
    image_free(&a.img);
}

static void nvrtcs_own_failures_come_back(void **state)
{
    (void)state;
    attempt a = compile("refuse");
    assert_int_equal(a.outcome, HELPER_ANSWERED);
    assert_int_equal(a.status, JG_ERR_COMPILE);
    assert_string_equal(a.error, "fake refusal");
    a = compile("no_nvrtc");
    assert_int_equal(a.status, JG_ERR_NO_NVRTC);
    a = compile("asked");
    assert_int_equal(a.status, JG_ERR_ARCH);
    assert_string_equal(a.error, "source"); /* it got that, and no path */
    assert_int_equal(fake_helper_starts(), 1);
}

/* --- what is lost --- */

static void lost_helpers_are_told_apart(void **state)
{
    (void)state;
    static const struct { const char *word, *why; } rows[] = {
        {"crash", "was killed by signal 6"},
        {"early", "was killed by signal 9 (by the system"},
        {"exits", "has ended in the middle with exit status 3"},
        {"cut", "has ended in the middle with exit status 0"},
        {"closes", "was killed by signal 9"},
        {"short", "has ended in the middle"},
        {"junk", "has answered nonsense"},
        {"huge", "has answered nonsense"},
        {"endless", "has answered nonsense"},
        {"wrong", "has answered nonsense"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const attempt a = compile(rows[i].word);
        assert_int_equal(a.outcome, HELPER_LOST);
        assert_says(a.why, rows[i].why);
        assert_int_equal(fake_helper_starts(), 1); /* trying again is not done here */
    }
}

/* Before the greeting, while it does not take the request, and while it does not answer. */
static void time_runs_out_wherever_it_hangs(void **state)
{
    (void)state;
    static const char *const words[] = {"late", "deaf", "hang"};
    for (int i = 0; i < 3; i++) {
        const attempt a = compile_by(fake_helper_path(), words[i], 150);
        assert_int_equal(a.outcome, HELPER_LOST);
        assert_string_equal(a.why, "has given no answer in 0.15 s");
        assert_true(a.ms >= 149);
    }
}

/* More than a socket holds: one does not read it, one leaves in the middle (which is no SIGPIPE for the host), one gets it all. */
static void what_goes_wrong_while_a_request_is_sent(void **state)
{
    (void)state;
    static char source[3 << 20];
    /* The answer, the source, is no error text. */
    static const char *const why[] = {"no answer in 0.3 s", "with exit status 8", "nonsense"};
    memset(source, 'x', sizeof source - 1);
    fake_helper_does(folder, "deaf,leaves,asked");
    const helper_job job = {NULL, "kernel", source, 87, 0};
    for (int i = 0; i < 3; i++) {
        helper *h = helper_create(fake_helper_path(), i ? 30e3 : 300);
        attempt a = {.status = JG_OK};
        assert_int_equal(helper_compile(h, &job, &cancelled, &a.status, &a.img, a.why, sizeof a.why), HELPER_LOST);
        assert_says(a.why, why[i]);
        helper_destroy(h);
        assert_no_children();
    }
}

/* --- what cannot be used --- */

static void programs_that_are_no_helper(void **state)
{
    (void)state;
    char text[4200];
    attempt a = compile_by("/nonexistent/jitgemm-compile", "ok", 30e3);
    assert_int_equal(a.outcome, HELPER_UNUSABLE);
    assert_says(a.why, "cannot be started: No such file");
    snprintf(text, sizeof text, "%s/text", folder);
    scratch_write(text, "no program", 10);
    chmod(text, 0644);
    assert_int_equal(compile_by(text, "ok", 30e3).outcome, HELPER_UNUSABLE); /* not executable */
    chmod(text, 0755);
    a = compile_by(text, "ok", 30e3);
    assert_int_equal(a.outcome, HELPER_UNUSABLE);
    assert_says(a.why, "Exec format error");
    a = compile_by("/bin/false", "ok", 30e3);
    assert_int_equal(a.outcome, HELPER_UNUSABLE);
    assert_says(a.why, "exit status 1");
    a = compile("quits");
    assert_int_equal(a.outcome, HELPER_UNUSABLE);
    assert_says(a.why, "exit status 7");
    a = compile("stranger");
    assert_int_equal(a.outcome, HELPER_UNUSABLE);
    assert_says(a.why, "is no jitgemm-compile");
    a = compile("other");
    assert_int_equal(a.outcome, HELPER_UNUSABLE);
    assert_says(a.why, "another version");
}

static void too_long_a_path_is_not_sent(void **state)
{
    (void)state;
    static char path[5000];
    memset(path, 'p', sizeof path - 1);
    fake_helper_does(folder, "ok");
    helper *h = helper_create(fake_helper_path(), 30e3);
    const helper_job job = {path, "kernel", "source", 87, 0};
    attempt a;
    assert_int_equal(helper_compile(h, &job, &cancelled, &a.status, &a.img, a.why, sizeof a.why), HELPER_UNUSABLE);
    assert_int_equal(fake_helper_starts(), 0);
    helper_destroy(h);
}

/* In a process of its own, since limits cannot be raised again; as another user, since root is not bound by the number of processes. */
static int run_out(void *user)
{
    const int what = *(const int *)user;
    const struct rlimit none = {what == RLIMIT_NPROC, what == RLIMIT_NPROC};
    helper *h = helper_create(fake_helper_path(), 30e3);
    if (setrlimit((__rlimit_resource_t)what, &none) != 0) return 1;
    const attempt a = compile_with(h, "kernel");
    helper_destroy(h);
    return a.outcome == HELPER_NO_ROOM && strstr(a.why, "cannot be started: ") ? 0 : 2;
}

static void exhausted_limits_pass(void **state)
{
    (void)state;
    int files = RLIMIT_NOFILE, processes = RLIMIT_NPROC;
    fake_helper_does(folder, "ok");
    assert_int_equal(scratch_child(run_out, &files, 0), 0);
    if (getuid() != 0) print_message("SKIP limit of processes: only root can be another user, who has no processes yet\n");
    else assert_int_equal(scratch_child(run_out, &processes, 65534), 0);
    assert_int_equal(fake_helper_starts(), 0);
}

/* --- cancelling --- */

static void *compile_in_thread(void *argument)
{
    attempt *a = argument;
    helper *h = helper_create(fake_helper_path(), 60e3);
    *a = compile_with(h, "kernel");
    helper_destroy(h);
    return NULL;
}

static void cancelling_kills_at_once(void **state)
{
    (void)state;
    static const char *const words[] = {"late", "deaf", "hang"};
    for (int i = 0; i < 3; i++) {
        attempt a;
        pthread_t thread;
        fake_helper_does(folder, words[i]);
        pthread_create(&thread, NULL, compile_in_thread, &a);
        while (fake_helper_starts() == 0) nap_ms(1);
        const double begun = clock_now_ms();
        atomic_store(&cancelled, 1);
        pthread_join(thread, NULL);
        assert_true(clock_now_ms() - begun < 20e3); /* not the 60 s of its time limit */
        assert_int_equal(a.outcome, HELPER_CANCELLED);
        assert_no_children();
        atomic_store(&cancelled, 0);
    }
    atomic_store(&cancelled, 1);
    assert_int_equal(compile("ok").outcome, HELPER_CANCELLED);
    assert_int_equal(fake_helper_starts(), 0);
    atomic_store(&cancelled, 0);
}

/* --- the host --- */

static void helpers_get_the_environment_of_the_start(void **state)
{
    (void)state;
    fake_helper_does(folder, "state");
    setenv("FAKE_HELPER_MARK", "before", 1);
    helper *h = helper_create(fake_helper_path(), 30e3);
    setenv("FAKE_HELPER_MARK", "after", 1);
    attempt a = compile_with(h, "kernel");
    assert_int_equal(a.outcome, HELPER_ANSWERED);
    assert_says(a.img.ptx, "mark before\n");
    image_free(&a.img);
    helper_destroy(h);
    unsetenv("FAKE_HELPER_MARK");
}

static void what_it_got(char text[4096])
{
    fake_helper_does(folder, "state");
    helper *h = helper_create(fake_helper_path(), 30e3);
    attempt a = compile_with(h, "kernel");
    assert_int_equal(a.outcome, HELPER_ANSWERED);
    snprintf(text, 4096, "%s", a.img.ptx);
    image_free(&a.img);
    helper_destroy(h);
}

/* Otherwise a helper would not see that its host has gone as long as a later one runs. */
static void channels_of_others_are_not_passed_on(void **state)
{
    (void)state;
    char alone[4096], beside[4096];
    helper_process other;
    what_it_got(alone);
    assert_says(alone, "fd 2\n");
    fake_helper_does(folder, "hang");
    assert_int_equal(helper_process_start(fake_helper_path(), environ, &other), 0);
    what_it_got(beside);
    helper_process_end(&other);
    assert_string_equal(beside, alone);
}

/* Its path is that of the start, wherever the host goes. */
static int go_elsewhere(void *user)
{
    (void)user;
    char link[4200], target[4096];
    snprintf(link, sizeof link, "%s/helper", folder);
    if (!realpath(fake_helper_path(), target) || symlink(target, link) != 0 || chdir(folder) != 0) return 1;
    helper *h = helper_create("./helper", 30e3);
    if (chdir("/") != 0) return 2;
    attempt a = compile_with(h, "kernel");
    helper_destroy(h);
    return a.outcome == HELPER_ANSWERED && a.status == JG_OK ? 0 : 3;
}

static void a_relative_path_stays_good(void **state)
{
    (void)state;
    fake_helper_does(folder, "ok");
    assert_int_equal(scratch_child(go_elsewhere, NULL, 0), 0);
}

/* The worker's idle priority is its helpers' too. */
static int be_nice(void *user)
{
    char text[4096];
    (void)user;
    if (setpriority(PRIO_PROCESS, 0, 7) != 0) return 1;
    what_it_got(text);
    return strstr(text, "\nnice 7\n") ? 0 : 2;
}

static void priority_is_the_threads(void **state)
{
    (void)state;
    assert_int_equal(scratch_child(be_nice, NULL, 0), 0);
}

static volatile sig_atomic_t children_ended, alarms;

static void on_child(int number)
{
    (void)number;
    children_ended++;
}

static void on_alarm(int number)
{
    (void)number;
    alarms++;
}

static void reap_all(int number)
{
    (void)number;
    const int before = errno;
    while (waitpid(-1, NULL, WNOHANG) > 0) children_ended++;
    errno = before;
}

/* A handler is called and stays; SIGCHLD may be ignored, or the handler may wait for everybody's children. Then how it ended is unknown,
 * but neither that it has nor what it answered before. */
static void any_handling_of_sigchld_will_do(void **state)
{
    (void)state;
    const struct sigaction before = child_action();
    void (*const handlers[])(int) = {on_child, SIG_IGN, reap_all};
    for (int i = 0; i < 3; i++) {
        struct sigaction action = {.sa_handler = handlers[i], .sa_flags = SA_RESTART};
        sigaction(SIGCHLD, &action, NULL);
        children_ended = 0;
        attempt a = compile("ok");
        assert_int_equal(a.outcome, HELPER_ANSWERED);
        assert_int_equal(a.status, JG_OK);
        image_free(&a.img);
        a = compile("crash");
        assert_int_equal(a.outcome, HELPER_LOST);
        if (i == 0) assert_says(a.why, "was killed by signal 6");
        if (i == 1) assert_says(a.why, "the host process has taken its exit status");
        if (i == 0) assert_int_equal(children_ended, 2);
        a = compile_by(fake_helper_path(), "hang", 100);
        assert_int_equal(a.outcome, HELPER_LOST);
        assert_says(a.why, "no answer");
        assert_true(child_action().sa_handler == handlers[i]);
        assert_int_equal(child_action().sa_flags & SA_RESTART, SA_RESTART);
    }
    sigaction(SIGCHLD, &before, NULL);
}

/* Each of its calls is interrupted, again and again. */
static void a_storm_of_signals_does_no_harm(void **state)
{
    (void)state;
    struct sigaction action = {.sa_handler = on_alarm}, before; /* without SA_RESTART */
    const struct itimerval often = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
    sigaction(SIGALRM, &action, &before);
    setitimer(ITIMER_REAL, &often, NULL);
    for (int i = 0; i < 5; i++) {
        attempt a = compile(i < 4 ? "slow" : "crash");
        assert_int_equal(a.outcome, i < 4 ? HELPER_ANSWERED : HELPER_LOST);
        image_free(&a.img);
    }
    setitimer(ITIMER_REAL, &never, NULL);
    sigaction(SIGALRM, &before, NULL);
    assert_true(alarms > 100);
}

/* Standard input and output may be closed in a daemon: then the channel has their numbers. */
static int without_standard_files(void *user)
{
    (void)user;
    for (int fd = 0; fd < 3; fd++) close(fd);
    fake_helper_does(folder, "ok");
    helper *h = helper_create(fake_helper_path(), 30e3);
    attempt a = compile_with(h, "kernel");
    helper_destroy(h);
    return a.outcome == HELPER_ANSWERED && a.status == JG_OK ? 0 : 1;
}

static void standard_files_may_be_closed(void **state)
{
    (void)state;
    assert_int_equal(scratch_child(without_standard_files, NULL, 0), 0);
}

/* 16 at once, a third of which crash; none takes another's channel along, or its answer. */
static void *compile_many(void *argument)
{
    const helper *h = argument;
    intptr_t failures = 0;
    for (int i = 0; i < 4; i++) {
        char name[64];
        snprintf(name, sizeof name, "kernel_%lx_%d", (unsigned long)pthread_self(), i);
        attempt a = compile_with(h, name);
        failures += a.outcome == HELPER_ANSWERED ? strcmp((const char *)a.img.cubin + 65, name) != 0 : a.outcome != HELPER_LOST;
        image_free(&a.img);
    }
    return (void *)failures;
}

static void many_at_once(void **state)
{
    (void)state;
    pthread_t threads[16];
    const int before = open_descriptors();
    fake_helper_does(folder, "ok,crash,ok,exits,ok,cut,ok,ok,ok,early,ok,ok,hang,ok");
    helper *h = helper_create(fake_helper_path(), 2000);
    for (int i = 0; i < 16; i++) assert_int_equal(pthread_create(&threads[i], NULL, compile_many, h), 0);
    intptr_t failures = 0;
    for (int i = 0; i < 16; i++) {
        void *result;
        pthread_join(threads[i], &result);
        failures += (intptr_t)result;
    }
    helper_destroy(h);
    assert_int_equal(failures, 0);
    assert_int_equal(fake_helper_starts(), 64);
    assert_int_equal(open_descriptors(), before);
    assert_no_children();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_image_comes_back_whole),
        cmocka_unit_test(nvrtcs_own_failures_come_back),
        cmocka_unit_test(lost_helpers_are_told_apart),
        cmocka_unit_test(time_runs_out_wherever_it_hangs),
        cmocka_unit_test(what_goes_wrong_while_a_request_is_sent),
        cmocka_unit_test(programs_that_are_no_helper),
        cmocka_unit_test(too_long_a_path_is_not_sent),
        cmocka_unit_test(exhausted_limits_pass),
        cmocka_unit_test(cancelling_kills_at_once),
        cmocka_unit_test(helpers_get_the_environment_of_the_start),
        cmocka_unit_test(a_relative_path_stays_good),
        cmocka_unit_test(channels_of_others_are_not_passed_on),
        cmocka_unit_test(priority_is_the_threads),
        cmocka_unit_test(any_handling_of_sigchld_will_do),
        cmocka_unit_test(a_storm_of_signals_does_no_harm),
        cmocka_unit_test(standard_files_may_be_closed),
        cmocka_unit_test(many_at_once),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
