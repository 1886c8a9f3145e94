/* The page of a result in a browser (headless Chromium; skipped without): it can be seen, on a desk and on a phone, light and
 * dark; it does not scroll sideways, nothing sticks out, no names in plots overlap, and the letters there are large enough. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_document.h"
#include "scratch.h"
#include "tools/bench_html.h"

static char folder[4096], browser[256];

/* Added to a copy of the page: it opens what is folded, measures what is seen, and tells the page around. Text that is turned,
 * along a line of a plot, has a box that says nothing of what it covers. */
static const char measure[] =
    "<script>\n"
    "const page = document.documentElement, width = page.clientWidth;\n"
    "let out = 0, over = 0, letters = 99, first = '';\n"
    "const all = (what, where) => [...where.querySelectorAll(what)], box = x => x.getBoundingClientRect();\n"
    "function overlap(a, b) {\n"
    "  return Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 &&\n"
    "         Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 4;\n"
    "}\n"
    "function look(svg) {\n"
    "  const card = box(svg.closest('.card')), texts = all('text', svg);\n"
    "  texts.forEach((text, i) => {\n"
    "    const size = parseFloat(getComputedStyle(text).fontSize) * svg.getScreenCTM().a, here = box(text);\n"
    "    letters = Math.min(letters, size);\n"
    "    if (here.right > card.right || here.left < card.left) { out++; first ||= text.textContent; }\n"
    "    if (text.hasAttribute('transform')) return;\n"
    "    for (const other of texts.slice(0, i))\n"
    "      if (!other.hasAttribute('transform') && overlap(here, box(other))) { over++; first ||= text.textContent; }\n"
    "  });\n"
    "}\n"
    "function check(axis) {\n"
    "  const names = all('span', axis);\n"
    "  names.forEach((name, i) => { if (i > 0 && overlap(box(name), box(names[i - 1]))) { over++; first ||= name.textContent; } "
    "});\n"
    "}\n"
    "onload = () => {\n"
    "  for (const folded of all('details', document)) folded.open = true;\n"
    "  for (const x of all('body *', document))\n"
    "    if (box(x).width && (box(x).right > width + 1 || box(x).left < -1) && !x.closest('.scroll table')) {\n"
    "      out++;\n"
    "      first ||= x.outerHTML.slice(0, 120);\n"
    "    }\n"
    "  all('svg', document).forEach(look);\n"
    "  all('.axis .track', document).forEach(check);\n"
    "  parent.postMessage(`width=${width} scroll=${page.scrollWidth} out=${out} over=${over} ` +\n"
    "                     `letters=${letters.toFixed(1)} first: ${first}`, '*');\n"
    "};\n"
    "</script>\n";

static const char around[] =
    "<!DOCTYPE html><body><iframe src=\"measured.html\" style=\"width:375px;height:800px;border:0\"></iframe>\n"
    "<iframe src=\"measured.html\" style=\"width:1280px;height:900px;border:0\"></iframe><pre></pre>\n"
    "<script>onmessage = e => document.querySelector('pre').textContent += e.data + '\\n';</script></body>\n";

/* Finds a browser that starts; what distributions have in its place may only say how to get one. */
static int find_browser(void)
{
    static const char *const names[] = {"chromium", "chromium-browser", "google-chrome"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char command[128];
        snprintf(command, sizeof command, "timeout 60 %s --no-sandbox --version >/dev/null 2>&1", names[i]);
        if (system(command) != 0) continue;
        snprintf(browser, sizeof browser, "%s", names[i]);
        return 1;
    }
    return 0;
}

/* Lets the browser open a file of the folder, and returns what it printed; the caller frees it. */
static char *browse(const char *flags, const char *file)
{
    char command[16384];
    size_t bytes;
    const int length = snprintf(command, sizeof command,
                                "timeout 120 %s --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --hide-scrollbars "
                                "--user-data-dir='%s/profile' --virtual-time-budget=5000 %s 'file://%s/%s' >'%s/out' 2>'%s/err'",
                                browser, folder, flags, folder, file, folder, folder);
    assert_true(length > 0 && (size_t)length < sizeof command);
    if (system(command) != 0) {
        char *error = (char *)scratch_read(scratch_path(folder, "err"), &bytes);
        fail_msg("%s\n%s", command, error ? error : "");
    }
    char *out = (char *)scratch_read(scratch_path(folder, "out"), &bytes);
    assert_non_null(out);
    return out;
}

