/* The kernels that a worker has to bring: which is next, and what becomes of it. One job a kernel, whoever wants it.
 *
 * A job's way: NEW (looked for in the files) -> MET (not there; waits until its problems have been used twice) -> WANTED
 * (compiled, most used first) -> handed out, and gone from here. What was demanded is DEMANDED at once. */
#include "worker_state.h"
#include "list.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* States whose jobs are counted as queued. */
static int is_queued(job_state state)
{
    return state == JOB_DEMANDED || state == JOB_NEW || state == JOB_WANTED || state == JOB_RUNNING;
}

static void enter(worker *w, job *j, job_state state)
{
    j->state = state;
    DL_APPEND(w->lists[state], j);
    w->counts[state]++;
    if (is_queued(state)) atomic_fetch_add_explicit(&w->queued, 1, memory_order_relaxed);
}

static void leave(worker *w, job *j)
{
    DL_DELETE(w->lists[j->state], j);
    w->counts[j->state]--;
    if (is_queued(j->state)) atomic_fetch_sub_explicit(&w->queued, 1, memory_order_relaxed);
}

static void move(worker *w, job *j, job_state state)
{
    leave(w, j);
    enter(w, j, state);
}

static void free_demands(worker *w, job *j)
{
    while (j->demands) {
        demand *d = j->demands;
        j->demands = d->next;
        worker_drop_met(w, d->m);
        free(d);
    }
}

static void detach_mets(job *j)
{
    while (j->mets) {
        met *m = j->mets;
        DL_DELETE2(j->mets, m, notes.job_prev, notes.job_next);
        m->notes.job = NULL;
    }
}

static void destroy(worker *w, job *j)
{
    leave(w, j);
    HASH_DEL(w->jobs, j);
    detach_mets(j);
    free_demands(w, j);
    free(j);
}

void jobs_clear(worker *w)
{
    job *j, *next;
    HASH_ITER(hh, w->jobs, j, next)
        destroy(w, j);
}

static job *find_or_create(worker *w, const kernel_spec *spec, const kernel_key *key, job_state state)
{
    job *j;
    HASH_FIND(hh, w->jobs, key->bytes, sizeof key->bytes, j);
    if (j || !(j = calloc(1, sizeof *j))) return j;
    j->key = *key;
    j->spec = *spec;
    HASH_ADD(hh, w->jobs, key.bytes, sizeof j->key.bytes, j);
    if (!j->hh.tbl) {
        free(j);
        return NULL;
    }
    enter(w, j, state);
    return j;
}

uint64_t job_uses(const job *j)
{
    uint64_t uses = 0;
    for (const met *m = j->mets; m; m = m->notes.job_next)
        uses += atomic_load_explicit(&m->uses, memory_order_relaxed);
    return uses;
}

static void note(news *out, jg_event event, const job *j, met *m)
{
    if (!m && j->mets) m = j->mets;
    if (!m && j->demands) m = j->demands->m;
    *out = (news){.event = (int)event, .m = m ? met_keep(m) : NULL, .spec = j->spec};
}

/* --- what comes in --- */

static int is_same_met(const met *a, const met *b)
{
    return a == b || (a && b && memcmp(&a->key, &b->key, sizeof a->key) == 0);
}

static int has_demand(const job *j, const demand *wanted)
{
    for (const demand *d = j->demands; d; d = d->next)
        if (is_same_met(d->m, wanted->m) && d->generic_set == wanted->generic_set) return 1;
    return 0;
}

static void discard(worker *w, demand *d)
{
    worker_drop_met(w, d->m);
    free(d);
}

/* A call may demand the same again and again, each time with a met of its own. */
void jobs_add_demand(worker *w, demand *d)
{
    kernel_key key;
    kernel_encode_key(&d->spec, &key);
    job *j = find_or_create(w, &d->spec, &key, JOB_DEMANDED);
    if (!j) atomic_fetch_add(&w->dropped, 1);
    if (!j || j->state == JOB_FAILED || has_demand(j, d)) {
        discard(w, d);
        return;
    }
    demand **end = &j->demands;
    while (*end)
        end = &(*end)->next;
    *end = d;
    d->next = NULL;
    if (j->state == JOB_NEW || j->state == JOB_MET || j->state == JOB_WANTED) move(w, j, JOB_DEMANDED);
}

/* Queues a job that was not found in the files, if it is used enough and there is room. m: who asks. */
static void consider(worker *w, job *j, met *m, news *out)
{
    if (job_uses(j) < 2 || !w->may_compile) return;
    if (w->counts[JOB_WANTED] < w->options.queue) {
        move(w, j, JOB_WANTED);
        return;
    }
    atomic_fetch_add(&w->dropped, 1);
    note(out, JG_EVENT_DROP, j, m);
}

void jobs_met_again(worker *w, met *m, news *out)
{
    job *j = m->notes.job;
    if (j->state != JOB_MET) return;
    if (w->may_compile) consider(w, j, m, out);
    else move(w, j, JOB_NEW); /* another process may have made it */
}

