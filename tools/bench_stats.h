/* Statistics of measured series: samples in, nearest-rank quantiles out.
 *
 * Quantile p of n sorted samples is the one at rank ceil(p * n), counted from 1: always a sample that was measured, never a
 * mean of two. p99.9 of 20,000 leaves the 20 worst above it; where n is under 1,000 it is the maximum. */
#ifndef JG_TOOLS_BENCH_STATS_H
#define JG_TOOLS_BENCH_STATS_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* All 0 for an empty series. */
typedef struct bench_summary {
    size_t n;
    double min, p25, p50, p75, p99, p999, max;
} bench_summary;

/* Sorts the samples and sums them up. */
bench_summary bench_summarise(double *samples, size_t n);

/* The quantile of sorted samples; permille from 0 to 1000. n must not be 0. */
double bench_quantile(const double *sorted, size_t n, unsigned permille);

/* Nanoseconds of CLOCK_MONOTONIC, which is one clock for all processes of a machine. */
static inline int64_t bench_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

#endif
