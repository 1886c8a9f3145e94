/* Rows by suite, list, type and data; their names for readers. See bench_group.h. */
#include "bench_group.h"

#include "bench_result.h"

#include <math.h>
#include <string.h>

static int same_group(const cJSON *a, const cJSON *b)
{
    static const char *const keys[] = {"suite", "list", "type", "data"};
    if (!cJSON_IsObject(a) || !cJSON_IsObject(b)) return 0;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(json_text(a, keys[i]), json_text(b, keys[i])) != 0) return 0;
    return 1;
}

/* Rows of a group mostly stand together, so looking backwards finds one at once. */
static int is_first(const cJSON *rows, const cJSON *row)
{
    for (const cJSON *before = row; before != rows;) {
        before = before->prev;
        if (same_group(before, row)) return 0;
    }
    return 1;
}

const cJSON *bench_group_next(const cJSON *result, const cJSON *first)
{
    const cJSON *rows = json_first(result, "rows"), *row = first ? first->next : rows;
    while (row && !(cJSON_IsObject(row) && is_first(rows, row))) row = row->next;
    return row;
}

const cJSON *bench_group_row(const cJSON *row)
{
    const cJSON *next = row->next;
    while (next && !same_group(next, row)) next = next->next;
    return next;
}

void bench_group_title(bench_page *page, const cJSON *row)
{
    const char *suite = json_text(row, "suite"), *list = json_text(row, "list");
    const char *type = json_text(row, "type");
    bench_page_text(page, *list ? list : *suite ? suite : "sizes");
    if (*type) bench_page_markup(page, " ");
    bench_page_text(page, type);
    if (strcmp(json_text(row, "data"), "rotated") == 0) bench_page_markup(page, ", operands rotated");
}

/* One word of a problem; in the first one, which is the size, every x between digits is a times sign. */
static void put_word(bench_page *page, const char *word, size_t bytes, int is_size)
{
    for (size_t i = 0; i < bytes; i++) {
        if (is_size && word[i] == 'x' && i > 0) bench_page_markup(page, "\xC3\x97<wbr/>");
        else {
            size_t part = i;
            while (part < bytes && !(is_size && word[part] == 'x' && part > 0)) part++;
            bench_page_text_part(page, word + i, part - i);
            i = part - 1;
        }
    }
}

/* Whether it is one of the words between colons. */
static int has_word(const char *words, const char *word, size_t bytes)
{
    for (; *words; words += words[0] == ':') {
        const size_t length = strcspn(words, ":");
        if (length == bytes && strncmp(words, word, bytes) == 0) return 1;
        words += length;
    }
    return 0;
}

void bench_size_text(bench_page *page, const cJSON *row)
{
    const char *problem = json_text(row, "problem"), *type = json_text(row, "type");
    const double size[] = {json_number(row, "m"), json_number(row, "n"), json_number(row, "k"),
                           json_number(row, "batch")};
    const size_t dimensions = isfinite(size[3]) && size[3] != 1 ? 4 : 3;
    if (!*problem) {
        for (size_t i = 0; i < dimensions; i++) {
            if (i > 0) bench_page_markup(page, "\xC3\x97<wbr/>");
            if (isfinite(size[i])) bench_page_markup(page, "%.0f", size[i]);
            else bench_page_markup(page, "?");
        }
        return;
    }
    for (const char *word = problem; *word;) {
        const size_t bytes = strcspn(word, ":");
        const int is_size = word == problem, is_type = !is_size && has_word(type, word, bytes);
        if (!is_size && !is_type) bench_page_markup(page, " ");
        if (!is_type) put_word(page, word, bytes, is_size);
        word += bytes;
        if (*word) word++;
    }
}

const cJSON *bench_contestant(const cJSON *row, const char *name)
{
    const cJSON *found = json_first(row, "contestants");
    while (found && strcmp(json_text(found, "name"), name) != 0) found = found->next;
    return found;
}

int bench_is_no_peer(const cJSON *contestant)
{
    return strncmp(json_text(contestant, "refused"), BENCH_NO_PEER, strlen(BENCH_NO_PEER)) == 0;
}

double bench_median(const cJSON *row, const char *name)
{
    return json_number(json_object(bench_contestant(row, name), "us"), "p50");
}
