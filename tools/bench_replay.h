/* GPU times of enqueued work: calls in, microseconds a call out.
 *
 * Calls are recorded into a graph, one after another on a stream, and the graph's replay lies between two events. So neither the
 * host's part of a call nor the launch queue is in the time, whoever the call belongs to; what the GPU needs from one kernel of a
 * graph to the next is. A short kernel keeps the GPU busy while the replay is enqueued, or its launch would be in the time. */
#ifndef JG_TOOLS_BENCH_REPLAY_H
#define JG_TOOLS_BENCH_REPLAY_H

#include "bench_gpu.h"

/* What times: a stream and two events. Zero-initialise. */
typedef struct bench_clock {
    const bench_gpu *gpu;
    CUstream stream;
    CUevent begin, end;
} bench_clock;

jg_status bench_clock_open(const bench_gpu *gpu, bench_clock *clock);
void bench_clock_close(bench_clock *clock);

/* Enqueues call number `index` on the clock's stream. */
typedef jg_status (*bench_enqueue)(void *user, unsigned index);

/* A recorded graph. Zero-initialise. */
typedef struct bench_replay {
    CUgraphExec graph;
    unsigned calls;
} bench_replay;

/* Records calls 0 to calls - 1. A call's own failure is returned as it is; a call that cannot be recorded is UNSUPPORTED. */
jg_status bench_replay_record(const bench_clock *clock, unsigned calls, bench_enqueue enqueue, void *user, bench_replay *out);
void bench_replay_free(const bench_clock *clock, bench_replay *replay);

/* Replays it once and waits. *us: of a call. */
jg_status bench_replay_time(const bench_clock *clock, const bench_replay *replay, double *us);

/* How many calls of `us` each make a replay of `sample_us`; at least `least`, at most BENCH_REPLAY_MOST. */
#define BENCH_REPLAY_MOST 4096
unsigned bench_replay_calls(double us, double sample_us, unsigned least);

#endif
