/* What a candidate is estimated to cost. The model knows three things: how fast a tile can multiply, how many blocks run at
 * once, and that a k step cannot be faster than memory answers. */
#include "plan.h"

/* Model constants, in clocks: rough figures of an Ampere-class SM, to be replaced by tuning. */
#define CLOCKS_MEMORY 500.0  /* from asking for global memory to having it */
#define CLOCKS_BLOCK 800.0   /* start of a block, first loads, writing back */
#define WARPS_TO_FILL 8.0    /* warps an SM needs to hide its arithmetic latency */
#define SHARED_BYTES_PER_CLOCK 128.0
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

/* Multiply-adds a clock that the tile allows an SM full of warps. */
static double tile_rate(const kernel_spec *s, const arch *a)
{
    const double wm = s->tile.warp_m, wn = s->tile.warp_n;
    const double ratio = wm * wn / (wm + wn);
    if (s->family == FAMILY_SIMT) return 1.0 / (1.0 / a->fma_per_clock + 1.0 / (a->fma_per_clock * ratio));
    /* By the size of an element, against the table's 16 bits; of 3xtf32 three products are made. */
    const jg_type type = kernel_multiply_type(s);
    const double bytes = s->family == FAMILY_TF32 ? 4 : type == JG_S8 ? 1 : 2;
    const double products = (s->math & MATH_MODE) == JG_MATH_F32_3XTF32 ? 3 : 1;
    const double by_shared = ratio * SHARED_BYTES_PER_CLOCK / bytes;
    return 1.0 / (products * bytes / 2 / a->mma_per_clock + 0.5 / by_shared);
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

static double price(const problem *p, const limits *l, const plan *c)
{
    const tile *t = &c->spec.tile;
    const double blocks = (double)count_tiles(p, t) * (double)p->batch;
    const double steps = (double)ceil_div(p->k, t->k);
    double resident = blocks / l->sm_count;
    resident = resident < 1 ? 1 : resident > c->blocks_per_sm ? c->blocks_per_sm : (double)ceil_div((int64_t)blocks, l->sm_count);
    const double rounds = (double)ceil_div((int64_t)blocks, (int64_t)resident * l->sm_count);
    double filled = resident * c->threads / 32 / WARPS_TO_FILL;
    if (filled > 1) filled = 1;
    const double multiply = resident * steps * t->m * t->n * t->k / (tile_rate(&c->spec, l->arch) * filled);
    const double wait = steps * CLOCKS_MEMORY / (t->stages > 1 ? t->stages - 1 : 1);
    return rounds * ((multiply > wait ? multiply : wait) + CLOCKS_BLOCK);
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
