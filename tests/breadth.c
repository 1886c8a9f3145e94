#include "breadth.h"

#include <string.h>

#define COUNT(x) ((int)(sizeof(x) / sizeof(x)[0]))
#define BIASES (JG_EPILOGUE_BIAS_M | JG_EPILOGUE_BIAS_N)
#define SCALES (JG_EPILOGUE_SCALE | JG_EPILOGUE_SCALE_M | JG_EPILOGUE_SCALE_N)
#define RESIDUALS (JG_EPILOGUE_RESIDUAL | JG_EPILOGUE_RESIDUAL_AFTER)

const jg_type breadth_pairs[BREADTH_PAIRS][2] = {
    {JG_F32, JG_F32},   {JG_F16, JG_F16},   {JG_BF16, JG_BF16}, {JG_S8, JG_S8},     {JG_U8, JG_S8},   {JG_S8, JG_U8},
        {JG_U8, JG_U8},
    {JG_S4, JG_S4},     {JG_F16, JG_S8},    {JG_S8, JG_F16},    {JG_F16, JG_S4},    {JG_S4, JG_F16},  {JG_BF16, JG_S8},
        {JG_S8, JG_BF16},
    {JG_BF16, JG_S4},   {JG_S4, JG_BF16},   {JG_E4M3, JG_E4M3}, {JG_E4M3, JG_E5M2}, {JG_E5M2, JG_E4M3}, {JG_E5M2, JG_E5M2},
};
const char *const breadth_pair_names[BREADTH_PAIRS] = {
    "f32.f32", "f16.f16", "bf16.bf16", "s8.s8",   "u8.s8",   "s8.u8",   "u8.u8",     "s4.s4",     "f16.s8",    "s8.f16",
    "f16.s4",  "s4.f16",  "bf16.s8",   "s8.bf16", "bf16.s4", "s4.bf16", "e4m3.e4m3", "e4m3.e5m2", "e5m2.e4m3", "e5m2.e5m2",
};

/* The factors' levels. */

static const jg_type types_c[] = {JG_DEFAULT_TYPE, JG_F32, JG_F16, JG_BF16, JG_S8, JG_U8, JG_S32, JG_E4M3, JG_E5M2};

/* One; around 32 and 64; primes; thin in one way or another; more than a tile; k odd, 0, and no multiple of a group. */
static const int64_t shapes[][3] = {
    {1, 1, 1},    {31, 33, 32}, {33, 31, 33},  {64, 64, 64}, {63, 65, 63},    {65, 63, 65},  {97, 53, 71},  {1, 80, 96},
    {80, 1, 64},  {40, 48, 1},  {24, 40, 0},   {16, 8, 16},  {2, 3, 5},       {17, 24, 200}, {48, 40, 128}, {136, 144, 48},
    {131, 137, 37}, {7, 264, 40}, {264, 9, 40},  {20, 12, 300},
};

enum { DENSE, MISALIGNED, ODD_ROWS, VIEW, HALF_ALIGNED, ALIGNMENTS };

static const float scalars[][2] = {{1, 0}, {1, 1}, {0.7f, -1.3f}, {-1.9f, 0}, {0.5f, 2}, {0, 0.75f}};

static const uint32_t epilogues[] = {
    0, JG_EPILOGUE_SCALE, JG_EPILOGUE_SCALE_M, JG_EPILOGUE_SCALE_N, JG_EPILOGUE_BIAS_M, JG_EPILOGUE_BIAS_N, JG_EPILOGUE_RESIDUAL,
    JG_EPILOGUE_RESIDUAL_AFTER, JG_EPILOGUE_REQUANTIZE,
    SCALES | BIASES | JG_EPILOGUE_RESIDUAL | JG_EPILOGUE_REQUANTIZE,
    SCALES | BIASES | JG_EPILOGUE_RESIDUAL_AFTER | JG_EPILOGUE_REQUANTIZE,
    JG_EPILOGUE_SCALE_M | JG_EPILOGUE_SCALE_N | JG_EPILOGUE_REQUANTIZE,
    JG_EPILOGUE_SCALE | JG_EPILOGUE_BIAS_N | JG_EPILOGUE_RESIDUAL_AFTER,
    JG_EPILOGUE_SCALE_N | BIASES,
};

static const jg_type types_bias[] = {JG_DEFAULT_TYPE, JG_F32, JG_F16, JG_BF16};

static const uint32_t modes[] = {JG_MATH_DEFAULT, JG_MATH_STRICT, JG_MATH_TF32, JG_MATH_F32_3XTF32, JG_MATH_F16};
static const uint32_t flags[] = {0, JG_MATH_FLUSH, JG_MATH_SANITIZE, JG_MATH_FLUSH | JG_MATH_SANITIZE};

static const uint32_t groups[][2] = {{0, 0}, {32, 0}, {64, 0}, {128, 0}, {32, 1}, {64, 1}, {128, 1}};

