/* What threads of one worker do beside each other: sharing jobs, and leaving alone what another one is at. */
#include "worker_fixture.h"

static void scene_open_with(scene *s, uint32_t threads)
{
    const jg_worker_options options = options_with(threads, 64, 60);
    scene_init(s);
    scene_start(s, &options, 1, 1);
}

/* Has all threads started. */
static void call_all(scene *s, int threads)
{
    for (int i = 0; i < threads; i++) {
        s->kernels[200 + i].blocks = 1;
        demand_number(s, 200 + i);
    }
    for (int i = 0; i < threads; i++)
        sem_wait(&s->entered);
    for (int i = 0; i < threads; i++)
        sem_post(&s->go);
    settle(s);
    take_all(s);
    s->brought[0] = s->traced[0] = 0;
}

/* Until a thread has gone through the known once more. */
static void await_pass(scene *s)
{
    double before, now;
    freeze(s);
    before = s->w->record_last;
    thaw(s);
    pass_time(WORKER_RECORD_EVERY_MS);
    do {
        worker_wake(s->w);
        nap(0.2);
        freeze(s);
        now = s->w->record_last;
        thaw(s);
    } while (now == before);
}

static void several_threads_share_the_jobs(void **state)
{
    (void)state;
    scene s;
    scene_init(&s);
    const jg_worker_options options = options_with(3, 64, 60);
    scene_start(&s, &options, 1, 1);
    for (int i = 1; i <= 4; i++) {
        s.kernels[i].blocks = 1;
        demand_number(&s, i);
    }
    for (int i = 1; i <= 3; i++)
        sem_wait(&s.entered);
    assert_int_equal(stats_of(&s).threads, 3);
    assert_int_equal(spawns, 3);
    assert_false(pthread_equal(spawner, pthread_self())); /* only the first is a caller's to start */
    for (int i = 1; i <= 4; i++)
        sem_post(&s.go);
    settle(&s);
    assert_int_equal(stats_of(&s).ready, 4);
    assert_int_equal(s.compiles, 4);
    assert_int_equal(spawns, 3);
    take_all(&s);
    scene_close(&s);
}

static void help_that_cannot_be_started_is_done_without(void **state)
{
    (void)state;
    scene s;
    scene_init(&s);
    const jg_worker_options options = options_with(2, 64, 60);
    scene_start(&s, &options, 1, 1);
    scene_hold(&s);
    demand_number(&s, 1);
    worker_spawn = fixture_spawn;
    spawn_error = EAGAIN;
    scene_release(&s);
    settle(&s);
    assert_int_equal(spawns, 1);
    assert_int_equal(stats_of(&s).start_error, EAGAIN);
    assert_int_equal(stats_of(&s).threads, 1);
    demand_number(&s, 2);
    settle(&s);
    assert_int_equal(spawns, 1);
    pass_time(1000);
    spawn_error = 0;
    demand_number(&s, 3);
    settle(&s);
    assert_int_equal(spawns, 2);
    assert_int_equal(stats_of(&s).start_error, 0);
    assert_taken(&s, "1 2 3");
    scene_close(&s);
}

/* All are asleep, and a caller wakes but one. */
static void a_thread_with_work_wakes_another(void **state)
{
    (void)state;
    scene s;
    scene_open_with(&s, 3);
    call_all(&s, 3);
    rest(&s);
    freeze(&s);
    for (int i = 1; i <= 3; i++) {
        s.kernels[i].blocks = 1;
        demand_number(&s, i);
    }
    thaw(&s);
    for (int i = 1; i <= 3; i++)
        sem_wait(&s.entered);
    for (int i = 1; i <= 3; i++)
        sem_post(&s.go);
    settle(&s);
    assert_int_equal(spawns, 3);
    scene_close(&s);
}

static void a_problem_may_get_its_kernel_while_it_is_judged(void **state)
{
    (void)state;
    scene s;
    scene_open_with(&s, 2);
    call_all(&s, 2);
    met *m = met_of(1, 1);
    s.gain_blocks = 1;
    sight(&s, m, 2);
    sem_wait(&s.entered);
    assert_int_equal(worker_demand(s.w, &m->spec, m, 0), JG_OK);
    while (!atomic_load(&s.w->ready_count))
        nap(0.2);
    assert_taken(&s, "1");
    sem_post(&s.go);
    settle(&s);
    assert_brought(&s, "c1");
    met_drop(m);
    scene_close(&s);
}

/* Nobody else has it any more, and all its uses are recorded. */
static void a_problem_that_is_judged_is_not_dropped(void **state)
{
    (void)state;
    scene s;
    scene_open_with(&s, 2);
    call_all(&s, 2);
    met *m = met_of(1, 1), *other = met_of(2, 1);
    s.gain_blocks = 1;
    sight(&s, m, 2);
    sem_wait(&s.entered);
    met_drop(m);
    await_pass(&s);
    await_pass(&s);
    sight(&s, other, 1); /* would free it */
    sem_post(&s.go);
    settle(&s);
    assert_int_equal(s.recorded, 3);
    met_drop(other);
    scene_close(&s);
}

enum { MANY = WORKER_MAX_KNOWN + WORKER_BATCH };

