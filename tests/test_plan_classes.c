/* The planner: which family computes what where, the generic sets of every class, and what an architecture refuses. */
#include "plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static problem canonical(jg_problem in)
{
    problem p;
    if (problem_canonicalise(&in, &p) != JG_OK) fail_msg("%s", jg_last_error());
    return p;
}

static limits of(int number)
{
    limits l;
    assert_int_equal(limits_of_arch(number, 0, &l), JG_OK);
    return l;
}

/* --- resident classes --- */

typedef struct class_list {
    plan_class list[32];
    size_t count;
} class_list;

static void add_class(void *user, const plan_class *what)
{
    class_list *all = user;
    assert_true(all->count < 32);
    all->list[all->count++] = *what;
}

static void expect_class(uint32_t flag, size_t count, jg_type a, jg_type b, unsigned math)
{
    class_list all = {.count = 0};
    plan_each_resident(flag, add_class, &all);
    assert_int_equal(all.count, count);
    assert_int_equal(all.list[0].type_a, a);
    assert_int_equal(all.list[0].type_b, b);
    assert_int_equal(all.list[0].math, math);
}

static void flags_stand_for_classes(void **state)
{
    (void)state;
    expect_class(JG_RESIDENT_F32, 1, JG_F32, JG_F32, JG_MATH_DEFAULT);
    expect_class(JG_RESIDENT_F16, 1, JG_F16, JG_F16, JG_MATH_DEFAULT);
    expect_class(JG_RESIDENT_BF16, 1, JG_BF16, JG_BF16, JG_MATH_DEFAULT);
    expect_class(JG_RESIDENT_S8, 1, JG_S8, JG_S8, JG_MATH_DEFAULT);
    expect_class(JG_RESIDENT_S4, 1, JG_S4, JG_S4, JG_MATH_DEFAULT);
    expect_class(JG_RESIDENT_E4M3, 1, JG_E4M3, JG_E4M3, JG_MATH_DEFAULT);
    expect_class(JG_RESIDENT_TF32, 1, JG_F32, JG_F32, JG_MATH_TF32);
    expect_class(JG_RESIDENT_3XTF32, 1, JG_F32, JG_F32, JG_MATH_F32_3XTF32);
    /* A column-major product's operands change places, so that both orders are wanted. */
    expect_class(JG_RESIDENT_U8, 2, JG_U8, JG_S8, JG_MATH_DEFAULT);
    class_list all = {.count = 0};
    plan_each_resident(JG_RESIDENT_U8, add_class, &all);
    assert_true(all.list[1].type_a == JG_S8 && all.list[1].type_b == JG_U8 && all.list[1].math == JG_MATH_DEFAULT);
    all.count = 0;
    plan_each_resident(PLAN_RESIDENT_ALL, add_class, &all);
    assert_int_equal(all.count, 20);
    /* Of each class the kernels of single calls, then those of grouped ones. */
    for (size_t i = 0; i < all.count; i++) {
        assert_int_equal(all.list[i].grouped, i % 2);
        if (i % 2) assert_memory_equal(&all.list[i], &all.list[i - 1], offsetof(plan_class, grouped));
    }
    all.count = 0;
    plan_each_resident(JG_RESIDENT_NONE, add_class, &all);
    assert_int_equal(all.count, 0);
}

/* --- generic sets --- */

typedef struct spec_list {
    kernel_spec list[256];
    size_t count;
} spec_list;

static void add_spec(void *user, const kernel_spec *spec)
{
    spec_list *all = user;
    assert_true(all->count < sizeof all->list / sizeof all->list[0]);
    all->list[all->count++] = *spec;
}

static int same_key(const kernel_spec *x, const kernel_spec *y)
{
    kernel_key a, b;
    kernel_encode_key(x, &a);
    kernel_encode_key(y, &b);
    return memcmp(&a, &b, sizeof a) == 0;
}

static size_t set_of(plan_class what, int number, spec_list *all)
{
    const limits l = of(number);
    all->count = 0;
    plan_generic_set(&what, &l, add_spec, all);
    return all->count;
}

