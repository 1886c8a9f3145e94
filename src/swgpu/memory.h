/* Device memory: allocations at addresses of their own (never host addresses, never used twice in a process), with a
 * note for each byte whether it was ever written.
 *
 * The driver calls hold one lock around everything here but the accesses of a running launch; those only look up. */
#ifndef SWGPU_MEMORY_H
#define SWGPU_MEMORY_H

#include <cuda.h>
#include <stdint.h>

typedef struct allocation {
    uint64_t base, bytes;  /* device address; as asked for */
    uint8_t *data;         /* host memory; null once freed */
    uint8_t *written;      /* a byte for each byte: 1 if it was ever written; null once freed */
    uint8_t freed;
    uint8_t owned;         /* by a module (.global variables): not counted as a leak */
} allocation;

typedef struct device_memory device_memory;

/* total_bytes: what cuMemAlloc can give out in all. Null if out of memory. */
device_memory *memory_create(uint64_t total_bytes);
void memory_destroy(device_memory *memory);

/* Addresses are multiples of 512. Between two allocations lie at least 512 bytes that belong to none.
 * Errors: OUT_OF_MEMORY; INVALID_VALUE for 0 bytes, or for an address that is no allocation's. */
CUresult memory_allocate(device_memory *memory, uint64_t bytes, int owned, uint64_t *address);
CUresult memory_free(device_memory *memory, uint64_t address);

/* cuMemcpy: either side may be a device or a host address (UVA). Bytes copied from the host count as written, those from
 * the device if they were written there. Errors: INVALID_VALUE if a device range is not inside one live allocation, with
 * a text. */
CUresult memory_copy(device_memory *memory, uint64_t to, uint64_t from, uint64_t bytes, char *error, size_t error_bytes);

/* Makes a range count as written, as far as it lies in the live allocation that holds its first byte. */
void memory_mark_written(device_memory *memory, uint64_t address, uint64_t bytes);

/* The allocation that holds an address, live or freed, or null. Safe from many threads while nothing is allocated or
 * freed. `hint` (may be null) is the caller's memory of its last answer. */
const allocation *memory_find(const device_memory *memory, uint64_t address, const allocation **hint);

/* The nearest allocation below an address, live or freed, or null; for messages ("4 bytes past the end of ..."). */
const allocation *memory_below(const device_memory *memory, uint64_t address);

/* The live allocations that no module owns: their number, and the sum of their bytes. */
unsigned memory_live(const device_memory *memory, uint64_t *bytes);
uint64_t memory_used(const device_memory *memory);

#endif
