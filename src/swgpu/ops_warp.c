/* Exchange between the lanes of a warp (shfl, vote, match, redux), and what needs no doing here: fences, nanosleep, and
 * control, which the scheduler executes itself.
 *
 * Lanes that execute an instruction together may still name different sets of members; each set is served by itself.
 * Who counts is who is in the set and executes the instruction. */
#include "variant.h"

#include "lanes.h"

/* ---- shfl */

/* Where a lane reads, or -1 if that is out of its range: then it keeps its own value. c: the segment mask in bits 8 to
 * 12, the clamp in bits 0 to 4. */
static int shfl_source(unsigned mode, unsigned lane, uint32_t b, uint32_t c)
{
    unsigned segment = c >> 8 & 31, offset = b & 31;
    int first = (int)(lane & segment), limit = first | (int)(c & 31 & ~segment);
    switch (mode) {
    case SHUFFLE_UP: return (int)lane - (int)offset >= limit ? (int)(lane - offset) : -1;
    case SHUFFLE_DOWN: return (int)(lane + offset) <= limit ? (int)(lane + offset) : -1;
    case SHUFFLE_BFLY: return (int)(lane ^ offset) <= limit ? (int)(lane ^ offset) : -1;
    default: {
        int source = first | (int)(offset & ~segment);
        return source <= limit ? source : -1;
    }
    }
}

/* The value of a source lane that takes no part is undefined: 0 here, as on an H200. */
static int shfl(warp *w, const ptx_instruction *i, uint32_t mask)
{
    unsigned mode = i->modifier[MOD_SHUFFLE];
    uint32_t *to = SLOT(uint32_t, 0), from[PTX_LANES], valid = 0;
    const uint32_t *b = SLOT(uint32_t, 2), *c = SLOT(uint32_t, 3), *members = SLOT(uint32_t, 4);
    memcpy(from, SLOT(uint32_t, 1), sizeof from);
    FOR_LANES(mask, lane, {
        int source = shfl_source(mode, lane, b[lane], c[lane]);
        if (source >= 0) valid |= 1u << lane;
        else source = (int)lane;
        int takes_part = source == (int)lane || (members[lane] & mask) >> source & 1;
        to[lane] = takes_part ? from[source] : 0;
    });
    if (i->count[0] == 2) predicate_store(w, operand_at(i, 0, 1), mask, valid);
    return 0;
}

/* ---- sets of members */

/* Takes from *rest the lanes that name the same members as its first lane; who of these counts is *members. */
static uint32_t take_set(uint32_t *rest, const uint32_t *named, uint32_t mask, uint32_t *members)
{
    uint32_t set = 0, first = named[__builtin_ctz(*rest)];
    FOR_LANES(*rest, lane, if (named[lane] == first) set |= 1u << lane);
    *rest &= ~set;
    *members = first & mask;
    return set;
}

static int vote(warp *w, const ptx_instruction *i, uint32_t mask)
{
    uint32_t named[PTX_LANES], source = predicate_mask(w, operand_at(i, 1, 0)), members, lanes = 0;
    unsigned mode = i->modifier[MOD_VOTE];
    uint32_t *to = SLOT(uint32_t, 0);
    memcpy(named, SLOT(uint32_t, 2), sizeof named);
    for (uint32_t rest = mask; rest;) {
        uint32_t set = take_set(&rest, named, mask, &members), yes = source & members;
        if (mode == VOTE_BALLOT) FOR_LANES(set, lane, to[lane] = yes);
        else if (mode == VOTE_ANY ? yes != 0 : yes == members || (mode == VOTE_UNI && yes == 0)) lanes |= set;
    }
    if (mode != VOTE_BALLOT) predicate_store(w, operand_at(i, 0, 0), mask, lanes);
    return 0;
}

/* Members whose value of operand 1 is that of a lane. */
static uint32_t same_value(const uint64_t *values, uint32_t members, unsigned of)
{
    uint32_t same = 0;
    FOR_LANES(members, lane, if (values[lane] == values[of]) same |= 1u << lane);
    return same;
}

static int match(warp *w, const ptx_instruction *i, uint32_t mask)
{
    uint32_t named[PTX_LANES], *to = SLOT(uint32_t, 0), members, lanes = 0;
    uint64_t values[PTX_LANES];
    int all = i->modifier[MOD_VOTE] == VOTE_ALL;
    memcpy(named, SLOT(uint32_t, 2), sizeof named);
    for (unsigned lane = 0; lane < PTX_LANES; lane++) values[lane] = operand_get(w, operand_at(i, 1, 0), lane);
    for (uint32_t rest = mask; rest;) {
        uint32_t set = take_set(&rest, named, mask, &members);
        FOR_LANES(set, lane, {
            uint32_t same = same_value(values, members, lane);
            int every = same == members;
            to[lane] = all && !every ? 0 : same;
            lanes |= every ? 1u << lane : 0;
        });
    }
    if (i->count[0] == 2) predicate_store(w, operand_at(i, 0, 1), mask, lanes);
    return 0;
}

