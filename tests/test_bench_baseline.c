/* Baselines of jitgemm-bench: made-up results in, a file, and what is refused as one, out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "scratch_fixture.h"
#include "tools/bench_baseline.h"

static char why[1024];

#define HEADING                                                                                              \
    "{\"format\": \"jitgemm-bench result\", \"format_version\": 1, \"version\": \"0.1.0\", \"commands\": [\"layers\"], "

static const char of_a_gpu[] = HEADING
    "\"started\": \"2026-01-31T12:00:00Z\", \"environment\": {\"device\": \"Chip\", \"arch\": 90, \"software\": false},"
    "\"rows\": ["
    "{\"suite\": \"common16\", \"list\": \"common16\", \"problem\": \"64:f16\", \"data\": \"resident\","
    " \"counters\": {\"instructions\": 5},"
    " \"contestants\": [{\"name\": \"cublas\", \"us\": {\"p50\": 9}},"
    " {\"name\": \"jitgemm\", \"us\": {\"n\": 2, \"p50\": 2.5}}]},"
    "{\"suite\": \"layers\", \"list\": \"resnet50\", \"problem\": \"1x2x3:f32\", \"data\": \"rotated\","
    " \"contestants\": [{\"name\": \"jitgemm\", \"us\": {\"p50\": 7}}]},"
    "{\"suite\": \"common16\", \"problem\": \"65:f16\", \"data\": \"resident\","
    " \"contestants\": [{\"name\": \"jitgemm\", \"refused\": \"why\"}]},"
    "{\"suite\": \"common16\", \"problem\": \"65:f16\", \"data\": \"resident\","
    " \"contestants\": [{\"name\": \"jitgemm\", \"us\": {\"p50\": 3}}]},"
    "{\"suite\": \"common16\", \"problem\": \"66:f16\", \"data\": \"resident\"}],"
    "\"series\": [{\"command\": \"first-call\", \"name\": \"jitgemm\", \"unit\": \"us\", \"p50\": 1.25},"
    "{\"name\": \"jg_open\", \"unit\": \"ms\", \"p50\": 20}, {\"name\": \"difference\", \"unit\": \"us\", \"p50\": -0.5}],"
    "\"compiles\": [{\"problem\": \"64:f16\", \"kernel\": \"jg_sm90_x\", \"ms\": 121.5}]}";

static const char of_the_software_gpu[] = HEADING
    "\"environment\": {\"device\": \"Chip\", \"arch\": 90, \"software\": true},"
    "\"rows\": [{\"suite\": \"common16\", \"problem\": \"64:f16\", \"data\": \"resident\","
    " \"counters\": {\"instructions\": 12345},"
    " \"contestants\": [{\"name\": \"jitgemm\", \"us\": {\"p50\": 2.5}}]}],"
    "\"series\": [{\"name\": \"jg_open\", \"unit\": \"ms\", \"p50\": 20}],"
    "\"compiles\": [{\"problem\": \"64:f16\", \"kernel\": \"jg_sm90_x\", \"ms\": 121.5}]}";

/* A baseline of `runs` times the text. */
static cJSON *baseline_of(const char *text, int runs)
{
    cJSON *baseline = bench_baseline_create();
    assert_non_null(baseline);
    for (int i = 0; i < runs; i++)
        if (bench_baseline_add(baseline, text, why, sizeof why) != 0) fail_msg("%s", why);
    return baseline;
}

static void assert_measure(const cJSON *baseline, int i, const char *name, const char *unit, double value)
{
    const cJSON *measure = cJSON_GetArrayItem(cJSON_GetObjectItem(baseline, "measures"), i), *each;
    assert_non_null(measure);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(measure, "name")), name);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(measure, "unit")), unit);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(measure, "values")), bench_baseline_runs(baseline));
    cJSON_ArrayForEach(each, cJSON_GetObjectItem(measure, "values")) assert_true(each->valuedouble == value);
}

static void assert_why(const char *part)
{
    if (!strstr(why, part)) fail_msg("\"%s\" is not in: %s", part, why);
}

static int files_in_folder(void)
{
    int count = 0;
    DIR *list = opendir(folder);
    assert_non_null(list);
    for (struct dirent *entry; (entry = readdir(list));) count += entry->d_name[0] != '.';
    closedir(list);
    return count;
}

/* ---- collecting ---- */

