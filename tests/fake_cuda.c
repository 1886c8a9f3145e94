/* The CUDA driver of the tests. In: the entry points of src/driver.h. Out: what CUDA would answer, products computed on
 * the host, and a text for the first misuse. See fake_cuda.h. */
#include "fake_launch.h"

#include <elf.h>
#include <pthread.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

/* One number an entry point. */
#define ENTRY(name, symbol, parameters) CALL_##name,
enum { DRIVER_FUNCTIONS(ENTRY) CALLS };
#undef ENTRY
#define ENTRY(name, symbol, parameters) #symbol,
static const char *const symbols[] = {DRIVER_FUNCTIONS(ENTRY)};
#undef ENTRY

#define MAX_DEPTH 16
#define MAX_CAPTURES 16

struct CUctx_st {
    int is_primary, is_alive;
    CUcontext next;
};

struct CUfunc_st {
    CUmodule module;
    int dynamic_shared; /* what function_set allowed; 0: not asked */
    char name[KERNEL_NAME_BYTES];
    CUfunction next;
};

struct CUmod_st {
    CUcontext context;
    unsigned char *image;
    size_t bytes;
    CUfunction functions;
    CUmodule next;
};

typedef struct block {
    void *memory;
    CUcontext context;
    struct block *next;
} block;

typedef struct capture {
    CUstream stream;
    CUstreamCaptureStatus status;
} capture;

typedef struct failure {
    uint64_t at; /* the number of the call; 0: none */
    CUresult result;
    fake_failure how;
} failure;

static const struct {
    CUdevice_attribute attribute;
    int value;
} orin[] = {
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 8},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 7},
    {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 16},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 164 * 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 163 * 1024},
    {CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536},
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 1536},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 16},
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all below but the stacks */
static struct {
    int attributes[CU_DEVICE_ATTRIBUTE_MAX];
    int devices, version, delay_ms, is_initialised, primary_references;
    CUresult refuse_cubins, refuse_ptx, lost;
    uint64_t calls[CALLS];
    failure failures[CALLS];
    CUcontext contexts, primary;
    CUmodule modules;
    block *blocks;
    capture captures[MAX_CAPTURES]; /* streams that a test has said something of */
    size_t capture_count;
    fake_launch last;
    char misuse[512], leaks[512];
} fake;
static _Thread_local CUcontext stack[MAX_DEPTH];
static _Thread_local int depth;
static _Thread_local CUstreamCaptureMode mode; /* CU_STREAM_CAPTURE_MODE_GLOBAL is 0 */

static CUcontext current(void)
{
    return depth ? stack[depth - 1] : NULL;
}

/* Keeps the first misuse. Lock held. */
static CUresult misused(CUresult result, const char *format, ...) __attribute__((format(printf, 2, 3)));
static CUresult misused(CUresult result, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (!fake.misuse[0]) vsnprintf(fake.misuse, sizeof fake.misuse, format, args);
    va_end(args);
    return result;
}

/* What every entry point does first: takes the lock, counts, fails if it was told to. */
static CUresult begin(int call, int needs_context)
{
    pthread_mutex_lock(&lock);
    uint64_t number = ++fake.calls[call];
    const failure *f = &fake.failures[call];
    if (call != CALL_init && call != CALL_error_name && call != CALL_error_string && call != CALL_driver_version && !fake.is_initialised)
        return misused(CUDA_ERROR_NOT_INITIALIZED, "%s before cuInit", symbols[call]);
    if (f->at && (number == f->at || (number > f->at && f->how != FAKE_ONCE))) {
        if (f->how == FAKE_EVERYWHERE) fake.lost = f->result;
        return f->result;
    }
    if (!needs_context) return CUDA_SUCCESS;
    if (!current()) return misused(CUDA_ERROR_INVALID_CONTEXT, "%s without a current context", symbols[call]);
    if (!current()->is_alive) return misused(CUDA_ERROR_CONTEXT_IS_DESTROYED, "%s in a context that is gone", symbols[call]);
    return fake.lost;
}

static CUresult end(CUresult result)
{
    pthread_mutex_unlock(&lock);
    return result;
}

