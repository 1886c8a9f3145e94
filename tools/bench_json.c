/* Members of JSON documents of which nothing is sure: see bench_json.h. */
#include "bench_json.h"

#include <math.h>
#include <stdlib.h>

const cJSON *json_member(const cJSON *object, const char *name)
{
    return cJSON_IsObject(object) ? cJSON_GetObjectItemCaseSensitive(object, name) : NULL;
}

double json_value(const cJSON *item)
{
    double value = NAN;
    if (cJSON_IsNumber(item)) value = item->valuedouble;
    if (cJSON_IsRaw(item) && item->valuestring) {
        char *end;
        value = strtod(item->valuestring, &end);
        if (end == item->valuestring || *end) value = NAN;
    }
    return isfinite(value) ? value : NAN;
}

const char *json_text(const cJSON *object, const char *name)
{
    const char *text = cJSON_GetStringValue(json_member(object, name));
    return text ? text : "";
}

double json_number(const cJSON *object, const char *name)
{
    return json_value(json_member(object, name));
}

int json_true(const cJSON *object, const char *name)
{
    return cJSON_IsTrue(json_member(object, name));
}

const cJSON *json_first(const cJSON *object, const char *name)
{
    const cJSON *array = json_member(object, name);
    return cJSON_IsArray(array) ? array->child : NULL;
}

const cJSON *json_object(const cJSON *object, const char *name)
{
    const cJSON *found = json_member(object, name);
    return cJSON_IsObject(found) ? found : NULL;
}
