/* The software GPU's entry points of devices, contexts, memory, streams and events: what they do, what they refuse and with
 * which code, what leaks, and what the shared library exports. Codes are those that an H200's driver (CUDA 13.0) gave for
 * the same calls. */
#include "driver_fixture.h"

#include "src/driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

/* Runs first: nothing has called cuInit. */
static void before_init(void **state)
{
    (void)state;
    int number;
    CUcontext context;
    CUdeviceptr address;
    REFUSES(NOT_INITIALIZED, cuDeviceGetCount(&number));
    REFUSES(NOT_INITIALIZED, cuCtxGetCurrent(&context));
    REFUSES(NOT_INITIALIZED, cuMemAlloc(&address, 4));
    REFUSES(NOT_INITIALIZED, cuDevicePrimaryCtxRetain(&context, 0));
    WORKS(cuDriverGetVersion(&number));
    assert_int_equal(number, 13000);
    REFUSES(INVALID_VALUE, cuDriverGetVersion(NULL));
    clean_environment();
    REFUSES(INVALID_VALUE, cuInit(1));
    REFUSES(NOT_INITIALIZED, cuDeviceGetCount(&number));
    WORKS(cuInit(0));
    WORKS(cuDeviceGetCount(&number));
    assert_int_equal(number, 1);
}

static void devices(void **state)
{
    (void)state;
    int number;
    char name[8] = "";
    size_t bytes;
    CUdevice device = 5;
    WORKS(cuInit(0));
    REFUSES(INVALID_VALUE, cuDeviceGetCount(NULL));
    REFUSES(INVALID_DEVICE, cuDeviceGet(&device, -1));
    REFUSES(INVALID_DEVICE, cuDeviceGet(&device, 1));
    REFUSES(INVALID_VALUE, cuDeviceGet(NULL, 0));
    assert_int_equal(device, 5);
    WORKS(cuDeviceGet(&device, 0));
    assert_int_equal(device, 0);
    REFUSES(INVALID_DEVICE, cuDeviceGetAttribute(&number, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 1));
    REFUSES(INVALID_VALUE, cuDeviceGetAttribute(&number, (CUdevice_attribute)0, 0));
    REFUSES(INVALID_VALUE, cuDeviceGetAttribute(&number, (CUdevice_attribute)9999, 0));
    REFUSES(INVALID_VALUE, cuDeviceGetAttribute(NULL, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0));
    REFUSES(INVALID_VALUE, cuDeviceGetName(name, 0, 0));
    REFUSES(INVALID_VALUE, cuDeviceGetName(NULL, 8, 0));
    REFUSES(INVALID_DEVICE, cuDeviceGetName(name, 8, 1));
    REFUSES(INVALID_VALUE, cuDeviceTotalMem(NULL, 0));
    REFUSES(INVALID_DEVICE, cuDeviceTotalMem(&bytes, 1));
}

static void without_a_context(void **state)
{
    (void)state;
    CUdevice device;
    CUdeviceptr address;
    CUmodule module;
    CUcontext context = (CUcontext)&device;
    WORKS(cuInit(0));
    REFUSES(INVALID_CONTEXT, cuMemAlloc(&address, 4));
    REFUSES(INVALID_CONTEXT, cuCtxSynchronize());
    REFUSES(INVALID_CONTEXT, cuCtxGetDevice(&device));
    REFUSES(INVALID_CONTEXT, cuModuleLoadDataEx(&module, HEADER, 0, NULL, NULL));
    REFUSES(INVALID_CONTEXT, cuCtxPopCurrent(&context));
    REFUSES(INVALID_VALUE, cuCtxPushCurrent(NULL));
    REFUSES(INVALID_CONTEXT, cuCtxPushCurrent((CUcontext)&device));
    REFUSES(INVALID_CONTEXT, cuCtxSetCurrent((CUcontext)&device));
    REFUSES(INVALID_CONTEXT, cuCtxDestroy((CUcontext)&device));
    REFUSES(INVALID_CONTEXT, cuCtxDestroy(NULL));
    REFUSES(INVALID_CONTEXT, cuDevicePrimaryCtxRelease(0));
    REFUSES(INVALID_VALUE, cuCtxGetCurrent(NULL));
    WORKS(cuCtxSetCurrent(NULL));
    WORKS(cuCtxGetCurrent(&context));
    assert_null(context);
}

