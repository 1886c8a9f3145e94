/* Draws the progress of a prewarm: see progress.h.
 *
 * The bar is composed in a buffer and written at once, so that it never flickers; it asks for the terminal's
 * width each time, so that a resized window needs no signal handler. */
#include "progress.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define REDRAW_MS 100.0
#define WIDTH_DEFAULT 80 /* columns, where the terminal does not say */
#define WIDTH_MAX 200    /* wider lines are hard to read */
#define WIDTH_BAR_MIN 8  /* a narrower bar says less than the numbers beside it */
#define ERASE_LINE "\r\033[K"

double progress_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

const char *progress_outcome_name(jg_outcome outcome)
{
    static const char *const names[] = {[JG_COMPILED] = "compiled", [JG_CACHED] = "cached", [JG_FAILED] = "failed"};
    return (size_t)outcome < sizeof names / sizeof *names ? names[outcome] : "?";
}

static progress_mode choose_mode(FILE *stream)
{
    const char *terminal = getenv("TERM");
    int can_erase = terminal && *terminal && strcmp(terminal, "dumb") != 0;
    return can_erase && isatty(fileno(stream)) ? PROGRESS_BAR : PROGRESS_LINES;
}

void progress_begin(progress *p, FILE *stream, progress_mode mode, const char *label)
{
    *p = (progress){.stream = stream, .label = label, .started_ms = progress_now_ms(),
                    .lock = PTHREAD_MUTEX_INITIALIZER};
    p->mode = mode == PROGRESS_AUTO ? choose_mode(stream) : mode;
}

static int terminal_width(FILE *stream)
{
    struct winsize size;
    if (ioctl(fileno(stream), TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return WIDTH_DEFAULT;
    return size.ws_col < WIDTH_MAX ? size.ws_col : WIDTH_MAX;
}

static void erase(progress *p)
{
    if (p->drawn_ms == 0) return;
    fputs(ERASE_LINE, p->stream);
    fflush(p->stream);
    p->drawn_ms = 0;
}

void progress_format_time(char *text, size_t size, double ms)
{
    long seconds = (long)(ms / 1e3 + 0.5);
    snprintf(text, size, "%ld:%02ld", seconds / 60, seconds % 60);
}

/* "#####....." of `width` columns. */
static void format_bar(char *text, int width, size_t done, size_t total)
{
    int filled = total ? (int)((double)width * (double)done / (double)total) : width;
    memset(text, '#', (size_t)filled);
    memset(text + filled, '.', (size_t)(width - filled));
    text[width] = 0;
}

static int decimal_digits(size_t number)
{
    int digits = 1;
    while (number >= 10) number /= 10, digits++;
    return digits;
}

/* From left to right by importance: a narrow terminal loses the kernel first, then the bar, then the times. */
static void draw_bar(progress *p, const jg_progress *step, double now_ms)
{
    int width = terminal_width(p->stream) - 1; /* a full last column makes some terminals wrap */
    double elapsed_ms = now_ms - p->started_ms;
    double left_ms = elapsed_ms * (double)(step->total - step->done) / (double)(step->done ? step->done : 1);
    char gone[32], left[32], counts[128], times[96], bar[WIDTH_MAX + 1] = "", line[4 * WIDTH_MAX];
    progress_format_time(gone, sizeof gone, elapsed_ms);
    progress_format_time(left, sizeof left, left_ms);
    snprintf(counts, sizeof counts, "%s%s%*zu/%zu", p->label, *p->label ? " " : "", decimal_digits(step->total),
             step->done, step->total);
    snprintf(times, sizeof times, "%s gone, %s left", gone, left);

    int fixed = (int)(strlen(counts) + strlen(times)) + 2;
    int bar_width = (width - fixed - 3) / 3;
    if (bar_width >= WIDTH_BAR_MIN) {
        format_bar(bar, bar_width, step->done, step->total);
        snprintf(line, sizeof line, "%s [%s] %s  %s  %s", counts, bar, times, step->problem, step->kernel);
    } else {
        snprintf(line, sizeof line, "%s  %s", counts, times);
    }
    fprintf(p->stream, "%s%.*s", ERASE_LINE, width, line);
    fflush(p->stream);
    p->drawn_ms = now_ms;
}

static void print_line(progress *p, const jg_progress *step)
{
    char time[32] = "";
    if (step->outcome == JG_COMPILED) snprintf(time, sizeof time, "%.0f ms", step->ms);
    fprintf(p->stream, "[%*zu/%zu] %-8s %7s  %s  %s\n", decimal_digits(step->total), step->done, step->total,
            progress_outcome_name(step->outcome), time, step->problem, step->kernel);
    fflush(p->stream);
}

void progress_step(progress *p, const jg_progress *step)
{
    pthread_mutex_lock(&p->lock);
    double now_ms = progress_now_ms();
    if (p->mode == PROGRESS_LINES)
        print_line(p, step);
    else if (p->mode == PROGRESS_BAR && (now_ms - p->drawn_ms >= REDRAW_MS || step->done == step->total))
        draw_bar(p, step, now_ms);
    pthread_mutex_unlock(&p->lock);
}

void progress_draw(progress *p, const char *text)
{
    pthread_mutex_lock(&p->lock);
    const double now_ms = progress_now_ms();
    if (p->mode == PROGRESS_BAR && now_ms - p->drawn_ms >= REDRAW_MS) {
        fprintf(p->stream, "%s%.*s", ERASE_LINE, terminal_width(p->stream) - 1, text);
        fflush(p->stream);
        p->drawn_ms = now_ms;
    }
    pthread_mutex_unlock(&p->lock);
}

void progress_line(progress *p, const char *text)
{
    pthread_mutex_lock(&p->lock);
    erase(p);
    if (p->mode != PROGRESS_NONE) fprintf(p->stream, "%s\n", text);
    fflush(p->stream);
    pthread_mutex_unlock(&p->lock);
}

void progress_message(progress *p, const char *format, ...)
{
    va_list arguments;
    pthread_mutex_lock(&p->lock);
    erase(p);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    putc('\n', stderr);
    pthread_mutex_unlock(&p->lock);
}

double progress_end(progress *p)
{
    pthread_mutex_lock(&p->lock);
    erase(p);
    pthread_mutex_unlock(&p->lock);
    return progress_now_ms() - p->started_ms;
}
