/* For the tests of the software GPU's entry points: a clean environment, a context, and small kernels in PTX. */
#ifndef JG_TESTS_DRIVER_FIXTURE_H
#define JG_TESTS_DRIVER_FIXTURE_H

#include "src/swgpu/entries.h"
#include "src/swgpu/swgpu.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define REFUSES(code, ...) assert_int_equal(__VA_ARGS__, CUDA_ERROR_##code)
#define WORKS(...) assert_int_equal(__VA_ARGS__, CUDA_SUCCESS)

#define HEADER ".version 7.0\n.target sm_75\n.address_size 64\n"

/* out[global thread] = threadIdx.x */
#define KERNEL_TID                                                                                                     \
    ".visible .entry tid(.param .u64 out) {\n .reg .b32 %r<6>; .reg .b64 %d<5>;\n ld.param.u64 %d1, [out];\n"          \
    " cvta.to.global.u64 %d2, %d1; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x;\n"                \
    " mad.lo.s32 %r4, %r2, %r3, %r1; mul.wide.u32 %d3, %r4, 4; add.s64 %d4, %d2, %d3;\n"                               \
    " st.global.u32 [%d4], %r1; ret; }\n"
/* sum[tid] = a[tid] + b[tid] * scale + bias; parameters of different sizes */
#define KERNEL_ADD                                                                                                     \
    ".visible .entry add(.param .u64 sum, .param .u32 scale, .param .u16 bias, .param .u64 a, .param .u64 b) {\n"      \
    " .reg .b16 %h1; .reg .b32 %r<8>; .reg .b64 %d<8>;\n"                                                              \
    " ld.param.u64 %d2, [a]; ld.param.u64 %d3, [b]; ld.param.u64 %d4, [sum];\n"                                        \
    " ld.param.u32 %r2, [scale]; ld.param.u16 %h1, [bias]; mov.u32 %r1, %tid.x; mul.wide.u32 %d1, %r1, 4;\n"           \
    " add.s64 %d5, %d2, %d1; add.s64 %d6, %d3, %d1; add.s64 %d7, %d4, %d1;\n"                                          \
    " ld.global.u32 %r3, [%d5]; ld.global.u32 %r4, [%d6]; mad.lo.u32 %r5, %r4, %r2, %r3;\n"                            \
    " cvt.u32.u16 %r6, %h1; add.u32 %r7, %r5, %r6; st.global.u32 [%d7], %r7; ret; }\n"
#define KERNEL_NONE ".visible .entry none() { ret; }\n"
#define KERNEL_TRAP ".visible .entry traps() { trap; ret; }\n"
#define KERNEL_BOUND ".visible .entry bound() .maxntid 64, 1, 1 { ret; }\n"
#define KERNEL_REQUIRED ".visible .entry required() .reqntid 8, 4, 2 { ret; }\n"
#define KERNEL_SHARED                                                                                                  \
    ".visible .entry shares() { .shared .align 4 .b8 s[1024]; .reg .b32 %r<4>; .reg .pred %p1;\n mov.u32 %r1, %tid.x;\n" \
    " setp.ne.u32 %p1, %r1, 0; mov.u32 %r2, s; @!%p1 st.shared.u32 [%r2], %r1; ret; }\n"

static inline void clean_environment(void)
{
    static const char *const names[] = {"DEVICE", "MEMORY", "THREADS", "BLOCKS", "CHECKS", "COUNTERS", "REPORT", "FAULT", "SLOW"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char name[64];
        snprintf(name, sizeof name, "JITGEMM_SWGPU_%s", names[i]);
        unsetenv(name);
    }
}

/* Sets JITGEMM_SWGPU_name and no other of them. */
static inline void set_only(const char *name, const char *value)
{
    char variable[64];
    clean_environment();
    snprintf(variable, sizeof variable, "JITGEMM_SWGPU_%s", name);
    if (value) setenv(variable, value, 1);
}

/* cuInit with the environment as it is, and a new primary context on this thread. */
static inline CUcontext open_context(void)
{
    CUcontext context = NULL;
    assert_int_equal(cuInit(0), CUDA_SUCCESS);
    assert_int_equal(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    assert_int_equal(cuCtxPushCurrent(context), CUDA_SUCCESS);
    return context;
}

static inline CUcontext open_clean(void)
{
    clean_environment();
    return open_context();
}

/* Leaves no context, not even after a test that failed. */
static inline int close_all(void **state)
{
    CUcontext popped;
    (void)state;
    clean_environment();
    cuInit(0);
    while (cuCtxPopCurrent(&popped) == CUDA_SUCCESS) cuCtxDestroy(popped);
    while (cuDevicePrimaryCtxRelease(0) == CUDA_SUCCESS) {}
    return cuInit(0) != CUDA_SUCCESS;
}

static inline CUmodule load_text(const char *text)
{
    CUmodule module = NULL;
    char log[1024] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)sizeof log};
    if (cuModuleLoadDataEx(&module, text, 2, options, values) != CUDA_SUCCESS) print_message("%s\n", log);
    assert_non_null(module);
    return module;
}

static inline CUfunction get_function(CUmodule module, const char *name)
{
    CUfunction function = NULL;
    assert_int_equal(cuModuleGetFunction(&function, module, name), CUDA_SUCCESS);
    return function;
}

static inline CUdeviceptr allocate(size_t bytes)
{
    CUdeviceptr address = 0;
    assert_int_equal(cuMemAlloc(&address, bytes), CUDA_SUCCESS);
    assert_true(address != 0);
    return address;
}

static inline CUresult launch_1d(CUfunction function, unsigned blocks, unsigned threads, void **parameters)
{
    return cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, NULL, parameters, NULL);
}

static inline const char *error_text(CUresult code)
{
    const char *text = NULL;
    assert_int_equal(cuGetErrorString(code, &text), CUDA_SUCCESS);
    assert_non_null(text);
    return text;
}

static inline void assert_contains(const char *text, const char *part)
{
    if (!strstr(text, part)) fail_msg("\"%s\" lacks \"%s\"", text, part);
}

static inline unsigned finding_count(void)
{
    unsigned count;
    swgpuFindings(NULL, 0, &count);
    return count;
}

/* The newest finding, without its line break. */
static inline const char *last_finding(void)
{
    static char text[65536];
    const size_t length = swgpuFindings(text, sizeof text, NULL);
    assert_in_range(length, 1, sizeof text - 1);
    assert_int_equal(text[length - 1], '\n');
    text[length - 1] = 0;
    const char *line = strrchr(text, '\n');
    return line ? line + 1 : text;
}

#endif
