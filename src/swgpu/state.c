/* The lock, the handles, the threads' stacks, and error texts. See state.h. */
#include "state.h"

#include "capture.h"
#include "errors.h"
#include "findings.h"
#include "inject.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_DEPTH 64

/* No pointer looks like this, so a handle that a program follows faults at once. */
#define FIRST_HANDLE 0x5700000000000010ull
#define HANDLE_STEP 16

typedef struct handle {
    uint64_t value;
    handle_kind kind;
    void *object;
} handle;

typedef struct kept_text {
    struct kept_text *next;
    char text[];
} kept_text;

gpu_state gpu;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static handle *handles; /* by value */
static size_t handle_count, handle_capacity;
static uint64_t next_handle = FIRST_HANDLE;
static kept_text *kept;

static _Thread_local CUcontext stack[MAX_DEPTH];
static _Thread_local int depth;
static _Thread_local struct {
    CUresult code;
    int is_fresh; /* set during this call */
    char text[1200];
} explanation;

static const unsigned char needs[ENTRY_COUNT] = {
#define MEMBER(symbol, what) what,
    SWGPU_ENTRIES(MEMBER)
#undef MEMBER
};

/* ---- handles ---- */

static handle *find(const void *value)
{
    const uint64_t wanted = (uint64_t)(uintptr_t)value;
    size_t low = 0, high = handle_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (handles[middle].value < wanted) low = middle + 1;
        else high = middle;
    }
    return low < handle_count && handles[low].value == wanted ? &handles[low] : NULL;
}

void *state_add_handle(handle_kind kind, void *object)
{
    if (handle_count == handle_capacity) {
        const size_t wanted = 2 * handle_capacity + 64;
        handle *grown = realloc(handles, wanted * sizeof *grown);
        if (!grown) return NULL;
        handles = grown;
        handle_capacity = wanted;
    }
    handles[handle_count++] = (handle){next_handle, kind, object};
    next_handle += HANDLE_STEP;
    return (void *)(uintptr_t)handles[handle_count - 1].value;
}

void *state_find(handle_kind kind, const void *value)
{
    const handle *h = find(value);
    return h && h->kind == kind ? h->object : NULL;
}

int state_is_handle(handle_kind kind, const void *value)
{
    const handle *h = find(value);
    return h && h->kind == kind;
}

static void set_handle(const void *value, void *object)
{
    handle *h = find(value);
    if (h) h->object = object;
}

void state_remove_handle(const void *value)
{
    handle *h = find(value);
    if (!h) return;
    handle_count--;
    memmove(h, h + 1, (size_t)(handles + handle_count - h) * sizeof *h);
}

/* ---- a call's beginning and end ---- */

/* A process that forks leaves the child without the threads that a launch needs and perhaps with the lock taken. As with a
 * GPU's driver, the child can do nothing then; it could if the parent had not begun. */
static void forget_all(void)
{
    if (!gpu.initialised) return;
    pthread_mutex_init(&lock, NULL);
    gpu.initialised = 0;
    gpu.is_forked = 1;
    gpu.contexts = gpu.primary = NULL;
    gpu.captures = NULL;
    gpu.primary_references = 0;
    handle_count = 0;
}

__attribute__((constructor)) static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, forget_all);
}

void state_lock(void)
{
    pthread_mutex_lock(&lock);
    explanation.is_fresh = 0;
}

CUresult state_end(CUresult result)
{
    if (result != CUDA_SUCCESS && !explanation.is_fresh) explanation.code = CUDA_SUCCESS;
    pthread_mutex_unlock(&lock);
    return result;
}

CUresult state_end_quietly(CUresult result)
{
    pthread_mutex_unlock(&lock);
    return result;
}

static CUresult explain(CUresult code)
{
    explanation.code = code;
    explanation.is_fresh = 1;
    return code;
}

CUresult state_fail(CUresult code, const char *format, ...)
{
    const char *meaning = errors_text(code);
    char *text = explanation.text;
    const int length = snprintf(text, sizeof explanation.text, "%s: ", meaning ? meaning : "unknown error");
    va_list args;
    va_start(args, format);
    vsnprintf(text + length, sizeof explanation.text - (size_t)length, format, args);
    va_end(args);
    return explain(code);
}

