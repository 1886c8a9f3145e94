/* jitgemmfilter and time: frames that are late, what it says of its latency, and its statistics. Nothing here is about how fast it is. */
#include "gst_fixture.h"
#include "safetensors.h"

#ifdef JG_HAVE_GST

static const frame_shape small = {&fixture_formats[0], 16, 8, 0};

/* A harness whose element posts to `bus`, with caps set. */
static GstHarness *playing(GstBus *bus, const char *properties)
{
    GstElement *filter = make_filter("%s", properties);
    gst_element_set_bus(filter, bus);
    GstHarness *harness = make_harness(filter);
    gst_harness_set_src_caps(harness, shape_caps(&small));
    return harness;
}

/* Whether frame `n` comes out. */
static int comes_out(GstHarness *harness, uint32_t n)
{
    assert_int_equal(gst_harness_push(harness, make_frame(&small, n)), GST_FLOW_OK);
    GstBuffer *out = gst_harness_try_pull(harness);
    if (!out) return 0;
    assert_true(GST_BUFFER_PTS(out) == gst_util_uint64_scale(n, GST_SECOND, 30));
    gst_buffer_unref(out);
    return 1;
}

/* ---- frames that are late ---- */

/* What a sink says that got the frame at `timestamp` so much too late. */
static void say_late(GstHarness *harness, GstClockTime timestamp, GstClockTimeDiff by)
{
    assert_true(gst_harness_push_upstream_event(harness, gst_event_new_qos(GST_QOS_TYPE_UNDERFLOW, 1.5, by, timestamp)));
}

static void check_drops(const char *properties)
{
    GstBus *bus = gst_bus_new();
    GstHarness *harness = playing(bus, properties);
    assert_true(comes_out(harness, 0));
    count_messages(bus, GST_MESSAGE_ANY);
    say_late(harness, 0, 50 * GST_MSECOND); /* too late for frame 1, at 33 ms, and not for frame 2, at 67 */
    assert_false(comes_out(harness, 1));
    assert_int_equal(read_stat(harness->element, "dropped"), 1);
    GstMessage *message = wait_message(bus, GST_MESSAGE_QOS);
    GstFormat format;
    guint64 processed = 0, dropped = 0, running_time = 0, timestamp = 0;
    gst_message_parse_qos(message, NULL, &running_time, NULL, &timestamp, NULL);
    gst_message_parse_qos_stats(message, &format, &processed, &dropped);
    assert_int_equal(format, GST_FORMAT_BUFFERS);
    assert_int_equal(processed, 1);
    assert_int_equal(dropped, 1);
    assert_true(running_time == timestamp && timestamp == gst_util_uint64_scale(1, GST_SECOND, 30));
    gst_message_unref(message);
    assert_int_equal(gst_harness_push(harness, make_frame(&small, 2)), GST_FLOW_OK);
    GstBuffer *out = gst_harness_try_pull(harness);
    assert_non_null(out);
    assert_true(GST_BUFFER_FLAG_IS_SET(out, GST_BUFFER_FLAG_DISCONT)); /* there is a frame less */
    gst_buffer_unref(out);
    assert_int_equal(count_messages(bus, GST_MESSAGE_QOS), 0);
    say_late(harness, gst_util_uint64_scale(2, GST_SECOND, 30), -5 * (GstClockTimeDiff)GST_MSECOND); /* early */
    for (uint32_t n = 3; n < 5; n++) assert_true(comes_out(harness, n));
    assert_int_equal(read_stat(harness->element, "dropped"), 1);
    assert_int_equal(read_stat(harness->element, "frames"), 4);
    gst_harness_teardown(harness);
    gst_object_unref(bus);
}

static void write_weights(void)
{
    static float weights[2 * 3 * 4 * 4];
    safetensors_write(scratch_path(folder, "w.safetensors"), "{\"w\":{\"dtype\":\"F32\",\"shape\":[2,3,4,4],\"data_offsets\":[0,384]}}",
                      weights, sizeof weights);
}

