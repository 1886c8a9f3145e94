/* cp.async: when copies take place, for each lane by itself, against a model that lists them; sizes, zero fill, checks and
 * counters. */
#include "swgpu_fixture.h"

#include "../src/swgpu/async.h"
#include "../src/swgpu/memory.h"
#include "../src/swgpu/shadow.h"

enum { BYTES = 4096, SHARED = 8192 };

static uint8_t shared_bytes[SHARED];
static uint64_t base;

static uint8_t pattern(uint64_t n)
{
    return (uint8_t)(n * 29 + (n >> 8) * 3 + 1);
}

static void stop(void)
{
    if (fixture.block.shadow) shadow_destroy(fixture.block.shadow);
    if (fixture.launch.memory) memory_destroy(fixture.launch.memory);
    async_destroy(fixture.warp.async);
}

static void start(unsigned checks)
{
    stop();
    fixture_reset();
    fixture.launch.memory = memory_create(1 << 20);
    fixture.launch.checks = checks;
    fixture.launch.count = 1;
    fixture.launch.shared_bytes = SHARED;
    fixture.warp.clock[0] = fixture.warp.epoch = 1;
    fixture.warp.async = async_create();
    fixture.block.shared = memset(shared_bytes, 0xee, SHARED);
    if (checks & (CHECK_RACE | CHECK_UNINITIALISED)) fixture.block.shadow = shadow_create(SHARED);
    assert_int_equal(memory_allocate(fixture.launch.memory, BYTES, 0, &base), CUDA_SUCCESS);
    uint8_t from[BYTES];
    char text[128];
    for (unsigned n = 0; n < BYTES; n++) from[n] = pattern(n);
    memory_copy(fixture.launch.memory, base, (uint64_t)(uintptr_t)from, BYTES, text, sizeof text);
}

static int run(const char *text, uint32_t mask)
{
    fixture.launch.stop = 0;
    fixture.fault.kind = FAULT_NONE;
    return fixture_run(text, mask);
}

static void passes(const char *text, uint32_t mask)
{
    if (run(text, mask)) fail_msg("%s: %s", text, fixture.fault.text);
}

static void fails(const char *text, uint32_t mask, fault_kind kind, const char *word)
{
    assert_int_equal(run(text, mask), 1);
    if (fixture.fault.kind != kind || !strstr(fixture.fault.text, word)) fail_msg("%s: %s", text, fixture.fault.text);
}

/* Lane n copies from source + step * n to target + step * n. */
static void addresses(uint32_t target, uint64_t source, unsigned step)
{
    for (unsigned lane = 0; lane < PTX_LANES; lane++) {
        fixture_set32(40, lane, SHARED_BASE + target + lane * step);
        fixture_set64(42, lane, base + source + lane * step);
    }
}

static void expect(uint32_t offset, unsigned bytes, int there, uint64_t source)
{
    for (unsigned n = 0; n < bytes; n++) assert_int_equal(shared_bytes[offset + n], there ? pattern(source + n) : 0xee);
}

