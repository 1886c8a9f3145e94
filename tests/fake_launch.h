/* What a launch means: a kernel's name read as promises, a launch checked against them, and the product by plain loops.
 * A part of fake_cuda.c; it knows nothing of contexts and modules. */
#ifndef JG_TESTS_FAKE_LAUNCH_H
#define JG_TESTS_FAKE_LAUNCH_H

#include "fake_cuda.h"

#include <ctype.h>
#include <string.h>

/* fma(a, b, c) without libm: the product is exact in double; rounding the sum to odd makes the second rounding harmless. */
static float fused(float a, float b, float c)
{
    double product = (double)a * (double)b, sum = product + (double)c;
    double back = sum - product;
    double error = (product - (sum - back)) + ((double)c - back);
    uint64_t bits;
    memcpy(&bits, &sum, sizeof bits);
    if (error != 0 && !(bits & 1) && error == error) bits += (error > 0) == (sum > 0) ? 1 : -1;
    memcpy(&sum, &bits, sizeof sum);
    return (float)sum;
}

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static float from_f16(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31, mantissa = h & 1023;
    if (exponent == 31) return float_of(sign | 0x7f800000 | mantissa << 13);
    if (exponent) return float_of(sign | (exponent + 112) << 23 | mantissa << 13);
    float tiny = (float)mantissa * 0x1p-24f;
    return sign ? -tiny : tiny;
}

static uint16_t to_f16(float value)
{
    uint32_t bits = bits_of(value), magnitude = bits & 0x7fffffff;
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    if (magnitude > 0x7f800000) return 0x7fff;
    if (magnitude >= 0x477ff000) return sign | 0x7c00; /* 65520 and above */
    if (magnitude < 0x38800000) /* below 2^-14: adding 0.5 makes the float's own unit 2^-24 */
        return sign | (uint16_t)(bits_of(float_of(magnitude) + 0.5f) - bits_of(0.5f));
    magnitude += 0xfff + (magnitude >> 13 & 1);
    return sign | (uint16_t)((magnitude >> 13) - (112 << 10));
}

static uint16_t to_bf16(float value)
{
    uint32_t bits = bits_of(value);
    if ((bits & 0x7fffffff) > 0x7f800000) return 0x7fff;
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static float get(const void *base, int type, int64_t at)
{
    if (type == JG_F32) return ((const float *)base)[at];
    uint16_t h = ((const uint16_t *)base)[at];
    return type == JG_F16 ? from_f16(h) : float_of((uint32_t)h << 16);
}

static void set(void *base, int type, int64_t at, float value)
{
    if (type == JG_F32) ((float *)base)[at] = value;
    else ((uint16_t *)base)[at] = type == JG_F16 ? to_f16(value) : to_bf16(value);
}

/* What a kernel's name says. -1 where it leaves the matter to the launch. */
typedef struct promise {
    int is_mma, type_in, type_c, trans_a, trans_b, vec_a, vec_b, vec_c, batched, is_specialised;
    int tile_m, tile_n, tile_k, part_m, part_n, stages;
    long long m, n, k, lda, ldb, ldc; /* also -1 there */
} promise;

/* A size of a name, after the text that leads it in; x: -1. */
static int take_size(const char **at, const char *lead, long long *size)
{
    int used = 0;
    if (strncmp(*at, lead, strlen(lead)) != 0) return 0;
    *at += strlen(lead);
    *size = -1;
    if (**at == 'x') used = 1;
    else if (sscanf(*at, "%lld%n", size, &used) != 1 || *size < 1) return 0;
    *at += used;
    return 1;
}

static int take_type(const char **at)
{
    static const struct {
        const char *name;
        int type;
    } types[] = {{"bf16", JG_BF16}, {"f16", JG_F16}, {"f32", JG_F32}, {"x", -1}};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        size_t length = strlen(types[i].name);
        if (strncmp(*at, types[i].name, length) != 0) continue;
        *at += length;
        return types[i].type;
    }
    return 0;
}