#define BEGIN(name, needs_context)                             \
    CUresult began_ = begin(CALL_##name, needs_context);       \
    if (began_ != CUDA_SUCCESS) return end(began_)

static CUcontext add_context(int is_primary)
{
    CUcontext context = calloc(1, sizeof *context);
    if (!context) abort();
    context->is_primary = is_primary;
    context->is_alive = 1;
    context->next = fake.contexts;
    fake.contexts = context;
    return context;
}

#pragma GCC visibility push(default)

CUresult CUDAAPI cuInit(unsigned flags)
{
    BEGIN(init, 0);
    if (flags) return end(misused(CUDA_ERROR_INVALID_VALUE, "cuInit with flags"));
    fake.is_initialised = 1;
    return end(CUDA_SUCCESS);
}

CUresult CUDAAPI cuDriverGetVersion(int *version)
{
    BEGIN(driver_version, 0);
    *version = fake.version;
    return end(CUDA_SUCCESS);
}

static const struct {
    CUresult result;
    const char *name, *text;
} errors[] = {
    {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {CUDA_ERROR_NO_BINARY_FOR_GPU, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image for this device"},
    {CUDA_ERROR_INVALID_PTX, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {CUDA_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"},
};

static CUresult describe(int call, CUresult result, const char **out, int wants_name)
{
    CUresult began = begin(call, 0);
    *out = NULL;
    for (size_t i = 0; began == CUDA_SUCCESS && i < sizeof errors / sizeof errors[0]; i++)
        if (errors[i].result == result) *out = wants_name ? errors[i].name : errors[i].text;
    return end(*out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

CUresult CUDAAPI cuGetErrorName(CUresult result, const char **name)
{
    return describe(CALL_error_name, result, name, 1);
}

CUresult CUDAAPI cuGetErrorString(CUresult result, const char **text)
{
    return describe(CALL_error_string, result, text, 0);
}

CUresult CUDAAPI cuDeviceGetCount(int *count)
{
    BEGIN(device_count, 0);
    *count = fake.devices;
    return end(CUDA_SUCCESS);
}

CUresult CUDAAPI cuDeviceGet(CUdevice *which, int ordinal)
{
    BEGIN(device_get, 0);
    if (ordinal < 0 || ordinal >= fake.devices) return end(misused(CUDA_ERROR_INVALID_DEVICE, "cuDeviceGet of %d", ordinal));
    *which = ordinal;
    return end(CUDA_SUCCESS);
}

CUresult CUDAAPI cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice which)
{
    BEGIN(device_attribute, 0);
    if (which < 0 || which >= fake.devices) return end(misused(CUDA_ERROR_INVALID_DEVICE, "cuDeviceGetAttribute of %d", which));
    if (attribute >= CU_DEVICE_ATTRIBUTE_MAX || fake.attributes[attribute] < 0) return end(CUDA_ERROR_INVALID_VALUE);
    *value = fake.attributes[attribute];
    return end(CUDA_SUCCESS);
}

CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice which)
{
    BEGIN(primary_retain, 0);
    if (which != 0) return end(misused(CUDA_ERROR_INVALID_DEVICE, "cuDevicePrimaryCtxRetain of %d", which));
    if (!fake.primary) fake.primary = add_context(1);
    fake.primary->is_alive = 1;
    fake.primary_references++;
    *context = fake.primary;
    return end(CUDA_SUCCESS);
}

CUresult CUDAAPI cuDevicePrimaryCtxRelease_v2(CUdevice which)
{
    BEGIN(primary_release, 0);
    if (which != 0 || !fake.primary_references)
        return end(misused(CUDA_ERROR_INVALID_CONTEXT, "cuDevicePrimaryCtxRelease without a reference"));
    if (--fake.primary_references == 0) {
        for (CUmodule m = fake.modules; m; m = m->next)
            if (m->context == fake.primary) misused(CUDA_SUCCESS, "the primary context was released with modules loaded");
        fake.primary->is_alive = 0;
    }
    return end(CUDA_SUCCESS);
}

CUresult CUDAAPI cuCtxGetCurrent(CUcontext *context)
{
    BEGIN(context_current, 0);
    *context = current();
    return end(CUDA_SUCCESS);
}

CUresult CUDAAPI cuCtxPushCurrent_v2(CUcontext context)
{
    BEGIN(context_push, 0);
    if (!context || !context->is_alive) return end(misused(CUDA_ERROR_INVALID_CONTEXT, "cuCtxPushCurrent of no context"));
    if (depth == MAX_DEPTH) return end(misused(CUDA_ERROR_INVALID_CONTEXT, "cuCtxPushCurrent too often"));
    stack[depth++] = context;
    return end(CUDA_SUCCESS);
}

CUresult CUDAAPI cuCtxPopCurrent_v2(CUcontext *context)
{
    BEGIN(context_pop, 0);
    if (!depth) return end(misused(CUDA_ERROR_INVALID_CONTEXT, "cuCtxPopCurrent of an empty stack"));
    *context = stack[--depth];
    return end(CUDA_SUCCESS);
}

CUresult CUDAAPI cuCtxGetDevice(CUdevice *which)
{
    BEGIN(context_device, 1);
    *which = 0;
    return end(CUDA_SUCCESS);
}

/* Writes to the caller's error log, as the JIT does. */
static CUresult refuse(CUresult result, unsigned count, CUjit_option *options, void **values)
{
    char *log = NULL;
    size_t size = 0;
    for (unsigned i = 0; i < count; i++) {
        if (options[i] == CU_JIT_ERROR_LOG_BUFFER) log = values[i];
        if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) size = (size_t)(uintptr_t)values[i];
    }
    if (log && size) snprintf(log, size, "fake: image refused");
    return result;
}

CUresult CUDAAPI cuModuleLoadDataEx(CUmodule *module, const void *code, unsigned count, CUjit_option *options, void **values)
{
    BEGIN(module_load, 1);
    const struct timespec delay = {fake.delay_ms / 1000, fake.delay_ms % 1000 * 1000000};
    pthread_mutex_unlock(&lock); /* a load lets other threads go on here */
    if (delay.tv_sec || delay.tv_nsec) nanosleep(&delay, NULL);
    pthread_mutex_lock(&lock);
    size_t bytes;
    if (memcmp(code, ELFMAG, SELFMAG) == 0) {
        Elf64_Ehdr header;
        if (fake.refuse_cubins) return end(refuse(fake.refuse_cubins, count, options, values));
        memcpy(&header, code, sizeof header);
        bytes = header.e_shoff + (size_t)header.e_shnum * header.e_shentsize;
    } else if (strstr(code, ".version") && strstr(code, ".entry")) {
        if (fake.refuse_ptx) return end(refuse(fake.refuse_ptx, count, options, values));
        bytes = strlen(code);
    } else {
        return end(misused(CUDA_ERROR_INVALID_IMAGE, "an image that is neither a cubin nor PTX"));
    }
    CUmodule m = calloc(1, sizeof *m);
    if (!m || !(m->image = malloc(bytes))) abort();
    memcpy(m->image, code, bytes);
    m->bytes = bytes;
    m->context = current();
    m->next = fake.modules;
    fake.modules = m;
    *module = m;
    return end(CUDA_SUCCESS);
}

static CUmodule *find_module(CUmodule module)
{
    CUmodule *at = &fake.modules;
    while (*at && *at != module) at = &(*at)->next;
    return at;
}

static void free_module(CUmodule *at)
{
    CUmodule m = *at;
    *at = m->next;
    while (m->functions) {
        CUfunction f = m->functions;
        m->functions = f->next;
        free(f);
    }
    free(m->image);
    free(m);
}

CUresult CUDAAPI cuModuleUnload(CUmodule module)
{
    BEGIN(module_unload, 1);
    CUmodule *at = find_module(module);
    if (!*at) return end(misused(CUDA_ERROR_INVALID_HANDLE, "cuModuleUnload of a module that is not loaded"));
    if ((*at)->context != current()) misused(CUDA_SUCCESS, "cuModuleUnload in another context");
    free_module(at);
    return end(CUDA_SUCCESS);
}

static int is_word(unsigned char c)
{
    return isalnum(c) || c == '_';
}

/* The name as a whole word of the image. */
static int holds_name(CUmodule m, const char *name)
{
    const size_t length = strlen(name);
    for (size_t i = 1; i + length < m->bytes; i++)
        if (memcmp(m->image + i, name, length) == 0 && !is_word(m->image[i - 1]) && !is_word(m->image[i + length])) return 1;
    return 0;
}

CUresult CUDAAPI cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    BEGIN(module_function, 1);
    CUmodule m = *find_module(module);
    if (!m) return end(misused(CUDA_ERROR_INVALID_HANDLE, "cuModuleGetFunction of a module that is not loaded"));
    if (!holds_name(m, name)) return end(CUDA_ERROR_NOT_FOUND);
    CUfunction f = calloc(1, sizeof *f);
    if (!f) abort();
    f->module = m;
    f->next = m->functions;
    m->functions = f;
    snprintf(f->name, sizeof f->name, "%s", name);
    *function = f;
    return end(CUDA_SUCCESS);
}

static CUfunction find_function(CUfunction function)
{
    for (CUmodule m = fake.modules; m; m = m->next)
        for (CUfunction f = m->functions; f; f = f->next)
            if (f == function) return f;
    return NULL;
}

CUresult CUDAAPI cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function)
{
    BEGIN(function_get, 1);
    if (!find_function(function)) return end(misused(CUDA_ERROR_INVALID_HANDLE, "cuFuncGetAttribute of no function"));
    if (attribute != CU_FUNC_ATTRIBUTE_NUM_REGS) return end(CUDA_ERROR_INVALID_VALUE);
    *value = 77;
    return end(CUDA_SUCCESS);
}

CUresult CUDAAPI cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value)
{
    BEGIN(function_set, 1);
    CUfunction f = find_function(function);
    if (!f) return end(misused(CUDA_ERROR_INVALID_HANDLE, "cuFuncSetAttribute of no function"));
    if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) return end(CUDA_ERROR_INVALID_VALUE);
    if (value > fake.attributes[CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN]) return end(CUDA_ERROR_INVALID_VALUE);
    f->dynamic_shared = value;
    return end(CUDA_SUCCESS);
}

CUresult CUDAAPI cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                                unsigned shared, CUstream stream, void **parameters, void **extra)
{
    BEGIN(launch, 1);
    CUfunction f = find_function(function);
    if (!f) return end(misused(CUDA_ERROR_INVALID_HANDLE, "cuLaunchKernel of no function"));
    if (f->module->context != current()) return end(misused(CUDA_ERROR_INVALID_CONTEXT, "cuLaunchKernel in another context"));
    if (!parameters || extra) return end(misused(CUDA_ERROR_INVALID_VALUE, "cuLaunchKernel without parameters"));
    fake_launch l = {.grid = {gx, gy, gz}, .block = {bx, by, bz}, .shared_bytes = shared, .stream = stream};
    char fault[512] = "";
    memcpy(l.kernel, f->name, sizeof l.kernel);
    memcpy(&l.args, parameters[0], sizeof l.args);
    CUresult result = fake_check(&l, f->dynamic_shared, fault, sizeof fault);
    if (result != CUDA_SUCCESS) return end(misused(result, "%s", fault));
    fake.last = l;
    end(CUDA_SUCCESS);
    fake_compute(&l); /* launches of several threads run side by side */
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemAlloc_v2(CUdeviceptr *address, size_t bytes)
{
    BEGIN(memory_allocate, 1);
    if (!bytes) return end(misused(CUDA_ERROR_INVALID_VALUE, "cuMemAlloc of no bytes"));
    if (bytes > (size_t)1 << 32) return end(CUDA_ERROR_OUT_OF_MEMORY);
    block *b = calloc(1, sizeof *b);
    if (!b || posix_memalign(&b->memory, 512, bytes) != 0) abort();
    b->context = current();
    b->next = fake.blocks;
    fake.blocks = b;
    *address = (CUdeviceptr)(uintptr_t)b->memory;
    return end(CUDA_SUCCESS);
}

CUresult CUDAAPI cuMemFree_v2(CUdeviceptr address)
{
    BEGIN(memory_free, 1);
    for (block **at = &fake.blocks; *at; at = &(*at)->next) {
        block *b = *at;
        if ((CUdeviceptr)(uintptr_t)b->memory != address) continue;
        *at = b->next;
        free(b->memory);
        free(b);
        return end(CUDA_SUCCESS);
    }
    return end(misused(CUDA_ERROR_INVALID_VALUE, "cuMemFree of an unknown pointer"));
}

CUresult CUDAAPI cuMemcpy(CUdeviceptr destination, CUdeviceptr source, size_t bytes)
{
    BEGIN(memory_copy, 1);
    memcpy((void *)(uintptr_t)destination, (const void *)(uintptr_t)source, bytes);
    return end(CUDA_SUCCESS);
}

CUresult CUDAAPI cuStreamSynchronize(CUstream stream)
{
    BEGIN(stream_synchronize, 1);
    fake.last.stream = stream;
    return end(CUDA_SUCCESS);
}

static capture *find_capture(CUstream stream)
{
    for (size_t i = 0; i < fake.capture_count; i++)
        if (fake.captures[i].stream == stream) return &fake.captures[i];
    return NULL;
}

CUresult CUDAAPI cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status)
{
    BEGIN(stream_capturing, 1);
    if (!status) return end(misused(CUDA_ERROR_INVALID_VALUE, "cuStreamIsCapturing without a status"));
    const capture *c = find_capture(stream);
    *status = c ? c->status : CU_STREAM_CAPTURE_STATUS_NONE;
    return end(CUDA_SUCCESS);
}

CUresult CUDAAPI cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *other)
{
    BEGIN(capture_mode, 0);
    if (!other || (unsigned)*other > CU_STREAM_CAPTURE_MODE_RELAXED)
        return end(misused(CUDA_ERROR_INVALID_VALUE, "cuThreadExchangeStreamCaptureMode with no mode"));
    const CUstreamCaptureMode before = mode;
    mode = *other;
    *other = before;
    return end(CUDA_SUCCESS);
}

#pragma GCC visibility pop

#include "fake_controls.h"
