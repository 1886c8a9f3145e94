/* Which kernels a cache file holds, or a few of them together: paths in, a set of kernel names out.
 *
 * A file is listed once, so that asking for each of thousands of kernels costs no look into it. */
#ifndef JG_TOOLS_KEPT_KERNELS_H
#define JG_TOOLS_KEPT_KERNELS_H

#include <stddef.h>

/* Zero-initialise; free with kept_kernels_free. Names are sorted; a name can stand there more than once. */
typedef struct kept_kernels {
    char **names;
    size_t count, capacity;
    int out_of_memory;
} kept_kernels;

/* Adds the names in the cache file `path` (null: the default one). Returns null, or why it failed, valid until the
 * library's next failing call; the set is as it was then. */
const char *kept_kernels_read(kept_kernels *kept, const char *path);

/* Whether a kernel of exactly this name is there; it may be of another version of the library. */
int kept_kernels_has(const kept_kernels *kept, const char *name);

void kept_kernels_free(kept_kernels *kept);

#endif