static void the_primary_context(void **state)
{
    (void)state;
    CUcontext first, again, current;
    CUdevice device;
    CUdeviceptr address;
    unsigned flags;
    int active = 9;
    WORKS(cuInit(0));
    REFUSES(INVALID_VALUE, cuDevicePrimaryCtxRetain(NULL, 0));
    REFUSES(INVALID_DEVICE, cuDevicePrimaryCtxRetain(&first, 1));
    REFUSES(INVALID_DEVICE, cuDevicePrimaryCtxRelease(1));
    WORKS(cuDevicePrimaryCtxGetState(0, &flags, &active));
    assert_int_equal(active, 0);
    REFUSES(INVALID_VALUE, cuDevicePrimaryCtxGetState(0, NULL, &active));
    WORKS(cuDevicePrimaryCtxRetain(&first, 0));
    WORKS(cuDevicePrimaryCtxRetain(&again, 0));
    assert_ptr_equal(first, again);
    WORKS(cuCtxPushCurrent(first));
    address = allocate(16);
    WORKS(cuDevicePrimaryCtxRelease(0));
    WORKS(cuDevicePrimaryCtxGetState(0, &flags, &active));
    assert_int_equal(active, 1);
    WORKS(cuMemFree(address)); /* one reference is left */
    REFUSES(INVALID_CONTEXT, cuCtxDestroy(first));
    WORKS(cuDevicePrimaryCtxRelease(0));
    WORKS(cuDevicePrimaryCtxGetState(0, &flags, &active));
    assert_int_equal(active, 0);
    WORKS(cuCtxGetCurrent(&current)); /* still on the stack, of no use */
    assert_ptr_equal(current, first);
    REFUSES(CONTEXT_IS_DESTROYED, cuMemAlloc(&address, 4));
    WORKS(cuCtxGetDevice(&device));
    WORKS(cuCtxPushCurrent(first));
    WORKS(cuDevicePrimaryCtxRetain(&again, 0));
    assert_ptr_equal(first, again);
    WORKS(cuMemFree(allocate(4)));
    REFUSES(INVALID_VALUE, cuCtxGetDevice(NULL));
}

static void contexts_on_a_stack(void **state)
{
    (void)state;
    CUcontext primary = open_clean(), a, b, current;
    CUdeviceptr address;
    REFUSES(INVALID_VALUE, cuCtxCreate_v2(NULL, 0, 0));
    REFUSES(INVALID_DEVICE, cuCtxCreate_v2(&a, 0, 1));
    WORKS(cuCtxCreate_v2(&a, 0, 0));
    WORKS(cuCtxGetCurrent(&current));
    assert_ptr_equal(current, a);
    WORKS(cuCtxCreate_v2(&b, 0, 0));
    WORKS(cuCtxPopCurrent(&current));
    assert_ptr_equal(current, b);
    WORKS(cuCtxSetCurrent(b)); /* in the place of a */
    WORKS(cuCtxDestroy(a));
    WORKS(cuCtxDestroy(b)); /* current: taken off */
    WORKS(cuCtxGetCurrent(&current));
    assert_ptr_equal(current, primary);
    WORKS(cuCtxCreate_v2(&a, 0, 0));
    WORKS(cuCtxPushCurrent(primary));
    WORKS(cuCtxDestroy(a)); /* below the top: stays, dead */
    WORKS(cuCtxPopCurrent(NULL));
    REFUSES(CONTEXT_IS_DESTROYED, cuMemAlloc(&address, 4));
    REFUSES(INVALID_CONTEXT, cuCtxPushCurrent(a));
    REFUSES(INVALID_CONTEXT, cuCtxDestroy(a));
    WORKS(cuCtxPopCurrent(&current));
    assert_ptr_equal(current, a);
    WORKS(cuCtxSetCurrent(NULL));
    WORKS(cuCtxGetCurrent(&current));
    assert_null(current);
    for (int i = 0; i < 64; i++) WORKS(cuCtxPushCurrent(primary));
    REFUSES(OUT_OF_MEMORY, cuCtxPushCurrent(primary));
    REFUSES(OUT_OF_MEMORY, cuCtxCreate_v2(&a, 0, 0));
}