static void sizes(void **state)
{
    (void)state;
    static const struct { const char *text; unsigned bytes, filled; } rows[] = {
        {"cp.async.ca.shared.global [r40], [d42], #n4", 4, 4},       {"cp.async.ca.shared.global [r40], [d42], #n8", 8, 8},
        {"cp.async.ca.shared.global [r40], [d42], #n16", 16, 16},    {"cp.async.cg.shared.global [r40], [d42], #n16", 16, 16},
        {"cp.async.cg.shared.global.L2::128B [r40], [d42], #n16", 16, 16},
        {"cp.async.cg.shared.global [r40], [d42], #n16, #n6", 16, 6},
        {"cp.async.ca.shared.global [r40], [d42], #n8, #n0", 8, 0},
        {"cp.async.cg.shared.global [r40], [d42], #n16, #n16", 16, 16}};
    for (unsigned n = 0; n < sizeof rows / sizeof *rows; n++)
        for (unsigned m = 0; m < 2; m++) {
            const uint32_t mask = m ? 0x80000101 : FULL_MASK;
            start(CHECK_ALL);
            addresses(64, 32, 32);
            passes(rows[n].text, mask);
            expect(0, SHARED, 0, 0);
            passes("cp.async.wait_all", mask);
            for (unsigned lane = 0; lane < PTX_LANES; lane++) {
                const int there = mask >> lane & 1;
                expect(64 + lane * 32, rows[n].filled, there, 32 + lane * 32);
                for (unsigned k = rows[n].filled; k < 32; k++)
                    assert_int_equal(shared_bytes[64 + lane * 32 + k], there && k < rows[n].bytes ? 0 : 0xee);
            }
        }
    /* A size for each lane. */
    start(CHECK_ALL);
    addresses(0, 0, 16);
    for (unsigned lane = 0; lane < PTX_LANES; lane++) fixture_set32(44, lane, lane % 17);
    passes("cp.async.cg.shared.global [r40], [d42], #n16, r44", FULL_MASK);
    passes("cp.async.wait_all", FULL_MASK);
    for (unsigned lane = 0; lane < PTX_LANES; lane++)
        for (unsigned k = 0; k < 16; k++)
            assert_int_equal(shared_bytes[lane * 16 + k], k < lane % 17 ? pattern(lane * 16 + k) : 0);
    fixture_set32(44, 7, 17);
    fails("cp.async.cg.shared.global [r40], [d42], #n16, r44", FULL_MASK, FAULT_OUT_OF_BOUNDS,
          "src-size of 17 bytes, more than the 16");
    fails("cp.async.ca.shared.global [r40], [d42], #n4, #n5", FULL_MASK, FAULT_OUT_OF_BOUNDS,
          "src-size of 5 bytes, more than the 4");
    fails("cp.async.ca.shared.global [r40], [d42], #n12", FULL_MASK, FAULT_TRAP, "cp.async.ca of 12 bytes: it copies 4, 8 or 16");
    fails("cp.async.cg.shared.global [r40], [d42], #n8", FULL_MASK, FAULT_TRAP, "cp.async.cg of 8 bytes: it copies 16");
}

static void forms(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "cp.ca.shared.global [r40], [d42], #n4", "cp.async.shared.global [r40], [d42], #n4",
        "cp.async.cv.shared.global [r40], [d42], #n4",
        "cp.async.ca.global.global [d40], [d42], #n4", "cp.async.ca.shared.shared [r40], [r42], #n4",
        "cp.async.ca.shared [r40], [d42], #n4",
        "cp.async.ca.shared.global [r40], [d42], r44", "cp.async.ca.shared.global [r40], [d42]",
        "cp.async.ca.shared.global [r40], d42, #n4",
        "cp.async.ca.shared.global [r40], [d42], #n4, p44", "cp.async.ca.shared.global [r40], [d42], #n4, d44",
        "cp.async.ca.shared.global [r40], [d42], #n4, #n4, d44", "cp.async.wait_group", "cp.async.wait_group r40",
        "cp.async.wait_all #n0",
        "cp.async.commit_group #n0", "cp.commit_group", "cp.async.ca.commit_group"};
    start(0);
    for (unsigned n = 0; n < sizeof bad / sizeof *bad; n++)
        if (fixture_bind(bad[n])) fail_msg("accepted: %s", bad[n]);
}

