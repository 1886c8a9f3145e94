/* Floating-point arithmetic: add, sub, mul, mad, fma, div, rcp, sqrt, min, max, abs, neg, copysign, testp.
 *
 * To nearest in f32 and f64 the processor's own arithmetic is the GPU's, bit for bit, but for NaNs: a GPU has one. Loops
 * over a full warp vectorise. Every other rounding and format goes through exact numbers (formats.h). Approximate
 * instructions (div.approx, rcp.approx, sqrt.approx ...) give the correctly rounded result; a GPU's may differ in the
 * last bits. What .ftz makes zero of is as on a GPU: see number_is_tiny. */
#include "ops_float.h"

#include "float_lanes.h"

#define INLINE static inline __attribute__((always_inline))

/* ---- to nearest, f32 and f64 */

INLINE float f32_operation(unsigned opcode, float a, float b, float c)
{
    switch (opcode) {
    case OPCODE_add: return a + b;
    case OPCODE_sub: return a - b;
    case OPCODE_mul: return a * b;
    case OPCODE_div: return a / b;
    case OPCODE_rcp: return 1.0f / a;
    case OPCODE_sqrt: return __builtin_sqrtf(a);
    default: return __builtin_fmaf(a, b, c);
    }
}

INLINE double f64_operation(unsigned opcode, double a, double b, double c)
{
    switch (opcode) {
    case OPCODE_add: return a + b;
    case OPCODE_sub: return a - b;
    case OPCODE_mul: return a * b;
    case OPCODE_div: return a / b;
    case OPCODE_rcp: return 1.0 / a;
    case OPCODE_sqrt: return __builtin_sqrt(a);
    default: return __builtin_fma(a, b, c);
    }
}

INLINE uint32_t f32_lane(unsigned opcode, int ftz, int sat, uint32_t a, uint32_t b, uint32_t c)
{
    if (ftz) a = float_flush32(a), b = float_flush32(b), c = float_flush32(c);
    uint32_t d = format_canonical32(f32_operation(opcode, format_float(a), format_float(b), format_float(c)));
    if (ftz) d = float_flush32(d);
    return sat ? float_saturate32(d) : d;
}

/* Operands that an opcode lacks repeat its last one, so that every lane function takes three. */
INLINE uint32_t source_slot(const ptx_instruction *i, unsigned group)
{
    return operand_at(i, group < i->groups ? group : i->groups - 1u, 0)->slot;
}

static int run_general(struct warp *w, const ptx_instruction *i, uint32_t mask);

INLINE int f32_run(struct warp *w, const ptx_instruction *i, uint32_t mask, unsigned opcode, int ftz, int sat)
{
    uint32_t *d = slot32(w, i->operands[0].slot);
    const uint32_t *a = slot32(w, source_slot(i, 1)), *b = slot32(w, source_slot(i, 2)), *c = slot32(w, source_slot(i, 3));
    if (ftz && (opcode == OPCODE_mul || opcode == OPCODE_fma || opcode == OPCODE_div)) {
        /* The smallest normal number may come from less, which only an exact computation tells. */
        uint32_t results[PTX_LANES], smallest = 0;
        for (unsigned lane = 0; lane < PTX_LANES; lane++) results[lane] = f32_lane(opcode, ftz, sat, a[lane], b[lane], c[lane]);
        for (unsigned lane = 0; lane < PTX_LANES; lane++) smallest |= (results[lane] & 0x7fffffff) == 0x00800000;
        if (smallest) return run_general(w, i, mask);
        LANES(mask, lane, d[lane] = results[lane]);
        return 0;
    }
    LANES(mask, lane, d[lane] = f32_lane(opcode, ftz, sat, a[lane], b[lane], c[lane]));
    return 0;
}

INLINE int f64_run(struct warp *w, const ptx_instruction *i, uint32_t mask, unsigned opcode)
{
    uint64_t *d = slot64(w, i->operands[0].slot);
    const uint64_t *a = slot64(w, source_slot(i, 1)), *b = slot64(w, source_slot(i, 2)), *c = slot64(w, source_slot(i, 3));
    LANES(mask, lane, d[lane] = format_canonical64(f64_operation(opcode, format_double(a[lane]), format_double(b[lane]),
                                                                      format_double(c[lane]))));
    return 0;
}

