/* jitgemmfilter in mode=embed: golden tensors of all types and formats on the cpu device and the software GPU, against the convolution
 * in double; what meta and message say; and that frames pass through untouched. */
#include "gst_fixture.h"
#include "safetensors.h"

#ifdef JG_HAVE_GST

#include "examples/float16.h"
#include "examples/gstreamer/tensor_meta.h"

/* Weights of D channels for patches of P x P, as floats in a file. */
typedef struct network {
    int patch, channels;
    float *weights, *bias; /* [D][3][P][P], [D] */
    char path[PATH_MAX];
} network;

static const double usual_mean[3] = {0.5, 0.5, 0.5}, usual_std[3] = {0.5, 0.5, 0.5};

/* Types, half a unit in the last place of each, relative, and half its least denormal. */
static const struct type_row {
    const char *name;
    jg_type type;
    double half, least;
    double rms;              /* what the relative error may be on average */
    uint32_t golden[2];      /* FNV-1a of the tensor of 23x14 pixels, cpu and swgpu, as each gave it with all values within the bound */
} types[] = {
    {"f16", JG_F16, 0x1p-11, 0x1p-25, 1e-3, {0x85608729, 0x85608729}},
    {"bf16", JG_BF16, 0x1p-8, 0x1p-134, 8e-3, {0x9c7f59a1, 0x9c7f59a1}},
    {"f32", JG_F32, 0x1p-24, 0x1p-150, 2e-7, {0xc6e1a661, 0x8db4b573}},
};

static float small(uint32_t *random)
{
    *random = *random * 1664525 + 1013904223;
    return ((float)(*random >> 8) / 8388608.0f - 1) * 0.25f;
}

/* File "NAME" with the tensors PREFIX.weight (dtype F32) and, if asked for, PREFIX.bias. */
static network make_network(const char *name, const char *prefix, int patch, int channels, int with_bias)
{
    const size_t count = (size_t)(channels * 3 * patch * patch), bias = with_bias ? (size_t)channels : 0;
    network n = {.patch = patch, .channels = channels, .weights = calloc(count + bias, sizeof(float))};
    char header[1024];
    uint32_t random = (uint32_t)(patch * 1000 + channels);
    assert_non_null(n.weights);
    n.bias = with_bias ? n.weights + count : NULL;
    for (size_t i = 0; i < count + bias; i++) n.weights[i] = small(&random);
    int length = snprintf(header, sizeof header, "{\"%s.weight\":{\"dtype\":\"F32\",\"shape\":[%d,3,%d,%d],\"data_offsets\":[0,%zu]}",
                          prefix, channels, patch, patch, 4 * count);
    if (with_bias)
        length += snprintf(header + length, sizeof header - (size_t)length,
                           ",\"%s.bias\":{\"dtype\":\"F32\",\"shape\":[%d],\"data_offsets\":[%zu,%zu]}", prefix, channels, 4 * count,
                           4 * (count + bias));
    snprintf(header + length, sizeof header - (size_t)length, "}");
    snprintf(n.path, sizeof n.path, "%s", scratch_path(folder, name));
    safetensors_write(n.path, header, n.weights, 4 * (count + bias));
    return n;
}

static double value_of(const struct type_row *type, const void *data, size_t index)
{
    const jgf_tensor tensor = {.type = type->type, .dims = 1, .shape = {(int64_t)index + 1}, .data = data};
    return jgf_tensor_value(&tensor, (int64_t)index);
}

/* One element against the convolution in double. Its error is at most: what rounding the normalised pixels and the weights to the
 * type does to the sum, the library's bound of the sum (jitgemm.h: E, and u more for the bias), and the type's own rounding. */