static void waits_as_late_as_allowed(void **state)
{
    (void)state;
    for (unsigned pending = 0; pending < 6; pending++) {
        start(CHECK_ALL);
        for (uint32_t group = 0; group < 4; group++) {
            addresses(group * 512, group * 512, 16);
            passes("cp.async.cg.shared.global [r40], [d42], #n16", FULL_MASK);
            passes("cp.async.commit_group", FULL_MASK);
        }
        addresses(2048, 2048, 16);
        passes("cp.async.cg.shared.global [r40], [d42], #n16", FULL_MASK); /* in no group yet */
        char text[64];
        sprintf(text, "cp.async.wait_group #n%u", pending);
        passes(text, FULL_MASK);
        for (uint32_t group = 0; group < 5; group++) expect(group * 512, 512, group < 4 && group + pending < 4, group * 512);
        passes("cp.async.wait_all", FULL_MASK);
        expect(0, 5 * 512, 1, 0);
        expect(5 * 512, SHARED - 5 * 512, 0, 0);
    }
    /* Empty groups count. */
    start(0);
    addresses(0, 0, 16);
    passes("cp.async.cg.shared.global [r40], [d42], #n16", FULL_MASK);
    for (int n = 0; n < 3; n++) passes("cp.async.commit_group", FULL_MASK);
    passes("cp.async.wait_group #n3", FULL_MASK);
    expect(0, 512, 0, 0);
    passes("cp.async.wait_group #n2", FULL_MASK);
    expect(0, 512, 1, 0);
    /* The end of a thread, and of a block. */
    start(0);
    addresses(0, 0, 16);
    passes("cp.async.cg.shared.global [r40], [d42], #n16", FULL_MASK);
    async_finish(&fixture.warp, 0xff);
    expect(0, 128, 1, 0);
    expect(128, 384, 0, 0);
    async_reset(fixture.warp.async);
    async_finish(&fixture.warp, FULL_MASK);
    expect(128, 384, 0, 0);
    /* What was read is what was there when the copy was issued. */
    start(0);
    addresses(0, 0, 16);
    passes("cp.async.cg.shared.global [r40], [d42], #n16", FULL_MASK);
    passes("st.global.v4.u32 [d42], {r50,r51,r52,r53}", FULL_MASK);
    passes("cp.async.wait_all", FULL_MASK);
    expect(0, 512, 1, 0);
}

/* ---- random programs: each lane's copies in a plain list ---- */

typedef struct copy {
    unsigned lane, target, source;
    uint32_t group;
    int done;
} copy;

static copy copies[4096];
static unsigned copy_count;
static uint32_t committed[PTX_LANES];

static void finish(uint32_t mask, uint32_t pending, int all)
{
    for (unsigned n = 0; n < copy_count; n++) {
        copy *c = &copies[n];
        if (mask >> c->lane & 1 && (all || c->group + pending < committed[c->lane])) c->done = 1;
    }
}

static void random_programs(void **state)
{
    (void)state;
    srand(9);
    for (int program = 0; program < 300; program++) {
        start(program % 2 ? CHECK_ALL : 0);
        copy_count = 0;
        memset(committed, 0, sizeof committed);
        for (unsigned step = 0; step < 40; step++) {
            const uint32_t mask = rand() % 3 ? FULL_MASK : ((uint32_t)rand() * 2654435761u) | 1;
            const unsigned pending = (unsigned)rand() % 4;
            char text[64];
            switch (rand() % 6) {
            case 0:
                passes("cp.async.commit_group", mask);
                for (unsigned lane = 0; lane < PTX_LANES; lane++) committed[lane] += mask >> lane & 1;
                break;
            case 1:
                sprintf(text, "cp.async.wait_group #n%u", pending);
                passes(text, mask);
                finish(mask, pending, 0);
                break;
            case 2:
                if (rand() % 4) break;
                passes("cp.async.wait_all", mask);
                finish(mask, 0, 1);
                break;
            default:
                addresses(step * 128, (unsigned)rand() % 500 * 4, 4);
                passes("cp.async.ca.shared.global [r40], [d42], #n4", mask);
                for (unsigned lane = 0; lane < PTX_LANES; lane++)
                    if (mask >> lane & 1)
                        copies[copy_count++] = (copy){lane, step * 128 + lane * 4, (unsigned)(fixture_get64(42, lane) - base),
                                                      committed[lane], 0};
            }
            for (unsigned n = 0; n < copy_count; n++) expect(copies[n].target, 4, copies[n].done, copies[n].source);
        }
    }
}

