/* Every kind of product on the software GPU, with whatever fused in, against the same by plain loops: a generic and a specialised
 * kernel each. Elements are small whole numbers, so that every sum is exact in any order, and results must be equal; only those
 * of activations that are no lines may be a step off. The software GPU refuses accesses beyond what the launch describes.
 * JG_TEST_TURNS: problems a kind. */
#define FAKE_LAUNCH_NAMES_ALONE
#include "fake_launch.h"

#include "context.h"
#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static uint64_t random_state = 4711;
static uint32_t pick(uint32_t count)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33) % count;
}

static const struct {
    jg_type a, b;
    unsigned math;
} kinds[] = {
    {JG_F32, JG_F32, 0},
    {JG_F32, JG_F32, JG_MATH_STRICT | JG_MATH_FLUSH},
    {JG_F32, JG_F32, JG_MATH_TF32},
    {JG_F32, JG_F32, JG_MATH_F32_3XTF32 | JG_MATH_SANITIZE},
    {JG_F16, JG_F16, 0},
    {JG_F16, JG_F16, JG_MATH_F16},
    {JG_BF16, JG_BF16, JG_MATH_FLUSH | JG_MATH_SANITIZE},
    {JG_BF16, JG_BF16, JG_MATH_STRICT},
    {JG_S8, JG_S8, 0},
    {JG_U8, JG_S8, 0},
    {JG_S8, JG_U8, JG_MATH_STRICT},
    {JG_S4, JG_S4, 0},
    {JG_F16, JG_S8, 0},
    {JG_S4, JG_BF16, 0},
    {JG_F16, JG_S4, JG_MATH_STRICT},
    {JG_E4M3, JG_E5M2, 0},
    {JG_E4M3, JG_E4M3, JG_MATH_FLUSH | JG_MATH_SANITIZE},
};
#define KINDS (sizeof kinds / sizeof kinds[0])

/* A block of memory on the device and its image here. */
typedef struct block {
    size_t bytes;
    unsigned char *host;
    void *device;
} block;

enum { A, B, C, RESIDUAL, SCALE, SCALE_M, SCALE_N, BIAS_M, BIAS_N, GROUP_SCALES, GROUP_ZEROS, BLOCKS };

static jg_context *context;
static char folder[4096], cache[4200];
static block blocks[BLOCKS];

/* One element. Now and then what JG_MATH_FLUSH and JG_MATH_SANITIZE are for: the least denormal, NaN. */
static void set_element(void *base, jg_type type, int64_t at, unsigned math)
{
    const int value = (int)pick(7) - 3, width = (int)bits_in(type) / 8;
    uint8_t *bytes = base;
    if (type == JG_S4)
        bytes[at / 2] = (uint8_t)(at % 2 ? (bytes[at / 2] & 15) | (value & 15) << 4 : (bytes[at / 2] & 0xf0) | (value & 15));
    else set(base, type, at, (float)(type == JG_U8 ? abs(value) : value), 0);
    if (is_integer(type)) return;
    if (math & JG_MATH_FLUSH && !pick(8)) memset(bytes + at * width, 0, (size_t)width), bytes[at * width] = 1;
    if (math & JG_MATH_SANITIZE && !pick(8)) set(base, type, at, pick(2) ? NAN : INFINITY, 0);
}

/* Fresh memory of so many elements. */
static void make_block(int which, jg_type type, int64_t elements, unsigned math)
{
    block *b = &blocks[which];
    b->bytes = (size_t)(elements * bits_in(type) + 7) / 8;
    b->host = calloc(1, b->bytes + 8);
    assert_non_null(b->host);
    for (int64_t i = 0; i < elements; i++) set_element(b->host, type, i, math);
    if (jg_alloc(context, JG_DEVICE_MEMORY, b->bytes, &b->device) != JG_OK) fail_msg("%s", jg_last_error());
}

/* Scales are powers of two, so that products stay exact. */
static void make_scales(int which, jg_type type, int64_t elements)
{
    make_block(which, type, elements, 0);
    for (int64_t i = 0; i < elements; i++) set(blocks[which].host, type, i, (pick(2) ? 1 : -1) * ldexpf(1, (int)pick(3) - 1), 0);
}

static void free_blocks(void)
{
    for (int i = 0; i < BLOCKS; i++) {
        free(blocks[i].host);
        assert_int_equal(jg_free(context, JG_DEVICE_MEMORY, blocks[i].device), JG_OK);
    }
    memset(blocks, 0, sizeof blocks);
}

