/* jg_gemm_grouped: every product, if its sums are exact, has the bits that jg_gemm gives it; one launch for 60 of them; errors
 * name the item and nothing is enqueued. On a GPU, or on the software GPU with its checks (JITGEMM_DRIVER=swgpu). */
#include "jitgemm.h"
#include "reference.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ARENA_BYTES ((size_t)8 << 20)
#define MAX_ITEMS 130

static jg_context *gpu, *cpu;
static char why_not[512];
static unsigned char *inputs, *outputs, *expected; /* host: one copy for A, B and biases, one of what C was and became */
static void *device_inputs, *device_outputs;

static int open_contexts(void **state)
{
    (void)state;
    const jg_options options = {.device = JG_DEVICE_CUDA, .compile = JG_COMPILE_WAIT};
    const jg_options host = {.device = JG_DEVICE_CPU, .cache_path = ""};
    const jg_problem tiny = {.m = 1, .n = 1, .k = 1};
    if (jg_open(&host, &cpu) != JG_OK) return -1;
    if (jg_open(&options, &gpu) != JG_OK || jg_prewarm(gpu, &tiny, 1, NULL, NULL) != JG_OK) {
        snprintf(why_not, sizeof why_not, "%s", jg_last_error());
        jg_close(gpu);
        gpu = NULL;
        return 0;
    }
    inputs = malloc(ARENA_BYTES);
    outputs = malloc(ARENA_BYTES);
    expected = malloc(ARENA_BYTES);
    if (!inputs || !outputs || !expected) return -1;
    if (jg_alloc(gpu, JG_DEVICE_MEMORY, ARENA_BYTES, &device_inputs) != JG_OK) return -1;
    return jg_alloc(gpu, JG_DEVICE_MEMORY, ARENA_BYTES, &device_outputs) == JG_OK ? 0 : -1;
}

static int close_contexts(void **state)
{
    (void)state;
    free(inputs);
    free(outputs);
    free(expected);
    if (gpu) {
        jg_free(gpu, JG_DEVICE_MEMORY, device_inputs);
        jg_free(gpu, JG_DEVICE_MEMORY, device_outputs);
        if (jg_close(gpu) != JG_OK) return -1;
    }
    return jg_close(cpu) == JG_OK ? 0 : -1;
}

static void need_gpu(void)
{
    if (gpu) return;
    print_message("SKIP no GPU or no compiler: %s\n", why_not);
    skip();
}

static void must(jg_status status)
{
    if (status != JG_OK) fail_msg("%s: %s", jg_status_name(status), jg_last_error());
}

/* A list of products whose operands lie one after the other in the arenas. */
typedef struct list {
    jg_problem common;
    jg_operands shared;
    jg_group_item items[MAX_ITEMS]; /* with offsets instead of pointers until `place` */
    size_t count;
    size_t input_bytes, output_bytes;
    size_t misalign;                /* bytes by which every second operand is off */
} list;

static size_t take(size_t *arena, int64_t elements, jg_type type, size_t misalign)
{
    const size_t at = (*arena + 255) / 256 * 256 + misalign;
    *arena = at + (size_t)jg_type_bytes(type, elements);
    assert_true(*arena < ARENA_BYTES);
    return at;
}

static jg_type type_b(const jg_problem *p)
{
    return p->type_b ? p->type_b : p->type_a;
}

