/* src/prewarm.c: which kernels a list comes down to, what the progress callback is told, and that failures and a stop leave
 * the rest as it should be. Most kernels are planted; few are compiled. */
#include "gemm_fixture.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#define MOST 128

/* What the callback saw. */
typedef struct record {
    size_t count, total;
    int stop_after; /* 0: never */
    atomic_int inside;
    int overlapped, disordered, misreported;
    size_t outcomes[3], generics;
    char problems[MOST][64], kernels[MOST][KERNEL_NAME_BYTES], error[1024];
    pthread_t threads[MOST];
    double ms;
} record;

static int watch(void *user, const jg_progress *p)
{
    record *r = user;
    if (atomic_fetch_add(&r->inside, 1) != 0) r->overlapped = 1;
    nanosleep(&(struct timespec){0, 200000}, NULL); /* a chance to overlap */
    if (p->done != r->count + 1 || p->done > p->total || (r->total && r->total != p->total)) r->disordered = 1;
    if ((p->outcome == JG_FAILED) != (p->error[0] != 0) || (p->outcome != JG_COMPILED && p->ms != 0)) r->misreported = 1;
    r->total = p->total;
    if (r->count < MOST) {
        snprintf(r->problems[r->count], sizeof r->problems[0], "%s", p->problem);
        snprintf(r->kernels[r->count], sizeof r->kernels[0], "%s", p->kernel);
        r->threads[r->count] = pthread_self();
    }
    if (p->outcome == JG_FAILED) snprintf(r->error, sizeof r->error, "%s", p->error);
    r->outcomes[p->outcome]++;
    r->generics += strcmp(p->problem, "generic") == 0;
    r->ms += p->ms;
    r->count++;
    atomic_fetch_sub(&r->inside, 1);
    return r->stop_after && r->count >= (size_t)r->stop_after;
}

static void assert_sound(const record *r, size_t total)
{
    assert_int_equal(r->total, total);
    assert_int_equal(r->count, total);
    assert_false(r->overlapped);
    assert_false(r->disordered);
    assert_false(r->misreported);
}

static jg_prewarm_options watched(record *r, uint32_t jobs)
{
    memset(r, 0, sizeof *r);
    return (jg_prewarm_options){.jobs = jobs, .progress = watch, .user = r};
}

/* A build host: no device, and nothing may be compiled. */
static jg_context *open_host(jg_compile policy, int sm_count)
{
    return fixture_open_with(
        (jg_options){.device = JG_DEVICE_CPU, .arch = 87, .sm_count = sm_count, .compile = policy, .cache_path = fx.cache});
}

static void nulls_are_refused_or_accepted(void **state)
{
    (void)state;
    jg_context *c = open_host(JG_COMPILE_NEVER, 16);
    jg_prewarm_result result = {1, 2, 3};
    assert_status(jg_prewarm(NULL, NULL, 0, NULL, &result), JG_ERR_NULL);
    assert_int_equal(result.compiled + result.cached + result.failed, 0);
    assert_says(jg_last_error(), "context is null");
    assert_status(jg_prewarm(c, NULL, 1, NULL, NULL), JG_ERR_NULL);
    assert_says(jg_last_error(), "problems is null");
    const jg_problem p = square(8, JG_F32);
    fixture_plant(&p, JG_FORM_AUTO);
    assert_status(jg_prewarm(c, &p, 1, NULL, NULL), JG_OK);
    assert_status(jg_close(c), JG_OK);
}

/* With compiling off every kernel is asked for and fails, which shows the list without 32 compiles. */
static void no_list_means_the_common_sizes(void **state)
{
    (void)state;
    jg_context *c = open_host(JG_COMPILE_NEVER, 16);
    record r;
    jg_prewarm_result result;
    jg_prewarm_options options = watched(&r, 2);
    assert_status(jg_prewarm(c, NULL, 0, &options, &result), JG_ERR_NOT_READY);
    assert_sound(&r, 32);
    assert_int_equal(result.failed, 32);
    for (int size = 64; size <= 1024; size += 64) {
        for (int half = 0; half < 2; half++) {
            char text[64];
            int found = 0;
            snprintf(text, sizeof text, half ? "%d:f16" : "%d", size);
            for (size_t i = 0; i < r.count; i++) found += strcmp(r.problems[i], text) == 0;
            if (found != 1) fail_msg("%s: %d times", text, found);
        }
    }
    assert_status(jg_close(c), JG_OK);
}

