/* Background mode on the fake driver: how a size goes over to its own kernel, also in plans, and what happens where a generic
 * kernel is missing. What single calls may do is in test_policies.c, jg_poll in test_poll.c. */
#include "background_fixture.h"

static jg_context *open_generic(void)
{
    plant_generic(fx.cache, COMMON_TYPES);
    return background_open();
}

/* --- the way of a size --- */

static void the_first_sighting_finds_what_is_in_the_files(void **state)
{
    (void)state;
    const jg_problem p = square(20, JG_F16);
    jg_context *c = open_generic();
    const uint64_t loads = LOADS();
    assert_int_equal(fixture_stats(c).resident, loads);
    fixture_plant(&p, JG_FORM_AUTO); /* another process has made it meanwhile */
    assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
    assert_true(ran_on(&p, JG_FORM_GENERIC));
    settle(c);
    assert_int_equal(fixture_stats(c).ready, 1);
    assert_string_equal(events_text(), "GR");
    assert_string_equal(events_last(JG_EVENT_READY).kernel, fixture_name(&p, JG_FORM_AUTO));
    assert_string_equal(events_last(JG_EVENT_READY).problem, "20:f16");
    assert_status(fixture_gemm(c, &p, 1, 0), JG_OK); /* nothing changes by itself */
    assert_true(ran_on(&p, JG_FORM_GENERIC));
    assert_int_equal(LOADS(), loads);

    const jg_poll_result polled = poll_once(c);
    assert_int_equal(polled.loaded, 1);
    assert_int_equal(polled.swapped, 1);
    assert_int_equal(polled.unloaded + polled.left, 0);
    assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
    assert_true(ran_on(&p, JG_FORM_AUTO));
    settle(c);
    assert_string_equal(events_text(), "GRGSH");
    assert_string_equal(events_last(JG_EVENT_SWAP).kernel, fixture_name(&p, JG_FORM_AUTO));
    assert_string_equal(events_last(JG_EVENT_SWAP).problem, "20:f16");
    const jg_stats s = fixture_stats(c);
    assert_int_equal(s.launches_generic, 2);
    assert_int_equal(s.launches_own, 1);
    assert_int_equal(s.swaps, 1);
    assert_int_equal(s.waits + s.compiles + s.ready + s.queued + s.dropped, 0);
    assert_int_equal(atomic_load(&nvrtc_double->compiles), 0);
    finish(c);
}

static void the_second_sighting_compiles(void **state)
{
    (void)state;
    const jg_problem p = square(20, JG_F32);
    atomic_store(&nvrtc_double->accepts, 1);
    jg_context *c = open_generic();
    assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
    settle(c);
    assert_int_equal(atomic_load(&nvrtc_double->compiles), 0);
    assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
    settle(c);
    assert_int_equal(atomic_load(&nvrtc_double->compiles), 1);
    assert_string_equal(events_text(), "GGCR");
    assert_string_equal(events_last(JG_EVENT_COMPILE).problem, "20");
    assert_true(events_last(JG_EVENT_COMPILE).ms > 0);
    assert_int_equal(poll_once(c).swapped, 1);
    assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
    assert_true(ran_on(&p, JG_FORM_AUTO));
    finish(c);
    assert_string_equal(events_text(), "GGCRSH"); /* closing unloads, and tells nothing of it */

    c = background_open(); /* the next run knows it */
    assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
    assert_true(ran_on(&p, JG_FORM_AUTO));
    finish(c);
}

/* What cannot be made: the generic kernel goes on serving, and it is said once. */
static void a_refused_source_leaves_the_generic_kernel(void **state)
{
    (void)state;
    const jg_problem p = square(20, JG_F32);
    jg_context *c = open_generic();
    for (int i = 0; i < 9; i++) {
        assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
        settle(c);
    }
    assert_int_equal(atomic_load(&nvrtc_double->compiles), 1);
    assert_int_equal(events_of(JG_EVENT_FAIL), 1);
    assert_int_equal(events_of(JG_EVENT_GENERIC), 9);
    assert_int_equal(fx.logs[JG_LOG_WARNING], 1);
    assert_says(fx.log, "planted refusal");
    assert_says(fx.log, "generic kernels go on serving");
    assert_int_equal(fixture_stats(c).compile_failures, 1);
    assert_int_equal(poll_once(c).loaded, 0);
    finish(c);
}

/* k = 0 and form = GENERIC plan a generic kernel: there is nothing better to be had. */
static void what_is_planned_generic_is_no_fallback(void **state)
{
    (void)state;
    const jg_problem rows[] = {{.m = 8, .n = 8}, {.m = 8, .n = 8, .k = 8, .form = JG_FORM_GENERIC}};
    jg_context *c = open_generic();
    for (size_t i = 0; i < 2; i++)
        for (int j = 0; j < 3; j++) assert_status(fixture_gemm(c, &rows[i], 1, 0), JG_OK);
    settle(c);
    assert_string_equal(events_text(), "GGGGGG");
    assert_int_equal(fixture_stats(c).launches_generic, 6);
    assert_int_equal(fixture_stats(c).disk_misses, 0); /* the worker was told of neither */
    finish(c);
}

