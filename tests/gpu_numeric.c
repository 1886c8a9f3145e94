/* Numeric tests of the generated kernels, on a GPU or on the software GPU (JITGEMM_DRIVER=swgpu), judged by the
 * double-precision oracle (reference.h).
 *
 * Every problem runs in generic and in specialised form; both must stay within the bound, leave everything outside C
 * alone, and agree bit for bit. Every tile of the architecture's table is forced once, so that none is only reached by
 * a planner's whim. Without a device every test is skipped, with the reason.
 *
 *   JG_TEST_FILTER=PATTERN   only these tests (e.g. under compute-sanitizer, which is slow)
 *   JG_TEST_STRIDE=N         only every N-th problem of a list, and every N-th case of the tile tests
 *   JG_TEST_TWIN=1           run each problem on the software GPU too, as the same chip, and compare the bits (twin.h)
 * On the software GPU large products run on sampled blocks if JITGEMM_SWGPU_BLOCKS is set; only those are judged. */
#include "context.h"
#include "jitgemm.h"
#include "reference.h"
#include "twin.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define ARENA_BYTES ((size_t)160 << 20)
#define MAX_FAILURES_SHOWN 20

static jg_context *gpu;
static char why_not[512];
static void *arena[3];
static long products, failures;
static double worst_ratio;
static int software; /* the device is the software GPU */
static size_t stride = 1;

static void print_log(void *user, jg_log_level level, const char *text)
{
    (void)user;
    if (level <= JG_LOG_WARNING) printf("# %s\n", text);
}

static int open_gpu(void **state)
{
    (void)state;
    const jg_options options = {.device = JG_DEVICE_CUDA, .compile = JG_COMPILE_WAIT, .log = print_log,
                                .log_level = JG_LOG_WARNING, .memory_max_kernels = 100000};
    if (jg_open(&options, &gpu) != JG_OK) {
        snprintf(why_not, sizeof why_not, "%s", jg_last_error());
        return 0;
    }
    const jg_problem tiny = {.m = 1, .n = 1, .k = 1};
    if (jg_prewarm(gpu, &tiny, 1, NULL, NULL) == JG_ERR_NO_NVRTC) {
        snprintf(why_not, sizeof why_not, "%s", jg_last_error());
        jg_close(gpu);
        gpu = NULL;
        return 0;
    }
    for (int i = 0; i < 3; i++)
        if (jg_alloc(gpu, JG_DEVICE_MEMORY, ARENA_BYTES, &arena[i]) != JG_OK) return -1;
    software = context_is_software(gpu);
    printf("# %ssm_%d, %d SMs, driver %d\n", software ? "software GPU, " : "", gpu->device.limits.arch->number,
           gpu->device.limits.sm_count, gpu->device.driver->version);
    reference_threads((int)sysconf(_SC_NPROCESSORS_ONLN));
    if (getenv("JG_TEST_STRIDE")) stride = strtoul(getenv("JG_TEST_STRIDE"), NULL, 10);
    if (stride == 0) return -1;
    if (getenv("JG_TEST_TWIN") && !software && twin_open(gpu->device.number) != 0) {
        printf("FAIL twin: %s\n", jg_last_error());
        return -1;
    }
    return 0;
}

static int close_gpu(void **state)
{
    (void)state;
    if (!gpu) return 0;
    jg_stats stats;
    jg_cache_stats(gpu, &stats);
    printf("# %ld products, worst |C-R| / bound %.3f; compiles %llu, disk hits %llu, kernels loaded %llu (%.1f MiB)\n", products, worst_ratio,
           (unsigned long long)stats.compiles, (unsigned long long)stats.disk_hits, (unsigned long long)stats.kernels,
           (double)stats.kernel_bytes / 1048576);
    if (twin_is_open()) twin_report();
    twin_close();
    for (int i = 0; i < 3; i++) jg_free(gpu, JG_DEVICE_MEMORY, arena[i]);
    return jg_close(gpu) == JG_OK ? 0 : -1;
}

static void need_gpu(void)
{
    if (gpu) return;
    print_message("SKIP no GPU or no compiler: %s\n", why_not);
    skip();
}

