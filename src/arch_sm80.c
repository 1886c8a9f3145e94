/* sm_80: A100, A30. Limits: CUDA C++ Programming Guide, "Compute Capabilities". */
#include "arch.h"

const arch arch_sm80 = {
    .number = 80,
    .chips = "A100, A30",
    .has_mma = 1,
    .sm_count = 108,
    .shared_per_sm = 164 * 1024,
    .shared_per_block = 163 * 1024,
    .shared_reserved = 1024,
    .registers_per_sm = 65536,
    .threads_per_sm = 2048,
    .blocks_per_sm = 32,
    .fma_per_clock = 64,
    .mma_per_clock = 1024,
    .mma_tiles = tiles_mma_large,
    .tf32_tiles = tiles_tf32,
    .simt_tiles = tiles_simt,
};
