/* Denormals, infinities and NaN, on a GPU or on the software GPU (on_gpu.h), in A, B, C, the residual and the result, for every
 * type of float: what JG_MATH_FLUSH and JG_MATH_SANITIZE make of them, and that they count without. All sums here are exact. */
#include "on_gpu.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { M = 19, N = 36, K = 40 };

/* The floats, of which A, B and C are. */
static const struct {
    jg_type type;
    const char *name;
    int normal, bits; /* 2^normal is the smallest normal number; bits: of the fraction */
} floats[] = {{JG_F32, "f32", -126, 23}, {JG_F16, "f16", -14, 10}, {JG_BF16, "bf16", -126, 7}, {JG_E4M3, "e4m3", -6, 3},
              {JG_E5M2, "e5m2", -14, 2}};
#define FLOATS (sizeof floats / sizeof floats[0])

enum { IN_A, IN_B, IN_C, IN_RESIDUAL, IN_RESULT, PLACES };
static const char *const places[] = {"in A", "in B", "in C", "in the residual", "in the result"};

static void set_all(reference_matrix *x, double value)
{
    if (!x->block) return;
    for (int64_t i = 0; i < x->rows; i++)
        for (int64_t j = 0; j < x->cols; j++) reference_set(x, 0, i, j, value);
}

/* Both signs, and all numbers of units up to the largest denormal, or eight of them. */
static double denormal(size_t f, int64_t turn)
{
    const int64_t most = ((int64_t)1 << floats[f].bits) - 1, count = most < 8 ? most : 8;
    const double units = (double)(turn % count == count - 1 ? most : turn % count + 1);
    return ldexp(turn % 3 ? units : -units, floats[f].normal - floats[f].bits);
}

/* One of a row's or column's elements at most, so that sums of f32 are exact. */
static void plant_denormals(reference_matrix *x, size_t f, int along_rows)
{
    for (int64_t i = 0; i < x->rows; i++)
        for (int64_t j = 0; j < x->cols; j++)
            if (!along_rows || j == i % x->cols) reference_set(x, 0, i, j, denormal(f, i + j));
}

/* Results differ from 0 by what is denormal alone; alpha, beta or out_scale, powers of two, lift them to where C can show it. */
static jg_problem lifted(size_t f, int place, uint32_t math, jg_form form)
{
    jg_problem p = {.m = M, .n = N, .k = K, .type_a = floats[f].type, .type_c = floats[f].type, .math = math, .form = form};
    if (place == IN_A || place == IN_B) p.type_c = JG_F32;
    if (place == IN_RESIDUAL) p.epilogue = JG_EPILOGUE_RESIDUAL | JG_EPILOGUE_REQUANTIZE;
    return p;
}

static void fill(reference *ref, size_t f, int place, float *alpha, float *beta)
{
    const double one = place == IN_RESULT && floats[f].normal == -126 ? 0x1p-62 : 1;
    set_all(&ref->a, place == IN_B ? one : 0);
    set_all(&ref->b, place == IN_A ? 1 : 0);
    set_all(&ref->c, 0);
    *alpha = place == IN_A || place == IN_B ? 0x1p6f : 1;
    *beta = place == IN_C ? 0x1p7f : 0;
    ref->out_scale = 0x1p7f;
    ref->out_zero = 0;
    if (place == IN_A) plant_denormals(&ref->a, f, 1);
    if (place == IN_B) {
        set_all(&ref->b, 0);
        for (int64_t j = 0; j < N; j++) reference_set(&ref->b, 0, j % K, j, denormal(f, j));
    }
    if (place == IN_C) plant_denormals(&ref->c, f, 0), reference_snapshot(ref);
    if (place == IN_RESIDUAL) plant_denormals(&ref->residual, f, 0);
    if (place != IN_RESULT) return;
    /* alpha takes numbers from 1 on, or from 2^-124 of f32, to denormals. */
    const int units = floats[f].bits < 3 ? 2 : floats[f].bits;
    for (int64_t i = 0; i < M; i++) reference_set(&ref->a, 0, i, i % K, (i % 2 ? -one : one) * (double)(1 + i % 3));
    set_all(&ref->b, one);
    *alpha = (float)ldexp(1, floats[f].normal - units + (one < 1 ? 124 : 0));
}

