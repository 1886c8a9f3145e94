/* src/poll.c on the fake driver: bounds and results of jg_poll, what it unloads and in which order, what it leaves alone, kernels
 * that the driver refuses, and jg_wait_idle. */
#include "background_fixture.h"

#include "recent.h"

#include <math.h>
#include <stdatomic.h>
#include <time.h>

enum { FIRST = 8, MANY = 12 };

static size_t generic_count;

/* A context with the generic set of f32, and room for `room` kernels more; 0: for all. */
static jg_context *open_with_room(size_t room)
{
    generic_count = plant_generic(fx.cache, JG_RESIDENT_F32);
    plant_squares(FIRST, MANY, JG_F32);
    jg_options options = background_options();
    options.resident = JG_RESIDENT_F32;
    options.memory_max_kernels = room ? (uint32_t)(generic_count + room) : 0;
    jg_context *c = fixture_open_with(options);
    assert_int_equal(fx.fake->modules(), generic_count);
    return c;
}

static jg_problem numbered(int i)
{
    return square(FIRST + i, JG_F32);
}

static void call(jg_context *c, int i)
{
    const jg_problem p = numbered(i);
    assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
}

static int is_loaded(int i)
{
    const jg_problem p = numbered(i);
    return fx.fake->is_loaded(fixture_name(&p, JG_FORM_AUTO));
}

/* Leaves the kernels of the first sizes ready for jg_poll. */
static void make_ready(jg_context *c, int count)
{
    for (int i = 0; i < count; i++) call(c, i);
    settle(c);
    assert_int_equal(fixture_stats(c).ready, count);
    assert_int_equal(fx.fake->modules(), generic_count);
}

#define assert_polled(result, loaded_, swapped_, unloaded_, left_)  \
    do {                                                            \
        assert_int_equal((result).loaded, loaded_);                 \
        assert_int_equal((result).swapped, swapped_);               \
        assert_int_equal((result).unloaded, unloaded_);             \
        assert_int_equal((result).left, left_);                     \
    } while (0)

static jg_poll_result poll_within(jg_context *c, uint32_t max_kernels, double max_ms)
{
    jg_poll_result result = {9, 9, 9, 9};
    assert_status(jg_poll(c, &(jg_poll_limits){max_kernels, max_ms}, &result), JG_OK);
    return result;
}

/* --- bounds --- */

static void a_count_bounds_a_poll(void **state)
{
    (void)state;
    jg_context *c = open_with_room(0);
    make_ready(c, 5);
    jg_poll_result r = poll_within(c, 2, 1e9);
    assert_polled(r, 2, 2, 0, 3);
    assert_true(is_loaded(0) && is_loaded(1) && !is_loaded(2)); /* in the order in which they became ready */
    assert_int_equal(fixture_stats(c).ready, 3);
    r = poll_within(c, 2, INFINITY);
    assert_polled(r, 2, 2, 0, 1);
    r = poll_within(c, 2, 1e9);
    assert_polled(r, 1, 1, 0, 0);
    r = poll_within(c, 2, 1e9);
    assert_polled(r, 0, 0, 0, 0);
    const jg_stats s = fixture_stats(c);
    assert_int_equal(s.swaps, 5);
    assert_int_equal(s.kernels, generic_count + 5);
    assert_int_equal(events_of(JG_EVENT_SWAP), 5);
    for (int i = 0; i < 5; i++) {
        const jg_problem p = numbered(i);
        call(c, i);
        assert_true(ran_on(&p, JG_FORM_AUTO));
    }
    assert_status(jg_close(c), JG_OK);
}

static void without_a_count_it_is_eight(void **state)
{
    (void)state;
    jg_context *c = open_with_room(0);
    make_ready(c, 11);
    jg_poll_result r = poll_within(c, 0, 1e9);
    assert_polled(r, 8, 8, 0, 3);
    r = poll_within(c, 0, 1e9);
    assert_polled(r, 3, 3, 0, 0);
    assert_status(jg_close(c), JG_OK);
}