/* --- plans --- */

/* The alignment that a plan wants is the promised one, before and after it went over. */
static void plans_go_over(void **state)
{
    (void)state;
    static _Alignas(256) char a[4096], b[4096], out[4096];
    const jg_problem rows[] = {
        {.m = 16, .n = 16, .k = 16, .type_a = JG_F16}, {.m = 16, .n = 16, .k = 16, .type_a = JG_F16, .align_bytes = 4},
        {.m = 8, .n = 7, .k = 9, .type_a = JG_F16}, {.m = 8, .n = 8, .k = 12}, {.m = 8, .n = 8, .k = 12, .align_bytes = 8},
    };
    const size_t count = sizeof rows / sizeof rows[0];
    jg_context *c = open_generic();
    jg_plan *plans[sizeof rows / sizeof rows[0]];
    for (size_t i = 0; i < count; i++) {
        fixture_plant(&rows[i], JG_FORM_AUTO);
        assert_status(jg_plan_create(c, &rows[i], &plans[i]), JG_OK);
    }
    for (int swapped = 0; swapped < 2; swapped++) {
        for (size_t i = 0; i < count; i++) {
            const unsigned promised = rows[i].align_bytes ? rows[i].align_bytes : 16;
            jg_plan_details d;
            assert_status(jg_plan_info(plans[i], &d), JG_OK);
            assert_int_equal(d.form, swapped ? JG_FORM_SPECIALISED : JG_FORM_GENERIC);
            assert_string_equal(d.kernel, fixture_name(&rows[i], d.form));
            assert_int_equal(d.source, JG_SOURCE_MEMORY);
            assert_true(d.threads > 0 && d.grid_x > 0 && d.waves > 0);
            assert_status(fixture_run_plan(plans[i], &rows[i]), JG_OK);
            assert_string_equal(fx.fake->last_launch().kernel, d.kernel);
            const jg_operands enough = {.a = a + promised, .b = b + promised, .c = out + promised};
            const jg_operands odd = {.a = a + 1, .b = b, .c = out};
            assert_status(jg_plan_run(plans[i], &enough), JG_OK); /* the fake driver judges */
            assert_status(jg_plan_run(plans[i], &odd), JG_ERR_MISALIGNED);
        }
        const jg_operands half = {.a = a + 8, .b = b, .c = out}, quarter = {.a = a, .b = b + 2, .c = out};
        assert_status(jg_plan_run(plans[0], &half), JG_ERR_MISALIGNED);
        assert_status(jg_plan_run(plans[1], &quarter), JG_ERR_MISALIGNED);
        assert_status(jg_plan_run(plans[2], &quarter), JG_OK); /* odd rows are read element by element */
        settle(c);
        if (!swapped) assert_int_equal(poll_once(c).swapped, count);
    }
    for (size_t i = 0; i < count; i++) jg_plan_destroy(plans[i]);
    assert_int_equal(fixture_stats(c).waits, 0);
    finish(c);
}

/* A plan counts its launches as calls do. */
static void plans_tell_the_worker(void **state)
{
    (void)state;
    const jg_problem p = square(16, JG_F16);
    atomic_store(&nvrtc_double->accepts, 1);
    jg_context *c = open_generic();
    jg_plan *made;
    assert_status(jg_plan_create(c, &p, &made), JG_OK);
    settle(c);
    assert_int_equal(fixture_stats(c).disk_misses, 0); /* made, not launched */
    for (int i = 0; i < 2; i++) {
        assert_status(fixture_run_plan(made, &p), JG_OK);
        settle(c);
        assert_int_equal(atomic_load(&nvrtc_double->compiles), i);
    }
    jg_plan_destroy(made);
    finish(c);
}

/* --- without a generic kernel --- */

