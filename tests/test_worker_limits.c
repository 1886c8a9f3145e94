/* What holds the worker back: the minute's cap, other processes, failures, kernels that nobody takes. */
#include "worker_fixture.h"

/* --- so many a minute --- */

static void compiles_are_capped_by_the_minute(void **state)
{
    (void)state;
    scene s;
    scene_init(&s);
    const jg_worker_options options = options_with(1, 64, 3);
    scene_start(&s, &options, 1, 1);
    met *mets[10];
    for (int i = 0; i < 10; i++)
        mets[i] = met_of(1 + i, 1);
    for (int i = 0; i < 6; i++)
        sight(&s, mets[i], 2);
    assert_int_equal(worker_wait_idle(s.w, 100), 0);
    assert_int_equal(s.compiles, 3);
    assert_int_equal(stats_of(&s).queued, 3);
    demand_number(&s, 100);
    rest(&s);
    assert_int_equal(s.compiles, 4);
    demand_number(&s, 6); /* the last of those that wait */
    rest(&s);
    assert_int_equal(s.compiles, 5);
    pass_time(19.9e3);
    poke(&s);
    assert_int_equal(s.compiles, 5);
    pass_time(0.2e3);
    poke(&s);
    assert_int_equal(s.compiles, 6);
    pass_time(20e3);
    settle(&s);
    assert_int_equal(s.compiles, 7);
    assert_taken(&s, "1 2 3 100 6 4 5");
    pass_time(3600e3); /* what was not used does not add up */
    for (int i = 6; i < 10; i++)
        sight(&s, mets[i], 2);
    assert_int_equal(worker_wait_idle(s.w, 100), 0);
    assert_int_equal(s.compiles, 10);
    for (int i = 0; i < 10; i++)
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
        sight(&s, m, 1);
        settle(&s);
        demand_number(&s, 1);
        settle(&s);
        assert_brought(&s, "f1 c1");
        assert_int_equal(m->uses, 1);
        sight(&s, m, 1);
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
        assert_null(s.w->lists[JOB_FAILED]->mets); /* only the key is kept, so that nobody adds to it for ever */
        assert_null(s.w->lists[JOB_FAILED]->demands);
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

/* Each kind of delay grows by itself. */
static void delays_start_anew_when_their_reason_changes(void **state)
{
    (void)state;
    scene s;
    scene_open(&s);
    static const struct {
        jg_status status;
        double delay;
    } rows[] = {{JG_ERR_FILE, 10e3}, {JG_ERR_FILE, 20e3}, {JG_ERR_NOT_READY, 50}, {JG_ERR_NOT_READY, 100}, {JG_ERR_FILE, 10e3}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        s.kernels[1].compiled = rows[i].status;
        if (i == 0) demand_number(&s, 1);
        else pass_time(1);
        poke(&s);
        assert_brought(&s, "c1");
        if (rows[i].status == JG_ERR_FILE) settle(&s);
        else assert_int_equal(worker_wait_idle(s.w, 1), 0);
        pass_time(rows[i].delay - 1);
        poke(&s);
        assert_brought(&s, "");
    }
    scene_close(&s);
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
    s.kernels[6].compiled = JG_ERR_NO_NVRTC; /* gone again: from the beginning */
    demand_number(&s, 6);
    settle(&s);
    assert_brought(&s, "c6");
    s.kernels[6].compiled = JG_OK;
    pass_time(10e3);
    settle(&s);
    assert_taken(&s, "6");
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
    rest(&s);
    alarm(20); /* the next record, which wakes it as well, is due in 30 s */
    ready_kernel *list = worker_take(s.w), *rest_of_it = list->next;
    while (atomic_load(&s.w->ready_count) < 2) /* it was the taking that told the worker */
        nap(0.1);
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
    met *m = met_of(70, 1), *late = met_of(71, 1), *demanded = met_of(72, 1);
    sight(&s, m, 1);
    settle(&s);
    freeze(&s);
    for (int i = 1; i <= WORKER_MAX_READY + 1; i++)
        demand_number(&s, i);
    sight(&s, m, 1);
    sight(&s, late, 2);
    sight(&s, demanded, 2);
    thaw(&s);
    settle(&s);
    assert_int_equal(s.compiles, WORKER_MAX_READY);
    assert_int_equal(stats_of(&s).ready, WORKER_MAX_READY);
    assert_int_equal(s.recorded, 6);
    demand_number(&s, 72);
    settle(&s);
    s.brought[0] = 0;
    rest(&s);
    alarm(20);
    take_all(&s);
    while (atomic_load(&s.w->ready_count) < 4) /* it was the taking that told the worker */
        nap(0.1);
    settle(&s);
    assert_brought(&s, "c65 c72 f71 c70 c71");
    assert_taken(&s, "65 72 70 71");
    met_drop(m);
    met_drop(late);
    met_drop(demanded);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compiles_are_capped_by_the_minute),
        cmocka_unit_test(kernels_of_another_process_do_not_count),
        cmocka_unit_test(what_another_process_makes_is_asked_for_again_ever_more_slowly),
        cmocka_unit_test(a_kernel_that_cannot_be_made_is_not_tried_again),
        cmocka_unit_test(a_failure_that_may_pass_is_tried_again_ever_more_slowly),
        cmocka_unit_test(delays_start_anew_when_their_reason_changes),
        cmocka_unit_test(without_nvrtc_nothing_is_compiled_for_a_while),
        cmocka_unit_test(a_look_up_that_fails_is_tried_again),
        cmocka_unit_test(only_so_many_failures_are_remembered),
        cmocka_unit_test(with_a_store_what_nobody_takes_is_made_and_left_there),
        cmocka_unit_test(what_was_left_in_the_store_and_is_gone_is_made_again),
        cmocka_unit_test(without_a_store_making_waits_for_the_taker),
        cmocka_unit_test(the_bytes_of_ready_kernels_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
