/* An NVRTC that refuses every source, and counts how often it is asked. A test double for what the library does then. It knows
 * sm_87 only. The same file stands in for its builtins. */
#include <nvrtc.h>

#include <string.h>

#define EXPORT __attribute__((visibility("default")))

extern int fake_nvrtc_compiles;
EXPORT int fake_nvrtc_compiles;

static const char refusal[] = "kernel.cu(1): error: planted refusal";

EXPORT nvrtcResult nvrtcVersion(int *major, int *minor)
{
    *major = 99;
    *minor = 9;
    return NVRTC_SUCCESS;
}

EXPORT const char *nvrtcGetErrorString(nvrtcResult result)
{
    return result == NVRTC_ERROR_COMPILATION ? "NVRTC_ERROR_COMPILATION" : "another result";
}

EXPORT nvrtcResult nvrtcCreateProgram(nvrtcProgram *program, const char *source, const char *name, int headers,
                                      const char *const *texts, const char *const *names)
{
    (void)source, (void)name, (void)headers, (void)texts, (void)names;
    *program = (nvrtcProgram)(void *)&fake_nvrtc_compiles;
    return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcDestroyProgram(nvrtcProgram *program)
{
    *program = NULL;
    return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int count, const char *const *options)
{
    (void)program, (void)count, (void)options;
    __atomic_fetch_add(&fake_nvrtc_compiles, 1, __ATOMIC_SEQ_CST);
    return NVRTC_ERROR_COMPILATION;
}

EXPORT nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, size_t *size)
{
    (void)program;
    *size = sizeof refusal;
    return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char *log)
{
    (void)program;
    memcpy(log, refusal, sizeof refusal);
    return NVRTC_SUCCESS;
}

#define NOTHING(name, type)                                \
    EXPORT nvrtcResult name(nvrtcProgram program, type out) \
    {                                                      \
        (void)program, (void)out;                          \
        return NVRTC_ERROR_INVALID_PROGRAM;                \
    }
NOTHING(nvrtcGetPTXSize, size_t *)
NOTHING(nvrtcGetPTX, char *)
NOTHING(nvrtcGetCUBINSize, size_t *)
NOTHING(nvrtcGetCUBIN, char *)

EXPORT nvrtcResult nvrtcGetNumSupportedArchs(int *count)
{
    *count = 1;
    return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcGetSupportedArchs(int *archs)
{
    archs[0] = 87;
    return NVRTC_SUCCESS;
}
