/* src/kernels.c on the fake driver: from a missing kernel to a loaded one by way of memory, disk and NVRTC; who waits for
 * whom; what is evicted and when. */
#include "gemm_fixture.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

static const float one = 1, zero;

/* --- memory, disk, compiler --- */

/* The test program itself in another process: exit status 0 if it computes from the cache file without compiling. */
static int be_second_process(const char *cache)
{
    const jg_problem p = square(16, JG_F32);
    const jg_options options = {.device = JG_DEVICE_CUDA, .cache_path = cache, .driver_path = fake_path()};
    float a[256] = {1}, b[256] = {2}, c[256] = {3};
    jg_context *context;
    jg_stats stats;
    fake_open();
    if (jg_open(&options, &context) != JG_OK) return 2;
    if (jg_gemm(context, &p, &(jg_operands){a, b, c, &one, &zero, NULL}) != JG_OK || c[0] != 2) return 3;
    if (jg_cache_stats(context, &stats) != JG_OK || stats.compiles != 0 || stats.disk_hits != 1) return 4;
    return jg_close(context) != JG_OK;
}

static void a_kernel_is_compiled_once_and_then_found(void **state)
{
    (void)state;
    NEEDS_NVRTC();
    const jg_problem p = square(16, JG_F32);
    jg_context *first = fixture_open();
    assert_status(fixture_gemm(first, &p, 1, 0), JG_OK);
    jg_stats s = fixture_stats(first);
    assert_int_equal(s.compiles, 1);
    assert_int_equal(s.disk_misses, 1);
    assert_int_equal(s.disk_entries, 1);
    assert_true(s.compile_ms > 1 && s.disk_bytes > 1000 && s.kernel_bytes > 500);
    assert_status(fixture_gemm(first, &p, 2, 1), JG_OK);
    s = fixture_stats(first);
    assert_int_equal(s.compiles, 1);
    assert_int_equal(s.memory_hits, 1);
    assert_int_equal(s.disk_misses, 1);

    jg_context *second = fixture_open();
    assert_status(fixture_gemm(second, &p, 1, 0), JG_OK);
    s = fixture_stats(second);
    assert_int_equal(s.compiles, 0);
    assert_int_equal(s.disk_hits, 1);
    assert_status(jg_close(first), JG_OK);
    assert_status(jg_close(second), JG_OK);

    int status = 0;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        execl("/proc/self/exe", "test_kernels", "second-process", fx.cache, (char *)NULL);
        _exit(9);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void without_a_file_memory_still_serves(void **state)
{
    (void)state;
    NEEDS_NVRTC();
    const jg_problem p = square(16, JG_F32);
    jg_options options = fixture_options();
    options.cache_path = "";
    jg_context *c = fixture_open_with(options);
    assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
    assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
    jg_stats s = fixture_stats(c);
    assert_int_equal(s.compiles, 1);
    assert_int_equal(s.disk_hits + s.disk_misses + s.disk_faults, 0);
    assert_string_equal(s.path, "");
    assert_status(jg_close(c), JG_OK);
}

/* --- NVRTC forbidden or missing --- */

static jg_context *open_never(void)
{
    jg_options options = fixture_options();
    options.compile = JG_COMPILE_NEVER;
    return fixture_open_with(options);
}

static void never_serves_what_is_cached_or_says_not_ready(void **state)
{
    (void)state;
    jg_problem p = square(16, JG_F16);
    jg_context *c = open_never();
    assert_status(fixture_gemm(c, &p, 1, 0), JG_ERR_NOT_READY);
    assert_says(jg_last_error(), fixture_name(&p, JG_FORM_SPECIALISED));
    assert_says(jg_last_error(), "prewarm");
    assert_int_equal(fx.fake->calls("cuLaunchKernel"), 0);

    fixture_plant(&p, JG_FORM_GENERIC);
    assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
    assert_string_equal(fx.fake->last_launch().kernel, fixture_name(&p, JG_FORM_GENERIC));
    p.form = JG_FORM_SPECIALISED;
    assert_status(fixture_gemm(c, &p, 1, 0), JG_ERR_NOT_READY);
    fixture_plant(&p, JG_FORM_SPECIALISED);
    assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
    assert_string_equal(fx.fake->last_launch().kernel, fixture_name(&p, JG_FORM_SPECIALISED));
    assert_int_equal(fixture_stats(c).compiles + fixture_stats(c).compile_failures, 0);
    assert_status(jg_close(c), JG_OK);

    c = open_never(); /* both are cached now */
    p.form = JG_FORM_AUTO;
    assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
    assert_string_equal(fx.fake->last_launch().kernel, fixture_name(&p, JG_FORM_SPECIALISED));
    assert_status(jg_close(c), JG_OK);
}

static void without_nvrtc_cached_kernels_still_serve(void **state)
{
    (void)state;
    jg_problem p = square(16, JG_F16);
    const jg_problem cached = square(24, JG_F16);
    jg_context *c = fixture_open_without_nvrtc();
    assert_status(fixture_gemm(c, &p, 1, 0), JG_ERR_NO_NVRTC);
    assert_says(jg_last_error(), "/nonexistent/libnvrtc.so");
    assert_int_equal(fixture_stats(c).compile_failures, 1);
    fixture_plant(&cached, JG_FORM_SPECIALISED);
    assert_status(fixture_gemm(c, &cached, 1, 0), JG_OK);
    p.form = JG_FORM_GENERIC;
    assert_status(fixture_gemm(c, &p, 1, 0), JG_ERR_NO_NVRTC);
    fixture_plant(&p, JG_FORM_GENERIC);
    p.form = JG_FORM_SPECIALISED;
    assert_status(fixture_gemm(c, &p, 1, 0), JG_ERR_NO_NVRTC);
    p.form = JG_FORM_AUTO;
    assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
    assert_string_equal(fx.fake->last_launch().kernel, fixture_name(&p, JG_FORM_GENERIC));
    assert_status(jg_close(c), JG_OK);
}

/* --- the driver refuses --- */

static void ptx_serves_where_the_cubin_is_refused(void **state)
{
    (void)state;
    const jg_problem p = square(16, JG_F32);
    fixture_plant(&p, JG_FORM_AUTO);
    jg_context *c = fixture_open_without_nvrtc();
    fx.fake->refuse_cubins(CUDA_ERROR_NO_BINARY_FOR_GPU);
    fx.fake->refuse_ptx(CUDA_ERROR_INVALID_PTX);
    assert_status(fixture_gemm(c, &p, 1, 0), JG_ERR_LOAD);
    assert_says(jg_last_error(), "fake: image refused");
    assert_says(jg_last_error(), "CUDA_ERROR_INVALID_PTX");
    assert_says(jg_last_error(), fixture_name(&p, JG_FORM_AUTO));
    assert_int_equal(fixture_stats(c).kernels + fixture_stats(c).problems, 0);
    fx.fake->refuse_ptx(CUDA_SUCCESS);
    uint64_t loads = fx.fake->calls("cuModuleLoadDataEx");
    assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
    assert_int_equal(fx.fake->calls("cuModuleLoadDataEx") - loads, 2);
    assert_status(jg_close(c), JG_OK);
}

/* Whatever fails, the thread's current context is what it was, nothing stays half loaded, and the next call works. */
static void failures_leave_everything_as_it_was(void **state)
{
    (void)state;
    static const struct {
        const char *symbol;
        CUresult result;
        jg_status status;
    } rows[] = {
        {"cuCtxPushCurrent_v2", CUDA_ERROR_INVALID_VALUE, JG_ERR_DEVICE},
        {"cuModuleLoadDataEx", CUDA_ERROR_OUT_OF_MEMORY, JG_ERR_NO_MEMORY},
        {"cuModuleLoadDataEx", CUDA_ERROR_INVALID_VALUE, JG_ERR_LOAD},
        {"cuModuleLoadDataEx", CUDA_ERROR_ILLEGAL_ADDRESS, JG_ERR_DEVICE_LOST},
        {"cuModuleGetFunction", CUDA_ERROR_NOT_FOUND, JG_ERR_LOAD},
        {"cuLaunchKernel", CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, JG_ERR_LAUNCH},
    };
    const jg_problem p = square(16, JG_F32);
    fixture_plant(&p, JG_FORM_AUTO);
    jg_context *c = NULL;
    for (int of_others = 0; of_others < 2; of_others++) {
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            c = fixture_open_without_nvrtc();
            CUcontext mine = of_others ? fx.fake->make_context() : NULL;
            if (mine) fx.fake->push(mine);
            fx.fake->fail_call(rows[i].symbol, 1, rows[i].result, FAKE_ONCE);
            assert_status(fixture_gemm(c, &p, 1, 0), rows[i].status);
            assert_ptr_equal(fx.fake->current(), mine);
            assert_int_equal(fx.fake->depth(), of_others);
            int is_launch = strcmp(rows[i].symbol, "cuLaunchKernel") == 0;
            assert_int_equal(fx.fake->modules(), is_launch);
            assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
            assert_ptr_equal(fx.fake->current(), mine);
            assert_status(jg_close(c), JG_OK);
            assert_int_equal(fx.fake->depth(), of_others);
            if (mine) assert_ptr_equal(fx.fake->pop(), mine);
        }
    }
}

