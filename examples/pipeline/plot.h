/* The times of all frames as a picture: SVG that needs nothing else, to be read on a light and on a dark page. */
#ifndef PIPELINE_PLOT_H
#define PIPELINE_PLOT_H

#include <stdio.h>

#include "report.h"

/* Frame time (ms, logarithmic) over the time of arrival (s), a series for each run, changes of size as hairlines, the budget as a
 * line of its own. Dropped frames are bars at the top. */
void plot_write(FILE *out, const run_setting *setting, const run_record *runs, int count);

#endif
