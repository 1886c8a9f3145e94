/* cuLaunchKernel and what belongs to it: the limits that a GPU checks before it starts, the parameters, the operands that
 * the host described, and the counters afterwards. In a stream that is captured a launch becomes a node, which is launched
 * from here too. */
#include "capture.h"
#include "findings.h"
#include "sample.h"
#include "state.h"
#include "swgpu.h"

#include <stdio.h>
#include <stdlib.h>

#define MEMBER(name) VALUE_##name,
enum { SWGPU_COUNTERS(MEMBER) VALUE_COUNT };
#undef MEMBER

static _Thread_local launch_description next_launch; /* what the thread said of it */
static _Thread_local uint64_t last_values[VALUE_COUNT];

/* ---- what a GPU refuses ---- */

static CUresult check_dimensions(const char *what, const uint32_t size[3], const uint32_t most[3])
{
    for (int i = 0; i < 3; i++)
        if (size[i] < 1 || size[i] > most[i])
            return state_fail(CUDA_ERROR_INVALID_VALUE, "a %s of %u x %u x %u; each is at least 1, and at most %u x %u x %u",
                              what, size[0], size[1], size[2], most[0], most[1], most[2]);
    return CUDA_SUCCESS;
}

static CUresult check_threads(const gpu_function *f, const uint32_t size[3])
{
    const ptx_kernel *k = f->kernel;
    const uint32_t threads = size[0] * size[1] * size[2]; /* each is at most 1024 */
    if (threads > MODELS_MAX_THREADS)
        return state_fail(CUDA_ERROR_INVALID_VALUE, "a block of %u threads; %d is the most", threads, MODELS_MAX_THREADS);
    if (k->required[0] && (size[0] != k->required[0] || size[1] != k->required[1] || size[2] != k->required[2]))
        return state_fail(CUDA_ERROR_INVALID_VALUE, "a block of %u x %u x %u; kernel %s requires %u x %u x %u", size[0], size[1],
                          size[2], k->name, k->required[0], k->required[1], k->required[2]);
    if (k->max_threads && threads > k->max_threads)
        return state_fail(CUDA_ERROR_INVALID_VALUE, "a block of %u threads; kernel %s is bound to %u", threads, k->name,
                          k->max_threads);
    const int64_t registers = (int64_t)models_warp_registers(f->registers) * ((threads + 31) / 32);
    if (registers > gpu.settings.model->limits->registers)
        return state_fail(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "%lld registers for a block of %u threads; %d is the most",
                          (long long)registers, threads, gpu.settings.model->limits->registers);
    return CUDA_SUCCESS;
}

static CUresult check_launch(const gpu_function *f, const launch *l)
{
    static const uint32_t most_blocks[3] = {INT32_MAX, 65535, 65535}, most_threads[3] = {1024, 1024, 64};
    CUresult result = check_dimensions("grid", l->grid, most_blocks);
    if (result == CUDA_SUCCESS) result = check_dimensions("block", l->threads, most_threads);
    if (result == CUDA_SUCCESS) result = check_threads(f, l->threads);
    if (result != CUDA_SUCCESS) return result;
    if (l->dynamic_shared_bytes > (uint32_t)f->max_dynamic)
        return state_fail(CUDA_ERROR_INVALID_VALUE, "%u bytes of dynamic shared memory; kernel %s is allowed %d "
                          "(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)", l->dynamic_shared_bytes, f->kernel->name,
                          f->max_dynamic);
    return CUDA_SUCCESS;
}

/* ---- parameters ---- */

/* The buffer that `extra` describes, or null. */
static const void *packed_parameters(void **extra, size_t *bytes)
{
    const void *buffer = NULL;
    *bytes = 0;
    for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
        if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER) buffer = extra[1];
        else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE && extra[1]) *bytes = *(const size_t *)extra[1];
        else return NULL;
    }
    return buffer;
}

static CUresult copy_parameters(const ptx_kernel *k, void **separate, void **extra, uint8_t *to)
{
    if (separate && extra) return state_fail(CUDA_ERROR_INVALID_VALUE, "kernelParams and extra are both given");
    if (!k->param_count) return CUDA_SUCCESS;
    if (extra) {
        size_t bytes;
        const void *buffer = packed_parameters(extra, &bytes);
        if (!buffer || bytes < k->param_bytes)
            return state_fail(CUDA_ERROR_INVALID_VALUE, "extra holds %zu bytes of parameters; kernel %s takes %u", bytes, k->name,
                              k->param_bytes);
        if (bytes > k->param_bytes)
            return state_fail(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "extra holds %zu bytes of parameters; kernel %s takes %u",
                              bytes, k->name, k->param_bytes);
        memcpy(to, buffer, k->param_bytes);
        return CUDA_SUCCESS;
    }
    for (uint32_t i = 0; i < k->param_count; i++) {
        if (!separate || !separate[i])
            return state_fail(CUDA_ERROR_INVALID_VALUE, "kernel %s takes %u parameters; number %u is null", k->name,
                              k->param_count, i);
        memcpy(to + k->params[i].offset, separate[i], k->params[i].bytes);
    }
    return CUDA_SUCCESS;
}