static void judge_element(const network *n, const struct type_row *type, const frame_shape *shape, uint32_t seed, const double *mean,
                          const double *std, int row, int column, int d, double found, double *squares)
{
    const int p = n->patch, k = 3 * p * p;
    double sum = n->bias ? (double)n->bias[d] : 0, size = 0, inputs = n->bias ? fabs(sum) * type->half + type->least : 0;
    for (int c = 0; c < 3; c++)
        for (int y = 0; y < p; y++)
            for (int x = 0; x < p; x++) {
                const double level = frame_level(seed, column * p + x, row * p + y, c);
                const double a = (level / 255 - mean[c]) / std[c], w = (double)n->weights[((d * 3 + c) * p + y) * p + x];
                const double shift = fabs(mean[c] / std[c]) + fabs(level / 255 / std[c]); /* float32 loses a part of these */
                const double a_off = fabs(a) * type->half + type->least + shift * 0x1p-22, w_off = fabs(w) * type->half + type->least;
                sum += a * w;
                size += (fabs(a) + a_off) * (fabs(w) + w_off);
                inputs += fabs(a) * w_off + fabs(w) * a_off + a_off * w_off;
            }
    const double e = fmax(k, 8) * 0x1p-23 * size, bound = inputs + e + 0x1p-23 * (fabs(sum) + e + inputs);
    const double off = fabs(found - sum), limit = bound + (fabs(sum) + bound) * type->half + type->least;
    if (!(off <= limit))
        fail_msg("%s, %s %dx%d, patch %d, %d, channel %d: %.9g, exactly %.9g, and %.3g is the bound", type->name, shape->format->name,
                 shape->width, shape->height, row, column, d, found, sum, limit);
    squares[0] += off * off;
    squares[1] += sum * sum;
}

static void judge_tensor(const network *n, const struct type_row *type, const frame_shape *shape, uint32_t seed, const double *mean,
                         const double *std, const JgTensorMeta *meta)
{
    gsize bytes;
    double squares[2] = {0, 0};
    const void *data = g_bytes_get_data(meta->data, &bytes);
    assert_int_equal(meta->rows, shape->height / n->patch);
    assert_int_equal(meta->columns, shape->width / n->patch);
    assert_int_equal(meta->channels, n->channels);
    assert_string_equal(meta->type, type->name);
    assert_int_equal(bytes, jg_type_bytes(type->type, (int64_t)meta->rows * meta->columns * meta->channels));
    for (int row = 0; row < meta->rows; row++)
        for (int column = 0; column < meta->columns; column++)
            for (int d = 0; d < n->channels; d++) {
                const size_t index = (size_t)((row * meta->columns + column) * n->channels + d);
                judge_element(n, type, shape, seed, mean, std, row, column, d, value_of(type, data, index), squares);
            }
    const double rms = sqrt(squares[0] / squares[1]);
    if (meta->rows * meta->columns * n->channels > 8 && !(rms <= type->rms))
        fail_msg("%s: a relative error of %.3g on average", type->name, rms);
}

/* Pushes a frame, which must come out with the same memory and timestamps. The caller's. */
static GstBuffer *embed(GstHarness *harness, const frame_shape *shape, uint32_t seed)
{
    GstBuffer *in = make_frame(shape, seed);
    GstMemory *memory = gst_buffer_peek_memory(in, 0);
    uint8_t *before = read_frame(shape, in);
    const GstClockTime time = GST_BUFFER_PTS(in);
    gst_harness_set_src_caps(harness, shape_caps(shape));
    GstBuffer *out = gst_harness_push_and_pull(harness, in);
    assert_non_null(out);
    assert_ptr_equal(gst_buffer_peek_memory(out, 0), memory);
    assert_true(GST_BUFFER_PTS(out) == time);
    uint8_t *after = read_frame(shape, out);
    assert_memory_equal(before, after, frame_bytes(shape));
    free(before);
    free(after);
    if (!gst_buffer_get_jg_tensor_meta(out)) fail_msg("no tensor came with the frame");
    return out;
}

/* All formats and paddings, and sizes that are no multiple of the patch, in each type on each device. */
static void test_golden_tensors(void **state)
{
    (void)state;
    static const struct { int width, height; } sizes[] = {{16, 12}, {23, 14}, {4, 4}};
    network n = make_network("small.safetensors", "projection", 4, 10, 1);
    for (size_t t = 0; t < 3; t++) {
        for (int d = 0; d < 2; d++) {
            if (!has_device(fixture_devices[d])) continue;
            GstHarness *harness =
                make_harness(make_filter("mode=embed device=%s type=%s weights=%s", fixture_devices[d], types[t].name, n.path));
            for (int f = 0; f < FIXTURE_FORMATS; f++) {
                for (int s = 0; s < 3; s++) {
                    const frame_shape shape = {&fixture_formats[f], sizes[s].width, sizes[s].height, (f + s) % 2 * 12};
                    GstBuffer *out = embed(harness, &shape, 3);
                    const JgTensorMeta *meta = gst_buffer_get_jg_tensor_meta(out);
                    gsize bytes;
                    judge_tensor(&n, &types[t], &shape, 3, usual_mean, usual_std, meta);
                    const void *data = g_bytes_get_data(meta->data, &bytes);
                    if (s == 1 && checksum(data, bytes) != types[t].golden[d])
                        fail_msg("%s %s %s: checksum 0x%08x, not 0x%08x", fixture_devices[d], types[t].name, shape.format->name,
                                 checksum(data, bytes), types[t].golden[d]);
                    gst_buffer_unref(out);
                }
            }
            gst_harness_teardown(harness);
        }
    }
    free(n.weights);
}

