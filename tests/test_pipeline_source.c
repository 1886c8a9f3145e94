/* Parts of the video pipeline by themselves: what its source reads out of Y4M and raw files, and refuses. */
#include "examples/pipeline/source.h"
#include "scratch_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { WIDTH = 8, HEIGHT = 4, PIXELS = WIDTH * HEIGHT, BYTES = PIXELS / 2 * 3, FRAMES = 5 };
#define PLENTY ((int64_t)1 << 20)

static source s;

/* ---- clips ---- */

/* What byte i of a plane (0: Y, 1: U, 2: V) has in a frame. */
static uint8_t value_of(int frame, int plane, int i)
{
    return (uint8_t)(frame * 50 + plane * 70 + i);
}

static size_t put_i420(uint8_t *out, int frame)
{
    size_t length = 0;
    for (int plane = 0; plane < 3; plane++)
        for (int i = 0; i < (plane ? PIXELS / 4 : PIXELS); i++) out[length++] = value_of(frame, plane, i);
    return length;
}

/* A clip of so many frames, of which the last `cut` bytes are missing. Returns its path. */
static const char *write_clip(const char *header, const char *frame_line, int frames, size_t cut)
{
    uint8_t data[4096];
    size_t length = (size_t)snprintf((char *)data, sizeof data, "%s\n", header);
    for (int i = 0; i < frames; i++) {
        length += (size_t)snprintf((char *)data + length, sizeof data - length, "%s\n", frame_line);
        length += put_i420(data + length, i);
    }
    const char *path = scratch_path(folder, "clip.y4m");
    scratch_write(path, data, length - cut);
    return path;
}

static void assert_frame(const uint8_t *got, int frame)
{
    assert_non_null(got);
    for (int i = 0; i < PIXELS; i++) assert_int_equal(got[i], value_of(frame, 0, i));
    for (int i = 0; i < PIXELS / 4; i++) {
        assert_int_equal(got[PIXELS + 2 * i], value_of(frame, 1, i));
        assert_int_equal(got[PIXELS + 2 * i + 1], value_of(frame, 2, i));
    }
}

static void assert_in(const char *text, const char *part)
{
    if (!strstr(text, part)) fail_msg("\"%s\" is not in \"%s\"", part, text);
}

/* ---- what is read ---- */

static void y4m_becomes_nv12(void **state)
{
    (void)state;
    static const char *const headers[] = {"YUV4MPEG2 W8 H4 F30000:1001 Ip A1:1 C420", "YUV4MPEG2 C420jpeg W8 H4 F30000:1001",
                                          "YUV4MPEG2 W8 H4 C420mpeg2 F30000:1001 XYSCSS=420MPEG2", "YUV4MPEG2 H4 W8 F30000:1001 C420paldv",
                                          "YUV4MPEG2 W8 H4 F30000:1001"};
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        const char *path = write_clip(headers[i], i % 2 ? "FRAME Ip XCOMMENT" : "FRAME", FRAMES, 0);
        if (!source_open(&s, path, 0, 0, 0, PLENTY)) fail_msg("%s: %s", headers[i], s.error);
        assert_int_equal(s.width, WIDTH);
        assert_int_equal(s.height, HEIGHT);
        assert_int_equal(s.rate_n, 30000);
        assert_int_equal(s.rate_d, 1001);
        assert_int_equal(s.frame_bytes, BYTES);
        assert_int_equal(s.count, FRAMES);
        assert_string_equal(s.warning, "");
        for (int n = 0; n < FRAMES; n++) assert_frame(source_frame(&s, n), n);
        assert_null(source_frame(&s, FRAMES));
        assert_string_equal(s.error, "");
        source_close(&s);
    }
}

/* A rate of 0:0 is one that is not known. */
static void unknown_rates(void **state)
{
    (void)state;
    static const char *const headers[] = {"YUV4MPEG2 W8 H4 F0:0", "YUV4MPEG2 W8 H4", "YUV4MPEG2 W8 H4 F25"};
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        assert_int_equal(source_open(&s, write_clip(headers[i], "FRAME", 1, 0), 0, 0, 0, PLENTY), 1);
        assert_int_equal(s.rate_n, 0);
        source_close(&s);
    }
}

