/* The planner: candidates from the architecture's tile table; the cheapest legal one (plan_price.c) of the problem's numeric class
 * wins. */
#include "plan.h"

#include "status.h"
#include "text.h"

#include <string.h>

static unsigned lowest_bit(uint64_t x)
{
    return x ? (unsigned)(x & -x) : 16;
}

/* The widest power of two, up to 16 bytes, that divides the address of every row of every item. */
static uint8_t width(unsigned align, int64_t rows, int64_t ld, int64_t items, int64_t stride, unsigned element_bits)
{
    uint64_t bits = (uint64_t)align * 8 | 128;
    if (rows > 1) bits |= (uint64_t)ld * element_bits;
    if (items > 1) bits |= (uint64_t)stride * element_bits;
    unsigned w = lowest_bit(bits) / 8;
    return (uint8_t)(w < 16 ? w : 16);
}

static int is_contiguous_along_k(const problem *p, int operand_b)
{
    return operand_b ? p->op_b == JG_T : p->op_a == JG_N;
}

/* Whether an operand goes as it is into the shared memory of an mma kernel: it needs no conversion. */
static int copies(const problem *p, int operand_b)
{
    const jg_type type = (jg_type)(operand_b ? p->type_b : p->type_a), multiply = problem_multiply_type(p);
    if (p->math & MATH_FLAGS || type_bits(type) != type_bits(multiply) || (multiply == JG_F16 && type != JG_F16)) return 0;
    return multiply != JG_F32;
}

/* Whether on its way it is turned, in words of 4 bytes: ldmatrix cannot transpose 8-bit elements. */
static int turns(const problem *p, int operand_b)
{
    return problem_multiply_type(p) == JG_S8 && !is_contiguous_along_k(p, operand_b);
}

/* Widths that make no difference to a kernel are told as the same one. */
static uint8_t known_width(const problem *p, int operand_b, uint8_t w)
{
    const size_t element = type_bytes((jg_type)(operand_b ? p->type_b : p->type_a));
    if (w == 16) return w;
    return copies(p, operand_b) && w >= 4 ? (turns(p, operand_b) ? 4 : w) : (uint8_t)element;
}

access_widths plan_access(const problem *p, unsigned align_a, unsigned align_b, unsigned align_c)
{
    const unsigned bits_a = type_bits((jg_type)p->type_a), bits_b = type_bits((jg_type)p->type_b), bits_c = type_bits((jg_type)p->type_c);
    access_widths w;
    w.a = known_width(p, 0, width(align_a, p->op_a == JG_T ? p->k : p->m, p->lda, p->batch, p->stride_a, bits_a));
    w.b = known_width(p, 1, width(align_b, p->op_b == JG_T ? p->n : p->k, p->ldb, p->batch, p->stride_b, bits_b));
    w.c = width(align_c, p->m, p->ldc, p->batch, p->stride_c, bits_c) * 8u >= 4 * bits_c;
    return w;
}

/* The family that fixes the numeric class: by types, math and architecture alone, never by size. */
static int family_of(const problem *p, const arch *a)
{
    const unsigned mode = problem_math_mode(p);
    if (mode == JG_MATH_TF32 || mode == JG_MATH_F32_3XTF32) return FAMILY_TF32;
    return mode == JG_MATH_F16 || (p->type_a != JG_F32 && mode != JG_MATH_STRICT && a->has_mma) ? FAMILY_MMA : FAMILY_SIMT;
}

static const arch_tile *tiles_of(int family, const arch *a)
{
    return family == FAMILY_MMA ? a->mma_tiles : family == FAMILY_TF32 ? a->tf32_tiles : a->simt_tiles;
}

/* A table row's tile as it is for these types: a k step is so many bytes. */
static tile tile_for(int family, const problem *p, const arch_tile *row)
{
    tile t = row->tile;
    if (family == FAMILY_MMA && problem_multiply_type(p) == JG_S8) t.k = (uint16_t)(2 * t.k);
    return t;
}

