/* Covering arrays, against all rows there are. */
#include "pairwise.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define MAX_FACTORS 8

typedef struct model {
    int count;
    pairwise_factor factors[MAX_FACTORS];
    pairwise_allowed allowed;
    size_t most; /* rows */
} model;

/* Level 0 of the first excludes 1 of the second; that the third is 2 needs the fourth to be 1, and 1 of the fourth excludes
 * 0 of the first: so 2 of the third and 0 of the first never meet, which no single rule says. */
static int by_three_rules(const void *user, const int *level)
{
    (void)user;
    if (level[0] == 0 && level[1] == 1) return 0;
    if (level[2] == 2 && level[3] >= 0 && level[3] != 1) return 0;
    return !(level[3] == 1 && level[0] == 0);
}

/* Only rows whose sum is even, which can be told from a whole row alone. */
static int by_parity(const void *user, const int *level)
{
    int sum = 0;
    for (int f = 0; f < *(const int *)user; f++) {
        if (level[f] < 0) return 1;
        sum += level[f];
    }
    return sum % 2 == 0;
}

static const model models[] = {
    {2, {{"a", 3}, {"b", 5}}, NULL, 15},
    {4, {{"a", 2}, {"b", 2}, {"c", 2}, {"d", 2}}, NULL, 7},
    {5, {{"a", 4}, {"b", 4}, {"c", 4}, {"d", 4}, {"e", 4}}, NULL, 28},
    {4, {{"a", 3}, {"b", 3}, {"c", 3}, {"d", 3}}, by_three_rules, 16},
    {3, {{"a", 2}, {"b", 2}, {"c", 2}}, by_parity, 4},
    {6, {{"a", 9}, {"b", 1}, {"c", 7}, {"d", 2}, {"e", 3}, {"f", 4}}, by_parity, 80},
    {6, {{"a", 9}, {"b", 1}, {"c", 7}, {"d", 2}, {"e", 3}, {"f", 4}}, by_three_rules, 80},
};
#define MODELS (sizeof models / sizeof models[0])

static int is_in(const int *row, int f, int x, int g, int y)
{
    return row[f] == x && row[g] == y;
}

/* Whether any allowed row of all has the pair. */
static int is_possible(const model *m, int f, int x, int g, int y)
{
    int row[MAX_FACTORS] = {0};
    for (;;) {
        if (is_in(row, f, x, g, y) && (!m->allowed || m->allowed(&m->count, row))) return 1;
        int at = 0;
        while (at < m->count && ++row[at] == m->factors[at].levels) row[at++] = 0;
        if (at == m->count) return 0;
    }
}

static void every_possible_pair_is_covered(void **state)
{
    (void)state;
    for (size_t i = 0; i < MODELS; i++) {
        const model *m = &models[i];
        pairwise made = pairwise_make(m->factors, m->count, m->allowed, &m->count);
        size_t possible = 0, impossible = 0;
        for (int f = 0; f < m->count; f++)
            for (int g = 0; g < f; g++)
                for (int x = 0; x < m->factors[f].levels; x++)
                    for (int y = 0; y < m->factors[g].levels; y++) {
                        int covered = 0;
                        for (size_t r = 0; r < made.count; r++) covered += is_in(made.rows + r * (size_t)m->count, f, x, g, y);
                        assert_int_equal(covered > 0, is_possible(m, f, x, g, y));
                        covered ? possible++ : impossible++;
                    }
        assert_int_equal(made.pairs, possible);
        assert_int_equal(made.impossible, impossible);
        assert_int_equal(pairwise_covered(&made, made.count), possible);
        pairwise_free(&made);
    }
}

static void every_row_is_allowed_and_they_are_few(void **state)
{
    (void)state;
    for (size_t i = 0; i < MODELS; i++) {
        const model *m = &models[i];
        pairwise made = pairwise_make(m->factors, m->count, m->allowed, &m->count);
        for (size_t r = 0; r < made.count; r++) {
            const int *row = made.rows + r * (size_t)m->count;
            for (int f = 0; f < m->count; f++) assert_in_range(row[f], 0, m->factors[f].levels - 1);
            assert_true(!m->allowed || m->allowed(&m->count, row));
        }
        assert_in_range(made.count, 1, m->most);
        pairwise_free(&made);
    }
}

static void rows_are_the_same_every_time(void **state)
{
    (void)state;
    const model *m = &models[5];
    pairwise once = pairwise_make(m->factors, m->count, m->allowed, &m->count);
    pairwise twice = pairwise_make(m->factors, m->count, m->allowed, &m->count);
    assert_int_equal(once.count, twice.count);
    assert_memory_equal(once.rows, twice.rows, once.count * (size_t)m->count * sizeof *once.rows);
    pairwise_free(&once);
    pairwise_free(&twice);
}

/* A part of the rows is worth more than its part. */
static void first_rows_cover_most(void **state)
{
    (void)state;
    const model *m = &models[6];
    pairwise made = pairwise_make(m->factors, m->count, m->allowed, &m->count);
    assert_true(pairwise_covered(&made, made.count / 4) * 5 > made.pairs * 2);
    assert_int_equal(pairwise_covered(&made, 0), 0);
    pairwise_free(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_possible_pair_is_covered),
        cmocka_unit_test(every_row_is_allowed_and_they_are_few),
        cmocka_unit_test(rows_are_the_same_every_time),
        cmocka_unit_test(first_rows_cover_most),
    };
    return cmocka_run_group_tests_name("pairwise", tests, NULL, NULL);
}
