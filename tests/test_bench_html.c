/* The page of a result: made-up documents in, whole ones and broken ones; a page out that is well-formed, says what is in the
 * document and loads nothing. test_bench_browser looks at it with a browser. */
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

#include "bench_document.h"
#include "scratch.h"
#include "tools/bench_html.h"
#include "xml_check.h"

static char folder[4096], *page;

static void assert_has(const char *part)
{
    if (!strstr(page, part)) fail_msg("\"%s\" is not in the page", part);
}

static void assert_has_not(const char *part)
{
    const char *found = strstr(page, part);
    if (found) fail_msg("\"%s\" is in the page: %.120s", part, found);
}

/* Writes a page and reads it back; returns its size. Whatever the document, the page is well-formed and loads nothing. */
static size_t write_page(const cJSON *document)
{
    char why[512] = "";
    size_t bytes;
    const char *path = scratch_path(folder, "page.html");
    if (bench_html_write(path, document, why, sizeof why) != 0) fail_msg("%s", why);
    free(page);
    page = (char *)scratch_read(path, &bytes);
    assert_non_null(page);
    assert_int_equal(strlen(page), bytes);
    const char *bad = xml_check(page);
    if (bad) fail_msg("%s", bad);
    static const char *const forbidden[] = {"http:", "https:", "<script", "<link", "<img", "@import",
                                            "url(",  "nan",    "inf<",    "inf\"", "%!"};
    for (size_t i = 0; i < sizeof forbidden / sizeof *forbidden; i++) assert_has_not(forbidden[i]);
    return bytes;
}

static int files_in_folder(void)
{
    int count = 0;
    DIR *all = opendir(folder);
    assert_non_null(all);
    for (const struct dirent *entry; (entry = readdir(all)) != NULL;) count += entry->d_name[0] != '.';
    closedir(all);
    return count;
}

/* ---- what is in the page ---- */

static void whole(void **state)
{
    (void)state;
    cJSON *document = bench_document(45, 0);
    write_page(document);
    static const char *const parts[] = {
        "<title>jitgemm: first-call, common16, layers, decode on NVIDIA H200</title>", "sm_90", "2026-01-31 12:00:00 UTC",
        "<dt>Multiprocessors</dt><dd>132</dd>", "<dt>Driver for CUDA</dt><dd>13.1</dd>", "<dt>Driver</dt><dd>580.95.05</dd>",
        "<dt>Temperature before</dt><dd>46 \xC2\xB0" "C</dd>", "<dt>Power limit</dt><dd>700 W</dd>", "<dt>Persistence</dt><dd>yes</dd>",
        "1 target missed", "1 measure slower than the baseline",
        "<h2 id=\"summary\">", "<h2 id=\"targets\">", "<h2 id=\"drift\">", "<h2 id=\"ratios\">", "<h2 id=\"roofline\">",
        "<h2 id=\"times\">", "<h2 id=\"compiles\">", "<h2 id=\"counts\">", "<h2 id=\"notes\">", "<h2 id=\"rows\">",
        "decode bf16, operands rotated", "9.20\xC3\x97", "p \xE2\x89\xA5 0.01", "1,234,567", "612.00", "h200-2026-01.json",
        "Memory 4,200 GB/s, L2 9,900 GB/s, Arithmetic 801 TFLOP/s", "cuBLAS, first call of a size",
        "Only in the baseline: odd 31:f16 resident", "197\xC3\x97<wbr/>256\xC3\x97<wbr/>64</th>", "prefers-color-scheme:dark",
        "name=\"viewport\""};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) assert_has(parts[i]);
    assert_has_not("Interrupted");
    assert_has_not("Software GPU");
    assert_has_not("wrong result");
    cJSON_Delete(document);
}

/* Sections without data are not there, nor are their links. */
static void empty(void **state)
{
    (void)state;
    cJSON *document = cJSON_Parse("{}");
    write_page(document);
    assert_has("unknown device");
    assert_has_not("<h2");
    assert_has_not("<a ");
    cJSON_Delete(document);
    write_page(NULL);
    assert_has_not("<h2");
    document = cJSON_Parse("{\"rows\": [], \"series\": [], \"targets\": [], \"drift\": {}, \"notes\": \"text\", \"compiles\": "
                           "[1, null]}");
    write_page(document);
    assert_has("Compared with a baseline");
    assert_has_not("<h2 id=\"rows\">");
    assert_has_not("<h2 id=\"compiles\">");
    cJSON_Delete(document);
}

