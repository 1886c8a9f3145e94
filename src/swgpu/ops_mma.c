/* mma.sync: a warp's product of two small matrices, D = A B + C, .row.col.
 *
 * The whole warp's fragments are unpacked into plain matrices (mma_layout.h), multiplied, and packed again. How sums of
 * f16, bf16, tf32 and fp8 products round is in mma_model.h and dot() alone. The lanes of `mask` get results; A, B and C
 * are read from all lanes. Registers are viewed as arrays of their elements, which takes a little-endian machine, as PTX
 * itself does. */
#include "float_lanes.h"
#include "mma_layout.h"
#include "mma_model.h"

#define INLINE static inline __attribute__((always_inline))

/* The arithmetic of one row of D: d[n] = c[n] + sum of a[k] * b[k][n], eight columns at a time so that it vectorises.
 * Products are exact in double, and are added to c in the order of k in double: finer than a GPU. The caller rounds d once, to
 * the accumulator's type. Used for what mma_model.h does not know, and for infinities and NaN. */
INLINE void dot(double *restrict d, const float *restrict c, const float *restrict a, const float (*restrict b)[MMA_N],
                unsigned k)
{
    double sum[MMA_N];
    for (unsigned n = 0; n < MMA_N; n++) sum[n] = (double)c[n];
    for (unsigned p = 0; p < k; p++) {
        double factor = (double)a[p];
        for (unsigned n = 0; n < MMA_N; n++) sum[n] += factor * (double)b[p][n];
    }
    for (unsigned n = 0; n < MMA_N; n++) d[n] = sum[n];
}

/* ---- unpacking */

/* The float of each element of a register, in the tile's order. tf32: the hardware does not look at the low bits. */
INLINE void unpack_floats(ptx_type type, const uint32_t *restrict slot, float *restrict tile)
{
    if (type == TYPE_TF32) {
        for (unsigned e = 0; e < PTX_LANES; e++) tile[e] = format_float(slot[e] & 0xffffe000u);
    } else if (type == TYPE_F16 || type == TYPE_BF16) {
        uint16_t halves[2 * PTX_LANES];
        memcpy(halves, slot, sizeof halves);
        for (unsigned e = 0; e < 2 * PTX_LANES; e++)
            tile[e] = format_float(type == TYPE_F16 ? format_f16_to_f32(halves[e]) : format_bf16_to_f32(halves[e]));
    } else {
        uint8_t bytes[4 * PTX_LANES];
        memcpy(bytes, slot, sizeof bytes);
        for (unsigned e = 0; e < 4 * PTX_LANES; e++)
            tile[e] = format_float(type == TYPE_E4M3 ? format_e4m3_to_f32(bytes[e]) : format_e5m2_to_f32(bytes[e]));
    }
}

INLINE void unpack_ints(ptx_type type, const uint32_t *restrict slot, int32_t *restrict tile)
{
    uint8_t bytes[4 * PTX_LANES];
    memcpy(bytes, slot, sizeof bytes);
    if (type == TYPE_S8 || type == TYPE_U8) {
        for (unsigned e = 0; e < 4 * PTX_LANES; e++) tile[e] = type == TYPE_S8 ? (int8_t)bytes[e] : bytes[e];
        return;
    }
    int32_t sign = type == TYPE_S4 ? 8 : 0;
    for (unsigned e = 0; e < 4 * PTX_LANES; e++) {
        tile[2 * e] = ((bytes[e] & 15) ^ sign) - sign;
        tile[2 * e + 1] = (bytes[e] >> 4 ^ sign) - sign;
    }
}

/* Puts tile r into A or, transposed, into B. */
#define DEFINE_PLACE(element)                                                                                          \
    INLINE void place_a_##element(const mma_shape *s, unsigned r, const element *tile, element (*a)[MMA_MAX_K])       \
    {                                                                                                                  \
        unsigned row = mma_a_row(s, r), column = mma_a_column(s, r), width = 4 * mma_per_register(s);                  \
        for (unsigned g = 0; g < 8; g++) memcpy(&a[row + g][column], tile + g * width, width * sizeof(element));      \
    }                                                                                                                  \
    INLINE void place_b_##element(const mma_shape *s, unsigned r, const element *tile, element (*b)[MMA_N])           \
    {                                                                                                                  \
        unsigned width = 4 * mma_per_register(s);                                                                      \
        for (unsigned g = 0; g < 8; g++)                                                                               \
            for (unsigned p = 0; p < width; p++) b[r * width + p][g] = tile[g * width + p];                           \
    }
