/* jitgemmfilter in a stream: sizes that change without a frame lost or waiting, kernels that go over, EOS, flushes, gaps and segments,
 * caps that are refused, states up and down, two elements at once, and one that goes while it is prewarming. */
#include "gst_fixture.h"
#include "safetensors.h"

#ifdef JG_HAVE_GST

#include <dirent.h>

static const struct { int width, height; } sizes[] = {{16, 8}, {17, 9},  {32, 4}, {1, 1},  {48, 16},
                                                      {31, 5}, {16, 24}, {3, 40}, {64, 8}, {16, 8}};
enum { SIZES = sizeof sizes / sizeof *sizes, OF_EACH = 3 };

static frame_shape shape_of(int size, int format)
{
    return (frame_shape){&fixture_formats[format], sizes[size].width, sizes[size].height, 0};
}

/* Pushes frame `seed`, and sees to it that one comes out, with its timestamp and the matrix's colours. */
static void pass_frame(GstHarness *harness, const frame_shape *shape, const jgf_color *color, uint32_t seed)
{
    assert_int_equal(gst_harness_push(harness, make_frame(shape, seed)), GST_FLOW_OK);
    GstBuffer *out = gst_harness_try_pull(harness);
    if (!out) fail_msg("frame %u did not come out", seed);
    assert_true(GST_BUFFER_PTS(out) == gst_util_uint64_scale(seed, GST_SECOND, 30));
    uint8_t *found = read_frame(shape, out);
    judge_frame(shape, color, seed, found);
    free(found);
    gst_buffer_unref(out);
}

/* ---- sizes ---- */

/* Ten sizes, three frames each: every frame comes out before the next is pushed, and none waits for a kernel. */
static void change_sizes(const char *device, int format)
{
    const jgf_color color = parse_color(SEPIA);
    GstHarness *harness = make_harness(make_filter("device=%s matrix=\"" SEPIA "\"", device));
    for (int n = 0; n < SIZES * OF_EACH; n++) {
        const frame_shape shape = shape_of(n / OF_EACH, format);
        if (n % OF_EACH == 0) gst_harness_set_src_caps(harness, shape_caps(&shape));
        pass_frame(harness, &shape, &color, (uint32_t)n);
    }
    assert_int_equal(gst_harness_buffers_received(harness), SIZES * OF_EACH);
    assert_int_equal(read_stat(harness->element, "frames"), SIZES * OF_EACH);
    assert_int_equal(read_stat(harness->element, "dropped"), 0);
    assert_int_equal(read_stat(harness->element, "renegotiations"), SIZES - 1);
    assert_int_equal(read_stat(harness->element, "waits"), 0);
    if (strcmp(device, "swgpu") == 0) assert_true(read_stat(harness->element, "launches-generic") > 0);
    gst_harness_teardown(harness);
}

static void test_sizes_change(void **state)
{
    (void)state;
    change_sizes("cpu", 2);
    need_kernels();
    change_sizes("swgpu", 0);
    change_sizes("swgpu", 3);
}

/* Frames as cameras give them, on a GPU: reports what they take, from the plugin's own stats. */
static void test_large_frames(void **state)
{
    (void)state;
    static const struct { int width, height; } large[] = {{1920, 1080}, {1904, 1072}, {1281, 721}, {640, 480}, {1921, 1079}};
    const jgf_color color = parse_color(SEPIA);
    if (!gpu_of_tests) {
        print_message("SKIP large frames: no GPU is named (JG_TEST_GST_DEVICE)\n");
        skip();
    }
    for (int format = 0; format < FIXTURE_FORMATS; format += 2) {
        GstHarness *harness = make_harness(make_filter("device=swgpu matrix=\"" SEPIA "\""));
        for (uint32_t n = 0; n < 100; n++) {
            const frame_shape shape = {&fixture_formats[format], large[n / 20].width, large[n / 20].height, 0};
            if (n % 20 == 0) gst_harness_set_src_caps(harness, shape_caps(&shape));
            pass_frame(harness, &shape, &color, n);
        }
        assert_int_equal(read_stat(harness->element, "waits"), 0);
        print_message("# %s: a frame takes %u us in the mean, %u at most, the first of a size %u at most\n", fixture_formats[format].name,
                      (unsigned)read_stat(harness->element, "frame-time-mean-us"),
                      (unsigned)read_stat(harness->element, "frame-time-max-us"),
                      (unsigned)read_stat(harness->element, "first-sight-max-us"));
        gst_harness_teardown(harness);
    }
}

