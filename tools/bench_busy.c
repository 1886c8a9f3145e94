/* The thread that keeps the GPU busy: see bench_busy.h. */
#include "bench_busy.h"

#include "status.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* Launches the next kernel, then waits for the one before it: one runs and one is queued. */
static jg_status keep_busy(bench_busy *b)
{
    const bench_gpu *gpu = b->gpu;
    for (uint64_t i = 0; !atomic_load(&b->stop); i++) {
        RETURN_IF_ERROR(bench_gpu_launch_spin(gpu, b->ns, b->stream));
        CUresult result = gpu->event_record(b->events[i % 2], b->stream);
        if (result == CUDA_SUCCESS && i > 0) result = gpu->event_synchronize(b->events[(i - 1) % 2]);
        if (result != CUDA_SUCCESS) return driver_error(gpu->driver, result, JG_ERR_DEVICE, "the stream that keeps the GPU busy");
        atomic_fetch_add(&b->kernels, 1);
    }
    return bench_gpu_wait(gpu, b->stream);
}

static void *busy_main(void *user)
{
    bench_busy *b = user;
    b->status = bench_gpu_enter(b->gpu);
    if (b->status == JG_OK) {
        b->status = keep_busy(b);
        bench_gpu_leave(b->gpu);
    }
    if (b->status != JG_OK) snprintf(b->error, sizeof b->error, "%s", jg_last_error());
    atomic_store(&b->stop, 1);
    return NULL;
}

jg_status bench_busy_start(bench_busy *b, const bench_gpu *gpu, long ms)
{
    memset(b, 0, sizeof *b);
    if (ms == 0) return JG_OK;
    b->gpu = gpu;
    b->ns = (uint64_t)ms * 1000000;
    RETURN_IF_ERROR(bench_gpu_make_stream(gpu, &b->stream));
    for (int i = 0; i < 2; i++) RETURN_IF_ERROR(bench_gpu_make_event(gpu, &b->events[i]));
    if (pthread_create(&b->thread, NULL, busy_main, b) != 0)
        return status_set(JG_ERR_NO_MEMORY, "no thread can be started to keep the GPU busy");
    b->running = 1;
    while (!atomic_load(&b->kernels) && !atomic_load(&b->stop)) nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    return JG_OK;
}

jg_status bench_busy_stop(bench_busy *b)
{
    if (!b->gpu) return JG_OK;
    if (b->running) {
        atomic_store(&b->stop, 1);
        pthread_join(b->thread, NULL);
        b->running = 0;
    }
    for (int i = 0; i < 2; i++)
        if (b->events[i]) b->gpu->event_destroy(b->events[i]);
    if (b->stream) b->gpu->stream_destroy(b->stream);
    b->gpu = NULL;
    return b->status == JG_OK ? JG_OK : status_set(b->status, "%s", b->error);
}
