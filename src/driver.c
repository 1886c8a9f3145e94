/* The CUDA driver API through dlopen. In: a library path. Out: a table of entry points, and errors as statuses. */
#include "driver.h"

#include "status.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OLDEST_VERSION 11040

static jg_status bind_functions(driver *d, const char *path)
{
#define STRING(text) #text
#define BIND(name, symbol, parameters)                                                                   \
    *(void **)&d->name = dlsym(d->handle, STRING(symbol));                                               \
    if (!d->name)                                                                                        \
        return status_set(JG_ERR_NO_DRIVER, "the CUDA driver %s has no %s; jitgemm needs a driver of CUDA 11.4 or newer", \
                          path, STRING(symbol));
    DRIVER_FUNCTIONS(BIND)
#undef BIND
#define BIND(name, symbol, result, parameters) *(void **)&d->name = dlsym(d->handle, STRING(symbol));
    SWGPU_FUNCTIONS(BIND)
#undef BIND
    return JG_OK;
}

/* Tries DIRECTORY/libjitgemm-swgpu.so for the directory of `file`, then that directory's ../lib. */
static void *open_beside(const char *file)
{
    static const char *const places[] = {"", "../lib/"};
    const char *slash = strrchr(file, '/');
    void *handle = NULL;
    for (size_t i = 0; slash && !handle && i < sizeof places / sizeof places[0]; i++) {
        char path[4200];
        int length = snprintf(path, sizeof path, "%.*s/%slibjitgemm-swgpu.so", (int)(slash - file), file, places[i]);
        if ((size_t)length < sizeof path) handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
    return handle;
}

static void *open_software_gpu(void)
{
    Dl_info library;
    char program[4096];
    void *handle = dladdr(DRIVER_SWGPU, &library) && library.dli_fname ? open_beside(library.dli_fname) : NULL;
    ssize_t length = handle ? 0 : readlink("/proc/self/exe", program, sizeof program - 1);
    if (length > 0) {
        program[length] = 0;
        handle = open_beside(program);
    }
    return handle ? handle : dlopen("libjitgemm-swgpu.so", RTLD_NOW | RTLD_LOCAL);
}

static jg_status initialise(driver *d, const char *path)
{
    RETURN_IF_ERROR(bind_functions(d, path));
    CUresult result = d->init(0);
    if (result == CUDA_ERROR_NO_DEVICE) return driver_error(d, result, JG_ERR_NO_DEVICE, "cuInit");
    if (result == CUDA_ERROR_STUB_LIBRARY) return driver_error(d, result, JG_ERR_NO_DRIVER, "cuInit");
    if (result != CUDA_SUCCESS) return driver_error(d, result, JG_ERR_DEVICE, "cuInit");
    d->driver_version(&d->version);
    if (d->version < OLDEST_VERSION)
        return status_set(JG_ERR_NO_DRIVER, "the CUDA driver %s is for CUDA %d.%d; jitgemm needs 11.4 or newer", path,
                          d->version / 1000, d->version % 1000 / 10);
    return JG_OK;
}

jg_status driver_open(const char *path, driver **out)
{
    *out = NULL;
    driver *d = calloc(1, sizeof *d);
    if (!d) return status_set(JG_ERR_NO_MEMORY, "out of memory opening the CUDA driver");
    const int is_software = strcmp(path, DRIVER_SWGPU) == 0;
    d->handle = is_software ? open_software_gpu() : dlopen(path, RTLD_NOW | RTLD_LOCAL);
    jg_status status = d->handle ? initialise(d, path)
                                 : status_set(JG_ERR_NO_DRIVER, is_software ? "no software GPU: %s; it belongs beside libjitgemm"
                                                                            : "no CUDA driver: %s; install one, or set JITGEMM_DRIVER",
                                              dlerror());
    if (status != JG_OK) driver_close(d);
    else *out = d;
    return status;
}

/* No dlclose: a driver cannot be unloaded safely. */
void driver_close(driver *d)
{
    free(d);
}

/* Errors after which every later call in the context fails too (CUDA driver API, CUresult). */
static int is_sticky(CUresult result)
{
    switch (result) {
    case CUDA_ERROR_DEINITIALIZED:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_ASSERT: return 1;
    default: return 0;
    }
}

jg_status driver_error(const driver *d, CUresult result, jg_status otherwise, const char *what)
{
    const char *name = NULL, *text = NULL;
    if (d->error_name(result, &name) != CUDA_SUCCESS || !name) name = "unknown CUDA error";
    if (d->error_string(result, &text) != CUDA_SUCCESS || !text) text = "no description";
    jg_status status = is_sticky(result) ? JG_ERR_DEVICE_LOST
                       : result == CUDA_ERROR_OUT_OF_MEMORY ? JG_ERR_NO_MEMORY : otherwise;
    return status_set(status, "%s: %s %d (%s)%s", what, name, (int)result, text,
                      status == JG_ERR_DEVICE_LOST ? "; the CUDA context is lost: close and open again" : "");
}
