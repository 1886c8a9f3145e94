/* atom and red: every operation and type against values worked out by hand or in wider arithmetic, in global and shared
 * memory, lane after lane, and from two threads at once. ldmatrix and stmatrix against the element that PTX assigns to
 * each lane. */
#include "swgpu_fixture.h"

#include "../src/half.h"
#include "../src/swgpu/memory.h"
#include "../src/swgpu/shadow.h"

#include <pthread.h>

enum { BYTES = 4096, SHARED = 4096 };

static _Alignas(16) uint8_t shared_bytes[SHARED];
static uint64_t base;
static const allocation *where;

static void start(unsigned checks)
{
    if (fixture.block.shadow) shadow_destroy(fixture.block.shadow);
    if (fixture.launch.memory) memory_destroy(fixture.launch.memory);
    fixture_reset();
    fixture.launch.memory = memory_create(1 << 20);
    fixture.launch.checks = checks;
    fixture.launch.count = 1;
    fixture.launch.shared_bytes = SHARED;
    fixture.warp.clock[0] = fixture.warp.epoch = 1;
    fixture.block.shared = memset(shared_bytes, 0, SHARED);
    if (checks & (CHECK_RACE | CHECK_UNINITIALISED)) fixture.block.shadow = shadow_create(SHARED);
    assert_int_equal(memory_allocate(fixture.launch.memory, BYTES, 0, &base), CUDA_SUCCESS);
    where = memory_find(fixture.launch.memory, base, NULL);
}

static void passes(const char *text, uint32_t mask)
{
    fixture.launch.stop = 0;
    if (fixture_run(text, mask)) fail_msg("%s: %s", text, fixture.fault.text);
}

static void fails(const char *text, uint32_t mask, fault_kind kind, const char *word)
{
    fixture.launch.stop = 0;
    assert_int_equal(fixture_run(text, mask), 1);
    if (fixture.fault.kind != kind || !strstr(fixture.fault.text, word)) fail_msg("%s: %s", text, fixture.fault.text);
}

static uint64_t read_bytes(const uint8_t *at, unsigned bytes)
{
    uint64_t value = 0;
    for (unsigned n = 0; n < bytes; n++) value |= (uint64_t)at[n] << 8 * n;
    return value;
}

static void write_bytes(uint8_t *at, uint64_t value, unsigned bytes)
{
    for (unsigned n = 0; n < bytes; n++) at[n] = (uint8_t)(value >> 8 * n);
}

/* ---- one lane: old, operands, new. The same in both spaces but for f32's denormals. */

#define F16(x) half_f32_to_f16(x)
#define BF16(x) half_f32_to_bf16(x)