static uint32_t reduce(unsigned operator, int is_signed, uint32_t a, uint32_t b)
{
    int less = is_signed ? (int32_t)a < (int32_t)b : a < b;
    switch (operator) {
    case ATOM_ADD: return a + b;
    case ATOM_MIN: return less ? a : b;
    case ATOM_MAX: return less ? b : a;
    case ATOM_AND: return a & b;
    case ATOM_OR: return a | b;
    default: return a ^ b;
    }
}

static int redux(warp *w, const ptx_instruction *i, uint32_t mask)
{
    uint32_t named[PTX_LANES], from[PTX_LANES], *to = SLOT(uint32_t, 0), members;
    unsigned operator = i->modifier[MOD_ATOM];
    int is_signed = i->type[0] == TYPE_S32;
    memcpy(from, SLOT(uint32_t, 1), sizeof from);
    memcpy(named, SLOT(uint32_t, 2), sizeof named);
    for (uint32_t rest = mask; rest;) {
        uint32_t set = take_set(&rest, named, mask, &members);
        if (!members) continue; /* nobody to reduce: undefined, left as it is */
        unsigned first = (unsigned)__builtin_ctz(members);
        uint32_t result = from[first];
        FOR_LANES(members & (members - 1), lane, result = reduce(operator, is_signed, result, from[lane]));
        FOR_LANES(set, lane, to[lane] = result);
    }
    return 0;
}

/* ---- binding */

/* d, or the pair d|p where that is allowed: a 32-bit register and a predicate; p may be the sink, d too if it says so. */
static int results_fit(const ptx_instruction *i, int pair_allowed, int sink_allowed)
{
    const ptx_operand *d = operand_at(i, 0, 0);
    if (i->count[0] == 1) return destination_fits(d, 32);
    if (i->count[0] != 2 || !pair_allowed || !destination_or_sink_fits(operand_at(i, 0, 1), 1)) return 0;
    return sink_allowed ? destination_or_sink_fits(d, 32) : destination_fits(d, 32);
}

/* A 32-bit word in each lane's slot: the sources of these instructions are read as such. */
static int word_fits(const ptx_instruction *i, unsigned group)
{
    return i->count[group] == 1 && operand_fits(operand_at(i, group, 0), 32);
}

ptx_run *BIND(shfl)(const ptx_instruction *i)
{
    if (!only_modifiers(i, CATEGORY(SYNC) | CATEGORY(SHUFFLE)) || i->type[0] != TYPE_B32 || i->groups != 5) return NULL;
    if (!i->modifier[MOD_SYNC] || !i->modifier[MOD_SHUFFLE] || !results_fit(i, 1, 0)) return NULL;
    for (unsigned g = 1; g < 5; g++)
        if (!word_fits(i, g)) return NULL;
    return shfl;
}

ptx_run *BIND(vote)(const ptx_instruction *i)
{
    unsigned mode = i->modifier[MOD_VOTE];
    if (!only_modifiers(i, CATEGORY(SYNC) | CATEGORY(VOTE)) || !i->modifier[MOD_SYNC] || !mode) return NULL;
    if (i->type[0] != (mode == VOTE_BALLOT ? TYPE_B32 : TYPE_PRED)) return NULL;
    return FIT(i, mode == VOTE_BALLOT ? 32 : 1, 1, 32) ? vote : NULL;
}

ptx_run *BIND(match)(const ptx_instruction *i)
{
    unsigned mode = i->modifier[MOD_VOTE], bits = value_bits(i->type[0]);
    if (!only_modifiers(i, CATEGORY(SYNC) | CATEGORY(VOTE)) || !i->modifier[MOD_SYNC] || i->groups != 3) return NULL;
    if ((mode != VOTE_ANY && mode != VOTE_ALL) || !results_fit(i, mode == VOTE_ALL, 1)) return NULL;
    if (i->type[0] != TYPE_B32 && i->type[0] != TYPE_B64) return NULL;
    return i->count[1] == 1 && operand_fits(operand_at(i, 1, 0), bits) && word_fits(i, 2) ? match : NULL;
}

