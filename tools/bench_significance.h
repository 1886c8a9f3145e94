/* Whether two series differ by more than chance: Mann-Whitney U, and Benjamini-Hochberg over many comparisons.
 *
 * H. B. Mann, D. R. Whitney, "On a test of whether one of two random variables is stochastically larger than the other", 1947.
 * Y. Benjamini, Y. Hochberg, "Controlling the false discovery rate", 1995. */
#ifndef JG_TOOLS_BENCH_SIGNIFICANCE_H
#define JG_TOOLS_BENCH_SIGNIFICANCE_H

#include <stddef.h>

/* Most samples together for which the distribution of U is counted out; above, the normal approximation is taken. */
#define BENCH_MANN_WHITNEY_EXACT 60

/* The two-sided probability of ranks at least as far apart if both series came from one distribution. Ties share their mean
 * rank. Exact (the permutation distribution of these very ranks, ties included) up to BENCH_MANN_WHITNEY_EXACT samples, above
 * that normal with tie and continuity correction. 1 if a series is empty or all samples are equal; -1 if memory ran out. */
double bench_mann_whitney(const double *x, size_t nx, const double *y, size_t ny);

/* Turns p values in place into Benjamini-Hochberg adjusted ones: those at most q are a set of which at most a part q is expected
 * to be false. Returns 0, or -1 if memory ran out (the values are as they were). */
int bench_benjamini_hochberg(double *p, size_t count);

#endif
