/* Makes the operands of a product: see counters_operands.h. */
#include "counters_operands.h"

#include <stdlib.h>
#include <string.h>

#define CHUNK_BYTES ((size_t)1 << 20) /* host memory at a time */
#define MOST_OFFSET 16u               /* bytes; more alignment than that makes no other kernel */

enum { A, B, C, SCALE, SCALE_M, SCALE_N, BIAS_M, BIAS_N, RESIDUAL, GROUP_SCALES, GROUP_ZEROS, BLOCKS };
_Static_assert(BLOCKS == COUNTERS_BLOCKS, "a block for each pointer");

/* A part of memory: elements from the first to the last one. */
typedef struct block {
    int64_t elements;
    jg_type type;
    size_t offset; /* bytes into its allocation, whose start is a multiple of 256 */
} block;

/* ---- which there are ---- */

static int is_integer(jg_type type)
{
    return type == JG_S8 || type == JG_U8 || type == JG_S4 || type == JG_S32;
}

static int is_half(jg_type type)
{
    return type == JG_F16 || type == JG_BF16;
}

/* Fills in what the problem leaves to the defaults, as jg_type says. */
static void resolve_types(const jg_problem *p, jg_type types[3])
{
    types[A] = p->type_a ? p->type_a : JG_F32;
    types[B] = p->type_b ? p->type_b : types[A];
    const jg_type c = is_half(types[A]) ? types[A] : is_half(types[B]) ? types[B] : is_integer(types[A]) ? JG_S32 : JG_F32;
    types[C] = p->type_c ? p->type_c : c;
}

/* A pointer that is a multiple of just so much lies so far into an allocation. */
static size_t offset_bytes(jg_type type, uint32_t align_bytes)
{
    const size_t element = (size_t)jg_type_bytes(type, 1);
    if (align_bytes == 0 || align_bytes >= MOST_OFFSET) return 0;
    return align_bytes > element ? align_bytes : element;
}

/* A matrix of rows x columns before its op. */
static block matrix(const jg_problem *p, int64_t rows, int64_t columns, jg_op op, int64_t given_ld, int64_t stride, jg_type type)
{
    const int by_rows = (op == JG_T) == (p->order == JG_COL_MAJOR);
    const int64_t lines = by_rows ? rows : columns, width = by_rows ? columns : rows;
    const int64_t dense = type == JG_S4 ? width + width % 2 : width, ld = given_ld ? given_ld : dense;
    const int64_t items = p->batch ? p->batch : 1;
    const int64_t elements = lines == 0 || width == 0 ? 0 : (items - 1) * stride + (lines - 1) * ld + width;
    return (block){elements, type, offset_bytes(type, p->align_bytes)};
}

/* What is fused in: nothing is promised of its addresses but whole elements. */
static block extra(int64_t elements, jg_type type)
{
    return (block){elements, type, (size_t)jg_type_bytes(type, 1)};
}

static void add_groups(const jg_problem *p, const jg_type types[3], block blocks[BLOCKS])
{
    const int b = is_integer(types[B]);
    const int64_t items = (b ? p->stride_b : p->stride_a) && p->batch ? p->batch : 1;
    const int64_t count = (p->k + p->group_k - 1) / p->group_k * (b ? p->n : p->m) * items;
    blocks[GROUP_SCALES] = extra(count, types[b ? A : B]);
    if (p->zero_points) blocks[GROUP_ZEROS] = extra(count, JG_S8);
}

static void describe(const jg_problem *p, block blocks[BLOCKS])
{
    const jg_type bias = p->type_bias ? p->type_bias : JG_F32;
    jg_type types[3];
    resolve_types(p, types);
    blocks[A] = matrix(p, p->m, p->k, p->op_a, p->lda, p->stride_a, types[A]);
    blocks[B] = matrix(p, p->k, p->n, p->op_b, p->ldb, p->stride_b, types[B]);
    blocks[C] = matrix(p, p->m, p->n, JG_N, p->ldc, p->stride_c, types[C]);
    if (p->epilogue & JG_EPILOGUE_SCALE) blocks[SCALE] = extra(1, JG_F32);
    if (p->epilogue & JG_EPILOGUE_SCALE_M) blocks[SCALE_M] = extra(p->m, JG_F32);
    if (p->epilogue & JG_EPILOGUE_SCALE_N) blocks[SCALE_N] = extra(p->n, JG_F32);
    if (p->epilogue & JG_EPILOGUE_BIAS_M) blocks[BIAS_M] = extra(p->m, bias);
    if (p->epilogue & JG_EPILOGUE_BIAS_N) blocks[BIAS_N] = extra(p->n, bias);
    if (p->epilogue & (JG_EPILOGUE_RESIDUAL | JG_EPILOGUE_RESIDUAL_AFTER)) {
        const int64_t ld = p->ld_residual ? p->ld_residual : p->ldc;
        blocks[RESIDUAL] = extra(matrix(p, p->m, p->n, JG_N, ld, p->stride_residual, types[C]).elements, types[C]);
    }
    if (p->group_k) add_groups(p, types, blocks);
}

