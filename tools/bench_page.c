/* Writes a page under another name, syncs it and gives it its own name; escapes what is no markup. See bench_page.h. */
#include "bench_page.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char replacement[] = "\xEF\xBF\xBD"; /* U+FFFD */

/* ---- the file ---- */

static int fail(const bench_page *page, int error, char *why, size_t size)
{
    snprintf(why, size, "cannot write %s: %s", page->path, strerror(error));
    return -1;
}

int bench_page_open(bench_page *page, const char *path, char *why, size_t size)
{
    struct stat there;
    page->file = NULL;
    snprintf(page->path, sizeof page->path, "%s", path);
    const int length = snprintf(page->temporary, sizeof page->temporary, "%s.%ld.new", path, (long)getpid());
    if (length < 0 || (size_t)length >= sizeof page->temporary) return fail(page, ENAMETOOLONG, why, size);
    /* Taking the name of a device or a pipe would remove it. */
    if (stat(path, &there) == 0 && !S_ISREG(there.st_mode)) {
        snprintf(why, size, "cannot write %s: not a regular file", path);
        return -1;
    }
    /* One that is there was left by a process of the same id, which died. */
    int file = open(page->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file < 0 && errno == EEXIST && unlink(page->temporary) == 0)
        file = open(page->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file < 0) return fail(page, errno, why, size);
    page->file = fdopen(file, "w");
    if (page->file) return 0;
    const int error = errno;
    close(file);
    unlink(page->temporary);
    return fail(page, error, why, size);
}

int bench_page_close(bench_page *page, char *why, size_t size)
{
    int error = 0;
    errno = 0;
    if (fflush(page->file) != 0 || ferror(page->file)) error = errno ? errno : EIO;
    if (!error && fsync(fileno(page->file)) != 0) error = errno;
    if (fclose(page->file) != 0 && !error) error = errno;
    page->file = NULL;
    if (!error && rename(page->temporary, page->path) != 0) error = errno;
    if (!error) return 0;
    unlink(page->temporary);
    return fail(page, error, why, size);
}

/* ---- markup and text ---- */

void bench_page_markup(bench_page *page, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vfprintf(page->file, format, arguments);
    va_end(arguments);
}

/* Bytes of the character that text begins with; 0 if it is no UTF-8, or not allowed in XML. */
static size_t character_bytes(const unsigned char *text, size_t bytes)
{
    static const unsigned long least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (*text < 0x80) return *text >= 0x20 || *text == '\n' || *text == '\t';
    const size_t length = *text >= 0xF0 ? 4 : *text >= 0xE0 ? 3 : 2;
    if (*text < 0xC2 || *text > 0xF4 || length > bytes) return 0;
    unsigned long code = *text & (0x7Fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((text[i] & 0xC0) != 0x80) return 0;
        code = code << 6 | (text[i] & 0x3Fu);
    }
    const int surrogate = code >= 0xD800 && code < 0xE000;
    return code < least[length] || code > 0x10FFFF || surrogate || code == 0xFFFE || code == 0xFFFF ? 0 : length;
}

void bench_page_text_part(bench_page *page, const char *text, size_t bytes)
{
    while (bytes > 0) {
        const size_t length = character_bytes((const unsigned char *)text, bytes);
        const char *instead = length == 0 ? replacement : *text == '&' ? "&amp;" : *text == '<' ? "&lt;" : *text == '>' ? "&gt;"
                              : *text == '"' ? "&quot;" : *text == '\'' ? "&#39;" : NULL;
        if (instead) fputs(instead, page->file);
        else fwrite(text, 1, length, page->file);
        text += length ? length : 1;
        bytes -= length ? length : 1;
    }
}

void bench_page_text(bench_page *page, const char *text)
{
    if (text) bench_page_text_part(page, text, strlen(text));
}

void bench_page_date(bench_page *page, const char *text)
{
    if (strlen(text) != 20 || text[10] != 'T' || text[19] != 'Z') {
        bench_page_text(page, text);
        return;
    }
    fputs("<span class=\"date\">", page->file);
    bench_page_text_part(page, text, 10);
    putc(' ', page->file);
    bench_page_text_part(page, text + 11, 8);
    fputs(" UTC</span>", page->file);
}

void bench_page_table(bench_page *page, const char *label, const char *columns)
{
    bench_page_markup(page, "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"%s\"><table>\n", label);
    if (!columns) return;
    bench_page_markup(page, "<thead><tr>");
    while (*columns) {
        const int number = *columns == '#';
        const char *name = columns + number;
        const size_t bytes = strcspn(name, "|");
        bench_page_markup(page, "<th scope=\"col\"%s>", number ? " class=\"n\"" : "");
        bench_page_text_part(page, name, bytes);
        bench_page_markup(page, "</th>");
        columns = name + bytes + (name[bytes] == '|');
    }
    bench_page_markup(page, "</tr></thead>\n<tbody>\n");
}

void bench_page_table_end(bench_page *page)
{
    bench_page_markup(page, "</tbody></table></div>\n");
}

void bench_page_number(bench_page *page, double value, int decimals)
{
    char digits[64];
    if (!isfinite(value)) {
        fputs("\xE2\x80\x93", page->file);
        return;
    }
    if (fabs(value) >= 1e15 || (value != 0 && fabs(value) < 1e-6)) {
        fprintf(page->file, "%.4g", value);
        return;
    }
    snprintf(digits, sizeof digits, "%.*f", decimals < 9 ? decimals : 9, fabs(value));
    const char *point = strchr(digits, '.');
    size_t whole = point ? (size_t)(point - digits) : strlen(digits);
    if (value < 0 && strspn(digits, "0.") != strlen(digits)) fputs("\xE2\x88\x92", page->file); /* a minus, not a hyphen */
    for (const char *at = digits; *at; at++) {
        putc(*at, page->file);
        if (whole > 0 && --whole > 0 && whole % 3 == 0) putc(',', page->file);
    }
}

void bench_page_number_cell(bench_page *page, double value, int decimals)
{
    bench_page_markup(page, "<td class=\"n\">");
    if (isfinite(value)) bench_page_number(page, value, decimals);
    bench_page_markup(page, "</td>");
}

int bench_page_decimals(const char *unit)
{
    return strcmp(unit, "ns") == 0 ? 1 : strcmp(unit, "us") == 0 || strcmp(unit, "ms") == 0 ? 2 : 3;
}
