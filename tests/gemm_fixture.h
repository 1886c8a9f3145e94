/* Common ground of the tests that run the library on the fake driver: a scratch folder with a cache file, a log, contexts,
 * products judged by the oracle, and kernels planted in the cache file.
 *
 * A planted kernel is an ELF header, or a line of PTX, with the right name and under the right key: the fake driver needs
 * no more. So most tests need no NVRTC, and take no time. */
#ifndef JG_TESTS_GEMM_FIXTURE_H
#define JG_TESTS_GEMM_FIXTURE_H

#include "fake_cuda.h"

#include "context.h"
#include "nvrtc_api.h"
#include "reference.h"
#include "scratch.h"

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

typedef struct fixture {
    const fake_controls *fake;
    char folder[4096], cache[4200];
    int logs[JG_LOG_DEBUG + 1]; /* messages by level */
    char log[4096];             /* the last one */
} fixture;

static fixture fx;

static inline void fixture_log(void *user, jg_log_level level, const char *text)
{
    fixture *f = user;
    f->logs[level]++;
    snprintf(f->log, sizeof f->log, "%s", text);
}

/* --- cmocka's setup and teardown of each test --- */

static inline int fixture_setup(void **state)
{
    (void)state;
    const fake_controls *fake = fx.fake ? fx.fake : fake_open();
    memset(&fx, 0, sizeof fx);
    fx.fake = fake;
    fake->reset();
    scratch_make(fx.folder);
    snprintf(fx.cache, sizeof fx.cache, "%s/kernels.db", fx.folder);
    return 0;
}

/* Every test ends with nothing misused and nothing leaked. */
static inline int fixture_teardown(void **state)
{
    (void)state;
    scratch_remove(fx.folder);
    const char *misuse = fx.fake->misuse(), *leaks = fx.fake->leaks();
    if (misuse[0] || leaks[0]) print_error("misuse: %s; leaks: %s\n", misuse, leaks);
    return misuse[0] || leaks[0];
}

#define FIXTURE_TEST(function) cmocka_unit_test_setup_teardown(function, fixture_setup, fixture_teardown)

/* --- contexts --- */

/* Options of a context on the fake driver, with the fixture's cache file and log. */
static inline jg_options fixture_options(void)
{
    return (jg_options){.device = JG_DEVICE_CUDA, .compile = JG_COMPILE_WAIT, .cache_path = fx.cache, .factory_path = "", .driver_path = fake_path(), .log = fixture_log,
                        .log_user = &fx, .log_level = JG_LOG_DEBUG};
}

/* A failure's text is printed at once: cmocka keeps only the last one, and the teardown after a failure has its own. */
#define FIXTURE_FAIL(...)             \
    do {                              \
        print_error(__VA_ARGS__);     \
        print_error("\n");            \
        fail();                       \
    } while (0)

