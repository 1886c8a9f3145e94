/* Histograms of calls' times, above each other on one logarithmic axis of time. See bench_plot.h.
 *
 * Numbers are drawn logarithmically too: a tail of single calls is what these plots are for. */
#include "bench_plot.h"

#include "bench_axis.h"
#include "bench_result.h"
#include "bench_tables.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#define WIDTH 440
#define LEFT 46
#define RIGHT 400      /* the last mark's name stands right of it */
#define BARS 84        /* height of a row's bars */
#define LABEL 15       /* height of a line of text */
#define ROWS_MOST 8    /* more would be a wall; the table has all of them */
#define ONE_CALL 0.35  /* a bin of one call is as high as 10^0.35 times would be above it */

static const struct mark {
    const char *figure;
    double width; /* of its name */
} marks[] = {{"p50", 26}, {"p99", 26}, {"p99.9", 38}, {"max", 26}};
enum { MARKS = sizeof marks / sizeof *marks };

typedef struct plot {
    bench_axis x;
    double most; /* calls in a bin */
    size_t rows, left_out;
} plot;

/* A bin's lower edge and number: 0 if it is none. */
static int bin_of(const cJSON *bin, double *edge, double *count)
{
    if (!cJSON_IsArray(bin)) return 0;
    *edge = json_value(cJSON_GetArrayItem(bin, 0));
    *count = json_value(cJSON_GetArrayItem(bin, 1));
    return *edge > 0 && *count >= 1;
}

static int has_histogram(const cJSON *series)
{
    double edge, count;
    for (const cJSON *bin = json_first(series, "histogram"); bin; bin = bin->next)
        if (bin_of(bin, &edge, &count)) return 1;
    return 0;
}

static plot make_plot(const cJSON *first)
{
    plot p = {.most = 1};
    double low = NAN, high = NAN, edge, count;
    for (const cJSON *s = first; s; s = bench_series_next(s)) {
        if (!has_histogram(s)) continue;
        if (p.rows == ROWS_MOST) {
            p.left_out++;
            continue;
        }
        p.rows++;
        for (const cJSON *bin = json_first(s, "histogram"); bin; bin = bin->next) {
            if (!bin_of(bin, &edge, &count)) continue;
            low = fmin(low, edge);
            high = fmax(high, edge * BENCH_HISTOGRAM_STEP);
            p.most = fmax(p.most, count);
        }
    }
    if (p.rows) p.x = bench_axis_make(low, high, LEFT, RIGHT);
    return p;
}

static double height(const plot *p, double count)
{
    return BARS * (log10(count) + ONE_CALL) / (log10(p->most) + ONE_CALL);
}

/* Lines for the numbers of calls: powers of 10, every second or third one if there are many. */
static void put_counts_axis(bench_page *page, const plot *p, double bottom)
{
    char label[32];
    const int powers = (int)log10(p->most), step = powers / 3 + 1;
    for (int power = 0; power <= powers; power += step) {
        const double y = bottom - height(p, pow(10, power));
        bench_page_markup(page, "<line class=\"grid\" x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\"/>", LEFT, y, RIGHT, y);
        bench_page_markup(page, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n", LEFT - 6, y + 4,
                          bench_axis_label(pow(10, power), label, sizeof label));
    }
}

static void put_bins(bench_page *page, const plot *p, const cJSON *series, double bottom, const char *unit)
{
    const int is_peer = strcasestr(json_text(series, "name"), "cublas") != NULL;
    double edge, count;
    for (const cJSON *bin = json_first(series, "histogram"); bin; bin = bin->next) {
        if (!bin_of(bin, &edge, &count)) continue;
        const double end = edge * BENCH_HISTOGRAM_STEP;
        if (end <= p->x.low || edge > p->x.high) continue;
        const double left = bench_axis_place(&p->x, fmax(edge, p->x.low)), right = bench_axis_place(&p->x, fmin(end, p->x.high));
        bench_page_markup(page, "<rect class=\"bin c%d\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"><title>", is_peer,
                          left + 0.3, bottom - height(p, count), fmax(right - left - 0.6, 0.6), height(p, count));
        bench_page_markup(page, "%.4g\xE2\x80\x93%.4g ", edge, end);
        bench_page_text(page, unit);
        bench_page_markup(page, ": ");
        bench_page_number(page, count, 0);
        bench_page_markup(page, "</title></rect>\n");
    }
}

