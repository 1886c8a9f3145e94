/* The oracle: see reference.h. Everything is done in double, whose products of float32 values are exact and whose
 * rounding is 2^29 times finer than what is judged. */
#include "reference.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GUARD_BYTES 256 /* before and after the elements; also the alignment of a block */
#define MAX_THREADS 64
#define PANEL 8 /* columns of B that the inner loop takes at once */

/* IEEE layouts: a sign, then exponent_bits, then fraction_bits. */
typedef struct layout {
    size_t bytes;
    int exponent_bits, fraction_bits;
} layout;

static const layout layouts[] = {[JG_F32] = {4, 8, 23}, [JG_F16] = {2, 5, 10}, [JG_BF16] = {2, 8, 7}};

static int thread_count = 1;

static void *must(void *pointer)
{
    if (pointer) return pointer;
    fprintf(stderr, "reference: out of memory\n");
    abort();
}

/* ---- types ---- */

static int smallest_exponent(const layout *l)
{
    return 2 - (1 << (l->exponent_bits - 1));
}

static uint32_t infinity_bits(const layout *l)
{
    return ((1u << l->exponent_bits) - 1) << l->fraction_bits;
}

double reference_decode(jg_type type, uint32_t bits)
{
    const layout *l = &layouts[type];
    uint32_t sign = bits >> (l->exponent_bits + l->fraction_bits) & 1;
    uint32_t field = bits >> l->fraction_bits & ((1u << l->exponent_bits) - 1);
    uint32_t fraction = bits & ((1u << l->fraction_bits) - 1);
    double value;
    if (field == (1u << l->exponent_bits) - 1) {
        value = fraction ? (double)NAN : (double)INFINITY;
    } else {
        uint32_t significand = field ? fraction | 1u << l->fraction_bits : fraction;
        int steps = field ? (int)field - 1 : 0;
        value = ldexp(significand, smallest_exponent(l) + steps - l->fraction_bits);
    }
    return sign ? -value : value;
}

/* The exponent of the unit in the last place at a finite value. */
static int ulp_exponent(const layout *l, double value)
{
    int exponent, least = smallest_exponent(l), most = 1 - least;
    frexp(value, &exponent);
    exponent -= 1;
    if (value == 0 || exponent < least) exponent = least;
    if (exponent > most) exponent = most;
    return exponent - l->fraction_bits;
}

uint32_t reference_encode(jg_type type, double value)
{
    const layout *l = &layouts[type];
    uint32_t infinity = infinity_bits(l);
    uint32_t sign = signbit(value) ? 1u << (l->exponent_bits + l->fraction_bits) : 0;
    if (isnan(value)) return sign | infinity | 1u << (l->fraction_bits - 1);
    if (isinf(value)) return sign | infinity;
    int ulp = ulp_exponent(l, value);
    double units = rint(ldexp(fabs(value), -ulp));
    /* With the hidden bit left in `units`, the exponent field is one step short: the sum makes up for it. */
    double steps = ulp + l->fraction_bits - smallest_exponent(l);
    double bits = ldexp(steps, l->fraction_bits) + units;
    return sign | (bits < infinity ? (uint32_t)bits : infinity);
}

/* ---- operands ---- */

uint64_t reference_random(uint64_t *state)
{
    /* A Weyl sequence through two multiply-and-fold rounds. */
    uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 32) * UINT64_C(0xd6e8feb86659fd93);
    x = (x ^ x >> 32) * UINT64_C(0xd6e8feb86659fd93);
    return x ^ x >> 32;
}

static size_t element_offset(const reference_matrix *x, int64_t item, int64_t i, int64_t j)
{
    return x->offset_bytes + (size_t)(item * x->stride + i * x->row_step + j * x->col_step) * layouts[x->type].bytes;
}

void *reference_at(const reference_matrix *x)
{
    return x->block + x->offset_bytes;
}

