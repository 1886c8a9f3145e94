/* An arena for contests on the software GPU: its kernels are the library's, made by NVRTC; the peers are functions here, which
 * compute on the host. Times are made up, so that every number of a row can be computed by hand: each graph takes as long as the
 * calls that it was recorded from say. */
#ifndef JG_TESTS_CONTEST_FIXTURE_H
#define JG_TESTS_CONTEST_FIXTURE_H

#include "bench_gpu_fixture.h"

#include "reference.h"
#include "scratch.h"
#include "tools/bench_contest.h"

/* What a call takes, in us. Of cuBLASLt's choices the first is not the best; the last one fails while it is recorded. */
enum { OWN_US = 4, GENERIC_US = 10, CUBLAS_US = 5, CHOICES = 4 };
static const int choice_us[CHOICES] = {8, 6, 7, 1};

static bench_arena arena;
static bench_gpu hooked;   /* the software GPU, but that it is taken for a real one, and for the clock */
static char folder[4096];
static char no_nvrtc[512]; /* why there is none; "": there is */

/* What the peers are to do, and what they saw. */
static struct {
    int refuses, wrong, fails_in_capture, waits_in_capture; /* cuBLAS */
    int no_choice, lt_refuses;                              /* cuBLASLt */
    size_t calls;                                           /* of cuBLAS, recorded or not */
    const void *seen_c[64];                                 /* different C of them */
    size_t seen;
    int best;                                               /* cuBLASLt's choice that was called last */
} peer;

/* ---- times ---- */

static struct {
    struct { CUgraphExec exec; double us; int us_of_call; } graphs[256];
    size_t count;
    double recorded_us;      /* of the capture under way, from peers */
    int call_us;
    double last_us;          /* of the graph that ran last */
    double scale;            /* all calls are so many times as long */
    int own_graphs;          /* of ours and one call, in this contest */
    int launched[256];       /* us of a call of each graph that was launched */
    size_t launches;
    CUresult (*nodes)(CUgraph, CUgraphNode *, size_t *);
} times;

static CUresult CUDAAPI begin_capture(CUstream stream, CUstreamCaptureMode mode)
{
    times.recorded_us = 0;
    return gpu.capture_begin(stream, mode);
}

/* What has no peers' time is ours. A contestant's first graph is of one call, and the own kernel's comes first. */
static CUresult CUDAAPI instantiate(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
    size_t nodes = 0;
    const CUresult result = gpu.graph_instantiate(exec, graph, flags);
    if (result != CUDA_SUCCESS || times.nodes(graph, NULL, &nodes) != CUDA_SUCCESS) return result;
    if (times.recorded_us == 0 && nodes == 1) times.own_graphs++;
    const int ours_us = times.recorded_us > 0 ? 0 : times.own_graphs > 1 ? GENERIC_US : OWN_US;
    const size_t i = times.count++ % COUNT(times.graphs);
    times.graphs[i].exec = *exec;
    times.graphs[i].us_of_call = ours_us ? ours_us : times.call_us;
    times.graphs[i].us = ours_us ? ours_us * (double)nodes : times.recorded_us;
    return result;
}

static CUresult CUDAAPI launch_graph(CUgraphExec exec, CUstream stream)
{
    for (size_t i = 0; i < COUNT(times.graphs); i++) {
        if (times.graphs[i].exec != exec) continue;
        times.last_us = times.graphs[i].us;
        times.launched[times.launches++ % COUNT(times.launched)] = times.graphs[i].us_of_call;
    }
    return gpu.graph_launch(exec, stream);
}

static CUresult CUDAAPI destroy_graph(CUgraphExec exec)
{
    for (size_t i = 0; i < COUNT(times.graphs); i++)
        if (times.graphs[i].exec == exec) times.graphs[i].exec = NULL;
    return gpu.graph_exec_destroy(exec);
}

static CUresult CUDAAPI made_up_time(float *ms, CUevent from, CUevent to)
{
    (void)from, (void)to;
    *ms = (float)(times.last_us * times.scale * 1e-3);
    return CUDA_SUCCESS;
}

/* ---- peers ---- */

static int is_captured(void)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    gpu.driver->stream_capturing(arena.clock.stream, &status);
    return status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

