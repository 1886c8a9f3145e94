/* The queue of cp.async: what was read from global memory waits here until its lane waits for it.
 *
 * An entry holds the copies of one instruction's lanes. Lanes commit and wait each for itself, so every lane of an entry
 * has the number of its own group: how many groups the lane had committed when the copy was issued. */
#include "async.h"

#include "async_queue.h"
#include "shadow.h"

#include <stdlib.h>

struct async_queue {
    async_entry **entries; /* in the order issued; those from count on are spare */
    size_t count, allocated;
    uint32_t committed[PTX_LANES]; /* groups */
};

async_queue *async_create(void)
{
    return calloc(1, sizeof(async_queue));
}

void async_destroy(async_queue *q)
{
    if (!q) return;
    for (size_t n = 0; n < q->allocated; n++) free(q->entries[n]);
    free(q->entries);
    free(q);
}

void async_reset(async_queue *q)
{
    q->count = 0;
    memset(q->committed, 0, sizeof q->committed);
}

static int grow(async_queue *q)
{
    async_entry **entries = realloc(q->entries, (q->allocated + 1) * sizeof(async_entry *));
    if (!entries) return 0;
    q->entries = entries;
    entries[q->allocated] = malloc(sizeof(async_entry));
    if (!entries[q->allocated]) return 0;
    q->allocated++;
    return 1;
}

async_entry *async_push(async_queue *q, uint32_t bytes)
{
    if (q->count == q->allocated && !grow(q)) return NULL;
    async_entry *e = q->entries[q->count++];
    e->mask = 0;
    e->bytes = bytes;
    memcpy(e->group, q->committed, sizeof e->group);
    return e;
}

void async_commit(async_queue *q, uint32_t lanes)
{
    FOR_LANES(lanes, lane, q->committed[lane]++);
}

/* The copies of some lanes of an entry take place. */
static void complete(warp *w, async_entry *e, uint32_t lanes)
{
    block *b = w->block;
    FOR_LANES(lanes, lane, {
        memcpy(b->shared + e->offset[lane], e->data[lane], e->bytes);
        if (b->shadow) shadow_async_end(w, lane, e->offset[lane], e->bytes);
    });
    e->mask &= ~lanes;
}

/* Completes the lanes' copies of groups below limit[lane]; entries that have become empty go to the spare ones. */
static void complete_below(warp *w, uint32_t lanes, const uint32_t limit[PTX_LANES])
{
    async_queue *q = w->async;
    size_t kept = 0;
    for (size_t n = 0; n < q->count; n++) {
        async_entry *e = q->entries[n];
        uint32_t done = 0;
        FOR_LANES(lanes, lane, done |= (uint32_t)(e->group[lane] < limit[lane]) << lane);
        complete(w, e, done & e->mask);
        if (!e->mask) continue;
        q->entries[n] = q->entries[kept];
        q->entries[kept++] = e;
    }
    q->count = kept;
}

void async_wait(warp *w, uint32_t lanes, const uint32_t pending[PTX_LANES])
{
    const async_queue *q = w->async;
    uint32_t limit[PTX_LANES];
    for (unsigned lane = 0; lane < PTX_LANES; lane++)
        limit[lane] = q->committed[lane] > pending[lane] ? q->committed[lane] - pending[lane] : 0;
    complete_below(w, lanes, limit);
}

void async_finish(warp *w, uint32_t lanes)
{
    uint32_t limit[PTX_LANES];
    if (!w->async || !w->async->count) return;
    memset(limit, 0xff, sizeof limit);
    complete_below(w, lanes, limit);
}
