/* The cuBLAS and cuBLASLt of the tests: see fake_cublas.h. Its numbers are written down once more here, so that a wrong one in
 * what is tested does not agree with itself. */
#include "fake_cublas.h"
#include "half.h"

#include <math.h>

#define EXPORT __attribute__((visibility("default")))
#define ENTRY(result, name, parameters) \
    EXPORT result name parameters;      \
    EXPORT result name parameters
#define RETURN_IF_REFUSED()                        \
    do {                                           \
        const int status_ = refusal_of(__func__);  \
        if (status_ != SUCCESS) return status_;    \
    } while (0)

enum { SUCCESS = 0, ALLOC_FAILED = 3, INVALID_VALUE = 7, NOT_SUPPORTED = 15 };
enum { F32 = 0, F16 = 2, BF16 = 14, S8 = 3, S32 = 10, E4M3 = 28, E5M2 = 29 };
enum { COMPUTE_16F = 64, COMPUTE_32F = 68, COMPUTE_32I = 72, COMPUTE_TF32 = 77, GEMM_DEFAULT = -1, DEFAULT_MATH = 0 };
enum { LAYOUT_BATCH_COUNT = 5, LAYOUT_BATCH_OFFSET = 6, DESC_TRANSA = 3, DESC_TRANSB = 4, DESC_SM_TARGET = 15, PREF_WORKSPACE = 1,
       PREF_ALIGNMENT_A = 5, PREF_ALIGNMENT_D = 8 };

#define ALGORITHM UINT64_C(0xa190) /* marks the choices that this library has told of */

extern fake_cublas fake_cublas_controls;
EXPORT fake_cublas fake_cublas_controls;
static fake_cublas *const fake = &fake_cublas_controls;

static int refusal_of(const char *call)
{
    if (!fake->refuse || strcmp(fake->refuse, call) != 0) return SUCCESS;
    return fake->passes > 0 && fake->passes-- > 0 ? SUCCESS : fake->status;
}

/* ---- products ---- */

/* Column-major: C = alpha op(A) op(B) + beta C. */
typedef struct matrix {
    int type;
    int64_t ld, stride;
} matrix;

typedef struct product {
    int op_a, op_b, batch;
    int64_t m, n, k;
    matrix a, b, c;
    int compute, is_lt;
} product;

/* 8-bit floats: no special values here. */
static float load_byte(unsigned bits, int digits, int bias)
{
    const int exponent = (int)(bits & 0x7f) >> digits, digit = (int)(bits & ((1u << digits) - 1));
    const float value = exponent ? ldexpf((float)(digit + (1 << digits)), exponent - bias - digits)
                                 : ldexpf((float)digit, 1 - bias - digits);
    return bits & 0x80 ? -value : value;
}

static float load(const void *base, int type, int64_t index)
{
    if (type == F32) return ((const float *)base)[index];
    if (type == S8) return (float)((const int8_t *)base)[index];
    if (type == S32) return (float)((const int32_t *)base)[index];
    if (type == E4M3) return load_byte(((const uint8_t *)base)[index], 3, 7);
    if (type == E5M2) return load_byte(((const uint8_t *)base)[index], 2, 15);
    const uint16_t bits = ((const uint16_t *)base)[index];
    return type == F16 ? half_f16_to_f32(bits) : half_bf16_to_f32(bits);
}

static void store(void *base, int type, int64_t index, float value)
{
    if (type == F32) ((float *)base)[index] = value;
    else if (type == S32) ((int32_t *)base)[index] = (int32_t)value;
    else ((uint16_t *)base)[index] = type == F16 ? half_f32_to_f16(value) : half_f32_to_bf16(value);
}

