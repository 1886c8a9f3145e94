/* What the files of the oracle share; for nobody else. */
#ifndef JG_TESTS_REFERENCE_PARTS_H
#define JG_TESTS_REFERENCE_PARTS_H

#include "reference.h"

/* ---- reference_types.c ---- */

unsigned reference_bits(jg_type type); /* of an element */
size_t reference_bytes(jg_type type);  /* the same, 1 for s4 */
int reference_is_integer(jg_type type);
int reference_saturates(jg_type type); /* integers and 8-bit floats */
double reference_largest(jg_type type);
double reference_smallest(jg_type type);        /* the most negative */
double reference_smallest_normal(jg_type type); /* 0 for integers */
double reference_ulp(jg_type type, double value); /* a unit in the last place at a finite value */

/* What C holds where the exact result is r: rounded, and by FLUSH and SANITIZE. */
double reference_stored(const reference *ref, double r);

/* ---- reference_data.c ---- */

void *reference_must(void *pointer); /* aborts if null */
size_t reference_offset(const reference_matrix *x, int64_t item, int64_t i, int64_t j); /* of the element's byte in the block */
/* After reference_sample: whether an element was computed. No finite float has all bits set. */
int reference_is_computed(const reference *ref, int64_t item, int64_t i, int64_t j);

/* An element of A or B (which must be ref->a or ref->b), C before the product, and the residual, as they are computed with:
 * by FLUSH and SANITIZE, and weights with their group's scale. */
double reference_factor(const reference *ref, const reference_matrix *x, int64_t item, int64_t i, int64_t j);
double reference_before(const reference *ref, int64_t item, int64_t i, int64_t j);
double reference_residual(const reference *ref, int64_t item, int64_t i, int64_t j);

/* The operand that is weights: &ref->a, &ref->b, or null. */
const reference_matrix *reference_weights(const reference *ref);

/* Whether all is done in int32: s32 from integers, and nothing fused in. */
int reference_is_int32(const reference *ref, float alpha, float beta);
int32_t reference_wrap(double sum); /* a whole number modulo 2^32 */

/* ---- reference_fill.c ---- */

void reference_fill_all(reference *ref, reference_fill fill, uint64_t seed);

/* ---- reference.c ---- */

double reference_activation(const reference *ref, double x);
int reference_is_smooth(jg_activation activation); /* not made of comparisons */

#endif
