/* Kernels that CUDA graphs hold stay loaded, whatever becomes of the problem, the plan or the memory bounds; and kernels come and
 * go while a capture is under way without breaking it. On the software GPU: see test_capture.c. */
#include "warm_capture.h"

#include <pthread.h>

/* Problems whose own kernels are in the cache file. */
enum { SEEN = 6 };
static const jg_problem seen[SEEN] = {
    {.m = 40, .n = 24, .k = 32}, {.m = 17, .n = 33, .k = 20}, {.m = 18, .n = 32, .k = 24},
    {.m = 19, .n = 28, .k = 28}, {.m = 20, .n = 36, .k = 12}, {.m = 21, .n = 20, .k = 36},
};

static const jg_poll_limits no_limits = {.max_kernels = 1000, .max_ms = 1e6};

static size_t residents; /* kernels of the generic set */

static int make_warm_cache(void **state)
{
    (void)state;
    warm_setup(JG_RESIDENT_F32, seen, SEEN);
    return 0;
}

/* A context that keeps so many own kernels beside the generic set. */
static jg_context *open_for(size_t kernels, jg_compile policy)
{
    if (!residents) {
        jg_context *c = warm_open((jg_options){.resident = JG_RESIDENT_F32});
        residents = warm_stats(c).resident;
        assert_true(residents > 0);
        assert_status(jg_close(c), JG_OK);
    }
    return warm_open((jg_options){.compile = policy, .resident = JG_RESIDENT_F32,
                                  .memory_max_kernels = (uint32_t)(residents + kernels)});
}

/* The own kernel of a problem is ready for jg_poll. */
static void make_ready(const product *x)
{
    const uint64_t ready = warm_stats(x->context).ready;
    assert_status(product_run(x, NULL), JG_OK);
    assert_status(jg_wait_idle(x->context, 0), JG_OK);
    assert_int_equal(warm_stats(x->context).ready, ready + 1);
}

/* ... and in its place. */
static void bring(const product *x)
{
    make_ready(x);
    assert_int_equal(warm_poll(x->context).swapped, 1);
}

static void make_products(jg_context *c, product *x)
{
    for (int i = 0; i < SEEN; i++) product_make(&x[i], c, &seen[i], (uint64_t)i);
}

static void free_products(product *x)
{
    for (int i = 0; i < SEEN; i++) product_free(&x[i]);
}

/* Whether a call runs on the problem's own kernel. */
static int is_own(const product *x)
{
    const uint64_t before = warm_stats(x->context).launches_own;
    assert_status(product_run(x, NULL), JG_OK);
    return warm_stats(x->context).launches_own == before + 1;
}

/* --- kernels that stay --- */

/* Two kernels have room beside the generic ones; a graph has the first, and the others push each other out. */
static void a_captured_kernel_is_not_pushed_out(void **state)
{
    (void)state;
    for (int m = 0; m < MODES; m++) {
        jg_context *c = open_for(2, JG_COMPILE_BACKGROUND);
        CUstream stream = create_stream();
        product x[SEEN];
        make_products(c, x);
        bring(&x[0]);
        CUgraphExec exec = capture_one(stream, modes[m], &x[0], NULL);
        assert_int_equal(warm_stats(c).launches_own, 1);
        assert_int_equal(warm_stats(c).captured, 1);
        for (int i = 1; i < SEEN; i++) {
            bring(&x[i]);
            check_replay(exec, stream, &x[0], (uint64_t)i);
        }
        const jg_stats s = warm_stats(c);
        assert_int_equal(s.kernels, residents + 2);
        assert_int_equal(s.evictions, SEEN - 2);
        assert_int_equal(s.captured, 1);
        assert_false(is_own(&x[1])); /* gone, as the first would be without the graph */
        assert_true(is_own(&x[0]));
        assert_int_equal(warm_stats(c).memory_misses, s.memory_misses + 1); /* of the one that is gone */
        WORKS(gpu.destroy_exec(exec));
        free_products(x);
        WORKS(gpu.destroy_stream(stream));
        assert_status(jg_close(c), JG_OK);
    }
}

