/* Mann-Whitney U and Benjamini-Hochberg: series in; probabilities that are known, counted out
 * in another way, or seen in trials. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "tools/bench_significance.h"

static void assert_near(double found, double expected, double relative)
{
    if (!(fabs(found - expected) <= relative * expected)) fail_msg("%.17g is not %.17g", found, expected);
}

/* ---- made-up series ---- */

static uint64_t seed;

static double uniform(void)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return ((double)(seed >> 11) + 0.5) * 0x1p-53;
}

/* As times are: a floor, and a tail above it. */
static void make_times(double *out, size_t n, double floor)
{
    for (size_t i = 0; i < n; i++) out[i] = floor * (1 - 0.01 * log(uniform()));
}

/* ---- the exact distribution ---- */

/* U of the chosen ones against the rest, doubled: 2 for each pair where the chosen one is larger, 1 where they are equal. */
static long doubled_u(const double *all, size_t n, unsigned chosen)
{
    long u = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; chosen >> i & 1 && j < n; j++)
            if (!(chosen >> j & 1)) u += all[i] > all[j] ? 2 : all[i] == all[j];
    return u;
}

/* By going through every way to choose nx of all: pairs are compared, no rank is used. */
static double by_enumeration(const double *all, size_t nx, size_t n)
{
    const long mean = (long)(nx * (n - nx));
    const long far = labs(doubled_u(all, n, (1u << nx) - 1) - mean);
    size_t ways = 0, as_far = 0;
    for (unsigned chosen = 0; chosen < 1u << n; chosen++) {
        if ((size_t)__builtin_popcount(chosen) != nx) continue;
        ways++;
        as_far += labs(doubled_u(all, n, chosen) - mean) >= far;
    }
    return (double)as_far / (double)ways;
}

/* Values of few levels tie often, of many hardly ever. */
static void every_choice(void **state)
{
    (void)state;
    static const double levels[] = {2, 3, 5, 1e9};
    double all[11];
    seed = 1;
    for (size_t n = 2; n <= 11; n++)
        for (size_t nx = 1; nx < n; nx++)
            for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
                for (size_t j = 0; j < n; j++) all[j] = floor(uniform() * levels[i]);
                assert_near(bench_mann_whitney(all, nx, all + nx, n - nx), by_enumeration(all, nx, n), 1e-12);
            }
}

static void known_probabilities(void **state)
{
    (void)state;
    double x[30], y[30];
    for (int i = 0; i < 30; i++) x[i] = i + 1, y[i] = i + 31;
    assert_near(bench_mann_whitney(x, 10, x + 10, 10), 2.0 / 184756, 1e-12); /* 20 over 10 */
    assert_near(bench_mann_whitney(x, 1, x + 1, 1), 1, 0);
    assert_near(bench_mann_whitney(x, 2, x + 2, 2), 2.0 / 6, 1e-12);
    assert_near(bench_mann_whitney(x, 3, x + 3, 5), 2.0 / 56, 1e-12);
    assert_near(bench_mann_whitney(x, 30, y, 30), 2.0 / 118264581564861424.0, 1e-12); /* 60 over 30, the largest that is exact */
    /* U = 1 of 3 x 3: of 20 ways one each has U = 0, 1, 8, 9. */
    assert_near(bench_mann_whitney((const double[]){1, 2, 4}, 3, (const double[]){3, 5, 6}, 3), 4.0 / 20, 1e-12);
    /* {1, 2} and {2, 3}: pairs of the ranks 1, 2.5, 2.5, 4, whose mean sum is 5: 3.5 twice and 6.5 twice are as far, 5 twice
     * is not. */
    assert_near(bench_mann_whitney((const double[]){1, 2}, 2, (const double[]){2, 3}, 2), 4.0 / 6, 1e-12);
    /* The usual table of critical values has U = 13 for 8 and 8 at 0.05, two-sided: 642 of 16 over 8 ways are as far. */
    const double a[] = {1, 2, 3, 4, 5, 8, 12, 14}, b[] = {6, 7, 9, 10, 11, 13, 15, 16};
    assert_near(bench_mann_whitney(a, 8, b, 8), 642.0 / 12870, 1e-12);
}