/* Whether zeros have the signs of what they stand for. */
static int64_t wrong_signs(const reference *ref, float alpha, float beta)
{
    double *const r = malloc(M * N * sizeof *r), *const e = malloc(M * N * sizeof *e);
    int64_t count = 0;
    assert_true(r && e);
    reference_product(ref, 0, alpha, beta, r, e);
    for (int64_t at = 0; at < M * N; at++)
        count += r[at] != 0 && !signbit(r[at]) != !signbit(reference_get(&ref->c, 0, at / N, at % N));
    free(r);
    free(e);
    return count;
}

static int64_t count_zeros(const reference *ref)
{
    int64_t count = 0;
    for (int64_t at = 0; at < M * N; at++) count += reference_get(&ref->c, 0, at / N, at % N) == 0;
    return count;
}

static void run_denormals(size_t f, int place, uint32_t math, jg_form form)
{
    const jg_problem p = lifted(f, place, math, form);
    const int flush = (math & JG_MATH_FLUSH) != 0;
    reference ref;
    float alpha, beta;
    reference_make(&ref, &p, REFERENCE_INTEGERS, 0, 3);
    fill(&ref, f, place, &alpha, &beta);
    if (on_gpu_run(&ref, alpha, beta)) {
        const int64_t zeros = count_zeros(&ref);
        on_gpu_judge(&ref, places[place], alpha, beta, 1);
        if (flush && zeros != M * N)
            on_gpu_complain(&p, "denormals %s: %lld elements are not 0", places[place], (long long)(M * N - zeros));
        if (!flush && zeros > 0)
            on_gpu_complain(&p, "denormals %s: %lld elements are 0, as if they did not count", places[place], (long long)zeros);
        if (place == IN_RESULT && wrong_signs(&ref, alpha, beta))
            on_gpu_complain(&p, "denormals %s: wrong signs", places[place]);
    }
    reference_free(&ref);
}

static void test_denormals(void **state)
{
    (void)state;
    on_gpu_need();
    for (size_t f = 0; f < FLOATS; f++)
        for (int place = 0; place < PLACES; place++)
            for (unsigned flush = 0; flush < 2; flush++) {
                const uint32_t flag = flush ? JG_MATH_FLUSH : 0;
                run_denormals(f, place, flag, JG_FORM_GENERIC);
                if (f < 2 && place != IN_B) run_denormals(f, place, flag, JG_FORM_SPECIALISED);
                if (f == 0) run_denormals(f, place, JG_MATH_STRICT | flag, JG_FORM_GENERIC);
            }
    on_gpu_verdict();
}

/* ---- infinities and NaN ---- */

/* One element in five. */
static void plant_specials(reference_matrix *x, unsigned turn)
{
    if (!x->block) return;
    for (int64_t i = 0; i < x->rows; i++)
        for (int64_t j = 0; j < x->cols; j++) {
            const int64_t at = i * 7 + j * 3 + turn;
            if (at % 5) continue;
            if (at / 5 % 3 == 0) reference_set(x, 0, i, j, (double)NAN);
            else if (x->type == JG_E5M2) reference_set_bits(x, 0, i, j, at / 5 % 3 == 1 ? 0x7c : 0xfc); /* else it saturates */
            else if (x->type != JG_E4M3) reference_set(x, 0, i, j, at / 5 % 3 == 1 ? (double)INFINITY : -(double)INFINITY);
        }
}

static int64_t count_specials(const reference *ref)
{
    int64_t count = 0;
    for (int64_t at = 0; at < M * N; at++) count += !isfinite(reference_get(&ref->c, 0, at / N, at % N));
    return count;
}

