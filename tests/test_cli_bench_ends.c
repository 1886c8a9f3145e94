/* How runs of jitgemm-bench with suites end, from outside: a reader that goes away, a full disk, signals in; what was finished,
 * the exit status, and no temporary folder out. */
#include "cli_bench_fixture.h"

/* Many rows and few kernels, so that a run is soon among its rows and stays there for a while. */
static void write_sizes(void)
{
    static char text[TEXT_MAX];
    size_t length = 0;
    for (int n = 1; n <= 2000; n++) length += (size_t)snprintf(text + length, sizeof text - length, "256x%dx256:f16:generic\n", n);
    write_file("many.txt", text);
}

static void assert_no_scratch(void)
{
    assert_run(0, "ls -A tmp");
    assert_string_equal(out, "");
}

static void output_is_lost(void **state)
{
    (void)state;
    need_nvrtc();
    write_sizes();
    static const struct { const char *line, *message; } rows[] = {
        {"\"$B\" --driver swgpu --list many.txt >/dev/full", "jitgemm-bench: standard output: No space left on device\n"},
        {"\"$B\" --driver swgpu --list many.txt >&-", "jitgemm-bench: standard output: Bad file descriptor\n"},
        {"\"$B\" --driver swgpu --list many.txt large --csv first-call >&-", "jitgemm-bench: standard output: Bad file descriptor\n"},
        {"\"$B\" --driver swgpu --size 16 --json >/dev/full", "jitgemm-bench: standard output: No space left on device\n"},
        {"{ \"$B\" --driver swgpu --list many.txt; echo $? >ended; } | head -1 >first; exit $(cat ended)",
         "jitgemm-bench: standard output: Broken pipe\n"},
        {"{ \"$B\" --driver swgpu --size 16 --json; echo $? >ended; } | true; exit $(cat ended)",
         "jitgemm-bench: standard output: Broken pipe\n"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_run(1, "mkdir -p tmp; export TMPDIR=$PWD/tmp; %s", rows[i].line);
        assert_string_equal(err, rows[i].message);
        assert_no_scratch();
    }
    assert_run(0, "cat first"); /* the pipe's reader got what it wanted */
    assert_string_equal(out, "jitgemm " JG_VERSION_STRING ", many.txt\n");
}

/* Sends a signal `ms` after the report has begun; with JSON, which comes at the end, after the kernels are there. */
static void interrupt_rows(const char *format, int number, long ms)
{
    char line[256];
    snprintf(line, sizeof line, "mkdir -p tmp; TMPDIR=$PWD/tmp exec \"$B\" --driver swgpu --list many.txt %s", format);
    pid_t pid = start(line);
    for (int i = 0; i < 3000 && *format && !strstr(format, "json") && !strstr(out, "\nlist,many.txt,"); i++) {
        pause_ms(10);
        read_text("out", out);
    }
    pause_ms(ms);
    kill(pid, number);
    const int status = finish(pid);
    if (status != 130) fail_msg("%s: status %d, not 130: %s", format, status, err);
    assert_string_equal(err, "jitgemm-bench: interrupted; the results are of what was finished\n");
}

static void interrupted_among_rows(void **state)
{
    (void)state;
    need_nvrtc();
    write_sizes();
    interrupt_rows("--csv", SIGINT, 50);
    assert_has(out, "\nlist,many.txt,256x1x256:f16:generic,256,1,256,1,f16,resident,jg_sm87_");
    assert_has(out, "\nnote,,,,,,,,,,,Interrupted: the results are of what was finished.,,\n");
    assert_has_not(out, "256x2000x256");
    assert_int_equal(out[strlen(out) - 1], '\n');
    assert_no_scratch();
    /* Kernels are compiled first, which takes as long as it takes: later if there was no row yet. */
    for (long ms = 1000; ms < 60000; ms *= 2) {
        interrupt_rows("--json", SIGTERM, ms);
        cJSON_Delete(root);
        root = cJSON_Parse(out);
        if (cJSON_GetArraySize(get(root, "rows")) > 0) break;
    }
    assert_non_null(root);
    assert_true(cJSON_IsTrue(get(root, "interrupted")));
    const int rows = cJSON_GetArraySize(get(root, "rows"));
    assert_in_range(rows, 1, 1999);
    const cJSON *last = cJSON_GetArrayItem(get(root, "rows"), rows - 1);
    assert_true(get_number(last, "n") == rows);
    assert_true(get_number(get(last, "check"), "reference") <= 1);
    assert_no_scratch();
}

/* No further command is begun. */
static void interrupted_before_the_next(void **state)
{
    (void)state;
    need_nvrtc();
    write_sizes();
    interrupt_rows("--csv large dispatch", SIGINT, 50); /* every size of large is left out */
    assert_has(out, "\nenvironment,command,,,,,,,,,,large many.txt,,\n");
    assert_has_not(out, "dispatch");
    assert_no_scratch();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(output_is_lost),
        cmocka_unit_test(interrupted_among_rows),
        cmocka_unit_test(interrupted_before_the_next),
    };
    return cmocka_run_group_tests(tests, make_bench_home, remove_bench_home);
}
