/* Whether a frame was computed rightly: some tokens, step by step, against double precision on the host. Each product is computed
 * from what the device had as its input, so that its error is its own, and is held to the bound that jitgemm.h states ("How far C
 * may be from R"). cuBLAS, which rounds in another order, is held to the same: that bound is for sums in any order. */
#ifndef PIPELINE_CHECK_H
#define PIPELINE_CHECK_H

#include "layers.h"

typedef struct check_result {
    int elements;
    double worst; /* error as a part of what is allowed; above 1 is wrong. NaN in a result counts as infinite */
} check_result;

/* Adds to *result. `frame`: as it was packed and uploaded; `outputs`: as they came back. The frame must be done, and nothing else
 * have used its buffers since. Blocks. */
void check_frame(check_result *result, const layers *l, const frame_buffers *b, const grid *g, const uint8_t *frame,
                 const uint16_t *outputs);

#endif
