/* jitgemm-bench plans, from outside, on the software GPU: suites and sizes in; every candidate with its counters, and what is wrong
 * with the input out. Tests that compile are skipped without NVRTC. */
#include "cli_bench_fixture.h"

static const cJSON *row_at(int i)
{
    const cJSON *row = cJSON_GetArrayItem(get(root, "plans"), i);
    if (!row) fail_msg("no row %d in:\n%s\n%s", i, out, err);
    return row;
}

static int count_compiles(const char *file)
{
    assert_run(0, "\"${B%%bench}cache\" --cache %s ls | grep -c jg_sm87", file);
    return atoi(out);
}

static void every_candidate(void **state)
{
    (void)state;
    need_nvrtc();
    assert_bench(0, "plans --size 33x20x70 --size 48 --type f16,f32 --jobs 2");
    assert_string_equal(cJSON_GetStringValue(cJSON_GetArrayItem(get(root, "commands"), 0)), "plans sizes");
    assert_int_equal(cJSON_GetArraySize(get(root, "plans")), 4);
    assert_int_equal(cJSON_GetArraySize(get(root, "rows")), 0);
    assert_int_equal(cJSON_GetArraySize(get(root, "gaps")), 0);
    for (int i = 0; i < 4; i++) {
        const cJSON *row = row_at(i), *one, *candidates = get(row, "candidates");
        const int count = cJSON_GetArraySize(candidates), chosen = (int)get_number(row, "chosen");
        if (count < 4) fail_msg("%d candidates of %s", count, get_text(row, "problem"));
        assert_string_equal(get_text(cJSON_GetArrayItem(candidates, chosen), "kernel"), get_text(row, "kernel"));
        int checked = 0;
        cJSON_ArrayForEach(one, candidates)
        {
            assert_true(get_number(one, "instructions") > 0);
            assert_true(get_number(one, "estimate_clocks") > 0);
            assert_null(get(one, "wrong"));
            assert_null(get(one, "refused"));
            checked += get(one, "check") != NULL;
        }
        assert_true(checked >= 1);
    }
    assert_string_equal(err, "");
}

/* A second run needs no compiler. */
static void through_the_cache_file(void **state)
{
    (void)state;
    need_nvrtc();
    assert_run(0, "\"$B\" plans --driver swgpu --cache plans.db --size 40:f16 --write-csv plans.csv");
    assert_has(out, "jitgemm " JG_VERSION_STRING ", plans sizes\n");
    assert_has(out, "\nsize, f16, operands resident\n  size  ");
    assert_has(out, "\n  40:f16  ");
    assert_run(0, "wc -l <plans.csv");
    const int lines = atoi(out);
    assert_int_equal(count_compiles("plans.db"), lines - 1);
    assert_run(0, "\"$B\" plans --driver swgpu --cache plans.db --size 40:f16 --csv --nvrtc no-such-nvrtc.so >csv && "
                  "grep ^size, csv >of-csv && sed 1d plans.csv | cmp - of-csv && grep -c ^suite, csv");
    assert_string_equal(out, "1\n");
    assert_run(0, "awk -F, 'NF != 36 {print; exit 1}' plans.csv");
}

static void a_suite(void **state)
{
    (void)state;
    need_nvrtc();
    assert_bench(0, "plans common16 dispatch --type f32 --all-classes --batches 1");
    assert_string_equal(cJSON_GetStringValue(cJSON_GetArrayItem(get(root, "commands"), 0)), "plans common16");
    assert_string_equal(cJSON_GetStringValue(cJSON_GetArrayItem(get(root, "commands"), 1)), "dispatch");
    assert_string_equal(get_text(row_at(0), "suite"), "common16");
    assert_has(out, "\"Left out, too large for the software GPU: 14 sizes.\"");
    assert_string_equal(err, "");
}

/* A kernel that stores nothing is told with its name, and the run fails. */
static void wrong_results(void **state)
{
    (void)state;
    need_nvrtc();
    plant("wrong.db", "64:f16", "");
    assert_run(1, "\"$B\" plans --driver swgpu --cache wrong.db --size 64:f16");
    assert_has(out, "\n    WRONG RESULT of jg_sm87_mma_f16f16f16_nn_");
    assert_has(err, " kernels 1 gave wrong results and 0 were refused\n");
}

