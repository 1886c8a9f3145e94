/* src/swgpu/ops_warp.c and ops_move.c: exchange between lanes for whole and partial masks, also with several sets of
 * members at once, against oracles that go lane by lane; moves, addresses, movmatrix; and which forms of the control
 * instructions are accepted. Runs once for each opcode table that this processor can execute. */
#include "swgpu_fixture.h"

static uint64_t random_state = 0xd1342543de82ef95;
static uint64_t random64(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    return random_state ^= random_state << 17;
}
static int bit(uint64_t x, unsigned n) { return (int)(x >> n & 1); }

/* What the lanes hold: the destination's old value, the source, and who counts for each lane. */
static struct {
    uint32_t mask, old[PTX_LANES], old_predicate, predicate, named[PTX_LANES];
    uint64_t value[PTX_LANES];
} in;

/* Slots: 40 destination, 42 its predicate, 44 source, 46 b, 48 c, 50 members, 52 source predicate. Round by round: the
 * whole warp, some lanes that name themselves, and two sets that execute together. */
static void fill(unsigned round, unsigned value_bits, uint64_t values)
{
    uint32_t split = (uint32_t)random64();
    in.mask = round % 4 == 0 ? FULL_MASK : (uint32_t)random64() | 1u << random64() % 32;
    in.old_predicate = (uint32_t)random64();
    in.predicate = round % 3 == 0 ? (uint32_t)random64() : round % 3 == 1 ? FULL_MASK : 0;
    if (random64() % 4 == 0) in.predicate ^= 1u << random64() % 32;
    for (unsigned lane = 0; lane < PTX_LANES; lane++) {
        in.old[lane] = (uint32_t)random64();
        in.value[lane] = values ? random64() % values : random64();
        if (value_bits == 32) in.value[lane] &= 0xffffffff;
        in.named[lane] = in.mask;
        if (round % 4 == 2) in.named[lane] |= 0x10101010;
        if (round % 4 == 3) in.named[lane] &= bit(split, lane) ? split : ~split;
        fixture_set32(40, lane, in.old[lane]);
        if (value_bits == 64) fixture_set64(44, lane, in.value[lane]);
        else fixture_set32(44, lane, (uint32_t)in.value[lane]);
        fixture_set32(50, lane, in.named[lane]);
    }
    fixture_set_predicate(42, in.old_predicate);
    fixture_set_predicate(52, in.predicate);
}

static int counts(unsigned lane, unsigned other) { return bit(in.mask, other) && bit(in.named[lane], other); }

/* The result of the lanes in the mask; the others keep what they had. */
static void expect(const char *text, unsigned lane, uint32_t value, int predicate)
{
    uint32_t want = bit(in.mask, lane) ? value : in.old[lane];
    int want_predicate = bit(in.mask, lane) ? predicate : bit(in.old_predicate, lane);
    if (fixture_get32(40, lane) != want || bit(fixture_get_predicate(42), lane) != want_predicate)
        fail_msg("%s, mask %08x, lane %u: 0x%x|%d instead of 0x%x|%d", text, in.mask, lane, fixture_get32(40, lane),
                 bit(fixture_get_predicate(42), lane), want, want_predicate);
}

/* ---- shfl */

static const char *const modes[] = {"up", "down", "bfly", "idx"};

/* As the CUDA functions explain it: segments of `width` lanes; -1 for a source beyond the lane's own segment. */
static int source_in_segments(unsigned mode, int lane, int b, int width)
{
    int base = lane / width * width, source;
    switch (mode) {
    case 0: source = lane - b; return source >= base ? source : -1;
    case 1: source = lane + b; return source < base + width ? source : -1;
    case 2: source = lane ^ b; return source < base + width ? source : -1;
    default: return base + b % width;
    }
}

