/* src/launch.c: what launch_prepare packs, how launch_kernel shapes a launch, and what its errors become. */
#include "gemm_fixture.h"

enum { TRANS_A = 1, TRANS_B = 2, VEC_A = 4, VEC_B = 8, VEC_C = 64 };

static const problem full = {.m = 100, .n = 70, .k = 50, .batch = 3, .lda = 104, .ldb = 72, .ldc = 80, .stride_a = 6000,
                             .stride_b = 4000, .stride_c = 9000, .type_a = JG_F16, .type_b = JG_F16, .type_c = JG_BF16};

static void prepare_packs_sizes_and_strides(void **state)
{
    (void)state;
    const plan chosen = {.access = {2, 2, 0}};
    launch_args args;
    memset(&args, 0xff, sizeof args);
    launch_prepare(&full, &chosen, &args);
    const launch_args expected = {.lda = 104, .ldb = 72, .ldc = 80, .stride_a = 6000, .stride_b = 4000, .stride_c = 9000,
                                  .m = 100, .n = 70, .k = 50, .batch = 3, .flags = JG_BF16 << 4};
    assert_memory_equal(&args, &expected, sizeof args);
}

static void prepare_packs_each_flag(void **state)
{
    (void)state;
    static const struct {
        jg_op op_a, op_b;
        jg_type type_c;
        access_widths access;
        uint32_t flags;
    } rows[] = {
        {JG_N, JG_N, JG_F32, {4, 4, 0}, 1 << 4},
        {JG_T, JG_N, JG_F32, {4, 4, 0}, 1 << 4 | TRANS_A},
        {JG_N, JG_T, JG_F16, {2, 2, 0}, 2 << 4 | TRANS_B},
        {JG_N, JG_N, JG_BF16, {16, 8, 0}, 3 << 4 | VEC_A},
        {JG_N, JG_N, JG_BF16, {8, 16, 0}, 3 << 4 | VEC_B},
        {JG_N, JG_N, JG_F32, {4, 4, 1}, 1 << 4 | VEC_C},
        {JG_T, JG_T, JG_BF16, {16, 16, 1}, 3 << 4 | TRANS_A | TRANS_B | VEC_A | VEC_B | VEC_C},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        problem p = full;
        p.op_a = (uint8_t)rows[i].op_a;
        p.op_b = (uint8_t)rows[i].op_b;
        p.type_c = (uint8_t)rows[i].type_c;
        const plan chosen = {.access = rows[i].access};
        launch_args args;
        launch_prepare(&p, &chosen, &args);
        assert_int_equal(args.flags, rows[i].flags);
    }
}

/* --- launches, through a context --- */

static _Alignas(256) float a[64 * 64], b[64 * 64], c[64 * 64];
static const jg_operands data = {.a = a, .b = b, .c = c};

static jg_context *open_ready(const jg_problem *p)
{
    fixture_plant(p, JG_FORM_AUTO);
    jg_context *context = fixture_open_without_nvrtc();
    assert_status(jg_gemm(context, p, &data), JG_OK);
    return context;
}

/* More items than a grid has rows: the kernel walks them. */
static void the_grid_is_bounded(void **state)
{
    (void)state;
    static float many[70000];
    const jg_problem p = {.m = 1, .n = 1, .k = 1, .batch = 70000, .stride_c = 1};
    fixture_plant(&p, JG_FORM_AUTO);
    jg_context *context = fixture_open_without_nvrtc();
    a[0] = 3;
    b[0] = 5;
    assert_status(jg_gemm(context, &p, &(jg_operands){.a = a, .b = b, .c = many}), JG_OK);
    fake_launch l = fx.fake->last_launch();
    assert_int_equal(l.grid[0], 1);
    assert_int_equal(l.grid[1], 65535);
    assert_int_equal(l.args.batch, 70000);
    assert_true(many[69999] == 15);
    assert_status(jg_close(context), JG_OK);
}

static void launch_errors_become_statuses(void **state)
{
    (void)state;
    static const struct {
        CUresult result;
        jg_status status;
    } rows[] = {
        {CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, JG_ERR_LAUNCH},
        {CUDA_ERROR_INVALID_VALUE, JG_ERR_LAUNCH},
        {CUDA_ERROR_OUT_OF_MEMORY, JG_ERR_NO_MEMORY},
    };
    const jg_problem p = square(16, JG_F32);
    jg_context *context = open_ready(&p);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        fx.fake->fail_call("cuLaunchKernel", 1, rows[i].result, FAKE_ONCE);
        assert_status(jg_gemm(context, &p, &data), rows[i].status);
        assert_false(jg_status_is_fatal(rows[i].status));
        assert_says(jg_last_error(), fixture_name(&p, JG_FORM_AUTO));
        assert_int_equal(fx.fake->depth(), 0);
        assert_status(jg_gemm(context, &p, &data), JG_OK); /* recoverable */
    }
    assert_status(jg_close(context), JG_OK);
}

static void a_sticky_error_is_the_end_of_the_context(void **state)
{
    (void)state;
    const jg_problem p = square(16, JG_F32);
    jg_context *context = open_ready(&p);
    jg_plan *made;
    assert_status(jg_plan_create(context, &p, &made), JG_OK);
    fx.fake->fail_call("cuLaunchKernel", 1, CUDA_ERROR_ILLEGAL_ADDRESS, FAKE_EVERYWHERE);
    assert_status(jg_gemm(context, &p, &data), JG_ERR_DEVICE_LOST);
    assert_says(jg_last_error(), "CUDA_ERROR_ILLEGAL_ADDRESS");
    assert_says(jg_last_error(), "close and open again");
    assert_true(jg_status_is_fatal(JG_ERR_DEVICE_LOST));
    assert_status(jg_plan_run(made, &data), JG_ERR_DEVICE_LOST);
    assert_status(jg_synchronize(context, NULL), JG_ERR_DEVICE_LOST);
    assert_int_equal(fx.fake->depth(), 0);
    jg_plan_destroy(made);
    assert_status(jg_close(context), JG_OK); /* closing works all the same */
    assert_int_equal(fx.fake->primary_references(), 0);
    fx.fake->reset(); /* the modules of a lost context go with it */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prepare_packs_sizes_and_strides), cmocka_unit_test(prepare_packs_each_flag),
        FIXTURE_TEST(the_grid_is_bounded), FIXTURE_TEST(launch_errors_become_statuses),
        FIXTURE_TEST(a_sticky_error_is_the_end_of_the_context),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
