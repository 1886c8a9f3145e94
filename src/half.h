/* The two 16-bit float types on the host: f16 (IEEE binary16) and bf16 (the upper half of a float32).
 *
 * Widening is exact. Narrowing rounds to nearest, ties to even, keeps denormals, and overflows to infinity.
 * A NaN becomes a quiet NaN of the same sign. For the cpu device; kernels use the hardware's own conversions,
 * which give the same bits for everything but the payload of a NaN. */
#ifndef JG_HALF_H
#define JG_HALF_H

#include <stdint.h>

float half_f16_to_f32(uint16_t bits);
float half_bf16_to_f32(uint16_t bits);
uint16_t half_f32_to_f16(float value);
uint16_t half_f32_to_bf16(float value);

#endif
