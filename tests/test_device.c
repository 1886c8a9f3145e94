/* src/device.c: which device and which context are taken, the limits that plans get, entering and leaving. */
#include "gemm_fixture.h"

#include "device.h"

static const jg_options as_auto = {.device = JG_DEVICE_AUTO}, as_cuda = {.device = JG_DEVICE_CUDA}, as_cpu = {.device = JG_DEVICE_CPU};

static void limits_come_from_the_table(void **state)
{
    (void)state;
    limits l;
    assert_status(limits_of_arch(87, 0, &l), JG_OK);
    assert_int_equal(l.arch->number, 87);
    assert_int_equal(l.sm_count, 16);
    assert_int_equal(l.shared_per_block, 163 * 1024);
    assert_status(limits_of_arch(87, 8, &l), JG_OK);
    assert_int_equal(l.sm_count, 8);
    assert_status(limits_of_arch(88, 0, &l), JG_OK); /* the nearest older one */
    assert_int_equal(l.arch->number, 87);
    assert_status(limits_of_arch(61, 0, &l), JG_ERR_ARCH);
    assert_says(jg_last_error(), "sm_61");
    assert_says(jg_last_error(), "sm_87");
}

static void the_current_context_is_bound(void **state)
{
    (void)state;
    device d;
    CUcontext mine = fx.fake->make_context();
    driver *boot;
    assert_status(driver_open(fake_path(), &boot), JG_OK);
    fx.fake->push(mine);
    assert_status(device_open(&as_cuda, fake_path(), &d), JG_OK);
    assert_ptr_equal(d.context, mine);
    assert_false(d.retained);
    assert_true(d.exact);
    assert_int_equal(fx.fake->calls("cuDevicePrimaryCtxRetain"), 0);
    device_close(&d);
    assert_null(d.driver);
    assert_int_equal(fx.fake->calls("cuDevicePrimaryCtxRelease_v2"), 0);
    fx.fake->pop();
    driver_close(boot);
}

static void else_the_primary_context_is_retained(void **state)
{
    (void)state;
    device d;
    assert_status(device_open(&as_auto, fake_path(), &d), JG_OK);
    assert_true(d.retained);
    assert_int_equal(fx.fake->primary_references(), 1);
    assert_int_equal(fx.fake->depth(), 0); /* and not made current */
    device_close(&d);
    assert_int_equal(fx.fake->primary_references(), 0);
}

static void the_devices_own_limits_win(void **state)
{
    (void)state;
    device d;
    fx.fake->set_attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 4);
    fx.fake->set_attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 100000);
    fx.fake->set_attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 99000);
    fx.fake->set_attribute(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 512);
    fx.fake->set_attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 32768);
    fx.fake->set_attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 1024);
    fx.fake->set_attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, -1); /* unknown to it */
    assert_status(device_open(&as_cuda, fake_path(), &d), JG_OK);
    assert_int_equal(d.limits.sm_count, 4);
    assert_int_equal(d.limits.shared_per_sm, 100000);
    assert_int_equal(d.limits.shared_per_block, 99000);
    assert_int_equal(d.limits.shared_reserved, 512);
    assert_int_equal(d.limits.registers_per_sm, 32768);
    assert_int_equal(d.limits.threads_per_sm, 1024);
    assert_int_equal(d.limits.blocks_per_sm, 16); /* the table's */
    device_close(&d);
}

static void a_newer_chip_is_planned_for_as_its_elder(void **state)
{
    (void)state;
    device d;
    fx.fake->set_capability(88);
    assert_status(device_open(&as_cuda, fake_path(), &d), JG_OK);
    assert_int_equal(d.limits.arch->number, 87);
    assert_false(d.exact);
    device_close(&d);
    jg_options options = as_cuda;
    options.arch = 88; /* the device's own number, though the table has no row for it */
    assert_status(device_open(&options, fake_path(), &d), JG_OK);
    device_close(&d);
    options.arch = 89; /* a row, but of a younger chip */
    assert_status(device_open(&options, fake_path(), &d), JG_ERR_ARCH);
    fx.fake->set_capability(61);
    assert_status(device_open(&as_auto, fake_path(), &d), JG_ERR_ARCH);
}

