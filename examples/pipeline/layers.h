/* The work of a frame, as five products. Of a frame in NV12, W x H pixels, patches of 16x16 pixels are used: cols = W / 16 of them
 * across, rows = H / 16 down; the rest at the right and at the bottom is not. What is uploaded is packed to that: 24 * rows
 * lines of 16 * cols bytes, first luma, then interleaved chroma.
 *
 *   preprocess  u8 -> f16, in -1 ... 1: a product with the identity, of which the epilogue does the work. One batch item a column of
 *               patches: A is its 24 * rows lines of 16 bytes, every line with its scale and bias (luma or chroma). So column j of the
 *               result holds `rows` luma patches of 256 values, then as many of chroma of 128, each without gaps.
 *   layer 1     the patch embedding, 256 + 128 -> 256: chroma with bias into `partial`, then luma with that added, and gelu.
 *   layer 2     256 -> 512 with bias and gelu
 *   layer 3     512 -> 64 with bias: `result`, of which each token, a patch, has a row; tokens go down the columns.
 *
 * All of it f16 with sums in f32. The number of tokens, and so m of every product, is another with every resolution. */
#ifndef PIPELINE_LAYERS_H
#define PIPELINE_LAYERS_H

#include "cublas.h"
#include "gpu.h"
#include "jitgemm.h"

enum {
    PATCH = 16,                     /* pixels, of either side */
    LUMA = PATCH * PATCH,           /* values of a patch */
    CHROMA = LUMA / 2,
    LINES = PATCH + PATCH / 2,      /* of a patch, with chroma */
    HIDDEN_1 = 256, HIDDEN_2 = 512, OUTPUTS = 64,
    PRODUCTS = 5
};

/* Resolution of a frame, and what follows from it. */
typedef struct grid {
    int width, height; /* pixels */
    int cols, rows;    /* patches */
    int tokens;        /* cols * rows */
    size_t frame_bytes, result_bytes;
} grid;

grid grid_of(int width, int height);

/* Weights, drawn from a fixed seed: on the device, and on the host for the check. Biases are f32, all else f16. */
typedef struct weights {
    int8_t *identity;
    float *scale, *bias;            /* of lines: LINES * most_rows; see layers_run */
    uint16_t *luma, *chroma, *second, *third;
    float *bias_1, *bias_2, *bias_3;
} weights;

typedef struct layers {
    jg_context *context;
    cublas *peer;                   /* multiplies layers 1 to 3 instead of jitgemm; null: none */
    int most_rows;
    weights device, host;
} layers;

/* Of one frame under way; on the device. */
typedef struct frame_buffers {
    uint8_t *frame;
    uint16_t *patches, *partial, *hidden_1, *hidden_2, *result;
} frame_buffers;

/* For frames of at most so many patches. What fails ends the program. */
void layers_open(layers *l, jg_context *context, cublas *peer, int most_rows);
void layers_close(layers *l);
void frame_buffers_open(frame_buffers *b, jg_context *context, int most_cols, int most_rows);
void frame_buffers_close(frame_buffers *b, jg_context *context);

/* Enqueues the five products on a stream. `slot`: 0 or 1, of the stream, for cuBLAS. Errors: as jg_gemm, and jg_last_error has
 * the text; cuBLAS's own end the program. */
jg_status layers_run(const layers *l, const frame_buffers *b, const grid *g, int slot, CUstream stream);

#endif
