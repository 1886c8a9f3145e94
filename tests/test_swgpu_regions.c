/* Checks of global memory beyond bounds: accesses outside the operands that the host described, against a search through
 * all rows of all items; and reads of bytes that nothing wrote. */
#include "swgpu_fixture.h"

#include "../src/swgpu/memory.h"

enum { BYTES = 16384 };

static uint64_t base;
static const allocation *where;

static void start(unsigned checks)
{
    if (fixture.launch.memory) memory_destroy(fixture.launch.memory);
    fixture_reset();
    fixture.launch.memory = memory_create(1 << 20);
    fixture.launch.checks = checks;
    assert_int_equal(memory_allocate(fixture.launch.memory, BYTES, 0, &base), CUDA_SUCCESS);
    where = memory_find(fixture.launch.memory, base, NULL);
}

static void has(const char *word)
{
    if (!strstr(fixture.fault.text, word)) fail_msg("no \"%s\" in: %s", word, fixture.fault.text);
}

static int run(const char *text, uint32_t mask)
{
    fixture.launch.stop = 0;
    fixture.fault.kind = FAULT_NONE;
    return fixture_run(text, mask);
}

static void fails(const char *text, uint64_t address, fault_kind kind, const char *word)
{
    for (unsigned lane = 0; lane < PTX_LANES; lane++) fixture_set64(40, lane, address);
    assert_int_equal(run(text, 1u << 3), 1);
    if (fixture.fault.kind != kind) fail_msg("%s: %s", text, fixture.fault.text);
    has(word);
}

static void passes(const char *text, uint64_t address)
{
    for (unsigned lane = 0; lane < PTX_LANES; lane++) fixture_set64(40, lane, address);
    if (run(text, 1u << 3)) fail_msg("%s: %s", text, fixture.fault.text);
}

static const char load2[] = "ld.global.u16 h50, [d40]", load8[] = "ld.global.u64 d50, [d40]";
static const char load16[] = "ld.global.v4.u32 {r50,r51,r52,r53}, [d40]";
static const char store2[] = "st.global.u16 [d40], h50", store8[] = "st.global.u64 [d40], d50";
static const char add4[] = "red.global.add.u32 [d40], r50";

/* A: 5 rows of 96 bytes, 112 apart. B: an input of 2 items of 3 rows of 64, 256 apart, the rows 64 apart. C: 4 rows of
 * 136, 192 apart. */
static void describe(void)
{
    const operand_region regions[] = {
        {.name = "A", .base = base, .row_bytes = 96, .row_step = 112, .rows = 5, .items = 1, .writable = 0},
        {.name = "B", .base = base + 1024, .row_bytes = 64, .row_step = 64, .rows = 3, .items = 2, .item_step = 256,
         .writable = 0},
        {.name = "C", .base = base + 4096, .row_bytes = 136, .row_step = 192, .rows = 4, .items = 1, .writable = 1}};
    memcpy(fixture.launch.regions, regions, sizeof regions);
    fixture.launch.region_count = 3;
}

