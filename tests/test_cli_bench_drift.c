/* jitgemm-bench --save and --against from outside, on the software GPU, where a measure is a number of instructions: baselines in;
 * verdicts, exit statuses and files that stay as they were out. All is skipped without NVRTC. */
#include "cli_bench_fixture.h"

#include <math.h>

#define TINY "\"$B\" --driver swgpu --cache filled.db --size 16:f16 --size 5x7x9:f16"

/* Makes base.json, of 10 processes. */
static void save_base(void)
{
    assert_run(0, TINY " --save base.json");
    assert_string_equal(err, "");
}

static cJSON *read_json(const char *name)
{
    static char text[TEXT_MAX];
    read_text(name, text);
    cJSON *document = cJSON_Parse(text);
    if (!document) fail_msg("%s is no JSON:\n%s", name, text);
    return document;
}

static void write_json(const char *name, cJSON *document)
{
    char *text = cJSON_Print(document);
    write_file(name, text);
    cJSON_free(text);
    cJSON_Delete(document);
}

/* base.json with the values of measure 0 multiplied, as `name`. */
static void write_scaled(const char *name, double factor)
{
    cJSON *document = read_json("base.json"), *value;
    cJSON *measure = cJSON_GetArrayItem(cJSON_GetObjectItem(document, "measures"), 0);
    assert_int_equal(cJSON_GetArraySize(get(measure, "values")), 10);
    cJSON_ArrayForEach(value, cJSON_GetObjectItem(measure, "values")) cJSON_SetNumberValue(value, value->valuedouble * factor);
    write_json(name, document);
}

static void drift_of(const char *arguments, int expected)
{
    assert_run(expected, TINY " %s --json", arguments);
    cJSON_Delete(root);
    root = cJSON_Parse(out);
    assert_non_null(root);
    assert_string_equal(get_text(root, "format"), "jitgemm-bench result");
}

static void saved_and_compared(void **state)
{
    (void)state;
    need_nvrtc();
    save_base();
    assert_has(out, "\nbase.json: measures: 2, runs: 10\n");
    cJSON *base = read_json("base.json");
    assert_string_equal(get_text(base, "format"), "jitgemm-bench baseline");
    assert_true(get_number(base, "runs") == 10);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetArrayItem(get(base, "commands"), 0)), "sizes");
    cJSON_Delete(base);
    assert_run(0, TINY " --against base.json");
    assert_has(out, "drift of 10 runs against base.json (10 runs, 20");
    assert_has(out, "\n2 measures: 0 slower, 0 faster, 2 the same within 3 % or by chance\n");
    assert_has_not(out, "changed since then");
    assert_string_equal(err, "");
    drift_of("--against base.json --processes 11", 0);
    const cJSON *drift = get(root, "drift"), *row;
    assert_true(get_number(drift, "runs") == 11 && get_number(drift, "base_runs") == 10);
    assert_true(get_number(drift, "percent") == 3 && get_number(drift, "p") == 0.01);
    assert_true(get_number(drift, "slower") == 0 && get_number(drift, "faster") == 0);
    assert_int_equal(cJSON_GetArraySize(get(drift, "rows")), 2);
    cJSON_ArrayForEach(row, get(drift, "rows"))
    {
        assert_string_equal(get_text(row, "verdict"), "same");
        assert_string_equal(get_text(row, "unit"), "instructions");
        assert_true(get_number(row, "base") == get_number(row, "now"));
        assert_true(get_number(row, "p") == 1 && get_number(row, "p_adjusted") == 1 && get_number(row, "change_percent") == 0);
    }
    assert_string_equal(get_text(cJSON_GetArrayItem(get(drift, "rows"), 0), "name"), "size 16:f16 resident");
    assert_true(cJSON_IsFalse(get(drift, "interrupted")));
    assert_int_equal(cJSON_GetArraySize(get(drift, "missing")) + cJSON_GetArraySize(get(drift, "new")), 0);
}

