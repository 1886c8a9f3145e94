/* Exact numbers: see formats.h. Integer arithmetic only, 128 bits wide, which holds an f64 product (106 bits) and the
 * guard bits of a sum with it. */
#include "formats.h"

#define WIDE_BITS 128

static const format formats[] = {
    {16, 5, 10, 0, 1, 0x7fff, 0x7bff},
    {16, 8, 7, 0, 1, 0x7fff, 0x7f7f},
    {32, 8, 10, 13, 1, 0x7fffe000, 0x3fbff},
    {8, 4, 3, 0, 0, 0x7f, 0x7e},
    {8, 5, 2, 0, 1, 0x7f, 0x7b},
    {32, 8, 23, 0, 1, 0x7fffffff, 0x7f7fffff},
    {64, 11, 52, 0, 1, 0x7ff80000, 0x7fefffffffffffffull},
};

const format *format_of(ptx_type type)
{
    switch (type) {
    case TYPE_F16: case TYPE_F16X2: return &formats[0];
    case TYPE_BF16: case TYPE_BF16X2: return &formats[1];
    case TYPE_TF32: return &formats[2];
    case TYPE_E4M3: case TYPE_E4M3X2: return &formats[3];
    case TYPE_E5M2: case TYPE_E5M2X2: return &formats[4];
    case TYPE_F32: return &formats[5];
    case TYPE_F64: return &formats[6];
    default: return NULL;
    }
}

uint64_t format_nan(const format *f)
{
    return f->bits == 64 ? (uint64_t)f->nan_high << 32 : f->nan_high;
}

/* The sign's place and the fields below it, without low_bits. */
static uint64_t sign_bit(const format *f)
{
    return 1ull << (f->bits - 1);
}

static uint64_t magnitude_of(const format *f, uint64_t bits)
{
    return (bits & (sign_bit(f) - 1)) >> f->low_bits;
}

static int bias_of(const format *f)
{
    return (1 << (f->exponent_bits - 1)) - 1;
}

/* The index of the highest 1; a must not be 0. */
static int top_bit(format_u128 a)
{
    uint64_t high = (uint64_t)(a >> 64);
    return high ? 127 - __builtin_clzll(high) : 63 - __builtin_clzll((uint64_t)a);
}

number format_decode(const format *f, uint64_t bits)
{
    uint64_t magnitude = magnitude_of(f, bits), fraction = magnitude & ((1ull << f->fraction_bits) - 1);
    int exponent = (int)(magnitude >> f->fraction_bits);
    number n = {.kind = NUMBER_FINITE, .negative = (bits & sign_bit(f)) != 0};
    if (magnitude > f->largest) {
        n.kind = f->infinities && magnitude == f->largest + 1 ? NUMBER_INFINITE : NUMBER_NAN;
        return n;
    }
    n.significand = exponent ? fraction | 1ull << f->fraction_bits : fraction;
    n.exponent = (exponent ? exponent : 1) - bias_of(f) - f->fraction_bits;
    return n;
}

/* significand / 2^shift, rounded to an integer. shift > 0. */
static format_u128 shift_round(format_u128 significand, int shift, int negative, int rounding)
{
    if (!significand) return 0;
    format_u128 kept = shift < WIDE_BITS ? significand >> shift : 0;
    format_u128 lost = shift < WIDE_BITS ? significand & (((format_u128)1 << shift) - 1) : significand;
    if (!lost) return kept;
    int against_half = -1; /* lost is less than, equal to, more than half */
    if (shift <= WIDE_BITS) {
        format_u128 half = (format_u128)1 << (shift - 1);
        against_half = (lost > half) - (lost < half);
    }
    int up = 0;
    switch (rounding) {
    case ROUND_RN: case ROUND_RNI: up = against_half > 0 || (against_half == 0 && (kept & 1)); break;
    case ROUND_RNA: up = against_half >= 0; break;
    case ROUND_RM: case ROUND_RMI: up = negative; break;
    case ROUND_RP: case ROUND_RPI: up = !negative; break;
    default: break;
    }
    return kept + (format_u128)up;
}

