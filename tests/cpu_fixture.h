/* Products for the cpu device with all that can be fused in, and what each element of C must be, to the bit: the contract of
 * jitgemm.h said once more by plain loops over the caller's own layout. Takes the problem's structs, the conversions of
 * types_oracle.h and, for activations that are not a comparison, the shared functions that test_numbers tests; no more of the
 * library. To be built without contraction. */
#ifndef JG_TESTS_CPU_FIXTURE_H
#define JG_TESTS_CPU_FIXTURE_H

#include "cpu.h"
#include "cpu_numbers.h"
#include "types_oracle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* A stored matrix: element (i, j) of op(X) of an item is at item * stride + i * row + j * column. */
typedef struct cpu_matrix {
    jg_type type;
    int64_t rows, columns, row, column, stride, elements;
    unsigned char *data;
    size_t bytes;
} cpu_matrix;

/* The problem has every default filled in. Items of group scales and zero points follow each other. */
typedef struct cpu_case {
    jg_problem q;
    float alpha, beta;
    jg_operands given;
    int64_t batch, groups, width;  /* of the group scales, an item */
    jg_type other;                 /* what weights are rounded to; 0 without weights */
    int weights_b;
    cpu_matrix a, b, c, residual;
    float *scale, *scale_m, *scale_n;
    unsigned char *bias_m, *bias_n, *group_scales, *before;
    int8_t *group_zeros;
} cpu_case;

static inline uint64_t cpu_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static inline int64_t cpu_pick(uint64_t *state, int64_t below)
{
    return (int64_t)(cpu_random(state) % (uint64_t)below);
}

/* In [-1, 1). */
static inline double cpu_uniform(uint64_t *state)
{
    return (double)(cpu_random(state) >> 11) * 0x1p-52 - 1;
}

/* An element; with `special`, one in eight is NaN, infinity, denormal, large or any pattern at all. */
static inline uint32_t cpu_element(jg_type type, int special, uint64_t *state)
{
    const oracle_type *t = &oracle_types[type];
    const uint32_t any = (uint32_t)cpu_random(state) & (t->bits == 32 ? 0xffffffffu : (1u << t->bits) - 1);
    if (type == JG_S32) return special ? any : (uint32_t)((int32_t)any >> 12);
    if (!t->exponent) return any;
    const double value = cpu_uniform(state);
    if (special && cpu_random(state) % 8 == 0) {
        switch (cpu_random(state) % 5) {
        case 0: return oracle_round(type, NAN);
        case 1: return oracle_round(type, copysign(INFINITY, value));
        case 2: return oracle_round(type, value * oracle_smallest(type));
        case 3: return oracle_round(type, value * oracle_value(type, t->largest));
        default: return any;
        }
    }
    return oracle_round(type, value);
}

/* The leading dimension is `ld`, or dense; what is between the elements is 0xff. Lines are rows or columns, as the order says. */
static inline cpu_matrix cpu_matrix_make(const cpu_case *x, jg_type type, jg_op op, int64_t rows, int64_t columns,
                                         int64_t *ld, int64_t *stride, int special, uint64_t *state)
{
    const int by_rows = (x->q.order == JG_ROW_MAJOR) == (op == JG_N);
    const int64_t length = by_rows ? columns : rows, lines = by_rows ? rows : columns;
    if (*ld == 0) *ld = (length ? length : 1) + (type == JG_S4 && (length ? length : 1) % 2);
    cpu_matrix m = {type, rows, columns, by_rows ? *ld : 1, by_rows ? 1 : *ld, x->batch > 1 ? *stride : 0, 0, NULL, 0};
    m.elements = (x->batch > 0 ? x->batch - 1 : 0) * m.stride + lines * *ld + 8;
    m.bytes = (size_t)(m.elements * oracle_types[type].bits / 8 + 1);
    m.data = malloc(m.bytes);
    assert_non_null(m.data);
    memset(m.data, 0xff, m.bytes);
    for (int64_t item = 0; item < (m.stride ? x->batch : 1); item++)
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < columns; j++)
                oracle_put(type, m.data, item * m.stride + i * m.row + j * m.column, cpu_element(type, special, state));
    return m;
}

