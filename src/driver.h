/* The CUDA driver API through dlopen: the one file that opens it. Other files call through this table, so the
 * library links no driver and starts on a machine without one. */
#ifndef JG_DRIVER_H
#define JG_DRIVER_H

#include "jitgemm.h"
#include "swgpu/swgpu.h"

#include <cuda.h>

/* member, exported symbol, parameters. The symbols are the versions that drivers since CUDA 11 export. */
#define DRIVER_FUNCTIONS(X)                                                                                        \
    X(init, cuInit, (unsigned))                                                                                    \
    X(driver_version, cuDriverGetVersion, (int *))                                                                 \
    X(error_name, cuGetErrorName, (CUresult, const char **))                                                       \
    X(error_string, cuGetErrorString, (CUresult, const char **))                                                   \
    X(device_count, cuDeviceGetCount, (int *))                                                                     \
    X(device_get, cuDeviceGet, (CUdevice *, int))                                                                  \
    X(device_attribute, cuDeviceGetAttribute, (int *, CUdevice_attribute, CUdevice))                               \
    X(primary_retain, cuDevicePrimaryCtxRetain, (CUcontext *, CUdevice))                                           \
    X(primary_release, cuDevicePrimaryCtxRelease_v2, (CUdevice))                                                   \
    X(context_current, cuCtxGetCurrent, (CUcontext *))                                                             \
    X(context_push, cuCtxPushCurrent_v2, (CUcontext))                                                              \
    X(context_pop, cuCtxPopCurrent_v2, (CUcontext *))                                                              \
    X(context_device, cuCtxGetDevice, (CUdevice *))                                                                \
    X(module_load, cuModuleLoadDataEx, (CUmodule *, const void *, unsigned, CUjit_option *, void **))              \
    X(module_unload, cuModuleUnload, (CUmodule))                                                                   \
    X(module_function, cuModuleGetFunction, (CUfunction *, CUmodule, const char *))                                \
    X(function_get, cuFuncGetAttribute, (int *, CUfunction_attribute, CUfunction))                                 \
    X(function_set, cuFuncSetAttribute, (CUfunction, CUfunction_attribute, int))                                   \
    X(launch, cuLaunchKernel,                                                                                      \
      (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void **, void **)) \
    X(memory_allocate, cuMemAlloc_v2, (CUdeviceptr *, size_t))                                                     \
    X(memory_free, cuMemFree_v2, (CUdeviceptr))                                                                    \
    X(memory_copy, cuMemcpy, (CUdeviceptr, CUdeviceptr, size_t))                                                   \
    X(stream_synchronize, cuStreamSynchronize, (CUstream))                                                         \
    X(stream_capturing, cuStreamIsCapturing, (CUstream, CUstreamCaptureStatus *))                                  \
    X(capture_mode, cuThreadExchangeStreamCaptureMode, (CUstreamCaptureMode *))

/* What only the software GPU has (swgpu/swgpu.h); null in a real driver. */
#define SWGPU_FUNCTIONS(X)                                              \
    X(describe, swgpuDescribeLaunch, int, (const swgpu_operand *, unsigned, uint64_t)) \
    X(counters, swgpuCounters, unsigned, (uint64_t *, unsigned))

/* As a driver path: libjitgemm-swgpu.so, which lies beside the library, the program, or in the program's ../lib. */
#define DRIVER_SWGPU "swgpu"

typedef struct driver {
    void *handle;
    int version; /* e.g. 13000 */
#define MEMBER(name, symbol, parameters) CUresult(CUDAAPI *name) parameters;
    DRIVER_FUNCTIONS(MEMBER)
#undef MEMBER
#define MEMBER(name, symbol, result, parameters) result(*name) parameters;
    SWGPU_FUNCTIONS(MEMBER)
#undef MEMBER
} driver;

/* Opens the driver library at `path`, or the software GPU, and calls cuInit. It stays loaded for the life of the process.
 * Errors: NO_DRIVER (missing, too old, a stub, or lacking a function: the text says which), NO_DEVICE (cuInit found none),
 * DEVICE (cuInit failed otherwise: something is there and broken). */
jg_status driver_open(const char *path, driver **out);
void driver_close(driver *d);

/* Turns a driver error into a status and a text: "WHAT: CUDA_ERROR_NAME (description)". Sticky errors become
 * DEVICE_LOST, out of memory NO_MEMORY, all others `otherwise`. */
jg_status driver_error(const driver *d, CUresult result, jg_status otherwise, const char *what);

#endif
