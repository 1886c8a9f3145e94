/* Roofline plots and histograms, as SVG. See bench_plot.h.
 *
 * A plot is WIDTH units wide, about the width of a phone, so that its text is near its own size there. Colours are the style
 * sheet's; shapes say the same as colours. */
#include "bench_plot.h"

#include "bench_axis.h"
#include "bench_group.h"
#include "bench_result.h"
#include "bench_tables.h"

#include <math.h>
#include <string.h>

#define WIDTH 440
#define LEFT 50
#define SUITES 6 /* as many have a shape and a colour of their own */

/* ---- axes ---- */

/* A line, in the class's style. */
static void put_line(bench_page *page, const char *class, double x1, double y1, double x2, double y2)
{
    bench_page_markup(page, "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", class, x1, y1, x2, y2);
}

static void put_x_axis(bench_page *page, const bench_axis *x, double top, double bottom, const char *title)
{
    double ticks[BENCH_AXIS_TICKS];
    char label[32];
    const size_t count = bench_axis_ticks(x, 8, ticks);
    for (size_t i = 0; i < count; i++) {
        const double at = bench_axis_place(x, ticks[i]);
        put_line(page, "grid", at, top, at, bottom);
        bench_page_markup(page, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%s</text>\n", at, bottom + 17,
                          bench_axis_label(ticks[i], label, sizeof label));
    }
    put_line(page, "axis", x->from, bottom, x->to, bottom);
    bench_page_markup(page, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">", (x->from + x->to) / 2, bottom + 35);
    bench_page_text(page, title);
    bench_page_markup(page, "</text>\n");
}

static void put_y_axis(bench_page *page, const bench_axis *y, double left, double right, size_t most)
{
    double ticks[BENCH_AXIS_TICKS];
    char label[32];
    const size_t count = bench_axis_ticks(y, most, ticks);
    for (size_t i = 0; i < count; i++) {
        const double at = bench_axis_place(y, ticks[i]);
        put_line(page, "grid", left, at, right, at);
        bench_page_markup(page, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n", left - 6, at + 4,
                          bench_axis_label(ticks[i], label, sizeof label));
    }
}

/* ---- roofline ---- */

/* The largest ceiling of a name; NaN if there is none above 0. */
static double ceiling(const cJSON *result, const char *name, size_t length)
{
    double most = NAN;
    for (const cJSON *c = json_first(result, "ceilings"); c; c = c->next) {
        const char *its = json_text(c, "name");
        const double value = json_number(c, "value");
        if (strlen(its) == length && strncmp(its, name, length) == 0 && value > 0) most = fmax(most, value);
    }
    return most;
}

/* FLOP per byte and TFLOP/s of a row; 0 if it has none. */
static int point_of(const cJSON *row, double *intensity, double *tflops)
{
    const double flops = json_number(row, "flops"), bytes = json_number(row, "bytes");
    const double us = bench_median(row, BENCH_OURS);
    if (!(flops > 0 && bytes > 0 && us > 0)) return 0;
    *intensity = flops / bytes;
    *tflops = flops / us / 1e6;
    return isfinite(*intensity) && isfinite(*tflops) && *intensity > 0 && *tflops > 0;
}

int bench_has_roofline(const cJSON *result)
{
    double intensity, tflops;
    for (const cJSON *row = json_first(result, "rows"); row; row = row->next)
        if (point_of(row, &intensity, &tflops)) return 1;
    return 0;
}

/* What one plot is of. */
typedef struct roofline {
    const char *type;
    const char *suites[SUITES]; /* of the whole document, so that all plots agree; the last one stands for all further ones */
    int has[SUITES];            /* whether this plot has points of it */
    size_t suite_count, points;
    double memory, l2, compute; /* GB/s, GB/s, TFLOP/s; NaN: unknown */
    bench_axis x, y;
} roofline;

static size_t suite_of(const roofline *r, const char *suite)
{
    for (size_t i = 0; i < r->suite_count; i++)
        if (strcmp(r->suites[i], suite) == 0) return i;
    return r->suite_count < SUITES ? r->suite_count : SUITES - 1;
}

static void find_suites(roofline *r, const cJSON *result)
{
    double unused[2];
    for (const cJSON *row = json_first(result, "rows"); row; row = row->next) {
        const char *suite = json_text(row, "suite");
        if (point_of(row, &unused[0], &unused[1]) && suite_of(r, suite) == r->suite_count) r->suites[r->suite_count++] = suite;
    }
}

