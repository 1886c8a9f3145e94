/* Operands of measured products on the software GPU: where they lie, which numbers they are, and that what is wrong is found. */
#include "bench_gpu_fixture.h"

#include <math.h>

#include "reference.h"
#include "tools/bench_elements.h"
#include "tools/bench_pool.h"

enum { PERIOD = BENCH_POOL_PERIOD }; /* of the numbers */

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
        assert_ok(bench_pool_open(&gpu, bench_layout_in_bytes(&l), bench_layout_out_bytes(&l), 0, &pool));
        CUdeviceptr in = pool.in, second = pool.in + l.a_bytes * l.sets, to = pool.out;
        for (unsigned i = 0; i < l.sets; i++) {
            const jg_operands d = bench_pool_operands(&pool, &l, i, (CUstream)16);
            const jg_operands again = bench_pool_operands(&pool, &l, i + l.sets, NULL);
            const CUdeviceptr a = (CUdeviceptr)(uintptr_t)(swapped ? d.b : d.a);
            const CUdeviceptr b = (CUdeviceptr)(uintptr_t)(swapped ? d.a : d.b), c = (CUdeviceptr)(uintptr_t)d.c;
            assert_true(a % 256 == 0 && b % 256 == 0 && c % 256 == 0);
            assert_true(a >= in && b >= second && c >= to); /* after everything of the sets before */
            in = a + l.a_bytes;
            second = b + l.b_bytes;
            to = c + l.c_bytes;
            assert_ptr_equal(d.stream, (void *)16);
            assert_true(again.a == d.a && again.b == d.b && again.c == d.c && again.stream == NULL);
            assert_true(d.alpha == NULL && d.beta == NULL);
        }
        assert_true(in <= pool.in + l.a_bytes * l.sets && second <= pool.in + pool.in_bytes && to <= pool.out + pool.out_bytes);
        bench_pool_close(&pool);
    }
}

/* To just so many bytes, or to 256. */
static int is_aligned(const void *pointer, unsigned bytes)
{
    return (uintptr_t)pointer % (bytes < 256 ? 2 * bytes : 256) == bytes % 256;
}

/* What is promised to be less aligned than 16 bytes is not aligned better; what is fused in is whole, and apart. */
static void addresses_as_promised(void **state)
{
    (void)state;
    static const struct { jg_type a, b, c; uint32_t align; unsigned of_a, of_b, of_c; } rows[] = {
        {JG_F32, JG_F32, JG_F32, 4, 4, 4, 4}, {JG_F16, JG_F16, JG_F32, 2, 2, 2, 4}, {JG_F16, JG_F16, JG_F16, 8, 8, 8, 8},
        {JG_F16, JG_S8, JG_F16, 1, 2, 1, 2}, {JG_S4, JG_S4, JG_S32, 1, 1, 1, 4}, {JG_BF16, JG_BF16, JG_BF16, 32, 256, 256, 256}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        const jg_problem p = {.m = 9, .n = 70, .k = 34, .type_a = rows[i].a, .type_b = rows[i].b, .type_c = rows[i].c,
                              .align_bytes = rows[i].align};
        const bench_layout l = layout_of(&p, 60000, 3);
        bench_pool pool = {0};
        assert_ok(bench_pool_open(&gpu, bench_layout_in_bytes(&l), bench_layout_out_bytes(&l), 0, &pool));
        for (unsigned set = 0; set < l.sets; set++) {
            const jg_operands d = bench_pool_operands(&pool, &l, set, NULL);
            assert_true(is_aligned(d.a, rows[i].of_a) && is_aligned(d.b, rows[i].of_b) && is_aligned(d.c, rows[i].of_c));
        }
        bench_pool_close(&pool);
    }
}

