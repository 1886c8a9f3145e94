/* src/kernels.c on the fake driver: what is evicted and when, who holds what, and threads that meet there. */
#include "gemm_fixture.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

/* --- eviction --- */

#define SIZES 4
static jg_problem sized(int i)
{
    return square(8 + 8 * i, JG_F32);
}

static void plant_sizes(void)
{
    for (int i = 0; i < SIZES; i++) fixture_plant(&(jg_problem){.m = 8 + 8 * i, .n = 8 + 8 * i, .k = 8 + 8 * i}, JG_FORM_AUTO);
}

static int is_loaded(int i)
{
    const jg_problem p = sized(i);
    return fx.fake->is_loaded(fixture_name(&p, JG_FORM_AUTO));
}

static jg_context *open_for_two(jg_compile policy)
{
    jg_options options = fixture_options();
    options.compile = policy;
    options.memory_max_kernels = 2;
    options.nvrtc_path = "/nonexistent/libnvrtc.so";
    return fixture_open_with(options);
}

static void run_size(jg_context *c, int i)
{
    const jg_problem p = sized(i);
    assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
}

static void the_least_recently_used_kernels_go(void **state)
{
    (void)state;
    plant_sizes();
    jg_context *c = open_for_two(JG_COMPILE_WAIT);
    run_size(c, 0);
    run_size(c, 1);
    run_size(c, 0); /* now 1 is the older */
    run_size(c, 2);
    assert_true(is_loaded(0) && !is_loaded(1) && is_loaded(2));
    run_size(c, 3);
    assert_true(!is_loaded(0) && is_loaded(2) && is_loaded(3));
    run_size(c, 1); /* comes back from disk */
    jg_stats s = fixture_stats(c);
    assert_int_equal(s.kernels, 2);
    assert_int_equal(s.evictions, 3);
    assert_int_equal(s.disk_hits, 5);
    assert_int_equal(fx.fake->modules(), 2);
    assert_status(jg_close(c), JG_OK);
}

static void bytes_bound_the_memory_too(void **state)
{
    (void)state;
    plant_sizes();
    jg_options options = fixture_options();
    options.memory_max_bytes = 300; /* a planted cubin has about 130 */
    options.nvrtc_path = "/nonexistent/libnvrtc.so";
    jg_context *c = fixture_open_with(options);
    for (int i = 0; i < SIZES; i++) run_size(c, i);
    jg_stats s = fixture_stats(c);
    assert_true(s.kernel_bytes <= 300 && s.kernels >= 1 && s.kernels < SIZES);
    assert_int_equal(fx.fake->modules(), s.kernels);
    assert_status(jg_close(c), JG_OK);
}

static void plans_keep_their_kernels(void **state)
{
    (void)state;
    plant_sizes();
    const jg_problem p = sized(0);
    jg_context *c = open_for_two(JG_COMPILE_WAIT);
    jg_plan *pinned;
    assert_status(jg_plan_create(c, &p, &pinned), JG_OK);
    for (int i = 1; i < SIZES; i++) run_size(c, i);
    assert_true(is_loaded(0));
    assert_int_equal(fx.fake->modules(), 2);
    uint64_t loads = fx.fake->calls("cuModuleLoadDataEx");
    assert_status(fixture_run_plan(pinned, &p), JG_OK);
    assert_int_equal(fx.fake->calls("cuModuleLoadDataEx"), loads);
    jg_plan_destroy(pinned);
    for (int i = 1; i < SIZES; i++) run_size(c, i);
    assert_false(is_loaded(0));
    assert_status(jg_close(c), JG_OK);
}

/* Leaves more kernels loaded than the bound allows: plans held them while they were loaded. */
static jg_context *open_with_all_loaded(void)
{
    plant_sizes();
    jg_context *c = open_for_two(JG_COMPILE_WAIT);
    jg_plan *plans[SIZES];
    for (int i = 0; i < SIZES; i++) assert_status(jg_plan_create(c, &(const jg_problem){.m = 8 + 8 * i, .n = 8 + 8 * i, .k = 8 + 8 * i}, &plans[i]), JG_OK);
    for (int i = 0; i < SIZES; i++) jg_plan_destroy(plans[i]);
    return c;
}

/* A device lost by earlier work shows when the driver is next asked; poll passes it on. */
static void poll_reports_a_lost_device(void **state)
{
    (void)state;
    jg_context *c = open_with_all_loaded();
    fx.fake->fail_call("cuModuleUnload", 1, CUDA_ERROR_ILLEGAL_ADDRESS, FAKE_ONCE);
    assert_status(jg_poll(c, NULL, NULL), JG_ERR_DEVICE_LOST);
    assert_says(jg_last_error(), "cuModuleUnload");
    jg_close(c);
    fx.fake->reset(); /* the module that could not be unloaded */
}

/* Calls that find their kernels unload nothing: that is left to jg_poll. */
static void hits_leave_unloading_to_poll(void **state)
{
    (void)state;
    jg_context *c = open_with_all_loaded();
    jg_poll_result done = {.unloaded = 9};
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < SIZES; i++) run_size(c, i);
    assert_int_equal(fx.fake->calls("cuModuleUnload"), 0);
    assert_int_equal(fx.fake->modules(), SIZES);
    uint64_t depth = (uint64_t)fx.fake->depth();
    assert_status(jg_poll(c, NULL, &done), JG_OK);
    assert_int_equal(done.unloaded, SIZES - 2);
    assert_int_equal(fx.fake->modules(), 2);
    assert_int_equal(fx.fake->depth(), depth);
    uint64_t calls = fx.fake->all_calls();
    assert_status(jg_poll(c, NULL, &done), JG_OK);
    assert_int_equal(done.unloaded, 0);
    assert_int_equal(fx.fake->all_calls(), calls); /* nothing to do costs nothing */
    assert_status(jg_close(c), JG_OK);
}

