#include "on_device.h"

#define BLOCK_ALIGN ((size_t)256)

jg_status on_device_upload(jg_context *context, void *arena, size_t arena_bytes, const reference *ref, const float *alpha,
                           const float *beta, jg_operands *operands)
{
    reference_block blocks[REFERENCE_MAX_BLOCKS];
    const size_t count = reference_blocks(ref, blocks);
    size_t at = 0;
    *operands = reference_operands(ref, alpha, beta);
    for (size_t i = 0; i < count; i++) {
        char *const copy = (char *)arena + at;
        at += (blocks[i].bytes + BLOCK_ALIGN - 1) / BLOCK_ALIGN * BLOCK_ALIGN;
        if (at > arena_bytes) return JG_ERR_NO_MEMORY;
        const jg_status status = jg_copy(context, copy, blocks[i].host, blocks[i].bytes);
        if (status != JG_OK) return status;
        reference_point(operands, &blocks[i], copy);
    }
    return JG_OK;
}

jg_status on_device_download(jg_context *context, const jg_operands *operands, const reference *ref, unsigned char *to)
{
    return jg_copy(context, to, (char *)operands->c - ref->c.offset_bytes, ref->c.block_bytes);
}
