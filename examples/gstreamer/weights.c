/* Reads a safetensors file: see weights.h. */
#include "weights.h"

#include "../float16.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#define LENGTH_BYTES 8             /* of the header's length, at the start of the file */
#define MAX_HEADER 100000000u      /* bytes, as the format's own reader has it */
#define MAX_INTEGER 9007199254740992.0 /* 2^53: from there on JSON's numbers are not exact */

struct jgf_weights {
    char *path;
    unsigned char *data;
    uint64_t data_bytes;
    cJSON *header;        /* has the names */
    size_t count;
    struct entry {
        jgf_tensor tensor;
        uint64_t begin, end;
        const char *dtype;
    } *entries;           /* in the order of their data */
};

/* dtypes and the bytes of an element. Of those that are not here only the offsets are checked. */
static const struct {
    const char *name;
    int bytes;
    jg_type type;
} dtypes[] = {
    {"F32", 4, JG_F32}, {"F16", 2, JG_F16}, {"BF16", 2, JG_BF16}, {"F64", 8, 0}, {"I64", 8, 0}, {"U64", 8, 0}, {"I32", 4, 0},
    {"U32", 4, 0},      {"I16", 2, 0},      {"U16", 2, 0},        {"I8", 1, 0},  {"U8", 1, 0},  {"BOOL", 1, 0},
    {"F8_E4M3", 1, 0},  {"F8_E5M2", 1, 0},
};

/* Puts a text into `error` that begins with the path, and `code` into errno; returns -1. */
__attribute__((format(printf, 5, 6)))
static int refuse(const char *path, int code, char *error, size_t size, const char *format, ...)
{
    va_list arguments;
    const int n = error && size ? snprintf(error, size, "%s: ", path) : -1;
    if (n >= 0 && (size_t)n < size) {
        va_start(arguments, format);
        vsnprintf(error + n, size - (size_t)n, format, arguments);
        va_end(arguments);
    }
    errno = code;
    return -1;
}

#define BROKEN(...) refuse(w->path, EBADMSG, error, size, __VA_ARGS__)
#define FAILED(code, what) refuse(w->path, code, error, size, "%s: %s", what, strerror(code))

/* Reads `wanted` bytes; fewer are there if the file was cut off meanwhile. */
static int read_bytes(const jgf_weights *w, int file, unsigned char *bytes, size_t wanted, char *error, size_t size)
{
    for (size_t got = 0; got < wanted;) {
        const ssize_t n = read(file, bytes + got, wanted - got);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return FAILED(errno, "cannot be read");
        if (n == 0) return BROKEN("became shorter while it was read (%zu of %zu bytes)", got, wanted);
        got += (size_t)n;
    }
    return 0;
}

/* ---- the header ---- */

/* Whether a JSON text has a character 0, plain or escaped: names would end there. */
static int has_nul(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (!text[i]) return 1;
        if (text[i] != '\\') continue;
        if (length - i > 5 && strncmp(text + i + 1, "u0000", 5) == 0) return 1;
        i++; /* the escaped character */
    }
    return 0;
}

static int parse_header(jgf_weights *w, const char *text, size_t length, char *error, size_t size)
{
    const char *end = text;
    if (length == 0) return BROKEN("its header is empty");
    if (*text != '{') return BROKEN("its header is not JSON (no { at its beginning): is it a safetensors file?");
    if (has_nul(text, length)) return BROKEN("its header has a character 0");
    w->header = cJSON_ParseWithOpts(text, &end, 1);
    if (!w->header) return BROKEN("its header is not JSON: an error at byte %zu of %zu", (size_t)(end - text), length);
    return 0;
}

static int read_header(jgf_weights *w, int file, size_t length, char *error, size_t size)
{
    char *text = malloc(length + 1);
    if (!text) return FAILED(ENOMEM, "its header");
    text[length] = 0;
    int result = read_bytes(w, file, (unsigned char *)text, length, error, size);
    if (result == 0) result = parse_header(w, text, length, error, size);
    free(text);
    return result;
}

/* A whole number of 0 to 2^53, or -1. */
static int64_t whole_number(const cJSON *item)
{
    const double value = cJSON_IsNumber(item) ? item->valuedouble : -1;
    return value >= 0 && value < MAX_INTEGER && value == floor(value) ? (int64_t)value : -1;
}

