/* Covering arrays of strength two: few rows, each a level for every factor, that have every two levels of any two factors
 * together in at least one of them. Deterministic; greedy, so that of all rows the first ones cover the most. */
#ifndef JG_TESTS_PAIRWISE_H
#define JG_TESTS_PAIRWISE_H

#include <stddef.h>

typedef struct pairwise_factor {
    const char *name;
    int levels;
} pairwise_factor;

/* Whether a row may begin so: level[f] is factor f's, or -1 where that is still open. Where some are open, a 1 promises nothing
 * about the rest; a 0 says that no choice of them helps. */
typedef int (*pairwise_allowed)(const void *user, const int *level);

typedef struct pairwise {
    int factors;
    size_t count;      /* rows */
    int *rows;         /* row r's levels are at r * factors */
    size_t pairs;      /* covered, all that can be */
    size_t impossible; /* pairs that are in no allowed row */
} pairwise;

/* Makes the rows; every one is allowed. allowed may be null. Aborts if memory is exhausted. */
pairwise pairwise_make(const pairwise_factor *factors, int count, pairwise_allowed allowed, const void *user);
void pairwise_free(pairwise *made);

/* How many different pairs the first so many rows have. */
size_t pairwise_covered(const pairwise *made, size_t rows);

#endif
