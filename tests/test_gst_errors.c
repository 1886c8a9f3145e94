/* What jitgemmfilter says when something is wrong: domain and code of each GStreamer message, and a text that names the file, the
 * property or the sizes; and that the same element works once the error is mended. */
#include "gst_fixture.h"
#include "safetensors.h"

#ifdef JG_HAVE_GST

static const frame_shape small = {&fixture_formats[0], 16, 8, 0};

/* Takes the next error or warning off the bus and looks at it: domain, code, and words of its text or debug text. */
static void assert_message(GstBus *bus, GstMessageType type, GQuark domain, int code, const char *const words[3])
{
    GError *error = NULL;
    gchar *debug = NULL;
    GstMessage *message = gst_bus_pop_filtered(bus, type);
    if (!message) fail_msg("nothing was said about %s", words[0]);
    if (type == GST_MESSAGE_ERROR) gst_message_parse_error(message, &error, &debug);
    else gst_message_parse_warning(message, &error, &debug);
    if (error->domain != domain || error->code != code)
        fail_msg("%s %d, not %s %d: %s", g_quark_to_string(error->domain), error->code, g_quark_to_string(domain), code, error->message);
    for (int i = 0; i < 3 && words[i]; i++)
        if (!strstr(error->message, words[i])) fail_msg("\"%s\" is not in: %s (%s)", words[i], error->message, debug ? debug : "");
    assert_true(g_utf8_validate(error->message, -1, NULL));
    g_error_free(error);
    g_free(debug);
    gst_message_unref(message);
}

/* What keeps the element from starting. */
static void assert_no_start(GstElement *filter, GstBus *bus, GQuark domain, int code, const char *word, const char *other)
{
    const char *const words[3] = {word, other, NULL};
    if (gst_element_set_state(filter, GST_STATE_PAUSED) != GST_STATE_CHANGE_FAILURE) fail_msg("it starts, whatever %s", word);
    assert_message(bus, GST_MESSAGE_ERROR, domain, code, words);
    assert_null(gst_bus_pop_filtered(bus, GST_MESSAGE_ERROR)); /* said once */
    assert_int_equal(gst_element_set_state(filter, GST_STATE_NULL), GST_STATE_CHANGE_SUCCESS);
}

/* The element starts and a frame goes through: whatever was wrong before has left nothing behind. */
static void assert_works(GstElement *filter, GstBus *bus)
{
    GstHarness *harness = make_harness(filter);
    gst_harness_set_src_caps(harness, shape_caps(&small));
    GstBuffer *out = gst_harness_push_and_pull(harness, make_frame(&small, 1));
    assert_non_null(out);
    gst_buffer_unref(out);
    assert_int_equal(count_messages(bus, GST_MESSAGE_ERROR | GST_MESSAGE_WARNING), 0);
    gst_harness_teardown(harness);
    gst_object_unref(bus);
}

static GstElement *with_bus(GstElement *filter, GstBus **bus)
{
    *bus = gst_bus_new();
    gst_element_set_bus(filter, *bus);
    return filter;
}

/* A file of this content; its path is good for the next few calls. */
static const char *write_file(const char *name, const char *header, size_t data_bytes)
{
    unsigned char *data = calloc(1, data_bytes + 1);
    const char *path = scratch_path(folder, name);
    assert_non_null(data);
    safetensors_write(path, header, data, data_bytes);
    free(data);
    return path;
}

#define ONE(name, dtype, shape, bytes) \
    "{\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":[0," #bytes "]}}"

/* ---- weight files ---- */

static const struct {
    const char *name;   /* of the file */
    const char *header; /* null: there is no such file */
    size_t data_bytes;
    const char *tensor; /* property, or null */
    int code;
    const char *says;   /* beside the path */
} files[] = {
    {"missing.safetensors", NULL, 0, NULL, GST_RESOURCE_ERROR_NOT_FOUND, "No such file"},
    {"text.safetensors", "not a header at all", 0, NULL, GST_RESOURCE_ERROR_READ, "not JSON"},
    {"cut.safetensors", ONE("w", "F32", "[2,3,4,4]", 384), 380, NULL, GST_RESOURCE_ERROR_READ, "384"},
    {"shape.safetensors", ONE("w", "F32", "[96]", 384), 384, NULL, GST_RESOURCE_ERROR_READ, NULL},
    {"colours.safetensors", ONE("w", "F32", "[2,4,4,3]", 384), 384, NULL, GST_RESOURCE_ERROR_READ, "w"},
    {"oblong.safetensors", ONE("w", "F32", "[2,3,2,8]", 384), 384, NULL, GST_RESOURCE_ERROR_READ, "w"},
    {"empty.safetensors", "{}", 0, NULL, GST_RESOURCE_ERROR_READ, NULL},
    {"named.safetensors", ONE("w", "F32", "[2,3,4,4]", 384), 384, "v", GST_RESOURCE_ERROR_READ, "\"v\""},
    {"integers.safetensors", ONE("w", "I32", "[2,3,4,4]", 384), 384, "w", GST_RESOURCE_ERROR_READ, "I32"},
};

