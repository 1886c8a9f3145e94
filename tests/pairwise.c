/* Rows are made one at a time: from the level that is in most pairs still to be covered, the pair that may be completed, and then
 * the level of each other factor that covers most, stepping back where no level is allowed. */
#include "pairwise.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FACTORS 32
#define MAX_STEPS 1000000 /* of one row's search */

enum { OPEN, COVERED, IMPOSSIBLE };

typedef struct maker {
    const pairwise_factor *factors;
    int count;
    pairwise_allowed allowed;
    const void *user;
    int first[MAX_FACTORS]; /* number of the factor's level 0 among the levels of all */
    int levels;             /* of all factors together */
    int order[MAX_FACTORS]; /* factors, those with most levels first */
    unsigned char *state;   /* of the pair of two levels by number, at lower * levels + higher */
    int row[MAX_FACTORS];   /* -1 where open */
    long steps;
} maker;

static void *must(void *pointer)
{
    if (pointer) return pointer;
    fprintf(stderr, "pairwise: out of memory\n");
    abort();
}

static unsigned char *pair_state(const maker *m, int f, int x, int g, int y)
{
    const int a = m->first[f] + x, b = m->first[g] + y;
    return &m->state[a < b ? a * m->levels + b : b * m->levels + a];
}

static int is_allowed(const maker *m)
{
    return !m->allowed || m->allowed(m->user, m->row);
}

/* Open pairs of a level with what the row has. */
static int gain_of(const maker *m, int f, int x)
{
    int gain = 0;
    for (int g = 0; g < m->count; g++)
        if (g != f && m->row[g] >= 0) gain += *pair_state(m, f, x, g, m->row[g]) == OPEN;
    return gain;
}

/* Open pairs of a level with any other. */
static int open_pairs(const maker *m, int f, int x)
{
    int open = 0;
    for (int g = 0; g < m->count; g++)
        for (int y = 0; g != f && y < m->factors[g].levels; y++) open += *pair_state(m, f, x, g, y) == OPEN;
    return open;
}

/* The next level of f to try: most gain, then most pairs that are open at all, then the first. tried has a byte for each. */
static int best_level(const maker *m, int f, const unsigned char *tried)
{
    int best = -1, best_gain = -1, best_open = -1;
    for (int x = 0; x < m->factors[f].levels; x++) {
        if (tried[x]) continue;
        const int gain = gain_of(m, f, x), open = gain < best_gain ? -1 : open_pairs(m, f, x);
        if (gain < best_gain || (gain == best_gain && open <= best_open)) continue;
        best = x;
        best_gain = gain;
        best_open = open;
    }
    return best;
}

/* Decides the open factors from order[at] on. Returns 0 where there is no way, or none was found in time. */
static int complete(maker *m, int at)
{
    while (at < m->count && m->row[m->order[at]] >= 0) at++;
    if (at == m->count) return 1;
    const int f = m->order[at];
    unsigned char *tried = must(calloc((size_t)m->factors[f].levels, 1));
    int done = 0;
    for (int x; !done && m->steps++ < MAX_STEPS && (x = best_level(m, f, tried)) >= 0;) {
        tried[x] = 1;
        m->row[f] = x;
        done = is_allowed(m) && complete(m, at + 1);
        if (!done) m->row[f] = -1;
    }
    free(tried);
    return done;
}

/* A row that has the pair; the pair is impossible if there is none. */
static int make_row(maker *m, int f, int x, int g, int y)
{
    for (int h = 0; h < m->count; h++) m->row[h] = -1;
    m->row[f] = x;
    m->row[g] = y;
    m->steps = 0;
    if (is_allowed(m) && complete(m, 0)) return 1;
    *pair_state(m, f, x, g, y) = IMPOSSIBLE;
    return 0;
}

/* The level with most open pairs: its first such pair makes the row. Returns 0 when no pair is open. */
static int next_pair(const maker *m, int pair[4])
{
    int most = 0;
    for (int f = 0; f < m->count; f++)
        for (int x = 0; x < m->factors[f].levels; x++) {
            const int open = open_pairs(m, f, x);
            if (open <= most) continue;
            most = open;
            pair[0] = f;
            pair[1] = x;
        }
    if (most == 0) return 0;
    int best = -1;
    for (int g = 0; g < m->count; g++)
        for (int y = 0; g != pair[0] && y < m->factors[g].levels; y++) {
            if (*pair_state(m, pair[0], pair[1], g, y) != OPEN) continue;
            const int open = open_pairs(m, g, y);
            if (open <= best) continue;
            best = open;
            pair[2] = g;
            pair[3] = y;
        }
    return 1;
}

static void take_row(maker *m, pairwise *made)
{
    made->rows = must(realloc(made->rows, (made->count + 1) * (size_t)m->count * sizeof *made->rows));
    memcpy(made->rows + made->count++ * (size_t)m->count, m->row, (size_t)m->count * sizeof *m->row);
    for (int f = 0; f < m->count; f++)
        for (int g = 0; g < f; g++) {
            unsigned char *const state = pair_state(m, f, m->row[f], g, m->row[g]);
            made->pairs += *state == OPEN;
            *state = COVERED;
        }
}

static void begin(maker *m)
{
    if (m->count < 2 || m->count > MAX_FACTORS) abort();
    for (int f = 0; f < m->count; f++) {
        int at = f;
        m->first[f] = m->levels;
        m->levels += m->factors[f].levels;
        for (; at > 0 && m->factors[m->order[at - 1]].levels < m->factors[f].levels; at--) m->order[at] = m->order[at - 1];
        m->order[at] = f;
    }
    m->state = must(calloc((size_t)m->levels * (size_t)m->levels, 1));
}

pairwise pairwise_make(const pairwise_factor *factors, int count, pairwise_allowed allowed, const void *user)
{
    maker m = {.factors = factors, .count = count, .allowed = allowed, .user = user};
    pairwise made = {.factors = count};
    int pair[4] = {0};
    begin(&m);
    while (next_pair(&m, pair)) {
        if (make_row(&m, pair[0], pair[1], pair[2], pair[3]))
            take_row(&m, &made);
        else
            made.impossible++;
    }
    free(m.state);
    return made;
}

void pairwise_free(pairwise *made)
{
    free(made->rows);
    memset(made, 0, sizeof *made);
}

static int has_pair(const int *row, int f, int x, int g, int y)
{
    return row[f] == x && row[g] == y;
}

size_t pairwise_covered(const pairwise *made, size_t rows)
{
    size_t covered = 0;
    for (size_t r = 0; r < rows && r < made->count; r++) {
        const int *row = made->rows + r * (size_t)made->factors;
        for (int f = 0; f < made->factors; f++)
            for (int g = 0; g < f; g++) {
                int is_new = 1;
                for (size_t q = 0; q < r && is_new; q++)
                    is_new = !has_pair(made->rows + q * (size_t)made->factors, f, row[f], g, row[g]);
                covered += (size_t)is_new;
            }
    }
    return covered;
}
