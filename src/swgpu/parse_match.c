/* Operands as written become slots: each is matched with its letter of the opcode's pattern, checked against the type as
 * which the instruction reads it, and named by a slot: of a register, a special register or a constant. */
#include "parse.h"

#include "exec.h"

#include <stdlib.h>
#include <string.h>

static const char *const space_names[] = {[SPACE_GENERIC] = "generic", [SPACE_GLOBAL] = "global", [SPACE_SHARED] = "shared",
                                          [SPACE_LOCAL] = "local", [SPACE_PARAM] = "param", [SPACE_CONST] = "const"};

/* ---- slots */

static uint32_t new_slot(parser *p, unsigned bits)
{
    uint32_t slot = p->kernel->slots;
    p->kernel->slots += bits == 64 ? 2 : 1;
    return slot;
}

/* 0 after parse_fail: no register has slot 0. */
uint32_t parse_register_slot(parser *p, symbol *s, uint32_t member)
{
    uint32_t *slot = &s->value;
    if (s->kind == SYMBOL_RANGE) {
        if (!s->slots) s->slots = calloc(s->count, sizeof *s->slots);
        if (!s->slots) {
            parse_no_memory(p);
            return 0;
        }
        slot = &s->slots[member];
    }
    if (!*slot) *slot = new_slot(p, ptx_type_bits((ptx_type)s->type));
    return *slot;
}

static uint32_t constant_hash(uint64_t value, int wide, int32_t variable)
{
    uint64_t mixed = (value ^ (uint64_t)(uint32_t)variable << 32 ^ (unsigned)wide) * 0x9e3779b97f4a7c15ull;
    mixed ^= mixed >> 29;
    return (uint32_t)(mixed * 0xbf58476d1ce4e5b9ull >> 32);
}

static int grow_constants(parser *p)
{
    const ptx_kernel *k = p->kernel;
    uint32_t size = p->constant_table_size ? p->constant_table_size * 2 : 64, *table = calloc(size, sizeof *table);
    if (!table) return parse_no_memory(p);
    for (uint32_t c = 0; c < k->constant_count; c++) {
        const ptx_constant *x = &k->constants[c];
        uint32_t place = constant_hash(x->value, x->wide, x->symbol) & (size - 1);
        while (table[place]) place = (place + 1) & (size - 1);
        table[place] = c + 1;
    }
    free(p->constant_table);
    p->constant_table = table;
    p->constant_table_size = size;
    return 0;
}

/* The slot of a constant; each one is there once. variable: the value is to be added to its address; or -1. */
static int take_constant(parser *p, uint64_t value, int wide, int32_t variable, uint32_t *slot)
{
    ptx_kernel *k = p->kernel;
    if (k->constant_count >= p->constant_table_size / 2 && grow_constants(p)) return 1;
    uint32_t mask = p->constant_table_size - 1, place = constant_hash(value, wide, variable) & mask;
    for (; p->constant_table[place]; place = (place + 1) & mask) {
        const ptx_constant *x = &k->constants[p->constant_table[place] - 1];
        if (x->value != value || x->wide != wide || x->symbol != variable) continue;
        *slot = x->slot;
        return 0;
    }
    if (k->constant_count == PTX_MAX_REGISTERS)
        return parse_fail(p, PTX_SYNTAX, &p->token, "more than %u different constants", PTX_MAX_REGISTERS);
    ptx_constant *constants = parse_grow(p, k->constants, &p->constant_capacity, k->constant_count, sizeof *constants);
    if (!constants) return 1;
    k->constants = constants;
    *slot = new_slot(p, wide ? 64 : 32);
    constants[k->constant_count] = (ptx_constant){.slot = *slot, .wide = (uint8_t)wide, .value = value, .symbol = variable};
    p->constant_table[place] = ++k->constant_count;
    return 0;
}

/* ---- values that are known when the module is parsed, or when it is loaded */

static float float_of(uint64_t bits)
{
    uint32_t narrow = (uint32_t)bits;
    float value;
    memcpy(&value, &narrow, sizeof value);
    return value;
}

