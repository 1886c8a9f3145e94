/* The ceilings of a GPU. On the software GPU the kernels run with few steps, and what they do is counted instruction by
 * instruction; the times are made up here, so that each value can be computed by hand. */
#include "bench_gpu_fixture.h"

#include <math.h>

#include "tools/bench_ceiling.h"

/* ---- what is between the kernels and the driver ---- */

/* In the order of swgpuCounters. */
enum {
#define MEMBER(name) SEEN_##name,
    SWGPU_COUNTERS(MEMBER)
#undef MEMBER
    SEEN_COUNT
};

typedef struct launch_seen {
    unsigned blocks, threads;
    uint32_t steps, passes;
    uint64_t counts[SEEN_COUNT];
} launch_seen;

static launch_seen seen[512];
static size_t seen_count;
static driver hooked;
static CUresult(CUDAAPI *real_launch)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,
                                      void **, void **);
static int timed;      /* calls of the clock */
static int uneven;     /* no two times are the same */

static CUresult CUDAAPI counted_launch(CUfunction f, unsigned x, unsigned y, unsigned z, unsigned tx, unsigned ty, unsigned tz,
                                       unsigned shared, CUstream stream, void **parameters, void **extra)
{
    const CUresult result = real_launch(f, x, y, z, tx, ty, tz, shared, stream, parameters, extra);
    launch_seen *s = &seen[seen_count++ % COUNT(seen)];
    *s = (launch_seen){.blocks = x * y * z, .threads = tx * ty * tz, .steps = *(uint32_t *)parameters[1],
                       .passes = *(uint32_t *)parameters[2]};
    gpu.driver->stream_synchronize(stream);
    gpu.driver->counters(s->counts, SEEN_COUNT);
    return result;
}

/* Every launch takes 1 ms, or each one another time: the third of a kernel's samples is the fastest. */
static CUresult CUDAAPI made_up_time(float *ms, CUevent from, CUevent to)
{
    (void)from, (void)to;
    static const float times[] = {1.5f, 1.25f, 4, 1, 2};
    *ms = uneven ? times[timed % 5] : 1;
    timed++;
    return CUDA_SUCCESS;
}

static int open_as(const char *device)
{
    setenv("JITGEMM_SWGPU_DEVICE", device, 1);
    if (open_swgpu(NULL) != 0) return -1;
    hooked = *gpu.driver;
    real_launch = hooked.launch;
    hooked.launch = counted_launch;
    return 0;
}

/* Two blocks, three steps; 128 KiB are the "cache": a quarter is a step of 2 * 256 * 64 bytes. */
static const bench_effort little = {.blocks = 2, .steps = 3, .l2_bytes = 131072, .samples = 3, .warm_up_limit_s = 60};
enum { WARPS = 2 * 256 / 32, STEP_BYTES = 2 * 256 * 64, WARM_UP = 5 * 20 };
enum { LAUNCHES = 4 }; /* of a kernel: one before its samples */

static bench_ceilings measured(const bench_effort *effort)
{
    bench_ceilings c = {.count = 0};
    bench_gpu g = gpu;
    CUstream stream;
    g.driver = &hooked;
    g.event_elapsed = made_up_time;
    seen_count = 0;
    timed = 0;
    assert_ok(bench_gpu_make_stream(&gpu, &stream));
    const jg_status status = bench_ceilings_measure_with(&g, stream, effort, &c);
    assert_int_equal(gpu.stream_destroy(stream), CUDA_SUCCESS);
    assert_ok(status);
    return c;
}

static void assert_ceiling(const bench_ceiling *c, const char *name, const char *unit, double value, const char *how)
{
    assert_string_equal(c->name, name);
    assert_string_equal(c->unit, unit);
    assert_string_equal(c->how, how);
    if (fabs(c->value / value - 1) > 1e-9) fail_msg("%s is %.12g, not %.12g", name, c->value, value);
}

static void assert_launches(size_t first, size_t count, int counter, uint64_t expected)
{
    for (size_t i = first; i < first + count; i++) {
        assert_true(i < seen_count);
        assert_int_equal(seen[i].blocks, 2);
        assert_int_equal(seen[i].threads, 256);
        if (seen[i].counts[counter] != expected)
            fail_msg("launch %zu: %llu, not %llu", i, (unsigned long long)seen[i].counts[counter], (unsigned long long)expected);
    }
}

/* ---- on chips with tensor cores and without ---- */

