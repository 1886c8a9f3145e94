/* What a worker is made of; only for the worker_*.c files and their tests.
 *
 * Two sides. The callers' (worker.c) is lock-free: mailboxes in, a list of ready kernels out, a semaphore to wake. The
 * threads' (worker_thread.c and what it calls) is under one lock, which is never held while a hook runs.
 *
 * Times are milliseconds of worker_now_ms. */
#ifndef JG_WORKER_STATE_H
#define JG_WORKER_STATE_H

#include "worker.h"
#include "hash.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/types.h>

#define WORKER_MAX_THREADS 16
#define WORKER_MAX_MAIL 4096             /* mets in the mailbox */
#define WORKER_MAX_DEMANDS 65536         /* demands in theirs */
#define WORKER_MAX_KNOWN 8192            /* mets whose uses are recorded */
#define WORKER_MAX_FAILED 1024           /* kernels remembered as not to be made */
#define WORKER_MAX_READY 64
#define WORKER_MAX_READY_BYTES ((uint64_t)64 << 20)
#define WORKER_BATCH 256                 /* mets in one call of record */
#define WORKER_LEAST_GAIN 1.02           /* of a recorded gain, so that the kernel is made */

#define WORKER_BUSY_FIRST_MS 50.0        /* another process is making it: asked again */
#define WORKER_BUSY_MOST_MS 500.0
#define WORKER_FAIL_FIRST_MS 10e3        /* a failure that may pass: tried again */
#define WORKER_FAIL_MOST_MS 600e3
#define WORKER_RECORD_FIRST_MS 2e3       /* from the first use to its record */
#define WORKER_RECORD_EVERY_MS 30e3
#define WORKER_START_AGAIN_MS 1e3        /* from a failed thread start to the next */

/* Tests put doubles here, before they make a worker. */
extern double (*worker_now_ms)(void);
extern int (*worker_spawn)(pthread_t *thread, void *(*body)(void *), void *argument);
extern double worker_stop_ms;            /* how long worker_stop waits for threads in bring: 50 */
extern double worker_nap_ms;             /* how long a thread that has done something leaves callers' news alone: 10 */

/* Where a job stands; each state has a list, in order of arrival. */
typedef enum job_state {
    JOB_DEMANDED,   /* to be made, before all others */
    JOB_NEW,        /* to be looked for in the files */
    JOB_MET,        /* not in the files, and met too rarely to be made, or the queue was full */
    JOB_WANTED,     /* to be made */
    JOB_RUNNING,    /* a thread is bringing it */
    JOB_STORED,     /* made, and left in the file since too many are ready */
    JOB_FAILED,     /* not to be made: only the key is kept */
    JOB_STATES
} job_state;

/* A call of worker_demand; in the mailbox, then with its job. */
typedef struct demand {
    struct demand *next;
    kernel_spec spec;
    met *m;             /* a reference; may be null */
    int generic_set;
} demand;

/* A kernel to bring, for all that want it. */
typedef struct job {
    kernel_key key;
    kernel_spec spec;
    job_state state;
    job_state before;   /* JOB_RUNNING: the state to go back to */
    met *mets;          /* each is known, so no reference of its own */
    demand *demands;
    double not_before;
    double delay;       /* the last, which the next one doubles */
    int failed;         /* the delay is for a failure, not for another process */
    struct job *prev, *next;
    UT_hash_handle hh;
} job;

/* How the threads are placed: as that thread was that made the worker. */
typedef struct place {
    cpu_set_t cpus;
    int has_cpus;
    int policy;
    struct sched_param parameters;
    int nice;
} place;

/* Whether a thread is there to do the work. */
typedef enum start_state { START_NONE, START_UNDER_WAY, START_DONE } start_state;

/* A thread is joined by worker_stop; once that has given up, whoever comes second, it or who starts the thread, detaches it. */
typedef enum slot_state { SLOT_FREE, SLOT_STARTED, SLOT_ABANDONED } slot_state;

struct worker {
    jg_worker_options options;
    int may_compile, has_store;
    worker_hooks hooks;
    place place;
    pid_t process;
    atomic_uint references;           /* worker_stop's and each thread's */

