/* jitgemm-bench planner, from outside: cache files whose recorded plans are written here in; how far the planner's model is from them,
 * as a table, JSON and CSV, out. Needs no GPU; the last test tunes on the software GPU and is skipped without NVRTC. */
#include "cache/store.h"
#include "cli_tools_fixture.h"
#include "jitgemm.h"
#include "sample_records.h"
#include "tuned_row.h"

#include <cjson/cJSON.h>
#include <math.h>

#define PLACE "sm_87 16sm 256bit"
#define OTHER_PLACE "sm_90 132sm 6144bit"

static char file[PATH_MAX + 64];
static cJSON *root; /* what the last run printed */

/* Records a plan that takes 10 us, and loss times as long if the model chooses; 0: not known. */
static void record(const char *text, const char *place, double loss)
{
    static const char best[] = "jg_sm87_mma_f16f16f16_nn_64x128x32_w64x32_s3_a16",
                      planned[] = "jg_sm87_mma_f16f16f16_nn_32x64x64_w32x32_s4_a16";
    const jg_measured measured = {.us = 10, .planned_us = 10 * loss, .runner_up_us = 10.5, .planned = loss == 1 ? best : planned,
                                  .runner_up = "jg_sm87_mma_f16f16f16_nn_16x16x64_w16x16_s6_k4_a16", .reason = "tile 64x128, \"was\" 32x64",
                                  .measured = 6, .all = 40, .device = "Orin, \"small\""};
    const tuned_value value = {.family = 1};
    jg_problem in = {0};
    problem p;
    tuned_row row;
    store *s = sample_open(file, 0, 0);
    assert_int_equal(jg_problem_parse(text, &in), JG_OK);
    assert_int_equal(problem_canonicalise(&in, &p), JG_OK);
    const problem_key key = problem_key_of(&p, problem_promised_access(&p));
    tuned_row_fill(&row, place, &key, &key, &value, best, 0x1234, &measured);
    assert_int_equal(store_put_choice(s, &row.choice), STORE_OK);
    store_close(s);
}

static int set_up(void **state)
{
    make_folder(state);
    snprintf(file, sizeof file, "%s/kernels.db", folder);
    setenv("F", file, 1);
    return 0;
}

static int tear_down(void **state)
{
    cJSON_Delete(root);
    root = NULL;
    return remove_folder(state);
}

static const cJSON *item(const cJSON *object, const char *name)
{
    const cJSON *found = cJSON_GetObjectItemCaseSensitive(object, name);
    if (!found) fail_msg("no \"%s\" in:\n%s", name, out);
    return found;
}

static double number(const cJSON *object, const char *name)
{
    assert_true(cJSON_IsNumber(item(object, name)));
    return item(object, name)->valuedouble;
}

static const char *text(const cJSON *object, const char *name)
{
    assert_true(cJSON_IsString(item(object, name)));
    return item(object, name)->valuestring;
}

/* Runs it with JSON and gives the number of places. */
static int planner(const char *arguments)
{
    cJSON_Delete(root);
    root = NULL;
    assert_run(0, "\"$N\" planner --cache $F --json %s", arguments);
    assert_string_equal(err, "");
    root = cJSON_Parse(out);
    assert_string_equal(text(root, "format"), "jitgemm-bench planner");
    return cJSON_GetArraySize(item(root, "places"));
}

static const cJSON *place_at(int i)
{
    return cJSON_GetArrayItem(item(root, "places"), i);
}

static const cJSON *named(const cJSON *place, const char *array, const char *member, const char *name, const char *type)
{
    const cJSON *one;
    cJSON_ArrayForEach(one, item(place, array))
        if (strcmp(text(one, member), name) == 0 && (!*type || strcmp(text(one, "type"), type) == 0)) return one;
    fail_msg("no %s %s %s in:\n%s", array, name, type, out);
    return NULL;
}

static void assert_sum(const cJSON *object, int problems, int recorded, int known, int right)
{
    assert_true(number(object, "problems") == problems && number(object, "recorded") == recorded);
    assert_true(number(object, "known") == known && number(object, "right") == right);
}

static void assert_near(double value, double expected)
{
    if (fabs(value - expected) > 1e-9 * expected) fail_msg("%.12g, not %.12g", value, expected);
}