static void shfl_within_segments(void **state)
{
    (void)state;
    fixture_reset();
    for (unsigned round = 0; round < 4 * 6 * 64; round++) {
        unsigned mode = round % 4, width = 1u << round / 4 % 6, ways = round / 24 % 2;
        char text[96];
        sprintf(text, "shfl.sync.%s.b32 r40%s, r44, r46, r48, r50", modes[mode], ways ? "|p42" : "");
        if (!fixture_bind(text)) fail_msg("refused: %s", text);
        fill(round / 48, 32, 0);
        uint32_t b[PTX_LANES];
        for (unsigned lane = 0; lane < PTX_LANES; lane++) {
            b[lane] = round % 7 ? (uint32_t)random64() % 32 : round / 24 % 32;
            fixture_set32(46, lane, b[lane] | (uint32_t)(random64() << 5));
            fixture_set32(48, lane, (32 - width) << 8 | (mode == 0 ? 0 : 31) | (uint32_t)(random64() & 0xffffe0e0));
        }
        assert_int_equal(fixture_again(in.mask), 0);
        for (unsigned lane = 0; lane < PTX_LANES; lane++) {
            int source = source_in_segments(mode, (int)lane, (int)b[lane], (int)width), from = source < 0 ? (int)lane : source;
            uint32_t value = from == (int)lane || counts(lane, (unsigned)from) ? (uint32_t)in.value[from] : 0;
            expect(text, lane, value, ways ? source >= 0 : bit(in.old_predicate, lane));
        }
    }
}

/* The clamp may be any lane, and the segments' mask any bits. */
static void shfl_with_any_limit(void **state)
{
    (void)state;
    fixture_reset();
    for (unsigned round = 0; round < 4000; round++) {
        unsigned mode = round % 4;
        char text[96];
        sprintf(text, "shfl.sync.%s.b32 r40|p42, r44, r46, r48, #-1", modes[mode]);
        if (!fixture_bind(text)) fail_msg("refused: %s", text);
        fill(0, 32, 0);
        uint32_t b = (uint32_t)random64(), c = (uint32_t)random64();
        for (unsigned lane = 0; lane < PTX_LANES; lane++) fixture_set32(46, lane, b), fixture_set32(48, lane, c);
        assert_int_equal(fixture_again(in.mask), 0);
        for (unsigned lane = 0; lane < PTX_LANES; lane++) {
            int limit = 0, start = 0, distance = (int)(b % 32), source = 0;
            for (unsigned n = 0; n < 5; n++) {
                int fixed = bit(c, n + 8);
                limit += (fixed ? bit(lane, n) : bit(c, n)) << n;
                start += (fixed ? bit(lane, n) : bit(b, n)) << n;
            }
            if (mode == 0) source = (int)lane - distance;
            if (mode == 1) source = (int)lane + distance;
            if (mode == 2) source = (int)lane ^ distance;
            if (mode == 3) source = start;
            int good = mode == 0 ? source >= limit : source <= limit;
            expect(text, lane, (uint32_t)in.value[good ? source : (int)lane], good);
        }
    }
}

/* The destination may be any of the sources. */
static void shfl_in_place(void **state)
{
    (void)state;
    for (unsigned slot = 44; slot <= 50; slot += 2) {
        char text[96];
        fixture_reset();
        for (unsigned lane = 0; lane < PTX_LANES; lane++) {
            fixture_set32(44, lane, 100 + lane), fixture_set32(46, lane, 31 - lane), fixture_set32(48, lane, 31);
            fixture_set32(50, lane, FULL_MASK);
        }
        sprintf(text, "shfl.sync.idx.b32 r%u, r44, r46, r48, r50", slot);
        fixture_run(text, FULL_MASK);
        for (unsigned lane = 0; lane < PTX_LANES; lane++) assert_int_equal(fixture_get32(slot, lane), 131 - lane);
    }
}

/* ---- vote, match, redux */

