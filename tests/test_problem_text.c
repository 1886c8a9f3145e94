/* src/problem_text.c: what each rule of the grammar reads, how it is written back, and that no string, however bad, does harm. */
#include "problem.h"
#include "reference.h"

#include <limits.h>
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static void assert_same_members(const jg_problem *x, const jg_problem *y)
{
    assert_true(x->m == y->m && x->n == y->n && x->k == y->k && x->batch == y->batch);
    assert_true(x->type_a == y->type_a && x->type_b == y->type_b && x->type_c == y->type_c);
    assert_true(x->op_a == y->op_a && x->op_b == y->op_b && x->order == y->order && x->form == y->form);
    assert_true(x->lda == y->lda && x->ldb == y->ldb && x->ldc == y->ldc);
    assert_true(x->stride_a == y->stride_a && x->stride_b == y->stride_b && x->stride_c == y->stride_c);
    assert_true(x->align_bytes == y->align_bytes && x->dynamic == y->dynamic && x->compile == y->compile);
    assert_true(x->math == y->math && x->epilogue == y->epilogue && x->activation == y->activation);
    assert_true(x->type_bias == y->type_bias && x->group_k == y->group_k && x->zero_points == y->zero_points);
    assert_true(x->ld_residual == y->ld_residual && x->stride_residual == y->stride_residual && x->reserved == y->reserved);
}

#define F16 .type_a = JG_F16, .type_b = JG_F16, .type_c = JG_F16
#define TYPES(a, b, c) .type_a = JG_##a, .type_b = JG_##b, .type_c = JG_##c
#define EIGHT .m = 8, .n = 8, .k = 8
#define F16_F32 .type_a = JG_F16, .type_b = JG_F16, .type_c = JG_F32

