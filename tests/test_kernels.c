/* src/kernels.c on the fake driver: from a missing kernel to a loaded one by way of memory, disk and NVRTC; what
 * happens where one of them fails. What is evicted and who waits for whom is in test_kernels_eviction.c. */
#include "fake_nvrtc.h"
#include "gemm_fixture.h"

#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

static const float one = 1, zero;

/* --- memory, disk, compiler --- */

/* The test program itself in another process: exit status 0 if it computes from the cache file without compiling. */
static int be_second_process(const char *cache)
{
    const jg_problem p = square(16, JG_F32);
    const jg_options options = {.device = JG_DEVICE_CUDA, .compile = JG_COMPILE_WAIT, .cache_path = cache, .driver_path = fake_path()};
    float a[256] = {1}, b[256] = {2}, c[256] = {3};
    jg_context *context;
    jg_stats stats;
    fake_open();
    if (jg_open(&options, &context) != JG_OK) return 2;
    if (jg_gemm(context, &p, &(jg_operands){.a = a, .b = b, .c = c, .alpha = &one, .beta = &zero}) != JG_OK || c[0] != 2) return 3;
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
    assert_true(s.compile_ms > 0 && s.disk_bytes > 1000 && s.kernel_bytes > 500);
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
    options.resident = JG_RESIDENT_NONE;
    return fixture_open_with(options);
}

/* Under NEVER a call takes what is loaded and touches neither disk nor loader; loading is what prewarming is for. */
static void never_serves_what_is_loaded_or_says_not_ready(void **state)
{
    (void)state;
    const jg_problem p = square(16, JG_F16);
    jg_problem generic = p, specialised = p;
    generic.form = JG_FORM_GENERIC;
    specialised.form = JG_FORM_SPECIALISED;
    fixture_plant(&p, JG_FORM_GENERIC);
    jg_context *c = open_never();
    assert_status(fixture_gemm(c, &p, 1, 0), JG_ERR_NOT_READY);
    assert_says(jg_last_error(), fixture_name(&p, JG_FORM_SPECIALISED));
    assert_says(jg_last_error(), "prewarm");
    assert_int_equal(fx.fake->calls("cuLaunchKernel") + fx.fake->calls("cuModuleLoadDataEx"), 0);
    assert_int_equal(fixture_stats(c).disk_hits, 0);

    assert_status(jg_prewarm(c, &generic, 1, NULL, NULL), JG_OK);
    assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
    assert_string_equal(fx.fake->last_launch().kernel, fixture_name(&p, JG_FORM_GENERIC));
    assert_status(fixture_gemm(c, &specialised, 1, 0), JG_ERR_NOT_READY);
    assert_status(jg_prewarm(c, &p, 1, NULL, NULL), JG_ERR_NOT_READY); /* not cached, and not compiled */

    /* A problem that a generic kernel served goes over to its own once that is loaded. */
    fixture_plant(&p, JG_FORM_SPECIALISED);
    assert_status(jg_prewarm(c, &p, 1, NULL, NULL), JG_OK);
    assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
    assert_string_equal(fx.fake->last_launch().kernel, fixture_name(&p, JG_FORM_SPECIALISED));
    assert_int_equal(fixture_stats(c).compiles + fixture_stats(c).compile_failures, 0);
    assert_status(jg_close(c), JG_OK);
}

/* Success leaves the text of the last failed call alone, also where something failed on the way and was made good. */
static void a_fallback_keeps_the_last_error(void **state)
{
    (void)state;
    const jg_problem p = square(16, JG_F16);
    fixture_plant(&p, JG_FORM_GENERIC);
    jg_context *c = fixture_open_without_nvrtc();
    assert_status(jg_gemm(NULL, NULL, NULL), JG_ERR_NULL);
    char before[256];
    snprintf(before, sizeof before, "%s", jg_last_error());
    assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
    assert_string_equal(jg_last_error(), before);
    assert_status(jg_close(c), JG_OK);
}

/* A specialised kernel that the driver refuses, where it cannot be compiled again: the generic one serves. */
static void a_refused_kernel_falls_back(void **state)
{
    (void)state;
    const jg_problem p = square(16, JG_F16);
    fixture_plant(&p, JG_FORM_GENERIC);
    fixture_plant(&p, JG_FORM_SPECIALISED);
    jg_context *c = fixture_open_without_nvrtc();
    fx.fake->fail_call("cuModuleLoadDataEx", 1, CUDA_ERROR_INVALID_VALUE, FAKE_ONCE);
    assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
    assert_string_equal(fx.fake->last_launch().kernel, fixture_name(&p, JG_FORM_GENERIC));
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

static void a_refused_source_is_not_tried_on_every_call(void **state)
{
    (void)state;
    const jg_problem p = square(16, JG_F32), other = square(24, JG_F32);
    jg_options options = fixture_options();
    options.nvrtc_path = fake_nvrtc_path();
    fake_nvrtc *fake = fake_nvrtc_open();
    jg_context *c = fixture_open_with(options);
    for (int i = 0; i < 3; i++) {
        assert_status(fixture_gemm(c, &p, 1, 0), JG_ERR_COMPILE);
        assert_says(jg_last_error(), "planted refusal");
        assert_says(jg_last_error(), fixture_name(&p, JG_FORM_AUTO));
        assert_int_equal(atomic_load(&fake->compiles), 1);
    }
    assert_status(fixture_gemm(c, &other, 1, 0), JG_ERR_COMPILE);
    assert_int_equal(atomic_load(&fake->compiles), 2);
    assert_status(jg_prewarm(c, &p, 1, NULL, NULL), JG_ERR_COMPILE); /* asked for, so tried again */
    assert_int_equal(atomic_load(&fake->compiles), 3);
    assert_status(jg_close(c), JG_OK);
    fx.fake->set_capability(90); /* which this NVRTC does not know */
    c = fixture_open_with(options);
    assert_status(fixture_gemm(c, &p, 1, 0), JG_ERR_ARCH);
    assert_says(jg_last_error(), "sm_90; it knows sm_87");
    assert_status(jg_close(c), JG_OK);
    assert_int_equal(atomic_load(&fake->compiles), 3);
}

int main(int count, char **arguments)
{
    if (count == 3 && strcmp(arguments[1], "second-process") == 0) return be_second_process(arguments[2]);
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(a_kernel_is_compiled_once_and_then_found), FIXTURE_TEST(without_a_file_memory_still_serves),
        FIXTURE_TEST(never_serves_what_is_loaded_or_says_not_ready), FIXTURE_TEST(a_fallback_keeps_the_last_error),
        FIXTURE_TEST(a_refused_kernel_falls_back), FIXTURE_TEST(without_nvrtc_cached_kernels_still_serve),
        FIXTURE_TEST(ptx_serves_where_the_cubin_is_refused), FIXTURE_TEST(failures_leave_everything_as_it_was),
        FIXTURE_TEST(a_damaged_record_never_reaches_the_driver), FIXTURE_TEST(a_damaged_record_is_compiled_again), FIXTURE_TEST(a_refused_record_is_compiled_again),
        FIXTURE_TEST(a_refused_source_is_not_tried_on_every_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
