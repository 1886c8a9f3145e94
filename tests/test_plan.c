/* The planner: legality rule by rule, occupancy against hand-computed figures, sensible choices. */
#include "plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static problem make(int64_t m, int64_t n, int64_t k, jg_type type)
{
    problem p;
    const jg_problem in = {.m = m, .n = n, .k = k, .type_a = type};
    assert_int_equal(problem_canonicalise(&in, &p), JG_OK);
    return p;
}

static limits of(int number)
{
    limits l;
    assert_int_equal(limits_of_arch(number, 0, &l), JG_OK);
    return l;
}

/* CUDA's occupancy arithmetic by hand. */
static void test_occupancy(void **state)
{
    (void)state;
    const limits orin = of(87), turing = of(75);
    int by_shared;
    /* 256 threads of 128 registers fill 32,768 registers: two blocks; shared memory alone would allow three. */
    assert_int_equal(plan_occupancy(&orin, 256, 128, 49152, &by_shared), 2);
    assert_int_equal(by_shared, 3);
    /* 1,536 threads an SM. */
    assert_int_equal(plan_occupancy(&orin, 512, 32, 1024, &by_shared), 3);
    /* 16 blocks an SM. */
    assert_int_equal(plan_occupancy(&orin, 32, 32, 1024, &by_shared), 16);
    /* 64 KiB of shared memory. */
    assert_int_equal(plan_occupancy(&turing, 128, 32, 40000, &by_shared), 1);
    assert_int_equal(plan_occupancy(&turing, 128, 32, 70000, &by_shared), 0);
}

/* A legal candidate for each rule to spoil. */
static plan legal_plan(const problem *p, const limits *l)
{
    plan c;
    memset(&c, 0, sizeof c);
    c.spec.family = FAMILY_MMA;
    c.spec.arch = (uint16_t)l->arch->number;
    c.spec.form = JG_FORM_SPECIALISED;
    c.spec.type_a = c.spec.type_b = JG_F16;
    c.spec.fusion = JG_F16 << FUSION_TYPE_C_SHIFT;
    c.spec.vec_a = c.spec.vec_b = 16;
    c.spec.tile = (tile){64, 64, 32, 32, 32, 3, 1};
    plan_complete(p, l, &c);
    return c;
}

static void expect_refusal(const problem *p, const limits *l, plan c, const char *word)
{
    char reason[160] = "";
    plan_complete(p, l, &c);
    assert_false(plan_is_legal(p, l, &c, reason, sizeof reason));
    if (!strstr(reason, word)) fail_msg("\"%s\" does not say \"%s\"", reason, word);
}