static void vote_counts_members(void **state)
{
    (void)state;
    static const char *const kinds[] = {"all", "any", "uni", "ballot"};
    fixture_reset();
    for (unsigned round = 0; round < 3200; round++) {
        unsigned kind = round % 4, negate = round / 4 % 2;
        char text[96];
        sprintf(text, "vote.sync.%s.%s %s, %sp52, r50", kinds[kind], kind == 3 ? "b32" : "pred", kind == 3 ? "r40" : "p42",
                negate ? "!" : "");
        if (!fixture_bind(text)) fail_msg("refused: %s", text);
        fill(round / 8, 32, 0);
        assert_int_equal(fixture_again(in.mask), 0);
        for (unsigned lane = 0; lane < PTX_LANES; lane++) {
            uint32_t yes = 0, no = 0;
            for (unsigned other = 0; other < PTX_LANES; other++) {
                if (!counts(lane, other)) continue;
                if (bit(in.predicate, other) != (int)negate) yes |= 1u << other;
                else no |= 1u << other;
            }
            int result = kind == 0 ? !no : kind == 1 ? yes != 0 : !yes || !no;
            if (kind == 3) expect(text, lane, yes, bit(in.old_predicate, lane));
            else expect(text, lane, in.old[lane], result);
        }
    }
}

static void match_finds_equal_values(void **state)
{
    (void)state;
    fixture_reset();
    for (unsigned round = 0; round < 2400; round++) {
        unsigned all = round % 2, bits = round / 2 % 2 ? 64 : 32, pair = all && round / 4 % 2;
        uint64_t values = 1 + round / 8 % 3;
        char text[96];
        sprintf(text, "match.%s.sync.b%u r40%s, %c44, r50", all ? "all" : "any", bits, pair ? "|p42" : "",
                bits == 64 ? 'd' : 'r');
        if (!fixture_bind(text)) fail_msg("refused: %s", text);
        fill(round / 8, bits, values);
        /* Values that differ only in their highest bit, now and then. */
        unsigned odd = (unsigned)random64() % 32;
        if (round % 5 == 0 && bits == 64) fixture_set64(44, odd, in.value[odd] ^= 1ull << 63);
        assert_int_equal(fixture_again(in.mask), 0);
        for (unsigned lane = 0; lane < PTX_LANES; lane++) {
            uint32_t same = 0;
            int different = 0;
            for (unsigned other = 0; other < PTX_LANES; other++) {
                if (!counts(lane, other)) continue;
                if (in.value[other] == in.value[lane]) same |= 1u << other;
                else different = 1;
            }
            expect(text, lane, all && different ? 0 : same, pair ? !different : bit(in.old_predicate, lane));
        }
    }
    for (unsigned lane = 0; lane < PTX_LANES; lane++) fixture_set32(44, lane, 5);
    fixture_set_predicate(42, 0);
    fixture_run("match.all.sync.b32 _|p42, r44, #-1", FULL_MASK);
    assert_int_equal(fixture_get_predicate(42), FULL_MASK);
}

static uint64_t reduced(const char *operation, uint64_t a, uint64_t b)
{
    if (!strcmp(operation, "add.u32") || !strcmp(operation, "add.s32")) return (a + b) % 0x100000000;
    if (!strcmp(operation, "min.u32")) return a < b ? a : b;
    if (!strcmp(operation, "max.u32")) return a > b ? a : b;
    if (!strcmp(operation, "min.s32")) return (a ^ 0x80000000) < (b ^ 0x80000000) ? a : b;
    if (!strcmp(operation, "max.s32")) return (a ^ 0x80000000) > (b ^ 0x80000000) ? a : b;
    uint64_t result = 0;
    for (unsigned n = 0; n < 32; n++) {
        int both = bit(a, n) + bit(b, n);
        int on = operation[0] == 'a' ? both == 2 : operation[0] == 'o' ? both > 0 : both == 1;
        result |= (uint64_t)on << n;
    }
    return result;
}

static void redux_reduces_members(void **state)
{
    (void)state;
    static const char *const operations[] = {"add.u32", "add.s32", "min.u32", "max.u32", "min.s32",
                                             "max.s32", "and.b32", "or.b32",  "xor.b32"};
    fixture_reset();
    for (unsigned round = 0; round < 9 * 200; round++) {
        const char *operation = operations[round % 9];
        char text[96];
        int in_place = round / 9 % 3 == 0;
        sprintf(text, "redux.sync.%s r%u, r44, r50", operation, in_place ? 44 : 40);
        if (!fixture_bind(text)) fail_msg("refused: %s", text);
        fill(round / 9, 32, round % 2 ? 0 : 3);
        assert_int_equal(fixture_again(in.mask), 0);
        for (unsigned lane = 0; lane < PTX_LANES; lane++) {
            uint64_t result = 0;
            int any = 0;
            for (unsigned other = PTX_LANES; other-- > 0;) {
                if (!counts(lane, other)) continue;
                result = any ? reduced(operation, result, in.value[other]) : in.value[other];
                any = 1;
            }
            if (in_place) {
                assert_int_equal(fixture_get32(44, lane), bit(in.mask, lane) ? result : in.value[lane]);
                fixture_set32(40, lane, bit(in.mask, lane) ? (uint32_t)result : in.old[lane]);
            }
            expect(text, lane, (uint32_t)result, bit(in.old_predicate, lane));
        }
    }
}