/* The one case in which background mode waits: counted each time, said once. */
static void a_missing_generic_kernel_is_waited_for(void **state)
{
    (void)state;
    const jg_problem f32 = square(20, JG_F32), f16 = square(16, JG_F16), other = square(24, JG_F32);
    atomic_store(&nvrtc_double->accepts, 1);
    jg_options options = background_options();
    options.resident = JG_RESIDENT_NONE;
    options.memory_max_kernels = 1;
    jg_context *c = fixture_open_with(options);
    assert_status(fixture_gemm(c, &f32, 1, 0), JG_OK);
    assert_true(ran_on(&f32, JG_FORM_GENERIC));
    assert_int_equal(fx.logs[JG_LOG_WARNING], 1);
    assert_says(fx.log, "20 waited ");
    assert_says(fx.log, fixture_name(&f32, JG_FORM_GENERIC));
    assert_says(fx.log, "no cache or factory file");
    assert_string_equal(events_text(), "CWG");
    assert_string_equal(events_last(JG_EVENT_WAIT).kernel, fixture_name(&f32, JG_FORM_GENERIC));
    assert_string_equal(events_last(JG_EVENT_WAIT).problem, "20");
    assert_true(events_last(JG_EVENT_WAIT).ms > 0);
    assert_status(fixture_gemm(c, &f16, 1, 0), JG_OK);
    assert_status(fixture_gemm(c, &other, 1, 0), JG_OK); /* has its generic kernel by now */
    assert_status(fixture_gemm(c, &f32, 1, 0), JG_OK);
    const jg_stats s = fixture_stats(c);
    assert_int_equal(s.waits, 2);
    assert_int_equal(s.resident, 2); /* whatever the bound */
    assert_int_equal(fx.logs[JG_LOG_WARNING], 1);
    settle(c); /* the size's own is made in the background all the same */
    assert_int_equal(fixture_stats(c).ready, 1);
    finish(c);
}

/* bf16 is not in the default set: its generic kernels are in the file, but not loaded. */
static void a_type_that_is_not_resident_waits_once(void **state)
{
    (void)state;
    const jg_problem p = square(16, JG_BF16);
    plant_generic(fx.cache, JG_RESIDENT_BF16);
    jg_context *c = open_generic();
    assert_status(jg_record_gain(c, &p, 0.5), JG_OK); /* so that the worker has nothing to say */
    assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
    assert_true(ran_on(&p, JG_FORM_GENERIC));
    assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
    const jg_stats s = fixture_stats(c);
    assert_int_equal(s.waits, 1);
    assert_int_equal(events_of(JG_EVENT_WAIT), 1);
    assert_int_equal(atomic_load(&nvrtc_double->compiles), 0);
    assert_int_equal(fx.logs[JG_LOG_WARNING], 1);
    assert_says(fx.log, "16:bf16 waited ");
    assert_says(fx.log, "options.resident");
    assert_null(strstr(fx.log, "no cache or factory file"));
    finish(c);
}

/* Neither file nor compiler: the call fails with the compiler's text, every time, and costs one compile. */
static void without_any_kernel_the_call_fails(void **state)
{
    (void)state;
    const jg_problem p = square(16, JG_F32);
    jg_options options = background_options();
    options.resident = JG_RESIDENT_NONE;
    jg_context *c = fixture_open_with(options);
    for (int i = 0; i < 3; i++) {
        assert_status(fixture_gemm(c, &p, 1, 0), JG_ERR_COMPILE);
        assert_says(jg_last_error(), "planted refusal");
    }
    assert_int_equal(atomic_load(&nvrtc_double->compiles), 1);
    assert_int_equal(LAUNCHES() + LOADS(), 0);
    assert_int_equal(fixture_stats(c).waits, 0);
    assert_int_equal(fixture_stats(c).problems, 0);
    finish(c);
}

/* --- a deadline --- */

static void a_deadline_is_kept_to(void **state)
{
    (void)state;
    const jg_problem p = square(16, JG_F32), f16 = square(16, JG_F16);
    atomic_store(&nvrtc_double->accepts, 1);
    jg_options options = background_options();
    options.resident = JG_RESIDENT_NONE;
    options.deadline_ms = 299; /* before the first compile 300 are expected */
    jg_context *c = fixture_open_with(options);
    atomic_store(&nvrtc_double->holds, 1);
    for (int i = 0; i < 5; i++) {
        assert_status(fixture_gemm(c, &p, 1, 0), JG_ERR_NOT_READY);
        assert_says(jg_last_error(), fixture_name(&p, JG_FORM_GENERIC));
        assert_says(jg_last_error(), "about 300 ms");
        assert_says(jg_last_error(), "deadline_ms = 299");
    }
    atomic_store(&nvrtc_double->holds, 0);
    settle(c);
    assert_int_equal(LAUNCHES() + LOADS(), 0);
    assert_int_equal(atomic_load(&nvrtc_double->compiles), 1); /* the worker's */
    assert_true(fixture_stats(c).ready >= 1); /* twice, if a call asked again when it was just made */
    assert_int_equal(poll_once(c).loaded, 1);
    assert_int_equal(fixture_stats(c).resident, 1);
    assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
    assert_true(ran_on(&p, JG_FORM_GENERIC));
    assert_int_equal(fixture_stats(c).waits, 0);

    /* Compiles have turned out to be short: now a call waits. */
    assert_true(images_expected_ms(c->images) < 299);
    assert_status(fixture_gemm(c, &f16, 1, 0), JG_OK);
    assert_int_equal(fixture_stats(c).waits, 1);
    finish(c);

    options.deadline_ms = 300; /* not longer than that */
    options.cache_path = scratch_path(fx.folder, "other.db");
    c = fixture_open_with(options);
    assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
    finish(c);
}