static void sums_of_groups_suites_and_places(void **state)
{
    (void)state;
    record("64:f16", PLACE, 1);
    record("128:f16", PLACE, 1.21);
    record("192:f16", PLACE, 1.1);
    record("256:f16", PLACE, 0);   /* no time of the model's choice */
    record("1024", PLACE, 1.5);
    record("1024:f16", OTHER_PLACE, 2);
    assert_int_equal(planner("common16 poison --type f16,f32"), 2);
    const cJSON *orin = place_at(0), *group = named(orin, "groups", "list", "common16", "f16");
    assert_string_equal(text(orin, "place"), PLACE);
    assert_true(number(orin, "records") == 5 && cJSON_IsFalse(item(orin, "software")));
    assert_sum(group, 16, 4, 3, 1);
    assert_near(number(group, "geomean"), cbrt(1.21 * 1.1));
    assert_near(number(group, "worst"), 1.21);
    assert_string_equal(text(group, "worst_problem"), "128:f16");
    const cJSON *suite = named(orin, "suites", "suite", "common16", "");
    assert_sum(suite, 32, 5, 4, 1);
    assert_near(number(suite, "geomean"), pow(1.21 * 1.1 * 1.5, 0.25));
    assert_sum(named(orin, "suites", "suite", "poison", ""), 32, 0, 0, 0);
    assert_null(cJSON_GetObjectItem(named(orin, "suites", "suite", "poison", ""), "geomean"));
    assert_sum(orin, 64, 5, 4, 1);
    assert_sum(place_at(1), 64, 1, 1, 0);
}

static void the_worst_come_first_and_are_ten(void **state)
{
    (void)state;
    static const int sizes[] = {448, 64, 704, 128, 192, 1024, 256, 320, 960, 384, 512, 576, 640};
    for (int i = 0; i < 13; i++) {
        char size[16];
        snprintf(size, sizeof size, "%d:f16", sizes[i]);
        record(size, PLACE, 1 + (double)sizes[i] / 1e4);
    }
    planner("common16 --type f16");
    const cJSON *one, *worst = item(named(place_at(0), "suites", "suite", "common16", ""), "slowest");
    double before = 2;
    assert_int_equal(cJSON_GetArraySize(worst), 10);
    assert_string_equal(text(worst->child, "problem"), "1024:f16");
    cJSON_ArrayForEach(one, worst)
    {
        assert_true(number(one, "loss") < before && number(one, "loss") > 1.019);
        before = number(one, "loss");
    }
    one = worst->child;
    assert_true(number(one, "us") == 10 && number(one, "runner_up_us") == 10.5);
    assert_true(number(one, "measured") == 6 && number(one, "all") == 40);
    assert_string_equal(text(one, "reason"), "tile 64x128, \"was\" 32x64");
    assert_has(text(one, "kernel"), "_64x128x32_");
    assert_has(text(one, "planned"), "_32x64x64_");
}

/* Of several ways to say the same problem any finds it; what is in no suite is shown where nothing was named. */
static void problems_are_found_by_what_they_are(void **state)
{
    (void)state;
    record("48x20x16:f16", PLACE, 1.25);
    record("64:f16", PLACE, 1);
    planner("--size 20x48x16:f16:col --size 48x20x16:f16:lda=16 --size 48x20x16:f16:nt");
    assert_sum(named(place_at(0), "groups", "list", "size", "f16"), 3, 2, 2, 0);
    planner("");
    assert_sum(named(place_at(0), "groups", "list", "others", ""), 1, 1, 1, 0);
    assert_sum(named(place_at(0), "groups", "list", "common16", "f16"), 16, 1, 1, 1);
    assert_string_equal(text(item(named(place_at(0), "suites", "suite", "others", ""), "slowest")->child, "problem"), "48x20x16:f16");
    scratch_write(scratch_path(folder, "sizes.txt"), "48x20x16:f16\n", 13);
    planner("--list sizes.txt");
    assert_sum(named(place_at(0), "groups", "list", "sizes.txt", "f16"), 1, 1, 1, 0);
    assert_int_equal(cJSON_GetArraySize(item(place_at(0), "groups")), 1);
}

static void the_table(void **state)
{
    (void)state;
    record("64:f16", PLACE, 1);
    record("128:f16", PLACE, 1.21);
    record("64x55x55:f16", PLACE " software", 1.5);
    assert_run(0, "\"$N\" planner common16 poison --type f16,f32 --cache $F --place 16sm");
    assert_begins(out, "jitgemm " JG_VERSION_STRING ", planner: /");
    assert_has(out, "\n" PLACE ", Orin, \"small\": recorded plans: 2\nloss: time of the model's choice / of the recorded plan\n");
    assert_has(out, "\n  common16, f16                          2 of 16      1 (50 %)    1.100    1.21  128:f16\n");
    assert_has(out, "\n  all                                    2 of 64      1 (50 %)    1.100    1.21  128:f16\n");
    assert_has(out, "\n  common16, worst                       loss          us  recorded ");
    assert_has(out, "\n  128:f16                               1.21       10.00  64x128x32_w64x32_s3                12.10  "
                    "32x64x64_w32x32_s4\n      tile 64x128, \"was\" 32x64\n      second: 16x16x64_w16x16_s6_k4, 10.50\n");
    assert_has(out, "\nNothing recorded: common16 f32, poison\n62 of 64 sizes have no recorded plan; jitgemm-prewarm --tune ");
    assert_has(out, "\n" PLACE " software, Orin, \"small\": recorded plans: 1\nloss: instructions of the model's choice");
    assert_has_not(out, "  64:f16 "); /* the model was right there */
}

