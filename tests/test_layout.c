/* src/layout.c: bytes of each type, leading dimensions that are good and no larger than need be, and s4 packed and unpacked. */
#include "problem.h"
#include "reference.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define assert_fails(call, expected, named)                                                                   \
    do {                                                                                                      \
        const jg_status status_ = (call);                                                                     \
        if (status_ != (expected) || !strstr(jg_last_error(), named))                                         \
            fail_msg("%s: %s, %s", #call, jg_status_name(status_), status_ ? jg_last_error() : "");           \
    } while (0)

static void bytes_of_neighbours(void **state)
{
    (void)state;
    static const int64_t twice[] = {0, 8, 4, 4, 2, 2, 1, 8, 2, 2, 0}; /* bytes of two, by jg_type */
    for (int t = 0; t <= LAST_TYPE + 1; t++) {
        const jg_type type = (jg_type)t;
        for (int64_t n = 0; n < 100; n++) assert_int_equal(jg_type_bytes(type, n), (n * twice[t] + 1) / 2);
        assert_int_equal(jg_type_bytes(type, -1), 0);
        assert_int_equal(jg_type_bytes(type, INT64_MIN), 0);
    }
    assert_int_equal(jg_type_bytes((jg_type)-1, 5), 0);
    assert_int_equal(jg_type_bytes(JG_S8, INT64_MAX), INT64_MAX);
    assert_int_equal(jg_type_bytes(JG_S4, INT64_MAX), INT64_MAX / 2 + 1);
    assert_int_equal(jg_type_bytes(JG_F32, INT64_MAX / 4), INT64_MAX / 4 * 4);
    assert_int_equal(jg_type_bytes(JG_F32, INT64_MAX / 4 + 1), INT64_MAX); /* more than there can be */
}

/* Bytes from one row to the next, which are whole ones. */
static int64_t step(jg_type type, int64_t ld)
{
    const int64_t bits = ld * type_bits(type);
    assert_int_equal(bits % 8, 0);
    return bits / 8;
}

static int is_good(jg_type type, int64_t length, int64_t ld)
{
    return ld >= length && ld * type_bits(type) % (jg_type_bytes(type, length) >= 1024 ? 1024 : 128) == 0;
}

static void good_leading_dimensions(void **state)
{
    (void)state;
    for (jg_type t = JG_F32; t <= JG_E5M2; t++) {
        int64_t before = 0;
        for (int64_t length = 0; length < 5000; length++) {
            const int64_t ld = jg_good_ld(t, length);
            assert_true(is_good(t, length, ld));
            for (int64_t less = length; less < ld; less++) assert_false(is_good(t, length, less)); /* the least */
            assert_true(ld >= before); /* a longer row never gets a smaller one */
            assert_int_equal(jg_good_ld(t, ld), ld);
            assert_int_equal(step(t, ld) % 16, 0);
            before = ld;
        }
        assert_int_equal(jg_good_ld(t, -1), 0);
        assert_int_equal(jg_good_ld(t, INT64_MAX), 0); /* there is none */
        assert_true(jg_good_ld(t, INT64_MAX - 300) >= INT64_MAX - 300);
    }
    assert_int_equal(jg_good_ld(JG_F32, 1), 4);
    assert_int_equal(jg_good_ld(JG_F32, 257), 288);
    assert_int_equal(jg_good_ld(JG_F16, 7), 8);
    assert_int_equal(jg_good_ld(JG_F16, 511), 512);
    assert_int_equal(jg_good_ld(JG_F16, 513), 576);
    assert_int_equal(jg_good_ld(JG_S8, 1007), 1008);
    assert_int_equal(jg_good_ld(JG_E4M3, 1025), 1152);
    assert_int_equal(jg_good_ld(JG_S4, 33), 64);
    assert_int_equal(jg_good_ld(JG_S4, 2049), 2304);
    assert_int_equal(jg_good_ld(JG_DEFAULT_TYPE, 8), 0);
    assert_int_equal(jg_good_ld((jg_type)10, 8), 0);
}

static void good_leading_dimensions_are_taken(void **state)
{
    (void)state;
    for (int64_t k = 1; k < 70; k++) {
        const jg_problem p = {.m = 3, .n = 5, .k = k, .type_a = JG_S4, .lda = jg_good_ld(JG_S4, k), .ldb = jg_good_ld(JG_S4, 5),
                              .ldc = jg_good_ld(JG_S32, 5)};
        problem out;
        assert_int_equal(problem_canonicalise(&p, &out), JG_OK);
    }
}

static void the_layout_of_a_byte(void **state)
{
    (void)state;
    static const int8_t source[] = {1, -1, 7, -8, 5, 99, 0, 2, -3, 4, -5};
    uint8_t packed[8];
    memset(packed, 0xee, sizeof packed);
    assert_int_equal(jg_pack_s4(source, 6, 2, 5, packed, 8), JG_OK);
    static const uint8_t expected[] = {0xf1, 0x87, 0x05, 0xee, 0x20, 0x4d, 0x0b, 0xee};
    assert_memory_equal(packed, expected, sizeof packed);
    for (int bits = 0; bits < 256; bits++) {
        const uint8_t byte = (uint8_t)bits;
        int8_t two[2];
        uint8_t again = 0;
        assert_int_equal(jg_unpack_s4(&byte, 2, 1, 2, two, 2), JG_OK);
        assert_int_equal(two[0], (bits & 15) - ((bits & 8) ? 16 : 0));
        assert_int_equal(two[1], (bits >> 4) - (bits >= 128 ? 16 : 0));
        assert_int_equal(jg_pack_s4(two, 2, 1, 2, &again, 2), JG_OK);
        assert_int_equal(again, byte);
    }
}

/* Blocks of just the bytes that may be touched, so that a sanitizer sees any other. */
static void there_and_back(void **state)
{
    (void)state;
    uint64_t random = 4;
    for (int64_t rows = 0; rows < 5; rows++)
        for (int64_t cols = 0; cols < 12; cols++)
            for (int wider = 0; wider < 9; wider++) {
                const int64_t ld = cols + cols % 2 + 2 * (wider % 3), ld_source = cols + wider / 3, ld_back = cols + wider % 2;
                const size_t source_bytes = rows ? (size_t)((rows - 1) * ld_source + cols) : 0;
                const size_t back_bytes = rows ? (size_t)((rows - 1) * ld_back + cols) : 0;
                const size_t packed_bytes = rows ? (size_t)((rows - 1) * ld / 2 + (cols + 1) / 2) : 0;
                int8_t *source = malloc(source_bytes + 1), *back = malloc(back_bytes + 1);
                uint8_t *packed = malloc(packed_bytes + 1);
                memset(source, 100, source_bytes + 1); /* between rows is what nobody reads */
                memset(back, 100, back_bytes + 1);
                memset(packed, 0xa5, packed_bytes + 1);
                for (int64_t i = 0; i < rows; i++)
                    for (int64_t j = 0; j < cols; j++)
                        source[i * ld_source + j] = (int8_t)((int)(reference_random(&random) % 16) - 8);
                assert_int_equal(jg_pack_s4(source, ld_source, rows, cols, packed, ld), JG_OK);
                for (size_t at = 0; at <= packed_bytes; at++) {
                    const int64_t row = ld ? (int64_t)at / (ld / 2) : 0, j = ld ? (int64_t)at % (ld / 2) * 2 : 0;
                    const int is_ours = at < packed_bytes && row < rows && j < cols;
                    if (!is_ours) assert_int_equal(packed[at], 0xa5);
                    else if (j == cols - 1) assert_int_equal(packed[at] >> 4, 0);
                }
                assert_int_equal(jg_unpack_s4(packed, ld, rows, cols, back, ld_back), JG_OK);
                for (int64_t i = 0; i < rows; i++)
                    for (int64_t j = 0; j < cols; j++) assert_int_equal(back[i * ld_back + j], source[i * ld_source + j]);
                for (size_t at = 0; at <= back_bytes; at++)
                    if (at == back_bytes || (int64_t)at % (ld_back ? ld_back : 1) >= cols) assert_int_equal(back[at], 100);
                free(source);
                free(packed);
                free(back);
            }
}

static void values_out_of_range_are_named(void **state)
{
    (void)state;
    int8_t source[3 * 7];
    uint8_t packed[3 * 4], untouched[3 * 4];
    memset(untouched, 0xa5, sizeof untouched);
    for (int at = 0; at < 3 * 7; at++)
        for (int which = 0; which < 4; which++) {
            static const int8_t values[] = {8, -9, INT8_MAX, INT8_MIN};
            char named[80];
            memset(source, 7, sizeof source);
            memset(packed, 0xa5, sizeof packed);
            source[at] = values[which];
            if (at % 7 >= 5) { /* between rows */
                assert_int_equal(jg_pack_s4(source, 7, 3, 5, packed, 6), JG_OK);
                continue;
            }
            snprintf(named, sizeof named, "source has %d in row %d, column %d", values[which], at / 7, at % 7);
            assert_fails(jg_pack_s4(source, 7, 3, 5, packed, 6), JG_ERR_VALUE, named);
            assert_memory_equal(packed, untouched, sizeof packed);
        }
}

static void bad_arguments(void **state)
{
    (void)state;
    int8_t wide[8] = {0};
    uint8_t packed[8] = {0};
    assert_fails(jg_pack_s4(NULL, 4, 2, 4, packed, 4), JG_ERR_NULL, "jg_pack_s4: source is null");
    assert_fails(jg_pack_s4(wide, 4, 2, 4, NULL, 4), JG_ERR_NULL, "jg_pack_s4: destination is null");
    assert_fails(jg_unpack_s4(NULL, 4, 2, 4, wide, 4), JG_ERR_NULL, "jg_unpack_s4: source is null");
    assert_fails(jg_unpack_s4(packed, 4, 2, 4, NULL, 4), JG_ERR_NULL, "jg_unpack_s4: destination is null");
    assert_fails(jg_pack_s4(wide, 4, -1, 4, packed, 4), JG_ERR_SIZE, "rows = -1 is negative");
    assert_fails(jg_pack_s4(wide, 4, 2, -4, packed, 4), JG_ERR_SIZE, "cols = -4 is negative");
    assert_fails(jg_unpack_s4(packed, 4, INT64_MIN, 4, wide, 4), JG_ERR_SIZE, "rows = -9223372036854775808");
    assert_fails(jg_pack_s4(wide, 3, 2, 4, packed, 4), JG_ERR_LEADING_DIMENSION,
                 "ld_source = 3 is too small; a row has 4 elements; use 4 or more");
    assert_fails(jg_pack_s4(wide, 4, 2, 4, packed, 2), JG_ERR_LEADING_DIMENSION, "ld = 2 is too small");
    assert_fails(jg_pack_s4(wide, 3, 2, 3, packed, 2), JG_ERR_LEADING_DIMENSION, "use 4 or more");
    assert_fails(jg_pack_s4(wide, 3, 2, 3, packed, 3), JG_ERR_LEADING_DIMENSION,
                 "ld = 3 is odd, and two elements are in a byte; use 4");
    assert_fails(jg_pack_s4(wide, 4, 2, 4, packed, -6), JG_ERR_LEADING_DIMENSION, "ld = -6");
    assert_fails(jg_pack_s4(wide, 4, 2, 4, packed, INT64_MAX), JG_ERR_LEADING_DIMENSION, "use 9223372036854775806");
    assert_fails(jg_unpack_s4(packed, 5, 2, 4, wide, 4), JG_ERR_LEADING_DIMENSION, "ld = 5 is odd");
    assert_fails(jg_unpack_s4(packed, 4, 2, 4, wide, 3), JG_ERR_LEADING_DIMENSION, "ld_destination = 3 is too small");
    assert_fails(jg_pack_s4(wide, INT64_MAX, 3, 4, packed, 4), JG_ERR_SIZE, "source ends beyond 2^63 - 1 elements: rows = 3");
    assert_fails(jg_unpack_s4(packed, 4, INT64_MAX, 4, wide, 4), JG_ERR_SIZE, "source ends beyond");
    assert_fails(jg_unpack_s4(packed, 4, 2, 4, wide, INT64_MAX), JG_ERR_SIZE, "destination ends beyond");
    /* Of nothing, nothing is needed. */
    assert_int_equal(jg_pack_s4(NULL, 4, 0, 4, NULL, 4), JG_OK);
    assert_int_equal(jg_pack_s4(NULL, 0, INT64_MAX, 0, NULL, 0), JG_OK);
    assert_int_equal(jg_unpack_s4(NULL, 4, 0, 4, NULL, 4), JG_OK);
    assert_int_equal(jg_unpack_s4(NULL, 0, INT64_MAX, 0, NULL, 0), JG_OK);
    assert_int_equal(jg_pack_s4(wide, INT64_MAX, 1, 4, packed, INT64_MAX - 1), JG_OK); /* a single row */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_of_neighbours),
        cmocka_unit_test(good_leading_dimensions),
        cmocka_unit_test(good_leading_dimensions_are_taken),
        cmocka_unit_test(the_layout_of_a_byte),
        cmocka_unit_test(there_and_back),
        cmocka_unit_test(values_out_of_range_are_named),
        cmocka_unit_test(bad_arguments),
    };
    return cmocka_run_group_tests_name("layout", tests, NULL, NULL);
}
