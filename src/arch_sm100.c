/* sm_100: B200, GB200. Limits: CUDA C++ Programming Guide, "Compute Capabilities". */
#include "arch.h"

const arch arch_sm100 = {
    .number = 100,
    .chips = "B200, GB200",
    .has_mma = 1,
    .sm_count = 148,
    .shared_per_sm = 228 * 1024,
    .shared_per_block = 227 * 1024,
    .shared_reserved = 1024,
    .registers_per_sm = 65536,
    .threads_per_sm = 2048,
    .blocks_per_sm = 32,
    .fma_per_clock = 128,
    .mma_per_clock = 1024,
    .mma_tiles = tiles_mma_large,
    .tf32_tiles = tiles_tf32,
    .simt_tiles = tiles_simt,
};
