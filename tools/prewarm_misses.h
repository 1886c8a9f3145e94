/* The misses that a cache file remembers: the file's path and a target in, texts of problems out.
 *
 * The library takes them by itself (jg_prewarm_options.from_misses); the tool reads them to say that there are none, and to
 * show them in a dry run. */
#ifndef JG_TOOLS_PREWARM_MISSES_H
#define JG_TOOLS_PREWARM_MISSES_H

#include <stddef.h>

/* Zero-initialise; free with prewarm_misses_free. Most counted first. */
typedef struct prewarm_misses {
    char **problems;
    size_t count, capacity;
    char path[512]; /* of the file they are from */
    const char *target;
    int out_of_memory;
} prewarm_misses;

/* Reads the misses of `target` (e.g. "sm_87") in the cache file `path` (null: the default one). Returns null, or why it
 * failed, valid until the library's next failing call; the list is empty then. */
const char *prewarm_misses_read(prewarm_misses *misses, const char *path, const char *target);

void prewarm_misses_free(prewarm_misses *misses);

#endif