/* What is the same for both forms, but for the tile. */
static kernel_spec base_spec(int family, int number, const problem *p, jg_form form)
{
    kernel_spec s;
    memset(&s, 0, sizeof s);
    s.family = (uint16_t)family;
    s.arch = (uint16_t)number;
    s.form = (uint8_t)form;
    s.type_a = p->type_a;
    s.type_b = p->type_b;
    s.math = p->math;
    return s;
}

/* What the generic kernels of a family leave to the launch. vec: of an mma kernel, what it does with both operands. */
static kernel_spec generic_spec(int family, int number, const problem *p, uint8_t vec)
{
    kernel_spec s = base_spec(family, number, p, JG_FORM_GENERIC);
    s.fusion = SPEC_FUSION_ARGUMENT;
    s.vec_c = SPEC_ARGUMENT;
    if (family == FAMILY_MMA && vec != SPEC_GATHER) {
        s.trans_a = p->op_a == JG_T;
        s.trans_b = p->op_b == JG_T;
        s.vec_a = s.vec_b = vec;
    } else if (family == FAMILY_TF32) {
        s.trans_a = p->op_a == JG_T;
        s.trans_b = p->op_b == JG_T;
        s.vec_a = s.vec_b = SPEC_ARGUMENT;
    } else {
        s.trans_a = s.trans_b = SPEC_ARGUMENT;
        s.vec_a = s.vec_b = p->type_a == JG_F32 ? SPEC_ARGUMENT : SPEC_GATHER;
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

/* Bytes of a copy, or that there is none. */
static uint8_t copy_width(int family, const problem *p, int operand_b, uint8_t access)
{
    if (family != FAMILY_MMA) return p->type_a == JG_F32 ? access : SPEC_GATHER;
    if (copies(p, operand_b)) return access < 4 ? SPEC_REALIGN : turns(p, operand_b) ? 4 : access;
    return access == 16 && is_contiguous_along_k(p, operand_b) ? SPEC_GATHER_WIDE : SPEC_GATHER;
}

static kernel_spec specialised_spec(int family, int number, const problem *p, access_widths access)
{
    kernel_spec s = base_spec(family, number, p, JG_FORM_SPECIALISED);
    s.fusion = kernel_fusion(p);
    s.trans_a = p->op_a == JG_T;
    s.trans_b = p->op_b == JG_T;
    s.vec_a = copy_width(family, p, 0, access.a);
    s.vec_b = copy_width(family, p, 1, access.b);
    s.vec_c = access.c;
    s.single = p->batch == 1;
    s.m = p->m;
    s.n = p->n;
    s.k = p->k;
    s.lda = p->lda;
    s.ldb = p->ldb;
    s.ldc = p->ldc;
    leave_to_launch(p, &s);
    return s;
}

/* Whether the problem's class needs no conversion: its generic kernels copy both operands 16 bytes at a time, or realign both. */
static int copies_both(int family, const problem *p)
{
    return family == FAMILY_MMA && copies(p, 0) && copies(p, 1);
}

/* Which rows make generic kernels that take their operands so. */
static unsigned generic_flag(int family, uint8_t vec)
{
    if (family != FAMILY_MMA || vec == 16) return TILE_GENERIC;
    return vec == SPEC_REALIGN ? TILE_GENERIC_REALIGN : TILE_GENERIC_GATHER;
}

/* What all candidates are but for their tile, and which flag their rows must have; 0: none. */
static kernel_spec candidate_spec(const problem *p, access_widths access, jg_form form, const arch *a, unsigned *needed)
{
    const int family = family_of(p, a);
    const uint8_t vec = !copies_both(family, p) ? SPEC_GATHER : access.a == 16 && access.b == 16 ? 16 : SPEC_REALIGN;
    *needed = form == JG_FORM_SPECIALISED ? 0 : generic_flag(family, vec);
    return form == JG_FORM_SPECIALISED ? specialised_spec(family, a->number, p, access) : generic_spec(family, a->number, p, vec);
}

/* Shows the candidates of so many slices, 0: all. with_reasons: in words, which takes far longer than the rest. */
static void walk(const problem *p, access_widths access, jg_form form, const limits *l, int slices, int with_reasons, plan_visit visit,
                 void *user)
{
    const arch *a = l->arch;
    const int family = family_of(p, a);
    unsigned needed;
    plan c;
    memset(&c, 0, sizeof c);
    c.access = access;
    c.spec = candidate_spec(p, access, form, a, &needed);
    for (const arch_tile *row = tiles_of(family, a); row && row->tile.m; row++) {
        if ((row->flags & needed) != needed || (slices && row->tile.slices != slices)) continue;
        char reason[160];
        reason[0] = '?';
        reason[1] = 0;
        c.spec.tile = tile_for(family, p, row);
        plan_complete(p, l, &c);
        if (plan_is_legal(p, l, &c, reason, with_reasons ? sizeof reason : 0)) reason[0] = 0;
        visit(user, &c, reason);
    }
}

void plan_each(const problem *p, access_widths access, jg_form form, const limits *l, plan_visit visit, void *user)
{
    walk(p, access, form, l, 0, 1, visit, user);
}

void plan_each_quickly(const problem *p, access_widths access, jg_form form, const limits *l, plan_visit visit, void *user)
{
    walk(p, access, form, l, 0, 0, visit, user);
}

int plan_with_tile(const problem *p, access_widths access, jg_form form, const limits *l, const tile *wanted, plan *out)
{
    const int family = family_of(p, l->arch);
    unsigned needed;
    plan c;
    memset(&c, 0, sizeof c);
    c.access = access;
    c.spec = candidate_spec(p, access, form, l->arch, &needed);
    for (const arch_tile *row = tiles_of(family, l->arch); row && row->tile.m; row++) {
        c.spec.tile = tile_for(family, p, row);
        if ((row->flags & needed) != needed || memcmp(&c.spec.tile, wanted, sizeof *wanted) != 0) continue;
        plan_complete(p, l, &c);
        *out = c;
        return plan_is_legal(p, l, &c, NULL, 0);
    }
    return 0;
}

void plan_of_spec(const problem *p, access_widths access, const limits *l, const kernel_spec *spec, plan *out)
{
    memset(out, 0, sizeof *out);
    out->access = access;
    out->spec = *spec;
    plan_complete(p, l, out);
}

/* --- the numeric class --- */

/* The numbers of slices that make a class, a bit each: only those that generic kernels have too, with whatever access. */
static uint64_t classes_of(int family, const arch_tile *rows)
{
    uint64_t copying = 0, realigning = 0, gathering = 0;
    for (const arch_tile *row = rows; row->tile.m; row++) {
        const uint64_t bit = (uint64_t)1 << row->tile.slices;
        if (row->flags & TILE_GENERIC) copying |= bit;
        if (row->flags & TILE_GENERIC_REALIGN) realigning |= bit;
        if (row->flags & TILE_GENERIC_GATHER) gathering |= bit;
    }
    return family == FAMILY_MMA ? copying & realigning & gathering : copying;
}

int64_t plan_class_size(int64_t size, int is_dynamic)
{
    if (!is_dynamic) return size;
    int64_t power = 1;
    while (power < size) power *= 2;
    return power < 4 ? power : power / 4 * 3;
}

typedef struct class_choice {
    uint64_t classes;
    double cost;
    int slices;
} class_choice;

static void keep_class(void *user, const plan *c, const char *reason)
{
    class_choice *ch = user;
    if (reason[0] || (ch->slices && c->cost >= ch->cost) || !(ch->classes >> c->spec.tile.slices & 1)) return;
    ch->cost = c->cost;
    ch->slices = c->spec.tile.slices;
}

int plan_slices(const problem *p, const limits *l)
{
    const access_widths any = {16, 16, 1};
    const int family = family_of(p, l->arch);
    const arch_tile *rows = tiles_of(family, l->arch);
    if (problem_multiply_type(p) == JG_S8 || !rows) return 0;
    class_choice ch = {.classes = classes_of(family, rows)};
    problem q = *p;
    q.m = plan_class_size(p->m, p->dynamic & JG_DYNAMIC_M);
    q.n = plan_class_size(p->n, p->dynamic & JG_DYNAMIC_N);
    q.k = plan_class_size(p->k, p->dynamic & JG_DYNAMIC_K);
    if (p->dynamic & JG_DYNAMIC_BATCH) q.batch = 1;
    q.dynamic = 0;
    walk(&q, any, JG_FORM_SPECIALISED, l, 0, 0, keep_class, &ch);
    return ch.slices;
}

typedef struct choice {
    plan *best;
    int found;
} choice;

static void keep_best(void *user, const plan *c, const char *reason)
{
    choice *ch = user;
    if (reason[0] || (ch->found && c->cost >= ch->best->cost)) return;
    *ch->best = *c;
    ch->found = 1;
}

static int choose_in_class(const problem *p, access_widths access, jg_form form, const limits *l, int slices, plan *best)
{
    choice ch = {.best = best};
    walk(p, access, form, l, slices, 0, keep_best, &ch);
    return ch.found;
}

int plan_has_class(const problem *p, const limits *l, int slices)
{
    const access_widths accesses[] = {{16, 16, 1}, {(uint8_t)type_bytes((jg_type)p->type_a), (uint8_t)type_bytes((jg_type)p->type_b), 0}};
    const int family = family_of(p, l->arch);
    const arch_tile *rows = tiles_of(family, l->arch);
    plan found;
    if (!rows || slices < 1 || slices > 63 || !(classes_of(family, rows) >> slices & 1)) return 0;
    for (int i = 0; i < 2; i++)
        if (!choose_in_class(p, accesses[i], JG_FORM_SPECIALISED, l, slices, &found) ||
            !choose_in_class(p, accesses[i], JG_FORM_GENERIC, l, slices, &found))
            return 0;
    return 1;
}

/* What only tensor cores do. */
static jg_status check_family(const problem *p, const arch *a)
{
    if (family_of(p, a) == FAMILY_SIMT || a->has_mma) return JG_OK;
    return status_set(JG_ERR_UNSUPPORTED, "sm_%d has no tensor cores for math = %s; nearest that works: JG_MATH_DEFAULT", a->number,
                      problem_math_mode(p) == JG_MATH_TF32 ? "JG_MATH_TF32" : problem_math_mode(p) == JG_MATH_F16 ? "JG_MATH_F16" : "JG_MATH_F32_3XTF32");
}

typedef struct reasons {
    char text[2048];
    size_t length;
} reasons;

static void add_reason(void *user, const plan *c, const char *reason)
{
    reasons *r = user;
    char name[KERNEL_NAME_BYTES];
    kernel_format_name(&c->spec, name);
    if (reason[0]) text_append(r->text, sizeof r->text, &r->length, "\n  %s: %s", name, reason);
}

static jg_status refuse(const problem *p, access_widths access, jg_form form, const limits *l, int slices)
{
    reasons r = {.length = 0};
    walk(p, access, form, l, slices, 1, add_reason, &r);
    return status_set(JG_ERR_UNSUPPORTED, "no plan for %lldx%lldx%lld is legal on sm_%d:%s", (long long)p->m, (long long)p->n,
                      (long long)p->k, l->arch->number, r.text);
}

jg_status plan_choose_sliced(const problem *p, access_widths access, jg_form form, const limits *l, int slices, plan *out)
{
    RETURN_IF_ERROR(check_family(p, l->arch));
    return choose_in_class(p, access, form, l, slices, out) ? JG_OK : refuse(p, access, form, l, slices);
}

jg_status plan_choose(const problem *p, access_widths access, jg_form form, const limits *l, plan *out)
{
    return plan_choose_sliced(p, access, form, l, plan_slices(p, l), out);
}

jg_status plan_choose_both_sliced(const problem *p, access_widths access, const limits *l, int slices, plan *own, plan *generic,
                                  int *has_generic)
{
    *has_generic = 0;
    RETURN_IF_ERROR(check_family(p, l->arch));
    if (!choose_in_class(p, access, JG_FORM_SPECIALISED, l, slices, own)) return refuse(p, access, JG_FORM_SPECIALISED, l, slices);
    *has_generic = choose_in_class(p, access, JG_FORM_GENERIC, l, slices, generic);
    return JG_OK;
}

jg_status plan_choose_both(const problem *p, access_widths access, const limits *l, plan *own, plan *generic, int *has_generic)
{
    return plan_choose_both_sliced(p, access, l, plan_slices(p, l), own, generic, has_generic);
}

/* The resident classes, by their flag. */
static const struct {
    uint32_t flag;
    plan_class what;
} classes[] = {
    {JG_RESIDENT_F32, {JG_F32, JG_F32, JG_MATH_DEFAULT, 0}},   {JG_RESIDENT_F16, {JG_F16, JG_F16, JG_MATH_DEFAULT, 0}},
    {JG_RESIDENT_BF16, {JG_BF16, JG_BF16, JG_MATH_DEFAULT, 0}}, {JG_RESIDENT_S8, {JG_S8, JG_S8, JG_MATH_DEFAULT, 0}},
    {JG_RESIDENT_U8, {JG_U8, JG_S8, JG_MATH_DEFAULT, 0}},       {JG_RESIDENT_U8, {JG_S8, JG_U8, JG_MATH_DEFAULT, 0}},
    {JG_RESIDENT_S4, {JG_S4, JG_S4, JG_MATH_DEFAULT, 0}},       {JG_RESIDENT_E4M3, {JG_E4M3, JG_E4M3, JG_MATH_DEFAULT, 0}},
    {JG_RESIDENT_TF32, {JG_F32, JG_F32, JG_MATH_TF32, 0}},      {JG_RESIDENT_3XTF32, {JG_F32, JG_F32, JG_MATH_F32_3XTF32, 0}},
};

void plan_each_resident(uint32_t flags, void (*visit)(void *user, const plan_class *what), void *user)
{
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++)
        for (unsigned grouped = 0; grouped <= ((flags & JG_RESIDENT_GROUPED) != 0); grouped++) {
            plan_class what = classes[i].what;
            what.grouped = (uint8_t)grouped;
            if (flags & classes[i].flag) visit(user, &what);
        }
}

int plan_class_has_flag(const plan_class *what)
{
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++) {
        const plan_class *c = &classes[i].what;
        if (c->type_a == what->type_a && c->type_b == what->type_b && c->math == what->math) return 1;
    }
    return 0;
}

