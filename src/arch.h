/* What a GPU architecture is: limits, features and tiles. One table file an architecture (arch_smNN.c); to add
 * one, add its file, its line in arch.c, and run the compile tests. */
#ifndef JG_ARCH_H
#define JG_ARCH_H

#include "kernel.h"

#define TILE_GENERIC 1u        /* in the generic set with 16-byte loads (mma) or all loads (simt) */
#define TILE_GENERIC_GATHER 2u /* in the generic set with element-wise loads (mma) */
#define TILE_GENERIC_REALIGN 4u /* in the generic set for operands that are not aligned (mma) */

typedef struct arch_tile {
    tile tile;
    unsigned flags;
} arch_tile;

typedef struct arch {
    int number;              /* 87 for sm_87 */
    const char *chips;       /* examples */
    int has_mma;             /* mma.sync m16n8k16 f16/bf16, cp.async, ldmatrix */
    int sm_count;            /* of a typical chip; used where no device tells */
    int shared_per_sm, shared_per_block, shared_reserved; /* bytes; reserved: what the system takes a block */
    int registers_per_sm, threads_per_sm, blocks_per_sm;
    double fma_per_clock;    /* f32 multiply-adds per SM and clock on CUDA cores */
    double mma_per_clock;    /* f16 multiply-adds per SM and clock through mma.sync */
    const arch_tile *mma_tiles, *tf32_tiles, *simt_tiles; /* end with a zero row; the first two only with has_mma. mma: of 16-bit
                              * elements; of 8-bit ones k counts twice */
} arch;

/* The table row for a compute capability, or the nearest older one of the same major version; null if there is none. */
const arch *arch_find(int number);

/* All rows, ascending; null after the last. */
const arch *arch_at(size_t index);

/* Tile tables that several architectures share (arch_tiles.c). */
extern const arch_tile tiles_simt[], tiles_tf32[], tiles_mma_large[], tiles_mma_small[];

extern const arch arch_sm75, arch_sm80, arch_sm86, arch_sm87, arch_sm89, arch_sm90, arch_sm100, arch_sm110, arch_sm120;

#endif