static void equal_kernels_are_made_once(void **state)
{
    (void)state;
    const jg_problem p = square(24, JG_F32);
    jg_problem transposed = p, packed = p;
    transposed.order = JG_COL_MAJOR; /* the same product with A and B changing places */
    packed.lda = packed.ldb = packed.ldc = 24;
    packed.batch = 1;
    const jg_problem list[] = {p, transposed, packed, p, {.m = 0, .n = 3, .k = 3}};
    fixture_plant(&p, JG_FORM_AUTO);
    jg_context *c = open_host(JG_COMPILE_NEVER, 16);
    record r;
    jg_prewarm_result result;
    jg_prewarm_options options = watched(&r, 2);
    assert_status(jg_prewarm(c, list, 5, &options, &result), JG_OK);
    assert_sound(&r, 1);
    assert_int_equal(result.cached, 1);
    assert_string_equal(r.problems[0], "24");
    assert_string_equal(r.kernels[0], fixture_name(&p, JG_FORM_AUTO));
    assert_status(jg_prewarm(c, &list[4], 1, &options, &result), JG_OK); /* nothing to compute, nothing to make */
    assert_int_equal(result.compiled + result.cached + result.failed, 0);
    assert_status(jg_close(c), JG_OK);
}

static void a_failure_does_not_stop_the_others(void **state)
{
    (void)state;
    const jg_problem list[] = {square(8, JG_F32), {.m = 9, .n = 9, .k = 9, .lda = 2}, square(16, JG_F32), square(40, JG_F32)};
    fixture_plant(&list[0], JG_FORM_AUTO);
    fixture_plant(&list[2], JG_FORM_AUTO);
    jg_context *c = open_host(JG_COMPILE_NEVER, 16);
    record r;
    jg_prewarm_result result;
    jg_prewarm_options options = watched(&r, 1);
    assert_status(jg_prewarm(c, list, 4, &options, &result), JG_ERR_LEADING_DIMENSION); /* the first failure's */
    assert_says(jg_last_error(), "lda = 2");
    assert_sound(&r, 4);
    assert_int_equal(result.cached, 2);
    assert_int_equal(result.failed, 2);
    assert_int_equal(result.compiled, 0);
    assert_string_equal(r.kernels[1], ""); /* no plan, no name */
    assert_says(r.error, "not cached");
    assert_status(jg_close(c), JG_OK);
}

static void plant_many(jg_problem *list, int count)
{
    for (int i = 0; i < count; i++) {
        list[i] = (jg_problem){.m = 4 + i, .n = 4, .k = 4};
        fixture_plant(&list[i], JG_FORM_AUTO);
    }
}

static size_t distinct_threads(const record *r)
{
    size_t count = 0;
    for (size_t i = 0; i < r->count; i++) {
        size_t j = 0;
        while (j < i && !pthread_equal(r->threads[j], r->threads[i])) j++;
        count += j == i;
    }
    return count;
}

static void jobs_work_side_by_side_and_report_in_turn(void **state)
{
    (void)state;
    jg_problem list[16];
    plant_many(list, 16);
    jg_context *c = fixture_open_without_nvrtc();
    jg_context *again = fixture_open_without_nvrtc();
    fx.fake->delay_loads(5);
    record r;
    jg_prewarm_result result;
    jg_prewarm_options options = watched(&r, 4);
    assert_status(jg_prewarm(c, list, 16, &options, &result), JG_OK);
    assert_sound(&r, 16);
    assert_int_equal(result.cached, 16);
    assert_in_range(distinct_threads(&r), 2, 4);
    options = watched(&r, 1);
    assert_status(jg_prewarm(again, list, 16, &options, &result), JG_OK);
    assert_sound(&r, 16);
    assert_int_equal(distinct_threads(&r), 1);
    assert_false(pthread_equal(r.threads[0], pthread_self()));
    assert_status(jg_close(c), JG_OK);
    assert_status(jg_close(again), JG_OK);
}

