/* NVRTC through dlopen. In: a rendered source and an architecture. Out: cubin and PTX, or the log in the error text.
 * Nothing here is linked against NVRTC, so that the library starts, and serves what is cached, without it. */
#include "nvrtc_api.h"

#include "clock.h"
#include "exit_guard.h"
#include "status.h"
#include "text.h"

#include <dlfcn.h>
#include <nvrtc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define OLDEST_VERSION 11020

/* name in the table, symbol, result and parameters */
#define NVRTC_FUNCTIONS(X)                                                                                       \
    X(version, nvrtcVersion, nvrtcResult, (int *, int *))                                                        \
    X(error_string, nvrtcGetErrorString, const char *, (nvrtcResult))                                            \
    X(create, nvrtcCreateProgram, nvrtcResult,                                                                   \
      (nvrtcProgram *, const char *, const char *, int, const char *const *, const char *const *))               \
    X(destroy, nvrtcDestroyProgram, nvrtcResult, (nvrtcProgram *))                                               \
    X(compile, nvrtcCompileProgram, nvrtcResult, (nvrtcProgram, int, const char *const *))                       \
    X(log_size, nvrtcGetProgramLogSize, nvrtcResult, (nvrtcProgram, size_t *))                                   \
    X(log, nvrtcGetProgramLog, nvrtcResult, (nvrtcProgram, char *))                                              \
    X(ptx_size, nvrtcGetPTXSize, nvrtcResult, (nvrtcProgram, size_t *))                                          \
    X(ptx, nvrtcGetPTX, nvrtcResult, (nvrtcProgram, char *))                                                     \
    X(cubin_size, nvrtcGetCUBINSize, nvrtcResult, (nvrtcProgram, size_t *))                                      \
    X(cubin, nvrtcGetCUBIN, nvrtcResult, (nvrtcProgram, char *))                                                 \
    X(arch_count, nvrtcGetNumSupportedArchs, nvrtcResult, (int *))                                               \
    X(archs, nvrtcGetSupportedArchs, nvrtcResult, (int *))

/* Since 12.9: lets a compile be stopped. Declared here, as older headers lack it. */
typedef nvrtcResult (*set_flow_callback)(nvrtcProgram, int (*)(void *, void *), void *);

struct nvrtc {
    void *handle;
    int number;
    int needs_no_warm_up;
    atomic_int cancelled;
    set_flow_callback set_flow; /* null in older libraries */
#define MEMBER(name, symbol, result, parameters) result(*name) parameters;
    NVRTC_FUNCTIONS(MEMBER)
#undef MEMBER
};

void image_free(image *img)
{
    free(img->cubin);
    free(img->ptx);
    memset(img, 0, sizeof *img);
}

static void *try_open(const char *path, char *tried, size_t size)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        const char *why = dlerror(); /* begins with the path */
        size_t used = strlen(tried);
        text_append(tried, size, &used, "%s%s", used ? "; " : "", why ? why : path);
    }
    return handle;
}

/* The loader's names first, newest first, then the folders where toolkits put theirs. */
static void *open_usual(char *tried, size_t size)
{
    static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so"};
    static const char *const folders[] = {"/usr/local/cuda/lib64", "/usr/local/cuda/targets/x86_64-linux/lib",
                                          "/usr/local/cuda/targets/aarch64-linux/lib"};
    void *handle = NULL;
    for (size_t i = 0; !handle && i < sizeof names / sizeof names[0]; i++) handle = try_open(names[i], tried, size);
    const char *home = getenv("CUDA_HOME");
    char path[512];
    if (!handle && home && *home) {
        snprintf(path, sizeof path, "%s/lib64/libnvrtc.so", home);
        handle = try_open(path, tried, size);
    }
    for (size_t i = 0; !handle && i < sizeof folders / sizeof folders[0]; i++) {
        snprintf(path, sizeof path, "%s/libnvrtc.so", folders[i]);
        handle = try_open(path, tried, size);
    }
    return handle;
}

