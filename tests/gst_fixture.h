/* What the tests of the GStreamer element share: the plugin of this build is found, frames of known content are made and looked at, and
 * messages are picked from a bus. Without GStreamer 1.x a test program says so and skips (GST_FIXTURE_MAIN).
 *
 * Frames' content is a function of seed, place and colour alone, whatever the strides, so that frames of other layouts can be compared. */
#ifndef JG_TESTS_GST_FIXTURE_H
#define JG_TESTS_GST_FIXTURE_H

#include "scratch.h"

#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#ifndef JG_HAVE_GST

static void without_gstreamer(void **state)
{
    (void)state;
    print_message("SKIP no GStreamer 1.x\n");
    skip();
}

#define GST_FIXTURE_MAIN                                                                  \
    int main(void)                                                                        \
    {                                                                                     \
        const struct CMUnitTest tests[] = {cmocka_unit_test(without_gstreamer)};          \
        return cmocka_run_group_tests(tests, NULL, NULL);                                 \
    }

#else

#define GST_FIXTURE_MAIN

#include <gst/check/gstharness.h>
#include <gst/gst.h>
#include <gst/video/video.h>

#include "examples/gstreamer/color_matrix.h"

/* GLib replaces a table that its constructor has made and never frees the old one, for readers without locks. GLib keeps no frame
 * pointers, so only the slow way of unwinding tells that from other leaks. */
#if defined(__SANITIZE_ADDRESS__)
__attribute__((visibility("default"))) const char *__asan_default_options(void);
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
const char *__asan_default_options(void)
{
    return "fast_unwind_on_malloc=0";
}
const char *__lsan_default_suppressions(void)
{
    return "leak:call_init\n";
}
#endif

static char folder[PATH_MAX];  /* a scratch folder for the program's run */
static const char *no_kernels; /* why nothing runs on the software GPU, or null */
static const char *gpu_of_tests; /* the element's device where tests say device=swgpu: tests/gpu.sh has cuda; null: swgpu */

/* ---- before and after ---- */

static inline const char *build_folder(void)
{
    static char path[PATH_MAX];
    const char *given = getenv("JG_TEST_BUILD_DIR");
    if (!*path && !realpath(given ? given : "build", path)) abort();
    return path;
}

/* The plugin's folder, and a registry of its own, scanned in this process: a scanner that is not built for the sanitizers could not
 * load the plugin. */
static inline void find_plugin(void)
{
    char path[PATH_MAX + 16];
    snprintf(path, sizeof path, "%s/gst", build_folder());
    setenv("GST_PLUGIN_PATH", path, 1);
    setenv("GST_REGISTRY", scratch_path(folder, "registry.bin"), 1);
    setenv("GST_REGISTRY_FORK", "no", 1);
    setenv("JITGEMM_SWGPU_DEVICE", "orin-agx", 1);
    unsetenv("JITGEMM_DRIVER"); /* the element's property says what runs */
}

static inline int gst_fixture_begin(void **state)
{
    (void)state;
    static char reason[512];
    const jg_options options = {.driver_path = gpu_of_tests ? NULL : "swgpu", .device = JG_DEVICE_CUDA, .resident = JG_RESIDENT_NONE};
    const jg_problem tiny = {.m = 1, .n = 1, .k = 1};
    jg_context *context;
    scratch_make(folder);
    find_plugin();
    gpu_of_tests = getenv("JG_TEST_GST_DEVICE");
    alarm(600); /* a pipeline that stands still, or plays on after a test has failed, ends as a failure */
    gst_init(NULL, NULL);
    g_log_set_always_fatal((GLogLevelFlags)(G_LOG_FATAL_MASK | G_LOG_LEVEL_CRITICAL)); /* what GLib complains of is a bug */
    setenv("G_DEBUG", "fatal-criticals", 1);                                          /* of commands too */
    jg_status status = jg_open(&options, &context);
    if (status == JG_OK) {
        status = jg_prewarm(context, &tiny, 1, NULL, NULL);
        if (status != JG_OK) snprintf(reason, sizeof reason, "no kernels for the software GPU: %.400s", jg_last_error());
        jg_close(context);
    } else {
        snprintf(reason, sizeof reason, "no software GPU: %.400s", jg_last_error());
    }
    if (status != JG_OK) no_kernels = reason;
    return 0;
}

