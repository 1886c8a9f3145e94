/* Device memory full of random operands: see bench_pool.h. */
#include "bench_pool.h"

#include "bench_elements.h"
#include "status.h"

#include <stdlib.h>
#include <string.h>

enum { PERIOD = BENCH_POOL_PERIOD };

jg_status bench_pool_open(const bench_gpu *gpu, size_t in_bytes, size_t out_bytes, size_t extra_bytes, bench_pool *pool)
{
    const driver *d = gpu->driver;
    *pool = (bench_pool){.gpu = gpu, .in_bytes = in_bytes, .out_bytes = out_bytes, .extra_bytes = extra_bytes};
    for (int i = 0; i < 2; i++) {
        pool->patterns[i] = malloc(PERIOD * sizeof *pool->patterns[i]);
        if (!pool->patterns[i]) return status_set(JG_ERR_NO_MEMORY, "out of memory for operands");
    }
    RETURN_IF_ERROR(bench_gpu_failed(gpu, d->memory_allocate(&pool->in, in_bytes ? in_bytes : 1), "cuMemAlloc"));
    if (extra_bytes) RETURN_IF_ERROR(bench_gpu_failed(gpu, d->memory_allocate(&pool->extra, extra_bytes), "cuMemAlloc"));
    return bench_gpu_failed(gpu, d->memory_allocate(&pool->out, out_bytes), "cuMemAlloc");
}

void bench_pool_close(bench_pool *pool)
{
    if (pool->in) pool->gpu->driver->memory_free(pool->in);
    if (pool->out) pool->gpu->driver->memory_free(pool->out);
    if (pool->extra) pool->gpu->driver->memory_free(pool->extra);
    free(pool->patterns[0]);
    free(pool->patterns[1]);
    *pool = (bench_pool){0};
}

/* ---- filling ---- */

/* Copies what lies at the start, `have` bytes, behind itself until `bytes` are full. */
static CUresult repeat(const driver *d, CUdeviceptr at, size_t have, size_t bytes)
{
    CUresult result = CUDA_SUCCESS;
    while (result == CUDA_SUCCESS && have < bytes) {
        const size_t more = have < bytes - have ? have : bytes - have;
        result = d->memory_copy(at + have, at, more);
        have += more;
    }
    if (result == CUDA_SUCCESS) result = d->stream_synchronize(NULL); /* a copy on the device returns early */
    return result;
}

/* Draws pattern `which` and fills a part of the inputs with it. A period of bytes: of s4 it is two of elements. */
static jg_status fill_part(bench_pool *pool, int which, jg_type type, size_t from, size_t to)
{
    const driver *d = pool->gpu->driver;
    const size_t period = (size_t)PERIOD * type_bytes(type), have = period < to - from ? period : to - from;
    float *pattern = pool->patterns[which];
    uint64_t state = 1;
    pool->types[which] = type;
    for (size_t i = 0; i < PERIOD; i++) pattern[i] = bench_element_draw(bench_random_uniform(&state), type);
    char *bytes = calloc(1, period);
    if (!bytes) return status_set(JG_ERR_NO_MEMORY, "out of memory for operands");
    for (size_t i = 0; i < period * 8 / type_bits(type); i++) bench_element_put(bytes, i, type, pattern[i % PERIOD]);
    CUresult result = have ? d->memory_copy(pool->in + from, (CUdeviceptr)(uintptr_t)bytes, have) : CUDA_SUCCESS;
    if (result == CUDA_SUCCESS) result = repeat(d, pool->in + from, have, to - from);
    free(bytes);
    return bench_gpu_failed(pool->gpu, result, "filling the operands");
}

static jg_status fill_inputs(bench_pool *pool, const bench_layout *l)
{
    const jg_type a = (jg_type)l->problem.type_a, b = (jg_type)l->problem.type_b;
    const size_t end = a == b ? pool->in_bytes : l->a_bytes * l->sets;
    if (pool->types[0] == a && pool->types[1] == b && pool->b_begins == end) return JG_OK;
    pool->types[0] = pool->types[1] = JG_DEFAULT_TYPE; /* until all of it is there */
    jg_status status = fill_part(pool, 0, a, 0, end);
    if (status == JG_OK && a != b) status = fill_part(pool, 1, b, end, pool->in_bytes);
    pool->types[0] = status == JG_OK ? a : JG_DEFAULT_TYPE;
    pool->types[1] = b;
    pool->b_begins = end;
    return status;
}

