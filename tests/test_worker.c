/* The worker as its callers see it: what a sighting leads to, starting, taking and giving back, waiting. */
#include "worker_fixture.h"

static void a_second_sighting_makes_a_kernel(void **state)
{
    (void)state;
    scene s;
    scene_open(&s);
    met *m = met_of(3, 1);
    sight(&s, m, 1);
    settle(&s);
    assert_brought(&s, "f3");
    assert_null(worker_take(s.w));
    sight(&s, m, 1);
    settle(&s);
    assert_brought(&s, "c3");
    assert_traced(&s, "ready3");
    assert_string_equal(s.label, "3x1x1:align=4");
    assert_int_equal(stats_of(&s).ready, 1);
    ready_kernel *r = worker_take(s.w);
    assert_non_null(r);
    assert_null(r->next);
    const kernel_spec expected = spec_of(3);
    assert_memory_equal(&r->spec, &expected, sizeof expected);
    assert_int_equal(r->img.cubin_bytes, 8);
    assert_int_equal(r->generic_set, 0);
    assert_int_equal(r->met_count, 1);
    assert_ptr_equal(r->mets[0], m);
    ready_free(r);
    assert_null(worker_take(s.w));
    met_drop(m);
    scene_close(&s);
    assert_int_equal(atomic_load(&s.recorded), 2);
}

static void is_told_when_uses_have_doubled(void **state)
{
    (void)state;
    scene s;
    scene_open(&s);
    scene_hold(&s);
    met *m = met_of(1, 1);
    for (uint64_t use = 1; use <= 4096; use++) {
        sight(&s, m, 1);
        const int told = atomic_load(&m->posted);
        assert_int_equal(told, (use & (use - 1)) == 0);
        if (!told) continue;
        assert_ptr_equal(atomic_exchange(&s.w->mail, NULL), m); /* as a thread would */
        atomic_store(&s.w->mail_count, 0);
        atomic_store(&m->posted, 0);
        met_drop(m);
    }
    assert_int_equal(m->uses, 4096);
    scene_release(&s);
    met_drop(m);
    scene_close(&s);
}

/* What is in the mailbox is not put there again; the worker sees all uses when it comes to it. */
static void news_that_were_not_read_are_merged(void **state)
{
    (void)state;
    scene s;
    scene_open(&s);
    scene_hold(&s);
    met *m = met_of(1, 1);
    sight(&s, m, 100);
    assert_int_equal(atomic_load(&s.w->mail_count), 1);
    assert_int_equal(m->references, 2);
    scene_release(&s);
    settle(&s);
    assert_brought(&s, "f1 c1");
    assert_int_equal(s.recorded, 100);
    met_drop(m);
    scene_close(&s);
}

static void a_full_mailbox_drops_news_until_they_are_told_again(void **state)
{
    (void)state;
    scene s;
    static met *mets[WORKER_MAX_MAIL + 1];
    scene_open(&s);
    scene_hold(&s);
    for (int i = 0; i <= WORKER_MAX_MAIL; i++)
        mets[i] = met_of(1, 1 + i);
    for (int i = 0; i < WORKER_MAX_MAIL; i++)
        sight(&s, mets[i], 1);
    met *last = mets[WORKER_MAX_MAIL];
    assert_int_equal(worker_sight(s.w, last), 1);
    assert_int_equal(stats_of(&s).dropped, 1);
    assert_int_equal(last->references, 1);
    scene_release(&s);
    settle(&s);
    assert_int_equal(s.recorded, WORKER_MAX_MAIL);
    sight(&s, last, 1);
    settle(&s);
    assert_int_equal(s.recorded, WORKER_MAX_MAIL + 2);
    assert_int_equal(stats_of(&s).dropped, 1);
    for (int i = 0; i <= WORKER_MAX_MAIL; i++)
        met_drop(mets[i]);
    scene_close(&s);
}