static void test_legality_rules(void **state)
{
    (void)state;
    const problem p = make(512, 512, 512, JG_F16);
    const limits orin = of(87), turing = of(75), ada = of(89);
    char reason[160] = "";
    plan c = legal_plan(&p, &orin);
    assert_true(plan_is_legal(&p, &orin, &c, reason, sizeof reason));
    assert_string_equal(reason, "");

    plan bad = legal_plan(&p, &turing);
    expect_refusal(&p, &turing, bad, "mma.sync");
    bad = c, bad.spec.tile.warp_n = 48;
    expect_refusal(&p, &orin, bad, "does not divide");
    bad = c, bad.spec.tile.k = 24;
    expect_refusal(&p, &orin, bad, "16x16x16");
    bad = c, bad.spec.tile = (tile){96, 64, 32, 32, 32, 3, 1};
    expect_refusal(&p, &orin, bad, "powers of two");
    bad.spec.tile = (tile){64, 64, 96, 32, 32, 3, 3};
    expect_refusal(&p, &orin, bad, "powers of two");
    bad = c, bad.spec.tile.stages = 1;
    expect_refusal(&p, &orin, bad, "1 stage");
    bad = c, bad.spec.tile = (tile){256, 256, 32, 16, 16, 3, 1};
    expect_refusal(&p, &orin, bad, "threads");
    bad = c, bad.spec.tile = (tile){128, 128, 32, 128, 128, 2, 1};
    expect_refusal(&p, &orin, bad, "registers");
    bad = c, bad.spec.tile = (tile){128, 128, 64, 64, 32, 4, 1};
    expect_refusal(&p, &ada, bad, "shared memory");
    bad = c, bad.spec.tile = (tile){64, 64, 64, 64, 32, 9, 1}; /* two warps in all of the shared memory */
    expect_refusal(&p, &orin, bad, "schedulers");
    bad = c, bad.spec.family = FAMILY_SIMT, bad.spec.tile = (tile){128, 128, 8, 8, 8, 2, 1};
    expect_refusal(&p, &orin, bad, "narrow types");
    bad = c, bad.spec.type_a = bad.spec.type_b = JG_S8; /* of bytes a step is 32 */
    assert_true(plan_is_legal(&p, &orin, &c, reason, sizeof reason));
    bad.spec.tile.k = 48;
    expect_refusal(&p, &orin, bad, "16x16x32");
    bad = c, bad.spec.family = FAMILY_TF32, bad.spec.type_a = bad.spec.type_b = JG_F32,
    bad.spec.tile = (tile){64, 64, 12, 32, 32, 2, 1};
    expect_refusal(&p, &orin, bad, "16x16x8");
    bad.spec.tile = (tile){64, 64, 16, 32, 8, 2, 1};
    expect_refusal(&p, &orin, bad, "16x16x8");
    bad.spec.tile = (tile){64, 64, 24, 32, 32, 2, 1};
    expect_refusal(&p, &orin, bad, "power of two");
    bad.spec.tile = (tile){64, 64, 16, 32, 32, 2, 1};
    expect_refusal(&p, &turing, bad, "mma.sync");
    bad = c, bad.spec.family = FAMILY_SIMT, bad.spec.tile = (tile){64, 64, 10, 4, 4, 2, 1};
    expect_refusal(&p, &orin, bad, "4x4x4");
    bad = c, bad.spec.tile.slices = 4; /* two steps of 16 */
    expect_refusal(&p, &orin, bad, "4 slices do not divide");
    bad = c, bad.spec.family = FAMILY_SIMT, bad.spec.tile = (tile){64, 64, 16, 4, 4, 2, 2};
    expect_refusal(&p, &orin, bad, "narrow types on CUDA cores");
    bad.spec.type_a = bad.spec.type_b = JG_F32;
    plan_complete(&p, &orin, &bad);
    assert_true(plan_is_legal(&p, &orin, &bad, reason, sizeof reason));
    bad.spec.math = JG_MATH_STRICT | JG_MATH_FLUSH;
    expect_refusal(&p, &orin, bad, "strict");
    problem huge = p;
    huge.m = huge.n = 2147483647;
    expect_refusal(&huge, &orin, c, "grid");
}

typedef struct tally {
    int legal, refused;
} tally;

static void count(void *user, const plan *c, const char *reason)
{
    tally *t = user;
    if (reason[0]) {
        t->refused++;
        return;
    }
    t->legal++;
    assert_true(c->blocks_per_sm >= 1 && c->cost > 0 && c->grid_x >= 1);
}

static void test_every_arch_has_a_plan_for_everything(void **state)
{
    (void)state;
    static const int64_t shapes[][3] = {{1, 1, 1},       {64, 64, 64},       {1021, 1023, 1025},
                                        {1, 4096, 4096}, {4096, 4096, 4096}, {2147483647, 1, 1}};
    for (size_t a = 0; arch_at(a); a++)
        for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
            for (int type = JG_F32; type <= JG_BF16; type++)
                for (int form = JG_FORM_GENERIC; form <= JG_FORM_SPECIALISED; form++)
                    for (unsigned align = 2; align <= 16; align *= 8) {
                        const problem p = make(shapes[s][0], shapes[s][1], shapes[s][2], (jg_type)type);
                        const limits l = of(arch_at(a)->number);
                        const access_widths w = plan_access(&p, align, align, align);
                        plan chosen;
                        tally t = {0, 0};
                        assert_int_equal(plan_choose(&p, w, (jg_form)form, &l, &chosen), JG_OK);
                        plan_each(&p, w, (jg_form)form, &l, count, &t);
                        assert_true(t.legal >= 1);
                        assert_true(chosen.shared_bytes <= l.shared_per_block);
                        assert_int_equal(chosen.spec.family, type != JG_F32 && l.arch->has_mma ? FAMILY_MMA : FAMILY_SIMT);
                    }
}