static inline int gst_fixture_end(void **state)
{
    (void)state;
    gst_deinit();
    scratch_remove(folder);
    return 0;
}

/* Of the devices that tests run on; says SKIP for the software GPU where no kernels can be made. */
static const char *const fixture_devices[] = {"cpu", "swgpu"};

static inline int has_device(const char *device)
{
    if (strcmp(device, "swgpu") != 0 || !no_kernels) return 1;
    print_message("SKIP %s\n", no_kernels);
    return 0;
}

static inline void need_kernels(void)
{
    if (!has_device("swgpu")) skip();
}

/* ---- elements ---- */

/* Elements of other packages, such as gstreamer1.0-plugins-base, may be missing. */
static inline void need_element(const char *factory)
{
    GstElementFactory *found = gst_element_factory_find(factory);
    if (found) {
        gst_object_unref(found);
        return;
    }
    print_message("SKIP there is no element %s\n", factory);
    skip();
}

static inline GstElement *make_element(const char *factory)
{
    GstElement *element = gst_element_factory_make(factory, NULL);
    if (!element) fail_msg("there is no element %s", factory);
    return element;
}

/* The element with properties as in gst-launch-1.0's text: "device=cpu matrix=\"1 0 0 ...\"". The caller's, not floating. */
static inline GstElement *make_filter(const char *format, ...) __attribute__((format(printf, 1, 2)));
static inline GstElement *make_filter(const char *format, ...)
{
    char text[PATH_MAX + 1024] = "jitgemmfilter ";
    GError *error = NULL;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + strlen(text), sizeof text - strlen(text), format, arguments);
    va_end(arguments);
    char *device = strstr(text, "device=swgpu");
    if (device && gpu_of_tests) {
        char rest[sizeof text];
        strcpy(rest, device + strlen("device=swgpu"));
        snprintf(device, sizeof text - (size_t)(device - text), "device=%s%s", gpu_of_tests, rest);
    }
    GstElement *element = gst_parse_launch(text, &error);
    if (!element || error) fail_msg("%s: %s", text, error ? error->message : "no element");
    return gst_object_ref_sink(element);
}

/* A harness around the element, playing; it takes the element. Its messages go to the bus it has, or to one that is asked only if it
 * does not start: a harness itself would abort then. */
static inline GstHarness *make_harness(GstElement *filter)
{
    GstBus *bus = gst_element_get_bus(filter);
    if (!bus) gst_element_set_bus(filter, bus = gst_bus_new());
    if (gst_element_set_state(filter, GST_STATE_PAUSED) == GST_STATE_CHANGE_FAILURE) {
        GError *error = NULL;
        GstMessage *message = gst_bus_pop_filtered(bus, GST_MESSAGE_ERROR);
        if (message) gst_message_parse_error(message, &error, NULL);
        fail_msg("does not start: %s", error ? error->message : "no reason is given");
    }
    gst_object_unref(bus);
    GstHarness *harness = gst_harness_new_with_element(filter, "sink", "src");
    gst_object_unref(filter);
    return harness;
}

static inline GstStructure *read_stats(GstElement *filter)
{
    GstStructure *stats = NULL;
    g_object_get(filter, "stats", &stats, NULL);
    if (!stats) fail_msg("no stats");
    return stats;
}

static inline guint64 read_stat(GstElement *filter, const char *name)
{
    guint64 value = 0;
    GstStructure *stats = read_stats(filter);
    if (!gst_structure_get_uint64(stats, name, &value)) fail_msg("no \"%s\" among the stats", name);
    gst_structure_free(stats);
    return value;
}

/* The next message of these types, within a minute; the caller's. */
static inline GstMessage *wait_message(GstBus *bus, GstMessageType types)
{
    GstMessage *message = gst_bus_timed_pop_filtered(bus, 60 * GST_SECOND, types);
    if (!message) fail_msg("no message %s came", gst_message_type_get_name(types));
    return message;
}

/* Plays a pipeline to its end. */
static inline void play_to_end(GstElement *pipeline)
{
    GError *error = NULL;
    GstBus *bus = gst_element_get_bus(pipeline);
    gst_element_set_state(pipeline, GST_STATE_PLAYING);
    GstMessage *message = wait_message(bus, GST_MESSAGE_EOS | GST_MESSAGE_ERROR);
    if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_ERROR) gst_message_parse_error(message, &error, NULL);
    if (error) fail_msg("%s", error->message);
    gst_message_unref(message);
    gst_object_unref(bus);
}

