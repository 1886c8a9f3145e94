/* The patch embedding of a frame, in two products: what a vision transformer's first layer, a convolution of P x P with stride P, makes
 * of the picture.
 *
 *   1. u8 pixels x s8 0/1 matrix -> f16 (bf16, f32): picks red, green and blue out of the pixels, whatever their format, and normalises
 *      them, (x / 255 - mean) / std, as they are stored. It works on columns of patches: item j of the batch is the P x (patches down)
 *      lines of pixels of patch column j, so what it writes is, patch by patch, the 3 P P values of each without gaps: A of the next.
 *   2. patches x (3 P P) times the weights, (3 P P) x D, plus the bias.
 *
 * The weights are those of a convolution, [D, 3, P, P], put into the order of the patches, [y][x][colour][D], when they are read.
 * Pixels at the right and at the bottom that make no whole patch are not used. */
#ifndef JGF_EMBED_H
#define JGF_EMBED_H

#include "color_matrix.h"
#include "device.h"
#include "weights.h"

#define JGF_PATCH_MAX 256 /* pixels across */

typedef struct jgf_embed {
    jg_type type;
    int patch;          /* P, pixels */
    int64_t channels;   /* D */
    int64_t ld_weights; /* elements from a row of the weights to the next */
    int has_bias;
    jgf_pixel_format format;
    jgf_buffer pick, scale, shift;      /* the first product's B and epilogue */
    jgf_buffer weights, bias;           /* the second's */
    jgf_buffer frame, patches, tensor;  /* A of the first, A of the second, C */
    jgf_buffer host;                    /* the tensor on its way to the caller */
} jgf_embed;

/* How many patches a frame has. */
typedef struct jgf_grid {
    int64_t rows, columns;
} jgf_grid;

/* Reads weights: the tensor of that name (see jgf_weights_find), or, if null, the only one of four dimensions; and the bias beside it,
 * the tensor whose name has "bias" where that ends with "weight", if there is one. Returns 0; or -1 with an error text that names the
 * file. Blocks for a copy. */
int jgf_embed_load(jgf_embed *embed, jgf_device *device, const jgf_weights *weights, const char *name, jg_type type, char *error,
                   size_t error_size);

/* Sets what pixels are normalised with, each for red, green and blue. Errors: those of jg_alloc and jg_copy. */
jg_status jgf_embed_normalise(jgf_embed *embed, jgf_device *device, const double mean[3], const double std[3]);

/* Sets the pixels' format of the frames to come. Errors: as above. */
jg_status jgf_embed_format(jgf_embed *embed, jgf_device *device, const jgf_pixel_format *format);

jgf_grid jgf_embed_grid(const jgf_embed *embed, int64_t width, int64_t height);

/* How many bytes the tensor of such a grid has: rows x columns x channels values. */
size_t jgf_embed_bytes(const jgf_embed *embed, jgf_grid grid);

/* The two products for a frame whose lines are `stride` bytes apart. Pure. */
void jgf_embed_products(const jgf_embed *embed, jgf_grid grid, int64_t stride, jg_problem problems[2]);

/* Makes room for frames of this size, so that the first one need not. Errors: those of jg_alloc. */
jg_status jgf_embed_reserve(jgf_embed *embed, jgf_device *device, jgf_grid grid, int64_t stride);

/* Computes a frame's tensor, waits for it and writes it to `tensor`, of jgf_embed_bytes: patches row by row. `pixels` has at least one
 * patch. Errors: those of jg_gemm and jg_copy. */
jg_status jgf_embed_run(jgf_embed *embed, jgf_device *device, const uint8_t *pixels, int64_t stride, jgf_grid grid, void *tensor);

void jgf_embed_free(jgf_embed *embed, jgf_device *device);

#endif
