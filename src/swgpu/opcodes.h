/* Every PTX opcode that the software GPU executes, one row each: the parser takes names, types and modifiers from here,
 * the executor the function. To add an instruction, add a row and its bind function.
 *
 * OP(name, pattern, types, count, modifiers, class, sync)
 *   name       as in PTX, up to the first dot; also the enumerator OPCODE_name and the function bind_name
 *   pattern    the operand groups, one letter each; a group after '?' is optional:
 *                d  destination(s): register, vector, pair a|b, "_"     a  source: register, immediate, vector
 *                p  source predicate, may be negated                    m  address in brackets
 *                i  an immediate integer                                l  label
 *   types      the set from which each type modifier must come; count: how many there must be
 *   modifiers  the categories that may be given
 *   class      what the instruction counts as (counters.h)
 *   sync       NONE; ALL: every live lane of the warp must execute it together; MASK: the lanes of the last operand
 *              must; CONTROL: the scheduler itself runs it (its bind function only checks)
 *
 * Families to come have their place: wgmma and cp.async.bulk (TMA) are rows here with bind functions in files of their own,
 * their layouts rows of mma_layout.h, their sums mma_model.h's, their data's late arrival async.c's; mbarrier would be a
 * third kind of waiting beside barriers and .sync in warp.c.
 *
 * bind_name returns the function that runs an instruction with these types, modifiers and operands, or null for a
 * combination that does not exist or is not supported; the parser reports that with line and caret, so that nothing is
 * ever silently ignored. */

#ifndef SWGPU_OPCODES_H
#define SWGPU_OPCODES_H

#include "ptx.h"

#define T_INT (TYPE_BIT(U16) | TYPE_BIT(U32) | TYPE_BIT(U64) | TYPE_BIT(S16) | TYPE_BIT(S32) | TYPE_BIT(S64))
#define T_HALF (TYPE_BIT(F16) | TYPE_BIT(F16X2) | TYPE_BIT(BF16) | TYPE_BIT(BF16X2))
#define T_FLOAT (T_HALF | TYPE_BIT(F32) | TYPE_BIT(F64))
#define T_BITS (TYPE_BIT(B16) | TYPE_BIT(B32) | TYPE_BIT(B64))
#define T_LOGIC (T_BITS | TYPE_BIT(PRED))
#define T_PACKED (TYPE_BIT(U16X2) | TYPE_BIT(S16X2))
#define T_BYTES (TYPE_BIT(B8) | TYPE_BIT(U8) | TYPE_BIT(S8))
#define T_MEMORY (T_BYTES | T_BITS | T_INT | T_FLOAT)
#define T_SMALL_FLOAT (TYPE_BIT(E4M3) | TYPE_BIT(E5M2) | TYPE_BIT(E4M3X2) | TYPE_BIT(E5M2X2) | TYPE_BIT(TF32))
#define T_MMA_INT (TYPE_BIT(U8) | TYPE_BIT(S8) | TYPE_BIT(U4) | TYPE_BIT(S4) | TYPE_BIT(S32))
#define T_MMA (T_FLOAT | T_SMALL_FLOAT | T_MMA_INT)

#define M(name) CATEGORY(name)
#define M_MEMORY (M(SPACE) | M(VECTOR) | M(CACHE) | M(HINT) | M(ORDER) | M(SCOPE) | M(VOLATILE))

