/* Recorded plans from outside: files whose rows are written here in; what jitgemm-cache plans, stats and clear say of them out. */
#include "cache/store.h"
#include "cli_tools_fixture.h"
#include "sample_records.h"
#include "tuned_row.h"

#include <cjson/cJSON.h>
#include <xxhash.h>

#define ORIN "sm_87 16sm 256bit shared"
#define NANO "sm_87 8sm 128bit shared"
#define SOFTWARE "sm_87 16sm 256bit software"
#define KERNEL "jg_sm87_mma_f16f16f16_nn_128x64x32_w64x32_s3_k2_a16_m196n768k768_l768_768_768_c4"

static char file[PATH_MAX + 64]; /* the cache file */

static void add_plan(const char *problem_text, const char *place, const char *kernel, uint64_t record, const jg_measured *m)
{
    static tuned_row row;
    jg_problem in = {0};
    problem p;
    store *s = sample_open(file, 0, 0);
    assert_int_equal(jg_problem_parse(problem_text, &in), JG_OK);
    assert_int_equal(problem_canonicalise(&in, &p), JG_OK);
    const problem_key key = problem_key_of(&p, problem_promised_access(&p));
    tuned_row_fill(&row, place, &key, &key, &(tuned_value){.family = 2}, kernel, record, m);
    assert_int_equal(store_put_choice(s, &row.choice), STORE_OK);
    store_close(s);
}

/* Three plans at two places, and a kernel that one of them has. */
static void fill(void)
{
    size_t bytes;
    const void *key = sample_key(1, &bytes);
    store *s = sample_open(file, 0, 0);
    sample_put(s, 1, 512, "the source\n");
    store_close(s);
    add_plan("196x768x768:f16", ORIN, KERNEL, XXH64(key, bytes, 0),
             &(jg_measured){.us = 20, .planned_us = 25, .runner_up_us = 20.5, .planned = "jg_planned", .runner_up = "jg_second",
                            .reason = "waves 0.97 to 1.94", .measured = 6, .all = 31, .device = "Orin AGX", .sm_mhz = 1300.5,
                            .power_mode = "MAXN"});
    add_plan("64", ORIN, "jg_odd", 1, &(jg_measured){.us = 3.456, .planned_us = 3.456, .device = "Orin AGX"});
    add_plan("64", NANO, "jg_sm87_simt_f32f32f32_nn_64x64x8_w8x4_s2_m64n64k64", 1, &(jg_measured){.us = 9});
}

static int set_up(void **state)
{
    make_folder(state);
    snprintf(file, sizeof file, "%s/kernels.db", folder);
    setenv("F", file, 1);
    return 0;
}

static double number(const cJSON *object, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    assert_true(cJSON_IsNumber(item));
    return item->valuedouble;
}

static const char *text(const cJSON *object, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    assert_true(cJSON_IsString(item));
    return item->valuestring;
}

static void lists_by_place_and_problem(void **state)
{
    (void)state;
    fill();
    assert_run(0, "\"$C\" plans --cache $F | sed 's/20..-..-.. ..:../THEN/;s/   */  /g'"); /* columns without their widths */
#define HEADING "US  GAIN  SECOND  MEASURED  CACHED  CLOCK  POWER  WHEN  TILE  PROBLEM\n"
    assert_string_equal(out, ORIN ": Orin AGX\n  " HEADING
                             "  20.00  1.25x  1.02x  6 of 31  yes  1300 MHz  MAXN  THEN  128x64x32_w64x32_s3_k2  196x768x768:f16\n"
                             "  3.46  1.00x  -  -  no  -  -  THEN  -  64\n\n" NANO "\n  " HEADING
                             "  9.00  -  -  -  no  -  -  THEN  64x64x8_w8x4_s2  64\n"
                             "3 plans, 1.12x as fast as what the planner's model chooses (geometric mean)\n");
    assert_string_equal(err, "");
    /* The last column is what jitgemm-prewarm takes. */
    assert_run(0, "\"$C\" plans --cache $F | awk '/ (yes|no) / {print $NF}' | xargs \"$P\" --arch 87 --dry-run");
    assert_has(out, "196x768x768:f16");
    add_plan("32", SOFTWARE, "jg_odd", 1, &(jg_measured){.us = 1234});
    assert_run(0, "\"$C\" plans --cache $F");
    assert_has(out, SOFTWARE "\nINSTRUCTIONS    GAIN");
    assert_has(out, "     1234.00       -");
}

