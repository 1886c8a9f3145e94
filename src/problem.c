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
_Static_assert(sizeof(problem) == 96, "struct problem has padding");

/* By jg_type. */
static const struct {
    const char *name;
    size_t bytes;
} types[] = {[JG_F32] = {"f32", 4}, [JG_F16] = {"f16", 2}, [JG_BF16] = {"bf16", 2}};

/* The supported combinations, A x B -> C. */
static const uint8_t combinations[][3] = {
    {JG_F32, JG_F32, JG_F32},
    {JG_F16, JG_F16, JG_F16},
    {JG_F16, JG_F16, JG_F32},
    {JG_F16, JG_F16, JG_BF16},
    {JG_BF16, JG_BF16, JG_BF16},
    {JG_BF16, JG_BF16, JG_F32},
    {JG_BF16, JG_BF16, JG_F16},
};
#define COMBINATIONS (sizeof combinations / sizeof combinations[0])

HOT size_t type_bytes(jg_type type)
{
    return (unsigned)type < sizeof types / sizeof types[0] ? types[type].bytes : 0;
}

const char *type_name(jg_type type)
{
    return type_bytes(type) ? types[type].name : "?";
}

int problem_is_empty(const problem *p)
{
    return p->m == 0 || p->n == 0 || p->batch == 0;
}

/* Whether all values are known: what nearly every call comes to, at the price of a few comparisons. */
static int values_are_known(const jg_problem *in)
{
    return ((uint32_t)in->type_a <= JG_BF16) & ((uint32_t)in->type_b <= JG_BF16) & ((uint32_t)in->type_c <= JG_BF16) &
           ((uint32_t)in->op_a <= JG_T) & ((uint32_t)in->op_b <= JG_T) & ((uint32_t)in->order <= JG_COL_MAJOR) &
           ((uint32_t)in->form <= JG_FORM_SPECIALISED) & (in->dynamic <= DYNAMIC_ALL) &
           ((uint32_t)in->compile <= JG_COMPILE_BACKGROUND) & (in->reserved == 0) & (in->align_bytes <= ALIGN_LIMIT) &
           ((in->align_bytes & (in->align_bytes - 1)) == 0);
}

/* Enumerations, flags and the alignment promise: which value is not known, and what would be. */
static jg_status check_values(const jg_problem *in)
{
    if (values_are_known(in)) return JG_OK;
    static const char a_type[] = "JG_F32, JG_F16, JG_BF16 or JG_DEFAULT_TYPE", an_op[] = "JG_N or JG_T";
    const struct {
        const char *member;
        uint32_t value, last;
        jg_status status;
        const char *right;
    } rules[] = {
        {"type_a", in->type_a, JG_BF16, JG_ERR_TYPE, a_type},
        {"type_b", in->type_b, JG_BF16, JG_ERR_TYPE, a_type},
        {"type_c", in->type_c, JG_BF16, JG_ERR_TYPE, a_type},
        {"op_a", in->op_a, JG_T, JG_ERR_VALUE, an_op},
        {"op_b", in->op_b, JG_T, JG_ERR_VALUE, an_op},
        {"order", in->order, JG_COL_MAJOR, JG_ERR_VALUE, "JG_ROW_MAJOR or JG_COL_MAJOR"},
        {"form", in->form, JG_FORM_SPECIALISED, JG_ERR_VALUE, "JG_FORM_AUTO, JG_FORM_GENERIC or JG_FORM_SPECIALISED"},
        {"dynamic", in->dynamic, DYNAMIC_ALL, JG_ERR_VALUE, "any of JG_DYNAMIC_M, _N, _K and _BATCH, or 0"},
        {"compile", in->compile, JG_COMPILE_BACKGROUND, JG_ERR_VALUE,
         "JG_COMPILE_DEFAULT, JG_COMPILE_WAIT, JG_COMPILE_NEVER or JG_COMPILE_BACKGROUND"},
        {"reserved", in->reserved, 0, JG_ERR_VALUE, "0 (zero-initialise the struct)"},
    };
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (rules[i].value > rules[i].last)
            return status_set(rules[i].status, "%s = %u is not a known value; use %s", rules[i].member,
                              (unsigned)rules[i].value, rules[i].right);
    if (in->align_bytes > ALIGN_LIMIT || (in->align_bytes & (in->align_bytes - 1)) != 0)
        return status_set(JG_ERR_VALUE, "align_bytes = %u must be a power of two up to %u, or 0 for %u",
                          (unsigned)in->align_bytes, ALIGN_LIMIT, ALIGN_USED);
    return JG_OK;
}

/* Fills in the types, or names the supported combination that differs in the fewest places. */
static jg_status resolve_types(const jg_problem *in, problem *p)
{
    const jg_type a = in->type_a ? in->type_a : JG_F32;
    const jg_type b = in->type_b ? in->type_b : a, c = in->type_c ? in->type_c : a;
    const uint8_t asked[3] = {(uint8_t)a, (uint8_t)b, (uint8_t)c};
    size_t nearest = 0;
    int fewest = 4;
    for (size_t i = 0; i < COMBINATIONS && fewest; i++) {
        int differing = 0;
        for (int j = 0; j < 3; j++) differing += combinations[i][j] != asked[j];
        if (differing < fewest) {
            fewest = differing;
            nearest = i;
        }
    }
    const uint8_t *other = combinations[nearest];
    if (fewest > 0)
        return status_set(JG_ERR_TYPE,
                          "no kernels for type_a x type_b -> type_c = %s x %s -> %s; nearest that works: %s x %s -> %s",
                          type_name(a), type_name(b), type_name(c), type_name(other[0]), type_name(other[1]),
                          type_name(other[2]));
    p->type_a = asked[0];
    p->type_b = asked[1];
    p->type_c = asked[2];
    return JG_OK;
}