/* Finds ceilings, suites and axes of a type. */
static roofline make_roofline(const cJSON *result, const char *type)
{
    roofline r = {.type = type, .memory = ceiling(result, "memory", 6), .l2 = ceiling(result, "l2", 2),
                  .compute = ceiling(result, type, strlen(type))};
    for (const cJSON *row = json_first(result, "rows"); row && isnan(r.compute); row = row->next) {
        const char *name = json_text(row, "ceiling");
        if (strcmp(json_text(row, "type"), type) == 0 && *name) r.compute = ceiling(result, name, strlen(name));
    }
    if (isnan(r.compute)) r.compute = ceiling(result, type, strcspn(type, "-.:"));
    find_suites(&r, result);
    double x_low = NAN, x_high = NAN, y_low = NAN, y_high = NAN, intensity, tflops;
    for (const cJSON *row = json_first(result, "rows"); row; row = row->next) {
        if (strcmp(json_text(row, "type"), type) != 0 || !point_of(row, &intensity, &tflops)) continue;
        r.has[suite_of(&r, json_text(row, "suite"))] = 1;
        r.points++;
        x_low = fmin(x_low, intensity);
        x_high = fmax(x_high, intensity);
        y_low = fmin(y_low, tflops);
        y_high = fmax(y_high, tflops);
    }
    /* The ridge, where memory meets arithmetic, belongs to the picture unless it is far away. */
    const double ridge = r.compute * 1000 / r.memory;
    if (ridge < 30 * x_high) x_high = fmax(x_high, ridge * 1.5);
    if (r.compute < 1000 * y_high) y_high = fmax(y_high, r.compute);
    r.x = bench_axis_make(x_low / 1.6, x_high * 1.6, LEFT, WIDTH - 12);
    r.y = bench_axis_make(y_low / 1.8, y_high * 1.9, 296, 12);
    return r;
}

/* A slope of so many GB/s, up to the flat ceiling or the edge; its name stands along it, `dy` below. */
static void put_slope(bench_page *page, const roofline *r, double gb_per_s, const char *class, int dy, const char *name)
{
    if (isnan(gb_per_s)) return;
    const double top = isnan(r->compute) ? r->y.high : fmin(r->compute, r->y.high);
    const double x1 = fmax(r->x.low, r->y.low * 1000 / gb_per_s), x2 = fmin(r->x.high, top * 1000 / gb_per_s);
    if (!(x1 < x2)) return;
    const double left = bench_axis_place(&r->x, x1), right = bench_axis_place(&r->x, x2);
    const double low = bench_axis_place(&r->y, x1 * gb_per_s / 1000), high = bench_axis_place(&r->y, x2 * gb_per_s / 1000);
    const double degrees = atan2(high - low, right - left) * 180 / 3.14159265358979;
    put_line(page, class, left, low, right, high);
    const double length = hypot(right - left, high - low), at = length > 160 ? 0.3 : 0.12;
    if (length < 60) return;
    bench_page_markup(page, "<text class=\"halo\" transform=\"translate(%.1f %.1f) rotate(%.1f)\" dy=\"%d\">%s</text>\n",
                      left + at * (right - left), low + at * (high - low), degrees, dy, name);
}

