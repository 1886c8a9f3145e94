/* The operands of the oracle on a context's device, one after the other in one piece of memory. */
#ifndef JG_TESTS_ON_DEVICE_H
#define JG_TESTS_ON_DEVICE_H

#include "reference.h"

/* Copies every block of ref there, C as it was before, and gives the operands. Errors: NO_MEMORY if the arena (aligned to 256) is
 * too small, and those of jg_copy. */
jg_status on_device_upload(jg_context *context, void *arena, size_t arena_bytes, const reference *ref, const float *alpha,
                           const float *beta, jg_operands *operands);

/* Copies C's block of an upload back, to ref->c.block or another place as large. */
jg_status on_device_download(jg_context *context, const jg_operands *operands, const reference *ref, unsigned char *to);

#endif
