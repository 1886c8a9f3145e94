/* src/swgpu/ops_integer.c and ops_bits.c: every opcode and type against oracles that work bit by bit or in 128 bits, for
 * edge values with each other and random ones, with whole and partial masks, with the destination in a source's slot,
 * and with an immediate as the last source. Runs once for each opcode table that this processor can execute. */
#include "swgpu_fixture.h"

typedef unsigned __int128 u128;
typedef __int128 i128;

/* One instruction: `bits` and `is_signed` are of its first type; second_signed of its second. */
typedef struct form {
    unsigned bits;
    int is_signed, second_signed;
    uint64_t constant; /* whatever the oracle wants */
} form;

typedef uint64_t oracle(const form *f, const uint64_t *x);

/* ---- oracles */

static int bit(uint64_t x, unsigned n) { return (int)(x >> n & 1); }

static i128 number(uint64_t x, unsigned bits, int is_signed)
{
    i128 value = 0, weight = 1;
    for (unsigned n = 0; n < bits; n++, weight += weight)
        value += bit(x, n) ? (is_signed && n == bits - 1 ? -weight : weight) : 0;
    return value;
}
#define NUMBER(n) number(x[n], f->bits, f->is_signed)

/* By adding shifted copies; modulo 2^128. */
static u128 product(i128 a, i128 b)
{
    u128 sum = 0;
    for (unsigned n = 0; n < 128; n++)
        if ((u128)b >> n & 1) sum += (u128)a << n;
    return sum;
}

static uint64_t clamp32(i128 value)
{
    const i128 top = 0x7fffffff;
    return (uint64_t)(value > top ? top : value < -top - 1 ? -top - 1 : value);
}

static uint64_t is_add(const form *f, const uint64_t *x) { return (uint64_t)(NUMBER(0) + NUMBER(1)); }
static uint64_t is_sub(const form *f, const uint64_t *x) { return (uint64_t)(NUMBER(0) - NUMBER(1)); }
static uint64_t is_add_sat(const form *f, const uint64_t *x) { return clamp32(NUMBER(0) + NUMBER(1)); }
static uint64_t is_sub_sat(const form *f, const uint64_t *x) { return clamp32(NUMBER(0) - NUMBER(1)); }
static uint64_t is_add_x2(const form *f, const uint64_t *x)
{
    (void)f;
    uint64_t low = number(x[0], 16, 0) + number(x[1], 16, 0), high = number(x[0] >> 16, 16, 0) + number(x[1] >> 16, 16, 0);
    return low % 65536 + high % 65536 * 65536;
}
static uint64_t is_mul_lo(const form *f, const uint64_t *x) { return (uint64_t)product(NUMBER(0), NUMBER(1)); }
static uint64_t is_mul_hi(const form *f, const uint64_t *x) { return (uint64_t)(product(NUMBER(0), NUMBER(1)) >> f->bits); }
static uint64_t is_mad_lo(const form *f, const uint64_t *x) { return is_mul_lo(f, x) + x[2]; }
static uint64_t is_mad_hi(const form *f, const uint64_t *x) { return is_mul_hi(f, x) + x[2]; }
static uint64_t is_mad_hi_sat(const form *f, const uint64_t *x)
{
    return clamp32(number(is_mul_hi(f, x), 32, 1) + NUMBER(2));
}
static uint64_t is_mul24(const form *f, const uint64_t *x)
{
    return (uint64_t)(product(number(x[0], 24, f->is_signed), number(x[1], 24, f->is_signed)) >> f->constant);
}
static uint64_t is_mad24(const form *f, const uint64_t *x) { return is_mul24(f, x) + x[2]; }

