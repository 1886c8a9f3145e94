/* src/problem_format.c: that writing and reading are inverse for random problems, that the longest text fits, and how texts are
 * cut. */
#include "problem_text.h"
#include "reference.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* A problem with every member away from its default about half of the time. Its layout is right; types, modes and what is fused
 * in may not go together. */
static jg_problem random_problem(uint64_t *random)
{
    static const int64_t sizes[] = {0, 1, 2, 7, 64, 65, 4096, 2147483647};
    static const jg_type pairs[][2] = {{JG_DEFAULT_TYPE, JG_DEFAULT_TYPE}, {JG_F32, JG_F32}, {JG_F16, JG_DEFAULT_TYPE},
                                       {JG_BF16, JG_BF16}, {JG_S8, JG_U8}, {JG_U8, JG_S8}, {JG_S4, JG_S4}, {JG_F16, JG_S4},
                                       {JG_S8, JG_BF16}, {JG_S4, JG_BF16}, {JG_F16, JG_S8}, {JG_E4M3, JG_E5M2},
                                       {JG_E5M2, JG_E5M2}};
#define PICK(n) (reference_random(random) % (n))
    const size_t t = PICK(COUNT(pairs));
    jg_problem p = {.m = sizes[PICK(8)], .n = sizes[PICK(8)], .k = sizes[PICK(8)], .type_a = pairs[t][0], .type_b = pairs[t][1],
                    .op_a = PICK(2), .op_b = PICK(2), .order = PICK(2), .form = PICK(3), .compile = PICK(4)};
    if (PICK(2)) p.type_c = (jg_type)(1 + PICK(9));
    if (PICK(4) == 0) p.n = p.k = p.m;
    if (PICK(2)) p.align_bytes = 1u << PICK(13);
    if (PICK(2)) p.dynamic = (uint32_t)PICK(16);
    if (PICK(2)) p.math = (uint32_t)(PICK(5) | PICK(4) << 4);
    if (PICK(2)) p.epilogue = (uint32_t)PICK(256);
    if (PICK(2)) p.activation = PICK(8);
    if (PICK(2)) p.type_bias = (jg_type)PICK(4);
    if (PICK(4) == 0) p.group_k = 32u << PICK(3);
    p.zero_points = p.group_k && PICK(2);
    const int64_t longest = p.m > p.n ? (p.m > p.k ? p.m : p.k) : p.n > p.k ? p.n : p.k;
#define LONGER (longest + longest % 2 + 2 * (int64_t)PICK(9))
    if (PICK(2)) p.lda = LONGER;
    if (PICK(2)) p.ldb = LONGER;
    if (PICK(2)) p.ldc = LONGER + 1;
    if (PICK(2)) p.ld_residual = LONGER + (int64_t)PICK(2);
    if (longest < 5000 && PICK(2)) {
        p.batch = (int64_t)PICK(5);
        p.stride_a = p.lda * longest; /* dense, if op and order make it so */
        p.stride_b = p.ldb * longest;
        p.stride_c = p.stride_residual = (p.ldc ? p.ldc : longest + 1) * (longest + 1);
        if (PICK(2)) p.stride_a = 2 * (int64_t)PICK(500);
        if (PICK(2)) p.stride_b = (int64_t)PICK(2) * 78;
        if (PICK(2)) p.stride_residual = (int64_t)PICK(3);
    }
    return p;
#undef PICK
}

/* The most characters that format can write: of each kind of word the longest, with the longest numbers. */
static size_t longest_text(void)
{
    static const char numbers[] = "2147483647x2147483647x2147483647x2147483647:group=128:bias=bf16:align=16:dyn=mnkb";
    size_t words[SAYS_END] = {0}, length = sizeof numbers - 1 + MATRICES * (strlen(":ldx=") + strlen(":sx=") + 2 * 19);
    size_t type = 0;
    for (const fixed_word *f = fixed_words; f->word; f++)
        if (1 + strlen(f->word) > words[f->says]) words[f->says] = 1 + strlen(f->word);
    for (int says = 0; says < SAYS_END; says++) length += words[says];
    for (int t = 0; t <= LAST_TYPE; t++)
        if (strlen(type_name((jg_type)t)) > type) type = strlen(type_name((jg_type)t));
    return length + 3 * (1 + type);
}

static void writing_and_reading_are_inverse(void **state)
{
    (void)state;
    uint64_t random = 2024;
    int batched = 0, dynamic = 0, fused = 0, grouped = 0, tried = 0;
    while (tried < 50000) {
        const jg_problem p = random_problem(&random);
        jg_problem back = {0};
        problem before, after;
        char text[JG_PROBLEM_TEXT_BYTES], again[JG_PROBLEM_TEXT_BYTES];
        size_t length;
        const jg_status status = problem_canonicalise(&p, &before);
        if (status != JG_OK) { /* overflow: 2^31 rows of 2^31 f32 */
            if (status != JG_ERR_TYPE && status != JG_ERR_VALUE && status != JG_ERR_OVERFLOW) fail_msg("%s", jg_last_error());
            continue;
        }
        tried++;
        batched += p.batch > 1;
        dynamic += before.dynamic != 0 && before.swapped;
        fused += before.epilogue && before.swapped;
        grouped += before.group_k != 0;
        if (jg_problem_format(&p, text, sizeof text, &length)) fail_msg("%s", jg_last_error());
        assert_true(length == strlen(text) && length <= longest_text());
        if (jg_problem_parse(text, &back)) fail_msg("%s", jg_last_error());
        assert_int_equal(problem_canonicalise(&back, &after), JG_OK);
        if (memcmp(&before, &after, sizeof before) != 0) fail_msg("%s reads back as another problem", text);
        assert_int_equal(jg_problem_format(&back, again, sizeof again, NULL), JG_OK);
        assert_string_equal(text, again);
        back = problem_as_given(&before);
        assert_int_equal(problem_canonicalise(&back, &after), JG_OK);
        assert_memory_equal(&before, &after, sizeof before);
    }
    assert_true(batched > 4000 && dynamic > 1000 && fused > 1000 && grouped > 1000);
}

