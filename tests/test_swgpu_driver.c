/* The software GPU's entry points but cuLaunchKernel: what they do, what they refuse and with which code, what leaks, and
 * what the shared library exports. Codes are those that an H200's driver (CUDA 13.0) gave for the same calls. */
#include "driver_fixture.h"

#include "src/driver.h"

#include <dlfcn.h>
#include <pthread.h>

#define REFUSES(code, ...) assert_int_equal(__VA_ARGS__, CUDA_ERROR_##code)
#define WORKS(...) assert_int_equal(__VA_ARGS__, CUDA_SUCCESS)

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
    assert_contains(error_text(CUDA_ERROR_INVALID_VALUE), "is freed already");
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

static void refused_image(const void *image, CUresult expected, const char *says)
{
    char log[256], info[8] = "old";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_OPTIMIZATION_LEVEL,
                              CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES};
    CUmodule module = (CUmodule)log;
    /* A log of any size ends in 0 and stays inside. */
    for (size_t size = 0; size < sizeof log; size = size ? size * 2 : 1) {
        void *values[] = {log, (void *)(uintptr_t)size, (void *)4, info, (void *)sizeof info};
        memset(log, '#', sizeof log);
        assert_int_equal(cuModuleLoadDataEx(&module, image, 5, options, values), expected);
        assert_ptr_equal(module, log);
        assert_int_equal(log[size], '#');
        if (size) assert_non_null(memchr(log, 0, size));
        if (size) assert_int_equal((uintptr_t)values[1], strlen(log));
        if (size == 128) assert_contains(log, says);
        assert_int_equal(info[0], 0);
    }
    assert_int_equal(cuModuleLoadDataEx(&module, image, 0, NULL, NULL), expected); /* without a log the text is the error's */
    assert_contains(error_text(expected), says);
}

static void images_that_do_not_load(void **state)
{
    (void)state;
    set_only("DEVICE", "rtx3090");
    open_context();
    CUmodule module;
    CUjit_option option = CU_JIT_ERROR_LOG_BUFFER;
    REFUSES(INVALID_VALUE, cuModuleLoadDataEx(&module, NULL, 0, NULL, NULL));
    REFUSES(INVALID_VALUE, cuModuleLoadDataEx(NULL, HEADER, 0, NULL, NULL));
    REFUSES(INVALID_VALUE, cuModuleLoadDataEx(&module, HEADER, 1, &option, NULL));
    refused_image("", CUDA_ERROR_INVALID_IMAGE, "neither PTX nor a binary");
    refused_image("hello", CUDA_ERROR_INVALID_IMAGE, "neither PTX nor a binary");
    refused_image("\177ELF\2\1\1", CUDA_ERROR_NO_BINARY_FOR_GPU, "binary");
    const uint32_t fatbin = 0xba55ed50;
    char image[8] = "";
    memcpy(image, &fatbin, sizeof fatbin);
    refused_image(image, CUDA_ERROR_NO_BINARY_FOR_GPU, "binary");
    refused_image(".version 99.0\n.target sm_75\n.address_size 64\n", CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "99.0");
    refused_image(HEADER ".visible .entry x() { foo; }\n", CUDA_ERROR_INVALID_PTX, "foo");
    refused_image(".version 8.0\n.target sm_87\n.address_size 64\n", CUDA_ERROR_INVALID_PTX, "is for sm_87, the device is sm_86");
    refused_image(".version 8.0\n.target sm_80a\n.address_size 64\n", CUDA_ERROR_INVALID_PTX, "");
    refused_image(HEADER ".visible .entry x() { .shared .align 4 .b8 s[49153]; ret; }\n", CUDA_ERROR_INVALID_PTX,
                  "49153 bytes of static shared memory");
    WORKS(cuModuleUnload(load_text(".version 8.0\n.target sm_86\n.address_size 64\n" KERNEL_NONE)));
    WORKS(cuModuleUnload(load_text(HEADER ".visible .entry x() { .shared .align 4 .b8 s[49152]; ret; }\n")));
}

