/* The suite of misaligned layouts, and the labels of groups: which problems there are, and what they are called. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "problem.h"
#include "status_asserts.h"
#include "tools/bench_label.h"
#include "tools/bench_layout.h"
#include "tools/bench_misalign.h"
#include "tools/bench_suites.h"

static sizelist expand(const jg_problem *problems, size_t count)
{
    sizelist sizes = {0}, out = {0};
    sizes.items = malloc(count * sizeof *problems);
    assert_non_null(sizes.items);
    memcpy(sizes.items, problems, count * sizeof *problems);
    sizes.count = sizes.capacity = count;
    assert_int_equal(bench_misalign_expand(&sizes, &out), 0);
    sizelist_free(&sizes);
    assert_int_equal(out.count, count * BENCH_MISALIGNS);
    return out;
}

/* ---- layouts ---- */

/* In every type and op: what the layout says, of each matrix by its own type, and nothing else. */
static void layouts(void **state)
{
    (void)state;
    static const struct { jg_type a, b, c; uint32_t align; } types[] = {
        {JG_F32, JG_F32, JG_F32, 4}, {JG_F16, JG_F16, JG_F32, 2}, {JG_S8, JG_S8, JG_S32, 1}, {JG_F16, JG_S4, JG_F16, 1},
        {JG_S4, JG_S4, JG_S32, 1}, {JG_BF16, JG_BF16, JG_BF16, 2}};
    for (size_t t = 0; t < COUNT(types); t++)
        for (int form = 0; form < 8; form++) {
            const int ta = form & 1, tb = form >> 1 & 1, col = form >> 2 & 1;
            const jg_problem p = {.m = 256, .n = 512, .k = 768, .type_a = types[t].a, .type_b = types[t].b, .type_c = types[t].c,
                                  .op_a = ta ? JG_T : JG_N, .op_b = tb ? JG_T : JG_N,
                                  .order = col ? JG_COL_MAJOR : JG_ROW_MAJOR};
            const int64_t dense[] = {ta == col ? p.k : p.m, tb == col ? p.n : p.k, col ? p.m : p.n};
            const jg_type each[] = {p.type_a, p.type_b, p.type_c};
            sizelist out = expand(&p, 1);
            for (int layout = 0; layout < BENCH_MISALIGNS; layout++) {
                const jg_problem *q = &out.items[layout];
                const int64_t lds[] = {q->lda, q->ldb, q->ldc};
                bench_layout l;
                assert_int_equal(bench_misalign_of(q), layout);
                assert_int_equal(q->align_bytes, layout == BENCH_OFFSET ? types[t].align : 0);
                for (int x = 0; x < 3; x++) {
                    const int64_t odd = dense[x] + (each[x] == JG_S4 ? 2 : 1), padded = jg_good_ld(each[x], dense[x] + 1);
                    assert_int_equal(lds[x], layout == BENCH_ODD_LD ? odd : layout == BENCH_PADDED ? padded : 0);
                }
                assert_ok(bench_layout_make(q, 0, 1, &l));
                assert_int_equal(l.c_offset, layout == BENCH_OFFSET ? type_bytes(p.type_c) : 0);
            }
            sizelist_free(&out);
        }
}

/* Types of a size stay beside each other, and each type has its aligned layout first. */
static void order_of_rows(void **state)
{
    (void)state;
    static const int64_t sizes[][3] = {{256, 256, 256}, {512, 512, 512}, {1024, 1024, 1024}, {197, 768, 768}};
    static const jg_problem types[] = {{.type_a = JG_F32}, {.type_a = JG_F16}};
    const bench_list *list = NULL;
    sizelist out = {0};
    for (size_t i = 0; bench_list_at(i); i++)
        if (strcmp(bench_list_at(i)->name, BENCH_MISALIGN) == 0) list = bench_list_at(i);
    assert_non_null(list);
    assert_int_equal(bench_list_problems(list, types, 2, &out), 0);
    assert_int_equal(out.count, COUNT(sizes) * BENCH_MISALIGNS * 2);
    for (size_t i = 0; i < out.count; i++) {
        const jg_problem *p = &out.items[i];
        const int64_t *size = sizes[i / (2 * BENCH_MISALIGNS)];
        assert_true(p->m == size[0] && p->n == size[1] && p->k == size[2]);
        assert_int_equal(bench_misalign_of(p), i / 2 % BENCH_MISALIGNS);
        assert_int_equal(p->type_a, types[i % 2].type_a);
    }
    sizelist_free(&out);
}

/* The same type twice is one. */
static void a_type_given_twice(void **state)
{
    (void)state;
    static const jg_problem types[] = {{.type_a = JG_F16}, {.type_a = JG_F16}};
    sizelist out = {0};
    for (size_t i = 0; bench_list_at(i); i++)
        if (strcmp(bench_list_at(i)->name, BENCH_MISALIGN) == 0)
            assert_int_equal(bench_list_problems(bench_list_at(i), types, 2, &out), 0);
    assert_int_equal(out.count, 4 * BENCH_MISALIGNS);
    for (size_t i = 0; i < out.count; i++) assert_int_equal(bench_misalign_of(&out.items[i]), i % BENCH_MISALIGNS);
    sizelist_free(&out);
}

