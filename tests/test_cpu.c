/* src/cpu.c against the oracle, and its bits against the arithmetic that the header of cpu.c states. */
#include "cpu.h"
#include "half.h"
#include "reference.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static const jg_type types[][2] = {
    {JG_F32, JG_F32},  {JG_F16, JG_F16},   {JG_F16, JG_BF16}, {JG_F16, JG_F32},
    {JG_BF16, JG_F16}, {JG_BF16, JG_BF16}, {JG_BF16, JG_F32},
};

/* What jg_gemm does on the cpu device, without its checks. */
static void run_on(const jg_problem *in, const void *a, const void *b, void *c, float alpha, float beta)
{
    problem p;
    if (problem_canonicalise(in, &p)) fail_msg("%s", jg_last_error());
    const jg_operands given = {.a = a, .b = b, .c = c, .alpha = &alpha, .beta = &beta};
    const operands o = operands_canonicalise(&p, &given);
    assert_int_equal(cpu_gemm(&p, &o), JG_OK);
}

static void run(reference *ref, float alpha, float beta)
{
    run_on(&ref->problem, reference_at(&ref->a), reference_at(&ref->b), reference_at(&ref->c), alpha, beta);
}

/* Fails with all that is needed to see the case. `exact`: every element must be R rounded. */
static void check(const reference *ref, float alpha, float beta, int exact)
{
    reference_result x = reference_check(ref, alpha, beta);
    char text[JG_PROBLEM_TEXT_BYTES] = "?";
    if (x.failures == 0 && x.stray == 0 && (!exact || x.inexact == 0)) return;
    jg_problem_format(&ref->problem, text, sizeof text, NULL);
    fail_msg("cpu %s alpha %g beta %g: residual %g, tolerance 1; %lld wrong, %lld inexact, %lld stray bytes; first is "
             "item %lld (%lld, %lld): %g, not %g",
             text, (double)alpha, (double)beta, x.worst, (long long)x.failures, (long long)x.inexact,
             (long long)x.stray, (long long)x.item, (long long)x.i, (long long)x.j, x.got, x.expected);
}

/* Runs one problem on fresh data; the padding of A and B is NaN, so a read of it shows. */
static void try(const jg_problem *p, reference_fill fill, float alpha, float beta, uint64_t seed)
{
    reference ref;
    reference_make(&ref, p, fill, 4 * (seed % 4), seed);
    run(&ref, alpha, beta);
    check(&ref, alpha, beta, fill != REFERENCE_UNIFORM);
    reference_free(&ref);
}

/* Every op, order and type with every triple of sizes from a list; the layout varies from case to case. */
static void all_layouts_and_sizes(void **state)
{
    (void)state;
    static const int64_t sizes[] = {0, 1, 2, 3, 7, 17, 64, 65};
    const size_t count = COUNT(sizes);
    uint64_t seed = 0;
    for (size_t shape = 0; shape < count * count * count; shape++) {
        for (int layout = 0; layout < 8; layout++) {
            seed++;
            jg_problem p = {.m = sizes[shape % count], .n = sizes[shape / count % count],
                            .k = sizes[shape / count / count], .op_a = layout & 1, .op_b = layout >> 1 & 1,
                            .order = layout >> 2, .type_a = types[seed % 7][0], .type_c = types[seed % 7][1]};
            int64_t longest = p.m > p.n ? p.m : p.n;
            if (p.k > longest) longest = p.k;
            if (seed % 3 == 1) p.lda = p.ldb = p.ldc = longest + 3;
            if (seed % 3 == 2) p.ldc = longest + 8;
            try(&p, seed % 2 ? REFERENCE_UNIFORM : REFERENCE_INTEGERS, 1.25f, seed % 5 ? -0.5f : 0.0f, seed);
        }
    }
}

static void every_type_with_every_layout(void **state)
{
    (void)state;
    for (size_t t = 0; t < COUNT(types); t++) {
        for (int layout = 0; layout < 16; layout++) {
            jg_problem p = {.m = 65, .n = 67, .k = 130, .type_a = types[t][0], .type_c = types[t][1],
                            .op_a = layout & 1, .op_b = layout >> 1 & 1, .order = layout >> 2 & 1};
            if (layout & 8) p.lda = p.ldb = p.ldc = 131;
            try(&p, REFERENCE_UNIFORM, -2, 0.75f, t);
        }
    }
}