/* What measurements are good for: as planned for, and the kind of memory, as far as the driver tells. */
static void the_place_is_what_plans_are_made_for(void **state)
{
    (void)state;
    device d;
    const jg_options narrow = {.device = JG_DEVICE_CUDA, .arch = 80, .sm_count = 4};
    assert_status(device_open(&as_cuda, fake_path(), &d), JG_OK);
    assert_string_equal(d.place, "sm_87 16sm unknown");
    device_close(&d);
    fx.fake->set_attribute(CU_DEVICE_ATTRIBUTE_INTEGRATED, 1);
    assert_status(device_open(&as_cuda, fake_path(), &d), JG_OK);
    assert_string_equal(d.place, "sm_87 16sm shared");
    device_close(&d);
    fx.fake->set_attribute(CU_DEVICE_ATTRIBUTE_INTEGRATED, 0);
    fx.fake->set_attribute(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 6144);
    assert_status(device_open(&narrow, fake_path(), &d), JG_OK);
    assert_string_equal(d.place, "sm_80 4sm 6144bit dedicated");
    device_close(&d);
    assert_status(device_open(&as_cpu, fake_path(), &d), JG_OK);
    assert_string_equal(d.place, "");
}

static void a_wrong_arch_or_sm_count_is_refused(void **state)
{
    (void)state;
    device d;
    jg_options options = as_cuda;
    options.arch = 90;
    assert_status(device_open(&options, fake_path(), &d), JG_ERR_ARCH);
    assert_says(jg_last_error(), "options.arch is 90");
    assert_says(jg_last_error(), "sm_87");
    options.arch = 87;
    assert_status(device_open(&options, fake_path(), &d), JG_OK);
    device_close(&d);
    options.sm_count = 17; /* the double has 16 */
    assert_status(device_open(&options, fake_path(), &d), JG_ERR_VALUE);
    assert_says(jg_last_error(), "options.sm_count is 17 but the device has 16");
    options.sm_count = 8;
    options.device = JG_DEVICE_CPU;
    options.arch = 90;
    assert_status(device_open(&options, fake_path(), &d), JG_OK);
    assert_null(d.driver);
    assert_int_equal(d.limits.arch->number, 90);
    assert_int_equal(d.limits.sm_count, 8);
    options.arch = 12;
    assert_status(device_open(&options, fake_path(), &d), JG_ERR_ARCH);
}

/* On request a large chip is planned for as a small one: the narrower limits of both, PTX instead of cubins. */
static void a_chip_can_be_planned_for_as_an_older_one(void **state)
{
    (void)state;
    device d;
    jg_options options = as_cuda;
    fx.fake->set_capability(90);
    fx.fake->set_attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 132);
    fx.fake->set_attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 227 * 1024);
    fx.fake->set_attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048);
    fx.fake->set_attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 32768);
    options.arch = 87;
    options.sm_count = 16;
    assert_status(device_open(&options, fake_path(), &d), JG_OK);
    assert_int_equal(d.limits.arch->number, 87);
    assert_int_equal(d.number, 90);
    assert_false(d.exact);
    assert_int_equal(d.limits.sm_count, 16);
    assert_int_equal(d.limits.shared_per_block, 163 * 1024);
    assert_int_equal(d.limits.threads_per_sm, 1536);
    assert_int_equal(d.limits.registers_per_sm, 32768);
    device_close(&d);
    options.arch = 0;
    assert_status(device_open(&options, fake_path(), &d), JG_OK);
    assert_true(d.exact);
    assert_int_equal(d.limits.sm_count, 16);
    assert_int_equal(d.limits.shared_per_block, 227 * 1024);
    device_close(&d);
    options.arch = 88; /* a number without a row of its own */
    assert_status(device_open(&options, fake_path(), &d), JG_ERR_ARCH);
}

