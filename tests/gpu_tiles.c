/* Every tile of as many slices gives the same bits, on a GPU or on the software GPU (on_gpu.h): the tiles of the tables, forced one
 * by one, for what gpu_numeric's tile tests leave out: integers, 4-bit types, groups, 8-bit floats, and all modes of f32 and f16.
 *
 * Each tile is compiled as a generic kernel, whether or not it is of the generic set, as these take the epilogue as an argument:
 * one kernel computes both the product that ends in alpha and beta and the one with much fused in. Specialised kernels, which
 * have the epilogue as a constant, take turns with the two. A case of JG_TEST_STRIDE is a class of products. */
#include "context.h"
#include "on_device.h"
#include "on_gpu.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define MAX_KERNELS 160
#define MAX_SLICES 32
#define MAX_JOBS 16
#define LABEL "tile test"

enum { PLAIN, FUSED, PRODUCTS };

/* A kernel, and which of the two products it computes: a bit for each. */
typedef struct forced {
    plan plan;
    unsigned computes;
} forced;

/* What comes of one product; `first` is C's block as the first kernel of so many slices left it. */
typedef struct product {
    jg_problem in;
    problem p;
    reference ref;
    float alpha, beta;
    unsigned char *first[MAX_SLICES + 1];
} product;

typedef struct trial {
    product products[PRODUCTS];
    forced kernels[MAX_KERNELS];
    size_t count, next;
    pthread_mutex_t lock;
} trial;

/* ---- the kernels ---- */

typedef struct plans {
    plan list[MAX_KERNELS];
    size_t count;
} plans;

static void collect(void *user, const plan *candidate, const char *reason)
{
    plans *p = user;
    if (!reason[0] && p->count < MAX_KERNELS) p->list[p->count++] = *candidate;
}

static plans plans_of(const problem *p, jg_form form)
{
    plans found = {.count = 0};
    plan_each(p, problem_promised_access(p), form, &on_gpu_context->device.limits, collect, &found);
    return found;
}

static void add(trial *t, const plan *chosen, unsigned computes)
{
    if (t->count >= MAX_KERNELS) fail_msg("more than %d kernels", MAX_KERNELS);
    t->kernels[t->count++] = (forced){*chosen, computes};
}

/* The legal tiles are those of the specialised candidates. */
static void choose_kernels(trial *t)
{
    const plans generic = plans_of(&t->products[PLAIN].p, JG_FORM_GENERIC);
    const plans plain = plans_of(&t->products[PLAIN].p, JG_FORM_SPECIALISED);
    const plans fused = plans_of(&t->products[FUSED].p, JG_FORM_SPECIALISED);
    assert_true(generic.count > 0 && plain.count > 0 && fused.count == plain.count);
    for (size_t i = 0; i < plain.count; i++) {
        plan c = generic.list[0];
        c.spec.tile = plain.list[i].spec.tile;
        plan_complete(&t->products[PLAIN].p, &on_gpu_context->device.limits, &c);
        add(t, &c, 1u << PLAIN | 1u << FUSED);
        if (i % 4 == 0) add(t, &plain.list[i], 1u << PLAIN);
        if (i % 4 == 2) add(t, &fused.list[i], 1u << FUSED);
    }
}

static void *make_images(void *user)
{
    trial *t = user;
    for (;;) {
        pthread_mutex_lock(&t->lock);
        const size_t i = t->next++;
        pthread_mutex_unlock(&t->lock);
        if (i >= t->count) return NULL;
        image img;
        jg_source source;
        if (images_get(on_gpu_context->images, &t->kernels[i].plan.spec, LABEL, EFFORT_COMPILE, &img, &source) == JG_OK)
            image_free(&img);
    }
}

/* Compiles them side by side. What fails here fails again when it is to run. */
static void compile_all(trial *t)
{
    pthread_t threads[MAX_JOBS];
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    const int jobs = online < 1 ? 1 : online > MAX_JOBS ? MAX_JOBS : (int)online;
    for (int i = 0; i < jobs; i++) assert_int_equal(pthread_create(&threads[i], NULL, make_images, t), 0);
    for (int i = 0; i < jobs; i++) pthread_join(threads[i], NULL);
}

/* ---- running them ---- */

