/* The list of misses in the cache file, in the library's own terms: problems that ran on a generic kernel, with counts. */
#ifndef JG_MISSES_H
#define JG_MISSES_H

#include "images.h"
#include "problem_key.h"
#include "worker.h"

typedef struct miss {
    problem_key key;
    uint64_t count;
    double gain;      /* recorded; 0: none */
    uint64_t record;  /* id of its own kernel, as it was planned then */
    int cached;       /* the cache or factory file has that */
} miss;

typedef struct miss_list {
    miss *misses;     /* most counted first */
    size_t count, room;
} miss_list;

/* Reads the misses of an architecture; an unreadable or missing file has none. Rows that this version cannot read are passed
 * over, as are those of sizes that were only measured and never met. Error: NO_MEMORY. */
jg_status misses_read(images *i, int sm, miss_list *out);
void misses_free(miss_list *list);

/* Adds counts[i] uses of mets[i]. A fault of the file is logged once. */
void misses_add(images *i, int sm, met *const *mets, const uint64_t *counts, size_t count);

/* A problem's own kernel is another one from now on: the list follows, if the problem is in it. A fault of the file is logged once. */
void misses_follow(images *i, int sm, const problem_key *key, uint64_t record);

/* The recorded gain of a problem; 0 if there is none. */
double misses_gain(images *i, int sm, const problem_key *key);

#endif
