/* What a launch means: a kernel's name read as promises, and a launch checked against them. What it computes is in
 * fake_product.h. A part of fake_cuda.c; it knows nothing of contexts and modules. */
#ifndef JG_TESTS_FAKE_LAUNCH_H
#define JG_TESTS_FAKE_LAUNCH_H

#include "fake_product.h"

#include <ctype.h>
#include <string.h>

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
    } types[] = {{"bf16", JG_BF16}, {"f16", JG_F16}, {"f32", JG_F32},   {"s8", JG_S8},     {"u8", JG_U8},
                 {"s4", JG_S4},     {"s32", JG_S32}, {"e4m3", JG_E4M3}, {"e5m2", JG_E5M2}, {"x", -1}};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        size_t length = strlen(types[i].name);
        if (strncmp(*at, types[i].name, length) != 0) continue;
        *at += length;
        return types[i].type;
    }
    return 0;
}

/* The modes and flags that a name has after its types. */
static unsigned take_math(const char **at, int family)
{
    static const struct {
        const char *name;
        unsigned math;
    } words[] = {{"_3x", JG_MATH_F32_3XTF32}, {"_strict", JG_MATH_STRICT}, {"_f16acc", JG_MATH_F16},
                 {"_ftz", JG_MATH_FLUSH},     {"_san", JG_MATH_SANITIZE}};
    unsigned math = 0;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        size_t length = strlen(words[i].name);
        if (strncmp(*at, words[i].name, length) != 0) continue;
        *at += length;
        math |= words[i].math;
    }
    return family == 't' && !(math & 15) ? math | JG_MATH_TF32 : math;
}

/* The widths, which end a generic kernel's name. */
static int take_widths(const char **at, promise *p)
{
    int used = 0;
    if (strncmp(*at, "_ax", 3) == 0) {
        *at += 3;
        return 1;
    }
    if (sscanf(*at, "_a%d%n", &p->vec_a, &used) != 1) return 0;
    *at += used;
    p->vec_b = p->vec_a;
    if (**at == '_' && isdigit((unsigned char)(*at)[1]) && sscanf(*at, "_%d%n", &p->vec_b, &used) == 1) *at += used;
    return 1;
}

static int read_name(const char *name, promise *p)
{
    int number, used = 0;
    char family[8], trans[2], kind;
    *p = (promise){.slices = 1, .vec_a = -1, .vec_b = -1, .vec_c = -1, .batched = -1, .fusion = -1};
    if (sscanf(name, "jg_sm%d_%7[a-z0-9]_%n", &number, family, &used) != 2 || !used) return 0;
    p->family = family[0];
    if (strcmp(family, "simt") != 0 && strcmp(family, "mma") != 0 && strcmp(family, "tf32") != 0) return 0;
    const char *at = name + used;
    if ((p->type_a = take_type(&at)) < 1 || (p->type_b = take_type(&at)) < 1 || !(p->type_c = take_type(&at))) return 0;
    p->math = take_math(&at, p->family);
    if (sscanf(at, "_%c%c_%dx%dx%d_%c%dx%d_s%d%n", &trans[0], &trans[1], &p->tile_m, &p->tile_n, &p->tile_k, &kind, &p->part_m,
               &p->part_n, &p->stages, &used) != 9 || kind != (p->family == 's' ? 't' : 'w'))
        return 0;
    at += used;
    if (sscanf(at, "_k%d%n", &p->slices, &used) == 1) at += used;
    if (p->slices < 1) return 0;
    p->trans_a = trans[0] == 'x' ? -1 : trans[0] == 't';
    p->trans_b = trans[1] == 'x' ? -1 : trans[1] == 't';
    if (!take_widths(&at, p)) return 0;
    if (!*at) return 1;
    p->is_specialised = 1;
    if (!take_size(&at, "_m", &p->m) || !take_size(&at, "n", &p->n) || !take_size(&at, "k", &p->k) ||
        !take_size(&at, "_l", &p->lda) || !take_size(&at, "_", &p->ldb) || !take_size(&at, "_", &p->ldc))
        return 0;
    if (strncmp(at, "_c", 2) != 0 || (at[2] != '4' && at[2] != '1')) return 0;
    p->vec_c = at[2] == '4';
    at += 3;
    p->batched = strncmp(at, "_b", 2) == 0;
    if (p->batched) at += 2;
    p->fusion = 0;
    if (sscanf(at, "_e%llx%n", (unsigned long long *)&p->fusion, &used) == 1) at += used;
    return !*at && p->type_c > 0;
}

