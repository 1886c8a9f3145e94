/* One product measured against peers, on the software GPU: who takes part, what a row says of them, and what becomes of those who
 * refuse, fail or are wrong. */
#include "contest_fixture.h"

#include <math.h>

#include "context.h"
#include "tools/bench_significance.h"

/* ---- rows ---- */

static bench_product make_product(const char *text, size_t rotated_bytes)
{
    bench_product product = {.suite = "layers", .list = "resnet50", .text = text, .rotated = rotated_bytes > 0};
    assert_ok(jg_problem_parse(text, &product.problem));
    assert_ok(bench_layout_make(&product.problem, rotated_bytes, 100, &product.layout));
    return product;
}

static cJSON *row;   /* of the last contest */
static double gain;
static int wrong;

static void compete(const bench_product *product)
{
    need_nvrtc();
    cJSON_Delete(row);
    row = NULL;
    wrong = -1;
    assert_ok(bench_contest(&arena, product, &row, &gain, &wrong));
    assert_non_null(row);
}

/* Spoils C behind the library's launch of this number from now on, counted from 1; 0: no longer. */
static struct {
    int at, launches;
    CUresult (*launch)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void **, void **);
} spoiling;

static CUresult CUDAAPI launch_and_spoil(CUfunction function, unsigned x, unsigned y, unsigned z, unsigned tx, unsigned ty, unsigned tz,
                                         unsigned shared, CUstream stream, void **parameters, void **extra)
{
    const CUresult result = spoiling.launch(function, x, y, z, tx, ty, tz, shared, stream, parameters, extra);
    if (++spoiling.launches == spoiling.at) gpu.memory_set(arena.pool.out, 0x3f, 1);
    return result;
}

static void spoil_after(int launches)
{
    driver *d = arena.context->device.driver;
    if (!spoiling.launch) spoiling.launch = d->launch;
    spoiling.at = launches;
    spoiling.launches = 0;
    d->launch = launches ? launch_and_spoil : spoiling.launch;
}

static const cJSON *contestant(const char *name)
{
    const cJSON *one;
    cJSON_ArrayForEach(one, cJSON_GetObjectItem(row, "contestants"))
        if (strcmp(cJSON_GetStringValue(cJSON_GetObjectItem(one, "name")), name) == 0) return one;
    return NULL;
}

static double number(const cJSON *object, const char *name)
{
    const cJSON *found = cJSON_GetObjectItem(object, name);
    if (!cJSON_IsNumber(found)) fail_msg("no number %s in %s", name, cJSON_Print(row));
    return found->valuedouble;
}

static void assert_number(const cJSON *object, const char *name, double value)
{
    const double found = number(object, name);
    if (fabs(found - value) > 1e-5 * fabs(value)) fail_msg("%s is %.9g, not %.9g", name, found, value);
}

static void assert_text(const char *name, const char *text)
{
    assert_non_null(cJSON_GetObjectItem(row, name));
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(row, name)), text);
}

static void assert_us(const char *name, double us)
{
    const cJSON *figures = cJSON_GetObjectItem(contestant(name), "us");
    static const char *const each[] = {"min", "p25", "p50", "p75", "max"};
    if (!figures) fail_msg("%s has no times", name);
    assert_number(figures, "n", (double)arena.rounds);
    for (size_t i = 0; i < COUNT(each); i++) assert_number(figures, each[i], us);
    assert_null(cJSON_GetObjectItem(contestant(name), "refused"));
}

static void assert_refused(const char *name, const char *why)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(contestant(name), "refused"));
    if (!text || !strstr(text, why)) fail_msg("%s: \"%s\" lacks \"%s\"", name, text ? text : "(none)", why);
    assert_null(cJSON_GetObjectItem(contestant(name), "us"));
}

/* ---- all take part ---- */

