/* A launch while it runs: grid, blocks, warps, and what the instructions see of them.
 *
 * A worker thread runs one block at a time: a block has `warps` warps of 32 lanes, each with its register file. Warps
 * take turns at barriers. Lanes of a warp that took different branches are fragments (warp.c); an instruction always
 * runs for the lanes of one fragment, its mask. */
#ifndef SWGPU_EXEC_H
#define SWGPU_EXEC_H

#include "counters.h"
#include "ptx.h"

#include <cuda.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#define FULL_MASK 0xffffffffu

/* What is checked beside what a GPU itself would notice (bounds and alignment are always checked). */
enum {
    CHECK_UNINITIALISED = 1, /* reads of memory never written, global and shared */
    CHECK_RACE = 2,          /* shared memory touched by two threads with no barrier between; cp.async not waited for */
    CHECK_OPERANDS = 4,      /* accesses outside the operands that the host described (swgpu.h) */
    CHECK_LEAK = 8,          /* memory, modules, graphs and captures still there when their context ends */
    CHECK_ALL = 15
};

typedef enum fault_kind {
    FAULT_NONE,
    FAULT_OUT_OF_BOUNDS,     /* CUDA_ERROR_ILLEGAL_ADDRESS */
    FAULT_USE_AFTER_FREE,    /* CUDA_ERROR_ILLEGAL_ADDRESS */
    FAULT_MISALIGNED,        /* CUDA_ERROR_MISALIGNED_ADDRESS */
    FAULT_UNINITIALISED,     /* from here on CUDA_ERROR_LAUNCH_FAILED */
    FAULT_RACE,
    FAULT_ASYNC_NOT_WAITED,
    FAULT_OUTSIDE_OPERAND,   /* an access beyond the matrices: past the end, or in the padding between rows */
    FAULT_BARRIER,           /* not all threads reach the same barrier */
    FAULT_LANES,             /* not all lanes of a warp reach the same .sync instruction */
    FAULT_TRAP,              /* trap; CUDA_ERROR_ILLEGAL_INSTRUCTION */
    FAULT_TIMEOUT,           /* CUDA_ERROR_LAUNCH_TIMEOUT */
    FAULT_MEMORY,            /* the host has no memory for the block; CUDA_ERROR_OUT_OF_MEMORY */
    FAULT_UNLOADED,          /* a graph launches a kernel whose module is gone; CUDA_ERROR_ILLEGAL_ADDRESS */
    FAULT_LEAK,              /* reported when a context ends; no error of a call */
    FAULT_KINDS
} fault_kind;

/* Address windows. Device addresses are not host addresses (bit 48 is set), so neither can be taken for the other. A
 * generic address in the shared or local window is that space's; `ld.shared` and the like take offsets into it.
 * Offset 0 of shared memory is not the first variable's: as on a GPU, the system's reserved bytes come before. */
#define GLOBAL_WINDOW 0x0001000000000000ull
#define SHARED_WINDOW 0x0002000000000000ull /* + the offset that ld.shared takes */
#define LOCAL_WINDOW 0x0003000000000000ull
#define WINDOW_MASK 0xffff000000000000ull
#define SHARED_BASE 1024u /* of a kernel's first shared byte */

typedef struct launch launch;
typedef struct block block;
typedef struct shadow shadow;           /* shadow.h */
typedef struct async_queue async_queue; /* async.h */

typedef struct fragment {
    uint32_t mask; /* lanes */
    uint32_t pc;
    uint8_t waiting; /* at a barrier or .sync instruction that lacks lanes */
} fragment;

typedef struct warp {
    uint32_t *registers; /* kernel->slots slots of 32 words */
    block *block;
    counters *counters;
    uint32_t index;      /* in the block */
    uint32_t live;       /* lanes that exist and have not exited */
    fragment fragments[PTX_LANES];
    uint32_t fragment_count;
    uint8_t at_barrier;
    uint32_t barrier_id, barrier_threads;
    /* For shadow.h. clock[w]: how far this warp knows warp w's doings: its own entry counts barriers it passed, the
     * others' are what they were at the last barrier they shared. epoch counts this warp's bar.warp.sync. */
    uint32_t clock[PTX_LANES];
    uint32_t epoch;
    async_queue *async; /* cp.async under way */
    uint8_t *local;     /* local_bytes for each lane, lane after lane */
    uint64_t executed;  /* instructions, in this block */
} warp;

struct block {
    launch *launch;
    uint32_t index[3];
    uint8_t *shared; /* shared_bytes; kernel's first byte is at SHARED_BASE for it */
    shadow *shadow;  /* null if neither races nor uninitialised reads are checked */
    warp *warps;
    uint32_t warp_count;
    uint32_t arrived[16]; /* warps that bar.arrive has brought to a barrier, as a mask */
    uint32_t arrived_clock[16][PTX_LANES]; /* what those knew then, for shadow.h */
    counters counters;
};

/* An operand that the host described for this launch (swgpu.h), as byte ranges. */
typedef struct operand_region {
    const char *name;
    uint64_t base, row_bytes, row_step, rows, items, item_step; /* item_step 0: one shared by all items */
    uint8_t writable;
} operand_region;

#define MAX_REGIONS 320 /* a grouped launch has five for each of 60 products */

