/* Kernel descriptions: keys are injective and stable, names are unique, sources carry what the spec says. */
#include "kernel.h"
#include "template.h"

#include <ctype.h>
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
    s.type_a = s.type_b = JG_F16;
    s.fusion = JG_F16 << FUSION_TYPE_C_SHIFT;
    s.vec_a = s.vec_b = 16;
    s.vec_c = s.single = 1;
    s.tile = (tile){128, 64, 32, 64, 32, 3, 1};
    s.m = 196, s.n = 768, s.k = 384;
    s.lda = 384, s.ldb = 768, s.ldc = 768;
    return s;
}

/* One spec for every member changed by the least amount, and the base itself. */
#define VARIANTS 59
static void make_variants(kernel_spec v[VARIANTS])
{
    for (int i = 0; i < VARIANTS; i++) v[i] = base_spec();
    v[1].family = FAMILY_SIMT;
    v[2].arch = 90;
    v[3].form = JG_FORM_GENERIC;
    v[4].type_a = JG_BF16;
    v[5].type_b = JG_BF16;
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
    v[30].type_b = JG_S8;
    v[31].type_a = JG_S8;
    v[32].math = JG_MATH_TF32; /* of the family mma there is none, but a key must not rely on it */
    v[33].math = JG_MATH_F32_3XTF32;
    v[34].math = JG_MATH_STRICT;
    v[35].math = JG_MATH_F16;
    v[36].math = JG_MATH_FLUSH;
    v[37].math = JG_MATH_SANITIZE;
    v[38].math = JG_MATH_F16 | JG_MATH_FLUSH | JG_MATH_SANITIZE;
    v[39].family = FAMILY_TF32;

    v[40].fusion = JG_F32 << FUSION_TYPE_C_SHIFT;
    for (int i = 0; i < 8; i++) v[41 + i].fusion |= 1u << i; /* each JG_EPILOGUE_ flag */
    v[49].fusion |= JG_ACTIVATION_RELU << FUSION_ACTIVATION_SHIFT;
    v[50].fusion |= JG_ACTIVATION_SIGMOID << FUSION_ACTIVATION_SHIFT;
    v[51].fusion |= JG_F32 << FUSION_TYPE_BIAS_SHIFT;
    v[52].fusion |= JG_BF16 << FUSION_TYPE_BIAS_SHIFT;
    v[53].fusion |= 1 << FUSION_GROUP_SHIFT;
    v[54].fusion |= 3 << FUSION_GROUP_SHIFT;
    v[55].fusion |= FUSION_ZERO_POINTS;
    v[56].fusion = SPEC_FUSION_ARGUMENT;
    v[57].grouped = 1;
    v[58].tile.slices = 2;
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
    v[32].family = FAMILY_TF32; /* where the family says it */
    v[32].tile.warp_m = 16;
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
    dirty.type_a = clean.type_a, dirty.type_b = clean.type_b, dirty.math = clean.math, dirty.fusion = clean.fusion;
    dirty.trans_a = clean.trans_a, dirty.trans_b = clean.trans_b;
    dirty.vec_a = clean.vec_a, dirty.vec_b = clean.vec_b, dirty.vec_c = clean.vec_c, dirty.single = clean.single;
    dirty.grouped = clean.grouped;
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
    kernel_spec s = base_spec();
    kernel_key key;
    s.type_b = JG_BF16;
    s.math = JG_MATH_FLUSH;
    s.fusion |= 0x34;
    kernel_encode_key(&s, &key);
    assert_memory_equal(key.bytes, "jgkernel", 8);
    static const uint8_t versions[8] = {KERNEL_ABI, 0, 0, 0, KERNEL_KEY_FORMAT, 0, 0, 0};
    assert_memory_equal(key.bytes + 8, versions, 8);
    static const uint8_t family_arch[8] = {87, 0, 0, 0, FAMILY_MMA, 0, 0, 0};
    assert_memory_equal(key.bytes + 24, family_arch, 8);
    static const uint8_t types_form[8] = {JG_BF16, 0, JG_F16, 0, JG_FORM_SPECIALISED, 0, 0, 0};
    assert_memory_equal(key.bytes + 32, types_form, 8);
    static const uint8_t fusion_math[8] = {0x34, 0x20, 0, 0, JG_MATH_FLUSH, 0, 0, 0};
    assert_memory_equal(key.bytes + 40, fusion_math, 8);
    static const uint8_t m[8] = {196, 0, 0, 0, 0, 0, 0, 0};
    assert_memory_equal(key.bytes + 80, m, 8);
    static const uint8_t ldc[8] = {0, 3, 0, 0, 0, 0, 0, 0};
    assert_memory_equal(key.bytes + 120, ldc, 8);
    assert_int_equal(key.bytes[128], kernel_min_blocks(&s));
    for (size_t i = 129; i < sizeof key.bytes; i++) assert_int_equal(key.bytes[i], 0);
}

