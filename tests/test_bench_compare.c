/* A baseline judged against an older one: made-up values and environments in; verdicts and what changed out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/bench_baseline.h"
#include "tools/bench_compare.h"

#define MEASURES 40

static uint64_t random_state;

static double uniform(void)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return ((double)(random_state >> 11) + 0.5) * 0x1p-53;
}

/* A baseline of `runs` values for each measure, with a tail of 1 % on average; those below `slower` are a tenth slower. */
static cJSON *make(int runs, int slower)
{
    cJSON *baseline = bench_baseline_create();
    assert_non_null(baseline);
    cJSON_SetNumberValue(cJSON_GetObjectItem(baseline, "runs"), runs);
    for (int i = 0; i < MEASURES; i++) {
        char name[32];
        cJSON *measure = cJSON_CreateObject(), *values = cJSON_CreateArray();
        snprintf(name, sizeof name, "m%d", i);
        cJSON_AddStringToObject(measure, "name", name);
        cJSON_AddStringToObject(measure, "unit", "us");
        for (int run = 0; run < runs; run++)
            cJSON_AddItemToArray(values, cJSON_CreateNumber((1 - 0.01 * log(uniform())) * (i < slower ? 1.1 : 1)));
        cJSON_AddItemToObject(measure, "values", values);
        cJSON_AddItemToArray(cJSON_GetObjectItem(baseline, "measures"), measure);
    }
    return baseline;
}

static int number(const cJSON *drift, const char *name)
{
    return (int)cJSON_GetNumberValue(cJSON_GetObjectItem(drift, name));
}

/* However small a change counts: of 100 comparisons of 40 measures one has a false verdict by chance; more than five are seen
 * by chance in less than one of 1000 cases. */
static void noise_is_the_same(void **state)
{
    (void)state;
    int alarms = 0;
    random_state = 1;
    for (int trial = 0; trial < 100; trial++) {
        cJSON *base = make(10, 0), *now = make(10, 0), *drift = bench_compare(base, now, "base", 0);
        assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(drift, "rows")), MEASURES);
        alarms += number(drift, "slower") + number(drift, "faster") > 0;
        cJSON_Delete(drift);
        cJSON_Delete(base);
        cJSON_Delete(now);
    }
    if (alarms > 5) fail_msg("%d false alarms", alarms);
}

static void changes_are_found(void **state)
{
    (void)state;
    random_state = 2;
    for (int slower = 1; slower <= MEASURES; slower += 13) {
        cJSON *base = make(10, 0), *now = make(12, slower), *drift = bench_compare(base, now, "base", 3);
        assert_int_equal(number(drift, "slower"), slower);
        assert_int_equal(number(drift, "faster"), 0);
        assert_int_equal(number(drift, "base_runs"), 10);
        assert_int_equal(number(drift, "runs"), 12);
        cJSON_Delete(drift);
        drift = bench_compare(now, base, "base", 3);
        assert_int_equal(number(drift, "slower"), 0);
        assert_int_equal(number(drift, "faster"), slower);
        cJSON_Delete(drift);
        drift = bench_compare(base, now, "base", 15); /* certain, but less than what matters */
        assert_int_equal(number(drift, "slower"), 0);
        cJSON_Delete(drift);
        cJSON_Delete(base);
        cJSON_Delete(now);
    }
}

/* A name alone does not make two measures one. */
static void other_units_are_other_measures(void **state)
{
    (void)state;
    cJSON *base = make(3, 0), *now = make(3, 0), *each;
    assert_true(bench_compare_common(base, now));
    cJSON_ArrayForEach(each, cJSON_GetObjectItem(now, "measures"))
        cJSON_SetValuestring(cJSON_GetObjectItem(each, "unit"), "ms");
    assert_false(bench_compare_common(base, now));
    cJSON *drift = bench_compare(base, now, "base", 3);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(drift, "rows")), 0);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(drift, "missing")), MEASURES);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(drift, "new")), MEASURES);
    cJSON_Delete(drift);
    cJSON_Delete(base);
    cJSON_Delete(now);
}