static void raw_frames(void **state)
{
    (void)state;
    uint8_t data[2 * BYTES + 7];
    for (size_t i = 0; i < sizeof data; i++) data[i] = (uint8_t)(i * 31);
    const char *path = scratch_path(folder, "clip.nv12");
    scratch_write(path, data, sizeof data);
    assert_int_equal(source_open(&s, path, WIDTH, HEIGHT, 1, PLENTY), 1);
    assert_int_equal(s.count, 2);
    assert_in(s.warning, "frame 2 is cut off (7 of 48 bytes)");
    for (int n = 0; n < 5; n++) assert_memory_equal(source_frame(&s, n), data + n % 2 * BYTES, BYTES);
    source_close(&s);
}

/* Frames of a clip that does not fit are the same: in order, with some passed over, over its end, and in a second run. */
static void large_clips_are_streamed(void **state)
{
    (void)state;
    static const int numbers[] = {0, 1, 1, 3, 4, 5, 7, 14};
    for (int room = 0; room < FRAMES; room++) {
        const char *path = write_clip("YUV4MPEG2 W8 H4 C420", "FRAME", FRAMES, 0);
        assert_int_equal(source_open(&s, path, 0, 0, 1, room * BYTES + 1), 1);
        assert_int_equal(s.count, -1);
        for (int run = 0; run < 2; run++) {
            for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
                assert_frame(source_frame(&s, numbers[i]), numbers[i] % FRAMES);
            source_rewind(&s);
        }
        source_close(&s);
    }
    assert_int_equal(source_open(&s, write_clip("YUV4MPEG2 W8 H4 C420", "FRAME", FRAMES, 0), 0, 0, 0, BYTES), 1);
    assert_frame(source_frame(&s, FRAMES - 1), FRAMES - 1);
    assert_null(source_frame(&s, FRAMES));
    assert_string_equal(s.error, "");
    source_close(&s);
}

/* Each byte of a region, by its coordinates: luma at (x, y), chroma at the pair of x in the line of y / 2. */
static void regions_are_packed(void **state)
{
    (void)state;
    static const struct { int width, height, cols, lines, left, top; } rows[] = {
        {40, 36, 32, 32, 0, 0}, {38, 34, 32, 32, 0, 0}, {36, 32, 32, 32, 2, 2}, {32, 24, 32, 16, 4, 6}, {20, 18, 16, 16, 10, 8},
        {16, 16, 16, 16, 12, 10}, {40, 16, 32, 16, 0, 10}};
    uint8_t frame[40 * 36 / 2 * 3], packed[sizeof frame];
    s = (source){.width = 40, .height = 36};
    for (size_t i = 0; i < sizeof frame; i++) frame[i] = (uint8_t)(i * i / 7);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const uint8_t *at = packed;
        memset(packed, 0xee, sizeof packed);
        source_crop(&s, frame, rows[i].width, rows[i].height, rows[i].cols, rows[i].lines, packed);
        for (int y = 0; y < rows[i].lines; y++)
            for (int x = 0; x < rows[i].cols; x++, at++) assert_int_equal(*at, frame[(rows[i].top + y) * 40 + rows[i].left + x]);
        for (int y = 0; y < rows[i].lines / 2; y++)
            for (int x = 0; x < rows[i].cols; x++, at++)
                assert_int_equal(*at, frame[36 * 40 + (rows[i].top / 2 + y) * 40 + rows[i].left + x]);
        if (at < packed + sizeof packed) assert_int_equal(*at, 0xee);
    }
}

/* ---- what is not ---- */