static uint64_t overflow_of(const format *f, int negative, int rounding, int saturate)
{
    uint64_t sign = negative ? sign_bit(f) : 0;
    int to_zero = rounding == ROUND_RZ || (rounding == ROUND_RM && !negative) || (rounding == ROUND_RP && negative);
    if (saturate || to_zero) return sign | f->largest << f->low_bits;
    return f->infinities ? sign | (f->largest + 1) << f->low_bits : format_nan(f);
}

uint64_t format_encode(const format *f, number n, int rounding, int saturate)
{
    uint64_t sign = n.negative ? sign_bit(f) : 0;
    if (n.kind == NUMBER_NAN) return format_nan(f);
    if (n.kind == NUMBER_INFINITE) return overflow_of(f, n.negative, ROUND_RN, saturate);
    if (!n.significand) return sign;
    int exponent = n.exponent + top_bit(n.significand), least = 1 - bias_of(f);
    if (exponent > bias_of(f) + 1) return overflow_of(f, n.negative, rounding, saturate);
    int denormal = exponent < least;
    int shift = (denormal ? least : exponent) - f->fraction_bits - n.exponent;
    format_u128 kept = shift > 0 ? shift_round(n.significand, shift, n.negative, rounding) : n.significand << -shift;
    /* What rounds up to the next power of two, or from the denormals to the normals, carries into the exponent. */
    uint64_t magnitude = (uint64_t)kept;
    if (!denormal) magnitude += (uint64_t)(exponent - least) << f->fraction_bits;
    return magnitude > f->largest ? overflow_of(f, n.negative, rounding, saturate) : sign | magnitude << f->low_bits;
}

uint64_t format_flush(const format *f, uint64_t bits)
{
    return magnitude_of(f, bits) >> f->fraction_bits ? bits : bits & sign_bit(f);
}

int number_is_tiny(const format *f, number n, int rounding)
{
    if (n.kind != NUMBER_FINITE || !n.significand) return 0;
    int top = top_bit(n.significand), below = 1 - bias_of(f) - (n.exponent + top), shift = top - f->fraction_bits;
    if (below != 1) return below > 1;
    return shift <= 0 || !(shift_round(n.significand, shift, n.negative, rounding) >> (f->fraction_bits + 1));
}

static number special(int kind, int negative)
{
    return (number){.kind = (uint8_t)kind, .negative = (uint8_t)(negative != 0)};
}

/* Moves the highest 1 to a place. The significand is not 0 and has no 1 above that place. */
static number normalised(number n, int place)
{
    int up = place - top_bit(n.significand);
    n.significand <<= up;
    n.exponent -= up;
    return n;
}

number number_add(number a, number b, int rounding)
{
    if (a.kind == NUMBER_NAN || b.kind == NUMBER_NAN) return special(NUMBER_NAN, 0);
    if (a.kind == NUMBER_INFINITE && b.kind == NUMBER_INFINITE && a.negative != b.negative) return special(NUMBER_NAN, 0);
    if (a.kind == NUMBER_INFINITE) return a;
    if (b.kind == NUMBER_INFINITE) return b;
    int zero_sign = a.negative == b.negative ? a.negative : rounding == ROUND_RM;
    if (!a.significand && !b.significand) return special(NUMBER_FINITE, zero_sign);
    if (!a.significand) return b;
    if (!b.significand) return a;
    a = normalised(a, WIDE_BITS - 3); /* room for a carry */
    b = normalised(b, WIDE_BITS - 3);
    if (a.exponent < b.exponent || (a.exponent == b.exponent && a.significand < b.significand)) {
        number t = a;
        a = b;
        b = t;
    }
    /* Bits of b that do not fit only set its last bit: then a and b are so far apart that the sum keeps its length. */
    int shift = a.exponent - b.exponent;
    format_u128 small = shift < WIDE_BITS ? b.significand >> shift : 0;
    if (shift >= WIDE_BITS || small << shift != b.significand) small |= 1;
    a.significand = a.negative == b.negative ? a.significand + small : a.significand - small;
    return a.significand ? a : special(NUMBER_FINITE, zero_sign);
}