static jg_problem random_problem(size_t kind)
{
    static const jg_type results[] = {JG_F32, JG_F16, JG_BF16, JG_S8, JG_U8, JG_E4M3, JG_E5M2, JG_S32};
    static const jg_type biases[] = {JG_F32, JG_F16, JG_BF16};
    static const int64_t sizes[] = {1, 7, 16, 33, 40, 64, 70};
    const int integers_a = type_is_integer(kinds[kind].a), integers_b = type_is_integer(kinds[kind].b);
    jg_problem p = {.m = sizes[pick(7)],
                    .n = sizes[pick(7)],
                    .k = sizes[pick(7)],
                    .batch = 1 + pick(2),
                    .type_a = kinds[kind].a,
                    .type_b = kinds[kind].b,
                    .math = kinds[kind].math,
                    .op_a = pick(2),
                    .op_b = pick(2),
                    .order = pick(2),
                    .type_c = results[pick(integers_a && integers_b ? 8 : 7)],
                    .activation = pick(8),
                    .type_bias = biases[pick(3)],
                    .epilogue = pick(4) ? pick(256) : 0};
    const int aligned = pick(2);
    p.lda = aligned ? 80 : 70 + pick(8) * 2, p.ldb = aligned ? 80 : 70 + pick(8) * 2, p.ldc = aligned ? 80 : 70 + pick(8);
    p.stride_a = pick(2) * 80 * 96, p.stride_b = pick(2) * 80 * 96, p.stride_c = 80 * 96;
    if (!p.epilogue) p.activation = 0;
    if (p.epilogue & JG_EPILOGUE_RESIDUAL) p.epilogue &= ~JG_EPILOGUE_RESIDUAL_AFTER;
    if (p.epilogue & (JG_EPILOGUE_RESIDUAL | JG_EPILOGUE_RESIDUAL_AFTER))
        p.ld_residual = 75, p.stride_residual = pick(2) * 80 * 96;
    if (integers_a != integers_b) p.group_k = pick(3) ? 32u << pick(3) : 0, p.zero_points = p.group_k && pick(2);
    return p;
}

static void make_blocks(const jg_problem *p)
{
    const jg_type wide = p->type_a == JG_BF16 || p->type_b == JG_BF16 ? JG_BF16 : JG_F16;
    const int64_t elements = 2 * 80 * 96;
    make_block(A, p->type_a, elements, p->math);
    make_block(B, p->type_b, elements, p->math);
    make_block(C, p->type_c, elements, p->math);
    make_block(RESIDUAL, p->type_c, elements, p->math);
    make_scales(SCALE, JG_F32, 1);
    make_scales(SCALE_M, JG_F32, p->m);
    make_scales(SCALE_N, JG_F32, p->n);
    make_block(BIAS_M, p->type_bias, p->m, 0);
    make_block(BIAS_N, p->type_bias, p->n, 0);
    make_scales(GROUP_SCALES, wide, 3 * 70 * 2);
    make_block(GROUP_ZEROS, JG_S8, 3 * 70 * 2, 0);
}

static jg_operands operands_at(int on_device, const float *alpha, const float *beta)
{
    const void *at[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) at[i] = on_device ? blocks[i].device : blocks[i].host;
    return (jg_operands){.a = at[A],
                         .b = at[B],
                         .c = on_device ? blocks[C].device : blocks[C].host,
                         .alpha = alpha,
                         .beta = beta,
                         .scale = at[SCALE],
                         .scale_m = at[SCALE_M],
                         .scale_n = at[SCALE_N],
                         .bias_m = at[BIAS_M],
                         .bias_n = at[BIAS_N],
                         .residual = at[RESIDUAL],
                         .group_scales = at[GROUP_SCALES],
                         .group_zeros = at[GROUP_ZEROS],
                         .clamp_low = -5,
                         .clamp_high = 20,
                         .out_scale = 0.5f,
                         .out_zero = 3};
}

/* How far a result may be off: nothing, or a step of C's type where the activation is no line. */
static int is_near(jg_type type, float got, float expected, int exactly)
{
    static const float steps[] = {
        [JG_F32] = 0x1p-18f, [JG_F16] = 0x1p-10f, [JG_BF16] = 0x1p-7f, [JG_E4M3] = 0x1p-3f, [JG_E5M2] = 0x1p-2f};
    if (got == expected || (got != got && expected != expected)) return 1;
    if (exactly) return 0;
    return fabsf(got - expected) <= (is_integer(type) ? 1 : fabsf(expected) * steps[type] + 0x1p-9f);
}

