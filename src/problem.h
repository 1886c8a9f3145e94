/* From the caller's jg_problem to the canonical one that the rest of the library works on.
 *
 * Canonical: row-major C (a column-major problem is its transpose: A and B, m and n change places),
 * every default filled in, and every rule of the public header checked. */
#ifndef JG_PROBLEM_H
#define JG_PROBLEM_H

#include "jitgemm.h"

/* All members in elements; batch is at least 1 unless the product is empty. Plain and zero-padded, so that
 * its bytes can be a key. Strides of a single item are 0. */
typedef struct problem {
    int64_t m, n, k, batch;
    int64_t lda, ldb, ldc;
    int64_t stride_a, stride_b, stride_c;
    uint8_t type_a, type_b, type_c; /* jg_type, never JG_DEFAULT_TYPE */
    uint8_t op_a, op_b;             /* jg_op */
    uint8_t form;                   /* jg_form */
    uint8_t swapped;                /* the caller's A is our B and the other way round */
    uint8_t align_bytes;            /* promised alignment, 1 to 16; never below the element size */
    uint8_t dynamic;                /* JG_DYNAMIC_ flags, M and N changed places where swapped; 0 in generic form */
    uint8_t zero[7];
} problem;

/* Every JG_DYNAMIC_ flag. */
#define DYNAMIC_ALL (JG_DYNAMIC_M | JG_DYNAMIC_N | JG_DYNAMIC_K | JG_DYNAMIC_BATCH)

/* Checks `in` and fills in *out. Errors as jg_gemm's for a problem; the text names the member. in->compile is checked and
 * left out: it is a matter of the call.
 * Sizes above 2^31 - 1 are JG_ERR_SIZE; offsets above 2^63 - 1 bytes are JG_ERR_OVERFLOW. */
jg_status problem_canonicalise(const jg_problem *in, problem *out);

/* Nonzero if there is nothing to compute: m, n or batch is 0. */
int problem_is_empty(const problem *p);

/* The JG_DYNAMIC_ flags of the transposed product: M and N change places. */
uint8_t problem_transposed_dynamic(uint8_t dynamic);

size_t type_bytes(jg_type type);       /* 4, 2, 2 */
const char *type_name(jg_type type);   /* "f32", "f16", "bf16"; "?" if unknown */

#endif
