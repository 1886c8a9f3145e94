/* src/launch.c: what launch_prepare packs, how launch_kernel shapes a launch, and what its errors become. */
#include "gemm_fixture.h"

enum { TRANS_A = 1, TRANS_B = 2, VEC_A = 4, VEC_B = 8, VEC_C = 16 };

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
                                  .m = 100, .n = 70, .k = 50, .batch = 3, .fusion = JG_BF16 << 12};
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
        {JG_N, JG_N, JG_F32, {4, 4, 0}, 0},
        {JG_T, JG_N, JG_F32, {4, 4, 0}, TRANS_A},
        {JG_N, JG_T, JG_F16, {2, 2, 0}, TRANS_B},
        {JG_N, JG_N, JG_BF16, {16, 8, 0}, VEC_A},
        {JG_N, JG_N, JG_BF16, {8, 16, 0}, VEC_B},
        {JG_N, JG_N, JG_F32, {4, 4, 1}, VEC_C},
        {JG_N, JG_N, JG_E5M2, {1, 1, 1}, VEC_C},
        {JG_T, JG_T, JG_BF16, {16, 16, 1}, TRANS_A | TRANS_B | VEC_A | VEC_B | VEC_C},
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
        assert_int_equal(args.fusion, rows[i].type_c << 12);
    }
}

static problem canonical(jg_problem in)
{
    problem p;
    if (problem_canonicalise(&in, &p) != JG_OK) FIXTURE_FAIL("%s", jg_last_error());
    return p;
}

static const plan narrow = {.access = {2, 2, 0}};

static void prepare_packs_what_is_fused(void **state)
{
    (void)state;
    launch_args args;
    problem p = canonical((jg_problem){.m = 10,
                                       .n = 20,
                                       .k = 30,
                                       .batch = 2,
                                       .stride_a = 300,
                                       .stride_c = 200,
                                       .type_a = JG_F16,
                                       .type_c = JG_S8,
                                       .epilogue = JG_EPILOGUE_SCALE_N | JG_EPILOGUE_BIAS_N | JG_EPILOGUE_RESIDUAL,
                                       .activation = JG_ACTIVATION_SILU,
                                       .type_bias = JG_BF16,
                                       .ld_residual = 24,
                                       .stride_residual = 400});
    launch_prepare(&p, &narrow, &args);
    assert_int_equal(args.fusion, 4 | 16 | 32 | JG_ACTIVATION_SILU << 8 | JG_S8 << 12 | JG_BF16 << 16);
    assert_int_equal(args.ld_residual, 24);
    assert_int_equal(args.stride_residual, 400);
    assert_int_equal(args.stride_group, 0);
    /* Read as columns, rows and columns change places. */
    p = canonical(
        (jg_problem){.m = 10, .n = 20, .k = 30, .order = JG_COL_MAJOR, .epilogue = JG_EPILOGUE_SCALE_M | JG_EPILOGUE_BIAS_N});
    launch_prepare(&p, &narrow, &args);
    assert_int_equal(args.fusion, 4 | 8 | JG_F32 << 12 | JG_F32 << 16);
}

