/* Bars of ratios around a line at 1, and of compile times. See bench_bars.h. */
#include "bench_bars.h"

#include "bench_group.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define OCTAVES_MOST 6   /* each way; a longer bar is cut and says so, or one odd size would make all others look alike */
#define OPEN_ROWS 40     /* a longer group is folded */
#define OPEN_TOTAL 240   /* so are all others once as many rows are seen */
#define COMPILES_OPEN 24 /* as many of the slowest compiles are seen; the others are folded */

/* A row's ratio: NaN if it is not there or not above 0. */
static double ratio_of(const cJSON *row)
{
    const double ratio = json_number(row, "ratio");
    return ratio > 0 ? ratio : NAN;
}

/* Not told apart from chance. Without a probability nothing is marked. */
static int is_unsure(const cJSON *row)
{
    return json_number(row, "ratio_p") >= BENCH_BARS_P;
}

/* The geometric mean of the ratios of a group's rows, and how many there are; NaN if there are none. */
static double geomean_of(const cJSON *first, size_t *ratios)
{
    double sum = 0;
    *ratios = 0;
    for (const cJSON *row = first; row; row = bench_group_row(row)) {
        const double ratio = ratio_of(row);
        if (!isfinite(ratio)) continue;
        sum += log(ratio);
        ++*ratios;
    }
    return *ratios ? exp(sum / (double)*ratios) : NAN;
}

int bench_has_ratios(const cJSON *result)
{
    for (const cJSON *row = json_first(result, "rows"); row; row = row->next)
        if (isfinite(ratio_of(row))) return 1;
    return 0;
}

/* ---- the scale: octaves to the left and to the right of 1 ---- */

typedef struct scale {
    int left, right;
} scale;

static int octaves(double log2_ratio)
{
    return log2_ratio >= OCTAVES_MOST ? OCTAVES_MOST : log2_ratio <= 0 ? 0 : (int)ceil(log2_ratio);
}

static scale scale_of(const cJSON *first)
{
    scale s = {1, 1};
    for (const cJSON *row = first; row; row = bench_group_row(row)) {
        const double ratio = ratio_of(row);
        if (!isfinite(ratio)) continue;
        const int left = octaves(-log2(ratio)), right = octaves(log2(ratio));
        s.left = left > s.left ? left : s.left;
        s.right = right > s.right ? right : s.right;
    }
    return s;
}

static double percent(const scale *s, double log2_ratio)
{
    return 100 * (log2_ratio + s->left) / (s->left + s->right);
}

static void put_axis(bench_page *page, const scale *s)
{
    const int all = s->left + s->right, step = all <= 5 ? 1 : all <= 7 ? 2 : all <= 11 ? 3 : 4; /* so that they fit on a phone */
    bench_page_markup(page, "<li class=\"axis\" aria-hidden=\"true\"><span></span><span class=\"track\">");
    for (int i = -s->left; i <= s->right; i++) {
        if (i % step != 0) continue;
        bench_page_markup(page, "<span style=\"left:%.1f%%\">", percent(s, i));
        if (i < 0) bench_page_markup(page, "1/%d", 1 << -i);
        else bench_page_markup(page, "%d\xC3\x97", 1 << i);
        bench_page_markup(page, "</span>");
    }
    bench_page_markup(page, "</span><span></span></li>\n");
}

/* ---- ratios ---- */

/* What a pointer that rests on the bar is told. */
static void put_hint(bench_page *page, const cJSON *row)
{
    const char *peer = json_text(row, "peer");
    const double ours = bench_median(row, BENCH_OURS), theirs = bench_median(row, peer);
    bench_page_markup(page, " title=\"" BENCH_OURS " ");
    bench_page_number(page, ours, 2);
    bench_page_markup(page, " us, ");
    bench_page_text(page, *peer ? peer : "peer");
    bench_page_markup(page, " ");
    bench_page_number(page, theirs, 2);
    bench_page_markup(page, " us");
    if (is_unsure(row)) bench_page_markup(page, ", p = %.2g", json_number(row, "ratio_p"));
    bench_page_markup(page, "\"");
}