#ifndef FAKE_LAUNCH_NAMES_ALONE /* for who only reads names and computes */

/* Whether an operand of elements of so many bits may be accessed `width` bytes at a time. */
static int is_wide(const void *base, int64_t ld, int64_t rows, int64_t stride, uint32_t batch, int64_t bits, int64_t width)
{
    return (uintptr_t)base % (uintptr_t)width == 0 && (rows <= 1 || ld * bits % (8 * width) == 0) &&
           (batch <= 1 || stride * bits % (8 * width) == 0);
}

static int64_t parts(int64_t whole_size, int64_t part)
{
    return (whole_size + part - 1) / part;
}

/* Writes what is wrong with the launch and gives the error. */
#define FAULT(result, ...)                       \
    do {                                         \
        snprintf(fault, size, __VA_ARGS__);      \
        return result;                           \
    } while (0)

/* A row of simt's stages. */
static int padded(int row)
{
    return row % 8 ? row : row + 4;
}

/* Shared memory where each warp's sums lie on their way to C: 32 rows of its tile at a time, or 16. */
static int slabs_of(const promise *p, int workers)
{
    return workers * (p->part_m % 32 ? 16 : 32) * p->part_n * 4;
}

/* Whether an mma kernel turns an operand's bytes on their way, through registers. */
static int is_turned(const promise *p, int vec, int k_contiguous)
{
    return vec != 2 && vec != 3 && multiplies_integers(p) && !k_contiguous;
}

/* All stages, or only so many as k is known to have, each then copied to once. The sums take the place of the stages, if need be
 * larger; or that of the stages that are left over, if it is large enough and no other item's block could use it. */
static int shared_of_mma(const promise *p, int workers)
{
    const int element = multiplies_integers(p) ? 1 : 2, stage = (p->tile_m + p->tile_n) * p->tile_k * element;
    const int slabs = slabs_of(p, workers);
    int stages = p->stages, sums_apart = 0;
    if (p->k > 0 && p->k <= (long long)(p->stages - 1) * p->tile_k && !is_turned(p, p->vec_a, p->trans_a == 0) &&
        !is_turned(p, p->vec_b, p->trans_b == 1)) {
        stages = (int)((p->k + p->tile_k - 1) / p->tile_k);
        sums_apart = p->batched == 0 && slabs <= (p->stages - stages) * stage;
    }
    if (sums_apart) return stages * stage + slabs;
    return stages * stage > slabs ? stages * stage : slabs;
}

/* Rows of k elements lie in turned chunks, those along k have eight elements of padding. */
static int shared_of_tf32(const promise *p, int workers)
{
    const int row_a = p->tile_m + (p->trans_a == 1 ? 8 : 0), row_b = p->tile_n + (p->trans_b == 0 ? 8 : 0);
    const int stages = p->stages * p->tile_k * (row_a + row_b) * 4, slabs = slabs_of(p, workers);
    return stages > slabs ? stages : slabs;
}

static int shared_of_simt(const promise *p)
{
    const int rows = p->stages * p->tile_k * (padded(p->tile_m) + padded(p->tile_n)) * 4;
    const int sums = p->slices * p->tile_m / (p->part_m / 4) * (p->tile_n + 4) * 4;
    return sums > rows ? sums : rows;
}

/* Dynamic shared memory of a block, as the templates' comments lay it out. */
static int shared_of(const promise *p, int workers)
{
    return p->family == 's' ? shared_of_simt(p) : p->family == 'm' ? shared_of_mma(p, workers) : shared_of_tf32(p, workers);
}

