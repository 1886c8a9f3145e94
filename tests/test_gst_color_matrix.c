/* examples/gstreamer/color_matrix.c: what texts and files are taken, and that the product of integers stays within the bound it
 * states of the exact matrix. Needs no GStreamer. */
#include "examples/gstreamer/color_matrix.h"
#include "safetensors.h"
#include "scratch_fixture.h"

#include <limits.h>
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static const jgf_color identity = {{{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}}};
static const jgf_color inverse = {{{-1, 0, 0, 255}, {0, -1, 0, 255}, {0, 0, -1, 255}}};
static const jgf_color swap = {{{0, 0, 1, 0}, {0, 1, 0, -7}, {2, -3, 127, 0}}};
static const jgf_color sepia = {{{0.393, 0.769, 0.189, 0}, {0.349, 0.686, 0.168, 0}, {0.272, 0.534, 0.131, 0}}};
static const jgf_color gamut = {{{1.6605, -0.5876, -0.0728, 0}, {-0.1246, 1.1329, -0.0083, 0}, {-0.0182, -0.1006, 1.1187, 0}}};
static const jgf_color grey = {{{0.2126, 0.7152, 0.0722, 16.5}, {0.2126, 0.7152, 0.0722, -16.5}, {1e-9, -1e-5, 1, 0.25}}};
static const jgf_color odd = {{{0, 0, 0, 12.25}, {1e-300, 0, -1e-310, 3}, {1e6, 1, -1e6, 1e6}}};
static const jgf_color *const matrices[] = {&identity, &inverse, &swap, &sepia, &gamut, &grey, &odd};
enum { MATRICES = sizeof matrices / sizeof *matrices };

static uint32_t random_state = 1;

/* -range to range. */
static double random_value(double range)
{
    random_state = random_state * 1664525 + 1013904223;
    return range * ((double)(random_state >> 8) / 8388608.0 - 1);
}

static jgf_color random_color(void)
{
    jgf_color color;
    for (int j = 0; j < 3; j++) {
        for (int i = 0; i < 3; i++) color.matrix[j][i] = random_value(2);
        color.matrix[j][3] = random_value(64);
    }
    return color;
}

/* ---- integers ---- */

/* The worst error of output j before the rounding, over inputs `step` levels apart, 0 and 255 among them. */
static double worst_error(const jgf_color *color, const jgf_color_integers *integers, int j, int step)
{
    const double *c = color->matrix[j];
    const int8_t *q = integers->q[j];
    double worst = 0;
    for (int r = 0; r <= 255; r += step)
        for (int g = 0; g <= 255; g += step)
            for (int b = 0; b <= 255; b += step) {
                float x = integers->scale[j] * (float)(q[0] * r + q[1] * g + q[2] * b); /* as the epilogue does it */
                x = x + integers->bias[j];
                worst = fmax(worst, fabs((double)x - (c[0] * r + c[1] * g + c[2] * b + c[3])));
            }
    return worst;
}

static void assert_within_bound(const jgf_color *color, int step)
{
    jgf_color_integers integers;
    jgf_color_quantise(color, &integers);
    for (int j = 0; j < 3; j++) {
        const double *c = color->matrix[j], found = worst_error(color, &integers, j, step), bound = integers.worst[j];
        double slack = 1e-4; /* what the bound has for float32, at most, where numbers are small */
        for (int i = 0; i < 4; i++) slack = fmax(slack, 1e-4 * fabs(c[i]));
        if (!(found <= bound)) fail_msg("row %g %g %g %g: off by %.9g, bound %.9g", c[0], c[1], c[2], c[3], found, bound);
        if (!(found >= bound - slack)) fail_msg("row %g %g %g %g: the bound %.9g is never met: %.9g", c[0], c[1], c[2], c[3], bound, found);
        for (int i = 0; i < 3; i++) assert_in_range(integers.q[j][i] + 127, 0, 254);
        assert_true(isfinite(integers.scale[j]) && integers.scale[j] > 0 && isfinite(integers.bias[j]));
    }
}

