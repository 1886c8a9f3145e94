/* Which kernel the worker brings next, and for whom: sightings, gains, demands. */
#include "worker_fixture.h"

/* Blocks the worker in kernel 255, so that what comes next is seen by it all at once. */
static void busy(scene *s)
{
    s->kernels[255].blocks = 1;
    demand_number(s, 255);
    sem_wait(&s->entered);
}

static void go_on(scene *s)
{
    sem_post(&s->go);
    settle(s);
}

/* --- sightings --- */

static void what_the_files_have_is_ready_at_the_first_sighting(void **state)
{
    (void)state;
    scene s;
    scene_open(&s);
    s.kernels[1].cached = JG_OK;
    met *m = met_of(1, 1);
    sight(&s, m, 1);
    settle(&s);
    assert_brought(&s, "f1");
    assert_traced(&s, "ready1");
    assert_taken(&s, "1");
    met_drop(m);
    scene_close(&s);
}

static void most_used_is_made_first(void **state)
{
    (void)state;
    scene s;
    scene_open(&s);
    met *mets[6];
    busy(&s);
    static const int uses[] = {2, 5, 1, 9, 5, 2};
    for (int i = 0; i < 6; i++) {
        mets[i] = met_of(1 + i, 1);
        sight(&s, mets[i], uses[i]);
    }
    go_on(&s);
    assert_brought(&s, "c255 f1 f2 f3 f4 f5 f6 c4 c2 c5 c1 c6"); /* as many uses: who came first; once used: not at all */
    for (int i = 0; i < 6; i++)
        met_drop(mets[i]);
    scene_close(&s);
}

/* Uses are read when a kernel is chosen, also those that nobody told of. */
static void the_latest_uses_count(void **state)
{
    (void)state;
    scene s;
    scene_open(&s);
    met *mets[3];
    busy(&s);
    for (int i = 0; i < 3; i++) {
        mets[i] = met_of(1 + i, 1);
        sight(&s, mets[i], 4 + (2 - i));
    }
    s.kernels[1].blocks = 1; /* the compile of 1 is entered after its look-up */
    sem_post(&s.go);
    sem_wait(&s.entered);
    sem_post(&s.go);
    sem_wait(&s.entered);
    sight(&s, mets[2], 3);
    sem_post(&s.go);
    settle(&s);
    assert_brought(&s, "c255 f1 f2 f3 c1 c3 c2");
    for (int i = 0; i < 3; i++)
        met_drop(mets[i]);
    scene_close(&s);
}

/* News that come while earlier ones are being read wait their turn. */
static void news_are_read_in_order(void **state)
{
    (void)state;
    scene s;
    scene_open(&s);
    met *mets[4];
    s.gain_blocks = 1;
    for (int i = 0; i < 4; i++)
        mets[i] = met_of(1 + i, 1);
    freeze(&s);
    for (int i = 0; i < 3; i++)
        sight(&s, mets[i], 1);
    thaw(&s);
    sem_wait(&s.entered);
    sight(&s, mets[3], 1);
    go_on(&s);
    assert_brought(&s, "f1 f2 f3 f4");
    for (int i = 0; i < 4; i++)
        met_drop(mets[i]);
    scene_close(&s);
}

/* Problems with one kernel (other batches) are one job, and their uses add up. */
static void equal_kernels_are_made_once_for_all_who_want_them(void **state)
{
    (void)state;
    scene s;
    scene_init(&s);
    const jg_worker_options options = options_with(2, 8, 60);
    scene_start(&s, &options, 1, 1);
    met *a = met_of(1, 1), *b = met_of(1, 2), *c = met_of(1, 3);
    sight(&s, a, 1);
    settle(&s);
    assert_brought(&s, "f1");
    s.kernels[1].blocks = 1;
    sight(&s, b, 1);
    sem_wait(&s.entered);
    sight(&s, c, 1); /* while it is being made */
    while (atomic_load(&s.w->mail_count))
        nap(0.2);
    go_on(&s);
    assert_brought(&s, "c1");
    assert_traced(&s, "ready1");
    ready_kernel *r = worker_take(s.w);
    assert_non_null(r);
    assert_null(r->next);
    assert_int_equal(r->met_count, 3);
    assert_ptr_equal(r->mets[0], a);
    assert_ptr_equal(r->mets[1], b);
    assert_ptr_equal(r->mets[2], c);
    ready_free(r);
    met_drop(a);
    met_drop(b);
    met_drop(c);
    scene_close(&s);
}