/* The values by hand from what was counted: of 1 ms a launch. */
static void measure_on(const char *device, int arch, int has_mma)
{
    if (open_as(device) != 0) fail_msg("%s: %s", device, jg_last_error());
    assert_int_equal(gpu.arch, arch);
    uneven = 0;
    const bench_ceilings c = measured(&little);
    assert_int_equal(c.count, !has_mma ? 5 : arch >= 89 ? 9 : 8);
    assert_true(c.settled);
    assert_true(c.warm_up_s >= 0);
    size_t at = 0;
    /* 16 chains, 8 times a step, 2 steps (half of them, rounded up) while warming up; 20 at a time, five times the same */
    assert_launches(at, WARM_UP, SEEN_fma, 16 * 8 * 2 * WARPS);
    at += WARM_UP;
    /* 32 passes over one step: as many 16-byte loads of 32 lanes as 4 a step, each of 16 sectors */
    assert_launches(at, LAUNCHES, SEEN_global_load_sectors, 32 * STEP_BYTES / 32);
    assert_launches(at, LAUNCHES, SEEN_global_store_sectors, 0);
    assert_ceiling(&c.list[0], "l2", "GB/s", 32.0 * STEP_BYTES / 1e-3 / 1e9, "reading 0 MiB 32 times");
    at += LAUNCHES;
    /* 8 * 128 KiB, and what rounds that up to more than whole steps */
    assert_launches(at, LAUNCHES, SEEN_global_load_sectors, 33 * STEP_BYTES / 32);
    assert_ceiling(&c.list[1], "memory", "GB/s", 33.0 * STEP_BYTES / 1e-3 / 1e9, "reading 1 MiB");
    at += LAUNCHES;
    assert_launches(at, LAUNCHES, SEEN_fma, 16 * 8 * 3 * WARPS);
    assert_launches(at, LAUNCHES, SEEN_global_store_sectors, 0);
    const double fma = 2.0 * 16 * 8 * 3 * 512 / 1e-3 / 1e12;
    assert_ceiling(&c.list[2], "f32", "TFLOP/s", fma, "fused multiply-adds in registers");
    at += LAUNCHES;
    static const struct { const char *name; int k; } types[] = {{"f16", 16}, {"bf16", 16}, {"tf32", 8}, {"f16acc", 16}, {"s8", 32},
                                                                {"e4m3", 32}};
    for (size_t i = 0; i < c.count - 3; i++) {
        if (!has_mma) {
            assert_ceiling(&c.list[3 + i], types[i].name, "TFLOP/s", fma, "f32 fused multiply-adds in registers");
            continue;
        }
        assert_launches(at, LAUNCHES, SEEN_mma, 8 * 4 * 3 * WARPS);
        assert_launches(at, LAUNCHES, SEEN_global_store_sectors, 0);
        at += LAUNCHES;
        assert_ceiling(&c.list[3 + i], types[i].name, "TFLOP/s", 2.0 * 16 * 8 * types[i].k * 8 * 4 * 3 * WARPS / 1e-3 / 1e12,
                       "mma.sync in registers");
    }
    assert_int_equal(seen_count, at);
    assert_int_equal(close_swgpu(NULL), 0);
}

static void on_an_orin(void **state)
{
    (void)state;
    measure_on("orin-agx", 87, 1);
}

static void on_an_h200(void **state)
{
    (void)state;
    measure_on("h200", 90, 1);
}

static void on_a_t4(void **state)
{
    (void)state;
    measure_on("t4", 75, 0);
}

/* A ceiling is the fastest sample, without the launch before them; times that change are no settled clock, after one look. */
static void uneven_times(void **state)
{
    (void)state;
    bench_effort effort = little;
    effort.warm_up_limit_s = 0;
    if (open_as("orin-agx") != 0) fail_msg("%s", jg_last_error());
    uneven = 1;
    bench_ceilings c = measured(&effort);
    uneven = 0;
    assert_false(c.settled);
    assert_int_equal(seen_count, 20 + 8 * LAUNCHES);
    /* 20 launches of warming up; of reading the cache the times are 1.5 ms before, then 1.25, 4 and 1: the last one */
    assert_ceiling(&c.list[0], "l2", "GB/s", 32.0 * STEP_BYTES / 1e-3 / 1e9, "reading 0 MiB 32 times");
    /* then 2 before, and 1.5, 1.25, 4 */
    assert_ceiling(&c.list[1], "memory", "GB/s", 33.0 * STEP_BYTES / 1.25e-3 / 1e9, "reading 1 MiB");
    assert_int_equal(close_swgpu(NULL), 0);
}