/* How many messages of these types wait; takes all messages off the bus. */
static inline int count_messages(GstBus *bus, GstMessageType types)
{
    int count = 0;
    for (GstMessage *message; (message = gst_bus_pop(bus)); gst_message_unref(message))
        count += (GST_MESSAGE_TYPE(message) & types) != 0;
    return count;
}

/* ---- frames ---- */

static const struct fixture_format {
    const char *name;
    jgf_pixel_format pixel;
} fixture_formats[] = {
    {"RGB", {3, 0, 1, 2}},  {"BGR", {3, 2, 1, 0}},  {"RGBx", {4, 0, 1, 2}},
    {"BGRx", {4, 2, 1, 0}}, {"RGBA", {4, 0, 1, 2}}, {"BGRA", {4, 2, 1, 0}},
};
enum { FIXTURE_FORMATS = sizeof fixture_formats / sizeof *fixture_formats };

/* A frame's size and layout. padding: bytes more between lines than GStreamer's own layout has, told by a GstVideoMeta. */
typedef struct frame_shape {
    const struct fixture_format *format;
    int width, height, padding;
} frame_shape;

static inline GstCaps *shape_caps(const frame_shape *shape)
{
    return gst_caps_new_simple("video/x-raw", "format", G_TYPE_STRING, shape->format->name, "width", G_TYPE_INT, shape->width, "height",
                               G_TYPE_INT, shape->height, "framerate", GST_TYPE_FRACTION, 30, 1, NULL);
}

static inline GstVideoInfo shape_info(const frame_shape *shape)
{
    GstVideoInfo info;
    GstCaps *caps = shape_caps(shape);
    if (!gst_video_info_from_caps(&info, caps)) fail_msg("caps of no frame");
    gst_caps_unref(caps);
    return info;
}

/* Byte `place` of the pixel at x, y: colour 0 to 2, or 3 for what is neither. */
static inline uint8_t frame_level(uint32_t seed, int x, int y, int colour)
{
    uint32_t h = seed * 0x9e3779b9u + (uint32_t)x * 0x85ebca6bu + (uint32_t)y * 0xc2b2ae35u + (uint32_t)colour * 0x27d4eb2fu;
    h = (h ^ h >> 15) * 0x2c1b3c6du;
    h = (h ^ h >> 12) * 0x297a2d39u;
    return (uint8_t)(h >> 24);
}

static inline int colour_of_byte(const jgf_pixel_format *pixel, int byte)
{
    return byte == pixel->r ? 0 : byte == pixel->g ? 1 : byte == pixel->b ? 2 : 3;
}

/* Frame number `seed`, its timestamps those of 30 a second. What is between lines is 0xa5. */
static inline GstBuffer *make_frame(const frame_shape *shape, uint32_t seed)
{
    const GstVideoInfo info = shape_info(shape);
    const jgf_pixel_format *pixel = &shape->format->pixel;
    const int stride = GST_VIDEO_INFO_PLANE_STRIDE(&info, 0) + shape->padding;
    const gsize offsets[GST_VIDEO_MAX_PLANES] = {0}, bytes = (gsize)stride * (gsize)shape->height;
    const gint strides[GST_VIDEO_MAX_PLANES] = {stride};
    GstMapInfo map;
    GstBuffer *buffer = gst_buffer_new_allocate(NULL, bytes, NULL);
    if (!gst_buffer_map(buffer, &map, GST_MAP_WRITE)) fail_msg("no memory for a frame");
    memset(map.data, 0xa5, map.size);
    for (int y = 0; y < shape->height; y++)
        for (int i = 0; i < shape->width * pixel->pixel_bytes; i++)
            map.data[(gsize)y * (gsize)stride + (gsize)i] =
                frame_level(seed, i / pixel->pixel_bytes, y, colour_of_byte(pixel, i % pixel->pixel_bytes));
    gst_buffer_unmap(buffer, &map);
    if (shape->padding)
        gst_buffer_add_video_meta_full(buffer, GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_INFO_FORMAT(&info), (guint)shape->width,
                                       (guint)shape->height, 1, (gsize *)offsets, (gint *)strides);
    GST_BUFFER_PTS(buffer) = gst_util_uint64_scale(seed, GST_SECOND, 30);
    GST_BUFFER_DURATION(buffer) = GST_SECOND / 30;
    return buffer;
}