/* Reads dtype and shape of a tensor, and what they come to: *bytes, -1 for a dtype that is not known. */
static int read_shape(const jgf_weights *w, const cJSON *item, struct entry *e, int64_t *bytes, char *error, size_t size)
{
    const cJSON *shape = cJSON_GetObjectItemCaseSensitive(item, "shape"), *each;
    const cJSON *dtype = cJSON_GetObjectItemCaseSensitive(item, "dtype");
    const char *name = item->string;
    int dims = 0;
    if (!cJSON_IsString(dtype)) return BROKEN("tensor \"%s\" has no dtype", name);
    if (!cJSON_IsArray(shape)) return BROKEN("tensor \"%s\" has no shape", name);
    e->tensor = (jgf_tensor){.name = name, .shape = {1, 1, 1, 1}};
    e->dtype = dtype->valuestring;
    *bytes = -1;
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        if (strcmp(e->dtype, dtypes[i].name) != 0) continue;
        *bytes = dtypes[i].bytes;
        e->tensor.type = dtypes[i].type;
    }
    cJSON_ArrayForEach(each, shape)
    {
        const int64_t length = whole_number(each);
        if (length < 0) return BROKEN("tensor \"%s\": length %d of its shape is no whole number of 0 to 2^53", name, dims + 1);
        if (*bytes > 0 && length > INT64_MAX / *bytes) return BROKEN("tensor \"%s\": its shape is too large", name);
        if (*bytes >= 0) *bytes *= length;
        if (dims < 4) e->tensor.shape[dims] = length;
        dims++;
    }
    e->tensor.dims = dims;
    if (dims < 1 || dims > 4 || *bytes == 0 || !e->tensor.type) e->tensor = (jgf_tensor){.name = name, .shape = {1, 1, 1, 1}};
    return 0;
}

static int read_entry(const jgf_weights *w, const cJSON *item, struct entry *e, char *error, size_t size)
{
    const cJSON *offsets = cJSON_GetObjectItemCaseSensitive(item, "data_offsets");
    const char *name = item->string;
    int64_t bytes = -1;
    if (!cJSON_IsObject(item)) return BROKEN("its header's \"%s\" is no tensor (an object with dtype, shape, data_offsets)", name);
    if (read_shape(w, item, e, &bytes, error, size) != 0) return -1;
    const int64_t begin = cJSON_GetArraySize(offsets) == 2 ? whole_number(cJSON_GetArrayItem(offsets, 0)) : -1;
    const int64_t end = begin >= 0 ? whole_number(cJSON_GetArrayItem(offsets, 1)) : -1;
    if (begin < 0 || end < 0) return BROKEN("tensor \"%s\": its data_offsets are not two whole numbers from 0 on", name);
    if (end < begin)
        return BROKEN("tensor \"%s\": its data ends at %lld, before it begins at %lld", name, (long long)end, (long long)begin);
    if ((uint64_t)end > w->data_bytes)
        return BROKEN("tensor \"%s\": its data ends at byte %lld, and the file has %llu bytes of data: cut off?", name, (long long)end,
                      (unsigned long long)w->data_bytes);
    if (bytes >= 0 && end - begin != bytes)
        return BROKEN("tensor \"%s\": its shape of %s needs %lld bytes, its data_offsets give %lld", name, e->dtype, (long long)bytes,
                      (long long)(end - begin));
    e->begin = (uint64_t)begin;
    e->end = (uint64_t)end;
    return 0;
}

static int compare_places(const void *x, const void *y)
{
    const struct entry *a = x, *b = y;
    if (a->begin != b->begin) return a->begin < b->begin ? -1 : 1;
    return a->end < b->end ? -1 : a->end > b->end; /* empty ones first */
}

static int compare_names(const void *x, const void *y)
{
    return strcmp(*(const char *const *)x, *(const char *const *)y);
}

