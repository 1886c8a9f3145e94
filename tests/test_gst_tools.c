/* jitgemmfilter as users meet it: gst-inspect-1.0 tells all of it, gst-launch-1.0 runs it, the plugin shows no other names, and valgrind
 * finds nothing. Runs commands in a scratch folder. */
#include "gst_fixture.h"
#include "safetensors.h"

#ifdef JG_HAVE_GST

#include <sys/wait.h>
#include <unistd.h>

/* A program that is not built for the sanitizers cannot load a plugin that is. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

static char out[65536]; /* what the last command wrote, both streams */

__attribute__((format(printf, 1, 2)))
static int run(const char *format, ...)
{
    char command[4096];
    size_t bytes = 0;
    va_list arguments;
    va_start(arguments, format);
    int length = snprintf(command, sizeof command, "(");
    length += vsnprintf(command + length, sizeof command - (size_t)length, format, arguments);
    va_end(arguments);
    assert_in_range(length, 1, (int)sizeof command - 100);
    snprintf(command + length, sizeof command - (size_t)length, ") >'%s' 2>&1 </dev/null", scratch_path(folder, "out"));
    const int status = system(command);
    unsigned char *text = scratch_read(scratch_path(folder, "out"), &bytes);
    snprintf(out, sizeof out, "%s", text ? (char *)text : "");
    free(text);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

#define assert_run(...)                                                     \
    do {                                                                    \
        const int run_status = run(__VA_ARGS__);                            \
        if (run_status != 0) fail_msg("exit status %d\n%s", run_status, out); \
    } while (0)

static void need_tool(const char *tool)
{
    if (SANITIZED) {
        print_message("SKIP %s: the plugin of an ordinary build is looked at\n", tool);
        skip();
    }
    if (run("command -v %s", tool) == 0) return;
    print_message("SKIP no %s\n", tool);
    skip();
}

static void assert_has(const char *part)
{
    if (!strstr(out, part)) fail_msg("\"%s\" is not in:\n%s", part, out);
}

/* ---- gst-inspect-1.0 ---- */

static void test_inspect_is_complete(void **state)
{
    (void)state;
    static const char *const parts[] = {"Long-name", "Filter/Effect/Video", "The jitgemm authors", "MIT/X11", "Source module",
        "{ (string)RGB, (string)BGR, (string)RGBx, (string)BGRx, (string)RGBA, (string)BGRA }", "SINK template: 'sink'",
        "SRC template: 'src'", "Default: 0, \"color\"", "Default: 2, \"f16\"", "Default: 3, \"background\"", "Default: 0, \"auto\"",
        "GstBaseTransform", "GstVideoFilter"};
    need_tool("gst-inspect-1.0");
    assert_run("gst-inspect-1.0 --no-colors jitgemmfilter");
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) assert_has(parts[i]);
    char version[64];
    snprintf(version, sizeof version, "Version                  %s\n", jg_version());
    assert_has(version);
    assert_run("gst-inspect-1.0 --no-colors '%s/gst/libgstjitgemm.so'", build_folder());
    assert_has("jitgemmfilter: jitgemm video filter");
    assert_has("1 features:");
}

/* Each property has a nickname, and a description that says more than that; those of texts say what null is. */
static void test_properties_are_described(void **state)
{
    (void)state;
    static const char *const names[] = {"mode", "matrix", "weights", "tensor", "type", "mean", "std", "device", "cache", "factory",
                                        "compile-policy", "prewarm", "post-messages", "stats", "qos"};
    static const char *const changeable[] = {"matrix", "mean", "std"};
    GstElement *filter = make_element("jitgemmfilter");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        GParamSpec *spec = g_object_class_find_property(G_OBJECT_GET_CLASS(filter), names[i]);
        int is_changeable = 0;
        if (!spec) fail_msg("no property %s", names[i]);
        const char *text = g_param_spec_get_blurb(spec);
        if (!text || strlen(text) < 20 || strcmp(text, g_param_spec_get_nick(spec)) == 0)
            fail_msg("property %s is not described", names[i]);
        for (size_t j = 0; j < 3; j++) is_changeable |= strcmp(names[i], changeable[j]) == 0;
        if (strcmp(names[i], "qos") == 0) continue; /* the base class's */
        assert_int_equal(!!(spec->flags & GST_PARAM_MUTABLE_PLAYING), is_changeable);
        assert_int_equal(!!(spec->flags & G_PARAM_WRITABLE), strcmp(names[i], "stats") != 0);
        if (!is_changeable && spec->flags & G_PARAM_WRITABLE) assert_true(spec->flags & GST_PARAM_MUTABLE_READY);
    }
    gst_object_unref(filter);
}

