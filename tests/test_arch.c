/* Architecture tables: lookup, parsing, and limits that hang together. */
#include "arch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void test_find(void **state)
{
    (void)state;
    static const int known[] = {75, 80, 86, 87, 89, 90, 100, 110, 120};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        assert_non_null(arch_find(known[i]));
        assert_int_equal(arch_find(known[i])->number, known[i]);
        assert_ptr_equal(arch_at(i), arch_find(known[i]));
    }
    assert_null(arch_at(sizeof known / sizeof known[0]));
    /* A newer minor of a known major takes the nearest older row; nothing crosses a major. */
    assert_int_equal(arch_find(88)->number, 87);
    assert_int_equal(arch_find(103)->number, 100);
    assert_int_equal(arch_find(121)->number, 120);
    assert_null(arch_find(70));
    assert_null(arch_find(130));
    assert_null(arch_find(0));
    assert_null(arch_find(-87));
}

static void test_limits_hang_together(void **state)
{
    (void)state;
    for (size_t i = 0; arch_at(i); i++) {
        const arch *a = arch_at(i);
        assert_true(a->shared_per_block <= a->shared_per_sm);
        assert_true(a->threads_per_sm >= 1024 && a->threads_per_sm % 32 == 0);
        assert_true(a->sm_count > 0 && a->blocks_per_sm > 0 && a->registers_per_sm == 65536);
        assert_true(!a->has_mma == !a->mma_tiles && !a->has_mma == !a->tf32_tiles);
        assert_non_null(a->simt_tiles);
        assert_true(a->simt_tiles[0].tile.m > 0);
    }
}

/* Every family has tiles for generic kernels, of each kind that plans ask for. */
static void test_every_family_has_generic_tiles(void **state)
{
    (void)state;
    for (size_t i = 0; arch_at(i); i++) {
        const arch *a = arch_at(i);
        const arch_tile *const tables[] = {a->simt_tiles, a->tf32_tiles, a->mma_tiles};
        for (int family = 0; family < 3; family++) {
            unsigned flags = 0;
            for (const arch_tile *row = tables[family]; row && row->tile.m; row++) flags |= row->flags;
            if (tables[family]) assert_int_equal(flags, family == 2 ? TILE_GENERIC | TILE_GENERIC_GATHER | TILE_GENERIC_REALIGN : TILE_GENERIC);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_find),
        cmocka_unit_test(test_limits_hang_together),
        cmocka_unit_test(test_every_family_has_generic_tiles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
