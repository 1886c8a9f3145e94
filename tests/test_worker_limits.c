/* What holds the worker back: the minute's cap, other processes, failures, kernels that nobody takes, too few threads. */
#include "worker_fixture.h"

/* --- so many a minute --- */

static void compiles_are_capped_by_the_minute(void **state)
{
    (void)state;
    scene s;
    scene_init(&s);
    const jg_worker_options options = options_with(1, 64, 3);
    scene_start(&s, &options, 1, 1);
    met *mets[8];
    for (int i = 0; i < 8; i++)
        mets[i] = met_of(1 + i, 1);
    for (int i = 0; i < 5; i++)
        sight(&s, mets[i], 2);
    assert_int_equal(worker_wait_idle(s.w, 100), 0);
    assert_int_equal(s.compiles, 3);
    assert_int_equal(stats_of(&s).queued, 2);
    demand_number(&s, 100);
    rest(&s);
    assert_int_equal(s.compiles, 4);
    pass_time(19.9e3);
    poke(&s);
    assert_int_equal(s.compiles, 4);
    pass_time(0.2e3);
    poke(&s);
    assert_int_equal(s.compiles, 5);
    pass_time(20e3);
    settle(&s);
    assert_int_equal(s.compiles, 6);
    pass_time(3600e3); /* what was not used does not add up */
    for (int i = 4; i < 8; i++)
        sight(&s, mets[i], 2);
    settle(&s);
    assert_int_equal(s.compiles, 9);
    for (int i = 0; i < 8; i++)
        met_drop(mets[i]);
    scene_close(&s);
}

/* What another process makes was not compiled here, and does not count. */
static void kernels_of_another_process_do_not_count(void **state)
{
    (void)state;
    scene s;
    scene_init(&s);
    const jg_worker_options options = options_with(1, 64, 1);
    scene_start(&s, &options, 1, 1);
    met *a = met_of(1, 1), *b = met_of(2, 1);
    s.kernels[1].compiled = JG_ERR_NOT_READY;
    freeze(&s);
    sight(&s, a, 3);
    sight(&s, b, 2);
    thaw(&s);
    rest(&s);
    assert_brought(&s, "f1 f2 c1 c2");
    s.kernels[1].compiled = JG_OK;
    pass_time(60e3);
    settle(&s);
    assert_taken(&s, "2 1");
    met_drop(a);
    met_drop(b);
    scene_close(&s);
}

/* --- another process --- */

static void what_another_process_makes_is_asked_for_again_ever_more_slowly(void **state)
{
    (void)state;
    scene s;
    scene_open(&s);
    static const double delays[] = {50, 100, 200, 400, 500, 500};
    met *m = met_of(1, 1);
    s.kernels[1].compiled = JG_ERR_NOT_READY;
    freeze(&s);
    sight(&s, m, 9);
    demand_number(&s, 2); /* others go on */
    thaw(&s);
    rest(&s);
    assert_brought(&s, "c2 f1 c1");
    for (size_t i = 0; i < sizeof delays / sizeof delays[0]; i++) {
        pass_time(delays[i] - 1);
        poke(&s);
        assert_brought(&s, "");
        assert_int_equal(worker_wait_idle(s.w, 1), 0);
        pass_time(1);
        poke(&s);
        assert_brought(&s, "c1");
    }
    assert_traced(&s, "ready2");
    s.kernels[1].compiled = JG_OK;
    pass_time(500);
    settle(&s);
    assert_brought(&s, "c1");
    assert_taken(&s, "2 1");
    met_drop(m);
    scene_close(&s);
}

/* --- failures --- */

static void a_kernel_that_cannot_be_made_is_not_tried_again(void **state)
{
    (void)state;
    static const jg_status errors[] = {JG_ERR_COMPILE, JG_ERR_ARCH, JG_ERR_INTERNAL, JG_ERR_VALUE};
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        scene s;
        scene_open(&s);
        met *m = met_of(1, 1), *same = met_of(1, 2), *other = met_of(2, 1);
        s.kernels[1].compiled = errors[i];
        sight(&s, m, 2);
        settle(&s);
        assert_brought(&s, "f1 c1");
        assert_traced(&s, "fail1");
        sight(&s, m, 62);
        sight(&s, same, 4);
        demand_number(&s, 1);
        sight(&s, other, 2);
        settle(&s);
        pass_time(1e9);
        settle(&s);
        assert_brought(&s, "f2 c2");
        assert_traced(&s, "ready2");
        assert_int_equal(stats_of(&s).queued, 0);
        assert_int_equal(s.recorded, 70);
        met_drop(m);
        met_drop(same);
        met_drop(other);
        scene_close(&s);
    }
}