static int check_names(const jgf_weights *w, char *error, size_t size)
{
    const char **names = malloc((w->count + 1) * sizeof *names);
    int result = 0;
    if (!names) return FAILED(ENOMEM, "its header");
    for (size_t i = 0; i < w->count; i++) names[i] = w->entries[i].tensor.name;
    qsort(names, w->count, sizeof *names, compare_names);
    for (size_t i = 1; i < w->count && result == 0; i++)
        if (strcmp(names[i - 1], names[i]) == 0) result = BROKEN("there are two tensors \"%s\"", names[i]);
    free(names);
    return result;
}

/* Tensors that share bytes, or bytes that no tensor has, mean that something wrote over the header. */
static int check_places(const jgf_weights *w, char *error, size_t size)
{
    uint64_t at = 0;
    for (size_t i = 0; i < w->count; i++) {
        const struct entry *e = &w->entries[i];
        if (e->begin < at) return BROKEN("tensors \"%s\" and \"%s\" overlap", w->entries[i - 1].tensor.name, e->tensor.name);
        if (e->begin > at)
            return BROKEN("%llu bytes before tensor \"%s\" belong to none", (unsigned long long)(e->begin - at), e->tensor.name);
        at = e->end;
    }
    if (at != w->data_bytes) return BROKEN("%llu bytes at its end belong to no tensor", (unsigned long long)(w->data_bytes - at));
    return 0;
}

static int read_entries(jgf_weights *w, char *error, size_t size)
{
    const cJSON *each;
    w->entries = calloc((size_t)cJSON_GetArraySize(w->header) + 1, sizeof *w->entries);
    if (!w->entries) return FAILED(ENOMEM, "its header");
    cJSON_ArrayForEach(each, w->header)
    {
        if (strcmp(each->string, "__metadata__") == 0) continue;
        if (read_entry(w, each, &w->entries[w->count], error, size) != 0) return -1;
        w->count++;
    }
    qsort(w->entries, w->count, sizeof *w->entries, compare_places);
    return check_names(w, error, size) != 0 || check_places(w, error, size) != 0 ? -1 : 0;
}

/* ---- the file ---- */

/* Finds out how long header and data are. */
static int read_lengths(jgf_weights *w, int file, size_t *header_bytes, char *error, size_t size)
{
    struct stat info;
    unsigned char length[LENGTH_BYTES];
    uint64_t n = 0;
    if (fstat(file, &info) != 0) return FAILED(errno, "cannot be read");
    if (S_ISDIR(info.st_mode)) return refuse(w->path, EISDIR, error, size, "is a folder, not a safetensors file");
    if (!S_ISREG(info.st_mode)) return BROKEN("is no regular file");
    const uint64_t total = (uint64_t)info.st_size;
    if (total < LENGTH_BYTES)
        return BROKEN("has %llu bytes: a safetensors file begins with 8 for the length of its header", (unsigned long long)total);
    if (read_bytes(w, file, length, LENGTH_BYTES, error, size) != 0) return -1;
    for (int i = LENGTH_BYTES; i-- > 0;) n = n << 8 | length[i];
    if (n > MAX_HEADER)
        return BROKEN("its header would have %llu bytes, and 100 MB are the most: is it a safetensors file?", (unsigned long long)n);
    if (n > total - LENGTH_BYTES)
        return BROKEN("its header of %llu bytes goes past the end of the file (%llu bytes): cut off, or no safetensors file",
                      (unsigned long long)n, (unsigned long long)total);
    *header_bytes = (size_t)n;
    w->data_bytes = total - LENGTH_BYTES - n;
    return 0;
}

static int read_data(jgf_weights *w, int file, char *error, size_t size)
{
    w->data = w->data_bytes < SIZE_MAX ? malloc((size_t)w->data_bytes + 1) : NULL;
    if (!w->data)
        return refuse(w->path, ENOMEM, error, size, "no memory for its %llu bytes of data", (unsigned long long)w->data_bytes);
    if (read_bytes(w, file, w->data, (size_t)w->data_bytes, error, size) != 0) return -1;
    for (size_t i = 0; i < w->count; i++)
        if (w->entries[i].tensor.type) w->entries[i].tensor.data = w->data + w->entries[i].begin;
    return 0;
}

