/* The oracle's product: see reference.h, which also derives the errors. Everything is done in double, whose products of float32
 * values are exact and whose rounding is 2^29 times finer than what is judged. */
#include "reference_parts.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define MAX_THREADS 64
#define PANEL 8 /* columns of B that the inner loop takes at once */
#define UNIT 0x1p-24 /* half a unit in the last place of float32, relative */

static int thread_count = 1;

/* ---- sums of products ---- */

void reference_threads(int count)
{
    thread_count = count < 1 ? 1 : count > MAX_THREADS ? MAX_THREADS : count;
}

/* Rows first to last - 1 of C: the sums of products and of their magnitudes. B is in panels of PANEL columns. */
typedef struct slice {
    const reference *ref;
    int64_t item;
    pthread_t thread;
    int started;
    const double *a, *panels;
    int64_t first, last, n, k;
    double *r, *s;
} slice;

static void *sum_slice(void *argument)
{
    const slice *w = argument;
    for (int64_t j = 0; j < w->n; j += PANEL) {
        const double *panel = w->panels + j * w->k;
        int64_t cols = w->n - j < PANEL ? w->n - j : PANEL;
        for (int64_t i = w->first; i < w->last; i++) {
            const double *a = w->a + i * w->k;
            int64_t wanted = 0;
            for (int64_t c = 0; c < cols && !wanted; c++) wanted = reference_is_computed(w->ref, w->item, i, j + c);
            if (!wanted) continue;
            double r[PANEL] = {0}, s[PANEL] = {0};
            for (int64_t k = 0; k < w->k; k++) {
                for (int c = 0; c < PANEL; c++) {
                    double product = a[k] * panel[k * PANEL + c];
                    r[c] += product;
                    s[c] += fabs(product);
                }
            }
            memcpy(w->r + i * w->n + j, r, (size_t)cols * sizeof *r);
            memcpy(w->s + i * w->n + j, s, (size_t)cols * sizeof *s);
        }
    }
    return NULL;
}

static void sum_in_threads(const slice *whole)
{
    slice parts[MAX_THREADS];
    int64_t rows = whole->last;
    int count = rows < thread_count ? (int)rows : thread_count;
    for (int t = 0; t < count; t++) {
        parts[t] = *whole;
        parts[t].first = rows * t / count;
        parts[t].last = rows * (t + 1) / count;
        parts[t].started = count > 1 && pthread_create(&parts[t].thread, NULL, sum_slice, &parts[t]) == 0;
        if (!parts[t].started) sum_slice(&parts[t]);
    }
    for (int t = 0; t < count; t++)
        if (parts[t].started) pthread_join(parts[t].thread, NULL);
}

static void sum_products(const reference *ref, int64_t item, double *r, double *s)
{
    int64_t panels = (ref->n + PANEL - 1) / PANEL;
    double *a = reference_must(calloc((size_t)(ref->m * ref->k) + 1, sizeof *a));
    double *b = reference_must(calloc((size_t)(panels * ref->k * PANEL) + 1, sizeof *b));
    for (int64_t i = 0; i < ref->m; i++)
        for (int64_t k = 0; k < ref->k; k++) a[i * ref->k + k] = reference_factor(ref, &ref->a, item, i, k);
    for (int64_t k = 0; k < ref->k; k++)
        for (int64_t j = 0; j < ref->n; j++)
            b[(j / PANEL * ref->k + k) * PANEL + j % PANEL] = reference_factor(ref, &ref->b, item, k, j);
    sum_in_threads(&(slice){.ref = ref, .item = item, .a = a, .panels = b, .last = ref->m, .n = ref->n, .k = ref->k, .r = r, .s =
                            s});
    free(a);
    free(b);
}

/* ---- the epilogue ---- */

/* A value, and how far what was computed may be from it: 0 for what is exactly infinite or NaN, infinite where anything goes. */
typedef struct value {
    double r, e;
} value;

static value settle(value x)
{
    if (!isfinite(x.r)) x.e = 0;
    return x;
}

static const value anything = {0, (double)INFINITY};

/* The smallest loss of one operation to underflow. */
static double underflow(const reference *ref)
{
    return ref->problem.math & JG_MATH_FLUSH ? 0x1p-126 : 0x1p-150;
}

static value plus(const reference *ref, value x, double y, double error)
{
    x.r += y;
    x.e += error;
    x.e += UNIT * (fabs(x.r) + x.e) + underflow(ref);
    return settle(x);
}

static value times(const reference *ref, value x, double y)
{
    x.r *= y;
    x.e *= fabs(y);
    x.e += UNIT * (fabs(x.r) + x.e) + underflow(ref);
    return settle(x);
}

int reference_is_smooth(jg_activation activation)
{
    return activation >= JG_ACTIVATION_GELU_TANH;
}

static double clamped(double x, double low, double high)
{
    x = x < low ? low : x;
    return x > high ? high : x;
}

double reference_activation(const reference *ref, double x)
{
    switch (ref->problem.activation) {
    case JG_ACTIVATION_NONE: break;
    case JG_ACTIVATION_RELU: return clamped(x, 0, (double)INFINITY);
    case JG_ACTIVATION_RELU6: return clamped(x, 0, 6);
    case JG_ACTIVATION_CLAMP: return clamped(x, (double)ref->clamp_low, (double)ref->clamp_high);
    case JG_ACTIVATION_GELU_TANH: return x / 2 * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case JG_ACTIVATION_GELU_ERF: return x / 2 * (1 + erf(x / M_SQRT2));
    case JG_ACTIVATION_SILU: return x / (1 + exp(-x));
    case JG_ACTIVATION_SIGMOID: return 1 / (1 + exp(-x));
    }
    return x;
}

