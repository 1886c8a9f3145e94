/* jitgemmfilter in mode=color: golden frames of all formats, odd sizes and padded lines on the cpu device and the software GPU, against
 * the matrix in double; matrices by text, by file, and changed while playing. */
#include "gst_fixture.h"
#include "safetensors.h"

#ifdef JG_HAVE_GST
#include <pthread.h>

#define GAMUT "1.6605 -0.5876 -0.0728 4.5  -0.1246 1.1329 -0.0083 -3  -0.0182 -0.1006 1.1187 0.25"

static const struct { int width, height; } sizes[] = {{48, 32}, {33, 7}, {1, 1}};

/* Checksums (FNV-1a of the visible bytes) of what SEPIA and GAMUT make of frame 3 in RGB, in these sizes: as both devices gave them, with
 * each byte within the bound of the exact one. */
static const uint32_t golden[2][3] = {{0xa6af2eeb, 0xc7580a78, 0xcd59ec12}, {0x4364338a, 0x61cedc80, 0x120b9b1d}};

/* Pushes a frame through and returns its visible bytes, the caller's; timestamps must be kept, and the input unchanged. */
static uint8_t *recolour(GstHarness *harness, const frame_shape *shape, uint32_t seed)
{
    GstBuffer *in = make_frame(shape, seed);
    uint8_t *before = read_frame(shape, in);
    gst_buffer_ref(in);
    gst_harness_set_src_caps(harness, shape_caps(shape));
    GstBuffer *out = gst_harness_push_and_pull(harness, in);
    assert_non_null(out);
    assert_true(GST_BUFFER_PTS(out) == GST_BUFFER_PTS(in) && GST_BUFFER_DURATION(out) == GST_BUFFER_DURATION(in));
    uint8_t *after = read_frame(shape, in), *bytes = read_frame(shape, out);
    assert_memory_equal(before, after, frame_bytes(shape));
    free(before);
    free(after);
    gst_buffer_unref(in);
    gst_buffer_unref(out);
    return bytes;
}

/* All formats, sizes and paddings; the cpu device's bits are the software GPU's. */
static void check_golden(const char *text, const uint32_t *sums, double least_psnr)
{
    const jgf_color color = parse_color(text);
    GstHarness *harnesses[2];
    for (int d = 0; d < 2; d++) {
        const char *device = fixture_devices[d];
        harnesses[d] = has_device(device) ? make_harness(make_filter("device=%s matrix=\"%s\"", device, text)) : NULL;
    }
    for (int f = 0; f < FIXTURE_FORMATS; f++) {
        for (int s = 0; s < 3; s++) {
            for (int padding = 0; padding <= 20; padding += 20) {
                const frame_shape shape = {&fixture_formats[f], sizes[s].width, sizes[s].height, padding};
                uint8_t *first = NULL;
                for (int d = 0; d < 2; d++) {
                    if (!harnesses[d]) continue;
                    uint8_t *found = recolour(harnesses[d], &shape, 3);
                    const double psnr = judge_frame(&shape, &color, 3, found);
                    if (psnr < least_psnr) fail_msg("%s %dx%d: PSNR %.2f dB", shape.format->name, shape.width, shape.height, psnr);
                    if (f == 0 && checksum(found, frame_bytes(&shape)) != sums[s])
                        fail_msg("%s, %dx%d: checksum 0x%08x, not 0x%08x", fixture_devices[d], shape.width, shape.height,
                                 checksum(found, frame_bytes(&shape)), sums[s]);
                    if (first) assert_memory_equal(found, first, frame_bytes(&shape));
                    if (first) free(found);
                    else first = found;
                }
                free(first);
            }
        }
    }
    for (int d = 0; d < 2; d++)
        if (harnesses[d]) gst_harness_teardown(harnesses[d]);
}

static void test_golden_frames(void **state)
{
    (void)state;
    check_golden(SEPIA, golden[0], 50);
    check_golden(GAMUT, golden[1], 50);
}

/* Small integers are exact: identity, the default, and the negative. */
static void test_exact_matrices(void **state)
{
    (void)state;
    const frame_shape shape = {&fixture_formats[0], 33, 7, 0};
    for (int d = 0; d < 2; d++) {
        if (!has_device(fixture_devices[d])) continue;
        GstHarness *harness = make_harness(make_filter("device=%s", fixture_devices[d]));
        for (int negative = 0; negative < 2; negative++) {
            if (negative) gst_util_set_object_arg(G_OBJECT(harness->element), "matrix", NEGATIVE);
            uint8_t *found = recolour(harness, &shape, 5);
            for (size_t i = 0; i < frame_bytes(&shape); i++) {
                const uint8_t in = frame_level(5, (int)(i / 3 % 33), (int)(i / 3 / 33), (int)(i % 3));
                assert_int_equal(found[i], negative ? 255 - in : in);
            }
            free(found);
        }
        gst_harness_teardown(harness);
    }
}