enum { ONE, ITEMS, SHARED_A, SHARED_B, GAPS, BATCHES };

/* Of the residual. */
enum { LIKE_C, WIDER, SHARED, RESIDUAL_LAYOUTS };

enum { PAIR, TYPE_C, SHAPE, OPS, ORDER, ALIGNMENT, SCALARS, EPILOGUE, ACTIVATION, TYPE_BIAS, MODE, FLAGS, GROUPS, BATCH, RESIDUAL,
      FILL, FACTORS };

static const pairwise_factor factors[FACTORS] = {
    [PAIR] = {"types of A and B", BREADTH_PAIRS},
    [TYPE_C] = {"type of C", COUNT(types_c)},
    [SHAPE] = {"shape", COUNT(shapes)},
    [OPS] = {"ops", 4},
    [ORDER] = {"order", 2},
    [ALIGNMENT] = {"alignment", ALIGNMENTS},
    [SCALARS] = {"alpha and beta", COUNT(scalars)},
    [EPILOGUE] = {"epilogue", COUNT(epilogues)},
    [ACTIVATION] = {"activation", JG_ACTIVATION_SIGMOID + 1},
    [TYPE_BIAS] = {"type of the bias", COUNT(types_bias)},
    [MODE] = {"math mode", COUNT(modes)},
    [FLAGS] = {"math flags", COUNT(flags)},
    [GROUPS] = {"groups", COUNT(groups)},
    [BATCH] = {"batch", BATCHES},
    [RESIDUAL] = {"residual", RESIDUAL_LAYOUTS},
    [FILL] = {"fill", 2},
};

/* ---- what is allowed ---- */

static int is_integer(jg_type type)
{
    return type == JG_S8 || type == JG_U8 || type == JG_S4;
}

int breadth_has_c(int pair, jg_type type_c)
{
    return type_c != JG_S4 && (type_c != JG_S32 || (is_integer(breadth_pairs[pair][0]) && is_integer(breadth_pairs[pair][1])));
}

static int is_mode_of(uint32_t mode, int pair)
{
    const jg_type a = breadth_pairs[pair][0], b = breadth_pairs[pair][1];
    if (mode == JG_MATH_TF32 || mode == JG_MATH_F32_3XTF32) return a == JG_F32;
    return mode != JG_MATH_F16 || (a == JG_F16 && b == JG_F16);
}

