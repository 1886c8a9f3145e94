/* Counts the sectors of a global request and the bank conflicts of a shared one, from the addresses of its lanes.
 *
 * An access is aligned to its size, so it lies within one sector, and one of 8 or 16 bytes takes the same few banks as
 * a whole: both problems become counting distinct numbers among at most 32. */
#include "counters.h"

enum { LANES = 32, SECTOR_BYTES = 32, BANK_BYTES = 4, BANKS = 32, NEAR = 128 };

_Static_assert(sizeof(counters) % sizeof(uint64_t) == 0, "counters are summed as an array");

void counters_add(counters *sum, const counters *part)
{
    uint64_t *to = (uint64_t *)(void *)sum;
    const uint64_t *from = (const uint64_t *)(const void *)part;
    for (unsigned n = 0; n < sizeof *sum / sizeof *to; n++) to[n] += from[n];
}

/* Requests mostly stay within a few KiB of their first lane: a bit for each sector there. The others go to a list. */
static unsigned distinct_sectors(const uint64_t *address, uint32_t mask)
{
    uint64_t near[NEAR / 64] = {0}, far[LANES];
    unsigned far_count = 0;
    const uint64_t low = address[__builtin_ctz(mask)] / SECTOR_BYTES - NEAR / 2;
    for (; mask; mask &= mask - 1) {
        const uint64_t sector = address[__builtin_ctz(mask)] / SECTOR_BYTES, place = sector - low;
        if (place < NEAR) {
            near[place / 64] |= 1ull << (place % 64);
            continue;
        }
        unsigned n = far_count;
        while (n > 0 && far[n - 1] != sector) n--; /* a neighbour lane's is the likely one */
        if (n == 0) far[far_count++] = sector;
    }
    return far_count + (unsigned)__builtin_popcountll(near[0]) + (unsigned)__builtin_popcountll(near[1]);
}

void counters_global(counters *c, int is_store, const uint64_t *address, uint32_t mask)
{
    const unsigned sectors = distinct_sectors(address, mask);
    *(is_store ? &c->global_store_requests : &c->global_load_requests) += 1;
    *(is_store ? &c->global_store_sectors : &c->global_load_sectors) += sectors;
}

/* The most distinct units in one group of banks, among the lanes of a mask. A unit is what a lane takes, at least a bank
 * wide; `groups` units lie beside each other, a power of two. */
static unsigned part_cycles(const uint64_t *address, uint32_t mask, unsigned unit_shift, unsigned groups)
{
    uint32_t units[LANES][BANKS]; /* shared addresses fit */
    uint8_t count[BANKS] = {0};
    unsigned most = 1;
    for (; mask; mask &= mask - 1) {
        const uint32_t unit = (uint32_t)address[__builtin_ctz(mask)] >> unit_shift;
        const unsigned group = unit & (groups - 1);
        unsigned n = 0;
        while (n < count[group] && units[n][group] != unit) n++;
        if (n < count[group]) continue;
        units[n][group] = unit;
        count[group] = (uint8_t)(n + 1);
        if (n + 1 > most) most = n + 1;
    }
    return most;
}

void counters_shared(counters *c, int is_store, const uint64_t *address, uint32_t mask, uint32_t bytes)
{
    const unsigned unit = bytes < BANK_BYTES ? BANK_BYTES : bytes;
    const unsigned groups = BANKS * BANK_BYTES / unit; /* also the lanes that are served together */
    unsigned cycles = 0, parts = 0;
    for (unsigned first = 0; first < LANES; first += groups) {
        const uint32_t lanes = mask & (groups == LANES ? ~0u : ((1u << groups) - 1) << first);
        if (!lanes) continue;
        cycles += part_cycles(address, lanes, (unsigned)__builtin_ctz(unit), groups);
        parts++;
    }
    *(is_store ? &c->shared_store_requests : &c->shared_load_requests) += 1;
    *(is_store ? &c->shared_store_cycles : &c->shared_load_cycles) += cycles;
    *(is_store ? &c->shared_store_conflicts : &c->shared_load_conflicts) += cycles - parts;
}
