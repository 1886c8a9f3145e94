/* src/swgpu/ops_compare.c: setp and set for every type and operator, and for those that do not exist; selp, slct. The oracle of
 * comparisons makes an integer key of a value, in the order of the values, and never computes with floating numbers. Runs once
 * for each opcode table that this processor can execute. */
#include "swgpu_fixture.h"

static uint64_t random_state = 0x2545f4914f6cdd1d;
static uint64_t random64(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    return random_state ^= random_state << 17;
}
static uint32_t random_mask(unsigned round) { return round % 2 ? (uint32_t)random64() | 1u << random64() % 32 : FULL_MASK; }
static int bit(uint64_t x, unsigned n) { return (int)(x >> n & 1); }
static uint64_t cut(uint64_t x, unsigned bits) { return bits == 64 ? x : x & ((1ull << bits) - 1); }
static char letter(unsigned bits) { return bits == 64 ? 'd' : bits == 16 ? 'h' : 'r'; }

static void put(uint32_t slot, unsigned bits, unsigned lane, uint64_t x)
{
    if (bits == 64) fixture_set64(slot, lane, x);
    else fixture_set32(slot, lane, (uint32_t)cut(x, bits));
}
static uint64_t get(uint32_t slot, unsigned bits, unsigned lane)
{
    return bits == 64 ? fixture_get64(slot, lane) : fixture_get32(slot, lane);
}

/* ---- types: bits of a value, of which `fraction` belong to a floating one's fraction */

static const struct kind {
    const char *name;
    char class; /* b, u, s or f */
    unsigned bits, fraction, parts;
    int ftz;
} kinds[] = {
    {"b16", 'b', 16, 0, 1, 0}, {"b32", 'b', 32, 0, 1, 0}, {"b64", 'b', 64, 0, 1, 0}, {"u16", 'u', 16, 0, 1, 0},
    {"u32", 'u', 32, 0, 1, 0}, {"u64", 'u', 64, 0, 1, 0}, {"s16", 's', 16, 0, 1, 0}, {"s32", 's', 32, 0, 1, 0},
    {"s64", 's', 64, 0, 1, 0}, {"f16", 'f', 16, 10, 1, 1}, {"bf16", 'f', 16, 7, 1, 0}, {"f32", 'f', 32, 23, 1, 1},
    {"f64", 'f', 64, 52, 1, 0}, {"f16x2", 'f', 16, 10, 2, 1}, {"bf16x2", 'f', 16, 7, 2, 0}};
#define KINDS (sizeof kinds / sizeof *kinds)

static unsigned register_bits(const struct kind *k) { return k->bits * k->parts; }

/* Operators, the classes that have them, and for which relations they are true: less, equal, greater, unordered. */
static const struct operator { const char *name, *classes; int less, equal, greater, unordered; } operators[] = {
    {"eq", "busf", 0, 1, 0, 0}, {"ne", "busf", 1, 0, 1, 0}, {"lt", "usf", 1, 0, 0, 0}, {"le", "usf", 1, 1, 0, 0},
    {"gt", "usf", 0, 0, 1, 0}, {"ge", "usf", 0, 1, 1, 0}, {"lo", "u", 1, 0, 0, 0}, {"ls", "u", 1, 1, 0, 0},
    {"hi", "u", 0, 0, 1, 0}, {"hs", "u", 0, 1, 1, 0}, {"equ", "f", 0, 1, 0, 1}, {"neu", "f", 1, 0, 1, 1},
    {"ltu", "f", 1, 0, 0, 1}, {"leu", "f", 1, 1, 0, 1}, {"gtu", "f", 0, 0, 1, 1}, {"geu", "f", 0, 1, 1, 1},
    {"num", "f", 1, 1, 1, 0}, {"nan", "f", 0, 0, 0, 1}};
#define OPERATORS (sizeof operators / sizeof *operators)

/* ---- the oracle */

static int is_nan(const struct kind *k, uint64_t x)
{
    uint64_t magnitude = x & ((1ull << (k->bits - 1)) - 1), infinity = ((1ull << (k->bits - 1 - k->fraction)) - 1) << k->fraction;
    return k->class == 'f' && magnitude > infinity;
}

