/* Green contexts: see bench_green.h. */
#include "bench_green.h"

#include "status.h"

#include <dlfcn.h>
#include <string.h>

#if CUDA_VERSION >= 12040

#define STRING(text) #text

/* member, exported symbol, parameters */
#define GREEN_FUNCTIONS(X)                                                                                       \
    X(get, cuDeviceGetDevResource, (CUdevice, CUdevResource *, CUdevResourceType))                               \
    X(split, cuDevSmResourceSplitByCount,                                                                        \
      (CUdevResource *, unsigned *, const CUdevResource *, CUdevResource *, unsigned, unsigned))                 \
    X(describe, cuDevResourceGenerateDesc, (CUdevResourceDesc *, CUdevResource *, unsigned))                     \
    X(create, cuGreenCtxCreate, (CUgreenCtx *, CUdevResourceDesc, CUdevice, unsigned))                           \
    X(destroy, cuGreenCtxDestroy, (CUgreenCtx))                                                                  \
    X(context, cuCtxFromGreenCtx, (CUcontext *, CUgreenCtx))                                                     \
    X(stream, cuGreenCtxStreamCreate, (CUstream *, CUgreenCtx, unsigned, int))

typedef struct green_calls {
#define MEMBER(name, symbol, parameters) CUresult(CUDAAPI *name) parameters;
    GREEN_FUNCTIONS(MEMBER)
#undef MEMBER
} green_calls;

static jg_status bind_calls(const bench_gpu *gpu, green_calls *calls)
{
#define BIND(name, symbol, parameters)                                                                        \
    *(void **)&calls->name = dlsym(gpu->driver->handle, STRING(symbol));                                      \
    if (!calls->name) return status_set(JG_ERR_UNSUPPORTED, "this driver has no green contexts (%s)", STRING(symbol));
    GREEN_FUNCTIONS(BIND)
#undef BIND
    return JG_OK;
}

static jg_status refused(const bench_gpu *gpu, CUresult result, const char *what)
{
    return result == CUDA_SUCCESS ? JG_OK : driver_error(gpu->driver, result, JG_ERR_UNSUPPORTED, what);
}

/* One group of `sms`; the driver gives at least as many as were asked for, in steps of its own. */
static jg_status take_group(const bench_gpu *gpu, const green_calls *calls, int sms, CUdevResource *group)
{
    CUdevResource all, rest;
    unsigned groups = 1;
    RETURN_IF_ERROR(refused(gpu, calls->get(gpu->ordinal, &all, CU_DEV_RESOURCE_TYPE_SM), "cuDeviceGetDevResource"));
    if ((unsigned)sms > all.sm.smCount)
        return status_set(JG_ERR_UNSUPPORTED, "there are only %u multiprocessors, not %d", all.sm.smCount, sms);
    RETURN_IF_ERROR(refused(gpu, calls->split(group, &groups, &all, &rest, 0, (unsigned)sms), "cuDevSmResourceSplitByCount"));
    if (groups == 0) return status_set(JG_ERR_UNSUPPORTED, "the driver makes no group of %d multiprocessors", sms);
    return JG_OK;
}

jg_status bench_green_open(bench_gpu *gpu, int sms, CUcontext *context)
{
    green_calls calls;
    CUdevResource group;
    CUdevResourceDesc description;
    CUgreenCtx green;
    RETURN_IF_ERROR(bind_calls(gpu, &calls));
    RETURN_IF_ERROR(take_group(gpu, &calls, sms, &group));
    RETURN_IF_ERROR(refused(gpu, calls.describe(&description, &group, 1), "cuDevResourceGenerateDesc"));
    CUresult result = calls.create(&green, description, gpu->ordinal, CU_GREEN_CTX_DEFAULT_STREAM);
    RETURN_IF_ERROR(refused(gpu, result, "cuGreenCtxCreate"));
    result = calls.context(context, green);
    if (result != CUDA_SUCCESS) {
        calls.destroy(green);
        return refused(gpu, result, "cuCtxFromGreenCtx");
    }
    gpu->green = green;
    gpu->narrow_sms = (int)group.sm.smCount;
    return JG_OK;
}

jg_status bench_green_make_stream(const bench_gpu *gpu, CUstream *stream)
{
    green_calls calls;
    RETURN_IF_ERROR(bind_calls(gpu, &calls));
    return refused(gpu, calls.stream(stream, gpu->green, CU_STREAM_NON_BLOCKING, 0), "cuGreenCtxStreamCreate");
}

void bench_green_close(bench_gpu *gpu)
{
    green_calls calls;
    if (gpu->green && bind_calls(gpu, &calls) == JG_OK) calls.destroy(gpu->green);
    gpu->green = NULL;
}

#else

static jg_status too_old(void)
{
    return status_set(JG_ERR_UNSUPPORTED, "built with the headers of CUDA %d.%d, which have no green contexts (12.4 has)",
                      CUDA_VERSION / 1000, CUDA_VERSION % 1000 / 10);
}

jg_status bench_green_open(bench_gpu *gpu, int sms, CUcontext *context)
{
    (void)gpu, (void)sms, (void)context;
    return too_old();
}

jg_status bench_green_make_stream(const bench_gpu *gpu, CUstream *stream)
{
    (void)gpu, (void)stream;
    return too_old();
}

void bench_green_close(bench_gpu *gpu)
{
    gpu->green = NULL;
}

#endif
