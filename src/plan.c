/* The planner: candidates from the architecture's tile table, priced by a simple model; the cheapest legal one wins.
 * The model knows three things: how fast a tile can multiply, how many blocks run at once, and that a k step cannot
 * be faster than memory answers. */
#include "plan.h"

#include "status.h"
#include "text.h"

#include <string.h>

/* Model constants, in clocks: rough figures of an Ampere-class SM, to be replaced by tuning. */
#define CLOCKS_MEMORY 500.0  /* from asking for global memory to having it */
#define CLOCKS_BLOCK 800.0   /* start of a block, first loads, writing back */
#define WARPS_TO_FILL 8.0    /* warps an SM needs to hide its arithmetic latency */
#define SHARED_BYTES_PER_CLOCK 128.0
#define MAX_GRID_Y 65535

static unsigned lowest_bit(uint64_t x)
{
    return x ? (unsigned)(x & -x) : 16;
}

/* The widest power of two, up to 16 bytes, that divides the address of every row of every item. */
static uint8_t width(unsigned align, int64_t rows, int64_t ld, int64_t items, int64_t stride, size_t element)
{
    uint64_t bits = align | 16;
    if (rows > 1) bits |= (uint64_t)ld * element;
    if (items > 1) bits |= (uint64_t)stride * element;
    unsigned w = lowest_bit(bits);
    return (uint8_t)(w < 16 ? w : 16);
}

access_widths plan_access(const problem *p, unsigned align_a, unsigned align_b, unsigned align_c)
{
    const size_t in = type_bytes((jg_type)p->type_a), out = type_bytes((jg_type)p->type_c);
    access_widths w;
    w.a = width(align_a, p->op_a == JG_T ? p->k : p->m, p->lda, p->batch, p->stride_a, in);
    w.b = width(align_b, p->op_b == JG_T ? p->n : p->k, p->ldb, p->batch, p->stride_b, in);
    w.c = width(align_c, p->m, p->ldc, p->batch, p->stride_c, out) >= 4 * out;
    /* f32 kernels know two ways only. */
    if (in == 4 && w.a < 16) w.a = 4;
    if (in == 4 && w.b < 16) w.b = 4;
    return w;
}

/* The family that fixes the numeric class: by type and architecture alone, never by size. */
static int family_of(jg_type type, const arch *a)
{
    return type != JG_F32 && a->has_mma ? FAMILY_MMA : FAMILY_SIMT;
}

static const arch_tile *tiles_of(int family, const arch *a)
{
    return family == FAMILY_MMA ? a->mma_tiles : a->simt_tiles;
}

/* What the generic kernels of a family leave to the launch. */
static kernel_spec generic_spec(int family, int number, jg_type type, const tile *t, int trans_a, int trans_b, int vector)
{
    kernel_spec s;
    memset(&s, 0, sizeof s);
    s.family = (uint16_t)family;
    s.arch = (uint16_t)number;
    s.form = JG_FORM_GENERIC;
    s.type_in = (uint8_t)type;
    s.type_c = type == JG_F32 ? JG_F32 : SPEC_ARGUMENT;
    s.vec_c = SPEC_ARGUMENT;
    s.tile = *t;
    if (family == FAMILY_MMA && vector) {
        s.trans_a = (uint8_t)trans_a;
        s.trans_b = (uint8_t)trans_b;
        s.vec_a = s.vec_b = 16;
    } else {
        s.trans_a = s.trans_b = SPEC_ARGUMENT;
        s.vec_a = s.vec_b = type == JG_F32 ? SPEC_ARGUMENT : 2; /* 16-bit elements are read one by one */
    }
    return s;
}

/* Leaves out of a specialised kernel what changes from call to call: the dynamic dimensions, and the leading dimension of each
 * matrix whose stored rows are one of them long. */
static void leave_to_launch(const problem *p, kernel_spec *s)
{
    const int m = p->dynamic & JG_DYNAMIC_M, n = p->dynamic & JG_DYNAMIC_N, k = p->dynamic & JG_DYNAMIC_K;
    if (m) s->m = 0;
    if (n) s->n = 0;
    if (k) s->k = 0;
    if (p->op_a == JG_T ? m : k) s->lda = 0;
    if (p->op_b == JG_T ? k : n) s->ldb = 0;
    if (n) s->ldc = 0;
    if (p->dynamic & JG_DYNAMIC_BATCH) s->single = 0;
}

static kernel_spec specialised_spec(int family, int number, const problem *p, access_widths access, const tile *t)
{
    kernel_spec s;
    memset(&s, 0, sizeof s);
    s.family = (uint16_t)family;
    s.arch = (uint16_t)number;
    s.form = JG_FORM_SPECIALISED;
    s.type_in = p->type_a;
    s.type_c = p->type_c;
    s.trans_a = p->op_a == JG_T;
    s.trans_b = p->op_b == JG_T;
    s.vec_a = access.a;
    s.vec_b = access.b;
    s.vec_c = access.c;
    s.single = p->batch == 1;
    s.tile = *t;
    s.m = p->m;
    s.n = p->n;
    s.k = p->k;
    s.lda = p->lda;
    s.ldb = p->ldb;
    s.ldc = p->ldc;
    leave_to_launch(p, &s);
    if (family == FAMILY_SIMT && p->type_a != JG_F32) s.vec_a = s.vec_b = 2;
    return s;
}

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
    const double by_shared = ratio * SHARED_BYTES_PER_CLOCK / 2;
    return 1.0 / (1.0 / a->mma_per_clock + 0.5 / by_shared);
}