/* Kernels of a class. Of tensor cores' sets those for the four ops: of three tiles that copy and two that realign, or of tf32's three;
 * two that gather. The largest has no room for turned integers in registers, for 3xtf32 neither, and for tf32's padding in 100 KB
 * of shared memory. Of CUDA cores' sets one for each generic tile: narrow types and strict sums have those of one slice alone, and a
 * Turing's block has no room for the stages of one with sixteen. */
static void every_class_has_its_number_of_kernels(void **state)
{
    (void)state;
    enum { MMA = (3 + 2) * 4, INTEGERS = MMA - 3, TF32 = 3 * 4, TF32_SMALL = TF32 - 3, PRECISE = 2 * 4, GATHER = 2 };
    static const struct {
        plan_class what;
        size_t turing, others;
    } rows[] = {
        {{JG_F32, JG_F32, JG_MATH_DEFAULT, 0}, 6, 7},       {{JG_F16, JG_F16, JG_MATH_DEFAULT, 0}, 1, MMA},
        {{JG_BF16, JG_BF16, JG_MATH_DEFAULT, 0}, 1, MMA},   {{JG_S8, JG_S8, JG_MATH_DEFAULT, 0}, 1, INTEGERS},
        {{JG_U8, JG_S8, JG_MATH_DEFAULT, 0}, 1, INTEGERS},       {{JG_S8, JG_U8, JG_MATH_DEFAULT, 0}, 1, INTEGERS},
        {{JG_S4, JG_S4, JG_MATH_DEFAULT, 0}, 1, GATHER},    {{JG_E4M3, JG_E4M3, JG_MATH_DEFAULT, 0}, 1, GATHER},
        {{JG_F32, JG_F32, JG_MATH_TF32, 0}, 0, TF32},       {{JG_F32, JG_F32, JG_MATH_F32_3XTF32, 0}, 0, PRECISE},
        {{JG_F16, JG_F16, JG_MATH_F16, 0}, 0, MMA},         {{JG_F16, JG_F16, JG_MATH_STRICT, 0}, 1, 1},
        {{JG_F16, JG_F16, JG_MATH_FLUSH, 0}, 1, GATHER},    {{JG_F16, JG_S4, JG_MATH_DEFAULT, 0}, 1, GATHER},
        {{JG_F32, JG_F32, JG_MATH_STRICT, 0}, 2, 2},
    };
    static spec_list all;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (size_t a = 0; arch_at(a); a++) {
            const size_t count = set_of(rows[i].what, arch_at(a)->number, &all);
            const size_t all_of_it = arch_at(a)->number == 75 ? rows[i].turing : rows[i].others;
            const size_t expected = rows[i].others == TF32 && arch_at(a)->mma_tiles == tiles_mma_small ? TF32_SMALL : all_of_it;
            if (count != expected)
                fail_msg("sm_%d: %zu kernels instead of %zu of %s x %s, math %x", arch_at(a)->number, count, expected,
                         type_name((jg_type)rows[i].what.type_a), type_name((jg_type)rows[i].what.type_b), rows[i].what.math);
            for (size_t x = 0; x < count; x++) {
                const kernel_spec *s = &all.list[x];
                assert_true(s->form == JG_FORM_GENERIC && s->fusion == SPEC_FUSION_ARGUMENT && s->vec_c == SPEC_ARGUMENT &&
                            !s->single);
                assert_true(s->type_a == rows[i].what.type_a && s->type_b == rows[i].what.type_b && s->math == rows[i].what.math);
                assert_true(!s->m && !s->n && !s->k && !s->lda && !s->ldb && !s->ldc);
                for (size_t y = 0; y < x; y++) assert_false(same_key(s, &all.list[y]));
            }
        }
}

