/* Faults on demand through the driver's own entry points: every form of the two variables, what they count, and that a call
 * that fails on demand does nothing. */
#include "driver_fixture.h"

#include "src/swgpu/inject.h"

#include <pthread.h>
#include <time.h>

static void refuses(const char *name, const char *value, const char *wrong)
{
    set_only(name, value);
    assert_int_equal(cuInit(0), CUDA_ERROR_INVALID_VALUE);
    const char *text = error_text(CUDA_ERROR_INVALID_VALUE);
    assert_contains(text, wrong);
    assert_contains(text, name);
}

static void texts_of_what_is_wrong(void **state)
{
    (void)state;
    refuses("FAULT", "cuFoo:1:CUDA_ERROR_UNKNOWN", "has \"cuFoo:1:CUDA_ERROR_UNKNOWN\": the entry point is not known");
    refuses("FAULT", "cuMem:1:CUDA_ERROR_UNKNOWN", "the entry point is not known");
    refuses("FAULT", "cuMemAlloc_v:1:CUDA_ERROR_UNKNOWN", "the entry point is not known");
    refuses("FAULT", "cuMemAlloc_v3:1:CUDA_ERROR_UNKNOWN", "the entry point is not known");
    refuses("FAULT", ":1:CUDA_ERROR_UNKNOWN", "the entry point is not known");
    refuses("FAULT", "cuMemAlloc:0:CUDA_ERROR_UNKNOWN", "no number from 1 on");
    refuses("FAULT", "cuMemAlloc::CUDA_ERROR_UNKNOWN", "no number from 1 on");
    refuses("FAULT", "cuMemAlloc:+:CUDA_ERROR_UNKNOWN", "no number from 1 on");
    refuses("FAULT", "cuMemAlloc:1?:CUDA_ERROR_UNKNOWN", "no number from 1 on");
    refuses("FAULT", "cuMemAlloc:1+!:CUDA_ERROR_UNKNOWN", "no number from 1 on");
    refuses("FAULT", "cuMemAlloc:1000000001:CUDA_ERROR_UNKNOWN", "no number from 1 on");
    refuses("FAULT", "cuMemAlloc:1:CUDA_ERROR_FOO", "the error is not known");
    refuses("FAULT", "cuMemAlloc:1:CUDA_SUCCESS", "the error is not known");
    refuses("FAULT", "cuMemAlloc:1:0", "the error is not known");
    refuses("FAULT", "cuMemAlloc:1:", "the error is not known");
    refuses("FAULT", "cuMemAlloc:1", "the error is not known");
    refuses("FAULT", "cuMemAlloc:1:2:3", "the error is not known");
    refuses("FAULT", "cuMemAlloc:1:2,", "has \"\": the entry point is not known");
    refuses("FAULT", ",cuMemAlloc:1:2", "has \"\": the entry point is not known");
    refuses("FAULT", "cuMemAlloc:1:2,cuMemFree:x:2", "has \"cuMemFree:x:2\"");
    refuses("SLOW", "cuFoo:1", "the entry point is not known");
    refuses("SLOW", "cuMemAlloc", "not from 1 to 600000");
    refuses("SLOW", "cuMemAlloc:0", "not from 1 to 600000");
    refuses("SLOW", "cuMemAlloc:600001", "not from 1 to 600000");
    refuses("SLOW", "cuMemAlloc:1,", "has \"\"");
    char many[33 * 16] = "cuInit:9:1";
    for (int i = 1; i < 32; i++) strcat(many, ",cuInit:9:1");
    set_only("FAULT", many);
    assert_int_equal(cuInit(0), CUDA_SUCCESS);
    strcat(many, ",cuInit:9:1");
    refuses("FAULT", many, "more than 32 faults");
}

static CUresult try_allocate(void)
{
    CUdeviceptr address = 77;
    const CUresult result = cuMemAlloc(&address, 256);
    if (result != CUDA_SUCCESS) assert_true(address == 77); /* it did nothing */
    else assert_int_equal(cuMemFree(address), CUDA_SUCCESS);
    return result;
}

