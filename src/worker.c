/* The callers' side of a worker: news and demands in, ready kernels out, and its end.
 *
 * What a launch can come to takes no lock, so that a worker thread that is preempted anywhere holds up nobody: mailboxes that are
 * pushed by compare-and-swap and emptied by exchange (so nothing can be popped and pushed again under a pusher's eyes). */
#include "worker_state.h"

#include "clock.h"
#include "compile.h"
#include "status.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

double (*worker_now_ms)(void) = clock_now_ms;
int (*worker_spawn)(pthread_t *thread, void *(*body)(void *), void *argument) = compile_spawn;
double worker_stop_ms = 50;
double worker_nap_ms = 10;

worker *worker_create(const jg_worker_options *options, int may_compile, int has_store, const worker_hooks *hooks)
{
    worker *w = calloc(1, sizeof *w);
    pthread_condattr_t monotonic;
    if (!w || pthread_condattr_init(&monotonic) != 0) {
        free(w);
        return NULL;
    }
    w->options = *options;
    if (w->options.threads < 1) w->options.threads = 1;
    if (w->options.threads > WORKER_MAX_THREADS) w->options.threads = WORKER_MAX_THREADS;
    w->may_compile = may_compile;
    w->has_store = has_store;
    w->hooks = *hooks;
    w->process = getpid();
    w->tokens = options->per_minute;
    w->tokens_at = worker_now_ms();
    w->record_due = INFINITY;
    w->record_last = -INFINITY;
    w->spawned = 1; /* slot 0 is a caller's to start */
    w->forget_at = WORKER_MAX_KNOWN;
    atomic_init(&w->references, 1);
    place_capture(&w->place);
    sem_init(&w->wake, 0, 0);
    pthread_mutex_init(&w->lock, NULL);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&w->rested, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return w;
}

/* --- telling --- */

/* Before a thread sleeps it takes the flag down and then looks into the mailboxes, so whoever finds the flag up is seen. */
void worker_wake(worker *w)
{
    if (!atomic_exchange(&w->wake_posted, 1)) sem_post(&w->wake);
}

int worker_start_thread(worker *w, unsigned slot)
{
    atomic_fetch_add(&w->references, 1);
    atomic_fetch_add(&w->threads, 1);
    const int error = worker_spawn(&w->slots[slot].id, worker_thread, w);
    atomic_store(&w->start_error, error);
    if (error) {
        atomic_fetch_sub(&w->threads, 1);
        atomic_fetch_sub(&w->references, 1);
        w->start_again = worker_now_ms() + WORKER_START_AGAIN_MS;
    } else if (atomic_exchange(&w->slots[slot].state, SLOT_STARTED) == SLOT_ABANDONED) {
        pthread_detach(w->slots[slot].id);
    }
    return error;
}

/* Makes sure that there is a thread, or that another caller is just starting it; 0 if there cannot be. */
static int has_thread(worker *w)
{
    if (atomic_load_explicit(&w->start, memory_order_relaxed) == START_DONE) return 1;
    int none = START_NONE;
    if (!atomic_compare_exchange_strong(&w->start, &none, START_UNDER_WAY)) return 1;
    const int started = worker_now_ms() >= w->start_again && worker_start_thread(w, 0) == 0;
    atomic_store(&w->start, started ? START_DONE : START_NONE);
    return started;
}

void worker_drop_met(worker *w, met *m)
{
    if (!m || atomic_fetch_sub(&m->references, 1) != 1) return;
    m->next = atomic_load_explicit(&w->dead, memory_order_relaxed);
    while (!atomic_compare_exchange_weak(&w->dead, &m->next, m))
        ;
}

/* A few at a time, and one caller at a time, so that a launch is not held up by what a thousand others have left behind. */
static void bury(worker *w, int most)
{
    if (!atomic_load_explicit(&w->dead, memory_order_relaxed) && !atomic_load_explicit(&w->has_grave, memory_order_relaxed))
        return;
    if (atomic_flag_test_and_set(&w->burying)) return;
    if (!w->grave) w->grave = atomic_exchange(&w->dead, NULL);
    for (met *m; most > 0 && (m = w->grave); most--) {
        w->grave = m->next;
        free(m);
    }
    atomic_store(&w->has_grave, w->grave != NULL);
    atomic_flag_clear(&w->burying);
}

static int drop_news(worker *w)
{
    atomic_fetch_add_explicit(&w->dropped, 1, memory_order_relaxed);
    return 1;
}

int worker_tell(worker *w, met *m)
{
    bury(w, 8);
    if (!has_thread(w)) return drop_news(w);
    if (atomic_exchange(&m->posted, 1)) return 0; /* not read yet: the worker will see the use counted just now */
    if (atomic_fetch_add(&w->mail_count, 1) >= WORKER_MAX_MAIL) {
        atomic_fetch_sub(&w->mail_count, 1);
        atomic_store(&m->posted, 0);
        return drop_news(w);
    }
    met_keep(m);
    m->next = atomic_load_explicit(&w->mail, memory_order_relaxed);
    while (!atomic_compare_exchange_weak(&w->mail, &m->next, m))
        ;
    worker_wake(w);
    return 0;
}

