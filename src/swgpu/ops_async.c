/* cp.async: the copy, its groups and its waits. The source is read now; the destination changes at the wait (async.c). */
#include "variant.h"

#include "access.h"
#include "async_queue.h"
#include "opcodes.h"
#include "shadow.h"

extern ptx_bind BIND(cp);

/* How many bytes each lane reads: the copy's size, or less with a src-size. What is beyond it becomes zeros. */
static int source_sizes(warp *w, const ptx_instruction *i, uint32_t mask, uint32_t bytes, uint32_t sizes[PTX_LANES])
{
    const ptx_operand *o = i->groups > 3 ? operand_at(i, 3, 0) : NULL;
    FOR_LANES(mask, lane, {
        const uint64_t size = o ? operand_get(w, o, lane) : bytes;
        if (size > bytes)
            return fault_raise(w, i, lane, FAULT_OUT_OF_BOUNDS,
                               "cp.async with a src-size of %llu bytes, more than the %u it copies",
                               (unsigned long long)size, bytes);
        sizes[lane] = (uint32_t)size;
    });
    return 0;
}

/* Reads the source of all lanes into the entry. Lanes that read less than the whole go one by one; those that read
 * nothing may have any address. */
static int read_sources(access_request *r, uint32_t mask, const uint32_t sizes[PTX_LANES], async_entry *e)
{
    uint32_t whole = 0, part = 0;
    const uint32_t bytes = e->bytes;
    FOR_LANES(mask, lane, {
        whole |= (uint32_t)(sizes[lane] == bytes) << lane;
        part |= (uint32_t)(sizes[lane] != bytes && sizes[lane] != 0) << lane;
    });
    r->mask = whole;
    if (whole && access_check(r)) return 1;
    for (uint32_t rest = part; rest; rest &= rest - 1) {
        const unsigned lane = (unsigned)__builtin_ctz(rest);
        r->mask = 1u << lane;
        r->bytes = sizes[lane];
        if (access_check(r)) return 1;
    }
    FOR_LANES(mask & ~whole, lane, memset(e->data[lane], 0, ASYNC_MAX_BYTES));
    switch (bytes) {
    case 16: FOR_LANES(whole, lane, memcpy(e->data[lane], r->at[lane], 16)); break;
    case 8: FOR_LANES(whole, lane, memcpy(e->data[lane], r->at[lane], 8)); break;
    default: FOR_LANES(whole, lane, memcpy(e->data[lane], r->at[lane], 4));
    }
    FOR_LANES(part, lane, memcpy(e->data[lane], r->at[lane], sizes[lane]));
    if (r->w->block->launch->count && (whole | part)) counters_global(r->w->counters, 0, r->address, whole | part);
    return 0;
}

/* Checks and notes the destination. */
static int begin_copies(warp *w, const ptx_instruction *i, uint32_t mask, uint32_t bytes, async_entry *e)
{
    access_request r;
    access_begin(&r, w, i, mask, operand_at(i, 0, 0), SPACE_SHARED, ACCESS_ASYNC, bytes);
    if (access_resolve(&r)) return 1;
    FOR_LANES(mask, lane, e->offset[lane] = (uint32_t)r.address[lane] - SHARED_BASE);
    return 0;
}

static int run_copy(warp *w, const ptx_instruction *i, uint32_t mask)
{
    const unsigned first = (unsigned)__builtin_ctz(mask);
    const uint64_t bytes = operand_get(w, operand_at(i, 2, 0), first);
    uint32_t sizes[PTX_LANES];
    if (bytes != 16 && (i->modifier[MOD_CACHE] == CACHE_CG || (bytes != 4 && bytes != 8)))
        return fault_raise(w, i, first, FAULT_TRAP, "cp.async.%s of %llu bytes: it copies %s",
                           i->modifier[MOD_CACHE] == CACHE_CG ? "cg" : "ca",
                           (unsigned long long)bytes, i->modifier[MOD_CACHE] == CACHE_CG ? "16" : "4, 8 or 16");
    if (source_sizes(w, i, mask, (uint32_t)bytes, sizes)) return 1;
    async_entry *e = async_push(w->async, (uint32_t)bytes);
    if (!e) return fault_raise(w, i, first, FAULT_MEMORY, "no memory for a cp.async");
    access_request r;
    access_begin(&r, w, i, mask, operand_at(i, 1, 0), SPACE_GLOBAL, ACCESS_READ, (uint32_t)bytes);
    if (read_sources(&r, mask, sizes, e) || begin_copies(w, i, mask, (uint32_t)bytes, e)) return 1;
    e->mask = mask;
    return 0;
}

static int run_commit(warp *w, const ptx_instruction *i, uint32_t mask)
{
    (void)i;
    async_commit(w->async, mask);
    return 0;
}

static int run_wait(warp *w, const ptx_instruction *i, uint32_t mask)
{
    uint32_t pending[PTX_LANES] = {0};
    FOR_LANES(mask, lane, pending[lane] = (uint32_t)operand_get(w, operand_at(i, i->groups - 1u, 0), lane));
    async_wait(w, mask, pending);
    return 0;
}

static int run_wait_all(warp *w, const ptx_instruction *i, uint32_t mask)
{
    (void)i;
    async_finish(w, mask);
    return 0;
}

/* ---- binding ---- */

static int is_address(const ptx_instruction *i, unsigned group)
{
    const ptx_operand *o = operand_at(i, group, 0);
    return i->count[group] == 1 && o->kind == OPERAND_ADDRESS && (o->bits == 32 || o->bits == 64);
}

/* The form with a predicate ("ignore-src") is not executed, and neither is a cache policy as a fifth operand. */
static ptx_run *bind_copy(const ptx_instruction *i)
{
    const unsigned cache = i->modifier[MOD_CACHE];
    if ((cache != CACHE_CA && cache != CACHE_CG) || i->groups < 3 || i->groups > 4) return NULL;
    if (i->modifier[MOD_SPACE] != SPACE_SHARED || i->modifier[MOD_SPACE2] != SPACE_GLOBAL) return NULL;
    if (!is_address(i, 0) || !is_address(i, 1) || i->count[2] != 1 || operand_at(i, 2, 0)->kind != OPERAND_IMMEDIATE) return NULL;
    if (i->groups == 3) return run_copy;
    const ptx_operand *o = operand_at(i, 3, 0);
    const int is_size = o->kind == OPERAND_IMMEDIATE || (o->kind == OPERAND_REGISTER && o->bits == 32);
    return i->count[3] == 1 && is_size ? run_copy : NULL;
}

ptx_run *BIND(cp)(const ptx_instruction *i)
{
    const unsigned group = i->modifier[MOD_GROUP];
    if (i->modifier[MOD_PROXY] != PROXY_ASYNC) return NULL;
    if (group == GROUP_NONE) return bind_copy(i);
    if (i->modifier[MOD_CACHE] || i->modifier[MOD_SPACE] || i->modifier[MOD_SPACE2] || i->modifier[MOD_HINT]) return NULL;
    switch (group) {
    case GROUP_COMMIT: return i->groups == 0 ? run_commit : NULL;
    case GROUP_WAIT_ALL: return i->groups == 0 ? run_wait_all : NULL;
    case GROUP_WAIT: return i->groups == 1 && operand_at(i, 0, 0)->kind == OPERAND_IMMEDIATE ? run_wait : NULL;
    default: return NULL;
    }
}
