/* The opcode table. Built once for any processor and, on x86-64, once more for those with AVX2, FMA and F16C: the same
 * sources, wider instructions. Both give the same bits. */
#include "variant.h"

#include "counters.h"
#include "opcodes.h"

#define DECLARE(name, pattern, types, count, modifiers, class, sync) extern ptx_bind BIND(name);
PTX_OPCODES(DECLARE)
#undef DECLARE

#define ROW(op, text, set, number, categories, class, lanes)                                                            \
    [OPCODE_##op] = {.name = #op, .pattern = text, .types = set, .type_count = number, .modifiers = categories,        \
                     .counter = COUNTER_##class, .sync = SYNC_LANES_##lanes, .bind = BIND(op)},

const ptx_opcode_row VARIANT(opcode_rows)[OPCODE_COUNT] = {PTX_OPCODES(ROW)};