static void what_is_fused_in(void **state)
{
    (void)state;
    jg_problem p = {.m = 6, .n = 5, .k = 100, .type_a = JG_F16, .type_b = JG_S8, .batch = 2, .stride_a = 600, .stride_b = 500,
                    .stride_c = 30, .stride_residual = 40, .group_k = 32, .zero_points = 1, .type_bias = JG_F16,
                    .epilogue = JG_EPILOGUE_SCALE | JG_EPILOGUE_SCALE_M | JG_EPILOGUE_SCALE_N | JG_EPILOGUE_BIAS_M |
                                JG_EPILOGUE_BIAS_N | JG_EPILOGUE_RESIDUAL};
    const size_t counts[BENCH_EXTRAS] = {1, 6, 5, 6, 5, 70, 2 * 4 * 5, 2 * 4 * 5};
    for (int col = 0; col < 2; col++) {
        p.order = col ? JG_COL_MAJOR : JG_ROW_MAJOR;
        const bench_layout l = layout_of(&p, 20000, 4);
        bench_pool pool = {0};
        assert_ok(bench_pool_open(&gpu, bench_layout_in_bytes(&l), bench_layout_out_bytes(&l), bench_layout_extra_bytes(&l),
                                  &pool));
        assert_ok(bench_pool_fill(&pool, &l));
        for (unsigned set = 0; set < l.sets; set++) {
            const jg_operands d = bench_pool_operands(&pool, &l, set, NULL);
            const void *const at[BENCH_EXTRAS] = {d.scale, d.scale_m, d.scale_n, d.bias_m, d.bias_n, d.residual, d.group_scales,
                                                  d.group_zeros};
            /* Of the canonical problem, whose M and N are the caller's N and M if it is column-major. */
            static const bench_extra_kind turned[BENCH_EXTRAS] = {BENCH_SCALE, BENCH_SCALE_N, BENCH_SCALE_M, BENCH_BIAS_N,
                                                                  BENCH_BIAS_M, BENCH_RESIDUAL, BENCH_GROUP_SCALES,
                                                                  BENCH_GROUP_ZEROS};
            for (int kind = 0; kind < BENCH_EXTRAS; kind++) {
                const bench_extra_kind canonical = col ? turned[kind] : (bench_extra_kind)kind;
                const bench_extra *x = &l.extras[canonical];
                float host[70];
                assert_int_equal(x->count, counts[kind]);
                copy_from_device(host, at[kind], x->count * type_bytes(x->type));
                for (size_t i = 0; i < x->count; i++)
                    assert_true(bench_element_get(host, i, x->type) == bench_extra_value(&l, canonical, i));
            }
        }
        bench_pool_close(&pool);
    }
}

/* ---- values ---- */

static jg_status fill(bench_pool *pool, jg_type type)
{
    const jg_problem p = {.m = 2, .n = 2, .k = 2, .type_a = type};
    const bench_layout l = layout_of(&p, 0, 1);
    return bench_pool_fill(pool, &l);
}

/* Of each type, in all of the memory: the numbers that the host knows, spread evenly over the range. */
static void values(void **state)
{
    (void)state;
    static const struct { jg_type type; double least, most; } each[] = {
        {JG_F32, -1, 1}, {JG_F16, -1, 1}, {JG_BF16, -1, 1}, {JG_E4M3, -1, 1}, {JG_E5M2, -1, 1}, {JG_S8, -128, 127},
        {JG_U8, 0, 255}, {JG_S4, -8, 7}};
    const size_t bytes = 9000002; /* more than two periods of f32, and no multiple of anything */
    unsigned char *host = malloc(bytes);
    bench_pool pool = {0};
    assert_non_null(host);
    assert_ok(bench_pool_open(&gpu, bytes, 16, 0, &pool));
    for (size_t t = 0; t < COUNT(each); t++) {
        const jg_type type = each[t].type;
        const size_t count = bytes * 8 / type_bits(type);
        const double rms = bench_element_rms(type), mean = bench_element_mean(type);
        double sum = 0, squares = 0;
        size_t different = 0;
        assert_ok(fill(&pool, type));
        copy_from_device(host, (void *)(uintptr_t)pool.in, bytes);
        for (size_t i = 0; i < count; i++) {
            const double value = (double)bench_element_get(host, i, type);
            different += value != (double)pool.patterns[0][i % PERIOD];
            if (i >= PERIOD) continue;
            sum += value;
            squares += value * value;
            assert_true(value >= each[t].least && value <= each[t].most);
        }
        assert_int_equal(different, 0);
        assert_true(fabs(sum / PERIOD - mean) < 0.003 * rms + 0.002);
        assert_true(fabs(sqrt(squares / PERIOD) - rms) < 0.01 * rms);
    }
    bench_pool_close(&pool);
    free(host);
}

