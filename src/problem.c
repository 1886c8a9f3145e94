/* From the caller's jg_problem to the canonical `problem`: checks every rule of the public header, fills in every
 * default, and turns a column-major product into the row-major product of the transposes, so that the rest of the
 * library knows one layout. An error names the caller's own member, its value, and what would be right. */
#include "problem.h"
#include "hot.h"
#include "status.h"

#include <string.h>

#define SIZE_LIMIT INT64_C(2147483647) /* 2^31 - 1, so that kernels may count in int */
#define ALIGN_LIMIT 4096u
#define ALIGN_USED 16u /* the widest load that kernels use; a stronger promise makes no difference */

/* Its bytes can be a key only if none of them is padding. */
_Static_assert(sizeof(problem) == 112, "struct problem has padding");

int problem_is_empty(const problem *p)
{
    return p->m == 0 || p->n == 0 || p->batch == 0;
}

#define EPILOGUE_ALL 0xffu
#define GROUPS (32u | 64u | 128u)

static int math_is_known(uint32_t math)
{
    return ((math & MATH_MODE) <= JG_MATH_F16) & ((math & ~(MATH_MODE | MATH_FLAGS)) == 0);
}

static int group_is_known(uint32_t group_k)
{
    return ((group_k & ~GROUPS) == 0) & ((group_k & (group_k - 1)) == 0);
}

/* Whether all values are known: what nearly every call comes to, at the price of a few comparisons. */
static int values_are_known(const jg_problem *in)
{
    return ((uint32_t)in->type_a <= LAST_TYPE) & ((uint32_t)in->type_b <= LAST_TYPE) & ((uint32_t)in->type_c <= LAST_TYPE) &
           ((uint32_t)in->op_a <= JG_T) & ((uint32_t)in->op_b <= JG_T) & ((uint32_t)in->order <= JG_COL_MAJOR) &
           ((uint32_t)in->form <= JG_FORM_SPECIALISED) & (in->dynamic <= DYNAMIC_ALL) &
           ((uint32_t)in->compile <= JG_COMPILE_BACKGROUND) & (in->reserved == 0) & (in->align_bytes <= ALIGN_LIMIT) &
           ((in->align_bytes & (in->align_bytes - 1)) == 0) & math_is_known(in->math) & (in->epilogue <= EPILOGUE_ALL) &
           ((uint32_t)in->activation <= JG_ACTIVATION_SIGMOID) & ((uint32_t)in->type_bias <= JG_BF16) &
           group_is_known(in->group_k) & (in->zero_points <= 1);
}