static void modules_and_their_parts(void **state)
{
    (void)state;
    open_clean();
    CUmodule module = load_text(HEADER ".global .align 4 .u32 seven = 7;\n.global .align 4 .b8 zeros[9000];\n"
                                ".const .align 4 .b8 fixed[16];\n" KERNEL_TID KERNEL_NONE);
    CUfunction f, again = NULL;
    CUdeviceptr address;
    size_t bytes, free_before, free_after;
    static unsigned char back[9000];
    WORKS(cuModuleGetFunction(&f, module, "tid"));
    WORKS(cuModuleGetFunction(&again, module, "tid"));
    assert_ptr_equal(f, again);
    WORKS(cuModuleGetFunction(&again, module, "none"));
    assert_ptr_not_equal(f, again);
    REFUSES(NOT_FOUND, cuModuleGetFunction(&f, module, "other"));
    REFUSES(NOT_FOUND, cuModuleGetFunction(&f, module, "seven"));
    REFUSES(INVALID_VALUE, cuModuleGetFunction(&f, module, NULL));
    REFUSES(INVALID_VALUE, cuModuleGetFunction(NULL, module, "tid"));
    REFUSES(INVALID_HANDLE, cuModuleGetFunction(&f, NULL, "tid"));
    REFUSES(INVALID_HANDLE, cuModuleGetFunction(&f, (CUmodule)f, "tid")); /* a handle, but of something else */
    WORKS(cuModuleGetGlobal(&address, &bytes, module, "seven"));
    assert_int_equal(bytes, 4);
    WORKS(cuMemcpyDtoH(back, address, 4));
    assert_int_equal(back[0], 7);
    REFUSES(INVALID_VALUE, cuMemFree(address));
    WORKS(cuModuleGetGlobal(&address, NULL, module, "zeros"));
    WORKS(cuMemcpyDtoH(back, address, sizeof back));
    for (size_t i = 0; i < sizeof back; i++) assert_int_equal(back[i], 0);
    WORKS(cuModuleGetGlobal(NULL, &bytes, module, "fixed"));
    assert_int_equal(bytes, 16);
    REFUSES(INVALID_VALUE, cuModuleGetGlobal(NULL, NULL, module, "fixed"));
    REFUSES(INVALID_VALUE, cuModuleGetGlobal(&address, &bytes, module, NULL));
    REFUSES(NOT_FOUND, cuModuleGetGlobal(&address, &bytes, module, "tid"));
    REFUSES(INVALID_HANDLE, cuModuleGetGlobal(&address, &bytes, NULL, "fixed"));
    WORKS(cuMemGetInfo(&free_before, NULL));
    WORKS(cuModuleUnload(module));
    WORKS(cuMemGetInfo(&free_after, NULL));
    assert_int_equal(free_after - free_before, 4 + 9000 + 16);
    REFUSES(INVALID_HANDLE, cuModuleUnload(module));
    REFUSES(INVALID_HANDLE, cuModuleUnload(NULL));
    REFUSES(INVALID_HANDLE, cuModuleGetFunction(&f, module, "tid"));
    int value;
    REFUSES(INVALID_HANDLE, cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, f));
}

static int attribute_of(CUfunction f, CUfunction_attribute attribute)
{
    int value = -99;
    WORKS(cuFuncGetAttribute(&value, attribute, f));
    return value;
}

