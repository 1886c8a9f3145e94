/* Whether jitgemm-bench tells right results from wrong ones in every type and mode of math, and with all that can be fused in.
 * Products are computed here, in float32 by the header's words, in the caller's terms, from what lies on the device. */
#include "bench_gpu_fixture.h"

#include <math.h>

#include "tools/bench_elements.h"
#include "tools/bench_pool.h"

/* ---- a product and what it needs, on the host ---- */

static bench_pool pool; /* one for all: to fill it takes longer than a product */
#define POOL_BYTES ((size_t)1 << 18)

enum { A, B, C, SCALE, SCALE_M, SCALE_N, BIAS_M, BIAS_N, RESIDUAL, GROUP_SCALES, GROUP_ZEROS, BLOCKS };

typedef struct product {
    jg_problem p;
    bench_layout layout;
    jg_operands data;    /* on the device */
    char *host[BLOCKS];  /* copies; null: the product has no such thing */
    jg_type types[BLOCKS];
    int64_t lda, ldb, ldc, ld_residual;
} product;

static char *copied(const void *from, size_t bytes)
{
    char *to = malloc(bytes + 1);
    assert_non_null(to);
    copy_from_device(to, from, bytes);
    return to;
}

static void copy_extras(product *x)
{
    const jg_operands *d = &x->data;
    const int swapped = x->layout.problem.swapped;
    const struct { int block; const void *at; bench_extra_kind kind; } extras[] = {
        {SCALE, d->scale, BENCH_SCALE}, {SCALE_M, d->scale_m, swapped ? BENCH_SCALE_N : BENCH_SCALE_M},
        {SCALE_N, d->scale_n, swapped ? BENCH_SCALE_M : BENCH_SCALE_N},
        {BIAS_M, d->bias_m, swapped ? BENCH_BIAS_N : BENCH_BIAS_M},
        {BIAS_N, d->bias_n, swapped ? BENCH_BIAS_M : BENCH_BIAS_N}, {RESIDUAL, d->residual, BENCH_RESIDUAL},
        {GROUP_SCALES, d->group_scales, BENCH_GROUP_SCALES}, {GROUP_ZEROS, d->group_zeros, BENCH_GROUP_ZEROS}};
    for (size_t i = 0; i < COUNT(extras); i++) {
        const bench_extra *e = &x->layout.extras[extras[i].kind];
        x->types[extras[i].block] = e->type;
        if (e->count) x->host[extras[i].block] = copied(extras[i].at, (size_t)type_row_bytes(e->type, (int64_t)e->count));
    }
}

static void make_product(product *x, const jg_problem *p)
{
    memset(x, 0, sizeof *x);
    x->p = *p;
    assert_ok(bench_layout_make(p, 0, 1, &x->layout));
    const bench_layout *l = &x->layout;
    const problem *c = &l->problem;
    const int swapped = c->swapped;
    assert_true(bench_layout_in_bytes(l) <= POOL_BYTES && bench_layout_out_bytes(l) <= POOL_BYTES);
    assert_true(bench_layout_extra_bytes(l) <= POOL_BYTES);
    assert_ok(bench_pool_fill(&pool, l));
    x->data = bench_pool_operands(&pool, l, 0, NULL);
    x->types[A] = (jg_type)(swapped ? c->type_b : c->type_a);
    x->types[B] = (jg_type)(swapped ? c->type_a : c->type_b);
    x->types[C] = (jg_type)c->type_c;
    x->lda = swapped ? c->ldb : c->lda;
    x->ldb = swapped ? c->lda : c->ldb;
    x->ldc = c->ldc;
    x->ld_residual = c->ld_residual;
    x->host[A] = copied(x->data.a, swapped ? l->b_bytes - l->b_offset : l->a_bytes - l->a_offset);
    x->host[B] = copied(x->data.b, swapped ? l->a_bytes - l->a_offset : l->b_bytes - l->b_offset);
    copy_extras(x);
}

static void free_product(product *x)
{
    for (int i = 0; i < BLOCKS; i++) free(x->host[i]);
}

/* ---- by the header's words ---- */