static void csv(void **state)
{
    (void)state;
    record("64:f16", PLACE, 1);
    record("128:f16", PLACE, 0);
    record("1024:f16", OTHER_PLACE, 2);
    assert_run(0, "\"$N\" planner common16 --cache $F --csv");
    assert_begins(out, "place,device,suite,list,type,problem,kernel,planned,runner_up,reason,us,planned_us,runner_up_us,loss,right,"
                       "measured,all\n" PLACE ",\"Orin, \"\"small\"\"\",common16,common16,f16,64:f16,jg_sm87_");
    assert_has(out, ",\"tile 64x128, \"\"was\"\" 32x64\",10,10,10.5,1,1,6,40\n");
    assert_has(out, ",10,,10.5,,0,6,40\n");
    assert_has(out, ",10,20,10.5,2,0,6,40\n");
    assert_run(0, "\"$N\" planner common16 --cache $F --csv --place 132sm | wc -l");
    assert_string_equal(out, "2\n");
}

static void what_is_not_there_is_told(void **state)
{
    (void)state;
    static const struct { const char *arguments; int status; const char *message; } rows[] = {
        {"--cache none.db", 1, "there is no cache file none.db"},
        {"--cache empty.db", 1, "no recorded plans in empty.db; jitgemm-prewarm --tune --suite common16 makes some"},
        {"skinny poison --cache $F", 1, "which has 1 of others; jitgemm-prewarm --tune --suite skinny records them"},
        {"--size 32:f16 --cache $F", 1, "none of these 1 sizes has a recorded plan in "},
        {"--cache $F --place 8sm", 1, "--place: nothing is recorded for such a place; there are \"" PLACE "\"\n"},
        {"--cache $F --place ''", 2, "--place needs a value"},
        {"--list none.txt --cache $F", 2, "none.txt: No such file or directory"},
        {"common16 dispatch --cache $F", 2, "planner measures nothing: run dispatch by itself"},
        {"plans common16 --cache $F", 2, "planner measures nothing: run plans by itself"},
        {"--driver swgpu", 2, "--driver is not for planner; see --help"},
        {"--html a.html", 2, "--html is not for planner; see --help"},
    };
    record("64:f16", PLACE, 1);
    store_close(sample_open(scratch_path(folder, "empty.db"), 0, 0));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const int status = run("\"$N\" planner %s", rows[i].arguments);
        if (status != rows[i].status) fail_msg("%s: status %d, not %d: %s", rows[i].arguments, status, rows[i].status, err);
        assert_begins(err, "jitgemm-bench: ");
        assert_has(err, rows[i].message);
        assert_string_equal(out, "");
    }
    assert_run(1, "\"$N\" planner --cache $F >/dev/full");
    assert_has(err, "jitgemm-bench: standard output: No space left on device");
}

/* All the way: what jitgemm-prewarm measures is what is reported. */
static void what_was_tuned_is_reported(void **state)
{
    (void)state;
    need_nvrtc();
    assert_run(0, "JITGEMM_DRIVER=swgpu JITGEMM_SWGPU_DEVICE=orin-agx \"$P\" --tune --candidates 2 --cache $F 64:f16");
    assert_int_equal(planner("common16 --type f16"), 1);
    assert_true(cJSON_IsTrue(item(place_at(0), "software")));
    assert_sum(named(place_at(0), "groups", "list", "common16", "f16"), 16, 1, 1, (int)number(place_at(0), "right"));
    assert_true(number(place_at(0), "geomean") >= 1);
}

int main(void)
{
    if (find_tools() != 0) return 0;
    char tool[PATH_MAX];
    snprintf(tool, sizeof tool, "%s", getenv("P"));
    snprintf(strrchr(tool, '/'), 16, "/jitgemm-bench");
    setenv("N", tool, 1);
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(sums_of_groups_suites_and_places), TEST(the_worst_come_first_and_are_ten), TEST(problems_are_found_by_what_they_are),
        TEST(the_table),                        TEST(csv),                              TEST(what_is_not_there_is_told),
        TEST(what_was_tuned_is_reported),
    };
    return cmocka_run_group_tests_name("planner", tests, NULL, NULL);
}
