/* The suites of jitgemm-bench: names in, problems out. Each is one or several lists of sizes, which are part of the program. */
#ifndef JG_TOOLS_BENCH_SUITES_H
#define JG_TOOLS_BENCH_SUITES_H

#include "sizelist.h"

/* The suite of batches of small products, which a grouped call computes too. */
#define BENCH_TINY "tiny"

typedef struct bench_list {
    const char *name;    /* "resnet50" */
    const char *suite;   /* "layers"; the same as name where a suite has one list */
    const char *what;    /* a line for --help */
    int memory;          /* memory bandwidth is the claim: by default buffers are rotated */
    const char *text;    /* lines as sizelist_read takes them, ended by 0 */
} bench_list;

/* All lists, those of a suite beside each other; null after the last. */
const bench_list *bench_list_at(size_t index);

/* Nonzero if the word names a suite or a list. */
int bench_list_matches(const bench_list *list, const char *word);

/* Adds the problems of a list, once for each of `defaults` (the types). Returns 0, or -1 with out->error set. */
int bench_list_problems(const bench_list *list, const jg_problem *defaults, size_t count, sizelist *out);

#endif
