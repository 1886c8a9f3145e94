/* See layers.h. */
#include "layers.h"

#include "common.h"
#include "../float16.h"

#include <math.h>
#include <stdlib.h>

grid grid_of(int width, int height)
{
    grid g = {.width = width, .height = height, .cols = width / PATCH, .rows = height / PATCH};
    g.tokens = g.cols * g.rows;
    g.frame_bytes = (size_t)g.tokens * (LUMA + CHROMA);
    g.result_bytes = (size_t)g.tokens * OUTPUTS * sizeof(uint16_t);
    return g;
}

/* ---- weights ---- */

/* Evenly from -1 to 1, the same in every run. */
static double draw(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (double)(*state >> 8) / (1 << 23) - 1;
}

/* Of a variance that keeps that of `inputs` values of 1. */
static uint16_t *draw_matrix(uint32_t *state, int rows, int outputs, int inputs)
{
    uint16_t *matrix = allocate((size_t)rows * (size_t)outputs, sizeof *matrix);
    for (int i = 0; i < rows * outputs; i++) matrix[i] = f16_bits(draw(state) * sqrt(3.0 / inputs));
    return matrix;
}

static float *draw_bias(uint32_t *state, int outputs)
{
    float *bias = allocate((size_t)outputs, sizeof *bias);
    for (int i = 0; i < outputs; i++) bias[i] = (float)(0.1 * draw(state));
    return bias;
}

/* Video range: luma is 16 to 235, chroma 128 +- 112. */
static void make_preprocess(weights *w, int most_rows)
{
    w->identity = allocate(PATCH * PATCH, sizeof *w->identity);
    w->scale = allocate((size_t)(LINES * most_rows), sizeof *w->scale);
    w->bias = allocate((size_t)(LINES * most_rows), sizeof *w->bias);
    for (int i = 0; i < PATCH; i++) w->identity[i * PATCH + i] = 1;
    for (int i = 0; i < LINES * most_rows; i++) {
        const int is_luma = i < PATCH * most_rows;
        w->scale[i] = is_luma ? 2.0f / 219 : 1.0f / 112;
        w->bias[i] = is_luma ? -2.0f * 16 / 219 - 1 : -128.0f / 112;
    }
}

static void *to_device(jg_context *context, const void *data, size_t bytes)
{
    void *copy;
    CHECK(jg_alloc(context, JG_DEVICE_MEMORY, bytes, &copy));
    CHECK(jg_copy(context, copy, data, bytes));
    return copy;
}

/* Every array of the weights: member, bytes. */
#define ARRAYS(X, most_rows)                                                   \
    X(identity, PATCH * PATCH)                                                 \
    X(scale, sizeof(float) * (size_t)(LINES * (most_rows)))                    \
    X(bias, sizeof(float) * (size_t)(LINES * (most_rows)))                     \
    X(luma, sizeof(uint16_t) * LUMA * HIDDEN_1)                                \
    X(chroma, sizeof(uint16_t) * CHROMA * HIDDEN_1)                            \
    X(second, sizeof(uint16_t) * HIDDEN_1 * HIDDEN_2)                          \
    X(third, sizeof(uint16_t) * HIDDEN_2 * OUTPUTS)                            \
    X(bias_1, sizeof(float) * HIDDEN_1)                                        \
    X(bias_2, sizeof(float) * HIDDEN_2)                                        \
    X(bias_3, sizeof(float) * OUTPUTS)

void layers_open(layers *l, jg_context *context, cublas *peer, int most_rows)
{
    uint32_t state = 1;
    *l = (layers){.context = context, .peer = peer, .most_rows = most_rows};
    make_preprocess(&l->host, most_rows);
    l->host.luma = draw_matrix(&state, LUMA, HIDDEN_1, LUMA + CHROMA);
    l->host.chroma = draw_matrix(&state, CHROMA, HIDDEN_1, LUMA + CHROMA);
    l->host.second = draw_matrix(&state, HIDDEN_1, HIDDEN_2, HIDDEN_1);
    l->host.third = draw_matrix(&state, HIDDEN_2, OUTPUTS, HIDDEN_2);
    l->host.bias_1 = draw_bias(&state, HIDDEN_1);
    l->host.bias_2 = draw_bias(&state, HIDDEN_2);
    l->host.bias_3 = draw_bias(&state, OUTPUTS);
#define UPLOAD(member, bytes) l->device.member = to_device(context, l->host.member, bytes);
    ARRAYS(UPLOAD, most_rows)
#undef UPLOAD
}

void layers_close(layers *l)
{
#define RELEASE(member, bytes)                                            \
    free(l->host.member);                                                 \
    CHECK(jg_free(l->context, JG_DEVICE_MEMORY, l->device.member));
    ARRAYS(RELEASE, 0)
#undef RELEASE
    *l = (layers){0};
}

static void *on_device(jg_context *context, size_t bytes)
{
    void *memory;
    CHECK(jg_alloc(context, JG_DEVICE_MEMORY, bytes, &memory));
    return memory;
}

void frame_buffers_open(frame_buffers *b, jg_context *context, int most_cols, int most_rows)
{
    const size_t tokens = (size_t)most_cols * (size_t)most_rows;
    b->frame = on_device(context, tokens * (LUMA + CHROMA));
    b->patches = on_device(context, tokens * (LUMA + CHROMA) * sizeof(uint16_t));
    b->partial = on_device(context, tokens * HIDDEN_1 * sizeof(uint16_t));
    b->hidden_1 = on_device(context, tokens * HIDDEN_1 * sizeof(uint16_t));
    b->hidden_2 = on_device(context, tokens * HIDDEN_2 * sizeof(uint16_t));
    b->result = on_device(context, tokens * OUTPUTS * sizeof(uint16_t));
}

