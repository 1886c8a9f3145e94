/* The BLAS rules, on a GPU or on the software GPU (on_gpu.h), for every pair of types in both orders and every type of C:
 * beta = 0 never reads C, alpha = 0 and k = 0 never read A, B, or the scales and zero points of groups, m, n or batch = 0 do
 * nothing, and what the epilogue has no flag for is never read.
 *
 * What must not be read holds 0xff bytes (NaN in every float), or its pointer is null or leads nowhere. So does what lies between
 * the rows and items of A, B, C and the residual, which are views of larger matrices here; in C it must not change either. The
 * software GPU also reports every access to it. */
#include "breadth.h"
#include "on_device.h"
#include "on_gpu.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ALL_SCALES (JG_EPILOGUE_SCALE | JG_EPILOGUE_SCALE_M | JG_EPILOGUE_SCALE_N)
#define ALL_BIASES (JG_EPILOGUE_BIAS_M | JG_EPILOGUE_BIAS_N)
#define NOWHERE ((void *)4096) /* aligned to anything, and never mapped */

/* ---- data ---- */

/* Whether it is a weight of the other. */
static int is_weights_pair(int pair)
{
    const jg_type a = breadth_pairs[pair][0], b = breadth_pairs[pair][1];
    const int integer_a = a == JG_S8 || a == JG_U8 || a == JG_S4, integer_b = b == JG_S8 || b == JG_U8 || b == JG_S4;
    return integer_a != integer_b;
}

/* Rows of `length` elements with room for others between them. */
static int64_t wider(jg_type type, int64_t length, int64_t room)
{
    return length + room + (type == JG_S4 ? (length + room) % 2 : 0);
}

/* A product of two items whose matrices, and the residual, are views with gaps between rows and items. */
static jg_problem view_of(int pair, jg_type type_c, jg_order order, unsigned ops, int64_t k)
{
    jg_problem p = {.m = 21, .n = 38, .k = k, .batch = 2, .type_a = breadth_pairs[pair][0], .type_b = breadth_pairs[pair][1],
                    .type_c = type_c, .op_a = (jg_op)(ops & 1), .op_b = (jg_op)(ops >> 1), .order = order};
    const int col_major = order == JG_COL_MAJOR;
    p.lda = wider(p.type_a, (p.op_a == JG_T) == col_major ? k : p.m, 5);
    p.ldb = wider(p.type_b, (p.op_b == JG_T) == col_major ? p.n : k, 3);
    p.ldc = (col_major ? p.m : p.n) + 7;
    if (is_weights_pair(pair)) p.group_k = 32, p.zero_points = 1;
    return p;
}

static void pack_with_gaps(jg_problem *p)
{
    if (p->epilogue & (JG_EPILOGUE_RESIDUAL | JG_EPILOGUE_RESIDUAL_AFTER)) p->ld_residual = p->ldc + 2;
    reference_pack(p);
    p->stride_a += 6;
    p->stride_b += 4;
    p->stride_c += 9;
    if (p->stride_residual) p->stride_residual += 3;
}

/* What lies around C's elements, which is read if it spoils a result. */
static void poison_around_c(reference *ref)
{
    reference_matrix old = ref->c;
    old.block = malloc(old.block_bytes);
    assert_non_null(old.block);
    memcpy(old.block, ref->c.block, old.block_bytes);
    reference_poison(&ref->c);
    for (int64_t item = 0; item < ref->batch; item++)
        for (int64_t i = 0; i < ref->m; i++)
            for (int64_t j = 0; j < ref->n; j++)
                reference_set_bits(&ref->c, item, i, j, reference_get_bits(&old, item, i, j));
    free(old.block);
    reference_snapshot(ref);
}

/* ---- rules ---- */

enum { NO_C = 1, NO_AB = 2, K_IS_0 = 4, SAME = 8 };

/* NO_C, NO_AB: what must not be read. SAME: C must stay as it is. */
typedef struct rule {
    const char *name;
    float alpha, beta;
    unsigned what;
} rule;

static const rule rules[] = {
    {"a view", 0.75f, 0.5f, 0},
    {"beta = 0", 1, 0, NO_C},
    {"beta = -0", -1.5f, -0.0f, NO_C},
    {"alpha = 0", 0, 0.75f, NO_AB},
    {"alpha = -0, beta = 1", -0.0f, 1, NO_AB | SAME},
    {"alpha = beta = 0", 0, 0, NO_AB | NO_C},
    {"k = 0", 2, -1.25f, NO_AB | K_IS_0},
    {"k = 0, alpha infinite", (float)INFINITY, 0.5f, NO_AB | K_IS_0},
    {"k = 0, alpha NaN, beta = 1", (float)NAN, 1, NO_AB | K_IS_0 | SAME},
    {"k = 0, beta = 0", 1, 0, NO_AB | NO_C | K_IS_0},
};
#define RULES (sizeof rules / sizeof rules[0])

