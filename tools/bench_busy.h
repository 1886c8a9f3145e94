/* Keeps the GPU busy: a stream of its own on which one long kernel runs and the next one waits, all the time.
 *
 * So whatever waits for the device to be idle shows in the times. A thread of its own launches; it sleeps in between. */
#ifndef JG_TOOLS_BENCH_BUSY_H
#define JG_TOOLS_BENCH_BUSY_H

#include "bench_gpu.h"

#include <pthread.h>
#include <stdatomic.h>

/* Treat as opaque but for kernels; zero-initialise. */
typedef struct bench_busy {
    const bench_gpu *gpu;
    uint64_t ns;
    CUstream stream;
    CUevent events[2];
    pthread_t thread;
    int running;
    atomic_int stop;
    atomic_uint_fast64_t kernels; /* launched so far */
    jg_status status;             /* of the thread; valid after bench_busy_stop */
    char error[512];
} bench_busy;

/* Starts, and returns once the GPU is busy. ms = 0: does nothing. */
jg_status bench_busy_start(bench_busy *b, const bench_gpu *gpu, long ms);

/* Ends it, waits for its kernels, and returns what went wrong on its thread. One that was not started is allowed. */
jg_status bench_busy_stop(bench_busy *b);

#endif