static void test_bound_holds_and_is_met(void **state)
{
    (void)state;
    for (int m = 0; m < MATRICES; m++) assert_within_bound(matrices[m], 5);
    assert_within_bound(&sepia, 1); /* all 2^24 inputs */
    for (int i = 0; i < 50; i++) {
        const jgf_color color = random_color();
        assert_within_bound(&color, 17);
    }
}

static void test_small_integers_are_exact(void **state)
{
    (void)state;
    const jgf_color *const exact[] = {&identity, &inverse, &swap};
    for (int m = 0; m < 3; m++) {
        jgf_color_integers integers;
        jgf_color_quantise(exact[m], &integers);
        for (int j = 0; j < 3; j++) {
            assert_true(integers.worst[j] == 0 && integers.scale[j] == 1);
            assert_true(integers.bias[j] == (float)exact[m]->matrix[j][3]);
            for (int i = 0; i < 3; i++) assert_int_equal(integers.q[j][i], (int)exact[m]->matrix[j][i]);
            assert_true(worst_error(exact[m], &integers, j, 15) == 0);
        }
    }
}

/* sum |c_i - s q_i| with the best q_i for the scale. */
static double off_by(const double *c, double scale)
{
    double off = 0;
    for (int i = 0; i < 3; i++) {
        double least = INFINITY;
        for (int q = -127; q <= 127; q++) least = fmin(least, fabs(c[i] - scale * q));
        off += least;
    }
    return off;
}

static void test_no_scale_is_better(void **state)
{
    (void)state;
    for (int m = 0; m < 12; m++) {
        const jgf_color color = m < MATRICES - 1 ? *matrices[m] : random_color();
        jgf_color_integers integers;
        jgf_color_quantise(&color, &integers);
        for (int j = 0; j < 3; j++) {
            const double *c = color.matrix[j], largest = fmax(fabs(c[0]), fmax(fabs(c[1]), fabs(c[2])));
            double found = 0, least = INFINITY;
            for (int i = 0; i < 3; i++) found += fabs(c[i] - (double)integers.scale[j] * integers.q[j][i]);
            for (int step = 0; step < 3000; step++) /* from a little too small for 127, in steps of 0.17 % */
                least = fmin(least, off_by(c, largest / 140 * exp(step * (log(150) / 3000))));
            /* The scale that is found is rounded to float32. */
            if (!(found <= least + 3 * largest * 0x1p-24))
                fail_msg("row %g %g %g: %.9g, and %.9g is there", c[0], c[1], c[2], found, least);
        }
    }
}

/* ---- the product ---- */

static const struct { const char *name; jgf_pixel_format format; } formats[] = {
    {"RGB", {3, 0, 1, 2}}, {"BGR", {3, 2, 1, 0}}, {"RGBx", {4, 0, 1, 2}}, {"BGRx", {4, 2, 1, 0}}, {"xRGB", {4, 1, 2, 3}},
    {"xBGR", {4, 3, 2, 1}},
};

/* A line of pixels times B, with the epilogue, against the matrix applied to each pixel. */
static void test_expands_for_groups_of_pixels(void **state)
{
    (void)state;
    enum { MOST = 16 * 4 };
    static const int groups[] = {1, 2, 5, 16};
    jgf_color_integers integers;
    jgf_color_quantise(&gamut, &integers);
    for (size_t f = 0; f < sizeof formats / sizeof *formats; f++) {
        for (int g = 0; g < 4; g++) {
            const jgf_pixel_format *format = &formats[f].format;
            const int bytes = format->pixel_bytes, n = groups[g] * bytes;
            int8_t b[MOST * MOST + 1];
            float scale[MOST + 1], bias[MOST + 1];
            uint8_t line[MOST];
            b[n * n] = 99;
            scale[n] = bias[n] = 99;
            jgf_color_expand(&integers, format, groups[g], b, scale, bias);
            assert_int_equal(b[n * n], 99); /* nothing past the end */
            assert_true(scale[n] == 99 && bias[n] == 99);
            for (int i = 0; i < n; i++) line[i] = (uint8_t)fabs(random_value(255));
            for (int i = 0; i < n; i++) {
                const uint8_t *pixel = line + i / bytes * bytes;
                const int place = i % bytes, in[3] = {pixel[format->r], pixel[format->g], pixel[format->b]};
                const int j = place == format->r ? 0 : place == format->g ? 1 : place == format->b ? 2 : -1;
                int sum = 0;
                for (int k = 0; k < n; k++) sum += b[k * n + i] * line[k];
                const float found = scale[i] * (float)sum + bias[i];
                const int8_t *q = integers.q[j < 0 ? 0 : j];
                const float expected = j < 0 ? (float)pixel[place]
                                             : integers.scale[j] * (float)(q[0] * in[0] + q[1] * in[1] + q[2] * in[2]) + integers.bias[j];
                if (found != expected)
                    fail_msg("%s, %d pixels, byte %d: %g, not %g", formats[f].name, groups[g], i, (double)found, (double)expected);
            }
        }
    }
}

