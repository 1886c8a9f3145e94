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

/* f32 on tensor cores: through registers into two buffers, which fit any of them. */
const arch_tile tiles_tf32[] = {
    {{128, 128, 16, 64, 32, 2, 1}, TILE_GENERIC},
    {{128, 64, 16, 64, 32, 2, 1}, 0},
    {{64, 128, 16, 32, 64, 2, 1}, 0},
    {{64, 64, 16, 32, 32, 2, 1}, TILE_GENERIC},
    {{32, 64, 16, 16, 32, 2, 1}, 0},
    {{64, 32, 16, 32, 16, 2, 1}, 0},
    {{32, 32, 16, 16, 16, 2, 1}, TILE_GENERIC},
    {{0, 0, 0, 0, 0, 0, 0}, 0},
};

/* Tensor cores with 160 KB of shared memory or more an SM. Large tiles for large products; then, of four to eight warps each by way
 * of slices, small ones for small products and for a few rows or columns, with deep stages. */
const arch_tile tiles_mma_large[] = {
    {{256, 128, 32, 64, 64, 4, 1}, 0},
    {{128, 256, 32, 64, 64, 4, 1}, 0},
    {{256, 128, 64, 64, 64, 3, 1}, 0},
    {{128, 256, 64, 64, 64, 3, 1}, 0},
    {{128, 128, 32, 64, 64, 5, 1}, 0},
    {{128, 128, 64, 64, 64, 3, 1}, 0},
    {{128, 128, 32, 64, 32, 4, 1}, TILE_GENERIC | TILE_GENERIC_GATHER | TILE_GENERIC_REALIGN},
    {{128, 128, 64, 64, 32, 3, 1}, 0},
    {{128, 64, 32, 64, 32, 4, 1}, 0},
    {{128, 64, 64, 64, 32, 4, 1}, 0},
    {{64, 128, 32, 32, 64, 4, 1}, 0},
    {{64, 128, 64, 32, 64, 4, 1}, 0},
    {{64, 64, 64, 32, 32, 4, 1}, TILE_GENERIC},
    {{64, 64, 32, 32, 32, 4, 1}, TILE_GENERIC_GATHER | TILE_GENERIC_REALIGN},
    {{64, 32, 64, 32, 16, 4, 1}, 0},
    {{32, 64, 64, 16, 32, 4, 1}, 0},
    {{32, 32, 64, 16, 16, 4, 1}, TILE_GENERIC},
    {{16, 64, 64, 16, 16, 4, 1}, 0},

    {{128, 128, 64, 64, 64, 3, 2}, 0},
    {{128, 64, 64, 64, 32, 4, 2}, 0},
    {{64, 128, 64, 32, 64, 4, 2}, 0},
    {{64, 64, 64, 32, 32, 5, 2}, TILE_GENERIC},
    {{64, 64, 128, 32, 32, 3, 2}, 0},
    {{64, 32, 128, 32, 32, 4, 2}, 0},
    {{32, 64, 128, 32, 32, 4, 2}, TILE_GENERIC_GATHER | TILE_GENERIC_REALIGN},

    {{64, 64, 64, 32, 32, 5, 4}, 0},
    {{64, 64, 128, 64, 32, 3, 4}, 0},
    {{64, 32, 128, 32, 32, 4, 4}, 0},
    {{32, 64, 128, 32, 32, 4, 4}, 0},
    {{32, 32, 64, 32, 32, 6, 4}, 0},
    {{32, 32, 128, 32, 32, 4, 4}, TILE_GENERIC | TILE_GENERIC_GATHER | TILE_GENERIC_REALIGN},
    {{16, 64, 128, 16, 64, 4, 4}, 0},
    {{64, 16, 128, 64, 16, 4, 4}, 0},
    {{16, 32, 128, 16, 32, 6, 4}, 0},
    {{32, 16, 128, 32, 16, 6, 4}, 0},
    {{16, 16, 64, 16, 16, 6, 4}, 0},
    {{16, 16, 128, 16, 16, 4, 4}, 0},

    {{32, 32, 256, 32, 32, 4, 8}, 0},
    {{32, 32, 128, 32, 32, 6, 8}, 0},
    {{16, 64, 128, 16, 64, 6, 8}, 0},
    {{64, 16, 128, 64, 16, 6, 8}, 0},
    {{16, 32, 256, 16, 32, 4, 8}, TILE_GENERIC | TILE_GENERIC_GATHER | TILE_GENERIC_REALIGN},
    {{32, 16, 256, 32, 16, 4, 8}, 0},
    {{16, 16, 256, 16, 16, 4, 8}, 0},
    {{0, 0, 0, 0, 0, 0, 0}, 0},
};

/* Tensor cores with 100 KB of shared memory an SM: fewer stages, so that two blocks fit. */
const arch_tile tiles_mma_small[] = {
    {{256, 128, 32, 64, 64, 3, 1}, 0},
    {{128, 256, 32, 64, 64, 3, 1}, 0},
    {{128, 128, 32, 64, 64, 3, 1}, 0},
    {{128, 128, 32, 64, 32, 3, 1}, TILE_GENERIC | TILE_GENERIC_GATHER | TILE_GENERIC_REALIGN},
    {{128, 64, 32, 64, 32, 3, 1}, 0},
    {{64, 128, 32, 32, 64, 3, 1}, 0},
    {{64, 64, 64, 32, 32, 3, 1}, TILE_GENERIC},
    {{64, 64, 32, 32, 32, 4, 1}, TILE_GENERIC_GATHER | TILE_GENERIC_REALIGN},
    {{64, 32, 64, 32, 16, 3, 1}, 0},
    {{32, 64, 64, 16, 32, 3, 1}, 0},
    {{32, 32, 64, 16, 16, 4, 1}, TILE_GENERIC},
    {{16, 64, 64, 16, 16, 4, 1}, 0},

    {{64, 64, 64, 32, 32, 3, 2}, TILE_GENERIC},
    {{32, 64, 128, 32, 32, 3, 2}, TILE_GENERIC_GATHER | TILE_GENERIC_REALIGN},

    {{32, 64, 128, 32, 32, 3, 4}, 0},
    {{64, 32, 128, 32, 32, 3, 4}, 0},
    {{32, 32, 128, 32, 32, 3, 4}, TILE_GENERIC | TILE_GENERIC_GATHER | TILE_GENERIC_REALIGN},
    {{16, 32, 128, 16, 32, 4, 4}, 0},
    {{32, 16, 128, 32, 16, 4, 4}, 0},

    {{16, 32, 256, 16, 32, 3, 8}, TILE_GENERIC | TILE_GENERIC_GATHER | TILE_GENERIC_REALIGN},
    {{32, 16, 256, 32, 16, 3, 8}, 0},
    {{0, 0, 0, 0, 0, 0, 0}, 0},
};