static void texts(void **state)
{
    (void)state;
    start(CHECK_OPERANDS);
    describe();
    const uint64_t a = base, b = base + 1024, c = base + 4096;
    passes(load16, a + 80);
    passes(load16, a + 4 * 112 + 80);
    passes(store8, c + 3 * 192 + 128);
    passes(load8, c + 3 * 192 + 128);
    passes(add4, c + 4);
    passes(load16, b + 256 + 128 + 48);
    fails(load16, a + 96, FAULT_OUTSIDE_OPERAND,
          "read of 16 bytes past the end of row 0 of A (bytes 96 to 111 of a row of 96), in the padding between rows");
    fails(store8, c + 3 * 192 + 136, FAULT_OUTSIDE_OPERAND, "write of 8 bytes past the last row of C, 0 bytes after its end");
    fails(store8, c + 2 * 192 + 136, FAULT_OUTSIDE_OPERAND,
          "write of 8 bytes past the end of row 2 of C (bytes 136 to 143 of a row of 136), in the padding between rows");
    fails("st.global.v4.u32 [d40], {r50,r51,r52,r53}", c + 192 + 128, FAULT_OUTSIDE_OPERAND,
          "write of 16 bytes past the end of row 1 of C (bytes 128 to 143 of a row of 136)");
    fails(load16, c + 3 * 192 + 128, FAULT_OUTSIDE_OPERAND,
          "read of 16 bytes past the end of row 3 of C (bytes 128 to 143 of a row of 136), past the last row of C");
    fails(load2, a + 4 * 112 + 96, FAULT_OUTSIDE_OPERAND, "read of 2 bytes past the last row of A, 0 bytes after its end");
    fails(load2, a + 4 * 112 + 110, FAULT_OUTSIDE_OPERAND, "read of 2 bytes past the last row of A, 14 bytes after its end");
    fails(load2, c - 2, FAULT_OUTSIDE_OPERAND, "read of 2 bytes before the first row of C, by 2 bytes");
    fails(load2, b + 192, FAULT_OUTSIDE_OPERAND,
          "read of 2 bytes past the last row of item 0 of B, in the padding between items");
    fails(store8, b + 8, FAULT_OUTSIDE_OPERAND, "write to row 0 of item 0 of B, which is an input: write of 8 bytes at byte 8");
    fails(store8, b + 256 + 64, FAULT_OUTSIDE_OPERAND, "write to row 1 of item 1 of B, which is an input");
    fails(add4, a + 4, FAULT_OUTSIDE_OPERAND, "atomic access to row 0 of A, which is an input");
    uint64_t other, owned;
    memory_allocate(fixture.launch.memory, 64, 0, &other);
    memory_allocate(fixture.launch.memory, 64, 1, &owned);
    fails(load2, other, FAULT_OUTSIDE_OPERAND, "in an allocation of 64 bytes that is no operand of this launch");
    passes(load2, owned);
    passes(store2, owned + 62);
    fails(load2, base + BYTES, FAULT_OUT_OF_BOUNDS, "past the end of an allocation");
    /* An input that is also the output may be written. */
    fixture.launch.regions[0].base = c;
    passes(store2, c);
    /* Not described, or not checked: anywhere in bounds. */
    fixture.launch.checks = CHECK_ALL & ~(CHECK_OPERANDS | CHECK_UNINITIALISED);
    passes(load2, other);
    fixture.launch.checks = CHECK_OPERANDS;
    fixture.launch.region_count = 0;
    passes(load2, other);
}

static int is_inside(const operand_region *g, uint64_t address, uint32_t bytes)
{
    for (uint64_t item = 0; item < g->items; item++)
        for (uint64_t row = 0; row < g->rows; row++) {
            const uint64_t low = g->base + item * g->item_step + row * g->row_step;
            if (address >= low && address + bytes <= low + g->row_bytes) return 1;
        }
    return 0;
}

/* Regions of all kinds: padded or overlapping rows, items after one another, interleaved, overlapping, shared. Each lane
 * alone, so that the row of the lane before does not help, and then all lanes together. */