/* A matrix from a file; one given as a text goes before it, also while playing. */
static void test_matrix_from_a_file(void **state)
{
    (void)state;
    static const float numbers[12] = {0, 0, 1, 8, 0, 1, 0, -8, 1, 0, 0, 0};
    const frame_shape shape = {&fixture_formats[4], 5, 3, 0};
    const jgf_color expected = parse_color("0 0 1 8 0 1 0 -8 1 0 0 0"), other = parse_color("1 0 0 0 1 0 0 0 0.5");
    const char *path = scratch_path(folder, "matrix.safetensors");
    safetensors_write(path, "{\"matrix\":{\"dtype\":\"F32\",\"shape\":[3,4],\"data_offsets\":[0,48]}}", numbers, sizeof numbers);
    GstHarness *harness = make_harness(make_filter("device=cpu weights=%s", path));
    uint8_t *found = recolour(harness, &shape, 1);
    assert_true(isinf(judge_frame(&shape, &expected, 1, found)));
    free(found);
    g_object_set(harness->element, "matrix", "1 0 0 0 1 0 0 0 0.5", NULL);
    found = recolour(harness, &shape, 2);
    assert_true(isinf(judge_frame(&shape, &other, 2, found)));
    free(found);
    gst_harness_teardown(harness);
}

/* What videotestsrc draws, by way of NV12 and videoconvert: each frame that comes out is the matrix of the one that went in. */
static GstBuffer *seen[2][8];
static int seen_count[2];
static pthread_mutex_t seen_lock = PTHREAD_MUTEX_INITIALIZER; /* one that the thread sanitizer knows */

static void see(GstElement *sink, GstBuffer *buffer, GstPad *pad, gpointer user)
{
    (void)sink;
    (void)pad;
    const int side = GPOINTER_TO_INT(user);
    pthread_mutex_lock(&seen_lock);
    if (seen_count[side] < 8) seen[side][seen_count[side]++] = gst_buffer_ref(buffer);
    pthread_mutex_unlock(&seen_lock);
}

static void check_pattern(const char *pattern)
{
    const jgf_color color = parse_color(SEPIA);
    const frame_shape shape = {&fixture_formats[0], 34, 18, 0};
    GError *error = NULL;
    char text[1024];
    snprintf(text, sizeof text, "videotestsrc num-buffers=3 pattern=%s ! video/x-raw,format=NV12,width=34,height=18 ! videoconvert ! "
             "video/x-raw,format=RGB ! tee name=t ! queue ! fakesink name=in signal-handoffs=true "
             "t. ! queue ! jitgemmfilter device=cpu matrix=\"" SEPIA "\" ! fakesink name=out signal-handoffs=true", pattern);
    GstElement *pipeline = gst_parse_launch(text, &error);
    if (error) fail_msg("%s", error->message);
    for (int side = 0; side < 2; side++) {
        GstElement *sink = gst_bin_get_by_name(GST_BIN(pipeline), side ? "out" : "in");
        g_signal_connect(sink, "handoff", G_CALLBACK(see), GINT_TO_POINTER(side));
        gst_object_unref(sink);
        pthread_mutex_lock(&seen_lock);
        seen_count[side] = 0;
        pthread_mutex_unlock(&seen_lock);
    }
    play_to_end(pipeline);
    gst_element_set_state(pipeline, GST_STATE_NULL);
    gst_object_unref(pipeline);
    pthread_mutex_lock(&seen_lock);
    const int counts[] = {seen_count[0], seen_count[1]};
    pthread_mutex_unlock(&seen_lock);
    assert_int_equal(counts[0], 3);
    assert_int_equal(counts[1], 3);
    jgf_color_integers integers;
    jgf_color_quantise(&color, &integers);
    for (int n = 0; n < 3; n++) {
        uint8_t *in = read_frame(&shape, seen[0][n]), *out = read_frame(&shape, seen[1][n]);
        for (size_t i = 0; i < frame_bytes(&shape); i++) {
            const double exact = exact_byte(&color, &shape.format->pixel, in, i), worst = integers.worst[i % 3];
            if (out[i] < limit_byte(rint(exact - worst)) || out[i] > limit_byte(rint(exact + worst)))
                fail_msg("%s, frame %d, byte %zu: %d, exactly %.4f", pattern, n, i, out[i], exact);
        }
        free(in);
        free(out);
        for (int side = 0; side < 2; side++) gst_buffer_unref(seen[side][n]);
    }
}

static void test_patterns_by_way_of_nv12(void **state)
{
    (void)state;
    need_element("videotestsrc");
    need_element("videoconvert");
    static const char *const patterns[] = {"smpte", "ball", "snow", "zone-plate"};
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) check_pattern(patterns[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden_frames),
        cmocka_unit_test(test_exact_matrices),
        cmocka_unit_test(test_matrix_from_a_file),
        cmocka_unit_test(test_patterns_by_way_of_nv12),
    };
    return cmocka_run_group_tests(tests, gst_fixture_begin, gst_fixture_end);
}

#endif
GST_FIXTURE_MAIN