/* A call that is recorded is a kernel that does nothing, and so many us. */
static int record_call(int us)
{
    char argument[BENCH_ARGUMENT_BYTES] = {0};
    times.recorded_us += us;
    times.call_us = us;
    return bench_gpu_launch_tiny(&gpu, &(bench_shape){1, 1, 1, 0}, arena.clock.stream, argument) == CUDA_SUCCESS ? 0 : 13;
}

static jg_type type_of(int cuda_type)
{
    return cuda_type == 0 ? JG_F32 : cuda_type == 2 ? JG_F16 : JG_BF16;
}

/* Row-major and dense: what products here are. `off` is added to each element. */
static void multiply(int m, int n, int k, const void *a, const void *b, void *c, jg_type type, double off)
{
    const size_t size = type == JG_F32 ? 4 : 2;
    char *x = malloc((size_t)(m * k) * size), *y = malloc((size_t)(k * n) * size), *z = malloc((size_t)(m * n) * size);
    if (!x || !y || !z) abort();
    copy_from_device(x, a, (size_t)(m * k) * size);
    copy_from_device(y, b, (size_t)(k * n) * size);
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            double sum = off;
            for (int s = 0; s < k; s++) {
                uint32_t p = 0, q = 0;
                memcpy(&p, x + (size_t)(i * k + s) * size, size);
                memcpy(&q, y + (size_t)(s * n + j) * size, size);
                sum += reference_decode(type, p) * reference_decode(type, q);
            }
            const uint32_t bits = reference_encode(type, sum);
            memcpy(z + (size_t)(i * n + j) * size, &bits, size);
        }
    copy_to_device(c, z, (size_t)(m * n) * size);
    free(x);
    free(y);
    free(z);
}

static int cublas_gemm(void *handle, int op_b, int op_a, int n, int m, int k, const void *alpha, const void *b, int type_b,
                       int ldb, const void *a, int type_a, int lda, const void *beta, void *c, int type_c, int ldc, int compute,
                       int choice)
{
    (void)handle, (void)op_b, (void)op_a, (void)alpha, (void)type_b, (void)beta, (void)type_c, (void)compute, (void)choice;
    if (lda != k || ldb != n || ldc != n) return 7;
    size_t known = 0;
    while (known < peer.seen && peer.seen_c[known] != c) known++;
    if (known == peer.seen && peer.seen < COUNT(peer.seen_c)) peer.seen_c[peer.seen++] = c;
    peer.calls++;
    if (peer.refuses) return 15;
    if (!is_captured()) {
        multiply(m, n, k, a, b, c, type_of(type_a), peer.wrong ? 0.5 : 0);
        return 0;
    }
    if (peer.fails_in_capture) return 14;
    if (peer.waits_in_capture) {
        gpu.driver->stream_synchronize(arena.clock.stream);
        return 0;
    }
    return record_call(CUBLAS_US);
}

static int lt_matmul(void *handle, void *operation, const void *alpha, const void *b, void *layout_b, const void *a,
                     void *layout_a, const void *beta, const void *c, void *layout_c, void *d, void *layout_d,
                     const void *algorithm, void *workspace, size_t bytes, void *stream)
{
    (void)handle, (void)operation, (void)alpha, (void)layout_b, (void)layout_a, (void)beta, (void)c, (void)layout_c;
    (void)layout_d, (void)workspace, (void)bytes, (void)stream;
    const problem *p = &arena.lt.product;
    const uint64_t which = *(const uint64_t *)algorithm;
    if (peer.lt_refuses) return 15;
    if (!is_captured()) {
        multiply((int)p->m, (int)p->n, (int)p->k, a, b, d, (jg_type)p->type_a, 0);
        return 0;
    }
    peer.best = (int)which;
    return which == CHOICES - 1 ? 14 : record_call(choice_us[which]);
}

static int make_descriptor(void **out)
{
    static int one;
    *out = &one;
    return 0;
}

static int make_operation(void **out, int compute, int type)
{
    (void)compute, (void)type;
    return make_descriptor(out);
}

static int make_layout(void **out, int type, uint64_t rows, uint64_t columns, int64_t ld)
{
    (void)type, (void)rows, (void)columns, (void)ld;
    return make_descriptor(out);
}