/* ---- moves */

static void mov_copies(void **state)
{
    (void)state;
    static const char *const types[] = {"b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64", "f32", "f64"};
    fixture_reset();
    for (unsigned n = 0; n < 11 * 8; n++) {
        unsigned bits = (unsigned)atoi(types[n % 11] + 1), immediate = n / 11 % 2;
        uint64_t value = random64() | 1ull << 63 | 1u << 31 | 1u << 15, cut = bits == 64 ? value : value & ((1ull << bits) - 1);
        uint32_t mask = n / 44 ? (uint32_t)random64() | 1 : FULL_MASK;
        char text[96], r = bits == 64 ? 'd' : bits == 16 ? 'h' : 'r', source[40];
        if (immediate) sprintf(source, "#0x%llx", (unsigned long long)value);
        else sprintf(source, "%c50", r);
        sprintf(text, "mov.%s %c40, %s", types[n % 11], r, source);
        if (!fixture_bind(text)) fail_msg("refused: %s", text);
        for (unsigned lane = 0; lane < PTX_LANES; lane++) {
            if (bits == 64) fixture_set64(40, lane, lane), fixture_set64(50, lane, cut + lane);
            else fixture_set32(40, lane, lane), fixture_set32(50, lane, (uint32_t)cut - lane % 16);
        }
        assert_int_equal(fixture_again(mask), 0);
        for (unsigned lane = 0; lane < PTX_LANES; lane++) {
            uint64_t got = bits == 64 ? fixture_get64(40, lane) : fixture_get32(40, lane);
            uint64_t given = immediate ? cut : bits == 64 ? cut + lane : (uint32_t)cut - lane % 16;
            assert_true(got == (bit(mask, lane) ? given : lane));
        }
    }
    for (unsigned lane = 0; lane < PTX_LANES; lane++) fixture_set32(SPECIAL_TID_X, lane, 0x12340000 + lane);
    char text[64];
    sprintf(text, "mov.u32 r40, r%u", SPECIAL_TID_X);
    fixture_run(text, FULL_MASK);
    for (unsigned lane = 0; lane < PTX_LANES; lane++) assert_int_equal(fixture_get32(40, lane), 0x12340000 + lane);
}

static void mov_of_predicates(void **state)
{
    (void)state;
    static const struct { const char *text; uint32_t expected; } cases[] = {
        {"mov.pred p40, p41", 0xaaaa5678}, {"mov.pred p40, !p41", 0xaaaaa987}, {"mov.pred p40, #p1", 0xaaaaffff},
        {"mov.pred p40, #p0", 0xaaaa0000}};
    fixture_reset();
    for (size_t n = 0; n < 4; n++) {
        fixture_set_predicate(40, 0xaaaaaaaa), fixture_set_predicate(41, 0x12345678);
        fixture_run(cases[n].text, 0x0000ffff);
        assert_int_equal(fixture_get_predicate(40), cases[n].expected);
    }
}

