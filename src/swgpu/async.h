/* cp.async: copies from global to shared memory that become visible only at their wait, as late as the rules allow, so
 * that a wait too few shows. The bytes are read from global memory when the copy is issued.
 *
 * A warp's queue holds copies in order, for lanes; each lane's commit_group closes a group of its own. */
#ifndef SWGPU_ASYNC_H
#define SWGPU_ASYNC_H

#include "exec.h"

async_queue *async_create(void);
void async_destroy(async_queue *q);
void async_reset(async_queue *q); /* before each block */

/* The bind function of cp is bind_cp (async.c): cp.async, .commit_group, .wait_group, .wait_all. */

/* A lane's copies complete when it exits, though nothing of it may read them any more. */
void async_finish(warp *w, uint32_t lanes);

#endif
