/* A part of a GPU as a GPU of its own. The software GPU has no green contexts, as older drivers have none; where they are wanted
 * here, this program stands in for the driver's part of them, with groups of 8 multiprocessors. */
#include "bench_gpu_fixture.h"

#include "tools/bench_green.h"

static int open_only(void)
{
    setenv("JITGEMM_SWGPU_DEVICE", "h200", 1);
    const jg_status status = bench_gpu_open(swgpu_path(), &gpu);
    if (status != JG_OK) print_error("%s\n", jg_last_error());
    return status == JG_OK ? 0 : -1;
}

static CUcontext current(void)
{
    CUcontext context = NULL;
    gpu.driver->context_current(&context);
    return context;
}

/* Nothing is left of an attempt: not on this thread, and, as closing finds, not in the driver. */
static void assert_nothing_held(void)
{
    assert_null(gpu.context);
    assert_null(gpu.green);
    assert_null(gpu.module);
    assert_null(gpu.tiny);
    assert_int_equal(gpu.narrow_sms, 0);
    assert_null(current());
}

/* All of the GPU can be used instead. */
static void assert_startable(void)
{
    CUstream stream;
    char argument[BENCH_ARGUMENT_BYTES] = {0};
    assert_ok(bench_gpu_start(&gpu));
    assert_ptr_equal(current(), gpu.context);
    assert_ok(bench_gpu_make_stream(&gpu, &stream));
    assert_int_equal(bench_gpu_launch_tiny(&gpu, &(bench_shape){1, 1, 1, 0}, stream, argument), CUDA_SUCCESS);
    assert_ok(bench_gpu_wait(&gpu, stream));
    assert_int_equal(gpu.stream_destroy(stream), CUDA_SUCCESS);
}

static void a_driver_without_them(void **state)
{
    (void)state;
    assert_int_equal(open_only(), 0);
    for (int i = 0; i < 2; i++) {
        const jg_status status = bench_gpu_start_narrow(&gpu, 16);
        assert_string_equal(jg_status_name(status), "JG_ERR_UNSUPPORTED");
        if (!strstr(jg_last_error(), "green contexts")) fail_msg("no reason: %s", jg_last_error());
        assert_nothing_held();
    }
    assert_startable();
    assert_int_equal(close_swgpu(NULL), 0);
}

#if CUDA_VERSION >= 12040

/* ---- the driver's part ---- */

#define EXPORTED __attribute__((visibility("default")))

enum { GET, SPLIT, DESCRIBE, CREATE, CONTEXT, STREAM, CALLS };

static struct {
    int fails;            /* the call that does; CALLS: none */
    int no_group;         /* splitting gives none, without an error */
    unsigned sms;
    int made, destroyed, streams;
    unsigned described;   /* multiprocessors of the group that became a context */
} fake;