/* AUTO falls back only where there is no GPU. */
static void auto_takes_the_cpu_where_there_is_no_gpu(void **state)
{
    (void)state;
    device d;
    assert_status(device_open(&as_auto, "/nonexistent/libcuda.so", &d), JG_OK);
    assert_null(d.driver);
    assert_int_equal(d.limits.arch->number, 87);
    assert_status(device_open(&as_cuda, "/nonexistent/libcuda.so", &d), JG_ERR_NO_DRIVER);
    assert_status(device_open(&as_auto, "cpu", &d), JG_OK);
    assert_null(d.driver);
    assert_status(device_open(&as_cpu, fake_path(), &d), JG_OK);
    assert_null(d.driver);
    fx.fake->set_devices(0);
    assert_status(device_open(&as_auto, fake_path(), &d), JG_OK);
    assert_null(d.driver);
    assert_status(device_open(&as_cuda, fake_path(), &d), JG_ERR_NO_DEVICE);
    assert_says(jg_last_error(), "no device");
}

static void a_gpu_that_fails_is_an_error(void **state)
{
    (void)state;
    static const struct {
        const char *symbol;
        unsigned nth;
        jg_status status;
    } rows[] = {
        {"cuDeviceGetCount", 1, JG_ERR_DEVICE}, {"cuDeviceGet", 1, JG_ERR_DEVICE},
        {"cuDevicePrimaryCtxRetain", 1, JG_ERR_DEVICE}, {"cuDeviceGetAttribute", 1, JG_ERR_DEVICE},
        {"cuDeviceGetAttribute", 2, JG_ERR_DEVICE},
    };
    device d;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        fx.fake->fail_call(rows[i].symbol, rows[i].nth, CUDA_ERROR_INVALID_VALUE, FAKE_ONCE);
        assert_status(device_open(&as_cuda, fake_path(), &d), rows[i].status);
        assert_says(jg_last_error(), rows[i].symbol);
        assert_null(d.driver);
        assert_int_equal(fx.fake->primary_references(), 0);
    }
    fx.fake->fail_call("cuDeviceGetAttribute", 1, CUDA_ERROR_INVALID_VALUE, FAKE_ONCE);
    assert_status(device_open(&as_auto, fake_path(), &d), JG_ERR_DEVICE);
    fx.fake->fail_call("cuDevicePrimaryCtxRetain", 1, CUDA_ERROR_ECC_UNCORRECTABLE, FAKE_ONCE);
    assert_status(device_open(&as_auto, fake_path(), &d), JG_ERR_DEVICE_LOST);

    CUcontext mine = fx.fake->make_context();
    fx.fake->push(mine);
    fx.fake->fail_call("cuCtxGetDevice", 1, CUDA_ERROR_INVALID_VALUE, FAKE_ONCE);
    assert_status(device_open(&as_auto, fake_path(), &d), JG_ERR_DEVICE);
    fx.fake->pop();
}

static void entering_pushes_only_where_needed(void **state)
{
    (void)state;
    device d;
    device_scope scope;
    assert_status(device_open(&as_cuda, fake_path(), &d), JG_OK);
    assert_status(device_enter(&d, &scope), JG_OK);
    assert_true(scope.pushed);
    assert_ptr_equal(fx.fake->current(), d.context);
    device_scope inner;
    assert_status(device_enter(&d, &inner), JG_OK);
    assert_false(inner.pushed);
    device_leave(&d, &inner);
    assert_ptr_equal(fx.fake->current(), d.context);
    device_leave(&d, &scope);
    assert_int_equal(fx.fake->depth(), 0);

    fx.fake->fail_call("cuCtxPushCurrent_v2", 1, CUDA_ERROR_CONTEXT_IS_DESTROYED, FAKE_ONCE);
    assert_status(device_enter(&d, &scope), JG_ERR_DEVICE_LOST);
    assert_false(scope.pushed);
    assert_says(jg_last_error(), "cuCtxPushCurrent");
    device_close(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(limits_come_from_the_table), FIXTURE_TEST(the_current_context_is_bound),
        FIXTURE_TEST(else_the_primary_context_is_retained), FIXTURE_TEST(the_devices_own_limits_win),
        FIXTURE_TEST(a_newer_chip_is_planned_for_as_its_elder), FIXTURE_TEST(a_chip_can_be_planned_for_as_an_older_one),
        FIXTURE_TEST(the_place_is_what_plans_are_made_for), FIXTURE_TEST(a_wrong_arch_or_sm_count_is_refused),
        FIXTURE_TEST(auto_takes_the_cpu_where_there_is_no_gpu), FIXTURE_TEST(a_gpu_that_fails_is_an_error),
        FIXTURE_TEST(entering_pushes_only_where_needed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