static double double_of(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* The bits of a float literal as float32 or float64. */
static uint64_t convert_float(const raw_element *e, unsigned bits)
{
    if ((e->form == RAW_FLOAT32) == (bits == 32)) return e->value;
    uint64_t out = 0;
    if (bits == 32) {
        float narrow = (float)double_of(e->value);
        uint32_t narrow_bits;
        memcpy(&narrow_bits, &narrow, sizeof narrow_bits);
        out = narrow_bits;
    } else {
        double wide = float_of(e->value);
        memcpy(&out, &wide, sizeof out);
    }
    return out;
}

static int number_value(parser *p, const raw_element *e, ptx_type type, uint64_t *value)
{
    unsigned bits = ptx_type_bits(type);
    const char *name = ptx_type_name(type);
    int is_integer = e->form == RAW_INTEGER;
    if (T_HALF >> type & 1)
        return parse_fail(p, PTX_SYNTAX, &e->at, "a number cannot stand for an operand of type .%s", name);
    if (is_integer && (type == TYPE_F32 || type == TYPE_F64))
        return parse_fail(p, PTX_SYNTAX, &e->at, "an integer cannot stand for an operand of type .%s", name);
    int is_same = (type == TYPE_B32 && e->form == RAW_FLOAT32) || (type == TYPE_B64 && e->form == RAW_FLOAT64);
    if (!is_integer && type != TYPE_F32 && type != TYPE_F64 && !is_same)
        return parse_fail(p, PTX_SYNTAX, &e->at, "a floating-point number cannot stand for an operand of type .%s", name);
    *value = is_integer ? e->value : convert_float(e, bits);
    if (type == TYPE_PRED)
        *value = *value ? FULL_MASK : 0; /* bit n is lane n */
    else if (bits < 64)
        *value &= (1ull << bits) - 1;
    return 0;
}

/* The address of a variable or parameter in its space, plus `more`. */
static int symbol_constant(parser *p, const token *at, const symbol *s, int wide, int64_t more, uint32_t *slot)
{
    uint64_t value = (uint64_t)more;
    int32_t variable = -1;
    if (s->kind == SYMBOL_PARAM) {
        value += s->value;
    } else {
        const ptx_variable *v = &p->module->variables[s->value];
        int at_load = v->space == SPACE_GLOBAL || v->space == SPACE_CONST;
        if (at_load && !wide)
            return parse_fail(p, PTX_SYNTAX, at, "the address of %.*s has 64 bits where 32 are needed", SHOWN(at));
        if (at_load || v->is_extern)
            variable = (int32_t)s->value;
        else
            value += v->offset + (v->space == SPACE_SHARED ? SHARED_BASE : 0);
        if (v->is_extern && v->alignment > p->extern_alignment) p->extern_alignment = v->alignment;
    }
    return take_constant(p, wide ? value : (uint32_t)value, wide, variable, slot);
}

/* ---- one operand */

static int is_register(const symbol *s)
{
    return s && (s->kind == SYMBOL_REGISTER || s->kind == SYMBOL_RANGE);
}

static int has_address(const symbol *s)
{
    return s && (s->kind == SYMBOL_VARIABLE || s->kind == SYMBOL_PARAM);
}

static int is_float(ptx_type type)
{
    return ((T_FLOAT | T_SMALL_FLOAT) >> type & 1) != 0;
}

static int is_bits(ptx_type type)
{
    return ((T_LOGIC | TYPE_BIT(B8)) >> type & 1) != 0;
}

/* A register of type `own` where the instruction reads or writes `type`. ld, st and cvt take wider ones too, but not of
 * a floating type; b8 to b64 go with all types of their width. */
static int check_register(parser *p, const ptx_instruction *i, const token *at, ptx_type own, ptx_type type)
{
    int relaxed = i->opcode == OPCODE_ld || i->opcode == OPCODE_ldu || i->opcode == OPCODE_st || i->opcode == OPCODE_cvt;
    unsigned needed = ptx_type_bits(type), bits = ptx_type_bits(own);
    int fits = bits == needed || (relaxed && bits > needed && needed > 1 && !is_float(own));
    if (fits && (is_bits(own) || is_bits(type) || is_float(own) == is_float(type))) return 0;
    if (fits)
        return parse_fail(p, PTX_SYNTAX, at, "%.*s is of type .%s where .%s is needed", SHOWN(at), ptx_type_name(own),
                          ptx_type_name(type));
    if (needed == 1) return parse_fail(p, PTX_SYNTAX, at, "%.*s is no predicate", SHOWN(at));
    if (bits == 1) return parse_fail(p, PTX_SYNTAX, at, "%.*s is a predicate where %u bits are needed", SHOWN(at), needed);
    return parse_fail(p, PTX_SYNTAX, at, "%.*s has %u bits where %u are needed", SHOWN(at), bits, needed);
}

static int set_register(parser *p, symbol *s, uint32_t member, ptx_operand *o)
{
    o->kind = OPERAND_REGISTER;
    o->type = s->type;
    o->bits = (uint8_t)ptx_type_bits((ptx_type)s->type);
    o->slot = parse_register_slot(p, s, member);
    return o->slot == 0;
}

static void set_special(parser *p, uint32_t slot, uint8_t bits, ptx_operand *o)
{
    *o = (ptx_operand){.kind = OPERAND_REGISTER, .type = bits == 64 ? TYPE_U64 : TYPE_U32, .bits = bits, .slot = slot};
    if (slot >= SPECIAL_CLOCK) p->kernel->uses_clock = 1;
}

static int set_number(parser *p, const raw_element *e, ptx_type type, ptx_operand *o)
{
    uint64_t value = 0;
    if (number_value(p, e, type, &value)) return 1;
    *o = (ptx_operand){.kind = OPERAND_IMMEDIATE, .type = (uint8_t)type, .bits = (uint8_t)ptx_type_bits(type),
                       .offset = (int64_t)value};
    return take_constant(p, value, o->bits == 64, -1, &o->slot);
}

static int match_named(parser *p, const ptx_instruction *i, const raw_element *e, char letter, ptx_type type, ptx_operand *o)
{
    uint32_t member, slot;
    uint8_t bits;
    symbol *s = names_find(p, &e->at, &member);
    if (is_register(s)) {
        if (e->offset) return parse_fail(p, PTX_SYNTAX, &e->at, "an offset needs an address in brackets");
        return set_register(p, s, member, o) || check_register(p, i, &e->at, (ptx_type)o->type, type);
    }
    if (!s && parse_special_name(&e->at, NULL, &slot, &bits)) {
        if (letter == 'd') return parse_fail(p, PTX_SYNTAX, &e->at, "%.*s cannot be written", SHOWN(&e->at));
        set_special(p, slot, bits, o);
        return check_register(p, i, &e->at, (ptx_type)o->type, type);
    }
    if (!s) return parse_fail(p, PTX_SYNTAX, &e->at, "%.*s is not declared", SHOWN(&e->at));
    if (letter != 'a' || !has_address(s)) return parse_fail(p, PTX_SYNTAX, &e->at, "%.*s cannot stand here", SHOWN(&e->at));
    if (i->opcode != OPCODE_mov && i->opcode != OPCODE_cvta)
        return parse_fail(p, PTX_SYNTAX, &e->at, "only mov and cvta take the address of %.*s", SHOWN(&e->at));
    unsigned needed = ptx_type_bits(type);
    if (needed < 32)
        return parse_fail(p, PTX_SYNTAX, &e->at, "the address of %.*s does not fit into %u bits", SHOWN(&e->at), needed);
    *o = (ptx_operand){.kind = OPERAND_IMMEDIATE, .type = (uint8_t)type, .bits = (uint8_t)needed};
    return symbol_constant(p, &e->at, s, needed == 64, e->offset, &o->slot);
}

static int match_element(parser *p, const ptx_instruction *i, const raw_element *e, char letter, ptx_type type, ptx_operand *o)
{
    if (e->negate && letter != 'p') return parse_fail(p, PTX_SYNTAX, &e->at, "\"!\" cannot stand here");
    if (letter == 'i' && e->form != RAW_INTEGER) return parse_fail(p, PTX_SYNTAX, &e->at, "a number is needed here");
    switch (e->form) {
    case RAW_NAME:
        if (match_named(p, i, e, letter, type, o)) return 1;
        o->negate = e->negate;
        return 0;
    case RAW_SINK:
        if (letter != 'd') return parse_fail(p, PTX_SYNTAX, &e->at, "\"_\" cannot be read");
        *o = (ptx_operand){.kind = OPERAND_SINK, .type = (uint8_t)type, .bits = (uint8_t)ptx_type_bits(type),
                           .slot = SPECIAL_SINK};
        return 0;
    case RAW_SPECIAL:
        if (letter == 'd') return parse_fail(p, PTX_SYNTAX, &e->at, "%.*s cannot be written", SHOWN(&e->at));
        set_special(p, (uint32_t)e->value, 32, o);
        return check_register(p, i, &e->at, TYPE_U32, type);
    default:
        if (letter == 'd') return parse_fail(p, PTX_SYNTAX, &e->at, "a register is needed here");
        return set_number(p, e, type, o);
    }
}

/* [register + offset], [variable + offset], [number] */
static int match_address(parser *p, const ptx_instruction *i, const raw_element *e, unsigned space, ptx_operand *o)
{
    int wide = space != SPACE_SHARED;
    uint32_t member;
    *o = (ptx_operand){.kind = OPERAND_ADDRESS, .type = wide ? TYPE_U64 : TYPE_U32, .bits = wide ? 64 : 32, .offset = e->offset};
    if (e->negate) return parse_fail(p, PTX_SYNTAX, &e->at, "\"!\" cannot stand here");
    if (e->form == RAW_INTEGER) return take_constant(p, wide ? e->value : (uint32_t)e->value, wide, -1, &o->slot);
    symbol *s = e->form == RAW_NAME ? names_find(p, &e->at, &member) : NULL;
    if (is_register(s)) {
        if (set_register(p, s, member, o)) return 1;
        o->kind = OPERAND_ADDRESS;
        int narrow = space == SPACE_SHARED || space == SPACE_LOCAL || space == SPACE_PARAM;
        if (narrow && o->bits == 32) return 0;
        /* Not as ld and st take their data: an address has just its width. */
        return check_register(p, &(ptx_instruction){.opcode = OPCODE_bra}, &e->at, (ptx_type)o->type, TYPE_U64);
    }
    if (e->form == RAW_NAME && !s) return parse_fail(p, PTX_SYNTAX, &e->at, "%.*s is not declared", SHOWN(&e->at));
    if (!has_address(s)) return parse_fail(p, PTX_SYNTAX, &e->at, "an address is needed here");
    unsigned actual = s->kind == SYMBOL_PARAM ? SPACE_PARAM : p->module->variables[s->value].space;
    if (actual != space && !(actual == SPACE_GLOBAL && space == SPACE_GENERIC))
        return parse_fail(p, PTX_SYNTAX, &e->at, "%.*s is in %s space, but %s takes a %s address", SHOWN(&e->at),
                          space_names[actual], p->rows[i->opcode].name, space_names[space]);
    return symbol_constant(p, &e->at, s, wide, 0, &o->slot);
}

/* A branch's label may be declared later: settled when its block ends. */
static int match_label(parser *p, const raw_element *e, uint32_t operand)
{
    if (e->form != RAW_NAME || e->negate || e->offset) return parse_fail(p, PTX_SYNTAX, &e->at, "a label is needed here");
    fixup *fixups = parse_grow(p, p->fixups, &p->fixup_capacity, p->fixup_count, sizeof *fixups);
    if (!fixups) return 1;
    p->fixups = fixups;
    uint32_t name = names_intern(p, &e->at);
    if (name == UINT32_MAX) return 1;
    fixups[p->fixup_count++] = (fixup){.at = e->at, .name = name, .instruction = p->kernel->count, .operand = operand};
    p->kernel->operands[operand].kind = OPERAND_LABEL;
    return 0;
}

/* ---- groups */

/* Registers in one operand of ld and st: as many as .v2, .v4 or .v8 says. */
static int check_vector(parser *p, const ptx_instruction *i, const raw_group *g)
{
    static const uint8_t counts[] = {[VECTOR_NONE] = 1, [VECTOR_2] = 2, [VECTOR_4] = 4, [VECTOR_8] = 8};
    unsigned needed = counts[i->modifier[MOD_VECTOR]];
    if (needed == 1 && g->shape == SHAPE_VECTOR)
        return parse_fail(p, PTX_SYNTAX, &g->at, "braces need .v2, .v4 or .v8 at the opcode");
    if (needed != 1 && (g->shape != SHAPE_VECTOR || g->count != needed))
        return parse_fail(p, PTX_SYNTAX, &g->at, ".v%u needs %u operands in braces, not %u", needed, needed, g->count);
    return 0;
}

/* mov from or to {a, b}: the parts share the bits of the type. */
static int part_type(parser *p, const ptx_instruction *i, const raw_group *g, ptx_type *type)
{
    unsigned bits = ptx_type_bits(*type);
    if ((g->count != 2 && g->count != 4) || bits / g->count < 8 ||
        p->raw.groups[0].shape == p->raw.groups[p->raw.group_count - 1].shape || !(T_BITS >> i->type[0] & 1))
        return parse_fail(p, PTX_SYNTAX, &g->at, "mov.%s cannot take these braces", ptx_type_name(*type));
    *type = bits / g->count == 32 ? TYPE_B32 : bits / g->count == 16 ? TYPE_B16 : TYPE_B8;
    return 0;
}

static int check_shape(parser *p, const ptx_instruction *i, const raw_group *g, char letter, ptx_type *type)
{
    if (letter == 'm') return 0;
    const char *name = p->rows[i->opcode].name;
    switch (i->opcode) {
    case OPCODE_ld:
    case OPCODE_ldu:
    case OPCODE_st: if (g->shape != SHAPE_PAIR) return check_vector(p, i, g); break;
    case OPCODE_mov: if (g->shape == SHAPE_VECTOR) return part_type(p, i, g, type); break;
    case OPCODE_mma:
    case OPCODE_ldmatrix:
    case OPCODE_stmatrix: if (g->shape == SHAPE_VECTOR) return 0; break;
    case OPCODE_setp:
    case OPCODE_shfl:
    case OPCODE_match: if (g->shape == SHAPE_PAIR && letter == 'd') return 0; break;
    }
    if (g->shape == SHAPE_VECTOR) return parse_fail(p, PTX_SYNTAX, &g->at, "%s takes no braces here", name);
    if (g->shape == SHAPE_PAIR) return parse_fail(p, PTX_SYNTAX, &g->at, "%s takes no pair here", name);
    return 0;
}

static int match_group(parser *p, ptx_instruction *i, const raw_group *g, char letter, unsigned position)
{
    ptx_type type = parse_operand_type(i, position);
    if (check_shape(p, i, g, letter, &type)) return 1;
    /* The second address of cp has a space of its own. */
    unsigned space = i->modifier[position == 1 && i->opcode == OPCODE_cp ? MOD_SPACE2 : MOD_SPACE];
    i->count[i->groups++] = g->count;
    for (unsigned n = 0; n < g->count; n++) {
        ptx_operand *operands = parse_grow(p, p->kernel->operands, &p->operand_capacity, p->operand_count, sizeof *operands);
        if (!operands) return 1;
        p->kernel->operands = operands;
        ptx_operand *o = &operands[p->operand_count];
        *o = (ptx_operand){0};
        const raw_element *e = &p->raw.elements[g->first + n];
        int failed = letter == 'm'   ? match_address(p, i, e, space, o)
                     : letter == 'l' ? match_label(p, e, p->operand_count)
                                     : match_element(p, i, e, letter, g->shape == SHAPE_PAIR && n == 1 ? TYPE_PRED : type, o);
        if (failed) return 1;
        p->operand_count++;
    }
    return 0;
}

int parse_match(parser *p, ptx_instruction *i)
{
    const raw_operands *r = &p->raw;
    const char *name = p->rows[i->opcode].name;
    unsigned position = 0, first = 0;
    int optional = 0;
    for (const char *letter = p->rows[i->opcode].pattern; *letter; letter++) {
        if (*letter == '?') {
            optional = 1;
            continue;
        }
        const raw_group *g = i->groups < r->group_count ? &r->groups[i->groups] : NULL;
        if (g && (g->shape == SHAPE_ADDRESS) == (*letter == 'm')) {
            i->first[i->groups] = (uint8_t)first;
            first += g->count;
            if (match_group(p, i, g, *letter, position)) return 1;
        } else if (!optional) {
            if (!g) return parse_fail(p, PTX_SYNTAX, &p->token, "%s needs more operands", name);
            return parse_fail(p, PTX_SYNTAX, &g->at,
                              *letter == 'm' ? "an address in brackets is needed here" : "an address cannot stand here");
        }
        optional = 0;
        position++;
    }
    if (i->groups < r->group_count) return parse_fail(p, PTX_SYNTAX, &r->groups[i->groups].at, "%s takes fewer operands", name);
    return 0;
}