static const double fail_delays[] = {10e3, 20e3, 40e3, 80e3, 160e3, 320e3, 600e3, 600e3};

static void a_failure_that_may_pass_is_tried_again_ever_more_slowly(void **state)
{
    (void)state;
    static const jg_status errors[] = {JG_ERR_NO_MEMORY, JG_ERR_FILE, JG_ERR_CACHE};
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        scene s;
        scene_open(&s);
        met *m = met_of(1, 1), *other = met_of(2, 1);
        s.kernels[1].compiled = errors[i];
        freeze(&s);
        sight(&s, m, 9);
        sight(&s, other, 2);
        thaw(&s);
        settle(&s); /* it is not waited for */
        assert_brought(&s, "f1 f2 c1 c2");
        assert_traced(&s, "fail1 ready2");
        assert_int_equal(stats_of(&s).queued, 1);
        for (size_t j = 0; j < sizeof fail_delays / sizeof fail_delays[0]; j++) {
            pass_time(fail_delays[j] - 1);
            poke(&s);
            assert_brought(&s, "");
            pass_time(1);
            settle(&s);
            assert_brought(&s, "c1");
            assert_traced(&s, "fail1");
        }
        s.kernels[1].compiled = JG_OK;
        pass_time(600e3);
        settle(&s);
        assert_taken(&s, "2 1");
        met_drop(m);
        met_drop(other);
        scene_close(&s);
    }
}

/* Without NVRTC nothing at all is compiled; what the files have is brought all the same. */
static void without_nvrtc_nothing_is_compiled_for_a_while(void **state)
{
    (void)state;
    scene s;
    scene_open(&s);
    met *m = met_of(1, 1), *other = met_of(2, 1), *cached = met_of(3, 1);
    s.kernels[1].compiled = s.kernels[2].compiled = s.kernels[5].compiled = JG_ERR_NO_NVRTC;
    s.kernels[3].cached = s.kernels[4].cached = JG_OK;
    freeze(&s);
    sight(&s, m, 9);
    sight(&s, other, 2);
    thaw(&s);
    settle(&s);
    assert_brought(&s, "f1 f2 c1");
    assert_traced(&s, "fail1");
    freeze(&s);
    sight(&s, cached, 1);
    demand_number(&s, 4);
    demand_number(&s, 5);
    thaw(&s);
    settle(&s);
    assert_brought(&s, "f4 f5 f3");
    assert_taken(&s, "4 3");
    assert_traced(&s, "ready4 ready3");
    pass_time(10e3 - 1);
    poke(&s);
    assert_brought(&s, "");
    pass_time(1);
    settle(&s);
    assert_brought(&s, "c5"); /* demanded, so first; and it fails for all again */
    assert_traced(&s, "fail5");
    pass_time(20e3 - 1);
    poke(&s);
    assert_brought(&s, "");
    s.kernels[1].compiled = s.kernels[2].compiled = s.kernels[5].compiled = JG_OK; /* it was installed meanwhile */
    pass_time(1);
    settle(&s);
    assert_brought(&s, "c5 c1 c2");
    assert_taken(&s, "5 1 2");
    met_drop(m);
    met_drop(other);
    met_drop(cached);
    scene_close(&s);
}

static void a_look_up_that_fails_is_tried_again(void **state)
{
    (void)state;
    scene s;
    scene_open(&s);
    met *m = met_of(1, 1);
    s.kernels[1].cached = JG_ERR_FILE;
    sight(&s, m, 1);
    settle(&s);
    assert_brought(&s, "f1");
    assert_traced(&s, "fail1");
    s.kernels[1].cached = JG_OK;
    pass_time(10e3);
    settle(&s);
    assert_brought(&s, "f1");
    assert_taken(&s, "1");
    met_drop(m);
    scene_close(&s);
}

static void only_so_many_failures_are_remembered(void **state)
{
    (void)state;
    scene s;
    scene_open(&s);
    for (int i = 0; i < KERNELS; i++)
        s.kernels[i].compiled = JG_ERR_COMPILE;
    for (int i = 1; i <= WORKER_MAX_FAILED + 1; i++)
        demand_number(&s, i);
    settle(&s);
    assert_int_equal(s.w->counts[JOB_FAILED], WORKER_MAX_FAILED);
    s.brought[0] = 0;
    demand_number(&s, WORKER_MAX_FAILED + 1);
    demand_number(&s, 2);
    demand_number(&s, 1);
    settle(&s);
    assert_brought(&s, "c1");
    scene_close(&s);
}

/* --- too many ready --- */

static void take_all(scene *s)
{
    for (ready_kernel *list = worker_take(s->w), *next; list; list = next) {
        next = list->next;
        ready_free(list);
    }
}

