/* Parts of the element that need no stream: how a frame is divided into products, what is counted, which texts are three numbers. */
#include "gst_fixture.h"

#ifdef JG_HAVE_GST

#include "examples/gstreamer/color.h"
#include "examples/gstreamer/counts.h"
#include "examples/gstreamer/embed.h"
#include "examples/gstreamer/settings.h"

enum { MOST_BYTES = 8192 };

/* ---- colour ---- */

/* Writes down, for each byte of C of a product, which byte of A stands beside it in the pixel, and sees that neither leaves its plane. */
static void cover(const jg_problem *p, int64_t offset, const jgf_plane *in, const jgf_plane *out, int64_t *source)
{
    const int64_t batch = p->batch ? p->batch : 1;
    for (int64_t item = 0; item < batch; item++)
        for (int64_t i = 0; i < p->m; i++)
            for (int64_t j = 0; j < p->n; j++) {
                const int64_t a = offset + item * p->stride_a + i * p->lda + j, c = offset + item * p->stride_c + i * p->ldc + j;
                assert_in_range(a, 0, (int)jgf_plane_bytes(in) - 1);
                assert_in_range(c, 0, (int)jgf_plane_bytes(out) - 1);
                assert_int_equal(source[c], -1); /* no byte is computed twice */
                source[c] = a;
            }
}

static void check_division(int bytes, int width, int height, int in_padding, int out_padding)
{
    const jgf_plane in = {.stride = width * bytes + in_padding, .line_bytes = width * bytes, .lines = height};
    const jgf_plane out = {.stride = width * bytes + out_padding, .line_bytes = width * bytes, .lines = height};
    const jgf_color_products products = jgf_color_divide(&in, &out, bytes);
    int64_t source[MOST_BYTES];
    assert_in_range(jgf_plane_bytes(&out), 0, MOST_BYTES);
    for (int i = 0; i < MOST_BYTES; i++) source[i] = -1;
    for (int i = 0; i < products.count; i++) {
        const jg_problem *p = &products.problems[i];
        char text[JG_PROBLEM_TEXT_BYTES];
        assert_int_equal(jg_problem_format(p, text, sizeof text, NULL), JG_OK); /* the library takes it */
        assert_true(p->n == p->k && p->n % bytes == 0);
        assert_true(p->ldb == jgf_color_group(bytes) * bytes && p->n <= p->ldb); /* a corner of B */
        cover(p, products.offsets[i], &in, &out, source);
    }
    for (int y = 0; y < height; y++)
        for (int x = 0; x < out.stride; x++) {
            const int64_t expected = x < out.line_bytes ? y * in.stride + x : -1; /* what pads a line stays */
            if (y == height - 1 && x >= out.line_bytes) break;
            if (source[y * out.stride + x] != expected) fail_msg("%d bytes, %dx%d: byte %d of line %d", bytes, width, height, x, y);
        }
}

static void test_every_pixel_once(void **state)
{
    (void)state;
    for (int bytes = 3; bytes <= 4; bytes++)
        for (int width = 1; width <= 50; width++)
            for (int height = 1; height <= 4; height++)
                for (int padding = 0; padding < 4; padding++)
                    check_division(bytes, width, height, padding & 1 ? 8 - width * bytes % 8 : 0, padding & 2 ? 16 : 0);
    const jgf_plane none = {.stride = 16, .line_bytes = 12};
    assert_int_equal(jgf_color_divide(&none, &none, 3).count, 0);
}

/* ---- embedding ---- */