/* The numeric class must not depend on the size, or a swap of kernels would be visible. */
static void test_choice_is_sensible(void **state)
{
    (void)state;
    const limits orin = of(87), h200 = of(90);
    plan small, large;
    problem p = make(64, 64, 64, JG_F16);
    assert_int_equal(plan_choose(&p, plan_access(&p, 16, 16, 16), JG_FORM_SPECIALISED, &h200, &small), JG_OK);
    p = make(8192, 8192, 4096, JG_F16);
    assert_int_equal(plan_choose(&p, plan_access(&p, 16, 16, 16), JG_FORM_SPECIALISED, &h200, &large), JG_OK);
    assert_true(small.spec.tile.m * small.spec.tile.n < large.spec.tile.m * large.spec.tile.n);
    assert_true(large.spec.tile.m * large.spec.tile.n >= 128 * 128);
    /* 16 SMs want larger tiles than 132 for the same size. */
    p = make(512, 512, 512, JG_F16);
    assert_int_equal(plan_choose(&p, plan_access(&p, 16, 16, 16), JG_FORM_SPECIALISED, &h200, &small), JG_OK);
    assert_int_equal(plan_choose(&p, plan_access(&p, 16, 16, 16), JG_FORM_SPECIALISED, &orin, &large), JG_OK);
    assert_true(small.spec.tile.m * small.spec.tile.n <= large.spec.tile.m * large.spec.tile.n);
}

static void test_batch_larger_than_a_grid(void **state)
{
    (void)state;
    const jg_problem in = {.m = 8, .n = 8, .k = 8, .batch = 100000, .stride_a = 64, .stride_b = 64, .stride_c = 64};
    problem p;
    plan chosen;
    const limits l = of(87);
    assert_int_equal(problem_canonicalise(&in, &p), JG_OK);
    assert_int_equal(plan_choose(&p, plan_access(&p, 16, 16, 16), JG_FORM_SPECIALISED, &l, &chosen), JG_OK);
    assert_int_equal(chosen.grid_y, 65535);
    assert_int_equal(chosen.spec.single, 0);
}

/* A problem with dynamic dimensions, planned with 16-byte pointers. */
static plan plan_dynamic(jg_problem in, const limits *l)
{
    problem p;
    plan chosen;
    assert_int_equal(problem_canonicalise(&in, &p), JG_OK);
    assert_int_equal(plan_choose(&p, plan_access(&p, 16, 16, 16), JG_FORM_SPECIALISED, l, &chosen), JG_OK);
    return chosen;
}