/* ---- checks ---- */

static void sources_are_checked(void **state)
{
    (void)state;
    static const char whole[] = "cp.async.cg.shared.global [r40], [d42], #n16";
    static const char part[] = "cp.async.cg.shared.global [r40], [d42], #n16, r44";
    start(CHECK_ALL);
    addresses(0, 0, 16);
    fixture_set64(42, 4, base + BYTES);
    fails(whole, FULL_MASK, FAULT_OUT_OF_BOUNDS, "read of 16 bytes");
    for (unsigned lane = 0; lane < PTX_LANES; lane++) fixture_set32(44, lane, lane == 4 ? 0 : 16);
    start(CHECK_ALL);
    addresses(0, 0, 16);
    fixture_set64(42, 4, 0);
    for (unsigned lane = 0; lane < PTX_LANES; lane++) fixture_set32(44, lane, lane == 4 ? 0 : 16);
    passes(part, FULL_MASK); /* reads nothing there */
    start(CHECK_ALL);
    addresses(0, 0, 16);
    fixture_set64(42, 4, base + 8);
    fails(whole, FULL_MASK, FAULT_MISALIGNED, "it must be a multiple of 16");
    for (unsigned lane = 0; lane < PTX_LANES; lane++) fixture_set32(44, lane, 8);
    fails(part, FULL_MASK, FAULT_MISALIGNED, "it must be a multiple of 16");
    start(CHECK_ALL);
    addresses(0, 0, 16);
    fixture_set32(40, 4, SHARED_BASE + 8);
    fails(whole, FULL_MASK, FAULT_MISALIGNED, "cp.async of 16 bytes at shared address 0x408");
    start(CHECK_ALL);
    addresses(SHARED - 16, 0, 16);
    passes(whole, 1);
    fails(whole, 2, FAULT_OUT_OF_BOUNDS, "shared address 0x2400, beyond the 8192 bytes");
    /* Only the bytes that are read must be written and in a row. */
    start(CHECK_ALL);
    uint64_t fresh;
    char text[128];
    memory_allocate(fixture.launch.memory, 24, 0, &fresh);
    uint8_t from[24] = {0};
    memory_copy(fixture.launch.memory, fresh, (uint64_t)(uintptr_t)from, 22, text, sizeof text);
    addresses(0, 0, 16);
    fixture_set64(42, 0, fresh + 16);
    fixture_set32(44, 0, 6);
    passes(part, 1);
    passes("cp.async.wait_all", 1);
    fixture_set32(44, 0, 7);
    fails(part, 1, FAULT_UNINITIALISED, "read of 7 bytes");
    fixture_set32(44, 0, 9);
    fails(part, 1, FAULT_OUT_OF_BOUNDS, "the last 1 byte of it past the end of an allocation of 24 bytes");
    fixture.launch.regions[0] = (operand_region){.name = "A", .base = fresh, .row_bytes = 20, .row_step = 20, .rows = 1,
                                                 .items = 1};
    fixture.launch.region_count = 1;
    fixture_set32(44, 0, 5);
    fails(part, 1, FAULT_OUTSIDE_OPERAND,
          "read of 5 bytes past the end of row 0 of A (bytes 16 to 20 of a row of 20), past the last row of A");
    fixture_set32(44, 0, 4);
    passes(part, 1);
}

