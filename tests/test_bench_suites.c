/* The suites of jitgemm-bench: every list is problems for every type, and the lists of networks are those networks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/bench_suites.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define TEXT_MAX 256

static const jg_problem types[] = {{.type_a = JG_F32, .type_b = JG_F32, .type_c = JG_F32},
                                   {.type_a = JG_F16, .type_b = JG_F16, .type_c = JG_F16},
                                   {.type_a = JG_BF16, .type_b = JG_BF16, .type_c = JG_BF16}};

static const bench_list *find(const char *name)
{
    for (size_t i = 0; bench_list_at(i); i++)
        if (strcmp(bench_list_at(i)->name, name) == 0) return bench_list_at(i);
    fail_msg("no list %s", name);
    return NULL;
}

static sizelist read_list(const bench_list *list, const jg_problem *defaults, size_t count)
{
    sizelist sizes = {0};
    if (bench_list_problems(list, defaults, count, &sizes) != 0) fail_msg("%s", sizes.error);
    return sizes;
}

/* ---- the table ---- */

static void names_and_suites(void **state)
{
    (void)state;
    size_t count = 0;
    for (; bench_list_at(count); count++) {
        const bench_list *list = bench_list_at(count);
        assert_true(list->what[0] && strlen(list->what) < 80 && !strchr(list->what, '\n'));
        assert_true(bench_list_matches(list, list->name));
        assert_true(bench_list_matches(list, list->suite));
        assert_false(bench_list_matches(list, ""));
        assert_false(bench_list_matches(list, "laye"));
        assert_int_equal(list->memory, strcmp(list->name, "skinny") == 0);
        for (size_t i = 0; i < count; i++) {
            const bench_list *other = bench_list_at(i);
            assert_string_not_equal(other->name, list->name);
            assert_false(bench_list_matches(other, list->name));
            /* a suite that began before has not ended since */
            if (strcmp(other->suite, list->suite) == 0) assert_string_equal(bench_list_at(count - 1)->suite, list->suite);
            /* a word is a suite's or a list's, never both but for a suite of one list */
            assert_string_not_equal(other->suite, list->name);
        }
    }
    assert_int_equal(count, 11);
    assert_null(bench_list_at(count + 1));
    assert_null(bench_list_at((size_t)-1));
}

static void the_word_layers_is_five_networks(void **state)
{
    (void)state;
    static const char *const networks[] = {"resnet50", "mobilenet_v2", "vit_b16", "yolo_v8n", "whisper_base"};
    int found = 0;
    for (size_t i = 0; bench_list_at(i); i++) found += bench_list_matches(bench_list_at(i), "layers");
    assert_int_equal(found, COUNT(networks));
    for (size_t i = 0; i < COUNT(networks); i++) assert_true(bench_list_matches(find(networks[i]), "layers"));
}

/* ---- the lists ---- */

static int compare_texts(const void *x, const void *y)
{
    return strcmp(x, y);
}

static void check_distinct(const bench_list *list, const sizelist *sizes)
{
    char(*texts)[TEXT_MAX] = calloc(sizes->count, sizeof *texts);
    assert_non_null(texts);
    for (size_t i = 0; i < sizes->count; i++)
        assert_int_equal(jg_problem_format(&sizes->items[i], texts[i], sizeof texts[i], NULL), JG_OK);
    qsort(texts, sizes->count, sizeof *texts, compare_texts);
    for (size_t i = 1; i < sizes->count; i++)
        if (strcmp(texts[i - 1], texts[i]) == 0) fail_msg("%s: %s is there twice", list->name, texts[i]);
    free(texts);
}

/* A list is the same sizes in every type, one after another. */
static void lists_are_problems_of_every_type(void **state)
{
    (void)state;
    for (size_t i = 0; bench_list_at(i); i++) {
        sizelist all = read_list(bench_list_at(i), types, COUNT(types)), one = read_list(bench_list_at(i), types, 1);
        assert_true(one.count > 0);
        assert_int_equal(all.count, one.count * COUNT(types));
        check_distinct(bench_list_at(i), &all);
        for (size_t k = 0; k < all.count; k++) {
            assert_int_equal(all.items[k].type_a, types[k % COUNT(types)].type_a);
            assert_int_equal(all.items[k].m, one.items[k / COUNT(types)].m);
        }
        sizelist_free(&all);
        sizelist_free(&one);
    }
}