static jg_status fill_extras(bench_pool *pool, const bench_layout *l)
{
    if (l->extra_bytes == 0) return JG_OK;
    const driver *d = pool->gpu->driver;
    char *block = calloc(1, l->extra_bytes);
    if (!block) return status_set(JG_ERR_NO_MEMORY, "out of memory for operands");
    bench_extra_fill(l, block);
    CUresult result = d->memory_copy(pool->extra, (CUdeviceptr)(uintptr_t)block, l->extra_bytes);
    if (result == CUDA_SUCCESS) result = repeat(d, pool->extra, l->extra_bytes, bench_layout_extra_bytes(l));
    free(block);
    return bench_gpu_failed(pool->gpu, result, "filling what is fused in");
}

jg_status bench_pool_fill(bench_pool *pool, const bench_layout *l)
{
    RETURN_IF_ERROR(fill_inputs(pool, l));
    return fill_extras(pool, l);
}

/* ---- dealing out ---- */

static const void *extra_at(const bench_pool *pool, const bench_layout *l, size_t set, bench_extra_kind kind)
{
    const bench_extra *x = &l->extras[kind];
    return x->count ? (const void *)(uintptr_t)(pool->extra + set * l->extra_bytes + x->at) : NULL;
}

/* By the caller's M and N, which have changed places in the canonical problem if that is swapped. */
static void add_extras(const bench_pool *pool, const bench_layout *l, size_t set, jg_operands *data)
{
    const int swapped = l->problem.swapped;
    const jg_type c = (jg_type)l->problem.type_c;
    data->scale = extra_at(pool, l, set, BENCH_SCALE);
    data->scale_m = extra_at(pool, l, set, swapped ? BENCH_SCALE_N : BENCH_SCALE_M);
    data->scale_n = extra_at(pool, l, set, swapped ? BENCH_SCALE_M : BENCH_SCALE_N);
    data->bias_m = extra_at(pool, l, set, swapped ? BENCH_BIAS_N : BENCH_BIAS_M);
    data->bias_n = extra_at(pool, l, set, swapped ? BENCH_BIAS_M : BENCH_BIAS_N);
    data->residual = extra_at(pool, l, set, BENCH_RESIDUAL);
    data->group_scales = extra_at(pool, l, set, BENCH_GROUP_SCALES);
    data->group_zeros = extra_at(pool, l, set, BENCH_GROUP_ZEROS);
    data->clamp_low = (float)(-l->spread / 2);
    data->clamp_high = (float)l->spread;
    data->out_scale = 0.75f;
    data->out_zero = c == JG_U8 ? 64.0f : 3.0f;
}

jg_operands bench_pool_operands(const bench_pool *pool, const bench_layout *l, unsigned index, CUstream stream)
{
    const size_t set = index % l->sets;
    const CUdeviceptr a = pool->in + set * l->a_bytes + l->a_offset;
    const CUdeviceptr b = pool->in + l->sets * l->a_bytes + set * l->b_bytes + l->b_offset;
    const void *first = (const void *)(uintptr_t)a, *second = (const void *)(uintptr_t)b;
    jg_operands data = {.a = l->problem.swapped ? second : first, .b = l->problem.swapped ? first : second,
                        .c = (void *)(uintptr_t)(pool->out + set * l->c_bytes + l->c_offset), .stream = stream,
                        .alpha = l->alpha == 1 ? NULL : &l->alpha};
    if (problem_is_fused(&l->problem)) add_extras(pool, l, set, &data);
    return data;
}

jg_status bench_pool_poison(const bench_pool *pool, const bench_layout *l)
{
    return bench_gpu_failed(pool->gpu, pool->gpu->memory_set(pool->out, 0xFF, l->c_bytes), "cuMemsetD8");
}

void *bench_pool_take_c(const bench_pool *pool, const bench_layout *l)
{
    char *c = malloc(l->c_bytes);
    const driver *d = pool->gpu->driver;
    if (!c) {
        status_set(JG_ERR_NO_MEMORY, "out of memory for a result");
        return NULL;
    }
    const CUresult result = d->memory_copy((CUdeviceptr)(uintptr_t)c, pool->out, l->c_bytes);
    if (bench_gpu_failed(pool->gpu, result, "cuMemcpy") == JG_OK) {
        memmove(c, c + l->c_offset, l->c_bytes - l->c_offset);
        return c;
    }
    free(c);
    return NULL;
}