/* On a CUDA device everything is loaded, and remembered for its problem, so the first call is a hit. */
static void prewarmed_kernels_are_loaded(void **state)
{
    (void)state;
    jg_problem list[4];
    plant_many(list, 4);
    jg_context *c = fixture_open_without_nvrtc();
    CUcontext mine = fx.fake->make_context();
    fx.fake->push(mine);
    assert_status(jg_prewarm(c, list, 4, NULL, NULL), JG_OK);
    assert_ptr_equal(fx.fake->current(), mine);
    assert_int_equal(fx.fake->depth(), 1);
    fx.fake->pop();
    assert_int_equal(fx.fake->modules(), 4);
    for (int i = 0; i < 4; i++) assert_status(fixture_gemm(c, &list[i], 1, 0), JG_OK);
    jg_stats s = fixture_stats(c);
    assert_int_equal(s.memory_hits, 4);
    assert_int_equal(s.memory_misses, 0);
    assert_int_equal(fx.fake->calls("cuModuleLoadDataEx"), 4);
    assert_status(jg_close(c), JG_OK);
}

static void a_load_that_fails_is_reported(void **state)
{
    (void)state;
    jg_problem list[3];
    plant_many(list, 3);
    jg_context *c = fixture_open_without_nvrtc();
    record r;
    jg_prewarm_result result;
    jg_prewarm_options options = watched(&r, 1);
    fx.fake->fail_call("cuModuleLoadDataEx", 2, CUDA_ERROR_OUT_OF_MEMORY, FAKE_ONCE);
    assert_status(jg_prewarm(c, list, 3, &options, &result), JG_ERR_NO_MEMORY);
    assert_sound(&r, 3);
    assert_int_equal(result.cached, 2);
    assert_int_equal(result.failed, 1);
    assert_says(r.error, "CUDA_ERROR_OUT_OF_MEMORY");
    assert_says(jg_last_error(), "5x4x4"); /* which one */
    assert_status(jg_close(c), JG_OK);
}

static void a_stop_keeps_what_is_finished(void **state)
{
    (void)state;
    NEEDS_NVRTC();
    const jg_problem list[] = {square(8, JG_F32), square(16, JG_F32), square(24, JG_F32)};
    jg_context *c = open_host(JG_COMPILE_WAIT, 16);
    record r;
    jg_prewarm_result result;
    jg_prewarm_options options = watched(&r, 1);
    r.stop_after = 1;
    assert_status(jg_prewarm(c, list, 3, &options, &result), JG_ERR_CANCELLED);
    assert_says(jg_last_error(), "1 of 3");
    assert_int_equal(r.count, 1);
    assert_int_equal(r.total, 3);
    assert_int_equal(result.compiled, 1);
    assert_true(r.ms > 0);
    jg_stats s = fixture_stats(c);
    assert_int_equal(s.disk_entries, 1);
    assert_int_equal(s.compiles, 1);
    assert_status(jg_close(c), JG_OK);

    /* What the build host made, the device finds. */
    c = fixture_open_without_nvrtc();
    assert_status(fixture_gemm(c, &list[0], 1, 0), JG_OK);
    assert_int_equal(fixture_stats(c).disk_hits, 1);
    assert_status(jg_close(c), JG_OK);
}

static void count_spec(void *user, const kernel_spec *spec)
{
    (void)spec;
    ++*(size_t *)user;
}