static void slower_and_faster(void **state)
{
    (void)state;
    need_nvrtc();
    save_base();
    write_scaled("quick.json", 0.9); /* now is 11 % slower */
    write_scaled("slow.json", 1.25);
    assert_run(3, TINY " --against quick.json");
    assert_has(out, "\n  size 16:f16 resident ");
    assert_has(out, "  slower\n");
    assert_has(out, "\n2 measures: 1 slower, 0 faster, 1 the same");
    assert_has_not(out, "size 5x7x9:f16 resident");
    drift_of("--against quick.json --percent 10", 3);
    const cJSON *row = cJSON_GetArrayItem(get(get(root, "drift"), "rows"), 0);
    assert_string_equal(get_text(row, "verdict"), "slower");
    assert_true(fabs(get_number(row, "change_percent") - 11.111) < 0.01);
    assert_true(get_number(row, "p_adjusted") < 0.01);
    drift_of("--against quick.json --percent 12", 0); /* as certain, but not as much */
    assert_true(get_number(get(root, "drift"), "slower") == 0);
    assert_run(0, TINY " --against slow.json --csv");
    assert_int_equal(strncmp(out, "kind,name,unit,base,now,change_percent,p,p_adjusted,verdict\nmeasure,size 16:f16 resident,", 85), 0);
    assert_has(out, ",faster\nmeasure,size 5x7x9:f16 resident,");
    assert_int_equal(count_lines(out), 3);
}

/* Told before anything is measured where that can be known, else after the first process; whatever was there stays. */
static void bad_baselines(void **state)
{
    (void)state;
    need_nvrtc();
    save_base();
    assert_run(0, "mkdir -p bad/folder; head -c 300 base.json >bad/cut; echo kernels >bad/foreign; : >bad/empty; echo '{}' >bad/other; "
                  "sed 's/\"format_version\":.1/\"format_version\":\t2/' base.json >bad/newer; "
                  "sed 's/AGX Orin (software GPU)/NVIDIA H200/' base.json >bad/h200; "
                  "sed 's/\"environment\":.{/&\"sms\": 8,/' base.json >bad/narrow; "
                  "sed 's/16:f16/18:f16/; s/5x7x9/5x7x8/' base.json >bad/sizes; " TINY " --json >bad/result; cp -r bad before");
    static const struct { const char *file, *message; int late; } rows[] = {
        {"bad/none", "bad/none cannot be read: No such file or directory", 0},
        {"bad/folder", "bad/folder is not a regular file", 0},
        {"bad/empty", "bad/empty is empty", 0},
        {"bad/foreign", "bad/foreign is not JSON", 0},
        {"bad/cut", "bad/cut is not JSON, or is cut off", 0},
        {"bad/other", "bad/other is JSON, but not a baseline of jitgemm-bench", 0},
        {"bad/result", "bad/result is the result of one run, not a baseline; --save makes one", 0},
        {"bad/newer", "bad/newer has format_version 2; this jitgemm-bench understands up to 1", 0},
        {"bad/h200", "bad/h200 is of another device: device was \"NVIDIA H200\" and is \"AGX Orin (software GPU)\" here", 0},
        {"bad/narrow", "bad/narrow is of another device: sms was \"8\" and is \"unknown\" here", 1},
        {"bad/sizes", "bad/sizes holds nothing that is measured now; was it made by another command, or of other sizes?", 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *file = rows[i].file;
        for (int saves = 0; saves < 2; saves++) {
            assert_run(1, TINY " --csv --against %s %s%s", file, saves ? "--save " : "", saves ? file : "");
            assert_has(err, rows[i].message);
            assert_int_equal(strncmp(err, "jitgemm-bench: ", 15), 0);
            if (saves && rows[i].late) assert_has(err, "of 10 runs were finished; bad/");
            else assert_int_equal(count_lines(err), 1);
            assert_string_equal(out, "");
        }
    }
    assert_run(0, "diff -r bad before");
}

static void saved_over_the_old(void **state)
{
    (void)state;
    need_nvrtc();
    save_base();
    write_scaled("kept.json", 0.5);
    assert_run(3, TINY " --against kept.json --save kept.json"); /* compared first, then saved all the same */
    assert_has(out, "1 slower");
    assert_has(out, "\nkept.json: measures: 2, runs: 10\n");
    drift_of("--against kept.json --save second.json", 0);
    cJSON *second = read_json("second.json"), *kept = read_json("kept.json");
    assert_true(cJSON_Compare(get(second, "measures"), get(kept, "measures"), 1));
    cJSON_Delete(second);
    cJSON_Delete(kept);
    assert_run(1, TINY " --save folder-that-is-not/new.json");
    assert_has(err, "jitgemm-bench: folder-that-is-not/new.json cannot be written: No such file or directory");
}

static void several_commands(void **state)
{
    (void)state;
    need_nvrtc();
    assert_run(0, "\"$B\" dispatch --batches 1 poison --type f16 --size 16:f16 --driver swgpu --cache filled.db --json --save two.json");
    cJSON_Delete(root);
    root = cJSON_Parse(out);
    assert_int_equal(cJSON_GetArraySize(get(root, "commands")), 2);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetArrayItem(get(root, "commands"), 0)), "dispatch");
    assert_string_equal(cJSON_GetStringValue(cJSON_GetArrayItem(get(root, "commands"), 1)), "poison sizes");
    cJSON *two = read_json("two.json");
    assert_int_equal(cJSON_GetArraySize(get(two, "measures")), 6);
    assert_true(cJSON_Compare(get(two, "commands"), get(root, "commands"), 1));
    cJSON_Delete(two);
    /* Other products: what only one of them has is named, and is neither slower nor faster. */
    assert_run(0, TINY " --against two.json");
    assert_has(out, "\nnot measured now\n  poison 127:f16 resident\n");
    assert_has(out, "\nnot in the baseline\n  size 5x7x9:f16 resident\n");
    assert_has(out, "\n1 measure: 0 slower, 0 faster, 1 the same");
}