/* tests/shapes/README.md: | `NAME.txt` | COUNT | ... */
static void lists_are_as_long_as_documented(void **state)
{
    (void)state;
    FILE *file = fopen("tests/shapes/README.md", "r");
    char line[512], name[64], bar;
    size_t count, documented = 0, listed = 0;
    if (!file) fail_msg("tests/shapes/README.md: run the tests in the root of the source tree");
    while (fgets(line, sizeof line, file)) {
        if (sscanf(line, "| `%60[a-z0-9_].txt` | %zu %c", name, &count, &bar) != 3 || bar != '|') continue;
        sizelist sizes = read_list(find(name), types, 1);
        if (sizes.count != count) fail_msg("%s has %zu sizes, README.md says %zu", name, sizes.count, count);
        sizelist_free(&sizes);
        documented++;
    }
    fclose(file);
    while (bench_list_at(listed)) listed++;
    assert_int_equal(documented, listed);
}

/* What is embedded is the file: a changed file makes the object again. */
static void texts_are_the_files(void **state)
{
    (void)state;
    for (size_t i = 0; bench_list_at(i); i++) {
        char path[128];
        const char *text = bench_list_at(i)->text;
        snprintf(path, sizeof path, "tests/shapes/%s.txt", bench_list_at(i)->name);
        FILE *file = fopen(path, "r");
        if (!file) fail_msg("%s: run the tests in the root of the source tree", path);
        for (int c; (c = getc(file)) != EOF; text++) assert_int_equal((unsigned char)*text, c);
        assert_int_equal(*text, 0);
        fclose(file);
    }
}

/* ---- the networks ---- */

typedef struct sums {
    int64_t occurrences, multiply_adds, weights, columns;
} sums;

/* The number before the last " time" or " times" of a comment; 0 if there is none. */
static int64_t times_in(const char *comment)
{
    int64_t times = 0;
    for (const char *at = comment; (at = strstr(at, " time")); at++) {
        const char *digit = at;
        while (digit > comment && digit[-1] >= '0' && digit[-1] <= '9') digit--;
        if (digit < at) times = strtoll(digit, NULL, 10);
    }
    return times;
}

/* Sums over the sizes of a list, each as often as the comment before it says. Weights: of single products, that is not of
 * attention, whose m is not `skip_m`. */
static sums sum_up(const char *name, int64_t skip_m)
{
    sums total = {0};
    char line[SIZELIST_LINE_MAX];
    int64_t times = 0;
    for (const char *at = find(name)->text; *at;) {
        const size_t length = strcspn(at, "\n");
        jg_problem p = types[0];
        assert_true(length < sizeof line);
        memcpy(line, at, length);
        line[length] = 0;
        at += length + (at[length] == '\n');
        if (line[0] == '#') times = times_in(line);
        if (line[0] == '#' || line[0] == 0) continue;
        assert_int_equal(jg_problem_parse(line, &p), JG_OK);
        if (times == 0) fail_msg("%s: %s: the comment does not say how often", name, line);
        const int64_t batch = p.batch > 1 ? p.batch : 1;
        total.occurrences += times;
        total.multiply_adds += times * p.m * p.n * p.k * batch;
        if (batch == 1 && p.m != skip_m) total.weights += times * p.n * p.k;
        total.columns += times * p.n;
        times = 0;
    }
    return total;
}

/* Published: 4.09e9 multiply-adds; 53 convolutions and a dense layer. */
static void resnet50_is_whole(void **state)
{
    (void)state;
    const sums s = sum_up("resnet50", 0);
    assert_int_equal(s.occurrences, 53 + 1);
    assert_int_equal(s.multiply_adds, 4089184256);
    /* Published parameters: 25557032; the rest is 2 numbers a channel of batch normalisation and the classifier's bias. */
    assert_int_equal(s.weights + 2 * (s.columns - 1000) + 1000, 25557032);
}

