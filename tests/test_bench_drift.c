/* jitgemm-bench --save and --against: made-up results in; files, verdicts, messages and exit statuses out. */
#include "drift_fixture.h"

#include <math.h>

static void assert_has_not(const char *text, const char *part)
{
    if (strstr(text, part)) fail_msg("\"%s\" is in:\n%s", part, text);
}

/* ---- saving and comparing ---- */

static void saves(void **state)
{
    (void)state;
    char why[1024];
    make_base(&usual);
    assert_string_equal(errors, "");
    assert_has(out, ": measures: 20, runs: 10\n");
    cJSON *base = bench_baseline_read(base_path, why, sizeof why);
    if (!base) fail_msg("%s", why);
    assert_int_equal(bench_baseline_runs(base), 10);
    cJSON_Delete(base);
}

static void same_numbers_are_the_same(void **state)
{
    (void)state;
    make_base(&usual);
    write_script("");
    assert_drift(&(asked){.against = base_path}, BENCH_EXIT_DONE);
    assert_string_equal(errors, "");
    assert_has(out, "drift of 10 runs against ");
    assert_has(out, "base.json (10 runs, 2026-01-31T12:00:00Z");
    assert_has(out, "\n20 measures: 0 slower, 0 faster, 20 the same within 3 % or by chance\n");
    assert_has_not(out, "changed");
    assert_has_not(out, "differ");
}

/* The same noise, drawn anew. */
static void noise_is_the_same(void **state)
{
    (void)state;
    making m = usual;
    make_base(&m);
    for (m.seed = 100; m.seed < 104; m.seed++) {
        make_results(&m, 10);
        write_script("");
        assert_drift(&(asked){.against = base_path}, BENCH_EXIT_DONE);
    }
}

static void a_slow_down_is_found(void **state)
{
    (void)state;
    making m = usual;
    make_base(&m);
    m.seed = 7;
    m.slower = 0.1;
    make_results(&m, 10);
    write_script("");
    assert_drift(&(asked){.against = base_path}, BENCH_EXIT_SLOWER);
    assert_has(out, "\nmedians that differ  ");
    assert_has(out, "\n  common16 3:f16 resident  ");
    assert_has(out, "  slower\n");
    assert_has(out, "\n20 measures: 1 slower, 0 faster, 19 the same within 3 % or by chance\n");
    assert_has_not(out, "4:f16");

    cJSON *drift;
    write_script("");
    assert_int_equal(drift_of(&(asked){.against = base_path, .format = BENCH_JSON}, &drift), BENCH_EXIT_SLOWER);
    assert_string_equal(out, "");
    assert_string_equal(errors, "");
    const cJSON *row = cJSON_GetArrayItem(cJSON_GetObjectItem(drift, "rows"), 3);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(drift, "base")), base_path);
    assert_int_equal(cJSON_GetNumberValue(cJSON_GetObjectItem(drift, "slower")), 1);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(row, "verdict")), "slower");
    const double change = cJSON_GetNumberValue(cJSON_GetObjectItem(row, "change_percent"));
    const double p = cJSON_GetNumberValue(cJSON_GetObjectItem(row, "p_adjusted"));
    assert_true(change > 8 && change < 12);
    assert_true(fabs(p - 20 * 2.0 / 184756) < 1e-9); /* all ten are slower than all ten, in one of 20 comparisons */
    cJSON_Delete(drift);

    write_script("");
    assert_drift(&(asked){.against = base_path, .format = BENCH_CSV}, BENCH_EXIT_SLOWER);
    assert_has(out, "kind,name,unit,base,now,change_percent,p,p_adjusted,verdict\nmeasure,common16 0:f16 resident,us,1.0");
    assert_has(out, ",1.08e-05,0.000217,slower\n");
}

/* Certain, but too little to matter; and certain the other way. */
static void what_is_no_slow_down(void **state)
{
    (void)state;
    making m = usual;
    m.slower = 0.1;
    make_base(&m);
    m.slower = 0.13 - 0.0025; /* 2.5 % of 1.1 more */
    make_results(&m, 10);
    write_script("");
    assert_drift(&(asked){.against = base_path}, BENCH_EXIT_DONE);
    m.slower = 0;
    make_results(&m, 10);
    write_script("");
    assert_drift(&(asked){.against = base_path}, BENCH_EXIT_DONE);
    assert_has(out, "  faster\n");
    assert_has(out, "\n20 measures: 0 slower, 1 faster, 19 the same");
}

static void changes_are_named(void **state)
{
    (void)state;
    making m = usual;
    make_base(&m);
    m.driver = "581.2";
    m.extra_clock_mhz = 60; /* less than 5 % */
    make_results(&m, 10);
    write_script("");
    assert_drift(&(asked){.against = base_path}, BENCH_EXIT_DONE);
    assert_has(out, "\nchanged since then\n  driver_release: 580.1, now 581.2\n\n20 measures");
    m.extra_clock_mhz = -300;
    make_results(&m, 10);
    write_script("");
    assert_drift(&(asked){.against = base_path, .format = BENCH_CSV}, BENCH_EXIT_DONE);
    assert_has(out, "\nchanged,driver_release,,580.1,581.2,,,,\nchanged,clock_sm_max_mhz,,1980,1680,,,,\nmeasure,");
}

