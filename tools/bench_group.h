/* The rows of a result by what they have in common: suite, list, element type, and where the operands lay. Each such group is a
 * picture and a table of the page. Rows that are no objects belong to no group. */
#ifndef JG_TOOLS_BENCH_GROUP_H
#define JG_TOOLS_BENCH_GROUP_H

#include "bench_page.h"

/* The first row of each group, in the document's order: after null comes the first one, after the last one null. */
const cJSON *bench_group_next(const cJSON *result, const cJSON *first);

/* The row after this one in its group; null after the last. */
const cJSON *bench_group_row(const cJSON *row);

/* "resnet50 f16, operands rotated", as text. */
void bench_group_title(bench_page *page, const cJSON *row);

/* "196 x 768 x 768, nt": the problem without its type, which is the group's. `problem` may be "" (then m, n and k are taken). */
void bench_size_text(bench_page *page, const cJSON *row);

/* A contestant of that name; null if there is none. Its median time; NaN if there is none. */
const cJSON *bench_contestant(const cJSON *row, const char *name);
double bench_median(const cJSON *row, const char *name);

/* Whether it is a peer that does not do such products at all. */
int bench_is_no_peer(const cJSON *contestant);

/* The contestant that all is about. */
#define BENCH_OURS "jitgemm"

#endif