static inline void *cpu_vector(jg_type type, int64_t count, int special, uint64_t *state)
{
    unsigned char *data = malloc((size_t)(count + 1) * (size_t)oracle_types[type].bits / 8);
    assert_non_null(data);
    for (int64_t i = 0; i < count; i++) oracle_put(type, data, i, cpu_element(type, special, state));
    return data;
}

static inline jg_type cpu_default_c(jg_type a, jg_type b)
{
    if (a == JG_F16 || a == JG_BF16 || a == JG_F32) return a;
    if (b == JG_F16 || b == JG_BF16) return b;
    return oracle_is_float(a) ? JG_F32 : JG_S32;
}

/* Makes the data of a problem, whose types must be given but for C's; strides of 0 stay. */
static inline void cpu_case_make(cpu_case *x, const jg_problem *q, float alpha, float beta, int special, uint64_t seed)
{
    memset(x, 0, sizeof *x);
    x->q = *q;
    x->alpha = alpha;
    x->beta = beta;
    jg_problem *p = &x->q;
    if (!p->type_c) p->type_c = cpu_default_c(p->type_a, p->type_b);
    x->batch = p->batch ? p->batch : !(p->stride_a || p->stride_b || p->stride_c);
    x->a = cpu_matrix_make(x, p->type_a, p->op_a, p->m, p->k, &p->lda, &p->stride_a, special, &seed);
    x->b = cpu_matrix_make(x, p->type_b, p->op_b, p->k, p->n, &p->ldb, &p->stride_b, special, &seed);
    x->c = cpu_matrix_make(x, p->type_c, JG_N, p->m, p->n, &p->ldc, &p->stride_c, special, &seed);
    int64_t ld = p->ld_residual ? p->ld_residual : p->ldc;
    x->residual = cpu_matrix_make(x, p->type_c, JG_N, p->m, p->n, &ld, &p->stride_residual, special, &seed);
    x->before = malloc(x->c.bytes);
    assert_non_null(x->before);
    memcpy(x->before, x->c.data, x->c.bytes);
    const jg_type bias = p->type_bias ? p->type_bias : JG_F32;
    x->scale = cpu_vector(JG_F32, 1, 0, &seed);
    x->scale_m = cpu_vector(JG_F32, p->m, 0, &seed);
    x->scale_n = cpu_vector(JG_F32, p->n, 0, &seed);
    x->bias_m = cpu_vector(bias, p->m, special, &seed);
    x->bias_n = cpu_vector(bias, p->n, special, &seed);
    if (oracle_is_float(p->type_a) != oracle_is_float(p->type_b)) {
        x->weights_b = oracle_is_float(p->type_a);
        x->other = x->weights_b ? p->type_a : p->type_b;
        x->groups = p->group_k ? (p->k + p->group_k - 1) / p->group_k : 0;
        x->width = x->weights_b ? p->n : p->m;
        const int64_t items = (x->weights_b ? x->b.stride : x->a.stride) ? x->batch : 1;
        x->group_scales = cpu_vector(x->other, items * x->groups * x->width, special, &seed);
        x->group_zeros = cpu_vector(JG_S8, items * x->groups * x->width, 0, &seed);
    }
    x->given = (jg_operands){
        .a = x->a.data, .b = x->b.data, .c = x->c.data, .alpha = &x->alpha, .beta = &x->beta, .scale = x->scale,
        .scale_m = x->scale_m, .scale_n = x->scale_n, .bias_m = x->bias_m, .bias_n = x->bias_n, .residual = x->residual.data,
        .group_scales = x->group_scales, .group_zeros = x->group_zeros, .clamp_low = -0.75f, .clamp_high = 1.25f,
        .out_scale = 37.5f, .out_zero = 3.25f};
}