/* Nothing but the header is read of a file that is not what it should be, however large. */
static int read_file(jgf_weights *w, int file, char *error, size_t size)
{
    size_t header_bytes = 0;
    if (read_lengths(w, file, &header_bytes, error, size) != 0 || read_header(w, file, header_bytes, error, size) != 0) return -1;
    return read_entries(w, error, size) != 0 ? -1 : read_data(w, file, error, size);
}

static int open_and_read(jgf_weights *w, char *error, size_t size)
{
    const int file = open(w->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY); /* nonblocking: a FIFO has no writer */
    if (file < 0) return FAILED(errno, "cannot be opened");
    const int result = read_file(w, file, error, size);
    const int code = errno;
    close(file);
    errno = code;
    return result;
}

jgf_weights *jgf_weights_open(const char *path, char *error, size_t error_size)
{
    jgf_weights *w = calloc(1, sizeof *w);
    if (!path) path = "";
    if (w) w->path = strdup(path);
    if (!w || !w->path) refuse(path, ENOMEM, error, error_size, "no memory");
    else if (open_and_read(w, error, error_size) == 0) return w;
    const int code = errno;
    jgf_weights_close(w);
    errno = code;
    return NULL;
}

void jgf_weights_close(jgf_weights *w)
{
    if (!w) return;
    cJSON_Delete(w->header);
    free(w->entries);
    free(w->data);
    free(w->path);
    free(w);
}

/* ---- tensors ---- */

const char *jgf_weights_path(const jgf_weights *weights)
{
    return weights->path;
}

size_t jgf_weights_count(const jgf_weights *weights)
{
    return weights->count;
}

int jgf_weights_at(const jgf_weights *weights, size_t index, jgf_tensor *tensor)
{
    if (index >= weights->count) return -1;
    *tensor = weights->entries[index].tensor;
    return 0;
}

static int ends_with_part(const char *name, const char *part)
{
    const size_t length = strlen(name), part_length = strlen(part);
    return length > part_length && name[length - part_length - 1] == '.' && strcmp(name + length - part_length, part) == 0;
}

static int name_some(const jgf_weights *w, const char *name, char *error, size_t size)
{
    char some[256] = "none";
    size_t length = 0, i;
    for (i = 0; i < w->count && length < sizeof some - 80; i++) {
        const int n = snprintf(some + length, sizeof some - length, "%s\"%.60s\"", i ? ", " : "", w->entries[i].tensor.name);
        length += (size_t)n;
    }
    return BROKEN("has no tensor \"%s\"; it has %s%s", name, some, i < w->count ? " ..." : "");
}

int jgf_weights_find(const jgf_weights *w, const char *name, jgf_tensor *tensor, char *error, size_t size)
{
    const struct entry *found = NULL;
    for (size_t i = 0; i < w->count && !found; i++)
        if (strcmp(w->entries[i].tensor.name, name) == 0) found = &w->entries[i];
    if (!found) {
        for (size_t i = 0; i < w->count; i++) {
            if (!ends_with_part(w->entries[i].tensor.name, name)) continue;
            if (found)
                return BROKEN("\"%s\" fits two tensors: \"%s\" and \"%s\"", name, found->tensor.name, w->entries[i].tensor.name);
            found = &w->entries[i];
        }
    }
    if (!found) return name_some(w, name, error, size);
    if (!found->tensor.type)
        return BROKEN("tensor \"%s\" (%s) cannot be used: F32, F16 and BF16 with 1 to 4 dimensions, none of 0, can", found->tensor.name,
                      found->dtype);
    *tensor = found->tensor;
    return 0;
}

int64_t jgf_tensor_elements(const jgf_tensor *tensor)
{
    int64_t elements = tensor->type != 0;
    for (int i = 0; i < tensor->dims; i++) elements *= tensor->shape[i];
    return elements;
}

double jgf_tensor_value(const jgf_tensor *tensor, int64_t index)
{
    const unsigned char *at = tensor->data;
    if (tensor->type == JG_F32) {
        at += 4 * index;
        const uint32_t bits = at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
        float value;
        memcpy(&value, &bits, sizeof value);
        return value;
    }
    at += 2 * index;
    const uint16_t bits = (uint16_t)(at[0] | at[1] << 8);
    return tensor->type == JG_F16 ? f16_value(bits) : bf16_value(bits);
}
