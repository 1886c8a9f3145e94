/* One text that grows by a line for each finding. If memory runs out a finding still counts, and still reaches the report. */
#include "findings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *all;
static size_t length, capacity;
static unsigned count;

static int reserve(size_t more)
{
    if (capacity - length > more) return 1;
    const size_t wanted = 2 * capacity + more + 1024;
    char *grown = realloc(all, wanted);
    if (!grown) return 0;
    all = grown;
    capacity = wanted;
    return 1;
}

void findings_add(const char *text, const char *report)
{
    const size_t bytes = strlen(text);
    count++;
    if (reserve(bytes + 1)) {
        for (size_t i = 0; i < bytes; i++) all[length++] = text[i] == '\n' ? ' ' : text[i];
        all[length++] = '\n';
        all[length] = 0;
    }
    if (!*report) return;
    const int is_stderr = strcmp(report, "-") == 0;
    FILE *file = is_stderr ? stderr : fopen(report, "a");
    if (!file) return;
    fprintf(file, "%s\n", text);
    if (is_stderr) fflush(file);
    else fclose(file);
}

size_t findings_copy(char *text, size_t bytes, unsigned *number)
{
    if (number) *number = count;
    if (text && bytes) {
        const size_t fits = length < bytes - 1 ? length : bytes - 1;
        if (fits) memcpy(text, all, fits);
        text[fits] = 0;
    }
    return length;
}