/* ---- texts and files ---- */

static void assert_refused(const char *text, const char *why)
{
    jgf_color color = identity;
    char error[256] = "";
    if (jgf_color_parse(text, &color, error, sizeof error) != -1) fail_msg("\"%s\" was taken", text);
    if (!strstr(error, why)) fail_msg("\"%s\": \"%s\" does not say \"%s\"", text, error, why);
    assert_memory_equal(&color, &identity, sizeof color);
}

static void test_parses_texts(void **state)
{
    (void)state;
    static const char *const texts[] = {"1 2 3 4 5 6 7 8 9", " 1,2,3\n4,5,6\n7,8,9\n", "1;2;3; 4;5;6; 7;8;9",
                                        "1.0 2e0 30e-1 +4 5 6 7 8 0x9", "1 2 3 0  4 5 6 0  7 8 9 0"};
    const jgf_color expected = {{{1, 2, 3, 0}, {4, 5, 6, 0}, {7, 8, 9, 0}}};
    jgf_color color;
    char error[256] = "";
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        memset(&color, 0xff, sizeof color);
        if (jgf_color_parse(texts[i], &color, error, sizeof error) != 0) fail_msg("\"%s\": %s", texts[i], error);
        assert_memory_equal(&color, &expected, sizeof color);
    }
    assert_int_equal(jgf_color_parse("1 0 0 -16.5 0 1 0 0.125 0 0 1 1e6", &color, error, sizeof error), 0);
    assert_true(color.matrix[0][3] == -16.5 && color.matrix[1][3] == 0.125 && color.matrix[2][3] == 1e6 && color.matrix[1][1] == 1);
    assert_refused("", "0 numbers: a colour matrix has 9 (3x3) or 12 (3x4)");
    assert_refused(" ,\n", "0 numbers");
    assert_refused("1 2 3 4 5 6 7 8", "8 numbers");
    assert_refused("1 2 3 4 5 6 7 8 9 10", "10 numbers");
    assert_refused("1 2 3 4 5 6 7 8 9 10 11 12 13 14 15", "15 numbers");
    assert_refused("1 2 red 4 5 6 7 8 9", "\"red\" is no number (number 3)");
    assert_refused("1 2 3 4 5 6 7 8 9x", "\"9x\" is no number (number 9)");
    assert_refused("1 2 3 4|5 6 7 8 9", "\"4|5\" is no number (number 4)");
    assert_refused("1 2 3 4 nan 6 7 8 9", "number 5 is not a number");
    assert_refused("1 2 3 4 5 6 7 8 -inf", "number 9 is infinite");
    assert_refused("1 2 3 4 5 6 7 8 1e999", "number 9 is infinite");
    assert_refused("1 2 3 4 5 6 7 8 -1000001", "number 9, -1e+06, is beyond 1e+06");
    assert_int_equal(jgf_color_parse("x", &color, NULL, 0), -1);
}

