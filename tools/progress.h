/* Shows a prewarm to a person: steps in, a progress bar or plain lines out.
 *
 * On a terminal one line is redrawn in place: done and total, a bar, time gone and left, the current problem.
 * Elsewhere (a log file, a pipe, a journal) each kernel gives one line. Steps and messages may come from
 * different threads. */
#ifndef JG_TOOLS_PROGRESS_H
#define JG_TOOLS_PROGRESS_H

#include <pthread.h>
#include <stdio.h>

#include "jitgemm.h"

/* AUTO: a bar if the stream is a terminal, else lines. */
typedef enum progress_mode { PROGRESS_AUTO = 0, PROGRESS_LINES, PROGRESS_BAR, PROGRESS_NONE } progress_mode;

/* Treat as opaque. */
typedef struct progress {
    FILE *stream;
    progress_mode mode;
    const char *label;
    double started_ms, drawn_ms; /* drawn_ms: when the bar was last drawn; 0: it is not on the screen */
    pthread_mutex_t lock;
} progress;

/* Starts the clock. `label` (may be "") opens the bar and must live as long as the progress. */
void progress_begin(progress *p, FILE *stream, progress_mode mode, const char *label);

/* Shows one step; redraws are limited to ten a second. */
void progress_step(progress *p, const jg_progress *step);

/* Draws a text in the bar's place, where there is a bar; redraws are limited to ten a second. */
void progress_draw(progress *p, const char *text);

/* Writes one line to the stream without disturbing the bar; with PROGRESS_NONE none. */
void progress_line(progress *p, const char *text);

/* Writes one line to standard error without disturbing the bar. */
void progress_message(progress *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Takes the bar off the screen; messages may still follow. Returns the milliseconds since progress_begin. */
double progress_end(progress *p);

/* Minutes and seconds, e.g. "1:05". */
void progress_format_time(char *text, size_t size, double ms);

/* Milliseconds of a clock that never goes back. */
double progress_now_ms(void);

/* "compiled", "cached" or "failed". */
const char *progress_outcome_name(jg_outcome outcome);

#endif