#define NEAREST_OPCODES(X) X(add) X(sub) X(mul) X(fma) X(div) X(rcp) X(sqrt)
#define NEAREST(op)                                                                                                    \
    static int f32_##op(struct warp *w, const ptx_instruction *i, uint32_t mask)                                       \
    {                                                                                                                  \
        return f32_run(w, i, mask, OPCODE_##op, 0, 0);                                                                 \
    }                                                                                                                  \
    static int f32_##op##_ftz(struct warp *w, const ptx_instruction *i, uint32_t mask)                                 \
    {                                                                                                                  \
        return f32_run(w, i, mask, OPCODE_##op, 1, 0);                                                                 \
    }                                                                                                                  \
    static int f32_##op##_sat(struct warp *w, const ptx_instruction *i, uint32_t mask)                                 \
    {                                                                                                                  \
        return f32_run(w, i, mask, OPCODE_##op, 0, 1);                                                                 \
    }                                                                                                                  \
    static int f32_##op##_ftz_sat(struct warp *w, const ptx_instruction *i, uint32_t mask)                             \
    {                                                                                                                  \
        return f32_run(w, i, mask, OPCODE_##op, 1, 1);                                                                 \
    }                                                                                                                  \
    static int f64_##op(struct warp *w, const ptx_instruction *i, uint32_t mask)                                       \
    {                                                                                                                  \
        return f64_run(w, i, mask, OPCODE_##op);                                                                       \
    }
NEAREST_OPCODES(NEAREST)
#undef NEAREST

static ptx_run *nearest_of(unsigned opcode, ptx_type type, int ftz, int sat)
{
    if (opcode == OPCODE_mad) opcode = OPCODE_fma;
#define ROW(op)                                                                                                        \
    if (opcode == OPCODE_##op)                                                                                         \
        return type == TYPE_F64 ? f64_##op : ftz ? sat ? f32_##op##_ftz_sat : f32_##op##_ftz : sat ? f32_##op##_sat : f32_##op;
    NEAREST_OPCODES(ROW)
#undef ROW
    return NULL;
}

/* ---- any format, any rounding */

static number general_operation(unsigned opcode, const number *n, int rounding)
{
    number b = n[1];
    switch (opcode) {
    case OPCODE_add: return number_add(n[0], b, rounding);
    case OPCODE_sub: b.negative = !b.negative; return number_add(n[0], b, rounding);
    case OPCODE_mul: return number_multiply(n[0], b);
    case OPCODE_div: return number_divide(n[0], b);
    case OPCODE_rcp: return number_divide(number_from_int(1, 0), n[0]);
    case OPCODE_sqrt: return number_sqrt(n[0]);
    default: return number_add(number_multiply(n[0], b), n[2], rounding);
    }
}

static uint64_t general_element(const ptx_instruction *i, const format *f, const uint64_t *sources, unsigned shift)
{
    int rounding = i->modifier[MOD_ROUND] ? i->modifier[MOD_ROUND] : ROUND_RN;
    uint64_t mask = ~0ull >> (64 - f->bits);
    number n[3];
    for (unsigned s = 0; s < 3; s++) {
        uint64_t bits = sources[s] >> shift & mask;
        n[s] = format_decode(f, i->modifier[MOD_FTZ] ? format_flush(f, bits) : bits);
    }
    number exact = general_operation(i->opcode, n, rounding);
    if (i->modifier[MOD_FTZ] && number_is_tiny(f, exact, rounding)) exact.significand = 0;
    uint64_t d = format_encode(f, exact, rounding, 0);
    if (i->modifier[MOD_SAT]) d = float_saturate(f, d);
    return i->modifier[MOD_RELU] ? float_relu(f, d) : d;
}

static int run_general(struct warp *w, const ptx_instruction *i, uint32_t mask)
{
    const format *f = format_of(i->type[0]);
    unsigned bits = ptx_type_bits(i->type[0]);
    FOR_LANES(mask, lane, {
        uint64_t sources[3], d = 0;
        for (unsigned s = 0; s < 3; s++)
            sources[s] = operand_get(w, operand_at(i, s + 1 < i->groups ? s + 1 : i->groups - 1u, 0), lane);
        for (unsigned shift = 0; shift < bits; shift += f->bits) d |= general_element(i, f, sources, shift) << shift;
        operand_set(w, &i->operands[0], lane, d);
    });
    return 0;
}

/* ---- which modifiers exist: PTX ISA, "Floating-Point Instructions" and "Half-Precision Floating-Point Instructions" */

#define IS_HALF(type) (TYPE_BIT(F16) & 1ull << (type) || TYPE_BIT(F16X2) & 1ull << (type))

static ptx_run *arithmetic(const ptx_instruction *i, unsigned sources, int rounding_needed)
{
    ptx_type type = i->type[0];
    const uint8_t *m = i->modifier;
    int ieee = m[MOD_ROUND] >= ROUND_RN && m[MOD_ROUND] <= ROUND_RP, f16 = IS_HALF(type);
    if (i->types != 1 || !format_of(type) || !float_operands(i, sources, ptx_type_bits(type))) return NULL;
    if (m[MOD_ROUND] ? !ieee : rounding_needed && !m[MOD_APPROX]) return NULL;
    if (type != TYPE_F32 && type != TYPE_F64 && m[MOD_ROUND] > ROUND_RN) return NULL;
    if (m[MOD_FTZ] && type != TYPE_F32 && !f16) return NULL;
    if (m[MOD_SAT] && (m[MOD_SAT] != SAT_GIVEN || (type != TYPE_F32 && !f16))) return NULL;
    if (m[MOD_RELU] && (i->opcode != OPCODE_fma || m[MOD_SAT] || type == TYPE_F32 || type == TYPE_F64)) return NULL;
    if (m[MOD_HALF]) return NULL;
    if ((type == TYPE_F32 || type == TYPE_F64) && m[MOD_ROUND] <= ROUND_RN)
        return nearest_of(i->opcode, type, m[MOD_FTZ], m[MOD_SAT]);
    return run_general;
}

/* Opcodes of f32 and f64 alone; .approx and .full are for f32. */
static ptx_run *wide_only(const ptx_instruction *i, unsigned sources, int full)
{
    const uint8_t *m = i->modifier;
    if (i->type[0] != TYPE_F32 && i->type[0] != TYPE_F64) return NULL;
    if (m[MOD_APPROX] && (m[MOD_ROUND] || i->type[0] != TYPE_F32)) return NULL;
    if (m[MOD_APPROX] == APPROX_FULL && !full) return NULL;
    return arithmetic(i, sources, 1);
}

ptx_run *VARIANT(bind_float_add)(const ptx_instruction *i)
{
    return arithmetic(i, 2, 0);
}

ptx_run *VARIANT(bind_float_sub)(const ptx_instruction *i)
{
    return arithmetic(i, 2, 0);
}

ptx_run *VARIANT(bind_float_mul)(const ptx_instruction *i)
{
    return arithmetic(i, 2, 0);
}

/* mad of floats has been fma since sm_20. */
ptx_run *VARIANT(bind_float_mad)(const ptx_instruction *i)
{
    return wide_only(i, 3, 0);
}

ptx_run *BIND(fma)(const ptx_instruction *i)
{
    return arithmetic(i, 3, 1);
}

ptx_run *VARIANT(bind_float_div)(const ptx_instruction *i)
{
    return wide_only(i, 2, 1);
}

/* rcp.approx.ftz.f64: only the upper halves of operand and result count. */
static int run_rcp_coarse(struct warp *w, const ptx_instruction *i, uint32_t mask)
{
    uint64_t *d = slot64(w, i->operands[0].slot);
    const uint64_t *a = slot64(w, i->operands[1].slot);
    FOR_LANES(mask, lane, {
        double value = format_double(format_flush(format_of(TYPE_F64), a[lane] & ~0xffffffffull));
        d[lane] = format_flush(format_of(TYPE_F64), format_canonical64(1.0 / value)) & ~0xffffffffull;
    });
    return 0;
}

ptx_run *BIND(rcp)(const ptx_instruction *i)
{
    const uint8_t *m = i->modifier;
    if (i->types == 1 && i->type[0] == TYPE_F64 && m[MOD_APPROX] == APPROX_GIVEN && m[MOD_FTZ] && !m[MOD_ROUND])
        return float_operands(i, 1, 64) ? run_rcp_coarse : NULL;
    return wide_only(i, 1, 0);
}

ptx_run *BIND(sqrt)(const ptx_instruction *i)
{
    return wide_only(i, 1, 0);
}

/* ---- min and max: -0 is less than +0, a NaN loses unless .NaN asks for it */

/* Patterns of a format in the numbers' order, as integers. */
INLINE int64_t order64(uint64_t bits)
{
    return (int64_t)(bits ^ (0 - (bits >> 63)) >> 1);
}

INLINE int32_t order32(uint32_t bits)
{
    return (int32_t)(bits ^ (0 - (bits >> 31)) >> 1);
}

INLINE uint32_t extreme32(int is_max, uint32_t a, uint32_t b)
{
    int a_nan = (a & 0x7fffffff) > 0x7f800000, b_nan = (b & 0x7fffffff) > 0x7f800000;
    uint32_t d = (order32(a) < order32(b)) != is_max ? a : b;
    d = a_nan ? b : b_nan ? a : d;
    return a_nan & b_nan ? FORMAT_NAN32 : d;
}

static int f32_min(struct warp *w, const ptx_instruction *i, uint32_t mask)
{
    uint32_t *d = slot32(w, i->operands[0].slot);
    const uint32_t *a = slot32(w, source_slot(i, 1)), *b = slot32(w, source_slot(i, 2));
    LANES(mask, lane, d[lane] = extreme32(0, a[lane], b[lane]));
    return 0;
}

static int f32_max(struct warp *w, const ptx_instruction *i, uint32_t mask)
{
    uint32_t *d = slot32(w, i->operands[0].slot);
    const uint32_t *a = slot32(w, source_slot(i, 1)), *b = slot32(w, source_slot(i, 2));
    LANES(mask, lane, d[lane] = extreme32(1, a[lane], b[lane]));
    return 0;
}

/* Any format: its patterns are moved to the top of 64 bits, where all compare alike. */
static uint64_t extreme_element(const ptx_instruction *i, const format *f, uint64_t a, uint64_t b)
{
    unsigned up = 64u - f->bits;
    uint64_t infinity = (f->largest + 1) << up;
    if (i->modifier[MOD_FTZ]) a = format_flush(f, a << up >> up), b = format_flush(f, b << up >> up);
    a <<= up;
    b <<= up;
    int a_nan = a << 1 > infinity << 1, b_nan = b << 1 > infinity << 1;
    if ((a_nan && b_nan) || ((a_nan || b_nan) && i->modifier[MOD_NAN])) return format_nan(f);
    if (a_nan || b_nan) return (a_nan ? b : a) >> up;
    int a_less = order64(a) < order64(b), is_max = i->opcode == OPCODE_max;
    return (a_less != is_max ? a : b) >> up;
}

static int run_extreme(struct warp *w, const ptx_instruction *i, uint32_t mask)
{
    const format *f = format_of(i->type[0]);
    unsigned bits = ptx_type_bits(i->type[0]);
    FOR_LANES(mask, lane, {
        uint64_t a = operand_get(w, operand_at(i, 1, 0), lane), b = operand_get(w, operand_at(i, 2, 0), lane), d = 0;
        for (unsigned shift = 0; shift < bits; shift += f->bits)
            d |= extreme_element(i, f, a >> shift, b >> shift) << shift;
        operand_set(w, &i->operands[0], lane, d);
    });
    return 0;
}

static ptx_run *extreme(const ptx_instruction *i, ptx_run *plain32)
{
    ptx_type type = i->type[0];
    const uint8_t *m = i->modifier;
    if (i->types != 1 || !format_of(type) || !float_operands(i, 2, ptx_type_bits(type))) return NULL;
    if (m[MOD_XORSIGN] || m[MOD_RELU] || (m[MOD_NAN] && type == TYPE_F64)) return NULL;
    if (m[MOD_FTZ] && type != TYPE_F32 && !IS_HALF(type)) return NULL;
    return type == TYPE_F32 && !m[MOD_NAN] && !m[MOD_FTZ] ? plain32 : run_extreme;
}

ptx_run *VARIANT(bind_float_min)(const ptx_instruction *i)
{
    return extreme(i, f32_min);
}

ptx_run *VARIANT(bind_float_max)(const ptx_instruction *i)
{
    return extreme(i, f32_max);
}

/* ---- signs; of NaNs too */

static uint64_t signs_of(const ptx_instruction *i)
{
    switch (ptx_type_bits(i->type[0])) {
    case 16: return 0x8000;
    case 32: return i->type[0] == TYPE_F32 ? 0x80000000u : 0x80008000u;
    default: return 1ull << 63;
    }
}

static int run_sign32(struct warp *w, const ptx_instruction *i, uint32_t mask)
{
    uint32_t *d = slot32(w, i->operands[0].slot), signs = (uint32_t)signs_of(i);
    const uint32_t *a = slot32(w, i->operands[1].slot);
    if (i->opcode == OPCODE_neg) LANES(mask, lane, d[lane] = a[lane] ^ signs);
    else LANES(mask, lane, d[lane] = a[lane] & ~signs);
    return 0;
}

static int run_sign64(struct warp *w, const ptx_instruction *i, uint32_t mask)
{
    uint64_t *d = slot64(w, i->operands[0].slot), sign = signs_of(i);
    const uint64_t *a = slot64(w, i->operands[1].slot);
    if (i->opcode == OPCODE_neg) LANES(mask, lane, d[lane] = a[lane] ^ sign);
    else LANES(mask, lane, d[lane] = a[lane] & ~sign);
    return 0;
}

static int run_sign_ftz(struct warp *w, const ptx_instruction *i, uint32_t mask)
{
    const format *f = format_of(i->type[0]);
    unsigned bits = ptx_type_bits(i->type[0]);
    uint32_t signs = (uint32_t)signs_of(i);
    FOR_LANES(mask, lane, {
        uint64_t a = operand_get(w, operand_at(i, 1, 0), lane), d = 0;
        for (unsigned shift = 0; shift < bits; shift += f->bits)
            d |= format_flush(f, a >> shift & ~0ull >> (64 - f->bits)) << shift;
        operand_set(w, &i->operands[0], lane, i->opcode == OPCODE_neg ? d ^ signs : d & ~(uint64_t)signs);
    });
    return 0;
}

static ptx_run *sign(const ptx_instruction *i)
{
    ptx_type type = i->type[0];
    if (i->types != 1 || !format_of(type) || !float_operands(i, 1, ptx_type_bits(type))) return NULL;
    if (i->modifier[MOD_FTZ]) return type == TYPE_F32 || IS_HALF(type) ? run_sign_ftz : NULL;
    return type == TYPE_F64 ? run_sign64 : run_sign32;
}

ptx_run *VARIANT(bind_float_abs)(const ptx_instruction *i)
{
    return sign(i);
}

ptx_run *VARIANT(bind_float_neg)(const ptx_instruction *i)
{
    return sign(i);
}

/* The first source's sign on the second one. */
static int run_copysign(struct warp *w, const ptx_instruction *i, uint32_t mask)
{
    uint64_t signs = signs_of(i);
    FOR_LANES(mask, lane, {
        uint64_t a = operand_get(w, operand_at(i, 1, 0), lane), b = operand_get(w, operand_at(i, 2, 0), lane);
        operand_set(w, &i->operands[0], lane, (a & signs) | (b & ~signs));
    });
    return 0;
}

ptx_run *BIND(copysign)(const ptx_instruction *i)
{
    if (i->types != 1 || (i->type[0] != TYPE_F32 && i->type[0] != TYPE_F64)) return NULL;
    return float_operands(i, 2, ptx_type_bits(i->type[0])) ? run_copysign : NULL;
}

/* ---- testp: zeros count as normal */

static int run_testp(struct warp *w, const ptx_instruction *i, uint32_t mask)
{
    const format *f = format_of(i->type[0]);
    uint32_t result = 0;
    FOR_LANES(mask, lane, {
        uint64_t bits = operand_get(w, operand_at(i, 1, 0), lane), magnitude = bits << (65 - f->bits) >> (65 - f->bits);
        int nan = magnitude > f->largest + 1, infinite = magnitude == f->largest + 1;
        int denormal = magnitude && !(magnitude >> f->fraction_bits);
        int is = 0;
        switch (i->modifier[MOD_TEST]) {
        case TEST_FINITE: is = !nan && !infinite; break;
        case TEST_INFINITE: is = infinite; break;
        case TEST_NUMBER: is = !nan; break;
        case TEST_NOTANUMBER: is = nan; break;
        case TEST_NORMAL: is = !nan && !infinite && !denormal; break;
        default: is = denormal; break;
        }
        result |= (uint32_t)is << lane;
    });
    uint32_t *d = slot32(w, i->operands[0].slot);
    d[0] = (d[0] & ~mask) | result;
    return 0;
}

ptx_run *BIND(testp)(const ptx_instruction *i)
{
    if (i->types != 1 || (i->type[0] != TYPE_F32 && i->type[0] != TYPE_F64) || !i->modifier[MOD_TEST]) return NULL;
    if (i->groups != 2 || !float_operand(i, 0, 1) || !float_operand(i, 1, ptx_type_bits(i->type[0]))) return NULL;
    return run_testp;
}