/* Packing and unpacking: `parts` elements of `width` bits in slots 50, 52, ...; element `odd` is _ or an immediate. */
static void check_parts(unsigned parts, unsigned width, int odd, uint32_t mask)
{
    unsigned whole = parts * width;
    char vector[64] = "", text[128], r = "bhrd"[whole / 16 - (whole == 64)], e = "bhr"[width / 16];
    for (int unpack = 0; unpack < 2; unpack++) {
        char *at = vector;
        for (unsigned k = 0; k < parts; k++) {
            if ((int)k != odd) at += sprintf(at, "%s%c%u", k ? ", " : "", e, 50 + 2 * k);
            else at += sprintf(at, "%s%s", k ? ", " : "", unpack ? "_" : "#-3");
        }
        if (unpack) sprintf(text, "mov.b%u {%s}, %c40", whole, vector, r);
        else sprintf(text, "mov.b%u %c40, {%s}", whole, r, vector);
        if (!fixture_bind(text)) fail_msg("refused: %s", text);
        uint64_t from[PTX_LANES], part_mask = (1ull << width) - 1;
        for (unsigned lane = 0; lane < PTX_LANES; lane++) {
            from[lane] = whole == 64 ? random64() : random64() & ((1ull << whole) - 1);
            if (!unpack && odd >= 0) {
                unsigned shift = (unsigned)odd * width;
                from[lane] = (from[lane] & ~(part_mask << shift)) | ((uint64_t)-3 & part_mask) << shift;
            }
            for (unsigned k = 0; k < parts; k++)
                fixture_set32(50 + 2 * k, lane, unpack ? 9 : (uint32_t)(from[lane] >> (k * width) & part_mask));
            if (whole == 64) fixture_set64(40, lane, unpack ? from[lane] : 7);
            else fixture_set32(40, lane, unpack ? (uint32_t)from[lane] : 7);
        }
        assert_int_equal(fixture_again(mask), 0);
        for (unsigned lane = 0; lane < PTX_LANES; lane++) {
            uint64_t got = whole == 64 ? fixture_get64(40, lane) : fixture_get32(40, lane);
            if (!unpack) assert_true(got == (bit(mask, lane) ? from[lane] : 7));
            for (unsigned k = 0; unpack && k < parts; k++) {
                uint32_t expected = bit(mask, lane) && (int)k != odd ? (uint32_t)(from[lane] >> (k * width) & part_mask) : 9;
                assert_int_equal(fixture_get32(50 + 2 * k, lane), expected);
            }
        }
    }
}

static void mov_packs_and_unpacks(void **state)
{
    (void)state;
    static const unsigned shapes[][2] = {{2, 8}, {2, 16}, {2, 32}, {4, 8}, {4, 16}};
    fixture_reset();
    for (size_t n = 0; n < 5; n++)
        for (int odd = -1; odd < (int)shapes[n][0]; odd++)
            for (unsigned round = 0; round < 2; round++)
                check_parts(shapes[n][0], shapes[n][1], odd, round ? 0x80f0f00e : FULL_MASK);
}

static void addresses_and_windows(void **state)
{
    (void)state;
    static const struct { const char *space; uint64_t window; } spaces[] = {
        {"shared", SHARED_WINDOW}, {"local", LOCAL_WINDOW}, {"global", 0}, {"const", 0}, {"param", 0}};
    fixture_reset();
    for (size_t n = 0; n < 5; n++) {
        char text[64];
        for (unsigned lane = 0; lane < PTX_LANES; lane++)
            fixture_set64(50, lane, 1024 + 4 * lane), fixture_set64(40, lane, 3), fixture_set32(60, lane, lane);
        sprintf(text, "cvta.%s.u64 d40, d50", spaces[n].space);
        fixture_run(text, 0x7fffffff);
        sprintf(text, "cvta.to.%s.u64 d44, d40", spaces[n].space);
        fixture_run(text, 0x7fffffff);
        for (unsigned lane = 0; lane < PTX_LANES; lane++) {
            assert_true(fixture_get64(40, lane) == (lane == 31 ? 3 : spaces[n].window + 1024 + 4 * lane));
            assert_true(lane == 31 || fixture_get64(44, lane) == 1024 + 4 * lane);
        }
        sprintf(text, "cvta.%s.u64 d40, #2048", spaces[n].space);
        fixture_run(text, FULL_MASK);
        assert_true(fixture_get64(40, 31) == spaces[n].window + 2048);
        sprintf(text, "cvta%s.%s.u32 r40, r60", n % 2 ? ".to" : "", spaces[n].space);
        fixture_run(text, FULL_MASK);
        for (unsigned lane = 0; lane < PTX_LANES; lane++) assert_int_equal(fixture_get32(40, lane), lane);
    }
    static const uint64_t windows[4] = {GLOBAL_WINDOW, SHARED_WINDOW, LOCAL_WINDOW, 0};
    for (unsigned lane = 0; lane < PTX_LANES; lane++) fixture_set64(50, lane, windows[lane % 4] + lane * 99999);
    for (size_t n = 0; n < 3; n++) {
        char text[64];
        fixture_set_predicate(42, 0xf0000000);
        sprintf(text, "isspacep.%s p42, d50", n == 0 ? "global" : n == 1 ? "shared" : "local");
        fixture_run(text, 0x0fffffff);
        assert_int_equal(fixture_get_predicate(42), 0xf0000000 | (0x01111111u << n));
        sprintf(text, "isspacep.%s p42, r60", n == 0 ? "global" : n == 1 ? "shared" : "local");
        fixture_run(text, FULL_MASK);
        assert_int_equal(fixture_get_predicate(42), 0);
    }
}

