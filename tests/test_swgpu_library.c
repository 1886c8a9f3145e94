/* The library on the software GPU: how it is chosen, what a product then goes through, and how errors on demand come out. */
#include "context.h"
#include "jitgemm.h"
#include "reference.h"
#include "scratch.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const char *const variables[] = {"JITGEMM_DRIVER", "JITGEMM_SWGPU_DEVICE", "JITGEMM_SWGPU_FAULT", "JITGEMM_SWGPU_MEMORY",
                                        "JITGEMM_SWGPU_COUNTERS", "JITGEMM_SWGPU_BLOCKS"};

static int forget_settings(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) unsetenv(variables[i]);
    return 0;
}

static jg_context *open_software(void)
{
    jg_context *c;
    const jg_options options = {.device = JG_DEVICE_CUDA, .compile = JG_COMPILE_WAIT, .driver_path = "swgpu"};
    if (jg_open(&options, &c) != JG_OK) fail_msg("%s", jg_last_error());
    return c;
}

/* Runs a product and judges it. The status of the first call that failed. */
static jg_status multiply(jg_context *c, const char *text)
{
    jg_problem p = {0};
    reference ref;
    void *blocks[3] = {0};
    assert_int_equal(jg_problem_parse(text, &p), JG_OK);
    reference_make(&ref, &p, REFERENCE_UNIFORM, 0, 3);
    const reference_matrix *x[3] = {&ref.a, &ref.b, &ref.c};
    jg_status status = JG_OK;
    for (int i = 0; i < 3 && status == JG_OK; i++) {
        status = jg_alloc(c, JG_DEVICE_MEMORY, x[i]->block_bytes, &blocks[i]);
        if (status == JG_OK) status = jg_copy(c, blocks[i], x[i]->block, x[i]->block_bytes);
    }
    const jg_operands data = {.a = (char *)blocks[0] + ref.a.offset_bytes, .b = (char *)blocks[1] + ref.b.offset_bytes,
                              .c = (char *)blocks[2] + ref.c.offset_bytes};
    if (status == JG_OK) status = jg_gemm(c, &p, &data);
    if (status == JG_OK) status = jg_synchronize(c, NULL);
    if (status == JG_OK) status = jg_copy(c, ref.c.block, blocks[2], ref.c.block_bytes);
    if (status == JG_OK) {
        const reference_result r = reference_check(&ref, 1, 0);
        assert_int_equal(r.failures, 0);
        assert_int_equal(r.stray, 0);
    }
    char error[2048];
    snprintf(error, sizeof error, "%s", jg_last_error());
    if (status == JG_ERR_NO_NVRTC) {
        print_message("SKIP no NVRTC: %s\n", error);
        skip();
    }
    for (int i = 0; i < 3; i++) jg_free(c, JG_DEVICE_MEMORY, blocks[i]);
    reference_free(&ref);
    return status;
}

static void chosen_by_option_or_variable(void **state)
{
    (void)state;
    jg_context *c = open_software();
    assert_true(context_is_software(c));
    assert_int_equal(c->device.number, 87);
    assert_int_equal(c->device.limits.sm_count, 16);
    assert_int_equal(jg_close(c), JG_OK);

    setenv("JITGEMM_DRIVER", "swgpu", 1);
    setenv("JITGEMM_SWGPU_DEVICE", "h200", 1);
    assert_int_equal(jg_open(NULL, &c), JG_OK);
    assert_true(context_is_software(c));
    assert_int_equal(c->device.number, 90);
    assert_int_equal(c->device.limits.sm_count, 132);
    assert_int_equal(jg_close(c), JG_OK);

    setenv("JITGEMM_SWGPU_DEVICE", "orin-giga", 1);
    assert_int_equal(jg_open(NULL, &c), JG_ERR_DEVICE);
    assert_non_null(strstr(jg_last_error(), "orin-giga"));
    assert_non_null(strstr(jg_last_error(), "orin-agx"));
    unsetenv("JITGEMM_SWGPU_DEVICE");

    setenv("JITGEMM_SWGPU_CHECK", "none", 1); /* CHECKS is meant */
    assert_int_equal(jg_open(NULL, &c), JG_ERR_DEVICE);
    assert_non_null(strstr(jg_last_error(), "JITGEMM_SWGPU_CHECK is no setting"));
    assert_non_null(strstr(jg_last_error(), "JITGEMM_SWGPU_CHECKS"));
    unsetenv("JITGEMM_SWGPU_CHECK");
}