ptx_run *BIND(redux)(const ptx_instruction *i)
{
    const uint32_t numbers = 1u << ATOM_ADD | 1u << ATOM_MIN | 1u << ATOM_MAX;
    const uint32_t bits = 1u << ATOM_AND | 1u << ATOM_OR | 1u << ATOM_XOR;
    if (!only_modifiers(i, CATEGORY(SYNC) | CATEGORY(ATOM)) || !i->modifier[MOD_SYNC] || !FIT(i, 32, 32, 32)) return NULL;
    uint32_t allowed = i->type[0] == TYPE_B32 ? bits : i->type[0] == TYPE_U32 || i->type[0] == TYPE_S32 ? numbers : 0;
    return allowed >> i->modifier[MOD_ATOM] & 1 ? redux : NULL;
}

/* ---- nothing to do */

static int nothing(warp *w, const ptx_instruction *i, uint32_t mask)
{
    (void)w, (void)i, (void)mask;
    return 0;
}

/* A block's threads see each other's accesses in the order in which they run, and that satisfies every fence. */
ptx_run *BIND(membar)(const ptx_instruction *i)
{
    unsigned scope = i->modifier[MOD_SCOPE];
    return only_modifiers(i, CATEGORY(SCOPE)) && scope && scope != SCOPE_CLUSTER && i->groups == 0 ? nothing : NULL;
}

ptx_run *BIND(fence)(const ptx_instruction *i)
{
    unsigned order = i->modifier[MOD_ORDER];
    if (!only_modifiers(i, CATEGORY(SCOPE) | CATEGORY(ORDER)) || !i->modifier[MOD_SCOPE] || i->groups) return NULL;
    return order == ORDER_WEAK || order == ORDER_RELAXED ? NULL : nothing;
}

/* ---- control: checked here, run by the scheduler */

/* A number of a barrier, of threads or of nanoseconds, or a mask. */
static int number_fits(const ptx_instruction *i, unsigned group)
{
    const ptx_operand *o = operand_at(i, group, 0);
    return i->count[group] == 1 && (o->kind == OPERAND_IMMEDIATE || (o->kind == OPERAND_REGISTER && o->bits == 32));
}

ptx_run *BIND(nanosleep)(const ptx_instruction *i)
{
    return only_modifiers(i, 0) && i->type[0] == TYPE_U32 && i->groups == 1 && number_fits(i, 0) ? nothing : NULL;
}

/* .sync a[, b] and .arrive a, b; .red is not supported. */
static ptx_run *block_barrier(const ptx_instruction *i)
{
    unsigned group = i->modifier[MOD_GROUP], scope = i->modifier[MOD_SCOPE];
    int sync = i->modifier[MOD_SYNC] && group == GROUP_NONE, arrive = !i->modifier[MOD_SYNC] && group == GROUP_ARRIVE;
    if ((!sync && !arrive) || (scope && scope != SCOPE_CTA)) return NULL;
    if (i->groups != 2 && !(sync && i->groups == 1)) return NULL;
    return number_fits(i, 0) && (i->groups == 1 || number_fits(i, 1)) ? nothing : NULL;
}

ptx_run *BIND(bar)(const ptx_instruction *i)
{
    if (!only_modifiers(i, CATEGORY(SYNC) | CATEGORY(GROUP) | CATEGORY(SCOPE))) return NULL;
    if (i->modifier[MOD_GROUP] != GROUP_WARP) return block_barrier(i);
    return i->modifier[MOD_SYNC] && !i->modifier[MOD_SCOPE] && i->groups == 1 && number_fits(i, 0) ? nothing : NULL;
}

ptx_run *BIND(barrier)(const ptx_instruction *i)
{
    const uint64_t allowed = CATEGORY(SYNC) | CATEGORY(GROUP) | CATEGORY(SCOPE) | CATEGORY(ALIGNED);
    return only_modifiers(i, allowed) ? block_barrier(i) : NULL;
}

ptx_run *BIND(bra)(const ptx_instruction *i)
{
    if (!only_modifiers(i, CATEGORY(UNI)) || i->groups != 1 || i->count[0] != 1) return NULL;
    return operand_at(i, 0, 0)->kind == OPERAND_LABEL ? nothing : NULL;
}

ptx_run *BIND(ret)(const ptx_instruction *i) { return only_modifiers(i, CATEGORY(UNI)) && i->groups == 0 ? nothing : NULL; }
ptx_run *BIND(exit)(const ptx_instruction *i) { return only_modifiers(i, 0) && i->groups == 0 ? nothing : NULL; }
ptx_run *BIND(trap)(const ptx_instruction *i) { return only_modifiers(i, 0) && i->groups == 0 ? nothing : NULL; }