/* Published: 17.6e9 multiply-adds. */
static void vit_b16_is_whole(void **state)
{
    (void)state;
    const sums s = sum_up("vit_b16", 0);
    assert_int_equal(s.occurrences, 1 + 12 * 6 + 1);
    assert_int_equal(s.multiply_adds, 17563828224);
    /* Published parameters: 86567656. The rest is the class token and the positions, biases and normalisations. */
    const int64_t width = 768, layer = (3 * width + width + 4 * width + width) + 2 * 2 * width;
    assert_int_equal(s.weights + width + 197 * width + width + 12 * layer + 2 * width + 1000, 86567656);
}

/* Published: 300e6 multiply-adds with the depthwise convolutions. Those have 9 a channel and pixel of their output. */
static void mobilenet_v2_is_whole(void **state)
{
    (void)state;
    /* channels and pixels a side of each block's depthwise convolution, and the number of such blocks */
    static const int64_t depthwise[][3] = {{32, 112, 1}, {96, 56, 1},  {144, 56, 1}, {144, 28, 1}, {192, 28, 2}, {192, 14, 1},
                                           {384, 14, 4}, {576, 14, 2}, {576, 7, 1},  {960, 7, 3}};
    const sums s = sum_up("mobilenet_v2", 0);
    int64_t blocks = 0, rest = 0, channels = 0;
    for (size_t i = 0; i < COUNT(depthwise); i++) {
        const int64_t *d = depthwise[i];
        blocks += d[2];
        channels += d[0] * d[2];
        rest += 9 * d[0] * d[1] * d[1] * d[2];
    }
    assert_int_equal(blocks, 17);
    assert_int_equal(s.occurrences, 52 - 17 + 1); /* 52 convolutions, and the classifier */
    assert_int_equal(rest, 20716416);
    assert_int_equal(s.multiply_adds, 280057856);
    assert_int_equal(s.multiply_adds + rest, 300774272);
    /* Published parameters: 3504872. */
    assert_int_equal(s.weights + 9 * channels + 2 * (s.columns - 1000 + channels) + 1000, 3504872);
}

/* Published: 8.7e9 operations, two a multiply-add, and 3157200 parameters. Each channel of a convolution has 2 numbers of batch
 * normalisation, but those that give boxes (64) and classes (80) have a bias, and the one over distances neither. */
static void yolo_v8n_is_whole(void **state)
{
    (void)state;
    const sums s = sum_up("yolo_v8n", 0);
    assert_int_equal(s.occurrences, 64);
    assert_int_equal(s.multiply_adds, 4371993600);
    assert_int_equal((2 * s.multiply_adds + 50000000) / 100000000, 87);
    assert_int_equal(s.weights + 2 * (s.columns - 1) - 3 * (64 + 80), 3157200);
}

/* Published parameters: 71825920. Besides the weights these are the text's positions, and biases (keys have none) and
 * normalisations (2 numbers a channel). The prompt of 4 rows has the weights of the step. */
static void whisper_base_is_whole(void **state)
{
    (void)state;
    const sums s = sum_up("whisper_base", 4);
    const int64_t width = 512, mlp = 2048, biases_of_mlp = mlp + width, normalisation = 2 * width;
    const int64_t encoder = 6 * (3 * width + biases_of_mlp + 2 * normalisation) + 2 * width + normalisation;
    const int64_t decoder = 6 * (2 * 3 * width + biases_of_mlp + 3 * normalisation) + normalisation + 448 * width;
    assert_int_equal(s.weights, 71504384);
    assert_int_equal(s.weights + encoder + decoder, 71825920);
    assert_int_equal(s.multiply_adds, 48694237696);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_suites),
        cmocka_unit_test(the_word_layers_is_five_networks),
        cmocka_unit_test(lists_are_problems_of_every_type),
        cmocka_unit_test(lists_are_as_long_as_documented),
        cmocka_unit_test(texts_are_the_files),
        cmocka_unit_test(resnet50_is_whole),
        cmocka_unit_test(vit_b16_is_whole),
        cmocka_unit_test(mobilenet_v2_is_whole),
        cmocka_unit_test(yolo_v8n_is_whole),
        cmocka_unit_test(whisper_base_is_whole),
    };
    return cmocka_run_group_tests_name("bench_suites", tests, NULL, NULL);
}