/* The shape of the launch against the tile. dynamic_shared: what the function was allowed. */
static CUresult check_shape(const promise *p, const fake_launch *l, int dynamic_shared, char *fault, size_t size)
{
    const launch_args *a = &l->args;
    const int workers = p->slices * (p->tile_m / p->part_m) * (p->tile_n / p->part_n);
    const int threads = p->family == 's' ? workers : workers * 32;
    const int shared = shared_of(p, workers);
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

/* Whether an operand that the kernel copies or realigns, as wide as the name says, can be: nothing converts its elements on the
 * way. 8-bit ones that are not neighbours along k are turned, in words of 4 bytes; generic kernels take the width they have. */
static int copy_makes_sense(const promise *p, int vec, int type, int k_contiguous)
{
    if (p->family != 'm' || vec == 2) return 1;
    if (vec == 3) return k_contiguous && p->is_specialised; /* gathered, several elements along k at a time */
    const int element = multiplies_integers(p) ? 8 : 16;
    const int turned = element == 8 && !k_contiguous;
    return (vec == 1 || vec == 4 || (vec == 8 && !turned) || (vec == 16 && !(turned && p->is_specialised))) &&
           bits_in(type) == element && !(p->math & ~15u);
}

/* The bytes that a kernel accesses an operand by: as its name says or, where that leaves it open, as the launch does. */
static int64_t width_of(int vec, int is_promised, int type)
{
    if (is_promised) return 16; /* a kernel that reads element by element may still take the launch at its word */
    if (vec == 3) return 16;
    if (vec > 3) return vec;
    return bits_in(type) < 8 ? 1 : bits_in(type) / 8;
}

/* Sizes, ops and alignments against what was compiled in. */
static CUresult check_arguments(const promise *p, const fake_launch *l, char *fault, size_t size)
{
    const launch_args *a = &l->args;
    const int ta = !!(a->flags & TRANS_A), tb = !!(a->flags & TRANS_B);
    if ((p->trans_a >= 0 && ta != p->trans_a) || (p->trans_b >= 0 && tb != p->trans_b))
        FAULT(CUDA_ERROR_INVALID_VALUE, "%s: flags %x of another op", l->kernel, a->flags);
    if (a->flags & ~63u) FAULT(CUDA_ERROR_INVALID_VALUE, "%s: unknown flags %x", l->kernel, a->flags);
    const long long sizes[][2] = {{p->m, a->m}, {p->n, a->n}, {p->k, a->k}, {p->lda, a->lda}, {p->ldb, a->ldb}, {p->ldc, a->ldc}};
    int others = 0;
    for (int i = 0; i < 6; i++) others += sizes[i][0] != -1 && sizes[i][0] != sizes[i][1];
    if (p->is_specialised && others)
        FAULT(CUDA_ERROR_INVALID_VALUE, "%s: launched with %ux%ux%u", l->kernel, a->m, a->n, a->k);
    if (p->batched == 0 && a->batch != 1)
        FAULT(CUDA_ERROR_INVALID_VALUE, "%s: launched for %u items", l->kernel, a->batch);
    if (!copy_makes_sense(p, p->vec_a, p->type_a, !ta) || !copy_makes_sense(p, p->vec_b, p->type_b, tb))
        FAULT(CUDA_ERROR_INVALID_VALUE, "%s: copies what it has to convert", l->kernel);
    const int64_t bits_a = bits_in(p->type_a), bits_b = bits_in(p->type_b), bits_c = bits_in(type_c_of(a->fusion));
    const int64_t width_a = width_of(p->vec_a, a->flags & VEC_A, p->type_a);
    const int64_t width_b = width_of(p->vec_b, a->flags & VEC_B, p->type_b);
    const int64_t width_c = (p->vec_c > 0 || a->flags & VEC_C ? 4 * bits_c : bits_c) / 8;
    const int reads = a->k != 0 && a->alpha != 0;
    if ((reads && (!is_wide(a->a, a->lda, ta ? a->k : a->m, a->stride_a, a->batch, bits_a, width_a) ||
                   !is_wide(a->b, a->ldb, tb ? a->n : a->k, a->stride_b, a->batch, bits_b, width_b))) ||
        !is_wide(a->c, a->ldc, a->m, a->stride_c, a->batch, bits_c, width_c))
        FAULT(CUDA_ERROR_MISALIGNED_ADDRESS, "%s: an operand is not aligned to %d, %d, %d", l->kernel, (int)width_a, (int)width_b,
              (int)width_c);
    return CUDA_SUCCESS;
}

/* What is fused in: the word itself, against the kernel's own, and that what it names is there. */
static CUresult check_fusion(const promise *p, const fake_launch *l, char *fault, size_t size)
{
    const launch_args *a = &l->args;
    const uint32_t f = a->fusion;
    const int c = type_c_of(f), bias = type_bias_of(f), residuals = JG_EPILOGUE_RESIDUAL | JG_EPILOGUE_RESIDUAL_AFTER;
    if (c < 1 || c > JG_E5M2 || c == JG_S4 || (p->type_c >= 0 && c != p->type_c) || (c == JG_S32 && !multiplies_integers(p)))
        FAULT(CUDA_ERROR_INVALID_VALUE, "%s: fusion %x of another type of C", l->kernel, f);
    if (p->fusion >= 0 && (f & ~(15u << 12)) != (uint32_t)p->fusion)
        FAULT(CUDA_ERROR_INVALID_VALUE, "%s: fusion %x of another kernel", l->kernel, f);
    const int has_bias = !!(f & (JG_EPILOGUE_BIAS_M | JG_EPILOGUE_BIAS_N));
    const int has_weights = is_integer(p->type_a) != is_integer(p->type_b);
    if (f >> 23 || f >> 11 & 1 || (f & residuals) == residuals || has_bias != (bias >= JG_F32 && bias <= JG_BF16) ||
        (!has_bias && bias) || (group_of(f) && !has_weights) || (f & 1u << 22 && !group_of(f)))
        FAULT(CUDA_ERROR_INVALID_VALUE, "%s: fusion %x makes no sense", l->kernel, f);
    const int grouped = group_of(f) && a->alpha != 0 && a->k != 0;
    const struct {
        const void *pointer;
        int64_t bits;
        int is_read;
    } rows[] = {
        {a->scale, 32, f & JG_EPILOGUE_SCALE},       {a->scale_m, 32, f & JG_EPILOGUE_SCALE_M},
        {a->scale_n, 32, f & JG_EPILOGUE_SCALE_N},   {a->bias_m, bits_in(bias), f & JG_EPILOGUE_BIAS_M},
        {a->bias_n, bits_in(bias), f & JG_EPILOGUE_BIAS_N}, {a->residual, bits_in(c), f & residuals},
        {a->group_scales, 16, grouped},              {a->group_zeros, 8, grouped && f & 1u << 22},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].is_read && (!rows[i].pointer || (uintptr_t)rows[i].pointer % (uintptr_t)(rows[i].bits / 8)))
            FAULT(CUDA_ERROR_MISALIGNED_ADDRESS, "%s: fusion %x: operand %d is %p", l->kernel, f, (int)i, rows[i].pointer);
    return CUDA_SUCCESS;
}

/* Checks a launch; on failure `fault` says what is wrong. */
static CUresult fake_check(const fake_launch *l, int dynamic_shared, char *fault, size_t size)
{
    promise p;
    if (!read_name(l->kernel, &p)) FAULT(CUDA_ERROR_INVALID_VALUE, "a kernel with an unknown kind of name: %s", l->kernel);
    CUresult result = check_shape(&p, l, dynamic_shared, fault, size);
    if (result == CUDA_SUCCESS) result = check_fusion(&p, l, fault, size);
    return result == CUDA_SUCCESS ? check_arguments(&p, l, fault, size) : result;
}

/* Computes the product of a launch that was checked. */
static void fake_compute(const fake_launch *l)
{
    promise p;
    if (read_name(l->kernel, &p)) compute(&p, &l->args);
}

#endif
#endif