/* A and B of two types lie in their own parts, and the next product of one type alone has them filled anew. */
static void values_of_two_types(void **state)
{
    (void)state;
    const jg_problem p = {.m = 5, .n = 7, .k = 64, .type_a = JG_F16, .type_b = JG_S4};
    const bench_layout l = layout_of(&p, 20000, 8);
    bench_pool pool = {0};
    assert_true(l.sets > 2);
    assert_ok(bench_pool_open(&gpu, bench_layout_in_bytes(&l) + 100, bench_layout_out_bytes(&l), 0, &pool));
    for (int round = 0; round < 2; round++) {
        uint16_t a[64];
        uint8_t b[64 * 8 / 2];
        const jg_operands data = bench_pool_operands(&pool, &l, l.sets - 1, NULL);
        assert_ok(bench_pool_fill(&pool, &l));
        copy_from_device(a, data.a, sizeof a);
        copy_from_device(b, data.b, sizeof b);
        for (size_t i = 0; i < COUNT(a); i++)
            assert_true(bench_element_get(a, i, JG_F16) == pool.patterns[0][(l.sets - 1) * l.a_bytes / 2 + i]);
        for (size_t i = 0; i < 2 * COUNT(b); i++)
            assert_true(bench_element_get(b, i, JG_S4) == pool.patterns[1][(l.sets - 1) * l.b_bytes * 2 + i]);
        assert_ok(fill(&pool, JG_S4));
    }
    bench_pool_close(&pool);
}

/* Once for all products of a type. */
static void filled_once(void **state)
{
    (void)state;
    bench_pool pool = {0};
    uint32_t before, after, mine = 0x12345678;
    assert_ok(bench_pool_open(&gpu, 256, 16, 0, &pool));
    assert_ok(fill(&pool, JG_F32));
    copy_from_device(&before, (void *)(uintptr_t)pool.in, 4);
    copy_to_device((void *)(uintptr_t)pool.in, &mine, 4);
    assert_ok(fill(&pool, JG_F32));
    copy_from_device(&after, (void *)(uintptr_t)pool.in, 4);
    assert_int_equal(after, mine);
    assert_ok(fill(&pool, JG_BF16));
    assert_ok(fill(&pool, JG_F32));
    copy_from_device(&after, (void *)(uintptr_t)pool.in, 4);
    assert_int_equal(after, before); /* the same numbers each time */
    bench_pool_close(&pool);
}

static void too_large(void **state)
{
    (void)state;
    bench_pool pool = {0};
    assert_fails(bench_pool_open(&gpu, 256, (size_t)1 << 60, 0, &pool), JG_ERR_NO_MEMORY, "cuMemAlloc");
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
    assert_ok(bench_pool_open(&gpu, bench_layout_in_bytes(&l), bench_layout_out_bytes(&l), 0, &pool));
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
        cmocka_unit_test(values_of_two_types),
        cmocka_unit_test(addresses_as_promised),
        cmocka_unit_test(what_is_fused_in),
        cmocka_unit_test(filled_once),
        cmocka_unit_test(too_large),
        cmocka_unit_test(poison),
    };
    return run_on_swgpu(tests, open_swgpu, close_swgpu);
}