/* Signed and in order; unsigned values are moved down by half their range. */
static int64_t key(const struct kind *k, uint64_t x, int ftz)
{
    uint64_t top = 1ull << (k->bits - 1), magnitude = x & (top - 1);
    if (k->class == 'f') {
        if (ftz && magnitude < 1ull << k->fraction) magnitude = 0;
        return x & top ? -(int64_t)magnitude : (int64_t)magnitude;
    }
    if (k->class == 's') return (int64_t)(x & top ? x | ~(top - 1) : x);
    return (int64_t)(x ^ 1ull << 63);
}

static int holds(const struct kind *k, const struct operator *o, uint64_t a, uint64_t b, int ftz)
{
    if (is_nan(k, a) || is_nan(k, b)) return o->unordered;
    int64_t x = key(k, a, ftz), y = key(k, b, ftz);
    return x < y ? o->less : x == y ? o->equal : o->greater;
}

static int combined(unsigned with, int t, int c) { return with == 1 ? t && c : with == 2 ? t || c : with == 3 ? t != c : t; }

/* ---- values worth comparing */

static uint64_t value_of(const struct kind *k)
{
    uint64_t x = random64(), top = 1ull << (k->bits - 1), one = 1ull << k->fraction, infinity = (top - 1) & ~(one - 1);
    if (k->class != 'f') {
        const uint64_t edges[] = {0, 1, ~0ull, ~1ull, top, top - 1, top + 1, 2};
        return cut(x % 3 ? edges[x / 3 % 8] : x >> 8, k->bits);
    }
    const uint64_t edges[] = {
        0, 1, one - 1, one, infinity, infinity - 1, infinity + 1, infinity + (one >> 1), top - 1, infinity >> 1, one + 1, 2};
    return cut(x % 4 ? edges[x / 4 % 12] | (x >> 32 & 1 ? top : 0) : x >> 8, k->bits);
}

static uint64_t operands[2][PTX_LANES];

/* Slots 50 and 60; every other pair is of equal values. */
static void fill(const struct kind *k)
{
    for (unsigned lane = 0; lane < PTX_LANES; lane++) {
        for (unsigned n = 0; n < 2; n++) {
            operands[n][lane] = value_of(k);
            if (k->parts == 2) operands[n][lane] |= value_of(k) << 16;
        }
        if (random64() % 4 == 0) operands[1][lane] = operands[0][lane];
        put(50, register_bits(k), lane, operands[0][lane]);
        put(60, register_bits(k), lane, operands[1][lane]);
    }
}

static int expected_of(const struct kind *k, const struct operator *o, unsigned part, unsigned lane, int ftz)
{
    unsigned shift = 16 * part;
    return holds(k, o, cut(operands[0][lane] >> shift, k->bits), cut(operands[1][lane] >> shift, k->bits), ftz);
}

static const char *const bools[] = {"", ".and", ".or", ".xor"};

/* ---- setp */

static void check_setp(const char *text, const struct kind *k, const struct operator *o, unsigned with, int pair, int negate,
                       int ftz)
{
    if (!fixture_bind(text)) fail_msg("refused: %s", text);
    for (unsigned round = 0; round < 6; round++) {
        uint32_t before[2] = {(uint32_t)random64(), (uint32_t)random64()}, c = (uint32_t)random64(), mask = random_mask(round);
        fill(k);
        fixture_set_predicate(40, before[0]), fixture_set_predicate(41, before[1]), fixture_set_predicate(42, c);
        assert_int_equal(fixture_again(mask), 0);
        for (unsigned lane = 0; lane < PTX_LANES; lane++) {
            int t = expected_of(k, o, 0, lane, ftz), u = k->parts == 2 ? expected_of(k, o, 1, lane, ftz) : !t,
                third = bit(c, lane) ^ negate;
            int inside = bit(mask, lane), p = inside ? combined(with, t, third) : bit(before[0], lane);
            int q = inside && pair ? combined(with, u, third) : bit(before[1], lane);
            if (bit(fixture_get_predicate(40), lane) != p || bit(fixture_get_predicate(41), lane) != q)
                fail_msg("%s, mask %08x: wrong for 0x%llx and 0x%llx", text, mask, (unsigned long long)operands[0][lane],
                         (unsigned long long)operands[1][lane]);
        }
    }
}