/* The combinations that each arithmetic has; what cuBLAS has no kernels for (f16 to bf16, say) is not left out. */
static int has_types(const product *p)
{
    const int is_f32 = p->a.type == F32 && p->b.type == F32 && p->c.type == F32;
    const int is_f16 = p->a.type == F16 && p->b.type == F16 && p->c.type == F16;
    const int is_s8 = p->a.type == S8 && p->b.type == S8 && p->c.type == S32;
    const int has_e4m3 = (p->a.type == E4M3 && (p->b.type == E4M3 || p->b.type == E5M2)) ||
                         (p->a.type == E5M2 && p->b.type == E4M3);
    if (p->compute == COMPUTE_TF32) return is_f32;
    if (p->compute == COMPUTE_16F) return is_f16;
    if (p->compute == COMPUTE_32I) return is_s8 && p->a.ld % 4 == 0 && p->b.ld % 4 == 0;
    if (p->compute != COMPUTE_32F) return 0;
    if (p->is_lt && has_e4m3)
        return p->op_a && !p->op_b && p->a.ld % 16 == 0 && p->b.ld % 16 == 0 && p->c.type != S8 && p->c.type != S32;
    const int narrow = (p->a.type == F16 || p->a.type == BF16) && (p->c.type == F16 || p->c.type == BF16 || p->c.type == F32);
    return p->a.type == p->b.type && (narrow || (p->a.type == F32 && p->c.type == F32));
}

static int is_valid(const product *p)
{
    const int64_t rows_a = p->op_a ? p->k : p->m, rows_b = p->op_b ? p->n : p->k;
    return p->m >= 0 && p->n >= 0 && p->k >= 0 && p->batch >= 0 && p->op_a >= 0 && p->op_a <= 1 && p->op_b >= 0 && p->op_b <= 1 &&
           p->a.ld >= (rows_a > 1 ? rows_a : 1) && p->b.ld >= (rows_b > 1 ? rows_b : 1) && p->c.ld >= (p->m > 1 ? p->m : 1);
}

static int64_t place(const matrix *x, int item, int64_t row, int64_t column)
{
    return item * x->stride + row + column * x->ld;
}

static int compute(const char *call, const product *p, float alpha, const void *a, const void *b, float beta, void *c)
{
    if (!is_valid(p)) return INVALID_VALUE;
    if (!has_types(p)) return NOT_SUPPORTED;
    for (int item = 0; item < p->batch; item++)
        for (int64_t i = 0; i < p->m; i++)
            for (int64_t j = 0; j < p->n; j++) {
                const int64_t at = place(&p->c, item, i, j);
                float sum = 0;
                for (int64_t l = 0; l < p->k && alpha != 0; l++)
                    sum += load(a, p->a.type, p->op_a ? place(&p->a, item, l, i) : place(&p->a, item, i, l)) *
                           load(b, p->b.type, p->op_b ? place(&p->b, item, j, l) : place(&p->b, item, l, j));
                store(c, p->c.type, at, alpha * sum + (beta == 0 ? 0 : beta * load(c, p->c.type, at)));
            }
    fake->call = call;
    fake->compute = p->compute;
    fake->batch = p->batch;
    fake->products++;
    return SUCCESS;
}

/* ---- handles ---- */

typedef struct handle {
    void *stream, *workspace;
    size_t workspace_bytes;
    int sm_target, math;
} handle;

static int make_handle(void **out)
{
    handle *h = calloc(1, sizeof *h);
    if (!h) return ALLOC_FAILED;
    h->math = DEFAULT_MATH + 1; /* not what it really is, so that it has to be set */
    fake->handles++;
    *out = h;
    return SUCCESS;
}

static int drop_handle(void *h)
{
    free(h);
    fake->handles--;
    return SUCCESS;
}

ENTRY(int, cublasCreate_v2, (void **out))
{
    *out = out; /* what a failure leaves behind is nothing to be used */
    RETURN_IF_REFUSED();
    return make_handle(out);
}

ENTRY(int, cublasDestroy_v2, (void *h)) { return drop_handle(h); }

ENTRY(int, cublasGetVersion_v2, (void *h, int *version))
{
    *version = h ? 990901 : 0;
    return SUCCESS;
}

