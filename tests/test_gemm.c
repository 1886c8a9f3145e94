/* src/gemm.c on the fake driver: bad input, the rules of BLAS, what a launch is made of, what a hit may cost.
 * How a missing kernel is brought is in test_kernels.c, plans are in test_plan_calls.c. */
#include "gemm_fixture.h"

#include <linux/seccomp.h>
#include <math.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Counts allocations of the whole program, by standing in front of the C library's own functions. Sanitizers stand there
 * themselves. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define CAN_COUNT 1
static volatile int allocations;
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);
void *malloc(size_t bytes)
{
    allocations++;
    return __libc_malloc(bytes);
}
void *calloc(size_t count, size_t bytes)
{
    allocations++;
    return __libc_calloc(count, bytes);
}
void *realloc(void *memory, size_t bytes)
{
    allocations++;
    return __libc_realloc(memory, bytes);
}
#else
#define CAN_COUNT 0
static int allocations;
#endif

static _Alignas(256) float room_a[1024], room_b[1024], room_c[1024];
static const jg_operands good = {.a = room_a, .b = room_b, .c = room_c};

/* --- bad input --- */

static const struct {
    const char *what; /* that the text must name */
    jg_status status;
    jg_problem problem;
} bad_problems[] = {
    {"m = -1", JG_ERR_SIZE, {.m = -1, .n = 8, .k = 8}},
    {"n = -1", JG_ERR_SIZE, {.m = 8, .n = -1, .k = 8}},
    {"k = -1", JG_ERR_SIZE, {.m = 8, .n = 8, .k = -1}},
    {"m = 2147483648", JG_ERR_SIZE, {.m = INT64_C(1) << 31, .n = 8, .k = 8}},
    {"batch = -2", JG_ERR_SIZE, {.m = 8, .n = 8, .k = 8, .batch = -2}},
    {"stride_a = -1", JG_ERR_SIZE, {.m = 8, .n = 8, .k = 8, .batch = 2, .stride_a = -1, .stride_c = 64}},
    {"stride_b = -1", JG_ERR_SIZE, {.m = 8, .n = 8, .k = 8, .batch = 2, .stride_b = -1, .stride_c = 64}},
    {"stride_c = 63", JG_ERR_SIZE, {.m = 8, .n = 8, .k = 8, .batch = 2, .stride_c = 63}},
    {"lda = 7", JG_ERR_LEADING_DIMENSION, {.m = 8, .n = 8, .k = 8, .lda = 7}},
    {"ldb = 7", JG_ERR_LEADING_DIMENSION, {.m = 8, .n = 8, .k = 8, .ldb = 7}},
    {"ldc = 7", JG_ERR_LEADING_DIMENSION, {.m = 8, .n = 8, .k = 8, .ldc = 7}},
    {"lda = -8", JG_ERR_LEADING_DIMENSION, {.m = 8, .n = 8, .k = 8, .lda = -8}},
    {"ldb = 7", JG_ERR_LEADING_DIMENSION, {.m = 8, .n = 9, .k = 8, .ldb = 7, .order = JG_COL_MAJOR}},
    {"lda = ", JG_ERR_OVERFLOW, {.m = 8, .n = 8, .k = 8, .lda = INT64_MAX / 4}},
    {"stride_b = ", JG_ERR_OVERFLOW, {.m = 8, .n = 8, .k = 8, .batch = 3, .stride_b = INT64_MAX / 2, .stride_c = 64}},
    {"type_a = 10", JG_ERR_TYPE, {.m = 8, .n = 8, .k = 8, .type_a = (jg_type)10}},
    {"type_b = 10", JG_ERR_TYPE, {.m = 8, .n = 8, .k = 8, .type_b = (jg_type)10}},
    {"type_c = 10", JG_ERR_TYPE, {.m = 8, .n = 8, .k = 8, .type_c = (jg_type)10}},
    {"f16 x bf16", JG_ERR_TYPE, {.m = 8, .n = 8, .k = 8, .type_a = JG_F16, .type_b = JG_BF16}},
    {"f32 x f32 -> s32", JG_ERR_TYPE, {.m = 8, .n = 8, .k = 8, .type_c = JG_S32}},
    {"s8 x s8 -> s4", JG_ERR_TYPE, {.m = 8, .n = 8, .k = 8, .type_a = JG_S8, .type_c = JG_S4}},
    {"JG_MATH_TF32 is for f32", JG_ERR_TYPE, {.m = 8, .n = 8, .k = 8, .type_a = JG_F16, .math = JG_MATH_TF32}},
    {"JG_MATH_F16 is for f16", JG_ERR_TYPE, {.m = 8, .n = 8, .k = 8, .math = JG_MATH_F16}},
    {"JG_EPILOGUE_RESIDUAL", JG_ERR_VALUE, {.m = 8, .n = 8, .k = 8, .epilogue = JG_EPILOGUE_RESIDUAL | JG_EPILOGUE_RESIDUAL_AFTER}},
    {"group_k = 32", JG_ERR_TYPE, {.m = 8, .n = 8, .k = 64, .group_k = 32}},
    {"op_a = 2", JG_ERR_VALUE, {.m = 8, .n = 8, .k = 8, .op_a = (jg_op)2}},
    {"op_b = 2", JG_ERR_VALUE, {.m = 8, .n = 8, .k = 8, .op_b = (jg_op)2}},
    {"order = 2", JG_ERR_VALUE, {.m = 8, .n = 8, .k = 8, .order = (jg_order)2}},
    {"form = 3", JG_ERR_VALUE, {.m = 8, .n = 8, .k = 8, .form = (jg_form)3}},
    {"align_bytes = 3", JG_ERR_VALUE, {.m = 8, .n = 8, .k = 8, .align_bytes = 3}},
    {"reserved = 1", JG_ERR_VALUE, {.m = 8, .n = 8, .k = 8, .reserved = 1}},
};

