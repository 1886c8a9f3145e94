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
    double software_flops;           /* it gets no larger ones; 0: as a suite's, each of which runs once */
    uint64_t cache_max_bytes;        /* 0: the library's own */
    CUdeviceptr workspace;
    bench_rows rows;
    size_t wrong;
    bench_misalign_base aligned;     /* of the suite of misaligned layouts */
} products;

/* Reads the suites, lists and sizes of the command line into s->list, type by type. Returns an exit status. */
int bench_products_collect(products *s);
void bench_products_forget(products *s);

/* Whether they are in one group of the table: of one list and type. */
int bench_products_same_group(const bench_product *x, const bench_product *y);

/* Steps of a measurement that have told why they failed: run->context; a clock and memory for the products that were collected, and
 * what else the arena has of the settings. */
int bench_products_open_library(products *s);
int bench_products_allocate(products *s);

/* Clocks, temperature and power, "" or with a suffix such as "_end". */
void bench_products_conditions(products *s, const char *when);

/* Gives back all but the context. */
void bench_products_close(products *s);

#endif
