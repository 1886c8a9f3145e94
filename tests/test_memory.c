/* src/memory.c: jg_alloc, jg_free, jg_copy and jg_synchronize on the fake driver and on the cpu device. */
#include "gemm_fixture.h"

static jg_context *open_cpu(void)
{
    return fixture_open_with((jg_options){.device = JG_DEVICE_CPU, .cache_path = ""});
}

static void memory_is_aligned_and_goes_round(void **state)
{
    (void)state;
    for (int cpu = 0; cpu < 2; cpu++) {
        jg_context *c = cpu ? open_cpu() : fixture_open();
        for (int memory = 0; memory < 2; memory++) {
            void *block = NULL, *back = NULL;
            unsigned char text[300], read[300] = {0};
            for (int i = 0; i < 300; i++) text[i] = (unsigned char)i;
            assert_status(jg_alloc(c, (jg_memory)memory, sizeof text, &block), JG_OK);
            assert_status(jg_alloc(c, JG_HOST_MEMORY, sizeof text, &back), JG_OK);
            assert_int_equal((uintptr_t)block % 256, 0);
            assert_int_equal((uintptr_t)back % 256, 0);
            assert_int_equal(fx.fake->allocations(), !cpu && memory == JG_DEVICE_MEMORY);
            assert_status(jg_copy(c, block, text, sizeof text), JG_OK);
            assert_status(jg_copy(c, back, block, sizeof text), JG_OK);
            assert_status(jg_synchronize(c, NULL), JG_OK);
            memcpy(read, back, sizeof read);
            assert_memory_equal(read, text, sizeof text);
            assert_status(jg_free(c, (jg_memory)memory, block), JG_OK);
            assert_status(jg_free(c, JG_HOST_MEMORY, back), JG_OK);
            assert_int_equal(fx.fake->allocations(), 0);
        }
        assert_status(jg_close(c), JG_OK);
    }
}

static void nothing_is_a_size(void **state)
{
    (void)state;
    jg_context *c = fixture_open();
    void *block = &c;
    uint64_t before = fx.fake->all_calls();
    assert_status(jg_alloc(c, JG_DEVICE_MEMORY, 0, &block), JG_OK);
    assert_null(block);
    assert_status(jg_free(c, JG_DEVICE_MEMORY, NULL), JG_OK);
    assert_status(jg_copy(c, NULL, NULL, 0), JG_OK);
    assert_int_equal(fx.fake->all_calls(), before);
    assert_status(jg_close(c), JG_OK);
}

static void bad_arguments_are_named(void **state)
{
    (void)state;
    char byte = 0;
    void *block = NULL;
    for (int cpu = 0; cpu < 2; cpu++) {
        jg_context *c = cpu ? open_cpu() : fixture_open();
        uint64_t before = fx.fake->all_calls();
#define REFUSES(call, status, what)         \
    do {                                    \
        assert_status(call, status);        \
        assert_says(jg_last_error(), what); \
    } while (0)
        REFUSES(jg_alloc(NULL, JG_HOST_MEMORY, 1, &block), JG_ERR_NULL, "jg_alloc: context is null");
        REFUSES(jg_alloc(c, JG_HOST_MEMORY, 1, NULL), JG_ERR_NULL, "jg_alloc: pointer is null");
        REFUSES(jg_alloc(c, (jg_memory)2, 1, &block), JG_ERR_VALUE, "memory is 2");
        REFUSES(jg_free(NULL, JG_HOST_MEMORY, NULL), JG_ERR_NULL, "jg_free: context is null");
        REFUSES(jg_free(c, (jg_memory)-1, NULL), JG_ERR_VALUE, "memory is -1");
        REFUSES(jg_copy(NULL, &byte, &byte, 1), JG_ERR_NULL, "jg_copy: context is null");
        REFUSES(jg_copy(c, NULL, &byte, 1), JG_ERR_NULL, "destination is null");
        REFUSES(jg_copy(c, &byte, NULL, 1), JG_ERR_NULL, "source is null");
        REFUSES(jg_synchronize(NULL, NULL), JG_ERR_NULL, "jg_synchronize: context is null");
        assert_int_equal(fx.fake->all_calls(), before);
        assert_status(jg_close(c), JG_OK);
    }
}

