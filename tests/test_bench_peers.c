/* cuBLAS as jitgemm-bench calls it (tools/bench_peer.h), against a double that computes on the host and refuses what it is told
 * to: products, settings, failures, and that nothing is left over. Also how its libraries are found, and its ABI's numbers. */
#include "peers_fixture.h"
#include "scratch.h"

#include "tools/bench_cublas.h"
#include "tools/bench_peer.h"

#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

/* Older headers lack some of the names. */
#if defined(__has_include)
#if __has_include(<cublasLt.h>)
#include <cublasLt.h>
#if CUBLAS_VER_MAJOR >= 12
#define SAME(name, number) _Static_assert((int)name == (int)name##_, #name);
BENCH_CUBLAS_TYPES(SAME)
BENCH_CUBLAS_NUMBERS(SAME)
BENCH_CUBLAS_STATUSES(SAME)
BENCH_CUBLAS_ATTRIBUTES(SAME)
_Static_assert(sizeof(cublasStatus_t) == sizeof(int) && sizeof(cudaDataType) == sizeof(int), "enumerations are passed as int");
#endif
#endif
#endif

static bench_peer peer;

static int open_peer(void **state)
{
    (void)state;
    fake = fake_cublas_open(NEW);
    if (bench_peer_open(fake_cublas_path(NEW), &peer) == JG_OK) return 0;
    print_error("%s\n", jg_last_error());
    return -1;
}

/* Closing what is closed does nothing, so every test ends with everything given back. */
static int close_peer(void **state)
{
    (void)state;
    bench_peer_close(&peer);
    return fake->handles ? -1 : 0;
}

/* ---- products ---- */

static jg_status run_peer(const jg_problem *p, const jg_operands *data)
{
    return bench_peer_gemm(&peer, p, data);
}

static void products_of_cublas(void **state)
{
    (void)state;
    assert_ok(bench_peer_create(&peer, FAKE_STREAM));
    assert_int_equal(peer.version, 990901);
    assert_int_equal(check_all(run_peer, LAYOUTS), COUNT(types) * 8 * LAYOUTS);
    assert_int_equal(fake->products, COUNT(types) * 8 * (LAYOUTS - 1)); /* nothing is asked of it for an empty product */
    assert_ptr_equal(fake->stream, FAKE_STREAM);
    assert_int_equal(fake->workspaces, 0);
    const jg_problem no_sum = {.m = 5, .n = 4, .k = 0};
    check(run_peer, &no_sum, 4);
}

/* Other arithmetics, what it takes no part in, and what it refuses itself. */
static void arithmetics_of_cublas(void **state)
{
    (void)state;
    const jg_problem bytes = {.m = 8, .n = 8, .k = 8, .type_a = JG_E4M3}, odd = {.m = 4, .n = 4, .k = 5, .type_a = JG_S8};
    const jg_operands data = no_data(FAKE_STREAM);
    assert_ok(bench_peer_create(&peer, FAKE_STREAM));
    check_modes(run_peer);
    check_s8(run_peer);
    check_no_peers(run_peer, "cuBLAS:");
    assert_fails(run_peer(&bytes, &data), JG_ERR_UNSUPPORTED, "no peer in cuBLAS: it takes no 8-bit floats");
    assert_fails(run_peer(&odd, &data), JG_ERR_UNSUPPORTED, "cublasGemmEx: CUBLAS_STATUS_NOT_SUPPORTED");
}

/* One item goes the way without a batch. */
static void batches_of_cublas(void **state)
{
    (void)state;
    jg_problem p = make_problem(0, 0, BATCHED, 1);
    assert_ok(bench_peer_create(&peer, NULL));
    check(run_peer, &p, 1);
    assert_string_equal(fake->call, "cublasGemmStridedBatchedEx");
    assert_int_equal(fake->batch, 3);
    p.batch = 1;
    check(run_peer, &p, 1);
    assert_string_equal(fake->call, "cublasGemmEx");
}

/* ---- settings ---- */

