/* What jitgemm-bench writes: made-up series, counts and targets in; table, CSV and a document out. */
#include "output_fixture.h"

#include <errno.h>
#include <math.h>

#include "tools/bench_report.h"
#include "tools/bench_result.h"

static const bench_environment here = {.device = "Chip \"X\", 2", .arch = 90, .driver_version = 13010, .compiler = "NVRTC 12.9",
                                       .processors = 16, .allowed = 2};
static const bench_environment simulated = {.device = "Orin (software GPU)", .arch = 87, .driver_version = 13000,
                                            .processors = 2, .allowed = 2, .software = 1};

/* Reports of one of everything; the series is 1 ... 2000 us. Returns the summary that the report gave back. */
static bench_summary write_all(bench_report *r, const char *command, const bench_environment *e)
{
    double *samples = malloc(2000 * sizeof *samples), pair[] = {2.5, 1.25};
    bench_summary s;
    assert_non_null(samples);
    for (int i = 0; i < 2000; i++) samples[i] = 2000 - i;
    bench_report_command(r, command);
    bench_report_begin(r, e);
    bench_report_fact(r, "host", "a, \"b\"");
    bench_report_fact_number(r, "sm_count", 132);
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
    free(samples);
    return s;
}

/* The same; the output is in `out`, the document is the caller's. */
static cJSON *write_report(bench_report *r, const char *command, const bench_environment *e)
{
    catch_output();
    write_all(r, command, e);
    cJSON *document = bench_report_take(r);
    const int printed = bench_report_print(r, document);
    take_output();
    assert_non_null(document);
    assert_int_equal(printed, 0);
    return document;
}

static const cJSON *item(const cJSON *root, const char *array, int i)
{
    const cJSON *found = cJSON_GetArrayItem(cJSON_GetObjectItem(root, array), i);
    if (!found) fail_msg("%s has no item %d", array, i);
    return found;
}

static int length_of(const cJSON *root, const char *array)
{
    assert_true(cJSON_IsArray(cJSON_GetObjectItem(root, array)));
    return cJSON_GetArraySize(cJSON_GetObjectItem(root, array));
}

static double number(const cJSON *object, const char *name)
{
    const cJSON *found = cJSON_GetObjectItem(object, name);
    if (!cJSON_IsNumber(found)) fail_msg("%s is no number", name);
    return found->valuedouble;
}

static void assert_text(const cJSON *object, const char *name, const char *text)
{
    const char *found = cJSON_GetStringValue(cJSON_GetObjectItem(object, name));
    if (!found || strcmp(found, text) != 0) fail_msg("%s is \"%s\", not \"%s\"", name, found ? found : "(none)", text);
}

/* ---- one command in each format ---- */

static void table(void **state)
{
    (void)state;
    bench_report r = {.format = BENCH_TABLE};
    cJSON_Delete(write_report(&r, "first-call", &here));
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
    bench_report r = {.format = BENCH_CSV};
    cJSON_Delete(write_report(&r, "cold-start", &here));
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
                        "environment,host,,,,,,,,,,\"a, \"\"b\"\"\",,\n"
                        "environment,sm_count,,,,,,,,,,132,,\n"
                        "series,calls,us,2000,1.000,500.000,1000.000,1500.000,1980.000,1998.000,2000.000,,,\n"
                        "series,\"open, all\",ms,2,1.2500,1.2500,1.2500,2.5000,2.5000,2.5000,2.5000,,,\n"
                        "count,compiles,,,,,,,,,,18446744073709551615,,\n"
                        "count,swaps,,,,,,,,,,0,,\n"
                        "target,p99.9,us,,,,,,,,,50.00,50,met\n"
                        "target,max,us,,,,,,,,,500.00,500,missed\n"
                        "note,,,,,,,,,,,\"A \"\"note\"\", of words.\",,\n");
    for (const char *line = out; *line; line = strchr(line, '\n') + 1) assert_int_equal(commas_of(line), 13);
}

