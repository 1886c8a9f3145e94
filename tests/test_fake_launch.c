/* The double of the launch path: names are read back as what they were written for, numbers are what the kernels make of them,
 * products with everything fused in come out as by hand, and a launch that breaks a promise is refused. */
#include "fake_launch.h"

#include "plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* The kernels' own arithmetic, as plain C. */
typedef unsigned u32;
#define JG_FN static inline
#define JG_FMA(a, b, c) fmaf(a, b, c)
#define JG_MUL(a, b) ((a) * (b))
#define JG_ADD(a, b) ((a) + (b))
#define JG_DIV(a, b) ((a) / (b))
#define JG_BITS(f) bits_of(f)
#define JG_FLOAT(u) float_of(u)
#include "templates/numbers.cuh"

static uint64_t random_state = 99;
static uint32_t pick(void)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 32);
}

static problem canonical(jg_problem in)
{
    problem p;
    if (problem_canonicalise(&in, &p) != JG_OK) fail_msg("%s", jg_last_error());
    return p;
}

static limits of(int number)
{
    limits l;
    assert_int_equal(limits_of_arch(number, 0, &l), JG_OK);
    return l;
}

/* --- names --- */

static int as_promised(uint8_t member)
{
    return member == SPEC_ARGUMENT ? -1 : member;
}

static int size_as_promised(long long promised, int64_t size, int is_specialised)
{
    return is_specialised ? promised == (size ? size : -1) : promised == 0;
}

/* Every member that a name has. */
static void check_name(const kernel_spec *s)
{
    char name[KERNEL_NAME_BYTES];
    promise p;
    kernel_format_name(s, name);
    if (!read_name(name, &p)) fail_msg("%s is not understood", name);
    const int specialised = s->form == JG_FORM_SPECIALISED;
    const int families[] = {[FAMILY_SIMT] = 's', [FAMILY_MMA] = 'm', [FAMILY_TF32] = 't'};
    const long long fused = s->fusion & ~(15u << 12);
    if (p.family != families[s->family] || p.type_a != s->type_a || p.type_b != s->type_b || p.math != s->math ||
        p.trans_a != as_promised(s->trans_a) || p.trans_b != as_promised(s->trans_b) || p.vec_a != as_promised(s->vec_a) ||
        p.vec_b != as_promised(s->vec_b) || p.is_specialised != specialised ||
        p.type_c != (specialised ? type_c_of(s->fusion) : -1) || p.fusion != (specialised ? fused : -1) ||
        p.vec_c != as_promised(s->vec_c) || p.batched != (specialised ? !s->single : -1))
        fail_msg("%s is misread", name);
    if (p.tile_m != s->tile.m || p.tile_n != s->tile.n || p.tile_k != s->tile.k || p.part_m != s->tile.warp_m ||
        p.part_n != s->tile.warp_n || p.stages != s->tile.stages || p.slices != s->tile.slices)
        fail_msg("%s: the tile is misread", name);
    if (!size_as_promised(p.m, s->m, specialised) || !size_as_promised(p.n, s->n, specialised) ||
        !size_as_promised(p.k, s->k, specialised) || !size_as_promised(p.lda, s->lda, specialised) ||
        !size_as_promised(p.ldb, s->ldb, specialised) || !size_as_promised(p.ldc, s->ldc, specialised))
        fail_msg("%s: a size is misread", name);
    assert_int_equal(shared_of(&p, p.slices * (p.tile_m / p.part_m) * (p.tile_n / p.part_n)), kernel_shared_bytes(s));
    /* Nothing may come after it, and nothing be missing. */
    char longer[KERNEL_NAME_BYTES + 8];
    snprintf(longer, sizeof longer, "%s_x", name);
    assert_false(read_name(longer, &p));
}

static void visit(void *user, const plan *candidate, const char *reason)
{
    (void)user;
    if (!reason[0]) check_name(&candidate->spec);
}