static void lists_as_json(void **state)
{
    (void)state;
    fill();
    assert_run(0, "\"$C\" --json plans --cache $F");
    cJSON *root = cJSON_Parse(out);
    const cJSON *plans = cJSON_GetObjectItem(root, "plans");
    assert_int_equal(cJSON_GetArraySize(plans), 3);
    assert_string_equal(text(root, "path"), file);
    const cJSON *first = cJSON_GetArrayItem(plans, 0), *last = cJSON_GetArrayItem(plans, 2);
    assert_string_equal(text(first, "problem"), "196x768x768:f16");
    assert_string_equal(text(first, "place"), ORIN);
    assert_string_equal(text(first, "kernel"), KERNEL);
    assert_string_equal(text(first, "planned"), "jg_planned");
    assert_string_equal(text(first, "runner_up"), "jg_second");
    assert_string_equal(text(first, "reason"), "waves 0.97 to 1.94");
    assert_string_equal(text(first, "device"), "Orin AGX");
    assert_string_equal(text(first, "power_mode"), "MAXN");
    assert_true(number(first, "us") == 20 && number(first, "planned_us") == 25 && number(first, "runner_up_us") == 20.5);
    assert_true(number(first, "gain") == 1.25 && number(first, "measured") == 6 && number(first, "all") == 31);
    assert_true(number(first, "sm_mhz") == 1300.5 && number(first, "created") > 1e9);
    assert_true(cJSON_IsTrue(cJSON_GetObjectItem(first, "cached")) && cJSON_IsFalse(cJSON_GetObjectItem(last, "cached")));
    assert_string_equal(text(last, "place"), NANO);
    assert_string_equal(text(last, "device"), "");
    static const char *const unknown[] = {"planned_us", "runner_up_us", "gain", "measured", "all", "sm_mhz"};
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) assert_true(cJSON_IsNull(cJSON_GetObjectItem(last, unknown[i])));
    cJSON_Delete(root);
}

static void none_is_no_error(void **state)
{
    (void)state;
    store_close(sample_open(file, 0, 0));
    assert_run(0, "\"$C\" plans --cache $F");
    assert_begins(out, "no recorded plans in /");
    assert_has(out, "jitgemm-prewarm --tune");
    assert_run(0, "\"$C\" plans --cache $F --json");
    cJSON *root = cJSON_Parse(out);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(root, "plans")), 0);
    cJSON_Delete(root);
    assert_run(1, "\"$C\" plans --cache $F.none");
    assert_has(err, "there is no cache file");
    /* A file of an older version has none, and stays as it is. */
    sample_sql(file, "DROP TABLE choices; PRAGMA user_version=2");
    assert_run(0, "\"$C\" plans --cache $F");
    assert_begins(out, "no recorded plans in /");
    assert_int_equal(sample_sql(file, "PRAGMA user_version"), 2);
}

static void forgets_them_and_keeps_the_kernels(void **state)
{
    (void)state;
    fill();
    assert_run(0, "\"$C\" plans --clear --cache $F");
    assert_string_equal(out, "3 forgotten\n");
    assert_run(0, "\"$C\" plans --clear --json --cache $F");
    assert_has(out, "\"removed\":\t0");
    assert_run(0, "\"$C\" stats --cache $F");
    assert_has(out, "\nplans       0 recorded\n");
    assert_has(out, "\nall               1 ");
}

static void sums_and_clearing_tell_of_them(void **state)
{
    (void)state;
    fill();
    assert_run(0, "\"$C\" stats --cache $F");
    assert_has(out, "\nplans       3 recorded\n");
    assert_run(0, "\"$C\" stats --json --cache $F");
    assert_has(out, "\"plans\":\t3,");
    assert_run(0, "\"$C\" clear --yes --cache $F");
    assert_run(0, "\"$C\" plans --cache $F");
    assert_begins(out, "no recorded plans in /");
    fill();
    if (run("command -v script") != 0) {
        print_message("SKIP no script(1) to make a terminal\n");
        skip();
    }
    assert_run(1, "echo n | script -qec '\"$C\" clear --cache $F' /dev/null");
    assert_has(out, "3 recorded plans too? [y/N]");
}

static void commands_no_terminal(void **state)
{
    (void)state;
    add_plan("64", "evil\033[2J", "k", 1, &(jg_measured){.us = 1, .device = "\033x", .power_mode = "\033y"});
    assert_run(0, "\"$C\" plans --cache $F");
    assert_null(strchr(out, '\033'));
    assert_has(out, "evil?[2J: ?x\n");
    assert_run(0, "\"$C\" plans --help && \"$C\" --help");
    assert_has(out, "usage: jitgemm-cache plans [--clear]");
    assert_run(2, "\"$C\" plans --yes");
    assert_run(2, "\"$C\" plans key");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, remove_folder)
    const struct CMUnitTest tests[] = {
        TEST(lists_by_place_and_problem),
        TEST(lists_as_json),
        TEST(none_is_no_error),
        TEST(forgets_them_and_keeps_the_kernels),
        TEST(sums_and_clearing_tell_of_them),
        TEST(commands_no_terminal),
    };
    if (find_tools() != 0) return 0;
    return cmocka_run_group_tests_name("plans", tests, NULL, NULL);
}
