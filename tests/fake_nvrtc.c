/* The NVRTC of the tests: see fake_nvrtc.h. It knows sm_87 only. The same file stands in for its builtins. */
#include "fake_nvrtc.h"

#include <elf.h>
#include <nvrtc.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))

extern fake_nvrtc fake_nvrtc_controls;
EXPORT fake_nvrtc fake_nvrtc_controls;

static const char refusal[] = "kernel.cu(1): error: planted refusal";

/* A program: the kernel's name and what is told while it compiles. */
struct _nvrtcProgram {
    char kernel[256];
    int (*flow)(void *, void *);
    void *user;
    int compiled;
};

EXPORT nvrtcResult nvrtcVersion(int *major, int *minor)
{
    const int version = atomic_load(&fake_nvrtc_controls.version);
    *major = version ? version / 1000 : 99;
    *minor = version ? version % 1000 / 10 : 9;
    return NVRTC_SUCCESS;
}

EXPORT const char *nvrtcGetErrorString(nvrtcResult result)
{
    return result == NVRTC_ERROR_COMPILATION ? "NVRTC_ERROR_COMPILATION" : "another result";
}

EXPORT nvrtcResult nvrtcCreateProgram(nvrtcProgram *program, const char *source, const char *name, int headers,
                                      const char *const *texts, const char *const *names)
{
    static const char define[] = "#define JG_KERNEL ";
    (void)name, (void)headers, (void)texts, (void)names;
    *program = calloc(1, sizeof **program);
    if (!*program) return NVRTC_ERROR_OUT_OF_MEMORY;
    const char *at = strstr(source, define);
    if (at) sscanf(at + sizeof define - 1, "%255s", (*program)->kernel);
    return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcDestroyProgram(nvrtcProgram *program)
{
    free(*program);
    *program = NULL;
    return NVRTC_SUCCESS;
}

/* Not in the older headers. */
EXPORT nvrtcResult nvrtcSetFlowCallback(nvrtcProgram program, int (*callback)(void *, void *), void *user);
EXPORT nvrtcResult nvrtcSetFlowCallback(nvrtcProgram program, int (*callback)(void *, void *), void *user)
{
    program->flow = callback;
    program->user = user;
    return NVRTC_SUCCESS;
}

static int takes_one(atomic_int *left)
{
    int before = atomic_load(left);
    while (before > 0 && !atomic_compare_exchange_weak(left, &before, before - 1)) {}
    return before > 0;
}

static nvrtcResult compile(nvrtcProgram program)
{
    fake_nvrtc *fake = &fake_nvrtc_controls;
    do {
        if (!atomic_load(&fake->is_deaf) && program->flow && program->flow(program->user, NULL)) {
            atomic_fetch_add(&fake->cancelled, 1);
            return NVRTC_ERROR_COMPILATION; /* the newer name is not in the older headers */
        }
        if (atomic_load(&fake->holds)) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    } while (atomic_load(&fake->holds));
    if (takes_one(&fake->refuses) || !atomic_load(&fake->accepts)) return NVRTC_ERROR_COMPILATION;
    program->compiled = 1;
    return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int count, const char *const *options)
{
    if (!program->kernel[0]) { /* what the library does to warm NVRTC up is not its users' */
        atomic_fetch_add(&fake_nvrtc_controls.warm_ups, 1);
        return NVRTC_SUCCESS;
    }
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    char *const text = fake_nvrtc_controls.options;
    text[0] = 0;
    for (int i = 0; i < count; i++) {
        const size_t length = strlen(text);
        snprintf(text + length, sizeof fake_nvrtc_controls.options - length, "%s ", options[i]);
    }
    pthread_mutex_unlock(&lock);
    atomic_fetch_add(&fake_nvrtc_controls.running, 1);
    atomic_fetch_add(&fake_nvrtc_controls.compiles, 1);
    const nvrtcResult result = compile(program);
    atomic_fetch_sub(&fake_nvrtc_controls.running, 1);
    return result;
}

EXPORT nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, size_t *size)
{
    *size = program->compiled ? 1 : sizeof refusal;
    return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char *log)
{
    memcpy(log, refusal, program->compiled ? 0 : sizeof refusal);
    return NVRTC_SUCCESS;
}

/* An ELF header that counts the name as its own; the same for PTX, whose size counts the final 0. */
static size_t cubin_bytes(nvrtcProgram program)
{
    return sizeof(Elf64_Ehdr) + 1 + strlen(program->kernel) + 1;
}

static int ptx_text(nvrtcProgram program, char *text, size_t size)
{
    return snprintf(text, size, ".version 7.4\n.target sm_87\n.visible .entry %s()\n", program->kernel);
}

EXPORT nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, size_t *size)
{
    *size = cubin_bytes(program);
    return program->compiled ? NVRTC_SUCCESS : NVRTC_ERROR_INVALID_PROGRAM;
}

EXPORT nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char *code)
{
    Elf64_Ehdr header = {.e_shoff = cubin_bytes(program)};
    memset(code, 0, cubin_bytes(program));
    memcpy(header.e_ident, ELFMAG, SELFMAG);
    memcpy(code, &header, sizeof header);
    memcpy(code + sizeof header + 1, program->kernel, strlen(program->kernel));
    return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcGetPTXSize(nvrtcProgram program, size_t *size)
{
    *size = (size_t)ptx_text(program, NULL, 0) + 1;
    return program->compiled ? NVRTC_SUCCESS : NVRTC_ERROR_INVALID_PROGRAM;
}

EXPORT nvrtcResult nvrtcGetPTX(nvrtcProgram program, char *text)
{
    ptx_text(program, text, (size_t)ptx_text(program, NULL, 0) + 1);
    return NVRTC_SUCCESS;
}

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