static void single_operations(void **state)
{
    (void)state;
    const struct { const char *name; unsigned bytes; uint64_t old, b, c, global, shared; } rows[] = {
        {"and.b32", 4, 0xff00ff00, 0x0ff00ff0, 0, 0x0f000f00, 0x0f000f00},
        {"and.b64", 8, 0xff00ff00ff00ff00, 0x0ff00ff00ff00ff0, 0, 0x0f000f000f000f00, 0x0f000f000f000f00},
        {"or.b32", 4, 0xff00ff00, 0x0ff00ff0, 0, 0xfff0fff0, 0xfff0fff0},
        {"or.b64", 8, 1ull << 63, 1, 0, 1ull << 63 | 1, 1ull << 63 | 1},
        {"xor.b32", 4, 0xff00ff00, 0x0ff00ff0, 0, 0xf0f0f0f0, 0xf0f0f0f0},
        {"xor.b64", 8, ~0ull, 1, 0, ~1ull, ~1ull},
        {"exch.b32", 4, 1, 0xfedcba98, 0, 0xfedcba98, 0xfedcba98},
        {"exch.b64", 8, 1, 0xfedcba9876543210, 0, 0xfedcba9876543210, 0xfedcba9876543210},
        {"cas.b16", 2, 0x1234, 0x1234, 0xabcd, 0xabcd, 0xabcd},
        {"cas.b32", 4, 0x12345678, 0x12345678, 9, 9, 9},
        {"cas.b32", 4, 0x12345678, 0x12345679, 9, 0x12345678, 0x12345678},
        {"cas.b64", 8, 0x100000001, 0x100000001, 1ull << 60, 1ull << 60, 1ull << 60},
        {"cas.b64", 8, 0x100000001, 1, 5, 0x100000001, 0x100000001},
        {"add.u32", 4, 0xffffffff, 2, 0, 1, 1},
        {"add.s32", 4, 0x7fffffff, 1, 0, 0x80000000, 0x80000000},
        {"add.u64", 8, 0xffffffff, 1, 0, 0x100000000, 0x100000000},
        {"inc.u32", 4, 5, 7, 0, 6, 6},
        {"inc.u32", 4, 7, 7, 0, 0, 0},
        {"inc.u32", 4, 8, 7, 0, 0, 0},
        {"dec.u32", 4, 5, 7, 0, 4, 4},
        {"dec.u32", 4, 0, 7, 0, 7, 7},
        {"dec.u32", 4, 9, 7, 0, 7, 7},
        {"min.u32", 4, 0xffffffff, 1, 0, 1, 1},
        {"max.u32", 4, 0xffffffff, 1, 0, 0xffffffff, 0xffffffff},
        {"min.s32", 4, 0xffffffff, 1, 0, 0xffffffff, 0xffffffff},
        {"max.s32", 4, 0xffffffff, 1, 0, 1, 1},
        {"min.u64", 8, 1ull << 63, 1, 0, 1, 1},
        {"max.u64", 8, 1ull << 63, 1, 0, 1ull << 63, 1ull << 63},
        {"min.s64", 8, 1ull << 63, 1, 0, 1ull << 63, 1ull << 63},
        {"max.s64", 8, 1ull << 63, 1, 0, 1, 1},
        {"add.f32", 4, 0x3f800000, 0x40000000, 0, 0x40400000, 0x40400000},
        {"add.f32", 4, 0x3f800000, 0x33800000, 0, 0x3f800000, 0x3f800000}, /* half a unit: to even */
        {"add.f32", 4, 0x00000001, 0x00000001, 0, 0x00000000, 0x00000002}, /* denormals */
        {"add.f32", 4, 0x00400000, 0x00400000, 0, 0x00000000, 0x00800000},
        {"add.f32", 4, 0x80000001, 0x80000001, 0, 0x80000000, 0x80000002},
        {"add.f32", 4, 0x00800001, 0x80800000, 0, 0x00000000, 0x00000001},
        {"add.f32", 4, 0x7f800000, 0xff800000, 0, 0x7fffffff, 0x7fffffff},
        {"add.f64", 8, 0x3ff0000000000000, 0x4000000000000000, 0, 0x4008000000000000, 0x4008000000000000},
        {"add.f64", 8, 1, 1, 0, 2, 2},
        {"add.noftz.f16", 2, F16(1.5f), F16(0.25f), 0, F16(1.75f), F16(1.75f)},
        {"add.noftz.f16", 2, 1, 1, 0, 2, 2},
        {"add.noftz.f16", 2, F16(65504), F16(32), 0, F16(65536.0f), F16(65536.0f)},
        {"add.noftz.bf16", 2, BF16(1.5f), BF16(0.25f), 0, BF16(1.75f), BF16(1.75f)},
        {"add.noftz.bf16", 2, 1, 1, 0, 2, 2},
        {"add.noftz.f16x2", 4, (uint32_t)F16(2) << 16 | F16(1), (uint32_t)F16(0.5f) << 16 | F16(-1), 0, (uint32_t)F16(2.5f) << 16,
         (uint32_t)F16(2.5f) << 16},
        {"add.noftz.bf16x2", 4, (uint32_t)BF16(2) << 16 | BF16(1), (uint32_t)BF16(0.5f) << 16 | BF16(-3), 0,
         (uint32_t)BF16(2.5f) << 16 | BF16(-2), (uint32_t)BF16(2.5f) << 16 | BF16(-2)}};
    for (unsigned n = 0; n < sizeof rows / sizeof *rows; n++)
        for (unsigned space = 0; space < 4; space++)
            for (unsigned is_red = 0; is_red < 2; is_red++) {
                const int in_global = space < 2, is_cas = !strncmp(rows[n].name, "cas", 3);
                if (is_red && (is_cas || !strncmp(rows[n].name, "exch", 4))) continue;
                static const char *const names[] = {".global", "", ".shared", ""};
                const char letter = rows[n].bytes == 8 ? 'd' : rows[n].bytes == 4 ? 'r' : 'h';
                char text[128], third[16] = "", first[16] = "";
                start(0);
                if (!is_red) sprintf(first, "%c60, ", letter);
                if (is_cas) sprintf(third, ", %c54", letter);
                sprintf(text, "%s%s.%s %s[d40], %c50%s", is_red ? "red" : "atom", names[space], rows[n].name, first, letter,
                        third);
                uint8_t *at = in_global ? where->data + 16 : shared_bytes + 16;
                write_bytes(at, rows[n].old, rows[n].bytes);
                write_bytes(at + rows[n].bytes, 0x77, 1);
                fixture_set64(40, 3, in_global ? base + 16 : (space == 3 ? SHARED_WINDOW : 0) + SHARED_BASE + 16);
                if (letter == 'd') fixture_set64(50, 3, rows[n].b), fixture_set64(54, 3, rows[n].c);
                else fixture_set32(50, 3, (uint32_t)rows[n].b), fixture_set32(54, 3, (uint32_t)rows[n].c);
                passes(text, 1u << 3);
                const uint64_t expected = in_global ? rows[n].global : rows[n].shared;
                if (read_bytes(at, rows[n].bytes) != expected)
                    fail_msg("%s of row %u: 0x%llx", text, n, (unsigned long long)read_bytes(at, rows[n].bytes));
                assert_int_equal(at[rows[n].bytes], 0x77);
                if (!is_red) assert_int_equal(letter == 'd' ? fixture_get64(60, 3) : fixture_get32(60, 3), rows[n].old);
            }
}

