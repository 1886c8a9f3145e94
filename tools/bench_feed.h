/* Keeps the library's worker compiling: sizes whose own kernels are wanted, each called twice, as the worker takes up a size at
 * its second sighting. The sizes differ from run to run, so that no cache file has their kernels. */
#ifndef JG_TOOLS_BENCH_FEED_H
#define JG_TOOLS_BENCH_FEED_H

#include "bench_run.h"
#include "bench_sizes.h"

/* Treat as opaque but for given; zero-initialise. */
typedef struct bench_feed {
    bench_run *run;
    bench_sizes sizes;
    bench_matrices matrices;
    CUstream stream;
    size_t given;             /* sizes so far */
} bench_feed;

/* What the worker is to be opened with: hardly any bound on its compiling. Beside the software GPU, which needs the processors
 * itself, it is not put last. */
jg_worker_options bench_feed_worker(const bench_run *run);

/* Allocates what the calls need. The stream is the caller's. Returns an exit status, as all of these. */
int bench_feed_open(bench_feed *f, bench_run *run, CUstream stream);

/* Calls `count` new sizes twice each. */
int bench_feed_give(bench_feed *f, size_t count);

/* Waits until the worker has kernels to make, at most a few seconds. */
int bench_feed_wait_for_work(bench_feed *f);

/* Frees memory, and so waits for the GPU. */
void bench_feed_close(bench_feed *f);

#endif
