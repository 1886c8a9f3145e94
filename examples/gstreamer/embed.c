/* Embed mode: see embed.h. */
#include "embed.h"

#include "../float16.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ENDING "weight"

/* The only tensor of four dimensions. */
static int find_only(const jgf_weights *weights, jgf_tensor *tensor, char *error, size_t size)
{
    jgf_tensor one;
    int found = 0;
    for (size_t i = 0; jgf_weights_at(weights, i, &one) == 0; i++)
        if (one.type && one.dims == 4) *tensor = one, found++;
    if (found == 1) return 0;
    snprintf(error, size, "%s: has %d tensors of 4 dimensions, [D, 3, P, P]; say which one is the patch embedding's weight "
             "(property tensor)", jgf_weights_path(weights), found);
    return -1;
}

static int check_weight(const jgf_weights *weights, const jgf_tensor *tensor, char *error, size_t size)
{
    const int64_t *s = tensor->shape;
    if (tensor->dims == 4 && s[1] == 3 && s[2] == s[3] && s[2] <= JGF_PATCH_MAX && s[0] <= INT32_MAX) return 0;
    snprintf(error, size, "%s: tensor %s has %d dimensions, [%lld, %lld, %lld, %lld]; a patch embedding has 4, [D, 3, P, P] with P up to "
             "%d", jgf_weights_path(weights), tensor->name, tensor->dims, (long long)s[0], (long long)s[1], (long long)s[2],
             (long long)s[3], JGF_PATCH_MAX);
    return -1;
}

/* Returns 1 if there is a bias, 0 if there is none, -1 with an error text if there is a wrong one. */
static int find_bias(const jgf_weights *weights, const jgf_tensor *weight, jgf_tensor *bias, char *error, size_t size)
{
    const size_t length = strlen(weight->name), ending = sizeof ENDING - 1;
    if (length < ending || strcmp(weight->name + length - ending, ENDING) != 0) return 0;
    for (size_t i = 0; jgf_weights_at(weights, i, bias) == 0; i++) {
        if (strncmp(bias->name, weight->name, length - ending) != 0 || strcmp(bias->name + length - ending, "bias") != 0) continue;
        if (bias->type && bias->dims == 1 && bias->shape[0] == weight->shape[0]) return 1;
        snprintf(error, size, "%s: tensor %s is not one of %lld values of F32, F16 or BF16, as %s needs it", jgf_weights_path(weights),
                 bias->name, (long long)weight->shape[0], weight->name);
        return -1;
    }
    return 0;
}

static void store(void *values, jg_type type, int64_t index, double value)
{
    if (type == JG_F32) ((float *)values)[index] = (float)value;
    else ((uint16_t *)values)[index] = type == JG_F16 ? f16_bits(value) : bf16_bits(value);
}

/* From [D][colour][y][x] to [y][x][colour][D]; what pads a row is zero. Null if memory is exhausted. */
static void *reorder(const jgf_embed *embed, const jgf_tensor *tensor)
{
    const int64_t patch = embed->patch, area = patch * patch;
    void *values = calloc((size_t)(3 * area * embed->ld_weights), (size_t)jg_type_bytes(embed->type, 1));
    if (!values) return NULL;
    for (int64_t d = 0; d < embed->channels; d++)
        for (int64_t color = 0; color < 3; color++)
            for (int64_t pixel = 0; pixel < area; pixel++)
                store(values, embed->type, (pixel * 3 + color) * embed->ld_weights + d,
                      jgf_tensor_value(tensor, (d * 3 + color) * area + pixel));
    return values;
}

static jg_status upload_weights(jgf_embed *embed, jgf_device *device, const jgf_tensor *tensor)
{
    void *values = reorder(embed, tensor);
    if (!values) return JG_ERR_NO_MEMORY;
    const int64_t elements = 3 * (int64_t)embed->patch * embed->patch * embed->ld_weights;
    const jg_status status = jgf_buffer_fill(device, &embed->weights, values, (size_t)jg_type_bytes(embed->type, elements));
    free(values);
    return status;
}