/* --- form = SPECIALISED --- */

static void a_specialised_problem_is_ready_later(void **state)
{
    (void)state;
    jg_problem p = square(16, JG_F16);
    p.form = JG_FORM_SPECIALISED;
    atomic_store(&nvrtc_double->accepts, 1);
    jg_context *c = open_generic();
    const uint64_t loads = LOADS();
    assert_status(fixture_gemm(c, &p, 1, 0), JG_ERR_NOT_READY);
    assert_says(jg_last_error(), fixture_name(&p, JG_FORM_AUTO));
    assert_says(jg_last_error(), "jg_poll");
    settle(c); /* one sighting is enough */
    assert_int_equal(LOADS() - loads + LAUNCHES(), 0);
    assert_string_equal(events_text(), "CR");
    const jg_poll_result polled = poll_once(c);
    assert_int_equal(polled.loaded, 1);
    assert_int_equal(polled.swapped, 0); /* it ran on nothing before */
    assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
    assert_true(ran_on(&p, JG_FORM_AUTO));
    finish(c);
}

/* A call for each frame, on a device without NVRTC. What the worker keeps of them does not grow. */
static void asking_again_and_again_costs_no_memory(void **state)
{
    (void)state;
    jg_problem p = square(16, JG_F16);
    p.form = JG_FORM_SPECIALISED;
    plant_generic(fx.cache, COMMON_TYPES);
    jg_options options = background_options();
    options.nvrtc_path = "/nonexistent/libnvrtc.so";
    jg_context *c = fixture_open_with(options);
    for (int i = 0; i < 200; i++) assert_status(fixture_gemm(c, &p, 1, 0), JG_ERR_NOT_READY);
    settle(c);
    int demands = 0;
    pthread_mutex_lock(&c->worker->lock);
    assert_non_null(c->worker->lists[JOB_DEMANDED]);
    for (const demand *d = c->worker->lists[JOB_DEMANDED]->demands; d; d = d->next) demands++;
    pthread_mutex_unlock(&c->worker->lock);
    assert_int_equal(demands, 1);
    assert_int_equal(fx.logs[JG_LOG_WARNING], 1);
    finish(c);
}

/* --- a worker that cannot start --- */

static int refuse_thread(pthread_t *thread, void *(*body)(void *), void *argument)
{
    (void)thread, (void)body, (void)argument;
    return EAGAIN;
}

static void without_a_worker_generic_kernels_serve(void **state)
{
    (void)state;
    jg_problem p = square(16, JG_F32), own = square(24, JG_F32);
    own.form = JG_FORM_SPECIALISED;
    int (*const spawn)(pthread_t *, void *(*)(void *), void *) = worker_spawn;
    worker_spawn = refuse_thread;
    jg_context *c = open_generic();
    for (int i = 0; i < 8; i++) assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
    assert_true(ran_on(&p, JG_FORM_GENERIC));
    const jg_stats s = fixture_stats(c);
    assert_int_equal(s.launches_generic, 8);
    assert_int_equal(s.dropped, 4); /* at the uses 1, 2, 4 and 8 */
    assert_int_equal(events_of(JG_EVENT_DROP), 4);
    assert_string_equal(events_last(JG_EVENT_DROP).problem, "16");
    assert_int_equal(fx.logs[JG_LOG_WARNING], 1);
    assert_says(fx.log, "cannot start the worker thread");
    assert_status(fixture_gemm(c, &own, 1, 0), JG_ERR_NOT_READY);
    assert_int_equal(events_of(JG_EVENT_DROP), 5);
    settle(c);
    worker_spawn = spawn;
    finish(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BACKGROUND_TEST(the_first_sighting_finds_what_is_in_the_files),
        BACKGROUND_TEST(the_second_sighting_compiles),
        BACKGROUND_TEST(a_refused_source_leaves_the_generic_kernel),
        BACKGROUND_TEST(what_is_planned_generic_is_no_fallback),
        BACKGROUND_TEST(plans_go_over),
        BACKGROUND_TEST(plans_tell_the_worker),
        BACKGROUND_TEST(a_missing_generic_kernel_is_waited_for),
        BACKGROUND_TEST(a_type_that_is_not_resident_waits_once),
        BACKGROUND_TEST(without_any_kernel_the_call_fails),
        BACKGROUND_TEST(a_deadline_is_kept_to),
        BACKGROUND_TEST(a_specialised_problem_is_ready_later),
        BACKGROUND_TEST(asking_again_and_again_costs_no_memory),
        BACKGROUND_TEST(without_a_worker_generic_kernels_serve),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
