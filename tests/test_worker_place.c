/* Where and when the worker's threads run, read from inside a hook. */
#include "worker_fixture.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

static struct {
    int policy, nice;
    cpu_set_t cpus;
} seen;

static void look(scene *s)
{
    (void)s;
    seen.policy = sched_getscheduler(0);
    seen.nice = getpriority(PRIO_PROCESS, (id_t)gettid());
    sched_getaffinity(0, sizeof seen.cpus, &seen.cpus);
}

static cpu_set_t own_cpus(void)
{
    cpu_set_t set;
    assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
    return set;
}

/* Opener and caller are threads of their own, which may prepare themselves. */
typedef struct trial {
    jg_worker_options options;
    void (*prepare_opener)(void), (*prepare_caller)(void);
    scene s;
    met *m;
} trial;

static void *open_worker(void *argument)
{
    trial *t = argument;
    if (t->prepare_opener) t->prepare_opener();
    scene_start(&t->s, &t->options, 1, 1);
    return NULL;
}

static void *call(void *argument)
{
    trial *t = argument;
    if (t->prepare_caller) t->prepare_caller();
    sight(&t->s, t->m, 1);
    return NULL;
}

static void run_thread(void *(*body)(void *), trial *t)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, body, t), 0);
    pthread_join(thread, NULL);
}

static void run_prepared(int nice, uint64_t cpus, void (*prepare_opener)(void), void (*prepare_caller)(void))
{
    trial t = {.options = {.threads = 1, .nice = nice, .cpus = cpus, .queue = 8, .per_minute = 60},
               .prepare_opener = prepare_opener, .prepare_caller = prepare_caller};
    scene_init(&t.s);
    t.s.inside = look;
    t.m = met_of(1, 1);
    run_thread(open_worker, &t);
    run_thread(call, &t);
    settle(&t.s);
    met_drop(t.m);
    scene_close(&t.s);
}

static void run_trial(int nice, uint64_t cpus, void (*prepare_caller)(void))
{
    run_prepared(nice, cpus, NULL, prepare_caller);
}

static void by_default_it_runs_when_nobody_else_wants_to(void **state)
{
    (void)state;
    const cpu_set_t mine = own_cpus();
    run_trial(0, 0, NULL);
    assert_int_equal(seen.policy, SCHED_IDLE);
    assert_true(CPU_EQUAL(&seen.cpus, &mine));
}

static void niceness_is_absolute(void **state)
{
    (void)state;
    run_trial(7, 0, NULL);
    assert_int_equal(seen.policy, SCHED_OTHER);
    assert_int_equal(seen.nice, 7);
    run_trial(19, 0, NULL);
    assert_int_equal(seen.nice, 19);
}

static void it_may_be_like_the_opener(void **state)
{
    (void)state;
    run_trial(JG_NICE_INHERIT, 0, NULL);
    assert_int_equal(seen.policy, sched_getscheduler(0));
    assert_int_equal(seen.nice, getpriority(PRIO_PROCESS, (id_t)gettid()));
}

static int first_cpu(void)
{
    const cpu_set_t mine = own_cpus();
    for (int i = 0; i < 64; i++)
        if (CPU_ISSET(i, &mine)) return i;
    return -1;
}

static void it_runs_on_the_processors_that_it_is_given(void **state)
{
    (void)state;
    const int cpu = first_cpu();
    if (cpu < 0) skip();
    run_trial(0, (uint64_t)1 << cpu, NULL);
    assert_int_equal(CPU_COUNT(&seen.cpus), 1);
    assert_true(CPU_ISSET(cpu, &seen.cpus));
}

static void processors_that_are_not_there_are_left_out(void **state)
{
    (void)state;
    const cpu_set_t mine = own_cpus();
    const int cpu = first_cpu();
    if (cpu < 0 || sysconf(_SC_NPROCESSORS_CONF) > 62) skip();
    run_trial(0, (uint64_t)1 << 63, NULL);
    assert_true(CPU_EQUAL(&seen.cpus, &mine));
    run_trial(0, (uint64_t)1 << 63 | (uint64_t)1 << cpu, NULL);
    assert_int_equal(CPU_COUNT(&seen.cpus), 1);
    assert_true(CPU_ISSET(cpu, &seen.cpus));
}

static void pin_and_slow_down(void)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(first_cpu(), &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    setpriority(PRIO_PROCESS, (id_t)gettid(), 3);
}

/* The first who meets a new size may be pinned, or in a hurry. */
static void who_starts_it_does_not_matter(void **state)
{
    (void)state;
    const cpu_set_t mine = own_cpus();
    if (CPU_COUNT(&mine) < 2) skip();
    run_trial(7, 0, pin_and_slow_down);
    assert_true(CPU_EQUAL(&seen.cpus, &mine));
    assert_int_equal(seen.nice, 7);
    run_trial(7, (uint64_t)1 << 63, pin_and_slow_down);
    assert_true(CPU_EQUAL(&seen.cpus, &mine));
}

