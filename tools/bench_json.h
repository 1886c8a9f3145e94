/* Members of a JSON document of which nothing is sure, neither that they are there nor what they are. Works with old releases of
 * cJSON too. */
#ifndef JG_TOOLS_BENCH_JSON_H
#define JG_TOOLS_BENCH_JSON_H

#include <cjson/cJSON.h>

/* A member of an object: null if it is not there or that is no object. */
const cJSON *json_member(const cJSON *object, const char *name);

/* A member's text: "" if it is not there or no text. Its number: NaN if it is not there, no number, or not finite. Whether it is
 * there and true. The first element of an array: null if it is no array or empty; the others follow by ->next. */
const char *json_text(const cJSON *object, const char *name);
double json_number(const cJSON *object, const char *name);
int json_true(const cJSON *object, const char *name);
const cJSON *json_first(const cJSON *object, const char *name);
const cJSON *json_object(const cJSON *object, const char *name); /* null if it is none */

/* A number that is no member: NaN if it is none or not finite. Integers of 64 bits are kept as text (cJSON_AddRawToObject). */
double json_value(const cJSON *item);

#endif
