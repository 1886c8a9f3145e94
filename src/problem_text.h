/* What reading and writing a problem's text have in common: words that stand for themselves, and what densely packed means. */
#ifndef JG_PROBLEM_TEXT_H
#define JG_PROBLEM_TEXT_H

#include "problem.h"

enum { MATRIX_A, MATRIX_B, MATRIX_C, MATRIX_RESIDUAL, MATRICES };

/* What a word says. A problem text says each thing once. */
enum {
    SAYS_TYPE,
    SAYS_OP,
    SAYS_ORDER,
    SAYS_FORM,
    SAYS_MATH, /* the mode */
    SAYS_FLUSH,
    SAYS_SANITIZE,
    SAYS_ZEROS,
    SAYS_SCALE,
    SAYS_SCALE_M,
    SAYS_SCALE_N,
    SAYS_BIAS_M,
    SAYS_BIAS_N,
    SAYS_RESIDUAL, /* where it is added */
    SAYS_REQUANTIZE,
    SAYS_ACTIVATION,
    SAYS_BIAS_TYPE,
    SAYS_GROUP,
    SAYS_ALIGN,
    SAYS_DYNAMIC,
    SAYS_LD,
    SAYS_STRIDE = SAYS_LD + MATRICES,
    SAYS_END = SAYS_STRIDE + MATRICES
};

/* A word that stands for itself. Value 0 is what holds without any. For an op, bit 0 of it transposes A and bit 1 B. */
typedef struct fixed_word {
    const char *word;
    int says;
    uint32_t value;
} fixed_word;

/* In the order in which they are written, up to one whose word is null. */
extern const fixed_word fixed_words[];

/* Letters of the dynamic dimensions: the i-th is for bit i of jg_problem.dynamic. */
extern const char dynamic_letters[];

/* A matrix's name in the words for its leading dimension and stride. */
extern const char matrix_letters[];

/* Leading dimension and stride of one matrix, as they are and as they would be if densely packed. */
typedef struct packing {
    int64_t ld, dense_ld, stride, dense_stride;
} packing;

/* The matrices under the caller's names. Returns how many there are: without a residual, one less. */
int problem_packings(const problem *p, packing out[MATRICES]);

#endif
