/* Compile helpers that are killed while a pipeline works, on a GPU or on the software GPU: no call fails, no result changes, and
 * nothing of them is left.
 *
 * The pipeline is as jg_open's defaults make it: in BACKGROUND mode, its generic kernels from a cache file, each frame some products
 * of sizes that were never seen before and some of older ones, and jg_poll after the frame's synchronise. Another thread
 * (hunter.h) kills the helpers that its worker starts, at random moments. Each of the results is looked at: the first of a size
 * by the oracle, the others must have its bits.
 *
 *   JG_TEST_KILLS=N   how many helpers are killed; 100, on the software GPU 4
 *   JG_TEST_SEED=N    what is drawn from it; 1 */
#include "context.h"
#include "hunter.h"
#include "on_device.h"
#include "scratch.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define HELPER "jitgemm-compile" /* as a program's name in /proc: 15 characters are all it has room for */
enum { SIZES = 600, NEW_ONES = 4, OLD_ONES = 2, MOST_WAITING = 3 };
#define ARENA_BYTES ((size_t)128 << 20)
#define LONGEST_ZOMBIE_NS 5000000000 /* even where everything is slow */
#define LONGEST_WORK_MS 120000

/* A product that comes again and again. */
typedef struct size {
    jg_problem problem;
    reference ref;
    jg_operands data;
    unsigned char *first;   /* the block of C after the first call; null before it */
    int own;                /* its last call ran on its own kernel */
    atomic_int failed;      /* its kernel could not be made */
} size;

static char folder[PATH_MAX], helper[PATH_MAX];
static jg_context *gpu;
static CUstream stream;
static void *arena;
static size_t arena_used;
static size sizes[SIZES];
static atomic_size_t size_count, size_done; /* done: has a kernel, or will have none */
static uint64_t random_state = 1;
static long calls;
static const char *why_not;

static void must(jg_status status)
{
    if (status != JG_OK) fail_msg("%s: %s", jg_status_name(status), jg_last_error());
}

static int below(int bound)
{
    return (int)((reference_random(&random_state) >> 33) % (uint64_t)bound);
}

static int is_software(void)
{
    return context_is_software(gpu);
}

/* Of which there are generic kernels: JG_RESIDENT_ flags. */
static uint32_t types;

static size_t count_from(const char *variable, size_t otherwise)
{
    const char *text = getenv(variable);
    return text ? strtoul(text, NULL, 10) : otherwise;
}

/* ---- what else is there in the process ---- */

/* Open descriptors, but for those of a GPU's own device files, which its driver opens and closes as it likes. */
static size_t count_files(void)
{
    char path[300], target[16];
    size_t count = 0;
    DIR *all = opendir("/proc/self/fd");
    assert_non_null(all);
    for (struct dirent *entry; (entry = readdir(all));) {
        snprintf(path, sizeof path, "/proc/self/fd/%s", entry->d_name);
        const ssize_t length = readlink(path, target, sizeof target);
        count += length > 0 && strncmp(target, "/dev/nvidia", 11) != 0;
    }
    closedir(all);
    return count;
}

static atomic_int signals;

/* As a host may have one. */
static void on_child(int number)
{
    (void)number;
    atomic_fetch_add(&signals, 1);
}

/* ---- sizes ---- */

/* No two have the same k. On a GPU in turns of f32 and f16, whose generic kernels both are there. */
static jg_problem problem_of(size_t index)
{
    const int64_t k = 40 + (int64_t)index, most = is_software() ? 24 : 120;
    jg_problem p = {.m = 8 + (int64_t)(index * 7) % most, .n = 8 + (int64_t)(index * 11) % most, .k = k};
    if (!is_software() && index % 2) p.type_a = JG_F16;
    return p;
}

static size *find(const char *text)
{
    jg_problem p = {0};
    if (jg_problem_parse(text, &p) != JG_OK) return NULL;
    const size_t index = (size_t)(p.k - 40);
    return index < SIZES ? &sizes[index] : NULL;
}