static void test_late_frames_are_dropped(void **state)
{
    (void)state;
    char properties[PATH_MAX + 64];
    check_drops("device=cpu");
    write_weights();
    snprintf(properties, sizeof properties, "device=cpu mode=embed weights=%s", scratch_path(folder, "w.safetensors"));
    check_drops(properties);
}

/* qos=false: late or not, all of them come out; and the event goes on upstream either way. */
static void test_qos_can_be_off(void **state)
{
    (void)state;
    for (int on = 0; on < 2; on++) {
        GstBus *bus = gst_bus_new();
        GstHarness *harness = playing(bus, on ? "device=cpu" : "device=cpu qos=false");
        assert_true(comes_out(harness, 0));
        while (gst_harness_upstream_events_in_queue(harness)) gst_event_unref(gst_harness_pull_upstream_event(harness));
        say_late(harness, 0, 50 * GST_MSECOND);
        GstEvent *event = gst_harness_try_pull_upstream_event(harness);
        assert_non_null(event);
        assert_int_equal(GST_EVENT_TYPE(event), GST_EVENT_QOS);
        gst_event_unref(event);
        assert_int_equal(comes_out(harness, 1), !on);
        assert_int_equal(read_stat(harness->element, "dropped"), on);
        gst_harness_teardown(harness);
        gst_object_unref(bus);
    }
}

/* What a seek makes of it: frames of before a flush are late no more. */
static void test_a_flush_forgets(void **state)
{
    (void)state;
    GstBus *bus = gst_bus_new();
    GstHarness *harness = playing(bus, "device=cpu");
    GstSegment segment;
    assert_true(comes_out(harness, 0));
    say_late(harness, 0, 500 * GST_MSECOND);
    assert_false(comes_out(harness, 1));
    gst_harness_push_event(harness, gst_event_new_flush_start());
    gst_harness_push_event(harness, gst_event_new_flush_stop(TRUE));
    gst_segment_init(&segment, GST_FORMAT_TIME);
    gst_harness_push_event(harness, gst_event_new_segment(&segment));
    assert_true(comes_out(harness, 1));
    gst_harness_teardown(harness);
    gst_object_unref(bus);
}

/* ---- latency ---- */

/* A live source's 20 to 60 ms, and what the element adds to both: its longest frame, in whole ms. */
static guint64 own_latency(GstHarness *harness)
{
    gboolean is_live = FALSE;
    GstClockTime least = 0, most = 0;
    GstQuery *query = gst_query_new_latency();
    gst_harness_set_upstream_latency(harness, 20 * GST_MSECOND);
    assert_true(gst_pad_peer_query(harness->sinkpad, query));
    gst_query_parse_latency(query, &is_live, &least, &most);
    gst_query_unref(query);
    assert_true(is_live);
    assert_true(least >= 20 * GST_MSECOND);
    if (GST_CLOCK_TIME_IS_VALID(most)) assert_true(most >= least);
    return least - 20 * GST_MSECOND;
}

static guint64 expected_latency(GstElement *filter)
{
    const guint64 us = read_stat(filter, "frame-time-max-us");
    return us <= 1000 ? GST_MSECOND : (us + 999) / 1000 * GST_MSECOND;
}

static void test_latency_of_a_live_source(void **state)
{
    (void)state;
    GstBus *bus = gst_bus_new();
    GstHarness *harness = playing(bus, "device=cpu matrix=\"" SEPIA "\"");
    assert_true(own_latency(harness) == GST_MSECOND); /* nothing is known yet */
    assert_true(comes_out(harness, 0));
    const guint64 before = own_latency(harness);
    assert_true(before == expected_latency(harness->element));
    assert_true(read_stat(harness->element, "latency-us") * 1000 == before);
    count_messages(bus, GST_MESSAGE_ANY);
    guint64 after = before;
    /* Millions of products take some ms on any host; more of them if the first frame happened to be slow. */
    for (int width = 640; width <= 10240 && after == before; width *= 2) {
        const frame_shape large = {&fixture_formats[2], width, 480, 0};
        gst_harness_set_src_caps(harness, shape_caps(&large));
        gst_buffer_unref(gst_harness_push_and_pull(harness, make_frame(&large, 1)));
        after = own_latency(harness);
    }
    assert_true(after > before);
    assert_true(after == expected_latency(harness->element));
    assert_true(read_stat(harness->element, "latency-us") * 1000 == after);
    assert_int_equal(count_messages(bus, GST_MESSAGE_LATENCY), 1); /* so the application asks again */
    gst_harness_set_src_caps(harness, shape_caps(&small));
    assert_true(own_latency(harness) == after); /* the longest stays */
    gst_harness_teardown(harness);
    gst_object_unref(bus);
}

