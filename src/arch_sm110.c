/* sm_110: Jetson AGX Thor. Limits: CUDA C++ Programming Guide, "Compute Capabilities". */
#include "arch.h"

const arch arch_sm110 = {
    .number = 110,
    .chips = "Jetson AGX Thor",
    .has_mma = 1,
    .sm_count = 20,
    .shared_per_sm = 228 * 1024,
    .shared_per_block = 227 * 1024,
    .shared_reserved = 1024,
    .registers_per_sm = 65536,
    .threads_per_sm = 1536,
    .blocks_per_sm = 24,
    .fma_per_clock = 128,
    .mma_per_clock = 1024,
    .mma_tiles = tiles_mma_large,
    .tf32_tiles = tiles_tf32,
    .simt_tiles = tiles_simt,
};