static CUresult answer(int call)
{
    return fake.fails == call ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

EXPORTED CUresult CUDAAPI cuDeviceGetDevResource(CUdevice device, CUdevResource *resource, CUdevResourceType type)
{
    (void)device;
    memset(resource, 0, sizeof *resource);
    resource->type = type;
    resource->sm.smCount = fake.sms;
    return answer(GET);
}

EXPORTED CUresult CUDAAPI cuDevSmResourceSplitByCount(CUdevResource *result, unsigned *groups, const CUdevResource *input,
                                                      CUdevResource *remaining, unsigned flags, unsigned minimum)
{
    (void)flags;
    const unsigned size = (minimum + 7) / 8 * 8, fit = input->sm.smCount / size;
    if (*groups > fit) *groups = fit;
    if (fake.no_group) *groups = 0;
    *result = *remaining = *input;
    result->sm.smCount = size;
    return answer(SPLIT);
}

EXPORTED CUresult CUDAAPI cuDevResourceGenerateDesc(CUdevResourceDesc *description, CUdevResource *resources, unsigned count)
{
    fake.described = count == 1 ? resources->sm.smCount : 0;
    *description = (CUdevResourceDesc)&fake;
    return answer(DESCRIBE);
}

EXPORTED CUresult CUDAAPI cuGreenCtxCreate(CUgreenCtx *context, CUdevResourceDesc description, CUdevice device, unsigned flags)
{
    (void)device;
    if (description != (CUdevResourceDesc)&fake || flags != CU_GREEN_CTX_DEFAULT_STREAM) return CUDA_ERROR_INVALID_VALUE;
    fake.made += answer(CREATE) == CUDA_SUCCESS;
    *context = (CUgreenCtx)&fake;
    return answer(CREATE);
}

EXPORTED CUresult CUDAAPI cuGreenCtxDestroy(CUgreenCtx context)
{
    fake.destroyed += context == (CUgreenCtx)&fake;
    return CUDA_SUCCESS;
}

/* The software GPU has one context, so it is that one. */
EXPORTED CUresult CUDAAPI cuCtxFromGreenCtx(CUcontext *context, CUgreenCtx green)
{
    (void)green;
    *context = current();
    return answer(CONTEXT);
}

EXPORTED CUresult CUDAAPI cuGreenCtxStreamCreate(CUstream *stream, CUgreenCtx green, unsigned flags, int priority)
{
    (void)priority;
    if (green != (CUgreenCtx)&fake || flags != CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
    if (answer(STREAM) != CUDA_SUCCESS) return answer(STREAM);
    fake.streams++;
    return gpu.stream_create(stream, flags);
}

/* The software GPU's calls, and these as further ones of the same driver. */
static driver both, *real;

static void open_with_green_contexts(void)
{
    assert_int_equal(open_only(), 0);
    memset(&fake, 0, sizeof fake);
    fake.fails = CALLS;
    fake.sms = 132;
    real = gpu.driver;
    both = *real;
    both.handle = dlopen(NULL, RTLD_NOW);
    assert_non_null(both.handle);
    gpu.driver = &both;
}

static void close_all(void)
{
    dlclose(both.handle);
    gpu.driver = real;
    assert_int_equal(close_swgpu(NULL), 0);
}

/* ---- tests ---- */

static void a_narrow_gpu(void **state)
{
    (void)state;
    static const struct { int asked, given; } rows[] = {{16, 16}, {14, 16}, {1, 8}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        CUstream stream;
        char argument[BENCH_ARGUMENT_BYTES] = {0};
        open_with_green_contexts();
        assert_ok(bench_gpu_start_narrow(&gpu, rows[i].asked));
        assert_int_equal(gpu.narrow_sms, rows[i].given);
        assert_int_equal(fake.described, rows[i].given);
        assert_int_equal(gpu.sm_count, 132); /* that of the whole GPU */
        assert_non_null(gpu.green);
        assert_ptr_equal(current(), gpu.context);
        assert_ok(bench_gpu_make_stream(&gpu, &stream));
        assert_int_equal(fake.streams, 1); /* in the green context, not beside it */
        assert_int_equal(bench_gpu_launch_tiny(&gpu, &(bench_shape){1, 1, 1, 0}, stream, argument), CUDA_SUCCESS);
        assert_ok(bench_gpu_wait(&gpu, stream));
        assert_int_equal(gpu.stream_destroy(stream), CUDA_SUCCESS);
        fake.fails = STREAM;
        assert_fails(bench_gpu_make_stream(&gpu, &stream), JG_ERR_UNSUPPORTED, "cuGreenCtxStreamCreate");
        assert_int_equal(fake.destroyed, 0);
        gpu.driver->module_unload(gpu.module); /* closing is of the real driver; here it is done by hand, in the same order */
        gpu.module = NULL;
        bench_gpu_leave(&gpu);
        bench_green_close(&gpu);
        assert_null(gpu.green);
        bench_green_close(&gpu);
        assert_int_equal(fake.made, 1);
        assert_int_equal(fake.destroyed, 1);
        gpu.driver->primary_release(gpu.ordinal);
        gpu.context = NULL;
        close_all();
    }
}

/* Whatever fails, what was made before is undone. */
static void failures(void **state)
{
    (void)state;
    static const char *const names[] = {[GET] = "cuDeviceGetDevResource", [SPLIT] = "cuDevSmResourceSplitByCount",
                                        [DESCRIBE] = "cuDevResourceGenerateDesc", [CREATE] = "cuGreenCtxCreate",
                                        [CONTEXT] = "cuCtxFromGreenCtx"};
    for (size_t i = 0; i < COUNT(names); i++) {
        open_with_green_contexts();
        fake.fails = (int)i;
        assert_fails(bench_gpu_start_narrow(&gpu, 16), JG_ERR_UNSUPPORTED, names[i]);
        assert_nothing_held();
        assert_int_equal(fake.made, fake.destroyed);
        assert_int_equal(fake.made, i == CONTEXT);
        gpu.driver = real;
        assert_startable();
        close_all();
    }
}

static void numbers_that_are_refused(void **state)
{
    (void)state;
    open_with_green_contexts();
    assert_fails(bench_gpu_start_narrow(&gpu, 133), JG_ERR_UNSUPPORTED, "there are only 132 multiprocessors, not 133");
    assert_nothing_held();
    fake.no_group = 1;
    assert_fails(bench_gpu_start_narrow(&gpu, 16), JG_ERR_UNSUPPORTED, "no group of 16 multiprocessors");
    assert_nothing_held();
    close_all();
}

/* The context is there, and then the benchmark's own kernels cannot be loaded into it. */
static void kernels_that_do_not_load(void **state)
{
    (void)state;
    static const struct { const char *fault, *told; } rows[] = {
        {"cuModuleLoadDataEx:1:CUDA_ERROR_INVALID_PTX", "loading the benchmark's own kernels"},
        {"cuLaunchKernel:2:CUDA_ERROR_NOT_SUPPORTED", "cuLaunchKernel"}};
    int (*set_faults)(const char *);
    open_with_green_contexts();
    *(void **)&set_faults = dlsym(real->handle, "swgpuSetFaults");
    assert_non_null(set_faults);
    for (int i = 0; i < (int)COUNT(rows); i++) {
        assert_int_equal(set_faults(rows[i].fault), 0);
        assert_fails(bench_gpu_start_narrow(&gpu, 16), JG_ERR_DEVICE, rows[i].told);
        assert_nothing_held();
        assert_int_equal(fake.made, i + 1);
        assert_int_equal(fake.destroyed, i + 1);
    }
    set_faults("");
    gpu.driver = real;
    assert_startable();
    close_all();
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_driver_without_them),
#if CUDA_VERSION >= 12040
        cmocka_unit_test(a_narrow_gpu),
        cmocka_unit_test(failures),
        cmocka_unit_test(numbers_that_are_refused),
        cmocka_unit_test(kernels_that_do_not_load),
#endif
    };
    return run_on_swgpu(tests, NULL, NULL);
}
