/* Common ground of the tests that run real kernels on the software GPU as a host application does: a cache file with kernels that
 * the real NVRTC has made, the driver's entry points, a primary context, contexts of the library, products judged by the
 * oracle.
 *
 * JG_TEST_DRIVER names another driver, a real one, for the same tests on hardware; it takes no faults on demand and finds nothing.
 *
 * The cache is made once a program (warm_setup) and copied for each test that asks for one. Without NVRTC every test is skipped.
 * Every test ends with no finding of the software GPU, leaks included, but for those it has announced (warm.expected). */
#ifndef JG_TESTS_WARM_FIXTURE_H
#define JG_TESTS_WARM_FIXTURE_H

#include "jitgemm.h"
#include "reference.h"
#include "scratch.h"

#include <cuda.h>
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* member, exported symbol, parameters */
#define WARM_FUNCTIONS(X)                                                                        \
    X(init, cuInit, (unsigned))                                                                  \
    X(retain, cuDevicePrimaryCtxRetain, (CUcontext *, CUdevice))                                 \
    X(release, cuDevicePrimaryCtxRelease_v2, (CUdevice))                                         \
    X(push, cuCtxPushCurrent_v2, (CUcontext))                                                    \
    X(pop, cuCtxPopCurrent_v2, (CUcontext *))                                                    \
    X(create_stream, cuStreamCreate, (CUstream *, unsigned))                                     \
    X(destroy_stream, cuStreamDestroy_v2, (CUstream))                                            \
    X(synchronize, cuStreamSynchronize, (CUstream))                                              \
    X(wait_event, cuStreamWaitEvent, (CUstream, CUevent, unsigned))                              \
    X(create_event, cuEventCreate, (CUevent *, unsigned))                                        \
    X(record_event, cuEventRecord, (CUevent, CUstream))                                          \
    X(destroy_event, cuEventDestroy_v2, (CUevent))                                               \
    X(begin_capture, cuStreamBeginCapture_v2, (CUstream, CUstreamCaptureMode))                   \
    X(end_capture, cuStreamEndCapture, (CUstream, CUgraph *))                                    \
    X(is_capturing, cuStreamIsCapturing, (CUstream, CUstreamCaptureStatus *))                    \
    X(exchange_mode, cuThreadExchangeStreamCaptureMode, (CUstreamCaptureMode *))                 \
    X(instantiate, cuGraphInstantiateWithFlags, (CUgraphExec *, CUgraph, unsigned long long))    \
    X(graph_nodes, cuGraphGetNodes, (CUgraph, CUgraphNode *, size_t *))                          \
    X(launch_graph, cuGraphLaunch, (CUgraphExec, CUstream))                                      \
    X(destroy_exec, cuGraphExecDestroy, (CUgraphExec))                                           \
    X(destroy_graph, cuGraphDestroy, (CUgraph))

static struct {
#define MEMBER(name, symbol, parameters) CUresult(CUDAAPI *name) parameters;
    WARM_FUNCTIONS(MEMBER)
#undef MEMBER
    int (*set_faults)(const char *text);
    size_t (*findings)(char *text, size_t bytes, unsigned *count);
} gpu;

static struct {
    char folder[4096], cache[4200]; /* cache: "" without NVRTC */
    CUcontext context;              /* the primary one */
    unsigned findings, expected;    /* before the test; how many it is to add */
    int copies;
} warm;

#define WORKS(...) assert_int_equal(__VA_ARGS__, CUDA_SUCCESS)

/* A failure's text is printed at once: cmocka keeps only the last one, and a teardown after it has its own. */
#define WARM_FAIL(...)            \
    do {                          \
        print_error(__VA_ARGS__); \
        print_error("\n");        \
        fail();                   \
    } while (0)