static void setp_of_every_type_and_operator(void **state)
{
    (void)state;
    fixture_reset();
    for (unsigned n = 0; n < KINDS * OPERATORS * 2; n++) {
        const struct kind *k = &kinds[n % KINDS];
        const struct operator *o = &operators[n / KINDS % OPERATORS];
        int ftz = n >= KINDS * OPERATORS, possible = strchr(o->classes, k->class) && ftz <= k->ftz;
        for (unsigned with = 0; with < 16; with++) {
            int pair = with / 4 % 2, negate = with / 8;
            char text[96], r = letter(register_bits(k));
            if (with % 4 == 0 && negate) continue;
            sprintf(text, "setp.%s%s%s.%s p40%s, %c50, %c60%s", o->name, ftz ? ".ftz" : "", bools[with % 4], k->name,
                    pair ? "|p41" : "", r, r, with % 4 == 0 ? "" : negate ? ", !p42" : ", p42");
            if (possible && !(pair && k->class == 'f' && k->bits == 16 && k->parts == 1))
                check_setp(text, k, o, with % 4, pair, negate, ftz);
            else if (fixture_bind(text)) fail_msg("accepted: %s", text);
        }
    }
}

/* The destination of a predicate may be a source too, either of a pair may be unwanted, and a source immediate. */
static void setp_destinations(void **state)
{
    (void)state;
    fixture_reset();
    for (unsigned lane = 0; lane < PTX_LANES; lane++) fixture_set32(50, lane, lane);
    fixture_set_predicate(42, 0x0ff00ff0);
    fixture_run("setp.lt.and.u32 p42|p43, r50, #16, p42", 0x00ff00ff);
    assert_int_equal(fixture_get_predicate(42), 0x0f000ff0);
    assert_int_equal(fixture_get_predicate(43), 0x00f00000);
    fixture_set_predicate(44, 0x12345678);
    fixture_run("setp.lt.u32 _|p44, r50, #8", FULL_MASK);
    assert_int_equal(fixture_get_predicate(44), 0xffffff00);
    fixture_run("setp.lt.u32 p44|_, r50, #8", FULL_MASK);
    assert_int_equal(fixture_get_predicate(44), 0x000000ff);
    fixture_run("setp.lt.or.u32 p44, r50, #8, #p1", FULL_MASK);
    assert_int_equal(fixture_get_predicate(44), FULL_MASK);
}

/* ---- set */

static const struct target { const char *name; unsigned bits; uint32_t yes; const char *sources; } targets[] = {
    {"u32", 32, 0xffffffff, "b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64 f16 bf16"},
    {"s32", 32, 0xffffffff, "b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64 f16 bf16"},
    {"f32", 32, 0x3f800000, "b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64"},
    {"f16", 16, 0x3c00, "b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64 f16"},
    {"bf16", 16, 0x3f80, "b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64 f16 bf16"},
    {"u16", 16, 0xffff, "f16 bf16"}, {"s16", 16, 0xffff, "f16 bf16"}, {"f16x2", 32, 0x3c00, "f16x2"},
    {"bf16x2", 32, 0x3f80, "bf16x2"}, {"u64", 64, 0, ""}, {"f64", 64, 0, ""}, {"b32", 32, 0, ""}};

