/* Texts put together piece by piece in a buffer of fixed size. */
#include "text.h"

#include <stdarg.h>
#include <stdio.h>

void text_append(char *text, size_t size, size_t *length, const char *format, ...)
{
    const int fits = *length < size;
    va_list args;
    va_start(args, format);
    int n = vsnprintf(fits ? text + *length : NULL, fits ? size - *length : 0, format, args);
    va_end(args);
    if (n > 0) *length += (size_t)n;
}