static void batches_dense_padded_and_shared(void **state)
{
    (void)state;
    for (int variant = 0; variant < 64; variant++) {
        jg_problem p = {.m = 7, .n = 17, .k = 3, .batch = 3, .op_a = variant & 1, .order = variant >> 1 & 1,
                        .type_a = types[variant % 7][0], .type_c = types[variant % 7][1]};
        if (variant & 4) p.lda = p.ldb = p.ldc = 19;
        reference_pack(&p);
        if (variant & 8) p.stride_a = 0;
        if (variant & 16) p.stride_b = 0;
        if (variant & 32) p.stride_c += 5;
        try(&p, REFERENCE_UNIFORM, 1, 0.5f, (uint64_t)variant);
        try(&p, REFERENCE_INTEGERS, 1, 0, (uint64_t)variant);
    }
}

static void ones_give_exactly_k(void **state)
{
    (void)state;
    static const int64_t depths[] = {0, 1, 64, 255, 256, 1021, 2048};
    for (size_t t = 0; t < COUNT(types); t++) {
        for (size_t d = 0; d < COUNT(depths); d++) {
            jg_problem p = {.m = 5, .n = 33, .k = depths[d], .type_a = types[t][0], .type_c = types[t][1]};
            reference ref;
            reference_make(&ref, &p, REFERENCE_ONES, 0, 1);
            run(&ref, 1, 0);
            double expected = reference_decode(types[t][1], reference_encode(types[t][1], (double)p.k));
            for (int64_t e = 0; e < 5 * 33; e++) assert_true(reference_get(&ref.c, 0, e / 33, e % 33) == expected);
            reference_free(&ref);
        }
    }
}

/* alpha, beta and what must not be read then, which is made NaN; a null pointer must do as well. */
static void what_is_not_read_does_not_matter(void **state)
{
    (void)state;
    const struct {
        float alpha, beta;
        int64_t k;
        int ab_unread, c_unread;
    } rows[] = {
        {2, 0, 9, 0, 1}, {2, -0.0f, 9, 0, 1}, {0, 3, 9, 1, 0}, {-0.0f, 1, 9, 1, 0},
        {0, 0, 9, 1, 1}, {2, 3, 0, 1, 0},     {2, 0, 0, 1, 1},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        for (int order = 0; order < 2; order++) {
            jg_problem p = {.m = 66, .n = 5, .k = rows[i].k, .order = order, .ldc = 70};
            reference ref;
            reference_make(&ref, &p, REFERENCE_UNIFORM, 0, i);
            if (rows[i].ab_unread) {
                reference_poison(&ref.a);
                reference_poison(&ref.b);
            }
            if (rows[i].c_unread) {
                reference_poison(&ref.c);
                reference_snapshot(&ref);
            }
            run(&ref, rows[i].alpha, rows[i].beta);
            check(&ref, rows[i].alpha, rows[i].beta, 0);
            if (rows[i].ab_unread) {
                run_on(&p, NULL, NULL, reference_at(&ref.c), rows[i].alpha, 0);
                check(&ref, rows[i].alpha, 0, 1);
            }
            reference_free(&ref);
        }
    }
}

static void what_is_read_does_matter(void **state)
{
    (void)state;
    const double planted[] = {NAN, INFINITY, -INFINITY};
    for (int matrix = 0; matrix < 3; matrix++) {
        for (size_t v = 0; v < COUNT(planted); v++) {
            jg_problem p = {.m = 5, .n = 18, .k = 9};
            reference ref;
            reference_make(&ref, &p, REFERENCE_UNIFORM, 0, v);
            reference_matrix *matrices[] = {&ref.a, &ref.b, &ref.c};
            reference_set(matrices[matrix], 0, 2, 3, planted[v]);
            reference_snapshot(&ref);
            run(&ref, 1, 1);
            int64_t affected = 0, expected[] = {18, 5, 1}; /* a row, a column, an element */
            for (int64_t e = 0; e < 5 * 18; e++) affected += !isfinite(reference_get(&ref.c, 0, e / 18, e % 18));
            assert_int_equal(affected, expected[matrix]);
            check(&ref, 1, 1, 0);
            reference_free(&ref);
        }
    }
}

static void unusual_alpha_and_beta(void **state)
{
    (void)state;
    const float values[] = {NAN, INFINITY, -INFINITY, 0x1p-140f, -1, 1};
    for (size_t a = 0; a < COUNT(values); a++) {
        for (size_t b = 0; b < COUNT(values); b++) {
            jg_problem p = {.m = 3, .n = 3, .k = 3};
            try(&p, REFERENCE_UNIFORM, values[a], values[b], 5);
        }
    }
}

static void nothing_to_do_touches_nothing(void **state)
{
    (void)state;
    const jg_problem empty[] = {
        {.m = 0, .n = 4, .k = 4}, {.m = 4, .n = 0, .k = 4}, {.m = 4, .n = 4, .k = 4, .stride_c = 16}};
    for (size_t i = 0; i < COUNT(empty); i++) {
        run_on(&empty[i], NULL, NULL, NULL, 1, 1);
        try(&empty[i], REFERENCE_ONES, 1, 1, 1);
    }
}

