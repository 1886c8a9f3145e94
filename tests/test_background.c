/* The policies of a call, of the context and its own, on the fake driver: what a miss launches, what it tells the worker, when it
 * waits, and how a problem and a plan go over to their own kernel. */
#include "background_fixture.h"

static jg_context *open_generic(void)
{
    plant_generic(fx.cache, COMMON_TYPES);
    jg_context *c = background_open();
    fx.logs[JG_LOG_WARNING] = 0;
    return c;
}

/* --- the way of a size --- */

static void a_cached_kernel_is_ready_after_the_first_sighting(void **state)
{
    (void)state;
    const jg_problem p = square(16, JG_F16);
    fixture_plant(&p, JG_FORM_AUTO);
    jg_context *c = open_generic();
    const uint64_t loads = (uint64_t)LOADS();
    events_forget();
    assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
    assert_true(ran_on(&p, JG_FORM_GENERIC));
    settle(c);
    assert_int_equal(LOADS(), loads); /* bytes only */
    assert_int_equal(fixture_stats(c).ready, 1);
    assert_string_equal(events_text(), "GR");
    const jg_poll_result r = poll_once(c);
    assert_int_equal(r.loaded, 1);
    assert_int_equal(r.swapped, 1);
    assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
    assert_true(ran_on(&p, JG_FORM_SPECIALISED));
    assert_string_equal(events_text(), "GRSH");
    assert_string_equal(events_last(JG_EVENT_SWAP).kernel, fixture_name(&p, JG_FORM_SPECIALISED));
    assert_string_equal(events_last(JG_EVENT_SWAP).problem, "16:f16");
    const jg_stats s = fixture_stats(c);
    assert_int_equal(s.launches_generic, 1);
    assert_int_equal(s.launches_own, 1);
    assert_int_equal(s.swaps, 1);
    assert_int_equal(s.waits + s.compiles, 0);
    assert_status(jg_close(c), JG_OK);
}

static void a_kernel_is_compiled_from_the_second_sighting_on(void **state)
{
    (void)state;
    const jg_problem p = square(17, JG_F32);
    jg_context *c = open_generic();
    atomic_store(&nvrtc_double->accepts, 1);
    assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
    settle(c);
    assert_int_equal(fixture_stats(c).compiles, 0);
    assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
    settle(c);
    assert_int_equal(fixture_stats(c).compiles, 1);
    assert_int_equal(atomic_load(&nvrtc_double->compiles), 1);
    for (int i = 0; i < 5; i++) assert_status(fixture_gemm(c, &p, 1, 0), JG_OK); /* until it is polled, and not again */
    settle(c);
    assert_int_equal(atomic_load(&nvrtc_double->compiles), 1);
    assert_int_equal(poll_once(c).swapped, 1);
    assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
    assert_true(ran_on(&p, JG_FORM_SPECIALISED));
    assert_status(jg_close(c), JG_OK);
}

static void a_refused_kernel_is_said_once_and_generic_serves(void **state)
{
    (void)state;
    const jg_problem p = square(18, JG_F32);
    jg_context *c = open_generic();
    for (int i = 0; i < 9; i++) {
        assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
        settle(c);
    }
    const jg_stats s = fixture_stats(c);
    assert_int_equal(s.launches_generic, 9);
    assert_int_equal(s.compile_failures, 1);
    assert_int_equal(fx.logs[JG_LOG_WARNING], 1);
    assert_says(fx.log, "generic kernels go on serving");
    assert_int_equal(events_of(JG_EVENT_FAIL), 1);
    assert_status(jg_close(c), JG_OK);
}

static void no_nvrtc_is_said_and_generic_serves(void **state)
{
    (void)state;
    const jg_problem p = square(19, JG_F16);
    plant_generic(fx.cache, COMMON_TYPES);
    jg_options options = background_options();
    options.nvrtc_path = "/nonexistent/libnvrtc.so";
    jg_context *c = fixture_open_with(options);
    for (int i = 0; i < 9; i++) {
        assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
        settle(c);
    }
    assert_int_equal(fixture_stats(c).launches_generic, 9);
    assert_int_equal(fx.logs[JG_LOG_WARNING], 1);
    assert_status(jg_close(c), JG_OK);
}