static void put_ratio(bench_page *page, const cJSON *row, const scale *s)
{
    const double ratio = ratio_of(row), length = isfinite(ratio) ? log2(ratio) : 0;
    const double end = fmax(-s->left, fmin(s->right, length)), from = percent(s, fmin(0, end)), to = percent(s, fmax(0, end));
    const int unsure = is_unsure(row);
    bench_page_markup(page, "<li");
    if (isfinite(ratio)) put_hint(page, row);
    bench_page_markup(page, "><span class=\"size\">");
    bench_size_text(page, row);
    bench_page_markup(page, "</span><span class=\"track\"><u></u>");
    if (isfinite(ratio) && to > from)
        bench_page_markup(page, "<i class=\"%s%s%s\" style=\"left:%.1f%%;width:%.1f%%\"></i>", length < 0 ? "slow" : "fast",
                          unsure ? " unsure" : "", end != length ? " cut" : "", from, to - from);
    bench_page_markup(page, "</span><span class=\"value\">");
    if (isfinite(ratio)) {
        if (unsure) bench_page_markup(page, "\xE2\x89\x88\xC2\xA0");
        bench_page_number(page, ratio, 2);
        bench_page_markup(page, "\xC3\x97");
    } else {
        bench_page_markup(page, "<small class=\"muted\">no peer</small>");
    }
    bench_page_markup(page, "</span></li>\n");
}

/* Whether a contestant refused this row in the very same words. */
static int refuses(const cJSON *row, const cJSON *refusal)
{
    const char *name = json_text(refusal, "name"), *why = json_text(refusal, "refused");
    const cJSON *c = json_first(row, "contestants");
    while (c && !(strcmp(json_text(c, "name"), name) == 0 && strcmp(json_text(c, "refused"), why) == 0))
        c = c->next;
    return c != NULL;
}

/* One line for all rows that it refused in the same words; a few of them by name. */
static void put_refusal(bench_page *page, const cJSON *row, const cJSON *refusal, size_t in_group)
{
    size_t count = 0;
    for (const cJSON *other = row; other; other = bench_group_row(other)) count += (size_t)refuses(other, refusal);
    bench_page_markup(page, "<p class=\"refused\">");
    bench_page_text(page, json_text(refusal, "name"));
    if (count == in_group && bench_is_no_peer(refusal)) bench_page_markup(page, ": ");
    else if (count == in_group) bench_page_markup(page, " refused every size: ");
    else if (count > 3) bench_page_markup(page, " refused %zu sizes: ", count);
    else {
        bench_page_markup(page, " refused ");
        size_t said = 0;
        for (const cJSON *other = row; other; other = bench_group_row(other)) {
            if (!refuses(other, refusal)) continue;
            if (said++) bench_page_markup(page, ", ");
            bench_size_text(page, other);
        }
        bench_page_markup(page, ": ");
    }
    bench_page_text(page, json_text(refusal, "refused"));
    bench_page_markup(page, "</p>\n");
}

static void put_refusals(bench_page *page, const cJSON *first, size_t in_group)
{
    for (const cJSON *row = first; row; row = bench_group_row(row)) {
        for (const cJSON *c = json_first(row, "contestants"); c; c = c->next) {
            if (!*json_text(c, "refused")) continue;
            const cJSON *before = first;
            while (before != row && !refuses(before, c)) before = bench_group_row(before);
            if (before == row) put_refusal(page, row, c, in_group);
        }
    }
}

static void put_group(bench_page *page, const cJSON *first, size_t *shown)
{
    const scale s = scale_of(first);
    size_t rows = 0, ratios;
    const double geomean = geomean_of(first, &ratios);
    for (const cJSON *row = first; row; row = bench_group_row(row)) rows++;
    const int open = rows <= OPEN_ROWS && *shown + rows <= OPEN_TOTAL;
    if (open) *shown += rows;
    bench_page_markup(page, "<details class=\"card\"%s><summary><h3>", open ? " open=\"open\"" : "");
    bench_group_title(page, first);
    bench_page_markup(page, "</h3> <span class=\"muted\">%zu size%s, geometric mean ", rows, rows == 1 ? "" : "s");
    bench_page_number(page, geomean, 2);
    bench_page_markup(page, "\xC3\x97</span></summary>\n<ul class=\"bars\" style=\"--octaves:%d;--one:%.1f%%\">\n",
                      s.left + s.right, percent(&s, 0));
    put_axis(page, &s);
    for (const cJSON *row = first; row; row = bench_group_row(row)) put_ratio(page, row, &s);
    bench_page_markup(page, "</ul>\n");
    put_refusals(page, first, rows);
    bench_page_markup(page, "</details>\n");
}

