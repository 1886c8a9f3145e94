/* An arena for races on the software GPU, whose times are made up: each kernel has its own. */
#ifndef JG_TESTS_RACE_FIXTURE_H
#define JG_TESTS_RACE_FIXTURE_H

#include "contest_fixture.h"

#include "context.h"

/* What a call of each kernel takes, in us, and what is wrong with it. Kernels are numbered as they are first launched: the planner's
 * choice, then the candidates in order. */
enum { KERNELS_MAX = 32 };
static struct {
    double us[KERNELS_MAX];
    int refuses, spoils;     /* numbers; -1: none */
    int stops_at;            /* the device is lost with its launch */
    CUfunction functions[KERNELS_MAX];
    size_t count, last;
    size_t graphs[KERNELS_MAX], calls[KERNELS_MAX]; /* recorded; in the last graph */
    CUresult (*launch)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void **, void **);
} field;

static CUresult CUDAAPI launch(CUfunction function, unsigned x, unsigned y, unsigned z, unsigned tx, unsigned ty, unsigned tz,
                               unsigned shared, CUstream stream, void **parameters, void **extra)
{
    size_t i = 0;
    while (i < field.count && field.functions[i] != function) i++;
    if (i == field.count && field.count < KERNELS_MAX) field.functions[field.count++] = function;
    field.last = i;
    if ((int)i == field.refuses) return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    if ((int)i == field.stops_at) return CUDA_ERROR_ILLEGAL_ADDRESS;
    const CUresult result = field.launch(function, x, y, z, tx, ty, tz, shared, stream, parameters, extra);
    if ((int)i == field.spoils && !is_captured()) gpu.memory_set(arena.pool.out, 0x3f, 1);
    return result;
}

static CUresult CUDAAPI instantiate_by_kernel(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
    size_t nodes = 0;
    const CUresult result = gpu.graph_instantiate(exec, graph, flags);
    if (result != CUDA_SUCCESS || times.nodes(graph, NULL, &nodes) != CUDA_SUCCESS) return result;
    const size_t i = times.count++ % COUNT(times.graphs);
    times.graphs[i].exec = *exec;
    times.graphs[i].us_of_call = (int)field.last;
    times.graphs[i].us = field.us[field.last] * (double)nodes;
    field.graphs[field.last]++;
    field.calls[field.last] = nodes;
    return result;
}

/* Before each race: every kernel takes 20 us, and none does wrong. */
static inline void reset_field(void)
{
    memset(field.functions, 0, sizeof field.functions);
    memset(field.graphs, 0, sizeof field.graphs);
    memset(field.calls, 0, sizeof field.calls);
    field.count = 0;
    field.refuses = field.spoils = field.stops_at = -1;
    for (int i = 0; i < KERNELS_MAX; i++) field.us[i] = 20;
    arena.sample_us = 500;
    hooked.graph_instantiate = instantiate_by_kernel;
    hooked.software = 0;
    if (!field.launch) field.launch = arena.context->device.driver->launch;
    arena.context->device.driver->launch = launch;
}

#endif
