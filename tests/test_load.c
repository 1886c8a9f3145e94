/* src/load.c: which image of a kernel is taken, what a function is asked and told, and that a failure leaves nothing loaded. */
#include "gemm_fixture.h"

typedef struct bench {
    device dev;
    device_scope scope;
    kernel_spec spec;
    char name[KERNEL_NAME_BYTES], ptx[1024];
    unsigned char cubin[1024];
    image img; /* borrowed parts */
} bench;

static void bench_open(bench *x, const jg_problem *p)
{
    memset(x, 0, sizeof *x);
    const jg_options options = {.device = JG_DEVICE_CUDA};
    assert_status(device_open(&options, fake_path(), &x->dev), JG_OK);
    assert_status(device_enter(&x->dev, &x->scope), JG_OK);
    x->spec = fixture_spec(p, JG_FORM_AUTO);
    kernel_format_name(&x->spec, x->name);
    x->img = (image){.cubin = x->cubin, .ptx = x->ptx, .cubin_bytes = fixture_cubin(x->name, x->cubin),
                     .ptx_bytes = fixture_ptx(x->name, x->ptx), .compile_ms = 5};
}

static void bench_close(bench *x)
{
    device_leave(&x->dev, &x->scope);
    device_close(&x->dev);
}

static void the_cubin_is_taken_on_its_own_chip(void **state)
{
    (void)state;
    bench x;
    loaded_kernel k;
    bench_open(&x, &(jg_problem){.m = 8, .n = 8, .k = 8});
    fx.fake->refuse_ptx(CUDA_ERROR_INVALID_PTX);
    assert_status(load_kernel(&x.dev, &x.spec, &x.img, &k), JG_OK);
    assert_int_equal(fx.fake->calls("cuModuleLoadDataEx"), 1);
    assert_true(fx.fake->is_loaded(x.name));
    assert_int_equal(k.registers, 77);
    assert_int_equal(k.code_bytes, x.img.cubin_bytes);
    assert_true(k.compile_ms == 5);
    unload_kernel(&x.dev, &k);
    assert_int_equal(fx.fake->modules(), 0);
    unload_kernel(&x.dev, &k); /* again does nothing */
    assert_int_equal(fx.fake->calls("cuModuleUnload"), 1);
    bench_close(&x);
}

/* On a newer chip of the family (8.8, planned for as 8.7) the cubin is not even tried. */
static void ptx_is_taken_on_another_chip(void **state)
{
    (void)state;
    bench x;
    loaded_kernel k;
    fx.fake->set_capability(88);
    bench_open(&x, &(jg_problem){.m = 8, .n = 8, .k = 8});
    assert_int_equal(x.dev.limits.arch->number, 87);
    fx.fake->refuse_cubins(CUDA_ERROR_UNKNOWN);
    assert_status(load_kernel(&x.dev, &x.spec, &x.img, &k), JG_OK);
    assert_int_equal(fx.fake->calls("cuModuleLoadDataEx"), 1);
    unload_kernel(&x.dev, &k);
    bench_close(&x);
}

static void either_image_alone_is_enough(void **state)
{
    (void)state;
    bench x;
    loaded_kernel k;
    bench_open(&x, &(jg_problem){.m = 8, .n = 8, .k = 8});
    image only_ptx = x.img, only_cubin = x.img, none = x.img;
    only_ptx.cubin_bytes = 0;
    only_cubin.ptx_bytes = 0;
    none.cubin_bytes = none.ptx_bytes = 0;
    assert_status(load_kernel(&x.dev, &x.spec, &only_ptx, &k), JG_OK);
    assert_int_equal(k.code_bytes, x.img.ptx_bytes);
    unload_kernel(&x.dev, &k);
    assert_status(load_kernel(&x.dev, &x.spec, &only_cubin, &k), JG_OK);
    unload_kernel(&x.dev, &k);
    assert_status(load_kernel(&x.dev, &x.spec, &none, &k), JG_ERR_LOAD);
    assert_null(k.module);
    bench_close(&x);
}