DEFINE_PLACE(float)
DEFINE_PLACE(int32_t)
DEFINE_PLACE(double)
#undef DEFINE_PLACE

/* C from registers of 32 bits: element e of the matrix is lane e / 2 % 32 of register e / 64 * 2 + e % 2. */
INLINE void load_c(struct warp *w, const ptx_instruction *i, unsigned m, uint32_t *c)
{
    for (unsigned r = 0; r < m / 4; r++) {
        const uint32_t *slot = slot32(w, operand_at(i, 3, r)->slot);
        for (unsigned lane = 0; lane < PTX_LANES; lane++) c[r / 2 * 64 + 2 * lane + r % 2] = slot[lane];
    }
}

INLINE void store_d(struct warp *w, const ptx_instruction *i, uint32_t mask, unsigned m, const uint32_t *d)
{
    for (unsigned r = 0; r < m / 4; r++) {
        uint32_t *slot = slot32(w, operand_at(i, 0, r)->slot);
        FOR_LANES(mask, lane, slot[lane] = d[r / 2 * 64 + 2 * lane + r % 2]);
    }
}

/* ---- floats with f32 or f16 accumulators */

/* Rounds once: on the way through float a result that is not exact keeps an odd last bit, which no tie of f16 has. */
static uint32_t f16_of_double(double value)
{
    float near = (float)value;
    uint32_t bits = format_bits(near);
    if ((double)near != value) {
        if (__builtin_fabs((double)near) > __builtin_fabs(value)) bits--;
        bits |= 1;
    }
    return format_f32_to_f16(bits);
}

INLINE void load_c16(struct warp *w, const ptx_instruction *i, unsigned m, float *c)
{
    for (unsigned r = 0; r < m / 8; r++) unpack_floats(TYPE_F16, slot32(w, operand_at(i, 3, r)->slot), c + 64 * r);
}

INLINE void store_d16(struct warp *w, const ptx_instruction *i, uint32_t mask, unsigned m, const double *d)
{
    for (unsigned r = 0; r < m / 8; r++) {
        uint32_t *slot = slot32(w, operand_at(i, 0, r)->slot);
        const double *tile = d + 64 * r;
        FOR_LANES(mask, lane, slot[lane] = f16_of_double(tile[2 * lane]) | f16_of_double(tile[2 * lane + 1]) << 16);
    }
}

static float round_to_f16(double value)
{
    return format_float(format_f16_to_f32((uint16_t)f16_of_double(value)));
}

/* As two products of f16: the lower two of each four neighbours along k, then the upper two; C is added last. */
INLINE void multiply_fp8(mma_model model, const mma_shape *s, const float (*a)[MMA_MAX_K], const float (*b)[MMA_N], float *c)
{
    float pairs_a[MMA_MAX_M][MMA_MAX_K] = {{0}}, pairs_b[MMA_MAX_K][MMA_N], sum[MMA_MAX_M * MMA_N] = {0};
    for (unsigned p = 0; p < s->k; p++) {
        const unsigned to = p % 4 / 2 * (s->k / 2) + p / 4 * 2 + p % 2;
        for (unsigned row = 0; row < s->m; row++) pairs_a[row][to] = a[row][p];
        memcpy(pairs_b[to], b[p], sizeof b[p]);
    }
    model.group = s->k / 2;
    mma_multiply(model, sum, sum, (const float(*)[MMA_MAX_K])pairs_a, (const float(*)[MMA_N])pairs_b, s->m, s->k, MMA_F16, NULL);
    for (unsigned e = 0; e < s->m * (unsigned)MMA_N; e++) c[e] += sum[e];
}

/* Adds A B to C as the hardware does, if mma_model.h knows how. */
INLINE int multiply_as_hardware(const launch *l, const mma_shape *s, ptx_type a_type, ptx_type c_type,
                                const float (*a)[MMA_MAX_K], const float (*b)[MMA_N], float *c)
{
    const int is_fp8 = a_type == TYPE_E4M3 || a_type == TYPE_E5M2, halves = c_type == TYPE_F16;
    const mma_model model = mma_model_of(l->capability, a_type == TYPE_TF32, is_fp8 || halves);
    const mma_format kind = a_type == TYPE_BF16 ? MMA_BF16 : a_type == TYPE_TF32 ? MMA_TF32 : MMA_F16;
    if (!model.group || (is_fp8 && halves)) return 0;
    if (is_fp8) multiply_fp8(model, s, a, b, c);
    else mma_multiply(model, c, c, a, b, s->m, s->k, kind, halves ? round_to_f16 : NULL);
    return 1;
}

