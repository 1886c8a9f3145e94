/* The benchmarks' statistics: series whose quantiles are known in; those out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "tools/bench_stats.h"

/* 1, 2 ... n in an order that is not sorted: steps of a number that shares no factor with n + 1 = a prime. */
static double *shuffled(size_t n, size_t step)
{
    double *samples = malloc(n * sizeof *samples);
    assert_non_null(samples);
    for (size_t i = 0; i < n; i++) samples[i] = (double)((i + 1) * step % (n + 1));
    return samples;
}

static void check(const bench_summary *s, size_t n, const double figures[7])
{
    assert_int_equal(s->n, n);
    const double found[] = {s->min, s->p25, s->p50, s->p75, s->p99, s->p999, s->max};
    for (int i = 0; i < 7; i++)
        if (found[i] != figures[i]) fail_msg("figure %d of %zu samples is %g, not %g", i, n, found[i], figures[i]);
}

static void ranks_of_whole_numbers(void **state)
{
    (void)state;
    /* n + 1 is a prime in each, so that every step gives each of 1 ... n once. */
    static const struct { size_t n, step; double figures[7]; } rows[] = {
        {1, 1, {1, 1, 1, 1, 1, 1, 1}},
        {2, 2, {1, 1, 1, 2, 2, 2, 2}},                 /* ceil(0.5 * 2) = 1: the lower of the middle two */
        {4, 3, {1, 1, 2, 3, 4, 4, 4}},
        {10, 7, {1, 3, 5, 8, 10, 10, 10}},             /* ceil(2.5) = 3, ceil(7.5) = 8 */
        {100, 37, {1, 25, 50, 75, 99, 100, 100}},
        {1008, 500, {1, 252, 504, 756, 998, 1007, 1008}}, /* ceil(997.92), ceil(1006.992) */
        {20010, 7919, {1, 5003, 10005, 15008, 19810, 19990, 20010}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double *samples = shuffled(rows[i].n, rows[i].step);
        const bench_summary s = bench_summarise(samples, rows[i].n);
        check(&s, rows[i].n, rows[i].figures);
        free(samples);
    }
}

/* What the promise is about: of 20,000 calls 20 may be slower than p99.9. */
static void worst_20_of_20000(void **state)
{
    (void)state;
    double *samples = malloc(20000 * sizeof *samples);
    assert_non_null(samples);
    for (int bad = 0; bad <= 21; bad++) {
        for (int i = 0; i < 20000; i++) samples[i] = i % 900 == 7 && i / 900 < bad ? 1000 + i / 900 : 4;
        const bench_summary s = bench_summarise(samples, 20000);
        assert_true(s.p50 == 4 && s.p99 == 4);
        assert_true(s.p999 == (bad > 20 ? 1000 : 4));
        assert_true(s.max == (bad ? 999 + bad : 4));
    }
    free(samples);
}

/* Many n, against counting: the figure is the least sample that at least p of all samples do not exceed. */
static void ranks_by_counting(void **state)
{
    (void)state;
    static const unsigned permilles[] = {0, 1, 250, 333, 500, 750, 990, 999, 1000};
    double samples[1500];
    for (size_t n = 1; n <= 1500; n += n < 20 ? 1 : 37) {
        for (size_t i = 0; i < n; i++) samples[i] = (double)(i / 3); /* with ties */
        for (size_t j = 0; j < sizeof permilles / sizeof *permilles; j++) {
            size_t least = 0;
            for (;; least++) {
                size_t below = 0;
                for (size_t i = 0; i < n; i++) below += samples[i] <= samples[least];
                if (below * 1000 >= permilles[j] * n) break;
            }
            assert_true(bench_quantile(samples, n, permilles[j]) == samples[least]);
        }
    }
}

static void negative_and_equal(void **state)
{
    (void)state;
    double differences[] = {3, -2, -7, 0, 1};
    bench_summary s = bench_summarise(differences, 5);
    check(&s, 5, (const double[]){-7, -2, 0, 1, 3, 3, 3});
    double same[] = {5, 5, 5};
    s = bench_summarise(same, 3);
    check(&s, 3, (const double[]){5, 5, 5, 5, 5, 5, 5});
    s = bench_summarise(NULL, 0);
    check(&s, 0, (const double[]){0, 0, 0, 0, 0, 0, 0});
}

static void clock_runs(void **state)
{
    (void)state;
    const int64_t first_ns = bench_now_ns();
    int64_t now_ns = first_ns;
    while (now_ns == first_ns) now_ns = bench_now_ns();
    assert_true(now_ns > first_ns);
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    assert_in_range(now.tv_sec - first_ns / 1000000000, 0, 60);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_of_whole_numbers), cmocka_unit_test(worst_20_of_20000), cmocka_unit_test(ranks_by_counting),
        cmocka_unit_test(negative_and_equal),     cmocka_unit_test(clock_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
