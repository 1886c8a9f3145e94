/* cuLaunchKernel of the software GPU: parameters, every limit just below and just above, faults and how they stick, which
 * blocks a sampled launch runs, and the counters. */
#include "driver_fixture.h"

#include "scratch.h"
#include "src/swgpu/sample.h"
#include "src/swgpu/settings.h"

#include <limits.h>
#include <pthread.h>

#define MEMBER(name) COUNT_##name,
enum { SWGPU_COUNTERS(MEMBER) COUNTS };
#undef MEMBER

static uint64_t counter(int which)
{
    uint64_t values[COUNTS];
    assert_int_equal(swgpuCounters(values, COUNTS), COUNTS);
    return values[which];
}

/* mark[block] = 1, for grids of any shape: marks are bytes. */
#define KERNEL_MARK                                                                                                    \
    ".visible .entry mark(.param .u64 out) {\n .reg .b32 %r<9>; .reg .b64 %d<4>;\n ld.param.u64 %d1, [out];\n"         \
    " mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ctaid.y; mov.u32 %r3, %ctaid.z; mov.u32 %r4, %nctaid.x; mov.u32 %r5, %nctaid.y;\n" \
    " mad.lo.u32 %r6, %r3, %r5, %r2; mad.lo.u32 %r7, %r6, %r4, %r1; cvt.u64.u32 %d2, %r7; add.s64 %d3, %d1, %d2;\n"    \
    " mov.u32 %r8, 1; st.global.u8 [%d3], %r8; ret; }\n"

static void parameters_arrive(void **state)
{
    (void)state;
    open_clean();
    CUmodule module = load_text(HEADER KERNEL_ADD KERNEL_TID);
    CUfunction add = get_function(module, "add"), tid = get_function(module, "tid");
    uint32_t a[64], b[64], sum[64], scale = 3;
    uint16_t bias = 9;
    for (uint32_t i = 0; i < 64; i++) a[i] = i, b[i] = 1000 * i;
    CUdeviceptr da = allocate(256), db = allocate(256), dsum = allocate(256);
    WORKS(cuMemcpyHtoD(da, a, 256));
    WORKS(cuMemcpyHtoD(db, b, 256));
    void *separate[] = {&dsum, &scale, &bias, &da, &db};
    WORKS(launch_1d(add, 1, 64, separate));
    WORKS(cuMemcpyDtoH(sum, dsum, 256));
    for (uint32_t i = 0; i < 64; i++) assert_int_equal(sum[i], 3001 * i + 9);
    struct {
        uint64_t sum;
        uint32_t scale;
        uint16_t bias, padding;
        uint64_t a, b;
    } packed = {dsum, 5, 6, 77, da, db};
    size_t bytes = sizeof packed;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
    WORKS(cuLaunchKernel(add, 1, 1, 1, 64, 1, 1, 0, NULL, NULL, extra));
    WORKS(cuMemcpyDtoH(sum, dsum, 256));
    for (uint32_t i = 0; i < 64; i++) assert_int_equal(sum[i], 5001 * i + 6);
    REFUSES(INVALID_VALUE, cuLaunchKernel(add, 1, 1, 1, 64, 1, 1, 0, NULL, separate, extra));
    bytes = sizeof packed - 1;
    REFUSES(INVALID_VALUE, cuLaunchKernel(add, 1, 1, 1, 64, 1, 1, 0, NULL, NULL, extra));
    bytes = sizeof packed + 1;
    REFUSES(LAUNCH_OUT_OF_RESOURCES, cuLaunchKernel(add, 1, 1, 1, 64, 1, 1, 0, NULL, NULL, extra));
    bytes = sizeof packed;
    void *unknown[] = {(void *)77, NULL, CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                       CU_LAUNCH_PARAM_END};
    REFUSES(INVALID_VALUE, cuLaunchKernel(add, 1, 1, 1, 64, 1, 1, 0, NULL, NULL, unknown));
    WORKS(cuLaunchKernel(add, 1, 1, 1, 64, 1, 1, 0, NULL, NULL, unknown + 2));
    REFUSES(INVALID_VALUE, launch_1d(add, 1, 64, NULL));
    separate[2] = NULL;
    REFUSES(INVALID_VALUE, launch_1d(add, 1, 64, separate));
    assert_contains(error_text(CUDA_ERROR_INVALID_VALUE), "kernel add takes 5 parameters; number 2 is null");
    /* 3 blocks of 5 */
    void *one[] = {&dsum};
    WORKS(launch_1d(tid, 3, 5, one));
    WORKS(cuMemcpyDtoH(sum, dsum, 60));
    for (uint32_t i = 0; i < 15; i++) assert_int_equal(sum[i], i % 5);
}