/* With a temporary cache file the kernels are made once, for all processes, and it is removed. */
static void temporary_cache(void **state)
{
    (void)state;
    need_nvrtc();
    assert_run(0, "mkdir -p tmp; TMPDIR=$PWD/tmp \"$B\" --driver swgpu --size 16:f32 --save fresh.json && ls -A tmp");
    assert_has(out, "fresh.json: measures: ");
    cJSON *fresh = read_json("fresh.json");
    const cJSON *values = get(cJSON_GetArrayItem(get(fresh, "measures"), 0), "values"), *value;
    cJSON_ArrayForEach(value, values) assert_true(value->valuedouble == cJSON_GetArrayItem(values, 0)->valuedouble);
    cJSON_Delete(fresh);
    assert_run(0, "ls -A tmp");
    assert_string_equal(out, "");
}

/* A process that fails: which, and how to see it alone. */
static void a_process_that_fails(void **state)
{
    (void)state;
    need_nvrtc();
    save_base();
    assert_run(1, "cp base.json before.json; JITGEMM_SWGPU_FAULT=cuStreamSynchronize:1:CUDA_ERROR_INVALID_VALUE " TINY " --save base.json");
    assert_has(err, "jitgemm-bench: run 1 of 10 ended with status 1. To see it alone: ");
    assert_has(err, " --json --cache filled.db ");
    assert_has(err, "jitgemm-bench: 0 of 10 runs were finished; base.json was not written\n");
    assert_run(0, "cmp base.json before.json");
}

static void interrupted(void **state)
{
    (void)state;
    need_nvrtc();
    save_base();
    assert_run(0, "cp base.json before.json; rm -rf tmp; mkdir tmp");
    pid_t pid = start("TMPDIR=$PWD/tmp exec \"$B\" --driver swgpu --size 16:f16 --processes 1000 --against base.json --save base.json");
    for (int i = 0; i < 500 && !strstr(out, "counts only"); i++) {
        pause_ms(10);
        read_text("out", out);
    }
    pause_ms(1500); /* some processes, of about 20 ms each */
    kill(pid, SIGINT);
    assert_int_equal(finish(pid), 130);
    assert_has(err, " of 1000 runs were finished; base.json was not written\n");
    assert_has(out, "\nInterrupted: only the finished runs were compared.\n");
    assert_run(0, "cmp base.json before.json && ls -A tmp && ls base.json.* 2>/dev/null; true");
    assert_string_equal(out, "");
}

static void lost_output(void **state)
{
    (void)state;
    need_nvrtc();
    save_base();
    assert_run(1, TINY " --against base.json >/dev/full");
    assert_has(err, "jitgemm-bench: standard output: No space left on device\n");
    assert_run(1, TINY " --against base.json --json >&-");
    assert_has(err, "jitgemm-bench: standard output: ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(saved_and_compared),
        cmocka_unit_test(slower_and_faster),
        cmocka_unit_test(bad_baselines),
        cmocka_unit_test(saved_over_the_old),
        cmocka_unit_test(several_commands),
        cmocka_unit_test(temporary_cache),
        cmocka_unit_test(a_process_that_fails),
        cmocka_unit_test(interrupted),
        cmocka_unit_test(lost_output),
    };
    return cmocka_run_group_tests(tests, make_bench_home, remove_bench_home);
}
