/* Horizontal bars of the page, made of HTML and CSS so that they reflow on a phone: how many times as fast as the best peer we
 * are, size by size, and how long kernels took to compile. */
#ifndef JG_TOOLS_BENCH_BARS_H
#define JG_TOOLS_BENCH_BARS_H

#include "bench_page.h"

/* A difference that chance makes at least this often is marked as unsure. */
#define BENCH_BARS_P 0.01

/* Nonzero if there is something to draw. */
int bench_has_ratios(const cJSON *result);
void bench_write_ratios(bench_page *page, const cJSON *result);

int bench_has_compiles(const cJSON *result);
void bench_write_compiles(bench_page *page, const cJSON *result);

#endif
