/* What is recorded of mets and when, and which are forgotten. */
#include "worker_fixture.h"

static void uses_are_recorded_after_two_seconds_and_then_every_thirty(void **state)
{
    (void)state;
    scene s;
    scene_open(&s);
    met *m = met_of(1, 1), *other = met_of(2, 1);
    sight(&s, m, 3);
    rest(&s);
    assert_int_equal(s.records, 0);
    pass_time(1999);
    poke(&s);
    assert_int_equal(s.records, 0);
    pass_time(1);
    poke(&s);
    assert_int_equal(s.recorded, 3);
    assert_int_equal(s.records, 1);
    sight(&s, m, 6); /* the last use is not told, and found all the same */
    sight(&s, other, 1);
    rest(&s);
    pass_time(30e3 - 1);
    poke(&s);
    assert_int_equal(s.records, 1);
    pass_time(1);
    poke(&s);
    assert_int_equal(s.recorded, 10);
    assert_int_equal(s.records, 2);
    pass_time(30e3); /* nothing new: the file is left alone */
    poke(&s);
    assert_int_equal(s.records, 2);
    sight(&s, m, 1);
    pass_time(30e3);
    poke(&s);
    assert_int_equal(s.recorded, 11);
    met_drop(m);
    met_drop(other);
    scene_close(&s);
    assert_int_equal(s.recorded, 11);
}

/* Compiles may go on for minutes; a process that is killed then must not have lost its counts. */
static void counts_do_not_wait_for_compiles(void **state)
{
    (void)state;
    scene s;
    scene_open(&s);
    met *a = met_of(1, 1), *b = met_of(2, 1);
    s.kernels[1].blocks = 1;
    sight(&s, a, 2);
    sight(&s, b, 2);
    sem_wait(&s.entered); /* looks */
    sem_post(&s.go);
    sem_wait(&s.entered); /* compiles */
    assert_int_equal(s.records, 0);
    pass_time(2000);
    s.kernels[2].blocks = 1;
    sem_post(&s.go);
    sem_wait(&s.entered); /* compiles the next */
    assert_int_equal(s.recorded, 4);
    sem_post(&s.go);
    settle(&s);
    met_drop(a);
    met_drop(b);
    scene_close(&s);
}

static void waiting_for_idleness_records_at_once(void **state)
{
    (void)state;
    scene s;
    scene_open(&s);
    met *m = met_of(1, 1);
    for (int i = 1; i <= 5; i++) {
        sight(&s, m, 1);
        settle(&s);
        assert_int_equal(s.recorded, i);
    }
    met_drop(m);
    scene_close(&s);
}

static void a_problem_that_nobody_has_any_more_is_dropped(void **state)
{
    (void)state;
    scene s;
    scene_open(&s);
    met *m = met_of(1, 1), *kept = met_of(2, 1);
    m->pays = kept->pays = 0;
    sight(&s, m, 3);
    sight(&s, kept, 3);
    met_drop(m); /* as when its dispatch is evicted */
    settle(&s);
    assert_int_equal(s.recorded, 6);
    settle(&s);
    assert_int_equal(s.w->known_count, 1);
    assert_ptr_equal(atomic_load(&s.w->dead), m); /* a caller frees it */
    sight(&s, kept, 1);
    assert_null(atomic_load(&s.w->dead));
    met_drop(kept);
    scene_close(&s);
    assert_int_equal(s.recorded, 7);
}

/* Ever so many at once: each caller frees a few of them. */
static void the_dropped_are_freed_bit_by_bit(void **state)
{
    (void)state;
    scene s;
    scene_open(&s);
    met *kept = met_of(1, 1);
    kept->pays = 0;
    for (int i = 0; i < 100; i++) {
        met *m = met_of(2 + i, 1);
        m->pays = 0;
        sight(&s, m, 1);
        met_drop(m);
    }
    settle(&s);
    settle(&s);
    sight(&s, kept, 1);
    settle(&s);
    assert_null(s.w->dead);
    assert_int_equal(s.w->has_grave, 1);
    sight(&s, kept, (1 << 11) - 1); /* told eleven times more: 96 freed in all */
    assert_int_equal(s.w->has_grave, 1);
    sight(&s, kept, 1 << 11);
    assert_int_equal(s.w->has_grave, 0);
    for (int i = 0; i < 10; i++) {
        met *m = met_of(2 + i, 1);
        m->pays = 0;
        sight(&s, m, 1);
        met_drop(m);
    }
    settle(&s);
    settle(&s);
    sight(&s, kept, 1 << 12);
    assert_int_equal(s.w->has_grave, 1);
    met_drop(kept); /* the worker is left with all of them */
    scene_close(&s);
}

enum { MANY = WORKER_MAX_KNOWN + WORKER_BATCH };

