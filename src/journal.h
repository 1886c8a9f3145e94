/* The host's log and trace hooks, and where they end: nothing is told after journal_close, whichever thread is late.
 *
 * In: messages and events from any thread. Out: calls of jg_options.log, one at a time, and of jg_options.trace. */
#ifndef JG_JOURNAL_H
#define JG_JOURNAL_H

#include "jitgemm.h"

#include <pthread.h>
#include <stdarg.h>

typedef struct journal {
    pthread_mutex_t lock;    /* guards all below; held during a log call */
    jg_log_fn log;
    void *log_user;
    jg_log_level log_level;
    jg_trace_fn trace;
    void *trace_user;
} journal;

/* Takes the hooks out of resolved options. */
void journal_open(journal *j, const jg_options *options);

/* Waits for a hook that is being called from another thread under the lock; from then on all is dropped. */
void journal_close(journal *j);
void journal_destroy(journal *j);

/* Of a message with its ending 0: a problem's text and as much again for what is said of it. A longer one ends with "...". */
#define JOURNAL_TEXT_BYTES (1024 + JG_PROBLEM_TEXT_BYTES)

/* printf to the log hook, if the level is wanted. */
void journal_log(journal *j, jg_log_level level, const char *format, ...) __attribute__((format(printf, 3, 4)));
void journal_log_list(journal *j, jg_log_level level, const char *format, va_list args);

/* Tells the trace hook, from a thread of the library's own, which may outlive the context. */
void journal_trace(journal *j, const jg_trace *trace);

/* The same from a thread that is inside a call on the context: without the lock. */
static inline void journal_trace_call(const journal *j, const jg_trace *trace)
{
    if (j->trace) j->trace(j->trace_user, trace);
}

#endif
