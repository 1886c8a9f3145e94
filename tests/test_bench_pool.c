/* Operands of measured products on the software GPU: where they lie, which numbers they are, and that what is wrong is found. */
#include "bench_gpu_fixture.h"

#include <math.h>

#include "reference.h"
#include "tools/bench_pool.h"

enum { PERIOD = 1048573 }; /* of the numbers */

static const jg_type types[][2] = {{JG_F32, JG_F32}, {JG_F16, JG_F16}, {JG_F16, JG_F32}, {JG_BF16, JG_BF16}, {JG_BF16, JG_F32}};

/* ---- problems ---- */

static int64_t dense_ld(int64_t rows, int64_t columns, int transposed, int col_major)
{
    return transposed == col_major ? columns : rows;
}

/* form: the bits of two ops and an order. Leading dimensions are given, `pad` longer than they must be. */
static jg_problem make_problem(int64_t m, int64_t n, int64_t k, int64_t batch, size_t type, int form, int64_t pad)
{
    const int ta = form & 1, tb = form >> 1 & 1, col = form >> 2 & 1;
    jg_problem p = {.m = m, .n = n, .k = k, .batch = batch, .type_a = types[type][0], .type_b = types[type][0],
                    .type_c = types[type][1], .op_a = ta ? JG_T : JG_N, .op_b = tb ? JG_T : JG_N,
                    .order = col ? JG_COL_MAJOR : JG_ROW_MAJOR, .lda = dense_ld(m, k, ta, col) + pad,
                    .ldb = dense_ld(k, n, tb, col) + 2 * pad, .ldc = dense_ld(m, n, 0, col) + 3 * pad};
    if (batch > 1) reference_pack(&p);
    return p;
}

static bench_layout layout_of(const jg_problem *p, size_t rotated_bytes, unsigned most_sets)
{
    bench_layout l;
    assert_ok(bench_layout_make(p, rotated_bytes, most_sets, &l));
    return l;
}

/* ---- layouts ---- */

static void assert_bytes(const jg_problem *p, size_t a, size_t b, size_t c)
{
    const bench_layout l = layout_of(p, 0, 1);
    if (l.a_bytes != a || l.b_bytes != b || l.c_bytes != c)
        fail_msg("%zu, %zu, %zu, not %zu, %zu, %zu", l.a_bytes, l.b_bytes, l.c_bytes, a, b, c);
    assert_int_equal(l.sets, 1);
    assert_int_equal(bench_layout_in_bytes(&l), a + b);
    assert_int_equal(bench_layout_out_bytes(&l), c);
}

/* Each a multiple of 256; from the first element to the last, without what is behind it. */
static void bytes_of_matrices(void **state)
{
    (void)state;
    /* A 21, B 35, C 15 elements of 4 bytes */
    assert_bytes(&(jg_problem){.m = 3, .n = 5, .k = 7, .type_a = JG_F32}, 256, 256, 256);
    /* A 64 * 32, B 32 * 65, C 64 * 65 elements of 2 bytes: 4096, 4160, 8320 */
    assert_bytes(&(jg_problem){.m = 64, .n = 65, .k = 32, .type_a = JG_F16}, 4096, 4352, 8448);
    /* C of 4 bytes: 16640 */
    assert_bytes(&(jg_problem){.m = 64, .n = 65, .k = 32, .type_a = JG_F16, .type_c = JG_F32}, 4096, 4352, 16640);
    /* A 63 * 40 + 32 = 2552, B 31 * 128 + 65 = 4033, C 63 * 64 + 65 is not allowed: 63 * 65 + 65; 2 bytes each */
    assert_bytes(&(jg_problem){.m = 64, .n = 65, .k = 32, .type_a = JG_BF16, .lda = 40, .ldb = 128}, 5120, 8192, 8448);
    /* column-major: the caller's A is our B. 64 * 32 and 32 * 65 */
    assert_bytes(&(jg_problem){.m = 64, .n = 65, .k = 32, .type_a = JG_F16, .order = JG_COL_MAJOR}, 4352, 4096, 8448);
    /* three items, A shared, C 5000 elements apart: 4096; 3 * 4160 = 12480; 2 * 10000 + 8320 = 28320 */
    assert_bytes(&(jg_problem){.m = 64, .n = 65, .k = 32, .type_a = JG_F16, .batch = 3, .stride_b = 2080, .stride_c = 5000}, 4096,
                 12544, 28416);
    /* no products to sum up */
    assert_bytes(&(jg_problem){.m = 4, .n = 4, .k = 0, .type_a = JG_F32}, 0, 0, 256);
}