static void software(void **state)
{
    (void)state;
    cJSON *document = bench_document(20, 1);
    write_page(document);
    assert_has("Software GPU: counters instead of times");
    assert_has(">bank conflicts</th>");
    assert_has(">instructions</th>");
    assert_has_not("<h2 id=\"ratios\">");
    assert_has_not("<h2 id=\"roofline\">");
    assert_has_not("ours, us");
    cJSON_Delete(document);
}

static void interrupted(void **state)
{
    (void)state;
    cJSON *document = bench_document(10, 0);
    cJSON_ReplaceItemInObject(document, "interrupted", cJSON_CreateTrue());
    write_page(document);
    assert_has("Interrupted: the results are of what was finished");
    cJSON_Delete(document);
}

/* A peer that refused is no gap: what it said is there, once for all sizes. */
static void refused(void **state)
{
    (void)state;
    cJSON *document = cJSON_Parse(
        "{\"rows\": ["
        "{\"problem\": \"64x32x16:f16:tn\", \"type\": \"f16\", \"peer\": \"lt best\", \"ratio\": 2, \"contestants\": ["
        "  {\"name\": \"jitgemm\", \"us\": {\"p50\": 2}}, {\"name\": \"lt best\", \"us\": {\"p50\": 4}},"
        "  {\"name\": \"cublas\", \"refused\": \"no <int8> here\"}]},"
        "{\"problem\": \"65:f16\", \"type\": \"f16\", \"contestants\": [{\"name\": \"jitgemm\", \"us\": {\"p50\": 3}},"
        "  {\"name\": \"lt best\", \"refused\": \"odd\"}, {\"name\": \"cublas\", \"refused\": \"no <int8> here\"}]}]}");
    assert_non_null(document);
    write_page(document);
    assert_has("cublas refused every size: no &lt;int8&gt; here</p>");
    assert_has("lt best refused 65: odd</p>");
    assert_has("<small title=\"odd\">refused</small>");
    assert_has("no peer");
    assert_has("64\xC3\x97<wbr/>32\xC3\x97<wbr/>16 tn</span>");
    cJSON_Delete(document);
}

/* What a peer does not do at all is no refusal; words of the group's heading are not said again; and what a layout costs. */
static void no_peers_and_costs(void **state)
{
    (void)state;
    cJSON *document = cJSON_Parse(
        "{\"rows\": ["
        "{\"problem\": \"64x32x16:u8.s8-u8:nt:lda=20:relu\", \"type\": \"u8.s8-u8:relu\", \"ceiling\": \"s8\", \"cost\": 1.375,"
        " \"contestants\": [{\"name\": \"jitgemm\", \"us\": {\"p50\": 2}},"
        "  {\"name\": \"cublas\", \"refused\": \"no peer in cuBLAS: why\"}]}]}");
    assert_non_null(document);
    write_page(document);
    assert_has("<p class=\"refused\">no peer in cuBLAS: why</p>");
    assert_has("<small title=\"no peer in cuBLAS: why\">no peer</small>");
    assert_has("<th scope=\"col\" class=\"n\">time / aligned</th>");
    assert_has("1.38");
    assert_has("64\xC3\x97<wbr/>32\xC3\x97<wbr/>16 nt lda=20</th>");
    assert_has_not("efused:");
    cJSON_Delete(document);
}

/* Bars: their place and length, what is unsure, and what is cut. The scale of the first is -1 ... 2, of the second -1 ... 6. */
static void bars(void **state)
{
    (void)state;
    cJSON *document = cJSON_Parse("{\"rows\": [{\"m\": 1, \"n\": 2, \"k\": 3, \"ratio\": 4, \"ratio_p\": 0.0001}, {\"ratio\": "
                                  "0.5},"
                                  "{\"ratio\": 2, \"ratio_p\": 0.01}, {\"ratio\": 0}, {\"ratio\": -1},"
                                  "{\"list\": \"wide\", \"ratio\": 1000}]}");
    assert_non_null(document);
    write_page(document);
    assert_has("--octaves:3;--one:33.3%");
    assert_has("<i class=\"fast\" style=\"left:33.3%;width:66.7%\">");
    assert_has("<i class=\"slow\" style=\"left:0.0%;width:33.3%\">");
    assert_has("<i class=\"fast unsure\" style=\"left:33.3%;width:33.3%\">");
    assert_has("<i class=\"fast cut\" style=\"left:14.3%;width:85.7%\">");
    assert_has("1,000.00\xC3\x97");
    assert_has("5 sizes, geometric mean 1.59\xC3\x97");
    assert_has("1\xC3\x97<wbr/>2\xC3\x97<wbr/>3</span>");
    cJSON_Delete(document);
}