/* Enumerations, flags and the alignment promise: which value is not known, and what would be. */
static jg_status check_values(const jg_problem *in)
{
    if (values_are_known(in)) return JG_OK;
    static const char a_type[] = "JG_F32, JG_F16, JG_BF16, JG_S8, JG_U8, JG_S4, JG_E4M3, JG_E5M2 or JG_DEFAULT_TYPE";
    static const char a_result[] = "JG_F32, JG_F16, JG_BF16, JG_S8, JG_U8, JG_S32, JG_E4M3, JG_E5M2 or JG_DEFAULT_TYPE";
    static const char an_op[] = "JG_N or JG_T";
    const struct {
        const char *member;
        uint32_t value;
        int is_known;
        jg_status status;
        const char *right;
    } rules[] = {
        {"type_a", in->type_a, (uint32_t)in->type_a <= LAST_TYPE, JG_ERR_TYPE, a_type},
        {"type_b", in->type_b, (uint32_t)in->type_b <= LAST_TYPE, JG_ERR_TYPE, a_type},
        {"type_c", in->type_c, (uint32_t)in->type_c <= LAST_TYPE, JG_ERR_TYPE, a_result},
        {"type_bias", in->type_bias, (uint32_t)in->type_bias <= JG_BF16, JG_ERR_TYPE,
         "JG_F32, JG_F16, JG_BF16 or JG_DEFAULT_TYPE"},
        {"op_a", in->op_a, (uint32_t)in->op_a <= JG_T, JG_ERR_VALUE, an_op},
        {"op_b", in->op_b, (uint32_t)in->op_b <= JG_T, JG_ERR_VALUE, an_op},
        {"order", in->order, (uint32_t)in->order <= JG_COL_MAJOR, JG_ERR_VALUE, "JG_ROW_MAJOR or JG_COL_MAJOR"},
        {"form", in->form, (uint32_t)in->form <= JG_FORM_SPECIALISED, JG_ERR_VALUE,
         "JG_FORM_AUTO, JG_FORM_GENERIC or JG_FORM_SPECIALISED"},
        {"dynamic", in->dynamic, in->dynamic <= DYNAMIC_ALL, JG_ERR_VALUE, "any of JG_DYNAMIC_M, _N, _K and _BATCH, or 0"},
        {"compile", in->compile, (uint32_t)in->compile <= JG_COMPILE_BACKGROUND, JG_ERR_VALUE,
         "JG_COMPILE_DEFAULT, JG_COMPILE_WAIT, JG_COMPILE_NEVER or JG_COMPILE_BACKGROUND"},
        {"math", in->math, math_is_known(in->math), JG_ERR_VALUE,
         "JG_MATH_DEFAULT, _TF32, _F32_3XTF32, _STRICT or _F16, and any of JG_MATH_FLUSH and _SANITIZE"},
        {"epilogue", in->epilogue, in->epilogue <= EPILOGUE_ALL, JG_ERR_VALUE, "JG_EPILOGUE_ flags, or 0"},
        {"activation", in->activation, (uint32_t)in->activation <= JG_ACTIVATION_SIGMOID, JG_ERR_VALUE,
         "JG_ACTIVATION_NONE, _RELU, _RELU6, _CLAMP, _GELU_TANH, _GELU_ERF, _SILU or _SIGMOID"},
        {"group_k", in->group_k, group_is_known(in->group_k), JG_ERR_VALUE, "32, 64 or 128, or 0"},
        {"zero_points", in->zero_points, in->zero_points <= 1, JG_ERR_VALUE, "0 or 1"},
        {"reserved", in->reserved, in->reserved == 0, JG_ERR_VALUE, "0 (zero-initialise the struct)"},
    };
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (!rules[i].is_known)
            return status_set(rules[i].status, "%s = %u is not a known value; use %s", rules[i].member,
                              (unsigned)rules[i].value, rules[i].right);
    return status_set(JG_ERR_VALUE, "align_bytes = %u must be a power of two up to %u, or 0 for %u",
                      (unsigned)in->align_bytes, ALIGN_LIMIT, ALIGN_USED);
}

/* Groups are the weights'. */
static jg_status resolve_groups(const jg_problem *in, problem *p)
{
    const int has_weights = problem_is_weights(p, 0) || problem_is_weights(p, 1);
    const char *a = type_name((jg_type)p->type_a), *b = type_name((jg_type)p->type_b);
    if (in->group_k && !has_weights)
        return status_set(JG_ERR_TYPE,
                          "group_k = %u is for f16 or bf16 x s8 or s4, not for %s x %s; nearest that works: group_k = 0, and "
                          "JG_EPILOGUE_SCALE_N or _SCALE_M",
                          (unsigned)in->group_k, a, b);
    if (in->zero_points && !in->group_k)
        return status_set(JG_ERR_VALUE, "zero_points = 1 without groups, as group_k = 0; nearest that works: %s",
                          has_weights ? "group_k = 32, 64 or 128" : "zero_points = 0");
    p->group_k = (uint8_t)in->group_k;
    p->zero_points = (uint8_t)in->zero_points;
    return JG_OK;
}

/* How sums are made and what is fused in: copied, or refused with what would work. */
static jg_status resolve_fusion(const jg_problem *in, problem *p)
{
    const uint32_t both = JG_EPILOGUE_RESIDUAL | JG_EPILOGUE_RESIDUAL_AFTER;
    const int has_bias = (in->epilogue & (JG_EPILOGUE_BIAS_M | JG_EPILOGUE_BIAS_N)) != 0;
    p->math = (uint8_t)in->math;
    RETURN_IF_ERROR(problem_check_math(p));
    if ((in->epilogue & both) == both)
        return status_set(JG_ERR_VALUE,
                          "epilogue = %u has JG_EPILOGUE_RESIDUAL and JG_EPILOGUE_RESIDUAL_AFTER; nearest that works: one of the "
                          "two",
                          (unsigned)in->epilogue);
    p->epilogue = (uint8_t)in->epilogue;
    p->activation = (uint8_t)in->activation;
    p->type_bias = has_bias ? (uint8_t)(in->type_bias ? in->type_bias : JG_F32) : 0;
    return resolve_groups(in, p);
}

