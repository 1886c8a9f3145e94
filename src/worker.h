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

/* What the worker notes about a met; only its threads touch it, under its lock. */
typedef struct met_notes {
    struct job *job;               /* that will bring its kernel; null: none */
    struct met *job_prev, *job_next;
    struct met *known_prev, *known_next;
    int known;                     /* in the list of mets whose uses are recorded, which holds a reference */
    int served;                    /* its kernel was handed out: done for good */
    int judging;                   /* a thread is asking what it gains */
    uint64_t recorded;             /* uses that the list of misses has */
} met_notes;

/* A problem that ran on a generic kernel. Shared by the problem's dispatch, which counts uses, and the worker; made and freed
 * with met_create, met_keep and met_drop. */
typedef struct met {
    problem_key key;
    kernel_spec spec;              /* the kernel of its own that it wants */
    kernel_key kernel;             /* its key */
    int pays;                      /* by the plan's estimate; if 0 it is only counted, unless the files say otherwise */
    atomic_uint_fast64_t uses;     /* launches on a generic kernel */
    atomic_uint references;
    atomic_int posted;             /* lies in the mailbox */
    struct met *next;              /* in the mailbox */
    met_notes notes;
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

/* What the worker asks of the library. Called on the worker's threads, maybe several at once; record also on the thread that
 * calls worker_stop, and release wherever the last thread ends. */
typedef struct worker_hooks {
    void *user;
    /* Brings the image of a kernel. label: text of the problem, or "generic". NOT_READY: not in the files (BRING_CACHED), or
     * another process is making it just now (BRING_COMPILED): ask again later. Any other error is a failure, already logged. The
     * one hook that may still run after worker_stop has returned, so that it may use nothing that release does not end. */
    jg_status (*bring)(void *user, const kernel_spec *spec, const char *label, bring_how how, image *out);
    /* What the files have recorded of a problem's gain; 0: nothing. */
    double (*gain)(void *user, const problem_key *key);
    /* Adds to the list of misses: counts[i] more uses of mets[i]. Never concurrently with itself. */
    void (*record)(void *user, met *const *mets, const uint64_t *counts, size_t count);
    /* One of jg_event READY, FAIL, DROP, for the trace hook; m is the first problem that wants the kernel, null if none does: it
     * was demanded. READY comes before worker_take can give the kernel. */
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
void ready_free(ready_kernel *r);  /* with its image and references; null is allowed */

/* Makes a worker; no thread yet: that is started at the first sighting or demand, so that a context that meets nothing new has
 * none. To be called on the thread that opens the context: its processors and niceness are those that the options speak of,
 * whoever starts the threads. may_compile: 0 in a sealed context. has_store: what bring has compiled it can bring again without
 * compiling. `options` has its defaults filled in. Null if out of memory. */
worker *worker_create(const jg_worker_options *options, int may_compile, int has_store, const worker_hooks *hooks);

/* A launch on a generic kernel. Lock-free; wakes the worker at the first and the second use of m and whenever uses has doubled
 * since. Where the mailbox is full or no thread can be started, the news is dropped: counted, not traced, and told again at the
 * next doubling. Returns 1 if it was dropped just now, else 0. After a failed start the next is tried a second later. */
int worker_tell(worker *w, met *m);
static inline int worker_sight(worker *w, met *m)
{
    const uint64_t uses = atomic_fetch_add_explicit(&m->uses, 1, memory_order_relaxed) + 1;
    return uses & (uses - 1) ? 0 : worker_tell(w, m);
}

/* Asks for a kernel without a sighting: made at once, before all others, not counted against per_minute. m may be null, and its
 * own kernel another than spec; generic_set is handed on to the ready_kernel. Lock-free. In a sealed context what the files do
 * not have is a FAIL. A kernel that NVRTC has refused is not tried again. Errors: NO_MEMORY, also where no thread can be
 * started; the text says so. */
jg_status worker_demand(worker *w, const kernel_spec *spec, met *m, int generic_set);

/* Takes all kernels that are ready, in the order in which they became so; null if there is none: one atomic load then. Lock-free.
 * A met that was sighted gets its kernel once: what the taker does not put in place the worker will not bring again. */
ready_kernel *worker_take(worker *w);

/* Gives back the rest of a list from worker_take, to be taken first next time. Lock-free. */
void worker_give(worker *w, ready_kernel *rest);

/* Blocks until nothing is left to do and all uses are recorded, or timeout_ms (0: without limit) have passed; returns 1 or 0.
 * Not waited for: problems met once, kernels that failed, also those to be tried again, and what is held back until ready
 * kernels are taken. Waited for: per_minute, and kernels that another process is making. */
int worker_wait_idle(worker *w, double timeout_ms);

typedef struct worker_stats {
    uint64_t queued;      /* kernels to look for or make, and under way */
    uint64_t ready;       /* to be taken */
    uint64_t dropped;     /* news that found the mailbox or the queue full, or no thread */
    int threads;          /* started, which run until worker_stop */
    int start_error;      /* errno of the last thread that could not be started; 0 once one could */
} worker_stats;
void worker_get_stats(worker *w, worker_stats *out);

/* Tells the worker to end and writes its counts. Waits at most 50 ms for a thread that is in bring (so in NVRTC), but for one in
 * another hook until that returns. A thread that is still busy then is abandoned: it ends by itself, calls no hook any more, and
 * if it is the last, release. w is gone, with the kernels that nobody took. Null is allowed; in a process forked since
 * worker_create it does nothing. */
void worker_stop(worker *w);

#endif
