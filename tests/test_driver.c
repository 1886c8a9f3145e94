/* src/driver.c: opening a driver library, what each way of failing becomes, and the table of errors. */
#include "gemm_fixture.h"

#include "driver.h"

static void the_table_is_complete(void **state)
{
    (void)state;
    driver *d;
    assert_status(driver_open(fake_path(), &d), JG_OK);
    assert_int_equal(d->version, 13000);
#define CHECK(name, symbol, parameters) assert_non_null(d->name);
    DRIVER_FUNCTIONS(CHECK)
#undef CHECK
    assert_int_equal(fx.fake->calls("cuInit"), 1);
    assert_int_equal(fx.fake->all_calls(), 2); /* and cuDriverGetVersion */
    driver_close(d);
    driver_close(NULL);
}

static void a_missing_library_is_named(void **state)
{
    (void)state;
    driver *d = (driver *)&d;
    assert_status(driver_open("/nonexistent/libcuda.so", &d), JG_ERR_NO_DRIVER);
    assert_null(d);
    assert_says(jg_last_error(), "/nonexistent/libcuda.so");
    assert_says(jg_last_error(), "JITGEMM_DRIVER");
}

static void a_missing_function_is_named(void **state)
{
    (void)state;
    driver *d;
    assert_status(driver_open("libm.so.6", &d), JG_ERR_NO_DRIVER);
    assert_null(d);
    assert_says(jg_last_error(), "libm.so.6 has no cuInit");
    assert_says(jg_last_error(), "11.4");
}

static void an_old_driver_is_refused(void **state)
{
    (void)state;
    driver *d;
    fx.fake->set_version(11030);
    assert_status(driver_open(fake_path(), &d), JG_ERR_NO_DRIVER);
    assert_null(d);
    assert_says(jg_last_error(), "CUDA 11.3");
    fx.fake->set_version(11040);
    assert_status(driver_open(fake_path(), &d), JG_OK);
    assert_int_equal(d->version, 11040);
    driver_close(d);
}

static void errors_of_cuinit(void **state)
{
    (void)state;
    driver *d;
    fx.fake->fail_call("cuInit", 1, CUDA_ERROR_NO_DEVICE, FAKE_ONCE);
    assert_status(driver_open(fake_path(), &d), JG_ERR_NO_DEVICE);
    assert_null(d);
    assert_says(jg_last_error(), "cuInit: CUDA_ERROR_NO_DEVICE");
    fx.fake->fail_call("cuInit", 1, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, FAKE_ONCE);
    assert_status(driver_open(fake_path(), &d), JG_ERR_DEVICE); /* there, and broken */
    assert_says(jg_last_error(), "803");
    fx.fake->fail_call("cuInit", 1, CUDA_ERROR_STUB_LIBRARY, FAKE_ONCE);
    assert_status(driver_open(fake_path(), &d), JG_ERR_NO_DRIVER);
}

static void every_sticky_error_means_device_lost(void **state)
{
    (void)state;
    static const CUresult sticky[] = {
        CUDA_ERROR_ILLEGAL_ADDRESS, CUDA_ERROR_LAUNCH_FAILED, CUDA_ERROR_LAUNCH_TIMEOUT, CUDA_ERROR_ECC_UNCORRECTABLE,
        CUDA_ERROR_HARDWARE_STACK_ERROR, CUDA_ERROR_ILLEGAL_INSTRUCTION, CUDA_ERROR_MISALIGNED_ADDRESS,
        CUDA_ERROR_INVALID_ADDRESS_SPACE, CUDA_ERROR_INVALID_PC, CUDA_ERROR_ASSERT, CUDA_ERROR_CONTEXT_IS_DESTROYED,
        CUDA_ERROR_DEINITIALIZED,
    };
    static const CUresult others[] = {
        CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_NOT_FOUND, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, CUDA_ERROR_NO_BINARY_FOR_GPU,
        CUDA_ERROR_INVALID_CONTEXT, CUDA_ERROR_INVALID_HANDLE,
    };
    driver *d;
    assert_status(driver_open(fake_path(), &d), JG_OK);
    for (size_t i = 0; i < sizeof sticky / sizeof sticky[0]; i++) {
        assert_status(driver_error(d, sticky[i], JG_ERR_LOAD, "doing"), JG_ERR_DEVICE_LOST);
        assert_says(jg_last_error(), "close and open again");
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        assert_status(driver_error(d, others[i], JG_ERR_LOAD, "doing"), JG_ERR_LOAD);
        assert_null(strstr(jg_last_error(), "close and open again"));
    }
    assert_status(driver_error(d, CUDA_ERROR_OUT_OF_MEMORY, JG_ERR_LOAD, "doing"), JG_ERR_NO_MEMORY);
    driver_close(d);
}

static void error_texts_name_and_describe(void **state)
{
    (void)state;
    driver *d;
    assert_status(driver_open(fake_path(), &d), JG_OK);
    driver_error(d, CUDA_ERROR_NOT_FOUND, JG_ERR_LOAD, "finding it");
    assert_string_equal(jg_last_error(), "finding it: CUDA_ERROR_NOT_FOUND 500 (named symbol not found)");
    driver_error(d, (CUresult)12345, JG_ERR_LOAD, "finding it");
    assert_string_equal(jg_last_error(), "finding it: unknown CUDA error 12345 (no description)");
    driver_close(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(the_table_is_complete),      FIXTURE_TEST(a_missing_library_is_named),
        FIXTURE_TEST(a_missing_function_is_named), FIXTURE_TEST(an_old_driver_is_refused),
        FIXTURE_TEST(errors_of_cuinit),           FIXTURE_TEST(every_sticky_error_means_device_lost),
        FIXTURE_TEST(error_texts_name_and_describe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