static void put_ceilings(bench_page *page, const roofline *r)
{
    put_slope(page, r, r->memory, "roof memory", 15, "memory");
    put_slope(page, r, r->l2, "roof l2", -5, "L2");
    if (isnan(r->compute) || !bench_axis_holds(&r->y, r->compute)) return;
    const double y = bench_axis_place(&r->y, r->compute), fastest = fmax(r->memory, r->l2);
    const double from = isnan(fastest) ? r->x.low : fmin(fmax(r->compute * 1000 / fastest, r->x.low), r->x.high);
    put_line(page, "roof", bench_axis_place(&r->x, from), y, r->x.to, y);
    bench_page_markup(page, "<text class=\"halo\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">arithmetic, ", r->x.to, y - 6);
    bench_page_text(page, r->type);
    bench_page_markup(page, "</text>\n");
}

/* A shape for each suite, about as large as each other; around a place. */
static void put_mark(bench_page *page, size_t suite, double x, double y)
{
    static const char *const shapes[SUITES] = {
        "m-4.2 0a4.2 4.2 0 1 0 8.4 0a4.2 4.2 0 1 0 -8.4 0z",
        "m-3.8 -3.8h7.6v7.6h-7.6z",
        "m0 -5l4.8 8.4h-9.6z",
        "m0 -5.4l5.4 5.4l-5.4 5.4l-5.4 -5.4z",
        "m0 5l4.8 -8.4h-9.6z",
        "m-1.7 -5h3.4v3.3h3.3v3.4h-3.3v3.3h-3.4v-3.3h-3.3v-3.4h3.3z",
    };
    bench_page_markup(page, "<path class=\"point c%zu\" d=\"M%.1f %.1f%s\"", suite, x, y, shapes[suite]);
}

static void put_points(bench_page *page, const cJSON *result, const roofline *r)
{
    double intensity, tflops;
    for (const cJSON *row = json_first(result, "rows"); row; row = row->next) {
        if (strcmp(json_text(row, "type"), r->type) != 0 || !point_of(row, &intensity, &tflops)) continue;
        if (!bench_axis_holds(&r->x, intensity) || !bench_axis_holds(&r->y, tflops)) continue;
        put_mark(page, suite_of(r, json_text(row, "suite")), bench_axis_place(&r->x, intensity),
                 bench_axis_place(&r->y, tflops));
        bench_page_markup(page, "><title>");
        bench_size_text(page, row);
        bench_page_markup(page, ": ");
        bench_page_number(page, tflops, tflops < 1 ? 3 : 1);
        bench_page_markup(page, " TFLOP/s, ");
        bench_page_number(page, intensity, 1);
        bench_page_markup(page, " FLOP per byte</title></path>\n");
    }
}

static void put_roofline_legend(bench_page *page, const roofline *r)
{
    bench_page_markup(page, "<ul class=\"legend\">\n");
    for (size_t i = 0; i < r->suite_count; i++) {
        if (!r->has[i]) continue;
        bench_page_markup(page, "<li><svg viewBox=\"-7 -7 14 14\" aria-hidden=\"true\">");
        put_mark(page, i, 0, 0);
        bench_page_markup(page, "/></svg>");
        bench_page_text(page, *r->suites[i] ? r->suites[i] : "sizes");
        if (i + 1 == SUITES) bench_page_markup(page, " and others");
        bench_page_markup(page, "</li>\n");
    }
    bench_page_markup(page, "</ul>\n<figcaption>");
    const struct { const char *name, *unit; double value; } ceilings[] = {
        {"Memory", "GB/s", r->memory}, {"L2", "GB/s", r->l2}, {"Arithmetic", "TFLOP/s", r->compute}};
    for (size_t i = 0, said = 0; i < sizeof ceilings / sizeof *ceilings; i++) {
        if (isnan(ceilings[i].value)) continue;
        bench_page_markup(page, "%s%s ", said++ ? ", " : "", ceilings[i].name);
        bench_page_number(page, ceilings[i].value, ceilings[i].value < 100 ? 1 : 0);
        bench_page_markup(page, " %s", ceilings[i].unit);
    }
    bench_page_markup(page, "</figcaption>\n");
}

static void put_roofline(bench_page *page, const cJSON *result, const char *type, size_t number)
{
    const roofline r = make_roofline(result, type);
    bench_page_markup(page, "<figure class=\"card\"><h3>");
    bench_page_text(page, *type ? type : "all");
    bench_page_markup(page, "</h3>\n<div class=\"plot\"><svg viewBox=\"0 0 %d 340\" role=\"img\" aria-labelledby=\"rt%zu rd%zu\">"
                            "<title id=\"rt%zu\">Roofline of ", WIDTH, number, number, number);
    bench_page_text(page, type);
    bench_page_markup(page,
                      "</title><desc id=\"rd%zu\">%zu products: TFLOP/s reached over FLOP per byte, both logarithmic, below the "
                      "ceilings of memory and arithmetic. The table of all measurements has the numbers.</desc>\n",
                      number, r.points);
    put_y_axis(page, &r.y, r.x.from, r.x.to, 8);
    put_x_axis(page, &r.x, r.y.to, r.y.from, "FLOP per byte");
    bench_page_markup(page, "<text transform=\"translate(12 %.0f) rotate(-90)\" text-anchor=\"middle\">TFLOP/s</text>\n",
                      (r.y.from + r.y.to) / 2);
    put_ceilings(page, &r);
    put_points(page, result, &r);
    bench_page_markup(page, "</svg></div>\n");
    put_roofline_legend(page, &r);
    bench_page_markup(page, "</figure>\n");
}

/* Whether a row of this type stands before this one: then its plot is drawn. */
static int type_was_before(const cJSON *result, const cJSON *row)
{
    double unused[2];
    for (const cJSON *other = json_first(result, "rows"); other != row; other = other->next)
        if (point_of(other, &unused[0], &unused[1]) &&
            strcmp(json_text(other, "type"), json_text(row, "type")) == 0)
            return 1;
    return 0;
}

void bench_write_rooflines(bench_page *page, const cJSON *result)
{
    double unused[2];
    size_t number = 0;
    bench_page_markup(page, "<p class=\"muted\">What each product reached (higher is better) below what was measured as possible "
                            "on this GPU. A point above the slope of the memory had its operands in a cache.</p>\n"
                            "<div class=\"cards\">\n");
    for (const cJSON *row = json_first(result, "rows"); row; row = row->next)
        if (point_of(row, &unused[0], &unused[1]) && !type_was_before(result, row))
            put_roofline(page, result, json_text(row, "type"), number++);
    bench_page_markup(page, "</div>\n");
}