static void driver_errors_become_statuses(void **state)
{
    (void)state;
    jg_context *c = fixture_open();
    void *block, *other = &c;
    char byte = 0;
    assert_status(jg_alloc(c, JG_DEVICE_MEMORY, 16, &block), JG_OK);
    REFUSES(jg_alloc(c, JG_DEVICE_MEMORY, (size_t)1 << 40, &other), JG_ERR_NO_MEMORY, "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY");
    assert_null(other);
    static const struct {
        CUresult result;
        jg_status status;
    } rows[] = {{CUDA_ERROR_INVALID_VALUE, JG_ERR_DEVICE}, {CUDA_ERROR_ILLEGAL_ADDRESS, JG_ERR_DEVICE_LOST}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        fx.fake->fail_call("cuMemAlloc_v2", 1, rows[i].result, FAKE_ONCE);
        fx.fake->fail_call("cuMemFree_v2", 1, rows[i].result, FAKE_ONCE);
        fx.fake->fail_call("cuMemcpy", 1, rows[i].result, FAKE_ONCE);
        fx.fake->fail_call("cuStreamSynchronize", 1, rows[i].result, FAKE_ONCE);
        REFUSES(jg_alloc(c, JG_DEVICE_MEMORY, 16, &other), rows[i].status, "cuMemAlloc: ");
        REFUSES(jg_free(c, JG_DEVICE_MEMORY, block), rows[i].status, "cuMemFree: ");
        REFUSES(jg_copy(c, block, &byte, 1), rows[i].status, "cuMemcpy: ");
        REFUSES(jg_synchronize(c, NULL), rows[i].status, "cuStreamSynchronize: ");
        assert_int_equal(fx.fake->depth(), 0);
    }
    fx.fake->fail_call("cuCtxPushCurrent_v2", 1, CUDA_ERROR_INVALID_VALUE, FAKE_FROM_THEN);
    REFUSES(jg_alloc(c, JG_DEVICE_MEMORY, 16, &other), JG_ERR_DEVICE, "cuCtxPushCurrent");
    REFUSES(jg_copy(c, block, &byte, 1), JG_ERR_DEVICE, "cuCtxPushCurrent");
    REFUSES(jg_free(c, JG_DEVICE_MEMORY, block), JG_ERR_DEVICE, "cuCtxPushCurrent");
    REFUSES(jg_synchronize(c, NULL), JG_ERR_DEVICE, "cuCtxPushCurrent");
    fx.fake->fail_call("cuCtxPushCurrent_v2", 1000, CUDA_SUCCESS, FAKE_ONCE);
    assert_status(jg_free(c, JG_DEVICE_MEMORY, block), JG_OK);
    assert_status(jg_close(c), JG_OK);
}

static void the_stream_and_the_current_context_are_the_callers(void **state)
{
    (void)state;
    jg_context *c = fixture_open();
    CUcontext mine = fx.fake->make_context();
    void *block;
    char bytes[8] = "abcdefg";
    fx.fake->push(mine);
    assert_status(jg_alloc(c, JG_DEVICE_MEMORY, 8, &block), JG_OK);
    assert_status(jg_copy(c, block, bytes, 8), JG_OK);
    assert_status(jg_synchronize(c, (void *)(uintptr_t)0x77), JG_OK);
    assert_ptr_equal(fx.fake->last_launch().stream, (void *)(uintptr_t)0x77);
    assert_status(jg_free(c, JG_DEVICE_MEMORY, block), JG_OK);
    assert_ptr_equal(fx.fake->current(), mine);
    assert_int_equal(fx.fake->depth(), 1);
    fx.fake->pop();
    assert_status(jg_close(c), JG_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(memory_is_aligned_and_goes_round), FIXTURE_TEST(nothing_is_a_size), FIXTURE_TEST(bad_arguments_are_named),
        FIXTURE_TEST(driver_errors_become_statuses), FIXTURE_TEST(the_stream_and_the_current_context_are_the_callers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
