/* The legality rules, one by one, each with the reason it gives. A candidate that passes all of them compiles for the
 * architecture and launches on the device. */
#include "plan.h"

#include <stdio.h>

#define MAX_GRID_X 2147483647
#define MAX_THREADS 1024
#define MAX_REGISTERS 255
/* An SM has four schedulers; fewer warps than that leave some of them idle. */
#define SCHEDULERS 4

typedef struct situation {
    const problem *p;
    const limits *l;
    const plan *c;
    char *reason;
    size_t size;
} situation;

#define REFUSE(...)                                       \
    do {                                                  \
        if (s->size) snprintf(s->reason, s->size, __VA_ARGS__); \
        return 0;                                         \
    } while (0)

static int family_exists(const situation *s)
{
    if (s->c->spec.family != FAMILY_SIMT && !s->l->arch->has_mma)
        REFUSE("sm_%d has no mma.sync m16n8k16", s->l->arch->number);
    return 1;
}

static int is_power_of_two(int size)
{
    return size > 0 && (size & (size - 1)) == 0;
}

static int tile_divides(const situation *s)
{
    const tile *t = &s->c->spec.tile;
    const int mma = s->c->spec.family == FAMILY_MMA;
    const int pairs = (s->c->spec.math & MATH_MODE) == JG_MATH_F32_3XTF32; /* of steps, added up by themselves */
    const int steps = kernel_step_k(&s->c->spec) * (pairs ? 2 : 1);
    if (t->m % t->warp_m || t->n % t->warp_n)
        REFUSE("a %dx%d tile does not divide into %dx%d parts", t->m, t->n, t->warp_m, t->warp_n);
    if (mma && (t->warp_m % 16 || t->warp_n % 16 || t->k % steps))
        REFUSE("a warp tile of %dx%dx%d is not made of 16x16x%d steps", t->warp_m, t->warp_n, t->k, steps);
    if (mma && !(is_power_of_two(t->m) && is_power_of_two(t->n) && is_power_of_two(t->k) && is_power_of_two(t->warp_m) &&
                 is_power_of_two(t->warp_n) && is_power_of_two(t->slices)))
        REFUSE("a %dx%dx%d tile of %dx%d warps in %d slices is not of powers of two alone", t->m, t->n, t->k, t->warp_m,
               t->warp_n, t->slices);
    if (s->c->spec.family == FAMILY_TF32 && (t->warp_m % 16 || t->warp_n % 16 || t->k % 8))
        REFUSE("a warp tile of %dx%dx%d is not made of 16x16x8 steps", t->warp_m, t->warp_n, t->k);
    if (s->c->spec.family == FAMILY_TF32 && !is_power_of_two(t->k)) REFUSE("a k step of %d is no power of two", t->k);
    if (s->c->spec.family == FAMILY_SIMT && (t->warp_m % 4 || t->warp_n % 4 || t->k % 4))
        REFUSE("a thread tile of %dx%dx%d is not made of 4x4x4 groups", t->warp_m, t->warp_n, t->k);
    if (t->k % (t->slices * steps)) REFUSE("%d slices do not divide a k step of %d", t->slices, t->k);
    if (t->stages < 2) REFUSE("%d stage cannot be filled while it is read", t->stages);
    return 1;
}

/* Rows that come in pieces are dealt to warps in groups of 512 bytes of rows that begin alike (realign.cuh). */
static int pieces_divide(const situation *s, int vec, int mn, int k_contiguous)
{
    const kernel_spec *k = &s->c->spec;
    const int bytes = kernel_multiply_type(k) == JG_S8 ? 1 : 2, row = (k_contiguous ? k->tile.k : mn) * bytes;
    const int group = 512 * (vec == SPEC_REALIGN ? 4 / bytes : 1);
    if ((vec != SPEC_REALIGN && vec != 4 && vec != 8) || (bytes == 1 && !k_contiguous)) return 1;
    if (row > 512 || mn * k->tile.k * bytes % group)
        REFUSE("%dx%d elements in rows of %d bytes do not divide into groups of %d bytes", mn, k->tile.k, row, group);
    return 1;
}

static int operands_divide(const situation *s)
{
    const kernel_spec *k = &s->c->spec;
    if (k->family != FAMILY_MMA) return 1;
    return pieces_divide(s, k->vec_a, k->tile.m, !k->trans_a) && pieces_divide(s, k->vec_b, k->tile.n, k->trans_b);
}

static int slices_keep_order(const situation *s)
{
    const kernel_spec *k = &s->c->spec;
    if (k->tile.slices > 1 && (k->math & MATH_MODE) == JG_MATH_STRICT) REFUSE("strict sums are in ascending k, not of %d slices", k->tile.slices);
    if (k->tile.slices > 1 && k->family == FAMILY_SIMT && k->type_a != JG_F32)
        REFUSE("narrow types on CUDA cores have one slice, not %d", k->tile.slices);
    return 1;
}

static int thread_tile_fits_type(const situation *s)
{
    const kernel_spec *k = &s->c->spec;
    if (k->family == FAMILY_SIMT && k->type_a != JG_F32 && k->tile.warp_m * k->tile.warp_n > 16)
        REFUSE("a thread tile of %dx%d with narrow types makes too much code", k->tile.warp_m, k->tile.warp_n);
    return 1;
}

static int threads_fit(const situation *s)
{
    if (s->c->threads > MAX_THREADS) REFUSE("%d threads; a block has at most %d", s->c->threads, MAX_THREADS);
    return 1;
}

static int registers_fit(const situation *s)
{
    if (s->c->registers > MAX_REGISTERS) REFUSE("about %d registers a thread; at most %d", s->c->registers, MAX_REGISTERS);
    if (s->c->registers * s->c->threads > s->l->registers_per_sm)
        REFUSE("about %d registers a block; the SM has %d", s->c->registers * s->c->threads, s->l->registers_per_sm);
    return 1;
}

static int shared_memory_fits(const situation *s)
{
    if (s->c->shared_bytes > s->l->shared_per_block)
        REFUSE("%d bytes of shared memory; a block has at most %d", s->c->shared_bytes, s->l->shared_per_block);
    return 1;
}

static int shared_memory_leaves_no_scheduler_idle(const situation *s)
{
    int by_shared;
    const int warps = (s->c->threads + 31) / 32;
    plan_occupancy(s->l, s->c->threads, s->c->registers, s->c->shared_bytes, &by_shared);
    if (by_shared * warps < SCHEDULERS)
        REFUSE("%d bytes of shared memory leave %d warps an SM, fewer than it has schedulers", s->c->shared_bytes, by_shared * warps);
    return 1;
}

static int a_block_fits(const situation *s)
{
    if (s->c->blocks_per_sm < 1) REFUSE("no block fits an SM");
    return 1;
}

static int grid_fits(const situation *s)
{
    if (s->c->grid_x > MAX_GRID_X) REFUSE("%lld tiles; a grid has at most %d", (long long)s->c->grid_x, MAX_GRID_X);
    return 1;
}

int plan_is_legal(const problem *p, const limits *l, const plan *c, char *reason, size_t size)
{
    static int (*const rules[])(const situation *) = {
        family_exists, tile_divides, operands_divide, slices_keep_order, thread_tile_fits_type, threads_fit,
        registers_fit, shared_memory_fits, shared_memory_leaves_no_scheduler_idle, a_block_fits, grid_fits,
    };
    const situation s = {p, l, c, reason, size};
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (!rules[i](&s)) return 0;
    return 1;
}
