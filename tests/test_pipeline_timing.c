/* Parts of the video pipeline by themselves: percentiles and counts of frames, and the three reports of them, from records that are
 * written here. */
#include "examples/pipeline/args.h"
#include "examples/pipeline/plot.h"
#include "examples/pipeline/report.h"
#include "examples/pipeline/timing.h"
#include "scratch.h"
#include "xml_check.h"

#include <cjson/cJSON.h>
#include <getopt.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static char folder[4096];

/* 100 frames a second. Of the first size: one frame on generic kernels alone, one with 2 of 5, two with 4; of the second: one,
 * after one that was dropped, on generic ones; then the first again. */
static frame_record frames[] = {
    {.number = 0, .size = 0, .is_first = 1, .time_ms = 9, .calls_us = 50, .poll_ms = 0.5, .swapped = 2},
    {.number = 1, .size = 0, .arrival_ms = 10, .wall_ms = 10, .time_ms = 4, .own = 2, .poll_ms = 2},
    {.number = 2, .size = 0, .arrival_ms = 20, .wall_ms = 25, .time_ms = 3, .own = 4, .is_graph = 1},
    {.number = 3, .size = 0, .arrival_ms = 30, .wall_ms = 35, .time_ms = 2, .own = 4, .is_graph = 1},
    {.number = 4, .size = 1, .arrival_ms = 40, .is_dropped = 1},
    {.number = 5, .size = 1, .arrival_ms = 50, .is_first = 1, .time_ms = 10.5},
    {.number = 6, .size = 0, .arrival_ms = 60, .wall_ms = 65, .time_ms = 1, .own = 4},
};
enum { COUNT = sizeof frames / sizeof *frames };

static run_record make_run(const char *policy)
{
    run_record r = {.policy = policy, .size_count = 3, .products = PRODUCTS, .budget_ms = 10, .frames = frames, .count = COUNT,
                    .room = COUNT, .waits = 7, .graphs = 3};
    r.sizes[0] = grid_of(64, 48);
    r.sizes[1] = grid_of(47, 33);
    r.sizes[2] = grid_of(16, 16);
    return r;
}

static void grids(void **state)
{
    (void)state;
    const grid g = grid_of(1920, 1080);
    assert_int_equal(g.cols, 120);
    assert_int_equal(g.rows, 67);
    assert_int_equal(g.tokens, 8040);
    assert_int_equal(g.frame_bytes, 1920 * 1072 * 3 / 2);
    assert_int_equal(g.result_bytes, 8040 * 64 * 2);
}

static void nearest_ranks(void **state)
{
    (void)state;
    double values[200];
    for (int count = 1; count <= 200; count++) {
        for (int i = 0; i < count; i++) values[i] = (i * 7919) % count; /* a prime: each of 0 ... count - 1 once */
        assert_true(percentile(values, count, 100) == count - 1);
        assert_true(percentile(values, count, 0) == 0);
        assert_true(percentile(values, count, 50) == (count - 1) / 2);
        assert_true(percentile(values, count, 99) == (99 * count + 99) / 100 - 1);
    }
    assert_true(isnan(percentile(values, 0, 50)));
}

static void summaries(void **state)
{
    (void)state;
    const run_record r = make_run("background");
    const run_summary first = run_summarise(&r, 0), second = run_summarise(&r, 1), none = run_summarise(&r, 2),
                      all = run_summarise(&r, -1);
    assert_int_equal(first.frames, 5);
    assert_int_equal(first.dropped, 0);
    assert_int_equal(first.over_budget, 0);
    assert_int_equal(first.own, 4);
    assert_int_equal(first.generic, 2);
    assert_true(first.own_after_ms == 25 && first.first_ms == 9 && first.first_calls_us == 50);
    assert_true(first.p50_ms == 3 && first.p99_ms == 9 && first.max_ms == 9 && first.poll_max_ms == 2);
    assert_int_equal(second.frames, 1);
    assert_int_equal(second.dropped, 1);
    assert_int_equal(second.over_budget, 1);
    assert_int_equal(second.generic, 1);
    assert_true(second.first_ms == 10.5);
    assert_int_equal(none.frames, 0);
    assert_true(isnan(none.p50_ms) && isnan(none.max_ms));
    assert_int_equal(all.frames, 6);
    assert_int_equal(all.dropped, 1);
    assert_int_equal(all.over_budget, 1);
    assert_int_equal(all.generic, 3);
    assert_true(all.max_ms == 10.5 && all.p50_ms == 3);
}