static int sizes_are_in_range(const jg_problem *in)
{
    return ((uint64_t)in->m <= SIZE_LIMIT) & ((uint64_t)in->n <= SIZE_LIMIT) & ((uint64_t)in->k <= SIZE_LIMIT) &
           ((uint64_t)in->batch <= SIZE_LIMIT) & (in->stride_a >= 0) & (in->stride_b >= 0) & (in->stride_c >= 0) &
           (in->stride_residual >= 0);
}

static jg_status check_sizes(const jg_problem *in)
{
    if (sizes_are_in_range(in)) return JG_OK;
    const struct {
        const char *member;
        int64_t value, last;
    } rules[] = {
        {"m", in->m, SIZE_LIMIT},
        {"n", in->n, SIZE_LIMIT},
        {"k", in->k, SIZE_LIMIT},
        {"batch", in->batch, SIZE_LIMIT},
        {"stride_a", in->stride_a, INT64_MAX},
        {"stride_b", in->stride_b, INT64_MAX},
        {"stride_c", in->stride_c, INT64_MAX},
        {"stride_residual", in->stride_residual, INT64_MAX},
    };
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (rules[i].value < 0 || rules[i].value > rules[i].last)
            return status_set(JG_ERR_SIZE, "%s = %lld is out of range; it must be 0 to %lld", rules[i].member,
                              (long long)rules[i].value, (long long)rules[i].last);
    return JG_OK;
}

/* Copies sizes and layout; of a single item, or none, no stride has a meaning. */
static void copy_layout(const jg_problem *in, problem *p)
{
    const int strided = in->stride_a || in->stride_b || in->stride_c || (problem_has_residual(p) && in->stride_residual);
    p->m = in->m;
    p->n = in->n;
    p->k = in->k;
    p->batch = in->batch == 0 && !strided ? 1 : in->batch;
    p->lda = in->lda;
    p->ldb = in->ldb;
    p->ldc = in->ldc;
    if (problem_has_residual(p)) p->ld_residual = in->ld_residual;
    if (p->batch > 1) {
        p->stride_a = in->stride_a;
        p->stride_b = in->stride_b;
        p->stride_c = in->stride_c;
        if (problem_has_residual(p)) p->stride_residual = in->stride_residual;
    }
    p->op_a = (uint8_t)in->op_a;
    p->op_b = (uint8_t)in->op_b;
    p->form = (uint8_t)in->form;
    p->dynamic = (uint8_t)in->dynamic;
}

/* The promise holds for all three pointers. Each is aligned to its own element anyway, so the promise is never below
 * the smallest element; the larger elements of a mixed problem are not promised for the smaller ones' pointers. */
static uint8_t resolve_align(const jg_problem *in, const problem *p)
{
    uint32_t align = in->align_bytes == 0 || in->align_bytes > ALIGN_USED ? ALIGN_USED : in->align_bytes;
    const size_t smallest = problem_smallest_element(p);
    return (uint8_t)(align < smallest ? smallest : align);
}

/* A pair of flags, for M and for N, with the two changed places. */
static unsigned turned(unsigned flags, unsigned m, unsigned n)
{
    return (flags & ~(m | n)) | (flags & m ? n : 0) | (flags & n ? m : 0);
}

uint8_t problem_transposed_dynamic(uint8_t dynamic)
{
    return (uint8_t)turned(dynamic, JG_DYNAMIC_M, JG_DYNAMIC_N);
}

uint8_t problem_transposed_epilogue(uint8_t epilogue)
{
    const unsigned scales = turned(epilogue, JG_EPILOGUE_SCALE_M, JG_EPILOGUE_SCALE_N);
    return (uint8_t)turned(scales, JG_EPILOGUE_BIAS_M, JG_EPILOGUE_BIAS_N);
}

#define SWAP(type, x, y) \
    do {                 \
        type swap_ = x;  \
        x = y;           \
        y = swap_;       \
    } while (0)