static void two_problems_share_a_kernel_and_both_go_over(void **state)
{
    (void)state;
    jg_problem two = square(20, JG_F32), three = two;
    two.batch = 2;
    three.batch = 3;
    two.stride_a = two.stride_b = two.stride_c = three.stride_a = three.stride_b = three.stride_c = 400;
    jg_context *c = open_generic();
    atomic_store(&nvrtc_double->accepts, 1);
    assert_status(fixture_gemm(c, &two, 1, 0), JG_OK);
    assert_status(fixture_gemm(c, &three, 1, 0), JG_OK);
    settle(c);
    assert_int_equal(fixture_stats(c).compiles, 1); /* one use of each is two of the kernel */
    const jg_poll_result r = poll_once(c);
    assert_int_equal(r.loaded, 1);
    assert_int_equal(r.swapped, 2);
    assert_status(jg_close(c), JG_OK);
}

/* --- plans --- */

static void plans_go_over_too(void **state)
{
    (void)state;
    const jg_problem p = square(24, JG_F16);
    jg_plan *pl;
    jg_plan_details details;
    fixture_plant(&p, JG_FORM_AUTO);
    jg_context *c = open_generic();
    assert_status(jg_plan_create(c, &p, &pl), JG_OK);
    assert_status(jg_plan_info(pl, &details), JG_OK);
    assert_int_equal(details.form, JG_FORM_GENERIC);
    assert_status(fixture_run_plan(pl, &p), JG_OK);
    settle(c);
    assert_int_equal(poll_once(c).swapped, 1);
    assert_status(jg_plan_info(pl, &details), JG_OK);
    assert_int_equal(details.form, JG_FORM_SPECIALISED);
    assert_string_equal(details.kernel, fixture_name(&p, JG_FORM_SPECIALISED));
    assert_status(fixture_run_plan(pl, &p), JG_OK);
    assert_true(ran_on(&p, JG_FORM_SPECIALISED));
    jg_plan_destroy(pl);
    assert_status(jg_close(c), JG_OK);
}

/* The generic kernel reads these operands one by one; the own kernel, which takes its place, does not: so the plan holds its
 * caller to the promise from the start. */
static void a_plan_needs_what_either_kernel_needs(void **state)
{
    (void)state;
    jg_problem p = square(24, JG_F16);
    p.ldb = 25; /* generic: gathered; own: A in whole vectors */
    jg_plan *pl;
    jg_context *c = open_generic();
    static _Alignas(16) unsigned short a[32 * 32], b[32 * 32], out[32 * 32];
    assert_status(jg_plan_create(c, &p, &pl), JG_OK);
    assert_status(jg_plan_run(pl, &(jg_operands){.a = a + 1, .b = b, .c = out}), JG_ERR_MISALIGNED);
    assert_status(jg_plan_run(pl, &(jg_operands){.a = a, .b = b, .c = out}), JG_OK);
    jg_plan_destroy(pl);
    assert_status(jg_close(c), JG_OK);
}

/* --- nothing is loaded that could serve --- */

static void without_files_the_first_call_waits_once(void **state)
{
    (void)state;
    jg_options options = background_options();
    options.log_level = JG_LOG_WARNING; /* the worker, which makes the generic set, has its say otherwise */
    atomic_store(&nvrtc_double->accepts, 1);
    jg_context *c = fixture_open_with(options);
    const jg_problem first = square(40, JG_BF16), second = square(41, JG_BF16);
    assert_status(fixture_gemm(c, &first, 1, 0), JG_OK);
    assert_true(ran_on(&first, JG_FORM_GENERIC));
    jg_stats s = fixture_stats(c);
    assert_int_equal(s.waits, 1);
    assert_int_equal(events_of(JG_EVENT_WAIT), 1);
    assert_int_equal(fx.logs[JG_LOG_WARNING], 1);
    assert_says(fx.log, "waited");
    assert_says(fx.log, fixture_name(&first, JG_FORM_GENERIC));
    assert_status(fixture_gemm(c, &second, 1, 0), JG_OK); /* the same generic kernel, or another: it is said once all the same */
    s = fixture_stats(c);
    assert_true(s.waits <= 2);
    assert_int_equal(fx.logs[JG_LOG_WARNING], 1);
    assert_status(jg_close(c), JG_OK);
}

static void a_deadline_is_kept(void **state)
{
    (void)state;
    jg_options options = background_options();
    options.deadline_ms = 3;
    atomic_store(&nvrtc_double->accepts, 1);
    atomic_store(&nvrtc_double->holds, 1); /* so that no compile has shown yet how fast it is */
    jg_context *c = fixture_open_with(options);
    const jg_problem p = square(42, JG_BF16);
    assert_status(fixture_gemm(c, &p, 1, 0), JG_ERR_NOT_READY);
    assert_says(jg_last_error(), "deadline_ms = 3");
    assert_int_equal(LAUNCHES(), 0);
    assert_int_equal(fixture_stats(c).waits, 0);
    atomic_store(&nvrtc_double->holds, 0);
    settle(c);
    assert_true(poll_once(c).loaded >= 1);
    assert_status(fixture_gemm(c, &p, 1, 0), JG_OK); /* the worker has made the generic kernel */
    assert_true(ran_on(&p, JG_FORM_GENERIC));
    assert_int_equal(fixture_stats(c).waits, 0);
    assert_status(jg_close(c), JG_OK);
}