static void a_destroyed_plan_leaves_its_captured_kernel(void **state)
{
    (void)state;
    jg_context *c = open_for(1, JG_COMPILE_WAIT);
    CUstream stream = create_stream();
    jg_plan *plan;
    product x[SEEN];
    make_products(c, x);
    assert_status(jg_plan_create(c, &seen[0], &plan), JG_OK);
    CUgraphExec exec = capture_one(stream, CU_STREAM_CAPTURE_MODE_GLOBAL, &x[0], plan);
    jg_plan_destroy(plan);
    for (int i = 1; i < SEEN; i++) {
        assert_true(is_own(&x[i])); /* loaded by the call, which unloads others */
        check_replay(exec, stream, &x[0], (uint64_t)i);
    }
    assert_true(warm_stats(c).evictions >= SEEN - 2);
    assert_int_equal(warm_stats(c).captured, 1);
    WORKS(gpu.destroy_exec(exec));
    free_products(x);
    WORKS(gpu.destroy_stream(stream));
    assert_status(jg_close(c), JG_OK);
}

/* A generic kernel that is loaded, but not resident, is kept by a graph as well. */
static void a_captured_generic_kernel_stays_too(void **state)
{
    (void)state;
    jg_context *c = warm_open((jg_options){.compile = JG_COMPILE_WAIT, .memory_max_kernels = 1});
    CUstream stream = create_stream();
    jg_problem generic = seen[1];
    product x[SEEN], y;
    generic.form = JG_FORM_GENERIC;
    make_products(c, x);
    product_make(&y, c, &generic, 1);
    assert_false(is_own(&y));
    CUgraphExec first = capture_one(stream, modes[0], &x[0], NULL), second = capture_one(stream, modes[0], &y, NULL);
    assert_int_equal(warm_stats(c).launches_generic, 3);
    assert_int_equal(warm_stats(c).captured, 1);
    for (int i = 2; i < SEEN; i++) assert_true(is_own(&x[i]));
    check_replay(first, stream, &x[0], 2);
    check_replay(second, stream, &y, 3);
    WORKS(gpu.destroy_exec(first));
    WORKS(gpu.destroy_exec(second));
    product_free(&y);
    free_products(x);
    WORKS(gpu.destroy_stream(stream));
    assert_status(jg_close(c), JG_OK);
}

/* The graph has a generic kernel that nobody else has any more: not the problem that it was loaded for, nor the one that ran on
 * it and went over to its own. */
static void a_captured_fallback_outlives_its_problem(void **state)
{
    (void)state;
    jg_context *c = warm_open((jg_options){.compile = JG_COMPILE_WAIT, .memory_max_kernels = 2});
    CUstream stream = create_stream();
    jg_problem generic = seen[1], unseen = {.m = 26, .n = 20, .k = 32, .compile = JG_COMPILE_NEVER};
    product x[SEEN], y, z;
    generic.form = JG_FORM_GENERIC;
    make_products(c, x);
    product_make(&y, c, &generic, 1);
    product_make(&z, c, &unseen, 2);
    assert_false(is_own(&y)); /* loads it */
    for (int i = 2; i < 4; i++) {
        assert_false(is_own(&z));
        assert_true(is_own(&x[i])); /* y is the oldest now, and goes */
    }
    CUgraphExec exec = capture_one(stream, CU_STREAM_CAPTURE_MODE_GLOBAL, &z, NULL);
    assert_int_equal(warm_stats(c).captured, 1);
    z.ref.problem.compile = JG_COMPILE_WAIT;
    assert_true(is_own(&z));
    const uint64_t problems = warm_stats(c).problems;
    for (int i = 0; i < SEEN; i++) assert_true(is_own(&x[i]));
    assert_true(warm_stats(c).problems <= problems); /* z has gone with those that came before it */
    check_replay(exec, stream, &z, 3);
    WORKS(gpu.destroy_exec(exec));
    product_free(&y);
    product_free(&z);
    free_products(x);
    WORKS(gpu.destroy_stream(stream));
    assert_status(jg_close(c), JG_OK);
}