static const struct {
    jg_type a, b;
    unsigned math;
} kinds[] = {
    {JG_F32, JG_F32, 0},
    {JG_F16, JG_F16, 0},
    {JG_BF16, JG_BF16, JG_MATH_STRICT},
    {JG_F32, JG_F32, JG_MATH_TF32},
    {JG_F32, JG_F32, JG_MATH_F32_3XTF32 | JG_MATH_FLUSH},
    {JG_F32, JG_F32, JG_MATH_STRICT | JG_MATH_FLUSH | JG_MATH_SANITIZE},
    {JG_F16, JG_F16, JG_MATH_F16 | JG_MATH_SANITIZE},
    {JG_S8, JG_S8, 0},
    {JG_U8, JG_S8, 0},
    {JG_S4, JG_S4, JG_MATH_STRICT},
    {JG_F16, JG_S8, 0},
    {JG_S4, JG_BF16, 0},
    {JG_E4M3, JG_E5M2, 0},
    {JG_E5M2, JG_E5M2, JG_MATH_FLUSH},
};
#define KINDS (sizeof kinds / sizeof kinds[0])

static jg_problem random_problem(size_t kind)
{
    static const jg_type results[] = {JG_F32, JG_F16, JG_BF16, JG_S8, JG_U8, JG_E4M3, JG_E5M2};
    static const jg_type biases[] = {JG_F32, JG_F16, JG_BF16};
    const int weights = type_is_integer(kinds[kind].a) != type_is_integer(kinds[kind].b);
    jg_problem p = {.m = 1 + pick() % 300,
                    .n = 2 + pick() % 300 / 2 * 2,
                    .k = 2 + pick() % 300 / 2 * 2,
                    .type_a = kinds[kind].a,
                    .type_b = kinds[kind].b,
                    .math = kinds[kind].math,
                    .op_a = pick() % 2,
                    .op_b = pick() % 2,
                    .order = pick() % 2,
                    .type_c = results[pick() % 7],
                    .dynamic = pick() % 16,
                    .activation = pick() % 8,
                    .epilogue = pick() % 256,
                    .type_bias = biases[pick() % 3],
                    .group_k = weights && pick() % 2 ? 32u << pick() % 3 : 0};
    p.m += p.m % 2;
    p.zero_points = p.group_k && pick() % 2;
    if (p.epilogue & JG_EPILOGUE_RESIDUAL) p.epilogue &= ~JG_EPILOGUE_RESIDUAL_AFTER;
    if (pick() % 2) p.batch = 2, p.stride_c = 400000;
    return p;
}

static void names_are_read_back(void **state)
{
    (void)state;
    for (size_t a = 0; arch_at(a); a++)
        for (size_t i = 0; i < KINDS; i++)
            for (int turn = 0; turn < 12; turn++) {
                const limits l = of(arch_at(a)->number);
                const problem p = canonical(random_problem(i));
                const access_widths w = plan_access(&p, 4u << turn % 3, 4u << turn / 4, 16);
                if (!l.arch->has_mma && (i == 3 || i == 4 || i == 6)) continue;
                plan_each(&p, w, turn % 2 ? JG_FORM_SPECIALISED : JG_FORM_GENERIC, &l, visit, NULL);
            }
    static const char *const wrong[] = {"",
                                        "jg_sm87",
                                        "jg_sm87_none_f32f32f32_nn_64x64x16_t4x4_s2_a4",
                                        "jg_sm87_simt_f32f32_nn_64x64x16_t4x4_s2_a4",
                                        "jg_sm87_simt_f32f32f9_nn_64x64x16_t4x4_s2_a4",
                                        "jg_sm87_simt_f32f32f32_nn_64x64x16_w4x4_s2_a4",
                                        "jg_sm87_simt_f32f32f32_nn_64x64x16_t4x4_s2_k0_a4",
                                        "jg_sm87_simt_f32f32f32_nn_64x64x16_t4x4_s2_a4_m1n1k1_l1_1_1",
                                        "jg_sm87_simt_f32f32f32_nn_64x64x16_t4x4_s2_a4_m0n1k1_l1_1_1_c1",
                                        "jg_sm87_simt_f32f32f32_slow_nn_64x64x16_t4x4_s2_a4"};
    promise p;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) assert_false(read_name(wrong[i], &p));
}

/* --- numbers --- */

