/* The context: what jg_open puts together and every call works on. */
#ifndef JG_CONTEXT_H
#define JG_CONTEXT_H

#include "cache/lru.h"
#include "images.h"
#include "launch.h"
#include "operands.h"
#include "plan.h"
#include "problem_key.h"
#include "recent.h"
#include "tuned.h"
#include "worker.h"

#include <pthread.h>
#include <stdatomic.h>

/* How many problems are remembered; each costs about 0.8 KiB of host memory. */
#define CONTEXT_MAX_PROBLEMS 131072
/* Parts of the problem map: one expands or evicts while lookups in the others go on. */
#define CONTEXT_PROBLEM_PARTS 256

/* A kernel chosen for a problem, ready to launch. Holds a pin on the kernel's entry. */
typedef struct binding {
    loaded_kernel *kernel;        /* the entry's value */
    int is_generic;               /* its form */
    launch_args args;             /* complete but for pointers and scalars */
    plan plan;
    lru_entry *entry;
} binding;

/* What a problem comes down to: value of the problem map. `current` is `first`, or what took its place: that happens at
 * most once in its life, so a call that has read the one may finish with it. */
typedef struct dispatch {
    _Atomic(binding *) current;
    met *met;                     /* counts launches on first for the worker; null: nobody wants to know */
    int is_fallback;              /* first is not the form that was planned: to be replaced when that is there */
    atomic_int tried;             /* a call that may wait has tried to replace it */
    binding first;
    lru_entry *entry;             /* its own, in the problem map; as the next two under context.keep_lock */
    struct dispatch *previous, *next; /* in context.evictable, if its kernel is not resident; else null */
} dispatch;

/* Launches of some of the threads. Apart, so that threads do not share a line of the processor's cache. */
typedef struct launch_counts {
    _Alignas(64) atomic_uint_fast64_t own, generic;
} launch_counts;
#define CONTEXT_COUNT_SLOTS 16

/* Kernels under way (see kernels.c). */
struct making;

struct jg_context {
    jg_options options;           /* resolved; its strings and lists are not kept */
    device device;
    images *images;
    tuned *tuned;                 /* recorded plans; empty where the options want the model alone */
    worker *worker;               /* null on the cpu device */
    lru *problems;                /* problem_key -> dispatch */
    recent *recent;               /* in front of problems; null on the cpu device */
    lru *kernels;                 /* kernel_key -> loaded_kernel */

    pthread_mutex_t making_lock;  /* guards the next two */
    pthread_cond_t made;
    struct making *making;        /* kernels under way */

    pthread_mutex_t keep_lock;    /* guards the next four; held for moments only, and never by the worker */
    dispatch *evictable;          /* dispatches with a kernel that is not resident */
    lru_entry **resident;         /* pinned until jg_close: the generic set and what graphs have captured */
    size_t resident_count, resident_room;

    atomic_int plans;             /* alive */
    atomic_int said_wait, said_start_error, said_dropped; /* log lines that are written once */
    atomic_uint_fast64_t waits, swaps, generic_resident, captured;
    launch_counts launches[CONTEXT_COUNT_SLOTS];
};

static inline int context_is_cpu(const jg_context *c)
{
    return c->device.driver == NULL;
}

/* Whether the driver is the software GPU (src/swgpu). */
static inline int context_is_software(const jg_context *c)
{
    return c->device.driver && c->device.driver->describe;
}