static double get_from(const unsigned char *block, const reference_matrix *x, int64_t item, int64_t i, int64_t j)
{
    const unsigned char *element = block + element_offset(x, item, i, j);
    uint16_t narrow;
    uint32_t bits;
    if (layouts[x->type].bytes == sizeof bits) {
        memcpy(&bits, element, sizeof bits);
    } else {
        memcpy(&narrow, element, sizeof narrow);
        bits = narrow;
    }
    return reference_decode(x->type, bits);
}

double reference_get(const reference_matrix *x, int64_t item, int64_t i, int64_t j)
{
    return get_from(x->block, x, item, i, j);
}

void reference_set(reference_matrix *x, int64_t item, int64_t i, int64_t j, double value)
{
    unsigned char *element = x->block + element_offset(x, item, i, j);
    uint32_t bits = reference_encode(x->type, value);
    uint16_t narrow = (uint16_t)bits;
    if (layouts[x->type].bytes == sizeof bits)
        memcpy(element, &bits, sizeof bits);
    else
        memcpy(element, &narrow, sizeof narrow);
}

void reference_poison(reference_matrix *x)
{
    memset(x->block, 0xff, x->block_bytes);
}

static double next_value(reference_fill fill, uint64_t *state)
{
    uint64_t random = reference_random(state);
    switch (fill) {
    case REFERENCE_ONES: return 1;
    case REFERENCE_INTEGERS: return (double)(random % 7) - 3;
    case REFERENCE_UNIFORM: break;
    }
    return (double)(random >> 11) * 0x1p-52 - 1;
}

/* Describes op(X), whose stored matrix is transposed against it if `transposed` and column-major if `col_major`. */
static reference_matrix describe(jg_type type, int64_t batch, int64_t rows, int64_t cols, int transposed, int col_major,
                                 int64_t ld, int64_t stride)
{
    reference_matrix x = {.type = type, .batch = batch, .rows = rows, .cols = cols, .stride = batch > 1 ? stride : 0};
    int rows_contiguous = transposed == col_major; /* the elements of a row of op(X) are neighbours */
    int64_t dense = rows_contiguous ? cols : rows;
    if (ld == 0) ld = dense > 0 ? dense : 1;
    x.row_step = rows_contiguous ? ld : 1;
    x.col_step = rows_contiguous ? 1 : ld;
    return x;
}

static void allocate(reference_matrix *x, size_t misalign_bytes, int outside)
{
    size_t elements = 0;
    if (x->batch > 0 && x->rows > 0 && x->cols > 0)
        elements = (size_t)((x->batch - 1) * x->stride + (x->rows - 1) * x->row_step + (x->cols - 1) * x->col_step + 1);
    size_t bytes = elements * layouts[x->type].bytes;
    x->offset_bytes = GUARD_BYTES + misalign_bytes;
    x->block_bytes = (x->offset_bytes + bytes + 2 * GUARD_BYTES - 1) / GUARD_BYTES * GUARD_BYTES;
    x->block = must(aligned_alloc(GUARD_BYTES, x->block_bytes));
    memset(x->block, outside, x->block_bytes);
}

static void fill_elements(reference_matrix *x, reference_fill fill, uint64_t seed)
{
    int64_t items = x->stride == 0 && x->batch > 1 ? 1 : x->batch;
    for (int64_t item = 0; item < items; item++)
        for (int64_t i = 0; i < x->rows; i++)
            for (int64_t j = 0; j < x->cols; j++) reference_set(x, item, i, j, next_value(fill, &seed));
}