/* The same by a source that negotiates, with buffer pools: the caps are changed while it plays, from its own thread. */
typedef struct watched {
    GstElement *filter; /* of caps */
    int frames, wrong, changes;
} watched;

static void set_size(GstElement *filter, int size)
{
    const frame_shape shape = shape_of(size, 0);
    GstCaps *caps = shape_caps(&shape);
    g_object_set(filter, "caps", caps, NULL);
    gst_caps_unref(caps);
}

static void watch(GstElement *sink, GstBuffer *buffer, GstPad *pad, gpointer user)
{
    watched *w = user;
    GstCaps *caps = gst_pad_get_current_caps(pad);
    GstVideoInfo info;
    (void)sink;
    if (!caps || !gst_video_info_from_caps(&info, caps) || gst_buffer_get_size(buffer) != GST_VIDEO_INFO_SIZE(&info)) w->wrong++;
    if (GST_BUFFER_PTS(buffer) != gst_util_uint64_scale((guint64)w->frames, GST_SECOND, 30)) w->wrong++; /* one is lost, or late */
    if (caps) gst_caps_unref(caps);
    if (++w->frames % OF_EACH == 0 && w->changes < SIZES - 1) set_size(w->filter, ++w->changes);
}

static void test_sizes_change_in_a_pipeline(void **state)
{
    (void)state;
    need_element("videotestsrc");
    char text[256];
    snprintf(text, sizeof text, "videotestsrc num-buffers=%d ! capsfilter name=caps ! jitgemmfilter name=filter device=%s ! "
             "fakesink name=sink signal-handoffs=true", SIZES * OF_EACH, has_device("swgpu") ? "swgpu" : "cpu");
    GstElement *pipeline = gst_parse_launch(text, NULL);
    GstElement *sink = gst_bin_get_by_name(GST_BIN(pipeline), "sink"), *filter = gst_bin_get_by_name(GST_BIN(pipeline), "filter");
    watched w = {.filter = gst_bin_get_by_name(GST_BIN(pipeline), "caps")};
    g_signal_connect(sink, "handoff", G_CALLBACK(watch), &w);
    set_size(w.filter, 0);
    play_to_end(pipeline);
    assert_int_equal(w.frames, SIZES * OF_EACH);
    assert_int_equal(w.wrong, 0);
    assert_int_equal(read_stat(filter, "renegotiations"), SIZES - 1);
    assert_int_equal(read_stat(filter, "waits"), 0);
    gst_element_set_state(pipeline, GST_STATE_NULL);
    gst_object_unref(sink);
    gst_object_unref(filter);
    gst_object_unref(w.filter);
    gst_object_unref(pipeline);
}

/* The contrast: with compile-policy=wait the calls of a new size make their kernel themselves. */
static void test_wait_waits(void **state)
{
    (void)state;
    need_kernels();
    const jgf_color color = parse_color(SEPIA);
    GstHarness *harness = make_harness(make_filter("device=swgpu compile-policy=wait matrix=\"" SEPIA "\""));
    for (int n = 0; n < 2; n++) {
        const frame_shape shape = shape_of(4 * n, 0);
        const guint64 before = read_stat(harness->element, "waits");
        gst_harness_set_src_caps(harness, shape_caps(&shape));
        pass_frame(harness, &shape, &color, (uint32_t)n);
        assert_true(read_stat(harness->element, "waits") > before);
    }
    assert_int_equal(read_stat(harness->element, "launches-generic"), 0);
    gst_harness_teardown(harness);
}