static void collects(void **state)
{
    (void)state;
    cJSON *b = baseline_of(of_a_gpu, 3);
    assert_int_equal(bench_baseline_runs(b), 3);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(b, "measures")), 6);
    assert_measure(b, 0, "common16 64:f16 resident", "us", 2.5);
    assert_measure(b, 1, "layers/resnet50 1x2x3:f32 rotated", "us", 7);
    assert_measure(b, 2, "common16 65:f16 resident #2", "us", 3); /* the first one was refused */
    assert_measure(b, 3, "first-call: jitgemm", "us", 1.25);
    assert_measure(b, 4, "jg_open", "ms", 20);
    assert_measure(b, 5, "compile jg_sm90_x", "ms", 121.5);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(b, "format")), "jitgemm-bench baseline");
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(b, "started")), "2026-01-31T12:00:00Z");
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(b, "version")), "0.1.0");
    assert_string_equal(cJSON_GetStringValue(cJSON_GetArrayItem(cJSON_GetObjectItem(b, "commands"), 0)), "layers");
    assert_int_equal(cJSON_GetNumberValue(cJSON_GetObjectItem(cJSON_GetObjectItem(b, "environment"), "arch")), 90);
    cJSON_Delete(b);
}

/* There no time means anything. */
static void collects_from_the_software_gpu(void **state)
{
    (void)state;
    cJSON *b = baseline_of(of_the_software_gpu, 1);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(b, "measures")), 1);
    assert_measure(b, 0, "common16 64:f16 resident", "instructions", 12345);
    cJSON_Delete(b);
}

static void refuses_what_is_no_result(void **state)
{
    (void)state;
    static const struct { const char *text, *why; } rows[] = {
        {"", "is empty"},
        {"\n", "is empty"},
        {"Segmentation fault\n", "is not JSON"},
        {HEADING "\"environment\": {\"device\": \"Ch", "cut off"},
        {HEADING "\"environment\": {}", "cut off"},
        {HEADING "\"environment\": {}}\n{}", "is not JSON: an error at byte "},
        {HEADING "\"environment\": 1}", "does not say where it was measured"},
        {"[1]", "is JSON, but not a result of jitgemm-bench"},
        {"{}", "is JSON, but not a result of jitgemm-bench"},
        {"{\"format\": \"jitgemm-bench baseline\"}", "is not a result: its format is \"jitgemm-bench baseline\""},
        {"{\"format\": \"jitgemm-bench result\"}", "no format_version"},
        {"{\"format\": \"jitgemm-bench result\", \"format_version\": 2}",
         "has format_version 2; this jitgemm-bench understands up to 1"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cJSON *b = bench_baseline_create();
        assert_int_equal(bench_baseline_add(b, rows[i].text, why, sizeof why), -1);
        assert_why(rows[i].why);
        assert_int_equal(bench_baseline_runs(b), 0);
        cJSON_Delete(b);
    }
}

/* ---- files ---- */

static void comes_back(void **state)
{
    (void)state;
    const char *path = scratch_path(folder, "base.json");
    cJSON *b = baseline_of(of_a_gpu, 10);
    const mode_t mask = umask(027);
    assert_int_equal(bench_baseline_check_path(path, why, sizeof why), 0);
    assert_false(scratch_exists(path));
    if (bench_baseline_write(path, b, why, sizeof why) != 0) fail_msg("%s", why);
    umask(mask);
    assert_int_equal(scratch_mode(path), 0640);
    assert_int_equal(files_in_folder(), 1);
    cJSON *back = bench_baseline_read(path, why, sizeof why);
    if (!back) fail_msg("%s", why);
    assert_true(cJSON_Compare(b, back, 1));
    cJSON_Delete(back);
    /* Through a symbolic link the file behind it is replaced. */
    const char *link = scratch_path(folder, "link.json");
    assert_int_equal(symlink(path, link), 0);
    assert_int_equal(bench_baseline_write(link, b, why, sizeof why), 0);
    struct stat info;
    assert_true(lstat(link, &info) == 0 && S_ISLNK(info.st_mode));
    unlink(link);
    unlink(path);
    cJSON_Delete(b);
}

static void assert_unreadable(const char *path, const char *part)
{
    cJSON *found = bench_baseline_read(path, why, sizeof why);
    cJSON_Delete(found);
    assert_null(found);
    assert_why(path);
    assert_why(part);
}

#define BASELINE(version, rest)                                                        \
    "{\"format\": \"jitgemm-bench baseline\", \"format_version\": " version ", "          \
    "\"environment\": {}, \"runs\": 1" rest "}"
#define VALUES(values) BASELINE("1", ", \"measures\": [{\"name\": \"x\", \"unit\": \"us\", \"values\": " values "}]")

static void refuses_what_is_no_baseline(void **state)
{
    (void)state;
    static const struct { const char *text, *why; } rows[] = {
        {"", "is empty"},
        {"kind,name,unit\n", "is not JSON"},
        {"{\"name\": \"cbench\"}", "is JSON, but not a baseline of jitgemm-bench"},
        {"{\"format\": \"other\"}", "is not a baseline: its format is \"other\""},
        {of_a_gpu, "is the result of one run, not a baseline; --save makes one"},
        {BASELINE("2", ""), "has format_version 2"},
        {BASELINE("\"1\"", ""), "no format_version"},
        {BASELINE("1", ""), "holds no measures"},
        {BASELINE("1", ", \"measures\": []"), "holds no measures"},
        {BASELINE("1", ", \"measures\": [{}]"), "without name or unit"},
        {VALUES("[]"), "holds no values of \"x\""},
        {VALUES("3"), "holds no values of \"x\""},
        {VALUES("[1, null]"), "not a number above 0"},
        {VALUES("[1, \"2\"]"), "not a number above 0"},
        {VALUES("[1, -2]"), "not a number above 0"},
        {VALUES("[0]"), "not a number above 0"},
        {VALUES("[1e999]"), "not a number above 0"},
    };
    const char *path = scratch_path(folder, "bad.json");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        scratch_write(path, rows[i].text, strlen(rows[i].text));
        assert_unreadable(path, rows[i].why);
    }
    unlink(path);
    assert_unreadable(path, "No such file or directory");
    assert_unreadable(folder, "is not a regular file");
    cJSON *good = NULL;
    scratch_write(path, VALUES("[1]"), strlen(VALUES("[1]")));
    assert_non_null(good = bench_baseline_read(path, why, sizeof why));
    cJSON_Delete(good);
    unlink(path);
}

