/* Problems collected, each once, and summed up by group: command lines and texts in; problems, tables and JSON out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <cjson/cJSON.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/tune_groups.h"
#include "tools/tune_report.h"

static tune_list list;
static prewarm_args args;

static int tear_down(void **state)
{
    (void)state;
    tune_list_free(&list);
    prewarm_args_free(&args);
    return 0;
}

/* Null-ended. */
static void collect(char **argv)
{
    int argc = 0;
    while (argv[argc]) argc++;
    optind = 0; /* begin anew */
    assert_int_equal(prewarm_args_parse(argc, argv, &args), -1);
    assert_int_equal(tune_list_add_sizes(&list, &args, 1000), 0);
}
#define COLLECT(...)                                                \
    do {                                                            \
        static char words[][32] = {"jitgemm-prewarm", __VA_ARGS__}; \
        char *argv[sizeof words / sizeof *words + 1] = {0};         \
        for (size_t i = 0; i < sizeof words / sizeof *words; i++) argv[i] = words[i]; \
        collect(argv);                                              \
    } while (0)

static const char *row_text(size_t row)
{
    return list.problems[list.rows[row]].product.text;
}

static void each_once_and_type_by_type(void **state)
{
    (void)state;
    COLLECT("--tune", "--type", "f16,f32", "64", "32", "64:f16");
    assert_int_equal(list.row_count, 5);
    assert_int_equal(list.count, 4);
    static const char *const expected[] = {"64:f16", "32:f16", "64:f16", "64", "32"};
    for (size_t i = 0; i < 5; i++) assert_string_equal(row_text(i), expected[i]);
    assert_int_equal(list.rows[0], list.rows[2]);
    assert_int_equal(list.group_count, 1);
    assert_string_equal(list.groups[0].name, "sizes");
    for (size_t i = 0; i < 4; i++) assert_int_equal(list.problems[i].outcome, TUNE_LEFT);
}

/* Lists of the program have a name each; operands of those whose claim is the memory are used in turns. */
static void suites(void **state)
{
    (void)state;
    COLLECT("--tune", "--suite", "common16,skinny", "--type", "f16", "--suite", "vit_b16", "24");
    assert_int_equal(list.group_count, 4);
    static const char *const names[] = {"common16", "skinny", "vit_b16", "sizes"};
    for (size_t i = 0; i < 4; i++) assert_string_equal(list.groups[i].name, names[i]);
    assert_int_equal(list.groups[0].end, 16);
    assert_string_equal(row_text(0), "64:f16");
    assert_string_equal(row_text(list.row_count - 1), "24:f16");
    assert_false(list.problems[0].product.rotated);
    assert_true(list.problems[16].product.rotated);
    assert_string_equal(list.problems[16].product.list, "skinny");
}

static void common_sizes_by_default(void **state)
{
    (void)state;
    COLLECT("--tune");
    assert_int_equal(list.count, 32);
    assert_string_equal(list.groups[0].name, "common16");
    assert_string_equal(row_text(15), "1024:f16");
    assert_string_equal(row_text(16), "64");
}

/* Those that come to the same product share a recorded plan. */
static void the_same_stored_otherwise(void **state)
{
    (void)state;
    char key[JG_PROBLEM_TEXT_BYTES];
    COLLECT("--tune", "24x32x16:col", "32x24x16", "33:f16:align=2", "33:f16", "64:f16:align=2", "64:f16");
    assert_int_equal(list.count, 4);
    assert_int_equal(list.row_count, 6);
    assert_string_equal(list.problems[0].key, "32x24x16");
    assert_string_equal(list.problems[1].product.text, "33:f16:align=2");
    assert_string_equal(list.problems[1].key, "33:f16");
    tune_key_format(&(jg_problem){.m = -1}, key, sizeof key);
    assert_string_equal(key, "");
}

static void nothing_to_compute(void **state)
{
    (void)state;
    COLLECT("--tune", "0x8x8", "8x8x0", "8");
    assert_int_equal(list.problems[0].outcome, TUNE_EMPTY);
    assert_int_equal(list.problems[2].outcome, TUNE_LEFT);
}

static void misses(void **state)
{
    (void)state;
    char first[] = "64:f16", second[] = "of another version", third[] = "32", *texts[] = {first, second, third};
    size_t passed;
    COLLECT("--tune", "32");
    assert_int_equal(tune_list_add_texts(&list, "misses", texts, 3, &passed), 0);
    assert_int_equal(passed, 1);
    assert_int_equal(list.count, 2);
    assert_int_equal(list.row_count, 3);
    assert_int_equal(list.group_count, 2);
    assert_string_equal(row_text(1), "64:f16"); /* most counted first, whatever the type */
    assert_string_equal(row_text(2), "32");
    assert_string_equal(list.groups[1].name, "misses");
    assert_int_equal(tune_list_add_texts(&list, "misses", texts + 1, 1, &passed), 0);
    assert_int_equal(list.group_count, 2);
}

/* ---- what is said ---- */

static void settle(size_t i, tune_outcome outcome, double us, double planned_us)
{
    tune_problem *p = &list.problems[i];
    p->outcome = outcome;
    p->found = (tune_found){.us = us, .planned_us = planned_us, .measured = 3, .all = 9};
    snprintf(p->found.kernel, sizeof p->found.kernel, "jg_kernel_%zu", i);
}

/* f16: 1.25 and kept, one failed, one left; f32: one known, one empty. */
static void fill(void)
{
    COLLECT("--tune", "64:f16", "32:f16", "24:f16", "16:f16", "64", "0x1x1");
    settle(0, TUNE_TUNED, 4, 5);
    settle(1, TUNE_KEPT, 2, 2);
    settle(4, TUNE_KNOWN, 10, 16);
    list.problems[2].outcome = TUNE_FAILED;
    snprintf(list.problems[2].error, sizeof list.problems[2].error, "no room");
    snprintf(list.problems[0].found.reason, sizeof list.problems[0].found.reason, "2 stages (was 3)");
}