static void memory(void **state)
{
    (void)state;
    open_clean();
    uint32_t host[1024], back[1024] = {0};
    for (unsigned i = 0; i < 1024; i++) host[i] = i * 7;
    CUdeviceptr a, b, none = 3;
    size_t free_before, free_after, total;
    WORKS(cuMemGetInfo(&free_before, NULL));
    REFUSES(INVALID_VALUE, cuMemAlloc(&none, 0));
    REFUSES(INVALID_VALUE, cuMemAlloc(NULL, 4));
    REFUSES(OUT_OF_MEMORY, cuMemAlloc(&none, (size_t)1 << 50));
    assert_true(none == 3);
    a = allocate(4096);
    b = allocate(4096);
    WORKS(cuMemGetInfo(&free_after, &total));
    assert_true(free_before - free_after == 8192 && total == 64ull << 30);
    WORKS(cuMemcpyHtoD(a, host, 4096));
    WORKS(cuMemcpyDtoD(b, a, 4096));
    WORKS(cuMemcpyDtoH(back, b, 4096));
    assert_memory_equal(host, back, 4096);
    WORKS(cuMemcpy(a + 8, (CUdeviceptr)(uintptr_t)host, 8));
    WORKS(cuMemcpyAsync((CUdeviceptr)(uintptr_t)back, a, 16, NULL));
    assert_memory_equal(back, host, 8);
    assert_memory_equal(back + 2, host, 8);
    WORKS(cuMemcpy((CUdeviceptr)(uintptr_t)back, (CUdeviceptr)(uintptr_t)(host + 9), 4));
    assert_int_equal(back[0], 63);
    WORKS(cuMemcpyHtoD(0, NULL, 0));
    WORKS(cuMemcpy(0, 0, 0));
    REFUSES(INVALID_VALUE, cuMemcpyHtoD(a, NULL, 16));
    REFUSES(INVALID_VALUE, cuMemcpyHtoD(0, host, 16));
    REFUSES(INVALID_VALUE, cuMemcpyHtoD((CUdeviceptr)(uintptr_t)back, host, 16));
    REFUSES(INVALID_VALUE, cuMemcpyDtoH(NULL, a, 16));
    REFUSES(INVALID_VALUE, cuMemcpyDtoH(back, (CUdeviceptr)(uintptr_t)host, 16));
    REFUSES(INVALID_VALUE, cuMemcpyDtoD(a, (CUdeviceptr)(uintptr_t)host, 16));
    REFUSES(INVALID_VALUE, cuMemcpyHtoD(a + 4092, host, 5));
    WORKS(cuMemcpyHtoD(a + 4092, host, 4));
    REFUSES(INVALID_HANDLE, cuMemcpyAsync(a, b, 4, (CUstream)host));
    WORKS(cuMemFree(0));
    REFUSES(INVALID_VALUE, cuMemFree(a + 256));
    REFUSES(INVALID_VALUE, cuMemFree(0x1234));
    WORKS(cuMemFree(a));
    REFUSES(INVALID_VALUE, cuMemFree(a));
    const char *text;
    assert_contains(error_text(CUDA_ERROR_INVALID_VALUE), "is freed already");
    REFUSES(INVALID_VALUE, cuGetErrorString((CUresult)12345, &text)); /* asking changes nothing */
    WORKS(cuStreamSynchronize(NULL));
    assert_contains(error_text(CUDA_ERROR_INVALID_VALUE), "is freed already");
    REFUSES(INVALID_CONTEXT, cuCtxDestroy(NULL));
    assert_string_equal(error_text(CUDA_ERROR_INVALID_VALUE), "invalid argument");
    REFUSES(INVALID_VALUE, cuMemcpyDtoH(back, a, 4));
    WORKS(cuMemFree(b));
}