static int64_t power_of_two_from(int64_t size)
{
    int64_t power = 1;
    while (power < size) power *= 2;
    return power;
}

/* The sizes that a kernel is priced for. Of a dimension that it leaves to the launch, the next power of two: so that a size
 * that changes chooses among few kernels, at most one for each power. */
static problem priced_sizes(const problem *p, const kernel_spec *s)
{
    problem q = *p;
    if (s->form != JG_FORM_SPECIALISED) return q;
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
    const problem sizes = priced_sizes(p, &c->spec);
    c->cost = c->blocks_per_sm ? price(&sizes, l, c) : 0;
    c->clocks = c->blocks_per_sm ? price(p, l, c) : 0;
}

/* The kernel a table row stands for, or 0 if the row is not for this form and access. */
static int candidate_spec(const problem *p, access_widths access, jg_form form, const arch *a, const arch_tile *row, kernel_spec *spec)
{
    const int family = family_of((jg_type)p->type_a, a);
    if (form == JG_FORM_SPECIALISED) {
        *spec = specialised_spec(family, a->number, p, access, &row->tile);
        return 1;
    }
    const int vector = access.a == 16 && access.b == 16;
    const unsigned needed = family == FAMILY_MMA && !vector ? TILE_GENERIC_GATHER : TILE_GENERIC;
    *spec = generic_spec(family, a->number, (jg_type)p->type_a, &row->tile, p->op_a == JG_T, p->op_b == JG_T, vector);
    return (row->flags & needed) != 0;
}

void plan_each(const problem *p, access_widths access, jg_form form, const limits *l, plan_visit visit, void *user)
{
    const arch *a = l->arch;
    const arch_tile *rows = tiles_of(family_of((jg_type)p->type_a, a), a);
    int smallest_shared = l->shared_per_sm;
    plan c;
    for (const arch_tile *row = rows; row->tile.m; row++) {
        if (!candidate_spec(p, access, form, a, row, &c.spec)) continue;
        int shared = kernel_shared_bytes(&c.spec);
        if (shared < smallest_shared) smallest_shared = shared;
    }
    for (const arch_tile *row = rows; row->tile.m; row++) {
        memset(&c, 0, sizeof c);
        if (!candidate_spec(p, access, form, a, row, &c.spec)) continue;
        char reason[160] = "";
        c.access = access;
        plan_complete(p, l, &c);
        plan_is_legal(p, l, &c, smallest_shared, reason, sizeof reason);
        visit(user, &c, reason);
    }
}

typedef struct choice {
    plan best;
    int found;
    char reasons[2048];
    size_t length;           /* of reasons */
} choice;

static void keep_best(void *user, const plan *c, const char *reason)
{
    choice *ch = user;
    if (reason[0]) {
        char name[KERNEL_NAME_BYTES];
        kernel_format_name(&c->spec, name);
        text_append(ch->reasons, sizeof ch->reasons, &ch->length, "\n  %s: %s", name, reason);
    } else if (!ch->found || c->cost < ch->best.cost) {
        ch->best = *c;
        ch->found = 1;
    }
}

jg_status plan_choose(const problem *p, access_widths access, jg_form form, const limits *l, plan *out)
{
    choice ch = {.found = 0, .reasons = ""};
    plan_each(p, access, form, l, keep_best, &ch);
    if (!ch.found)
        return status_set(JG_ERR_UNSUPPORTED, "no plan for %lldx%lldx%lld is legal on sm_%d:%s", (long long)p->m, (long long)p->n,
                          (long long)p->k, l->arch->number, ch.reasons);
    *out = ch.best;
    return JG_OK;
}

void plan_generic_set(jg_type type, const limits *l, void (*visit)(void *user, const kernel_spec *spec), void *user)
{
    const arch *a = l->arch;
    const int family = family_of(type, a);
    /* Any small problem will do: the rules that need one do not depend on its size. */
    const problem any = {.m = 1, .n = 1, .k = 1, .batch = 1, .type_a = (uint8_t)type, .type_b = (uint8_t)type, .type_c = (uint8_t)type};
    for (const arch_tile *row = tiles_of(family, a); row->tile.m; row++) {
        for (int variant = 0; variant < 5; variant++) {
            const int vector = variant < 4;
            if (family == FAMILY_SIMT && variant > 0) break;
            if (!(row->flags & (vector ? TILE_GENERIC : TILE_GENERIC_GATHER))) continue;
            plan c = {.spec = generic_spec(family, a->number, type, &row->tile, variant & 1, variant >> 1 & 1, vector)};
            char reason[160];
            plan_complete(&any, l, &c);
            if (plan_is_legal(&any, l, &c, c.shared_bytes, reason, sizeof reason)) visit(user, &c.spec);
        }
    }
}