INLINE int all_finite(const mma_shape *s, const float (*a)[MMA_MAX_K], const float (*b)[MMA_N], const float *c)
{
    const uint32_t infinite = 0x7f800000;
    uint32_t bad = 0;
    for (unsigned row = 0; row < s->m; row++)
        for (unsigned p = 0; p < s->k; p++) bad |= (format_bits(a[row][p]) & infinite) == infinite;
    for (unsigned p = 0; p < s->k; p++)
        for (unsigned n = 0; n < MMA_N; n++) bad |= (format_bits(b[p][n]) & infinite) == infinite;
    for (unsigned e = 0; e < s->m * (unsigned)MMA_N; e++) bad |= (format_bits(c[e]) & infinite) == infinite;
    return !bad;
}

INLINE int float_mma(struct warp *w, const ptx_instruction *i, uint32_t mask, ptx_type a_type, ptx_type b_type, ptx_type c_type)
{
    const mma_shape *s = mma_find(i->modifier[MOD_SHAPE], a_type, b_type, c_type);
    float a[MMA_MAX_M][MMA_MAX_K], b[MMA_MAX_K][MMA_N], c[MMA_MAX_M * MMA_N], tile[4 * PTX_LANES];
    double d[MMA_MAX_M * MMA_N];
    uint32_t bits[MMA_MAX_M * MMA_N];
    for (unsigned r = 0; r < mma_a_registers(s); r++) {
        unpack_floats(a_type, slot32(w, operand_at(i, 1, r)->slot), tile);
        place_a_float(s, r, tile, a);
    }
    for (unsigned r = 0; r < mma_b_registers(s); r++) {
        unpack_floats(b_type, slot32(w, operand_at(i, 2, r)->slot), tile);
        place_b_float(s, r, tile, b);
    }
    if (c_type == TYPE_F16) {
        load_c16(w, i, s->m, c);
    } else {
        load_c(w, i, s->m, bits);
        memcpy(c, bits, s->m * MMA_N * sizeof *c);
    }
    if (all_finite(s, (const float(*)[MMA_MAX_K])a, (const float(*)[MMA_N])b, c) &&
        multiply_as_hardware(w->block->launch, s, a_type, c_type, (const float(*)[MMA_MAX_K])a, (const float(*)[MMA_N])b, c)) {
        for (unsigned e = 0; e < s->m * (unsigned)MMA_N; e++) d[e] = (double)c[e];
    } else {
        for (unsigned row = 0; row < s->m; row++)
            dot(d + row * MMA_N, c + row * MMA_N, a[row], (const float(*)[MMA_N])b, s->k);
    }
    if (c_type == TYPE_F16) {
        store_d16(w, i, mask, s->m, d);
        return 0;
    }
    for (unsigned e = 0; e < s->m * (unsigned)MMA_N; e++) bits[e] = format_canonical32((float)d[e]);
    store_d(w, i, mask, s->m, bits);
    return 0;
}

#define FLOAT_MMA(X)                                                                                                   \
    X(F16, F16, F32) X(F16, F16, F16) X(BF16, BF16, F32) X(TF32, TF32, F32) X(E4M3, E4M3, F32) X(E4M3, E5M2, F32)      \
    X(E5M2, E4M3, F32) X(E5M2, E5M2, F32) X(E4M3, E4M3, F16) X(E4M3, E5M2, F16) X(E5M2, E4M3, F16) X(E5M2, E5M2, F16)