    /* Lock-free. */
    _Atomic(met *) mail;              /* last posted first */
    _Atomic(demand *) demands;        /* the same */
    atomic_int mail_count;            /* in `mail` and in `inbox` */
    atomic_int demand_count;
    atomic_int wake_posted;           /* a caller has posted `wake` and no thread has come to look yet */
    sem_t wake;
    _Atomic(met *) dead;              /* for callers to free */
    atomic_flag burying;              /* a caller is doing so; guards the next */
    met *grave;
    atomic_int has_grave;
    _Atomic(ready_kernel *) made;     /* last made first */
    _Atomic(ready_kernel *) given;    /* given back, in order */
    atomic_uint_fast64_t ready_count, ready_bytes;
    atomic_int held_back;             /* something waits for room among the ready */
    atomic_uint hook_gate;            /* WORKER_CLOSED, and how many threads are in a hook other than bring */
    atomic_int start;                 /* start_state of the first thread */
    atomic_int start_error;
    double start_again;               /* not before; belongs to who has set `start` to START_UNDER_WAY */
    atomic_uint_fast64_t dropped, queued;
    atomic_int threads;               /* started */
    struct {
        atomic_int state;             /* slot_state */
        pthread_t id;
    } slots[WORKER_MAX_THREADS];      /* 0: started by a caller; the others by a thread that has the lock */

    pthread_mutex_t lock;             /* guards the rest */
    pthread_cond_t rested;            /* a thread has found nothing to do */
    unsigned spawned, sleeping;
    unsigned busy;                    /* threads doing a step */
    unsigned waiting;                 /* callers in worker_wait_idle */
    met *inbox;                       /* taken from the mailbox, still posted, first come first */
    job *lists[JOB_STATES];
    unsigned counts[JOB_STATES];
    job *jobs;                        /* by key */
    double tokens, tokens_at;         /* compiles that may begin */
    double hold_until, hold_delay;    /* no NVRTC: nothing is compiled */
    met *known;
    size_t known_count, forget_at;
    int recording;                    /* a thread is in a pass over `known` */
    double record_due, record_last;
    uint64_t record_asked, record_done; /* passes that worker_wait_idle asked for */
};

#define WORKER_CLOSED 0x80000000u

/* --- worker.c --- */
void worker_wake(worker *w);

/* Starts a thread in a slot. Returns 0 or an errno, which becomes start_error. */
int worker_start_thread(worker *w, unsigned slot);

void worker_unref(worker *w);

/* met_drop for the worker's threads. To free a caller's memory takes its allocator's lock, under which the worker must not be
 * preempted: so callers do it. */
void worker_drop_met(worker *w, met *m);

int worker_closed(worker *w);

/* Around a hook other than bring; 0: the worker is stopped, do not call it. */
int worker_enter_hook(worker *w);
void worker_leave_hook(worker *w);

/* --- worker_thread.c --- */

/* The body of every thread; argument: the worker, with a reference. */
void *worker_thread(void *argument);

/* Takes all demands from their mailbox to their jobs, and the mailbox to `inbox` if that is empty. */
void thread_receive(worker *w);

/* Takes one met from `inbox` to the known; null if there is none. Other threads may drop it once the lock is given back. */
met *thread_open_mail(worker *w);

/* --- worker_place.c --- */
void place_capture(place *p);
void place_apply(const place *p, const jg_worker_options *options);

/* For a thread that is waited for: if it runs only when nobody else wants the processor, it shares that from here. As far as
 * it is allowed, which takes a privilege. */
void place_lift(pthread_t thread);

/* --- worker_jobs.c: which kernel next, and what becomes of it. All under the lock. --- */

/* What to tell through hooks.trace, once the lock is given back. */
typedef struct news {
    int event;          /* jg_event; -1: nothing */
    met *m;             /* a reference, or null */
    kernel_spec spec;
    ready_kernel *ready; /* READY: to be published afterwards */
} news;

uint64_t job_uses(const job *j);
void jobs_add_demand(worker *w, demand *d);
/* A met that is worth a kernel of its own. */
void jobs_add_met(worker *w, met *m, news *out);
/* A met with a job was told of again. */
void jobs_met_again(worker *w, met *m, news *out);
void jobs_remove_met(worker *w, met *m);
/* The next job that comes before sightings, or the next to be compiled; null: none now. It is RUNNING then. */
job *jobs_pick_first(worker *w, bring_how *how);
job *jobs_pick_wanted(worker *w);
/* What bring said about a running job; takes the image. */
void jobs_finish(worker *w, job *j, bring_how how, jg_status status, image *img, news *out);
/* When there may be something to do again; INFINITY: when told. */
double jobs_next(worker *w);
/* Whether no job is left that worker_wait_idle waits for, when no thread has anything to do just now. */
int jobs_idle(worker *w);
void jobs_clear(worker *w);

/* --- worker_counts.c: the known mets and what is recorded of them. Under the lock, which is given back around the hook. --- */

/* Takes over the reference. */
void counts_add(worker *w, met *m);
int counts_due(const worker *w);
int counts_over(const worker *w);
/* Records all uses that are not; then drops mets that nobody else has. */
void counts_record(worker *w);
/* Records and drops some mets to make room. */
void counts_forget(worker *w);
/* At the end, when no other thread is in a hook: records on the calling thread, keeping the lock. */
void counts_record_rest(worker *w);
void counts_clear(worker *w);

#endif