static void add(list *l, int64_t m, int64_t n, int64_t k, int64_t pad)
{
    jg_group_item *x = &l->items[l->count];
    const int long_a = l->common.op_a == JG_T, long_b = l->common.op_b == JG_T;
    const size_t off = l->count++ % 2 ? l->misalign : 0;
    memset(x, 0, sizeof *x);
    x->m = m;
    x->n = n;
    x->k = k;
    if (pad) {
        x->lda = (long_a ? m : k) + pad;
        x->ldb = (long_b ? k : n) + pad;
        x->ldc = n + pad;
    }
    const int64_t lda = x->lda ? x->lda : (long_a ? m : k), ldb = x->ldb ? x->ldb : (long_b ? k : n), ldc = x->ldc ? x->ldc : n;
    x->a = (void *)take(&l->input_bytes, (long_a ? k : m) * (lda + 1), l->common.type_a, off);
    x->b = (void *)take(&l->input_bytes, (long_b ? n : k) * (ldb + 1), type_b(&l->common), off);
    x->bias = (void *)take(&l->input_bytes, m + n, JG_F32, 0);
    x->c = (void *)take(&l->output_bytes, m * ldc, l->common.type_c, off);
}

/* Multiples of 1/8 from -1 to 1, whose sums of products are exact, in whatever order they are made; or anything for integers. */
static void fill(unsigned char *to, size_t bytes, jg_type type, uint64_t seed)
{
    for (size_t i = 0; i + 4 <= bytes; i += 4) {
        const double v = (double)(reference_random(&seed) % 17) / 8 - 1;
        const uint32_t half = reference_encode(type == JG_F16 ? JG_F16 : JG_BF16, v);
        uint32_t bits = type == JG_F32 ? reference_encode(JG_F32, v) : half | half << 16;
        if (type == JG_S8 || type == JG_U8 || type == JG_S4) bits = (uint32_t)reference_random(&seed);
        memcpy(to + i, &bits, 4);
    }
}

static jg_group_item placed(const jg_group_item *x, void *in, void *out)
{
    jg_group_item y = *x;
    y.a = (char *)in + (uintptr_t)x->a;
    y.b = (char *)in + (uintptr_t)x->b;
    y.bias = (char *)in + (uintptr_t)x->bias;
    y.c = (char *)out + (uintptr_t)x->c;
    return y;
}

/* The whole list by jg_gemm, then in one call; all of C's arena must come out the same. */
static void check(list *l)
{
    jg_group_item items[MAX_ITEMS];
    need_gpu();
    fill(inputs, l->input_bytes + 256 < ARENA_BYTES ? l->input_bytes + 256 : ARENA_BYTES, l->common.type_a, 7);
    /* Biases are float32 whatever the type of A is. */
    for (size_t i = 0; i < l->count; i++) fill(inputs + (uintptr_t)l->items[i].bias, (size_t)(l->items[i].m + l->items[i].n) * 4, JG_F32, i);
    fill(outputs, l->output_bytes, l->common.type_c, 9);
    must(jg_copy(gpu, device_inputs, inputs, l->input_bytes));
    must(jg_copy(gpu, device_outputs, outputs, l->output_bytes));
    for (size_t i = 0; i < l->count; i++) {
        const jg_group_item x = items[i] = placed(&l->items[i], device_inputs, device_outputs);
        jg_problem p = l->common;
        jg_operands o = l->shared;
        p.m = x.m, p.n = x.n, p.k = x.k, p.lda = x.lda, p.ldb = x.ldb, p.ldc = x.ldc, p.form = JG_FORM_GENERIC;
        o.a = x.a, o.b = x.b, o.c = x.c, o.bias_m = o.bias_n = x.bias;
        must(jg_gemm(gpu, &p, &o));
    }
    must(jg_synchronize(gpu, NULL));
    must(jg_copy(gpu, expected, device_outputs, l->output_bytes));
    assert_memory_not_equal(expected, outputs, l->output_bytes);
    must(jg_copy(gpu, device_outputs, outputs, l->output_bytes));
    jg_stats before, after;
    must(jg_cache_stats(gpu, &before));
    must(jg_gemm_grouped(gpu, &l->common, &l->shared, items, l->count));
    must(jg_synchronize(gpu, NULL));
    must(jg_cache_stats(gpu, &after));
    assert_int_equal(after.launches_generic - before.launches_generic, (l->count + 59) / 60);
    must(jg_copy(gpu, outputs, device_outputs, l->output_bytes));
    for (size_t i = 0; i < l->output_bytes; i++)
        if (outputs[i] != expected[i]) fail_msg("byte %zu of C differs: %02x, by jg_gemm %02x", i, outputs[i], expected[i]);
}