static void bad_problems_are_refused_and_named(void **state)
{
    (void)state;
    jg_context *c = fixture_open();
    uint64_t before = fx.fake->all_calls();
    for (size_t i = 0; i < sizeof bad_problems / sizeof bad_problems[0]; i++) {
        const jg_problem *p = &bad_problems[i].problem;
        jg_plan *made = (jg_plan *)&room_a;
        char text[64];
        assert_status(jg_gemm(c, p, &good), bad_problems[i].status);
        assert_says(jg_last_error(), bad_problems[i].what);
        assert_status(jg_plan_create(c, p, &made), bad_problems[i].status);
        assert_null(made);
        assert_says(jg_last_error(), bad_problems[i].what);
        assert_status(jg_plan_explain(c, p, text, sizeof text, NULL), bad_problems[i].status);
        assert_false(jg_status_is_fatal(bad_problems[i].status));
    }
    assert_int_equal(fx.fake->all_calls(), before);
    jg_stats stats = fixture_stats(c);
    assert_int_equal(stats.compiles + stats.compile_failures + stats.problems, 0);
    assert_status(jg_close(c), JG_OK);
}

static const struct {
    const char *what;
    jg_status status;
    jg_order order;
    jg_operands data;
} bad_operands[] = {
    {"operands.a is null", JG_ERR_NULL, JG_ROW_MAJOR, {.b = room_b, .c = room_c}},
    {"operands.b is null", JG_ERR_NULL, JG_ROW_MAJOR, {.a = room_a, .c = room_c}},
    {"operands.c is null", JG_ERR_NULL, JG_ROW_MAJOR, {.a = room_a, .b = room_b}},
    {"operands.a is null", JG_ERR_NULL, JG_COL_MAJOR, {.b = room_b, .c = room_c}},
    {"operands.a is 0x", JG_ERR_MISALIGNED, JG_ROW_MAJOR, {.a = (char *)room_a + 2, .b = room_b, .c = room_c}},
    {"operands.b is 0x", JG_ERR_MISALIGNED, JG_ROW_MAJOR, {.a = room_a, .b = (char *)room_b + 1, .c = room_c}},
    {"operands.c is 0x", JG_ERR_MISALIGNED, JG_ROW_MAJOR, {.a = room_a, .b = room_b, .c = (char *)room_c + 3}},
    {"operands.b is 0x", JG_ERR_MISALIGNED, JG_COL_MAJOR, {.a = room_a, .b = (char *)room_b + 2, .c = room_c}},
};