void frame_buffers_close(frame_buffers *b, jg_context *context)
{
    void *const memory[] = {b->frame, b->patches, b->partial, b->hidden_1, b->hidden_2, b->result};
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) CHECK(jg_free(context, JG_DEVICE_MEMORY, memory[i]));
}

/* ---- a frame ---- */

/* The vectors of lines are made for the tallest frame: luma lines, then chroma lines. A smaller frame begins in the middle of
 * the luma lines, so that a change of resolution uploads nothing. */
static jg_status preprocess(const layers *l, const frame_buffers *b, const grid *g, CUstream stream)
{
    const jg_problem problem = {.m = LINES * g->rows, .n = PATCH, .k = PATCH, .batch = g->cols, .type_a = JG_U8, .type_b = JG_S8,
                                .type_c = JG_F16, .lda = PATCH * g->cols, .stride_a = PATCH, .stride_c = LINES * g->rows * PATCH,
                                .epilogue = JG_EPILOGUE_SCALE_M | JG_EPILOGUE_BIAS_M};
    const int skipped = PATCH * (l->most_rows - g->rows);
    const jg_operands data = {.a = b->frame, .b = l->device.identity, .c = b->patches, .stream = stream,
                              .scale_m = l->device.scale + skipped, .bias_m = l->device.bias + skipped};
    return jg_gemm(l->context, &problem, &data);
}

/* One of the two products of layer 1, a batch item a column. */
static jg_problem embedding(const grid *g, int inputs)
{
    return (jg_problem){.m = g->rows, .n = HIDDEN_1, .k = inputs, .batch = g->cols, .type_a = JG_F16,
                        .stride_a = (LUMA + CHROMA) * g->rows, .stride_c = g->rows * HIDDEN_1};
}

static jg_status layer_1(const layers *l, const frame_buffers *b, const grid *g, CUstream stream)
{
    jg_problem chroma = embedding(g, CHROMA), luma = embedding(g, LUMA);
    chroma.epilogue = JG_EPILOGUE_BIAS_N;
    luma.epilogue = JG_EPILOGUE_RESIDUAL;
    luma.stride_residual = luma.stride_c;
    luma.activation = JG_ACTIVATION_GELU_TANH;
    const jg_operands of_chroma = {.a = b->patches + g->rows * LUMA, .b = l->device.chroma, .c = b->partial,
                                   .bias_n = l->device.bias_1, .stream = stream};
    const jg_operands of_luma = {.a = b->patches, .b = l->device.luma, .c = b->hidden_1, .residual = b->partial, .stream = stream};
    const jg_status status = jg_gemm(l->context, &chroma, &of_chroma);
    return status == JG_OK ? jg_gemm(l->context, &luma, &of_luma) : status;
}

static jg_status layers_2_and_3(const layers *l, const frame_buffers *b, const grid *g, CUstream stream)
{
    const jg_problem second = {.m = g->tokens, .n = HIDDEN_2, .k = HIDDEN_1, .type_a = JG_F16, .epilogue = JG_EPILOGUE_BIAS_N,
                               .activation = JG_ACTIVATION_GELU_TANH};
    const jg_problem third = {.m = g->tokens, .n = OUTPUTS, .k = HIDDEN_2, .type_a = JG_F16, .epilogue = JG_EPILOGUE_BIAS_N};
    const jg_operands of_second = {.a = b->hidden_1, .b = l->device.second, .c = b->hidden_2, .bias_n = l->device.bias_2,
                                   .stream = stream};
    const jg_operands of_third = {.a = b->hidden_2, .b = l->device.third, .c = b->result, .bias_n = l->device.bias_3,
                                  .stream = stream};
    const jg_status status = jg_gemm(l->context, &second, &of_second);
    return status == JG_OK ? jg_gemm(l->context, &third, &of_third) : status;
}

/* The same products without bias and activation, which cublasGemmEx does not have. Chroma goes where luma is then added. */
static void peer_layers(const layers *l, const frame_buffers *b, const grid *g, int slot)
{
    const int64_t stride_a = (LUMA + CHROMA) * g->rows, stride_c = g->rows * HIDDEN_1;
    const cublas_product products[] = {
        {g->rows, HIDDEN_1, CHROMA, g->cols, stride_a, stride_c, b->patches + g->rows * LUMA, l->device.chroma, b->hidden_1, 0},
        {g->rows, HIDDEN_1, LUMA, g->cols, stride_a, stride_c, b->patches, l->device.luma, b->hidden_1, 1},
        {g->tokens, HIDDEN_2, HIDDEN_1, 1, 0, 0, b->hidden_1, l->device.second, b->hidden_2, 0},
        {g->tokens, OUTPUTS, HIDDEN_2, 1, 0, 0, b->hidden_2, l->device.third, b->result, 0},
    };
    for (size_t i = 0; i < sizeof products / sizeof *products; i++) cublas_multiply(l->peer, slot, &products[i]);
}

jg_status layers_run(const layers *l, const frame_buffers *b, const grid *g, int slot, CUstream stream)
{
    jg_status status = preprocess(l, b, g, stream);
    if (status == JG_OK && l->peer) peer_layers(l, b, g, slot);
    if (status == JG_OK && !l->peer) status = layer_1(l, b, g, stream);
    if (status == JG_OK && !l->peer) status = layers_2_and_3(l, b, g, stream);
    return status;
}
