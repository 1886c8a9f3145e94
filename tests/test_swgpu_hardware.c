/* mma.sync on the software GPU against what an H200 gave: for each form of the instruction, 400 warps with pseudo-random operands
 * (denormals, zeros and wide exponents among them), and a hash of all results that was taken on the hardware (driver 580,
 * CUDA 13.0, 2026-11-29). JITGEMM_DRIVER=libcuda.so.1 runs the same on a GPU of that generation: so the hashes can be checked again. */
#include "context.h"
#include "options.h"
#include "reference.h"
#include "text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { WARPS = 400, LANES = 32, IN_WORDS = 10, OUT_WORDS = 4 };
enum { TF32, F16, BF16, E4M3, E5M2 };

static const struct form {
    const char *instruction;
    int a, b, c; /* registers of a lane */
    int type;
    uint64_t hash;
} forms[] = {
    {"m16n8k8.row.col.f32.tf32.tf32.f32", 4, 2, 4, TF32, 0x7bf4d316ec73161f},
    {"m16n8k4.row.col.f32.tf32.tf32.f32", 2, 1, 4, TF32, 0x645d7a97b11eeb6c},
    {"m16n8k16.row.col.f32.f16.f16.f32", 4, 2, 4, F16, 0x4d657cdd7a8d8e16},
    {"m16n8k8.row.col.f32.f16.f16.f32", 2, 1, 4, F16, 0x4dfd248385925c95},
    {"m16n8k16.row.col.f32.bf16.bf16.f32", 4, 2, 4, BF16, 0xf19495308a191499},
    {"m16n8k8.row.col.f32.bf16.bf16.f32", 2, 1, 4, BF16, 0xf0f8804085ce3d42},
    {"m16n8k16.row.col.f16.f16.f16.f16", 4, 2, 2, F16, 0x35ed12fb9cb10b82},
    {"m16n8k8.row.col.f16.f16.f16.f16", 2, 1, 2, F16, 0x2a8e4b06db08e66e},
    {"m16n8k32.row.col.f32.e4m3.e4m3.f32", 4, 2, 4, E4M3, 0x3cd5d93b1fbc5b3d},
    {"m16n8k32.row.col.f32.e5m2.e5m2.f32", 4, 2, 4, E5M2, 0xeb71a317341080c5},
};
#define FORMS (sizeof forms / sizeof forms[0])

/* ---- operands ---- */

static uint32_t random_f32(uint64_t *seed, int spread)
{
    const uint64_t r = reference_random(seed);
    if (r % 41 == 0) return (uint32_t)(r >> 63) << 31;
    const uint32_t exponent = (uint32_t)(127 - spread + (int)(r >> 8 & 0xff) % (2 * spread + 1));
    return (uint32_t)(r >> 63) << 31 | exponent << 23 | (uint32_t)(r >> 32 & 0x7fffff);
}

static uint32_t random_f16(uint64_t *seed, int spread)
{
    const uint64_t r = reference_random(seed);
    const uint32_t exponent = r % 41 == 0 ? 0 : (uint32_t)(15 - spread + (int)(r >> 8 & 0xff) % (2 * spread + 1));
    return (uint32_t)(r >> 63) << 15 | exponent << 10 | (uint32_t)(r >> 32 & 1023);
}

/* Four finite bytes; special: the exponent and significand bits that make a NaN or an infinity if all of them are set. */
static uint32_t random_fp8(uint64_t *seed, uint32_t special)
{
    uint32_t word = (uint32_t)reference_random(seed);
    for (int shift = 0; shift < 32; shift += 8)
        if ((word >> shift & special) == special) word ^= 8u << shift;
    return word;
}

static uint32_t random_word(uint64_t *seed, int type, int spread)
{
    switch (type) {
    case TF32: return random_f32(seed, spread) & 0xffffe000;
    case F16: return random_f16(seed, spread) | random_f16(seed, spread) << 16;
    case BF16: return random_f32(seed, spread) >> 16 | (random_f32(seed, spread) & 0xffff0000);
    case E4M3: return random_fp8(seed, 0x7f);
    default: return random_fp8(seed, 0x7c);
    }
}

static void fill(const struct form *f, uint32_t *words)
{
    static const int spreads[] = {1, 4, 12, 0};
    uint64_t seed = 5;
    for (int warp = 0; warp < WARPS; warp++) {
        const int spread = spreads[warp % 4];
        for (int lane = 0; lane < LANES; lane++, words += IN_WORDS) {
            for (int i = 0; i < 6; i++) words[i] = random_word(&seed, f->type, spread);
            for (int i = 6; i < IN_WORDS; i++)
                words[i] = f->c == 2 ? random_word(&seed, F16, 3) : warp % 3 == 0 ? 0 : random_f32(&seed, spread + 2);
        }
    }
}

/* ---- the kernel: a lane reads A, B and C, and writes D ---- */

static void put_registers(char *text, size_t size, size_t *length, char name, int count)
{
    for (int i = 0; i < count; i++) text_append(text, size, length, "%s%%%c%d", i ? ", " : "{", name, i);
    text_append(text, size, length, "}");
}

