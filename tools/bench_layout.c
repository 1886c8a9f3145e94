/* Where operands lie and what is fused in: see bench_layout.h. */
#include "bench_layout.h"

#include "bench_elements.h"
#include "status.h"

#include <math.h>

#define ALIGNMENT 256
#define WIDEST 16u          /* bytes; more alignment makes no other kernel */
#define WEIGHT_RMS 0.8      /* of weights with groups, by the scales that they get here */

static size_t rounded_up(size_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static int64_t extent(int64_t rows, int64_t columns, int64_t ld, int64_t batch, int64_t stride)
{
    return rows == 0 || columns == 0 ? 0 : (batch - 1) * stride + (rows - 1) * ld + columns;
}

/* A matrix that is aligned as promised and no more begins so far into its bytes. */
static size_t offset_of(const problem *p, jg_type type)
{
    const size_t element = type_bytes(type);
    if (p->align_bytes >= WIDEST) return 0;
    return p->align_bytes > element ? p->align_bytes : element;
}

static size_t matrix_bytes(int64_t elements, jg_type type, size_t offset)
{
    return elements ? rounded_up(offset + (size_t)type_row_bytes(type, elements)) : 0;
}

/* ---- what is fused in ---- */

static void add_extra(bench_layout *l, bench_extra_kind kind, int64_t count, jg_type type)
{
    l->extras[kind] = (bench_extra){l->extra_bytes, (size_t)count, type};
    l->extra_bytes += rounded_up((size_t)type_row_bytes(type, count));
}

static void add_groups(bench_layout *l)
{
    const problem *p = &l->problem;
    const int b = problem_is_weights(p, 1);
    const int64_t groups = (p->k + p->group_k - 1) / p->group_k, lines = b ? p->n : p->m;
    const int64_t items = (b ? p->stride_b : p->stride_a) ? p->batch : 1;
    add_extra(l, BENCH_GROUP_SCALES, groups * lines * items, (jg_type)(b ? p->type_a : p->type_b));
    if (p->zero_points) add_extra(l, BENCH_GROUP_ZEROS, groups * lines * items, JG_S8);
}

static void add_extras(bench_layout *l)
{
    const problem *p = &l->problem;
    const jg_type bias = (jg_type)p->type_bias;
    if (p->epilogue & JG_EPILOGUE_SCALE) add_extra(l, BENCH_SCALE, 1, JG_F32);
    if (p->epilogue & JG_EPILOGUE_SCALE_M) add_extra(l, BENCH_SCALE_M, p->m, JG_F32);
    if (p->epilogue & JG_EPILOGUE_SCALE_N) add_extra(l, BENCH_SCALE_N, p->n, JG_F32);
    if (p->epilogue & JG_EPILOGUE_BIAS_M) add_extra(l, BENCH_BIAS_M, p->m, bias);
    if (p->epilogue & JG_EPILOGUE_BIAS_N) add_extra(l, BENCH_BIAS_N, p->n, bias);
    if (p->epilogue & (JG_EPILOGUE_RESIDUAL | JG_EPILOGUE_RESIDUAL_AFTER))
        add_extra(l, BENCH_RESIDUAL, extent(p->m, p->n, p->ld_residual, p->batch, p->stride_residual), (jg_type)p->type_c);
    if (p->group_k) add_groups(l);
}

float bench_extra_value(const bench_layout *l, bench_extra_kind kind, size_t index)
{
    const jg_type type = l->extras[kind].type;
    uint64_t state = ((uint64_t)kind + 1) << 48 ^ index;
    const double uniform = bench_random_uniform(&state);
    /* A bias of 16 bits must hold it. */
    const double most = l->spread < 4096 ? exp2(ceil(log2(l->spread + 1))) : 4096;
    const int has_s4 = l->problem.type_a == JG_S4 || l->problem.type_b == JG_S4;
    switch (kind) {
    case BENCH_SCALE: case BENCH_SCALE_M: case BENCH_SCALE_N: return (float)(0.5 + uniform);
    case BENCH_BIAS_M: case BENCH_BIAS_N: return bench_element_rounded((float)((2 * uniform - 1) * most), type);
    case BENCH_GROUP_SCALES: return bench_element_rounded((float)((0.5 + uniform) * (has_s4 ? 0x1p-3 : 0x1p-7)), type);
    case BENCH_GROUP_ZEROS: return (float)floor((2 * uniform - 1) * (has_s4 ? 8 : 16));
    default: return bench_element_rounded((float)((2 * uniform - 1) * l->spread), type);
    }
}

void bench_extra_fill(const bench_layout *l, void *block)
{
    for (int kind = 0; kind < BENCH_EXTRAS; kind++) {
        const bench_extra *x = &l->extras[kind];
        char *at = (char *)block + x->at;
        for (size_t i = 0; i < x->count; i++)
            bench_element_put(at, i, x->type, bench_extra_value(l, (bench_extra_kind)kind, i));
    }
}

/* ---- what results are like ---- */

static double operand_rms(const problem *p, int b)
{
    const jg_type type = (jg_type)(b ? p->type_b : p->type_a);
    return p->group_k && problem_is_weights(p, b) ? WEIGHT_RMS : bench_element_rms(type);
}

/* Sums of integers are too large for most types of C: alpha makes them small enough that few saturate. */
static void choose_alpha(bench_layout *l)
{
    const problem *p = &l->problem;
    const double rms = operand_rms(p, 0) * operand_rms(p, 1), k = (double)(p->k > 0 ? p->k : 1);
    const double mean = p->group_k ? 0 : bench_element_mean((jg_type)p->type_a) * bench_element_mean((jg_type)p->type_b);
    const double spread = sqrt(k) * rms + k * fabs(mean);
    const double most = p->type_c == JG_F16 ? 65504 : bench_element_most((jg_type)p->type_c);
    l->alpha = 1;
    while (p->type_c != JG_S32 && (double)l->alpha * spread * 4 > most) l->alpha /= 2;
    l->unit = (double)l->alpha * rms * 3;
    l->spread = (double)l->alpha * spread;
}

/* ---- all together ---- */

jg_status bench_layout_make(const jg_problem *p, size_t rotated_bytes, unsigned most_sets, bench_layout *out)
{
    problem c;
    RETURN_IF_ERROR(problem_canonicalise(p, &c));
    if (problem_is_empty(&c)) return status_set(JG_ERR_SIZE, "there is nothing to compute");
    const int ta = c.op_a == JG_T, tb = c.op_b == JG_T;
    const jg_type type_a = (jg_type)c.type_a, type_b = (jg_type)c.type_b, type_c = (jg_type)c.type_c;
    const int64_t a = extent(ta ? c.k : c.m, ta ? c.m : c.k, c.lda, c.batch, c.stride_a);
    const int64_t b = extent(tb ? c.n : c.k, tb ? c.k : c.n, c.ldb, c.batch, c.stride_b);
    *out = (bench_layout){.problem = c, .a_offset = offset_of(&c, type_a), .b_offset = offset_of(&c, type_b),
                          .c_offset = offset_of(&c, type_c), .sets = 1};
    out->a_bytes = matrix_bytes(a, type_a, out->a_offset);
    out->b_bytes = matrix_bytes(b, type_b, out->b_offset);
    out->c_bytes = matrix_bytes(extent(c.m, c.n, c.ldc, c.batch, c.stride_c), type_c, out->c_offset);
    choose_alpha(out);
    add_extras(out);
    const size_t set = bench_layout_set_bytes(out), sets = (rotated_bytes + set - 1) / set;
    if (sets > 1) out->sets = sets < most_sets ? (unsigned)sets : most_sets;
    return JG_OK;
}

size_t bench_layout_set_bytes(const bench_layout *l)
{
    return l->a_bytes + l->b_bytes + l->c_bytes + l->extra_bytes;
}

size_t bench_layout_in_bytes(const bench_layout *l)
{
    return (l->a_bytes + l->b_bytes) * l->sets;
}

size_t bench_layout_out_bytes(const bench_layout *l)
{
    return l->c_bytes * l->sets;
}

size_t bench_layout_extra_bytes(const bench_layout *l)
{
    return l->extra_bytes * l->sets;
}

double bench_layout_flops(const bench_layout *l)
{
    const problem *p = &l->problem;
    return 2.0 * (double)p->m * (double)p->n * (double)p->k * (double)p->batch;
}

static double bytes_of(double elements, uint8_t type)
{
    return elements * type_bits((jg_type)type) / 8;
}

double bench_layout_bytes(const bench_layout *l)
{
    const problem *p = &l->problem;
    const double m = (double)p->m, n = (double)p->n, k = (double)p->k, batch = (double)p->batch;
    double bytes = bytes_of(m * k * (p->stride_a ? batch : 1), p->type_a);
    bytes += bytes_of(k * n * (p->stride_b ? batch : 1), p->type_b);
    bytes += bytes_of(m * n * batch, p->type_c);
    for (int kind = 0; kind < BENCH_EXTRAS; kind++) {
        const bench_extra *x = &l->extras[kind];
        const double residual = m * n * (p->stride_residual ? batch : 1);
        if (x->count) bytes += bytes_of(kind == BENCH_RESIDUAL ? residual : (double)x->count, (uint8_t)x->type);
    }
    return bytes;
}