static inline void cpu_case_free(cpu_case *x)
{
    void *all[] = {x->a.data, x->b.data, x->c.data, x->residual.data, x->before, x->scale, x->scale_m, x->scale_n,
                   x->bias_m, x->bias_n, x->group_scales, x->group_zeros};
    for (size_t i = 0; i < COUNT(all); i++) free(all[i]);
}

/* ---- the contract ---- */

static inline float cpu_zero_denormal(int flushes, float x)
{
    return flushes && fabsf(x) < 0x1p-126f ? copysignf(0, x) : x;
}

/* Each operation, flushed as the mode says. That a GPU calls a little more denormal than this: see test_numbers. */
#define CPU_FLUSHED(operation) cpu_zero_denormal(flushes, operation)

static inline float cpu_times(int flushes, float a, float b)
{
    a = CPU_FLUSHED(a), b = CPU_FLUSHED(b);
    return CPU_FLUSHED(a * b);
}

static inline float cpu_plus(int flushes, float a, float b)
{
    a = CPU_FLUSHED(a), b = CPU_FLUSHED(b);
    return CPU_FLUSHED(a + b);
}

/* a * b + c, in the roundings of the mode. */
static inline float cpu_times_plus(const cpu_case *x, float a, float b, float c)
{
    const int flushes = (x->q.math & JG_MATH_FLUSH) != 0;
    if ((x->q.math & 15) == JG_MATH_STRICT) return cpu_plus(flushes, c, cpu_times(flushes, a, b));
    a = CPU_FLUSHED(a), b = CPU_FLUSHED(b), c = CPU_FLUSHED(c);
    return CPU_FLUSHED(fmaf(a, b, c));
}

static inline float cpu_read_element(const cpu_case *x, const cpu_matrix *m, const void *data, int64_t item, int64_t i, int64_t j)
{
    double value = oracle_value(m->type, oracle_get(m->type, data, item * m->stride + i * m->row + j * m->column));
    if (x->q.math & JG_MATH_SANITIZE && !isfinite(value)) value = 0;
    if (x->q.math & JG_MATH_FLUSH && fabs(value) < oracle_smallest(m->type)) value = copysign(0, value);
    return (float)value;
}

/* 11 significant bits, ties away from zero. */
static inline float cpu_tf32(float x)
{
    int exponent;
    if (!isfinite(x)) return x;
    frexp(fabsf(x) < 0x1p-126f ? 0x1p-126 : x, &exponent);
    const double place = ldexp(1, exponent - 11);
    return (float)copysign(floor(fabs((double)x) / place + 0.5) * place, x);
}

/* (i, j) of op(X); kk and xx: which of the two counts k, and the other. */
static inline float cpu_operand(const cpu_case *x, int is_b, int64_t item, int64_t kk, int64_t xx)
{
    const cpu_matrix *m = is_b ? &x->b : &x->a;
    const float value = cpu_read_element(x, m, m->data, item, is_b ? kk : xx, is_b ? xx : kk);
    if ((x->q.math & 15) == JG_MATH_TF32) return cpu_tf32(value);
    if (!x->groups || x->weights_b != is_b) return value;
    const int64_t at = ((m->stride ? item : 0) * x->groups + kk / x->q.group_k) * x->width + xx;
    const float scale = (float)oracle_value(x->other, oracle_get(x->other, x->group_scales, at));
    const float weight = cpu_times((x->q.math & JG_MATH_FLUSH) != 0, value - (x->q.zero_points ? x->group_zeros[at] : 0), scale);
    return (float)oracle_value(x->other, oracle_round(x->other, weight));
}

static inline int cpu_is_integer(const cpu_case *x)
{
    return !oracle_is_float(x->q.type_a) && !oracle_is_float(x->q.type_b);
}