static void bad_operands_are_refused_and_named(void **state)
{
    (void)state;
    const jg_problem p = square(8, JG_F32);
    fixture_plant(&p, JG_FORM_AUTO);
    jg_context *c = fixture_open();
    for (size_t i = 0; i < sizeof bad_operands / sizeof bad_operands[0]; i++) {
        jg_problem ordered = p;
        ordered.order = bad_operands[i].order;
        jg_plan *made;
        assert_status(jg_plan_create(c, &ordered, &made), JG_OK);
        uint64_t before = fx.fake->all_calls();
        assert_status(jg_gemm(c, &ordered, &bad_operands[i].data), bad_operands[i].status);
        assert_says(jg_last_error(), bad_operands[i].what);
        assert_status(jg_plan_run(made, &bad_operands[i].data), bad_operands[i].status);
        assert_says(jg_last_error(), bad_operands[i].what);
        assert_int_equal(fx.fake->all_calls(), before);
        jg_plan_destroy(made);
    }
    assert_status(jg_close(c), JG_OK);
}

static void null_arguments_are_refused_and_named(void **state)
{
    (void)state;
    const jg_problem p = square(8, JG_F32);
    fixture_plant(&p, JG_FORM_AUTO);
    jg_context *c = fixture_open();
    jg_plan *made;
    char text[8];
    assert_status(jg_plan_create(c, &p, &made), JG_OK);
    uint64_t before = fx.fake->all_calls();
    jg_plan *none;
    jg_plan_details d;
#define REFUSES(call, what)                      \
    do {                                         \
        assert_status(call, JG_ERR_NULL);        \
        assert_says(jg_last_error(), what " is null"); \
    } while (0)
    REFUSES(jg_gemm(NULL, &p, &good), "context");
    REFUSES(jg_gemm(c, NULL, &good), "problem");
    REFUSES(jg_gemm(c, &p, NULL), "operands");
    REFUSES(jg_plan_create(NULL, &p, &none), "context");
    REFUSES(jg_plan_create(c, NULL, &none), "problem");
    REFUSES(jg_plan_create(c, &p, NULL), "plan");
    REFUSES(jg_plan_run(NULL, &good), "plan");
    REFUSES(jg_plan_run(made, NULL), "operands");
    REFUSES(jg_plan_info(NULL, &d), "plan");
    REFUSES(jg_plan_info(made, NULL), "details");
    REFUSES(jg_plan_explain(NULL, &p, text, sizeof text, NULL), "context");
    REFUSES(jg_plan_explain(c, NULL, text, sizeof text, NULL), "problem");
    REFUSES(jg_plan_explain(c, &p, NULL, 1, NULL), "text");
    REFUSES(jg_poll(NULL, NULL, NULL), "context");
    assert_int_equal(fx.fake->all_calls(), before);
    jg_plan_destroy(made);
    jg_plan_destroy(NULL);
    assert_status(jg_close(c), JG_OK);
    assert_status(jg_close(NULL), JG_OK);
}

/* --- the rules of BLAS --- */

static void nothing_is_done_for_empty_products(void **state)
{
    (void)state;
    jg_context *c = fixture_open_without_nvrtc();
    const jg_problem empty[] = {{.n = 8, .k = 8}, {.m = 8, .k = 8}, {.m = 8, .n = 8, .k = 8, .stride_c = 64}};
    uint64_t before = fx.fake->all_calls();
    for (size_t i = 0; i < sizeof empty / sizeof empty[0]; i++) {
        jg_plan *made;
        char text[64];
        assert_status(jg_gemm(c, &empty[i], &(jg_operands){0}), JG_OK);
        assert_status(jg_plan_create(c, &empty[i], &made), JG_OK);
        assert_status(jg_plan_run(made, &(jg_operands){0}), JG_OK);
        jg_plan_destroy(made);
        assert_status(jg_plan_explain(c, &empty[i], text, sizeof text, NULL), JG_OK);
        assert_string_equal(text, "nothing to compute\n");
    }
    assert_int_equal(fx.fake->all_calls(), before);
    assert_status(jg_close(c), JG_OK);
}