plan_class plan_class_of(const problem *p)
{
    return (plan_class){p->type_a, p->type_b, p->math, 0};
}

void plan_generic_set(const plan_class *what, const limits *l, void (*visit)(void *user, const kernel_spec *spec), void *user)
{
    const arch *a = l->arch;
    /* Any small problem will do: the rules that need one do not depend on its size. */
    problem p = {.m = 1, .n = 1, .k = 1, .batch = 1, .type_a = what->type_a, .type_b = what->type_b, .type_c = JG_F32, .math = what->math};
    const int family = family_of(&p, a);
    const arch_tile *rows = tiles_of(family, a);
    /* Of tensor cores, where nothing is converted, kernels for each pair of ops; of mma those that copy, then those that realign. */
    const int realigns = copies_both(family, &p), variants = realigns ? 8 : family == FAMILY_TF32 ? 4 : 1;
    for (const arch_tile *row = rows; row && row->tile.m; row++) {
        for (int variant = 0; variant < variants; variant++) {
            const uint8_t vec = !realigns ? SPEC_GATHER : variant < 4 ? 16 : SPEC_REALIGN;
            p.op_a = variant & 1 ? JG_T : JG_N;
            p.op_b = variant >> 1 & 1 ? JG_T : JG_N;
            if (!(row->flags & generic_flag(family, vec))) continue;
            plan c = {.spec = generic_spec(family, a->number, &p, vec)};
            c.spec.tile = tile_for(family, &p, row);
            char reason[160];
            c.spec.grouped = what->grouped;
            plan_complete(&p, l, &c);
            if (plan_is_legal(&p, l, &c, reason, sizeof reason)) visit(user, &c.spec);
        }
    }
}