/* ---- the launch itself ---- */

void launch_forget_counters(void)
{
    memset(last_values, 0, sizeof last_values);
}

/* A graph's kernels add up. */
static void note_counters(const launch *l)
{
    const counters *t = &l->total;
    uint64_t *v = last_values;
    v[VALUE_blocks] += (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
    v[VALUE_blocks_run] += l->blocks_run;
    if (!l->count) return;
    for (int i = 0; i < COUNTER_CLASS_COUNT; i++) {
        v[VALUE_instructions] += t->instructions[i];
        v[VALUE_arithmetic + i] += t->instructions[i]; /* both lists are in this order */
    }
#define NOTE(name) v[VALUE_##name] += t->name
    NOTE(global_load_requests), NOTE(global_load_sectors), NOTE(global_store_requests), NOTE(global_store_sectors);
    NOTE(shared_load_requests), NOTE(shared_load_cycles), NOTE(shared_load_conflicts);
    NOTE(shared_store_requests), NOTE(shared_store_cycles), NOTE(shared_store_conflicts);
    NOTE(barriers), NOTE(divergent_branches);
#undef NOTE
}

_Static_assert(VALUE_arithmetic + COUNTER_CLASS_COUNT == VALUE_global_load_requests, "a value for each class of instructions");

/* Of a launch that ran some of its blocks: who asked for that knows that the outputs are incomplete, so that reading them
 * is no mistake. */
static void mark_outputs(const launch *l)
{
    for (uint32_t n = 0; n < l->region_count; n++) {
        const operand_region *g = &l->regions[n];
        for (uint64_t item = 0; g->writable && item < g->items; item++)
            for (uint64_t row = 0; row < g->rows; row++)
                memory_mark_written(l->memory, g->base + item * g->item_step + row * g->row_step, g->row_bytes);
    }
}

static CUresult run(launch *l, gpu_context *c, uint64_t multiply_adds)
{
    const settings *s = &gpu.settings;
    const uint64_t all = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
    uint64_t *list = NULL, blocks = all;
    if (s->blocks && s->blocks < all && multiply_adds > SETTINGS_SMALL_LAUNCH) {
        blocks = s->blocks;
        list = malloc(blocks * sizeof *list);
        if (!list) return CUDA_ERROR_OUT_OF_MEMORY;
        sample_blocks(l->grid, blocks, list);
    }
    fault found = {.kind = FAULT_NONE};
    l->fault = &found;
    launch_run(l, list, blocks, s->threads);
    if (list) mark_outputs(l);
    free(list);
    note_counters(l);
    if (found.kind == FAULT_NONE) return CUDA_SUCCESS;
    if (found.code == CUDA_ERROR_OUT_OF_MEMORY) {
        findings_add(found.text, s->report);
        return state_fail_whole(found.code, found.text);
    }
    state_fault(c, &found);
    return CUDA_SUCCESS; /* as on a GPU, the next call tells */
}

static CUresult run_kernel(launch *l, const gpu_function *f, const uint8_t *params, const launch_description *d)
{
    l->module = f->module->ptx;
    l->kernel = f->kernel;
    l->memory = f->module->context->memory;
    l->block_threads = l->threads[0] * l->threads[1] * l->threads[2];
    l->shared_bytes = (uint32_t)f->kernel->shared_bytes + l->dynamic_shared_bytes;
    l->params = params;
    l->variable_addresses = f->module->addresses;
    l->checks = gpu.settings.checks;
    l->count = gpu.settings.counters;
    l->sm_count = (uint32_t)gpu.settings.model->sm_count;
    l->capability = (uint32_t)gpu.settings.model->limits->number;
    /* No warp needs more instructions than the whole has multiply-adds, and the usual for the rest. */
    l->instruction_limit = INSTRUCTION_LIMIT + d->multiply_adds;
    if (l->checks & CHECK_OPERANDS) {
        memcpy(l->regions, d->regions, sizeof l->regions);
        l->region_count = d->count;
    }
    return run(l, f->module->context, d->multiply_adds);
}

/* Takes the parameters if it succeeds. */
static CUresult record_kernel(gpu_object *stream, CUfunction function, const launch *l, const char *name, uint8_t *params,
                              const launch_description *d)
{
    gpu_node *n = capture_add(stream, CU_GRAPH_NODE_TYPE_KERNEL);
    kernel_node *k = n ? &n->kernel : NULL;
    if (k) k->name = strdup(name);
    if (!k || !k->name) return CUDA_ERROR_OUT_OF_MEMORY;
    k->function = function;
    memcpy(k->grid, l->grid, sizeof k->grid);
    memcpy(k->threads, l->threads, sizeof k->threads);
    k->dynamic_shared_bytes = l->dynamic_shared_bytes;
    k->params = params;
    k->description = *d;
    for (unsigned i = 0; i < d->count; i++) {
        snprintf(k->names[i], sizeof k->names[i], "%s", d->regions[i].name);
        k->description.regions[i].name = k->names[i];
    }
    return CUDA_SUCCESS;
}

CUresult launch_kernel_node(const gpu_node *n, size_t number, gpu_context *c)
{
    const kernel_node *k = &n->kernel;
    const gpu_function *f = state_find(HANDLE_FUNCTION, k->function);
    if (!f) {
        fault gone = {.kind = FAULT_UNLOADED, .code = fault_code(FAULT_UNLOADED)};
        snprintf(gone.text, sizeof gone.text, "%s: node %zu of a graph launches kernel %.400s, whose module was unloaded after "
                 "that launch was captured", fault_kind_name(FAULT_UNLOADED), number, k->name);
        state_fault(c, &gone);
        return gone.code;
    }
    launch l = {.dynamic_shared_bytes = k->dynamic_shared_bytes};
    memcpy(l.grid, k->grid, sizeof l.grid);
    memcpy(l.threads, k->threads, sizeof l.threads);
    const CUresult result = check_launch(f, &l);
    return result == CUDA_SUCCESS ? run_kernel(&l, f, k->params, &k->description) : result;
}

static CUresult check_handles(const gpu_function *f, const gpu_context *c)
{
    if (!f || !c) return state_fail(CUDA_ERROR_INVALID_HANDLE, f ? "no such stream" : "no such function");
    if (f->module->context != c) return state_fail(CUDA_ERROR_INVALID_HANDLE, "the function belongs to another context");
    return c->fault.code;
}

static CUresult start(launch *l, CUfunction function, CUstream stream, void **separate, void **extra, const launch_description *d)
{
    const gpu_function *f = state_find(HANDLE_FUNCTION, function);
    uint8_t *params = NULL;
    gpu_object *captured;
    CUresult result = capture_use(stream, &captured);
    if (result == CUDA_SUCCESS) result = check_handles(f, state_stream_context(stream));
    if (result == CUDA_SUCCESS) result = check_launch(f, l);
    if (result == CUDA_SUCCESS) {
        params = calloc(f->kernel->param_bytes + 16u, 1);
        result = params ? copy_parameters(f->kernel, separate, extra, params) : CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (captured) {
        if (result == CUDA_SUCCESS) result = record_kernel(captured, function, l, f->kernel->name, params, d);
        if (result == CUDA_SUCCESS) return result;
        capture_invalidate(captured);
    } else if (result == CUDA_SUCCESS) {
        launch_forget_counters();
        result = run_kernel(l, f, params, d);
    }
    free(params);
    return result;
}

#pragma GCC visibility push(default)

CUresult CUDAAPI cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                                unsigned block_y, unsigned block_z, unsigned shared, CUstream stream, void **separate,
                                void **extra)
{
    const launch_description d = next_launch;
    memset(&next_launch, 0, sizeof next_launch);
    BEGIN(cuLaunchKernel);
    launch l = {.grid = {grid_x, grid_y, grid_z}, .threads = {block_x, block_y, block_z}, .dynamic_shared_bytes = shared};
    return state_end(start(&l, function, stream, separate, extra, &d));
}

int swgpuDescribeLaunch(const swgpu_operand *operands, unsigned count, uint64_t multiply_adds)
{
    launch_description d = {.count = count, .multiply_adds = multiply_adds};
    memset(&next_launch, 0, sizeof next_launch);
    if (count > MAX_REGIONS || (count && !operands)) return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++) {
        const swgpu_operand *o = &operands[i];
        if (!o->name || !o->items || o->writable < 0 || o->writable > SWGPU_WRITABLE_APART) return CUDA_ERROR_INVALID_VALUE;
        d.regions[i] = (operand_region){o->name, o->base, o->row_bytes, o->row_step_bytes, o->rows, o->items, o->item_step_bytes,
                                        (uint8_t)o->writable};
    }
    next_launch = d;
    return CUDA_SUCCESS;
}

unsigned swgpuCounters(uint64_t *values, unsigned count)
{
    for (unsigned i = 0; values && i < count && i < VALUE_COUNT; i++) values[i] = last_values[i];
    return VALUE_COUNT;
}

#pragma GCC visibility pop