static void test_names(void **state)
{
    (void)state;
    kernel_spec s = base_spec();
    char name[KERNEL_NAME_BYTES];
    kernel_format_name(&s, name);
    assert_string_equal(name, "jg_sm87_mma_f16f16f16_nn_128x64x32_w64x32_s3_a16_m196n768k384_l384_768_768_c4");
    s.form = JG_FORM_GENERIC;
    s.fusion = SPEC_FUSION_ARGUMENT;
    s.vec_c = s.trans_a = s.trans_b = SPEC_ARGUMENT;
    s.vec_a = s.vec_b = SPEC_GATHER;
    kernel_format_name(&s, name);
    assert_string_equal(name, "jg_sm87_mma_f16f16x_xx_128x64x32_w64x32_s3_a2");
}

static void test_names_tell_math_types_and_what_is_fused(void **state)
{
    (void)state;
    static const struct {
        int family;
        jg_type a, b, c;
        unsigned math;
        uint32_t fused;
        const char *begin, *end;
    } rows[] = {
        {FAMILY_SIMT, JG_F32, JG_F32, JG_F32, JG_MATH_STRICT, 0, "jg_sm87_simt_f32f32f32_strict_nn_128x64x32_t64x32_s3_",
         "_768_c4"},
        {FAMILY_TF32, JG_F32, JG_F32, JG_F16, JG_MATH_TF32, 0, "jg_sm87_tf32_f32f32f16_nn_128x64x32_w64x32_", "_768_c4"},
        {FAMILY_TF32, JG_F32, JG_F32, JG_F32, JG_MATH_F32_3XTF32, 0x1f, "jg_sm87_tf32_f32f32f32_3x_nn_", "_768_c4_e1f"},
        {FAMILY_MMA, JG_F16, JG_F16, JG_BF16, JG_MATH_F16 | JG_MATH_FLUSH, 0, "jg_sm87_mma_f16f16bf16_f16acc_ftz_nn_",
         "_768_c4"},
        {FAMILY_MMA, JG_E4M3, JG_E5M2, JG_E4M3, JG_MATH_SANITIZE, 0x80, "jg_sm87_mma_e4m3e5m2e4m3_san_nn_", "_c4_e80"},
        {FAMILY_MMA, JG_U8, JG_S8, JG_S32, 0, 0x510, "jg_sm87_mma_u8s8s32_nn_", "_c4_e510"},
        {FAMILY_MMA, JG_S4, JG_S4, JG_U8, JG_MATH_FLUSH | JG_MATH_SANITIZE, 0, "jg_sm87_mma_s4s4u8_ftz_san_nn_", "_c4"},
        {FAMILY_MMA, JG_BF16, JG_S4, JG_BF16, 0, 2u << FUSION_GROUP_SHIFT | FUSION_ZERO_POINTS, "jg_sm87_mma_bf16s4bf16_nn_",
         "_c4_e600000"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        kernel_spec s = base_spec();
        char name[KERNEL_NAME_BYTES];
        s.family = (uint16_t)rows[i].family;
        s.type_a = (uint8_t)rows[i].a, s.type_b = (uint8_t)rows[i].b, s.math = (uint8_t)rows[i].math;
        s.fusion = rows[i].fused | (uint32_t)rows[i].c << FUSION_TYPE_C_SHIFT;
        kernel_format_name(&s, name);
        const size_t length = strlen(rows[i].end);
        if (strncmp(name, rows[i].begin, strlen(rows[i].begin)) != 0 || strcmp(name + strlen(name) - length, rows[i].end) != 0)
            fail_msg("%s is not %s...%s", name, rows[i].begin, rows[i].end);
    }
}

/* A bit of a problem is a bit of the word: no two problems that differ in what is fused share one. */
static void test_fusion_words(void **state)
{
    (void)state;
    static const struct {
        problem p;
        uint32_t word;
    } rows[] = {
        {{.type_c = JG_F32}, 0x1000},
        {{.type_c = JG_E5M2}, 0x9000},
        {{.type_c = JG_S8, .epilogue = JG_EPILOGUE_SCALE | JG_EPILOGUE_REQUANTIZE}, 0x4081},
        {{.type_c = JG_F16, .epilogue = JG_EPILOGUE_SCALE_M | JG_EPILOGUE_SCALE_N | JG_EPILOGUE_BIAS_M, .type_bias = JG_F32},
         0x1200e},
        {{.type_c = JG_BF16, .epilogue = JG_EPILOGUE_BIAS_N, .type_bias = JG_BF16, .activation = JG_ACTIVATION_SIGMOID},
         0x33710},
        {{.type_c = JG_F16, .epilogue = JG_EPILOGUE_RESIDUAL, .activation = JG_ACTIVATION_RELU}, 0x2120},
        {{.type_c = JG_F16, .epilogue = JG_EPILOGUE_RESIDUAL_AFTER, .group_k = 32}, 0x102040},
        {{.type_c = JG_F16, .group_k = 64}, 0x202000},
        {{.type_c = JG_F16, .group_k = 128, .zero_points = 1}, 0x702000},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) assert_int_equal(kernel_fusion(&rows[i].p), rows[i].word);
    /* The templates' words for the same. */
    const char *text = template_source(FAMILY_SIMT);
    char line[64];
    const struct {
        const char *macro;
        unsigned value;
    } shifts[] = {{"ACTIVATION", FUSION_ACTIVATION_SHIFT}, {"TYPE_C", FUSION_TYPE_C_SHIFT}, {"TYPE_BIAS", FUSION_TYPE_BIAS_SHIFT},
                  {"GROUP", FUSION_GROUP_SHIFT}};
    for (size_t i = 0; i < sizeof shifts / sizeof shifts[0]; i++) {
        snprintf(line, sizeof line, "\n#define JG_FUSE_%s_SHIFT %u ", shifts[i].macro, shifts[i].value);
        assert_non_null(strstr(text, line));
    }
    static const char *const flags[] = {"SCALE",  "SCALE_M",  "SCALE_N",        "BIAS_M",
                                        "BIAS_N", "RESIDUAL", "RESIDUAL_AFTER", "REQUANTIZE"};
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        snprintf(line, sizeof line, "\n#define JG_FUSE_%s %uu\n", flags[i], 1u << i);
        assert_non_null(strstr(text, line));
    }
    for (int type = JG_F32; type <= LAST_TYPE; type++) {
        char upper[8];
        snprintf(upper, sizeof upper, "%s", type_name((jg_type)type));
        for (char *at = upper; *at; at++) *at = (char)toupper((unsigned char)*at);
        snprintf(line, sizeof line, "\n#define JG_TYPE_%s %d\n", upper, type);
        assert_non_null(strstr(text, line));
    }
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
    s.type_a = s.type_b = JG_E4M3;
    s.family = FAMILY_SIMT;
    s.math = JG_MATH_STRICT | JG_MATH_FLUSH | JG_MATH_SANITIZE;
    s.fusion = 0x7fff7ff | JG_BF16 << FUSION_TYPE_C_SHIFT;
    /* Wider ones fit no shared memory: two buffers of four k, four bytes each. */
    s.tile = (tile){9999, 9999, 9999, 9999, 9999, 9999, 1};
    s.m = s.n = s.k = 2147483647;
    s.lda = s.ldb = s.ldc = INT64_MAX;
    s.vec_b = 2;
    s.single = 0;
    char name[KERNEL_NAME_BYTES];
    kernel_format_name(&s, name);
    assert_string_equal(name + strlen(name) - 14, "_c4_b_e7ff07ff");
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
    assert_non_null(strstr(text, "#define JG_FAMILY 2\n"));
    assert_non_null(
        strstr(text, "#define JG_TYPE_A 2\n#define JG_TYPE_B 2\n#define JG_MODE 0\n#define JG_BM 128\n")); /* no flag */
    assert_non_null(strstr(text, "#define JG_FUSION 8192\n"));
    s.form = JG_FORM_GENERIC;
    s.m = s.n = s.k = s.lda = s.ldb = s.ldc = 0;
    s.single = 0;
    s.trans_a = s.trans_b = s.vec_c = s.vec_a = s.vec_b = SPEC_ARGUMENT;
    s.fusion = SPEC_FUSION_ARGUMENT;
    kernel_render_defines(&s, text, sizeof text);
    assert_null(strstr(text, "JG_M "));
    assert_null(strstr(text, "JG_TRANS_A"));
    assert_null(strstr(text, "JG_FUSION"));
    assert_null(strstr(text, "JG_VEC_"));
    assert_null(strstr(text, "JG_SINGLE"));
    assert_true(kernel_render_defines(&s, text, 10) > 10); /* says how much it needs */
}