/* Refusals that PTX may mend, and errors that it cannot. */
static void only_a_refusal_leads_to_ptx(void **state)
{
    (void)state;
    static const struct {
        CUresult result;
        jg_status status;
        unsigned loads;
    } rows[] = {
        {CUDA_ERROR_NO_BINARY_FOR_GPU, JG_OK, 2},      {CUDA_ERROR_INVALID_IMAGE, JG_OK, 2},
        {CUDA_ERROR_INVALID_SOURCE, JG_OK, 2},         {CUDA_ERROR_OUT_OF_MEMORY, JG_ERR_NO_MEMORY, 1},
        {CUDA_ERROR_ILLEGAL_ADDRESS, JG_ERR_DEVICE_LOST, 1}, {CUDA_ERROR_INVALID_VALUE, JG_ERR_LOAD, 1},
    };
    bench x;
    loaded_kernel k;
    bench_open(&x, &(jg_problem){.m = 8, .n = 8, .k = 8});
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint64_t before = fx.fake->calls("cuModuleLoadDataEx");
        fx.fake->refuse_cubins(rows[i].result);
        assert_status(load_kernel(&x.dev, &x.spec, &x.img, &k), rows[i].status);
        assert_int_equal(fx.fake->calls("cuModuleLoadDataEx") - before, rows[i].loads);
        if (rows[i].status == JG_OK) {
            unload_kernel(&x.dev, &k);
        } else {
            assert_says(jg_last_error(), "loading the cubin of ");
            assert_says(jg_last_error(), "fake: image refused"); /* the JIT's log */
        }
        assert_int_equal(fx.fake->modules(), 0);
    }
    bench_close(&x);
}

static void a_kernel_without_its_function_is_unloaded(void **state)
{
    (void)state;
    bench x;
    loaded_kernel k;
    bench_open(&x, &(jg_problem){.m = 8, .n = 8, .k = 8});
    x.img.cubin_bytes = fixture_cubin("another_name", x.cubin);
    assert_status(load_kernel(&x.dev, &x.spec, &x.img, &k), JG_ERR_LOAD);
    assert_says(jg_last_error(), x.name);
    assert_says(jg_last_error(), "CUDA_ERROR_NOT_FOUND");
    assert_int_equal(fx.fake->modules(), 0);
    assert_null(k.module);
    bench_close(&x);
}

static void big_shared_memory_is_asked_for(void **state)
{
    (void)state;
    bench x;
    loaded_kernel k;
    bench_open(&x, &(jg_problem){.m = 1024, .n = 1024, .k = 1024, .type_a = JG_F16});
    assert_true(kernel_shared_bytes(&x.spec) > 48 * 1024);
    assert_status(load_kernel(&x.dev, &x.spec, &x.img, &k), JG_OK);
    assert_int_equal(fx.fake->calls("cuFuncSetAttribute"), 1);
    unload_kernel(&x.dev, &k);
    fx.fake->fail_call("cuFuncSetAttribute", 1, CUDA_ERROR_INVALID_VALUE, FAKE_ONCE);
    assert_status(load_kernel(&x.dev, &x.spec, &x.img, &k), JG_ERR_LOAD);
    assert_says(jg_last_error(), "shared memory");
    assert_int_equal(fx.fake->modules(), 0);
    bench_close(&x);

    bench_open(&x, &(jg_problem){.m = 8, .n = 8, .k = 8});
    uint64_t before = fx.fake->calls("cuFuncSetAttribute");
    assert_true(kernel_shared_bytes(&x.spec) <= 48 * 1024);
    assert_status(load_kernel(&x.dev, &x.spec, &x.img, &k), JG_OK);
    assert_int_equal(fx.fake->calls("cuFuncSetAttribute"), before);
    unload_kernel(&x.dev, &k);
    bench_close(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(the_cubin_is_taken_on_its_own_chip), FIXTURE_TEST(ptx_is_taken_on_another_chip),
        FIXTURE_TEST(either_image_alone_is_enough),       FIXTURE_TEST(only_a_refusal_leads_to_ptx),
        FIXTURE_TEST(a_kernel_without_its_function_is_unloaded), FIXTURE_TEST(big_shared_memory_is_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