static int sizes_are_in_range(const jg_problem *in)
{
    return ((uint64_t)in->m <= SIZE_LIMIT) & ((uint64_t)in->n <= SIZE_LIMIT) & ((uint64_t)in->k <= SIZE_LIMIT) &
           ((uint64_t)in->batch <= SIZE_LIMIT) & (in->stride_a >= 0) & (in->stride_b >= 0) & (in->stride_c >= 0);
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
    int strided = in->stride_a != 0 || in->stride_b != 0 || in->stride_c != 0;
    p->m = in->m;
    p->n = in->n;
    p->k = in->k;
    p->batch = in->batch == 0 && !strided ? 1 : in->batch;
    p->lda = in->lda;
    p->ldb = in->ldb;
    p->ldc = in->ldc;
    if (p->batch > 1) {
        p->stride_a = in->stride_a;
        p->stride_b = in->stride_b;
        p->stride_c = in->stride_c;
    }
    p->op_a = (uint8_t)in->op_a;
    p->op_b = (uint8_t)in->op_b;
    p->form = (uint8_t)in->form;
    /* To a generic kernel every dimension is one that changes. */
    p->dynamic = in->form == JG_FORM_GENERIC ? 0 : (uint8_t)in->dynamic;
}

/* The promise holds for all three pointers. Each is aligned to its own element anyway, so the promise is never below
 * the smallest element; the larger elements of a mixed problem are not promised for the smaller ones' pointers. */
static uint8_t resolve_align(const jg_problem *in, const problem *p)
{
    uint32_t align = in->align_bytes == 0 || in->align_bytes > ALIGN_USED ? ALIGN_USED : in->align_bytes;
    size_t smallest = type_bytes(p->type_a);
    if (type_bytes(p->type_b) < smallest) smallest = type_bytes(p->type_b);
    if (type_bytes(p->type_c) < smallest) smallest = type_bytes(p->type_c);
    return (uint8_t)(align < smallest ? smallest : align);
}

uint8_t problem_transposed_dynamic(uint8_t dynamic)
{
    const unsigned others = dynamic & ~(JG_DYNAMIC_M | JG_DYNAMIC_N);
    return (uint8_t)(others | (dynamic & JG_DYNAMIC_M ? JG_DYNAMIC_N : 0) | (dynamic & JG_DYNAMIC_N ? JG_DYNAMIC_M : 0));
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
    p->swapped = !p->swapped;
}

/* One matrix as it lies in memory: `rows` rows of `cols` elements, under the caller's name. */
typedef struct stored {
    char name; /* 'a', 'b' or 'c' */
    uint8_t type;
    int64_t rows, cols, stride;
    int64_t *ld;
} stored;

/* Fills in the leading dimension, or checks the given one. */
static jg_status resolve_ld(const stored *x, int swapped)
{
    int64_t least = x->cols > 0 ? x->cols : 1;
    if (*x->ld == 0) *x->ld = least;
    if (*x->ld < least)
        return status_set(JG_ERR_LEADING_DIMENSION,
                          "ld%c = %lld is too small; a %s of %c as stored has %lld elements; use %lld or more, or 0",
                          x->name, (long long)*x->ld, swapped ? "column" : "row", x->name - 'a' + 'A',
                          (long long)x->cols, (long long)least);
    return JG_OK;
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
                          "%c ends beyond 2^63 - 1 bytes: ld%c = %lld, stride_%c = %lld, batch = %lld; reduce them",
                          x->name - 'a' + 'A', x->name, (long long)*x->ld, x->name, (long long)x->stride,
                          (long long)batch);
    return JG_OK;
}

/* Leading dimensions and extents of a row-major problem. */
static jg_status resolve_layout(problem *p)
{
    const char name_a = p->swapped ? 'b' : 'a', name_b = p->swapped ? 'a' : 'b';
    const int ta = p->op_a == JG_T, tb = p->op_b == JG_T;
    const stored matrices[3] = {
        {name_a, p->type_a, ta ? p->k : p->m, ta ? p->m : p->k, p->stride_a, &p->lda},
        {name_b, p->type_b, tb ? p->n : p->k, tb ? p->k : p->n, p->stride_b, &p->ldb},
        {'c', p->type_c, p->m, p->n, p->stride_c, &p->ldc},
    };
    for (int i = 0; i < 3; i++) RETURN_IF_ERROR(resolve_ld(&matrices[i], p->swapped));
    RETURN_IF_ERROR(check_overlap(p));
    for (int i = 0; i < 3; i++) RETURN_IF_ERROR(check_extent(&matrices[i], p->batch));
    return JG_OK;
}

jg_status problem_canonicalise(const jg_problem *in, problem *out)
{
    problem p;
    memset(&p, 0, sizeof p);
    if (!in) return status_set(JG_ERR_NULL, "problem is null; pass a jg_problem");
    RETURN_IF_ERROR(check_values(in));
    RETURN_IF_ERROR(resolve_types(in, &p));
    RETURN_IF_ERROR(check_sizes(in));
    copy_layout(in, &p);
    p.align_bytes = resolve_align(in, &p);
    if (in->order == JG_COL_MAJOR) transpose(&p);
    RETURN_IF_ERROR(resolve_layout(&p));
    memcpy(out, &p, sizeof p);
    return JG_OK;
}
