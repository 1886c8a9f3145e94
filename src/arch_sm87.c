/* sm_87: Jetson AGX Orin (16 SMs), Orin NX and Nano (8 SMs). Limits: CUDA C++ Programming Guide, "Compute Capabilities". */
#include "arch.h"

const arch arch_sm87 = {
    .number = 87,
    .chips = "Jetson AGX Orin (16 SMs), Orin NX and Nano (8 SMs)",
    .has_mma = 1,
    .sm_count = 16,
    .shared_per_sm = 164 * 1024,
    .shared_per_block = 163 * 1024,
    .shared_reserved = 1024,
    .registers_per_sm = 65536,
    .threads_per_sm = 1536,
    .blocks_per_sm = 16,
    .fma_per_clock = 128,
    .mma_per_clock = 1024,
    .mma_tiles = tiles_mma_large,
    .tf32_tiles = tiles_tf32,
    .simt_tiles = tiles_simt,
};
