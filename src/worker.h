/* The worker: threads of a context that bring the bytes of kernels which calls have missed.
 *
 * In: sightings of problems that ran on a generic kernel, and demands for kernels. Out: images, ready for jg_poll, and
 * counts for the cache file's list of misses. It knows neither the device nor the context: what it needs done it asks of
 * its hooks, so that a compile that jg_close abandoned touches nothing that is gone.
 *
 * Callers never wait for it: worker_sight, worker_take and worker_give are lock-free, since the worker may be preempted
 * anywhere for as long as others want the processor. Between its own threads there is a lock, which jg_wait_idle also takes.
 *
 * What it does with a kernel: at the first sighting it looks into the caches; from the second on it compiles, most-used
 * first, at most options.per_minute a minute. Equal kernels are made once, also across processes (cache/claims.h). */
#ifndef JG_WORKER_H
#define JG_WORKER_H

#include "image.h"
#include "kernel.h"
#include "problem_key.h"

#include <stdatomic.h>

typedef struct worker worker;

/* A problem that ran on a generic kernel. Shared by the problem's dispatch, which counts uses, and the worker; made and freed
 * with met_create, met_keep and met_drop. */
typedef struct met {
    problem_key key;
    kernel_spec spec;              /* the kernel of its own that it wants */
    kernel_key kernel;             /* its key */
    int pays;                      /* by the plan's estimate; if 0 it is only counted, unless the files say otherwise */
    atomic_uint_fast64_t uses;     /* launches on a generic kernel */
    atomic_uint_fast64_t asked;    /* bits of uses at which the worker was told, see worker_sight */
    atomic_uint references;
    atomic_int posted;             /* lies in the mailbox */
    struct met *next;              /* in the mailbox */
} met;

/* The caller holds the one reference. Null if out of memory. */
met *met_create(const problem_key *key, const kernel_spec *spec, int pays);
met *met_keep(met *m);
void met_drop(met *m);             /* null is allowed */

/* How the worker brings an image; see worker_hooks.bring. */
typedef enum bring_how {
    BRING_CACHED,   /* from the cache and factory files only */
    BRING_COMPILED  /* the same, else compile it and store it */
} bring_how;

/* What the worker asks of the library. Called on the worker's threads, maybe several at once, except release. */
typedef struct worker_hooks {
    void *user;
    /* Brings the image of a kernel. label: text of the problem, or "generic". NOT_READY: not in the files (BRING_CACHED), or
     * another process is making it just now (BRING_COMPILED): ask again later. Any other error is a failure, already logged. */
    jg_status (*bring)(void *user, const kernel_spec *spec, const char *label, bring_how how, image *out);
    /* What the files have recorded of a problem's gain; 0: nothing. */
    double (*gain)(void *user, const problem_key *key);
    /* Adds to the list of misses: counts[i] more uses of mets[i]. */
    void (*record)(void *user, met *const *mets, const uint64_t *counts, size_t count);
    /* One of jg_event READY, FAIL, DROP, for the trace hook; m is null for a kernel that was demanded. */
    void (*trace)(void *user, jg_event event, const met *m, const kernel_spec *spec);
    /* Nothing will be called any more; called once, on the last thread to go, which may be long after worker_stop. */
    void (*release)(void *user);
} worker_hooks;

/* A kernel whose bytes are ready. */
typedef struct ready_kernel {
    struct ready_kernel *next;
    kernel_spec spec;
    image img;
    int generic_set;      /* demanded as a part of the generic set */
    met **mets;           /* the problems that want it; each a reference */
    size_t met_count;
} ready_kernel;
void ready_free(ready_kernel *r);  /* with its image and references */

/* Makes a worker; no thread yet: that is started at the first sighting or demand, so that a context that meets nothing new has
 * none. may_compile: 0 in a sealed context. `options` has its defaults filled in. Null if out of memory. */
worker *worker_create(const jg_worker_options *options, int may_compile, const worker_hooks *hooks);

/* A launch on a generic kernel. Lock-free; wakes the worker at the first and the second use of m and whenever uses has doubled
 * since. Where the mailbox is full or no thread can be started, it is dropped: counted, and tried again at the next
 * doubling. Returns 1 if it was dropped just now, else 0. */
int worker_sight(worker *w, met *m);

/* Asks for a kernel without a sighting: made at once, before all others, not counted against per_minute. m may be null; generic_set
 * is handed on to the ready_kernel. Takes the lock for a moment. Errors: NO_MEMORY. */
jg_status worker_demand(worker *w, const kernel_spec *spec, met *m, int generic_set);

/* Takes all kernels that are ready, in the order in which they became so; null if there is none: one atomic load then. */
ready_kernel *worker_take(worker *w);

/* Gives back the rest of a list from worker_take, to be taken first next time. */
void worker_give(worker *w, ready_kernel *rest);

/* Blocks until nothing is left to do, or timeout_ms (0: without limit) have passed; returns 1 or 0. */
int worker_wait_idle(worker *w, double timeout_ms);

typedef struct worker_stats {
    uint64_t queued, ready, dropped;
    int threads;          /* running */
    int start_error;      /* errno of the thread that could not be started; 0 */
} worker_stats;
void worker_get_stats(worker *w, worker_stats *out);

/* Tells the worker to end, lets it write its counts, and waits for it for at most 50 ms; a thread that is still busy then (it
 * is in NVRTC) is abandoned: it ends by itself and then calls hooks.release if it is the last. w is gone. Null is allowed. */
void worker_stop(worker *w);

#endif