/* A leading dimension follows the dimension that stored rows are long; the rest stays constant. */
static void test_dynamic_dimensions_are_left_to_the_launch(void **state)
{
    (void)state;
    const limits l = of(87);
    for (uint32_t dynamic = 0; dynamic <= DYNAMIC_ALL; dynamic++)
        for (unsigned ops = 0; ops < 4; ops++)
            for (int64_t batch = 1; batch <= 3; batch += 2) {
                const jg_problem in = {.m = 40, .n = 48, .k = 56, .batch = batch, .type_a = JG_F16, .op_a = (jg_op)(ops & 1),
                                       .op_b = (jg_op)(ops >> 1), .lda = 80, .ldb = 88, .ldc = 96, .stride_c = 40 * 96,
                                       .dynamic = dynamic};
                const kernel_spec s = plan_dynamic(in, &l).spec;
                const int m = (dynamic & JG_DYNAMIC_M) != 0, n = (dynamic & JG_DYNAMIC_N) != 0, k = (dynamic & JG_DYNAMIC_K) != 0;
                assert_int_equal(s.m, m ? 0 : 40);
                assert_int_equal(s.n, n ? 0 : 48);
                assert_int_equal(s.k, k ? 0 : 56);
                assert_int_equal(s.lda, (in.op_a ? m : k) ? 0 : 80);
                assert_int_equal(s.ldb, (in.op_b ? k : n) ? 0 : 88);
                assert_int_equal(s.ldc, n ? 0 : 96);
                assert_int_equal(s.single, batch == 1 && !(dynamic & JG_DYNAMIC_BATCH));
                assert_int_equal(s.form, JG_FORM_SPECIALISED);
                assert_int_equal(s.vec_a, 16);
            }
    /* To a column-major problem's kernel, the caller's m is n. */
    const jg_problem columns = {.m = 40, .n = 48, .k = 56, .order = JG_COL_MAJOR, .dynamic = JG_DYNAMIC_M};
    const kernel_spec s = plan_dynamic(columns, &l).spec;
    assert_true(s.m == 48 && s.n == 0 && s.ldc == 0 && s.ldb == 0 && s.lda == 56);
    /* k = 0 is no constant either, so that 0 says the same everywhere. */
    assert_int_equal(plan_dynamic((jg_problem){.m = 40, .n = 48}, &l).spec.k, 0);
}

/* The keys of the kernels met so far. */
typedef struct met_keys {
    kernel_key list[64];
    size_t count;
} met_keys;

/* Returns 1 if the key is a new one. */
static int meet(met_keys *met, kernel_spec spec)
{
    kernel_key key;
    kernel_encode_key(&spec, &key);
    for (size_t i = 0; i < met->count; i++)
        if (memcmp(&met->list[i], &key, sizeof key) == 0) return 0;
    assert_true(met->count < sizeof met->list / sizeof met->list[0]);
    met->list[met->count++] = key;
    return 1;
}

/* One dimension runs from 1 to 1024 or more, as `dynamic` says; the others stand still. */
static void move(jg_problem *p, uint32_t dynamic, int64_t size)
{
    if (dynamic & JG_DYNAMIC_M) p->m = size;
    if (dynamic & JG_DYNAMIC_N) p->n = size;
    if (dynamic & JG_DYNAMIC_K) p->k = size;
    if (dynamic & JG_DYNAMIC_BATCH) {
        p->batch = size;
        p->stride_a = p->m * p->k, p->stride_b = p->k * p->n, p->stride_c = p->m * p->n;
    }
}

static void test_a_moving_size_makes_few_kernels(void **state)
{
    (void)state;
    static const jg_type each[] = {JG_F32, JG_F16};
    for (size_t a = 0; arch_at(a); a++)
        for (size_t y = 0; y < 2; y++)
            for (int bit = 0; bit < 4; bit++) {
                const limits l = of(arch_at(a)->number);
                jg_problem p = {.m = 192, .n = 768, .k = 256, .type_a = each[y], .dynamic = 1u << bit};
                met_keys met = {.count = 0};
                /* Multiples of 8, so that the access widths stand still too; then every size, where no row follows it. */
                for (int64_t size = 8; size <= 1024; size += 8) {
                    move(&p, p.dynamic, size);
                    const int new = meet(&met, plan_dynamic(p, &l).spec);
                    if (new && size > 8 && ((size - 8) & (size - 9)) != 0) fail_msg("a new kernel at %lld", (long long)size);
                }
                assert_in_range(met.count, 1, 8);
                if (p.dynamic == JG_DYNAMIC_N || p.dynamic == JG_DYNAMIC_K) continue;
                met.count = 0;
                for (int64_t size = 1; size <= 1024; size++) {
                    move(&p, p.dynamic, size);
                    meet(&met, plan_dynamic(p, &l).spec);
                }
                assert_in_range(met.count, 1, 11);
            }
}

