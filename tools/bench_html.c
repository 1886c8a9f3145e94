/* The page of a result: heading, environment, what came out, and the sections that the document has data for, in the order of the
 * table at the end. See bench_html.h. Nothing in the document is sure to be there or to be of the right type.
 *
 * The page is good XML as well as HTML, so that its tests need no browser to see that it is whole. */
#include "bench_html.h"

#include "bench_bars.h"
#include "bench_group.h"
#include "bench_page.h"
#include "bench_plot.h"
#include "bench_style.h"
#include "bench_tables.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

/* ---- the environment ---- */

/* Names of members for readers, and the unit of a number. */
static const struct fact {
    const char *member, *name, *unit;
} facts[] = {
    {"driver_release", "Driver", ""},        {"driver", "Driver for CUDA", ""},
    {"compiler", "Kernels by", ""},          {"cublas", "cuBLAS", ""},
    {"kernel", "Kernel of the system", ""},  {"processor", "Processor", ""},
    {"processors", "Processor cores", ""},   {"allowed", "Cores allowed", ""},
    {"governor", "Governor", ""},            {"power_mode", "Power mode", ""},
    {"power_limit_w", "Power limit", "W"},   {"clock_sm_max_mhz", "Highest SM clock", "MHz"},
    {"ecc", "ECC", ""},                      {"clock_memory_max_mhz", "Highest memory clock", "MHz"},
    {"mig", "MIG", ""},                      {"cublaslt", "cuBLASLt", ""},
    {"sm_count", "Multiprocessors", ""},     {"sms", "Multiprocessors used", ""},
    {"as_arch", "Planned as for", ""},       {"clock_sm_mhz", "SM clock before", "MHz"},
    {"clock_sm_end_mhz", "SM clock after", "MHz"},       {"clock_memory_mhz", "Memory clock before", "MHz"},
    {"clock_memory_end_mhz", "Memory clock after", "MHz"}, {"temperature_c", "Temperature before", "\xC2\xB0\x43"},
    {"temperature_end_c", "Temperature after", "\xC2\xB0\x43"}, {"power_w", "Power before", "W"},
    {"power_end_w", "Power after", "W"},     {"clocks_settled_s", "Clocks settled after", "s"},
    {"plans", "Plans", ""},                  {"recorded_plans", "Recorded plans", ""},
};

/* Ends of members' names that say the unit of their number. */
static const struct ending {
    const char *end, *unit;
} endings[] = {{"_mhz", "MHz"}, {"_w", "W"},         {"_c", "\xC2\xB0\x43"}, {"_mib", "MiB"}, {"_gib", "GiB"}, {"_kib", "KiB"},
               {"_us", "us"},   {"_bytes", "bytes"}, {"_percent", "%"},      {"_ms", "ms"},   {"_s", "s"}};

static const char *unit_of(const char *member, size_t *name_bytes)
{
    *name_bytes = strlen(member);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        const size_t bytes = strlen(endings[i].end);
        if (*name_bytes > bytes && strcmp(member + *name_bytes - bytes, endings[i].end) == 0) {
            *name_bytes -= bytes;
            return endings[i].unit;
        }
    }
    return "";
}

/* A name that is not in the table: "temperature_c" is "Temperature", "clock_sm_mhz" is "Clock SM". */
static void put_member_name(bench_page *page, const char *member, size_t bytes)
{
    static const char *const capitals[][2] = {{"sm", "SM"},         {"gpu", "GPU"},   {"l2", "L2"},   {"cuda", "CUDA"},
                                              {"cublas", "cuBLAS"}, {"pci", "PCI"}, {"cpu", "CPU"}, {"nvrtc", "NVRTC"}};
    for (size_t at = 0; at < bytes;) {
        size_t length = strcspn(member + at, "_");
        if (length > bytes - at) length = bytes - at;
        const char *instead = NULL;
        for (size_t i = 0; i < sizeof capitals / sizeof *capitals; i++)
            if (strlen(capitals[i][0]) == length && strncmp(member + at, capitals[i][0], length) == 0) instead = capitals[i][1];
        if (at > 0) bench_page_markup(page, " ");
        if (instead) bench_page_markup(page, "%s", instead);
        else if (at == 0 && islower((unsigned char)member[0])) {
            bench_page_markup(page, "%c", toupper((unsigned char)member[0]));
            bench_page_text_part(page, member + 1, length - 1);
        } else bench_page_text_part(page, member + at, length);
        at += length + 1;
    }
}

