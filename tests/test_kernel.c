/* Kernel descriptions: keys are injective and stable, names are unique, sources carry what the spec says. */
#include "kernel.h"
#include "template.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static kernel_spec base_spec(void)
{
    kernel_spec s;
    memset(&s, 0, sizeof s);
    s.family = FAMILY_MMA;
    s.arch = 87;
    s.form = JG_FORM_SPECIALISED;
    s.type_in = s.type_c = JG_F16;
    s.vec_a = s.vec_b = 16;
    s.vec_c = s.single = 1;
    s.tile = (tile){128, 64, 32, 64, 32, 3};
    s.m = 196, s.n = 768, s.k = 384;
    s.lda = 384, s.ldb = 768, s.ldc = 768;
    return s;
}

/* One spec for every member changed by the least amount, and the base itself. */
#define VARIANTS 30
static void make_variants(kernel_spec v[VARIANTS])
{
    for (int i = 0; i < VARIANTS; i++) v[i] = base_spec();
    v[1].family = FAMILY_SIMT;
    v[2].arch = 90;
    v[3].form = JG_FORM_GENERIC;
    v[4].type_in = JG_BF16;
    v[5].type_c = JG_F32;
    v[6].trans_a = 1;
    v[7].trans_b = 1;
    v[8].vec_a = 8;
    v[9].vec_b = 8;
    v[10].vec_c = 0;
    v[11].single = 0;
    v[12].tile.m = 256;
    v[13].tile.n = 128;
    v[14].tile.k = 64;
    v[15].tile.warp_m = 32;
    v[16].tile.warp_n = 64;
    v[17].tile.stages = 4;
    v[18].m++;
    v[19].n++;
    v[20].k++;
    v[21].lda++;
    v[22].ldb++;
    v[23].ldc++;
    /* Each left to the launch. */
    v[24].m = 0;
    v[25].n = 0;
    v[26].k = 0;
    v[27].lda = 0;
    v[28].ldb = 0;
    v[29].ldc = 0;
}

static void test_every_member_is_in_the_key(void **state)
{
    (void)state;
    kernel_spec v[VARIANTS];
    kernel_key keys[VARIANTS];
    make_variants(v);
    for (int i = 0; i < VARIANTS; i++) kernel_encode_key(&v[i], &keys[i]);
    for (int i = 0; i < VARIANTS; i++)
        for (int j = 0; j < i; j++)
            if (memcmp(&keys[i], &keys[j], sizeof keys[i]) == 0) fail_msg("variants %d and %d have one key", i, j);
}

static void test_every_member_is_in_the_name(void **state)
{
    (void)state;
    kernel_spec v[VARIANTS];
    char names[VARIANTS][KERNEL_NAME_BYTES];
    make_variants(v);
    for (int i = 0; i < VARIANTS; i++) kernel_format_name(&v[i], names[i]);
    for (int i = 0; i < VARIANTS; i++)
        for (int j = 0; j < i; j++)
            if (strcmp(names[i], names[j]) == 0) fail_msg("variants %d and %d are both called %s", i, j, names[i]);
}

static void test_key_does_not_depend_on_padding_or_run(void **state)
{
    (void)state;
    kernel_spec clean = base_spec(), dirty;
    memset(&dirty, 0xff, sizeof dirty);
    /* Member by member, so that padding keeps its 0xff. */
    dirty.family = clean.family, dirty.arch = clean.arch, dirty.form = clean.form;
    dirty.type_in = clean.type_in, dirty.type_c = clean.type_c;
    dirty.trans_a = clean.trans_a, dirty.trans_b = clean.trans_b;
    dirty.vec_a = clean.vec_a, dirty.vec_b = clean.vec_b, dirty.vec_c = clean.vec_c, dirty.single = clean.single;
    dirty.tile = clean.tile;
    dirty.m = clean.m, dirty.n = clean.n, dirty.k = clean.k;
    dirty.lda = clean.lda, dirty.ldb = clean.ldb, dirty.ldc = clean.ldc;
    kernel_key a, b;
    kernel_encode_key(&clean, &a);
    kernel_encode_key(&dirty, &b);
    assert_memory_equal(&a, &b, sizeof a);
}

/* The bytes themselves, but for the template digest: another layout must come with another KERNEL_KEY_FORMAT. */
static void test_key_layout_is_pinned(void **state)
{
    (void)state;
    const kernel_spec s = base_spec();
    kernel_key key;
    kernel_encode_key(&s, &key);
    assert_memory_equal(key.bytes, "jgkernel", 8);
    static const uint8_t versions[8] = {KERNEL_ABI, 0, 0, 0, KERNEL_KEY_FORMAT, 0, 0, 0};
    assert_memory_equal(key.bytes + 8, versions, 8);
    static const uint8_t family_arch[8] = {87, 0, 0, 0, FAMILY_MMA, 0, 0, 0};
    assert_memory_equal(key.bytes + 24, family_arch, 8);
    static const uint8_t m[8] = {196, 0, 0, 0, 0, 0, 0, 0};
    assert_memory_equal(key.bytes + 72, m, 8);
    static const uint8_t ldc[8] = {0, 3, 0, 0, 0, 0, 0, 0};
    assert_memory_equal(key.bytes + 112, ldc, 8);
    assert_int_equal(key.bytes[120], kernel_min_blocks(&s));
    for (size_t i = 121; i < sizeof key.bytes; i++) assert_int_equal(key.bytes[i], 0);
}

