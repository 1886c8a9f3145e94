/* The writer below bench_html: a page goes to a file of another name, which takes its own name once all of it is on the disk.
 *
 * A failed write is kept and told at the end, so that the code between need not look. */
#ifndef JG_TOOLS_BENCH_PAGE_H
#define JG_TOOLS_BENCH_PAGE_H

#include <limits.h>
#include <stddef.h>
#include <stdio.h>

#include "bench_json.h"

/* Treat as opaque. */
typedef struct bench_page {
    FILE *file;
    char path[PATH_MAX], temporary[PATH_MAX];
} bench_page;

/* Both return 0, or -1 with the reason, which names the path, in `why`; then no temporary file is left, and what was at `path`
 * still is. bench_page_close closes the page in any case. */
int bench_page_open(bench_page *page, const char *path, char *why, size_t size);
int bench_page_close(bench_page *page, char *why, size_t size);

/* Markup, as it is. Whatever comes from a document goes through bench_page_text instead. */
void bench_page_markup(bench_page *page, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Text, good in an element and in an attribute in quotes. What XML forbids or is no UTF-8 becomes U+FFFD. Null is as "". */
void bench_page_text(bench_page *page, const char *text);
void bench_page_text_part(bench_page *page, const char *text, size_t bytes);

/* "2026-01-31T12:00:00Z" as "2026-01-31 12:00:00 UTC", which breaks nowhere; another text as it is. */
void bench_page_date(bench_page *page, const char *text);

/* Opens a table in a box of its own, in which it may scroll sideways and which the keyboard reaches. `columns` are headings
 * between bars, "what|#value": numbers after a #; null: the caller writes them. */
void bench_page_table(bench_page *page, const char *label, const char *columns);
void bench_page_table_end(bench_page *page);

/* A number with a comma between thousands; a dash if it is not finite. */
void bench_page_number(bench_page *page, double value, int decimals);

/* The same as a cell of a table; nothing in it if the number is not finite. */
void bench_page_number_cell(bench_page *page, double value, int decimals);

/* As many decimals as a clock of nanoseconds supports, and no more than a reader wants. */
int bench_page_decimals(const char *unit);

#endif