/* What a warp may run before it counts as endless: minutes of simulation. */
#define INSTRUCTION_LIMIT (1ull << 31)

struct launch {
    const ptx_module *module;
    const ptx_kernel *kernel;
    struct device_memory *memory;
    uint32_t grid[3], threads[3];
    uint32_t block_threads;
    uint32_t shared_bytes; /* static + dynamic */
    uint32_t dynamic_shared_bytes;
    const uint8_t *params;
    const uint64_t *variable_addresses; /* per variable of the module */
    unsigned checks;                    /* CHECK_* */
    int count;                          /* counters are wanted */
    operand_region regions[MAX_REGIONS];
    uint32_t region_count;
    uint32_t sm_count;
    uint32_t capability; /* 87 for sm_87; decides how mma rounds (mma_model.h); 0: once */
    uint64_t instruction_limit; /* of one warp; beyond it the launch has timed out. 0: INSTRUCTION_LIMIT */
    /* the outcome */
    atomic_int stop;       /* set by the first fault */
    struct fault *fault;   /* filled by whoever set stop */
    counters total;        /* under total_lock */
    uint64_t blocks_run;
};

typedef struct fault {
    fault_kind kind;
    CUresult code;
    char text[1024]; /* all of it, one line; what cuGetErrorString then says */
} fault;

/* Records a fault of one lane and stops the launch; the first fault counts. The text becomes
 *     KIND: FORMAT...; kernel NAME, block (x, y, z), thread (x, y, z), PTX line N, templates/mma.cu:M
 * Returns 1, for the caller to return. Thread-safe. */
int fault_raise(struct warp *w, const ptx_instruction *i, unsigned lane, fault_kind kind, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
const char *fault_kind_name(fault_kind kind);
CUresult fault_code(fault_kind kind);

/* ---- slots */

static inline uint32_t *slot32(const warp *w, uint32_t slot)
{
    return w->registers + (size_t)slot * PTX_LANES;
}

static inline uint64_t *slot64(const warp *w, uint32_t slot)
{
    return (uint64_t *)(void *)(w->registers + (size_t)slot * PTX_LANES);
}

/* An operand's group and element. */
static inline const ptx_operand *operand_at(const ptx_instruction *i, unsigned group, unsigned element)
{
    return &i->operands[i->first[group] + element];
}

/* A lane's value, zero-extended; for paths where speed does not matter. */
static inline uint64_t operand_get(const warp *w, const ptx_operand *o, unsigned lane)
{
    if (o->bits == 64) return slot64(w, o->slot)[lane];
    if (o->bits == 1) return slot32(w, o->slot)[0] >> lane & 1;
    return slot32(w, o->slot)[lane];
}

/* Stores a lane's value, cut to the register's width. */
static inline void operand_set(const warp *w, const ptx_operand *o, unsigned lane, uint64_t value)
{
    if (o->bits == 64) {
        slot64(w, o->slot)[lane] = value;
    } else if (o->bits == 1) {
        uint32_t *p = slot32(w, o->slot);
        p[0] = (p[0] & ~(1u << lane)) | (uint32_t)(value & 1) << lane;
    } else {
        slot32(w, o->slot)[lane] = o->bits == 32 ? (uint32_t)value : (uint32_t)value & ((1u << o->bits) - 1);
    }
}

static inline uint32_t predicate_mask(const warp *w, const ptx_operand *o)
{
    uint32_t mask = slot32(w, o->slot)[0];
    return o->negate ? ~mask : mask;
}

/* Calls for each lane of a mask: the full warp is the common case and vectorises. `lane` is the loop's variable. */
#define FOR_LANES(mask, lane, ...)                                                                                     \
    do {                                                                                                               \
        if ((mask) == FULL_MASK) {                                                                                     \
            for (unsigned lane = 0; lane < PTX_LANES; lane++) { __VA_ARGS__; }                                         \
        } else {                                                                                                       \
            for (uint32_t rest_ = (mask); rest_; rest_ &= rest_ - 1) {                                                 \
                unsigned lane = (unsigned)__builtin_ctz(rest_);                                                        \
                __VA_ARGS__;                                                                                           \
            }                                                                                                          \
        }                                                                                                              \
    } while (0)

/* The same for what no lane is to blame for. */
void fault_set(launch *l, fault_kind kind, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Runs a launch to its end on up to `threads` threads, the caller's among them. list: the blocks to run (linear
 * indices), or null for all; blocks then is how many. Fills the outcome. */
void launch_run(launch *l, const uint64_t *list, uint64_t blocks, unsigned threads);

/* ---- warp.c: one warp ---- */

/* Before a block: all lanes that exist (threads of them) at instruction 0. Registers hold the special registers and constants. */
void warp_start(warp *w, unsigned threads);

typedef enum warp_state { WARP_YIELDED, WARP_AT_BARRIER, WARP_DONE, WARP_FAULT } warp_state;

/* Runs until the warp waits at a block barrier, is done, has had a fair share of instructions, or a fault is found. */
warp_state warp_run(warp *w);

/* bar.arrive does not wait; block.c counts it. Returns 1 after a fault. */
int block_arrive(warp *w, const ptx_instruction *i, unsigned lane, uint32_t id, uint32_t threads);

/* The thread's index within the block (x, y, z) of a lane. */
void thread_of_lane(const warp *w, unsigned lane, uint32_t thread[3]);

#endif