/* A thread that is preempted with the lock holds up nobody; if it did, this would hang. */
static void callers_take_no_lock(void **state)
{
    (void)state;
    scene s;
    scene_open(&s);
    met *m = met_of(1, 1), *other = met_of(2, 1);
    const kernel_spec third = spec_of(3);
    sight(&s, m, 2);
    settle(&s);
    pthread_mutex_lock(&s.w->lock);
    sight(&s, m, 64);
    sight(&s, other, 64);
    assert_int_equal(worker_demand(s.w, &third, other, 0), JG_OK);
    ready_kernel *r = worker_take(s.w);
    assert_non_null(r);
    worker_give(s.w, r);
    assert_int_equal(stats_of(&s).ready, 1);
    pthread_mutex_unlock(&s.w->lock);
    settle(&s);
    assert_taken(&s, "1 3 2");
    met_drop(m);
    met_drop(other);
    scene_close(&s);
}

/* Returns, with the lock, while the thread naps. */
static void freeze_napping(scene *s)
{
    for (int posts = 1;;) {
        settle(s); /* sometimes wakes it twice: then it has nothing to do the second time, and sleeps */
        freeze(s);
        sem_getvalue(&s->w->wake, &posts);
        if (!posts && atomic_load(&s->w->wake_posted)) return;
        thaw(s);
    }
}

/* A burst of new sizes costs one wake: while a thread naps nobody posts, and it looks when it gets up. */
static void a_napping_thread_is_not_woken(void **state)
{
    (void)state;
    scene s;
    scene_open(&s);
    worker_nap_ms = 20;
    met *first = met_of(1, 1), *second = met_of(2, 1);
    sight(&s, first, 1);
    freeze_napping(&s);
    int posts = -1;
    alarm(20); /* the next record, which wakes it as well, is due in 30 s */
    sight(&s, second, 2);
    sem_getvalue(&s.w->wake, &posts);
    assert_int_equal(posts, 0);
    thaw(&s);
    while (!atomic_load(&s.w->ready_count))
        nap(0.2);
    assert_brought(&s, "f1 f2 c2");
    met_drop(first);
    met_drop(second);
    scene_close(&s);
}

/* --- starting --- */

static void a_worker_that_nobody_needs_has_no_thread(void **state)
{
    (void)state;
    scene s;
    scene_open(&s);
    settle(&s);
    assert_null(worker_take(s.w));
    assert_int_equal(stats_of(&s).threads, 0);
    scene_close(&s);
    assert_int_equal(spawns, 0);
    worker_stop(NULL);
    ready_free(NULL);
    met_drop(NULL);
}

static void the_first_sighting_starts_one_thread(void **state)
{
    (void)state;
    scene s;
    scene_open(&s);
    met *m = met_of(1, 1);
    sight(&s, m, 8);
    settle(&s);
    assert_int_equal(spawns, 1);
    assert_int_equal(stats_of(&s).threads, 1);
    met_drop(m);
    scene_close(&s);
}

static void a_start_that_fails_is_told_and_tried_again_a_second_later(void **state)
{
    (void)state;
    scene s;
    scene_open(&s);
    spawn_error = EAGAIN;
    met *m = met_of(1, 1);
    const kernel_spec spec = spec_of(2);
    assert_int_equal(worker_sight(s.w, m), 1);
    assert_int_equal(worker_sight(s.w, m), 1);
    assert_int_equal(worker_sight(s.w, m), 0); /* a third use is no news */
    assert_int_equal(worker_demand(s.w, &spec, m, 0), JG_ERR_NO_MEMORY);
    assert_non_null(strstr(jg_last_error(), strerror(EAGAIN)));
    assert_int_equal(spawns, 1);
    assert_int_equal(stats_of(&s).dropped, 3);
    assert_int_equal(stats_of(&s).start_error, EAGAIN);
    assert_int_equal(stats_of(&s).threads, 0);
    assert_int_equal(m->references, 1);
    settle(&s); /* there is nobody to wait for */
    pass_time(999);
    assert_int_equal(worker_sight(s.w, m), 1);
    assert_int_equal(spawns, 1);
    pass_time(1);
    assert_int_equal(worker_demand(s.w, &spec, NULL, 0), JG_ERR_NO_MEMORY);
    assert_int_equal(spawns, 2);
    spawn_error = 0;
    pass_time(1000);
    sight(&s, m, 4); /* the eighth use is news again */
    settle(&s);
    assert_int_equal(spawns, 3);
    assert_int_equal(stats_of(&s).start_error, 0);
    assert_brought(&s, "f1 c1");
    met_drop(m);
    scene_close(&s);
    assert_int_equal(s.recorded, 8);
}