/* The weights' scales of an item follow one another, unless the items share the weights. */
static void prepare_packs_groups(void **state)
{
    (void)state;
    static const struct {
        jg_problem problem;
        uint32_t groups;
        int64_t stride;
    } rows[] = {
        {{.type_b = JG_S8, .group_k = 32, .stride_a = 1, .stride_b = 1}, 1, 4 * 20},
        {{.type_b = JG_S4, .group_k = 64, .stride_a = 1, .stride_b = 1, .zero_points = 1}, 6, 2 * 20},
        {{.type_b = JG_S8, .group_k = 128, .stride_a = 1, .stride_b = 1}, 3, 20},
        {{.type_b = JG_S8, .group_k = 32, .stride_a = 1}, 1, 0},
        {{.type_a = JG_S8, .type_b = JG_F16, .group_k = 64, .stride_a = 1, .stride_b = 1}, 2, 2 * 10},
        {{.type_a = JG_S8, .type_b = JG_F16, .group_k = 64, .stride_b = 1}, 2, 0},
        {{.type_b = JG_S8, .stride_a = 1, .stride_b = 1}, 0, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        jg_problem in = rows[i].problem;
        launch_args args;
        in.m = 10, in.n = 20, in.k = 100, in.batch = 3, in.stride_c = 200;
        if (!in.type_a) in.type_a = JG_F16;
        in.stride_a *= 1000, in.stride_b *= 2000;
        const problem p = canonical(in);
        launch_prepare(&p, &narrow, &args);
        assert_int_equal(args.fusion >> 20, rows[i].groups);
        assert_int_equal(args.stride_group, rows[i].stride);
    }
}

static void fill_takes_what_the_problem_names(void **state)
{
    (void)state;
    static const float alpha = 2, beta = 3;
    static const char somewhere[16];
    const jg_operands in = {.a = somewhere,
                            .b = somewhere + 1,
                            .c = (void *)(uintptr_t)(somewhere + 2),
                            .alpha = &alpha,
                            .beta = &beta,
                            .scale = (const float *)(uintptr_t)0x100,
                            .scale_m = (const float *)(uintptr_t)0x200,
                            .scale_n = (const float *)(uintptr_t)0x300,
                            .bias_m = somewhere + 3,
                            .bias_n = somewhere + 4,
                            .residual = somewhere + 5,
                            .group_scales = somewhere + 6,
                            .group_zeros = (const int8_t *)somewhere + 7,
                            .clamp_low = -1,
                            .clamp_high = 4,
                            .out_scale = 5,
                            .out_zero = 6};
    for (int swapped = 0; swapped < 2; swapped++)
        for (int fused = 0; fused < 2; fused++) {
            const problem p = canonical((jg_problem){.m = 10, .n = 20, .k = 30, .order = swapped ? JG_COL_MAJOR : JG_ROW_MAJOR,
                                                     .activation = fused ? JG_ACTIVATION_CLAMP : 0});
            const operands o = operands_canonicalise(&p, &in);
            launch_args args, expected;
            memset(&args, 0, sizeof args);
            memset(&expected, 0, sizeof expected);
            launch_fill(&p, &o, &args);
            expected.a = swapped ? in.b : in.a, expected.b = swapped ? in.a : in.b, expected.c = in.c;
            expected.alpha = 2, expected.beta = 3;
            if (fused) {
                expected.flags |= swapped ? 32 : 0; /* the caller's m is our n */
                expected.scale = in.scale, expected.residual = in.residual;
                expected.scale_m = swapped ? in.scale_n : in.scale_m, expected.scale_n = swapped ? in.scale_m : in.scale_n;
                expected.bias_m = swapped ? in.bias_n : in.bias_m, expected.bias_n = swapped ? in.bias_m : in.bias_n;
                expected.group_scales = in.group_scales, expected.group_zeros = in.group_zeros;
                expected.clamp_low = -1, expected.clamp_high = 4, expected.out_scale = 5, expected.out_zero = 6;
            }
            assert_memory_equal(&args, &expected, sizeof args);
        }
}

/* --- what the software GPU is told --- */

static swgpu_operand told[16];
static unsigned told_count;
static uint64_t told_multiply_adds;

static int keep(const swgpu_operand *list, unsigned count, uint64_t multiply_adds)
{
    assert_in_range(count, 1, 16);
    memcpy(told, list, count * sizeof *list);
    told_count = count;
    told_multiply_adds = multiply_adds;
    return 0;
}

static CUresult CUDAAPI accept_launch(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                                      unsigned shared, CUstream stream, void **parameters, void **extra)
{
    (void)f, (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)shared, (void)stream, (void)extra;
    assert_non_null(parameters[0]);
    return CUDA_SUCCESS;
}

/* Launches on a driver that only listens. */
static void describe(jg_problem in, const jg_operands *data)
{
    driver listening = {.describe = keep, .launch = accept_launch};
    const device dev = {.driver = &listening};
    const loaded_kernel kernel = {0};
    const problem p = canonical(in);
    const operands o = operands_canonicalise(&p, data);
    launch_args args;
    launch_prepare(&p, &narrow, &args);
    launch_fill(&p, &o, &args);
    told_count = 0;
    assert_status(launch_kernel(&dev, &kernel, &p, &narrow, &args, NULL), JG_OK);
}

/* Numbers of a row: rows, row bytes, step; items, step. */
static void expect_told(const char *name, const void *base, uint64_t rows, uint64_t row_bytes, uint64_t row_step, uint64_t items,
                        uint64_t item_step, int writable)
{
    for (unsigned i = 0; i < told_count; i++) {
        const swgpu_operand *t = &told[i];
        if (strcmp(t->name, name) != 0) continue;
        if (t->base != (uintptr_t)base || t->rows != rows || t->row_bytes != row_bytes || t->row_step_bytes != row_step ||
            t->items != items || t->item_step_bytes != item_step || t->writable != writable)
            FIXTURE_FAIL("%s: %d rows of %d bytes, %d apart; %d items, %d apart", name, (int)t->rows, (int)t->row_bytes,
                         (int)t->row_step_bytes, (int)t->items, (int)t->item_step_bytes);
        return;
    }
    FIXTURE_FAIL("nothing is said of %s", name);
}

static char memory[16];
#define AT(n) ((void *)(memory + (n)))
static const jg_operands everything = {.a = AT(0),
                                       .b = AT(1),
                                       .c = AT(2),
                                       .scale = AT(3),
                                       .scale_m = AT(4),
                                       .scale_n = AT(5),
                                       .bias_m = AT(6),
                                       .bias_n = AT(7),
                                       .residual = AT(8),
                                       .group_scales = AT(9),
                                       .group_zeros = AT(10)};

static void every_operand_is_described(void **state)
{
    (void)state;
    const uint32_t all = JG_EPILOGUE_SCALE | JG_EPILOGUE_SCALE_M | JG_EPILOGUE_SCALE_N | JG_EPILOGUE_BIAS_M | JG_EPILOGUE_BIAS_N |
                         JG_EPILOGUE_RESIDUAL_AFTER;
    describe((jg_problem){.m = 10,
                          .n = 20,
                          .k = 70,
                          .batch = 3,
                          .type_a = JG_F16,
                          .type_b = JG_S4,
                          .type_c = JG_E4M3,
                          .lda = 72,
                          .ldb = 22,
                          .ldc = 24,
                          .stride_a = 800,
                          .stride_b = 1600,
                          .stride_c = 250,
                          .epilogue = all,
                          .type_bias = JG_F16,
                          .ld_residual = 28,
                          .stride_residual = 0,
                          .group_k = 32,
                          .zero_points = 1},
             &everything);
    assert_int_equal(told_count, 11);
    assert_int_equal(told_multiply_adds, 10 * 20 * 70 * 3);
    expect_told("A", AT(0), 10, 140, 144, 3, 1600, 0);
    expect_told("B", AT(1), 70, 10, 11, 3, 800, 0); /* two in a byte */
    expect_told("C", AT(2), 10, 20, 24, 3, 250, SWGPU_WRITABLE_APART);
    expect_told("scale", AT(3), 1, 4, 4, 1, 0, 0);
    expect_told("scale_m", AT(4), 1, 40, 40, 1, 0, 0);
    expect_told("scale_n", AT(5), 1, 80, 80, 1, 0, 0);
    expect_told("bias_m", AT(6), 1, 20, 20, 1, 0, 0);
    expect_told("bias_n", AT(7), 1, 40, 40, 1, 0, 0);
    expect_told("residual", AT(8), 10, 20, 28, 3, 0, 0);
    expect_told("group_scales", AT(9), 1, 3 * 20 * 3 * 2, 3 * 20 * 3 * 2, 1, 0, 0); /* groups x columns x items */
    expect_told("group_zeros", AT(10), 1, 3 * 20 * 3, 3 * 20 * 3, 1, 0, 0);
}

/* Each flag brings one operand, and no flag none. */
static void only_what_is_read_is_described(void **state)
{
    (void)state;
    static const char *const names[] = {"scale", "scale_m", "scale_n", "bias_m", "bias_n", "residual", "residual"};
    for (unsigned i = 0; i < 7; i++) {
        describe((jg_problem){.m = 4, .n = 5, .k = 6, .epilogue = 1u << i}, &everything);
        assert_int_equal(told_count, 4);
        assert_string_equal(told[3].name, names[i]);
    }
    describe((jg_problem){.m = 4, .n = 5, .k = 6, .epilogue = JG_EPILOGUE_REQUANTIZE, .activation = JG_ACTIVATION_CLAMP},
             &everything);
    assert_int_equal(told_count, 3);
    /* Odd rows of s4 end in the middle of a byte. Transposed, k is along the rows of A. */
    describe(
        (jg_problem){.m = 7, .n = 9, .k = 5, .type_a = JG_S4, .type_c = JG_S32, .op_a = JG_T, .op_b = JG_T, .lda = 8, .ldb = 6},
        &everything);
    assert_int_equal(told_count, 3);
    expect_told("A", AT(0), 5, 4, 4, 1, 0, 0);
    expect_told("B", AT(1), 9, 3, 3, 1, 0, 0);
    expect_told("C", AT(2), 7, 36, 36, 1, 0, SWGPU_WRITABLE_APART);
    /* Shared weights have one set of scales. */
    describe((jg_problem){.m = 7,
                          .n = 9,
                          .k = 33,
                          .batch = 2,
                          .stride_a = 300,
                          .stride_c = 70,
                          .type_a = JG_BF16,
                          .type_b = JG_S8,
                          .group_k = 32},
             &everything);
    assert_int_equal(told_count, 4);
    expect_told("group_scales", AT(9), 1, 2 * 9 * 2, 2 * 9 * 2, 1, 0, 0);
    /* alpha = 0 and k = 0 read neither A nor B nor what belongs to them. */
    static const float zero = 0;
    jg_operands none = everything;
    none.alpha = &zero;
    describe((jg_problem){.m = 7, .n = 9, .k = 33, .type_a = JG_BF16, .type_b = JG_S8, .group_k = 32, .zero_points = 1,
                          .epilogue = JG_EPILOGUE_BIAS_N}, &none);
    assert_int_equal(told_count, 2);
    expect_told("bias_n", AT(7), 1, 36, 36, 1, 0, 0);
    describe((jg_problem){.m = 7, .n = 9}, &everything);
    assert_int_equal(told_count, 1);
    expect_told("C", AT(2), 7, 36, 36, 1, 0, SWGPU_WRITABLE_APART);
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
        cmocka_unit_test(prepare_packs_what_is_fused), cmocka_unit_test(prepare_packs_groups),
        cmocka_unit_test(fill_takes_what_the_problem_names), cmocka_unit_test(every_operand_is_described),
        cmocka_unit_test(only_what_is_read_is_described),
        FIXTURE_TEST(the_grid_is_bounded), FIXTURE_TEST(launch_errors_become_statuses),
        FIXTURE_TEST(a_sticky_error_is_the_end_of_the_context),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