static void test_names(void **state)
{
    (void)state;
    kernel_spec s = base_spec();
    char name[KERNEL_NAME_BYTES];
    kernel_format_name(&s, name);
    assert_string_equal(name, "jg_sm87_mma_f16f16f16_nn_128x64x32_w64x32_s3_a16_m196n768k384_l384_768_768_c4");
    s.form = JG_FORM_GENERIC;
    s.type_c = s.vec_c = s.trans_a = s.trans_b = SPEC_ARGUMENT;
    s.vec_a = s.vec_b = 2;
    kernel_format_name(&s, name);
    assert_string_equal(name, "jg_sm87_mma_f16f16x_xx_128x64x32_w64x32_s3_a2");
}

/* What is left to the launch is an x in the name, and its macro is missing; every choice of six, so that none follows another. */
static void test_each_size_by_itself_can_be_left_to_the_launch(void **state)
{
    (void)state;
    static const char *const macros[] = {"JG_M ", "JG_N ", "JG_K ", "JG_LDA ", "JG_LDB ", "JG_LDC "};
    for (unsigned left = 0; left < 64; left++) {
        kernel_spec s = base_spec();
        int64_t *const sizes[] = {&s.m, &s.n, &s.k, &s.lda, &s.ldb, &s.ldc};
        char name[KERNEL_NAME_BYTES], text[2048], parts[6][24], expected[160];
        for (int i = 0; i < 6; i++) {
            if (left >> i & 1) *sizes[i] = 0;
            if (*sizes[i]) snprintf(parts[i], sizeof parts[i], "%lld", (long long)*sizes[i]);
            else strcpy(parts[i], "x");
        }
        snprintf(expected, sizeof expected, "_m%sn%sk%s_l%s_%s_%s_c4", parts[0], parts[1], parts[2], parts[3], parts[4],
                 parts[5]);
        kernel_format_name(&s, name);
        assert_non_null(strstr(name, "_a16_m"));
        assert_string_equal(strstr(name, "_a16_m") + 4, expected);
        kernel_render_defines(&s, text, sizeof text);
        for (int i = 0; i < 6; i++) assert_true((strstr(text, macros[i]) == NULL) == (left >> i & 1));
        assert_non_null(strstr(text, "#define JG_VEC_C 1\n"));
    }
}

static void test_longest_name_fits(void **state)
{
    (void)state;
    kernel_spec s = base_spec();
    s.arch = 120;
    s.type_in = s.type_c = JG_BF16;
    s.tile = (tile){65535, 65535, 65535, 65535, 65535, 65535};
    s.m = s.n = s.k = 2147483647;
    s.lda = s.ldb = s.ldc = INT64_MAX;
    s.vec_b = 2;
    s.single = 0;
    char name[KERNEL_NAME_BYTES];
    kernel_format_name(&s, name);
    assert_string_equal(name + strlen(name) - 5, "_c4_b");
}

static void test_defines(void **state)
{
    (void)state;
    kernel_spec s = base_spec();
    char text[2048];
    size_t length = kernel_render_defines(&s, text, sizeof text);
    assert_int_equal(length, strlen(text));
    assert_non_null(strstr(text, "#define JG_M 196\n"));
    assert_non_null(strstr(text, "#define JG_LDC 768\n"));
    assert_non_null(strstr(text, "#define JG_TRANS_A 0\n"));
    assert_non_null(strstr(text, "#define JG_SINGLE 1\n"));
    s.form = JG_FORM_GENERIC;
    s.m = s.n = s.k = s.lda = s.ldb = s.ldc = 0;
    s.single = 0;
    s.trans_a = s.trans_b = s.type_c = s.vec_c = SPEC_ARGUMENT;
    kernel_render_defines(&s, text, sizeof text);
    assert_null(strstr(text, "JG_M "));
    assert_null(strstr(text, "JG_TRANS_A"));
    assert_null(strstr(text, "JG_TYPE_C"));
    assert_null(strstr(text, "JG_SINGLE"));
    assert_true(kernel_render_defines(&s, text, 10) > 10); /* says how much it needs */
}

static void test_resources(void **state)
{
    (void)state;
    kernel_spec s = base_spec();
    assert_int_equal(kernel_threads(&s), 2 * 2 * 32);
    assert_int_equal(kernel_shared_bytes(&s), 3 * (128 + 64) * 32 * 2);
    assert_int_equal(kernel_registers(&s), 64 + 24 + 40);
    assert_int_equal(kernel_min_blocks(&s), 65536 / (128 * 128));
    s.family = FAMILY_SIMT;
    s.tile = (tile){64, 64, 16, 4, 4, 2};
    assert_int_equal(kernel_threads(&s), 256);
    assert_int_equal(kernel_shared_bytes(&s), 2 * 16 * (68 + 68) * 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_member_is_in_the_key),
        cmocka_unit_test(test_every_member_is_in_the_name),
        cmocka_unit_test(test_key_does_not_depend_on_padding_or_run),
        cmocka_unit_test(test_key_layout_is_pinned),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_each_size_by_itself_can_be_left_to_the_launch),
        cmocka_unit_test(test_longest_name_fits),
        cmocka_unit_test(test_defines),
        cmocka_unit_test(test_resources),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
