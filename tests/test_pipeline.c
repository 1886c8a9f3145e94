/* The video pipeline, from outside: the built example on the software GPU with small frames, as a reader would run it. Its own
 * --check compares results with double precision; what is looked at here is what it reports of them, and of itself.
 *
 * Runs share a cache file in which the first has put the generic kernels; no two tests use the same sizes, so each is unseen. */
#include "scratch.h"

#include <cjson/cJSON.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[PATH_MAX];
static char *out, *err;         /* what the last run wrote */
static cJSON *root;             /* its JSON, in report.json; null: none */
static int has_compiler, has_gstreamer;

#define SWGPU "JITGEMM_DRIVER=swgpu JITGEMM_SWGPU_DEVICE=orin-agx "
#define CPU "JITGEMM_DRIVER=cpu "

/* ---- running ---- */

static pid_t start(const char *line)
{
    fflush(NULL);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid > 0) return pid;
    setenv("JITGEMM_FACTORY", "", 1);
    setenv("JITGEMM_CACHE", scratch_path(folder, "kernels.db"), 1);
    if (chdir(folder) != 0 || !freopen("out", "w", stdout) || !freopen("err", "w", stderr)) _exit(126);
    execl("/bin/sh", "sh", "-c", line, (char *)NULL);
    _exit(127);
}

static void read_results(void)
{
    size_t bytes;
    free(out);
    free(err);
    out = (char *)scratch_read(scratch_path(folder, "out"), &bytes);
    err = (char *)scratch_read(scratch_path(folder, "err"), &bytes);
    char *json = (char *)scratch_read(scratch_path(folder, "report.json"), &bytes);
    cJSON_Delete(root);
    root = json ? cJSON_Parse(json) : NULL;
    free(json);
    unlink(scratch_path(folder, "report.json"));
    assert_true(out && err);
}

