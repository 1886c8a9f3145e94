/* Device memory: hands out addresses that are no host addresses, and finds what lies behind one.
 *
 * Addresses only grow, over all of the process, so that the array of allocations is sorted by itself and an address
 * never means two things. Freed allocations keep their entry (some 50 bytes), without data, to explain later uses. */
#include "memory.h"

#include "exec.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GRANULE 512u
#define MOST_BYTES (1ull << 47) /* half the window */

struct device_memory {
    allocation **allocations; /* by address; entries never move, so pointers to them stay good */
    size_t count, capacity;
    uint64_t total, used;
};

/* The next free address of the process. Its first granule belongs to nothing. */
static atomic_uint_least64_t next_address = GLOBAL_WINDOW + GRANULE;

device_memory *memory_create(uint64_t total_bytes)
{
    device_memory *memory = calloc(1, sizeof *memory);
    if (memory) memory->total = total_bytes;
    return memory;
}

void memory_destroy(device_memory *memory)
{
    if (!memory) return;
    for (size_t n = 0; n < memory->count; n++) {
        free(memory->allocations[n]->data);
        free(memory->allocations[n]->written);
        free(memory->allocations[n]);
    }
    free(memory->allocations);
    free(memory);
}

/* Takes bytes (at most MOST_BYTES) and a gap of at least one granule from the window. 0 if it is used up. */
static uint64_t take_addresses(uint64_t bytes)
{
    const uint64_t end = (GLOBAL_WINDOW & WINDOW_MASK) + (~WINDOW_MASK + 1);
    uint64_t base = atomic_load(&next_address), next;
    do {
        next = base + (bytes + GRANULE - 1) / GRANULE * GRANULE + GRANULE;
        if (next > end) return 0;
    } while (!atomic_compare_exchange_weak(&next_address, &base, next));
    return base;
}

static int make_room(device_memory *memory)
{
    if (memory->count < memory->capacity) return 1;
    const size_t capacity = memory->capacity ? memory->capacity * 2 : 64;
    allocation **grown = realloc(memory->allocations, capacity * sizeof *grown);
    if (!grown) return 0;
    memory->allocations = grown;
    memory->capacity = capacity;
    return 1;
}

CUresult memory_allocate(device_memory *memory, uint64_t bytes, int owned, uint64_t *address)
{
    if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    if (bytes > memory->total - memory->used || bytes > MOST_BYTES || !make_room(memory)) return CUDA_ERROR_OUT_OF_MEMORY;
    allocation *a = calloc(1, sizeof *a);
    if (!a) return CUDA_ERROR_OUT_OF_MEMORY;
    /* Of a large block, calloc's pages come into being only when they are touched. */
    a->data = calloc(bytes, 1);
    a->written = calloc(bytes, 1);
    a->base = a->data && a->written ? take_addresses(bytes) : 0;
    if (!a->base) {
        free(a->data);
        free(a->written);
        free(a);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    a->bytes = bytes;
    a->owned = owned != 0;
    memory->allocations[memory->count++] = a;
    memory->used += bytes;
    *address = a->base;
    return CUDA_SUCCESS;
}

CUresult memory_free(device_memory *memory, uint64_t address)
{
    /* Entries are const only to those who look up. */
    allocation *a = (allocation *)(uintptr_t)memory_find(memory, address, NULL);
    if (!a || a->base != address || a->freed) return CUDA_ERROR_INVALID_VALUE;
    free(a->data);
    free(a->written);
    a->data = a->written = NULL;
    a->freed = 1;
    memory->used -= a->bytes;
    return CUDA_SUCCESS;
}

const allocation *memory_below(const device_memory *memory, uint64_t address)
{
    size_t low = 0, high = memory->count; /* the first entry above the address */
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (memory->allocations[middle]->base <= address) low = middle + 1;
        else high = middle;
    }
    return low ? memory->allocations[low - 1] : NULL;
}

const allocation *memory_find(const device_memory *memory, uint64_t address, const allocation **hint)
{
    if (hint && *hint && address - (*hint)->base < (*hint)->bytes) return *hint;
    const allocation *a = memory_below(memory, address);
    if (!a || address - a->base >= a->bytes) return NULL;
    if (hint) *hint = a;
    return a;
}

/* ---- copies ---- */

static int is_device(uint64_t address)
{
    return (address & WINDOW_MASK) == GLOBAL_WINDOW;
}

/* The live allocation that holds a whole range, or null and a text. */
static const allocation *copy_range(const device_memory *memory, uint64_t address, uint64_t bytes, const char *role, char *error,
                                    size_t error_bytes)
{
    const allocation *a = memory_below(memory, address);
    if (!a) {
        snprintf(error, error_bytes, "the copy's %s, %llu bytes at 0x%llx, is in no allocation", role, (unsigned long long)bytes,
                 (unsigned long long)address);
        return NULL;
    }
    const uint64_t offset = address - a->base;
    if (!a->freed && offset <= a->bytes && bytes <= a->bytes - offset) return a;
    snprintf(error, error_bytes,
             "the copy's %s, %llu bytes at 0x%llx, is not inside one allocation: %llu bytes into one of %llu%s", role,
             (unsigned long long)bytes, (unsigned long long)address, (unsigned long long)offset, (unsigned long long)a->bytes,
             a->freed ? ", which was freed" : "");
    return NULL;
}

CUresult memory_copy(device_memory *memory, uint64_t to, uint64_t from, uint64_t bytes, char *error, size_t error_bytes)
{
    if (error_bytes) error[0] = 0;
    if (bytes == 0) return CUDA_SUCCESS;
    const allocation *target = NULL, *source = NULL;
    if (is_device(to)) target = copy_range(memory, to, bytes, "destination", error, error_bytes);
    if (is_device(to) && !target) return CUDA_ERROR_INVALID_VALUE;
    if (is_device(from)) source = copy_range(memory, from, bytes, "source", error, error_bytes);
    if (is_device(from) && !source) return CUDA_ERROR_INVALID_VALUE;
    if ((!target && !to) || (!source && !from)) {
        snprintf(error, error_bytes, "the copy's %s is a null pointer", !target && !to ? "destination" : "source");
        return CUDA_ERROR_INVALID_VALUE;
    }
    uint8_t *t = target ? target->data + (to - target->base) : (uint8_t *)(uintptr_t)to;
    const uint8_t *f = source ? source->data + (from - source->base) : (const uint8_t *)(uintptr_t)from;
    memmove(t, f, bytes);
    if (target && source) memmove(target->written + (to - target->base), source->written + (from - source->base), bytes);
    else if (target) memset(target->written + (to - target->base), 1, bytes);
    return CUDA_SUCCESS;
}

void memory_mark_written(device_memory *memory, uint64_t address, uint64_t bytes)
{
    const allocation *a = memory_find(memory, address, NULL);
    if (!a || a->freed) return;
    const uint64_t offset = address - a->base, rest = a->bytes - offset;
    memset(a->written + offset, 1, bytes < rest ? bytes : rest);
}

/* ---- sums ---- */

unsigned memory_live(const device_memory *memory, uint64_t *bytes)
{
    unsigned count = 0;
    *bytes = 0;
    for (size_t n = 0; n < memory->count; n++) {
        const allocation *a = memory->allocations[n];
        if (a->freed || a->owned) continue;
        *bytes += a->bytes;
        count++;
    }
    return count;
}

uint64_t memory_used(const device_memory *memory)
{
    return memory->used;
}