static jg_status launch(const plan *chosen, const problem *p, const jg_operands *data)
{
    lru_entry *entry;
    jg_source source;
    launch_args args;
    device_scope scope;
    const operands o = operands_canonicalise(p, data);
    jg_status status = kernels_obtain(on_gpu_context, &chosen->spec, LABEL, EFFORT_COMPILE, &entry, &source);
    if (status != JG_OK) return status;
    launch_prepare(p, chosen, &args);
    launch_fill(p, &o, &args);
    status = device_enter(&on_gpu_context->device, &scope);
    if (status == JG_OK) {
        status = launch_kernel(&on_gpu_context->device, lru_value(entry), p, chosen, &args, NULL);
        device_leave(&on_gpu_context->device, &scope);
    }
    if (status == JG_OK) status = jg_synchronize(on_gpu_context, NULL);
    lru_release(entry);
    return status;
}

static void judge(const product *x, const char *kernel)
{
    on_gpu_judge(&x->ref, kernel, x->alpha, x->beta, 0);
    if ((x->in.math & 15) == JG_MATH_STRICT && x->in.activation < JG_ACTIVATION_GELU_TANH &&
        reference_strict_differences(&x->ref, x->alpha, x->beta))
        on_gpu_complain(&x->in, "%s: other bits than the plain loop", kernel);
}

static void run(product *x, const plan *chosen)
{
    char name[KERNEL_NAME_BYTES];
    jg_operands data;
    kernel_format_name(&chosen->spec, name);
    jg_status status = on_device_upload(on_gpu_context, on_gpu_arena, ON_GPU_ARENA_BYTES, &x->ref, &x->alpha, &x->beta, &data);
    if (status == JG_OK) status = launch(chosen, &x->p, &data);
    if (status == JG_OK) status = on_device_download(on_gpu_context, &data, &x->ref, x->ref.c.block);
    on_gpu_count();
    if (!on_gpu_must(&x->in, status)) return;
    /* Sums of integers are exact, however they are dealt out. */
    const int slices = kernel_multiply_type(&chosen->spec) == JG_S8 ? 1 : chosen->spec.tile.slices;
    if (slices > MAX_SLICES) fail_msg("more than %d slices", MAX_SLICES);
    unsigned char **first = &x->first[slices];
    if (!*first) {
        judge(x, name);
        *first = malloc(x->ref.c.block_bytes);
        assert_non_null(*first);
        memcpy(*first, x->ref.c.block, x->ref.c.block_bytes);
    } else if (memcmp(*first, x->ref.c.block, x->ref.c.block_bytes) != 0) {
        on_gpu_complain(&x->in, "%s gives other bits than the first tile of as many slices", name);
        judge(x, name);
    }
}

static void begin(product *x, const jg_problem *in, float alpha, float beta)
{
    *x = (product){.in = *in, .alpha = alpha, .beta = beta};
    if (problem_canonicalise(in, &x->p) != JG_OK) fail_msg("%s", jg_last_error());
    reference_make(&x->ref, in, REFERENCE_UNIFORM, 0, 77);
}

