/* Faults: what a check found, where, and what the driver says of it. */
#include "exec.h"

#include <stdarg.h>
#include <stdio.h>

static const struct {
    const char *name;
    CUresult code;
} kinds[FAULT_KINDS] = {
    [FAULT_NONE] = {"none", CUDA_SUCCESS},
    [FAULT_OUT_OF_BOUNDS] = {"out of bounds", CUDA_ERROR_ILLEGAL_ADDRESS},
    [FAULT_USE_AFTER_FREE] = {"use after free", CUDA_ERROR_ILLEGAL_ADDRESS},
    [FAULT_MISALIGNED] = {"misaligned", CUDA_ERROR_MISALIGNED_ADDRESS},
    [FAULT_UNINITIALISED] = {"uninitialised", CUDA_ERROR_LAUNCH_FAILED},
    [FAULT_RACE] = {"race", CUDA_ERROR_LAUNCH_FAILED},
    [FAULT_ASYNC_NOT_WAITED] = {"cp.async not waited for", CUDA_ERROR_LAUNCH_FAILED},
    [FAULT_OUTSIDE_OPERAND] = {"outside the operands", CUDA_ERROR_LAUNCH_FAILED},
    [FAULT_BARRIER] = {"divergent barrier", CUDA_ERROR_LAUNCH_FAILED},
    [FAULT_LANES] = {"divergent lanes", CUDA_ERROR_LAUNCH_FAILED},
    [FAULT_TRAP] = {"trap", CUDA_ERROR_ILLEGAL_INSTRUCTION},
    [FAULT_TIMEOUT] = {"timeout", CUDA_ERROR_LAUNCH_TIMEOUT},
    [FAULT_MEMORY] = {"out of host memory", CUDA_ERROR_OUT_OF_MEMORY},
    [FAULT_UNLOADED] = {"use after unload", CUDA_ERROR_ILLEGAL_ADDRESS},
    [FAULT_LEAK] = {"leak", CUDA_SUCCESS},
};

const char *fault_kind_name(fault_kind kind)
{
    return (unsigned)kind < FAULT_KINDS ? kinds[kind].name : "unknown";
}

CUresult fault_code(fault_kind kind)
{
    return (unsigned)kind < FAULT_KINDS ? kinds[kind].code : CUDA_ERROR_UNKNOWN;
}

void thread_of_lane(const warp *w, unsigned lane, uint32_t thread[3])
{
    const uint32_t *size = w->block->launch->threads;
    const uint32_t linear = w->index * PTX_LANES + lane;
    thread[0] = linear % size[0];
    thread[1] = linear / size[0] % size[1];
    thread[2] = linear / size[0] / size[1];
}

/* Whether this fault is the first of its launch, which is the one that is kept. */
static int is_first(launch *l)
{
    return atomic_exchange(&l->stop, 1) == 0;
}

int fault_raise(warp *w, const ptx_instruction *i, unsigned lane, fault_kind kind, const char *format, ...)
{
    launch *l = w->block->launch;
    if (!is_first(l)) return 1;
    char what[512], where[256] = "";
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    if (l->module && i->location && i->location < l->module->location_count) {
        const ptx_location *at = &l->module->locations[i->location];
        if (at->file < l->module->file_count) snprintf(where, sizeof where, ", %s:%u", l->module->files[at->file], at->line);
    }
    uint32_t t[3];
    thread_of_lane(w, lane, t);
    const uint32_t *b = w->block->index;
    l->fault->kind = kind;
    l->fault->code = fault_code(kind);
    snprintf(l->fault->text, sizeof l->fault->text, "%s: %s; kernel %s, block (%u, %u, %u), thread (%u, %u, %u), PTX line %u%s",
             kinds[kind].name, what, l->kernel->name, b[0], b[1], b[2], t[0], t[1], t[2], i->line, where);
    return 1;
}

void fault_set(launch *l, fault_kind kind, const char *format, ...)
{
    if (!is_first(l)) return;
    va_list args;
    va_start(args, format);
    int length = snprintf(l->fault->text, sizeof l->fault->text, "%s: ", kinds[kind].name);
    vsnprintf(l->fault->text + length, sizeof l->fault->text - (size_t)length, format, args);
    va_end(args);
    l->fault->kind = kind;
    l->fault->code = fault_code(kind);
}
