/* The few calls of the CUDA driver that a pipeline's author makes himself, since jitgemm leaves streams and graphs to its host:
 * a context that is current before jg_open, so that jitgemm binds it, streams, copies that do not block, pinned memory, graphs.
 *
 * The driver is opened as jitgemm does: $JITGEMM_DRIVER, else libcuda.so.1; "swgpu" is the software GPU beside libjitgemm.
 * Without a device, or with "cpu", there are no streams and graphs: copies are done at once, and pinned memory is plain memory.
 *
 * Any call that fails ends the program with its text, but where another thing is said. Used by one thread. */
#ifndef PIPELINE_GPU_H
#define PIPELINE_GPU_H

#include <cuda.h>
#include <stddef.h>

typedef struct gpu_calls gpu_calls;

typedef struct gpu {
    int is_cuda;          /* a GPU, real or in software; else all of it is on the host */
    int is_software;
    int sms;              /* multiprocessors, of the green context if there is one; 0 on the host */
    char name[96];        /* e.g. "NVIDIA H200", "cpu" */
    gpu_calls *calls;
    CUdevice device;
    CUcontext context;
    void *green;          /* of a part of the multiprocessors; null: the whole device */
} gpu;

/* Makes the device's primary context current, or if sms is not 0 a green context of at least so many multiprocessors, in the
 * driver's own steps (CUDA 12.4 and later). */
void gpu_open(gpu *g, int sms);
void gpu_close(gpu *g);

CUstream gpu_make_stream(const gpu *g); /* does not block, and is not blocked by, the default stream; null on the host */
void gpu_destroy_stream(const gpu *g, CUstream stream);
void gpu_synchronize(const gpu *g, CUstream stream);

/* Pinned host memory, which a copy reads while the host goes on; jg_alloc's JG_HOST_MEMORY is not pinned. */
void *gpu_allocate_pinned(const gpu *g, size_t bytes);
void gpu_free_pinned(const gpu *g, void *memory);

/* Enqueues a copy between pinned and device memory, in either direction. */
void gpu_copy(const gpu *g, void *to, const void *from, size_t bytes, CUstream stream);

/* What is enqueued on the stream between the two becomes a graph instead. gpu_end_capture returns null where that has failed. */
void gpu_begin_capture(const gpu *g, CUstream stream);
CUgraphExec gpu_end_capture(const gpu *g, CUstream stream);
void gpu_launch(const gpu *g, CUgraphExec graph, CUstream stream);
void gpu_destroy_graph(const gpu *g, CUgraphExec graph); /* null is allowed; it must not be running */

#endif