static float get(const product *x, int block, int64_t at)
{
    const float value = bench_element_get(x->host[block], (size_t)at, x->types[block]);
    const int is_flushed = x->p.math & JG_MATH_FLUSH && fabs((double)value) < bench_element_normal(x->types[block]);
    return is_flushed ? 0 : value;
}

static int64_t place(const product *x, jg_op op, int64_t ld, int64_t row, int64_t column)
{
    return (op == JG_T) != (x->p.order == JG_COL_MAJOR) ? column * ld + row : row * ld + column;
}

/* A weight of group_k: its line is its place along n, or m. */
static float weight(const product *x, int block, float value, int64_t along_k, int64_t line)
{
    const int64_t at = along_k / x->p.group_k * (block == B ? x->p.n : x->p.m) + line;
    const float zero = x->p.zero_points ? get(x, GROUP_ZEROS, at) : 0;
    return bench_element_rounded((value - zero) * get(x, GROUP_SCALES, at), x->types[block == B ? A : B]);
}

/* Rounded to so many significant bits. */
static float shortened(float value, int bits)
{
    int exponent;
    const float part = frexpf(value, &exponent);
    return ldexpf(nearbyintf(ldexpf(part, bits)), exponent - bits);
}

static int is_integer(const product *x)
{
    return type_is_integer(x->types[A]) && type_is_integer(x->types[B]);
}

/* The sum of the first k products. *integer: of integers. */
static float sum_of(const product *x, int64_t i, int64_t j, int64_t k, int64_t *integer)
{
    const unsigned mode = x->p.math & 0xf;
    float sum = 0;
    *integer = 0;
    for (int64_t s = 0; s < k; s++) {
        float a = get(x, A, place(x, x->p.op_a, x->lda, i, s)), b = get(x, B, place(x, x->p.op_b, x->ldb, s, j));
        if (x->host[GROUP_SCALES] && type_is_integer(x->types[A])) a = weight(x, A, a, s, i);
        if (x->host[GROUP_SCALES] && type_is_integer(x->types[B])) b = weight(x, B, b, s, j);
        *integer += (int64_t)a * (int64_t)b;
        if (mode == JG_MATH_TF32) sum = fmaf(shortened(a, 11), shortened(b, 11), sum);
        else if (mode == JG_MATH_F16) sum = bench_element_rounded(fmaf(a, b, sum), JG_F16);
        else sum = fmaf(a, b, sum);
    }
    return is_integer(x) ? (float)(int32_t)*integer : sum;
}

static float activated(const product *x, float v)
{
    switch (x->p.activation) {
    case JG_ACTIVATION_RELU: return fmaxf(v, 0);
    case JG_ACTIVATION_RELU6: return fminf(fmaxf(v, 0), 6);
    case JG_ACTIVATION_CLAMP: return fminf(fmaxf(v, x->data.clamp_low), x->data.clamp_high);
    case JG_ACTIVATION_GELU_TANH: return v / 2 * (1 + tanhf(0.79788456f * (v + 0.044715f * v * v * v)));
    case JG_ACTIVATION_GELU_ERF: return v / 2 * (1 + erff(v * 0.70710678f));
    case JG_ACTIVATION_SILU: return v / (1 + expf(-v));
    case JG_ACTIVATION_SIGMOID: return 1 / (1 + expf(-v));
    default: return v;
    }
}

static void set_element(const product *x, void *c, int64_t i, int64_t j, int64_t k)
{
    const int64_t at = place(x, JG_N, x->ldc, i, j);
    int64_t integer;
    float f = x->data.alpha ? *x->data.alpha : 1, v = sum_of(x, i, j, k, &integer);
    if (is_integer(x) && x->types[C] == JG_S32 && !x->p.epilogue && !x->p.activation) {
        ((int32_t *)c)[at] = (int32_t)integer;
        return;
    }
    if (x->host[SCALE]) f *= get(x, SCALE, 0);
    if (x->host[SCALE_M]) f *= get(x, SCALE_M, i);
    if (x->host[SCALE_N]) f *= get(x, SCALE_N, j);
    v *= f;
    if (x->host[BIAS_M]) v += get(x, BIAS_M, i);
    if (x->host[BIAS_N]) v += get(x, BIAS_N, j);
    const int64_t residual = place(x, JG_N, x->ld_residual, i, j);
    if (x->p.epilogue & JG_EPILOGUE_RESIDUAL) v += get(x, RESIDUAL, residual);
    v = activated(x, v);
    if (x->p.epilogue & JG_EPILOGUE_RESIDUAL_AFTER) v += get(x, RESIDUAL, residual);
    if (x->p.epilogue & JG_EPILOGUE_REQUANTIZE) v = v * x->data.out_scale + x->data.out_zero;
    if (x->p.math & JG_MATH_SANITIZE && x->types[C] == JG_F16) v = fmaxf(fminf(v, 65504), -65504);
    bench_element_put(c, (size_t)at, x->types[C], v);
}

