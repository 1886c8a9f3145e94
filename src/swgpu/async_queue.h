/* The queue of cp.async as ops_async.c uses it. */
#ifndef SWGPU_ASYNC_QUEUE_H
#define SWGPU_ASYNC_QUEUE_H

#include "async.h"

#define ASYNC_MAX_BYTES 16 /* of one lane's copy */

/* The copies of one instruction. Offsets count from the block's first shared byte. */
typedef struct async_entry {
    uint32_t mask, bytes;
    uint32_t group[PTX_LANES], offset[PTX_LANES];
    uint8_t data[PTX_LANES][ASYNC_MAX_BYTES];
} async_entry;

/* A new last entry, for the caller to fill offsets and data and then the mask. Null without memory. Valid until the next
 * wait. */
async_entry *async_push(async_queue *q, uint32_t bytes);

/* Each lane's copies since its last commit become a group, perhaps an empty one. */
void async_commit(async_queue *q, uint32_t lanes);

/* Completes each lane's groups but the pending[lane] that it committed last. wait_all is async_finish. */
void async_wait(warp *w, uint32_t lanes, const uint32_t pending[PTX_LANES]);

#endif
