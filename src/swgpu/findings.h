/* What the checks found since the process began. Under the state's lock. */
#ifndef SWGPU_FINDINGS_H
#define SWGPU_FINDINGS_H

#include <stddef.h>

/* Adds a line, and appends it to a report: a file's path, "-" for stderr, or "" for none. */
void findings_add(const char *text, const char *report);

/* Copies what fits of all lines, each with its line break, and ends it with 0. Returns the length of all of it. */
size_t findings_copy(char *text, size_t bytes, unsigned *count);

#endif
