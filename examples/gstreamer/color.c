/* Colour mode: see color.h. */
#include "color.h"

enum { GROUP_3 = 16, GROUP_4 = 4, ROW_MAX = 48 };

int jgf_color_group(int pixel_bytes)
{
    return pixel_bytes == 3 ? GROUP_3 : GROUP_4;
}

/* `rows` rows of `pixels` pixels, for each of `batch` lines. */
static jg_problem product(int64_t rows, int64_t batch, int64_t pixels, int pixel_bytes, const jgf_plane *in, const jgf_plane *out)
{
    const int64_t bytes = pixels * pixel_bytes;
    return (jg_problem){.m = rows, .n = bytes, .k = bytes, .batch = batch, .type_a = JG_U8, .type_b = JG_S8, .type_c = JG_U8,
                        .lda = bytes, .ldb = (int64_t)jgf_color_group(pixel_bytes) * pixel_bytes, .ldc = bytes,
                        .stride_a = batch > 1 ? in->stride : 0, .stride_c = batch > 1 ? out->stride : 0,
                        .epilogue = JG_EPILOGUE_SCALE_N | JG_EPILOGUE_BIAS_N};
}

jgf_color_products jgf_color_divide(const jgf_plane *in, const jgf_plane *out, int pixel_bytes)
{
    const int is_packed = in->stride == in->line_bytes && out->stride == out->line_bytes;
    const int64_t width = in->line_bytes / pixel_bytes, group = jgf_color_group(pixel_bytes);
    const int64_t batch = is_packed ? 1 : in->lines, pixels = is_packed ? width * in->lines : width;
    const int64_t rows = pixels / group, rest = pixels % group;
    jgf_color_products products = {0};
    if (batch == 0) return products;
    if (rows) products.problems[products.count++] = product(rows, batch, group, pixel_bytes, in, out);
    if (rest) {
        products.offsets[products.count] = rows * group * pixel_bytes;
        products.problems[products.count++] = product(1, batch, rest, pixel_bytes, in, out);
    }
    return products;
}

jg_status jgf_recolor_set(jgf_recolor *recolor, jgf_device *device, const jgf_color_integers *integers, const jgf_pixel_format *format)
{
    int8_t b[ROW_MAX * ROW_MAX];
    float scale[ROW_MAX], bias[ROW_MAX];
    const int group = jgf_color_group(format->pixel_bytes);
    const size_t row = (size_t)(group * format->pixel_bytes);
    jgf_color_expand(integers, format, group, b, scale, bias);
    recolor->format = *format;
    jg_status status = jgf_buffer_fill(device, &recolor->b, b, row * row);
    if (status == JG_OK) status = jgf_buffer_fill(device, &recolor->scale, scale, row * sizeof *scale);
    if (status == JG_OK) status = jgf_buffer_fill(device, &recolor->bias, bias, row * sizeof *bias);
    return status;
}

jg_status jgf_recolor_reserve(jgf_recolor *recolor, jgf_device *device, const jgf_plane *plane)
{
    const jg_status status = jgf_plane_reserve(device, &recolor->in, plane);
    return status == JG_OK ? jgf_plane_reserve(device, &recolor->out, plane) : status;
}

jg_status jgf_recolor_run(jgf_recolor *recolor, jgf_device *device, const jgf_plane *in, const jgf_plane *out)
{
    const jgf_color_products products = jgf_color_divide(in, out, recolor->format.pixel_bytes);
    const void *from;
    void *to;
    jg_status status = jgf_plane_in(device, &recolor->in, in, &from);
    if (status == JG_OK) status = jgf_plane_out(device, &recolor->out, out, &to);
    for (int i = 0; status == JG_OK && i < products.count; i++) {
        const jg_operands data = {.a = (const uint8_t *)from + products.offsets[i], .b = recolor->b.data,
                                  .c = (uint8_t *)to + products.offsets[i], .scale_n = recolor->scale.data,
                                  .bias_n = recolor->bias.data};
        status = jg_gemm(device->context, &products.problems[i], &data);
    }
    return status == JG_OK ? jgf_plane_done(device, &recolor->out, out) : status;
}

void jgf_recolor_free(jgf_recolor *recolor, jgf_device *device)
{
    jgf_buffer *const buffers[] = {&recolor->b, &recolor->scale, &recolor->bias, &recolor->in, &recolor->out};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) jgf_buffer_free(device, buffers[i]);
}
