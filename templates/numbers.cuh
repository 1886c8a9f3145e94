// Arithmetic that the kernels and the cpu device share word for word, so that both give the same bits: conversions to and from
// narrow types, and the activations. It is C11 and CUDA C++ alike, and must be compiled without contraction.
//
// Whoever includes it has defined
//     JG_FN                                     what a function begins with, e.g. static inline
//     JG_FMA(a, b, c)  JG_MUL(a, b)  JG_ADD(a, b)  JG_DIV(a, b)     float32, rounded to nearest even
//     JG_BITS(x)  JG_FLOAT(bits)                a float's bits as u32, and back
//     u32                                       unsigned, 32 bits
// The four operations may flush denormal inputs and results (JG_MATH_FLUSH). That changes no result but those that come of a
// denormal argument, are denormal, or are multiples of a sigmoid that is. Nothing here calls a library or uses an approximate
// instruction, shifts are by constants, and most decisions are selects.
//
// The polynomials are minimax fits of the relative error of the function's result (Remez' exchange in double precision), made
// again after each coefficient, from the lowest power on, was rounded to float32. "off by" is that error before the roundings of
// its evaluation. "Error" is the largest of the whole function, in units in the last place, over all floats.

JG_FN float jg_from_e4m3(u32 bits)
{
    const u32 sign = (bits & 0x80u) << 24, magnitude = bits & 0x7fu, place = magnitude << 20;
    // Denormals count 2^-9: put below the leading 1 of 2^-6, which is then taken off.
    const u32 denormal = JG_BITS(JG_ADD(JG_FLOAT(place + (121u << 23)), -0.015625f));
    u32 value = magnitude < 8u ? denormal : place + (120u << 23);
    value = magnitude == 0x7fu ? 0x7fc00000u : value;
    return JG_FLOAT(value | sign);
}

JG_FN float jg_from_e5m2(u32 bits)
{
    const u32 sign = (bits & 0x80u) << 24, magnitude = bits & 0x7fu, place = magnitude << 21;
    const u32 denormal = JG_BITS(JG_ADD(JG_FLOAT(place + (113u << 23)), -6.103515625e-5f)); // 2^-14
    u32 value = magnitude < 4u ? denormal : place + (112u << 23);
    value = magnitude == 0x7cu ? 0x7f800000u : value;
    value = magnitude > 0x7cu ? 0x7fc00000u : value;
    return JG_FLOAT(value | sign);
}

// To e4m3 and e5m2 as cvt.rn.satfinite does it: nearest even; what is too large, infinity too, is the largest number. Every NaN
// is 0x7f, whatever its sign, since processors differ in the sign of a NaN that they computed. Adding the float whose last place
// is the unit of the denormals leaves their number in its low bits.
JG_FN u32 jg_to_e4m3(float x)
{
    const u32 bits = JG_BITS(x), magnitude = bits & 0x7fffffffu, sign = bits >> 24 & 0x80u;
    const u32 denormal = JG_BITS(JG_ADD(JG_FLOAT(magnitude), 16384.0f)) - 0x46800000u;
    u32 value = (magnitude - (120u << 23) + 0x7ffffu + (magnitude >> 20 & 1u)) >> 20;
    value = value > 0x7eu ? 0x7eu : value;
    value = magnitude < 0x3c800000u ? denormal : value; // 2^-6
    return magnitude > 0x7f800000u ? 0x7fu : value | sign;
}

JG_FN u32 jg_to_e5m2(float x)
{
    const u32 bits = JG_BITS(x), magnitude = bits & 0x7fffffffu, sign = bits >> 24 & 0x80u;
    const u32 denormal = JG_BITS(JG_ADD(JG_FLOAT(magnitude), 128.0f)) - 0x43000000u;
    u32 value = (magnitude - (112u << 23) + 0xfffffu + (magnitude >> 21 & 1u)) >> 21;
    value = value > 0x7bu ? 0x7bu : value;
    value = magnitude < 0x38800000u ? denormal : value; // 2^-14
    return magnitude > 0x7f800000u ? 0x7fu : value | sign;
}

// To integers: nearest even, saturating, 0 for NaN. Below 2^23, adding 2^23 rounds to a whole number; above, all are whole.
JG_FN int jg_to_s32(float x)
{
    const u32 sign = JG_BITS(x) & 0x80000000u;
    const float size = JG_FLOAT(JG_BITS(x) & 0x7fffffffu);
    float whole = size < 8388608.0f ? JG_ADD(JG_ADD(size, 8388608.0f), -8388608.0f) : size;
    whole = size < 2147483648.0f ? whole : 0.0f; // what does not fit must not be converted; it is put right below
    int value = (int)JG_FLOAT(JG_BITS(whole) | sign);
    value = x >= 2147483648.0f ? 0x7fffffff : value;
    return x <= -2147483648.0f ? -0x7fffffff - 1 : value;
}

// The nearest whole number between low and high, which are whole and at most 2^21 in size. 1.5 * 2^23 has 1 as its last place.
JG_FN int jg_to_range(float x, float low, float high)
{
    float y = x > low ? x : low;
    y = y < high ? y : high;
    y = x != x ? 0.0f : y;
    return (int)(JG_BITS(JG_ADD(y, 12582912.0f)) - 0x4b400000u);
}

JG_FN int jg_to_s8(float x)
{
    return jg_to_range(x, -128.0f, 127.0f);
}

JG_FN int jg_to_u8(float x)
{
    return jg_to_range(x, 0.0f, 255.0f);
}

