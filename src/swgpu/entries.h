/* The driver's entry points as a table: what each needs before it does anything. */
#ifndef SWGPU_ENTRIES_H
#define SWGPU_ENTRIES_H

#include <cuda.h>

/* Newer headers rename these to versions that are not among the entry points here. */
#undef cuCtxCreate
#undef cuEventElapsedTime
#undef cuGraphInstantiate
CUresult CUDAAPI cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device);
CUresult CUDAAPI cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end);
/* cuGraphInstantiate of CUDA 11; later ones call the other. */
CUresult CUDAAPI cuGraphInstantiate_v2(CUgraphExec *exec, CUgraph graph, CUgraphNode *culprit, char *log, size_t log_bytes);
CUresult CUDAAPI cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags);

enum {
    NEEDS_INIT = 1,     /* cuInit before it */
    NEEDS_CONTEXT = 3,  /* ... and a current context */
    REPORTS_FAULT = 7,  /* ... and fails if a launch in that context has faulted */
    UNSAFE = 15,        /* ... or if a capture forbids calls that are potentially unsafe (capture.h) */
    UNSAFE_IN_LEGACY = 31, /* ... or one that works in the legacy stream */
    UNSAFE_FOR_ALL = 47,   /* UNSAFE, or if a capture forbids to wait for the whole context */
};

/* exported symbol, needs */
#define SWGPU_ENTRIES(X)                                                                                               \
    X(cuInit, 0) X(cuDriverGetVersion, 0) X(cuGetErrorName, 0) X(cuGetErrorString, 0) X(cuDeviceGetCount, NEEDS_INIT)  \
    X(cuDeviceGet, NEEDS_INIT) X(cuDeviceGetName, NEEDS_INIT) X(cuDeviceTotalMem_v2, NEEDS_INIT)                       \
    X(cuDeviceGetAttribute, NEEDS_INIT) X(cuDevicePrimaryCtxRetain, NEEDS_INIT)                                        \
    X(cuDevicePrimaryCtxRelease_v2, NEEDS_INIT) X(cuDevicePrimaryCtxGetState, NEEDS_INIT)                              \
    X(cuCtxCreate_v2, NEEDS_INIT) X(cuCtxDestroy_v2, NEEDS_INIT) X(cuCtxSetCurrent, NEEDS_INIT)                        \
    X(cuCtxGetCurrent, NEEDS_INIT) X(cuCtxPushCurrent_v2, NEEDS_INIT) X(cuCtxPopCurrent_v2, NEEDS_INIT)                \
    X(cuCtxGetDevice, NEEDS_INIT) X(cuCtxSynchronize, UNSAFE_FOR_ALL) X(cuModuleLoadDataEx, REPORTS_FAULT)             \
    X(cuModuleUnload, UNSAFE) X(cuModuleGetFunction, REPORTS_FAULT) X(cuModuleGetGlobal_v2, REPORTS_FAULT)             \
    X(cuFuncGetAttribute, REPORTS_FAULT) X(cuFuncSetAttribute, REPORTS_FAULT)                                          \
    X(cuOccupancyMaxActiveBlocksPerMultiprocessor, REPORTS_FAULT) X(cuLaunchKernel, REPORTS_FAULT)                     \
    X(cuMemAlloc_v2, UNSAFE) X(cuMemFree_v2, UNSAFE) X(cuMemGetInfo_v2, REPORTS_FAULT) X(cuMemcpy, UNSAFE_IN_LEGACY)   \
    X(cuMemcpyHtoD_v2, UNSAFE_IN_LEGACY) X(cuMemcpyDtoH_v2, UNSAFE_IN_LEGACY) X(cuMemcpyDtoD_v2, UNSAFE_IN_LEGACY)     \
    X(cuMemcpyAsync, REPORTS_FAULT) X(cuMemsetD8_v2, UNSAFE_IN_LEGACY) X(cuMemsetD32_v2, UNSAFE_IN_LEGACY)             \
    X(cuStreamCreate, REPORTS_FAULT) X(cuStreamCreateWithPriority, REPORTS_FAULT)                                      \
    X(cuStreamDestroy_v2, REPORTS_FAULT) X(cuStreamQuery, REPORTS_FAULT) X(cuStreamSynchronize, REPORTS_FAULT)         \
    X(cuStreamWaitEvent, REPORTS_FAULT) X(cuEventCreate, REPORTS_FAULT) X(cuEventRecord, REPORTS_FAULT)                \
    X(cuEventQuery, REPORTS_FAULT) X(cuEventSynchronize, REPORTS_FAULT) X(cuEventElapsedTime, REPORTS_FAULT)           \
    X(cuEventDestroy_v2, REPORTS_FAULT) X(cuStreamBeginCapture_v2, REPORTS_FAULT)                                      \
    X(cuStreamEndCapture, REPORTS_FAULT) X(cuStreamIsCapturing, REPORTS_FAULT)                                         \
    X(cuThreadExchangeStreamCaptureMode, NEEDS_INIT) X(cuGraphInstantiateWithFlags, NEEDS_INIT)                        \
    X(cuGraphInstantiate_v2, NEEDS_INIT) X(cuGraphGetNodes, NEEDS_INIT) X(cuGraphNodeGetType, NEEDS_INIT)              \
    X(cuGraphLaunch, REPORTS_FAULT) X(cuGraphExecDestroy, NEEDS_INIT) X(cuGraphDestroy, NEEDS_INIT)

typedef enum entry_id {
#define MEMBER(symbol, needs) ENTRY_##symbol,
    SWGPU_ENTRIES(MEMBER)
#undef MEMBER
    ENTRY_COUNT
} entry_id;

#endif
