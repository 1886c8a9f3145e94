/* What JG_MATH_STRICT promises: the plain loop in float. Built with -ffp-contract=off; each line below is one rounding. */
#include "reference_parts.h"

#include <math.h>
#include <stdlib.h>

/* One item's A and B, as they are multiplied: m x k and k x n. */
typedef struct factors {
    float *a, *b;
} factors;

static factors read_factors(const reference *ref, int64_t item)
{
    factors f = {reference_must(malloc((size_t)(ref->m * ref->k + 1) * sizeof(float))),
                 reference_must(malloc((size_t)(ref->k * ref->n + 1) * sizeof(float)))};
    for (int64_t i = 0; i < ref->m; i++)
        for (int64_t k = 0; k < ref->k; k++) f.a[i * ref->k + k] = (float)reference_factor(ref, &ref->a, item, i, k);
    for (int64_t k = 0; k < ref->k; k++)
        for (int64_t j = 0; j < ref->n; j++) f.b[k * ref->n + j] = (float)reference_factor(ref, &ref->b, item, k, j);
    return f;
}

static void free_factors(factors *f)
{
    free(f->a);
    free(f->b);
}

static float sum_of(const reference *ref, const factors *f, int64_t i, int64_t j)
{
    const float *a = f->a + i * ref->k, *b = f->b + j;
    float sum = 0;
    if (reference_is_integer(ref->a.type) && reference_is_integer(ref->b.type)) {
        double exact = 0;
        for (int64_t k = 0; k < ref->k; k++) exact += (double)a[k] * (double)b[k * ref->n];
        return (float)reference_wrap(exact);
    }
    for (int64_t k = 0; k < ref->k; k++) {
        const float product = a[k] * b[k * ref->n];
        sum = sum + product;
    }
    return sum;
}

static float activate(const reference *ref, float x)
{
    return ref->problem.activation == JG_ACTIVATION_NONE ? x : (float)reference_activation(ref, (double)x);
}

static float element(const reference *ref, const factors *in, int64_t item, int64_t i, int64_t j, float alpha, float beta)
{
    const uint32_t epilogue = ref->problem.epilogue;
    float f = alpha;
    if (epilogue & JG_EPILOGUE_SCALE) f = f * (float)reference_get(&ref->scale, 0, 0, 0);
    if (epilogue & JG_EPILOGUE_SCALE_M) f = f * (float)reference_get(&ref->scale_m, 0, 0, i);
    if (epilogue & JG_EPILOGUE_SCALE_N) f = f * (float)reference_get(&ref->scale_n, 0, 0, j);
    float x = f * (alpha == 0 ? 0 : sum_of(ref, in, i, j));
    if (beta != 0) {
        const float scaled = beta * (float)reference_before(ref, item, i, j);
        x = x + scaled;
    }
    if (epilogue & JG_EPILOGUE_BIAS_M) x = x + (float)reference_get(&ref->bias_m, 0, 0, i);
    if (epilogue & JG_EPILOGUE_BIAS_N) x = x + (float)reference_get(&ref->bias_n, 0, 0, j);
    if (epilogue & JG_EPILOGUE_RESIDUAL) x = x + (float)reference_residual(ref, item, i, j);
    x = activate(ref, x);
    if (epilogue & JG_EPILOGUE_RESIDUAL_AFTER) x = x + (float)reference_residual(ref, item, i, j);
    if (epilogue & JG_EPILOGUE_REQUANTIZE) {
        x = x * ref->out_scale;
        x = x + ref->out_zero;
    }
    return x;
}

void reference_strict_loop(const reference *ref, int64_t item, float alpha, float beta, float *x)
{
    factors in = read_factors(ref, item);
    for (int64_t i = 0; i < ref->m; i++)
        for (int64_t j = 0; j < ref->n; j++) x[i * ref->n + j] = element(ref, &in, item, i, j, alpha, beta);
    free_factors(&in);
}

/* Where all is done in int32 the loop's float would round: the exact product has these bits. */
static void expected(const reference *ref, int64_t item, float alpha, float beta, double *x, double *scratch)
{
    if (reference_is_int32(ref, alpha, beta)) {
        reference_product(ref, item, alpha, beta, x, scratch);
        return;
    }
    factors in = read_factors(ref, item);
    for (int64_t i = 0; i < ref->m; i++)
        for (int64_t j = 0; j < ref->n; j++) x[i * ref->n + j] = (double)element(ref, &in, item, i, j, alpha, beta);
    free_factors(&in);
}

void reference_strict_run(reference *ref, float alpha, float beta)
{
    const size_t elements = (size_t)(ref->m * ref->n) + 1;
    double *x = reference_must(malloc(elements * sizeof *x)), *scratch = reference_must(malloc(elements * sizeof *scratch));
    for (int64_t item = 0; item < ref->batch; item++) {
        expected(ref, item, alpha, beta, x, scratch);
        for (int64_t at = 0; at < ref->m * ref->n; at++)
            reference_set(&ref->c, item, at / ref->n, at % ref->n, reference_stored(ref, x[at]));
    }
    free(x);
    free(scratch);
}

int64_t reference_strict_differences(const reference *ref, float alpha, float beta)
{
    const size_t elements = (size_t)(ref->m * ref->n) + 1;
    double *x = reference_must(malloc(elements * sizeof *x)), *scratch = reference_must(malloc(elements * sizeof *scratch));
    int64_t differences = 0;
    for (int64_t item = 0; item < ref->batch; item++) {
        expected(ref, item, alpha, beta, x, scratch);
        for (int64_t at = 0; at < ref->m * ref->n; at++) {
            const int64_t i = at / ref->n, j = at % ref->n;
            const double stored = reference_stored(ref, x[at]);
            if (!reference_is_computed(ref, item, i, j) || (isnan(stored) && isnan(reference_get(&ref->c, item, i, j)))) continue;
            differences += reference_get_bits(&ref->c, item, i, j) != reference_encode(ref->c.type, stored);
        }
    }
    free(x);
    free(scratch);
    return differences;
}
