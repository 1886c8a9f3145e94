/* The element types of the oracle, by arithmetic on doubles. */
#include "reference_parts.h"

#include <math.h>

/* A float: a sign, then exponent_bits, then fraction_bits. An integer has no exponent. */
typedef struct layout {
    unsigned bits;
    int exponent_bits, fraction_bits;
    int has_infinity; /* the largest exponent field is that of infinity and NaN; else only all ones are a NaN */
    int saturates;
    int is_signed;
} layout;

static const layout layouts[] = {
    [JG_F32] = {32, 8, 23, 1, 0, 1}, [JG_F16] = {16, 5, 10, 1, 0, 1}, [JG_BF16] = {16, 8, 7, 1, 0, 1},
    [JG_S8] = {8, 0, 0, 0, 1, 1},    [JG_U8] = {8, 0, 0, 0, 1, 0},    [JG_S4] = {4, 0, 0, 0, 1, 1},
    [JG_S32] = {32, 0, 0, 0, 1, 1},  [JG_E4M3] = {8, 4, 3, 0, 1, 1},  [JG_E5M2] = {8, 5, 2, 1, 1, 1},
};

unsigned reference_bits(jg_type type)
{
    return layouts[type].bits;
}

size_t reference_bytes(jg_type type)
{
    return (layouts[type].bits + 7) / 8;
}

int reference_is_integer(jg_type type)
{
    return layouts[type].exponent_bits == 0;
}

int reference_saturates(jg_type type)
{
    return layouts[type].saturates;
}

static int smallest_exponent(const layout *l)
{
    return 2 - (1 << (l->exponent_bits - 1));
}

/* Without a sign: of infinity, and of the largest finite number. */
static uint32_t infinity_bits(const layout *l)
{
    return ((1u << l->exponent_bits) - 1) << l->fraction_bits;
}

static uint32_t largest_bits(const layout *l)
{
    return l->has_infinity ? infinity_bits(l) - 1 : (1u << (l->bits - 1)) - 2;
}

static uint32_t mask_of(const layout *l)
{
    return l->bits == 32 ? UINT32_MAX : (1u << l->bits) - 1;
}

double reference_largest(jg_type type)
{
    const layout *l = &layouts[type];
    if (!reference_is_integer(type)) return reference_decode(type, largest_bits(l));
    return ldexp(1, (int)l->bits - l->is_signed) - 1;
}

double reference_smallest(jg_type type)
{
    const layout *l = &layouts[type];
    if (!reference_is_integer(type)) return -reference_largest(type);
    return l->is_signed ? -ldexp(1, (int)l->bits - 1) : 0;
}

double reference_smallest_normal(jg_type type)
{
    return reference_is_integer(type) ? 0 : ldexp(1, smallest_exponent(&layouts[type]));
}

double reference_decode(jg_type type, uint32_t bits)
{
    const layout *l = &layouts[type];
    bits &= mask_of(l);
    if (reference_is_integer(type)) return bits - (l->is_signed && bits >> (l->bits - 1) ? ldexp(1, (int)l->bits) : 0);
    uint32_t sign = bits >> (l->exponent_bits + l->fraction_bits) & 1;
    uint32_t field = bits >> l->fraction_bits & ((1u << l->exponent_bits) - 1);
    uint32_t fraction = bits & ((1u << l->fraction_bits) - 1);
    double value;
    if ((bits & mask_of(l) >> 1) > largest_bits(l)) {
        value = l->has_infinity && !fraction ? (double)INFINITY : (double)NAN;
    } else {
        uint32_t significand = field ? fraction | 1u << l->fraction_bits : fraction;
        int steps = field ? (int)field - 1 : 0;
        value = ldexp(significand, smallest_exponent(l) + steps - l->fraction_bits);
    }
    return sign ? -value : value;
}

/* The exponent of the unit in the last place at a finite value of a float. */
static int ulp_exponent(const layout *l, double value)
{
    int exponent, least = smallest_exponent(l), most = 1 - least + !l->has_infinity;
    frexp(value, &exponent);
    exponent -= 1;
    if (value == 0 || exponent < least) exponent = least;
    if (exponent > most) exponent = most;
    return exponent - l->fraction_bits;
}

double reference_ulp(jg_type type, double value)
{
    return reference_is_integer(type) ? 1 : ldexp(1, ulp_exponent(&layouts[type], value));
}

static uint32_t encode_integer(jg_type type, double value)
{
    double least = reference_smallest(type), most = reference_largest(type);
    if (isnan(value)) return 0;
    value = rint(value < least ? least : value > most ? most : value);
    return (uint32_t)(int64_t)value & mask_of(&layouts[type]);
}

uint32_t reference_encode(jg_type type, double value)
{
    if (reference_is_integer(type)) return encode_integer(type, value);
    const layout *l = &layouts[type];
    uint32_t sign = signbit(value) ? 1u << (l->exponent_bits + l->fraction_bits) : 0;
    uint32_t beyond = l->saturates ? largest_bits(l) : infinity_bits(l);
    if (isnan(value)) return sign | (l->has_infinity ? infinity_bits(l) | 1u << (l->fraction_bits - 1) : largest_bits(l) + 1);
    if (isinf(value)) return sign | beyond;
    int ulp = ulp_exponent(l, value);
    double units = rint(ldexp(fabs(value), -ulp));
    /* With the hidden bit left in `units`, the exponent field is one step short: the sum makes up for it. */
    double steps = ulp + l->fraction_bits - smallest_exponent(l);
    double bits = ldexp(steps, l->fraction_bits) + units;
    return sign | (bits <= largest_bits(l) ? (uint32_t)bits : beyond);
}

double reference_stored(const reference *ref, double r)
{
    jg_type type = ref->c.type;
    double stored = reference_decode(type, reference_encode(type, r));
    if (ref->problem.math & JG_MATH_SANITIZE && type == JG_F16 && isinf(stored)) stored =
        copysign(reference_largest(type), stored);
    if (ref->problem.math & JG_MATH_FLUSH && fabs(stored) < reference_smallest_normal(type)) stored = copysign(0, stored);
    return stored;
}