/* A text, what it means, and how it is written back (null: as it was). */
static const struct {
    const char *text;
    jg_problem meaning;
    const char *written;
} good[] = {
    {"1024", {.m = 1024, .n = 1024, .k = 1024}, NULL},
    {"0", {.m = 0}, NULL},
    {"7x7x7", {.m = 7, .n = 7, .k = 7}, "7"},
    {"1x2x3", {.m = 1, .n = 2, .k = 3}, NULL},
    {"1x2x3x1", {.m = 1, .n = 2, .k = 3, .batch = 1}, "1x2x3"},
    {"007x1x1", {.m = 7, .n = 1, .k = 1}, "7x1x1"},
    {"2147483647:f16", {.m = 2147483647, .n = 2147483647, .k = 2147483647, F16}, NULL},
    {"196x768x768:f16", {.m = 196, .n = 768, .k = 768, F16}, NULL},
    {"8:f32", {.m = 8, .n = 8, .k = 8, .type_a = JG_F32, .type_b = JG_F32, .type_c = JG_F32}, "8"},
    {"8:bf16-f16", {.m = 8, .n = 8, .k = 8, .type_a = JG_BF16, .type_b = JG_BF16, .type_c = JG_F16}, NULL},
    {"8:f16.f16-f32", {.m = 8, .n = 8, .k = 8, F16_F32}, "8:f16-f32"},
    {"8:f16-f16", {.m = 8, .n = 8, .k = 8, F16}, "8:f16"},
    {"8:nn", {.m = 8, .n = 8, .k = 8}, "8"},
    {"8:nt", {.m = 8, .n = 8, .k = 8, .op_b = JG_T}, NULL},
    {"8:tn", {.m = 8, .n = 8, .k = 8, .op_a = JG_T}, NULL},
    {"8:tt", {.m = 8, .n = 8, .k = 8, .op_a = JG_T, .op_b = JG_T}, NULL},
    {"8x9x7:tn:col", {.m = 8, .n = 9, .k = 7, .op_a = JG_T, .order = JG_COL_MAJOR}, NULL},
    {"8:col:tn:f16",
     {.m = 8, .n = 8, .k = 8, F16, .op_a = JG_T, .order = JG_COL_MAJOR}, "8:f16:tn:col"}, /* any order of words */
    {"8:row", {.m = 8, .n = 8, .k = 8}, "8"},
    {"8:generic", {.m = 8, .n = 8, .k = 8, .form = JG_FORM_GENERIC}, NULL},
    {"8:specialised", {.m = 8, .n = 8, .k = 8, .form = JG_FORM_SPECIALISED}, NULL},
    {"8x9x7:lda=10:ldb=11:ldc=12", {.m = 8, .n = 9, .k = 7, .lda = 10, .ldb = 11, .ldc = 12}, NULL},
    {"8x9x7:lda=7:ldb=9:ldc=9", {.m = 8, .n = 9, .k = 7, .lda = 7, .ldb = 9, .ldc = 9}, "8x9x7"},
    {"8x9x7:col:lda=8:ldb=10:ldc=11",
     {.m = 8, .n = 9, .k = 7, .order = JG_COL_MAJOR, .lda = 8, .ldb = 10, .ldc = 11}, "8x9x7:col:ldb=10:ldc=11"},
    {"8:align=4", {.m = 8, .n = 8, .k = 8, .align_bytes = 4}, NULL},
    {"8:align=16", {.m = 8, .n = 8, .k = 8, .align_bytes = 16}, "8"},
    {"8:align=256", {.m = 8, .n = 8, .k = 8, .align_bytes = 256}, "8"},
    {"17x768x768:f16:dyn=m", {.m = 17, .n = 768, .k = 768, F16, .dynamic = JG_DYNAMIC_M}, NULL},
    {"8x9x7:dyn=bkn", {.m = 8, .n = 9, .k = 7, .dynamic = JG_DYNAMIC_N | JG_DYNAMIC_K | JG_DYNAMIC_BATCH}, "8x9x7:dyn=nkb"},
    {"8:dyn=mnkb:align=4",
     {.m = 8, .n = 8, .k = 8, .align_bytes = 4, .dynamic = JG_DYNAMIC_M | JG_DYNAMIC_N | JG_DYNAMIC_K | JG_DYNAMIC_BATCH},
     "8:align=4:dyn=mnkb"},
    {"8x9x7:col:dyn=m", {.m = 8, .n = 9, .k = 7, .order = JG_COL_MAJOR, .dynamic = JG_DYNAMIC_M}, NULL}, /* the caller's own m */
    {"8x9x7:col:dyn=nk", {.m = 8, .n = 9, .k = 7, .order = JG_COL_MAJOR, .dynamic = JG_DYNAMIC_N | JG_DYNAMIC_K}, NULL},
    {"8:specialised:dyn=k", {.m = 8, .n = 8, .k = 8, .form = JG_FORM_SPECIALISED, .dynamic = JG_DYNAMIC_K}, NULL},
    {"8:generic:dyn=k", {.m = 8, .n = 8, .k = 8, .form = JG_FORM_GENERIC, .dynamic = JG_DYNAMIC_K}, NULL},
    /* Dense strides are filled in, of the leading dimensions where given; others and sharing are written out. */
    {"2x3x5x4", {.m = 2, .n = 3, .k = 5, .batch = 4, .stride_a = 10, .stride_b = 15, .stride_c = 6}, NULL},
    {"2x3x5x4:lda=8:ldc=4",
     {.m = 2, .n = 3, .k = 5, .batch = 4, .lda = 8, .ldc = 4, .stride_a = 16, .stride_b = 15, .stride_c = 8}, NULL},
    {"2x3x5x4:tn:lda=8",
     {.m = 2, .n = 3, .k = 5, .batch = 4, .op_a = JG_T, .lda = 8, .stride_a = 40, .stride_b = 15, .stride_c = 6}, NULL},
    {"2x3x5x4:col:ldb=6",
     {.m = 2, .n = 3, .k = 5, .batch = 4, .order = JG_COL_MAJOR, .ldb = 6, .stride_a = 10, .stride_b = 18,
      .stride_c = 6},
     NULL},
    {"2x3x5x4:sa=0", {.m = 2, .n = 3, .k = 5, .batch = 4, .stride_b = 15, .stride_c = 6}, NULL},
    {"2x3x5x4:sa=0:sb=0:sc=7", {.m = 2, .n = 3, .k = 5, .batch = 4, .stride_c = 7}, NULL},
    {"2x3x5x4:sa=10:sb=15:sc=6",
     {.m = 2, .n = 3, .k = 5, .batch = 4, .stride_a = 10, .stride_b = 15, .stride_c = 6}, "2x3x5x4"},
    {"197x197x64x12:f16-f32:nt:sa=64:lda=768",
     {.m = 197, .n = 197, .k = 64, .batch = 12, F16_F32, .op_b = JG_T, .lda = 768, .stride_a = 64, .stride_b = 12608,
      .stride_c = 38809},
     "197x197x64x12:f16-f32:nt:lda=768:sa=64"},
    /* Types: what is not said of C, and of B, is what it is by default. */
    {"64:s8", {.m = 64, .n = 64, .k = 64, TYPES(S8, S8, S32)}, NULL},
    {"64:s8-s32", {.m = 64, .n = 64, .k = 64, TYPES(S8, S8, S32)}, "64:s8"},
    {"64:s8-s8", {.m = 64, .n = 64, .k = 64, TYPES(S8, S8, S8)}, NULL},
    {"8:u8.s8", {EIGHT, TYPES(U8, S8, S32)}, NULL},
    {"8:s8.u8-f32", {EIGHT, TYPES(S8, U8, F32)}, NULL},
    {"8:s4", {EIGHT, TYPES(S4, S4, S32)}, NULL},
    {"8:f16.s4", {EIGHT, TYPES(F16, S4, F16)}, NULL},
    {"8:f16.s4-f16", {EIGHT, TYPES(F16, S4, F16)}, "8:f16.s4"},
    {"8:s8.bf16", {EIGHT, TYPES(S8, BF16, BF16)}, NULL},
    {"8:bf16.s8-f32", {EIGHT, TYPES(BF16, S8, F32)}, NULL},
    {"8:s4.f16:col", {EIGHT, TYPES(S4, F16, F16), .order = JG_COL_MAJOR}, NULL},
    {"8:e4m3", {EIGHT, TYPES(E4M3, E4M3, F32)}, NULL},
    {"8:e4m3-e4m3", {EIGHT, TYPES(E4M3, E4M3, E4M3)}, NULL},
    {"8:e5m2.e4m3-bf16", {EIGHT, TYPES(E5M2, E4M3, BF16)}, NULL},
    {"8:f32-f16", {EIGHT, TYPES(F32, F32, F16)}, NULL},
    {"8:f32.f32", {EIGHT, TYPES(F32, F32, F32)}, "8"},
    /* Rows of s4 are even, and their items with them. */
    {"5x3x7:s4:lda=8", {.m = 5, .n = 3, .k = 7, TYPES(S4, S4, S32), .lda = 8}, "5x3x7:s4"},
    {"5x3x7:s4:lda=10:ldb=6", {.m = 5, .n = 3, .k = 7, TYPES(S4, S4, S32), .lda = 10, .ldb = 6}, NULL},
    {"5x3x7x2:s4",
     {.m = 5, .n = 3, .k = 7, .batch = 2, TYPES(S4, S4, S32), .stride_a = 40, .stride_b = 28, .stride_c = 15}, NULL},
    /* Math. */
    {"8:tf32", {EIGHT, .math = JG_MATH_TF32}, NULL},
    {"8:3xtf32:flush", {EIGHT, .math = JG_MATH_F32_3XTF32 | JG_MATH_FLUSH}, NULL},
    {"8:s8:sanitize:strict:flush", {EIGHT, TYPES(S8, S8, S32), .math = JG_MATH_STRICT | JG_MATH_FLUSH | JG_MATH_SANITIZE},
     "8:s8:strict:flush:sanitize"},
    {"8:f16:f16acc", {EIGHT, F16, .math = JG_MATH_F16}, NULL},
    {"8:sanitize", {EIGHT, .math = JG_MATH_SANITIZE}, NULL},
    /* Epilogues, under the caller's own names of m and n. */
    {"8:scale", {EIGHT, .epilogue = JG_EPILOGUE_SCALE}, NULL},
    {"8x9x7:scale_m:bias_n", {.m = 8, .n = 9, .k = 7, .epilogue = JG_EPILOGUE_SCALE_M | JG_EPILOGUE_BIAS_N}, NULL},
    {"8x9x7:col:scale_n:bias_m",
     {.m = 8, .n = 9, .k = 7, .order = JG_COL_MAJOR, .epilogue = JG_EPILOGUE_SCALE_N | JG_EPILOGUE_BIAS_M}, NULL},
    {"8:relu:requantize:scale_n:scale:s8-u8",
     {EIGHT, TYPES(S8, S8, U8), .epilogue = JG_EPILOGUE_SCALE | JG_EPILOGUE_SCALE_N | JG_EPILOGUE_REQUANTIZE,
      .activation = JG_ACTIVATION_RELU},
     "8:s8-u8:scale:scale_n:requantize:relu"},
    {"8:relu6", {EIGHT, .activation = JG_ACTIVATION_RELU6}, NULL},
    {"8:clamp", {EIGHT, .activation = JG_ACTIVATION_CLAMP}, NULL},
    {"8:gelu_tanh", {EIGHT, .activation = JG_ACTIVATION_GELU_TANH}, NULL},
    {"8:gelu_erf", {EIGHT, .activation = JG_ACTIVATION_GELU_ERF}, NULL},
    {"8:silu", {EIGHT, .activation = JG_ACTIVATION_SILU}, NULL},
    {"8:sigmoid", {EIGHT, .activation = JG_ACTIVATION_SIGMOID}, NULL},
    {"8:bias_m:bias=f16", {EIGHT, .epilogue = JG_EPILOGUE_BIAS_M, .type_bias = JG_F16}, NULL},
    {"8:bias=bf16:bias_n", {EIGHT, .epilogue = JG_EPILOGUE_BIAS_N, .type_bias = JG_BF16}, "8:bias_n:bias=bf16"},
    {"8:bias_n:bias=f32", {EIGHT, .epilogue = JG_EPILOGUE_BIAS_N, .type_bias = JG_F32}, "8:bias_n"},
    {"8:bias=f16", {EIGHT, .type_bias = JG_F16}, "8"}, /* of no bias */
    {"8x9x7:residual", {.m = 8, .n = 9, .k = 7, .epilogue = JG_EPILOGUE_RESIDUAL}, NULL},
    {"8x9x7:residual_after:ldr=12",
     {.m = 8, .n = 9, .k = 7, .epilogue = JG_EPILOGUE_RESIDUAL_AFTER, .ld_residual = 12}, NULL},
    {"8x9x7:residual:ldc=12:ldr=12",
     {.m = 8, .n = 9, .k = 7, .epilogue = JG_EPILOGUE_RESIDUAL, .ldc = 12, .ld_residual = 12}, "8x9x7:residual:ldc=12"},
    {"8x9x7:residual:ldc=12:ldr=9",
     {.m = 8, .n = 9, .k = 7, .epilogue = JG_EPILOGUE_RESIDUAL, .ldc = 12, .ld_residual = 9}, NULL},
    {"8x9x7:ldr=12:sr=5", {.m = 8, .n = 9, .k = 7, .ld_residual = 12, .stride_residual = 5}, "8x9x7"}, /* of no residual */
    {"2x3x5x4:residual",
     {.m = 2, .n = 3, .k = 5, .batch = 4, .stride_a = 10, .stride_b = 15, .stride_c = 6, .stride_residual = 6,
      .epilogue = JG_EPILOGUE_RESIDUAL},
     NULL},
    {"2x3x5x4:residual:ldr=5",
     {.m = 2, .n = 3, .k = 5, .batch = 4, .stride_a = 10, .stride_b = 15, .stride_c = 6, .ld_residual = 5, .stride_residual = 10,
      .epilogue = JG_EPILOGUE_RESIDUAL},
     NULL},
    {"2x3x5x4:residual_after:sr=0",
     {.m = 2, .n = 3, .k = 5, .batch = 4, .stride_a = 10, .stride_b = 15, .stride_c = 6, .epilogue = JG_EPILOGUE_RESIDUAL_AFTER},
     NULL},
    {"2x3x5x4:col:residual:sr=7",
     {.m = 2, .n = 3, .k = 5, .batch = 4, .order = JG_COL_MAJOR, .stride_a = 10, .stride_b = 15, .stride_c = 6,
      .stride_residual = 7, .epilogue = JG_EPILOGUE_RESIDUAL},
     NULL},
    /* Groups of weights. */
    {"8:f16.s4:group=128", {EIGHT, TYPES(F16, S4, F16), .group_k = 128}, NULL},
    {"8:zeros:s8.bf16:group=32", {EIGHT, TYPES(S8, BF16, BF16), .group_k = 32, .zero_points = 1}, "8:s8.bf16:group=32:zeros"},
    {"8:f16.s8:tn:col:strict:group=064:zeros:bias_m:silu:align=2:dyn=m",
     {EIGHT, TYPES(F16, S8, F16), .op_a = JG_T, .order = JG_COL_MAJOR, .math = JG_MATH_STRICT, .group_k = 64, .zero_points = 1,
      .epilogue = JG_EPILOGUE_BIAS_M, .activation = JG_ACTIVATION_SILU, .align_bytes = 2, .dynamic = JG_DYNAMIC_M},
     "8:f16.s8:tn:col:strict:group=64:zeros:bias_m:silu:align=2:dyn=m"},
    {"2x3x5x0", {.m = 2, .n = 3, .k = 5, .batch = 0, .stride_c = 1}, NULL},
    {"0x3x0x0", {.m = 0, .n = 3, .k = 0, .batch = 0, .stride_c = 1}, NULL},
};

