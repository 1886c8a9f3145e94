/* The processes behind jitgemm-bench --save and --against: ones that fail, talk, stay behind or are interrupted in; messages out,
 * and the old file as it was. */
#include "drift_fixture.h"

/* ---- processes that go wrong ---- */

static void bad_processes(void **state)
{
    (void)state;
    static const struct { const char *script, *why; int started; } rows[] = {
        {"[ $N = 4 ] && { echo the reason >&2; exit 7; }",
         "the reason\njitgemm-bench: run 5 of 10 ended with status 7. To see it alone: ", 5},
        {"[ $N = 1 ] && kill -SEGV $$", "run 2 of 10 was ended by signal 11 (Segmentation fault)", 2},
        {"[ $N = 2 ] && { echo hello; exit 0; }", "run 3 of 10 printed no result: it is not JSON", 3},
        {"exit 0", "run 1 of 10 printed no result: it is empty", 1},
        {"head -c 300 run$N.json; exit 0", "run 1 of 10 printed no result: it is not JSON, or is cut off", 1},
    };
    make_results(&usual, 10);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        write_script(rows[i].script);
        scratch_write(new_path, "old", 3);
        assert_drift(&(asked){.save = new_path}, BENCH_EXIT_FAILED);
        assert_has(errors, rows[i].why);
        assert_has(errors, "/bin/sh ");
        assert_has(errors, "runs were finished; ");
        assert_has(errors, "new.json was not written\n");
        assert_int_equal(started(), rows[i].started);
        assert_content(new_path, "old");
    }
    unlink(new_path);
    assert_drift(&(asked){.save = new_path, .program = "/no/such/program"}, BENCH_EXIT_FAILED);
    assert_has(errors, "run 1 of 10 ended with status 127");
    assert_false(scratch_exists(new_path));
}

/* Much on both outputs must not stop it; nor may one who stays behind with them open. */
static void talkative_processes(void **state)
{
    (void)state;
    make_results(&usual, 10);
    write_script("head -c 300000 /dev/zero | tr '\\0' ' ';"
                 " for i in 1 2 3; do head -c 70000 /dev/zero | tr '\\0' x >&2; echo >&2; done; printf last >&2; sleep 5 &");
    const int64_t before_ns = bench_now_ns();
    cJSON *drift;
    const int saved_out = redirect(stdout, "out"), saved_errors = redirect(stderr, "errors");
    const int status = drift_bare(&(asked){.save = new_path, .runs = 2}, &drift);
    fflush(stderr);
    dup2(saved_errors, STDERR_FILENO);
    close(saved_errors);
    take_back(stdout, saved_out, "out", out);
    assert_int_equal(status, BENCH_EXIT_DONE);
    assert_true(bench_now_ns() - before_ns < 4000000000);
    size_t bytes;
    unsigned char *text = scratch_read(scratch_path(folder, "errors"), &bytes);
    assert_non_null(text);
    assert_int_equal(bytes, 2 * (3 * 70001 + 5));
    assert_string_equal((char *)text + bytes - 6, "\nlast\n");
    free(text);
    unlink(new_path);
}

/* ---- interrupted ---- */

/* In a process of its own, as a request to end stays. */
static int drift_interrupted(void *user)
{
    cJSON *drift;
    if (bench_catch_stop_signals() != 0) return 100;
    redirect(stdout, "out");
    redirect(stderr, "errors");
    const int status = drift_bare(user, &drift);
    fflush(stdout);
    cJSON_Delete(drift);
    return status;
}

static void assert_interrupted(const asked *a)
{
    size_t bytes;
    const int64_t before_ns = bench_now_ns();
    assert_int_equal(scratch_child(drift_interrupted, (void *)(uintptr_t)a, 0), BENCH_EXIT_INTERRUPTED);
    assert_true(bench_now_ns() - before_ns < 8000000000); /* the process has been ended, not waited for */
    char *const texts[] = {out, errors};
    for (int i = 0; i < 2; i++) {
        unsigned char *text = scratch_read(scratch_path(folder, i ? "errors" : "out"), &bytes);
        assert_true(text && bytes < sizeof out);
        memcpy(texts[i], text, bytes + 1);
        free(text);
    }
}

static void interrupted(void **state)
{
    (void)state;
    making m = usual;
    make_base(&m);
    scratch_write(new_path, "old", 3);
    m.slower = 0.1;
    make_results(&m, 10);
    /* The signal goes to us; that it reaches the process is seen in its farewell. */
    write_script("[ $N = 6 ] && { trap 'echo bye >&2; exit 1' TERM; kill -TERM $PPID; sleep 60 & wait; }");
    assert_interrupted(&(asked){.against = base_path, .save = new_path});
    assert_has(errors, "bye\n");
    assert_has(errors, "6 of 10 runs were finished; ");
    assert_has(errors, "new.json was not written\n");
    assert_has(out, "drift of 6 runs against ");
    assert_has(out, "1 slower");
    assert_has(out, "Interrupted: only the finished runs were compared.\n");
    assert_int_equal(started(), 7);
    assert_content(new_path, "old");
    /* One that is no comparison. */
    write_script("[ $N = 1 ] && { kill -INT $PPID; sleep 60; }");
    assert_interrupted(&(asked){.against = base_path});
    assert_string_equal(out, "");
    assert_int_equal(started(), 2);
    unlink(new_path);
}

/* Nothing measures on when we were killed: it would disturb what is measured next. */
static void processes_end_with_us(void **state)
{
    (void)state;
    make_results(&usual, 10);
    write_script("kill -KILL $PPID; sleep 0.3; echo > survived");
    assert_int_equal(scratch_child(drift_interrupted, (void *)(uintptr_t)&(const asked){.save = new_path}, 0), 128 + 9);
    usleep(600000);
    assert_false(scratch_exists(scratch_path(folder, "survived")));
    assert_false(scratch_exists(new_path));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_processes),
        cmocka_unit_test(talkative_processes),
        cmocka_unit_test(interrupted),
        cmocka_unit_test(processes_end_with_us),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