static void force_tiles(const jg_problem *plain, const jg_problem *fused)
{
    trial *t = calloc(1, sizeof *t);
    assert_non_null(t);
    pthread_mutex_init(&t->lock, NULL);
    begin(&t->products[PLAIN], plain, 1, plain->type_c == JG_S32 ? 1 : -0.75f);
    begin(&t->products[FUSED], fused, 1.5f, -0.75f);
    choose_kernels(t);
    compile_all(t);
    for (size_t i = 0; i < t->count; i++)
        for (int which = PLAIN; which < PRODUCTS; which++)
            if (t->kernels[i].computes & 1u << which) run(&t->products[which], &t->kernels[i].plan);
    for (int which = PLAIN; which < PRODUCTS; which++) {
        for (int i = 0; i <= MAX_SLICES; i++) free(t->products[which].first[i]);
        reference_free(&t->products[which].ref);
    }
    printf("# %s: %zu kernels\n", t->kernels[0].plan.spec.family == FAMILY_SIMT ? "simt" : "tensor cores", t->count);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

/* ---- what is computed ---- */

/* A class: types, math, and whether its operands are to be copied by whole pieces of 16 bytes where they can be. */
typedef struct tile_class {
    jg_type a, b, c, fused_c;
    unsigned ops;
    uint32_t math, group_k;
} tile_class;

static const tile_class integers[] = {
    {JG_S8, JG_S8, JG_S32, JG_S8, 2, JG_MATH_DEFAULT, 0},
    {JG_U8, JG_S8, JG_S32, JG_F16, 0, JG_MATH_DEFAULT, 0},
    {JG_S4, JG_S4, JG_S32, JG_S8, 2, JG_MATH_DEFAULT, 0},
};
static const tile_class narrow_floats[] = {
    {JG_F16, JG_S4, JG_F16, JG_F16, 2, JG_MATH_DEFAULT, 32},
    {JG_F16, JG_F16, JG_F16, JG_F32, 0, JG_MATH_FLUSH, 0},
    {JG_E4M3, JG_E5M2, JG_F32, JG_E4M3, 1, JG_MATH_DEFAULT, 0},
    {JG_F16, JG_F16, JG_F16, JG_F32, 3, JG_MATH_F16, 0},
};
static const tile_class modes_of_f32[] = {
    {JG_F32, JG_F32, JG_F32, JG_F16, 0, JG_MATH_TF32, 0},
    {JG_F32, JG_F32, JG_F32, JG_F16, 3, JG_MATH_F32_3XTF32, 0},
};
static const tile_class strict[] = {{JG_F32, JG_F32, JG_F32, JG_BF16, 2, JG_MATH_STRICT, 0}};

/* Sizes that no tile divides, in rows of 16 bytes' multiples. */
static jg_problem problem_of(const tile_class *c)
{
    jg_problem p = {.m = 149, .n = 139, .k = 109, .type_a = c->a, .type_b = c->b, .type_c = c->c, .op_a = (jg_op)(c->ops & 1),
                    .op_b = (jg_op)(c->ops >> 1), .math = c->math, .group_k = c->group_k, .zero_points = c->group_k != 0};
    p.lda = jg_good_ld(c->a, p.op_a == JG_T ? p.m : p.k);
    p.ldb = jg_good_ld(c->b, p.op_b == JG_T ? p.k : p.n);
    return p;
}

static void fuse(jg_problem *p, const tile_class *c)
{
    p->type_c = c->fused_c;
    p->epilogue = JG_EPILOGUE_SCALE | JG_EPILOGUE_SCALE_N | JG_EPILOGUE_BIAS_M | JG_EPILOGUE_BIAS_N | JG_EPILOGUE_RESIDUAL |
                  (c->fused_c == JG_S8 ? JG_EPILOGUE_REQUANTIZE : 0);
    p->activation = (c->math & 15) == JG_MATH_STRICT || c->fused_c == JG_S8 ? JG_ACTIVATION_RELU : JG_ACTIVATION_SILU;
    p->type_bias = JG_F16;
    p->ldc = 144; /* rows that four neighbours can be stored of */
}

static void force_classes(const tile_class *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        static size_t turn;
        if (turn++ % on_gpu_stride) continue;
        const jg_problem plain = problem_of(&list[i]);
        jg_problem fused = plain;
        fuse(&fused, &list[i]);
        force_tiles(&plain, &fused);
    }
    on_gpu_verdict();
}

static void test_tiles_of_integers(void **state)
{
    (void)state;
    on_gpu_need();
    force_classes(integers, sizeof integers / sizeof integers[0]);
}

static void test_tiles_of_narrow_floats(void **state)
{
    (void)state;
    on_gpu_need();
    /* sm_75 computes all but the last, which it has not. */
    force_classes(narrow_floats, sizeof narrow_floats / sizeof narrow_floats[0] - (on_gpu_architecture() == 75));
}

static void test_tiles_of_tf32(void **state)
{
    (void)state;
    on_gpu_need_modes();
    force_classes(modes_of_f32, sizeof modes_of_f32 / sizeof modes_of_f32[0]);
}

static void test_tiles_of_strict_mode(void **state)
{
    (void)state;
    on_gpu_need();
    force_classes(strict, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tiles_of_integers),
        cmocka_unit_test(test_tiles_of_narrow_floats),
        cmocka_unit_test(test_tiles_of_tf32),
        cmocka_unit_test(test_tiles_of_strict_mode),
    };
    const char *filter = getenv("JG_TEST_FILTER");
    if (filter) cmocka_set_test_filter(filter);
    return cmocka_run_group_tests(tests, on_gpu_open, on_gpu_close);
}