/* Magnitudes, then signs. */
static uint64_t is_div(const form *f, const uint64_t *x)
{
    i128 a = NUMBER(0), b = NUMBER(1);
    if (!b) return ~0ull;
    u128 quotient = (u128)(a < 0 ? -a : a) / (u128)(b < 0 ? -b : b);
    return (uint64_t)((a < 0) != (b < 0) ? 0 - quotient : quotient);
}
static uint64_t is_rem(const form *f, const uint64_t *x)
{
    i128 a = NUMBER(0), b = NUMBER(1);
    if (!b) return ~0ull;
    u128 rest = (u128)(a < 0 ? -a : a) % (u128)(b < 0 ? -b : b);
    return (uint64_t)(a < 0 ? 0 - rest : rest);
}
static uint64_t is_abs(const form *f, const uint64_t *x) { return (uint64_t)(NUMBER(0) < 0 ? -NUMBER(0) : NUMBER(0)); }
static uint64_t is_neg(const form *f, const uint64_t *x) { return (uint64_t)-NUMBER(0); }
static uint64_t is_min(const form *f, const uint64_t *x) { return x[NUMBER(1) < NUMBER(0)]; }
static uint64_t is_max(const form *f, const uint64_t *x) { return x[NUMBER(1) > NUMBER(0)]; }
static uint64_t is_min_relu(const form *f, const uint64_t *x) { return bit(is_min(f, x), 31) ? 0 : is_min(f, x); }
static uint64_t is_max_relu(const form *f, const uint64_t *x) { return bit(is_max(f, x), 31) ? 0 : is_max(f, x); }
static uint64_t is_sad(const form *f, const uint64_t *x)
{
    i128 difference = NUMBER(0) - NUMBER(1);
    return (uint64_t)(difference < 0 ? -difference : difference) + x[2];
}
static uint64_t is_dp4a(const form *f, const uint64_t *x)
{
    i128 sum = number(x[2], 32, 1);
    for (unsigned k = 0; k < 32; k += 8) sum += number(x[0] >> k, 8, f->is_signed) * number(x[1] >> k, 8, f->second_signed);
    return (uint64_t)sum;
}
static uint64_t is_dp2a(const form *f, const uint64_t *x)
{
    i128 sum = number(x[2], 32, 1);
    for (unsigned k = 0; k < 2; k++)
        sum += number(x[0] >> (16 * k), 16, f->is_signed) * number(x[1] >> (f->constant + 8 * k), 8, f->second_signed);
    return (uint64_t)sum;
}

/* The constant's bit n: the result for source bits that read n. */
static uint64_t is_logic(const form *f, const uint64_t *x)
{
    uint64_t result = 0;
    for (unsigned n = 0; n < f->bits; n++) {
        unsigned index = (unsigned)(4 * bit(x[0], n) + 2 * bit(x[1], n) + bit(x[2], n));
        result |= (uint64_t)bit(f->constant, index) << n;
    }
    return result;
}
static uint64_t is_cnot(const form *f, const uint64_t *x) { return NUMBER(0) ? 0 : 1; }
static uint64_t is_shl(const form *f, const uint64_t *x)
{
    u128 value = x[0];
    for (uint64_t n = 0; n < x[1] && n < f->bits; n++) value += value;
    return (uint64_t)value;
}
static uint64_t is_shr(const form *f, const uint64_t *x)
{
    i128 value = NUMBER(0);
    for (uint64_t n = 0; n < x[1] && n < f->bits; n++) value = (value - (value & 1)) / 2;
    return (uint64_t)value;
}
/* constant: 1 to the left, 2 clamped. */
static uint64_t is_shf(const form *f, const uint64_t *x)
{
    unsigned n = (unsigned)(f->constant & 2 ? (x[2] > 32 ? 32 : x[2]) : x[2] % 32), first = f->constant & 1 ? 32 - n : n;
    uint64_t result = 0;
    for (unsigned k = 0; k < 32; k++) result |= (uint64_t)bit(first + k < 32 ? x[0] : x[1], (first + k) % 32) << k;
    return result;
}
/* constant: the mode, or 0. As in the documentation's table: source bytes for n = 0, 1, 2, 3, highest byte first. */
static uint64_t is_prmt(const form *f, const uint64_t *x)
{
    static const char *const table[][4] = {{0}, {"3210", "4321", "5432", "6543"}, {"5670", "6701", "7012", "0123"},
        {"0000", "1111", "2222", "3333"}, {"3210", "3211", "3222", "3333"}, {"0000", "1110", "2210", "3210"},
        {"1010", "3232", "1010", "3232"}};
    uint64_t result = 0;
    for (unsigned k = 0; k < 4; k++) {
        unsigned nibble = x[2] >> (4 * k) & 15,
                 from = f->constant ? (unsigned)table[f->constant][x[2] & 3][3 - k] - '0' : nibble & 7;
        uint64_t byte = x[from / 4] >> (from % 4 * 8) & 255;
        if (!f->constant && nibble > 7) byte = byte > 127 ? 255 : 0;
        result |= byte << (8 * k);
    }
    return result;
}
static uint64_t is_bfe(const form *f, const uint64_t *x)
{
    unsigned position = x[1] & 255, length = x[2] & 255, top = f->bits - 1;
    int sign = f->is_signed && length ? bit(x[0], position + length - 1 < top ? position + length - 1 : top) : 0;
    uint64_t result = 0;
    for (unsigned n = 0; n <= top; n++)
        result |= (uint64_t)(n < length && position + n <= top ? bit(x[0], position + n) : sign) << n;
    return result;
}
static uint64_t is_bfi(const form *f, const uint64_t *x)
{
    unsigned position = x[2] & 255, length = x[3] & 255;
    uint64_t result = x[1];
    for (unsigned n = 0; n < length && position + n < f->bits; n++) {
        result &= ~(1ull << (position + n));
        result |= (uint64_t)bit(x[0], n) << (position + n);
    }
    return result;
}
/* constant: as a distance from the top. */
static uint64_t is_bfind(const form *f, const uint64_t *x)
{
    int sign = f->is_signed && bit(x[0], f->bits - 1);
    for (unsigned n = f->bits; n-- > 0;)
        if (bit(x[0], n) != sign) return f->constant ? f->bits - 1 - n : n;
    return ~0ull;
}
static uint64_t is_brev(const form *f, const uint64_t *x)
{
    uint64_t result = 0;
    for (unsigned n = 0; n < f->bits; n++) result |= (uint64_t)bit(x[0], n) << (f->bits - 1 - n);
    return result;
}
static uint64_t is_popc(const form *f, const uint64_t *x)
{
    uint64_t count = 0;
    for (unsigned n = 0; n < f->bits; n++) count += (uint64_t)bit(x[0], n);
    return count;
}
static uint64_t is_clz(const form *f, const uint64_t *x)
{
    uint64_t count = 0;
    while (count < f->bits && !bit(x[0], (unsigned)(f->bits - 1 - count))) count++;
    return count;
}

