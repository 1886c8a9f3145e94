/* Texts put together piece by piece in a buffer of fixed size. */
#ifndef JG_TEXT_H
#define JG_TEXT_H

#include <stddef.h>

/* printf behind the first *length characters of text; *length grows by what the piece needs, whether or not it fits, as snprintf
 * counts. Nothing is written outside `size` bytes; if size > 0 the text ends with a 0. */
void text_append(char *text, size_t size, size_t *length, const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif
