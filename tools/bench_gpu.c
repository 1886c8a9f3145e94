/* Driver calls of the benchmark's own: see bench_gpu.h. */
#include "bench_gpu.h"

#include "bench_green.h"
#include "launch.h"
#include "options.h"
#include "status.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define STRING(text) #text

/* For the driver's own compiler, so that neither needs NVRTC. The first number is how many bytes the tiny kernel takes; the spin
 * kernel ends by the GPU's clock of nanoseconds. */
static const char kernels_before[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry tiny(.param .align 8 .b8 args[";
static const char kernels_behind[] =
    "])\n{\n  ret;\n}\n"
    ".visible .entry spin(.param .u64 ns)\n{\n"
    "  .reg .pred %p1;\n  .reg .b64 %d<5>;\n"
    "  ld.param.u64 %d1, [ns];\n"
    "  mov.u64 %d2, %globaltimer;\n"
    "AGAIN:\n"
    "  mov.u64 %d3, %globaltimer;\n"
    "  sub.u64 %d4, %d3, %d2;\n"
    "  setp.lt.u64 %p1, %d4, %d1;\n"
    "  @%p1 bra AGAIN;\n"
    "  ret;\n}\n";

static const bench_shape one_thread = {1, 1, 1, 0};

_Static_assert(sizeof(launch_args) <= BENCH_ARGUMENT_BYTES, "a kernel's argument");

size_t bench_gpu_argument_bytes(void)
{
    return sizeof(launch_args);
}

jg_status bench_gpu_failed(const bench_gpu *gpu, CUresult result, const char *what)
{
    return result == CUDA_SUCCESS ? JG_OK : driver_error(gpu->driver, result, JG_ERR_DEVICE, what);
}

static jg_status bind_functions(bench_gpu *gpu)
{
#define BIND(name, symbol, parameters)                                                                           \
    *(void **)&gpu->name = dlsym(gpu->driver->handle, STRING(symbol));                                           \
    if (!gpu->name) return status_set(JG_ERR_NO_DRIVER, "the CUDA driver has no %s; it is too old", STRING(symbol));
    BENCH_GPU_FUNCTIONS(BIND)
#undef BIND
    return JG_OK;
}

static jg_status identify(bench_gpu *gpu)
{
    const driver *d = gpu->driver;
    int count = 0, major = 0, minor = 0;
    RETURN_IF_ERROR(bench_gpu_failed(gpu, d->device_count(&count), "cuDeviceGetCount"));
    if (count == 0) return status_set(JG_ERR_NO_DEVICE, "the CUDA driver found no device");
    RETURN_IF_ERROR(bench_gpu_failed(gpu, d->device_get(&gpu->ordinal, 0), "cuDeviceGet"));
    RETURN_IF_ERROR(bench_gpu_failed(gpu, gpu->device_name(gpu->name, sizeof gpu->name, gpu->ordinal), "cuDeviceGetName"));
    CUresult result = d->device_attribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, gpu->ordinal);
    if (result == CUDA_SUCCESS) result = d->device_attribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, gpu->ordinal);
    RETURN_IF_ERROR(bench_gpu_failed(gpu, result, "cuDeviceGetAttribute"));
    gpu->arch = major * 10 + minor;
    d->device_attribute(&gpu->sm_count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, gpu->ordinal);
    if (d->device_attribute(&gpu->l2_bytes, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, gpu->ordinal) != CUDA_SUCCESS) gpu->l2_bytes = 0;
    CUresult(CUDAAPI * bus_id)(char *, int, CUdevice);
    *(void **)&bus_id = dlsym(d->handle, "cuDeviceGetPCIBusId"); /* not every driver has a bus */
    if (!bus_id || bus_id(gpu->pci_bus_id, sizeof gpu->pci_bus_id, gpu->ordinal) != CUDA_SUCCESS) gpu->pci_bus_id[0] = 0;
    gpu->software = d->describe != NULL;
    return JG_OK;
}

jg_status bench_gpu_open(const char *path, bench_gpu *gpu)
{
    memset(gpu, 0, sizeof *gpu);
    path = options_driver_path(path);
    if (strcmp(path, "cpu") == 0)
        return status_set(JG_ERR_NO_DEVICE, "the cpu device launches nothing that could be measured; "
                                            "--driver swgpu counts without a GPU");
    jg_status status = driver_open(path, &gpu->driver);
    if (status != JG_OK && strcmp(path, DRIVER_SWGPU) != 0)
        status_prefix(status, "no GPU here to measure (--driver swgpu counts without one): ");
    if (status != JG_OK) return status;
    status = bind_functions(gpu);
    if (status == JG_OK) status = identify(gpu);
    if (status != JG_OK) bench_gpu_close(gpu);
    return status;
}

jg_status bench_gpu_retain(bench_gpu *gpu)
{
    CUcontext context;
    RETURN_IF_ERROR(bench_gpu_failed(gpu, gpu->driver->primary_retain(&context, gpu->ordinal), "cuDevicePrimaryCtxRetain"));
    gpu->context = context;
    return bench_gpu_enter(gpu);
}

static jg_status load_kernels(bench_gpu *gpu)
{
    char kernels[sizeof kernels_before + sizeof kernels_behind + 16];
    const driver *d = gpu->driver;
    char argument[BENCH_ARGUMENT_BYTES] = {0};
    snprintf(kernels, sizeof kernels, "%s%zu%s", kernels_before, bench_gpu_argument_bytes(), kernels_behind);
    const CUresult loaded = d->module_load(&gpu->module, kernels, 0, NULL, NULL);
    RETURN_IF_ERROR(bench_gpu_failed(gpu, loaded, "loading the benchmark's own kernels"));
    RETURN_IF_ERROR(bench_gpu_failed(gpu, d->module_function(&gpu->tiny, gpu->module, "tiny"), "cuModuleGetFunction"));
    RETURN_IF_ERROR(bench_gpu_failed(gpu, d->module_function(&gpu->spin, gpu->module, "spin"), "cuModuleGetFunction"));
    RETURN_IF_ERROR(bench_gpu_failed(gpu, bench_gpu_launch_tiny(gpu, &one_thread, NULL, argument), "cuLaunchKernel"));
    RETURN_IF_ERROR(bench_gpu_launch_spin(gpu, 1, NULL));
    return bench_gpu_wait(gpu, NULL);
}

jg_status bench_gpu_start(bench_gpu *gpu)
{
    RETURN_IF_ERROR(bench_gpu_retain(gpu));
    return load_kernels(gpu);
}

/* Gives back what bench_gpu_start or bench_gpu_start_narrow took. */
static void stop(bench_gpu *gpu)
{
    if (gpu->module) gpu->driver->module_unload(gpu->module);
    if (gpu->context) {
        bench_gpu_leave(gpu);
        bench_green_close(gpu);
        gpu->driver->primary_release(gpu->ordinal);
    }
    gpu->module = NULL;
    gpu->tiny = gpu->spin = NULL;
    gpu->context = NULL;
    gpu->narrow_sms = 0;
}

jg_status bench_gpu_start_narrow(bench_gpu *gpu, int sms)
{
    CUcontext narrow;
    RETURN_IF_ERROR(bench_gpu_retain(gpu));
    jg_status status = bench_green_open(gpu, sms, &narrow);
    if (status == JG_OK) {
        bench_gpu_leave(gpu);
        gpu->context = narrow;
        status = bench_gpu_enter(gpu);
    }
    if (status == JG_OK) status = load_kernels(gpu);
    if (status != JG_OK) stop(gpu);
    return status;
}

void bench_gpu_close(bench_gpu *gpu)
{
    stop(gpu);
    driver_close(gpu->driver);
    memset(gpu, 0, sizeof *gpu);
}

jg_status bench_gpu_enter(const bench_gpu *gpu)
{
    return bench_gpu_failed(gpu, gpu->driver->context_push(gpu->context), "cuCtxPushCurrent");
}

void bench_gpu_leave(const bench_gpu *gpu)
{
    CUcontext popped;
    gpu->driver->context_pop(&popped);
}

jg_status bench_gpu_make_stream(const bench_gpu *gpu, CUstream *stream)
{
    if (gpu->green) return bench_green_make_stream(gpu, stream);
    return bench_gpu_failed(gpu, gpu->stream_create(stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
}

jg_status bench_gpu_wait(const bench_gpu *gpu, CUstream stream)
{
    return bench_gpu_failed(gpu, gpu->driver->stream_synchronize(stream), "cuStreamSynchronize");
}

jg_status bench_gpu_make_event(const bench_gpu *gpu, CUevent *event)
{
    return bench_gpu_failed(gpu, gpu->event_create(event, CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING), "cuEventCreate");
}

static jg_status allocate(const bench_gpu *gpu, size_t bytes, CUdeviceptr *address)
{
    RETURN_IF_ERROR(bench_gpu_failed(gpu, gpu->driver->memory_allocate(address, bytes), "cuMemAlloc"));
    return bench_gpu_failed(gpu, gpu->memory_set(*address, 0, bytes), "cuMemsetD8");
}

jg_status bench_matrices_allocate(const bench_gpu *gpu, size_t a_bytes, size_t b_bytes, size_t c_bytes, bench_matrices *out)
{
    memset(out, 0, sizeof *out);
    jg_status status = allocate(gpu, a_bytes, &out->a);
    if (status == JG_OK) status = allocate(gpu, b_bytes, &out->b);
    if (status == JG_OK) status = allocate(gpu, c_bytes, &out->c);
    if (status != JG_OK) bench_matrices_free(gpu, out);
    return status;
}

void bench_matrices_free(const bench_gpu *gpu, bench_matrices *m)
{
    const CUdeviceptr all[] = {m->a, m->b, m->c};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i]) gpu->driver->memory_free(all[i]);
    memset(m, 0, sizeof *m);
}

jg_operands bench_matrices_data(const bench_matrices *m, CUstream stream)
{
    return (jg_operands){.a = (void *)(uintptr_t)m->a, .b = (void *)(uintptr_t)m->b, .c = (void *)(uintptr_t)m->c,
                         .stream = stream};
}

jg_status bench_gpu_allow_shape(const bench_gpu *gpu, const bench_shape *shape)
{
    if (shape->shared_bytes <= 48 * 1024) return JG_OK; /* more has to be asked for */
    const CUfunction_attribute most = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    return bench_gpu_failed(gpu, gpu->driver->function_set(gpu->tiny, most, (int)shape->shared_bytes), "cuFuncSetAttribute");
}

jg_status bench_gpu_launch_spin(const bench_gpu *gpu, uint64_t ns, CUstream stream)
{
    void *parameters[] = {&ns};
    return bench_gpu_failed(gpu, gpu->driver->launch(gpu->spin, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL), "cuLaunchKernel");
}
