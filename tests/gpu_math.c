/* What the math modes promise, on a GPU or on the software GPU (on_gpu.h): the bits of JG_MATH_STRICT, that TF32 is never used
 * unasked, the accuracy of JG_MATH_F32_3XTF32, where the sums of JG_MATH_F16 end, and that the same product always has the same
 * bits. What JG_MATH_FLUSH and JG_MATH_SANITIZE do is in gpu_special.c. */
#include "context.h"
#include "on_device.h"
#include "on_gpu.h"

#include <dlfcn.h>
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static double unit(uint64_t *state)
{
    return (double)(reference_random(state) >> 11) * 0x1p-52 - 1;
}

/* ---- strict ---- */

static const jg_type strict_types[] = {JG_F32, JG_F16, JG_BF16};
static const int64_t strict_sizes[][3] = {{17, 23, 997}, {33, 20, 256}, {5, 64, 40}, {40, 36, 31}, {1, 7, 1}};
#define STRICT_SIZES (sizeof strict_sizes / sizeof strict_sizes[0])
static const float strict_scalars[][2] = {{0.7f, -1.3f}, {1, 0}, {-1.9f, 1}, {1, 1}};

/* Runs it and returns how many elements differ from the plain loop; -1: it did not run. */
static int64_t differences(const jg_problem *p, float alpha, float beta)
{
    reference ref;
    reference_make(&ref, p, REFERENCE_UNIFORM, 0, (uint64_t)(p->m + p->k));
    const int64_t count = on_gpu_run(&ref, alpha, beta) ? reference_strict_differences(&ref, alpha, beta) : -1;
    if (count >= 0) on_gpu_judge(&ref, "strict", alpha, beta, 0);
    reference_free(&ref);
    return count;
}

static void test_strict_has_the_bits_of_the_plain_loop(void **state)
{
    (void)state;
    on_gpu_need();
    unsigned turn = 0;
    for (size_t y = 0; y < 3; y++) {
        int64_t other_by_default = 0;
        for (size_t s = 0; s < STRICT_SIZES; s++)
            for (unsigned ops = 0; ops < 4; ops++, turn++) {
                const float alpha = strict_scalars[turn % 4][0], beta = strict_scalars[turn % 4][1];
                jg_problem p = {.m = strict_sizes[s][0], .n = strict_sizes[s][1], .k = strict_sizes[s][2],
                                .type_a = strict_types[y], .type_c = turn % 3 ? JG_F32 : strict_types[y],
                                .op_a = (jg_op)(ops & 1), .op_b = (jg_op)(ops >> 1), .math = JG_MATH_STRICT,
                                .form = JG_FORM_GENERIC};
                if (turn % on_gpu_stride) continue;
                if (differences(&p, alpha, beta) > 0) on_gpu_complain(&p, "other bits than the plain loop");
                p.form = JG_FORM_SPECIALISED;
                if (ops == s % 4 && differences(&p, alpha, beta) > 0) on_gpu_complain(&p, "other bits than the plain loop");
                p.form = JG_FORM_GENERIC;
                p.math = JG_MATH_DEFAULT;
                other_by_default += differences(&p, alpha, beta);
            }
        printf("# %s: by default %lld elements have other bits\n", y == 0 ? "f32" : y == 1 ? "f16" : "bf16",
               (long long)other_by_default);
        /* This data tells the two apart. (Products of 16-bit floats are exact, and so fused or not.) */
        if (strict_types[y] == JG_F32) assert_true(other_by_default > 0);
    }
    on_gpu_verdict();
}

/* Raises an element of A by one step of its type, or by many. */
static void raise_one(reference_matrix *a, uint64_t *random)
{
    const int64_t i = (int64_t)(reference_random(random) % (uint64_t)a->rows);
    const int64_t j = (int64_t)(reference_random(random) % (uint64_t)a->cols);
    const uint32_t sign = a->type == JG_F32 ? 0x80000000u : 0x8000u;
    const uint32_t steps = 1u << reference_random(random) % (a->type == JG_F32 ? 21 : 6);
    const uint32_t bits = reference_get_bits(a, 0, i, j), size = bits & ~sign;
    const uint32_t raised = !(bits & sign) ? bits + steps : size > steps ? bits - steps : steps - size;
    reference_set_bits(a, 0, i, j, raised);
}

