/* The planner: access widths, legality rule by rule, occupancy against hand-computed figures, sensible choices. */
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

static void test_access(void **state)
{
    (void)state;
    problem p = make(64, 64, 64, JG_F16);
    access_widths w = plan_access(&p, 16, 16, 16);
    assert_int_equal(w.a, 16);
    assert_int_equal(w.b, 16);
    assert_int_equal(w.c, 1);
    w = plan_access(&p, 2, 4, 4); /* four f16 need 8 bytes */
    assert_int_equal(w.a, 2);
    assert_int_equal(w.b, 4);
    assert_int_equal(w.c, 0);
    p = make(64, 63, 65, JG_F16); /* odd rows */
    w = plan_access(&p, 16, 16, 16);
    assert_int_equal(w.a, 2);
    assert_int_equal(w.b, 2);
    assert_int_equal(w.c, 0);
    p = make(1, 64, 65, JG_F16); /* with one row its length does not matter */
    assert_int_equal(plan_access(&p, 16, 16, 16).a, 16);
    p = make(64, 64, 66, JG_F32);
    assert_int_equal(plan_access(&p, 16, 16, 16).a, 4); /* f32 kernels have no 8-byte loads */
    p = make(64, 64, 64, JG_F16);
    p.batch = 2;
    p.stride_a = 64 * 64 + 4;
    p.stride_c = 64 * 64;
    w = plan_access(&p, 16, 16, 16);
    assert_int_equal(w.a, 8);
    assert_int_equal(w.b, 16);
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
    c.spec.type_in = c.spec.type_c = JG_F16;
    c.spec.vec_a = c.spec.vec_b = 16;
    c.spec.tile = (tile){64, 64, 32, 32, 32, 3};
    plan_complete(p, l, &c);
    return c;
}

static void expect_refusal(const problem *p, const limits *l, plan c, const char *word)
{
    char reason[160] = "";
    plan_complete(p, l, &c);
    assert_false(plan_is_legal(p, l, &c, 16384, reason, sizeof reason));
    if (!strstr(reason, word)) fail_msg("\"%s\" does not say \"%s\"", reason, word);
}

static void test_legality_rules(void **state)
{
    (void)state;
    const problem p = make(512, 512, 512, JG_F16);
    const limits orin = of(87), turing = of(75), ada = of(89);
    char reason[160] = "";
    plan c = legal_plan(&p, &orin);
    assert_true(plan_is_legal(&p, &orin, &c, 16384, reason, sizeof reason));
    assert_string_equal(reason, "");

    plan bad = legal_plan(&p, &turing);
    expect_refusal(&p, &turing, bad, "mma.sync");
    bad = c, bad.spec.tile.warp_n = 48;
    expect_refusal(&p, &orin, bad, "does not divide");
    bad = c, bad.spec.tile.k = 24;
    expect_refusal(&p, &orin, bad, "16x16x16");
    bad = c, bad.spec.tile.stages = 1;
    expect_refusal(&p, &orin, bad, "1 stage");
    bad = c, bad.spec.tile = (tile){256, 256, 32, 16, 16, 3};
    expect_refusal(&p, &orin, bad, "threads");
    bad = c, bad.spec.tile = (tile){128, 128, 32, 128, 128, 2};
    expect_refusal(&p, &orin, bad, "registers");
    bad = c, bad.spec.tile = (tile){128, 128, 64, 64, 32, 4};
    expect_refusal(&p, &ada, bad, "shared memory");
    bad = c, bad.spec.tile = (tile){64, 64, 64, 64, 32, 9}; /* two warps in all of the shared memory */
    expect_refusal(&p, &orin, bad, "a smaller tile");
    bad = c, bad.spec.family = FAMILY_SIMT, bad.spec.tile = (tile){128, 128, 8, 8, 8, 2};
    expect_refusal(&p, &orin, bad, "16-bit");
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
    static const int64_t shapes[][3] = {{1, 1, 1}, {64, 64, 64}, {1021, 1023, 1025}, {1, 4096, 4096}, {4096, 4096, 4096}, {2147483647, 1, 1}};
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

static void count_spec(void *user, const kernel_spec *spec)
{
    assert_int_equal(spec->form, JG_FORM_GENERIC);
    ++*(int *)user;
}

/* Whatever the planner chooses in generic form must be in the generic set. */
typedef struct membership {
    const kernel_spec *wanted;
    int found;
} membership;

static void look_for(void *user, const kernel_spec *spec)
{
    membership *m = user;
    kernel_key a, b;
    kernel_encode_key(spec, &a);
    kernel_encode_key(m->wanted, &b);
    m->found |= memcmp(&a, &b, sizeof a) == 0;
}

static void test_generic_set(void **state)
{
    (void)state;
    for (size_t a = 0; arch_at(a); a++) {
        const limits l = of(arch_at(a)->number);
        int kernels = 0;
        plan_generic_set(JG_F16, &l, count_spec, &kernels);
        plan_generic_set(JG_F32, &l, count_spec, &kernels);
        assert_in_range(kernels, 4, 40);
        for (int type = JG_F32; type <= JG_BF16; type++)
            for (int64_t size = 1; size < 5000; size = size * 3 + 1)
                for (unsigned variant = 0; variant < 8; variant++) {
                    problem p = make(size, size + 7 * (variant >> 2), size, (jg_type)type);
                    p.op_a = variant & 1, p.op_b = variant >> 1 & 1;
                    plan chosen;
                    assert_int_equal(plan_choose(&p, plan_access(&p, 16, 16, 16), JG_FORM_GENERIC, &l, &chosen), JG_OK);
                    membership m = {&chosen.spec, 0};
                    plan_generic_set((jg_type)type, &l, look_for, &m);
                    assert_true(m.found);
                }
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_access),
        cmocka_unit_test(test_occupancy),
        cmocka_unit_test(test_legality_rules),
        cmocka_unit_test(test_every_arch_has_a_plan_for_everything),
        cmocka_unit_test(test_choice_is_sensible),
        cmocka_unit_test(test_batch_larger_than_a_grid),
        cmocka_unit_test(test_generic_set),
        cmocka_unit_test(test_unknown_arch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