static void test_defines_of_types_and_math(void **state)
{
    (void)state;
    char text[2048], expected[200];
    static const unsigned modes[] = {JG_MATH_DEFAULT, JG_MATH_TF32, JG_MATH_F32_3XTF32, JG_MATH_STRICT, JG_MATH_F16};
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++)
        for (unsigned flags = 0; flags < 4; flags++) {
            kernel_spec s = base_spec();
            s.type_a = JG_U8, s.type_b = JG_S8;
            s.math = (uint8_t)(modes[i] | (flags & 1 ? JG_MATH_FLUSH : 0) | (flags & 2 ? JG_MATH_SANITIZE : 0));
            s.fusion = 0x1f | JG_S8 << FUSION_TYPE_C_SHIFT;
            kernel_render_defines(&s, text, sizeof text);
            snprintf(expected, sizeof expected,
                     "#define JG_TYPE_A 5\n#define JG_TYPE_B 4\n#define JG_MODE %u\n%s%s#define JG_BM 128\n", modes[i],
                     flags & 1 ? "#define JG_FLUSH 1\n" : "", flags & 2 ? "#define JG_SANITIZE 1\n" : "");
            assert_non_null(strstr(text, expected));
            assert_non_null(strstr(text, "#define JG_FUSION 16415\n"));
        }
}