/* A driver that refuses something is told, and what was allocated is given back. */
static void failures(void **state)
{
    (void)state;
    static const char *const faults[] = {"cuModuleLoadDataEx:1:CUDA_ERROR_INVALID_PTX", "cuMemAlloc:1:CUDA_ERROR_OUT_OF_MEMORY",
                                         "cuLaunchKernel:1:CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
                                         "cuLaunchKernel:115:CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
                                         "cuEventCreate:2:CUDA_ERROR_OUT_OF_MEMORY"};
    int (*set_faults)(const char *);
    if (open_as("orin-agx") != 0) fail_msg("%s", jg_last_error());
    *(void **)&set_faults = dlsym(gpu.driver->handle, "swgpuSetFaults");
    assert_non_null(set_faults);
    bench_gpu g = gpu;
    g.event_elapsed = made_up_time;
    for (size_t i = 0; i < COUNT(faults); i++) {
        bench_ceilings c = {.count = 0};
        assert_int_equal(set_faults(faults[i]), CUDA_SUCCESS);
        const jg_status status = bench_ceilings_measure_with(&g, NULL, &little, &c);
        set_faults("");
        if (status == JG_OK) fail_msg("%s passed", faults[i]);
    }
    assert_int_equal(close_swgpu(NULL), 0);
}

/* ---- what ceilings are for ---- */

static void the_largest_counts(void **state)
{
    (void)state;
    bench_ceilings c = {.count = 0};
    assert_true(bench_ceilings_find(&c, "f16") == 0);
    bench_ceilings_add(&c, "f16", "TFLOP/s", 700, "mma.sync");
    bench_ceilings_add(&c, "f16", "TFLOP/s", 800, "cuBLASLt");
    bench_ceilings_add(&c, "f16", "TFLOP/s", 750, "again");
    bench_ceilings_add(&c, "bf16", "TFLOP/s", 900, "other");
    assert_true(bench_ceilings_find(&c, "f16") == 800);
    assert_true(bench_ceilings_find(&c, "bf16") == 900);
    assert_true(bench_ceilings_find(&c, "f1") == 0);
    assert_string_equal(c.list[1].how, "cuBLASLt");
    for (int i = 0; i < 2 * BENCH_CEILINGS_MAX; i++) bench_ceilings_add(&c, "f32", "TFLOP/s", i, "a text that is too long for the"
                                                                        " place that there is for it, so it is cut off");
    assert_int_equal(c.count, BENCH_CEILINGS_MAX);
    assert_int_equal(strlen(c.list[BENCH_CEILINGS_MAX - 1].how), sizeof c.list[0].how - 1);
    assert_true(bench_ceilings_find(&c, "f32") == BENCH_CEILINGS_MAX - 5); /* those after are left out */
}

/* At 2 TFLOP/s, 100 GB/s from memory and 1000 from the cache: 2e6 operations take 1 us, 1e5 bytes 1 us or 0.1 us. */
static void floors(void **state)
{
    (void)state;
    static const struct { double flops, bytes; int in_l2; double us; const char *bound; } rows[] = {
        {2e6, 0.5e5, 0, 1, "compute"}, {2e6, 3e5, 0, 3, "memory"}, {2e6, 3e5, 1, 1, "compute"}, {2e6, 3e6, 1, 3, "l2"},
        {2e6, 1e5, 0, 1, "compute"}, {0, 1e5, 0, 1, "memory"},
    };
    bench_ceilings c = {.count = 0};
    const char *bound;
    bench_ceilings_add(&c, "f16", "TFLOP/s", 2, "");
    assert_true(bench_ceilings_floor_us(&c, "f16", 1e6, 1e6, 0, &bound) == 0); /* no memory's ceiling */
    assert_string_equal(bound, "");
    bench_ceilings_add(&c, "memory", "GB/s", 100, "");
    assert_true(bench_ceilings_floor_us(&c, "f32", 1e6, 1e6, 0, &bound) == 0);
    assert_true(bench_ceilings_floor_us(&c, "f16", 1e6, 1e6, 1, &bound) == 0);
    bench_ceilings_add(&c, "l2", "GB/s", 1000, "");
    for (size_t i = 0; i < COUNT(rows); i++) {
        const double us = bench_ceilings_floor_us(&c, "f16", rows[i].flops, rows[i].bytes, rows[i].in_l2, &bound);
        if (fabs(us - rows[i].us) > 1e-12) fail_msg("row %zu: %g", i, us);
        assert_string_equal(bound, rows[i].bound);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(on_an_orin),
        cmocka_unit_test(on_an_h200),
        cmocka_unit_test(on_a_t4),
        cmocka_unit_test(uneven_times),
        cmocka_unit_test(failures),
        cmocka_unit_test(the_largest_counts),
        cmocka_unit_test(floors),
    };
    return run_on_swgpu(tests, NULL, NULL);
}