static void run_specials(size_t f, int place, uint32_t math, jg_form form)
{
    jg_problem p = {.m = M, .n = N, .k = K, .type_a = floats[f].type, .type_c = floats[f].type, .math = math, .form = form};
    const float beta = place == IN_C ? -1 : 0;
    reference ref;
    if (place == IN_RESIDUAL) p.epilogue = JG_EPILOGUE_RESIDUAL;
    reference_make(&ref, &p, REFERENCE_INTEGERS, 0, 5);
    if (place == IN_A) plant_specials(&ref.a, (unsigned)f);
    if (place == IN_B) plant_specials(&ref.b, (unsigned)f);
    if (place == IN_C) plant_specials(&ref.c, (unsigned)f), reference_snapshot(&ref);
    if (place == IN_RESIDUAL) plant_specials(&ref.residual, (unsigned)f);
    if (on_gpu_run(&ref, 1, beta)) {
        const int64_t specials = count_specials(&ref);
        on_gpu_judge(&ref, places[place], 1, beta, 1);
        if (math & JG_MATH_SANITIZE && specials)
            on_gpu_complain(&p, "NaN or infinity %s: so are %lld elements of C", places[place], (long long)specials);
        if (!(math & JG_MATH_SANITIZE) && !specials)
            on_gpu_complain(&p, "NaN and infinity %s: none in C", places[place]);
    }
    reference_free(&ref);
}

static void test_infinity_and_nan(void **state)
{
    (void)state;
    on_gpu_need();
    for (size_t f = 0; f < FLOATS; f++)
        for (int place = 0; place < IN_RESULT; place++)
            for (unsigned sanitize = 0; sanitize < 2; sanitize++) {
                const uint32_t flag = sanitize ? JG_MATH_SANITIZE : 0;
                run_specials(f, place, flag, JG_FORM_GENERIC);
                if (f < 2 && sanitize && place != IN_A) run_specials(f, place, flag, JG_FORM_SPECIALISED);
                if (f == 0 && sanitize) run_specials(f, place, JG_MATH_STRICT | flag | JG_MATH_FLUSH, JG_FORM_GENERIC);
            }
    on_gpu_verdict();
}

/* ---- results beyond C's range ---- */

/* Of +-2^100 * 2^40: what C holds; 0 stands for the infinity of its sign. */
static const struct {
    jg_type type;
    double plain, sanitized;
} too_large[] = {
    {JG_F32, 0, 0},          {JG_F16, 0, 65504},        {JG_BF16, 0, 0}, {JG_S8, 127, 127}, {JG_U8, 255, 255},
    {JG_E4M3, 448, 448},     {JG_E5M2, 57344, 57344},
};

static void run_too_large(size_t which, uint32_t math, double size)
{
    const jg_type type = too_large[which].type;
    const jg_problem p = {.m = M, .n = N, .k = K, .type_c = type, .math = math, .form = JG_FORM_GENERIC};
    const double largest = math & JG_MATH_SANITIZE ? too_large[which].sanitized : too_large[which].plain;
    reference ref;
    reference_make(&ref, &p, REFERENCE_ONES, 0, 0);
    set_all(&ref.a, 0);
    for (int64_t i = 0; i < M; i++) reference_set(&ref.a, 0, i, i, i % 2 ? -size : size);
    set_all(&ref.b, type == JG_F32 || type == JG_BF16 ? 0x1p40 : 1);
    if (on_gpu_run(&ref, 1, 0))
        for (int64_t at = 0; at < M * N; at++) {
            const int negative = at / N % 2;
            const double got = reference_get(&ref.c, 0, at / N, at % N);
            const double right = negative && type == JG_U8 ? 0 : negative && type == JG_S8 ? -128
                                 : copysign(largest ? largest : (double)INFINITY, negative ? -1.0 : 1.0);
            if (got == right) continue;
            on_gpu_complain(&p, "of %g comes %g, not %g", negative ? -size : size, got, right);
            break;
        }
    reference_free(&ref);
}

static void test_results_beyond_the_range(void **state)
{
    (void)state;
    on_gpu_need();
    for (size_t i = 0; i < sizeof too_large / sizeof too_large[0]; i++)
        for (unsigned sanitize = 0; sanitize < 2; sanitize++) {
            run_too_large(i, sanitize ? JG_MATH_SANITIZE : 0, 0x1p100);
            if (too_large[i].type == JG_F16) run_too_large(i, sanitize ? JG_MATH_SANITIZE : 0, 65520);
        }
    on_gpu_verdict();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_denormals),
        cmocka_unit_test(test_infinity_and_nan),
        cmocka_unit_test(test_results_beyond_the_range),
    };
    const char *filter = getenv("JG_TEST_FILTER");
    if (filter) cmocka_set_test_filter(filter);
    return cmocka_run_group_tests(tests, on_gpu_open, on_gpu_close);
}
