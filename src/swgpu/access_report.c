/* The texts of memory faults: what was tried, and where that is. Only what is wrong comes here, so nothing is fast. */
#include "access_report.h"

#include <stdio.h>

typedef unsigned long long ull;

/* Beyond this distance from an allocation its name helps nobody. */
#define FAR_BYTES (1ull << 20)
#define GAP_BYTES 512 /* memory.h: at least that much lies between allocations */

static const char *kind_text(const access_request *r)
{
    static const char *const text[] = {[ACCESS_READ] = "read of", [ACCESS_WRITE] = "write of",
                                       [ACCESS_ATOMIC] = "atomic access to", [ACCESS_ASYNC] = "cp.async of"};
    return text[r->kind];
}

static const char *plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

/* "read of 16 bytes". */
static const char *name_access(const access_request *r, char text[64])
{
    snprintf(text, 64, "%s %u byte%s", kind_text(r), r->bytes, plural(r->bytes));
    return text;
}

static int report_misaligned(const access_request *r, unsigned lane, const char *space)
{
    char access[64];
    return fault_raise(r->w, r->i, lane, FAULT_MISALIGNED, "%s at %saddress 0x%llx: it must be a multiple of %u",
                       name_access(r, access), space, (ull)r->address[lane], r->alignment);
}

/* ---- global ---- */

static int report_nowhere(const access_request *r, unsigned lane)
{
    const struct device_memory *memory = r->w->block->launch->memory;
    const uint64_t address = r->address[lane];
    char access[64];
    name_access(r, access);
    const allocation *below = memory_below(memory, address), *above = memory_below(memory, address + GAP_BYTES);
    if (above && above->base > address && !above->freed &&
        !(below && address - below->base - below->bytes < above->base - address))
        return fault_raise(r->w, r->i, lane, FAULT_OUT_OF_BOUNDS,
                           "%s at 0x%llx, %llu byte%s before the start of an allocation of %llu bytes",
                           access, (ull)address, (ull)(above->base - address), plural(above->base - address), (ull)above->bytes);
    if (below && address - below->base - below->bytes < FAR_BYTES) {
        const uint64_t past = address - below->base - below->bytes;
        return fault_raise(r->w, r->i, lane, FAULT_OUT_OF_BOUNDS,
                           "%s at 0x%llx, %llu byte%s past the end of an allocation of %llu bytes%s",
                           access, (ull)address, (ull)past, plural(past), (ull)below->bytes,
                           below->freed ? " that was freed" : "");
    }
    return fault_raise(r->w, r->i, lane, FAULT_OUT_OF_BOUNDS, "%s at 0x%llx, which is in no allocation%s", access, (ull)address,
                       address < GAP_BYTES ? ": a null pointer" : (address & WINDOW_MASK) == 0 ? ": not a device address" : "");
}

int access_report_global(const access_request *r, unsigned lane, const allocation *a)
{
    if (!a) return report_nowhere(r, lane);
    const uint64_t address = r->address[lane], offset = address - a->base;
    char access[64];
    name_access(r, access);
    if (a->freed)
        return fault_raise(r->w, r->i, lane, FAULT_USE_AFTER_FREE,
                           "%s at 0x%llx, byte %llu in an allocation of %llu bytes that was freed",
                           access, (ull)address, (ull)offset, (ull)a->bytes);
    if (r->bytes > a->bytes - offset) {
        const uint64_t past = r->bytes - (a->bytes - offset);
        return fault_raise(r->w, r->i, lane, FAULT_OUT_OF_BOUNDS,
                           "%s at 0x%llx, the last %llu byte%s of it past the end of an allocation of %llu bytes", access,
                           (ull)address, (ull)past, plural(past), (ull)a->bytes);
    }
    return report_misaligned(r, lane, "");
}

int access_report_unwritten(const access_request *r, unsigned lane, const uint8_t *written)
{
    unsigned first = 0;
    char access[64];
    while (first < r->bytes && written[first]) first++;
    return fault_raise(r->w, r->i, lane, FAULT_UNINITIALISED, "%s at 0x%llx: nothing was ever written to byte %u of them",
                       name_access(r, access), (ull)r->address[lane], first);
}

/* ---- shared, local and parameter space ---- */

int access_report_window(const access_request *r, uint32_t mask, const char *space, uint64_t start, uint64_t bytes)
{
    for (; mask; mask &= mask - 1) {
        const unsigned lane = (unsigned)__builtin_ctz(mask);
        const uint64_t address = r->address[lane], offset = address - start;
        char access[64], prefix[32];
        name_access(r, access);
        if (address < start)
            return fault_raise(r->w, r->i, lane, FAULT_OUT_OF_BOUNDS, "%s at %s address 0x%llx, below its first byte at 0x%llx",
                               access, space, (ull)address, (ull)start);
        if (offset > bytes || r->bytes > bytes - offset)
            return fault_raise(r->w, r->i, lane, FAULT_OUT_OF_BOUNDS,
                               "%s at %s address 0x%llx, beyond the %llu bytes of %s memory that end at 0x%llx", access, space,
                               (ull)address, (ull)bytes, space, (ull)(start + bytes));
        snprintf(prefix, sizeof prefix, "%s ", space);
        if (address & (r->alignment - 1)) return report_misaligned(r, lane, prefix);
    }
    return 1;
}