static void good_texts_mean_what_they_say(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(good); i++) {
        jg_problem p = {0};
        char text[JG_PROBLEM_TEXT_BYTES];
        size_t length;
        const char *written = good[i].written ? good[i].written : good[i].text;
        if (jg_problem_parse(good[i].text, &p)) fail_msg("%s", jg_last_error());
        assert_same_members(&p, &good[i].meaning);
        assert_int_equal(jg_problem_format(&p, text, sizeof text, &length), JG_OK);
        assert_string_equal(text, written);
        assert_int_equal(length, strlen(written));
    }
}

/* A text, the status, and what the error text must quote or name. */
static const struct {
    const char *text;
    jg_status status;
    const char *named;
} bad[] = {
    {"", JG_ERR_PARSE, "\"\" is not a size"},
    {":f16", JG_ERR_PARSE, "\"\" is not a size"},
    {"12x34", JG_ERR_PARSE, "\"12x34\" is not a size"},
    {"1x2x3x4x5", JG_ERR_PARSE, "\"1x2x3x4x5\""},
    {"1x2x", JG_ERR_PARSE, "\"1x2x\""},
    {"8x", JG_ERR_PARSE, "\"8x\""},
    {"x8", JG_ERR_PARSE, "\"x8\""},
    {"1xx3", JG_ERR_PARSE, "\"1xx3\""},
    {"-8", JG_ERR_PARSE, "\"-8\""},
    {"+8", JG_ERR_PARSE, "\"+8\""},
    {" 8", JG_ERR_PARSE, "\" 8\""},
    {"8 ", JG_ERR_PARSE, "\"8 \""},
    {"8.0", JG_ERR_PARSE, "\"8.0\""},
    {"0x10", JG_ERR_PARSE, "\"0x10\""},
    {"9223372036854775808", JG_ERR_PARSE, "\"9223372036854775808\""},
    {"99999999999999999999999", JG_ERR_PARSE, "\"99999999999999999999999\""},
    {"f16", JG_ERR_PARSE, "\"f16\" is not a size"},
    {"8:f17", JG_ERR_PARSE, "\"f17\" is not known"},
    {"8:F16", JG_ERR_PARSE, "\"F16\""},
    {"8:", JG_ERR_PARSE, "\"\" is not known"},
    {"8::f16", JG_ERR_PARSE, "\"\" is not known"},
    {"8:f16:", JG_ERR_PARSE, "\"\" is not known"},
    {"8:f16.", JG_ERR_PARSE, "\"f16.\""},
    {"8:.f16", JG_ERR_PARSE, "\".f16\""},
    {"8:f16.f16.f16", JG_ERR_PARSE, "\"f16.f16.f16\""},
    {"8:f16-f16.f16", JG_ERR_PARSE, "\"f16-f16.f16\""},
    {"8:s9", JG_ERR_PARSE, "\"s9\" is not known; use types like"},
    {"8:e4m4", JG_ERR_PARSE, "\"e4m4\""},
    {"8:?", JG_ERR_PARSE, "\"?\""},
    {"8:s8.s4", JG_ERR_TYPE, "s8 x s4 -> s32; nearest that works: s8 x s8 -> s32"},
    {"8:s32", JG_ERR_TYPE, "s32 x s32 -> s32"},
    {"8:f32.s8", JG_ERR_TYPE, "f32 x s8 -> f32"},
    {"8:s4-s4", JG_ERR_TYPE, "s4 x s4 -> s4; nearest that works: s4 x s4 -> s32"},
    {"8:tf32:strict", JG_ERR_PARSE, "\"strict\" says again"},
    {"8:flush:flush", JG_ERR_PARSE, "\"flush\" says again"},
    {"8:f16:tf32", JG_ERR_TYPE, "math = JG_MATH_TF32 is for f32 x f32"},
    {"8:f16acc", JG_ERR_TYPE, "math = JG_MATH_F16 is for f16 x f16"},
    {"8:default", JG_ERR_PARSE, "tf32 3xtf32 strict f16acc flush sanitize"},
    {"8:relu:silu", JG_ERR_PARSE, "\"silu\" says again"},
    {"8:bias_m:bias_m", JG_ERR_PARSE, "\"bias_m\" says again"},
    {"8:residual:residual_after", JG_ERR_PARSE, "\"residual_after\" says again"},
    {"8:bias", JG_ERR_PARSE, "\"bias\" is not known"},
    {"8:bias=", JG_ERR_PARSE, "\"bias=\" needs f32, f16 or bf16 after the ="},
    {"8:bias=s8", JG_ERR_PARSE, "\"bias=s8\" needs"},
    {"8:bias=f16-f16", JG_ERR_PARSE, "\"bias=f16-f16\" needs"},
    {"8:bias=f16:bias=f16", JG_ERR_PARSE, "\"bias=f16\" says again"},
    {"8:gelu", JG_ERR_PARSE, "\"gelu\" is not known"},
    {"8:scale_k", JG_ERR_PARSE, "\"scale_k\" is not known"},
    {"8:f16.s4:group=", JG_ERR_PARSE, "\"group=\" needs 32, 64 or 128 after the ="},
    {"8:f16.s4:group=0", JG_ERR_PARSE, "\"group=0\" needs 32"},
    {"8:f16.s4:group=48", JG_ERR_PARSE, "\"group=48\" needs 32"},
    {"8:f16.s4:group=4294967328", JG_ERR_PARSE, "\"group=4294967328\" needs"},
    {"8:f16.s4:group=32:group=64", JG_ERR_PARSE, "\"group=64\" says again"},
    {"8:f16:group=32", JG_ERR_TYPE, "group_k = 32 is for f16 or bf16 x s8 or s4"},
    {"8:f16.s4:zeros", JG_ERR_VALUE, "zero_points = 1 without groups"},
    {"8:f16.s4:zeros:group=32:zeros", JG_ERR_PARSE, "\"zeros\" says again"},
    {"8:ldr=", JG_ERR_PARSE, "\"ldr=\" needs a number"},
    {"8:residual:ldr=7", JG_ERR_LEADING_DIMENSION, "ld_residual = 7"},
    {"8:residual:ldr=9:ldr=9", JG_ERR_PARSE, "\"ldr=9\" says again"},
    {"8x8x8x2:residual:sr=1:sr=1", JG_ERR_PARSE, "\"sr=1\" says again"},
    {"8:s4:lda=9", JG_ERR_LEADING_DIMENSION, "lda = 9 is odd"},
    {"8x8x8x2:s4:sb=65", JG_ERR_SIZE, "stride_b = 65 is odd"},
    /* Elements of a byte: rows * ld does not fit, though the last row's end does. */
    {"2x1x1x2:s8-s8:lda=6000000000000000000", JG_ERR_OVERFLOW, "A ends"},
    {"2x2x2x2:s4:lda=6000000000000000000", JG_ERR_OVERFLOW, "A ends"},
    {"2x1x1x2:s8-s8:residual:ldr=6000000000000000000", JG_ERR_OVERFLOW, "the residual ends"},
    {"8:f16-", JG_ERR_PARSE, "\"f16-\""},
    {"8:-f16", JG_ERR_PARSE, "\"-f16\""},
    {"8:f16.-f32", JG_ERR_PARSE, "\"f16.-f32\""},
    {"8:f16-f32-f32", JG_ERR_PARSE, "\"f16-f32-f32\""},
    {"8:n", JG_ERR_PARSE, "\"n\""},
    {"8:nnn", JG_ERR_PARSE, "\"nnn\""},
    {"8:rows", JG_ERR_PARSE, "\"rows\""},
    {"8:generi", JG_ERR_PARSE, "\"generi\""},
    {"8:lda", JG_ERR_PARSE, "\"lda\""},
    {"8:lda=", JG_ERR_PARSE, "\"lda=\" needs a number"},
    {"8:lda=-9", JG_ERR_PARSE, "\"lda=-9\" needs a number"},
    {"8:lda=9223372036854775808", JG_ERR_PARSE, "\"lda=9223372036854775808\""},
    {"8:ldd=9", JG_ERR_PARSE, "\"ldd=9\""},
    {"8:align=4294967296", JG_ERR_PARSE, "\"align=4294967296\""},
    {"8:dyn=", JG_ERR_PARSE, "\"dyn=\" needs one or more of the letters"},
    {"8:dyn", JG_ERR_PARSE, "\"dyn\" is not known"},
    {"8:dyn=x", JG_ERR_PARSE, "\"dyn=x\" needs"},
    {"8:dyn=M", JG_ERR_PARSE, "\"dyn=M\" needs"},
    {"8:dyn=mm", JG_ERR_PARSE, "\"dyn=mm\" needs"},
    {"8:dyn=mnm", JG_ERR_PARSE, "\"dyn=mnm\" needs"},
    {"8:dyn=mn,k", JG_ERR_PARSE, "\"dyn=mn,k\" needs"},
    {"8:dyn=7", JG_ERR_PARSE, "\"dyn=7\" needs"},
    {"8:dyn=m:dyn=n", JG_ERR_PARSE, "\"dyn=n\" says again"},
    {"8:f16:f16", JG_ERR_PARSE, "\"f16\" says again"},
    {"8:nn:row:tt", JG_ERR_PARSE, "\"tt\" says again"},
    {"8:row:col", JG_ERR_PARSE, "\"col\" says again"},
    {"8:generic:specialised", JG_ERR_PARSE, "\"specialised\" says again"},
    {"8:lda=9:lda=9", JG_ERR_PARSE, "\"lda=9\" says again"},
    {"8:align=8:align=8", JG_ERR_PARSE, "\"align=8\" says again"},
    {"8x8x8x2:sc=64:sc=64", JG_ERR_PARSE, "\"sc=64\" says again"},
    {"8:align=3", JG_ERR_VALUE, "align_bytes = 3"},
    {"8:f32-s32", JG_ERR_TYPE, "f32 x f32 -> s32"},
    {"8:f16.bf16-f32", JG_ERR_TYPE, "f16 x bf16 -> f32"},
    {"2147483648", JG_ERR_SIZE, "m = 2147483648"},
    {"8x8x8x2147483648", JG_ERR_SIZE, "batch = 2147483648"},
    {"8:lda=7", JG_ERR_LEADING_DIMENSION, "lda = 7"},
    {"8x8x8x2:lda=7", JG_ERR_LEADING_DIMENSION, "lda = 7"},
    {"8x8x8x2:sc=63", JG_ERR_SIZE, "stride_c = 63"},
    {"8x8x8x2:sc=0", JG_ERR_SIZE, "stride_c = 0"},
    {"8:ldc=2305843009213693952", JG_ERR_OVERFLOW, "C ends"},
    {"2x1x1x3:lda=1000000000000000000", JG_ERR_OVERFLOW, "A ends"},
    {"2x1x1x2:f16:lda=4611686018427387903", JG_ERR_OVERFLOW, "A ends"},
    {"1x1x1x2:f16:lda=9223372036854775807", JG_ERR_OVERFLOW, "A ends"},
    {"4x1x1x3:lda=3000000000000000000", JG_ERR_OVERFLOW, "A ends"}, /* nor does the dense stride */
};

