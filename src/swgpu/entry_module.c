/* Entry points of modules and functions: PTX in, kernels with a device's limits out. */
#include "state.h"

#include <stdio.h>
#include <stdlib.h>

#define ERROR_BYTES 2048
#define ZERO_BYTES 4096u

/* The two logs that a caller may ask for, and where their sizes are. */
typedef struct logs {
    char *error, *info;
    size_t error_bytes, info_bytes;
    void **error_size, **info_size;
} logs;

static logs find_logs(unsigned count, const CUjit_option *options, void **values)
{
    logs l = {0};
    for (unsigned i = 0; i < count; i++) {
        switch ((int)options[i]) {
        case CU_JIT_ERROR_LOG_BUFFER: l.error = values[i]; break;
        case CU_JIT_INFO_LOG_BUFFER: l.info = values[i]; break;
        case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES: l.error_size = &values[i]; break;
        case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES: l.info_size = &values[i]; break;
        default: break;
        }
    }
    l.error_bytes = l.error_size ? (size_t)(unsigned)(uintptr_t)*l.error_size : 0;
    l.info_bytes = l.info_size ? (size_t)(unsigned)(uintptr_t)*l.info_size : 0;
    return l;
}

/* The size values come back as what was written. */
static void write_logs(const logs *l, const char *error)
{
    size_t length = 0;
    if (l->error && l->error_bytes) {
        length = strlen(error) < l->error_bytes - 1 ? strlen(error) : l->error_bytes - 1;
        memcpy(l->error, error, length);
        l->error[length] = 0;
    }
    if (l->info && l->info_bytes) l->info[0] = 0;
    if (l->error_size) *l->error_size = (void *)(uintptr_t)length;
    if (l->info_size) *l->info_size = (void *)(uintptr_t)0;
}

static CUresult code_of(ptx_status status)
{
    static const CUresult codes[] = {
        [PTX_OK] = CUDA_SUCCESS,
        [PTX_SYNTAX] = CUDA_ERROR_INVALID_PTX,
        [PTX_VERSION] = CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
        [PTX_TARGET] = CUDA_ERROR_INVALID_PTX,
        [PTX_UNSUPPORTED] = CUDA_ERROR_INVALID_PTX,
        [PTX_MEMORY] = CUDA_ERROR_OUT_OF_MEMORY,
    };
    return (unsigned)status < sizeof codes / sizeof codes[0] ? codes[status] : CUDA_ERROR_INVALID_PTX;
}

static int begins_with(const unsigned char *image, const char *magic)
{
    for (size_t i = 0; i < 4; i++)
        if (image[i] != (unsigned char)magic[i]) return 0; /* stops at the image's end: no magic holds a 0 */
    return 1;
}

/* What a module's text says against running it here; the error is filled. */
static CUresult check_module(const ptx_module *m, char *error, size_t bytes)
{
    const model *device = gpu.settings.model;
    const char suffix[] = {m->target_suffix, 0};
    if (m->target > device->number || (m->target_suffix && m->target != device->number)) {
        snprintf(error, bytes, "the module is for sm_%d%s, the device is sm_%d", m->target, suffix, device->number);
        return CUDA_ERROR_INVALID_PTX; /* what a driver of CUDA 13 answers */
    }
    for (uint32_t i = 0; i < m->kernel_count; i++) {
        const ptx_kernel *k = &m->kernels[i];
        if (k->shared_bytes > MODELS_SHARED_WITHOUT_ASKING) {
            snprintf(error, bytes, "kernel %s has %llu bytes of static shared memory, %d is the most", k->name,
                     (unsigned long long)k->shared_bytes, MODELS_SHARED_WITHOUT_ASKING);
            return CUDA_ERROR_INVALID_PTX;
        }
    }
    for (uint32_t i = 0; i < m->variable_count; i++) {
        const ptx_variable *v = &m->variables[i];
        if (v->space != SPACE_SHARED && v->is_extern) {
            snprintf(error, bytes, "variable %s is extern; there is nothing to link it with", v->name);
            return CUDA_ERROR_INVALID_PTX;
        }
    }
    return CUDA_SUCCESS;
}

static CUresult parse(const unsigned char *image, ptx_module **out, char *error, size_t bytes)
{
    static const char *const binaries[] = {"\177ELF", "\120\355\125\272", "\261\103\142\106"}; /* cubin, fatbin, its wrapper */
    for (size_t i = 0; i < sizeof binaries / sizeof binaries[0]; i++) {
        if (!begins_with(image, binaries[i])) continue;
        snprintf(error, bytes, "a software GPU runs PTX; this image is binary");
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    }
    const char *text = (const char *)image;
    if (!strstr(text, ".version")) {
        snprintf(error, bytes, "neither PTX nor a binary: there is no .version");
        return CUDA_ERROR_INVALID_IMAGE;
    }
    const ptx_status status = ptx_parse(text, strlen(text), out, error, bytes);
    if (status != PTX_OK) return code_of(status);
    const CUresult result = check_module(*out, error, bytes);
    if (result == CUDA_SUCCESS) return result;
    ptx_free(*out);
    *out = NULL;
    return result;
}