/* 13010 is CUDA 13.1, 130100 is cuBLAS 13.1.0; other numbers are as they are, with as many digits as a reader wants. */
static void put_fact_value(bench_page *page, const cJSON *member, const char *unit)
{
    const double number = json_value(member);
    if (strcmp(member->string, "driver") == 0 && number >= 1000 && number < 1e6)
        bench_page_markup(page, "%d.%d", (int)number / 1000, (int)number % 1000 / 10);
    else if (strcmp(member->string, "as_arch") == 0 && isfinite(number)) bench_page_markup(page, "sm_%d", (int)number);
    else if (strncmp(member->string, "cublas", 6) == 0 && number >= 10000 && number < 1e7)
        bench_page_markup(page, "%d.%d.%d", (int)number / 10000, (int)number % 10000 / 100, (int)number % 100);
    else if (isfinite(number) && number != floor(number)) bench_page_markup(page, "%.1f", number);
    else if (isfinite(number)) bench_page_markup(page, "%.10g", number);
    else if (cJSON_IsBool(member)) bench_page_markup(page, cJSON_IsTrue(member) ? "yes" : "no");
    else bench_page_text(page, cJSON_GetStringValue(member));
    if (*unit) bench_page_markup(page, " %s", unit);
}

static void put_environment(bench_page *page, const cJSON *environment)
{
    static const char *const in_heading[] = {"device", "arch", "software"};
    if (!environment || !environment->child) return;
    bench_page_markup(page, "<dl class=\"facts\">\n");
    for (const cJSON *member = environment->child; member; member = member->next) {
        const char *text = cJSON_GetStringValue(member);
        int skip = !member->string || !(isfinite(json_value(member)) || cJSON_IsBool(member) || (text && *text));
        for (size_t i = 0; i < sizeof in_heading / sizeof *in_heading && !skip; i++)
            skip = strcmp(member->string, in_heading[i]) == 0;
        if (skip) continue;
        const struct fact *fact = facts;
        while (fact < facts + sizeof facts / sizeof *facts && strcmp(fact->member, member->string) != 0) fact++;
        const int known = fact < facts + sizeof facts / sizeof *facts;
        size_t name_bytes;
        const char *unit = unit_of(member->string, &name_bytes);
        bench_page_markup(page, "<div><dt>");
        if (known) bench_page_markup(page, "%s", fact->name);
        else put_member_name(page, member->string, name_bytes);
        bench_page_markup(page, "</dt><dd>");
        put_fact_value(page, member, !isfinite(json_value(member)) ? "" : known ? fact->unit : unit);
        bench_page_markup(page, "</dd></div>\n");
    }
    bench_page_markup(page, "</dl>\n");
}

/* ---- the heading ---- */

static const char *device_of(const cJSON *result)
{
    const char *device = json_text(json_object(result, "environment"), "device");
    return *device ? device : "unknown device";
}

/* "first-call, common16" */
static void put_commands(bench_page *page, const cJSON *result)
{
    size_t said = 0;
    for (const cJSON *command = json_first(result, "commands"); command; command = command->next) {
        const char *name = cJSON_GetStringValue(command);
        if (!name || !*name) continue;
        if (said++) bench_page_markup(page, ", ");
        bench_page_text(page, name);
    }
    if (!said) bench_page_markup(page, "benchmark");
}

static size_t wrong_rows(const cJSON *result)
{
    size_t wrong = 0;
    for (const cJSON *row = json_first(result, "rows"); row; row = row->next) wrong += bench_row_error(row) > 1;
    return wrong;
}

static void put_flag(bench_page *page, const char *class, double count, const char *one, const char *many)
{
    bench_page_markup(page, "<li class=\"%s\">", class);
    bench_page_number(page, count, 0);
    bench_page_markup(page, " %s</li>\n", count == 1 ? one : many);
}

/* What a reader must know before any number, and the verdicts. */
static void put_flags(bench_page *page, const cJSON *result)
{
    const cJSON *drift = json_object(result, "drift");
    const double missed = json_number(result, "missed"), slower = json_number(drift, "slower");
    const double faster = json_number(drift, "faster");
    const size_t wrong = wrong_rows(result);
    bench_page_markup(page, "<ul class=\"flags\">\n");
    if (json_true(json_object(result, "environment"), "software"))
        bench_page_markup(page, "<li>Software GPU: counters instead of times</li>\n");
    if (json_true(result, "interrupted"))
        bench_page_markup(page, "<li class=\"bad\">Interrupted: the results are of what was finished</li>\n");
    if (wrong) put_flag(page, "bad", (double)wrong, "wrong result", "wrong results");
    if (json_first(result, "targets") && isfinite(missed)) {
        if (missed > 0) put_flag(page, "bad", missed, "target missed", "targets missed");
        else bench_page_markup(page, "<li class=\"good\">All targets met</li>\n");
    }
    if (slower > 0) put_flag(page, "bad", slower, "measure slower than the baseline", "measures slower than the baseline");
    if (faster > 0) put_flag(page, "good", faster, "measure faster than the baseline", "measures faster than the baseline");
    if (drift && !(slower > 0) && !(faster > 0)) bench_page_markup(page, "<li class=\"good\">As fast as the baseline</li>\n");
    bench_page_markup(page, "</ul>\n");
}