static void bad_texts_are_named_and_change_nothing(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        jg_problem before = {.m = 5, .n = 6, .k = 7}, p = before;
        jg_status status = jg_problem_parse(bad[i].text, &p);
        if (status != bad[i].status || !strstr(jg_last_error(), bad[i].named))
            fail_msg("\"%s\": %s, %s", bad[i].text, jg_status_name(status), jg_last_error());
        assert_same_members(&p, &before);
    }
}

static void words_not_given_keep_what_was_there(void **state)
{
    (void)state;
    const jg_problem defaults = {.m = 1, .batch = 3, .type_a = JG_F16, .type_b = JG_F16, .type_c = JG_F32, .op_b = JG_T,
                                 .order = JG_COL_MAJOR, .form = JG_FORM_GENERIC, .ldc = 100, .stride_a = 1000,
                                 .align_bytes = 8, .dynamic = JG_DYNAMIC_N, .compile = JG_COMPILE_NEVER};
    jg_problem p = defaults, expected = defaults;
    assert_int_equal(jg_problem_parse("10x20x30:specialised", &p), JG_OK);
    expected.m = 10;
    expected.n = 20;
    expected.k = 30;
    expected.form = JG_FORM_SPECIALISED;
    expected.stride_b = 20 * 30;
    expected.stride_c = 100 * 20;
    assert_same_members(&p, &expected);
    p = defaults;
    assert_int_equal(jg_problem_parse("10:row:nn:bf16", &p), JG_OK);
    assert_true(p.type_a == JG_BF16 && p.type_b == JG_BF16 && p.type_c == JG_BF16);
    assert_true(p.order == JG_ROW_MAJOR && p.op_b == JG_N && p.batch == 3 && p.stride_b == 100);
}