/* Patches as large as a vision transformer's, whose sums are long. */
static void test_patches_of_16(void **state)
{
    (void)state;
    network n = make_network("large.safetensors", "vit.embeddings.patch_embeddings.projection", 16, 40, 1);
    const frame_shape shape = {&fixture_formats[0], 50, 35, 0};
    for (int d = 0; d < 2; d++) {
        if (!has_device(fixture_devices[d])) continue;
        GstHarness *harness =
            make_harness(make_filter("mode=embed device=%s weights=%s tensor=projection.weight", fixture_devices[d], n.path));
        GstBuffer *out = embed(harness, &shape, 4);
        judge_tensor(&n, &types[0], &shape, 4, usual_mean, usual_std, gst_buffer_get_jg_tensor_meta(out));
        gst_buffer_unref(out);
        gst_harness_teardown(harness);
    }
    free(n.weights);
}

/* mean and std, changed while playing; no bias. */
static void test_normalises_as_told(void **state)
{
    (void)state;
    static const double mean[3] = {0.485, 0.456, 0.406}, std[3] = {0.229, 0.224, 0.225}, unit[3] = {1, 1, 1}, zero[3] = {0, 0, 0};
    network n = make_network("plain.safetensors", "conv", 4, 3, 0);
    const frame_shape shape = {&fixture_formats[1], 9, 8, 0};
    GstHarness *harness = make_harness(make_filter("mode=embed device=cpu type=f32 weights=%s mean=\"0 0 0\" std=\"1,1,1\"", n.path));
    GstBuffer *out = embed(harness, &shape, 1);
    judge_tensor(&n, &types[2], &shape, 1, zero, unit, gst_buffer_get_jg_tensor_meta(out));
    gst_buffer_unref(out);
    g_object_set(harness->element, "mean", "0.485 0.456 0.406", "std", "0.229 0.224 0.225", NULL);
    out = embed(harness, &shape, 2);
    judge_tensor(&n, &types[2], &shape, 2, mean, std, gst_buffer_get_jg_tensor_meta(out));
    gst_buffer_unref(out);
    gst_harness_teardown(harness);
    free(n.weights);
}

/* Weights kept as f16 and bf16 are taken as they are. */
static void test_types_of_files(void **state)
{
    (void)state;
    const frame_shape shape = {&fixture_formats[0], 4, 4, 0};
    network n = make_network("f32.safetensors", "w", 4, 2, 0);
    for (int bfloat = 0; bfloat < 2; bfloat++) {
        uint16_t halves[2 * 48];
        for (int i = 0; i < 96; i++) {
            halves[i] = bfloat ? bf16_bits((double)n.weights[i]) : f16_bits((double)n.weights[i]);
            n.weights[i] = (float)value_of(&types[bfloat], halves, (size_t)i);
        }
        char header[128];
        snprintf(header, sizeof header, "{\"w\":{\"dtype\":\"%s\",\"shape\":[2,3,4,4],\"data_offsets\":[0,192]}}", bfloat ? "BF16" : "F16");
        safetensors_write(n.path, header, halves, sizeof halves);
        GstHarness *harness = make_harness(make_filter("mode=embed device=cpu type=f32 weights=%s", n.path));
        GstBuffer *out = embed(harness, &shape, 1);
        judge_tensor(&n, &types[2], &shape, 1, usual_mean, usual_std, gst_buffer_get_jg_tensor_meta(out));
        gst_buffer_unref(out);
        gst_harness_teardown(harness);
    }
    free(n.weights);
}

