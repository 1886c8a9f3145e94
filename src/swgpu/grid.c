/* A launch: its blocks over worker threads, and in each block its warps from barrier to barrier. */
#include "async.h"
#include "exec.h"
#include "shadow.h"

#include <fenv.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#define MAX_WORKERS 64

typedef struct work {
    launch *launch;
    const uint64_t *list; /* null: blocks 0 to count - 1 */
    uint64_t count;
    atomic_ullong next;
    pthread_mutex_t lock; /* the launch's totals */
} work;

/* ---- a worker's block: allocated once, used for one block after another ---- */

static void free_block(block *b)
{
    for (uint32_t n = 0; b->warps && n < b->warp_count; n++) {
        free(b->warps[n].registers);
        free(b->warps[n].local);
        async_destroy(b->warps[n].async);
    }
    free(b->warps);
    free(b->shared);
    shadow_destroy(b->shadow);
}

static int allocate_block(block *b, launch *l)
{
    const size_t slot_bytes = PTX_LANES * sizeof(uint32_t);
    memset(b, 0, sizeof *b);
    b->launch = l;
    b->warp_count = (l->block_threads + PTX_LANES - 1) / PTX_LANES;
    b->warps = calloc(b->warp_count, sizeof *b->warps);
    b->shared = malloc(l->shared_bytes + 1u);
    if (!b->warps || !b->shared) return 0;
    if (l->checks & (CHECK_RACE | CHECK_UNINITIALISED)) {
        b->shadow = shadow_create(l->shared_bytes);
        if (!b->shadow) return 0;
    }
    for (uint32_t n = 0; n < b->warp_count; n++) {
        warp *w = &b->warps[n];
        w->block = b;
        w->index = n;
        w->counters = &b->counters;
        w->async = async_create();
        w->local = malloc(l->kernel->local_bytes * PTX_LANES + 1);
        w->registers = aligned_alloc(64, l->kernel->slots * slot_bytes);
        if (!w->async || !w->local || !w->registers) return 0;
    }
    return 1;
}

static void fill32(warp *w, uint32_t slot, uint32_t value)
{
    for (unsigned lane = 0; lane < PTX_LANES; lane++) slot32(w, slot)[lane] = value;
}

static void fill_constants(warp *w, const launch *l)
{
    for (uint32_t n = 0; n < l->kernel->constant_count; n++) {
        const ptx_constant *c = &l->kernel->constants[n];
        const uint64_t value = c->value + (c->symbol >= 0 ? l->variable_addresses[c->symbol] : 0);
        if (!c->wide) fill32(w, c->slot, (uint32_t)value);
        else
            for (unsigned lane = 0; lane < PTX_LANES; lane++) slot64(w, c->slot)[lane] = value;
    }
}

static void fill_specials(warp *w, const launch *l, uint64_t linear_block)
{
    const block *b = w->block;
    for (unsigned lane = 0; lane < PTX_LANES; lane++) {
        uint32_t t[3];
        thread_of_lane(w, lane, t);
        for (uint32_t axis = 0; axis < 3; axis++) slot32(w, SPECIAL_TID_X + axis)[lane] = t[axis];
        slot32(w, SPECIAL_LANEID)[lane] = lane;
        slot32(w, SPECIAL_LANEMASK_EQ)[lane] = 1u << lane;
        slot32(w, SPECIAL_LANEMASK_LT)[lane] = (1u << lane) - 1;
        slot32(w, SPECIAL_LANEMASK_LE)[lane] = (1u << lane) | ((1u << lane) - 1);
        slot32(w, SPECIAL_LANEMASK_GE)[lane] = ~((1u << lane) - 1);
        slot32(w, SPECIAL_LANEMASK_GT)[lane] = ~((1u << lane) | ((1u << lane) - 1));
    }
    for (uint32_t axis = 0; axis < 3; axis++) {
        fill32(w, SPECIAL_NTID_X + axis, l->threads[axis]);
        fill32(w, SPECIAL_CTAID_X + axis, b->index[axis]);
        fill32(w, SPECIAL_NCTAID_X + axis, l->grid[axis]);
    }
    fill32(w, SPECIAL_WARPID, w->index);
    fill32(w, SPECIAL_NWARPID, b->warp_count);
    fill32(w, SPECIAL_SMID, (uint32_t)(linear_block % l->sm_count));
    fill32(w, SPECIAL_NSMID, l->sm_count);
    fill32(w, SPECIAL_DYNAMIC_SMEM_SIZE, l->dynamic_shared_bytes);
    fill32(w, SPECIAL_TOTAL_SMEM_SIZE, l->shared_bytes);
}

static void start_block(block *b, uint64_t linear)
{
    launch *l = b->launch;
    b->index[0] = (uint32_t)(linear % l->grid[0]);
    b->index[1] = (uint32_t)(linear / l->grid[0] % l->grid[1]);
    b->index[2] = (uint32_t)(linear / l->grid[0] / l->grid[1]);
    memset(b->arrived, 0, sizeof b->arrived);
    memset(b->arrived_clock, 0, sizeof b->arrived_clock);
    /* What a kernel reads without having written it should look wrong: NaN in every type. */
    memset(b->shared, 0xff, l->shared_bytes);
    if (b->shadow) shadow_reset(b->shadow, l->shared_bytes);
    for (uint32_t n = 0; n < b->warp_count; n++) {
        warp *w = &b->warps[n];
        memset(w->registers, 0, (size_t)l->kernel->slots * PTX_LANES * sizeof(uint32_t));
        memset(w->local, 0xff, l->kernel->local_bytes * PTX_LANES);
        fill_constants(w, l);
        fill_specials(w, l, linear);
        async_reset(w->async);
        warp_start(w, l->block_threads - n * PTX_LANES);
    }
}

