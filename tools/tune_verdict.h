/* Which of the measured plans wins, and why the planner's model thought otherwise: a race in, a verdict out. */
#ifndef JG_TOOLS_TUNE_VERDICT_H
#define JG_TOOLS_TUNE_VERDICT_H

#include "bench_race.h"
#include "tune_list.h"

/* A plan must be at least so many times as fast as the model's choice to take its place: less is not worth another kernel. */
#define TUNE_LEAST_GAIN 1.01

/* Fills in what was found, and returns the winner's place in race->all; race->count if no plan has a right result.
 *
 * The fastest with a right result wins over the model's choice if its median is better by TUNE_LEAST_GAIN, and that by more than
 * chance (BENCH_RACE_CHANCE, Mann-Whitney over samples that were taken in turns); else the model's choice wins, if it is right.
 * software: instructions are compared, which do not vary. measured and all are left alone. */
size_t tune_judge(const bench_race_result *race, int software, tune_found *found);

/* How the winner differs from the model's choice, and what the model thought of it, e.g. "tile 64x64 (was 128x64), 2 slices (was 1),
 * 0.97 waves (was 1.94); the model took it for 1.08x slower". */
void tune_explain(const jg_plan_details *planned, const jg_plan_details *winner, char *text, size_t size);

#endif