/* Between two powers of two one kernel serves, whichever side of a tile the size lies; what is launched follows the size. */
static void test_between_two_powers_one_kernel_serves(void **state)
{
    (void)state;
    const limits l = of(90);
    met_keys met = {.count = 0};
    for (int64_t m = 17; m <= 32; m++) {
        const jg_problem small = {.m = m, .n = 768, .k = 768, .type_a = JG_F16, .dynamic = JG_DYNAMIC_M};
        meet(&met, plan_dynamic(small, &l).spec);
    }
    assert_int_equal(met.count, 1);
    met.count = 0;
    jg_problem p = {.m = 1024, .n = 768, .k = 768, .type_a = JG_F16};
    const plan full = plan_dynamic(p, &l);
    p.dynamic = JG_DYNAMIC_M;
    for (p.m = 513; p.m <= 1024; p.m++) {
        const plan c = plan_dynamic(p, &l);
        meet(&met, c.spec);
        assert_memory_equal(&c.spec.tile, &full.spec.tile, sizeof c.spec.tile);
        assert_true(c.cost == full.cost);
        assert_int_equal(c.grid_x, (p.m + c.spec.tile.m - 1) / c.spec.tile.m * ((768 + c.spec.tile.n - 1) / c.spec.tile.n));
    }
    assert_int_equal(met.count, 1);
    /* All at once; odd rows are a class of their own. */
    met.count = 0;
    for (int64_t i = 0; i < 200; i++) {
        p = (jg_problem){.m = 129 + i * 37 % 128, .n = 257 + i * 59 % 256, .k = 65 + i * 17 % 64, .type_a = JG_F16};
        p.dynamic = DYNAMIC_ALL;
        move(&p, JG_DYNAMIC_BATCH, 9 + i % 8);
        meet(&met, plan_dynamic(p, &l).spec);
    }
    assert_in_range(met.count, 2, 4 * 4 * 2);
    /* The real size decides what is legal. */
    const jg_problem huge = {.m = 2147483647, .n = 2147483647, .k = 8, .type_a = JG_F16, .dynamic = JG_DYNAMIC_M};
    problem q;
    plan none;
    assert_int_equal(problem_canonicalise(&huge, &q), JG_OK);
    assert_int_equal(plan_choose(&q, plan_access(&q, 16, 16, 16), JG_FORM_SPECIALISED, &l, &none), JG_ERR_UNSUPPORTED);
    assert_non_null(strstr(jg_last_error(), "a grid has at most"));
}

/* Each dimension that moves is priced as the next power of two; what the size itself would cost is kept beside it. */
static void test_a_moving_size_has_the_price_of_the_next_power(void **state)
{
    (void)state;
    const limits l = of(90);
    for (int bit = 0; bit < 4; bit++) {
        jg_problem p = {.m = 4096, .n = 4096, .k = 512, .type_a = JG_F16};
        double price[4];
        static const int64_t sizes[] = {2048, 2056, 4088, 4096};
        for (int i = 0; i < 4; i++) {
            p.dynamic = 1u << bit;
            move(&p, p.dynamic, sizes[i]);
            const plan moving = plan_dynamic(p, &l);
            p.dynamic = 0;
            const plan still = plan_dynamic(p, &l);
            price[i] = moving.cost;
            assert_true(still.cost == still.clocks);
            assert_true(i == 1 ? moving.clocks < moving.cost : moving.clocks <= moving.cost);
        }
        assert_true(price[0] < price[1] && price[1] == price[2] && price[2] == price[3]);
    }
}