/* Products of every kind: what is planned for them in generic form. */
static const struct {
    jg_type a, b;
    unsigned math;
} kinds[] = {
    {JG_F32, JG_F32, 0},
    {JG_F16, JG_F16, 0},
    {JG_BF16, JG_BF16, 0},
    {JG_S8, JG_S8, 0},
    {JG_U8, JG_S8, 0},
    {JG_S8, JG_U8, 0},
    {JG_U8, JG_U8, 0},
    {JG_S4, JG_S4, 0},
    {JG_F16, JG_S8, 0},
    {JG_S4, JG_F16, 0},
    {JG_BF16, JG_S4, 0},
    {JG_E4M3, JG_E4M3, 0},
    {JG_E4M3, JG_E5M2, 0},
    {JG_E5M2, JG_E5M2, 0},
    {JG_F32, JG_F32, JG_MATH_TF32},
    {JG_F32, JG_F32, JG_MATH_F32_3XTF32},
    {JG_F32, JG_F32, JG_MATH_STRICT},
    {JG_BF16, JG_BF16, JG_MATH_STRICT},
    {JG_S8, JG_S8, JG_MATH_STRICT},
    {JG_F16, JG_F16, JG_MATH_F16},
    {JG_F16, JG_F16, JG_MATH_FLUSH},
    {JG_F32, JG_F32, JG_MATH_SANITIZE},
    {JG_F16, JG_F16, JG_MATH_F16 | JG_MATH_SANITIZE},
    {JG_E4M3, JG_E4M3, JG_MATH_FLUSH | JG_MATH_SANITIZE},
    {JG_F16, JG_S8, JG_MATH_STRICT | JG_MATH_FLUSH},
};
#define KINDS (sizeof kinds / sizeof kinds[0])

/* What only tensor cores do. */
static int needs_tensor_cores(unsigned math)
{
    const unsigned mode = math & 15;
    return mode == JG_MATH_TF32 || mode == JG_MATH_F32_3XTF32 || mode == JG_MATH_F16;
}

/* Whatever the planner chooses in generic form must be in the class's set. */
static void whatever_is_planned_is_in_the_set(void **state)
{
    (void)state;
    static spec_list all;
    for (size_t a = 0; arch_at(a); a++)
        for (size_t i = 0; i < KINDS; i++) {
            const limits l = of(arch_at(a)->number);
            if (needs_tensor_cores(kinds[i].math) && !l.arch->has_mma) continue;
            for (int64_t size = 1; size < 5000; size = size * 3 + 1)
                for (unsigned variant = 0; variant < 32; variant++) {
                    const problem p = canonical((jg_problem){.m = size,
                                                             .n = size + 7 * (variant >> 2 & 1) + (size + 1) % 2,
                                                             .k = size + size % 2,
                                                             .type_a = kinds[i].a,
                                                             .type_b = kinds[i].b,
                                                             .math = kinds[i].math,
                                                             .lda = 6000,
                                                             .ldb = 6000 + 2 * (variant & 1),
                                                             .op_a = (jg_op)(variant & 1),
                                                             .op_b = (jg_op)(variant >> 1 & 1),
                                                             .order = (jg_order)(variant >> 3 & 1),
                                                             .epilogue = variant >> 4 ? JG_EPILOGUE_BIAS_N : 0,
                                                             .activation = variant >> 4});
                    const plan_class what = plan_class_of(&p);
                    plan chosen;
                    if (!all.count || all.list[0].type_a != what.type_a || all.list[0].type_b != what.type_b ||
                        all.list[0].math != what.math || all.list[0].arch != l.arch->number)
                        set_of(what, l.arch->number, &all);
                    assert_int_equal(plan_choose(&p, plan_access(&p, 16, 16, 16), JG_FORM_GENERIC, &l, &chosen), JG_OK);
                    int found = 0;
                    for (size_t x = 0; x < all.count; x++) found |= same_key(&all.list[x], &chosen.spec);
                    if (!found) {
                        char name[KERNEL_NAME_BYTES];
                        kernel_format_name(&chosen.spec, name);
                        fail_msg("%s is not in its generic set", name);
                    }
                }
        }
}

/* --- families --- */

