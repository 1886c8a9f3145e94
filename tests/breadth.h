/* The rows of the breadth tests: problems that have every two choices of types, C's type, ops, order, alignment, epilogue,
 * activation, math, groups, batch, shape ... together at least once (pairwise.h). What the header says is refused is not among
 * them. */
#ifndef JG_TESTS_BREADTH_H
#define JG_TESTS_BREADTH_H

#include "pairwise.h"
#include "reference.h"

/* The pairs of types of A and B, in both orders. */
#define BREADTH_PAIRS 20
extern const jg_type breadth_pairs[BREADTH_PAIRS][2];
extern const char *const breadth_pair_names[BREADTH_PAIRS];

typedef struct breadth_row {
    jg_problem problem; /* its form is JG_FORM_AUTO */
    reference_fill fill;
    size_t misalign;
    float alpha, beta;
    uint64_t seed;
    int pair;   /* index of its types */
    int exact;  /* all sums are exact: the result must be R rounded */
    int strict; /* the bits must be those of reference_strict_loop */
} breadth_row;

/* What of it is asked for: zero for all. */
typedef struct breadth_limits {
    const char *types;   /* pairs by their names, e.g. "f32.f32,f16.s8"; null: all */
    const char *types_c; /* types of C, e.g. "default,f32,s8"; null: all */
    int plain;           /* nothing fused in, and no other math than the default */
} breadth_limits;

int breadth_is_wanted(const breadth_limits *limits, int pair, jg_type type_c);
pairwise breadth_make(const breadth_limits *limits);
breadth_row breadth_get(const pairwise *made, size_t row);

/* The row that is all ones, of a pair and a type of C; exactly k results, rounded to C's type. */
breadth_row breadth_ones(int pair, jg_type type_c);
int breadth_has_c(int pair, jg_type type_c);

#endif