static void test_many_sizes(void **state)
{
    (void)state;
    static const jg_type types[][3] = {{JG_F32, JG_F32, JG_F32}, {JG_F16, JG_F16, JG_F16}, {JG_U8, JG_S8, JG_S32}};
    for (int t = 0; t < 3; t++) {
        for (int ops = 0; ops < 4; ops++) {
            list l = {.common = {.type_a = types[t][0], .type_b = types[t][1], .type_c = types[t][2], .op_a = (jg_op)(ops & 1),
                                 .op_b = (jg_op)(ops >> 1)}};
            for (int i = 0; i < 20; i++) add(&l, 1 + i * 7 % 67, 1 + i * 13 % 71, 1 + i * 5 % 50, i % 3 ? 0 : 5);
            check(&l);
        }
    }
}

/* Aligned rows take the kernels that copy 16 bytes at a time. */
static void test_aligned(void **state)
{
    (void)state;
    list l = {.common = {.type_a = JG_F16, .type_c = JG_F32, .op_b = JG_T}};
    for (int i = 0; i < 12; i++) add(&l, 16 * (1 + i % 5), 16 * (1 + i % 3), 64 * (1 + i % 2), i % 4 * 8);
    check(&l);
}

static void test_one_misaligned(void **state)
{
    (void)state;
    list l = {.common = {.type_a = JG_F16, .type_c = JG_F16}, .misalign = 2};
    for (int i = 0; i < 6; i++) add(&l, 64, 64, 64, 0);
    check(&l);
}

static void test_more_than_one_launch(void **state)
{
    (void)state;
    list l = {.common = {.type_a = JG_F32, .type_c = JG_F32}};
    for (int i = 0; i < 125; i++) add(&l, 3 + i % 4, 5, 9, 0);
    check(&l);
}

static void test_epilogue(void **state)
{
    (void)state;
    const float alpha = 0.75f, beta = -0.5f;
    for (int col = 0; col < 2; col++) {
        list l = {.common = {.type_a = JG_F32, .type_c = JG_F32, .epilogue = col ? JG_EPILOGUE_BIAS_N : JG_EPILOGUE_BIAS_M | JG_EPILOGUE_REQUANTIZE,
                             .activation = col ? JG_ACTIVATION_SILU : JG_ACTIVATION_CLAMP},
                  .shared = {.alpha = &alpha, .beta = &beta, .clamp_low = -0.5f, .clamp_high = 0.5f, .out_scale = 3, .out_zero = 1}};
        for (int i = 0; i < 9; i++) add(&l, 5 + i, 40 - i, 17, 1);
        check(&l);
    }
}

/* Empty products, and empty sums, which beta times C is left of. */
static void test_empty_items(void **state)
{
    (void)state;
    const float alpha = 2, beta = 3;
    list l = {.common = {.type_a = JG_F32, .type_c = JG_F32}, .shared = {.alpha = &alpha, .beta = &beta}};
    add(&l, 4, 4, 0, 0);
    add(&l, 0, 4, 4, 0);
    add(&l, 4, 4, 4, 0);
    add(&l, 4, 0, 4, 0);
    add(&l, 4, 4, 0, 0);
    check(&l);
    must(jg_gemm_grouped(gpu, &l.common, &l.shared, NULL, 0));
}

/* The cpu device multiplies one after the other. */
static void test_cpu_device(void **state)
{
    (void)state;
    const float a[6] = {1, 2, 3, 4, 5, 6}, b[6] = {1, 0, 0, 1, 1, 1};
    float c[2][4] = {{0}};
    const jg_problem common = {.type_a = JG_F32};
    const jg_operands shared = {.a = NULL};
    const jg_group_item items[2] = {{.m = 2, .n = 2, .k = 3, .a = a, .b = b, .c = c[0]}, {.m = 1, .n = 2, .k = 2, .a = a, .b = b, .c = c[1]}};
    must(jg_gemm_grouped(cpu, &common, &shared, items, 2));
    assert_true(c[0][0] == 4 && c[0][1] == 5 && c[0][2] == 10 && c[0][3] == 11);
    assert_true(c[1][0] == 1 && c[1][1] == 2);
}

