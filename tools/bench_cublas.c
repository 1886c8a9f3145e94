/* Finding cuBLAS and cuBLASLt, and what their calls return: see bench_cublas.h. */
#include "bench_cublas.h"

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
    return type == JG_F16 ? CUDA_R_16F_ : type == JG_BF16 ? CUDA_R_16BF_ : CUDA_R_32F_;
}
