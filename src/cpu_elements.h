/* Runs of elements of every type, to what the cpu device computes with and back. */
#ifndef JG_CPU_ELEMENTS_H
#define JG_CPU_ELEMENTS_H

#include "problem.h"

/* Widens `count` elements, `step` apart from element `first` on, to float32: exactly, but for s32, which is rounded to nearest
 * even. flags: JG_MATH_FLUSH and JG_MATH_SANITIZE; what is a denormal of its own type becomes zero of its sign, NaN and infinity
 * become +0. `type` may be any. */
void cpu_read(jg_type type, unsigned flags, const void *data, int64_t first, int64_t step, int count, float *out);

/* The same of integers, as they are. `type`: s8, u8, s4 or s32. */
void cpu_read_integers(jg_type type, const void *data, int64_t first, int64_t step, int count, int32_t *out);

/* Rounds to the type and writes neighbours: to nearest even; integers saturate and NaN becomes 0, e4m3 and e5m2 saturate and keep
 * NaN. flags: with JG_MATH_FLUSH what is a denormal once it is rounded is written as zero of its sign; with JG_MATH_SANITIZE
 * f16 saturates. `type` may be any but s4. */
void cpu_write(jg_type type, unsigned flags, void *data, int64_t first, int count, const float *in);

/* Rounds to the 11 significant bits of tf32, nearest, ties away from zero, as cvt.rna.tf32.f32 does. NaN stays NaN. */
void cpu_round_to_tf32(float *values, int count);

#endif