/* printf to the log hook, if the level is wanted. */
void context_log(jg_context *c, jg_log_level level, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Tells the trace hook, if there is one, what happened to a problem (null: none) and a kernel (null: none). */
void context_trace(jg_context *c, jg_event event, const problem_key *key, const kernel_spec *spec, double ms);

/* --- kernels.c: loaded kernels --- */

/* Brings a kernel and loads it on the device: returns its entry, pinned. Requests for one kernel at the same time are merged.
 * Errors: NOT_READY, those of images_get, LOAD, NO_MEMORY, DEVICE, DEVICE_LOST. */
jg_status kernels_obtain(jg_context *c, const kernel_spec *spec, const char *label, effort how, lru_entry **entry, jg_source *source);

/* The entry of a kernel if it is loaded, pinned; else null. Sets no error text. */
lru_entry *kernels_find(jg_context *c, const kernel_spec *spec);

/* Loads an image that is there already; if the kernel is loaded, that one is returned. The entry is pinned.
 * Errors: LOAD, NO_MEMORY, DEVICE, DEVICE_LOST. */
jg_status kernels_load(jg_context *c, const kernel_spec *spec, const image *img, lru_entry **entry);

/* Keeps a kernel loaded until jg_close: takes a pin of its own. Once is enough; more do nothing.
 * why: the counter that it adds to. Error: NO_MEMORY. */
jg_status kernels_keep(jg_context *c, lru_entry *entry, atomic_uint_fast64_t *why);

/* --- dispatch.c: what problems come down to --- */

/* Makes a kernel ready to launch for a problem. Takes over the caller's pin on it. */
void dispatch_bind(binding *b, const problem_key *key, const plan *chosen, lru_entry *kernel);

/* Remembers a kernel for a problem and takes over the caller's pin on it, whatever happens. A problem that is in the map on a
 * fallback goes over to this kernel if it is of the planned form; else what is there stays. wanted (may be null, is taken
 * over): counts launches on a fallback. Returns the problem's entry, pinned; null if out of memory. */
lru_entry *dispatch_put(jg_context *c, const problem_key *key, const plan *chosen, lru_entry *kernel, met *wanted, int *swapped);

/* Destroys a value of the problem map (for lru_remove and the like). */
void dispatch_drop(void *context, void *value);

/* What a call launches now. */
static inline binding *dispatch_current(const dispatch *d)
{
    return atomic_load_explicit(&d->current, memory_order_acquire);
}

/* Whether it still runs on a fallback. */
static inline int dispatch_is_provisional(const dispatch *d)
{
    return d->is_fallback && dispatch_current(d) == &d->first;
}

/* Evicts the least recently used problems over their bound; touches no device. */
void dispatch_trim(jg_context *c);

/* The same, and kernels over their bounds, at most `most`, with the problems that use them. May unload, so only where that is
 * allowed. *unloaded is set to the number of kernels. Errors: DEVICE, NO_MEMORY, DEVICE_LOST. */
jg_status dispatch_trim_kernels(jg_context *c, size_t most, size_t *unloaded);

/* Unloads everything (jg_close). */
void dispatch_destroy(jg_context *c);

/* --- gemm.c --- */

/* The form that is planned first: what the problem asks for, else SPECIALISED, but GENERIC where k = 0. */
jg_form gemm_planned_form(const problem *p);

/* What a call may do on a miss: the problem's own policy or the context's, but NEVER while `stream` is being captured. */
jg_compile gemm_policy(const jg_context *c, const jg_problem *in, void *stream);

/* Chooses what a problem needs, as the policy allows; returns its entry in the problem map, pinned. */
jg_status gemm_resolve(jg_context *c, const problem_key *key, jg_compile policy, lru_entry **entry, jg_source *source);

/* Finds a problem in the map, else resolves it. `stream` is the one that the caller is going to launch on. */
jg_status gemm_find(jg_context *c, const jg_problem *in, const problem_key *key, void *stream, lru_entry **entry, jg_source *source);

/* Asks the worker for a kernel; key (may be null): of the problem. wanted: as for worker_demand. Where the worker cannot take it,
 * that is counted, traced and said once. Returns 1 if it took it. */
int gemm_demand(jg_context *c, const problem_key *key, const kernel_spec *spec, met *wanted, int generic_set);

/* Launches what a problem has come down to and counts it, in the caller's slot if it has taken one (else null).
 * Errors: LAUNCH, NO_MEMORY, DEVICE, DEVICE_LOST. */
jg_status gemm_launch(jg_context *c, const lru_entry *entry, const operands *o, void *stream, recent *mine);

/* The same for a kernel that is bound to a problem beside the map. */
jg_status gemm_launch_bound(jg_context *c, const problem_key *key, const binding *b, const operands *o, void *stream);

/* Whether the stream is being captured into a graph. The device must be entered. */
int gemm_is_captured(const jg_context *c, void *stream);

/* Counts a launch on a generic kernel. */
void gemm_count_generic(jg_context *c);

/* Loads a generic kernel, made if need be, and keeps it: where it has to be made and that takes longer than the deadline allows,
 * the worker gets it instead. key (may be null) and label: what it is wanted for. The kernel's entry is pinned, also on a
 * failure if it is not null. Errors: NOT_READY and those of kernels_obtain. */
jg_status gemm_obtain_generic(jg_context *c, const problem_key *key, const kernel_spec *spec, const char *label, lru_entry **kernel,
                              jg_source *source);

/* --- plan_calls.c --- */

/* A plan of a candidate, with its context and problem; null for any other plan. */
const binding *plan_candidate(const jg_plan *plan, jg_context **context, problem *p);

/* --- startup.c --- */

/* Loads the generic set, the kernels of sizes that earlier runs met, and what the options' prewarming asks for; what is not in
 * the files is asked of the worker. Errors: NOT_READY (sealed, and a generic kernel is missing), DEVICE, NO_MEMORY,
 * DEVICE_LOST, and those of a bad problem in the list. */
jg_status startup_load(jg_context *c, const jg_options *options);

#endif