static int is_listed(const char *list, const char *name)
{
    const size_t length = strlen(name);
    for (const char *at = list; at && *at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (strncmp(at, name, length) == 0 && (at[length] == ',' || at[length] == 0)) return 1;
    return 0;
}

static int is_wanted_c(const breadth_limits *limits, jg_type type_c)
{
    static const char *const names[] = {"default", "f32", "f16", "bf16", "s8", "u8", "s4", "s32", "e4m3", "e5m2"};
    return !limits->types_c || is_listed(limits->types_c, names[type_c]);
}

static int is_wanted_pair(const breadth_limits *limits, int pair)
{
    return !limits->types || is_listed(limits->types, breadth_pair_names[pair]);
}

int breadth_is_wanted(const breadth_limits *limits, int pair, jg_type type_c)
{
    return is_wanted_pair(limits, pair) && is_wanted_c(limits, type_c);
}

/* By the header, and so that no factor's level stands where it means nothing. */
static int is_allowed(const void *user, const int *level)
{
    const breadth_limits *limits = user;
    const int pair = level[PAIR], epilogue = level[EPILOGUE];
    if (pair >= 0) {
        const int weights = is_integer(breadth_pairs[pair][0]) != is_integer(breadth_pairs[pair][1]);
        if (!is_wanted_pair(limits, pair)) return 0;
        if (level[TYPE_C] >= 0 && !breadth_has_c(pair, types_c[level[TYPE_C]])) return 0;
        if (level[MODE] >= 0 && !is_mode_of(modes[level[MODE]], pair)) return 0;
        if (level[GROUPS] > 0 && !weights) return 0;
    }
    if (level[TYPE_C] >= 0 && !is_wanted_c(limits, types_c[level[TYPE_C]])) return 0;
    if (epilogue >= 0) {
        if (level[TYPE_BIAS] > 0 && !(epilogues[epilogue] & BIASES)) return 0;
        if (level[RESIDUAL] > 0 && !(epilogues[epilogue] & RESIDUALS)) return 0;
    }
    return !limits->plain ||
        (epilogue <= 0 && level[ACTIVATION] <= 0 && level[MODE] <= 0 && level[FLAGS] <= 0 && level[GROUPS] <= 0);
}

pairwise breadth_make(const breadth_limits *limits)
{
    return pairwise_make(factors, FACTORS, is_allowed, limits);
}

/* ---- problems ---- */

/* The leading dimension of rows of so many elements. */
static int64_t leading(jg_type type, int64_t length, int alignment)
{
    const int s4 = type == JG_S4;
    switch (alignment) {
    case ODD_ROWS: return s4 ? length + 2 + length % 2 : length + 1 + length % 2;
    case VIEW: return (length + 31) / 32 * 32 + 32;
    case HALF_ALIGNED: return length + 4 + (s4 ? length % 2 : 0);
    default: return 0;
    }
}

static void lay_out(jg_problem *p, int alignment, int residual)
{
    const int col_major = p->order == JG_COL_MAJOR;
    p->lda = leading(p->type_a, (p->op_a == JG_T) == col_major ? p->k : p->m, alignment);
    p->ldb = leading(p->type_b, (p->op_b == JG_T) == col_major ? p->n : p->k, alignment);
    p->ldc = leading(p->type_c, col_major ? p->m : p->n, alignment);
    if (residual == WIDER) p->ld_residual = (p->ldc ? p->ldc : col_major ? p->m : p->n) + 3;
}

static int64_t widened(jg_type type, int64_t stride)
{
    return stride + (type == JG_S4 ? 2 : 5);
}

static void make_batch(jg_problem *p, int batch, int residual)
{
    if (batch == ONE) return;
    p->batch = 3;
    reference_pack(p);
    if (batch == SHARED_A) p->stride_a = 0;
    if (batch == SHARED_B) p->stride_b = 0;
    if (batch == GAPS) {
        p->stride_a = widened(p->type_a, p->stride_a);
        p->stride_b = widened(p->type_b, p->stride_b);
        p->stride_c = widened(p->type_c, p->stride_c);
    }
    if (residual == SHARED) p->stride_residual = 0;
}

static size_t misalignment(int alignment)
{
    switch (alignment) {
    case MISALIGNED: return 1; /* by one element of each */
    case VIEW: return 16;
    case HALF_ALIGNED: return 8;
    default: return 0;
    }
}

/* Numbers -3 to 3 times powers of two: exact as long as f16 sums stay below 2048, where that is what sums are kept in. */
static int is_exact(const breadth_row *row)
{
    const jg_problem *p = &row->problem;
    const int halves = (p->math & 15) == JG_MATH_F16 && 9 * p->k > 2048;
    const float a = row->alpha * 4, b = row->beta * 4;
    if (row->fill == REFERENCE_UNIFORM || halves || p->activation >= JG_ACTIVATION_GELU_TANH) return 0;
    return a == (float)(int)a && b == (float)(int)b;
}

/* Where what is denormal in C's type is flushed, rounding may come before or after. */
static int is_strict(const jg_problem *p)
{
    return (p->math & 15) == JG_MATH_STRICT && p->activation < JG_ACTIVATION_GELU_TANH &&
        (!(p->math & JG_MATH_FLUSH) || p->type_c == JG_F32);
}

breadth_row breadth_get(const pairwise *made, size_t number)
{
    const int *level = made->rows + number * FACTORS;
    const int64_t *shape = shapes[level[SHAPE]];
    breadth_row row = {.fill = level[FILL] ? REFERENCE_INTEGERS : REFERENCE_UNIFORM, .misalign = misalignment(level[ALIGNMENT]),
                       .alpha = scalars[level[SCALARS]][0], .beta = scalars[level[SCALARS]][1], .seed = number, .pair =
                           level[PAIR]};
    row.problem = (jg_problem){
        .m = shape[0], .n = shape[1], .k = shape[2],
        .type_a = breadth_pairs[row.pair][0], .type_b = breadth_pairs[row.pair][1], .type_c = types_c[level[TYPE_C]],
        .op_a = (jg_op)(level[OPS] & 1), .op_b = (jg_op)(level[OPS] >> 1), .order = (jg_order)level[ORDER],
        .math = modes[level[MODE]] | flags[level[FLAGS]], .epilogue = epilogues[level[EPILOGUE]], .activation =
            (jg_activation)level[ACTIVATION],
        .type_bias = types_bias[level[TYPE_BIAS]], .group_k = groups[level[GROUPS]][0], .zero_points = groups[level[GROUPS]][1],
    };
    lay_out(&row.problem, level[ALIGNMENT], level[RESIDUAL]);
    make_batch(&row.problem, level[BATCH], level[RESIDUAL]);
    row.exact = is_exact(&row);
    row.strict = is_strict(&row.problem);
    return row;
}

breadth_row breadth_ones(int pair, jg_type type_c)
{
    const int weights = is_integer(breadth_pairs[pair][0]) != is_integer(breadth_pairs[pair][1]);
    return (breadth_row){
        .problem =
            {.m = 35, .n = 37, .k = 67, .type_a = breadth_pairs[pair][0], .type_b = breadth_pairs[pair][1], .type_c = type_c,
             .op_b = JG_T,
                    .group_k = weights ? 32 : 0, .zero_points = weights},
        .fill = REFERENCE_ONES, .alpha = 1, .pair = pair, .exact = 1,
    };
}