static void a_whole_row(void **state)
{
    (void)state;
    const bench_product product = make_product("32x48x16:f16", 0);
    arena.generic = 1;
    bench_ceilings_add(&arena.ceilings, "f16", "TFLOP/s", 1e-1, "");  /* 49152 operations: 0.49152 us */
    bench_ceilings_add(&arena.ceilings, "memory", "GB/s", 1, "");
    bench_ceilings_add(&arena.ceilings, "l2", "GB/s", 2.816, "");     /* 5632 bytes: 2 us */
    compete(&product);
    assert_text("suite", "layers");
    assert_text("list", "resnet50");
    assert_text("problem", "32x48x16:f16");
    assert_text("type", "f16");
    assert_text("data", "resident");
    assert_number(row, "m", 32);
    assert_number(row, "n", 48);
    assert_number(row, "k", 16);
    assert_number(row, "batch", 1);
    assert_number(row, "flops", 2 * 32 * 48 * 16);
    assert_number(row, "bytes", 2 * (32 * 16 + 16 * 48 + 32 * 48));
    assert_int_equal(strncmp(cJSON_GetStringValue(cJSON_GetObjectItem(row, "kernel")), "jg_sm87_", 8), 0);
    int block[3], warp[2], stages;
    assert_int_equal(sscanf(cJSON_GetStringValue(cJSON_GetObjectItem(row, "plan")), "%*s %dx%dx%d w%dx%d s%d", &block[0], &block[1],
                            &block[2], &warp[0], &warp[1], &stages), 6);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(row, "contestants")), 5);
    assert_us("jitgemm", OWN_US);
    assert_us("generic", GENERIC_US);
    assert_us("cublas", CUBLAS_US);
    assert_us("lt first", choice_us[0]);
    assert_us("lt best", choice_us[1]);
    assert_text("peer", "cublas");
    assert_number(row, "ratio", (double)CUBLAS_US / OWN_US);
    const double ours[] = {4, 4, 4, 4, 4}, theirs[] = {5, 5, 5, 5, 5};
    assert_number(row, "ratio_p", bench_mann_whitney(ours, 5, theirs, 5));
    assert_number(row, "roofline_percent", 50);
    assert_text("bound", "l2");
    assert_true(number(cJSON_GetObjectItem(row, "check"), "reference") <= 1);
    assert_true(number(cJSON_GetObjectItem(row, "check"), "peer") <= 1);
    assert_null(cJSON_GetObjectItem(row, "counters"));
    assert_int_equal(wrong, 0);
    assert_true(fabs(gain - (double)GENERIC_US / OWN_US) < 1e-5);
}

/* Each round begins with another one, since whoever comes after a hot kernel is slower. */
static void in_turns(void **state)
{
    (void)state;
    const bench_product product = make_product("32x48x16:f16", 0);
    const int order[] = {OWN_US, GENERIC_US, CUBLAS_US, choice_us[0], choice_us[1]};
    arena.generic = 1;
    compete(&product);
    assert_true(times.launches >= 25 && times.launches <= COUNT(times.launched));
    const int *launched = &times.launched[times.launches - 25];
    for (int round = 0; round < 5; round++)
        for (int i = 0; i < 5; i++) assert_int_equal(launched[5 * round + i], order[(round + i) % 5]);
}

/* Without peers there is no ratio, without the generic kernel no gain, without ceilings no roofline. */
static void alone(void **state)
{
    (void)state;
    const bench_product product = make_product("16x16x16:f32", 0);
    arena.has_peer = arena.has_lt = 0;
    compete(&product);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(row, "contestants")), 1);
    assert_us("jitgemm", OWN_US);
    static const char *const absent[] = {"peer", "ratio", "ratio_p", "roofline_percent", "bound"};
    for (size_t i = 0; i < COUNT(absent); i++) assert_null(cJSON_GetObjectItem(row, absent[i]));
    assert_null(cJSON_GetObjectItem(cJSON_GetObjectItem(row, "check"), "peer"));
    assert_true(number(cJSON_GetObjectItem(row, "check"), "reference") <= 1);
    assert_true(gain == 0);
    assert_int_equal(peer.calls, 0);
}

/* All rounds of a product together take three seconds at most, or five rounds. */
static void long_products(void **state)
{
    (void)state;
    static const struct { double ms; int rounds; } rows[] = {{100, 21}, {400, 7}, {1000, 5}};
    const bench_product product = make_product("16x16x16:f32", 0);
    arena.has_peer = arena.has_lt = 0;
    arena.rounds = 21;
    for (size_t i = 0; i < COUNT(rows); i++) {
        times.scale = rows[i].ms * 1e3 / OWN_US;
        times.own_graphs = 0;
        compete(&product);
        assert_number(cJSON_GetObjectItem(contestant("jitgemm"), "us"), "n", rows[i].rounds);
        assert_number(cJSON_GetObjectItem(contestant("jitgemm"), "us"), "p50", rows[i].ms * 1e3);
    }
}