static inline int32_t cpu_integer_sum(const cpu_case *x, int64_t item, int64_t i, int64_t j)
{
    uint32_t sum = 0;
    for (int64_t kk = 0; x->alpha != 0 && kk < x->q.k; kk++)
        sum += (uint32_t)(int32_t)cpu_operand(x, 0, item, kk, i) * (uint32_t)(int32_t)cpu_operand(x, 1, item, kk, j);
    return (int32_t)sum;
}

static inline float cpu_sum(const cpu_case *x, int64_t item, int64_t i, int64_t j)
{
    float sum = 0;
    if (cpu_is_integer(x)) return (float)cpu_integer_sum(x, item, i, j);
    for (int64_t kk = 0; x->alpha != 0 && kk < x->q.k; kk++)
        sum = cpu_times_plus(x, cpu_operand(x, 0, item, kk, i), cpu_operand(x, 1, item, kk, j), sum);
    return (x->q.math & 15) == JG_MATH_F16 ? (float)oracle_value(JG_F16, oracle_round(JG_F16, sum)) : sum;
}

static inline float cpu_activated(const cpu_case *x, float v)
{
    if (isnan(v)) return v;
    switch (x->q.activation) {
    case JG_ACTIVATION_NONE: return v;
    case JG_ACTIVATION_RELU: return v < 0 ? 0 : v;
    case JG_ACTIVATION_RELU6: return v < 0 ? 0 : v > 6 ? 6 : v;
    case JG_ACTIVATION_CLAMP:
        return v < x->given.clamp_low ? x->given.clamp_low : v > x->given.clamp_high ? x->given.clamp_high : v;
    default:
        return x->q.math & JG_MATH_FLUSH ? cpu_activate_flushed(x->q.activation, v, 0, 0)
                                         : jg_activate(x->q.activation, v, 0, 0);
    }
}

/* The bits of C[i][j]. */
static inline uint32_t cpu_expected(const cpu_case *x, int64_t item, int64_t i, int64_t j)
{
    const jg_problem *q = &x->q;
    const jg_type c = q->type_c, bias = q->type_bias ? q->type_bias : JG_F32;
    const uint32_t e = q->epilogue;
    const int flushes = (q->math & JG_MATH_FLUSH) != 0;
    const int64_t at = item * x->c.stride + i * x->c.row + j * x->c.column;
    if (c == JG_S32 && !e && !q->activation && x->alpha == 1 && (x->beta == 0 || x->beta == 1))
        return (uint32_t)cpu_integer_sum(x, item, i, j) + (x->beta == 1 ? oracle_get(c, x->before, at) : 0);
    float f = q->k == 0 ? 0 : x->alpha;
    if (e & JG_EPILOGUE_SCALE) f = cpu_times(flushes, f, x->scale[0]);
    if (e & JG_EPILOGUE_SCALE_M) f = cpu_times(flushes, f, x->scale_m[i]);
    if (e & JG_EPILOGUE_SCALE_N) f = cpu_times(flushes, f, x->scale_n[j]);
    float v = cpu_sum(x, item, i, j);
    if (x->beta == 0) {
        v = cpu_times(flushes, f, v);
    } else {
        const float scaled = cpu_times(flushes, x->beta, cpu_read_element(x, &x->c, x->before, item, i, j));
        v = cpu_times_plus(x, f, v, scaled);
    }
    const float residual = cpu_read_element(x, &x->residual, x->residual.data, item, i, j);
    if (e & JG_EPILOGUE_BIAS_M) v = cpu_plus(flushes, v, (float)oracle_value(bias, oracle_get(bias, x->bias_m, i)));
    if (e & JG_EPILOGUE_BIAS_N) v = cpu_plus(flushes, v, (float)oracle_value(bias, oracle_get(bias, x->bias_n, j)));
    if (e & JG_EPILOGUE_RESIDUAL) v = cpu_plus(flushes, v, residual);
    v = cpu_activated(x, v);
    if (e & JG_EPILOGUE_RESIDUAL_AFTER) v = cpu_plus(flushes, v, residual);
    if (e & JG_EPILOGUE_REQUANTIZE) v = cpu_plus(flushes, cpu_times(flushes, v, x->given.out_scale), x->given.out_zero);
    uint32_t bits = oracle_round(c, v);
    const uint32_t sign = bits & 1u << (oracle_types[c].bits - 1);
    if (flushes && fabs(oracle_value(c, bits)) < oracle_smallest(c)) bits = sign;
    if (q->math & JG_MATH_SANITIZE && c == JG_F16 && bits == (sign | 0x7c00u)) bits = sign | 0x7bffu;
    return bits;
}

