/* jg_alloc, jg_free, jg_copy, jg_synchronize: just enough for a first program to need no other library. */
#include "context.h"
#include "status.h"

#include <stdlib.h>
#include <string.h>

#define ALIGNMENT 256

static jg_status check_memory(const jg_context *c, const char *function, jg_memory memory)
{
    if (!c) return status_set(JG_ERR_NULL, "%s: context is null", function);
    if ((unsigned)memory > JG_HOST_MEMORY)
        return status_set(JG_ERR_VALUE, "%s: memory is %d; it must be JG_DEVICE_MEMORY or JG_HOST_MEMORY", function, (int)memory);
    return JG_OK;
}

jg_status jg_alloc(jg_context *c, jg_memory memory, size_t bytes, void **pointer)
{
    RETURN_IF_ERROR(check_memory(c, "jg_alloc", memory));
    if (!pointer) return status_set(JG_ERR_NULL, "jg_alloc: pointer is null");
    *pointer = NULL;
    if (!bytes) return JG_OK;
    if (memory == JG_HOST_MEMORY || context_is_cpu(c)) {
        if (posix_memalign(pointer, ALIGNMENT, bytes) == 0) return JG_OK;
        *pointer = NULL;
        return status_set(JG_ERR_NO_MEMORY, "jg_alloc: out of host memory (%zu bytes)", bytes);
    }
    device_scope scope;
    RETURN_IF_ERROR(device_enter(&c->device, &scope));
    CUdeviceptr address = 0;
    CUresult result = c->device.driver->memory_allocate(&address, bytes); /* aligned to 256 or more by CUDA */
    device_leave(&c->device, &scope);
    if (result != CUDA_SUCCESS) return driver_error(c->device.driver, result, JG_ERR_DEVICE, "cuMemAlloc");
    *pointer = (void *)(uintptr_t)address;
    return JG_OK;
}

jg_status jg_free(jg_context *c, jg_memory memory, void *pointer)
{
    RETURN_IF_ERROR(check_memory(c, "jg_free", memory));
    if (!pointer) return JG_OK;
    if (memory == JG_HOST_MEMORY || context_is_cpu(c)) {
        free(pointer);
        return JG_OK;
    }
    device_scope scope;
    RETURN_IF_ERROR(device_enter(&c->device, &scope));
    CUresult result = c->device.driver->memory_free((CUdeviceptr)(uintptr_t)pointer);
    device_leave(&c->device, &scope);
    return result == CUDA_SUCCESS ? JG_OK : driver_error(c->device.driver, result, JG_ERR_DEVICE, "cuMemFree");
}

jg_status jg_copy(jg_context *c, void *destination, const void *source, size_t bytes)
{
    if (!c) return status_set(JG_ERR_NULL, "jg_copy: context is null");
    if (!bytes) return JG_OK;
    if (!destination || !source) return status_set(JG_ERR_NULL, "jg_copy: %s is null", destination ? "source" : "destination");
    if (context_is_cpu(c)) {
        memmove(destination, source, bytes);
        return JG_OK;
    }
    device_scope scope;
    RETURN_IF_ERROR(device_enter(&c->device, &scope));
    /* With unified addressing the driver tells host from device by the pointers. */
    CUresult result = c->device.driver->memory_copy((CUdeviceptr)(uintptr_t)destination, (CUdeviceptr)(uintptr_t)source, bytes);
    device_leave(&c->device, &scope);
    return result == CUDA_SUCCESS ? JG_OK : driver_error(c->device.driver, result, JG_ERR_DEVICE, "cuMemcpy");
}

jg_status jg_synchronize(jg_context *c, void *stream)
{
    if (!c) return status_set(JG_ERR_NULL, "jg_synchronize: context is null");
    if (context_is_cpu(c)) return JG_OK;
    device_scope scope;
    RETURN_IF_ERROR(device_enter(&c->device, &scope));
    CUresult result = c->device.driver->stream_synchronize(stream);
    device_leave(&c->device, &scope);
    return result == CUDA_SUCCESS ? JG_OK : driver_error(c->device.driver, result, JG_ERR_DEVICE, "cuStreamSynchronize");
}
