/* What jitgemm-bench writes: made-up series, counts and targets in; table, CSV and JSON out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "scratch.h"
#include "tools/bench_report.h"

static char folder[4096], out[65536];
static int saved_stdout;

static const bench_environment here = {.device = "Chip \"X\", 2", .arch = 90, .driver_version = 13010, .compiler = "NVRTC 12.9",
                                       .processors = 16, .allowed = 2};

/* Standard output goes to a file until take_output. */
static void catch_output(void)
{
    fflush(stdout);
    saved_stdout = dup(STDOUT_FILENO);
    assert_non_null(freopen(scratch_path(folder, "out"), "w", stdout));
}

static void take_output(void)
{
    size_t bytes;
    fflush(stdout);
    dup2(saved_stdout, STDOUT_FILENO);
    close(saved_stdout);
    unsigned char *text = scratch_read(scratch_path(folder, "out"), &bytes);
    assert_non_null(text);
    assert_true(bytes < sizeof out);
    memcpy(out, text, bytes + 1);
    free(text);
}

static void assert_has(const char *part)
{
    if (!strstr(out, part)) fail_msg("\"%s\" is not in:\n%s", part, out);
}

static void assert_has_not(const char *part)
{
    if (strstr(out, part)) fail_msg("\"%s\" is in:\n%s", part, out);
}

/* Reports of one of everything; the series is 1 ... 2000 us. Returns the summary that the report gave back. */
static bench_summary write_report(bench_report *r, const bench_environment *e)
{
    double *samples = malloc(2000 * sizeof *samples), pair[] = {2.5, 1.25};
    bench_summary s;
    assert_non_null(samples);
    for (int i = 0; i < 2000; i++) samples[i] = 2000 - i;
    catch_output();
    bench_report_begin(r, e);
    bench_report_part(r, "host time", "us", BENCH_TAIL);
    s = bench_report_series(r, "calls", samples, 2000);
    bench_report_series(r, "none", samples, 0);
    bench_report_part(r, "steps", "ms", BENCH_STEPS);
    bench_report_series(r, "open, all", pair, 2);
    bench_report_count(r, "compiles", UINT64_MAX);
    bench_report_count(r, "swaps", 0);
    bench_report_target(r, "p99.9", 50, "us", 50);
    bench_report_target(r, "max", 500.004, "us", 500);
    bench_report_note(r, "A \"note\", of words.");
    assert_int_equal(bench_report_end(r), 0);
    take_output();
    free(samples);
    return s;
}

static void table(void **state)
{
    (void)state;
    bench_report r = {.format = BENCH_TABLE, .command = BENCH_FIRST_CALL};
    const bench_summary s = write_report(&r, &here);
    assert_true(s.n == 2000 && s.p999 == 1998 && s.max == 2000);
    assert_int_equal(r.missed, 1);
    assert_string_equal(out,
                        "jitgemm " JG_VERSION_STRING ", first-call\n"
                        "Chip \"X\", 2, sm_90, driver for CUDA 13.1, kernels by NVRTC 12.9, processors: 16 (2 allowed)\n"
                        "\n"
                        "host time                                             n"
                        "      p50 us      p99 us    p99.9 us      max us\n"
                        "  calls                                            2000"
                        "     1000.00     1980.00     1998.00     2000.00\n"
                        "\n"
                        "steps                                                 n      p50 ms      max ms\n"
                        "  open, all                                           2       1.250       2.500\n"
                        "\n"
                        "counts\n"
                        "  compiles                                    18446744073709551615\n"
                        "  swaps                                               0\n"
                        "\n"
                        "targets\n"
                        "  p99.9                                           50.00 us  at most 50 us: met\n"
                        "  max                                            500.00 us  at most 500 us: missed\n"
                        "\n"
                        "A \"note\", of words.\n");
}

static void csv(void **state)
{
    (void)state;
    bench_report r = {.format = BENCH_CSV, .command = BENCH_COLD_START};
    write_report(&r, &here);
    assert_int_equal(r.missed, 1);
    assert_string_equal(out,
                        "kind,name,unit,n,min,p25,p50,p75,p99,p99.9,max,value,limit,met\n"
                        "environment,command,,,,,,,,,,cold-start,,\n"
                        "environment,device,,,,,,,,,,\"Chip \"\"X\"\", 2\",,\n"
                        "environment,arch,,,,,,,,,,90,,\n"
                        "environment,driver,,,,,,,,,,13010,,\n"
                        "environment,processors,,,,,,,,,,16,,\n"
                        "environment,allowed,,,,,,,,,,2,,\n"
                        "environment,software,,,,,,,,,,0,,\n"
                        "environment,compiler,,,,,,,,,,NVRTC 12.9,,\n"
                        "series,calls,us,2000,1.000,500.000,1000.000,1500.000,1980.000,1998.000,2000.000,,,\n"
                        "series,\"open, all\",ms,2,1.2500,1.2500,1.2500,2.5000,2.5000,2.5000,2.5000,,,\n"
                        "count,compiles,,,,,,,,,,18446744073709551615,,\n"
                        "count,swaps,,,,,,,,,,0,,\n"
                        "target,p99.9,us,,,,,,,,,50.00,50,met\n"
                        "target,max,us,,,,,,,,,500.00,500,missed\n"
                        "note,,,,,,,,,,,\"A \"\"note\"\", of words.\",,\n");
    const char *line = out; /* every line has as many fields as the heading, but for those with a comma in quotes */
    for (; *line; line = strchr(line, '\n') + 1) {
        int commas = 0, quoted = 0;
        for (const char *at = line; *at != '\n'; at++) {
            quoted ^= *at == '"';
            commas += *at == ',' && !quoted;
        }
        assert_int_equal(commas, 13);
    }
}