static void settings_of_cublas(void **state)
{
    (void)state;
    const jg_operands first = no_data(FAKE_STREAM), second = no_data((void *)32);
    assert_ok(bench_peer_create(&peer, FAKE_STREAM));
    assert_ok(bench_peer_workspace(&peer, FAKE_WORKSPACE, 4096));
    assert_ok(bench_peer_sm_target(&peer, 7));
    for (int i = 0; i < 3; i++) {
        assert_ok(bench_peer_gemm(&peer, &one, i ? &second : &first));
        assert_ptr_equal(fake->stream, i ? second.stream : first.stream);
        assert_int_equal((uintptr_t)fake->workspace, FAKE_WORKSPACE);
        assert_int_equal(fake->workspace_bytes, 4096);
        assert_int_equal(fake->sm_target, 7);
    }
    assert_int_equal(fake->workspaces, 2); /* once more for the other stream, and no further time */
    assert_ok(bench_peer_sm_target(&peer, 0));
    assert_ok(bench_peer_gemm(&peer, &one, &second));
    assert_int_equal(fake->sm_target, 0);
    assert_fails(bench_peer_sm_target(&peer, -1), JG_ERR_UNSUPPORTED, "cublasSetSmCountTarget: CUBLAS_STATUS_INVALID_VALUE");
    assert_fails(bench_peer_workspace(&peer, 1, 64), JG_ERR_UNSUPPORTED, "cublasSetWorkspace: CUBLAS_STATUS_INVALID_VALUE");
    assert_ok(bench_peer_gemm(&peer, &one, &first));
    assert_int_equal((uintptr_t)fake->workspace, FAKE_WORKSPACE);

    /* The next handle begins without them. */
    bench_peer_close(&peer);
    assert_ok(bench_peer_create(&peer, NULL));
    assert_ok(bench_peer_gemm(&peer, &one, &first));
    assert_null(fake->workspace);
    assert_int_equal(fake->sm_target, 0);
}

/* A change of stream that fails halfway is made good by the next call, also by one that goes back. */
static void streams_of_cublas(void **state)
{
    (void)state;
    const jg_operands first = no_data(FAKE_STREAM), second = no_data((void *)32);
    assert_ok(bench_peer_create(&peer, FAKE_STREAM));
    assert_ok(bench_peer_workspace(&peer, FAKE_WORKSPACE, 4096));
    fake->refuse = "cublasSetWorkspace_v2";
    fake->status = 14;
    assert_fails(bench_peer_gemm(&peer, &one, &second), JG_ERR_DEVICE, "cublasSetWorkspace: CUBLAS_STATUS_INTERNAL_ERROR");
    fake->refuse = NULL;
    assert_ok(bench_peer_gemm(&peer, &one, &first));
    assert_ptr_equal(fake->stream, FAKE_STREAM);
    assert_int_equal((uintptr_t)fake->workspace, FAKE_WORKSPACE);
}

static void old_cublas(void **state)
{
    (void)state;
    bench_peer old;
    const jg_operands data = no_data(NULL);
    fake_cublas *older = fake_cublas_open(OLD);
    assert_ok(bench_peer_open(fake_cublas_path(OLD), &old));
    assert_ok(bench_peer_create(&old, NULL));
    assert_fails(bench_peer_sm_target(&old, 5), JG_ERR_NOT_FOUND, "cublasSetSmCountTarget");
    assert_ok(bench_peer_gemm(&old, &one, &data));
    bench_peer_close(&old);
    assert_int_equal(older->handles, 0);
}

/* ---- failures ---- */

/* Products that cuBLAS cannot take at all, or that are none. */
static void products_that_are_refused(void **state)
{
    (void)state;
    const jg_operands data = no_data(NULL);
    const jg_problem wide = {.m = 1, .n = 1, .k = 1, .ldb = (int64_t)INT_MAX + 1}, bad = {.m = 1, .n = 1, .k = 2, .lda = 1};
    assert_ok(bench_peer_create(&peer, NULL));
    assert_fails(bench_peer_gemm(&peer, &wide, &data), JG_ERR_UNSUPPORTED, "leading dimensions up to 2147483647");
    assert_fails(bench_peer_gemm(&peer, &bad, &data), JG_ERR_LEADING_DIMENSION, "lda = 1");
    assert_int_equal(fake->products, 0);
}

static void statuses_have_names(void **state)
{
    (void)state;
    char text[128];
    jg_problem batch = one;
    const jg_operands data = no_data(NULL);
    batch.batch = 2;
    batch.stride_c = 1;
    assert_ok(bench_peer_create(&peer, NULL));
    for (size_t i = 0; i < COUNT(statuses); i++) {
        fake->status = statuses[i].number;
        fake->refuse = "cublasGemmEx";
        snprintf(text, sizeof text, "cublasGemmEx: %s", statuses[i].name);
        assert_fails(bench_peer_gemm(&peer, &one, &data), statuses[i].status, text);
        fake->refuse = "cublasGemmStridedBatchedEx";
        snprintf(text, sizeof text, "cublasGemmStridedBatchedEx: %s", statuses[i].name);
        assert_fails(bench_peer_gemm(&peer, &batch, &data), statuses[i].status, text);
    }
}