static void test_weights_of_an_embedding(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        GstBus *bus;
        GstElement *filter = with_bus(make_filter("mode=embed device=cpu"), &bus);
        const char *path = files[i].header ? write_file(files[i].name, files[i].header, files[i].data_bytes)
                                           : scratch_path(folder, files[i].name);
        g_object_set(filter, "weights", path, "tensor", files[i].tensor, NULL);
        assert_no_start(filter, bus, GST_RESOURCE_ERROR, files[i].code, path, files[i].says);
        path = write_file(files[i].name, ONE("w", "F32", "[2,3,4,4]", 384), 384); /* mended */
        g_object_set(filter, "weights", path, "tensor", NULL, NULL);
        assert_works(filter, bus);
    }
}

static void test_weights_that_cannot_be_read(void **state)
{
    (void)state;
    GstBus *bus;
    GstElement *filter = with_bus(make_filter("mode=embed device=cpu"), &bus);
    assert_no_start(filter, bus, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_SETTINGS, "weights", NULL); /* none given */
    g_object_set(filter, "weights", folder, NULL);
    assert_no_start(filter, bus, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_READ, folder, "folder");
    g_object_set(filter, "weights", "/dev/zero", NULL);
    assert_no_start(filter, bus, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_READ, "/dev/zero", "regular file");
    /* What is no UTF-8 in a path or a name must not get into a message. */
    const char *path = write_file("bytes\xff.safetensors", ONE("\xff\xfe", "F32", "[1]", 4), 4);
    g_object_set(filter, "weights", path, NULL);
    assert_no_start(filter, bus, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_READ, ".safetensors", NULL);
    g_object_set(filter, "weights", write_file("good.safetensors", ONE("w", "F32", "[2,3,4,4]", 384), 384), NULL);
    assert_works(filter, bus);
}

static void test_a_bias_of_another_size(void **state)
{
    (void)state;
    GstBus *bus;
    GstElement *filter = with_bus(make_filter("mode=embed device=cpu"), &bus);
    const char *path = write_file("bias.safetensors", "{\"w.weight\":{\"dtype\":\"F32\",\"shape\":[2,3,4,4],\"data_offsets\":[0,384]},"
                                  "\"w.bias\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[384,396]}}", 396);
    g_object_set(filter, "weights", path, NULL);
    assert_no_start(filter, bus, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_READ, path, "w.bias");
    g_object_set(filter, "weights", write_file("good.safetensors", ONE("w", "F32", "[2,3,4,4]", 384), 384), NULL);
    assert_works(filter, bus);
}

static void test_a_file_that_is_no_matrix(void **state)
{
    (void)state;
    GstBus *bus;
    GstElement *filter = with_bus(make_filter("device=cpu"), &bus);
    const char *path = write_file("matrix.safetensors", ONE("matrix", "F32", "[4,3]", 48), 48);
    g_object_set(filter, "weights", path, NULL);
    assert_no_start(filter, bus, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_READ, path, "[4, 3]");
    g_object_set(filter, "weights", scratch_path(folder, "none"), NULL);
    assert_no_start(filter, bus, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_NOT_FOUND, "/none", NULL);
    g_object_set(filter, "weights", write_file("matrix.safetensors", ONE("matrix", "F32", "[3,4]", 48), 48), NULL);
    assert_works(filter, bus);
}

/* ---- other properties ---- */

