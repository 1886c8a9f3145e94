/* The operands of the oracle: where they lie, and what comes out of them. */
#include "reference_parts.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GUARD_BYTES 256 /* before and after the elements; also the alignment of a block */

void *reference_must(void *pointer)
{
    if (pointer) return pointer;
    fprintf(stderr, "reference: out of memory\n");
    abort();
}

/* ---- elements ---- */

static int64_t element_index(const reference_matrix *x, int64_t item, int64_t i, int64_t j)
{
    return item * x->stride + i * x->row_step + j * x->col_step;
}

size_t reference_offset(const reference_matrix *x, int64_t item, int64_t i, int64_t j)
{
    return x->offset_bytes + (size_t)element_index(x, item, i, j) * reference_bits(x->type) / 8;
}

/* The upper half of a byte, where an s4 element has an odd index. */
static unsigned nibble_shift(const reference_matrix *x, int64_t item, int64_t i, int64_t j)
{
    return x->type == JG_S4 && element_index(x, item, i, j) % 2 ? 4 : 0;
}

static uint32_t bits_from(const unsigned char *block, const reference_matrix *x, int64_t item, int64_t i, int64_t j)
{
    const unsigned char *element = block + reference_offset(x, item, i, j);
    uint16_t narrow;
    uint32_t bits;
    switch (reference_bits(x->type)) {
    case 32: memcpy(&bits, element, sizeof bits); return bits;
    case 16: memcpy(&narrow, element, sizeof narrow); return narrow;
    case 8: return *element;
    default: return *element >> nibble_shift(x, item, i, j) & 15;
    }
}

uint32_t reference_get_bits(const reference_matrix *x, int64_t item, int64_t i, int64_t j)
{
    return bits_from(x->block, x, item, i, j);
}

double reference_get(const reference_matrix *x, int64_t item, int64_t i, int64_t j)
{
    return reference_decode(x->type, reference_get_bits(x, item, i, j));
}

void reference_set_bits(reference_matrix *x, int64_t item, int64_t i, int64_t j, uint32_t bits)
{
    unsigned char *element = x->block + reference_offset(x, item, i, j);
    uint16_t narrow = (uint16_t)bits;
    unsigned shift = nibble_shift(x, item, i, j);
    switch (reference_bits(x->type)) {
    case 32: memcpy(element, &bits, sizeof bits); break;
    case 16: memcpy(element, &narrow, sizeof narrow); break;
    case 8: *element = (unsigned char)bits; break;
    default: *element = (unsigned char)((*element & ~(15u << shift)) | (bits & 15) << shift); break;
    }
}

void reference_set(reference_matrix *x, int64_t item, int64_t i, int64_t j, double value)
{
    reference_set_bits(x, item, i, j, reference_encode(x->type, value));
}

void *reference_at(const reference_matrix *x)
{
    return x->block ? x->block + x->offset_bytes : NULL;
}

void reference_poison(reference_matrix *x)
{
    if (x->block) memset(x->block, 0xff, x->block_bytes);
}

int reference_is_computed(const reference *ref, int64_t item, int64_t i, int64_t j)
{
    static const unsigned char poison[4] = {0xff, 0xff, 0xff, 0xff};
    return !ref->sampled || memcmp(ref->c.block + reference_offset(&ref->c, item, i, j), poison, reference_bytes(ref->c.type)) !=
        0;
}

/* ---- as they are computed with ---- */

static double read_as_told(const reference *ref, jg_type type, double value)
{
    if (ref->problem.math & JG_MATH_SANITIZE && !isfinite(value)) return 0;
    if (ref->problem.math & JG_MATH_FLUSH && fabs(value) < reference_smallest_normal(type)) return copysign(0, value);
    return value;
}

const reference_matrix *reference_weights(const reference *ref)
{
    int a = reference_is_integer(ref->a.type), b = reference_is_integer(ref->b.type);
    return a == b ? NULL : a ? &ref->a : &ref->b;
}