/* ---- the instructions. Operands: t of the type's width, w twice that, r 32 bits; the destination first. */

#define ALL "u16 s16 u32 s32 u64 s64"
static const struct operation {
    const char *words, *types, *operands;
    oracle *expected;
    uint64_t constant;
} operations[] = {
    {"add", ALL, "ttt", is_add, 0}, {"sub", ALL, "ttt", is_sub, 0}, {"add.sat", "s32", "ttt", is_add_sat, 0},
    {"sub.sat", "s32", "ttt", is_sub_sat, 0}, {"add", "u16x2 s16x2", "rrr", is_add_x2, 0},
    {"mul.lo", ALL, "ttt", is_mul_lo, 0}, {"mul.hi", ALL, "ttt", is_mul_hi, 0},
    {"mul.wide", "u16 s16 u32 s32", "wtt", is_mul_lo, 0}, {"mad.lo", ALL, "tttt", is_mad_lo, 0},
    {"mad.hi", ALL, "tttt", is_mad_hi, 0}, {"mad.hi.sat", "s32", "tttt", is_mad_hi_sat, 0},
    {"mad.wide", "u16 s16 u32 s32", "wttw", is_mad_lo, 0}, {"mul24.lo", "u32 s32", "ttt", is_mul24, 0},
    {"mul24.hi", "u32 s32", "ttt", is_mul24, 16}, {"mad24.lo", "u32 s32", "tttt", is_mad24, 0},
    {"mad24.hi", "u32 s32", "tttt", is_mad24, 16}, {"div", ALL, "ttt", is_div, 0}, {"rem", ALL, "ttt", is_rem, 0},
    {"abs", "s16 s32 s64", "tt", is_abs, 0}, {"neg", "s16 s32 s64", "tt", is_neg, 0}, {"min", ALL, "ttt", is_min, 0},
    {"max", ALL, "ttt", is_max, 0}, {"min.relu", "s32", "ttt", is_min_relu, 0}, {"max.relu", "s32", "ttt", is_max_relu, 0},
    {"sad", ALL, "tttt", is_sad, 0}, {"dp4a", "u32.u32 u32.s32 s32.u32 s32.s32", "rrrr", is_dp4a, 0},
    {"dp2a.lo", "u32.u32 u32.s32 s32.u32 s32.s32", "rrrr", is_dp2a, 0},
    {"dp2a.hi", "u32.u32 u32.s32 s32.u32 s32.s32", "rrrr", is_dp2a, 16},
    {"and", "b16 b32 b64", "ttt", is_logic, 0xc0}, {"or", "b16 b32 b64", "ttt", is_logic, 0xfc},
    {"xor", "b16 b32 b64", "ttt", is_logic, 0x3c}, {"not", "b16 b32 b64", "tt", is_logic, 0x0f},
    {"cnot", "b16 b32 b64", "tt", is_cnot, 0}, {"shl", "b16 b32 b64", "ttr", is_shl, 0},
    {"shr", "b16 b32 b64 " ALL, "ttr", is_shr, 0}, {"shf.r.wrap", "b32", "tttt", is_shf, 0},
    {"shf.l.wrap", "b32", "tttt", is_shf, 1}, {"shf.r.clamp", "b32", "tttt", is_shf, 2},
    {"shf.l.clamp", "b32", "tttt", is_shf, 3}, {"prmt", "b32", "tttt", is_prmt, 0}, {"prmt.f4e", "b32", "tttt", is_prmt, 1},
    {"prmt.b4e", "b32", "tttt", is_prmt, 2}, {"prmt.rc8", "b32", "tttt", is_prmt, 3}, {"prmt.ecl", "b32", "tttt", is_prmt, 4},
    {"prmt.ecr", "b32", "tttt", is_prmt, 5}, {"prmt.rc16", "b32", "tttt", is_prmt, 6},
    {"bfe", "u32 s32 u64 s64", "ttrr", is_bfe, 0}, {"bfi", "b32 b64", "tttrr", is_bfi, 0},
    {"bfind", "u32 s32 u64 s64", "rt", is_bfind, 0}, {"bfind.shiftamt", "u32 s32 u64 s64", "rt", is_bfind, 1},
    {"brev", "b32 b64", "tt", is_brev, 0}, {"popc", "b32 b64", "rt", is_popc, 0}, {"clz", "b32 b64", "rt", is_clz, 0},
};