// e^x = 2^n e^r, n the nearest whole number to x / ln 2, and e^r = 1 + r + r^2 q(r), q off by 2^-26.2. 2^n is applied in two
// steps, neither of which can be out of range, so that denormals are rounded once. Error 1.01.
JG_FN float jg_exp(float x)
{
    // Beyond these bounds all are 0 and infinity. NaN passes.
    x = x > 89.0f ? 89.0f : x;
    x = x < -104.0f ? -104.0f : x;
    const float shifted = JG_FMA(x, 1.44269504f, 12582912.0f);
    const float n = JG_ADD(shifted, -12582912.0f);
    float r = JG_FMA(n, -0.693147182f, x);
    r = JG_FMA(n, 1.90465421e-9f, r);
    float q = 1.38448866e-3f;
    q = JG_FMA(q, r, 8.36790539e-3f);
    q = JG_FMA(q, r, 4.16682214e-2f);
    q = JG_FMA(q, r, 1.66665226e-1f);
    q = JG_FMA(q, r, 4.99999940e-1f);
    q = JG_FMA(q, r, 1.0f);
    q = JG_FMA(q, r, 1.0f);
    // The bits of `shifted` are n and a constant, of which the shifts by 1 and 23 leave nothing.
    const u32 whole = JG_BITS(shifted), half = whole >> 1;
    q = JG_MUL(q, JG_FLOAT((half + 127u) << 23));
    return JG_MUL(q, JG_FLOAT((whole - half + 127u) << 23));
}

// Up to 0.55: x + x^3 p(x^2), p off by 2^-24.7. Above: 1 - 2 / (e^2x + 1). Error 1.56.
JG_FN float jg_tanh(float x)
{
    const u32 sign = JG_BITS(x) & 0x80000000u;
    const float size = JG_FLOAT(JG_BITS(x) & 0x7fffffffu), square = JG_MUL(size, size);
    float p = 1.64378788e-2f;
    p = JG_FMA(p, square, -5.26720099e-2f);
    p = JG_FMA(p, square, 1.33207291e-1f);
    p = JG_FMA(p, square, -3.33329469e-1f);
    p = JG_FMA(JG_MUL(p, square), size, size);
    const float large = JG_ADD(1.0f, JG_DIV(-2.0f, JG_ADD(jg_exp(JG_ADD(size, size)), 1.0f)));
    return JG_FLOAT(JG_BITS(size < 0.55f ? p : large) | sign);
}

// Up to 0.875: x + x p(x^2), p off by 2^-26. Above: 1 - e^(-x - x p(x)), p off by 2^-28.2; from 4 on that is 1. Error 1.02.
JG_FN float jg_erf(float x)
{
    const u32 sign = JG_BITS(x) & 0x80000000u;
    float size = JG_FLOAT(JG_BITS(x) & 0x7fffffffu);
    const float square = JG_MUL(size, size);
    float p = -6.02049113e-4f;
    p = JG_FMA(p, square, 4.99892794e-3f);
    p = JG_FMA(p, square, -2.67704856e-2f);
    p = JG_FMA(p, square, 1.12819217e-1f);
    p = JG_FMA(p, square, -3.76125038e-1f);
    p = JG_FMA(p, square, 1.28379151e-1f);
    const float small = JG_FMA(p, size, size);
    const int is_small = size < 0.875f;
    size = size > 4.0f ? 4.0f : size;
    p = 2.15707143e-4f;
    p = JG_FMA(p, size, -3.22903693e-3f);
    p = JG_FMA(p, size, 2.29347255e-2f);
    p = JG_FMA(p, size, -1.05330996e-1f);
    p = JG_FMA(p, size, -6.35666370e-1f);
    p = JG_FMA(p, size, -1.28529549e-1f);
    const float large = JG_ADD(1.0f, -jg_exp(JG_FMA(p, size, -size)));
    return JG_FLOAT(JG_BITS(is_small ? small : large) | sign);
}

// 1 / (1 + e^-x), as e^x / (1 + e^x) for negative x, so that its relative error is small there too. Error 2.41.
JG_FN float jg_sigmoid(float x)
{
    const float e = jg_exp(JG_FLOAT(JG_BITS(x) | 0x80000000u)), sum = JG_ADD(1.0f, e);
    // Below 2^-24 the sum is 1 and the quotient e: a GPU divides tiny numbers ten times as slowly.
    const int is_tiny = x < 0.0f && sum == 1.0f;
    const float quotient = JG_DIV(x < 0.0f && !is_tiny ? e : 1.0f, sum);
    return is_tiny ? e : quotient;
}

// kind: a jg_activation. What is below -128 gives what -128 gives, -0, where infinity would give NaN.
JG_FN float jg_activate(u32 kind, float x, float low, float high)
{
    if (kind == 0u) return x;
    if (kind <= 3u) { // relu, relu6, clamp; NaN passes
        const float least = kind == 3u ? low : 0.0f, most = kind == 3u ? high : 6.0f;
        const float y = x < least ? least : x;
        return kind != 1u && y > most ? most : y;
    }
    const float y = x < -128.0f ? -128.0f : x;
    if (kind == 5u) return JG_MUL(JG_MUL(y, 0.5f), JG_ADD(1.0f, jg_erf(JG_MUL(y, 0.707106781f)))); // gelu_erf
    // (1 + tanh u) / 2 is sigmoid(2u), which loses nothing where tanh is near -1. 1.59576912 is 2 sqrt(2 / pi).
    const float inner = JG_MUL(1.59576912f, JG_FMA(JG_MUL(0.044715f, y), JG_MUL(y, y), y));
    const float s = jg_sigmoid(kind == 4u ? inner : y); // gelu_tanh; silu, sigmoid
    return kind == 7u ? s : JG_MUL(y, s);
}