/* After a failed start there is nothing to close, and the next start works. */
static void starts_that_fail(void **state)
{
    (void)state;
    static const struct { const char *refuse, *text; } rows[] = {
        {"cublasCreate_v2", "cublasCreate: CUBLAS_STATUS_NOT_INITIALIZED"},
        {"cublasSetStream_v2", "cublasSetStream: CUBLAS_STATUS_NOT_INITIALIZED"},
        {"cublasSetMathMode", "cublasSetMathMode: CUBLAS_STATUS_NOT_INITIALIZED"},
    };
    fake->status = 1;
    for (size_t i = 0; i < COUNT(rows); i++) {
        fake->refuse = rows[i].refuse;
        assert_fails(bench_peer_create(&peer, NULL), JG_ERR_DEVICE, rows[i].text);
        assert_null(peer.handle);
        assert_int_equal(fake->handles, 0);
        bench_peer_close(&peer);
    }
    fake->refuse = NULL;
    assert_ok(bench_peer_create(&peer, NULL));
    assert_int_equal(fake->handles, 1);
}

/* ---- finding the libraries ---- */

static void libraries_that_are_none(void **state)
{
    (void)state;
    bench_peer none;
    assert_fails(bench_peer_open("no-such-cublas.so", &none), JG_ERR_NOT_FOUND, "no cuBLAS to compare with: no-such-cublas");
    assert_fails(bench_peer_open("libc.so.6", &none), JG_ERR_NOT_FOUND, "libc.so.6 has no cublasCreate_v2");
    bench_peer_close(&none);
}

/* What a toolkit has in its folder: a file that cannot be opened, as for another architecture, and one that can. */
static void put_library(const char *home, const char *folder)
{
    char path[PATH_MAX], bad[PATH_MAX + 32], good[PATH_MAX + 32], *target = realpath(fake_cublas_path(NEW), NULL);
    snprintf(path, sizeof path, "%s", home);
    for (char part[64]; sscanf(folder, "/%63[^/]", part) == 1; folder += 1 + strlen(part)) {
        snprintf(path + strlen(path), sizeof path - strlen(path), "/%s", part);
        assert_int_equal(mkdir(path, 0700), 0);
    }
    snprintf(bad, sizeof bad, "%s/libjg_no_such_peer.so.1", path);
    snprintf(good, sizeof good, "%s/libjg_no_such_peer.so.2", path);
    scratch_write(bad, "none", 4);
    assert_non_null(target);
    assert_int_equal(symlink(target, good), 0);
    free(target);
}

static void libraries_of_toolkits(void **state)
{
    (void)state;
    static const char *const folders[] = {"/lib64", "/targets/some-linux/lib"};
    static const bench_symbol symbol = {0, "cublasCreate_v2", 0};
    const char *was = getenv("CUDA_HOME");
    char *saved = was ? strdup(was) : NULL;
    for (size_t i = 0; i < COUNT(folders); i++) {
        char home[4096];
        void *create = NULL;
        scratch_make(home);
        setenv("CUDA_HOME", home, 1);
        assert_fails(bench_cublas_load("peer", "libjg_no_such_peer", NULL, &symbol, 1, &create), JG_ERR_NOT_FOUND, "no peer");
        assert_null(create);
        put_library(home, folders[i]);
        assert_ok(bench_cublas_load("peer", "libjg_no_such_peer", NULL, &symbol, 1, &create));
        assert_ptr_equal(create, (void *)(uintptr_t)peer.create);
        scratch_remove(home);
    }
    if (saved) setenv("CUDA_HOME", saved, 1);
    else unsetenv("CUDA_HOME");
    free(saved);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_peer, close_peer)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(products_of_cublas),
        TEST(arithmetics_of_cublas),
        TEST(batches_of_cublas),
        TEST(settings_of_cublas),
        TEST(streams_of_cublas),
        TEST(old_cublas),
        TEST(products_that_are_refused),
        TEST(statuses_have_names),
        TEST(starts_that_fail),
        TEST(libraries_that_are_none),
        TEST(libraries_of_toolkits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