static void handles(void **state)
{
    (void)state;
    open_clean();
    CUmodule module = load_text(HEADER KERNEL_NONE);
    CUfunction none = get_function(module, "none");
    CUstream stream, theirs;
    CUcontext other;
#define LAUNCH_IN(stream_) cuLaunchKernel(none, 1, 1, 1, 1, 1, 1, 0, stream_, NULL, NULL)
    WORKS(cuStreamCreate(&stream, 0));
    WORKS(LAUNCH_IN(NULL));
    WORKS(LAUNCH_IN(CU_STREAM_LEGACY));
    WORKS(LAUNCH_IN(CU_STREAM_PER_THREAD));
    WORKS(LAUNCH_IN(stream));
    REFUSES(INVALID_HANDLE, LAUNCH_IN((CUstream)none));
    WORKS(cuCtxCreate_v2(&other, 0, 0));
    WORKS(cuStreamCreate(&theirs, 0));
    REFUSES(INVALID_HANDLE, LAUNCH_IN(NULL));
    REFUSES(INVALID_HANDLE, LAUNCH_IN(theirs));
    WORKS(LAUNCH_IN(stream)); /* the stream says which context */
    WORKS(cuCtxDestroy(other));
    REFUSES(INVALID_HANDLE, LAUNCH_IN(theirs));
    REFUSES(INVALID_HANDLE, launch_1d(NULL, 1, 1, NULL));
    REFUSES(INVALID_HANDLE, launch_1d((CUfunction)module, 1, 1, NULL));
    WORKS(cuModuleUnload(module));
    REFUSES(INVALID_HANDLE, LAUNCH_IN(NULL));
#undef LAUNCH_IN
}

/* The largest grids would run for years: of a described launch two blocks are enough here. */
static CUresult launch_shape(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned x, unsigned y, unsigned z,
                             unsigned shared)
{
    WORKS(swgpuDescribeLaunch(NULL, 0, SETTINGS_SMALL_LAUNCH + 1));
    return cuLaunchKernel(f, gx, gy, gz, x, y, z, shared, NULL, NULL, NULL);
}