/* Rounding to nearest never changes an order, so with B >= 0 and alpha >= 0 no element of C may fall when one of A rises. */
static void test_strict_is_monotone(void **state)
{
    (void)state;
    on_gpu_need();
    for (size_t y = 0; y < 3; y++) {
        const jg_problem p = {.m = 24, .n = 28, .k = 130, .type_a = strict_types[y], .math = JG_MATH_STRICT,
                              .form = JG_FORM_GENERIC};
        reference ref;
        uint64_t random = y;
        int64_t risen = 0;
        reference_make(&ref, &p, REFERENCE_UNIFORM, 0, 9);
        for (int64_t k = 0; k < p.k; k++)
            for (int64_t j = 0; j < p.n; j++) reference_set(&ref.b, 0, k, j, fabs(reference_get(&ref.b, 0, k, j)));
        reference_matrix before = ref.c;
        before.block = malloc(before.block_bytes);
        assert_non_null(before.block);
        for (int round = 0; round < 24 && on_gpu_run(&ref, 0.7f, -0.9f); round++) {
            for (int64_t at = 0; round > 0 && at < p.m * p.n; at++) {
                const double was = reference_get(&before, 0, at / p.n, at % p.n);
                const double is = reference_get(&ref.c, 0, at / p.n, at % p.n);
                risen += is > was;
                if (is < was) on_gpu_complain(&p, "element %lld fell from %.9g to %.9g", (long long)at, was, is);
            }
            memcpy(before.block, ref.c.block, before.block_bytes);
            for (int x = 0; x < 50; x++) raise_one(&ref.a, &random);
        }
        assert_true(risen > 1000);
        free(before.block);
        reference_free(&ref);
    }
    on_gpu_verdict();
}

/* ---- tf32, never by surprise ---- */

/* An odd number of 24 bits. */
static double long_number(uint64_t *state)
{
    const uint64_t random = reference_random(state);
    const double size = (double)((random & 0x7fffff) | 0x800001);
    return random >> 40 & 1 ? -size : size;
}

/* To 11 significant bits; halves away from zero. */
static double to_tf32(double x)
{
    int exponent;
    const double fraction = frexp(x, &exponent);
    return ldexp(round(ldexp(fraction, 11)), exponent - 11);
}

/* One operand is long numbers, the other has a single one in each of C's rows or columns: so C is the long numbers. */
static void run_long_numbers(jg_problem p, int in_b)
{
    const int tf32 = (p.math & 15) == JG_MATH_TF32;
    reference ref;
    uint64_t random = (uint64_t)p.k;
    int64_t wrong = 0;
    reference_make(&ref, &p, REFERENCE_ONES, 0, 0);
    for (int64_t k = 0; k < p.k; k++) {
        for (int64_t i = 0; i < p.m; i++) reference_set(&ref.a, 0, i, k, in_b ? k == i % p.k : long_number(&random));
        for (int64_t j = 0; j < p.n; j++) reference_set(&ref.b, 0, k, j, in_b ? long_number(&random) : k == j % p.k);
    }
    if (on_gpu_run(&ref, 1, 0))
        for (int64_t at = 0; at < p.m * p.n; at++) {
            const int64_t i = at / p.n, j = at % p.n;
            const double number = in_b ? reference_get(&ref.b, 0, i % p.k, j) : reference_get(&ref.a, 0, i, j % p.k);
            const double right = tf32 ? to_tf32(number) : number, got = reference_get(&ref.c, 0, i, j);
            if (got != right && wrong++ == 0) on_gpu_complain(&p, "%.9g is right, not %.9g", right, got);
        }
    reference_free(&ref);
}

