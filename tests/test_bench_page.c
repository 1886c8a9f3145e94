/* The parts below the page of a result: what text and numbers become, members of a document that may be anything, axes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scratch.h"
#include "tools/bench_axis.h"
#include "tools/bench_page.h"

static char folder[4096], *written;

/* A page is begun; end() closes it and compares all of it. */
static bench_page begin(void)
{
    bench_page page;
    char why[512];
    assert_int_equal(bench_page_open(&page, scratch_path(folder, "page"), why, sizeof why), 0);
    return page;
}

static void end(bench_page *page, const char *expected)
{
    char why[512];
    size_t bytes;
    assert_int_equal(bench_page_close(page, why, sizeof why), 0);
    free(written);
    written = (char *)scratch_read(scratch_path(folder, "page"), &bytes);
    assert_non_null(written);
    assert_string_equal(written, expected);
}

static void text(void **state)
{
    (void)state;
    static const struct { const char *in, *out;
    } texts[] = {
        {"a<b>&\"c'", "a&lt;b&gt;&amp;&quot;c&#39;"},
        {"", ""},
        {"two\tlines\n", "two\tlines\n"},
        {"\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80", "\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80"}, /* good UTF-8 of 2, 3 and 4 bytes */
        {"\x01\x1F\r", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},                               /* what XML forbids, or changes */
        {"\x80", "\xEF\xBF\xBD"},
        {"\xC3", "\xEF\xBF\xBD"},
        {"\xC3(", "\xEF\xBF\xBD("}, /* no first byte, cut, no second byte */
        {"\xC0\xAF", "\xEF\xBF\xBD\xEF\xBF\xBD"},
        {"\xE0\x80\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"}, /* too long a form */
        {"\xED\xA0\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
        {"\xEF\xBF\xBF", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
        {"\xF4\x90\x80\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
        {"\xFF", "\xEF\xBF\xBD"}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        bench_page page = begin();
        bench_page_text(&page, texts[i].in);
        end(&page, texts[i].out);
    }
    bench_page page = begin();
    bench_page_text(&page, NULL);
    bench_page_text_part(&page, "\xE2\x82\xAC", 2); /* a part that ends within a character */
    end(&page, "\xEF\xBF\xBD\xEF\xBF\xBD");
}

static void numbers(void **state)
{
    (void)state;
    static const struct { double value; int decimals; const char *out;
    } all[] = {{0, 0, "0"},
               {1.005, 1, "1.0"},
               {999, 0, "999"},
               {999.96, 1, "1,000.0"},
               {1234567.891, 2, "1,234,567.89"},
               {100000, 0, "100,000"},
               {-2.5, 1,
                "\xE2\x88\x92"
                "2.5"},
               {-1234, 0,
                "\xE2\x88\x92"
                "1,234"},
               {-0.001, 2, "0.00"},
               {NAN, 2, "\xE2\x80\x93"},
               {INFINITY, 2, "\xE2\x80\x93"},
               {1e300, 2, "1e+300"},
               {1e-9, 2, "1e-09"},
               {0.5, 100, "0.500000000"}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        bench_page page = begin();
        bench_page_number(&page, all[i].value, all[i].decimals);
        end(&page, all[i].out);
    }
    bench_page page = begin();
    bench_page_number_cell(&page, NAN, 1);
    bench_page_number_cell(&page, 2, 1);
    end(&page, "<td class=\"n\"></td><td class=\"n\">2.0</td>");
}

static void dates(void **state)
{
    (void)state;
    bench_page page = begin();
    bench_page_date(&page, "2026-01-31T12:00:00Z");
    bench_page_date(&page, " <yesterday>");
    bench_page_date(&page, "");
    end(&page, "<span class=\"date\">2026-01-31 12:00:00 UTC</span> &lt;yesterday&gt;");
}

static void table(void **state)
{
    (void)state;
    bench_page page = begin();
    bench_page_table(&page, "x", "what|#a & b");
    bench_page_table_end(&page);
    end(&page, "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"x\"><table>\n<thead><tr><th "
               "scope=\"col\">what</th>"
               "<th scope=\"col\" class=\"n\">a &amp; b</th></tr></thead>\n<tbody>\n</tbody></table></div>\n");
}

/* Integers of 64 bits come as text from bench_report. */
static void members(void **state)
{
    (void)state;
    cJSON *object = cJSON_Parse("{\"text\": \"t\", \"number\": 2.5, \"large\": 1e999, \"true\": true, \"array\": [7], \"empty\": "
                                "[],"
                                "\"object\": {\"Text\": 1}}");
    assert_non_null(object);
    cJSON_AddRawToObject(object, "raw", "18446744073709551615");
    cJSON_AddRawToObject(object, "bad", "12x");
    assert_string_equal(json_text(object, "text"), "t");
    assert_string_equal(json_text(object, "number"), "");
    assert_string_equal(json_text(object, "none"), "");
    assert_string_equal(json_text(NULL, "text"), "");
    assert_true(json_number(object, "number") == 2.5 && json_number(object, "raw") == 18446744073709551615.0);
    static const char *const no_numbers[] = {"text", "large", "true", "array", "bad", "none", "object"};
    for (size_t i = 0; i < sizeof no_numbers / sizeof *no_numbers; i++)
        assert_true(isnan(json_number(object, no_numbers[i])));
    assert_true(json_true(object, "true") && !json_true(object, "number") && !json_true(object, "none"));
    assert_true(json_value(json_first(object, "array")) == 7);
    assert_null(json_first(object, "empty"));
    assert_null(json_first(object, "object"));
    assert_null(json_object(object, "array"));
    assert_true(isnan(json_number(json_object(object, "object"), "text"))); /* names are as they are written */
    assert_string_equal(json_text(json_first(object, "array"), "text"), "");
    cJSON_Delete(object);
}

static void axes(void **state)
{
    (void)state;
    /* An axis is at least 4 times and at most a thousand million times as high as low. */
    static const struct { double low, high; size_t count; double first, last;
    } all[] = {{1, 1000, 4, 1, 1000}, {1, 10, 4, 1, 10},          {0.9, 100, 7, 1, 100},
               {3, 3, 5, 1.5, 5},     {1e-3, 1e5, 4, 1e-2, 1e4}, {1, 1e30, 5, 1e22, 1e30}};
    double ticks[BENCH_AXIS_TICKS];
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const bench_axis axis = bench_axis_make(all[i].low, all[i].high, 0, 100);
        const size_t count = bench_axis_ticks(&axis, 8, ticks);
        assert_int_equal(count, all[i].count);
        assert_true(fabs(ticks[0] / all[i].first - 1) < 1e-9 && fabs(ticks[count - 1] / all[i].last - 1) < 1e-9);
    }
    const bench_axis axis = bench_axis_make(1, 100, 50, 250);
    assert_true(fabs(bench_axis_place(&axis, 10) - 150) < 1e-9 && fabs(bench_axis_place(&axis, 1000) - 350) < 1e-9);
    assert_true(bench_axis_holds(&axis, 1) && bench_axis_holds(&axis, 100) && !bench_axis_holds(&axis, 101) &&
                !bench_axis_holds(&axis, NAN));
    static const struct { double tick; const char *label;
    } labels[] = {{0.05, "0.05"}, {1, "1"},    {500, "500"},    {1000, "1k"},   {20000, "20k"},
                  {3e6, "3M"},    {2e9, "2G"}, {1e13, "1e+13"}, {1e-5, "1e-05"}};
    char label[32];
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++)
        assert_string_equal(bench_axis_label(labels[i].tick, label, sizeof label), labels[i].label);
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
    free(written);
    scratch_remove(folder);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(text),  cmocka_unit_test(numbers), cmocka_unit_test(dates),
                                       cmocka_unit_test(table), cmocka_unit_test(members), cmocka_unit_test(axes)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
