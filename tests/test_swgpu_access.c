/* Instructions that touch memory, one at a time on a made warp: what they move, in every space, type and vector length,
 * what they refuse, and what the checks find. */
#include "swgpu_fixture.h"

#include "../src/swgpu/memory.h"
#include "../src/swgpu/shadow.h"


enum { BYTES = 8192, SHARED = 4096, LOCAL = 96, PARAMS = 128 };

static uint8_t shared_bytes[SHARED + 1], local_bytes[LOCAL * PTX_LANES], param_bytes[PARAMS];
static uint64_t base; /* of an allocation of BYTES bytes */
static const allocation *where;

static uint8_t pattern(uint64_t n)
{
    return (uint8_t)(n * 37 + (n >> 8) * 11 + 129);
}

static void start(unsigned checks)
{
    if (fixture.block.shadow) shadow_destroy(fixture.block.shadow);
    if (fixture.launch.memory) memory_destroy(fixture.launch.memory);
    fixture_reset();
    fixture.launch.memory = memory_create(1 << 20);
    fixture.launch.checks = checks;
    fixture.launch.count = 1;
    fixture.launch.shared_bytes = SHARED;
    fixture.launch.params = param_bytes;
    fixture.kernel.param_bytes = PARAMS;
    fixture.kernel.local_bytes = LOCAL;
    fixture.warp.local = local_bytes;
    fixture.warp.clock[0] = fixture.warp.epoch = 1;
    fixture.block.shared = shared_bytes;
    if (checks & (CHECK_RACE | CHECK_UNINITIALISED)) fixture.block.shadow = shadow_create(SHARED);
    assert_int_equal(memory_allocate(fixture.launch.memory, BYTES, 0, &base), CUDA_SUCCESS);
    where = memory_find(fixture.launch.memory, base, NULL);
    for (unsigned n = 0; n < BYTES; n++) where->data[n] = pattern(n);
    for (unsigned n = 0; n < SHARED; n++) shared_bytes[n] = pattern(n);
    for (unsigned n = 0; n < sizeof local_bytes; n++) local_bytes[n] = pattern(n);
    for (unsigned n = 0; n < PARAMS; n++) param_bytes[n] = pattern(n);
}

static void has(const char *word)
{
    if (!strstr(fixture.fault.text, word)) fail_msg("no \"%s\" in: %s", word, fixture.fault.text);
}

/* Runs, expects a fault, and forgets it. */
static void fails(const char *text, uint32_t mask, fault_kind kind, const char *word)
{
    fixture.launch.stop = 0;
    fixture.fault.kind = FAULT_NONE;
    assert_int_equal(fixture_run(text, mask), 1);
    if (fixture.fault.kind != kind) fail_msg("%s: %s", text, fixture.fault.text);
    has(word);
    fixture.launch.stop = 0;
}

static void passes(const char *text, uint32_t mask)
{
    fixture.launch.stop = 0;
    if (fixture_run(text, mask)) fail_msg("%s: %s", text, fixture.fault.text);
}

/* ---- loads and stores ---- */

static const struct { const char *name; unsigned bytes; int is_signed; } types[] = {
    {"b8", 1, 0}, {"u8", 1, 0}, {"s8", 1, 1}, {"b16", 2, 0}, {"u16", 2, 0}, {"s16", 2, 1}, {"b32", 4, 0}, {"u32", 4, 0},
    {"s32", 4, 1}, {"b64", 8, 0}, {"u64", 8, 0}, {"s64", 8, 1}, {"f16", 2, 0}, {"f16x2", 4, 0}, {"bf16", 2, 0}, {"bf16x2", 4, 0},
    {"f32", 4, 0}, {"f64", 8, 0}};
enum { TYPES = sizeof types / sizeof *types };
static const struct { char letter; unsigned bytes; } letters[] = {{'b', 1}, {'h', 2}, {'r', 4}, {'d', 8}};
static const char *const vectors[] = {"", ".v2", ".v4", ".v8"};

/* Where a lane's access is: the address for slot 40, and the host's bytes. */
typedef struct space_row {
    const char *name;
    uint64_t start;
    uint8_t *data;
    uint64_t per_lane; /* of the host's bytes */
    uint64_t size;
} space_row;