/* From the pipeline's thread and from the worker's. */
static void on_trace(void *user, const jg_trace *trace)
{
    (void)user;
    size *s = *trace->problem ? find(trace->problem) : NULL;
    if (!s) return;
    if (trace->event == JG_EVENT_HIT) s->own = 1;
    if (trace->event == JG_EVENT_GENERIC) s->own = 0;
    if (trace->event == JG_EVENT_FAIL) atomic_store(&s->failed, 1);
    if (trace->event == JG_EVENT_FAIL || trace->event == JG_EVENT_READY) atomic_fetch_add(&size_done, 1);
}

static void add_size(void)
{
    const size_t index = atomic_load(&size_count);
    if (index == SIZES) fail_msg("%d sizes were not enough", SIZES);
    size *s = &sizes[index];
    s->problem = problem_of(index);
    reference_make(&s->ref, &s->problem, REFERENCE_UNIFORM, 0, index);
    must(on_device_upload(gpu, (char *)arena + arena_used, ARENA_BYTES - arena_used, &s->ref, NULL, NULL, &s->data));
    reference_block blocks[REFERENCE_MAX_BLOCKS];
    for (size_t i = 0, n = reference_blocks(&s->ref, blocks); i < n; i++) arena_used += (blocks[i].bytes + 255) / 256 * 256;
    s->data.stream = stream;
    atomic_store(&size_count, index + 1);
}

/* ---- frames ---- */

/* C is made bad before, so that a call which does nothing shows. */
static void call(size *s)
{
    must(jg_copy(gpu, (char *)s->data.c - s->ref.c.offset_bytes, s->ref.before, s->ref.c.block_bytes));
    const jg_status status = jg_gemm(gpu, &s->problem, &s->data);
    if (status != JG_OK) fail_msg("call %ld: %s: %s", calls, jg_status_name(status), jg_last_error());
    calls++;
}

static void judge(size *s)
{
    const size_t bytes = s->ref.c.block_bytes;
    must(on_device_download(gpu, &s->data, &s->ref, s->ref.c.block));
    if (s->first) {
        if (memcmp(s->first, s->ref.c.block, bytes) != 0) fail_msg("k = %d: other bits than the first time", (int)s->problem.k);
        return;
    }
    const reference_result r = reference_check(&s->ref, 1, 0);
    if (r.failures || r.stray) fail_msg("k = %d: %lld elements are wrong", (int)s->problem.k, (long long)(r.failures + r.stray));
    s->first = malloc(bytes);
    assert_non_null(s->first);
    memcpy(s->first, s->ref.c.block, bytes);
}

static void frame(void)
{
    const size_t count = atomic_load(&size_count);
    size *now[NEW_ONES + OLD_ONES];
    size_t n = 0;
    for (size_t i = 0; i < NEW_ONES && i < count; i++) now[n++] = &sizes[count - 1 - i];
    for (size_t i = 0; i < OLD_ONES && count > NEW_ONES; i++) {
        size *s = &sizes[below((int)(count - NEW_ONES))];
        if (i == 0 || s != now[n - 1]) now[n++] = s;
    }
    for (size_t i = 0; i < n; i++) call(now[i]);
    must(jg_synchronize(gpu, stream));
    for (size_t i = 0; i < n; i++) judge(now[i]);
    must(jg_poll(gpu, NULL, NULL));
}

/* New sizes as long as there is something to kill, but no faster than kernels are made. */
static void work_under_fire(hunter *h, size_t kills)
{
    while (atomic_load(&h->killed) < kills) {
        if (atomic_load(&size_count) <= atomic_load(&size_done) + MOST_WAITING) add_size();
        frame();
    }
}