static void limits_of_shapes(void **state)
{
    (void)state;
    set_only("BLOCKS", "2");
    open_context();
    CUmodule module = load_text(HEADER KERNEL_NONE KERNEL_BOUND KERNEL_REQUIRED);
    static const struct {
        const char *kernel;
        unsigned grid[3], block[3];
        CUresult result;
    } rows[] = {
        {"none", {INT_MAX, 1, 1}, {1, 1, 1}, CUDA_SUCCESS},
        {"none", {(unsigned)INT_MAX + 1, 1, 1}, {1, 1, 1}, CUDA_ERROR_INVALID_VALUE},
        {"none", {INT_MAX, 65535, 65535}, {1, 1, 1}, CUDA_SUCCESS},
        {"none", {1, 65536, 1}, {1, 1, 1}, CUDA_ERROR_INVALID_VALUE},
        {"none", {1, 1, 65536}, {1, 1, 1}, CUDA_ERROR_INVALID_VALUE},
        {"none", {0, 1, 1}, {1, 1, 1}, CUDA_ERROR_INVALID_VALUE},
        {"none", {1, 0, 1}, {1, 1, 1}, CUDA_ERROR_INVALID_VALUE},
        {"none", {1, 1, 0}, {1, 1, 1}, CUDA_ERROR_INVALID_VALUE},
        {"none", {1, 1, 1}, {1024, 1, 1}, CUDA_SUCCESS},
        {"none", {1, 1, 1}, {1025, 1, 1}, CUDA_ERROR_INVALID_VALUE},
        {"none", {1, 1, 1}, {1, 1024, 1}, CUDA_SUCCESS},
        {"none", {1, 1, 1}, {1, 1025, 1}, CUDA_ERROR_INVALID_VALUE},
        {"none", {1, 1, 1}, {16, 1, 64}, CUDA_SUCCESS},
        {"none", {1, 1, 1}, {1, 1, 65}, CUDA_ERROR_INVALID_VALUE},
        {"none", {1, 1, 1}, {32, 8, 4}, CUDA_SUCCESS},
        {"none", {1, 1, 1}, {41, 25, 1}, CUDA_ERROR_INVALID_VALUE}, /* 1025 */
        {"none", {1, 1, 1}, {1024, 1024, 64}, CUDA_ERROR_INVALID_VALUE},
        {"none", {1, 1, 1}, {0, 1, 1}, CUDA_ERROR_INVALID_VALUE},
        {"none", {1, 1, 1}, {1, 0, 1}, CUDA_ERROR_INVALID_VALUE},
        {"none", {1, 1, 1}, {1, 1, 0}, CUDA_ERROR_INVALID_VALUE},
        {"bound", {1, 1, 1}, {64, 1, 1}, CUDA_SUCCESS},
        {"bound", {1, 1, 1}, {65, 1, 1}, CUDA_ERROR_INVALID_VALUE},
        {"bound", {1, 1, 1}, {8, 8, 1}, CUDA_SUCCESS},
        {"bound", {1, 1, 1}, {3, 1, 1}, CUDA_SUCCESS},
        {"required", {1, 1, 1}, {8, 4, 2}, CUDA_SUCCESS},
        {"required", {1, 1, 1}, {8, 3, 2}, CUDA_ERROR_INVALID_VALUE},
        {"required", {1, 1, 1}, {7, 4, 2}, CUDA_ERROR_INVALID_VALUE},
        {"required", {1, 1, 1}, {8, 4, 1}, CUDA_ERROR_INVALID_VALUE},
        {"required", {1, 1, 1}, {8, 4, 3}, CUDA_ERROR_INVALID_VALUE},
        {"required", {1, 1, 1}, {64, 1, 1}, CUDA_ERROR_INVALID_VALUE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const unsigned *g = rows[i].grid, *b = rows[i].block;
        const CUresult result = launch_shape(get_function(module, rows[i].kernel), g[0], g[1], g[2], b[0], b[1], b[2], 0);
        if (result != rows[i].result) fail_msg("row %zu: %d instead of %d", i, (int)result, (int)rows[i].result);
    }
    assert_contains(error_text(CUDA_ERROR_INVALID_VALUE),
                    "invalid argument: a block of 64 x 1 x 1; kernel required requires 8 x 4 x 2");
    WORKS(cuCtxSynchronize());
}

static void limits_of_shared_memory(void **state)
{
    (void)state;
    set_only("DEVICE", "t4");
    open_context();
    CUmodule module = load_text(HEADER KERNEL_NONE KERNEL_SHARED);
    CUfunction none = get_function(module, "none"), shares = get_function(module, "shares");
    const CUfunction_attribute dynamic = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    WORKS(launch_shape(none, 1, 1, 1, 32, 1, 1, 49152));
    REFUSES(INVALID_VALUE, launch_shape(none, 1, 1, 1, 32, 1, 1, 49153));
    REFUSES(INVALID_VALUE, launch_shape(none, 1, 1, 1, 32, 1, 1, UINT_MAX));
    WORKS(launch_shape(shares, 1, 1, 1, 32, 1, 1, 48128));
    REFUSES(INVALID_VALUE, launch_shape(shares, 1, 1, 1, 32, 1, 1, 48129));
    WORKS(cuFuncSetAttribute(none, dynamic, 65536));
    WORKS(launch_shape(none, 1, 1, 1, 32, 1, 1, 65536));
    REFUSES(INVALID_VALUE, launch_shape(none, 1, 1, 1, 32, 1, 1, 65537));
    WORKS(cuFuncSetAttribute(none, dynamic, 100)); /* less than it had */
    WORKS(launch_shape(none, 1, 1, 1, 32, 1, 1, 100));
    REFUSES(INVALID_VALUE, launch_shape(none, 1, 1, 1, 32, 1, 1, 101));
    WORKS(cuCtxSynchronize());
}

/* A kernel that holds `live` values at once. */
static void write_hungry(char *text, const char *directive, int live)
{
    char *at = text + sprintf(text, HEADER ".visible .entry hungry(.param .u64 out) %s {\n .reg .b32 %%r<%d>; .reg .b64 %%d1;\n"
                              " ld.param.u64 %%d1, [out];\n", directive, live + 2);
    for (int i = 0; i < live; i++) at += sprintf(at, " ld.global.u32 %%r%d, [%%d1+%d];\n", i, 4 * i);
    at += sprintf(at, " mov.u32 %%r%d, 0;\n", live);
    for (int i = 0; i < live; i++) at += sprintf(at, " add.u32 %%r%d, %%r%d, %%r%d;\n", live, live, i);
    sprintf(at, " st.global.u32 [%%d1], %%r%d; ret; }\n", live);
}

static void limits_of_registers(void **state)
{
    (void)state;
    set_only("CHECKS", "none"); /* all threads write the same word */
    open_context();
    static char text[40000];
    int registers, most;
    CUdeviceptr out = allocate(4096);
    void *parameters[] = {&out};
    WORKS(cuMemsetD32(out, 1, 1024));
    write_hungry(text, "", 120);
    CUmodule module = load_text(text);
    CUfunction hungry = get_function(module, "hungry");
    WORKS(cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, hungry));
    assert_in_range(registers, 120, 140);
    WORKS(cuFuncGetAttribute(&most, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, hungry));
    const int units = (registers * 32 + 255) / 256; /* 256 registers each; an SM has 256 of these */
    assert_int_equal(most, 256 / units * 32);
    assert_true(most < 1024);
    WORKS(launch_1d(hungry, 1, (unsigned)most, parameters));
    REFUSES(LAUNCH_OUT_OF_RESOURCES, launch_1d(hungry, 1, (unsigned)most + 1, parameters));
    REFUSES(LAUNCH_OUT_OF_RESOURCES, launch_1d(hungry, 1, 1024, parameters));
    WORKS(cuCtxSynchronize());
    /* Bounds make the compiler use fewer. */
    static const struct {
        const char *directive;
        int most;
    } bounds[] = {{".maxntid 1024, 1, 1", 64}, {".maxntid 256, 1, 1 .minnctapersm 4", 64}, {".maxnreg 32", 32},
                  {".reqntid 1024, 1, 1", 64}};
    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
        write_hungry(text, bounds[i].directive, 120);
        CUfunction f = get_function(load_text(text), "hungry");
        WORKS(cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, f));
        assert_int_equal(registers, bounds[i].most);
        WORKS(launch_1d(f, 1, strstr(bounds[i].directive, "256") ? 256 : 1024, parameters));
    }
    WORKS(cuCtxSynchronize());
    write_hungry(text, "", 300); /* more than there are: it spills */
    WORKS(cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, get_function(load_text(text), "hungry")));
    assert_int_equal(registers, 255);
}

