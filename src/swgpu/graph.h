/* Graphs: what a stream capture recorded, as a list of nodes that cuGraphLaunch runs one after the other.
 *
 * A list is written while its capture goes on, and never changes afterwards; a graph and the executable graphs made from it
 * share it. All under the state's lock. */
#ifndef SWGPU_GRAPH_H
#define SWGPU_GRAPH_H

#include "state.h"

#define NODE_NAME_BYTES 32

/* What the host said of a launch (swgpu.h). */
typedef struct launch_description {
    operand_region regions[MAX_REGIONS];
    unsigned count;
    uint64_t multiply_adds;
} launch_description;

/* A launch with copies of all it was given. The function is a handle, since its module may be unloaded before the graph is
 * launched; then the name says which it was. */
typedef struct kernel_node {
    CUfunction function;
    char *name;
    uint32_t grid[3], threads[3], dynamic_shared_bytes;
    uint8_t *params;
    launch_description description; /* its regions' names are these: */
    char names[MAX_REGIONS][NODE_NAME_BYTES];
} kernel_node;

typedef struct gpu_node {
    CUgraphNode handle;
    CUgraphNodeType type; /* CU_GRAPH_NODE_TYPE_KERNEL or _MEMCPY */
    kernel_node kernel;
    uint64_t to, from, bytes; /* of a copy */
    struct gpu_node *next;
} gpu_node;

typedef struct node_list {
    unsigned references;
    gpu_node *first, *last;
    size_t count;
} node_list;

/* A graph, or an executable graph. It belongs to the context of the streams that it was captured in. */
typedef struct gpu_graph {
    gpu_context *context;
    handle_kind kind; /* HANDLE_GRAPH or HANDLE_GRAPH_EXEC */
    void *handle;
    node_list *nodes;
    struct gpu_graph *next;
} gpu_graph;

/* An empty list with one reference, or null. The last reference takes the nodes and their handles away. */
node_list *nodes_create(void);
void nodes_release(node_list *list);

/* A node at the end, zeroed but for its type and handle; null if out of memory. */
gpu_node *nodes_add(node_list *list, CUgraphNodeType type);

/* Of the context, with a reference of its own to the list; null if out of memory. */
gpu_graph *graph_create(gpu_context *c, handle_kind kind, node_list *nodes);
void graph_destroy(gpu_graph *g);

/* ---- what nodes do: entry_launch.c, entry_memory.c ---- */

/* number: the node's, from 1; for messages. A fault is the context's, as after cuLaunchKernel; but for a kernel that was
 * unloaded, which is returned too. */
CUresult launch_kernel_node(const gpu_node *n, size_t number, gpu_context *c);
CUresult launch_copy_node(const gpu_node *n);

/* The calling thread's counters (swgpuCounters) start at 0. */
void launch_forget_counters(void);

#endif
