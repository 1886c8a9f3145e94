/* The software GPU as jitgemm-bench uses it, for the tests of its parts: opened and started before the first test, and closed
 * after the last, when nothing that was allocated may be left and no kernel may have done what it must not. */
#ifndef JG_TESTS_BENCH_GPU_FIXTURE_H
#define JG_TESTS_BENCH_GPU_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "status_asserts.h"
#include "tools/bench_gpu.h"

static bench_gpu gpu;

/* The software GPU lies in the build folder, which is not where this program looks. */
static inline const char *swgpu_path(void)
{
    static char path[4096];
    const char *build = getenv("JG_TEST_BUILD_DIR");
    snprintf(path, sizeof path, "%s/lib/libjitgemm-swgpu.so", build ? build : "build");
    return path;
}

static inline int open_swgpu(void **state)
{
    (void)state;
    unsetenv("JITGEMM_SWGPU_BLOCKS"); /* results are checked whole */
    setenv("JITGEMM_SWGPU_THREADS", "2", 1);
    if (bench_gpu_open(swgpu_path(), &gpu) == JG_OK && bench_gpu_start(&gpu) == JG_OK) return 0;
    print_error("%s\n", jg_last_error());
    return -1;
}

/* What the software GPU's checks have found until now. */
static inline unsigned count_findings(void)
{
    size_t (*findings)(char *, size_t, unsigned *);
    static char text[4096];
    unsigned count = 0;
    *(void **)&findings = dlsym(gpu.driver->handle, "swgpuFindings");
    if (!findings) return 1;
    findings(text, sizeof text, &count);
    if (count) print_error("%s\n", text);
    return count;
}

static unsigned findings_left;

static inline int close_swgpu(void **state)
{
    (void)state;
    driver *kept;
    if (driver_open(swgpu_path(), &kept) != JG_OK) return -1;
    bench_gpu_close(&gpu);
    gpu.driver = kept;
    findings_left = count_findings(); /* also what was left in the context */
    driver_close(kept);
    memset(&gpu, 0, sizeof gpu);
    return findings_left ? -1 : 0;
}

/* cmocka tells of a teardown that fails, but does not count it. */
#define run_on_swgpu(tests, setup, teardown) (cmocka_run_group_tests(tests, setup, teardown) + (findings_left != 0))

/* Device memory is no host memory. */
static inline void copy_from_device(void *to, const void *from, size_t bytes)
{
    const CUresult result = gpu.driver->memory_copy((CUdeviceptr)(uintptr_t)to, (CUdeviceptr)(uintptr_t)from, bytes);
    assert_int_equal(result, CUDA_SUCCESS);
}

static inline void copy_to_device(void *to, const void *from, size_t bytes)
{
    copy_from_device(to, from, bytes);
}

#endif