/* The size's own kernel comes in between two frames, and the bits stay. */
static void test_kernels_go_over(void **state)
{
    (void)state;
    need_kernels();
    const frame_shape shape = {&fixture_formats[0], 256, 4, 0};
    uint8_t *first = NULL;
    int frames = 0, after = 0;
    GstHarness *harness = make_harness(make_filter("device=swgpu cache=\"\" matrix=\"" SEPIA "\""));
    gst_harness_set_src_caps(harness, shape_caps(&shape));
    while (after < 3 && frames < 10000) { /* the worker has the lowest priority, and a busy host's other tests come first */
        GstBuffer *out = gst_harness_push_and_pull(harness, make_frame(&shape, 7));
        assert_non_null(out);
        uint8_t *found = read_frame(&shape, out);
        gst_buffer_unref(out);
        if (first) assert_memory_equal(found, first, frame_bytes(&shape));
        if (first) free(found);
        else first = found;
        if (frames++) g_usleep(20000);
        after += read_stat(harness->element, "launches-own") > 0;
    }
    free(first);
    if (after < 3) fail_msg("no frame ran on the size's own kernel, of %d", frames);
    assert_true(read_stat(harness->element, "swaps") > 0);
    assert_true(read_stat(harness->element, "compiles") > 0);
    assert_int_equal(read_stat(harness->element, "waits"), 0);
    gst_harness_teardown(harness);
}

/* ---- events ---- */

static void test_eos(void **state)
{
    (void)state;
    const frame_shape shape = shape_of(0, 0);
    const jgf_color color = parse_color(NEGATIVE);
    GstHarness *harness = make_harness(make_filter("device=cpu matrix=\"" NEGATIVE "\""));
    gst_harness_set_src_caps(harness, shape_caps(&shape));
    for (uint32_t n = 0; n < 3; n++) pass_frame(harness, &shape, &color, n);
    assert_true(gst_harness_push_event(harness, gst_event_new_eos()));
    assert_int_equal(gst_harness_push(harness, make_frame(&shape, 3)), GST_FLOW_EOS);
    assert_null(gst_harness_try_pull(harness));
    GstEvent *event = NULL;
    int is_last = 0;
    while ((event = gst_harness_try_pull_event(harness))) {
        is_last = GST_EVENT_TYPE(event) == GST_EVENT_EOS;
        gst_event_unref(event);
    }
    assert_true(is_last);
    assert_int_equal(read_stat(harness->element, "frames"), 3);
    gst_harness_teardown(harness);
}

static void push_segment(GstHarness *harness, guint64 start, double rate)
{
    GstSegment segment;
    gst_segment_init(&segment, GST_FORMAT_TIME);
    segment.start = segment.time = segment.position = start;
    segment.rate = rate;
    assert_true(gst_harness_push_event(harness, gst_event_new_segment(&segment)));
}

static void test_flush(void **state)
{
    (void)state;
    const frame_shape shape = shape_of(1, 0), other = shape_of(2, 0);
    const jgf_color color = parse_color(NEGATIVE);
    for (int d = 0; d < 2; d++) {
        if (!has_device(fixture_devices[d])) continue;
        GstHarness *harness = make_harness(make_filter("device=%s matrix=\"" NEGATIVE "\"", fixture_devices[d]));
        gst_harness_set_src_caps(harness, shape_caps(&shape));
        for (int round = 0; round < 3; round++) {
            pass_frame(harness, &shape, &color, 1);
            assert_true(gst_harness_push_event(harness, gst_event_new_flush_start()));
            assert_int_equal(gst_harness_push(harness, make_frame(&shape, 2)), GST_FLOW_FLUSHING);
            assert_true(gst_harness_push_event(harness, gst_event_new_flush_stop(TRUE)));
            push_segment(harness, GST_SECOND, 1); /* as after a seek */
            pass_frame(harness, &shape, &color, 30);
            gst_harness_set_src_caps(harness, shape_caps(&other));
            pass_frame(harness, &other, &color, 31);
            gst_harness_set_src_caps(harness, shape_caps(&shape));
        }
        gst_harness_teardown(harness);
    }
}