#define assert_status(call, expected)                                                                                         \
    do {                                                                                                                      \
        jg_status status_ = (call);                                                                                           \
        if (status_ != (expected))                                                                                            \
            WARM_FAIL("%s: %s (%s) instead of %s", #call, jg_status_name(status_), jg_last_error(), jg_status_name(expected)); \
    } while (0)

/* --- the program's setup and teardown --- */

static inline const char *warm_driver(void)
{
    const char *driver = getenv("JG_TEST_DRIVER");
    return driver ? driver : "swgpu";
}

/* In the place of the software GPU's own calls, where the driver is another. */
static inline int set_no_faults(const char *text)
{
    (void)text;
    return 0;
}

static inline size_t find_nothing(char *text, size_t bytes, unsigned *count)
{
    if (bytes) text[0] = 0;
    *count = 0;
    return 0;
}

static inline void warm_open_driver(void)
{
    char path[4200];
    const char *build = getenv("JG_TEST_BUILD_DIR"), *driver = getenv("JG_TEST_DRIVER");
    if (driver) snprintf(path, sizeof path, "%s", driver);
    else snprintf(path, sizeof path, "%s/lib/libjitgemm-swgpu.so", build && *build ? build : "build");
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) WARM_FAIL("%s", dlerror());
#define BIND(name, symbol, parameters) \
    *(void **)&gpu.name = dlsym(library, #symbol); \
    assert_non_null(gpu.name);
    WARM_FUNCTIONS(BIND)
#undef BIND
    *(void **)&gpu.set_faults = dlsym(library, "swgpuSetFaults");
    *(void **)&gpu.findings = dlsym(library, "swgpuFindings");
    if (driver && !gpu.set_faults) gpu.set_faults = set_no_faults;
    if (driver && !gpu.findings) gpu.findings = find_nothing;
    assert_true(gpu.set_faults && gpu.findings);
}

/* Makes the cache file: the generic kernels of types (JG_RESIDENT_ flags), and the own kernels of some problems. */
static inline void warm_setup(uint32_t types, const jg_problem *problems, size_t count)
{
    jg_context *c;
    scratch_make(warm.folder);
    snprintf(warm.cache, sizeof warm.cache, "%s/warm.db", warm.folder);
    const jg_options options = {.driver_path = warm_driver(), .compile = JG_COMPILE_WAIT, .cache_path = warm.cache, .factory_path = ""};
    const jg_prewarm_options generic = {.types = types};
    warm_open_driver();
    assert_status(jg_open(&options, &c), JG_OK);
    jg_status status = jg_prewarm(c, problems, count, &generic, NULL);
    if (status == JG_ERR_NO_NVRTC) {
        print_message("SKIP no NVRTC: %s\n", jg_last_error());
        warm.cache[0] = 0;
    } else {
        assert_status(status, JG_OK);
    }
    assert_status(jg_close(c), JG_OK);
}

static inline int warm_teardown(void **state)
{
    (void)state;
    scratch_remove(warm.folder);
    return 0;
}

/* --- each test's --- */

static inline int warm_test_setup(void **state)
{
    (void)state;
    warm.expected = 0;
    gpu.findings(NULL, 0, &warm.findings);
    WORKS(gpu.init(0));
    WORKS(gpu.retain(&warm.context, 0));
    WORKS(gpu.push(warm.context));
    return 0;
}

static inline int warm_test_teardown(void **state)
{
    (void)state;
    CUcontext popped;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    unsigned now;
    static char text[65536];
    gpu.set_faults("");
    gpu.exchange_mode(&mode);
    gpu.pop(&popped);
    const int left = gpu.release(0) != CUDA_SUCCESS || gpu.release(0) == CUDA_SUCCESS;
    gpu.findings(text, sizeof text, &now);
    if (left) print_error("the primary context was released too often, or not by all\n");
    if (now - warm.findings != warm.expected)
        print_error("%u findings instead of %u:\n%s", now - warm.findings, warm.expected, text);
    return left || now - warm.findings != warm.expected;
}

#define WARM_TEST(function) cmocka_unit_test_setup_teardown(function, warm_test_setup, warm_test_teardown)

/* A copy of the cache file. Skips the test if there is none. */
static inline const char *warm_copy(void)
{
    char command[3 * 4200], name[32];
    if (!warm.cache[0]) skip();
    snprintf(name, sizeof name, "copy%d.db", warm.copies++);
    const char *path = scratch_path(warm.folder, name);
    snprintf(command, sizeof command, "cp '%s' '%s'", warm.cache, path);
    assert_int_equal(system(command), 0);
    return path;
}

/* A context on the software GPU with a cache file of its own, unless the options name one, and a worker that is not held back. */
static inline jg_context *warm_open(jg_options options)
{
    jg_context *c;
    options.driver_path = warm_driver();
    options.factory_path = "";
    if (!options.cache_path) options.cache_path = warm_copy();
    if (!options.worker.per_minute) options.worker.per_minute = 100000;
    if (!options.worker.nice) options.worker.nice = JG_NICE_INHERIT;
    assert_status(jg_open(&options, &c), JG_OK);
    return c;
}

static inline jg_stats warm_stats(jg_context *c)
{
    jg_stats s;
    assert_status(jg_cache_stats(c, &s), JG_OK);
    return s;
}

/* Takes in all that is ready, and unloads all that has to go. */
static inline jg_poll_result warm_poll(jg_context *c)
{
    jg_poll_result sum = {0}, one;
    do {
        assert_status(jg_poll(c, NULL, &one), JG_OK);
        sum.loaded += one.loaded;
        sum.swapped += one.swapped;
        sum.unloaded += one.unloaded;
    } while (one.left + one.loaded + one.unloaded);
    return sum;
}

/* --- products --- */

/* A problem with operands on the device. */
typedef struct product {
    jg_context *context;
    reference ref;
    float alpha, beta;
    void *a, *b, *c; /* blocks, as the oracle's */
} product;

static inline void product_upload(const product *x)
{
    const struct {
        void *to;
        const reference_matrix *from;
    } rows[] = {{x->a, &x->ref.a}, {x->b, &x->ref.b}, {x->c, &x->ref.c}};
    for (size_t i = 0; i < 3; i++)
        assert_status(jg_copy(x->context, rows[i].to, rows[i].from->block, rows[i].from->block_bytes), JG_OK);
}

static inline void product_make_of(product *x, jg_context *c, const jg_problem *p, reference_fill fill, uint64_t seed)
{
    *x = (product){.context = c, .alpha = 1};
    reference_make(&x->ref, p, fill, 0, seed);
    assert_status(jg_alloc(c, JG_DEVICE_MEMORY, x->ref.a.block_bytes, &x->a), JG_OK);
    assert_status(jg_alloc(c, JG_DEVICE_MEMORY, x->ref.b.block_bytes, &x->b), JG_OK);
    assert_status(jg_alloc(c, JG_DEVICE_MEMORY, x->ref.c.block_bytes, &x->c), JG_OK);
    product_upload(x);
}

/* Of small integers, so that a right result is exact. */
static inline void product_make(product *x, jg_context *c, const jg_problem *p, uint64_t seed)
{
    product_make_of(x, c, p, REFERENCE_INTEGERS, seed);
}

static inline void product_free(product *x)
{
    assert_status(jg_free(x->context, JG_DEVICE_MEMORY, x->a), JG_OK);
    assert_status(jg_free(x->context, JG_DEVICE_MEMORY, x->b), JG_OK);
    assert_status(jg_free(x->context, JG_DEVICE_MEMORY, x->c), JG_OK);
    reference_free(&x->ref);
}

/* Other inputs, and another C, in the same device memory. */
static inline void product_refill(product *x, uint64_t seed)
{
    const jg_problem p = x->ref.problem;
    reference_free(&x->ref);
    reference_make(&x->ref, &p, REFERENCE_INTEGERS, 0, seed);
    product_upload(x);
}

static inline jg_operands product_operands(const product *x, CUstream stream)
{
    return (jg_operands){.a = (char *)x->a + x->ref.a.offset_bytes, .b = (char *)x->b + x->ref.b.offset_bytes,
                         .c = (char *)x->c + x->ref.c.offset_bytes, .alpha = &x->alpha, .beta = &x->beta, .stream = stream};
}

static inline jg_status product_run(const product *x, CUstream stream)
{
    const jg_operands data = product_operands(x, stream);
    return jg_gemm(x->context, &x->ref.problem, &data);
}

/* Sums of small integers: exact, whichever kernel ran. */
static inline void product_check(product *x)
{
    assert_status(jg_copy(x->context, x->ref.c.block, x->c, x->ref.c.block_bytes), JG_OK);
    const reference_result r = reference_check(&x->ref, x->alpha, x->beta);
    if (r.failures || r.inexact || r.stray)
        WARM_FAIL("%dx%dx%d: %d wrong elements, %d stray bytes; first: %g instead of %g", (int)x->ref.m, (int)x->ref.n,
                  (int)x->ref.k, (int)(r.failures ? r.failures : r.inexact), (int)r.stray, r.got, r.expected);
}

/* C on the device is what it was filled with. */
static inline void product_check_untouched(const product *x)
{
    unsigned char *now = malloc(x->ref.c.block_bytes);
    assert_non_null(now);
    assert_status(jg_copy(x->context, now, x->c, x->ref.c.block_bytes), JG_OK);
    assert_memory_equal(now, x->ref.before, x->ref.c.block_bytes);
    free(now);
}

#endif