/* Words add flags to those that were there, and replace modes, activations and the residual's place. */
static void fused_words_and_what_was_there(void **state)
{
    (void)state;
    const jg_problem defaults = {.type_a = JG_F16, .type_b = JG_S8, .type_c = JG_F16, .math = JG_MATH_STRICT | JG_MATH_FLUSH,
                                 .epilogue = JG_EPILOGUE_SCALE | JG_EPILOGUE_RESIDUAL, .activation = JG_ACTIVATION_RELU,
                                 .type_bias = JG_F16, .group_k = 32, .zero_points = 1, .ld_residual = 40, .stride_residual = 7};
    jg_problem p = defaults, expected = defaults;
    expected.m = expected.n = expected.k = 16;
    assert_int_equal(jg_problem_parse("16", &p), JG_OK);
    assert_same_members(&p, &expected);
    p = defaults;
    assert_int_equal(jg_problem_parse("16:f16:f16acc:sanitize:residual_after:bias_n:silu:ldr=20", &(jg_problem){0}), JG_OK);
    assert_int_equal(jg_problem_parse("16:f16acc:sanitize", &p), JG_ERR_TYPE);
    assert_int_equal(jg_problem_parse("16:sanitize:residual_after:bias_n:silu:group=64:ldr=20", &p), JG_OK);
    expected.math |= JG_MATH_SANITIZE;
    expected.epilogue = JG_EPILOGUE_SCALE | JG_EPILOGUE_RESIDUAL_AFTER | JG_EPILOGUE_BIAS_N;
    expected.activation = JG_ACTIVATION_SILU;
    expected.group_k = 64;
    expected.ld_residual = 20;
    assert_same_members(&p, &expected);
    p = (jg_problem){.math = JG_MATH_TF32 | JG_MATH_FLUSH};
    assert_int_equal(jg_problem_parse("16:strict", &p), JG_OK);
    assert_int_equal(p.math, JG_MATH_STRICT | JG_MATH_FLUSH);
}

