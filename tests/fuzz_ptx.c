/* Fuzzes the PTX parser with libFuzzer: any text must parse or fail with an error text, and nothing may crash, leak or
 * run away. What parses must also hold together: indices in range, the last instruction leaves.
 *
 *     make fuzz FUZZ_SECONDS=600 */
#include "../src/swgpu/opcodes.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds)
{
    if (!holds) __builtin_trap();
}

static void check_kernel(const ptx_module *m, const ptx_kernel *k)
{
    require(k->count > 0 && k->slots >= SPECIAL_COUNT && k->registers >= 16 && k->registers <= 255);
    const ptx_instruction *last = &k->instructions[k->count - 1];
    require(last->opcode == OPCODE_exit || last->opcode == OPCODE_ret);
    for (uint32_t n = 0; n < k->count; n++) {
        const ptx_instruction *i = &k->instructions[n];
        require(i->run && i->opcode < OPCODE_COUNT && i->location < m->location_count && i->guard_slot < k->slots);
        if (i->opcode == OPCODE_bra) require(i->target < k->count);
        for (unsigned g = 0; g < i->groups; g++)
            for (unsigned o = 0; o < i->count[g]; o++) {
                const ptx_operand *x = &i->operands[i->first[g] + o];
                require(x->slot + (x->bits == 64) < k->slots);
                int whole = x->bits == 1 || x->bits == 8 || x->bits == 16 || x->bits == 32 || x->bits == 64;
                require(whole || x->kind == OPERAND_LABEL);
            }
    }
    for (uint32_t c = 0; c < k->constant_count; c++) {
        require(k->constants[c].slot >= SPECIAL_COUNT && k->constants[c].slot + k->constants[c].wide < k->slots);
        require(k->constants[c].symbol < (int32_t)m->variable_count);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* A copy of just that size: the parser must not read behind it. */
    char *text = malloc(size ? size : 1), error[512];
    ptx_module *m;
    if (!text) return 0;
    memcpy(text, data, size);
    ptx_status status = ptx_parse(text, size, &m, error, sizeof error);
    free(text);
    require((status == PTX_OK) == (m != NULL));
    if (!m) require(error[0] != 0);
    for (uint32_t k = 0; m && k < m->kernel_count; k++) check_kernel(m, &m->kernels[k]);
    for (uint32_t l = 0; m && l < m->location_count; l++) require(m->locations[l].file < m->file_count);
    ptx_free(m);
    return 0;
}