static void lanes_in_order(void **state)
{
    (void)state;
    start(CHECK_RACE | CHECK_OPERANDS);
    for (unsigned lane = 0; lane < PTX_LANES; lane++) {
        fixture_set64(40, lane, base + 8);
        fixture_set32(42, lane, SHARED_BASE + lane / 16 * 4);
        fixture_set32(50, lane, lane + 1);
    }
    passes("atom.global.add.u32 r60, [d40], r50", 0xfffffff0);
    unsigned sum = 0;
    for (unsigned lane = 4; lane < PTX_LANES; lane++) {
        assert_int_equal(fixture_get32(60, lane), sum);
        sum += lane + 1;
    }
    assert_int_equal(fixture_get32(60, 3), 0);
    assert_int_equal(read_bytes(where->data + 8, 4), sum);
    passes("atom.shared.exch.b32 r60, [r42], r50", FULL_MASK);
    for (unsigned lane = 0; lane < PTX_LANES; lane++) assert_int_equal(fixture_get32(60, lane), lane % 16 ? lane : 0);
    passes("red.shared.max.u32 [r42], #40", FULL_MASK);
    assert_int_equal(read_bytes(shared_bytes, 8), 40ull << 32 | 40);
    write_bytes(where->data + 8, 0xffff, 2);
    passes("atom.global.cas.b16 h60, [d40], #n-1, #n5", 1);
    assert_int_equal(read_bytes(where->data + 8, 2), 5);
    passes("atom.shared.add.u32 _, [r42], #-1", 1);
    assert_int_equal(read_bytes(shared_bytes, 4), 39);
    assert_int_equal(fixture.counters.shared_store_requests, 3);
    assert_int_equal(fixture.counters.global_store_sectors, 2);
    fails("ld.shared.u32 r60, [r42]", FULL_MASK, FAULT_RACE, "changed by an atomic");
}

static pthread_barrier_t both;