/* The generic kernel is no contestant of itself. */
static void generic_form(void **state)
{
    (void)state;
    const bench_product product = make_product("16x16x16:f32:generic", 0);
    arena.generic = 1;
    compete(&product);
    assert_null(contestant("generic"));
    assert_us("jitgemm", OWN_US);
    assert_true(gain == 0);
}

/* Over several sets of operands: a replay uses all of them, and memory bounds it. */
static void rotated(void **state)
{
    (void)state;
    const bench_product product = make_product("32x48x16:f16", 10 * 5632);
    bench_ceilings_add(&arena.ceilings, "f16", "TFLOP/s", 1, "");
    bench_ceilings_add(&arena.ceilings, "memory", "GB/s", 2.816, "");
    bench_ceilings_add(&arena.ceilings, "l2", "GB/s", 28.16, "");
    assert_int_equal(product.layout.sets, 10);
    compete(&product);
    assert_text("data", "rotated");
    assert_int_equal(peer.seen, 10);
    assert_us("cublas", CUBLAS_US);
    assert_text("bound", "memory");
    assert_true(number(cJSON_GetObjectItem(row, "check"), "peer") <= 1);
}

/* ---- peers that refuse, fail, or are wrong ---- */

static void peers_that_refuse(void **state)
{
    (void)state;
    const bench_product product = make_product("32x48x16:f16", 0);
    peer.refuses = 1;
    compete(&product);
    assert_refused("cublas", "cublasGemmEx: CUBLAS_STATUS_NOT_SUPPORTED");
    assert_us("jitgemm", OWN_US);
    assert_text("peer", "lt best"); /* who is next */
    assert_number(row, "ratio", (double)choice_us[1] / OWN_US);
    assert_true(number(cJSON_GetObjectItem(row, "check"), "peer") <= 1);

    peer.no_choice = 1;
    times.own_graphs = 0;
    compete(&product);
    assert_refused("cublas", "NOT_SUPPORTED");
    assert_refused("lt first", "no choice");
    assert_refused("lt best", "no choice");
    assert_us("jitgemm", OWN_US);
    assert_null(cJSON_GetObjectItem(row, "ratio"));
    assert_null(cJSON_GetObjectItem(row, "peer"));

    peer.no_choice = 0;
    peer.refuses = 0;
    peer.lt_refuses = 1;
    times.own_graphs = 0;
    compete(&product);
    assert_refused("lt first", "cublasLtMatmul: CUBLAS_STATUS_NOT_SUPPORTED");
    assert_refused("lt best", "cublasLtMatmul: CUBLAS_STATUS_NOT_SUPPORTED");
    assert_us("cublas", CUBLAS_US);
    assert_text("peer", "cublas");
}

/* It is the peer that is off: ours is not wrong for it. */
static void a_peer_that_is_wrong(void **state)
{
    (void)state;
    const bench_product product = make_product("32x48x16:f16", 0);
    peer.wrong = 1;
    compete(&product);
    assert_true(number(cJSON_GetObjectItem(row, "check"), "peer") > 1);
    assert_true(number(cJSON_GetObjectItem(row, "check"), "reference") <= 1);
    assert_int_equal(wrong, 0);
}

/* The reference believes in other numbers than those on the device, so that ours is wrong; the peer agrees with us. */
static void ours_is_wrong(void **state)
{
    (void)state;
    const bench_product product = make_product("32x48x16:f16", 0);
    need_nvrtc();
    arena.generic = 1;
    assert_ok(bench_pool_fill(&arena.pool, &product.layout));
    for (int i = 0; i < 512; i++) arena.pool.patterns[0][i] = -arena.pool.patterns[0][i];
    compete(&product);
    assert_true(number(cJSON_GetObjectItem(row, "check"), "reference") > 1);
    assert_true(number(cJSON_GetObjectItem(row, "check"), "peer") <= 1);
    assert_int_equal(wrong, 1);
    assert_us("generic", GENERIC_US);
    assert_true(gain == 0); /* nobody should prefer it */
    arena.pool.patterns[0][0] = NAN; /* JSON has no infinity: a large number stands for it */
    times.own_graphs = 0;
    compete(&product);
    assert_true(number(cJSON_GetObjectItem(row, "check"), "reference") == 1e9);
    assert_int_equal(wrong, 1);
}