/* Planned as a generic kernel, a dynamic problem is priced as it is. */
static void test_generic_plans_take_no_notice_of_dynamic(void **state)
{
    (void)state;
    const limits l = of(90);
    for (int64_t m = 1; m < 3000; m = m * 2 + 1) {
        problem p = make(m, 768, 768, JG_F16);
        plan with, without;
        assert_int_equal(plan_choose(&p, plan_access(&p, 16, 16, 16), JG_FORM_GENERIC, &l, &without), JG_OK);
        p.dynamic = DYNAMIC_ALL;
        assert_int_equal(plan_choose(&p, plan_access(&p, 16, 16, 16), JG_FORM_GENERIC, &l, &with), JG_OK);
        met_keys met = {.count = 0};
        assert_true(meet(&met, with.spec) && !meet(&met, without.spec));
        assert_true(with.cost == without.cost && with.grid_x == without.grid_x);
    }
}

static void test_unknown_arch(void **state)
{
    (void)state;
    limits l;
    assert_int_equal(limits_of_arch(70, 0, &l), JG_ERR_ARCH);
    assert_non_null(strstr(jg_last_error(), "sm_70"));
    assert_non_null(strstr(jg_last_error(), "sm_87"));
    assert_int_equal(limits_of_arch(87, 8, &l), JG_OK);
    assert_int_equal(l.sm_count, 8);
}

/* Problem and device alone fix in how many slices k is summed: neither form nor access has a say. Dynamic dimensions keep it
 * between two powers of two. */
static void test_slices_are_a_matter_of_problem_and_device(void **state)
{
    (void)state;
    static const int64_t sizes[] = {1, 8, 33, 64, 300, 512, 1021, 2048};
    enum { SIZES = sizeof sizes / sizeof sizes[0] };
    const limits l = of(87);
    int sliced = 0;
    for (int i = 0; i < SIZES * SIZES * SIZES; i++)
        for (int type = JG_F32; type <= JG_F16; type++) {
            problem p = make(sizes[i % SIZES], sizes[i / SIZES % SIZES], sizes[i / SIZES / SIZES], (jg_type)type);
            const int slices = plan_slices(&p, &l);
            for (unsigned align = 2; align <= 16; align *= 8) {
                plan own, generic;
                int has_generic;
                if (align < type_bytes((jg_type)type)) continue;
                assert_int_equal(plan_choose_both(&p, plan_access(&p, align, align, align), &l, &own, &generic, &has_generic), JG_OK);
                assert_true(has_generic);
                assert_int_equal(own.spec.tile.slices, slices);
                assert_int_equal(generic.spec.tile.slices, slices);
            }
            sliced += slices > 1;
        }
    assert_true(sliced > 100);
    problem p = make(200, 300, 600, JG_F16), q = make(129, 300, 1000, JG_F16);
    p.dynamic = q.dynamic = JG_DYNAMIC_M | JG_DYNAMIC_K;
    assert_int_equal(plan_slices(&p, &l), plan_slices(&q, &l));
    p.math = JG_MATH_STRICT;
    assert_int_equal(plan_slices(&p, &l), 1);
    p.type_a = p.type_b = JG_S8;
    assert_int_equal(plan_slices(&p, &l), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slices_are_a_matter_of_problem_and_device),
        cmocka_unit_test(test_occupancy),
        cmocka_unit_test(test_legality_rules),
        cmocka_unit_test(test_every_arch_has_a_plan_for_everything),
        cmocka_unit_test(test_choice_is_sensible),
        cmocka_unit_test(test_batch_larger_than_a_grid),
        cmocka_unit_test(test_dynamic_dimensions_are_left_to_the_launch),
        cmocka_unit_test(test_a_moving_size_makes_few_kernels),
        cmocka_unit_test(test_between_two_powers_one_kernel_serves),
        cmocka_unit_test(test_a_moving_size_has_the_price_of_the_next_power),
        cmocka_unit_test(test_generic_plans_take_no_notice_of_dynamic),
        cmocka_unit_test(test_unknown_arch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