static jg_status bind_functions(nvrtc *lib)
{
    const char *missing = NULL;
#define BIND(name, symbol, result, parameters)                        \
    *(void **)&lib->name = dlsym(lib->handle, #symbol);               \
    if (!lib->name && !missing) missing = #symbol;
    NVRTC_FUNCTIONS(BIND)
#undef BIND
    *(void **)&lib->set_flow = dlsym(lib->handle, "nvrtcSetFlowCallback");
    int major = 0, minor = 0;
    if (lib->version && lib->version(&major, &minor) == NVRTC_SUCCESS) lib->number = major * 1000 + minor * 10;
    if (missing || lib->number < OLDEST_VERSION)
        return status_set(JG_ERR_NO_NVRTC, "NVRTC %d.%d is too old (%s%s); jitgemm needs 11.2 or newer", major, minor,
                          missing ? "it lacks " : "by its version", missing ? missing : "");
    return JG_OK;
}

/* NVRTC opens its builtins by name when it first compiles, and finds them only where the loader looks. Opened here, from
 * NVRTC's own folder if need be, they are found wherever they lie beside it. */
static jg_status open_builtins(const nvrtc *lib)
{
    char name[64], path[600];
    Dl_info where;
    snprintf(name, sizeof name, "libnvrtc-builtins.so.%d.%d", lib->number / 1000, lib->number % 1000 / 10);
    if (dladdr(*(void *const *)&lib->version, &where) && where.dli_fname && strrchr(where.dli_fname, '/')) {
        int folder = (int)(strrchr(where.dli_fname, '/') - where.dli_fname);
        snprintf(path, sizeof path, "%.*s/%s", folder, where.dli_fname, name);
        if (dlopen(path, RTLD_NOW | RTLD_LOCAL)) return JG_OK;
    }
    if (dlopen(name, RTLD_NOW | RTLD_LOCAL)) return JG_OK;
    return status_set(JG_ERR_NO_NVRTC, "NVRTC %d.%d cannot compile without %s, which must lie beside it: %s", lib->number / 1000,
                      lib->number % 1000 / 10, name, dlerror());
}

typedef struct opening {
    const char *path;
    nvrtc *lib;
    jg_status status;
} opening;

static jg_status open_library(const char *path, nvrtc **out)
{
    char tried[2048] = "";
    nvrtc *lib = calloc(1, sizeof *lib);
    if (!lib) return status_set(JG_ERR_NO_MEMORY, "out of memory opening NVRTC");
    lib->handle = path ? try_open(path, tried, sizeof tried) : open_usual(tried, sizeof tried);
    if (!lib->handle) {
        free(lib);
        return status_set(JG_ERR_NO_NVRTC,
                          "no NVRTC library can be opened (%s); install it, or set JITGEMM_NVRTC to libnvrtc.so, "
                          "or use kernels from a prewarmed cache", tried);
    }
    jg_status status = bind_functions(lib);
    if (status == JG_OK) status = open_builtins(lib);
    if (status != JG_OK) nvrtc_close(lib);
    else *out = lib;
    return status;
}

static int open_guarded(void *user)
{
    opening *o = user;
    o->status = open_library(o->path, &o->lib);
    return o->status == JG_OK;
}

jg_status nvrtc_open(const char *path, nvrtc **out)
{
    opening o = {.path = path};
    *out = NULL;
    if (!exit_guard_enter()) return status_set(JG_ERR_CANCELLED, "NVRTC is not opened: the process ends");
    exit_guard_first_use(open_guarded, &o);
    exit_guard_leave();
    *out = o.lib;
    return o.status;
}

void nvrtc_never_exits(nvrtc *lib)
{
    lib->needs_no_warm_up = 1;
}

void nvrtc_cancel(nvrtc *lib)
{
    atomic_store(&lib->cancelled, 1);
}

/* NVRTC asks this now and then while it compiles. */
static int is_cancelled(void *user, void *unused)
{
    (void)unused;
    return exit_guard_is_leaving() || atomic_load(&((nvrtc *)user)->cancelled);
}

/* No dlclose: NVRTC leaves threads and exit handlers behind. */
void nvrtc_close(nvrtc *lib)
{
    free(lib);
}

static jg_status check_arch(const nvrtc *lib, int arch)
{
    int count = 0;
    int known[128];
    if (lib->arch_count(&count) != NVRTC_SUCCESS || count > 128 || lib->archs(known) != NVRTC_SUCCESS) return JG_OK;
    char list[512] = "";
    size_t length = 0;
    for (int i = 0; i < count; i++) {
        if (known[i] == arch) return JG_OK;
        text_append(list, sizeof list, &length, "%ssm_%d", i ? " " : "", known[i]);
    }
    return status_set(JG_ERR_ARCH, "NVRTC %d.%d cannot compile for sm_%d; it knows %s", lib->number / 1000,
                      lib->number % 1000 / 10, arch, list);
}

/* The end of the log is where the errors are summed up, but the first error tells more: keep the beginning. */
static jg_status failure(nvrtc *lib, nvrtcProgram program, nvrtcResult result, const char *name)
{
    char *log = NULL;
    size_t size = 0;
    if (lib->log_size(program, &size) == NVRTC_SUCCESS && size > 1) log = malloc(size);
    if (log && lib->log(program, log) != NVRTC_SUCCESS) log[0] = 0;
    const char *text = log ? log : "";
    jg_status status = JG_ERR_COMPILE;
    const char *hint = "";
    if (is_cancelled(lib, NULL)) {
        free(log);
        return status_set(JG_ERR_CANCELLED, "compiling %s was cancelled: the context is closed or the process ends", name);
    }
    if (result == NVRTC_ERROR_BUILTIN_OPERATION_FAILURE || strstr(text, "nvrtc-builtins")) {
        status = JG_ERR_NO_NVRTC;
        hint = "; libnvrtc-builtins of the same version must lie beside libnvrtc";
    } else if (result == NVRTC_ERROR_OUT_OF_MEMORY) {
        status = JG_ERR_NO_MEMORY;
    }
    status = status_set(status, "NVRTC %d.%d: %s compiling %s%s\n%s", lib->number / 1000, lib->number % 1000 / 10,
                        lib->error_string(result), name, hint, text);
    free(log);
    return status;
}

/* A part of the result: asks for the size, then for the bytes. */
static nvrtcResult take(nvrtcResult (*get_size)(nvrtcProgram, size_t *), nvrtcResult (*get)(nvrtcProgram, char *),
                        nvrtcProgram program, char **data, size_t *bytes)
{
    nvrtcResult result = get_size(program, bytes);
    if (result != NVRTC_SUCCESS) return result;
    *data = malloc(*bytes + 1);
    if (!*data) return NVRTC_ERROR_OUT_OF_MEMORY;
    return get(program, *data);
}

/* From here on NVRTC may keep what it compiled in a folder of its own in the user's home. Our cache file does that, within its
 * bounds; a second copy would only wear the medium. */
#define FIRST_WITH_CACHE 12090

typedef struct first_use {
    nvrtc *lib;
    int arch, done;
} first_use;

/* The shortest compile that goes through all of NVRTC. */
static int compile_nothing(void *user)
{
    first_use *f = user;
    char arch_option[48];
    const char *const options[] = {arch_option};
    nvrtcProgram program = NULL;
    snprintf(arch_option, sizeof arch_option, "--gpu-architecture=sm_%d", f->arch);
    if (f->lib->create(&program, "extern \"C\" __global__ void nothing() {}", "nothing", 0, NULL, NULL) != NVRTC_SUCCESS) return 0;
    f->done = f->lib->compile(program, 1, options) == NVRTC_SUCCESS;
    f->lib->destroy(&program);
    return 1;
}

/* exit() cannot be kept from crashing in the middle of a library's first compile: so that one is short, about 15 ms, and is not to
 * be stopped. If it fails, the compile that follows says why. */
static void warm_up(nvrtc *lib, int arch)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static _Atomic(void *) warm; /* the library that was used last */
    if (lib->needs_no_warm_up || atomic_load(&warm) == lib->handle) return;
    pthread_mutex_lock(&lock);
    if (atomic_load(&warm) != lib->handle) {
        first_use f = {.lib = lib, .arch = arch};
        exit_guard_first_use(compile_nothing, &f);
        if (f.done) atomic_store(&warm, lib->handle);
    }
    pthread_mutex_unlock(&lock);
}

