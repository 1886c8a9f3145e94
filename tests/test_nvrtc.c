/* NVRTC itself: opening, what a compile gives, what its errors say, and that contraction is off. */
#include "nvrtc_api.h"

#include "compile.h"
#include "fake_nvrtc.h"

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static nvrtc *lib;

/* NVRTC only runs on threads made for it. */
typedef struct job {
    const char *source, *name;
    int arch;
    image out;
    jg_status status;
    char error[1024];
} job;

static void *run(void *argument)
{
    job *j = argument;
    j->status = nvrtc_compile(lib, j->source, j->name, j->arch, 0, &j->out);
    if (j->status != JG_OK) snprintf(j->error, sizeof j->error, "%s", jg_last_error());
    return NULL;
}

static job compile(const char *source, int arch)
{
    if (!lib) {
        print_message("SKIP no NVRTC: %s\n", jg_last_error());
        skip();
    }
    job j = {.source = source, .name = "k", .arch = arch};
    pthread_t thread;
    assert_int_equal(compile_spawn(&thread, run, &j), 0);
    pthread_join(thread, NULL);
    return j;
}

static void test_cubin_and_ptx(void **state)
{
    (void)state;
    job j = compile("extern \"C\" __global__ void k(float *p) { p[0] = 1; }", 87);
    assert_int_equal(j.status, JG_OK);
    assert_memory_equal(j.out.cubin, ELFMAG, SELFMAG);
    assert_non_null(strstr(j.out.ptx, ".target sm_87"));
    assert_non_null(strstr(j.out.ptx, ".entry k("));
    assert_int_equal(j.out.ptx[j.out.ptx_bytes], 0);
    assert_int_equal(strlen(j.out.ptx), j.out.ptx_bytes);
    assert_true(j.out.compile_ms > 0);
    assert_non_null(strstr(j.out.provenance, "sm_87"));
    assert_non_null(strstr(j.out.provenance, "--fmad=false"));
    image_free(&j.out);
    assert_null(j.out.cubin);
}

static void test_contraction_is_off(void **state)
{
    (void)state;
    job j = compile("extern \"C\" __global__ void k(float *p) { p[0] = p[1] * p[2] + p[3]; }", 80);
    assert_int_equal(j.status, JG_OK);
    assert_null(strstr(j.out.ptx, "fma."));
    assert_non_null(strstr(j.out.ptx, "mul."));
    image_free(&j.out);
}

static void test_errors_carry_the_log(void **state)
{
    (void)state;
    job j = compile("extern \"C\" __global__ void k() { not_declared = 1; }", 80);
    assert_int_equal(j.status, JG_ERR_COMPILE);
    assert_non_null(strstr(j.error, "not_declared"));
    assert_non_null(strstr(j.error, "compiling k"));
    assert_null(j.out.cubin);
    j = compile("extern \"C\" __global__ void k() {}", 20);
    assert_int_equal(j.status, JG_ERR_ARCH);
    assert_non_null(strstr(j.error, "cannot compile for sm_20; it knows sm_"));
}

/* Our cache file is the only copy; an NVRTC that has no cache of its own does not know the option. */
static void test_its_own_cache_is_off(void **state)
{
    (void)state;
    static const struct { int version, has_cache; } rows[] = {{12080, 0}, {0, 1}}; /* those that have builtins */
    nvrtc *const real = lib;
    fake_nvrtc *fake = fake_nvrtc_open();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        atomic_store(&fake->version, rows[i].version);
        atomic_store(&fake->accepts, 1);
        assert_int_equal(nvrtc_open(fake_nvrtc_path(), &lib), JG_OK);
        job j = compile("#define JG_KERNEL k\n", 87);
        assert_int_equal(j.status, JG_OK);
        assert_int_equal(strstr(fake->options, "--no-cache ") != NULL, rows[i].has_cache);
        assert_non_null(strstr(fake->options, "--fmad=false "));
        image_free(&j.out);
        nvrtc_close(lib);
    }
    lib = real;
}

/* The short compile that makes exit() safe: once a process, and not in one that never calls exit(). */
static void test_warming_up_is_for_those_who_exit(void **state)
{
    (void)state;
    nvrtc *const real = lib;
    fake_nvrtc *fake = fake_nvrtc_open();
    atomic_store(&fake->accepts, 1);
    for (int round = 0; round < 3; round++) {
        assert_int_equal(nvrtc_open(fake_nvrtc_path(), &lib), JG_OK);
        if (round == 0) nvrtc_never_exits(lib);
        job j = compile("#define JG_KERNEL k\n", 87);
        assert_int_equal(j.status, JG_OK);
        assert_int_equal(atomic_load(&fake->warm_ups), round > 0);
        image_free(&j.out);
        nvrtc_close(lib);
    }
    lib = real;
}

static void test_libraries_that_are_none(void **state)
{
    (void)state;
    nvrtc *none;
    assert_int_equal(nvrtc_open("/nonexistent/libnvrtc.so", &none), JG_ERR_NO_NVRTC);
    assert_null(none);
    assert_non_null(strstr(jg_last_error(), "/nonexistent/libnvrtc.so"));
    assert_int_equal(nvrtc_open("libm.so.6", &none), JG_ERR_NO_NVRTC);
    assert_null(none);
    assert_non_null(strstr(jg_last_error(), "nvrtcVersion"));
}

static int setup(void **state)
{
    (void)state;
    nvrtc_open(getenv("JITGEMM_NVRTC"), &lib);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    nvrtc_close(lib);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cubin_and_ptx),
        cmocka_unit_test(test_contraction_is_off),
        cmocka_unit_test(test_errors_carry_the_log),
        cmocka_unit_test(test_warming_up_is_for_those_who_exit), cmocka_unit_test(test_its_own_cache_is_off),
        cmocka_unit_test(test_libraries_that_are_none),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