/* ---- running them */

#define MAX_SOURCES 4
static const uint64_t edges[] = {0, 1, 2, 3, 7, 16, 31, 32, 33, 63, 64, 65, 255, 256, ~0ull, ~1ull, 0x5555555555555555,
    0xaaaaaaaaaaaaaaaa, 0x7fff, 0x8000, 0x7fffffff, 0x80000000, 0x7fffffffffffffff, 0x8000000000000000, 0x800000, 0xff7fffff};
#define EDGES (sizeof edges / sizeof *edges)

static uint64_t random_state = 0x9e3779b97f4a7c15;
static uint64_t random64(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    return random_state ^= random_state << 17;
}

/* Uniform, an edge, or small enough to be a shift. */
static uint64_t random_value(void)
{
    uint64_t kind = random64() % 4;
    return kind == 0 ? edges[random64() % EDGES] : kind == 1 ? random64() % 80 : random64();
}

static unsigned width(char operand, unsigned bits) { return operand == 't' ? bits : operand == 'w' ? 2 * bits : 32; }
static uint64_t cut(uint64_t x, unsigned bits) { return bits == 64 ? x : x & ((1ull << bits) - 1); }
static char letter(unsigned bits) { return bits == 64 ? 'd' : bits == 16 ? 'h' : 'r'; }
static uint32_t slot_of(unsigned operand) { return 40 + 2 * operand; }

static void put(uint32_t slot, unsigned bits, unsigned lane, uint64_t x)
{
    if (bits == 64) fixture_set64(slot, lane, x);
    else fixture_set32(slot, lane, (uint32_t)cut(x, bits));
}
static uint64_t get(uint32_t slot, unsigned bits, unsigned lane)
{
    return bits == 64 ? fixture_get64(slot, lane) : fixture_get32(slot, lane);
}