number number_multiply(number a, number b)
{
    int negative = a.negative != b.negative;
    int a_zero = a.kind == NUMBER_FINITE && !a.significand, b_zero = b.kind == NUMBER_FINITE && !b.significand;
    if (a.kind == NUMBER_NAN || b.kind == NUMBER_NAN) return special(NUMBER_NAN, 0);
    if (a.kind == NUMBER_INFINITE || b.kind == NUMBER_INFINITE)
        return special(a_zero || b_zero ? NUMBER_NAN : NUMBER_INFINITE, negative);
    number n = {.significand = a.significand * b.significand, .exponent = a.exponent + b.exponent, .kind = NUMBER_FINITE,
                .negative = (uint8_t)negative};
    return n;
}

number number_divide(number a, number b)
{
    int negative = a.negative != b.negative;
    if (a.kind == NUMBER_NAN || b.kind == NUMBER_NAN) return special(NUMBER_NAN, 0);
    if (a.kind == NUMBER_INFINITE) return special(b.kind == NUMBER_INFINITE ? NUMBER_NAN : NUMBER_INFINITE, negative);
    if (b.kind == NUMBER_INFINITE) return special(NUMBER_FINITE, negative);
    if (!b.significand) return special(a.significand ? NUMBER_INFINITE : NUMBER_NAN, negative);
    if (!a.significand) return special(NUMBER_FINITE, negative);
    a = normalised(a, WIDE_BITS - 2); /* at least 73 bits of quotient */
    format_u128 quotient = a.significand / b.significand;
    int inexact = a.significand % b.significand != 0;
    number n = {.significand = quotient << 1 | (format_u128)inexact, .exponent = a.exponent - b.exponent - 1,
                .kind = NUMBER_FINITE, .negative = (uint8_t)negative};
    return n;
}

number number_sqrt(number a)
{
    if (a.kind == NUMBER_NAN || (a.kind == NUMBER_FINITE && !a.significand)) return a;
    if (a.negative) return special(NUMBER_NAN, 0);
    if (a.kind == NUMBER_INFINITE) return a;
    a = normalised(a, WIDE_BITS - 2);
    if (a.exponent & 1) {
        a.significand >>= 1; /* the last 53 bits and more are 0 */
        a.exponent++;
    }
    format_u128 root = 0, rest = a.significand;
    for (int place = WIDE_BITS - 2; place >= 0; place -= 2) {
        format_u128 trial = root + ((format_u128)1 << place);
        root >>= 1;
        if (rest >= trial) {
            rest -= trial;
            root += (format_u128)1 << place;
        }
    }
    number n = {.significand = root << 1 | (rest != 0), .exponent = a.exponent / 2 - 1, .kind = NUMBER_FINITE};
    return n;
}

number number_from_int(uint64_t magnitude, int negative)
{
    number n = {.significand = magnitude, .kind = NUMBER_FINITE, .negative = (uint8_t)(negative && magnitude)};
    return n;
}

number number_round(number n, int rounding)
{
    if (n.kind != NUMBER_FINITE || n.exponent >= 0) return n;
    n.significand = shift_round(n.significand, -n.exponent, n.negative, rounding);
    n.exponent = 0;
    return n;
}

uint64_t number_to_int(number n, unsigned bits, int is_signed)
{
    uint64_t largest = is_signed ? (1ull << (bits - 1)) - 1 : ~0ull >> (64 - bits);
    uint64_t limit = n.negative ? is_signed ? largest + 1 : 0 : largest; /* of the magnitude */
    if (n.kind == NUMBER_NAN) return 0;
    uint64_t magnitude = limit;
    if (n.kind == NUMBER_FINITE && !n.significand) magnitude = 0;
    else if (n.kind == NUMBER_FINITE && n.exponent + top_bit(n.significand) < 64)
        magnitude = (uint64_t)(n.exponent >= 0 ? n.significand << n.exponent : n.significand >> -n.exponent);
    if (magnitude > limit) magnitude = limit;
    return n.negative ? 0 - magnitude : magnitude;
}
