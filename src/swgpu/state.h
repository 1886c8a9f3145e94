/* The process's software GPU: one lock, what is alive (contexts, modules, functions, streams, events, graphs), each
 * thread's stack of contexts, and the texts of errors.
 *
 * Every entry point takes the lock and keeps it to its end, a launch too: so everything happens in the order of the calls,
 * which is an order that streams and events allow. Handles are numbers that are never used twice, so that a stale one is
 * always noticed. */
#ifndef SWGPU_STATE_H
#define SWGPU_STATE_H

#include "entries.h"
#include "exec.h"
#include "memory.h"
#include "settings.h"

#include <time.h>

typedef struct gpu_context gpu_context;
typedef struct gpu_module gpu_module;
typedef struct gpu_capture gpu_capture; /* capture.c */

#define CAPTURE_STREAMS 32 /* in one capture */

typedef struct gpu_function {
    gpu_module *module;
    const ptx_kernel *kernel;
    CUfunction handle;
    int registers;   /* of a thread, as the parser estimates */
    int max_dynamic; /* bytes of dynamic shared memory that a launch may ask for */
    int carveout;
} gpu_function;

struct gpu_module {
    gpu_context *context;
    CUmodule handle;
    ptx_module *ptx;
    uint64_t *addresses;     /* of each variable; 0: it has none */
    gpu_function *functions; /* one a kernel */
    gpu_module *next;
};

/* A stream or an event. */
typedef struct gpu_object {
    gpu_context *context;
    void *handle;
    unsigned flags;
    int recorded;
    struct timespec time; /* an event's, when it was recorded */
    int is_captured;      /* an event's: it was last recorded in a capture, which may be over */
    gpu_capture *capture; /* that a stream is in, or an event was last recorded in; null once it is over */
    unsigned place;       /* a stream's, in its capture */
    uint32_t reached[CAPTURE_STREAMS]; /* nodes of each of the capture's streams that come before this */
    struct gpu_object *next;
} gpu_object;

struct gpu_context {
    CUcontext handle;
    unsigned flags;
    device_memory *memory;
    gpu_module *modules;
    gpu_object *objects;
    struct gpu_graph *graphs; /* graph.h */
    fault fault; /* the first; code is CUDA_SUCCESS until then */
    gpu_context *next;
};

typedef struct gpu_state {
    int initialised;
    int is_forked; /* from a process that had called cuInit */
    settings settings;
    char settings_error[1024]; /* of the last cuInit; "": none */
    gpu_context *contexts;     /* alive */
    gpu_context *primary;      /* among them, or null */
    CUcontext primary_handle;  /* stays the same from one life of the primary context to the next */
    uint64_t primary_references;
    gpu_capture *captures; /* under way */
    entry_id entry;        /* the call that has the lock */
} gpu_state;

extern gpu_state gpu;

typedef enum handle_kind {
    HANDLE_CONTEXT = 1,
    HANDLE_MODULE,
    HANDLE_FUNCTION,
    HANDLE_STREAM,
    HANDLE_EVENT,
    HANDLE_GRAPH,
    HANDLE_GRAPH_EXEC,
    HANDLE_NODE
} handle_kind;

/* A new handle for an object, or null if out of memory. */
void *state_add_handle(handle_kind kind, void *object);
void *state_find(handle_kind kind, const void *handle);   /* the object, or null */
int state_is_handle(handle_kind kind, const void *handle); /* that of a primary context between two lives too */
void state_remove_handle(const void *handle);

void state_lock(void);

/* What an entry point does first, under the lock: counts, fails on demand, and looks whether its needs are met. */
CUresult state_enter(entry_id entry);

/* Unlocks. A failure that state_fail has not explained takes the thread's last explanation away. */
CUresult state_end(CUresult result);
CUresult state_end_quietly(CUresult result); /* leaves it */

/* Explains the failure of this call to the calling thread: cuGetErrorString then says more than the code. Returns code. */
CUresult state_fail(CUresult code, const char *format, ...) __attribute__((format(printf, 2, 3)));
CUresult state_fail_whole(CUresult code, const char *text); /* the text alone, without what the code means */

CUresult state_check_device(CUdevice device);
CUresult state_need(const void *pointer); /* what a call answers to a null pointer */

#define BEGIN(symbol)                                            \
    state_lock();                                                \
    const CUresult began_ = state_enter(ENTRY_##symbol);         \
    if (began_ != CUDA_SUCCESS) return state_end(began_)

/* What cuGetErrorString says; good for the life of the process. Null: no such code. */
const char *state_error_text(CUresult code);

/* ---- contexts ---- */

/* The calling thread's current context, if it is alive. */
gpu_context *state_current(void);
CUcontext state_top(void); /* its handle; null: none */
int state_push(CUcontext context);
CUcontext state_pop(void);

/* A new context, or null. `given` (may be null) is the handle that it gets. */
gpu_context *state_create_context(unsigned flags, CUcontext given);

/* Frees all that is in it, adds what leaked to the findings, and lets go of its handle. */
void state_destroy_context(gpu_context *c);

/* The context's first fault counts; every fault is a finding. */
void state_fault(gpu_context *c, const fault *what);

/* Bytes allocated in all contexts: they share the device. */
uint64_t state_memory_used(void);

void state_free_module(gpu_module *m); /* not in its context's list any more */

/* The context that a stream belongs to: the current one for null and the two default streams, null for no stream. */
gpu_context *state_stream_context(CUstream stream);

#endif