/* It takes the workspace away, as the real one does. */
ENTRY(int, cublasSetStream_v2, (void *h, void *stream))
{
    RETURN_IF_REFUSED();
    *(handle *)h = (handle){.stream = stream, .sm_target = ((handle *)h)->sm_target, .math = ((handle *)h)->math};
    return SUCCESS;
}

ENTRY(int, cublasSetMathMode, (void *h, int math))
{
    RETURN_IF_REFUSED();
    ((handle *)h)->math = math;
    return SUCCESS;
}

ENTRY(int, cublasSetWorkspace_v2, (void *h, void *workspace, size_t bytes))
{
    RETURN_IF_REFUSED();
    if ((uintptr_t)workspace % 256 != 0) return INVALID_VALUE;
    ((handle *)h)->workspace = workspace;
    ((handle *)h)->workspace_bytes = bytes;
    fake->workspaces++;
    return SUCCESS;
}

#ifndef FAKE_CUBLAS_OLD
ENTRY(int, cublasSetSmCountTarget, (void *h, int count))
{
    RETURN_IF_REFUSED();
    if (count < 0) return INVALID_VALUE;
    ((handle *)h)->sm_target = count;
    return SUCCESS;
}
#endif

/* alpha or beta: of the type that the arithmetic has. */
static float scalar(const void *value, int compute_type)
{
    return load(value, compute_type == COMPUTE_32I ? S32 : compute_type == COMPUTE_16F ? F16 : F32, 0);
}

static int compute_on(const handle *h, const char *call, const product *p, const void *alpha, const void *a, const void *b,
                      const void *beta, void *c, int algorithm)
{
    if (algorithm != GEMM_DEFAULT || h->math != DEFAULT_MATH) return INVALID_VALUE;
    fake->stream = h->stream;
    fake->workspace = h->workspace;
    fake->workspace_bytes = h->workspace_bytes;
    fake->sm_target = h->sm_target;
    fake->choice_used = -1;
    return compute(call, p, scalar(alpha, p->compute), a, b, scalar(beta, p->compute), c);
}

ENTRY(int, cublasGemmEx,
      (void *h, int op_a, int op_b, int m, int n, int k, const void *alpha, const void *a, int type_a, int lda, const void *b,
       int type_b, int ldb, const void *beta, void *c, int type_c, int ldc, int type, int algorithm))
{
    RETURN_IF_REFUSED();
    const product p = {op_a, op_b, 1, m, n, k, {type_a, lda, 0}, {type_b, ldb, 0}, {type_c, ldc, 0}, type, 0};
    return compute_on(h, __func__, &p, alpha, a, b, beta, c, algorithm);
}

ENTRY(int, cublasGemmStridedBatchedEx,
      (void *h, int op_a, int op_b, int m, int n, int k, const void *alpha, const void *a, int type_a, int lda,
       long long stride_a, const void *b, int type_b, int ldb, long long stride_b, const void *beta, void *c, int type_c, int ldc,
       long long stride_c, int batch, int type, int algorithm))
{
    RETURN_IF_REFUSED();
    const product p = {op_a, op_b, batch, m, n, k, {type_a, lda, stride_a}, {type_b, ldb, stride_b}, {type_c, ldc, stride_c},
                       type, 0};
    return compute_on(h, __func__, &p, alpha, a, b, beta, c, algorithm);
}

/* ---- cuBLASLt ---- */

ENTRY(int, cublasLtCreate, (void **out))
{
    *out = out;
    RETURN_IF_REFUSED();
    return make_handle(out);
}

ENTRY(int, cublasLtDestroy, (void *h)) { return drop_handle(h); }
ENTRY(size_t, cublasLtGetVersion, (void)) { return 990902; }

/* Any of the descriptors. */
typedef struct descriptor {
    char kind; /* 'o'peration, 'l'ayout, 'p'reference */
    int32_t op_a, op_b, sm_target, batch;
    int type;             /* of an operation: the arithmetic */
    uint64_t rows, columns;
    int64_t ld, stride;
    uint64_t max_workspace_bytes;
    uint32_t alignments[4];
} descriptor;

