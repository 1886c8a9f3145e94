/* The software GPU's entry points of modules and functions: images that load and those that do not, logs, variables,
 * attributes. Codes are those that an H200's driver (CUDA 13.0) gave for the same calls. */
#include "driver_fixture.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(images_that_do_not_load, close_all),
        cmocka_unit_test_teardown(modules_and_their_parts, close_all),
        cmocka_unit_test_teardown(attributes_of_functions, close_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