static int set_attribute(void *descriptor, int attribute, const void *value, size_t bytes)
{
    (void)descriptor, (void)attribute, (void)value, (void)bytes;
    return 0;
}

static int drop_descriptor(void *descriptor)
{
    (void)descriptor;
    return 0;
}

static int ask(void *handle, void *operation, void *a, void *b, void *c, void *d, void *preference, int most,
               bench_lt_choice *out, int *count)
{
    (void)handle, (void)operation, (void)a, (void)b, (void)c, (void)d, (void)preference, (void)most;
    *count = peer.no_choice ? 0 : CHOICES;
    for (int i = 0; i < *count; i++) out[i] = (bench_lt_choice){.algorithm = {(uint64_t)i}};
    return 0;
}

/* ---- the arena ---- */

static inline int make_context(void)
{
    const jg_problem smallest = {.m = 8, .n = 8, .k = 8, .type_a = JG_F32};
    jg_plan *plan = NULL;
    const jg_options options = {.device = JG_DEVICE_CUDA, .compile = JG_COMPILE_WAIT, .resident = JG_RESIDENT_NONE,
                                .prewarm = JG_PREWARM_NO_MET, .cache_path = scratch_path(folder, "kernels.db"),
                                .factory_path = "", .driver_path = swgpu_path()};
    if (jg_open(&options, &arena.context) != JG_OK) return -1;
    const jg_status status = jg_plan_create(arena.context, &smallest, &plan);
    jg_plan_destroy(plan);
    if (status == JG_ERR_NO_NVRTC) snprintf(no_nvrtc, sizeof no_nvrtc, "no NVRTC: %.400s", jg_last_error());
    return status == JG_OK || status == JG_ERR_NO_NVRTC ? 0 : -1;
}

static inline int open_arena(void **state)
{
    scratch_make(folder);
    if (open_swgpu(state) != 0) return -1;
    hooked = gpu;
    hooked.software = 0;
    hooked.event_elapsed = made_up_time;
    hooked.capture_begin = begin_capture;
    hooked.graph_instantiate = instantiate;
    hooked.graph_launch = launch_graph;
    hooked.graph_exec_destroy = destroy_graph;
    *(void **)&times.nodes = dlsym(gpu.driver->handle, "cuGraphGetNodes");
    if (!times.nodes || make_context() != 0 || bench_clock_open(&hooked, &arena.clock) != JG_OK) {
        print_error("%s\n", jg_last_error());
        return -1;
    }
    return bench_pool_open(&hooked, 1 << 20, 1 << 20, 1 << 20, &arena.pool) == JG_OK ? 0 : -1;
}

static inline int close_arena(void **state)
{
    bench_pool_close(&arena.pool);
    bench_clock_close(&arena.clock);
    const int left = jg_close(arena.context) != JG_OK;
    const int status = close_swgpu(state);
    scratch_remove(folder);
    return left ? -1 : status;
}

/* Before each test: both peers, who do all right, and no ceilings. */
static inline int reset_arena(void **state)
{
    (void)state;
    static int handle;
    memset(&peer, 0, sizeof peer);
    times.own_graphs = 0;
    times.launches = 0;
    times.scale = 1;
    arena.gpu = &hooked;
    arena.peer = (bench_peer){.handle = &handle, .stream = arena.clock.stream, .stream_is_set = 1, .gemm = cublas_gemm};
    arena.lt = (bench_lt){.handle = &handle, .operation_create = make_operation, .operation_destroy = drop_descriptor,
                          .operation_set = set_attribute, .layout_create = make_layout, .layout_destroy = drop_descriptor,
                          .layout_set = set_attribute, .preference_create = make_descriptor,
                          .preference_destroy = drop_descriptor, .preference_set = set_attribute, .heuristic = ask,
                          .matmul = lt_matmul};
    arena.has_peer = arena.has_lt = 1;
    arena.ceilings.count = 0;
    arena.rounds = 5;
    arena.sample_us = 20 * OWN_US;
    arena.generic = 0;
    arena.pool.types[0] = JG_DEFAULT_TYPE; /* fill it anew: a test may have changed it */
    return 0;
}

static inline void need_nvrtc(void)
{
    if (!no_nvrtc[0]) return;
    print_message("SKIP %s\n", no_nvrtc);
    skip();
}

#endif