static void movmatrix_transposes(void **state)
{
    (void)state;
    for (unsigned to = 40; to <= 44; to += 4) {
        uint32_t matrix[8][8];
        char text[96];
        fixture_reset();
        for (unsigned r = 0; r < 8; r++)
            for (unsigned c = 0; c < 8; c++) matrix[r][c] = (uint32_t)random64() & 0xffff;
        for (unsigned lane = 0; lane < PTX_LANES; lane++)
            fixture_set32(44, lane, matrix[lane / 4][lane % 4 * 2] + (matrix[lane / 4][lane % 4 * 2 + 1] << 16));
        sprintf(text, "movmatrix.sync.aligned.m8n8.trans.b16 r%u, r44", to);
        fixture_run(text, FULL_MASK);
        for (unsigned lane = 0; lane < PTX_LANES; lane++)
            assert_int_equal(fixture_get32(to, lane),
                             matrix[lane % 4 * 2][lane / 4] + (matrix[lane % 4 * 2 + 1][lane / 4] << 16));
    }
}

static void activemask_is_who_runs(void **state)
{
    (void)state;
    fixture_reset();
    fixture_run("activemask.b32 r40", 0x00ff1234);
    for (unsigned lane = 0; lane < PTX_LANES; lane++)
        assert_int_equal(fixture_get32(40, lane), bit(0x00ff1234, lane) ? 0x00ff1234 : 0);
}

/* ---- forms */

static void forms_that_change_nothing(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "bar.sync #0", "bar.sync r40", "bar.sync #1, #64", "bar.sync r40, r42", "bar.arrive #1, #64", "bar.cta.sync #0",
        "bar.cta.arrive #1, r40", "barrier.sync #0", "barrier.sync.aligned #0, #32", "barrier.cta.sync.aligned #0",
        "barrier.cta.arrive #1, #64", "bar.warp.sync #-1", "bar.warp.sync r40", "bra L", "bra.uni L", "ret", "ret.uni",
        "exit", "trap", "nanosleep.u32 #20", "nanosleep.u32 r40", "membar.cta", "membar.gl", "membar.sys", "fence.cta",
        "fence.sc.gpu", "fence.acq_rel.sys", "fence.acquire.cluster", "fence.release.gpu"};
    static uint32_t before[FIXTURE_SLOTS * PTX_LANES];
    fixture_reset();
    for (size_t n = 0; n < sizeof texts / sizeof *texts; n++) {
        if (!fixture_bind(texts[n])) fail_msg("refused: %s", texts[n]);
        memcpy(before, fixture.registers, sizeof before);
        assert_int_equal(fixture_again(FULL_MASK), 0);
        assert_memory_equal(before, fixture.registers, sizeof before);
    }
}