static void nothing_to_tell(void **state)
{
    (void)state;
    const double same[100] = {0}, x[] = {1, 2, 3};
    assert_true(bench_mann_whitney(same, 5, same, 5) == 1);
    assert_true(bench_mann_whitney(same, 100, same, 100) == 1);
    assert_true(bench_mann_whitney(same, 0, x, 3) == 1);
    assert_true(bench_mann_whitney(x, 3, NULL, 0) == 1);
    assert_true(bench_mann_whitney(NULL, 0, NULL, 0) == 1);
    assert_true(bench_mann_whitney(x, 3, x, 3) == 1);
}

static void both_ways_round(void **state)
{
    (void)state;
    double x[90], y[90];
    seed = 2;
    for (size_t nx = 1; nx <= 90; nx += 8)
        for (size_t ny = 1; ny <= 90; ny += 11) {
            for (size_t i = 0; i < 90; i++) x[i] = floor(40 * uniform()), y[i] = floor(45 * uniform());
            const double p = bench_mann_whitney(x, nx, y, ny);
            assert_true(p > 0 && p <= 1);
            assert_true(bench_mann_whitney(y, ny, x, nx) == p);
            for (size_t i = 0; i < 90; i++) x[i] = -x[i], y[i] = -y[i]; /* and turned over */
            assert_near(bench_mann_whitney(x, nx, y, ny), p, 1e-12);
        }
}

/* ---- the normal approximation ---- */

static void normal_by_hand(void **state)
{
    (void)state;
    double x[40], y[40];
    /* No ties: U = 0 of 1600, mean 800, variance 1600 * 81 / 12 = 10800; z = 799.5 / 103.923 = 7.69320. */
    for (int i = 0; i < 40; i++) x[i] = i, y[i] = i + 40;
    assert_near(bench_mann_whitney(x, 40, y, 40), erfc(799.5 / sqrt(10800) / sqrt(2)), 1e-12);
    /* Two values only, 10 of 40 against 20 of 40 large: doubled ranks are 51 (50 equals) and 131 (30 equals). The sum of x is
     * (30 * 51 + 10 * 131) / 2 = 1420, 200 below the mean 1620; variance 1600 / 12 * (81 - (124950 + 26970) / 6320) = 7594.94. */
    for (int i = 0; i < 40; i++) x[i] = i < 10, y[i] = i < 20;
    assert_near(bench_mann_whitney(x, 40, y, 40), erfc(199.5 / sqrt(1600.0 / 12 * (81 - 151920.0 / 6320)) / sqrt(2)), 1e-12);
}

/* One sample more leads across the limit; it is put where it moves the sum of ranks least: into the middle. What is small
 * may differ by a part of itself. */
static void normal_beside_exact(void **state)
{
    (void)state;
    double x[30], y[31];
    seed = 3;
    for (int trial = 0; trial < 40; trial++) {
        make_times(x, 30, 1);
        make_times(y, 30, 1 + 0.0003 * trial);
        y[30] = 1.007;
        const double exact = bench_mann_whitney(x, 30, y, 30), normal = bench_mann_whitney(x, 30, y, 31);
        if (fabs(exact - normal) > 0.05 || (exact > 0.001 && fabs(log(exact / normal)) > log(2)))
            fail_msg("trial %d: exact %g, normal %g", trial, exact, normal);
    }
}

/* ---- trials ---- */

/* How many of `trials` comparisons of two series have p below 0.01. */
static int count_flagged(int trials, size_t n, double shift)
{
    double x[64], y[64];
    int flagged = 0;
    for (int i = 0; i < trials; i++) {
        make_times(x, n, 1);
        make_times(y, n, shift);
        flagged += bench_mann_whitney(x, n, y, n) < 0.01;
    }
    return flagged;
}

