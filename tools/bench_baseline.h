/* A baseline of jitgemm-bench: the results of several processes in (bench_result.h), what each measured, side by side, out.
 *
 *     {
 *       "format": "jitgemm-bench baseline", "format_version": 1,
 *       "version": "0.1.0", "commands": [...], "started": "...", "environment": {...},    as the first process gave them
 *       "runs": 10,
 *       "measures": [{"name": "common16 64:f16 resident", "unit": "us", "values": [2.1, 2.0, ...]}, ...]
 *     }
 *
 * A measure is something of which less is better and of which a process gives one value, a median:
 *     "SUITE PROBLEM DATA", or "SUITE/LIST PROBLEM DATA" where these differ: our time for a row, in us
 *     "COMMAND: NAME": a series, in its unit
 *     "compile KERNEL": in ms
 * On the software GPU there is only the first, as the number of executed instructions. What a process refused to measure, or
 * what is not above 0 (a difference of two times may be), gives no value. Where a process gives a name twice, the second one
 * is "NAME #2". */
#ifndef JG_TOOLS_BENCH_BASELINE_H
#define JG_TOOLS_BENCH_BASELINE_H

#include <stddef.h>

#include <cjson/cJSON.h>

/* One without any runs; null if memory ran out. */
cJSON *bench_baseline_create(void);

/* Adds what one process printed. Returns 0, or -1 with the reason in `why`; the baseline is then good for nothing more. */
int bench_baseline_add(cJSON *baseline, const char *text, char *why, size_t size);

/* How many runs were added. */
size_t bench_baseline_runs(const cJSON *baseline);

/* Null, with a reason that names the path, unless the file holds a whole baseline that this program understands. */
cJSON *bench_baseline_read(const char *path, char *why, size_t size);

/* Writes under another name first, so that what was there stays until the new file is whole and on the disk. Returns 0, or -1
 * with a reason that names the path. */
int bench_baseline_write(const char *path, const cJSON *baseline, char *why, size_t size);

/* Whether bench_baseline_write can be expected to work; for before measuring. Returns as that does. */
int bench_baseline_check_path(const char *path, char *why, size_t size);

#endif
