/* The cpu device. In: a canonical problem and host memory. Out: C, with the bits that the simt kernels
 * give, but for the sign and payload of a NaN:
 *     acc = fma(a, b, acc) in ascending k from +0, in float32                          DEFAULT, F32_3XTF32
 *     acc = acc + a * b likewise, each rounded                                         STRICT
 *     as DEFAULT, of elements that were rounded to tf32 (nearest, ties away from 0)    TF32
 *     as DEFAULT, and the finished sum is rounded to f16                               F16
 *     acc = acc + a * b modulo 2^32                                                    integers, in every mode
 * and then the epilogue (cpu_epilogue.c). The tensor cores' order and roundings are not imitated, nor that F16 rounds on the way.
 * With JG_MATH_FLUSH each of these operations flushes its operands and its result.
 * A tile of sums is kept on the stack; blocks of A and B are widened and laid out beside it, so that types,
 * ops, leading dimensions and scales of weights matter only while loading, and the multiplying loops are the same for all.
 * No sum of products is written with + but where it is meant to be rounded twice, and contraction is off. */
#include "cpu.h"
#include "cpu_elements.h"
#include "cpu_epilogue.h"
#include "cpu_numbers.h"
#include "half.h"

/* Elements. The three blocks of a tile are 16 KiB each: they stay in the first two cache levels. */
enum { TILE_M = 64, TILE_N = 64, TILE_K = 64 };
_Static_assert((int)TILE_N <= (int)CPU_ROW, "a row of a tile is finished in one call");

/* What the multiplying loop holds in registers: 4 x 16 sums are 4 to 16 vector registers, which covers the latency of
 * the fma. Both divide the tile. */
enum { BLOCK_M = 4, BLOCK_N = 16 };

#define TILE(name, element)              \
    typedef struct name {                \
        element acc[TILE_M][TILE_N];     \
        element a[TILE_M][TILE_K];       \
        element b[TILE_K][TILE_N];       \
    } name
TILE(tile, float);
TILE(integer_tile, int32_t);

/* A matrix op(X) of one batch item: element (i, j) is at first + i * row_step + j * col_step. scales and zeros: of weights that
 * have groups along k, a row of them for each group; else null. */
typedef struct view {
    const void *data;
    int64_t first, row_step, col_step;
    jg_type type;
    const uint16_t *scales;
    const int8_t *zeros;
} view;

/* What is the same for all tiles of a product. */
typedef struct job {
    const problem *p;
    const operands *o;
    cpu_epilogue epilogue;
    int64_t depth; /* 0: A and B are not read */
    unsigned mode, flags; /* JG_MATH_ */
} job;

/* Before a loop that gcc would unroll completely, and then not see that it is a few vector instructions. */
#if defined(__GNUC__) && !defined(__clang__)
#define KEEP_LOOP _Pragma("GCC unroll 1")
#else
#define KEEP_LOOP
#endif

/* Adds the products of a depth of `depth` to the sums, by `step` of a, b and acc. Rows and columns are rounded up to whole
 * blocks; what the excess ones hold is never stored. */
#define MULTIPLY(name, tile_type, element, step)                                                        \
    static void name(tile_type *t, int rows, int cols, int depth)                                       \
    {                                                                                                   \
        for (int i = 0; i < rows; i += BLOCK_M) {                                                       \
            for (int j = 0; j < cols; j += BLOCK_N) {                                                   \
                element acc[BLOCK_M][BLOCK_N];                                                          \
                for (int r = 0; r < BLOCK_M; r++)                                                       \
                    for (int s = 0; s < BLOCK_N; s++) acc[r][s] = t->acc[i + r][j + s];                 \
                for (int k = 0; k < depth; k++)                                                         \
                    for (int r = 0; r < BLOCK_M; r++)                                                   \
                        KEEP_LOOP for (int s = 0; s < BLOCK_N; s++)                                     \
                            acc[r][s] = step(t->a[i + r][k], t->b[k][j + s], acc[r][s]);                \
                for (int r = 0; r < BLOCK_M; r++)                                                       \
                    for (int s = 0; s < BLOCK_N; s++) t->acc[i + r][j + s] = acc[r][s];                 \
            }                                                                                           \
        }                                                                                               \
    }

