/* See check.h. */
#include "check.h"

#include "common.h"
#include "../float16.h"

#include <string.h>

enum { SAMPLES = 8 }; /* tokens of a frame, the first and the last among them */
#define U 0x1p-24     /* half a unit in the last place of float32, at 1 */

/* A value and how far the device's may be from it. */
typedef struct bounded {
    double value, error;
} bounded;

/* A sum of k products, with the sum of their magnitudes; of floats. */
static bounded of_sum(double sum, double magnitudes, int k)
{
    return (bounded){sum, (k > 8 ? k : 8) * 0x1p-23 * magnitudes};
}

static bounded plus(bounded x, double y)
{
    const double value = x.value + y;
    return (bounded){value, x.error + U * (fabs(value) + x.error)};
}

static bounded gelu(bounded x)
{
    const double v = x.value, inner = sqrt(2 / 3.14159265358979323846) * (v + 0.044715 * v * v * v);
    return (bounded){v / 2 * (1 + tanh(inner)), 1.13 * x.error + 0x1p-22 * (fabs(v) + 1)};
}

static bounded to_f16(bounded x)
{
    return (bounded){x.value, x.error + f16_half_unit(fabs(x.value) + x.error)};
}

static void judge(check_result *result, double got, bounded want)
{
    const double part = fabs(got - want.value) / want.error;
    result->elements++;
    if (!(part <= result->worst)) result->worst = isnan(part) ? INFINITY : part;
}

/* Elements of the device, as numbers. */
static void fetch(const layers *l, const uint16_t *from, int count, double *values)
{
    uint16_t halves[HIDDEN_2];
    CHECK(jg_copy(l->context, halves, from, sizeof *halves * (size_t)count));
    for (int i = 0; i < count; i++) values[i] = f16_value(halves[i]);
}

/* Column j of a row times a matrix. */
static bounded multiply(const double *row, const uint16_t *matrix, int k, int n, int j)
{
    double sum = 0, magnitudes = 0;
    for (int i = 0; i < k; i++) {
        const double product = row[i] * f16_value(matrix[(size_t)i * (size_t)n + (size_t)j]);
        sum += product;
        magnitudes += fabs(product);
    }
    return of_sum(sum, magnitudes, k);
}

/* The values of a patch in luma or chroma: `lines` lines of PATCH bytes. */
static void check_patch(check_result *result, const grid *g, const uint8_t *frame, int col, int first_line, int lines, int is_luma,
                        const double *got)
{
    for (int i = 0; i < lines * PATCH; i++) {
        const double scale = is_luma ? 2.0f / 219 : 1.0f / 112, bias = is_luma ? -2.0f * 16 / 219 - 1 : -128.0f / 112;
        const int byte = frame[(size_t)(first_line + i / PATCH) * (size_t)(PATCH * g->cols) + (size_t)(PATCH * col + i % PATCH)];
        judge(result, got[i], to_f16(plus(of_sum((float)scale * byte, scale * byte, 1), (float)bias)));
    }
}

static bounded first_layer(const layers *l, const double *luma, const double *chroma, double partial, int j)
{
    const bounded sum = multiply(luma, l->host.luma, LUMA, HIDDEN_1, j);
    if (!l->peer) return gelu(plus(sum, partial));
    /* cuBLAS: chroma is rounded to f16 before luma is added to it. */
    const bounded first = to_f16(multiply(chroma, l->host.chroma, CHROMA, HIDDEN_1, j));
    return (bounded){sum.value + first.value, first.error + sum.error + LUMA * 0x1p-23 * (fabs(first.value) + first.error)};
}

static void check_token(check_result *result, const layers *l, const frame_buffers *b, const grid *g, const uint8_t *frame,
                        const uint16_t *outputs, int token)
{
    const int col = token / g->rows, row = token % g->rows, is_peer = l->peer != NULL;
    const uint16_t *column = b->patches + (size_t)col * (size_t)(g->rows * (LUMA + CHROMA));
    double luma[LUMA], chroma[CHROMA], partial[HIDDEN_1] = {0}, first[HIDDEN_1], second[HIDDEN_2];
    fetch(l, column + row * LUMA, LUMA, luma);
    fetch(l, column + g->rows * LUMA + row * CHROMA, CHROMA, chroma);
    if (!is_peer) fetch(l, b->partial + (size_t)token * HIDDEN_1, HIDDEN_1, partial);
    fetch(l, b->hidden_1 + (size_t)token * HIDDEN_1, HIDDEN_1, first);
    fetch(l, b->hidden_2 + (size_t)token * HIDDEN_2, HIDDEN_2, second);
    check_patch(result, g, frame, col, row * PATCH, PATCH, 1, luma);
    check_patch(result, g, frame, col, (g->rows * 2 + row) * PATCH / 2, PATCH / 2, 0, chroma);
    for (int j = 0; j < HIDDEN_1; j++) {
        if (!is_peer) judge(result, partial[j], to_f16(plus(multiply(chroma, l->host.chroma, CHROMA, HIDDEN_1, j), l->host.bias_1[j])));
        judge(result, first[j], to_f16(first_layer(l, luma, chroma, partial[j], j)));
    }
    for (int j = 0; j < HIDDEN_2; j++) {
        const bounded x = multiply(first, l->host.second, HIDDEN_1, HIDDEN_2, j);
        judge(result, second[j], to_f16(is_peer ? x : gelu(plus(x, l->host.bias_2[j]))));
    }
    for (int j = 0; j < OUTPUTS; j++) {
        const bounded x = multiply(second, l->host.third, HIDDEN_2, OUTPUTS, j);
        judge(result, f16_value(outputs[(size_t)token * OUTPUTS + (size_t)j]), to_f16(is_peer ? x : plus(x, l->host.bias_3[j])));
    }
}

void check_frame(check_result *result, const layers *l, const frame_buffers *b, const grid *g, const uint8_t *frame,
                 const uint16_t *outputs)
{
    const int samples = g->tokens < SAMPLES ? g->tokens : SAMPLES;
    for (int i = 0; i < samples; i++)
        check_token(result, l, b, g, frame, outputs, samples > 1 ? (int)((int64_t)(g->tokens - 1) * i / (samples - 1)) : 0);
}
