/* How tensor core sums round (src/swgpu/mma_model.h), against sums that an H200 gave, and against the same rule written with
 * 128-bit integers and no vectors. */
#include "swgpu/mma_model.h"
#include "reference.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Sums of 16 products of f16 from 0, on an H200 (driver 580, 2026-11-29). All but the last two come out otherwise with 24 or 26
 * bits, or in two groups of 8. */
static const struct {
    uint16_t a[16], b[16];
    uint32_t d;
} measured[] = {
    {{0x380f, 0x38b5, 0xa31d, 0xbb3c, 0xb880, 0x3aa4, 0x3bff, 0x36a2, 0xb15d, 0x398b, 0x2fea, 0x393f, 0xbbda, 0x398c, 0xb979, 0x2f24},
     {0xb1b0, 0xacf4, 0xb3c1, 0xb7e7, 0x380f, 0xa2c2, 0xb36a, 0xb8cc, 0x3b7d, 0x3b9a, 0x3ad3, 0xb9a0, 0xb29c, 0xb24a, 0xb460, 0xb5c8},
     0xbdd32ef9},
    {{0xb1ef, 0xb841, 0x316f, 0xbb27, 0xb583, 0x3821, 0xb6a4, 0x3be0, 0xb893, 0x3b8a, 0xb934, 0xb547, 0x39f2, 0xb87b, 0xae1c, 0x3b9e},
     {0x3957, 0xb0c2, 0x3abd, 0x3a42, 0xbafd, 0x1acd, 0xba3b, 0x337c, 0xb760, 0xb693, 0xaf2f, 0x38bd, 0xb429, 0x30de, 0x370d, 0x33a0},
     0xbdad27cb},
    {{0xbcc8, 0x33c6, 0x40ce, 0xc487, 0xc80e, 0x461d, 0xa2b2, 0xae9d, 0x2c0d, 0xa419, 0xc05d, 0x2b9e, 0xc689, 0x2d78, 0xb6a4, 0xafbc},
     {0xbc45, 0x32cc, 0x3876, 0xc5a0, 0x38ca, 0xc135, 0x4487, 0xc08d, 0xb8b6, 0x1caa, 0x9c6b, 0xbc73, 0x2520, 0x36e6, 0xc671, 0x3d53},
     0x411dcf8e},
    {{0xc78e, 0x4820, 0x44e5, 0x3875, 0x4845, 0x2d80, 0xc4ee, 0x4471, 0xa912, 0xc525, 0xb6a8, 0xba73, 0xa0d0, 0xbc7f, 0xbca5, 0x3291},
     {0x2d83, 0x38dd, 0x2fa4, 0xa9fb, 0x33be, 0x30fb, 0x26ff, 0x47ef, 0x2cda, 0x470b, 0x4581, 0xc1cd, 0x37d1, 0x36a3, 0x2d90, 0x2ef5},
     0x40abbf5f},
    {{0x05a1, 0x699a, 0x0493, 0xd700, 0x4e15, 0xb029, 0x912a, 0x9345, 0xdffe, 0x21af, 0xc5ae, 0x0d9c, 0xbd0a, 0xb2fd, 0xabc3, 0xbea5},
     {0xb61f, 0x0af6, 0x0000, 0x2788, 0x11cb, 0x621d, 0xb4f9, 0xde4b, 0x9ec3, 0x2ab7, 0x2255, 0xc533, 0xa995, 0xb069, 0xcf6d, 0x357a},
     0xc2c6d4ff},
    {{0x8000, 0x9677, 0x235f, 0x929f, 0x40ec, 0xc4dc, 0x2818, 0x9651, 0x1a80, 0xa4b0, 0xde27, 0x3022, 0x849e, 0x5f85, 0xc5ae, 0x3e73},
     {0x5409, 0x1d18, 0xce2e, 0xaac2, 0x2531, 0xd296, 0x9ffe, 0xd9ed, 0xacda, 0x1b9d, 0x34a3, 0xdb2a, 0x5cd9, 0x35bc, 0x51f3, 0x1df2},
     0x41672eb4},
    {{0x3d67, 0x3c17, 0x38c1, 0x3c5c, 0x3a79, 0x3a21, 0x3ca3, 0x3c1b, 0x3817, 0x3d21, 0x3d26, 0x3c6a, 0x3da8, 0x3b4e, 0x3c9c, 0x3aba},
     {0x3c32, 0x3b8c, 0x3873, 0x3d75, 0x3d23, 0x38f3, 0x3c4a, 0x3cff, 0x3a66, 0x3c0e, 0x3a4a, 0x3831, 0x3c02, 0x3c50, 0x38aa, 0x3d80},
     0x417c39c5},
    {{0x3b08, 0x3940, 0x3cd8, 0x3bee, 0x3d94, 0x3a64, 0x3dcd, 0x3d70, 0x3c16, 0x3c3a, 0x3b8d, 0x3c3d, 0x3a53, 0x3d66, 0x3c45, 0x3998},
     {0x3d6a, 0x3ab4, 0x3c54, 0x3d6e, 0x3a7d, 0x3a3e, 0x3ccd, 0x3b3d, 0x384c, 0x3bdb, 0x3aa7, 0x3dcb, 0x394d, 0x395f, 0x3da0, 0x3c80},
     0x4185f1eb},
};

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static void sums_of_an_h200(void **state)
{
    (void)state;
    for (size_t v = 0; v < sizeof measured / sizeof measured[0]; v++) {
        float a[16][MMA_MAX_K] = {{0}}, b[MMA_MAX_K][MMA_N] = {{0}}, d[16 * MMA_N] = {0};
        for (int p = 0; p < 16; p++) {
            a[3][p] = (float)reference_decode(JG_F16, measured[v].a[p]);
            b[p][5] = (float)reference_decode(JG_F16, measured[v].b[p]);
        }
        mma_multiply(mma_model_of(90, 0, 0), d, d, (const float(*)[MMA_MAX_K])a, (const float(*)[MMA_N])b, 16, 16, MMA_F16, NULL);
        assert_int_equal(bits_of(d[3 * MMA_N + 5]), measured[v].d);
        for (int e = 0; e < 16 * MMA_N; e++)
            if (e != 3 * MMA_N + 5) assert_int_equal(bits_of(d[e]), 0);
    }
}

