/* A cmocka fixture: a scratch folder for a test, or for all of a program. */
#ifndef JG_TESTS_SCRATCH_FIXTURE_H
#define JG_TESTS_SCRATCH_FIXTURE_H

#include "scratch.h"

static char folder[4096];

static inline int make_folder(void **state)
{
    (void)state;
    scratch_make(folder);
    return 0;
}

static inline int remove_folder(void **state)
{
    (void)state;
    scratch_remove(folder);
    return 0;
}

#endif
