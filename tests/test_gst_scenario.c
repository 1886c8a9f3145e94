/* Plays scenarios (tests/gst) against jitgemmfilter, in the manner of gst-validate, and looks at what comes out of its source pad:
 * stream-start before caps before segment before frames, frames of the caps' size, none lost, none twice, timestamps as they went in,
 * nothing during a flush and nothing after EOS, a flush or a new stream excepted.
 *
 * A scenario has a line `properties TEXT`, then lines `at N ACTION`, done before frame N, in order:
 *     caps FORMAT WxH      seek MS (flushing)    flush      gap      eos      pause      play
 *     property NAME VALUE  restart (to READY and back, with a new stream)
 * Frames go in at 30 a second from where the last seek went. # begins a comment; WEIGHTS is a weight file with patches of 4x4. */
#include "gst_fixture.h"
#include "safetensors.h"

#ifdef JG_HAVE_GST

typedef struct player {
    GstHarness *harness;
    frame_shape shape;
    GstClockTime next;      /* timestamp of the next frame */
    int pushed;             /* frames */
    /* What the probe has seen, of this stream. */
    int has_start, has_caps, has_segment, is_flushing, is_over;
    int came;               /* frames, in all */
    GstClockTime expected;  /* timestamp of the frame that went in last */
    GstVideoInfo info;
    char wrong[256];        /* "" while all is well */
} player;

__attribute__((format(printf, 2, 3)))
static void find_wrong(player *p, const char *format, ...)
{
    va_list arguments;
    if (*p->wrong) return;
    va_start(arguments, format);
    vsnprintf(p->wrong, sizeof p->wrong, format, arguments);
    va_end(arguments);
}

static void see_event(player *p, GstEvent *event)
{
    GstCaps *caps;
    switch (GST_EVENT_TYPE(event)) {
    case GST_EVENT_FLUSH_START: p->is_flushing = 1; return;
    case GST_EVENT_FLUSH_STOP: p->is_flushing = p->has_segment = p->is_over = 0; return;
    default: break;
    }
    if (p->is_flushing) find_wrong(p, "%s during a flush", GST_EVENT_TYPE_NAME(event));
    if (GST_EVENT_TYPE(event) == GST_EVENT_STREAM_START) {
        p->has_start = 1;
        p->is_over = 0;
    }
    if (p->is_over) find_wrong(p, "%s after EOS", GST_EVENT_TYPE_NAME(event));
    switch (GST_EVENT_TYPE(event)) {
    case GST_EVENT_CAPS:
        gst_event_parse_caps(event, &caps);
        if (!p->has_start) find_wrong(p, "caps before stream-start");
        if (!gst_video_info_from_caps(&p->info, caps)) find_wrong(p, "caps of no frame");
        p->has_caps = 1;
        break;
    case GST_EVENT_SEGMENT:
        if (!p->has_caps) find_wrong(p, "a segment before caps");
        p->has_segment = 1;
        break;
    case GST_EVENT_EOS: p->is_over = 1; break;
    default: break;
    }
}

static void see_frame(player *p, GstBuffer *buffer)
{
    const int width = GST_VIDEO_INFO_WIDTH(&p->info), height = GST_VIDEO_INFO_HEIGHT(&p->info);
    p->came++;
    if (!p->has_start || !p->has_caps || !p->has_segment) find_wrong(p, "a frame before stream-start, caps or segment");
    if (p->is_flushing || p->is_over) find_wrong(p, "a frame %s", p->is_over ? "after EOS" : "during a flush");
    if (gst_buffer_get_size(buffer) != GST_VIDEO_INFO_SIZE(&p->info))
        find_wrong(p, "a frame of %zu bytes with caps of %dx%d", gst_buffer_get_size(buffer), width, height);
    if (width != p->shape.width || height != p->shape.height) find_wrong(p, "a frame of %dx%d", width, height);
    if (GST_BUFFER_PTS(buffer) != p->expected) find_wrong(p, "a frame with another timestamp");
}

