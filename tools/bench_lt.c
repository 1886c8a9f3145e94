/* cuBLASLt through dlopen: see bench_lt.h. */
#include "bench_lt.h"

#include "operands.h"
#include "status.h"

#include <string.h>

#define AT(member) offsetof(bench_lt, member)

static const bench_symbol symbols[] = {
    {AT(create), "cublasLtCreate", 0},
    {AT(destroy), "cublasLtDestroy", 0},
    {AT(get_version), "cublasLtGetVersion", 0},
    {AT(operation_create), "cublasLtMatmulDescCreate", 0},
    {AT(operation_destroy), "cublasLtMatmulDescDestroy", 0},
    {AT(operation_set), "cublasLtMatmulDescSetAttribute", 0},
    {AT(layout_create), "cublasLtMatrixLayoutCreate", 0},
    {AT(layout_destroy), "cublasLtMatrixLayoutDestroy", 0},
    {AT(layout_set), "cublasLtMatrixLayoutSetAttribute", 0},
    {AT(preference_create), "cublasLtMatmulPreferenceCreate", 0},
    {AT(preference_destroy), "cublasLtMatmulPreferenceDestroy", 0},
    {AT(preference_set), "cublasLtMatmulPreferenceSetAttribute", 0},
    {AT(heuristic), "cublasLtMatmulAlgoGetHeuristic", 0},
    {AT(matmul), "cublasLtMatmul", 0},
};

jg_status bench_lt_open(const char *path, bench_lt *lt)
{
    memset(lt, 0, sizeof *lt);
    return bench_cublas_load("cuBLASLt", "libcublasLt", path, symbols, sizeof symbols / sizeof *symbols, lt);
}

jg_status bench_lt_create(bench_lt *lt, uint64_t workspace, size_t workspace_bytes, int sm_target)
{
    const jg_status status = bench_cublas_result("cublasLtCreate", lt->create(&lt->handle));
    if (status != JG_OK) {
        lt->handle = NULL;
        return status;
    }
    lt->version = lt->get_version();
    lt->workspace = (void *)(uintptr_t)workspace;
    lt->workspace_bytes = workspace ? workspace_bytes : 0;
    lt->sm_target = sm_target;
    return JG_OK;
}

/* ---- a product ---- */

static void drop_product(bench_lt *lt)
{
    for (int i = 0; i < 3; i++)
        if (lt->layouts[i]) lt->layout_destroy(lt->layouts[i]);
    if (lt->operation) lt->operation_destroy(lt->operation);
    if (lt->preference) lt->preference_destroy(lt->preference);
    memset(lt->layouts, 0, sizeof lt->layouts);
    lt->operation = lt->preference = NULL;
    lt->count = 0;
}

/* A failed creation must leave nothing to destroy, whatever the library wrote. */
static jg_status made(const char *call, int result, void **descriptor)
{
    if (result != CUBLAS_STATUS_SUCCESS_) *descriptor = NULL;
    return bench_cublas_result(call, result);
}

static jg_status set_operation(bench_lt *lt, int attribute, int32_t value)
{
    return bench_cublas_result("cublasLtMatmulDescSetAttribute",
                               lt->operation_set(lt->operation, attribute, &value, sizeof value));
}

/* The operands change places: column-major, a row-major C = A B is C' = B' A'. */
static jg_status make_operation(bench_lt *lt)
{
    const problem *p = &lt->product;
    RETURN_IF_ERROR(made("cublasLtMatmulDescCreate",
                         lt->operation_create(&lt->operation, lt->arithmetic.compute, lt->arithmetic.scale), &lt->operation));
    RETURN_IF_ERROR(set_operation(lt, CUBLASLT_MATMUL_DESC_TRANSA_, p->op_b == JG_T ? CUBLAS_OP_T_ : CUBLAS_OP_N_));
    RETURN_IF_ERROR(set_operation(lt, CUBLASLT_MATMUL_DESC_TRANSB_, p->op_a == JG_T ? CUBLAS_OP_T_ : CUBLAS_OP_N_));
    return lt->sm_target ? set_operation(lt, CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET_, lt->sm_target) : JG_OK;
}

static jg_status set_layout(bench_lt *lt, void *layout, int attribute, const void *value, size_t bytes)
{
    return bench_cublas_result("cublasLtMatrixLayoutSetAttribute", lt->layout_set(layout, attribute, value, bytes));
}

/* What is a row to us is a column to cuBLAS: `length` elements, one after another, and `count` of them. */
static jg_status make_layout(bench_lt *lt, void **layout, unsigned type, int64_t length, int64_t count, int64_t ld,
                             int64_t stride)
{
    const int32_t batch = (int32_t)lt->product.batch;
    const int result = lt->layout_create(layout, bench_cublas_type(type), (uint64_t)length, (uint64_t)count, ld);
    RETURN_IF_ERROR(made("cublasLtMatrixLayoutCreate", result, layout));
    if (batch == 1) return JG_OK;
    RETURN_IF_ERROR(set_layout(lt, *layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT_, &batch, sizeof batch));
    return set_layout(lt, *layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET_, &stride, sizeof stride);
}

