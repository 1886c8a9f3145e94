/* Log and trace hooks behind a lock. See journal.h. */
#include "journal.h"

#include <stdio.h>
#include <string.h>

void journal_open(journal *j, const jg_options *options)
{
    pthread_mutex_init(&j->lock, NULL);
    j->log = options->log;
    j->log_user = options->log_user;
    j->log_level = options->log_level;
    j->trace = options->trace;
    j->trace_user = options->trace_user;
}

void journal_close(journal *j)
{
    pthread_mutex_lock(&j->lock);
    j->log = NULL;
    j->trace = NULL;
    pthread_mutex_unlock(&j->lock);
}

void journal_destroy(journal *j)
{
    pthread_mutex_destroy(&j->lock);
}

void journal_log_list(journal *j, jg_log_level level, const char *format, va_list args)
{
    static const char cut[] = "...";
    char text[JOURNAL_TEXT_BYTES];
    if (level > j->log_level) return;
    if (vsnprintf(text, sizeof text, format, args) >= (int)sizeof text) memcpy(text + sizeof text - sizeof cut, cut, sizeof cut);
    pthread_mutex_lock(&j->lock);
    if (j->log) j->log(j->log_user, level, text);
    pthread_mutex_unlock(&j->lock);
}

void journal_log(journal *j, jg_log_level level, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    journal_log_list(j, level, format, args);
    va_end(args);
}

void journal_trace(journal *j, const jg_trace *trace)
{
    pthread_mutex_lock(&j->lock);
    if (j->trace) j->trace(j->trace_user, trace);
    pthread_mutex_unlock(&j->lock);
}
