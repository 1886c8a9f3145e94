/* The oracle of the numeric tests: host memory for a problem's operands, and the product in double precision to judge
 * what a device left in C. It shares no code with the library and takes only the problem structs from it.
 *
 *     reference ref;
 *     reference_make(&ref, &problem, REFERENCE_UNIFORM, 0, seed);
 *     jg_operands data = reference_operands(&ref, &alpha, &beta);
 *     ... run the product on them; C comes to be in ref.c ...
 *     reference_result result = reference_check(&ref, alpha, beta);     result.failures == 0 && result.stray == 0
 *     reference_free(&ref);
 *
 * For another device, copy each block of reference_blocks there, and C's whole block back. A helper for tests: it aborts
 * when memory is exhausted or the problem makes no sense.
 *
 * How far C may be from R, what exact arithmetic gives. u = 2^-24 is half a unit in the last place of float32, S = sum |a b|, f
 * the product of alpha and the scales. float32 sums in any order, of any grouping, lose at most (k - 1) u S by rounding; rounding
 * towards zero, as tensor cores do, twice that. f has up to three roundings, f * sum + beta * C has two. Together, and with the
 * halves of f16 for JG_MATH_F16 (their unit is 2^-10, and one rounding a step of k is the worst that can be):
 *     E = max(k, 8) 2^-23 (|f| S + |beta C|)                     the sum, f, alpha, beta
 *       + |f| S 2^-10                                            TF32: two roundings to 11 bits, of 2^-11 each
 *       + |f| S 2^-20                                            3XTF32: 2^-22 each for the rest of a and of b, and their product
 *       + |f| (max(k, 8) 2^-11 S + k 2^-25)                      F16; where S may reach 65504, anything goes
 * Sums of integers are exact: 8 takes the place of max(k, 8), |sum| that of S; and E = 0 where all is done in int32. A weight
 * with its group's scale is rounded as documented before it is multiplied, and so has no error. Then, step by step:
 *     x + y            E + u (|x + y| + E)                        bias, residual, out_zero (and u |y| for a residual of s32)
 *     relu, relu6, clamp     the way from activation(x - E) to activation(x + E): E at most, 0 where both are clamped
 *     sigmoid                the same, and 2^-21 for its evaluation
 *     silu, gelu             L E + 2^-22 (|x| + 1), L = 1.1 and 1.13; the rest is their evaluation
 *     x * out_scale    |out_scale| E + u (|x * out_scale| + |out_scale| E)
 * At the end C's own rounding: half a unit in the last place of C's type at |R| + E, 1/2 for integers; saturating types are
 * judged by R clipped to their range. Underflow adds 2^-150 (FLUSH: 2^-126) for every operation. With FLUSH no result is
 * denormal, and 0 is right where R may be. */
#ifndef JG_TESTS_REFERENCE_H
#define JG_TESTS_REFERENCE_H

#include "jitgemm.h"

/* How the data is filled. C and the residual as A and B. With JG_MATH_FLUSH and SANITIZE, UNIFORM plants denormals and
 * NaN and infinities in A, B, C and the residual. */
typedef enum reference_fill {
    REFERENCE_UNIFORM,  /* [-1, 1), rounded to the type; integers over their range. Scales are 0.5 to 1.5, times what brings
                         * sums of integers, and results in integers, to a magnitude slightly beyond C's range */
    REFERENCE_INTEGERS, /* -3 to 3 (0 to 6 for u8): every partial sum is exact in float32 for k below a million. Scales are
                         * powers of two */
    REFERENCE_ONES      /* scales 1; biases, residual and zero points 0, clamps far away: without an activation, sums are k */
} reference_fill;

/* op(X) in a block of host memory: guard bytes, element 0 at offset_bytes, the items, guard bytes. Element (i, j) of an
 * item is at element item * stride + i * row_step + j * col_step. */
typedef struct reference_matrix {
    jg_type type;
    int64_t batch, rows, cols; /* of op(X) */
    int64_t row_step, col_step, stride;
    unsigned char *block; /* null where the problem has no such operand */
    size_t block_bytes, offset_bytes;
} reference_matrix;

typedef struct reference {
    jg_problem problem; /* as given */
    int64_t m, n, k, batch;
    reference_matrix a, b, c;
    unsigned char *before; /* C's block at the last snapshot: the C that beta is applied to */
    int sampled;           /* reference_sample was called */
    /* What is fused in. Vectors are one row; the groups' have a row for each group and are described in jg_operands. */
    reference_matrix residual, scale, scale_m, scale_n, bias_m, bias_n, group_scales, group_zeros;
    float clamp_low, clamp_high, out_scale, out_zero;
} reference;