/* "what: base, now; ..." for two environments. */
static void assert_changed(const char *was, const char *is, const char *expected)
{
    char text[1024] = "";
    cJSON *base = make(1, 0), *now = make(1, 0), *each;
    cJSON_AddItemToObject(base, "environment", cJSON_Parse(was));
    cJSON_AddItemToObject(now, "environment", cJSON_Parse(is));
    cJSON *drift = bench_compare(base, now, "base", 3);
    cJSON_ArrayForEach(each, cJSON_GetObjectItem(drift, "changed"))
    {
        const size_t length = strlen(text);
        snprintf(text + length, sizeof text - length, "%s: %s, %s; ", cJSON_GetStringValue(cJSON_GetObjectItem(each, "what")),
                 cJSON_GetStringValue(cJSON_GetObjectItem(each, "base")), cJSON_GetStringValue(cJSON_GetObjectItem(each, "now")));
    }
    assert_string_equal(text, expected);
    cJSON_Delete(drift);
    cJSON_Delete(base);
    cJSON_Delete(now);
}

static void changed_environments(void **state)
{
    (void)state;
    assert_changed("{\"driver\": 13000, \"ecc\": true}", "{\"ecc\": true, \"driver\": 13000}", "");
    assert_changed("{\"driver\": 13000, \"ecc\": true, \"kernel\": \"a\"}",
                   "{\"driver\": 13010, \"ecc\": false, \"kernel\": \"b\"}",
                   "driver: 13000, 13010; ecc: yes, no; kernel: a, b; ");
    assert_changed("{\"governor\": \"x\"}", "{\"power_mode\": \"MAXN\"}", "governor: x, unknown; power_mode: unknown, MAXN; ");
    assert_changed("{\"clock_sm_mhz\": 1000, \"temperature_c\": 40, \"power_w\": 60}",
                   "{\"clock_sm_mhz\": 1050, \"temperature_c\": 50, \"power_w\": 600}", "");
    assert_changed("{\"clock_sm_mhz\": 1000, \"temperature_c\": 40, \"power_limit_w\": 60}",
                   "{\"clock_sm_mhz\": 949, \"temperature_c\": 29.5, \"power_limit_w\": 61}",
                   "clock_sm_mhz: 1000, 949; temperature_c: 40, 29.5; power_limit_w: 60, 61; ");
}

static void assert_device(const char *was, const char *is, int early, const char *expected)
{
    char why[512] = "";
    cJSON *base = cJSON_Parse(was), *now = cJSON_Parse(is);
    assert_int_equal(bench_compare_device(base, now, early, why, sizeof why), *expected ? -1 : 0);
    assert_string_equal(why, expected);
    cJSON_Delete(base);
    cJSON_Delete(now);
}

static void devices(void **state)
{
    (void)state;
    const char *const base = "{\"device\": \"Chip\", \"arch\": 90, \"software\": false, \"sms\": 16}";
    assert_device(base, "{\"sms\": 16, \"software\": false, \"arch\": 90, \"device\": \"Chip\", \"ecc\": true}", 0, "");
    assert_device(base, "{\"device\": \"Chip\", \"arch\": 90, \"software\": false}", 1, "");
    assert_device(base, "{\"device\": \"Chip\", \"arch\": 90, \"software\": false}", 0,
                  "is of another device: sms was \"16\" and is \"unknown\" here");
    assert_device(base, "{\"device\": \"Chip2\"}", 1, "is of another device: device was \"Chip\" and is \"Chip2\" here");
    assert_device("{}", "{\"device\": \"Chip\"}", 0, "is of another device: device was \"unknown\" and is \"Chip\" here");
}

static void least_p(void **state)
{
    (void)state;
    assert_true(fabs(bench_compare_least_p(10, 10, 1) - 2.0 / 184756) < 1e-12);
    assert_true(fabs(bench_compare_least_p(10, 10, 200) - 400.0 / 184756) < 1e-9);
    assert_true(fabs(bench_compare_least_p(2, 10, 1) - 2.0 / 66) < 1e-12);
    assert_true(bench_compare_least_p(1, 1, 3) == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(noise_is_the_same),
        cmocka_unit_test(changes_are_found),
        cmocka_unit_test(other_units_are_other_measures),
        cmocka_unit_test(changed_environments),
        cmocka_unit_test(devices),
        cmocka_unit_test(least_p),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