void bench_write_ratios(bench_page *page, const cJSON *result)
{
    size_t shown = 0;
    bench_page_markup(page,
                      "<p class=\"muted\">Time of the best peer / ours, by medians. <b class=\"fast\">Right of the line we are "
                      "faster</b>, <b class=\"slow\">left of it slower</b>; each step is a factor of 2. A hatched bar and "
                      "\xE2\x89\x88: the difference could be chance (p \xE2\x89\xA5 %g).</p>\n<div class=\"cards\">\n",
                      BENCH_BARS_P);
    for (const cJSON *first = bench_group_next(result, NULL); first; first = bench_group_next(result, first)) {
        size_t ratios;
        geomean_of(first, &ratios);
        if (ratios) put_group(page, first, &shown);
    }
    bench_page_markup(page, "</div>\n");
}

/* ---- compile times ---- */

static double compile_ms(const cJSON *compile)
{
    const double ms = json_number(compile, "ms");
    return ms >= 0 ? ms : NAN;
}

static int by_ms(const void *a, const void *b)
{
    const double left = compile_ms(*(const cJSON *const *)a), right = compile_ms(*(const cJSON *const *)b);
    return (left < right) - (left > right);
}

/* The compiles that have a time, longest first; the caller frees them. Null if there are none, or no memory. */
static const cJSON **sorted_compiles(const cJSON *result, size_t *count)
{
    size_t capacity = 0;
    *count = 0;
    for (const cJSON *c = json_first(result, "compiles"); c; c = c->next) capacity += isfinite(compile_ms(c));
    const cJSON **sorted = capacity ? malloc(capacity * sizeof(const cJSON *)) : NULL;
    if (!sorted) return NULL;
    for (const cJSON *c = json_first(result, "compiles"); c; c = c->next)
        if (isfinite(compile_ms(c))) sorted[(*count)++] = c;
    qsort(sorted, *count, sizeof *sorted, by_ms);
    return sorted;
}

int bench_has_compiles(const cJSON *result)
{
    for (const cJSON *c = json_first(result, "compiles"); c; c = c->next)
        if (isfinite(compile_ms(c))) return 1;
    return 0;
}

static void put_compiles(bench_page *page, const cJSON *const *compiles, size_t count, double longest)
{
    bench_page_markup(page, "<ul class=\"bars plain\">\n");
    for (size_t i = 0; i < count; i++) {
        const char *problem = json_text(compiles[i], "problem"), *kernel = json_text(compiles[i], "kernel");
        const double ms = compile_ms(compiles[i]);
        bench_page_markup(page, "<li title=\"");
        bench_page_text(page, kernel);
        bench_page_markup(page, "\"><span class=\"size\">");
        bench_page_text(page, *problem ? problem : *kernel ? kernel : "?");
        bench_page_markup(page, "</span><span class=\"track\"><i style=\"width:%.1f%%\"></i></span><span class=\"value\">",
                          longest > 0 ? 100 * ms / longest : 0);
        bench_page_number(page, ms, 1);
        bench_page_markup(page, "</span></li>\n");
    }
    bench_page_markup(page, "</ul>\n");
}

void bench_write_compiles(bench_page *page, const cJSON *result)
{
    size_t count;
    const cJSON **compiles = sorted_compiles(result, &count);
    if (!compiles) return;
    const double longest = compile_ms(compiles[0]);
    const double median = (compile_ms(compiles[(count - 1) / 2]) + compile_ms(compiles[count / 2])) / 2;
    bench_page_markup(page,
                      "<p class=\"muted\">Milliseconds from source to a loadable kernel, longest first. %zu kernel%s: median "
                      "<b>",
                      count, count == 1 ? "" : "s");
    bench_page_number(page, median, 1);
    bench_page_markup(page, " ms</b>, longest <b>");
    bench_page_number(page, longest, 1);
    bench_page_markup(page, " ms</b>.</p>\n<div class=\"card narrow\">\n");
    const size_t open = count > COMPILES_OPEN ? COMPILES_OPEN : count;
    put_compiles(page, compiles, open, longest);
    if (open < count) {
        bench_page_markup(page, "<details><summary class=\"muted\">%zu more</summary>\n", count - open);
        put_compiles(page, compiles + open, count - open, longest);
        bench_page_markup(page, "</details>\n");
    }
    bench_page_markup(page, "</div>\n");
    free(compiles);
}
