/* A logarithmic axis of a plot: values in, places in the SVG out, and the round numbers that are worth a line and a label. */
#ifndef JG_TOOLS_BENCH_AXIS_H
#define JG_TOOLS_BENCH_AXIS_H

#include <stddef.h>

#define BENCH_AXIS_TICKS 16

/* From `low` at `from` to `high` at `to`; both above 0, and not the same. */
typedef struct bench_axis {
    double low, high, from, to;
} bench_axis;

/* The axis for values from low to high (any numbers above 0): wide enough to be one, narrow enough for a plot. */
bench_axis bench_axis_make(double low, double high, double from, double to);

/* Place of a value, which need not lie within; the value must be above 0. */
double bench_axis_place(const bench_axis *axis, double value);
int bench_axis_holds(const bench_axis *axis, double value);

/* Puts up to `most` (at most BENCH_AXIS_TICKS) round values that lie within into `ticks` and returns how many: several of each
 * power of 10 if there is room, else 1, 2 and 5, else only the powers, or every second, third ... of them. */
size_t bench_axis_ticks(const bench_axis *axis, size_t most, double *ticks);

/* "0.05", "20", "5k", "2M". */
const char *bench_axis_label(double tick, char *label, size_t size);

#endif