static unsigned list_spaces(space_row rows[8])
{
    const space_row all[] = {{".global", base, where->data, 0, BYTES},
                             {".const", base, where->data, 0, BYTES},
                             {"", base, where->data, 0, BYTES},
                             {".shared", SHARED_BASE, shared_bytes, 0, SHARED},
                             {"", SHARED_WINDOW + SHARED_BASE, shared_bytes, 0, SHARED},
                             {".local", 0, local_bytes, LOCAL, LOCAL},
                             {"", LOCAL_WINDOW, local_bytes, LOCAL, LOCAL},
                             {".param", 0, param_bytes, 0, PARAMS}};
    memcpy(rows, all, sizeof all);
    return 8;
}

static uint64_t read_bytes(const uint8_t *at, unsigned bytes)
{
    uint64_t value = 0;
    for (unsigned n = 0; n < bytes; n++) value |= (uint64_t)at[n] << 8 * n;
    return value;
}

static uint64_t extend(uint64_t value, unsigned bytes, unsigned to)
{
    if (bytes < 8 && value >> (8 * bytes - 1) & 1) value |= ~0ull << 8 * bytes;
    return to == 8 ? value : value & ((1ull << 8 * to) - 1);
}

static void name_vector(char *text, char letter, unsigned first, unsigned count)
{
    if (count == 1) {
        sprintf(text, "%c%u", letter, first);
        return;
    }
    *text++ = '{';
    for (unsigned n = 0; n < count; n++) text += sprintf(text, "%s%c%u", n ? "," : "", letter, first + 2 * n);
    strcpy(text, "}");
}

static uint64_t get(char letter, unsigned slot, unsigned lane)
{
    return letter == 'd' ? fixture_get64(slot, lane) : fixture_get32(slot, lane);
}

static void check_load(const space_row *s, unsigned t, unsigned v, unsigned l, uint32_t mask)
{
    const unsigned count = 1u << v, bytes = types[t].bytes, all = bytes * count;
    char data[80], text[200];
    name_vector(data, letters[l].letter, 50, count);
    sprintf(text, "ld%s%s.%s %s, [d40+%u]", s->name, vectors[v], types[t].name, data, all);
    uint64_t offset[PTX_LANES];
    for (unsigned lane = 0; lane < PTX_LANES; lane++) {
        offset[lane] = lane * 7 * all % (s->size - all) / all * all;
        fixture_set64(40, lane, s->start + offset[lane] - all);
        for (unsigned n = 0; n < count; n++) fixture_set64(50 + 2 * n, lane, 0);
    }
    passes(text, mask);
    for (unsigned lane = 0; lane < PTX_LANES; lane++)
        for (unsigned n = 0; n < count; n++) {
            uint64_t expected = read_bytes(s->data + s->per_lane * lane + offset[lane] + n * bytes, bytes);
            if (types[t].is_signed) expected = extend(expected, bytes, letters[l].bytes);
            if (!(mask >> lane & 1)) expected = 0;
            if (get(letters[l].letter, 50 + 2 * n, lane) != expected) fail_msg("%s, lane %u element %u", text, lane, n);
        }
}

static void check_store(const space_row *s, unsigned t, unsigned v, unsigned l, uint32_t mask)
{
    static uint8_t expected[BYTES > LOCAL * PTX_LANES ? BYTES : LOCAL * PTX_LANES];
    const unsigned count = 1u << v, bytes = types[t].bytes, all = bytes * count;
    const uint64_t size = s->per_lane ? s->per_lane * PTX_LANES : s->size;
    char data[80], text[200];
    name_vector(data, letters[l].letter, 50, count);
    sprintf(text, "st%s%s.%s [d40], %s", s->name, vectors[v], types[t].name, data);
    memcpy(expected, s->data, size);
    for (unsigned lane = 0; lane < PTX_LANES; lane++) {
        const uint64_t offset = lane * all % (s->size - all) / all * all;
        fixture_set64(40, lane, s->start + offset);
        for (unsigned n = 0; n < count; n++) {
            uint64_t value = (lane * 0x0123456789abcdefull + n) * 0x9e3779b97f4a7c15ull;
            if (letters[l].bytes < 8) value &= (1ull << 8 * letters[l].bytes) - 1;
            if (letters[l].letter == 'd') fixture_set64(50 + 2 * n, lane, value);
            else fixture_set32(50 + 2 * n, lane, (uint32_t)value);
            for (unsigned k = 0; k < bytes && mask >> lane & 1; k++)
                expected[s->per_lane * lane + offset + n * bytes + k] = (uint8_t)(value >> 8 * k);
        }
    }
    passes(text, mask);
    if (memcmp(expected, s->data, size) != 0) fail_msg("%s", text);
}