static void a_generous_deadline_waits(void **state)
{
    (void)state;
    jg_options options = background_options();
    options.deadline_ms = 1e6;
    jg_context *c = fixture_open_with(options);
    const jg_problem p = square(43, JG_BF16);
    atomic_store(&nvrtc_double->accepts, 1);
    assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
    assert_int_equal(fixture_stats(c).waits, 1);
    assert_status(jg_close(c), JG_OK);
}

static void a_form_that_is_insisted_on_comes_later(void **state)
{
    (void)state;
    jg_problem p = square(44, JG_F32);
    p.form = JG_FORM_SPECIALISED;
    jg_context *c = open_generic();
    atomic_store(&nvrtc_double->accepts, 1);
    assert_status(fixture_gemm(c, &p, 1, 0), JG_ERR_NOT_READY);
    assert_says(jg_last_error(), fixture_name(&p, JG_FORM_SPECIALISED));
    settle(c);
    assert_int_equal(poll_once(c).loaded, 1);
    assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
    assert_true(ran_on(&p, JG_FORM_SPECIALISED));
    assert_int_equal(fixture_stats(c).waits, 0);
    assert_status(jg_close(c), JG_OK);
}

/* --- policies of calls --- */

static void a_waiting_call_improves_on_a_fallback_once(void **state)
{
    (void)state;
    jg_problem p = square(50, JG_F32);
    jg_context *c = open_generic();
    assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
    p.compile = JG_COMPILE_WAIT;
    assert_status(fixture_gemm(c, &p, 1, 0), JG_ERR_COMPILE); /* NVRTC refuses, and that is what a waiting call is told */
    const int compiles = atomic_load(&nvrtc_double->compiles);
    assert_status(fixture_gemm(c, &p, 1, 0), JG_OK); /* it has tried; the fallback serves */
    assert_true(ran_on(&p, JG_FORM_GENERIC));
    settle(c);

    jg_problem q = square(51, JG_F32);
    assert_status(fixture_gemm(c, &q, 1, 0), JG_OK);
    atomic_store(&nvrtc_double->accepts, 1);
    q.compile = JG_COMPILE_WAIT;
    assert_status(fixture_gemm(c, &q, 1, 0), JG_OK);
    assert_true(ran_on(&q, JG_FORM_SPECIALISED));
    assert_int_equal(fixture_stats(c).waits, 1);
    assert_true(atomic_load(&nvrtc_double->compiles) > compiles);
    q.compile = JG_COMPILE_BACKGROUND;
    assert_status(fixture_gemm(c, &q, 1, 0), JG_OK);
    assert_true(ran_on(&q, JG_FORM_SPECIALISED));
    assert_status(jg_close(c), JG_OK);
}

static void a_call_may_be_stricter_than_its_context(void **state)
{
    (void)state;
    jg_options options = background_options();
    options.compile = JG_COMPILE_WAIT;
    jg_problem p = square(52, JG_F32);
    jg_context *c = fixture_open_with(options);
    atomic_store(&nvrtc_double->accepts, 1);
    p.compile = JG_COMPILE_NEVER;
    assert_status(fixture_gemm(c, &p, 1, 0), JG_ERR_NOT_READY);
    p.compile = JG_COMPILE_DEFAULT;
    assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
    p.compile = JG_COMPILE_NEVER;
    assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
    assert_status(jg_close(c), JG_OK);
}

static void a_sealed_context_ignores_what_calls_ask_for(void **state)
{
    (void)state;
    plant_generic(fx.cache, COMMON_TYPES);
    jg_options options = background_options();
    options.compile = JG_COMPILE_NEVER;
    jg_context *c = fixture_open_with(options);
    atomic_store(&nvrtc_double->accepts, 1);
    jg_problem p = square(53, JG_F32);
    static const jg_compile asked[] = {JG_COMPILE_WAIT, JG_COMPILE_BACKGROUND, JG_COMPILE_DEFAULT};
    for (int i = 0; i < 6; i++) {
        p.compile = asked[i % 3];
        assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
        assert_true(ran_on(&p, JG_FORM_GENERIC));
    }
    settle(c);
    assert_int_equal(atomic_load(&nvrtc_double->compiles), 0);
    p.compile = (jg_compile)4;
    assert_status(fixture_gemm(c, &p, 1, 0), JG_ERR_VALUE);
    assert_says(jg_last_error(), "compile = 4");
    assert_status(jg_close(c), JG_OK);
}