void jobs_add_met(worker *w, met *m, news *out)
{
    job *j = find_or_create(w, &m->spec, &m->kernel, JOB_NEW);
    if (!j) {
        atomic_fetch_add(&w->dropped, 1);
        return;
    }
    if (j->state == JOB_FAILED) return;
    m->notes.job = j;
    DL_APPEND2(j->mets, m, notes.job_prev, notes.job_next);
    jobs_met_again(w, m, out);
}

/* A job that nobody wants any more goes, but not from under a thread, and not what was made already. */
void jobs_remove_met(worker *w, met *m)
{
    job *j = m->notes.job;
    DL_DELETE2(j->mets, m, notes.job_prev, notes.job_next);
    m->notes.job = NULL;
    if (!j->mets && !j->demands && (j->state == JOB_MET || j->state == JOB_NEW)) destroy(w, j);
}

/* --- what is next --- */

/* Whether so many kernels are ready that no more can be. worker_take is told that we wait for it before the count is read
 * again, so that one of both sees the other. */
static int is_full(worker *w)
{
    for (int told = 0;; told = 1) {
        if (atomic_load(&w->ready_count) < WORKER_MAX_READY && atomic_load(&w->ready_bytes) < WORKER_MAX_READY_BYTES) return 0;
        if (told) return 1;
        atomic_store(&w->held_back, 1);
    }
}

static job *first_due(const worker *w, job_state state, double now)
{
    job *j = w->lists[state];
    while (j && j->not_before > now)
        j = j->next;
    return j;
}

static job *begin(worker *w, job *j)
{
    j->before = j->state;
    move(w, j, JOB_RUNNING);
    return j;
}

job *jobs_pick_first(worker *w, bring_how *how)
{
    const double now = worker_now_ms();
    job *j;
    *how = BRING_CACHED;
    if (!w->lists[JOB_DEMANDED] && !w->lists[JOB_NEW] && !w->lists[JOB_STORED]) return NULL;
    const int full = is_full(w);
    if (full && !w->has_store) return NULL;
    if ((j = first_due(w, JOB_DEMANDED, now))) {
        if (w->may_compile && now >= w->hold_until) *how = BRING_COMPILED;
        return begin(w, j);
    }
    if ((j = first_due(w, JOB_NEW, now))) return begin(w, j);
    if (!full && (j = first_due(w, JOB_STORED, now))) return begin(w, j);
    return NULL;
}

#define MINUTE_MS 60e3
#define ENOUGH 0.999999 /* of a token: what rounding may take */

static void refill_tokens(worker *w, double now)
{
    w->tokens = fmin(w->options.per_minute, w->tokens + (now - w->tokens_at) * w->options.per_minute / MINUTE_MS);
    w->tokens_at = now;
}

job *jobs_pick_wanted(worker *w)
{
    const double now = worker_now_ms();
    job *best = NULL;
    uint64_t most = 0;
    if (!w->lists[JOB_WANTED] || now < w->hold_until || (is_full(w) && !w->has_store)) return NULL;
    refill_tokens(w, now);
    if (w->tokens < ENOUGH) return NULL;
    for (job *j = w->lists[JOB_WANTED]; j; j = j->next) {
        const uint64_t uses = job_uses(j);
        if (j->not_before > now || (best && uses <= most)) continue;
        best = j;
        most = uses;
    }
    if (!best) return NULL;
    w->tokens -= 1;
    return begin(w, best);
}

static double earliest(const job *list)
{
    double first = INFINITY;
    for (const job *j = list; j; j = j->next)
        first = fmin(first, j->not_before);
    return first;
}

double jobs_next(worker *w)
{
    const double now = worker_now_ms();
    const int full = is_full(w);
    if (full && !w->has_store) return INFINITY;
    double wanted = earliest(w->lists[JOB_WANTED]);
    refill_tokens(w, now);
    if (w->tokens < ENOUGH) wanted = fmax(wanted, now + (1 - w->tokens) * MINUTE_MS / w->options.per_minute);
    wanted = fmax(wanted, w->hold_until);
    if (!full) wanted = fmin(wanted, earliest(w->lists[JOB_STORED]));
    return fmin(wanted, fmin(earliest(w->lists[JOB_DEMANDED]), earliest(w->lists[JOB_NEW])));
}

static int is_awaited(const job *list)
{
    for (const job *j = list; j; j = j->next)
        if (!j->failed) return 1;
    return 0;
}

/* To be asked where the threads have found nothing to do now: so what is left waits for a time, or for room. */
int jobs_idle(worker *w)
{
    if (is_full(w) && !w->has_store) return 1;
    if (is_awaited(w->lists[JOB_DEMANDED])) return 0;
    return worker_now_ms() < w->hold_until || !is_awaited(w->lists[JOB_WANTED]);
}

/* --- what became of it --- */