static void operands_that_are_not_read_may_be_null(void **state)
{
    (void)state;
    const jg_problem p = square(4, JG_F32), no_k = {.m = 4, .n = 4};
    fixture_plant(&p, JG_FORM_AUTO);
    fixture_plant(&no_k, JG_FORM_AUTO);
    jg_context *c = fixture_open_without_nvrtc();
    const float zero = 0, half = 0.5f;
    float C[16];
    for (int i = 0; i < 16; i++) C[i] = (float)i;
    assert_status(jg_gemm(c, &p, &(jg_operands){.c = C, .alpha = &zero, .beta = &half}), JG_OK);
    for (int i = 0; i < 16; i++) assert_true(C[i] == i * 0.5f);
    assert_status(jg_gemm(c, &no_k, &(jg_operands){.c = C, .beta = &half}), JG_OK);
    for (int i = 0; i < 16; i++) assert_true(C[i] == i * 0.25f);
    const float endless = HUGE_VALF; /* an empty sum is 0, and stays it */
    for (int i = 0; i < 16; i++) C[i] = (float)i;
    assert_status(jg_gemm(c, &no_k, &(jg_operands){.c = C, .alpha = &endless, .beta = &half}), JG_OK);
    for (int i = 0; i < 16; i++) assert_true(C[i] == i * 0.5f);
    assert_status(jg_gemm(c, &no_k, &(jg_operands){.c = C}), JG_OK); /* beta is 0 by default */
    for (int i = 0; i < 16; i++) assert_true(C[i] == 0);
    assert_status(jg_close(c), JG_OK);
}

/* Every layout gives what the oracle gives, with alpha and beta given and left out. */
static void products_are_right_in_every_layout(void **state)
{
    (void)state;
    static const jg_type types[][2] = {{JG_F32, JG_F32}, {JG_F16, JG_F16}, {JG_F16, JG_F32}, {JG_BF16, JG_F16}};
    jg_problem all[64];
    size_t count = 0;
    for (int layout = 0; layout < 16; layout++) {
        jg_problem p = {.m = 3, .n = 5, .k = 7, .type_a = types[layout % 4][0], .type_c = types[layout % 4][1],
                        .op_a = (jg_op)(layout & 1), .op_b = (jg_op)(layout >> 1 & 1), .order = (jg_order)(layout >> 2 & 1)};
        if (layout & 8) {
            p.batch = 3;
            p.lda = p.ldb = p.ldc = 16;
            reference_pack(&p);
        }
        all[count++] = p;
        p.form = JG_FORM_GENERIC;
        all[count++] = p;
    }
    for (size_t i = 0; i < count; i++) fixture_plant(&all[i], all[i].form);
    jg_context *c = fixture_open_without_nvrtc();
    for (size_t i = 0; i < count; i++) {
        assert_status(fixture_gemm(c, &all[i], 1, 0), JG_OK);
        assert_status(fixture_gemm(c, &all[i], -2, 3), JG_OK);
        const fake_launch l = fx.fake->last_launch();
        assert_int_equal(strstr(l.kernel, "k7_l") != NULL, all[i].form != JG_FORM_GENERIC);
        jg_plan *made;
        assert_status(jg_plan_create(c, &all[i], &made), JG_OK);
        assert_status(fixture_run_plan(made, &all[i]), JG_OK);
        jg_plan_destroy(made);
    }
    assert_status(jg_close(c), JG_OK);
}

/* --- what a launch is made of --- */

static void the_launch_carries_all_arguments(void **state)
{
    (void)state;
    const jg_problem p = {.m = 40, .n = 24, .k = 16, .batch = 2, .type_a = JG_F16, .type_c = JG_F32, .op_b = JG_T, .lda = 32, .ldb = 24,
                          .ldc = 28, .stride_a = 0, .stride_b = 24 * 24, .stride_c = 40 * 28};
    static _Alignas(256) char a[40 * 32 * 2], b[2 * 24 * 24 * 2];
    static _Alignas(256) float room[2 * 40 * 28];
    fixture_plant(&p, JG_FORM_AUTO);
    jg_context *c = fixture_open_without_nvrtc();
    const float alpha = 1.5f, beta = -0.25f;
    CUstream stream = (CUstream)(uintptr_t)0x1234;
    const jg_operands data = {.a = a, .b = b, .c = room, .alpha = &alpha, .beta = &beta, .stream = stream};
    assert_status(jg_gemm(c, &p, &data), JG_OK);
    fake_launch l = fx.fake->last_launch();
    assert_string_equal(l.kernel, fixture_name(&p, JG_FORM_AUTO));
    assert_ptr_equal(l.stream, stream);
    const launch_args expected = {.a = a, .b = b, .c = room, .lda = 32, .ldb = 24, .ldc = 28, .stride_b = 24 * 24, .stride_c = 40 * 28,
                                  .m = 40, .n = 24, .k = 16, .batch = 2, .alpha = alpha, .beta = beta, .flags = l.args.flags,
                                  .fusion = JG_F32 << FUSION_TYPE_C_SHIFT};
    assert_memory_equal(&l.args, &expected, sizeof expected);
    assert_int_equal(l.args.flags, 2 | 4 | 8 | 16); /* B transposed; rows of all three are multiples of 16 bytes */
    assert_status(jg_close(c), JG_OK);
}