static int make_descriptor(void **out, descriptor value)
{
    descriptor *d = malloc(sizeof *d);
    if (!d) return ALLOC_FAILED;
    *d = value;
    *out = d;
    fake->descriptors++;
    return SUCCESS;
}

static int drop_descriptor(void *d, char kind)
{
    if (((descriptor *)d)->kind != kind) return INVALID_VALUE;
    free(d);
    fake->descriptors--;
    return SUCCESS;
}

/* Takes a value only in its own size. */
static int set(void *member, size_t member_bytes, const void *value, size_t bytes)
{
    if (!value || bytes != member_bytes) return INVALID_VALUE;
    memcpy(member, value, bytes);
    return SUCCESS;
}

ENTRY(int, cublasLtMatmulDescCreate, (void **out, int compute_type, int scale_type))
{
    *out = out;
    RETURN_IF_REFUSED();
    const int of_alpha = compute_type == COMPUTE_32I ? S32 : compute_type == COMPUTE_16F ? F16 : F32;
    if (scale_type != of_alpha) return NOT_SUPPORTED;
    return make_descriptor(out, (descriptor){.kind = 'o', .type = compute_type});
}

ENTRY(int, cublasLtMatmulDescDestroy, (void *d)) { return drop_descriptor(d, 'o'); }

ENTRY(int, cublasLtMatmulDescSetAttribute, (void *given, int attribute, const void *value, size_t bytes))
{
    descriptor *d = given;
    RETURN_IF_REFUSED();
    if (d->kind != 'o') return INVALID_VALUE;
    switch (attribute) {
    case DESC_TRANSA: return set(&d->op_a, sizeof d->op_a, value, bytes);
    case DESC_TRANSB: return set(&d->op_b, sizeof d->op_b, value, bytes);
    case DESC_SM_TARGET: return set(&d->sm_target, sizeof d->sm_target, value, bytes);
    default: return INVALID_VALUE;
    }
}

ENTRY(int, cublasLtMatrixLayoutCreate, (void **out, int type, uint64_t rows, uint64_t columns, int64_t ld))
{
    *out = out;
    RETURN_IF_REFUSED();
    return make_descriptor(out, (descriptor){.kind = 'l', .type = type, .rows = rows, .columns = columns, .ld = ld, .batch = 1});
}

ENTRY(int, cublasLtMatrixLayoutDestroy, (void *d)) { return drop_descriptor(d, 'l'); }

ENTRY(int, cublasLtMatrixLayoutSetAttribute, (void *given, int attribute, const void *value, size_t bytes))
{
    descriptor *d = given;
    RETURN_IF_REFUSED();
    if (d->kind != 'l') return INVALID_VALUE;
    switch (attribute) {
    case LAYOUT_BATCH_COUNT: return set(&d->batch, sizeof d->batch, value, bytes);
    case LAYOUT_BATCH_OFFSET: return set(&d->stride, sizeof d->stride, value, bytes);
    default: return INVALID_VALUE;
    }
}

ENTRY(int, cublasLtMatmulPreferenceCreate, (void **out))
{
    *out = out;
    RETURN_IF_REFUSED();
    return make_descriptor(out, (descriptor){.kind = 'p', .alignments = {256, 256, 256, 256}});
}

ENTRY(int, cublasLtMatmulPreferenceDestroy, (void *d)) { return drop_descriptor(d, 'p'); }

ENTRY(int, cublasLtMatmulPreferenceSetAttribute, (void *given, int attribute, const void *value, size_t bytes))
{
    descriptor *d = given;
    RETURN_IF_REFUSED();
    if (d->kind != 'p') return INVALID_VALUE;
    if (attribute == PREF_WORKSPACE) return set(&d->max_workspace_bytes, sizeof d->max_workspace_bytes, value, bytes);
    if (attribute < PREF_ALIGNMENT_A || attribute > PREF_ALIGNMENT_D) return INVALID_VALUE;
    return set(&d->alignments[attribute - PREF_ALIGNMENT_A], sizeof *d->alignments, value, bytes);
}