/* Once used ones go, oldest first, and are recorded before; those that are being made stay. */
static void the_known_are_bounded(void **state)
{
    (void)state;
    scene s;
    static met *mets[MANY + 1];
    scene_open(&s);
    for (int i = 0; i <= MANY; i++) {
        mets[i] = met_of(1 + i, 1);
        mets[i]->pays = i < 4;
    }
    for (int i = 0; i < 3; i++)
        s.kernels[1 + i].compiled = JG_ERR_NOT_READY;
    sight(&s, mets[0], 2); /* wanted */
    sight(&s, mets[1], 1); /* waits for a second sighting */
    sight(&s, mets[2], 3); /* wanted */
    sight(&s, mets[4], 2); /* not worth it, but used twice */
    for (int i = 5; i < MANY; i++) {
        sight(&s, mets[i], 1);
        if (i % 1024 == 0) rest(&s);
    }
    rest(&s);
    assert_in_range(s.w->known_count, WORKER_MAX_KNOWN - WORKER_BATCH, WORKER_MAX_KNOWN);
    assert_int_equal(mets[0]->notes.known, 1);
    assert_int_equal(mets[1]->notes.known, 0);
    assert_int_equal(mets[2]->notes.known, 1);
    assert_int_equal(mets[4]->notes.known, 1);
    assert_int_equal(mets[5]->notes.known, 0);
    assert_int_equal(mets[MANY - 1]->notes.known, 1);
    assert_int_equal(mets[1]->references, 1);
    assert_int_equal(s.recorded, WORKER_BATCH); /* those that went, and no others */
    assert_int_equal(s.w->counts[JOB_MET], 0);
    sight(&s, mets[1], 1); /* told again, and counted on from where it was */
    rest(&s);
    assert_int_equal(mets[1]->notes.known, 1);
    s.kernels[1].compiled = s.kernels[2].compiled = s.kernels[3].compiled = JG_OK;
    pass_time(1000);
    settle(&s);
    assert_taken(&s, "3 1 2");
    uint64_t uses = 0;
    for (int i = 0; i <= MANY; i++) {
        uses += atomic_load(&mets[i]->uses);
        met_drop(mets[i]);
    }
    assert_int_equal(s.recorded, uses);
    scene_close(&s);
}

/* Where all were used more often, the oldest go. */
static void the_known_are_bounded_whatever_their_uses(void **state)
{
    (void)state;
    scene s;
    static met *mets[MANY];
    scene_open(&s);
    for (int i = 0; i < MANY; i++) {
        mets[i] = met_of(1 + i, 1);
        mets[i]->pays = 0;
        sight(&s, mets[i], 2);
        if (i % 1024 == 0) rest(&s);
    }
    rest(&s);
    assert_in_range(s.w->known_count, WORKER_MAX_KNOWN - WORKER_BATCH, WORKER_MAX_KNOWN);
    assert_int_equal(mets[0]->notes.known, 0);
    assert_int_equal(mets[MANY - 1]->notes.known, 1);
    settle(&s);
    assert_int_equal(s.recorded, 2 * MANY);
    for (int i = 0; i < MANY; i++)
        met_drop(mets[i]);
    scene_close(&s);
}

/* All wait for their kernel: then there are more of them than that. */
static void who_waits_for_a_kernel_is_not_forgotten(void **state)
{
    (void)state;
    scene s;
    static met *mets[MANY];
    scene_open(&s);
    s.kernels[1].compiled = JG_ERR_NOT_READY;
    for (int i = 0; i < MANY; i++) {
        mets[i] = met_of(1, 1 + i);
        sight(&s, mets[i], 1);
        if (i % 1024 == 0) rest(&s);
    }
    rest(&s);
    assert_int_equal(s.w->known_count, MANY);
    s.kernels[1].compiled = JG_OK;
    pass_time(1000);
    settle(&s);
    ready_kernel *r = worker_take(s.w);
    assert_non_null(r);
    assert_int_equal(r->met_count, MANY);
    ready_free(r);
    assert_int_equal(s.recorded, MANY);
    for (int i = 0; i < MANY; i++)
        met_drop(mets[i]);
    scene_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(uses_are_recorded_after_two_seconds_and_then_every_thirty),
        cmocka_unit_test(counts_do_not_wait_for_compiles),
        cmocka_unit_test(waiting_for_idleness_records_at_once),
        cmocka_unit_test(a_problem_that_nobody_has_any_more_is_dropped),
        cmocka_unit_test(the_dropped_are_freed_bit_by_bit),
        cmocka_unit_test(the_known_are_bounded),
        cmocka_unit_test(the_known_are_bounded_whatever_their_uses),
        cmocka_unit_test(who_waits_for_a_kernel_is_not_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
