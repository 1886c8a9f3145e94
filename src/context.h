/* The context: what jg_open puts together and every call works on. */
#ifndef JG_CONTEXT_H
#define JG_CONTEXT_H

#include "cache/lru.h"
#include "cache/store.h"
#include "compile.h"
#include "launch.h"
#include "operands.h"
#include "plan.h"
#include "problem_key.h"

#include <pthread.h>
#include <stdatomic.h>

/* How many problems are remembered; each costs about 0.5 KiB of host memory. */
#define CONTEXT_MAX_PROBLEMS 131072

/* What a problem comes down to: value of the problem map. Holds a pin on its kernel's entry. */
typedef struct dispatch {
    lru_entry *kernel_entry;
    const loaded_kernel *kernel;  /* the entry's value */
    int is_fallback;              /* not the form that was planned first: to be replaced when that is there */
    plan plan;
    launch_args args;             /* complete but for pointers and scalars */
} dispatch;

/* Kernels under way, and kernels that do not compile (see kernels.c). */
struct making;
struct failed;

struct jg_context {
    jg_options options;           /* resolved; its strings are not kept */
    device device;
    compiler *compiler;
    store *store;                 /* null: memory only */
    char cache_path[512];
    lru *problems;                /* problem_key -> dispatch */
    lru *kernels;                 /* kernel_key -> loaded_kernel */

    pthread_mutex_t making_lock;  /* guards the next three */
    pthread_cond_t made;
    struct making *making;        /* kernels under way */
    struct failed *failed;        /* kernels that do not compile */

    pthread_mutex_t log_lock;
    atomic_int store_warned;
    atomic_int plans;             /* alive */
    atomic_uint_fast64_t disk_hits, disk_misses, disk_faults, compiles, compile_failures, compile_us;
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

/* --- kernels.c: images and loaded kernels --- */

/* How far a call may go for a kernel. From DISK on it may load, and so wait for the device. */
typedef enum effort {
    EFFORT_MEMORY,       /* only what is loaded */
    EFFORT_DISK,         /* also what the cache file has */
    EFFORT_COMPILE,      /* also compile, on a thread of its own */
    EFFORT_COMPILE_HERE  /* the same on the calling thread, which compile_spawn made; also what failed before */
} effort;

/* Brings the image of a kernel from disk, else compiles it and stores it; the device is not touched. `label` is the problem that
 * asked. Errors: NOT_READY (absent and how < EFFORT_COMPILE), and compile_here's. */
jg_status kernels_image(jg_context *c, const kernel_spec *spec, const char *label, effort how, image *out, jg_source *source);

/* The same, loaded on the device: returns the kernel's entry, pinned. Requests for one kernel at the same time are merged. */
jg_status kernels_obtain(jg_context *c, const kernel_spec *spec, const char *label, effort how, lru_entry **entry, jg_source *source);

/* Destroys a value of the problem map (for lru_remove and the like). */
void kernels_drop_dispatch(void *context, void *value);

/* Evicts the least recently used problems over their bound; touches no device. */
void kernels_trim_problems(jg_context *c);

/* The same, and kernels over their bounds, with the problems that use them. May unload, so only where that is allowed.
 * *unloaded is set to the number of kernels. Errors: DEVICE, NO_MEMORY, DEVICE_LOST. */
jg_status kernels_trim(jg_context *c, size_t *unloaded);

/* Unloads everything (jg_close). */
void kernels_destroy(jg_context *c);

/* --- gemm.c --- */

/* The form that is planned first: what the problem asks for, else SPECIALISED, but GENERIC where k = 0. */
jg_form gemm_planned_form(const problem *p);

/* What a call may do on a miss, by the context's policy. */
effort gemm_effort(const jg_context *c);

/* The device part of a call whose kernel is known. Errors: LAUNCH, NO_MEMORY, DEVICE, DEVICE_LOST. */
jg_status gemm_launch(const jg_context *c, const dispatch *d, const operands *o, void *stream);

/* Chooses, obtains and remembers what a problem needs; returns its entry in the problem map, pinned. */
jg_status gemm_resolve(jg_context *c, const problem_key *key, effort how, lru_entry **entry, jg_source *source);

#endif
