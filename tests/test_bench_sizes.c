/* The benchmarks' lists of sizes: a seed in; distinct problems of every kind out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "tools/bench_sizes.h"

#define COUNT 20000

static jg_problem *draw(uint64_t seed, size_t count, int64_t largest)
{
    bench_sizes s;
    jg_problem *out = calloc(count, sizeof *out);
    assert_non_null(out);
    bench_sizes_init(&s, seed, largest);
    for (size_t i = 0; i < count; i++) assert_int_equal(bench_sizes_draw(&s, &out[i]), 0);
    bench_sizes_free(&s);
    return out;
}

static int compare(const void *x, const void *y)
{
    const jg_problem *a = x, *b = y;
    const int64_t d[] = {a->m - b->m, a->n - b->n, a->k - b->k};
    for (int i = 0; i < 3; i++)
        if (d[i]) return d[i] < 0 ? -1 : 1;
    return 0;
}

static void all_distinct(void **state)
{
    (void)state;
    jg_problem *p = draw(1, COUNT, 2048);
    qsort(p, COUNT, sizeof *p, compare);
    for (size_t i = 1; i < COUNT; i++) assert_true(compare(&p[i - 1], &p[i]) != 0);
    free(p);
}

static void a_seed_gives_one_list(void **state)
{
    (void)state;
    jg_problem *p = draw(7, 500, 2048), *again = draw(7, 500, 2048), *other = draw(8, 500, 2048);
    assert_memory_equal(p, again, 500 * sizeof *p);
    assert_memory_not_equal(p, other, 500 * sizeof *p);
    free(p);
    free(again);
    free(other);
}

static int count_if(const jg_problem *p, size_t count, int (*is)(const jg_problem *))
{
    int n = 0;
    for (size_t i = 0; i < count; i++) n += is(&p[i]);
    return n;
}

static int is_aligned(const jg_problem *p) { return p->m % 8 == 0 && p->n % 8 == 0 && p->k % 8 == 0; }
static int is_odd(const jg_problem *p) { return p->m % 2 && p->n % 2 && p->k % 2; }
static int is_valid(const jg_problem *p)
{
    return p->m >= 1 && p->m <= 2048 && p->n >= 1 && p->n <= 2048 && p->k >= 1 && p->k <= 2048;
}
/* log-uniform: as many below the root of the range as above */
static int is_small(const jg_problem *p) { return p->m <= 45; }
static int is_large(const jg_problem *p) { return p->k > 1024; }

static void every_kind(void **state)
{
    (void)state;
    jg_problem *p = draw(3, COUNT, 2048);
    int kinds[2][2][2] = {{{0}}};
    for (size_t i = 0; i < COUNT; i++) {
        assert_int_equal(p[i].type_a, i % 2 ? JG_F32 : JG_F16);
        kinds[i % 2][p[i].op_a == JG_T][p[i].op_b == JG_T]++;
    }
    for (int i = 0; i < 8; i++) assert_int_equal(kinds[i / 4][i / 2 % 2][i % 2], COUNT / 8);
    assert_int_equal(count_if(p, COUNT, is_valid), COUNT);
    assert_in_range(count_if(p, COUNT, is_aligned), COUNT / 4, COUNT / 4 + COUNT / 20);
    assert_in_range(count_if(p, COUNT, is_odd), COUNT / 4, COUNT / 2);
    assert_in_range(count_if(p, COUNT, is_small), COUNT * 40 / 100, COUNT * 60 / 100);
    assert_in_range(count_if(p, COUNT, is_large), COUNT * 5 / 100, COUNT * 15 / 100); /* an eleventh */
    free(p);
}

static void bounds_are_kept(void **state)
{
    (void)state;
    jg_problem *p = draw(1, 300, 60);
    for (size_t i = 0; i < 300; i++) assert_true(p[i].m <= 60 && p[i].n <= 60 && p[i].k <= 60);
    free(p);
}

/* It ends where there are no more, and does not go on for ever. */
static void sizes_run_out(void **state)
{
    (void)state;
    bench_sizes s;
    jg_problem p;
    size_t count = 0;
    bench_sizes_init(&s, 1, 16);
    while (count < 5000 && bench_sizes_draw(&s, &p) == 0) count++;
    assert_in_range(count, 8, 4096);
    assert_int_equal(bench_sizes_draw_rewarding(&s, &p), -1); /* 8 and 16 only: all drawn before */
    bench_sizes_free(&s);
}

static void rewarding_sizes(void **state)
{
    (void)state;
    bench_sizes s;
    jg_problem p[1000];
    bench_sizes_init(&s, 5, 2048);
    for (size_t i = 0; i < 1000; i++) {
        assert_int_equal(bench_sizes_draw_rewarding(&s, &p[i]), 0);
        const int64_t dimensions[] = {p[i].m, p[i].n, p[i].k};
        for (int j = 0; j < 3; j++) assert_true(dimensions[j] % 8 == 0 && dimensions[j] >= 64 && dimensions[j] <= 512);
        assert_int_equal(p[i].type_a, JG_F16);
    }
    qsort(p, 1000, sizeof *p, compare);
    for (size_t i = 1; i < 1000; i++) assert_true(compare(&p[i - 1], &p[i]) != 0);
    bench_sizes_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_distinct),    cmocka_unit_test(a_seed_gives_one_list), cmocka_unit_test(every_kind),
        cmocka_unit_test(bounds_are_kept), cmocka_unit_test(sizes_run_out),         cmocka_unit_test(rewarding_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