/* Failures that will not pass by waiting. */
static int is_lasting(jg_status status)
{
    return status != JG_ERR_NO_NVRTC && status != JG_ERR_NO_MEMORY && status != JG_ERR_FILE && status != JG_ERR_CACHE;
}

static double grow(double last, double first, double most)
{
    return last < first ? first : fmin(last * 2, most);
}

static void put_off(worker *w, job *j, int failed)
{
    if (j->failed != failed) j->delay = 0;
    j->failed = failed;
    j->delay = failed ? grow(j->delay, WORKER_FAIL_FIRST_MS, WORKER_FAIL_MOST_MS)
                      : grow(j->delay, WORKER_BUSY_FIRST_MS, WORKER_BUSY_MOST_MS);
    j->not_before = worker_now_ms() + j->delay;
    move(w, j, j->demands ? JOB_DEMANDED : j->before);
}

/* Only the key stays, so that mets and demands that come later are not taken up. */
static void give_up(worker *w, job *j)
{
    detach_mets(j);
    free_demands(w, j);
    move(w, j, JOB_FAILED);
    if (w->counts[JOB_FAILED] > WORKER_MAX_FAILED) destroy(w, w->lists[JOB_FAILED]);
}

static void fail(worker *w, job *j, jg_status status, news *out)
{
    note(out, JG_EVENT_FAIL, j, NULL);
    if (is_lasting(status)) {
        give_up(w, j);
        return;
    }
    put_off(w, j, 1);
    if (status != JG_ERR_NO_NVRTC) return;
    const double now = worker_now_ms();
    if (now < w->hold_until) return; /* another thread has found out as well */
    w->hold_delay = grow(w->hold_delay, WORKER_FAIL_FIRST_MS, WORKER_FAIL_MOST_MS);
    w->hold_until = j->not_before = now + w->hold_delay;
}

/* Not in the files. */
static void not_cached(worker *w, job *j, news *out)
{
    if (j->demands && w->may_compile) {
        j->failed = worker_now_ms() < w->hold_until;
        j->not_before = j->failed ? w->hold_until : 0;
        move(w, j, JOB_DEMANDED);
        return;
    }
    if (j->demands) note(out, JG_EVENT_FAIL, j, NULL);
    free_demands(w, j);
    if (!j->mets) {
        destroy(w, j);
        return;
    }
    move(w, j, JOB_MET);
    if (out->event < 0) consider(w, j, NULL, out);
}

/* All that want the job's kernel, each once; a demand's met may be one of the job's. */
static size_t gather(job *j, met **mets)
{
    size_t count = 0;
    for (met *m = j->mets; m; m = m->notes.job_next) {
        m->notes.served = 1;
        mets[count++] = met_keep(m);
    }
    for (const demand *d = j->demands; d; d = d->next) {
        size_t i = 0;
        while (i < count && mets[i] != d->m)
            i++;
        if (!d->m || i < count) continue;
        if (memcmp(&d->m->kernel, &j->key, sizeof j->key) == 0) d->m->notes.served = 1;
        mets[count++] = met_keep(d->m);
    }
    return count;
}

static ready_kernel *make_ready(const job *j, const image *img)
{
    size_t most = 0;
    for (const met *m = j->mets; m; m = m->notes.job_next)
        most++;
    for (const demand *d = j->demands; d; d = d->next)
        most++;
    ready_kernel *r = calloc(1, sizeof *r);
    if (r && most && !(r->mets = calloc(most, sizeof *r->mets))) {
        free(r);
        r = NULL;
    }
    if (!r) return NULL;
    r->spec = j->spec;
    r->img = *img;
    for (const demand *d = j->demands; d; d = d->next)
        r->generic_set |= d->generic_set;
    return r;
}

static void hand_out(worker *w, job *j, image *img, news *out)
{
    if (w->has_store && is_full(w)) {
        image_free(img);
        move(w, j, JOB_STORED);
        return;
    }
    ready_kernel *r = make_ready(j, img);
    if (!r) {
        image_free(img);
        fail(w, j, JG_ERR_NO_MEMORY, out);
        return;
    }
    note(out, JG_EVENT_READY, j, NULL);
    r->met_count = gather(j, r->mets);
    out->ready = r;
    atomic_fetch_add(&w->ready_bytes, img->cubin_bytes + img->ptx_bytes);
    atomic_fetch_add(&w->ready_count, 1);
    destroy(w, j);
}

void jobs_finish(worker *w, job *j, bring_how how, jg_status status, image *img, news *out)
{
    if (status == JG_OK) {
        if (how == BRING_COMPILED) w->hold_delay = 0;
        hand_out(w, j, img, out);
    } else if (status != JG_ERR_NOT_READY) {
        fail(w, j, status, out);
    } else if (how == BRING_CACHED) {
        not_cached(w, j, out);
    } else {
        if (j->before == JOB_WANTED) w->tokens += 1; /* nothing was compiled */
        put_off(w, j, 0);
    }
}
