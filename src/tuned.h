/* Recorded plans: what was measured to be the fastest for a problem at this place goes before the planner's model.
 *
 * In: rows of the factory and cache files, read once at jg_open, and what is recorded since. Out: plans as plan_choose gives them, of
 * one numeric class whatever the form and the access. A first call looks here: no file is touched, nothing is hashed where nothing is
 * recorded, and the lock is held for moments only. Thread-safe. */
#ifndef JG_TUNED_H
#define JG_TUNED_H

#include "images.h"
#include "tuned_row.h"

typedef struct tuned tuned;

/* What is remembered of a recorded plan. */
typedef struct tuned_plan {
    tuned_value value;
    double us, planned_us;  /* 0: unknown */
    int64_t created;        /* Unix seconds; 0: unknown */
} tuned_plan;

tuned *tuned_create(void);      /* null if out of memory */
void tuned_destroy(tuned *t);   /* null is allowed */

/* Takes in what the files have for a place; the cache file's rows go before the factory's. A fault of a file is logged once. */
void tuned_read(tuned *t, images *files, const char *place);

/* Takes in one plan; without memory for it, it is forgotten. key: as tuned_key_of gives it. */
void tuned_put(tuned *t, const problem_key *key, const tuned_plan *what);

size_t tuned_count(const tuned *t);

/* What a problem is recorded under in this form: its dynamic dimensions stand for all sizes between the same powers of two, and what
 * follows from them is left out. */
problem_key tuned_key_of(const problem_key *key, jg_form form);

/* The plan recorded for a problem in this form. Returns 0 if there is none; it may be one that is not legal any more. */
int tuned_find(tuned *t, const problem_key *key, jg_form form, tuned_plan *out);

/* Whether a kernel is the recorded one of its problem. */
int tuned_is(tuned *t, const problem_key *key, const kernel_spec *spec);

/* In how many slices a problem is summed: plan_slices, unless a plan of other bits was asked to be recorded. 0: any. */
int tuned_slices(tuned *t, const problem_key *key, const limits *limits);

/* As plan_choose and plan_choose_both, the recorded plan first. */
jg_status tuned_choose(tuned *t, const problem_key *key, jg_form form, const limits *limits, plan *out);
jg_status tuned_choose_both(tuned *t, const problem_key *key, const limits *limits, plan *own, plan *generic, int *has_generic);

#endif