/* What an element takes in registers and shared memory. */
static void test_multiply_types(void **state)
{
    (void)state;
    static const struct {
        jg_type a, b, multiply;
    } rows[] = {
        {JG_F32, JG_F32, JG_F32},    {JG_F16, JG_F16, JG_F16},   {JG_BF16, JG_BF16, JG_BF16}, {JG_S8, JG_S8, JG_S8},
        {JG_U8, JG_S8, JG_S8},       {JG_S8, JG_U8, JG_S8},      {JG_U8, JG_U8, JG_S8},       {JG_S4, JG_S4, JG_S8},
        {JG_F16, JG_S8, JG_F16},     {JG_S4, JG_F16, JG_F16},    {JG_BF16, JG_S4, JG_BF16},   {JG_S8, JG_BF16, JG_BF16},
        {JG_E4M3, JG_E4M3, JG_F16},  {JG_E4M3, JG_E5M2, JG_F16}, {JG_E5M2, JG_E5M2, JG_F16},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        kernel_spec s = base_spec();
        s.type_a = (uint8_t)rows[i].a, s.type_b = (uint8_t)rows[i].b;
        assert_int_equal(kernel_multiply_type(&s), rows[i].multiply);
        const int bytes = rows[i].multiply == JG_S8 ? 1 : 2;
        if (rows[i].multiply != JG_F32) assert_int_equal(kernel_shared_bytes(&s), 3 * (128 + 64) * 32 * bytes);
    }
}