/* --- what is fused in --- */

/* C = A * B + what is fused in, of 2 x 3 by k = 1, rows and columns told apart; read as columns all change places. */
static void what_is_fused_reaches_the_kernel(void **state)
{
    (void)state;
    static const _Alignas(16) int8_t a[] = {1, 2}, b[] = {1, 10, 100};
    static const float scale_m[] = {1, -1}, scale_n[] = {1, 2, 4}, bias_m[] = {1000, 2000};
    static const _Alignas(16) float rows[] = {1001, 1020, 1400, 1998, 1960, 1200};
    static const _Alignas(16) float columns[] = {1001, 1998, 1020, 1960, 1400, 1200};
    static _Alignas(16) float out[6];
    const jg_operands data = {.a = a, .b = b, .c = out, .scale_m = scale_m, .scale_n = scale_n, .bias_m = bias_m};
    for (int variant = 0; variant < 4; variant++) {
        const jg_problem p = {.m = 2, .n = 3, .k = 1, .type_a = JG_S8, .type_c = JG_F32, .order = (jg_order)(variant & 1),
                              .form = variant >> 1 ? JG_FORM_GENERIC : JG_FORM_SPECIALISED,
                              .epilogue = JG_EPILOGUE_SCALE_M | JG_EPILOGUE_SCALE_N | JG_EPILOGUE_BIAS_M};
        fixture_plant(&p, JG_FORM_AUTO);
        jg_context *c = fixture_open_without_nvrtc();
        jg_plan *made;
        assert_status(jg_gemm(c, &p, &data), JG_OK);
        assert_memory_equal(out, variant & 1 ? columns : rows, sizeof out);
        memset(out, 0xff, sizeof out);
        assert_status(jg_plan_create(c, &p, &made), JG_OK);
        assert_status(jg_plan_run(made, &data), JG_OK);
        assert_memory_equal(out, variant & 1 ? columns : rows, sizeof out);
        jg_plan_destroy(made);
        assert_status(jg_close(c), JG_OK);
    }
}

/* One generic kernel serves whatever is fused in; each specialised one only its own. */
static void one_generic_kernel_serves_every_epilogue(void **state)
{
    (void)state;
    jg_problem p = square(8, JG_F16);
    p.form = JG_FORM_GENERIC;
    const jg_operands all = {.a = room_a, .b = room_b, .c = room_c, .scale = room_a, .scale_m = room_a, .scale_n = room_a,
                             .bias_m = room_a, .bias_n = room_a, .residual = room_b, .clamp_high = 1};
    fixture_plant(&p, JG_FORM_AUTO);
    jg_context *c = fixture_open_without_nvrtc();
    for (uint32_t flags = 0; flags < 256; flags++) {
        if ((flags & 96) == 96) continue; /* both residuals */
        p.epilogue = flags;
        p.activation = (jg_activation)(flags % 8);
        p.type_c = flags & 1 ? JG_U8 : JG_BF16;
        assert_status(jg_gemm(c, &p, &all), JG_OK);
        const fake_launch l = fx.fake->last_launch();
        assert_int_equal(l.args.fusion & 0xffff, flags | (flags % 8) << 8 | (flags & 1 ? JG_U8 : JG_BF16) << 12);
    }
    assert_int_equal(fixture_stats(c).kernels, 1);
    p.form = JG_FORM_SPECIALISED;
    fixture_plant(&p, JG_FORM_AUTO);
    assert_status(jg_gemm(c, &p, &all), JG_OK);
    p.activation = JG_ACTIVATION_NONE;
    assert_status(jg_gemm(c, &p, &all), JG_ERR_NO_NVRTC);
    assert_status(jg_close(c), JG_OK);
}

