/* Entry points that need no context: cuInit, versions, error texts, the device and its attributes, and what the
 * library exports beside the driver: swgpuFindings, swgpuSetFaults. */
#include "errors.h"
#include "findings.h"
#include "inject.h"
#include "state.h"
#include "swgpu.h"

#include <stdio.h>
#include <stdlib.h>

#define DRIVER_VERSION 13000

/* While a context is alive the settings stay: what was promised to it holds. */
static CUresult initialise(unsigned flags)
{
    if (gpu.is_forked)
        return state_fail(CUDA_ERROR_NOT_INITIALIZED, "this process was forked from one that uses the driver; fork before "
                          "cuInit, or exec");
    if (flags) return state_fail(CUDA_ERROR_INVALID_VALUE, "cuInit takes no flags");
    if (!gpu.contexts) {
        settings s;
        char *error = gpu.settings_error;
        gpu.initialised = 0;
        error[0] = 0;
        if (!settings_read(&s, error, sizeof gpu.settings_error) ||
            !inject_configure(getenv("JITGEMM_SWGPU_FAULT"), getenv("JITGEMM_SWGPU_SLOW"), error, sizeof gpu.settings_error))
            return state_fail_whole(CUDA_ERROR_INVALID_VALUE, error);
        gpu.settings = s;
    }
    const CUresult result = state_enter(ENTRY_cuInit);
    if (result != CUDA_SUCCESS) return result;
    gpu.initialised = 1;
    return CUDA_SUCCESS;
}

/* What can be allocated, and what the device claims to have: at least that. */
static size_t total_bytes(void)
{
    const settings *s = &gpu.settings;
    return s->memory_bytes > s->model->memory_bytes ? s->memory_bytes : s->model->memory_bytes;
}

static CUresult describe(CUresult code, const char **out, int wants_name)
{
    if (!out) return state_need(out);
    *out = wants_name ? errors_name(code) : state_error_text(code);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

#pragma GCC visibility push(default)

CUresult CUDAAPI cuInit(unsigned flags)
{
    state_lock();
    return state_end(initialise(flags));
}

CUresult CUDAAPI cuDriverGetVersion(int *version)
{
    BEGIN(cuDriverGetVersion);
    if (version) *version = DRIVER_VERSION;
    return state_end(state_need(version));
}

/* These two are no failures of their own: what they say of the last one stays. */
CUresult CUDAAPI cuGetErrorName(CUresult code, const char **name)
{
    BEGIN(cuGetErrorName);
    return state_end_quietly(describe(code, name, 1));
}

CUresult CUDAAPI cuGetErrorString(CUresult code, const char **text)
{
    BEGIN(cuGetErrorString);
    return state_end_quietly(describe(code, text, 0));
}

CUresult CUDAAPI cuDeviceGetCount(int *count)
{
    BEGIN(cuDeviceGetCount);
    if (count) *count = 1;
    return state_end(state_need(count));
}

CUresult CUDAAPI cuDeviceGet(CUdevice *device, int ordinal)
{
    BEGIN(cuDeviceGet);
    CUresult result = state_need(device);
    if (result == CUDA_SUCCESS) result = state_check_device(ordinal);
    if (result == CUDA_SUCCESS) *device = ordinal;
    return state_end(result);
}

CUresult CUDAAPI cuDeviceGetName(char *name, int bytes, CUdevice device)
{
    BEGIN(cuDeviceGetName);
    CUresult result = state_need(name);
    if (result == CUDA_SUCCESS && bytes <= 0) result = state_fail(CUDA_ERROR_INVALID_VALUE, "%d bytes for a name", bytes);
    if (result == CUDA_SUCCESS) result = state_check_device(device);
    if (result == CUDA_SUCCESS) snprintf(name, (size_t)bytes, "%s", gpu.settings.model->text);
    return state_end(result);
}

CUresult CUDAAPI cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    BEGIN(cuDeviceTotalMem_v2);
    CUresult result = state_need(bytes);
    if (result == CUDA_SUCCESS) result = state_check_device(device);
    if (result == CUDA_SUCCESS) *bytes = total_bytes();
    return state_end(result);
}

CUresult CUDAAPI cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    BEGIN(cuDeviceGetAttribute);
    CUresult result = state_need(value);
    if (result == CUDA_SUCCESS) result = state_check_device(device);
    if (result == CUDA_SUCCESS && !models_attribute(gpu.settings.model, (int)attribute, value))
        result = state_fail(CUDA_ERROR_INVALID_VALUE, "device attribute %d is not known", (int)attribute);
    return state_end(result);
}

CUresult CUDAAPI cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
    BEGIN(cuMemGetInfo_v2);
    if (free_bytes) *free_bytes = gpu.settings.memory_bytes - state_memory_used();
    if (total) *total = total_bytes();
    return state_end(CUDA_SUCCESS);
}

int swgpuSetFaults(const char *text)
{
    char error[1024] = "";
    state_lock();
    if (inject_replace_faults(text, error, sizeof error)) return (int)state_end(CUDA_SUCCESS);
    return (int)state_end(state_fail_whole(CUDA_ERROR_INVALID_VALUE, error));
}

size_t swgpuFindings(char *text, size_t bytes, unsigned *count)
{
    state_lock();
    const size_t length = findings_copy(text, bytes, count);
    state_end(CUDA_SUCCESS);
    return length;
}

#pragma GCC visibility pop
