/* cuBLASLt as jitgemm-bench calls it (tools/bench_lt.h), against a double that computes on the host and refuses what it is told
 * to: products, settings, choices, failures, and that nothing is left over. */
#include "peers_fixture.h"

#include "tools/bench_lt.h"

#include <limits.h>
#include <math.h>

/* What cuBLASLt writes its choices into has to be laid out as it thinks. */
#if defined(__has_include)
#if __has_include(<cublasLt.h>)
#include <cublasLt.h>
#define SAME_PLACE(ours, theirs)                                                                                   \
    _Static_assert(offsetof(bench_lt_choice, ours) == offsetof(cublasLtMatmulHeuristicResult_t, theirs) &&         \
                       sizeof(((bench_lt_choice *)0)->ours) == sizeof(((cublasLtMatmulHeuristicResult_t *)0)->theirs), \
                   #theirs);
SAME_PLACE(algorithm, algo)
SAME_PLACE(workspace_bytes, workspaceSize)
SAME_PLACE(state, state)
SAME_PLACE(waves, wavesCount)
SAME_PLACE(reserved, reserved)
_Static_assert(sizeof(bench_lt_choice) == sizeof(cublasLtMatmulHeuristicResult_t), "a choice");
#endif
#endif

static bench_lt lt;

static int open_lt(void **state)
{
    (void)state;
    fake = fake_cublas_open(NEW);
    if (bench_lt_open(fake_cublas_path(NEW), &lt) == JG_OK) return 0;
    print_error("%s\n", jg_last_error());
    return -1;
}

/* Closing what is closed does nothing, so every test ends with everything given back. */
static int close_lt(void **state)
{
    (void)state;
    bench_lt_close(&lt);
    return fake->handles || fake->descriptors ? -1 : 0;
}

/* ---- products ---- */

static jg_status run_lt(const jg_problem *p, const jg_operands *data)
{
    const jg_status status = bench_lt_prepare(&lt, p);
    return status == JG_OK ? bench_lt_gemm(&lt, lt.count - 1, data) : status;
}

static void products_of_lt(void **state)
{
    (void)state;
    assert_ok(bench_lt_create(&lt, 0, 0, 0));
    assert_int_equal(lt.version, 990902);
    const unsigned checked = check_all(run_lt, EMPTY_BATCH);
    assert_int_equal(fake->products, checked);
    assert_ptr_equal(fake->stream, FAKE_STREAM);
}

/* Codes of e4m3 by a table of their own: 1.mmm * 2^(e - 7), and below 8 m * 2^-9. */
static double e4m3(int code)
{
    return code < 8 ? code / 512.0 : (8 + code % 8) / 8.0 * (1 << (code / 8)) / 128;
}

/* Other arithmetics, what it takes no part in, and what it refuses itself. */
static void arithmetics_of_lt(void **state)
{
    (void)state;
    const jg_problem upright = {.m = 8, .n = 8, .k = 8, .type_a = JG_E4M3};
    float c[M8 * N8];
    assert_ok(bench_lt_create(&lt, 0, 0, 0));
    check_modes(run_lt);
    check_s8(run_lt);
    check_no_peers(run_lt, "cuBLASLt:");
    run_bytes(run_lt, JG_E4M3, JG_E4M3, c);
    assert_int_equal(fake->compute, 68);
    for (int i = 0; i < M8; i++)
        for (int j = 0; j < N8; j++) {
            double sum = 0;
            for (int s = 0; s < K8; s++) {
                const int b = (100 - (j * K8 + s)) & 0xff;
                sum += e4m3(i * K8 + s + 1) * (b & 0x80 ? -e4m3(b & 0x7f) : e4m3(b));
            }
            assert_true(fabs((double)c[i * N8 + j] - 2 * sum) <= 1e-5 * fabs(sum) + 1e-3);
        }
    run_bytes(run_lt, JG_E5M2, JG_E4M3, c);
    assert_fails(bench_lt_prepare(&lt, &upright), JG_ERR_UNSUPPORTED, "AlgoGetHeuristic: CUBLAS_STATUS_NOT_SUPPORTED");
}

/* ---- settings ---- */

static void settings_of_lt(void **state)
{
    (void)state;
    jg_problem aligned = one;
    const jg_operands data = no_data(FAKE_STREAM);
    aligned.align_bytes = 4;
    assert_ok(bench_lt_create(&lt, FAKE_WORKSPACE, 4096, 5));
    for (int i = 0; i < 2; i++) {
        assert_ok(bench_lt_prepare(&lt, i ? &aligned : &one));
        assert_int_equal(fake->asked, BENCH_LT_CHOICES);
        assert_int_equal(fake->max_workspace_bytes, 4096);
        assert_int_equal(fake->heuristic_sm_target, 5);
        for (int x = 0; x < 4; x++) assert_int_equal(fake->alignments[x], i ? 4 : 256);
    }
    assert_ok(bench_lt_gemm(&lt, 0, &data));
    assert_ptr_equal(fake->stream, FAKE_STREAM);
    assert_int_equal((uintptr_t)fake->workspace, FAKE_WORKSPACE);
    assert_int_equal(fake->workspace_bytes, 4096);
    assert_int_equal(fake->sm_target, 5);

    bench_lt_close(&lt);
    assert_ok(bench_lt_create(&lt, 0, 4096, 0)); /* no memory is no bytes */
    assert_ok(bench_lt_prepare(&lt, &one));
    assert_int_equal(fake->max_workspace_bytes, 0);
    assert_int_equal(fake->heuristic_sm_target, 0);
    assert_ok(bench_lt_gemm(&lt, 0, &data));
    assert_null(fake->workspace);
}

/* ---- the choices of cuBLASLt ---- */

static void choices(void **state)
{
    (void)state;
    static const int used[] = {0, 2, 4}, after[] = {1};
    const jg_operands data = no_data(NULL);
    assert_ok(bench_lt_create(&lt, FAKE_WORKSPACE, 256, 0));
    fake->choices = 6;
    fake->choice[1].state = 15;
    fake->choice[3].workspace_bytes = 257;
    fake->choice[4].workspace_bytes = 256;
    fake->choice[5].state = 7;
    assert_ok(bench_lt_prepare(&lt, &one));
    assert_int_equal(lt.count, COUNT(used));
    for (int i = 0; i < lt.count; i++) {
        assert_ok(bench_lt_gemm(&lt, i, &data));
        assert_int_equal(fake->choice_used, used[i]);
    }
    assert_fails(bench_lt_gemm(&lt, 3, &data), JG_ERR_VALUE, "choice 3; cuBLASLt has 3");
    assert_fails(bench_lt_gemm(&lt, -1, &data), JG_ERR_VALUE, "choice -1");

    /* Another product has other ones, and none of those before. */
    fake->choices = 2;
    fake->choice[0].state = 15;
    fake->choice[1].state = 0;
    assert_ok(bench_lt_prepare(&lt, &one));
    assert_int_equal(lt.count, 1);
    assert_ok(bench_lt_gemm(&lt, 0, &data));
    assert_int_equal(fake->choice_used, after[0]);
    assert_int_equal(fake->descriptors, 5);

    fake->choices = FAKE_CUBLAS_CHOICES;
    memset(fake->choice, 0, sizeof fake->choice);
    assert_ok(bench_lt_prepare(&lt, &one));
    assert_int_equal(lt.count, BENCH_LT_CHOICES);
    assert_ok(bench_lt_gemm(&lt, BENCH_LT_CHOICES - 1, &data));
    assert_int_equal(fake->choice_used, BENCH_LT_CHOICES - 1);
}

static void no_choices(void **state)
{
    (void)state;
    const jg_operands data = no_data(NULL);
    const jg_problem empty = {.m = 0, .n = 1, .k = 1}, no_sum = {.m = 1, .n = 1, .k = 0}, bad = {.m = -1};
    assert_fails(bench_lt_gemm(&lt, 0, &data), JG_ERR_VALUE, "cuBLASLt has 0");
    assert_ok(bench_lt_create(&lt, 0, 0, 0));
    assert_ok(bench_lt_prepare(&lt, &one));
    for (int i = 0; i < 2; i++) {
        fake->choices = i;
        fake->choice[0].workspace_bytes = 1;
        assert_fails(bench_lt_prepare(&lt, &one), JG_ERR_UNSUPPORTED, "no choice for this product");
        assert_int_equal(lt.count, 0);
        assert_int_equal(fake->descriptors, 0);
        assert_fails(bench_lt_gemm(&lt, 0, &data), JG_ERR_VALUE, "cuBLASLt has 0");
    }
    assert_fails(bench_lt_prepare(&lt, &empty), JG_ERR_UNSUPPORTED, "no empty product");
    assert_fails(bench_lt_prepare(&lt, &no_sum), JG_ERR_UNSUPPORTED, "AlgoGetHeuristic: CUBLAS_STATUS_NOT_SUPPORTED");
    assert_fails(bench_lt_prepare(&lt, &bad), JG_ERR_SIZE, "m = -1");
}

/* ---- failures ---- */

static void products_that_are_refused(void **state)
{
    (void)state;
    const jg_problem wide = {.m = 1, .n = 1, .k = 1, .ldb = (int64_t)INT_MAX + 1}, bad = {.m = 1, .n = 1, .k = 2, .lda = 1};
    assert_ok(bench_lt_create(&lt, 0, 0, 0));
    assert_ok(bench_lt_prepare(&lt, &wide)); /* it counts in 64 bits */
    assert_fails(bench_lt_prepare(&lt, &bad), JG_ERR_LEADING_DIMENSION, "lda = 1");
    assert_int_equal(fake->descriptors, 0);
}

static void statuses_have_names(void **state)
{
    (void)state;
    char text[128];
    const jg_operands data = no_data(NULL);
    assert_ok(bench_lt_create(&lt, 0, 0, 0));
    assert_ok(bench_lt_prepare(&lt, &one));
    fake->refuse = "cublasLtMatmul";
    for (size_t i = 0; i < COUNT(statuses); i++) {
        fake->status = statuses[i].number;
        snprintf(text, sizeof text, "cublasLtMatmul: %s", statuses[i].name);
        assert_fails(bench_lt_gemm(&lt, 0, &data), statuses[i].status, text);
    }
    fake->refuse = NULL;
    assert_ok(bench_lt_gemm(&lt, 0, &data));
}

/* After a failed start there is nothing to close, and the next start works. */
static void start_that_fails(void **state)
{
    (void)state;
    fake->refuse = "cublasLtCreate";
    fake->status = 1;
    assert_fails(bench_lt_create(&lt, 0, 0, 0), JG_ERR_DEVICE, "cublasLtCreate: CUBLAS_STATUS_NOT_INITIALIZED");
    assert_null(lt.handle);
    bench_lt_close(&lt);
    fake->refuse = NULL;
    assert_ok(bench_lt_create(&lt, 0, 0, 0));
    assert_int_equal(fake->handles, 1);
}

/* Each call that a product is prepared with fails once, the first time, the second, ... : nothing is left over, nothing of the
 * product before can be run, and the next preparation works. */
static void preparations_that_fail(void **state)
{
    (void)state;
    static const struct { const char *refuse; int calls; } rows[] = {
        {"cublasLtMatmulDescCreate", 1},
        {"cublasLtMatmulDescSetAttribute", 3},
        {"cublasLtMatrixLayoutCreate", 3},
        {"cublasLtMatrixLayoutSetAttribute", 6},
        {"cublasLtMatmulPreferenceCreate", 1},
        {"cublasLtMatmulPreferenceSetAttribute", 5},
        {"cublasLtMatmulAlgoGetHeuristic", 1},
    };
    jg_problem p = make_problem(0, 0, BATCHED, 1);
    const jg_operands data = no_data(NULL);
    p.align_bytes = 16;
    assert_ok(bench_lt_create(&lt, 0, 0, 3));
    for (size_t i = 0; i < COUNT(rows); i++)
        for (int call = 0; call <= rows[i].calls; call++) {
            char text[128];
            fake->refuse = NULL;
            assert_ok(bench_lt_prepare(&lt, &p));
            assert_int_equal(fake->descriptors, 5);
            fake->refuse = rows[i].refuse;
            fake->passes = call;
            fake->status = call % 2 ? 15 : 3;
            snprintf(text, sizeof text, "%s: CUBLAS_STATUS_%s", rows[i].refuse, call % 2 ? "NOT_SUPPORTED" : "ALLOC_FAILED");
            if (call == rows[i].calls) {
                assert_ok(bench_lt_prepare(&lt, &p)); /* there is no such call any more */
                continue;
            }
            assert_fails(bench_lt_prepare(&lt, &p), call % 2 ? JG_ERR_UNSUPPORTED : JG_ERR_DEVICE, text);
            assert_int_equal(fake->descriptors, 0);
            assert_fails(bench_lt_gemm(&lt, 0, &data), JG_ERR_VALUE, "cuBLASLt has 0");
        }
}

static void libraries_that_are_none(void **state)
{
    (void)state;
    bench_lt none;
    assert_fails(bench_lt_open("no-such-cublas.so", &none), JG_ERR_NOT_FOUND, "no cuBLASLt to compare with: no-such-cublas.so");
    assert_fails(bench_lt_open("libc.so.6", &none), JG_ERR_NOT_FOUND, "libc.so.6 has no cublasLtCreate");
    bench_lt_close(&none);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_lt, close_lt)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(products_of_lt),
        TEST(arithmetics_of_lt),
        TEST(settings_of_lt),
        TEST(choices),
        TEST(no_choices),
        TEST(products_that_are_refused),
        TEST(statuses_have_names),
        TEST(start_that_fails),
        TEST(preparations_that_fail),
        TEST(libraries_that_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
