/* Takes the tile out of a kernel's name: see kernel_tile.h. */
#include "kernel_tile.h"

#include <stdio.h>
#include <string.h>

void kernel_tile(const char *kernel, char *text, size_t size)
{
    int m, n, k, length = 0;
    const char *begin = strchr(kernel, '_');
    while (begin && sscanf(begin + 1, "%dx%dx%d%n", &m, &n, &k, &length) != 3) begin = strchr(begin + 1, '_');
    if (!begin) {
        snprintf(text, size, "-");
        return;
    }
    const char *end = ++begin + length;
    while (*end == '_' && end[1] && strchr("wsk", end[1]) && end[2] >= '0' && end[2] <= '9') end += 1 + strcspn(end + 1, "_");
    snprintf(text, size, "%.*s", (int)(end - begin), begin);
}
