/* The oracle of the numeric tests: host memory for a problem's operands, and the product in double precision to judge
 * what a device left in C. It shares no code with the library and takes only the problem structs from it.
 *
 *     reference ref;
 *     reference_make(&ref, &problem, REFERENCE_UNIFORM, 0, seed);
 *     ... run the product on reference_at(&ref.a), reference_at(&ref.b), reference_at(&ref.c) ...
 *     reference_result result = reference_check(&ref, alpha, beta);     result.failures == 0 && result.stray == 0
 *     reference_free(&ref);
 *
 * For another device, copy each matrix's whole block there (block_bytes), use element 0 at offset_bytes, and copy C's
 * block back. A helper for tests: it aborts when memory is exhausted or the problem makes no sense. */
#ifndef JG_TESTS_REFERENCE_H
#define JG_TESTS_REFERENCE_H

#include "jitgemm.h"

typedef enum reference_fill {
    REFERENCE_UNIFORM,  /* in [-1, 1), rounded to the type */
    REFERENCE_INTEGERS, /* -3 to 3: every partial sum is exact in float32 for k below a million */
    REFERENCE_ONES
} reference_fill;

/* op(X) in a block of host memory: guard bytes, element 0 at offset_bytes, the items, guard bytes. Element (i, j) of an
 * item is at element item * stride + i * row_step + j * col_step. */
typedef struct reference_matrix {
    jg_type type;
    int64_t batch, rows, cols; /* of op(X) */
    int64_t row_step, col_step, stride;
    unsigned char *block;
    size_t block_bytes, offset_bytes;
} reference_matrix;

typedef struct reference {
    jg_problem problem; /* as given */
    int64_t m, n, k, batch;
    reference_matrix a, b, c;
    unsigned char *before; /* C's block at the last snapshot: the C that beta is applied to */
    int sampled;           /* reference_sample was called */
} reference;

/* What reference_check found. The index is that of the first failing element, in the caller's terms. */
typedef struct reference_result {
    double worst;     /* largest |C - R| / bound; infinite for a wrong infinity or NaN */
    int64_t checked;  /* elements that were judged: all, or after reference_sample those that were computed */
    int64_t failures; /* elements with a ratio above 1 */
    int64_t inexact;  /* elements that are not R rounded to C's type; must be 0 where all sums are exact */
    int64_t stray;    /* bytes of C's block outside the elements of C that were changed */
    int64_t item, i, j;
    double got, expected; /* at that element */
} reference_result;

/* Allocates and fills the operands of a problem. Element 0 of each matrix lies offset_bytes past a multiple of 256,
 * which is 256 + misalign_bytes into the block. Bytes outside the elements are 0xff in A and B (a NaN in every type)
 * and 0xa5 in C. The same seed gives the same data. */
void reference_make(reference *ref, const jg_problem *problem, reference_fill fill, size_t misalign_bytes,
                    uint64_t seed);
void reference_free(reference *ref);

/* Takes C as it is now as the C before the product. reference_make does so too. */
void reference_snapshot(reference *ref);

/* For a device that computes only parts of a product, with beta = 0: poisons C, and elements that are still poison when it
 * comes to judging were not computed and are passed over. */
void reference_sample(reference *ref);

/* Element 0 of item 0; what to pass to the library. */
void *reference_at(const reference_matrix *x);
double reference_get(const reference_matrix *x, int64_t item, int64_t i, int64_t j);
void reference_set(reference_matrix *x, int64_t item, int64_t i, int64_t j, double value);

/* Makes every byte of a matrix 0xff, so that whatever reads it gets a NaN. */
void reference_poison(reference_matrix *x);

/* Sets the strides of a batched problem to densely packed items, given its leading dimensions. */
void reference_pack(jg_problem *problem);

/* One item's exact result and its condition, m x n, row-major whatever the problem's order:
 *     r = alpha * sum(a b) + beta * c        s = |alpha| * sum(|a| |b|) + |beta * c| */
void reference_product(const reference *ref, int64_t item, float alpha, float beta, double *r, double *s);

/* Judges C. The bound of an element is max(k, 8) * 2^-23 * s, which is what float32 sums in any order keep to, and half
 * a unit in the last place of C's type at r (and 2^-150 for what float32 loses to underflow). NaN is right only where
 * r is NaN, infinity where r may round to it. */
reference_result reference_check(const reference *ref, float alpha, float beta);

/* How many threads reference_product may use; 1 at first. */
void reference_threads(int count);

/* The types' bit patterns, by arithmetic on doubles: exact widening, and rounding to nearest even. */
double reference_decode(jg_type type, uint32_t bits);
uint32_t reference_encode(jg_type type, double value);

/* A pseudo-random number from a state that it advances. */
uint64_t reference_random(uint64_t *state);

#endif