static void random_regions(void **state)
{
    (void)state;
    srand(5);
    int inside = 0, outside = 0;
    start(CHECK_OPERANDS);
    for (int round = 0; round < 4000; round++) {
        fixture.launch.region_count = 1 + (uint32_t)rand() % 3;
        for (uint32_t n = 0; n < fixture.launch.region_count; n++)
            fixture.launch.regions[n] = (operand_region){.name = "X",
                                                         .base = base + (uint64_t)rand() % 64 * 4,
                                                         .row_bytes = (uint64_t)rand() % 8 * 4,
                                                         .row_step = (uint64_t)rand() % 20 * 4,
                                                         .rows = (uint64_t)rand() % 5,
                                                         .items = 1 + (uint64_t)rand() % 4,
                                                         .item_step = (uint64_t)rand() % 40 * 4,
                                                         .writable = (uint8_t)(rand() % 2)};
        const int is_write = rand() % 2;
        const char *text = is_write ? rand() % 2 ? store2 : store8 : rand() % 2 ? load2 : load8;
        const uint32_t bytes = text == store2 || text == load2 ? 2 : 8;
        uint32_t good = 0;
        for (unsigned lane = 0; lane < PTX_LANES; lane++) {
            const uint64_t address = base + (uint64_t)rand() % (512 / bytes) * bytes;
            fixture_set64(40, lane, address);
            int expected = 0;
            for (uint32_t n = 0; n < fixture.launch.region_count; n++)
                if (!is_write || fixture.launch.regions[n].writable)
                    expected |= is_inside(&fixture.launch.regions[n], address, bytes);
            good |= (uint32_t)expected << lane;
            *(expected ? &inside : &outside) += 1;
            assert_int_equal(run(text, 1u << lane), !expected);
            assert_int_equal(fixture.fault.kind, expected ? FAULT_NONE : FAULT_OUTSIDE_OPERAND);
        }
        if (good) assert_int_equal(run(text, good), 0);
        if (good != FULL_MASK) {
            char word[32];
            assert_int_equal(run(text, FULL_MASK), 1);
            sprintf(word, "thread (%d, 0, 0)", __builtin_ctz(~good));
            has(word);
        }
    }
    assert_true(inside > 1000 && outside > 1000);
}

static void unwritten(void **state)
{
    (void)state;
    char text[256];
    start(CHECK_UNINITIALISED);
    uint8_t from[64] = {0};
    memory_copy(fixture.launch.memory, base, (uint64_t)(uintptr_t)from, 30, text, sizeof text);
    passes(load8, base + 16);
    fails(load8, base + 24, FAULT_UNINITIALISED, "nothing was ever written to byte 6 of them");
    fails(load16, base + 16, FAULT_UNINITIALISED, "nothing was ever written to byte 14 of them");
    fails(load2, base + 30, FAULT_UNINITIALISED, "read of 2 bytes at 0x");
    passes(load2, base + 28);
    fails("ld.global.u8 b50, [d40]", base + 30, FAULT_UNINITIALISED, "byte 0");
    passes("ld.global.u8 b50, [d40]", base + 29);
    fails("ld.global.v2.u16 {h50,h51}, [d40]", base + 28, FAULT_UNINITIALISED, "byte 2");
    fails("ld.global.v4.u64 {d50,d52,d54,d56}, [d40]", base, FAULT_UNINITIALISED, "byte 30");
    passes("st.global.u16 [d40], h50", base + 30);
    passes("ld.global.v4.u64 {d50,d52,d54,d56}, [d40]", base);
    fails(add4, base + 32, FAULT_UNINITIALISED, "atomic access to 4 bytes");
    passes(add4, base + 28);
    fails("ld.u16 h50, [d40]", base + 32, FAULT_UNINITIALISED, "byte 0");
    uint64_t one;
    memory_allocate(fixture.launch.memory, 16, 0, &one);
    memory_copy(fixture.launch.memory, one, (uint64_t)(uintptr_t)from, 1, text, sizeof text);
    fails(load2, one, FAULT_UNINITIALISED, "byte 1");
    fails(load8, one, FAULT_UNINITIALISED, "byte 1");
    /* A store of another launch counts even if that is not checked. */
    fixture.launch.checks = 0;
    passes(load2, base + 40);
    passes("st.global.v4.u32 [d40], {r50,r51,r52,r53}", base + 32);
    passes("st.global.u8 [d40], b50", base + 48);
    passes(add4, one + 4);
    fixture.launch.checks = CHECK_UNINITIALISED;
    passes(load16, base + 32);
    passes("ld.global.u32 r50, [d40]", one + 4);
    passes("ld.global.u8 b50, [d40]", base + 48);
    fails("ld.global.u8 b50, [d40]", base + 49, FAULT_UNINITIALISED, "byte 0");
    for (unsigned n = 0; n < BYTES; n++) assert_int_equal(where->written[n], n < 49);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(texts), cmocka_unit_test(random_regions), cmocka_unit_test(unwritten)};
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    memory_destroy(fixture.launch.memory);
    return failed;
}