/* What reference_check found. The index is that of the first failing element, in the caller's terms. */
typedef struct reference_result {
    double worst;     /* largest |C - R| / bound; infinite for a wrong infinity or NaN */
    double lost;      /* largest part of E that was used, as far as C's own rounding lets one see it */
    int64_t checked;  /* elements that were judged: all, or after reference_sample those that were computed */
    int64_t failures; /* elements with a ratio above 1 */
    int64_t inexact;  /* elements that are not R rounded to C's type; must be 0 where all sums are exact */
    int64_t stray;    /* bytes of C's block outside the elements of C that were changed */
    int64_t item, i, j;
    double got, expected; /* at that element */
} reference_result;

/* Allocates and fills the operands of a problem. Element 0 of each matrix lies offset_bytes past a multiple of 256,
 * which is 256 bytes into the block and misalign_bytes, rounded up to whole elements. Bytes outside the elements are 0xff (a NaN
 * in every float) and 0xa5 in C. The same seed gives the same data. */
void reference_make(reference *ref, const jg_problem *problem, reference_fill fill, size_t misalign_bytes,
                    uint64_t seed);
void reference_free(reference *ref);

/* Takes C as it is now as the C before the product. reference_make does so too. */
void reference_snapshot(reference *ref);

/* For a device that computes only parts of a product, with beta = 0: poisons C, and elements that are still poison when it
 * comes to judging were not computed and are passed over. (An integer -1, or 255 of u8, looks like poison.) */
void reference_sample(reference *ref);

/* The operands in host memory. */
jg_operands reference_operands(const reference *ref, const float *alpha, const float *beta);

/* The blocks to copy to another device; there, element 0 is what the member of jg_operands points to. The first is C as it was
 * before. */
#define REFERENCE_MAX_BLOCKS 11
typedef struct reference_block {
    const void *host;
    size_t bytes, offset; /* of the block; of element 0 in it */
    size_t member;        /* offset of the pointer in jg_operands */
} reference_block;
size_t reference_blocks(const reference *ref, reference_block out[REFERENCE_MAX_BLOCKS]);
void reference_point(jg_operands *operands, const reference_block *block, void *copy); /* sets the member,
    given the block's copy */

/* Element 0 of item 0; what to pass to the library. Null where there is no such operand. */
void *reference_at(const reference_matrix *x);
double reference_get(const reference_matrix *x, int64_t item, int64_t i, int64_t j);
void reference_set(reference_matrix *x, int64_t item, int64_t i, int64_t j, double value);
uint32_t reference_get_bits(const reference_matrix *x, int64_t item, int64_t i, int64_t j);
void reference_set_bits(reference_matrix *x, int64_t item, int64_t i, int64_t j, uint32_t bits);

/* Makes every byte of a matrix 0xff, so that whatever reads it gets a NaN (of an integer: -1, or 255). */
void reference_poison(reference_matrix *x);

/* Sets the strides of a batched problem to densely packed items, given its leading dimensions; that of the residual too. */
void reference_pack(jg_problem *problem);

/* One item's exact result before it is rounded to C's type, and the error E allowed to it (see above), m x n, row-major whatever
 * the problem's order. E is infinite where any result is right. */
void reference_product(const reference *ref, int64_t item, float alpha, float beta, double *r, double *e);

/* Judges C. NaN is right only where r is NaN, infinity where r may round to it. */
reference_result reference_check(const reference *ref, float alpha, float beta);

/* What JG_MATH_STRICT promises: the plain loop in float, before the last rounding; m x n as above. An activation that is not made
 * of comparisons is computed in double, and is not bound to those bits. The second writes C so, for all items; the third counts
 * the elements of C with other bits. Both keep to int32 where all is to be done in it. */
void reference_strict_loop(const reference *ref, int64_t item, float alpha, float beta, float *x);
void reference_strict_run(reference *ref, float alpha, float beta);
int64_t reference_strict_differences(const reference *ref, float alpha, float beta);

/* How many threads reference_product may use; 1 at first. */
void reference_threads(int count);

/* The types' bit patterns, by arithmetic on doubles: exact widening, and rounding to nearest even. Integers and 8-bit floats
 * saturate; NaN becomes integer 0. s4 is in the low four bits. */
double reference_decode(jg_type type, uint32_t bits);
uint32_t reference_encode(jg_type type, double value);

/* A pseudo-random number from a state that it advances. */
uint64_t reference_random(uint64_t *state);

#endif
