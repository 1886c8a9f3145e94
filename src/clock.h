/* The clock that durations and deadlines are taken from: it never goes back. */
#ifndef JG_CLOCK_H
#define JG_CLOCK_H

#include <time.h>

static inline double clock_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

#endif