/* The first product writes each patch's values once and without gaps, from pixels of the plane; the second reads just these. */
static void check_patches(int patch, int bytes, int columns, int rows, int padding)
{
    const jgf_embed embed = {.type = JG_F16, .patch = patch, .channels = 5, .ld_weights = 8, .format = {bytes, 0, 1, 2}};
    const jgf_grid grid = {.rows = rows, .columns = columns};
    const int64_t row = (int64_t)columns * patch * bytes, stride = row + padding, values = 3 * patch * patch;
    const jgf_plane plane = {.stride = stride, .line_bytes = row, .lines = rows * patch};
    jg_problem p[2];
    char seen[MOST_BYTES] = {0};
    jgf_embed_products(&embed, grid, stride, p);
    assert_in_range(rows * columns * values, 1, MOST_BYTES);
    assert_int_equal(p[0].m * (p[0].batch ? p[0].batch : 1) * p[0].n, rows * columns * values);
    for (int64_t item = 0; item < columns; item++)
        for (int64_t i = 0; i < p[0].m; i++) {
            const int64_t a = item * p[0].stride_a + i * p[0].lda, last = a + p[0].k - 1;
            assert_in_range(a, 0, (int)jgf_plane_bytes(&plane) - 1);
            assert_in_range(last, 0, (int)jgf_plane_bytes(&plane) - 1);
            assert_int_equal(a, i * stride + item * patch * bytes); /* the pixels of patch column `item`, line i */
            for (int64_t j = 0; j < p[0].n; j++) {
                const int64_t c = item * p[0].stride_c + i * (p[0].ldc ? p[0].ldc : p[0].n) + j;
                assert_in_range(c, 0, (int)(rows * columns * values) - 1);
                assert_int_equal(seen[c]++, 0);
                /* Token and place in it, as the second product takes them. */
                assert_int_equal(c / values, item * rows + i / patch);
                assert_int_equal(c % values, i % patch * p[0].n + j);
            }
        }
    assert_true(p[1].m == rows * columns && p[1].k == values && p[1].n == 5 && p[1].ldb == 8 && (!p[1].lda || p[1].lda == values));
    assert_int_equal(jgf_embed_bytes(&embed, grid), rows * columns * 5 * 2);
}

static void test_every_patch_once(void **state)
{
    (void)state;
    for (int patch = 1; patch <= 5; patch++)
        for (int bytes = 3; bytes <= 4; bytes++)
            for (int columns = 1; columns <= 4; columns++)
                for (int rows = 1; rows <= 3; rows++)
                    for (int padding = 0; padding <= 7; padding += 7) check_patches(patch, bytes, columns, rows, padding);
    const jgf_embed embed = {.patch = 16};
    assert_true(jgf_embed_grid(&embed, 224, 224).rows == 14 && jgf_embed_grid(&embed, 224, 224).columns == 14);
    assert_true(jgf_embed_grid(&embed, 47, 15).rows == 0 && jgf_embed_grid(&embed, 47, 15).columns == 2);
}

/* ---- counts and texts ---- */

static void test_counts(void **state)
{
    (void)state;
    jgf_counts counts;
    jgf_counts_reset(&counts);
    assert_int_equal(counts.latency_ms, 1);
    assert_false(jgf_counts_frame(&counts, 1000, TRUE)); /* 1 ms is what it says from the start */
    assert_true(jgf_counts_frame(&counts, 1001, FALSE));
    assert_int_equal(counts.latency_ms, 2);
    assert_false(jgf_counts_frame(&counts, 2000, FALSE));
    assert_true(jgf_counts_frame(&counts, 16700, FALSE));
    assert_false(jgf_counts_frame(&counts, 9, TRUE));
    assert_int_equal(counts.latency_ms, 17);
    assert_int_equal(counts.frames, 5);
    assert_int_equal(counts.first_sight_max_us, 1000);
    assert_int_equal(counts.max_us, 16700);
    assert_int_equal(counts.last_us, 9);
    assert_int_equal(counts.total_us, 20710);
}

static void test_three_numbers(void **state)
{
    (void)state;
    static const char *const good[] = {"1 2 3", "1,2,3", " 1.0, 2e0\n3 ", "+1 2 0x3"};
    static const char *const bad[] = {"", " ", "1 2", "1 2 3 4", "1 2 x", "1 2 3x", "1 2 nan", "inf 1 2", "1 2 1e999", ",1 2 3"};
    double values[3];
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        if (!jgf_parse_triple(good[i], values)) fail_msg("\"%s\" is refused", good[i]);
        assert_true(values[0] == 1 && values[1] == 2 && values[2] == 3);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (jgf_parse_triple(bad[i], values)) fail_msg("\"%s\" is taken", bad[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_pixel_once),
        cmocka_unit_test(test_every_patch_once),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_three_numbers),
    };
    return cmocka_run_group_tests(tests, gst_fixture_begin, gst_fixture_end);
}

#endif
GST_FIXTURE_MAIN