/* Against the aligned layout of the same size and kind, and none other. */
static void costs(void **state)
{
    (void)state;
    const jg_problem f16 = {.m = 64, .n = 64, .k = 64, .type_a = JG_F16}, f32 = {.m = 64, .n = 64, .k = 64};
    sizelist of_f16 = expand(&f16, 1), of_f32 = expand(&f32, 1);
    bench_misalign_base base = {.us = 0};
    assert_true(isnan(bench_misalign_cost(&base, &of_f16.items[BENCH_ODD_LD], 5))); /* nothing to compare with yet */
    assert_true(bench_misalign_cost(&base, &of_f16.items[BENCH_ALIGNED], 4) == 1);
    assert_true(bench_misalign_cost(&base, &of_f16.items[BENCH_ODD_LD], 6) == 1.5);
    assert_true(bench_misalign_cost(&base, &of_f16.items[BENCH_OFFSET], 2) == 0.5);
    assert_true(isnan(bench_misalign_cost(&base, &of_f16.items[BENCH_PADDED], NAN)));
    assert_true(isnan(bench_misalign_cost(&base, &of_f32.items[BENCH_ODD_LD], 6)));
    of_f16.items[BENCH_PADDED].m = 65;
    assert_true(isnan(bench_misalign_cost(&base, &of_f16.items[BENCH_PADDED], 6)));
    assert_true(isnan(bench_misalign_cost(&base, &of_f32.items[BENCH_ALIGNED], NAN))); /* refused */
    assert_true(isnan(bench_misalign_cost(&base, &of_f32.items[BENCH_ODD_LD], 6)));
    sizelist_free(&of_f16);
    sizelist_free(&of_f32);
}

/* ---- labels ---- */

static void assert_label(const jg_problem *p, const char *expected)
{
    char label[BENCH_LABEL_BYTES];
    bench_label_make(p, label);
    assert_string_equal(label, expected);
}

static void labels(void **state)
{
    (void)state;
    assert_label(&(jg_problem){.m = 5, .n = 6, .k = 7}, "f32");
    assert_label(&(jg_problem){.m = 5, .type_a = JG_F32, .type_b = JG_F32, .type_c = JG_F32}, "f32");
    assert_label(&(jg_problem){.m = 5, .type_c = JG_F16}, "f32-f16");
    assert_label(&(jg_problem){.m = 5, .n = 8, .k = 9, .lda = 11, .type_a = JG_F16, .order = JG_COL_MAJOR}, "f16");
    assert_label(&(jg_problem){.type_a = JG_BF16, .type_c = JG_F32}, "bf16-f32");
    assert_label(&(jg_problem){.type_a = JG_F32, .type_b = JG_F16}, "?");
    assert_label(&(jg_problem){.type_a = JG_S8}, "s8");
    assert_label(&(jg_problem){.type_a = JG_S8, .type_c = JG_S8}, "s8-s8");
    assert_label(&(jg_problem){.math = JG_MATH_TF32}, "f32:tf32");
    assert_label(&(jg_problem){.m = 7, .op_b = JG_T, .math = JG_MATH_STRICT | JG_MATH_FLUSH}, "f32:strict:flush");
    assert_label(&(jg_problem){.type_a = JG_U8, .type_b = JG_S8, .type_c = JG_U8, .epilogue = JG_EPILOGUE_SCALE_N,
                               .activation = JG_ACTIVATION_RELU}, "u8.s8-u8:scale_n:relu");
    assert_label(&(jg_problem){.type_a = JG_F16, .type_b = JG_S4, .group_k = 64, .zero_points = 1}, "f16.s4:group=64:zeros");
}

static void ceilings(void **state)
{
    (void)state;
    static const struct { jg_problem p; const char *name; } rows[] = {
        {{.type_a = JG_F32}, "f32"}, {{.type_a = JG_F16, .type_c = JG_F32}, "f16"}, {{.type_a = JG_BF16}, "bf16"},
        {{.type_a = JG_S8}, "s8"}, {{.type_a = JG_U8, .type_b = JG_S8}, "s8"}, {{.type_a = JG_S4}, "s8"},
        {{.type_a = JG_F16, .type_b = JG_S4}, "f16"}, {{.type_a = JG_S8, .type_b = JG_BF16}, "bf16"},
        {{.type_a = JG_E4M3}, "e4m3"}, {{.type_a = JG_E5M2}, "e4m3"}, {{.math = JG_MATH_TF32}, "tf32"},
        {{.math = JG_MATH_F32_3XTF32}, "tf32"}, {{.math = JG_MATH_STRICT}, "f32"},
        {{.type_a = JG_F16, .math = JG_MATH_F16}, "f16acc"}, {{.type_a = JG_F16, .math = JG_MATH_FLUSH}, "f16"}};
    for (size_t i = 0; i < COUNT(rows); i++) assert_string_equal(bench_label_ceiling(&rows[i].p), rows[i].name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layouts), cmocka_unit_test(order_of_rows), cmocka_unit_test(a_type_given_twice),
        cmocka_unit_test(costs),   cmocka_unit_test(labels),        cmocka_unit_test(ceilings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