static void every_load_and_store(void **state)
{
    (void)state;
    space_row rows[8];
    start(0);
    const unsigned spaces = list_spaces(rows);
    for (unsigned s = 0; s < spaces; s++)
        for (unsigned t = 0; t < TYPES; t++)
            for (unsigned v = 0; v < 4; v++)
                for (unsigned l = 0; l < 4; l++) {
                    if (letters[l].bytes < types[t].bytes || types[t].bytes << v > 32) continue;
                    if (v == 3 && types[t].bytes != 4) continue;
                    for (unsigned m = 0; m < 3; m++) {
                        const uint32_t mask = m == 0 ? FULL_MASK : m == 1 ? 0x80000101 : 0x00fff000;
                        check_load(&rows[s], t, v, l, mask);
                        const int constant = !strcmp(rows[s].name, ".param") || !strcmp(rows[s].name, ".const");
                        if (!constant) check_store(&rows[s], t, v, l, mask);
                    }
                }
}

static void other_operands(void **state)
{
    (void)state;
    start(CHECK_ALL);
    fixture.launch.checks &= ~(unsigned)CHECK_UNINITIALISED;
    for (unsigned lane = 0; lane < PTX_LANES; lane++) {
        fixture_set32(40, lane, SHARED_BASE + 8 - 0x20 + lane * 16); /* the sum wraps at 32 bits */
        fixture_set64(42, lane, base + lane * 16);
        fixture_set64(44, lane, base + lane * 16); /* becomes the destination */
    }
    passes("ld.shared.u32 r50, [r40+0x100000020]", FULL_MASK);
    passes("ld.shared.u32 r51, [r40-0]", 0xfffffffc);
    passes("ld.global.v2.u32 {_, r52}, [d42]", FULL_MASK);
    passes("ld.global.u64 d44, [d44+8]", FULL_MASK);
    passes("st.global.v2.u32 [d42], {#7, #0xffffffff}", FULL_MASK);
    passes("st.global.u16 [d42+8], #-2", FULL_MASK);
    passes("st.global.b64 [d42-0], #0x123456789", 2);
    for (unsigned lane = 0; lane < PTX_LANES; lane++) {
        assert_int_equal(fixture_get32(50, lane), read_bytes(shared_bytes + 8 + lane * 16, 4));
        uint8_t old[16];
        for (unsigned n = 0; n < 16; n++) old[n] = pattern(lane * 16 + n);
        assert_int_equal(fixture_get32(52, lane), read_bytes(old + 4, 4));
        assert_int_equal(fixture_get64(44, lane), read_bytes(old + 8, 8));
        assert_int_equal(read_bytes(where->data + lane * 16, 8), lane == 1 ? 0x123456789 : 0xffffffff00000007);
        assert_int_equal(read_bytes(where->data + lane * 16 + 8, 2), 0xfffe);
    }
    passes("prefetch.global.L2 [d60]", FULL_MASK); /* of address 0 */
}