static CUresult fill_variable(gpu_context *c, const ptx_variable *v, uint64_t address)
{
    static const uint8_t zeros[ZERO_BYTES];
    CUresult result = CUDA_SUCCESS;
    char error[256];
    for (uint64_t done = 0; done < v->bytes && result == CUDA_SUCCESS; done += ZERO_BYTES) {
        const uint64_t piece = v->bytes - done < ZERO_BYTES ? v->bytes - done : ZERO_BYTES;
        const uint8_t *from = v->initial ? v->initial + done : zeros;
        result = memory_copy(c->memory, address + done, (uint64_t)(uintptr_t)from, piece, error, sizeof error);
    }
    return result;
}

static CUresult place_variables(gpu_module *m)
{
    for (uint32_t i = 0; i < m->ptx->variable_count; i++) {
        const ptx_variable *v = &m->ptx->variables[i];
        if ((v->space != SPACE_GLOBAL && v->space != SPACE_CONST) || !v->bytes) continue;
        if (v->bytes > gpu.settings.memory_bytes - state_memory_used()) return CUDA_ERROR_OUT_OF_MEMORY;
        CUresult result = memory_allocate(m->context->memory, v->bytes, 1, &m->addresses[i]);
        if (result == CUDA_SUCCESS) result = fill_variable(m->context, v, m->addresses[i]);
        if (result != CUDA_SUCCESS) return result;
    }
    return CUDA_SUCCESS;
}

static CUresult prepare_functions(gpu_module *m)
{
    for (uint32_t i = 0; i < m->ptx->kernel_count; i++) {
        gpu_function *f = &m->functions[i];
        const ptx_kernel *k = &m->ptx->kernels[i];
        *f = (gpu_function){.module = m, .kernel = k, .registers = (int)k->registers, .carveout = -1,
                            .max_dynamic = MODELS_SHARED_WITHOUT_ASKING - (int)k->shared_bytes};
        f->handle = state_add_handle(HANDLE_FUNCTION, f);
        if (!f->handle) return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return CUDA_SUCCESS;
}

/* Takes the parsed module in any case. */
static CUresult add_module(ptx_module *ptx, CUmodule *out)
{
    gpu_module *m = calloc(1, sizeof *m);
    if (!m) {
        ptx_free(ptx);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    m->context = state_current();
    m->ptx = ptx;
    m->addresses = calloc(ptx->variable_count + 1u, sizeof *m->addresses);
    m->functions = calloc(ptx->kernel_count + 1u, sizeof *m->functions);
    m->handle = state_add_handle(HANDLE_MODULE, m);
    CUresult result = m->addresses && m->functions && m->handle ? place_variables(m) : CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_SUCCESS) result = prepare_functions(m);
    if (result != CUDA_SUCCESS) {
        state_free_module(m);
        return result;
    }
    m->next = m->context->modules;
    m->context->modules = m;
    *out = m->handle;
    return CUDA_SUCCESS;
}

static CUresult load(CUmodule *module, const void *image, const logs *l)
{
    char error[ERROR_BYTES] = "";
    ptx_module *ptx = NULL;
    CUresult result = parse(image, &ptx, error, sizeof error);
    write_logs(l, error);
    if (result == CUDA_SUCCESS) return add_module(ptx, module);
    return l->error ? result : state_fail(result, "%s", error);
}

static CUresult unload(CUmodule module)
{
    gpu_module *m = state_find(HANDLE_MODULE, module);
    if (!m) return state_fail(CUDA_ERROR_INVALID_HANDLE, "no such module");
    gpu_module **at = &m->context->modules;
    while (*at != m) at = &(*at)->next;
    *at = m->next;
    state_free_module(m);
    return CUDA_SUCCESS;
}

static CUresult find_function(CUfunction *function, CUmodule module, const char *name)
{
    const gpu_module *m = state_find(HANDLE_MODULE, module);
    if (!m) return state_fail(CUDA_ERROR_INVALID_HANDLE, "no such module");
    for (uint32_t i = 0; i < m->ptx->kernel_count; i++)
        if (strcmp(m->ptx->kernels[i].name, name) == 0) return *function = m->functions[i].handle, CUDA_SUCCESS;
    return state_fail(CUDA_ERROR_NOT_FOUND, "the module has no kernel %.200s", name);
}

static CUresult find_variable(CUdeviceptr *address, size_t *bytes, CUmodule module, const char *name)
{
    const gpu_module *m = state_find(HANDLE_MODULE, module);
    if (!m) return state_fail(CUDA_ERROR_INVALID_HANDLE, "no such module");
    for (uint32_t i = 0; i < m->ptx->variable_count; i++) {
        if (!m->addresses[i] || strcmp(m->ptx->variables[i].name, name) != 0) continue;
        if (address) *address = m->addresses[i];
        if (bytes) *bytes = m->ptx->variables[i].bytes;
        return CUDA_SUCCESS;
    }
    return state_fail(CUDA_ERROR_NOT_FOUND, "the module has no variable %.200s", name);
}

/* ---- attributes ---- */

static int max_threads(const gpu_function *f)
{
    const int by_registers = gpu.settings.model->limits->registers / models_warp_registers(f->registers) * 32;
    int most = MODELS_MAX_THREADS;
    if (by_registers < most) most = by_registers;
    const int bound = f->kernel->required[0] ? 0 : (int)f->kernel->max_threads; /* .reqntid is not reported */
    if (bound && bound < most) most = bound;
    return most;
}

static uint64_t constant_bytes(const ptx_module *m)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < m->variable_count; i++)
        if (m->variables[i].space == SPACE_CONST) bytes += m->variables[i].bytes;
    return bytes;
}

