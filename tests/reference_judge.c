/* The oracle's judgement of what is in C. */
#include "reference_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Whether an infinity is right for a finite r with an error of e: if it may round to it. */
static int may_be_infinite(const reference *ref, double got, double r, double e)
{
    const jg_type type = ref->c.type;
    if (reference_saturates(type) || (ref->problem.math & JG_MATH_SANITIZE && type == JG_F16)) return 0;
    const double largest = reference_largest(type), threshold = largest + reference_ulp(type, largest) / 2;
    return signbit(got) == signbit(r) && fabs(r) + e >= threshold;
}

/* |got - r| as a part of what is allowed. *lost: as a part of e, without what C's rounding may have done. */
static double ratio_of(const reference *ref, double got, double r, double e, double *lost)
{
    const jg_type type = ref->c.type;
    const double least = reference_smallest(type), most = reference_largest(type), normal = reference_smallest_normal(type);
    if (!isfinite(r)) {
        const double stored = reference_stored(ref, r);
        return got == stored || (isnan(got) && isnan(stored)) ? 0 : (double)INFINITY;
    }
    if (isinf(e)) return 0;
    if (isnan(got)) return (double)INFINITY;
    if (isinf(got)) return may_be_infinite(ref, got, r, e) ? 0 : (double)INFINITY;
    if (reference_saturates(type) || (ref->problem.math & JG_MATH_SANITIZE && type == JG_F16)) r =
        r < least ? least : r > most ? most : r;
    const double rounding = reference_ulp(type, fabs(r) + e) / 2, allowed = e + rounding;
    if (ref->problem.math & JG_MATH_FLUSH && fabs(got) < normal) {
        if (got != 0) return (double)INFINITY;
        if (fabs(r) - allowed < normal) return 0;
    }
    if (fabs(got - r) > rounding) *lost = (fabs(got - r) - rounding) / e;
    return fabs(got - r) / allowed;
}

static void judge(const reference *ref, int64_t item, const double *r, const double *e, reference_result *result)
{
    for (int64_t x = 0; x < ref->m * ref->n; x++) {
        const int64_t i = x / ref->n, j = x % ref->n;
        if (!reference_is_computed(ref, item, i, j)) continue;
        result->checked++;
        double got = reference_get(&ref->c, item, i, j);
        double stored = reference_stored(ref, r[x]);
        double lost = 0, ratio = ratio_of(ref, got, r[x], e[x], &lost);
        if (lost > result->lost) result->lost = lost;
        if (ratio > result->worst) result->worst = ratio;
        result->inexact += !(got == stored || (isnan(got) && isnan(stored)));
        if (ratio > 1 && result->failures++ == 0) {
            result->item = item;
            result->i = i;
            result->j = j;
            result->got = got;
            result->expected = r[x];
        }
    }
}

/* Counts the changed bytes that belong to no element of C. */
static int64_t count_stray(const reference *ref)
{
    const reference_matrix *c = &ref->c;
    unsigned char *inside = reference_must(calloc(c->block_bytes, 1));
    int64_t stray = 0;
    for (int64_t item = 0; item < ref->batch; item++)
        for (int64_t i = 0; i < ref->m; i++)
            for (int64_t j = 0; j < ref->n; j++)
                memset(inside + reference_offset(c, item, i, j), 1, reference_bytes(c->type));
    for (size_t byte = 0; byte < c->block_bytes; byte++) stray += !inside[byte] && c->block[byte] != ref->before[byte];
    free(inside);
    return stray;
}

reference_result reference_check(const reference *ref, float alpha, float beta)
{
    reference_result result = {0};
    size_t elements = (size_t)(ref->m * ref->n) + 1;
    double *r = reference_must(malloc(elements * sizeof *r)), *e = reference_must(malloc(elements * sizeof *e));
    for (int64_t item = 0; item < ref->batch; item++) {
        reference_product(ref, item, alpha, beta, r, e);
        judge(ref, item, r, e, &result);
    }
    free(r);
    free(e);
    result.stray = count_stray(ref);
    return result;
}