static void hurry(void)
{
    const struct sched_param first = {.sched_priority = 1};
    sched_setscheduler(0, SCHED_FIFO, &first);
}

static void a_caller_in_real_time_does_not_pass_that_on(void **state)
{
    (void)state;
    const struct sched_param first = {.sched_priority = 1}, none = {0};
    if (sched_setscheduler(0, SCHED_FIFO, &first) != 0) {
        print_message("SKIP no permission for real-time scheduling\n");
        skip();
    }
    sched_setscheduler(0, SCHED_OTHER, &none);
    static const int nices[] = {0, 5, JG_NICE_INHERIT};
    for (int i = 0; i < 3; i++) {
        run_trial(nices[i], 0, hurry);
        assert_int_equal(seen.policy, nices[i] ? SCHED_OTHER : SCHED_IDLE);
    }
}

/* On this thread and those it starts. */
static void forbid_schedulers(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sched_setscheduler, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {.len = sizeof code / sizeof code[0], .filter = code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0) prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static void where_that_is_not_allowed_it_is_as_nice_as_can_be(void **state)
{
    (void)state;
    run_trial(0, 0, forbid_schedulers);
    if (seen.policy == SCHED_IDLE) {
        print_message("SKIP no system call filters here\n");
        skip();
    }
    assert_int_equal(seen.policy, SCHED_OTHER);
    assert_int_equal(seen.nice, 19);
}

static void be_nice(void)
{
    assert_int_equal(setpriority(PRIO_PROCESS, (id_t)gettid(), 9), 0);
}

static void it_is_never_less_nice_than_the_opener(void **state)
{
    (void)state;
    run_prepared(4, 0, be_nice, NULL);
    assert_int_equal(seen.nice, 9);
    run_prepared(12, 0, be_nice, NULL);
    assert_int_equal(seen.nice, 12);
    run_prepared(JG_NICE_INHERIT, 0, be_nice, NULL);
    assert_int_equal(seen.nice, 9);
}

static int policy_of(pthread_t thread)
{
    int policy = -1;
    struct sched_param parameters;
    assert_int_equal(pthread_getschedparam(thread, &policy, &parameters), 0);
    return policy;
}

static void *stop(void *argument)
{
    worker_stop(((scene *)argument)->w);
    return NULL;
}

static void *may_lift(void *argument)
{
    const struct sched_param none = {0};
    (void)argument;
    return sched_setscheduler(0, SCHED_IDLE, &none) == 0 && sched_setscheduler(0, SCHED_OTHER, &none) == 0 ? &seen : NULL;
}

/* Where others want all processors, a thread that is in a hook would hold up worker_stop for seconds. */
static void it_is_lifted_when_it_is_waited_for(void **state)
{
    (void)state;
    const jg_worker_options options = {.threads = 1, .queue = 8, .per_minute = 60};
    pthread_t stopper, taster;
    void *allowed;
    scene s;
    assert_int_equal(pthread_create(&taster, NULL, may_lift, NULL), 0);
    pthread_join(taster, &allowed);
    if (!allowed) {
        print_message("SKIP no permission to leave SCHED_IDLE\n");
        skip();
    }
    scene_init(&s);
    s.gain_blocks = 1;
    scene_start(&s, &options, 1, 1);
    met *m = met_of(1, 1);
    sight(&s, m, 1);
    sem_wait(&s.entered);
    assert_int_equal(policy_of(s.w->slots[0].id), SCHED_IDLE);
    assert_int_equal(pthread_create(&stopper, NULL, stop, &s), 0);
    while (policy_of(s.w->slots[0].id) == SCHED_IDLE) nap(1);
    assert_int_equal(policy_of(s.w->slots[0].id), SCHED_OTHER);
    sem_post(&s.go);
    pthread_join(stopper, NULL);
    assert_int_equal(atomic_load(&s.released), 1);
    met_drop(m);
    scene_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_default_it_runs_when_nobody_else_wants_to),
        cmocka_unit_test(niceness_is_absolute),
        cmocka_unit_test(it_may_be_like_the_opener),
        cmocka_unit_test(it_runs_on_the_processors_that_it_is_given),
        cmocka_unit_test(processors_that_are_not_there_are_left_out),
        cmocka_unit_test(who_starts_it_does_not_matter),
        cmocka_unit_test(a_caller_in_real_time_does_not_pass_that_on),
        cmocka_unit_test(where_that_is_not_allowed_it_is_as_nice_as_can_be),
        cmocka_unit_test(it_is_never_less_nice_than_the_opener),
        cmocka_unit_test(it_is_lifted_when_it_is_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
