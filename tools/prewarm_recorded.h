/* Which plans are recorded for a place, for a dry run, whose context reads no cache file: paths in, kernels by problem out. */
#ifndef JG_TOOLS_PREWARM_RECORDED_H
#define JG_TOOLS_PREWARM_RECORDED_H

#include "jitgemm.h"

#include <stddef.h>

typedef struct prewarm_choice {
    char *problem, *kernel;
} prewarm_choice;

/* Zero-initialise; free with prewarm_recorded_free. */
typedef struct prewarm_recorded {
    prewarm_choice *list;
    size_t count, capacity;
    const char *place;
} prewarm_recorded;

/* Adds what the cache file `path` (null: the default one) has for a place, which must stay valid. What is there already goes first. A
 * file that cannot be read, or want of memory, adds nothing. */
void prewarm_recorded_read(prewarm_recorded *recorded, const char *path, const char *place);

/* The kernel of a problem; null: none is recorded. */
const char *prewarm_recorded_find(const prewarm_recorded *recorded, const jg_problem *in);

void prewarm_recorded_free(prewarm_recorded *recorded);

#endif