static void who_comes_after_a_kernel_was_handed_out_gets_it_too(void **state)
{
    (void)state;
    scene s;
    scene_open(&s);
    met *a = met_of(1, 1), *b = met_of(1, 2);
    sight(&s, a, 2);
    settle(&s);
    assert_brought(&s, "f1 c1");
    const int gains = s.gains;
    sight(&s, a, 62); /* it has its kernel, whether or not it was taken */
    settle(&s);
    assert_brought(&s, "");
    assert_int_equal(s.gains, gains);
    sight(&s, b, 1);
    settle(&s);
    assert_brought(&s, "f1");
    assert_taken(&s, "1 1");
    met_drop(a);
    met_drop(b);
    scene_close(&s);
}

static void a_full_queue_drops_until_the_next_doubling(void **state)
{
    (void)state;
    scene s;
    scene_init(&s);
    const jg_worker_options options = options_with(1, 2, 60);
    scene_start(&s, &options, 1, 1);
    met *mets[4];
    busy(&s);
    for (int i = 0; i < 4; i++) {
        mets[i] = met_of(1 + i, 1);
        sight(&s, mets[i], 2);
    }
    demand_number(&s, 5); /* not counted */
    go_on(&s);
    assert_brought(&s, "c255 c5 f1 f2 f3 f4 c1 c2");
    assert_traced(&s, "ready255 ready5 drop3 drop4 ready1 ready2");
    assert_int_equal(stats_of(&s).dropped, 2);
    sight(&s, mets[2], 1);
    sight(&s, mets[3], 2);
    settle(&s);
    assert_brought(&s, "c4");
    for (int i = 0; i < 4; i++)
        met_drop(mets[i]);
    scene_close(&s);
}

/* --- gain --- */

static void what_does_not_pay_is_only_counted(void **state)
{
    (void)state;
    static const struct {
        int pays;
        double gain;
        int made;
    } rows[] = {{1, 0, 1}, {0, 0, 0}, {1, 1.019, 0}, {0, 1.019, 0}, {1, 1.02, 1}, {0, 1.02, 1}, {1, 0.5, 0}, {0, 3, 1}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        scene s;
        scene_open(&s);
        s.gain = rows[i].gain;
        s.kernels[1].cached = JG_OK; /* not even from the files */
        met *m = met_of(1, 1);
        m->pays = rows[i].pays;
        sight(&s, m, 8);
        settle(&s);
        assert_brought(&s, rows[i].made ? "f1" : "");
        assert_int_equal(s.recorded, 8);
        assert_int_equal(stats_of(&s).queued, 0);
        met_drop(m);
        scene_close(&s);
    }
}

/* A gain may be recorded while the problem is in use. */
static void a_gain_recorded_later_counts_from_the_next_doubling(void **state)
{
    (void)state;
    scene s;
    scene_open(&s);
    met *m = met_of(1, 1);
    m->pays = 0;
    sight(&s, m, 4);
    settle(&s);
    assert_brought(&s, "");
    s.gain = 1.5;
    sight(&s, m, 3);
    settle(&s);
    assert_brought(&s, "");
    sight(&s, m, 1);
    settle(&s);
    assert_brought(&s, "f1 c1");
    met_drop(m);
    scene_close(&s);
}

/* --- demands --- */

static void demands_go_first_in_order(void **state)
{
    (void)state;
    scene s;
    scene_open(&s);
    met *m = met_of(1, 1), *known = met_of(2, 1);
    sight(&s, known, 1);
    settle(&s);
    assert_brought(&s, "f2");
    busy(&s);
    sight(&s, m, 50);
    demand_number(&s, 7);
    demand_number(&s, 2); /* waits for a second sighting otherwise */
    demand_number(&s, 6);
    demand_number(&s, 7);
    demand_number(&s, 1);
    go_on(&s);
    assert_brought(&s, "c255 c7 c2 c6 c1 f1"); /* the news of m, read last, finds its kernel handed out */
    assert_taken(&s, "255 7 2 6 1 1");
    met_drop(m);
    met_drop(known);
    scene_close(&s);
}

static void a_demand_says_for_whom(void **state)
{
    (void)state;
    scene s;
    scene_open(&s);
    met *own = met_of(1, 1), *other = met_of(9, 1);
    const kernel_spec spec = spec_of(1);
    busy(&s);
    assert_int_equal(worker_demand(s.w, &spec, other, 0), JG_OK); /* not its own kernel */
    assert_int_equal(worker_demand(s.w, &spec, own, 0), JG_OK);
    assert_int_equal(worker_demand(s.w, &spec, own, 0), JG_OK);
    assert_int_equal(worker_demand(s.w, &spec, NULL, 0), JG_OK);
    assert_int_equal(worker_demand(s.w, &spec, NULL, 1), JG_OK);
    go_on(&s);
    assert_string_equal(s.label, "9x1x1:align=4");
    ready_kernel *list = worker_take(s.w);
    assert_non_null(list);
    assert_int_equal(list->generic_set, 0);
    assert_int_equal(list->met_count, 0);
    ready_kernel *r = list->next;
    assert_non_null(r);
    assert_null(r->next);
    assert_int_equal(r->generic_set, 1);
    assert_int_equal(r->met_count, 2);
    assert_ptr_equal(r->mets[0], other);
    assert_ptr_equal(r->mets[1], own);
    ready_free(r);
    ready_free(list);
    assert_brought(&s, "c255 c1");
    sight(&s, own, 2); /* has its own */
    settle(&s);
    assert_brought(&s, "");
    sight(&s, other, 2); /* has not */
    settle(&s);
    assert_brought(&s, "f9 c9");
    assert_int_equal(s.recorded, 4);
    met_drop(own);
    met_drop(other);
    scene_close(&s);
}