void reference_make(reference *ref, const jg_problem *problem, reference_fill fill, size_t misalign_bytes,
                    uint64_t seed)
{
    const jg_problem *p = problem;
    int col_major = p->order == JG_COL_MAJOR;
    jg_type type_a = p->type_a ? p->type_a : JG_F32, type_b = p->type_b ? p->type_b : type_a;
    int64_t batch = p->batch;
    if (batch == 0 && p->stride_a == 0 && p->stride_b == 0 && p->stride_c == 0) batch = 1;
    *ref = (reference){.problem = *p, .m = p->m, .n = p->n, .k = p->k, .batch = batch};
    ref->a = describe(type_a, batch, p->m, p->k, p->op_a == JG_T, col_major, p->lda, p->stride_a);
    ref->b = describe(type_b, batch, p->k, p->n, p->op_b == JG_T, col_major, p->ldb, p->stride_b);
    ref->c = describe(p->type_c ? p->type_c : type_a, batch, p->m, p->n, 0, col_major, p->ldc, p->stride_c);
    reference_matrix *matrices[] = {&ref->a, &ref->b, &ref->c};
    for (int x = 0; x < 3; x++) {
        allocate(matrices[x], misalign_bytes, x < 2 ? 0xff : 0xa5);
        fill_elements(matrices[x], fill, seed * 3 + (uint64_t)x);
    }
    ref->before = must(malloc(ref->c.block_bytes));
    reference_snapshot(ref);
}

void reference_free(reference *ref)
{
    free(ref->a.block);
    free(ref->b.block);
    free(ref->c.block);
    free(ref->before);
    memset(ref, 0, sizeof *ref);
}

void reference_snapshot(reference *ref)
{
    memcpy(ref->before, ref->c.block, ref->c.block_bytes);
}

void reference_pack(jg_problem *problem)
{
    jg_problem *p = problem;
    int col_major = p->order == JG_COL_MAJOR;
    /* A stored matrix is as many leading dimensions long as it has rows, or columns if column-major. */
    int64_t size_a[2] = {p->m, p->k}, size_b[2] = {p->k, p->n}, size_c[2] = {p->m, p->n};
    int long_a = (p->op_a == JG_T) != col_major, long_b = (p->op_b == JG_T) != col_major;
    int64_t ld_a = p->lda ? p->lda : size_a[!long_a], ld_b = p->ldb ? p->ldb : size_b[!long_b];
    int64_t ld_c = p->ldc ? p->ldc : size_c[!col_major];
    p->stride_a = size_a[long_a] * (ld_a > 0 ? ld_a : 1);
    p->stride_b = size_b[long_b] * (ld_b > 0 ? ld_b : 1);
    p->stride_c = size_c[col_major] * (ld_c > 0 ? ld_c : 1);
}

/* ---- the product ---- */

void reference_threads(int count)
{
    thread_count = count < 1 ? 1 : count > MAX_THREADS ? MAX_THREADS : count;
}

void reference_sample(reference *ref)
{
    reference_poison(&ref->c);
    reference_snapshot(ref);
    ref->sampled = 1;
}

/* After reference_sample: whether an element was computed. No finite result has all bits set. */
static int is_computed(const reference *ref, int64_t item, int64_t i, int64_t j)
{
    static const unsigned char poison[4] = {0xff, 0xff, 0xff, 0xff};
    return !ref->sampled || memcmp(ref->c.block + element_offset(&ref->c, item, i, j), poison, layouts[ref->c.type].bytes) != 0;
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
            for (int64_t c = 0; c < cols && !wanted; c++) wanted = is_computed(w->ref, w->item, i, j + c);
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
    double *a = must(calloc((size_t)(ref->m * ref->k) + 1, sizeof *a));
    double *b = must(calloc((size_t)(panels * ref->k * PANEL) + 1, sizeof *b));
    for (int64_t i = 0; i < ref->m; i++)
        for (int64_t k = 0; k < ref->k; k++) a[i * ref->k + k] = reference_get(&ref->a, item, i, k);
    for (int64_t k = 0; k < ref->k; k++)
        for (int64_t j = 0; j < ref->n; j++)
            b[(j / PANEL * ref->k + k) * PANEL + j % PANEL] = reference_get(&ref->b, item, k, j);
    sum_in_threads(&(slice){.ref = ref, .item = item, .a = a, .panels = b, .last = ref->m, .n = ref->n, .k = ref->k, .r = r, .s = s});
    free(a);
    free(b);
}