/* Names of marks stand right of their lines. Where a name would meet the next mark's line, it stands higher, so that no line
 * crosses a name. Returns how many lines of text that takes. */
static int arrange(const plot *p, const cJSON *series, double *x, int *level)
{
    int lines = 0;
    for (int i = MARKS - 1; i >= 0; i--) {
        const double value = json_number(series, marks[i].figure);
        x[i] = value > 0 && bench_axis_holds(&p->x, value) ? bench_axis_place(&p->x, value) : NAN;
        level[i] = 0;
        if (isnan(x[i])) continue;
        for (int j = i + 1; j < MARKS; j++)
            if (x[i] + marks[i].width + 6 > x[j] && level[j] >= level[i]) level[i] = level[j] + 1;
        if (level[i] >= lines) lines = level[i] + 1;
    }
    return lines;
}

/* Draws one row below `top` and returns where the next one may begin. Without a page it only measures. */
static double put_row(bench_page *page, const plot *p, const cJSON *series, double top, const char *unit)
{
    double x[MARKS];
    int level[MARKS];
    const int lines = arrange(p, series, x, level);
    const double marks_bottom = top + LABEL + 4 + lines * LABEL, bottom = marks_bottom + 2 + BARS;
    if (!page) return bottom + 16;
    bench_page_markup(page, "<text class=\"strong\" x=\"%d\" y=\"%.1f\">", LEFT, top + LABEL - 3);
    bench_page_text(page, json_text(series, "name"));
    bench_page_markup(page, "</text>\n");
    put_counts_axis(page, p, bottom);
    put_bins(page, p, series, bottom, unit);
    bench_page_markup(page, "<line class=\"axis\" x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\"/>\n", LEFT, bottom, RIGHT, bottom);
    for (int i = 0; i < MARKS; i++) {
        if (isnan(x[i])) continue;
        const double y = marks_bottom - level[i] * LABEL;
        bench_page_markup(page, "<line class=\"tick\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>"
                                "<text x=\"%.1f\" y=\"%.1f\">%s</text>\n",
                          x[i], y - 10, x[i], bottom, x[i] + 4, y - 1, marks[i].figure);
    }
    return bottom + 16;
}

static void put_time_axis(bench_page *page, const plot *p, double y, const char *unit)
{
    double ticks[BENCH_AXIS_TICKS];
    char label[32];
    const size_t count = bench_axis_ticks(&p->x, 7, ticks);
    for (size_t i = 0; i < count; i++) {
        const double x = bench_axis_place(&p->x, ticks[i]);
        bench_page_markup(page, "<line class=\"axis\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>", x, y - 16, x, y - 11);
        bench_page_markup(page, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%s</text>\n", x, y + 3,
                          bench_axis_label(ticks[i], label, sizeof label));
    }
    bench_page_markup(page, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"middle\">", (LEFT + RIGHT) / 2, y + 21);
    bench_page_text(page, unit);
    bench_page_markup(page, "</text>\n");
}

void bench_write_histograms(bench_page *page, const cJSON *first)
{
    const char *unit = json_text(first, "unit");
    const plot p = make_plot(first);
    if (!p.rows) return;
    double y = 0;
    size_t rows = 0;
    for (const cJSON *s = first; s && rows < p.rows; s = bench_series_next(s)) {
        if (!has_histogram(s)) continue;
        y = put_row(NULL, &p, s, y, unit);
        rows++;
    }
    bench_page_markup(
        page, "<figure><div class=\"plot\"><svg viewBox=\"0 0 %d %.0f\" role=\"img\"><title>Distribution of times: ", WIDTH,
        y + 28);
    bench_page_text(page, json_text(first, "command"));
    bench_page_markup(page,
                      "</title><desc>%zu histograms on one logarithmic axis of time; numbers of calls are logarithmic too. The "
                      "table beside has the percentiles.</desc>\n",
                      p.rows);
    y = 0;
    rows = 0;
    for (const cJSON *s = first; s && rows < p.rows; s = bench_series_next(s)) {
        if (!has_histogram(s)) continue;
        y = put_row(page, &p, s, y, unit);
        rows++;
    }
    put_time_axis(page, &p, y, unit);
    bench_page_markup(page, "</svg></div>\n<figcaption>Number of calls (logarithmic) by their time (logarithmic).");
    if (p.left_out) bench_page_markup(page, " %zu more are only in the table.", p.left_out);
    bench_page_markup(page, "</figcaption></figure>\n");
}