/* Cuts, doubles and replaces pieces of good texts; each result must be refused whole or taken whole. */
static void no_string_does_harm(void **state)
{
    (void)state;
    static const char alphabet[] = "0123456789x:=.-_fbntrowcldasgmkyuepziq \n\xff\x80%";
    uint64_t random = 7;
    int taken = 0;
    for (int round = 0; round < 100000; round++) {
        const char *from = good[reference_random(&random) % COUNT(good)].text;
        size_t length = strlen(from);
        char *text = malloc(length + 9); /* of its own size, so that a sanitizer sees a read past the end */
        memcpy(text, from, length + 1);
        for (int edits = (int)(reference_random(&random) % 4); edits >= 0 && length > 0; edits--)
            text[reference_random(&random) % length] = alphabet[reference_random(&random) % (sizeof alphabet - 1)];
        if (reference_random(&random) % 4 == 0) text[reference_random(&random) % (length + 1)] = 0;
        jg_problem before = {.m = 5, .ldc = 3}, p = before;
        jg_status status = jg_problem_parse(text, &p);
        problem checked;
        if (status == JG_OK) {
            taken++;
            assert_int_equal(problem_canonicalise(&p, &checked), JG_OK);
        } else {
            assert_true(jg_last_error()[0] != 0 && status < 10);
            assert_same_members(&p, &before);
        }
        free(text);
    }
    assert_in_range(taken, 1000, 99000);
}

