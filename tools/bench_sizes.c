/* Draws distinct problems: see bench_sizes.h. */
#include "bench_sizes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TRIES_MAX 100000 /* in a row that were all seen: there are hardly any new ones */

/* splitmix64. */
static uint64_t next_random(bench_sizes *s)
{
    uint64_t z = (s->state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static double next_uniform(bench_sizes *s)
{
    return (double)(next_random(s) >> 11) * 0x1p-53;
}

/* 1 to max_dimension. */
static int64_t next_dimension(bench_sizes *s)
{
    const int64_t d = (int64_t)exp(next_uniform(s) * log((double)s->max_dimension + 1));
    return d < 1 ? 1 : d > s->max_dimension ? s->max_dimension : d;
}

/* The slot of a key, or the free one where it would go. */
static size_t find_slot(const uint64_t *seen, size_t capacity, uint64_t key)
{
    size_t at = (size_t)(key * 0x9e3779b97f4a7c15u >> 20) & (capacity - 1);
    while (seen[at] && seen[at] != key) at = (at + 1) & (capacity - 1);
    return at;
}

static int grow(bench_sizes *s)
{
    const size_t capacity = s->capacity ? s->capacity * 2 : 1024;
    uint64_t *seen = calloc(capacity, sizeof *seen);
    if (!seen) return -1;
    for (size_t i = 0; i < s->capacity; i++)
        if (s->seen[i]) seen[find_slot(seen, capacity, s->seen[i])] = s->seen[i];
    free(s->seen);
    s->seen = seen;
    s->capacity = capacity;
    return 0;
}

/* Returns 1 if the size is new, 0 if not, -1 if memory ran out. */
static int add_size(bench_sizes *s, int64_t m, int64_t n, int64_t k)
{
    if (s->count * 2 >= s->capacity && grow(s) != 0) return -1;
    const uint64_t key = (uint64_t)m << 40 | (uint64_t)n << 20 | (uint64_t)k;
    const size_t at = find_slot(s->seen, s->capacity, key);
    if (s->seen[at]) return 0;
    s->seen[at] = key;
    s->count++;
    return 1;
}

void bench_sizes_init(bench_sizes *s, uint64_t seed, int64_t max_dimension)
{
    *s = (bench_sizes){.state = seed, .max_dimension = max_dimension};
}

/* One dimension of the kind that it is the turn of: multiples of 8, odd ones, or as drawn. */
static int64_t shaped_dimension(bench_sizes *s, size_t turn)
{
    const int64_t d = next_dimension(s);
    if (turn == 0) return (d + 7) / 8 * 8 <= s->max_dimension ? (d + 7) / 8 * 8 : s->max_dimension / 8 * 8;
    if (turn == 1) return d % 2 ? d : d - 1;
    return d;
}

int bench_sizes_draw(bench_sizes *s, jg_problem *problem)
{
    const size_t i = s->drawn++;
    for (int try = 0; try < TRIES_MAX; try++) {
        const int64_t m = shaped_dimension(s, i / 8 % 4), n = shaped_dimension(s, i / 8 % 4), k = shaped_dimension(s, i / 8 % 4);
        const int added = add_size(s, m, n, k);
        if (added < 0) return -1;
        if (added == 0) continue;
        *problem = (jg_problem){.m = m, .n = n, .k = k, .type_a = i % 2 ? JG_F32 : JG_F16, .op_a = i / 2 % 2 ? JG_T : JG_N,
                                .op_b = i / 4 % 2 ? JG_T : JG_N};
        return 0;
    }
    return -1;
}

int bench_sizes_draw_rewarding(bench_sizes *s, jg_problem *problem)
{
    const int64_t most = (s->max_dimension < 512 ? s->max_dimension : 512) / 8, least = most < 16 ? 1 : 8;
    for (int try = 0; try < TRIES_MAX; try++) {
        int64_t d[3];
        for (int j = 0; j < 3; j++) d[j] = 8 * (least + (int64_t)(next_random(s) % (uint64_t)(most - least + 1)));
        const int added = add_size(s, d[0], d[1], d[2]);
        if (added < 0) return -1;
        if (added == 0) continue;
        *problem = (jg_problem){.m = d[0], .n = d[1], .k = d[2], .type_a = JG_F16};
        return 0;
    }
    return -1;
}

void bench_sizes_free(bench_sizes *s)
{
    free(s->seen);
    memset(s, 0, sizeof *s);
}