static jg_status compile_guarded(nvrtc *lib, const char *source, const char *name, int arch, int line_info, image *out)
{
    RETURN_IF_ERROR(check_arch(lib, arch));
    warm_up(lib, arch);
    char arch_option[48];
    snprintf(arch_option, sizeof arch_option, "--gpu-architecture=sm_%d", arch);
    /* Contraction off: see `scaled` in templates/common.cuh. */
    const char *options[5] = {arch_option, "--std=c++14", "--fmad=false"};
    int option_count = 3;
    if (lib->number >= FIRST_WITH_CACHE) options[option_count++] = "--no-cache";
    if (line_info) options[option_count++] = "--generate-line-info";

    double start = clock_now_ms();
    nvrtcProgram program = NULL;
    nvrtcResult result = lib->create(&program, source, name, 0, NULL, NULL);
    if (result != NVRTC_SUCCESS)
        return status_set(result == NVRTC_ERROR_OUT_OF_MEMORY ? JG_ERR_NO_MEMORY : JG_ERR_COMPILE,
                          "nvrtcCreateProgram: %s", lib->error_string(result));
    if (lib->set_flow) lib->set_flow(program, is_cancelled, lib);
    result = lib->compile(program, option_count, options);
    char *cubin = NULL;
    if (result == NVRTC_SUCCESS) result = take(lib->cubin_size, lib->cubin, program, &cubin, &out->cubin_bytes);
    out->cubin = cubin;
    if (result == NVRTC_SUCCESS) result = take(lib->ptx_size, lib->ptx, program, &out->ptx, &out->ptx_bytes);
    if (result == NVRTC_SUCCESS && out->ptx_bytes) out->ptx_bytes--; /* NVRTC counts the final 0 */
    out->compile_ms = clock_now_ms() - start;
    jg_status status = JG_OK;
    if (result != NVRTC_SUCCESS) {
        status = failure(lib, program, result, name);
        image_free(out);
    } else {
        snprintf(out->provenance, sizeof out->provenance, "NVRTC %d.%d %s %s %s%s%s", lib->number / 1000,
                 lib->number % 1000 / 10, options[0], options[1], options[2], line_info ? " " : "",
                 line_info ? "--generate-line-info" : "");
    }
    lib->destroy(&program);
    return status;
}

jg_status nvrtc_compile(nvrtc *lib, const char *source, const char *name, int arch, int line_info, image *out)
{
    memset(out, 0, sizeof *out);
    if (!exit_guard_enter()) return status_set(JG_ERR_CANCELLED, "compiling %s was cancelled: the process ends", name);
    jg_status status = compile_guarded(lib, source, name, arch, line_info, out);
    exit_guard_leave();
    return status;
}
