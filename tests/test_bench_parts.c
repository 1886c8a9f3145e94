/* The parts of jitgemm-bench that touch a GPU or another process, as far as no GPU is needed: its kernels and its busy stream
 * on the software GPU, and the report of a cold-start process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/bench_busy.h"
#include "tools/bench_cold_child.h"

/* ---- the GPU ---- */

static bench_gpu gpu;

/* The software GPU lies in the build folder, which is not where this program looks. */
static int open_gpu(void **state)
{
    (void)state;
    char path[4096];
    const char *build = getenv("JG_TEST_BUILD_DIR");
    snprintf(path, sizeof path, "%s/lib/libjitgemm-swgpu.so", build ? build : "build");
    if (bench_gpu_open(path, &gpu) == JG_OK) return 0;
    print_error("%s\n", jg_last_error());
    return -1;
}

static int close_gpu(void **state)
{
    (void)state;
    bench_gpu_close(&gpu);
    return 0;
}

static void kernels_run(void **state)
{
    (void)state;
    CUstream stream;
    char argument[BENCH_ARGUMENT_BYTES] = {0};
    const bench_shape shape = {3, 2, 64, 1024}, large = {1, 1, 32, 100 * 1024};
    assert_true(gpu.software);
    assert_int_equal(gpu.arch, 87);
    assert_non_null(strstr(gpu.name, "Orin"));
    if (bench_gpu_start(&gpu) != JG_OK) fail_msg("%s", jg_last_error());
    assert_int_equal(bench_gpu_make_stream(&gpu, &stream), JG_OK);
    assert_int_equal(bench_gpu_launch_tiny(&gpu, &shape, stream, argument), CUDA_SUCCESS);
    assert_int_equal(bench_gpu_launch_tiny(&gpu, &large, stream, argument), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(bench_gpu_allow_shape(&gpu, &large), JG_OK);
    assert_int_equal(bench_gpu_launch_tiny(&gpu, &large, stream, argument), CUDA_SUCCESS);
    assert_int_equal(bench_gpu_launch_spin(&gpu, 1000, stream), JG_OK);
    assert_int_equal(bench_gpu_wait(&gpu, stream), JG_OK);
    assert_int_equal(gpu.stream_destroy(stream), CUDA_SUCCESS);
}

/* The software GPU's clock counts instructions, so a longer spin executes more of them. */
static void spin_takes_as_long_as_asked(void **state)
{
    (void)state;
    uint64_t blocks_and_instructions[2][3] = {{0}};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(bench_gpu_launch_spin(&gpu, i ? 5000 : 500, NULL), JG_OK);
        gpu.driver->counters(blocks_and_instructions[i], 3);
    }
    assert_in_range(blocks_and_instructions[0][2], 500, 600);
    assert_in_range(blocks_and_instructions[1][2], 5000, 5100);
}

static void matrices_are_zero(void **state)
{
    (void)state;
    bench_matrices m;
    unsigned char bytes[48];
    memset(bytes, 1, sizeof bytes);
    assert_int_equal(bench_matrices_allocate(&gpu, 48, 4, 2, &m), JG_OK);
    const jg_operands data = bench_matrices_data(&m, (CUstream)16);
    assert_true(data.a && data.b && data.c && data.a != data.b && data.b != data.c && data.a != data.c);
    assert_ptr_equal(data.stream, (void *)16);
    assert_int_equal(gpu.driver->memory_copy((CUdeviceptr)(uintptr_t)bytes, m.a, sizeof bytes), CUDA_SUCCESS);
    for (size_t i = 0; i < sizeof bytes; i++) assert_int_equal(bytes[i], 0);
    bench_matrices_free(&gpu, &m);
    assert_int_equal(m.a | m.b | m.c, 0);
    bench_matrices_free(&gpu, &m);
    assert_int_equal(bench_matrices_allocate(&gpu, 16, (size_t)1 << 60, 16, &m), JG_ERR_NO_MEMORY);
    assert_int_equal(m.a | m.b | m.c, 0);
}

static void busy_stream(void **state)
{
    (void)state;
    bench_busy b = {0};
    assert_int_equal(bench_busy_stop(&b), JG_OK); /* never started */
    assert_int_equal(bench_busy_start(&b, &gpu, 0), JG_OK);
    assert_int_equal(bench_busy_stop(&b), JG_OK);
    assert_int_equal(atomic_load(&b.kernels), 0);
    if (bench_busy_start(&b, &gpu, 1) != JG_OK) fail_msg("%s", jg_last_error());
    while (atomic_load(&b.kernels) < 5 && !atomic_load(&b.stop)) {}
    assert_int_equal(bench_busy_stop(&b), JG_OK);
    assert_true(atomic_load(&b.kernels) >= 5);
    assert_null(b.gpu); /* so that stopping it again does nothing */
    assert_int_equal(bench_busy_stop(&b), JG_OK);
}

/* What fails on its thread is told by the one who stops it. */
static void busy_stream_that_fails(void **state)
{
    (void)state;
    bench_busy b = {0};
    bench_gpu broken = gpu;
    broken.spin = NULL;
    bench_busy_start(&b, &broken, 1);
    assert_int_equal(bench_busy_stop(&b), JG_ERR_DEVICE);
    assert_non_null(strstr(jg_last_error(), "cuLaunchKernel"));
}

static void no_gpu(void **state)
{
    (void)state;
    bench_gpu none;
    assert_int_equal(bench_gpu_open("no-such-driver.so", &none), JG_ERR_NO_DRIVER);
    assert_non_null(strstr(jg_last_error(), "no-such-driver.so"));
    assert_non_null(strstr(jg_last_error(), "--driver swgpu"));
    bench_gpu_close(&none);
    assert_int_equal(bench_gpu_open("cpu", &none), JG_ERR_NO_DEVICE);
    bench_gpu_close(&none);
}

/* ---- reports of processes ---- */

static void cold_reports(void **state)
{
    (void)state;
    const cold_report r = {1, INT64_MAX, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    cold_report back;
    char text[COLD_TEXT_BYTES];
    cold_report_format(&r, text);
    assert_int_equal(cold_report_parse(text, &back), 0);
    assert_memory_equal(&r, &back, sizeof r);
    static const char *const bad[] = {"", "\n", "1 2 3", "1 2 3 4 5 6 7 8 9 10 end\n", "1 2 3 4 5 6 7 8 9 10 11",
                                      "1 2 3 4 5 6 7 8 9 10 11 12 end\n", "x 2 3 4 5 6 7 8 9 10 11 end\n",
                                      "1 2 3 4 5 6 7 8 9 10 11 end\nmore"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) assert_int_equal(cold_report_parse(bad[i], &back), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_run),
        cmocka_unit_test(spin_takes_as_long_as_asked),
        cmocka_unit_test(matrices_are_zero),
        cmocka_unit_test(busy_stream),
        cmocka_unit_test(busy_stream_that_fails),
        cmocka_unit_test(no_gpu),
        cmocka_unit_test(cold_reports),
    };
    return cmocka_run_group_tests(tests, open_gpu, close_gpu);
}