jg_status worker_demand(worker *w, const kernel_spec *spec, met *m, int generic_set)
{
    if (!has_thread(w)) {
        drop_news(w);
        return status_set(JG_ERR_NO_MEMORY, "cannot start the worker thread: %s", strerror(atomic_load(&w->start_error)));
    }
    demand *d = calloc(1, sizeof *d);
    if (!d || atomic_fetch_add(&w->demand_count, 1) >= WORKER_MAX_DEMANDS) {
        if (d) atomic_fetch_sub(&w->demand_count, 1);
        free(d);
        drop_news(w);
        return status_set(JG_ERR_NO_MEMORY, "no room to ask the worker for a kernel");
    }
    *d = (demand){.spec = *spec, .m = m ? met_keep(m) : NULL, .generic_set = generic_set};
    d->next = atomic_load_explicit(&w->demands, memory_order_relaxed);
    while (!atomic_compare_exchange_weak(&w->demands, &d->next, d))
        ;
    worker_wake(w);
    return JG_OK;
}

/* --- ready kernels --- */

void ready_free(ready_kernel *r)
{
    if (!r) return;
    for (size_t i = 0; i < r->met_count; i++)
        met_drop(r->mets[i]);
    free(r->mets);
    image_free(&r->img);
    free(r);
}

static void free_list(ready_kernel *list)
{
    while (list) {
        ready_kernel *next = list->next;
        ready_free(list);
        list = next;
    }
}

/* Sums a list up and returns its last. */
static ready_kernel *measure(ready_kernel *list, uint64_t *count, uint64_t *bytes)
{
    ready_kernel *last = NULL;
    *count = *bytes = 0;
    for (; list; last = list, list = list->next) {
        *count += 1;
        *bytes += list->img.cubin_bytes + list->img.ptx_bytes;
    }
    return last;
}

/* Both lists, in order. */
static ready_kernel *take_all(worker *w)
{
    ready_kernel *given = atomic_exchange(&w->given, NULL), *made = atomic_exchange(&w->made, NULL), *in_order = NULL;
    while (made) {
        ready_kernel *next = made->next;
        made->next = in_order;
        in_order = made;
        made = next;
    }
    if (!given) return in_order;
    ready_kernel *last = given;
    while (last->next)
        last = last->next;
    last->next = in_order;
    return given;
}

ready_kernel *worker_take(worker *w)
{
    uint64_t count, bytes;
    if (!atomic_load_explicit(&w->ready_count, memory_order_relaxed)) return NULL;
    ready_kernel *list = take_all(w);
    measure(list, &count, &bytes);
    atomic_fetch_sub(&w->ready_bytes, bytes);
    atomic_fetch_sub(&w->ready_count, count);
    if (count && atomic_load(&w->held_back) && atomic_exchange(&w->held_back, 0)) worker_wake(w);
    return list;
}

void worker_give(worker *w, ready_kernel *rest)
{
    uint64_t count, bytes;
    ready_kernel *last = measure(rest, &count, &bytes), *none;
    if (!last) return;
    atomic_fetch_add(&w->ready_bytes, bytes);
    atomic_fetch_add(&w->ready_count, count);
    do { /* what another thread has given back meanwhile goes behind */
        last->next = atomic_exchange(&w->given, NULL);
        while (last->next)
            last = last->next;
        none = NULL;
    } while (!atomic_compare_exchange_strong(&w->given, &none, rest));
}

/* --- waiting, counting --- */

void worker_get_stats(worker *w, worker_stats *out)
{
    *out = (worker_stats){
        .queued = atomic_load(&w->queued),
        .ready = atomic_load(&w->ready_count),
        .dropped = atomic_load(&w->dropped),
        .threads = atomic_load(&w->threads),
        .start_error = atomic_load(&w->start_error),
    };
}

/* A thread records only when it has read all mail, and gives back the lock only when busy or with nothing left to do. */
static int is_idle(worker *w, uint64_t asked)
{
    return !w->busy && w->record_done >= asked && jobs_idle(w);
}

/* Waits in slices: a start that fails, or a minute that goes by, wakes nobody. */
#define SLICE_MS 50.0

