/* Products in CUDA graphs: what calls do while their stream is being captured, that the graphs then compute what was asked,
 * and that the kernels they hold stay loaded. On the software GPU, which refuses what a capture forbids
 * and finds launches of unloaded kernels; what a captured call may not do fails besides (FORBIDDEN). Loading
 * and unloading meanwhile: test_capture_kernels.c. */
#include "warm_capture.h"

enum { REPLAYS = 3 };

/* Problems whose own kernels are in the cache file. */
enum { SEEN_F32, SEEN_F16, SEEN_PLAN, SEEN };
static const jg_problem seen[SEEN] = {
    {.m = 40, .n = 24, .k = 32},
    {.m = 24, .n = 40, .k = 16, .type_a = JG_F16},
    {.m = 17, .n = 33, .k = 20},
};

static jg_problem unseen(int i, jg_type type)
{
    return (jg_problem){.m = 23 + i, .n = 37, .k = 19 + i, .type_a = type};
}

static int make_warm_cache(void **state)
{
    (void)state;
    warm_setup(JG_RESIDENT_F32 | JG_RESIDENT_F16, seen, SEEN);
    return 0;
}

/* --- what a captured call does --- */

enum { BY_OWN = 3, BY_GENERIC = 2, PRODUCTS = 6 };

/* Two that hit and two that miss by jg_gemm, then two plans: the first of a seen problem. */
static void make_products(jg_context *c, int round, product *x, jg_plan **plans)
{
    const jg_problem misses[] = {unseen(2 * round, JG_F32), unseen(2 * round + 1, JG_F16)}, planned = unseen(30, JG_F32);
    product_make(&x[0], c, &seen[SEEN_F32], 1);
    product_make(&x[1], c, &seen[SEEN_F16], 2);
    product_make(&x[2], c, &misses[0], 3);
    product_make(&x[3], c, &misses[1], 4);
    product_make(&x[4], c, &seen[SEEN_PLAN], 5);
    product_make(&x[5], c, &planned, 6);
    x[1].alpha = -2;
    x[2].alpha = 3;
    x[2].beta = -1;
    x[4].beta = 2;
    for (int i = 0; i < 2; i++) assert_status(jg_plan_create(c, &x[4 + i].ref.problem, &plans[i]), JG_OK);
}

/* Scalars are the caller's again when the call is back. */
static void record_products(product *x, jg_plan *const *plans, CUstream stream)
{
    for (int i = 0; i < PRODUCTS; i++) {
        float alpha = x[i].alpha, beta = x[i].beta;
        jg_operands data = product_operands(&x[i], stream);
        data.alpha = &alpha;
        data.beta = &beta;
        assert_status(i < 4 ? jg_gemm(x[i].context, &x[i].ref.problem, &data) : jg_plan_run(plans[i - 4], &data), JG_OK);
        alpha = beta = 77;
    }
}

/* One capture, what it counts, and the graph's results with several inputs. */
static void capture_products(jg_context *c, CUstream stream, CUstreamCaptureMode mode, int round, int own_plan)
{
    product x[PRODUCTS];
    jg_plan *plans[2];
    make_products(c, round, x, plans);
    const jg_stats before = warm_stats(c);
    begin(stream, mode);
    record_products(x, plans, stream);
    assert_status(jg_wait_idle(c, 0), JG_OK);
    const jg_stats after = warm_stats(c);
    CUgraphExec exec = end(stream, PRODUCTS);
    assert_int_equal(after.launches_own - before.launches_own, BY_OWN + own_plan);
    assert_int_equal(after.launches_generic - before.launches_generic, BY_GENERIC + !own_plan);
    assert_int_equal(after.captured, BY_OWN + own_plan);
    assert_int_equal(after.waits, before.waits);
    assert_int_equal(after.kernels, before.kernels);
    for (int i = 0; i < PRODUCTS; i++) product_check_untouched(&x[i]);
    for (int r = 0; r < REPLAYS; r++) {
        for (int i = 0; i < PRODUCTS; i++) product_refill(&x[i], (uint64_t)(100 + 10 * r + i));
        replay(exec, stream);
        for (int i = 0; i < PRODUCTS; i++) product_check(&x[i]);
    }
    assert_int_equal(warm_stats(c).launches_own, after.launches_own); /* a replay is no call */
    WORKS(gpu.destroy_exec(exec));
    for (int i = 0; i < 2; i++) jg_plan_destroy(plans[i]);
    for (int i = 0; i < PRODUCTS; i++) product_free(&x[i]);
}