/* The larger way that a rising activation goes from x - e and from x + e. */
static double way(const reference *ref, value x, double y)
{
    return fmax(reference_activation(ref, x.r + x.e) - y, y - reference_activation(ref, x.r - x.e));
}

static value activate(const reference *ref, value x)
{
    const jg_activation activation = ref->problem.activation;
    const double y = reference_activation(ref, x.r);
    if (activation == JG_ACTIVATION_NONE || isnan(x.r)) return x;
    if (isinf(x.e)) return anything;
    if (!reference_is_smooth(activation)) return settle((value){y, way(ref, x, y)});
    if (activation == JG_ACTIVATION_SIGMOID) return (value){y, way(ref, x, y) + 0x1p-21 + underflow(ref)};
    /* 0 times infinity, or the limit. */
    if (isinf(x.r) && x.r < 0) return anything;
    const double lipschitz = activation == JG_ACTIVATION_SILU ? 1.1 : 1.13;
    return settle((value){y, lipschitz * x.e + 0x1p-22 * (fabs(x.r) + 1) + underflow(ref)});
}

static int sums_integers(const reference *ref)
{
    return reference_is_integer(ref->a.type) && reference_is_integer(ref->b.type);
}

static double steps_of(const reference *ref)
{
    return ref->k > 8 && !sums_integers(ref) ? (double)ref->k : 8;
}

/* The error of a sum of products, of which s is the sum of magnitudes, before it is multiplied by f. */
static double error_of_sum(const reference *ref, double sum, double s)
{
    const double k = (double)ref->k, steps = steps_of(ref);
    if (sums_integers(ref)) return steps * 0x1p-23 * fabs(sum);
    double error = steps * 0x1p-23 * s + 2 * k * underflow(ref);
    switch (ref->problem.math & 15) {
    case JG_MATH_TF32: return error + 0x1p-10 * s;
    case JG_MATH_F32_3XTF32: return error + 0x1p-20 * s;
    case JG_MATH_F16:
        error += steps * 0x1p-11 * s + k * 0x1p-25;
        return s + error >= 65504 ? (double)INFINITY : error;
    default: return error;
    }
}

static value sum_of(const reference *ref, int64_t item, int64_t i, int64_t j, double sum, double s, float alpha, float beta)
{
    const double before = beta == 0 ? 0 : reference_before(ref, item, i, j);
    if (reference_is_int32(ref, alpha, beta)) return (value){reference_wrap(sum + before), 0};
    if (sums_integers(ref)) sum = reference_wrap(sum);
    double f = (double)alpha;
    if (ref->scale.block) f *= reference_get(&ref->scale, 0, 0, 0);
    if (ref->scale_m.block) f *= reference_get(&ref->scale_m, 0, 0, i);
    if (ref->scale_n.block) f *= reference_get(&ref->scale_n, 0, 0, j);
    const double scaled = (double)beta * before;
    /* The split of an infinity has a NaN in it. */
    if (!isfinite(sum) && (ref->problem.math & 15) == JG_MATH_F32_3XTF32) return anything;
    const double error = f == 0 ? 0 : fabs(f) * error_of_sum(ref, sum, s);
    return settle((value){f * sum + scaled, error + steps_of(ref) * 0x1p-23 * fabs(scaled) + 4 * underflow(ref)});
}

static value plus_residual(const reference *ref, value x, int64_t item, int64_t i, int64_t j)
{
    const double y = reference_residual(ref, item, i, j);
    return plus(ref, x, y, ref->residual.type == JG_S32 ? UNIT * fabs(y) : 0);
}

static value result_of(const reference *ref, int64_t item, int64_t i, int64_t j, double sum, double s, float alpha, float beta)
{
    const uint32_t epilogue = ref->problem.epilogue;
    value x = sum_of(ref, item, i, j, sum, s, alpha, beta);
    if (ref->bias_m.block) x = plus(ref, x, reference_get(&ref->bias_m, 0, 0, i), 0);
    if (ref->bias_n.block) x = plus(ref, x, reference_get(&ref->bias_n, 0, 0, j), 0);
    if (epilogue & JG_EPILOGUE_RESIDUAL) x = plus_residual(ref, x, item, i, j);
    x = activate(ref, x);
    if (epilogue & JG_EPILOGUE_RESIDUAL_AFTER) x = plus_residual(ref, x, item, i, j);
    if (epilogue & JG_EPILOGUE_REQUANTIZE) x = plus(ref, times(ref, x, (double)ref->out_scale), (double)ref->out_zero, 0);
    return x;
}

void reference_product(const reference *ref, int64_t item, float alpha, float beta, double *r, double *e)
{
    int64_t elements = ref->m * ref->n;
    for (int64_t x = 0; x < elements; x++) r[x] = e[x] = 0;
    if (alpha != 0) sum_products(ref, item, r, e);
    for (int64_t x = 0; x < elements; x++) {
        const int64_t i = x / ref->n, j = x % ref->n;
        if (!reference_is_computed(ref, item, i, j)) continue;
        const value result = result_of(ref, item, i, j, r[x], e[x], alpha, beta);
        r[x] = result.r;
        e[x] = result.e;
    }
}