/* Gaps, tags and segments go through, in order, and frames out of the segment are no reason to stop. */
static void test_other_events(void **state)
{
    (void)state;
    static const GstEventType expected[] = {GST_EVENT_SEGMENT, GST_EVENT_GAP, GST_EVENT_TAG, GST_EVENT_CUSTOM_DOWNSTREAM};
    const frame_shape shape = shape_of(0, 0);
    const jgf_color color = parse_color(NEGATIVE);
    GstHarness *harness = make_harness(make_filter("device=cpu matrix=\"" NEGATIVE "\""));
    gst_harness_set_src_caps(harness, shape_caps(&shape));
    pass_frame(harness, &shape, &color, 0);
    for (GstEvent *event; (event = gst_harness_try_pull_event(harness));) gst_event_unref(event);
    push_segment(harness, GST_SECOND, 2);
    assert_true(gst_harness_push_event(harness, gst_event_new_gap(GST_SECOND, GST_SECOND)));
    assert_true(gst_harness_push_event(harness, gst_event_new_tag(gst_tag_list_new(GST_TAG_TITLE, "title", NULL))));
    assert_true(gst_harness_push_event(harness, gst_event_new_custom(GST_EVENT_CUSTOM_DOWNSTREAM, gst_structure_new_empty("own"))));
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        GstEvent *event = gst_harness_try_pull_event(harness);
        if (!event) fail_msg("event %zu did not come out", i);
        assert_int_equal(GST_EVENT_TYPE(event), expected[i]);
        gst_event_unref(event);
    }
    pass_frame(harness, &shape, &color, 70);
    gst_harness_teardown(harness);
}

/* NV12 is videoconvert's business. What was refused does no harm to what follows. */
static void test_refuses_other_caps(void **state)
{
    (void)state;
    static const char *const refused[] = {"video/x-raw,format=NV12,width=16,height=8,framerate=30/1",
                                          "video/x-raw,format=RGB16,width=16,height=8,framerate=30/1",
                                          "audio/x-raw,format=S16LE,rate=8000,channels=1,layout=interleaved"};
    const frame_shape shape = shape_of(0, 0);
    const jgf_color color = parse_color(NEGATIVE);
    GstHarness *harness = make_harness(make_filter("device=cpu matrix=\"" NEGATIVE "\""));
    GstPad *pad = gst_element_get_static_pad(harness->element, "sink");
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        GstCaps *caps = gst_caps_from_string(refused[i]);
        assert_false(gst_pad_query_accept_caps(pad, caps));
        gst_caps_unref(caps);
        gst_harness_set_src_caps_str(harness, refused[i]);
        assert_int_equal(gst_harness_push(harness, gst_buffer_new_allocate(NULL, 192, NULL)), GST_FLOW_NOT_NEGOTIATED);
    }
    gst_object_unref(pad);
    gst_harness_set_src_caps(harness, shape_caps(&shape));
    pass_frame(harness, &shape, &color, 1);
    gst_harness_teardown(harness);
}

/* ---- states ---- */

/* Entries of a folder in /proc/self: descriptors, threads. */
static int count_entries(const char *path)
{
    int count = 0;
    DIR *entries = opendir(path);
    if (!entries) return 0;
    while (readdir(entries)) count++;
    closedir(entries);
    return count;
}

/* A compile that was abandoned ends by itself, soon. */
static void assert_comes_down(const char *path, int most)
{
    for (int i = 0; i < 1000 && count_entries(path) > most; i++) g_usleep(10000);
    assert_in_range(count_entries(path), 1, most);
}