static jg_status make_layouts(bench_lt *lt)
{
    const problem *p = &lt->product;
    const int ta = p->op_a == JG_T, tb = p->op_b == JG_T;
    RETURN_IF_ERROR(make_layout(lt, &lt->layouts[0], p->type_b, tb ? p->k : p->n, tb ? p->n : p->k, p->ldb, p->stride_b));
    RETURN_IF_ERROR(make_layout(lt, &lt->layouts[1], p->type_a, ta ? p->m : p->k, ta ? p->k : p->m, p->lda, p->stride_a));
    return make_layout(lt, &lt->layouts[2], p->type_c, p->n, p->m, p->ldc, p->stride_c);
}

static jg_status set_preference(bench_lt *lt, int attribute, const void *value, size_t bytes)
{
    return bench_cublas_result("cublasLtMatmulPreferenceSetAttribute",
                               lt->preference_set(lt->preference, attribute, value, bytes));
}

/* alignment: what the caller promises of the operands' addresses, bytes; 0 leaves cuBLASLt's own 256. */
static jg_status make_preference(bench_lt *lt, uint32_t alignment)
{
    static const int of_each[] = {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES_, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES_,
                                  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES_, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES_};
    const uint64_t bytes = lt->workspace_bytes;
    RETURN_IF_ERROR(made("cublasLtMatmulPreferenceCreate", lt->preference_create(&lt->preference), &lt->preference));
    RETURN_IF_ERROR(set_preference(lt, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES_, &bytes, sizeof bytes));
    for (size_t i = 0; alignment && i < sizeof of_each / sizeof *of_each; i++)
        RETURN_IF_ERROR(set_preference(lt, of_each[i], &alignment, sizeof alignment));
    return JG_OK;
}

/* Keeps the choices that can be used, in their order. */
static jg_status ask(bench_lt *lt)
{
    int told = 0;
    memset(lt->choices, 0, sizeof lt->choices);
    RETURN_IF_ERROR(bench_cublas_result("cublasLtMatmulAlgoGetHeuristic",
                                        lt->heuristic(lt->handle, lt->operation, lt->layouts[0], lt->layouts[1], lt->layouts[2],
                                                      lt->layouts[2], lt->preference, BENCH_LT_CHOICES, lt->choices, &told)));
    for (int i = 0; i < told && i < BENCH_LT_CHOICES; i++)
        if (lt->choices[i].state == CUBLAS_STATUS_SUCCESS_ && lt->choices[i].workspace_bytes <= lt->workspace_bytes)
            lt->choices[lt->count++] = lt->choices[i];
    if (lt->count == 0) return status_set(JG_ERR_UNSUPPORTED, "cublasLtMatmulAlgoGetHeuristic: no choice for this product");
    return JG_OK;
}

jg_status bench_lt_prepare(bench_lt *lt, const jg_problem *given)
{
    drop_product(lt);
    RETURN_IF_ERROR(problem_canonicalise(given, &lt->product));
    if (problem_is_empty(&lt->product)) return status_set(JG_ERR_UNSUPPORTED, "cuBLASLt takes no empty product");
    jg_status status = bench_cublas_arithmetic_of(&lt->product, 1, &lt->arithmetic);
    if (status == JG_OK) status = make_operation(lt);
    if (status == JG_OK) status = make_layouts(lt);
    if (status == JG_OK) status = make_preference(lt, given->align_bytes);
    if (status == JG_OK) status = ask(lt);
    if (status != JG_OK) drop_product(lt);
    return status;
}

jg_status bench_lt_gemm(bench_lt *lt, int choice, const jg_operands *data)
{
    if (choice < 0 || choice >= lt->count)
        return status_set(JG_ERR_VALUE, "choice %d; cuBLASLt has %d for the prepared product", choice, lt->count);
    const operands o = operands_canonicalise(&lt->product, data);
    const bench_cublas_scalar alpha = bench_cublas_scalar_of(&lt->arithmetic, o.alpha);
    const bench_cublas_scalar beta = bench_cublas_scalar_of(&lt->arithmetic, o.beta);
    void *const layout_c = lt->layouts[2];
    return bench_cublas_result("cublasLtMatmul",
                               lt->matmul(lt->handle, lt->operation, &alpha, o.b, lt->layouts[0], o.a, lt->layouts[1], &beta,
                                          o.c, layout_c, o.c, layout_c, lt->choices[choice].algorithm, lt->workspace,
                                          lt->workspace_bytes, data->stream));
}

void bench_lt_close(bench_lt *lt)
{
    drop_product(lt);
    if (lt->handle) lt->destroy(lt->handle);
    lt->handle = lt->workspace = NULL;
    lt->workspace_bytes = 0;
}