static int read_name(const char *name, promise *p)
{
    int number, used = 0;
    char family[8], trans[2], kind;
    *p = (promise){.vec_a = -1, .vec_b = -1, .vec_c = -1, .batched = -1};
    if (sscanf(name, "jg_sm%d_%7[a-z]_%n", &number, family, &used) != 2 || !used) return 0;
    p->is_mma = strcmp(family, "mma") == 0;
    const char *at = name + used;
    p->type_in = take_type(&at);
    if (take_type(&at) != p->type_in || p->type_in < 1) return 0;
    p->type_c = take_type(&at);
    if (sscanf(at, "_%c%c_%dx%dx%d_%c%dx%d_s%d%n", &trans[0], &trans[1], &p->tile_m, &p->tile_n, &p->tile_k, &kind, &p->part_m,
               &p->part_n, &p->stages, &used) != 9)
        return 0;
    p->trans_a = trans[0] == 'x' ? -1 : trans[0] == 't';
    p->trans_b = trans[1] == 'x' ? -1 : trans[1] == 't';
    at += used;
    if (strncmp(at, "_ax", 3) == 0) {
        at += 3;
    } else {
        if (sscanf(at, "_a%d%n", &p->vec_a, &used) != 1) return 0;
        at += used;
        p->vec_b = p->vec_a;
        if (*at == '_' && isdigit((unsigned char)at[1]) && sscanf(at, "_%d%n", &p->vec_b, &used) == 1) at += used;
    }
    if (!*at) return 1;
    p->is_specialised = 1;
    if (!take_size(&at, "_m", &p->m) || !take_size(&at, "n", &p->n) || !take_size(&at, "k", &p->k) ||
        !take_size(&at, "_l", &p->lda) || !take_size(&at, "_", &p->ldb) || !take_size(&at, "_", &p->ldc))
        return 0;
    if (strncmp(at, "_c", 2) != 0) return 0;
    p->vec_c = at[2] == '4';
    p->batched = strcmp(at + 3, "_b") == 0;
    return 1;
}

/* Whether an operand may be accessed `width` bytes at a time. */
static int is_wide(const void *base, int64_t ld, int64_t rows, int64_t stride, uint32_t batch, int64_t element, int width)
{
    return (uintptr_t)base % (unsigned)width == 0 && (rows <= 1 || ld * element % width == 0) &&
           (batch <= 1 || stride * element % width == 0);
}

enum { TRANS_A = 1, TRANS_B = 2, VEC_A = 4, VEC_B = 8, VEC_C = 64 };

static int64_t parts(int64_t whole, int64_t part)
{
    return (whole + part - 1) / part;
}

/* Writes what is wrong with the launch and gives the error. */
#define FAULT(result, ...)                       \
    do {                                         \
        snprintf(fault, size, __VA_ARGS__);      \
        return result;                           \
    } while (0)

/* The shape of the launch against the tile. dynamic_shared: what the function was allowed. */
static CUresult check_shape(const promise *p, const fake_launch *l, int dynamic_shared, char *fault, size_t size)
{
    const launch_args *a = &l->args;
    const int workers = p->tile_m / p->part_m * (p->tile_n / p->part_n), threads = p->is_mma ? workers * 32 : workers;
    int shared = p->stages * p->tile_k * (p->tile_m + 4 + p->tile_n + 4) * 4;
    if (p->is_mma) {
        int slabs = workers * 16 * (p->part_n + 4) * 4;
        shared = p->stages * (p->tile_m + p->tile_n) * p->tile_k * 2;
        if (slabs > shared) shared = slabs;
    }
    if (l->block[0] != (unsigned)threads || l->block[1] != 1 || l->block[2] != 1)
        FAULT(CUDA_ERROR_INVALID_VALUE, "%s: %u threads instead of %d", l->kernel, l->block[0], threads);
    if (l->shared_bytes != (unsigned)shared)
        FAULT(CUDA_ERROR_INVALID_VALUE, "%s: %u shared bytes instead of %d", l->kernel, l->shared_bytes, shared);
    if (shared > 48 * 1024 && dynamic_shared < shared)
        FAULT(CUDA_ERROR_INVALID_VALUE, "%s: more shared memory than was asked for", l->kernel);
    int64_t tiles = parts(a->m, p->tile_m) * parts(a->n, p->tile_n), items = a->batch < 65535 ? a->batch : 65535;
    if (l->grid[0] != tiles || l->grid[1] != items || l->grid[2] != 1)
        FAULT(CUDA_ERROR_INVALID_VALUE, "%s: a grid of %ux%ux%u", l->kernel, l->grid[0], l->grid[1], l->grid[2]);
    return CUDA_SUCCESS;
}