static void check_document(const cJSON *root)
{
    assert_text(root, "format", BENCH_RESULT_FORMAT);
    assert_true(number(root, "format_version") == BENCH_RESULT_FORMAT_VERSION);
    assert_text(root, "version", JG_VERSION_STRING);
    assert_int_equal(length_of(root, "commands"), 1);
    assert_string_equal(cJSON_GetStringValue(item(root, "commands", 0)), "dispatch");
    const cJSON *e = cJSON_GetObjectItem(root, "environment");
    assert_text(e, "device", "Chip \"X\", 2");
    assert_text(e, "compiler", "NVRTC 12.9");
    assert_text(e, "host", "a, \"b\"");
    assert_true(number(e, "driver") == 13010 && number(e, "arch") == 90 && number(e, "sm_count") == 132);
    assert_true(number(e, "processors") == 16 && number(e, "allowed") == 2);
    assert_true(cJSON_IsFalse(cJSON_GetObjectItem(e, "software")));
    static const char *const empty[] = {"ceilings", "rows", "summaries", "compiles"};
    for (size_t i = 0; i < sizeof empty / sizeof *empty; i++) assert_int_equal(length_of(root, empty[i]), 0);
    assert_int_equal(length_of(root, "series"), 2);
    const cJSON *calls = item(root, "series", 0);
    assert_text(calls, "command", "dispatch");
    assert_text(calls, "name", "calls");
    assert_text(calls, "unit", "us");
    assert_true(number(calls, "n") == 2000 && number(calls, "min") == 1 && number(calls, "p50") == 1000);
    assert_true(number(calls, "p99.9") == 1998 && number(calls, "max") == 2000);
    assert_text(item(root, "series", 1), "unit", "ms");
    assert_text(item(root, "counts", 0), "command", "dispatch");
    assert_text(item(root, "counts", 1), "name", "swaps");
    assert_true(number(item(root, "counts", 1), "value") == 0);
    assert_true(cJSON_IsTrue(cJSON_GetObjectItem(item(root, "targets", 0), "met")));
    assert_true(cJSON_IsFalse(cJSON_GetObjectItem(item(root, "targets", 1), "met")));
    assert_true(number(item(root, "targets", 1), "value") == 500.004 && number(item(root, "targets", 1), "limit") == 500);
    assert_true(number(root, "missed") == 1);
    assert_true(cJSON_IsTrue(cJSON_GetObjectItem(root, "interrupted")));
    assert_int_equal(length_of(root, "notes"), 1);
    assert_string_equal(cJSON_GetStringValue(item(root, "notes", 0)), "A \"note\", of words.");
}

/* "2026-01-31T12:00:00Z" */
static void check_started(const cJSON *root)
{
    int year, month, day, hour, minute, second, length = 0;
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(root, "started"));
    assert_non_null(text);
    assert_int_equal(sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2dZ%n", &year, &month, &day, &hour, &minute, &second, &length), 6);
    assert_int_equal(length, 20);
    assert_int_equal(strlen(text), 20);
    assert_true(year >= 2020 && month >= 1 && month <= 12 && day >= 1 && day <= 31);
}

static void json(void **state)
{
    (void)state;
    bench_report r = {.format = BENCH_JSON, .interrupted = 1};
    cJSON_Delete(write_report(&r, "dispatch", &here));
    assert_has("18446744073709551615");
    cJSON *root = cJSON_Parse(out);
    assert_non_null(root);
    check_document(root);
    check_started(root);
    cJSON_Delete(root);
}

/* A page with plots wants the document beside the table: it is the same in every format, and nothing is left in the report. */
static void a_document_in_every_format(void **state)
{
    (void)state;
    for (bench_format format = BENCH_TABLE; format <= BENCH_CSV; format++) {
        bench_report r = {.format = format, .interrupted = 1};
        cJSON *document = write_report(&r, "dispatch", &here);
        check_document(document);
        cJSON_Delete(document);
        assert_null(r.facts);
        assert_null(r.series);
        assert_null(r.notes);
        if (format != BENCH_JSON) assert_has_not("\"format\"");
    }
}

/* ---- histograms ---- */

/* The bins of a series of samples: their numbers sum to n, no sample lies outside, and the edges are whole steps apart. */
static void check_histogram(const cJSON *pairs, const double *sorted, size_t n)
{
    size_t at = 0;
    double before = 0;
    assert_true(cJSON_GetArraySize(pairs) > 0);
    for (int i = 0; i < cJSON_GetArraySize(pairs); i++) {
        const cJSON *pair = cJSON_GetArrayItem(pairs, i);
        assert_int_equal(cJSON_GetArraySize(pair), 2);
        const double low = cJSON_GetArrayItem(pair, 0)->valuedouble, count = cJSON_GetArrayItem(pair, 1)->valuedouble;
        assert_true(count >= 1); /* empty ones are left out */
        if (i > 0) {
            const double steps = log(low / before) / log(BENCH_HISTOGRAM_STEP);
            assert_true(steps > 0.5);
            assert_true(fabs(steps - round(steps)) < 1e-6);
        }
        for (size_t s = 0; s < (size_t)count; s++, at++) {
            assert_true(at < n);
            assert_true(sorted[at] >= low * (1 - 1e-6) && sorted[at] < low * BENCH_HISTOGRAM_STEP * (1 + 1e-6));
        }
        before = low;
    }
    assert_int_equal(at, n);
}

/* A report of one series; its document. Sorts the samples. */
static cJSON *document_of(double *samples, size_t n)
{
    bench_report r = {.format = BENCH_JSON};
    bench_report_command(&r, "x");
    bench_report_begin(&r, &here);
    bench_report_part(&r, "title", "us", BENCH_TAIL);
    bench_report_series(&r, "name", samples, n);
    cJSON *document = bench_report_take(&r);
    assert_non_null(document);
    return document;
}