static void *add_often(void *user)
{
    warp w = fixture.warp;
    (void)user;
    pthread_barrier_wait(&both);
    for (int n = 0; n < 8000; n++) fixture.instruction.run(&w, &fixture.instruction, FULL_MASK);
    return NULL;
}

static void two_threads(void **state)
{
    (void)state;
    static const struct { const char *text; uint64_t step, sum; unsigned bytes; } rows[] = {
        {"red.global.add.u32 [d40], r50", 1, 512000, 4}, {"red.global.add.u64 [d40], d50", 1ull << 33, 512000ull << 33, 8},
        {"red.global.add.f32 [d40], r50", 0x3f800000, 0x48fa0000, 4}};
    assert_int_equal(pthread_barrier_init(&both, NULL, 2), 0);
    for (unsigned n = 0; n < sizeof rows / sizeof *rows; n++) {
        pthread_t other;
        start(0);
        fixture.launch.count = 0;
        for (unsigned lane = 0; lane < PTX_LANES; lane++) {
            fixture_set64(40, lane, base);
            fixture_set64(50, lane, 0);
            if (rows[n].bytes == 8) fixture_set64(50, lane, rows[n].step);
            else fixture_set32(50, lane, (uint32_t)rows[n].step);
        }
        assert_non_null(fixture_bind(rows[n].text));
        assert_int_equal(pthread_create(&other, NULL, add_often, NULL), 0);
        add_often(NULL);
        pthread_join(other, NULL);
        assert_int_equal(read_bytes(where->data, rows[n].bytes), rows[n].sum);
    }
    pthread_barrier_destroy(&both);
}

/* ---- matrices ---- */

/* Row i of matrix j at a place of its own. */
static unsigned row_offset(unsigned j, unsigned i)
{
    return (j * 8 + i) * 5 % 32 * 80;
}

static uint16_t element(unsigned j, unsigned row, unsigned column)
{
    return (uint16_t)(j << 12 | row << 6 | column | 0x8000);
}

static void set_rows(unsigned count)
{
    for (unsigned lane = 0; lane < PTX_LANES; lane++)
        fixture_set32(40, lane, lane < count * 8 ? SHARED_BASE + row_offset(lane / 8, lane % 8) : 3 /* not looked at */);
}

static void matrix_text(char *text, const char *name, unsigned count, int trans, int generic)
{
    static const char *const registers[] = {"", "r50", "{r50,r52}", "", "{r50,r52,r54,r56}"};
    const char *address = generic ? "[d44]" : "[r40]";
    const int is_load = name[0] == 'l';
    sprintf(text, "%s.sync.aligned.m8n8.x%u%s%s.b16 %s, %s", name, count, trans ? ".trans" : "", generic ? "" : ".shared",
            is_load ? registers[count] : address, is_load ? address : registers[count]);
}

/* The element that a lane's register holds in half h: PTX's figure, by row and column. */
static void place_of(unsigned lane, unsigned h, int trans, unsigned *row, unsigned *column)
{
    *(trans ? column : row) = lane / 4;
    *(trans ? row : column) = lane % 4 * 2 + h;
}

static void matrices(void **state)
{
    (void)state;
    for (unsigned count = 1; count <= 4; count *= 2)
        for (int trans = 0; trans < 2; trans++)
            for (int generic = 0; generic < 2; generic++) {
                char text[128];
                start(0);
                set_rows(count);
                for (unsigned lane = 0; lane < PTX_LANES; lane++)
                    fixture_set64(44, lane, SHARED_WINDOW + fixture_get32(40, lane));
                for (unsigned j = 0; j < count; j++)
                    for (unsigned i = 0; i < 64; i++)
                        write_bytes(shared_bytes + row_offset(j, i / 8) + i % 8 * 2, element(j, i / 8, i % 8), 2);
                matrix_text(text, "ldmatrix", count, trans, generic);
                passes(text, FULL_MASK);
                for (unsigned j = 0; j < 4; j++)
                    for (unsigned lane = 0; lane < PTX_LANES; lane++)
                        for (unsigned h = 0; h < 2; h++) {
                            unsigned row, column;
                            place_of(lane, h, trans, &row, &column);
                            assert_int_equal(fixture_get32(50 + 2 * j, lane) >> 16 * h & 0xffff,
                                             j < count ? element(j, row, column) : 0);
                        }
                uint8_t before[SHARED];
                memcpy(before, shared_bytes, SHARED);
                memset(shared_bytes, 0, SHARED);
                matrix_text(text, "stmatrix", count, trans, generic);
                passes(text, FULL_MASK);
                assert_memory_equal(shared_bytes, before, SHARED);
                assert_int_equal(fixture.counters.shared_load_requests, 1);
                assert_int_equal(fixture.counters.shared_store_cycles, fixture.counters.shared_load_cycles);
                assert_in_range(fixture.counters.shared_load_cycles, count, 8 * count);
            }
}