/* ---- operands ---- */

/* Where an address is in a region: the item, the last row that begins at or before it, the byte in that row. */
typedef struct place {
    uint64_t item, row, column, end; /* end: of the whole region, an address */
} place;

static int find_place(const operand_region *g, uint64_t address, place *p)
{
    if (g->rows == 0 || g->items == 0) return 0;
    const uint64_t extent = (g->rows - 1) * g->row_step + g->row_bytes;
    p->end = g->base + (g->items - 1) * g->item_step + extent;
    if (address < g->base) return 0;
    const uint64_t offset = address - g->base;
    p->item = g->item_step ? offset / g->item_step : 0;
    if (p->item >= g->items) p->item = g->items - 1;
    const uint64_t rest = offset - p->item * g->item_step;
    p->row = g->row_step ? rest / g->row_step : 0;
    if (p->row >= g->rows) p->row = g->rows - 1;
    p->column = rest - p->row * g->row_step;
    return address < p->end;
}

/* "C", or "item 2 of C". */
static const char *name_item(const operand_region *g, uint64_t item, char text[128])
{
    if (g->items > 1) snprintf(text, 128, "item %llu of %s", (ull)item, g->name);
    else snprintf(text, 128, "%s", g->name);
    return text;
}

static int report_beside_row(const access_request *r, unsigned lane, const operand_region *g, const place *p)
{
    char access[64], of[128], where[160];
    name_access(r, access);
    name_item(g, p->item, of);
    const int last = p->row + 1 == g->rows;
    if (last) snprintf(where, sizeof where, "past the last row of %s", of);
    else snprintf(where, sizeof where, "in the padding between rows");
    if (p->column < g->row_bytes || !last)
        return fault_raise(r->w, r->i, lane, FAULT_OUTSIDE_OPERAND,
                           "%s past the end of row %llu of %s (bytes %llu to %llu of a row of %llu), %s",
                           access, (ull)p->row, of, (ull)p->column, (ull)(p->column + r->bytes - 1), (ull)g->row_bytes, where);
    return fault_raise(r->w, r->i, lane, FAULT_OUTSIDE_OPERAND, "%s past the last row of %s, in the padding between items",
                       access, of);
}

/* The region that ends or begins closest to an address that is in none; for the text. */
static int report_outside_all(const access_request *r, unsigned lane)
{
    const launch *l = r->w->block->launch;
    const uint64_t address = r->address[lane];
    const operand_region *nearest = NULL;
    uint64_t distance = UINT64_MAX;
    char access[64];
    name_access(r, access);
    for (uint32_t n = 0; n < l->region_count; n++) {
        const operand_region *g = &l->regions[n];
        place p = {.end = g->base};
        find_place(g, address, &p);
        const uint64_t away = address < g->base ? g->base - address : address - p.end;
        if (away < distance) distance = away, nearest = g;
    }
    const allocation *own = memory_find(l->memory, address, NULL);
    if (!nearest || !own || nearest->base < own->base || nearest->base - own->base >= own->bytes)
        return fault_raise(r->w, r->i, lane, FAULT_OUTSIDE_OPERAND,
                           "%s at 0x%llx, in an allocation of %llu bytes that is no operand of this launch",
                           access, (ull)address, own ? (ull)own->bytes : 0);
    if (address < nearest->base)
        return fault_raise(r->w, r->i, lane, FAULT_OUTSIDE_OPERAND, "%s before the first row of %s, by %llu byte%s", access,
                           nearest->name, (ull)distance, plural(distance));
    return fault_raise(r->w, r->i, lane, FAULT_OUTSIDE_OPERAND, "%s past the last row of %s, %llu byte%s after its end", access,
                       nearest->name, (ull)distance, plural(distance));
}

int access_report_operand(const access_request *r, unsigned lane)
{
    const launch *l = r->w->block->launch;
    const uint64_t address = r->address[lane];
    place p;
    if (r->kind != ACCESS_READ)
        for (uint32_t n = 0; n < l->region_count; n++) {
            const operand_region *g = &l->regions[n];
            if (g->writable || !find_place(g, address, &p) || p.column >= g->row_bytes) continue;
            char access[64], of[128];
            return fault_raise(r->w, r->i, lane, FAULT_OUTSIDE_OPERAND, "%s row %llu of %s, which is an input: %s at byte %llu",
                               r->kind == ACCESS_WRITE ? "write to" : "atomic access to", (ull)p.row, name_item(g, p.item, of),
                               name_access(r, access), (ull)p.column);
        }
    for (uint32_t n = 0; n < l->region_count; n++)
        if (find_place(&l->regions[n], address, &p)) return report_beside_row(r, lane, &l->regions[n], &p);
    return report_outside_all(r, lane);
}