/* --- captures, as far as the library's own decisions go --- */

static jg_status call_on(jg_context *c, const jg_problem *p, CUstream stream)
{
    static _Alignas(16) float a[64 * 64], b[64 * 64], out[64 * 64];
    return jg_gemm(c, p, &(jg_operands){.a = a, .b = b, .c = out, .stream = stream});
}

static void a_captured_call_takes_only_what_is_loaded(void **state)
{
    (void)state;
    const CUstream stream = (CUstream)0x70;
    const jg_problem p = square(60, JG_F32), missing = square(60, JG_BF16);
    jg_problem waiting = square(61, JG_F32);
    waiting.compile = JG_COMPILE_WAIT;
    jg_context *c = open_generic();
    atomic_store(&nvrtc_double->accepts, 1);
    const uint64_t loads = (uint64_t)LOADS();
    fx.fake->set_capturing(stream, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    assert_status(call_on(c, &p, stream), JG_OK);
    assert_status(call_on(c, &waiting, stream), JG_OK);
    assert_true(ran_on(&waiting, JG_FORM_GENERIC));
    const uint64_t launches = (uint64_t)LAUNCHES();
    assert_status(call_on(c, &missing, stream), JG_ERR_NOT_READY);
    assert_says(jg_last_error(), "captured");
    assert_int_equal(LAUNCHES(), launches);
    assert_int_equal(LOADS(), loads);
    assert_int_equal(fixture_stats(c).captured, 0); /* generic kernels stay anyway */
    fx.fake->set_capturing(stream, CU_STREAM_CAPTURE_STATUS_NONE);
    assert_status(call_on(c, &waiting, stream), JG_OK);
    assert_true(ran_on(&waiting, JG_FORM_SPECIALISED));
    assert_status(jg_close(c), JG_OK);
}

static void only_streams_that_can_be_captured_are_asked(void **state)
{
    (void)state;
    const jg_problem p = square(62, JG_F32);
    fixture_plant(&p, JG_FORM_AUTO);
    jg_context *c = open_generic();
    assert_status(call_on(c, &p, NULL), JG_OK);
    settle(c);
    poll_once(c);
    const uint64_t asked = (uint64_t)fx.fake->calls("cuStreamIsCapturing");
    assert_status(call_on(c, &p, NULL), JG_OK);
    assert_int_equal(fx.fake->calls("cuStreamIsCapturing"), asked);
    fx.fake->set_capturing((CUstream)0x71, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    assert_status(call_on(c, &p, (CUstream)0x71), JG_OK);
    assert_int_equal(fx.fake->calls("cuStreamIsCapturing"), asked + 1);
    assert_int_equal(fixture_stats(c).captured, 1);
    assert_status(call_on(c, &p, (CUstream)0x71), JG_OK); /* it stays for good: no need to ask again */
    assert_int_equal(fx.fake->calls("cuStreamIsCapturing"), asked + 1);
    assert_int_equal(fixture_stats(c).captured, 1);
    assert_status(jg_close(c), JG_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BACKGROUND_TEST(a_cached_kernel_is_ready_after_the_first_sighting),
        BACKGROUND_TEST(a_kernel_is_compiled_from_the_second_sighting_on),
        BACKGROUND_TEST(a_refused_kernel_is_said_once_and_generic_serves),
        BACKGROUND_TEST(no_nvrtc_is_said_and_generic_serves),
        BACKGROUND_TEST(two_problems_share_a_kernel_and_both_go_over),
        BACKGROUND_TEST(plans_go_over_too),
        BACKGROUND_TEST(a_plan_needs_what_either_kernel_needs),
        BACKGROUND_TEST(without_files_the_first_call_waits_once),
        BACKGROUND_TEST(a_deadline_is_kept),
        BACKGROUND_TEST(a_generous_deadline_waits),
        BACKGROUND_TEST(a_form_that_is_insisted_on_comes_later),
        BACKGROUND_TEST(a_waiting_call_improves_on_a_fallback_once),
        BACKGROUND_TEST(a_call_may_be_stricter_than_its_context),
        BACKGROUND_TEST(a_sealed_context_ignores_what_calls_ask_for),
        BACKGROUND_TEST(a_captured_call_takes_only_what_is_loaded),
        BACKGROUND_TEST(only_streams_that_can_be_captured_are_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