/* --- damage --- */

static void spoil(const char *sql)
{
    sqlite3 *db;
    assert_int_equal(sqlite3_open(fx.cache, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_true(sqlite3_changes(db) > 0);
    sqlite3_close(db);
}

static void a_damaged_record_never_reaches_the_driver(void **state)
{
    (void)state;
    const jg_problem p = square(16, JG_F32), other = square(24, JG_F32);
    fixture_plant(&p, JG_FORM_AUTO);
    fixture_plant(&other, JG_FORM_AUTO);
    spoil("UPDATE records SET binary = zeroblob(length(binary))");
    jg_context *c = fixture_open_without_nvrtc();
    assert_status(fixture_gemm(c, &p, 1, 0), JG_ERR_NO_NVRTC);
    assert_status(fixture_gemm(c, &other, 1, 0), JG_ERR_NO_NVRTC);
    assert_int_equal(fx.fake->calls("cuModuleLoadDataEx"), 0);
    assert_int_equal(fixture_stats(c).disk_faults, 2);
    assert_int_equal(fx.logs[JG_LOG_WARNING], 1); /* said once */
    assert_status(jg_close(c), JG_OK);
}

static void a_damaged_record_is_compiled_again(void **state)
{
    (void)state;
    NEEDS_NVRTC();
    const jg_problem p = square(16, JG_F32);
    fixture_plant(&p, JG_FORM_AUTO);
    spoil("UPDATE records SET portable = zeroblob(length(portable))");
    jg_context *c = fixture_open();
    assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
    jg_stats s = fixture_stats(c);
    assert_int_equal(s.compiles, 1);
    assert_int_equal(s.disk_faults, 1);
    assert_int_equal(s.disk_entries, 1);
    assert_status(jg_close(c), JG_OK);
    c = fixture_open();
    assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
    assert_int_equal(fixture_stats(c).disk_hits, 1);
    assert_status(jg_close(c), JG_OK);
}

/* A sound record that the driver will not take, as a cubin and as PTX. */
static void a_refused_record_is_compiled_again(void **state)
{
    (void)state;
    NEEDS_NVRTC();
    const jg_problem p = square(16, JG_F32);
    fixture_plant(&p, JG_FORM_AUTO);
    jg_context *c = fixture_open();
    fx.fake->fail_call("cuModuleLoadDataEx", 1, CUDA_ERROR_INVALID_VALUE, FAKE_ONCE);
    assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
    jg_stats s = fixture_stats(c);
    assert_int_equal(s.compiles, 1);
    assert_int_equal(s.disk_faults, 1);
    assert_int_equal(s.disk_entries, 1);
    assert_status(jg_close(c), JG_OK);
}

/* --- eviction --- */

#define SIZES 4
static jg_problem sized(int i)
{
    return square(8 + 8 * i, JG_F32);
}

static void plant_sizes(void)
{
    for (int i = 0; i < SIZES; i++) fixture_plant(&(jg_problem){.m = 8 + 8 * i, .n = 8 + 8 * i, .k = 8 + 8 * i}, JG_FORM_AUTO);
}

static int is_loaded(int i)
{
    const jg_problem p = sized(i);
    return fx.fake->is_loaded(fixture_name(&p, JG_FORM_AUTO));
}

static jg_context *open_for_two(jg_compile policy)
{
    jg_options options = fixture_options();
    options.compile = policy;
    options.memory_max_kernels = 2;
    options.nvrtc_path = "/nonexistent/libnvrtc.so";
    return fixture_open_with(options);
}

static void run_size(jg_context *c, int i)
{
    const jg_problem p = sized(i);
    assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
}

static void the_least_recently_used_kernels_go(void **state)
{
    (void)state;
    plant_sizes();
    jg_context *c = open_for_two(JG_COMPILE_WAIT);
    run_size(c, 0);
    run_size(c, 1);
    run_size(c, 0); /* now 1 is the older */
    run_size(c, 2);
    assert_true(is_loaded(0) && !is_loaded(1) && is_loaded(2));
    run_size(c, 3);
    assert_true(!is_loaded(0) && is_loaded(2) && is_loaded(3));
    run_size(c, 1); /* comes back from disk */
    jg_stats s = fixture_stats(c);
    assert_int_equal(s.kernels, 2);
    assert_int_equal(s.evictions, 3);
    assert_int_equal(s.disk_hits, 5);
    assert_int_equal(fx.fake->modules(), 2);
    assert_status(jg_close(c), JG_OK);
}

static void bytes_bound_the_memory_too(void **state)
{
    (void)state;
    plant_sizes();
    jg_options options = fixture_options();
    options.memory_max_bytes = 300; /* a planted cubin has about 130 */
    options.nvrtc_path = "/nonexistent/libnvrtc.so";
    jg_context *c = fixture_open_with(options);
    for (int i = 0; i < SIZES; i++) run_size(c, i);
    jg_stats s = fixture_stats(c);
    assert_true(s.kernel_bytes <= 300 && s.kernels >= 1 && s.kernels < SIZES);
    assert_int_equal(fx.fake->modules(), s.kernels);
    assert_status(jg_close(c), JG_OK);
}

static void plans_keep_their_kernels(void **state)
{
    (void)state;
    plant_sizes();
    const jg_problem p = sized(0);
    jg_context *c = open_for_two(JG_COMPILE_WAIT);
    jg_plan *pinned;
    assert_status(jg_plan_create(c, &p, &pinned), JG_OK);
    for (int i = 1; i < SIZES; i++) run_size(c, i);
    assert_true(is_loaded(0));
    assert_int_equal(fx.fake->modules(), 2);
    uint64_t loads = fx.fake->calls("cuModuleLoadDataEx");
    assert_status(fixture_run_plan(pinned, &p), JG_OK);
    assert_int_equal(fx.fake->calls("cuModuleLoadDataEx"), loads);
    jg_plan_destroy(pinned);
    for (int i = 1; i < SIZES; i++) run_size(c, i);
    assert_false(is_loaded(0));
    assert_status(jg_close(c), JG_OK);
}

/* A device lost by earlier work shows when the driver is next asked; poll passes it on. */
static void poll_reports_a_lost_device(void **state)
{
    (void)state;
    plant_sizes();
    jg_context *c = open_for_two(JG_COMPILE_NEVER);
    for (int i = 0; i < SIZES; i++) run_size(c, i);
    fx.fake->fail_call("cuModuleUnload", 1, CUDA_ERROR_ILLEGAL_ADDRESS, FAKE_ONCE);
    assert_status(jg_poll(c, NULL), JG_ERR_DEVICE_LOST);
    assert_says(jg_last_error(), "cuModuleUnload");
    jg_close(c);
    fx.fake->reset(); /* the module that could not be unloaded */
}

/* A caller that must not wait gets nothing unloaded: that is left to jg_poll. */
static void without_waiting_only_poll_unloads(void **state)
{
    (void)state;
    plant_sizes();
    jg_context *c = open_for_two(JG_COMPILE_NEVER);
    size_t unloaded = 9;
    assert_status(jg_poll(c, &unloaded), JG_OK);
    assert_int_equal(unloaded, 0);
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < SIZES; i++) run_size(c, i);
    assert_int_equal(fx.fake->calls("cuModuleUnload"), 0);
    assert_int_equal(fx.fake->modules(), SIZES);
    uint64_t depth = (uint64_t)fx.fake->depth();
    assert_status(jg_poll(c, &unloaded), JG_OK);
    assert_int_equal(unloaded, SIZES - 2);
    assert_int_equal(fx.fake->modules(), 2);
    assert_int_equal(fx.fake->depth(), depth);
    uint64_t calls = fx.fake->all_calls();
    assert_status(jg_poll(c, NULL), JG_OK);
    assert_int_equal(fx.fake->all_calls(), calls); /* nothing to do costs nothing */
    assert_status(jg_close(c), JG_OK);
}

/* --- threads --- */

typedef struct runner {
    jg_context *context;
    pthread_barrier_t *start;
    int first, rounds;
    atomic_int *done;
    jg_status status;
} runner;

static void *run_sizes(void *argument)
{
    runner *r = argument;
    if (r->start) pthread_barrier_wait(r->start);
    for (int i = 0; i < r->rounds && r->status == JG_OK; i++) {
        const jg_problem p = sized((r->first + i) % SIZES);
        float a[32 * 32], b[32 * 32], c[32 * 32];
        for (int j = 0; j < 32 * 32; j++) a[j] = b[j] = 1;
        r->status = jg_gemm(r->context, &p, &(jg_operands){a, b, c, &one, &zero, NULL});
        for (int j = 0; j < p.m * p.n && r->status == JG_OK; j++)
            if (c[j] != (float)p.k) r->status = JG_ERR_INTERNAL;
    }
    if (r->done) atomic_store(r->done, 1);
    return NULL;
}

#define THREADS 4
static void run_threads(jg_context *c, int spread, int rounds)
{
    pthread_t threads[THREADS];
    runner runners[THREADS];
    pthread_barrier_t start;
    pthread_barrier_init(&start, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) {
        runners[i] = (runner){c, &start, i * spread, rounds, NULL, JG_OK};
        assert_int_equal(pthread_create(&threads[i], NULL, run_sizes, &runners[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&start);
    for (int i = 0; i < THREADS; i++) assert_int_equal(runners[i].status, JG_OK);
}

static void threads_that_miss_together_compile_once(void **state)
{
    (void)state;
    NEEDS_NVRTC();
    jg_context *c = fixture_open();
    run_threads(c, 0, 1);
    assert_int_equal(fixture_stats(c).compiles, 1);
    assert_int_equal(fixture_stats(c).problems, 1);
    assert_int_equal(fx.fake->calls("cuModuleLoadDataEx"), 1);
    assert_int_equal(fx.fake->calls("cuLaunchKernel"), THREADS);
    assert_status(jg_close(c), JG_OK);
}

/* Whoever waited for a kernel that could not be made tries for itself. */
static void a_failed_load_fails_only_its_own_call(void **state)
{
    (void)state;
    plant_sizes();
    jg_context *c = fixture_open_without_nvrtc();
    fx.fake->delay_loads(50);
    fx.fake->fail_call("cuModuleLoadDataEx", 1, CUDA_ERROR_OUT_OF_MEMORY, FAKE_ONCE);
    pthread_t threads[2];
    runner runners[2];
    pthread_barrier_t start;
    pthread_barrier_init(&start, NULL, 2);
    for (int i = 0; i < 2; i++) {
        runners[i] = (runner){c, &start, 0, 1, NULL, JG_OK};
        assert_int_equal(pthread_create(&threads[i], NULL, run_sizes, &runners[i]), 0);
    }
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&start);
    assert_int_equal(runners[0].status + runners[1].status, JG_ERR_NO_MEMORY); /* one failed, one did not */
    assert_status(jg_close(c), JG_OK);
}

static void many_threads_share_a_context_that_evicts(void **state)
{
    (void)state;
    plant_sizes();
    jg_context *c = open_for_two(JG_COMPILE_WAIT);
    run_threads(c, 1, 60);
    assert_int_equal(fx.fake->calls("cuLaunchKernel"), THREADS * 60);
    assert_status(jg_poll(c, NULL), JG_OK);
    assert_int_equal(fx.fake->modules(), 2);
    assert_int_equal(fixture_stats(c).compile_failures, 0);
    assert_status(jg_close(c), JG_OK);
}

static void hits_go_on_while_another_thread_loads(void **state)
{
    (void)state;
    plant_sizes();
    jg_context *c = fixture_open_without_nvrtc();
    const jg_problem p = sized(0);
    float a[64] = {0}, b[64] = {0}, out[64];
    const jg_operands data = {a, b, out, &one, &zero, NULL};
    assert_status(jg_gemm(c, &p, &data), JG_OK);
    fx.fake->delay_loads(300);
    atomic_int done = 0;
    runner loader = {c, NULL, 1, 1, &done, JG_OK};
    pthread_t thread;
    int hits = 0;
    assert_int_equal(pthread_create(&thread, NULL, run_sizes, &loader), 0);
    while (!atomic_load(&done)) {
        if (jg_gemm(c, &p, &data) == JG_OK) hits++;
    }
    pthread_join(thread, NULL);
    assert_int_equal(loader.status, JG_OK);
    assert_true(hits > 100);
    assert_status(jg_close(c), JG_OK);
}

int main(int count, char **arguments)
{
    if (count == 3 && strcmp(arguments[1], "second-process") == 0) return be_second_process(arguments[2]);
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(a_kernel_is_compiled_once_and_then_found), FIXTURE_TEST(without_a_file_memory_still_serves),
        FIXTURE_TEST(never_serves_what_is_cached_or_says_not_ready), FIXTURE_TEST(without_nvrtc_cached_kernels_still_serve),
        FIXTURE_TEST(ptx_serves_where_the_cubin_is_refused), FIXTURE_TEST(failures_leave_everything_as_it_was),
        FIXTURE_TEST(a_damaged_record_never_reaches_the_driver), FIXTURE_TEST(a_damaged_record_is_compiled_again), FIXTURE_TEST(a_refused_record_is_compiled_again),
        FIXTURE_TEST(the_least_recently_used_kernels_go), FIXTURE_TEST(bytes_bound_the_memory_too),
        FIXTURE_TEST(plans_keep_their_kernels), FIXTURE_TEST(poll_reports_a_lost_device), FIXTURE_TEST(without_waiting_only_poll_unloads),
        FIXTURE_TEST(threads_that_miss_together_compile_once), FIXTURE_TEST(a_failed_load_fails_only_its_own_call),
        FIXTURE_TEST(many_threads_share_a_context_that_evicts), FIXTURE_TEST(hits_go_on_while_another_thread_loads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