static void attributes_of_functions(void **state)
{
    (void)state;
    set_only("DEVICE", "a100");
    open_context();
    CUmodule module = load_text(HEADER ".const .align 4 .b8 fixed[16];\n.visible .entry local() { .local .align 4 .b8 l[24];\n"
                                " .reg .b64 %d1; mov.u64 %d1, l; st.local.u32 [%d1], 5; ret; }\n"
                                KERNEL_NONE KERNEL_BOUND KERNEL_SHARED KERNEL_REQUIRED);
    CUfunction none = get_function(module, "none"), bound = get_function(module, "bound"),
               shares = get_function(module, "shares");
    const CUfunction_attribute dynamic = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                               carveout = CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;
    int value = 3;
    assert_int_equal(attribute_of(none, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK), 1024);
    assert_int_equal(attribute_of(bound, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK), 64);
    assert_int_equal(attribute_of(get_function(module, "required"), CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK), 1024);
    assert_int_equal(attribute_of(none, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES), 0);
    assert_int_equal(attribute_of(shares, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES), 1024);
    assert_int_equal(attribute_of(none, CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES), 16);
    assert_int_equal(attribute_of(none, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES), 0);
    assert_int_equal(attribute_of(get_function(module, "local"), CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES), 24);
    assert_in_range(attribute_of(none, CU_FUNC_ATTRIBUTE_NUM_REGS), 1, 32);
    assert_int_equal(attribute_of(none, CU_FUNC_ATTRIBUTE_PTX_VERSION), 75);
    assert_int_equal(attribute_of(none, CU_FUNC_ATTRIBUTE_BINARY_VERSION), 80);
    assert_int_equal(attribute_of(none, dynamic), 49152);
    assert_int_equal(attribute_of(shares, dynamic), 48128);
    assert_int_equal(attribute_of(none, carveout), -1);
    REFUSES(INVALID_VALUE, cuFuncGetAttribute(&value, (CUfunction_attribute)99, none));
    REFUSES(INVALID_VALUE, cuFuncGetAttribute(NULL, dynamic, none));
    REFUSES(INVALID_HANDLE, cuFuncGetAttribute(&value, dynamic, NULL));
    assert_int_equal(value, 3);
    WORKS(cuFuncSetAttribute(none, dynamic, 163 * 1024));
    REFUSES(INVALID_VALUE, cuFuncSetAttribute(none, dynamic, 163 * 1024 + 1));
    REFUSES(INVALID_VALUE, cuFuncSetAttribute(none, dynamic, -1));
    assert_int_equal(attribute_of(none, dynamic), 163 * 1024);
    WORKS(cuFuncSetAttribute(none, dynamic, 0));
    WORKS(cuFuncSetAttribute(shares, dynamic, 162 * 1024));
    REFUSES(INVALID_VALUE, cuFuncSetAttribute(shares, dynamic, 162 * 1024 + 1));
    WORKS(cuFuncSetAttribute(none, carveout, 100));
    assert_int_equal(attribute_of(none, carveout), 100);
    WORKS(cuFuncSetAttribute(none, carveout, -1));
    REFUSES(INVALID_VALUE, cuFuncSetAttribute(none, carveout, 101));
    REFUSES(INVALID_VALUE, cuFuncSetAttribute(none, carveout, -2));
    REFUSES(INVALID_VALUE, cuFuncSetAttribute(none, CU_FUNC_ATTRIBUTE_NUM_REGS, 8));
    REFUSES(INVALID_HANDLE, cuFuncSetAttribute(NULL, dynamic, 8));
    WORKS(cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, none, 1024, 0));
    assert_int_equal(value, 2);
    WORKS(cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, shares, 32, 40 * 1024 - 1024)); /* 41 KiB of 164 with the reserve */
    assert_int_equal(value, 4);
    WORKS(cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, none, 1056, 0));
    assert_int_equal(value, 0);
    WORKS(cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, none, 32, SIZE_MAX));
    assert_int_equal(value, 0);
    REFUSES(INVALID_VALUE, cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, none, 0, 0));
    REFUSES(INVALID_VALUE, cuOccupancyMaxActiveBlocksPerMultiprocessor(NULL, none, 32, 0));
    REFUSES(INVALID_HANDLE, cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, NULL, 32, 0));
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
    CUcontext context = open_clean();
    pthread_t workers[4];
    for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&workers[i], NULL, work_in_a_thread, &context), 0);
    for (int i = 0; i < 4; i++) {
        void *wrong = &context;
        assert_int_equal(pthread_join(workers[i], &wrong), 0);
        assert_null(wrong);
    }
}

/* The library as a program loads it: every symbol is there, nothing else is, and it is another GPU than the one that this
 * program is linked with. */
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
        "swgpuDescribeLaunch", "swgpuCounters", "swgpuFindings",
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
        cmocka_unit_test_teardown(images_that_do_not_load, close_all),
        cmocka_unit_test_teardown(modules_and_their_parts, close_all),
        cmocka_unit_test_teardown(attributes_of_functions, close_all),
        cmocka_unit_test_teardown(streams_and_events, close_all),
        cmocka_unit_test_teardown(leaks_are_found, close_all),
        cmocka_unit_test_teardown(threads, close_all),
        cmocka_unit_test_teardown(the_shared_library, close_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
