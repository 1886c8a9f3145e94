/* The software GPU's device memory: addresses, limits, look-ups and copies; and the counting of sectors and bank
 * conflicts, against numbers worked out by hand and against a count by brute force. */
#include "../src/swgpu/exec.h"
#include "../src/swgpu/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static CUresult copy(device_memory *m, uint64_t to, uint64_t from, uint64_t bytes)
{
    char text[256];
    return memory_copy(m, to, from, bytes, text, sizeof text);
}

static uint64_t host(const void *p)
{
    return (uint64_t)(uintptr_t)p;
}

static void addresses_grow_and_never_return(void **state)
{
    (void)state;
    device_memory *m = memory_create(1 << 20);
    uint64_t before = GLOBAL_WINDOW, a;
    for (uint64_t bytes = 1; bytes < 2000; bytes += 37) {
        assert_int_equal(memory_allocate(m, bytes, 0, &a), CUDA_SUCCESS);
        assert_int_equal(a % 512, 0);
        assert_true(a >= before + 512);
        assert_int_equal(a & WINDOW_MASK, GLOBAL_WINDOW);
        before = a + bytes;
        if (bytes % 2) assert_int_equal(memory_free(m, a), CUDA_SUCCESS);
    }
    memory_destroy(m);
    m = memory_create(1 << 20);
    assert_int_equal(memory_allocate(m, 1, 0, &a), CUDA_SUCCESS);
    assert_true(a >= before + 512);
    memory_destroy(m);
    memory_destroy(NULL);
}

