/* Times recorded calls: see bench_replay.h. */
#include "bench_replay.h"

#include "status.h"

#include <string.h>

#define COVER_NS 20000 /* longer than a host needs to enqueue an event and a graph */

jg_status bench_clock_open(const bench_gpu *gpu, bench_clock *clock)
{
    *clock = (bench_clock){.gpu = gpu};
    RETURN_IF_ERROR(bench_gpu_make_stream(gpu, &clock->stream));
    RETURN_IF_ERROR(bench_gpu_failed(gpu, gpu->event_create(&clock->begin, CU_EVENT_DEFAULT), "cuEventCreate"));
    return bench_gpu_failed(gpu, gpu->event_create(&clock->end, CU_EVENT_DEFAULT), "cuEventCreate");
}

void bench_clock_close(bench_clock *clock)
{
    if (clock->begin) clock->gpu->event_destroy(clock->begin);
    if (clock->end) clock->gpu->event_destroy(clock->end);
    if (clock->stream) clock->gpu->stream_destroy(clock->stream);
    *clock = (bench_clock){0};
}

jg_status bench_replay_record(const bench_clock *clock, unsigned calls, bench_enqueue enqueue, void *user, bench_replay *out)
{
    const bench_gpu *g = clock->gpu;
    CUgraph graph = NULL;
    jg_status status = JG_OK;
    *out = (bench_replay){.calls = calls};
    /* Relaxed: what a peer does beside launching must not make the capture invalid where it does no harm. */
    RETURN_IF_ERROR(bench_gpu_failed(g, g->capture_begin(clock->stream, CU_STREAM_CAPTURE_MODE_RELAXED), "cuStreamBeginCapture"));
    for (unsigned i = 0; i < calls && status == JG_OK; i++) status = enqueue(user, i);
    CUresult result = g->capture_end(clock->stream, &graph);
    if (status == JG_OK && result == CUDA_SUCCESS) result = g->graph_instantiate(&out->graph, graph, 0);
    if (graph) g->graph_destroy(graph);
    if (status != JG_OK || result == CUDA_SUCCESS) return status;
    out->graph = NULL;
    return driver_error(g->driver, result, JG_ERR_UNSUPPORTED, "recording it into a graph");
}

void bench_replay_free(const bench_clock *clock, bench_replay *replay)
{
    if (replay->graph) clock->gpu->graph_exec_destroy(replay->graph);
    *replay = (bench_replay){0};
}

jg_status bench_replay_time(const bench_clock *clock, const bench_replay *replay, double *us)
{
    const bench_gpu *g = clock->gpu;
    float ms = 0;
    RETURN_IF_ERROR(bench_gpu_launch_spin(g, g->software ? 1 : COVER_NS, clock->stream));
    CUresult result = g->event_record(clock->begin, clock->stream);
    if (result == CUDA_SUCCESS) result = g->graph_launch(replay->graph, clock->stream);
    if (result == CUDA_SUCCESS) result = g->event_record(clock->end, clock->stream);
    if (result == CUDA_SUCCESS) result = g->event_synchronize(clock->end);
    if (result == CUDA_SUCCESS) result = g->event_elapsed(&ms, clock->begin, clock->end);
    *us = (double)ms * 1e3 / (replay->calls ? replay->calls : 1);
    return bench_gpu_failed(g, result, "replaying a graph");
}

unsigned bench_replay_calls(double us, double sample_us, unsigned least)
{
    double calls = us > 0 ? sample_us / us : BENCH_REPLAY_MOST;
    if (calls < least) calls = least;
    if (calls > BENCH_REPLAY_MOST) calls = BENCH_REPLAY_MOST;
    return calls < 1 ? 1 : (unsigned)calls;
}