static void test_shows_no_other_names(void **state)
{
    (void)state;
    need_tool("nm");
    assert_run("! nm -D --defined-only '%s/gst/libgstjitgemm.so' | grep -v ' gst_plugin_jitgemm_[a-z_]*$'", build_folder());
    assert_run("nm -D --defined-only '%s/gst/libgstjitgemm.so' | grep -q ' gst_plugin_jitgemm_get_desc$'", build_folder());
}

/* ---- gst-launch-1.0 ---- */

/* The end of a command for patches of 8x8; the file is made. */
static const char *embed_properties(void)
{
    static float weights[3 * 3 * 8 * 8];
    static char text[PATH_MAX + 64];
    const char *path = scratch_path(folder, "w.safetensors");
    safetensors_write(path, "{\"w\":{\"dtype\":\"F32\",\"shape\":[3,3,8,8],\"data_offsets\":[0,2304]}}", weights, sizeof weights);
    snprintf(text, sizeof text, "mode=embed weights=%s", path);
    return text;
}

static void test_launch_runs(void **state)
{
    (void)state;
    need_tool("gst-launch-1.0");
    need_element("videotestsrc");
    need_element("videoconvert");
    for (int d = 0; d < 2; d++) {
        const char *device = fixture_devices[d];
        if (!has_device(device)) continue;
        assert_run("gst-launch-1.0 videotestsrc num-buffers=5 ! video/x-raw,format=NV12,width=34,height=18 ! videoconvert ! "
                   "jitgemmfilter device=%s matrix=\"" SEPIA "\" ! videoconvert ! video/x-raw,format=NV12 ! fakesink", device);
        assert_has("Got EOS");
        assert_run("gst-launch-1.0 -m videotestsrc num-buffers=5 ! video/x-raw,width=33,height=17 ! videoconvert ! "
                   "jitgemmfilter device=%s post-messages=true %s ! fakesink", device, embed_properties());
        assert_has("jitgemm-tensor");
        assert_has("rows=(int)2, columns=(int)4, channels=(int)3, type=(string)f16");
    }
    /* Where kernels are made before the first frame, gst-launch-1.0 shows how far that is. */
    if (!no_kernels) {
        assert_run("gst-launch-1.0 videotestsrc num-buffers=1 ! video/x-raw,format=RGB,width=8,height=8 ! jitgemmfilter device=swgpu "
                   "cache='\"\"' ! fakesink");
        assert_has("(prewarm)");
    }
    assert_int_not_equal(run("gst-launch-1.0 videotestsrc num-buffers=1 ! jitgemmfilter device=cpu mode=embed weights=/none ! fakesink"),
                         0);
    assert_has("/none: cannot be opened");
}

/* GStreamer's own tracer finds no object, buffer, event or message left at the end, with sizes that change and tensors as messages. */
static void test_no_object_is_left(void **state)
{
    (void)state;
    need_tool("gst-launch-1.0");
    need_tool("gst-inspect-1.0");
    need_element("videotestsrc");
    if (run("gst-inspect-1.0 coretracers") != 0) {
        print_message("SKIP this GStreamer has no tracers\n");
        skip();
    }
    const char *const modes[] = {"matrix=\"" SEPIA "\"", embed_properties()};
    for (int mode = 0; mode < 2; mode++) {
        assert_run("GST_TRACERS=leaks GST_DEBUG=GST_TRACER:7 GST_DEBUG_NO_COLOR=1 gst-launch-1.0 concat name=c ! "
                   "jitgemmfilter device=cpu post-messages=true %s ! fakesink "
                   "videotestsrc num-buffers=3 ! video/x-raw,format=RGB,width=17,height=9 ! c. "
                   "videotestsrc num-buffers=3 ! video/x-raw,format=BGRx,width=40,height=8 ! c.", modes[mode]);
        assert_has("object-alive.class"); /* it looked */
        if (strstr(out, "object-alive, type-name=(string)Gst")) fail_msg("%s", strstr(out, "object-alive, type-name=(string)Gst"));
    }
}