/* Where the software GPU is asked for and missing, nothing else takes its place: a copy of this program in a folder of its own. */
static void missing_is_an_error(void **state)
{
    (void)state;
    char folder[4096], command[4 * 4096];
    scratch_make(folder);
    snprintf(command, sizeof command, "cp /proc/%d/exe '%s/alone' && JITGEMM_DRIVER=swgpu '%s/alone' alone > '%s/out'", (int)getpid(),
             folder, folder, folder);
    assert_int_equal(system(command), 0);
    snprintf(command, sizeof command, "%s/out", folder);
    FILE *file = fopen(command, "r");
    char text[512] = "";
    assert_non_null(file);
    assert_non_null(fgets(text, sizeof text, file));
    fclose(file);
    scratch_remove(folder);
    assert_int_equal(strncmp(text, "JG_ERR_NO_DRIVER no software GPU: libjitgemm-swgpu.so", 53), 0);
}

static int open_alone(void)
{
    jg_context *c = NULL;
    const jg_status status = jg_open(NULL, &c);
    printf("%s %s\n", jg_status_name(status), jg_last_error());
    jg_close(c);
    return 0;
}

/* A product whose output is one of its inputs has no defined result. */
static void outputs_are_apart_from_inputs(void **state)
{
    (void)state;
    jg_context *c = open_software();
    const jg_problem p = {.m = 64, .n = 64, .k = 64};
    void *a, *b;
    float *zeros = calloc(64 * 64, 4);
    assert_non_null(zeros);
    assert_int_equal(jg_alloc(c, JG_DEVICE_MEMORY, 64 * 64 * 4, &a), JG_OK);
    assert_int_equal(jg_alloc(c, JG_DEVICE_MEMORY, 64 * 64 * 4, &b), JG_OK);
    assert_int_equal(jg_copy(c, a, zeros, 64 * 64 * 4), JG_OK);
    assert_int_equal(jg_copy(c, b, zeros, 64 * 64 * 4), JG_OK);
    free(zeros);
    const jg_operands same_inputs = {.a = a, .b = a, .c = b}, overlapping = {.a = a, .b = b, .c = a};
    const jg_status status = jg_gemm(c, &p, &same_inputs);
    if (status == JG_ERR_NO_NVRTC) {
        print_message("SKIP no NVRTC: %s\n", jg_last_error());
        skip();
    }
    assert_int_equal(status, JG_OK);
    assert_int_equal(jg_synchronize(c, NULL), JG_OK);
    assert_int_equal(jg_gemm(c, &p, &overlapping), JG_OK);
    assert_int_equal(jg_synchronize(c, NULL), JG_ERR_DEVICE_LOST);
    assert_non_null(strstr(jg_last_error(), "outside the operands: write"));
    assert_non_null(strstr(jg_last_error(), "of A, which is an input"));
    assert_int_equal(jg_close(c), JG_OK);
}

/* The cubin is refused, the PTX runs, and knows its template lines. */
static void products_run_from_ptx(void **state)
{
    (void)state;
    static const char *const texts[] = {"97x65x33:f16:generic", "97x65x33:specialised", "64x48x40x3:bf16:nt"};
    char folder[4096], path[4200];
    jg_context *c;
    scratch_make(folder);
    snprintf(path, sizeof path, "%s/kernels.db", folder);
    const jg_options options = {.device = JG_DEVICE_CUDA, .compile = JG_COMPILE_WAIT, .driver_path = "swgpu", .cache_path = path};
    if (jg_open(&options, &c) != JG_OK) fail_msg("%s", jg_last_error());
    for (size_t i = 0; i < 3; i++)
        if (multiply(c, texts[i]) != JG_OK) fail_msg("%s: %s", texts[i], jg_last_error());
    jg_counters counters;
    assert_int_equal(jg_launch_counters(c, &counters), JG_OK);
    assert_true(counters.blocks > 0 && counters.blocks_run == counters.blocks);
    assert_true(counters.mma > 0 && counters.fma == 0 && counters.global_store_sectors > 0);
    assert_int_equal(jg_close(c), JG_OK);

    jg_cache *cache;
    jg_cache_entry entry;
    assert_int_equal(jg_cache_open(path, 0, &cache), JG_OK);
    assert_int_equal(jg_cache_find(cache, "jg_sm87_mma_bf16", &entry), JG_OK);
    assert_non_null(strstr(entry.provenance, "--generate-line-info"));
    jg_cache_close(cache);
    scratch_remove(folder);
}

