/* src/recent.c under jg_gemm on the fake driver: which calls are found again, and that what threads remember neither stays loaded
 * for ever nor outlives its context. */
#include "recent_fixture.h"

static size_t generic_count;

static jg_context *open_small(const char *cache, uint32_t max_kernels)
{
    jg_options options = background_options();
    options.resident = JG_RESIDENT_F32;
    options.memory_max_kernels = max_kernels;
    options.cache_path = cache;
    generic_count = plant_generic(cache, JG_RESIDENT_F32);
    return fixture_open_with(options);
}

/* Launches that were found in a thread's memory. */
static uint64_t found(jg_context *c)
{
    uint64_t own, generic;
    recent_sum(c->recent, &own, &generic);
    return own + generic;
}

/* The oracle must agree. */
static void call(jg_context *c, const jg_problem *p)
{
    assert_status(fixture_gemm(c, p, 1, 0), JG_OK);
}

static void a_call_is_found_again(void **state)
{
    (void)state;
    jg_context *c = open_small(fx.cache, 0);
    const jg_problem given = square(8, JG_F32);
    jg_problem p;
    for (int i = 0; i < 5; i++) {
        copy_members(&p, &given, i * 37);
        call(c, &p);
        assert_int_equal(found(c), i);
    }
    const jg_stats s = fixture_stats(c);
    assert_int_equal(s.launches_generic, 5);
    assert_int_equal(s.memory_misses, 1);
    assert_int_equal(s.memory_hits, 4);
    assert_int_equal(s.problems, 1);
    assert_status(jg_close(c), JG_OK);
}

/* All of one place, since their sizes and types of A are equal. */
static void another_member_is_another_call(void **state)
{
    (void)state;
    const jg_problem base = square(8, JG_F32), others[] = {
        {.m = 8, .n = 8, .k = 8, .type_a = JG_F32, .op_a = JG_T},
        {.m = 8, .n = 8, .k = 8, .type_a = JG_F32, .op_b = JG_T},
        {.m = 8, .n = 8, .k = 8, .type_a = JG_F32, .order = JG_COL_MAJOR},
        {.m = 8, .n = 8, .k = 8, .type_a = JG_F32, .lda = 9},
        {.m = 8, .n = 8, .k = 8, .type_a = JG_F32, .ldb = 12},
        {.m = 8, .n = 8, .k = 8, .type_a = JG_F32, .ldc = 10},
        {.m = 8, .n = 8, .k = 8, .type_a = JG_F32, .batch = 3, .stride_c = 64},
        {.m = 8, .n = 8, .k = 8, .type_a = JG_F32, .batch = 3, .stride_a = 64, .stride_c = 64},
        {.m = 8, .n = 8, .k = 8, .type_a = JG_F32, .batch = 3, .stride_b = 65, .stride_c = 64},
        {.m = 8, .n = 8, .k = 8, .type_a = JG_F32, .batch = 3, .stride_c = 80},
        {.m = 8, .n = 8, .k = 8, .type_a = JG_F32, .form = JG_FORM_GENERIC},
        {.m = 8, .n = 8, .k = 8, .type_a = JG_F32, .dynamic = JG_DYNAMIC_M},
        {.m = 8, .n = 8, .k = 8, .type_a = JG_F32, .align_bytes = 4},
        {.m = 8, .n = 8, .k = 8, .type_a = JG_F32, .compile = JG_COMPILE_NEVER},
    };
    jg_context *c = open_small(fx.cache, 0);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        for (int round = 0; round < 2; round++) {
            const uint64_t before = found(c);
            call(c, &base);
            call(c, &others[i]); /* it takes the place */
            assert_int_equal(found(c), before);
            call(c, &others[i]);
            assert_int_equal(found(c), before + 1);
        }
    }
    /* The order of a square, what is promised for plans and the policy make no other problem of it. */
    assert_int_equal(fixture_stats(c).problems, 1 + sizeof others / sizeof others[0] - 3);
    assert_status(jg_close(c), JG_OK);
}