static void with_a_store_what_nobody_takes_is_made_and_left_there(void **state)
{
    (void)state;
    scene s;
    scene_open(&s);
    for (int i = 1; i <= WORKER_MAX_READY + 2; i++)
        demand_number(&s, i);
    settle(&s);
    assert_int_equal(s.compiles, WORKER_MAX_READY + 2);
    assert_int_equal(stats_of(&s).ready, WORKER_MAX_READY);
    assert_int_equal(stats_of(&s).queued, 0);
    s.brought[0] = 0;
    ready_kernel *list = worker_take(s.w), *rest_of_it = list->next;
    settle(&s);
    assert_brought(&s, "f65 f66");
    assert_int_equal(s.compiles, WORKER_MAX_READY + 2);
    worker_give(s.w, rest_of_it);
    ready_free(list);
    assert_int_equal(stats_of(&s).ready, WORKER_MAX_READY + 1);
    take_all(&s);
    scene_close(&s);
}

/* The file had to give it up meanwhile. */
static void what_was_left_in_the_store_and_is_gone_is_made_again(void **state)
{
    (void)state;
    scene s;
    scene_open(&s);
    met *m = met_of(70, 1);
    for (int i = 1; i <= WORKER_MAX_READY; i++)
        demand_number(&s, i);
    settle(&s);
    freeze(&s);
    sight(&s, m, 2);
    demand_number(&s, 71);
    thaw(&s);
    settle(&s);
    s.brought[0] = 0;
    s.kernels[70].cached = s.kernels[71].cached = JG_ERR_NOT_READY;
    take_all(&s);
    settle(&s);
    assert_taken(&s, "71 70");
    assert_brought(&s, "f71 c71 f70 c70");
    met_drop(m);
    scene_close(&s);
}

static void without_a_store_making_waits_for_the_taker(void **state)
{
    (void)state;
    scene s;
    scene_init(&s);
    const jg_worker_options options = fixture_options();
    scene_start(&s, &options, 1, 0);
    met *m = met_of(70, 1), *late = met_of(71, 1);
    sight(&s, m, 1);
    settle(&s);
    freeze(&s);
    for (int i = 1; i <= WORKER_MAX_READY + 1; i++)
        demand_number(&s, i);
    sight(&s, m, 1);
    sight(&s, late, 2);
    thaw(&s);
    settle(&s);
    assert_int_equal(s.compiles, WORKER_MAX_READY);
    assert_int_equal(stats_of(&s).ready, WORKER_MAX_READY);
    assert_int_equal(s.recorded, 4);
    s.brought[0] = 0;
    take_all(&s);
    settle(&s);
    assert_brought(&s, "c65 f71 c70 c71");
    assert_taken(&s, "65 70 71");
    met_drop(m);
    met_drop(late);
    scene_close(&s);
}

static void the_bytes_of_ready_kernels_are_bounded(void **state)
{
    (void)state;
    scene s;
    scene_open(&s);
    for (int i = 1; i <= 6; i++)
        s.kernels[i].bytes = WORKER_MAX_READY_BYTES / 3;
    for (int i = 1; i <= 6; i++)
        demand_number(&s, i);
    settle(&s);
    assert_int_equal(stats_of(&s).ready, 4); /* the fourth is the first to be over */
    assert_taken(&s, "1 2 3 4");
    settle(&s);
    assert_taken(&s, "5 6");
    assert_int_equal(s.compiles, 6);
    scene_close(&s);
}

/* --- threads --- */

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compiles_are_capped_by_the_minute),
        cmocka_unit_test(kernels_of_another_process_do_not_count),
        cmocka_unit_test(what_another_process_makes_is_asked_for_again_ever_more_slowly),
        cmocka_unit_test(a_kernel_that_cannot_be_made_is_not_tried_again),
        cmocka_unit_test(a_failure_that_may_pass_is_tried_again_ever_more_slowly),
        cmocka_unit_test(without_nvrtc_nothing_is_compiled_for_a_while),
        cmocka_unit_test(a_look_up_that_fails_is_tried_again),
        cmocka_unit_test(only_so_many_failures_are_remembered),
        cmocka_unit_test(with_a_store_what_nobody_takes_is_made_and_left_there),
        cmocka_unit_test(what_was_left_in_the_store_and_is_gone_is_made_again),
        cmocka_unit_test(without_a_store_making_waits_for_the_taker),
        cmocka_unit_test(the_bytes_of_ready_kernels_are_bounded),
        cmocka_unit_test(several_threads_share_the_jobs),
        cmocka_unit_test(help_that_cannot_be_started_is_done_without),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