#define RUN(a, b, c)                                                                                                   \
    static int run_##a##_##b##_##c(struct warp *w, const ptx_instruction *i, uint32_t mask)                            \
    {                                                                                                                  \
        return float_mma(w, i, mask, TYPE_##a, TYPE_##b, TYPE_##c);                                                    \
    }
FLOAT_MMA(RUN)
#undef RUN

/* ---- integers: exact, then modulo 2^32, or clamped with .satfinite */

static int run_int(struct warp *w, const ptx_instruction *i, uint32_t mask)
{
    const mma_shape *s = mma_find(i->modifier[MOD_SHAPE], i->type[1], i->type[2], TYPE_S32);
    int32_t a[MMA_MAX_M][MMA_MAX_K], b[MMA_MAX_K][MMA_N], tile[8 * PTX_LANES];
    uint32_t c[MMA_MAX_M * MMA_N];
    for (unsigned r = 0; r < mma_a_registers(s); r++) {
        unpack_ints(i->type[1], slot32(w, operand_at(i, 1, r)->slot), tile);
        place_a_int32_t(s, r, tile, a);
    }
    for (unsigned r = 0; r < mma_b_registers(s); r++) {
        unpack_ints(i->type[2], slot32(w, operand_at(i, 2, r)->slot), tile);
        place_b_int32_t(s, r, tile, b);
    }
    load_c(w, i, s->m, c);
    for (unsigned row = 0; row < s->m; row++) {
        int32_t sum[MMA_N] = {0}; /* 64 products of at most 2^16 */
        for (unsigned p = 0; p < s->k; p++)
            for (unsigned n = 0; n < MMA_N; n++) sum[n] += a[row][p] * b[p][n];
        for (unsigned n = 0; n < MMA_N; n++) {
            int64_t d = (int64_t)(int32_t)c[row * MMA_N + n] + sum[n];
            if (i->modifier[MOD_SAT]) d = d > INT32_MAX ? INT32_MAX : d < INT32_MIN ? INT32_MIN : d;
            c[row * MMA_N + n] = (uint32_t)d;
        }
    }
    store_d(w, i, mask, s->m, c);
    return 0;
}

/* ---- f64: one fma after another, in the order of k */

static int run_f64(struct warp *w, const ptx_instruction *i, uint32_t mask)
{
    const mma_shape *s = mma_find(i->modifier[MOD_SHAPE], TYPE_F64, TYPE_F64, TYPE_F64);
    double a[MMA_MAX_M][MMA_MAX_K], b[MMA_MAX_K][MMA_N], d[MMA_MAX_M * MMA_N], tile[PTX_LANES];
    for (unsigned r = 0; r < mma_a_registers(s); r++) {
        memcpy(tile, slot64(w, operand_at(i, 1, r)->slot), sizeof tile);
        place_a_double(s, r, tile, a);
    }
    for (unsigned r = 0; r < mma_b_registers(s); r++) {
        memcpy(tile, slot64(w, operand_at(i, 2, r)->slot), sizeof tile);
        place_b_double(s, r, tile, b);
    }
    for (unsigned r = 0; r < s->m / 4u; r++) {
        const uint64_t *slot = slot64(w, operand_at(i, 3, r)->slot);
        for (unsigned lane = 0; lane < PTX_LANES; lane++) d[r / 2 * 64 + 2 * lane + r % 2] = format_double(slot[lane]);
    }
    for (unsigned row = 0; row < s->m; row++)
        for (unsigned p = 0; p < s->k; p++)
            for (unsigned n = 0; n < MMA_N; n++) d[row * MMA_N + n] = __builtin_fma(a[row][p], b[p][n], d[row * MMA_N + n]);
    for (unsigned r = 0; r < s->m / 4u; r++) {
        uint64_t *slot = slot64(w, operand_at(i, 0, r)->slot);
        FOR_LANES(mask, lane, slot[lane] = format_canonical64(d[r / 2 * 64 + 2 * lane + r % 2]));
    }
    return 0;
}

/* ---- */

static int group_is(const ptx_instruction *i, unsigned group, unsigned count, unsigned bits)
{
    if (i->count[group] != count) return 0;
    for (unsigned e = 0; e < count; e++) {
        const ptx_operand *o = operand_at(i, group, e);
        if (group ? !operand_fits(o, bits) : !destination_fits(o, bits)) return 0;
    }
    return 1;
}

ptx_run *BIND(mma)(const ptx_instruction *i)
{
    const uint8_t *m = i->modifier;
    if (i->types != 4 || i->groups != 4 || i->type[0] != i->type[3] || !m[MOD_SYNC] || !m[MOD_ALIGNED]) return NULL;
    if (m[MOD_LAYOUT] != LAYOUT_ROW || m[MOD_LAYOUT2] != LAYOUT_COL) return NULL;
    ptx_type a = i->type[1], b = i->type[2], c = i->type[3];
    const mma_shape *s = mma_find(m[MOD_SHAPE], a, b, c);
    if (!s || (m[MOD_SAT] && (m[MOD_SAT] != SAT_FINITE || c != TYPE_S32))) return NULL;
    unsigned bits = s->bits == 64 ? 64 : 32, c_registers = mma_c_registers(s, c);
    if (!group_is(i, 0, c_registers, bits) || !group_is(i, 1, mma_a_registers(s), bits)) return NULL;
    if (!group_is(i, 2, mma_b_registers(s), bits) || !group_is(i, 3, c_registers, bits)) return NULL;
    if (c == TYPE_S32) return run_int;
    if (c == TYPE_F64) return run_f64;
#define CHOOSE(x, y, z)                                                                                                \
    if (a == TYPE_##x && b == TYPE_##y && c == TYPE_##z) return run_##x##_##y##_##z;
    FLOAT_MMA(CHOOSE)
#undef CHOOSE
    return NULL;
}
