/* Moves: mov in all its forms (scalar, special registers, predicates, packing and unpacking), conversion of addresses
 * between windows (cvta, isspacep), the transposition movmatrix, and the lanes that are active. */
#include "variant.h"

#include "lanes.h"

/* ---- mov */

UNARY(mov_b16, uint32_t, uint16_t, uint32_t, uint32_t, a)
UNARY(mov_b32, uint32_t, uint32_t, uint32_t, uint32_t, a)
UNARY(mov_b64, uint64_t, uint64_t, uint64_t, uint64_t, a)

static int mov_pred(warp *w, const ptx_instruction *i, uint32_t mask)
{
    predicate_store(w, operand_at(i, 0, 0), mask, predicate_mask(w, operand_at(i, 1, 0)));
    return 0;
}

/* {a, b} or {a, b, c, d} into one register, the first part lowest. */
static int pack(warp *w, const ptx_instruction *i, uint32_t mask)
{
    unsigned parts = i->count[1], width = value_bits(i->type[0]) / parts;
    uint64_t part_mask = (1ull << width) - 1;
    FOR_LANES(mask, lane, {
        uint64_t whole = 0;
        for (unsigned k = 0; k < parts; k++) whole |= (operand_get(w, operand_at(i, 1, k), lane) & part_mask) << (k * width);
        operand_set(w, operand_at(i, 0, 0), lane, whole);
    });
    return 0;
}

static int unpack(warp *w, const ptx_instruction *i, uint32_t mask)
{
    unsigned parts = i->count[0], width = value_bits(i->type[0]) / parts;
    uint64_t part_mask = (1ull << width) - 1;
    FOR_LANES(mask, lane, {
        uint64_t whole = operand_get(w, operand_at(i, 1, 0), lane);
        for (unsigned k = 0; k < parts; k++) operand_set(w, operand_at(i, 0, k), lane, whole >> (k * width) & part_mask);
    });
    return 0;
}

/* The two that compilers emit, for registers throughout: all 16-bit slots have their upper bits 0. */
static int pack_2_b16(warp *w, const ptx_instruction *i, uint32_t mask)
{
    uint32_t *to = SLOT(uint32_t, 0);
    const uint32_t *a = slot32(w, operand_at(i, 1, 0)->slot), *b = slot32(w, operand_at(i, 1, 1)->slot);
    LANES(mask, lane, to[lane] = a[lane] | b[lane] << 16);
    return 0;
}

static int pack_2_b32(warp *w, const ptx_instruction *i, uint32_t mask)
{
    uint64_t *to = SLOT(uint64_t, 0);
    const uint32_t *a = slot32(w, operand_at(i, 1, 0)->slot), *b = slot32(w, operand_at(i, 1, 1)->slot);
    LANES(mask, lane, to[lane] = a[lane] | (uint64_t)b[lane] << 32);
    return 0;
}

static int unpack_2_b16(warp *w, const ptx_instruction *i, uint32_t mask)
{
    uint32_t *a = slot32(w, operand_at(i, 0, 0)->slot), *b = slot32(w, operand_at(i, 0, 1)->slot);
    const uint32_t *from = SLOT(uint32_t, 1);
    LANES(mask, lane, uint32_t whole = from[lane]; a[lane] = whole & 0xffff; b[lane] = whole >> 16);
    return 0;
}

static int unpack_2_b32(warp *w, const ptx_instruction *i, uint32_t mask)
{
    uint32_t *a = slot32(w, operand_at(i, 0, 0)->slot), *b = slot32(w, operand_at(i, 0, 1)->slot);
    const uint64_t *from = SLOT(uint64_t, 1);
    LANES(mask, lane, uint64_t whole = from[lane]; a[lane] = (uint32_t)whole; b[lane] = (uint32_t)(whole >> 32));
    return 0;
}

/* Group `parts` is the vector, `whole` the register; only untyped moves have this form. */
static ptx_run *bind_parts(const ptx_instruction *i, unsigned whole, unsigned parts, ptx_run *fast16, ptx_run *fast32,
                           ptx_run *any)
{
    unsigned type = i->type[0], count = i->count[parts], bits = value_bits(type), width = count ? bits / count : 0;
    int all_registers = 1;
    if (type != TYPE_B16 && type != TYPE_B32 && type != TYPE_B64) return NULL;
    if ((count != 2 && count != 4) || width < 8 || i->count[whole] != 1) return NULL;
    const ptx_operand *o = operand_at(i, whole, 0);
    if (o->kind != OPERAND_REGISTER || o->bits != bits) return NULL;
    for (unsigned k = 0; k < count; k++) {
        o = operand_at(i, parts, k);
        if (o->kind == OPERAND_REGISTER ? o->bits != width : o->kind != OPERAND_SINK && o->kind != OPERAND_IMMEDIATE) return NULL;
        if (o->kind == (parts == 0 ? OPERAND_IMMEDIATE : OPERAND_SINK)) return NULL;
        all_registers &= o->kind == OPERAND_REGISTER;
    }
    if (!all_registers || count != 2 || width == 8) return any;
    return width == 16 ? fast16 : fast32;
}