/* One that gives a result, but cannot be recorded: the others are measured. */
static void peers_that_cannot_be_recorded(void **state)
{
    (void)state;
    const bench_product product = make_product("32x48x16:f16", 0);
    peer.fails_in_capture = 1;
    compete(&product);
    assert_refused("cublas", "CUBLAS_STATUS_INTERNAL_ERROR");
    assert_us("jitgemm", OWN_US);
    assert_us("lt first", choice_us[0]);
    assert_true(number(cJSON_GetObjectItem(row, "check"), "peer") <= 1);

    peer.fails_in_capture = 0;
    peer.waits_in_capture = 1;
    times.own_graphs = 0;
    compete(&product);
    assert_refused("cublas", "recording it into a graph");
    assert_us("jitgemm", OWN_US);
    assert_us("lt best", choice_us[1]);
    assert_int_equal(peer.best, 1);
}

/* ---- ours refuses, and what ends a run ---- */

/* Nothing is loaded, and nothing may be compiled: the row tells, and of the peers too. */
static void ours_refuses(void **state)
{
    (void)state;
    bench_product product = make_product("33x34x35:bf16", 0); /* no other test's type */
    product.problem.compile = JG_COMPILE_NEVER;
    product.problem.form = JG_FORM_SPECIALISED;
    arena.generic = 1;
    compete(&product);
    assert_refused("jitgemm", "");
    assert_true(strlen(cJSON_GetStringValue(cJSON_GetObjectItem(contestant("jitgemm"), "refused"))) > 10);
    assert_refused("generic", "");
    assert_us("cublas", CUBLAS_US);
    assert_text("kernel", "");
    assert_text("plan", "");
    assert_null(cJSON_GetObjectItem(row, "ratio"));
    assert_null(cJSON_GetObjectItem(cJSON_GetObjectItem(row, "check"), "reference"));
    assert_true(gain == 0);
    assert_int_equal(wrong, 0);
}

static void no_compiler(void **state)
{
    (void)state;
    const bench_product product = make_product("36x34x35:f32", 0);
    jg_context *kept = arena.context;
    const jg_options options = {.device = JG_DEVICE_CUDA, .compile = JG_COMPILE_WAIT, .resident = JG_RESIDENT_NONE,
                                .cache_path = "", .factory_path = "", .driver_path = swgpu_path(),
                                .nvrtc_path = "no-such-nvrtc.so"};
    cJSON_Delete(row);
    assert_ok(jg_open(&options, &arena.context));
    const jg_status status = bench_contest(&arena, &product, &row, &gain, &wrong);
    jg_close(arena.context);
    arena.context = kept;
    assert_string_equal(jg_status_name(status), "JG_ERR_NO_NVRTC");
    assert_null(row);
}

static void out_of_memory(void **state)
{
    (void)state;
    const bench_product product = make_product("32x48x16:f16", 0);
    int (*set_faults)(const char *);
    need_nvrtc();
    *(void **)&set_faults = dlsym(gpu.driver->handle, "swgpuSetFaults");
    assert_non_null(set_faults);
    /* At the first result, while recording, while measuring. */
    static const char *const faults[] = {"cuMemcpy:2:CUDA_ERROR_OUT_OF_MEMORY",
                                         "cuGraphInstantiateWithFlags:2:CUDA_ERROR_OUT_OF_MEMORY",
                                         "cuGraphLaunch:30:CUDA_ERROR_OUT_OF_MEMORY"};
    for (size_t i = 0; i < COUNT(faults); i++) {
        cJSON_Delete(row);
        assert_int_equal(set_faults(faults[i]), CUDA_SUCCESS);
        const jg_status status = bench_contest(&arena, &product, &row, &gain, &wrong);
        set_faults("");
        if (status != JG_ERR_NO_MEMORY || row) fail_msg("%s: %s", faults[i], jg_status_name(status));
    }
    times.own_graphs = 0;
    compete(&product); /* as good as before */
    assert_us("jitgemm", OWN_US);
}

/* ---- the software GPU, and ceilings ---- */

