/* A sample of a grid's blocks. The grid is cut into as many stretches as blocks are wanted, and one block of each is taken:
 * in turn its first, the end of a row of blocks where it holds one (edges of a matrix are cut there), and one that a hash
 * of the grid chooses. So the sample is spread evenly, has no block twice, and comes out sorted. */
#include "sample.h"

static uint64_t mix(uint64_t x)
{
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9ull;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

/* The first block of a stretch; that of stretch `wanted` is the number of blocks. */
static uint64_t start(uint64_t blocks, uint64_t wanted, uint64_t stretch)
{
    const uint64_t rest = blocks % wanted;
    return blocks / wanted * stretch + (stretch < rest ? stretch : rest);
}

void sample_blocks(const uint32_t grid[3], uint64_t wanted, uint64_t *list)
{
    const uint64_t blocks = (uint64_t)grid[0] * grid[1] * grid[2], row = grid[0];
    const uint64_t seed = mix(grid[0] + mix(grid[1] + mix(grid[2] + 0x9e3779b97f4a7c15ull)));
    for (uint64_t i = 0; i < wanted; i++) {
        const uint64_t first = start(blocks, wanted, i), after = start(blocks, wanted, i + 1);
        const uint64_t row_end = first + (row - 1 - first % row);
        list[i] = first;
        if (i % 3 == 1 && row_end < after) list[i] = row_end;
        if (i % 3 == 2) list[i] = first + mix(seed + i) % (after - first);
    }
    if (wanted > 1) list[wanted - 1] = blocks - 1;
}