static void capture_in_all_modes(jg_compile policy)
{
    jg_context *c = warm_open((jg_options){.compile = policy, .resident = JG_RESIDENT_F32 | JG_RESIDENT_F16,
                                           .prewarm_problems = seen, .prewarm_count = SEEN});
    CUstream stream = create_stream();
    for (int i = 0; i < MODES; i++) capture_products(c, stream, modes[i], i, policy == JG_COMPILE_WAIT);
    WORKS(gpu.destroy_stream(stream));
    assert_status(jg_close(c), JG_OK);
}

static void background_calls_are_captured(void **state)
{
    (void)state;
    capture_in_all_modes(JG_COMPILE_BACKGROUND);
}

static void waiting_calls_are_captured(void **state)
{
    (void)state;
    capture_in_all_modes(JG_COMPILE_WAIT);
}

static void sealed_calls_are_captured(void **state)
{
    (void)state;
    capture_in_all_modes(JG_COMPILE_NEVER);
}

/* What a captured call has settled for is made good by the next one that may wait; the graph goes on with what it has. */
static void a_waiting_call_makes_up_for_a_captured_one(void **state)
{
    (void)state;
    jg_context *c = warm_open((jg_options){.compile = JG_COMPILE_WAIT, .resident = JG_RESIDENT_F32});
    CUstream stream = create_stream();
    const jg_problem p = unseen(40, JG_F32);
    product x;
    product_make(&x, c, &p, 1);
    CUgraphExec exec = capture_one(stream, CU_STREAM_CAPTURE_MODE_GLOBAL, &x, NULL);
    WORKS(gpu.destroy_exec(exec));
    exec = capture_one(stream, CU_STREAM_CAPTURE_MODE_GLOBAL, &x, NULL); /* not the second one either */
    assert_int_equal(warm_stats(c).launches_generic, 2);
    assert_int_equal(warm_stats(c).waits, 0);
    assert_int_equal(warm_stats(c).compiles, 0);
    assert_status(product_run(&x, stream), JG_OK);
    product_check(&x);
    const jg_stats s = warm_stats(c);
    assert_int_equal(s.launches_own, 1);
    assert_int_equal(s.waits, 1);
    assert_int_equal(s.swaps, 1);
    assert_int_equal(s.captured, 0); /* the generic kernel stays anyway */
    check_replay(exec, stream, &x, 2);
    WORKS(gpu.destroy_exec(exec));
    product_free(&x);
    WORKS(gpu.destroy_stream(stream));
    assert_status(jg_close(c), JG_OK);
}

/* --- where nothing fits --- */

/* Neither is loaded: a type without resident kernels, and a form that no generic kernel can stand in for. */
static const jg_problem unfit[] = {
    {.m = 24, .n = 24, .k = 16, .type_a = JG_BF16},
    {.m = 25, .n = 24, .k = 16, .form = JG_FORM_SPECIALISED},
};

static void refuse_in_capture(const product *x, CUstream stream, jg_compile policy)
{
    jg_problem p = x->ref.problem;
    const jg_operands data = product_operands(x, stream);
    p.compile = policy;
    assert_status(jg_gemm(x->context, &p, &data), JG_ERR_NOT_READY);
    assert_non_null(strstr(jg_last_error(), "captured"));
    assert_int_equal(status_of(stream), CU_STREAM_CAPTURE_STATUS_ACTIVE);
}

/* The capture stays valid, and holds the launches before and after the call that was refused. */
static void refuse_amid_others(const product *x, product *other, CUstream stream, CUstreamCaptureMode mode, jg_compile policy)
{
    const jg_stats before = warm_stats(x->context);
    begin(stream, mode);
    assert_status(product_run(other, stream), JG_OK);
    refuse_in_capture(x, stream, policy);
    assert_status(product_run(other, stream), JG_OK);
    CUgraphExec exec = end(stream, 2);
    const jg_stats after = warm_stats(x->context);
    assert_int_equal(after.launches_own + after.launches_generic, before.launches_own + before.launches_generic + 2);
    assert_int_equal(after.waits, before.waits);
    product_check_untouched(x);
    check_replay(exec, stream, other, 8);
    WORKS(gpu.destroy_exec(exec));
}

/* Background mode does not wait for a form that was asked for: the worker brings it. */
static void call_until_polled(jg_context *c, const product *x, CUstream stream)
{
    assert_status(jg_wait_idle(c, 0), JG_OK);
    warm_poll(c); /* what earlier calls have asked for */
    assert_status(product_run(x, stream), JG_ERR_NOT_READY);
    assert_status(jg_wait_idle(c, 0), JG_OK);
    assert_int_equal(warm_poll(c).loaded, 1);
}