static void no_layouts(void **state)
{
    (void)state;
    bench_layout l;
    assert_fails(bench_layout_make(&(jg_problem){.m = 0, .n = 5, .k = 7}, 0, 1, &l), JG_ERR_SIZE, "nothing to compute");
    assert_fails(bench_layout_make(&(jg_problem){.m = 3, .n = 5, .k = 7, .lda = 2}, 0, 1, &l), JG_ERR_LEADING_DIMENSION, "lda");
}

static void flops_and_bytes(void **state)
{
    (void)state;
    const struct { jg_problem p; double flops, bytes; } rows[] = {
        {{.m = 3, .n = 5, .k = 7, .type_a = JG_F32}, 210, 4 * (21 + 35 + 15)},
        {{.m = 3, .n = 5, .k = 7, .type_a = JG_F32, .lda = 100}, 210, 4 * (21 + 35 + 15)}, /* padding is not moved */
        {{.m = 3, .n = 5, .k = 7, .type_a = JG_F16, .type_c = JG_F32}, 210, 2 * (21 + 35) + 4 * 15},
        {{.m = 3, .n = 5, .k = 7, .type_a = JG_F32, .batch = 4, .stride_a = 21, .stride_b = 35, .stride_c = 15}, 840,
         4 * 4 * (21 + 35 + 15)},
        {{.m = 3, .n = 5, .k = 7, .type_a = JG_F32, .batch = 4, .stride_b = 35, .stride_c = 15}, 840, 4 * (21 + 4 * (35 + 15))},
        {{.m = 3, .n = 5, .k = 7, .type_a = JG_F32, .batch = 4, .stride_a = 21, .stride_c = 15}, 840, 4 * (35 + 4 * (21 + 15))},
        {{.m = 3, .n = 5, .k = 7, .type_a = JG_F32, .batch = 4, .stride_a = 21, .stride_c = 15, .order = JG_COL_MAJOR}, 840,
         4 * (35 + 4 * (21 + 15))},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        const bench_layout l = layout_of(&rows[i].p, 0, 1);
        if (bench_layout_flops(&l) != rows[i].flops || bench_layout_bytes(&l) != rows[i].bytes)
            fail_msg("row %zu: %g, %g", i, bench_layout_flops(&l), bench_layout_bytes(&l));
    }
}

static void numbers_of_sets(void **state)
{
    (void)state;
    const jg_problem p = {.m = 3, .n = 5, .k = 7, .type_a = JG_F32}; /* 768 bytes a set */
    static const struct { size_t rotated_bytes; unsigned most, sets; } rows[] = {
        {0, 100, 1}, {1, 100, 1}, {768, 100, 1}, {769, 100, 2}, {7680, 100, 10}, {7681, 100, 11},
        {1 << 30, 100, 100}, {1 << 30, 1, 1}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        const bench_layout l = layout_of(&p, rows[i].rotated_bytes, rows[i].most);
        assert_int_equal(l.sets, rows[i].sets);
        assert_int_equal(bench_layout_in_bytes(&l), 512 * rows[i].sets);
        assert_int_equal(bench_layout_out_bytes(&l), 256 * rows[i].sets);
    }
}

/* Operands of calls one after another: aligned, inside the pool, apart from all others, and the first again after the last. */
static void operands_in_turn(void **state)
{
    (void)state;
    for (int form = 0; form < 8; form++) {
        const jg_problem p = make_problem(9, 70, 33, 2, 1, form, 3);
        const bench_layout l = layout_of(&p, 60000, 100);
        const int swapped = form >= 4;
        bench_pool pool = {0};
        assert_true(l.sets >= 3);
        assert_ok(bench_pool_open(&gpu, bench_layout_in_bytes(&l), bench_layout_out_bytes(&l), &pool));
        CUdeviceptr in = pool.in, to = pool.out;
        for (unsigned i = 0; i < l.sets; i++) {
            const jg_operands d = bench_pool_operands(&pool, &l, i, (CUstream)16);
            const jg_operands again = bench_pool_operands(&pool, &l, i + l.sets, NULL);
            const CUdeviceptr a = (CUdeviceptr)(uintptr_t)(swapped ? d.b : d.a);
            const CUdeviceptr b = (CUdeviceptr)(uintptr_t)(swapped ? d.a : d.b), c = (CUdeviceptr)(uintptr_t)d.c;
            assert_true(a % 256 == 0 && b % 256 == 0 && c % 256 == 0);
            assert_true(a >= in && b >= a + l.a_bytes && c >= to); /* after everything of the sets before */
            in = b + l.b_bytes;
            to = c + l.c_bytes;
            assert_ptr_equal(d.stream, (void *)16);
            assert_true(again.a == d.a && again.b == d.b && again.c == d.c && again.stream == NULL);
            assert_true(d.alpha == NULL && d.beta == NULL);
        }
        assert_true(in <= pool.in + pool.in_bytes && to <= pool.out + pool.out_bytes);
        bench_pool_close(&pool);
    }
}