/* One class for all whose bits are the same, and no class for two whose bits differ. */
static void test_numeric_classes(void **state)
{
    (void)state;
    static const struct {
        int family, integer;
        unsigned math;
        int slices;
        const char *name;
    } rows[] = {
        {FAMILY_SIMT, 0, JG_MATH_DEFAULT, 1, "fma.f32 ascending-k split1"},
        {FAMILY_SIMT, 0, JG_MATH_DEFAULT, 16, "fma.f32 ascending-k split16"},
        {FAMILY_SIMT, 0, JG_MATH_STRICT, 1, "mul+add.f32 ascending-k split1"},
        {FAMILY_MMA, 0, JG_MATH_DEFAULT, 1, "mma.m16n8k16.f32 ascending-k split1"},
        {FAMILY_MMA, 0, JG_MATH_F16, 4, "mma.m16n8k16.f16 ascending-k split4"},
        {FAMILY_TF32, 0, JG_MATH_TF32, 1, "mma.m16n8k8.tf32 ascending-k split1"},
        {FAMILY_TF32, 0, JG_MATH_F32_3XTF32, 2, "mma.m16n8k8.3xtf32 ascending-k split2"},
        {FAMILY_MMA, 1, JG_MATH_DEFAULT, 1, "exact.s32"},
        {FAMILY_MMA, 1, JG_MATH_DEFAULT, 8, "exact.s32"},
        {FAMILY_SIMT, 1, JG_MATH_DEFAULT, 1, "exact.s32"},
        {FAMILY_SIMT, 1, JG_MATH_STRICT, 1, "exact.s32"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[sizeof((jg_plan_details *)0)->numeric_class];
        family_numeric_class(rows[i].family, rows[i].integer, rows[i].math, rows[i].slices, text, sizeof text);
        assert_string_equal(text, rows[i].name);
        for (size_t j = 0; j < i && !rows[i].integer; j++) assert_string_not_equal(rows[i].name, rows[j].name);
    }
}

static void test_resources(void **state)
{
    (void)state;
    kernel_spec s = base_spec();
    assert_int_equal(kernel_threads(&s), 2 * 2 * 32);
    assert_int_equal(kernel_shared_bytes(&s), 3 * (128 + 64) * 32 * 2);
    assert_int_equal(kernel_registers(&s), 64 + 2 * 24 + 40);
    assert_int_equal(kernel_min_blocks(&s), 65536 / (152 * 128));
    s.tile.slices = 2;
    assert_int_equal(kernel_threads(&s), 2 * 2 * 2 * 32);
    s.tile.stages = 2;
    assert_int_equal(kernel_shared_bytes(&s), 8 * 32 * 32 * 4); /* of the sums, which take more than two stages */
    /* Of eight warps and known sizes a few registers fewer make two blocks an SM, if two blocks' shared memory fits it. */
    s = base_spec();
    s.tile = (tile){128, 128, 32, 64, 32, 4, 1};
    s.m = s.n = s.k = 4096;
    assert_int_equal(kernel_registers(&s), 128);
    assert_int_equal(kernel_min_blocks(&s), 2);
    s.m = 0;
    assert_int_equal(kernel_registers(&s), 152);
    assert_int_equal(kernel_min_blocks(&s), 1);
    s.m = 4096, s.tile.stages = 8;
    assert_int_equal(kernel_registers(&s), 152);
    s.tile.stages = 4;
    /* A k of two steps fills no more than two stages; beside them lie a single item's sums, if the other stages would hold them. */
    s.k = 64, s.single = 0;
    assert_int_equal(kernel_shared_bytes(&s), 8 * 32 * 32 * 4);
    s.tile = (tile){64, 64, 32, 32, 32, 6, 1}, s.k = 64;
    assert_int_equal(kernel_shared_bytes(&s), 2 * (64 + 64) * 32 * 2);
    s.single = 1;
    assert_int_equal(kernel_shared_bytes(&s), 2 * (64 + 64) * 32 * 2 + 4 * 32 * 32 * 4);
    s.tile.stages = 3;
    assert_int_equal(kernel_shared_bytes(&s), 2 * (64 + 64) * 32 * 2);
    s.k = 65;
    assert_int_equal(kernel_shared_bytes(&s), 3 * (64 + 64) * 32 * 2);
    s = base_spec();
    s.family = FAMILY_SIMT;
    s.tile = (tile){64, 64, 16, 4, 4, 2, 1};
    assert_int_equal(kernel_threads(&s), 256);
    assert_int_equal(kernel_shared_bytes(&s), 2 * 16 * (68 + 68) * 4);
    /* Fragments of two k; narrow elements wait in registers besides. */
    s.type_a = s.type_b = JG_F32;
    assert_int_equal(kernel_registers(&s), 16 + 2 * 8 + 32);
    s.tile = (tile){128, 128, 8, 8, 8, 4, 1};
    assert_int_equal(kernel_registers(&s), 64 + 2 * 16 + 32);
    s.type_a = s.type_b = JG_F16;
    assert_int_equal(kernel_registers(&s), 64 + 2 * 16 + 32 + 8);
    /* A short row is not padded; eight slices' sums of four rows a thread may take more than the stages. */
    s.tile = (tile){4, 64, 16, 4, 4, 2, 4};
    assert_int_equal(kernel_shared_bytes(&s), 2 * 16 * (4 + 68) * 4);
    s.tile = (tile){32, 64, 16, 8, 8, 2, 8};
    assert_int_equal(kernel_threads(&s), 256);
    assert_int_equal(kernel_shared_bytes(&s), 8 * 16 * (64 + 4) * 4);
    /* Of 3xtf32 every element takes a register more, and a row of sums 16. Rows along k, here B's, are padded. */
    s = base_spec();
    s.family = FAMILY_TF32;
    s.type_a = s.type_b = JG_F32;
    s.math = JG_MATH_TF32;
    s.tile = (tile){128, 64, 16, 64, 32, 2, 1};
    assert_int_equal(kernel_threads(&s), 128);
    assert_int_equal(kernel_shared_bytes(&s), 2 * 16 * (128 + 72) * 4);
    s.trans_a = s.trans_b = 1;
    assert_int_equal(kernel_shared_bytes(&s), 2 * 16 * (136 + 64) * 4);
    const int one = kernel_registers(&s);
    s.math = JG_MATH_F32_3XTF32;
    assert_int_equal(kernel_registers(&s) - one, 4 * 4 + 4 * 2 + 16);
    /* Four warps' sums may take more than the tiles. */
    s = base_spec();
    s.type_a = s.type_b = JG_S8;
    s.tile = (tile){64, 64, 32, 16, 64, 2, 1};
    assert_int_equal(kernel_shared_bytes(&s), 4 * 16 * 64 * 4);
    /* Converting elements takes registers of its own. */
    s = base_spec();
    const int copied = kernel_registers(&s);
    s.vec_b = SPEC_GATHER;
    assert_int_equal(kernel_registers(&s), copied);
    s.type_b = JG_S4;
    assert_true(kernel_registers(&s) > copied);
    s = base_spec();
    s.math = JG_MATH_FLUSH;
    assert_true(kernel_registers(&s) > copied);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_member_is_in_the_key),
        cmocka_unit_test(test_every_member_is_in_the_name),
        cmocka_unit_test(test_key_does_not_depend_on_padding_or_run),
        cmocka_unit_test(test_key_layout_is_pinned),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_names_tell_math_types_and_what_is_fused),
        cmocka_unit_test(test_fusion_words),
        cmocka_unit_test(test_each_size_by_itself_can_be_left_to_the_launch),
        cmocka_unit_test(test_longest_name_fits),
        cmocka_unit_test(test_defines),
        cmocka_unit_test(test_defines_of_types_and_math),
        cmocka_unit_test(test_multiply_types),
        cmocka_unit_test(test_numeric_classes),
        cmocka_unit_test(test_resources),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