/* The arithmetic, said once more element by element: the order of k and each rounding are part of the contract. */
static float contract(const float *a, const float *b, int k, float alpha, float beta, float c)
{
    float acc = 0;
    for (int i = 0; i < k; i++) acc = fmaf(a[i], b[i], acc);
    volatile float scaled = beta * c; /* rounded on its own */
    return beta == 0 ? alpha * acc : fmaf(alpha, acc, scaled);
}

static void bits_are_those_of_the_contract(void **state)
{
    (void)state;
    enum { K = 193, N = 37 };
    static float a[K], b[N][K], c[N], before[N];
    uint64_t random = 11;
    for (int i = 0; i < K; i++) a[i] = (float)reference_random(&random) * 0x1p-64f - 0.5f;
    for (int j = 0; j < N; j++) {
        for (int i = 0; i < K; i++) b[j][i] = (float)reference_random(&random) * 0x1p-64f - 0.5f;
        before[j] = (float)reference_random(&random) * 0x1p-64f - 0.5f;
    }
    const float betas[] = {0, 0.3f};
    for (int v = 0; v < 2; v++) {
        jg_problem p = {.m = 1, .n = N, .k = K, .op_b = JG_T};
        memcpy(c, before, sizeof c);
        run_on(&p, a, b, c, 1.1f, betas[v]);
        for (int j = 0; j < N; j++) {
            float expected = contract(a, b[j], K, 1.1f, betas[v], before[j]);
            assert_memory_equal(&c[j], &expected, sizeof expected);
        }
    }
}

/* Small k, large alpha: only a result rounded once from float32 comes out as the f16 of the contract. */
static void narrow_results_are_rounded_once(void **state)
{
    (void)state;
    const uint16_t one = half_f32_to_f16(1), tiny = half_f32_to_f16(0x1p-11f);
    const uint16_t a[2] = {one, tiny}, b[2] = {one, one};
    uint16_t c = half_f32_to_f16(0x1p-20f);
    jg_problem p = {.m = 1, .n = 1, .k = 2, .type_a = JG_F16};
    run_on(&p, a, b, &c, 1, 0);
    assert_int_equal(c, 0x3c00); /* 1 + 2^-11 is a tie */
    c = half_f32_to_f16(0x1p-20f);
    run_on(&p, a, b, &c, 1, 1);
    assert_int_equal(c, 0x3c01); /* and 2^-20 more is not */
}

/* 2^32 elements into C: an offset that 32 bits cannot hold. Only the pages touched take memory. */
static void offsets_are_64_bit(void **state)
{
    (void)state;
    const int64_t stride = (INT64_C(1) << 31) + 7;
    const size_t bytes = (size_t)(2 * stride + 16) * sizeof(float);
    float *c = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (c == MAP_FAILED) {
        print_message("SKIP 16 GiB of address space are not to be had\n");
        skip();
    }
    const float a[4] = {1, 2, 3, 4}, b[4] = {1, 0, 0, 1};
    jg_problem p = {.m = 2, .n = 2, .k = 2, .batch = 3, .stride_c = stride};
    run_on(&p, a, b, c, 1, 0);
    assert_true(c[0] == 1 && c[stride + 3] == 4 && c[2 * stride] == 1 && c[2 * stride + 3] == 4);
    munmap(c, bytes);
}

static void a_large_odd_product(void **state)
{
    (void)state;
    jg_problem p = {.m = 251, .n = 257, .k = 509, .type_a = JG_F16, .type_c = JG_F32, .lda = 512};
    try(&p, REFERENCE_UNIFORM, 1, 1, 3);
    try(&p, REFERENCE_INTEGERS, 1, 1, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_layouts_and_sizes),
        cmocka_unit_test(every_type_with_every_layout),
        cmocka_unit_test(batches_dense_padded_and_shared),
        cmocka_unit_test(ones_give_exactly_k),
        cmocka_unit_test(what_is_not_read_does_not_matter),
        cmocka_unit_test(what_is_read_does_matter),
        cmocka_unit_test(unusual_alpha_and_beta),
        cmocka_unit_test(nothing_to_do_touches_nothing),
        cmocka_unit_test(bits_are_those_of_the_contract),
        cmocka_unit_test(narrow_results_are_rounded_once),
        cmocka_unit_test(offsets_are_64_bit),
        cmocka_unit_test(a_large_odd_product),
    };
    return cmocka_run_group_tests_name("cpu", tests, NULL, NULL);
}
