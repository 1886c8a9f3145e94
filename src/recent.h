/* What each thread called last: so that a call which is like an earlier one need not be checked, hashed and looked up again.
 *
 * In: the caller's own jg_problem and its operands' alignments. Out: the problem's entry, which stays pinned while it is
 * remembered here. Threads have slots of their own, so that nobody waits; a thread that finds its slot taken (there are more
 * threads than slots) goes without. */
#ifndef JG_RECENT_H
#define JG_RECENT_H

#include "cache/lru.h"
#include "problem.h"

#include <stdatomic.h>

#define RECENT_SLOTS 64
#define RECENT_CALLS 16 /* a slot: as many as a frame has kinds of products */

typedef struct recent_call {
    lru_entry *entry;   /* pinned; null: nothing is remembered */
    uint32_t alignment; /* of the operands, see recent_alignment */
    jg_problem in;      /* as the caller gave it */
    problem problem;    /* what it comes to */
} recent_call;

typedef struct recent {
    _Alignas(64) atomic_int taken;
    atomic_uint_fast64_t own, generic; /* launches of calls found here, by the form of their kernels */
    recent_call calls[RECENT_CALLS];
} recent;

/* RECENT_SLOTS of them; null if out of memory. */
recent *recent_create(void);
/* Null is allowed. */
void recent_destroy(recent *all);

/* The slot of the calling thread, taken until recent_leave; null if another thread has it. */
recent *recent_enter(recent *all);
static inline void recent_leave(recent *r)
{
    atomic_store_explicit(&r->taken, 0, memory_order_release);
}

/* Where a problem would be remembered, whatever is there now. */
recent_call *recent_place(recent *r, const jg_problem *in);

/* Whether the place holds this problem. */
int recent_is(const recent_call *call, const jg_problem *in);

/* The alignments of A, B and C in bytes, powers of two up to 16, as one number. */
static inline uint32_t recent_alignment(unsigned a, unsigned b, unsigned c)
{
    return a << 16 | b << 8 | c;
}

/* Remembers a call in its place. Takes a pin of its own on the entry, and gives back that of what was there. */
void recent_keep(recent_call *call, const jg_problem *in, const problem *p, uint32_t alignment, lru_entry *entry);

/* Forgets everything that no thread is just using, so that it can be evicted. */
void recent_forget(recent *all);

/* Counts a launch in a slot that is taken: nobody else writes, so that it costs no locked instruction. */
static inline void recent_count(recent *r, int is_generic)
{
    atomic_uint_fast64_t *count = is_generic ? &r->generic : &r->own;
    atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + 1, memory_order_relaxed);
}

/* Adds up the launches of all slots. */
void recent_sum(recent *all, uint64_t *own, uint64_t *generic);

#endif
