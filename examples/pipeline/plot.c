/* See plot.h. */
#include "plot.h"

#include <math.h>

enum { WIDTH = 960, HEIGHT = 460, LEFT = 66, RIGHT = 944, TOP = 92, BOTTOM = 404 };

/* Seconds across, ms (logarithmic) up. */
typedef struct axes {
    double seconds, low_ms, high_ms;
} axes;

static double x_of(const axes *a, double seconds)
{
    return LEFT + (RIGHT - LEFT) * seconds / a->seconds;
}

static double y_of(const axes *a, double ms)
{
    const double inside = fmin(fmax(ms, a->low_ms), a->high_ms);
    return BOTTOM - (BOTTOM - TOP) * log10(inside / a->low_ms) / log10(a->high_ms / a->low_ms);
}

/* Whole decades around all times and the budget. */
static axes find_axes(const run_record *runs, int count)
{
    double low = INFINITY, high = 0, seconds = 0;
    for (int i = 0; i < count; i++) {
        if (runs[i].budget_ms > 0) low = fmin(low, runs[i].budget_ms), high = fmax(high, runs[i].budget_ms * 1.5);
        for (int64_t j = 0; j < runs[i].count; j++) {
            const frame_record *f = &runs[i].frames[j];
            seconds = fmax(seconds, f->arrival_ms / 1e3);
            if (f->is_dropped || !(f->time_ms > 0)) continue;
            low = fmin(low, f->time_ms);
            high = fmax(high, f->time_ms);
        }
    }
    if (!(high > 0)) low = 1, high = 10;
    return (axes){.seconds = seconds > 0 ? seconds : 1, .low_ms = pow(10, floor(log10(low))),
                  .high_ms = pow(10, ceil(log10(high) + 1e-9))};
}

static void put_line(FILE *out, const char *class, double x1, double y1, double x2, double y2)
{
    fprintf(out, "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", class, x1, y1, x2, y2);
}

/* 1, 2 or 5 times a power of ten, for at most 10 ticks. */
static double step_of(double seconds)
{
    const double power = pow(10, floor(log10(seconds / 10)));
    const double parts = seconds / 10 / power;
    return power * (parts <= 1 ? 1 : parts <= 2 ? 2 : parts <= 5 ? 5 : 10);
}

static void put_axes(FILE *out, const axes *a)
{
    const double step = step_of(a->seconds);
    for (double ms = a->low_ms; ms <= a->high_ms * 1.001; ms *= 10) {
        put_line(out, "grid", LEFT, y_of(a, ms), RIGHT, y_of(a, ms));
        fprintf(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n", LEFT - 8, y_of(a, ms) + 4, ms);
    }
    for (double s = 0; s <= a->seconds * 1.0001; s += step)
        fprintf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%g</text>\n", x_of(a, s), BOTTOM + 18, s);
    put_line(out, "axis", LEFT, BOTTOM, RIGHT, BOTTOM);
    fprintf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">time of arrival (s); hairlines: another resolution</text>\n",
            (LEFT + RIGHT) / 2, BOTTOM + 42);
    fprintf(out, "<text transform=\"translate(16 %d) rotate(-90)\" text-anchor=\"middle\">frame time (ms)</text>\n", (TOP + BOTTOM) / 2);
}

/* Those of the first run that has frames: all runs have the same. */
static void put_changes(FILE *out, const axes *a, const run_record *runs, int count)
{
    const run_record *r = runs;
    for (int i = 0; i < count && r->count == 0; i++) r = &runs[i];
    for (int64_t j = 1; j < r->count; j++)
        if (r->frames[j].size != r->frames[j - 1].size)
            put_line(out, "change", x_of(a, r->frames[j].arrival_ms / 1e3), TOP, x_of(a, r->frames[j].arrival_ms / 1e3), BOTTOM);
}

static void put_budget(FILE *out, const axes *a, double budget_ms)
{
    if (!(budget_ms > 0)) return;
    put_line(out, "budget", LEFT, y_of(a, budget_ms), RIGHT, y_of(a, budget_ms));
    fprintf(out, "<text class=\"halo\" x=\"%d\" y=\"%.1f\" text-anchor=\"end\">budget %.1f ms</text>\n", RIGHT, y_of(a, budget_ms) - 5,
            budget_ms);
}

static const char *series_class(int number)
{
    static const char *const classes[] = {"series s0", "series s1", "series s2", "series s3"};
    return classes[number % 4];
}

/* Frames from `from` on that stand in the same half pixel of the plot, and are all dropped or none of them: [from, end). */
static int64_t end_of_column(const axes *a, const run_record *r, int64_t from)
{
    const double column = floor(2 * x_of(a, r->frames[from].arrival_ms / 1e3));
    int64_t end = from + 1;
    while (end < r->count && r->frames[end].is_dropped == r->frames[from].is_dropped &&
           (r->frames[end].is_dropped || floor(2 * x_of(a, r->frames[end].arrival_ms / 1e3)) == column))
        end++;
    return end;
}

/* The quickest and the slowest of a column's frames, which is all that can be seen of it. */
static void put_column(FILE *out, const axes *a, const run_record *r, int64_t from, int64_t end)
{
    int64_t low = from, high = from;
    for (int64_t j = from + 1; j < end; j++) {
        if (r->frames[j].time_ms < r->frames[low].time_ms) low = j;
        if (r->frames[j].time_ms > r->frames[high].time_ms) high = j;
    }
    const int64_t ends[] = {low < high ? low : high, low < high ? high : low};
    for (int i = 0; i < 1 + (low != high); i++)
        fprintf(out, "%.1f,%.1f ", x_of(a, r->frames[ends[i]].arrival_ms / 1e3), y_of(a, r->frames[ends[i]].time_ms));
}