/* What the same call comes to when the capture is over; then it can be captured. */
static void call_afterwards(jg_context *c, product *x, CUstream stream, jg_compile policy)
{
    const int is_polled = policy == JG_COMPILE_BACKGROUND && x->ref.problem.form == JG_FORM_SPECIALISED;
    if (policy == JG_COMPILE_NEVER) {
        assert_status(product_run(x, stream), JG_ERR_NOT_READY);
        return;
    }
    if (is_polled) call_until_polled(c, x, stream);
    const uint64_t waits = warm_stats(c).waits;
    for (int i = 0; i < 2; i++) assert_status(product_run(x, stream), JG_OK);
    assert_int_equal(warm_stats(c).waits, waits + !is_polled); /* once */
    product_check(x);
    CUgraphExec exec = capture_one(stream, CU_STREAM_CAPTURE_MODE_GLOBAL, x, NULL);
    check_replay(exec, stream, x, 9);
    WORKS(gpu.destroy_exec(exec));
}

static void refuse_where_nothing_fits(jg_compile policy)
{
    jg_context *c = warm_open((jg_options){.compile = policy, .resident = JG_RESIDENT_F32});
    CUstream stream = create_stream();
    product x[2], other;
    product_make(&other, c, &seen[SEEN_F32], 3);
    for (int i = 0; i < 2; i++) {
        product_make(&x[i], c, &unfit[i], 4);
        for (int m = 0; m < MODES; m++) refuse_amid_others(&x[i], &other, stream, modes[m], JG_COMPILE_DEFAULT);
        refuse_amid_others(&x[i], &other, stream, modes[0], JG_COMPILE_WAIT); /* of this call alone */
        refuse_amid_others(&x[i], &other, stream, modes[0], JG_COMPILE_NEVER);
        call_afterwards(c, &x[i], stream, policy);
    }
    for (int i = 0; i < 2; i++) product_free(&x[i]);
    product_free(&other);
    WORKS(gpu.destroy_stream(stream));
    assert_status(jg_close(c), JG_OK);
}

static void background_calls_are_refused_where_nothing_fits(void **state)
{
    (void)state;
    refuse_where_nothing_fits(JG_COMPILE_BACKGROUND);
}

static void waiting_calls_are_refused_where_nothing_fits(void **state)
{
    (void)state;
    refuse_where_nothing_fits(JG_COMPILE_WAIT);
}

static void sealed_calls_are_refused_where_nothing_fits(void **state)
{
    (void)state;
    refuse_where_nothing_fits(JG_COMPILE_NEVER);
}

