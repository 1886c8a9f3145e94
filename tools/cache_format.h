/* How jitgemm-cache writes things: numbers with units, times, safe text, JSON, messages. */
#ifndef JG_TOOLS_CACHE_FORMAT_H
#define JG_TOOLS_CACHE_FORMAT_H

#include "jitgemm.h"

#include <cjson/cJSON.h>

typedef struct cache_text {
    char text[40];
} cache_text;

/* "512 B", "31.4 KiB", "1.5 MiB" */
cache_text cache_format_bytes(uint64_t bytes);

/* "123.4 ms"; "-" for 0, which means unknown */
cache_text cache_format_ms(double ms);

/* "1.25x"; "-" for 0, which means not measured */
cache_text cache_format_gain(double gain);

/* Local time, "2025-11-29 15:36" or, exact, "2025-11-29T15:36:02+0100" */
cache_text cache_format_time(int64_t seconds, int exact);

/* Columns of the terminal that standard output is; 0 if it is none. */
int cache_terminal_columns(void);

/* Writes a text with every control character replaced by '?': a cache file must not be able to command a terminal. */
void cache_put_text(const char *text);

/* Prints "jitgemm-cache: text" on standard error and returns CACHE_EXIT_FAILED. */
int cache_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Adds a member to a JSON object. On want of memory *ok becomes 0. */
void cache_json_text(cJSON *object, const char *name, const char *text, int *ok);
void cache_json_number(cJSON *object, const char *name, double number, int *ok);

/* Adds all that is known of an entry. */
void cache_json_entry(cJSON *object, const jg_cache_entry *entry, int *ok);

/* Prints the object and frees it. Returns the exit status: failed if ok is 0 or memory runs out. */
int cache_json_print(cJSON *object, int ok);

/* Says how many were removed: "3 forgotten", where `what` is "forgotten", or as JSON {"path", "removed"}. Returns the exit status. */
int cache_tell_removed(const jg_cache *cache, int as_json, size_t removed, const char *what);

/* Writes out standard output for good and checks that all of it arrived. Returns the exit status: `status`, or failed. */
int cache_finish_output(int status);

#endif
