/* Nearest-rank quantiles: see bench_stats.h. Ranks are computed in integers: 0.999 * 20000 is not a whole number in binary. */
#include "bench_stats.h"

#include <stdlib.h>

static int compare(const void *x, const void *y)
{
    const double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

double bench_quantile(const double *sorted, size_t n, unsigned permille)
{
    const size_t rank = (n * permille + 999) / 1000;
    return sorted[rank ? rank - 1 : 0];
}

bench_summary bench_summarise(double *samples, size_t n)
{
    bench_summary out = {.n = n};
    if (n == 0) return out;
    qsort(samples, n, sizeof *samples, compare);
    const struct {
        double *to;
        unsigned permille;
    } rows[] = {{&out.min, 0},   {&out.p25, 250},  {&out.p50, 500},  {&out.p75, 750},
                {&out.p99, 990}, {&out.p999, 999}, {&out.max, 1000}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) *rows[i].to = bench_quantile(samples, n, rows[i].permille);
    return out;
}