static jg_status upload_bias(jgf_embed *embed, jgf_device *device, const jgf_tensor *tensor)
{
    float *values = malloc((size_t)embed->channels * sizeof *values);
    if (!values) return JG_ERR_NO_MEMORY;
    for (int64_t d = 0; d < embed->channels; d++) values[d] = (float)jgf_tensor_value(tensor, d);
    const jg_status status = jgf_buffer_fill(device, &embed->bias, values, (size_t)embed->channels * sizeof *values);
    free(values);
    return status;
}

int jgf_embed_load(jgf_embed *embed, jgf_device *device, const jgf_weights *weights, const char *name, jg_type type, char *error,
                   size_t error_size)
{
    jgf_tensor weight, bias;
    *embed = (jgf_embed){.type = type, .host.memory = JG_HOST_MEMORY};
    if (name ? jgf_weights_find(weights, name, &weight, error, error_size) : find_only(weights, &weight, error, error_size)) return -1;
    if (check_weight(weights, &weight, error, error_size)) return -1;
    const int has_bias = find_bias(weights, &weight, &bias, error, error_size);
    if (has_bias < 0) return -1;
    embed->patch = (int)weight.shape[2];
    embed->channels = weight.shape[0];
    embed->ld_weights = jg_good_ld(type, embed->channels);
    embed->has_bias = has_bias;
    jg_status status = upload_weights(embed, device, &weight);
    if (status == JG_OK && has_bias) status = upload_bias(embed, device, &bias);
    if (status == JG_OK) return 0;
    snprintf(error, error_size, "%s: tensor %s could not be brought to the device: %s, %s", jgf_weights_path(weights), weight.name,
             jg_status_name(status), jg_last_error());
    jgf_embed_free(embed, device);
    return -1;
}

jg_status jgf_embed_normalise(jgf_embed *embed, jgf_device *device, const double mean[3], const double std[3])
{
    float scale[3 * JGF_PATCH_MAX], shift[3 * JGF_PATCH_MAX];
    const int n = 3 * embed->patch;
    for (int i = 0; i < n; i++) {
        scale[i] = (float)(1 / (255 * std[i % 3]));
        shift[i] = (float)(-mean[i % 3] / std[i % 3]);
    }
    const jg_status status = jgf_buffer_fill(device, &embed->scale, scale, (size_t)n * sizeof *scale);
    return status == JG_OK ? jgf_buffer_fill(device, &embed->shift, shift, (size_t)n * sizeof *shift) : status;
}

jg_status jgf_embed_format(jgf_embed *embed, jgf_device *device, const jgf_pixel_format *format)
{
    const int offsets[3] = {format->r, format->g, format->b};
    const size_t n = (size_t)embed->patch * 3, k = (size_t)embed->patch * (size_t)format->pixel_bytes;
    int8_t *pick = calloc(k, n);
    if (!pick) return JG_ERR_NO_MEMORY;
    for (int x = 0; x < embed->patch; x++)
        for (int color = 0; color < 3; color++) pick[(size_t)(x * format->pixel_bytes + offsets[color]) * n + (size_t)(x * 3 + color)] = 1;
    embed->format = *format;
    const jg_status status = jgf_buffer_fill(device, &embed->pick, pick, k * n);
    free(pick);
    return status;
}

jgf_grid jgf_embed_grid(const jgf_embed *embed, int64_t width, int64_t height)
{
    return (jgf_grid){.rows = height / embed->patch, .columns = width / embed->patch};
}

size_t jgf_embed_bytes(const jgf_embed *embed, jgf_grid grid)
{
    return (size_t)jg_type_bytes(embed->type, grid.rows * grid.columns * embed->channels);
}