static void write_page(int rows, int software)
{
    char why[512] = "";
    cJSON *document = bench_document(rows, software);
    if (bench_html_write(scratch_path(folder, "page.html"), document, why, sizeof why) != 0) fail_msg("%s", why);
    cJSON_Delete(document);
}

/* A copy of the page that measures itself, and one that shows it in two widths: a browser's window cannot be as narrow as a
 * phone. */
static void write_measuring_pages(void)
{
    size_t bytes;
    char *page = (char *)scratch_read(scratch_path(folder, "page.html"), &bytes);
    assert_non_null(page);
    char *end = strstr(page, "</body>");
    assert_non_null(end);
    FILE *copy = fopen(scratch_path(folder, "measured.html"), "w");
    assert_non_null(copy);
    assert_true(fprintf(copy, "%.*s%s%s", (int)(end - page), page, measure, end) > 0);
    assert_int_equal(fclose(copy), 0);
    scratch_write(scratch_path(folder, "around.html"), around, strlen(around));
    free(page);
}

static void assert_fits(const char *measured, int width)
{
    char start[32];
    int scroll, out, over;
    double letters;
    snprintf(start, sizeof start, "width=%d ", width);
    const char *line = strstr(measured, start);
    if (!line) fail_msg("no %sin: %s", start, measured);
    assert_int_equal(sscanf(line + strlen(start), "scroll=%d out=%d over=%d letters=%lf", &scroll, &out, &over, &letters), 4);
    if (scroll != width || out != 0 || over != 0 || letters < 10) fail_msg("%.*s", (int)strcspn(line, "\n"), line);
}

static void fits(void **state)
{
    (void)state;
    if (!*browser) skip();
    static const struct { int rows, software; } pages[] = {{300, 0}, {20, 1}, {0, 1}};
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
        write_page(pages[i].rows, pages[i].software);
        write_measuring_pages();
        char *measured = browse("--dump-dom", "around.html");
        assert_fits(measured, 375);
        assert_fits(measured, 1280);
        free(measured);
    }
}

static unsigned long big_endian(const unsigned char *at)
{
    return (unsigned long)at[0] << 24 | (unsigned long)at[1] << 16 | (unsigned long)at[2] << 8 | at[3];
}

/* A picture of the page; the caller frees it. One colour would be packed into a hundredth of this many bytes. */
static unsigned char *picture(int width, int height, const char *flags, size_t *bytes)
{
    char all[8192];
    snprintf(all, sizeof all, "--window-size=%d,%d --screenshot='%s/shot.png' %s", width, height, folder, flags);
    free(browse(all, "page.html"));
    unsigned char *png = scratch_read(scratch_path(folder, "shot.png"), bytes);
    assert_non_null(png);
    assert_true(*bytes > 20000);
    assert_memory_equal(png, "\x89PNG\r\n\x1a\n", 8);
    assert_int_equal(big_endian(png + 16), width);
    assert_int_equal(big_endian(png + 20), height);
    return png;
}

static void pictures(void **state)
{
    (void)state;
    if (!*browser) skip();
    size_t bytes, dark_bytes;
    write_page(60, 0);
    free(picture(375, 800, "", &bytes));
    unsigned char *light = picture(1280, 900, "--blink-settings=preferredColorScheme=1", &bytes);
    unsigned char *dark = picture(1280, 900, "--blink-settings=preferredColorScheme=0", &dark_bytes);
    assert_true(bytes != dark_bytes || memcmp(light, dark, bytes) != 0);
    free(light);
    free(dark);
}

static int setup(void **state)
{
    (void)state;
    scratch_make(folder);
    if (!find_browser()) print_message("SKIP no Chromium here\n");
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(fits), cmocka_unit_test(pictures)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