static void check_float(float x)
{
    uint8_t byte;
    int32_t word;
    set(&byte, JG_E4M3, 0, x, 0);
    assert_int_equal(byte, jg_to_e4m3(x));
    set(&byte, JG_E5M2, 0, x, 0);
    assert_int_equal(byte, jg_to_e5m2(x));
    set(&byte, JG_S8, 0, x, 0);
    assert_int_equal((int8_t)byte, jg_to_s8(x));
    set(&byte, JG_U8, 0, x, 0);
    assert_int_equal(byte, jg_to_u8(x));
    set(&word, JG_S32, 0, x, 0);
    assert_int_equal(word, jg_to_s32(x));
}

static void numbers_are_those_of_the_kernels(void **state)
{
    (void)state;
    for (unsigned code = 0; code < 256; code++) {
        const uint8_t byte = (uint8_t)code;
        const float e4m3 = get(&byte, JG_E4M3, 0, 0), e5m2 = get(&byte, JG_E5M2, 0, 0), kernel_e4m3 = jg_from_e4m3(code);
        const float kernel_e5m2 = jg_from_e5m2(code);
        assert_true(e4m3 == kernel_e4m3 || (e4m3 != e4m3 && kernel_e4m3 != kernel_e4m3));
        assert_true(e5m2 == kernel_e5m2 || (e5m2 != e5m2 && kernel_e5m2 != kernel_e5m2));
        assert_int_equal(get_integer(&byte, JG_S8, 0), code < 128 ? (int)code : (int)code - 256);
        assert_int_equal(get_integer(&byte, JG_U8, 0), code);
        assert_int_equal(get_integer(&byte, JG_S4, 0), (int)(code & 15) - (code & 8 ? 16 : 0)); /* even: the low half */
        assert_int_equal(get_integer(&byte, JG_S4, 1), (int)(code >> 4) - (code & 128 ? 16 : 0));
        check_float(e4m3), check_float(e5m2);
        check_float(nextafterf(e4m3, 0)), check_float(nextafterf(e5m2, INFINITY));
    }
    static const float specials[] = {
        0,      -0.0f,   INFINITY, -INFINITY, NAN,  448,  464,  465,   57344,         61440,         65520,          127.5f,
        128.5f, -128.5f, 254.5f,   255.5f,    0.5f, 1.5f, 2.5f, -0.5f, 2147483520.0f, 2147483648.0f, -2147483648.0f, 8388607.5f};
    for (size_t i = 0; i < sizeof specials / sizeof specials[0]; i++) check_float(specials[i]);
    for (int i = 0; i < 20000; i++) check_float(float_of(pick()));
    for (int i = 0; i < 20000; i++) check_float((float)((int32_t)pick() >> 16) / 64); /* ties of all kinds */
}

static void activations_are_those_of_the_kernels(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < 8; kind++)
        for (int i = -3000; i <= 3000; i++) {
            const float x = (float)i / 100, mine = activated(kind, x, -1.5f, 2.5f), theirs = jg_activate(kind, x, -1.5f, 2.5f);
            const float off = fabsf(mine - theirs);
            /* Far below 0 the argument of e^x is large, and gelu_erf the difference of near numbers. */
            if (off > 1e-5f * fabsf(mine) && off > (kind == JG_ACTIVATION_GELU_ERF ? 4e-7f * fabsf(x) : 1e-30f))
                fail_msg("activation %u of %g: %g and %g", kind, (double)x, (double)mine, (double)theirs);
        }
    assert_true(isnan(activated(JG_ACTIVATION_RELU, NAN, 0, 0)) && isnan(activated(JG_ACTIVATION_CLAMP, NAN, -1, 1)));
    assert_true(activated(JG_ACTIVATION_SILU, -INFINITY, 0, 0) == 0 && activated(JG_ACTIVATION_GELU_ERF, -INFINITY, 0, 0) == 0);
}