static void matrix_checks(void **state)
{
    (void)state;
    static const char load[] = "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {r50,r52}, [r40]";
    static const char store[] = "stmatrix.sync.aligned.m8n8.x2.shared.b16 [r40], {r50,r52}";
    start(CHECK_ALL);
    set_rows(2);
    fails(load, FULL_MASK, FAULT_UNINITIALISED, "read of shared byte");
    passes(store, FULL_MASK);
    fails(load, FULL_MASK, FAULT_RACE, "no bar.warp.sync between"); /* the lanes that stored are others than those that receive */
    shadow_warp_sync(&fixture.warp, FULL_MASK);
    passes(load, FULL_MASK);
    fails(store, FULL_MASK, FAULT_RACE, "no bar.warp.sync between");
    shadow_warp_sync(&fixture.warp, FULL_MASK);
    passes(store, FULL_MASK);
    start(0);
    set_rows(2);
    passes(load, 0xffff);
    fails(load, ~(1u << 15), FAULT_LANES, "ldmatrix without this thread");
    fails(store, ~(1u << 31), FAULT_LANES, "stmatrix without this thread");
    fixture_set32(40, 15, SHARED_BASE + 8);
    fails(load, FULL_MASK, FAULT_MISALIGNED, "it must be a multiple of 16");
    fixture_set32(40, 15, SHARED_BASE + SHARED);
    fails(load, FULL_MASK, FAULT_OUT_OF_BOUNDS, "read of 16 bytes at shared address");
    fails(store, FULL_MASK, FAULT_OUT_OF_BOUNDS, "write of 16 bytes at shared address");
    fixture_set32(40, 15, SHARED_BASE);
    for (unsigned lane = 0; lane < PTX_LANES; lane++)
        fixture_set64(44, lane, lane == 6 ? base : SHARED_WINDOW + SHARED_BASE + lane * 16);
    fails("ldmatrix.sync.aligned.m8n8.x1.b16 r50, [d44]", FULL_MASK, FAULT_OUT_OF_BOUNDS, "is not in shared memory");
}

/* Cycles of four matrices: rows of 64 bytes as they are, exchanged by the row's number, and padded. */
static void matrix_conflicts(void **state)
{
    (void)state;
    static const char text[] = "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {r50,r52,r54,r56}, [r40]";
    static const struct { unsigned step, swizzle; uint64_t cycles; } rows[] = {{64, 0, 16}, {64, 1, 4}, {80, 0, 4}, {128, 0, 32},
                                                                               {16, 0, 4}};
    for (unsigned n = 0; n < sizeof rows / sizeof *rows; n++) {
        start(0);
        for (unsigned lane = 0; lane < PTX_LANES; lane++)
            fixture_set32(40, lane, SHARED_BASE + lane % 32 * rows[n].step % 4096 + (rows[n].swizzle ? lane / 2 % 4 * 16 : 0));
        passes(text, FULL_MASK);
        assert_int_equal(fixture.counters.shared_load_cycles, rows[n].cycles);
        assert_int_equal(fixture.counters.shared_load_conflicts, rows[n].cycles - 4);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(single_operations), cmocka_unit_test(lanes_in_order), cmocka_unit_test(two_threads),
        cmocka_unit_test(matrices),          cmocka_unit_test(matrix_checks),  cmocka_unit_test(matrix_conflicts),
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
