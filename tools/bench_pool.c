/* Random operands and checked results: see bench_pool.h. */
#include "bench_pool.h"

#include "half.h"
#include "status.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PERIOD = 1048573, CHECKED = 64, DISPUTED = 1000 };
#define ALIGNMENT 256

/* ---- layout ---- */

static size_t matrix_bytes(int64_t rows, int64_t columns, int64_t ld, int64_t batch, int64_t stride, jg_type type)
{
    if (rows == 0 || columns == 0) return 0;
    const int64_t elements = (batch - 1) * stride + (rows - 1) * ld + columns;
    return ((size_t)elements * type_bytes(type) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

jg_status bench_layout_make(const jg_problem *p, size_t rotated_bytes, unsigned most_sets, bench_layout *out)
{
    problem c;
    RETURN_IF_ERROR(problem_canonicalise(p, &c));
    if (problem_is_empty(&c)) return status_set(JG_ERR_SIZE, "there is nothing to compute");
    const int a_transposed = c.op_a == JG_T, b_transposed = c.op_b == JG_T;
    const int64_t a_rows = a_transposed ? c.k : c.m, b_rows = b_transposed ? c.n : c.k;
    *out = (bench_layout){
        .problem = c,
        .a_bytes = matrix_bytes(a_rows, a_transposed ? c.m : c.k, c.lda, c.batch, c.stride_a, (jg_type)c.type_a),
        .b_bytes = matrix_bytes(b_rows, b_transposed ? c.k : c.n, c.ldb, c.batch, c.stride_b, (jg_type)c.type_b),
        .c_bytes = matrix_bytes(c.m, c.n, c.ldc, c.batch, c.stride_c, (jg_type)c.type_c),
        .sets = 1,
    };
    const size_t set = out->a_bytes + out->b_bytes + out->c_bytes;
    const size_t sets = (rotated_bytes + set - 1) / set;
    if (sets > 1) out->sets = sets < most_sets ? (unsigned)sets : most_sets;
    return JG_OK;
}

size_t bench_layout_in_bytes(const bench_layout *l)
{
    return (l->a_bytes + l->b_bytes) * l->sets;
}

size_t bench_layout_out_bytes(const bench_layout *l)
{
    return l->c_bytes * l->sets;
}

double bench_layout_flops(const bench_layout *l)
{
    const problem *p = &l->problem;
    return 2.0 * (double)p->m * (double)p->n * (double)p->k * (double)p->batch;
}

double bench_layout_bytes(const bench_layout *l)
{
    const problem *p = &l->problem;
    double a = (double)p->m * (double)p->k, b = (double)p->k * (double)p->n;
    if (p->stride_a) a *= (double)p->batch;
    if (p->stride_b) b *= (double)p->batch;
    return (a + b) * (double)type_bytes((jg_type)p->type_a) +
           (double)p->m * (double)p->n * (double)p->batch * (double)type_bytes((jg_type)p->type_c);
}

/* ---- values ---- */

static float rounded(float value, jg_type type)
{
    if (type == JG_F16) return half_f16_to_f32(half_f32_to_f16(value));
    if (type == JG_BF16) return half_bf16_to_f32(half_f32_to_bf16(value));
    return value;
}

static float element(const void *data, size_t index, jg_type type)
{
    if (type == JG_F16) return half_f16_to_f32(((const uint16_t *)data)[index]);
    if (type == JG_BF16) return half_bf16_to_f32(((const uint16_t *)data)[index]);
    return ((const float *)data)[index];
}

/* Half the distance of neighbours of `value` in a type, or more. */
static double rounding(double value, jg_type type)
{
    const double relative = type == JG_F16 ? 0x1p-11 : type == JG_BF16 ? 0x1p-8 : 0x1p-24;
    return fabs(value) * relative + (type == JG_F16 ? 0x1p-25 : 0);
}

/* The host's copy of the pattern, as bytes of a type. */
static void *pattern_bytes(const bench_pool *pool, jg_type type)
{
    char *bytes = malloc(PERIOD * type_bytes(type));
    for (size_t i = 0; bytes && i < PERIOD; i++) {
        const float value = pool->pattern[i];
        if (type == JG_F32) ((float *)(void *)bytes)[i] = value;
        else ((uint16_t *)(void *)bytes)[i] = type == JG_F16 ? half_f32_to_f16(value) : half_f32_to_bf16(value);
    }
    return bytes;
}

/* splitmix64 (G. Steele, D. Lea, C. Flood, 2014): any start gives a good series. */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

static void draw_pattern(bench_pool *pool, jg_type type)
{
    uint64_t state = 1;
    for (size_t i = 0; i < PERIOD; i++)
        pool->pattern[i] = rounded((float)(int32_t)(next_random(&state) >> 40) * 0x1p-23f - 1.0f, type);
}

/* ---- the pool ---- */

jg_status bench_pool_open(const bench_gpu *gpu, size_t in_bytes, size_t out_bytes, bench_pool *pool)
{
    *pool = (bench_pool){.gpu = gpu, .in_bytes = in_bytes, .out_bytes = out_bytes};
    pool->pattern = malloc(PERIOD * sizeof *pool->pattern);
    if (!pool->pattern) return status_set(JG_ERR_NO_MEMORY, "out of memory for operands");
    RETURN_IF_ERROR(bench_gpu_failed(gpu, gpu->driver->memory_allocate(&pool->in, in_bytes ? in_bytes : 1), "cuMemAlloc"));
    return bench_gpu_failed(gpu, gpu->driver->memory_allocate(&pool->out, out_bytes), "cuMemAlloc");
}

void bench_pool_close(bench_pool *pool)
{
    if (pool->in) pool->gpu->driver->memory_free(pool->in);
    if (pool->out) pool->gpu->driver->memory_free(pool->out);
    free(pool->pattern);
    *pool = (bench_pool){0};
}

jg_status bench_pool_fill(bench_pool *pool, jg_type type)
{
    if (pool->type == type) return JG_OK;
    const driver *d = pool->gpu->driver;
    draw_pattern(pool, type);
    void *bytes = pattern_bytes(pool, type);
    if (!bytes) return status_set(JG_ERR_NO_MEMORY, "out of memory for operands");
    const size_t period = PERIOD * type_bytes(type);
    size_t done = period < pool->in_bytes ? period : pool->in_bytes;
    CUresult result = done ? d->memory_copy(pool->in, (CUdeviceptr)(uintptr_t)bytes, done) : CUDA_SUCCESS;
    while (result == CUDA_SUCCESS && done < pool->in_bytes) {
        const size_t more = done < pool->in_bytes - done ? done : pool->in_bytes - done;
        result = d->memory_copy(pool->in + done, pool->in, more);
        done += more;
    }
    if (result == CUDA_SUCCESS) result = d->stream_synchronize(NULL); /* a copy on the device returns early */
    free(bytes);
    pool->type = result == CUDA_SUCCESS ? type : JG_DEFAULT_TYPE;
    return bench_gpu_failed(pool->gpu, result, "filling the operands");
}

jg_operands bench_pool_operands(const bench_pool *pool, const bench_layout *l, unsigned index, CUstream stream)
{
    const size_t set = index % l->sets;
    const CUdeviceptr a = pool->in + set * (l->a_bytes + l->b_bytes), b = a + l->a_bytes;
    const void *first = (const void *)(uintptr_t)a, *second = (const void *)(uintptr_t)b;
    return (jg_operands){.a = l->problem.swapped ? second : first, .b = l->problem.swapped ? first : second,
                         .c = (void *)(uintptr_t)(pool->out + set * l->c_bytes), .stream = stream};
}

jg_status bench_pool_poison(const bench_pool *pool, const bench_layout *l)
{
    return bench_gpu_failed(pool->gpu, pool->gpu->memory_set(pool->out, 0xFF, l->c_bytes), "cuMemsetD8");
}

void *bench_pool_take_c(const bench_pool *pool, const bench_layout *l)
{
    void *c = malloc(l->c_bytes);
    const driver *d = pool->gpu->driver;
    if (!c) {
        status_set(JG_ERR_NO_MEMORY, "out of memory for a result");
        return NULL;
    }
    const CUresult result = d->memory_copy((CUdeviceptr)(uintptr_t)c, pool->out, l->c_bytes);
    if (bench_gpu_failed(pool->gpu, result, "cuMemcpy") == JG_OK) return c;
    free(c);
    return NULL;
}

/* ---- checks ---- */

/* Element (i, j) of C of one item, in double, and the sum of the products' absolute values. */
static double reference(const bench_pool *pool, const bench_layout *l, int64_t item, int64_t i, int64_t j, double *absolute)
{
    const problem *p = &l->problem;
    const size_t b_first = l->a_bytes / type_bytes((jg_type)p->type_a);
    double sum = 0;
    *absolute = 0;
    for (int64_t x = 0; x < p->k; x++) {
        const int64_t at_a = item * p->stride_a + (p->op_a == JG_T ? x * p->lda + i : i * p->lda + x);
        const int64_t at_b = item * p->stride_b + (p->op_b == JG_T ? j * p->ldb + x : x * p->ldb + j);
        const double a = (double)pool->pattern[(size_t)at_a % PERIOD];
        const double product = a * (double)pool->pattern[(b_first + (size_t)at_b) % PERIOD];
        sum += product;
        *absolute += fabs(product);
    }
    return sum;
}

/* An error over what is allowed; a NaN is infinitely wrong. */
static double part_of(double error, double allowed)
{
    const double part = error / allowed;
    return part >= 0 ? part : INFINITY;
}

/* The error of one element of C, over what is allowed. */
static double error_at(const bench_pool *pool, const bench_layout *l, const void *c, int64_t item, int64_t i, int64_t j)
{
    const problem *p = &l->problem;
    const double steps = (p->k > 8 ? (double)p->k : 8) * 0x1p-23;
    double absolute;
    const double right = reference(pool, l, item, i, j, &absolute);
    const double got = (double)element(c, (size_t)(item * p->stride_c + i * p->ldc + j), (jg_type)p->type_c);
    return part_of(fabs(got - right), steps * absolute + rounding(right, (jg_type)p->type_c) + 0x1p-126);
}

double bench_pool_check(const bench_pool *pool, const bench_layout *l, const void *c)
{
    const problem *p = &l->problem;
    uint64_t state = 2;
    double worst = 0;
    for (int s = 0; s < CHECKED; s++) {
        const uint64_t x = next_random(&state), y = next_random(&state), z = next_random(&state);
        const int64_t i = s < 4 ? (s & 1) * (p->m - 1) : (int64_t)(x % (uint64_t)p->m);
        const int64_t j = s < 4 ? (s >> 1) * (p->n - 1) : (int64_t)(y % (uint64_t)p->n);
        const int64_t item = s < 4 ? p->batch - 1 : (int64_t)(z % (uint64_t)p->batch);
        const double part = error_at(pool, l, c, item, i, j);
        if (part > worst) worst = part;
    }
    return worst;
}

double bench_pool_compare(const bench_pool *pool, const bench_layout *l, const void *c, const void *other, double *own)
{
    const problem *p = &l->problem;
    const jg_type type = (jg_type)p->type_c;
    const double allowed = (double)(p->k > 0 ? p->k : 1) * 0x1p-20;
    double worst = 0;
    int looked_at = 0;
    for (int64_t item = 0; item < p->batch; item++)
        for (int64_t i = 0; i < p->m; i++)
            for (int64_t j = 0; j < p->n; j++) {
                const size_t at = (size_t)(item * p->stride_c + i * p->ldc + j);
                const double x = (double)element(c, at, type), y = (double)element(other, at, type);
                const double part = part_of(fabs(x - y), allowed + 4 * rounding(x, type));
                if (part > worst) worst = part;
                if (part <= 1 || looked_at++ >= DISPUTED) continue;
                const double ours = error_at(pool, l, c, item, i, j);
                if (ours > *own) *own = ours;
            }
    return worst;
}