/* Both with one path: compared with the old one, which the new one then replaces. */
static void compares_then_saves(void **state)
{
    (void)state;
    making m = usual;
    make_base(&m);
    m.slower = 0.2;
    make_results(&m, 10);
    write_script("");
    assert_drift(&(asked){.against = base_path, .save = base_path}, BENCH_EXIT_SLOWER);
    write_script("");
    assert_drift(&(asked){.against = base_path, .save = new_path}, BENCH_EXIT_DONE);
    assert_true(scratch_exists(new_path));
    unlink(new_path);
}

/* ---- what cannot be compared ---- */

static void other_devices(void **state)
{
    (void)state;
    making m = usual;
    make_base(&m);
    write_script("");
    assert_drift(&(asked){.against = base_path, .save = new_path, .gpu = {.arch = 87, .name = "Orin"}}, BENCH_EXIT_FAILED);
    assert_has(errors, "base.json is of another device: device was \"Chip\" and is \"Orin\" here");
    assert_drift(&(asked){.against = base_path, .gpu = {.arch = 87, .name = "Chip"}}, BENCH_EXIT_FAILED);
    assert_has(errors, "arch was \"90\" and is \"87\" here");
    assert_drift(&(asked){.against = base_path, .gpu = {.arch = 90, .name = "Chip", .software = 1}}, BENCH_EXIT_FAILED);
    assert_has(errors, "software was \"no\" and is \"yes\" here");
    assert_int_equal(started(), 0);
    m.sms = 8; /* which only a process tells */
    make_results(&m, 10);
    assert_drift(&(asked){.against = base_path, .save = new_path}, BENCH_EXIT_FAILED);
    assert_has(errors, "sms was \"16\" and is \"8\" here");
    assert_int_equal(started(), 1);
    assert_false(scratch_exists(new_path));
}

static void other_measures(void **state)
{
    (void)state;
    making m = usual;
    make_base(&m);
    m.suite = "layers";
    make_results(&m, 10);
    write_script("");
    assert_drift(&(asked){.against = base_path}, BENCH_EXIT_FAILED);
    assert_has(errors, "base.json holds nothing that is measured now");
    assert_int_equal(started(), 1);
}

/* One measure has another name in all of the new runs. */
static void missing_and_new(void **state)
{
    (void)state;
    make_base(&usual);
    write_script("sed s/common16.,..problem.:..3:/other\\\",\\\"problem\\\":\\\"3:/ run$N.json; exit 0");
    assert_drift(&(asked){.against = base_path}, BENCH_EXIT_DONE);
    assert_has(out, "\nnot measured now\n  common16 3:f16 resident\n\nnot in the baseline\n  common16/other 3:f16 resident\n\n"
                    "19 measures:");
}

static void bad_baselines(void **state)
{
    (void)state;
    make_results(&usual, 10);
    write_script("");
    static const struct { const char *text, *why; } rows[] = {
        {"garbage", "is not JSON"},
        {"{\"format\": \"jitgemm-bench result\"}", "is the result of one run"},
        {"{\"format\": \"jitgemm-bench baseline\", \"format_vers", "cut off"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        scratch_write(base_path, rows[i].text, strlen(rows[i].text));
        assert_drift(&(asked){.against = base_path, .save = base_path}, BENCH_EXIT_FAILED);
        assert_has(errors, rows[i].why);
        assert_content(base_path, rows[i].text);
    }
    unlink(base_path);
    assert_drift(&(asked){.against = base_path}, BENCH_EXIT_FAILED);
    assert_has(errors, "base.json cannot be read: No such file or directory");
    assert_drift(&(asked){.save = scratch_path(folder, "no/such.json")}, BENCH_EXIT_FAILED);
    assert_has(errors, "no/such.json cannot be written: No such file or directory");
    assert_int_equal(started(), 0);
}

/* Two runs against ten can differ by chance, in one of 33 cases. */
static void few_runs_are_warned_of(void **state)
{
    (void)state;
    making m = usual;
    make_base(&m);
    m.slower = 0.5;
    make_results(&m, 10);
    write_script("");
    assert_drift(&(asked){.against = base_path, .runs = 2}, BENCH_EXIT_DONE);
    assert_has(errors, "warning: with 2 runs against 10 a change of one measure out of 20 cannot be told from chance");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(saves),
        cmocka_unit_test(same_numbers_are_the_same),
        cmocka_unit_test(noise_is_the_same),
        cmocka_unit_test(a_slow_down_is_found),
        cmocka_unit_test(what_is_no_slow_down),
        cmocka_unit_test(changes_are_named),
        cmocka_unit_test(compares_then_saves),
        cmocka_unit_test(other_devices),
        cmocka_unit_test(other_measures),
        cmocka_unit_test(missing_and_new),
        cmocka_unit_test(bad_baselines),
        cmocka_unit_test(few_runs_are_warned_of),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