static const cJSON *item(const cJSON *root, const char *array, int i)
{
    const cJSON *found = cJSON_GetArrayItem(cJSON_GetObjectItem(root, array), i);
    assert_non_null(found);
    return found;
}

static double number(const cJSON *object, const char *name)
{
    const cJSON *found = cJSON_GetObjectItem(object, name);
    assert_true(cJSON_IsNumber(found));
    return found->valuedouble;
}

static void json(void **state)
{
    (void)state;
    bench_report r = {.format = BENCH_JSON, .command = BENCH_DISPATCH, .interrupted = 1};
    write_report(&r, &here);
    assert_has("18446744073709551615");
    cJSON *root = cJSON_Parse(out);
    assert_non_null(root);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(root, "command")), "dispatch");
    const cJSON *e = cJSON_GetObjectItem(root, "environment");
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(e, "device")), "Chip \"X\", 2");
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(e, "compiler")), "NVRTC 12.9");
    assert_true(number(e, "driver") == 13010 && number(e, "allowed") == 2);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(root, "series")), 2);
    const cJSON *calls = item(root, "series", 0);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(calls, "unit")), "us");
    assert_true(number(calls, "n") == 2000 && number(calls, "min") == 1 && number(calls, "p50") == 1000);
    assert_true(number(calls, "p99.9") == 1998 && number(calls, "max") == 2000);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(item(root, "series", 1), "unit")), "ms");
    assert_true(cJSON_IsTrue(cJSON_GetObjectItem(item(root, "targets", 0), "met")));
    assert_true(cJSON_IsFalse(cJSON_GetObjectItem(item(root, "targets", 1), "met")));
    assert_true(number(item(root, "targets", 1), "value") == 500.004 && number(item(root, "targets", 1), "limit") == 500);
    assert_true(number(root, "missed") == 1);
    assert_true(cJSON_IsTrue(cJSON_GetObjectItem(root, "interrupted")));
    assert_string_equal(cJSON_GetStringValue(item(root, "notes", 0)), "A \"note\", of words.");
    cJSON_Delete(root);
}

/* On the software GPU no time is written, in no format; that there are none is. */
static void software(void **state)
{
    (void)state;
    static const bench_environment simulated = {.device = "Orin (software GPU)", .arch = 87, .driver_version = 13000,
                                                .processors = 2, .allowed = 2, .software = 1};
    for (bench_format format = BENCH_TABLE; format <= BENCH_CSV; format++) {
        bench_report r = {.format = format, .command = BENCH_FIRST_CALL};
        write_report(&r, &simulated);
        assert_int_equal(r.missed, 0);
        if (format != BENCH_CSV) assert_has("so times would mean nothing: counts only.");
        assert_has("calls: samples");
        assert_has("2000");
        assert_has_not("1998");
        assert_has_not("500");
        assert_has_not("at most");
        assert_has_not("missed\"\n");
    }
}

/* Every format says that more was wanted. */
static void interrupted(void **state)
{
    (void)state;
    static const char *const says[] = {[BENCH_TABLE] = "\nInterrupted: the results are of what was finished.\n",
                                       [BENCH_JSON] = "\"interrupted\":\ttrue", [BENCH_CSV] = "\nnote,,,,,,,,,,,Interrupted: "};
    for (bench_format format = BENCH_TABLE; format <= BENCH_CSV; format++) {
        bench_report r = {.format = format, .interrupted = 1};
        write_report(&r, &here);
        assert_has(says[format]);
    }
}

/* Without a beginning (nothing was measured) there is nothing. */
static void nothing_begun(void **state)
{
    (void)state;
    for (bench_format format = BENCH_TABLE; format <= BENCH_CSV; format++) {
        bench_report r = {.format = format, .interrupted = 1};
        catch_output();
        assert_int_equal(bench_report_end(&r), 0);
        take_output();
        assert_string_equal(out, "");
    }
}

static int setup(void **state)
{
    (void)state;
    scratch_make(folder);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    scratch_remove(folder);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table),    cmocka_unit_test(csv),           cmocka_unit_test(json),
        cmocka_unit_test(software), cmocka_unit_test(interrupted),   cmocka_unit_test(nothing_begun),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