static void histogram(void **state)
{
    (void)state;
    double samples[1000];
    uint64_t random = 1;
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < 1000; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            const double x = (double)(random >> 40) * 0x1p-24;
            /* Even; of many sizes; all the same; on edges, where a sample must be neither lost nor counted twice. */
            samples[i] = round == 0 ? 1 + x : round == 1 ? pow(10, 12 * x - 6) : round == 2 ? 3.7
                       : pow(BENCH_HISTOGRAM_STEP, floor(20 * x));
        }
        cJSON *document = document_of(samples, 1000);
        check_histogram(cJSON_GetObjectItem(item(document, "series", 0), "histogram"), samples, 1000);
        if (round == 2) assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(item(document, "series", 0), "histogram")), 1);
        cJSON_Delete(document);
    }
}

/* No histogram of a few, nor of what has no logarithm. */
static void no_histogram(void **state)
{
    (void)state;
    double samples[200];
    for (int i = 0; i < 200; i++) samples[i] = i;
    cJSON *zero = document_of(samples, 200), *few = document_of(samples + 1, 99), *enough = document_of(samples + 1, 100);
    assert_null(cJSON_GetObjectItem(item(zero, "series", 0), "histogram"));
    assert_null(cJSON_GetObjectItem(item(few, "series", 0), "histogram"));
    assert_non_null(cJSON_GetObjectItem(item(enough, "series", 0), "histogram"));
    cJSON_Delete(zero);
    cJSON_Delete(few);
    cJSON_Delete(enough);
}

/* ---- the software GPU ---- */

/* No time is written, in no format; that there are none is. */
static void software(void **state)
{
    (void)state;
    for (bench_format format = BENCH_TABLE; format <= BENCH_CSV; format++) {
        bench_report r = {.format = format};
        cJSON *document = write_report(&r, "first-call", &simulated);
        assert_int_equal(r.missed, 0);
        assert_int_equal(length_of(document, "series"), 0);
        assert_int_equal(length_of(document, "targets"), 0);
        assert_text(item(document, "counts", 0), "name", "calls: samples");
        assert_true(number(item(document, "counts", 0), "value") == 2000);
        assert_true(cJSON_IsTrue(cJSON_GetObjectItem(cJSON_GetObjectItem(document, "environment"), "software")));
        cJSON_Delete(document);
        if (format != BENCH_CSV) assert_has("so times would mean nothing: counts only.");
        assert_has("calls: samples");
        assert_has("2000");
        assert_has_not("1998");
        assert_has_not("500");
        assert_has_not("at most");
        assert_has_not("missed\"\n");
    }
}

/* Times of the host alone hold there too. */
static void host_times_on_the_software_gpu(void **state)
{
    (void)state;
    for (bench_format format = BENCH_TABLE; format <= BENCH_CSV; format++) {
        bench_report r = {.format = format, .host_times = 1};
        cJSON *document = write_report(&r, "compile", &simulated);
        assert_int_equal(r.missed, 1);
        assert_int_equal(length_of(document, "series"), 2);
        assert_int_equal(length_of(document, "targets"), 2);
        cJSON_Delete(document);
        assert_has("1998");
        assert_has_not("calls: samples");
    }
}

/* ---- integers ---- */

/* As exact as they were given, also those that a double has no place for. */
static void integers(void **state)
{
    (void)state;
    static const char *const texts[] = {"0", "2147483648", "999999999999999", "1000000000000000", "9007199254740993"};
    bench_report r = {.format = BENCH_JSON};
    catch_output();
    bench_report_command(&r, "x");
    bench_report_begin(&r, &here);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) bench_report_count(&r, "c", strtoull(texts[i], NULL, 10));
    cJSON *document = bench_report_take(&r);
    assert_int_equal(bench_report_print(&r, document), 0);
    take_output();
    cJSON_Delete(document);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char line[64];
        snprintf(line, sizeof line, "\"value\":\t%s\n", texts[i]);
        assert_has(line);
    }
}

/* ---- several commands, none, failures ---- */

static void two_commands(bench_format format, cJSON **document)
{
    bench_report r = {.format = format};
    bench_environment other = here;
    other.arch = 75;
    catch_output();
    bench_report_command(&r, "first-call");
    bench_report_begin(&r, &here);
    bench_report_count(&r, "compiles", 1);
    bench_report_command(&r, "layers common16");
    bench_report_begin(&r, &other); /* ignored: it is the same run */
    bench_report_count(&r, "compiles", 2);
    *document = bench_report_take(&r);
    assert_int_equal(bench_report_print(&r, *document), 0);
    take_output();
}