/* ---- the rule again, one sum at a time */

typedef struct format {
    const char *name;
    int bits, least; /* of the significand below the point; smallest exponent */
} format;

static const format formats[] = {{"f16", 10, -14}, {"bf16", 7, -126}, {"tf32", 10, -126}};

/* A value as integer * 2^(exponent - bits). */
static void split(double value, int bits, int least, __int128 *integer, int *exponent)
{
    int e;
    frexp(value, &e);
    *exponent = value == 0 ? -30000 : e - 1 < least ? least : e - 1;
    *integer = value == 0 ? 0 : (__int128)ldexp(value, bits - *exponent);
}

static __int128 cut(__int128 value, int places)
{
    const __int128 magnitude = value < 0 ? -value : value;
    const __int128 kept = places > 120 ? 0 : places >= 0 ? magnitude >> places : magnitude << -places;
    return value < 0 ? -kept : kept;
}

static float slow_group(float c, const float *a, const float *b, int count, const format *f, int fraction)
{
    __int128 term[17], sum = 0;
    int exponent[17], point[17], top = -30000;
    for (int p = 0; p < count; p++) {
        __int128 x, y;
        int ex, ey;
        split((double)a[p], f->bits, f->least, &x, &ex);
        split((double)b[p], f->bits, f->least, &y, &ey);
        term[p] = x * y;
        exponent[p] = ex + ey;
        point[p] = 2 * f->bits;
    }
    split((double)c, 23, -126, &term[count], &exponent[count]);
    point[count] = 23;
    for (int p = 0; p <= count; p++)
        if (term[p] && exponent[p] > top) top = exponent[p];
    for (int p = 0; p <= count; p++)
        if (term[p]) sum += cut(term[p], point[p] - fraction + top - exponent[p]);
    if (sum == 0) return 0;
    const int sign = sum < 0;
    unsigned __int128 magnitude = (unsigned __int128)(sign ? -sum : sum);
    int scale = top - fraction;
    while (magnitude >> 24) magnitude >>= 1, scale++;
    while (scale < -149) magnitude >>= 1, scale++;
    const double value = ldexp((double)(uint64_t)magnitude, scale);
    return (float)(sign ? -value : value);
}

