/* Judges a baseline of jitgemm-bench against an older one: two documents of bench_baseline.h in, the "drift" object of
 * bench_result.h out. */
#ifndef JG_TOOLS_BENCH_COMPARE_H
#define JG_TOOLS_BENCH_COMPARE_H

#include <stddef.h>

#include <cjson/cJSON.h>

/* A difference is certain if its p value, adjusted for the number of comparisons, is below this. */
#define BENCH_COMPARE_P 0.01

/* Whether two environments are of one device: "device", "arch", "software" and "sms" agree, where either has them. early: `now`
 * holds only what is known before anything is measured, and what it lacks is not looked at. Returns 0, or -1 with a reason
 * that names both. */
int bench_compare_device(const cJSON *base, const cJSON *now, int early, char *why, size_t size);

/* Compares each measure that both have: "slower" or "faster" if the difference is certain and the medians are more than
 * `percent` apart. Null if memory ran out. */
cJSON *bench_compare(const cJSON *base, const cJSON *now, const char *base_path, double percent);

/* Whether both have any measure. */
int bench_compare_common(const cJSON *base, const cJSON *now);

/* The least p value, adjusted for `measures` comparisons, that a single measure can get from so many runs. */
double bench_compare_least_p(size_t base_runs, size_t now_runs, size_t measures);

#endif
