/* What a launch did, in the terms in which a GPU's speed is explained. Numbers depend only on the kernel, its arguments
 * and the blocks that ran, never on threads or timing. */
#ifndef SWGPU_COUNTERS_H
#define SWGPU_COUNTERS_H

#include <stdint.h>

/* Warp instructions by class. */
#define COUNTER_CLASSES(X)                                                                                             \
    X(ARITHMETIC, "arithmetic") X(FMA, "fma") X(SPECIAL, "special") X(LOGIC, "logic") X(COMPARE, "compare") X(MOVE, "move") \
    X(CONVERT, "convert") X(LOAD, "load") X(STORE, "store") X(ATOMIC, "atomic") X(COPY, "copy") X(MMA, "mma") X(WARP, "warp") \
    X(BARRIER, "barrier") X(BRANCH, "branch") X(OTHER, "other")

typedef enum counter_class {
#define MEMBER(name, text) COUNTER_##name,
    COUNTER_CLASSES(MEMBER)
#undef MEMBER
    COUNTER_CLASS_COUNT
} counter_class;

/* A request is one warp instruction to that memory (one for each 16-byte part is not another). A sector is 32 aligned
 * bytes; each request counts the distinct sectors that its lanes touch. Shared memory has 32 banks of 4 bytes: a request
 * takes, for each part of the warp that is served together (32 lanes for up to 4 bytes, 16 for 8, 8 for 16), as many
 * cycles as the most distinct words in one bank; what is beyond one cycle a part counts as a conflict. */
typedef struct counters {
    uint64_t instructions[COUNTER_CLASS_COUNT];
    uint64_t global_load_requests, global_load_sectors;
    uint64_t global_store_requests, global_store_sectors;
    uint64_t shared_load_requests, shared_load_cycles, shared_load_conflicts;
    uint64_t shared_store_requests, shared_store_cycles, shared_store_conflicts;
    uint64_t barriers; /* block barriers that completed */
    uint64_t divergent_branches;
} counters;

void counters_add(counters *sum, const counters *part);

/* One request: each lane of the mask (not 0) touches `bytes` bytes at its address, which is a multiple of bytes. bytes is
 * a power of two up to 32. An atomic counts as a store. */
void counters_global(counters *c, int is_store, const uint64_t *address, uint32_t mask);
void counters_shared(counters *c, int is_store, const uint64_t *address, uint32_t mask, uint32_t bytes);

#endif