static void check_set(const char *text, const struct kind *k, const struct operator *o, const struct target *t, unsigned with,
                      int ftz)
{
    if (!fixture_bind(text)) fail_msg("refused: %s", text);
    uint32_t yes = k->parts == 2 ? t->yes & 0xffff : t->yes;
    for (unsigned round = 0; round < 4; round++) {
        uint32_t c = (uint32_t)random64(), mask = random_mask(round);
        fill(k);
        fixture_set_predicate(42, c);
        for (unsigned lane = 0; lane < PTX_LANES; lane++) fixture_set32(40, lane, 0x1234 + lane);
        assert_int_equal(fixture_again(mask), 0);
        for (unsigned lane = 0; lane < PTX_LANES; lane++) {
            uint32_t expected = 0;
            for (unsigned part = 0; part < k->parts; part++)
                if (combined(with, expected_of(k, o, part, lane, ftz), !bit(c, lane))) expected |= yes << (16 * part);
            if (!bit(mask, lane)) expected = 0x1234 + lane;
            if (fixture_get32(40, lane) != expected)
                fail_msg("%s: 0x%x instead of 0x%x for 0x%llx and 0x%llx", text, fixture_get32(40, lane), expected,
                         (unsigned long long)operands[0][lane], (unsigned long long)operands[1][lane]);
        }
    }
}

static int listed(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = list; (at = strstr(at, word)); at += length)
        if ((at == list || at[-1] == ' ') && (!at[length] || at[length] == ' ')) return 1;
    return 0;
}

static void set_of_every_type_and_operator(void **state)
{
    (void)state;
    fixture_reset();
    for (unsigned n = 0; n < KINDS * OPERATORS * 2; n++) {
        const struct kind *k = &kinds[n % KINDS];
        const struct operator *o = &operators[n / KINDS % OPERATORS];
        int ftz = n >= KINDS * OPERATORS, possible = strchr(o->classes, k->class) && ftz <= k->ftz;
        for (size_t m = 0; m < sizeof targets / sizeof *targets; m++) {
            const struct target *t = &targets[m];
            int is_word = t->bits == 32 && (t->name[0] == 'u' || t->name[0] == 's');
            int known = listed(t->sources, k->name) || (k->parts == 2 && is_word);
            unsigned with = (n + (unsigned)m) % 4;
            char text[96], r = letter(register_bits(k));
            sprintf(text, "set.%s%s%s.%s.%s %c40, %c50, %c60%s", o->name, ftz ? ".ftz" : "", bools[with], t->name, k->name,
                    letter(t->bits), r, r, with ? ", !p42" : "");
            if (possible && known) check_set(text, k, o, t, with, ftz);
            else if (fixture_bind(text)) fail_msg("accepted: %s", text);
        }
    }
}

/* ---- selp, slct */

static void selp_takes_either(void **state)
{
    (void)state;
    static const char *const types[] = {"b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64", "f32", "f64"};
    fixture_reset();
    for (unsigned n = 0; n < 11 * 8; n++) {
        unsigned bits = (unsigned)atoi(types[n % 11] + 1), negate = n / 11 % 2, immediate = n / 22 % 2, same = n / 44;
        uint32_t p = (uint32_t)random64(), mask = random_mask(n / 3);
        uint64_t before[PTX_LANES], a[PTX_LANES], b[PTX_LANES];
        char text[96], r = letter(bits), first[8];
        sprintf(first, "%c50", r);
        sprintf(text, "selp.%s %c%d, %s, %c60, %sp42", types[n % 11], r, same ? 60 : 40, immediate ? "#-5" : first, r,
                negate ? "!" : "");
        if (!fixture_bind(text)) fail_msg("refused: %s", text);
        fixture_set_predicate(42, p);
        for (unsigned lane = 0; lane < PTX_LANES; lane++) {
            put(40, bits, lane, random64()), put(50, bits, lane, random64()), put(60, bits, lane, random64());
            before[lane] = get(same ? 60 : 40, bits, lane), b[lane] = get(60, bits, lane);
            a[lane] = immediate ? cut((uint64_t)-5, bits) : get(50, bits, lane);
        }
        assert_int_equal(fixture_again(mask), 0);
        for (unsigned lane = 0; lane < PTX_LANES; lane++) {
            uint64_t expected = !bit(mask, lane) ? before[lane] : bit(p, lane) != (int)negate ? a[lane] : b[lane];
            assert_true(get(same ? 60 : 40, bits, lane) == expected);
        }
    }
}