/* Runs what is bound for 32 argument tuples and compares each lane of the destination, whole slots. */
static void check(const char *text, const struct operation *o, const form *f, uint64_t x[PTX_LANES][MAX_SOURCES], uint32_t to,
                  uint32_t mask)
{
    unsigned sources = (unsigned)strlen(o->operands) - 1, bits = width(o->operands[0], f->bits);
    uint64_t before[PTX_LANES];
    for (unsigned lane = 0; lane < PTX_LANES; lane++) {
        put(slot_of(0), bits, lane, random64());
        for (unsigned k = 0; k < sources; k++) {
            x[lane][k] = cut(x[lane][k], width(o->operands[k + 1], f->bits));
            put(slot_of(k + 1), width(o->operands[k + 1], f->bits), lane, x[lane][k]);
        }
        before[lane] = get(to, bits, lane);
    }
    assert_int_equal(fixture_again(mask), 0);
    for (unsigned lane = 0; lane < PTX_LANES; lane++) {
        uint64_t expected = mask >> lane & 1 ? cut(o->expected(f, x[lane]), bits) : before[lane], got = get(to, bits, lane);
        if (got != expected)
            fail_msg("%s, mask %08x, lane %u: 0x%llx for 0x%llx 0x%llx 0x%llx 0x%llx instead of 0x%llx", text, mask, lane,
                     (unsigned long long)got, (unsigned long long)x[lane][0], (unsigned long long)x[lane][1],
                     (unsigned long long)x[lane][2], (unsigned long long)x[lane][3], (unsigned long long)expected);
    }
}

/* The instruction with its destination in operand `to`'s slot and, if given, an immediate as its last source. */
static void write_text(char *text, const struct operation *o, const char *type, unsigned bits, unsigned to,
                       const uint64_t *immediate)
{
    unsigned count = (unsigned)strlen(o->operands);
    text += sprintf(text, "%s.%s %c%u", o->words, type, letter(width(o->operands[0], bits)), slot_of(to));
    for (unsigned k = 1; k < count; k++) {
        unsigned wide = width(o->operands[k], bits);
        if (immediate && k == count - 1)
            sprintf(text, ", #%s0x%llx", wide == 64 ? "w" : wide == 32 ? "n" : "", (unsigned long long)*immediate);
        else
            text += sprintf(text, ", %c%u", letter(wide), slot_of(k));
    }
}

static void check_tuples(const char *text, const struct operation *o, const form *f, uint32_t to)
{
    uint64_t x[PTX_LANES][MAX_SOURCES];
    for (unsigned n = 0; n < EDGES * EDGES; n += PTX_LANES) {
        for (unsigned lane = 0; lane < PTX_LANES; lane++) {
            x[lane][0] = edges[(n + lane) / EDGES % EDGES];
            x[lane][1] = edges[(n + lane) % EDGES];
            for (unsigned k = 2; k < MAX_SOURCES; k++) x[lane][k] = edges[random64() % EDGES];
        }
        check(text, o, f, x, to, n / PTX_LANES % 2 ? (uint32_t)random64() | 1 : FULL_MASK);
    }
    for (unsigned n = 0; n < 2048; n += PTX_LANES) {
        for (unsigned k = 0; k < PTX_LANES * MAX_SOURCES; k++) x[k / MAX_SOURCES][k % MAX_SOURCES] = random_value();
        check(text, o, f, x, to, n / PTX_LANES % 4 == 3 ? (uint32_t)random64() | 1 : FULL_MASK);
    }
}

static void check_immediates(const struct operation *o, const char *type, const form *f)
{
    unsigned count = (unsigned)strlen(o->operands);
    uint64_t x[PTX_LANES][MAX_SOURCES];
    char text[128];
    for (unsigned e = 0; e < EDGES; e++) {
        uint64_t value = cut(edges[e], width(o->operands[count - 1], f->bits));
        write_text(text, o, type, f->bits, 0, &value);
        if (!fixture_bind(text)) fail_msg("refused: %s", text);
        for (unsigned lane = 0; lane < PTX_LANES; lane++) {
            for (unsigned k = 0; k < MAX_SOURCES; k++) x[lane][k] = random_value();
            x[lane][count - 2] = value;
        }
        check(text, o, f, x, slot_of(0), e % 4 == 3 ? (uint32_t)random64() | 1 : FULL_MASK);
    }
}

static void every_operation_and_type(void **state)
{
    (void)state;
    for (size_t n = 0; n < sizeof operations / sizeof *operations; n++) {
        const struct operation *o = &operations[n];
        char types[64], text[128], *rest;
        strcpy(types, o->types);
        for (char *type = strtok_r(types, " ", &rest); type; type = strtok_r(NULL, " ", &rest)) {
            form f = {(unsigned)atoi(type + 1), type[0] == 's', strchr(type, '.') && strchr(type, '.')[1] == 's', o->constant};
            if (strstr(type, "x2")) f.bits = 32;
            fixture_reset();
            for (unsigned to = 0; o->operands[to]; to++) {
                if (width(o->operands[to], f.bits) != width(o->operands[0], f.bits)) continue;
                write_text(text, o, type, f.bits, to, NULL);
                if (!fixture_bind(text)) fail_msg("refused: %s", text);
                check_tuples(text, o, &f, slot_of(to));
            }
            check_immediates(o, type, &f);
        }
    }
}