CUresult state_fail_whole(CUresult code, const char *text)
{
    snprintf(explanation.text, sizeof explanation.text, "%s", text);
    return explain(code);
}

CUresult state_check_device(CUdevice device)
{
    return device == 0 ? CUDA_SUCCESS : state_fail(CUDA_ERROR_INVALID_DEVICE, "%d; there is only device 0", device);
}

CUresult state_need(const void *pointer)
{
    return pointer ? CUDA_SUCCESS : state_fail(CUDA_ERROR_INVALID_VALUE, "a pointer is null");
}

static void wait_for(unsigned milliseconds)
{
    struct timespec left = {milliseconds / 1000, milliseconds % 1000 * 1000000l};
    while (nanosleep(&left, &left) != 0 && errno == EINTR) {}
}

CUresult state_enter(entry_id entry)
{
    unsigned milliseconds;
    int sticky;
    const CUresult demanded = inject_call(entry, &milliseconds, &sticky);
    gpu_context *c = state_current();
    gpu.entry = entry;
    if (milliseconds) wait_for(milliseconds);
    if (demanded != CUDA_SUCCESS) {
        if (sticky && c && c->fault.code == CUDA_SUCCESS) c->fault.code = demanded;
        return demanded;
    }
    if (!needs[entry]) return CUDA_SUCCESS;
    if (!gpu.initialised) return CUDA_ERROR_NOT_INITIALIZED;
    if ((needs[entry] & NEEDS_CONTEXT) == NEEDS_CONTEXT && !c)
        return depth ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_ERROR_INVALID_CONTEXT;
    if ((needs[entry] & REPORTS_FAULT) != REPORTS_FAULT) return CUDA_SUCCESS;
    if (c->fault.code != CUDA_SUCCESS) return c->fault.code;
    return gpu.captures ? capture_check_call(needs[entry]) : CUDA_SUCCESS;
}

/* ---- error texts ---- */

static const char *keep(const char *text)
{
    for (const kept_text *k = kept; k; k = k->next)
        if (strcmp(k->text, text) == 0) return k->text;
    const size_t bytes = strlen(text) + 1;
    kept_text *k = malloc(sizeof *k + bytes);
    if (!k) return NULL;
    memcpy(k->text, text, bytes);
    k->next = kept;
    kept = k;
    return k->text;
}

/* The fault that calls in a context report with this code: the current context's, else the newest context's. */
static const char *fault_text(CUresult code)
{
    const gpu_context *current = state_current(), *found = NULL;
    for (const gpu_context *c = gpu.contexts; c; c = c->next)
        if (c->fault.code == code && c->fault.text[0] && (c == current || !found)) found = c;
    return found ? found->fault.text : NULL;
}

const char *state_error_text(CUresult code)
{
    const char *text = errors_text(code), *more = NULL;
    if (code == CUDA_SUCCESS || !text) return text;
    if (explanation.code == code) more = explanation.text;
    if (!more) more = fault_text(code);
    if (!more && code == CUDA_ERROR_INVALID_VALUE && gpu.settings_error[0]) more = gpu.settings_error;
    const char *whole = more ? keep(more) : NULL;
    return whole ? whole : text;
}

/* ---- contexts ---- */

CUcontext state_top(void)
{
    return depth ? stack[depth - 1] : NULL;
}

gpu_context *state_current(void)
{
    return state_find(HANDLE_CONTEXT, state_top());
}

int state_push(CUcontext context)
{
    if (depth == MAX_DEPTH) return 0;
    stack[depth++] = context;
    return 1;
}

CUcontext state_pop(void)
{
    return depth ? stack[--depth] : NULL;
}

gpu_context *state_create_context(unsigned flags, CUcontext given)
{
    gpu_context *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    c->flags = flags;
    c->memory = memory_create(gpu.settings.memory_bytes);
    c->handle = given ? given : state_add_handle(HANDLE_CONTEXT, c);
    if (!c->memory || !c->handle) {
        if (c->handle && !given) state_remove_handle(c->handle);
        if (c->memory) memory_destroy(c->memory);
        free(c);
        return NULL;
    }
    set_handle(c->handle, c);
    c->next = gpu.contexts;
    gpu.contexts = c;
    return c;
}