static void complain(const jg_problem *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void complain(const jg_problem *p, const char *format, ...)
{
    char text[JG_PROBLEM_TEXT_BYTES] = "?", reason[512];
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    jg_problem_format(p, text, sizeof text, NULL);
    if (failures++ < MAX_FAILURES_SHOWN) printf("FAIL %s: %s\n", text, reason);
}

static void must(const jg_problem *p, jg_status status)
{
    if (status == JG_OK) return;
    complain(p, "%s: %s", jg_status_name(status), jg_last_error());
}

static void upload(const reference *ref)
{
    const reference_matrix *x[3] = {&ref->a, &ref->b, &ref->c};
    for (int i = 0; i < 3; i++) {
        if (x[i]->block_bytes > ARENA_BYTES) fail_msg("a test problem needs %zu bytes", x[i]->block_bytes);
        must(&ref->problem, jg_copy(gpu, arena[i], i == 2 ? ref->before : x[i]->block, x[i]->block_bytes));
    }
}

static jg_operands operands_of(const reference *ref, const float *alpha, const float *beta)
{
    return (jg_operands){
        .a = (char *)arena[0] + ref->a.offset_bytes,
        .b = (char *)arena[1] + ref->b.offset_bytes,
        .c = (char *)arena[2] + ref->c.offset_bytes,
        .alpha = alpha,
        .beta = beta,
    };
}

static void download(reference *ref)
{
    must(&ref->problem, jg_copy(gpu, ref->c.block, arena[2], ref->c.block_bytes));
}

static void judge(const reference *ref, const char *what, float alpha, float beta, int exact)
{
    const reference_result r = reference_check(ref, alpha, beta);
    products++;
    if (r.worst > worst_ratio) worst_ratio = r.worst;
    if (r.checked == 0 && ref->m && ref->n && ref->batch) complain(&ref->problem, "%s: nothing was computed", what);
    if (r.failures || r.stray || (exact && r.inexact))
        complain(&ref->problem, "%s alpha %g beta %g: %lld over the bound (worst %.3g x), %lld inexact, %lld stray bytes; first at "
                 "item %lld (%lld, %lld): got %.9g, expected %.9g", what, (double)alpha, (double)beta, (long long)r.failures, r.worst,
                 (long long)r.inexact, (long long)r.stray, (long long)r.item, (long long)r.i, (long long)r.j, r.got, r.expected);
}

/* Whether this launch may run on sampled blocks: then C is poisoned before, so that what was computed can be told. */
static int is_sampled(const jg_problem *p, float beta)
{
    const double items = p->batch > 1 ? (double)p->batch : 1;
    return software && getenv("JITGEMM_SWGPU_BLOCKS") && beta == 0 && items * (double)p->m * (double)p->n * (double)p->k > 0x1p26;
}

/* Whether two results agree in every element that both computed. */
static int same_bits(const reference *ref, const unsigned char *other)
{
    if (!ref->sampled) return memcmp(other, ref->c.block, ref->c.block_bytes) == 0;
    const size_t element = ref->c.type == JG_F32 ? 4 : 2;
    static const unsigned char poison[4] = {0xff, 0xff, 0xff, 0xff};
    for (size_t at = ref->c.offset_bytes; at + element <= ref->c.block_bytes; at += element) {
        const unsigned char *x = other + at, *y = ref->c.block + at;
        if (memcmp(x, y, element) != 0 && memcmp(x, poison, element) != 0 && memcmp(y, poison, element) != 0) return 0;
    }
    return 1;
}

static void compare_with_twin(const reference *ref, float alpha, float beta, int exact)
{
    char text[512];
    if (!twin_is_open()) return;
    if (twin_compare(ref, alpha, beta, exact || ref->a.type == JG_F32, text, sizeof text)) complain(&ref->problem, "%s", text);
}

/* Runs a problem in both forms. */
static void check_both(const jg_problem *in, reference_fill fill, size_t misalign, float alpha, float beta)
{
    reference ref;
    reference_make(&ref, in, fill, misalign, (uint64_t)(in->m * 31 + in->n * 17 + in->k));
    unsigned char *generic = malloc(ref.c.block_bytes);
    assert_non_null(generic);
    const jg_operands data = operands_of(&ref, &alpha, &beta);
    if (is_sampled(in, beta)) reference_sample(&ref);
    for (int form = JG_FORM_GENERIC; form <= JG_FORM_SPECIALISED; form++) {
        ref.problem.form = (jg_form)form;
        upload(&ref);
        must(&ref.problem, jg_gemm(gpu, &ref.problem, &data));
        must(&ref.problem, jg_synchronize(gpu, NULL));
        download(&ref);
        if (form == JG_FORM_GENERIC) {
            judge(&ref, "generic", alpha, beta, fill != REFERENCE_UNIFORM);
            compare_with_twin(&ref, alpha, beta, fill != REFERENCE_UNIFORM);
            memcpy(generic, ref.c.block, ref.c.block_bytes);
        } else if (!same_bits(&ref, generic)) {
            complain(&ref.problem, "specialised and generic differ in bits (alpha %g beta %g)", (double)alpha, (double)beta);
            judge(&ref, "specialised", alpha, beta, fill != REFERENCE_UNIFORM);
        } else if (ref.sampled) {
            judge(&ref, "specialised", alpha, beta, fill != REFERENCE_UNIFORM);
        } else {
            products++;
            compare_with_twin(&ref, alpha, beta, fill != REFERENCE_UNIFORM);
        }
    }
    free(generic);
    reference_free(&ref);
}

static const jg_type types[][2] = {{JG_F32, JG_F32}, {JG_F16, JG_F16}, {JG_F16, JG_F32}, {JG_BF16, JG_BF16},
                                   {JG_BF16, JG_F32}, {JG_F16, JG_BF16}, {JG_BF16, JG_F16}};
#define TYPES (sizeof types / sizeof types[0])

/* A list of problems to run, prewarmed together so that the compiles run side by side. */
typedef struct trial {
    jg_problem problem;
    reference_fill fill;
    size_t misalign;
    float alpha, beta;
} trial;

typedef struct trials {
    trial *list;
    size_t count;
} trials;

static void add(trials *t, trial one)
{
    t->list = realloc(t->list, (t->count + 1) * sizeof *t->list);
    assert_non_null(t->list);
    t->list[t->count++] = one;
}

static void run_trials(trials *t)
{
    size_t kept = 0;
    for (size_t i = 0; i < t->count; i += stride) t->list[kept++] = t->list[i];
    t->count = kept;
    jg_problem *problems = calloc(t->count * 2, sizeof *problems);
    assert_non_null(problems);
    for (size_t i = 0; i < 2 * t->count; i++) {
        problems[i] = t->list[i / 2].problem;
        problems[i].form = i % 2 ? JG_FORM_SPECIALISED : JG_FORM_GENERIC;
        const size_t misalign = t->list[i / 2].misalign;
        problems[i].align_bytes = misalign ? (uint32_t)(misalign & -misalign) : 16;
    }
    if (jg_prewarm(gpu, problems, 2 * t->count, NULL, NULL) != JG_OK) {
        printf("FAIL prewarm: %s\n", jg_last_error());
        failures++;
    }
    for (size_t i = 0; i < t->count; i++) check_both(&t->list[i].problem, t->list[i].fill, t->list[i].misalign, t->list[i].alpha, t->list[i].beta);
    free(problems);
    free(t->list);
    memset(t, 0, sizeof *t);
    assert_int_equal(failures, 0);
}

static const int64_t small_shapes[][3] = {
    {1, 1, 1},    {1, 64, 64},   {64, 1, 64},   {64, 64, 1},   {2, 3, 5},      {15, 16, 17},   {31, 33, 32},    {63, 63, 63},
    {64, 64, 64}, {65, 65, 65},  {127, 127, 127}, {128, 128, 128}, {129, 129, 129}, {97, 191, 53}, {32, 256, 128}, {255, 257, 40},
};
#define SMALL_SHAPES (sizeof small_shapes / sizeof small_shapes[0])

static void test_all_ops_and_types(void **state)
{
    (void)state;
    need_gpu();
    trials t = {0};
    static const float scalars[][2] = {{1, 0}, {0.7f, -1.3f}, {1, 1}, {-1.9f, 0}};
    unsigned turn = 0;
    for (size_t s = 0; s < SMALL_SHAPES; s++)
        for (size_t y = 0; y < TYPES; y++)
            for (unsigned ops = 0; ops < 4; ops++, turn++) {
                const jg_problem p = {.m = small_shapes[s][0], .n = small_shapes[s][1], .k = small_shapes[s][2],
                                      .type_a = types[y][0], .type_c = types[y][1], .op_a = (jg_op)(ops & 1), .op_b = (jg_op)(ops >> 1),
                                      .order = (jg_order)(turn % 5 == 4)};
                add(&t, (trial){p, REFERENCE_UNIFORM, 0, scalars[turn % 4][0], scalars[turn % 4][1]});
            }
    run_trials(&t);
}

static void test_leading_dimensions_and_alignments(void **state)
{
    (void)state;
    need_gpu();
    trials t = {0};
    static const int64_t pads[] = {1, 2, 4, 8, 13};
    for (size_t y = 0; y < 4; y++)
        for (size_t i = 0; i < sizeof pads / sizeof pads[0]; i++)
            for (unsigned ops = 0; ops < 4; ops++) {
                jg_problem p = {.m = 72, .n = 88, .k = 104, .type_a = types[y][0], .type_c = types[y][1],
                                .op_a = (jg_op)(ops & 1), .op_b = (jg_op)(ops >> 1), .order = (jg_order)(i & 1)};
                p.lda = 128 + pads[i];
                p.ldb = 128 + pads[(i + 1) % 5];
                p.ldc = 128 + pads[(i + 2) % 5];
                const size_t element = types[y][0] == JG_F32 || types[y][1] == JG_F32 ? 4 : 2;
                add(&t, (trial){p, REFERENCE_UNIFORM, i == 0 ? element : i == 1 ? 8 : 0, 1.25f, 0.5f});
                p.lda = p.ldb = p.ldc = 0;
                add(&t, (trial){p, REFERENCE_UNIFORM, element << i % 3, 1, 0});
            }
    run_trials(&t);
}

static void test_batches(void **state)
{
    (void)state;
    need_gpu();
    trials t = {0};
    for (size_t y = 0; y < 4; y++)
        for (int share = 0; share < 3; share++) {
            jg_problem p = {.m = 65, .n = 40, .k = 33, .batch = 7, .type_a = types[y][0], .type_c = types[y][1], .op_b = (jg_op)(share & 1)};
            reference_pack(&p);
            if (share == 1) p.stride_a = 0;
            if (share == 2) p.stride_b = 0;
            add(&t, (trial){p, REFERENCE_UNIFORM, 0, 1, 1});
            p.m = 4, p.n = 4, p.k = 8, p.batch = 66000; /* more items than a grid has rows */
            p.stride_a = p.stride_b = p.stride_c = 0;
            reference_pack(&p);
            if (share == 0) add(&t, (trial){p, REFERENCE_UNIFORM, 0, 1, 0});
        }
    run_trials(&t);
}

/* Problems whose dynamic dimensions move from call to call; the others stand still. */
enum { CALLS = 6 };
static const int64_t moving[2][CALLS] = {
    {33, 40, 47, 52, 64, 130},  /* all access widths; two powers of two */
    {40, 48, 56, 64, 136, 192}, /* one access width */
};
static const struct {
    uint32_t dynamic;
    unsigned ops;
    jg_order order;
    int sizes;      /* row of `moving` */
    int shift;      /* operands start one element further */
    size_t kernels; /* at most: one for each power of two and, where rows change, for each access width; where several dimensions
                     * move, each call may lie between other powers */
} series[] = {
    {JG_DYNAMIC_M, 0, JG_ROW_MAJOR, 0, 0, 2},
    {JG_DYNAMIC_M, 1, JG_ROW_MAJOR, 0, 0, 5},
    {JG_DYNAMIC_M, 2, JG_COL_MAJOR, 1, 0, 2},
    {JG_DYNAMIC_N, 0, JG_ROW_MAJOR, 0, 0, 5},
    {JG_DYNAMIC_N, 2, JG_COL_MAJOR, 0, 1, 2},
    {JG_DYNAMIC_K, 0, JG_ROW_MAJOR, 0, 0, 5},
    {JG_DYNAMIC_K, 3, JG_COL_MAJOR, 1, 0, 2},
    {JG_DYNAMIC_BATCH, 0, JG_ROW_MAJOR, 1, 0, 2},
    {JG_DYNAMIC_M | JG_DYNAMIC_K, 1, JG_ROW_MAJOR, 0, 1, 4},
    {DYNAMIC_ALL, 0, JG_COL_MAJOR, 1, 0, CALLS},
    {DYNAMIC_ALL, 3, JG_ROW_MAJOR, 0, 1, CALLS},
};

static jg_problem moved(size_t s, size_t y, size_t call)
{
    const int64_t *sizes = moving[series[s].sizes];
    const uint32_t dynamic = series[s].dynamic;
    jg_problem p = {.m = 72, .n = 56, .k = 104, .batch = 2, .type_a = types[y][0], .type_c = types[y][1],
                    .op_a = (jg_op)(series[s].ops & 1), .op_b = (jg_op)(series[s].ops >> 1), .order = series[s].order,
                    .form = JG_FORM_SPECIALISED, .dynamic = dynamic};
    if (dynamic & JG_DYNAMIC_M) p.m = sizes[call];
    if (dynamic & JG_DYNAMIC_N) p.n = sizes[(call + 1) % CALLS];
    if (dynamic & JG_DYNAMIC_K) p.k = sizes[(call + 2) % CALLS];
    if (dynamic & JG_DYNAMIC_BATCH) p.batch = 1 + sizes[call] % 5;
    reference_pack(&p);
    return p;
}

/* Few kernels are made for sizes that move, and each gives the bits of the generic kernel, and so of the one that has the sizes
 * as constants. */
static void test_dynamic_dimensions(void **state)
{
    (void)state;
    need_gpu();
    static const size_t some_types[] = {0, 1, 4};
    trials constant = {0}, dynamic = {0};
    size_t turn = 0;
    for (size_t s = 0; s < sizeof series / sizeof series[0]; s++)
        for (size_t i = 0; i < 3; i++) {
            const size_t y = some_types[i];
            const size_t misalign = !series[s].shift ? 0 : types[y][1] == JG_F32 ? 4 : 2;
            if (turn++ % stride) continue;
            jg_problem calls[CALLS];
            for (size_t call = 0; call < CALLS; call++) {
                jg_problem p = calls[call] = moved(s, y, call);
                calls[call].align_bytes = misalign ? (uint32_t)misalign : 16;
                add(&dynamic, (trial){p, REFERENCE_UNIFORM, misalign, 1.25f, call % 2 ? 0.5f : 0});
                p.dynamic = 0;
                if (call == s % CALLS) add(&constant, (trial){p, REFERENCE_UNIFORM, misalign, 1.25f, call % 2 ? 0.5f : 0});
            }
            jg_prewarm_result made = {0};
            must(&calls[0], jg_prewarm(gpu, calls, CALLS, NULL, &made));
            const size_t kernels = made.compiled + made.cached;
            if (kernels > series[s].kernels) complain(&calls[0], "%zu kernels for %d calls, not %zu", kernels, CALLS, series[s].kernels);
        }
    run_trials(&constant);
    /* By now every generic kernel that serves the sizes is there too, or is made by these. */
    for (size_t i = 0; i < dynamic.count; i++) {
        jg_problem generic = dynamic.list[i].problem;
        generic.form = JG_FORM_GENERIC;
        generic.align_bytes = dynamic.list[i].misalign ? (uint32_t)dynamic.list[i].misalign : 16;
        must(&generic, jg_prewarm(gpu, &generic, 1, NULL, NULL));
    }
    jg_stats before, after;
    jg_cache_stats(gpu, &before);
    run_trials(&dynamic);
    jg_cache_stats(gpu, &after);
    assert_int_equal(after.kernels, before.kernels);
    assert_int_equal(after.compiles, before.compiles);
}

static void test_exact_sums(void **state)
{
    (void)state;
    need_gpu();
    trials t = {0};
    for (size_t s = 0; s < SMALL_SHAPES; s++)
        for (size_t y = 0; y < 3; y++) {
            const jg_problem p = {.m = small_shapes[s][0], .n = small_shapes[s][1], .k = small_shapes[s][2] * 5,
                                  .type_a = types[y][0], .type_c = types[y][1]};
            add(&t, (trial){p, REFERENCE_INTEGERS, 0, 1, 0});
            add(&t, (trial){p, REFERENCE_ONES, 0, 1, 0});
        }
    run_trials(&t);
}

static void test_large_and_odd(void **state)
{
    (void)state;
    need_gpu();
    trials t = {0};
    static const int64_t shapes[][3] = {{1021, 1021, 1021}, {1023, 1023, 1023}, {1024, 1025, 1024}, {1024, 1024, 1024},
                                        {3000, 200, 77},    {1, 4096, 4096},    {8, 1000, 2048},    {64, 64, 16384}};
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
        for (size_t y = 0; y < 4; y++)
            for (unsigned ops = 0; ops < 4; ops += 3) {
                const jg_problem p = {.m = shapes[s][0], .n = shapes[s][1], .k = shapes[s][2], .type_a = types[y][0],
                                      .type_c = types[y][1], .op_a = (jg_op)(ops & 1), .op_b = (jg_op)(ops >> 1)};
                add(&t, (trial){p, REFERENCE_UNIFORM, 0, 1, 0});
            }
    run_trials(&t);
}

/* Sizes of 0, alpha = 0 and beta = 0, with NaN planted where nothing may be read. */
static void test_blas_rules(void **state)
{
    (void)state;
    need_gpu();
    static const struct {
        int64_t m, n, k;
        float alpha, beta;
        int poison_ab, poison_c;
    } cases[] = {
        {0, 64, 64, 1, 0, 0, 0},  {64, 0, 64, 1, 0, 0, 0}, {64, 64, 0, 1, 0, 1, 1},  {64, 64, 0, 1, 0.5f, 1, 0},
        {70, 66, 34, 0, 0, 1, 1}, {70, 66, 34, 0, 2, 1, 0}, {70, 66, 34, 1, 0, 0, 1},
    };
    for (size_t y = 0; y < TYPES; y++)
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
            for (int form = JG_FORM_AUTO; form <= JG_FORM_SPECIALISED; form++) {
                const jg_problem p = {.m = cases[i].m, .n = cases[i].n, .k = cases[i].k, .type_a = types[y][0], .type_c = types[y][1],
                                      .form = (jg_form)form};
                reference ref;
                reference_make(&ref, &p, REFERENCE_UNIFORM, 0, i);
                if (cases[i].poison_ab) reference_poison(&ref.a), reference_poison(&ref.b);
                if (cases[i].poison_c) reference_poison(&ref.c), reference_snapshot(&ref);
                upload(&ref);
                jg_operands data = operands_of(&ref, &cases[i].alpha, &cases[i].beta);
                if (cases[i].poison_ab && form == JG_FORM_AUTO) data.a = data.b = NULL;
                must(&p, jg_gemm(gpu, &p, &data));
                download(&ref);
                judge(&ref, "rule", cases[i].alpha, cases[i].beta, 0);
                reference_free(&ref);
            }
    assert_int_equal(failures, 0);
}

#define MAX_FORCED 160
#define MAX_SLICES 32

/* Forces every candidate of the planner, both forms: all of so many slices must give the same bits. */
typedef struct forced {
    const problem *p;
    plan plans[MAX_FORCED];
    size_t count, next;
    pthread_mutex_t lock;
} forced;

static void collect(void *user, const plan *candidate, const char *reason)
{
    forced *f = user;
    if (reason[0]) return;
    if (f->count >= MAX_FORCED) fail_msg("more than %d kernels", MAX_FORCED);
    f->plans[f->count++] = *candidate;
}

static void *make_images(void *user)
{
    forced *f = user;
    for (;;) {
        pthread_mutex_lock(&f->lock);
        size_t i = f->next++;
        pthread_mutex_unlock(&f->lock);
        if (i >= f->count) return NULL;
        image img;
        jg_source source;
        if (images_get(gpu->images, &f->plans[i].spec, "tile test", EFFORT_COMPILE, &img, &source) == JG_OK) image_free(&img);
    }
}

static void launch_forced(const jg_problem *in, const plan *chosen, const problem *p, const jg_operands *data)
{
    lru_entry *entry;
    jg_source source;
    launch_args args;
    jg_status status = kernels_obtain(gpu, &chosen->spec, "tile test", EFFORT_COMPILE, &entry, &source);
    must(in, status);
    if (status != JG_OK) return;
    launch_prepare(p, chosen, &args);
    args.a = data->a;
    args.b = data->b;
    args.c = data->c;
    args.alpha = *data->alpha;
    args.beta = *data->beta;
    device_scope scope;
    must(in, device_enter(&gpu->device, &scope));
    must(in, launch_kernel(&gpu->device, lru_value(entry), p, chosen, &args, NULL));
    device_leave(&gpu->device, &scope);
    must(in, jg_synchronize(gpu, NULL));
    lru_release(entry);
}

/* table: the architecture whose tiles to run; target: the one to compile for. Where that is not this chip's, the driver refuses
 * the cubin and translates the PTX. */
static void force_tiles(const jg_problem *in, int table, int target)
{
    problem p;
    limits l;
    must(in, problem_canonicalise(in, &p));
    must(in, limits_of_arch(table, 0, &l));
    forced f = {.p = &p, .lock = PTHREAD_MUTEX_INITIALIZER};
    const access_widths access = problem_promised_access(&p);
    plan_each(&p, access, JG_FORM_GENERIC, &l, collect, &f);
    plan_each(&p, access, JG_FORM_SPECIALISED, &l, collect, &f);
    for (size_t i = 0; i < f.count; i++) f.plans[i].spec.arch = (uint16_t)target;
    pthread_t threads[16];
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    const int jobs = online < 1 ? 1 : online > 16 ? 16 : (int)online;
    for (int i = 0; i < jobs; i++) assert_int_equal(pthread_create(&threads[i], NULL, make_images, &f), 0);
    for (int i = 0; i < jobs; i++) pthread_join(threads[i], NULL);

    reference ref;
    const float alpha = 1.5f, beta = -0.75f;
    reference_make(&ref, in, REFERENCE_UNIFORM, 0, 77);
    const jg_operands data = operands_of(&ref, &alpha, &beta);
    unsigned char *first_of[MAX_SLICES + 1] = {NULL};
    for (size_t i = 0; i < f.count; i++) {
        const int slices = f.plans[i].spec.tile.slices;
        if (slices > MAX_SLICES) fail_msg("more than %d slices", MAX_SLICES);
        unsigned char **first = &first_of[slices];
        char name[KERNEL_NAME_BYTES];
        kernel_format_name(&f.plans[i].spec, name);
        upload(&ref);
        launch_forced(in, &f.plans[i], &p, &data);
        download(&ref);
        products++;
        if (!*first) {
            judge(&ref, name, alpha, beta, 0);
            *first = malloc(ref.c.block_bytes);
            assert_non_null(*first);
            memcpy(*first, ref.c.block, ref.c.block_bytes);
        } else if (memcmp(*first, ref.c.block, ref.c.block_bytes) != 0) {
            complain(in, "%s gives other bits than the first tile", name);
            judge(&ref, name, alpha, beta, 0);
        }
    }
    for (int i = 0; i <= MAX_SLICES; i++) free(first_of[i]);
    reference_free(&ref);
}

static void test_every_tile_gives_the_same_bits(void **state)
{
    (void)state;
    need_gpu();
    static const int64_t shapes[][3] = {{264, 328, 200}, {261, 323, 197}};
    size_t turn = 0;
    for (size_t s = 0; s < 2; s++)
        for (size_t y = 0; y < 4; y++)
            for (unsigned ops = 0; ops < 4; ops++) {
                const jg_problem p = {.m = shapes[s][0], .n = shapes[s][1], .k = shapes[s][2], .type_a = types[y][0],
                                      .type_c = types[y][1], .op_a = (jg_op)(ops & 1), .op_b = (jg_op)(ops >> 1)};
                if (y == 2 || turn++ % stride) continue; /* 2: as 1 but for C */
                const int number = gpu->device.limits.arch->number;
                force_tiles(&p, number, number);
            }
    assert_int_equal(failures, 0);
}

/* The tiles of the other architectures' tables, on this chip: sm_75 computes 16-bit types on the CUDA cores, sm_86 has fewer
 * stages. */
static void test_tiles_of_other_architectures(void **state)
{
    (void)state;
    need_gpu();
    static const int tables[] = {75, 86, 87};
    const int number = gpu->device.limits.arch->number;
    size_t turn = 0;
    for (size_t t = 0; t < sizeof tables / sizeof tables[0] && tables[t] <= number; t++)
        for (size_t y = 1; y < TYPES; y++) {
            const jg_problem p = {.m = 261, .n = 328, .k = 200 + 5 * (int64_t)(y & 1), .type_a = types[y][0], .type_c = types[y][1],
                                  .op_a = (jg_op)(y & 1), .op_b = (jg_op)(y >> 1 & 1)};
            if (turn++ % stride == 0) force_tiles(&p, tables[t], number);
        }
    assert_int_equal(failures, 0);
}

/* What a device gets from a cache made for an older one: PTX, translated by the driver. */
static void test_ptx_of_an_older_architecture(void **state)
{
    (void)state;
    need_gpu();
    if (gpu->device.limits.arch->number <= 87) {
        print_message("SKIP this chip is not newer than sm_87\n");
        skip();
    }
    for (size_t y = 0; y < 2; y++) {
        const jg_problem p = {.m = 97, .n = 136, .k = 75, .type_a = types[y][0], .type_c = types[y][1], .op_b = JG_T};
        force_tiles(&p, 87, 87);
    }
    assert_int_equal(failures, 0);
}

/* A plan's own path, and a second look at the same problem: no compile, no load. */
static void test_plan_and_hit(void **state)
{
    (void)state;
    need_gpu();
    const jg_problem p = {.m = 96, .n = 80, .k = 112, .type_a = JG_F16};
    jg_plan *made;
    jg_plan_details details;
    jg_stats before, after;
    must(&p, jg_plan_create(gpu, &p, &made));
    must(&p, jg_plan_info(made, &details));
    assert_true(details.registers > 0 && details.blocks_per_sm > 0);
    reference ref;
    reference_make(&ref, &p, REFERENCE_UNIFORM, 0, 5);
    upload(&ref);
    const jg_operands data = operands_of(&ref, NULL, NULL);
    jg_cache_stats(gpu, &before);
    must(&p, jg_plan_run(made, &data));
    must(&p, jg_gemm(gpu, &p, &data));
    jg_cache_stats(gpu, &after);
    assert_int_equal(after.compiles, before.compiles);
    assert_int_equal(after.memory_hits, before.memory_hits + 1);
    download(&ref);
    judge(&ref, "plan", 1, 0, 0);
    assert_int_equal(jg_close(gpu), JG_ERR_BUSY);
    jg_plan_destroy(made);
    reference_free(&ref);
    assert_int_equal(failures, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plan_and_hit),
        cmocka_unit_test(test_blas_rules),
        cmocka_unit_test(test_all_ops_and_types),
        cmocka_unit_test(test_leading_dimensions_and_alignments),
        cmocka_unit_test(test_batches),
        cmocka_unit_test(test_dynamic_dimensions),
        cmocka_unit_test(test_exact_sums),
        cmocka_unit_test(test_large_and_odd),
        cmocka_unit_test(test_every_tile_gives_the_same_bits),
        cmocka_unit_test(test_tiles_of_other_architectures),
        cmocka_unit_test(test_ptx_of_an_older_architecture),
    };
    const char *filter = getenv("JG_TEST_FILTER");
    if (filter) cmocka_set_test_filter(filter);
    return cmocka_run_group_tests(tests, open_gpu, close_gpu);
}