static void test_tf32_is_never_used_unasked(void **state)
{
    (void)state;
    on_gpu_need();
    static const int64_t sizes[][3] = {{30, 37, 29}, {200, 260, 40}};
    static const uint32_t modes[] = {JG_MATH_DEFAULT, JG_MATH_STRICT, JG_MATH_TF32};
    for (size_t mode = 0; mode < 3 - (on_gpu_architecture() == 75); mode++)
        for (size_t s = 0; s < 2; s++)
            for (int form = JG_FORM_GENERIC; form <= JG_FORM_SPECIALISED; form++)
                for (int in_b = 0; in_b < 2; in_b++) {
                    const jg_problem p = {.m = sizes[s][0], .n = sizes[s][1], .k = sizes[s][2], .op_b = JG_T,
                                          .math = modes[mode], .form = (jg_form)form};
                    if (modes[mode] != JG_MATH_STRICT || form == JG_FORM_GENERIC) run_long_numbers(p, in_b);
                }
    on_gpu_verdict();
}

/* ---- 3xtf32 ---- */

/* The largest error in C, as a part of the sum of the products' magnitudes, to which `floor` is added. Infinite where C is not
 * finite and the sum is, or the other way round. */
static double worst_error(const reference *ref, double floor)
{
    double worst = 0;
    for (int64_t i = 0; i < ref->m; i++)
        for (int64_t j = 0; j < ref->n; j++) {
            double sum = 0, size = 0;
            for (int64_t k = 0; k < ref->k; k++) {
                const double product = reference_get(&ref->a, 0, i, k) * reference_get(&ref->b, 0, k, j);
                sum += product;
                size += fabs(product);
            }
            const double got = reference_get(&ref->c, 0, i, j);
            if (isnan(sum) && isnan(got)) continue;
            const int finite = isfinite(got) && isfinite(sum);
            const double error = got == sum ? 0 : finite ? fabs(got - sum) / (size + floor) : (double)INFINITY;
            if (error > worst) worst = error;
        }
    return worst;
}

static double positive(uint64_t *random)
{
    return fabs(unit(random));
}

static double wide(uint64_t *random)
{
    return ldexp(unit(random), (int)(reference_random(random) % 81) - 40);
}

/* Above the largest number of tf32, so that rounding would give infinity. */
static double enormous(uint64_t *random)
{
    const double x = (double)FLT_MAX - (double)(reference_random(random) % 4096) * 0x1p104;
    return reference_random(random) & 1 ? x : -x;
}

static double little(uint64_t *random)
{
    return unit(random) * 0x1p-12;
}

static double tiny(uint64_t *random)
{
    return unit(random) * 0x1p-127;
}

/* Denormals of tf32 are multiples of 2^-136, so of each element below 2^-126 up to 2^-137 is lost: 2^-20 of 2^-117. */
static const struct {
    const char *name;
    double (*a)(uint64_t *), (*b)(uint64_t *);
    double floor; /* for each k */
} kinds[] = {
    {"-1 to 1", unit, unit, 0}, {"0 to 1", positive, positive, 0}, {"2^-40 to 2^40", wide, wide, 0},
    {"near overflow", enormous, little, 0}, {"denormals", tiny, unit, 0x1p-117},
};
#define KINDS (sizeof kinds / sizeof kinds[0])

static double run_kind(jg_problem p, size_t kind, uint32_t math)
{
    reference ref;
    uint64_t random = 5 + kind;
    p.math = math;
    reference_make(&ref, &p, REFERENCE_ONES, 0, 0);
    for (int64_t k = 0; k < p.k; k++) {
        for (int64_t i = 0; i < p.m; i++) reference_set(&ref.a, 0, i, k, i ? kinds[kind].a(&random) : 0); /* a row of zeros */
        for (int64_t j = 0; j < p.n; j++) reference_set(&ref.b, 0, k, j, kinds[kind].b(&random));
    }
    const double worst = on_gpu_run(&ref, 1, 0) ? worst_error(&ref, kinds[kind].floor * (double)p.k) : 0;
    for (int64_t j = 0; j < p.n; j++)
        if (reference_get(&ref.c, 0, 0, j) != 0) on_gpu_complain(&p, "%s: a row of zeros gives no zeros", kinds[kind].name);
    reference_free(&ref);
    return worst;
}

