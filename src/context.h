/* The context: what jg_open puts together and every call works on. */
#ifndef JG_CONTEXT_H
#define JG_CONTEXT_H

#include "cache/lru.h"
#include "cache/store.h"
#include "compile.h"
#include "launch.h"
#include "operands.h"
#include "plan.h"

#include <pthread.h>
#include <stdatomic.h>

/* How many problems are remembered; each costs about 0.5 KiB of host memory. */
#define CONTEXT_MAX_PROBLEMS 131072

/* What a problem comes down to: value of the problem map. Holds a pin on its kernel's entry. */
typedef struct dispatch {
    lru_entry *kernel_entry;
    const loaded_kernel *kernel;  /* the entry's value */
    plan plan;
    launch_args args;             /* complete but for pointers and scalars */
} dispatch;

/* Key of the problem map: the canonical problem and how wide its operands may be accessed. */
typedef struct problem_key {
    problem problem;
    access_widths access;
    uint8_t zero[5];              /* no padding: the bytes are the key */
} problem_key;

/* A kernel that some thread is making now (see kernels.c). */
struct making;

struct jg_context {
    jg_options options;           /* resolved; its strings are not kept */
    device device;
    compiler *compiler;
    store *store;                 /* null: memory only */
    char cache_path[512];
    lru *problems;                /* problem_key -> dispatch */
    lru *kernels;                 /* kernel_key -> loaded_kernel */

    pthread_mutex_t making_lock;
    pthread_cond_t made;
    struct making *making;

    pthread_mutex_t log_lock;
    atomic_int store_warned;
    atomic_int plans;             /* alive */
    atomic_uint_fast64_t disk_hits, disk_misses, disk_faults, compiles, compile_failures, compile_us;
};

static inline int context_is_cpu(const jg_context *c)
{
    return c->device.driver == NULL;
}

/* printf to the log hook, if the level is wanted. */
void context_log(jg_context *c, jg_log_level level, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* --- kernels.c: images and loaded kernels --- */

typedef enum compile_how { COMPILE_NOT, COMPILE_ON_A_THREAD, COMPILE_HERE } compile_how;

/* Brings the image of a kernel from disk, else compiles it and stores it; the device is not touched. `label` is the problem that
 * asked. Errors: NOT_READY (absent and how = COMPILE_NOT), and compile_here's. */
jg_status kernels_image(jg_context *c, const kernel_spec *spec, const char *label, compile_how how, image *out, jg_source *source);

/* The same, loaded on the device: returns the kernel's entry, pinned. Requests for one kernel at the same time are merged. */
jg_status kernels_obtain(jg_context *c, const kernel_spec *spec, const char *label, compile_how how, lru_entry **entry, jg_source *source);

/* Evicts what is over the bounds, least recently used problems and then their kernels. May unload, so only where that is
 * allowed. *unloaded is set to the number of kernels. Errors: DEVICE, DEVICE_LOST. */
jg_status kernels_trim(jg_context *c, size_t *unloaded);

/* Unloads everything (jg_close). */
void kernels_destroy(jg_context *c);

/* --- gemm.c --- */

/* The key of a problem. */
problem_key gemm_key(const problem *p, access_widths access);

/* How wide operands may be accessed by the problem's own promise (align_bytes). */
access_widths gemm_promised_access(const problem *p);

/* The form that is planned first: what the problem asks for, else SPECIALISED, but GENERIC where k = 0. */
jg_form gemm_planned_form(const problem *p);

/* What a call may do on a miss, by the context's policy. */
compile_how gemm_compile_how(const jg_context *c);

/* The device part of a call whose kernel is known. Errors: LAUNCH, NO_MEMORY, DEVICE, DEVICE_LOST. */
jg_status gemm_launch(const jg_context *c, const dispatch *d, const operands *o, void *stream);

/* Chooses, obtains and remembers what a problem needs; returns its entry in the problem map, pinned. */
jg_status gemm_resolve(jg_context *c, const problem_key *key, compile_how how, lru_entry **entry, jg_source *source);

#endif