static void finish_work(void)
{
    jg_poll_result polled = {.left = 1};
    frame(); /* the last size may have been met once only, for which no kernel is made */
    must(jg_wait_idle(gpu, LONGEST_WORK_MS));
    for (int i = 0; polled.left && i < SIZES; i++) must(jg_poll(gpu, &(jg_poll_limits){.max_ms = 1000}, &polled));
    assert_int_equal(polled.left, 0);
    for (size_t i = 0; i < atomic_load(&size_count); i++) {
        call(&sizes[i]);
        must(jg_synchronize(gpu, stream));
        judge(&sizes[i]);
    }
}

/* ---- contexts ---- */

static void print_log(void *user, jg_log_level level, const char *text)
{
    (void)user;
    if (level == JG_LOG_ERROR) printf("# %s\n", text);
}

/* Fills the cache file: the generic kernels, and that each size's own kernel is worth making. Gives why it cannot. */
static const char *fill_cache(const char *path)
{
    static char reason[600];
    const jg_options options = {.device = JG_DEVICE_CUDA, .compile = JG_COMPILE_WAIT, .cache_path = path, .factory_path = "",
                                .helper = JG_HELPER_THREAD};
    jg_status status = jg_open(&options, &gpu);
    types = JG_RESIDENT_F32 | (status == JG_OK && is_software() ? 0 : JG_RESIDENT_F16);
    const jg_prewarm_options how = {.generic_set = 1, .types = types};
    if (status == JG_OK) status = jg_prewarm(gpu, NULL, 0, &how, NULL);
    for (size_t i = 0; i < SIZES && status == JG_OK; i++) {
        const jg_problem p = problem_of(i);
        status = jg_record_gain(gpu, &p, 2);
    }
    snprintf(reason, sizeof reason, "%s", jg_last_error());
    jg_close(gpu);
    gpu = NULL;
    if (status == JG_OK) return NULL;
    if (status != JG_ERR_NO_DRIVER && status != JG_ERR_NO_DEVICE && status != JG_ERR_NO_NVRTC) fail_msg("%s", reason);
    return reason;
}

static void open_pipeline(const char *path)
{
    const jg_options options = {.device = JG_DEVICE_CUDA, .cache_path = path, .factory_path = "", .prewarm = JG_PREWARM_NO_MET,
                                .resident = types, .helper = JG_HELPER_PROCESS, .helper_path = helper, .trace = on_trace, .log = print_log,
                                .worker = {.per_minute = 1000000, .nice = JG_NICE_INHERIT}};
    must(jg_open(&options, &gpu));
    must(jg_alloc(gpu, JG_DEVICE_MEMORY, ARENA_BYTES, &arena));
}

