/* Logarithmic axes of the page's plots. See bench_axis.h. */
#include "bench_axis.h"

#include <math.h>
#include <stdio.h>

#define LEAST_SPAN 4.0  /* times: a narrower axis would show noise as if it were much */
#define MOST_SPAN 1e9   /* times: one odd value must not press all others together */

bench_axis bench_axis_make(double low, double high, double from, double to)
{
    bench_axis axis = {low, high, from, to};
    if (axis.high < axis.low * LEAST_SPAN) {
        const double middle = sqrt(axis.low) * sqrt(axis.high);
        axis.low = middle / sqrt(LEAST_SPAN);
        axis.high = middle * sqrt(LEAST_SPAN);
    }
    if (axis.high > axis.low * MOST_SPAN) axis.low = axis.high / MOST_SPAN;
    return axis;
}

double bench_axis_place(const bench_axis *axis, double value)
{
    const double part = (log(value) - log(axis->low)) / (log(axis->high) - log(axis->low));
    return axis->from + part * (axis->to - axis->from);
}

int bench_axis_holds(const bench_axis *axis, double value)
{
    return value >= axis->low && value <= axis->high;
}

size_t bench_axis_ticks(const bench_axis *axis, size_t most, double *ticks)
{
    static const struct { double factors[8]; int count, step; } kinds[] = {
        {{1, 1.5, 2, 3, 4, 5, 6, 8}, 8, 1}, {{1, 2, 5}, 3, 1}, {{1}, 1, 1}, {{1}, 1, 2}, {{1}, 1, 3}, {{1}, 1, 4}, {{1}, 1, 6}};
    const int first = (int)floor(log10(axis->low)), last = (int)ceil(log10(axis->high));
    if (most > BENCH_AXIS_TICKS) most = BENCH_AXIS_TICKS;
    for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
        size_t count = 0;
        int fits = 1;
        for (int power = first; power <= last && fits; power++) {
            if (power % kinds[kind].step != 0) continue;
            for (int i = 0; i < kinds[kind].count && fits; i++) {
                const double tick = kinds[kind].factors[i] * pow(10, power);
                if (!bench_axis_holds(axis, tick)) continue;
                fits = count < most;
                if (fits) ticks[count++] = tick;
            }
        }
        if (fits) return count;
    }
    return 0;
}

const char *bench_axis_label(double tick, char *label, size_t size)
{
    if (tick >= 1e12 || tick < 1e-4) snprintf(label, size, "%.0e", tick);
    else if (tick >= 1e9) snprintf(label, size, "%gG", tick / 1e9);
    else if (tick >= 1e6) snprintf(label, size, "%gM", tick / 1e6);
    else if (tick >= 1e3) snprintf(label, size, "%gk", tick / 1e3);
    else snprintf(label, size, "%g", tick);
    return label;
}