/* Read as row-major, a column-major matrix is its transpose, and C' = op(B)' op(A)'. The transposes of the operands
 * are already in the reading, so B's op letter goes with B and stays what it was. */
static void transpose(problem *p)
{
    SWAP(int64_t, p->m, p->n);
    SWAP(int64_t, p->lda, p->ldb);
    SWAP(int64_t, p->stride_a, p->stride_b);
    SWAP(uint8_t, p->type_a, p->type_b);
    SWAP(uint8_t, p->op_a, p->op_b);
    p->dynamic = problem_transposed_dynamic(p->dynamic);
    p->epilogue = problem_transposed_epilogue(p->epilogue);
    p->swapped = !p->swapped;
}

/* One matrix as it lies in memory: `rows` rows of `cols` elements, under the caller's name. */
typedef struct stored {
    const char *name; /* "a", "b", "c" or "_residual", as after ld */
    const char *what; /* "A", "B", "C" or "the residual" */
    uint8_t type;
    int64_t rows, cols, stride;
    int64_t *ld;
} stored;

/* Rows and items of s4 begin at bytes. */
static jg_status check_even(const stored *x, int64_t batch)
{
    const int odd_ld = *x->ld % 2 != 0, odd_stride = batch > 1 && x->stride % 2 != 0;
    if (x->type != JG_S4 || !(odd_ld || odd_stride)) return JG_OK;
    const long long value = odd_ld ? *x->ld : x->stride;
    return status_set(odd_ld ? JG_ERR_LEADING_DIMENSION : JG_ERR_SIZE,
                      "%s%s = %lld is odd, and %s is of s4, two elements in a byte; use an even number, e.g. %lld",
                      odd_ld ? "ld" : "stride_", x->name, value, x->what, value < INT64_MAX ? value + 1 : value - 1);
}

/* Fills in the leading dimension, or checks the given one. */
static jg_status resolve_ld(const stored *x, int swapped, int64_t batch)
{
    int64_t least = x->cols > 0 ? x->cols : 1;
    if (*x->ld == 0) *x->ld = x->type == JG_S4 ? least + least % 2 : least;
    if (*x->ld < least)
        return status_set(JG_ERR_LEADING_DIMENSION,
                          "ld%s = %lld is too small; a %s of %s as stored has %lld elements; use %lld or more, or 0",
                          x->name, (long long)*x->ld, swapped ? "column" : "row", x->what, (long long)x->cols, (long long)least);
    return check_even(x, batch);
}

/* Items of C must not overlap: they are written independently of each other. */
static jg_status check_overlap(const problem *p)
{
    int64_t least;
    if (p->batch <= 1) return JG_OK;
    if (__builtin_mul_overflow(p->m, p->ldc, &least)) least = INT64_MAX;
    if (p->stride_c < least)
        return status_set(JG_ERR_SIZE,
                          "stride_c = %lld makes the %lld items of C overlap; it must be at least %c * ldc = %lld",
                          (long long)p->stride_c, (long long)p->batch, p->swapped ? 'n' : 'm', (long long)least);
    return JG_OK;
}

/* The end of the last item, in bytes, must be an int64_t, so that no kernel's offset can overflow. */
static jg_status check_extent(const stored *x, int64_t batch)
{
    int64_t steps = x->rows > 0 ? x->rows - 1 : 0, items = batch > 0 ? batch - 1 : 0;
    int64_t last_row, last_item, elements, bytes;
    int overflow = __builtin_mul_overflow(steps, *x->ld, &last_row);
    overflow |= __builtin_mul_overflow(items, x->stride, &last_item);
    overflow |= __builtin_add_overflow(last_row, last_item, &elements);
    overflow |= __builtin_add_overflow(elements, x->cols, &elements);
    overflow |= __builtin_mul_overflow(elements, (int64_t)type_bytes(x->type), &bytes);
    if (overflow)
        return status_set(JG_ERR_OVERFLOW,
                          "%s ends beyond 2^63 - 1 bytes: ld%s = %lld, stride%s%s = %lld, batch = %lld; reduce them",
                          x->what, x->name, (long long)*x->ld, x->name[0] == '_' ? "" : "_", x->name, (long long)x->stride,
                          (long long)batch);
    return JG_OK;
}