void reference_product(const reference *ref, int64_t item, float alpha, float beta, double *r, double *s)
{
    int64_t elements = ref->m * ref->n;
    for (int64_t e = 0; e < elements; e++) r[e] = s[e] = 0;
    if (alpha != 0) sum_products(ref, item, r, s);
    for (int64_t e = 0; e < elements; e++) {
        double scaled = beta == 0 ? 0 : (double)beta * get_from(ref->before, &ref->c, item, e / ref->n, e % ref->n);
        r[e] = (double)alpha * r[e] + scaled;
        s[e] = fabs((double)alpha) * s[e] + fabs(scaled);
    }
}

/* ---- judging ---- */

/* |got - r| as a part of what is allowed. */
static double ratio_of(jg_type type, int64_t k, double got, double r, double s)
{
    const layout *l = &layouts[type];
    if (isnan(r) || isinf(r)) return got == r || (isnan(got) && isnan(r)) ? 0 : (double)INFINITY;
    if (isnan(got)) return (double)INFINITY;
    /* The last term: beta * c is a float32 of its own, and where it is denormal it loses half of the smallest one. */
    double sums = (double)(k > 8 ? k : 8) * 0x1p-23 * s + 0x1p-150;
    double half_ulp = ldexp(0.5, ulp_exponent(l, r));
    if (isinf(got)) {
        double largest = reference_decode(type, infinity_bits(l) - 1);
        double threshold = largest + ldexp(0.5, ulp_exponent(l, largest));
        return signbit(got) == signbit(r) && fabs(r) + sums >= threshold ? 0 : (double)INFINITY;
    }
    return fabs(got - r) / (sums + half_ulp);
}

static void judge(const reference *ref, int64_t item, const double *r, const double *s, reference_result *result)
{
    for (int64_t e = 0; e < ref->m * ref->n; e++) {
        jg_type type = ref->c.type;
        if (!is_computed(ref, item, e / ref->n, e % ref->n)) continue;
        result->checked++;
        double got = reference_get(&ref->c, item, e / ref->n, e % ref->n);
        double rounded = reference_decode(type, reference_encode(type, r[e]));
        double ratio = ratio_of(type, ref->k, got, r[e], s[e]);
        if (ratio > result->worst) result->worst = ratio;
        result->inexact += !(got == rounded || (isnan(got) && isnan(rounded)));
        if (ratio > 1 && result->failures++ == 0) {
            result->item = item;
            result->i = e / ref->n;
            result->j = e % ref->n;
            result->got = got;
            result->expected = r[e];
        }
    }
}

/* Counts the changed bytes that belong to no element of C. */
static int64_t count_stray(const reference *ref)
{
    const reference_matrix *c = &ref->c;
    unsigned char *inside = must(calloc(c->block_bytes, 1));
    int64_t stray = 0;
    for (int64_t item = 0; item < ref->batch; item++)
        for (int64_t i = 0; i < ref->m; i++)
            for (int64_t j = 0; j < ref->n; j++)
                memset(inside + element_offset(c, item, i, j), 1, layouts[c->type].bytes);
    for (size_t byte = 0; byte < c->block_bytes; byte++) stray += !inside[byte] && c->block[byte] != ref->before[byte];
    free(inside);
    return stray;
}

reference_result reference_check(const reference *ref, float alpha, float beta)
{
    reference_result result = {0};
    size_t elements = (size_t)(ref->m * ref->n) + 1;
    double *r = must(malloc(elements * sizeof *r)), *s = must(malloc(elements * sizeof *s));
    for (int64_t item = 0; item < ref->batch; item++) {
        reference_product(ref, item, alpha, beta, r, s);
        judge(ref, item, r, s, &result);
    }
    free(r);
    free(s);
    result.stray = count_stray(ref);
    return result;
}
