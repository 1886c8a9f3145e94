/* sm_75: T4, RTX 20. Limits: CUDA C++ Programming Guide, "Compute Capabilities". */
#include "arch.h"

const arch arch_sm75 = {
    .number = 75,
    .chips = "T4, RTX 20",
    .has_mma = 0,
    .sm_count = 40,
    .shared_per_sm = 64 * 1024,
    .shared_per_block = 64 * 1024,
    .shared_reserved = 0,
    .registers_per_sm = 65536,
    .threads_per_sm = 1024,
    .blocks_per_sm = 16,
    .fma_per_clock = 64,
    .mma_per_clock = 0,
    .mma_tiles = NULL,
    .simt_tiles = tiles_simt,
};