static void a_problem_that_is_judged_is_not_forgotten(void **state)
{
    (void)state;
    scene s;
    static met *mets[MANY];
    scene_open_with(&s, 2);
    call_all(&s, 2);
    s.gain_blocks = 1;
    for (int i = 0; i < MANY; i++) {
        mets[i] = met_of(1 + i, 1);
        mets[i]->pays = 0;
        sight(&s, mets[i], 1);
        if (i == 0) sem_wait(&s.entered);
        while (i % 1024 == 0 && atomic_load(&s.w->mail_count))
            nap(0.2);
    }
    while (atomic_load(&s.w->mail_count) || atomic_load(&s.recorded) < WORKER_BATCH)
        nap(0.2);
    assert_int_equal(mets[0]->references, 2);
    assert_int_equal(mets[1]->references, 1);
    sem_post(&s.go);
    settle(&s);
    assert_int_equal(s.recorded, MANY);
    for (int i = 0; i < MANY; i++)
        met_drop(mets[i]);
    scene_close(&s);
}

/* Its demand comes first when it is tried again. */
static void a_demand_for_what_is_being_made_is_kept(void **state)
{
    (void)state;
    scene s;
    scene_open_with(&s, 2);
    call_all(&s, 2);
    met *m = met_of(1, 1);
    sight(&s, m, 1);
    settle(&s);
    s.kernels[1].blocks = 1;
    s.kernels[1].compiled = JG_ERR_NOT_READY;
    sight(&s, m, 1);
    sem_wait(&s.entered);
    demand_number(&s, 1);
    while (atomic_load(&s.w->demand_count))
        nap(0.2);
    s.kernels[1].blocks = 0;
    sem_post(&s.go);
    rest(&s);
    assert_int_equal(s.w->counts[JOB_DEMANDED], 1);
    s.kernels[1].compiled = JG_OK;
    pass_time(50);
    settle(&s);
    assert_taken(&s, "1");
    met_drop(m);
    scene_close(&s);
}

/* Both find out that there is none: that is one failure. */
static void two_threads_without_nvrtc_hold_back_once(void **state)
{
    (void)state;
    scene s;
    scene_open_with(&s, 2);
    call_all(&s, 2);
    for (int i = 1; i <= 2; i++) {
        s.kernels[i].blocks = 1;
        s.kernels[i].compiled = JG_ERR_NO_NVRTC;
        demand_number(&s, i);
    }
    for (int i = 1; i <= 2; i++)
        sem_wait(&s.entered);
    for (int i = 1; i <= 2; i++)
        s.kernels[i].blocks = 0;
    sem_post(&s.go);
    sem_post(&s.go);
    settle(&s);
    pass_time(WORKER_FAIL_FIRST_MS);
    for (int i = 1; i <= 2; i++)
        s.kernels[i].compiled = JG_OK;
    settle(&s);
    assert_int_equal(stats_of(&s).ready, 2);
    scene_close(&s);
}

/* Two begin when there is room for one. */
static void without_a_store_nothing_that_was_made_is_dropped(void **state)
{
    (void)state;
    scene s;
    scene_init(&s);
    const jg_worker_options options = options_with(2, 64, 60);
    scene_start(&s, &options, 1, 0);
    call_all(&s, 2);
    for (int i = 1; i < WORKER_MAX_READY; i++)
        demand_number(&s, i);
    settle(&s);
    for (int i = 101; i <= 102; i++) {
        s.kernels[i].blocks = 1;
        demand_number(&s, i);
    }
    for (int i = 101; i <= 102; i++)
        sem_wait(&s.entered);
    for (int i = 101; i <= 102; i++)
        sem_post(&s.go);
    settle(&s);
    assert_int_equal(stats_of(&s).ready, WORKER_MAX_READY + 1);
    take_all(&s);
    settle(&s);
    assert_int_equal(s.compiles, 2 + WORKER_MAX_READY + 1);
    scene_close(&s);
}

typedef struct waiter {
    scene *s;
    int idle;
} waiter;

static void *wait_idle(void *argument)
{
    waiter *x = argument;
    x->idle = worker_wait_idle(x->s->w, 60e3);
    return NULL;
}

/* A record that is under way when somebody begins to wait is not what they wait for. */
static void waiting_is_for_a_record_begun_after_it(void **state)
{
    (void)state;
    scene s;
    scene_open(&s);
    met *m = met_of(1, 1);
    waiter x = {&s, 0};
    pthread_t helper;
    sight(&s, m, 2);
    rest(&s);
    s.record_blocks = 1;
    pass_time(WORKER_RECORD_FIRST_MS);
    worker_wake(s.w);
    sem_wait(&s.entered);
    sight(&s, m, 1); /* not told */
    assert_int_equal(pthread_create(&helper, NULL, wait_idle, &x), 0);
    for (unsigned waiting = 0; !waiting; nap(0.2)) {
        freeze(&s);
        waiting = s.w->waiting;
        thaw(&s);
    }
    sem_post(&s.go);
    pthread_join(helper, NULL);
    assert_int_equal(x.idle, 1);
    assert_int_equal(s.recorded, 3);
    met_drop(m);
    scene_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(several_threads_share_the_jobs),
        cmocka_unit_test(help_that_cannot_be_started_is_done_without),
        cmocka_unit_test(a_thread_with_work_wakes_another),
        cmocka_unit_test(a_problem_may_get_its_kernel_while_it_is_judged),
        cmocka_unit_test(a_problem_that_is_judged_is_not_dropped),
        cmocka_unit_test(a_problem_that_is_judged_is_not_forgotten),
        cmocka_unit_test(a_demand_for_what_is_being_made_is_kept),
        cmocka_unit_test(two_threads_without_nvrtc_hold_back_once),
        cmocka_unit_test(without_a_store_nothing_that_was_made_is_dropped),
        cmocka_unit_test(waiting_is_for_a_record_begun_after_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
