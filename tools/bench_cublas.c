/* Finding cuBLAS and cuBLASLt, and what their calls return: see bench_cublas.h. */
#include "bench_cublas.h"

#include "bench_result.h"
#include "half.h"
#include "status.h"

#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BYTES 4096

/* Opens the first file of a pattern that can be opened: other versions or another architecture's may lie beside it. */
static void *open_one_of(const char *pattern)
{
    glob_t files = {0};
    void *library = NULL;
    if (glob(pattern, 0, NULL, &files) == 0)
        for (size_t i = 0; !library && i < files.gl_pathc; i++) library = dlopen(files.gl_pathv[i], RTLD_NOW | RTLD_LOCAL);
    globfree(&files);
    return library;
}

/* What the loader knows by itself comes first: it is what programs get that are linked with the library. */
static void *open_usual(const char *base)
{
    static const char *const endings[] = {"13", "12", "11"}, *const folders[] = {"lib64", "targets/*/lib"};
    const char *const homes[] = {getenv("CUDA_HOME"), "/usr/local/cuda"};
    char name[NAME_BYTES];
    void *library = NULL;
    for (size_t i = 0; !library && i < sizeof endings / sizeof *endings; i++) {
        snprintf(name, sizeof name, "%s.so.%s", base, endings[i]);
        library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    }
    for (size_t i = 0; !library && i < 2 * sizeof homes / sizeof *homes; i++) {
        const char *home = homes[i / 2];
        if (!home || !*home) continue;
        const int length = snprintf(name, sizeof name, "%s/%s/%s.so*", home, folders[i % 2], base);
        if (length < NAME_BYTES) library = open_one_of(name);
    }
    return library;
}

jg_status bench_cublas_load(const char *what, const char *base, const char *path, const bench_symbol *symbols, size_t count,
                            void *into)
{
    void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : open_usual(base);
    if (!library) return status_set(JG_ERR_NOT_FOUND, "no %s to compare with: %s", what, dlerror());
    for (size_t i = 0; i < count; i++) {
        void *symbol = dlsym(library, symbols[i].name);
        if (!symbol && !symbols[i].optional) {
            dlclose(library);
            return status_set(JG_ERR_NOT_FOUND, "no %s to compare with: %s has no %s", what, path ? path : base, symbols[i].name);
        }
        memcpy((char *)into + symbols[i].offset, &symbol, sizeof symbol);
    }
    return JG_OK;
}

jg_status bench_cublas_result(const char *call, int result)
{
#define ROW(name, number) {number, #name},
    static const struct { int number; const char *name; } names[] = {BENCH_CUBLAS_STATUSES(ROW)};
    if (result == CUBLAS_STATUS_SUCCESS_) return JG_OK;
    const int refused = result == CUBLAS_STATUS_INVALID_VALUE_ || result == CUBLAS_STATUS_ARCH_MISMATCH_ ||
                        result == CUBLAS_STATUS_NOT_SUPPORTED_;
    const jg_status status = refused ? JG_ERR_UNSUPPORTED : JG_ERR_DEVICE;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].number == result) return status_set(status, "%s: %s", call, names[i].name);
    return status_set(status, "%s: status %d", call, result);
}

int bench_cublas_type(unsigned type)
{
    switch (type) {
    case JG_F16: return CUDA_R_16F_;
    case JG_BF16: return CUDA_R_16BF_;
    case JG_S8: return CUDA_R_8I_;
    case JG_S32: return CUDA_R_32I_;
    case JG_E4M3: return CUDA_R_8F_E4M3_;
    case JG_E5M2: return CUDA_R_8F_E5M2_;
    default: return CUDA_R_32F_;
    }
}

/* ---- which products are compared ---- */

static int is_wide_float(unsigned type)
{
    return type == JG_F32 || type == JG_F16 || type == JG_BF16;
}

static int is_narrow_float(unsigned type)
{
    return type == JG_E4M3 || type == JG_E5M2;
}

/* What stands in the way whatever the types are; null: nothing. */
static const char *reason_of(const problem *p)
{
    const unsigned mode = problem_math_mode(p);
    if (problem_is_fused(p)) return "products are compared with nothing fused in";
    if (p->math & MATH_FLAGS) return "it has no such treatment of denormals and NaN";
    if (mode == JG_MATH_STRICT || mode == JG_MATH_F32_3XTF32) return "it has no such mode of math";
    return NULL;
}

static const char *reason_of_types(const problem *p, int is_lt)
{
    const unsigned a = p->type_a, b = p->type_b, c = p->type_c;
    if (problem_is_weights(p, 0) || problem_is_weights(p, 1)) return "it multiplies no floats by integers";
    if (type_is_integer((jg_type)a))
        return a == JG_S8 && b == JG_S8 && c == JG_S32 ? NULL : "of integers only s8 x s8 -> s32 is compared";
    if (is_narrow_float(a) && !is_lt) return "it takes no 8-bit floats; cuBLASLt does";
    if (!is_wide_float(c)) return "of floats only results in f32, f16 and bf16 are compared";
    if (problem_math_mode(p) == JG_MATH_F16 && c != JG_F16) return "it adds up in f16 only for results in f16";
    return NULL;
}

jg_status bench_cublas_arithmetic_of(const problem *p, int is_lt, bench_cublas_arithmetic *out)
{
    const char *why = reason_of(p);
    const unsigned mode = problem_math_mode(p);
    if (!why) why = reason_of_types(p, is_lt);
    if (why) return status_set(JG_ERR_UNSUPPORTED, BENCH_NO_PEER " in %s: %s", is_lt ? "cuBLASLt" : "cuBLAS", why);
    *out = (bench_cublas_arithmetic){CUBLAS_COMPUTE_32F_, CUDA_R_32F_};
    if (mode == JG_MATH_TF32) out->compute = CUBLAS_COMPUTE_32F_FAST_TF32_;
    if (mode == JG_MATH_F16) *out = (bench_cublas_arithmetic){CUBLAS_COMPUTE_16F_, CUDA_R_16F_};
    if (type_is_integer((jg_type)p->type_a)) *out = (bench_cublas_arithmetic){CUBLAS_COMPUTE_32I_, CUDA_R_32I_};
    return JG_OK;
}

bench_cublas_scalar bench_cublas_scalar_of(const bench_cublas_arithmetic *arithmetic, float value)
{
    bench_cublas_scalar out = {.f32 = value};
    if (arithmetic->scale == CUDA_R_32I_) out.s32 = (int32_t)value;
    if (arithmetic->scale == CUDA_R_16F_) out.f16 = half_f32_to_f16(value);
    return out;
}