static void refuse(const jg_problem *common, const jg_operands *shared, const jg_group_item *items, jg_status status, const char *text)
{
    float before[4] = {-1, -1, -1, -1}, c[4];
    jg_group_item copy[2] = {items[0], items[1]};
    memcpy(c, before, sizeof c);
    copy[0].c = c;
    assert_int_equal(jg_gemm_grouped(cpu, common, shared, copy, 2), status);
    if (!strstr(jg_last_error(), text)) fail_msg("\"%s\" does not say \"%s\"", jg_last_error(), text);
    assert_memory_equal(c, before, sizeof c);
}

static void test_refusals(void **state)
{
    (void)state;
    const float a[4] = {1, 2, 3, 4};
    float c[4];
    const jg_group_item fine[2] = {{.m = 2, .n = 2, .k = 2, .a = a, .b = a, .c = c}, {.m = 2, .n = 2, .k = 2, .a = a, .b = a, .c = c}};
    jg_group_item items[2] = {fine[0], fine[1]};
    const jg_operands shared = {.a = NULL};
    refuse(&(jg_problem){.m = 2}, &shared, items, JG_ERR_VALUE, "common.m = 2");
    refuse(&(jg_problem){.stride_c = 2}, &shared, items, JG_ERR_VALUE, "common.stride_c");
    refuse(&(jg_problem){.form = JG_FORM_SPECIALISED}, &shared, items, JG_ERR_VALUE, "JG_FORM_AUTO");
    refuse(&(jg_problem){.epilogue = JG_EPILOGUE_RESIDUAL}, &shared, items, JG_ERR_VALUE, "nearest that works: 0x0");
    refuse(&(jg_problem){.epilogue = JG_EPILOGUE_BIAS_M | JG_EPILOGUE_BIAS_N}, &shared, items, JG_ERR_VALUE, "nearest that works: 0x10");
    refuse(&(jg_problem){.type_a = JG_S32}, &shared, items, JG_ERR_TYPE, "items[0]");
    refuse(&(jg_problem){.m = 0}, &(jg_operands){.a = a}, items, JG_ERR_VALUE, "shared.a");
    items[1].ldc = 1;
    refuse(&(jg_problem){.m = 0}, &shared, items, JG_ERR_LEADING_DIMENSION, "items[1]: ldc = 1");
    items[1] = fine[1];
    items[1].b = NULL;
    refuse(&(jg_problem){.m = 0}, &shared, items, JG_ERR_NULL, "items[1]: operands.b");
    items[1] = fine[1];
    items[1].lda = INT64_C(1) << 32;
    refuse(&(jg_problem){.m = 0}, &shared, items, JG_ERR_LEADING_DIMENSION, "items[1]");
    items[1] = fine[1];
    items[1].n = -1;
    refuse(&(jg_problem){.m = 0}, &shared, items, JG_ERR_SIZE, "items[1]: n = -1");
    assert_int_equal(jg_gemm_grouped(NULL, &(jg_problem){.m = 0}, &shared, fine, 2), JG_ERR_NULL);
    assert_int_equal(jg_gemm_grouped(cpu, &(jg_problem){.m = 0}, &shared, NULL, 2), JG_ERR_NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many_sizes),          cmocka_unit_test(test_aligned),     cmocka_unit_test(test_one_misaligned),
        cmocka_unit_test(test_more_than_one_launch), cmocka_unit_test(test_epilogue),    cmocka_unit_test(test_empty_items),
        cmocka_unit_test(test_cpu_device),          cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, open_contexts, close_contexts);
}