static void the_generic_set_is_small_and_by_type(void **state)
{
    (void)state;
    const jg_problem list[] = {square(64, JG_F32), square(64, JG_F16)};
    limits l;
    size_t f32 = 0, f16 = 0;
    assert_status(limits_of_arch(87, 16, &l), JG_OK);
    plan_generic_set(&(plan_class){JG_F32, JG_F32, JG_MATH_DEFAULT, 0}, &l, count_spec, &f32);
    plan_generic_set(&(plan_class){JG_F16, JG_F16, JG_MATH_DEFAULT, 0}, &l, count_spec, &f16);
    assert_true(f32 > 0 && f16 > 0);
    jg_context *c = open_host(JG_COMPILE_NEVER, 16);
    for (size_t count = 1; count <= 2; count++) {
        record r;
        jg_prewarm_options options = watched(&r, 2);
        options.generic_set = 1;
        assert_status(jg_prewarm(c, list, count, &options, NULL), JG_ERR_NOT_READY);
        assert_sound(&r, count + f32 + (count > 1 ? f16 : 0));
        assert_int_equal(r.generics, r.total - count);
        assert_true(r.generics <= 40);
        for (size_t i = 0; i < r.count; i++)
            for (size_t j = 0; j < i; j++) assert_string_not_equal(r.kernels[i], r.kernels[j]);
    }
    assert_status(jg_close(c), JG_OK);
}

/* Types asked for bring their sets without any problem; no flag but those of classes is taken. */
static void types_bring_their_generic_sets(void **state)
{
    (void)state;
    static const struct {
        uint32_t types;
        size_t kernels;
    } rows[] = {
        {JG_RESIDENT_F32, 7},    {JG_RESIDENT_F16, 20},    {JG_RESIDENT_BF16, 20}, {JG_RESIDENT_S8, 17},
        {JG_RESIDENT_U8, 34},    {JG_RESIDENT_S4, 2},      {JG_RESIDENT_E4M3, 2},  {JG_RESIDENT_TF32, 12},
        {JG_RESIDENT_3XTF32, 8}, {PLAN_RESIDENT_ALL, 244}, {JG_RESIDENT_F16 | JG_RESIDENT_GROUPED, 40},
    };
    jg_context *c = open_host(JG_COMPILE_NEVER, 16);
    record r;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        jg_prewarm_options options = watched(&r, 2);
        options.types = rows[i].types;
        assert_status(jg_prewarm(c, NULL, 0, &options, NULL), JG_ERR_NOT_READY);
        assert_sound(&r, rows[i].kernels);
        assert_int_equal(r.generics, rows[i].kernels);
    }
    for (int bit = 0; bit < 32; bit++) {
        if (PLAN_RESIDENT_ALL >> bit & 1) continue;
        jg_prewarm_options options = watched(&r, 2);
        options.types = 1u << bit | JG_RESIDENT_F32;
        char expected[40];
        snprintf(expected, sizeof expected, "types is 0x%x;", 1u << bit | JG_RESIDENT_F32);
        assert_status(jg_prewarm(c, NULL, 0, &options, NULL), JG_ERR_VALUE);
        assert_says(jg_last_error(), expected);
        assert_int_equal(r.count, 0);
    }
    assert_status(jg_close(c), JG_OK);
}

/* Whoever stops in the middle has what serves every size; the rest is as it was listed. */
static void generic_kernels_come_first(void **state)
{
    (void)state;
    static const char *const expected[] = {"40:generic", "generic", "generic", "56", "40"};
    const jg_problem list[] = {square(56, JG_F32), square(40, JG_F32), {.m = 40, .n = 40, .k = 40, .form = JG_FORM_GENERIC}};
    jg_context *c = open_host(JG_COMPILE_NEVER, 16);
    record r;
    jg_prewarm_options options = watched(&r, 1);
    options.types = JG_RESIDENT_S4;
    assert_status(jg_prewarm(c, list, 3, &options, NULL), JG_ERR_NOT_READY);
    assert_sound(&r, 5);
    for (int i = 0; i < 5; i++) assert_string_equal(r.problems[i], expected[i]);
    assert_status(jg_close(c), JG_OK);
}