static void memory_filled(void **state)
{
    (void)state;
    open_clean();
    enum { BYTES = 200000 };
    static unsigned char back[BYTES];
    const CUdeviceptr a = allocate(BYTES);
    WORKS(cuMemsetD8(a, 0x11, BYTES));
    WORKS(cuMemsetD8(a + 1, 0xab, 70001));
    WORKS(cuMemcpyDtoH(back, a, BYTES));
    for (int i = 0; i < BYTES; i++) assert_int_equal(back[i], i >= 1 && i < 70002 ? 0xab : 0x11);
    WORKS(cuMemsetD32(a + 4, 0x04030201, BYTES / 4 - 1));
    WORKS(cuMemcpyDtoH(back, a, BYTES));
    for (int i = 4; i < BYTES; i++) assert_int_equal(back[i], i % 4 + 1);
    REFUSES(INVALID_VALUE, cuMemsetD32(a + 4, 5, BYTES / 4)); /* one word too many changes nothing */
    REFUSES(INVALID_VALUE, cuMemsetD32(a + 1, 5, 1));
    REFUSES(INVALID_VALUE, cuMemsetD32(a, 5, SIZE_MAX / 4 + 2));
    REFUSES(INVALID_VALUE, cuMemsetD8(0, 5, 1));
    REFUSES(INVALID_VALUE, cuMemsetD8((CUdeviceptr)(uintptr_t)back, 5, 1));
    WORKS(cuMemsetD8(a, 5, 0));
    WORKS(cuMemcpyDtoH(back, a, BYTES));
    for (int i = 4; i < BYTES; i++) assert_int_equal(back[i], i % 4 + 1);
    WORKS(cuMemFree(a));
}

