/* Compiling's errors, and that the templates are ordinary CUDA, with the real NVRTC and nvcc. */
#include "compile.h"
#include "template.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static compiler *nvrtc_compiler;

static int have_nvrtc(void)
{
    kernel_spec tiny = {.family = FAMILY_SIMT,
                        .arch = 80,
                        .form = JG_FORM_GENERIC,
                        .type_a = JG_F32,
                        .type_b = JG_F32,
                        .fusion = SPEC_FUSION_ARGUMENT,
                        .trans_a = SPEC_ARGUMENT,
                        .trans_b = SPEC_ARGUMENT,
                        .vec_a = SPEC_ARGUMENT,
                        .vec_b = SPEC_ARGUMENT,
                        .vec_c = SPEC_ARGUMENT,
                        .tile = {32, 32, 16, 4, 4, 2, 1}};
    image img;
    jg_status status = compile_on_thread(nvrtc_compiler, &tiny, &img);
    if (status == JG_ERR_NO_NVRTC) print_message("SKIP no NVRTC: %s\n", jg_last_error());
    else assert_int_equal(status, JG_OK);
    image_free(&img);
    return status == JG_OK;
}

static void test_errors(void **state)
{
    (void)state;
    if (!have_nvrtc()) skip();
    kernel_spec s = {.family = FAMILY_MMA,
                     .arch = 87,
                     .form = JG_FORM_GENERIC,
                     .type_a = JG_F16,
                     .type_b = JG_F16,
                     .fusion = SPEC_FUSION_ARGUMENT,
                     .vec_a = 16,
                     .vec_b = 16,
                     .vec_c = SPEC_ARGUMENT,
                     .tile = {64, 64, 32, 32, 32, 3, 1}};
    image img;
    s.arch = 20; /* no NVRTC that jitgemm opens knows it */
    assert_int_equal(compile_on_thread(nvrtc_compiler, &s, &img), JG_ERR_ARCH);
    assert_non_null(strstr(jg_last_error(), "sm_20"));
    assert_null(img.cubin);
    s.arch = 87;
    s.tile.warp_m = 24; /* not what the template can do */
    s.trans_a = s.trans_b = SPEC_ARGUMENT;
    assert_int_equal(compile_on_thread(nvrtc_compiler, &s, &img), JG_ERR_COMPILE);
    assert_non_null(strstr(jg_last_error(), "error"));
    assert_non_null(strstr(jg_last_error(), "jg_sm87_mma"));
    assert_null(img.ptx);
}

static void test_missing_nvrtc(void **state)
{
    (void)state;
    compiler *none = compiler_create("/nonexistent/libnvrtc.so", 0);
    kernel_spec s = {.family = FAMILY_SIMT, .arch = 87, .form = JG_FORM_GENERIC, .type_a = JG_F32, .type_b = JG_F32,
                     .fusion = SPEC_FUSION_ARGUMENT, .tile = {32, 32, 16, 4, 4, 2, 1}};
    image img;
    assert_int_equal(compile_on_thread(none, &s, &img), JG_ERR_NO_NVRTC);
    assert_non_null(strstr(jg_last_error(), "/nonexistent/libnvrtc.so"));
    assert_non_null(strstr(jg_last_error(), "JITGEMM_NVRTC"));
    compiler_destroy(none);
    /* A library that is there but is no NVRTC. */
    compiler *wrong = compiler_create("libm.so.6", 0);
    assert_int_equal(compile_on_thread(wrong, &s, &img), JG_ERR_NO_NVRTC);
    compiler_destroy(wrong);
}

/* The templates are ordinary CUDA: what is given to NVRTC also goes through nvcc's two passes. */
static void test_plain_nvcc(void **state)
{
    (void)state;
    if (system("command -v nvcc >/dev/null 2>&1") != 0) {
        print_message("SKIP no nvcc on the PATH\n");
        skip();
    }
    const kernel_spec specs[] = {
        {.family = FAMILY_SIMT,
         .arch = 80,
         .form = JG_FORM_GENERIC,
         .type_a = JG_F32,
         .type_b = JG_F32,
         .fusion = SPEC_FUSION_ARGUMENT,
         .trans_a = SPEC_ARGUMENT,
         .trans_b = SPEC_ARGUMENT,
         .vec_a = SPEC_ARGUMENT,
         .vec_b = SPEC_ARGUMENT,
         .vec_c = SPEC_ARGUMENT,
         .tile = {64, 64, 16, 4, 4, 2, 1}},
        {.family = FAMILY_MMA,
         .arch = 80,
         .form = JG_FORM_SPECIALISED,
         .type_a = JG_BF16,
         .type_b = JG_BF16,
         .fusion = JG_F32 << FUSION_TYPE_C_SHIFT,
         .trans_b = 1,
         .vec_a = SPEC_GATHER,
         .vec_b = 8,
         .single = 1,
         .tile = {64, 64, 32, 32, 32, 3, 1},
         .m = 100,
         .n = 70,
         .k = 60,
         .lda = 61,
         .ldb = 60,
         .ldc = 71},
        {.family = FAMILY_MMA,
         .arch = 80,
         .form = JG_FORM_GENERIC,
         .type_a = JG_U8,
         .type_b = JG_S8,
         .fusion = SPEC_FUSION_ARGUMENT,
         .math = JG_MATH_SANITIZE,
         .trans_a = SPEC_ARGUMENT,
         .trans_b = SPEC_ARGUMENT,
         .vec_a = SPEC_GATHER,
         .vec_b = SPEC_GATHER,
         .vec_c = SPEC_ARGUMENT,
         .tile = {64, 64, 64, 32, 32, 3, 1}},
        {.family = FAMILY_TF32,
         .arch = 80,
         .form = JG_FORM_SPECIALISED,
         .type_a = JG_F32,
         .type_b = JG_F32,
         .math = JG_MATH_F32_3XTF32,
         .fusion = 0x5ff | JG_E4M3 << FUSION_TYPE_C_SHIFT | JG_F16 << FUSION_TYPE_BIAS_SHIFT,
         .vec_a = 16,
         .vec_b = 4,
         .tile = {64, 64, 16, 32, 32, 2, 1},
         .m = 100,
         .n = 70,
         .k = 60,
         .lda = 60,
         .ldb = 71,
         .ldc = 71},
    };
    char folder[] = "/tmp/jitgemm-nvcc-XXXXXX", path[64], command[256], defines[2048];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/kernel.cu", folder);
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        kernel_render_defines(&specs[i], defines, sizeof defines);
        fprintf(file, "%s%s", defines, template_source(specs[i].family));
        assert_int_equal(fclose(file), 0);
        snprintf(command, sizeof command, "nvcc -arch=sm_80 -fmad=false -Werror all-warnings -cubin -o %s/kernel.cubin %s",
                 folder, path);
        assert_int_equal(system(command), 0);
    }
    snprintf(command, sizeof command, "rm -rf %s", folder);
    assert_int_equal(system(command), 0);
}

static int setup(void **state)
{
    (void)state;
    nvrtc_compiler = compiler_create(getenv("JITGEMM_NVRTC"), 0);
    return nvrtc_compiler ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    compiler_destroy(nvrtc_compiler);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_missing_nvrtc),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_plain_nvcc),
    };
    return cmocka_run_group_tests_name("compile_errors", tests, setup, teardown);
}
