/* Error reporting inside the library: one thread-local text beside the status code. */
#ifndef JG_STATUS_H
#define JG_STATUS_H

#include "jitgemm.h"

/* Sets the calling thread's error text (printf style) and returns `status`, so that a failure is one line:
 *     return status_set(JG_ERR_NULL, "jg_open: context is null");  */
jg_status status_set(jg_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Puts printf-style text in front of the current error text and returns `status`. */
jg_status status_prefix(jg_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The calling thread's error text, kept over work that may fail and be made good: jg_last_error speaks of failed calls only. */
typedef struct status_text {
    char text[4096];
} status_text;
void status_save(status_text *saved);
void status_restore(const status_text *saved);

#define RETURN_IF_ERROR(expression)              \
    do {                                         \
        jg_status status_ = (expression);        \
        if (status_ != JG_OK) return status_;    \
    } while (0)

#endif
