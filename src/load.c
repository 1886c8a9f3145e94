/* From an image to a kernel on the device: cubin, else PTX, then the function and its shared memory limit. */
#include "load.h"

#include "status.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Above this a kernel must ask for its dynamic shared memory. */
#define SHARED_WITHOUT_ASKING (48 * 1024)

static CUresult load_module(const device *dev, const void *code, CUmodule *module, char *log, size_t log_bytes)
{
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)log_bytes};
    log[0] = 0;
    return dev->driver->module_load(module, code, 2, options, values);
}

/* Says whether another image of the same kernel may do better. */
static int is_refusal(CUresult result)
{
    return result == CUDA_ERROR_NO_BINARY_FOR_GPU || result == CUDA_ERROR_INVALID_IMAGE ||
           result == CUDA_ERROR_INVALID_SOURCE || result == CUDA_ERROR_UNSUPPORTED_PTX_VERSION || result == CUDA_ERROR_INVALID_PTX;
}

static jg_status prepare_function(const device *dev, const kernel_spec *spec, const char *name, loaded_kernel *out)
{
    const driver *d = dev->driver;
    CUresult result = d->module_function(&out->function, out->module, name);
    if (result != CUDA_SUCCESS) return driver_error(d, result, JG_ERR_LOAD, name);
    int shared = kernel_shared_bytes(spec);
    if (shared > SHARED_WITHOUT_ASKING)
        result = d->function_set(out->function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shared);
    if (result != CUDA_SUCCESS) return driver_error(d, result, JG_ERR_LOAD, "setting a kernel's shared memory");
    d->function_get(&out->registers, CU_FUNC_ATTRIBUTE_NUM_REGS, out->function);
    return JG_OK;
}

/* Lets this thread load and unload while any stream is being captured, and gives back how it was. Neither call ends up in the
 * graph, so there is nothing that a capture would have to be protected from. */
static void exchange_capture_mode(const device *dev, CUstreamCaptureMode *mode)
{
    dev->driver->capture_mode(mode);
}

static jg_status load_relaxed(const device *dev, const kernel_spec *spec, const image *img, loaded_kernel *out)
{
    memset(out, 0, sizeof *out);
    char name[KERNEL_NAME_BYTES], what[KERNEL_NAME_BYTES + 1100], log[1024];
    kernel_format_name(spec, name);
    CUresult result = CUDA_ERROR_NO_BINARY_FOR_GPU;
    const char *kind = "cubin";
    log[0] = 0;
    if (dev->exact && img->cubin_bytes) result = load_module(dev, img->cubin, &out->module, log, sizeof log);
    if (is_refusal(result) && img->ptx_bytes) {
        kind = "PTX";
        result = load_module(dev, img->ptx, &out->module, log, sizeof log);
    }
    if (result != CUDA_SUCCESS) {
        snprintf(what, sizeof what, "loading the %s of %s%s%s", kind, name, log[0] ? ": " : "", log);
        return driver_error(dev->driver, result, JG_ERR_LOAD, what);
    }
    out->code_bytes = img->cubin_bytes ? img->cubin_bytes : img->ptx_bytes;
    out->compile_ms = img->compile_ms;
    out->spec = *spec;
    jg_status status = prepare_function(dev, spec, name, out);
    if (status != JG_OK) {
        /* The first error is the one to report. */
        char text[1024];
        snprintf(text, sizeof text, "%s", jg_last_error());
        unload_kernel(dev, out);
        status_set(status, "%s", text);
    }
    return status;
}

jg_status load_kernel(const device *dev, const kernel_spec *spec, const image *img, loaded_kernel *out)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    exchange_capture_mode(dev, &mode);
    jg_status status = load_relaxed(dev, spec, img, out);
    exchange_capture_mode(dev, &mode);
    return status;
}

jg_status unload_kernel(const device *dev, loaded_kernel *kernel)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    exchange_capture_mode(dev, &mode);
    CUresult result = kernel->module ? dev->driver->module_unload(kernel->module) : CUDA_SUCCESS;
    exchange_capture_mode(dev, &mode);
    memset(kernel, 0, sizeof *kernel);
    return result == CUDA_SUCCESS ? JG_OK : driver_error(dev->driver, result, JG_ERR_DEVICE, "cuModuleUnload");
}