/* ---- values ---- */

static void values(void **state)
{
    (void)state;
    static const jg_type each[] = {JG_F32, JG_F16, JG_BF16};
    const size_t bytes = 9000002; /* more than two periods of f32, and no multiple of anything */
    unsigned char *host = malloc(bytes);
    bench_pool pool = {0};
    assert_non_null(host);
    assert_ok(bench_pool_open(&gpu, bytes, 16, &pool));
    for (size_t t = 0; t < COUNT(each); t++) {
        const size_t size = each[t] == JG_F32 ? 4 : 2, count = bytes / size;
        double sum = 0, squares = 0;
        size_t different = 0;
        assert_ok(bench_pool_fill(&pool, each[t]));
        copy_from_device(host, (void *)(uintptr_t)pool.in, bytes);
        for (size_t i = 0; i < count; i++) {
            uint32_t bits = 0;
            memcpy(&bits, host + i * size, size);
            const double value = reference_decode(each[t], bits);
            different += value != (double)pool.pattern[i % PERIOD];
            if (i >= PERIOD) continue;
            sum += value;
            squares += value * value;
            /* Below 1; what is rounded to a short type may come up to it. */
            assert_true(value >= -1 && (value < 1 || (value == 1 && each[t] != JG_F32)));
        }
        assert_int_equal(different, 0);
        assert_true(fabs(sum / PERIOD) < 0.003);
        assert_true(fabs(squares / PERIOD - 1.0 / 3) < 0.003);
    }
    bench_pool_close(&pool);
    free(host);
}

/* Once for all products of a type. */
static void filled_once(void **state)
{
    (void)state;
    bench_pool pool = {0};
    uint32_t before, after, mine = 0x12345678;
    assert_ok(bench_pool_open(&gpu, 256, 16, &pool));
    assert_ok(bench_pool_fill(&pool, JG_F32));
    copy_from_device(&before, (void *)(uintptr_t)pool.in, 4);
    copy_to_device((void *)(uintptr_t)pool.in, &mine, 4);
    assert_ok(bench_pool_fill(&pool, JG_F32));
    copy_from_device(&after, (void *)(uintptr_t)pool.in, 4);
    assert_int_equal(after, mine);
    assert_ok(bench_pool_fill(&pool, JG_BF16));
    assert_ok(bench_pool_fill(&pool, JG_F32));
    copy_from_device(&after, (void *)(uintptr_t)pool.in, 4);
    assert_int_equal(after, before); /* the same numbers each time */
    bench_pool_close(&pool);
}

static void too_large(void **state)
{
    (void)state;
    bench_pool pool = {0};
    assert_fails(bench_pool_open(&gpu, 256, (size_t)1 << 60, &pool), JG_ERR_NO_MEMORY, "cuMemAlloc");
    bench_pool_close(&pool);
    bench_pool_close(&pool); /* and nothing more to close */
}

/* C of set 0, all of it, and nothing else. */
static void poison(void **state)
{
    (void)state;
    const jg_problem p = make_problem(9, 70, 33, 2, 1, 0, 3);
    const bench_layout l = layout_of(&p, 60000, 3);
    bench_pool pool = {0};
    assert_ok(bench_pool_open(&gpu, bench_layout_in_bytes(&l), bench_layout_out_bytes(&l), &pool));
    assert_int_equal(gpu.memory_set(pool.out, 7, pool.out_bytes), CUDA_SUCCESS);
    assert_ok(bench_pool_poison(&pool, &l));
    unsigned char *c = bench_pool_take_c(&pool, &l), next;
    assert_non_null(c);
    for (size_t i = 0; i < l.c_bytes; i++) assert_int_equal(c[i], 0xff);
    copy_from_device(&next, (void *)(uintptr_t)(pool.out + l.c_bytes), 1);
    assert_int_equal(next, 7);
    free(c);
    bench_pool_close(&pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_of_matrices),
        cmocka_unit_test(no_layouts),
        cmocka_unit_test(flops_and_bytes),
        cmocka_unit_test(numbers_of_sets),
        cmocka_unit_test(operands_in_turn),
        cmocka_unit_test(values),
        cmocka_unit_test(filled_once),
        cmocka_unit_test(too_large),
        cmocka_unit_test(poison),
    };
    return run_on_swgpu(tests, open_swgpu, close_swgpu);
}
