/* What is known of each byte of a block's shared memory: who wrote it last and when, who read it since, whether a
 * cp.async to it is under way. Finds reads of bytes never written, races, and cp.async data used before its wait.
 *
 * Order between warps comes only from block barriers: warp->clock is a vector clock over the block's warps; a write by
 * warp w at its own clock c is known to warp v if v->clock[w] >= c. A barrier makes every participant's clock the
 * maximum of them all and then steps each one's own entry. Within a warp, order between two lanes comes from
 * bar.warp.sync, which steps warp->epoch. Two lanes of one instruction that write the same byte race too. */
#ifndef SWGPU_SHADOW_H
#define SWGPU_SHADOW_H

#include "exec.h"

shadow *shadow_create(uint32_t shared_bytes);
void shadow_destroy(shadow *s);

/* Before each block: nothing is written, nothing is known. Also resets no clocks: block_start does (clock 0 is "never",
 * a warp's own entry starts at 1). */
void shadow_reset(shadow *s, uint32_t shared_bytes);

/* What an instruction does to shared memory. Atomics are ordered against each other and race with plain accesses. ASYNC:
 * cp.async was issued, so the bytes may change at any time until its wait. */
typedef enum shadow_kind { SHADOW_READ, SHADOW_WRITE, SHADOW_ATOMIC, SHADOW_ASYNC } shadow_kind;

/* An access of the lanes of a mask, at shared addresses (from SHARED_BASE) that are in bounds. together: 0, or the lanes that
 * all receive what any lane's address names (ldmatrix). Which checks apply is in warp->block->launch->checks. Returns 0, or
 * 1 after fault_raise. */
int shadow_request(warp *w, const ptx_instruction *i, uint32_t mask, const uint64_t *address, uint32_t bytes, shadow_kind kind,
                   uint32_t together);

/* The wait of a lane's cp.async is over: the bytes, at an offset from the block's first shared byte, are written, by that
 * lane, as of now. */
void shadow_async_end(warp *w, unsigned lane, uint32_t offset, uint32_t bytes);

/* All warps of a mask (bit n: warp n of the block) have met at a barrier. arrived: the maximum of the clocks of those that
 * came before without waiting, when they came; 0 where there are none. */
void shadow_barrier(block *b, uint32_t warps, const uint32_t arrived[PTX_LANES]);

/* A warp arrives without waiting: what it knows goes to arrived, what it does from now on is not part of that. */
void shadow_arrive(warp *w, uint32_t arrived[PTX_LANES]);

/* Lanes of a warp have met at bar.warp.sync. */
void shadow_warp_sync(warp *w, uint32_t lanes);

#endif
