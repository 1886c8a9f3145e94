/* src/swgpu/formats.c: every pattern, every rounding, overflow; against float_oracle.h. */
#include "float_oracle.h"
#include "reference.h"

static number number_of(double value) { return format_decode(format_of(TYPE_F64), bits64_of(value)); }

static const int roundings[] = {ROUND_RN, ROUND_RZ, ROUND_RM, ROUND_RP, ROUND_RNA};

static void every_pattern_decodes_and_returns(void **state)
{
    (void)state;
    for (size_t t = 0; t < 5; t++) {
        const struct oracle_format *f = &oracle_formats[t];
        const format *g = format_of(f->type);
        for (uint64_t step = 0; step < 1ull << (f->bits - f->low); step++) {
            uint64_t bits = step << f->low;
            double expected = oracle_decode(f, bits);
            uint64_t wide = format_encode(format_of(TYPE_F64), format_decode(g, bits), ROUND_RZ, 0);
            if (isnan(expected)) {
                assert_true(wide == 0x7ff8000000000000ull);
                assert_true(format_encode(g, format_decode(g, bits), ROUND_RN, 0) == format_nan(g));
                continue;
            }
            if (wide != bits64_of(expected)) fail_msg("%s 0x%llx decodes to %a", f->name, (unsigned long long)bits, double_of(wide));
            for (size_t r = 0; r < COUNT(roundings); r++)
                assert_true(format_encode(g, number_of(expected), roundings[r], 0) == bits);
            int denormal = expected != 0 && fabs(expected) < ldexp(1, 2 - (1 << (f->exponent_bits - 1)));
            assert_true(format_flush(g, bits) == (denormal ? bits & 1ull << (f->bits - 1) : bits));
        }
    }
}

static void the_inline_decoders_agree(void **state)
{
    (void)state;
    uint32_t (*const decode[])(uint32_t) = {format_f16_to_f32, format_bf16_to_f32, format_e4m3_to_f32, format_e5m2_to_f32};
    for (size_t t = 0; t < COUNT(decode); t++)
        for (uint32_t bits = 0; bits < 1u << oracle_formats[t].bits; bits++) {
            double expected = oracle_decode(&oracle_formats[t], bits);
            uint32_t got = decode[t](bits);
            if (got != (isnan(expected) ? 0x7fffffff : bits_of((float)expected)))
                fail_msg("%s 0x%x gives 0x%x", oracle_formats[t].name, bits, got);
        }
}

/* Between each two neighbours: just above the lower, below the tie, at it, above it, just below the upper; and past the
 * largest. */
static void encoding_rounds_between_neighbours(void **state)
{
    (void)state;
    for (size_t t = 0; t < 5; t++) {
        const struct oracle_format *f = &oracle_formats[t];
        const format *g = format_of(f->type);
        uint64_t step = f->bits == 8 ? 1 : t == 4 ? 101 : 5, limit = g->largest;
        for (uint64_t low = 0; low <= limit; low = low < limit && low + step > limit ? limit : low + step) {
            double below = oracle_decode(f, low << f->low);
            double above = low == g->largest ? 2 * below - oracle_decode(f, (low - 1) << f->low) : oracle_decode(f, (low + 1) << f->low);
            double tie = (below + above) / 2;
            const double points[] = {nextafter(below, above), nextafter(tie, below), tie, nextafter(tie, above), nextafter(above, below)};
            for (size_t p = 0; p < 2 * COUNT(points); p++)
                for (size_t r = 0; r < COUNT(roundings); r++) {
                    double x = p < COUNT(points) ? points[p] : -points[p - COUNT(points)];
                    uint64_t expected = oracle_encode(f, x, roundings[r]), got = format_encode(g, number_of(x), roundings[r], 0);
                    if (got != expected)
                        fail_msg("%s of %a, rounding %d: 0x%llx, not 0x%llx", f->name, x, roundings[r], (unsigned long long)got,
                                 (unsigned long long)expected);
                }
        }
    }
}

static void overflow_by_hand(void **state)
{
    (void)state;
    const struct {
        ptx_type type;
        double value;
        int rounding, saturate;
        uint64_t expected;
    } rows[] = {
        {TYPE_F16, 65519.99, ROUND_RN, 0, 0x7bff},  {TYPE_F16, 65520, ROUND_RN, 0, 0x7c00},    {TYPE_F16, 65520, ROUND_RN, 1, 0x7bff},
        {TYPE_F16, -1e30, ROUND_RN, 0, 0xfc00},     {TYPE_F16, -1e30, ROUND_RZ, 0, 0xfbff},    {TYPE_F16, -1e30, ROUND_RP, 0, 0xfbff},
        {TYPE_F16, -1e30, ROUND_RM, 0, 0xfc00},     {TYPE_F16, 1e30, ROUND_RM, 0, 0x7bff},     {TYPE_F16, INFINITY, ROUND_RZ, 0, 0x7c00},
        {TYPE_F16, -INFINITY, ROUND_RN, 1, 0xfbff}, {TYPE_E4M3, 464, ROUND_RN, 1, 0x7e},       {TYPE_E4M3, 464, ROUND_RN, 0, 0x7e},
        {TYPE_E4M3, 464.1, ROUND_RN, 1, 0x7e},      {TYPE_E4M3, 464.1, ROUND_RN, 0, 0x7f},     {TYPE_E4M3, -1e9, ROUND_RN, 1, 0xfe},
        {TYPE_E4M3, INFINITY, ROUND_RN, 1, 0x7e},   {TYPE_E4M3, INFINITY, ROUND_RN, 0, 0x7f},  {TYPE_E5M2, 61439, ROUND_RN, 0, 0x7b},
        {TYPE_E5M2, 61440, ROUND_RN, 0, 0x7c},      {TYPE_E5M2, 61440, ROUND_RN, 1, 0x7b},     {TYPE_E5M2, NAN, ROUND_RN, 1, 0x7f},
        {TYPE_E4M3, NAN, ROUND_RN, 1, 0x7f},        {TYPE_BF16, 3.4e38, ROUND_RN, 0, 0x7f80},  {TYPE_BF16, 3.4e38, ROUND_RN, 1, 0x7f7f},
        {TYPE_TF32, 3.4028235e38, ROUND_RNA, 0, 0x7f800000}, {TYPE_TF32, 3.4028235e38, ROUND_RNA, 1, 0x7f7fe000},
        {TYPE_F32, 1e300, ROUND_RN, 0, 0x7f800000}, {TYPE_F32, 1e300, ROUND_RZ, 0, 0x7f7fffff},
        {TYPE_F32, 1e-300, ROUND_RP, 0, 1},         {TYPE_F32, -1e-300, ROUND_RM, 0, 0x80000001}, {TYPE_F32, -1e-300, ROUND_RN, 0, 0x80000000},
    };
    for (size_t r = 0; r < COUNT(rows); r++) {
        uint64_t got = format_encode(format_of(rows[r].type), number_of(rows[r].value), rows[r].rounding, rows[r].saturate);
        if (got != rows[r].expected) fail_msg("row %zu gives 0x%llx", r, (unsigned long long)got);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pattern_decodes_and_returns),
        cmocka_unit_test(the_inline_decoders_agree),
        cmocka_unit_test(encoding_rounds_between_neighbours),
        cmocka_unit_test(overflow_by_hand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
