/* What the tests of cuBLAS and of cuBLASLt have in common: the double, products of every kind, and what they are judged by. */
#ifndef JG_TESTS_PEERS_FIXTURE_H
#define JG_TESTS_PEERS_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fake_cublas.h"
#include "reference.h"
#include "status_asserts.h"

#define NEW "libfake_cublas.so"
#define OLD "libfake_cublas_old.so"
#define FAKE_WORKSPACE UINT64_C(0x1000) /* never looked into */
#define FAKE_STREAM ((void *)16)

static fake_cublas *fake;

/* ---- products ---- */

static const jg_type types[][3] = {
    {JG_F32, JG_F32, JG_F32},   {JG_F16, JG_F16, JG_F16},    {JG_F16, JG_F16, JG_F32},   {JG_F16, JG_F16, JG_BF16},
    {JG_BF16, JG_BF16, JG_F16}, {JG_BF16, JG_BF16, JG_BF16}, {JG_BF16, JG_BF16, JG_F32},
};

static const int64_t sizes[][3] = {{1, 1, 1}, {5, 7, 3}, {17, 2, 9}, {1, 13, 16}, {8, 8, 8}, {3, 1, 11}, {4, 31, 2}};

/* Of a matrix as stored, how long its rows are, or its columns if column-major. */
static inline int64_t dense_ld(int64_t rows, int64_t columns, jg_op op, jg_order order)
{
    return (op == JG_T) == (order == JG_COL_MAJOR) ? columns : rows;
}

enum { DENSE, PADDED, BATCHED, PADDED_BATCHED, SHARED_A, SHARED_B, EMPTY_BATCH, LAYOUTS };

/* form: the bits of two ops and an order. The sizes change with the number, and with the round, so that every layout gets all. */
static inline jg_problem make_problem(size_t type, int form, int layout, unsigned number)
{
    const int64_t *s = sizes[(number + number / COUNT(sizes)) % COUNT(sizes)];
    jg_problem p = {.m = s[0], .n = s[1], .k = s[2], .type_a = types[type][0], .type_b = types[type][1], .type_c = types[type][2],
                    .op_a = form & 1 ? JG_T : JG_N, .op_b = form & 2 ? JG_T : JG_N,
                    .order = form & 4 ? JG_COL_MAJOR : JG_ROW_MAJOR};
    if (layout == PADDED || layout == PADDED_BATCHED) {
        p.lda = dense_ld(p.m, p.k, p.op_a, p.order) + 3;
        p.ldb = dense_ld(p.k, p.n, p.op_b, p.order) + 1;
        p.ldc = dense_ld(p.m, p.n, JG_N, p.order) + 5;
    }
    if (layout >= BATCHED) {
        p.batch = layout == EMPTY_BATCH ? 0 : 3;
        reference_pack(&p);
        p.stride_c += layout == PADDED_BATCHED ? 7 : 0;
        p.stride_a = layout == SHARED_A ? 0 : p.stride_a;
        p.stride_b = layout == SHARED_B ? 0 : p.stride_b;
    }
    return p;
}

static const struct { float alpha, beta; int given; } scales[] = {{1, 0, 0}, {-0.5f, 0, 1}, {2, 1, 1}, {0, 0.25f, 1}, {1, -3, 1}};

static inline void check(jg_status (*run)(const jg_problem *, const jg_operands *), const jg_problem *p, unsigned number)
{
    reference ref;
    char text[JG_PROBLEM_TEXT_BYTES];
    const float alpha = scales[number % COUNT(scales)].alpha, beta = scales[number % COUNT(scales)].beta;
    const int given = scales[number % COUNT(scales)].given;
    reference_make(&ref, p, REFERENCE_UNIFORM, 0, number);
    const jg_operands data = {.a = reference_at(&ref.a), .b = reference_at(&ref.b), .c = reference_at(&ref.c),
                              .alpha = given ? &alpha : NULL, .beta = given ? &beta : NULL, .stream = FAKE_STREAM};
    assert_ok(jg_problem_format(p, text, sizeof text, NULL));
    if (run(p, &data) != JG_OK) fail_msg("%s: %s", text, jg_last_error());
    const reference_result result = reference_check(&ref, alpha, beta);
    if (result.failures || result.stray)
        fail_msg("%s alpha %g beta %g: C[%d](%d, %d) is %g, not %g; %d bytes beside C", text, (double)alpha, (double)beta,
                 (int)result.item, (int)result.i, (int)result.j, result.got, result.expected, (int)result.stray);
    reference_free(&ref);
}

static inline unsigned check_all(jg_status (*run)(const jg_problem *, const jg_operands *), int layouts)
{
    unsigned number = 0;
    for (size_t type = 0; type < COUNT(types); type++)
        for (int form = 0; form < 8; form++)
            for (int layout = 0; layout < layouts; layout++, number++) {
                const jg_problem p = make_problem(type, form, layout, number);
                check(run, &p, number);
            }
    return number;
}

/* ---- a product of one element ---- */

static inline jg_operands no_data(void *stream)
{
    static float a[1], b[1], c[1];
    return (jg_operands){.a = a, .b = b, .c = c, .stream = stream};
}

static const jg_problem one = {.m = 1, .n = 1, .k = 1};

/* ---- failures ---- */

/* What cuBLAS returns, and what becomes of it. */
static const struct { int number; jg_status status; const char *name; } statuses[] = {
    {1, JG_ERR_DEVICE, "CUBLAS_STATUS_NOT_INITIALIZED"},     {3, JG_ERR_DEVICE, "CUBLAS_STATUS_ALLOC_FAILED"},
    {7, JG_ERR_UNSUPPORTED, "CUBLAS_STATUS_INVALID_VALUE"},  {8, JG_ERR_UNSUPPORTED, "CUBLAS_STATUS_ARCH_MISMATCH"},
    {11, JG_ERR_DEVICE, "CUBLAS_STATUS_MAPPING_ERROR"},      {13, JG_ERR_DEVICE, "CUBLAS_STATUS_EXECUTION_FAILED"},
    {14, JG_ERR_DEVICE, "CUBLAS_STATUS_INTERNAL_ERROR"},     {15, JG_ERR_UNSUPPORTED, "CUBLAS_STATUS_NOT_SUPPORTED"},
    {16, JG_ERR_DEVICE, "CUBLAS_STATUS_LICENSE_ERROR"},      {99, JG_ERR_DEVICE, "status 99"},
};

#endif
