/* A colour matrix on every pixel of a frame, as a product of integers: u8 pixels x s8 weights -> u8, scaled and biased as it is stored.
 *
 * One pixel a row would be a product of k = n = 3 or 4 with rows that begin anywhere. So neighbouring pixels are taken together: a row is
 * 16 pixels of 3 bytes, or 4 of 4 bytes, and the matrix is repeated along the diagonal of B. 16 pixels waste 15/16 of the multiplications,
 * which the tensor cores do not notice, and rows are 48 or 16 bytes, so loads are whole and aligned. The pixels that are left at the end of
 * a line (of the frame, where lines have no padding between them) are a product of their own, on a corner of the same B. */
#ifndef JGF_COLOR_H
#define JGF_COLOR_H

#include "color_matrix.h"
#include "device.h"

typedef struct jgf_recolor {
    jgf_pixel_format format;
    jgf_buffer b, scale, bias; /* B and the epilogue's vectors, for a whole group of pixels */
    jgf_buffer in, out;
} jgf_recolor;

/* The products of one frame. */
typedef struct jgf_color_products {
    int count;              /* of problems: 0 to 2 */
    jg_problem problems[2];
    int64_t offsets[2];     /* bytes from a plane's begin to A, and to C */
} jgf_color_products;

/* How many pixels a row of A has: 16 or 4. */
int jgf_color_group(int pixel_bytes);

/* Divides a frame into products. Pure. `in` and `out` have the same lines and line_bytes, a multiple of pixel_bytes (3 or 4). */
jgf_color_products jgf_color_divide(const jgf_plane *in, const jgf_plane *out, int pixel_bytes);

/* Sets the matrix and the pixels' format for the frames to come. Blocks for small copies. Errors: those of jg_alloc and jg_copy. */
jg_status jgf_recolor_set(jgf_recolor *recolor, jgf_device *device, const jgf_color_integers *integers, const jgf_pixel_format *format);

/* Makes room for frames of this size, so that the first one need not. */
jg_status jgf_recolor_reserve(jgf_recolor *recolor, jgf_device *device, const jgf_plane *plane);

/* Recolours a frame and waits for it. `out` must not overlap `in`. Errors: those of jg_gemm and jg_copy. */
jg_status jgf_recolor_run(jgf_recolor *recolor, jgf_device *device, const jgf_plane *in, const jgf_plane *out);

void jgf_recolor_free(jgf_recolor *recolor, jgf_device *device);

#endif