/* ---- barriers ---- */

static uint32_t warps_at(const block *b, uint32_t id)
{
    uint32_t mask = 0;
    for (uint32_t n = 0; n < b->warp_count; n++)
        if (b->warps[n].at_barrier && b->warps[n].barrier_id == id) mask |= 1u << n;
    return mask;
}

/* Lets the warps at a barrier go on if all that it waits for are there. A barrier of no count wants every warp. */
static int complete_barrier(block *b, uint32_t id, uint32_t threads)
{
    const uint32_t waiting = warps_at(b, id), here = waiting | b->arrived[id];
    const uint32_t wanted = threads ? threads / PTX_LANES : b->warp_count;
    if ((uint32_t)__builtin_popcount(here) < wanted) return 0;
    for (uint32_t n = 0; n < b->warp_count; n++)
        if (waiting >> n & 1) b->warps[n].at_barrier = 0;
    b->arrived[id] = 0;
    b->counters.barriers++;
    if (b->shadow) shadow_barrier(b, waiting, b->arrived_clock[id]);
    memset(b->arrived_clock[id], 0, sizeof b->arrived_clock[id]);
    return 1;
}

int block_arrive(warp *w, const ptx_instruction *i, unsigned lane, uint32_t id, uint32_t threads)
{
    block *b = w->block;
    if (b->arrived[id] >> w->index & 1)
        return fault_raise(w, i, lane, FAULT_BARRIER, "warp %u arrives twice at barrier %u", w->index, id);
    b->arrived[id] |= 1u << w->index;
    shadow_arrive(w, b->arrived_clock[id]);
    complete_barrier(b, id, threads);
    return 0;
}

/* No warp can go on: some wait at a barrier that the others have passed by, or wait at another. */
static void report_barrier(block *b, uint32_t done)
{
    for (uint32_t n = 0; n < b->warp_count; n++) {
        warp *w = &b->warps[n];
        if (!w->at_barrier) continue;
        const ptx_instruction *i = &b->launch->kernel->instructions[w->fragments[0].pc - 1];
        const uint32_t all = b->warp_count == 32 ? FULL_MASK : (1u << b->warp_count) - 1;
        const uint32_t others = ~(warps_at(b, w->barrier_id) | done) & all;
        fault_raise(w, i, (unsigned)__builtin_ctz(w->live), FAULT_BARRIER,
                    "warps 0x%x wait at barrier %u, which warps 0x%x never reach: they have exited%s", warps_at(b, w->barrier_id),
                    w->barrier_id, done | others, others ? " or wait elsewhere" : "");
        return;
    }
}

static void run_block(block *b)
{
    uint32_t done = 0;
    for (;;) {
        int moved = 0;
        for (uint32_t n = 0; n < b->warp_count; n++) {
            warp *w = &b->warps[n];
            if (done >> n & 1 || w->at_barrier) continue;
            moved = 1;
            switch (warp_run(w)) {
            case WARP_FAULT: return;
            case WARP_DONE: done |= 1u << n; break;
            case WARP_AT_BARRIER: complete_barrier(b, w->barrier_id, w->barrier_threads); break;
            case WARP_YIELDED: break;
            }
        }
        if (moved) continue;
        if (__builtin_popcount(done) != (int)b->warp_count) report_barrier(b, done);
        return;
    }
}

/* ---- workers ---- */

static void *run_worker(void *user)
{
    work *all = user;
    launch *l = all->launch;
    fenv_t before;
    fegetenv(&before);
    fesetenv(FE_DFL_ENV); /* the host's rounding or flushing must not reach the kernel */
    block b;
    uint64_t ran = 0;
    if (!allocate_block(&b, l)) {
        fault_set(l, FAULT_MEMORY, "no memory for a block of %s", l->kernel->name);
    } else {
        while (!atomic_load(&l->stop)) {
            const uint64_t n = atomic_fetch_add(&all->next, 1);
            if (n >= all->count) break;
            start_block(&b, all->list ? all->list[n] : n);
            run_block(&b);
            ran++;
        }
    }
    pthread_mutex_lock(&all->lock);
    counters_add(&l->total, &b.counters);
    l->blocks_run += ran;
    pthread_mutex_unlock(&all->lock);
    free_block(&b);
    fesetenv(&before);
    return NULL;
}

void launch_run(launch *l, const uint64_t *list, uint64_t blocks, unsigned threads)
{
    work all = {.launch = l, .list = list, .count = blocks};
    pthread_t workers[MAX_WORKERS];
    unsigned started = 0;
    sigset_t every, before;
    pthread_mutex_init(&all.lock, NULL);
    if (threads > MAX_WORKERS) threads = MAX_WORKERS;
    if (threads > blocks) threads = (unsigned)blocks;
    sigfillset(&every);
    pthread_sigmask(SIG_SETMASK, &every, &before); /* the host's signals are not for these threads */
    while (started + 1 < threads && pthread_create(&workers[started], NULL, run_worker, &all) == 0) started++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    run_worker(&all);
    for (unsigned n = 0; n < started; n++) pthread_join(workers[n], NULL);
    pthread_mutex_destroy(&all.lock);
}
