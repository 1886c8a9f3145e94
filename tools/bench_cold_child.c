/* One process of jitgemm-bench cold-start: see bench_cold_child.h. It does as a small pipeline would, as fast as it can, and
 * notes the time after each step; everything that only serves the report comes after the last one. */
#include "bench_cold_child.h"

#include "bench_gpu.h"
#include "bench_peer.h"
#include "bench_stats.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const jg_problem product = {.m = COLD_SIZE, .n = COLD_SIZE, .k = COLD_SIZE, .type_a = JG_F16};

/* The command line, "-" resolved. */
typedef struct settings {
    const char *kind, *driver_path, *cache_path, *nvrtc_path, *cublas_path;
} settings;

/* ---- the report as text ---- */

#define TIMES(X) X(main_ns) X(context_ns) X(open_ns) X(result_ns)
#define COUNTS(X) X(disk_entries) X(resident) X(kernels) X(launches_generic) X(launches_own) X(waits) X(peer_version)

void cold_report_format(const cold_report *r, char *text)
{
    size_t length = 0;
#define PUT(name) length += (size_t)snprintf(text + length, COLD_TEXT_BYTES - length, "%" PRId64 " ", (int64_t)r->name);
    TIMES(PUT)
    COUNTS(PUT)
#undef PUT
    snprintf(text + length, COLD_TEXT_BYTES - length, "end\n");
}

int cold_report_parse(const char *text, cold_report *r)
{
    int64_t value;
    int length;
#define TAKE(name)                                                       \
    if (sscanf(text, "%" SCNd64 " %n", &value, &length) != 1) return -1; \
    text += length;                                                      \
    *(int64_t *)&r->name = value;
    TIMES(TAKE)
    COUNTS(TAKE)
#undef TAKE
    return strcmp(text, "end\n") == 0 ? 0 : -1;
}

/* ---- the steps ---- */

static int fail(const char *what)
{
    fprintf(stderr, "jitgemm-bench: %s: %s\n", what, jg_last_error());
    return 1;
}

/* Memory as any pipeline needs it. */
static jg_status make_operands(const bench_gpu *gpu, bench_matrices *matrices, jg_operands *data)
{
    const size_t bytes = COLD_SIZE * COLD_SIZE * 2;
    const jg_status status = bench_matrices_allocate(gpu, bytes, bytes, bytes, matrices);
    *data = bench_matrices_data(matrices, NULL);
    return status;
}

static int run_library(const settings *s, const bench_gpu *gpu, cold_report *r)
{
    const jg_options options = {.device = JG_DEVICE_CUDA, .cache_path = s->cache_path, .nvrtc_path = s->nvrtc_path,
                                .driver_path = s->driver_path};
    jg_context *context;
    jg_operands data;
    bench_matrices matrices;
    jg_stats stats = {0};
    if (jg_open(&options, &context) != JG_OK) return fail("jg_open");
    r->open_ns = bench_now_ns();
    jg_status status = make_operands(gpu, &matrices, &data);
    if (status == JG_OK) status = jg_gemm(context, &product, &data);
    if (status == JG_OK) status = jg_synchronize(context, NULL);
    r->result_ns = bench_now_ns();
    if (status != JG_OK) return fail("the first product");
    jg_cache_stats(context, &stats);
    r->disk_entries = stats.disk_entries;
    r->resident = stats.resident;
    r->kernels = stats.kernels;
    r->launches_generic = stats.launches_generic;
    r->launches_own = stats.launches_own;
    r->waits = stats.waits;
    bench_matrices_free(gpu, &matrices);
    return jg_close(context) == JG_OK ? 0 : fail("jg_close");
}

static int run_peer(const settings *s, const bench_gpu *gpu, cold_report *r)
{
    bench_peer peer;
    jg_operands data;
    bench_matrices matrices;
    if (bench_peer_open(s->cublas_path, &peer) != JG_OK || bench_peer_create(&peer, NULL) != JG_OK) return fail("cuBLAS");
    r->open_ns = bench_now_ns();
    jg_status status = make_operands(gpu, &matrices, &data);
    if (status == JG_OK) status = bench_peer_gemm(&peer, &product, &data);
    if (status == JG_OK) status = bench_gpu_wait(gpu, NULL);
    r->result_ns = bench_now_ns();
    if (status != JG_OK) return fail("the first product of cuBLAS");
    r->peer_version = (uint64_t)peer.version;
    bench_peer_close(&peer);
    bench_matrices_free(gpu, &matrices);
    return 0;
}

static const char *path_of(const char *argument)
{
    return strcmp(argument, COLD_NONE) == 0 ? NULL : argument;
}

int cold_child_main(int argc, char **argv, int64_t main_ns)
{
    char text[COLD_TEXT_BYTES];
    cold_report report = {.main_ns = main_ns};
    bench_gpu gpu;
    if (argc != 7) {
        fprintf(stderr, "jitgemm-bench: %s is started by cold-start only\n", COLD_COMMAND);
        return 2;
    }
    const settings s = {argv[2], path_of(argv[3]), argv[4], path_of(argv[5]), path_of(argv[6])};
    if (bench_gpu_open(s.driver_path, &gpu) != JG_OK || bench_gpu_retain(&gpu) != JG_OK) return fail("the CUDA context");
    report.context_ns = bench_now_ns();
    const int status = strcmp(s.kind, COLD_PEER) == 0 ? run_peer(&s, &gpu, &report) : run_library(&s, &gpu, &report);
    bench_gpu_close(&gpu);
    if (status != 0) return status;
    cold_report_format(&report, text);
    fputs(text, stdout);
    return fflush(stdout) == 0 ? 0 : 1;
}
