/* Mann-Whitney U and Benjamini-Hochberg: see bench_significance.h.
 *
 * Ranks are doubled, so that mean ranks of ties are whole numbers and sums of them are compared exactly. */
#include "bench_significance.h"

#include <math.h>
#include <stdlib.h>

/* A value of one of the series, or a p value, and where it came from. */
typedef struct item {
    double value;
    size_t index;
    long rank; /* doubled */
} item;

static int compare(const void *x, const void *y)
{
    const double a = ((const item *)x)->value, b = ((const item *)y)->value;
    return (a > b) - (a < b);
}

/* ---- Mann-Whitney ---- */

/* Sorts, and gives each value the mean rank of its equals. Returns the sum of t^3 - t over all groups of t equals. */
static double rank_all(item *all, size_t n)
{
    double ties = 0;
    qsort(all, n, sizeof *all, compare);
    for (size_t first = 0, last; first < n; first = last) {
        for (last = first; last < n && all[last].value == all[first].value; last++) {}
        for (size_t i = first; i < last; i++) all[i].rank = (long)(first + 1 + last); /* twice the mean of first + 1 ... last */
        const double t = (double)(last - first);
        ties += t * t * t - t;
    }
    return ties;
}

/* Which part of all ways to choose k of the n ranks has a sum at least `far` away from `mean`. Doubles are exact enough: no
 * count is above 60 over 30, and all that is done with them is adding. */
static double part_as_far(const item *all, size_t n, size_t k, long mean, long far)
{
    size_t sums = 1; /* 0 ... sum of all ranks */
    for (size_t i = 0; i < n; i++) sums += (size_t)all[i].rank;
    double *ways = calloc((k + 1) * sums, sizeof *ways); /* [chosen][sum] */
    if (!ways) return -1;
    ways[0] = 1;
    size_t reached = 0; /* no larger sum yet */
    for (size_t i = 0; i < n; i++) {
        const size_t rank = (size_t)all[i].rank;
        reached += rank;
        for (size_t chosen = i + 1 < k ? i + 1 : k; chosen > 0; chosen--) { /* downwards: each rank is chosen once */
            const double *from = ways + (chosen - 1) * sums;
            double *to = ways + chosen * sums;
            for (size_t sum = rank; sum <= reached; sum++) to[sum] += from[sum - rank];
        }
    }
    double total = 0, as_far = 0;
    for (size_t sum = 0; sum < sums; sum++) {
        const double here = ways[k * sums + sum];
        total += here;
        if (labs((long)sum - mean) >= far) as_far += here;
    }
    free(ways);
    return as_far / total;
}

/* far: of the doubled sum of ranks, so twice that of U. */
static double normal_probability(double nx, double ny, double ties, long far)
{
    const double n = nx + ny;
    const double variance = nx * ny / 12 * (n + 1 - ties / (n * (n - 1)));
    const double distance = (double)far / 2 - 0.5;
    return distance <= 0 ? 1 : erfc(distance / sqrt(2 * variance));
}

double bench_mann_whitney(const double *x, size_t nx, const double *y, size_t ny)
{
    const size_t n = nx + ny;
    if (nx == 0 || ny == 0) return 1;
    item *all = malloc(n * sizeof *all);
    if (!all) return -1;
    for (size_t i = 0; i < n; i++) all[i] = (item){.value = i < nx ? x[i] : y[i - nx], .index = i};
    const double ties = rank_all(all, n);
    double p = 1;
    if (all[0].value != all[n - 1].value) {
        /* Of the smaller series: the ranks of the others are as far away on the other side. */
        const size_t k = nx <= ny ? nx : ny;
        long sum = 0;
        for (size_t i = 0; i < n; i++)
            if ((all[i].index < nx) == (nx <= ny)) sum += all[i].rank;
        const long mean = (long)(k * (n + 1)), far = labs(sum - mean);
        p = n <= BENCH_MANN_WHITNEY_EXACT ? part_as_far(all, n, k, mean, far)
                                          : normal_probability((double)nx, (double)ny, ties, far);
    }
    free(all);
    return p;
}

/* ---- Benjamini-Hochberg ---- */

int bench_benjamini_hochberg(double *p, size_t count)
{
    if (count == 0) return 0;
    item *sorted = malloc(count * sizeof *sorted);
    if (!sorted) return -1;
    for (size_t i = 0; i < count; i++) sorted[i] = (item){.value = p[i], .index = i};
    qsort(sorted, count, sizeof *sorted, compare);
    double least = 1; /* from the largest downwards, so that a smaller p never gets the larger adjusted one */
    for (size_t rank = count; rank > 0; rank--) {
        const double adjusted = sorted[rank - 1].value * (double)count / (double)rank;
        if (adjusted < least) least = adjusted;
        p[sorted[rank - 1].index] = least;
    }
    free(sorted);
    return 0;
}
