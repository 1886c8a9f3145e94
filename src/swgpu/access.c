/* Resolves the addresses of a warp's lanes to host bytes: bounds, alignment, lifetime, what was written, and the
 * operands that the host described. The messages are in access_report.c; races are shadow.c's.
 *
 * The common request, with all lanes in one allocation or in shared memory, is checked by loops without branches: an
 * offset d fits below a limit if neither d nor limit - d has its top bit set. */
#include "access_report.h"

#include "memory.h"
#include "shadow.h"
#include "swgpu.h"

#define TOP_BIT (1ull << 63)

void access_begin(access_request *r, warp *w, const ptx_instruction *i, uint32_t mask, const ptx_operand *o, unsigned space,
                  access_kind kind, uint32_t bytes)
{
    r->w = w;
    r->i = i;
    r->mask = mask;
    r->bytes = r->alignment = bytes;
    r->space = (uint8_t)space;
    r->kind = (uint8_t)kind;
    r->together = 0;
    const uint64_t offset = (uint64_t)o->offset;
    if (o->bits == 64) {
        const uint64_t *base = slot64(w, o->slot);
        for (unsigned lane = 0; lane < PTX_LANES; lane++) r->address[lane] = base[lane] + offset;
    } else {
        /* 32-bit addresses wrap at 32 bits. */
        const uint32_t *base = slot32(w, o->slot);
        for (unsigned lane = 0; lane < PTX_LANES; lane++) r->address[lane] = (uint32_t)(base[lane] + (uint32_t)offset);
    }
}

/* ---- a window of bytes: [start, start + size) at data ---- */

/* Fills at[]. Returns 0 if a lane is outside or misaligned. */
static inline int fits(access_request *r, uint32_t mask, uint64_t start, uint64_t size, uint8_t *data)
{
    const uint64_t limit = size - r->bytes;
    uint64_t outside = size < r->bytes ? TOP_BIT : 0, low = 0;
    FOR_LANES(mask, lane, {
        const uint64_t d = r->address[lane] - start;
        outside |= d | (limit - d);
        low |= r->address[lane];
        r->at[lane] = (uint8_t *)((uintptr_t)data + d);
    });
    return !(outside & TOP_BIT) && !(low & (r->alignment - 1));
}

/* ---- global memory ---- */

/* Whether all bytes of an access were written. */
static inline int all_written(const uint8_t *written, uint32_t bytes)
{
    const uint64_t ones = 0x0101010101010101ull;
    uint64_t a = ones, b = ones;
    switch (bytes) {
    case 1: return written[0];
    case 2: memcpy(&a, written, 2); break;
    case 4: memcpy(&a, written, 4); break;
    case 8: memcpy(&a, written, 8); break;
    case 16: memcpy(&a, written, 8), memcpy(&b, written + 8, 8); break;
    default:
        for (uint32_t n = 0; n < bytes; n++)
            if (!written[n]) return 0;
    }
    return a == ones && b == ones;
}

static inline void mark_written(uint8_t *written, uint32_t bytes)
{
    switch (bytes) {
    case 1: memset(written, 1, 1); break;
    case 2: memset(written, 1, 2); break;
    case 4: memset(written, 1, 4); break;
    case 8: memset(written, 1, 8); break;
    case 16: memset(written, 1, 16); break;
    default: memset(written, 1, bytes);
    }
}

/* Stores and atomics mark even without CHECK_UNINITIALISED: a later launch may be checked. */
static int check_written(access_request *r, uint32_t mask, const allocation *a)
{
    if (r->kind != ACCESS_WRITE && r->w->block->launch->checks & CHECK_UNINITIALISED)
        FOR_LANES(mask, lane, {
            const uint8_t *written = a->written + (r->at[lane] - a->data);
            if (!all_written(written, r->bytes)) return access_report_unwritten(r, lane, written);
        });
    if (r->kind != ACCESS_READ) FOR_LANES(mask, lane, mark_written(a->written + (r->at[lane] - a->data), r->bytes));
    return 0;
}

/* The row that the last lane was in. */
typedef struct row {
    uint64_t low, bytes;
} row;

/* Whether an access lies in one row of a region; that row. Items may be interleaved or overlap: then several are tried. */
static int find_row(const operand_region *g, uint64_t address, uint32_t bytes, row *hit)
{
    if (address < g->base || g->rows == 0 || g->items == 0) return 0;
    const uint64_t offset = address - g->base, extent = (g->rows - 1) * g->row_step + g->row_bytes;
    uint64_t item = g->item_step ? offset / g->item_step : 0;
    if (item >= g->items) item = g->items - 1;
    for (;; item--) {
        const uint64_t rest = offset - item * g->item_step;
        if (rest >= extent) return 0; /* and even further from the items before */
        uint64_t n = g->row_step ? rest / g->row_step : 0;
        if (n >= g->rows) n = g->rows - 1;
        const uint64_t column = rest - n * g->row_step;
        if (column < g->row_bytes && bytes <= g->row_bytes - column) {
            hit->low = address - column;
            hit->bytes = g->row_bytes;
            return 1;
        }
        if (item == 0 || g->item_step == 0) return 0;
    }
}