/* Wherever a file ends too early. */
static void refuses_what_is_cut_off(void **state)
{
    (void)state;
    size_t bytes;
    const char *path = scratch_path(folder, "cut.json");
    cJSON *b = baseline_of(of_a_gpu, 2);
    assert_int_equal(bench_baseline_write(path, b, why, sizeof why), 0);
    cJSON_Delete(b);
    unsigned char *text = scratch_read(path, &bytes);
    assert_non_null(text);
    for (size_t length = 1; length < bytes; length += 7) {
        scratch_write(path, text, length);
        assert_unreadable(path, "cut off");
    }
    free(text);
    unlink(path);
}

static const char *old_path;

/* In a process of its own: files may not grow over 100 bytes. */
static int write_too_much(void *user)
{
    const struct rlimit limit = {100, 100};
    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 10;
    if (bench_baseline_write(old_path, user, why, sizeof why) != -1) return 11;
    return strstr(why, old_path) && strstr(why, "File too large") ? 0 : 12;
}

static int write_where_it_must_not(void *user)
{
    if (bench_baseline_check_path(old_path, why, sizeof why) != -1) return 10;
    if (bench_baseline_write(old_path, user, why, sizeof why) != -1) return 11;
    return strstr(why, old_path) && strstr(why, "Permission denied") ? 0 : 12;
}

static void keeps_the_old_file(void **state)
{
    (void)state;
    size_t bytes;
    const unsigned other_user = getuid() == 0 ? 65534 : 0; /* root may write everywhere */
    cJSON *b = baseline_of(of_a_gpu, 10);
    old_path = scratch_path(folder, "old.json");
    scratch_write(old_path, "old", 3);
    assert_int_equal(scratch_child(write_too_much, b, 0), 0);
    assert_int_equal(chmod(folder, 0555), 0);
    assert_int_equal(scratch_child(write_where_it_must_not, b, other_user), 0);
    assert_int_equal(chmod(folder, 0700), 0);
    unsigned char *text = scratch_read(old_path, &bytes);
    assert_non_null(text);
    assert_string_equal((char *)text, "old");
    free(text);
    assert_int_equal(files_in_folder(), 1);
    unlink(old_path);
    assert_int_equal(bench_baseline_write(folder, b, why, sizeof why), -1);
    assert_why("is not a regular file");
    assert_int_equal(bench_baseline_check_path("/dev/full", why, sizeof why), -1);
    assert_why("/dev/full is not a regular file");
    assert_int_equal(bench_baseline_check_path(scratch_path(folder, "no/such.json"), why, sizeof why), -1);
    assert_why("No such file or directory");
    cJSON_Delete(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(collects),
        cmocka_unit_test(collects_from_the_software_gpu),
        cmocka_unit_test(refuses_what_is_no_result),
        cmocka_unit_test(comes_back),
        cmocka_unit_test(refuses_what_is_no_baseline),
        cmocka_unit_test(refuses_what_is_cut_off),
        cmocka_unit_test(keeps_the_old_file),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