/* The arguments against what was compiled in. */
static CUresult check_arguments(const promise *p, const fake_launch *l, char *fault, size_t size)
{
    const launch_args *a = &l->args;
    const int ta = !!(a->flags & TRANS_A), tb = !!(a->flags & TRANS_B), type_c = (int)(a->flags >> 4 & 3);
    const int64_t in = p->type_in == JG_F32 ? 4 : 2, out = type_c == JG_F32 ? 4 : 2;
    if ((p->trans_a >= 0 && ta != p->trans_a) || (p->trans_b >= 0 && tb != p->trans_b))
        FAULT(CUDA_ERROR_INVALID_VALUE, "%s: flags %x of another op", l->kernel, a->flags);
    if (!type_c || (p->type_c >= 0 && type_c != p->type_c))
        FAULT(CUDA_ERROR_INVALID_VALUE, "%s: flags %x of another type of C", l->kernel, a->flags);
    const long long sizes[][2] = {{p->m, a->m}, {p->n, a->n}, {p->k, a->k}, {p->lda, a->lda}, {p->ldb, a->ldb}, {p->ldc, a->ldc}};
    int others = 0;
    for (int i = 0; i < 6; i++) others += sizes[i][0] != -1 && sizes[i][0] != sizes[i][1];
    if (p->is_specialised && others)
        FAULT(CUDA_ERROR_INVALID_VALUE, "%s: launched with %ux%ux%u", l->kernel, a->m, a->n, a->k);
    if (p->batched == 0 && a->batch != 1)
        FAULT(CUDA_ERROR_INVALID_VALUE, "%s: launched for %u items", l->kernel, a->batch);
    const int width_a = p->vec_a >= 0 ? p->vec_a : a->flags & VEC_A ? 16 : (int)in;
    const int width_b = p->vec_b >= 0 ? p->vec_b : a->flags & VEC_B ? 16 : (int)in;
    const int width_c = (p->vec_c >= 0 ? p->vec_c : !!(a->flags & VEC_C)) ? (int)(4 * out) : (int)out;
    const int reads = a->k != 0 && a->alpha != 0;
    if ((reads && (!is_wide(a->a, a->lda, ta ? a->k : a->m, a->stride_a, a->batch, in, width_a) ||
                   !is_wide(a->b, a->ldb, tb ? a->n : a->k, a->stride_b, a->batch, in, width_b))) ||
        !is_wide(a->c, a->ldc, a->m, a->stride_c, a->batch, out, width_c))
        FAULT(CUDA_ERROR_MISALIGNED_ADDRESS, "%s: an operand is not aligned to %d, %d, %d", l->kernel, width_a, width_b, width_c);
    if (a->reserved) FAULT(CUDA_ERROR_INVALID_VALUE, "%s: reserved is not 0", l->kernel);
    return CUDA_SUCCESS;
}

/* The product, as the templates' comments define it. */
static void compute(const promise *p, const launch_args *a)
{
    const int type_c = (int)(a->flags >> 4 & 3), ta = !!(a->flags & TRANS_A), tb = !!(a->flags & TRANS_B);
    const int64_t k = a->alpha == 0 ? 0 : a->k;
    for (int64_t item = 0; item < a->batch; item++)
        for (int64_t i = 0; i < a->m; i++)
            for (int64_t j = 0; j < a->n; j++) {
                float sum = 0;
                for (int64_t l = 0; l < k; l++)
                    sum = fused(get(a->a, p->type_in, item * a->stride_a + (ta ? l * a->lda + i : i * a->lda + l)),
                                get(a->b, p->type_in, item * a->stride_b + (tb ? j * a->ldb + l : l * a->ldb + j)), sum);
                const int64_t at = item * a->stride_c + i * a->ldc + j;
                float value = a->alpha * sum;
                if (a->beta != 0) {
                    volatile float before = a->beta * get(a->c, type_c, at); /* rounded before it is added */
                    value = fused(a->alpha, sum, before);
                }
                set(a->c, type_c, at, value);
            }
}

/* Checks a launch; on failure `fault` says what is wrong. */
static CUresult fake_check(const fake_launch *l, int dynamic_shared, char *fault, size_t size)
{
    promise p;
    if (!read_name(l->kernel, &p)) FAULT(CUDA_ERROR_INVALID_VALUE, "a kernel with an unknown kind of name: %s", l->kernel);
    CUresult result = check_shape(&p, l, dynamic_shared, fault, size);
    return result == CUDA_SUCCESS ? check_arguments(&p, l, fault, size) : result;
}

/* Computes the product of a launch that was checked. */
static void fake_compute(const fake_launch *l)
{
    promise p;
    if (read_name(l->kernel, &p)) compute(&p, &l->args);
}

#endif