static void lop3_follows_any_table(void **state)
{
    (void)state;
    const struct operation o = {"lop3", "b32", "rrrr", is_logic, 0};
    fixture_reset();
    for (unsigned table = 0; table < 256; table++) {
        char text[64];
        uint64_t x[PTX_LANES][MAX_SOURCES];
        form f = {32, 0, 0, table};
        sprintf(text, "lop3.b32 r40, r42, r44, r46, #%u", table);
        if (!fixture_bind(text)) fail_msg("refused: %s", text);
        for (unsigned lane = 0; lane < PTX_LANES; lane++)
            for (unsigned k = 0; k < MAX_SOURCES; k++) x[lane][k] = random_value();
        check(text, &o, &f, x, slot_of(0), table % 8 == 7 ? (uint32_t)random64() | 1 : FULL_MASK);
    }
}

/* Field and insertion with both amounts immediate, which has functions of its own. */
static void fields_at_fixed_places(void **state)
{
    (void)state;
    static const unsigned amounts[] = {0, 1, 5, 8, 16, 31, 32, 33, 63, 64, 200, 255, 256, 300};
    const struct operation bfi = {"bfi", "b32", "tttrr", is_bfi, 0}, bfe = {"bfe", "s32", "ttrr", is_bfe, 0};
    fixture_reset();
    for (unsigned n = 0; n < 14 * 14; n++) {
        for (unsigned bits = 32; bits <= 64; bits += 32) {
            char text[64];
            uint64_t x[PTX_LANES][MAX_SOURCES];
            form f = {bits, 1, 0, 0};
            for (unsigned lane = 0; lane < PTX_LANES; lane++) {
                x[lane][0] = random64(), x[lane][1] = random64(), x[lane][2] = amounts[n / 14], x[lane][3] = amounts[n % 14];
            }
            sprintf(text, "bfi.b%u %c40, %c42, %c44, #n%u, #n%u", bits, letter(bits), letter(bits), letter(bits),
                    amounts[n / 14], amounts[n % 14]);
            assert_non_null(fixture_bind(text));
            check(text, &bfi, &f, x, slot_of(0), n % 2 ? (uint32_t)random64() | 1 : FULL_MASK);

            sprintf(text, "bfe.s%u %c40, %c42, #n%u, #n%u", bits, letter(bits), letter(bits), amounts[n / 14], amounts[n % 14]);
            assert_non_null(fixture_bind(text));
            for (unsigned lane = 0; lane < PTX_LANES; lane++) x[lane][1] = amounts[n / 14], x[lane][2] = amounts[n % 14];
            check(text, &bfe, &f, x, slot_of(0), FULL_MASK);
        }
    }
}

static void predicate_logic(void **state)
{
    (void)state;
    static const struct { const char *text; unsigned table; } cases[] = {
        {"and.pred p40, p41, p42", 0x8}, {"or.pred p40, p41, p42", 0xe}, {"xor.pred p40, p41, p42", 0x6},
        {"not.pred p40, p41", 0x3}, {"and.pred p40, p41, !p42", 0x4}, {"and.pred p40, !p41, p42", 0x2},
        {"xor.pred p40, p41, #p1", 0x3}, {"xor.pred p40, p41, #p0", 0xc}};
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
        fixture_reset();
        assert_non_null(fixture_bind(cases[n].text));
        for (unsigned round = 0; round < 50; round++) {
            uint32_t before = (uint32_t)random64(), a = (uint32_t)random64(), b = (uint32_t)random64();
            uint32_t mask = round % 2 ? (uint32_t)random64() | 1 : FULL_MASK;
            fixture_set_predicate(40, before), fixture_set_predicate(41, a), fixture_set_predicate(42, b);
            assert_int_equal(fixture_again(mask), 0);
            for (unsigned lane = 0; lane < PTX_LANES; lane++) {
                int expected =
                    mask >> lane & 1 ? bit(cases[n].table, (unsigned)(2 * bit(a, lane) + bit(b, lane))) : bit(before, lane);
                assert_int_equal(bit(fixture_get_predicate(40), lane), expected);
            }
        }
    }
}