static void *text_in_another_thread(void *user)
{
    (void)user;
    return (void *)(uintptr_t)error_text(CUDA_ERROR_ILLEGAL_ADDRESS);
}

/* A fault: the launch says nothing, all later calls in the context do, and everybody can read what it was. */
static void faults_stick(void **state)
{
    (void)state;
    char folder[4096], value[4200];
    scratch_make(folder);
    set_only("REPORT", scratch_path(folder, "report"));
    snprintf(value, sizeof value, "%s", scratch_path(folder, "report"));
    CUcontext primary = open_context(), other;
    CUmodule module = load_text(HEADER KERNEL_TID KERNEL_NONE), never = NULL;
    CUfunction tid = get_function(module, "tid"), none = get_function(module, "none"), f;
    CUdeviceptr out = allocate(128), address = 0;
    CUstream stream;
    CUevent event;
    size_t bytes;
    int number;
    uint32_t word;
    void *parameters[] = {&out};
    const unsigned before = finding_count();
    WORKS(cuStreamCreate(&stream, 0));
    WORKS(cuEventCreate(&event, 0));
    WORKS(launch_1d(tid, 1, 32, parameters));
    WORKS(cuStreamSynchronize(NULL));
    assert_string_equal(error_text(CUDA_ERROR_ILLEGAL_ADDRESS), "an illegal memory access");
    WORKS(launch_1d(tid, 1, 33, parameters));
    const CUresult calls[] = {
        cuStreamSynchronize(NULL), cuStreamSynchronize(stream), cuCtxSynchronize(), cuStreamQuery(stream),
        cuMemcpyDtoH(&word, out, 4), cuMemcpyHtoD(out, &word, 4), cuMemcpyDtoD(out, out + 64, 4),
        cuMemcpy((CUdeviceptr)(uintptr_t)&word, out, 4), cuMemcpyAsync(out, out + 64, 4, NULL), cuMemsetD8(out, 0, 4),
        cuMemsetD32(out, 0, 1), cuMemAlloc(&address, 4), cuMemFree(out), cuMemGetInfo(&bytes, NULL), launch_1d(none, 1, 1, NULL),
        cuModuleLoadDataEx(&never, HEADER KERNEL_NONE, 0, NULL, NULL), cuModuleGetFunction(&f, module, "none"),
        cuModuleGetGlobal(&address, &bytes, module, "x"), cuModuleUnload(module), cuFuncGetAttribute(&number, 0, none),
        cuFuncSetAttribute(none, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 4), cuStreamCreate(&stream, 0),
        cuStreamDestroy(stream), cuEventCreate(&event, 0), cuEventRecord(event, NULL), cuEventSynchronize(event),
        cuEventDestroy(event), cuOccupancyMaxActiveBlocksPerMultiprocessor(&number, none, 32, 0),
    };
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        if (calls[i] != CUDA_ERROR_ILLEGAL_ADDRESS) fail_msg("call %zu: %d", i, (int)calls[i]);
    WORKS(cuCtxGetDevice(&number));
    assert_int_equal(finding_count(), before + 1);
    const char *text = error_text(CUDA_ERROR_ILLEGAL_ADDRESS), *finding = last_finding();
    assert_string_equal(text, finding);
    assert_memory_equal(text, "out of bounds: ", 15);
    assert_contains(text, "kernel tid, block (0, 0, 0), thread (32, 0, 0), PTX line");
    pthread_t thread;
    void *theirs;
    assert_int_equal(pthread_create(&thread, NULL, text_in_another_thread, NULL), 0);
    assert_int_equal(pthread_join(thread, &theirs), 0);
    assert_ptr_equal(theirs, text);
    assert_string_equal(error_text(CUDA_ERROR_LAUNCH_FAILED), "the launch failed");
    WORKS(cuCtxCreate_v2(&other, 0, 0)); /* another context has nothing to do with it, but for what belongs to this one */
    WORKS(cuCtxSynchronize());
    WORKS(cuMemFree(allocate(4)));
    REFUSES(ILLEGAL_ADDRESS, cuStreamSynchronize(stream));
    REFUSES(ILLEGAL_ADDRESS, cuLaunchKernel(none, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
    REFUSES(ILLEGAL_ADDRESS, cuEventSynchronize(event));
    WORKS(cuCtxDestroy(other));
    WORKS(cuDevicePrimaryCtxRelease(0));
    assert_string_equal(error_text(CUDA_ERROR_ILLEGAL_ADDRESS), "an illegal memory access");
    assert_string_equal(text, last_finding()); /* the pointer stays good; and nothing leaked */
    assert_int_equal(finding_count(), before + 1);
    WORKS(cuDevicePrimaryCtxRetain(&primary, 0));
    WORKS(cuCtxSynchronize());
    unsigned char *report = scratch_read(value, &bytes);
    assert_non_null(report);
    assert_int_equal(bytes, strlen(text) + 1);
    assert_memory_equal(report, text, bytes - 1);
    assert_int_equal(report[bytes - 1], '\n');
    free(report);
    scratch_remove(folder);
}

static void a_trap(void **state)
{
    (void)state;
    open_clean();
    CUmodule module = load_text(HEADER KERNEL_TRAP);
    WORKS(launch_1d(get_function(module, "traps"), 1, 1, NULL));
    REFUSES(ILLEGAL_INSTRUCTION, cuCtxSynchronize());
    assert_memory_equal(error_text(CUDA_ERROR_ILLEGAL_INSTRUCTION), "trap: ", 6);
}

/* ---- sampling ---- */

static void samples_are_sound(void **state)
{
    (void)state;
    static const uint32_t grids[][3] = {{2, 1, 1}, {7, 1, 1}, {100, 1, 1}, {3, 33, 1}, {16, 16, 4}, {1, 1, 1000}, {INT_MAX, 1, 1},
                                        {INT_MAX, 65535, 65535}, {9999, 7, 3}};
    static uint64_t list[1001], again[1001];
    for (size_t g = 0; g < sizeof grids / sizeof grids[0]; g++) {
        const uint64_t blocks = (uint64_t)grids[g][0] * grids[g][1] * grids[g][2];
        for (uint64_t wanted = 1; wanted < blocks && wanted <= 1000; wanted += wanted < 40 ? 1 : 97) {
            list[wanted] = 12345;
            sample_blocks(grids[g], wanted, list);
            assert_true(list[wanted] == 12345);
            assert_true(list[0] == 0);
            if (wanted > 1) assert_true(list[wanted - 1] == blocks - 1);
            for (uint64_t i = 1; i < wanted; i++) assert_true(list[i - 1] < list[i]);
            /* No stretch of twice the average distance goes without one. */
            for (uint64_t i = 1; i < wanted; i++) assert_true(list[i] - list[i - 1] <= 2 * (blocks / wanted + 1));
            sample_blocks(grids[g], wanted, again);
            assert_memory_equal(list, again, wanted * sizeof *list);
        }
    }
    /* Ends of rows are among them, and another grid chooses others. */
    int ends = 0, equal = 0;
    sample_blocks(grids[8], 1000, list);
    for (int i = 0; i < 1000; i++) ends += list[i] % 9999 == 9998;
    assert_true(ends >= 7);
    const uint32_t turned[3] = {9999, 3, 7};
    sample_blocks(turned, 1000, again);
    for (int i = 0; i < 1000; i++) equal += list[i] == again[i];
    assert_in_range(equal, 300, 900);
}

static unsigned marked(CUdeviceptr marks, unsigned blocks, unsigned char *seen)
{
    unsigned count = 0;
    WORKS(cuMemcpyDtoH(seen, marks, blocks));
    for (unsigned i = 0; i < blocks; i++) count += seen[i];
    WORKS(cuMemsetD8(marks, 0, blocks));
    return count;
}

static void large_launches_run_some_blocks(void **state)
{
    (void)state;
    set_only("BLOCKS", "7");
    open_context();
    const uint32_t grid[3] = {10, 5, 2};
    unsigned char seen[100];
    uint64_t list[7];
    CUfunction mark = get_function(load_text(HEADER KERNEL_MARK), "mark");
    CUdeviceptr marks = allocate(100);
    void *parameters[] = {&marks};
    WORKS(cuMemsetD8(marks, 0, 100));
#define LAUNCH() WORKS(cuLaunchKernel(mark, 10, 5, 2, 1, 1, 1, 0, NULL, parameters, NULL))
    WORKS(swgpuDescribeLaunch(NULL, 0, (1 << 26) + 1));
    LAUNCH();
    assert_true(counter(COUNT_blocks) == 100 && counter(COUNT_blocks_run) == 7);
    assert_int_equal(marked(marks, 100, seen), 7);
    LAUNCH(); /* nobody described this one */
    assert_true(counter(COUNT_blocks_run) == 100);
    assert_int_equal(marked(marks, 100, seen), 100);
    WORKS(swgpuDescribeLaunch(NULL, 0, 1 << 26));
    LAUNCH();
    assert_int_equal(marked(marks, 100, seen), 100);
    WORKS(swgpuDescribeLaunch(NULL, 0, UINT64_MAX));
    LAUNCH();
    sample_blocks(grid, 7, list);
    assert_int_equal(marked(marks, 100, seen), 7);
    WORKS(swgpuDescribeLaunch(NULL, 0, UINT64_MAX));
    LAUNCH();
    WORKS(cuMemcpyDtoH(seen, marks, 100));
    for (int i = 0; i < 7; i++) assert_int_equal(seen[list[i]], 1);
    /* A refused launch uses its description up too. */
    marked(marks, 100, seen);
    WORKS(swgpuDescribeLaunch(NULL, 0, UINT64_MAX));
    REFUSES(INVALID_VALUE, launch_1d(mark, 0, 1, parameters));
    LAUNCH();
    assert_int_equal(marked(marks, 100, seen), 100);
    /* A grid that is no larger runs whole. */
    WORKS(swgpuDescribeLaunch(NULL, 0, UINT64_MAX));
    WORKS(cuLaunchKernel(mark, 7, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
    assert_int_equal(marked(marks, 100, seen), 7);
    WORKS(swgpuDescribeLaunch(NULL, 0, UINT64_MAX));
    WORKS(cuLaunchKernel(mark, 3, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
    assert_int_equal(marked(marks, 100, seen), 3);
#undef LAUNCH
    WORKS(cuMemFree(marks));
}

/* ---- operands and counters ---- */

static void described_operands(void **state)
{
    (void)state;
    CUdeviceptr out;
    void *parameters[] = {&out};
    enum { MOST = 320 };
    swgpu_operand many[MOST + 1], o = {.name = "C", .rows = 4, .row_bytes = 16, .row_step_bytes = 32, .items = 1, .writable = 1};
    for (int round = 0; round < 3; round++) {
        set_only("CHECKS", round == 1 ? "race,leak,uninitialised" : "operands");
        open_context();
        CUmodule module = load_text(HEADER KERNEL_TID);
        CUfunction tid = get_function(module, "tid");
        out = o.base = allocate(128);
        WORKS(swgpuDescribeLaunch(&o, 1, 1));
        WORKS(launch_1d(tid, 1, 4, parameters)); /* the first row */
        WORKS(cuCtxSynchronize());
        o.writable = round != 2;
        WORKS(swgpuDescribeLaunch(&o, 1, 1));
        WORKS(launch_1d(tid, 1, round == 2 ? 1 : 5, parameters)); /* and the padding after it, or a matrix only to be read */
        assert_int_equal(cuCtxSynchronize(), round == 1 ? CUDA_SUCCESS : CUDA_ERROR_LAUNCH_FAILED);
        if (round != 1) assert_contains(last_finding(), "outside the operands: ");
        o.writable = 1;
        close_all(NULL);
    }
    for (int i = 0; i <= MOST; i++) many[i] = o;
    REFUSES(INVALID_VALUE, swgpuDescribeLaunch(many, MOST + 1, 1));
    WORKS(swgpuDescribeLaunch(many, MOST, 1));
    REFUSES(INVALID_VALUE, swgpuDescribeLaunch(NULL, 1, 1));
    many[1].items = 0;
    REFUSES(INVALID_VALUE, swgpuDescribeLaunch(many, 2, 1));
    many[1] = many[0];
    many[1].name = NULL;
    REFUSES(INVALID_VALUE, swgpuDescribeLaunch(many, 2, 1));
}

static void *counters_of_a_thread(void *user)
{
    (void)user;
    uint64_t sum = 0;
    for (int i = 0; i < COUNTS; i++) sum += counter(i);
    return (void *)(uintptr_t)sum;
}

static void counters_of_the_last_launch(void **state)
{
    (void)state;
    open_clean();
    CUmodule module = load_text(HEADER KERNEL_TID);
    CUdeviceptr out = allocate(4 * 96);
    void *parameters[] = {&out}, *other = &out;
    uint64_t values[3] = {7, 7, 7};
    pthread_t thread;
    WORKS(launch_1d(get_function(module, "tid"), 2, 48, parameters)); /* 4 warps of 11 instructions */
    const uint64_t classes = counter(COUNT_arithmetic) + counter(COUNT_fma) + counter(COUNT_special) + counter(COUNT_logic) +
                             counter(COUNT_compare) + counter(COUNT_move) + counter(COUNT_convert) + counter(COUNT_load) +
                             counter(COUNT_store) + counter(COUNT_atomic) + counter(COUNT_copy) + counter(COUNT_mma) +
                             counter(COUNT_warp) + counter(COUNT_barrier) + counter(COUNT_branch) + counter(COUNT_other);
    assert_true(counter(COUNT_blocks) == 2 && counter(COUNT_blocks_run) == 2);
    assert_true(classes == counter(COUNT_instructions) && classes == 4 * 10);
    assert_true(counter(COUNT_store) == 4 && counter(COUNT_global_store_requests) == 4);
    assert_true(counter(COUNT_global_store_sectors) == 2 * (4 + 2));
    assert_true(counter(COUNT_shared_store_requests) == 0 && counter(COUNT_barriers) == 0);
    assert_int_equal(swgpuCounters(values, 2), COUNTS);
    assert_true(values[0] == 2 && values[1] == 2 && values[2] == 7);
    assert_int_equal(swgpuCounters(NULL, 5), COUNTS);
    assert_int_equal(pthread_create(&thread, NULL, counters_of_a_thread, NULL), 0);
    assert_int_equal(pthread_join(thread, &other), 0);
    assert_null(other);
    WORKS(cuMemFree(out));
    CUmodule meets = load_text(HEADER ".visible .entry meets() { .reg .pred %p1; .reg .b32 %r1; mov.u32 %r1, %tid.x;\n"
                               " setp.lt.u32 %p1, %r1, 3; @%p1 bra L; bar.sync 0; L: ret; }\n");
    WORKS(launch_1d(get_function(meets, "meets"), 3, 64, NULL)); /* three lanes leave, and count as having arrived */
    WORKS(cuCtxSynchronize());
    assert_true(counter(COUNT_barriers) == 3 && counter(COUNT_divergent_branches) == 3);
    close_all(NULL);
    set_only("COUNTERS", "0");
    open_context();
    out = allocate(4 * 96);
    WORKS(launch_1d(get_function(load_text(HEADER KERNEL_TID), "tid"), 2, 48, parameters));
    assert_true(counter(COUNT_blocks) == 2 && counter(COUNT_blocks_run) == 2);
    for (int i = 0; i < COUNTS; i++) assert_true(counter(i) == 0 || i == COUNT_blocks || i == COUNT_blocks_run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(parameters_arrive, close_all),
        cmocka_unit_test_teardown(handles, close_all),
        cmocka_unit_test_teardown(limits_of_shapes, close_all),
        cmocka_unit_test_teardown(limits_of_shared_memory, close_all),
        cmocka_unit_test_teardown(limits_of_registers, close_all),
        cmocka_unit_test_teardown(faults_stick, close_all),
        cmocka_unit_test_teardown(a_trap, close_all),
        cmocka_unit_test(samples_are_sound),
        cmocka_unit_test_teardown(large_launches_run_some_blocks, close_all),
        cmocka_unit_test_teardown(described_operands, close_all),
        cmocka_unit_test_teardown(counters_of_the_last_launch, close_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
