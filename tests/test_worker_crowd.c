/* Many callers, takers and worker threads at once; run it under ThreadSanitizer as well. */
#include "worker_fixture.h"

enum { CALLERS = 4, METS = 200, ROUNDS = 20000 };

typedef struct crowd {
    scene s;
    met *mets[METS];
    atomic_int served[METS];   /* ready kernels that a met was in */
    atomic_int running;        /* callers */
    atomic_uint_fast64_t sightings, taken;
} crowd;

static unsigned next_random(unsigned *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

/* Small numbers come up most. */
static void *call(void *argument)
{
    crowd *c = argument;
    unsigned seed = (unsigned)atomic_fetch_add(&c->running, 1) + 1;
    for (int i = 0; i < ROUNDS; i++) {
        met *m = c->mets[next_random(&seed) % METS * (next_random(&seed) % METS) / METS];
        worker_sight(c->s.w, m);
        if (i % 1000 == 999) assert_int_equal(worker_demand(c->s.w, &m->spec, NULL, 0), JG_OK);
    }
    atomic_fetch_add(&c->sightings, ROUNDS);
    atomic_fetch_sub(&c->running, 1);
    return NULL;
}

static void count_and_free(crowd *c, ready_kernel *r)
{
    for (size_t i = 0; i < r->met_count; i++)
        atomic_fetch_add(&c->served[r->mets[i]->key.problem.batch], 1);
    atomic_fetch_add(&c->taken, 1);
    ready_free(r);
}

/* As jg_poll with a bound: a few, and the rest back. */
static void take_some(crowd *c)
{
    ready_kernel *list = worker_take(c->s.w);
    for (int i = 0; list && i < 2; i++) {
        ready_kernel *next = list->next;
        count_and_free(c, list);
        list = next;
    }
    worker_give(c->s.w, list);
}

static void *poll(void *argument)
{
    crowd *c = argument;
    while (atomic_load(&c->running)) {
        take_some(c);
        nap(0.05);
    }
    return NULL;
}

static void crowd_open(crowd *c, const jg_worker_options *options)
{
    memset(c, 0, sizeof *c);
    scene_init(&c->s);
    scene_start(&c->s, options, 1, 1);
    for (int i = 0; i < METS; i++)
        c->mets[i] = met_of(1 + i / 2, i); /* two problems a kernel */
}

/* Returns when the callers have. */
static void crowd_run(crowd *c)
{
    pthread_t callers[CALLERS], pollers[2];
    atomic_store(&c->running, 1);
    for (int i = 0; i < CALLERS; i++)
        assert_int_equal(pthread_create(&callers[i], NULL, call, c), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&pollers[i], NULL, poll, c), 0);
    for (int i = 0; i < CALLERS; i++)
        pthread_join(callers[i], NULL);
    atomic_fetch_sub(&c->running, 1);
    for (int i = 0; i < 2; i++)
        pthread_join(pollers[i], NULL);
}

static void run_crowd(double nap_ms)
{
    static crowd c;
    const jg_worker_options options = options_with(3, 1000, 100000);
    crowd_open(&c, &options);
    worker_nap_ms = nap_ms;
    crowd_run(&c);
    settle(&c.s);
    while (atomic_load(&c.s.w->ready_count)) {
        take_some(&c);
        settle(&c.s);
    }
    uint64_t uses = 0;
    for (int i = 0; i < METS; i++) {
        uses += atomic_load(&c.mets[i]->uses);
        const int wanted = atomic_load(&c.mets[i]->uses) >= 2;
        assert_in_range(c.served[i], wanted, 1); /* once, and not before its time unless its fellow had it made */
    }
    assert_int_equal(uses, c.sightings);
    assert_int_equal(c.s.recorded, uses);
    assert_int_equal(stats_of(&c.s).queued, 0);
    assert_int_equal(stats_of(&c.s).dropped, 0);
    assert_int_equal(c.s.w->ready_bytes, 0);
    assert_int_equal(c.s.w->mail_count, 0);
    assert_int_equal(stats_of(&c.s).threads, 3);
    for (int i = 0; i < METS; i++)
        met_drop(c.mets[i]);
    scene_close(&c.s);
}

static void nothing_is_lost_among_many_threads(void **state)
{
    (void)state;
    run_crowd(0);
    run_crowd(0.1);
}

/* Starts and stops with news of all kinds on the way, in which the threads are wherever they are just then. */
static void stop_at_some_moment(int round, double patience_ms)
{
    scene s;
    const jg_worker_options options = options_with(1 + round % 3, 4, 1000);
    scene_init(&s);
    scene_start(&s, &options, 1, round & 1);
    worker_stop_ms = patience_ms;
    met *mets[20];
    for (int i = 0; i < 20; i++) {
        mets[i] = met_of(1 + i, 1);
        sight(&s, mets[i], 2);
        if (i % 7 == 0) assert_int_equal(worker_demand(s.w, &mets[i]->spec, mets[i], 0), JG_OK);
    }
    if (round % 10) nap(0.02 * (round % 10));
    worker_stop(s.w);
    if (patience_ms > 0) assert_int_equal(s.released, 1);
    const uint64_t recorded = s.recorded;
    const int records = s.records;
    while (!atomic_load(&s.released))
        nap(0.2);
    if (patience_ms > 0) assert_int_equal(recorded, 40);
    assert_in_range(recorded, 0, 40);
    assert_int_equal(s.records, records); /* an abandoned thread tells nobody */
    for (int i = 0; i < 20; i++) {
        assert_int_equal(mets[i]->references, 1);
        met_drop(mets[i]);
    }
    nap(patience_ms > 0 ? 0 : 1);
    assert_int_equal(s.released, 1);
    scene_end(&s);
}

static void it_can_be_stopped_at_any_moment(void **state)
{
    (void)state;
    for (int round = 0; round < 200; round++)
        stop_at_some_moment(round, 60e3);
}

static void it_can_be_abandoned_at_any_moment(void **state)
{
    (void)state;
    for (int round = 0; round < 200; round++)
        stop_at_some_moment(round, 0);
}

static void *start_together(void *argument)
{
    crowd *c = argument;
    worker_sight(c->s.w, c->mets[0]);
    return NULL;
}

static void many_first_callers_start_one_thread(void **state)
{
    (void)state;
    static crowd c;
    const jg_worker_options options = fixture_options();
    for (int round = 0; round < 50; round++) {
        pthread_t callers[CALLERS];
        crowd_open(&c, &options);
        for (int i = 0; i < CALLERS; i++)
            assert_int_equal(pthread_create(&callers[i], NULL, start_together, &c), 0);
        for (int i = 0; i < CALLERS; i++)
            pthread_join(callers[i], NULL);
        settle(&c.s);
        assert_int_equal(spawns, 1);
        assert_int_equal(c.s.recorded, CALLERS);
        for (int i = 0; i < METS; i++)
            met_drop(c.mets[i]);
        scene_close(&c.s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_lost_among_many_threads),
        cmocka_unit_test(it_can_be_stopped_at_any_moment),
        cmocka_unit_test(it_can_be_abandoned_at_any_moment),
        cmocka_unit_test(many_first_callers_start_one_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