static void destinations_are_checked(void **state)
{
    (void)state;
    static const char copy_text[] = "cp.async.cg.shared.global [r40], [d42], #n16";
    start(CHECK_ALL);
    addresses(0, 0, 16);
    passes(copy_text, FULL_MASK);
    fails("ld.shared.u32 r50, [r40+12]", 1u << 5, FAULT_ASYNC_NOT_WAITED,
          "read of shared byte 0x45c while the cp.async of thread (5, 0, 0)");
    fails("st.shared.u8 [r40+3], b50", 1u << 5, FAULT_RACE, "is not waited for");
    fails(copy_text, FULL_MASK, FAULT_RACE, "another cp.async of shared byte 0x400");
    start(CHECK_ALL);
    addresses(0, 0, 16);
    passes(copy_text, FULL_MASK);
    passes("cp.async.commit_group", FULL_MASK);
    passes("cp.async.wait_group #n1", FULL_MASK);
    fails("ld.shared.u32 r50, [r40]", FULL_MASK, FAULT_ASYNC_NOT_WAITED, "read of shared byte 0x400");
    passes("cp.async.wait_group #n0", FULL_MASK);
    passes("ld.shared.v4.u32 {r50,r51,r52,r53}, [r40]", FULL_MASK); /* each its own */
    for (unsigned lane = 0; lane < PTX_LANES; lane++) fixture_set32(40, lane, SHARED_BASE + (lane ^ 1) * 16);
    fails("ld.shared.u32 r50, [r40]", FULL_MASK, FAULT_RACE, "no bar.warp.sync between");
    shadow_warp_sync(&fixture.warp, FULL_MASK);
    passes("ld.shared.u32 r50, [r40]", FULL_MASK);
    /* Two lanes of one copy to one place. */
    start(CHECK_RACE);
    addresses(0, 0, 16);
    fixture_set32(40, 9, SHARED_BASE);
    fails(copy_text, FULL_MASK, FAULT_RACE, "another cp.async of shared byte 0x400 while the cp.async of thread (0, 0, 0)");
}

static void counted(void **state)
{
    (void)state;
    start(0);
    addresses(0, 0, 16);
    passes("cp.async.cg.shared.global [r40], [d42], #n16", FULL_MASK);
    assert_int_equal(fixture.counters.global_load_requests, 1);
    assert_int_equal(fixture.counters.global_load_sectors, 16);
    assert_int_equal(fixture.counters.shared_store_requests, 1);
    assert_int_equal(fixture.counters.shared_store_cycles, 4);
    assert_int_equal(fixture.counters.shared_store_conflicts, 0);
    for (unsigned lane = 0; lane < PTX_LANES; lane++) {
        fixture_set32(40, lane, SHARED_BASE + lane * 128);
        fixture_set32(44, lane, lane < 2 ? 16 : lane == 2 ? 5 : 0);
    }
    passes("cp.async.cg.shared.global [r40], [d42], #n16, r44", FULL_MASK);
    assert_int_equal(fixture.counters.global_load_requests, 2);
    assert_int_equal(fixture.counters.global_load_sectors, 18);
    assert_int_equal(fixture.counters.shared_store_cycles, 36);
    assert_int_equal(fixture.counters.shared_store_conflicts, 28);
    passes("cp.async.cg.shared.global [r40], [d42], #n16, #n0", FULL_MASK);
    assert_int_equal(fixture.counters.global_load_requests, 2);
    assert_int_equal(fixture.counters.shared_store_requests, 3);
    passes("cp.async.cg.shared.global [r40], [d42], #n16, #n3", FULL_MASK);
    assert_int_equal(fixture.counters.global_load_requests, 3);
    assert_int_equal(fixture.counters.global_load_sectors, 34);
    passes("cp.async.wait_all", FULL_MASK);
    assert_int_equal(fixture.counters.shared_store_requests, 4);
    assert_int_equal(fixture.counters.shared_load_requests, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes),           cmocka_unit_test(forms),
        cmocka_unit_test(waits_as_late_as_allowed), cmocka_unit_test(random_programs),
        cmocka_unit_test(sources_are_checked), cmocka_unit_test(destinations_are_checked),
        cmocka_unit_test(counted),
    };
    int failed = 0;
    for (unsigned table = 0; table < fixture_tables(); table++) {
        fixture_use_table(table);
        failed += cmocka_run_group_tests(tests, NULL, NULL);
    }
    stop();
    return failed;
}
