/* A part of a GPU as a GPU of its own: a green context, which has so many multiprocessors and no more (CUDA 12.4 and later). */
#ifndef JG_TOOLS_BENCH_GREEN_H
#define JG_TOOLS_BENCH_GREEN_H

#include "bench_gpu.h"

/* Makes a green context of `sms` multiprocessors, or of the next number that the driver gives out together, in device 0,
 * whose primary context must be retained. Sets gpu->green and gpu->narrow_sms. *context: to be made current.
 * Error: UNSUPPORTED, with the reason. */
jg_status bench_green_open(bench_gpu *gpu, int sms, CUcontext *context);
jg_status bench_green_make_stream(const bench_gpu *gpu, CUstream *stream);
void bench_green_close(bench_gpu *gpu); /* none is allowed */

#endif
