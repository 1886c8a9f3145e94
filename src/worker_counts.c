/* What the worker knows of the mets it was told of, for the cache file's list of misses: which they are, and how many of their
 * uses are recorded already. A use is recorded once, whoever counts it and whenever; a process that is killed loses what
 * it met since the last pass. */
#include "worker_state.h"
#include "list.h"

#include <math.h>
#include <stdlib.h>

void counts_add(worker *w, met *m)
{
    m->notes.known = 1;
    DL_APPEND2(w->known, m, notes.known_prev, notes.known_next);
    w->known_count++;
    if (isinf(w->record_due))
        w->record_due = fmax(worker_now_ms() + WORKER_RECORD_FIRST_MS, w->record_last + WORKER_RECORD_EVERY_MS);
}

/* The reference goes to the caller. */
static void forget(worker *w, met *m)
{
    if (m->notes.job) jobs_remove_met(w, m);
    m->notes.known = 0;
    DL_DELETE2(w->known, m, notes.known_prev, notes.known_next);
    w->known_count--;
}

typedef struct batch {
    size_t count;
    met *mets[WORKER_BATCH];
    uint64_t counts[WORKER_BATCH];
} batch;

/* Uses not recorded yet, which are taken for recorded from here: so a batch is only begun where it will be written. */
static int add_to_batch(batch *b, met *m)
{
    const uint64_t uses = atomic_load_explicit(&m->uses, memory_order_relaxed), fresh = uses - m->notes.recorded;
    if (!fresh) return 0;
    m->notes.recorded = uses;
    b->mets[b->count] = m;
    b->counts[b->count++] = fresh;
    return 1;
}

/* Calls the hook, which the caller has entered, without the lock. */
static void write_batch(worker *w, const batch *b)
{
    pthread_mutex_unlock(&w->lock);
    if (b->count) w->hooks.record(w->hooks.user, b->mets, b->counts, b->count);
    worker_leave_hook(w);
    pthread_mutex_lock(&w->lock);
}

int counts_due(const worker *w)
{
    return !w->recording && worker_now_ms() >= w->record_due;
}

int counts_over(const worker *w)
{
    return !w->recording && w->known_count > w->forget_at;
}

static int is_abandoned(met *m)
{
    return atomic_load(&m->references) == 1 && !m->notes.job && !m->notes.judging;
}

/* The next batch of a pass; mets that only we have and that have nothing to record are dropped on the way. */
static void fill_batch(worker *w, met **cursor, batch *b)
{
    b->count = 0;
    while (*cursor && b->count < WORKER_BATCH) {
        met *m = *cursor;
        *cursor = m->notes.known_next;
        if (!add_to_batch(b, m) && is_abandoned(m)) {
            forget(w, m);
            worker_drop_met(w, m);
        }
    }
}

/* `recording` keeps other threads from taking mets out of the list, so that the place in it stays good without the lock. */
void counts_record(worker *w)
{
    const uint64_t asked = w->record_asked;
    met *cursor = w->known;
    batch b;
    w->recording = 1;
    while (cursor && worker_enter_hook(w)) {
        fill_batch(w, &cursor, &b);
        write_batch(w, &b);
        if (worker_closed(w)) return; /* worker_stop may have dropped them all */
    }
    w->recording = 0;
    w->record_done = asked;
    w->record_last = worker_now_ms();
    w->record_due = w->known ? w->record_last + WORKER_RECORD_EVERY_MS : INFINITY;
}

/* A met whose kernel is about to be made stays. */
static int may_go(const met *m)
{
    const job *j = m->notes.job;
    return !m->notes.judging && (!j || j->state == JOB_MET || j->state == JOB_NEW);
}

/* Oldest first. What is forgotten is told of again when its uses have doubled, so those with one use go first: most are never
 * met again. */
static size_t choose_victims(worker *w, uint64_t most_uses, met **victims, size_t count)
{
    for (met *m = w->known, *next; m && count < WORKER_BATCH; m = next) {
        next = m->notes.known_next;
        if (atomic_load(&m->uses) > most_uses || !may_go(m)) continue;
        forget(w, m);
        victims[count++] = m;
    }
    return count;
}

void counts_forget(worker *w)
{
    met *victims[WORKER_BATCH];
    batch b = {0};
    if (!worker_enter_hook(w)) return;
    size_t count = choose_victims(w, 1, victims, 0);
    count = choose_victims(w, UINT64_MAX, victims, count);
    w->forget_at = count ? WORKER_MAX_KNOWN : w->known_count + WORKER_BATCH;
    for (size_t i = 0; i < count; i++)
        add_to_batch(&b, victims[i]);
    w->recording = 1;
    write_batch(w, &b);
    w->recording = 0;
    for (size_t i = 0; i < count; i++)
        worker_drop_met(w, victims[i]);
}

void counts_record_rest(worker *w)
{
    batch b;
    for (met *cursor = w->known; cursor;) {
        fill_batch(w, &cursor, &b);
        if (b.count) w->hooks.record(w->hooks.user, b.mets, b.counts, b.count);
    }
}

void counts_clear(worker *w)
{
    while (w->known) {
        met *m = w->known;
        forget(w, m);
        worker_drop_met(w, m);
    }
}