static void the_longest_text_fits(void **state)
{
    (void)state;
    assert_true(longest_text() < JG_PROBLEM_TEXT_BYTES); /* with the ending 0 */
    /* Single elements, so that leading dimensions and strides can have 19 digits each. Not all words go together. */
    jg_problem p = {.m = 1, .n = 1, .k = 2147483647, .batch = 2, .type_a = JG_S8, .type_b = JG_BF16, .type_c = JG_E4M3,
                    .op_a = JG_T, .form = JG_FORM_SPECIALISED, .lda = INT64_C(1000000000),
                    .ldb = INT64_C(1000000000), .ldc = INT64_C(4000000000000000000), .ld_residual = INT64_C(5000000000000000000),
                    .stride_a = INT64_C(4000000000000000000), .stride_b = INT64_C(1000000000000000000),
                    .stride_c = INT64_C(4000000000000000001), .stride_residual = INT64_C(4000000000000000001), .align_bytes = 8,
                    .dynamic = DYNAMIC_ALL, .math = JG_MATH_STRICT | JG_MATH_FLUSH | JG_MATH_SANITIZE,
                    .epilogue = 0xffu & ~JG_EPILOGUE_RESIDUAL, .activation = JG_ACTIVATION_GELU_TANH, .type_bias = JG_BF16,
                    .group_k = 128, .zero_points = 1};
    char text[JG_PROBLEM_TEXT_BYTES];
    size_t length;
    jg_problem back = {0};
    assert_int_equal(jg_problem_format(&p, text, sizeof text, &length), JG_OK);
    assert_int_equal(strlen(text), length);
    assert_true(length > 330 && length < longest_text());
    assert_int_equal(jg_problem_parse(text, &back), JG_OK);
    assert_true(back.stride_residual == p.stride_residual && back.dynamic == p.dynamic);
}

/* A policy of the call is no part of the problem. */
static void the_compile_policy_is_not_written(void **state)
{
    (void)state;
    jg_problem p = {.m = 4, .n = 4, .k = 4, .compile = JG_COMPILE_WAIT};
    char text[JG_PROBLEM_TEXT_BYTES];
    assert_int_equal(jg_problem_format(&p, text, sizeof text, NULL), JG_OK);
    assert_string_equal(text, "4");
    p.compile = (jg_compile)9;
    assert_int_equal(jg_problem_format(&p, text, sizeof text, NULL), JG_ERR_VALUE);
}

static void short_buffers_cut_as_snprintf_does(void **state)
{
    (void)state;
    const jg_problem p = {.m = 11, .n = 22, .k = 33};
    char text[16];
    size_t length = 0;
    assert_int_equal(jg_problem_format(&p, NULL, 0, &length), JG_OK);
    assert_int_equal(length, 8);
    for (size_t size = 1; size < sizeof text; size++) {
        memset(text, '#', sizeof text);
        assert_int_equal(jg_problem_format(&p, text, size, NULL), JG_OK);
        size_t kept = size - 1 < 8 ? size - 1 : 8;
        assert_true(strlen(text) == kept && strncmp(text, "11x22x33", kept) == 0);
        for (size_t i = kept + 1; i < sizeof text; i++) assert_true(text[i] == '#');
    }
}

static void bad_arguments(void **state)
{
    (void)state;
    char text[8] = "kept";
    jg_problem p = {.m = 4, .n = 4, .k = 4}, broken = {.m = -1};
    assert_int_equal(jg_problem_parse(NULL, &p), JG_ERR_NULL);
    assert_int_equal(jg_problem_parse("8", NULL), JG_ERR_NULL);
    assert_int_equal(jg_problem_format(NULL, text, sizeof text, NULL), JG_ERR_NULL);
    assert_int_equal(jg_problem_format(&p, NULL, 8, NULL), JG_ERR_NULL);
    assert_int_equal(jg_problem_format(&broken, text, sizeof text, NULL), JG_ERR_SIZE);
    assert_string_equal(text, "kept");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writing_and_reading_are_inverse),
        cmocka_unit_test(the_longest_text_fits),
        cmocka_unit_test(the_compile_policy_is_not_written),
        cmocka_unit_test(short_buffers_cut_as_snprintf_does),
        cmocka_unit_test(bad_arguments),
    };
    return cmocka_run_group_tests_name("problem_format", tests, NULL, NULL);
}
