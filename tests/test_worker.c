/* The worker as its callers see it: what a sighting leads to, taking and giving back, waiting, stopping. */
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
    assert_int_equal(stats_of(&s).ready, 1);
    ready_kernel *r = worker_take(s.w);
    assert_non_null(r);
    assert_int_equal(r->met_count, 1);
    assert_ptr_equal(r->mets[0], m);
    ready_free(r);
    assert_null(worker_take(s.w));
    met_drop(m);
    scene_close(&s);
    assert_int_equal(atomic_load(&s.recorded), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_second_sighting_makes_a_kernel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