static void several_commands(void **state)
{
    (void)state;
    cJSON *document;
    two_commands(BENCH_JSON, &document);
    assert_int_equal(length_of(document, "commands"), 2);
    assert_string_equal(cJSON_GetStringValue(item(document, "commands", 1)), "layers common16");
    assert_text(item(document, "counts", 0), "command", "first-call");
    assert_text(item(document, "counts", 1), "command", "layers common16");
    assert_true(number(cJSON_GetObjectItem(document, "environment"), "arch") == 90);
    cJSON_Delete(document);

    two_commands(BENCH_TABLE, &document);
    cJSON_Delete(document);
    assert_int_equal(count_of("sm_90"), 1);
    assert_has_not("sm_75");
    assert_has("\n==== layers common16\n\ncounts\n"); /* a heading of its own under each command */

    two_commands(BENCH_CSV, &document);
    cJSON_Delete(document);
    assert_int_equal(count_of("kind,name,unit"), 1);
    assert_has("\nenvironment,command,,,,,,,,,,first-call,,\n");
    assert_has("\ncount,compiles,,,,,,,,,,1,,\nenvironment,command,,,,,,,,,,layers common16,,\ncount,compiles,,,,,,,,,,2,,\n");
}

/* A fact that is given again replaces the one before. */
static void facts_are_replaced(void **state)
{
    (void)state;
    bench_report r = {.format = BENCH_JSON};
    bench_report_command(&r, "x");
    bench_report_begin(&r, &here);
    bench_report_fact(&r, "clock", "unknown");
    bench_report_fact_number(&r, "clock", 1980);
    bench_report_fact_number(&r, "device", 1);
    bench_report_fact(&r, "device", "other");
    cJSON *document = bench_report_take(&r);
    const cJSON *e = cJSON_GetObjectItem(document, "environment");
    assert_true(number(e, "clock") == 1980);
    assert_text(e, "device", "other");
    int devices = 0;
    for (const cJSON *fact = e->child; fact; fact = fact->next) devices += strcmp(fact->string, "device") == 0;
    assert_int_equal(devices, 1);
    cJSON_Delete(document);
}

/* Without a beginning (nothing was measured) there is no document, and what was said before is given back. */
static void nothing_begun(void **state)
{
    (void)state;
    for (bench_format format = BENCH_TABLE; format <= BENCH_CSV; format++) {
        bench_report r = {.format = format, .interrupted = 1};
        catch_output();
        bench_report_command(&r, "first-call");
        assert_null(bench_report_take(&r));
        take_output();
        assert_null(r.commands);
        assert_string_equal(out, "");
    }
}

/* An array takes objects, and tells of those that could not be made. */
static void added_objects(void **state)
{
    (void)state;
    bench_report r = {.format = BENCH_JSON};
    bench_report_command(&r, "x");
    bench_report_begin(&r, &here);
    bench_report_add(&r, &r.rows, cJSON_CreateObject());
    bench_report_add(&r, &r.rows, cJSON_CreateObject());
    assert_int_equal(cJSON_GetArraySize(r.rows), 2);
    assert_int_equal(r.out_of_memory, 0);
    bench_report_add(&r, &r.rows, NULL);
    assert_int_equal(r.out_of_memory, 1);
    assert_null(bench_report_take(&r)); /* an incomplete document is none */
    assert_null(r.rows);
}

/* A full disk is noticed with the first line, whatever is written after. */
static void write_errors(void **state)
{
    (void)state;
    if (access("/dev/full", W_OK) != 0) {
        print_message("SKIP no /dev/full\n");
        skip();
    }
    for (bench_format format = BENCH_TABLE; format <= BENCH_CSV; format += BENCH_CSV - BENCH_TABLE) {
        bench_report r = {.format = format};
        fflush(stdout);
        saved_stdout = dup(STDOUT_FILENO);
        assert_non_null(freopen("/dev/full", "w", stdout));
        write_all(&r, "x", &here);
        cJSON *document = bench_report_take(&r);
        give_stdout_back();
        clearerr(stdout);
        assert_int_equal(r.write_error, ENOSPC);
        assert_non_null(document); /* the document does not depend on it */
        cJSON_Delete(document);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table),
        cmocka_unit_test(csv),
        cmocka_unit_test(json),
        cmocka_unit_test(a_document_in_every_format),
        cmocka_unit_test(histogram),
        cmocka_unit_test(no_histogram),
        cmocka_unit_test(software),
        cmocka_unit_test(host_times_on_the_software_gpu),
        cmocka_unit_test(integers),
        cmocka_unit_test(several_commands),
        cmocka_unit_test(facts_are_replaced),
        cmocka_unit_test(nothing_begun),
        cmocka_unit_test(added_objects),
        cmocka_unit_test(write_errors),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