/* A bad member is told also where the rest is remembered. */
static void bad_calls_are_still_refused(void **state)
{
    (void)state;
    jg_context *c = open_small(fx.cache, 0);
    static _Alignas(256) float x[64], y[64], z[64];
    const jg_problem p = square(8, JG_F32);
    jg_problem reserved = p, policy = p;
    reserved.reserved = 1;
    policy.compile = (jg_compile)9;
    for (int i = 0; i < 2; i++) {
        call(c, &p);
        assert_status(jg_gemm(c, &reserved, &(jg_operands){.a = x, .b = y, .c = z}), JG_ERR_VALUE);
        assert_status(jg_gemm(c, &policy, &(jg_operands){.a = x, .b = y, .c = z}), JG_ERR_VALUE);
        assert_status(jg_gemm(c, &p, &(jg_operands){.b = y, .c = z}), JG_ERR_NULL);
        assert_status(jg_gemm(c, &p, &(jg_operands){.a = x, .b = y}), JG_ERR_NULL);
        assert_status(jg_gemm(c, &p, &(jg_operands){.a = (char *)x + 2, .b = y, .c = z}), JG_ERR_MISALIGNED);
        assert_status(jg_gemm(c, &p, &(jg_operands){.a = x, .b = y, .c = (char *)z + 1}), JG_ERR_MISALIGNED);
    }
    /* A launch that fails leaves the thread its place, and is not counted. */
    const uint64_t before = found(c);
    fx.fake->fail_call("cuLaunchKernel", 1, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, FAKE_ONCE);
    assert_status(fixture_gemm(c, &p, 1, 0), JG_ERR_LAUNCH);
    assert_int_equal(found(c), before);
    call(c, &p);
    assert_int_equal(found(c), before + 1);
    assert_status(jg_close(c), JG_OK);
}

/* A launch with operands so many bytes past their alignment, judged. */
static void call_at(jg_context *c, float alpha, size_t a, size_t b, size_t out)
{
    static _Alignas(256) float memory[3][64 + 8];
    const jg_problem p = square(8, JG_F32);
    float *x = memory[0] + a / 4, *y = memory[1] + b / 4, *z = memory[2] + out / 4;
    for (int i = 0; i < 64; i++) x[i] = 1, y[i] = 2, z[i] = -5;
    assert_status(jg_gemm(c, &p, &(jg_operands){.a = alpha == 0 && a ? NULL : x, .b = y, .c = z, .alpha = &alpha}), JG_OK);
    for (int i = 0; i < 64; i++) assert_true(z[i] == 16 * alpha);
}

/* The driver checks that no kernel gets pointers that it cannot take. */
static void other_alignments_are_other_calls(void **state)
{
    (void)state;
    static const size_t offsets[][3] = {{0, 0, 0}, {4, 0, 0}, {0, 4, 0}, {0, 0, 4}, {4, 4, 4}, {8, 8, 8}, {12, 16, 0}};
    enum { CASES = sizeof offsets / sizeof offsets[0] };
    jg_context *c = open_small(fx.cache, 0);
    const jg_problem p = square(8, JG_F32);
    fixture_plant(&p, JG_FORM_AUTO);
    call_at(c, 1, 0, 0, 0);
    settle(c);
    assert_int_equal(poll_once(c).swapped, 1); /* a kernel that needs 16 bytes */
    for (int i = 0; i < CASES; i++)
        for (int j = 0; j < CASES; j++) {
            call_at(c, 1, offsets[i][0], offsets[i][1], offsets[i][2]);
            assert_int_equal(ran_on(&p, JG_FORM_AUTO), i == 0);
            call_at(c, 1, offsets[j][0], offsets[j][1], offsets[j][2]);
            assert_int_equal(ran_on(&p, JG_FORM_AUTO), j == 0);
        }
    assert_true(found(c) > 0);
    assert_status(jg_close(c), JG_OK);
}

/* alpha = 0 reads neither A nor B, wherever they are; what comes after it does. */
static void without_alpha_the_operands_do_not_matter(void **state)
{
    (void)state;
    static _Alignas(256) float x[64];
    const float zero = 0;
    const jg_problem p = square(8, JG_F32);
    jg_context *c = open_small(fx.cache, 0);
    fixture_plant(&p, JG_FORM_AUTO);
    call_at(c, 1, 0, 0, 0);
    settle(c);
    assert_int_equal(poll_once(c).swapped, 1);
    for (int i = 0; i < 3; i++) {
        call_at(c, 0, 0, 0, 0);
        call_at(c, 1, 4, 4, 0);
        call_at(c, 0, 4, 4, 0); /* A is null */
        assert_true(ran_on(&p, JG_FORM_AUTO));
        call_at(c, 1, 0, 0, 0);
        call_at(c, 2, 0, 0, 0);
        call_at(c, 0, 4, 0, 0);
        const uint64_t before = found(c);
        assert_status(jg_gemm(c, &p, &(jg_operands){.a = (char *)x + 1, .b = (char *)x + 2, .c = x, .alpha = &zero}), JG_OK);
        assert_int_equal(found(c), before + 1);
        assert_true(ran_on(&p, JG_FORM_AUTO));
        call_at(c, 1, 0, 4, 0);
    }
    assert_int_equal(fixture_stats(c).problems, 3);
    assert_status(jg_close(c), JG_OK);
}