double reference_factor(const reference *ref, const reference_matrix *x, int64_t item, int64_t i, int64_t j)
{
    double value = read_as_told(ref, x->type, reference_get(x, item, i, j));
    if (ref->problem.group_k == 0 || x != reference_weights(ref)) return value;
    int is_b = x == &ref->b;
    int64_t group = (is_b ? i : j) / ref->problem.group_k, line = is_b ? j : i;
    jg_type other = is_b ? ref->a.type : ref->b.type;
    double zero = ref->problem.zero_points ? reference_get(&ref->group_zeros, item, group, line) : 0;
    double scale = reference_get(&ref->group_scales, item, group, line);
    return reference_decode(other, reference_encode(other, (value - zero) * scale));
}

double reference_before(const reference *ref, int64_t item, int64_t i, int64_t j)
{
    return read_as_told(ref, ref->c.type, reference_decode(ref->c.type, bits_from(ref->before, &ref->c, item, i, j)));
}

double reference_residual(const reference *ref, int64_t item, int64_t i, int64_t j)
{
    return read_as_told(ref, ref->residual.type, reference_get(&ref->residual, item, i, j));
}

int reference_is_int32(const reference *ref, float alpha, float beta)
{
    return reference_is_integer(ref->a.type) && reference_is_integer(ref->b.type) && ref->c.type == JG_S32 &&
        ref->problem.epilogue == 0 &&
           ref->problem.activation == JG_ACTIVATION_NONE && alpha == 1 && (beta == 0 || beta == 1);
}

int32_t reference_wrap(double sum)
{
    return (int32_t)(uint32_t)(int64_t)sum;
}

/* ---- layout ---- */

/* Describes op(X), whose stored matrix is transposed against it if `transposed` and column-major if `col_major`. */
static reference_matrix describe(jg_type type, int64_t batch, int64_t rows, int64_t cols, int transposed, int col_major,
                                 int64_t ld, int64_t stride)
{
    reference_matrix x = {.type = type, .batch = batch, .rows = rows, .cols = cols, .stride = batch > 1 ? stride : 0};
    int rows_contiguous = transposed == col_major; /* the elements of a row of op(X) are neighbours */
    int64_t dense = rows_contiguous ? cols : rows;
    if (ld == 0) ld = dense > 0 ? dense : 1;
    if (type == JG_S4 && ld == dense) ld += ld % 2;
    x.row_step = rows_contiguous ? ld : 1;
    x.col_step = rows_contiguous ? 1 : ld;
    return x;
}

static reference_matrix describe_row(jg_type type, int64_t count)
{
    return describe(type, 1, 1, count, 0, 0, 0, 0);
}

static void allocate(reference_matrix *x, size_t misalign_bytes, int outside)
{
    size_t elements = 0, align = reference_bytes(x->type);
    if (x->batch > 0 && x->rows > 0 && x->cols > 0)
        elements = (size_t)((x->batch - 1) * x->stride + (x->rows - 1) * x->row_step + (x->cols - 1) * x->col_step + 1);
    size_t bytes = (elements * reference_bits(x->type) + 7) / 8;
    x->offset_bytes = GUARD_BYTES + (misalign_bytes + align - 1) / align * align;
    x->block_bytes = (x->offset_bytes + bytes + 2 * GUARD_BYTES - 1) / GUARD_BYTES * GUARD_BYTES;
    x->block = reference_must(aligned_alloc(GUARD_BYTES, x->block_bytes));
    memset(x->block, outside, x->block_bytes);
}