static void point_away(jg_operands *data, const rule *r, uint32_t epilogue, unsigned turn)
{
    void *const away = turn % 2 ? NOWHERE : NULL;
    if (r->what & NO_AB && turn % 3) data->a = data->b = data->group_scales = data->group_zeros = away;
    if (!(epilogue & JG_EPILOGUE_SCALE)) data->scale = away;
    if (!(epilogue & JG_EPILOGUE_SCALE_M)) data->scale_m = away;
    if (!(epilogue & JG_EPILOGUE_SCALE_N)) data->scale_n = away;
    if (!(epilogue & JG_EPILOGUE_BIAS_M)) data->bias_m = away;
    if (!(epilogue & JG_EPILOGUE_BIAS_N)) data->bias_n = away;
    if (!(epilogue & (JG_EPILOGUE_RESIDUAL | JG_EPILOGUE_RESIDUAL_AFTER))) data->residual = away;
}

/* Elements of C that are not what they were; -0 may be 0. */
static int64_t changed(const reference *ref)
{
    reference_matrix before = ref->c;
    int64_t count = 0;
    before.block = ref->before;
    for (int64_t item = 0; item < ref->batch; item++)
        for (int64_t i = 0; i < ref->m; i++)
            for (int64_t j = 0; j < ref->n; j++)
                count += reference_get(&ref->c, item, i, j) != reference_get(&before, item, i, j);
    return count;
}

static void run_rule(const jg_problem *in, const rule *r, unsigned turn)
{
    jg_problem p = *in;
    reference ref;
    jg_operands data;
    /* So that k = 0 is the product that a kernel is told to be one of no terms. */
    const float seen = r->what & (NO_AB | K_IS_0) ? 0 : r->alpha;
    if (r->what & K_IS_0) p.k = 0;
    reference_make(&ref, &p, REFERENCE_UNIFORM, 0, turn);
    if (r->what & NO_AB) {
        reference_poison(&ref.a);
        reference_poison(&ref.b);
        reference_poison(&ref.group_scales);
        reference_poison(&ref.group_zeros);
    }
    if (r->what & NO_C) reference_poison(&ref.c), reference_snapshot(&ref);
    else poison_around_c(&ref);
    on_gpu_must(&p, on_device_upload(on_gpu_context, on_gpu_arena, ON_GPU_ARENA_BYTES, &ref, &r->alpha, &r->beta, &data));
    point_away(&data, r, p.epilogue, turn);
    if (on_gpu_run_on(&ref, &data)) {
        on_gpu_judge(&ref, r->name, seen, r->beta, 0);
        if (r->what & SAME && !p.epilogue && !p.activation && !p.math && changed(&ref))
            on_gpu_complain(&p, "%s: %lld elements of C changed", r->name, (long long)changed(&ref));
    }
    reference_free(&ref);
}

static void run_rules(const jg_problem *p, unsigned *turn)
{
    for (size_t i = 0; i < RULES; i++) run_rule(p, &rules[i], (*turn)++);
}

/* With none of the epilogue's data, some of it, and all. */
static uint32_t epilogue_of(unsigned turn)
{
    static const uint32_t some[] = {
        0, ALL_SCALES | JG_EPILOGUE_BIAS_N | JG_EPILOGUE_RESIDUAL_AFTER, JG_EPILOGUE_BIAS_M | JG_EPILOGUE_REQUANTIZE,
        0, ALL_SCALES | ALL_BIASES | JG_EPILOGUE_RESIDUAL | JG_EPILOGUE_REQUANTIZE, JG_EPILOGUE_SCALE_M,
    };
    return some[turn % (sizeof some / sizeof some[0])];
}

/* One generic kernel a pair serves them all. */
static void test_rules_of_every_type(void **state)
{
    (void)state;
    on_gpu_need();
    jg_problem problems[BREADTH_PAIRS * 16];
    size_t count = 0;
    unsigned turn = 0, wanted = 0;
    for (int pair = 0; pair < BREADTH_PAIRS; pair++)
        for (jg_type type_c = JG_F32; type_c <= JG_E5M2; type_c++)
            for (int order = JG_ROW_MAJOR; order <= JG_COL_MAJOR; order++) {
                if (!breadth_has_c(pair, type_c) || wanted++ % on_gpu_stride) continue;
                jg_problem p = view_of(pair, type_c, (jg_order)order, wanted % 4, 40);
                p.form = JG_FORM_GENERIC;
                p.epilogue = epilogue_of(wanted);
                p.activation = wanted % 7 == 0 ? JG_ACTIVATION_RELU : JG_ACTIVATION_NONE;
                pack_with_gaps(&p);
                p.align_bytes = 1;
                problems[count++] = p;
            }
    on_gpu_prewarm(problems, count);
    for (size_t i = 0; i < count; i++) run_rules(&problems[i], &turn);
    on_gpu_verdict();
}