/* ---- reports ---- */

static char *written(void (*write)(FILE *, const run_record *, int), const run_record *runs, int count)
{
    const char *path = scratch_path(folder, "report");
    size_t bytes;
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    write(file, runs, count);
    assert_int_equal(fclose(file), 0);
    return (char *)scratch_read(path, &bytes);
}

static void write_json(FILE *out, const run_record *runs, int count)
{
    const run_setting setting = {.input = "a \"clip\"\\\n.y4m", .device = "cpu", .fps = 100, .is_paced = 1, .width = 64, .height = 48};
    runs_write_json(out, &setting, runs, count);
}

static void write_plot(FILE *out, const run_record *runs, int count)
{
    const run_setting setting = {.input = "clip", .device = "<a & b>", .fps = 100, .is_paced = 1, .width = 64, .height = 48};
    plot_write(out, &setting, runs, count);
}

static void csv_has_a_line_a_frame(void **state)
{
    (void)state;
    const run_record runs[] = {make_run("background"), make_run("wait")};
    char *text = written(runs_write_csv, runs, 2);
    int lines = 0, fields = 0;
    for (const char *at = text; *at; at++) {
        fields += *at == ',';
        if (*at != '\n') continue;
        assert_int_equal(fields, 14);
        fields = 0;
        lines++;
    }
    assert_int_equal(lines, 1 + 2 * COUNT);
    assert_non_null(strstr(text, "\nbackground,5,47,33,4,50.000,10.5000,0,1,1,0,0,0.0,0.0000,0\n"));
    assert_non_null(strstr(text, "\nwait,4,47,33,4,40.000,0.0000,1,0,0,0,0,0.0,0.0000,0\n"));
    free(text);
}

static void json_has_the_numbers(void **state)
{
    (void)state;
    run_record runs[] = {make_run("background"), make_run("cublas")};
    strcpy(runs[1].skip, "no \"library\"");
    char *text = written(write_json, runs, 2);
    cJSON *root = cJSON_Parse(text);
    if (!root) fail_msg("no JSON:\n%s", text);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(root, "input")), "a \"clip\"\\\n.y4m");
    const cJSON *run = cJSON_GetArrayItem(cJSON_GetObjectItem(root, "runs"), 0);
    const struct { const char *name; double value; } rows[] = {{"frames", 6}, {"dropped", 1}, {"over_budget", 1}, {"p50_ms", 3},
                                                               {"p99_ms", 10.5}, {"max_ms", 10.5}, {"waits", 7}, {"graphs", 3}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (cJSON_GetNumberValue(cJSON_GetObjectItem(run, rows[i].name)) != rows[i].value) fail_msg("%s:\n%s", rows[i].name, text);
    const cJSON *sizes = cJSON_GetObjectItem(run, "sizes");
    assert_int_equal(cJSON_GetArraySize(sizes), 3);
    assert_true(cJSON_GetNumberValue(cJSON_GetObjectItem(cJSON_GetArrayItem(sizes, 0), "own_after_ms")) == 25);
    assert_true(cJSON_IsNull(cJSON_GetObjectItem(cJSON_GetArrayItem(sizes, 2), "p50_ms")));
    const cJSON *skipped = cJSON_GetArrayItem(cJSON_GetObjectItem(root, "runs"), 1);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(skipped, "skip")), "no \"library\"");
    cJSON_Delete(root);
    free(text);
}

