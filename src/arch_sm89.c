/* sm_89: RTX 40, L4, L40. Limits: CUDA C++ Programming Guide, "Compute Capabilities". */
#include "arch.h"

const arch arch_sm89 = {
    .number = 89,
    .chips = "RTX 40, L4, L40",
    .has_mma = 1,
    .sm_count = 58,
    .shared_per_sm = 100 * 1024,
    .shared_per_block = 99 * 1024,
    .shared_reserved = 1024,
    .registers_per_sm = 65536,
    .threads_per_sm = 1536,
    .blocks_per_sm = 24,
    .fma_per_clock = 128,
    .mma_per_clock = 512,
    .mma_tiles = tiles_mma_small,
    .tf32_tiles = tiles_tf32,
    .simt_tiles = tiles_simt,
};