void reference_pack(jg_problem *problem)
{
    jg_problem *p = problem;
    jg_type type_a = p->type_a ? p->type_a : JG_F32, type_b = p->type_b ? p->type_b : type_a;
    int col_major = p->order == JG_COL_MAJOR;
    /* A stored matrix is as many leading dimensions long as it has rows, or columns if column-major. */
    int64_t size_a[2] = {p->m, p->k}, size_b[2] = {p->k, p->n}, size_c[2] = {p->m, p->n};
    int long_a = (p->op_a == JG_T) != col_major, long_b = (p->op_b == JG_T) != col_major;
    int64_t ld_a = p->lda ? p->lda : size_a[!long_a], ld_b = p->ldb ? p->ldb : size_b[!long_b];
    int64_t ld_c = p->ldc ? p->ldc : size_c[!col_major], ld_residual = p->ld_residual ? p->ld_residual : ld_c;
    if (type_a == JG_S4) ld_a += ld_a % 2;
    if (type_b == JG_S4) ld_b += ld_b % 2;
    p->stride_a = size_a[long_a] * (ld_a > 0 ? ld_a : 1);
    p->stride_b = size_b[long_b] * (ld_b > 0 ? ld_b : 1);
    p->stride_c = size_c[col_major] * (ld_c > 0 ? ld_c : 1);
    if (p->epilogue & (JG_EPILOGUE_RESIDUAL | JG_EPILOGUE_RESIDUAL_AFTER))
        p->stride_residual = size_c[col_major] * (ld_residual > 0 ? ld_residual : 1);
}

static jg_type default_result(jg_type a, jg_type b)
{
    if (reference_is_integer(a) && reference_is_integer(b)) return JG_S32;
    if (reference_is_integer(a)) return b;
    return reference_bits(a) == 8 ? JG_F32 : a;
}