void jgf_embed_products(const jgf_embed *embed, jgf_grid grid, int64_t stride, jg_problem problems[2])
{
    const int64_t patch = embed->patch, row = patch * embed->format.pixel_bytes, lines = grid.rows * patch;
    const int is_batch = grid.columns > 1;
    problems[0] = (jg_problem){.m = lines, .n = 3 * patch, .k = row, .batch = grid.columns, .type_a = JG_U8, .type_b = JG_S8,
                               .type_c = embed->type, .lda = stride, .stride_a = is_batch ? row : 0,
                               .stride_c = is_batch ? lines * 3 * patch : 0, .epilogue = JG_EPILOGUE_SCALE_N | JG_EPILOGUE_BIAS_N};
    problems[1] = (jg_problem){.m = grid.rows * grid.columns, .n = embed->channels, .k = 3 * patch * patch, .type_a = embed->type,
                               .ldb = embed->ld_weights, .epilogue = embed->has_bias ? JG_EPILOGUE_BIAS_N : 0};
}

/* What is used of a frame. */
static jgf_plane used(const jgf_embed *embed, const uint8_t *pixels, int64_t stride, jgf_grid grid)
{
    return (jgf_plane){.data = (uint8_t *)pixels, .stride = stride, .lines = grid.rows * embed->patch,
                       .line_bytes = grid.columns * embed->patch * embed->format.pixel_bytes};
}

static size_t patches_bytes(const jgf_embed *embed, jgf_grid grid)
{
    return (size_t)jg_type_bytes(embed->type, grid.rows * grid.columns * 3 * embed->patch * embed->patch);
}

jg_status jgf_embed_reserve(jgf_embed *embed, jgf_device *device, jgf_grid grid, int64_t stride)
{
    const jgf_plane plane = used(embed, NULL, stride, grid);
    const size_t bytes = jgf_embed_bytes(embed, grid);
    jg_status status = jgf_plane_reserve(device, &embed->frame, &plane);
    if (status == JG_OK) status = jgf_buffer_grow(device, &embed->patches, patches_bytes(embed, grid));
    if (status == JG_OK) status = jgf_buffer_grow(device, &embed->tensor, bytes);
    return status == JG_OK ? jgf_buffer_grow(device, &embed->host, bytes) : status;
}

jg_status jgf_embed_run(jgf_embed *embed, jgf_device *device, const uint8_t *pixels, int64_t stride, jgf_grid grid, void *tensor)
{
    const jgf_plane plane = used(embed, pixels, stride, grid);
    const size_t token = (size_t)jg_type_bytes(embed->type, embed->channels);
    jg_problem problems[2];
    const void *from;
    jg_status status = jgf_embed_reserve(embed, device, grid, stride);
    if (status == JG_OK) status = jgf_plane_in(device, &embed->frame, &plane, &from);
    if (status != JG_OK) return status;
    jgf_embed_products(embed, grid, stride, problems);
    const jg_operands first = {.a = from, .b = embed->pick.data, .c = embed->patches.data, .scale_n = embed->scale.data,
                               .bias_n = embed->shift.data};
    const jg_operands second = {.a = embed->patches.data, .b = embed->weights.data, .c = embed->tensor.data, .bias_n = embed->bias.data};
    status = jg_gemm(device->context, &problems[0], &first);
    if (status == JG_OK) status = jg_gemm(device->context, &problems[1], &second);
    if (status == JG_OK) status = jg_copy(device->context, embed->host.data, embed->tensor.data, jgf_embed_bytes(embed, grid));
    if (status != JG_OK) return status;
    /* The device has them column by column. */
    for (int64_t row = 0; row < grid.rows; row++)
        for (int64_t column = 0; column < grid.columns; column++)
            memcpy((uint8_t *)tensor + (size_t)(row * grid.columns + column) * token,
                   (const uint8_t *)embed->host.data + (size_t)(column * grid.rows + row) * token, token);
    return JG_OK;
}

void jgf_embed_free(jgf_embed *embed, jgf_device *device)
{
    jgf_buffer *const buffers[] = {&embed->pick, &embed->scale, &embed->shift, &embed->weights, &embed->bias,
                                   &embed->frame, &embed->patches, &embed->tensor, &embed->host};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) jgf_buffer_free(device, buffers[i]);
}
