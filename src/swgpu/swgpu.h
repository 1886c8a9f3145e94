/* What libjitgemm-swgpu.so exports beside the CUDA driver entry points. A program that uses the driver API needs none of
 * it; jitgemm looks these up and does without where they are missing, as in a real driver. */
#ifndef JITGEMM_SWGPU_H
#define JITGEMM_SWGPU_H

#include <stddef.h>
#include <stdint.h>

#define SWGPU_API __attribute__((visibility("default")))

/* A matrix that the calling thread's next launch may touch, in bytes. Elements outside every described matrix, such as
 * the padding between rows, may then neither be read nor written by it. */
typedef struct swgpu_operand {
    const char *name; /* "A"; must live until the launch returns; a captured one keeps its first 31 bytes */
    uint64_t base;    /* device address of the first row */
    uint64_t rows, row_bytes, row_step_bytes;
    uint64_t items, item_step_bytes; /* of a batch; items is at least 1 */
    int writable; /* 0: an input; 1; or SWGPU_WRITABLE_APART: and no byte of it may be one of an input */
} swgpu_operand;

#define SWGPU_WRITABLE_APART 2

/* Describes the calling thread's next launch: its operands, and how many multiply-adds it stands for, which decides
 * whether JITGEMM_SWGPU_BLOCKS applies. Forgotten after that launch. A launch that is captured
 * keeps it for each time that its graph is launched. Returns a CUresult. */
SWGPU_API int swgpuDescribeLaunch(const swgpu_operand *operands, unsigned count, uint64_t multiply_adds);

/* What the calling thread's last launch did, a graph's launch too (the sum of its kernels; counters.h explains the terms):
 * the values in this order. Returns how many
 * there are, and fills at most `count`. All are 0 if the thread has launched nothing; all but the blocks if counting is off. */
#define SWGPU_COUNTERS(X)                                                                                              \
    X(blocks) X(blocks_run) X(instructions) X(arithmetic) X(fma) X(special) X(logic) X(compare) X(move) X(convert) X(load) \
    X(store) X(atomic) X(copy) X(mma) X(warp) X(barrier) X(branch) X(other) X(global_load_requests)                    \
    X(global_load_sectors) X(global_store_requests) X(global_store_sectors) X(shared_load_requests)                    \
    X(shared_load_cycles) X(shared_load_conflicts) X(shared_store_requests) X(shared_store_cycles)                     \
    X(shared_store_conflicts) X(barriers) X(divergent_branches)
SWGPU_API unsigned swgpuCounters(uint64_t *values, unsigned count);

/* Errors on demand from now on, as JITGEMM_SWGPU_FAULT gives them at the start; "" for none. Counting begins anew. They
 * last until the next call of this or the next cuInit that reads the settings; any thread may call. Returns a CUresult:
 * CUDA_ERROR_INVALID_VALUE if the text cannot be read, which cuGetErrorString then explains, and then nothing has changed. */
SWGPU_API int swgpuSetFaults(const char *text);

/* Everything that the checks found since the process began, one line each, oldest first. Returns the length of the whole
 * text; *count (may be null) becomes the number of findings. */
SWGPU_API size_t swgpuFindings(char *text, size_t bytes, unsigned *count);

#endif