static void test_states_up_and_down(void **state)
{
    (void)state;
    const frame_shape shape = shape_of(1, 0);
    const jgf_color color = parse_color(SEPIA);
    for (int d = 0; d < 2; d++) {
        if (!has_device(fixture_devices[d])) continue;
        int descriptors = 0, threads = 0;
        GstElement *filter = make_filter("device=%s matrix=\"" SEPIA "\"", fixture_devices[d]);
        GstHarness *harness = make_harness(gst_object_ref(filter));
        for (int round = 0; round < 10; round++) {
            assert_int_equal(gst_element_set_state(filter, GST_STATE_PLAYING), GST_STATE_CHANGE_SUCCESS);
            gst_harness_push_event(harness, gst_event_new_stream_start("again"));
            gst_harness_set_src_caps(harness, shape_caps(&shape));
            push_segment(harness, 0, 1);
            for (uint32_t n = 0; n < 2; n++) pass_frame(harness, &shape, &color, n);
            assert_int_equal(read_stat(filter, "frames"), 2); /* counted anew each time */
            assert_int_equal(gst_element_set_state(filter, round % 2 ? GST_STATE_READY : GST_STATE_NULL), GST_STATE_CHANGE_SUCCESS);
            assert_int_equal(read_stat(filter, "frames"), 2); /* and kept until the next start */
            if (round == 1) {
                descriptors = count_entries("/proc/self/fd");
                threads = count_entries("/proc/self/task");
            }
        }
        assert_comes_down("/proc/self/fd", descriptors);
        assert_comes_down("/proc/self/task", threads);
        gst_element_set_state(filter, GST_STATE_PLAYING);
        gst_harness_teardown(harness);
        gst_object_unref(filter);
    }
}

/* Mode and device may change in READY: nothing of the other one stays. */
static void test_modes_change(void **state)
{
    (void)state;
    static float weights[2 * 3 * 4 * 4];
    const frame_shape shape = shape_of(0, 2);
    const jgf_color colors[] = {parse_color(NEGATIVE), parse_color("1 0 0 0 1 0 0 0 1")};
    const char *path = scratch_path(folder, "w.safetensors");
    safetensors_write(path, "{\"w\":{\"dtype\":\"F32\",\"shape\":[2,3,4,4],\"data_offsets\":[0,384]}}", weights, sizeof weights);
    GstHarness *harness = make_harness(make_filter("device=cpu matrix=\"" NEGATIVE "\" weights=%s", path));
    for (int round = 0; round < 6; round++) {
        const int is_embed = round % 2;
        gst_element_set_state(harness->element, GST_STATE_READY);
        gst_util_set_object_arg(G_OBJECT(harness->element), "mode", is_embed ? "embed" : "color");
        gst_util_set_object_arg(G_OBJECT(harness->element), "device", round % 3 || no_kernels ? "cpu" : "swgpu");
        gst_element_set_state(harness->element, GST_STATE_PLAYING);
        gst_harness_push_event(harness, gst_event_new_stream_start("again"));
        gst_harness_set_src_caps(harness, shape_caps(&shape));
        push_segment(harness, 0, 1);
        for (uint32_t n = 0; n < 2; n++) pass_frame(harness, &shape, &colors[is_embed], n);
    }
    gst_harness_teardown(harness);
}

/* Twice the negative is the picture, by two elements on two devices. */
static void test_two_elements(void **state)
{
    (void)state;
    const jgf_color color = parse_color("1 0 0 0 1 0 0 0 1");
    char text[512];
    snprintf(text, sizeof text, "jitgemmfilter device=cpu matrix=\"" NEGATIVE "\" ! jitgemmfilter device=%s matrix=\"" NEGATIVE "\"",
             has_device("swgpu") ? "swgpu" : "cpu");
    GstHarness *harness = gst_harness_new_parse(text);
    for (int n = 0; n < 6; n++) {
        const frame_shape shape = shape_of(n / 2, 5);
        if (n % 2 == 0) gst_harness_set_src_caps(harness, shape_caps(&shape));
        pass_frame(harness, &shape, &color, (uint32_t)n);
    }
    gst_harness_teardown(harness);
}

