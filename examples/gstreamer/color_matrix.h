/* A colour matrix as a product of integers: numbers or a weight file in, what a product u8 pixels x s8 weights -> u8 needs out.
 *
 * A frame's pixels are rows of bytes, so a matrix applied to each is a product; its coefficients become 8-bit integers with a scale
 * for each output, and the rest goes into the epilogue (JG_EPILOGUE_SCALE_N, JG_EPILOGUE_BIAS_N). Plain C, no state, thread-safe. */
#ifndef JGF_COLOR_MATRIX_H
#define JGF_COLOR_MATRIX_H

#include <stddef.h>
#include <stdint.h>

#include "weights.h"

/* out = matrix[.][0..2] * in + matrix[.][3], in and out in levels of 0 to 255, both in the order R, G, B. */
typedef struct jgf_color {
    double matrix[3][4];
} jgf_color;

/* Numbers larger than this, in coefficients or levels, are refused: nothing but 0 and 255 would come out. */
#define JGF_COLOR_LARGEST 1e6

/* Reads 9 or 12 numbers, rows first, with spaces, commas, semicolons or newlines between them; a decimal point is a point in every
 * locale. Returns 0; or -1 with an error text that says which number is wrong, or how many there are: then *color is unchanged. */
int jgf_color_parse(const char *text, jgf_color *color, char *error, size_t error_size);

/* Takes the tensor "matrix", or the file's only one, of shape [3, 3] or [3, 4]. Returns 0; or -1 with an error text that begins with
 * the file's path: then *color is unchanged. */
int jgf_color_read(const jgf_weights *weights, jgf_color *color, char *error, size_t error_size);

/* How it is computed: out_j = round(scale[j] * sum_i q[j][i] in_i + bias[j]), limited to 0 to 255. q[j][i] is for output j, input i.
 *
 * With scale s, coefficient c_i becomes q_i, the nearest integer to c_i / s within -127 to 127. The scale is the one with the least
 * sum |c_i - s q_i|. For fixed q that sum is piecewise linear and convex in s, so its least value is where one of the terms is 0:
 * at s = |c_i| / q for some i and q = 1 to 127, and these are tried, the smallest q first, so that a matrix of small integers is
 * exact. bias[j] is matrix[j][3] and the mean error, that at mid-grey 127.5.
 * worst[j]: no input of 0 to 255 is off by more before the rounding, in levels: 127.5 * sum |c_i - s q_i|, and what float32 loses,
 * which is less than 1e-4 where no coefficient is above 1. So the result is at most ceil(worst[j]) away from the exact one,
 * rounded. A row with no coefficient above 1e-30 counts as zeros. */
typedef struct jgf_color_integers {
    int8_t q[3][3];
    float scale[3], bias[3];
    double worst[3];
} jgf_color_integers;

void jgf_color_quantise(const jgf_color *color, jgf_color_integers *integers);

/* A packed pixel: its bytes, 3 or 4, and which of them are red, green and blue. */
typedef struct jgf_pixel_format {
    int pixel_bytes, r, g, b;
} jgf_pixel_format;

/* Fills in the product for `group` neighbouring pixels in a row (at least 1): n = k = group * pixel_bytes.
 * b: n x n, row-major, a block on the diagonal for each pixel; scale, bias: n each. A fourth byte is copied unchanged. */
void jgf_color_expand(const jgf_color_integers *integers, const jgf_pixel_format *format, int group, int8_t *b, float *scale, float *bias);

#endif
