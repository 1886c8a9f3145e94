/* src/bring.c: what the worker does on a context's behalf, seen from the context: a full queue, a kernel that another context is
 * making. On the fake driver. */
#include "background_fixture.h"

#include "cache/claims.h"

#include <xxhash.h>

/* More sizes than options.worker.queue while the worker is busy: said once, counted and traced each time; generic kernels serve,
 * and what was dropped is taken up when it is met again. */
static void a_full_queue_is_said_once(void **state)
{
    (void)state;
    plant_generic(fx.cache, COMMON_TYPES);
    jg_options options = background_options();
    options.worker.queue = 1;
    options.log_level = JG_LOG_WARNING;
    atomic_store(&nvrtc_double->accepts, 1);
    jg_context *c = fixture_open_with(options);
    atomic_store(&nvrtc_double->holds, 1);
    const jg_problem busy = square(16, JG_F32);
    for (int i = 0; i < 2; i++) assert_status(fixture_gemm(c, &busy, 1, 0), JG_OK);
    while (!atomic_load(&nvrtc_double->running)) sched_yield();
    for (int size = 17; size < 20; size++) { /* read when the compile is over: the first fills the queue */
        const jg_problem p = square(size, JG_F32);
        for (int i = 0; i < 2; i++) assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
    }
    atomic_store(&nvrtc_double->holds, 0);
    settle(c);
    const jg_stats s = fixture_stats(c);
    assert_true(s.dropped > 0);
    assert_int_equal(events_of(JG_EVENT_DROP), s.dropped);
    assert_int_equal(fx.logs[JG_LOG_WARNING], 1);
    assert_says(fx.log, "options.worker.queue is full");
    assert_int_equal(s.launches_generic, 8);
    for (int size = 17; size < 20; size++) { /* to the fourth use */
        const jg_problem p = square(size, JG_F32);
        for (int i = 0; i < 2; i++) assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
        settle(c);
    }
    assert_int_equal(atomic_load(&nvrtc_double->compiles), 4);
    finish(c);
}

/* While somebody else has the claim nothing is compiled; what they store is taken, and their end gives the claim back. */
static void a_kernel_that_another_is_making_is_waited_for(void **state)
{
    (void)state;
    const jg_problem p = square(16, JG_F32), q = square(17, JG_F32);
    const jg_problem *const both[] = {&p, &q};
    plant_generic(fx.cache, COMMON_TYPES);
    atomic_store(&nvrtc_double->accepts, 1);
    jg_context *c = background_open();
    claims *other = claims_open(fx.cache);
    for (int i = 0; i < 2; i++) {
        const kernel_spec spec = fixture_spec(both[i], JG_FORM_AUTO);
        kernel_key key;
        kernel_encode_key(&spec, &key);
        assert_int_equal(claims_try(other, XXH64(key.bytes, sizeof key.bytes, 0)), 1);
        for (int j = 0; j < 2; j++) assert_status(fixture_gemm(c, both[i], 1, 0), JG_OK);
    }
    assert_status(jg_wait_idle(c, 300), JG_ERR_NOT_READY);
    assert_int_equal(atomic_load(&nvrtc_double->compiles), 0);
    fixture_plant(&p, JG_FORM_AUTO); /* made by them; the other is not */
    claims_close(other);
    settle(c);
    assert_int_equal(atomic_load(&nvrtc_double->compiles), 1);
    assert_string_equal(events_last(JG_EVENT_COMPILE).kernel, fixture_name(&q, JG_FORM_AUTO));
    assert_int_equal(poll_once(c).swapped, 2);
    assert_int_equal(events_of(JG_EVENT_FAIL), 0);
    finish(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BACKGROUND_TEST(a_full_queue_is_said_once),
        BACKGROUND_TEST(a_kernel_that_another_is_making_is_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