/* The promise ends with jg_close; and so it shows that the software GPU would have told of a kernel that went too early. */
/* What a real driver makes of a kernel that is gone is not for a test to find out. */
static void a_closed_context_takes_its_kernels_along(void **state)
{
    (void)state;
    if (getenv("JG_TEST_DRIVER")) skip();
    jg_context *c = open_for(2, JG_COMPILE_WAIT);
    CUstream stream = create_stream();
    product x;
    product_make(&x, c, &seen[0], 1);
    assert_true(is_own(&x));
    CUgraphExec exec = capture_one(stream, CU_STREAM_CAPTURE_MODE_GLOBAL, &x, NULL);
    check_replay(exec, stream, &x, 2);
    product_free(&x);
    assert_status(jg_close(c), JG_OK);
    warm.expected = 1; /* use after unload */
    assert_int_equal(gpu.launch_graph(exec, stream), CUDA_ERROR_ILLEGAL_ADDRESS);
    WORKS(gpu.destroy_exec(exec));
    gpu.destroy_stream(stream);
}

/* --- loading and unloading meanwhile --- */

typedef struct visitor {
    jg_context *context;
    jg_poll_result polled;
    product *x;                /* of a size without a kernel */
    const jg_problem *problem; /* to prewarm */
    const char *cache;         /* of another context */
    jg_status status;
    char error[512];
} visitor;

static void note_error(visitor *v)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (v->status != JG_OK) snprintf(v->error, sizeof v->error, "%s: %s", jg_status_name(v->status), jg_last_error());
    if (v->status == JG_OK && (gpu.exchange_mode(&mode) != CUDA_SUCCESS || mode != CU_STREAM_CAPTURE_MODE_GLOBAL)) {
        v->status = JG_ERR_INTERNAL;
        snprintf(v->error, sizeof v->error, "the thread's capture mode was left at %d", (int)mode);
    }
}

static void *poll_once(void *argument)
{
    visitor *v = argument;
    v->status = jg_poll(v->context, &no_limits, &v->polled);
    note_error(v);
    return NULL;
}

/* Everything else that may load or unload. */
static void *make_and_close(void *argument)
{
    visitor *v = argument;
    const jg_options options = {.driver_path = warm_driver(), .cache_path = v->cache, .factory_path = ""};
    jg_context *other = NULL;
    jg_problem p = v->x->ref.problem;
    jg_operands data = product_operands(v->x, NULL);
    p.compile = JG_COMPILE_WAIT;
    v->status = jg_gemm(v->context, &p, &data);
    if (v->status == JG_OK) v->status = jg_prewarm(v->context, v->problem, 1, NULL, NULL);
    if (v->status == JG_OK) v->status = jg_open(&options, &other);
    if (v->status == JG_OK) v->status = jg_close(other);
    note_error(v);
    return NULL;
}

static void visit(void *(*body)(void *), visitor *v, int here)
{
    pthread_t thread;
    if (here) {
        body(v);
    } else {
        assert_int_equal(pthread_create(&thread, NULL, body, v), 0);
        pthread_join(thread, NULL);
    }
    if (v->status != JG_OK) WARM_FAIL("%s", v->error);
}

/* here: on the thread that captures. The launches before and after are in the graph. */
static void poll_during_a_capture(CUstreamCaptureMode mode, int here)
{
    jg_context *c = open_for(3, JG_COMPILE_BACKGROUND);
    CUstream stream = create_stream();
    visitor v = {.context = c};
    product x[SEEN];
    make_products(c, x);
    bring(&x[0]);
    bring(&x[1]);
    make_ready(&x[2]);
    make_ready(&x[3]);
    WORKS(gpu.begin_capture(stream, mode));
    assert_status(product_run(&x[0], stream), JG_OK);
    visit(poll_once, &v, here);
    assert_int_equal(v.polled.loaded, 2);
    assert_int_equal(v.polled.swapped, 2);
    assert_int_equal(v.polled.unloaded, 1); /* of the second problem */
    assert_status(product_run(&x[0], stream), JG_OK);
    assert_status(product_run(&x[2], stream), JG_OK);
    assert_status(product_run(&x[3], stream), JG_OK);
    CUgraphExec exec = end(stream, 4);
    assert_int_equal(warm_stats(c).launches_own, 4);
    assert_int_equal(warm_stats(c).captured, 3);
    for (int i = 0; i < 4; i++) product_refill(&x[i], 5);
    replay(exec, stream);
    product_check(&x[0]);
    product_check_untouched(&x[1]);
    product_check(&x[2]);
    product_check(&x[3]);
    WORKS(gpu.destroy_exec(exec));
    free_products(x);
    WORKS(gpu.destroy_stream(stream));
    assert_status(jg_close(c), JG_OK);
}