static void leak(unsigned count, const char *one, const char *many, const char *end)
{
    char text[128];
    if (!count) return;
    snprintf(text, sizeof text, "%s: %u %s never %s", fault_kind_name(FAULT_LEAK), count, count == 1 ? one : many, end);
    findings_add(text, gpu.settings.report);
}

static void find_graph_leaks(const gpu_context *c, unsigned captures)
{
    unsigned graphs = 0, execs = 0;
    for (const gpu_graph *g = c->graphs; g; g = g->next) ++*(g->kind == HANDLE_GRAPH ? &graphs : &execs);
    leak(captures, "stream capture was", "stream captures were", "ended");
    leak(graphs, "graph was", "graphs were", "destroyed");
    leak(execs, "executable graph was", "executable graphs were", "destroyed");
}

/* After a fault a program cannot free anything, so nothing counts as leaked. */
static void find_leaks(const gpu_context *c, unsigned captures)
{
    if (!(gpu.settings.checks & CHECK_LEAK) || c->fault.code != CUDA_SUCCESS) return;
    find_graph_leaks(c, captures);
    char text[512];
    uint64_t bytes = 0;
    const unsigned allocations = memory_live(c->memory, &bytes);
    if (allocations) {
        snprintf(text, sizeof text, allocations == 1 ? "%s: %u allocation of %llu bytes was never freed"
                                                     : "%s: %u allocations of %llu bytes in all were never freed",
                 fault_kind_name(FAULT_LEAK), allocations, (unsigned long long)bytes);
        findings_add(text, gpu.settings.report);
    }
    unsigned modules = 0;
    const char *kernel = NULL;
    for (const gpu_module *m = c->modules; m; m = m->next) {
        modules++;
        if (m->ptx->kernel_count) kernel = m->ptx->kernels[0].name;
    }
    if (!modules) return;
    snprintf(text, sizeof text, modules == 1 ? "%s: %u module was never unloaded%s%s" : "%s: %u modules were never unloaded%s%s",
             fault_kind_name(FAULT_LEAK), modules, kernel ? "; the first has kernel " : "", kernel ? kernel : "");
    findings_add(text, gpu.settings.report);
}

void state_free_module(gpu_module *m)
{
    for (uint32_t i = 0; m->addresses && i < m->ptx->variable_count; i++)
        if (m->addresses[i]) memory_free(m->context->memory, m->addresses[i]);
    for (uint32_t i = 0; m->functions && i < m->ptx->kernel_count; i++) state_remove_handle(m->functions[i].handle);
    state_remove_handle(m->handle);
    ptx_free(m->ptx);
    free(m->functions);
    free(m->addresses);
    free(m);
}

void state_destroy_context(gpu_context *c)
{
    find_leaks(c, capture_end_all(c));
    while (c->graphs) graph_destroy(c->graphs);
    while (c->modules) {
        gpu_module *m = c->modules;
        c->modules = m->next;
        state_free_module(m);
    }
    while (c->objects) {
        gpu_object *o = c->objects;
        c->objects = o->next;
        state_remove_handle(o->handle);
        free(o);
    }
    gpu_context **at = &gpu.contexts;
    while (*at != c) at = &(*at)->next;
    *at = c->next;
    if (c == gpu.primary) set_handle(c->handle, NULL);
    else state_remove_handle(c->handle);
    memory_destroy(c->memory);
    free(c);
}

void state_fault(gpu_context *c, const fault *what)
{
    findings_add(what->text, gpu.settings.report);
    if (c->fault.code == CUDA_SUCCESS) c->fault = *what;
}

uint64_t state_memory_used(void)
{
    uint64_t used = 0;
    for (const gpu_context *c = gpu.contexts; c; c = c->next) used += memory_used(c->memory);
    return used;
}

gpu_context *state_stream_context(CUstream stream)
{
    if (!stream || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD) return state_current();
    const gpu_object *o = state_find(HANDLE_STREAM, stream);
    return o ? o->context : NULL;
}
