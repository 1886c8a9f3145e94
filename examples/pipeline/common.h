/* What the parts of the video pipeline share: the clock, and the end of a program that cannot go on. */
#ifndef PIPELINE_COMMON_H
#define PIPELINE_COMMON_H

#include "jitgemm.h"

/* Ends the program if a call of jitgemm that must work has failed, with its text. */
#define CHECK(call)                                                                         \
    do {                                                                                    \
        const jg_status check_status = (call);                                              \
        if (check_status != JG_OK) fail("%s: %s", jg_status_name(check_status), jg_last_error()); \
    } while (0)

/* Prints "20_video_pipeline: TEXT" to standard error and exits with status 1; what atexit was told is cleaned up. */
__attribute__((format(printf, 1, 2), noreturn)) void fail(const char *format, ...);

/* Memory that is 0, or the end of the program. */
void *allocate(size_t count, size_t bytes);

/* CLOCK_MONOTONIC, ms. */
double now_ms(void);

#endif