/* --- what a hit costs --- */

static jg_context *open_with_a_hit(const jg_problem *p)
{
    fixture_plant(p, JG_FORM_AUTO);
    jg_context *c = fixture_open();
    assert_status(jg_gemm(c, p, &good), JG_OK);
    return c;
}

static void a_hit_only_launches(void **state)
{
    (void)state;
    const jg_problem p = square(8, JG_F32);
    jg_context *c = open_with_a_hit(&p);
    jg_plan *made;
    assert_status(jg_plan_create(c, &p, &made), JG_OK);
    for (int bound = 0; bound < 2; bound++) { /* with the context current, no push and pop */
        if (bound) fx.fake->push(c->device.context);
        uint64_t before = fx.fake->all_calls(), launches = fx.fake->calls("cuLaunchKernel"), pushes = fx.fake->calls("cuCtxPushCurrent_v2");
        int allocated = allocations;
        for (int i = 0; i < 10; i++) {
            assert_int_equal(jg_gemm(c, &p, &good), JG_OK);
            assert_int_equal(jg_plan_run(made, &good), JG_OK);
        }
        assert_int_equal(allocations - allocated, 0);
        assert_int_equal(fx.fake->calls("cuLaunchKernel") - launches, 20);
        assert_int_equal(fx.fake->calls("cuCtxPushCurrent_v2") - pushes, bound ? 0 : 20);
        assert_int_equal(fx.fake->all_calls() - before, bound ? 40 : 80);
        if (bound) fx.fake->pop();
    }
    jg_stats stats = fixture_stats(c);
    assert_int_equal(stats.memory_misses, 1);
    assert_int_equal(stats.memory_hits, 21); /* the plan's own look-up, and jg_gemm's */
    jg_plan_destroy(made);
    assert_status(jg_close(c), JG_OK);
}

/* Column-major A B is row-major B' A': where the two come to the same, they share a kernel and its entry. */
static void both_orders_share_what_is_the_same(void **state)
{
    (void)state;
    const jg_problem p = {.m = 8, .n = 4, .k = 6}, transposed = {.m = 4, .n = 8, .k = 6, .order = JG_COL_MAJOR};
    fixture_plant(&p, JG_FORM_AUTO);
    jg_context *c = fixture_open_without_nvrtc();
    assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
    assert_status(fixture_gemm(c, &transposed, 1, 0), JG_OK);
    jg_stats stats = fixture_stats(c);
    assert_int_equal(stats.problems, 1);
    assert_int_equal(stats.memory_hits, 1);
    assert_status(jg_close(c), JG_OK);
}

/* In a child that may make no system call at all: no file, no lock that waits, no memory from the system. */
static void a_hit_makes_no_system_call(void **state)
{
    (void)state;
    if (!CAN_COUNT) {
        printf("SKIP a_hit_makes_no_system_call: the sanitizer makes its own\n");
        skip();
    }
    const jg_problem p = square(8, JG_F32);
    jg_context *c = open_with_a_hit(&p);
    int status = 0;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0) syscall(SYS_exit, 77);
        int failures = 0;
        for (int i = 0; i < 100; i++) failures += jg_gemm(c, &p, &good) != JG_OK;
        syscall(SYS_exit, failures != 0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_status(jg_close(c), JG_OK);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        printf("SKIP a_hit_makes_no_system_call: no seccomp here\n");
        skip();
    }
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(bad_problems_are_refused_and_named), FIXTURE_TEST(bad_operands_are_refused_and_named),
        FIXTURE_TEST(null_arguments_are_refused_and_named),
        FIXTURE_TEST(nothing_is_done_for_empty_products), FIXTURE_TEST(operands_that_are_not_read_may_be_null),
        FIXTURE_TEST(products_are_right_in_every_layout), FIXTURE_TEST(the_launch_carries_all_arguments),
        FIXTURE_TEST(what_is_fused_reaches_the_kernel), FIXTURE_TEST(one_generic_kernel_serves_every_epilogue),
        FIXTURE_TEST(a_hit_only_launches), FIXTURE_TEST(both_orders_share_what_is_the_same),
        FIXTURE_TEST(a_hit_makes_no_system_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
