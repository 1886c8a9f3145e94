/* What a candidate is estimated to cost, in clocks of an SM.
 *
 * A block fills its stages, then walks along k, stage by stage, then writes back. Blocks run in waves; those of a wave share
 * their SM. What a stage takes is near the greatest of what five things take: multiplying, moving the operands through shared
 * memory, bringing them from L2, the wait for the stage before the last, and what no other block hides: the barrier and the
 * chain of a warp's instructions. The norm of order four stands for "near the greatest".
 *
 * The constants of each family are fitted by least squares to what jitgemm-bench plans measured of all tiles on an H200: the
 * suites common16, poison, skinny, layers and large. src/NOTES-speed.md has the figures. */
#include "plan.h"

#include <math.h>

typedef struct family_speed {
    double launch;          /* clocks before and after all blocks */
    double fill;            /* before a block's first stage is there */
    double multiply, shared, l2; /* factors of what an SM could do at best */
    double stage, step, fragment; /* clocks of a stage, of each of a warp's steps of k in it, of each fragment in a step */
    double memory;          /* from asking L2 to having */
    double finish, out, slice; /* writing back: clocks, a factor of the traffic of the sums, clocks for each slice */
} family_speed;

static const family_speed speeds[LAST_FAMILY + 1] = {
    [FAMILY_SIMT] = {2266, 88.0, 1.36, 1.45, 1.38, 188, 2.48, 0.981, 841, 72.0, 4.88, 53.9},
    [FAMILY_MMA] = {2559, 40.4, 1.2, 0.824, 0.763, 309, 34.9, 0.203, 243, 34.7, 2.63, 4.3},
    [FAMILY_TF32] = {2236, 715.1, 1.74, 1.31, 0.684, 24, 14.4, 6.6, 221, 359.2, 3, 9.3},
};

#define SHARED_BYTES_PER_CLOCK 128.0
#define L2_BYTES_PER_CLOCK 30.0 /* an SM's part, when all of them read */
#define MAX_GRID_Y 65535

int plan_occupancy(const limits *l, int threads, int registers, int shared_bytes, int *by_shared)
{
    /* Registers are given out to warps in units of 256. */
    const int warp_registers = (registers * 32 + 255) / 256 * 256;
    const int warps = (threads + 31) / 32;
    const int by[] = {l->registers_per_sm / (warp_registers * warps), l->threads_per_sm / threads, l->blocks_per_sm};
    *by_shared = l->shared_per_sm / (shared_bytes + l->shared_reserved);
    int blocks = *by_shared;
    for (size_t i = 0; i < sizeof by / sizeof by[0]; i++)
        if (by[i] < blocks) blocks = by[i];
    return blocks;
}