/* post-messages: the same tensor as in the meta, with the frame's times. */
static void test_messages(void **state)
{
    (void)state;
    network n = make_network("small.safetensors", "projection", 4, 10, 1);
    const frame_shape shape = {&fixture_formats[0], 16, 12, 0};
    GstElement *filter = make_filter("mode=embed device=cpu post-messages=true weights=%s", n.path);
    GstBus *bus = gst_bus_new();
    gst_element_set_bus(filter, bus);
    GstHarness *harness = make_harness(filter);
    for (uint32_t frame = 0; frame < 3; frame++) {
        GstBuffer *out = embed(harness, &shape, frame);
        const JgTensorMeta *meta = gst_buffer_get_jg_tensor_meta(out);
        GstMessage *message = wait_message(bus, GST_MESSAGE_ELEMENT);
        const GstStructure *structure = gst_message_get_structure(message);
        gint rows = 0, columns = 0, channels = 0;
        guint64 timestamp = 0, stream_time = 0, running_time = 0, duration = 0;
        GBytes *data = NULL;
        assert_string_equal(gst_structure_get_name(structure), "jitgemm-tensor");
        assert_true(gst_structure_get(structure, "rows", G_TYPE_INT, &rows, "columns", G_TYPE_INT, &columns, "channels", G_TYPE_INT,
                                      &channels, "timestamp", G_TYPE_UINT64, &timestamp, "stream-time", G_TYPE_UINT64, &stream_time,
                                      "running-time", G_TYPE_UINT64, &running_time, "duration", G_TYPE_UINT64, &duration, "data",
                                      G_TYPE_BYTES, &data, NULL));
        assert_true(rows == 3 && columns == 4 && channels == 10);
        assert_string_equal(gst_structure_get_string(structure, "type"), "f16");
        assert_true(timestamp == GST_BUFFER_PTS(out) && stream_time == timestamp && running_time == timestamp);
        assert_true(duration == GST_BUFFER_DURATION(out));
        assert_true(g_bytes_equal(data, meta->data));
        assert_int_equal(meta->frame, frame);
        g_bytes_unref(data);
        gst_message_unref(message);
        gst_buffer_unref(out);
    }
    g_object_set(filter, "post-messages", FALSE, NULL);
    gst_harness_teardown(harness);
    gst_object_unref(bus);
    free(n.weights);
}

/* A buffer that others hold too gets no tensor: one that shares its memory does. */
static void test_shared_buffers(void **state)
{
    (void)state;
    network n = make_network("small.safetensors", "projection", 4, 10, 1);
    const frame_shape shape = {&fixture_formats[0], 16, 12, 0};
    GstHarness *harness = make_harness(make_filter("mode=embed device=cpu weights=%s", n.path));
    GstBuffer *in = make_frame(&shape, 1);
    gst_buffer_ref(in); /* as a tee does */
    gst_harness_set_src_caps(harness, shape_caps(&shape));
    GstBuffer *out = gst_harness_push_and_pull(harness, in);
    assert_ptr_not_equal(out, in);
    assert_null(gst_buffer_get_jg_tensor_meta(in));
    assert_ptr_equal(gst_buffer_peek_memory(out, 0), gst_buffer_peek_memory(in, 0));
    judge_tensor(&n, &types[0], &shape, 1, usual_mean, usual_std, gst_buffer_get_jg_tensor_meta(out));
    gst_buffer_unref(in);
    gst_buffer_unref(out);
    gst_harness_teardown(harness);
    free(n.weights);
}

/* The meta goes with a copy of the buffer and through videoconvert, and what it holds outlives the element. */
static void test_meta_goes_along(void **state)
{
    (void)state;
    need_element("videoconvert");
    network n = make_network("small.safetensors", "projection", 4, 10, 1);
    const frame_shape shape = {&fixture_formats[0], 16, 12, 0};
    char text[PATH_MAX + 128];
    snprintf(text, sizeof text, "jitgemmfilter mode=embed device=cpu weights=%s ! videoconvert ! capsfilter caps=video/x-raw,format=I420",
             n.path);
    GstHarness *harness = gst_harness_new_parse(text);
    gst_harness_set_src_caps(harness, shape_caps(&shape));
    GstBuffer *out = gst_harness_push_and_pull(harness, make_frame(&shape, 2));
    assert_non_null(out);
    if (!gst_buffer_get_jg_tensor_meta(out)) fail_msg("videoconvert took the tensor away");
    GstBuffer *copy = gst_buffer_copy_deep(out);
    gst_buffer_unref(out);
    gst_harness_teardown(harness);
    const JgTensorMeta *meta = gst_buffer_get_jg_tensor_meta(copy);
    assert_non_null(meta);
    judge_tensor(&n, &types[0], &shape, 2, usual_mean, usual_std, meta);
    gst_buffer_unref(copy);
    free(n.weights);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden_tensors),
        cmocka_unit_test(test_patches_of_16),
        cmocka_unit_test(test_normalises_as_told),
        cmocka_unit_test(test_types_of_files),
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_shared_buffers),
        cmocka_unit_test(test_meta_goes_along),
    };
    return cmocka_run_group_tests(tests, gst_fixture_begin, gst_fixture_end);
}

#endif
GST_FIXTURE_MAIN
