/* What the parts of jitgemm-bench's suites of products share: which products there are (bench_collect.c), and how they are
 * measured (bench_products.c). */
#ifndef JG_TOOLS_BENCH_PRODUCTS_H
#define JG_TOOLS_BENCH_PRODUCTS_H

#include "bench_contest.h"
#include "bench_machine.h"
#include "bench_misalign.h"
#include "bench_rows.h"
#include "bench_run.h"

typedef struct products {
    bench_run *run;
    bench_arena arena;
    bench_machine machine;
    bench_product *list;
    size_t count, capacity, left_out; /* left_out: too large for the software GPU */
    CUdeviceptr workspace;
    bench_rows rows;
    size_t wrong;
    bench_misalign_base aligned;     /* of the suite of misaligned layouts */
} products;

/* Reads the suites, lists and sizes of the command line into s->list, type by type. Returns an exit status. */
int bench_products_collect(products *s);
void bench_products_forget(products *s);

#endif
