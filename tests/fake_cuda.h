/* A CUDA driver for tests without a GPU: tests/fake_cuda.c builds into libfake_cuda.so, which the library opens as its
 * driver, and which a test steers through this table.
 *
 * It is a test double, not a simulator. Device memory is host memory; a launch computes the product at once, by plain
 * loops over the one argument that kernels take, and checks the launch against what the kernel's name promises. Any use
 * that CUDA would punish, now or some day, is kept as the text of misuse(). */
#ifndef JG_TESTS_FAKE_CUDA_H
#define JG_TESTS_FAKE_CUDA_H

#include "launch.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

typedef enum fake_failure {
    FAKE_ONCE,       /* that one call */
    FAKE_FROM_THEN,  /* it, and every later call of the same entry point */
    FAKE_EVERYWHERE  /* it, and every later call that needs a context: what a sticky error does */
} fake_failure;

typedef struct fake_launch {
    char kernel[KERNEL_NAME_BYTES];
    unsigned grid[3], block[3], shared_bytes;
    CUstream stream;
    launch_args args;
} fake_launch;

typedef struct fake_controls {
    /* Back to the start: an Orin with 16 SMs, CUDA 13.0, no calls, no failures. What is loaded or allocated is dropped, and
     * the calling thread's context stack and capture mode are as in the beginning. */
    void (*reset)(void);

    void (*set_capability)(int number);                          /* 87 for 8.7 */
    void (*set_attribute)(CUdevice_attribute attribute, int value); /* -1: the query fails */
    void (*set_devices)(int count);
    void (*set_version)(int version);
    void (*refuse_cubins)(CUresult result);                      /* CUDA_SUCCESS: take them again */
    void (*refuse_ptx)(CUresult result);
    void (*delay_loads)(int ms);

    /* Makes the nth call from now (1: the next) of an entry point, e.g. "cuLaunchKernel", return `result`. */
    void (*fail_call)(const char *symbol, unsigned nth, CUresult result, fake_failure how);

    uint64_t (*calls)(const char *symbol);
    uint64_t (*all_calls)(void);
    size_t (*modules)(void);                 /* loaded now */
    int (*is_loaded)(const char *kernel);    /* by a name that was looked up in a module */
    fake_launch (*last_launch)(void);
    size_t (*allocations)(void);             /* of device memory, now */
    int (*primary_references)(void);

    CUcontext (*make_context)(void);         /* one more context of device 0, as a host application makes */
    void (*push)(CUcontext context);         /* as the application, so uncounted */
    CUcontext (*pop)(void);
    CUcontext (*current)(void);              /* of the calling thread */
    int (*depth)(void);                      /* of its stack */

    void (*set_capturing)(CUstream stream, CUstreamCaptureStatus status); /* what cuStreamIsCapturing says; at first: none */
    CUstreamCaptureMode (*capture_mode)(void); /* of the calling thread; at first: global */

    const char *(*misuse)(void);             /* the first misuse, "" if none */
    const char *(*leaks)(void);              /* what is still held, "" if nothing */
} fake_controls;

/* The file that the Makefile builds. Written once, by fake_open: threads that open contexts side by side only read it. */
static inline const char *fake_path(void)
{
    static char path[1024];
    const char *build = getenv("JG_TEST_BUILD_DIR");
    if (!path[0]) snprintf(path, sizeof path, "%s/tests/libfake_cuda.so", build && *build ? build : "build");
    return path;
}

/* Opens it, reset. Aborts if it is not there, since no test means anything then. */
static inline const fake_controls *fake_open(void)
{
    void *handle = dlopen(fake_path(), RTLD_NOW | RTLD_LOCAL);
    const fake_controls *controls = handle ? dlsym(handle, "fake_cuda_controls") : NULL;
    if (!controls) {
        fprintf(stderr, "%s; make build/tests/libfake_cuda.so\n", dlerror());
        abort();
    }
    controls->reset();
    return controls;
}

#endif