/* A frame's visible bytes, line after line, without gaps; the caller frees them. */
static inline uint8_t *read_frame(const frame_shape *shape, GstBuffer *buffer)
{
    GstVideoInfo info = shape_info(shape);
    const size_t line = (size_t)(shape->width * shape->format->pixel.pixel_bytes);
    uint8_t *bytes = malloc(line * (size_t)shape->height + 1);
    GstVideoFrame frame;
    if (!bytes || !gst_video_frame_map(&frame, &info, buffer, GST_MAP_READ)) fail_msg("a frame cannot be read");
    for (int y = 0; y < shape->height; y++)
        memcpy(bytes + line * (size_t)y,
               (uint8_t *)GST_VIDEO_FRAME_PLANE_DATA(&frame, 0) + y * GST_VIDEO_FRAME_PLANE_STRIDE(&frame, 0), line);
    gst_video_frame_unmap(&frame);
    return bytes;
}

static inline size_t frame_bytes(const frame_shape *shape)
{
    return (size_t)(shape->width * shape->height * shape->format->pixel.pixel_bytes);
}

/* FNV-1a, 32 bits. */
static inline uint32_t checksum(const void *data, size_t bytes)
{
    const uint8_t *at = data;
    uint32_t sum = 2166136261u;
    for (size_t i = 0; i < bytes; i++) sum = (sum ^ at[i]) * 16777619u;
    return sum;
}

/* ---- what a colour matrix makes of them ---- */

#define SEPIA "0.393 0.769 0.189 0.349 0.686 0.168 0.272 0.534 0.131"
#define NEGATIVE "-1 0 0 255  0 -1 0 255  0 0 -1 255"

static inline jgf_color parse_color(const char *text)
{
    jgf_color color;
    assert_int_equal(jgf_color_parse(text, &color, NULL, 0), 0);
    return color;
}

/* The exact result, in double, of byte `i` of a frame's visible bytes. */
static inline double exact_byte(const jgf_color *color, const jgf_pixel_format *pixel, const uint8_t *in, size_t i)
{
    const size_t bytes = (size_t)pixel->pixel_bytes;
    const uint8_t *at = in + i / bytes * bytes;
    const int j = colour_of_byte(pixel, (int)(i % bytes));
    if (j == 3) return at[i % bytes];
    const double *row = color->matrix[j];
    return row[0] * at[pixel->r] + row[1] * at[pixel->g] + row[2] * at[pixel->b] + row[3];
}

static inline double limit_byte(double value)
{
    return value < 0 ? 0 : value > 255 ? 255 : value;
}

/* Each byte within the bound of the exact one, rounded; returns the PSNR in dB, against the exact values, rounded. */
static inline double judge_frame(const frame_shape *shape, const jgf_color *color, uint32_t seed, const uint8_t *found)
{
    const jgf_pixel_format *pixel = &shape->format->pixel;
    GstBuffer *buffer = make_frame(shape, seed);
    uint8_t *in = read_frame(shape, buffer);
    jgf_color_integers integers;
    double squares = 0;
    jgf_color_quantise(color, &integers);
    for (size_t i = 0; i < frame_bytes(shape); i++) {
        const int place = (int)(i % (size_t)pixel->pixel_bytes), j = colour_of_byte(pixel, place);
        const double exact = exact_byte(color, pixel, in, i), rounded = limit_byte(rint(exact)), worst = j < 3 ? integers.worst[j] : 0;
        if (found[i] < limit_byte(rint(exact - worst)) || found[i] > limit_byte(rint(exact + worst)))
            fail_msg("%s %dx%d, byte %zu: %d, exactly %.6f, and %.6f is the bound", shape->format->name, shape->width, shape->height, i,
                     found[i], exact, worst);
        squares += (found[i] - rounded) * (found[i] - rounded);
    }
    free(in);
    gst_buffer_unref(buffer);
    return squares > 0 ? 10 * log10(255.0 * 255.0 * (double)frame_bytes(shape) / squares) : INFINITY;
}

#endif
#endif
