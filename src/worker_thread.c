/* What a worker thread does: one step after another, each begun and ended under the lock, with at most one hook called between.
 *
 * The order of steps is the worker's policy: counts that are due, demands, what the files may have, new sightings, and then the
 * compile that most launches wait for. */
#include "worker_state.h"

#include <math.h>
#include <stdio.h>
#include <time.h>

/* --- mail --- */

static void receive_demands(worker *w)
{
    demand *list = atomic_exchange(&w->demands, NULL), *in_order = NULL;
    while (list) {
        demand *next = list->next;
        list->next = in_order;
        in_order = list;
        list = next;
    }
    while (in_order) {
        demand *next = in_order->next;
        jobs_add_demand(w, in_order);
        atomic_fetch_sub(&w->demand_count, 1);
        in_order = next;
    }
}

/* The inbox is not added to, so that what callers can pile up is bounded by one count. */
void thread_receive(worker *w)
{
    if (atomic_load_explicit(&w->demands, memory_order_relaxed)) receive_demands(w);
    if (w->inbox) return;
    for (met *list = atomic_exchange(&w->mail, NULL), *next; list; list = next) {
        next = list->next;
        list->next = w->inbox;
        w->inbox = list;
    }
}

met *thread_open_mail(worker *w)
{
    met *m = w->inbox;
    if (!m) return NULL;
    w->inbox = m->next;
    atomic_fetch_sub(&w->mail_count, 1);
    atomic_exchange(&m->posted, 0); /* from here it may be posted again; uses counted before are seen below */
    if (m->notes.known) worker_drop_met(w, m);
    else counts_add(w, m);
    return m;
}

/* --- steps --- */

/* Tells the trace hook what has happened, without the lock, and only then lets a kernel be taken. */
static void tell(worker *w, news *n)
{
    if (n->event < 0) return;
    pthread_mutex_unlock(&w->lock);
    if (worker_enter_hook(w)) {
        w->hooks.trace(w->hooks.user, (jg_event)n->event, n->m, &n->spec);
        worker_leave_hook(w);
    }
    worker_drop_met(w, n->m);
    ready_kernel *r = n->ready;
    if (r) {
        r->next = atomic_load_explicit(&w->made, memory_order_relaxed);
        while (!atomic_compare_exchange_weak(&w->made, &r->next, r))
            ;
    }
    pthread_mutex_lock(&w->lock);
}

/* A recorded gain decides, else the plan's estimate. */
static int is_worth_it(worker *w, met *m)
{
    double gain = 0;
    const int pays = m->pays;
    pthread_mutex_unlock(&w->lock);
    if (worker_enter_hook(w)) {
        gain = w->hooks.gain(w->hooks.user, &m->key);
        worker_leave_hook(w);
    }
    pthread_mutex_lock(&w->lock);
    return gain > 0 ? gain >= WORKER_LEAST_GAIN : pays;
}

static void judge(worker *w, met *m)
{
    news n = {.event = -1};
    if (m->notes.served || m->notes.judging) return;
    if (m->notes.job) {
        jobs_met_again(w, m, &n);
    } else {
        m->notes.judging = 1;
        const int worth = is_worth_it(w, m);
        if (worker_closed(w)) return; /* it may be gone */
        m->notes.judging = 0;
        if (worth && !m->notes.served) jobs_add_met(w, m, &n); /* another thread may have handed it a demanded kernel */
    }
    tell(w, &n);
}

/* Before a thread goes away for long: sees to it that another one takes care of what is there or comes meanwhile. */
static void call_help(worker *w)
{
    if (w->sleeping) sem_post(&w->wake);
    else if (w->spawned < w->options.threads && worker_now_ms() >= w->start_again && worker_start_thread(w, w->spawned) == 0)
        w->spawned++;
}

/* The job may be gone when bring returns, with all that it wants: so nothing of it is used meanwhile. */
static void bring(worker *w, job *j, bring_how how)
{
    const kernel_spec spec = j->spec;
    char label[JG_PROBLEM_TEXT_BYTES] = "generic";
    const met *m = j->mets ? j->mets : j->demands ? j->demands->m : NULL;
    if (m) problem_key_format(&m->key, label, sizeof label);
    image img = {0};
    news n = {.event = -1};
    call_help(w);
    pthread_mutex_unlock(&w->lock);
    jg_status status = JG_ERR_CANCELLED;
    if (!worker_closed(w)) status = w->hooks.bring(w->hooks.user, &spec, label, how, &img);
    pthread_mutex_lock(&w->lock);
    if (worker_closed(w)) {
        image_free(&img);
        return;
    }
    jobs_finish(w, j, how, status, &img, &n);
    tell(w, &n);
}

/* Does one thing; 0 if there is nothing to do now. */
static int step(worker *w)
{
    bring_how how;
    job *j;
    met *m;
    if (counts_due(w)) counts_record(w);
    else if (counts_over(w)) counts_forget(w);
    else if ((j = jobs_pick_first(w, &how))) bring(w, j, how);
    else if ((m = thread_open_mail(w))) judge(w, m);
    else if ((j = jobs_pick_wanted(w))) bring(w, j, BRING_COMPILED);
    else if (!w->recording && w->record_asked > w->record_done) counts_record(w);
    else return 0;
    return 1;
}

/* --- the thread --- */

static void sleep_for(worker *w, double ms)
{
    struct timespec then;
    clock_gettime(CLOCK_MONOTONIC, &then);
    const double ns = (double)then.tv_nsec + fmin(ms, 1e9) * 1e6 + 1;
    then.tv_sec += (time_t)(ns / 1e9);
    then.tv_nsec = (long)fmod(ns, 1e9);
    w->sleeping++;
    pthread_mutex_unlock(&w->lock);
    if (isinf(ms)) sem_wait(&w->wake);
    else sem_clockwait(&w->wake, CLOCK_MONOTONIC, &then);
    pthread_mutex_lock(&w->lock);
    atomic_exchange(&w->wake_posted, 0); /* who puts it up from here on has posted; who found it up is seen by the next look */
    w->sleeping--;
}

/* New sizes come in bursts, and to wake a thread costs a caller 10 us: so a thread that has done something first naps with the
 * flag up, which tells callers that somebody will look. */
static void rest(worker *w, int has_worked)
{
    const double due = fmin(w->recording ? INFINITY : w->record_due, jobs_next(w));
    const double ms = fmax(due - worker_now_ms(), 1);
    const int naps = has_worked && worker_nap_ms > 0;
    if (naps) atomic_store(&w->wake_posted, 1);
    if (w->waiting) pthread_cond_broadcast(&w->rested);
    sleep_for(w, naps ? fmin(ms, worker_nap_ms) : ms);
}

void *worker_thread(void *argument)
{
    worker *w = argument;
    place_apply(&w->place, &w->options);
    pthread_setname_np(pthread_self(), "jitgemm-worker");
    pthread_mutex_lock(&w->lock);
    int has_worked = 0; /* since it slept */
    while (!worker_closed(w)) {
        thread_receive(w);
        w->busy++;
        const int did = step(w);
        w->busy--;
        if (!did) rest(w, has_worked);
        has_worked = did;
    }
    pthread_mutex_unlock(&w->lock);
    worker_unref(w);
    return NULL;
}
