/* Makes the operands of a product: see counters_operands.h. */
#include "counters_operands.h"

#include <stdlib.h>
#include <string.h>

#define CHUNK_BYTES ((size_t)1 << 20) /* host memory at a time */
#define MOST_OFFSET 16u               /* bytes; more alignment than that makes no other kernel */

/* One matrix as stored; numbers in elements. */
typedef struct matrix {
    int64_t rows, columns, ld, stride;
    jg_type type;
} matrix;

static size_t element_bytes(jg_type type)
{
    return type == JG_F32 ? 4 : 2;
}

static matrix stored(int64_t rows, int64_t columns, jg_op op, int64_t ld, int64_t stride, jg_type type)
{
    return op == JG_T ? (matrix){columns, rows, ld, stride, type} : (matrix){rows, columns, ld, stride, type};
}

/* From its first element to its last one. */
static size_t matrix_bytes(const matrix *x, const jg_problem *p)
{
    const int64_t lines = p->order == JG_COL_MAJOR ? x->columns : x->rows;
    const int64_t width = p->order == JG_COL_MAJOR ? x->rows : x->columns;
    const int64_t ld = x->ld ? x->ld : width, items = p->batch ? p->batch : 1;
    if (lines == 0 || width == 0) return 0;
    return (size_t)((items - 1) * x->stride + (lines - 1) * ld + width) * element_bytes(x->type);
}

/* An address that is a multiple of just this much lies so far into an allocation, whose start is a multiple of 256. */
static size_t offset_bytes(const matrix *x, const jg_problem *p)
{
    const size_t element = element_bytes(x->type);
    if (p->align_bytes == 0 || p->align_bytes >= MOST_OFFSET) return 0;
    return p->align_bytes > element ? p->align_bytes : element;
}

/* The float's own bits, for a number that the type holds exactly: the 16-bit types drop zeros only. */
static uint16_t narrow(float value, jg_type type)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (type == JG_BF16) return (uint16_t)(bits >> 16);
    if (value == 0) return 0;
    const uint32_t exponent = (bits >> 23 & 0xff) - 127 + 15;
    return (uint16_t)(bits >> 31 << 15 | exponent << 10 | (bits >> 13 & 0x3ff));
}

/* Multiples of 2^-digits in [-1, 1) with as many digits as the type holds. */
static void fill_chunk(void *chunk, size_t count, jg_type type, uint64_t *state)
{
    const unsigned digits = type == JG_F32 ? 23 : type == JG_F16 ? 10 : 7;
    for (size_t i = 0; i < count; i++) {
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        const int32_t number = (int32_t)(*state >> (63 - digits)) - (1 << digits);
        const float value = (float)number / (float)(1 << digits);
        if (type == JG_F32) ((float *)chunk)[i] = value;
        else ((uint16_t *)chunk)[i] = narrow(value, type);
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
        fill_chunk(&chunk, part / element_bytes(type), type, &seed);
        jg_status status = jg_copy(context, to + done, chunk.bytes, part);
        if (status != JG_OK) return status;
    }
    return JG_OK;
}

jg_status counters_operands_make(jg_context *context, const jg_problem *p, counters_operands *o)
{
    const jg_type type_a = p->type_a ? p->type_a : JG_F32;
    const jg_type type_b = p->type_b ? p->type_b : type_a, type_c = p->type_c ? p->type_c : type_a;
    const matrix matrices[3] = {
        stored(p->m, p->k, p->op_a, p->lda, p->stride_a, type_a),
        stored(p->k, p->n, p->op_b, p->ldb, p->stride_b, type_b),
        stored(p->m, p->n, JG_N, p->ldc, p->stride_c, type_c),
    };
    char *starts[3] = {NULL};
    for (int i = 0; i < 3; i++) {
        const size_t bytes = matrix_bytes(&matrices[i], p), offset = offset_bytes(&matrices[i], p);
        if (bytes == 0) continue;
        jg_status status = jg_alloc(context, JG_DEVICE_MEMORY, offset + bytes, &o->blocks[i]);
        if (status != JG_OK) return status;
        starts[i] = (char *)o->blocks[i] + offset;
        if (i < 2) status = fill(context, starts[i], bytes, matrices[i].type, (uint64_t)i + 1);
        if (status != JG_OK) return status;
    }
    o->data = (jg_operands){.a = starts[0], .b = starts[1], .c = starts[2]};
    return JG_OK;
}

jg_status counters_operands_free(jg_context *context, counters_operands *o)
{
    jg_status first = JG_OK;
    for (int i = 0; i < 3; i++) {
        jg_status status = jg_free(context, JG_DEVICE_MEMORY, o->blocks[i]);
        if (first == JG_OK) first = status;
    }
    *o = (counters_operands){0};
    return first;
}