/* What PTX does not have, or not with these operands. */
static void impossible_forms_are_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "add.ftz.s32 r40, r42, r44", "add.rn.s32 r40, r42, r44", "add.sat.u32 r40, r42, r44",
        "add.satfinite.s32 r40, r42, r44", "sub.sat.s64 d40, d42, d44", "sub.ftz.s32 r40, r42, r44",
        "add.sat.s16 h40, h42, h44", "add.s32 r40, r42, d44", "add.s32 r40, h42, r44", "add.s64 d40, d42, r44",
        "add.s64 r40, d42, d44", "add.s32 r40, r42", "add.s32 r40, {r42, r44}, r46", "add.s32 r40|p41, r42, r44",
        "add.s32 _, r42, r44", "add.s32 #1, r42, r44", "add.s32 r2, r42, r44", "add.s32 r40, !r42, r44",
        "add.s32 r40, r42, _", "add.s32 r40, r42, [d44]", "add.s32 r40, r42, p44", "add.s64 d40, d42, #n1",
        "add.s32 r40, r42, #w1", "shl.b64 d40, d42, #w1", "mad.wide.u32 d40, r42, r44, #n1", "mul.s32 r40, r42, r44",
        "mul.wide.s64 d40, d42, d44", "mul.wide.s32 r40, r42, r44", "mul.lo.sat.s32 r40, r42, r44",
        "mul.wide.u32 d40, d42, r44", "mad.s32 r40, r42, r44, r46", "mad.lo.sat.s32 r40, r42, r44, r46",
        "mad.hi.sat.u32 r40, r42, r44, r46", "mad.wide.s64 d40, d42, d44, d46", "mad.wide.u32 d40, r42, r44, r46",
        "mad.lo.ftz.s32 r40, r42, r44, r46", "mul24.wide.u32 d40, r42, r44", "mul24.u32 r40, r42, r44",
        "mad24.u32 r40, r42, r44, r46", "div.rn.s32 r40, r42, r44", "div.approx.u32 r40, r42, r44", "abs.u32 r40, r42",
        "abs.ftz.s32 r40, r42", "neg.u16 h40, h42", "neg.ftz.s32 r40, r42", "min.ftz.s32 r40, r42, r44",
        "min.relu.u32 r40, r42, r44", "max.relu.s64 d40, d42, d44", "max.NaN.s32 r40, r42, r44",
        "max.ftz.relu.s32 r40, r42, r44", "sad.u32 r40, r42, r44", "dp2a.u32.u32 r40, r42, r44, r46",
        "dp2a.wide.u32.u32 r40, r42, r44, r46", "dp4a.u32 r40, r42, r44, r46", "cnot.b32 r40, d42", "and.b32 r40, r42, p44",
        "and.pred p40, p42, r44", "not.pred r40, p42", "shl.b32 r40, r42, h44", "shl.b64 d40, d42, d44",
        "shl.b16 h40, h42, h44", "lop3.b32 r40, r42, r44, r46, r48", "shf.l.b32 r40, r42, r44, r46",
        "shf.wrap.b32 r40, r42, r44, r46", "shf.l.shiftamt.b32 r40, r42, r44, r46", "bfe.u16 h40, h42, r44, r46",
        "bfe.u64 d40, d42, d44, r46", "bfi.b16 h40, h42, h44, r46, r48", "bfind.u16 r40, h42", "bfind.wrap.u32 r40, r42",
        "bfind.u64 d40, d42", "brev.b16 h40, h42", "popc.b16 r40, h42", "popc.b64 d40, d42", "clz.b16 r40, h42",
        "clz.b32 d40, r42"};
    fixture_reset();
    for (size_t n = 0; n < sizeof texts / sizeof *texts; n++)
        if (fixture_bind(texts[n])) fail_msg("accepted: %s", texts[n]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_operation_and_type), cmocka_unit_test(lop3_follows_any_table),
        cmocka_unit_test(fields_at_fixed_places),   cmocka_unit_test(predicate_logic),
        cmocka_unit_test(impossible_forms_are_refused),
    };
    int failed = 0;
    for (unsigned table = 0; table < fixture_tables(); table++) {
        fixture_use_table(table);
        failed |= cmocka_run_group_tests(tests, NULL, NULL);
    }
    return failed;
}
