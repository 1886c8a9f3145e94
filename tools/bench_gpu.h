/* The GPU as jitgemm-bench itself uses it, beside the library: streams, events, memory, and two kernels of its own.
 *
 * It works through the library's table of driver calls (src/driver.h) and adds the few that only a benchmark needs. All
 * functions that fail leave a text for jg_last_error. */
#ifndef JG_TOOLS_BENCH_GPU_H
#define JG_TOOLS_BENCH_GPU_H

#include "driver.h"

/* Headers from CUDA 13 on give this name to a version that older drivers lack. */
#undef cuEventElapsedTime

/* Every kernel of the library takes so many bytes by value, and the tiny kernel too; there are never more than the most. */
#define BENCH_ARGUMENT_BYTES 512
size_t bench_gpu_argument_bytes(void);

/* member, exported symbol, parameters */
#define BENCH_GPU_FUNCTIONS(X)                                        \
    X(device_name, cuDeviceGetName, (char *, int, CUdevice))          \
    X(stream_create, cuStreamCreate, (CUstream *, unsigned))          \
    X(stream_destroy, cuStreamDestroy_v2, (CUstream))                 \
    X(event_create, cuEventCreate, (CUevent *, unsigned))             \
    X(event_record, cuEventRecord, (CUevent, CUstream))               \
    X(event_synchronize, cuEventSynchronize, (CUevent))               \
    X(event_destroy, cuEventDestroy_v2, (CUevent))                    \
    X(event_elapsed, cuEventElapsedTime, (float *, CUevent, CUevent)) \
    X(memory_set, cuMemsetD8_v2, (CUdeviceptr, unsigned char, size_t)) \
    X(memory_copy_async, cuMemcpyAsync, (CUdeviceptr, CUdeviceptr, size_t, CUstream)) \
    X(capture_begin, cuStreamBeginCapture_v2, (CUstream, CUstreamCaptureMode)) \
    X(capture_end, cuStreamEndCapture, (CUstream, CUgraph *))         \
    X(graph_instantiate, cuGraphInstantiateWithFlags, (CUgraphExec *, CUgraph, unsigned long long)) \
    X(graph_launch, cuGraphLaunch, (CUgraphExec, CUstream))           \
    X(graph_destroy, cuGraphDestroy, (CUgraph))                       \
    X(graph_exec_destroy, cuGraphExecDestroy, (CUgraphExec))

typedef struct bench_gpu {
    driver *driver;
    CUdevice ordinal;
    CUcontext context;       /* device 0's primary one, or a green one in it; null until bench_gpu_start */
    void *green;             /* CUgreenCtx; null: all multiprocessors */
    int narrow_sms;          /* how many it has; 0: all */
    CUmodule module;
    CUfunction tiny, spin;
    int software, arch, sm_count;
    int l2_bytes;            /* 0: unknown */
    char name[128];
    char pci_bus_id[32];     /* "" if unknown */
#define MEMBER(name, symbol, parameters) CUresult(CUDAAPI *name) parameters;
    BENCH_GPU_FUNCTIONS(MEMBER)
#undef MEMBER
} bench_gpu;

/* Opens the driver (path null: as the library would) and asks what device 0 is; makes no CUDA context. */
jg_status bench_gpu_open(const char *path, bench_gpu *gpu);

/* Retains the primary context and makes it current on this thread, nothing else. */
jg_status bench_gpu_retain(bench_gpu *gpu);

/* The same, and loads the two kernels and runs each once, so that nothing of that is left for what is timed. */
jg_status bench_gpu_start(bench_gpu *gpu);

/* The same on `sms` multiprocessors only, in a green context: the streams of bench_gpu_make_stream run there. Needs a driver for
 * CUDA 12.4. gpu->narrow_sms: how many it is, since they come in groups. Error: UNSUPPORTED, with the reason, or as
 * bench_gpu_start; nothing is held then. */
jg_status bench_gpu_start_narrow(bench_gpu *gpu, int sms);

/* Gives all of it back; what was only opened, or not at all, is allowed. */
void bench_gpu_close(bench_gpu *gpu);

/* Makes the context current on a further thread, and back. */
jg_status bench_gpu_enter(const bench_gpu *gpu);
void bench_gpu_leave(const bench_gpu *gpu);

/* A stream that does not wait for the default one. */
jg_status bench_gpu_make_stream(const bench_gpu *gpu, CUstream *stream);
jg_status bench_gpu_wait(const bench_gpu *gpu, CUstream stream);

/* An event whose waiting does not keep a processor busy. */
jg_status bench_gpu_make_event(const bench_gpu *gpu, CUevent *event);

/* An error of the driver as a status, with a text. */
jg_status bench_gpu_failed(const bench_gpu *gpu, CUresult result, const char *what);

/* The three matrices of a product, full of zeros. */
typedef struct bench_matrices {
    CUdeviceptr a, b, c;
} bench_matrices;
jg_status bench_matrices_allocate(const bench_gpu *gpu, size_t a_bytes, size_t b_bytes, size_t c_bytes, bench_matrices *out);
void bench_matrices_free(const bench_gpu *gpu, bench_matrices *m); /* none, or some, is allowed */
jg_operands bench_matrices_data(const bench_matrices *m, CUstream stream);

/* How the tiny kernel is launched: as a kernel that it is compared with. */
typedef struct bench_shape {
    unsigned grid_x, grid_y, threads, shared_bytes;
} bench_shape;

/* Allows the tiny kernel as much shared memory as the shape needs. */
jg_status bench_gpu_allow_shape(const bench_gpu *gpu, const bench_shape *shape);

/* Launches the kernel that does nothing. Straight to the driver: it is what is timed. */
static inline CUresult bench_gpu_launch_tiny(const bench_gpu *gpu, const bench_shape *shape, CUstream stream, void *argument)
{
    void *parameters[] = {argument};
    return gpu->driver->launch(gpu->tiny, shape->grid_x, shape->grid_y, 1, shape->threads, 1, 1, shape->shared_bytes, stream,
                               parameters, NULL);
}

/* Launches a kernel that keeps one multiprocessor busy for `ns` nanoseconds. */
jg_status bench_gpu_launch_spin(const bench_gpu *gpu, uint64_t ns, CUstream stream);

#endif
