/* The software GPU's device models against the library's own tables, and every setting of its environment: what is taken,
 * what is refused, and in which words. */
#include "driver_fixture.h"

#include "scratch.h"
#include "src/device.h"
#include "src/swgpu/exec.h"
#include "src/swgpu/settings.h"

#include <unistd.h>

static int attribute_of(const model *m, CUdevice_attribute attribute)
{
    int value = -12345;
    assert_int_equal(models_attribute(m, (int)attribute, &value), 1);
    return value;
}

static void models_are_those_that_are_sold(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int number, sm_count, integrated;
        uint64_t gigabytes; /* at least */
    } rows[] = {
        {"orin-nano", 87, 8, 1, 8}, {"orin-nx", 87, 8, 1, 16}, {"orin-agx", 87, 16, 1, 64}, {"t4", 75, 40, 0, 16},
        {"a100", 80, 108, 0, 40},   {"rtx3090", 86, 82, 0, 24}, {"l4", 89, 58, 0, 24},      {"rtx4090", 89, 128, 0, 24},
        {"h100", 90, 132, 0, 80},   {"h200", 90, 132, 0, 141}, {"b200", 100, 148, 0, 180},  {"thor", 110, 20, 1, 128},
        {"rtx5090", 120, 170, 0, 32},
    };
    const size_t count = sizeof rows / sizeof rows[0];
    for (size_t i = 0; i < count; i++) {
        const model *m = models_find(rows[i].name);
        assert_non_null(m);
        assert_ptr_equal(m, models_at(i));
        assert_int_equal(attribute_of(m, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) * 10 +
                         attribute_of(m, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR), rows[i].number);
        assert_int_equal(attribute_of(m, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT), rows[i].sm_count);
        assert_int_equal(attribute_of(m, CU_DEVICE_ATTRIBUTE_INTEGRATED), rows[i].integrated);
        assert_in_range(m->memory_bytes, rows[i].gigabytes * 1000000000, rows[i].gigabytes * 1074000000);
    }
    assert_null(models_at(count));
    assert_null(models_find("xavier"));
    assert_null(models_find(""));
}

/* The planner's limits come from src/arch_sm*.c: another hand wrote those. */
static void limits_agree_with_the_planner(void **state)
{
    (void)state;
    for (size_t i = 0; models_at(i); i++) {
        const model *m = models_at(i);
        limits l;
        assert_int_equal(limits_of_arch(m->number, m->sm_count, &l), JG_OK);
        assert_int_equal(l.arch->number, m->number);
        assert_int_equal(attribute_of(m, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR), l.shared_per_sm);
        assert_int_equal(attribute_of(m, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN), l.shared_per_block);
        assert_int_equal(attribute_of(m, CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK), l.shared_reserved);
        assert_int_equal(attribute_of(m, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR), l.registers_per_sm);
        assert_int_equal(attribute_of(m, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK), 65536);
        assert_int_equal(attribute_of(m, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR), l.threads_per_sm);
        assert_int_equal(attribute_of(m, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR), l.blocks_per_sm);
    }
}

static void attributes_of_every_device(void **state)
{
    (void)state;
    const model *m = models_find("h200");
    int value = 7;
    assert_int_equal(attribute_of(m, CU_DEVICE_ATTRIBUTE_WARP_SIZE), 32);
    assert_int_equal(attribute_of(m, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK), 1024);
    assert_int_equal(attribute_of(m, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z), 64);
    assert_int_equal(attribute_of(m, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X), 2147483647);
    assert_int_equal(attribute_of(m, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y), 65535);
    assert_int_equal(attribute_of(m, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK), 49152);
    assert_int_equal(attribute_of(m, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING), 1);
    assert_int_equal(attribute_of(m, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE), CU_COMPUTEMODE_DEFAULT);
    assert_int_equal(attribute_of(m, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE), 50 << 20);
    assert_int_equal(models_attribute(m, 0, &value), 0);
    assert_int_equal(models_attribute(m, 9999, &value), 0);
    assert_int_equal(value, 7);
}

