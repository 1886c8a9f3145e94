/* The result of a run as one self-contained HTML page: the JSON document of bench_result.h in, a file out. */
#ifndef JG_TOOLS_BENCH_HTML_H
#define JG_TOOLS_BENCH_HTML_H

#include <stddef.h>

#include <cjson/cJSON.h>

/* Writes the page to `path`, under another name first, so that what was there stays until the new page is whole. Returns 0, or -1
 * with the reason, which names the path, in `why`. */
int bench_html_write(const char *path, const cJSON *result, char *why, size_t size);

#endif