/* --- threads --- */

typedef struct runner {
    jg_context *context;
    pthread_barrier_t *start;
    int first, rounds;
    atomic_int *done;
    jg_status status;
} runner;

static void *run_sizes(void *argument)
{
    runner *r = argument;
    if (r->start) pthread_barrier_wait(r->start);
    for (int i = 0; i < r->rounds && r->status == JG_OK; i++) {
        const jg_problem p = sized((r->first + i) % SIZES);
        float a[32 * 32], b[32 * 32], c[32 * 32];
        for (int j = 0; j < 32 * 32; j++) a[j] = b[j] = 1;
        r->status = jg_gemm(r->context, &p, &(jg_operands){.a = a, .b = b, .c = c});
        for (int j = 0; j < p.m * p.n && r->status == JG_OK; j++)
            if (c[j] != (float)p.k) r->status = JG_ERR_INTERNAL;
    }
    if (r->done) atomic_store(r->done, 1);
    return NULL;
}

#define THREADS 4
static void run_threads(jg_context *c, int spread, int rounds)
{
    pthread_t threads[THREADS];
    runner runners[THREADS];
    pthread_barrier_t start;
    pthread_barrier_init(&start, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) {
        runners[i] = (runner){c, &start, i * spread, rounds, NULL, JG_OK};
        assert_int_equal(pthread_create(&threads[i], NULL, run_sizes, &runners[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&start);
    for (int i = 0; i < THREADS; i++) assert_int_equal(runners[i].status, JG_OK);
}

static void threads_that_miss_together_compile_once(void **state)
{
    (void)state;
    NEEDS_NVRTC();
    jg_context *c = fixture_open();
    run_threads(c, 0, 1);
    assert_int_equal(fixture_stats(c).compiles, 1);
    assert_int_equal(fixture_stats(c).problems, 1);
    assert_int_equal(fx.fake->calls("cuModuleLoadDataEx"), 1);
    assert_int_equal(fx.fake->calls("cuLaunchKernel"), THREADS);
    assert_status(jg_close(c), JG_OK);
}

/* Whoever waited for a kernel that could not be made tries for itself. */
static void a_failed_load_fails_only_its_own_call(void **state)
{
    (void)state;
    plant_sizes();
    jg_context *c = fixture_open_without_nvrtc();
    fx.fake->delay_loads(50);
    fx.fake->fail_call("cuModuleLoadDataEx", 1, CUDA_ERROR_OUT_OF_MEMORY, FAKE_ONCE);
    pthread_t threads[2];
    runner runners[2];
    pthread_barrier_t start;
    pthread_barrier_init(&start, NULL, 2);
    for (int i = 0; i < 2; i++) {
        runners[i] = (runner){c, &start, 0, 1, NULL, JG_OK};
        assert_int_equal(pthread_create(&threads[i], NULL, run_sizes, &runners[i]), 0);
    }
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&start);
    assert_int_equal(runners[0].status + runners[1].status, JG_ERR_NO_MEMORY); /* one failed, one did not */
    assert_status(jg_close(c), JG_OK);
}

static void many_threads_share_a_context_that_evicts(void **state)
{
    (void)state;
    plant_sizes();
    jg_context *c = open_for_two(JG_COMPILE_WAIT);
    run_threads(c, 1, 60);
    assert_int_equal(fx.fake->calls("cuLaunchKernel"), THREADS * 60);
    assert_status(jg_poll(c, NULL, NULL), JG_OK);
    assert_int_equal(fx.fake->modules(), 2);
    assert_int_equal(fixture_stats(c).compile_failures, 0);
    assert_status(jg_close(c), JG_OK);
}

static void hits_go_on_while_another_thread_loads(void **state)
{
    (void)state;
    plant_sizes();
    jg_context *c = fixture_open_without_nvrtc();
    const jg_problem p = sized(0);
    float a[64] = {0}, b[64] = {0}, out[64];
    const jg_operands data = {.a = a, .b = b, .c = out};
    assert_status(jg_gemm(c, &p, &data), JG_OK);
    fx.fake->delay_loads(300);
    atomic_int done = 0;
    runner loader = {c, NULL, 1, 1, &done, JG_OK};
    pthread_t thread;
    int hits = 0;
    assert_int_equal(pthread_create(&thread, NULL, run_sizes, &loader), 0);
    while (!atomic_load(&done)) {
        if (jg_gemm(c, &p, &data) == JG_OK) hits++;
    }
    pthread_join(thread, NULL);
    assert_int_equal(loader.status, JG_OK);
    assert_true(hits > 100);
    assert_status(jg_close(c), JG_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(the_least_recently_used_kernels_go),
        FIXTURE_TEST(bytes_bound_the_memory_too),
        FIXTURE_TEST(plans_keep_their_kernels),
        FIXTURE_TEST(poll_reports_a_lost_device),
        FIXTURE_TEST(hits_leave_unloading_to_poll),
        FIXTURE_TEST(threads_that_miss_together_compile_once),
        FIXTURE_TEST(a_failed_load_fails_only_its_own_call),
        FIXTURE_TEST(many_threads_share_a_context_that_evicts),
        FIXTURE_TEST(hits_go_on_while_another_thread_loads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