static void provisional_calls_go_over(void **state)
{
    (void)state;
    const jg_problem p = square(8, JG_F32);
    jg_context *c = open_small(fx.cache, 0);
    fixture_plant(&p, JG_FORM_AUTO);
    call(c, &p);
    call(c, &p);
    assert_true(ran_on(&p, JG_FORM_GENERIC));
    assert_int_equal(found(c), 1);
    settle(c);
    assert_int_equal(poll_once(c).swapped, 1);
    call(c, &p);
    assert_true(ran_on(&p, JG_FORM_AUTO));
    assert_int_equal(found(c), 2);
    const jg_stats s = fixture_stats(c);
    assert_int_equal(s.launches_generic, 2);
    assert_int_equal(s.launches_own, 1);
    assert_status(jg_close(c), JG_OK);
}

/* In waiting mode a call puts up with a generic kernel only while its stream is being captured. */
static void a_captured_call_is_not_content_for_ever(void **state)
{
    (void)state;
    static int a_stream;
    static _Alignas(256) float x[64], y[64];
    const CUstream stream = (CUstream)&a_stream;
    const jg_problem p = square(8, JG_F32);
    const jg_operands data = {.a = x, .b = x, .c = y, .stream = stream};
    jg_options options = background_options();
    options.compile = JG_COMPILE_WAIT;
    options.resident = JG_RESIDENT_F32;
    plant_generic(fx.cache, JG_RESIDENT_F32);
    fixture_plant(&p, JG_FORM_AUTO);
    jg_context *c = fixture_open_with(options);
    fx.fake->set_capturing(stream, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    for (int i = 0; i < 2; i++) {
        assert_status(jg_gemm(c, &p, &data), JG_OK);
        assert_true(ran_on(&p, JG_FORM_GENERIC));
        assert_int_equal(found(c), i);
    }
    fx.fake->set_capturing(stream, CU_STREAM_CAPTURE_STATUS_NONE);
    assert_status(jg_gemm(c, &p, &data), JG_OK);
    assert_true(ran_on(&p, JG_FORM_AUTO));
    assert_int_equal(fixture_stats(c).waits, 1);
    assert_status(jg_close(c), JG_OK);
}

static void what_is_remembered_can_be_evicted(void **state)
{
    (void)state;
    const jg_problem p = square(8, JG_F32);
    jg_context *c = open_small(fx.cache, 1);
    fixture_plant(&p, JG_FORM_AUTO);
    for (int round = 0; round < 3; round++) {
        call(c, &p);
        assert_true(ran_on(&p, JG_FORM_GENERIC));
        settle(c);
        jg_poll_result r;
        assert_status(jg_poll(c, &(jg_poll_limits){.max_kernels = 1, .max_ms = 1e9}, &r), JG_OK);
        assert_int_equal(r.loaded, 1);
        const uint64_t before = found(c);
        call(c, &p);
        assert_true(ran_on(&p, JG_FORM_AUTO));
        assert_int_equal(found(c), before + 1);
        assert_int_equal(poll_once(c).unloaded, 1);
        assert_int_equal(fx.fake->modules(), generic_count);
    }
    assert_status(jg_close(c), JG_OK);
}

/* A call that waits evicts what this very thread remembers. */
static void waiting_calls_evict_what_their_thread_remembers(void **state)
{
    (void)state;
    const jg_problem list[] = {square(8, JG_F32), square(9, JG_F32), square(10, JG_F32)};
    for (int i = 0; i < 3; i++) fixture_plant(&list[i], JG_FORM_AUTO);
    jg_options options = background_options();
    options.compile = JG_COMPILE_WAIT;
    options.memory_max_kernels = 1;
    jg_context *c = fixture_open_with(options);
    for (int i = 0; i < 9; i++) {
        for (int j = 0; j < 2; j++) {
            call(c, &list[i % 3]);
            assert_true(ran_on(&list[i % 3], JG_FORM_AUTO));
            assert_int_equal(fx.fake->modules(), 1);
        }
        assert_int_equal(found(c), i + 1);
    }
    assert_status(jg_close(c), JG_OK);
}

static void contexts_remember_apart(void **state)
{
    (void)state;
    const char *other = scratch_path(fx.folder, "other.db");
    const jg_problem p = square(8, JG_F32), list[] = {square(9, JG_F32), square(10, JG_F32)};
    jg_context *first = open_small(fx.cache, 0), *second = open_small(other, 0);
    fixture_plant(&p, JG_FORM_AUTO);
    for (int i = 0; i < 3; i++) {
        call(first, &p);
        call(second, &p);
    }
    settle(first);
    assert_int_equal(poll_once(first).swapped, 1);
    call(first, &p);
    assert_true(ran_on(&p, JG_FORM_AUTO));
    call(second, &p);
    assert_true(ran_on(&p, JG_FORM_GENERIC));
    assert_status(jg_close(first), JG_OK);
    call(second, &p); /* the first one's modules are gone: the driver would tell */
    call(second, &list[0]);
    jg_context *third = open_small(fx.cache, 0);
    for (int i = 0; i < 3; i++) {
        call(third, &list[i & 1]);
        call(third, &p);
        call(second, &p);
    }
    assert_int_equal(fixture_stats(third).launches_own + fixture_stats(third).launches_generic, 6);
    assert_status(jg_close(second), JG_OK);
    call(third, &p);
    assert_status(jg_close(third), JG_OK);
}

static void the_cpu_device_remembers_nothing(void **state)
{
    (void)state;
    const jg_problem p = square(8, JG_F32);
    jg_options options = background_options();
    options.device = JG_DEVICE_CPU;
    jg_context *c = fixture_open_with(options);
    assert_null(c->recent);
    call(c, &p);
    call(c, &p);
    assert_status(jg_close(c), JG_OK);
}

/* --- more threads than slots, while others are forgotten --- */

enum { THREADS = RECENT_SLOTS + 16, SIZES = 4, ROUNDS = 12 };

static struct {
    jg_context *context;
    pthread_barrier_t start;
    atomic_int running, failures;
} crowd;

static void *call_in_crowd(void *argument)
{
    const int number = *(int *)argument;
    float x[12 * 12], y[12 * 12];
    for (int i = 0; i < 12 * 12; i++) x[i] = 1;
    pthread_barrier_wait(&crowd.start);
    for (int round = 0; round < ROUNDS; round++)
        for (int twice = 0; twice < 2; twice++) {
            const jg_problem p = square(8 + (number + round) % SIZES, JG_F32);
            memset(y, 0, sizeof y);
            int bad = jg_gemm(crowd.context, &p, &(jg_operands){.a = x, .b = x, .c = y}) != JG_OK;
            for (int i = 0; i < p.m * p.n; i++) bad |= y[i] != (float)p.k;
            if (bad) atomic_fetch_add(&crowd.failures, 1);
        }
    atomic_fetch_sub(&crowd.running, 1);
    return NULL;
}

static void more_threads_than_slots_work(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    int numbers[THREADS];
    generic_count = plant_generic(fx.cache, JG_RESIDENT_F32);
    crowd.context = open_small(fx.cache, (uint32_t)generic_count + 2);
    plant_squares(8, SIZES, JG_F32);
    atomic_store(&crowd.running, THREADS);
    pthread_barrier_init(&crowd.start, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        assert_int_equal(pthread_create(&threads[i], NULL, call_in_crowd, &numbers[i]), 0);
    }
    while (atomic_load(&crowd.running)) assert_status(jg_poll(crowd.context, &(jg_poll_limits){2, 1e9}, NULL), JG_OK);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&crowd.start);
    assert_int_equal(atomic_load(&crowd.failures), 0);
    const jg_stats s = fixture_stats(crowd.context);
    assert_int_equal(s.launches_own + s.launches_generic, THREADS * ROUNDS * 2);
    assert_int_equal(LAUNCHES(), THREADS * ROUNDS * 2);
    settle(crowd.context);
    for (jg_poll_result r = {.loaded = 1}; r.loaded + r.unloaded;) r = poll_once(crowd.context);
    assert_int_equal(fx.fake->modules(), generic_count + 2); /* nobody's memory holds more */
    assert_status(jg_close(crowd.context), JG_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BACKGROUND_TEST(a_call_is_found_again),
        BACKGROUND_TEST(another_member_is_another_call),
        BACKGROUND_TEST(bad_calls_are_still_refused),
        BACKGROUND_TEST(other_alignments_are_other_calls),
        BACKGROUND_TEST(without_alpha_the_operands_do_not_matter),
        BACKGROUND_TEST(provisional_calls_go_over),
        BACKGROUND_TEST(a_captured_call_is_not_content_for_ever),
        BACKGROUND_TEST(what_is_remembered_can_be_evicted),
        BACKGROUND_TEST(waiting_calls_evict_what_their_thread_remembers),
        BACKGROUND_TEST(contexts_remember_apart),
        BACKGROUND_TEST(the_cpu_device_remembers_nothing),
        BACKGROUND_TEST(more_threads_than_slots_work),
    };
    return cmocka_run_group_tests_name("recent_calls", tests, NULL, NULL);
}
