#include "on_gpu.h"

#include "context.h"
#include "on_device.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#define MAX_FAILURES_SHOWN 20

jg_context *on_gpu_context;
void *on_gpu_arena;
size_t on_gpu_stride = 1;
static char why_not[512];
static long products, failures, failures_before;
static double worst;
static uint64_t compiled, from_file;

static void print_log(void *user, jg_log_level level, const char *text)
{
    (void)user;
    if (level <= JG_LOG_WARNING) printf("# %s\n", text);
}

static jg_status open_context(void)
{
    const jg_options options = {.device = JG_DEVICE_CUDA, .compile = JG_COMPILE_WAIT, .log = print_log,
                                .log_level = JG_LOG_WARNING, .memory_max_kernels = 100000};
    const jg_status status = jg_open(&options, &on_gpu_context);
    return status == JG_OK ? jg_alloc(on_gpu_context, JG_DEVICE_MEMORY, ON_GPU_ARENA_BYTES, &on_gpu_arena) : status;
}

int on_gpu_open(void **state)
{
    (void)state;
    const jg_problem tiny = {.m = 1, .n = 1, .k = 1};
    if (getenv("JG_TEST_STRIDE")) on_gpu_stride = strtoul(getenv("JG_TEST_STRIDE"), NULL, 10);
    if (on_gpu_stride == 0) return -1;
    if (open_context() != JG_OK || jg_prewarm(on_gpu_context, &tiny, 1, NULL, NULL) == JG_ERR_NO_NVRTC) {
        snprintf(why_not, sizeof why_not, "%s", jg_last_error());
        jg_close(on_gpu_context);
        on_gpu_context = NULL;
        return 0;
    }
    printf("# %s, sm_%d\n", on_gpu_is_software() ? "software GPU" : "GPU", on_gpu_architecture());
    reference_threads((int)sysconf(_SC_NPROCESSORS_ONLN));
    return 0;
}

static void take_counts(void)
{
    jg_stats stats;
    jg_cache_stats(on_gpu_context, &stats);
    compiled += stats.compiles;
    from_file += stats.disk_hits;
}

int on_gpu_close(void **state)
{
    (void)state;
    if (!on_gpu_context) return 0;
    take_counts();
    printf("# %ld products, worst |C-R| / bound %.3f; %llu kernels compiled, %llu from the cache file\n", products, worst,
           (unsigned long long)compiled, (unsigned long long)from_file);
    jg_free(on_gpu_context, JG_DEVICE_MEMORY, on_gpu_arena);
    return jg_close(on_gpu_context) == JG_OK ? 0 : -1;
}

void on_gpu_need(void)
{
    failures_before = failures;
    if (on_gpu_context) return;
    print_message("SKIP no GPU or no compiler: %s\n", why_not);
    skip();
}

void on_gpu_need_modes(void)
{
    on_gpu_need();
    if (on_gpu_architecture() > 75) return;
    print_message("SKIP sm_75 has no tensor cores for these modes\n");
    skip();
}

void on_gpu_verdict(void)
{
    assert_int_equal(failures - failures_before, 0);
}

int on_gpu_is_software(void)
{
    return context_is_software(on_gpu_context);
}

int on_gpu_architecture(void)
{
    return on_gpu_context->device.limits.arch->number;
}

void on_gpu_complain(const jg_problem *p, const char *format, ...)
{
    char text[JG_PROBLEM_TEXT_BYTES] = "?", reason[512];
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    jg_problem_format(p, text, sizeof text, NULL);
    if (failures++ < MAX_FAILURES_SHOWN) printf("FAIL %s: %s\n", text, reason);
}

/* After an error that costs the device's context, in a fresh one, so that one bad kernel does not hide all others. */
static void open_again(void)
{
    take_counts();
    jg_close(on_gpu_context);
    on_gpu_context = NULL;
    if (open_context() != JG_OK) fail_msg("cannot open the device again: %s", jg_last_error());
}

int on_gpu_must(const jg_problem *p, jg_status status)
{
    if (status == JG_OK) return 1;
    on_gpu_complain(p, "%s: %s", jg_status_name(status), jg_last_error());
    if (jg_status_is_fatal(status)) open_again();
    return 0;
}

void on_gpu_count(void)
{
    products++;
}

int on_gpu_run_on(reference *ref, const jg_operands *data)
{
    const jg_operands at_c = {.c = data->c};
    jg_status status = jg_gemm(on_gpu_context, &ref->problem, data);
    if (status == JG_OK) status = jg_synchronize(on_gpu_context, data->stream);
    if (status == JG_OK) status = on_device_download(on_gpu_context, &at_c, ref, ref->c.block);
    on_gpu_count();
    return on_gpu_must(&ref->problem, status);
}

int on_gpu_run(reference *ref, float alpha, float beta)
{
    jg_operands data;
    return on_gpu_must(&ref->problem,
                       on_device_upload(on_gpu_context, on_gpu_arena, ON_GPU_ARENA_BYTES, ref, &alpha, &beta, &data)) &&
           on_gpu_run_on(ref, &data);
}

void on_gpu_judge(const reference *ref, const char *what, float alpha, float beta, int exact)
{
    const reference_result r = reference_check(ref, alpha, beta);
    if (r.worst > worst) worst = r.worst;
    if (r.failures || r.stray || (exact && r.inexact))
        on_gpu_complain(&ref->problem,
                        "%s, alpha %g beta %g: %lld of %lld over the bound (worst %.3g x), %lld inexact, %lld stray bytes; at "
                        "item %lld (%lld, %lld): got %.9g, expected %.9g",
                        what, (double)alpha, (double)beta, (long long)r.failures, (long long)r.checked, r.worst,
                        (long long)r.inexact, (long long)r.stray, (long long)r.item, (long long)r.i, (long long)r.j, r.got,
                        r.expected);
}

void on_gpu_prewarm(const jg_problem *problems, size_t count)
{
    (void)jg_prewarm(on_gpu_context, problems, count, NULL, NULL);
}