static void write_kernel(const struct form *f, char *text, size_t size)
{
    size_t n = 0;
    text_append(text, size, &n, ".version 8.4\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out)\n{\n"
                ".reg .b32 %%a<4>, %%b<2>, %%r<4>;\n.reg .%s %%c<4>;\n.reg .b64 %%p<5>;\n", f->c == 4 ? "f32" : "b32");
    text_append(text, size, &n, "ld.param.u64 %%p0, [in];\nld.param.u64 %%p1, [out];\nmov.u32 %%r0, %%tid.x;\nmov.u32 %%r1, %%ctaid.x;\n"
                "mad.lo.s32 %%r2, %%r1, 32, %%r0;\nmul.wide.u32 %%p2, %%r2, %d;\nadd.s64 %%p0, %%p0, %%p2;\nmul.wide.u32 %%p3, %%r2, %d;\n"
                "add.s64 %%p1, %%p1, %%p3;\n", IN_WORDS * 4, OUT_WORDS * 4);
    for (int i = 0; i < 4; i++) text_append(text, size, &n, "ld.global.b32 %%a%d, [%%p0+%d];\n", i, 4 * i);
    for (int i = 0; i < 2; i++) text_append(text, size, &n, "ld.global.b32 %%b%d, [%%p0+%d];\n", i, 16 + 4 * i);
    for (int i = 0; i < 4; i++) text_append(text, size, &n, "ld.global.b32 %%c%d, [%%p0+%d];\n", i, 24 + 4 * i);
    text_append(text, size, &n, "mma.sync.aligned.%s ", f->instruction);
    put_registers(text, size, &n, 'c', f->c);
    text_append(text, size, &n, ", ");
    put_registers(text, size, &n, 'a', f->a);
    text_append(text, size, &n, ", ");
    put_registers(text, size, &n, 'b', f->b);
    text_append(text, size, &n, ", ");
    put_registers(text, size, &n, 'c', f->c);
    text_append(text, size, &n, ";\n");
    for (int i = 0; i < OUT_WORDS; i++) text_append(text, size, &n, "st.global.b32 [%%p1+%d], %%c%d;\n", 4 * i, i);
    text_append(text, size, &n, "ret;\n}\n");
    assert_true(n < size);
}

/* ---- running it ---- */

static uint64_t hash_words(const uint32_t *words, size_t count)
{
    uint64_t hash = 0xcbf29ce484222325; /* FNV-1a, 32 bits at a time */
    for (size_t i = 0; i < count; i++) hash = (hash ^ words[i]) * 0x100000001b3;
    return hash;
}

static void works(const driver *d, CUresult result, const char *what)
{
    if (result != CUDA_SUCCESS) {
        driver_error(d, result, JG_ERR_DEVICE, what);
        fail_msg("%s", jg_last_error());
    }
}

static uint64_t run_form(jg_context *c, const struct form *f)
{
    const driver *d = c->device.driver;
    const size_t in_bytes = WARPS * LANES * IN_WORDS * 4, out_words = WARPS * LANES * OUT_WORDS;
    char text[4096], log[1024] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)sizeof log}, *in, *out;
    uint32_t *words = malloc(in_bytes), *results = malloc(out_words * 4);
    CUmodule module;
    CUfunction function;
    assert_non_null(words);
    assert_non_null(results);
    write_kernel(f, text, sizeof text);
    const CUresult loaded = d->module_load(&module, text, 2, options, values);
    if (loaded != CUDA_SUCCESS) fail_msg("%s: %d: %s", f->instruction, (int)loaded, log);
    works(d, d->module_function(&function, module, "k"), "cuModuleGetFunction");
    assert_int_equal(jg_alloc(c, JG_DEVICE_MEMORY, in_bytes, &in), JG_OK);
    assert_int_equal(jg_alloc(c, JG_DEVICE_MEMORY, out_words * 4, &out), JG_OK);
    fill(f, words);
    assert_int_equal(jg_copy(c, in, words, in_bytes), JG_OK);
    void *parameters[] = {&in, &out};
    works(d, d->launch(function, WARPS, 1, 1, LANES, 1, 1, 0, NULL, parameters, NULL), "cuLaunchKernel");
    if (jg_copy(c, results, out, out_words * 4) != JG_OK) fail_msg("%s: %s", f->instruction, jg_last_error());
    const uint64_t hash = hash_words(results, out_words);
    jg_free(c, JG_DEVICE_MEMORY, in);
    jg_free(c, JG_DEVICE_MEMORY, out);
    works(d, d->module_unload(module), "cuModuleUnload");
    free(words);
    free(results);
    return hash;
}

static void results_of_an_h200(void **state)
{
    (void)state;
    jg_context *c;
    device_scope scope;
    const char *driver_path = getenv("JITGEMM_DRIVER");
    if (!driver_path) setenv("JITGEMM_SWGPU_DEVICE", "h200", 1);
    const jg_options options = {.device = JG_DEVICE_CUDA, .compile = JG_COMPILE_WAIT, .driver_path = driver_path ? NULL : "swgpu", .cache_path = ""};
    if (jg_open(&options, &c) != JG_OK) fail_msg("%s", jg_last_error());
    if (c->device.number != 90) {
        print_message("SKIP the results are of sm_90, this is sm_%d\n", c->device.number);
        jg_close(c);
        skip();
    }
    int different = 0;
    assert_int_equal(device_enter(&c->device, &scope), JG_OK);
    for (size_t i = 0; i < FORMS; i++) {
        const uint64_t hash = run_form(c, &forms[i]);
        if (hash == forms[i].hash) continue;
        printf("FAIL %s: results have the hash 0x%016llx, those of the hardware 0x%016llx\n", forms[i].instruction,
               (unsigned long long)hash, (unsigned long long)forms[i].hash);
        different++;
    }
    device_leave(&c->device, &scope);
    assert_int_equal(jg_close(c), JG_OK);
    assert_int_equal(different, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(results_of_an_h200)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
