/* Chooses the opcode table that suits this processor, and names opcodes. */
#include "opcodes.h"

extern const ptx_opcode_row opcode_rows[];
#ifdef SWGPU_HAS_WIDE
extern const ptx_opcode_row opcode_rows_wide[];
#endif

const ptx_opcode_row *ptx_opcode_table(void)
{
#ifdef SWGPU_HAS_WIDE
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c"))
        return opcode_rows_wide;
#endif
    return opcode_rows;
}

const char *ptx_opcode_name(unsigned opcode)
{
    return opcode < OPCODE_COUNT ? opcode_rows[opcode].name : "?";
}