#define assert_status(call, expected)                                                                                     \
    do {                                                                                                                  \
        jg_status status_ = (call);                                                                                       \
        if (status_ != (expected))                                                                                        \
            FIXTURE_FAIL("%s: %s (%s) instead of %s", #call, jg_status_name(status_), jg_last_error(), jg_status_name(expected)); \
    } while (0)

#define assert_says(text, part)                                                                \
    do {                                                                                       \
        if (!strstr(text, part)) FIXTURE_FAIL("\"%s\" does not say \"%s\"", text, part);       \
    } while (0)

static inline jg_context *fixture_open_with(jg_options options)
{
    jg_context *c;
    assert_status(jg_open(&options, &c), JG_OK);
    return c;
}

static inline jg_context *fixture_open(void)
{
    return fixture_open_with(fixture_options());
}

static inline jg_stats fixture_stats(jg_context *c)
{
    jg_stats stats;
    assert_status(jg_cache_stats(c, &stats), JG_OK);
    return stats;
}

/* A context whose NVRTC is not there. */
static inline jg_context *fixture_open_without_nvrtc(void)
{
    jg_options options = fixture_options();
    options.nvrtc_path = "/nonexistent/libnvrtc.so";
    return fixture_open_with(options);
}

/* Skips the test, saying so, where NVRTC is not there. */
#define NEEDS_NVRTC()                                                 \
    do {                                                              \
        nvrtc *lib_;                                                  \
        if (nvrtc_open(getenv("JITGEMM_NVRTC"), &lib_) != JG_OK) {    \
            printf("SKIP %s: no NVRTC\n", __func__);                  \
            skip();                                                   \
        }                                                             \
        nvrtc_close(lib_);                                            \
    } while (0)

/* --- products --- */

static inline jg_problem square(int64_t size, jg_type type)
{
    return (jg_problem){.m = size, .n = size, .k = size, .type_a = type};
}

/* Runs one product with fresh data; where it succeeds, the oracle must agree. */
static inline jg_status fixture_gemm(jg_context *c, const jg_problem *p, float alpha, float beta)
{
    reference ref;
    reference_make(&ref, p, REFERENCE_INTEGERS, 0, 7);
    const jg_operands data = {.a = reference_at(&ref.a), .b = reference_at(&ref.b), .c = reference_at(&ref.c), .alpha = &alpha,
                              .beta = &beta};
    jg_status status = jg_gemm(c, p, &data);
    if (status == JG_OK) {
        reference_result result = reference_check(&ref, alpha, beta);
        if (result.failures || result.stray)
            FIXTURE_FAIL("%lld wrong elements, %lld stray bytes; first: %g instead of %g", (long long)result.failures, (long long)result.stray,
                     result.got, result.expected);
    }
    reference_free(&ref);
    return status;
}

static inline jg_status fixture_run_plan(const jg_plan *pl, const jg_problem *p)
{
    reference ref;
    reference_make(&ref, p, REFERENCE_INTEGERS, 0, 7);
    jg_status status = jg_plan_run(pl, &(jg_operands){.a = reference_at(&ref.a), .b = reference_at(&ref.b), .c = reference_at(&ref.c)});
    if (status == JG_OK) assert_int_equal(reference_check(&ref, 1, 0).failures, 0);
    reference_free(&ref);
    return status;
}

/* --- planted kernels --- */

/* The spec that an Orin plans for a problem whose pointers are aligned to 16. form AUTO: what is planned first. */
static inline kernel_spec fixture_spec(const jg_problem *in, jg_form form)
{
    problem p;
    limits l;
    plan chosen;
    assert_status(problem_canonicalise(in, &p), JG_OK);
    assert_status(limits_of_arch(87, 16, &l), JG_OK);
    assert_status(plan_choose(&p, problem_promised_access(&p), form ? form : gemm_planned_form(&p), &l, &chosen), JG_OK);
    return chosen.spec;
}

/* A kernel's name, in one of a few static buffers. */
static inline const char *fixture_name(const jg_problem *in, jg_form form)
{
    static char names[8][KERNEL_NAME_BYTES];
    static unsigned next;
    kernel_spec spec = fixture_spec(in, form);
    char *name = names[next++ % 8];
    kernel_format_name(&spec, name);
    return name;
}

/* What the fake driver takes for a cubin; `bytes` is its size. */
static inline size_t fixture_cubin(const char *name, unsigned char code[1024])
{
    const size_t bytes = sizeof(Elf64_Ehdr) + 1 + strlen(name) + 1;
    memset(code, 0, 1024);
    Elf64_Ehdr header = {.e_shoff = bytes};
    memcpy(header.e_ident, ELFMAG, SELFMAG);
    memcpy(code, &header, sizeof header);
    memcpy(code + sizeof header + 1, name, strlen(name));
    return bytes;
}

/* The same for PTX; the size counts the ending 0. */
static inline size_t fixture_ptx(const char *name, char text[1024])
{
    return (size_t)snprintf(text, 1024, ".version 7.4\n.target sm_87\n.visible .entry %s()\n", name) + 1;
}

/* Puts kernels into a cache file. */
static inline void fixture_plant_specs(const char *file, const kernel_spec *specs, size_t count)
{
    char error[512];
    store *s;
    if (store_open(file, 0, 0, &s, error, sizeof error) != STORE_OK) FIXTURE_FAIL("%s", error);
    for (size_t i = 0; i < count; i++) {
        kernel_key key;
        char name[KERNEL_NAME_BYTES], ptx[1024];
        unsigned char cubin[1024];
        kernel_encode_key(&specs[i], &key);
        kernel_format_name(&specs[i], name);
        const store_record record = {.key = key.bytes, .key_bytes = sizeof key.bytes, .name = name, .target = "sm_87", .label = "planted",
                                     .provenance = "planted", .binary = cubin, .binary_bytes = fixture_cubin(name, cubin), .portable = ptx,
                                     .portable_bytes = fixture_ptx(name, ptx), .defines = "", .source = "none", .build_ms = 12};
        assert_int_equal(store_put(s, &record, NULL), STORE_OK);
    }
    store_close(s);
}

/* Puts the kernel of a problem into the cache file. */
static inline void fixture_plant(const jg_problem *in, jg_form form)
{
    const kernel_spec spec = fixture_spec(in, form);
    fixture_plant_specs(fx.cache, &spec, 1);
}

#endif
