/* Element types on the host: values in and out of memory, and how coarse a type is. */
#ifndef JG_TOOLS_BENCH_ELEMENTS_H
#define JG_TOOLS_BENCH_ELEMENTS_H

#include "problem.h"

/* Element `index` of an array; s4: two in a byte, the even one in the low half. */
float bench_element_get(const void *data, size_t index, jg_type type);

/* Rounds to nearest even. Integers and 8-bit floats saturate. */
void bench_element_put(void *data, size_t index, jg_type type, float value);

/* The value that bench_element_put and bench_element_get make of one. */
float bench_element_rounded(float value, jg_type type);

/* Half the distance of neighbours of `value` in a type, or more. */
double bench_element_rounding(double value, jg_type type);

/* The range of a type; floats that do not saturate have an infinite one. */
double bench_element_least(jg_type type);
double bench_element_most(jg_type type);

/* The smallest normal number; 0 of integers. */
double bench_element_normal(jg_type type);

/* What random operands of a type are: their mean and the root of their mean square. Floats are uniform in [-1, 1), integers in
 * all of their range. */
double bench_element_mean(jg_type type);
double bench_element_rms(jg_type type);

/* A random one; `uniform` is in [0, 1). */
float bench_element_draw(double uniform, jg_type type);

#endif