/* A random value of a format; now and then 0, denormal, or far from the others. */
static float random_value(uint64_t *seed, const format *f)
{
    const uint64_t r = reference_random(seed);
    const int kind = (int)(r >> 56 & 15);
    if (kind == 0) return 0.0f;
    const int low = kind == 1 ? f->least : kind < 4 ? (f->least < -30 ? -30 : f->least) : -3, high = kind < 4 ? 12 : 3;
    const int exponent = low + (int)(r >> 32 & 0xffff) % (kind == 1 ? 3 : high - low);
    const int64_t significand = (int64_t)(r & ((2u << f->bits) - 1));
    const double value = ldexp((double)significand, (exponent < f->least ? f->least : exponent) - f->bits);
    return (float)(r >> 63 ? -value : value);
}

static void the_rule_in_slow_motion(void **state)
{
    (void)state;
    static const unsigned capabilities[] = {80, 90};
    uint64_t seed = 7;
    for (int round = 0; round < 3000; round++)
        for (size_t t = 0; t < 3; t++)
            for (size_t g = 0; g < 2; g++) {
                const format *f = &formats[t];
                const mma_model model = mma_model_of(capabilities[g], t == 2, 0);
                const unsigned k = t == 2 ? 8 : 16;
                float a[16][MMA_MAX_K] = {{0}}, b[MMA_MAX_K][MMA_N], c[16 * MMA_N] = {0}, d[16 * MMA_N];
                for (unsigned p = 0; p < k; p++) {
                    a[1][p] = random_value(&seed, f);
                    for (int n = 0; n < MMA_N; n++) b[p][n] = random_value(&seed, f);
                }
                for (int n = 0; n < MMA_N; n++) {
                    c[MMA_N + n] = random_value(&seed, f) * (float)(1 + (reference_random(&seed) & 0xfff));
                    if (round % 7 == 0) c[MMA_N + n] = float_of((uint32_t)reference_random(&seed) & 0x80ffffff); /* tiny, denormal */
                }
                mma_multiply(model, d, c, (const float(*)[MMA_MAX_K])a, (const float(*)[MMA_N])b, 2, k, (mma_format){f->bits, f->least},
                             NULL);
                for (int n = 0; n < MMA_N; n++) {
                    float column[16], sum = c[MMA_N + n];
                    for (unsigned p = 0; p < k; p++) column[p] = b[p][n];
                    for (unsigned p = 0; p < k; p += model.group)
                        sum = slow_group(sum, &a[1][p], &column[p], (int)(k - p < model.group ? k - p : model.group), f, (int)model.fraction);
                    if (bits_of(d[MMA_N + n]) != bits_of(sum))
                        fail_msg("%s sm_%u: %a, not %a (round %d, column %d)", f->name, capabilities[g], (double)d[MMA_N + n], (double)sum, round, n);
                }
            }
}

/* The bound that the numeric tests use covers the rule: each term loses less than a unit in the last of `fraction` bits below the
 * largest, and the sum less than one in 24 bits, so a group of 16 is off by less than (17 * 2^-25 + 2^-23) * sum of |terms|. */
static void error_of_a_group(void **state)
{
    (void)state;
    uint64_t seed = 11;
    for (int round = 0; round < 20000; round++) {
        float a[1][MMA_MAX_K] = {{0}}, b[MMA_MAX_K][MMA_N] = {{0}}, c[MMA_N], d[MMA_N];
        double exact[MMA_N], size[MMA_N];
        for (int n = 0; n < MMA_N; n++) {
            c[n] = random_value(&seed, &formats[0]);
            exact[n] = (double)c[n];
            size[n] = fabs((double)c[n]);
        }
        for (int p = 0; p < 16; p++) {
            a[0][p] = random_value(&seed, &formats[0]);
            for (int n = 0; n < MMA_N; n++) {
                b[p][n] = random_value(&seed, &formats[0]);
                exact[n] += (double)a[0][p] * (double)b[p][n];
                size[n] += fabs((double)a[0][p] * (double)b[p][n]);
            }
        }
        mma_multiply(mma_model_of(90, 0, 0), d, c, (const float(*)[MMA_MAX_K])a, (const float(*)[MMA_N])b, 1, 16, MMA_F16, NULL);
        for (int n = 0; n < MMA_N; n++) assert_true(fabs((double)d[n] - exact[n]) <= (17 * 0x1p-25 + 0x1p-23) * size[n]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_of_an_h200),
        cmocka_unit_test(the_rule_in_slow_motion),
        cmocka_unit_test(error_of_a_group),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