static void put_heading(bench_page *page, const cJSON *result)
{
    const cJSON *environment = json_object(result, "environment");
    const double arch = json_number(environment, "arch");
    bench_page_markup(page, "<header>\n<p class=\"eyebrow\">jitgemm ");
    bench_page_text(page, json_text(result, "version"));
    bench_page_markup(page, " benchmark</p>\n<h1>");
    bench_page_text(page, device_of(result));
    bench_page_markup(page, "</h1>\n<p class=\"lead\">");
    put_commands(page, result);
    if (isfinite(arch)) bench_page_markup(page, " \xC2\xB7 sm_%.0f", arch);
    if (*json_text(result, "started")) bench_page_markup(page, " \xC2\xB7 ");
    bench_page_date(page, json_text(result, "started"));
    bench_page_markup(page, "</p>\n");
    put_flags(page, result);
    put_environment(page, environment);
    bench_page_markup(page, "</header>\n");
}

/* ---- the summary ---- */

/* The octaves around 1 that all of them need; at least one each way. */
static double span_of(const cJSON *result)
{
    static const char *const ends[] = {"worst", "best", "geomean"};
    double span = 1;
    for (const cJSON *s = json_first(result, "summaries"); s; s = s->next)
        for (size_t i = 0; i < 3; i++) {
            const double value = json_number(s, ends[i]);
            if (value > 0) span = fmax(span, fabs(log2(value)));
        }
    return span * 1.05;
}

static double percent(double ratio, double span)
{
    return 50 + 50 * log2(ratio) / span;
}

static void put_summary_row(bench_page *page, const cJSON *s, double span)
{
    const double geomean = json_number(s, "geomean"), worst = json_number(s, "worst");
    const double best = json_number(s, "best");
    const char *list = json_text(s, "list"), *suite = json_text(s, "suite");
    bench_page_markup(page, "<tr><th scope=\"row\">");
    bench_page_text(page, *list ? list : suite);
    if (*list && *suite && strcmp(list, suite) != 0) {
        bench_page_markup(page, " <small>");
        bench_page_text(page, suite);
        bench_page_markup(page, "</small>");
    }
    bench_page_markup(page, "</th><td>");
    bench_page_text(page, json_text(s, "type"));
    bench_page_markup(page, "</td>");
    bench_page_number_cell(page, json_number(s, "rows"), 0);
    bench_page_markup(page, "<td class=\"n\">");
    if (isfinite(geomean)) {
        bench_page_markup(page, "<b class=\"%s\">", geomean < 1 ? "slow" : "fast");
        bench_page_number(page, geomean, 2);
        bench_page_markup(page, "\xC3\x97</b>");
    }
    bench_page_markup(page, "</td>");
    bench_page_number_cell(page, worst, 2);
    bench_page_number_cell(page, best, 2);
    bench_page_markup(page, "<td class=\"range\" aria-hidden=\"true\"><span class=\"span\"><u style=\"left:50%%\"></u>");
    if (worst > 0 && best >= worst)
        bench_page_markup(page, "<i style=\"left:%.1f%%;width:%.1f%%\"></i>", percent(worst, span),
                          percent(best, span) - percent(worst, span));
    if (geomean > 0)
        bench_page_markup(page, "<b class=\"%s\" style=\"left:%.1f%%\"></b>", geomean < 1 ? "slow" : "fast",
                          percent(geomean, span));
    bench_page_markup(page, "</span></td></tr>\n");
}

static void write_summary(bench_page *page, const cJSON *result)
{
    const double span = span_of(result);
    bench_page_markup(page, "<p class=\"muted\">Ratio = time of the best peer / ours: above 1 we are faster. The line spans "
                            "worst to "
                            "best on a logarithmic scale around 1, the mark is the geometric mean.</p>\n<div class=\"card\">\n");
    bench_page_table(page, "summary", "list|type|#rows|#geomean|#worst|#best|slower \xE2\x86\x90 1 \xE2\x86\x92 faster");
    for (const cJSON *s = json_first(result, "summaries"); s; s = s->next)
        if (cJSON_IsObject(s)) put_summary_row(page, s, span);
    bench_page_table_end(page);
    bench_page_markup(page, "</div>\n");
}