/* The least latency at an element of a pipeline, and whether there is a live source before it. */
static GstClockTime latency_at(GstElement *pipeline, const char *name, gboolean *is_live)
{
    GstClockTime least = 1, most = 0;
    GstElement *element = gst_bin_get_by_name(GST_BIN(pipeline), name);
    GstQuery *query = gst_query_new_latency();
    assert_true(gst_element_query(element, query));
    gst_query_parse_latency(query, is_live, &least, &most);
    gst_query_unref(query);
    gst_object_unref(element);
    return least;
}

/* What is not live waits for nobody: nothing is added then. */
static void test_latency_of_pipelines(void **state)
{
    (void)state;
    need_element("videotestsrc");
    for (int live = 0; live < 2; live++) {
        gboolean before = !live, after = !live;
        GError *error = NULL;
        char text[256];
        snprintf(text, sizeof text, "videotestsrc name=source is-live=%s num-buffers=4 ! video/x-raw,format=RGB,width=16,height=8 ! "
                 "jitgemmfilter name=filter device=cpu ! fakesink sync=true", live ? "true" : "false");
        GstElement *pipeline = gst_parse_launch(text, &error);
        if (error) fail_msg("%s", error->message);
        GstElement *filter = gst_bin_get_by_name(GST_BIN(pipeline), "filter");
        play_to_end(pipeline);
        const GstClockTime own = latency_at(pipeline, "filter", &after) - latency_at(pipeline, "source", &before);
        assert_int_equal(before, live);
        assert_int_equal(after, live);
        assert_true(own == (live ? read_stat(filter, "latency-us") * 1000 : 0));
        assert_int_equal(read_stat(filter, "frames") + read_stat(filter, "dropped"), 4);
        gst_element_set_state(pipeline, GST_STATE_NULL);
        gst_object_unref(filter);
        gst_object_unref(pipeline);
    }
}

/* ---- statistics ---- */

static void test_stats_are_complete(void **state)
{
    (void)state;
    static const char *const counts[] = {"frames", "dropped", "renegotiations", "launches-own", "launches-generic", "waits", "swaps",
                                         "compiles", "frame-time-last-us", "frame-time-mean-us", "frame-time-max-us", "first-sight-max-us",
                                         "latency-us"};
    GstBus *bus = gst_bus_new();
    GstHarness *harness = playing(bus, "device=cpu matrix=\"" SEPIA "\"");
    const jgf_color color = parse_color(SEPIA);
    jgf_color_integers integers;
    double error = -1;
    jgf_color_quantise(&color, &integers);
    for (uint32_t n = 0; n < 5; n++) assert_true(comes_out(harness, n));
    GstStructure *stats = read_stats(harness->element);
    assert_string_equal(gst_structure_get_name(stats), "jitgemmfilter-stats");
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if (!gst_structure_has_field_typed(stats, counts[i], G_TYPE_UINT64)) fail_msg("no \"%s\" among the stats", counts[i]);
    assert_true(gst_structure_get_double(stats, "color-worst-error", &error));
    assert_true(error == fmax(integers.worst[0], fmax(integers.worst[1], integers.worst[2])));
    assert_string_equal(gst_structure_get_string(stats, "device"), "cpu");
    gst_structure_free(stats);
    const guint64 last = read_stat(harness->element, "frame-time-last-us"), most = read_stat(harness->element, "frame-time-max-us");
    assert_true(last <= most && read_stat(harness->element, "frame-time-mean-us") <= most);
    assert_true(read_stat(harness->element, "first-sight-max-us") <= most);
    assert_int_equal(read_stat(harness->element, "frames"), 5);
    assert_int_equal(read_stat(harness->element, "renegotiations"), 0);
    gst_harness_teardown(harness);
    gst_object_unref(bus);
}