static void polling_leaves_captures_alone(void **state)
{
    (void)state;
    for (int m = 0; m < MODES; m++)
        for (int here = 0; here < 2; here++) poll_during_a_capture(modes[m], here);
}

static void other_threads_may_make_kernels_and_close(void **state)
{
    (void)state;
    jg_context *c = open_for(1, JG_COMPILE_BACKGROUND);
    CUstream stream = create_stream();
    product x, y;
    product_make(&x, c, &seen[0], 1);
    product_make(&y, c, &(jg_problem){.m = 30, .n = 20, .k = 10}, 2);
    bring(&x);
    visitor v = {.context = c, .x = &y, .problem = &seen[1], .cache = warm_copy()};
    WORKS(gpu.begin_capture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    assert_status(product_run(&x, stream), JG_OK);
    visit(make_and_close, &v, 0);
    assert_status(product_run(&x, stream), JG_OK);
    CUgraphExec exec = end(stream, 2);
    product_check(&y);
    assert_int_equal(warm_stats(c).waits, 1);
    assert_true(warm_stats(c).evictions >= 1);
    check_replay(exec, stream, &x, 3);
    WORKS(gpu.destroy_exec(exec));
    product_free(&x);
    product_free(&y);
    WORKS(gpu.destroy_stream(stream));
    assert_status(jg_close(c), JG_OK);
}

/* jg_plan_create knows no stream: it makes its kernel as always, also on the thread that captures. */
static void a_plan_may_be_made_during_a_capture(void **state)
{
    (void)state;
    for (int m = 0; m < MODES; m++) {
        jg_context *c = open_for(1, JG_COMPILE_WAIT);
        CUstream stream = create_stream();
        jg_plan *plan;
        product x, y;
        product_make(&x, c, &seen[0], 1);
        product_make(&y, c, &seen[1], 2);
        assert_true(is_own(&y)); /* to be unloaded when the plan's kernel comes */
        WORKS(gpu.begin_capture(stream, modes[m]));
        assert_status(jg_plan_create(c, &seen[0], &plan), JG_OK);
        const jg_operands data = product_operands(&x, stream);
        assert_status(jg_plan_run(plan, &data), JG_OK);
        CUgraphExec exec = end(stream, 1);
        assert_int_equal(warm_stats(c).launches_own, 2);
        assert_int_equal(warm_stats(c).evictions, 1);
        product_check_untouched(&x);
        check_replay(exec, stream, &x, 3);
        jg_plan_destroy(plan);
        WORKS(gpu.destroy_exec(exec));
        product_free(&x);
        product_free(&y);
        WORKS(gpu.destroy_stream(stream));
        assert_status(jg_close(c), JG_OK);
    }
}

/* The worker compiles while a stream is captured, and the capturing thread may wait for it and ask for counts. */
static void the_worker_goes_on_during_a_capture(void **state)
{
    (void)state;
    jg_context *c = open_for(2, JG_COMPILE_BACKGROUND);
    CUstream stream = create_stream();
    product x;
    product_make(&x, c, &(jg_problem){.m = 31, .n = 20, .k = 10}, 2);
    assert_status(product_run(&x, stream), JG_OK);
    begin(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
    assert_status(product_run(&x, stream), JG_OK); /* the second sighting */
    jg_stats s = warm_stats(c);
    assert_int_equal(s.kernels, residents);
    assert_status(jg_wait_idle(c, 0), JG_OK);
    s = warm_stats(c);
    assert_int_equal(s.compiles, 1);
    assert_int_equal(s.ready, 1);
    CUgraphExec exec = end(stream, 1);
    assert_int_equal(warm_poll(c).swapped, 1);
    assert_true(is_own(&x));
    check_replay(exec, stream, &x, 3);
    WORKS(gpu.destroy_exec(exec));
    product_free(&x);
    WORKS(gpu.destroy_stream(stream));
    assert_status(jg_close(c), JG_OK);
}

/* --- several captures at once --- */

enum { THREADS = 3 };

typedef struct capturer {
    product *x; /* SEEN of them */
    CUstream stream;
    CUgraphExec exec;
    jg_status status;
    CUresult result;
    char error[512];
} capturer;

static void *capture_all(void *argument)
{
    capturer *me = argument;
    CUcontext popped;
    CUgraph graph = NULL;
    if ((me->result = gpu.push(warm.context)) != CUDA_SUCCESS) return NULL;
    me->result = gpu.begin_capture(me->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    for (int i = 0; i < SEEN && me->status == JG_OK; i++) me->status = product_run(&me->x[i], me->stream);
    if (me->status != JG_OK) snprintf(me->error, sizeof me->error, "%s", jg_last_error());
    if (me->result == CUDA_SUCCESS) me->result = gpu.end_capture(me->stream, &graph);
    if (me->result == CUDA_SUCCESS) me->result = gpu.instantiate(&me->exec, graph, 0);
    if (me->result == CUDA_SUCCESS) me->result = gpu.destroy_graph(graph);
    gpu.pop(&popped);
    return NULL;
}

static void threads_capture_side_by_side(void **state)
{
    (void)state;
    jg_context *c = warm_open((jg_options){.resident = JG_RESIDENT_F32, .prewarm_problems = seen, .prewarm_count = SEEN});
    product x[THREADS][SEEN];
    capturer capturers[THREADS];
    pthread_t threads[THREADS];
    for (int t = 0; t < THREADS; t++) {
        make_products(c, x[t]);
        capturers[t] = (capturer){.x = x[t], .stream = create_stream()};
    }
    for (int t = 0; t < THREADS; t++) assert_int_equal(pthread_create(&threads[t], NULL, capture_all, &capturers[t]), 0);
    for (int t = 0; t < THREADS; t++) pthread_join(threads[t], NULL);
    for (int t = 0; t < THREADS; t++) {
        if (capturers[t].status != JG_OK) WARM_FAIL("thread %d: %s", t, capturers[t].error);
        WORKS(capturers[t].result);
        for (int i = 0; i < SEEN; i++) product_refill(&x[t][i], (uint64_t)(10 * t + i));
        replay(capturers[t].exec, capturers[t].stream);
        for (int i = 0; i < SEEN; i++) product_check(&x[t][i]);
        WORKS(gpu.destroy_exec(capturers[t].exec));
        WORKS(gpu.destroy_stream(capturers[t].stream));
        free_products(x[t]);
    }
    assert_int_equal(warm_stats(c).captured, SEEN); /* each kernel once */
    assert_int_equal(warm_stats(c).launches_own, THREADS * SEEN);
    assert_status(jg_close(c), JG_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WARM_TEST(a_captured_kernel_is_not_pushed_out),
        WARM_TEST(a_destroyed_plan_leaves_its_captured_kernel),
        WARM_TEST(a_captured_generic_kernel_stays_too),
        WARM_TEST(a_captured_fallback_outlives_its_problem),
        WARM_TEST(a_closed_context_takes_its_kernels_along),
        WARM_TEST(polling_leaves_captures_alone),
        WARM_TEST(other_threads_may_make_kernels_and_close),
        WARM_TEST(a_plan_may_be_made_during_a_capture),
        WARM_TEST(the_worker_goes_on_during_a_capture),
        WARM_TEST(threads_capture_side_by_side),
    };
    return cmocka_run_group_tests(tests, make_warm_cache, warm_teardown);
}