static void test_values_of_properties(void **state)
{
    (void)state;
    static const struct { const char *name, *value, *good, *says; } values[] = {
        {"matrix", "1 0 0 0 1 0 0 0", "1 0 0 0 1 0 0 0 1", "8 numbers"},
        {"matrix", "1 0 0 0 red 0 0 0 1", "1 0 0 0 1 0 0 0 1", "\"red\""},
        {"matrix", "1 0 0 0 nan 0 0 0 1", "1 0 0 0 1 0 0 0 1", "number 5"},
        {"mean", "0.5 0.5", "0.5 0.5 0.5", "0.5 0.5"},
        {"mean", "0.5 0.5 grey", "0.5 0.5 0.5", "grey"},
        {"std", "0.5 0 0.5", "1 1 1", "0.5 0 0.5"},
        {"std", "0.5 -1 0.5", "1,1,1", "0.5 -1 0.5"},
    };
    const char *path = write_file("w.safetensors", ONE("w", "F32", "[2,3,4,4]", 384), 384);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        GstBus *bus;
        const int is_color = strcmp(values[i].name, "matrix") == 0;
        GstElement *filter = with_bus(is_color ? make_filter("device=cpu") : make_filter("device=cpu mode=embed weights=%s", path), &bus);
        g_object_set(filter, values[i].name, values[i].value, NULL);
        assert_no_start(filter, bus, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_SETTINGS, values[i].says, values[i].name);
        g_object_set(filter, values[i].name, values[i].good, NULL);
        assert_works(filter, bus);
    }
}

/* A wrong value while playing is a warning; the old one stays in use. */
static void test_a_wrong_value_while_playing(void **state)
{
    (void)state;
    static const char *const words[3] = {"\"blue\"", "matrix", NULL};
    const jgf_color color = parse_color(SEPIA);
    GstBus *bus;
    GstHarness *harness = make_harness(with_bus(make_filter("device=cpu matrix=\"" SEPIA "\""), &bus));
    gst_harness_set_src_caps(harness, shape_caps(&small));
    for (uint32_t n = 0; n < 3; n++) {
        if (n == 1) g_object_set(harness->element, "matrix", "1 0 0 0 blue 0 0 0 1", NULL);
        GstBuffer *out = gst_harness_push_and_pull(harness, make_frame(&small, n));
        uint8_t *found = read_frame(&small, out);
        judge_frame(&small, &color, n, found);
        free(found);
        gst_buffer_unref(out);
        if (n == 1) assert_message(bus, GST_MESSAGE_WARNING, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_SETTINGS, words);
        assert_int_equal(count_messages(bus, GST_MESSAGE_WARNING | GST_MESSAGE_ERROR), 0);
    }
    gst_harness_teardown(harness);
    gst_object_unref(bus);
}

/* ---- devices and caches ---- */

/* There is no CUDA driver where these tests run, or none that this name finds. */
static void test_a_device_that_is_not_there(void **state)
{
    (void)state;
    GstBus *bus;
    GstElement *filter = with_bus(make_filter("device=cuda"), &bus);
    setenv("JITGEMM_DRIVER", "libno-such-driver.so.1", 1);
    assert_no_start(filter, bus, GST_LIBRARY_ERROR, GST_LIBRARY_ERROR_INIT, "libno-such-driver.so.1", "JG_ERR_NO_DRIVER");
    unsetenv("JITGEMM_DRIVER");
    g_object_set(filter, "device", 2, NULL);
    assert_works(filter, bus);
}

/* A cache that cannot be used is no error: things work from memory. */
static void test_caches_that_cannot_be_used(void **state)
{
    (void)state;
    need_kernels();
    GstBus *bus;
    scratch_write(scratch_path(folder, "text.db"), "this is no cache", 16);
    const char *const paths[] = {"/no/such/folder/kernels.db", "/dev/null", scratch_path(folder, "text.db"), ""};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        GstElement *filter = with_bus(make_filter("device=swgpu"), &bus);
        g_object_set(filter, "cache", paths[i], "factory", "/no/such/factory.db", NULL);
        assert_works(filter, bus);
    }
}

/* Where nothing may be compiled and no file has the kernels, it says so instead of waiting. */
static void test_never_without_kernels(void **state)
{
    (void)state;
    GstBus *bus;
    GstElement *filter = with_bus(make_filter("device=swgpu compile-policy=never cache=\"\""), &bus);
    need_kernels();
    assert_no_start(filter, bus, GST_LIBRARY_ERROR, GST_LIBRARY_ERROR_INIT, "JG_ERR_NOT_READY", NULL);
    gst_object_unref(filter);
    gst_object_unref(bus);
}

