/* What products of one group have in common, as text: their types, how sums are made, and what is fused in. */
#ifndef JG_TOOLS_BENCH_LABEL_H
#define JG_TOOLS_BENCH_LABEL_H

#include "jitgemm.h"

#define BENCH_LABEL_BYTES JG_PROBLEM_TEXT_BYTES

/* "f16", "f16-f32", "f32:tf32", "u8.s8:relu:scale_n": words of a problem text, of which the type comes first. "?" for a problem
 * that the library does not take. */
void bench_label_make(const jg_problem *p, char label[BENCH_LABEL_BYTES]);

/* The ceiling that such a product is held against: the type that is multiplied, or the mode of math that has instructions of its
 * own, as "tf32". */
const char *bench_label_ceiling(const jg_problem *p);

#endif
