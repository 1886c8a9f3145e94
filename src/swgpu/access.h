/* From the addresses of a warp's lanes to host bytes, with every check on the way. All instructions that touch memory
 * come through here.
 *
 * Volatile, cache operators, .nc and .relaxed change nothing here: lanes work on the host's bytes themselves, so there is
 * no cache to pass by, and each access to aligned bytes of a register's size is one access of the host. .acquire and
 * .release need a fence, which access_fence_* put between worker threads. */
#ifndef SWGPU_ACCESS_H
#define SWGPU_ACCESS_H

#include "exec.h"

/* ACCESS_ASYNC: the destination of a cp.async. */
typedef enum access_kind { ACCESS_READ, ACCESS_WRITE, ACCESS_ATOMIC, ACCESS_ASYNC } access_kind;

typedef struct access_request {
    warp *w;
    const ptx_instruction *i;
    uint32_t mask;             /* not 0 */
    uint32_t bytes;            /* of each lane */
    uint32_t alignment;        /* a power of two */
    uint8_t space;             /* SPACE_* */
    uint8_t kind;              /* access_kind */
    uint32_t together;         /* as for shadow_request */
    uint64_t address[PTX_LANES];
    /* Results. Addresses of lanes in shared memory become shared addresses. */
    uint8_t *at[PTX_LANES];
    uint32_t global, shared;   /* the lanes that landed there */
} access_request;

/* Fills a request for lanes that all touch `bytes` aligned bytes at an address operand. */
void access_begin(access_request *r, warp *w, const ptx_instruction *i, uint32_t mask, const ptx_operand *o, unsigned space,
                  access_kind kind, uint32_t bytes);

/* Checks all lanes and fills the results. Returns 0, or 1 after fault_raise. Writes count as done from here on. */
int access_check(access_request *r);

/* The same, and counts the request. */
int access_resolve(access_request *r);

static inline void access_fence_after(const ptx_instruction *i)
{
    if (i->modifier[MOD_ORDER] >= ORDER_ACQUIRE) atomic_thread_fence(memory_order_acquire);
}

static inline void access_fence_before(const ptx_instruction *i)
{
    if (i->modifier[MOD_ORDER] >= ORDER_ACQUIRE) atomic_thread_fence(memory_order_release);
}

#endif