static void streams_and_events(void **state)
{
    (void)state;
    open_clean();
    CUstream stream = NULL, second;
    CUevent a, b, untimed;
    float ms = -1;
    REFUSES(INVALID_VALUE, cuStreamCreate(NULL, 0));
    REFUSES(INVALID_VALUE, cuStreamCreate(&stream, 98));
    WORKS(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    WORKS(cuStreamCreate(&second, 0));
    assert_ptr_not_equal(stream, second);
    WORKS(cuStreamQuery(stream));
    WORKS(cuStreamSynchronize(stream));
    WORKS(cuStreamSynchronize(NULL));
    WORKS(cuStreamSynchronize(CU_STREAM_LEGACY));
    WORKS(cuStreamSynchronize(CU_STREAM_PER_THREAD));
    REFUSES(INVALID_HANDLE, cuStreamDestroy(NULL));
    REFUSES(INVALID_HANDLE, cuStreamDestroy(CU_STREAM_LEGACY));
    REFUSES(INVALID_VALUE, cuEventCreate(NULL, 0));
    REFUSES(INVALID_VALUE, cuEventCreate(&a, 0x100));
    WORKS(cuEventCreate(&a, 0));
    WORKS(cuEventCreate(&b, CU_EVENT_BLOCKING_SYNC));
    WORKS(cuEventCreate(&untimed, CU_EVENT_DISABLE_TIMING));
    WORKS(cuEventSynchronize(a));
    REFUSES(INVALID_HANDLE, cuEventElapsedTime(&ms, a, b));
    WORKS(cuEventRecord(a, stream));
    REFUSES(INVALID_HANDLE, cuEventElapsedTime(&ms, a, b));
    WORKS(cuEventRecord(b, NULL));
    WORKS(cuEventRecord(untimed, NULL));
    WORKS(cuEventElapsedTime(&ms, a, b));
    assert_true(ms >= 0 && ms < 60000);
    WORKS(cuEventElapsedTime(&ms, b, a));
    assert_true(ms <= 0);
    REFUSES(INVALID_HANDLE, cuEventElapsedTime(&ms, a, untimed));
    REFUSES(INVALID_HANDLE, cuEventElapsedTime(&ms, NULL, a));
    REFUSES(INVALID_VALUE, cuEventElapsedTime(NULL, a, b));
    REFUSES(INVALID_HANDLE, cuEventRecord(NULL, NULL));
    REFUSES(INVALID_HANDLE, cuEventRecord((CUevent)stream, NULL));
    CUcontext other;
    WORKS(cuCtxCreate_v2(&other, 0, 0)); /* they work from another context, but do not mix with it */
    REFUSES(INVALID_HANDLE, cuEventRecord(a, NULL));
    WORKS(cuStreamSynchronize(stream));
    WORKS(cuEventRecord(a, stream));
    WORKS(cuEventSynchronize(a));
    WORKS(cuEventElapsedTime(&ms, b, a));
    WORKS(cuCtxDestroy(other));
    WORKS(cuEventDestroy(a));
    REFUSES(INVALID_HANDLE, cuEventDestroy(a));
    REFUSES(INVALID_HANDLE, cuEventRecord(a, NULL));
    REFUSES(INVALID_HANDLE, cuEventSynchronize(a));
    WORKS(cuStreamDestroy(stream));
    REFUSES(INVALID_HANDLE, cuStreamDestroy(stream));
    REFUSES(INVALID_HANDLE, cuStreamQuery(stream));
    REFUSES(INVALID_HANDLE, cuStreamSynchronize(stream));
    REFUSES(INVALID_HANDLE, cuEventRecord(b, stream));
}

static void leave(void)
{
    WORKS(cuCtxPopCurrent(NULL));
    WORKS(cuDevicePrimaryCtxRelease(0));
}

static void leaks_are_found(void **state)
{
    (void)state;
    const unsigned before = finding_count();
    unsigned count;
    open_clean();
    WORKS(cuMemFree(allocate(512)));
    leave();
    assert_int_equal(finding_count(), before);
    open_clean();
    allocate(1000);
    leave();
    assert_string_equal(last_finding(), "leak: 1 allocation of 1000 bytes was never freed");
    open_clean();
    allocate(4000);
    allocate(96);
    load_text(HEADER ".global .b8 own[100];\n" KERNEL_NONE);
    leave();
    assert_int_equal(finding_count(), before + 3);
    assert_string_equal(last_finding(), "leak: 1 module was never unloaded; the first has kernel none");
    char text[8192];
    const size_t length = swgpuFindings(text, sizeof text, &count);
    assert_int_equal(count, before + 3);
    assert_int_equal(strlen(text), length);
    assert_contains(text, "leak: 2 allocations of 4096 bytes in all were never freed\n");
    open_clean();
    load_text(HEADER KERNEL_NONE);
    load_text(HEADER KERNEL_TID);
    leave();
    assert_string_equal(last_finding(), "leak: 2 modules were never unloaded; the first has kernel none");
    set_only("CHECKS", "race");
    open_context();
    allocate(1000);
    leave();
    assert_int_equal(finding_count(), before + 4);
    /* A buffer too small takes what fits; a single byte takes the end. */
    char little[6] = "#####";
    assert_int_equal(swgpuFindings(little, 5, NULL), swgpuFindings(NULL, 0, NULL));
    assert_string_equal(little, "leak");
    assert_int_equal(swgpuFindings(little, 1, NULL), swgpuFindings(NULL, 7, &count));
    assert_string_equal(little, "");
}

/* Each thread has a stack of its own, and all may call at once. */
static void *work_in_a_thread(void *user)
{
    CUcontext context = *(CUcontext *)user, current = NULL;
    uintptr_t wrong = 0;
    wrong += cuCtxGetCurrent(&current) != CUDA_SUCCESS || current != NULL;
    wrong += cuCtxPushCurrent(context) != CUDA_SUCCESS;
    for (uint32_t i = 0; i < 50; i++) {
        CUdeviceptr a = 0;
        uint32_t out = 0;
        CUmodule module = NULL;
        wrong += cuMemAlloc(&a, 64) != CUDA_SUCCESS || cuMemcpyHtoD(a, &i, 4) != CUDA_SUCCESS;
        wrong += cuModuleLoadDataEx(&module, HEADER KERNEL_NONE, 0, NULL, NULL) != CUDA_SUCCESS;
        wrong += cuMemcpyDtoH(&out, a, 4) != CUDA_SUCCESS || out != i;
        wrong += cuMemFree(a) != CUDA_SUCCESS || cuModuleUnload(module) != CUDA_SUCCESS;
    }
    wrong += cuCtxPopCurrent(&current) != CUDA_SUCCESS || current != context;
    return (void *)wrong;
}

static void threads(void **state)
{
    (void)state;
    CUcontext primary = open_clean(), contexts[2] = {primary, NULL}, current;
    pthread_t workers[4];
    WORKS(cuCtxCreate_v2(&contexts[1], 0, 0));
    WORKS(cuCtxPopCurrent(NULL));
    for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&workers[i], NULL, work_in_a_thread, &contexts[i % 2]), 0);
    for (int i = 0; i < 4; i++) {
        void *wrong = &current;
        assert_int_equal(pthread_join(workers[i], &wrong), 0);
        assert_null(wrong);
    }
    WORKS(cuCtxGetCurrent(&current));
    assert_ptr_equal(current, primary);
    WORKS(cuCtxDestroy(contexts[1]));
}