/* ---- the element's README ---- */

#define README "examples/gstreamer/README.md"

/* A model as the README's: patches of 16x16, 4 channels. */
static void make_model(void)
{
    static float weights[4 * 3 * 16 * 16];
    safetensors_write(scratch_path(folder, "model.safetensors"), "{\"vit.patch_embeddings.projection.weight\":{\"dtype\":\"F32\","
                      "\"shape\":[4,3,16,16],\"data_offsets\":[0,12288]}}", weights, sizeof weights);
}

/* The commands run as they stand there, but for three frames each, and without a window. */
static void test_commands_of_the_readme(void **state)
{
    (void)state;
    need_tool("gst-launch-1.0");
    need_element("videotestsrc");
    need_element("videoconvert");
    need_element("videoscale");
    make_model();
    assert_run("sed -n '/^    SEPIA=/,/^$/p' " README " | sed -e 's/^    //' -e 's/autovideosink/fakesink/' -e 's/num-buffers=[0-9]*//' "
               "-e 's/videotestsrc/videotestsrc num-buffers=3/' >%s/commands && "
               "test $(grep -c gst-launch %s/commands) -ge 3", folder, folder);
    assert_run("cd %s && JITGEMM_DRIVER=cpu sh -e ./commands", folder);
    assert_has("width=(int)1021, height=(int)577");
    assert_has("jitgemm-tensor, rows=(int)14, columns=(int)14, channels=(int)4");
}

static void test_program_of_the_readme(void **state)
{
    (void)state;
    need_tool("pkg-config");
    need_element("videotestsrc");
    make_model();
    assert_run("sed -n '/^```c$/,/^```$/p' " README " | grep -v '^```' >%s/app.c && "
               "${CC:-cc} -Wall -Wextra -Werror %s/app.c -o %s/app "
               "-Iexamples/gstreamer $(pkg-config --cflags --libs gstreamer-1.0)", folder, folder, folder);
    assert_run("cd %s && JITGEMM_DRIVER=cpu ./app", folder);
    assert_has("frame 2: 14 x 14 patches, 4 f16 each, 1568 bytes");
}

/* ---- valgrind ---- */

/* Errors and definite leaks of a whole run, with the suppressions that GLib brings for what it keeps. */
static void check_valgrind(const char *device, const char *properties)
{
    static const char glib[] = "/usr/share/glib-2.0/valgrind/glib.supp";
    char suppressions[64] = "";
    if (scratch_exists(glib)) snprintf(suppressions, sizeof suppressions, "--suppressions=%s", glib);
    const char *pipeline = "videotestsrc num-buffers=3 ! video/x-raw,format=RGB,width=17,height=9 ! jitgemmfilter";
    assert_run("gst-launch-1.0 -q %s device=%s %s ! fakesink", pipeline, device, properties); /* makes the kernels */
    assert_run("valgrind -q --error-exitcode=99 --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite "
               "--num-callers=20 %s gst-launch-1.0 -q %s device=%s %s ! fakesink", suppressions, pipeline, device, properties);
}

static void test_valgrind_finds_nothing(void **state)
{
    (void)state;
    need_tool("gst-launch-1.0");
    need_tool("valgrind");
    need_element("videotestsrc");
    setenv("G_SLICE", "always-malloc", 1);
    setenv("G_DEBUG", "gc-friendly,fatal-criticals", 1);
    setenv("JITGEMM_SWGPU_THREADS", "1", 1);
    check_valgrind("cpu", embed_properties());
    if (has_device("swgpu")) check_valgrind("swgpu", "matrix=\"" SEPIA "\"");
    unsetenv("G_SLICE");
    setenv("G_DEBUG", "fatal-criticals", 1);
    unsetenv("JITGEMM_SWGPU_THREADS");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_inspect_is_complete),
        cmocka_unit_test(test_properties_are_described),
        cmocka_unit_test(test_shows_no_other_names),
        cmocka_unit_test(test_launch_runs),
        cmocka_unit_test(test_no_object_is_left),
        cmocka_unit_test(test_commands_of_the_readme),
        cmocka_unit_test(test_program_of_the_readme),
        cmocka_unit_test(test_valgrind_finds_nothing),
    };
    return cmocka_run_group_tests(tests, gst_fixture_begin, gst_fixture_end);
}

#endif
GST_FIXTURE_MAIN