/* The data of the epilogue and of groups, as far as the problem has them. */
static void describe_fused(reference *ref)
{
    const jg_problem *p = &ref->problem;
    const struct {
        uint32_t flag;
        reference_matrix *x;
        jg_type type;
        int64_t count;
    } rows[] = {
        {JG_EPILOGUE_SCALE, &ref->scale, JG_F32, 1},
        {JG_EPILOGUE_SCALE_M, &ref->scale_m, JG_F32, p->m},
        {JG_EPILOGUE_SCALE_N, &ref->scale_n, JG_F32, p->n},
        {JG_EPILOGUE_BIAS_M, &ref->bias_m, p->type_bias ? p->type_bias : JG_F32, p->m},
        {JG_EPILOGUE_BIAS_N, &ref->bias_n, p->type_bias ? p->type_bias : JG_F32, p->n},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (p->epilogue & rows[i].flag) *rows[i].x = describe_row(rows[i].type, rows[i].count);
    if (p->epilogue & (JG_EPILOGUE_RESIDUAL | JG_EPILOGUE_RESIDUAL_AFTER))
        ref->residual = describe(ref->c.type, ref->batch, p->m, p->n, 0, p->order == JG_COL_MAJOR,
                                 p->ld_residual ? p->ld_residual : p->ldc, p->stride_residual);
    const reference_matrix *weights = reference_weights(ref);
    if (p->group_k == 0 || !weights) return;
    int64_t groups = (p->k + p->group_k - 1) / p->group_k, lines = weights == &ref->b ? p->n : p->m;
    int64_t stride = weights->stride ? groups * lines : 0;
    ref->group_scales = describe(weights == &ref->b ? ref->a.type : ref->b.type, ref->batch, groups, lines, 0, 0, 0, stride);
    if (p->zero_points) ref->group_zeros = describe(JG_S8, ref->batch, groups, lines, 0, 0, 0, stride);
}

/* Every matrix and the member of jg_operands that points to it; C first. */
static const struct {
    size_t in_reference, in_operands;
} members[REFERENCE_MAX_BLOCKS] = {
    {offsetof(reference, c), offsetof(jg_operands, c)},
    {offsetof(reference, a), offsetof(jg_operands, a)},
    {offsetof(reference, b), offsetof(jg_operands, b)},
    {offsetof(reference, residual), offsetof(jg_operands, residual)},
    {offsetof(reference, scale), offsetof(jg_operands, scale)},
    {offsetof(reference, scale_m), offsetof(jg_operands, scale_m)},
    {offsetof(reference, scale_n), offsetof(jg_operands, scale_n)},
    {offsetof(reference, bias_m), offsetof(jg_operands, bias_m)},
    {offsetof(reference, bias_n), offsetof(jg_operands, bias_n)},
    {offsetof(reference, group_scales), offsetof(jg_operands, group_scales)},
    {offsetof(reference, group_zeros), offsetof(jg_operands, group_zeros)},
};

static reference_matrix *matrix_of(const reference *ref, size_t index)
{
    return (reference_matrix *)((char *)ref + members[index].in_reference);
}

void reference_make(reference *ref, const jg_problem *problem, reference_fill fill, size_t misalign_bytes,
                    uint64_t seed)
{
    const jg_problem *p = problem;
    int col_major = p->order == JG_COL_MAJOR;
    jg_type type_a = p->type_a ? p->type_a : JG_F32, type_b = p->type_b ? p->type_b : type_a;
    int64_t batch = p->batch;
    if (batch == 0 && p->stride_a == 0 && p->stride_b == 0 && p->stride_c == 0) batch = 1;
    *ref = (reference){.problem = *p, .m = p->m, .n = p->n, .k = p->k, .batch = batch};
    ref->a = describe(type_a, batch, p->m, p->k, p->op_a == JG_T, col_major, p->lda, p->stride_a);
    ref->b = describe(type_b, batch, p->k, p->n, p->op_b == JG_T, col_major, p->ldb, p->stride_b);
    ref->c =
        describe(p->type_c ? p->type_c : default_result(type_a, type_b), batch, p->m, p->n, 0, col_major, p->ldc, p->stride_c);
    describe_fused(ref);
    for (size_t i = 0; i < REFERENCE_MAX_BLOCKS; i++) {
        reference_matrix *x = matrix_of(ref, i);
        if (x->type != JG_DEFAULT_TYPE) allocate(x, misalign_bytes, x == &ref->c ? 0xa5 : 0xff);
    }
    reference_fill_all(ref, fill, seed);
    ref->before = reference_must(malloc(ref->c.block_bytes));
    reference_snapshot(ref);
}

void reference_free(reference *ref)
{
    for (size_t i = 0; i < REFERENCE_MAX_BLOCKS; i++) free(matrix_of(ref, i)->block);
    free(ref->before);
    memset(ref, 0, sizeof *ref);
}

void reference_snapshot(reference *ref)
{
    memcpy(ref->before, ref->c.block, ref->c.block_bytes);
}

void reference_sample(reference *ref)
{
    reference_poison(&ref->c);
    reference_snapshot(ref);
    ref->sampled = 1;
}

size_t reference_blocks(const reference *ref, reference_block out[REFERENCE_MAX_BLOCKS])
{
    size_t count = 0;
    for (size_t i = 0; i < REFERENCE_MAX_BLOCKS; i++) {
        const reference_matrix *x = matrix_of(ref, i);
        if (!x->block) continue;
        out[count++] =
            (reference_block){x == &ref->c ? ref->before : x->block, x->block_bytes, x->offset_bytes, members[i].in_operands};
    }
    return count;
}

void reference_point(jg_operands *operands, const reference_block *block, void *copy)
{
    void *element = (char *)copy + block->offset;
    memcpy((char *)operands + block->member, &element, sizeof element);
}

jg_operands reference_operands(const reference *ref, const float *alpha, const float *beta)
{
    jg_operands operands = {.alpha = alpha, .beta = beta, .clamp_low = ref->clamp_low, .clamp_high = ref->clamp_high,
                            .out_scale = ref->out_scale, .out_zero = ref->out_zero};
    reference_block blocks[REFERENCE_MAX_BLOCKS];
    const size_t count = reference_blocks(ref, blocks);
    for (size_t i = 0; i < count; i++) reference_point(&operands, &blocks[i], i == 0 ? ref->c.block : (void *)blocks[i].host);
    return operands;
}
