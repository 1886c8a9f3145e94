/* Makes integers of a colour matrix: see color_matrix.h. */
#include "color_matrix.h"

#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LARGEST_Q 127
#define NOTHING 1e-30 /* a coefficient that no float32 could count in */
#define MOST_NUMBERS 12
#define FLOAT_ROUNDING 0x1p-24 /* of a float32, relative */

__attribute__((format(printf, 3, 4)))
static int refuse(char *error, size_t size, const char *format, ...)
{
    va_list arguments;
    if (!error) return -1;
    va_start(arguments, format);
    vsnprintf(error, size, format, arguments);
    va_end(arguments);
    return -1;
}

/* Whether a matrix can be made of a number; `which` counts from 1. */
static int check_number(double value, int which, char *error, size_t size)
{
    if (!isfinite(value)) return refuse(error, size, "number %d is %s", which, isnan(value) ? "not a number (NaN)" : "infinite");
    if (fabs(value) > JGF_COLOR_LARGEST) return refuse(error, size, "number %d, %g, is beyond %g", which, value, JGF_COLOR_LARGEST);
    return 0;
}

static void take_numbers(const double *numbers, int columns, jgf_color *color)
{
    *color = (jgf_color){0};
    for (int j = 0; j < 3; j++)
        for (int i = 0; i < columns; i++) color->matrix[j][i] = numbers[j * columns + i];
}

static int parse_numbers(const char *text, locale_t plain, double *numbers, int *count, char *error, size_t size)
{
    static const char between[] = " \t\r\n,;";
    const char *at = text + strspn(text, between);
    for (*count = 0; *at; at += strspn(at, between)) {
        char *end;
        const double value = strtod_l(at, &end, plain);
        if (end == at || (*end && !strchr(between, *end)))
            return refuse(error, size, "\"%.*s\" is no number (number %d)", (int)strcspn(at, between), at, *count + 1);
        if (check_number(value, *count + 1, error, size) != 0) return -1;
        if (*count < MOST_NUMBERS) numbers[*count] = value;
        ++*count;
        at = end;
    }
    if (*count == 9 || *count == MOST_NUMBERS) return 0;
    return refuse(error, size, "%d numbers: a colour matrix has 9 (3x3) or 12 (3x4)", *count);
}

int jgf_color_parse(const char *text, jgf_color *color, char *error, size_t error_size)
{
    double numbers[MOST_NUMBERS];
    int count;
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!plain) return refuse(error, error_size, "no memory");
    const int result = parse_numbers(text, plain, numbers, &count, error, error_size);
    freelocale(plain);
    if (result == 0) take_numbers(numbers, count / 3, color);
    return result;
}

int jgf_color_read(const jgf_weights *weights, jgf_color *color, char *error, size_t error_size)
{
    const char *path = jgf_weights_path(weights);
    double numbers[MOST_NUMBERS];
    jgf_tensor tensor;
    char why[128];
    if (jgf_weights_count(weights) != 1 || jgf_weights_at(weights, 0, &tensor) != 0 || !tensor.type) {
        if (jgf_weights_find(weights, "matrix", &tensor, error, error_size) != 0) return -1;
    }
    if (tensor.dims != 2 || tensor.shape[0] != 3 || (tensor.shape[1] != 3 && tensor.shape[1] != 4)) {
        char shape[128] = "";
        for (int i = 0, n = 0; i < tensor.dims; i++)
            n += snprintf(shape + n, sizeof shape - (size_t)n, "%s%lld", i ? ", " : "", (long long)tensor.shape[i]);
        return refuse(error, error_size, "%s: tensor \"%s\" has shape [%s]: a colour matrix has [3, 3] or [3, 4]", path, tensor.name,
                      shape);
    }
    for (int i = 0; i < 3 * tensor.shape[1]; i++) {
        numbers[i] = jgf_tensor_value(&tensor, i);
        if (check_number(numbers[i], i + 1, why, sizeof why) != 0)
            return refuse(error, error_size, "%s: tensor \"%s\": %s", path, tensor.name, why);
    }
    take_numbers(numbers, (int)tensor.shape[1], color);
    return 0;
}

/* The nearest integers to coefficients / scale, and the sum of what they are off by. */
static double round_row(const double *row, double scale, int8_t *q)
{
    double off = 0;
    for (int i = 0; i < 3; i++) {
        q[i] = (int8_t)fmax(-LARGEST_Q, fmin(LARGEST_Q, rint(row[i] / scale)));
        off += fabs(row[i] - scale * q[i]);
    }
    return off;
}

static void quantise_row(const double *row, int8_t *q, float *scale, float *bias, double *worst)
{
    double least = INFINITY, middle = 0, most = 0;
    int8_t tried[3];
    memset(q, 0, 3);
    *scale = 1;
    for (int divisor = 1; divisor <= LARGEST_Q; divisor++) {
        for (int i = 0; i < 3; i++) {
            const float candidate = (float)(fabs(row[i]) / divisor); /* judged as the float32 that it will be */
            if (fabs(row[i]) < NOTHING) continue;
            const double off = round_row(row, candidate, tried);
            if (off >= least) continue;
            least = off;
            *scale = candidate;
            memcpy(q, tried, 3);
        }
    }
    if (least == INFINITY) least = 0;
    for (int i = 0; i < 3; i++) {
        middle += 127.5 * (row[i] - (double)*scale * q[i]);
        most += 255.0 * (double)*scale * abs(q[i]);
    }
    *bias = (float)(row[3] + middle);
    /* float32 rounds the bias, the product and the sum of the two. The integers' sum itself is exact, below 2^24. */
    *worst = 127.5 * least + FLOAT_ROUNDING * (2 * most + 2 * fabs((double)*bias)) * (1 + 0x1p-20);
    if (least == 0 && *scale == 1 && *bias == rintf(*bias)) *worst = 0; /* whole numbers, all of them exact */
}

void jgf_color_quantise(const jgf_color *color, jgf_color_integers *integers)
{
    for (int j = 0; j < 3; j++)
        quantise_row(color->matrix[j], integers->q[j], &integers->scale[j], &integers->bias[j], &integers->worst[j]);
}

void jgf_color_expand(const jgf_color_integers *integers, const jgf_pixel_format *format, int group, int8_t *b, float *scale, float *bias)
{
    const int bytes = format->pixel_bytes, n = group * bytes;
    const int places[3] = {format->r, format->g, format->b};
    memset(b, 0, (size_t)n * (size_t)n);
    for (int first = 0; first < n; first += bytes) {
        for (int j = 0; j < 3; j++) {
            const int column = first + places[j];
            for (int i = 0; i < 3; i++) b[(first + places[i]) * n + column] = integers->q[j][i];
            scale[column] = integers->scale[j];
            bias[column] = integers->bias[j];
        }
        if (bytes == 4) {
            const int rest = first + 6 - places[0] - places[1] - places[2];
            b[rest * n + rest] = 1;
            scale[rest] = 1;
            bias[rest] = 0;
        }
    }
}
