/* Tile tables shared by architectures. A row: block tile m n k, warp (thread) tile m n, stages, slices, flags.
 * Chosen from what jitgemm-bench plans measured on an H200 (src/NOTES-speed.md): the fewest rows that come within a few percent of the
 * best of some 130. Each number of slices with generic rows is a numeric class. */
#include "arch.h"

/* CUDA cores: any architecture. Of each number of slices a small one is generic. */
const arch_tile tiles_simt[] = {
    {{128, 256, 8, 8, 16, 3, 1}, 0},
    {{128, 128, 8, 8, 8, 4, 1}, TILE_GENERIC},
    {{64, 64, 16, 4, 4, 2, 1}, TILE_GENERIC},
    {{32, 32, 16, 4, 4, 3, 1}, 0},
    {{128, 64, 16, 8, 8, 3, 2}, 0},
    {{64, 128, 16, 8, 8, 3, 2}, 0},
    {{64, 64, 16, 8, 8, 3, 2}, TILE_GENERIC},
    {{32, 64, 16, 4, 8, 4, 2}, 0},
    {{64, 128, 32, 8, 8, 3, 4}, 0},
    {{48, 96, 32, 8, 4, 3, 4}, 0},
    {{64, 32, 32, 8, 8, 3, 4}, 0},
    {{32, 64, 32, 8, 8, 3, 4}, 0},
    {{32, 64, 32, 4, 8, 3, 4}, 0},
    {{32, 32, 32, 8, 4, 3, 4}, TILE_GENERIC},
    {{16, 32, 32, 4, 4, 4, 4}, TILE_GENERIC},
    {{32, 32, 64, 8, 8, 4, 16}, 0},
    {{16, 32, 128, 8, 4, 3, 16}, 0},
    {{16, 16, 64, 4, 4, 4, 16}, 0},
    {{8, 32, 64, 8, 4, 6, 16}, TILE_GENERIC},
    {{4, 32, 128, 4, 4, 4, 16}, 0},
    {{32, 8, 64, 4, 8, 5, 16}, TILE_GENERIC},
    {{32, 4, 64, 4, 4, 5, 16}, 0},
    {{0, 0, 0, 0, 0, 0, 0}, 0},
};

/* f32 on tensor cores. In warp tiles of 64x64 each element is read and rounded once for 64 others; so small products have those
 * too, and eight warps by way of slices. Most rows fit 100 KB of shared memory. */
const arch_tile tiles_tf32[] = {
    {{128, 128, 32, 64, 64, 4, 2}, 0},
    {{128, 64, 32, 64, 32, 4, 2}, 0},
    {{64, 64, 32, 64, 32, 3, 2}, TILE_GENERIC},
    {{64, 32, 64, 32, 32, 3, 2}, 0},
    {{32, 64, 64, 32, 32, 3, 2}, 0},
    {{128, 64, 64, 64, 64, 3, 4}, 0},
    {{64, 128, 64, 64, 64, 3, 4}, 0},
    {{64, 64, 64, 64, 64, 3, 4}, TILE_GENERIC},
    {{32, 32, 64, 32, 32, 4, 4}, TILE_GENERIC},
    {{16, 32, 64, 16, 32, 4, 4}, 0},
    {{16, 16, 64, 16, 16, 4, 4}, 0},
    {{0, 0, 0, 0, 0, 0, 0}, 0},
};

/* Tensor cores with 160 KB of shared memory or more an SM. Large tiles for large products; then, of four to eight warps each by way
 * of slices, small ones for small products and for a few rows or columns, with deep stages. */
const arch_tile tiles_mma_large[] = {
    {{256, 128, 32, 64, 64, 4, 1}, 0},
    {{128, 256, 32, 64, 64, 4, 1}, 0},
    {{128, 128, 32, 64, 64, 5, 1}, 0},
    {{128, 64, 32, 64, 32, 4, 1}, 0},
    {{64, 128, 32, 32, 64, 4, 1}, 0},
    {{64, 64, 64, 32, 32, 4, 1}, TILE_GENERIC},
    {{64, 64, 32, 32, 32, 4, 1}, TILE_GENERIC_REALIGN | TILE_GENERIC_GATHER},
    {{32, 64, 64, 16, 32, 4, 1}, 0},
    {{32, 32, 64, 16, 16, 4, 1}, 0},
    {{64, 128, 128, 64, 64, 3, 4}, 0},
    {{64, 64, 64, 64, 64, 5, 4}, TILE_GENERIC | TILE_GENERIC_REALIGN},
    {{64, 32, 128, 32, 32, 4, 4}, 0},
    {{32, 64, 128, 32, 32, 4, 4}, 0},
    {{32, 32, 64, 32, 32, 6, 4}, TILE_GENERIC | TILE_GENERIC_GATHER},
    {{16, 64, 128, 16, 64, 4, 4}, 0},
    {{16, 32, 128, 16, 32, 6, 4}, 0},
    {{32, 16, 128, 32, 16, 6, 4}, 0},
    {{16, 16, 64, 16, 16, 6, 4}, 0},
    {{0, 0, 0, 0, 0, 0, 0}, 0},
};

/* Tensor cores with 100 KB of shared memory an SM: fewer stages, so that two blocks fit. */
const arch_tile tiles_mma_small[] = {
    {{256, 128, 32, 64, 64, 3, 1}, 0},
    {{128, 256, 32, 64, 64, 3, 1}, 0},
    {{128, 128, 32, 64, 64, 4, 1}, 0},
    {{128, 64, 32, 64, 32, 4, 1}, 0},
    {{64, 128, 32, 32, 64, 4, 1}, 0},
    {{64, 64, 64, 32, 32, 3, 1}, TILE_GENERIC},
    {{64, 64, 32, 32, 32, 4, 1}, TILE_GENERIC_REALIGN | TILE_GENERIC_GATHER},
    {{32, 64, 64, 16, 32, 4, 1}, 0},
    {{32, 32, 64, 16, 16, 4, 1}, 0},
    {{64, 64, 64, 64, 64, 4, 4}, TILE_GENERIC | TILE_GENERIC_REALIGN},
    {{64, 32, 128, 32, 32, 3, 4}, 0},
    {{32, 64, 128, 32, 32, 3, 4}, 0},
    {{32, 32, 64, 32, 32, 6, 4}, TILE_GENERIC | TILE_GENERIC_GATHER},
    {{16, 64, 128, 16, 64, 4, 4}, 0},
    {{16, 32, 128, 16, 32, 4, 4}, 0},
    {{32, 16, 128, 32, 16, 4, 4}, 0},
    {{16, 16, 64, 16, 16, 6, 4}, 0},
    {{0, 0, 0, 0, 0, 0, 0}, 0},
};