/* Of long sums f32 itself loses more than 2^-20; then it must not lose more than f32 does. */
static void test_3xtf32_is_as_accurate_as_f32(void **state)
{
    (void)state;
    on_gpu_need_modes();
    static const int64_t lengths[] = {8, 37, 256, 1000, 4000};
    double worst = 0, worst_f32 = 0;
    for (size_t kind = 0; kind < KINDS; kind++)
        for (size_t s = 0; s < sizeof lengths / sizeof lengths[0]; s++) {
            const jg_problem p = {.m = 29, .n = 30, .k = lengths[s], .form = JG_FORM_GENERIC};
            const double three = run_kind(p, kind, JG_MATH_F32_3XTF32), f32 = run_kind(p, kind, JG_MATH_DEFAULT);
            printf("# %s, k = %lld: 3xtf32 worst 2^%.1f, f32 worst 2^%.1f\n", kinds[kind].name, (long long)p.k, log2(three),
                   log2(f32));
            worst = fmax(worst, three);
            worst_f32 = fmax(worst_f32, f32);
            if (three > fmax(0x1p-20, f32)) on_gpu_complain(&p, "%s: an error of 2^%.1f", kinds[kind].name, log2(three));
        }
    printf("# 3xtf32 worst 2^%.1f, f32 worst 2^%.1f\n", log2(worst), log2(worst_f32));
    on_gpu_verdict();
}

/* The splitting leaves NaN one, and keeps it to its row. */
static void test_nan_stays_nan_in_tf32_modes(void **state)
{
    (void)state;
    on_gpu_need_modes();
    for (uint32_t mode = JG_MATH_TF32; mode <= JG_MATH_F32_3XTF32; mode++) {
        const jg_problem p = {.m = 29, .n = 30, .k = 37, .math = mode, .form = JG_FORM_GENERIC};
        static const uint32_t nans[] = {0x7fc00000, 0xffffffff, 0x7f800001, 0xff800fff, 0x7fffffff};
        reference ref;
        reference_make(&ref, &p, REFERENCE_UNIFORM, 0, mode);
        for (int64_t i = 0; i < 5; i++) reference_set_bits(&ref.a, 0, i * 5, i * 9, nans[i]);
        reference_set_bits(&ref.b, 0, 36, 29, nans[2]);
        if (on_gpu_run(&ref, 1, 0))
            for (int64_t at = 0; at < p.m * p.n; at++) {
                const int planted = (at / p.n % 5 == 0 && at / p.n < 25) || at % p.n == 29;
                if (!isnan(reference_get(&ref.c, 0, at / p.n, at % p.n)) == !planted) continue;
                on_gpu_complain(&p, "element (%lld, %lld) is %sNaN", (long long)(at / p.n), (long long)(at % p.n),
                                planted ? "not " : "");
                break;
            }
        reference_free(&ref);
    }
    on_gpu_verdict();
}

/* ---- f16 sums ---- */

/* 256 * 255.875 = 65504, the largest f16, and one more product. */
static void run_f16_sum(uint32_t math, double b, double right)
{
    const jg_problem p = {.m = 20, .n = 24, .k = 2, .type_a = JG_F16, .type_c = JG_F32, .math = math, .form = JG_FORM_GENERIC};
    reference ref;
    reference_make(&ref, &p, REFERENCE_ONES, 0, 0);
    for (int64_t i = 0; i < p.m; i++) {
        reference_set(&ref.a, 0, i, 0, i % 2 ? -256 : 256);
        reference_set(&ref.a, 0, i, 1, i % 2 ? -4 : 4);
    }
    for (int64_t j = 0; j < p.n; j++) {
        reference_set(&ref.b, 0, 0, j, 255.875);
        reference_set(&ref.b, 0, 1, j, b);
    }
    if (on_gpu_run(&ref, 1, 0))
        for (int64_t at = 0; at < p.m * p.n; at++) {
            const double got = reference_get(&ref.c, 0, at / p.n, at % p.n), wanted = at / p.n % 2 ? -right : right;
            if (got == wanted) continue;
            on_gpu_complain(&p, "65504 + 4 * %g gives %g, not %g", b, got, wanted);
            break;
        }
    reference_free(&ref);
}