/* Of the first k products only. Other bytes are 0xff. */
static void *multiply(const product *x, int64_t k)
{
    char *c = malloc(x->layout.c_bytes);
    assert_non_null(c);
    memset(c, 0xff, x->layout.c_bytes);
    for (int64_t i = 0; i < x->p.m; i++)
        for (int64_t j = 0; j < x->p.n; j++) set_element(x, c, i, j, k);
    return c;
}

/* ---- what is right passes, and what is wrong does not ---- */

/* blind: one product too few is less than what is allowed, or than C can hold. */
static void check_problem(const char *what, jg_problem p, int blind)
{
    for (int form = 0; form < 8; form++) {
        product x;
        p.op_a = form & 1 ? JG_T : JG_N;
        p.op_b = form & 2 ? JG_T : JG_N;
        p.order = form & 4 ? JG_COL_MAJOR : JG_ROW_MAJOR;
        make_product(&x, &p);
        char *c = multiply(&x, p.k), *other = multiply(&x, p.k), *fewer = multiply(&x, blind ? 0 : p.k - 1);
        double own = 0;
        const double right = bench_pool_check(&pool, &x.layout, c), wrong = bench_pool_check(&pool, &x.layout, fewer);
        const double same = bench_pool_compare(&pool, &x.layout, c, other, &own);
        const double differs = bench_pool_compare(&pool, &x.layout, fewer, other, &own);
        if (!(right <= 1 && wrong > 1 && same == 0 && differs > 1 && own > 1))
            fail_msg("%s, form %d: right %g, wrong %g, same %g, differs %g, own %g", what, form, right, wrong, same, differs,
                     own);
        free(c);
        free(other);
        free(fewer);
        free_product(&x);
    }
}

static void every_type(void **state)
{
    (void)state;
    static const jg_type pairs[][2] = {
        {JG_F32, JG_F32}, {JG_F16, JG_F16}, {JG_BF16, JG_BF16}, {JG_S8, JG_S8}, {JG_U8, JG_S8}, {JG_S8, JG_U8}, {JG_U8, JG_U8},
        {JG_S4, JG_S4}, {JG_F16, JG_S8}, {JG_S8, JG_F16}, {JG_BF16, JG_S8}, {JG_F16, JG_S4}, {JG_S4, JG_BF16},
        {JG_E4M3, JG_E4M3}, {JG_E5M2, JG_E4M3}, {JG_E5M2, JG_E5M2}};
    static const jg_type results[] = {JG_F32, JG_F16, JG_BF16, JG_S8, JG_U8, JG_E4M3, JG_E5M2, JG_S32};
    for (size_t i = 0; i < COUNT(pairs); i++)
        for (size_t r = 0; r < COUNT(results); r++) {
            const int integers = type_is_integer(pairs[i][0]) && type_is_integer(pairs[i][1]);
            const int wide = results[r] == JG_F32 || results[r] == JG_F16 || results[r] == JG_S32;
            const jg_problem p = {.m = 14, .n = 18, .k = 40, .type_a = pairs[i][0], .type_b = pairs[i][1], .type_c = results[r]};
            char what[64];
            if (results[r] == JG_S32 && !integers) continue;
            snprintf(what, sizeof what, "%s x %s -> %s", type_name(p.type_a), type_name(p.type_b), type_name(p.type_c));
            check_problem(what, p, !wide);
        }
}