/* The library as a program loads it: every symbol is there, nothing else is, and it is another GPU than the one that this
 * program is linked with. */
/* A child that is forked while the driver is in use can do nothing with it, but does not hang either, whoever held the lock. */
static void forked_children(void **state)
{
    (void)state;
    open_context();
    const CUdeviceptr kept = allocate(64);
    const pid_t child = fork();
    if (child == 0) {
        CUdeviceptr p;
        int count;
        const int refused = cuMemAlloc(&p, 64) == CUDA_ERROR_NOT_INITIALIZED && cuDeviceGetCount(&count) == CUDA_ERROR_NOT_INITIALIZED &&
                            cuInit(0) == CUDA_ERROR_NOT_INITIALIZED;
        _exit(refused ? 0 : 1);
    }
    int status = -1;
    assert_true(child > 0 && waitpid(child, &status, 0) == child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    WORKS(cuMemFree(kept));
    REFUSES(INVALID_VALUE, cuInit(1));
    WORKS(cuMemFree(allocate(64))); /* a refused cuInit changes nothing */
}

static void the_shared_library(void **state)
{
    (void)state;
    static const char *const symbols[] = {
#define MEMBER(name, symbol, parameters) #symbol,
        DRIVER_FUNCTIONS(MEMBER)
#undef MEMBER
#define MEMBER(symbol, needs) #symbol,
        SWGPU_ENTRIES(MEMBER)
#undef MEMBER
        "swgpuDescribeLaunch", "swgpuCounters", "swgpuFindings", "swgpuSetFaults",
    };
    static const char *const hidden[] = {"state_lock", "gpu", "ptx_parse", "models_find", "launch_run", "memory_allocate"};
    const char *folder = getenv("JG_TEST_BUILD_DIR");
    char path[4096];
    snprintf(path, sizeof path, "%s/lib/libjitgemm-swgpu.so", folder ? folder : "build");
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) fail_msg("%s", dlerror());
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++)
        if (!dlsym(library, symbols[i])) fail_msg("no %s", symbols[i]);
    for (size_t i = 0; i < sizeof hidden / sizeof hidden[0]; i++)
        if (dlsym(library, hidden[i])) fail_msg("%s is exported", hidden[i]);
    driver *d = NULL;
    CUcontext context = NULL;
    unsigned flags;
    int active;
    clean_environment();
    WORKS(cuInit(0));
    assert_int_equal(driver_open(path, &d), JG_OK);
    assert_int_equal(d->version, 13000);
    WORKS(d->primary_retain(&context, 0));
    WORKS(cuDevicePrimaryCtxGetState(0, &flags, &active));
    assert_int_equal(active, 0);
    WORKS(d->primary_release(0));
    driver_close(d);
    setenv("JITGEMM_SWGPU_DEVICE", "gtx", 1); /* what is wrong with a setting reaches the user */
    assert_int_equal(driver_open(path, &d), JG_ERR_DEVICE);
    assert_contains(jg_last_error(), "JITGEMM_SWGPU_DEVICE is \"gtx\"; known devices are orin-nano,");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(before_init, close_all),
        cmocka_unit_test_teardown(devices, close_all),
        cmocka_unit_test_teardown(without_a_context, close_all),
        cmocka_unit_test_teardown(the_primary_context, close_all),
        cmocka_unit_test_teardown(contexts_on_a_stack, close_all),
        cmocka_unit_test_teardown(memory, close_all),
        cmocka_unit_test_teardown(memory_filled, close_all),
        cmocka_unit_test_teardown(streams_and_events, close_all),
        cmocka_unit_test_teardown(leaks_are_found, close_all),
        cmocka_unit_test_teardown(threads, close_all),
        cmocka_unit_test_teardown(forked_children, close_all),
        cmocka_unit_test_teardown(the_shared_library, close_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