/* Loads that take longer than the bound: one each time, and the one that is always allowed. */
static void time_bounds_a_poll(void **state)
{
    (void)state;
    jg_context *c = open_with_room(0);
    jg_poll_result r;
    make_ready(c, 6);
    fx.fake->delay_loads(5);
    r = poll_within(c, 100, 1e-9);
    assert_polled(r, 1, 1, 0, 5);
    r = poll_within(c, 100, 0); /* 1 ms */
    assert_polled(r, 1, 1, 0, 4);
    assert_status(jg_poll(c, NULL, &r), JG_OK);
    assert_polled(r, 1, 1, 0, 3);
    r = poll_within(c, 100, 1e9);
    assert_polled(r, 3, 3, 0, 0);
    assert_status(jg_close(c), JG_OK);
}

static void bad_arguments_are_refused(void **state)
{
    (void)state;
    const double bad[] = {-1, -1e-300, -INFINITY, NAN};
    jg_poll_result r;
    jg_context *c = open_with_room(0);
    make_ready(c, 1);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        r = (jg_poll_result){9, 9, 9, 9};
        assert_status(jg_poll(c, &(jg_poll_limits){.max_ms = bad[i]}, &r), JG_ERR_VALUE);
        assert_says(jg_last_error(), "max_ms");
        assert_polled(r, 0, 0, 0, 0);
        assert_status(jg_wait_idle(c, bad[i]), JG_ERR_VALUE);
        assert_says(jg_last_error(), "timeout_ms");
    }
    r = (jg_poll_result){9, 9, 9, 9};
    assert_status(jg_poll(NULL, NULL, &r), JG_ERR_NULL);
    assert_polled(r, 0, 0, 0, 0);
    assert_status(jg_wait_idle(NULL, 0), JG_ERR_NULL);
    assert_int_equal(fixture_stats(c).ready, 1); /* nothing was taken */
    assert_status(jg_poll(c, NULL, NULL), JG_OK);
    assert_int_equal(fixture_stats(c).swaps, 1);
    assert_status(jg_close(c), JG_OK);
}

static void nothing_to_do_asks_nothing_of_the_driver(void **state)
{
    (void)state;
    jg_context *c = open_with_room(2);
    make_ready(c, 2);
    poll_once(c);
    const uint64_t calls = fx.fake->all_calls();
    for (int i = 0; i < 3; i++) {
        const jg_poll_result r = poll_once(c);
        assert_polled(r, 0, 0, 0, 0);
    }
    assert_int_equal(fx.fake->all_calls(), calls);
    assert_status(jg_close(c), JG_OK);
}

static void the_cpu_device_has_nothing_to_poll(void **state)
{
    (void)state;
    jg_options options = background_options();
    options.device = JG_DEVICE_CPU;
    jg_context *c = fixture_open_with(options);
    call(c, 0);
    const jg_poll_result r = poll_within(c, 1, 1);
    assert_polled(r, 0, 0, 0, 0);
    assert_status(jg_wait_idle(c, 0), JG_OK);
    assert_status(jg_wait_idle(c, 1), JG_OK);
    assert_status(jg_poll(c, &(jg_poll_limits){.max_ms = -1}, NULL), JG_ERR_VALUE);
    assert_status(jg_wait_idle(c, -1), JG_ERR_VALUE);
    assert_int_equal(fx.fake->all_calls(), 0);
    assert_status(jg_close(c), JG_OK);
}

/* --- eviction --- */

static void only_poll_unloads(void **state)
{
    (void)state;
    jg_context *c = open_with_room(2);
    make_ready(c, 5);
    jg_poll_result r = poll_within(c, 5, 1e9);
    assert_polled(r, 5, 5, 0, 0); /* the count was used up */
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < 8; i++) call(c, i); /* also new ones */
    assert_int_equal(fx.fake->calls("cuModuleUnload"), 0);
    assert_int_equal(fx.fake->modules(), generic_count + 5);
    r = poll_within(c, 1, 1e9);
    assert_int_equal(r.loaded + r.unloaded, 1);
    settle(c);
    while (r.loaded + r.unloaded) r = poll_once(c);
    assert_int_equal(fx.fake->modules(), generic_count + 2);
    const jg_stats s = fixture_stats(c);
    assert_int_equal(events_of(JG_EVENT_EVICT), s.evictions);
    assert_int_equal(fx.fake->calls("cuModuleUnload"), s.evictions);
    assert_status(jg_close(c), JG_OK);
}

