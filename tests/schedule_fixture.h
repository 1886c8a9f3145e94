/* For the tests of the software GPU's scheduler: kernels called k with one parameter, the output, are run either through
 * the driver's entry points or, where a limit or the fault itself matters, by launch_run.
 *
 * A kernel's body finds %r1 the thread in its block (x), %r2 the lane, %r3 the block (x), %r4 the block's threads, %r9 0,
 * %d1 the output, %d3 this thread's 16 bytes of it, and 4096 shared bytes s, at %r8. */
#ifndef JG_TESTS_SCHEDULE_FIXTURE_H
#define JG_TESTS_SCHEDULE_FIXTURE_H

#include "driver_fixture.h"

#include "src/swgpu/exec.h"
#include "src/swgpu/memory.h"

#define WORKS(...) assert_int_equal(__VA_ARGS__, CUDA_SUCCESS)

#define K_BEGIN                                                                                                        \
    HEADER ".visible .entry k(.param .u64 out) {\n .reg .pred %p<10>; .reg .b32 %r<50>; .reg .f32 %f<10>; .reg .b64 %d<10>;\n" \
    " .shared .align 16 .b8 s[4096];\n ld.param.u64 %d1, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, %laneid;\n"          \
    " mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x; mad.lo.u32 %r5, %r3, %r4, %r1; mul.wide.u32 %d2, %r5, 16;\n"        \
    " add.u64 %d3, %d1, %d2; mov.u32 %r8, s; mov.u32 %r9, 0;\n"
#define K_END " ret;\n}\n"
#define K_STORE " st.global.u32 [%d3], %r9;\n"
#define KERNEL(body) K_BEGIN body K_STORE K_END

#define K_WORDS 40000
#define UNTOUCHED 0x77777777u

/* What the last kernel left: four words a thread. */
static uint32_t out[K_WORDS];
#define OUT(thread) out[4 * (thread)]

#define MEMBER(name) COUNT_##name,
enum { SWGPU_COUNTERS(MEMBER) COUNTS };
#undef MEMBER
static uint64_t counts[COUNTS];

/* Runs k with some checks (null: all) on a number of worker threads. Fills out unless there was a fault, and counts. */
static inline CUresult run_shape(const char *checks, const char *workers, const char *text, const unsigned grid[3],
                                 const unsigned size[3])
{
    clean_environment();
    setenv("JITGEMM_SWGPU_CHECKS", checks ? checks : "all", 1);
    setenv("JITGEMM_SWGPU_THREADS", workers, 1);
    open_context();
    CUmodule module = load_text(text);
    CUdeviceptr device = allocate(sizeof out);
    void *parameters[] = {&device};
    WORKS(cuMemsetD32(device, UNTOUCHED, K_WORDS));
    WORKS(cuLaunchKernel(get_function(module, "k"), grid[0], grid[1], grid[2], size[0], size[1], size[2], 0, NULL, parameters,
                         NULL));
    swgpuCounters(counts, COUNTS);
    const CUresult result = cuCtxSynchronize();
    if (result == CUDA_SUCCESS) {
        WORKS(cuMemcpyDtoH(out, device, sizeof out));
        WORKS(cuMemFree(device));
        WORKS(cuModuleUnload(module));
    }
    assert_int_equal(close_all(NULL), 0);
    return result;
}

static inline CUresult run_k(const char *checks, const char *text, unsigned blocks, unsigned threads)
{
    const unsigned grid[3] = {blocks, 1, 1}, size[3] = {threads, 1, 1};
    return run_shape(checks, "2", text, grid, size);
}

/* The line of a text in which a part first stands. */
static inline int line_of(const char *text, const char *part)
{
    const char *end = strstr(text, part);
    int line = 1;
    assert_non_null(end);
    for (; text < end; text++) line += *text == '\n';
    return line;
}

/* A launch without the driver: its output is at data, all words 0. */
typedef struct direct {
    ptx_module *module;
    device_memory *memory;
    uint64_t address;
    uint32_t *data;
    launch launch;
    fault fault;
} direct;

static inline void direct_open(direct *d, const char *text, uint32_t blocks, uint32_t threads, uint64_t limit)
{
    char error[512] = "";
    memset(d, 0, sizeof *d);
    if (ptx_parse(text, strlen(text), &d->module, error, sizeof error) != PTX_OK) fail_msg("%s", error);
    d->memory = memory_create(1 << 20);
    assert_non_null(d->memory);
    WORKS(memory_allocate(d->memory, 65536, 0, &d->address));
    d->data = (uint32_t *)(void *)memory_find(d->memory, d->address, NULL)->data;
    memset(d->data, 0, 65536);
    d->launch = (launch){.module = d->module, .kernel = d->module->kernels, .memory = d->memory, .grid = {blocks, 1, 1},
                         .threads = {threads, 1, 1}, .block_threads = threads, .params = (const uint8_t *)&d->address,
                         .shared_bytes = (uint32_t)d->module->kernels->shared_bytes, .count = 1, .sm_count = 8,
                         .instruction_limit = limit, .fault = &d->fault};
}

static inline void direct_close(direct *d)
{
    memory_destroy(d->memory);
    ptx_free(d->module);
}

#endif