static CUresult get_attribute(int *value, int attribute, CUfunction function)
{
    const gpu_function *f = state_find(HANDLE_FUNCTION, function);
    if (!f) return state_fail(CUDA_ERROR_INVALID_HANDLE, "no such function");
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = max_threads(f); break;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: *value = (int)f->kernel->shared_bytes; break;
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES: *value = (int)constant_bytes(f->module->ptx); break;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: *value = (int)f->kernel->local_bytes; break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS: *value = f->registers; break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION: *value = f->module->ptx->target; break;
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION: *value = gpu.settings.model->number; break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: *value = f->max_dynamic; break;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: *value = f->carveout; break;
    default: return state_fail(CUDA_ERROR_INVALID_VALUE, "function attribute %d is not known", attribute);
    }
    return CUDA_SUCCESS;
}

static CUresult set_attribute(CUfunction function, int attribute, int value)
{
    gpu_function *f = state_find(HANDLE_FUNCTION, function);
    if (!f) return state_fail(CUDA_ERROR_INVALID_HANDLE, "no such function");
    const int most = gpu.settings.model->limits->shared_per_block - (int)f->kernel->shared_bytes;
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        if (value < 0 || value > most)
            return state_fail(CUDA_ERROR_INVALID_VALUE, "%d bytes of dynamic shared memory; %d is the most for %s", value, most,
                              f->kernel->name);
        f->max_dynamic = value;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        if (value < -1 || value > 100) return state_fail(CUDA_ERROR_INVALID_VALUE, "a carve-out of %d; it is -1 to 100", value);
        f->carveout = value;
        return CUDA_SUCCESS;
    default: return state_fail(CUDA_ERROR_INVALID_VALUE, "function attribute %d cannot be set", attribute);
    }
}

static CUresult occupancy(int *blocks, CUfunction function, int threads, size_t dynamic)
{
    const gpu_function *f = state_find(HANDLE_FUNCTION, function);
    if (!f) return state_fail(CUDA_ERROR_INVALID_HANDLE, "no such function");
    if (threads < 1) return state_fail(CUDA_ERROR_INVALID_VALUE, "a block of %d threads", threads);
    const model *m = gpu.settings.model;
    const int fits = threads <= MODELS_MAX_THREADS && dynamic <= (size_t)m->limits->shared_per_block;
    *blocks = fits ? models_blocks_per_sm(m, threads, f->registers, f->kernel->shared_bytes + dynamic) : 0;
    return CUDA_SUCCESS;
}

#pragma GCC visibility push(default)

CUresult CUDAAPI cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned count, CUjit_option *options, void **values)
{
    BEGIN(cuModuleLoadDataEx);
    if (!module || !image || (count && (!options || !values))) return state_end(state_need(NULL));
    const logs l = find_logs(count, options, values);
    return state_end(load(module, image, &l));
}

CUresult CUDAAPI cuModuleUnload(CUmodule module)
{
    BEGIN(cuModuleUnload);
    return state_end(unload(module));
}

CUresult CUDAAPI cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    BEGIN(cuModuleGetFunction);
    return state_end(function && name ? find_function(function, module, name) : state_need(NULL));
}

CUresult CUDAAPI cuModuleGetGlobal_v2(CUdeviceptr *address, size_t *bytes, CUmodule module, const char *name)
{
    BEGIN(cuModuleGetGlobal_v2);
    return state_end(name && (address || bytes) ? find_variable(address, bytes, module, name) : state_need(NULL));
}

CUresult CUDAAPI cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function)
{
    BEGIN(cuFuncGetAttribute);
    return state_end(value ? get_attribute(value, (int)attribute, function) : state_need(NULL));
}

CUresult CUDAAPI cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value)
{
    BEGIN(cuFuncSetAttribute);
    return state_end(set_attribute(function, (int)attribute, value));
}

CUresult CUDAAPI cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function, int threads, size_t dynamic)
{
    BEGIN(cuOccupancyMaxActiveBlocksPerMultiprocessor);
    return state_end(blocks ? occupancy(blocks, function, threads, dynamic) : state_need(NULL));
}

#pragma GCC visibility pop