static void flushing_and_sanitising(void **state)
{
    (void)state;
    const float small = 0x1p-127f, bad[] = {INFINITY, NAN};
    const uint16_t half = 1, infinity = 0x7c00;
    const uint8_t byte = 0x87; /* -7 * 2^-9 */
    uint16_t out;
    assert_true(get(&small, JG_F32, 0, 0) == small && get(&small, JG_F32, 0, JG_MATH_FLUSH) == 0);
    assert_true(get(&half, JG_F16, 0, 0) == 0x1p-24f && get(&half, JG_F16, 0, JG_MATH_FLUSH) == 0);
    assert_true(get(&byte, JG_E4M3, 0, 0) == -7 * 0x1p-9f);
    assert_int_equal(bits_of(get(&byte, JG_E4M3, 0, JG_MATH_FLUSH)), 0x80000000u); /* with its sign */
    for (int i = 0; i < 2; i++) assert_true(get(bad, JG_F32, i, JG_MATH_SANITIZE) == 0);
    assert_true(get(&infinity, JG_F16, 0, JG_MATH_SANITIZE) == 0);
    set(&out, JG_F16, 0, -1e6f, JG_MATH_SANITIZE);
    assert_int_equal(out, 0xfbff);
    set(&out, JG_F16, 0, -1e6f, 0);
    assert_int_equal(out, 0xfc00);
    set(&out, JG_F16, 0, -0x1p-20f, JG_MATH_FLUSH);
    assert_int_equal(out, 0x8000);
    set(&out, JG_BF16, 0, 0x1p-128f, JG_MATH_FLUSH);
    assert_int_equal(out, 0);
}

/* --- launches --- */

/* The launch of a problem's plan on data. */
static fake_launch launch_of(jg_problem in, jg_form form, const jg_operands *data, int number)
{
    const problem p = canonical(in);
    const limits l = of(number);
    const operands o = operands_canonicalise(&p, data);
    plan chosen;
    fake_launch launch;
    memset(&launch, 0, sizeof launch);
    const access_widths w =
        plan_access(&p, operands_alignment(o.a), operands_alignment(o.b), operands_alignment(o.c));
    if (plan_choose(&p, w, form, &l, &chosen) != JG_OK) fail_msg("%s", jg_last_error());
    kernel_format_name(&chosen.spec, launch.kernel);
    launch_prepare(&p, &chosen, &launch.args);
    launch_fill(&p, &o, &launch.args);
    launch.grid[0] = (unsigned)chosen.grid_x, launch.grid[1] = (unsigned)chosen.grid_y, launch.grid[2] = 1;
    launch.block[0] = (unsigned)chosen.threads, launch.block[1] = launch.block[2] = 1;
    launch.shared_bytes = (unsigned)chosen.shared_bytes;
    return launch;
}

static void run(jg_problem in, const jg_operands *data)
{
    static const int numbers[] = {75, 87};
    for (int i = 0; i < 2; i++)
        for (int form = JG_FORM_GENERIC; form <= JG_FORM_SPECIALISED; form++) {
            char fault[512] = "";
            const fake_launch l = launch_of(in, (jg_form)form, data, numbers[i]);
            if (fake_check(&l, 1 << 20, fault, sizeof fault) != CUDA_SUCCESS) fail_msg("%s", fault);
            fake_compute(&l);
        }
}

static _Alignas(16) float c[64];