static void loaded_and_unloaded_share_the_count(void **state)
{
    (void)state;
    jg_context *c = open_with_room(1);
    make_ready(c, 5);
    jg_poll_result r = poll_within(c, 6, 1e9);
    assert_polled(r, 5, 5, 1, 0);
    r = poll_within(c, 2, 1e9);
    assert_polled(r, 0, 0, 2, 0);
    r = poll_within(c, 2, 1e9);
    assert_polled(r, 0, 0, 1, 0);
    assert_int_equal(fx.fake->modules(), generic_count + 1);
    assert_status(jg_close(c), JG_OK);
}

static void dawdle(void *user, const jg_trace *trace)
{
    events_trace(user, trace);
    if (trace->event == JG_EVENT_EVICT) nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
}

/* What unloading takes counts too, and one is always allowed. */
static void time_bounds_unloading_too(void **state)
{
    (void)state;
    generic_count = plant_generic(fx.cache, JG_RESIDENT_F32);
    plant_squares(FIRST, MANY, JG_F32);
    jg_options options = background_options();
    options.resident = JG_RESIDENT_F32;
    options.memory_max_kernels = (uint32_t)generic_count;
    options.trace = dawdle;
    jg_context *c = fixture_open_with(options);
    make_ready(c, 4);
    jg_poll_result r = poll_within(c, 4, 1e9);
    assert_polled(r, 4, 4, 0, 0);
    r = poll_within(c, 100, 1);
    assert_polled(r, 0, 0, 1, 0);
    r = poll_within(c, 100, 1e-9);
    assert_polled(r, 0, 0, 1, 0);
    r = poll_within(c, 100, 1e9);
    assert_polled(r, 0, 0, 2, 0);
    assert_status(jg_close(c), JG_OK);
}

/* Sizes that have places of their own in a thread's memory of recent calls, so that none is ever looked up again. */
static void choose_apart(int *chosen, int count)
{
    recent *r = recent_create();
    assert_non_null(r);
    int have = 0;
    for (int i = 0; i < MANY && have < count; i++) {
        const jg_problem p = numbered(i);
        int taken = 0;
        for (int j = 0; j < have; j++) {
            const jg_problem other = numbered(chosen[j]);
            taken |= recent_place(r, &p) == recent_place(r, &other);
        }
        if (!taken) chosen[have++] = i;
    }
    assert_int_equal(have, count);
    recent_destroy(r);
}

/* Uses of a hit are told apart at the latest after 64 of them. */
static void use_often(jg_context *c, int i)
{
    static float data[3][64 * 64];
    const jg_problem p = numbered(i);
    for (int j = 0; j < 130; j++) assert_status(jg_gemm(c, &p, &(jg_operands){.a = data[0], .b = data[1], .c = data[2]}), JG_OK);
}

static void the_least_recently_used_go_first(void **state)
{
    (void)state;
    enum { COUNT = 4 };
    static const int order[COUNT] = {2, 0, 3, 1};
    int sizes[COUNT];
    choose_apart(sizes, COUNT);
    jg_context *c = open_with_room(1);
    for (int i = 0; i < COUNT; i++) call(c, sizes[i]);
    settle(c);
    jg_poll_result r = poll_within(c, COUNT, 1e9);
    assert_polled(r, COUNT, COUNT, 0, 0);
    const uint64_t lookups = fixture_stats(c).memory_misses;
    for (int i = 0; i < COUNT; i++) use_often(c, sizes[order[i]]);
    assert_int_equal(fixture_stats(c).launches_own, COUNT * 130);
    assert_int_equal(fixture_stats(c).memory_misses, lookups);
    for (int gone = 1; gone < COUNT; gone++) {
        r = poll_within(c, 1, 1e9);
        assert_polled(r, 0, 0, 1, 0);
        for (int i = 0; i < COUNT; i++) assert_int_equal(is_loaded(sizes[order[i]]), i >= gone);
    }
    r = poll_within(c, 1, 1e9);
    assert_polled(r, 0, 0, 0, 0);
    assert_status(jg_close(c), JG_OK);
}