static void the_limit_is_on_what_is_live(void **state)
{
    (void)state;
    device_memory *m = memory_create(1000);
    uint64_t a, b, c, sum;
    assert_int_equal(memory_allocate(m, 0, 0, &a), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(memory_allocate(m, 1001, 0, &a), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(memory_allocate(m, UINT64_MAX, 0, &a), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(memory_allocate(m, 600, 0, &a), CUDA_SUCCESS);
    assert_int_equal(memory_allocate(m, 401, 0, &b), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(memory_allocate(m, 400, 1, &b), CUDA_SUCCESS);
    assert_int_equal(memory_used(m), 1000);
    assert_int_equal(memory_live(m, &sum), 1); /* b is a module's */
    assert_int_equal(sum, 600);
    assert_int_equal(memory_free(m, a), CUDA_SUCCESS);
    assert_int_equal(memory_live(m, &sum), 0);
    assert_int_equal(sum, 0);
    assert_int_equal(memory_used(m), 400);
    assert_int_equal(memory_allocate(m, 600, 0, &c), CUDA_SUCCESS);
    assert_int_equal(memory_free(m, a), CUDA_ERROR_INVALID_VALUE); /* twice */
    assert_int_equal(memory_free(m, c + 1), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(memory_free(m, c + 4096), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(memory_free(m, 0), CUDA_ERROR_INVALID_VALUE);
    memory_destroy(m);
}

/* More than the window holds is refused; the last byte of a large block is there, and 0. */
static void large_blocks(void **state)
{
    (void)state;
    device_memory *m = memory_create(UINT64_MAX);
    uint64_t a;
    assert_int_equal(memory_allocate(m, UINT64_MAX / 4, 0, &a), CUDA_ERROR_OUT_OF_MEMORY);
    if (memory_allocate(m, 1ull << 28, 0, &a) == CUDA_SUCCESS) {
        const allocation *found = memory_find(m, a + (1ull << 28) - 1, NULL);
        assert_non_null(found);
        assert_int_equal(found->data[(1ull << 28) - 1], 0);
    }
    memory_destroy(m);
}

static void look_ups(void **state)
{
    (void)state;
    enum { COUNT = 200 };
    device_memory *m = memory_create(1 << 30);
    uint64_t a[COUNT];
    assert_null(memory_find(m, GLOBAL_WINDOW, NULL));
    assert_null(memory_below(m, UINT64_MAX));
    for (int n = 0; n < COUNT; n++) assert_int_equal(memory_allocate(m, (uint64_t)n * 7 + 1, 0, &a[n]), CUDA_SUCCESS);
    for (int n = 0; n < COUNT; n += 3) assert_int_equal(memory_free(m, a[n]), CUDA_SUCCESS);
    const allocation *hint = NULL;
    for (int n = 0; n < COUNT; n++) {
        const uint64_t bytes = (uint64_t)n * 7 + 1;
        const allocation *first = memory_find(m, a[n], NULL);
        assert_non_null(first);
        assert_int_equal(first->base, a[n]);
        assert_int_equal(first->bytes, bytes);
        assert_int_equal(first->freed, n % 3 == 0);
        assert_int_equal(first->data == NULL, n % 3 == 0);
        assert_ptr_equal(memory_find(m, a[n] + bytes - 1, &hint), first);
        assert_ptr_equal(hint, first);
        assert_ptr_equal(memory_find(m, a[n], &hint), first);
        assert_null(memory_find(m, a[n] + bytes, &hint)); /* the hint must not answer for it */
        assert_null(memory_find(m, a[n] - 1, &hint));
        assert_ptr_equal(memory_below(m, a[n] + bytes + 100), first);
        if (n) assert_int_equal(memory_below(m, a[n] - 1)->base, a[n - 1]);
    }
    assert_null(memory_below(m, a[0] - 1));
    assert_null(memory_find(m, 0, &hint));
    memory_destroy(m);
}

static void copies(void **state)
{
    (void)state;
    device_memory *m = memory_create(1 << 20);
    uint64_t a, b;
    uint8_t from[100], to[100] = {0};
    char text[256];
    for (int n = 0; n < 100; n++) from[n] = (uint8_t)(n + 1);
    memory_allocate(m, 100, 0, &a);
    memory_allocate(m, 100, 0, &b);
    const allocation *in_a = memory_find(m, a, NULL), *in_b = memory_find(m, b, NULL);
    assert_int_equal(copy(m, a + 10, host(from), 20), CUDA_SUCCESS);
    for (int n = 0; n < 100; n++) {
        assert_int_equal(in_a->written[n], n >= 10 && n < 30);
        assert_int_equal(in_a->data[n], n >= 10 && n < 30 ? n - 9 : 0);
    }
    /* Device to device carries what was written along, and over itself. */
    assert_int_equal(copy(m, b, a + 5, 10), CUDA_SUCCESS);
    for (int n = 0; n < 100; n++) assert_int_equal(in_b->written[n], n >= 5 && n < 10);
    assert_int_equal(copy(m, a + 12, a + 10, 20), CUDA_SUCCESS);
    for (int n = 12; n < 32; n++) assert_int_equal(in_a->data[n], n - 11);
    assert_int_equal(copy(m, host(to), a + 12, 20), CUDA_SUCCESS);
    assert_memory_equal(to, from, 20);
    assert_int_equal(to[20], 0);
    assert_int_equal(copy(m, host(to) + 50, host(from), 50), CUDA_SUCCESS);
    assert_memory_equal(to + 50, from, 50);
    /* Ends, and beyond. */
    assert_int_equal(copy(m, a, host(from), 100), CUDA_SUCCESS);
    assert_int_equal(copy(m, a, 0, 0), CUDA_SUCCESS);
    assert_int_equal(memory_copy(m, a, host(from), 101, text, sizeof text), CUDA_ERROR_INVALID_VALUE);
    assert_non_null(strstr(text, "destination, 101 bytes"));
    assert_int_equal(memory_copy(m, host(to), a + 99, 2, text, sizeof text), CUDA_ERROR_INVALID_VALUE);
    assert_non_null(strstr(text, "source, 2 bytes"));
    assert_non_null(strstr(text, "99 bytes into one of 100"));
    assert_int_equal(copy(m, a + 1, host(from), UINT64_MAX), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(copy(m, GLOBAL_WINDOW, host(from), 1), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(memory_copy(m, 0, a, 1, text, sizeof text), CUDA_ERROR_INVALID_VALUE);
    assert_non_null(strstr(text, "null pointer"));
    memory_free(m, a);
    assert_int_equal(memory_copy(m, host(to), a, 1, text, sizeof text), CUDA_ERROR_INVALID_VALUE);
    assert_non_null(strstr(text, "was freed"));
    memory_destroy(m);
}

/* ---- counters ---- */

static void sums_all_fields(void **state)
{
    (void)state;
    enum { FIELDS = sizeof(counters) / sizeof(uint64_t) };
    union { counters c; uint64_t v[FIELDS]; } a, b;
    for (unsigned n = 0; n < FIELDS; n++) a.v[n] = n, b.v[n] = 1000u * n;
    counters_add(&a.c, &b.c);
    for (unsigned n = 0; n < FIELDS; n++) assert_int_equal(a.v[n], 1001u * n);
}

/* Sectors of 32 lanes at first + lane * stride. */
static uint64_t sectors(uint64_t first, uint64_t stride, uint32_t mask)
{
    uint64_t address[32];
    counters c = {0};
    for (unsigned lane = 0; lane < 32; lane++) address[lane] = first + lane * stride;
    counters_global(&c, 0, address, mask);
    assert_int_equal(c.global_load_requests, 1);
    assert_int_equal(c.global_store_requests, 0);
    const uint64_t loads = c.global_load_sectors;
    counters_global(&c, 1, address, mask);
    assert_int_equal(c.global_store_requests, 1);
    assert_int_equal(c.global_store_sectors, loads);
    return loads;
}

static void sectors_by_hand(void **state)
{
    (void)state;
    const uint64_t base = GLOBAL_WINDOW + 0x10000;
    assert_int_equal(sectors(base, 4, FULL_MASK), 4);
    assert_int_equal(sectors(base + 4, 4, FULL_MASK), 5);
    assert_int_equal(sectors(base, 16, FULL_MASK), 16);
    assert_int_equal(sectors(base, 2, FULL_MASK), 2);
    assert_int_equal(sectors(base, 0, FULL_MASK), 1);
    assert_int_equal(sectors(base, 32, FULL_MASK), 32);
    assert_int_equal(sectors(base, 4096, FULL_MASK), 32);
    assert_int_equal(sectors(base, (uint64_t)0 - 4096, FULL_MASK), 32);
    assert_int_equal(sectors(base, 4096, 0x80000001), 2);
    assert_int_equal(sectors(base, 4, 1u << 31), 1);
}

static void sectors_by_brute_force(void **state)
{
    (void)state;
    srand(7);
    for (int round = 0; round < 5000; round++) {
        uint64_t address[32];
        const uint64_t range = 1ull << (rand() % 20 + 1);
        uint32_t mask = round % 3 ? (uint32_t)rand() * 2654435761u : FULL_MASK;
        if (!mask) mask = 1;
        unsigned expected = 0;
        for (unsigned lane = 0; lane < 32; lane++) address[lane] = GLOBAL_WINDOW + (uint64_t)rand() % range * 4;
        for (unsigned lane = 0; lane < 32; lane++) {
            int is_new = mask >> lane & 1;
            for (unsigned other = 0; other < lane; other++)
                if (mask >> other & 1 && address[other] >> 5 == address[lane] >> 5) is_new = 0;
            expected += (unsigned)is_new;
        }
        counters c = {0};
        counters_global(&c, 0, address, mask);
        assert_int_equal(c.global_load_sectors, expected);
    }
}

static counters banks(uint64_t stride, uint32_t bytes, uint32_t mask)
{
    uint64_t address[32];
    counters c = {0};
    for (unsigned lane = 0; lane < 32; lane++) address[lane] = SHARED_BASE + lane * stride;
    counters_shared(&c, 0, address, mask, bytes);
    assert_int_equal(c.shared_load_requests, 1);
    counters_shared(&c, 1, address, mask, bytes);
    assert_int_equal(c.shared_store_requests, 1);
    assert_int_equal(c.shared_store_cycles, c.shared_load_cycles);
    assert_int_equal(c.shared_store_conflicts, c.shared_load_conflicts);
    return c;
}

static void expect_banks(uint64_t stride, uint32_t bytes, uint32_t mask, uint64_t cycles, uint64_t conflicts)
{
    const counters c = banks(stride, bytes, mask);
    assert_int_equal(c.shared_load_cycles, cycles);
    assert_int_equal(c.shared_load_conflicts, conflicts);
}

static void banks_by_hand(void **state)
{
    (void)state;
    expect_banks(4, 4, FULL_MASK, 1, 0);
    expect_banks(8, 4, FULL_MASK, 2, 1);
    expect_banks(128, 4, FULL_MASK, 32, 31); /* a column of 32 words a row */
    expect_banks(132, 4, FULL_MASK, 1, 0);   /* of rows padded by one word */
    expect_banks(64, 4, FULL_MASK, 16, 15);
    expect_banks(0, 4, FULL_MASK, 1, 0);     /* a broadcast */
    expect_banks(2, 2, FULL_MASK, 1, 0);     /* two lanes a word */
    expect_banks(1, 1, FULL_MASK, 1, 0);
    expect_banks(128, 2, FULL_MASK, 32, 31);
    expect_banks(8, 8, FULL_MASK, 2, 0);     /* two halves of the warp */
    expect_banks(16, 8, FULL_MASK, 4, 2);
    expect_banks(128, 8, FULL_MASK, 32, 30);
    expect_banks(16, 16, FULL_MASK, 4, 0);   /* four quarters; also ldmatrix of rows without a gap */
    expect_banks(128, 16, FULL_MASK, 32, 28);
    expect_banks(144, 16, FULL_MASK, 4, 0);  /* rows of 128 bytes padded by 16 */
    expect_banks(64, 16, FULL_MASK, 16, 12); /* ldmatrix of rows of 64 bytes: two of eight beside each other */
    expect_banks(32, 32, FULL_MASK, 8, 0);
    expect_banks(128, 16, 0xff, 8, 7);       /* one matrix */
    expect_banks(128, 4, 0x80000001, 2, 1);
    expect_banks(128, 16, 0x80000001, 2, 0); /* in different quarters */
}

/* Rows of 64 bytes whose 16-byte pieces are exchanged by the row's number: no conflicts. */
static void a_swizzle_has_none(void **state)
{
    (void)state;
    uint64_t address[32];
    for (unsigned lane = 0; lane < 32; lane++) {
        const unsigned row = lane, piece = 0 ^ (row / 2 % 4);
        address[lane] = SHARED_BASE + row * 64 + piece * 16;
    }
    counters c = {0};
    counters_shared(&c, 0, address, FULL_MASK, 16);
    assert_int_equal(c.shared_load_cycles, 4);
    assert_int_equal(c.shared_load_conflicts, 0);
}

static void banks_by_brute_force(void **state)
{
    (void)state;
    srand(11);
    for (int round = 0; round < 3000; round++) {
        const uint32_t bytes = 1u << (rand() % 6), lanes = bytes < 4 ? 32 : 128 / bytes;
        uint64_t address[32];
        uint32_t mask = round % 3 ? (uint32_t)rand() * 2654435761u : FULL_MASK;
        if (!mask) mask = 1;
        const uint64_t step = bytes * (round % 2 ? 1u : 8u);
        for (unsigned lane = 0; lane < 32; lane++) address[lane] = SHARED_BASE + (uint64_t)rand() % 64 * step;
        uint64_t cycles = 0, parts = 0;
        for (unsigned first = 0; first < 32; first += lanes) {
            static uint8_t used[1 << 13]; /* per word */
            uint64_t per_bank[32] = {0}, most = 0;
            memset(used, 0, sizeof used);
            for (unsigned lane = first; lane < first + lanes; lane++)
                for (uint32_t n = 0; n < bytes && mask >> lane & 1; n++) used[(address[lane] + n) / 4] = 1;
            for (unsigned word = 0; word < sizeof used; word++)
                if (used[word] && ++per_bank[word % 32] > most) most = per_bank[word % 32];
            cycles += most;
            parts += most > 0;
        }
        counters c = {0};
        counters_shared(&c, 0, address, mask, bytes);
        assert_int_equal(c.shared_load_cycles, cycles);
        assert_int_equal(c.shared_load_conflicts, cycles - parts);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_grow_and_never_return), cmocka_unit_test(the_limit_is_on_what_is_live),
        cmocka_unit_test(large_blocks),        cmocka_unit_test(look_ups),
        cmocka_unit_test(copies),                          cmocka_unit_test(sums_all_fields),
        cmocka_unit_test(sectors_by_hand),                 cmocka_unit_test(sectors_by_brute_force),
        cmocka_unit_test(banks_by_hand),                   cmocka_unit_test(a_swizzle_has_none),
        cmocka_unit_test(banks_by_brute_force),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