static void forms(void **state)
{
    (void)state;
    static const char *const good[] = {
        "ld.global.nc.u32 r50, [d40]", "ld.volatile.global.u32 r50, [d40]", "ld.relaxed.gpu.global.u32 r50, [d40]",
        "ld.acquire.sys.global.u32 r50, [d40]", "ld.weak.global.u32 r50, [d40]", "ld.global.cg.u32 r50, [d40]",
        "ld.global.cv.u32 r50, [d40]", "ld.global.lu.u32 r50, [d40]", "ld.global.L1::no_allocate.v4.u32 {r50,r51,r52,r53}, [d40]",
        "ldu.global.u32 r50, [d40]", "ldu.v4.f32 {r50,r51,r52,r53}, [d40]", "st.release.gpu.global.u32 [d40], r50",
        "st.relaxed.cta.shared.u32 [d40], r50", "st.volatile.shared.u32 [d40], r50", "st.global.wt.u32 [d40], r50",
        "st.global.cs.v2.f32 [d40], {r50,r51}", "prefetch.L1 [d40]", "prefetch.local.L2 [d40]",
        "ld.global.v4.b64 {d50,d52,d54,d56}, [d40]",
        "atom.global.add.u32 r50, [d40], r51", "atom.add.noftz.f16 h50, [d40], h51", "atom.shared.cas.b32 r50, [r40], r51, r52",
        "atom.acq_rel.gpu.global.inc.u32 _, [d40], #5", "red.relaxed.sys.global.max.s64 [d40], d50",
        "red.shared.add.f32 [r40], r50",
        "ldmatrix.sync.aligned.m8n8.x1.b16 r50, [d40]", "stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [r40], {r50,r51}"};
    static const char *const bad[] = {
        "ld.shared.nc.u32 r50, [d40]", "ld.global.wb.u32 r50, [d40]", "ld.release.gpu.global.u32 r50, [d40]",
        "ld.relaxed.global.u32 r50, [d40]", "ld.gpu.global.u32 r50, [d40]", "ld.volatile.relaxed.gpu.global.u32 r50, [d40]",
        "ld.volatile.global.cg.u32 r50, [d40]", "ld.global.v2.u32 r50, [d40]", "ld.global.u32 {r50,r51}, [d40]",
        "ld.global.v4.u32 {r50,r51}, [d40]", "ld.global.u64 r50, [d40]", "ld.global.u32 h50, [d40]", "ld.global.u32 p50, [d40]",
        "ld.global.v8.b64 {d50,d52,d54,d56,d58,d60,d62,d64}, [d40]", "ld.global.v8.u16 {h50,h51,h52,h53,h54,h55,h56,h57}, [d40]",
        "ld.global.u32 r50, r40", "ld.global.u32 r50, [h40]", "ldu.shared.u32 r50, [d40]", "ldu.global.cg.u32 r50, [d40]",
        "st.const.u32 [d40], r50", "st.param.u32 [d40], r50", "st.global.ca.u32 [d40], r50",
        "st.acquire.gpu.global.u32 [d40], r50",
        "st.global.u32 [d40], _", "st.global.u64 [d40], r50", "prefetch.global [d40]", "prefetch.shared.L1 [d40]",
        "atom.global.add.s64 d50, [d40], d52", "atom.global.add.b32 r50, [d40], r51", "atom.global.add.f16 h50, [d40], h51",
        "atom.global.add.noftz.f32 r50, [d40], r51", "atom.global.cas.b32 r50, [d40], r51",
        "atom.global.add.u32 r50, [d40], r51, r52",
        "atom.local.add.u32 r50, [d40], r51", "atom.global.u32 r50, [d40], r51", "atom.global.add.u32 d50, [d40], r51",
        "red.global.exch.b32 [d40], r50", "red.global.cas.b32 [d40], r50", "red.acquire.gpu.global.add.u32 [d40], r50",
        "red.global.inc.s32 [d40], r50", "ldmatrix.sync.m8n8.x1.shared.b16 r50, [r40]",
        "ldmatrix.sync.aligned.m8n8.shared.b16 r50, [r40]",
        "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {r50,r51,r52,r53}, [r40]", "ldmatrix.sync.aligned.x1.shared.b16 r50, [r40]",
        "ldmatrix.sync.aligned.m8n8.x1.global.b16 r50, [r40]", "ldmatrix.sync.aligned.m8n8.x1.shared.b16 d50, [r40]"};
    start(0);
    for (unsigned n = 0; n < sizeof good / sizeof *good; n++)
        if (!fixture_bind(good[n])) fail_msg("refused: %s", good[n]);
    for (unsigned n = 0; n < sizeof bad / sizeof *bad; n++)
        if (fixture_bind(bad[n])) fail_msg("accepted: %s", bad[n]);
}

/* ---- what is always checked ---- */

static void one_address(uint64_t address)
{
    for (unsigned lane = 0; lane < PTX_LANES; lane++) fixture_set64(40, lane, lane == 9 ? address : base);
}