static void only_the_software_gpu_counts(void **state)
{
    (void)state;
    jg_context *c;
    jg_counters counters;
    const jg_options cpu = {.device = JG_DEVICE_CPU, .cache_path = ""};
    assert_int_equal(jg_open(&cpu, &c), JG_OK);
    assert_int_equal(jg_launch_counters(c, NULL), JG_ERR_NULL);
    assert_int_equal(jg_launch_counters(NULL, &counters), JG_ERR_NULL);
    assert_int_equal(jg_launch_counters(c, &counters), JG_ERR_UNSUPPORTED);
    assert_non_null(strstr(jg_last_error(), "swgpu"));
    assert_int_equal(jg_close(c), JG_OK);
}

/* A device that fails is reported as such, and the next context works. */
static void errors_on_demand(void **state)
{
    (void)state;
    static const struct {
        const char *fault;
        jg_status status;
        const char *text;
    } rows[] = {
        {"cuLaunchKernel:1:CUDA_ERROR_ILLEGAL_ADDRESS", JG_ERR_DEVICE_LOST, "CUDA_ERROR_ILLEGAL_ADDRESS"},
        {"cuLaunchKernel:1:CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", JG_ERR_LAUNCH, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"},
        {"cuStreamSynchronize:1:CUDA_ERROR_LAUNCH_TIMEOUT", JG_ERR_DEVICE_LOST, "CUDA_ERROR_LAUNCH_TIMEOUT"},
        {"cuMemAlloc:2:CUDA_ERROR_OUT_OF_MEMORY", JG_ERR_NO_MEMORY, "cuMemAlloc"},
        {"cuMemcpy:1:CUDA_ERROR_ECC_UNCORRECTABLE", JG_ERR_DEVICE_LOST, "CUDA_ERROR_ECC_UNCORRECTABLE"},
        {"cuModuleGetFunction:1+:CUDA_ERROR_NOT_FOUND", JG_ERR_LOAD, "CUDA_ERROR_NOT_FOUND"},
        {"cuModuleLoadDataEx:1+:CUDA_ERROR_OUT_OF_MEMORY", JG_ERR_NO_MEMORY, "loading"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        setenv("JITGEMM_SWGPU_FAULT", rows[i].fault, 1);
        jg_context *c = open_software();
        const jg_status status = multiply(c, "64:f16:generic");
        if (status != rows[i].status || !strstr(jg_last_error(), rows[i].text))
            fail_msg("%s: %s: %s", rows[i].fault, jg_status_name(status), jg_last_error());
        assert_int_equal(jg_close(c), JG_OK);
    }
    unsetenv("JITGEMM_SWGPU_FAULT");
    jg_context *c = open_software();
    assert_int_equal(multiply(c, "64:f16:generic"), JG_OK);
    assert_int_equal(jg_close(c), JG_OK);
}

static void memory_ends(void **state)
{
    (void)state;
    void *p, *q;
    setenv("JITGEMM_SWGPU_MEMORY", "1M", 1);
    jg_context *c = open_software();
    assert_int_equal(jg_alloc(c, JG_DEVICE_MEMORY, 700 << 10, &p), JG_OK);
    assert_int_equal(jg_alloc(c, JG_DEVICE_MEMORY, 700 << 10, &q), JG_ERR_NO_MEMORY);
    assert_int_equal(jg_free(c, JG_DEVICE_MEMORY, p), JG_OK);
    assert_int_equal(jg_alloc(c, JG_DEVICE_MEMORY, 700 << 10, &q), JG_OK);
    assert_int_equal(jg_free(c, JG_DEVICE_MEMORY, q), JG_OK);
    assert_int_equal(jg_close(c), JG_OK);
}

/* Only what the host's own allocations leave behind is a leak; the library leaves nothing. */
static void leaks_are_found(void **state)
{
    (void)state;
    jg_context *c = open_software();
    const char *driver_file = NULL;
    Dl_info info;
    if (dladdr(*(void **)&c->device.driver->init, &info)) driver_file = info.dli_fname;
    void *handle = driver_file ? dlopen(driver_file, RTLD_NOW | RTLD_NOLOAD) : NULL;
    assert_non_null(handle);
    size_t (*findings)(char *, size_t, unsigned *);
    *(void **)&findings = dlsym(handle, "swgpuFindings");
    assert_non_null(findings);
    char text[4096];
    unsigned before, after;
    assert_int_equal(multiply(c, "64:f16"), JG_OK);
    findings(NULL, 0, &before);
    assert_int_equal(jg_close(c), JG_OK);
    findings(NULL, 0, &after);
    assert_int_equal(after, before);

    void *p;
    c = open_software();
    assert_int_equal(jg_alloc(c, JG_DEVICE_MEMORY, 4096, &p), JG_OK);
    assert_int_equal(jg_close(c), JG_OK);
    findings(text, sizeof text, &after);
    assert_int_equal(after, before + 1);
    assert_non_null(strstr(text, "leak: "));
    assert_non_null(strstr(text, "4096 bytes"));
    dlclose(handle);
}

/* Of a large product only the blocks asked for run, and the counters say so. */
static void large_products_are_sampled(void **state)
{
    (void)state;
    jg_problem p = {.m = 512, .n = 512, .k = 257, .type_a = JG_F16};
    reference ref;
    void *blocks[3];
    jg_counters counters;
    setenv("JITGEMM_SWGPU_BLOCKS", "3", 1);
    jg_context *c = open_software();
    reference_make(&ref, &p, REFERENCE_UNIFORM, 0, 3);
    reference_sample(&ref);
    const reference_matrix *x[3] = {&ref.a, &ref.b, &ref.c};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(jg_alloc(c, JG_DEVICE_MEMORY, x[i]->block_bytes, &blocks[i]), JG_OK);
        assert_int_equal(jg_copy(c, blocks[i], x[i]->block, x[i]->block_bytes), JG_OK);
    }
    const jg_operands data = {.a = (char *)blocks[0] + ref.a.offset_bytes, .b = (char *)blocks[1] + ref.b.offset_bytes,
                              .c = (char *)blocks[2] + ref.c.offset_bytes};
    const jg_status status = jg_gemm(c, &p, &data);
    if (status == JG_ERR_NO_NVRTC) {
        print_message("SKIP no NVRTC: %s\n", jg_last_error());
        skip();
    }
    assert_int_equal(status, JG_OK);
    assert_int_equal(jg_launch_counters(c, &counters), JG_OK);
    assert_int_equal(counters.blocks_run, 3);
    assert_true(counters.blocks > 3);
    assert_int_equal(jg_copy(c, ref.c.block, blocks[2], ref.c.block_bytes), JG_OK);
    const reference_result r = reference_check(&ref, 1, 0);
    assert_true(r.checked > 0 && r.checked < p.m * p.n);
    assert_int_equal(r.failures, 0);
    assert_int_equal(r.stray, 0);
    /* What was left out is no finding for who reads on: C of a product into fresh memory is the next one's A. */
    void *fresh, *last;
    assert_int_equal(jg_alloc(c, JG_DEVICE_MEMORY, 512 * 512 * 2, &fresh), JG_OK);
    assert_int_equal(jg_alloc(c, JG_DEVICE_MEMORY, 512 * 512 * 2, &last), JG_OK);
    const jg_operands first = {.a = data.a, .b = data.b, .c = fresh}, second = {.a = fresh, .b = data.b, .c = last};
    assert_int_equal(jg_gemm(c, &p, &first), JG_OK);
    const jg_problem chained = {.m = 512, .n = 512, .k = 257, .type_a = JG_F16, .lda = 512};
    assert_int_equal(jg_gemm(c, &chained, &second), JG_OK);
    if (jg_synchronize(c, NULL) != JG_OK) fail_msg("%s", jg_last_error());
    jg_free(c, JG_DEVICE_MEMORY, fresh);
    jg_free(c, JG_DEVICE_MEMORY, last);
    for (int i = 0; i < 3; i++) jg_free(c, JG_DEVICE_MEMORY, blocks[i]);
    reference_free(&ref);
    assert_int_equal(jg_close(c), JG_OK);
}

/* The driver's calls that a host makes and the library does not, from the same driver. */
typedef struct host_driver {
    CUresult (*create)(CUstream *, unsigned), (*begin)(CUstream, CUstreamCaptureMode), (*end)(CUstream, CUgraph *);
    CUresult (*instantiate)(CUgraphExec *, CUgraph, unsigned long long), (*launch)(CUgraphExec, CUstream);
    CUresult (*count)(CUgraph, CUgraphNode *, size_t *), (*destroy)(CUgraph), (*destroy_exec)(CUgraphExec);
} host_driver;

static host_driver find_host_driver(const jg_context *c)
{
    host_driver h;
    const struct {
        void *place;
        const char *symbol;
    } rows[] = {{&h.create, "cuStreamCreate"}, {&h.begin, "cuStreamBeginCapture_v2"}, {&h.end, "cuStreamEndCapture"},
                {&h.instantiate, "cuGraphInstantiateWithFlags"}, {&h.launch, "cuGraphLaunch"}, {&h.count, "cuGraphGetNodes"},
                {&h.destroy, "cuGraphDestroy"}, {&h.destroy_exec, "cuGraphExecDestroy"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        void *symbol = dlsym(c->device.driver->handle, rows[i].symbol);
        assert_non_null(symbol);
        memcpy(rows[i].place, &symbol, sizeof symbol);
    }
    return h;
}

/* A product that has run before is one node; the graph computes it, with its operands described and checked. */
static void products_are_captured(void **state)
{
    (void)state;
    jg_problem p = {0};
    reference ref;
    void *blocks[3];
    CUstream stream;
    CUgraph graph = NULL;
    CUgraphExec exec;
    size_t nodes = 0;
    jg_context *c = open_software();
    const host_driver h = find_host_driver(c);
    assert_int_equal(multiply(c, "61x45x33:f16:generic"), JG_OK);
    assert_int_equal(jg_problem_parse("61x45x33:f16:generic", &p), JG_OK);
    reference_make(&ref, &p, REFERENCE_UNIFORM, 0, 3);
    const reference_matrix *x[3] = {&ref.a, &ref.b, &ref.c};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(jg_alloc(c, JG_DEVICE_MEMORY, x[i]->block_bytes, &blocks[i]), JG_OK);
        assert_int_equal(jg_copy(c, blocks[i], x[i]->block, x[i]->block_bytes), JG_OK);
    }
    assert_int_equal(c->device.driver->context_push(c->device.context), CUDA_SUCCESS);
    assert_int_equal(h.create(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    assert_int_equal(h.begin(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
    const jg_operands data = {.a = (char *)blocks[0] + ref.a.offset_bytes, .b = (char *)blocks[1] + ref.b.offset_bytes,
                              .c = (char *)blocks[2] + ref.c.offset_bytes, .stream = stream};
    if (jg_gemm(c, &p, &data) != JG_OK) fail_msg("%s", jg_last_error());
    assert_int_equal(h.end(stream, &graph), CUDA_SUCCESS);
    assert_int_equal(h.count(graph, NULL, &nodes), CUDA_SUCCESS);
    assert_int_equal(nodes, 1);
    assert_int_equal(h.instantiate(&exec, graph, 0), CUDA_SUCCESS);
    assert_int_equal(h.launch(exec, stream), CUDA_SUCCESS);
    assert_int_equal(jg_synchronize(c, stream), JG_OK);
    assert_int_equal(jg_copy(c, ref.c.block, blocks[2], ref.c.block_bytes), JG_OK);
    const reference_result r = reference_check(&ref, 1, 0);
    assert_true(r.checked > 0 && !r.failures && !r.stray);
    for (int i = 0; i < 3; i++) jg_free(c, JG_DEVICE_MEMORY, blocks[i]);
    reference_free(&ref);
    /* A is gone, and the graph still reads it. */
    assert_int_equal(h.launch(exec, stream), CUDA_SUCCESS);
    assert_int_equal(jg_synchronize(c, stream), JG_ERR_DEVICE_LOST);
    assert_non_null(strstr(jg_last_error(), "use after free"));
    h.destroy_exec(exec);
    h.destroy(graph);
    CUcontext popped;
    assert_int_equal(c->device.driver->context_pop(&popped), CUDA_SUCCESS);
    assert_int_equal(jg_close(c), JG_OK);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "alone") == 0) return open_alone();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(chosen_by_option_or_variable, forget_settings),
        cmocka_unit_test_setup(missing_is_an_error, forget_settings),
        cmocka_unit_test_setup(outputs_are_apart_from_inputs, forget_settings),
        cmocka_unit_test_setup(products_run_from_ptx, forget_settings),
        cmocka_unit_test_setup(only_the_software_gpu_counts, forget_settings),
        cmocka_unit_test_setup(errors_on_demand, forget_settings),
        cmocka_unit_test_setup(memory_ends, forget_settings),
        cmocka_unit_test_setup(leaks_are_found, forget_settings),
        cmocka_unit_test_setup(large_products_are_sampled, forget_settings),
        cmocka_unit_test_setup(products_are_captured, forget_settings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
