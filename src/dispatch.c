/* What problems come down to: the values of the problem map, how one goes over to a better kernel, and how memory bounds
 * are kept. See context.h. */
#include "context.h"
#include "status.h"

#include <stdlib.h>
#include <string.h>

/* --- the list of dispatches whose kernel may be evicted --- */

/* entry: the dispatch's own. Another thread that finds the problem in the map may link it before the one that has put it
 * there. */
static void link_evictable(jg_context *c, dispatch *d, lru_entry *entry)
{
    pthread_mutex_lock(&c->keep_lock);
    d->entry = entry;
    if (!atomic_load(&dispatch_current(d)->kernel->kept) && c->evictable != d && !d->previous) {
        d->next = c->evictable;
        if (d->next) d->next->previous = d;
        c->evictable = d;
    }
    pthread_mutex_unlock(&c->keep_lock);
}

static void unlink_evictable(jg_context *c, dispatch *d)
{
    pthread_mutex_lock(&c->keep_lock);
    if (d->previous) d->previous->next = d->next;
    else if (c->evictable == d) c->evictable = d->next;
    if (d->next) d->next->previous = d->previous;
    d->previous = d->next = NULL;
    pthread_mutex_unlock(&c->keep_lock);
}

/* --- making and replacing --- */

void dispatch_bind(binding *b, const problem_key *key, const plan *chosen, lru_entry *kernel)
{
    b->entry = kernel;
    b->kernel = lru_value(kernel);
    b->plan = *chosen;
    b->is_generic = chosen->spec.form == JG_FORM_GENERIC;
    launch_prepare(&key->problem, chosen, &b->args);
}

/* Puts a kernel in the place of a fallback. Returns 1 if it took it, and its pin. */
static int replace_fallback(jg_context *c, dispatch *d, const problem_key *key, const plan *chosen, lru_entry *kernel)
{
    binding *b = malloc(sizeof *b), *expected = &d->first;
    if (!b) return 0;
    dispatch_bind(b, key, chosen, kernel);
    if (!atomic_compare_exchange_strong_explicit(&d->current, &expected, b, memory_order_acq_rel, memory_order_acquire)) {
        free(b);
        return 0;
    }
    atomic_fetch_add(&c->swaps, 1);
    context_trace(c, JG_EVENT_SWAP, key, &chosen->spec, 0);
    return 1;
}

static dispatch *make_dispatch(const problem_key *key, const plan *chosen, lru_entry *kernel, met *wanted)
{
    dispatch *d = calloc(1, sizeof *d);
    if (!d) return NULL;
    dispatch_bind(&d->first, key, chosen, kernel);
    d->is_fallback = chosen->spec.form != gemm_planned_form(&key->problem);
    d->met = wanted;
    atomic_init(&d->current, &d->first);
    return d;
}

lru_entry *dispatch_put(jg_context *c, const problem_key *key, const plan *chosen, lru_entry *kernel, met *wanted, int *swapped)
{
    int existed = 0;
    *swapped = 0;
    dispatch *d = make_dispatch(key, chosen, kernel, wanted);
    lru_entry *entry = d ? lru_insert(c->problems, key, sizeof *key, d, sizeof *d, &existed) : NULL;
    if (entry && !existed) {
        link_evictable(c, d, entry);
        return entry;
    }
    if (entry) {
        dispatch *present = lru_value(entry);
        if (!d->is_fallback && dispatch_is_provisional(present)) *swapped = replace_fallback(c, present, key, chosen, kernel);
        if (*swapped) link_evictable(c, present, entry);
    }
    if (!*swapped) lru_release(kernel);
    met_drop(wanted);
    free(d);
    return entry;
}

/* --- eviction --- */

void dispatch_drop(void *user, void *value)
{
    jg_context *c = user;
    dispatch *d = value;
    unlink_evictable(c, d);
    binding *current = dispatch_current(d);
    if (current != &d->first) {
        lru_release(current->entry);
        free(current);
    }
    lru_release(d->first.entry);
    met_drop(d->met);
    free(d);
}

void dispatch_trim(jg_context *c)
{
    if (lru_over(c->problems)) lru_trim(c->problems, dispatch_drop, c);
}

/* Takes the least recently used problem whose kernel may go out of the map. 0 if there is none. A problem that came into
 * use between the look and the deed is passed over. */
static int evict_one_problem(jg_context *c)
{
    for (int attempt = 0; attempt < 4; attempt++) {
        const dispatch *oldest = NULL;
        problem_key key;
        pthread_mutex_lock(&c->keep_lock);
        for (const dispatch *d = c->evictable; d; d = d->next) {
            if (lru_is_pinned(d->entry) || atomic_load(&dispatch_current(d)->kernel->kept)) continue;
            if (!oldest || lru_last_use(d->entry) < lru_last_use(oldest->entry)) oldest = d;
        }
        if (oldest) memcpy(&key, lru_key(oldest->entry), sizeof key);
        pthread_mutex_unlock(&c->keep_lock);
        if (!oldest) return 0;
        if (lru_remove(c->problems, &key, sizeof key, dispatch_drop, c)) return 1;
    }
    return 0;
}

/* What a trim has done so far. */
typedef struct trimming {
    jg_context *context;
    size_t unloaded;
    jg_status status; /* the first failure */
} trimming;

static void drop_kernel(void *user, void *value)
{
    trimming *t = user;
    context_trace(t->context, JG_EVENT_EVICT, NULL, &((const loaded_kernel *)value)->spec, 0);
    jg_status status = unload_kernel(&t->context->device, value);
    if (t->status == JG_OK) t->status = status;
    t->unloaded++;
    free(value);
}

static void close_kernel(void *user, void *value)
{
    unload_kernel(user, value);
    free(value);
}

/* A kernel is pinned by every problem that uses it. Evicting problems in order of use frees the kernels in the order
 * of their own last use. */
jg_status dispatch_trim_kernels(jg_context *c, size_t most, size_t *unloaded)
{
    *unloaded = 0;
    dispatch_trim(c);
    if (!lru_over(c->kernels)) return JG_OK;
    if (c->recent) recent_forget(c->recent);
    device_scope scope;
    RETURN_IF_ERROR(device_enter(&c->device, &scope));
    trimming t = {c, 0, JG_OK};
    while (t.unloaded < most && lru_over(c->kernels))
        if (!lru_evict_oldest(c->kernels, 1, drop_kernel, &t) && !evict_one_problem(c)) break;
    device_leave(&c->device, &scope);
    *unloaded = t.unloaded;
    return t.status;
}

void dispatch_destroy(jg_context *c)
{
    device_scope scope = {0};
    int entered = !context_is_cpu(c) && device_enter(&c->device, &scope) == JG_OK;
    if (c->problems) lru_destroy(c->problems, dispatch_drop, c);
    for (size_t i = 0; i < c->resident_count; i++) lru_release(c->resident[i]);
    free(c->resident);
    if (c->kernels) lru_destroy(c->kernels, close_kernel, &c->device);
    if (entered) device_leave(&c->device, &scope);
}