static void long_texts_are_cut_in_the_error(void **state)
{
    (void)state;
    static char text[100001];
    jg_problem p = {0};
    memset(text, 'y', sizeof text - 1);
    assert_int_equal(jg_problem_parse(text, &p), JG_ERR_PARSE);
    assert_true(strlen(jg_last_error()) < 1000);
    assert_non_null(strstr(jg_last_error(), "is not a size"));
}

/* Where the system has a locale with digit grouping, it must not show. */
static void locales_do_not_matter(void **state)
{
    (void)state;
    static const char *const names[] = {"de_DE.UTF-8", "hi_IN.UTF-8", "en_US.UTF-8", "tr_TR.UTF-8"};
    char text[JG_PROBLEM_TEXT_BYTES];
    int found = 0;
    for (size_t i = 0; i < COUNT(names); i++) {
        if (!setlocale(LC_ALL, names[i])) continue;
        found++;
        jg_problem p = {0};
        assert_int_equal(jg_problem_parse("1234567x1000000x3:specialised", &p), JG_OK);
        assert_int_equal(jg_problem_format(&p, text, sizeof text, NULL), JG_OK);
        assert_string_equal(text, "1234567x1000000x3:specialised");
    }
    setlocale(LC_ALL, "C");
    if (found == 0) {
        print_message("SKIP no locale other than C is installed\n");
        skip();
    }
}

