/* Entry points of device memory. All are done when they return, those with a stream too, unless that is captured. */
#include "capture.h"

#include <stdlib.h>

#define FILL_BYTES (64u * 1024)

static int is_device_address(CUdeviceptr address)
{
    return (address & WINDOW_MASK) == GLOBAL_WINDOW;
}

/* The allocation that holds an address, in whatever context: they share their addresses. */
static const allocation *find(CUdeviceptr address, device_memory **memory)
{
    for (gpu_context *c = is_device_address(address) ? gpu.contexts : NULL; c; c = c->next) {
        const allocation *a = memory_find(c->memory, address, NULL);
        *memory = c->memory;
        if (a) return a;
    }
    *memory = state_current()->memory;
    return NULL;
}

static CUresult copy(uint64_t to, uint64_t from, uint64_t bytes)
{
    char error[512] = "";
    if (!bytes) return CUDA_SUCCESS;
    if (!to || !from) return state_need(NULL);
    device_memory *memory;
    find(is_device_address(to) ? to : from, &memory);
    const CUresult result = memory_copy(memory, to, from, bytes, error, sizeof error);
    return result == CUDA_SUCCESS || !error[0] ? result : state_fail(result, "%s", error);
}

static CUresult copy_checked(uint64_t to, uint64_t from, uint64_t bytes, int to_device, int from_device)
{
    if (bytes && ((to_device && !is_device_address(to)) || (from_device && !is_device_address(from))))
        return state_fail(CUDA_ERROR_INVALID_VALUE, "%#llx is no device address",
                          (unsigned long long)(to_device && !is_device_address(to) ? to : from));
    return copy(to, from, bytes);
}

/* Repeats 4 bytes over a range; one that does not fit changes nothing. */
static CUresult fill(CUdeviceptr to, uint32_t pattern, uint64_t bytes)
{
    if (!bytes) return CUDA_SUCCESS;
    device_memory *memory;
    const allocation *a = find(to, &memory);
    if (!a || a->freed || bytes > a->base + a->bytes - to)
        return state_fail(CUDA_ERROR_INVALID_VALUE, "%llu bytes at %#llx are not all in one allocation",
                          (unsigned long long)bytes, (unsigned long long)to);
    uint32_t *filled = malloc(FILL_BYTES);
    if (!filled) return CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < FILL_BYTES / sizeof *filled; i++) filled[i] = pattern;
    CUresult result = CUDA_SUCCESS;
    for (uint64_t done = 0; done < bytes && result == CUDA_SUCCESS; done += FILL_BYTES)
        result = copy(to + done, (uint64_t)(uintptr_t)filled, bytes - done < FILL_BYTES ? bytes - done : FILL_BYTES);
    free(filled);
    return result;
}

static CUresult allocate(CUdeviceptr *address, size_t bytes)
{
    const uint64_t used = state_memory_used(), limit = gpu.settings.memory_bytes;
    if (!bytes) return state_fail(CUDA_ERROR_INVALID_VALUE, "an allocation of 0 bytes");
    if (used > limit || bytes > limit - used)
        return state_fail(CUDA_ERROR_OUT_OF_MEMORY, "%zu bytes asked for, %llu of %llu are free", bytes,
                          (unsigned long long)(used > limit ? 0 : limit - used), (unsigned long long)limit);
    uint64_t at = 0;
    const CUresult result = memory_allocate(state_current()->memory, bytes, 0, &at);
    if (result != CUDA_SUCCESS) return state_fail(result, "the host has no memory for %zu bytes; each takes two", bytes);
    *address = at;
    return CUDA_SUCCESS;
}

/* A module's variables are not for the program to free. */
static CUresult release(CUdeviceptr address)
{
    device_memory *memory;
    if (!address) return CUDA_SUCCESS;
    const allocation *a = find(address, &memory);
    if (!a || a->base != address || a->owned || a->freed)
        return state_fail(CUDA_ERROR_INVALID_VALUE, a && a->freed ? "%#llx is freed already" : "%#llx is no allocation's address",
                          (unsigned long long)address);
    return memory_free(memory, address);
}

/* A copy of nothing is no node. */
static CUresult copy_in_stream(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    gpu_object *captured;
    CUresult result = capture_use(stream, &captured);
    if (result == CUDA_SUCCESS && !state_stream_context(stream)) result = state_fail(CUDA_ERROR_INVALID_HANDLE, "no such stream");
    if (result != CUDA_SUCCESS || !captured) return result == CUDA_SUCCESS ? copy(to, from, bytes) : result;
    if (!bytes) return CUDA_SUCCESS;
    gpu_node *n = to && from ? capture_add(captured, CU_GRAPH_NODE_TYPE_MEMCPY) : NULL;
    if (!n) {
        capture_invalidate(captured);
        return to && from ? CUDA_ERROR_OUT_OF_MEMORY : state_need(NULL);
    }
    n->to = to;
    n->from = from;
    n->bytes = bytes;
    return CUDA_SUCCESS;
}

CUresult launch_copy_node(const gpu_node *n)
{
    return copy(n->to, n->from, n->bytes);
}

#pragma GCC visibility push(default)

CUresult CUDAAPI cuMemAlloc_v2(CUdeviceptr *address, size_t bytes)
{
    BEGIN(cuMemAlloc_v2);
    return state_end(address ? allocate(address, bytes) : state_need(NULL));
}

CUresult CUDAAPI cuMemFree_v2(CUdeviceptr address)
{
    BEGIN(cuMemFree_v2);
    return state_end(release(address));
}

CUresult CUDAAPI cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    BEGIN(cuMemcpy);
    return state_end(copy(to, from, bytes));
}

CUresult CUDAAPI cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    BEGIN(cuMemcpyAsync);
    return state_end(copy_in_stream(to, from, bytes, stream));
}

CUresult CUDAAPI cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes)
{
    BEGIN(cuMemcpyHtoD_v2);
    return state_end(copy_checked(to, (uint64_t)(uintptr_t)from, bytes, 1, 0));
}

CUresult CUDAAPI cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes)
{
    BEGIN(cuMemcpyDtoH_v2);
    return state_end(copy_checked((uint64_t)(uintptr_t)to, from, bytes, 0, 1));
}

CUresult CUDAAPI cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    BEGIN(cuMemcpyDtoD_v2);
    return state_end(copy_checked(to, from, bytes, 1, 1));
}

CUresult CUDAAPI cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count)
{
    BEGIN(cuMemsetD8_v2);
    return state_end(fill(to, value * 0x01010101u, count));
}

CUresult CUDAAPI cuMemsetD32_v2(CUdeviceptr to, unsigned value, size_t count)
{
    BEGIN(cuMemsetD32_v2);
    if (to % 4 || count > UINT64_MAX / 4)
        return state_end(state_fail(CUDA_ERROR_INVALID_VALUE, "%zu words at %#llx", count, (unsigned long long)to));
    return state_end(fill(to, value, 4 * (uint64_t)count));
}

#pragma GCC visibility pop