/* Functions of the driver's: the library makes no streams. */
static void with_driver(const char *name, int is_destroy)
{
    device_scope scope;
    void *const symbol = dlsym(gpu->device.driver->handle, name);
    CUresult (*create)(CUstream *, unsigned), (*destroy)(CUstream);
    assert_non_null(symbol);
    memcpy(&create, &symbol, sizeof symbol);
    memcpy(&destroy, &symbol, sizeof symbol);
    must(device_enter(&gpu->device, &scope));
    assert_int_equal(is_destroy ? destroy(stream) : create(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    device_leave(&gpu->device, &scope);
}

static void close_pipeline(void)
{
    with_driver("cuStreamDestroy_v2", 1);
    must(jg_free(gpu, JG_DEVICE_MEMORY, arena));
    must(jg_close(gpu));
    gpu = NULL;
    for (size_t i = 0; i < atomic_load(&size_count); i++) {
        reference_free(&sizes[i].ref);
        free(sizes[i].first);
    }
}

/* As a driver may keep files open once it was used, and does so from the first launch on: all that without a helper. */
static void warm_up(const char *path)
{
    const jg_problem p = {.m = 8, .n = 8, .form = JG_FORM_GENERIC}; /* k = 0: it writes C and reads nothing */
    open_pipeline(path);
    with_driver("cuStreamCreate", 0);
    must(jg_gemm(gpu, &p, &(jg_operands){.c = arena, .stream = stream}));
    must(jg_synchronize(gpu, stream));
    close_pipeline();
}

/* ---- the test ---- */

static void assert_counts(const hunter *h, const jg_stats *stats)
{
    size_t failed = 0, own = 0;
    const size_t count = atomic_load(&size_count);
    for (size_t i = 0; i < count; i++) {
        const int has_failed = atomic_load(&sizes[i].failed);
        failed += (size_t)has_failed;
        own += (size_t)sizes[i].own;
        if (has_failed == sizes[i].own)
            fail_msg("k = %d: %s, and runs on %s kernel", (int)sizes[i].problem.k, has_failed ? "failed" : "not failed",
                     sizes[i].own ? "its own" : "a generic");
    }
    printf("# %zu helpers killed of %zu: %llu lost, %zu kernels given up, %zu of %zu sizes on their own; %ld calls, 0 failed\n",
           atomic_load(&h->killed), h->met, (unsigned long long)stats->helpers_lost, failed, own, count, calls);
    /* A helper may have done its work before it was killed, but not one that had just begun. */
    assert_in_range(stats->helpers_lost, h->surely, atomic_load(&h->killed));
    assert_true(stats->helpers_lost >= 2 * failed); /* each kernel is tried twice */
    if (h->early == 3) assert_true(failed >= 1 && stats->helpers_lost > 2 * failed); /* see hunter_start */
    assert_true(own > 0);
    assert_int_equal(stats->compiles, own);
    assert_int_equal(stats->waits, 0);
}

static void test_killed_helpers(void **state)
{
    (void)state;
    static hunter h;
    jg_stats stats;
    struct sigaction mine = {.sa_handler = on_child, .sa_flags = SA_RESTART}, then;
    sigset_t mask, mask_then;
    if (why_not) {
        print_message("SKIP %s\n", why_not);
        skip();
    }
    const char *path = scratch_path(folder, "kernels.db");
    random_state = count_from("JG_TEST_SEED", 1);
    assert_int_equal(sigaction(SIGCHLD, &mine, NULL), 0);
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    const size_t children = hunter_count_children();
    warm_up(path);
    const size_t files = count_files();

    open_pipeline(path);
    with_driver("cuStreamCreate", 0);
    const size_t kills = count_from("JG_TEST_KILLS", is_software() ? 4 : 100);
    assert_int_equal(hunter_start(&h, HELPER, kills, random_state), 0);
    work_under_fire(&h, kills);
    finish_work();
    hunter_stop(&h);
    must(jg_cache_stats(gpu, &stats));
    assert_counts(&h, &stats);
    close_pipeline();

    assert_null(h.trouble);
    assert_true(h.longest_zombie_ns < LONGEST_ZOMBIE_NS);
    assert_int_equal(hunter_count_children(), children);
    assert_int_equal(count_files(), files);
    sigaction(SIGCHLD, NULL, &then);
    assert_true(then.sa_handler == on_child && then.sa_flags & SA_RESTART);
    pthread_sigmask(SIG_SETMASK, NULL, &mask_then);
    for (int i = 1; i < NSIG; i++) assert_int_equal(sigismember(&mask, i), sigismember(&mask_then, i));
}

/* The helper of the same build, whatever is installed. */
static int find_helper(void)
{
    char program[PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 64);
    if (length < 0) return -1;
    program[length] = 0;
    for (int i = 0; i < 2; i++) *strrchr(program, '/') = 0; /* its folder's parent */
    snprintf(helper, sizeof helper, "%.4000s/libexec/jitgemm/" HELPER, program);
    return access(helper, X_OK);
}

static int set_up(void **state)
{
    (void)state;
    static char missing[PATH_MAX + 32];
    scratch_make(folder);
    if (find_helper() == 0) {
        why_not = fill_cache(scratch_path(folder, "kernels.db"));
        return 0;
    }
    snprintf(missing, sizeof missing, "there is no %.4000s", helper);
    why_not = missing;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    scratch_remove(folder);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_killed_helpers)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