static void a_demand_of_nobody_is_labelled_generic(void **state)
{
    (void)state;
    scene s;
    scene_open(&s);
    demand_number(&s, 1);
    settle(&s);
    assert_string_equal(s.label, "generic");
    scene_close(&s);
}

/* The problem that waits for the kernel anyway is in it once. */
static void a_demand_joins_the_job_of_its_problem(void **state)
{
    (void)state;
    scene s;
    scene_open(&s);
    met *m = met_of(1, 1);
    const kernel_spec spec = spec_of(1);
    sight(&s, m, 1);
    settle(&s);
    assert_int_equal(worker_demand(s.w, &spec, m, 0), JG_OK);
    settle(&s);
    assert_brought(&s, "f1 c1");
    ready_kernel *r = worker_take(s.w);
    assert_non_null(r);
    assert_int_equal(r->met_count, 1);
    ready_free(r);
    assert_int_equal(m->references, 2);
    met_drop(m);
    scene_close(&s);
}

/* A demand that comes while its kernel is looked for is made at once if that finds nothing. */
static void a_demand_during_the_look_up_is_made_after_it(void **state)
{
    (void)state;
    scene s;
    scene_init(&s);
    const jg_worker_options options = options_with(2, 8, 60);
    scene_start(&s, &options, 1, 1);
    met *m = met_of(1, 1);
    s.kernels[1].blocks = 1;
    sight(&s, m, 1);
    sem_wait(&s.entered);
    demand_number(&s, 1);
    while (atomic_load(&s.w->demand_count))
        nap(0.2);
    sem_post(&s.go);
    sem_post(&s.go);
    settle(&s);
    assert_brought(&s, "f1 c1");
    assert_taken(&s, "1");
    met_drop(m);
    scene_close(&s);
}

/* --- sealed --- */

static void a_sealed_worker_only_looks(void **state)
{
    (void)state;
    scene s;
    scene_init(&s);
    const jg_worker_options options = fixture_options();
    scene_start(&s, &options, 0, 1);
    met *m = met_of(1, 1);
    sight(&s, m, 1);
    settle(&s);
    freeze(&s);
    sight(&s, m, 3);
    thaw(&s);
    settle(&s);
    assert_brought(&s, "f1 f1"); /* once for each time that it was told */
    assert_int_equal(stats_of(&s).queued, 0);
    assert_int_equal(stats_of(&s).dropped, 0);
    s.kernels[1].cached = JG_OK; /* another process has made it */
    sight(&s, m, 4);
    settle(&s);
    assert_brought(&s, "f1");
    assert_traced(&s, "ready1");
    demand_number(&s, 2);
    settle(&s);
    assert_brought(&s, "f2");
    assert_traced(&s, "fail2");
    s.kernels[2].cached = JG_OK;
    demand_number(&s, 2);
    settle(&s);
    assert_brought(&s, "f2");
    assert_taken(&s, "1 2");
    met_drop(m);
    scene_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_files_have_is_ready_at_the_first_sighting),
        cmocka_unit_test(most_used_is_made_first),
        cmocka_unit_test(the_latest_uses_count),
        cmocka_unit_test(news_are_read_in_order),
        cmocka_unit_test(equal_kernels_are_made_once_for_all_who_want_them),
        cmocka_unit_test(who_comes_after_a_kernel_was_handed_out_gets_it_too),
        cmocka_unit_test(a_full_queue_drops_until_the_next_doubling),
        cmocka_unit_test(what_does_not_pay_is_only_counted),
        cmocka_unit_test(a_gain_recorded_later_counts_from_the_next_doubling),
        cmocka_unit_test(demands_go_first_in_order),
        cmocka_unit_test(a_demand_says_for_whom),
        cmocka_unit_test(a_demand_of_nobody_is_labelled_generic),
        cmocka_unit_test(a_demand_joins_the_job_of_its_problem),
        cmocka_unit_test(a_demand_during_the_look_up_is_made_after_it),
        cmocka_unit_test(a_sealed_worker_only_looks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