static void global_bounds(void **state)
{
    (void)state;
    char word[200];
    start(0);
    one_address(base + BYTES - 16);
    passes("ld.global.v4.u32 {r50,r51,r52,r53}, [d40]", FULL_MASK);
    one_address(base + BYTES);
    fails("ld.global.v4.u32 {r50,r51,r52,r53}, [d40]", FULL_MASK, FAULT_OUT_OF_BOUNDS, "thread (9, 0, 0)");
    sprintf(word, "read of 16 bytes at 0x%llx, 0 bytes past the end of an allocation of 8192 bytes",
            (unsigned long long)base + BYTES);
    has(word);
    passes("ld.global.v4.u32 {r50,r51,r52,r53}, [d40]", ~(1u << 9));
    one_address(base + BYTES + 64);
    fails("ld.global.v4.u32 {r50,r51,r52,r53}, [d40]", FULL_MASK, FAULT_OUT_OF_BOUNDS,
          "64 bytes past the end of an allocation of 8192");
    one_address(base - 4);
    fails("st.global.u32 [d40], r50", FULL_MASK, FAULT_OUT_OF_BOUNDS, "write of 4 bytes");
    has("4 bytes before the start of an allocation of 8192 bytes");
    one_address(0);
    fails("ld.u8 r50, [d40]", FULL_MASK, FAULT_OUT_OF_BOUNDS, "read of 1 byte at 0x0, which is in no allocation: a null pointer");
    one_address((uint64_t)(uintptr_t)word);
    fails("red.global.add.u32 [d40], r50", FULL_MASK, FAULT_OUT_OF_BOUNDS, "atomic access to 4 bytes");
    has("in no allocation: not a device address");
    one_address(UINT64_MAX);
    fails("ld.global.u8 r50, [d40]", FULL_MASK, FAULT_OUT_OF_BOUNDS, "which is in no allocation");
    one_address(SHARED_WINDOW + SHARED_BASE);
    fails("ld.global.u32 r50, [d40]", FULL_MASK, FAULT_OUT_OF_BOUNDS, "which is in no allocation");

    uint64_t odd;
    memory_allocate(fixture.launch.memory, 1002, 0, &odd);
    one_address(odd + 1000);
    passes("ld.global.u16 h50, [d40]", FULL_MASK); /* two allocations in one request */
    fails("ld.global.u32 r50, [d40]", FULL_MASK, FAULT_OUT_OF_BOUNDS,
          "the last 2 bytes of it past the end of an allocation of 1002 bytes");
    one_address(odd + 1001);
    fails("ld.global.u16 h50, [d40]", FULL_MASK, FAULT_OUT_OF_BOUNDS, "the last 1 byte of it past the end");
    memory_free(fixture.launch.memory, odd);
    one_address(odd + 8);
    fails("ld.global.u16 h50, [d40]", FULL_MASK, FAULT_USE_AFTER_FREE, "byte 8 in an allocation of 1002 bytes that was freed");
    fails("st.global.u16 [d40], h50", FULL_MASK, FAULT_USE_AFTER_FREE, "write of 2 bytes");
    fails("ld.global.u16 h50, [d40]", 1u << 9, FAULT_USE_AFTER_FREE, "freed");
}

static void alignment(void **state)
{
    (void)state;
    start(0);
    one_address(base + 8);
    passes("ld.global.v2.u32 {r50,r51}, [d40]", FULL_MASK);
    fails("ld.global.v4.u32 {r50,r51,r52,r53}, [d40]", FULL_MASK, FAULT_MISALIGNED, "it must be a multiple of 16");
    fails("st.global.v4.f32 [d40], {r50,r51,r52,r53}", FULL_MASK, FAULT_MISALIGNED, "write of 16 bytes at address 0x");
    one_address(base + 16);
    fails("ld.global.v4.u64 {d50,d52,d54,d56}, [d40]", FULL_MASK, FAULT_MISALIGNED, "it must be a multiple of 32");
    one_address(base + 2);
    passes("ld.global.u16 h50, [d40]", FULL_MASK);
    fails("atom.global.add.u32 r50, [d40], r51", FULL_MASK, FAULT_MISALIGNED, "it must be a multiple of 4");
    one_address(base + 1);
    fails("ld.global.u16 h50, [d40]", 1u << 9, FAULT_MISALIGNED, "it must be a multiple of 2");
    passes("ld.global.u8 b50, [d40]", FULL_MASK);
    for (unsigned lane = 0; lane < PTX_LANES; lane++) fixture_set32(42, lane, SHARED_BASE + 4);
    fails("ld.shared.u64 d50, [r42]", FULL_MASK, FAULT_MISALIGNED,
          "read of 8 bytes at shared address 0x404: it must be a multiple of 8");
    for (unsigned lane = 0; lane < PTX_LANES; lane++) fixture_set32(42, lane, 2);
    fails("st.local.u32 [r42], r50", FULL_MASK, FAULT_MISALIGNED, "local address 0x2");
    fails("ld.param.u32 r50, [r42]", FULL_MASK, FAULT_MISALIGNED, "parameter address 0x2");
}