static void test_f16_sums(void **state)
{
    (void)state;
    on_gpu_need_modes();
    run_f16_sum(JG_MATH_F16, 3.75, 65504);
    run_f16_sum(JG_MATH_F16, 4, (double)INFINITY);
    run_f16_sum(JG_MATH_F16, 250, (double)INFINITY);
    run_f16_sum(JG_MATH_DEFAULT, 4, 65520);
    run_f16_sum(JG_MATH_DEFAULT, 250, 66504);
    for (unsigned ops = 0; ops < 4; ops++) {
        const jg_problem p = {.m = 70, .n = 40, .k = 96 + 37 * ops, .type_a = JG_F16, .type_c = ops % 2 ? JG_F32 : JG_F16,
                              .op_a = (jg_op)(ops & 1), .op_b = (jg_op)(ops >> 1), .math = JG_MATH_F16,
                              .form = ops % 2 ? JG_FORM_SPECIALISED : JG_FORM_GENERIC};
        reference ref;
        reference_make(&ref, &p, REFERENCE_UNIFORM, 0, ops);
        if (on_gpu_run(&ref, 0.7f, -1.3f)) on_gpu_judge(&ref, "f16 sums", 0.7f, -1.3f, 0);
        reference_free(&ref);
    }
    on_gpu_verdict();
}

/* ---- the same bits ---- */

enum { STREAMS = 2, RUNS = 20, ITEMS = 3, OTHER_BYTES = 4 << 20 };

static CUstream streams[STREAMS];

/* A function of the driver's: the library makes no streams. */
static void find(const char *name, void *function)
{
    void *const symbol = dlsym(on_gpu_context->device.driver->handle, name);
    assert_non_null(symbol);
    memcpy(function, &symbol, sizeof symbol);
}