/* No compiler: a warning says that frames may wait. On the cpu device nothing needs one. */
static void test_without_a_compiler(void **state)
{
    (void)state;
    static const char *const words[3] = {"no-such-nvrtc", NULL, NULL};
    GstBus *bus;
    need_kernels();
    GstElement *filter = with_bus(make_filter("device=swgpu cache=\"\""), &bus);
    char *helper = g_strdup(getenv("JITGEMM_HELPER"));
    setenv("JITGEMM_NVRTC", "/no-such-nvrtc.so", 1);
    setenv("JITGEMM_HELPER", "", 1);
    assert_int_equal(gst_element_set_state(filter, GST_STATE_PAUSED), GST_STATE_CHANGE_SUCCESS);
    GstMessage *message = wait_message(bus, GST_MESSAGE_WARNING);
    gst_bus_post(bus, message);
    assert_message(bus, GST_MESSAGE_WARNING, GST_LIBRARY_ERROR, GST_LIBRARY_ERROR_FAILED, words);
    GstHarness *harness = make_harness(filter);
    gst_harness_set_src_caps(harness, shape_caps(&small));
    assert_int_equal(gst_harness_push(harness, make_frame(&small, 1)), GST_FLOW_ERROR);
    assert_message(bus, GST_MESSAGE_ERROR, GST_STREAM_ERROR, GST_STREAM_ERROR_FAILED, words);
    gst_element_set_state(harness->element, GST_STATE_NULL);
    unsetenv("JITGEMM_NVRTC");
    if (helper) setenv("JITGEMM_HELPER", helper, 1);
    else unsetenv("JITGEMM_HELPER");
    g_free(helper);
    gst_harness_teardown(harness);
    filter = with_bus(make_filter("device=swgpu"), &bus);
    assert_works(filter, bus);
}

/* ---- frames ---- */

static void test_frames_smaller_than_a_patch(void **state)
{
    (void)state;
    static const char *const words[3] = {"3x8", "4x4", NULL};
    const frame_shape narrow = {&fixture_formats[0], 3, 8, 0};
    GstBus *bus;
    const char *path = write_file("w.safetensors", ONE("w", "F32", "[2,3,4,4]", 384), 384);
    GstElement *filter = make_filter("device=cpu mode=embed weights=%s", path);
    GstHarness *harness = make_harness(with_bus(filter, &bus));
    gst_harness_set_src_caps(harness, shape_caps(&narrow));
    assert_int_equal(gst_harness_push(harness, make_frame(&narrow, 0)), GST_FLOW_NOT_NEGOTIATED);
    assert_message(bus, GST_MESSAGE_ERROR, GST_STREAM_ERROR, GST_STREAM_ERROR_FORMAT, words);
    gst_harness_set_src_caps(harness, shape_caps(&small)); /* a size that fits goes on */
    GstBuffer *out = gst_harness_push_and_pull(harness, make_frame(&small, 1));
    assert_non_null(out);
    gst_buffer_unref(out);
    gst_harness_teardown(harness);
    gst_object_unref(bus);
}

/* A buffer with fewer bytes than its caps ask for: the base class warns, and the next frame is right again. */
static void test_frames_that_are_too_short(void **state)
{
    (void)state;
    static const char *const words[3] = {NULL};
    const jgf_color color = parse_color("1 0 0 0 1 0 0 0 1");
    GstBus *bus;
    GstHarness *harness = make_harness(with_bus(make_filter("device=cpu"), &bus));
    gst_harness_set_src_caps(harness, shape_caps(&small));
    GstBuffer *buffer = make_frame(&small, 0);
    gst_buffer_resize(buffer, 0, 100);
    assert_int_equal(gst_harness_push(harness, buffer), GST_FLOW_OK);
    assert_message(bus, GST_MESSAGE_WARNING, GST_CORE_ERROR, GST_CORE_ERROR_NOT_IMPLEMENTED, words);
    for (GstBuffer *out; (out = gst_harness_try_pull(harness));) gst_buffer_unref(out);
    GstBuffer *out = gst_harness_push_and_pull(harness, make_frame(&small, 1));
    uint8_t *found = read_frame(&small, out);
    judge_frame(&small, &color, 1, found);
    free(found);
    gst_buffer_unref(out);
    gst_harness_teardown(harness);
    gst_object_unref(bus);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_weights_of_an_embedding),
        cmocka_unit_test(test_weights_that_cannot_be_read),
        cmocka_unit_test(test_a_bias_of_another_size),
        cmocka_unit_test(test_a_file_that_is_no_matrix),
        cmocka_unit_test(test_values_of_properties),
        cmocka_unit_test(test_a_wrong_value_while_playing),
        cmocka_unit_test(test_a_device_that_is_not_there),
        cmocka_unit_test(test_caches_that_cannot_be_used),
        cmocka_unit_test(test_never_without_kernels),
        cmocka_unit_test(test_without_a_compiler),
        cmocka_unit_test(test_frames_smaller_than_a_patch),
        cmocka_unit_test(test_frames_that_are_too_short),
    };
    return cmocka_run_group_tests(tests, gst_fixture_begin, gst_fixture_end);
}

#endif
GST_FIXTURE_MAIN