#define STRICT_STEP(a, b, c) ((c) + (a) * (b))
#define STRICT_FLUSH_STEP(a, b, c) cpu_flush_add(c, cpu_flush_mul(a, b))
#define INTEGER_STEP(a, b, c) (int32_t)((uint32_t)(c) + (uint32_t)(a) * (uint32_t)(b))

FOR_EACH_PROCESSOR MULTIPLY(multiply_fused, tile, float, __builtin_fmaf)
FOR_EACH_PROCESSOR MULTIPLY(multiply_strict, tile, float, STRICT_STEP)
FOR_EACH_PROCESSOR MULTIPLY(multiply_integers, integer_tile, int32_t, INTEGER_STEP)
MULTIPLY(multiply_flushed, tile, float, cpu_flush_fma)
MULTIPLY(multiply_strict_flushed, tile, float, STRICT_FLUSH_STEP)

static void multiply(const job *g, tile *t, int rows, int cols, int depth)
{
    const int is_strict = g->mode == JG_MATH_STRICT;
    if (g->flags & JG_MATH_FLUSH) (is_strict ? multiply_strict_flushed : multiply_flushed)(t, rows, cols, depth);
    else (is_strict ? multiply_strict : multiply_fused)(t, rows, cols, depth);
}

/* Turns a row of the integers of weights into (q - zero) * scale, rounded to `other`, the other operand's type. The first is
 * (i, j) of op(X); row_is_k: i counts k, else j does. */
static void scale_weights(const job *g, const view *v, int row_is_k, int64_t i, int64_t j, int count, float *row)
{
    const problem *p = g->p;
    const jg_type other = (jg_type)(row_is_k ? p->type_a : p->type_b);
    const int64_t width = row_is_k ? p->n : p->m;
    for (int s = 0; s < count; s++) {
        const int64_t at = row_is_k ? i / p->group_k * width + j + s : (j + s) / p->group_k * width + i;
        const float whole = row[s] - (v->zeros ? (float)v->zeros[at] : 0.0f);
        const float scale = other == JG_F16 ? half_f16_to_f32(v->scales[at]) : half_bf16_to_f32(v->scales[at]);
        const float weight = g->flags & JG_MATH_FLUSH ? cpu_flush_mul(whole, scale) : whole * scale;
        row[s] = other == JG_F16 ? half_f16_to_f32(half_f32_to_f16(weight)) : half_bf16_to_f32(half_f32_to_bf16(weight));
    }
}

/* Widens rows x cols elements of A or B from (i, j) on into a block whose rows are `width` floats apart. */
static void load(const job *g, const view *v, int is_b, int64_t i, int64_t j, int rows, int cols, float *block, int width)
{
    for (int r = 0; r < rows; r++) {
        float *row = block + r * width;
        cpu_read(v->type, g->flags, v->data, v->first + (i + r) * v->row_step + j * v->col_step, v->col_step, cols, row);
        if (g->mode == JG_MATH_TF32) cpu_round_to_tf32(row, cols);
        if (v->scales) scale_weights(g, v, is_b, i + r, j, cols, row);
    }
}

static void load_integers(const view *v, int64_t i, int64_t j, int rows, int cols, int32_t *block, int width)
{
    for (int r = 0; r < rows; r++)
        cpu_read_integers(v->type, v->data, v->first + (i + r) * v->row_step + j * v->col_step, v->col_step, cols,
                          block + r * width);
}

static int clip(int64_t left, int most)
{
    return left < most ? (int)left : most;
}