static void bad_input(void **state)
{
    (void)state;
    static const struct { const char *arguments; int status; const char *message; } rows[] = {
        {"plans", 2, "plans of what? A suite such as common16, --list or --size"},
        {"plans compile", 2, "plans of what?"},
        {"plans common17", 2, "\"common17\" is no suite"},
        {"plans --list none.txt", 2, "none.txt: No such file or directory"},
        {"plans large --type f16", 1, "every size is too large for the software GPU"},
        {"plans --size 16 --save drift.json", 2, "--save is not for plans sizes; see --help"},
        {"plans --size 16 --html page.html", 2, "--html is not for plans sizes; see --help"},
        {"plans --size 16 --generic", 2, "--generic is not for plans sizes; see --help"},
        {"plans --size 16 --check", 2, "--check is not for plans sizes; see --help"},
        {"--size 16 --all-classes", 2, "--all-classes is not for sizes; see --help"},
        {"--size 16 --write-csv c.csv", 2, "--write-csv is not for sizes; see --help"},
        {"plans --size 16 --write-csv c.csv --cache c.csv", 2, "--cache and --write-csv are the same file"},
        {"plans --size 16 --write-csv none/c.csv", 1, "--write-csv: none/c.csv: No such file or directory"},
        {"plans --size 16 --write-csv ''", 2, "--write-csv needs a file name"},
        {"plans --size 16:f16 --nvrtc no-such-nvrtc.so", 1, "making the kernels: no NVRTC library can be opened"},
        {"plans --size 16 --type tf32 --as-arch 75", 1, "16:tf32: sm_75 has no tensor cores"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const int status = run("\"$B\" --driver swgpu %s", rows[i].arguments);
        if (status != rows[i].status) fail_msg("%s: status %d, not %d: %s", rows[i].arguments, status, rows[i].status, err);
        assert_int_equal(strncmp(err, "jitgemm-bench: ", 15), 0);
        assert_has(err, rows[i].message);
        assert_int_equal(count_lines(err), 1);
        assert_string_equal(out, "");
    }
    need_nvrtc();
    assert_run(1, "\"$B\" plans --driver swgpu --cache filled.db --size 16:f16 --write-csv /dev/full");
    assert_has(err, "jitgemm-bench: --write-csv: /dev/full: No space left on device\n");
}

static void assert_no_scratch(void)
{
    assert_run(0, "ls -A tmp");
    assert_string_equal(out, "");
}

static void interrupted(void **state)
{
    (void)state;
    need_nvrtc();
    static char text[TEXT_MAX];
    size_t length = 0;
    for (int n = 1; n <= 500; n++) length += (size_t)snprintf(text + length, sizeof text - length, "%dx16x16:f16\n", n);
    write_file("many.txt", text);
    for (int among_rows = 0; among_rows < 2; among_rows++) {
        pid_t pid = start(among_rows ? "mkdir -p tmp; TMPDIR=$PWD/tmp exec \"$B\" plans --driver swgpu --list some.txt --csv"
                                     : "mkdir -p tmp; TMPDIR=$PWD/tmp exec \"$B\" plans --driver swgpu --list many.txt");
        for (int i = 0; among_rows && i < 6000 && !strstr(out, "\nlist,some.txt,"); i++) {
            pause_ms(10);
            read_text("out", out);
        }
        pause_ms(among_rows ? 10 : 1500);
        kill(pid, SIGINT);
        const int status = finish(pid);
        if (status != 130) fail_msg("status %d, not 130: %s", status, err);
        assert_string_equal(err, "jitgemm-bench: interrupted; the results are of what was finished\n");
        assert_no_scratch();
        /* Of the generic form there are few kernels, which are soon there. */
        length = 0;
        for (int n = 1; n <= 500; n++) length += (size_t)snprintf(text + length, sizeof text - length, "%dx160x160:f16:generic\n", n);
        write_file("some.txt", text);
        out[0] = 0;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_candidate), cmocka_unit_test(through_the_cache_file), cmocka_unit_test(a_suite),
        cmocka_unit_test(wrong_results),   cmocka_unit_test(bad_input),              cmocka_unit_test(interrupted),
    };
    return cmocka_run_group_tests(tests, make_bench_home, remove_bench_home);
}
