/* Whether jitgemm-bench tells right results from wrong ones. Products are computed here, by plain loops in the caller's terms
 * over the numbers that lie on the device; what they are held against lies on the host, and is in the library's terms. */
#include "bench_gpu_fixture.h"

#include <math.h>

#include "reference.h"
#include "tools/bench_pool.h"

static const jg_type types[][2] = {{JG_F32, JG_F32}, {JG_F16, JG_F16}, {JG_F16, JG_F32}, {JG_BF16, JG_BF16}, {JG_BF16, JG_F16}};

/* ---- a product and what it needs ---- */

typedef struct product {
    jg_problem p;        /* leading dimensions and strides are given */
    bench_layout layout;
    bench_pool pool;
    void *c, *other;     /* results of the same layout */
} product;

static int64_t dense_ld(int64_t rows, int64_t columns, int transposed, int col_major)
{
    return transposed == col_major ? columns : rows;
}

static size_t bytes_of(jg_type type)
{
    return type == JG_F32 ? 4 : 2;
}

static double get(jg_type type, const void *data, int64_t at)
{
    uint32_t bits = 0;
    memcpy(&bits, (const char *)data + (size_t)at * bytes_of(type), bytes_of(type));
    return reference_decode(type, bits);
}

static void set(jg_type type, void *data, int64_t at, double value)
{
    const uint32_t bits = reference_encode(type, value);
    memcpy((char *)data + (size_t)at * bytes_of(type), &bits, bytes_of(type));
}

/* Where element (i, j) of C of an item is. */
static int64_t at_c(const product *x, int64_t item, int64_t i, int64_t j)
{
    const jg_problem *p = &x->p;
    return item * p->stride_c + (p->order == JG_COL_MAJOR ? i + j * p->ldc : i * p->ldc + j);
}

/* The sum of the first k products only. Other bytes of C are NaN. */
static void *multiply(const product *x, int64_t k)
{
    const jg_problem *p = &x->p;
    const jg_operands d = bench_pool_operands(&x->pool, &x->layout, 0, NULL);
    const bench_layout *l = &x->layout;
    const int col = p->order == JG_COL_MAJOR, a_by_rows = (p->op_a == JG_T) == col, b_by_rows = (p->op_b == JG_T) == col;
    const size_t a_bytes = col ? l->b_bytes : l->a_bytes, b_bytes = col ? l->a_bytes : l->b_bytes;
    char *a = malloc(a_bytes + 1), *b = malloc(b_bytes + 1), *c = malloc(x->layout.c_bytes);
    assert_true(a && b && c);
    copy_from_device(a, d.a, a_bytes);
    copy_from_device(b, d.b, b_bytes);
    memset(c, 0xff, x->layout.c_bytes);
    for (int64_t item = 0; item < (p->batch ? p->batch : 1); item++)
        for (int64_t i = 0; i < p->m; i++)
            for (int64_t j = 0; j < p->n; j++) {
                double sum = 0;
                for (int64_t s = 0; s < k; s++)
                    sum += get(p->type_a, a, item * p->stride_a + (a_by_rows ? i * p->lda + s : i + s * p->lda)) *
                           get(p->type_b, b, item * p->stride_b + (b_by_rows ? s * p->ldb + j : s + j * p->ldb));
                set(p->type_c, c, at_c(x, item, i, j), sum);
            }
    free(a);
    free(b);
    return c;
}

/* form: the bits of two ops and an order. A right result in `c` and another copy of it in `other`. */
static void make_product(product *x, const int64_t size[3], int64_t batch, size_t type, int form, int64_t pad)
{
    const int ta = form & 1, tb = form >> 1 & 1, col = form >> 2 & 1;
    const int64_t m = size[0], n = size[1], k = size[2];
    memset(x, 0, sizeof *x);
    x->p = (jg_problem){.m = m, .n = n, .k = k, .batch = batch, .type_a = types[type][0], .type_b = types[type][0],
                        .type_c = types[type][1], .op_a = ta ? JG_T : JG_N, .op_b = tb ? JG_T : JG_N,
                        .order = col ? JG_COL_MAJOR : JG_ROW_MAJOR, .lda = dense_ld(m, k, ta, col) + pad,
                        .ldb = dense_ld(k, n, tb, col) + 2 * pad, .ldc = dense_ld(m, n, 0, col) + 3 * pad};
    if (batch > 1) reference_pack(&x->p);
    if (batch > 1 && pad) x->p.stride_a = 0; /* shared by all */
    assert_ok(bench_layout_make(&x->p, 0, 1, &x->layout));
    assert_ok(bench_pool_open(&gpu, bench_layout_in_bytes(&x->layout), bench_layout_out_bytes(&x->layout), 0, &x->pool));
    assert_ok(bench_pool_fill(&x->pool, &x->layout));
    x->c = multiply(x, k);
    x->other = multiply(x, k);
}

