/* Sums of tuning: a list in, one by one its groups, each type by itself, out. */
#ifndef JG_TOOLS_TUNE_GROUPS_H
#define JG_TOOLS_TUNE_GROUPS_H

#include "bench_label.h"
#include "tune_list.h"

typedef struct tune_group {
    const tune_list *list;
    size_t number, row;          /* where the group's list is, and how far its types have been gone through */
    const char *name;
    char type[BENCH_LABEL_BYTES];
    size_t sizes, recorded, faster; /* faster: than the model's choice */
    double mean;                 /* geometric, of the gains; 0: none is known */
    const tune_problem *best;    /* with the largest gain; null: none is known */
} tune_group;

void tune_group_begin(const tune_list *list, tune_group *group);

/* Goes on to the next one. Returns 0 after the last. */
int tune_group_next(tune_group *group);

#endif