/* ---- running ---- */

static inline void cpu_case_run(cpu_case *x)
{
    problem p;
    if (problem_canonicalise(&x->q, &p)) fail_msg("%s", jg_last_error());
    const operands o = operands_canonicalise(&p, &x->given);
    if (operands_check(&p, &o, 1, 1, 1)) fail_msg("%s", jg_last_error());
    assert_int_equal(cpu_gemm(&p, &o), JG_OK);
}

/* Runs it, and compares each element and each byte between them. */
static inline void cpu_case_check(cpu_case *x)
{
    const jg_problem *q = &x->q;
    char text[400] = "?";
    cpu_case_run(x);
    jg_problem_format(q, text, sizeof text, NULL);
    for (int64_t item = 0; item < x->batch; item++) {
        for (int64_t e = 0; e < q->m * q->n; e++) {
            const int64_t i = e / q->n, j = e % q->n, at = item * x->c.stride + i * x->c.row + j * x->c.column;
            const uint32_t got = oracle_get(q->type_c, x->c.data, at), expected = cpu_expected(x, item, i, j);
            if (got != expected && !(isnan(oracle_value(q->type_c, got)) && isnan(oracle_value(q->type_c, expected))))
                fail_msg("%s math 0x%x epilogue 0x%x activation %d alpha %g beta %g: item %lld (%lld, %lld) is 0x%x = %g, "
                         "not 0x%x = %g", text, q->math, q->epilogue, q->activation, (double)x->alpha, (double)x->beta,
                         (long long)item, (long long)i, (long long)j, got, oracle_value(q->type_c, got), expected,
                         oracle_value(q->type_c, expected));
            oracle_put(q->type_c, x->before, at, got); /* what else differs is stray */
        }
    }
    if (memcmp(x->c.data, x->before, x->c.bytes)) fail_msg("%s: bytes between the elements of C were written", text);
}

static inline void cpu_try(const jg_problem *q, float alpha, float beta, int special, uint64_t seed)
{
    cpu_case x;
    cpu_case_make(&x, q, alpha, beta, special, seed);
    cpu_case_check(&x);
    cpu_case_free(&x);
}

/* The pairs of types that can be multiplied. */
static const jg_type cpu_pairs[][2] = {
    {JG_F32, JG_F32}, {JG_F16, JG_F16},   {JG_BF16, JG_BF16},  {JG_S8, JG_S8},     {JG_S8, JG_U8},     {JG_U8, JG_S8},
    {JG_U8, JG_U8},   {JG_S4, JG_S4},     {JG_F16, JG_S8},     {JG_S8, JG_F16},    {JG_F16, JG_S4},    {JG_S4, JG_F16},
    {JG_BF16, JG_S8}, {JG_S8, JG_BF16},   {JG_BF16, JG_S4},    {JG_S4, JG_BF16},   {JG_E4M3, JG_E4M3}, {JG_E4M3, JG_E5M2},
    {JG_E5M2, JG_E4M3}, {JG_E5M2, JG_E5M2},
};

/* Of C; the last only where A and B are integers. */
static const jg_type cpu_results[] = {JG_F32, JG_F16, JG_BF16, JG_S8, JG_U8, JG_E4M3, JG_E5M2, JG_S32};

static inline int cpu_results_of(const jg_type pair[2])
{
    return (int)COUNT(cpu_results) - (oracle_is_float(pair[0]) || oracle_is_float(pair[1]));
}

#endif