static void every_mode(void **state)
{
    (void)state;
    static const struct { const char *what; jg_type type; uint32_t math; int blind; } rows[] = {
        {"tf32", JG_F32, JG_MATH_TF32, 0}, {"3xtf32", JG_F32, JG_MATH_F32_3XTF32, 0}, {"strict", JG_F32, JG_MATH_STRICT, 0},
        {"strict f16", JG_F16, JG_MATH_STRICT, 0}, {"f16acc", JG_F16, JG_MATH_F16, 1}, {"flush", JG_F16, JG_MATH_FLUSH, 0},
        {"flush e4m3", JG_E4M3, JG_MATH_FLUSH, 1}, {"sanitize", JG_F16, JG_MATH_SANITIZE, 0},
        {"all", JG_BF16, JG_MATH_STRICT | JG_MATH_FLUSH | JG_MATH_SANITIZE, 0}};
    for (size_t i = 0; i < COUNT(rows); i++)
        for (int64_t k = 20; k <= 300; k += 140) {
            const jg_problem p = {.m = 13, .n = 17, .k = k, .type_a = rows[i].type, .math = rows[i].math};
            check_problem(rows[i].what, p, rows[i].blind);
        }
}

static void every_epilogue(void **state)
{
    (void)state;
    static const jg_type types[][3] = {{JG_F32, JG_F32, JG_F32}, {JG_F16, JG_F16, JG_F16}, {JG_S8, JG_S8, JG_S32},
                                       {JG_U8, JG_S8, JG_U8}, {JG_S8, JG_S8, JG_S8}, {JG_E4M3, JG_E4M3, JG_F16}};
    for (size_t t = 0; t < COUNT(types); t++)
        for (unsigned flags = 0; flags < 256; flags += 17) /* both halves alike: each flag with each other of its half */
            for (int activation = (int)(flags / 17 % 2); activation <= JG_ACTIVATION_SIGMOID; activation += 2) {
                jg_problem p = {.m = 9, .n = 11, .k = 24, .type_a = types[t][0], .type_b = types[t][1], .type_c = types[t][2],
                                .epilogue = flags, .activation = (jg_activation)activation,
                                .type_bias = flags & 16 ? JG_F16 : JG_F32};
                char what[96];
                if ((flags & 96) == 96) p.epilogue &= ~(uint32_t)JG_EPILOGUE_RESIDUAL_AFTER;
                /* Of a sigmoid of large sums nothing is seen. */
                const int blind = activation == JG_ACTIVATION_SIGMOID && t >= 2;
                if (blind || (p.epilogue == 0 && activation == 0)) continue;
                snprintf(what, sizeof what, "%s, epilogue %u, activation %d", type_name(p.type_c), p.epilogue, activation);
                check_problem(what, p, 1);
            }
}

static void weights_with_groups(void **state)
{
    (void)state;
    for (int i = 0; i < 16; i++) {
        const jg_type other = i & 1 ? JG_BF16 : JG_F16, narrow = i & 2 ? JG_S4 : JG_S8;
        const jg_problem p = {.m = 10, .n = 12, .k = 150, .type_a = i & 4 ? narrow : other, .type_b = i & 4 ? other : narrow,
                              .type_c = JG_F32, .group_k = i & 1 ? 64 : 32, .zero_points = i >> 3};
        char what[64];
        snprintf(what, sizeof what, "%s x %s, group %u, zeros %u", type_name(p.type_a), type_name(p.type_b), p.group_k,
                 p.zero_points);
        check_problem(what, p, 0);
    }
}

/* Integers are right or wrong: off by one is wrong. */
static void integers_are_exact(void **state)
{
    (void)state;
    const jg_problem p = {.m = 3, .n = 3, .k = 1000, .type_a = JG_U8};
    product x;
    double own = 0;
    make_product(&x, &p);
    int32_t *c = multiply(&x, p.k), *other = multiply(&x, p.k);
    assert_true(c[8] > 10000000);
    assert_true(bench_pool_check(&pool, &x.layout, c) == 0);
    c[8]++;
    assert_true(bench_pool_check(&pool, &x.layout, c) > 1);
    assert_true(bench_pool_compare(&pool, &x.layout, c, other, &own) > 1 && own > 1);
    free(c);
    free(other);
    free_product(&x);
}