/* Whether an end of an access is in an input, where the host says that the output overlaps none. */
static int touches_input(const launch *l, uint64_t address, uint32_t bytes)
{
    row hit;
    int touches = 0, apart = 0;
    for (uint32_t n = 0; n < l->region_count; n++) {
        const operand_region *g = &l->regions[n];
        apart |= g->writable == SWGPU_WRITABLE_APART;
        touches |= !g->writable && (find_row(g, address, 1, &hit) || find_row(g, address + bytes - 1, 1, &hit));
    }
    return touches && apart;
}

static int check_operands(access_request *r, uint32_t mask)
{
    const launch *l = r->w->block->launch;
    row hit = {0, 0};
    FOR_LANES(mask, lane, {
        if (r->kind != ACCESS_READ && touches_input(l, r->address[lane], r->bytes)) return access_report_operand(r, lane);
        const uint64_t offset = r->address[lane] - hit.low;
        if (offset < hit.bytes && r->bytes <= hit.bytes - offset) continue;
        uint32_t n = 0;
        while (n < l->region_count &&
               ((r->kind != ACCESS_READ && !l->regions[n].writable) ||
                !find_row(&l->regions[n], r->address[lane], r->bytes, &hit)))
            n++;
        if (n == l->region_count) return access_report_operand(r, lane);
    });
    return 0;
}

/* Lanes that are all in one live allocation, in bounds. */
static int check_allocation(access_request *r, uint32_t mask, const allocation *a)
{
    const launch *l = r->w->block->launch;
    if (l->region_count && l->checks & CHECK_OPERANDS && !a->owned && check_operands(r, mask)) return 1;
    return check_written(r, mask, a);
}

static int resolve_global(access_request *r, uint32_t mask)
{
    const struct device_memory *memory = r->w->block->launch->memory;
    const allocation *a = memory_find(memory, r->address[__builtin_ctz(mask)], NULL);
    if (r->space != SPACE_CONST) r->global |= mask;
    if (a && !a->freed && fits(r, mask, a->base, a->bytes, a->data)) return check_allocation(r, mask, a);
    for (; mask; mask &= mask - 1) {
        const unsigned lane = (unsigned)__builtin_ctz(mask);
        a = memory_find(memory, r->address[lane], &a);
        if (!a || a->freed || !fits(r, 1u << lane, a->base, a->bytes, a->data)) return access_report_global(r, lane, a);
        if (check_allocation(r, 1u << lane, a)) return 1;
    }
    return 0;
}

/* ---- the block's and the thread's own ---- */

static int resolve_shared(access_request *r, uint32_t mask)
{
    static const uint8_t kinds[] = {[ACCESS_READ] = SHADOW_READ, [ACCESS_WRITE] = SHADOW_WRITE, [ACCESS_ATOMIC] = SHADOW_ATOMIC,
                                    [ACCESS_ASYNC] = SHADOW_ASYNC};
    const block *b = r->w->block;
    r->shared |= mask;
    if (!fits(r, mask, SHARED_BASE, b->launch->shared_bytes, b->shared))
        return access_report_window(r, mask, "shared", SHARED_BASE, b->launch->shared_bytes);
    if (!b->shadow) return 0;
    return shadow_request(r->w, r->i, mask, r->address, r->bytes, (shadow_kind)kinds[r->kind], r->together);
}

static int resolve_local(access_request *r, uint32_t mask)
{
    const uint64_t bytes = r->w->block->launch->kernel->local_bytes;
    if (!fits(r, mask, 0, bytes, r->w->local)) return access_report_window(r, mask, "local", 0, bytes);
    FOR_LANES(mask, lane, r->at[lane] += lane * bytes);
    return 0;
}

static int resolve_param(access_request *r, uint32_t mask)
{
    const launch *l = r->w->block->launch;
    /* Only loads come here. */
    if (fits(r, mask, 0, l->kernel->param_bytes, (uint8_t *)(uintptr_t)l->params)) return 0;
    return access_report_window(r, mask, "parameter", 0, l->kernel->param_bytes);
}

/* Sorts lanes by the window that their address is in. */
static int resolve_generic(access_request *r)
{
    uint32_t shared = 0, local = 0;
    FOR_LANES(r->mask, lane, {
        const uint64_t window = r->address[lane] & WINDOW_MASK;
        shared |= (uint32_t)(window == SHARED_WINDOW) << lane;
        local |= (uint32_t)(window == LOCAL_WINDOW) << lane;
    });
    FOR_LANES(shared | local, lane, r->address[lane] &= ~WINDOW_MASK);
    const uint32_t global = r->mask & ~(shared | local);
    return (global && resolve_global(r, global)) || (shared && resolve_shared(r, shared)) || (local && resolve_local(r, local));
}

int access_check(access_request *r)
{
    r->global = r->shared = 0;
    switch (r->space) {
    case SPACE_SHARED: return resolve_shared(r, r->mask);
    case SPACE_LOCAL: return resolve_local(r, r->mask);
    case SPACE_PARAM: return resolve_param(r, r->mask);
    case SPACE_GENERIC: return resolve_generic(r);
    default: return resolve_global(r, r->mask);
    }
}

int access_resolve(access_request *r)
{
    if (access_check(r)) return 1;
    if (!r->w->block->launch->count) return 0;
    if (r->global) counters_global(r->w->counters, r->kind != ACCESS_READ, r->address, r->global);
    if (r->shared) counters_shared(r->w->counters, r->kind != ACCESS_READ, r->address, r->shared, r->bytes);
    return 0;
}
