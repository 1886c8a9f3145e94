/* Tile tables shared by architectures. A row: block tile m n k, warp (thread) tile m n, stages, slices, flags.
 * Untuned: chosen from public recipes, not yet measured row by row. */
#include "arch.h"

/* CUDA cores: any architecture. */
const arch_tile tiles_simt[] = {
    {{128, 128, 8, 8, 8, 2, 1}, TILE_GENERIC},
    {{128, 64, 8, 8, 8, 2, 1}, 0},
    {{64, 128, 8, 8, 8, 2, 1}, 0},
    {{64, 64, 16, 4, 4, 2, 1}, TILE_GENERIC},
    {{32, 64, 16, 4, 4, 2, 1}, 0},
    {{64, 32, 16, 4, 4, 2, 1}, 0},
    {{32, 32, 16, 4, 4, 2, 1}, TILE_GENERIC},
    {{0, 0, 0, 0, 0, 0, 0}, 0},
};

/* f32 on tensor cores: what fits 100 KB of shared memory. */
const arch_tile tiles_tf32[] = {
    {{128, 128, 16, 64, 32, 3, 1}, TILE_GENERIC},
    {{128, 128, 32, 64, 64, 3, 1}, 0},
    {{128, 64, 32, 64, 32, 3, 1}, 0},
    {{64, 128, 32, 32, 64, 3, 1}, 0},
    {{64, 64, 32, 32, 32, 3, 1}, TILE_GENERIC},
    {{64, 64, 32, 64, 32, 3, 2}, 0},
    {{32, 64, 32, 16, 32, 4, 1}, 0},
    {{64, 32, 32, 32, 16, 4, 1}, 0},
    {{32, 64, 32, 32, 32, 3, 2}, 0},
    {{64, 32, 32, 32, 32, 3, 2}, 0},
    {{32, 32, 32, 16, 16, 4, 1}, TILE_GENERIC},
    {{32, 32, 64, 32, 16, 3, 2}, 0},
    {{32, 32, 32, 32, 32, 4, 4}, 0},
    {{16, 32, 64, 16, 32, 3, 4}, 0},
    {{16, 16, 64, 16, 16, 4, 4}, 0},
    {{0, 0, 0, 0, 0, 0, 0}, 0},
};

/* Tensor cores with 160 KB of shared memory or more an SM. */
const arch_tile tiles_mma_large[] = {
    {{256, 128, 32, 64, 64, 4, 1}, 0},
    {{128, 256, 32, 64, 64, 4, 1}, 0},
    {{128, 128, 32, 64, 32, 4, 1}, TILE_GENERIC | TILE_GENERIC_GATHER},
    {{128, 64, 32, 64, 32, 4, 1}, 0},
    {{64, 128, 32, 32, 64, 4, 1}, 0},
    {{64, 64, 64, 32, 32, 3, 1}, TILE_GENERIC},
    {{64, 64, 32, 32, 32, 4, 1}, TILE_GENERIC_GATHER},
    {{64, 32, 64, 32, 16, 4, 1}, 0},
    {{32, 64, 64, 16, 32, 4, 1}, 0},
    {{32, 32, 64, 16, 16, 4, 1}, TILE_GENERIC},
    {{16, 64, 64, 16, 16, 4, 1}, 0},
    {{0, 0, 0, 0, 0, 0, 0}, 0},
};

/* Tensor cores with 100 KB of shared memory an SM: fewer stages, so that two blocks fit. */
const arch_tile tiles_mma_small[] = {
    {{256, 128, 32, 64, 64, 3, 1}, 0},
    {{128, 256, 32, 64, 64, 3, 1}, 0},
    {{128, 128, 32, 64, 32, 3, 1}, TILE_GENERIC | TILE_GENERIC_GATHER},
    {{128, 64, 32, 64, 32, 3, 1}, 0},
    {{64, 128, 32, 32, 64, 3, 1}, 0},
    {{64, 64, 64, 32, 32, 3, 1}, TILE_GENERIC},
    {{64, 64, 32, 32, 32, 4, 1}, TILE_GENERIC_GATHER},
    {{64, 32, 64, 32, 16, 3, 1}, 0},
    {{32, 64, 64, 16, 32, 3, 1}, 0},
    {{32, 32, 64, 16, 16, 4, 1}, TILE_GENERIC},
    {{16, 64, 64, 16, 16, 4, 1}, 0},
    {{0, 0, 0, 0, 0, 0, 0}, 0},
};