/* The numbers of an H200's own driver for a kernel of 8 registers. */
static void occupancy_as_an_h200_answers(void **state)
{
    (void)state;
    const model *m = models_find("h200");
    static const struct {
        int threads;
        uint64_t shared;
        int blocks;
    } rows[] = {{32, 0, 32}, {256, 0, 8}, {512, 0, 4}, {768, 0, 2}, {1024, 0, 2}, {64, 10000, 20}, {64, 60000, 3},
                {64, 231424, 1}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(models_blocks_per_sm(m, rows[i].threads, 8, rows[i].shared), rows[i].blocks);
    assert_int_equal(models_blocks_per_sm(m, 256, 255, 0), 1); /* 8 warps of 8192 registers are all there are */
    assert_int_equal(models_blocks_per_sm(m, 288, 255, 0), 0);
    assert_int_equal(models_blocks_per_sm(m, 128, 128, 0), 4);
    assert_int_equal(models_blocks_per_sm(m, 64, 8, 232449), 0); /* one more than 227 KiB */
    assert_int_equal(models_warp_registers(1), 256);
    assert_int_equal(models_warp_registers(8), 256);
    assert_int_equal(models_warp_registers(9), 512);
}

static void read_settings(settings *s)
{
    char error[1024] = "";
    if (!settings_read(s, error, sizeof error)) fail_msg("%s", error);
}

static void defaults(void **state)
{
    (void)state;
    settings s;
    clean_environment();
    for (int empty = 0; empty < 2; empty++) {
        read_settings(&s);
        assert_string_equal(s.model->name, "orin-agx");
        assert_true(s.memory_bytes == 64ull << 30);
        assert_in_range(s.threads, 1, 64);
        const long online = sysconf(_SC_NPROCESSORS_ONLN);
        assert_int_equal(s.threads, online > 64 ? 64 : online);
        assert_true(s.blocks == 0);
        assert_int_equal(s.checks, CHECK_ALL);
        assert_int_equal(s.counters, 1);
        assert_string_equal(s.report, "");
        setenv("JITGEMM_SWGPU_DEVICE", "", 1);
        setenv("JITGEMM_SWGPU_BLOCKS", "", 1);
        setenv("JITGEMM_SWGPU_CHECKS", "", 1);
    }
}

static void values_that_are_taken(void **state)
{
    (void)state;
    settings s;
    static const struct {
        const char *text;
        uint64_t bytes;
    } memory[] = {{"1", 1}, {"4096", 4096}, {"64K", 65536}, {"3M", 3 << 20}, {"2G", 2ull << 30}, {"1048576G", 1ull << 50}};
    for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++) {
        set_only("MEMORY", memory[i].text);
        read_settings(&s);
        assert_true(s.memory_bytes == memory[i].bytes);
    }
    static const struct {
        const char *text;
        unsigned checks;
    } checks[] = {{"all", 15}, {"none", 0}, {"uninitialised", 1}, {"race", 2}, {"operands", 4}, {"leak", 8}, {"leak,race", 10},
                  {"race,race", 2}};
    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++) {
        set_only("CHECKS", checks[i].text);
        read_settings(&s);
        assert_int_equal(s.checks, checks[i].checks);
    }
    set_only("THREADS", "64");
    read_settings(&s);
    assert_int_equal(s.threads, 64);
    set_only("BLOCKS", "all");
    read_settings(&s);
    assert_true(s.blocks == 0);
    set_only("BLOCKS", "1048576");
    read_settings(&s);
    assert_true(s.blocks == 1048576);
    set_only("COUNTERS", "0");
    read_settings(&s);
    assert_int_equal(s.counters, 0);
    set_only("REPORT", "-");
    read_settings(&s);
    assert_string_equal(s.report, "-");
    set_only("DEVICE", "t4");
    read_settings(&s);
    assert_true(s.memory_bytes == 16ull << 30);
}