static void test_a_point_is_a_point_in_any_locale(void **state)
{
    (void)state;
    static const char *const locales[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE.utf8"};
    const char *found = NULL;
    jgf_color color;
    for (size_t i = 0; i < sizeof locales / sizeof *locales && !found; i++) found = setlocale(LC_ALL, locales[i]);
    if (!found) {
        print_message("SKIP no locale with a decimal comma is installed\n");
        skip();
    }
    const int result = jgf_color_parse("1.5 0 0 0 1,0 0 0 1", &color, NULL, 0);
    setlocale(LC_ALL, "C");
    assert_int_equal(result, 0);
    assert_true(color.matrix[0][0] == 1.5 && color.matrix[1][1] == 1);
}

static int read_color(const char *header, const void *data, size_t bytes, jgf_color *color, char *error, size_t size)
{
    safetensors_write(scratch_path(folder, "c"), header, data, bytes);
    jgf_weights *weights = jgf_weights_open(scratch_path(folder, "c"), error, size);
    if (!weights) fail_msg("%s", error);
    const int result = jgf_color_read(weights, color, error, size);
    jgf_weights_close(weights);
    return result;
}

static void assert_file_refused(const char *header, const void *data, size_t bytes, const char *why)
{
    jgf_color color = identity;
    char error[PATH_MAX + 256] = "";
    assert_int_equal(read_color(header, data, bytes, &color, error, sizeof error), -1);
    if (!strstr(error, why) || strncmp(error, folder, strlen(folder)) != 0) fail_msg("\"%s\" does not say \"%s\" and where", error, why);
    assert_memory_equal(&color, &identity, sizeof color);
}

static void test_reads_files(void **state)
{
    (void)state;
    static const char square[] = "{\"any\":{\"dtype\":\"F32\",\"shape\":[3,3],\"data_offsets\":[0,36]}}";
    float numbers[24] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    jgf_color color;
    char error[PATH_MAX + 256] = "";
    assert_int_equal(read_color(square, numbers, 36, &color, error, sizeof error), 0);
    assert_true(color.matrix[0][2] == 3 && color.matrix[0][3] == 0 && color.matrix[1][0] == 4 && color.matrix[2][2] == 9);
    assert_int_equal(read_color("{\"a\":{\"dtype\":\"F32\",\"shape\":[12],\"data_offsets\":[48,96]},"
                                "\"matrix\":{\"dtype\":\"F32\",\"shape\":[3,4],\"data_offsets\":[0,48]}}", numbers, 96, &color, error,
                                sizeof error), 0);
    assert_true(color.matrix[0][3] == 4 && color.matrix[1][0] == 5 && color.matrix[2][3] == 12);
    assert_file_refused("{\"any\":{\"dtype\":\"F32\",\"shape\":[9],\"data_offsets\":[0,36]}}", numbers, 36,
                        "tensor \"any\" has shape [9]: a colour matrix has [3, 3] or [3, 4]");
    assert_file_refused("{\"any\":{\"dtype\":\"F32\",\"shape\":[2,3,4],\"data_offsets\":[0,96]}}", numbers, 96, "has shape [2, 3, 4]");
    assert_file_refused("{\"any\":{\"dtype\":\"F32\",\"shape\":[3,5],\"data_offsets\":[0,60]}}", numbers, 60, "has shape [3, 5]");
    assert_file_refused("{\"any\":{\"dtype\":\"I32\",\"shape\":[3,3],\"data_offsets\":[0,36]}}", numbers, 36,
                        "has no tensor \"matrix\"; it has \"any\"");
    assert_file_refused("{}", numbers, 0, "has no tensor \"matrix\"; it has none");
    numbers[7] = NAN;
    assert_file_refused(square, numbers, 36, "tensor \"any\": number 8 is not a number");
    numbers[7] = -INFINITY;
    assert_file_refused(square, numbers, 36, "tensor \"any\": number 8 is infinite");
    numbers[7] = 2e6f;
    assert_file_refused(square, numbers, 36, "tensor \"any\": number 8, 2e+06, is beyond");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bound_holds_and_is_met),
        cmocka_unit_test(test_small_integers_are_exact),
        cmocka_unit_test(test_no_scale_is_better),
        cmocka_unit_test(test_expands_for_groups_of_pixels),
        cmocka_unit_test(test_parses_texts),
        cmocka_unit_test(test_a_point_is_a_point_in_any_locale),
        cmocka_unit_test_setup_teardown(test_reads_files, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