static void make_streams(void)
{
    device_scope scope;
    CUresult (*create)(CUstream *, unsigned);
    find("cuStreamCreate", &create);
    assert_int_equal(device_enter(&on_gpu_context->device, &scope), JG_OK);
    for (int i = 0; i < STREAMS; i++) assert_int_equal(create(&streams[i], CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    device_leave(&on_gpu_context->device, &scope);
}

static void destroy_streams(void)
{
    device_scope scope;
    CUresult (*destroy)(CUstream);
    find("cuStreamDestroy_v2", &destroy);
    assert_int_equal(device_enter(&on_gpu_context->device, &scope), JG_OK);
    for (int i = 0; i < STREAMS; i++) assert_int_equal(destroy(streams[i]), CUDA_SUCCESS);
    device_leave(&on_gpu_context->device, &scope);
}

/* Other work on both streams, so that blocks meet other neighbours each time. It fills a stream's part of the arena's end. */
static void queue_other_work(int run)
{
    char *const end = (char *)on_gpu_arena + ON_GPU_ARENA_BYTES - OTHER_BYTES;
    const float alpha = 0;
    const jg_problem p = {.m = 64 + 32 * (run % 3), .n = 96, .k = 64, .form = JG_FORM_GENERIC};
    for (int i = 0; i < run % 4; i++) {
        const int s = i % STREAMS;
        const jg_operands data = {.c = end + OTHER_BYTES / STREAMS * s, .alpha = &alpha, .stream = streams[s]};
        on_gpu_must(&p, jg_gemm(on_gpu_context, &p, &data));
    }
}

/* An item of C, whose rows are dense. */
static const unsigned char *item_of(const reference *ref, int64_t item, size_t bytes)
{
    return ref->c.block + ref->c.offset_bytes + (size_t)item * bytes;
}

static void run_again_and_again(const jg_problem *in, size_t element)
{
    jg_problem p = *in;
    const size_t bytes = (size_t)(p.m * p.n) * element;
    const float alpha = 0.7f, beta = 0;
    reference ref;
    jg_operands data;
    jg_plan *made = NULL;
    unsigned char *first = malloc(bytes);
    assert_non_null(first);
    reference_make(&ref, &p, REFERENCE_UNIFORM, 0, 31);
    on_gpu_must(&p, on_device_upload(on_gpu_context, on_gpu_arena, ON_GPU_ARENA_BYTES, &ref, &alpha, &beta, &data));
    on_gpu_must(&p, jg_plan_create(on_gpu_context, &p, &made));
    for (int run = 0; run < RUNS && made; run++) {
        data.stream = streams[run % STREAMS];
        queue_other_work(run);
        jg_status status = jg_plan_run(made, &data);
        if (status == JG_OK) status = jg_synchronize(on_gpu_context, data.stream);
        if (status == JG_OK) status = on_device_download(on_gpu_context, &data, &ref, ref.c.block);
        if (!on_gpu_must(&p, status)) break;
        if (run == 0) {
            on_gpu_judge(&ref, "first run", alpha, beta, 0);
            memcpy(first, item_of(&ref, 0, bytes), bytes);
        }
        for (int64_t item = 0; item < ref.batch; item++)
            if (memcmp(first, item_of(&ref, item, bytes), bytes) != 0)
                on_gpu_complain(&p, "other bits in run %d, item %lld", run, (long long)item);
    }
    jg_plan_destroy(made);
    /* And by itself, if its k is summed in as many slices then. */
    problem batch, single;
    assert_int_equal(problem_canonicalise(&ref.problem, &batch), JG_OK);
    ref.problem.batch = 1;
    assert_int_equal(problem_canonicalise(&ref.problem, &single), JG_OK);
    data.stream = NULL;
    const limits *l = &on_gpu_context->device.limits;
    if (plan_slices(&batch, l) == plan_slices(&single, l) && on_gpu_run_on(&ref, &data) && memcmp(first, item_of(&ref, 0, bytes), bytes) != 0)
        on_gpu_complain(&ref.problem, "other bits than in a batch");
    reference_free(&ref);
    free(first);
}

static void test_the_same_product_has_the_same_bits(void **state)
{
    (void)state;
    on_gpu_need();
    static const struct {
        jg_type a, b, c;
        uint32_t math;
        size_t element;
    } cases[] = {
        {JG_F32, JG_F32, JG_F32, JG_MATH_DEFAULT, 4}, {JG_F16, JG_F16, JG_F16, JG_MATH_DEFAULT, 2},
        {JG_S8, JG_S8, JG_S32, JG_MATH_DEFAULT, 4},   {JG_BF16, JG_S8, JG_F32, JG_MATH_DEFAULT, 4},
        {JG_F32, JG_F32, JG_F32, JG_MATH_STRICT, 4},  {JG_F32, JG_F32, JG_F32, JG_MATH_F32_3XTF32, 4},
        {JG_F16, JG_F16, JG_F32, JG_MATH_F16, 4},
    };
    make_streams();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0] - (on_gpu_architecture() == 75 ? 2 : 0); i++) {
        /* All items share A and B. */
        const jg_problem p = {.m = 70, .n = 88, .k = 133, .batch = ITEMS,
                              .type_a = cases[i].a, .type_b = cases[i].b, .type_c = cases[i].c,
                              .stride_c = 70 * 88, .math = cases[i].math, .form = i % 2 ? JG_FORM_GENERIC : JG_FORM_AUTO};
        run_again_and_again(&p, cases[i].element);
    }
    destroy_streams();
    on_gpu_verdict();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_strict_has_the_bits_of_the_plain_loop),
        cmocka_unit_test(test_strict_is_monotone),
        cmocka_unit_test(test_tf32_is_never_used_unasked),
        cmocka_unit_test(test_3xtf32_is_as_accurate_as_f32),
        cmocka_unit_test(test_nan_stays_nan_in_tf32_modes),
        cmocka_unit_test(test_f16_sums),
        cmocka_unit_test(test_the_same_product_has_the_same_bits),
    };
    const char *filter = getenv("JG_TEST_FILTER");
    if (filter) cmocka_set_test_filter(filter);
    return cmocka_run_group_tests(tests, on_gpu_open, on_gpu_close);
}
