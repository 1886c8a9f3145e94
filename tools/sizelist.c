/* Reads lists of problem texts: see sizelist.h.
 *
 * The input is not trusted: lines are bounded before they are kept, so that a device file or a binary named
 * by mistake ends in an error on its first line instead of in all of memory. */
#include "sizelist.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLANKS " \t\v\f\r"

__attribute__((format(printf, 2, 3)))
static int fail(sizelist *list, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(list->error, sizeof list->error, format, arguments);
    va_end(arguments);
    return -1;
}

static int reserve(sizelist *list, size_t more)
{
    if (list->capacity - list->count >= more) return 0;
    size_t capacity = 2 * list->capacity + more + 32;
    jg_problem *items = realloc(list->items, capacity * sizeof *items);
    if (!items) return fail(list, "out of memory");
    list->items = items;
    list->capacity = capacity;
    return 0;
}

/* Equal by meaning: the text form is canonical, the struct has padding. */
static int same_problem(const jg_problem *x, const jg_problem *y)
{
    char text_x[JG_PROBLEM_TEXT_BYTES], text_y[JG_PROBLEM_TEXT_BYTES];
    return jg_problem_format(x, text_x, sizeof text_x, NULL) == JG_OK &&
           jg_problem_format(y, text_y, sizeof text_y, NULL) == JG_OK && strcmp(text_x, text_y) == 0;
}

int sizelist_add(sizelist *list, const char *text, const jg_problem *defaults, size_t default_count)
{
    if (reserve(list, default_count) != 0) return -1;
    size_t first = list->count;
    for (size_t i = 0; i < default_count; i++) {
        jg_problem problem = defaults[i];
        if (jg_problem_parse(text, &problem) != JG_OK) {
            list->count = first;
            return fail(list, "%s", jg_last_error());
        }
        size_t j = first;
        while (j < list->count && !same_problem(&list->items[j], &problem)) j++;
        if (j == list->count) list->items[list->count++] = problem;
    }
    return 0;
}

/* Where lines come from: a file or, if that is null, a text. */
typedef struct source {
    FILE *file;
    const char *text;
} source;

static int next_byte(source *from)
{
    if (from->file) return getc(from->file);
    return *from->text ? (unsigned char)*from->text++ : EOF;
}

/* What read_line met. */
typedef enum line_kind { LINE_TEXT, LINE_END, LINE_TOO_LONG, LINE_HAS_NUL } line_kind;

static line_kind read_line(source *from, char line[SIZELIST_LINE_MAX + 1])
{
    size_t length = 0;
    int c = next_byte(from);
    if (c == EOF) return LINE_END;
    for (; c != EOF && c != '\n'; c = next_byte(from)) {
        if (c == 0) return LINE_HAS_NUL;
        if (length == SIZELIST_LINE_MAX) return LINE_TOO_LONG;
        line[length++] = (char)c;
    }
    line[length] = 0;
    return LINE_TEXT;
}

/* Cuts the comment and the blanks at both ends; returns the problem text, "" if there is none. */
static char *trim(char *line)
{
    line[strcspn(line, "#")] = 0;
    line += strspn(line, BLANKS);
    size_t length = strlen(line);
    while (length > 0 && strchr(BLANKS, line[length - 1])) length--;
    line[length] = 0;
    return line;
}

static int read_lines(sizelist *list, source from, const char *name, const jg_problem *defaults, size_t default_count)
{
    char line[SIZELIST_LINE_MAX + 1];
    for (unsigned long number = 1;; number++) {
        switch (read_line(&from, line)) {
        case LINE_END:
            return from.file && ferror(from.file) ? fail(list, "%s: %s", name, strerror(errno)) : 0;
        case LINE_TOO_LONG:
            return fail(list, "%s:%lu: the line is longer than %d bytes", name, number, SIZELIST_LINE_MAX);
        case LINE_HAS_NUL:
            return fail(list, "%s:%lu: the line holds a NUL byte; a size list is a text file", name, number);
        case LINE_TEXT:
            break;
        }
        if (from.file && ferror(from.file)) return fail(list, "%s: %s", name, strerror(errno));
        const char *text = trim(line);
        if (*text == 0) continue;
        if (text[strcspn(text, BLANKS)] != 0)
            return fail(list, "%s:%lu: \"%s\": one size a line, without blanks inside", name, number, text);
        if (sizelist_add(list, text, defaults, default_count) != 0) {
            char reason[sizeof list->error];
            memcpy(reason, list->error, sizeof reason);
            return fail(list, "%s:%lu: %.*s", name, number, SIZELIST_LINE_MAX + 256, reason);
        }
    }
}

int sizelist_read(sizelist *list, const char *path, const jg_problem *defaults, size_t default_count)
{
    if (strcmp(path, "-") == 0) return read_lines(list, (source){.file = stdin}, "standard input", defaults, default_count);
    FILE *file = fopen(path, "re");
    if (!file) return fail(list, "%s: %s", path, strerror(errno));
    int result = read_lines(list, (source){.file = file}, path, defaults, default_count);
    fclose(file);
    return result;
}

int sizelist_read_text(sizelist *list, const char *name, const char *text, const jg_problem *defaults, size_t default_count)
{
    return read_lines(list, (source){.text = text}, name, defaults, default_count);
}

int sizelist_type(const char *word, size_t length, jg_problem *problem)
{
    char text[JG_PROBLEM_TEXT_BYTES];
    *problem = (jg_problem){0};
    if (length > sizeof text - 3) return -1;
    snprintf(text, sizeof text, "1:%.*s", (int)length, word);
    if (jg_problem_parse(text, problem) != JG_OK) return -1;
    if (problem->type_a == JG_DEFAULT_TYPE && problem->math == JG_MATH_DEFAULT) return -1;
    if (problem->type_a == JG_DEFAULT_TYPE) problem->type_a = problem->type_b = problem->type_c = JG_F32;
    problem->m = problem->n = problem->k = 0;
    return 0;
}

void sizelist_free(sizelist *list)
{
    free(list->items);
    *list = (sizelist){0};
}