/* The numeric class must not depend on size, form, alignment or what is fused in, or a swap of kernels would be visible. */
static void types_and_math_alone_decide_the_family(void **state)
{
    (void)state;
    static const int64_t sizes[] = {1, 64, 1023, 4096};
    for (size_t a = 0; arch_at(a); a++)
        for (size_t i = 0; i < KINDS; i++) {
            const limits l = of(arch_at(a)->number);
            const unsigned mode = kinds[i].math & 15;
            if (needs_tensor_cores(kinds[i].math) && !l.arch->has_mma) continue;
            const int expected = mode == JG_MATH_TF32 || mode == JG_MATH_F32_3XTF32                          ? FAMILY_TF32
                                 : mode == JG_MATH_STRICT || kinds[i].a == JG_F32 || !l.arch->has_mma ? FAMILY_SIMT
                                                                                                             : FAMILY_MMA;
            for (int x = 0; x < 64; x++) {
                const int fused = x >> 4 & 1;
                const problem p = canonical((jg_problem){.m = sizes[x & 3], .n = sizes[x >> 2 & 3], .k = 70, .type_a = kinds[i].a,
                                                         .type_b = kinds[i].b, .math = kinds[i].math, .lda = 4096, .ldb = 4096,
                                                         .type_c = fused ? JG_BF16 : JG_DEFAULT_TYPE,
                                                         .epilogue = fused ? JG_EPILOGUE_SCALE_N | JG_EPILOGUE_RESIDUAL : 0});
                for (int form = JG_FORM_GENERIC; form <= JG_FORM_SPECIALISED; form++) {
                    plan chosen;
                    const unsigned align = x >> 5 ? 16 : 4;
                    assert_int_equal(plan_choose(&p, plan_access(&p, align, align, align), (jg_form)form, &l, &chosen), JG_OK);
                    assert_int_equal(chosen.spec.family, expected);
                    assert_int_equal(chosen.spec.fusion, form == JG_FORM_GENERIC ? SPEC_FUSION_ARGUMENT : kernel_fusion(&p));
                    assert_int_equal(chosen.spec.math, kinds[i].math);
                }
            }
        }
}

static void without_tensor_cores_what_needs_them_is_refused(void **state)
{
    (void)state;
    const limits turing = of(75);
    static const struct {
        jg_type type;
        unsigned math;
        const char *name;
    } rows[] = {
        {JG_F32, JG_MATH_TF32, "JG_MATH_TF32"},
        {JG_F32, JG_MATH_F32_3XTF32, "JG_MATH_F32_3XTF32"},
        {JG_F16, JG_MATH_F16, "JG_MATH_F16"},
        {JG_F32, JG_MATH_TF32 | JG_MATH_FLUSH, "JG_MATH_TF32"},
    };
    static spec_list all;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (int form = JG_FORM_GENERIC; form <= JG_FORM_SPECIALISED; form++) {
            char expected[160];
            plan chosen;
            problem p = canonical((jg_problem){.m = 64, .n = 64, .k = 64, .type_a = rows[i].type, .math = rows[i].math});
            const access_widths w = plan_access(&p, 16, 16, 16);
            assert_int_equal(plan_choose(&p, w, (jg_form)form, &turing, &chosen), JG_ERR_UNSUPPORTED);
            snprintf(expected, sizeof expected, "sm_75 has no tensor cores for math = %s; nearest that works: JG_MATH_DEFAULT",
                     rows[i].name);
            assert_string_equal(jg_last_error(), expected);
            assert_int_equal(set_of(plan_class_of(&p), 75, &all), 0);
            /* It does work. */
            p.math = JG_MATH_DEFAULT;
            assert_int_equal(plan_choose(&p, w, (jg_form)form, &turing, &chosen), JG_OK);
            for (size_t a = 1; arch_at(a); a++) {
                const limits l = of(arch_at(a)->number);
                p.math = (uint8_t)rows[i].math;
                assert_int_equal(plan_choose(&p, w, (jg_form)form, &l, &chosen), JG_OK);
            }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flags_stand_for_classes),
        cmocka_unit_test(every_class_has_its_number_of_kernels),
        cmocka_unit_test(whatever_is_planned_is_in_the_set),
        cmocka_unit_test(types_and_math_alone_decide_the_family),
        cmocka_unit_test(without_tensor_cores_what_needs_them_is_refused),
    };
    return cmocka_run_group_tests_name("plan_classes", tests, NULL, NULL);
}
