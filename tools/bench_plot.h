/* The plots of the page, as SVG inside it: what the hardware allows and what was reached, and how calls' times are distributed.
 *
 * Rooflines are in bench_plot.c, histograms in bench_plot_times.c. */
#ifndef JG_TOOLS_BENCH_PLOT_H
#define JG_TOOLS_BENCH_PLOT_H

#include "bench_page.h"

/* Nonzero if there is a row with a time, operations and bytes. */
int bench_has_roofline(const cJSON *result);

/* A roofline plot for each element type: TFLOP/s reached over FLOP per byte, both logarithmic. */
void bench_write_rooflines(bench_page *page, const cJSON *result);

/* The histograms of the series of this one's command and unit, above each other on one axis of time. Nothing if none has one. */
void bench_write_histograms(bench_page *page, const cJSON *first);

#endif
