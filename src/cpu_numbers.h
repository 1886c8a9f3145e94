/* The arithmetic that the kernels and the cpu device share (templates/numbers.cuh), for C; and float32 arithmetic that flushes
 * denormals as the .ftz instructions of a GPU do, for JG_MATH_FLUSH. A file that defines CPU_NUMBERS_FLUSH gets the shared
 * functions made of that. All of it must be compiled without contraction. */
#ifndef JG_CPU_NUMBERS_H
#define JG_CPU_NUMBERS_H

#include <stdint.h>
#include <string.h>

/* On x86-64 the loader picks the version for the processor. fmaf is one instruction in the first two and the C
 * library's exact function in the last, so all give the same bits. Sanitizers run code in the resolver before they
 * are set up, and clang has no arch= here: they get the default version. */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define FOR_EACH_PROCESSOR __attribute__((target_clones("avx512f", "arch=haswell", "default")))
#else
#define FOR_EACH_PROCESSOR
#endif

typedef uint32_t u32;

static inline u32 cpu_bits(float value)
{
    u32 bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float cpu_float(u32 bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* A denormal becomes zero of its sign. */
static inline float cpu_flush(float x)
{
    const u32 bits = cpu_bits(x);
    return cpu_float(bits & 0x7f800000u ? bits : bits & 0x80000000u);
}

/* A GPU calls denormal what is one when rounded to 24 bits as if the exponent had no limit: what is below this. The rest, up to
 * the smallest normal number, becomes that. Denormals have fewer bits, so IEEE rounding alone takes more for normal. */
#define CPU_FLUSH_BELOW (0x1p-126 - 0x1p-151)

/* Whether a result that came out as the smallest normal number, a * b + c of normal numbers, is less. The product is exact in
 * double; the sum is put right by its own rounding error. */
static inline int cpu_is_less_than_normal(float a, float b, float c)
{
    const double product = (double)a * b, sum = product + c, part = sum - product;
    const double error = (product - (sum - part)) + (c - part);
    const double size = sum < 0 ? -sum : sum, beyond = sum < 0 ? -error : error;
    return size < CPU_FLUSH_BELOW || (size == CPU_FLUSH_BELOW && beyond < 0);
}

static inline int cpu_is_smallest(float x)
{
    return (cpu_bits(x) & 0x7fffffffu) == 0x00800000u;
}

static inline float cpu_flush_fma(float a, float b, float c)
{
    a = cpu_flush(a), b = cpu_flush(b), c = cpu_flush(c);
    const float d = __builtin_fmaf(a, b, c);
    if (cpu_is_smallest(d) && cpu_is_less_than_normal(a, b, c)) return d < 0 ? -0.0f : 0.0f;
    return cpu_flush(d);
}

static inline float cpu_flush_mul(float a, float b)
{
    a = cpu_flush(a), b = cpu_flush(b);
    const float d = a * b;
    if (cpu_is_smallest(d) && cpu_is_less_than_normal(a, b, 0.0f)) return d < 0 ? -0.0f : 0.0f;
    return cpu_flush(d);
}

/* Sums of normal numbers that are denormal are exact. */
static inline float cpu_flush_add(float a, float b)
{
    return cpu_flush(cpu_flush(a) + cpu_flush(b));
}

static inline float cpu_flush_div(float a, float b)
{
    a = cpu_flush(a), b = cpu_flush(b);
    const float d = a / b;
    if (cpu_is_smallest(d) && __builtin_fabs(a) < CPU_FLUSH_BELOW * __builtin_fabs(b)) return d < 0 ? -0.0f : 0.0f;
    return cpu_flush(d);
}

/* Always inlined, so that they are made of the caller's instructions (FOR_EACH_PROCESSOR). */
#define JG_FN static inline __attribute__((always_inline))
#define JG_BITS(x) cpu_bits(x)
#define JG_FLOAT(bits) cpu_float(bits)
#ifdef CPU_NUMBERS_FLUSH
#define JG_FMA(a, b, c) cpu_flush_fma(a, b, c)
#define JG_MUL(a, b) cpu_flush_mul(a, b)
#define JG_ADD(a, b) cpu_flush_add(a, b)
#define JG_DIV(a, b) cpu_flush_div(a, b)
#else
#define JG_FMA(a, b, c) __builtin_fmaf(a, b, c)
#define JG_MUL(a, b) ((a) * (b))
#define JG_ADD(a, b) ((a) + (b))
#define JG_DIV(a, b) ((a) / (b))
#endif
#include "templates/numbers.cuh"

/* jg_activate with the arithmetic that flushes. */
float cpu_activate_flushed(u32 kind, float x, float low, float high);

#endif