static void assert_device(GstElement *filter, const char *expected)
{
    GstStructure *stats = read_stats(filter);
    assert_string_equal(gst_structure_get_string(stats, "device"), expected);
    gst_structure_free(stats);
}

/* Before the first start there is none; after a stop it is still told. */
static void test_the_device_is_that_of_the_last_start(void **state)
{
    (void)state;
    GstElement *filter = gst_element_factory_make("jitgemmfilter", NULL);
    assert_non_null(filter);
    gst_object_ref_sink(filter);
    gst_util_set_object_arg(G_OBJECT(filter), "device", "cpu");
    assert_device(filter, "none");
    assert_int_equal(gst_element_set_state(filter, GST_STATE_PAUSED), GST_STATE_CHANGE_SUCCESS);
    assert_device(filter, "cpu");
    gst_element_set_state(filter, GST_STATE_NULL);
    assert_device(filter, "cpu");
    gst_object_unref(filter);
}

/* Asked for from other threads at any time, also while it starts and stops; matrices change meanwhile. */
static gint stop_asking;

static gpointer ask(gpointer filter)
{
    guint64 asked = 0;
    while (!g_atomic_int_get(&stop_asking)) {
        GstStructure *stats = NULL;
        g_object_get(filter, "stats", &stats, NULL);
        if (stats) gst_structure_free(stats);
        g_object_set(filter, "matrix", asked++ % 2 ? SEPIA : NEGATIVE, NULL);
        g_usleep(200);
    }
    return NULL;
}

static void test_asked_at_any_time(void **state)
{
    (void)state;
    const jgf_color sepia = parse_color(SEPIA);
    GstHarness *harness = make_harness(make_filter("device=cpu matrix=\"" SEPIA "\""));
    int negatives = 0, others = 0;
    GThread *thread = g_thread_new("ask", ask, harness->element);
    for (int round = 0; round < 4 || (round < 200 && !(negatives && others)); round++) {
        gst_element_set_state(harness->element, GST_STATE_READY);
        gst_element_set_state(harness->element, GST_STATE_PLAYING);
        gst_harness_push_event(harness, gst_event_new_stream_start("again"));
        gst_harness_set_src_caps(harness, shape_caps(&small));
        for (uint32_t n = 0; n < 50; n++) {
            GstBuffer *in = make_frame(&small, n);
            uint8_t *before = read_frame(&small, in);
            GstBuffer *out = gst_harness_push_and_pull(harness, in);
            uint8_t *found = read_frame(&small, out);
            /* All of a frame is of one of the two matrices. */
            int is_negative = 1;
            for (size_t i = 0; i < frame_bytes(&small); i++) is_negative &= before[i] + found[i] == 255;
            if (!is_negative) judge_frame(&small, &sepia, n, found);
            negatives += is_negative;
            others += !is_negative;
            free(before);
            free(found);
            gst_buffer_unref(out);
            g_usleep(100);
        }
    }
    g_atomic_int_set(&stop_asking, 1);
    g_thread_join(thread);
    gst_harness_teardown(harness);
    assert_true(negatives > 0 && others > 0); /* both were in use */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_late_frames_are_dropped),
        cmocka_unit_test(test_qos_can_be_off),
        cmocka_unit_test(test_a_flush_forgets),
        cmocka_unit_test(test_latency_of_a_live_source),
        cmocka_unit_test(test_latency_of_pipelines),
        cmocka_unit_test(test_stats_are_complete),
        cmocka_unit_test(test_the_device_is_that_of_the_last_start),
        cmocka_unit_test(test_asked_at_any_time),
    };
    return cmocka_run_group_tests(tests, gst_fixture_begin, gst_fixture_end);
}

#endif
GST_FIXTURE_MAIN
