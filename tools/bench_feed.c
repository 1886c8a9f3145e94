/* Feeds the library's worker: see bench_feed.h. */
#include "bench_feed.h"

#define LARGEST 512
#define LARGEST_SOFTWARE 128
#define WAIT_MS 5000

jg_worker_options bench_feed_worker(const bench_run *run)
{
    return (jg_worker_options){.nice = run->gpu.software ? JG_NICE_INHERIT : 0, .queue = 1024, .per_minute = 100000};
}

int bench_feed_open(bench_feed *f, bench_run *run, CUstream stream)
{
    const int64_t largest = run->gpu.software ? LARGEST_SOFTWARE : LARGEST;
    const size_t bytes = (size_t)(largest * largest) * 2; /* f16 */
    f->run = run;
    f->stream = stream;
    bench_sizes_init(&f->sizes, (uint64_t)bench_now_ns(), largest);
    if (bench_matrices_allocate(&run->gpu, bytes, bytes, bytes, &f->matrices) == JG_OK) return BENCH_EXIT_DONE;
    return bench_fail_status(run, "memory for the worker's sizes");
}

int bench_feed_give(bench_feed *f, size_t count)
{
    const jg_operands data = bench_matrices_data(&f->matrices, f->stream);
    for (size_t i = 0; i < count; i++) {
        jg_problem problem;
        if (bench_sizes_draw_rewarding(&f->sizes, &problem) != 0) return bench_fail(f->run, "no more sizes for the worker");
        for (int sighting = 0; sighting < 2; sighting++)
            if (jg_gemm(f->run->context, &problem, &data) != JG_OK) return bench_fail_status(f->run, "a size for the worker");
        f->given++;
    }
    return BENCH_EXIT_DONE;
}

int bench_feed_wait_for_work(bench_feed *f)
{
    const double begin_ms = progress_now_ms();
    const uint64_t compiles = bench_stats_now(f->run).compiles;
    while (progress_now_ms() - begin_ms < WAIT_MS && !bench_stop_requested()) {
        const jg_stats now = bench_stats_now(f->run);
        if (now.queued > 0 || now.compiles > compiles) break;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return BENCH_EXIT_DONE;
}

void bench_feed_close(bench_feed *f)
{
    bench_matrices_free(&f->run->gpu, &f->matrices);
    bench_sizes_free(&f->sizes);
    *f = (bench_feed){0};
}
