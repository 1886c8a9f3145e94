/* The lives of graphs and of their nodes. */
#include "graph.h"

#include <stdlib.h>

node_list *nodes_create(void)
{
    node_list *list = calloc(1, sizeof *list);
    if (list) list->references = 1;
    return list;
}

static void free_node(gpu_node *n)
{
    state_remove_handle(n->handle);
    free(n->kernel.name);
    free(n->kernel.params);
    free(n);
}

void nodes_release(node_list *list)
{
    if (!list || --list->references) return;
    while (list->first) {
        gpu_node *n = list->first;
        list->first = n->next;
        free_node(n);
    }
    free(list);
}

gpu_node *nodes_add(node_list *list, CUgraphNodeType type)
{
    gpu_node *n = calloc(1, sizeof *n);
    if (n) n->handle = state_add_handle(HANDLE_NODE, n);
    if (!n || !n->handle) {
        free(n);
        return NULL;
    }
    n->type = type;
    if (list->last) list->last->next = n;
    else list->first = n;
    list->last = n;
    list->count++;
    return n;
}

gpu_graph *graph_create(gpu_context *c, handle_kind kind, node_list *nodes)
{
    gpu_graph *g = calloc(1, sizeof *g);
    if (g) g->handle = state_add_handle(kind, g);
    if (!g || !g->handle) {
        free(g);
        return NULL;
    }
    g->context = c;
    g->kind = kind;
    g->nodes = nodes;
    nodes->references++;
    g->next = c->graphs;
    c->graphs = g;
    return g;
}

/* The nodes' handles are the graph's, though an executable graph may still need the nodes. */
void graph_destroy(gpu_graph *g)
{
    gpu_graph **at = &g->context->graphs;
    while (*at != g) at = &(*at)->next;
    *at = g->next;
    for (const gpu_node *n = g->kind == HANDLE_GRAPH ? g->nodes->first : NULL; n; n = n->next) state_remove_handle(n->handle);
    state_remove_handle(g->handle);
    nodes_release(g->nodes);
    free(g);
}