static GstPadProbeReturn probe(GstPad *pad, GstPadProbeInfo *info, gpointer user)
{
    (void)pad;
    if (info->type & GST_PAD_PROBE_TYPE_BUFFER) see_frame(user, GST_PAD_PROBE_INFO_BUFFER(info));
    else see_event(user, GST_PAD_PROBE_INFO_EVENT(info));
    return GST_PAD_PROBE_OK;
}

/* ---- actions ---- */

static void push_segment(player *p)
{
    GstSegment segment;
    gst_segment_init(&segment, GST_FORMAT_TIME);
    segment.start = segment.time = segment.position = p->next;
    assert_true(gst_harness_push_event(p->harness, gst_event_new_segment(&segment)));
}

static void flush(player *p)
{
    assert_true(gst_harness_push_event(p->harness, gst_event_new_flush_start()));
    assert_int_equal(gst_harness_push(p->harness, make_frame(&p->shape, 0)), GST_FLOW_FLUSHING);
    assert_true(gst_harness_push_event(p->harness, gst_event_new_flush_stop(TRUE)));
    push_segment(p);
}

static void change_caps_to(player *p, const frame_shape *shape)
{
    p->shape = *shape;
    gst_harness_set_src_caps(p->harness, shape_caps(shape));
}

static void change_caps(player *p, const char *text)
{
    char name[16];
    frame_shape shape = {0};
    if (sscanf(text, "%15s %dx%d", name, &shape.width, &shape.height) != 3) fail_msg("no caps: %s", text);
    for (int i = 0; i < FIXTURE_FORMATS; i++)
        if (strcmp(fixture_formats[i].name, name) == 0) shape.format = &fixture_formats[i];
    if (!shape.format) fail_msg("no format: %s", text);
    change_caps_to(p, &shape);
}

static void restart(player *p)
{
    GstElement *filter = p->harness->element;
    assert_int_equal(gst_element_set_state(filter, GST_STATE_READY), GST_STATE_CHANGE_SUCCESS);
    p->has_start = p->has_caps = p->has_segment = p->is_over = 0;
    assert_int_equal(gst_element_set_state(filter, GST_STATE_PLAYING), GST_STATE_CHANGE_SUCCESS);
    assert_true(gst_harness_push_event(p->harness, gst_event_new_stream_start("again")));
    change_caps_to(p, &p->shape);
    push_segment(p);
}

static void finish_stream(player *p)
{
    assert_true(gst_harness_push_event(p->harness, gst_event_new_eos()));
    assert_true(p->is_over);
    assert_int_equal(gst_harness_push(p->harness, make_frame(&p->shape, 0)), GST_FLOW_EOS);
}

static void change_property(player *p, char *text)
{
    char *value = strchr(text, ' ');
    if (!value) fail_msg("no value: %s", text);
    *value++ = 0;
    gst_util_set_object_arg(G_OBJECT(p->harness->element), text, value);
}

static void act(player *p, char *action)
{
    char *rest = strchr(action, ' ');
    GstElement *filter = p->harness->element;
    if (rest) *rest++ = 0;
    else rest = action + strlen(action);
    if (strcmp(action, "caps") == 0) change_caps(p, rest);
    else if (strcmp(action, "eos") == 0) finish_stream(p);
    else if (strcmp(action, "flush") == 0) flush(p);
    else if (strcmp(action, "restart") == 0) restart(p);
    else if (strcmp(action, "property") == 0) change_property(p, rest);
    else if (strcmp(action, "pause") == 0) gst_element_set_state(filter, GST_STATE_PAUSED);
    else if (strcmp(action, "play") == 0) gst_element_set_state(filter, GST_STATE_PLAYING);
    else if (strcmp(action, "gap") == 0) assert_true(gst_harness_push_event(p->harness, gst_event_new_gap(p->next, GST_MSECOND)));
    else if (strcmp(action, "seek") == 0) {
        p->next = (GstClockTime)atoi(rest) * GST_MSECOND;
        flush(p);
    } else fail_msg("no action: %s", action);
}