/* Computes the tile of C at (i, j). */
static void compute_tile(const job *g, const view *a, const view *b, int64_t item, int64_t i, int64_t j, tile *t)
{
    const int rows = clip(g->p->m - i, TILE_M), cols = clip(g->p->n - j, TILE_N);
    memset(t->acc, 0, sizeof t->acc);
    for (int64_t k = 0; k < g->depth; k += TILE_K) {
        const int step = clip(g->depth - k, TILE_K);
        load(g, a, 0, i, k, rows, step, t->a[0], TILE_K);
        load(g, b, 1, k, j, step, cols, t->b[0], TILE_N);
        multiply(g, t, rows, cols, step);
    }
    for (int r = 0; r < rows; r++) {
        if (g->mode == JG_MATH_F16)
            for (int s = 0; s < cols; s++) t->acc[r][s] = half_f16_to_f32(half_f32_to_f16(t->acc[r][s]));
        cpu_epilogue_row(&g->epilogue, item, i + r, j, cols, t->acc[r]);
    }
}

static void compute_integer_tile(const job *g, const view *a, const view *b, int64_t item, int64_t i, int64_t j, integer_tile *t)
{
    const int rows = clip(g->p->m - i, TILE_M), cols = clip(g->p->n - j, TILE_N);
    float row[TILE_N];
    memset(t->acc, 0, sizeof t->acc);
    for (int64_t k = 0; k < g->depth; k += TILE_K) {
        const int step = clip(g->depth - k, TILE_K);
        load_integers(a, i, k, rows, step, t->a[0], TILE_K);
        load_integers(b, k, j, step, cols, t->b[0], TILE_N);
        multiply_integers(t, rows, cols, step);
    }
    for (int r = 0; r < rows; r++) {
        if (g->epilogue.is_exact) {
            cpu_epilogue_integers(&g->epilogue, item, i + r, j, cols, t->acc[r]);
        } else {
            for (int s = 0; s < cols; s++) row[s] = (float)t->acc[r][s];
            cpu_epilogue_row(&g->epilogue, item, i + r, j, cols, row);
        }
    }
}

/* op(X) of one batch item. */
static view view_of(const job *g, int is_b, int64_t item)
{
    const problem *p = g->p;
    const int64_t ld = is_b ? p->ldb : p->lda, stride = is_b ? p->stride_b : p->stride_a;
    const int is_turned = (is_b ? p->op_b : p->op_a) == JG_T;
    view v = {is_b ? g->o->b : g->o->a, item * stride, is_turned ? 1 : ld, is_turned ? ld : 1,
              (jg_type)(is_b ? p->type_b : p->type_a), NULL, NULL};
    if (g->depth && p->group_k && problem_is_weights(p, is_b)) {
        const int64_t groups = (p->k + p->group_k - 1) / p->group_k, width = is_b ? p->n : p->m;
        const int64_t first = stride ? item * groups * width : 0;
        v.scales = (const uint16_t *)g->epilogue.fused.group_scales + first;
        if (p->zero_points) v.zeros = g->epilogue.fused.group_zeros + first;
    }
    return v;
}

jg_status cpu_gemm(const problem *p, const operands *o)
{
    if (problem_is_empty(p)) return JG_OK;
    const int is_integer = problem_multiply_type(p) == JG_S8;
    const job g = {p, o, cpu_epilogue_of(p, o), operands_read_ab(o) ? p->k : 0, problem_math_mode(p), p->math & MATH_FLAGS};
    union {
        tile floats;
        integer_tile integers;
    } t;
    memset(&t, 0, sizeof t);
    for (int64_t item = 0; item < p->batch; item++) {
        const view a = view_of(&g, 0, item), b = view_of(&g, 1, item);
        for (int64_t i = 0; i < p->m; i += TILE_M) {
            for (int64_t j = 0; j < p->n; j += TILE_N) {
                if (is_integer) compute_integer_tile(&g, &a, &b, item, i, j, &t.integers);
                else compute_tile(&g, &a, &b, item, i, j, &t.floats);
            }
        }
    }
    return JG_OK;
}