/* A wrong product must not hide in a table that is folded. */
static void wrong(void **state)
{
    (void)state;
    cJSON *document = cJSON_Parse("{\"rows\": [{\"check\": {\"reference\": 7.25}}, {\"check\": {\"reference\": 1}}, "
                                  "{\"check\": {\"reference\": 0.5, \"peer\": 12.25}}]}");
    write_page(document);
    assert_has("1 wrong result</li>");
    assert_has("wrong, 7.25");
    assert_has_not("wrong, 0.5");
    assert_has("peer off 12");
    cJSON_Delete(document);
}

/* Several hundred rows stay a page that a browser opens at once. */
static void large(void **state)
{
    (void)state;
    cJSON *document = bench_document(400, 0);
    const size_t bytes = write_page(document);
    assert_true(bytes < 1000000);
    cJSON_Delete(document);
}

/* ---- documents that are not as they should be ---- */

static const char evil[] = "<i>&\"'>\x01\xFF\xC0\x80 \xED\xA0\x80 ]]>--";

/* Replaces every text, and every name of a member of the environment and of counters. */
static void poison(cJSON *item, int names)
{
    for (; item; item = item->next) {
        if (cJSON_IsString(item)) assert_non_null(cJSON_SetValuestring(item, evil));
        if (names && item->string) {
            item->string[0] = '<';
            item->string[1] = '&';
        }
        poison(item->child, item->string && (strcmp(item->string, "environment") == 0 || strcmp(item->string, "counters") == 0));
    }
}

static void escapes(void **state)
{
    (void)state;
    for (int simulated = 0; simulated < 2; simulated++) {
        cJSON *document = bench_document(18, simulated);
        poison(document, 0);
        write_page(document);
        assert_has_not("<i>");
        assert_has_not("\xFF");
        cJSON_Delete(document);
    }
    cJSON *document = bench_document(9, 0);
    cJSON_ReplaceItemInObject(cJSON_GetObjectItem(document, "environment"), "device", cJSON_CreateString("<&\"'> \xC3\xA9 GPU"));
    write_page(document);
    assert_has("<h1>&lt;&amp;&quot;&#39;&gt; \xC3\xA9 GPU</h1>");
    cJSON_Delete(document);
}

/* Puts another value, or nothing for null, in the place of each member of a name. Returns how many there were. */
static int change_all(cJSON *item, const char *name, const cJSON *value)
{
    int count = 0;
    for (cJSON *child = item->child; child;) {
        cJSON *next = child->next;
        if (child->string && strcmp(child->string, name) == 0) {
            if (value) cJSON_ReplaceItemViaPointer(item, child, cJSON_Duplicate(value, 1));
            else cJSON_Delete(cJSON_DetachItemViaPointer(item, child));
            count++;
        } else {
            count += change_all(child, name, value);
        }
        child = next;
    }
    return count;
}

/* Each member of the document once away, once of every other type, and once a number that nobody expects. */
static void strange(void **state)
{
    (void)state;
    static const char *const members[] = {"commands",  "started",  "environment", "ceilings",       "rows",
                                          "summaries", "compiles", "series",      "counts",         "targets",
                                          "notes",     "missed",   "interrupted", "drift",          "device",
                                          "arch",      "software", "name",        "value",          "suite",
                                          "problem",   "m",        "batch",       "type",           "data",
                                          "kernel",    "flops",    "bytes",       "contestants",    "us",
                                          "refused",   "peer",     "ratio",       "ratio_p",        "roofline_percent",
                                          "bound",     "check",    "reference",   "geomean",        "worst",
                                          "best",      "ms",       "command",     "unit",           "n",
                                          "p50",       "p99",      "max",         "histogram",      "limit",
                                          "met",       "base",     "changed",     "change_percent", "p_adjusted",
                                          "verdict",   "missing",  "percent"};
    static const char *const values[] = {NULL, "null", "\"text\"",       "0",   "-1.5", "1e308", "1e-308",
                                         "[]", "{}",   "[[1], 2, null]", "true"};
    for (size_t m = 0; m < sizeof members / sizeof *members; m++)
        for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
            cJSON *document = bench_document(36, 0), *value = values[v] ? cJSON_Parse(values[v]) : NULL;
            if (change_all(document, members[m], value) == 0) fail_msg("no member %s", members[m]);
            write_page(document);
            cJSON_Delete(value);
            cJSON_Delete(document);
        }
}