/* Through the driver, as a program meets it. */
static void values_that_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *name, *value, *allowed;
    } rows[] = {
        {"DEVICE", "xavier", "orin-nano, orin-nx, orin-agx, t4, a100, rtx3090, l4, rtx4090, h100, h200, b200, thor, rtx5090"},
        {"DEVICE", "T4", "known devices are"},
        {"MEMORY", "0", "1 or more"}, {"MEMORY", "K", "number of bytes"}, {"MEMORY", "8T", "64K, 512M or 8G"},
        {"MEMORY", "-1", "number of bytes"}, {"MEMORY", "1048577G", "number of bytes"}, {"MEMORY", "1.5G", "number of bytes"},
        {"MEMORY", "18446744073709551617", "number of bytes"}, {"MEMORY", "8 G", "number of bytes"},
        {"THREADS", "0", "1 to 64"}, {"THREADS", "65", "1 to 64"}, {"THREADS", "two", "1 to 64"},
        {"BLOCKS", "0", "\"all\" or 1 to 1048576"}, {"BLOCKS", "1048577", "\"all\" or 1 to 1048576"}, {"BLOCKS", "some", "all"},
        {"CHECKS", "al", "uninitialised, race, operands and leak"}, {"CHECKS", "race,", "list"}, {"CHECKS", ",race", "list"},
        {"CHECKS", "race leak", "list"}, {"CHECKS", "none,race", "list"},
        {"COUNTERS", "2", "0 or 1"}, {"COUNTERS", "no", "0 or 1"},
        {"REPORT", "/nowhere/at/all", "must be a file, or -"},
        {"FAULT", "cuMemAlloc", "ENTRY:WHEN:ERROR"}, {"SLOW", "cuMemAlloc:0", "ENTRY:MILLISECONDS"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        set_only(rows[i].name, rows[i].value);
        assert_int_equal(cuInit(0), CUDA_ERROR_INVALID_VALUE);
        const char *text = error_text(CUDA_ERROR_INVALID_VALUE);
        char variable[64];
        snprintf(variable, sizeof variable, "JITGEMM_SWGPU_%s", rows[i].name);
        assert_memory_equal(text, variable, strlen(variable));
        assert_contains(text, rows[i].value);
        assert_contains(text, rows[i].allowed);
        int count;
        assert_int_equal(cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
        assert_string_equal(error_text(CUDA_ERROR_INVALID_VALUE), text); /* until the next cuInit */
    }
    clean_environment();
    assert_int_equal(cuInit(0), CUDA_SUCCESS);
    assert_string_equal(error_text(CUDA_ERROR_INVALID_VALUE), "invalid argument");
    char longest[1100];
    memset(longest, 'x', sizeof longest);
    longest[sizeof longest - 1] = 0;
    set_only("REPORT", longest);
    assert_int_equal(cuInit(0), CUDA_ERROR_INVALID_VALUE);
    assert_contains(error_text(CUDA_ERROR_INVALID_VALUE), "longer than 1023 bytes");
}

/* A context that is alive keeps what it was promised. */
static void settings_stay_while_a_context_lives(void **state)
{
    (void)state;
    set_only("DEVICE", "t4");
    open_context();
    int number;
    set_only("DEVICE", "b200");
    assert_int_equal(cuInit(0), CUDA_SUCCESS);
    assert_int_equal(cuDeviceGetAttribute(&number, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0), CUDA_SUCCESS);
    assert_int_equal(number, 40);
    set_only("DEVICE", "nothing");
    assert_int_equal(cuInit(0), CUDA_SUCCESS);
    assert_int_equal(cuDevicePrimaryCtxRelease(0), CUDA_SUCCESS);
    set_only("DEVICE", "b200");
    assert_int_equal(cuInit(0), CUDA_SUCCESS);
    assert_int_equal(cuDeviceGetAttribute(&number, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0), CUDA_SUCCESS);
    assert_int_equal(number, 148);
    char name[64];
    size_t bytes;
    assert_int_equal(cuDeviceGetName(name, sizeof name, 0), CUDA_SUCCESS);
    assert_string_equal(name, "B200 (software GPU)");
    assert_int_equal(cuDeviceGetName(name, 5, 0), CUDA_SUCCESS);
    assert_string_equal(name, "B200");
    assert_int_equal(cuDeviceTotalMem(&bytes, 0), CUDA_SUCCESS);
    assert_true(bytes == 180000000000);
}

/* Every code of the newest cuda.h has its name and a text of its own; no other number has. */
#define E(code) {code, #code}
static void errors_have_names_and_texts(void **state)
{
    (void)state;
    static const struct {
        CUresult code;
        const char *name;
    } rows[] = {
        E(CUDA_SUCCESS), E(CUDA_ERROR_INVALID_VALUE), E(CUDA_ERROR_OUT_OF_MEMORY), E(CUDA_ERROR_NOT_INITIALIZED),
        E(CUDA_ERROR_STUB_LIBRARY), E(CUDA_ERROR_DEVICE_UNAVAILABLE), E(CUDA_ERROR_NO_DEVICE), E(CUDA_ERROR_INVALID_DEVICE),
        E(CUDA_ERROR_INVALID_IMAGE), E(CUDA_ERROR_INVALID_CONTEXT), E(CUDA_ERROR_NO_BINARY_FOR_GPU), E(CUDA_ERROR_INVALID_PTX),
        E(CUDA_ERROR_UNSUPPORTED_PTX_VERSION), E(CUDA_ERROR_INVALID_SOURCE), E(CUDA_ERROR_INVALID_HANDLE),
        E(CUDA_ERROR_NOT_FOUND),
        E(CUDA_ERROR_NOT_READY), E(CUDA_ERROR_ILLEGAL_ADDRESS), E(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES),
        E(CUDA_ERROR_LAUNCH_TIMEOUT), E(CUDA_ERROR_CONTEXT_IS_DESTROYED), E(CUDA_ERROR_ILLEGAL_INSTRUCTION),
        E(CUDA_ERROR_MISALIGNED_ADDRESS), E(CUDA_ERROR_LAUNCH_FAILED), E(CUDA_ERROR_NOT_SUPPORTED), E(CUDA_ERROR_TIMEOUT),
        E(CUDA_ERROR_UNKNOWN),
#if CUDA_VERSION >= 13000
        E(CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER), E(CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC), E(CUDA_ERROR_CONTAINED),
        E(CUDA_ERROR_LOSSY_QUERY), E(CUDA_ERROR_TENSOR_MEMORY_LEAK), E(CUDA_ERROR_CDP_NOT_SUPPORTED),
        E(CUDA_ERROR_CDP_VERSION_MISMATCH), E(CUDA_ERROR_FUNCTION_NOT_LOADED), E(CUDA_ERROR_INVALID_RESOURCE_TYPE),
        E(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION), E(CUDA_ERROR_KEY_ROTATION),
#endif
    };
    const char *text;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(cuGetErrorName(rows[i].code, &text), CUDA_SUCCESS);
        assert_string_equal(text, rows[i].name);
        assert_int_equal(cuGetErrorString(rows[i].code, &text), CUDA_SUCCESS);
        assert_true(strlen(text) > 5);
    }
    int count = 0;
    for (int code = -5; code < 1100; code++) {
        const int known = cuGetErrorName((CUresult)code, &text) == CUDA_SUCCESS;
        assert_int_equal(text != NULL, known);
        assert_int_equal(cuGetErrorString((CUresult)code, &text), known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
        count += known;
    }
    assert_int_equal(count, 101); /* CUDA 13.0 */
    assert_int_equal(cuGetErrorName(CUDA_SUCCESS, NULL), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuGetErrorString(CUDA_SUCCESS, NULL), CUDA_ERROR_INVALID_VALUE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(models_are_those_that_are_sold),
        cmocka_unit_test(limits_agree_with_the_planner),
        cmocka_unit_test(attributes_of_every_device),
        cmocka_unit_test(occupancy_as_an_h200_answers),
        cmocka_unit_test_teardown(defaults, close_all),
        cmocka_unit_test_teardown(values_that_are_taken, close_all),
        cmocka_unit_test_teardown(values_that_are_refused, close_all),
        cmocka_unit_test_teardown(settings_stay_while_a_context_lives, close_all),
        cmocka_unit_test(errors_have_names_and_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