/* What a plan, a graph or the generic set needs stays, whatever the bound. */
static void what_is_needed_stays(void **state)
{
    (void)state;
    static int a_stream;
    const CUstream stream = (CUstream)&a_stream;
    generic_count = plant_generic(fx.cache, JG_RESIDENT_F32);
    plant_squares(FIRST, MANY, JG_F32);
    jg_options options = background_options();
    options.resident = JG_RESIDENT_F32;
    options.memory_max_kernels = 1;
    jg_context *c = fixture_open_with(options);
    make_ready(c, 4);
    jg_poll_result r = poll_within(c, 4, 1e9);
    assert_polled(r, 4, 4, 0, 0);

    const jg_problem planned = numbered(0), captured = numbered(1);
    jg_plan *pl;
    assert_status(jg_plan_create(c, &planned, &pl), JG_OK);
    static float data[3][64 * 64];
    fx.fake->set_capturing(stream, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    assert_status(jg_gemm(c, &captured, &(jg_operands){.a = data[0], .b = data[1], .c = data[2], .stream = stream}), JG_OK);
    fx.fake->set_capturing(stream, CU_STREAM_CAPTURE_STATUS_NONE);
    assert_int_equal(fixture_stats(c).captured, 1);

    r = poll_within(c, 100, 1e9);
    assert_polled(r, 0, 0, 2, 0);
    assert_true(is_loaded(0) && is_loaded(1) && !is_loaded(2) && !is_loaded(3));
    assert_int_equal(fx.fake->modules(), generic_count + 2);
    assert_status(fixture_run_plan(pl, &planned), JG_OK);
    assert_true(ran_on(&planned, JG_FORM_AUTO));
    jg_plan_destroy(pl);
    r = poll_within(c, 100, 1e9);
    assert_polled(r, 0, 0, 1, 0);
    assert_true(!is_loaded(0) && is_loaded(1));
    assert_int_equal(fixture_stats(c).resident, generic_count);
    r = poll_within(c, 100, 1e9);
    assert_polled(r, 0, 0, 0, 0);
    call(c, 1);
    assert_true(ran_on(&captured, JG_FORM_AUTO));
    assert_status(jg_close(c), JG_OK);
}

/* A plan that is on the generic kernel goes over with its problem, and keeps its own from then on. */
static void a_plan_goes_over_too(void **state)
{
    (void)state;
    jg_context *c = open_with_room(1);
    const jg_problem p = numbered(0);
    jg_plan *pl;
    assert_status(jg_plan_create(c, &p, &pl), JG_OK);
    make_ready(c, 3);
    assert_status(fixture_run_plan(pl, &p), JG_OK);
    assert_true(ran_on(&p, JG_FORM_GENERIC));
    assert_int_equal(poll_once(c).loaded, 3);
    poll_once(c);
    assert_int_equal(fx.fake->modules(), generic_count + 1);
    assert_true(is_loaded(0));
    assert_status(fixture_run_plan(pl, &p), JG_OK);
    assert_true(ran_on(&p, JG_FORM_AUTO));
    jg_plan_destroy(pl);
    assert_status(jg_close(c), JG_OK);
}

/* --- kernels that the driver refuses --- */

static void a_refused_kernel_leaves_the_generic_one(void **state)
{
    (void)state;
    const jg_problem p = numbered(0);
    jg_context *c = open_with_room(0);
    make_ready(c, 1);
    fx.fake->refuse_cubins(CUDA_ERROR_INVALID_IMAGE);
    fx.fake->refuse_ptx(CUDA_ERROR_INVALID_PTX);
    jg_poll_result r = {9, 9, 9, 9};
    assert_status(jg_poll(c, NULL, &r), JG_ERR_LOAD);
    assert_says(jg_last_error(), fixture_name(&p, JG_FORM_AUTO));
    assert_polled(r, 0, 0, 0, 0);
    assert_int_equal(events_of(JG_EVENT_FAIL), 1);
    const seen_event failed = events_last(JG_EVENT_FAIL);
    assert_string_equal(failed.problem, "8");
    assert_string_equal(failed.kernel, fixture_name(&p, JG_FORM_AUTO));
    assert_int_equal(fx.logs[JG_LOG_ERROR] + fx.logs[JG_LOG_WARNING], 0); /* the caller is told by the status */

    fx.fake->refuse_cubins(CUDA_SUCCESS);
    for (int i = 0; i < 70; i++) call(c, 0); /* used twice as often again and again: it is not tried twice */
    settle(c);
    r = poll_once(c);
    assert_polled(r, 0, 0, 0, 0);
    assert_true(ran_on(&p, JG_FORM_GENERIC));
    assert_int_equal(events_of(JG_EVENT_FAIL), 1);
    assert_int_equal(fx.fake->modules(), generic_count);
    assert_status(jg_close(c), JG_OK);
}

static void the_rest_is_done_all_the_same(void **state)
{
    (void)state;
    jg_context *c = open_with_room(1);
    make_ready(c, 3);
    fx.fake->fail_call("cuModuleLoadDataEx", 2, CUDA_ERROR_NOT_SUPPORTED, FAKE_ONCE);
    jg_poll_result r;
    assert_status(jg_poll(c, &(jg_poll_limits){100, 1e9}, &r), JG_ERR_LOAD);
    assert_says(jg_last_error(), "801");
    assert_polled(r, 2, 2, 1, 0);
    assert_true(!is_loaded(1));
    assert_int_equal(fx.fake->modules(), generic_count + 1);
    call(c, 1);
    assert_status(jg_poll(c, NULL, NULL), JG_OK);
    assert_status(jg_close(c), JG_OK);
}

static void the_first_failure_is_what_is_told(void **state)
{
    (void)state;
    jg_context *c = open_with_room(0);
    const jg_problem first = numbered(0);
    jg_poll_result r;
    make_ready(c, 5);
    fx.fake->refuse_cubins(CUDA_ERROR_INVALID_IMAGE);
    fx.fake->refuse_ptx(CUDA_ERROR_INVALID_PTX);
    fx.fake->fail_call("cuModuleLoadDataEx", 1, CUDA_ERROR_OUT_OF_MEMORY, FAKE_ONCE);
    assert_status(jg_poll(c, &(jg_poll_limits){2, 1e9}, &r), JG_ERR_NO_MEMORY);
    assert_says(jg_last_error(), fixture_name(&first, JG_FORM_AUTO)); /* not the second */
    assert_polled(r, 0, 0, 0, 3); /* a failure counts as one */
    fx.fake->refuse_cubins(CUDA_SUCCESS);
    fx.fake->refuse_ptx(CUDA_SUCCESS);
    fx.fake->fail_call("cuModuleLoadDataEx", 1, CUDA_ERROR_OUT_OF_MEMORY, FAKE_ONCE);
    assert_status(jg_poll(c, &(jg_poll_limits){1, 1e9}, &r), JG_ERR_NO_MEMORY);
    assert_polled(r, 0, 0, 0, 2);
    fx.fake->fail_call("cuModuleLoadDataEx", 1, CUDA_ERROR_ILLEGAL_ADDRESS, FAKE_ONCE);
    assert_status(jg_poll(c, &(jg_poll_limits){100, 1e9}, &r), JG_ERR_DEVICE_LOST);
    assert_polled(r, 1, 1, 0, 0);
    assert_status(jg_close(c), JG_OK);
}

/* Sealed, what the file has comes through jg_poll as well, and nothing else does. */
static void a_sealed_context_polls_too(void **state)
{
    (void)state;
    generic_count = plant_generic(fx.cache, JG_RESIDENT_F32);
    plant_squares(FIRST, 2, JG_F32);
    jg_options options = background_options();
    options.resident = JG_RESIDENT_F32;
    options.compile = JG_COMPILE_NEVER;
    jg_context *c = fixture_open_with(options);
    for (int round = 0; round < 4; round++)
        for (int i = 0; i < 3; i++) call(c, i);
    settle(c);
    jg_poll_result r = poll_once(c);
    assert_polled(r, 2, 2, 0, 0);
    assert_true(is_loaded(0) && is_loaded(1) && !is_loaded(2));
    assert_int_equal(events_of(JG_EVENT_FAIL), 0);
    assert_int_equal(atomic_load(&nvrtc_double->compiles), 0);
    assert_status(jg_close(c), JG_OK);
}

/* --- waiting --- */

static void waiting_ends_when_the_time_does(void **state)
{
    (void)state;
    const jg_problem p = square(100, JG_F32); /* in no file */
    jg_context *c = open_with_room(0);
    assert_status(jg_wait_idle(c, 1e-9), JG_OK); /* nobody has anything to do */
    atomic_store(&nvrtc_double->holds, 1);
    atomic_store(&nvrtc_double->accepts, 1);
    for (int i = 0; i < 2; i++) assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
    assert_status(jg_wait_idle(c, 20), JG_ERR_NOT_READY);
    assert_says(jg_last_error(), "20 ms");
    assert_int_equal(poll_once(c).loaded, 0);
    atomic_store(&nvrtc_double->holds, 0);
    assert_status(jg_wait_idle(c, 1e300), JG_OK);
    assert_status(jg_wait_idle(c, INFINITY), JG_OK);
    assert_int_equal(fixture_stats(c).ready, 1);
    assert_int_equal(fx.fake->modules(), generic_count); /* waiting loads nothing */
    assert_int_equal(poll_once(c).swapped, 1);
    assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
    assert_true(ran_on(&p, JG_FORM_AUTO));
    assert_status(jg_close(c), JG_OK);
}

/* --- threads --- */

typedef struct busy {
    jg_context *context;
    int seed;
    atomic_int *callers; /* still at it */
    jg_status status;
    size_t loaded, unloaded;
} busy;

static void *call_many(void *argument)
{
    busy *b = argument;
    float x[(FIRST + MANY) * (FIRST + MANY)], y[(FIRST + MANY) * (FIRST + MANY)];
    for (size_t i = 0; i < sizeof x / sizeof x[0]; i++) x[i] = 1;
    for (int i = 0; i < 300 && b->status == JG_OK; i++) {
        const jg_problem p = numbered((i * (b->seed + 1) + b->seed) % MANY);
        memset(y, 0, sizeof y);
        b->status = jg_gemm(b->context, &p, &(jg_operands){.a = x, .b = x, .c = y});
        for (int j = 0; j < p.m * p.n && b->status == JG_OK; j++)
            if (y[j] != (float)p.k) b->status = JG_ERR_INTERNAL;
    }
    atomic_fetch_sub(b->callers, 1);
    return NULL;
}

static void *poll_many(void *argument)
{
    busy *b = argument;
    jg_poll_result r;
    while (b->status == JG_OK && atomic_load(b->callers)) {
        b->status = jg_poll(b->context, &(jg_poll_limits){.max_kernels = 3, .max_ms = 1e9}, &r);
        b->loaded += r.loaded;
        b->unloaded += r.unloaded;
    }
    return NULL;
}

static void threads_poll_while_others_call(void **state)
{
    (void)state;
    enum { EACH = 2 };
    jg_context *c = open_with_room(3);
    atomic_int callers = EACH;
    pthread_t threads[2 * EACH];
    busy all[2 * EACH];
    size_t loaded = 0, unloaded = 0;
    for (int i = 0; i < 2 * EACH; i++) {
        all[i] = (busy){.context = c, .seed = i, .callers = &callers};
        assert_int_equal(pthread_create(&threads[i], NULL, i < EACH ? call_many : poll_many, &all[i]), 0);
    }
    for (int i = 0; i < 2 * EACH; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(all[i].status, JG_OK);
        loaded += all[i].loaded;
        unloaded += all[i].unloaded;
    }
    settle(c);
    for (jg_poll_result r = {.loaded = 1}; r.loaded + r.unloaded;) {
        r = poll_once(c);
        loaded += r.loaded;
        unloaded += r.unloaded;
    }
    assert_int_equal(fx.fake->modules(), generic_count + 3);
    assert_int_equal(loaded - unloaded, 3);
    assert_int_equal(fixture_stats(c).evictions, unloaded);
    for (int i = 0; i < MANY; i++) call(c, i);
    assert_status(jg_close(c), JG_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BACKGROUND_TEST(a_count_bounds_a_poll),
        BACKGROUND_TEST(without_a_count_it_is_eight),
        BACKGROUND_TEST(time_bounds_a_poll),
        BACKGROUND_TEST(bad_arguments_are_refused),
        BACKGROUND_TEST(nothing_to_do_asks_nothing_of_the_driver),
        BACKGROUND_TEST(the_cpu_device_has_nothing_to_poll),
        BACKGROUND_TEST(only_poll_unloads),
        BACKGROUND_TEST(loaded_and_unloaded_share_the_count),
        BACKGROUND_TEST(time_bounds_unloading_too),
        BACKGROUND_TEST(the_least_recently_used_go_first),
        BACKGROUND_TEST(what_is_needed_stays),
        BACKGROUND_TEST(a_plan_goes_over_too),
        BACKGROUND_TEST(a_refused_kernel_leaves_the_generic_one),
        BACKGROUND_TEST(the_rest_is_done_all_the_same),
        BACKGROUND_TEST(the_first_failure_is_what_is_told),
        BACKGROUND_TEST(a_sealed_context_polls_too),
        BACKGROUND_TEST(waiting_ends_when_the_time_does),
        BACKGROUND_TEST(threads_poll_while_others_call),
    };
    return cmocka_run_group_tests_name("poll", tests, NULL, NULL);
}