static void counters(void **state)
{
    (void)state;
    const bench_product product = make_product("32x48x16:f16", 0);
    arena.gpu = &gpu; /* which says what it is */
    arena.generic = 0;
    compete(&product);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(row, "contestants")), 1);
    assert_non_null(contestant("jitgemm"));
    assert_null(cJSON_GetObjectItem(contestant("jitgemm"), "us"));
    const cJSON *c = cJSON_GetObjectItem(row, "counters");
    assert_true(number(c, "instructions") > 0 && number(c, "global_load_sectors") > 0);
    assert_true(number(c, "blocks") > 0 && number(c, "blocks") == number(c, "blocks_run"));
    /* every element of C once: 1536 of 2 bytes, in sectors of 32 */
    assert_true(number(c, "global_store_sectors") >= 96);
    assert_true(number(cJSON_GetObjectItem(row, "check"), "reference") <= 1);
    assert_null(cJSON_GetObjectItem(row, "ratio"));
    assert_int_equal(peer.calls, 0);
    assert_int_equal(wrong, 0);
}

/* 49152 operations in 8 us, by cuBLASLt's first choice. */
static void a_ceiling(void **state)
{
    (void)state;
    const bench_product product = make_product("32x48x16:f16", 0);
    assert_ok(bench_contest_ceiling(&arena, &product));
    assert_int_equal(arena.ceilings.count, 1);
    const bench_ceiling *c = &arena.ceilings.list[0];
    assert_string_equal(c->name, "f16");
    assert_string_equal(c->unit, "TFLOP/s");
    assert_string_equal(c->how, "cuBLASLt, 32x48x16:f16");
    assert_true(fabs(c->value / (49152.0 / 8e-6 / 1e12) - 1) < 1e-5);
    assert_int_equal(peer.calls, 0);
    peer.no_choice = 1;
    assert_ok(bench_contest_ceiling(&arena, &product));
    arena.has_lt = 0;
    assert_ok(bench_contest_ceiling(&arena, &product));
    assert_int_equal(arena.ceilings.count, 1);
}

/* A batch of the suite of small ones is computed by a grouped call too. It is no peer. */
static void a_grouped_call(void **state)
{
    (void)state;
    bench_product product = make_product("16x24x32x70:f16:nt", 0); /* two launches */
    arena.has_peer = arena.has_lt = 0;
    compete(&product);
    assert_null(contestant("grouped"));
    product.suite = "tiny";
    compete(&product);
    const cJSON *us = cJSON_GetObjectItem(contestant("grouped"), "us");
    if (!us) fail_msg("no times in %s", cJSON_Print(row));
    assert_number(us, "n", (double)arena.rounds);
    assert_int_equal(wrong, 0);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(row, "contestants")), 2);
    assert_null(cJSON_GetObjectItem(row, "peer"));
    hooked.software = 1;
    compete(&product);
    hooked.software = 0;
    assert_non_null(contestant("grouped"));
    assert_null(cJSON_GetObjectItem(contestant("grouped"), "refused"));
    assert_int_equal(wrong, 0);
}

/* Its bits are ours. The first element of C is spoilt behind each launch that is not recorded. */
static void a_grouped_call_that_is_wrong(void **state)
{
    (void)state;
    bench_product product = make_product("16x16x16x3:f16", 0);
    product.suite = "tiny";
    arena.has_peer = arena.has_lt = 0;
    need_nvrtc();
    spoil_after(2);
    compete(&product);
    spoil_after(0);
    assert_refused("grouped", "its result has other bits than ours");
    assert_int_equal(wrong, 1);
    assert_us("jitgemm", OWN_US);
    assert_true(number(cJSON_GetObjectItem(row, "check"), "reference") <= 1);
}

/* ---- all of them ---- */

static int close_all(void **state)
{
    cJSON_Delete(row);
    return close_arena(state);
}

#define TEST(name) cmocka_unit_test_setup(name, reset_arena)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_whole_row), TEST(in_turns), TEST(alone), TEST(long_products), TEST(generic_form), TEST(rotated),
        TEST(peers_that_refuse), TEST(a_peer_that_is_wrong), TEST(ours_is_wrong), TEST(peers_that_cannot_be_recorded),
        TEST(ours_refuses), TEST(no_compiler), TEST(out_of_memory), TEST(counters), TEST(a_ceiling),
        TEST(a_grouped_call), TEST(a_grouped_call_that_is_wrong),
    };
    return run_on_swgpu(tests, open_arena, close_all);
}