static int count_of(const char *text, const char *part)
{
    int count = 0;
    for (; (text = strstr(text, part)); text++) count++;
    return count;
}

/* Two changes of size a run, of which only the first one's are drawn; two first frames; one dropped frame, which cuts the line. */
static void plot_is_well_formed(void **state)
{
    (void)state;
    const run_record runs[] = {make_run("background"), make_run("wait")};
    char *text = written(write_plot, runs, 2);
    const char *wrong = xml_check(text);
    if (wrong) fail_msg("%s:\n%s", wrong, text);
    assert_int_equal(count_of(text, "class=\"change\""), 2);
    assert_int_equal(count_of(text, "<circle"), 2 * 2);
    assert_int_equal(count_of(text, "<polyline class=\"series s0\""), 2);
    assert_int_equal(count_of(text, "<polyline class=\"series s1\""), 2);
    assert_int_equal(count_of(text, "budget 10.0 ms"), 1);
    assert_non_null(strstr(text, "&lt;a &amp; b>, 64x48 at 100 frames a second"));
    assert_non_null(strstr(text, ">background: p50 3, p99 10.5, max 10.5 ms; 1 dropped (bars at the top)<"));
    free(text);
}

/* What was interrupted before its first frame has nothing to draw, and is a picture all the same. */
static void plot_of_nothing(void **state)
{
    (void)state;
    run_record run = make_run("background");
    run.count = 0;
    for (int count = 0; count < 2; count++) {
        char *text = written(write_plot, &run, count);
        const char *wrong = xml_check(text);
        if (wrong) fail_msg("%s:\n%s", wrong, text);
        free(text);
    }
}

/* ---- the command line ---- */

static int read_line(arguments *a, const char *line)
{
    static char text[512];
    char *words[16] = {(char[]){"pipeline"}};
    int count = 1;
    snprintf(text, sizeof text, "%s", line);
    for (char *word = strtok(text, " "); word; word = strtok(NULL, " ")) words[count++] = word;
    optind = 0; /* begins anew */
    return arguments_read(a, count, words);
}

static void command_lines(void **state)
{
    (void)state;
    arguments a;
    assert_int_equal(read_line(&a, ""), -1);
    assert_true(!a.input && a.pattern_width == 1920 && a.is_paced && a.loops && a.policies == POLICY_BACKGROUND);
    assert_int_equal(read_line(&a, "--sizes 64x48,32x16 --every 30f --fps 59.94 --policy all --no-pace --json clip.y4m"), -1);
    assert_true(a.size_count == 2 && a.sizes[1].width == 32 && a.sizes[1].height == 16 && a.every_frames == 30);
    assert_true(a.rate_n == 59940 && a.rate_d == 1000 && !a.is_paced && strcmp(a.json, "-") == 0 && strcmp(a.input, "clip.y4m") == 0);
    assert_int_equal(a.policies, POLICY_BACKGROUND | POLICY_WAIT | POLICY_CUBLAS);
    assert_int_equal(read_line(&a, "--peer cublas --policy never --fps 30000:1001 --every 0.5 --raw 64x48 -"), -1);
    assert_true(a.policies == (POLICY_NEVER | POLICY_CUBLAS) && a.rate_n == 30000 && a.rate_d == 1001 && a.every_frames == 0);
    assert_true(a.every_seconds == 0.5 && a.raw_height == 48 && strcmp(a.input, "-") == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grids),
        cmocka_unit_test(nearest_ranks),
        cmocka_unit_test(summaries),
        cmocka_unit_test(csv_has_a_line_a_frame),
        cmocka_unit_test(json_has_the_numbers),
        cmocka_unit_test(plot_is_well_formed),
        cmocka_unit_test(plot_of_nothing),
        cmocka_unit_test(command_lines),
    };
    scratch_make(folder);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    scratch_remove(folder);
    return failed;
}
