/* Entry points of graphs: made executable, launched, asked for their nodes, destroyed. They need no current context, but for
 * the launch. */
#include "capture.h"

#define KNOWN_FLAGS (CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | 8u) /* the order of priorities, too: without effect */

static CUresult find_graph(handle_kind kind, const void *handle, gpu_graph **out)
{
    *out = state_find(kind, handle);
    if (*out) return CUDA_SUCCESS;
    return state_fail(CUDA_ERROR_INVALID_VALUE, kind == HANDLE_GRAPH ? "no such graph" : "no such executable graph");
}

static CUresult instantiate(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
    gpu_graph *from;
    CUresult result = state_need(exec);
    if (result == CUDA_SUCCESS) result = find_graph(HANDLE_GRAPH, graph, &from);
    if (result == CUDA_SUCCESS && flags & ~(unsigned long long)KNOWN_FLAGS)
        result = state_fail(CUDA_ERROR_INVALID_VALUE, "flags %#llx of an executable graph", flags);
    if (result != CUDA_SUCCESS) return result;
    const gpu_graph *made = graph_create(from->context, HANDLE_GRAPH_EXEC, from->nodes);
    if (!made) return CUDA_ERROR_OUT_OF_MEMORY;
    *exec = made->handle;
    return CUDA_SUCCESS;
}

static CUresult destroy(handle_kind kind, const void *handle)
{
    gpu_graph *g;
    const CUresult result = find_graph(kind, handle, &g);
    if (result == CUDA_SUCCESS) graph_destroy(g);
    return result;
}

/* In the order in which they were captured, which their dependencies allow. What a fault leaves undone stays undone; as
 * after cuLaunchKernel, the next call tells. */
static CUresult run_nodes(const gpu_graph *g)
{
    gpu_context *c = g->context;
    CUresult result = c->fault.code;
    size_t number = 1;
    launch_forget_counters();
    for (const gpu_node *n = g->nodes->first; n && result == CUDA_SUCCESS && c->fault.code == CUDA_SUCCESS; n = n->next, number++)
        result = n->type == CU_GRAPH_NODE_TYPE_KERNEL ? launch_kernel_node(n, number, c) : launch_copy_node(n);
    return result;
}

static CUresult launch_graph(CUgraphExec exec, CUstream stream)
{
    gpu_graph *g;
    gpu_object *captured;
    CUresult result = capture_use(stream, &captured);
    if (captured) {
        capture_invalidate(captured);
        return state_fail(CUDA_ERROR_NOT_SUPPORTED, "a software GPU does not capture the launch of a graph");
    }
    if (result == CUDA_SUCCESS) result = find_graph(HANDLE_GRAPH_EXEC, exec, &g);
    if (result == CUDA_SUCCESS && !state_stream_context(stream)) result = state_fail(CUDA_ERROR_INVALID_HANDLE, "no such stream");
    return result == CUDA_SUCCESS ? run_nodes(g) : result;
}

/* Fills the rest of the array with null. */
static void copy_nodes(const node_list *list, CUgraphNode *nodes, size_t *count)
{
    size_t done = 0;
    for (const gpu_node *n = list->first; nodes && n && done < *count; n = n->next) nodes[done++] = n->handle;
    for (size_t i = done; nodes && i < *count; i++) nodes[i] = NULL;
    *count = nodes ? done : list->count;
}

#pragma GCC visibility push(default)

CUresult CUDAAPI cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
    BEGIN(cuGraphInstantiateWithFlags);
    return state_end(instantiate(exec, graph, flags));
}

CUresult CUDAAPI cuGraphInstantiate_v2(CUgraphExec *exec, CUgraph graph, CUgraphNode *culprit, char *log, size_t log_bytes)
{
    BEGIN(cuGraphInstantiate_v2);
    if (culprit) *culprit = NULL;
    if (log && log_bytes) log[0] = 0;
    return state_end(instantiate(exec, graph, 0));
}

CUresult CUDAAPI cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
    BEGIN(cuGraphGetNodes);
    gpu_graph *g;
    CUresult result = state_need(count);
    if (result == CUDA_SUCCESS) result = find_graph(HANDLE_GRAPH, graph, &g);
    if (result == CUDA_SUCCESS) copy_nodes(g->nodes, nodes, count);
    return state_end(result);
}

CUresult CUDAAPI cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType *type)
{
    BEGIN(cuGraphNodeGetType);
    const gpu_node *n = state_find(HANDLE_NODE, node);
    if (!type) return state_end(state_need(type));
    if (!n) return state_end(state_fail(CUDA_ERROR_INVALID_VALUE, "no such node"));
    *type = n->type;
    return state_end(CUDA_SUCCESS);
}

CUresult CUDAAPI cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
    BEGIN(cuGraphLaunch);
    return state_end(launch_graph(exec, stream));
}

CUresult CUDAAPI cuGraphExecDestroy(CUgraphExec exec)
{
    BEGIN(cuGraphExecDestroy);
    return state_end(destroy(HANDLE_GRAPH_EXEC, exec));
}

CUresult CUDAAPI cuGraphDestroy(CUgraph graph)
{
    BEGIN(cuGraphDestroy);
    return state_end(destroy(HANDLE_GRAPH, graph));
}

#pragma GCC visibility pop