/* Kernels that have sizes, layout and epilogue as constants, and the other modes' families. */
static void test_rules_of_specialised_kernels(void **state)
{
    (void)state;
    on_gpu_need();
    static const uint32_t modes[] = {JG_MATH_TF32, JG_MATH_F32_3XTF32, JG_MATH_STRICT, JG_MATH_FLUSH, JG_MATH_SANITIZE};
    enum { MODES = sizeof modes / sizeof modes[0], COUNT = BREADTH_PAIRS + MODES };
    jg_problem problems[2 * COUNT];
    size_t count = 0;
    unsigned turn = 0;
    for (int i = 0; i < COUNT; i++) {
        const int pair = i < BREADTH_PAIRS ? i : 0;
        const uint32_t mode = i < BREADTH_PAIRS ? JG_MATH_DEFAULT : modes[i - BREADTH_PAIRS];
        if ((mode == JG_MATH_TF32 || mode == JG_MATH_F32_3XTF32) && on_gpu_architecture() == 75) continue;
        if ((size_t)i % on_gpu_stride) continue;
        const jg_type type_c = i % 3 == 2 ? JG_F16 : i % 6 == 1 ? JG_S8 : JG_DEFAULT_TYPE;
        jg_problem p = view_of(pair, type_c, (jg_order)(i & 1), (unsigned)i % 4, 40);
        p.form = JG_FORM_SPECIALISED;
        p.epilogue = epilogue_of((unsigned)i);
        p.math = mode;
        pack_with_gaps(&p);
        problems[count++] = p;
        p.k = 0; /* its lda and ldb stay */
        problems[count++] = p;
    }
    on_gpu_prewarm(problems, count);
    for (size_t i = 0; i < count; i += 2) run_rules(&problems[i], &turn);
    on_gpu_verdict();
}

/* Rows that cp.async copies 16 and 4 bytes at a time, of which the last piece ends beyond k. */
static void test_rules_where_rows_are_copied(void **state)
{
    (void)state;
    on_gpu_need();
    static const struct {
        int pair;
        unsigned ops;
        int64_t room;
    } cases[] = {{1, 2, 2}, {1, 1, 2}, {1, 2, 32}, {2, 0, 32}, {3, 2, 32}, {4, 2, 4}};
    unsigned turn = 0;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i += on_gpu_stride) {
        jg_problem p = view_of(cases[i].pair, JG_DEFAULT_TYPE, JG_ROW_MAJOR, cases[i].ops, 37);
        const int64_t whole = cases[i].room == 32 ? 32 : 8;
        p.lda = (40 + cases[i].room + whole - 1) / whole * whole + (whole == 8 ? cases[i].room : 0);
        p.ldb = p.lda;
        p.form = cases[i].room == 32 ? JG_FORM_GENERIC : JG_FORM_SPECIALISED;
        reference_pack(&p);
        run_rules(&p, &turn);
    }
    on_gpu_verdict();
}

/* ---- nothing to do ---- */

static void run_empty(int pair, jg_type type_c, jg_form form, int which, unsigned turn)
{
    jg_problem p = view_of(pair, type_c, turn % 2 ? JG_COL_MAJOR : JG_ROW_MAJOR, turn % 4, 40);
    const float alpha = 1, beta = which == 0 ? 2 : 0;
    reference ref;
    jg_operands data;
    p.form = form;
    p.epilogue = epilogue_of(turn);
    pack_with_gaps(&p);
    reference_make(&ref, &p, REFERENCE_UNIFORM, 0, turn);
    on_gpu_must(&p, on_device_upload(on_gpu_context, on_gpu_arena, ON_GPU_ARENA_BYTES, &ref, &alpha, &beta, &data));
    if (which == 0) ref.problem.m = 0;
    if (which == 1) ref.problem.n = 0;
    if (which == 2) ref.problem.batch = 0;
    if (on_gpu_run_on(&ref, &data) && memcmp(ref.c.block, ref.before, ref.c.block_bytes) != 0)
        on_gpu_complain(&ref.problem, "C changed though there is nothing to do");
    const jg_operands none = {.alpha = &alpha, .beta = &beta};
    on_gpu_must(&ref.problem, jg_gemm(on_gpu_context, &ref.problem, &none));
    reference_free(&ref);
}

static void test_empty_products_do_nothing(void **state)
{
    (void)state;
    on_gpu_need();
    unsigned turn = 0;
    for (int pair = 0; pair < BREADTH_PAIRS; pair++)
        for (jg_type type_c = JG_F32; type_c <= JG_E5M2; type_c++)
            for (int which = 0; which < 3; which++, turn++)
                if (breadth_has_c(pair, type_c)) run_empty(pair, type_c, (jg_form)(turn % 3), which, turn);
    on_gpu_verdict();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_empty_products_do_nothing),
        cmocka_unit_test(test_rules_of_every_type),
        cmocka_unit_test(test_rules_of_specialised_kernels),
        cmocka_unit_test(test_rules_where_rows_are_copied),
    };
    const char *filter = getenv("JG_TEST_FILTER");
    if (filter) cmocka_set_test_filter(filter);
    return cmocka_run_group_tests(tests, on_gpu_open, on_gpu_close);
}