/* Frames up to number `count`; each has to be out before the next goes in. */
static void push_frames(player *p, int count)
{
    while (p->pushed < count) {
        GstBuffer *frame = make_frame(&p->shape, (uint32_t)p->pushed);
        GST_BUFFER_PTS(frame) = p->expected = p->next;
        p->next += GST_SECOND / 30;
        p->pushed++;
        assert_int_equal(gst_harness_push(p->harness, frame), GST_FLOW_OK);
        if (p->came != p->pushed) find_wrong(p, "%d frames went in, %d came out", p->pushed, p->came);
        if (*p->wrong) fail_msg("frame %d: %s", p->pushed - 1, p->wrong);
    }
}

/* ---- scenarios ---- */

static GstHarness *begin(player *p, const char *properties, const char *device)
{
    static float weights[2 * 3 * 4 * 4];
    char text[PATH_MAX + 512];
    const char *place = strstr(properties, "WEIGHTS"), *path = scratch_path(folder, "w.safetensors");
    safetensors_write(path, "{\"w\":{\"dtype\":\"F32\",\"shape\":[2,3,4,4],\"data_offsets\":[0,384]}}", weights, sizeof weights);
    snprintf(text, sizeof text, "device=%s %.*s%s", device, place ? (int)(place - properties) : (int)strlen(properties), properties,
             place ? path : "");
    GstElement *filter = make_filter("%s", text);
    GstPad *pad = gst_element_get_static_pad(filter, "src");
    gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM | GST_PAD_PROBE_TYPE_EVENT_FLUSH, probe, p,
                      NULL);
    gst_object_unref(pad);
    return make_harness(filter);
}

static void play(const char *name, const char *device)
{
    char path[PATH_MAX], line[512], *action;
    player p = {0};
    int actions = 0, number, length;
    snprintf(path, sizeof path, "tests/gst/%s.scenario", name);
    FILE *scenario = fopen(path, "r");
    if (!scenario) fail_msg("%s: cannot be read", path);
    while (fgets(line, sizeof line, scenario)) {
        line[strcspn(line, "\n")] = 0;
        if (!*line || *line == '#') continue;
        if (strncmp(line, "properties", 10) == 0) {
            p.harness = begin(&p, line + 10, device);
            continue;
        }
        if (sscanf(line, "at %d %n", &number, &length) != 1 || !p.harness) fail_msg("%s: no action: %s", path, line);
        action = line + length;
        push_frames(&p, number);
        act(&p, action);
        if (*p.wrong) fail_msg("%s: %s: %s", path, action, p.wrong);
        actions++;
    }
    fclose(scenario);
    assert_true(p.is_over); /* the last one was eos */
    assert_true(actions > 5 && p.pushed > 5);
    assert_int_equal(read_stat(p.harness->element, "waits"), 0);
    gst_harness_teardown(p.harness);
}

static void play_on_all(const char *name)
{
    for (int d = 0; d < 2; d++)
        if (has_device(fixture_devices[d])) play(name, fixture_devices[d]);
}

static void test_color(void **state)
{
    (void)state;
    play_on_all("color");
}

static void test_seek(void **state)
{
    (void)state;
    play_on_all("seek");
}

static void test_restart(void **state)
{
    (void)state;
    play_on_all("restart");
}

static void test_embed(void **state)
{
    (void)state;
    play_on_all("embed");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_color),
        cmocka_unit_test(test_seek),
        cmocka_unit_test(test_restart),
        cmocka_unit_test(test_embed),
    };
    return cmocka_run_group_tests(tests, gst_fixture_begin, gst_fixture_end);
}

#endif
GST_FIXTURE_MAIN