static void free_product(product *x)
{
    free(x->c);
    free(x->other);
    bench_pool_close(&x->pool);
}

static double check(const product *x, const void *c)
{
    return bench_pool_check(&x->pool, &x->layout, c);
}

/* Adds to an element of C. */
static void spoil(const product *x, void *c, int64_t item, int64_t i, int64_t j, double error)
{
    set(x->p.type_c, c, at_c(x, item, i, j), get(x->p.type_c, c, at_c(x, item, i, j)) + error);
}

/* ---- the check against the reference ---- */

/* Of every type, op, order, with padding, in batches: what is right passes, and one product too few does not. */
static void right_results_pass(void **state)
{
    (void)state;
    static const int64_t sizes[][3] = {{17, 9, 40}, {1, 33, 12}, {20, 1, 64}, {8, 8, 8}};
    unsigned number = 0;
    for (size_t type = 0; type < COUNT(types); type++)
        for (int form = 0; form < 8; form++, number++) {
            const int64_t *size = sizes[(number + number / 8) % COUNT(sizes)];
            product x;
            make_product(&x, size, number % 3 ? 1 : 3, type, form, number % 2 ? 5 : 0);
            void *fewer = multiply(&x, size[2] - 1);
            const double right = check(&x, x.c), wrong = check(&x, fewer);
            if (!(right <= 1 && wrong > 1)) fail_msg("type %zu form %d: right %g, wrong %g", type, form, right, wrong);
            free(fewer);
            free_product(&x);
        }
}

/* No products: every element is 0. */
static void nothing_to_sum_up(void **state)
{
    (void)state;
    static const int64_t size[] = {5, 6, 0};
    product x;
    make_product(&x, size, 1, 0, 0, 0);
    assert_true(check(&x, x.c) == 0);
    spoil(&x, x.c, 0, 4, 5, 1e-3);
    assert_true(check(&x, x.c) > 1);
    free_product(&x);
}

/* A kernel that goes wrong at an edge does so in a corner: each one is looked at, in the last item. */
static void corners(void **state)
{
    (void)state;
    static const int64_t size[] = {37, 41, 16};
    for (int form = 0; form < 8; form += 4)
        for (int64_t batch = 1; batch <= 3; batch += 2) {
            product x;
            make_product(&x, size, batch, 1, form, 3);
            for (int corner = 0; corner < 4; corner++) {
                const int64_t i = corner & 1 ? size[0] - 1 : 0, j = corner & 2 ? size[1] - 1 : 0;
                void *spoilt = multiply(&x, size[2]);
                spoil(&x, spoilt, batch - 1, i, j, 0.125);
                assert_true(check(&x, spoilt) > 1);
                memset((char *)spoilt + (size_t)at_c(&x, batch - 1, i, j) * 2, 0xff, 2); /* NaN: it was not written */
                assert_true(isinf(check(&x, spoilt)));
                free(spoilt);
            }
            free_product(&x);
        }
}

/* Errors in proportion: of one that is double, the part is double. */
static void parts_are_of_what_is_allowed(void **state)
{
    (void)state;
    static const int64_t size[] = {3, 3, 100};
    product x;
    make_product(&x, size, 1, 0, 0, 0);
    spoil(&x, x.c, 0, 2, 2, 1e-2);
    const double once = check(&x, x.c);
    spoil(&x, x.c, 0, 2, 2, 1e-2);
    assert_true(once > 1 && fabs(check(&x, x.c) / once - 2) < 1e-3);
    /* 100 products of 1/4 on average: about 100 * 2^-23 * 25 is allowed. */
    assert_true(once > 1e-2 / (100 * 0x1p-23 * 40) && once < 1e-2 / (100 * 0x1p-23 * 15));
    free_product(&x);
}