static int64_t ceil_div(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

static int64_t power_of_two_from(int64_t size)
{
    int64_t power = 1;
    while (power < size) power *= 2;
    return power;
}

/* The sizes that a kernel is priced for. Of a dimension that it leaves to the launch, the next power of two: so that a size
 * that changes chooses among few kernels, at most one for each power. */
static problem priced_sizes(const problem *p)
{
    problem q = *p;
    if (p->dynamic & JG_DYNAMIC_M) q.m = power_of_two_from(p->m);
    if (p->dynamic & JG_DYNAMIC_N) q.n = power_of_two_from(p->n);
    if (p->dynamic & JG_DYNAMIC_K) q.k = power_of_two_from(p->k);
    if (p->dynamic & JG_DYNAMIC_BATCH) q.batch = power_of_two_from(p->batch);
    return q;
}

static int64_t count_tiles(const problem *p, const tile *t)
{
    return ceil_div(p->m, t->m) * ceil_div(p->n, t->n);
}

/* Bytes of an element in shared memory. */
static double element_bytes(const kernel_spec *s)
{
    return s->family != FAMILY_MMA ? 4 : kernel_multiply_type(s) == JG_S8 ? 1 : 2;
}

/* Multiply-adds that an SM does in a clock, of these types: tensor cores by the size of an element, against the table's 16 bits;
 * of 3xtf32 three products are made. */
static double multiply_rate(const kernel_spec *s, const arch *a)
{
    if (s->family == FAMILY_SIMT) return a->fma_per_clock;
    return a->mma_per_clock * 2 / element_bytes(s) / ((s->math & MATH_MODE) == JG_MATH_F32_3XTF32 ? 3 : 1);
}

/* Fragments, or elements, that a warp, or a thread, multiplies in a step. */
static double fragments(const kernel_spec *s)
{
    const double area = (double)s->tile.warp_m * s->tile.warp_n;
    return s->family == FAMILY_SIMT ? area : area / (16 * 8);
}

/* Clocks that the loads of a stage's operands from shared memory take. Of simt, 16 bytes a thread in two parts of a warp. */
static double load_clocks(const plan *c)
{
    const tile *t = &c->spec.tile;
    const double edge = t->warp_m + t->warp_n;
    if (c->spec.family == FAMILY_SIMT) return c->threads / 32.0 / t->slices * t->k * edge / 2;
    return (double)(t->m / t->warp_m) * (t->n / t->warp_n) * edge * t->k * element_bytes(&c->spec) / SHARED_BYTES_PER_CLOCK;
}

/* Clocks that an operand's copies take where they are of fewer than 16 bytes, beside all else: those of 4 bytes measured 4 for each
 * 128, those that are shifted 5.3. */
static double narrow_clocks(const kernel_spec *s, int vec, int mn)
{
    const double lines = mn * s->tile.k * element_bytes(s) / 128;
    if (s->family == FAMILY_SIMT || vec >= 16) return 0;
    if (s->family == FAMILY_TF32) return 4 * lines;
    return vec == SPEC_REALIGN ? 5.3 * lines : vec == 8 ? 2 * lines : vec == 4 ? 4 * lines : 0;
}

static double fourth_power(double x)
{
    return x * x * (x * x);
}

/* What one stage takes on an SM with so many blocks. */
static double stage_clocks(const plan *c, const arch *a, double blocks)
{
    const tile *t = &c->spec.tile;
    const family_speed *v = &speeds[c->spec.family];
    const double bytes = (double)(t->m + t->n) * t->k * element_bytes(&c->spec);
    const double multiply = v->multiply * blocks * t->m * t->n * t->k / multiply_rate(&c->spec, a);
    const double shared = v->shared * blocks * (load_clocks(c) + bytes / SHARED_BYTES_PER_CLOCK);
    const double l2 = v->l2 * blocks * bytes / L2_BYTES_PER_CLOCK;
    const double chain = v->stage + t->k / ((double)kernel_step_k(&c->spec) * t->slices) * (v->step + v->fragment * fragments(&c->spec));
    const double memory = v->memory / (t->stages - 1);
    const double narrow = blocks * (narrow_clocks(&c->spec, c->spec.vec_a, t->m) + narrow_clocks(&c->spec, c->spec.vec_b, t->n));
    return narrow + sqrt(sqrt(fourth_power(multiply) + fourth_power(shared) + fourth_power(l2) + fourth_power(chain) + fourth_power(memory)));
}

static double wave_clocks(const plan *c, const arch *a, double blocks, double stages)
{
    const tile *t = &c->spec.tile;
    const family_speed *v = &speeds[c->spec.family];
    const double sums = blocks * t->m * t->n * (1 + t->slices) * 4 / SHARED_BYTES_PER_CLOCK;
    return v->fill + stages * stage_clocks(c, a, blocks) + v->finish + v->out * sums + v->slice * t->slices;
}

static double price(const problem *p, const limits *l, const plan *c)
{
    const tile *t = &c->spec.tile;
    const double blocks = (double)count_tiles(p, t) * (double)p->batch, stages = (double)ceil_div(p->k, t->k);
    const double wave = (double)c->blocks_per_sm * l->sm_count, whole = floor(blocks / wave), rest = blocks - whole * wave;
    double clocks = speeds[c->spec.family].launch;
    if (whole > 0) clocks += whole * wave_clocks(c, l->arch, c->blocks_per_sm, stages);
    if (rest > 0) clocks += wave_clocks(c, l->arch, ceil(rest / l->sm_count), stages);
    return clocks;
}

void plan_complete(const problem *p, const limits *l, plan *c)
{
    c->threads = kernel_threads(&c->spec);
    c->shared_bytes = kernel_shared_bytes(&c->spec);
    c->registers = kernel_registers(&c->spec);
    int by_shared;
    c->blocks_per_sm = plan_occupancy(l, c->threads, c->registers, c->shared_bytes, &by_shared);
    c->grid_x = count_tiles(p, &c->spec.tile);
    c->grid_y = p->batch < MAX_GRID_Y ? p->batch : MAX_GRID_Y;
    c->waves = c->blocks_per_sm ? (double)c->grid_x * (double)p->batch / ((double)c->blocks_per_sm * l->sm_count) : 0;
    c->steps = ceil_div(p->k, c->spec.tile.k);
    c->cost = c->clocks = c->blocks_per_sm ? price(p, l, c) : 0;
    if (c->spec.form != JG_FORM_SPECIALISED || !p->dynamic || !c->blocks_per_sm) return;
    const problem sizes = priced_sizes(p);
    c->cost = price(&sizes, l, c);
}