static void a_worker_that_never_got_a_thread_can_be_stopped(void **state)
{
    (void)state;
    scene s;
    scene_open(&s);
    spawn_error = ENOMEM;
    met *m = met_of(1, 1);
    assert_int_equal(worker_sight(s.w, m), 1);
    met_drop(m);
    scene_close(&s);
}

/* --- taking --- */

static void kernels_are_taken_in_order_and_what_is_given_back_first(void **state)
{
    (void)state;
    scene s;
    scene_open(&s);
    for (int i = 1; i <= 4; i++)
        demand_number(&s, i);
    settle(&s);
    ready_kernel *list = worker_take(s.w);
    assert_null(worker_take(s.w));
    assert_int_equal(stats_of(&s).ready, 0);
    ready_kernel *rest = list->next;
    assert_int_equal(list->spec.m, 1);
    ready_free(list);
    demand_number(&s, 5);
    settle(&s);
    worker_give(s.w, rest);
    assert_int_equal(stats_of(&s).ready, 4);
    demand_number(&s, 6);
    settle(&s);
    assert_taken(&s, "2 3 4 5 6");
    assert_int_equal(stats_of(&s).ready, 0);
    assert_int_equal(s.w->ready_bytes, 0);
    worker_give(s.w, NULL);
    assert_null(worker_take(s.w));
    scene_close(&s);
}

static void two_takers_may_both_give_back(void **state)
{
    (void)state;
    scene s;
    scene_open(&s);
    for (int i = 1; i <= 2; i++)
        demand_number(&s, i);
    settle(&s);
    ready_kernel *first = worker_take(s.w);
    for (int i = 3; i <= 4; i++)
        demand_number(&s, i);
    settle(&s);
    ready_kernel *second = worker_take(s.w);
    worker_give(s.w, first);
    worker_give(s.w, second);
    assert_int_equal(stats_of(&s).ready, 4);
    assert_taken(&s, "3 4 1 2"); /* who gave last is first; nothing is lost */
    scene_close(&s);
}

/* --- waiting --- */

static void waiting_runs_out_while_something_is_under_way(void **state)
{
    (void)state;
    scene s;
    scene_open(&s);
    s.kernels[1].blocks = 1;
    demand_number(&s, 1);
    sem_wait(&s.entered);
    assert_int_equal(worker_wait_idle(s.w, 1), 0);
    assert_int_equal(worker_wait_idle(s.w, 120), 0);
    assert_int_equal(stats_of(&s).queued, 1);
    sem_post(&s.go);
    assert_int_equal(worker_wait_idle(s.w, 0), 1);
    assert_int_equal(stats_of(&s).queued, 0);
    assert_taken(&s, "1");
    scene_close(&s);
}

static void waiting_includes_what_is_only_told(void **state)
{
    (void)state;
    scene s;
    scene_open(&s);
    scene_hold(&s);
    met *m = met_of(1, 1);
    sight(&s, m, 2);
    assert_int_equal(worker_wait_idle(s.w, 1), 0);
    demand_number(&s, 2);
    assert_int_equal(worker_wait_idle(s.w, 1), 0);
    scene_release(&s);
    settle(&s);
    assert_taken(&s, "2 1");
    met_drop(m);
    scene_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_second_sighting_makes_a_kernel),
        cmocka_unit_test(is_told_when_uses_have_doubled),
        cmocka_unit_test(news_that_were_not_read_are_merged),
        cmocka_unit_test(a_full_mailbox_drops_news_until_they_are_told_again),
        cmocka_unit_test(callers_take_no_lock),
        cmocka_unit_test(a_napping_thread_is_not_woken),
        cmocka_unit_test(a_worker_that_nobody_needs_has_no_thread),
        cmocka_unit_test(the_first_sighting_starts_one_thread),
        cmocka_unit_test(a_start_that_fails_is_told_and_tried_again_a_second_later),
        cmocka_unit_test(a_worker_that_never_got_a_thread_can_be_stopped),
        cmocka_unit_test(kernels_are_taken_in_order_and_what_is_given_back_first),
        cmocka_unit_test(two_takers_may_both_give_back),
        cmocka_unit_test(waiting_runs_out_while_something_is_under_way),
        cmocka_unit_test(waiting_includes_what_is_only_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