static void impossible_forms_are_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "bar #0", "bar.sync", "bar.arrive #0", "bar.red #0", "bar.red.sync #0", "bar.sync.arrive #0, #64",
        "bar.cluster.sync #0", "bar.sync d40", "bar.sync #0, d40", "bar.sync p40", "bar.warp #-1", "bar.cta.warp.sync #-1",
        "bar.warp.sync #-1, #-1", "bar.warp.sync d40", "barrier #0", "barrier.arrive #0", "barrier.warp.sync #-1",
        "barrier.gpu.sync #0", "bra r40", "bra", "ret L", "exit r40", "trap r40", "nanosleep.u32 d40", "nanosleep.u32",
        "membar", "membar.cluster", "fence", "fence.weak.gpu", "fence.relaxed.gpu", "fence.sc",
        "shfl.idx.b32 r40, r44, r46, r48", "shfl.sync.b32 r40, r44, r46, r48, r50", "shfl.sync.idx.b32 r40, r44, r46, r48",
        "shfl.sync.idx.b32 _|p42, r44, r46, r48, r50", "shfl.sync.idx.b32 d40, d44, r46, r48, r50",
        "shfl.sync.idx.b32 r40|r42, r44, r46, r48, r50", "vote.all.pred p42, p52", "vote.sync.all.b32 r40, p52, r50",
        "vote.sync.ballot.pred p42, p52, r50", "vote.sync.all.pred r40, p52, r50", "vote.sync.all.pred p42, p52",
        "vote.sync.pred p42, p52, r50", "vote.sync.all.pred _, p52, r50", "match.any.sync.b32 r40|p42, r44, r50",
        "match.any.b32 r40, r44, r50", "match.sync.b32 r40, r44, r50", "match.uni.sync.b32 r40, r44, r50",
        "match.all.sync.b64 r40, r44, r50", "redux.sync.add.b32 r40, r44, r50", "redux.sync.and.u32 r40, r44, r50",
        "redux.sync.exch.b32 r40, r44, r50", "redux.sync.b32 r40, r44, r50", "redux.add.u32 r40, r44, r50",
        "mov.f16 h40, h50", "mov.u32 r40, {h50, h52}", "mov.b32 r40, {h50, r52}", "mov.b32 r40, {h50, h52, h54}",
        "mov.b32 {h50, #1}, r40", "mov.b32 r40, {h50, _}", "mov.b16 {b50, b52, b54, b56}, h40", "mov.b32 r40, d50",
        "mov.b64 d40, r50", "mov.u16 h40, r50", "mov.pred p40, r50", "mov.b32 r40, p50", "mov.u32 _, r50", "mov.u32 r2, r50",
        "cvta.u64 d40, d50", "cvta.shared.u64 d40, r50", "cvta.shared.u64 r40, d50", "cvta.shared.u32 d40, d50",
        "isspacep p42, d50", "isspacep.const p42, d50", "isspacep.param p42, d50", "isspacep.shared r42, d50",
        "movmatrix.sync.aligned.m8n8.b16 r40, r44", "movmatrix.aligned.m8n8.trans.b16 r40, r44",
        "movmatrix.sync.m8n8.trans.b16 r40, r44", "movmatrix.sync.aligned.m16n8k8.trans.b16 r40, r44",
        "movmatrix.sync.aligned.m8n8.trans.b16 d40, r44", "activemask.b32 d40"};
    fixture_reset();
    for (size_t n = 0; n < sizeof texts / sizeof *texts; n++)
        if (fixture_bind(texts[n])) fail_msg("accepted: %s", texts[n]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shfl_within_segments),    cmocka_unit_test(shfl_with_any_limit),
        cmocka_unit_test(shfl_in_place),           cmocka_unit_test(vote_counts_members),
        cmocka_unit_test(match_finds_equal_values), cmocka_unit_test(redux_reduces_members),
        cmocka_unit_test(mov_copies),              cmocka_unit_test(mov_of_predicates),
        cmocka_unit_test(mov_packs_and_unpacks),   cmocka_unit_test(addresses_and_windows),
        cmocka_unit_test(movmatrix_transposes),    cmocka_unit_test(activemask_is_who_runs),
        cmocka_unit_test(forms_that_change_nothing), cmocka_unit_test(impossible_forms_are_refused),
    };
    int failed = 0;
    for (unsigned table = 0; table < fixture_tables(); table++) {
        fixture_use_table(table);
        failed |= cmocka_run_group_tests(tests, NULL, NULL);
    }
    return failed;
}