/* From descriptors, which all have to fit together. */
static int describe(const descriptor *o, const descriptor *a, const descriptor *b, const descriptor *c, product *p)
{
    if (o->kind != 'o' || a->kind != 'l' || b->kind != 'l' || c->kind != 'l') return INVALID_VALUE;
    const uint64_t k = o->op_a ? a->rows : a->columns;
    *p = (product){o->op_a, o->op_b, c->batch, (int64_t)c->rows, (int64_t)c->columns, (int64_t)k,
                   {a->type, a->ld, a->stride}, {b->type, b->ld, b->stride}, {c->type, c->ld, c->stride}, o->type, 1};
    const int fits = (o->op_a ? a->columns : a->rows) == c->rows && (o->op_b ? b->rows : b->columns) == c->columns &&
                     (o->op_b ? b->columns : b->rows) == k && a->batch == c->batch && b->batch == c->batch;
    return !fits || !is_valid(p) ? INVALID_VALUE : k == 0 || !has_types(p) ? NOT_SUPPORTED : SUCCESS;
}

/* As cublasLtMatmulHeuristicResult_t lies in memory. */
typedef struct heuristic_result {
    uint64_t algorithm[8], workspace_bytes;
    int32_t state;
    float waves;
    int32_t reserved[4];
} heuristic_result;
_Static_assert(sizeof(heuristic_result) == 96, "as in cublasLt.h");

ENTRY(int, cublasLtMatmulAlgoGetHeuristic,
      (void *h, void *o, void *a, void *b, void *c, void *d, void *given, int count, void *results, int *told))
{
    const descriptor *preference = given;
    product p;
    RETURN_IF_REFUSED();
    if (!h || c != d || preference->kind != 'p' || count <= 0) return INVALID_VALUE;
    const int status = describe(o, a, b, c, &p);
    if (status != SUCCESS) return status;
    fake->asked = count;
    fake->max_workspace_bytes = preference->max_workspace_bytes;
    memcpy(fake->alignments, preference->alignments, sizeof fake->alignments);
    fake->heuristic_sm_target = ((const descriptor *)o)->sm_target;
    *told = fake->choices < count ? fake->choices : count;
    for (int i = 0; i < *told; i++) {
        const heuristic_result result = {.algorithm = {ALGORITHM, (uint64_t)i, [7] = ~(uint64_t)i},
                                         .workspace_bytes = fake->choice[i].workspace_bytes,
                                         .state = fake->choice[i].state, .waves = 0.5f};
        memcpy((char *)results + (size_t)i * sizeof result, &result, sizeof result);
    }
    return SUCCESS;
}

ENTRY(int, cublasLtMatmul,
      (void *h, void *o, const void *alpha, const void *a, void *layout_a, const void *b, void *layout_b, const void *beta,
       const void *c, void *layout_c, void *d, void *layout_d, const void *algorithm, void *workspace, size_t workspace_bytes,
       void *stream))
{
    uint64_t words[8];
    product p;
    RETURN_IF_REFUSED();
    if (!h || c != d || layout_c != layout_d || (uintptr_t)workspace % 256 != 0) return INVALID_VALUE;
    const int status = describe(o, layout_a, layout_b, layout_c, &p);
    if (status != SUCCESS) return status;
    memcpy(words, algorithm, sizeof words);
    if (words[0] != ALGORITHM || words[1] != ~words[7] || words[1] >= FAKE_CUBLAS_CHOICES ||
        fake->choice[words[1]].workspace_bytes > workspace_bytes)
        return INVALID_VALUE;
    fake->stream = stream;
    fake->workspace = workspace;
    fake->workspace_bytes = workspace_bytes;
    fake->sm_target = ((const descriptor *)o)->sm_target;
    fake->choice_used = (int)words[1];
    return compute(__func__, &p, scalar(alpha, p.compute), a, b, scalar(beta, p.compute), d);
}