/* A line through the times, which dropped frames interrupt; a bar at the top for those, in a row for each run; a dot on each first
 * frame of a size. */
static void put_series(FILE *out, const axes *a, const run_record *r, int number)
{
    int is_open = 0;
    for (int64_t j = 0, end; j < r->count; j = end) {
        const frame_record *f = &r->frames[j];
        const double x = x_of(a, f->arrival_ms / 1e3);
        end = end_of_column(a, r, j);
        if (f->is_dropped) {
            if (is_open) fputs("\"/>\n", out);
            fprintf(out, "<path class=\"dropped s%d solid\" d=\"M%.1f %dh%.1f\"/>\n", number, x, TOP + 4 + 7 * number,
                    fmax(0.7, x_of(a, r->frames[end - 1].arrival_ms / 1e3) - x));
        } else {
            if (!is_open) fprintf(out, "<polyline class=\"%s\" points=\"%.1f,%.1f ", series_class(number), x, y_of(a, f->time_ms));
            put_column(out, a, r, j, end); /* one frame alone becomes a dot */
        }
        is_open = !f->is_dropped;
    }
    if (is_open) fputs("\"/>\n", out);
    for (int64_t j = 0; j < r->count; j++) {
        const frame_record *f = &r->frames[j];
        if (!f->is_dropped && f->is_first)
            fprintf(out, "<circle class=\"first s%d solid\" cx=\"%.1f\" cy=\"%.1f\" r=\"2.6\"><title>first frame of %dx%d: %.3f ms</title>"
                         "</circle>\n",
                    number, x_of(a, f->arrival_ms / 1e3), y_of(a, f->time_ms), r->sizes[f->size].width, r->sizes[f->size].height,
                    f->time_ms);
    }
}

static void put_legend(FILE *out, const run_record *runs, int count)
{
    int y = 41;
    for (int i = 0; i < count; i++) {
        const run_summary s = run_summarise(&runs[i], -1);
        if (s.frames == 0) continue;
        put_line(out, series_class(i), LEFT, y, LEFT + 26, y);
        fprintf(out, "<text x=\"%d\" y=\"%d\">%s: p50 %.4g, p99 %.4g, max %.4g ms; %lld dropped%s</text>\n", LEFT + 34, y + 4,
                runs[i].policy, s.p50_ms, s.p99_ms, s.max_ms, (long long)s.dropped, s.dropped ? " (bars at the top)" : "");
        y += 17;
    }
}

static void put_style(FILE *out)
{
    fputs("<style>\n"
          "svg{--ink:#1b1f24;--paper:#ffffff;--faint:#d9dde2;--limit:#b3123a;--c0:#0b62c4;--c1:#c2410c;--c2:#4d6b0f;--c3:#7c3aa8}\n"
          "@media (prefers-color-scheme:dark){\n"
          "svg{--ink:#e6e9ec;--paper:#14171a;--faint:#3a4047;--limit:#ff7d97;--c0:#6cb0ff;--c1:#ff9a62;--c2:#b5d45c;--c3:#cf9cf2}}\n"
          ".paper{fill:var(--paper)}text{fill:var(--ink);font:13px system-ui,sans-serif}.title{font-weight:600;font-size:15px}\n"
          ".halo{paint-order:stroke;stroke:var(--paper);stroke-width:4px}\n.grid{stroke:var(--faint)}.axis{stroke:var(--ink)}\n"
          ".change{stroke:var(--ink);stroke-width:.6;opacity:.35}.budget{stroke:var(--limit);stroke-width:1.4;stroke-dasharray:7 4}\n"
          ".series{fill:none;stroke-width:1.3;stroke-linejoin:round;stroke-linecap:round}\n"
          ".s0{stroke:var(--c0)}.s1{stroke:var(--c1);stroke-dasharray:4 2}.s2{stroke:var(--c2);stroke-dasharray:1.5 2}\n"
          ".s3{stroke:var(--c3)}.solid{stroke-dasharray:none}.first{fill:var(--paper)}.dropped{stroke-width:5}\n"
          "</style>\n", out);
}

static void put_escaped(FILE *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '<') fputs("&lt;", out);
        else if (*text == '&') fputs("&amp;", out);
        else if ((unsigned char)*text >= 0x20) putc(*text, out);
    }
}

void plot_write(FILE *out, const run_setting *setting, const run_record *runs, int count)
{
    const axes a = find_axes(runs, count);
    fprintf(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" role=\"img\">\n<title>Frame times of a video pipeline "
                 "while the resolution changes</title>\n", WIDTH, HEIGHT);
    put_style(out);
    fprintf(out, "<rect class=\"paper\" width=\"%d\" height=\"%d\"/>\n<text class=\"title\" x=\"%d\" y=\"22\">Frame times, ", WIDTH, HEIGHT,
            LEFT);
    put_escaped(out, setting->device);
    fprintf(out, ", %dx%d at %.4g frames a second</text>\n", setting->width, setting->height, setting->fps);
    put_axes(out, &a);
    put_changes(out, &a, runs, count);
    for (int i = 0; i < count; i++) put_series(out, &a, &runs[i], i);
    put_budget(out, &a, count ? runs[0].budget_ms : 0);
    put_legend(out, runs, count);
    fputs("</svg>\n", out);
}