/* A capture that somebody else has broken: the library says so, and goes on afterwards. */
static void an_invalid_capture_is_an_error_of_the_launch(void **state)
{
    (void)state;
    jg_context *c = warm_open((jg_options){.prewarm_problems = seen, .prewarm_count = 1});
    CUstream stream = create_stream();
    CUgraph graph;
    product x;
    product_make(&x, c, &seen[SEEN_F32], 1);
    WORKS(gpu.begin_capture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    assert_status(jg_synchronize(c, stream), JG_ERR_DEVICE);
    assert_status(product_run(&x, stream), JG_ERR_LAUNCH);
    assert_non_null(strstr(jg_last_error(), "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"));
    assert_int_equal(gpu.end_capture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    assert_int_equal(warm_stats(c).launches_own, 0);
    assert_status(product_run(&x, stream), JG_OK);
    product_check(&x);
    product_free(&x);
    WORKS(gpu.destroy_stream(stream));
    assert_status(jg_close(c), JG_OK);
}

/* --- streams that are not captured, and those that join --- */

/* While a stream is captured, products in others run at once: the legacy one, the thread's own, and one more. */
static void other_streams_go_on(void **state)
{
    (void)state;
    jg_context *c = warm_open((jg_options){.prewarm_problems = seen, .prewarm_count = 1});
    CUstream captured = create_stream(), another = create_stream();
    const CUstream others[] = {NULL, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD, another};
    const jg_problem miss = unseen(50, JG_F32);
    product x, y[4];
    product_make(&x, c, &seen[SEEN_F32], 1);
    for (int i = 0; i < 4; i++) product_make(&y[i], c, i & 1 ? &miss : &seen[SEEN_F32], 2);
    begin(captured, CU_STREAM_CAPTURE_MODE_GLOBAL);
    assert_status(product_run(&x, captured), JG_OK);
    for (int i = 0; i < 4; i++) assert_status(product_run(&y[i], others[i]), JG_OK);
    CUgraphExec exec = end(captured, 1);
    product_check_untouched(&x);
    for (int i = 0; i < 4; i++) product_check(&y[i]);
    assert_int_equal(warm_stats(c).captured, 1);
    check_replay(exec, captured, &x, 3);
    WORKS(gpu.destroy_exec(exec));
    product_free(&x);
    for (int i = 0; i < 4; i++) product_free(&y[i]);
    WORKS(gpu.destroy_stream(captured));
    WORKS(gpu.destroy_stream(another));
    assert_status(jg_close(c), JG_OK);
}

/* The per-thread default stream. The software GPU does not capture it; where it is captured, a product is. */
static void the_thread_s_own_stream(void **state)
{
    (void)state;
    jg_context *c = warm_open((jg_options){.prewarm_problems = seen, .prewarm_count = 1});
    product x;
    product_make(&x, c, &seen[SEEN_F32], 1);
    if (gpu.begin_capture(CU_STREAM_PER_THREAD, CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_SUCCESS) {
        assert_status(product_run(&x, CU_STREAM_PER_THREAD), JG_OK);
        CUgraphExec exec = end(CU_STREAM_PER_THREAD, 1);
        check_replay(exec, CU_STREAM_PER_THREAD, &x, 2);
        WORKS(gpu.destroy_exec(exec));
    } else {
        assert_status(product_run(&x, CU_STREAM_PER_THREAD), JG_OK);
        product_check(&x);
        assert_int_equal(warm_stats(c).captured, 0);
    }
    product_free(&x);
    assert_status(jg_close(c), JG_OK);
}

/* A stream that joins the capture by an event is captured too. */
static void a_stream_that_joins_is_captured(void **state)
{
    (void)state;
    jg_context *c = warm_open((jg_options){.compile = JG_COMPILE_WAIT, .resident = JG_RESIDENT_F16, .prewarm_problems = seen,
                                           .prewarm_count = 1});
    CUstream first = create_stream(), second = create_stream();
    CUevent fork, joined;
    product x[2];
    const jg_problem problems[] = {seen[SEEN_F32], unseen(60, JG_F16)};
    WORKS(gpu.create_event(&fork, CU_EVENT_DISABLE_TIMING));
    WORKS(gpu.create_event(&joined, CU_EVENT_DISABLE_TIMING));
    for (int i = 0; i < 2; i++) product_make(&x[i], c, &problems[i], 1);
    begin(first, CU_STREAM_CAPTURE_MODE_GLOBAL);
    WORKS(gpu.record_event(fork, first));
    WORKS(gpu.wait_event(second, fork, 0));
    for (int i = 0; i < 2; i++) assert_status(product_run(&x[i], second), JG_OK); /* WAIT acts as NEVER here as well */
    WORKS(gpu.record_event(joined, second));
    WORKS(gpu.wait_event(first, joined, 0));
    CUgraphExec exec = end(first, 2);
    assert_int_equal(warm_stats(c).captured, 1);
    assert_int_equal(warm_stats(c).launches_generic, 1);
    for (int i = 0; i < 2; i++) product_check_untouched(&x[i]);
    for (int i = 0; i < 2; i++) check_replay(exec, first, &x[i], 2);
    WORKS(gpu.destroy_exec(exec));
    for (int i = 0; i < 2; i++) product_free(&x[i]);
    WORKS(gpu.destroy_event(fork));
    WORKS(gpu.destroy_event(joined));
    WORKS(gpu.destroy_stream(first));
    WORKS(gpu.destroy_stream(second));
    assert_status(jg_close(c), JG_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WARM_TEST(background_calls_are_captured),
        WARM_TEST(waiting_calls_are_captured),
        WARM_TEST(sealed_calls_are_captured),
        WARM_TEST(a_waiting_call_makes_up_for_a_captured_one),
        WARM_TEST(background_calls_are_refused_where_nothing_fits),
        WARM_TEST(waiting_calls_are_refused_where_nothing_fits),
        WARM_TEST(sealed_calls_are_refused_where_nothing_fits),
        WARM_TEST(an_invalid_capture_is_an_error_of_the_launch),
        WARM_TEST(other_streams_go_on),
        WARM_TEST(the_thread_s_own_stream),
        WARM_TEST(a_stream_that_joins_is_captured),
    };
    return cmocka_run_group_tests(tests, make_warm_cache, warm_teardown);
}