/* ---- numbers ---- */

/* Explicit digits of a float, and the bias of its exponent. */
static int digits_of(jg_type type, int *bias)
{
    switch (type) {
    case JG_F16: *bias = 15; return 10;
    case JG_BF16: *bias = 127; return 7;
    case JG_E4M3: *bias = 7; return 3;
    case JG_E5M2: *bias = 15; return 2;
    default: *bias = 127; return 23;
    }
}

/* The bits of a shorter float, for a number that the type holds exactly: it drops zeros only. */
static uint32_t narrow(float value, int digits, int bias, int width)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (value == 0) return 0;
    const uint32_t exponent = (bits >> 23 & 0xff) - 127 + (uint32_t)bias;
    return bits >> 31 << (width - 1) | exponent << digits | (bits & 0x7fffff) >> (23 - digits);
}

static uint64_t next_random(uint64_t *state)
{
    return *state = *state * 6364136223846793005u + 1442695040888963407u;
}

/* Multiples of 2^-digits in [-1, 1) with as many digits as the type holds; integers of all bits. */
static void fill_chunk(void *chunk, size_t bytes, jg_type type, uint64_t *state)
{
    int bias;
    const int digits = digits_of(type, &bias), width = 8 * (int)jg_type_bytes(type, 1);
    for (size_t i = 0; i < bytes && is_integer(type); i++) ((uint8_t *)chunk)[i] = (uint8_t)(next_random(state) >> 56);
    for (size_t i = 0; i < bytes * 8 / (size_t)width && !is_integer(type); i++) {
        const int32_t number = (int32_t)(next_random(state) >> (63 - digits)) - (1 << digits);
        const float value = (float)number / (float)(1 << digits);
        if (width == 32) ((float *)chunk)[i] = value;
        else if (width == 16) ((uint16_t *)chunk)[i] = (uint16_t)narrow(value, digits, bias, width);
        else ((uint8_t *)chunk)[i] = (uint8_t)narrow(value, digits, bias, width);
    }
}

static jg_status fill(jg_context *context, char *to, size_t bytes, jg_type type, uint64_t seed)
{
    static union {
        float numbers[CHUNK_BYTES / sizeof(float)];
        char bytes[CHUNK_BYTES];
    } chunk;
    for (size_t done = 0; done < bytes; done += CHUNK_BYTES) {
        const size_t part = bytes - done < CHUNK_BYTES ? bytes - done : CHUNK_BYTES;
        fill_chunk(&chunk, part, type, &seed);
        jg_status status = jg_copy(context, to + done, chunk.bytes, part);
        if (status != JG_OK) return status;
    }
    return JG_OK;
}

/* ---- all together ---- */

jg_status counters_operands_make(jg_context *context, const jg_problem *p, counters_operands *o)
{
    block blocks[BLOCKS] = {{0, JG_DEFAULT_TYPE, 0}};
    char *at[BLOCKS] = {NULL};
    describe(p, blocks);
    for (int i = 0; i < BLOCKS; i++) {
        const size_t bytes = (size_t)jg_type_bytes(blocks[i].type, blocks[i].elements);
        if (bytes == 0) continue;
        jg_status status = jg_alloc(context, JG_DEVICE_MEMORY, blocks[i].offset + bytes, &o->blocks[i]);
        if (status != JG_OK) return status;
        at[i] = (char *)o->blocks[i] + blocks[i].offset;
        if (i != C) status = fill(context, at[i], bytes, blocks[i].type, (uint64_t)i + 1);
        if (status != JG_OK) return status;
    }
    o->data = (jg_operands){.a = at[A], .b = at[B], .c = at[C],
                            .scale = (void *)at[SCALE], .scale_m = (void *)at[SCALE_M], .scale_n = (void *)at[SCALE_N],
                            .bias_m = at[BIAS_M], .bias_n = at[BIAS_N], .residual = at[RESIDUAL],
                            .group_scales = at[GROUP_SCALES], .group_zeros = (void *)at[GROUP_ZEROS],
                            .clamp_low = -1, .clamp_high = 1, .out_scale = 1};
    return JG_OK;
}

jg_status counters_operands_free(jg_context *context, counters_operands *o)
{
    jg_status first = JG_OK;
    for (int i = 0; i < BLOCKS; i++) {
        jg_status status = jg_free(context, JG_DEVICE_MEMORY, o->blocks[i]);
        if (first == JG_OK) first = status;
    }
    *o = (counters_operands){0};
    return first;
}