/* A batch has groups of its own for each item, unless the items share the weights; a residual likewise. */
static void batches(void **state)
{
    (void)state;
    const jg_problem p = {.m = 4, .n = 6, .k = 70, .batch = 3, .type_a = JG_F16, .type_b = JG_S4, .stride_a = 280,
                          .stride_b = 420, .stride_c = 24, .group_k = 64, .epilogue = JG_EPILOGUE_RESIDUAL,
                          .stride_residual = 24};
    jg_problem shared = p;
    bench_layout l;
    assert_ok(bench_layout_make(&p, 0, 1, &l));
    assert_int_equal(l.extras[BENCH_GROUP_SCALES].count, 3 * 2 * 6);
    assert_int_equal(l.extras[BENCH_RESIDUAL].count, 72);
    shared.stride_b = shared.stride_residual = 0;
    assert_ok(bench_layout_make(&shared, 0, 1, &l));
    assert_int_equal(l.extras[BENCH_GROUP_SCALES].count, 2 * 6);
    assert_int_equal(l.extras[BENCH_RESIDUAL].count, 24);
}

/* ---- elements ---- */

static void elements(void **state)
{
    (void)state;
    static const struct { jg_type type; float value, becomes; } rows[] = {
        {JG_E4M3, 1000, 448}, {JG_E4M3, -449, -448}, {JG_E4M3, 0.0009765625f, 0}, {JG_E4M3, 0.0029296875f, 0.00390625f},
        {JG_E4M3, 1.0625f, 1}, {JG_E4M3, 1.1875f, 1.25f}, {JG_E4M3, 15.9f, 16}, {JG_E5M2, 1e9f, 57344}, {JG_E5M2, 1.125f, 1},
        {JG_E5M2, 0x1p-16f, 0x1p-16f}, {JG_E5M2, 0x1p-18f, 0}, {JG_S8, 2.5f, 2}, {JG_S8, 3.5f, 4}, {JG_S8, -200, -128},
        {JG_U8, -1, 0}, {JG_U8, 256, 255}, {JG_S4, 8, 7}, {JG_S4, -9, -8}, {JG_S32, 3e9f, 2147483648.0f},
        {JG_S32, -3e9f, -2147483648.0f}, {JG_S8, NAN, 0}, {JG_F16, 65520, INFINITY}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        const float got = bench_element_rounded(rows[i].value, rows[i].type);
        if (got != rows[i].becomes)
            fail_msg("%s of %g is %g, not %g", type_name(rows[i].type), (double)rows[i].value, (double)got,
                     (double)rows[i].becomes);
    }
    /* Every code of 8 bits is what it decodes to. */
    for (unsigned code = 0; code < 256; code++)
        for (int t = 0; t < 2; t++) {
            const jg_type type = t ? JG_E5M2 : JG_E4M3;
            uint8_t bits = (uint8_t)code, again = 0;
            const float value = bench_element_get(&bits, 0, type);
            bench_element_put(&again, 0, type, value);
            if (isnan(value)) assert_true(isnan(bench_element_get(&again, 0, type)));
            else if (isfinite(value)) assert_int_equal(again, code);
        }
    assert_true(isnan(bench_element_get("\xff", 0, JG_E4M3)) && isnan(bench_element_get("\xff", 0, JG_E5M2)));
    /* Of s4, the even one is in the low half, and the other stays. */
    uint8_t pair = 0;
    bench_element_put(&pair, 1, JG_S4, -3);
    bench_element_put(&pair, 0, JG_S4, 5);
    assert_int_equal(pair, 0xd5);
    assert_true(bench_element_get(&pair, 0, JG_S4) == 5 && bench_element_get(&pair, 1, JG_S4) == -3);
}

static int open_pool(void **state)
{
    return open_swgpu(state) == 0 && bench_pool_open(&gpu, POOL_BYTES, POOL_BYTES, POOL_BYTES, &pool) == JG_OK ? 0 : -1;
}

static int close_pool(void **state)
{
    bench_pool_close(&pool);
    return close_swgpu(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type),
        cmocka_unit_test(every_mode),
        cmocka_unit_test(every_epilogue),
        cmocka_unit_test(weights_with_groups),
        cmocka_unit_test(integers_are_exact),
        cmocka_unit_test(batches),
        cmocka_unit_test(elements),
    };
    return run_on_swgpu(tests, open_pool, close_pool);
}