/* The same of the weights' scales, each of two bytes. */
static jg_status check_groups_extent(const problem *p)
{
    if (!p->group_k) return JG_OK;
    const int of_b = problem_is_weights(p, 1);
    const int64_t across = of_b ? p->n : p->m, groups = p->k / p->group_k + (p->k % p->group_k != 0);
    const int64_t items = (of_b ? p->stride_b : p->stride_a) ? p->batch : 1;
    int64_t elements, bytes; /* of one item: below 2^26 * 2^31 */
    int overflow = __builtin_mul_overflow(groups * across, items, &elements);
    overflow |= __builtin_mul_overflow(elements, 2, &bytes);
    if (overflow)
        return status_set(JG_ERR_OVERFLOW,
                          "group_scales end beyond 2^63 - 1 bytes: group_k = %u, k = %lld, %c = %lld, batch = %lld; reduce them",
                          p->group_k, (long long)p->k, of_b != p->swapped ? 'n' : 'm', (long long)across, (long long)p->batch);
    return JG_OK;
}

/* Leading dimensions and extents of a row-major problem. */
static jg_status resolve_layout(problem *p)
{
    static const char *const names[] = {"a", "b"}, *const whats[] = {"A", "B"};
    const int ta = p->op_a == JG_T, tb = p->op_b == JG_T, x = p->swapped;
    const stored matrices[4] = {
        {names[x], whats[x], p->type_a, ta ? p->k : p->m, ta ? p->m : p->k, p->stride_a, &p->lda},
        {names[!x], whats[!x], p->type_b, tb ? p->n : p->k, tb ? p->k : p->n, p->stride_b, &p->ldb},
        {"c", "C", p->type_c, p->m, p->n, p->stride_c, &p->ldc},
        {"_residual", "the residual", p->type_c, p->m, p->n, p->stride_residual, &p->ld_residual},
    };
    const int count = problem_has_residual(p) ? 4 : 3;
    for (int i = 0; i < count; i++) {
        if (i == 3 && p->ld_residual == 0) p->ld_residual = p->ldc;
        RETURN_IF_ERROR(resolve_ld(&matrices[i], p->swapped, p->batch));
    }
    RETURN_IF_ERROR(check_overlap(p));
    for (int i = 0; i < count; i++) RETURN_IF_ERROR(check_extent(&matrices[i], p->batch));
    return check_groups_extent(p);
}

jg_status problem_canonicalise(const jg_problem *in, problem *out)
{
    problem p;
    memset(&p, 0, sizeof p);
    if (!in) return status_set(JG_ERR_NULL, "problem is null; pass a jg_problem");
    RETURN_IF_ERROR(check_values(in));
    RETURN_IF_ERROR(problem_resolve_types(in, &p));
    RETURN_IF_ERROR(resolve_fusion(in, &p));
    RETURN_IF_ERROR(check_sizes(in));
    copy_layout(in, &p);
    p.align_bytes = resolve_align(in, &p);
    if (in->order == JG_COL_MAJOR) transpose(&p);
    RETURN_IF_ERROR(resolve_layout(&p));
    memcpy(out, &p, sizeof p);
    return JG_OK;
}

jg_problem problem_as_given(const problem *canonical)
{
    problem p = *canonical;
    if (p.swapped) transpose(&p);
    return (jg_problem){
        .m = p.m, .n = p.n, .k = p.k, .batch = p.batch,
        .type_a = (jg_type)p.type_a, .type_b = (jg_type)p.type_b, .type_c = (jg_type)p.type_c,
        .op_a = (jg_op)p.op_a, .op_b = (jg_op)p.op_b, .order = canonical->swapped ? JG_COL_MAJOR : JG_ROW_MAJOR,
        .form = (jg_form)p.form, .lda = p.lda, .ldb = p.ldb, .ldc = p.ldc,
        .stride_a = p.stride_a, .stride_b = p.stride_b, .stride_c = p.batch ? p.stride_c : 1, /* see copy_layout */
        .align_bytes = p.align_bytes, .dynamic = p.dynamic, .math = p.math, .epilogue = p.epilogue,
        .activation = (jg_activation)p.activation, .type_bias = (jg_type)p.type_bias, .group_k = p.group_k,
        .zero_points = p.zero_points, .ld_residual = p.ld_residual, .stride_residual = p.stride_residual,
    };
}
