/* NVRTC with a watch: passes every call on to the real library, unless the program's guard (guard.c) refuses it.
 *
 * The real one is that of JG_GUARDED_NVRTC. As the library under test looks for the builtins beside what it has opened, or by
 * name, they are opened here first, from beside the real one: the loader then finds them by name. */
#include <dlfcn.h>
#include <nvrtc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

static void *real_library(void)
{
    static void *handle;
    if (handle) return handle;
    const char *path = getenv("JG_GUARDED_NVRTC");
    handle = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!handle) return NULL;
    Dl_info where;
    nvrtcResult (*version)(int *, int *);
    int major = 0, minor = 0;
    char builtins[4200];
    *(void **)&version = dlsym(handle, "nvrtcVersion");
    if (version && version(&major, &minor) == NVRTC_SUCCESS && dladdr(*(void **)&version, &where) && strrchr(where.dli_fname, '/')) {
        snprintf(builtins, sizeof builtins, "%.*s/libnvrtc-builtins.so.%d.%d", (int)(strrchr(where.dli_fname, '/') - where.dli_fname),
                 where.dli_fname, major, minor);
        dlopen(builtins, RTLD_NOW | RTLD_LOCAL);
    }
    return handle;
}

static int refused(const char *name)
{
    int (*refuses)(const char *, int);
    *(void **)&refuses = dlsym(RTLD_DEFAULT, "guard_refuses");
    return refuses && refuses(name, 1);
}

#define PASS_ON(result, name, parameters, arguments, failure)   \
    EXPORT result name parameters                               \
    {                                                           \
        result(*real) parameters;                               \
        if (refused(#name) || !real_library()) return failure;  \
        *(void **)&real = dlsym(real_library(), #name);         \
        return real ? real arguments : failure;                 \
    }

PASS_ON(nvrtcResult, nvrtcVersion, (int *a, int *b), (a, b), NVRTC_ERROR_INTERNAL_ERROR)
PASS_ON(const char *, nvrtcGetErrorString, (nvrtcResult r), (r), "refused by the guard")
PASS_ON(nvrtcResult, nvrtcCreateProgram,
        (nvrtcProgram *p, const char *s, const char *n, int c, const char *const *h, const char *const *i), (p, s, n, c, h, i),
        NVRTC_ERROR_INTERNAL_ERROR)
PASS_ON(nvrtcResult, nvrtcDestroyProgram, (nvrtcProgram *p), (p), NVRTC_ERROR_INTERNAL_ERROR)
PASS_ON(nvrtcResult, nvrtcCompileProgram, (nvrtcProgram p, int c, const char *const *o), (p, c, o), NVRTC_ERROR_INTERNAL_ERROR)
PASS_ON(nvrtcResult, nvrtcGetProgramLogSize, (nvrtcProgram p, size_t *n), (p, n), NVRTC_ERROR_INTERNAL_ERROR)
PASS_ON(nvrtcResult, nvrtcGetProgramLog, (nvrtcProgram p, char *t), (p, t), NVRTC_ERROR_INTERNAL_ERROR)
PASS_ON(nvrtcResult, nvrtcGetPTXSize, (nvrtcProgram p, size_t *n), (p, n), NVRTC_ERROR_INTERNAL_ERROR)
PASS_ON(nvrtcResult, nvrtcGetPTX, (nvrtcProgram p, char *t), (p, t), NVRTC_ERROR_INTERNAL_ERROR)
PASS_ON(nvrtcResult, nvrtcGetCUBINSize, (nvrtcProgram p, size_t *n), (p, n), NVRTC_ERROR_INTERNAL_ERROR)
PASS_ON(nvrtcResult, nvrtcGetCUBIN, (nvrtcProgram p, char *t), (p, t), NVRTC_ERROR_INTERNAL_ERROR)
PASS_ON(nvrtcResult, nvrtcGetNumSupportedArchs, (int *n), (n), NVRTC_ERROR_INTERNAL_ERROR)
PASS_ON(nvrtcResult, nvrtcGetSupportedArchs, (int *a), (a), NVRTC_ERROR_INTERNAL_ERROR)