/* Not only corners: what moves by one column is wrong nearly everywhere else. */
static void columns_that_moved(void **state)
{
    (void)state;
    static const int64_t size[] = {20, 30, 10};
    product x;
    make_product(&x, size, 1, 1, 0, 0);
    for (int64_t i = 1; i < 19; i++)
        for (int64_t j = 1; j < 29; j++) set(JG_F16, x.c, at_c(&x, 0, i, j), get(JG_F16, x.other, at_c(&x, 0, i, j - 1)));
    assert_true(check(&x, x.other) <= 1);
    assert_true(check(&x, x.c) > 1);
    free_product(&x);
}

/* ---- two results ---- */

static double compare(const product *x, double *own)
{
    return bench_pool_compare(&x->pool, &x->layout, x->c, x->other, own);
}

/* The same, or off by a bit of the last place, which is a matter of order: no dispute. */
static void equal_results(void **state)
{
    (void)state;
    static const int64_t size[] = {17, 23, 64};
    for (size_t type = 0; type < COUNT(types); type++)
        for (int form = 0; form < 8; form++) {
            product x;
            double own = -1;
            make_product(&x, size, 2, type, form, form % 2 ? 3 : 0);
            assert_true(compare(&x, &own) == 0);
            const jg_type c = x.p.type_c;
            for (int64_t i = 0; i < size[0]; i++)
                for (int64_t j = 0; j < size[1]; j++) {
                    const double value = get(c, x.c, at_c(&x, 1, i, j));
                    const double step = fabs(value) * (c == JG_F32 ? 0x1p-23 : c == JG_F16 ? 0x1p-10 : 0x1p-7);
                    set(c, x.other, at_c(&x, 1, i, j), (i + j) % 2 ? value + step : value - step);
                }
            const double part = compare(&x, &own);
            if (!(part > 0 && part <= 1)) fail_msg("type %zu form %d: %g", type, form, part);
            assert_true(own == -1); /* nothing had to be looked at */
            free_product(&x);
        }
}

/* One element differs; the reference says whose it is. */
static void who_is_off(void **state)
{
    (void)state;
    static const int64_t size[] = {37, 41, 64};
    for (int form = 0; form < 8; form++) {
        product x;
        double own = 0.25;
        make_product(&x, size, 3, 1, form, 3);
        spoil(&x, x.other, 1, 17, 23, 0.3);
        assert_true(compare(&x, &own) > 1);
        assert_true(own >= 0.25 && own <= 1); /* ours is right */
        spoil(&x, x.other, 1, 17, 23, -0.3);
        spoil(&x, x.c, 1, 17, 23, 0.3);
        assert_true(compare(&x, &own) > 1);
        assert_true(own > 1);
        free_product(&x);
    }
}

/* What was not written at all, by one or by both. */
static void missing_elements(void **state)
{
    (void)state;
    static const int64_t size[] = {9, 10, 11};
    product x;
    double own = 0;
    make_product(&x, size, 1, 0, 0, 0);
    memset((char *)x.other + (size_t)at_c(&x, 0, 8, 3) * 4, 0xff, 4);
    assert_true(isinf(compare(&x, &own)));
    assert_true(own <= 1);
    memset((char *)x.c + (size_t)at_c(&x, 0, 8, 3) * 4, 0xff, 4);
    assert_true(isinf(compare(&x, &own)));
    assert_true(isinf(own));
    free_product(&x);
}

/* A product too few, the smallest mistake of a kernel, is more than a matter of order. */
static void fewer_products(void **state)
{
    (void)state;
    static const int64_t size[] = {40, 50, 200};
    for (size_t type = 0; type < COUNT(types); type++) {
        product x;
        double own = 0;
        make_product(&x, size, 1, type, 0, 0);
        free(x.c);
        x.c = multiply(&x, size[2] - 1);
        assert_true(compare(&x, &own) > 1);
        assert_true(own > 1);
        free_product(&x);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(right_results_pass),
        cmocka_unit_test(nothing_to_sum_up),
        cmocka_unit_test(corners),
        cmocka_unit_test(parts_are_of_what_is_allowed),
        cmocka_unit_test(columns_that_moved),
        cmocka_unit_test(equal_results),
        cmocka_unit_test(who_is_off),
        cmocka_unit_test(missing_elements),
        cmocka_unit_test(fewer_products),
    };
    return run_on_swgpu(tests, open_swgpu, close_swgpu);
}
