/* Which blocks of a large grid run when not all are to. */
#ifndef SWGPU_SAMPLE_H
#define SWGPU_SAMPLE_H

#include <stdint.h>

/* Fills list with `wanted` different block indices of a grid, ascending, the first and the last block among them (of one
 * wanted, the first). The same for the same grid and number. wanted must be at least 1 and less than the grid's blocks. */
void sample_blocks(const uint32_t grid[3], uint64_t wanted, uint64_t *list);

#endif