static void other_bounds(void **state)
{
    (void)state;
    start(0);
    static const struct { const char *text; uint32_t good, bad; const char *word; } rows[] = {
        {"ld.shared.u32 r50, [r42]", SHARED_BASE + SHARED - 4, SHARED_BASE + SHARED,
         "shared address 0x1400, beyond the 4096 bytes"},
        {"st.shared.u32 [r42], r50", SHARED_BASE, SHARED_BASE - 4, "shared address 0x3fc, below its first byte at 0x400"},
        {"ld.shared.u32 r50, [r42]", SHARED_BASE, 0, "below its first byte"},
        {"ld.shared.v2.u32 {r50,r51}, [r42]", SHARED_BASE, 0xfffffff8, "beyond the 4096 bytes"},
        {"atom.shared.add.u32 r50, [r42], r51", SHARED_BASE, SHARED_BASE + SHARED + 64, "atomic access to 4 bytes"},
        {"ld.local.u32 r50, [r42]", LOCAL - 4, LOCAL, "local address 0x60, beyond the 96 bytes of local memory"},
        {"st.local.u64 [r42], d50", LOCAL - 8, LOCAL, "write of 8 bytes at local address"},
        {"ld.param.u64 d50, [r42]", PARAMS - 8, PARAMS, "parameter address 0x80, beyond the 128 bytes"}};
    for (unsigned n = 0; n < sizeof rows / sizeof *rows; n++) {
        for (unsigned lane = 0; lane < PTX_LANES; lane++) fixture_set32(42, lane, rows[n].good);
        passes(rows[n].text, FULL_MASK);
        fixture_set32(42, 31, rows[n].bad);
        passes(rows[n].text, 0x7fffffff);
        fails(rows[n].text, FULL_MASK, FAULT_OUT_OF_BOUNDS, rows[n].word);
        has("thread (31, 0, 0)");
    }
    fixture.launch.shared_bytes = 2; /* less than the access */
    for (unsigned lane = 0; lane < PTX_LANES; lane++) fixture_set32(42, lane, SHARED_BASE);
    fails("ld.shared.u32 r50, [r42]", FULL_MASK, FAULT_OUT_OF_BOUNDS, "beyond the 2 bytes");
    passes("ld.shared.u16 h50, [r42]", FULL_MASK);
}

static void generic_lanes_land_apart(void **state)
{
    (void)state;
    start(CHECK_RACE);
    for (unsigned lane = 0; lane < PTX_LANES; lane++)
        fixture_set64(40, lane,
                      lane < 8    ? base + lane * 64
                      : lane < 16 ? SHARED_WINDOW + SHARED_BASE + lane * 128
                                  : LOCAL_WINDOW + lane % 4 * 4);
    passes("ld.u32 r50, [d40]", FULL_MASK);
    for (unsigned lane = 0; lane < PTX_LANES; lane++) {
        const uint8_t *at = lane < 8    ? where->data + lane * 64
                            : lane < 16 ? shared_bytes + lane * 128
                                        : local_bytes + lane * LOCAL + lane % 4 * 4;
        assert_int_equal(fixture_get32(50, lane), read_bytes(at, 4));
    }
    passes("st.u32 [d40], r50", FULL_MASK);
    assert_int_equal(fixture.counters.global_load_requests, 1);
    assert_int_equal(fixture.counters.global_load_sectors, 8);
    assert_int_equal(fixture.counters.global_store_sectors, 8);
    assert_int_equal(fixture.counters.shared_load_requests, 1);
    assert_int_equal(fixture.counters.shared_load_cycles, 8);
    assert_int_equal(fixture.counters.shared_store_conflicts, 7);
    fixture_set64(40, 20, 4ull << 48);
    fails("ld.u32 r50, [d40]", FULL_MASK, FAULT_OUT_OF_BOUNDS, "thread (20, 0, 0)");
    fixture.launch.count = 0;
    passes("ld.u32 r50, [d40]", 0xffff);
    assert_int_equal(fixture.counters.global_load_requests, 1);
    fixture.launch.count = 1;
    passes("ld.const.u32 r50, [d40]", 0xff); /* not a global request */
    assert_int_equal(fixture.counters.global_load_requests, 1);
    passes("atom.add.u32 r50, [d40], r50", 0xffff);
    assert_int_equal(fixture.counters.global_store_requests, 2);
    assert_int_equal(fixture.counters.shared_store_requests, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_load_and_store), cmocka_unit_test(other_operands), cmocka_unit_test(forms),
        cmocka_unit_test(global_bounds),        cmocka_unit_test(alignment),      cmocka_unit_test(other_bounds),
        cmocka_unit_test(generic_lanes_land_apart),
    };
    int failed = 0;
    for (unsigned table = 0; table < fixture_tables(); table++) {
        fixture_use_table(table);
        failed += cmocka_run_group_tests(tests, NULL, NULL);
    }
    memory_destroy(fixture.launch.memory);
    shadow_destroy(fixture.block.shadow);
    return failed;
}
