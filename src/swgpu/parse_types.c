/* As what type an instruction reads each operand, and the special registers. */
#include "parse.h"

#include <string.h>

/* For each opcode, one letter for each letter of its pattern (without '?'):
 *     0-3  that type modifier        w  type 0, or twice as wide for .wide       p  a predicate
 *     b    32 bits                   u  an unsigned 32-bit number                q  a 64-bit address
 *     g    a register of an mma's fragment with that group's type                .  no type: address or label
 * Opcodes that are not here read all operands as type 0. */
static const char *const operand_letters[OPCODE_COUNT] = {
    [OPCODE_mul] = "w00", [OPCODE_mad] = "w00w", [OPCODE_dp4a] = "0010", [OPCODE_dp2a] = "0010", [OPCODE_testp] = "p0",
    [OPCODE_lop3] = "0000u", [OPCODE_shl] = "00u", [OPCODE_shr] = "00u", [OPCODE_shf] = "000u", [OPCODE_bfe] = "00uu",
    [OPCODE_bfi] = "000uu", [OPCODE_bfind] = "u0", [OPCODE_popc] = "u0", [OPCODE_clz] = "u0", [OPCODE_setp] = "p00p",
    [OPCODE_set] = "011p", [OPCODE_selp] = "000p", [OPCODE_slct] = "0001", [OPCODE_cvt] = "011", [OPCODE_isspacep] = "pq",
    [OPCODE_ld] = "0.", [OPCODE_ldu] = "0.", [OPCODE_st] = ".0", [OPCODE_prefetch] = ".", [OPCODE_atom] = "0.00",
    [OPCODE_red] = ".0", [OPCODE_cp] = "..uu", [OPCODE_ldmatrix] = "b.", [OPCODE_stmatrix] = ".b", [OPCODE_mma] = "gggg",
    [OPCODE_movmatrix] = "bb", [OPCODE_shfl] = "00uuu", [OPCODE_vote] = "0pu", [OPCODE_match] = "b0u", [OPCODE_redux] = "00u",
    [OPCODE_bar] = "uu", [OPCODE_barrier] = "uu", [OPCODE_bra] = ".",
};

static ptx_type wide_type(ptx_type type)
{
    switch (type) {
    case TYPE_U16: return TYPE_U32;
    case TYPE_S16: return TYPE_S32;
    case TYPE_U32: return TYPE_U64;
    case TYPE_S32: return TYPE_S64;
    default: return type;
    }
}

/* position: of the letter in the pattern. */
ptx_type parse_operand_type(const ptx_instruction *i, unsigned position)
{
    const char *letters = operand_letters[i->opcode] ? operand_letters[i->opcode] : "000000";
    switch (letters[position]) {
    case 'w': return i->modifier[MOD_HALF] == HALF_WIDE ? wide_type((ptx_type)i->type[0]) : (ptx_type)i->type[0];
    case 'p': return TYPE_PRED;
    case 'b': return TYPE_B32;
    case 'u': return TYPE_U32;
    case 'q': return TYPE_U64;
    case 'g':
        if (i->type[position] == TYPE_F64 || i->type[position] == TYPE_F32) return (ptx_type)i->type[position];
        return TYPE_B32;
    case '.': return TYPE_NONE;
    default: return (ptx_type)i->type[letters[position] - '0'];
    }
}

static const struct special {
    const char *name, *part;
    uint8_t slot, bits;
} specials[] = {
    {"%tid", "x", SPECIAL_TID_X, 32}, {"%tid", "y", SPECIAL_TID_Y, 32}, {"%tid", "z", SPECIAL_TID_Z, 32},
    {"%ntid", "x", SPECIAL_NTID_X, 32}, {"%ntid", "y", SPECIAL_NTID_Y, 32}, {"%ntid", "z", SPECIAL_NTID_Z, 32},
    {"%ctaid", "x", SPECIAL_CTAID_X, 32}, {"%ctaid", "y", SPECIAL_CTAID_Y, 32}, {"%ctaid", "z", SPECIAL_CTAID_Z, 32},
    {"%nctaid", "x", SPECIAL_NCTAID_X, 32}, {"%nctaid", "y", SPECIAL_NCTAID_Y, 32}, {"%nctaid", "z", SPECIAL_NCTAID_Z, 32},
    {"%laneid", "", SPECIAL_LANEID, 32}, {"%warpid", "", SPECIAL_WARPID, 32}, {"%nwarpid", "", SPECIAL_NWARPID, 32},
    {"%smid", "", SPECIAL_SMID, 32}, {"%nsmid", "", SPECIAL_NSMID, 32}, {"%lanemask_eq", "", SPECIAL_LANEMASK_EQ, 32},
    {"%lanemask_le", "", SPECIAL_LANEMASK_LE, 32}, {"%lanemask_lt", "", SPECIAL_LANEMASK_LT, 32},
    {"%lanemask_ge", "", SPECIAL_LANEMASK_GE, 32}, {"%lanemask_gt", "", SPECIAL_LANEMASK_GT, 32},
    {"%dynamic_smem_size", "", SPECIAL_DYNAMIC_SMEM_SIZE, 32}, {"%total_smem_size", "", SPECIAL_TOTAL_SMEM_SIZE, 32},
    {"%clock", "", SPECIAL_CLOCK, 32}, {"%clock64", "", SPECIAL_CLOCK64, 64}, {"%globaltimer", "", SPECIAL_GLOBALTIMER, 64},
};

/* The register's slot and width; part is what follows the dot, or null. Null if there is none of that name. */
const char *parse_special_name(const token *name, const token *part, uint32_t *slot, uint8_t *bits)
{
    const token none = {.text = "", .length = 0};
    for (size_t s = 0; s < sizeof specials / sizeof *specials; s++) {
        if (!parse_text_is(name, specials[s].name) || !parse_text_is(part ? part : &none, specials[s].part)) continue;
        *slot = specials[s].slot;
        *bits = specials[s].bits;
        return specials[s].name;
    }
    return NULL;
}