static void slct_looks_at_the_sign(void **state)
{
    (void)state;
    static const struct { uint32_t c; int as_integer, as_float, as_ftz; } cases[] = {
        {0, 1, 1, 1}, {0x80000000, 0, 1, 1}, {1, 1, 1, 1}, {0x80000001, 0, 0, 1}, {0x807fffff, 0, 0, 1}, {0x80800000, 0, 0, 0},
        {0x7f800000, 1, 1, 1}, {0xff800000, 0, 0, 0}, {0x7fc00000, 1, 0, 0}, {0x7f800001, 1, 0, 0}, {0xffc00000, 0, 0, 0},
        {0xffffffff, 0, 0, 0}, {0x3f800000, 1, 1, 1}, {0xbf800000, 0, 0, 0}};
    static const char *const types[] = {"b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64", "f32", "f64"};
    fixture_reset();
    for (unsigned n = 0; n < 33; n++) {
        unsigned bits = (unsigned)atoi(types[n % 11] + 1);
        char text[96], r = letter(bits);
        sprintf(text, "slct%s.%s.%s %c40, %c50, %c60, r70", n / 11 == 2 ? ".ftz" : "", types[n % 11], n / 11 ? "f32" : "s32", r,
                r, r);
        if (!fixture_bind(text)) fail_msg("refused: %s", text);
        for (unsigned lane = 0; lane < PTX_LANES; lane++) {
            put(40, bits, lane, 77), put(50, bits, lane, random64()), put(60, bits, lane, random64());
            fixture_set32(70, lane, cases[lane % 14].c);
        }
        assert_int_equal(fixture_again(0x0fffffff), 0);
        for (unsigned lane = 0; lane < PTX_LANES; lane++) {
            const int answers[] = {cases[lane % 14].as_integer, cases[lane % 14].as_float, cases[lane % 14].as_ftz};
            int first = answers[n / 11];
            assert_true(get(40, bits, lane) == (lane >= 28 ? 77 : get(first ? 50 : 60, bits, lane)));
        }
    }
    fixture_set64(50, 3, 11), fixture_set64(60, 3, 22);
    fixture_run("slct.b64.s32 d40, d50, d60, #n-1", 8);
    assert_int_equal(fixture_get64(40, 3), 22);
}

static void impossible_comparisons_are_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "setp.s32 p40, r50, r60", "setp.eq.s32 p40, r50, r60, p42", "setp.eq.and.s32 p40, r50, r60",
        "setp.eq.s32 p40, r50, d60", "setp.eq.s64 p40, r50, r60", "setp.eq.s32 r40, r50, r60", "setp.eq.s32 _, r50, r60",
        "setp.eq.and.s32 p40, r50, r60, r42", "setp.eq.s32 {p40, p41, p42}, r50, r60", "setp.eq.f64 p40, r50, r60",
        "setp.eq.s32 p40, !r50, r60", "set.eq.u32 r40, r50, r60", "set.eq.u32.s32 d40, r50, r60",
        "set.eq.u32.s32 r40|p41, r50, r60", "set.eq.s32.s32 _, r50, r60", "selp.f16 h40, h50, h60, p42",
        "selp.b32 r40, r50, r60, r42", "selp.b32 r40, r50, d60, p42", "selp.b64 d40, d50, r60, p42",
        "slct.f16.s32 h40, h50, h60, r70", "slct.ftz.u32.s32 r40, r50, r60, r70", "slct.u32.u32 r40, r50, r60, r70",
        "slct.u32.f64 r40, r50, r60, d70", "slct.u32 r40, r50, r60, r70"};
    fixture_reset();
    for (size_t n = 0; n < sizeof texts / sizeof *texts; n++)
        if (fixture_bind(texts[n])) fail_msg("accepted: %s", texts[n]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(setp_of_every_type_and_operator), cmocka_unit_test(setp_destinations),
        cmocka_unit_test(set_of_every_type_and_operator),  cmocka_unit_test(selp_takes_either),
        cmocka_unit_test(slct_looks_at_the_sign),          cmocka_unit_test(impossible_comparisons_are_refused),
    };
    int failed = 0;
    for (unsigned table = 0; table < fixture_tables(); table++) {
        fixture_use_table(table);
        failed |= cmocka_run_group_tests(tests, NULL, NULL);
    }
    return failed;
}
