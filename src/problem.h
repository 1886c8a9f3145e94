/* From the caller's jg_problem to the canonical one that the rest of the library works on.
 *
 * Canonical: row-major C (a column-major problem is its transpose: A and B, m and n change places),
 * every default filled in, and every rule of the public header checked. */
#ifndef JG_PROBLEM_H
#define JG_PROBLEM_H

#include "jitgemm.h"

/* All members in elements; batch is at least 1 unless the product is empty. Plain and without padding, so that
 * its bytes can be a key. Strides of a single item are 0. */
typedef struct problem {
    int64_t m, n, k, batch;
    int64_t lda, ldb, ldc;
    int64_t stride_a, stride_b, stride_c;
    int64_t ld_residual, stride_residual; /* 0 without a residual */
    uint8_t type_a, type_b, type_c; /* jg_type, never JG_DEFAULT_TYPE */
    uint8_t op_a, op_b;             /* jg_op */
    uint8_t form;                   /* jg_form */
    uint8_t swapped;                /* the caller's A is our B and the other way round */
    uint8_t align_bytes;            /* promised alignment, 1 to 16; never below the element size */
    uint8_t dynamic;                /* JG_DYNAMIC_ flags, M and N changed places where swapped */
    uint8_t math;                   /* a JG_MATH_ mode and flags */
    uint8_t epilogue;               /* JG_EPILOGUE_ flags, M and N changed places where swapped */
    uint8_t activation;             /* jg_activation */
    uint8_t type_bias;              /* jg_type; 0 without a bias */
    uint8_t group_k;                /* 0, 32, 64 or 128 */
    uint8_t zero_points;            /* 0 or 1 */
    uint8_t zero;
} problem;

/* Of `math`. */
#define MATH_MODE 0x0fu
#define MATH_FLAGS (JG_MATH_FLUSH | JG_MATH_SANITIZE)
static inline unsigned problem_math_mode(const problem *p)
{
    return p->math & MATH_MODE;
}

/* Every JG_DYNAMIC_ flag. */
#define DYNAMIC_ALL (JG_DYNAMIC_M | JG_DYNAMIC_N | JG_DYNAMIC_K | JG_DYNAMIC_BATCH)

/* Checks `in` and fills in *out. Errors as jg_gemm's for a problem; the text names the member. in->compile is checked and
 * left out: it is a matter of the call.
 * Sizes above 2^31 - 1 are JG_ERR_SIZE; offsets above 2^63 - 1 bytes are JG_ERR_OVERFLOW. */
jg_status problem_canonicalise(const jg_problem *in, problem *out);

/* A jg_problem that comes to this one, in the caller's order and with every default filled in. */
jg_problem problem_as_given(const problem *p);

/* Nonzero if there is nothing to compute: m, n or batch is 0. */
int problem_is_empty(const problem *p);

/* The JG_DYNAMIC_ flags of the transposed product: M and N change places. */
uint8_t problem_transposed_dynamic(uint8_t dynamic);
/* The same of the JG_EPILOGUE_ flags. */
uint8_t problem_transposed_epilogue(uint8_t epilogue);

unsigned type_bits(jg_type type);      /* of an element; 0 if unknown */
size_t type_bytes(jg_type type);       /* the same in bytes, 1 for s4: what a pointer must be aligned to */
int64_t type_row_bytes(jg_type type, int64_t elements); /* of neighbours in memory; rounded up for s4 */
const char *type_name(jg_type type);   /* "f32", "f16" ...; "?" if unknown */
int type_is_integer(jg_type type);     /* s8, u8, s4, s32 */

jg_type type_default_result(jg_type a, jg_type b); /* what JG_DEFAULT_TYPE means for C */

/* Two steps of problem_canonicalise. Fills in the types, which are known ones; TYPE where A, B and C do not go together. */
jg_status problem_resolve_types(const jg_problem *in, problem *p);
/* TYPE where p->math is for other types. Both texts name the nearest that works. */
jg_status problem_check_math(const problem *p);

/* The type that A and B are multiplied in: f32, f16, bf16 or s8 (which stands for all integers of up to 8 bits). */
static inline jg_type type_multiplied(jg_type a, jg_type b)
{
    const unsigned integers = 1u << JG_S8 | 1u << JG_U8 | 1u << JG_S4;
    if (a == JG_F32) return JG_F32;
    if (integers >> a & integers >> b & 1) return JG_S8;
    return a == JG_BF16 || b == JG_BF16 ? JG_BF16 : JG_F16;
}
static inline jg_type problem_multiply_type(const problem *p)
{
    return type_multiplied((jg_type)p->type_a, (jg_type)p->type_b);
}
/* Nonzero if an operand (type_a or type_b) is the weights of the other, which is f16 or bf16. */
int problem_is_weights(const problem *p, int operand_b);
/* Bytes of the smallest element of A, B and C. */
size_t problem_smallest_element(const problem *p);
/* Nonzero if anything is fused in but alpha and beta. */
static inline int problem_is_fused(const problem *p)
{
    return p->epilogue | p->activation | p->group_k;
}

static inline int problem_has_residual(const problem *p)
{
    return (p->epilogue & (JG_EPILOGUE_RESIDUAL | JG_EPILOGUE_RESIDUAL_AFTER)) != 0;
}

#define LAST_TYPE JG_E5M2

#endif