/* The sets of a list are those of its types and math, each once, whatever is fused in. */
static void the_generic_set_follows_types_and_math(void **state)
{
    (void)state;
    jg_problem list[] = {
        {.m = 64, .n = 64, .k = 64, .math = JG_MATH_STRICT}, /* 2 */
        {.m = 32, .n = 64, .k = 64, .math = JG_MATH_STRICT, .epilogue = JG_EPILOGUE_SCALE_M, .activation = JG_ACTIVATION_RELU},
        {.m = 64, .n = 64, .k = 64, .type_a = JG_F16, .type_b = JG_S4, .group_k = 32}, /* 2 */
        {.m = 64, .n = 64, .k = 64, .type_a = JG_F16, .type_b = JG_S4},
        {.m = 64, .n = 64, .k = 64, .type_a = JG_F16, .type_b = JG_S4, .order = JG_COL_MAJOR}, /* 2: the operands change places
                                                                                                */
        {.m = 64, .n = 64, .k = 64, .type_a = JG_S8, .type_b = JG_U8, .type_c = JG_S8, .epilogue = JG_EPILOGUE_REQUANTIZE}, /* 17
                                                                                                                             */
    };
    jg_context *c = open_host(JG_COMPILE_NEVER, 16);
    record r;
    jg_prewarm_options options = watched(&r, 2);
    options.generic_set = 1;
    assert_status(jg_prewarm(c, list, 6, &options, NULL), JG_ERR_NOT_READY);
    assert_sound(&r, 6 + 2 + 2 + 2 + 17);
    assert_int_equal(r.generics, 2 + 2 + 2 + 17);
    assert_status(jg_close(c), JG_OK);
}

/* The number of SMs decides tiles, so a build host must be able to say it. */
static void a_build_host_plans_for_the_chip_it_is_told(void **state)
{
    (void)state;
    const jg_problem p = {.m = 512, .n = 512, .k = 512, .type_a = JG_F16};
    char names[2][KERNEL_NAME_BYTES];
    for (int i = 0; i < 2; i++) {
        jg_context *c = open_host(JG_COMPILE_NEVER, i ? 132 : 2);
        record r;
        jg_prewarm_options options = watched(&r, 1);
        assert_status(jg_prewarm(c, &p, 1, &options, NULL), JG_ERR_NOT_READY);
        memcpy(names[i], r.kernels[0], sizeof names[i]);
        assert_ptr_equal(strstr(names[i], "jg_sm87_mma_"), names[i]);
        assert_status(jg_close(c), JG_OK);
    }
    assert_string_not_equal(names[0], names[1]);
}

static void without_nvrtc_each_kernel_fails_and_says_why(void **state)
{
    (void)state;
    const jg_problem list[] = {square(8, JG_F32), square(16, JG_F32)};
    jg_context *c = fixture_open_without_nvrtc();
    record r;
    jg_prewarm_options options = watched(&r, 2);
    assert_status(jg_prewarm(c, list, 2, &options, NULL), JG_ERR_NO_NVRTC);
    assert_sound(&r, 2);
    assert_int_equal(r.outcomes[JG_FAILED], 2);
    assert_says(r.error, "/nonexistent/libnvrtc.so");
    assert_status(jg_close(c), JG_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(nulls_are_refused_or_accepted), FIXTURE_TEST(no_list_means_the_common_sizes),
        FIXTURE_TEST(equal_kernels_are_made_once), FIXTURE_TEST(a_failure_does_not_stop_the_others),
        FIXTURE_TEST(jobs_work_side_by_side_and_report_in_turn), FIXTURE_TEST(prewarmed_kernels_are_loaded),
        FIXTURE_TEST(a_load_that_fails_is_reported), FIXTURE_TEST(a_stop_keeps_what_is_finished),
        FIXTURE_TEST(the_generic_set_is_small_and_by_type), FIXTURE_TEST(types_bring_their_generic_sets),
        FIXTURE_TEST(generic_kernels_come_first),
        FIXTURE_TEST(the_generic_set_follows_types_and_math), FIXTURE_TEST(a_build_host_plans_for_the_chip_it_is_told),
        FIXTURE_TEST(without_nvrtc_each_kernel_fails_and_says_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