/* 2 x 1 x 2 in every type: (1 2; 3 -4) * (2; -1) = (0; 10). */
static void products_of_every_type(void **state)
{
    (void)state;
    static const _Alignas(16) float f32_a[] = {1, 2, 3, -4}, f32_b[] = {2, -1};
    static const _Alignas(16) uint16_t f16_a[] = {0x3c00, 0x4000, 0x4200, 0xc400}, f16_b[] = {0x4000, 0xbc00};
    static const _Alignas(16) uint16_t bf16_a[] = {0x3f80, 0x4000, 0x4040, 0xc080}, bf16_b[] = {0x4000, 0xbf80};
    static const _Alignas(16) int8_t s8_a[] = {1, 2, 3, -4}, s8_b[] = {2, -1};
    static const _Alignas(16) uint8_t s4_a[] = {0x21, 0xc3}, s4_b[] = {0xf2};
    static const _Alignas(16) uint8_t e4m3_a[] = {0x38, 0x40, 0x44, 0xc8}, e4m3_b[] = {0x40, 0xb8};
    static const _Alignas(16) uint8_t e5m2_a[] = {0x3c, 0x40, 0x42, 0xc4}, e5m2_b[] = {0x40, 0xbc};
    static const struct {
        jg_type a, b;
        const void *data_a, *data_b;
    } rows[] = {
        {JG_F32, JG_F32, f32_a, f32_b},     {JG_F16, JG_F16, f16_a, f16_b},     {JG_BF16, JG_BF16, bf16_a, bf16_b},
        {JG_S8, JG_S8, s8_a, s8_b},         {JG_S4, JG_S4, s4_a, s4_b},         {JG_F16, JG_S8, f16_a, s8_b},
        {JG_S4, JG_F16, s4_a, f16_b},       {JG_BF16, JG_S4, bf16_a, s4_b},     {JG_S8, JG_BF16, s8_a, bf16_b},
        {JG_E4M3, JG_E4M3, e4m3_a, e4m3_b}, {JG_E4M3, JG_E5M2, e4m3_a, e5m2_b}, {JG_E5M2, JG_E4M3, e5m2_a, e4m3_b},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (int op_b = 0; op_b < 2; op_b++) {
            /* Stored transposed, B is one row; as s4 it must be, as rows begin at bytes. */
            if (rows[i].b == JG_S4 && !op_b) continue;
            jg_problem p = {
                .m = 2, .n = 1, .k = 2, .type_a = rows[i].a, .type_b = rows[i].b, .type_c = JG_F32, .op_b = (jg_op)op_b};
            const jg_operands data = {.a = rows[i].data_a, .b = rows[i].data_b, .c = c};
            c[0] = c[1] = 99;
            run(p, &data);
            assert_true(c[0] == 0 && c[1] == 10);
            if (!type_is_integer(rows[i].a) || !type_is_integer(rows[i].b)) continue;
            p.type_c = JG_S32;
            run(p, &data);
            assert_int_equal(((const int32_t *)c)[1], 10);
        }
}

/* Integers stay integers where that is exact, beyond float32's 24 bits; else they are rounded once to float32. */
static void integers_are_exact(void **state)
{
    (void)state;
    static _Alignas(16) uint8_t a[1200], b[1200];
    static _Alignas(16) int32_t out[1];
    const jg_problem p = {.m = 1, .n = 1, .k = 1200, .type_a = JG_U8, .type_b = JG_U8, .type_c = JG_S32, .op_b = JG_T};
    static const float one = 1, two = 2;
    memset(a, 255, sizeof a), memset(b, 255, sizeof b);
    run(p, &(jg_operands){.a = a, .b = b, .c = out});
    assert_int_equal(out[0], 78030000);
    b[0] = 254;
    run(p, &(jg_operands){.a = a, .b = b, .c = out});
    assert_int_equal(out[0], 78029745);
    out[0] = -78029745;
    const fake_launch l = launch_of(p, JG_FORM_GENERIC, &(jg_operands){.a = a, .b = b, .c = out, .beta = &one}, 87);
    fake_compute(&l);
    assert_int_equal(out[0], 0);
    run(p, &(jg_operands){.a = a, .b = b, .c = out, .alpha = &two});
    assert_int_equal(out[0], 156059488); /* 2 * 78029744, the nearest float */
}

/* Each step by itself, and all of them in their order. 2 x 2 of sums (4 -6; 10 1) with k = 1. */
static void steps_of_the_epilogue(void **state)
{
    (void)state;
    static const _Alignas(16) float a[] = {2, 1}, b[] = {2, -3};
    static const float scale[] = {2}, scale_m[] = {1, 3}, scale_n[] = {1, -1}, bias_m[] = {10, 20};
    static const uint16_t bias_n[] = {0x3c00, 0xc000}; /* 1, -2 in f16 */
    static const _Alignas(16) float residual[] = {100, 200, 0, 300, 400, 0};
    static const float alpha = 0.5f;
    jg_operands data = {.a = a,
                        .b = b,
                        .c = c,
                        .alpha = &alpha,
                        .scale = scale,
                        .scale_m = scale_m,
                        .scale_n = scale_n,
                        .bias_m = bias_m,
                        .residual = residual,
                        .clamp_low = -1,
                        .clamp_high = 1.5f,
                        .out_scale = 10,
                        .out_zero = 3};
    static const struct {
        uint32_t epilogue;
        jg_activation activation;
        float c[4];
    } rows[] = {
        {0, 0, {2, -3, 1, -1.5f}},
        {JG_EPILOGUE_SCALE, 0, {4, -6, 2, -3}},
        {JG_EPILOGUE_SCALE_M, 0, {2, -3, 3, -4.5f}},
        {JG_EPILOGUE_SCALE_N, 0, {2, 3, 1, 1.5f}},
        {JG_EPILOGUE_BIAS_M, 0, {12, 7, 21, 18.5f}},
        {JG_EPILOGUE_BIAS_N, 0, {3, -5, 2, -3.5f}},
        {JG_EPILOGUE_RESIDUAL, 0, {102, 197, 301, 398.5f}},
        {0, JG_ACTIVATION_RELU, {2, 0, 1, 0}},
        {JG_EPILOGUE_BIAS_M, JG_ACTIVATION_RELU6, {6, 6, 6, 6}},
        {0, JG_ACTIVATION_CLAMP, {1.5f, -1, 1, -1}},
        {JG_EPILOGUE_RESIDUAL, JG_ACTIVATION_CLAMP, {1.5f, 1.5f, 1.5f, 1.5f}},
        {JG_EPILOGUE_RESIDUAL_AFTER, JG_ACTIVATION_CLAMP, {101.5f, 199, 301, 399}},
        {JG_EPILOGUE_REQUANTIZE, JG_ACTIVATION_RELU, {23, 3, 13, 3}},
        {JG_EPILOGUE_SCALE | JG_EPILOGUE_SCALE_M | JG_EPILOGUE_SCALE_N | JG_EPILOGUE_BIAS_M | JG_EPILOGUE_BIAS_N |
             JG_EPILOGUE_RESIDUAL_AFTER | JG_EPILOGUE_REQUANTIZE,
         JG_ACTIVATION_CLAMP,
         {1018, 2018, 3018, 4018}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const int has_n = rows[i].epilogue & JG_EPILOGUE_BIAS_N && !(rows[i].epilogue & JG_EPILOGUE_BIAS_M);
        static const float both_n[] = {1, -2};
        jg_problem p = {.m = 2, .n = 2, .k = 1, .epilogue = rows[i].epilogue, .activation = rows[i].activation,
                        .ld_residual = rows[i].epilogue & 96 ? 3 : 0, .type_bias = has_n ? JG_F16 : JG_DEFAULT_TYPE};
        data.bias_n = has_n ? (const void *)bias_n : both_n;
        run(p, &data);
        for (int x = 0; x < 4; x++)
            if (c[x] != rows[i].c[x]) fail_msg("row %zu, element %d: %g instead of %g", i, x, (double)c[x], (double)rows[i].c[x]);
    }
}

/* Two groups of 32: (q - zero) * scale. */
static void weights_in_groups(void **state)
{
    (void)state;
    static _Alignas(16) uint16_t a[64];
    static _Alignas(16) int8_t b[128];
    static const uint16_t scales[] = {0x3c00, 0x4000, 0x3800, 0x4400}; /* 1 2 / 0.5 4 */
    static const int8_t zeros[] = {1, 0, -2, 3};
    for (int i = 0; i < 64; i++) a[i] = 0x3c00, b[2 * i] = 3, b[2 * i + 1] = -1;
    jg_problem p = {
        .m = 1, .n = 2, .k = 64, .type_a = JG_F16, .type_b = JG_S8, .type_c = JG_F32, .group_k = 32, .zero_points = 1};
    const jg_operands data = {.a = a, .b = b, .c = c, .group_scales = scales, .group_zeros = zeros};
    run(p, &data);
    assert_true(c[0] == 32 * (2 * 1 + 5 * 0.5f) && c[1] == 32 * (-1 * 2 + -4 * 4));
    p.zero_points = 0;
    run(p, &data);
    assert_true(c[0] == 32 * (3 + 1.5f) && c[1] == 32 * (-2 + -4));
}

/* --- what is refused --- */

static void expect_fault(const fake_launch *l, const char *text)
{
    char fault[512] = "";
    if (fake_check(l, 1 << 20, fault, sizeof fault) == CUDA_SUCCESS) fail_msg("nothing is wrong, instead of: %s", text);
    if (!strstr(fault, text)) fail_msg("\"%s\" does not say \"%s\"", fault, text);
}

static void broken_promises_are_refused(void **state)
{
    (void)state;
    static _Alignas(16) float room[1024];
    const jg_operands data = {.a = room, .b = room, .c = room, .bias_n = room, .residual = room, .scale_m = room};
    const jg_problem p = {.m = 8, .n = 16, .k = 32, .type_a = JG_F16, .epilogue = JG_EPILOGUE_BIAS_N | JG_EPILOGUE_RESIDUAL};
    const fake_launch good = launch_of(p, JG_FORM_SPECIALISED, &data, 87), generic = launch_of(p, JG_FORM_GENERIC, &data, 87);
    char fault[512] = "";
    assert_int_equal(fake_check(&good, 1 << 20, fault, sizeof fault), CUDA_SUCCESS);
    assert_int_equal(fake_check(&generic, 1 << 20, fault, sizeof fault), CUDA_SUCCESS);
    fake_launch l = good;
#define BREAK(change, text) (l = good, change, expect_fault(&l, text))
    BREAK(l.args.fusion |= JG_EPILOGUE_SCALE_M, "of another kernel");
    BREAK(l.args.fusion ^= 3 << 12, "of another type of C");
    BREAK(l.args.m++, "launched with");
    BREAK(l.args.ldb += 8, "launched with");
    BREAK(l.args.flags ^= 1, "of another op");
    BREAK(l.args.flags |= 64, "unknown flags");
    BREAK((l.args.batch = 2, l.grid[1] = 2), "launched for 2 items");
    BREAK(l.block[0]++, "threads");
    BREAK(l.shared_bytes++, "shared bytes");
    BREAK(l.grid[0]++, "grid");
    BREAK(l.args.bias_n = NULL, "operand 4 is");
    BREAK(l.args.residual = (char *)room + 1, "operand 5 is");
    BREAK(l.args.a = (char *)room + 8, "not aligned");
#undef BREAK
#define BREAK(change, text) (l = generic, change, expect_fault(&l, text))
    BREAK(l.args.fusion |= JG_EPILOGUE_RESIDUAL_AFTER, "makes no sense");
    BREAK(l.args.fusion |= 1u << 20, "makes no sense");
    BREAK(l.args.fusion |= 1u << 22, "makes no sense");
    BREAK(l.args.fusion |= 1u << 23, "makes no sense");
    BREAK(l.args.fusion &= ~(15u << 16), "makes no sense");
    BREAK(l.args.fusion = (l.args.fusion & ~(15u << 12)) | JG_S4 << 12, "of another type of C");
    BREAK(l.args.fusion = (l.args.fusion & ~(15u << 12)) | JG_S32 << 12, "of another type of C");
    BREAK((l.args.flags &= ~16u, l.args.c = (char *)room + 1), "not aligned");
    /* A kernel that copies what it has to convert cannot be. */
    l = good;
    snprintf(l.kernel, sizeof l.kernel, "%s", "jg_sm87_mma_f16f16x_ftz_nn_64x64x32_w32x32_s3_a16");
    l.args = generic.args;
    l.block[0] = 128, l.shared_bytes = 3 * 128 * 32 * 2, l.grid[0] = 1;
    expect_fault(&l, "copies what it has to convert");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_read_back),      cmocka_unit_test(numbers_are_those_of_the_kernels),
        cmocka_unit_test(activations_are_those_of_the_kernels), cmocka_unit_test(flushing_and_sanitising),
        cmocka_unit_test(products_of_every_type),   cmocka_unit_test(integers_are_exact),
        cmocka_unit_test(steps_of_the_epilogue),    cmocka_unit_test(weights_in_groups),
        cmocka_unit_test(broken_promises_are_refused),
    };
    return cmocka_run_group_tests_name("fake_launch", tests, NULL, NULL);
}
