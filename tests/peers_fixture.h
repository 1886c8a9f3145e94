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

/* ---- other arithmetics ---- */

/* f32 with TF32, f16 with sums in f16: as asked for, and right. */
static inline void check_modes(jg_status (*run)(const jg_problem *, const jg_operands *))
{
    static const struct { size_t type; uint32_t math; int compute; } rows[] = {
        {0, JG_MATH_TF32, 77}, {1, JG_MATH_F16, 64}, {0, JG_MATH_DEFAULT, 68}};
    for (size_t i = 0; i < COUNT(rows); i++)
        for (int layout = DENSE; layout <= BATCHED; layout += BATCHED) {
            jg_problem p = make_problem(rows[i].type, 1, layout, 1);
            p.math = rows[i].math;
            check(run, &p, 2);
            assert_int_equal(fake->compute, rows[i].compute);
        }
}

enum { M8 = 5, N8 = 7, K8 = 16 };

/* A product of bytes: A is M8 x K8 of the codes 1, 2, 3 ..., and B, which lies transposed, of those from 100 down. */
static inline void run_bytes(jg_status (*run)(const jg_problem *, const jg_operands *), jg_type type, jg_type other, void *c)
{
    static uint8_t a[M8 * K8], b[N8 * K8];
    static const float alpha = 2;
    const jg_problem p = {.m = M8, .n = N8, .k = K8, .type_a = type, .type_b = other, .op_b = JG_T};
    const jg_operands data = {.a = a, .b = b, .c = c, .alpha = &alpha, .stream = FAKE_STREAM};
    for (int i = 0; i < M8 * K8; i++) a[i] = (uint8_t)(i + 1);
    for (int i = 0; i < N8 * K8; i++) b[i] = (uint8_t)(100 - i);
    assert_ok(run(&p, &data));
}

static inline void check_s8(jg_status (*run)(const jg_problem *, const jg_operands *))
{
    int32_t c[M8 * N8];
    run_bytes(run, JG_S8, JG_S8, c);
    assert_int_equal(fake->compute, 72);
    for (int i = 0; i < M8; i++)
        for (int j = 0; j < N8; j++) {
            int32_t sum = 0;
            for (int s = 0; s < K8; s++) sum += (i * K8 + s + 1) * (100 - (j * K8 + s));
            assert_int_equal(c[i * N8 + j], 2 * sum);
        }
}

/* Products that are compared with nothing: the text says so first, then why. */
static inline void check_no_peers(jg_status (*run)(const jg_problem *, const jg_operands *), const char *library)
{
    static const struct { jg_problem p; const char *why; } rows[] = {
        {{.epilogue = JG_EPILOGUE_SCALE}, "nothing fused in"},
        {{.activation = JG_ACTIVATION_RELU}, "nothing fused in"},
        {{.type_a = JG_F16, .type_b = JG_S4, .group_k = 32}, "nothing fused in"},
        {{.math = JG_MATH_FLUSH}, "denormals"},
        {{.type_a = JG_F16, .math = JG_MATH_F16 | JG_MATH_SANITIZE}, "NaN"},
        {{.math = JG_MATH_STRICT}, "no such mode"},
        {{.math = JG_MATH_F32_3XTF32}, "no such mode"},
        {{.type_a = JG_F16, .type_b = JG_S8}, "floats by integers"},
        {{.type_a = JG_S4, .type_b = JG_BF16}, "floats by integers"},
        {{.type_a = JG_U8}, "s8 x s8 -> s32"},
        {{.type_a = JG_U8, .type_b = JG_S8}, "s8 x s8 -> s32"},
        {{.type_a = JG_S4}, "s8 x s8 -> s32"},
        {{.type_a = JG_S8, .type_c = JG_S8}, "s8 x s8 -> s32"},
        {{.type_a = JG_S8, .type_c = JG_F32}, "s8 x s8 -> s32"},
        {{.type_a = JG_F16, .type_c = JG_S8}, "results in f32, f16 and bf16"},
        {{.type_a = JG_F16, .type_c = JG_F32, .math = JG_MATH_F16}, "only for results in f16"}};
    const jg_operands data = {.a = &data, .b = &data, .stream = FAKE_STREAM};
    for (size_t i = 0; i < COUNT(rows); i++) {
        jg_problem p = rows[i].p;
        const int before = fake->products;
        p.m = p.n = p.k = 8;
        assert_fails(run(&p, &data), JG_ERR_UNSUPPORTED, rows[i].why);
        assert_int_equal(strncmp(jg_last_error(), "no peer in ", 11), 0);
        assert_non_null(strstr(jg_last_error(), library));
        assert_int_equal(fake->products, before);
    }
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