static void one_call_fails(void **state)
{
    (void)state;
    set_only("FAULT", "cuMemAlloc:2:CUDA_ERROR_OUT_OF_MEMORY,cuMemAlloc_v2:4:999");
    open_context();
    const CUresult expected[] = {CUDA_SUCCESS, CUDA_ERROR_OUT_OF_MEMORY, CUDA_SUCCESS, CUDA_ERROR_UNKNOWN, CUDA_SUCCESS};
    for (size_t i = 0; i < 5; i++) assert_int_equal(try_allocate(), expected[i]);
    assert_string_equal(error_text(CUDA_ERROR_OUT_OF_MEMORY), "out of memory");
}

static void all_later_calls_fail(void **state)
{
    (void)state;
    set_only("FAULT", "cuMemAlloc:3+:2");
    open_context();
    for (int i = 1; i < 10; i++) assert_int_equal(try_allocate(), i < 3 ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(cuCtxSynchronize(), CUDA_SUCCESS);
}

/* Until the context ends; what cannot report a fault goes on, and so does another context. */
static void a_context_faults(void **state)
{
    (void)state;
    set_only("FAULT", "cuStreamSynchronize:2!:CUDA_ERROR_ILLEGAL_ADDRESS");
    open_context();
    CUdevice device;
    CUcontext other, popped;
    const unsigned before = finding_count();
    const CUdeviceptr never_freed = allocate(64);
    assert_int_equal(cuStreamSynchronize(NULL), CUDA_SUCCESS);
    assert_int_equal(cuStreamSynchronize(NULL), CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(cuStreamSynchronize(NULL), CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(try_allocate(), CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(cuMemFree(never_freed), CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_string_equal(error_text(CUDA_ERROR_ILLEGAL_ADDRESS), "an illegal memory access");
    assert_int_equal(cuCtxGetDevice(&device), CUDA_SUCCESS);
    assert_int_equal(cuCtxCreate_v2(&other, 0, 0), CUDA_SUCCESS);
    assert_int_equal(try_allocate(), CUDA_SUCCESS);
    assert_int_equal(cuCtxDestroy(other), CUDA_SUCCESS);
    assert_int_equal(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(cuCtxPopCurrent(&popped), CUDA_SUCCESS);
    assert_int_equal(cuDevicePrimaryCtxRelease(0), CUDA_SUCCESS);
    assert_int_equal(finding_count(), before); /* it could not free, so it did not leak */
    open_context();
    assert_int_equal(cuStreamSynchronize(NULL), CUDA_SUCCESS);
    assert_int_equal(cuCtxSynchronize(), CUDA_SUCCESS);
}

/* Each entry point can be told to fail at its first call, before it looks at its arguments. */
static void every_entry_point_can_fail(void **state)
{
    (void)state;
    static const char *const symbols[] = {
#define MEMBER(symbol, needs) #symbol,
        SWGPU_ENTRIES(MEMBER)
#undef MEMBER
    };
    char error[512];
    for (unsigned i = 0; i < ENTRY_COUNT; i++) {
        char value[256];
        snprintf(value, sizeof value, "%s:1:CUDA_ERROR_KEY_ROTATION", symbols[i]);
        assert_int_equal(inject_configure(value, NULL, error, sizeof error), 1);
        unsigned milliseconds;
        int sticky;
        for (unsigned j = 0; j < ENTRY_COUNT; j++) {
            assert_int_equal(inject_call((entry_id)j, &milliseconds, &sticky), i == j ? 916 : 0);
            assert_int_equal(milliseconds, 0);
            assert_int_equal(sticky, 0);
        }
    }
    const char *text = NULL;
    unsigned flags;
    int value;
    set_only("FAULT", "cuInit:1:CUDA_ERROR_NO_DEVICE");
    assert_int_equal(cuInit(0), CUDA_ERROR_NO_DEVICE);
    assert_int_equal(cuDeviceGetCount(&value), CUDA_ERROR_NOT_INITIALIZED);
    set_only("FAULT", "cuGetErrorName:1:300,cuDriverGetVersion:1:4,cuDevicePrimaryCtxGetState:1:46,cuCtxGetCurrent:1:709");
    assert_int_equal(cuInit(0), CUDA_SUCCESS);
    assert_int_equal(cuGetErrorName(CUDA_SUCCESS, &text), CUDA_ERROR_INVALID_SOURCE);
    assert_null(text);
    assert_int_equal(cuDriverGetVersion(&value), CUDA_ERROR_DEINITIALIZED);
    assert_int_equal(cuDriverGetVersion(&value), CUDA_SUCCESS);
    assert_int_equal(value, 13000);
    assert_int_equal(cuDevicePrimaryCtxGetState(0, &flags, &value), CUDA_ERROR_DEVICE_UNAVAILABLE);
    assert_int_equal(cuCtxGetCurrent(NULL), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    assert_int_equal(cuCtxGetCurrent(NULL), CUDA_ERROR_INVALID_VALUE);
}

/* A launch that fails on demand does not run, and its description is used up all the same. */
static void a_launch_does_not_run(void **state)
{
    (void)state;
    set_only("FAULT", "cuLaunchKernel:1:CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,cuModuleLoadDataEx:2:218");
    open_context();
    CUmodule module = load_text(HEADER KERNEL_TID), none = NULL;
    assert_int_equal(cuModuleLoadDataEx(&none, HEADER KERNEL_TID, 0, NULL, NULL), CUDA_ERROR_INVALID_PTX);
    assert_null(none);
    CUdeviceptr out = allocate(128);
    uint32_t seen[32];
    void *parameters[] = {&out};
    assert_int_equal(cuMemsetD32(out, 1000, 32), CUDA_SUCCESS);
    const swgpu_operand nothing = {.name = "N", .base = out, .rows = 1, .row_bytes = 4, .row_step_bytes = 4, .items = 1,
                                   .writable = 1};
    assert_int_equal(swgpuDescribeLaunch(&nothing, 1, 1), CUDA_SUCCESS);
    assert_int_equal(launch_1d(get_function(module, "tid"), 1, 32, parameters), CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    assert_int_equal(cuMemcpyDtoH(seen, out, sizeof seen), CUDA_SUCCESS);
    for (unsigned i = 0; i < 32; i++) assert_int_equal(seen[i], 1000);
    assert_int_equal(launch_1d(get_function(module, "tid"), 1, 32, parameters), CUDA_SUCCESS);
    assert_int_equal(cuMemcpyDtoH(seen, out, sizeof seen), CUDA_SUCCESS);
    for (unsigned i = 0; i < 32; i++) assert_int_equal(seen[i], i);
    assert_int_equal(cuMemFree(out), CUDA_SUCCESS);
    assert_int_equal(cuModuleUnload(module), CUDA_SUCCESS);
}

/* Counting begins anew with each cuInit that reads the settings. */
static void counts_from_the_last_init(void **state)
{
    (void)state;
    set_only("FAULT", "cuDeviceGetCount:2:1");
    int count;
    for (int round = 0; round < 3; round++) {
        assert_int_equal(cuInit(0), CUDA_SUCCESS);
        assert_int_equal(cuDeviceGetCount(&count), CUDA_SUCCESS);
        assert_int_equal(cuDeviceGetCount(&count), CUDA_ERROR_INVALID_VALUE);
        assert_int_equal(cuDeviceGetCount(&count), CUDA_SUCCESS);
    }
    open_context();
    assert_int_equal(cuDeviceGetCount(&count), CUDA_SUCCESS);
    assert_int_equal(cuInit(0), CUDA_SUCCESS); /* a context is alive: this one reads nothing */
    assert_int_equal(cuDeviceGetCount(&count), CUDA_ERROR_INVALID_VALUE);
}

static void memory_is_limited(void **state)
{
    (void)state;
    set_only("MEMORY", "64K");
    CUcontext other;
    open_context();
    size_t free_bytes, total;
    CUdeviceptr address = 1;
    assert_int_equal(cuMemAlloc(&address, 65537), CUDA_ERROR_OUT_OF_MEMORY);
    assert_contains(error_text(CUDA_ERROR_OUT_OF_MEMORY), "65537 bytes asked for, 65536 of 65536 are free");
    const CUdeviceptr first = allocate(65536);
    assert_int_equal(cuMemAlloc(&address, 1), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(cuMemGetInfo(&free_bytes, &total), CUDA_SUCCESS);
    assert_true(free_bytes == 0 && total == 64ull << 30);
    assert_int_equal(cuMemFree(first), CUDA_SUCCESS);
    const CUdeviceptr half = allocate(32768);
    assert_int_equal(cuCtxCreate_v2(&other, 0, 0), CUDA_SUCCESS); /* all contexts share it */
    assert_int_equal(cuMemAlloc(&address, 32769), CUDA_ERROR_OUT_OF_MEMORY);
    CUmodule module = NULL;
    assert_int_equal(cuModuleLoadDataEx(&module, HEADER ".global .b8 big[32769];\n" KERNEL_NONE, 0, NULL, NULL),
                     CUDA_ERROR_OUT_OF_MEMORY);
    assert_null(module);
    const CUdeviceptr rest = allocate(32768);
    assert_int_equal(cuMemGetInfo(&free_bytes, &total), CUDA_SUCCESS);
    assert_true(free_bytes == 0);
    assert_int_equal(cuMemFree(rest), CUDA_SUCCESS);
    assert_int_equal(cuCtxDestroy(other), CUDA_SUCCESS);
    assert_int_equal(cuMemFree(half), CUDA_SUCCESS);
    assert_int_equal(cuModuleLoadDataEx(&module, HEADER ".global .b8 big[65537];\n" KERNEL_NONE, 0, NULL, NULL),
                     CUDA_ERROR_OUT_OF_MEMORY);
    assert_null(module);
    close_all(NULL);
    set_only("MEMORY", "80G");
    open_context();
    assert_int_equal(cuMemGetInfo(&free_bytes, &total), CUDA_SUCCESS);
    assert_true(free_bytes == 80ull << 30 && total == 80ull << 30);
}

/* While a context is open, from the next call on, and counted anew. */
static void faults_are_replaced(void **state)
{
    (void)state;
    set_only("FAULT", "cuMemAlloc:2:CUDA_ERROR_OUT_OF_MEMORY");
    open_context();
    assert_int_equal(try_allocate(), CUDA_SUCCESS);
    assert_int_equal(swgpuSetFaults("cuMemAlloc:2:999,cuMemAlloc:4+:CUDA_ERROR_NOT_PERMITTED"), CUDA_SUCCESS);
    const CUresult expected[] = {CUDA_SUCCESS, CUDA_ERROR_UNKNOWN, CUDA_SUCCESS, CUDA_ERROR_NOT_PERMITTED,
                                 CUDA_ERROR_NOT_PERMITTED};
    for (size_t i = 0; i < 5; i++) assert_int_equal(try_allocate(), expected[i]);
    assert_int_equal(swgpuSetFaults(""), CUDA_SUCCESS);
    assert_int_equal(try_allocate(), CUDA_SUCCESS);
    assert_int_equal(swgpuSetFaults("cuMemAlloc:1:999"), CUDA_SUCCESS);
    assert_int_equal(swgpuSetFaults(NULL), CUDA_SUCCESS);
    assert_int_equal(try_allocate(), CUDA_SUCCESS);
    assert_int_equal(swgpuSetFaults("cuStreamSynchronize:1!:CUDA_ERROR_ILLEGAL_ADDRESS"), CUDA_SUCCESS);
    assert_int_equal(cuStreamSynchronize(NULL), CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(swgpuSetFaults(""), CUDA_SUCCESS); /* no more faults, but what happened stays */
    assert_int_equal(cuStreamSynchronize(NULL), CUDA_ERROR_ILLEGAL_ADDRESS);
    close_all(NULL);
    open_clean(); /* cuInit read the settings */
    assert_int_equal(try_allocate(), CUDA_SUCCESS);
}

static void faults_that_cannot_be_read_change_nothing(void **state)
{
    (void)state;
    open_clean();
    assert_int_equal(swgpuSetFaults("cuMemAlloc:3:999"), CUDA_SUCCESS);
    assert_int_equal(try_allocate(), CUDA_SUCCESS);
    assert_int_equal(swgpuSetFaults("cuMemAlloc:1:2,cuFoo:1:2"), CUDA_ERROR_INVALID_VALUE);
    assert_contains(error_text(CUDA_ERROR_INVALID_VALUE), "swgpuSetFaults has \"cuFoo:1:2\": the entry point is not known");
    assert_int_equal(try_allocate(), CUDA_SUCCESS);
    assert_int_equal(try_allocate(), CUDA_ERROR_UNKNOWN);
}

/* What is slow stays slow. */
static void only_faults_are_replaced(void **state)
{
    (void)state;
    char error[512];
    unsigned milliseconds;
    int sticky;
    assert_int_equal(inject_configure("cuInit:1:1", "cuInit:7", error, sizeof error), 1);
    assert_int_equal(inject_replace_faults("cuInit:1:2", error, sizeof error), 1);
    assert_int_equal(inject_call(ENTRY_cuInit, &milliseconds, &sticky), 2);
    assert_int_equal(milliseconds, 7);
}

/* Others call the driver meanwhile. Each of their calls fails by the old rules or by the new. */
static void *allocate_in_a_thread(void *user)
{
    uintptr_t wrong = cuCtxPushCurrent(*(CUcontext *)user) != CUDA_SUCCESS;
    for (int i = 0; i < 500; i++) {
        CUdeviceptr address = 0;
        const CUresult result = cuMemAlloc(&address, 64);
        wrong += result != CUDA_SUCCESS && result != CUDA_ERROR_UNKNOWN && result != CUDA_ERROR_NOT_PERMITTED;
        wrong += result == CUDA_SUCCESS && cuMemFree(address) != CUDA_SUCCESS;
    }
    return (void *)wrong;
}

static void faults_are_replaced_under_way(void **state)
{
    (void)state;
    CUcontext context = open_clean();
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&threads[i], NULL, allocate_in_a_thread, &context), 0);
    for (int i = 0; i < 500; i++) {
        static const char *const texts[] = {"cuMemAlloc:1:999", "", "cuMemAlloc:2+:CUDA_ERROR_NOT_PERMITTED"};
        assert_int_equal(swgpuSetFaults(texts[i % 3]), CUDA_SUCCESS);
    }
    for (int i = 0; i < 2; i++) {
        void *wrong = NULL;
        assert_int_equal(pthread_join(threads[i], &wrong), 0);
        assert_null(wrong);
    }
}

static uint64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* It takes at least as long as asked; how much longer is the machine's affair. */
static void a_slow_entry_point(void **state)
{
    (void)state;
    set_only("SLOW", "cuCtxSynchronize:5,cuStreamSynchronize:30");
    open_context();
    const uint64_t from = now_ms();
    assert_int_equal(cuStreamSynchronize(NULL), CUDA_SUCCESS);
    assert_true(now_ms() - from >= 29);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(texts_of_what_is_wrong, close_all),
        cmocka_unit_test_teardown(one_call_fails, close_all),
        cmocka_unit_test_teardown(all_later_calls_fail, close_all),
        cmocka_unit_test_teardown(a_context_faults, close_all),
        cmocka_unit_test_teardown(every_entry_point_can_fail, close_all),
        cmocka_unit_test_teardown(a_launch_does_not_run, close_all),
        cmocka_unit_test_teardown(counts_from_the_last_init, close_all),
        cmocka_unit_test_teardown(faults_are_replaced, close_all),
        cmocka_unit_test_teardown(faults_that_cannot_be_read_change_nothing, close_all),
        cmocka_unit_test_teardown(only_faults_are_replaced, close_all),
        cmocka_unit_test_teardown(faults_are_replaced_under_way, close_all),
        cmocka_unit_test_teardown(memory_is_limited, close_all),
        cmocka_unit_test_teardown(a_slow_entry_point, close_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