/* Gone, or stopped and started again, with kernels under way; and flushed while a frame waits for them. */
static void test_goes_while_prewarming(void **state)
{
    (void)state;
    need_kernels();
    const frame_shape shape = shape_of(0, 0);
    const jgf_color color = parse_color(SEPIA);
    for (int round = 0; round < 3; round++) {
        GstElement *filter = make_filter("device=swgpu cache=\"\" matrix=\"" SEPIA "\"");
        GstBus *bus = gst_bus_new();
        gst_element_set_bus(filter, bus);
        assert_int_equal(gst_element_set_state(filter, GST_STATE_PAUSED), GST_STATE_CHANGE_SUCCESS);
        if (round) gst_message_unref(wait_message(bus, GST_MESSAGE_PROGRESS));
        assert_int_equal(gst_element_set_state(filter, GST_STATE_READY), GST_STATE_CHANGE_SUCCESS);
        GstProgressType type = GST_PROGRESS_TYPE_START;
        for (GstMessage *message; (message = gst_bus_pop(bus)); gst_message_unref(message))
            if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_PROGRESS) gst_message_parse_progress(message, &type, NULL, NULL);
        assert_true(type == GST_PROGRESS_TYPE_CANCELED || type == GST_PROGRESS_TYPE_COMPLETE);
        if (round == 2) { /* and up again */
            GstHarness *harness = make_harness(filter);
            gst_harness_set_src_caps(harness, shape_caps(&shape));
            pass_frame(harness, &shape, &color, 0);
            assert_int_equal(read_stat(harness->element, "waits"), 0);
            gst_harness_teardown(harness);
        } else {
            gst_element_set_state(filter, GST_STATE_NULL);
            gst_object_unref(filter);
        }
        gst_object_unref(bus);
    }
}

/* Pushes a frame from a thread of its own. */
static gpointer push_one(gpointer user)
{
    const frame_shape shape = shape_of(0, 0);
    return GINT_TO_POINTER(gst_harness_push(user, make_frame(&shape, 0)));
}

static void test_flush_while_prewarming(void **state)
{
    (void)state;
    need_kernels();
    const frame_shape shape = shape_of(0, 0);
    const jgf_color color = parse_color(SEPIA);
    GstHarness *harness = make_harness(make_filter("device=swgpu cache=\"\" matrix=\"" SEPIA "\""));
    gst_harness_set_src_caps(harness, shape_caps(&shape));
    GThread *thread = g_thread_new("frame", push_one, harness);
    assert_true(gst_harness_push_event(harness, gst_event_new_flush_start()));
    const GstFlowReturn flow = GPOINTER_TO_INT(g_thread_join(thread));
    assert_true(flow == GST_FLOW_FLUSHING || flow == GST_FLOW_OK);
    assert_true(gst_harness_push_event(harness, gst_event_new_flush_stop(TRUE)));
    push_segment(harness, 0, 1);
    for (GstBuffer *out; (out = gst_harness_try_pull(harness));) gst_buffer_unref(out);
    pass_frame(harness, &shape, &color, 1);
    gst_harness_teardown(harness);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes_change),
        cmocka_unit_test(test_large_frames),
        cmocka_unit_test(test_sizes_change_in_a_pipeline),
        cmocka_unit_test(test_wait_waits),
        cmocka_unit_test(test_kernels_go_over),
        cmocka_unit_test(test_eos),
        cmocka_unit_test(test_flush),
        cmocka_unit_test(test_other_events),
        cmocka_unit_test(test_refuses_other_caps),
        cmocka_unit_test(test_states_up_and_down),
        cmocka_unit_test(test_modes_change),
        cmocka_unit_test(test_two_elements),
        cmocka_unit_test(test_goes_while_prewarming),
        cmocka_unit_test(test_flush_while_prewarming),
    };
    return cmocka_run_group_tests(tests, gst_fixture_begin, gst_fixture_end);
}

#endif
GST_FIXTURE_MAIN
