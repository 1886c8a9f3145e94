/* Transcendental instructions: rsqrt, sin, cos, lg2, ex2, tanh. All are approximations on a GPU, within bounds that PTX
 * states; here they are the C library's double results, rounded to the type, so their last bits may differ from a GPU's
 * and from one C library to another. */
#include "float_lanes.h"

#include <math.h>

static double evaluate(unsigned opcode, double a)
{
    switch (opcode) {
    case OPCODE_rsqrt: return 1.0 / sqrt(a);
    case OPCODE_sin: return sin(a);
    case OPCODE_cos: return cos(a);
    case OPCODE_lg2: return log2(a);
    case OPCODE_ex2: return exp2(a);
    default: return tanh(a);
    }
}

static uint64_t special_element(const ptx_instruction *i, const format *f, uint64_t bits)
{
    const format *f64 = format_of(TYPE_F64);
    if (i->modifier[MOD_FTZ]) bits = format_flush(f, bits);
    uint64_t wide = format_encode(f64, format_decode(f, bits), ROUND_RN, 0);
    uint64_t d = format_bits64(evaluate(i->opcode, format_double(wide)));
    d = format_encode(f, format_decode(f64, d), ROUND_RN, 0);
    return i->modifier[MOD_FTZ] ? format_flush(f, d) : d;
}

static int run_special(struct warp *w, const ptx_instruction *i, uint32_t mask)
{
    const format *f = format_of(i->type[0]);
    unsigned bits = ptx_type_bits(i->type[0]);
    /* rsqrt.approx.ftz.f64 takes and gives upper halves only. */
    uint64_t used = f->bits == 64 && i->modifier[MOD_FTZ] ? ~0xffffffffull : ~0ull >> (64 - f->bits);
    FOR_LANES(mask, lane, {
        uint64_t a = operand_get(w, operand_at(i, 1, 0), lane), d = 0;
        for (unsigned shift = 0; shift < bits; shift += f->bits)
            d |= (special_element(i, f, a >> shift & used) & used) << shift;
        operand_set(w, &i->operands[0], lane, d);
    });
    return 0;
}

/* f32 with or without .ftz, and where else the type may have it: the sets of types without and with. */
static ptx_run *special(const ptx_instruction *i, uint64_t plain, uint64_t flushed)
{
    if (i->types != 1 || i->modifier[MOD_APPROX] != APPROX_GIVEN) return NULL;
    uint64_t types = i->modifier[MOD_FTZ] ? flushed : plain;
    if (!(types >> i->type[0] & 1)) return NULL;
    return float_operands(i, 1, ptx_type_bits(i->type[0])) ? run_special : NULL;
}

#define F32 TYPE_BIT(F32)
#define F64 TYPE_BIT(F64)
#define F16 (TYPE_BIT(F16) | TYPE_BIT(F16X2))
#define BF16 (TYPE_BIT(BF16) | TYPE_BIT(BF16X2))

ptx_run *BIND(rsqrt)(const ptx_instruction *i)
{
    return special(i, F32 | F64, F32 | F64);
}

ptx_run *BIND(sin)(const ptx_instruction *i)
{
    return special(i, F32, F32);
}

ptx_run *BIND(cos)(const ptx_instruction *i)
{
    return special(i, F32, F32);
}

ptx_run *BIND(lg2)(const ptx_instruction *i)
{
    return special(i, F32, F32);
}

ptx_run *BIND(ex2)(const ptx_instruction *i)
{
    return special(i, F32 | F16, F32 | BF16);
}

ptx_run *BIND(tanh)(const ptx_instruction *i)
{
    return special(i, F32 | F16 | BF16, 0);
}