/* Of 2000 trials 20 are expected by chance, a little less as the exact distribution has steps; the bounds are 4.5 standard
 * deviations (4.45) away. */
static void false_alarms_are_rare(void **state)
{
    (void)state;
    seed = 4;
    const int exact = count_flagged(2000, 10, 1), normal = count_flagged(2000, 40, 1);
    if (exact > 40 || normal > 40 || exact < 2 || normal < 2) fail_msg("%d and %d of 2000 are flagged", exact, normal);
}

static void shifts_are_found(void **state)
{
    (void)state;
    seed = 5;
    assert_true(count_flagged(200, 10, 1.03) >= 190);
    assert_true(count_flagged(200, 10, 0.97) >= 190);
    assert_true(count_flagged(200, 40, 1.02) >= 190);
    assert_true(count_flagged(200, 10, 1.002) <= 40); /* a fifth of the tail's mean is too little to be seen with ten */
}

/* ---- many comparisons ---- */

/* The example of the paper (1995), section 3.3: 15 comparisons, of which four are significant at 0.05. */
static void example_of_the_paper(void **state)
{
    (void)state;
    double p[] = {0.4262, 0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298,
                  0.0344, 0.0459, 0.3240, 0.5719, 0.6528, 0.7590, 1.0};
    const double adjusted[] = {0.4262 * 15 / 11, 0.0015, 0.0004 * 15 / 2, 0.0095, 0.0095 * 15 / 4, 0.0603,
                               0.0298 * 15 / 7, /* that of the next, as 0.0278 * 15 / 6 is larger */
                               0.0298 * 15 / 7, 0.0344 * 15 / 8, 0.0765, 0.0324 * 15, 0.5719 * 15 / 12, 0.6528 * 15 / 13,
                               0.7590 * 15 / 14, 1};
    int significant = 0;
    assert_int_equal(bench_benjamini_hochberg(p, 15), 0);
    for (int i = 0; i < 15; i++) {
        assert_near(p[i], adjusted[i], 1e-12);
        significant += p[i] <= 0.05;
    }
    assert_int_equal(significant, 4);
}

static void adjusted_is_capped_and_monotone(void **state)
{
    (void)state;
    double one[] = {0.3}, equal[] = {0.02, 0.02, 0.02, 0.02}, large[] = {0.9, 0.8, 1}, p[300], before[300];
    assert_int_equal(bench_benjamini_hochberg(NULL, 0), 0);
    bench_benjamini_hochberg(one, 1);
    assert_true(one[0] == 0.3);
    bench_benjamini_hochberg(equal, 4);
    for (int i = 0; i < 4; i++) assert_near(equal[i], 0.02, 1e-12);
    bench_benjamini_hochberg(large, 3);
    for (int i = 0; i < 3; i++) assert_true(large[i] == 1);
    seed = 6;
    for (int i = 0; i < 300; i++) p[i] = before[i] = uniform() * uniform();
    assert_int_equal(bench_benjamini_hochberg(p, 300), 0);
    for (int i = 0; i < 300; i++) {
        assert_true(p[i] >= before[i] && p[i] <= 1);
        for (int j = 0; j < 300; j++) assert_true(before[i] >= before[j] || p[i] <= p[j]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_choice),          cmocka_unit_test(known_probabilities),
        cmocka_unit_test(nothing_to_tell),       cmocka_unit_test(both_ways_round),
        cmocka_unit_test(normal_by_hand),        cmocka_unit_test(normal_beside_exact),
        cmocka_unit_test(false_alarms_are_rare), cmocka_unit_test(shifts_are_found),
        cmocka_unit_test(example_of_the_paper),  cmocka_unit_test(adjusted_is_capped_and_monotone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