int worker_wait_idle(worker *w, double timeout_ms)
{
    const double end = timeout_ms > 0 ? clock_now_ms() + timeout_ms : INFINITY;
    if (w->process != getpid()) return 1;
    pthread_mutex_lock(&w->lock);
    const uint64_t asked = ++w->record_asked;
    w->waiting++;
    atomic_store(&w->wake_posted, 1);
    sem_post(&w->wake); /* also from a nap */
    int idle, expired = 0;
    while (!(idle = is_idle(w, asked) || atomic_load(&w->start) == START_NONE) && !expired) {
        const double until = fmin(end, clock_now_ms() + SLICE_MS);
        const struct timespec then = {(time_t)(until / 1e3), (long)(fmod(until, 1e3) * 1e6)};
        pthread_cond_timedwait(&w->rested, &w->lock, &then);
        expired = clock_now_ms() >= end;
    }
    w->waiting--;
    pthread_mutex_unlock(&w->lock);
    return idle;
}

/* --- the end --- */

int worker_closed(worker *w)
{
    return (atomic_load(&w->hook_gate) & WORKER_CLOSED) != 0;
}

int worker_enter_hook(worker *w)
{
    if (!(atomic_fetch_add(&w->hook_gate, 1) & WORKER_CLOSED)) return 1;
    worker_leave_hook(w);
    return 0;
}

void worker_leave_hook(worker *w)
{
    atomic_fetch_sub(&w->hook_gate, 1);
}

static void clear_mail(worker *w)
{
    demand *d = atomic_exchange(&w->demands, NULL);
    while (d) {
        demand *next = d->next;
        met_drop(d->m);
        free(d);
        d = next;
    }
    met *lists[] = {w->inbox, atomic_exchange(&w->mail, NULL)};
    w->inbox = NULL;
    for (size_t i = 0; i < 2; i++)
        while (lists[i]) {
            met *next = lists[i]->next;
            met_drop(lists[i]);
            lists[i] = next;
        }
}

/* All that the worker holds, but not itself: an abandoned thread may come back to it. */
static void clear(worker *w)
{
    jobs_clear(w);
    counts_clear(w);
    clear_mail(w);
    free_list(take_all(w));
    for (int i = 0; i < 2; i++)
        bury(w, INT_MAX); /* who was taken to the grave, and who was not yet */
}

void worker_unref(worker *w)
{
    if (atomic_fetch_sub(&w->references, 1) != 1) return;
    const worker_hooks hooks = w->hooks;
    clear(w);
    sem_destroy(&w->wake);
    pthread_cond_destroy(&w->rested);
    pthread_mutex_destroy(&w->lock);
    free(w);
    hooks.release(hooks.user);
}

static void nap(double ms)
{
    nanosleep(&(struct timespec){0, (long)(ms * 1e6)}, NULL);
}

/* Joins the threads that have ended; returns how many are left. A thread starts others only before it ends, so what a
 * thread has started is seen at the latest in the round after it was joined. */
static unsigned join_ended(worker *w, unsigned *joined)
{
    unsigned left;
    int found;
    do {
        left = 0;
        found = 0;
        for (unsigned i = 0; i < WORKER_MAX_THREADS; i++) {
            if (*joined & 1u << i || atomic_load(&w->slots[i].state) != SLOT_STARTED) continue;
            if (pthread_tryjoin_np(w->slots[i].id, NULL) == 0) {
                *joined |= 1u << i;
                found = 1;
            } else {
                left++;
            }
        }
    } while (found);
    return left;
}

/* Threads that have not ended in time, and are in no hook of the caller's, are on their own from here. */
static void join_threads(worker *w, double end)
{
    unsigned joined = 0;
    double pause = 0.05;
    while (join_ended(w, &joined) > 0) {
        if (clock_now_ms() >= end && atomic_load(&w->hook_gate) == WORKER_CLOSED) break;
        nap(pause);
        pause = fmin(pause * 1.5, 1);
    }
    for (unsigned i = 0; i < WORKER_MAX_THREADS; i++)
        if (!(joined & 1u << i) && atomic_exchange(&w->slots[i].state, SLOT_ABANDONED) == SLOT_STARTED)
            pthread_detach(w->slots[i].id);
}

/* A thread that was preempted under the lock may keep it for long: then the counts are lost, not the time. */
static int lock_until(worker *w, double end)
{
    while (pthread_mutex_trylock(&w->lock) != 0) {
        if (clock_now_ms() >= end) return 0;
        nap(0.2);
    }
    return 1;
}

void worker_stop(worker *w)
{
    if (!w || w->process != getpid()) return;
    const double end = clock_now_ms() + worker_stop_ms;
    atomic_fetch_or(&w->hook_gate, WORKER_CLOSED);
    for (unsigned i = 0; i < WORKER_MAX_THREADS; i++) {
        sem_post(&w->wake);
        if (atomic_load(&w->slots[i].state) == SLOT_STARTED) place_lift(w->slots[i].id);
    }
    join_threads(w, end);
    if (lock_until(w, end)) {
        while (atomic_load(&w->mail) || w->inbox) {
            thread_receive(w);
            thread_open_mail(w);
        }
        counts_record_rest(w);
        clear(w);
        pthread_mutex_unlock(&w->lock);
    }
    worker_unref(w);
}