ptx_run *BIND(mov)(const ptx_instruction *i)
{
    static ptx_run *const runs[TYPE_COUNT] = {BY_BITS(mov), BY_WIDTH(mov), [TYPE_F32] = mov_b32, [TYPE_F64] = mov_b64,
                                              [TYPE_PRED] = mov_pred};
    ptx_run *run = runs[i->type[0]];
    if (!run || !only_modifiers(i, 0) || i->groups != 2) return NULL;
    if (i->count[0] > 1) return bind_parts(i, 1, 0, unpack_2_b16, unpack_2_b32, unpack);
    if (i->count[1] > 1) return bind_parts(i, 0, 1, pack_2_b16, pack_2_b32, pack);
    return all_fit(i, 2) ? run : NULL;
}

/* ---- addresses. Global, constant and parameter memory have no window of their own: their generic addresses are the
 * same. 32-bit addresses have no room for a window at all. */

static uint64_t window_of(unsigned space)
{
    return space == SPACE_SHARED ? SHARED_WINDOW : space == SPACE_LOCAL ? LOCAL_WINDOW : 0;
}

static int cvta(warp *w, const ptx_instruction *i, uint32_t mask)
{
    uint64_t window = window_of(i->modifier[MOD_SPACE]), *to = SLOT(uint64_t, 0);
    const uint64_t *from = SLOT(uint64_t, 1);
    if (i->modifier[MOD_TO]) window = 0 - window;
    LANES(mask, lane, to[lane] = from[lane] + window);
    return 0;
}

ptx_run *BIND(cvta)(const ptx_instruction *i)
{
    unsigned space = i->modifier[MOD_SPACE];
    if (!only_modifiers(i, CATEGORY(TO) | CATEGORY(SPACE)) || !space || !all_fit(i, 2)) return NULL;
    if (i->type[0] == TYPE_U32) return mov_b32;
    return i->type[0] != TYPE_U64 ? NULL : window_of(space) ? cvta : mov_b64;
}

static int isspacep(warp *w, const ptx_instruction *i, uint32_t mask)
{
    const ptx_operand *from = operand_at(i, 1, 0);
    unsigned space = i->modifier[MOD_SPACE];
    uint64_t window = space == SPACE_GLOBAL ? GLOBAL_WINDOW : window_of(space);
    uint32_t lanes = 0;
    FOR_LANES(mask, lane, lanes |= (operand_get(w, from, lane) & WINDOW_MASK) == window ? 1u << lane : 0);
    predicate_store(w, operand_at(i, 0, 0), mask, lanes);
    return 0;
}

/* Constant and parameter memory cannot be told from global by their addresses: refused. */
ptx_run *BIND(isspacep)(const ptx_instruction *i)
{
    unsigned space = i->modifier[MOD_SPACE];
    if (!only_modifiers(i, CATEGORY(SPACE))) return NULL;
    if (space != SPACE_GLOBAL && space != SPACE_SHARED && space != SPACE_LOCAL) return NULL;
    return FIT(i, 1, 32) || FIT(i, 1, 64) ? isspacep : NULL;
}

/* ---- movmatrix: lane 4r + c/2 holds row r, columns c and c + 1, of an 8x8 matrix of 16-bit elements */

static int movmatrix(warp *w, const ptx_instruction *i, uint32_t mask)
{
    uint32_t *to = SLOT(uint32_t, 0), from[PTX_LANES];
    memcpy(from, SLOT(uint32_t, 1), sizeof from);
    FOR_LANES(mask, lane, {
        unsigned row = lane / 4, column = lane % 4 * 2, shift = 16 * (row % 2);
        uint32_t low = from[4 * column + row / 2] >> shift & 0xffff, high = from[4 * (column + 1) + row / 2] >> shift & 0xffff;
        to[lane] = low | high << 16;
    });
    return 0;
}

ptx_run *BIND(movmatrix)(const ptx_instruction *i)
{
    if (!only_modifiers(i, CATEGORY(SYNC) | CATEGORY(ALIGNED) | CATEGORY(SHAPE) | CATEGORY(TRANS))) return NULL;
    if (!i->modifier[MOD_SYNC] || !i->modifier[MOD_ALIGNED] || !i->modifier[MOD_TRANS]) return NULL;
    return i->modifier[MOD_SHAPE] == SHAPE_M8N8 && i->type[0] == TYPE_B16 && FIT(i, 32, 32) ? movmatrix : NULL;
}

/* ---- activemask */

static int activemask(warp *w, const ptx_instruction *i, uint32_t mask)
{
    uint32_t *to = SLOT(uint32_t, 0);
    LANES(mask, lane, to[lane] = mask);
    return 0;
}

ptx_run *BIND(activemask)(const ptx_instruction *i)
{
    return only_modifiers(i, 0) && i->type[0] == TYPE_B32 && FIT(i, 32) ? activemask : NULL;
}