/* The product by plain loops, in C's image here. */
static void compute_here(const problem *p, const jg_plan *made, const jg_operands *data)
{
    static const plan any = {.access = {1, 1, 0}};
    const operands o = operands_canonicalise(p, data);
    jg_plan_details d;
    promise said;
    launch_args args;
    assert_int_equal(jg_plan_info(made, &d), JG_OK);
    if (!read_name(d.kernel, &said)) fail_msg("%s is not understood", d.kernel);
    launch_prepare(p, &any, &args);
    launch_fill(p, &o, &args);
    compute(&said, &args);
}

static void run_form(jg_problem in, jg_form form, float alpha, float beta)
{
    problem p;
    jg_plan *made;
    char text[JG_PROBLEM_TEXT_BYTES];
    const jg_operands there = operands_at(1, &alpha, &beta), here = operands_at(0, &alpha, &beta);
    unsigned char *const before = malloc(blocks[C].bytes), *const got = malloc(blocks[C].bytes);
    assert_true(before && got);
    memcpy(before, blocks[C].host, blocks[C].bytes);
    in.form = form;
    jg_problem_format(&in, text, sizeof text, NULL);
    if (problem_canonicalise(&in, &p) != JG_OK) fail_msg("%s: %s", text, jg_last_error());
    for (int i = 0; i < BLOCKS; i++) assert_int_equal(jg_copy(context, blocks[i].device, blocks[i].host, blocks[i].bytes), JG_OK);
    if (jg_plan_create(context, &in, &made) != JG_OK || jg_plan_run(made, &there) != JG_OK ||
        jg_synchronize(context, NULL) != JG_OK)
        fail_msg("%s: %s", text, jg_last_error());
    assert_int_equal(jg_copy(context, got, blocks[C].device, blocks[C].bytes), JG_OK);
    compute_here(&p, made, &here);
    jg_plan_destroy(made);
    const int exactly = p.activation < JG_ACTIVATION_GELU_TANH;
    for (int64_t i = 0; i < 2 * 80 * 96; i++) {
        const float x = get(got, p.type_c, i, 0), y = get(blocks[C].host, p.type_c, i, 0);
        if (!is_near((jg_type)p.type_c, x, y, exactly))
            fail_msg("%s, alpha %g, beta %g: element %d: %g instead of %g", text, (double)alpha, (double)beta, (int)i, (double)x,
                     (double)y);
    }
    memcpy(blocks[C].host, before, blocks[C].bytes);
    free(before);
    free(got);
}

/* What a chip without the tensor cores for it does not do at all. */
static int is_refused(const jg_problem *p)
{
    const unsigned mode = p->math & MATH_MODE;
    jg_plan *made;
    if (context->device.limits.arch->has_mma || mode == JG_MATH_DEFAULT || mode == JG_MATH_STRICT) return 0;
    assert_int_equal(jg_plan_create(context, p, &made), JG_ERR_UNSUPPORTED);
    return 1;
}

static void products_are_those_of_plain_loops(void **state)
{
    (void)state;
    const char *given = getenv("JG_TEST_TURNS");
    const int turns = given ? atoi(given) : 2;
    static const float alphas[] = {1, 1, 0.5f, 0}, betas[] = {0, 0, 1, -2};
    if (!context) skip();
    for (size_t kind = 0; kind < KINDS; kind++)
        for (int turn = 0; turn < turns; turn++) {
            const jg_problem p = random_problem(kind);
            if (is_refused(&p)) break;
            const float alpha = alphas[pick(4)], beta = betas[pick(4)];
            make_blocks(&p);
            run_form(p, JG_FORM_GENERIC, alpha, beta);
            run_form(p, JG_FORM_SPECIALISED, alpha, beta);
            free_blocks();
        }
}

static int setup(void **state)
{
    (void)state;
    scratch_make(folder);
    snprintf(cache, sizeof cache, "%s/kernels.db", folder);
    const jg_options options = {.driver_path = "swgpu", .compile = JG_COMPILE_WAIT, .cache_path = cache, .factory_path = ""};
    const jg_problem first = {.m = 1, .n = 1, .k = 1};
    jg_plan *made = NULL;
    if (jg_open(&options, &context) != JG_OK) fail_msg("%s", jg_last_error());
    const jg_status status = jg_plan_create(context, &first, &made);
    jg_plan_destroy(made);
    if (status != JG_ERR_NO_NVRTC) return status != JG_OK;
    print_message("SKIP no NVRTC: %s\n", jg_last_error());
    jg_close(context);
    context = NULL;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    if (context) assert_int_equal(jg_close(context), JG_OK);
    scratch_remove(folder);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(products_are_those_of_plain_loops)};
    return cmocka_run_group_tests_name("kinds_swgpu", tests, setup, teardown);
}