static int finish(pid_t pid)
{
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    read_results();
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

/* Variables, then the program's arguments. */
static int run(const char *variables, const char *arguments)
{
    char line[2048];
    snprintf(line, sizeof line, "%s \"$V\" %s", variables, arguments);
    return finish(start(line));
}

#define assert_run(expected, variables, arguments)                                                         \
    do {                                                                                                   \
        const int run_status = run(variables, arguments);                                                  \
        if (run_status != (expected)) fail_msg("status %d, not %d\n%s%s", run_status, expected, out, err); \
    } while (0)

static void need_compiler(void)
{
    if (has_compiler) return;
    print_message("SKIP no NVRTC: %s", err ? err : "");
    skip();
}

/* ---- reading ---- */

static void assert_has(const char *text, const char *part)
{
    if (!strstr(text, part)) fail_msg("\"%s\" is not in:\n%s", part, text);
}

/* The run of a policy. */
static const cJSON *run_of(const char *policy)
{
    const cJSON *run;
    if (!root) fail_msg("no JSON\n%s%s", out, err);
    cJSON_ArrayForEach(run, cJSON_GetObjectItem(root, "runs"))
        if (strcmp(cJSON_GetStringValue(cJSON_GetObjectItem(run, "policy")), policy) == 0) return run;
    fail_msg("no run with %s", policy);
    return NULL;
}

static double number(const cJSON *object, const char *name)
{
    const cJSON *item = cJSON_GetObjectItem(object, name);
    if (!cJSON_IsNumber(item)) fail_msg("no number %s in %s", name, cJSON_PrintUnformatted(object));
    return item->valuedouble;
}

static const cJSON *size_of(const cJSON *run, int index)
{
    return cJSON_GetArrayItem(cJSON_GetObjectItem(run, "sizes"), index);
}

/* Every result that was checked is right, and some were. */
static void assert_right(const cJSON *run)
{
    assert_true(number(run, "checked") > 1000);
    assert_true(number(run, "worst") > 0.1); /* halves of a unit of f16 are what is allowed, so some are nearly lost */
    assert_true(number(run, "worst") <= 1);
    assert_true(number(run, "differing") == 0);
}

static int lines_of(const char *name)
{
    size_t bytes;
    int lines = 0;
    char *text = (char *)scratch_read(scratch_path(folder, name), &bytes);
    assert_non_null(text);
    for (const char *at = text; *at; at++) lines += *at == '\n';
    free(text);
    return lines;
}

/* ---- policies ---- */

/* Each of three sizes is unseen, runs at once, and gets its own kernels, with the same bits; no call waits. Each frame takes 150 ms,
 * so that a compiler has time enough for the 8 of a size. */
static void background_never_waits(void **state)
{
    (void)state;
    need_compiler();
    assert_run(0, SWGPU "JITGEMM_SWGPU_SLOW=cuStreamSynchronize:150",
               "--pattern 64x64 --sizes 48x48,32x64,64x34 --every 8f --no-pace --fresh --check --quiet --json=report.json --csv frames.csv "
               "--plot plot.svg --cache-dir .");
    const cJSON *background = run_of("background");
    assert_true(number(background, "waits") == 0);
    assert_true(number(background, "frames") == 24);
    assert_true(number(background, "dropped") == 0);
    assert_true(number(background, "swaps") > 0);
    assert_true(number(background, "compiles") > 0);
    assert_true(number(background, "graphs") >= 6); /* one a stream and size at least */
    assert_true(number(background, "compared") >= 1);
    assert_right(background);
    for (int i = 0; i < 3; i++) assert_true(number(size_of(background, i), "frames") == 8);
    assert_true(number(size_of(background, 2), "tokens") == 4 * 2);
    assert_int_equal(lines_of("frames.csv"), 25);
    assert_has(out, "AGX Orin (software GPU), pattern 64x64, 60 frames a second");
    assert_has(out, "calls that waited 0");
    assert_true(scratch_exists(scratch_path(folder, "plot.svg")));
    assert_int_equal(system("ls -d \"$PIPELINE_FOLDER\"/jitgemm-pipeline-* >/dev/null 2>&1") == 0, 0); /* --fresh left nothing */
}

/* The same with WAIT: each size's five kernels are made in the calls of its first frame. */
static void wait_compiles_in_the_frame(void **state)
{
    (void)state;
    need_compiler();
    assert_run(0, SWGPU, "--pattern 64x64 --sizes 48x32,32x64,48x32 --every 4f --no-pace --policy wait --fresh --check --quiet "
                         "--json=report.json");
    const cJSON *wait = run_of("wait");
    assert_true(number(wait, "waits") == 10);
    assert_true(number(wait, "compiles") == 10);
    assert_true(number(wait, "swaps") == 0);
    assert_true(number(wait, "frames") == 12);
    assert_true(number(wait, "graphs") == 6);
    assert_right(wait);
    for (int i = 0; i < 2; i++) {
        assert_true(number(size_of(wait, i), "own") == 5);
        assert_true(number(size_of(wait, i), "own_after_ms") == 0);
        assert_true(number(size_of(wait, i), "frames_on_generic") == 0);
    }
    assert_true(number(size_of(wait, 0), "first_ms") > number(size_of(wait, 0), "p50_ms"));
}

/* Sealed: nothing is compiled, whatever size comes. */
static void never_stays_on_generic_kernels(void **state)
{
    (void)state;
    need_compiler();
    assert_run(0, SWGPU, "--pattern 96x64 --sizes 32x32,96x16 --every 4f --no-pace --policy never --check --quiet --json=report.json");
    const cJSON *never = run_of("never");
    assert_true(number(never, "waits") == 0);
    assert_true(number(never, "compiles") == 0);
    assert_true(number(never, "frames_on_generic") == 8);
    assert_right(never);
}

/* A second run knows the sizes of the first: their kernels are loaded before its first frame. */
static void a_second_run_knows_the_sizes(void **state)
{
    (void)state;
    need_compiler();
    static const char line[] = "--pattern 96x64 --sizes 80x32 --every 8f --no-pace --quiet --check --json=report.json";
    assert_run(0, SWGPU "JITGEMM_SWGPU_SLOW=cuStreamSynchronize:150", line);
    assert_true(number(run_of("background"), "swaps") > 0);
    assert_run(0, SWGPU, line);
    assert_true(number(size_of(run_of("background"), 0), "own") > 0);
    assert_true(number(size_of(run_of("background"), 0), "own_after_ms") == 0);
    assert_right(run_of("background"));
}

/* Without graphs: a capture that fails leaves plain calls, with the same results. */
static void a_failed_capture_is_no_failure(void **state)
{
    (void)state;
    need_compiler();
    assert_run(0, SWGPU "JITGEMM_SWGPU_FAULT=cuGraphInstantiateWithFlags:1:CUDA_ERROR_OUT_OF_MEMORY",
               "--pattern 96x64 --sizes 32x16 --every 4f --no-pace --quiet --check --json=report.json");
    assert_has(err, "no graphs: the capture failed; plain calls go on");
    assert_true(number(run_of("background"), "graphs") == 0);
    assert_true(number(run_of("background"), "frames") == 4);
    assert_right(run_of("background"));
}

/* ---- late frames ---- */

/* A GPU that needs 90 ms for a frame of 33: a frame that is waiting when the next one comes is dropped, and told of. */
static void late_frames_are_dropped(void **state)
{
    (void)state;
    need_compiler();
    assert_run(0, SWGPU "JITGEMM_SWGPU_SLOW=cuStreamSynchronize:90",
               "--pattern 96x64 --sizes 16x32 --frames 30 --fps 30 --quiet --json=report.json --csv frames.csv");
    const cJSON *background = run_of("background");
    const double dropped = number(background, "dropped"), frames = number(background, "frames");
    assert_true(dropped + frames == 30);
    assert_true(frames <= 15 && frames >= 1); /* a second is 11 times 90 ms */
    assert_true(number(background, "over_budget") == frames);
    assert_int_equal(lines_of("frames.csv"), 31);
}

/* As fast as possible no frame is late, and both streams are used. */
static void without_pace_nothing_is_dropped(void **state)
{
    (void)state;
    assert_run(0, CPU, "--pattern 64x48 --sizes 64x48,32x32 --every 3f --frames 20 --no-pace --quiet --check --json=report.json");
    const cJSON *background = run_of("background");
    assert_true(number(background, "dropped") == 0);
    assert_true(number(background, "frames") == 20);
    assert_true(number(size_of(background, 0), "frames") == 11);
    assert_true(number(size_of(background, 1), "frames") == 9);
    assert_has(out, "not paced");
    assert_right(background);
}

/* ---- cuBLAS ---- */

static void cublas_computes_the_layers(void **state)
{
    (void)state;
    assert_run(0, CPU, "--pattern 64x48 --sizes 64x48,48x32 --every 3f --no-pace --policy all --check --quiet --json=report.json "
                       "--cublas \"$JG_BUILD/tests/libfake_cublas.so\"");
    assert_right(run_of("background"));
    assert_right(run_of("wait"));
    assert_right(run_of("cublas"));
    assert_true(number(run_of("cublas"), "frames") == 6);
}

static void missing_cublas_is_skipped(void **state)
{
    (void)state;
    assert_run(0, CPU, "--pattern 64x48 --every 3f --no-pace --peer cublas --quiet --json=report.json --cublas ./none.so");
    assert_has(err, "SKIP cublas: ./none.so");
    assert_non_null(cJSON_GetObjectItem(run_of("cublas"), "skip"));
    assert_true(number(run_of("background"), "frames") > 0);
}

/* ---- clips ---- */

/* A clip that GStreamer has written. */
static void a_clip_of_gstreamer(void **state)
{
    (void)state;
    if (!has_gstreamer) {
        print_message("SKIP no gst-launch-1.0 with y4menc\n");
        skip();
    }
    assert_run(0, CPU, "--every 5f --no-pace --check --quiet --json=report.json clip.y4m");
    assert_true(number(root, "width") == 64 && number(root, "height") == 48 && number(root, "fps") == 30);
    assert_right(run_of("background"));
    assert_run(0, CPU, "--no-loop --frames 99 --no-pace --quiet --json=report.json - <clip.y4m");
    assert_true(number(run_of("background"), "frames") == 5);
}

/* What `make pipeline` runs on a GPU writes four files, and its exit status agrees with them. */
static void the_script_judges(void **state)
{
    (void)state;
    size_t bytes;
    if (!has_gstreamer) {
        print_message("SKIP no gst-launch-1.0 with y4menc\n");
        skip();
    }
    const int status = finish(start(CPU "BUILD=\"$JG_BUILD\" OUT=reports QUICK=1 CLIP=clip.y4m sh \"$JG_SCRIPT\""));
    char *json = (char *)scratch_read(scratch_path(folder, "reports/pipeline.json"), &bytes);
    if (!json) fail_msg("status %d\n%s%s", status, out, err);
    root = cJSON_Parse(json);
    free(json);
    const int late = number(run_of("background"), "dropped") > 0 || number(run_of("background"), "over_budget") > 0;
    assert_int_equal(status, late);
    assert_has(out, late ? "background: frames dropped and over their budget: " : "background: no frame dropped, none over its budget");
    assert_has(out, "SKIP cublas: there is no GPU");
    assert_int_equal(lines_of("reports/pipeline.csv"), 1 + 2 * 2 * 30);
    assert_true(scratch_exists(scratch_path(folder, "reports/pipeline.svg")));
    assert_true(scratch_exists(scratch_path(folder, "reports/pipeline.txt")));
}

/* ---- ends ---- */

/* Ctrl-C: the table of what was run, reports, no folder left. */
static void interrupted_runs_end_cleanly(void **state)
{
    (void)state;
    const struct timespec pause = {.tv_nsec = 20000000};
    size_t bytes;
    int has_begun = 0;
    const pid_t pid = start(CPU "exec \"$V\" --pattern 64x48 --fps 50 --frames 100000 --fresh --cache-dir . --json=report.json");
    for (int i = 0; i < 500 && !has_begun; i++) {
        nanosleep(&pause, NULL);
        char *said = (char *)scratch_read(scratch_path(folder, "err"), &bytes);
        has_begun = said && strstr(said, "background: 64x48") != NULL;
        free(said);
    }
    for (int i = 0; i < 10; i++) nanosleep(&pause, NULL); /* some frames */
    assert_int_equal(kill(pid, SIGINT), 0);
    const int status = finish(pid);
    if (status != 0) fail_msg("status %d\n%s%s", status, out, err);
    assert_true(has_begun);
    assert_has(out, "policy background\n");
    assert_has(out, " frames: p50 ");
    const double frames = number(run_of("background"), "frames");
    assert_true(frames >= 1 && frames < 10000);
    assert_int_equal(system("ls -d \"$PIPELINE_FOLDER\"/jitgemm-pipeline-* >/dev/null 2>&1") == 0, 0);
}

static void wrong_command_lines(void **state)
{
    (void)state;
    static const struct { const char *arguments, *error; int status; } rows[] = {
        {"--sizes 64", "--sizes \"64\": a list of WxH", 2},
        {"--sizes 64x48,", "--sizes \"64x48,\": a list of WxH", 2},
        {"--sizes 63x48", "both even numbers", 2},
        {"--sizes 8x48", "both even numbers from 16", 2},
        {"--raw 64x48", "--raw \"\": needs a CLIP", 2},
        {"--raw 0x48 clip", "a size is WxH", 2},
        {"--pattern 64x48x1", "a size is WxH", 2},
        {"--pattern 64x48 clip.y4m", "either a pattern or a CLIP", 2},
        {"--every 0", "--every \"0\": seconds, or a number of frames", 2},
        {"--every 1.5f", "seconds, or a number of frames", 2},
        {"--every x", "seconds, or a number of frames", 2},
        {"--frames 0", "--frames \"0\": a whole number above 0", 2},
        {"--frames 1x", "a whole number above 0", 2},
        {"--fps 0", "--fps \"0\": frames a second", 2},
        {"--fps 30:0", "frames a second", 2},
        {"--policy fast", "--policy \"fast\": background, wait, never or all", 2},
        {"--peer mkl", "cublas is the only one", 2},
        {"--sms 0", "--sms \"0\": a whole number above 0", 2},
        {"--pattern 64x48 --sms 4", "--sms 4: there is no GPU", 1},
        {"--cache-dir .", "goes with --fresh", 2},
        {"a b", "one clip at a time", 2},
        {"--nonsense", "Try 20_video_pipeline --help", 2},
        {"--pattern 64x48 --sizes 64x64", "--sizes: 64x64 is larger than the clip's 64x48", 1},
        {"none.y4m", "none.y4m: no such file", 1},
        {"out", "out: not a Y4M file", 1},
        {"--pattern 64x48 --fresh --cache-dir ./none", "cannot make a folder in ./none", 1},
        {"--pattern 64x48 --frames 1 --csv ./none/a.csv", "./none/a.csv: cannot be written", 1},
        {"--pattern 64x48 --frames 1 --plot /dev/full", "/dev/full: it was not written whole", 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const int status = run(CPU, rows[i].arguments);
        if (status != rows[i].status || !strstr(err, rows[i].error))
            fail_msg("%s: status %d, not %d\n%s%s", rows[i].arguments, status, rows[i].status, out, err);
    }
    /* Before any frame is run. */
    assert_int_equal(run(CPU, "--pattern 64x48 --frames 1 --json=./none/a.json"), 1);
    assert_string_equal(out, "");
    assert_run(0, CPU, "--help");
    assert_has(out, "Usage: 20_video_pipeline");
}

/* ---- setup ---- */

static int make_folder(void **state)
{
    (void)state;
    char build[PATH_MAX], script[PATH_MAX], program[PATH_MAX + 64];
    const char *given = getenv("JG_TEST_BUILD_DIR");
    if (!realpath(given && *given ? given : "build", build) || !realpath("tests/pipeline.sh", script)) return -1;
    snprintf(program, sizeof program, "%s/examples/20_video_pipeline", build);
    setenv("V", program, 1);
    setenv("JG_BUILD", build, 1);
    setenv("JG_SCRIPT", script, 1);
    scratch_make(folder);
    setenv("PIPELINE_FOLDER", folder, 1);
    has_gstreamer = finish(start("gst-launch-1.0 -q videotestsrc num-buffers=5 ! "
                                 "video/x-raw,format=I420,width=64,height=48,framerate=30/1 ! y4menc ! filesink location=clip.y4m")) == 0;
    has_compiler = run(SWGPU, "--pattern 16x16 --frames 1 --no-pace --quiet") == 0;
    if (!has_compiler && !strstr(err, "NVRTC")) return -1;
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    cJSON_Delete(root);
    free(out);
    free(err);
    scratch_remove(folder);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(background_never_waits),
        cmocka_unit_test(wait_compiles_in_the_frame),
        cmocka_unit_test(never_stays_on_generic_kernels),
        cmocka_unit_test(a_second_run_knows_the_sizes),
        cmocka_unit_test(a_failed_capture_is_no_failure),
        cmocka_unit_test(late_frames_are_dropped),
        cmocka_unit_test(without_pace_nothing_is_dropped),
        cmocka_unit_test(cublas_computes_the_layers),
        cmocka_unit_test(missing_cublas_is_skipped),
        cmocka_unit_test(a_clip_of_gstreamer),
        cmocka_unit_test(the_script_judges),
        cmocka_unit_test(interrupted_runs_end_cleanly),
        cmocka_unit_test(wrong_command_lines),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
