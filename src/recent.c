/* See recent.h. */
#include "recent.h"

#include "hot.h"

#include <stdlib.h>
#include <string.h>

recent *recent_create(void)
{
    recent *all = aligned_alloc(_Alignof(recent), RECENT_SLOTS * sizeof *all);
    if (all) memset(all, 0, RECENT_SLOTS * sizeof *all);
    return all;
}

static void forget(recent_call *call)
{
    if (call->entry) lru_release(call->entry);
    call->entry = NULL;
}

static int take(recent *r)
{
    return !atomic_load_explicit(&r->taken, memory_order_relaxed) &&
           !atomic_exchange_explicit(&r->taken, 1, memory_order_acquire);
}

void recent_forget(recent *all)
{
    for (int i = 0; i < RECENT_SLOTS; i++) {
        if (!take(&all[i])) continue;
        for (int j = 0; j < RECENT_CALLS; j++) forget(&all[i].calls[j]);
        recent_leave(&all[i]);
    }
}

void recent_destroy(recent *all)
{
    if (all) recent_forget(all);
    free(all);
}

HOT recent *recent_enter(recent *all)
{
    static atomic_uint next;
    static _Thread_local unsigned slot; /* from 1; 0: none yet */
    if (!slot) slot = 1 + atomic_fetch_add_explicit(&next, 1, memory_order_relaxed) % RECENT_SLOTS;
    return take(&all[slot - 1]) ? &all[slot - 1] : NULL;
}

/* Any number will do that differs for the sizes of one frame. */
HOT recent_call *recent_place(recent *r, const jg_problem *in)
{
    const uint64_t mixed = ((uint64_t)in->m * 31 + (uint64_t)in->n) * 31 + (uint64_t)in->k + (uint64_t)in->type_a;
    return &r->calls[mixed * UINT64_C(0x9e3779b97f4a7c15) >> 60];
}

_Static_assert(RECENT_CALLS == 16, "recent_place takes four bits");

/* Member by member: the caller's struct has padding, which may hold anything. Without a branch, and without a call, as this is
 * part of what a launch costs. */
HOT int recent_is(const recent_call *call, const jg_problem *y)
{
    const jg_problem *x = &call->in;
    const uint64_t sizes = (uint64_t)((x->m ^ y->m) | (x->n ^ y->n) | (x->k ^ y->k) | (x->batch ^ y->batch));
    const uint64_t layout = (uint64_t)((x->lda ^ y->lda) | (x->ldb ^ y->ldb) | (x->ldc ^ y->ldc) |
                                       (x->stride_a ^ y->stride_a) | (x->stride_b ^ y->stride_b) | (x->stride_c ^ y->stride_c) |
                                       (x->ld_residual ^ y->ld_residual) | (x->stride_residual ^ y->stride_residual));
    const unsigned types = (x->type_a ^ y->type_a) | (x->type_b ^ y->type_b) | (x->type_c ^ y->type_c) | (x->op_a ^ y->op_a) |
                           (x->op_b ^ y->op_b) | (x->order ^ y->order) | (x->form ^ y->form);
    const unsigned rest = (x->align_bytes ^ y->align_bytes) | (x->dynamic ^ y->dynamic) | (x->compile ^ y->compile) |
                          (x->reserved ^ y->reserved) | (x->math ^ y->math) | (x->epilogue ^ y->epilogue) |
                          (x->activation ^ y->activation) | (x->type_bias ^ y->type_bias) | (x->group_k ^ y->group_k) |
                          (x->zero_points ^ y->zero_points);
    return call->entry && !(sizes | layout | types | rest);
}

void recent_keep(recent_call *call, const jg_problem *in, const problem *p, uint32_t alignment, lru_entry *entry)
{
    forget(call);
    lru_pin(entry);
    call->in = *in;
    call->problem = *p;
    call->alignment = alignment;
    call->entry = entry;
}

void recent_sum(recent *all, uint64_t *own, uint64_t *generic)
{
    *own = *generic = 0;
    for (int i = 0; all && i < RECENT_SLOTS; i++) {
        *own += atomic_load_explicit(&all[i].own, memory_order_relaxed);
        *generic += atomic_load_explicit(&all[i].generic, memory_order_relaxed);
    }
}