/* ---- other sections ---- */

static int is_first_series(const cJSON *result, const cJSON *series)
{
    for (const cJSON *s = json_first(result, "series"); s != series; s = s->next)
        for (const cJSON *next = cJSON_IsObject(s) ? bench_series_next(s) : NULL; next; next = bench_series_next(next))
            if (next == series) return 0;
    return cJSON_IsObject(series);
}

static void write_times(bench_page *page, const cJSON *result)
{
    for (const cJSON *s = json_first(result, "series"); s; s = s->next) {
        if (!is_first_series(result, s)) continue;
        bench_page_markup(page, "<div class=\"card\"><h3>");
        bench_page_text(page, *json_text(s, "command") ? json_text(s, "command") : "series");
        bench_page_markup(page, "</h3>\n<div class=\"pair\">\n");
        bench_write_histograms(page, s);
        bench_write_series(page, s);
        bench_page_markup(page, "</div></div>\n");
    }
}

static void write_drift(bench_page *page, const cJSON *result)
{
    bench_write_drift(page, json_object(result, "drift"));
}

static void write_notes(bench_page *page, const cJSON *result)
{
    bench_page_markup(page, "<div class=\"card\"><ul class=\"notes\">\n");
    for (const cJSON *note = json_first(result, "notes"); note; note = note->next) {
        if (!cJSON_IsString(note)) continue;
        bench_page_markup(page, "<li>");
        bench_page_text(page, cJSON_GetStringValue(note));
        bench_page_markup(page, "</li>\n");
    }
    bench_page_markup(page, "</ul></div>\n");
}

/* ---- the page ---- */

/* A section is there if `has` says so, or, without it, if the document has something in the array `member`. */
static const struct section {
    const char *id, *title, *member;
    int (*has)(const cJSON *result);
    void (*write)(bench_page *page, const cJSON *result);
} sections[] = {
    {"summary", "Summary", "summaries", NULL, write_summary},
    {"targets", "Targets", "targets", NULL, bench_write_targets},
    {"drift", "Compared with the baseline", "drift", NULL, write_drift},
    {"ratios", "Ratio by size", NULL, bench_has_ratios, bench_write_ratios},
    {"roofline", "Roofline", NULL, bench_has_roofline, bench_write_rooflines},
    {"times", "Times of calls", "series", NULL, write_times},
    {"compiles", "Compile times", NULL, bench_has_compiles, bench_write_compiles},
    {"counts", "Counts", "counts", NULL, bench_write_counts},
    {"notes", "Notes", "notes", NULL, write_notes},
    {"rows", "All measurements", "rows", NULL, bench_write_rows},
};

static int has_section(const struct section *section, const cJSON *result)
{
    if (section->has) return section->has(result);
    return json_first(result, section->member) || json_object(result, section->member);
}

static void put_page(bench_page *page, const cJSON *result)
{
    const struct section *const end = sections + sizeof sections / sizeof *sections;
    bench_page_markup(page, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
                            "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>jitgemm: ");
    put_commands(page, result);
    bench_page_markup(page, " on ");
    bench_page_text(page, device_of(result));
    bench_page_markup(page, "</title>\n<style>\n%s</style>\n</head>\n<body>\n<main>\n", bench_style);
    put_heading(page, result);
    bench_page_markup(page, "<nav aria-label=\"Sections\">\n");
    for (const struct section *s = sections; s < end; s++)
        if (has_section(s, result)) bench_page_markup(page, "<a href=\"#%s\">%s</a>\n", s->id, s->title);
    bench_page_markup(page, "</nav>\n");
    for (const struct section *s = sections; s < end; s++) {
        if (!has_section(s, result)) continue;
        bench_page_markup(page, "<section>\n<h2 id=\"%s\">%s</h2>\n", s->id, s->title);
        s->write(page, result);
        bench_page_markup(page, "</section>\n");
    }
    bench_page_markup(page, "<footer>Written by jitgemm-bench. This page is one file; it loads nothing.</footer>\n"
                            "</main>\n</body>\n</html>\n");
}

int bench_html_write(const char *path, const cJSON *result, char *why, size_t size)
{
    bench_page page;
    if (bench_page_open(&page, path, why, size) != 0) return -1;
    put_page(&page, result);
    return bench_page_close(&page, why, size);
}