#define PTX_OPCODES(OP)                                                                                                \
    /* integer and floating arithmetic */                                                                              \
    OP(add, "daa", T_INT | T_PACKED | T_FLOAT, 1, M(ROUND) | M(FTZ) | M(SAT), ARITHMETIC, NONE)                      \
    OP(sub, "daa", T_INT | T_FLOAT, 1, M(ROUND) | M(FTZ) | M(SAT), ARITHMETIC, NONE)                                 \
    OP(mul, "daa", T_INT | T_FLOAT, 1, M(ROUND) | M(FTZ) | M(SAT) | M(HALF), ARITHMETIC, NONE)                       \
    OP(mad, "daaa", T_INT | TYPE_BIT(F32) | TYPE_BIT(F64), 1, M(ROUND) | M(FTZ) | M(SAT) | M(HALF), ARITHMETIC, NONE) \
    OP(mul24, "daa", TYPE_BIT(U32) | TYPE_BIT(S32), 1, M(HALF), ARITHMETIC, NONE)                                    \
    OP(mad24, "daaa", TYPE_BIT(U32) | TYPE_BIT(S32), 1, M(HALF), ARITHMETIC, NONE)                                   \
    OP(fma, "daaa", T_FLOAT, 1, M(ROUND) | M(FTZ) | M(SAT) | M(RELU), FMA, NONE)                                     \
    OP(div, "daa", T_INT | TYPE_BIT(F32) | TYPE_BIT(F64), 1, M(ROUND) | M(FTZ) | M(APPROX), ARITHMETIC, NONE)        \
    OP(rem, "daa", T_INT, 1, 0, ARITHMETIC, NONE)                                                                    \
    OP(abs, "da", T_INT | T_FLOAT, 1, M(FTZ), ARITHMETIC, NONE)                                                      \
    OP(neg, "da", T_INT | T_FLOAT, 1, M(FTZ), ARITHMETIC, NONE)                                                      \
    OP(min, "daa", T_INT | T_FLOAT, 1, M(FTZ) | M(NAN) | M(XORSIGN) | M(RELU), ARITHMETIC, NONE)                     \
    OP(max, "daa", T_INT | T_FLOAT, 1, M(FTZ) | M(NAN) | M(XORSIGN) | M(RELU), ARITHMETIC, NONE)                     \
    OP(sad, "daaa", T_INT, 1, 0, ARITHMETIC, NONE)                                                                   \
    OP(dp4a, "daaa", TYPE_BIT(U32) | TYPE_BIT(S32), 2, 0, ARITHMETIC, NONE)                                          \
    OP(dp2a, "daaa", TYPE_BIT(U32) | TYPE_BIT(S32), 2, M(HALF), ARITHMETIC, NONE)                                    \
    OP(rcp, "da", TYPE_BIT(F32) | TYPE_BIT(F64), 1, M(ROUND) | M(FTZ) | M(APPROX), SPECIAL, NONE)                    \
    OP(sqrt, "da", TYPE_BIT(F32) | TYPE_BIT(F64), 1, M(ROUND) | M(FTZ) | M(APPROX), SPECIAL, NONE)                   \
    OP(rsqrt, "da", TYPE_BIT(F32) | TYPE_BIT(F64), 1, M(FTZ) | M(APPROX), SPECIAL, NONE)                             \
    OP(sin, "da", TYPE_BIT(F32), 1, M(FTZ) | M(APPROX), SPECIAL, NONE)                                               \
    OP(cos, "da", TYPE_BIT(F32), 1, M(FTZ) | M(APPROX), SPECIAL, NONE)                                               \
    OP(lg2, "da", TYPE_BIT(F32), 1, M(FTZ) | M(APPROX), SPECIAL, NONE)                                               \
    OP(ex2, "da", TYPE_BIT(F32) | T_HALF, 1, M(FTZ) | M(APPROX), SPECIAL, NONE)                                      \
    OP(tanh, "da", TYPE_BIT(F32) | T_HALF, 1, M(APPROX), SPECIAL, NONE)                                              \
    OP(copysign, "daa", TYPE_BIT(F32) | TYPE_BIT(F64), 1, 0, ARITHMETIC, NONE)                                       \
    OP(testp, "da", TYPE_BIT(F32) | TYPE_BIT(F64), 1, M(TEST), COMPARE, NONE)                                        \
    /* bits */                                                                                                         \
    OP(and, "daa", T_LOGIC, 1, 0, LOGIC, NONE)                                                                       \
    OP(or, "daa", T_LOGIC, 1, 0, LOGIC, NONE)                                                                        \
    OP(xor, "daa", T_LOGIC, 1, 0, LOGIC, NONE)                                                                       \
    OP(not, "da", T_LOGIC, 1, 0, LOGIC, NONE)                                                                        \
    OP(cnot, "da", T_BITS, 1, 0, LOGIC, NONE)                                                                        \
    OP(lop3, "daaai", TYPE_BIT(B32), 1, 0, LOGIC, NONE)                                                              \
    OP(shl, "daa", T_BITS, 1, 0, LOGIC, NONE)                                                                        \
    OP(shr, "daa", T_BITS | T_INT, 1, 0, LOGIC, NONE)                                                                \
    OP(shf, "daaa", TYPE_BIT(B32), 1, M(FUNNEL) | M(SHIFT), LOGIC, NONE)                                             \
    OP(prmt, "daaa", TYPE_BIT(B32), 1, M(PERMUTE), LOGIC, NONE)                                                      \
    OP(bfe, "daaa", T_INT, 1, 0, LOGIC, NONE)                                                                        \
    OP(bfi, "daaaa", T_BITS, 1, 0, LOGIC, NONE)                                                                      \
    OP(bfind, "da", T_INT, 1, M(SHIFT), LOGIC, NONE)                                                                 \
    OP(brev, "da", T_BITS, 1, 0, LOGIC, NONE)                                                                        \
    OP(popc, "da", T_BITS, 1, 0, LOGIC, NONE)                                                                        \
    OP(clz, "da", T_BITS, 1, 0, LOGIC, NONE)                                                                         \
    /* compare, select, move, convert */                                                                               \
    OP(setp, "daa?p", T_BITS | T_INT | T_FLOAT, 1, M(COMPARE) | M(BOOL) | M(FTZ), COMPARE, NONE)                     \
    OP(set, "daa?p", T_BITS | T_INT | T_FLOAT, 2, M(COMPARE) | M(BOOL) | M(FTZ), COMPARE, NONE)                      \
    OP(selp, "daap", T_BITS | T_INT | T_FLOAT, 1, 0, COMPARE, NONE)                                                  \
    OP(slct, "daaa", T_BITS | T_INT | T_FLOAT, 2, M(FTZ), COMPARE, NONE)                                             \
    OP(mov, "da", T_LOGIC | T_INT | T_FLOAT, 1, 0, MOVE, NONE)                                                       \
    OP(cvt, "da?a", T_BYTES | T_INT | T_FLOAT | T_SMALL_FLOAT, 2, M(ROUND) | M(FTZ) | M(SAT) | M(RELU), CONVERT, NONE) \
    OP(cvta, "da", TYPE_BIT(U32) | TYPE_BIT(U64), 1, M(TO) | M(SPACE), CONVERT, NONE)                                \
    OP(isspacep, "da", 0, 0, M(SPACE), COMPARE, NONE)                                                                \
    /* memory */                                                                                                       \
    OP(ld, "dm", T_MEMORY, 1, M_MEMORY, LOAD, NONE)                                                                  \
    OP(ldu, "dm", T_MEMORY, 1, M_MEMORY, LOAD, NONE)                                                                 \
    OP(st, "ma", T_MEMORY, 1, M_MEMORY, STORE, NONE)                                                                 \
    OP(prefetch, "m", 0, 0, M(SPACE) | M(HINT), OTHER, NONE)                                                         \
    OP(atom, "dma?a", T_BITS | T_INT | T_FLOAT, 1, M(SPACE) | M(ORDER) | M(SCOPE) | M(ATOM) | M(NOFTZ), ATOMIC, NONE) \
    OP(red, "ma", T_BITS | T_INT | T_FLOAT, 1, M(SPACE) | M(ORDER) | M(SCOPE) | M(ATOM) | M(NOFTZ), ATOMIC, NONE)    \
    OP(cp, "?m?m?a?a", 0, 0, M(PROXY) | M(CACHE) | M(SPACE) | M(SPACE2) | M(HINT) | M(GROUP), COPY, NONE)            \
    OP(ldmatrix, "dm", TYPE_BIT(B16), 1, M(SYNC) | M(ALIGNED) | M(SHAPE) | M(COUNT) | M(TRANS) | M(SPACE), LOAD, ALL) \
    OP(stmatrix, "ma", TYPE_BIT(B16), 1, M(SYNC) | M(ALIGNED) | M(SHAPE) | M(COUNT) | M(TRANS) | M(SPACE), STORE, ALL) \
    OP(membar, "", 0, 0, M(SCOPE), OTHER, NONE)                                                                      \
    OP(fence, "", 0, 0, M(ORDER) | M(SCOPE), OTHER, NONE)                                                            \
    /* between the lanes of a warp */                                                                                  \
    OP(mma, "daaa", T_MMA, 4, M(SYNC) | M(ALIGNED) | M(SHAPE) | M(LAYOUT) | M(LAYOUT2) | M(SAT), MMA, ALL)           \
    OP(movmatrix, "da", TYPE_BIT(B16), 1, M(SYNC) | M(ALIGNED) | M(SHAPE) | M(TRANS), MOVE, ALL)                     \
    OP(shfl, "daaa?a", TYPE_BIT(B32), 1, M(SYNC) | M(SHUFFLE), WARP, MASK)                                           \
    OP(vote, "dp?a", TYPE_BIT(PRED) | TYPE_BIT(B32), 1, M(SYNC) | M(VOTE), WARP, MASK)                               \
    OP(match, "daa", TYPE_BIT(B32) | TYPE_BIT(B64), 1, M(SYNC) | M(VOTE), WARP, MASK)                                \
    OP(redux, "daa", TYPE_BIT(U32) | TYPE_BIT(S32) | TYPE_BIT(B32), 1, M(SYNC) | M(ATOM), WARP, MASK)                \
    OP(activemask, "d", TYPE_BIT(B32), 1, 0, WARP, NONE)                                                             \
    /* control */                                                                                                      \
    OP(bar, "?a?a", 0, 0, M(SYNC) | M(GROUP) | M(SCOPE), BARRIER, CONTROL)                                           \
    OP(barrier, "?a?a", 0, 0, M(SYNC) | M(GROUP) | M(SCOPE) | M(ALIGNED), BARRIER, CONTROL)                          \
    OP(bra, "l", 0, 0, M(UNI), BRANCH, CONTROL)                                                                      \
    OP(ret, "", 0, 0, M(UNI), BRANCH, CONTROL)                                                                       \
    OP(exit, "", 0, 0, 0, BRANCH, CONTROL)                                                                           \
    OP(trap, "", 0, 0, 0, OTHER, CONTROL)                                                                            \
    OP(nanosleep, "a", TYPE_BIT(U32), 1, 0, OTHER, NONE)

typedef enum ptx_opcode {
#define MEMBER(name, pattern, types, count, modifiers, class, sync) OPCODE_##name,
    PTX_OPCODES(MEMBER)
#undef MEMBER
    OPCODE_COUNT
} ptx_opcode;

typedef enum ptx_sync { SYNC_LANES_NONE, SYNC_LANES_ALL, SYNC_LANES_MASK, SYNC_LANES_CONTROL } ptx_sync;

typedef ptx_run *ptx_bind(const ptx_instruction *i);

typedef struct ptx_opcode_row {
    const char *name, *pattern;
    uint64_t types;
    uint8_t type_count;
    uint64_t modifiers;
    uint8_t counter; /* counter_class */
    uint8_t sync;    /* ptx_sync */
    ptx_bind *bind;
} ptx_opcode_row;

/* OPCODE_COUNT rows, with the bind functions that suit this processor. */
const ptx_opcode_row *ptx_opcode_table(void);

#endif