/* ---- the file ---- */

/* What was there is still there, nothing else is, and the reason names the path. */
static void assert_kept(const char *path, const char *why)
{
    size_t bytes;
    unsigned char *old = scratch_read(scratch_path(folder, "page.html"), &bytes);
    assert_non_null(old);
    assert_string_equal((char *)old, "old");
    free(old);
    assert_int_equal(files_in_folder(), 1);
    if (!strstr(why, path)) fail_msg("%s is not in: %s", path, why);
}

/* Runs in a child: no file may grow beyond this, as on a full disk. Its exit status is 0 if the write failed as it should. */
static int write_on_full_disk(void *user)
{
    char why[512] = "";
    const struct rlimit limit = {4096, 4096};
    cJSON *document = bench_document(9, 0);
    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 2;
    const int status = bench_html_write(user, document, why, sizeof why);
    cJSON_Delete(document);
    return status == -1 && strstr(why, user) && strstr(why, "File too large") ? 0 : 1;
}

static int write_without_rights(void *user)
{
    char why[512] = "";
    return bench_html_write(user, NULL, why, sizeof why) == -1 && strstr(why, "Permission denied") ? 0 : 1;
}

static void failures(void **state)
{
    (void)state;
    char why[8192], path[4096 + 64], long_path[5000];
    scratch_remove(folder);
    scratch_make(folder);
    snprintf(path, sizeof path, "%s/page.html", folder);
    scratch_write(path, "old", 3);
    assert_int_equal(scratch_child(write_on_full_disk, path, 0), 0);
    assert_kept("", "");
    assert_int_equal(scratch_child(write_without_rights, path, 65534), 0);
    assert_kept("", "");
    snprintf(path, sizeof path, "%s/none/page.html", folder);
    assert_int_equal(bench_html_write(path, NULL, why, sizeof why), -1);
    assert_kept(path, why);
    assert_int_equal(bench_html_write(folder, NULL, why, sizeof why), -1);
    assert_kept(folder, why);
    assert_int_equal(bench_html_write("/dev/null", NULL, why, sizeof why), -1);
    assert_kept("/dev/null", why);
    memset(long_path, 'x', sizeof long_path - 1);
    long_path[sizeof long_path - 1] = 0;
    assert_int_equal(bench_html_write(long_path, NULL, why, sizeof why), -1);
    assert_kept("xxx", why);
}

/* A page takes the place of an old one, with the modes that files have here. */
static void replaces(void **state)
{
    (void)state;
    scratch_remove(folder);
    scratch_make(folder);
    scratch_write(scratch_path(folder, "page.html"), "old", 3);
    const mode_t mask = umask(027);
    write_page(NULL);
    umask(mask);
    assert_int_equal(files_in_folder(), 1);
    assert_int_equal(scratch_mode(scratch_path(folder, "page.html")), 0640);
}

/* The checker itself: a test that finds nothing must not be one that looks at nothing. */
static void checker(void **state)
{
    (void)state;
    static const char *const good[] = {"<a/>", "<!DOCTYPE html>\n<a b=\"&amp;&#39;\"><c>x > y</c></a>\n"};
    static const char *const bad[] = {"",
                                      "x",
                                      "<a>",
                                      "<a></b>",
                                      "<a><b></a></b>",
                                      "<a/>x",
                                      "<a b=c/>",
                                      "<a b=\"\" b=\"\"/>",
                                      "<a>&</a>",
                                      "<a>&nbsp;</a>",
                                      "<a b=\"<\"/>",
                                      "<a b=\"/>",
                                      "<a>\x01</a>",
                                      "<a b=\"\"c=\"\"/>",
                                      "<a></a></a>"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) assert_null(xml_check(good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (!xml_check(bad[i])) fail_msg("taken for good: %s", bad[i]);
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
    free(page);
    scratch_remove(folder);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checker), cmocka_unit_test(whole),   cmocka_unit_test(empty),    cmocka_unit_test(software),
        cmocka_unit_test(interrupted), cmocka_unit_test(refused), cmocka_unit_test(bars), cmocka_unit_test(wrong),
        cmocka_unit_test(large),   cmocka_unit_test(escapes), cmocka_unit_test(strange),  cmocka_unit_test(failures),
        cmocka_unit_test(replaces), cmocka_unit_test(no_peers_and_costs),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