static void other_formats_are_refused(void **state)
{
    (void)state;
    static const struct { const char *header, *error; } rows[] = {
        {"YUV4MPEG2 W8 H4 C444", "colour format C444; only 4:2:0 with 8 bits"},
        {"YUV4MPEG2 W8 H4 Cmono", "colour format Cmono"},
        {"YUV4MPEG2 W8 H4 C420p10", "colour format C420p10"},
        {"YUV4MPEG2 W8 H4 C422", "colour format C422"},
        {"YUV4MPEG2 W7 H4", "frames of \"7\" x \"4\" pixels; both must be even"},
        {"YUV4MPEG2 W8 H3", "frames of \"8\" x \"3\" pixels"},
        {"YUV4MPEG2 W8", "frames of \"8\" x \"\" pixels"},
        {"YUV4MPEG2 W8x H4", "frames of \"8x\" x \"4\" pixels"},
        {"YUV4MPEG2 W-8 H4", "frames of \"-8\" x \"4\" pixels"},
        {"YUV4MPEG2 W99999999999999999999 H4", "frames of \"99999999999999999999\" x"},
        {"RIFF....AVI ", "not a Y4M file: it does not begin with a line of YUV4MPEG2"},
        {"", "not a Y4M file"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *path = write_clip(rows[i].header, "FRAME", 2, 0);
        assert_int_equal(source_open(&s, path, 0, 0, 1, PLENTY), 0);
        assert_in(s.error, path);
        assert_in(s.error, rows[i].error);
        source_close(&s);
    }
}

/* A header line that does not end, and a file that ends in it. */
static void endless_headers(void **state)
{
    (void)state;
    char line[3000];
    const char *path = scratch_path(folder, "clip.y4m");
    memset(line, 'x', sizeof line);
    memcpy(line, "YUV4MPEG2 W8 H4 ", 16);
    for (size_t bytes = 12; bytes <= sizeof line; bytes += sizeof line - 12) {
        scratch_write(path, line, bytes);
        assert_int_equal(source_open(&s, path, 0, 0, 1, PLENTY), 0);
        assert_in(s.error, "not a Y4M file");
        source_close(&s);
    }
}

static void missing_files(void **state)
{
    (void)state;
    assert_int_equal(source_open(&s, scratch_path(folder, "none.y4m"), 0, 0, 1, PLENTY), 0);
    assert_in(s.error, "none.y4m: no such file");
    source_close(&s);
    assert_int_equal(source_open(&s, folder, 0, 0, 1, PLENTY), 0); /* a folder can be opened, and not read */
    assert_in(s.error, folder);
    source_close(&s);
}

/* The last frame, wherever it is cut, is left out with a warning; one frame alone that is cut is no clip. */
static void cut_off_frames(void **state)
{
    (void)state;
    static const struct { size_t cut; const char *warning; } rows[] = {
        {1, "frame 2 is cut off (47 of 48 bytes) and left out"}, {47, "frame 2 is cut off (1 of 48 bytes)"},
        {48, "frame 2 is cut off (0 of 48 bytes)"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *path = write_clip("YUV4MPEG2 W8 H4", "FRAME", 3, rows[i].cut);
        assert_int_equal(source_open(&s, path, 0, 0, 1, PLENTY), 1);
        assert_int_equal(s.count, 2);
        assert_in(s.warning, path);
        assert_in(s.warning, rows[i].warning);
        assert_frame(source_frame(&s, 2), 0);
        source_close(&s);
    }
    assert_int_equal(source_open(&s, write_clip("YUV4MPEG2 W8 H4", "FRAME", 1, 1), 0, 0, 1, PLENTY), 0);
    assert_in(s.error, "not one whole frame of 8x4");
    source_close(&s);
    assert_int_equal(source_open(&s, write_clip("YUV4MPEG2 W8 H4", "FRAME", 0, 0), 0, 0, 1, PLENTY), 0);
    assert_in(s.error, "not one whole frame of 8x4");
    source_close(&s);
}

/* A frame that does not begin where it has to, found when the file is opened, or on the way if it is streamed. */
static void damaged_frames(void **state)
{
    (void)state;
    static const struct { int64_t memory; int opens; } rows[] = {{PLENTY, 0}, {BYTES, 1}};
    uint8_t data[4096];
    size_t length = (size_t)sprintf((char *)data, "YUV4MPEG2 W8 H4\n");
    for (int i = 0; i < 4; i++) {
        length += (size_t)sprintf((char *)data + length, i == 3 ? "FRAMEX\n" : "FRAME\n");
        length += put_i420(data + length, i);
    }
    const char *path = scratch_path(folder, "damaged.y4m");
    scratch_write(path, data, length);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(source_open(&s, path, 0, 0, 1, rows[i].memory), rows[i].opens);
        for (int n = 0; rows[i].opens && n < 3; n++) assert_frame(source_frame(&s, n), n);
        if (rows[i].opens) assert_null(source_frame(&s, 3));
        assert_in(s.error, "damaged.y4m: frame 3: no line FRAME");
        source_close(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(y4m_becomes_nv12),
        cmocka_unit_test(unknown_rates),
        cmocka_unit_test(raw_frames),
        cmocka_unit_test(large_clips_are_streamed),
        cmocka_unit_test(regions_are_packed),
        cmocka_unit_test(other_formats_are_refused),
        cmocka_unit_test(endless_headers),
        cmocka_unit_test(missing_files),
        cmocka_unit_test(cut_off_frames),
        cmocka_unit_test(damaged_frames),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