static void groups(void **state)
{
    (void)state;
    tune_group g;
    fill();
    tune_group_begin(&list, &g);
    assert_true(tune_group_next(&g));
    assert_string_equal(g.type, "f16");
    assert_true(g.sizes == 4 && g.recorded == 2 && g.faster == 1);
    assert_true(fabs(g.mean - sqrt(1.25)) < 1e-12);
    assert_ptr_equal(g.best, &list.problems[0]);
    assert_true(tune_group_next(&g));
    assert_string_equal(g.type, "f32");
    assert_true(g.sizes == 2 && g.recorded == 1 && g.faster == 1);
    assert_true(fabs(g.mean - 1.6) < 1e-12);
    assert_false(tune_group_next(&g));
    assert_true(fabs(tune_mean_gain(&list) - cbrt(1.25 * 1.6)) < 1e-12);
    const tune_counts c = tune_count(&list);
    assert_true(c.tuned == 1 && c.kept == 1 && c.known == 1 && c.failed == 1 && c.left == 1 && c.empty == 1);
}

static void lines(void **state)
{
    (void)state;
    char text[1024];
    fill();
    tune_report_line(&list.problems[0], 0, text, sizeof text);
    assert_string_equal(text, "tuned  1.250x  4.00 us  64:f16  jg_kernel_0  (2 stages (was 3))");
    tune_report_line(&list.problems[1], 1, text, sizeof text);
    assert_string_equal(text, "kept   1.000x  2 instructions  32:f16  jg_kernel_1");
    tune_report_line(&list.problems[2], 0, text, sizeof text);
    assert_string_equal(text, "failed 24:f16: no room");
    list.problems[4].created = (int64_t)time(NULL) - 7300;
    tune_report_line(&list.problems[4], 0, text, sizeof text);
    assert_string_equal(text, "known  1.600x  10.00 us  64  jg_kernel_4  (tuned 2 hours ago, --retune measures again)");
}

static const tune_facts facts = {.cache = "k.db", .place = "sm_90 132sm 6144bit", .device = "NVIDIA H200", .power_mode = "700 W",
                                 .sm_mhz = 1980, .elapsed_ms = 1234, .budget_ms = 60000, .compiled = 17};

static char *written(int (*write)(const tune_list *, const tune_facts *, FILE *))
{
    char *text;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    assert_non_null(stream);
    assert_int_equal(write(&list, &facts, stream), 0);
    fclose(stream);
    return text;
}

static int write_table(const tune_list *what, const tune_facts *f, FILE *stream)
{
    tune_report_table(what, f, stream);
    tune_report_last_line(what, stream);
    return 0;
}

static void the_table(void **state)
{
    (void)state;
    fill();
    char *text = written(write_table);
    assert_string_equal(text, "NVIDIA H200 (sm_90 132sm 6144bit), 1980 MHz, 700 W: plans in k.db\n"
                              "list           type          sizes  tuned  faster     gain  best\n"
                              "sizes          f16               4      2       1   1.118x  1.250x of 64:f16\n"
                              "sizes          f32               2      1       1   1.600x  1.600x of 64\n"
                              "already tuned: 1; --retune measures again\n"
                              "nothing to compute: 1\n"
                              "tuned 1, kept 1, failed 1, left 1\n");
    free(text);
}

static double number(const cJSON *object, const char *name)
{
    const cJSON *item = cJSON_GetObjectItem(object, name);
    if (!cJSON_IsNumber(item)) fail_msg("no number %s", name);
    return item->valuedouble;
}

static void json(void **state)
{
    (void)state;
    fill();
    char *text = written(tune_report_json);
    cJSON *root = cJSON_Parse(text);
    assert_non_null(root);
    const cJSON *rows = cJSON_GetObjectItem(root, "rows"), *row = cJSON_GetArrayItem(rows, 0);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(root, "unit")), "us");
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(root, "place")), "sm_90 132sm 6144bit");
    assert_true(number(root, "tuned") == 1 && number(root, "left") == 1 && number(root, "compiled") == 17);
    assert_true(number(root, "sm_mhz") == 1980 && number(root, "budget_ms") == 60000);
    assert_int_equal(cJSON_GetArraySize(rows), 6);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(row, "problem")), "64:f16");
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(row, "outcome")), "tuned");
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(row, "reason")), "2 stages (was 3)");
    assert_true(number(row, "us") == 4 && number(row, "planned_us") == 5 && number(row, "gain") == 1.25);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(cJSON_GetArrayItem(rows, 2), "error")), "no room");
    assert_null(cJSON_GetObjectItem(cJSON_GetArrayItem(rows, 3), "us"));
    const cJSON *group = cJSON_GetArrayItem(cJSON_GetObjectItem(root, "groups"), 1);
    assert_true(number(group, "sizes") == 2 && fabs(number(group, "gain") - 1.6) < 1e-9);
    cJSON_Delete(root);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(each_once_and_type_by_type, tear_down),
        cmocka_unit_test_teardown(suites, tear_down),
        cmocka_unit_test_teardown(common_sizes_by_default, tear_down),
        cmocka_unit_test_teardown(the_same_stored_otherwise, tear_down),
        cmocka_unit_test_teardown(nothing_to_compute, tear_down),
        cmocka_unit_test_teardown(misses, tear_down),
        cmocka_unit_test_teardown(groups, tear_down),
        cmocka_unit_test_teardown(lines, tear_down),
        cmocka_unit_test_teardown(the_table, tear_down),
        cmocka_unit_test_teardown(json, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
