/* Which candidate a kernel is, out of its name. */
#ifndef JG_TOOLS_KERNEL_TILE_H
#define JG_TOOLS_KERNEL_TILE_H

#include <stddef.h>

/* The part of a kernel's name that tells it from the others of its problem, e.g. "64x128x32_w64x32_s3": the tile, and what begins
 * with w, s or k and a number behind it; "-" where there is none. Cut to size. */
void kernel_tile(const char *kernel, char *text, size_t size);

#endif