/* The lists that the tests and benches run must all be problems. */
static void shape_lists_parse(void **state)
{
    (void)state;
    const struct {
        const char *path;
        int problems;
    } lists[] = {{"tests/shapes/resnet50.txt", 21},
                 {"tests/shapes/vit_b16.txt", 8},
                 {"tests/shapes/mobilenet_v2.txt", 21},
                 {"tests/shapes/yolo_v8n.txt", 39},
                 {"tests/shapes/whisper_base.txt", 23},
                 {"tests/shapes/poison.txt", 16},
                 {"tests/shapes/skinny.txt", 22},
                 {"tests/shapes/large.txt", 5},
                 {"tests/shapes/common16.txt", 16}};
    for (size_t i = 0; i < COUNT(lists); i++) {
        FILE *file = fopen(lists[i].path, "r");
        char line[512];
        int problems = 0;
        if (!file) fail_msg("%s: run the tests in the root of the source tree", lists[i].path);
        while (fgets(line, sizeof line, file)) {
            jg_problem p = {0};
            line[strcspn(line, " \t#\n")] = 0;
            if (line[0] == 0) continue;
            problems++;
            if (jg_problem_parse(line, &p)) fail_msg("%s: %s", lists[i].path, jg_last_error());
            assert_true(p.m > 0 && p.n > 0 && p.k > 0);
        }
        fclose(file);
        assert_int_equal(problems, lists[i].problems);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_texts_mean_what_they_say),
        cmocka_unit_test(bad_texts_are_named_and_change_nothing),
        cmocka_unit_test(words_not_given_keep_what_was_there),
        cmocka_unit_test(fused_words_and_what_was_there),
        cmocka_unit_test(no_string_does_harm),
        cmocka_unit_test(long_texts_are_cut_in_the_error),
        cmocka_unit_test(locales_do_not_matter),
        cmocka_unit_test(shape_lists_parse),
    };
    return cmocka_run_group_tests_name("problem_text", tests, NULL, NULL);
}
